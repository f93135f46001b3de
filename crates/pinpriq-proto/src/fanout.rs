//! The commands and replies of fan-out: publishing to a topic, and being a member of it.
//!
//! A topic is a fan-out queue. Each member that joined it has a lane there: a queue of its own with
//! a copy of every task published since. A member is alive or not as a whole, not in each topic.
//! What they do is up to the engine.

use crate::facts::{Anywhere, Called, Destination, Joining};
use crate::names::QueueName;
use crate::task::{Bytes, GivenTerms};
use crate::time::{Span, Timestamp};

/// How long a member lives without a sign of life, unless it says otherwise.
pub const LEASE_DEFAULT: Span = Span::from_ms(60_000);

/// Puts one task into each lane of a topic: all or none, even across a crash. The reply is the
/// number of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter, pinpriq_derive::Arguments)]
pub struct Publish<'a> {
    /// The topic.
    #[key]
    pub topic: &'a [u8],
    /// What the tasks carry. It is stored once, however many lanes there are.
    #[word]
    pub payload: &'a [u8],
    /// What never changes about the tasks.
    #[letter(1)]
    #[option(KEY, SHARE, COST, HEADERS, with = reading::without_ttr)]
    pub terms: GivenTerms<'a>,
    /// Lower is more urgent. Without a priority the tasks are never selected.
    #[letter(2, default = Some(0))]
    #[option(default = Some(0))]
    pub priority: Option<i64>,
    /// The moment from which the task is no longer delivered.
    #[letter(3, default = Deadline::OfLane)]
    #[flat]
    pub deadline: Deadline,
}

/// When a published task ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Deadline {
    /// The TTL that a lane sets for its tasks, if it sets one.
    #[letter(1)]
    OfLane,
    /// This moment in the engine's own time. If it has passed, the task reaches no lane.
    #[letter(2)]
    At(Timestamp),
    /// This long from now.
    #[letter(3)]
    After(Span),
}

/// The commands of members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Command, pinpriq_derive::Letter)]
pub enum MemberCommand<'a> {
    /// Registers the member if it is not registered, and gives it a lane in the topic if it has
    /// none. The reply is the member's incarnation.
    #[command(
        needs(take = topic, take = Anywhere), shard = topic,
        names = QueueName { name: topic, member: Some(member) }, disk = Refused, change, within,
        care = LongWork
    )]
    #[letter(1)]
    #[request(Spec::new(
        "JOIN",
        Group::FanOut,
        "Gives a member a lane in a topic, and registers it if need be",
        "the incarnation of the member"
    ))]
    Join {
        /// The topic.
        #[key]
        topic: &'a [u8],
        /// The member.
        #[word]
        member: &'a [u8],
        /// How long it lives without a sign of life, from now on.
        #[letter(1)]
        #[option]
        lease: Option<Span>,
    },
    /// A sign of life.
    #[command(
        needs(take = Anywhere), shard = Destination::Everywhere(Joining::Membership),
        names = Called("member", member), disk = Served, change, within, care = LongWork
    )]
    #[letter(2)]
    #[request(Spec::new(
        "BEAT",
        Group::FanOut,
        "Gives a sign of life, which begins the lease of a member anew",
        "OK"
    ).http(Form::Nothing))]
    Beat {
        /// The member.
        #[word]
        member: &'a [u8],
        /// How long it lives without another one, from now on.
        #[letter(1)]
        #[option]
        lease: Option<Span>,
    },
    /// Ends one lane. The reply is 1, or 0 if there was none.
    #[command(
        needs(take = topic), shard = topic,
        names = QueueName { name: topic, member: Some(member) }, disk = Served, change,
        care = LongWork
    )]
    #[letter(3)]
    #[request(by_hand = leave,
        Spec::new("LEAVE", Group::FanOut,
            "Ends a lane of a member; without a topic the member and all its lanes",
            "how many lanes ended")
        .words(&[Word::MaybeKeyFirst("topic"), Word::One("member")])
    )]
    LeaveTopic {
        /// The topic.
        topic: &'a [u8],
        /// The member.
        member: &'a [u8],
    },
    /// Ends a member and all its lanes. The reply is their number.
    #[command(
        needs(take = Anywhere), shard = Destination::Everywhere(Joining::Membership),
        names = Called("member", it), disk = Served, change, within, care = LongWork
    )]
    #[letter(4)]
    Leave(&'a [u8]),
    /// Lists the members with a lane in the topic.
    #[command(
        needs(look = it), shard = it, names = Called("topic", it), disk = Served, care = LongReply
    )]
    #[letter(5)]
    #[request(
        Spec::new("MEMBERS", Group::FanOut,
            "Tells the members of a topic",
            "an array of maps: member, incarnation, lease_until, ready, taken")
        .last()
    )]
    List(#[key("topic")] &'a [u8]),
}

/// A member of one topic.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
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
