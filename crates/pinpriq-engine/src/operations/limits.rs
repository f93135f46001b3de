//! Limits that several queues use together: the commands on them, and what their queues tell them.
//!
//! A queue that uses one has a gate, which knows how many of its taken tasks its limits have
//! counted. A limit counts what is taken in all of its queues, also by takes that no limit refuses,
//! and every lease that a start finds. When a place is free again, the queues are served that have
//! held back a task meanwhile, and among their consumers the one that has been ready longest.

use crate::engine::{Answered, Engine};
use crate::memory::named_limits::{NamedLimit, Uses};
use crate::memory::slots::QueueSlot;
use crate::operations::admin::page_of_names;
use crate::operations::arguments::quoted;
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::named_limits::{
    LIMIT_QUEUES_MAX, LimitChange, LimitCommand, LimitRecord, check_limit_name, limit_bytes, used,
};
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::Settings;
use pinpriq_proto::task::StateKind;

impl Engine {
    pub(crate) fn keep_limits(&mut self, command: LimitCommand<'_>) -> Answered {
        let reply = match command {
            LimitCommand::Set { name, change } => self.set_limit(name, change)?,
            LimitCommand::Show(name) => {
                Reply::Limit(Box::new(self.existing_limit(name)?.shown(self.now)))
            }
            LimitCommand::List(NamesPage { prefix, count, after }) => {
                page_of_names(self.named_limits.names_after(prefix, after), count)
            }
            LimitCommand::Drop(name) => self.drop_limit(name)?,
        };
        Ok(Some(reply))
    }

    /// Makes a limit, or changes it. That holds at once for what comes; what is taken stays.
    fn set_limit(&mut self, name: &[u8], change: LimitChange) -> Result<Reply, Refusal> {
        check_limit_name(name)?;
        let known = self.named_limits.called(name);
        let former = known.map(|limit| (limit.record.number, limit.record.rules));
        let rules = change.applied_to(former.map(|(_, rules)| rules).unwrap_or_default());
        rules.check()?;
        if let Some(rate) = rules.rate {
            self.moment("RATE", rate.per)?;
        }
        let queues: Vec<QueueSlot> =
            known.into_iter().flat_map(|limit| &limit.queues).copied().collect();
        let number = match former {
            Some((_, former)) if former == rules => return Ok(Reply::Done),
            Some((number, _)) => number,
            None => {
                self.check_room(limit_bytes(name.len()))?;
                self.bytes += limit_bytes(name.len());
                self.issued.next()
            }
        };
        for queue in &queues {
            self.settle_limited(*queue);
        }
        let record = LimitRecord { number, name: name.into(), rules };
        self.report.add(Change::detail(record.clone()));
        let place = self.named_limits.set(record, None, self.now);
        self.report.give_up(place);
        for queue in queues {
            // Who waits for a token awaits it anew.
            self.arm_gate(queue, None);
            self.wake(queue);
        }
        Ok(Reply::Done)
    }

    fn existing_limit(&self, name: &[u8]) -> Result<&NamedLimit, Refusal> {
        self.named_limits.called(name).ok_or_else(|| no_limit(name))
    }

    fn drop_limit(&mut self, name: &[u8]) -> Result<Reply, Refusal> {
        let Some(limit) = self.named_limits.called(name) else { return Ok(Reply::Count(0)) };
        let number = limit.record.number;
        if let Some(user) = limit.queues.first() {
            let (name, queue) = (quoted(name), quoted(&self.queues[*user].name));
            let sentence = format!("the limit {name} is used by {queue}: set its USES first");
            return Err(Refusal::new(RefusalKind::WrongState, sentence));
        }
        if let Some(limit) = self.named_limits.remove(number) {
            self.bytes -= limit.record.bytes();
            self.report.give_up(limit.place);
            self.report.add(Change::DetailGone(DetailKind::Limit, number));
        }
        Ok(Reply::Count(1))
    }

