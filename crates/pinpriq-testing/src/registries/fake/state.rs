//! The registry in memory: the calls that are under way, and the time.
//!
//! Each call has a plan: when it is tried and when its caller is answered. The plan is made when
//! the call is started.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::troubles::Loss;

use super::records::Records;
use super::trouble::{self, FakeKnobs, Troubles};
use pinpriq_cluster::{Instance, RegistryAnswer, RegistryCall, View};

/// One process.
#[derive(Default)]
struct Mailbox {
    answers: VecDeque<RegistryAnswer>,
    /// What it has announced last.
    instance: Option<Instance>,
    /// When its last call is answered.
    busy_until: u64,
    out_until: u64,
}

struct Transaction {
    handle: u64,
    instance: Option<Instance>,
    call: RegistryCall,
    try_at: Option<u64>,
    answer_at: Option<u64>,
    /// Whether the answer is that the outcome is unknown.
    is_lost: bool,
    answer: Option<RegistryAnswer>,
}

impl Transaction {
    fn next_at(&self) -> Option<u64> {
        self.try_at.into_iter().chain(self.answer_at).min()
    }
}

/// The registry.
pub(super) struct State {
    pub(super) troubles: Troubles,
    records: Records,
    mailboxes: BTreeMap<u64, Mailbox>,
    cut: BTreeSet<u64>,
    in_flight: Vec<Transaction>,
    now: u64,
    /// How long a call takes that is lost.
    patience: u64,
    handles: u64,
}

impl State {
    pub(super) fn new(seed: u64, shards: u16, ttl: u64, knobs: FakeKnobs) -> Self {
        Self {
            troubles: Troubles::new(seed, knobs, trouble::NAMES),
            records: Records::new(shards, ttl),
            mailboxes: BTreeMap::new(),
            cut: BTreeSet::new(),
            in_flight: Vec::new(),
            now: 0,
            patience: ttl / 5,
            handles: 0,
        }
    }

    pub(super) fn open(&mut self) -> u64 {
        self.handles += 1;
        self.mailboxes.insert(self.handles, Mailbox::default());
        self.handles
    }

    /// Forgets the answers to a process. Its calls stay under way.
    pub(super) fn close(&mut self, handle: u64) {
        self.mailboxes.remove(&handle);
        self.cut.remove(&handle);
    }

    pub(super) fn cut(&mut self, handle: u64, is_cut: bool) {
        if is_cut {
            self.cut.insert(handle);
        } else {
            self.cut.remove(&handle);
        }
    }

    pub(super) fn drain(&mut self, name: &str, drains: bool) {
        self.records.drain(name, drains);
    }

    pub(super) fn save(&self) -> Records {
        self.records.clone()
    }

    /// Restores what was saved, or loses everything.
    pub(super) fn roll_back(&mut self, saved: Option<&Records>) {
        match saved {
            Some(saved) => self.records.restore(self.now, saved),
            None => self.records.wipe(),
        }
    }

    pub(super) fn truth(&self) -> View {
        self.records.truth()
    }

    pub(super) fn next_answer(&mut self, handle: u64) -> Option<RegistryAnswer> {
        self.mailboxes.get_mut(&handle).and_then(|mailbox| mailbox.answers.pop_front())
    }

    pub(super) fn next_at(&self) -> Option<u64> {
        self.in_flight.iter().filter_map(Transaction::next_at).min()
    }

    /// Starts a call, and decides what becomes of it.
    pub(super) fn start(&mut self, handle: u64, call: RegistryCall) {
        let (knobs, now) = (self.troubles.knobs, self.now);
        let Some(mailbox) = self.mailboxes.get_mut(&handle) else { return };
        if let RegistryCall::Announce(record) = &call {
            mailbox.instance = Some(record.instance);
        }
        let instance = mailbox.instance;
        let begin = mailbox.busy_until.max(now);
        if self.troubles.strikes(knobs.outage, trouble::OUTAGE) {
            mailbox.out_until = begin + self.troubles.dice.below(knobs.outage_ms);
        }
        let is_out = begin < mailbox.out_until || self.cut.contains(&handle);
        let loss = if is_out {
            self.troubles.count(trouble::OUT);
            Some(Loss::Never)
        } else {
            trouble::loss(&mut self.troubles)
        };
        let mut takes = 1 + self.troubles.dice.below(knobs.latency_ms);
        if loss.is_some() {
            takes = self.patience.max(1);
        } else if self.troubles.strikes(knobs.late, trouble::LATE) {
            takes += self.troubles.dice.below(knobs.late_ms);
        }
        let answer_at = begin + takes;
        let try_at = match loss {
            Some(Loss::Never) => None,
            Some(Loss::Later) => Some(answer_at + 1 + self.troubles.dice.below(knobs.late_ms)),
            Some(Loss::Applied) | None => Some(begin + self.troubles.dice.below(takes + 1)),
        };
        mailbox.busy_until = answer_at;
        self.in_flight.push(Transaction {
            handle,
            instance,
            call,
            try_at,
            answer_at: Some(answer_at),
            is_lost: loss.is_some(),
            answer: None,
        });
    }

    /// Lets everything happen that is due until a time, in order.
    pub(super) fn advance(&mut self, now: u64) {
        loop {
            let call = self.next_at();
            let end = self.records.next_end();
            let Some(next) = call.into_iter().chain(end).min().filter(|at| *at <= now) else {
                break;
            };
            self.now = self.now.max(next);
            self.records.expire(self.now, &mut self.troubles);
            self.step();
        }
        self.now = self.now.max(now);
    }

    /// Lets happen to calls what is due now.
    fn step(&mut self) {
        let is_due = |at: Option<u64>, now: u64| at.is_some_and(|at| at <= now);
        for transaction in &mut self.in_flight {
            if is_due(transaction.try_at, self.now) {
                transaction.try_at = None;
                let (instance, call) = (transaction.instance, &transaction.call);
                let answer = self.records.apply(self.now, instance, call, &mut self.troubles);
                transaction.answer = Some(answer);
            }
            if is_due(transaction.answer_at, self.now) {
                transaction.answer_at = None;
                let told = transaction.answer.take().filter(|_| !transaction.is_lost);
                let unknown = || RegistryAnswer::Unreachable("the answer is lost".to_owned());
                if let Some(mailbox) = self.mailboxes.get_mut(&transaction.handle) {
                    mailbox.answers.push_back(told.unwrap_or_else(unknown));
                }
            }
        }
        self.in_flight.retain(|transaction| transaction.next_at().is_some());
    }
}
