//! Takes over the queues of several shards, as `session::choosing` decides.
//!
//! Every lease of this kind is that of a guest, also in the shard that has the connection. At the
//! beanstalkd door, requests that name only a job are asked of all shards, as a guest; elsewhere
//! the engine knows that both numbers are those of one connection.

use std::rc::Rc;

use pinpriq_proto::command::{self, Command, Done, Reserve, Take, Wait};
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::limits::DONE_MAX;
use pinpriq_proto::reply::Output;
use pinpriq_proto::task::{ClientId, Receipt, RequestId};
use pinpriq_store::durable::Holds;

use super::Desk;
use crate::clients::about::{PART, SILENT};
use crate::clients::unsent::Unsent;
use crate::home::recovery::withdraw_wait;
use crate::home::route::ownerless;
use crate::host::seat::Undone;
use crate::host::shard::Shard;
use crate::letters::letter::{Commands, Errand, Piece};
use crate::session::Session;
use crate::session::choosing::{Choosing, Next, Share, Tasks, Wish, receipts_of};
use crate::session::log::{Asked, What};
use crate::sharding::Sharding;

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
        for Done { queue, receipt } in done {
            let share = share_at(&mut shares, sharding.shard_of(queue));
            share.done.push(((*queue).into(), *receipt));
        }
        let member = take.member.map(Box::from);
        let Take { count, selection, mode, wait, .. } = take;
        let wish = Wish::Tasks(Tasks { member, count, selection, mode });
        self.choose(request, (wish, shares), wait);
        true
    }

    fn choose(&self, request: RequestId, what: (Wish, Vec<Share>), wait: Wait) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        // Earlier replies come before this one in the outbox.
        shard.turn_if_begun();
        {
            let links = &mut *session.links.borrow_mut();
            links.blocked = true;
            links.lasting.manners = Some(self.seat.manners);
        }
        session.outbox.borrow_mut().keep_place(session.dialect.get());
        let mut choosing = Choosing::new(request, what, (wait, shard.now()));
        Asking { shard, session, client: self.seat.client }.act(&mut choosing, 0, Next::Look);
        session.choosing.replace((!choosing.is_over()).then_some(choosing));
    }
}

/// Returns the queues by their shards, which come in the order of their first queues.
pub(super) fn shares_of(queues: &[&[u8]], sharding: Sharding) -> Vec<Share> {
    let mut shares = Vec::new();
    for queue in queues {
        share_at(&mut shares, sharding.shard_of(queue)).queues.push((*queue).into());
    }
    shares
}

/// Returns the share of a shard. Adds it if there is none.
fn share_at(shares: &mut Vec<Share>, shard: usize) -> &mut Share {
    let at = shares.iter().position(|share| share.shard == shard);
    let at = at.unwrap_or_else(|| {
        shares.push(Share::of(shard));
        shares.len() - 1
    });
    &mut shares[at]
}

/// Takes replies of a shard to what was asked for the take of a client.
pub(crate) fn hear(
    shard: &Shard,
    session: &Session,
    (client, from): (ClientId, usize),
    pieces: Vec<Piece>,
) {
    let asking = Asking { shard, session, client };
    let known = &mut *session.choosing.borrow_mut();
    for piece in pieces {
        let Some(choosing) = known else { unreachable!("shard {from} was not asked") };
        let next = choosing.hear(from, piece, asking.may_wait());
        asking.act(choosing, from, next);
        let next = choosing.go_on(asking.may_wait());
        asking.act(choosing, from, next);
        if choosing.is_over() {
            *known = None;
        }
    }
}

/// Who asks shards for a client.
pub(super) struct Asking<'a> {
    pub(super) shard: &'a Shard,
    pub(super) session: &'a Session,
    pub(super) client: ClientId,
}

