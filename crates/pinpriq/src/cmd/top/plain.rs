//! `top --once` and `top --json`: the same figures without a terminal.
//!
//! Rates need two rounds, so the first round is never printed.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use pinpriq_proto::wire::resp::Value;

use super::asker::{Asker, QUEUES_MAX};
use super::figures::{Figures, Round, STATES, plain};
use super::history::{History, Rate};
use crate::args::top::TopArgs;
use crate::cmd::status::{OF_DEAD_LETTERS, apart, line_of_dead_letters};
use crate::columns::{aligned, shortened};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::print_text;
use crate::printer::Printer;
use crate::units::brief;

/// A queue in a round that is printed, with what came in and left since the last one.
struct Row<'a> {
    /// None for all queues together.
    queue: Option<&'a [u8]>,
    figures: &'a Figures,
    put: Rate,
    left: Rate,
    /// How many of the ready tasks are dead letters.
    dead_letters: i64,
}

/// Prints rounds.
pub(super) fn print(arguments: &TopArgs) -> Result<Exit, Failure> {
    let prefix = arguments.prefix.as_ref().map(|prefix| prefix.as_bytes());
    let mut asker = Asker::open(&arguments.client.endpoint()?, prefix)?;
    let interval = Duration::from_millis(arguments.interval);
    let pause = Pause::new();
    let mut before = asker.round(&[], QUEUES_MAX)?;
    loop {
        let took = Duration::from_millis(u64::try_from(before.took_ms).unwrap_or_default());
        pause.pass(interval.saturating_sub(took));
        let round = asker.round(&[], QUEUES_MAX)?;
        let rows = rows(&before, &round);
        let wanted = if arguments.client.json {
            let mut printer = Printer::to_stdout(true);
            printer.map(&object(&before, &round, &rows))?;
            printer.flush()?
        } else {
            print_text(table(&rows).as_bytes())?;
            Wanted::NoMore
        };
        if round.more && arguments.once {
            let sentence = "there are more queues than are looked at: --prefix shows others";
            tell(format!("{sentence} ({QUEUES_MAX} at most)"));
        }
        if arguments.once || wanted == Wanted::NoMore {
            return Ok(Exit::Done);
        }
        before = round;
    }
}

/// A wait for time to pass, and for nothing else.
struct Pause {
    _kept: SyncSender<()>,
    never: std::sync::mpsc::Receiver<()>,
}

impl Pause {
    fn new() -> Self {
        let (kept, never) = sync_channel(0);
        Self { _kept: kept, never }
    }

    fn pass(&self, time: Duration) {
        let _ = self.never.recv_timeout(time);
    }
}

/// The queues of a round in the order of their names, then all together.
fn rows<'a>(before: &Round, round: &'a Round) -> Vec<Row<'a>> {
    let earlier: std::collections::HashMap<&[u8], &Figures> =
        before.figures.iter().map(|(name, figures)| (name.as_slice(), figures)).collect();
    let row = |queue: Option<&'a [u8]>, was: Option<&Figures>, figures: &'a Figures| {
        let mut history = History::default();
        // What was not there before has begun with nothing.
        let nothing = Figures::default();
        history.note(before.server_ms, was.unwrap_or(&nothing));
        history.note(round.server_ms, figures);
        let (put, left) = history.rates().unwrap_or_default();
        Row { queue, figures, put, left, dead_letters: figures.dead_letters() }
    };
    let mut figures: Vec<&(Vec<u8>, Figures)> = round.figures.iter().collect();
    figures.sort_by(|(one, _), (other, _)| one.cmp(other));
    let queues = figures.into_iter();
    let mut rows: Vec<Row<'a>> = queues
        .map(|(name, figures)| row(Some(name), earlier.get(name.as_slice()).copied(), figures))
        .collect();
    let dead_letters = rows.iter().map(|row| row.dead_letters).sum();
    let all = row(None, Some(&before.server.all), &round.server.all);
    rows.push(Row { dead_letters, ..all });
    rows
}

