//! The engine in memory: all logs, the calls that are under way, and the steps of time.
//!
//! Each call becomes a transaction with a plan: at which step it is tried, whether it is tried
//! again, and at which step its caller is answered. The plan is made when the call is started.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use crate::troubles::Loss;

use super::shard::{ENTRY_OVERHEAD, Shard};
use super::trouble::{self, Change, FakeKnobs, Troubles};
use pinpriq_store::ledger::interface::{
    Answer, Appended, Call, ENTRY_BYTES_MAX, Resolved, Status, Tenure, Term, Trimmed, Unreachable,
    Writer,
};

/// The writer that seizes a log when [`FakeKnobs::raced`](super::FakeKnobs::raced) strikes.
pub const FOREIGN: Writer = Writer(u128::MAX);

/// Who has started a call.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) ledger: u64,
    pub(super) shard: u16,
    pub(super) writer: Writer,
}

/// A call that is under way, or a change that comes after its answer.
struct Transaction {
    caller: Caller,
    call: Call,
    bar: u64,
    try_at: Option<u64>,
    again_at: Option<u64>,
    answer_at: Option<u64>,
    /// Whether the answer is that the outcome is unknown.
    lost: bool,
    raced: bool,
    /// Whether an append finds no room, a read tells less, or a trim removes a part.
    hampered: bool,
    answer: Option<Answer>,
}

/// The engine.
pub(super) struct State {
    pub(super) troubles: Troubles,
    pub(super) shards: BTreeMap<u16, Shard>,
    pub(super) cut: BTreeSet<Writer>,
    mailboxes: BTreeMap<u64, VecDeque<Answer>>,
    in_flight: Vec<Transaction>,
    now: u64,
    ledgers: u64,
}

/// The kind of a call that changes something.
const fn change(call: &Call) -> Option<Change> {
    match call {
        Call::Seize { .. } => Some(Change::Seize),
        Call::Append { .. } => Some(Change::Append),
        Call::Resolve { .. } => Some(Change::Resolve),
        Call::Trim { .. } => Some(Change::Trim),
        Call::Read { .. } | Call::Status => None,
    }
}

/// The tenure that a call needs.
const fn tenure(call: &Call) -> Option<Tenure> {
    match call {
        Call::Append { tenure, .. } | Call::Resolve { tenure, .. } | Call::Trim { tenure, .. } => {
            Some(*tenure)
        }
        Call::Seize { .. } | Call::Read { .. } | Call::Status => None,
    }
}

/// The answer to a call of which nothing is known.
fn unknown(call: &Call, why: &str) -> Answer {
    let unreachable = Unreachable { why: why.to_owned() };
    match call {
        Call::Seize { .. } => Answer::Seized(Err(unreachable)),
        Call::Append { .. } => Answer::Appended(Appended::Unknown),
        Call::Resolve { .. } => Answer::Resolved(Resolved::Unknown),
        Call::Read { .. } => Answer::Read(Err(unreachable)),
        Call::Trim { .. } => Answer::Trimmed(Trimmed::Unknown),
        Call::Status => Answer::Status(Err(unreachable)),
    }
}

/// Whether the conditions of a change were true.
const fn was_made(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Appended(Appended::Done)
            | Answer::Resolved(Resolved::Committed | Resolved::Absent)
            | Answer::Trimmed(Trimmed::Done | Trimmed::Unknown)
    )
}

impl State {
    pub(super) fn new(seed: u64, knobs: FakeKnobs) -> Self {
        Self {
            troubles: Troubles::new(seed, knobs, trouble::names()),
            shards: BTreeMap::new(),
            cut: BTreeSet::new(),
            mailboxes: BTreeMap::new(),
            in_flight: Vec::new(),
            now: 0,
            ledgers: 0,
        }
    }

    /// Opens a place for the answers to a ledger, and returns its number.
    pub(super) fn open_mailbox(&mut self) -> u64 {
        self.ledgers += 1;
        self.mailboxes.insert(self.ledgers, VecDeque::new());
        self.ledgers
    }

