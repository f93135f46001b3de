//! Who blocks until the end of a task: blocked awaits and puts. Who blocks for tasks is in `serve`.

use pinpriq_proto::command::{QueueName, Wait};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId, StateKind, TaskId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{Awaited, PutUnique};

use super::{Answer, Model, id_fits};

/// A blocked await or put.
#[derive(Clone, Debug)]
pub(super) struct Awaiter {
    pub(super) turn: u64,
    pub(super) client: ClientId,
    request: RequestId,
    pub(super) number: u64,
    pub(super) until: Option<Timestamp>,
    put: Option<PutAwaited>,
}

/// What a put that may wait returns.
#[derive(Clone, Debug)]
pub(super) struct PutAwaited {
    pub(super) id: TaskId,
    /// For a unique task: whether it was a new one.
    pub(super) unique: Option<bool>,
}

impl PutAwaited {
    /// The reply, with the outcome if the put has waited.
    pub(super) fn reply(self, outcome: Option<Outcome>) -> Reply {
        let Self { id, unique } = self;
        match (unique, outcome) {
            (None, None) => Reply::Put(id),
            (None, Some(outcome)) => Reply::PutOutcome(id, outcome),
            (Some(new), outcome) => {
                let awaited = outcome.map_or(Awaited::No, Awaited::Known);
                Reply::PutUnique(PutUnique { id, new, awaited })
            }
        }
    }
}

impl Model {
    pub(super) fn wait_for(
        &mut self,
        client: ClientId,
        request: RequestId,
        queue: QueueName<'_>,
        id: &[u8],
        wait: Wait,
    ) -> Answer {
        id_fits(id)?;
        if let Wait::For(wait) = wait {
            self.span_fits(Some(wait), true)?;
        }
        let number = self.find(queue, id)?.ok_or(RefusalKind::NotFound)?;
        let kind = self.task(number).progress.state.kind();
        let until = match (kind, wait) {
            (StateKind::Zombie | StateKind::Done, _) => {
                return Ok(Some(Reply::Outcome(Outcome::Acked, Some(kind))));
            }
            (StateKind::Buried, _) => {
                return Ok(Some(Reply::Outcome(Outcome::Buried, Some(kind))));
            }
            (_, Wait::No | Wait::For(Span::ZERO)) => {
                return Ok(Some(Reply::Outcome(Outcome::Timeout, Some(kind))));
            }
            (_, Wait::For(span)) => Some(self.now.after(span)),
            (_, Wait::Forever) => None,
        };
        self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        self.add_awaiter(client, request, number, until, None);
        Ok(None)
    }

    pub(super) fn add_awaiter(
        &mut self,
        client: ClientId,
        request: RequestId,
        number: u64,
        until: Option<Timestamp>,
        put: Option<PutAwaited>,
    ) {
        let turn = self.draw();
        self.note_due(until);
        self.awaiters.push(Awaiter { turn, client, request, number, until, put });
    }

    /// Checks whether a client may have one more blocked request, which occupies this many bytes.
    pub(super) fn may_wait(&self, client: ClientId, bytes: u64) -> Result<(), RefusalKind> {
        let takers = self.takers.iter().filter(|taker| taker.client == client).count();
        let awaiters = self.awaiters.iter().filter(|awaiter| awaiter.client == client).count();
        let putters = self.putters.iter().filter(|putter| putter.client == client).count();
        if takers + awaiters + putters >= self.limits.waits_per_client_max {
            return Err(RefusalKind::Busy);
        }
        self.has_waiting_room(bytes)
    }

    /// Whether anybody awaits the end of a task.
    #[must_use]
    pub fn is_awaited(&self, number: u64) -> bool {
        self.awaiters.iter().any(|awaiter| awaiter.number == number)
    }

    pub(super) fn tell(&mut self, number: u64, outcome: Outcome, state: Option<StateKind>) {
        while let Some(at) = self.awaiters.iter().position(|known| known.number == number) {
            let awaiter = self.awaiters.remove(at);
            self.answer_awaiter(awaiter, outcome, state);
        }
    }

    pub(super) fn answer_awaiter(
        &mut self,
        awaiter: Awaiter,
        outcome: Outcome,
        state: Option<StateKind>,
    ) {
        let reply = match awaiter.put {
            Some(put) => put.reply(Some(outcome)),
            None => Reply::Outcome(outcome, state),
        };
        self.reply(awaiter.client, awaiter.request, reply);
    }
}
