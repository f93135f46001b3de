//! One connection: bytes from the socket to the door, answers from the outbox to the socket.
//!
//! For each readiness event everything complete is decoded and carried out, and then everything
//! that may leave is written. Nothing is read while the client has too much under way: that is the
//! back-pressure. A client that neither reads nor sends holds up nobody but itself. What the bytes
//! mean is the door's business.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::{Span, Timestamp};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;

use crate::config::Limits;
use crate::outbox::Encode;
use crate::shard::{Session, Shard};
use crate::stop::Stop;

/// How many bytes are read at a time, into a buffer that all connections of a shard share.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// How long a client that was cut off may take to read what it was answered and close.
const LINGER_MS: u64 = 1_000;

/// A protocol on one connection.
pub(crate) trait Door: Encode {
    /// Carries out the complete requests at the front of `input`, as many as it may.
    fn receive(&mut self, input: &[u8]) -> Received;

    /// Called around each write, when answers may have left: the door may grant the engine more.
    /// Answers whether it did.
    fn refill(&mut self) -> bool;

    /// Called once when the server is about to stop: the last chance to answer what is blocked.
    fn stopping(&mut self);

    /// Whether popped tasks whose frame was not sent whole go back to their queue.
    fn requeues(&self) -> bool;

    /// Whether the protocol has words for it that the store has failed. If not, its connections
    /// end then.
    fn can_tell_failure(&self) -> bool;
}

/// What became of the bytes that a door was given.
#[derive(Debug)]
pub(crate) struct Received {
    /// How many of them are done with.
    pub(crate) consumed: usize,
    /// What is to happen next.
    pub(crate) next: Next,
}

/// See [`Received::next`].
#[derive(Debug)]
pub(crate) enum Next {
    /// More bytes are needed.
    Read,
    /// The rest has to wait: until the client's bell rings if it was told to wait for room, else
    /// until it has less under way.
    Wait,
    /// The rest has to wait until a blocked request is answered. What comes meanwhile is kept, up
    /// to a bound, so that the end of the connection is noticed.
    Block,
    /// The connection ends once what was answered is sent.
    Close(String),
}

/// Everything that a connection needs besides its socket.
pub(crate) struct Context {
    pub(crate) shard: Rc<Shard>,
    pub(crate) limits: Limits,
    pub(crate) stop: Stop,
    /// Asked for when the stop has waited long enough for the clients.
    pub(crate) cut_off: Stop,
    /// The buffer that all connections read into, one after the other.
    pub(crate) scratch: RefCell<Vec<u8>>,
}

/// What requests wait for that have come already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    /// Nothing: there is none that is complete.
    Nothing,
    /// Room, or that less is under way.
    Room,
    /// The reply to a blocked request.
    Reply,
}

/// A connection at work.
struct Connection<'a, D> {
    context: &'a Context,
    stream: TcpStream,
    peer: SocketAddr,
    client: ClientId,
    session: Rc<Session>,
    door: D,
    /// The beginning of a request whose rest has not come yet, or requests that have to wait.
    input: Vec<u8>,
    /// When the first byte of an incomplete request came.
    frame_began: Option<Timestamp>,
    /// What the requests in `input` wait for.
    waits: Waits,
    /// Whether the client has ended its side.
    ended: bool,
    /// Whether no more requests are accepted.
    closing: bool,
    /// Whether the client may still be sending, since it was not the one to end the connection.
    lingers: bool,
}

/// Serves the connection of a client that the shard knows, until it ends, and has the shard forget
/// the client.
pub(crate) async fn serve<D: Door>(
    context: &Context,
    stream: TcpStream,
    peer: SocketAddr,
    (client, session): (ClientId, Rc<Session>),
    door: impl FnOnce(ClientId, Rc<Session>) -> D,
) {
    tracing::debug!(%peer, client = client.0, "connected");
    let mut connection = Connection {
        context,
        stream,
        peer,
        client,
        session: session.clone(),
        door: door(client, session),
        input: Vec::new(),
        frame_began: None,
        waits: Waits::Nothing,
        ended: false,
        closing: false,
        lingers: false,
    };
    let ended = connection.run().await;
    if ended.is_ok() {
        connection.linger().await;
    }
    let mut unsent = connection.session.outbox.borrow_mut().unsent();
    if !unsent.popped.is_empty() {
        let (tasks, requeued) = (unsent.popped.len(), connection.door.requeues());
        tracing::info!(%peer, tasks, requeued, "the last answer could not be sent whole");
    }
    if !connection.door.requeues() {
        unsent.popped.clear();
    }
    context.shard.disconnect(client, unsent);
    match ended {
        Ok(()) => tracing::debug!(%peer, client = client.0, "disconnected"),
        Err(error) => tracing::debug!(%peer, client = client.0, %error, "connection lost"),
    }
}

