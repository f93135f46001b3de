//! The plan of a run: how many connections, which requests in which order, how fast, and how long.

use std::net::SocketAddr;

use fastrand::Rng;
use pinpriq_tls::Peer;

/// What a request does, named as in pinpriq. A [`Dialect`](crate::Dialect) translates it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    /// Puts a task.
    Put,
    /// Takes a task under a lease.
    Take,
    /// Finishes the task that was taken before, if there is one, and takes another with the same
    /// request. When the run is over, each slot finishes its last task with an [`Ack`](Self::Ack)
    /// that is not counted.
    DoneTake,
    /// Finishes the task that was taken.
    Ack,
    /// Takes a task and removes it.
    Pop,
    /// Puts a task for every member of a topic.
    Publish,
    /// Adds a member to a topic.
    Join,
    /// Ends a member, in every topic.
    Leave,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 8] = [
        Self::Put,
        Self::Publish,
        Self::Take,
        Self::DoneTake,
        Self::Ack,
        Self::Pop,
        Self::Join,
        Self::Leave,
    ];

    /// Returns its name in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Take => "take",
            Self::DoneTake => "done-take",
            Self::Ack => "ack",
            Self::Pop => "pop",
            Self::Publish => "publish",
            Self::Join => "join",
            Self::Leave => "leave",
        }
    }
}

/// One request of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// What it does.
    pub step: Step,
    /// The member of the topic, counted from 0; 0 if there are none.
    pub member: u32,
}

impl From<Step> for Move {
    fn from(step: Step) -> Self {
        Self { step, member: 0 }
    }
}

/// When a slot begins its next cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// As soon as it has ended the previous one: a closed loop.
    AtOnce,
    /// When it is due, at this number of cycles per second for all slots together: an open loop.
    PerSecond(u64),
}

/// When a run ends. Cycles that have begun are always finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// After this many cycles.
    Cycles(u64),
    /// After this many nanoseconds.
    Nanoseconds(u64),
}

/// Everything that a run needs to know besides the dialect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How connections are encrypted, if they are.
    pub encryption: Option<Peer>,
    /// The number of connections, at least one.
    pub connections: usize,
    /// The number of slots of each connection, that is, of requests that may be under way on it. At
    /// least one.
    pub depth: usize,
    /// What a slot repeats. A whole cycle is a job.
    pub cycle: Vec<Move>,
    /// The number of queues that the jobs are spread over in turn, at least one.
    pub queues: u32,
    /// Whether each connection keeps to one of the queues instead of using them in turn.
    pub keeps_queue: bool,
    /// The number of different priorities of the tasks, at least one.
    pub priorities: u32,
    /// The seed of the priorities.
    pub seed: u64,
    /// How fast the run is.
    pub pace: Pace,
    /// How long the run takes.
    pub bound: Bound,
    /// Whether a slot stops for good when it finds nothing to take in any of the queues.
    pub until_empty: bool,
}

/// Returns a payload of this many bytes that cannot be compressed.
#[must_use]
pub fn payload(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    // Only letters, so that people can read it, and no protocol mistakes it for its own marks.
    (0..bytes).map(|_| random.u8(b'a'..=b'z')).collect()
}

#[cfg(test)]
mod tests {
    use super::payload;

    #[test]
    fn payloads_have_their_size_and_depend_on_the_seed() {
        assert_eq!(payload(0, 1), b"");
        assert_eq!(payload(100, 1).len(), 100);
        assert_eq!(payload(100, 1), payload(100, 1));
        assert_ne!(payload(100, 1), payload(100, 2));
        assert!(payload(100, 1).iter().all(u8::is_ascii_lowercase));
    }
}
