//! Answers to a guest while the engine under the cluster does not answer: what has not begun is
//! refused, so that its client can go on.
//!
//! What has begun waits for the engine, and what was asked after it waits as well, since replies
//! keep their order. Protocols that cannot tell refusals wait too. A command that may block is
//! refused when it has waited for that long.

use pinpriq_proto::command::Wait;
use pinpriq_proto::letters::decode_command;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_store::Position;

use super::{Guest, Phase};
use crate::clients::about::{MUTE, SILENT};
use crate::letters::letter::{Errand, Part, Question};
use crate::session::log::{Wanted, substitute, wait_of};

impl Guest {
    /// Whether nothing new may begin, because the engine under the cluster does not answer. The
    /// bell rings when that is over.
    pub(super) fn is_down(&self) -> bool {
        let shard = &self.seat.shard;
        shard.may_be_taken_over() && shard.failure().is_none() && shard.is_down()
    }

    /// Refuses what has not begun, as far as it may be refused by now.
    pub(super) fn refuse_while_down(&mut self) {
        let session = &self.seat.session;
        let is_owed = session.is_blocked() || !session.outbox.borrow().is_empty();
        let is_asking = matches!(self.phase, Phase::Open | Phase::Ending);
        if is_owed || !is_asking || !self.seat.manners.tells_refusals {
            return;
        }
        while self.refuse_next() {}
        // There is nothing else in the outbox.
        let pieces = self.hand_over();
        self.tell(pieces);
        self.look_again();
    }

    /// Has the bell ring again soon if anything that was asked has not begun, since it may have to
    /// be refused by then.
    pub(super) fn look_again(&self) {
        if !self.commands.is_empty() || !self.errands.is_empty() {
            self.seat.shard.keep_waiting();
        }
    }

    /// Refuses the next thing that was asked. Returns false if it must wait, or is nothing that can
    /// be refused.
    fn refuse_next(&mut self) -> bool {
        if let Some((request, bytes, length)) = self.commands.first() {
            let wait = decode_command(bytes, wait_of);
            let can_be_told = request != SILENT && request != MUTE;
            if !can_be_told || !self.has_waited(wait.ok().flatten()) {
                return false;
            }
            let session = &self.seat.session;
            let refusal = (Position::default(), Refusal::cluster_down());
            let about = (self.seat.client, request);
            session.outbox.borrow_mut().push_refusal(about, refusal, session.dialect.get());
            self.commands.pass(length);
            return true;
        }
        let is_question = matches!(self.errands.front(), Some(Errand::Ask(_)));
        if !is_question && !matches!(self.errands.front(), Some(Errand::Commands(_))) {
            return false;
        }
        match self.errands.pop_front() {
            Some(Errand::Commands(commands)) => {
                self.untold += commands.len();
                self.commands = commands;
            }
            Some(Errand::Ask(question)) => self.refuse_question(&question),
            _ => unreachable!("another errand was in front"),
        }
        true
    }

    fn refuse_question(&mut self, question: &Question) {
        let part = match question {
            Question::Command(commands) => {
                self.untold += commands.len();
                // Other shards do not wait for this one.
                let sentence = format!(
                    "the engine under the cluster does not answer for shard {}: other shards may \
                     have carried this out; send it again",
                    self.seat.shard.own()
                );
                Part::Reply(Reply::Refused(Refusal::new(RefusalKind::ClusterDown, sentence)))
            }
            Question::Inquiry(_) => substitute(Wanted::Facts, self.seat.shard.own()),
            Question::Delivered => Part::Delivered(self.delivered()),
        };
        self.seat.session.outbox.borrow_mut().push_part(part);
    }

    /// Whether the command in front has waited for as long as it may block.
    fn has_waited(&mut self, wait: Option<Wait>) -> bool {
        let now = self.seat.shard.now();
        let since = *self.kept_since.get_or_insert(now);
        let is_over = match wait {
            None | Some(Wait::No) => true,
            Some(Wait::For(span)) => now >= since.after(span),
            Some(Wait::Forever) => false,
        };
        if is_over {
            self.kept_since = None;
        }
        is_over
    }
}
