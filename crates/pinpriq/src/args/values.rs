//! Values on the command line that have words of their own.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use pinpriq_proto::wire::beanstalkd::{TUBE_BYTES_MAX, is_tube_name};

use crate::units::{brief, duration_ms};

/// Reads a time of at least this many milliseconds.
pub(crate) fn time_from(least: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| match duration_ms(text)? {
        time if time < least => {
            let least = brief(least);
            Err(format!("`{text}` is too short: give at least `{least}`, such as `30s` or `1h30m`"))
        }
        time => Ok(time),
    }
}

/// Reads a time that cannot be 0.
pub(crate) fn time_above_0(text: &str) -> Result<u64, String> {
    time_from(1)(text)
}

/// Reads how long to wait; -1 is without end.
pub(crate) fn wait(text: &str) -> Result<i64, String> {
    if text == "-1" {
        return Ok(-1);
    }
    let time = duration_ms(text).map_err(|refusal| format!("{refusal}, or -1 to wait without end"));
    i64::try_from(time?).map_err(|_| format!("`{text}` is too long: -1 waits without end"))
}

/// Reads a time, or none.
pub(crate) fn time_or_none(text: &str) -> Result<OrNone<u64>, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(OrNone(None));
    }
    let time = duration_ms(text).map_err(|refusal| format!("{refusal}, or none"));
    Ok(OrNone(Some(time?)))
}

/// Reads a time to live of the pinpriq protocol.
pub(crate) fn packet_ttl(text: &str) -> Result<u16, String> {
    let time = u16::try_from(duration_ms(text)?).ok().filter(|time| *time > 0);
    time.ok_or_else(|| format!("`{text}` is not from 1 ms to 65535 ms: give one such as `30s`"))
}

/// Reads the name of a tube of beanstalkd.
pub(crate) fn tube(text: &str) -> Result<String, String> {
    if is_tube_name(text.as_bytes()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is no tube: a name has 1 to {TUBE_BYTES_MAX} letters, digits and -+/;.$_(), and \
         does not begin with -"
    ))
}

/// Reads a number that cannot be 0.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    number_in(1..=u64::MAX)(text)
}

/// Reads a whole number in a range.
pub(crate) fn number_in<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            if *most == u64::MAX {
                format!("`{text}` is not a whole number of at least {least}: give one such as 10")
            } else {
                format!("`{text}` is not a whole number from {least} to {most}")
            }
        })
    }
}

/// A whole number, or none: for priorities, times and bounds that may be missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrNone<T>(Option<T>);

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        match text.parse() {
            Ok(number) => Ok(Self(Some(number))),
            Err(_) => Err(format!("`{text}` is neither a whole number nor none")),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrNone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("NONE"),
        }
    }
}

/// The states in which a task can be: their letters, their names, and what they mean.
pub(crate) const STATES: [(&str, &str, &str); 6] = [
    ("R", "ready", "Can be taken"),
    ("T", "taken", "Held under a lease"),
    ("W", "waiting", "Its delay has not passed"),
    ("B", "buried", "Set aside"),
    ("Z", "zombie", "Finished, and kept for a while"),
    ("D", "done", "Finished, and kept for good"),
];
