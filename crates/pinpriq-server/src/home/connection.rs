//! One connection: it passes bytes from the socket to the door, and replies from the outbox to the
//! socket.
//!
//! On each readiness event it decodes and carries out every complete request, and then writes
//! everything that may be sent. It reads nothing while the client has too much under way: this is
//! the back-pressure. Even then it notices that the client has ended its side, if the system knows.
//! A client that neither reads nor sends delays only itself. The conversation is up to `client`,
//! and the meaning of the bytes up to the door.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, ready};
use std::time::Duration;

use pinpriq_proto::time::Span;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, Interest, ReadBuf};

use super::client::{Client, Step};
use crate::host::seat::lasts_long;
use crate::host::shard::Shard;
use crate::letters::letter::Known;
use crate::stop::Stop;
use crate::tls::socket::Socket;

/// How many bytes are read at a time, into a buffer shared by all connections of a shard.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// How long a client that was cut off may take to read its replies and close.
const LINGER_MS: u64 = 1_000;

/// From this number of clients, replies are sent only after everything that has arrived was read.
///
/// Sending a reply wakes the process that waits for it, which costs as much as many requests.
/// Replies sent in a row wake a busy machine only once. With few clients it is better to send each
/// reply at once: they work while the server reads from the others.
const CLIENTS_MANY: usize = 32;

/// The result of waiting for an event.
enum Event {
    /// Something has happened that needs attention.
    Happened,
    /// Nothing was awaited, since nothing may be read now.
    ReadsNothing,
}

/// What the connections of a shard share.
pub(crate) struct Surroundings {
    pub(crate) shard: Rc<Shard>,
    /// Requested when the server must stop.
    pub(crate) stop: Stop,
    /// Requested when the stop has waited long enough for the clients.
    pub(crate) cut_off: Stop,
    /// The buffer that all connections read into, one after another.
    pub(crate) scratch: RefCell<Vec<u8>>,
}

/// A connection at work.
struct Connection<'a> {
    around: &'a Surroundings,
    socket: Socket,
    client: Box<Client>,
    /// When it looked at the clock for the first time since others had their turn.
    worked_since: Cell<Option<Duration>>,
}

/// Serves the connection of a client known to the shard until it ends, and makes the shard forget
/// the client. Bytes that the client brings are carried out first.
///
/// If the connection must move to another shard, returns which, and what that shard needs for it.
/// The client is in a box, since a future keeps each value that it moves several times.
pub(crate) async fn serve(
    around: &Surroundings,
    socket: Socket,
    client: Box<Client>,
    input: &[u8],
) -> Option<(usize, Socket, Known)> {
    let (peer, number) = (client.peer, client.number().0);
    tracing::debug!(%peer, client = number, "connected");
    let worked_since = Cell::default();
    let mut connection = Connection { around, socket, client, worked_since };
    if !input.is_empty() {
        connection.client.take_over(input);
    }
    let ended = connection.run().await;
    if let Ok(Some(to)) = ended {
        tracing::debug!(%peer, client = number, shard = to, "moved");
        let Connection { socket, client, .. } = connection;
        return Some((to, socket, client.move_out()));
    }
    if ended.is_ok() {
        connection.linger().await;
    }
    connection.socket.close();
    connection.client.leave();
    match ended {
        Ok(_) => tracing::debug!(%peer, client = number, "disconnected"),
        Err(error) => tracing::debug!(%peer, client = number, %error, "connection lost"),
    }
    None
}

