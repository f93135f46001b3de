//! What a run is to do: how many connections, which requests in which order, how fast, how long.

use std::net::SocketAddr;

use pinpriq_dice::Dice;

/// What a request does. The names are pinpriq's; a [`Dialect`](crate::Dialect) finds the words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    /// Puts a task.
    Put,
    /// Takes a task under a lease.
    Take,
    /// Finishes the task that was taken.
    Ack,
    /// Takes a task for good.
    Pop,
    /// Puts a task for every member of a topic.
    Publish,
    /// Makes a member of a topic.
    Join,
    /// Ends a member, in every topic.
    Leave,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 7] =
        [Self::Put, Self::Publish, Self::Take, Self::Ack, Self::Pop, Self::Join, Self::Leave];

    /// Its name in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Take => "take",
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
    /// For which member of the topic, counted from 0; 0 where there are none.
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
    /// As soon as it has ended the one before: a closed loop.
    AtOnce,
    /// When it is due, this many of all slots together each second: an open loop.
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

/// All that a run needs to know besides the dialect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How many connections are opened, at least one.
    pub connections: usize,
    /// How many slots each connection has: requests that may be under way on it, at least one.
    pub depth: usize,
    /// What a slot does over and over again. A whole cycle is a job.
    pub cycle: Vec<Move>,
    /// Over how many queues the jobs are spread, one after the other, at least one.
    pub queues: u32,
    /// Whether each connection keeps to one of them, rather than taking them in turns.
    pub keeps_queue: bool,
    /// How many different priorities the tasks have, at least one.
    pub priorities: u32,
    /// What the priorities depend on.
    pub seed: u64,
    /// How fast.
    pub pace: Pace,
    /// How long.
    pub bound: Bound,
    /// Whether a slot stops for good when it finds nothing to take in any of the queues.
    pub until_empty: bool,
}

/// A payload of this many bytes that no compression makes smaller.
#[must_use]
pub fn payload(bytes: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let letters = std::iter::from_fn(|| Some(dice.roll().to_le_bytes())).flatten();
    // Letters alone, so that it can be looked at, and no protocol takes it for its own marks.
    letters.map(|byte| b'a' + byte % 26).take(bytes).collect()
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
