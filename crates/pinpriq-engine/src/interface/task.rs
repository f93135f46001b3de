//! What a task is: its identity, its state, its lease, and the record that leaves the engine.
//!
//! A [`TaskRecord`] is a task as the outside sees it, whole: replies carry it, the store keeps it,
//! and a pop that could not be sent brings it back. How the engine lays tasks out in memory is not
//! told here.

use std::fmt;
use std::sync::Arc;

use crate::change::Place;
use crate::time::{Span, Timestamp};

/// Opaque bytes, shared and never changed: payloads, keys and names.
pub type Bytes = Arc<[u8]>;

/// The name of a task within its queue. Which form it has is the queue's choice
/// ([`crate::settings::Ids`]).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TaskId {
    /// A number that the server drew: `sequence` and `time64`.
    Number(u64),
    /// A uuid that the server drew. Its text is the usual 36 characters.
    Uuid([u8; 16]),
    /// 1 to 255 bytes that the caller chose.
    Given(Bytes),
}

/// The states of a task, without their data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StateKind {
    /// R: can be selected, if it has a priority.
    Ready,
    /// T: held by a consumer under a lease.
    Taken,
    /// W: its delay has not passed yet.
    Waiting,
    /// B: set aside until somebody digs it up.
    Buried,
    /// Z: finished, and kept for a while.
    Zombie,
    /// D: finished, and kept for good.
    Done,
}

/// The state of a task with the data of just that state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// R.
    Ready,
    /// T, under this lease.
    Taken(Lease),
    /// W, until `ready_at`.
    Waiting {
        /// The end of the delay.
        ready_at: Timestamp,
    },
    /// B, for this reason (which may be empty).
    Buried {
        /// Why it was buried, in the words of whoever did it.
        reason: Bytes,
    },
    /// Z, until `purge_at`.
    Zombie {
        /// The end of the stay.
        purge_at: Timestamp,
    },
    /// D.
    Done,
}

/// The right to a taken task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Which grant this is. No two leases ever share it.
    pub grant: Grant,
    /// The connection that took the task, while it is there. A lease read back from a store has
    /// none.
    pub holder: Option<ClientId>,
    /// When the lease ends. Without a deadline it ends with the holder's connection.
    pub deadline: Option<Timestamp>,
    /// The time to release that was agreed, which a touch grants again.
    pub ttr: Option<Span>,
}

/// The number of one grant of a lease: unique for ever, since it carries the incarnation of the
/// server that granted it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Grant {
    /// The incarnation of the server. It rises durably before the first request is served.
    pub incarnation: u64,
    /// Counts the grants of that incarnation.
    pub serial: u64,
}

/// The proof of one lease. Its text form names the task and the grant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Receipt {
    /// The [`TaskRecord::number`] of the task, which also tells its queue.
    pub number: u64,
    /// The grant.
    pub grant: Grant,
}

/// A connection, as the engine knows it. Never reused within an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

/// A request of a client. The door chooses it and finds it again in the reply.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

/// A lane, as its tasks name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneName {
    /// Its number. Another lane under the same names has another one.
    pub number: u64,
    /// The member whose lane it is. A change leaves it out.
    pub member: Bytes,
}

impl LaneName {
    /// A lane that is known by its number alone.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        Self { number, member: Bytes::default() }
    }
}

/// A payload that was left in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Away {
    /// The place of the task's record, which holds it.
    pub place: Place,
    /// How many bytes it has.
    pub bytes: u32,
    /// Its [`payload_checksum`].
    pub checksum: u32,
}

/// Tells a payload that was left in the store from what a worn disk may give back instead.
#[must_use]
pub fn payload_checksum(payload: &[u8]) -> u32 {
    // Eight bytes at a time, each step a bijection of what came before, so that no single change
    // goes unnoticed before the last fold.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut hash = payload.len() as u64;
    let mut words = payload.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = step(hash, word);
    }
    let rest = words.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let hash = step(step(hash, rest), FACTOR);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are folded into one")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

/// What a producer says of a task for good: it stays as it was put. The bytes are owned or
/// borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms<B = Bytes> {
    /// Tasks of one queue with an equal key form a group.
    pub key: Option<B>,
    /// The task's own time to release, where the take names none.
    pub ttr: Option<Span>,
}

