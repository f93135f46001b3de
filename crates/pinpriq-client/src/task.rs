//! A task, as the server tells about it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinpriq_proto::wire::resp::Value;

use crate::name::Name;

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

/// A task, and all that the server tells about it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Task {
    /// The queue, or the topic of a task in a lane.
    pub queue: Name,
    /// Whose lane it is in, if it is in one.
    pub member: Option<Name>,
    /// Its id.
    pub id: Name,
    /// The text that proves the lease, if it was just taken.
    pub receipt: Option<Name>,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Its key. Tasks with one key travel together.
    pub key: Option<Vec<u8>>,
    /// How urgent it is: a lower number is more urgent. A task without one leaves only with its
    /// group.
    pub priority: Option<i64>,
    /// Its state. For a task that was popped, the one before.
    pub state: State,
    /// How often it was taken, this time included.
    pub attempts: u64,
    /// How often it has failed.
    pub failures: u64,
    /// Why it failed or was buried the last time.
    pub reason: Option<String>,
    /// When it was put.
    pub put_at: Option<SystemTime>,
    /// When its time to live ends.
    pub ttl_at: Option<SystemTime>,
    /// When its delay ends.
    pub ready_at: Option<SystemTime>,
    /// When its lease ends.
    pub lease_until: Option<SystemTime>,
    /// When a zombie leaves.
    pub purge_at: Option<SystemTime>,
    /// The number of the connection that has taken it.
    pub client: Option<u64>,
    /// The name of that connection.
    pub client_name: Option<String>,
    /// The address of that connection.
    pub client_address: Option<String>,
    /// Where a dead letter comes from.
    pub origin: Option<Origin>,
    /// The schedule that has put it.
    pub schedule: Option<Name>,
    /// The moment for which the schedule has put it.
    pub slot: Option<SystemTime>,
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
    pub put_at: Option<SystemTime>,
    /// How often it was taken there.
    pub attempts: u64,
    /// How often it failed there.
    pub failures: u64,
    /// When it moved.
    pub moved_at: Option<SystemTime>,
}

impl Task {
    /// Reads the map that `WITHMETA` gives. Returns none if it is something else.
    pub(crate) fn read(map: &Value) -> Option<Self> {
        let text = |name| map.field(name).and_then(Value::as_bytes).map(lossy);
        let name = |name| map.field(name).and_then(Value::as_bytes).map(Name::from);
        let moment = |name| map.field(name).and_then(moment);
        let number = |name| map.field(name).and_then(Value::integer);
        let count = |name| number(name).and_then(|it| u64::try_from(it).ok());
        let bytes = |name| map.field(name).and_then(Value::as_bytes).map(<[u8]>::to_vec);
        let origin = name("origin_queue").map(|queue| Origin {
            queue,
            id: name("origin_id").unwrap_or_default(),
            put_at: moment("origin_put_at"),
            attempts: count("origin_attempts").unwrap_or(0),
            failures: count("origin_failures").unwrap_or(0),
            moved_at: moment("origin_at"),
        });
        Some(Self {
            queue: name("queue")?,
            member: name("member"),
            id: name("id")?,
            receipt: name("receipt"),
            payload: bytes("payload")?,
            key: bytes("key"),
            priority: number("priority"),
            state: map.field("state").and_then(Value::as_bytes).and_then(State::of)?,
            attempts: count("attempts").unwrap_or(0),
            failures: count("failures").unwrap_or(0),
            reason: text("reason"),
            put_at: moment("put_at"),
            ttl_at: moment("ttl_at"),
            ready_at: moment("ready_at"),
            lease_until: moment("lease_until"),
            purge_at: moment("purge_at"),
            client: count("client"),
            client_name: text("client_name"),
            client_address: text("client_address"),
            origin,
            schedule: name("schedule"),
            slot: moment("slot"),
        })
    }

    /// Returns the payload as text, or says where it is not UTF-8.
    pub fn text(&self) -> Result<&str, std::str::Utf8Error> {
        std::str::from_utf8(&self.payload)
    }
}

/// Returns the moment that a number of milliseconds means.
pub(crate) fn moment(value: &Value) -> Option<SystemTime> {
    let millis = u64::try_from(value.integer()?).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
