//! Guests: clients whose connection another shard has, and who want something of queues here.
//!
//! A guest is served like a client with a connection: the same doors, the same exchange, the same
//! outbox. In place of a socket there are letters. The other end is `abroad`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_engine::task::ClientId;

use crate::clients;
use crate::config::{Limits, PinpriqOptions};
use crate::exchange::Step;
use crate::info::Facts;
use crate::mailbox::{Errand, Letter, News, Part, Question, Standing};
use crate::outbox::Dialect;
use crate::shard::{Session, Shard};
use crate::talk::{Talk, with};

/// Tells the client that a guest is here from the client that it is at home.
const GUEST: u64 = 1 << 63;

/// Whether this client is a guest.
pub(crate) const fn is_guest(client: ClientId) -> bool {
    client.0 & GUEST != 0
}

/// The guest that this client of another shard is here.
pub(crate) const fn as_guest(client: ClientId) -> ClientId {
    ClientId(client.0 | GUEST)
}

/// See the head of this file.
pub(crate) struct Guest {
    shard: Rc<Shard>,
    pub(crate) session: Rc<Session>,
    /// The shard that has the connection, and the client there.
    home: usize,
    client: ClientId,
    talk: Talk,
    /// What was not done yet.
    errands: VecDeque<Errand>,
    /// How many bytes of requests were taken in of which was not told that they are done with.
    untold: usize,
    /// What was told last.
    told: Standing,
    resets: u64,
    stopping: bool,
    cut: bool,
}

