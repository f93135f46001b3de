//! `pinpriq status`, and `top` without a terminal: a table of the queues, with how fast tasks come
//! and go, or objects for programs.
//!
//! Rates need two rounds of figures, so the first is never printed. The clock is that of the
//! server.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use pinpriq_proto::wire::resp::Value;

use super::figures::{FIGURES, Figures, Rates, Row, Server, Table, columns};
use super::rounds::{Asker, QUEUES_MAX, Round};
use crate::args::queues::StatusArgs;
use crate::args::top::TopArgs;
use crate::cmd::pass;
use crate::columns::{aligned, shortened};
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::{escaped, print_text};
use crate::printer::{Printer, text};
use crate::resp::Trouble;

/// How long `status` watches rates.
const WATCH: Duration = Duration::from_secs(1);

/// Prints one table, or an object for each queue and for all together.
pub(crate) fn status(arguments: &StatusArgs) -> Result<Exit, Failure> {
    let endpoint = arguments.client.endpoint()?;
    let mut asker = Asker::open(&endpoint, arguments.prefix.as_deref(), arguments.count)?;
    let before = asker.round(&[], usize::MAX)?;
    pass(WATCH);
    let round = asker.round(&[], usize::MAX)?;
    if let Some(sentence) = round.refusal {
        return Err(Failure::refused(sentence));
    }
    let rows = rows(&before, &round);
    if arguments.client.json {
        let mut printer = Printer::to_stdout(true);
        for row in &rows {
            let mut members = vec![(text("queue"), row.queue.map_or(Value::Null, text))];
            if row.queue.is_none() {
                members.extend(round.server.members());
            }
            members.extend(figures(row));
            for (name, value) in &mut members {
                if name.as_bytes() == Some(b"paused") && value.as_bytes() == Some(b"none") {
                    *value = Value::Null;
                }
            }
            printer.map(&Value::Map(members))?;
        }
        printer.flush()?;
    } else {
        let shown = table(Table::Status, &rows) + &round.server.in_words();
        print_text(shown.as_bytes())?;
    }
    if round.more {
        tell(format!(
            "there are more than {} queues: --count shows more of them, --prefix others",
            arguments.count
        ));
    }
    Ok(Exit::Done)
}