fn table(rows: &[Row<'_>]) -> String {
    let mut heads = vec!["queue"];
    heads.extend(STATES.map(|(_, state)| state));
    heads.extend(["in/s", "out/s", "oldest", "paused"]);
    let mut lines: Vec<Vec<String>> = vec![heads.into_iter().map(str::to_owned).collect()];
    for row in rows {
        let name = row.queue.map(|name| shortened(&plain(name)));
        let mut line = vec![name.unwrap_or_else(|| "(all)".to_owned())];
        line.extend(apart(row.queue.is_none(), row.figures.counts, row.dead_letters));
        line.extend([row.put.shown(), row.left.shown()]);
        line.push(match row.figures.oldest_ms {
            Some(_) if row.figures.holds_dead_letters => OF_DEAD_LETTERS.to_owned(),
            oldest => oldest.map_or_else(|| "-".to_owned(), brief),
        });
        line.push(match (row.queue, row.figures.paused.as_str()) {
            (None, _) | (_, "none") => "-".to_owned(),
            (_, side) => side.to_owned(),
        });
        lines.push(line);
    }
    lines.extend(rows.last().and_then(|all| line_of_dead_letters(all.dead_letters)));
    aligned(&lines)
}

/// A round as an object.
fn object(before: &Round, round: &Round, rows: &[Row<'_>]) -> Value {
    let (all, queues) = rows.split_last().map_or((None, rows), |(all, queues)| (Some(all), queues));
    let server = &round.server;
    let mut of_server = vec![
        pair("version", text(&server.version)),
        pair("durability", text(&server.durability)),
        pair("journal_failure", server.failure.as_deref().map_or(Value::Null, text)),
        pair("connections", Value::Integer(server.connections)),
        pair(
            "doors",
            Value::Map(
                server
                    .doors
                    .iter()
                    .map(|(door, count)| pair(door, Value::Integer(*count)))
                    .collect(),
            ),
        ),
        pair("shards", Value::Integer(server.shards)),
        pair("queues", count(round.names.len())),
        pair("queues_paused", Value::Integer(server.paused)),
    ];
    of_server.extend(all.map(figures).unwrap_or_default());
    let queues = queues.iter().map(|row| {
        let name = row.queue.map_or(Value::Null, |name| Value::Bulk(name.to_vec()));
        let mut members = vec![pair("queue", name)];
        members.extend(figures(row));
        let oldest = row.figures.oldest_ms.and_then(|oldest| i64::try_from(oldest).ok());
        members.push(pair("oldest_ready_ms", oldest.map_or(Value::Null, Value::Integer)));
        members.push(pair("paused", text(&row.figures.paused)));
        Value::Map(members)
    });
    Value::Map(vec![
        pair("server_time_ms", Value::Integer(round.server_ms)),
        pair("elapsed_ms", Value::Integer(round.server_ms.saturating_sub(before.server_ms))),
        pair("took_ms", Value::Integer(round.took_ms)),
        pair("more_queues", Value::Boolean(round.more)),
        pair("server", Value::Map(of_server)),
        pair("queues", Value::Array(queues.collect())),
    ])
}

fn figures(row: &Row<'_>) -> Vec<(Value, Value)> {
    let figures = row.figures;
    let counts = STATES.iter().zip(figures.counts);
    let mut members: Vec<(Value, Value)> =
        counts.map(|((_, state), count)| pair(state, Value::Integer(count))).collect();
    let rest = [
        ("in_per_second", row.put.per_second()),
        ("out_per_second", row.left.per_second()),
        ("put", figures.put),
        ("left", figures.left),
        ("failures", figures.failures),
        ("takers", figures.takers),
        ("subscribers", figures.subscribers),
        ("bytes", figures.bytes),
        ("dead_letters", row.dead_letters),
    ];
    members.extend(rest.map(|(name, number)| pair(name, Value::Integer(number))));
    members
}

fn pair(name: &str, value: Value) -> (Value, Value) {
    (text(name), value)
}

fn text(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn count(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}
