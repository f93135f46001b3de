//! The fields that both commands and outputs have: receipts, states and priorities.
//!
//! Each enumeration is written as a number that is set here for each variant, so a new variant
//! never changes the others. A field whose form is in the flags has three functions: for its code,
//! its bytes, and the way back.

use crate::records::primitives::{put_number, put_signed, take_number, take_signed};
use crate::records::task::{put_terms, take_terms};
use crate::task::{Grant, Receipt, StateKind, Terms};

use crate::letters::Malformed;
use crate::letters::flags::Packed;

/// Priority 0 takes no bytes.
#[inline]
pub(crate) fn pack_priority(flags: &mut Packed, priority: Option<i64>) {
    flags.code(
        2,
        match priority {
            Some(0) => 0,
            Some(_) => 1,
            None => 2,
        },
    );
}

#[inline]
pub(crate) fn put_priority(out: &mut Vec<u8>, priority: Option<i64>) {
    if let Some(priority) = priority
        && priority != 0
    {
        put_signed(out, priority);
    }
}

#[inline]
pub(crate) fn take_priority(code: u8, input: &mut &[u8]) -> Result<Option<i64>, Malformed> {
    match code {
        0 => Ok(Some(0)),
        1 => match take_signed(input)? {
            0 => Err(Malformed::OutOfRange("priority")),
            priority => Ok(Some(priority)),
        },
        2 => Ok(None),
        _ => Err(Malformed::OutOfRange("priority")),
    }
}

/// Terms without any value take no bytes.
#[inline]
pub(crate) fn put_terms_if_any(out: &mut Vec<u8>, terms: Terms<&[u8]>) {
    if !terms.are_none() {
        put_terms(out, terms);
    }
}

#[inline]
pub(crate) fn take_terms_if<'a>(
    are_there: bool,
    input: &mut &'a [u8],
) -> Result<Terms<&'a [u8]>, Malformed> {
    if !are_there {
        return Ok(Terms::NONE);
    }
    match take_terms(input)? {
        Terms::NONE => Err(Malformed::OutOfRange("terms")),
        terms => Ok(terms),
    }
}

#[inline]
pub(crate) fn put_receipt(out: &mut Vec<u8>, receipt: &Receipt) {
    put_number(out, receipt.number);
    put_grant(out, receipt.grant);
}

#[inline]
pub(crate) fn take_receipt(input: &mut &[u8]) -> Result<Receipt, Malformed> {
    Ok(Receipt { number: take_number(input)?, grant: take_grant(input)? })
}

#[inline]
pub(crate) fn put_grant(out: &mut Vec<u8>, grant: Grant) {
    put_number(out, grant.incarnation);
    put_number(out, grant.serial);
}

#[inline]
pub(crate) fn take_grant(input: &mut &[u8]) -> Result<Grant, Malformed> {
    Ok(Grant { incarnation: take_number(input)?, serial: take_number(input)? })
}

/// States are numbered from 1. 0 means none.
#[inline]
pub(crate) const fn kind_code(kind: Option<StateKind>) -> u8 {
    match kind {
        None => 0,
        Some(StateKind::Ready) => 1,
        Some(StateKind::Taken) => 2,
        Some(StateKind::Waiting) => 3,
        Some(StateKind::Buried) => 4,
        Some(StateKind::Zombie) => 5,
        Some(StateKind::Done) => 6,
    }
}

#[inline]
pub(crate) const fn kind_of(code: u8) -> Result<Option<StateKind>, Malformed> {
    Ok(match code {
        0 => None,
        1 => Some(StateKind::Ready),
        2 => Some(StateKind::Taken),
        3 => Some(StateKind::Waiting),
        4 => Some(StateKind::Buried),
        5 => Some(StateKind::Zombie),
        6 => Some(StateKind::Done),
        _ => return Err(Malformed::OutOfRange("state")),
    })
}
