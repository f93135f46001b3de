//! A connection to a pinpriq door.

use pinpriq_proto::wire::{Framing, Packet, Piece, ReplyDecoder};

use super::{Line, Lost};

/// A connection that speaks the pinpriq protocol.
#[derive(Debug)]
pub struct Wire {
    line: Line,
}

/// How reading a frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A frame with this number of packets.
    Whole(u16),
    /// No frame: the server closed the connection in order.
    Closed,
    /// Part of a frame: the receiver wants no more packets.
    Unwanted,
}

/// Whether the receiver wants more packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Yes.
    More,
    /// No, as when the reader of a pipe has gone.
    NoMore,
}

impl Wire {
    /// Returns a client over a connection that was just opened.
    #[must_use]
    pub const fn over(line: Line) -> Self {
        Self { line }
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

    /// Reads one frame and hands each of its packets to `take`, whose error ends the reading.
    ///
    /// With bare framing a frame is one packet. Waits without a limit.
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
                    while self.line.unused().len() < needed_at_least {
                        if !self.line.receive()? {
                            let is_empty = self.line.unused().is_empty();
                            return if decoder.is_between_frames() && is_empty {
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Returns what a client reads from a server that sends this and closes.
    fn read(sent: &[u8]) -> Vec<Result<Frame, String>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent = sent.to_vec();
        let server = thread::spawn(move || listener.accept().unwrap().0.write_all(&sent).unwrap());
        let mut wire = Wire::over(Line::connect(address).unwrap());
        let mut frames = Vec::new();
        loop {
            let frame = wire.frame(Framing::Counted, |_| Ok::<_, ()>(Wanted::More));
            let frame = frame.map(Result::unwrap).map_err(|lost| lost.to_string());
            let goes_on = matches!(frame, Ok(Frame::Whole(_)));
            frames.push(frame);
            if !goes_on {
                server.join().unwrap();
                return frames;
            }
        }
    }

    #[test]
    fn only_a_close_between_two_frames_is_in_good_order() {
        // Two frames: one with a packet without a key and the payload "p", and an empty one.
        let frames = *b"\x00\x01\x00\x00\x00\x01p\x00\x00";
        for cut in 0..=frames.len() {
            let read = read(&frames[..cut]);
            let is_between = [0, 7, 9].contains(&cut);
            assert_eq!(read.last() == Some(&Ok(Frame::Closed)), is_between, "{cut}: {read:?}");
            assert_eq!(read.iter().filter(|it| matches!(it, Ok(Frame::Whole(_)))).count(), {
                usize::from(cut >= 7) + usize::from(cut >= 9)
            });
        }
    }
}
