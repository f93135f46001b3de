//! The conversation between one client and its door, without the socket that carries it.
//!
//! [`Client::feed`] takes the client's bytes; replies go to its outbox. [`Client::encode`]
//! encodes what may be sent. Between the two, [`Client::proceed`] decides what is next. Nothing
//! here waits: a connection waits on a socket.

use std::cell::Ref;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Position;

use super::connection::READ_BYTES;
use super::desk::{Company, Desk};
use super::door::{Door, Next, Opened};
use crate::access::pass::Pass;
use crate::clients::ending::Ending;
use crate::config::{DoorName, Limits};
use crate::host::seat::Obstacle;
use crate::host::shard::Shard;
use crate::letters::letter::Known;
use crate::session::Session;
use crate::session::kept::FREE_BYTES;
use crate::session::outbox::Outbox;

/// At most this many bytes are held back until other shards have replied as well.
const HELD_BYTES_MAX: usize = 16 << 10;

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Its requests are read.
    Reading,
    /// Requests that have arrived wait for room, or until less is under way.
    AwaitingRoom,
    /// Requests that have arrived wait for the reply to a blocked one.
    AwaitingReply,
    /// The connection must move to this shard, with the requests that have arrived.
    Moving(usize),
    /// No more requests are accepted. Replies are still sent.
    Closing {
        /// Whether the client may still be sending, since it did not end the connection itself.
        lingers: bool,
    },
}

/// What is known about the client's side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// More bytes may come.
    Open,
    /// The client has ended it, but some of its earlier bytes were not taken in.
    Closed,
    /// The client has ended it, and all of its earlier bytes were taken in.
    Ended,
}

/// The next step for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Something has changed: write what may be sent, and ask again.
    Again,
    /// Nothing to do until bytes come or leave, the client's bell rings, or a request is late.
    Await,
    /// The connection must move to this shard. All replies were sent.
    Move(usize),
    /// The connection is over, and all replies were sent.
    Over,
}

/// A client that has its connection here.
pub struct Client {
    pub(crate) session: Rc<Session>,
    pub(crate) peer: SocketAddr,
    desk: Desk,
    door: Box<dyn Door>,
    door_name: DoorName,
    /// The beginning of an incomplete request, or requests that have to wait.
    input: Vec<u8>,
    /// When the first byte of an incomplete request arrived.
    frame_began: Option<Timestamp>,
    /// By when somebody must have signed in, as long as that has not happened.
    sign_in_by: Option<Timestamp>,
    phase: Phase,
    side: Side,
    /// Why the connection ends, if it does.
    ending: Option<Ending>,
}

impl Client {
    /// Begins with a client known to the shard, at a door that was opened for it.
    pub(crate) fn begin(
        shard: Rc<Shard>,
        (client, session): (ClientId, Rc<Session>),
        (opened, peer): (Opened, SocketAddr),
        limits: Limits,
        company: Company<'_>,
    ) -> Self {
        let who = (client, session.clone());
        let mut desk = Desk::new(shard, who, limits, &opened, company);
        if !opened.moves {
            desk.is_placed = true;
        }
        if !session.was_moved() {
            desk.welcome(opened.signs_in);
        }
        let must_sign_in = !session.was_moved() && desk.is_guarded();
        let sign_in_by = must_sign_in
            .then(|| desk.shard().clock().now().after(span_of(desk.limits().frame_timeout)));
        Self {
            session,
            peer,
            desk,
            door: opened.door,
            door_name: opened.name,
            input: Vec::new(),
            frame_began: None,
            sign_in_by,
            phase: Phase::Reading,
            side: Side::Open,
            ending: None,
        }
    }

    /// Sets its user, or that it has none.
    pub(crate) fn admit(&mut self, pass: Option<Pass>) {
        self.desk.admit(pass);
    }

    /// Returns its number.
    pub const fn number(&self) -> ClientId {
        self.desk.client()
    }

    /// Whether the client may still be sending, since it did not end the connection itself.
    pub(crate) fn lingers(&self) -> bool {
        self.phase == Phase::Closing { lingers: true }
    }

    /// Checks whether the store has failed, and gives up everything that would wait for it forever.
    /// Returns whether the connection ends for this reason once the outbox was written.
    pub fn ends_by_failure(&mut self) -> bool {
        let shard = self.desk.shard();
        let Some(failure) = shard.failure() else { return false };
        let can_tell = self.desk.seat.manners.tells_refusals;
        let reached = shard.reached();
        self.session.outbox.borrow_mut().give_up(reached, &failure, (can_tell, true));
        Shard::refuse_blocked(self.number(), &self.session, &failure);
        let ends = !can_tell || self.session.outbox.borrow().is_at_loss();
        if ends {
            self.ending.get_or_insert(Ending::StoreFailed);
        }
        ends
    }

