//! One connection: bytes from the socket to the door, answers from the outbox to the socket.
//!
//! For each readiness event everything complete is decoded and carried out, and then everything
//! that may leave is written. Nothing is read while the client has too much under way: that is the
//! back-pressure. That the client has ended its side is noticed even then, if the system knows. A
//! client that neither reads nor sends holds up nobody but itself. What is said is the exchange's
//! business, and what the bytes mean is the door's.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, ready};

use pinpriq_engine::time::Span;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::exchange::{Exchange, Step};
use crate::outbox::Encode;
use crate::serving::Context;
use crate::shard::Session;

/// How many bytes are read at a time, into a buffer that all connections of a shard share.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// How long a client that was cut off may take to read what it was answered and close.
const LINGER_MS: u64 = 1_000;

/// From how many clients on answers leave only when everything was read that has come.
///
/// Sending an answer wakes whoever waits for it, which costs as much as many requests. Sent in a
/// row, answers to many wake a busy machine once. Few clients are better off with theirs at once:
/// they work while the server reads from the others.
const CLIENTS_MANY: usize = 32;

/// A protocol on one connection.
pub(crate) trait Door: Encode {
    /// Carries out the complete requests at the front of `input`, as many as it may.
    fn receive(&mut self, input: &[u8]) -> Received;

    /// Called around each write, when answers may have left: the door may grant the engine more.
    /// Returns whether it did.
    fn refill(&mut self) -> bool;

    /// Called when the client has ended its side while what it sent waits for room: from then on
    /// nothing is delivered to it unasked, if that could go on for long.
    fn credit_lapses(&mut self);

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
    /// The rest is carried out by this shard, which has the connection from then on.
    Move(usize),
    /// The connection ends once what was answered is sent.
    Close(String),
}

/// What came of waiting for an event.
enum Event {
    /// Something has happened that is to be looked at.
    Happened,
    /// Nothing was waited for, since nothing is to be read now.
    ReadsNothing,
}

/// A connection at work.
struct Connection<'a, D> {
    context: &'a Context,
    stream: TcpStream,
    session: Rc<Session>,
    exchange: Exchange<D>,
}

/// Serves the connection of a client that the shard knows, until it ends, and has the shard forget
/// the client. What has come of it before is carried out first. If another shard is to have the
/// connection, answers which, and what it needs for that.
pub(crate) async fn serve<D: Door>(
    context: &Context,
    stream: TcpStream,
    exchange: Exchange<D>,
    input: &[u8],
) -> Option<(usize, TcpStream, Vec<u8>)> {
    let (peer, client, session) = (exchange.peer, exchange.client, exchange.session.clone());
    tracing::debug!(%peer, client = client.0, "connected");
    let mut connection = Connection { context, stream, session, exchange };
    if !input.is_empty() {
        connection.exchange.take_in(input);
    }
    let ended = connection.run().await;
    if let Ok(Some(to)) = ended {
        tracing::debug!(%peer, client = client.0, shard = to, "moved");
        let Connection { stream, exchange, .. } = connection;
        return Some((to, stream, exchange.move_out()));
    }
    if ended.is_ok() {
        connection.linger().await;
    }
    connection.exchange.leave();
    match ended {
        Ok(_) => tracing::debug!(%peer, client = client.0, "disconnected"),
        Err(error) => tracing::debug!(%peer, client = client.0, %error, "connection lost"),
    }
    None
}

