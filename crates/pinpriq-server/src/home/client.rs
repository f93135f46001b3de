//! What one client and its door say to each other, apart from the socket that carries it.
//!
//! Bytes come in through [`Client::take_in`] and are answered into the client's outbox; what may
//! leave is encoded by [`Client::encode`]. Between the two, [`Client::proceed`] decides what is
//! next. Nothing here waits: a connection does that on a socket, and the simulation without one.

use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_engine::reply::RefusalKind;
use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::{Span, Timestamp};

use super::connection::READ_BYTES;
use super::desk::Desk;
use crate::config::DoorName;
use crate::doors::door::{Door, Next};
use crate::doors::{DoorKind, DoorOptions};
use crate::host::seat::Obstacle;
use crate::host::shard::Shard;
use crate::session::Session;
use crate::session::ending::Ending;

/// How many bytes are held back at most until other shards have answered as well.
const HELD_BYTES_MAX: usize = 16 << 10;

/// What a client does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It is read from.
    Reading,
    /// Requests that have come wait for room, or that less is under way.
    AwaitingRoom,
    /// Requests that have come wait for the reply to a blocked one.
    AwaitingReply,
    /// This shard is to have the connection, with the requests that have come.
    Moving(usize),
    /// No more requests are accepted: what was answered is still sent.
    Closing {
        /// Whether the client may still be sending, since it was not the one to end the connection.
        lingers: bool,
    },
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

/// What is next for a client.
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
pub(crate) struct Client {
    pub(crate) session: Rc<Session>,
    pub(crate) peer: SocketAddr,
    desk: Desk,
    door: Box<dyn Door>,
    door_name: DoorName,
    /// The beginning of a request whose rest has not come yet, or requests that have to wait.
    input: Vec<u8>,
    /// When the first byte of an incomplete request came.
    frame_began: Option<Timestamp>,
    phase: Phase,
    side: Side,
    /// Why the connection ends, once it does.
    ending: Option<Ending>,
}

impl Client {
    /// Begins with a client that the shard knows, at this kind of door.
    pub(crate) fn begin(
        shard: Rc<Shard>,
        (client, session): (ClientId, Rc<Session>),
        (kind, peer): (&DoorKind, SocketAddr),
        options: &DoorOptions,
    ) -> Self {
        let door = (kind.open)(options, session.dialect.get());
        let who = (client, session.clone());
        let desk = Desk::new(shard, who, options.limits, (kind.manners)(options));
        Self {
            session,
            peer,
            desk,
            door,
            door_name: kind.name,
            input: Vec::new(),
            frame_began: None,
            phase: Phase::Reading,
            side: Side::Open,
            ending: None,
        }
    }

    /// Its number.
    pub(crate) const fn number(&self) -> ClientId {
        self.desk.client()
    }

    /// Whether the client may still be sending, since it was not the one to end the connection.
    pub(crate) fn lingers(&self) -> bool {
        self.phase == Phase::Closing { lingers: true }
    }

    /// Looks whether the store has failed, and gives up what waits for it in vain. Returns
    /// whether the connection ends for that reason, once it was written to.
    pub(crate) fn ends_by_failure(&mut self) -> bool {
        let shard = self.desk.shard();
        let Some(failure) = shard.failure() else { return false };
        let can_tell = self.desk.manners().tells_refusals;
        let reached = shard.reached();
        self.session.outbox.borrow_mut().give_up(reached, &failure, (can_tell, true));
        Shard::refuse_blocked(self.number(), &self.session, &failure);
        let ends = !can_tell || self.session.outbox.borrow().is_at_loss();
        if ends {
            self.ending.get_or_insert(Ending::StoreFailed);
        }
        ends
    }

    /// Encodes what may leave into the outbox. Returns whether there is anything to be written.
    pub(crate) fn encode(&mut self) -> bool {
        loop {
            if !self.is_closing() {
                self.desk.refill();
            }
            self.encode_what_may_leave();
            if self.session.outbox.borrow().encoded_bytes() > 0 {
                return true;
            }
            // What needs no bytes may have made room for more.
            if self.is_closing() || !self.desk.refill() {
                return false;
            }
        }
    }

    fn encode_what_may_leave(&self) {
        let shard = self.desk.shard();
        let reached = shard.reached();
        let fresh = || shard.lend_buffer();
        let lacks_payload = {
            let outbox = &mut *self.session.outbox.borrow_mut();
            let most = self.desk.limits().out_bytes_max;
            outbox.encode(&*self.door, reached, most, fresh, |kind| self.note_refusal(kind));
            outbox.lacks_payload()
        };
        if lacks_payload {
            self.desk.read_payloads();
        }
    }

    /// Counts a refusal that the client is told of. Where it cannot be told, its connection ends,
    /// and whoever has that end counts it.
    fn note_refusal(&self, kind: RefusalKind) {
        if self.desk.manners().tells_refusals {
            self.desk.tally().refuse(kind.into());
        }
    }

    /// Whether it is worth it to wait for more to be encoded before anything is written.
    pub(crate) fn holds_back(&self) -> bool {
        self.session.links.borrow().is_about_to_hear()
            && self.session.outbox.borrow().encoded_bytes() < HELD_BYTES_MAX
    }

    /// Notes that the kernel accepted this many bytes.
    pub(crate) fn written(&self, count: usize) {
        self.desk.tally().send(self.door_name, count);
        let spare = self.session.outbox.borrow_mut().written(count);
        if let Some(buffer) = spare {
            self.desk.shard().keep_buffer(buffer);
        }
        self.desk.note_sent();
    }

