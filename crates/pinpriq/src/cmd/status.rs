//! `pinpriq status`: a table of the queues, with how fast tasks come and go.
//!
//! Everything is asked for twice, about a second apart. The clock is that of the server.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use crate::args::queues::StatusArgs;
use crate::columns::{aligned, shortened};
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::{escaped, print_text};
use crate::printer::{Printer, shown, text};
use crate::resp::{Client, member, unexpected};
use crate::units::brief;
use crate::words::OsWords as _;

/// How long rates are watched.
const WATCH: Duration = Duration::from_secs(1);

/// How many queues are asked for at a time.
const UNDER_WAY_MAX: usize = 100;

/// The states, by their letters and in words.
pub(crate) const STATES: [(&str, &str); 6] = [
    ("R", "ready"),
    ("T", "taken"),
    ("W", "waiting"),
    ("B", "buried"),
    ("Z", "zombie"),
    ("D", "done"),
];

/// The figures of a queue, or of all of them.
struct Row {
    /// None for all of them together.
    queue: Option<Vec<u8>>,
    counts: [i64; 6],
    put_per_second: i64,
    acked_per_second: i64,
    oldest_ms: Option<u64>,
    paused: Option<String>,
    /// How many of the ready tasks are dead letters; all of them in a queue for dead letters.
    dead_letters: i64,
    /// Whether dead letters of other queues come here.
    holds_dead_letters: bool,
}

/// The figures at one moment: of each queue that was there, then of all together.
struct Snapshot {
    server_ms: i64,
    figures: Vec<Option<Value>>,
}

/// Prints the table.
pub(crate) fn status(arguments: &StatusArgs) -> Result<Exit, Failure> {
    let mut client = Client::open(&arguments.client.endpoint()?)?;
    let (names, more) = names(&mut client, arguments)?;
    let first = snapshot(&mut client, &names)?;
    // Nothing is ever sent: this waits until the time has passed.
    let (_kept, never) = sync_channel::<()>(0);
    let _ = never.recv_timeout(WATCH);
    let second = snapshot(&mut client, &names)?;
    let elapsed_ms = second.server_ms.saturating_sub(first.server_ms).max(1);

    let queues = names.into_iter().map(Some);
    let mut rows: Vec<Row> = queues
        .chain([None])
        .zip(first.figures.iter().zip(&second.figures))
        .filter_map(|(queue, pair)| match pair {
            (Some(before), Some(after)) => Some(row(queue, before, after, elapsed_ms)),
            // It came to an end meanwhile.
            _ => None,
        })
        .collect();
    let dead_letters = rows.iter().map(|row| row.dead_letters).sum();
    if let Some(all) = rows.last_mut() {
        all.dead_letters = dead_letters;
    }
    if arguments.client.json {
        print_objects(&rows)?;
    } else {
        print_text(table(&rows).as_bytes())?;
    }
    if more {
        tell(format!(
            "there are more than {} queues: --count shows more of them, --prefix others",
            arguments.count
        ));
    }
    Ok(Exit::Done)
}

/// What is sent first.
pub(super) fn list_words(arguments: &StatusArgs) -> Words {
    let words = Words::new("QUEUE LIST").named("PREFIX", arguments.prefix.as_deref());
    words.option("COUNT", Some(arguments.count))
}

/// Returns the names of the queues that are shown, and whether there are more.
fn names(client: &mut Client, arguments: &StatusArgs) -> Result<(Vec<Vec<u8>>, bool), Failure> {
    let Value::Array(parts) = client.call(&list_words(arguments))? else {
        return Err(unexpected());
    };
    let [cursor, Value::Array(names)] = parts.as_slice() else { return Err(unexpected()) };
    let names = names.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect();
    Ok((names, cursor.as_bytes() != Some(b"0")))
}

/// Asks for everything once.
fn snapshot(client: &mut Client, names: &[Vec<u8>]) -> Result<Snapshot, Failure> {
    let info = client.call(&Words::new("INFO Server"))?;
    let server_ms = info
        .as_bytes()
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("server_time_ms:")))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(unexpected)?;
    let mut figures = Vec::new();
    for names in names.chunks(UNDER_WAY_MAX) {
        let mut bytes = Vec::new();
        for name in names {
            Words::new("STATS").bytes(name).put(&mut bytes);
        }
        client.send(&bytes)?;
        for _ in names {
            figures.push(match client.reply()? {
                Value::Error(sentence) if sentence.starts_with("NOQUEUE") => None,
                Value::Error(sentence) => return Err(Failure::refused(sentence)),
                figures => Some(figures),
            });
        }
    }
    figures.push(Some(client.call(&Words::new("STATS"))?));
    Ok(Snapshot { server_ms, figures })
}

