//! The table of settings. Each line holds everything that doors, letters, the command line and the
//! pages know about one setting.
//!
//! What a setting does to tasks is not described here. The operations decide whether a change is
//! allowed, using these bounds.

use std::fmt;

use super::{Ids, Misfit, Overflow, Rate, Settings, Value};

/// A setting of a queue.
pub struct Setting {
    /// Its name, as users write it.
    pub name: &'static str,
    /// Its option on the command line.
    pub flag: &'static str,
    /// Its number in the journal. It is never 0 and never used for another setting. The numbers
    /// rise along the table.
    pub tag: u8,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether it may have no value.
    pub optional: bool,
    /// The least number, or the least number of milliseconds, that is allowed.
    pub least: u64,
    /// What refusals call its value.
    pub what: &'static str,
    /// When it may change.
    pub changes: Changes,
    /// The values that a lane may have.
    pub lanes: Lanes,
    /// What the setting is for, in words for people.
    pub help: &'static str,
    /// Reads its value from the settings.
    pub read: fn(&Settings) -> Value<'_>,
    /// Writes another value to the settings. Bounds are not checked.
    pub write: fn(&mut Settings, Value<'_>) -> Result<(), Misfit>,
}

/// The values of a setting, apart from no value.
pub enum Kind {
    /// Numbers.
    Number,
    /// Durations.
    Span,
    /// Names of queues.
    Name,
    /// Numbers in a time.
    Rate,
    /// One of these words. The journal stores their positions, so add new ones at the end.
    Words(&'static [Word]),
    /// One of these words, or a duration.
    WordsOrSpan(&'static [Word], Length),
}

/// A word that stands for a value.
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// What it means, for people.
    pub help: &'static str,
}

/// How users give a duration to a setting with words: by another word, and under a name of its own.
pub struct Length {
    /// The word.
    pub word: Word,
    /// Its name.
    pub name: &'static str,
    /// Its option on the command line.
    pub flag: &'static str,
    /// What the duration is for, in words for people.
    pub help: &'static str,
}

/// What users see of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown<'a> {
    /// Nothing.
    None,
    /// A number, possibly of milliseconds.
    Number(u64),
    /// A word, or bytes from a user.
    Text(&'a [u8]),
    /// A number in a time. Its text is the number, a slash and the milliseconds.
    Rate(Rate),
}

/// When a setting may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changes {
    /// At any time.
    Always,
    /// While the queue has no tasks.
    WhileEmpty,
}

/// The values of a setting that a lane may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// All values that a queue may have.
    Any,
    /// All but this one. The sentence says why.
    Not(Value<'static>, &'static str),
    /// Only the default. The sentence says why.
    Default(&'static str),
}

/// All settings, in the order in which they are shown, checked and written. Add new ones at the
/// end.
pub static SETTINGS: [&Setting; 15] = [
    IDS,
    TTL,
    TTR,
    AFTERACK,
    CAPACITY,
    ATTEMPTS,
    BACKOFF,
    BACKOFFMAX,
    DEADLETTER,
    ONEXPIRY,
    LIMIT,
    RATE,
    CAPACITYBYTES,
    OVERFLOW,
    RELEASEFAILS,
];

/// See [`Settings::ids`].
pub const IDS: &Setting = &Setting {
    name: "IDS",
    flag: "ids",
    tag: 1,
    kind: Kind::Words(&[
        Word { word: "sequence", help: "1, 2, 3 and so on" },
        Word { word: "time64", help: "Numbers that tell the time, in nanoseconds" },
        Word { word: "uuid", help: "Random ones of 36 characters" },
        Word { word: "given", help: "The producer names it" },
    ]),
    optional: false,
    least: 0,
    what: "the ids",
    changes: Changes::WhileEmpty,
    lanes: Lanes::Not(
        Value::Word(Ids::Given as u8),
        "nobody gives the ids of published tasks: the server must",
    ),
    help: "How ids come about",
    read: |settings| settings.ids.into(),
    write: |settings, value| value.try_into().map(|ids| settings.ids = ids),
};

/// See [`Settings::ttl`].
pub const TTL: &Setting = &Setting {
    name: "TTL",
    flag: "ttl-ms",
    tag: 2,
    kind: Kind::Span,
    optional: true,
    least: 1,
    what: "the TTL",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "How long a task lives that says nothing else",
    read: |settings| settings.ttl.into(),
    write: |settings, value| value.try_into().map(|ttl| settings.ttl = ttl),
};

/// See [`Settings::ttr`].
pub const TTR: &Setting = &Setting {
    name: "TTR",
    flag: "ttr-ms",
    tag: 3,
    kind: Kind::Span,
    optional: true,
    least: 1,
    what: "the TTR",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "How long a lease lasts that says nothing else",
    read: |settings| settings.ttr.into(),
    write: |settings, value| value.try_into().map(|ttr| settings.ttr = ttr),
};

/// See [`Settings::after_ack`].
pub const AFTERACK: &Setting = &Setting {
    name: "AFTERACK",
    flag: "after-ack",
    tag: 4,
    kind: Kind::WordsOrSpan(
        &[
            Word { word: "delete", help: "It goes" },
            Word { word: "keep", help: "It stays for good" },
        ],
        Length {
            word: Word { word: "zombie", help: "It stays for a while" },
            name: "ZOMBIE",
            flag: "zombie-ms",
            help: "How long a finished task stays",
        },
    ),
    optional: false,
    least: 1,
    what: "the zombie's stay",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "What becomes of a task that was acknowledged",
    read: |settings| settings.after_ack.into(),
    write: |settings, value| value.try_into().map(|after_ack| settings.after_ack = after_ack),
};

/// See [`Settings::capacity`].
pub const CAPACITY: &Setting = &Setting {
    name: "CAPACITY",
    flag: "capacity",
    tag: 5,
    kind: Kind::Number,
    optional: true,
    least: 1,
    what: "the capacity",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "The most tasks that are not finished; a put beyond it is refused",
    read: |settings| settings.capacity.into(),
    write: |settings, value| value.try_into().map(|capacity| settings.capacity = capacity),
};

/// See [`Settings::attempts`].
pub const ATTEMPTS: &Setting = &Setting {
    name: "ATTEMPTS",
    flag: "attempts",
    tag: 6,
    kind: Kind::Number,
    optional: true,
    least: 1,
    what: "the number of attempts",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "How often a task may fail before it is buried or becomes a dead letter",
    read: |settings| settings.attempts.into(),
    write: |settings, value| value.try_into().map(|attempts| settings.attempts = attempts),
};

/// See [`Settings::backoff`].
pub const BACKOFF: &Setting = &Setting {
    name: "BACKOFF",
    flag: "backoff-ms",
    tag: 7,
    kind: Kind::Span,
    optional: true,
    least: 1,
    what: "the back-off",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "How long a task waits after its first failure; after each further one, twice as long",
    read: |settings| settings.backoff.into(),
    write: |settings, value| value.try_into().map(|backoff| settings.backoff = backoff),
};

/// See [`Settings::backoff_max`].
pub const BACKOFFMAX: &Setting = &Setting {
    name: "BACKOFFMAX",
    flag: "backoff-max-ms",
    tag: 8,
    kind: Kind::Span,
    optional: false,
    least: 1,
    what: "the longest back-off",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "The longest that a task waits after a failure",
    read: |settings| settings.backoff_max.into(),
    write: |settings, value| value.try_into().map(|most| settings.backoff_max = most),
};

/// See [`Settings::dead_letter`].
pub const DEADLETTER: &Setting = &Setting {
    name: "DEADLETTER",
    flag: "dead-letter",
    tag: 9,
    kind: Kind::Name,
    optional: true,
    least: 0,
    what: "the queue for dead letters",
    changes: Changes::Always,
    lanes: Lanes::Default("a lane has no queue for dead letters: it buries them"),
    help: "The queue that gets tasks that have failed too often",
    read: |settings| (&settings.dead_letter).into(),
    write: |settings, value| value.try_into().map(|queue| settings.dead_letter = queue),
};

/// See [`Settings::on_expiry`].
pub const ONEXPIRY: &Setting = &Setting {
    name: "ONEXPIRY",
    flag: "on-expiry",
    tag: 10,
    kind: Kind::Words(&[
        Word { word: "delete", help: "It goes" },
        Word {
            word: "deadletter",
            help: "It becomes a dead letter, if there is a queue for those",
        },
    ]),
    optional: false,
    least: 0,
    what: "what happens on expiry",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "What becomes of a task whose TTL has passed",
    read: |settings| settings.on_expiry.into(),
    write: |settings, value| value.try_into().map(|on_expiry| settings.on_expiry = on_expiry),
};

/// See [`Settings::limit`].
pub const LIMIT: &Setting = &Setting {
    name: "LIMIT",
    flag: "limit",
    tag: 11,
    kind: Kind::Number,
    optional: true,
    least: 1,
    what: "the limit",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "The most tasks that are taken at once; to others the queue looks empty meanwhile",
    read: |settings| settings.limit.into(),
    write: |settings, value| value.try_into().map(|limit| settings.limit = limit),
};

/// See [`Settings::rate`].
pub const RATE: &Setting = &Setting {
    name: "RATE",
    flag: "rate",
    tag: 12,
    kind: Kind::Rate,
    optional: true,
    least: 1,
    what: "the rate",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "How many tasks may be taken in a time",
    read: |settings| settings.rate.into(),
    write: |settings, value| value.try_into().map(|rate| settings.rate = rate),
};

/// See [`Settings::capacity_bytes`].
pub const CAPACITYBYTES: &Setting = &Setting {
    name: "CAPACITYBYTES",
    flag: "capacity-bytes",
    tag: 13,
    kind: Kind::Number,
    optional: true,
    least: 1,
    what: "the capacity in bytes",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "The most bytes of payloads and keys of tasks that are not finished",
    read: |settings| settings.capacity_bytes.into(),
    write: |settings, value| value.try_into().map(|bytes| settings.capacity_bytes = bytes),
};

/// See [`Settings::overflow`].
pub const OVERFLOW: &Setting = &Setting {
    name: "OVERFLOW",
    flag: "overflow",
    tag: 14,
    kind: Kind::Words(&[
        Word { word: "refuse", help: "It is refused" },
        Word { word: "evict", help: "The least urgent ready tasks go, if it is more urgent" },
    ]),
    optional: false,
    least: 0,
    what: "what happens on overflow",
    changes: Changes::Always,
    lanes: Lanes::Not(
        Value::Word(Overflow::Evict as u8),
        "a full lane misses what is published: it evicts nothing",
    ),
    help: "What happens to a put that finds the queue full",
    read: |settings| settings.overflow.into(),
    write: |settings, value| value.try_into().map(|overflow| settings.overflow = overflow),
};

/// See [`Settings::release_fails`].
pub const RELEASEFAILS: &Setting = &Setting {
    name: "RELEASEFAILS",
    flag: "release-fails",
    tag: 15,
    kind: Kind::Words(&[
        Word { word: "off", help: "It is none" },
        Word { word: "on", help: "It is one, so that attempts and back-off apply" },
    ]),
    optional: false,
    least: 0,
    what: "what a release is",
    changes: Changes::Always,
    lanes: Lanes::Any,
    help: "Whether a release is a failure",
    read: |settings| settings.release_fails.into(),
    write: |settings, value| value.try_into().map(|fails| settings.release_fails = fails),
};

impl Changes {
    /// What the help of a setting adds at its end.
    #[must_use]
    pub const fn note(self) -> &'static str {
        match self {
            Self::Always => "",
            Self::WhileEmpty => "; can be changed only while the queue is empty",
        }
    }
}

