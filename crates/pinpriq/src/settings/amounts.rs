//! Numbers, sizes and times with bounds, as settings have them.
//!
//! Sizes and times are plain numbers, of bytes or milliseconds, or have units; `units.rs` reads
//! these. In the file, those with units are texts.

use std::str::FromStr;

use serde::Deserialize;

use crate::units;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Bounded<const MAX: u64, const MIN: u64 = 1>(u64);

impl<const MAX: u64, const MIN: u64> Bounded<MAX, MIN> {
    /// The number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

impl<const MAX: u64, const MIN: u64> TryFrom<i64> for Bounded<MAX, MIN> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match u64::try_from(number) {
            Ok(fits) if (MIN..=MAX).contains(&fits) => Ok(Self(fits)),
            _ => Err(format!("it must be from {MIN} to {MAX}, not {number}")),
        }
    }
}

impl<const MAX: u64, const MIN: u64> FromStr for Bounded<MAX, MIN> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<i64>() {
            Ok(number) => Self::try_from(number),
            Err(_) => Err(format!("it must be a whole number from {MIN} to {MAX}")),
        }
    }
}

/// A size from 1 to `MAX` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct Size<const MAX: u64>(u64);

/// A time from 1 to `MAX` milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct Time<const MAX: u64>(u64);

/// A time from 1 to `MAX` milliseconds, or `off`, which 0 means too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct TimeOrOff<const MAX: u64>(Option<Time<MAX>>);

/// What the file may have in place of a size or a time.
#[derive(Deserialize)]
#[serde(untagged, expecting = "it must be a whole number, or a text such as \"30s\" or \"64MiB\"")]
enum NumberOrText {
    Number(i64),
    Text(String),
}

impl NumberOrText {
    /// The same as on the command line.
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl<const MAX: u64> Size<MAX> {
    /// The number of bytes.
    pub(crate) const fn bytes(self) -> u64 {
        self.0
    }
}

impl<const MAX: u64> FromStr for Size<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::bytes(text)? {
            bytes @ 1.. if bytes <= MAX => Ok(Self(bytes)),
            _ => Err(format!(
                "`{text}` is out of bounds: give a size from 1 to {MAX} bytes, such as `4096` or \
                 `64KiB`"
            )),
        }
    }
}

impl<const MAX: u64> Time<MAX> {
    /// The number of milliseconds.
    pub(crate) const fn ms(self) -> u64 {
        self.0
    }
}

impl<const MAX: u64> FromStr for Time<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::duration_ms(text)? {
            ms @ 1.. if ms <= MAX => Ok(Self(ms)),
            _ => Err(format!(
                "`{text}` is out of bounds: give a time from 1 to {MAX} ms, such as `500ms` or \
                 `30s`"
            )),
        }
    }
}

impl<const MAX: u64> TimeOrOff<MAX> {
    /// The number of milliseconds, unless it is off.
    pub(crate) fn ms(self) -> Option<u64> {
        self.0.map(Time::ms)
    }
}

impl<const MAX: u64> FromStr for TimeOrOff<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" | "0" => Ok(Self(None)),
            _ => text.parse().map(|time| Self(Some(time))).map_err(|error| error + ", or `off`"),
        }
    }
}

/// Has the file give what the command line gives.
macro_rules! from_file {
    ($($of:ident),+) => {$(
        impl<const MAX: u64> TryFrom<NumberOrText> for $of<MAX> {
            type Error = String;

            fn try_from(given: NumberOrText) -> Result<Self, String> {
                given.text().parse()
            }
        }
    )+};
}

from_file!(Size, Time, TimeOrOff);