    /// Forgets the answers to a ledger. Its changes stay under way.
    pub(super) fn close_mailbox(&mut self, ledger: u64) {
        self.mailboxes.remove(&ledger);
    }

    pub(super) fn next_answer(&mut self, ledger: u64) -> Option<Answer> {
        self.mailboxes.get_mut(&ledger).and_then(VecDeque::pop_front)
    }

    pub(super) fn has_answer(&self, ledger: u64) -> bool {
        self.mailboxes.get(&ledger).is_some_and(|answers| !answers.is_empty())
    }

    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Starts a call, and decides what becomes of it.
    pub(super) fn start(&mut self, caller: Caller, call: Call, bar: u64) {
        let knobs = self.troubles.knobs;
        let change = change(&call);
        let loss = change.and_then(|change| trouble::loss(&mut self.troubles, change));
        let soon = self.now + 1;
        let mut answer_at = soon;
        if loss.is_some() || self.troubles.strikes(knobs.late, trouble::LATE) {
            answer_at += 1 + self.troubles.dice.below(knobs.steps_max);
        }
        let try_at = match loss {
            Some(Loss::Never) => None,
            Some(Loss::Later) => Some(answer_at + self.long_delay()),
            Some(Loss::Applied) | None => {
                Some(soon + self.troubles.dice.below(answer_at - soon + 1))
            }
        };
        let repeats = change.is_some_and(|change| change != Change::Seize);
        let again = repeats && self.troubles.dice.chance(knobs.twice);
        let again_at = try_at.filter(|_| again).map(|at| at + self.long_delay());
        let is_lost = loss.is_some()
            || match &call {
                Call::Read { .. } => {
                    self.troubles.strikes(knobs.read_unreachable, trouble::READ_UNREACHABLE)
                }
                Call::Status => {
                    self.troubles.strikes(knobs.status_unreachable, trouble::STATUS_UNREACHABLE)
                }
                _ => false,
            };
        let hampered = match &call {
            Call::Append { .. } => self.troubles.dice.chance(knobs.full),
            Call::Read { .. } => self.troubles.dice.chance(knobs.read_short),
            Call::Trim { .. } => self.troubles.dice.chance(knobs.trim_part),
            _ => false,
        };
        self.in_flight.push(Transaction {
            caller,
            bar,
            try_at,
            again_at,
            answer_at: Some(answer_at),
            lost: is_lost,
            raced: self.troubles.dice.chance(knobs.raced),
            hampered,
            answer: None,
            call,
        });
    }

    fn long_delay(&mut self) -> u64 {
        let spread = self.troubles.knobs.steps_max.saturating_mul(4);
        1 + self.troubles.dice.below(spread)
    }

    /// Lets one step of time pass.
    pub(super) fn step(&mut self) {
        self.now += 1;
        let now = Some(self.now);
        let mut in_flight = mem::take(&mut self.in_flight);
        for transaction in &mut in_flight {
            if transaction.try_at == now {
                transaction.try_at = None;
                self.try_first(transaction);
            }
            if transaction.again_at == now {
                transaction.again_at = None;
                self.troubles.count(trouble::TWICE);
                self.apply(transaction);
            }
            if transaction.answer_at == now {
                transaction.answer_at = None;
                self.answer(transaction);
            }
        }
        in_flight.retain(|it| it.try_at.or(it.again_at).or(it.answer_at).is_some());
        self.in_flight = in_flight;
    }

