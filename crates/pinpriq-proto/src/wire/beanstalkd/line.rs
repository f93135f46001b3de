//! Reads the line of a request, without its line end and without a body.
//!
//! It accepts what beanstalkd accepts, whose reading of numbers and names differs from one command
//! to the next. It does not know how long a job may be.

use super::answer::Fault;
use super::request::Request;
use super::tube::{is_of_names, is_tube_name};
use super::verb::Verb;

/// The most seconds for which a reservation may wait: the largest `int` of C.
const TIMEOUT_MAX_S: u32 = i32::MAX.unsigned_abs();

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    /// A request that is complete with its line.
    Request(Request<'a>),
    /// A put, whose body follows.
    Put(PutLine),
}

/// The line of a put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PutLine {
    pub(super) priority: u32,
    pub(super) delay_s: u32,
    /// At least 1.
    pub(super) ttr_s: u32,
    /// The length of the body, which is only declared.
    pub(super) body_bytes: u32,
    /// Whether something follows the last number. This is a fault unless the job is too big, which
    /// beanstalkd checks first.
    pub(super) is_continued: bool,
}

/// What is wrong with a line, and as what it is counted nevertheless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) fault: Fault,
    pub(super) counts_as: Option<Verb>,
}

/// An ill-formed line that is not counted.
const BAD_FORMAT: Refused = Refused { fault: Fault::BadFormat, counts_as: None };

/// Reads a line. It has no CR.
#[inline]
pub(super) fn read(line: &[u8]) -> Result<Line<'_>, Refused> {
    // For beanstalkd a line is a string of C, which must not end early.
    if line.contains(&0) {
        return Err(BAD_FORMAT);
    }
    let Some((verb, rest)) = Verb::split(line) else {
        return Err(Refused { fault: Fault::UnknownCommand, counts_as: None });
    };
    let request = match verb {
        Verb::Put => return put(rest).map(Line::Put).ok_or(BAD_FORMAT),
        Verb::PauseTube => return pause_tube(rest).map(Line::Request),
        _ => request(verb, rest),
    };
    request.map(Line::Request).ok_or(BAD_FORMAT)
}

/// Reads what follows the word of any other command.
fn request(verb: Verb, rest: &[u8]) -> Option<Request<'_>> {
    match verb {
        Verb::Put | Verb::PauseTube => None,
        Verb::Peek => last_id(rest).map(|id| Request::Peek { id }),
        Verb::PeekReady => alone(rest, Request::PeekReady),
        Verb::PeekDelayed => alone(rest, Request::PeekDelayed),
        Verb::PeekBuried => alone(rest, Request::PeekBuried),
        Verb::Reserve => alone(rest, Request::Reserve),
        Verb::ReserveWithTimeout => {
            // Whatever follows the number is ignored.
            let (timeout_s, _) = number_32(rest)?;
            (timeout_s <= TIMEOUT_MAX_S).then_some(Request::ReserveWithTimeout { timeout_s })
        }
        Verb::ReserveJob => last_id(rest).map(|id| Request::ReserveJob { id }),
        Verb::Delete => last_id(rest).map(|id| Request::Delete { id }),
        Verb::Release => {
            let (id, rest) = number(rest)?;
            let (priority, rest) = number_32(rest)?;
            let delay_s = last(number_32(rest))?;
            Some(Request::Release { id, priority, delay_s })
        }
        Verb::Bury => {
            let (id, rest) = number(rest)?;
            let priority = last(number_32(rest))?;
            Some(Request::Bury { id, priority })
        }
        Verb::Kick => kick_bound(rest).map(|bound| Request::Kick { bound }),
        Verb::KickJob => last_id(rest).map(|id| Request::KickJob { id }),
        Verb::Touch => last_id(rest).map(|id| Request::Touch { id }),
        Verb::Stats => alone(rest, Request::Stats),
        Verb::StatsJob => last_id(rest).map(|id| Request::StatsJob { id }),
        Verb::StatsTube => tube(rest).map(|tube| Request::StatsTube { tube }),
        Verb::Use => tube(rest).map(|tube| Request::Use { tube }),
        Verb::Watch => tube(rest).map(|tube| Request::Watch { tube }),
        Verb::Ignore => tube(rest).map(|tube| Request::Ignore { tube }),
        Verb::ListTubes => alone(rest, Request::ListTubes),
        Verb::ListTubeUsed => alone(rest, Request::ListTubeUsed),
        Verb::ListTubesWatched => alone(rest, Request::ListTubesWatched),
        // Whatever follows the word is ignored.
        Verb::Quit => Some(Request::Quit),
    }
}

