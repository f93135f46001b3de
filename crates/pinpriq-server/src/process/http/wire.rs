//! The socket of an HTTP connection: counts its bytes, and notes when everything has left.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clients::ending::TLS_BEGINS;
use crate::config::DoorName;
use crate::doors::http::visit::Wire;
use crate::facts::tally::Tally;
use crate::tls::socket::Socket;

/// A time that passes.
pub(super) type Passing = Pin<Box<dyn Future<Output = ()>>>;

/// Whether a client has begun to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Begun {
    /// No byte has come.
    #[default]
    Not,
    /// A byte has come.
    Yes,
    /// The first bytes are those of TLS, and nothing decrypts here.
    WithTls,
}

/// A socket that is watched.
pub(super) struct Watched {
    socket: Socket,
    wire: Arc<Wire>,
    tally: Rc<Tally>,
    begun: Rc<Cell<Begun>>,
    /// Until when the rest of what the client sends is read, once nothing more is written.
    lingers: Option<Passing>,
    /// Begins that time.
    linger: Box<dyn Fn() -> Passing>,
}

impl Watched {
    /// Watches a socket. `linger` begins the time that its client has to notice that nothing more
    /// is read.
    pub(super) fn new(
        socket: Socket,
        wire: Arc<Wire>,
        tally: Rc<Tally>,
        linger: Box<dyn Fn() -> Passing>,
    ) -> Self {
        Self { socket, wire, tally, begun: Rc::default(), lingers: None, linger }
    }

    /// Returns where it is noted that a byte has come.
    pub(super) fn begun(&self) -> Rc<Cell<Begun>> {
        self.begun.clone()
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        self.tally.receive(DoorName::Http, count);
        if self.begun.get() == Begun::Not && count > 0 {
            let speaks_tls = buffer.filled()[before..].starts_with(&TLS_BEGINS);
            self.begun.set(if speaks_tls { Begun::WithTls } else { Begun::Yes });
            if speaks_tls {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.socket).poll_write(context, bytes))?;
        self.tally.send(DoorName::Http, count);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.socket).poll_write_vectored(context, pieces))?;
        self.tally.send(DoorName::Http, count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        self.wire.note_flush();
        Poll::Ready(Ok(()))
    }

    /// Ends the sending side, then reads and discards what still comes, for a short time. Closing a
    /// socket with unread input would destroy an answer that is on its way, such as the refusal of
    /// a body that is too large.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingers.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
            self.lingers = Some((self.linger)());
        }
        loop {
            if let Some(lingers) = &mut self.lingers
                && lingers.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            let mut scratch = [0; 16 << 10];
            let mut buffer = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
