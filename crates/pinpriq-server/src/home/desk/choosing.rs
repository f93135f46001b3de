//! Takes over the queues of several shards: see `session::choosing`.
//!
//! Every lease of this kind is that of a guest, also in the shard that has the connection. At the
//! beanstalkd door, requests that name only a job are asked of all shards, as a guest; elsewhere
//! the engine knows that both numbers are those of one connection.

use pinpriq_proto::command::{self, Command, Done, Reserve, Take, Wait};
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::limits::DONE_MAX;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::task::{Receipt, RequestId};
use pinpriq_store::durable::Holds;

use super::Desk;
use crate::clients::about::SILENT;
use crate::clients::unsent::{Unsent, leases_in};
use crate::home::asking::Asking;
use crate::home::recovery::withdraw_wait;
use crate::home::route::ownerless;
use crate::host::seat::Undone;
use crate::letters::letter::{Errand, Piece};
use crate::session::choosing::{
    Choosing, Heard, KeptDone, Share, Stage, Tasks, Wish, share_at, shares_of, urgency,
};

impl Desk {
    /// Asks the shards of some tubes for their most urgent job.
    pub(super) fn reserve(
        &mut self,
        request: RequestId,
        reserve: &Reserve<'_>,
    ) -> Result<(), Undone> {
        let mut shares = shares_of(reserve.queues, self.seat.shard.sharding());
        if let [share] = &shares[..] {
            self.be_placed(share.shard)?;
        }
        // There, a job that is held may be about to be over.
        let lenders: Vec<usize> = self.seat.session.links.borrow().lenders().collect();
        for shard in lenders {
            share_at(&mut shares, shard);
        }
        if let [share] = &shares[..] {
            self.forward(share.shard, request, &Command::Reserve(*reserve));
        } else {
            self.choose(request, (Wish::Reserve, shares), reserve.wait);
        }
        // What comes next is carried out in this shard at once.
        self.seat.session.links.borrow_mut().blocked = true;
        Ok(())
    }

