//! Refusals, and acknowledgements that may be refused.

use crate::records::primitives::{put_bytes, take_byte, take_bytes};
use crate::reply::{Refusal, RefusalKind};

use crate::letters::Malformed;

/// The byte of an acknowledgement that was granted. No kind of refusal has it.
const GRANTED: u8 = 0;

pub(super) fn put_ack(out: &mut Vec<u8>, ack: &Result<(), Refusal>) {
    match ack {
        Ok(()) => out.push(GRANTED),
        Err(refusal) => put_refusal(out, refusal),
    }
}

pub(super) fn take_ack(input: &mut &[u8]) -> Result<Result<(), Refusal>, Malformed> {
    if input.first() == Some(&GRANTED) {
        take_byte(input)?;
        return Ok(Ok(()));
    }
    take_refusal(input).map(Err)
}

pub(super) fn put_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    out.push(refusal_code(refusal.kind));
    put_bytes(out, refusal.sentence.as_bytes());
}

pub(super) fn take_refusal(input: &mut &[u8]) -> Result<Refusal, Malformed> {
    let kind = refusal_of(take_byte(input)?)?;
    let sentence = std::str::from_utf8(take_bytes(input)?);
    Ok(Refusal::new(kind, sentence.map_err(|_| Malformed::OutOfRange("sentence"))?))
}

const fn refusal_code(kind: RefusalKind) -> u8 {
    match kind {
        RefusalKind::BadArgument => 1,
        RefusalKind::NoQueue => 2,
        RefusalKind::NotFound => 3,
        RefusalKind::Exists => 4,
        RefusalKind::IdRequired => 5,
        RefusalKind::NotTaken => 6,
        RefusalKind::NotOwner => 7,
        RefusalKind::Stale => 8,
        RefusalKind::Taken => 9,
        RefusalKind::WrongState => 10,
        RefusalKind::TooLarge => 11,
        RefusalKind::Full => 12,
        RefusalKind::Paused => 13,
        RefusalKind::Busy => 14,
        RefusalKind::Store => 15,
        RefusalKind::Closing => 16,
        RefusalKind::CrossShard => 17,
        RefusalKind::ExecAbort => 18,
        RefusalKind::TryAgain => 19,
        RefusalKind::ClusterDown => 20,
        RefusalKind::Unknown => 21,
        RefusalKind::NoPerm => 22,
    }
}

const fn refusal_of(code: u8) -> Result<RefusalKind, Malformed> {
    Ok(match code {
        1 => RefusalKind::BadArgument,
        2 => RefusalKind::NoQueue,
        3 => RefusalKind::NotFound,
        4 => RefusalKind::Exists,
        5 => RefusalKind::IdRequired,
        6 => RefusalKind::NotTaken,
        7 => RefusalKind::NotOwner,
        8 => RefusalKind::Stale,
        9 => RefusalKind::Taken,
        10 => RefusalKind::WrongState,
        11 => RefusalKind::TooLarge,
        12 => RefusalKind::Full,
        13 => RefusalKind::Paused,
        14 => RefusalKind::Busy,
        15 => RefusalKind::Store,
        16 => RefusalKind::Closing,
        17 => RefusalKind::CrossShard,
        18 => RefusalKind::ExecAbort,
        19 => RefusalKind::TryAgain,
        20 => RefusalKind::ClusterDown,
        21 => RefusalKind::Unknown,
        22 => RefusalKind::NoPerm,
        _ => return Err(Malformed::OutOfRange("refusal")),
    })
}
