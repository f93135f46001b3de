//! The body of a long answer that is in memory, in pieces. Between two pieces everybody else on the
//! thread has a turn.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// How many bytes are passed on at once.
const PIECE_BYTES: usize = 16 << 10;

/// See the module documentation.
pub(super) struct Pieces {
    rest: Bytes,
    /// The place among the answers that are in memory.
    _place: OwnedSemaphorePermit,
    /// Whether others have had their turn since the last piece.
    stood_back: bool,
}

impl Pieces {
    pub(super) fn of(bytes: Vec<u8>, place: OwnedSemaphorePermit) -> Self {
        Self { rest: bytes.into(), _place: place, stood_back: true }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.stood_back, false) {
            self.stood_back = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
