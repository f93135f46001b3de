//! How much room a store has left. What is refused without it is in `operations::room`.

/// How much room a store has. Each level allows less than the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Room {
    /// For everything.
    Enough,
    /// For everything except new tasks, lanes and members: puts, publishing and joining are
    /// refused.
    Low,
    /// For operations that take tasks or end them. Operations that change a task, a queue or a
    /// member and keep it are refused.
    Scarce,
    /// For operations that end tasks: acks, pops, kills. Nothing is taken under a lease, and
    /// consumers that wait for a lease stay blocked.
    Least,
}

/// Why a store does not have enough room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// Little space is left.
    Space,
    /// The next file cannot be made, for another reason than space.
    File,
    /// A distributed engine that keeps the store has little room left.
    Engine,
}
