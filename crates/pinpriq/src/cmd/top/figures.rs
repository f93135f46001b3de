//! What one round of questions tells: the figures of the server and of queues.
//!
//! It only reads replies. Who asks, and when, is in `asker.rs`; rates are made in `history.rs`.

use pinpriq_proto::wire::resp::Value;

pub(super) use crate::cmd::status::STATES;
use crate::output::escaped;
pub(super) use crate::output::escaped as plain;

/// The ways in which tasks leave a queue.
const WAYS_OUT: [&str; 6] = ["acked", "expired", "killed", "dead", "evicted", "moved"];

/// What was learnt in one round.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Round {
    /// The time of the server at the beginning of the round.
    pub(super) server_ms: i64,
    /// How long the round took.
    pub(super) took_ms: i64,
    /// The figures of the server.
    pub(super) server: Server,
    /// The names of the queues, in the order of their bytes.
    pub(super) names: Vec<Vec<u8>>,
    /// Whether there are more queues than are looked at.
    pub(super) more: bool,
    /// The figures of those that were asked for.
    pub(super) figures: Vec<(Vec<u8>, Figures)>,
}

/// The figures of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Server {
    pub(super) version: String,
    pub(super) durability: String,
    /// Why the disk failed, if it did.
    pub(super) failure: Option<String>,
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

/// The figures of a queue, or of all together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Figures {
    /// The tasks in each state, in the order of [`STATES`].
    pub(super) counts: [i64; 6],
    /// How many tasks came in.
    pub(super) put: i64,
    /// How many left, in whatever way.
    pub(super) left: i64,
    /// How often tasks failed.
    pub(super) failures: i64,
    /// The age of the oldest ready task.
    pub(super) oldest_ms: Option<u64>,
    /// The sides that are paused: `none`, `in`, `out` or `both`.
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
        let priorities = match stats.field("priorities") {
            Some(Value::Map(pairs)) => {
                let pair = |(name, count): &(Value, Value)| {
                    (in_words(name), count.integer().unwrap_or_default())
                };
                pairs.iter().map(pair).collect()
            }
            _ => Vec::new(),
        };
        Self {
            counts: STATES.map(|(letter, _)| number(counts, letter)),
            put: number(stats, "put"),
            left: left.fold(0, i64::saturating_add),
            failures: number(stats, "failures"),
            oldest_ms: stats
                .field("oldest_ready_ms")
                .and_then(Value::integer)
                .and_then(|oldest| u64::try_from(oldest).ok()),
            paused: stats.field("paused").map_or_else(String::new, in_words),
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

    /// For how long a ready task has been waited for. No worker waits for dead letters.
    pub(super) fn oldest_awaited_ms(&self) -> Option<u64> {
        self.oldest_ms.filter(|_| !self.holds_dead_letters)
    }

    /// Whether takers are held up.
    pub(super) fn is_paused_out(&self) -> bool {
        matches!(self.paused.as_str(), "out" | "both")
    }
}

impl Server {
    /// Reads the replies to `INFO` and to `STATS` of all queues together. `None` if the first is
    /// not that of a pinpriq server.
    pub(super) fn of(info: &Value, stats: &Value) -> Option<Self> {
        let text = text_of(info)?;
        let line = |name: &str| line_of(text, name);
        let integer = |name: &str| line(name).and_then(|it| it.parse().ok()).unwrap_or_default();
        let uptime_s: u64 = line("uptime_in_seconds")?.parse().ok()?;
        Some(Self {
            version: escaped(line("pinpriq_version")?.as_bytes()),
            durability: escaped(line("durability").unwrap_or_default().as_bytes()),
            failure: line("journal_failure")
                .filter(|failure| *failure != "none")
                .map(|failure| escaped(failure.as_bytes())),
            connections: integer("connected_clients"),
            doors: doors(text),
            shards: integer("shards"),
            uptime_ms: uptime_s.saturating_mul(1_000),
            paused: number(stats, "paused"),
            all: Figures::of(stats),
        })
    }
}

/// Reads how many connections each door has, of those that have any.
fn doors(text: &str) -> Vec<(String, i64)> {
    let door = |line: &str| {
        let (door, count) = line.strip_prefix("connections_")?.split_once(':')?;
        let count = count.trim().parse().ok().filter(|count| *count > 0)?;
        Some((escaped(door.as_bytes()), count))
    };
    text.lines().filter_map(door).collect()
}

/// Reads the time of the server from a reply to `INFO`.
pub(super) fn server_ms(info: &Value) -> Option<i64> {
    line_of(text_of(info)?, "server_time_ms")?.parse().ok()
}

fn text_of(info: &Value) -> Option<&str> {
    std::str::from_utf8(info.as_bytes()?).ok()
}

fn line_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    text.lines().find_map(value).map(str::trim)
}

/// A member of a map that is a number, or 0.
pub(super) fn number(map: &Value, name: &str) -> i64 {
    map.field(name).and_then(Value::integer).unwrap_or_default()
}

/// A plain value for people, with escapes for what cannot be printed.
pub(super) fn in_words(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Error(sentence) => escaped(sentence.as_bytes()),
        other => other.as_bytes().map_or_else(|| "-".to_owned(), escaped),
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::{Figures, Server, plain, server_ms};

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
            oldest_ms: Some(70),
            paused: "out".to_owned(),
            priorities: vec![("-3".to_owned(), 5)],
            ..Figures::default()
        };
        assert_eq!(figures, expected);
        assert!(figures.is_paused_out());
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
    fn no_bytes_reach_the_terminal_as_they_are() {
        let nasty = "a\u{1b}[2J\n\u{202e}x\u{200b}\u{9b}31m".as_bytes();
        assert_eq!(plain(nasty), "a\\u{1b}[2J\\n\\u{202e}x\\u{200b}\\u{9b}31m");
        assert_eq!(plain(b"\xffgr\xc3\xbcn"), "\\xffgr\u{fc}n");
    }
}
