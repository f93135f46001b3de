//! What one client and its door say to each other, apart from the socket that carries it.
//!
//! Bytes come in through [`Exchange::take_in`] and are answered into the client's outbox; what may
//! leave is encoded by [`Exchange::encode`]. Between the two, [`Exchange::proceed`] decides what
//! is next. Nothing here waits: a connection does that on a socket, and the simulation without one.

use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::{Span, Timestamp};

use crate::config::Limits;
use crate::connection::{Door, Next, READ_BYTES, Received};
use crate::mailbox::Errand;
use crate::shard::{Session, Shard};

/// How many bytes are held back at most until other shards have answered as well.
const HELD_BYTES_MAX: usize = 16 << 10;

/// What requests wait for that have come already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    /// Nothing: there is none that is complete.
    Nothing,
    /// Room, or that less is under way.
    Room,
    /// The reply to a blocked request.
    Reply,
    /// This shard, which is to have the connection.
    Shard(usize),
}

/// What is known of the client's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// More may come.
    Open,
    /// The client has ended it, but not all that came before was taken in.
    Closed,
    /// The client has ended it, and all that came before was taken in.
    Ended,
}

/// What is next for an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something has changed: write what may leave, and ask again.
    Again,
    /// Nothing, until bytes come or leave, the client's bell rings, or a request is late.
    Await,
    /// This shard is to have the connection. Everything that was answered has left.
    Move(usize),
    /// It is over, and everything that was answered has left.
    Over,
}

/// See the head of this file.
pub(crate) struct Exchange<D> {
    pub(crate) shard: Rc<Shard>,
    pub(crate) session: Rc<Session>,
    pub(crate) peer: SocketAddr,
    pub(crate) client: ClientId,
    limits: Limits,
    door: D,
    /// The beginning of a request whose rest has not come yet, or requests that have to wait.
    input: Vec<u8>,
    /// When the first byte of an incomplete request came.
    frame_began: Option<Timestamp>,
    /// What the requests in `input` wait for.
    waits: Waits,
    side: Side,
    /// Whether no more requests are accepted.
    closing: bool,
    /// Whether the client may still be sending, since it was not the one to end the connection.
    lingers: bool,
}

impl<D: Door> Exchange<D> {
    /// Begins with a client that the shard knows.
    pub(crate) fn new(
        shard: Rc<Shard>,
        limits: Limits,
        peer: SocketAddr,
        (client, session): (ClientId, Rc<Session>),
        door: D,
    ) -> Self {
        Self {
            shard,
            session,
            peer,
            client,
            limits,
            door,
            input: Vec::new(),
            frame_began: None,
            waits: Waits::Nothing,
            side: Side::Open,
            closing: false,
            lingers: false,
        }
    }

    pub(crate) const fn lingers(&self) -> bool {
        self.lingers
    }

    /// Its side of the protocol.
    pub(crate) const fn door(&mut self) -> &mut D {
        &mut self.door
    }

