//! How far the outbox encodes ahead of its client. The doors encode, and a connection sends.

use pinpriq_engine::reply::{Output, Reply};
use pinpriq_engine::task::{ClientId, RequestId};
use pinpriq_store::Position;
use pinpriq_store::durable::Holds;

use super::{Dialect, Encode, Outbox};

const PIECES: usize = 1_000;
const PIECE: [u8; 10] = *b"0123456789";

/// Every answer has a thousand pieces.
struct LongAnswers;

impl Encode for LongAnswers {
    fn encode(
        &self,
        _: &Output,
        _: Dialect,
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
        _: usize,
    ) -> bool {
        let start = out.len();
        while *progress < PIECES && out.len() - start < room {
            out.extend_from_slice(&PIECE);
            *progress += 1;
        }
        *progress == PIECES
    }
}

#[test]
fn an_answer_of_any_length_is_encoded_only_so_far_ahead() {
    const MOST: usize = 256;
    let mut outbox = Outbox::default();
    let (client, request) = (ClientId(1), RequestId(1));
    for _ in 0..2 {
        let reply = Output::Reply { client, request, reply: Reply::Done };
        outbox.push(Position::default(), (reply, Holds::default()), Dialect::default());
    }
    let mut read = 0;
    while !outbox.is_empty() {
        outbox.encode(&LongAnswers, Position::default(), MOST, Vec::new, |_| {});
        let ahead = outbox.encoded_bytes();
        assert!(ahead > 0, "the client gets no more after {read} bytes");
        assert!(ahead < MOST + PIECE.len(), "{ahead} bytes are encoded ahead after {read}");
        let kept = outbox.bytes.len();
        assert!(kept < 2 * (MOST + PIECE.len()), "{kept} bytes are kept after {read}");
        // It reads slowly, and not everything.
        let taken = ahead.div_ceil(3);
        outbox.written(taken);
        read += taken;
    }
    assert_eq!(read, 2 * PIECES * PIECE.len());
}
