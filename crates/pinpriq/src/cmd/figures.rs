//! The figures of a server and its queues: how they are taken from replies, and which columns show
//! them.
//!
//! It asks and prints nothing: `rounds.rs` asks, `status.rs` prints tables and objects, and `top`
//! draws.

use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::Value;

pub(super) use crate::args::values::STATES;
use crate::moments;
use crate::output::escaped;
use crate::printer::{in_words, text};
use crate::units::{brief, counted};

/// The ways in which tasks leave a queue.
const WAYS_OUT: [&str; 6] = ["acked", "expired", "killed", "dead", "evicted", "moved"];

/// What stands in place of the age of a dead letter, which no worker is expected to take.
const OF_DEAD_LETTERS: &str = "(dead)";

/// The figures of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) durability: String,
    /// Why the disk failed, if it did.
    pub(super) failure: Option<String>,
    /// None if it archives nothing.
    pub(super) archive: Option<Archive>,
    /// The moment that it shows, if it is only a look.
    pub(super) look: Option<Timestamp>,
    pub(super) connections: i64,
    /// The connections of each door that has any.
    pub(super) doors: Vec<(String, i64)>,
    pub(super) shards: i64,
    pub(super) uptime_ms: u64,
    /// How many queues are paused.
    pub(super) paused: i64,
    /// All queues and lanes together.
    pub(super) all: Figures,
}

/// What a server tells of its archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Archive {
    /// `ok`, `starting`, or why nothing is archived.
    state: String,
    behind_bytes: i64,
    behind_ms: i64,
}

impl Archive {
    /// Reads a reply to `INFO`.
    fn of(info: &Value) -> Option<Self> {
        let number = |name: &str| line_of(info, name)?.parse().ok();
        let state = line_of(info, "archive_state").filter(|state| *state != "off")?;
        Some(Self {
            state: escaped(state.as_bytes()),
            behind_bytes: number("archive_behind_bytes").unwrap_or_default(),
            behind_ms: number("archive_behind_ms").unwrap_or_default(),
        })
    }

    /// For people, in one line.
    fn in_words(&self) -> String {
        let Self { state, behind_bytes, behind_ms } = self;
        if *behind_ms == 0 {
            return format!("archive: {state}");
        }
        let bytes = counted(behind_bytes.unsigned_abs(), "byte");
        let time = brief(behind_ms.unsigned_abs());
        format!("archive: {state}; {bytes} of the last {time} are not there yet")
    }

    /// For programs.
    fn members(&self) -> [(Value, Value); 3] {
        [
            (text("archive_state"), text(&self.state)),
            (text("archive_behind_bytes"), Value::Integer(self.behind_bytes)),
            (text("archive_behind_ms"), Value::Integer(self.behind_ms)),
        ]
    }
}

/// The figures of a queue, or of all together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Figures {
    /// The tasks in each state, in the order of [`STATES`].
    pub(super) counts: [i64; 6],
    /// How many tasks came in.
    pub(super) put: i64,
    pub(super) acked: i64,
    /// How many left, in whatever way.
    pub(super) left: i64,
    /// How often tasks failed.
    pub(super) failures: i64,
    /// The age of the oldest ready task.
    pub(super) oldest_ms: Option<i64>,
    /// The sides that are paused: `none`, `in`, `out` or `both`. Empty for all together.
    pub(super) paused: String,
    /// Blocked takes and pops.
    pub(super) takers: i64,
    pub(super) subscribers: i64,
    pub(super) bytes: i64,
    /// Whether dead letters of other queues come here.
    pub(super) holds_dead_letters: bool,
    /// The ready tasks of each priority, the most urgent first.
    pub(super) priorities: Vec<(String, i64)>,
}

impl Figures {
    /// Reads a reply to `STATS`.
    pub(super) fn of(stats: &Value) -> Self {
        let counts = stats.field("counts").unwrap_or(&Value::Null);
        let left = WAYS_OUT.iter().map(|way| number(stats, way));
        let of_priority =
            |(name, count): &(Value, Value)| (in_words(name), count.integer().unwrap_or_default());
        let priorities = match stats.field("priorities") {
            Some(Value::Map(pairs)) => pairs.iter().map(of_priority).collect(),
            _ => Vec::new(),
        };
        Self {
            counts: STATES.map(|(letter, ..)| number(counts, letter)),
            put: number(stats, "put"),
            acked: number(stats, "acked"),
            left: left.fold(0, i64::saturating_add),
            failures: number(stats, "failures"),
            oldest_ms: stats.field("oldest_ready_ms").and_then(Value::integer),
            paused: stats
                .field("paused")
                .and_then(Value::as_bytes)
                .map(escaped)
                .unwrap_or_default(),
            takers: number(stats, "takers"),
            subscribers: number(stats, "subscribers"),
            bytes: number(stats, "bytes"),
            holds_dead_letters: number(stats, "holds_dead_letters") > 0,
            priorities,
        }
    }

