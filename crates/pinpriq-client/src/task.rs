//! A task, as the server tells about it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinpriq_proto::wire::resp::Value;

pub use self::printed::Task;
use crate::name::Name;

mod printed;

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum State {
    /// It can be taken.
    Ready,
    /// A client has it under a lease.
    Taken,
    /// Its delay has not passed.
    Waiting,
    /// It is set aside.
    Buried,
    /// It is finished, and kept for a while.
    Zombie,
    /// It is finished, and kept.
    Done,
    /// It is gone.
    Gone,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Ready,
        Self::Taken,
        Self::Waiting,
        Self::Buried,
        Self::Zombie,
        Self::Done,
        Self::Gone,
    ];

    /// Returns the state that this letter of the protocol means.
    pub(crate) fn of(letter: &[u8]) -> Option<Self> {
        let letter: char = std::str::from_utf8(letter).ok()?.parse().ok()?;
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }

    /// Returns the letter of the protocol.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Ready => 'R',
            Self::Taken => 'T',
            Self::Waiting => 'W',
            Self::Buried => 'B',
            Self::Zombie => 'Z',
            Self::Done => 'D',
            Self::Gone => 'X',
        }
    }
}

/// Where a dead letter comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Origin {
    /// The queue.
    pub queue: Name,
    /// Its id there.
    pub id: Name,
    /// When it was put there.
    pub put_at: SystemTime,
    /// How often it was taken there.
    pub attempts: u64,
    /// How often it failed there.
    pub failures: u64,
    /// When it moved.
    pub moved_at: SystemTime,
}

/// An attempt of a task that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The number of the connection that took the task.
    pub client: Option<u64>,
    /// The name of that client, if it had one.
    pub name: Option<String>,
    /// Where it came from, if that is known.
    pub address: Option<String>,
    /// When the task was taken.
    pub taken_at: SystemTime,
    /// When the attempt has ended.
    pub ended_at: SystemTime,
    /// How: `acked`, `released`, `failed`, `buried`, `expired`, `closed` or `snatched`.
    pub how: String,
    /// Why, if the worker has said that.
    pub reason: Option<String>,
}

impl Task {
    /// Returns the payload as text, or says where it is not UTF-8.
    pub fn text(&self) -> Result<&str, std::str::Utf8Error> {
        std::str::from_utf8(&self.payload)
    }
}

/// What a task has in place of what its queue says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Own<T> {
    /// None at all.
    None,
    /// This.
    Is(T),
}

/// A map, such as that of a task, whose members may be missing.
pub(crate) struct Map<'a>(pub(crate) &'a Value);

impl Map<'_> {
    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.0.field(name)?.as_bytes().map(<[u8]>::to_vec)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.field(name)?.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) fn name(&self, name: &str) -> Option<Name> {
        self.0.field(name)?.as_bytes().map(Name::from)
    }

    fn state(&self, name: &str) -> Option<State> {
        self.0.field(name)?.as_bytes().and_then(State::of)
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.0.field(name)?.integer()
    }

    fn truth(&self, name: &str) -> Option<bool> {
        Some(self.0.field(name)?.as_bytes()? == b"yes")
    }

    fn own_number(&self, name: &str) -> Option<Own<u64>> {
        match self.0.field(name)? {
            Value::Null => None,
            value if value.as_bytes() == Some(b"none") => Some(Own::None),
            value => Some(Own::Is(u64::try_from(value.integer()?).ok()?)),
        }
    }

    fn span(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    fn own_span(&self, name: &str) -> Option<Own<Duration>> {
        Some(match self.own_number(name)? {
            Own::None => Own::None,
            Own::Is(millis) => Own::Is(Duration::from_millis(millis)),
        })
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        u64::try_from(self.integer(name)?).ok()
    }

    pub(crate) fn moment(&self, name: &str) -> Option<SystemTime> {
        moment(self.0.field(name)?)
    }

    fn headers(&self, name: &str) -> Option<BTreeMap<String, Name>> {
        let pairs = self.0.field(name)?.pairs()?;
        let text = |key: &Value| Some(String::from_utf8_lossy(key.as_bytes()?).into_owned());
        pairs.map(|(key, value)| Some((text(key)?, Name::from(value.as_bytes()?)))).collect()
    }

    fn attempts(&self, name: &str) -> Option<Vec<Attempt>> {
        let attempt = |item: &Value| {
            let map = Map(item);
            Some(Attempt {
                client: map.number("client"),
                name: map.text("name"),
                address: map.text("address"),
                taken_at: map.moment("taken_at")?,
                ended_at: map.moment("ended_at")?,
                how: map.text("how")?,
                reason: map.text("reason"),
            })
        };
        self.0.field(name)?.elements()?.iter().map(attempt).collect()
    }

    fn names(&self, name: &str) -> Option<Vec<Name>> {
        let name_of = |item: &Value| item.as_bytes().map(Name::from);
        self.0.field(name)?.elements()?.iter().map(name_of).collect()
    }

    fn origin(&self) -> Option<Origin> {
        Some(Origin {
            queue: self.name("origin_queue")?,
            id: self.name("origin_id")?,
            put_at: self.moment("origin_put_at")?,
            attempts: self.number("origin_attempts")?,
            failures: self.number("origin_failures")?,
            moved_at: self.moment("origin_at")?,
        })
    }
}

/// Returns the moment that a number of milliseconds means.
pub(crate) fn moment(value: &Value) -> Option<SystemTime> {
    let millis = u64::try_from(value.integer()?).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
