//! Guests: clients whose connection another shard has, and who ask for queues here.
//!
//! A guest has a seat like every client, but no door: its commands come as letters, and its outputs
//! leave as letters once their changes are durable. The number of outputs on their way to its
//! client's socket has the same bound as for a socket of this shard. The other end is `home::desk`.

mod down;

use std::collections::VecDeque;
use std::rc::Rc;

use pinpriq_proto::command::{Command, Share};
use pinpriq_proto::letters::decode_command;
use pinpriq_proto::reply::Refusal;
use pinpriq_proto::task::{Bytes, ClientId, Farewell};
use pinpriq_proto::time::Timestamp;

use super::inquiries;
use super::seat::{Seat, Undone};
use super::shard::Shard;
use crate::clients::about::{Manners, PART, SILENT, as_guest};
use crate::clients::ending::Ending;
use crate::clients::unsent::Unsent;
use crate::config::Limits;
use crate::letters::letter::{Commands, Errand, Home, News, Part, Piece, Question, Standing};
use crate::session::Session;

/// A guest at this shard.
pub struct Guest {
    seat: Seat,
    /// Where the connection is, and the client there.
    home: Home,
    client: ClientId,
    phase: Phase,
    /// Why the guest ends before its client, if it does.
    ending: Option<Ending>,
    /// Errands that are not done yet.
    errands: VecDeque<Errand>,
    /// The commands that come before these errands.
    commands: Commands,
    /// Bytes of commands that were taken out of letters and not yet reported as carried out.
    untold: usize,
    /// Since when the next command waits for an engine that does not answer.
    kept_since: Option<Timestamp>,
    /// The standing that was reported last.
    told: Standing,
    /// Whether others have their turn before it goes on.
    rests: bool,
    resets: u64,
    /// The deliveries made before its latest reset.
    delivered_before: u64,
    handed: Handed,
}

/// What a guest is doing.
enum Phase {
    /// Doing its errands.
    Open,
    /// Sending the rest: no more errands will come.
    Ending,
    /// Nothing more, and its home knows that.
    Ended,
    /// Sending the rest, since the shard is given up. The next owner carries out what is left.
    Released {
        /// The subscriptions of its client, which the next owner makes again.
        subscriptions: u32,
    },
    /// Leaving. Its connection is gone, and so is everything of it that need not wait for a letter.
    /// What its client did not get is gathered here until it is complete.
    Leaving {
        /// How many outputs its home has received, or has sent back since.
        heard: u64,
        unsent: Unsent,
    },
}

/// Outputs on their way to the client's socket.
#[derive(Default)]
struct Handed {
    /// How many there were in total.
    ever: u64,
    /// For each output that was not sent yet: its bytes, and the oldest volume that it holds.
    unsent: VecDeque<(usize, Option<u32>)>,
    bytes: usize,
    /// The number of outputs that hold a volume. It is 0 unless payloads are left on the disk.
    holding: usize,
}

impl Handed {
    fn is_full(&self, limits: &Limits) -> bool {
        self.unsent.len() >= limits.in_flight_max || self.bytes >= limits.out_bytes_max
    }

    fn add(&mut self, bytes: usize, oldest: Option<u32>) {
        self.ever += 1;
        self.bytes += bytes;
        self.holding += usize::from(oldest.is_some());
        self.unsent.push_back((bytes, oldest));
    }

    fn remove(&mut self, outputs: usize) {
        for (bytes, oldest) in self.unsent.drain(..outputs) {
            self.bytes -= bytes;
            self.holding -= usize::from(oldest.is_some());
        }
    }

    fn oldest(&self) -> Option<u32> {
        if self.holding == 0 {
            return None;
        }
        self.unsent.iter().filter_map(|(_, oldest)| *oldest).min()
    }
}

impl Guest {
    /// Receives a client of another shard. Nothing is known about it except that errands will
    /// follow.
    pub(crate) fn receive(
        shard: Rc<Shard>,
        (home, client): (Home, ClientId),
        limits: Limits,
        manners: Manners,
    ) -> Self {
        let own = match home {
            Home::Place(_) => as_guest(client),
            // Clients of two processes may have the same number.
            Home::Link(_) => shard.number_guest(),
        };
        let session = shard.receive_guest(own);
        Self {
            seat: Seat::new(shard, (own, session), limits, manners),
            home,
            client,
            phase: Phase::Open,
            ending: None,
            errands: VecDeque::new(),
            commands: Commands::default(),
            untold: 0,
            kept_since: None,
            told: Standing::default(),
            rests: false,
            resets: 0,
            delivered_before: 0,
            handed: Handed::default(),
        }
    }

    /// What the shard has for it.
    pub(crate) const fn session(&self) -> &Rc<Session> {
        &self.seat.session
    }