fn row(queue: Option<Vec<u8>>, before: &Value, after: &Value, elapsed_ms: i64) -> Row {
    let per_second = |name: &str| {
        // A queue that was removed and came back counts from 0.
        let grown = number(after, name).saturating_sub(number(before, name)).max(0);
        grown.saturating_mul(1_000).saturating_add(elapsed_ms / 2) / elapsed_ms
    };
    let counts = member(after, "counts").unwrap_or(&Value::Null);
    let oldest_ms = match member(after, "oldest_ready_ms") {
        Some(Value::Integer(oldest)) => u64::try_from(*oldest).ok(),
        _ => None,
    };
    let paused = member(after, "paused").and_then(Value::as_bytes);
    let counts = STATES.map(|(letter, _)| number(counts, letter));
    let holds_dead_letters = number(after, "holds_dead_letters") > 0;
    Row {
        queue,
        dead_letters: if holds_dead_letters { counts[0] } else { 0 },
        holds_dead_letters,
        counts,
        put_per_second: per_second("put"),
        acked_per_second: per_second("acked"),
        oldest_ms,
        paused: paused.filter(|side| *side != b"none").map(escaped),
    }
}

fn number(map: &Value, name: &str) -> i64 {
    match member(map, name) {
        Some(Value::Integer(number)) => *number,
        _ => 0,
    }
}

/// What stands in place of the age of a dead letter, which no worker is expected to take.
pub(super) const OF_DEAD_LETTERS: &str = "(dead)";

/// The rows as lines of equal length, below a line with the names of the columns. Dead letters are
/// not among the ready tasks of all together, and have a line of their own.
fn table(rows: &[Row]) -> String {
    let mut heads = vec!["queue"];
    heads.extend(STATES.map(|(_, state)| state));
    heads.extend(["put/s", "acked/s", "oldest", "paused"]);
    let mut lines: Vec<Vec<String>> = vec![heads.into_iter().map(str::to_owned).collect()];
    for row in rows {
        let name = row.queue.as_ref().map(|name| shortened(&escaped(name)));
        let mut line = vec![name.unwrap_or_else(|| "(all)".to_owned())];
        line.extend(apart(row.queue.is_none(), row.counts, row.dead_letters));
        line.extend([row.put_per_second.to_string(), row.acked_per_second.to_string()]);
        line.push(match row.oldest_ms {
            Some(_) if row.holds_dead_letters => OF_DEAD_LETTERS.to_owned(),
            oldest => oldest.map_or_else(|| "-".to_owned(), brief),
        });
        line.push(row.paused.clone().unwrap_or_else(|| "-".to_owned()));
        lines.push(line);
    }
    lines.extend(rows.last().and_then(|all| line_of_dead_letters(all.dead_letters)));
    aligned(&lines)
}

/// The counts of a row. That of all together leaves out the dead letters.
pub(super) fn apart(
    is_all: bool,
    counts: [i64; 6],
    dead_letters: i64,
) -> impl Iterator<Item = String> {
    let left_out = [if is_all { dead_letters } else { 0 }, 0, 0, 0, 0, 0];
    let counts = counts.into_iter().zip(left_out);
    counts.map(|(count, left_out)| count.saturating_sub(left_out).max(0).to_string())
}

/// The line below that of all together, if there are dead letters.
pub(super) fn line_of_dead_letters(dead_letters: i64) -> Option<Vec<String>> {
    let mut line = vec!["(dead letters)".to_owned(), dead_letters.to_string()];
    line.resize(1 + STATES.len() + 4, "-".to_owned());
    (dead_letters > 0).then_some(line)
}

/// The rows as objects. That of all queues together has no name.
fn print_objects(rows: &[Row]) -> Result<(), Failure> {
    let mut printer = Printer::to_stdout(true);
    for row in rows {
        let queue = row.queue.as_ref().map_or(Value::Null, text);
        let counts = row.counts.map(Value::Integer);
        let oldest = row.oldest_ms.and_then(|oldest| i64::try_from(oldest).ok());
        let rest = [
            ("put_per_second", Value::Integer(row.put_per_second)),
            ("acked_per_second", Value::Integer(row.acked_per_second)),
            ("oldest_ready_ms", oldest.map_or(Value::Null, Value::Integer)),
            ("paused", row.paused.as_ref().map_or(Value::Null, text)),
            ("dead_letters", Value::Integer(row.dead_letters)),
        ];
        let mut fields = vec![shown("queue", &queue)];
        fields.extend(STATES.iter().zip(&counts).map(|((_, state), count)| shown(state, count)));
        fields.extend(rest.iter().map(|(name, value)| shown(name, value)));
        printer.fields(&fields)?;
    }
    printer.flush().map(|_| ())
}