    /// Takes from the shards of several queues, if the command is a take and they are several.
    /// Returns whether that is so.
    pub(super) fn take_from_several(&self, request: RequestId, command: &Command<'_>) -> bool {
        let (done, take): (&[Done<'_>], _) = match *command {
            Command::Take(take) if take.queues.len() > 1 => (&[], take),
            Command::TakeDone { done, take } => (done, take),
            _ => return false,
        };
        let sharding = self.seat.shard.sharding();
        let Some(first) = take.queues.first().map(|queue| sharding.shard_of(queue)) else {
            return false;
        };
        let queues = take.queues.iter().copied();
        let mut all = done.iter().map(|done| done.queue).chain(queues);
        // A client of a cluster learns that these queues are on different nodes.
        if self.redirects || all.all(|queue| sharding.shard_of(queue) == first) {
            return false;
        }
        let most = self.seat.limits.subscriptions_max;
        if done.len() > DONE_MAX || take.queues.len() > most {
            // One shard refuses it.
            self.forward(first, request, command);
            return true;
        }
        let mut shares = shares_of(take.queues, sharding);
        for done in done {
            let share = share_at(&mut shares, sharding.shard_of(done.queue));
            share.done.push(KeptDone::of(done));
        }
        let member = take.member.map(Box::from);
        let Take { count, selection, mode, wait, .. } = take;
        let wish = Wish::Tasks(Tasks { member, count, selection, mode });
        self.choose(request, (wish, shares), wait);
        true
    }

    fn choose(&self, request: RequestId, (wish, shares): (Wish, Vec<Share>), wait: Wait) {
        let asking = self.asking();
        // Earlier replies come before this one in the outbox.
        asking.shard.turn_if_begun();
        asking.session.links.borrow_mut().blocked = true;
        asking.session.outbox.borrow_mut().keep_place(asking.session.dialect.get());
        let until = match wait {
            Wait::For(span) => Some(asking.shard.now().after(span)),
            Wait::No | Wait::Forever => None,
        };
        let (held, ownerless, gathered) = (None, None, (0, 0));
        let (stage, is_checked) = (Stage::Checking, false);
        let mut choosing = Choosing {
            request,
            wish,
            shares,
            held,
            wait,
            until,
            is_checked,
            ownerless,
            gathered,
            stage,
        };
        if choosing.needs_check() {
            asking.check(&mut choosing);
        } else {
            asking.look(&mut choosing);
        }
        let is_over = choosing.is_answered() && !choosing.is_owed();
        asking.session.choosing.replace((!is_over).then_some(choosing));
    }
}

/// Takes replies of a shard to what was asked for the take of a client.
pub(super) fn hear(asking: Asking<'_>, from: usize, pieces: Vec<Piece>) {
    let known = &mut *asking.session.choosing.borrow_mut();
    for piece in pieces {
        let Some(choosing) = known else { unreachable!("shard {from} was not asked") };
        asking.hear(choosing, from, piece);
        asking.advance(choosing);
        if choosing.is_answered() && !choosing.is_owed() {
            *known = None;
        }
    }
}

/// Acknowledges the tasks of a client that has gone before its take was checked. It hears of no
/// refusal any more, and what it has done is done.
pub(super) fn leave(asking: Asking<'_>) {
    let known = &mut *asking.session.choosing.borrow_mut();
    let Some(Choosing { shares, wish: Wish::Tasks(tasks), stage: Stage::Checking, .. }) = known
    else {
        return;
    };
    for share in shares.iter_mut().filter(|share| !share.done.is_empty()) {
        let done = std::mem::take(&mut share.done);
        let look = command::Share::Look { done: &named(&done), take: take(tasks, &[], Wait::No) };
        asking.write(share.shard, SILENT, |out| encode_command(&Command::Share(look), out));
    }
}

impl Asking<'_> {
    /// Takes the reply of a shard.
    fn hear(&self, choosing: &mut Choosing, from: usize, piece: Piece) {
        let Some(index) = choosing.shares.iter().position(|share| share.shard == from) else {
            unreachable!("shard {from} was not asked")
        };
        let share = &mut choosing.shares[index];
        share.owes = false;
        let tells_done = std::mem::take(&mut share.tells_done);
        match (choosing.heard(piece), choosing.stage) {
            (Heard::Tasks(output, holds), Stage::Taking) => {
                self.add(choosing, from, (output, holds));
            }
            (Heard::Tasks(output, _), Stage::Waiting) if choosing.holds_first() => {
                self.pop(choosing, index, leases_in(&output).collect());
            }
            (Heard::Tasks(output, holds), Stage::Waiting) => {
                self.hand_on(choosing, from, (output, holds));
            }
            (Heard::Tasks(output, holds), Stage::Popping(at)) if at == index => {
                choosing.held = None;
                self.hand_on(choosing, from, (output, holds));
            }
            (Heard::Tasks(output, _), _) => {
                self.note_taken_over(from);
                self.give_back(from, &leases_in(&output).collect::<Vec<_>>());
            }
            (_, Stage::Answered) | (Heard::Reply(_), Stage::Settling) => {}
            (Heard::Lost, _) => {
                choosing.stage = Stage::Answered;
                self.withdraw();
                self.session.outbox.borrow_mut().answer(None, None);
                self.end_waits(choosing, None);
            }
            (Heard::Reply(_), Stage::Popping(at)) if at != index => {}
            (
                Heard::Reply(Reply::Refused(refusal)),
                Stage::Checking | Stage::Looking { .. } | Stage::Waiting,
            ) if refusal.kind == RefusalKind::TryAgain && !tells_done => {
                choosing.ownerless = Some(refusal);
                self.hear_nothing(choosing);
            }
            (Heard::Reply(Reply::Refused(refusal)), Stage::Taking)
                if choosing.is_growing() && choosing.may_lose(&refusal) =>
            {
                self.withdraw();
                self.refuse(choosing, Reply::Refused(refusal));
            }
            (Heard::Reply(_), Stage::Taking) if choosing.is_growing() => {
                let next = choosing.next_share();
                self.fill(choosing, next);
            }
            (Heard::Reply(reply @ Reply::Refused(_)), _)
            | (Heard::Reply(reply @ Reply::DeadlineSoon), Stage::Waiting) => {
                self.refuse(choosing, reply);
            }
            (Heard::Reply(_), Stage::Checking) => {}
            (Heard::Reply(reply), Stage::Looking { is_soon }) => {
                let is_soon = is_soon || matches!(reply, Reply::DeadlineSoon);
                choosing.stage = Stage::Looking { is_soon };
                if let Reply::Shown(tasks) = reply {
                    let selection = choosing.selection();
                    let head = tasks.first().map(|task| urgency(selection, task));
                    choosing.shares[index].head = head;
                }
            }
            (Heard::Reply(_), Stage::Waiting) => self.hear_nothing(choosing),
            // Another client has taken it meanwhile, or its lease is over.
            (Heard::Reply(_), Stage::Taking | Stage::Popping(_)) => {
                choosing.held = None;
                choosing.stage = Stage::Settling;
            }
        }
    }