impl Setting {
    /// The setting with this number.
    #[must_use]
    pub fn tagged(tag: u8) -> Option<&'static Self> {
        SETTINGS.into_iter().find(|setting| setting.tag == tag)
    }

    /// Whether this is the value that a queue has without a setting.
    #[must_use]
    pub fn is_default(&self, value: Value<'_>) -> bool {
        (self.read)(&Settings::default()) == value
    }

    /// The duration of this setting, if it has words and a duration.
    #[must_use]
    pub const fn length(&self) -> Option<&Length> {
        match &self.kind {
            Kind::WordsOrSpan(_, length) => Some(length),
            Kind::Number | Kind::Span | Kind::Name | Kind::Rate | Kind::Words(_) => None,
        }
    }

    /// The names under which users give the value.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.length().map(|length| length.name))
    }

    /// The words that users may give, apart from the one for no value.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        let words = match &self.kind {
            Kind::Words(words) | Kind::WordsOrSpan(words, _) => words,
            Kind::Number | Kind::Span | Kind::Name | Kind::Rate => &[][..],
        };
        words.iter().chain(self.length().map(|length| &length.word))
    }

    /// What users see of a value, under each name of the setting.
    pub fn shown<'v>(&self, value: Value<'v>) -> impl Iterator<Item = (&'static str, Shown<'v>)> {
        let shown = match value {
            Value::None => Shown::None,
            Value::Number(number) => Shown::Number(number),
            Value::Span(span) => Shown::Number(span.ms()),
            Value::Word(place) => {
                let word = self.words().nth(place.into());
                word.map_or(Shown::None, |word| Shown::Text(word.word.as_bytes()))
            }
            Value::Bytes(bytes) => Shown::Text(bytes),
            Value::Rate(rate) => Shown::Rate(rate),
        };
        let (first, second) = match (self.length(), value) {
            (Some(length), Value::Span(_)) => (Shown::Text(length.word.word.as_bytes()), shown),
            _ => (shown, Shown::None),
        };
        self.names().zip([first, second])
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }
}