#[inline]
fn put(rest: &[u8]) -> Option<PutLine> {
    let (priority, rest) = number_32(rest)?;
    let (delay_s, rest) = number_32(rest)?;
    let (ttr_s, rest) = number_32(rest)?;
    let (body_bytes, rest) = number_32(rest)?;
    let is_continued = !rest.is_empty();
    Some(PutLine { priority, delay_s, ttr_s: ttr_s.max(1), body_bytes, is_continued })
}

/// Reads the name of a tube and a number. The command is counted before the name is checked.
fn pause_tube(rest: &[u8]) -> Result<Request<'_>, Refused> {
    let rest = without_spaces(rest);
    let length = rest.iter().take_while(|byte| is_of_names(**byte)).count();
    let (tube, rest) = rest.split_at_checked(length).unwrap_or_default();
    match last(number_32(rest)) {
        Some(delay_s) if is_tube_name(tube) => Ok(Request::PauseTube { tube, delay_s }),
        Some(_) if !tube.is_empty() => {
            Err(Refused { fault: Fault::BadFormat, counts_as: Some(Verb::PauseTube) })
        }
        _ => Err(BAD_FORMAT),
    }
}

/// Returns the request if nothing follows its word.
fn alone<'a>(rest: &[u8], request: Request<'a>) -> Option<Request<'a>> {
    rest.is_empty().then_some(request)
}

/// Returns the rest of the line if it is the name of a tube, without any space before it.
fn tube(rest: &[u8]) -> Option<&[u8]> {
    is_tube_name(rest).then_some(rest)
}

/// Reads the number of a job, after which nothing may follow.
#[inline]
fn last_id(rest: &[u8]) -> Option<u64> {
    last(number(rest))
}

/// Returns the number if nothing follows it.
#[inline]
fn last<N>(number: Option<(N, &[u8])>) -> Option<N> {
    number.filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// Reads a number of up to 32 bits.
#[inline]
fn number_32(rest: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = number(rest)?;
    Some((u32::try_from(number).ok()?, rest))
}

/// Reads spaces and a number of up to 64 bits, and returns what follows it.
#[inline]
fn number(rest: &[u8]) -> Option<(u64, &[u8])> {
    digits(without_spaces(rest))
}

/// Reads at least one digit. Leading zeros do no harm.
#[inline]
pub(super) fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let [first @ b'0'..=b'9', rest @ ..] = bytes else { return None };
    let (mut number, mut rest) = (u64::from(first & 0x0F), rest);
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number.checked_mul(10)?.checked_add(u64::from(digit & 0x0F))?;
        rest = after;
    }
    Some((number, rest))
}

#[inline]
fn without_spaces(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [b' ', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// Reads the bound of a kick like `strtoul` of C, except that a number beyond 32 bits is refused.
fn kick_bound(rest: &[u8]) -> Option<u32> {
    let mut rest = rest;
    while let [b' ' | b'\t' | b'\n' | 0x0B | 0x0C, after @ ..] = rest {
        rest = after;
    }
    let (is_negative, rest) = match rest {
        [b'-', after @ ..] => (true, after),
        [b'+', after @ ..] => (false, after),
        _ => (false, rest),
    };
    // Whatever follows the digits is ignored.
    let (number, _) = digits(rest)?;
    let number = u32::try_from(number).ok()?;
    Some(if is_negative { number.wrapping_neg() } else { number })
}
