//! The socket of an HTTP connection: counts its bytes, and notes when everything has left.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::config::DoorName;
use crate::home::visit::Wire;
use crate::host::tally::Tally;

/// A socket that is watched.
pub(super) struct Watched {
    stream: TcpStream,
    wire: Arc<Wire>,
    tally: Rc<Tally>,
    /// Whether a byte has come.
    begun: Rc<Cell<bool>>,
}

impl Watched {
    /// Watches a socket.
    pub(super) fn new(stream: TcpStream, wire: Arc<Wire>, tally: Rc<Tally>) -> Self {
        Self { stream, wire, tally, begun: Rc::default() }
    }

    /// Returns where it is noted that a byte has come.
    pub(super) fn begun(&self) -> Rc<Cell<bool>> {
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
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        self.tally.receive(DoorName::Http, count);
        self.begun.set(self.begun.get() || count > 0);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.tally.send(DoorName::Http, count);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
        self.tally.send(DoorName::Http, count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.wire.note_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
