//! What fan-out asks and answers: publishing to a topic, and being a member of it.
//!
//! A topic is a fan-out queue. Each member that joined it has a lane there, a queue of its own with
//! a copy of everything published since. Being alive belongs to the member, not to the topic. How
//! that is done is in the files of this folder.

pub(crate) mod farewell;
pub(crate) mod members;
pub(crate) mod membership;
pub(crate) mod publications;
pub(crate) mod publish;
pub(crate) mod restore_lanes;

use crate::task::{Bytes, Terms};
use crate::time::{Span, Timestamp};

/// How long a member lives without a sign of life, unless it says otherwise.
pub const LEASE_DEFAULT: Span = Span::from_ms(60_000);

/// Puts one task into each lane of a topic: all or none, also across a crash. Answered with the
/// number of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Publish<'a> {
    /// The topic.
    pub topic: &'a [u8],
    /// What the tasks carry. It is kept once, however many lanes there are.
    pub payload: &'a [u8],
    /// What stays with them.
    pub terms: Terms<&'a [u8]>,
    /// Lower is more urgent; none is never selected.
    pub priority: Option<i64>,
    /// The moment from which on no task is delivered any more.
    pub deadline: Deadline,
}

/// The end of a published task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// The TTL that a lane sets for its tasks, if it does.
    OfLane,
    /// This moment of the engine's own time. One that has passed reaches no lane.
    At(Timestamp),
    /// So long from now.
    After(Span),
}

/// What members ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberCommand<'a> {
    /// Gives the member a lane in the topic, unless it has one; registers the member, unless it
    /// is. Answered with the member's incarnation.
    Join {
        /// The topic.
        topic: &'a [u8],
        /// The member.
        member: &'a [u8],
        /// How long it lives without a sign of life, from now on.
        lease: Option<Span>,
    },
    /// A sign of life.
    Beat {
        /// The member.
        member: &'a [u8],
        /// How long it lives without a further one, from now on.
        lease: Option<Span>,
    },
    /// Ends one lane. Answered with 1, or 0 if there was none.
    LeaveTopic {
        /// The topic.
        topic: &'a [u8],
        /// The member.
        member: &'a [u8],
    },
    /// Ends a member and all its lanes. Answered with their number.
    Leave(&'a [u8]),
    /// Tells who has a lane in the topic.
    List(&'a [u8]),
}

/// A member of one topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberFigures {
    /// Its name.
    pub member: Bytes,
    /// Which registration under that name this is.
    pub incarnation: u64,
    /// When it ends without a further sign of life.
    pub lease_until: Timestamp,
    /// Ready tasks in its lane.
    pub ready: u64,
    /// Taken tasks in its lane.
    pub taken: u64,
}