    /// Refuses settings of a queue that name limits which are not there, or which too many queues
    /// use.
    pub(super) fn check_uses(
        &self,
        existing: Option<QueueSlot>,
        new: &Settings,
    ) -> Result<(), Refusal> {
        let Some(uses) = &new.uses else { return Ok(()) };
        for name in used(uses) {
            let limit = self.existing_limit(name)?;
            let is_counted = existing.is_some_and(|slot| limit.queues.contains(&slot));
            if !is_counted && limit.queues.len() >= LIMIT_QUEUES_MAX {
                let name = quoted(name);
                let sentence = format!("{LIMIT_QUEUES_MAX} queues use the limit {name} already");
                return Err(Refusal::new(RefusalKind::Busy, sentence));
            }
        }
        Ok(())
    }

    /// Lets the limits that a queue has used so far forget it.
    pub(crate) fn leave_limits(&mut self, slot: QueueSlot) {
        let Some(gate) = &mut self.queues[slot].gate else { return };
        let (uses, counted) = (std::mem::take(&mut gate.uses), std::mem::take(&mut gate.counted));
        for number in uses.numbers() {
            if let Some(limit) = self.named_limits.one_mut(number) {
                limit.recount(counted, 0, self.now);
                limit.queues.remove(&slot);
                limit.starved.remove(&slot);
            }
            self.serve_starved(number);
        }
    }

    /// Lets the limits know a queue that uses them from now on, as its gate says.
    pub(crate) fn join_limits(&mut self, slot: QueueSlot, uses: Uses) {
        for number in uses.numbers() {
            if let Some(limit) = self.named_limits.one_mut(number) {
                limit.queues.insert(slot);
            }
        }
        self.count_taken(slot);
    }

    /// Tells the limits of a queue how many of its tasks are taken.
    #[inline(never)]
    pub(crate) fn count_taken(&mut self, slot: QueueSlot) {
        let queue = &mut self.queues[slot];
        let taken = queue.counters.count(StateKind::Taken);
        let Some(gate) = queue.gate.as_mut().filter(|gate| !gate.uses.are_none()) else { return };
        let (uses, former) = (gate.uses, std::mem::replace(&mut gate.counted, taken));
        if former == taken {
            return;
        }
        for number in uses.numbers() {
            if let Some(limit) = self.named_limits.one_mut(number) {
                limit.recount(former, taken, self.now);
            }
            if taken < former {
                self.serve_starved(number);
            }
        }
    }

    /// Lets the consumers be served of queues that have held tasks back because of a limit, if it
    /// has room now. The one that has been ready longest comes first. Without a token, they await
    /// one from then on.
    pub(crate) fn serve_starved(&mut self, number: u64) {
        let limit = self.named_limits.one_mut(number).filter(|limit| limit.has_room());
        let Some(limit) = limit.filter(|limit| !limit.starved.is_empty()) else { return };
        for queue in std::mem::take(&mut limit.starved) {
            self.note_opened(queue, true);
            self.wake(queue);
        }
    }

    /// Notes that a queue holds back a task for which a consumer waits, with those of its limits
    /// that are not open.
    pub(crate) fn note_starved(&mut self, slot: QueueSlot) {
        let Some(gate) = &self.queues[slot].gate else { return };
        let (uses, now) = (gate.uses, self.now);
        for number in uses.numbers() {
            if let Some(limit) = self.named_limits.one_mut(number)
                && !limit.is_open(now)
            {
                limit.starved.insert(slot);
            }
        }
    }

    pub(crate) fn restore_limit(&mut self, record: LimitRecord, place: Option<Place>) {
        self.issued.raise(record.number);
        // After damage the store may have kept two of one name. The later one counts.
        let other = self.named_limits.called(&record.name).map(|it| it.record.number);
        let other = other.filter(|it| *it != record.number);
        let other = other.and_then(|other| self.named_limits.remove(other));
        self.report.give_up(other.and_then(|other| other.place));
        let former = self.named_limits.set(record, place, self.now);
        self.report.give_up(former);
    }

    /// Counts what restored limits occupy. Their buckets are full, unless another owner has not
    /// ended in order: what it has handed out last is not known.
    pub(crate) fn revive_limits(&mut self) {
        let bytes: u64 = self.named_limits.iter().map(|limit| limit.record.bytes()).sum();
        self.bytes += bytes;
        self.named_limits.begin(self.grace.is_some(), self.now);
    }
}

fn no_limit(name: &[u8]) -> Refusal {
    let sentence = format!("there is no limit {}", quoted(name));
    Refusal::new(RefusalKind::NotFound, sentence)
}