/// Prints rounds: `top --once` and `top --json`.
pub(super) fn top(arguments: &TopArgs) -> Result<Exit, Failure> {
    let endpoint = arguments.client.endpoint()?;
    let mut asker = Asker::open(&endpoint, arguments.prefix.as_deref(), QUEUES_MAX)?;
    let interval = Duration::from_millis(arguments.interval);
    let mut before = asker.round(&[], usize::MAX)?;
    loop {
        let took = Duration::from_millis(before.took_ms.unsigned_abs());
        pass(interval.saturating_sub(took));
        let round = asker.round(&[], usize::MAX)?;
        let rows = rows(&before, &round);
        let wanted = if arguments.client.json {
            let mut printer = Printer::to_stdout(true);
            printer.map(&object(&before, &round, &rows, looks(&mut asker, arguments)?))?;
            printer.flush()?
        } else {
            print_text(table(Table::Once, &rows).as_bytes())?;
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

/// What an object tells besides: the limits, and the shares of a queue.
fn looks(asker: &mut Asker, arguments: &TopArgs) -> Result<Vec<(Value, Value)>, Trouble> {
    let limits = match asker.limits() {
        // An older server has none.
        Err(Trouble::Refused(_)) => Vec::new(),
        limits => limits?,
    };
    let mut looks = vec![pair("limits", Value::Array(limits))];
    if let Some(queue) = &arguments.shares {
        let (shares, _) = asker.shares(queue.as_bytes())?;
        looks.push(pair("shares", Value::Array(shares)));
    }
    Ok(looks)
}

/// The queues of a round in the order of their names, then all together.
fn rows<'a>(before: &Round, round: &'a Round) -> Vec<Row<'a>> {
    let earlier: HashMap<&[u8], &Figures> =
        before.figures.iter().map(|(name, figures)| (name.as_slice(), figures)).collect();
    // What was not there before has begun with nothing.
    let nothing = Figures::default();
    let elapsed_ms = round.server_ms.saturating_sub(before.server_ms).max(1);
    let rates = |was: &Figures, figures: &Figures| {
        Some(Rates::between(was, figures, elapsed_ms).unwrap_or_default())
    };
    let mut rows: Vec<Row<'a>> = round
        .figures
        .iter()
        .map(|(name, figures)| {
            let was = earlier.get(name.as_slice()).copied().unwrap_or(&nothing);
            Row::of(name, figures, rates(was, figures))
        })
        .collect();
    rows.sort_by_key(|row| row.queue);
    let dead_letters = rows.iter().map(|row| row.dead_letters).sum();
    let all = &round.server.all;
    rows.push(Row {
        queue: None,
        figures: all,
        rates: rates(&before.server.all, all),
        dead_letters,
    });
    rows
}

/// The rows as lines of equal length, below a line with the names of the columns. Dead letters are
/// not among the ready tasks of all together, and have a line of their own.
fn table(table: Table, rows: &[Row<'_>]) -> String {
    let mut heads = vec!["queue".to_owned()];
    heads.extend(columns(table).map(|figure| figure.head.to_owned()));
    let mut lines = vec![heads];
    for row in rows {
        let without = row.figures.without(row.dead_letters);
        let (name, row) = match row.queue {
            Some(name) => (shortened(&escaped(name)), *row),
            None => ("(all)".to_owned(), Row { figures: &without, ..*row }),
        };
        let cells = columns(table).map(|figure| (figure.value)(&row).text());
        lines.push([name].into_iter().chain(cells).collect());
    }
    if let Some(all) = rows.last().filter(|all| all.dead_letters > 0) {
        let mut line = vec!["(dead letters)".to_owned(), all.dead_letters.to_string()];
        line.resize(1 + columns(table).count(), "-".to_owned());
        lines.push(line);
    }
    aligned(&lines)
}

/// A round as an object.
fn object(before: &Round, round: &Round, rows: &[Row<'_>], looks: Vec<(Value, Value)>) -> Value {
    let Server { version, durability, failure, connections, doors, shards, paused, .. } =
        &round.server;
    let doors = doors.iter().map(|(door, count)| pair(door, Value::Integer(*count)));
    let queues = i64::try_from(round.names.len()).unwrap_or(i64::MAX);
    let mut server = vec![
        pair("version", text(version)),
        pair("durability", text(durability)),
        pair("journal_failure", failure.as_ref().map_or(Value::Null, text)),
        pair("connections", Value::Integer(*connections)),
        pair("doors", Value::Map(doors.collect())),
        pair("shards", Value::Integer(*shards)),
        pair("queues", Value::Integer(queues)),
        pair("queues_paused", Value::Integer(*paused)),
    ];
    server.extend(round.server.members());
    let mut queues = Vec::new();
    for row in rows {
        match row.queue {
            None => server.extend(figures(row)),
            Some(name) => {
                let members = [pair("queue", text(name))].into_iter().chain(figures(row));
                queues.push(Value::Map(members.collect()));
            }
        }
    }
    let mut members = vec![
        pair("server_time_ms", Value::Integer(round.server_ms)),
        pair("elapsed_ms", Value::Integer(round.server_ms.saturating_sub(before.server_ms))),
        pair("took_ms", Value::Integer(round.took_ms)),
        pair("more_queues", Value::Boolean(round.more)),
        pair("server", Value::Map(server)),
        pair("queues", Value::Array(queues)),
    ];
    members.extend(looks);
    Value::Map(members)
}

fn figures(row: &Row<'_>) -> impl Iterator<Item = (Value, Value)> {
    FIGURES.iter().map(|figure| pair(figure.member, (figure.value)(row).json()))
}

fn pair(name: &str, value: Value) -> (Value, Value) {
    (text(name), value)
}
