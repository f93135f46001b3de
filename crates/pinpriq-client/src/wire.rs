//! A client of a pinpriq door.

use pinpriq_wire::{Framing, Packet, Piece, ReplyDecoder};

use crate::line::{Line, Lost};

/// A connection that speaks the pinpriq protocol.
#[derive(Debug)]
pub struct Wire {
    line: Line,
}

/// How reading a frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A frame with that many packets.
    Whole(u16),
    /// No frame: the server closed the connection in good order.
    Closed,
    /// Part of a frame: whoever gets the packets wants no more of them.
    Unwanted,
}

/// Whether whoever gets the packets wants more of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Yes.
    More,
    /// No, as when the reader of a pipe has gone.
    NoMore,
}

impl Wire {
    /// Speaks over a connection that was just opened.
    #[must_use]
    pub const fn over(line: Line) -> Self {
        Self { line }
    }

    /// The connection below.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// The same, to be spoken over directly.
    pub const fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Reads one frame and hands each of its packets to `take`, whose error ends the reading.
    ///
    /// With bare framing a frame is one packet. Waits for as long as it takes.
    pub fn frame<E>(
        &mut self,
        framing: Framing,
        mut take: impl FnMut(Packet<'_>) -> Result<Wanted, E>,
    ) -> Result<Result<Frame, E>, Lost> {
        let mut decoder = ReplyDecoder::new(framing);
        let mut packets = 1;
        loop {
            match decoder.decode(self.line.unused()) {
                Piece::Incomplete { needed_at_least } => {
                    let between = decoder.is_between_frames() && self.line.unused().is_empty();
                    while self.line.unused().len() < needed_at_least {
                        if !self.line.receive()? {
                            return if between {
                                Ok(Ok(Frame::Closed))
                            } else {
                                Err(Lost::CutShort)
                            };
                        }
                    }
                }
                Piece::Count { packets: count, length } => {
                    self.line.note_used(length);
                    packets = count;
                    if count == 0 {
                        return Ok(Ok(Frame::Whole(0)));
                    }
                }
                Piece::Packet { packet, left, length } => {
                    let wanted = take(packet);
                    self.line.note_used(length);
                    match wanted {
                        Err(error) => return Ok(Err(error)),
                        Ok(_) if left == 0 => return Ok(Ok(Frame::Whole(packets))),
                        Ok(Wanted::NoMore) => return Ok(Ok(Frame::Unwanted)),
                        Ok(Wanted::More) => {}
                    }
                }
            }
        }
    }
}