    /// Takes an errand. An urgent one is done at once, the others in their order.
    pub(crate) fn take(&mut self, errand: Errand) {
        match errand {
            Errand::Sent(outputs) => {
                self.handed.remove(outputs);
                self.note_oldest();
            }
            Errand::Read(wanted) => {
                self.seat.session.lending.set(true);
                self.seat.session.lent.borrow_mut().wanted = Some(wanted);
                self.seat.shard.read_for(&self.seat.session);
            }
            Errand::Cut { heard, unsent } => {
                if matches!(self.phase, Phase::Open) {
                    // The results of earlier commands that need not wait stay, as in the client's
                    // own shard.
                    while self.next() {}
                }
                self.seat.retire_without(unsent.leases.clone());
                self.phase = Phase::Leaving { heard, unsent };
            }
            Errand::Back { outputs, unsent: more } => {
                if let Phase::Leaving { heard, unsent } = &mut self.phase {
                    *heard += outputs;
                    unsent.append(more);
                }
            }
            later => self.errands.push_back(later),
        }
        self.seat.session.bell.ring();
    }

    /// Does everything that can be done without waiting. Returns whether the guest has gone.
    pub(crate) fn run_until_blocked(&mut self) -> bool {
        loop {
            self.seat.session.bell.hush();
            if self.is_down() {
                self.refuse_while_down();
            }
            match &self.phase {
                Phase::Ended => {
                    // Outputs that were handed over may still need payloads.
                    self.tell(Vec::new());
                    return false;
                }
                Phase::Leaving { heard, .. } => return *heard == self.handed.ever,
                // The next owner knows more than this shard.
                Phase::Open | Phase::Ending | Phase::Released { .. } if self.is_cut_off() => {
                    self.look_again();
                    return false;
                }
                Phase::Released { .. } => loop {
                    let pieces = self.hand_over();
                    let is_all = pieces.is_empty();
                    self.tell(pieces);
                    if is_all {
                        return self.seat.session.outbox.borrow().is_empty();
                    }
                },
                Phase::Open | Phase::Ending => {}
            }
            let killed = self.seat.session.killed();
            let ending = killed.or_else(|| self.ends_by_failure().then_some(Ending::StoreFailed));
            if let Some(ending) = ending {
                self.end(ending);
                return false;
            }
            if self.next() && !self.seat.is_over_time() {
                continue;
            }
            let before = self.seat.session.outbox.borrow().len();
            let pieces = self.hand_over();
            // Outputs that were sent may have made room for more.
            let has_room = self.seat.session.outbox.borrow().len() < before;
            self.tell(pieces);
            if self.seat.take_break() {
                self.rests = true;
                self.seat.session.bell.ring();
                return false;
            }
            if !has_room {
                return false;
            }
        }
    }

    /// Notes that others have their turn now. Returns whether they should, since the guest has
    /// asked for long work.
    pub(crate) const fn take_rest(&mut self) -> bool {
        std::mem::replace(&mut self.rests, false)
    }

    /// Carries out nothing more, because the shard is given up in order. A blocked request that has
    /// changed nothing is left to the next owner.
    pub(crate) fn release(&mut self) {
        if let Phase::Leaving { heard, .. } = &mut self.phase {
            // What its home may still send back would come to the next owner.
            *heard = self.handed.ever;
            self.seat.session.bell.ring();
        }
        if !matches!(self.phase, Phase::Open | Phase::Ending) {
            return;
        }
        self.seat.shard.turn_if_begun();
        self.phase = Phase::Released { subscriptions: self.seat.subscriptions() };
        let (client, session) = (self.seat.client, &self.seat.session);
        self.seat.shard.release_blocked(client, session);
        self.seat.shard.retire(client, Farewell::ServerStops);
        session.bell.ring();
    }

    /// Leaves at once, because its home is gone.
    pub(crate) fn vanish(&mut self) {
        let heard = self.handed.ever;
        self.take(Errand::Cut { heard, unsent: Unsent::default() });
    }

    /// Whether another process may own the shard by now, so that nothing may be said. The bell
    /// rings when that is over.
    fn is_cut_off(&self) -> bool {
        let shard = &self.seat.shard;
        shard.may_be_taken_over() && (shard.failure().is_some() || shard.is_suspended())
    }

