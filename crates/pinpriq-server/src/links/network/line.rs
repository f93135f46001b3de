//! One connection between two nodes that have greeted each other.
//!
//! What is sent before the thread rests leaves in one write. Both sides say something at least five
//! times in the time to live of a session, and a side that is silent for that long is given up. So
//! is one that accepts nothing for that long, and one that begins a frame and does not come to its
//! end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pinpriq_proto::time::{Span, Timestamp};
use thiserror::Error;
use tokio::io::{AsyncRead as _, ReadBuf};

use crate::bell::Bell;
use crate::clock::Clock;
use crate::links::frame::{TooLong, claimed_bytes, put_frame, take_frame};
use crate::tls::socket::Socket;

/// How many pings are sent in the time after which a silent node is given up.
const PINGS: u64 = 5;

/// The most bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// A buffer that has grown beyond this is given back when it is empty.
const KEPT_BYTES: usize = 1 << 20;

/// A frame has as much more time as it takes at this pace.
const BYTES_PER_MS: usize = 1 << 10;

/// Why a connection has ended.
#[derive(Debug, Error)]
pub(super) enum Loss {
    /// It was ended from here.
    #[error("it is no longer wanted")]
    Wanted,
    /// The other side has closed it.
    #[error("it was closed by the other side")]
    Closed,
    /// It broke.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The other side was silent for too long.
    #[error("nothing has arrived for too long")]
    Silent,
    /// The other side accepts nothing.
    #[error("nothing was accepted for too long")]
    Stuck,
    /// A frame would be too long.
    #[error(transparent)]
    Frame(#[from] TooLong),
}

/// What waits to be written.
#[derive(Default)]
struct Outbound {
    /// Frames that no write was given yet.
    frames: Vec<u8>,
    /// Why no more frames can be sent.
    failed: Option<TooLong>,
}

/// One connection.
#[derive(Default)]
pub(super) struct Line {
    outbound: RefCell<Outbound>,
    /// How many bytes the current write was given and the socket has not accepted yet.
    unwritten: Cell<usize>,
    /// Rung when there is something to write, or the connection is to end.
    bell: Bell,
    ended: Cell<bool>,
}

/// When something has happened last.
struct Moments {
    heard: Timestamp,
    /// When the socket accepted something, or had accepted everything.
    accepted: Timestamp,
    /// Until when the frame that has begun to arrive must be complete.
    complete_by: Option<Timestamp>,
}

impl Line {
    /// Sends a body. An empty one is a ping.
    pub(super) fn send(&self, body: &[u8]) {
        let Outbound { frames, failed } = &mut *self.outbound.borrow_mut();
        if self.ended.get() || failed.is_some() {
            return;
        }
        *failed = put_frame(body, frames).err();
        self.bell.ring();
    }

    /// Ends the connection. Nothing more of it is delivered.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.bell.ring();
    }

