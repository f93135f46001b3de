//! What can be done with a task that only its number names, and the take of one task by its id.
//!
//! A lane's tasks, finished ones and those in queues that cannot be tubes are not found by their
//! number. A task that another client holds can only be read.

use crate::engine::{Answered, Engine};
use crate::memory::packed::Unsaved;
use crate::memory::slots::Slot;
use crate::operations::arguments::{bad, check_id};
use crate::operations::held::be_buried;
use crate::operations::take::Want;
use crate::operations::within::{Within, not_permitted};
use crate::transition::{Answer, By, Operation, Standing, answer};
use pinpriq_proto::command::{Amendment, Assign, Deed, QueueName, TakeMode};
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::stats::Exit;
use pinpriq_proto::task::{ClientId, State};

impl Engine {
    /// Acts on the task of this number, in a queue that matches if names are given.
    pub(crate) fn numbered(
        &mut self,
        client: ClientId,
        number: u64,
        deed: Deed,
        names: Option<&Within<'_>>,
    ) -> Answered {
        if let Deed::Release { delay, .. } = deed {
            self.moment("the delay", delay)?;
        }
        let Some(slot) = self.find_numbered(number) else { return Err(no_task(number)) };
        let queue = &self.queues[self.tasks[slot].queue];
        if names.is_some_and(|names| !names.matches(&queue.name)) {
            return Err(not_permitted("the queue of that task"));
        }
        let standing = self.standing(slot, client);
        let by = By::Id;
        match deed {
            Deed::Read => {
                let record = self.tasks.record(slot, queue.names());
                Ok(Some(Reply::Task(Some(Box::new(record)))))
            }
            Deed::Take => {
                refused(Operation::TakeByNumber, standing, number)?;
                let want = Want::lease(client, TakeMode::Lease { ttr: None });
                let want = Want { is_tied: true, ..want };
                Ok(Some(self.take_this(slot, Operation::TakeByNumber, want)))
            }
            Deed::Delete => {
                let queue = self.tasks[slot].queue;
                if standing == Standing::TakenElsewhere {
                    return Err(no_task(number));
                }
                self.queues[queue].deletes += 1;
                if standing == Standing::TakenHere {
                    self.finish(slot, Operation::Ack(by), None);
                } else {
                    self.leave(slot, Operation::Kill, Exit::Killed);
                }
                Ok(Some(Reply::Done))
            }
            Deed::Release { priority, delay } => {
                refused(Operation::Release(by), standing, number)?;
                let priority = Assign::To(Some(priority));
                let amendment = Amendment { priority, ..Amendment::default() };
                self.check_return(slot, &amendment, None)?;
                Ok(Some(self.release_task((slot, by), delay, &amendment, false)))
            }
            Deed::Bury { priority } => {
                refused(Operation::Bury(by), standing, number)?;
                if self.leave_cancelled(slot, Operation::Bury(by)) {
                    return Ok(Some(Reply::Done));
                }
                let burial = self.issued.bury(self.now);
                self.shift(slot, Operation::Bury(by), Unsaved::Progress, |task| {
                    task.set_reason(None);
                    task.set_priority(Some(priority));
                    be_buried(task, burial)
                });
                Ok(Some(Reply::Done))
            }
            Deed::Touch => {
                if standing != Standing::TakenHere {
                    return Err(no_task(number));
                }
                self.check_not_cancelled(slot)?;
                self.move_deadline(slot, None)
            }
            Deed::Kick => {
                refused(Operation::Kick, standing, number)?;
                self.kick_one(slot);
                Ok(Some(Reply::Done))
            }
        }
    }

    fn find_numbered(&mut self, number: u64) -> Option<Slot> {
        let slot = self.live_by_now(number)?;
        let task = &self.tasks[slot];
        let queue = &self.queues[task.queue];
        let is_there = !task.kind().is_finished() && queue.is_tube;
        is_there.then_some(slot)
    }

    /// Takes one task by its id, past everything that holds it back. It pays for it like any take,
    /// since what is not delivered or costs less is paid back.
    pub(crate) fn take_one(
        &mut self,
        client: ClientId,
        queue: QueueName<'_>,
        id: &[u8],
        mode: TakeMode,
    ) -> Answered {
        check_id(id)?;
        if mode == TakeMode::Pop {
            return Err(bad("a task is taken by its id under a lease, and not popped".to_owned()));
        }
        self.check_ttr(mode)?;
        let none = Reply::Tasks { tasks: Vec::new(), popped: false };
        let Some(place) = self.find_queue(queue)? else { return Ok(Some(none)) };
        self.note_life(place);
        let Some(slot) = self.find_task(queue, id)? else { return Ok(Some(none)) };
        let operation = Operation::TakeById;
        if answer(operation, self.standing(slot, client)) == Answer::Nothing {
            return Ok(Some(none));
        }
        self.pay_rates(slot, self.tasks[slot].queue);
        Ok(Some(self.take_this(slot, operation, Want::lease(client, mode))))
    }

    /// Moves a task from R, W or B to T.
    fn take_this(&mut self, slot: Slot, operation: Operation, want: Want) -> Reply {
        let task = &self.tasks[slot];
        let (queue, attempts) = (task.queue, task.attempts().saturating_add(1));
        let lease = self.new_lease(slot, queue, want);
        if self.has_turns(queue) {
            self.charge_turn(slot);
        }
        self.shift_only(slot, operation, Unsaved::Grant, |task| {
            task.set_attempts(attempts);
            State::Taken(lease)
        });
        self.begin_attempt(slot, queue);
        self.count_taken(queue);
        let task = self.tasks.record(slot, self.queues[queue].names());
        Reply::Tasks { tasks: vec![task], popped: false }
    }

    /// Ends the leases that depend on the connection of a client, as if their tasks had never
    /// reached it. Who waits gets each task before the next one is ready.
    pub(crate) fn let_leases_go(&mut self, client: ClientId) -> Reply {
        let known = self.consumers.clients.get(&client);
        let plain = known.map(|known| known.leases.clone()).unwrap_or_default();
        let unstarted = known.map(|known| known.unstarted.clone()).unwrap_or_default();
        let mut count = 0;
        for (_, number) in unstarted {
            if let Some(slot) = self.live(number) {
                self.take_back(slot);
                count += 1;
            }
        }
        let held = plain.into_iter().chain(self.tied_in_order(client));
        for number in held.collect::<Vec<_>>() {
            if let Some(slot) = self.live(number) {
                self.end_lease(slot, Operation::HolderGone);
                self.serve();
                count += 1;
            }
        }
        Reply::Count(count)
    }
}

/// Refuses what the table does not allow for a task of this standing.
fn refused(operation: Operation, standing: Standing, number: u64) -> Result<(), Refusal> {
    match answer(operation, standing) {
        Answer::Moves(_) => Ok(()),
        _ => Err(no_task(number)),
    }
}

/// The refusal of a number under which this client finds nothing that it could do this with.
fn no_task(number: u64) -> Refusal {
    let sentence = format!("there is no task {number} in any tube that this could be done with");
    Refusal::new(RefusalKind::NotFound, sentence)
}