    /// How many of the ready tasks are dead letters.
    pub(super) const fn dead_letters(&self) -> i64 {
        if self.holds_dead_letters { self.counts[0] } else { 0 }
    }

    /// The figures of all together, without the dead letters among the ready tasks.
    pub(super) fn without(&self, dead_letters: i64) -> Self {
        let mut rest = self.clone();
        rest.counts[0] = rest.counts[0].saturating_sub(dead_letters).max(0);
        rest
    }
}

impl Server {
    /// Reads the replies to `INFO` and to `STATS` of all queues together. `None` if the first is
    /// not that of a pinpriq server.
    pub(super) fn of(info: &Value, stats: &Value) -> Option<Self> {
        let line = |name: &str| line_of(info, name);
        let integer = |name: &str| line(name).and_then(|it| it.parse().ok()).unwrap_or_default();
        let uptime_s: u64 = line("uptime_in_seconds")?.parse().ok()?;
        Some(Self {
            version: escaped(line("pinpriq_version")?.as_bytes()),
            durability: escaped(line("durability").unwrap_or_default().as_bytes()),
            failure: line("journal_failure")
                .filter(|failure| *failure != "none")
                .map(|failure| escaped(failure.as_bytes())),
            archive: Archive::of(info),
            look: line("look_at_ms").and_then(|it| it.parse().ok()).map(Timestamp::from_ms),
            connections: integer("connected_clients"),
            doors: doors(info),
            shards: integer("shards"),
            uptime_ms: uptime_s.saturating_mul(1_000),
            paused: number(stats, "paused"),
            all: Figures::of(stats),
        })
    }

    /// What is told of it besides figures, in lines for people.
    pub(super) fn in_words(&self) -> String {
        let archive = self.archive.as_ref().map(Archive::in_words);
        let look = self.look.map(moments::shown);
        let look = look.map(|at| format!("a look at {at}: nothing changes here"));
        archive.into_iter().chain(look).map(|line| line + "\n").collect()
    }

    /// The same for programs.
    pub(super) fn members(&self) -> impl Iterator<Item = (Value, Value)> {
        let ms = |at: Timestamp| Value::Integer(i64::try_from(at.ms()).unwrap_or(i64::MAX));
        let look = self.look.map(|at| (text("look_at_ms"), ms(at)));
        self.archive.iter().flat_map(Archive::members).chain(look)
    }
}

/// Reads how many connections each door has, of those that have any.
fn doors(info: &Value) -> Vec<(String, i64)> {
    let door = |line: &str| {
        let (door, count) = line.strip_prefix("connections_")?.split_once(':')?;
        let count = count.trim().parse().ok().filter(|count| *count > 0)?;
        Some((escaped(door.as_bytes()), count))
    };
    text_of(info).unwrap_or_default().lines().filter_map(door).collect()
}

/// Reads the time of the server from a reply to `INFO`.
pub(super) fn server_ms(info: &Value) -> Option<i64> {
    line_of(info, "server_time_ms")?.parse().ok()
}

fn text_of(info: &Value) -> Option<&str> {
    std::str::from_utf8(info.as_bytes()?).ok()
}

fn line_of<'a>(info: &'a Value, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    text_of(info)?.lines().find_map(value).map(str::trim)
}

/// A member of a map that is a number, or 0.
fn number(map: &Value, name: &str) -> i64 {
    map.field(name).and_then(Value::integer).unwrap_or_default()
}

/// Tasks in a thousand seconds, since floats are not needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rate(pub(super) i64);

impl Rate {
    /// Whole tasks in a second, rounded.
    const fn per_second(self) -> i64 {
        self.0.saturating_add(500) / 1_000
    }

    /// For people: with a decimal below 10.
    fn shown(self) -> String {
        match self.0 {
            0 => "0".to_owned(),
            // A little is not nothing.
            1..50 => "<.1".to_owned(),
            low @ ..9_950 => format!("{}.{}", (low + 50) / 1_000, (low + 50) % 1_000 / 100),
            _ => short(self.per_second()),
        }
    }
}

