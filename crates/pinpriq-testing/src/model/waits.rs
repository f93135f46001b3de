//! Who blocks until the end of a task: blocked awaits and puts. Who blocks for tasks is in `serve`.

use pinpriq_proto::command::{QueueName, Wait};
use pinpriq_proto::limits::WAIT_OVERHEAD_BYTES;
use pinpriq_proto::reply::{Outcome, RefusalKind, Reply};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, StateKind, TaskId};
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
    wants_result: bool,
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
        (client, request): (ClientId, RequestId),
        (queue, id): (QueueName<'_>, &[u8]),
        wait: Wait,
        wants_result: bool,
    ) -> Answer {
        id_fits(id)?;
        if let Wait::For(wait) = wait {
            self.span_fits(Some(wait), true)?;
        }
        let Some(number) = self.find(queue, id)? else {
            let (_, ending) = self.ending_of(queue, id).ok_or(RefusalKind::NotFound)?;
            let reply = Reply::Outcome(ending.outcome, None);
            return Ok(Some(with_result(reply, wants_result, None)));
        };
        let progress = &self.task(number).progress;
        let kind = progress.state.kind();
        let tell = |outcome| {
            let reply = Reply::Outcome(outcome, Some(kind));
            Ok(Some(with_result(reply, wants_result, progress.result().cloned())))
        };
        let until = match (kind, wait) {
            (StateKind::Zombie | StateKind::Done, _) => {
                return tell(Outcome::Acked);
            }
            (StateKind::Buried, _) => return tell(Outcome::Buried),
            (_, Wait::No | Wait::For(Span::ZERO)) => return tell(Outcome::Timeout),
            (_, Wait::For(span)) => Some(self.now.after(span)),
            (_, Wait::Forever) => None,
        };
        self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        self.add_awaiter((client, request), number, until, None, wants_result);
        Ok(None)
    }

    pub(super) fn add_awaiter(
        &mut self,
        (client, request): (ClientId, RequestId),
        number: u64,
        until: Option<Timestamp>,
        put: Option<PutAwaited>,
        wants_result: bool,
    ) {
        let turn = self.draw();
        self.note_due(until);
        self.awaiters.push(Awaiter { turn, client, request, number, until, put, wants_result });
    }

    /// Checks whether a client may have one more blocked request, which occupies this many bytes.
    pub(super) fn may_wait(&self, client: ClientId, bytes: u64) -> Result<(), RefusalKind> {
        let takers = self.takers.iter().filter(|taker| taker.client == client).count();
        let awaiters = self.awaiters.iter().filter(|awaiter| awaiter.client == client).count();
        let of_batches = self.batch_awaiters.iter().filter(|it| it.client == client).count();
        let putters = self.putters.iter().filter(|putter| putter.client == client).count();
        if takers + awaiters + of_batches + putters >= self.limits.waits_per_client_max {
            return Err(RefusalKind::Busy);
        }
        self.has_waiting_room(bytes)
    }

    /// Whether anybody awaits the end of a task.
    #[must_use]
    pub fn is_awaited(&self, number: u64) -> bool {
        self.awaiters.iter().any(|awaiter| awaiter.number == number)
    }

    pub(super) fn tell(
        &mut self,
        number: u64,
        outcome: Outcome,
        state: Option<StateKind>,
        result: Option<&Bytes>,
    ) {
        while let Some(at) = self.awaiters.iter().position(|known| known.number == number) {
            let awaiter = self.awaiters.remove(at);
            self.answer_awaiter(awaiter, outcome, state, result.cloned());
        }
    }

    pub(super) fn answer_awaiter(
        &mut self,
        awaiter: Awaiter,
        outcome: Outcome,
        state: Option<StateKind>,
        result: Option<Bytes>,
    ) {
        let wants_result = awaiter.wants_result;
        let reply = match awaiter.put {
            Some(put) => put.reply(Some(outcome)),
            None => Reply::Outcome(outcome, state),
        };
        let reply = with_result(reply, wants_result, result);
        self.reply(awaiter.client, awaiter.request, reply);
    }
}

/// The reply, with the result if that is wanted.
pub(super) fn with_result(reply: Reply, is_wanted: bool, result: Option<Bytes>) -> Reply {
    if is_wanted { Reply::WithResult { reply: Box::new(reply), result } } else { reply }
}
