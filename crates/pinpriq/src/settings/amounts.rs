//! Numbers, sizes and times with bounds, as settings have them.
//!
//! Sizes and times are plain numbers, of bytes or milliseconds, or have units; `units.rs` reads
//! these. In the file, those with units are texts.

use std::str::FromStr;

use serde::Deserialize;

use crate::units::{self, brief};

/// The shortest time that an archive keeps. Nearly everything goes with less, and it cannot be
/// brought back.
const KEPT_MIN_MS: u64 = 3_600_000;

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

/// A time from `MIN` to `MAX` milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct Time<const MAX: u64, const MIN: u64 = 1>(u64);

/// A time from `MIN` to `MAX` milliseconds, or `off`, which 0 means too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct TimeOrOff<const MAX: u64, const MIN: u64 = 1>(Option<Time<MAX, MIN>>);

/// How far back an archive keeps every moment: a time with a unit, of an hour at least. Elsewhere a
/// number alone is one of milliseconds; who writes 7 here means days.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(crate) struct Kept(u64);

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

impl<const MAX: u64, const MIN: u64> Time<MAX, MIN> {
    /// The number of milliseconds.
    pub(crate) const fn ms(self) -> u64 {
        self.0
    }
}

impl<const MAX: u64, const MIN: u64> FromStr for Time<MAX, MIN> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match units::duration_ms(text)? {
            ms if (MIN..=MAX).contains(&ms) => Ok(Self(ms)),
            _ if MIN == 1 => Err(format!(
                "`{text}` is out of bounds: give a time from 1 to {MAX} ms, such as `500ms` or \
                 `30s`"
            )),
            _ => {
                let (least, most) = (brief(MIN), brief(MAX));
                Err(format!("`{text}` is out of bounds: give a time from `{least}` to `{most}`"))
            }
        }
    }
}

impl<const MAX: u64, const MIN: u64> TimeOrOff<MAX, MIN> {
    /// The number of milliseconds, unless it is off.
    pub(crate) fn ms(self) -> Option<u64> {
        self.0.map(Time::ms)
    }
}

impl<const MAX: u64, const MIN: u64> FromStr for TimeOrOff<MAX, MIN> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" | "0" => Ok(Self(None)),
            _ => text.parse().map(|time| Self(Some(time))).map_err(|error| error + ", or `off`"),
        }
    }
}

impl Kept {
    /// The number of milliseconds.
    pub(crate) const fn ms(self) -> u64 {
        self.0
    }
}

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ms = units::duration_ms(text)?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{text}` has no unit: give a time such as `7d` or `36h`"));
        }
        if ms < KEPT_MIN_MS {
            let least = brief(KEPT_MIN_MS);
            return Err(format!(
                "`{text}` is too short, since nearly every backup would be removed: give at least \
                 `{least}`, such as `7d`"
            ));
        }
        Ok(Self(ms))
    }
}

/// Has the file give what the command line gives.
macro_rules! from_file {
    ($($of:ident $(<$($bound:ident),+>)?),+) => {$(
        impl$(<$(const $bound: u64),+>)? TryFrom<NumberOrText> for $of$(<$($bound),+>)? {
            type Error = String;

            fn try_from(given: NumberOrText) -> Result<Self, String> {
                given.text().parse()
            }
        }
    )+};
}

from_file!(Size<MAX>, Time<MAX, MIN>, TimeOrOff<MAX, MIN>, Kept);

#[cfg(test)]
mod tests {
    use super::{Kept, Time, TimeOrOff};

    type Often = Time<3_600_000, 100>;
    type Rare = TimeOrOff<86_400_000, 3_600_000>;

    #[test]
    fn what_is_kept_has_a_unit_and_is_an_hour_at_least() {
        for (text, expected) in [("7d", 604_800_000), ("1h", 3_600_000), ("60m", 3_600_000)] {
            assert_eq!(text.parse().map(Kept::ms), Ok(expected), "{text}");
        }
        let table = [
            ("7", "`7` has no unit: give a time such as `7d`"),
            ("604800000", "has no unit"),
            ("0", "has no unit"),
            ("0s", "`0s` is too short"),
            ("59m", "give at least `1h`"),
            ("-7d", "negative"),
            ("", "is not a time"),
        ];
        for (text, words) in table {
            let refusal = text.parse::<Kept>().expect_err(text);
            assert!(refusal.contains(words), "{refusal}");
        }
    }

    #[test]
    fn times_may_have_a_least_value() {
        for (text, expected) in [("100ms", 100), ("200", 200), ("1h", 3_600_000)] {
            assert_eq!(text.parse().map(Often::ms), Ok(expected), "{text}");
        }
        for text in ["99ms", "0", "3600001ms", "2h"] {
            let refusal = text.parse::<Often>().expect_err(text);
            let words = format!("`{text}` is out of bounds: give a time from `100ms` to `1h`");
            assert_eq!(refusal, words);
        }
        for (text, expected) in [("off", None), ("0", None), ("1d", Some(86_400_000))] {
            assert_eq!(text.parse().map(Rare::ms), Ok(expected), "{text}");
        }
        let refusal = "59m".parse::<Rare>().unwrap_err();
        assert!(refusal.ends_with("give a time from `1h` to `1d`, or `off`"), "{refusal}");
    }
}
