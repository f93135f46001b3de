//! Transactions: a copy of the whole model is put back if a step is refused.

use pinpriq_proto::command::Step;
use pinpriq_proto::limits::TRANSACTION_STEPS_MAX;
use pinpriq_proto::reply::{Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId};

use super::{Answer, Model, Place, fits};

/// What waits for the end of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct PutOff {
    /// The queues that may be unneeded.
    pub(super) tidy: Vec<Place>,
    /// The tasks that live only for this instant.
    pub(super) instants: Vec<u64>,
}

impl Model {
    pub(super) fn transact(
        &mut self,
        client: ClientId,
        request: RequestId,
        steps: &[Step<'_>],
    ) -> Answer {
        fits(steps.len() <= TRANSACTION_STEPS_MAX)?;
        let (before, said) = (self.clone(), self.outputs.len());
        self.put_off = Some(PutOff::default());
        let mut replies = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            match self.step(client, request, step) {
                Ok(reply) => replies.push(reply),
                Err(kind) => {
                    *self = before;
                    let sentence = format!("{} {}", index + 1, kind.word());
                    let refusal = Refusal::new(RefusalKind::ExecAbort, sentence);
                    return Ok(Some(Reply::Refused(refusal)));
                }
            }
        }
        // Who awaits hears of it at the end, and who is to stop at once.
        self.outputs[said..].sort_by_key(|output| !matches!(output, Output::Notice(_)));
        let put_off = self.put_off.take().unwrap_or_default();
        for place in put_off.tidy {
            self.tidy(&place);
        }
        self.reply(client, request, Reply::Transaction(replies));
        for number in put_off.instants {
            self.end_instant(number);
        }
        Ok(None)
    }

    fn step(
        &mut self,
        client: ClientId,
        request: RequestId,
        step: &Step<'_>,
    ) -> Result<Reply, RefusalKind> {
        let command = match step {
            Step::Nothing => return Ok(Reply::Done),
            Step::Bad(_) => return Err(RefusalKind::BadArgument),
            Step::Command(command) => command,
        };
        fits(command.is_step())?;
        let answer = self.answer(client, request, command)?;
        let reply = answer.unwrap_or_else(|| self.take_back_reply(client, request));
        if let Reply::Acks(acks) = &reply {
            acks.iter().try_for_each(|ack| ack.as_ref().map(drop).map_err(|it| it.kind))?;
        }
        Ok(reply)
    }

    /// A put replies by itself, and may then be told to others, who await the task.
    fn take_back_reply(&mut self, client: ClientId, request: RequestId) -> Reply {
        let is_own = |output: &Output| {
            matches!(output, Output::Reply { client: whose, request: to, .. }
                if (*whose, *to) == (client, request))
        };
        match self.outputs.iter().rposition(is_own).map(|at| self.outputs.remove(at)) {
            Some(Output::Reply { reply, .. }) => reply,
            other => unreachable!("no reply but {other:?}"),
        }
    }
}
