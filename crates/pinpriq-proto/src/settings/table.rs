//! The settings of a queue, each declared once: its field and default, and everything that doors,
//! letters, the command line, the clients and the pages know about it.
//!
//! What a setting does to tasks is not described here. The operations decide whether a change is
//! allowed, using these bounds.

use std::fmt;
use std::sync::LazyLock;

use super::value::Field;
use super::{AfterAck, Ids, Misfit, OnExpiry, Overflow, Ranking, Rate, Value};
use crate::limits::{HISTORY_MAX, SETTING_MAX};
use crate::task::Bytes;
use crate::time::Span;

/// A setting of a queue.
pub struct Setting {
    /// Its name, as users write it.
    pub name: &'static str,
    /// Its field of [`Settings`], after which clients name it.
    pub field: &'static str,
    /// Its number in the journal. It is never 0 and never used for another setting. The numbers
    /// rise along the table.
    pub tag: u8,
    /// The kind of its values.
    pub kind: SettingKind,
    /// Whether it may have no value.
    pub optional: bool,
    /// The least number, or the least number of milliseconds, that is allowed.
    pub least: u64,
    /// The greatest number that is allowed.
    pub most: u64,
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
pub enum SettingKind {
    /// Numbers.
    Number,
    /// Durations.
    Span,
    /// Names of queues.
    Name,
    /// Names of limits, with commas between.
    Limits,
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

/// The highest cost that a task may have where no setting says another.
pub const COST_MAX_DEFAULT: u64 = 1_000_000;

/// The most shares of a queue that have metrics of their own.
pub const SHARE_METRICS_MAX: u64 = 100;

/// Declares the settings: the fields of [`Settings`] with their defaults, and the table. What an
/// entry leaves out is as in [`Setting::USUAL`].
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr, $name:ident { $($part:ident: $value:expr,)* }
    )*) => {
        /// The settings of one queue. Each field has a line in [`SETTINGS`].
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $field: $type,)*
            /// How the tasks of an ageing queue age that do not say it: what [`Self::ageing`] was
            /// when the first of them came. It is no setting, but is kept with them.
            pub ageing_usual: Option<Span>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* ageing_usual: None }
            }
        }

        /// All settings, in the order in which they are shown, checked and written.
        pub static SETTINGS: [&Setting; [$(stringify!($name)),*].len()] = [$($name),*];

        $(
            #[doc = concat!("See [`Settings::", stringify!($field), "`].")]
            pub const $name: &Setting = &Setting {
                name: stringify!($name),
                field: stringify!($field),
                optional: <$type>::OPTIONAL,
                read: |settings| settings.$field.value(),
                write: |settings, value| Field::of(value).map(|it| settings.$field = it),
                $($part: $value,)*
                ..Setting::USUAL
            };
        )*
    };
}

