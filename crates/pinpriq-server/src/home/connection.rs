//! One connection: bytes from the socket to the door, answers from the outbox to the socket.
//!
//! For each readiness event everything complete is decoded and carried out, and then everything
//! that may leave is written. Nothing is read while the client has too much under way: that is the
//! back-pressure. That the client has ended its side is noticed even then, if the system knows. A
//! client that neither reads nor sends holds up nobody but itself. What is said is the client's
//! business, and what the bytes mean is the door's.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, ready};

use pinpriq_engine::time::Span;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::client::{Client, Step};
use crate::host::shard::Shard;
use crate::stop::Stop;

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

/// What came of waiting for an event.
enum Event {
    /// Something has happened that is to be looked at.
    Happened,
    /// Nothing was waited for, since nothing is to be read now.
    ReadsNothing,
}

/// What the connections of a shard have in common.
pub(crate) struct Surroundings {
    pub(crate) shard: Rc<Shard>,
    /// Asked for when the server is to stop.
    pub(crate) stop: Stop,
    /// Asked for when the stop has waited long enough for the clients.
    pub(crate) cut_off: Stop,
    /// The buffer that all connections read into, one after the other.
    pub(crate) scratch: RefCell<Vec<u8>>,
}

/// A connection at work.
struct Connection<'a> {
    around: &'a Surroundings,
    stream: TcpStream,
    client: Client,
}

/// Serves the connection of a client that the shard knows, until it ends, and has the shard forget
/// the client. What has come of it before is carried out first. If another shard is to have the
/// connection, returns which, and what it needs for that.
pub(crate) async fn serve(
    around: &Surroundings,
    stream: TcpStream,
    client: Client,
    input: &[u8],
) -> Option<(usize, TcpStream, Vec<u8>)> {
    let (peer, number) = (client.peer, client.number().0);
    tracing::debug!(%peer, client = number, "connected");
    let mut connection = Connection { around, stream, client };
    if !input.is_empty() {
        connection.client.take_over(input);
    }
    let ended = connection.run().await;
    if let Ok(Some(to)) = ended {
        tracing::debug!(%peer, client = number, shard = to, "moved");
        let Connection { stream, client, .. } = connection;
        return Some((to, stream, client.move_out()));
    }
    if ended.is_ok() {
        connection.linger().await;
    }
    connection.client.leave();
    match ended {
        Ok(_) => tracing::debug!(%peer, client = number, "disconnected"),
        Err(error) => tracing::debug!(%peer, client = number, %error, "connection lost"),
    }
    None
}

impl Connection<'_> {
    /// Runs until the connection is over, or another shard is to have it.
    async fn run(&mut self) -> io::Result<Option<usize>> {
        loop {
            // Whatever it was rung for is looked at below.
            self.client.session.bell.hush();
            if self.client.session.killed().is_some() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let ends = self.client.ends_by_failure();
            self.write()?;
            if ends || self.around.cut_off.is_asked_for() {
                return Ok(None);
            }
            match self.client.proceed(self.around.stop.is_asked_for()) {
                Step::Again => {}
                Step::Await => {
                    self.await_event().await?;
                    if self.around.shard.clients() >= CLIENTS_MANY {
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
        let clock = self.around.shard.clock();
        let event = match self.client.frame_deadline() {
            None => poll_fn(|task| self.poll_event(task)).await?,
            Some(deadline) => tokio::select! {
                event = poll_fn(|task| self.poll_event(task)) => event?,
                () = clock.until(deadline) => {
                    self.client.frame_is_late();
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
        self.client.session.bell.attend();
        if self.client.wants_read() {
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
        let has_bytes = self.client.session.outbox.borrow().encoded_bytes() > 0;
        let wants_write = has_bytes && !self.client.holds_back();
        if wants_write && let Poll::Ready(ready) = self.stream.poll_write_ready(task) {
            return Poll::Ready(ready);
        }
        self.client.session.bell.poll_rung(task).map(Ok)
    }

    /// Waits until there is something to do while nothing is read. The end of the client's side is
    /// noticed all the same, whatever waits unread in the socket: it comes as an event of its own,
    /// apart from that there is something to read.
    async fn await_event_unread(&mut self) -> io::Result<()> {
        let watched = if self.client.knows_end() {
            // It stays true, and would be told again and again.
            Interest::ERROR
        } else {
            Interest::PRIORITY | Interest::ERROR
        };
        let event = poll_fn(|task| {
            self.client.session.bell.attend();
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
            self.client.foresee_end();
        }
        Ok(())
    }

    /// Reads once, and carries out what is complete. A read that does not fill the buffer has
    /// emptied the socket, and then the runtime waits for more without being told by another read.
    fn poll_read(&mut self, task: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = self.around.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.stream).poll_read(task, &mut buffer))?;
        match buffer.filled() {
            [] => self.client.end_input(),
            bytes => self.client.take_in(bytes),
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what may leave, as far as the socket takes it.
    fn write(&mut self) -> io::Result<()> {
        while self.client.encode() && !self.client.holds_back() {
            let written = self.stream.try_write(self.client.session.outbox.borrow().unwritten());
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.client.written(count),
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
        if !shut || (!self.client.lingers() && !self.has_unread()) {
            return;
        }
        let clock = self.around.shard.clock();
        let last = clock.now().after(Span::from_ms(LINGER_MS));
        tokio::select! {
            () = self.discard() => {}
            () = clock.until(last) => {}
            () = self.around.cut_off.asked_for() => {}
        }
    }

    /// Whether something has come that was not read; what there is of it is read into nothing.
    fn has_unread(&self) -> bool {
        let read = self.stream.try_read(&mut self.around.scratch.borrow_mut());
        read.is_ok_and(|count| count > 0)
    }

    /// Reads into nothing until the client has closed.
    async fn discard(&self) {
        while self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut self.around.scratch.borrow_mut()) {
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