/// How fast tasks come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rates {
    pub(super) put: Rate,
    pub(super) acked: Rate,
    pub(super) left: Rate,
}

impl Rates {
    /// The rates between two moments. None if no time has passed, or if a counter fell: the queue
    /// or the server is another one then.
    pub(super) fn between(before: &Figures, after: &Figures, elapsed_ms: i64) -> Option<Self> {
        let rate = |from: i64, to: i64| {
            let grown = to.checked_sub(from).filter(|grown| *grown >= 0)?;
            let rate = i128::from(grown) * 1_000_000 / i128::from(elapsed_ms);
            Some(Rate(i64::try_from(rate).unwrap_or(i64::MAX)))
        };
        (elapsed_ms > 0).then_some(())?;
        Some(Self {
            put: rate(before.put, after.put)?,
            acked: rate(before.acked, after.acked)?,
            left: rate(before.left, after.left)?,
        })
    }
}

/// What is shown of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// None for all queues together.
    pub(super) queue: Option<&'a [u8]>,
    pub(super) figures: &'a Figures,
    /// None as long as they are not known.
    pub(super) rates: Option<Rates>,
    /// How many of the ready tasks are dead letters.
    pub(super) dead_letters: i64,
}

impl<'a> Row<'a> {
    pub(super) fn of(queue: &'a [u8], figures: &'a Figures, rates: Option<Rates>) -> Self {
        Self { queue: Some(queue), figures, rates, dead_letters: figures.dead_letters() }
    }
}

/// Where a figure is shown. Objects of JSON have all figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    Status,
    /// That of `top --once`.
    Once,
    /// The list of queues of `top`.
    List,
    /// A queue that was entered.
    Queue,
}

/// Something that is shown of each queue.
#[derive(Debug)]
pub(super) struct Figure {
    /// Its name in objects.
    pub(super) member: &'static str,
    /// Its name in tables.
    pub(super) head: &'static str,
    tables: &'static [Table],
    /// Its width in a list on the screen.
    pub(super) width: u16,
    /// When it leaves a narrow screen: the highest first.
    pub(super) leaves: u8,
    pub(super) value: fn(&Row<'_>) -> Shown,
}

/// The value of a figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    Count(i64),
    Rate(Option<Rate>),
    /// Of the oldest ready task.
    AgeMs(Option<i64>),
    /// Of a dead letter.
    DeadAgeMs(i64),
    /// What is paused.
    Sides(String),
}

impl Shown {
    /// For tables.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Rate(Some(rate)) => rate.shown(),
            Self::AgeMs(Some(age)) => brief(age.unsigned_abs()),
            Self::DeadAgeMs(_) => OF_DEAD_LETTERS.to_owned(),
            Self::Sides(sides) if !matches!(sides.as_str(), "" | "none") => sides.clone(),
            Self::Rate(None) | Self::AgeMs(None) | Self::Sides(_) => "-".to_owned(),
        }
    }

    /// For the screen, in as many letters as there is room for.
    pub(super) fn short(&self) -> String {
        match self {
            Self::Count(count) => short(*count),
            // What is too long does without its second unit.
            Self::AgeMs(Some(_)) if self.text().len() > 6 => {
                let text = self.text();
                let end = text.find(|letter: char| letter.is_ascii_alphabetic());
                end.and_then(|end| text.get(..=end)).unwrap_or(&text).to_owned()
            }
            _ => self.text(),
        }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Count(number) | Self::AgeMs(Some(number)) | Self::DeadAgeMs(number) => {
                Value::Integer(*number)
            }
            Self::Rate(rate) => Value::Integer(rate.unwrap_or_default().per_second()),
            Self::Sides(sides) if !sides.is_empty() => text(sides),
            Self::AgeMs(None) | Self::Sides(_) => Value::Null,
        }
    }

    /// What rows are put in order by. No worker waits for dead letters.
    pub(super) fn rank(&self) -> Option<i64> {
        match self {
            Self::Count(count) => Some(*count),
            Self::Rate(rate) => rate.map(|rate| rate.0),
            Self::AgeMs(age) => *age,
            Self::DeadAgeMs(_) => None,
            Self::Sides(_) => Some(i64::from(self.text() != "-")),
        }
    }
}

const fn state<const PLACE: usize>(row: &Row<'_>) -> Shown {
    Shown::Count(row.figures.counts[PLACE])
}

fn rate(row: &Row<'_>, of: impl Fn(Rates) -> Rate) -> Shown {
    Shown::Rate(row.rates.map(of))
}