// Add new ones at the end, with a tag that was never used.
settings! {
    /// How tasks get their ids. Can change only while the queue is empty.
    ids: Ids = Ids::default(), IDS {
        tag: 1,
        kind: SettingKind::Words(&[
            Word { word: "sequence", help: "1, 2, 3 and so on" },
            Word { word: "time64", help: "Numbers that tell the time, in nanoseconds" },
            Word { word: "uuid", help: "Random ones of 36 characters" },
            Word { word: "given", help: "The producer names it" },
        ]),
        what: "the ids",
        changes: Changes::WhileEmpty,
        lanes: Lanes::Not(
            Value::Word(Ids::Given as u8),
            "nobody gives the ids of published tasks: the server must",
        ),
        help: "How ids come about",
    }

    /// The time to live of a task whose put gives none.
    ttl: Option<Span> = None, TTL {
        tag: 2,
        kind: SettingKind::Span,
        what: "the TTL",
        help: "How long a task lives that says nothing else",
    }

    /// The time to release if neither the take nor the task gives one.
    ttr: Option<Span> = None, TTR {
        tag: 3,
        kind: SettingKind::Span,
        what: "the TTR",
        help: "How long a lease lasts that says nothing else",
    }

    /// What happens to acknowledged tasks.
    after_ack: AfterAck = AfterAck::default(), AFTERACK {
        tag: 4,
        kind: SettingKind::WordsOrSpan(
            &[
                Word { word: "delete", help: "It goes" },
                Word { word: "keep", help: "It stays for good" },
            ],
            Length {
                word: Word { word: "zombie", help: "It stays for a while" },
                name: "ZOMBIE",
                help: "How long a finished task stays",
            },
        ),
        what: "the zombie's stay",
        help: "What becomes of a task that was acknowledged",
    }

    /// The most tasks in the states R, T, W and B together.
    capacity: Option<u64> = None, CAPACITY {
        tag: 5,
        kind: SettingKind::Number,
        what: "the capacity",
        help: "The most tasks that are not finished; a put beyond it is refused",
    }

    /// The number of failures after which a task is not tried again.
    attempts: Option<u64> = None, ATTEMPTS {
        tag: 6,
        kind: SettingKind::Number,
        what: "the number of attempts",
        help: "How often a task may fail before it is buried or becomes a dead letter",
    }

    /// How long a task waits after its first failure. After each further one, twice as long.
    backoff: Option<Span> = None, BACKOFF {
        tag: 7,
        kind: SettingKind::Span,
        what: "the back-off",
        help: "How long a task waits after its first failure; after each further one, twice as \
            long",
    }

    /// The longest that a task waits after a failure.
    backoff_max: Span = Span::from_ms(3_600_000), BACKOFFMAX {
        tag: 8,
        kind: SettingKind::Span,
        what: "the longest back-off",
        help: "The longest that a task waits after a failure",
    }

    /// The queue that gets the tasks that are not tried again.
    dead_letter: Option<Bytes> = None, DEADLETTER {
        tag: 9,
        kind: SettingKind::Name,
        what: "the queue for dead letters",
        lanes: Lanes::Default("a lane has no queue for dead letters: it buries them"),
        help: "The queue that gets tasks that have failed too often",
    }

    /// What happens to tasks whose TTL has passed.
    on_expiry: OnExpiry = OnExpiry::default(), ONEXPIRY {
        tag: 10,
        kind: SettingKind::Words(&[
            Word { word: "delete", help: "It goes" },
            Word {
                word: "deadletter",
                help: "It becomes a dead letter, if there is a queue for those",
            },
        ]),
        what: "what happens on expiry",
        help: "What becomes of a task whose TTL has passed",
    }

    /// The most tasks that are taken at once.
    limit: Option<u64> = None, LIMIT {
        tag: 11,
        kind: SettingKind::Number,
        what: "the limit",
        help: "The most tasks that are taken at once; to others the queue looks empty meanwhile",
    }

    /// How many tasks may be taken in a time.
    rate: Option<Rate> = None, RATE {
        tag: 12,
        kind: SettingKind::Rate,
        what: "the rate",
        help: "How many tasks may be taken in a time",
    }

    /// The most bytes of payloads and keys in the states R, T, W and B together.
    capacity_bytes: Option<u64> = None, CAPACITYBYTES {
        tag: 13,
        kind: SettingKind::Number,
        what: "the capacity in bytes",
        help: "The most bytes of payloads and keys of tasks that are not finished",
    }

    /// What happens to a put that finds the queue full.
    overflow: Overflow = Overflow::default(), OVERFLOW {
        tag: 14,
        kind: SettingKind::Words(&[
            Word { word: "refuse", help: "It is refused" },
            Word { word: "evict", help: "The least urgent ready tasks go, if it is more urgent" },
        ]),
        what: "what happens on overflow",
        lanes: Lanes::Not(
            Value::Word(Overflow::Evict as u8),
            "a full lane misses what is published: it evicts nothing",
        ),
        help: "What happens to a put that finds the queue full",
    }

    /// Whether a release is a failure.
    release_fails: bool = false, RELEASEFAILS {
        tag: 15,
        kind: SettingKind::Words(&[
            Word { word: "off", help: "It is none" },
            Word { word: "on", help: "It is one, so that attempts and back-off apply" },
        ]),
        what: "what a release is",
        help: "Whether a release is a failure",
    }

    /// The highest cost that a task may have.
    cost_max: u64 = COST_MAX_DEFAULT, COSTMAX {
        tag: 16,
        kind: SettingKind::Number,
        what: "the highest cost",
        lanes: Lanes::Default("a task is published with one cost for all lanes"),
        help: "The highest cost that a task may have",
    }

    /// In which order ready tasks of one queue go.
    ranking: Ranking = Ranking::default(), RANKING {
        tag: 17,
        kind: SettingKind::Words(&[
            Word { word: "strict", help: "By priority, then by age" },
            Word { word: "fair", help: "By priority, then each share in its turn" },
            Word { word: "ageing", help: "By priority and age: AGEING says how much age counts" },
        ]),
        what: "the ranking",
        help: "Whose turn it is among ready tasks",
    }

    /// The most tasks of one key that may be taken at once.
    key_limit: Option<u64> = None, KEYLIMIT {
        tag: 18,
        kind: SettingKind::Number,
        what: "the limit of a key",
        help: "How many tasks of one key may be taken at once",
    }

    /// What the tasks of one key that are taken may cost in a time.
    key_rate: Option<Rate> = None, KEYRATE {
        tag: 19,
        kind: SettingKind::Rate,
        what: "the rate of a key",
        help: "What the tasks of one key that are taken may cost in a time",
    }

    /// Whether a task that has failed holds back the others of its key.
    key_hold: bool = false, KEYHOLD {
        tag: 20,
        kind: SettingKind::Words(&[
            Word { word: "off", help: "They go on" },
            Word { word: "on", help: "They wait until it is finished or buried" },
        ]),
        what: "what a failure holds back",
        help: "Whether a task that has failed holds back the others of its key",
    }

    /// The most tasks of one share that may be taken at once.
    share_limit: Option<u64> = None, SHARELIMIT {
        tag: 21,
        kind: SettingKind::Number,
        what: "the limit of a share",
        help: "How many tasks of one share may be taken at once",
    }

    /// What the tasks of one share that are taken may cost in a time.
    share_rate: Option<Rate> = None, SHARERATE {
        tag: 22,
        kind: SettingKind::Rate,
        what: "the rate of a share",
        help: "What the tasks of one share that are taken may cost in a time",
    }

    /// The most tasks of one share in the states R, T, W and B together.
    share_capacity: Option<u64> = None, SHARECAPACITY {
        tag: 23,
        kind: SettingKind::Number,
        what: "the capacity of a share",
        help: "The most tasks of one share that are not finished; a put beyond it is refused",
    }

    /// The names of the limits that it uses together with other queues, with commas between.
    uses: Option<Bytes> = None, USES {
        tag: 24,
        kind: SettingKind::Limits,
        what: "the limits that it uses",
        help: "The limits that it uses together with other queues",
    }

    /// How much later than one that is a step more urgent a task goes, in an ageing queue.
    ageing: Option<Span> = None, AGEING {
        tag: 25,
        kind: SettingKind::Span,
        what: "the ageing",
        help: "How much later a task goes for each step of its priority, if tasks are ageing",
    }

    /// How many shares have metrics of their own: those with most tasks.
    share_metrics: Option<u64> = None, SHAREMETRICS {
        tag: 26,
        kind: SettingKind::Number,
        most: SHARE_METRICS_MAX,
        what: "the number of shares with metrics",
        lanes: Lanes::Default("a topic may have many lanes: they have no metrics of shares"),
        help: "How many shares have metrics of their own: those with most tasks",
    }

    /// How many attempts of a task are noted.
    history: u8 = 0, HISTORY {
        tag: 27,
        kind: SettingKind::Number,
        least: 0,
        most: HISTORY_MAX as u64,
        what: "the number of attempts that are noted",
        help: "How many of its last attempts a task keeps, for people to look at",
    }
}

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
    /// What most settings have.
    const USUAL: Self = Self {
        name: "",
        field: "",
        tag: 0,
        kind: SettingKind::Number,
        optional: true,
        least: 1,
        most: SETTING_MAX,
        what: "",
        changes: Changes::Always,
        lanes: Lanes::Any,
        help: "",
        read: |_| Value::None,
        write: |_, _| Err(Misfit),
    };

    /// The setting with this number.
    #[must_use]
    pub fn tagged(tag: u8) -> Option<&'static Self> {
        SETTINGS.into_iter().find(|setting| setting.tag == tag)
    }

    /// Whether this is the value that a queue has without a setting.
    #[must_use]
    pub fn is_default(&self, value: Value<'_>) -> bool {
        self.usual() == value
    }

    /// The value that a queue has without a setting.
    #[must_use]
    pub fn usual(&self) -> Value<'static> {
        static USUAL: LazyLock<Settings> = LazyLock::new(Settings::default);
        (self.read)(&USUAL)
    }

    /// Its option on the command line, and that of its duration, if it has words and a duration.
    pub fn flags(&self) -> impl Iterator<Item = String> {
        let unit = if matches!(self.kind, SettingKind::Span) { "-ms" } else { "" };
        let own = self.field.replace('_', "-") + unit;
        let length = self.length().map(|length| length.name.to_ascii_lowercase() + "-ms");
        std::iter::once(own).chain(length)
    }

    /// A value that it may have, one after the other for rising numbers, for tests that try every
    /// setting.
    #[must_use]
    pub fn example(&self, number: u64) -> Value<'static> {
        let least = self.least + number % 5;
        let span = Span::from_ms(least * 7);
        let count = u32::try_from(1 + number % 5).unwrap_or(1);
        let word = |words: &[Word]| {
            Value::Word(u8::try_from(number % words.len() as u64).unwrap_or_default())
        };
        match &self.kind {
            _ if self.optional && number % 4 == 3 => Value::None,
            SettingKind::Number => Value::Number(least),
            SettingKind::Span => Value::Span(span),
            SettingKind::Name => Value::Bytes(b"dead"),
            SettingKind::Limits => {
                Value::Bytes([b"l".as_slice(), b"m", b"l,m"][(number % 3) as usize])
            }
            SettingKind::Rate => Value::Rate(Rate { count, per: span }),
            SettingKind::WordsOrSpan(..) if number % 3 == 2 => Value::Span(span),
            SettingKind::Words(words) | SettingKind::WordsOrSpan(words, _) => word(words),
        }
    }

    /// The duration of this setting, if it has words and a duration.
    #[must_use]
    pub const fn length(&self) -> Option<&Length> {
        match &self.kind {
            SettingKind::WordsOrSpan(_, length) => Some(length),
            SettingKind::Number
            | SettingKind::Span
            | SettingKind::Name
            | SettingKind::Limits
            | SettingKind::Rate
            | SettingKind::Words(_) => None,
        }
    }

    /// The names under which users give the value.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.length().map(|length| length.name))
    }

    /// The words that users may give, apart from the one for no value.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        let words = match &self.kind {
            SettingKind::Words(words) | SettingKind::WordsOrSpan(words, _) => words,
            SettingKind::Number
            | SettingKind::Span
            | SettingKind::Name
            | SettingKind::Limits
            | SettingKind::Rate => &[][..],
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

    #[test]
    fn each_setting_holds_its_examples() {
        for setting in SETTINGS {
            let others = (0..12).map(|number| setting.example(number));
            let mut others = others.filter(|value| !setting.is_default(*value)).peekable();
            assert!(others.peek().is_some(), "{setting:?}");
            for value in others {
                let settings = Settings::default().with(&[(setting, value)]).unwrap();
                assert_eq!(settings.changed().collect::<Vec<_>>(), [(setting, value)]);
            }
        }
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
                SettingKind::Number
                | SettingKind::Name
                | SettingKind::Limits
                | SettingKind::Rate => (0, false),
                SettingKind::Span => (0, true),
                SettingKind::Words(words) => (words.len(), false),
                SettingKind::WordsOrSpan(words, _) => (words.len(), true),
            };
            let is_number = matches!(setting.kind, SettingKind::Number);
            assert_eq!(accepts(Value::None), setting.optional, "{setting:?}");
            assert_eq!(accepts(Value::Number(9)), is_number, "{setting:?}");
            assert_eq!(accepts(Value::Span(Span::from_ms(9))), is_span, "{setting:?}");
            for place in 0..9 {
                let is_there = usize::from(place) < words;
                assert_eq!(accepts(Value::Word(place)), is_there, "{setting:?}: {place}");
            }
            let is_name = matches!(setting.kind, SettingKind::Name | SettingKind::Limits);
            assert_eq!(accepts(Value::Bytes(b"9")), is_name, "{setting:?}");
            let is_rate = matches!(setting.kind, SettingKind::Rate);
            let rate = Rate { count: 9, per: Span::from_ms(9) };
            assert_eq!(accepts(Value::Rate(rate)), is_rate, "{setting:?}");
        }
    }
}
