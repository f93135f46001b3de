//! The received bytes of a connection that were not used yet.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How many bytes are read from the socket at a time. A larger frame or reply takes more calls.
const READ_BYTES: usize = 64 << 10;

/// Received bytes; those before `used` have been used.
#[derive(Default, Debug)]
pub(crate) struct Buffer {
    received: Vec<u8>,
    used: usize,
}

impl Buffer {
    /// Returns the bytes that were not used.
    pub(crate) fn unused(&self) -> &[u8] {
        self.received.get(self.used..).unwrap_or_default()
    }

    /// Notes that this number of bytes at the front have been used.
    pub(crate) const fn note_used(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Waits for more bytes after the unused ones. Returns false at the end of the stream. Loses
    /// nothing if it is dropped before its end.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<bool> {
        self.received.drain(..std::mem::take(&mut self.used));
        self.received.reserve(READ_BYTES);
        match from.read_buf(&mut self.received).await {
            // The server has ended the connection without a word, as if it were plain.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => Ok(read? > 0),
        }
    }
}