fn oldest(row: &Row<'_>) -> Shown {
    match row.figures.oldest_ms {
        Some(oldest) if row.figures.holds_dead_letters => Shown::DeadAgeMs(oldest),
        oldest => Shown::AgeMs(oldest),
    }
}

impl Figure {
    const fn new(
        member: &'static str,
        head: &'static str,
        tables: &'static [Table],
        value: fn(&Row<'_>) -> Shown,
    ) -> Self {
        Self { member, head, tables, width: 0, leaves: 0, value }
    }

    const fn on_screen(mut self, width: u16, leaves: u8) -> Self {
        (self.width, self.leaves) = (width, leaves);
        self
    }
}

const EVERYWHERE: &[Table] = &[Table::Status, Table::Once, Table::List, Table::Queue];
const BUT_THE_LIST: &[Table] = &[Table::Status, Table::Once, Table::Queue];
const TOP: &[Table] = &[Table::Once, Table::List, Table::Queue];

/// All that is shown of queues.
pub(super) static FIGURES: [Figure; 19] = [
    Figure::new("ready", "ready", EVERYWHERE, state::<0>).on_screen(6, 1),
    Figure::new("taken", "taken", EVERYWHERE, state::<1>).on_screen(6, 3),
    Figure::new("waiting", "waiting", EVERYWHERE, state::<2>).on_screen(7, 7),
    Figure::new("buried", "buried", EVERYWHERE, state::<3>).on_screen(6, 6),
    Figure::new("zombie", "zombie", BUT_THE_LIST, state::<4>),
    Figure::new("done", "done", BUT_THE_LIST, state::<5>),
    Figure::new("put_per_second", "put/s", &[Table::Status], |row| rate(row, |it| it.put)),
    Figure::new("acked_per_second", "acked/s", &[Table::Status], |row| rate(row, |it| it.acked)),
    Figure::new("in_per_second", "in/s", TOP, |row| rate(row, |it| it.put)).on_screen(5, 5),
    Figure::new("out_per_second", "out/s", TOP, |row| rate(row, |it| it.left)).on_screen(5, 2),
    Figure::new("put", "", &[], |row| Shown::Count(row.figures.put)),
    Figure::new("left", "", &[], |row| Shown::Count(row.figures.left)),
    Figure::new("failures", "failures", &[Table::Queue], |row| Shown::Count(row.figures.failures)),
    Figure::new("takers", "takers", &[Table::Queue], |row| Shown::Count(row.figures.takers)),
    Figure::new("subscribers", "subscribers", &[Table::Queue], |row| {
        Shown::Count(row.figures.subscribers)
    }),
    Figure::new("bytes", "", &[], |row| Shown::Count(row.figures.bytes)),
    Figure::new("oldest_ready_ms", "oldest", EVERYWHERE, oldest).on_screen(6, 4),
    Figure::new("paused", "paused", EVERYWHERE, |row| Shown::Sides(row.figures.paused.clone()))
        .on_screen(6, 8),
    Figure::new("dead_letters", "", &[], |row| Shown::Count(row.dead_letters)),
];

/// The columns of a table.
pub(super) fn columns(table: Table) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(move |figure| figure.tables.contains(&table))
}