    /// Does what is next if no shard owes a reply.
    fn advance(&self, choosing: &mut Choosing) {
        match choosing.stage {
            _ if choosing.is_owed() => {}
            Stage::Looking { is_soon } => self.look_around(choosing, is_soon),
            Stage::Checking if !choosing.is_checked => self.acknowledge(choosing),
            Stage::Checking | Stage::Settling => self.look(choosing),
            Stage::Taking | Stage::Waiting | Stage::Popping(_) | Stage::Answered => {}
        }
    }

    /// Asks the shards of all queues whether they refuse, which is to be heard before a shard
    /// acknowledges anything.
    fn check(&self, choosing: &mut Choosing) {
        let Choosing { shares, wish: Wish::Tasks(tasks), .. } = choosing else { return };
        let asked = shares.iter_mut().filter(|share| !share.queues.is_empty());
        for share in asked.filter(|share| !self.shard.is_nowhere(share.shard)) {
            let names = &share.names()[..];
            let look = command::Share::Look { done: &[], take: take(tasks, names, Wait::No) };
            self.ask_command(share.shard, &Command::Share(look));
            share.owes = true;
        }
        self.advance(choosing);
    }

    /// Acknowledges what is done, now that no shard refuses the rest.
    fn acknowledge(&self, choosing: &mut Choosing) {
        choosing.is_checked = true;
        let Choosing { shares, wish: Wish::Tasks(tasks), .. } = choosing else { return };
        for share in shares.iter_mut().filter(|share| !share.done.is_empty()) {
            let done = std::mem::take(&mut share.done);
            let done = &named(&done);
            let look = command::Share::Look { done, take: take(tasks, &[], Wait::No) };
            self.ask_command(share.shard, &Command::Share(look));
            (share.tells_done, share.owes) = (true, true);
        }
    }

    /// Asks every shard for its first task. Those that have no owner are passed over, unless they
    /// have something to acknowledge.
    fn look(&self, choosing: &mut Choosing) {
        choosing.stage = Stage::Looking { is_soon: false };
        let Choosing { shares, wish, ownerless: refusal, .. } = choosing;
        *refusal = None;
        for share in shares {
            share.head = None;
            if share.done.is_empty() && self.shard.is_nowhere(share.shard) {
                *refusal = Some(ownerless(share.shard));
                continue;
            }
            let done = std::mem::take(&mut share.done);
            share.tells_done = !done.is_empty();
            let done = named(&done);
            let names = &share.names()[..];
            let command = match wish {
                Wish::Reserve => Command::Head(names),
                Wish::Tasks(tasks) => {
                    let take = take(tasks, names, Wait::No);
                    Command::Share(command::Share::Look { done: &done, take })
                }
            };
            self.ask_command(share.shard, &command);
            share.owes = true;
        }
        self.advance(choosing);
    }