impl Asking<'_> {
    /// Whether the client may still be made to wait.
    fn may_wait(&self) -> bool {
        let links = self.session.links.borrow();
        links.lasting.ends.is_none() && !links.gives_up
    }

    /// Does what is next. `from` is the shard that was heard last.
    fn act(&self, choosing: &mut Choosing, from: usize, next: Next) {
        match next {
            Next::Hear => {}
            Next::Look => self.look(choosing),
            Next::Take(index) => self.take_from(choosing, from, index),
            Next::Add(output, holds, next) => self.add(choosing, from, (output, holds), next),
            Next::Complete => self.session.outbox.borrow_mut().complete(),
            Next::Withdraw(reply) => {
                self.withdraw();
                self.act(choosing, from, Next::Answer(None, reply, Holds::default()));
            }
            Next::Wait => self.wait(choosing),
            Next::Pop(index) => {
                let held = choosing.held().to_vec();
                let shares = &mut choosing.shares;
                self.note_taken_over(shares[index].shard);
                self.ask_share(&mut shares[index], &Command::Share(command::Share::Pop(&held)));
                self.end_waits(shares, Some(index));
            }
            Next::Answer(from, reply, holds) => {
                let (client, request) = (self.client, choosing.request);
                let output = Output::Reply { client, request, reply };
                let mut outbox = self.session.outbox.borrow_mut();
                outbox.answer(from, Some((output, holds)));
                drop(outbox);
                self.end_waits(&mut choosing.shares, None);
                if let Some((shard, held)) = choosing.take_held() {
                    self.give_back(shard, &held);
                }
            }
            Next::Lost => {
                self.withdraw();
                self.session.outbox.borrow_mut().answer(None, None);
                self.end_waits(&mut choosing.shares, None);
            }
            Next::GiveBack(output) => {
                self.note_taken_over(from);
                self.give_back(from, &receipts_of(&output));
            }
        }
    }

    /// Asks a shard for its tasks.
    fn take_from(&self, choosing: &mut Choosing, from: usize, index: usize) {
        let is_skipped = choosing.is_growing() && self.is_nowhere(choosing.shares[index].shard);
        if is_skipped {
            let next = choosing.fill();
            return self.act(choosing, from, next);
        }
        let count = choosing.lacks();
        let Choosing { shares, wish, .. } = choosing;
        let share = &mut shares[index];
        let queues = share.queues.clone();
        let names = &names_of(&queues)[..];
        self.ask_share(
            share,
            &match wish {
                Wish::Reserve => Command::Reserve(Reserve::new(names, Wait::No)),
                Wish::Tasks(tasks) => Command::Take(Take { count, ..take(tasks, names, Wait::No) }),
            },
        );
    }

    /// Adds tasks to the answer. The share at the index adds to it next, if any.
    fn add(
        &self,
        choosing: &mut Choosing,
        from: usize,
        (mut output, holds): (Output, Holds),
        next: Option<usize>,
    ) {
        if let Output::Reply { client, request, .. } = &mut output {
            (*client, *request) = (self.client, choosing.request);
        }
        {
            let mut outbox = self.session.outbox.borrow_mut();
            outbox.add_tasks(from, (output, holds), next.is_none());
        }
        if let Some(index) = next {
            self.note_taken_over(from);
            self.act(choosing, from, Next::Take(index));
        }
    }

    /// Asks every shard for its first task. Those that have no owner are passed over, unless they
    /// have something to acknowledge.
    fn look(&self, choosing: &mut Choosing) {
        choosing.begin();
        for index in 0..choosing.shares.len() {
            let Choosing { shares, wish, .. } = choosing;
            let share = &mut shares[index];
            if share.done.is_empty() && self.is_nowhere(share.shard) {
                let refusal = ownerless(share.shard);
                choosing.pass_over(refusal);
                continue;
            }
            let done = std::mem::take(&mut share.done);
            share.tells_done = !done.is_empty();
            let done: Vec<Done<'_>> =
                done.iter().map(|(queue, receipt)| Done { queue, receipt: *receipt }).collect();
            let queues = share.queues.clone();
            let names = &names_of(&queues)[..];
            self.ask_share(
                share,
                &match wish {
                    Wish::Reserve => Command::Head(names),
                    Wish::Tasks(tasks) => {
                        let take = take(tasks, names, Wait::No);
                        Command::Share(command::Share::Look { done: &done, take })
                    }
                },
            );
        }
        let next = choosing.go_on(self.may_wait());
        self.act(choosing, 0, next);
    }

    /// Waits in every shard.
    fn wait(&self, choosing: &mut Choosing) {
        let wait = choosing.wait(self.shard.now());
        let Choosing { shares, wish, .. } = choosing;
        let mut is_echo = false;
        for share in shares {
            let queues = share.queues.clone();
            let names = &names_of(&queues)[..];
            let command = match wish {
                Wish::Reserve => Command::Reserve(Reserve { queues: names, wait, is_echo }),
                Wish::Tasks(_) if names.is_empty() => continue,
                Wish::Tasks(tasks) => {
                    let take = take(tasks, names, wait);
                    Command::Share(command::Share::Wait { take, is_echo })
                }
            };
            self.ask_share(share, &command);
            is_echo = true;
        }
    }

    /// Ends the waits in the shards that have not answered, except for one of them.
    fn end_waits(&self, shares: &mut [Share], except: Option<usize>) {
        let Some(post) = self.shard.post() else {
            return;
        };
        for (index, share) in shares.iter_mut().enumerate() {
            if !share.owes || Some(index) == except {
                continue;
            }
            if self.is_nowhere(share.shard) {
                withdraw_wait(self.shard, self.session, share.shard);
                share.owes = false;
            } else {
                post.write_errand(share.shard, self.client, Errand::EndWaits);
            }
        }
    }

    /// Returns what a shard has handed over in vain, as if it had not reached the client.
    fn give_back(&self, to: usize, receipts: &[Receipt]) {
        if receipts.is_empty() || self.is_nowhere(to) {
            return;
        }
        self.write(to, SILENT, &Command::GiveBack(receipts));
    }

    /// Returns what shards have added to an answer that is not given.
    fn withdraw(&self) {
        let added = self.session.outbox.borrow_mut().withdraw();
        for (shard, Unsent { popped, leases, .. }) in added {
            self.give_back(shard, &leases);
            if !popped.is_empty() && !self.is_nowhere(shard) {
                self.write(shard, SILENT, &Command::PutBack(&popped));
            }
        }
    }

    /// Tells a shard that one of its outputs was dropped.
    fn note_taken_over(&self, shard: usize) {
        if let Some(post) = self.shard.post().filter(|_| !self.is_nowhere(shard)) {
            post.write_errand(shard, self.client, Errand::Sent(1));
        }
    }

    /// Whether a shard has no owner that is known.
    pub(super) fn is_nowhere(&self, shard: usize) -> bool {
        self.shard.is_nowhere(shard)
    }

    /// Asks a shard about its queues. Its reply is heard.
    fn ask_share(&self, share: &mut Share, command: &Command<'_>) {
        self.write(share.shard, PART, command);
        self.session.outbox.borrow_mut().await_choice(self.shard.places(), share.shard);
        share.owes = true;
    }

    /// Writes a command to a shard, and keeps it until it is done if the owner of the shard may
    /// change.
    pub(super) fn write(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let mut bytes = Vec::new();
        encode_command(command, &mut bytes);
        self.write_encoded(to, request, &bytes);
    }

    /// Does the same with a command that is encoded already.
    pub(super) fn write_encoded(&self, to: usize, request: RequestId, command: &[u8]) {
        let Some(post) = self.shard.post() else { return };
        let length = Commands::length(command.len());
        let links = &mut *self.session.links.borrow_mut();
        let manners = links.lasting.manners;
        let link = links.link(post.places(), to);
        link.under_way += length;
        if !self.is_nowhere(to) {
            if !link.open
                && let Some(manners) = manners
            {
                (link.open, link.account) = (true, None);
                post.write_errand(to, self.client, Errand::Open(manners));
            }
            let encode = |out: &mut Vec<u8>| out.extend_from_slice(command);
            post.write_command(to, self.client, request, encode);
        }
        if post.changes_owners() {
            let what = What::Command(request, command.to_vec());
            let asked = Asked::of(what, length, self.shard.clock().now());
            link.log.keep(Asked { is_owed: request != SILENT, ..asked });
        }
    }
}

/// Returns names as a command has them.
pub(super) fn names_of(queues: &[Rc<[u8]>]) -> Vec<&[u8]> {
    queues.iter().map(|queue| &**queue).collect()
}

/// Returns the take of one shard.
fn take<'n>(tasks: &'n Tasks, queues: &'n [&'n [u8]], wait: Wait) -> Take<'n> {
    let Tasks { ref member, count, selection, mode } = *tasks;
    Take { queues, member: member.as_deref(), count, wait, selection, mode }
}