impl<D: Door> Connection<'_, D> {
    /// Runs until the connection is over, or another shard is to have it.
    async fn run(&mut self) -> io::Result<Option<usize>> {
        loop {
            // Whatever it was rung for is looked at below.
            self.session.bell.hush();
            if self.session.is_killed() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let ends = self.exchange.ends_by_failure();
            self.write()?;
            if ends || self.context.cut_off.is_asked_for() {
                return Ok(None);
            }
            match self.exchange.proceed(self.context.common.stop.is_asked_for()) {
                Step::Again => {}
                Step::Await => {
                    self.await_event().await?;
                    if self.context.shard.clients() >= CLIENTS_MANY {
                        poll_fn(stand_back()).await;
                    }
                }
                Step::Move(to) => return Ok(Some(to)),
                Step::Over => return Ok(None),
            }
        }
    }

    /// Waits until there is something to do, and reads if there is something to read.
    async fn await_event(&mut self) -> io::Result<()> {
        let clock = self.context.shard.clock();
        let event = match self.exchange.frame_deadline() {
            None => poll_fn(|task| self.poll_event(task)).await?,
            Some(deadline) => tokio::select! {
                event = poll_fn(|task| self.poll_event(task)) => event?,
                () = clock.until(deadline) => {
                    self.exchange.frame_is_late();
                    Event::Happened
                }
            },
        };
        match event {
            Event::Happened => Ok(()),
            Event::ReadsNothing => self.await_event_unread().await,
        }
    }

    /// See [`Connection::await_event`]. A stop rings the bell too.
    fn poll_event(&mut self, task: &mut task::Context<'_>) -> Poll<io::Result<Event>> {
        // What is read may ring the bell, which wakes nobody who is awake.
        self.session.bell.attend();
        if self.exchange.wants_read() {
            if let Poll::Ready(read) = self.poll_read(task) {
                return Poll::Ready(read.map(|()| Event::Happened));
            }
        } else if !planted!(EndUnseenBehindInput) {
            return Poll::Ready(Ok(Event::ReadsNothing));
        }
        self.poll_bell_and_room(task).map_ok(|()| Event::Happened)
    }

    /// Waits for the bell, or until the socket takes what is to be written.
    fn poll_bell_and_room(&self, task: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        let has_bytes = self.session.outbox.borrow().encoded_bytes() > 0;
        let wants_write = has_bytes && !self.exchange.holds_back();
        if wants_write && let Poll::Ready(ready) = self.stream.poll_write_ready(task) {
            return Poll::Ready(ready);
        }
        self.session.bell.poll_rung(task).map(Ok)
    }

    /// Waits until there is something to do while nothing is read. The end of the client's side is
    /// noticed all the same, whatever waits unread in the socket: it comes as an event of its own,
    /// apart from that there is something to read.
    async fn await_event_unread(&mut self) -> io::Result<()> {
        let watched = if self.exchange.knows_end() {
            // It stays true, and would be told again and again.
            Interest::ERROR
        } else {
            Interest::PRIORITY | Interest::ERROR
        };
        let event = poll_fn(|task| {
            self.session.bell.attend();
            self.poll_bell_and_room(task)
        });
        let seen = tokio::select! {
            event = event => return event,
            seen = self.stream.ready(watched) => seen?,
        };
        if seen.is_error() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if seen.is_read_closed() {
            self.exchange.foresee_end();
        }
        Ok(())
    }

    /// Reads once, and carries out what is complete. A read that does not fill the buffer has
    /// emptied the socket, and then the runtime waits for more without being told by another read.
    fn poll_read(&mut self, task: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = self.context.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.stream).poll_read(task, &mut buffer))?;
        match buffer.filled() {
            [] => self.exchange.end_input(),
            bytes => self.exchange.take_in(bytes),
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what may leave, as far as the socket takes it.
    fn write(&mut self) -> io::Result<()> {
        while self.exchange.encode() && !self.exchange.holds_back() {
            let written = self.stream.try_write(self.session.outbox.borrow().unwritten());
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.exchange.written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the sending side, and reads on into nothing until the client has closed too: a socket
    /// that is closed with unread input takes along the answers that are still under way. At a
    /// stop only those are waited for who are sending just then.
    async fn linger(&mut self) {
        let shut = self.stream.shutdown().await.is_ok();
        if !shut || (!self.exchange.lingers() && !self.has_unread()) {
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
}

/// Lets every other task of the thread have its turn that is to have one now. The runtime's own
/// yield looks for events of sockets first, which cost 2 to 3 % of the jobs at depth 1.
fn stand_back() -> impl FnMut(&mut task::Context<'_>) -> Poll<()> {
    let mut stood_back = false;
    move |task| {
        if std::mem::replace(&mut stood_back, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