    /// Decides once all shards have told their first task.
    fn look_around(&self, choosing: &mut Choosing, is_soon: bool) {
        choosing.gathered = (0, 0);
        if let Some(index) = choosing.next_share() {
            choosing.stage = Stage::Taking;
            return self.take_from(choosing, index);
        }
        if is_soon {
            return self.refuse(choosing, Reply::DeadlineSoon);
        }
        let may_wait = {
            let links = self.session.links.borrow();
            links.lasting.ends.is_none() && !links.gives_up
        };
        if choosing.wait.blocks() && may_wait {
            return self.wait(choosing);
        }
        self.answer_nothing(choosing);
    }

    /// Asks a shard for its tasks.
    fn take_from(&self, choosing: &mut Choosing, index: usize) {
        let count = choosing.lacks();
        let Choosing { shares, wish, .. } = choosing;
        let share = &mut shares[index];
        let names = &share.names()[..];
        let command = match wish {
            Wish::Reserve => Command::Reserve(Reserve::new(names, Wait::No)),
            Wish::Tasks(tasks) => Command::Take(Take { count, ..take(tasks, names, Wait::No) }),
        };
        self.ask_command(share.shard, &command);
        share.owes = true;
    }

    /// Adds tasks to the answer, and asks the next shard if it lacks some.
    fn add(&self, choosing: &mut Choosing, from: usize, (mut output, holds): (Output, Holds)) {
        let was_growing = choosing.is_growing();
        choosing.count(&output);
        let is_take = matches!(choosing.wish, Wish::Tasks(_));
        // An answer has payloads on the disk of one shard at most.
        let is_enough = !is_take || choosing.lacks() == 0 || !holds.is_empty();
        let next = choosing.next_share().filter(|_| !is_enough);
        if next.is_none() && !was_growing {
            return self.hand_on(choosing, from, (output, holds));
        }
        if let Output::Reply { client, request, .. } = &mut output {
            (*client, *request) = (self.client, choosing.request);
        }
        self.session.outbox.borrow_mut().add_tasks(from, (output, holds), next.is_none());
        if next.is_some() {
            self.note_taken_over(from);
            self.fill(choosing, next);
        } else {
            choosing.stage = Stage::Answered;
        }
    }

    /// Asks this share or a later one to add to the answer, which is complete if there is none. One
    /// without an owner is passed over.
    fn fill(&self, choosing: &mut Choosing, mut next: Option<usize>) {
        while let Some(index) = next {
            if !self.shard.is_nowhere(choosing.shares[index].shard) {
                return self.take_from(choosing, index);
            }
            next = choosing.next_share();
        }
        choosing.stage = Stage::Answered;
        self.session.outbox.borrow_mut().complete();
    }

    /// Waits in every shard, and for their next owners too.
    fn wait(&self, choosing: &mut Choosing) {
        (choosing.stage, choosing.ownerless) = (Stage::Waiting, None);
        let now = self.shard.now();
        let wait = choosing.until.map_or(choosing.wait, |until| Wait::For(until.since(now)));
        let Choosing { shares, wish, .. } = choosing;
        let mut is_echo = false;
        for share in shares {
            let names = &share.names()[..];
            let command = match wish {
                Wish::Reserve => Command::Reserve(Reserve { queues: names, wait, is_echo }),
                Wish::Tasks(_) if names.is_empty() => continue,
                Wish::Tasks(tasks) => {
                    let take = take(tasks, names, wait);
                    Command::Share(command::Share::Wait { take, is_echo })
                }
            };
            self.ask_command(share.shard, &command);
            share.owes = true;
            is_echo = true;
        }
    }

    /// Goes on after a shard that has nothing.
    fn hear_nothing(&self, choosing: &mut Choosing) {
        if choosing.stage == Stage::Waiting && !choosing.is_owed() {
            self.answer_nothing(choosing);
        }
    }

