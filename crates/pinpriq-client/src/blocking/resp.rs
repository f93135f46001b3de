//! A connection to a RESP door.

use pinpriq_proto::wire::resp::{Value, Words};

use super::{Line, Lost};
use crate::transport::Replies;

/// A connection that speaks RESP, to pinpriq or to Redis.
#[derive(Debug)]
pub struct Resp {
    line: Line,
    replies: Replies,
}

impl Resp {
    /// Returns a client over a connection that was just opened.
    #[must_use]
    pub fn over(line: Line) -> Self {
        Self { line, replies: Replies::default() }
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
        self.line.reply(&mut self.replies)
    }

    /// Sends one command and waits for its reply.
    pub fn ask(&mut self, words: &Words) -> Result<Value, Lost> {
        self.send([words])?;
        self.reply()
    }
}
