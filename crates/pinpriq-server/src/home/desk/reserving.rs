//! Reserves from tubes of several shards, as `session::reserving` decides.
//!
//! On a server with several shards every lease of this kind is that of a guest, also in the shard
//! that has the connection. Requests that name only a job are asked of all shards, as a guest.

use pinpriq_engine::command::{Command, Reserve, Wait};
use pinpriq_engine::reply::{Output, Reply};
use pinpriq_engine::task::{ClientId, RequestId, TaskRecord};
use pinpriq_letters::encode_command;

use super::Desk;
use crate::host::seat::Undone;
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, Piece};
use crate::session::Session;
use crate::session::about::{PART, SILENT};
use crate::session::reserving::{Next, Reserving, Share};

impl Desk {
    /// Asks the shards of some tubes for their most urgent job.
    pub(super) fn reserve(
        &mut self,
        request: RequestId,
        reserve: &Reserve<'_>,
    ) -> Result<(), Undone> {
        let sharding = self.seat.shard.sharding();
        let mut shares: Vec<(usize, Vec<Box<[u8]>>)> = Vec::new();
        for tube in reserve.queues {
            let shard = sharding.shard_of(tube);
            match shares.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, tubes)) => tubes.push((*tube).into()),
                None => shares.push((shard, vec![(*tube).into()])),
            }
        }
        if let [(shard, _)] = shares[..] {
            self.be_placed(shard)?;
        }
        // There, a job that is held may be about to be over.
        let lenders: Vec<usize> = self.seat.session.links.borrow().lenders().collect();
        for shard in lenders {
            if !shares.iter().any(|(known, _)| *known == shard) {
                shares.push((shard, Vec::new()));
            }
        }
        if let [(shard, _)] = shares[..] {
            self.forward(shard, request, &Command::Reserve(*reserve));
        } else {
            self.reserve_from(request, shares, reserve.wait);
        }
        // What comes next is carried out in this shard at once.
        self.seat.session.links.borrow_mut().blocked = true;
        Ok(())
    }

    fn reserve_from(&self, request: RequestId, shares: Vec<(usize, Vec<Box<[u8]>>)>, wait: Wait) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        // Earlier replies come before this one in the outbox.
        shard.turn_if_begun();
        for (to, _) in &shares {
            self.open_link(*to);
        }
        let gap = session.outbox.borrow_mut().keep_place(session.dialect.get());
        let mut reserving = Reserving::new((request, gap), shares, (wait, shard.now()));
        Asking { shard, session, client: self.seat.client }.look(&mut reserving);
        session.reserving.replace(Some(reserving));
    }
}

/// Takes replies of a shard to what was asked for the reserve of a client.
pub(crate) fn hear(
    shard: &Shard,
    session: &Session,
    (client, from): (ClientId, usize),
    pieces: Vec<Piece>,
) {
    let asking = Asking { shard, session, client };
    let known = &mut *session.reserving.borrow_mut();
    for piece in pieces {
        let Some(reserving) = known else { unreachable!("nobody has asked shard {from}") };
        asking.hear(reserving, from, piece);
        if reserving.is_over() {
            *known = None;
        }
    }
}

/// Who asks shards for a client.
struct Asking<'a> {
    shard: &'a Shard,
    session: &'a Session,
    client: ClientId,
}

impl Asking<'_> {
    fn hear(&self, reserving: &mut Reserving, from: usize, piece: Piece) {
        let (ends, gives_up) = {
            let links = self.session.links.borrow();
            (links.lasting.ends, links.gives_up)
        };
        let may_wait = ends.is_none() && !gives_up;
        let next = reserving.hear(from, piece, may_wait);
        match next {
            Next::Hear => {}
            Next::Look => self.look(reserving),
            Next::Take(index) => {
                let share = &mut reserving.shares[index];
                self.ask_for(share, |names| Command::Reserve(Reserve::new(names, Wait::No)));
            }
            Next::Wait => self.wait(reserving),
            Next::Answer(from, reply, holds) => {
                let (client, request) = (self.client, reserving.request);
                let output = Output::Reply { client, request, reply };
                let mut outbox = self.session.outbox.borrow_mut();
                outbox.answer(reserving.gap, from, Some((output, holds)));
                self.end_waits(reserving);
            }
            Next::Lost => {
                self.session.outbox.borrow_mut().answer(reserving.gap, None, None);
                self.end_waits(reserving);
            }
            Next::GiveBack(output) => self.give_back(from, output),
        }
    }

    /// Asks every shard for its most urgent job.
    fn look(&self, reserving: &mut Reserving) {
        for share in &mut reserving.shares {
            self.ask_for(share, |names| Command::Head(names));
        }
    }

    /// Waits in every shard.
    fn wait(&self, reserving: &mut Reserving) {
        let wait = reserving.wait(self.shard.now());
        for (index, share) in reserving.shares.iter_mut().enumerate() {
            let is_echo = index > 0;
            self.ask_for(share, |queues| Command::Reserve(Reserve { queues, wait, is_echo }));
        }
    }

    /// Ends the waits in the shards that have not answered.
    fn end_waits(&self, reserving: &Reserving) {
        let Some(post) = self.shard.post().filter(|_| !planted!(WaitElsewhereGoesOn)) else {
            return;
        };
        for share in reserving.shares.iter().filter(|share| share.owes) {
            post.write_errand(share.shard, self.client, Errand::EndWaits);
        }
    }

    /// Returns what a shard has handed over in vain, as if it had not reached the client.
    fn give_back(&self, to: usize, output: Output) {
        let Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } = output else {
            return;
        };
        if planted!(ExtraJobKept) {
            return;
        }
        let receipts: Vec<_> = tasks.iter().filter_map(TaskRecord::receipt).collect();
        if let Some(post) = self.shard.post() {
            post.write_errand(to, self.client, Errand::Sent(1));
        }
        self.ask(to, SILENT, &Command::GiveBack(&receipts));
    }

    /// Asks a shard about its tubes. Its reply is heard.
    fn ask_for(
        &self,
        share: &mut Share,
        command: impl for<'n> FnOnce(&'n [&'n [u8]]) -> Command<'n>,
    ) {
        self.ask(share.shard, PART, &command(&share.names()));
        self.session.outbox.borrow_mut().await_choice(self.shard.places(), share.shard);
        share.owes = true;
    }

    fn ask(&self, to: usize, request: RequestId, command: &Command<'_>) {
        let Some(post) = self.shard.post() else { return };
        let encode = |out: &mut Vec<u8>| encode_command(command, out);
        let length = post.write_command(to, self.client, request, encode);
        self.session.links.borrow_mut().link(post.places(), to).under_way += length;
    }
}
