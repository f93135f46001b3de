//! Cursors: where the next page begins, as text. All of them begin with `0`.
//!
//! Each module is for one kind of page.

use std::fmt::Write as _;

use super::fault::{Fault, shown};
use super::options::CURSOR;
use super::parts::{Parts, number};
use super::reading::Room;
use super::writing::Writing;
use crate::export::ExportPlace;
use crate::looking::LeasePlace;

/// The cursor of the first page.
const START: &[u8] = b"0";

/// Pages of tasks: the cursor is a seq.
pub(crate) mod seq {
    use super::{CURSOR, Fault, Parts, Room, Writing, no_cursor, number};

    pub(crate) fn read(parts: &Parts<'_>, _: &Room<'_>) -> Result<u64, Fault> {
        let Some(cursor) = parts.given(CURSOR) else { return Ok(0) };
        number(cursor).ok_or_else(|| no_cursor(cursor))
    }

    pub(crate) fn write(after: u64, to: &mut Writing) {
        let after = Some(after).filter(|after| *after > 0).map(|after| after.to_string());
        to.option(CURSOR, after.as_ref().map(String::as_bytes));
    }
}

/// Pages of names: the cursor is the last one, in hexadecimal digits.
pub mod name {
    use super::{
        CURSOR, Fault, Parts, Room, START, Writing, bytes_of_digits, hexadecimal, no_cursor,
    };

    pub(crate) fn read<'a>(
        parts: &Parts<'a>,
        room: &'a Room<'a>,
    ) -> Result<Option<&'a [u8]>, Fault> {
        let name = parts.given(CURSOR).map(place_at).transpose()?.flatten();
        Ok(name.map(|name| &**room.name.get_or_init(|| name)))
    }

    pub(crate) fn write(after: Option<&[u8]>, to: &mut Writing) {
        to.option(CURSOR, after.map(cursor_after).as_ref().map(String::as_bytes));
    }

    /// Returns the cursor that continues after `name`.
    #[must_use]
    pub fn cursor_after(name: &[u8]) -> String {
        hexadecimal('n', name)
    }

    /// Returns the name that a cursor stands for, or `None` for the start.
    pub fn place_at(cursor: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if cursor == START {
            return Ok(None);
        }
        let name = cursor.strip_prefix(b"n").and_then(bytes_of_digits);
        name.map(Some).ok_or_else(|| no_cursor(cursor))
    }
}

/// Pages of leases: the cursor is the name of the queue in hexadecimal digits, the number of the
/// lane if it is one, and the seq.
pub mod lease {
    use std::fmt::Write as _;

    use super::{
        CURSOR, Fault, LeasePlace, Parts, Room, START, Writing, bytes_of_digits, hexadecimal,
        no_cursor, number,
    };

    pub(crate) fn read<'a>(
        parts: &Parts<'a>,
        room: &'a Room<'a>,
    ) -> Result<Option<LeasePlace<&'a [u8]>>, Fault> {
        let place = parts.given(CURSOR).map(place_at).transpose()?.flatten();
        Ok(place.map(|LeasePlace { lane, queue, seq }| {
            let queue = &**room.name.get_or_init(|| queue);
            LeasePlace { lane, queue, seq }
        }))
    }

    pub(crate) fn write(after: Option<LeasePlace<&[u8]>>, to: &mut Writing) {
        to.option(CURSOR, after.as_ref().map(cursor_after).as_ref().map(String::as_bytes));
    }

    /// Returns the cursor of the page after this place.
    #[must_use]
    pub fn cursor_after<B: AsRef<[u8]>>(place: &LeasePlace<B>) -> String {
        let mut cursor = hexadecimal('q', place.queue.as_ref());
        if let Some(lane) = place.lane {
            let _ = write!(cursor, "-{lane}");
        }
        let _ = write!(cursor, "-{}", place.seq);
        cursor
    }

    /// Returns the place that a cursor stands for, or `None` for the start.
    pub(super) fn place_at(cursor: &[u8]) -> Result<Option<LeasePlace<Vec<u8>>>, Fault> {
        if cursor == START {
            return Ok(None);
        }
        let parsed = || {
            let mut parts = cursor.strip_prefix(b"q")?.split(|byte| *byte == b'-');
            let queue = bytes_of_digits(parts.next()?)?;
            let numbers: Vec<u64> = parts.map(number).collect::<Option<_>>()?;
            match numbers[..] {
                [seq] => Some(LeasePlace { lane: None, queue, seq }),
                [lane, seq] => Some(LeasePlace { lane: Some(lane), queue, seq }),
                _ => None,
            }
        };
        parsed().map(Some).ok_or_else(|| no_cursor(cursor))
    }
}

