//! Replies of a RESP door, out of the bytes that were received.

use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value};

use super::{Buffer, Lost};

/// Decodes one reply after the other.
#[derive(Default, Debug)]
pub(crate) struct Replies(ReplyDecoder);

impl Replies {
    /// Returns the next reply, or none if more bytes are needed.
    pub(crate) fn next(&mut self, buffer: &mut Buffer) -> Result<Option<Value>, Lost> {
        let decoded = self.0.decode(buffer.unused());
        match decoded.map_err(|malformed| Lost::Malformed(malformed.to_string()))? {
            DecodedReply::Whole { value, length } => {
                buffer.note_used(length);
                Ok(Some(value))
            }
            DecodedReply::Incomplete { length } => {
                buffer.note_used(length);
                Ok(None)
            }
        }
    }
}