    /// Encodes into the outbox what may be sent. Returns whether there is anything to write.
    pub fn encode(&mut self) -> bool {
        loop {
            if !self.is_closing() {
                self.desk.refill();
            }
            self.encode_what_may_leave();
            if self.session.outbox.borrow().encoded_bytes() > 0 {
                return true;
            }
            // Outputs that need no bytes may have made room for more.
            if self.is_closing() || !self.desk.refill() {
                return false;
            }
        }
    }

    fn encode_what_may_leave(&mut self) {
        if self.desk.has_untold() {
            self.desk.tell_answered();
        }
        let shard = self.desk.shard();
        let reached = shard.reached();
        let fresh = || shard.lend_buffer();
        let (lacks_payload, left) = {
            let outbox = &mut *self.session.outbox.borrow_mut();
            let most = self.desk.limits().out_bytes_max;
            outbox.encode(&*self.door, reached, most, fresh, |kind| self.note_refusal(kind));
            (outbox.lacks_payload(), outbox.passed())
        };
        self.desk.count_answered(left);
        self.desk.weigh(self.input.len());
        if lacks_payload {
            self.desk.read_payloads();
        }
    }

    /// Counts a refusal that is reported to the client. If the protocol cannot report it, the
    /// connection ends, and the code that ends it counts the refusal.
    fn note_refusal(&self, kind: RefusalKind) {
        if self.desk.seat.manners.tells_refusals {
            self.desk.tally().refuse(self.door_name, kind.into());
        }
    }

