//! How much room a store has left. What is refused for want of it, `operations::room` says.

/// How much room a store has. Each level allows less than the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Room {
    /// For everything.
    Enough,
    /// For all but new tasks, lanes and members: what is put, published and joined is refused.
    Low,
    /// For what takes tasks or ends them. What changes a task, a queue or a member and leaves it
    /// there is refused.
    Scarce,
    /// For what ends tasks: acks, pops, kills. Nothing is taken under a lease; who waits for that
    /// goes on waiting.
    Least,
}
