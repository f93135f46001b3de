//! Deliveries that were not started, and how they come back.

use pinpriq_proto::command::{Held, HeldBy, QueueName, Selection, TakeMode};
use pinpriq_proto::reply::{Notice, Output, Refusal, Reply};
use pinpriq_proto::task::{ClientId, Lease, Receipt, State, TaskRecord};

use super::history::forget_open_attempt;
use super::serve::Subscription;
use super::time::is_of;
use super::{Answer, Model, Place};

impl Model {
    pub(super) fn start_task(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        receipt: Receipt,
    ) -> Answer {
        let number = self.hold(client, Held { queue, by: HeldBy::Receipt(receipt) })?;
        self.may_renew(number)?;
        let (now, was_unstarted) = (self.now, is_unstarted(self.task(number)));
        let Some(lease) = lease_mut(self.task_mut(number)) else { unreachable!("it is held") };
        start(lease);
        lease.deadline = lease.ttr.map_or(lease.deadline, |ttr| Some(now.after(ttr)));
        let deadline = lease.deadline;
        self.note_due(deadline);
        if was_unstarted {
            self.begin_attempt(number);
        }
        Ok(Some(Reply::Done))
    }

    pub(super) fn start_all(&mut self, queue: QueueName<'_>, receipts: &[Receipt]) -> Reply {
        let mut answers = Vec::new();
        for receipt in receipts {
            let answer = self.start_task(ClientId(0), queue, *receipt);
            answers.push(answer.map(drop).map_err(|kind| Refusal::new(kind, "")));
        }
        Reply::Acks(answers)
    }

    /// Makes these deliveries ones that can be called back.
    pub(super) fn deliver_unstarted(&mut self, tasks: &mut [TaskRecord]) {
        for task in tasks {
            for task in [self.task_mut(task.number), task] {
                if let Some(holder) = lease_mut(task).and_then(|lease| lease.holder.as_mut()) {
                    holder.is_unstarted = true;
                }
                forget_open_attempt(task);
            }
        }
    }

    /// Whether a place has a delivery that can be called back.
    pub(super) fn has_unstarted(&self, place: &Place) -> bool {
        self.homes.get(place).is_some_and(|home| home.tasks.values().any(is_unstarted))
    }

    /// The delivery that is to be called back for a more urgent task, and where it is. If there
    /// are several, the one that was made first.
    pub(super) fn next_to_recall(&self) -> Option<(Place, TaskRecord)> {
        if !self.hands_out(TakeMode::Lease { ttr: None }) {
            return None;
        }
        let homes = self
            .homes
            .iter()
            .filter(|(place, home)| !home.paused.output.is_on() && !self.has_ended(place));
        let due = homes.filter_map(|(place, home)| {
            let next = home.number_of(home.first(Selection::DEFAULT, self.now)?)?;
            let unstarted = home.tasks.values().filter(|task| is_unstarted(task));
            let last = unstarted.max_by_key(|task| {
                let number = home.number_of(task);
                (number.is_none(), number, task.progress.seq)
            })?;
            let is_behind = home.number_of(last).is_none_or(|number| number > next);
            is_behind.then(|| (place.clone(), last.clone()))
        });
        due.min_by_key(|(_, last)| last.receipt().map(|receipt| receipt.grant))
    }

    /// Calls back a delivery, and makes the next one in its stead.
    pub(super) fn exchange(&mut self, place: &Place, former: &TaskRecord) {
        let client = self.call_back(former);
        let of_client = |it: &&Subscription| it.client == client && it.place == *place;
        let subscription = self.subscriptions.iter().find(of_client).cloned();
        let next = self.homes[place].first(Selection::DEFAULT, self.now).map(|task| task.number);
        let (Some(subscription), Some(next)) = (subscription, next) else {
            unreachable!("there is a subscription, and a task for it")
        };
        let mode = subscription.mode;
        let is_held = mode == TakeMode::Pop && self.holders.contains(&client);
        let mut tasks = vec![self.hand_over(next, client, mode, is_held)];
        if subscription.recalls {
            self.deliver_unstarted(&mut tasks);
        }
        let popped = mode == TakeMode::Pop && !is_held;
        self.outputs.push(Output::Delivery { client, tasks, popped });
    }

    /// Calls back what a client has not started of these places, in the order of the puts.
    pub(super) fn call_back_from(&mut self, client: ClientId, places: &[Place]) {
        let own = self.unstarted_of(client);
        let own: Vec<TaskRecord> =
            own.into_iter().filter(|task| places.contains(&Place::of(task))).collect();
        for task in &own {
            self.call_back(task);
        }
        if !own.is_empty() {
            let former = self.credits.get(&client).copied().unwrap_or(0);
            let credit = former.saturating_add(u32::try_from(own.len()).unwrap_or(u32::MAX));
            self.permit(client, credit, self.holders.contains(&client));
        }
    }

    /// What a client has not started, in the order of the puts.
    pub(super) fn unstarted_of(&self, client: ClientId) -> Vec<TaskRecord> {
        let is_own = |task: &&TaskRecord| {
            is_unstarted(task) && lease(task).is_some_and(|lease| is_of(lease, client))
        };
        let own = self.tasks().filter(is_own).filter(|task| self.is_live(task.number));
        let mut own: Vec<TaskRecord> = own.cloned().collect();
        own.sort_by_key(|task| task.number);
        own
    }

    fn call_back(&mut self, task: &TaskRecord) -> ClientId {
        let client = lease(task).and_then(Lease::client);
        let (Some(client), Some(receipt)) = (client, task.receipt()) else {
            unreachable!("it was delivered")
        };
        let (queue, id) = (task.queue.clone(), task.id.clone());
        let notice = Notice { client, queue, id, receipt, cancelled: None };
        self.outputs.push(Output::Notice(Box::new(notice)));
        self.take_back(task.number);
        client
    }

    /// Makes a delivery undone.
    pub(super) fn take_back(&mut self, number: u64) {
        *self
            .happened
            .entry(("called back", self.task(number).progress.state.kind()))
            .or_default() += 1;
        let task = self.task(number).clone();
        self.task_mut(number).progress.attempts -= 1;
        if self.is_over(&task) {
            self.expire(number);
        } else {
            self.shift(number, State::Ready);
        }
        self.refund(&task);
    }
}

/// Whether a task was delivered and not started.
pub(super) fn is_unstarted(task: &TaskRecord) -> bool {
    lease(task).is_some_and(Lease::is_unstarted)
}

/// Makes a lease that of a task that was started.
pub(super) fn start(lease: &mut Lease) {
    if let Some(holder) = &mut lease.holder {
        holder.is_unstarted = false;
    }
}

pub(super) fn lease(task: &TaskRecord) -> Option<&Lease> {
    match &task.progress.state {
        State::Taken(lease) => Some(lease),
        _ => None,
    }
}

pub(super) fn lease_mut(task: &mut TaskRecord) -> Option<&mut Lease> {
    match &mut task.progress.state {
        State::Taken(lease) => Some(lease),
        _ => None,
    }
}
