//! A stream in pieces: what arrives in one read, and what a decoder has left of it.
//!
//! It replaces the loop of a connection. The targets for protocols call the decoders.

use std::ops::ControlFlow;

/// The ways in which every stream is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Not at all.
    Whole,
    /// Into single bytes.
    Bytes,
    /// Into pieces of 1 to 64 bytes, their lengths drawn from this seed.
    Drawn(u64),
}

/// The next step that a decoder asks for.
pub(crate) enum Step {
    /// This many bytes are done. Ask again. At least 1.
    Drop(usize),
    /// This many bytes are done, and more must arrive first.
    Wait(usize),
}

/// Feeds `stream` in pieces to `decode`, which is asked until it waits or ends the stream. Returns
/// the bytes that were not used.
pub(crate) fn feed<'a>(
    stream: &'a [u8],
    cut: Cut,
    mut decode: impl FnMut(&'a [u8]) -> ControlFlow<(), Step>,
) -> &'a [u8] {
    let (mut start, mut end) = (0, 0);
    let mut seed = match cut {
        Cut::Drawn(seed) => seed | 1,
        Cut::Whole | Cut::Bytes => 1,
    };
    while end < stream.len() {
        let more = match cut {
            Cut::Whole => stream.len(),
            Cut::Bytes => 1,
            Cut::Drawn(_) => {
                seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                usize::try_from(seed >> 58).unwrap_or(0) + 1
            }
        };
        end = stream.len().min(end.saturating_add(more));
        loop {
            let before = start;
            match decode(&stream[start..end]) {
                ControlFlow::Break(()) => return &stream[start..],
                ControlFlow::Continue(Step::Wait(done)) => {
                    start += done;
                    assert!(start <= end, "no more is done with than was there");
                    break;
                }
                ControlFlow::Continue(Step::Drop(done)) => start += done,
            }
            assert!(before < start && start <= end, "every step takes some bytes that were there");
        }
    }
    &stream[start..]
}
