//! Requests that wait until a task is finished, and the end of all waits.

use crate::engine::{Answered, Engine};
use crate::memory::consumers::{Awaiter, AwaiterId, Ended, PutAwaited, TakerId, with_result};
use crate::memory::deadlines::Due;
use crate::memory::putters::PutterId;
use crate::operations::find::not_found;
use crate::transition::{Answer, Operation, Standing, answer};
use pinpriq_proto::command::{QueueName, Wait};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, Reply};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Timestamp;

impl Engine {
    /// Blocks until a task is finished, or replies at once with how it ended.
    pub(crate) fn wait_for(
        &mut self,
        client: ClientId,
        request: RequestId,
        (queue, id): (QueueName<'_>, &[u8]),
        wait: Wait,
        wants_result: bool,
    ) -> Answered {
        crate::operations::arguments::check_id(id)?;
        if let Wait::For(span) = wait {
            self.moment("the wait", span)?;
        }
        let slot = self.find_task(queue, id)?;
        let standing = slot.map_or(Standing::Absent, |slot| self.standing(slot, client));
        let Some(slot) = slot else {
            let (_, ending) = self.ending_of(queue, id).ok_or_else(|| not_found(queue, id))?;
            let reply = Reply::Outcome(ending.outcome, None);
            return Ok(Some(with_result(reply, wants_result, None)));
        };
        let task = &self.tasks[slot];
        let tell = |outcome| {
            let reply = Reply::Outcome(outcome, Some(task.kind()));
            Ok(Some(with_result(reply, wants_result, task.result().cloned())))
        };
        match answer(Operation::Await, standing) {
            Answer::Tells(outcome) => tell(outcome),
            Answer::Blocks => {
                let until = match wait {
                    Wait::For(span) if !span.is_zero() => Some(self.now.after(span)),
                    Wait::No | Wait::For(_) => return tell(Outcome::Timeout),
                    Wait::Forever => None,
                };
                self.check_waits(client, WAIT_OVERHEAD_BYTES)?;
                let number = self.tasks[slot].number();
                self.add_awaiter(Awaiter {
                    client,
                    request,
                    number,
                    until,
                    put: None,
                    wants_result,
                });
                Ok(None)
            }
            other => unreachable!("an await is answered {other:?}"),
        }
    }

    /// Delays the reply of a put until its task is finished.
    pub(crate) fn await_put(
        &mut self,
        client: ClientId,
        request: RequestId,
        number: u64,
        put: PutAwaited,
        (wait, wants_result): (Wait, bool),
    ) {
        let until = match wait {
            Wait::No => Some(self.now),
            Wait::For(span) => Some(self.now.after(span)),
            Wait::Forever => None,
        };
        if until == Some(self.now) {
            let reply = with_result(put.reply(Outcome::Timeout), wants_result, None);
            self.reply(client, request, reply);
            return;
        }
        self.add_awaiter(Awaiter { client, request, number, until, put: Some(put), wants_result });
    }

    pub(crate) fn answer_awaiter(&mut self, awaiter: Awaiter, ended: &Ended) {
        if let Some(batch) = &ended.batch {
            let reply = Reply::BatchAwaited(batch.clone());
            return self.reply(awaiter.client, awaiter.request, reply);
        }
        let Ended { outcome, state, ref result, .. } = *ended;
        let wants_result = awaiter.wants_result;
        let reply = match awaiter.put {
            Some(put) => put.reply(outcome),
            None => Reply::Outcome(outcome, state),
        };
        self.reply(
            awaiter.client,
            awaiter.request,
            with_result(reply, wants_result, result.clone()),
        );
    }

    /// Removes an awaiter without a reply.
    pub(crate) fn remove_awaiter(&mut self, id: AwaiterId) {
        if let Some(awaiter) = self.consumers.remove_awaiter(id)
            && let Some(at) = awaiter.until
        {
            self.deadlines.remove(at, Due::Awaiter(id));
        }
    }

    pub(crate) fn time_out_taker(&mut self, id: TakerId) {
        if let Some(taker) = self.remove_taker(id) {
            let popped = taker.pops();
            let reply = Reply::Tasks { tasks: Vec::new(), popped };
            self.reply(taker.client, taker.request, reply);
        }
    }

    /// Handles a taker whose moment has come.
    pub(crate) fn fire_taker(&mut self, id: TakerId) {
        let reserve = self.consumers.takers.get(&id).and_then(|taker| taker.standing.reserve);
        match reserve {
            Some(patience) => self.fire_reserve(id, patience),
            None => self.time_out_taker(id),
        }
    }

    pub(crate) fn time_out_awaiter(&mut self, id: AwaiterId) {
        let Some(awaiter) = self.consumers.remove_awaiter(id) else { return };
        let state = self.live(awaiter.number).map(|slot| self.tasks[slot].kind());
        // If there is no task, the queue was emptied, and this awaiter has not been notified yet.
        let outcome = if state.is_some() { Outcome::Timeout } else { Outcome::Killed };
        let batch = self.batches.one(awaiter.number);
        let batch = batch.map(|batch| Box::new(batch.shown()));
        self.answer_awaiter(awaiter, &Ended { outcome, state, result: None, batch });
    }

    /// Replies to every blocked request of a client as if its time were up.
    pub(crate) fn time_out_client(&mut self, client: ClientId) {
        let Some(known) = self.consumers.clients.get(&client) else { return };
        let takers: Vec<TakerId> = known.takers.iter().copied().collect();
        let awaiters: Vec<AwaiterId> = known.awaiters.iter().copied().collect();
        let putters: Vec<PutterId> = known.putters.iter().copied().collect();
        for taker in takers {
            self.time_out_taker(taker);
        }
        for putter in putters {
            self.time_out_putter(putter);
        }
        for id in awaiters {
            let until: Option<Timestamp> = self.consumers.awaiters.get(&id).and_then(|a| a.until);
            if let Some(at) = until {
                self.deadlines.remove(at, Due::Awaiter(id));
            }
            self.time_out_awaiter(id);
        }
    }

    pub(crate) fn add_awaiter(&mut self, awaiter: Awaiter) {
        let id = AwaiterId(self.consumers.draw().0);
        if let Some(at) = awaiter.until {
            self.deadlines.insert(at, Due::Awaiter(id));
        }
        self.consumers.watchers += 1;
        self.consumers.bytes += WAIT_OVERHEAD_BYTES;
        self.consumers.client(awaiter.client).awaiters.insert(id);
        self.consumers.awaited.insert((awaiter.number, id));
        self.consumers.awaiters.insert(id, awaiter);
    }
}