/// A number in five columns at most, such as `99999`, `123k` or `4.5M`.
pub(super) fn short(number: i64) -> String {
    const UNITS: [(i64, &str); 6] = [
        (1_000, "k"),
        (1_000_000, "M"),
        (1_000_000_000, "G"),
        (1_000_000_000_000, "T"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000_000_000, "E"),
    ];
    if number < 100_000 {
        return number.to_string();
    }
    let found = UNITS.iter().rev().find(|(size, _)| number >= *size);
    let Some((size, unit)) = found else { return number.to_string() };
    match number / size {
        whole @ ..10 => format!("{whole}.{}{unit}", number % size / (size / 10)),
        whole => format!("{whole}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::{Figures, Rate, Rates, Server, server_ms, short};
    use crate::output::escaped;

    fn map(pairs: &[(&str, Value)]) -> Value {
        let pair = |(name, value): &(&str, Value)| (bulk(name), value.clone());
        Value::Map(pairs.iter().map(pair).collect())
    }

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn figures_are_read_by_their_names() {
        let figures = Figures::of(&map(&[
            ("counts", map(&[("T", Value::Integer(2)), ("R", Value::Integer(5))])),
            ("oldest_ready_ms", Value::Integer(70)),
            ("put", Value::Integer(20)),
            ("acked", Value::Integer(7)),
            ("moved", Value::Integer(3)),
            ("paused", bulk("out")),
            ("priorities", map(&[("-3", Value::Integer(5))])),
        ]));
        let expected = Figures {
            counts: [5, 2, 0, 0, 0, 0],
            put: 20,
            left: 10,
            acked: 7,
            oldest_ms: Some(70),
            paused: "out".to_owned(),
            priorities: vec![("-3".to_owned(), 5)],
            ..Figures::default()
        };
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_failure_of_the_disk_is_told_and_none_is_not() {
        let text = "# Server\r\npinpriq_version:0.1.0\r\nuptime_in_seconds:3\r\n\
                    server_time_ms:1234\r\njournal_failure:";
        let of = |failure: &str| bulk(&format!("{text}{failure}\r\n"));
        assert_eq!(server_ms(&of("none")), Some(1234));
        let failure = |failure| Server::of(&of(failure), &Value::Null).unwrap().failure;
        assert_eq!(failure("none"), None);
        assert_eq!(failure("no space").as_deref(), Some("no space"));
        assert_eq!(Server::of(&bulk("redis_version:7\r\n"), &Value::Null), None);
    }

    #[test]
    fn an_archive_is_told_if_there_is_one() {
        let of = |state: &str, behind: &str| {
            let text = format!("pinpriq_version:0.1.0\r\nuptime_in_seconds:3\r\n{state}{behind}");
            Server::of(&bulk(&text), &Value::Null).unwrap().archive.map(|it| it.in_words())
        };
        assert_eq!(of("", ""), None);
        assert_eq!(of("archive_state:off\r\n", "archive_behind_ms:0\r\n"), None);
        assert_eq!(of("archive_state:ok\r\n", "").as_deref(), Some("archive: ok"));
        let behind = "archive_behind_bytes:1234\r\narchive_behind_ms:61000\r\n";
        let expected = "archive: s3://b: no answer; 1,234 bytes of the last 1m1s are not there yet";
        assert_eq!(of("archive_state:s3://b: no answer\r\n", behind).as_deref(), Some(expected));
    }

    #[test]
    fn a_look_is_told_and_a_server_that_goes_on_is_not() {
        let of = |look: &str| {
            let text = format!("pinpriq_version:0.1.0\r\nuptime_in_seconds:3\r\n{look}");
            Server::of(&bulk(&text), &Value::Null).unwrap()
        };
        let look = of("look_at_ms:2500\r\n");
        let expected = "a look at 1970-01-01T00:00:02.500Z: nothing changes here\n";
        assert_eq!(look.in_words(), expected);
        assert_eq!(
            Value::Map(look.members().collect()),
            map(&[("look_at_ms", Value::Integer(2_500))])
        );
        assert_eq!((of("").in_words().as_str(), of("").members().count()), ("", 0));
    }

    #[test]
    fn no_bytes_reach_the_terminal_as_they_are() {
        let nasty = "a\u{1b}[2J\n\u{202e}x\u{200b}\u{9b}31m".as_bytes();
        assert_eq!(escaped(nasty), "a\\u{1b}[2J\\n\\u{202e}x\\u{200b}\\u{9b}31m");
        assert_eq!(escaped(b"\xffgr\xc3\xbcn"), "\\xffgr\u{fc}n");
    }

    #[test]
    fn rates_are_those_of_the_time_between() {
        let of = |put, acked, left| Figures { put, acked, left, ..Figures::default() };
        let rates = Rates { put: Rate(5_000), acked: Rate(500), left: Rate(0) };
        assert_eq!(Rates::between(&of(5, 5, 7), &of(15, 6, 7), 2_000), Some(rates));
        // A counter that falls belongs to another queue, or a clock was set back.
        for (after, elapsed_ms) in [(of(4, 9, 9), 1), (of(9, 9, 6), 1), (of(9, 9, 9), -1)] {
            assert_eq!(Rates::between(&of(5, 5, 7), &after, elapsed_ms), None);
        }
    }

    #[test]
    fn numbers_fit_their_columns() {
        let rates = [(0, "0"), (40, "<.1"), (949, "0.9"), (9_949, "9.9"), (9_950, "10")];
        for (rate, expected) in rates {
            assert_eq!(Rate(rate).shown(), expected);
        }
        let numbers =
            [(99_999, "99999"), (100_000, "100k"), (1_250_000, "1.2M"), (i64::MAX, "9.2E")];
        for (number, expected) in numbers {
            assert_eq!(short(number), expected);
        }
    }
}