    /// Returns what is encoded and not written yet.
    #[must_use]
    pub fn unwritten(&self) -> Ref<'_, [u8]> {
        Ref::map(self.session.outbox.borrow(), Outbox::unwritten)
    }

    /// Whether its bell has rung since the last call.
    pub fn has_rung(&self) -> bool {
        self.session.bell.hush()
    }

    /// Whether its connection must end at once.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.session.killed().is_some()
    }

    /// Whether to wait until more is encoded before anything is written.
    pub fn holds_back(&self) -> bool {
        self.session.links.borrow().is_about_to_hear()
            && self.session.outbox.borrow().encoded_bytes() < HELD_BYTES_MAX
    }

    /// Notes that the kernel accepted this many bytes.
    pub fn written(&self, count: usize) {
        self.desk.tally().send(self.door_name, count);
        self.left(count);
    }

    /// Notes the same where the bytes that the kernel accepts are counted elsewhere.
    pub(crate) fn left(&self, count: usize) {
        let spare = self.session.outbox.borrow_mut().written(count);
        if let Some(buffer) = spare {
            self.desk.shard().keep_buffer(buffer);
        }
        self.desk.note_sent();
        self.desk.keep(self.input.len());
    }

    /// Does one thing that can be done without waiting, and returns the next step. Must be called
    /// after everything that can be written was written.
    pub fn proceed(&mut self, stopping: bool) -> Step {
        if let Phase::Closing { .. } = self.phase {
            return if self.is_settled() { Step::Over } else { Step::Await };
        }
        if stopping {
            self.close(Phase::Closing { lingers: false }, Ending::Stopped);
            return Step::Again;
        }
        let broken = self.session.links.borrow().broken();
        if let Some(ending) = broken {
            tracing::debug!(peer = %self.peer, "another shard has ended its side: closing");
            self.cut_off(ending);
            return Step::Again;
        }
        if let Some(refusal) = self.desk.review() {
            self.end_with(refusal, Ending::Denied);
            return Step::Again;
        }
        match self.phase {
            Phase::Moving(to) => {
                let has_left = self.session.outbox.borrow().is_empty();
                return if has_left { Step::Move(to) } else { Step::Await };
            }
            Phase::AwaitingRoom if !self.session.is_stalled() && !self.is_overloaded() => {
                self.resume();
            }
            Phase::AwaitingReply if !self.desk.is_blocked() => self.resume(),
            Phase::AwaitingReply if self.knows_end() && self.desk.end_waits() => {}
            Phase::Reading if self.side == Side::Ended => {
                // The rest is a request that will never be complete.
                self.close(Phase::Closing { lingers: false }, Ending::Closed);
            }
            _ => return Step::Await,
        }
        Step::Again
    }

    /// Notes that others have their turn now. Returns whether they should, since the client has
    /// asked for long work.
    pub(crate) fn take_break(&self) -> bool {
        self.desk.seat.take_break()
    }

    /// Whether bytes that arrive would be read now.
    pub fn wants_read(&self) -> bool {
        let has_room = match self.phase {
            Phase::Reading => !self.is_overloaded(),
            Phase::AwaitingReply => {
                self.input.len() < READ_BYTES && !self.desk.kept().is_too_much()
            }
            Phase::AwaitingRoom | Phase::Moving(_) | Phase::Closing { .. } => false,
        };
        // A shard that has ended its side no longer replies.
        has_room && self.side != Side::Ended && self.session.links.borrow().broken().is_none()
    }

    /// Notes that the client will send nothing more.
    pub const fn end_input(&mut self) {
        self.side = Side::Ended;
    }

    /// Notes that the client has ended its side although some of its bytes were not taken in yet. A
    /// blocked request gets its reply as if its time had passed, and unread bytes are taken in
    /// after that.
    pub(crate) fn foresee_end(&mut self) {
        if self.side == Side::Open {
            self.side = Side::Closed;
        }
        self.lapse_if_stalled();
    }

    fn lapse_if_stalled(&mut self) {
        if self.knows_end() && self.phase == Phase::AwaitingRoom {
            self.desk.lapse_if_stalled();
        }
    }

    /// Whether the client is known to have ended its side.
    pub(crate) fn knows_end(&self) -> bool {
        self.side != Side::Open
    }

    /// Takes bytes that were read, and carries out complete requests.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.desk.tally().receive(self.door_name, bytes.len());
        self.take_over(bytes);
    }

    /// Takes bytes that another shard has read, like [`Client::feed`].
    pub fn take_over(&mut self, bytes: &[u8]) {
        if self.phase == Phase::AwaitingReply {
            self.input.extend_from_slice(bytes);
            self.desk.keep(self.input.len());
        } else if self.input.is_empty() {
            let consumed = self.receive(bytes);
            self.input.extend_from_slice(&bytes[consumed..]);
        } else {
            self.input.extend_from_slice(bytes);
            self.resume();
        }
    }

    /// Returns the time by which the request that has begun to arrive must be complete, and
    /// somebody have signed in where that is needed. The time of a request counts from its first
    /// byte, is not renewed by further bytes, and stands still while nothing is read.
    pub fn frame_deadline(&mut self) -> Option<Timestamp> {
        let reads = self.wants_read() && self.phase == Phase::Reading;
        if self.input.is_empty() || !reads {
            self.frame_began = None;
        } else if self.frame_began.is_none() {
            self.frame_began = Some(self.desk.shard().clock().now());
        }
        let most = span_of(self.desk.limits().frame_timeout);
        let frame = self.frame_began.map(|began| began.after(most));
        if self.sign_in_by.is_none() {
            return frame;
        }
        frame.into_iter().chain(self.sign_in_deadline()).min()
    }

    /// Returns the time by which somebody must have signed in. It stands still while a password is
    /// checked.
    fn sign_in_deadline(&mut self) -> Option<Timestamp> {
        if self.desk.has_user() {
            self.sign_in_by = None;
        }
        self.sign_in_by.filter(|_| !self.session.signing.get() && !self.is_closing())
    }

    /// Closes the connection because that time has passed.
    pub fn frame_is_late(&mut self) {
        let reason = if self.sign_in_by.is_some() {
            "nobody has signed in in time"
        } else {
            "a request did not arrive in time"
        };
        self.log_closing(Ending::Late, reason);
        self.cut_off(Ending::Late);
    }

    /// Makes all shards forget the client, and counts why its connection has ended. Whatever was
    /// handed to it and not sent goes back.
    pub fn leave(&self) {
        let ending = self.ending.or_else(|| self.session.killed()).unwrap_or(Ending::Broken);
        self.desk.tally().close(ending);
        self.leave_uncounted();
    }

    /// Does the same for a client that shares its connection with others.
    pub(crate) fn leave_uncounted(&self) {
        self.desk.leave();
    }

    /// Gives up the client to another shard. Returns what that has to know, with the bytes that
    /// have arrived and were not carried out.
    #[must_use]
    pub fn move_out(self) -> Known {
        let client = self.number();
        self.desk.shard().part_with(client);
        let (about, dialect) = (self.session.about.take(), self.session.dialect.get());
        Known { client, about, dialect, input: self.input }
    }

    /// Whether every request that was taken in has its answer, of which bytes may be left to send.
    pub(crate) fn is_answered(&self) -> bool {
        self.input.is_empty() && self.session.outbox.borrow().awaits_nothing()
    }

    /// Whether an answer will never come.
    pub(crate) fn is_at_loss(&self) -> bool {
        self.session.outbox.borrow().is_at_loss()
    }

    const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Whether everything was sent that ever will be, and all requests are done.
    fn is_settled(&self) -> bool {
        let outbox = self.session.outbox.borrow();
        outbox.is_at_loss() || (outbox.is_empty() && self.session.links.borrow().is_idle())
    }

    /// Carries out the requests that have arrived and are not done.
    fn resume(&mut self) {
        if !self.is_closing() {
            self.phase = Phase::Reading;
        }
        let input = std::mem::take(&mut self.input);
        let consumed = self.receive(&input);
        self.input = input;
        self.input.drain(..consumed);
        if self.input.is_empty() {
            // An idle connection keeps no buffers.
            self.input = Vec::new();
        }
    }

    /// Carries out the complete requests at the front of `input`, as far as it may. Returns the
    /// number of bytes that are done.
    fn receive(&mut self, input: &[u8]) -> usize {
        if self.is_closing() {
            return input.len();
        }
        let shard = self.desk.shard().clone();
        self.desk.weigh(input.len());
        let (consumed, ended) = shard.at_one_moment(|| {
            let received = self.carry_out(input);
            shard.turn();
            received
        });
        self.desk.end_batch(self.door_name);
        let left = input.len() - consumed;
        self.desk.keep(left);
        if consumed > 0 {
            self.frame_began = None;
        }
        if let Some((ending, reason)) = ended {
            self.log_closing(ending, &reason);
            self.cut_off(ending);
            return input.len();
        }
        if left > FREE_BYTES
            && self.phase == Phase::Reading
            && let Some(refusal) = self.desk.refusal_of_begun(left)
        {
            self.refuse_begun(refusal);
            return input.len();
        }
        self.lapse_if_stalled();
        consumed
    }

    /// Carries out requests like [`Client::receive`]. If the connection has to end, returns why.
    fn carry_out(&mut self, input: &[u8]) -> (usize, Option<(Ending, String)>) {
        let Self { desk, door, phase, .. } = self;
        let mut rest = input;
        let mut ended = None;
        desk.seat.begin(0);
        loop {
            if let Some(obstacle) = desk.obstacle() {
                *phase = match obstacle {
                    Obstacle::Reply => Phase::AwaitingReply,
                    Obstacle::Room => Phase::AwaitingRoom,
                };
                break;
            }
            if rest.is_empty() {
                break;
            }
            match door.receive(rest, desk) {
                Ok(length) => {
                    rest = &rest[length..];
                    desk.seat.count();
                    continue;
                }
                Err(Next::Incomplete) => {}
                Err(Next::NoRoom) => {
                    desk.take_back();
                    *phase = Phase::AwaitingRoom;
                }
                Err(Next::Blocked) => {
                    desk.take_back();
                    *phase = Phase::AwaitingReply;
                }
                Err(Next::Move(to)) => {
                    desk.take_back();
                    *phase = Phase::Moving(to);
                }
                Err(Next::Close(ending, reason)) => ended = Some((ending, reason)),
            }
            break;
        }
        (input.len() - rest.len(), ended)
    }

    /// Ends a connection whose request has begun to arrive and may not be kept.
    fn refuse_begun(&mut self, refusal: Refusal) {
        if self.desk.seat.manners.tells_refusals {
            self.end_with(refusal, Ending::Refused);
        } else {
            self.desk.count_refusal(refusal.kind.into());
            self.log_closing(Ending::Refused, &refusal.sentence);
            self.cut_off(Ending::Refused);
        }
    }

    fn end_with(&mut self, refusal: Refusal, ending: Ending) {
        self.log_closing(ending, &refusal.sentence);
        let request = (self.number(), RequestId(0));
        let (after, dialect) = (Position::default(), self.session.dialect.get());
        self.session.outbox.borrow_mut().push_refusal(request, (after, refusal), dialect);
        self.cut_off(ending);
    }

    fn log_closing(&self, ending: Ending, reason: &str) {
        let shard = self.desk.shard();
        shard.notices().closing(shard.clock().now(), &self.peer, (ending, reason));
    }

    fn close(&mut self, closing: Phase, ending: Ending) {
        if !self.is_closing() {
            self.phase = closing;
            self.ending.get_or_insert(ending);
            self.input = Vec::new();
            self.desk.keep(0);
            self.frame_began = None;
            self.desk.end(ending == Ending::Stopped);
        }
    }

    /// Stops accepting requests from a client that may still be sending some.
    fn cut_off(&mut self, ending: Ending) {
        self.close(Phase::Closing { lingers: true }, ending);
        self.phase = Phase::Closing { lingers: true };
    }

    /// Whether the client has too much under way to be read from.
    fn is_overloaded(&self) -> bool {
        let outbox = self.session.outbox.borrow();
        outbox.is_full(self.desk.limits())
            || self.session.links.borrow().is_full()
            || outbox.bytes_waiting() > FREE_BYTES && self.desk.kept().is_too_much()
    }
}

fn span_of(duration: Duration) -> Span {
    Span::from_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
