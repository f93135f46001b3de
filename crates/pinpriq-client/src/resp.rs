//! A client of a RESP door.

use pinpriq_wire::resp::{DecodedReply, ReplyDecoder, Value, Words};

use crate::line::{Line, Lost};

/// A connection that speaks RESP, to pinpriq or to Redis.
#[derive(Debug)]
pub struct Resp {
    line: Line,
    decoder: ReplyDecoder,
}

impl Resp {
    /// Returns a client over a connection that was just opened.
    #[must_use]
    pub fn over(line: Line) -> Self {
        Self { line, decoder: ReplyDecoder::default() }
    }

    /// Returns the connection below.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// Returns the connection below for direct use.
    pub const fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Sends commands in one piece.
    pub fn send<'a>(&mut self, commands: impl IntoIterator<Item = &'a Words>) -> Result<(), Lost> {
        let mut bytes = Vec::new();
        commands.into_iter().for_each(|words| words.put(&mut bytes));
        Ok(self.line.send(&bytes)?)
    }

    /// Returns the reply to the earliest command that has none yet, which may be a refusal, or a
    /// message that the server sent by itself.
    pub fn reply(&mut self) -> Result<Value, Lost> {
        loop {
            match self.decoder.decode(self.line.unused()).map_err(Lost::Malformed)? {
                DecodedReply::Whole { value, length } => {
                    self.line.note_used(length);
                    return Ok(value);
                }
                DecodedReply::Incomplete { length } => self.line.note_used(length),
            }
            if !self.line.receive()? {
                return Err(Lost::Closed);
            }
        }
    }

    /// Sends one command and waits for its reply.
    pub fn ask(&mut self, words: &Words) -> Result<Value, Lost> {
        self.send([words])?;
        self.reply()
    }
}
