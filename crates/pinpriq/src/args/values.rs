//! Values on the command line that have words of their own.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use crate::units::duration_ms;

/// Returns the milliseconds of a time that cannot be 0.
pub(crate) fn time_above_0(text: &str) -> Result<u64, String> {
    match duration_ms(text)? {
        0 => Err(format!("`{text}` is no time at all: give one such as `500ms`, `30s` or `1h30m`")),
        time => Ok(time),
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
            Err(_) => Err("it must be a whole number or none".to_owned()),
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

/// A state in which a task can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum State {
    /// Can be taken
    #[value(alias = "R")]
    Ready,
    /// Held under a lease
    #[value(alias = "T")]
    Taken,
    /// Its delay has not passed
    #[value(alias = "W")]
    Waiting,
    /// Set aside
    #[value(alias = "B")]
    Buried,
    /// Finished, and kept for a while
    #[value(alias = "Z")]
    Zombie,
    /// Finished, and kept for good
    #[value(alias = "D")]
    Done,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "R",
            Self::Taken => "T",
            Self::Waiting => "W",
            Self::Buried => "B",
            Self::Zombie => "Z",
            Self::Done => "D",
        })
    }
}

/// Defines an enum of words that are sent as they stand on the command line, in upper case.
macro_rules! sent_words {
    ($(
        $(#[$about:meta])*
        $name:ident { $($(#[$word_about:meta])* $word:ident $sent:literal,)* }
    )*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
            pub(crate) enum $name { $($(#[$word_about])* $word,)* }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(match self { $(Self::$word => $sent,)* })
                }
            }
        )*
    };
}

sent_words! {
    /// The end of the priority order.
    End {
        /// The lowest number, which is the most urgent
        Min "MIN",
        /// The highest number
        Max "MAX",
    }
    /// The order within one priority.
    Order {
        /// First in, first out
        Oldest "OLDEST",
        /// Last in, first out
        Newest "NEWEST",
    }
    /// A side of a queue.
    Side {
        /// Where tasks are put
        In "IN",
        /// Where they are taken
        Out "OUT",
    }
}