impl Connection<'_> {
    /// Runs until the connection is over or must move to another shard.
    async fn run(&mut self) -> io::Result<Option<usize>> {
        loop {
            // The code below checks everything that the bell may have rung for.
            self.client.has_rung();
            if self.client.is_killed() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let ends = self.client.ends_by_failure();
            let has_written = self.write()?;
            if ends && has_written || self.around.cut_off.is_asked_for() {
                return Ok(None);
            }
            if self.client.take_break() || !has_written {
                self.let_others_work().await;
            }
            if !has_written {
                continue;
            }
            match self.client.proceed(self.around.stop.is_asked_for()) {
                Step::Again if self.lasts_long() => self.let_others_work().await,
                Step::Again => {}
                Step::Await => {
                    self.worked_since.set(None);
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

    /// Whether it has worked for so long that others come first.
    fn lasts_long(&self) -> bool {
        lasts_long(&self.worked_since, self.around.shard.clock().passed())
    }

    /// Gives others their turn: not only tasks that are ready, sockets are looked at too.
    async fn let_others_work(&self) {
        tokio::task::yield_now().await;
        self.worked_since.set(None);
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

    /// Polls for the event of [`Connection::await_event`]. A stop rings the bell too.
    fn poll_event(&mut self, task: &mut task::Context<'_>) -> Poll<io::Result<Event>> {
        // The bytes read may ring the bell, which need not wake a task that is awake.
        self.client.session.bell.attend();
        if self.client.wants_read() {
            if let Poll::Ready(read) = self.poll_read(task) {
                return Poll::Ready(read.map(|()| Event::Happened));
            }
        } else {
            return Poll::Ready(Ok(Event::ReadsNothing));
        }
        self.poll_bell_and_room(task).map_ok(|()| Event::Happened)
    }

    /// Waits for the bell, or until the socket accepts more bytes.
    fn poll_bell_and_room(&self, task: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        let has_bytes = !self.client.unwritten().is_empty();
        let wants_write = has_bytes && !self.client.holds_back() || self.socket.wants_write();
        if wants_write && let Poll::Ready(ready) = self.socket.stream().poll_write_ready(task) {
            return Poll::Ready(ready);
        }
        self.client.session.bell.poll_rung(task).map(Ok)
    }

    /// Waits until there is something to do while nothing is read. The end of the client's side is
    /// still noticed, whatever waits unread in the socket: it is an event of its own, separate from
    /// readability.
    async fn await_event_unread(&mut self) -> io::Result<()> {
        let watched = if self.client.knows_end() {
            // The end stays true, and would be reported again and again.
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
            seen = self.socket.stream().ready(watched) => seen?,
        };
        if seen.is_error() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if seen.is_read_closed() {
            self.client.foresee_end();
        }
        Ok(())
    }

    /// Reads once, and carries out complete requests. A read that does not fill the buffer has
    /// emptied the socket: the runtime then waits for more without another read.
    fn poll_read(&mut self, task: &mut task::Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = self.around.scratch.borrow_mut();
        let mut buffer = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.socket).poll_read(task, &mut buffer))?;
        match buffer.filled() {
            [] => self.client.end_input(),
            bytes => self.client.feed(bytes),
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what may be sent, as far as the socket accepts it. Returns whether it came that far
    /// before others have their turn.
    fn write(&mut self) -> io::Result<bool> {
        self.socket.write_own()?;
        while self.client.encode() && !self.client.holds_back() {
            let written = self.socket.try_write(&self.client.unwritten());
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.client.written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
            if !self.client.session.outbox.borrow().is_empty() && self.lasts_long() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the sending side, then reads and discards bytes until the client has closed too.
    /// Closing a socket with unread input would destroy the replies still under way. During a stop
    /// it waits only for clients that are sending at this moment.
    async fn linger(&mut self) {
        let (clock, cut_off) = (self.around.shard.clock(), &self.around.cut_off);
        let last = clock.now().after(Span::from_ms(LINGER_MS));
        let is_shut = tokio::select! {
            biased;
            shut = self.socket.shutdown() => shut.is_ok(),
            () = clock.until(last) => false,
            () = cut_off.asked_for() => false,
        };
        if !is_shut || (!self.client.lingers() && !self.has_unread()) {
            return;
        }
        tokio::select! {
            () = self.discard() => {}
            () = clock.until(last) => {}
            () = cut_off.asked_for() => {}
        }
    }

    /// Whether unread bytes have arrived. Discards what it reads.
    fn has_unread(&self) -> bool {
        let read = self.socket.stream().try_read(&mut self.around.scratch.borrow_mut());
        read.is_ok_and(|count| count > 0)
    }

    /// Reads and discards bytes until the client has closed.
    async fn discard(&self) {
        while self.socket.stream().readable().await.is_ok() {
            match self.socket.stream().try_read(&mut self.around.scratch.borrow_mut()) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// Lets every other task of the thread run that is ready to. The runtime's own yield looks for
/// events of sockets first, which cost 2 to 3 % of the jobs at depth 1.
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