    /// Returns how many bytes were sent that the socket has not accepted yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.outbound.borrow().frames.len() + self.unwritten.get()
    }

    /// Reads, writes and pings until the connection ends. Returns why.
    pub(super) async fn run(
        &self,
        mut socket: Socket,
        (ttl, clock): (Span, &dyn Clock),
        deliver: impl Fn(Vec<u8>),
    ) -> Loss {
        let served = self.serve(&mut socket, (ttl, clock), deliver).await;
        socket.close();
        match served {
            Ok(never) => match never {},
            // What was read first counts, since the other side may have said why it ends.
            Err(_) if self.ended.get() => Loss::Wanted,
            Err(loss) => loss,
        }
    }

    async fn serve(
        &self,
        socket: &mut Socket,
        (ttl, clock): (Span, &dyn Clock),
        deliver: impl Fn(Vec<u8>),
    ) -> Result<std::convert::Infallible, Loss> {
        let (mut room, mut input) = (vec![0; READ_BYTES], Vec::new());
        let mut writing = Writing::default();
        let now = clock.now();
        let mut moments = Moments { heard: now, accepted: now, complete_by: None };
        let every = Span::from_ms((ttl.ms() / PINGS).max(1));
        let mut ping = clock.until(now.after(every));
        loop {
            self.bell.hush();
            if self.ended.get() {
                return Err(Loss::Wanted);
            }
            if self.write(socket, &mut writing)? {
                moments.accepted = clock.now();
            }
            let waits = writing.has_bytes() || socket.wants_write();
            let wait = |task: &mut Context<'_>| {
                let mut buffer = ReadBuf::new(&mut room);
                let read = Pin::new(&mut *socket).poll_read(task, &mut buffer);
                let count = buffer.filled().len();
                let read = read.map_ok(|()| count);
                let is_due = ping.as_mut().poll(task).is_ready();
                let is_writable = waits && socket.stream().poll_write_ready(task)?.is_ready();
                let is_rung = self.bell.poll_rung(task).is_ready();
                let read = match read {
                    Poll::Ready(read) => Some(read?),
                    Poll::Pending if is_due || is_writable || is_rung => None,
                    Poll::Pending => return Poll::Pending,
                };
                Poll::Ready(io::Result::Ok((read, is_due)))
            };
            let (read, is_due) = poll_fn(wait).await?;
            if let Some(count) = read {
                if count == 0 {
                    return Err(Loss::Closed);
                }
                input.extend_from_slice(&room[..count]);
                let any = self.open(&mut input, &deliver)?;
                moments.note_frames((any, &input), clock.now(), ttl);
            }
            if is_due {
                // After a long rest of this thread the socket may accept more than it has seen.
                let now = clock.now();
                if self.write(socket, &mut writing)? {
                    moments.accepted = now;
                }
                moments.check(now, ttl)?;
                if self.waiting_bytes() == 0 {
                    self.send(&[]);
                }
                ping = clock.until(now.after(every));
            }
        }
    }

    /// Delivers the bodies of all complete frames, and removes these. Returns whether there were
    /// any.
    fn open(&self, input: &mut Vec<u8>, deliver: &impl Fn(Vec<u8>)) -> Result<bool, TooLong> {
        let mut at = 0;
        while let Some((body, used)) = take_frame(&input[at..])? {
            if self.ended.get() {
                break;
            }
            if !body.is_empty() {
                deliver(body.to_vec());
            }
            at += used;
        }
        input.drain(..at);
        if input.is_empty() && input.capacity() > KEPT_BYTES {
            *input = Vec::new();
        }
        Ok(at > 0)
    }

    /// Writes as much as the socket accepts. Returns whether it accepted anything, or everything is
    /// written.
    fn write(&self, socket: &mut Socket, writing: &mut Writing) -> Result<bool, Loss> {
        let mut has_moved = false;
        loop {
            if !writing.has_bytes() {
                let Outbound { frames, failed, .. } = &mut *self.outbound.borrow_mut();
                if let Some(bad) = failed {
                    return Err(Loss::Frame(*bad));
                }
                writing.refill(frames);
            }
            self.unwritten.set(writing.rest().len());
            if !writing.has_bytes() {
                socket.write_own()?;
                return Ok(true);
            }
            match socket.try_write(writing.rest()) {
                Ok(0) => return Err(Loss::Closed),
                Ok(count) => {
                    writing.at += count;
                    has_moved = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_moved),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The bytes that are being written.
#[derive(Default)]
struct Writing {
    bytes: Vec<u8>,
    at: usize,
}

impl Writing {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    const fn has_bytes(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// Takes these frames, and leaves an empty buffer.
    fn refill(&mut self, frames: &mut Vec<u8>) {
        self.bytes.clear();
        self.at = 0;
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        std::mem::swap(&mut self.bytes, frames);
    }
}

impl Moments {
    /// Notes that bytes have arrived, whether they completed any frames, and what is left of them.
    fn note_frames(&mut self, (any, input): (bool, &[u8]), now: Timestamp, ttl: Span) {
        self.heard = now;
        if input.is_empty() {
            self.complete_by = None;
        } else if any || self.complete_by.is_none() {
            let length = claimed_bytes(input).unwrap_or(0);
            let pace = Span::from_ms((length / BYTES_PER_MS) as u64);
            self.complete_by = Some(self.heard.after(ttl).after(pace));
        }
    }

    /// Checks whether the other side is there.
    fn check(&self, now: Timestamp, ttl: Span) -> Result<(), Loss> {
        if now >= self.heard.after(ttl) || self.complete_by.is_some_and(|by| now >= by) {
            return Err(Loss::Silent);
        }
        if now >= self.accepted.after(ttl) {
            return Err(Loss::Stuck);
        }
        Ok(())
    }
}