/// Pages of an export: the cursor is a letter for the kind of the record before it, and its seq,
/// its key in hexadecimal digits, or its number.
pub mod export {
    use super::{
        CURSOR, ExportPlace, Fault, Parts, Room, START, Writing, bytes_of_digits, hexadecimal,
        no_cursor, number,
    };

    pub(crate) fn read<'a>(
        parts: &Parts<'a>,
        room: &'a Room<'a>,
    ) -> Result<ExportPlace<&'a [u8]>, Fault> {
        let place = parts.given(CURSOR).map(place_at).transpose()?.unwrap_or_default();
        Ok(match place {
            ExportPlace::Start => ExportPlace::Start,
            ExportPlace::Task(seq) => ExportPlace::Task(seq),
            ExportPlace::Window(key) => ExportPlace::Window(room.name.get_or_init(|| key.to_vec())),
            ExportPlace::Schedule(number) => ExportPlace::Schedule(number),
            ExportPlace::Share(name) => ExportPlace::Share(room.name.get_or_init(|| name.to_vec())),
        })
    }

    pub(crate) fn write(after: ExportPlace<&[u8]>, to: &mut Writing) {
        let after = Some(after).filter(|after| *after != ExportPlace::Start);
        to.option(CURSOR, after.as_ref().map(cursor_after).as_ref().map(String::as_bytes));
    }

    /// Returns the cursor of the page after this place.
    #[must_use]
    pub fn cursor_after<B: AsRef<[u8]>>(place: &ExportPlace<B>) -> String {
        match place {
            ExportPlace::Start => "0".to_owned(),
            ExportPlace::Task(seq) => format!("t{seq}"),
            ExportPlace::Window(key) => hexadecimal('w', key.as_ref()),
            ExportPlace::Schedule(number) => format!("s{number}"),
            ExportPlace::Share(name) => hexadecimal('r', name.as_ref()),
        }
    }

    /// Returns the place that a cursor stands for.
    pub(super) fn place_at(cursor: &[u8]) -> Result<ExportPlace, Fault> {
        let place = match cursor {
            START => Some(ExportPlace::Start),
            [b't', seq @ ..] => number(seq).map(ExportPlace::Task),
            [b'w', key @ ..] => bytes_of_digits(key).map(|key| ExportPlace::Window(key.into())),
            [b's', known @ ..] => number(known).map(ExportPlace::Schedule),
            [b'r', name @ ..] => bytes_of_digits(name).map(|name| ExportPlace::Share(name.into())),
            _ => None,
        };
        place.ok_or_else(|| no_cursor(cursor))
    }
}

/// Returns a letter and these bytes in hexadecimal digits.
fn hexadecimal(letter: char, bytes: &[u8]) -> String {
    let mut text = String::from(letter);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the bytes that these hexadecimal digits stand for.
fn bytes_of_digits(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.chunks_exact(2);
    let is_whole = pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some(digit(pair[0])? * 16 + digit(pair[1])?));
    bytes.collect::<Option<Vec<u8>>>().filter(|_| is_whole)
}

fn no_cursor(cursor: &[u8]) -> Fault {
    Fault::bad(format!(
        "{} is not a cursor: begin with 0 and go on with the one that was answered",
        shown(cursor)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_of_leases_come_back_from_their_text() {
        for (lane, queue, seq) in
            [(None, &b"jobs"[..], 7), (Some(5), b"", u64::MAX), (None, &[0, 255, b'-'], 1)]
        {
            let text = lease::cursor_after(&LeasePlace { lane, queue, seq });
            let place = LeasePlace { lane, queue: queue.to_vec(), seq };
            assert_eq!(lease::place_at(text.as_bytes()), Ok(Some(place)), "{text}");
        }
        assert_eq!(lease::place_at(b"0"), Ok(None));
        for wrong in
            ["", "1", "q", "q-", "q6", "q6-1", "q6a", "q6a-", "q6a-1-2-3", "x6a-1", "q6a-01"]
        {
            assert!(lease::place_at(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn cursors_of_exports_come_back_from_their_text() {
        for place in [
            ExportPlace::Start,
            ExportPlace::Task(u64::MAX),
            ExportPlace::Window(b"".as_slice().into()),
            ExportPlace::Window([0, 255, b't'].as_slice().into()),
            ExportPlace::Schedule(7),
            ExportPlace::Share(b"".as_slice().into()),
        ] {
            assert_eq!(export::place_at(export::cursor_after(&place).as_bytes()), Ok(place));
        }
        for wrong in ["", "1", "t", "t01", "t-1", "w0", "wxx", "s", "x1", "T1"] {
            assert!(export::place_at(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