    /// Makes the shard forget the guest. Whatever its client did not get goes back.
    pub(crate) fn leave(&mut self) {
        let mut unsent = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Leaving { unsent, .. } => unsent,
            Phase::Open | Phase::Ending | Phase::Ended | Phase::Released { .. } => {
                Unsent::default()
            }
        };
        for (_, own) in self.seat.session.outbox.borrow_mut().unsent() {
            unsent.append(own);
        }
        if !self.seat.manners.requeues {
            unsent.forget_popped();
        }
        self.seat.shard.disconnect(self.seat.client, unsent);
    }

    /// Checks whether the store has failed, and gives up everything that would wait for it forever.
    /// Returns whether the guest ends for this reason.
    fn ends_by_failure(&self) -> bool {
        let Some(failure) = self.seat.shard.failure() else { return false };
        let can_tell = self.seat.manners.tells_refusals;
        let reached = self.seat.shard.reached();
        self.seat.session.outbox.borrow_mut().give_up(reached, &failure, (can_tell, false));
        Shard::refuse_blocked(self.seat.client, &self.seat.session, &failure);
        !can_tell
    }

    /// Does one thing that need not wait. Returns whether there was one.
    fn next(&mut self) -> bool {
        if !self.commands.is_empty() {
            return !self.is_down() && self.carry_out_commands();
        }
        let is_blocked = self.seat.session.is_blocked();
        let is_ready = match self.errands.front() {
            None => false,
            // These end a blocked command, or do not depend on it.
            Some(
                Errand::EndWaits
                | Errand::End { .. }
                | Errand::Credit(_)
                | Errand::Permit(_)
                | Errand::Aside(_),
            ) => true,
            Some(Errand::Ask(_)) => !is_blocked && !self.is_down(),
            Some(_) => !is_blocked,
        };
        if !is_ready {
            return false;
        }
        let Some(errand) = self.errands.pop_front() else { return false };
        match errand {
            Errand::Commands(commands) => {
                self.untold += commands.len();
                self.commands = commands;
            }
            Errand::Ask(question) => self.answer(question),
            Errand::Credit(credits) => {
                self.seat.shard.apply(self.seat.client, SILENT, &Command::Credit(credits));
                self.seat.shard.turn();
            }
            Errand::Permit(total) => self.permit(total),
            Errand::Aside(command) => self.carry_out_aside(&command),
            Errand::Reset => {
                self.resets += 1;
                self.seat.reset();
                self.delivered_before = self.seat.session.delivered();
                self.seat.shard.say_part(&self.seat.session, || Part::Done);
            }
            Errand::EndWaits => {
                if is_blocked {
                    self.seat.shard.end_waits(self.seat.client);
                }
            }
            Errand::End { stopping, unsent } => {
                self.phase = Phase::Ending;
                if stopping {
                    let (client, session) = (self.seat.client, &self.seat.session);
                    self.seat.shard.stop_blocked(client, session);
                    self.seat.shard.retire(client, Farewell::ServerStops);
                } else {
                    self.seat.retire_without(unsent);
                }
            }
            Errand::Account(account) => self.seat.account = account,
            Errand::Open(_)
            | Errand::Read(_)
            | Errand::Sent(_)
            | Errand::Cut { .. }
            | Errand::Back { .. } => {}
        }
        true
    }

    /// Permits this number of deliveries in all since the latest reset.
    fn permit(&self, total: u64) {
        let deliveries = total.saturating_sub(self.delivered());
        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
        let permit = Share::Permit { deliveries, holds: true };
        self.seat.shard.apply(self.seat.client, SILENT, &Command::Share(permit));
        self.seat.shard.turn();
    }

    /// Carries out a command that came aside from the requests of the client.
    fn carry_out_aside(&self, command: &Commands) {
        let (client, shard) = (self.seat.client, &self.seat.shard);
        if let Some((request, bytes, _)) = command.first() {
            let applied = decode_command(bytes, |it| shard.apply(client, request, it));
            assert!(applied.is_ok(), "a shard sent what is no command: {applied:?}");
        }
        shard.turn();
    }

    /// Carries out commands until one has to wait. Returns whether there were any.
    fn carry_out_commands(&mut self) -> bool {
        let before = self.commands.len();
        let shard = self.seat.shard.clone();
        let refused = shard.at_one_moment(|| {
            self.seat.begin(self.handed.unsent.len());
            let refused = self.carry_out_each();
            self.seat.shard.turn();
            refused
        });
        if let Some((ending, reason)) = refused {
            let peer = self.seat.session.about.borrow().peer;
            let peer = peer.map_or_else(|| "a client".to_owned(), |peer| peer.to_string());
            shard.notices().closing(shard.clock().now(), &peer, (ending, &reason));
            self.seat.session.kill(ending);
            return true;
        }
        let stalled = !self.commands.is_empty() && !self.seat.is_over_time();
        if stalled && self.is_last() && self.seat.manners.waits_for_room {
            // Room may never come, and meanwhile the guest would get deliveries.
            self.seat.retire();
        }
        self.commands.len() < before
    }

    /// Carries out commands like [`Guest::carry_out_commands`]. Returns why the guest has to end,
    /// if it does.
    fn carry_out_each(&mut self) -> Option<(Ending, String)> {
        while let Some((request, bytes, length)) = self.commands.first() {
            if self.handed.is_full(&self.seat.limits) || self.seat.obstacle().is_some() {
                return None;
            }
            self.seat.count();
            let seat = &mut self.seat;
            match decode_command(bytes, |command| seat.carry_out_charged(request, command)) {
                Ok(Ok(())) => self.commands.pass(length),
                Ok(Err(Undone::Refused(refusal))) => {
                    self.commands.pass(length);
                    seat.shard.say_refusal((seat.client, request), &seat.session, refusal);
                }
                Ok(Err(Undone::Close(ending, reason))) => {
                    self.commands.pass(length);
                    return Some((ending, reason));
                }
                Ok(Err(_)) => return None,
                Err(malformed) => unreachable!("a shard sent what is no command: {malformed}"),
            }
        }
        None
    }

    /// Whether no more commands will come than those already here.
    fn is_last(&self) -> bool {
        self.errands.iter().any(|errand| matches!(errand, Errand::End { .. }))
    }

    fn answer(&mut self, question: Question) {
        let (shard, session) = (&self.seat.shard, &self.seat.session);
        match question {
            Question::Command(mut commands) => {
                self.untold += commands.len();
                if let Some((_, bytes, length)) = commands.first() {
                    let (client, shard) = (self.seat.client, &self.seat.shard);
                    let applied = decode_command(bytes, |it| shard.apply(client, PART, it));
                    assert!(applied.is_ok(), "a shard sent what is no command: {applied:?}");
                    commands.pass(length);
                }
                shard.turn();
            }
            Question::Inquiry(inquiry) => {
                shard.say_part(session, || inquiries::answer(shard, &inquiry));
            }
            Question::Delivered => shard.say_part(session, || Part::Delivered(self.delivered())),
        }
    }

    fn end(&mut self, ending: Ending) {
        self.phase = Phase::Ended;
        self.ending = Some(ending);
        self.seat.retire();
        let pieces = self.hand_over();
        self.tell(pieces);
    }

    /// Reports what has happened to the shard that has the connection.
    fn tell(&mut self, pieces: Vec<Piece>) {
        let shard = self.seat.shard.clone();
        let Some(post) = shard.post() else { return };
        // Waiting commands are not done.
        let left = self.commands.len();
        let consumed = std::mem::replace(&mut self.untold, left) - left;
        let standing = Standing {
            stalled: left > 0 || !self.errands.is_empty(),
            subscriptions: match self.phase {
                Phase::Released { subscriptions } => subscriptions,
                _ => self.seat.subscriptions(),
            },
            ended: self.ending,
        };
        let payloads = self.payloads();
        let is_new = standing != self.told || payloads.is_some();
        if pieces.is_empty() && consumed == 0 && !is_new {
            return;
        }
        self.told = standing;
        let (resets, delivered) = (self.resets, self.delivered());
        let tells_refusals = self.seat.manners.tells_refusals;
        let news = News { pieces, payloads, tells_refusals, consumed, resets, delivered, standing };
        post.write_news(self.home, self.client, news);
    }

    /// Returns the payloads that were read since the last report.
    fn payloads(&self) -> Option<Result<Vec<Bytes>, Refusal>> {
        let lent = &mut *self.seat.session.lent.borrow_mut();
        if let Some(payloads) = lent.payloads.take() {
            self.seat.session.lending.set(false);
            return Some(Ok(payloads));
        }
        let failure = self.seat.shard.failure().filter(|_| self.seat.session.lending.get())?;
        lent.wanted = None;
        self.seat.session.lending.set(false);
        Some(Err(failure))
    }

    /// Removes and returns what may be sent: as much as one letter should have.
    fn hand_over(&mut self) -> Vec<Piece> {
        let is_released = matches!(self.phase, Phase::Released { .. });
        let (handed, limits) = (&mut self.handed, &self.seat.limits);
        let reached = self.seat.shard.reached();
        let mut released = 0;
        let pieces = self.seat.session.outbox.borrow_mut().hand_over(reached, |bytes, holds| {
            let fits = if is_released {
                released <= limits.out_bytes_max
            } else {
                !handed.is_full(limits)
            };
            if fits {
                released += bytes;
                handed.add(bytes, holds.oldest());
            }
            fits
        });
        self.note_oldest();
        pieces
    }

    /// Returns the number of deliveries made since its latest reset.
    fn delivered(&self) -> u64 {
        self.seat.session.delivered() - self.delivered_before
    }

    fn note_oldest(&self) {
        self.seat.session.oldest_handed.set(self.handed.oldest());
    }
}
