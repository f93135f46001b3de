//! Ids: their text, and how uuids are made.

use pinpriq_proto::settings::Ids;
use pinpriq_proto::task::TaskId;
use pinpriq_proto::time::Timestamp;

/// The id that a text stands for in a queue with these ids. `None` if no task there can have it.
pub(crate) fn parse_id(ids: Ids, text: &[u8]) -> Option<TaskId> {
    match ids {
        Ids::Sequence | Ids::Time64 => parse_number(text).map(TaskId::Number),
        Ids::Uuid => parse_uuid(text).map(TaskId::Uuid),
        Ids::Given => Some(TaskId::Given(text.into())),
    }
}

/// Whether a task of this number can have this id in a queue with these ids.
pub(crate) fn can_have(ids: Ids, id: &TaskId, number: u64) -> bool {
    match ids {
        Ids::Sequence => *id == TaskId::Number(number),
        Ids::Time64 => matches!(id, TaskId::Number(_)),
        Ids::Uuid => matches!(id, TaskId::Uuid(_)),
        Ids::Given => matches!(id, TaskId::Given(_)),
    }
}

/// Creates a uuid of version 7: the moment in milliseconds, then the task's number. The number
/// makes it unique within the shard for ever, and the seed makes it differ from those of other
/// shards.
pub(crate) fn uuid_v7(now: Timestamp, number: u64, seed: u64) -> [u8; 16] {
    const VERSION: u128 = 7 << 76;
    const VARIANT: u128 = 2 << 62;
    let moment = u128::from(now.ms() & 0xFFFF_FFFF_FFFF) << 80;
    let above = u128::from(seed >> 52) << 64;
    let below = u128::from((number ^ seed) & (u64::MAX >> 2));
    (moment | VERSION | above | VARIANT | below).to_be_bytes()
}

/// Parses a decimal number without sign, space or leading zero.
fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Parses the usual 36 characters, in either case.
fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut nibbles = text.iter().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        let high = char::from(*nibbles.next()?.1).to_digit(16)?;
        let low = char::from(*nibbles.next()?.1).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_text_only() {
        assert_eq!(parse_number(b"0"), Some(0));
        assert_eq!(parse_number(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "01", "+1", "-1", " 1", "1 ", "1a", "18446744073709551616"] {
            assert_eq!(parse_number(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn uuids_come_back_from_their_text() {
        let bytes = uuid_v7(Timestamp::from_ms(1_700_000_000_123), 42, 0xDEAD_BEEF_0BAD_CAFE);
        let text = TaskId::Uuid(bytes).to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(text.as_bytes()[14], b'7', "version of {text}");
        assert_eq!(parse_id(Ids::Uuid, text.as_bytes()), Some(TaskId::Uuid(bytes)));
        assert_eq!(parse_id(Ids::Uuid, text.to_uppercase().as_bytes()), Some(TaskId::Uuid(bytes)));
        for wrong in ["", "x", &text[1..], &text.replace('-', "_")] {
            assert_eq!(parse_id(Ids::Uuid, wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn uuids_of_different_numbers_differ() {
        let now = Timestamp::from_ms(1);
        assert_ne!(uuid_v7(now, 1, 7), uuid_v7(now, 2, 7));
        assert_ne!(uuid_v7(now, 1, 7), uuid_v7(now, 1, 8));
    }
}