    /// Tries a change for the first time, unless its writer is cut off.
    fn try_first(&mut self, transaction: &mut Transaction) {
        let caller = transaction.caller;
        // What was answered already is on its way, and can no longer be cut off.
        let is_stray = transaction.answer_at.is_none();
        if !is_stray && self.cut.contains(&caller.writer) {
            transaction.again_at = None;
            transaction.lost = true;
            return;
        }
        let shard = self.shards.entry(caller.shard).or_insert_with(Shard::new);
        let owner = tenure(&transaction.call);
        if transaction.raced && owner.is_some() && owner == shard.tenure() {
            shard.seize(Term(0), FOREIGN);
            self.troubles.count(trouble::RACED);
        }
        let answer = self.apply(transaction);
        if !was_made(&answer) {
            // What was refused is refused for good: its caller may know it.
            transaction.again_at = None;
        }
        if is_stray && matches!(transaction.call, Call::Append { .. }) {
            let made = answer == Answer::Appended(Appended::Done);
            self.troubles.count(if made { trouble::STRAY_MADE } else { trouble::STRAY_STOPPED });
        }
        transaction.answer = Some(answer);
    }

    fn answer(&mut self, transaction: &mut Transaction) {
        let is_cut = self.cut.contains(&transaction.caller.writer);
        if is_cut {
            self.troubles.count(trouble::CUT);
        }
        let told = transaction.answer.take().filter(|_| !is_cut && !transaction.lost);
        let why = if is_cut { "the writer is cut off" } else { "the answer is lost" };
        let answer = told.unwrap_or_else(|| unknown(&transaction.call, why));
        if let Some(mailbox) = self.mailboxes.get_mut(&transaction.caller.ledger) {
            mailbox.push_back(answer);
        }
    }

    /// Makes a change if its conditions hold, and tells what became of it.
    fn apply(&mut self, transaction: &Transaction) -> Answer {
        let used = self.bytes_used();
        let knobs = self.troubles.knobs;
        let (caller, bar) = (transaction.caller, transaction.bar);
        let shard = self.shards.entry(caller.shard).or_insert_with(Shard::new);
        match &transaction.call {
            Call::Seize { at_least } => {
                let seized = shard.seize(*at_least, caller.writer);
                Answer::Seized(
                    seized.ok_or_else(|| Unreachable { why: "no term is left".to_owned() }),
                )
            }
            Call::Append { bytes, .. } if bytes.len() > ENTRY_BYTES_MAX => {
                Answer::Appended(Appended::TooLarge)
            }
            Call::Append { tenure, seq, bytes } => {
                let needed = ENTRY_OVERHEAD + bytes.len() as u64;
                let has_room = used.saturating_add(needed) <= knobs.bytes_max;
                Answer::Appended(if !shard.fits(*tenure, bar, *seq) {
                    Appended::Fenced
                } else if transaction.hampered || !has_room {
                    self.troubles.count(if has_room {
                        trouble::FULL
                    } else {
                        trouble::FULL_INDEED
                    });
                    Appended::Full
                } else {
                    shard.append(*tenure, bar, *seq, bytes);
                    Appended::Done
                })
            }
            Call::Resolve { tenure, seq } => Answer::Resolved(shard.resolve(*tenure, bar, *seq)),
            Call::Read { from, bytes } => {
                let mut told = shard.read(*from, *bytes);
                if transaction.hampered && told.len() > 1 {
                    told.truncate(1 + self.troubles.dice.index(told.len() - 1));
                    self.troubles.count(trouble::READ_SHORT);
                }
                Answer::Read(Ok(told))
            }
            Call::Trim { tenure, .. } if shard.tenure() != Some(*tenure) => {
                Answer::Trimmed(Trimmed::Fenced)
            }
            Call::Trim { before, .. } => {
                let count = shard.count_before(*before);
                let part = transaction.hampered && count > 0;
                let removed = if part { self.troubles.dice.index(count) } else { count };
                shard.trim(removed);
                if part {
                    self.troubles.count(trouble::TRIM_PART);
                }
                Answer::Trimmed(if part { Trimmed::Unknown } else { Trimmed::Done })
            }
            Call::Status => {
                Answer::Status(Ok(Status { bytes_used: used, bytes_max: knobs.bytes_max }))
            }
        }
    }

    fn bytes_used(&self) -> u64 {
        self.shards.values().map(|shard| shard.weight).sum()
    }
}
