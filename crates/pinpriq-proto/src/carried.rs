//! What the owner of a shard leaves to the next one when it ends in order, beside what is durable
//! anyway: what is left of rates.
//!
//! How much that is, and what a new owner makes of it, is decided by the engine. When it counts is
//! decided by the store.

use crate::task::Bytes;
use crate::time::Timestamp;

/// The most bytes that [`Carried`] has. Beyond, the fullest buckets are left out.
pub const CARRIED_BYTES_MAX: usize = 32 << 20;

/// What the parts of one bucket take at most beside its name, and those of a queue beside its own.
pub const BUCKET_BYTES: usize = 32;

/// The buckets that are not full. One that is missing is full, or what it has in common with
/// others.
#[derive(Clone, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Carried {
    /// The moment at which their tokens were counted.
    pub at: Timestamp,
    /// Those of limits of several queues.
    pub limits: Vec<LimitBucket>,
    /// Those of queues and lanes.
    pub queues: Vec<QueueBuckets>,
}

/// The bucket of a limit of several queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct LimitBucket {
    /// The number of the limit.
    pub number: u64,
    /// What it holds.
    pub level: Level,
}

/// The buckets of one queue or lane.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct QueueBuckets {
    /// Which one it is.
    pub of: BucketHome,
    /// Whose they are, and what they hold.
    pub buckets: Vec<QueueBucket>,
}

/// A queue or a lane.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum BucketHome {
    /// The queue of this name.
    #[letter(1)]
    Queue(Bytes),
    /// The lane of this number.
    #[letter(2)]
    Lane(u64),
}

/// One bucket of a queue.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct QueueBucket {
    /// Whose it is.
    pub of: BucketOf,
    /// What it holds.
    pub level: Level,
}

/// Whose bucket it is in a queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, pinpriq_derive::Letter)]
pub enum BucketOf {
    /// That of the queue itself.
    #[letter(1)]
    Queue,
    /// That of a key.
    #[letter(2)]
    Key(Bytes),
    /// That of a share.
    #[letter(3)]
    Share(Bytes),
    /// That of all keys without one of their own.
    #[letter(4)]
    EveryKey,
    /// That of all shares without one of their own, and without a rate of their own.
    #[letter(5)]
    EveryShare,
}

/// What a bucket holds. Its rate follows from the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, pinpriq_derive::Letter)]
pub struct Level {
    /// Whole tokens. Below zero in debt.
    pub tokens: i64,
    /// The part of another one. A token has as many parts as the rate has milliseconds.
    pub parts: u64,
}

impl Carried {
    /// Whether it says nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.queues.is_empty()
    }
}

impl BucketOf {
    /// The bytes of its name.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        match self {
            Self::Key(name) | Self::Share(name) => name.len(),
            Self::Queue | Self::EveryKey | Self::EveryShare => 0,
        }
    }
}

impl BucketHome {
    /// The bytes of its name.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        match self {
            Self::Queue(name) => name.len(),
            Self::Lane(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_these_bytes() {
        let level = |tokens, parts| Level { tokens, parts };
        let bucket = |of, level| QueueBucket { of, level };
        let of_queue = QueueBuckets {
            of: BucketHome::Queue(b"q"[..].into()),
            buckets: vec![
                bucket(BucketOf::Queue, level(1, 0)),
                bucket(BucketOf::Key(b"k"[..].into()), level(-1, 5)),
                bucket(BucketOf::Share(b""[..].into()), level(0, 300)),
            ],
        };
        let of_lane = QueueBuckets {
            of: BucketHome::Lane(9),
            buckets: vec![
                bucket(BucketOf::EveryKey, level(0, 1)),
                bucket(BucketOf::EveryShare, level(2, 0)),
            ],
        };
        let carried = Carried {
            at: Timestamp::from_ms(7),
            limits: vec![LimitBucket { number: 3, level: level(2, 0) }],
            queues: vec![of_queue, of_lane],
        };
        let mut bytes = Vec::new();
        carried.put_in(&mut bytes);
        let limits = [7, 1, 3, 4, 0, 0, 0];
        let own = [1, 2, 0, 0, 0];
        let of_key = [2, 1, b'k', 1, 5, 0, 0];
        let of_share = [3, 0, 0, 0xac, 2, 0, 0];
        let of_queue = [&[1, 1, b'q', 3][..], &own, &of_key, &of_share, &[0]].concat();
        let of_lane = [2, 9, 2, 4, 0, 1, 0, 0, 5, 4, 0, 0, 0, 0];
        assert_eq!(bytes, [&limits[..], &[2], &of_queue, &of_lane, &[0]].concat());
        assert_eq!(Carried::take_from(&mut &bytes[..]), Ok(carried));
    }
}
