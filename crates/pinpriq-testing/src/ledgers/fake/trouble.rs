//! What may go wrong with the engine in memory, how often, and how often it has.
//!
//! It only decides. What then happens to a log is in `shard.rs` and `state.rs`.

use crate::troubles::Loss;

/// How often each kind of trouble strikes, in percent of the calls that it can strike.
///
/// The default is [`FakeKnobs::PERFECT`]. All fields are free to change, also in the middle of a
/// run: see [`FakeEngine::set_knobs`](super::FakeEngine::set_knobs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FakeKnobs {
    /// The answer comes some steps later. The change is made at any step until then.
    pub late: u64,
    /// The change is made and the answer is lost.
    pub lost_applied: u64,
    /// The change is never made and the answer is lost.
    pub lost_never: u64,
    /// The answer is lost, and the change is tried only after the caller knows that.
    pub lost_later: u64,
    /// A change that was made is tried again some steps later. Not for [`Seize`], which has a
    /// condition of its own against it.
    ///
    /// [`Seize`]: pinpriq_store::ledger::Call::Seize
    pub twice: u64,
    /// An append is refused as [`Full`](pinpriq_store::ledger::Appended::Full).
    pub full: u64,
    /// A foreign writer seizes the log just before a change of its owner.
    pub raced: u64,
    /// A read is not answered.
    pub read_unreachable: u64,
    /// A read tells fewer entries than were asked for, but one if there is one.
    pub read_short: u64,
    /// A trim removes only a part of the entries, and its outcome is unknown.
    pub trim_part: u64,
    /// The status is not answered.
    pub status_unreachable: u64,
    /// The most steps by which an answer is late. What is tried after its answer was lost comes up
    /// to four times as late.
    pub steps_max: u64,
    /// The most bytes that all logs may have. Each entry counts with its bytes and with
    /// [`ENTRY_OVERHEAD`](super::ENTRY_OVERHEAD).
    pub bytes_max: u64,
    /// What [`Ledger::target_bytes`](pinpriq_store::ledger::Ledger::target_bytes) tells.
    pub target_bytes: usize,
}

impl FakeKnobs {
    /// No trouble at all, room without end, and each answer with the next step.
    pub const PERFECT: Self = Self {
        late: 0,
        lost_applied: 0,
        lost_never: 0,
        lost_later: 0,
        twice: 0,
        full: 0,
        raced: 0,
        read_unreachable: 0,
        read_short: 0,
        trim_part: 0,
        status_unreachable: 0,
        steps_max: 8,
        bytes_max: u64::MAX,
        target_bytes: 64 << 10,
    };

    /// A little of each trouble.
    pub const ROUGH: Self = Self {
        late: 30,
        lost_applied: 4,
        lost_never: 4,
        lost_later: 8,
        twice: 5,
        full: 2,
        raced: 1,
        read_unreachable: 5,
        read_short: 20,
        trim_part: 10,
        status_unreachable: 10,
        ..Self::PERFECT
    };
}

impl Default for FakeKnobs {
    fn default() -> Self {
        Self::PERFECT
    }
}

pub(super) const LATE: &str = "an answer was late";
pub(super) const TWICE: &str = "a change was tried twice";
pub(super) const STRAY_MADE: &str = "an append was made after its answer was lost";
pub(super) const STRAY_STOPPED: &str = "an append came after its answer was lost, and was stopped";
pub(super) const FULL: &str = "an append was refused as full, with room";
pub(super) const FULL_INDEED: &str = "an append was refused as full, without room";
pub(super) const RACED: &str = "a foreign writer seized the log before a change";
pub(super) const READ_UNREACHABLE: &str = "a read was not answered";
pub(super) const READ_SHORT: &str = "a read told fewer entries";
pub(super) const TRIM_PART: &str = "a trim removed a part";
pub(super) const STATUS_UNREACHABLE: &str = "the status was not answered";
pub(super) const CUT: &str = "a call of a writer that was cut off";
pub(super) const ROLLED_BACK: &str = "the newest entries were lost";

const OTHERS: [&str; 13] = [
    LATE,
    TWICE,
    STRAY_MADE,
    STRAY_STOPPED,
    FULL,
    FULL_INDEED,
    RACED,
    READ_UNREACHABLE,
    READ_SHORT,
    TRIM_PART,
    STATUS_UNREACHABLE,
    CUT,
    ROLLED_BACK,
];

/// The kinds of calls that change something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Seize,
    Append,
    Resolve,
    Trim,
}

const LOSSES: [[&str; 3]; 4] = [
    ["a seize was made and lost", "a seize was lost", "a seize was lost and came later"],
    ["an append was made and lost", "an append was lost", "an append was lost and came later"],
    ["a resolve was made and lost", "a resolve was lost", "a resolve was lost and came later"],
    ["a trim was made and lost", "a trim was lost", "a trim was lost and came later"],
];

/// What strikes an engine.
pub(super) type Troubles = crate::troubles::Troubles<FakeKnobs>;

/// The names of all troubles.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LOSSES.into_iter().flatten().chain(OTHERS)
}

/// Whether the answer to a change is lost, and how.
pub(super) fn loss(troubles: &mut Troubles, change: Change) -> Option<Loss> {
    let FakeKnobs { lost_applied, lost_never, lost_later, .. } = troubles.knobs;
    let [applied, never, later] = LOSSES[change as usize];
    troubles.loss([(lost_applied, applied), (lost_never, never), (lost_later, later)])
}