    /// Whether everything that has come was carried out.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.waits == Waits::Nothing && self.input.is_empty()
    }

    /// How many bytes have come that were not done with.
    pub(crate) const fn input_bytes(&self) -> usize {
        self.input.len()
    }

    /// Whether a request is blocked.
    pub(crate) fn awaits_reply(&self) -> bool {
        self.waits == Waits::Reply
    }

    /// Whether it is over and everything that was answered is encoded.
    pub(crate) fn has_said_all(&self) -> bool {
        self.closing && self.session.outbox.borrow().is_all_encoded()
    }

    /// Looks whether the store has failed, and gives up what waits for it in vain. Answers
    /// whether the connection ends for that reason, once it was written to.
    pub(crate) fn ends_by_failure(&mut self) -> bool {
        let Some(failure) = self.shard.failure() else { return false };
        let reached = self.shard.reached();
        let can_tell = self.door.can_tell_failure();
        self.session.outbox.borrow_mut().give_up(reached, &failure, can_tell);
        Shard::refuse_blocked(self.client, &self.session, &failure);
        !can_tell || self.session.outbox.borrow().is_at_loss()
    }

    /// Encodes what may leave into the outbox. Returns whether there is anything to be written.
    pub(crate) fn encode(&mut self) -> bool {
        loop {
            if !self.closing {
                self.door.refill();
            }
            self.encode_what_may_leave();
            if self.session.outbox.borrow().encoded_bytes() > 0 {
                return true;
            }
            // What needs no bytes may have made room for more.
            if self.closing || !self.door.refill() {
                return false;
            }
        }
    }

    /// Encodes what may leave although nobody says soon that it has left, so that all that may be
    /// granted is.
    pub(crate) fn encode_ahead(&mut self) {
        // What is encoded makes room for more to be granted.
        loop {
            self.encode_what_may_leave();
            if self.closing || !self.door.refill() {
                return;
            }
        }
    }

    fn encode_what_may_leave(&self) {
        let reached = self.shard.reached();
        let fresh = || self.shard.lend_buffer();
        let lacks_payload = {
            let outbox = &mut *self.session.outbox.borrow_mut();
            outbox.encode(&self.door, reached, self.limits.out_bytes_max, fresh);
            outbox.lacks_payload()
        };
        if lacks_payload {
            self.shard.read_for(&self.session);
        }
    }

    /// Whether it is worth it to wait for more to be encoded before anything is written.
    pub(crate) fn holds_back(&self) -> bool {
        self.session.links.borrow().is_about_to_hear()
            && self.session.outbox.borrow().encoded_bytes() < HELD_BYTES_MAX
    }

    /// Notes that the kernel accepted this many bytes.
    pub(crate) fn written(&self, count: usize) {
        let spare = self.session.outbox.borrow_mut().written(count);
        if let Some(buffer) = spare {
            self.shard.keep_buffer(buffer);
        }
        self.shard.note_accepted(self.client, &self.session, self.limits.out_bytes_max);
    }

    /// Does one thing that can be done without waiting, and says what is next. To be called once
    /// everything was written that can be.
    pub(crate) fn proceed(&mut self, stopping: bool) -> Step {
        if stopping && !self.closing {
            self.door.stopping();
            self.shard.tell_links(self.client, &self.session, || Errand::Stop);
            self.close();
        } else if self.closing && self.is_settled() {
            return Step::Over;
        } else if !self.closing && self.session.links.borrow().is_broken() {
            tracing::info!(peer = %self.peer, "another shard has ended its side: closing");
            self.cut_off();
        } else if let Waits::Shard(to) = self.waits {
            let has_left = self.session.outbox.borrow().is_empty();
            return if has_left { Step::Move(to) } else { Step::Await };
        } else if self.can_resume() {
            self.resume();
        } else if self.side == Side::Ended && self.waits == Waits::Nothing && !self.closing {
            // What is left is a request that will never be complete.
            self.close();
        } else if self.knows_end() && self.waits == Waits::Reply && self.session.is_blocked() {
            self.shard.end_waits(self.client);
        } else if self.knows_end()
            && self.waits == Waits::Reply
            && self.shard.end_waits_abroad(self.client, &self.session)
        {
            // Its answer is on its way.
        } else {
            return Step::Await;
        }
        Step::Again
    }

    /// Whether anything that comes would be read now.
    pub(crate) fn wants_read(&self) -> bool {
        let has_room = match self.waits {
            Waits::Nothing => !self.is_overloaded(),
            Waits::Room | Waits::Shard(_) => false,
            Waits::Reply => self.input.len() < READ_BYTES,
        };
        // What is asked of a shard that has ended its side is never answered.
        has_room
            && !self.closing
            && self.side != Side::Ended
            && !self.session.links.borrow().is_broken()
    }

    /// The client will send nothing more.
    pub(crate) const fn end_input(&mut self) {
        self.side = Side::Ended;
    }

    /// The client has ended its side, but not all that came before was taken in. A blocked request
    /// is answered as if its time were up, and what waits unread is taken in after that.
    pub(crate) fn foresee_end(&mut self) {
        if self.side == Side::Open {
            self.side = Side::Closed;
        }
        self.lapse_if_stalled();
    }

    /// Ends the credit of a client that has ended its side while what it sent waits for room, which
    /// may take for ever.
    fn lapse_if_stalled(&mut self) {
        if self.knows_end() && self.waits == Waits::Room && self.session.is_stalled() {
            self.door.credit_lapses();
        }
    }

    /// Whether the client is known to have ended its side.
    pub(crate) fn knows_end(&self) -> bool {
        self.side != Side::Open
    }

    /// Takes bytes that came, and carries out what is complete.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        if self.waits == Waits::Reply {
            self.input.extend_from_slice(bytes);
        } else if self.input.is_empty() {
            let consumed = self.receive(bytes);
            self.input.extend_from_slice(&bytes[consumed..]);
        } else {
            self.input.extend_from_slice(bytes);
            self.resume();
        }
    }

    /// When the request that has begun to come must have come. The clock starts with its first
    /// byte and not again with each, and does not run while nothing is read.
    pub(crate) fn frame_deadline(&mut self) -> Option<Timestamp> {
        let reads = self.wants_read() && self.waits == Waits::Nothing;
        if self.input.is_empty() || !reads {
            self.frame_began = None;
        } else if self.frame_began.is_none() {
            self.frame_began = Some(self.shard.clock().now());
        }
        let most = u64::try_from(self.limits.frame_timeout.as_millis()).unwrap_or(u64::MAX);
        self.frame_began.map(|began| began.after(Span::from_ms(most)))
    }

    /// Notes that the deadline has passed.
    pub(crate) fn frame_is_late(&mut self) {
        tracing::info!(peer = %self.peer, "a request did not arrive in time: closing");
        self.cut_off();
    }

    /// Has the shard forget the client. What was handed to it and was not sent goes back.
    pub(crate) fn leave(&self) {
        if !planted!(CutNotTold) {
            // What was accepted of theirs is told before.
            self.shard.tell_links(self.client, &self.session, || Errand::Cut);
        }
        let mut unsent = self.session.outbox.borrow_mut().unsent();
        let requeues = self.door.requeues();
        let tasks = unsent.popped_count();
        if tasks > 0 {
            let peer = self.peer;
            tracing::info!(%peer, tasks, requeues, "the last answer could not be sent whole");
        }
        if !requeues {
            unsent.forget_popped();
        }
        self.shard.disconnect(self.client, unsent);
    }

    /// Gives up the client to another shard, with what has come and was not carried out.
    pub(crate) fn move_out(self) -> Vec<u8> {
        self.shard.part_with(self.client);
        self.input
    }

    /// Whether everything has left that ever will, and all that was asked for is done.
    fn is_settled(&self) -> bool {
        let outbox = self.session.outbox.borrow();
        outbox.is_at_loss() || (outbox.is_empty() && self.session.links.borrow().is_idle())
    }

    /// Whether what the requests in `input` waited for has come.
    fn can_resume(&self) -> bool {
        match self.waits {
            Waits::Nothing | Waits::Shard(_) => false,
            Waits::Room => !self.session.is_stalled() && !self.is_overloaded(),
            Waits::Reply => !self.session.is_blocked() && !self.session.links.borrow().is_blocked(),
        }
    }

    /// Carries out what has come and was not done with.
    fn resume(&mut self) {
        self.waits = Waits::Nothing;
        let input = std::mem::take(&mut self.input);
        let consumed = self.receive(&input);
        self.input = input;
        self.input.drain(..consumed);
        if self.input.is_empty() {
            // An idle connection keeps no buffers.
            self.input = Vec::new();
        }
    }

    fn receive(&mut self, input: &[u8]) -> usize {
        if self.closing {
            return input.len();
        }
        let Received { consumed, next } = self.shard.at_one_moment(|| {
            let received = self.door.receive(input);
            self.shard.turn();
            received
        });
        if consumed > 0 {
            self.frame_began = None;
        }
        match next {
            Next::Read => {}
            Next::Wait => {
                self.waits = Waits::Room;
                self.lapse_if_stalled();
            }
            Next::Block => self.waits = Waits::Reply,
            Next::Move(to) => self.waits = Waits::Shard(to),
            Next::Close(reason) => {
                tracing::info!(peer = %self.peer, %reason, "closing");
                self.cut_off();
                return input.len();
            }
        }
        consumed
    }

    /// Accepts no more requests: what was answered is still sent.
    fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.waits = Waits::Nothing;
            self.input = Vec::new();
            self.frame_began = None;
            self.shard.tell_links(self.client, &self.session, || Errand::EndInput);
            self.shard.retire(self.client);
        }
    }

    /// Accepts no more requests of a client that may still be sending some.
    fn cut_off(&mut self) {
        self.close();
        self.lingers = true;
    }

    /// Whether the client has so much under way that nothing more is read from it.
    fn is_overloaded(&self) -> bool {
        self.session.outbox.borrow().is_full(&self.limits) || self.session.links.borrow().is_full()
    }
}
