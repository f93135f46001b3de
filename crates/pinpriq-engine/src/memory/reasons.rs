//! Shortens the reasons that are kept of what is over: of tasks that have left, and of attempts.

use pinpriq_proto::task::Bytes;

/// Shortens a reason to at most so many bytes. A text is cut between two characters.
pub(crate) fn cut(reason: Bytes, most: usize) -> Bytes {
    if reason.len() <= most {
        return reason;
    }
    let text = std::str::from_utf8(&reason);
    let end = text.map_or(most, |text| text.floor_char_boundary(most));
    Bytes::from(&reason[..end])
}