impl Eq for Setting {}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{AfterAck, OnExpiry};
    use crate::time::Span;

    /// Settings that differ from the default in every field.
    fn other() -> Settings {
        Settings {
            ids: Ids::Given,
            ttl: Some(Span::from_ms(1)),
            ttr: Some(Span::from_ms(2)),
            after_ack: AfterAck::Zombie(Span::from_ms(3)),
            capacity: Some(4),
            attempts: Some(5),
            backoff: Some(Span::from_ms(6)),
            backoff_max: Span::from_ms(7),
            dead_letter: Some(b"dead"[..].into()),
            on_expiry: OnExpiry::DeadLetter,
            limit: Some(8),
            rate: Some(Rate { count: 9, per: Span::from_ms(10) }),
            capacity_bytes: Some(11),
            overflow: Overflow::Evict,
            release_fails: true,
        }
    }

    #[test]
    fn table_has_every_field() {
        let other = other();
        let changes: Vec<_> = other.changed().collect();
        assert_eq!(changes.len(), SETTINGS.len());
        assert_eq!(Settings::default().with(&changes).as_ref(), Ok(&other));
    }

    #[test]
    fn names_are_used_once_and_numbers_rise() {
        for (index, setting) in SETTINGS.into_iter().enumerate() {
            let before = &SETTINGS[..index];
            let last = before.last().map_or(0, |earlier| earlier.tag);
            assert!(setting.tag > last, "{setting:?}");
            let is_known = |name| before.iter().any(|it| it.names().any(|known| known == name));
            assert!(!setting.names().any(is_known), "{setting:?}");
        }
    }

    #[test]
    fn only_values_of_the_kind_are_accepted() {
        for setting in SETTINGS {
            let accepts = |value| (setting.write)(&mut Settings::default(), value).is_ok();
            let (words, is_span) = match &setting.kind {
                Kind::Number | Kind::Name | Kind::Rate => (0, false),
                Kind::Span => (0, true),
                Kind::Words(words) => (words.len(), false),
                Kind::WordsOrSpan(words, _) => (words.len(), true),
            };
            let is_number = matches!(setting.kind, Kind::Number);
            assert_eq!(accepts(Value::None), setting.optional, "{setting:?}");
            assert_eq!(accepts(Value::Number(9)), is_number, "{setting:?}");
            assert_eq!(accepts(Value::Span(Span::from_ms(9))), is_span, "{setting:?}");
            for place in 0..9 {
                let is_there = usize::from(place) < words;
                assert_eq!(accepts(Value::Word(place)), is_there, "{setting:?}: {place}");
            }
            let is_name = matches!(setting.kind, Kind::Name);
            assert_eq!(accepts(Value::Bytes(b"9")), is_name, "{setting:?}");
            let is_rate = matches!(setting.kind, Kind::Rate);
            let rate = Rate { count: 9, per: Span::from_ms(9) };
            assert_eq!(accepts(Value::Rate(rate)), is_rate, "{setting:?}");
        }
    }
}