    /// Has a shard pop what it holds, and ends the waits elsewhere.
    fn pop(&self, choosing: &mut Choosing, index: usize, held: Vec<Receipt>) {
        choosing.stage = Stage::Popping(index);
        let share = &mut choosing.shares[index];
        self.note_taken_over(share.shard);
        self.ask_command(share.shard, &Command::Share(command::Share::Pop(&held)));
        share.owes = true;
        choosing.held = Some((share.shard, held));
        self.end_waits(choosing, Some(index));
    }

    /// Answers that there is nothing, as far as that is known.
    fn answer_nothing(&self, choosing: &mut Choosing) {
        let popped = choosing.holds_first();
        let nothing = || Reply::Tasks { tasks: Vec::new(), popped };
        let reply = choosing.ownerless.take().map_or_else(nothing, Reply::Refused);
        self.refuse(choosing, reply);
    }

    /// Answers with what a shard has handed over.
    fn hand_on(&self, choosing: &mut Choosing, from: usize, (output, holds): (Output, Holds)) {
        let Output::Reply { reply, .. } = output else {
            unreachable!("shard {from} was asked for no deliveries")
        };
        self.answer(choosing, Some(from), (reply, holds));
    }

    /// Answers without tasks.
    fn refuse(&self, choosing: &mut Choosing, reply: Reply) {
        self.answer(choosing, None, (reply, Holds::default()));
    }

    fn answer(&self, choosing: &mut Choosing, from: Option<usize>, answer: (Reply, Holds)) {
        choosing.stage = Stage::Answered;
        let (client, request, (reply, holds)) = (self.client, choosing.request, answer);
        let output = Output::Reply { client, request, reply };
        self.session.outbox.borrow_mut().answer(from, Some((output, holds)));
        self.end_waits(choosing, None);
        if let Some((shard, held)) = choosing.held.take() {
            self.give_back(shard, &held);
        }
    }

    /// Ends the waits in the shards that have not answered, except for one of them.
    fn end_waits(&self, choosing: &mut Choosing, except: Option<usize>) {
        for (index, share) in choosing.shares.iter_mut().enumerate() {
            if !share.owes || Some(index) == except {
                continue;
            }
            if self.shard.is_nowhere(share.shard) {
                withdraw_wait(*self, share.shard);
                share.owes = false;
            } else {
                self.errand(share.shard, Errand::EndWaits);
            }
        }
    }

    /// Returns what a shard has handed over in vain, as if it had not reached the client.
    fn give_back(&self, to: usize, receipts: &[Receipt]) {
        if !receipts.is_empty() && !self.shard.is_nowhere(to) {
            let command = Command::GiveBack(receipts);
            self.write(to, SILENT, |out| encode_command(&command, out));
        }
    }

    /// Returns what shards have added to an answer that is not given.
    fn withdraw(&self) {
        let added = self.session.outbox.borrow_mut().withdraw();
        for (shard, Unsent { popped, leases, .. }) in added {
            self.give_back(shard, &leases);
            if !popped.is_empty() && !self.shard.is_nowhere(shard) {
                self.write(shard, SILENT, |out| encode_command(&Command::PutBack(&popped), out));
            }
        }
    }

    /// Tells a shard that one of its outputs was dropped.
    fn note_taken_over(&self, shard: usize) {
        if !self.shard.is_nowhere(shard) {
            self.errand(shard, Errand::Sent(1));
        }
    }

    fn ask_command(&self, to: usize, command: &Command<'_>) {
        self.ask(to, |out| encode_command(command, out));
    }
}

/// Returns what is acknowledged as a command has it.
fn named(done: &[KeptDone]) -> Vec<Done<'_>> {
    done.iter().map(KeptDone::done).collect()
}

/// Returns the take of one shard.
fn take<'n>(tasks: &'n Tasks, queues: &'n [&'n [u8]], wait: Wait) -> Take<'n> {
    let Tasks { ref member, count, selection, mode } = *tasks;
    Take { queues, member: member.as_deref(), count, wait, selection, mode }
}