impl<D: Door> Connection<'_, D> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            if self.session.is_killed() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let failure = self.context.shard.failure();
            if let Some(failure) = &failure {
                let reached = self.context.shard.reached();
                self.session.outbox.borrow_mut().give_up(reached, failure);
                Shard::refuse_blocked(self.client, &self.session, failure);
            }
            self.write()?;
            let ends = failure.is_some() && !self.door.can_tell_failure();
            if ends || self.context.cut_off.is_asked_for() {
                return Ok(());
            }
            if self.context.stop.is_asked_for() && !self.closing {
                self.door.stopping();
                self.close();
                continue;
            }
            if self.closing && self.session.outbox.borrow().is_empty() {
                return Ok(());
            }
            if self.can_resume() {
                self.resume();
            } else if self.ended && self.waits == Waits::Nothing && !self.closing {
                // What is left is a request that will never be complete.
                self.close();
            } else if self.ended && self.waits == Waits::Reply {
                self.context.shard.end_waits(self.client);
            } else {
                self.await_event().await?;
            }
        }
    }

    /// Waits until there is something to do, and reads if there is something to read.
    async fn await_event(&mut self) -> io::Result<()> {
        let wants_write = self.session.outbox.borrow().encoded_bytes() > 0;
        let wants_read = self.wants_read();
        let interest = match (wants_read, wants_write) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        self.note_frame(wants_read && self.waits == Waits::Nothing);
        let deadline = self.frame_began.map(|began| {
            began.after(Span::from_ms(
                u64::try_from(self.context.limits.frame_timeout.as_millis()).unwrap_or(u64::MAX),
            ))
        });
        tokio::select! {
            ready = self.stream.ready(interest.unwrap_or(Interest::ERROR)),
                if interest.is_some() =>
            {
                if ready?.is_readable() && wants_read {
                    self.read()?;
                }
            }
            () = self.session.bell.notified() => {}
            () = self.context.stop.asked_for(), if !self.closing => {}
            () = self.context.cut_off.asked_for() => {}
            () = self.context.shard.clock().until(deadline.unwrap_or(Timestamp::MAX)),
                if deadline.is_some() =>
            {
                tracing::info!(peer = %self.peer, "a request did not arrive in time: closing");
                self.cut_off();
            }
        }
        Ok(())
    }

    /// Whether anything that comes would be read now.
    fn wants_read(&self) -> bool {
        let has_room = match self.waits {
            Waits::Nothing => !self.is_overloaded(),
            Waits::Room => false,
            Waits::Reply => self.input.len() < READ_BYTES,
        };
        has_room && !self.closing && !self.ended
    }

    /// Whether what the requests in `input` waited for has come.
    fn can_resume(&self) -> bool {
        match self.waits {
            Waits::Nothing => false,
            Waits::Room => !self.session.is_stalled() && !self.is_overloaded(),
            Waits::Reply => !self.session.is_blocked(),
        }
    }

    /// Reads once, and carries out what is complete.
    fn read(&mut self) -> io::Result<()> {
        let mut scratch = self.context.scratch.borrow_mut();
        let count = match self.stream.try_read(&mut scratch) {
            Ok(0) => {
                self.ended = true;
                return Ok(());
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if self.waits == Waits::Reply {
            self.input.extend_from_slice(&scratch[..count]);
        } else if self.input.is_empty() {
            let consumed = self.receive(&scratch[..count]);
            self.input.extend_from_slice(&scratch[consumed..count]);
        } else {
            self.input.extend_from_slice(&scratch[..count]);
            drop(scratch);
            self.resume();
        }
        Ok(())
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
        let Received { consumed, next } = self.door.receive(input);
        if consumed > 0 {
            self.frame_began = None;
        }
        self.context.shard.turn();
        match next {
            Next::Read => {}
            Next::Wait => self.waits = Waits::Room,
            Next::Block => self.waits = Waits::Reply,
            Next::Close(reason) => {
                tracing::info!(peer = %self.peer, %reason, "closing");
                self.cut_off();
                return input.len();
            }
        }
        consumed
    }

    /// Notes since when a request is incomplete. The clock starts with its first byte and not
    /// again with each, and does not run while nothing is read.
    fn note_frame(&mut self, reads: bool) {
        if self.input.is_empty() || !reads {
            self.frame_began = None;
        } else if self.frame_began.is_none() {
            self.frame_began = Some(self.context.shard.clock().now());
        }
    }

    /// Writes what may leave, as far as the socket takes it.
    fn write(&mut self) -> io::Result<()> {
        loop {
            if !self.closing {
                self.door.refill();
            }
            let reached = self.context.shard.reached();
            let mut outbox = self.session.outbox.borrow_mut();
            outbox.encode(&self.door, reached, self.context.limits.out_bytes_max);
            if outbox.encoded_bytes() == 0 {
                drop(outbox);
                // What needs no bytes may have made room for more.
                if self.closing || !self.door.refill() {
                    return Ok(());
                }
                continue;
            }
            match self.stream.try_write(outbox.unwritten()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => outbox.written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Accepts no more requests: what was answered is still sent.
    fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.waits = Waits::Nothing;
            self.input = Vec::new();
            self.frame_began = None;
            self.context.shard.retire(self.client);
        }
    }

    /// Accepts no more requests of a client that may still be sending some.
    fn cut_off(&mut self) {
        self.close();
        self.lingers = true;
    }

    /// Ends the sending side, and reads on into nothing until the client has closed too: a socket
    /// that is closed with unread input takes along the answers that are still under way. At a
    /// stop only those are waited for who are sending just then.
    async fn linger(&mut self) {
        let shut = self.stream.shutdown().await.is_ok();
        if !shut || (!self.lingers && !self.has_unread()) {
            return;
        }
        let clock = self.context.shard.clock();
        let last = clock.now().after(Span::from_ms(LINGER_MS));
        tokio::select! {
            () = self.discard() => {}
            () = clock.until(last) => {}
            () = self.context.cut_off.asked_for() => {}
        }
    }

    /// Whether something has come that was not read; what there is of it is read into nothing.
    fn has_unread(&self) -> bool {
        let read = self.stream.try_read(&mut self.context.scratch.borrow_mut());
        read.is_ok_and(|count| count > 0)
    }

    /// Reads into nothing until the client has closed.
    async fn discard(&self) {
        while self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut self.context.scratch.borrow_mut()) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Whether the client has so much under way that nothing more is read from it.
    fn is_overloaded(&self) -> bool {
        self.session.outbox.borrow().is_full(&self.context.limits)
    }
}