/// Where a task stands in its life: everything that changes without a new payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Lower is more urgent. Without a priority the task is never selected.
    pub priority: Option<i64>,
    /// The place in the order of insertion: [`TaskRecord::number`], unless the task was sent to
    /// the tail.
    pub seq: u64,
    /// The end of its time to live.
    pub expires_at: Option<Timestamp>,
    /// The number of times it was taken.
    pub attempts: u32,
    /// Its state.
    pub state: State,
}

/// A task, whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRecord {
    /// The shard's own number of the task: the order in which it was put. Unique in the shard,
    /// never reused, and never changed.
    pub number: u64,
    /// The queue that the task is in; for a task of a lane, the topic. A change leaves it out for
    /// a task of a lane, which is known by its number.
    pub queue: Bytes,
    /// The lane that the task is in, if it is in one.
    pub lane: Option<LaneName>,
    /// The name of the task within that queue.
    pub id: TaskId,
    /// When the task was put.
    pub put_at: Timestamp,
    /// What stays as it was put.
    pub terms: Terms,
    /// What changes.
    pub progress: Progress,
    /// What the task carries; empty if it was left in the store, or is shared.
    pub payload: Bytes,
    /// How to find the payload, if it was left in the store.
    pub away: Option<Away>,
    /// Only in a change: whether terms and payload are those of the publication whose numbers
    /// include that of the task. The record leaves them out then.
    pub shared: bool,
}

impl StateKind {
    /// All six, in the order of the founding text.
    pub const ALL: [Self; 6] =
        [Self::Ready, Self::Taken, Self::Waiting, Self::Buried, Self::Zombie, Self::Done];

    /// The founding letter: `R`, `T`, `W`, `B`, `Z` or `D`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Ready => 'R',
            Self::Taken => 'T',
            Self::Waiting => 'W',
            Self::Buried => 'B',
            Self::Zombie => 'Z',
            Self::Done => 'D',
        }
    }
}

impl State {
    /// The state without its data.
    #[must_use]
    pub const fn kind(&self) -> StateKind {
        match self {
            Self::Ready => StateKind::Ready,
            Self::Taken(_) => StateKind::Taken,
            Self::Waiting { .. } => StateKind::Waiting,
            Self::Buried { .. } => StateKind::Buried,
            Self::Zombie { .. } => StateKind::Zombie,
            Self::Done => StateKind::Done,
        }
    }
}

impl<B> Terms<B> {
    /// Those of a task about which nothing was said.
    pub const NONE: Self = Self { key: None, ttr: None };

    /// A key and a time to release, and nothing else.
    #[must_use]
    pub const fn of(key: Option<B>, ttr: Option<Span>) -> Self {
        Self { key, ttr }
    }

    /// Whether nothing was said.
    #[must_use]
    #[inline]
    pub const fn are_none(&self) -> bool {
        matches!(self, Self { key: None, ttr: None })
    }
}

impl<B> Default for Terms<B> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<B: AsRef<[u8]>> Terms<B> {
    /// The same with borrowed bytes.
    #[must_use]
    #[inline]
    pub fn borrowed(&self) -> Terms<&[u8]> {
        let Self { key, ttr } = self;
        Terms { key: key.as_ref().map(B::as_ref), ttr: *ttr }
    }

    /// The number of bytes that they hold.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.key.as_ref().map_or(0, |key| key.as_ref().len())
    }
}

impl Terms<&[u8]> {
    /// The same with bytes of its own.
    #[must_use]
    #[inline]
    pub fn kept(self) -> Terms {
        Terms { key: self.key.map(Bytes::from), ttr: self.ttr }
    }
}

impl Progress {
    /// That of a task which was just put under this number and has no deadline.
    #[must_use]
    #[inline]
    pub const fn fresh(number: u64, priority: Option<i64>) -> Self {
        Self { priority, seq: number, expires_at: None, attempts: 0, state: State::Ready }
    }

    /// Whether nothing has happened to the task of this number, its priority aside.
    #[inline]
    pub(crate) const fn is_fresh(&self, number: u64) -> bool {
        let Self { priority: _, seq, expires_at, attempts, state } = self;
        *seq == number && expires_at.is_none() && *attempts == 0 && matches!(state, State::Ready)
    }
}

impl TaskRecord {
    /// The receipt of the current lease, if the task is taken.
    #[must_use]
    #[inline]
    pub const fn receipt(&self) -> Option<Receipt> {
        match &self.progress.state {
            State::Taken(lease) => Some(Receipt { number: self.number, grant: lease.grant }),
            _ => None,
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Uuid(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    if matches!(index, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
            Self::Given(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}
