//! A connection that speaks RESP, to pinpriq or to Redis.
//!
//! It sends what it is given and answers what comes. Whatever goes wrong means that the
//! connection is gone.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use pinpriq_wire::resp::{DecodedReply, ReplyDecoder, Value, put_command};

use crate::fault::Fallible;
use crate::process::GUARD;

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A connection.
pub(crate) struct Wire {
    stream: TcpStream,
    decoder: ReplyDecoder,
    received: Vec<u8>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Fallible<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GUARD))?;
        stream.set_write_timeout(Some(GUARD))?;
        Ok(Self { stream, decoder: ReplyDecoder::default(), received: Vec::new() })
    }

    /// Sends commands in one piece.
    pub(crate) fn send(&mut self, commands: &[Vec<Vec<u8>>]) -> Fallible<()> {
        let mut bytes = Vec::new();
        for command in commands {
            let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            put_command(&mut bytes, &words);
        }
        Ok(self.stream.write_all(&bytes)?)
    }

    /// Waits for one reply.
    pub(crate) fn reply(&mut self) -> Fallible<Value> {
        loop {
            match self.decoder.decode(&self.received)? {
                DecodedReply::Whole { value, length } => {
                    self.received.drain(..length);
                    return Ok(value);
                }
                DecodedReply::Incomplete { length } => {
                    self.received.drain(..length);
                }
            }
            let mut chunk = vec![0; CHUNK_BYTES];
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err("the connection was closed".into());
            }
            self.received.extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
    }

    /// Sends one command and waits for its reply.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Fallible<Value> {
        self.send(&[words.iter().map(|word| word.to_vec()).collect()])?;
        self.reply()
    }
}
