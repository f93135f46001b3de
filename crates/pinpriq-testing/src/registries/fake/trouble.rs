//! What may go wrong with the registry in memory, how often, and how often it has.
//!
//! It only decides. What then happens is in `state.rs`, and what it tells in `records.rs`.

use crate::troubles::Loss;

/// How often each kind of trouble strikes, in percent of the calls that it can strike.
///
/// The default is [`FakeKnobs::PERFECT`]. All fields are free to change, also in the middle of a
/// run: see [`FakeRegistry::set_knobs`](super::FakeRegistry::set_knobs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FakeKnobs {
    /// The answer comes late. The change is made at any time until then.
    pub late: u64,
    /// The change is made and the answer is lost.
    pub lost_applied: u64,
    /// The change is never made and the answer is lost.
    pub lost_never: u64,
    /// The answer is lost, and the change is tried only after the caller knows that.
    pub lost_later: u64,
    /// The process reaches nothing for a while.
    pub outage: u64,
    /// A view is one of the past.
    pub stale: u64,
    /// A view hides a node that lives.
    pub hidden: u64,
    /// A view shows a node whose session has ended.
    pub ghost: u64,
    /// A view shows a wrong owner, or none.
    pub wrong_owner: u64,
    /// A session ends when it is renewed.
    pub revoked: u64,
    /// A session goes on after its time. In percent of the sessions whose time has passed.
    pub kept: u64,
    /// A claim of a shard that has an owner is answered as done, and changes nothing.
    pub lied: u64,
    /// How long a call takes at most, in milliseconds.
    pub latency_ms: u64,
    /// By how much more a late answer is late at most.
    pub late_ms: u64,
    /// How long an outage lasts at most, and how long a session goes on at most after its time.
    pub outage_ms: u64,
}

impl FakeKnobs {
    /// No trouble at all.
    pub const PERFECT: Self = Self {
        late: 0,
        lost_applied: 0,
        lost_never: 0,
        lost_later: 0,
        outage: 0,
        stale: 0,
        hidden: 0,
        ghost: 0,
        wrong_owner: 0,
        revoked: 0,
        kept: 0,
        lied: 0,
        latency_ms: 5,
        late_ms: 300,
        outage_ms: 6_000,
    };

    /// A little of each trouble.
    pub const ROUGH: Self = Self {
        late: 15,
        lost_applied: 3,
        lost_never: 3,
        lost_later: 3,
        outage: 1,
        stale: 5,
        hidden: 4,
        ghost: 4,
        wrong_owner: 4,
        revoked: 2,
        kept: 30,
        lied: 30,
        ..Self::PERFECT
    };
}

impl Default for FakeKnobs {
    fn default() -> Self {
        Self::PERFECT
    }
}

pub(super) const LATE: &str = "an answer was late";
pub(super) const LOST_APPLIED: &str = "a change was made and its answer lost";
pub(super) const LOST_NEVER: &str = "a call was lost";
pub(super) const LOST_LATER: &str = "a change was tried after its answer was lost";
pub(super) const OUTAGE: &str = "an outage began";
pub(super) const OUT: &str = "a call fell into an outage";
pub(super) const STALE: &str = "a view was one of the past";
pub(super) const HIDDEN: &str = "a view hid a node";
pub(super) const GHOST: &str = "a view showed a node that was gone";
pub(super) const WRONG_OWNER: &str = "a view showed a wrong owner";
pub(super) const REVOKED: &str = "a session was revoked";
pub(super) const EXPIRED: &str = "a session expired";
pub(super) const KEPT: &str = "a session went on after its time";
pub(super) const LIED: &str = "a claim was answered as done and was not";

/// The names of all troubles.
pub(super) const NAMES: [&str; 14] = [
    LATE,
    LOST_APPLIED,
    LOST_NEVER,
    LOST_LATER,
    OUTAGE,
    OUT,
    STALE,
    HIDDEN,
    GHOST,
    WRONG_OWNER,
    REVOKED,
    EXPIRED,
    KEPT,
    LIED,
];

/// What strikes a registry.
pub(super) type Troubles = crate::troubles::Troubles<FakeKnobs>;

/// Whether an answer is lost, and how.
pub(super) fn loss(troubles: &mut Troubles) -> Option<Loss> {
    let FakeKnobs { lost_applied, lost_never, lost_later, .. } = troubles.knobs;
    let losses = [(lost_applied, LOST_APPLIED), (lost_never, LOST_NEVER), (lost_later, LOST_LATER)];
    troubles.loss(losses)
}