impl Guest {
    /// Receives a client of another shard, of whom nothing is known but that errands will follow.
    pub(crate) fn receive(
        shard: Rc<Shard>,
        (home, client): (usize, ClientId),
        (door, peer, dialect): (&'static str, Option<SocketAddr>, Dialect),
        with: (PinpriqOptions, Limits),
    ) -> Self {
        let own = as_guest(client);
        let session = shard.receive_guest(own, door, dialect);
        let peer = peer.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        let who = (own, session.clone());
        let talk = Talk::begin(shard.clone(), who, (door, peer), with);
        Self {
            shard,
            session,
            home,
            client,
            talk,
            errands: VecDeque::new(),
            untold: 0,
            told: Standing::default(),
            resets: 0,
            stopping: false,
            cut: false,
        }
    }

    /// Takes an errand. What is to be done at once is done, the rest when it is its turn.
    pub(crate) fn take(&mut self, errand: Errand) {
        match errand {
            Errand::Written(count) => with!(&self.talk, exchange => exchange.written(count)),
            Errand::Cut => self.cut = true,
            later => self.errands.push_back(later),
        }
        self.session.bell.ring();
    }

    /// Does everything that can be done without waiting, and answers whether the guest has gone.
    pub(crate) fn go_on(&mut self) -> bool {
        loop {
            self.session.bell.hush();
            if self.cut {
                // What came before that and need not wait stays, as it does without other shards.
                while self.next_errand() {}
                return true;
            }
            if self.session.is_killed() {
                self.tell(true);
                return true;
            }
            let failed = with!(&mut self.talk, exchange => exchange.ends_by_failure());
            with!(&mut self.talk, exchange => exchange.encode_ahead());
            if failed {
                self.tell(true);
                return true;
            }
            match with!(&mut self.talk, exchange => exchange.proceed(self.stopping)) {
                Step::Again => {}
                Step::Await if self.next_errand() => {}
                Step::Await => {
                    let is_over = with!(&self.talk, exchange => exchange.has_said_all());
                    self.tell(is_over);
                    return false;
                }
                Step::Over | Step::Move(_) => {
                    self.tell(true);
                    return true;
                }
            }
        }
    }

    /// Has the shard forget the guest. What was handed to it and was not sent goes back.
    pub(crate) fn leave(&self) {
        with!(&self.talk, exchange => exchange.leave());
    }

    /// Does the next errand if its time has come. Returns whether it was.
    fn next_errand(&mut self) -> bool {
        let talk = &self.talk;
        let is_caught_up = with!(talk, exchange => exchange.is_caught_up());
        let is_ready = match self.errands.front() {
            None => false,
            Some(Errand::Requests(_)) => with!(talk, exchange => exchange.wants_read()),
            Some(Errand::EndWaits | Errand::EndInput | Errand::Stop) => {
                is_caught_up || with!(talk, exchange => exchange.awaits_reply())
            }
            Some(_) => is_caught_up && with!(talk, exchange => exchange.wants_read()),
        };
        if !is_ready {
            return false;
        }
        if let Some(errand) = self.errands.pop_front() {
            self.carry_out(errand);
        }
        true
    }

    fn carry_out(&mut self, errand: Errand) {
        if let Talk::Resp(exchange) = &mut self.talk
            && !matches!(errand, Errand::EndWaits | Errand::EndInput | Errand::Stop)
        {
            // A request that was to be answered in parts has been carried out by now.
            exchange.door().answer_in_parts(matches!(errand, Errand::Ask(_)));
        }
        match errand {
            Errand::Requests(requests) => self.take_in(&requests),
            Errand::Ask(question) => self.answer(question),
            Errand::Speak(dialect) => {
                if let Talk::Resp(exchange) = &mut self.talk {
                    exchange.door().speak(dialect);
                }
                self.shard.say_part(&self.session, Part::Done);
            }
            Errand::Credit(credits) => match &mut self.talk {
                Talk::Pinpriq(exchange) => exchange.door().bank(credits),
                Talk::Resp(exchange) => exchange.door().bank(credits),
            },
            Errand::Reset => {
                self.resets += 1;
                if let Talk::Resp(exchange) = &mut self.talk {
                    exchange.door().reset();
                }
                self.shard.say_part(&self.session, Part::Done);
            }
            Errand::EndWaits => {
                if with!(&self.talk, exchange => exchange.awaits_reply()) {
                    self.shard.end_waits(as_guest(self.client));
                }
            }
            Errand::EndInput => with!(&mut self.talk, exchange => exchange.end_input()),
            Errand::Stop => self.stopping = true,
            Errand::Open { .. } | Errand::Written(_) | Errand::Cut => {}
        }
    }

    fn take_in(&mut self, requests: &[u8]) {
        self.untold += requests.len();
        with!(&mut self.talk, exchange => exchange.take_in(requests));
    }

    fn answer(&mut self, question: Question) {
        let part = match question {
            Question::Request(request) => return self.take_in(&request),
            Question::Facts => Part::Facts(Box::new(Facts::of(&self.shard))),
            Question::Clients => Part::Clients(clients::describe(&self.shard)),
            Question::Kill(wanted, caller) => {
                Part::Killed(clients::kill(&self.shard, &wanted, caller))
            }
        };
        self.shard.say_part(&self.session, part);
    }

    /// Tells the shard that has the connection what has happened.
    fn tell(&mut self, ended: bool) {
        let Some(post) = self.shard.post() else { return };
        let (pieces, bytes) = self.session.outbox.borrow_mut().hand_over();
        // What waits in the exchange is not done with.
        let left = with!(&self.talk, exchange => exchange.input_bytes());
        let left = if planted!(ReadTakenForDone) { 0 } else { left };
        let consumed = std::mem::replace(&mut self.untold, left) - left;
        let subscribed = match &mut self.talk {
            Talk::Pinpriq(_) => false,
            Talk::Resp(exchange) => exchange.door().is_subscribed(),
        };
        let standing =
            Standing { stalled: left > 0 || !self.errands.is_empty(), subscribed, ended };
        if pieces.is_empty() && consumed == 0 && standing == self.told {
            return;
        }
        self.told = standing;
        let news = News { pieces, bytes, consumed, resets: self.resets, standing };
        post.write(self.home, Letter::News { from: post.own(), client: self.client, news });
    }
}