    /// Does one thing that can be done without waiting, and says what is next. To be called once
    /// everything was written that can be.
    pub(crate) fn proceed(&mut self, stopping: bool) -> Step {
        if let Phase::Closing { .. } = self.phase {
            return if self.is_settled() { Step::Over } else { Step::Await };
        }
        if stopping {
            self.close(Phase::Closing { lingers: false }, Ending::Stopped);
            return Step::Again;
        }
        let broken = self.session.links.borrow().broken();
        if let Some(ending) = broken {
            tracing::info!(peer = %self.peer, "another shard has ended its side: closing");
            self.cut_off(ending);
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
                // What is left is a request that will never be complete.
                self.close(Phase::Closing { lingers: false }, Ending::Closed);
            }
            _ => return Step::Await,
        }
        Step::Again
    }

    /// Whether anything that comes would be read now.
    pub(crate) fn wants_read(&self) -> bool {
        let has_room = match self.phase {
            Phase::Reading => !self.is_overloaded(),
            Phase::AwaitingReply => self.input.len() < READ_BYTES,
            Phase::AwaitingRoom | Phase::Moving(_) | Phase::Closing { .. } => false,
        };
        // What is asked of a shard that has ended its side is never answered.
        has_room && self.side != Side::Ended && self.session.links.borrow().broken().is_none()
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

    fn lapse_if_stalled(&mut self) {
        if self.knows_end() && self.phase == Phase::AwaitingRoom {
            self.desk.lapse_if_stalled();
        }
    }

    /// Whether the client is known to have ended its side.
    pub(crate) fn knows_end(&self) -> bool {
        self.side != Side::Open
    }

    /// Takes bytes that were read, and carries out what is complete.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        self.desk.tally().receive(self.door_name, bytes.len());
        self.take_over(bytes);
    }

    /// The same with bytes that another shard has read.
    pub(crate) fn take_over(&mut self, bytes: &[u8]) {
        if self.phase == Phase::AwaitingReply {
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
        let reads = self.wants_read() && self.phase == Phase::Reading;
        if self.input.is_empty() || !reads {
            self.frame_began = None;
        } else if self.frame_began.is_none() {
            self.frame_began = Some(self.desk.shard().clock().now());
        }
        let most = self.desk.limits().frame_timeout.as_millis();
        let most = Span::from_ms(u64::try_from(most).unwrap_or(u64::MAX));
        self.frame_began.map(|began| began.after(most))
    }

    /// Notes that the deadline has passed.
    pub(crate) fn frame_is_late(&mut self) {
        tracing::info!(peer = %self.peer, "a request did not arrive in time: closing");
        self.cut_off(Ending::Late);
    }

    /// Has all shards forget the client, and counts why its connection has ended. What was handed
    /// to it and was not sent goes back.
    pub(crate) fn leave(&self) {
        let ending = self.ending.or_else(|| self.session.killed()).unwrap_or(Ending::Broken);
        self.desk.tally().close(ending);
        self.desk.leave();
    }

    /// Gives up the client to another shard, with what has come and was not carried out.
    pub(crate) fn move_out(self) -> Vec<u8> {
        self.desk.shard().part_with(self.number());
        self.input
    }

    const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Whether everything has left that ever will, and all that was asked for is done.
    fn is_settled(&self) -> bool {
        let outbox = self.session.outbox.borrow();
        outbox.is_at_loss() || (outbox.is_empty() && self.session.links.borrow().is_idle())
    }

    /// Carries out what has come and was not done with.
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

    /// Carries out the complete requests at the front of `input`, as many as it may. Returns how
    /// many bytes are done with.
    fn receive(&mut self, input: &[u8]) -> usize {
        if self.is_closing() {
            return input.len();
        }
        let shard = self.desk.shard().clone();
        let (consumed, ended) = shard.at_one_moment(|| {
            let received = self.carry_out(input);
            shard.turn();
            received
        });
        if consumed > 0 {
            self.frame_began = None;
        }
        if let Some((ending, reason)) = ended {
            tracing::info!(peer = %self.peer, %reason, "closing");
            self.cut_off(ending);
            return input.len();
        }
        self.lapse_if_stalled();
        consumed
    }

    /// See [`Client::receive`]. If the connection has to end, returns why.
    fn carry_out(&mut self, input: &[u8]) -> (usize, Option<(Ending, String)>) {
        let Self { desk, door, phase, .. } = self;
        let mut rest = input;
        let mut ended = None;
        desk.begin();
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
                    desk.count();
                    continue;
                }
                Err(Next::Incomplete) => {}
                Err(Next::NoRoom) => *phase = Phase::AwaitingRoom,
                Err(Next::Move(to)) => *phase = Phase::Moving(to),
                Err(Next::Close(ending, reason)) => ended = Some((ending, reason)),
            }
            break;
        }
        (input.len() - rest.len(), ended)
    }

    fn close(&mut self, closing: Phase, ending: Ending) {
        if !self.is_closing() {
            self.phase = closing;
            self.ending.get_or_insert(ending);
            self.input = Vec::new();
            self.frame_began = None;
            self.desk.end(ending == Ending::Stopped);
        }
    }

    /// Accepts no more requests of a client that may still be sending some.
    fn cut_off(&mut self, ending: Ending) {
        self.close(Phase::Closing { lingers: true }, ending);
        self.phase = Phase::Closing { lingers: true };
    }

    /// Whether the client has so much under way that nothing more is read from it.
    fn is_overloaded(&self) -> bool {
        self.session.outbox.borrow().is_full(self.desk.limits())
            || self.session.links.borrow().is_full()
    }
}

#[cfg(test)]
mod tests;
