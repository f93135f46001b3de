//! A blocking client that tells apart what was answered and what was not.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use pinpriq_wire::Request;

use crate::serving::GUARD;

/// A queue that nobody pushes to.
const FENCE: &[u8] = b"fence";

/// One connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// A key and a payload.
pub(crate) type Packet = (Vec<u8>, Vec<u8>);

/// The bytes of a request.
pub(crate) fn bytes_of(request: Request<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.put(&mut bytes).unwrap();
    bytes
}

/// The bytes of a push.
pub(crate) fn push(queue: &[u8], ttl_ms: u16, priority: u8, key: &[u8], payload: &[u8]) -> Vec<u8> {
    bytes_of(Request::Push { queue, ttl_ms, priority, key, payload })
}

impl Wire {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.set_write_timeout(Some(GUARD)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends some requests and a fence, and waits until all of them are done.
    pub(crate) fn try_fenced(&mut self, requests: &[u8]) -> io::Result<()> {
        let fence = bytes_of(Request::Pop { queue: FENCE });
        self.stream.write_all(&[requests, &fence].concat())?;
        let reply = self.try_frame()?;
        assert_eq!(reply, [], "a frame that nobody expects");
        Ok(())
    }

    pub(crate) fn fenced(&mut self, requests: &[u8]) {
        self.try_fenced(requests).unwrap();
    }

    pub(crate) fn try_pop(&mut self, queue: &[u8]) -> io::Result<Vec<Packet>> {
        self.stream.write_all(&bytes_of(Request::Pop { queue }))?;
        self.try_frame()
    }

    pub(crate) fn pop(&mut self, queue: &[u8]) -> Vec<Packet> {
        self.try_pop(queue).unwrap()
    }

    /// Pops, and answers the payloads.
    pub(crate) fn payloads(&mut self, queue: &[u8]) -> Vec<Vec<u8>> {
        self.pop(queue).into_iter().map(|(_, payload)| payload).collect()
    }

    /// Reads one reply or counted delivery.
    pub(crate) fn try_frame(&mut self) -> io::Result<Vec<Packet>> {
        let count = self.length()?;
        (0..count)
            .map(|_| {
                let (key, payload) = (self.length()?, self.length()?);
                Ok((self.bytes(key)?, self.bytes(payload)?))
            })
            .collect()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads until the server closes, in order or not, and answers how many bytes came.
    pub(crate) fn ended(&mut self) -> usize {
        let mut bytes = Vec::new();
        if let Err(error) = self.reader.read_to_end(&mut bytes) {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        bytes.len()
    }

    fn length(&mut self) -> io::Result<usize> {
        let bytes = self.bytes(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }
}
