//! `pinpriq archive`: the lines in a place, whether all is there, and what is not needed any more.
//!
//! It also has what `backup` and `restore` share with these: how a place is opened, and how an
//! error of an archive ends a command.

use std::fmt::Write as _;

use pinpriq_archive::{
    ArchiveError, By, Catalogue, ErrorKind, Fault, LineSummary, Place, Pruned, Range, Verified,
    open, prune, verify,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::SystemClock;

use crate::args::archives::{ArchiveCommand, ListArgs, PruneArgs};
use crate::columns::{heads, table};
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::logging::tell;
use crate::moments;
use crate::output::{escaped, print_text};
use crate::progress::Progress;
use crate::units::counted;

/// How many objects are named in words. JSON names all of them.
const NAMES_SHOWN: usize = 20;

/// Carries out one of the commands.
pub(crate) fn archive(command: &ArchiveCommand) -> Result<Exit, Failure> {
    match command {
        ArchiveCommand::List(arguments) => list(arguments),
        ArchiveCommand::Verify(arguments) => check(arguments),
        ArchiveCommand::Prune(arguments) => remove(arguments),
    }
}

/// Opens a place. Changes nothing in it.
pub(super) fn opened(place: &str) -> Result<Box<dyn Place>, Failure> {
    open(place).map_err(|error| with_code(error.kind(), error.to_string()))
}

/// Returns how an error of an archive ends a command.
pub(super) fn failure(error: &ArchiveError) -> Failure {
    let sentence = match error {
        ArchiveError::BeforeFirst { line, first } => {
            let first = moments::shown(*first);
            format!("the first moment of line {line} that can be restored is {first}")
        }
        _ => error.to_string(),
    };
    with_code(error.kind(), sentence)
}

fn with_code(kind: ErrorKind, sentence: String) -> Failure {
    match kind {
        ErrorKind::Failed => Failure::on_the_way(sentence),
        ErrorKind::Unusable => Failure::unusable(sentence),
        ErrorKind::Damaged => Failure::of_directory(sentence),
        ErrorKind::NothingThere => Failure::nothing_there(sentence),
    }
}

/// Prints the lines.
fn list(arguments: &ListArgs) -> Result<Exit, Failure> {
    let place = opened(&arguments.place)?;
    let mut catalogue = Catalogue::read(&*place).map_err(|error| failure(&error))?;
    let lines = catalogue.lines().map_err(|error| failure(&error))?;
    let text = if arguments.json {
        lines.iter().flat_map(|line| [line_as_json(line).to_string(), "\n".to_owned()]).collect()
    } else {
        lines_in_words(&lines)
    };
    print_text(text.as_bytes())?;
    // What cannot be read is left out of the list.
    for error in catalogue.damage() {
        tell(error);
    }
    Ok(if catalogue.damage().is_empty() { Exit::Done } else { Exit::Damaged })
}

/// A table with a row for each stretch without a gap.
fn lines_in_words(lines: &[LineSummary]) -> String {
    let mut rows = vec![heads(&["line", "from", "to", "backups", "parent"])];
    for line in lines {
        let name = line.line.to_string();
        let parent = line.parent.as_ref().map_or(String::new(), |it| it.line.to_string());
        let row = |from: String, to: String, marks: u64| {
            vec![name.clone(), from, to, marks.to_string(), parent.clone()]
        };
        let of_range = |it: &Range| row(moments::shown(it.from), moments::shown(it.to), it.marks);
        rows.extend(line.ranges.iter().map(of_range));
        if line.ranges.is_empty() {
            rows.push(row("-".to_owned(), "-".to_owned(), 0));
        }
    }
    table(&rows)
}

fn line_as_json(line: &LineSummary) -> Json {
    let parent = line.parent.as_ref().map_or(Json::Null, |parent| {
        let [at, at_ms] = moments::members("at", "at_ms", Timestamp::from_ms(parent.at_ms));
        Json::Object(vec![
            ("line", Json::text(parent.line.to_string())),
            ("mark", Json::Number(parent.mark)),
            at,
            at_ms,
        ])
    });
    let by = match line.by {
        None => Json::Null,
        Some(By::Backup) => Json::text("backup"),
        Some(By::Serve) => Json::text("serve"),
    };
    let range = |range: &Range| {
        let [from, from_ms] = moments::members("from", "from_ms", range.from);
        let [to, to_ms] = moments::members("to", "to_ms", range.to);
        Json::Object(vec![from, from_ms, to, to_ms, ("backups", Json::Number(range.marks))])
    };
    let [made, made_ms] = moments::members("made", "made_ms", line.made);
    Json::Object(vec![
        ("line", Json::text(line.line.to_string())),
        ("parent", parent),
        made,
        made_ms,
        ("by", by),
        ("shards", Json::Number(line.shards as u64)),
        ("backups", Json::Number(line.marks)),
        ("newest_mark", line.newest_mark.map_or(Json::Null, Json::Number)),
        ("ranges", Json::list(&line.ranges, range)),
    ])
}

/// Reads all that is needed, and prints what is missing or damaged.
fn check(arguments: &ListArgs) -> Result<Exit, Failure> {
    let place = opened(&arguments.place)?;
    let progress = Progress::before_output("segments read");
    let verified = verify(&*place, &mut |it| progress.note(it.done, it.total));
    drop(progress);
    let verified = verified.map_err(|error| failure(&error))?;
    let text = if arguments.json {
        format!("{}\n", verified_as_json(&verified))
    } else {
        verified_in_words(&verified)
    };
    print_text(text.as_bytes())?;
    Ok(if verified.faults.is_empty() { Exit::Done } else { Exit::Damaged })
}

fn verified_in_words(verified: &Verified) -> String {
    let Verified { marks, lines, objects, faults, .. } = verified;
    let mut text = format!(
        "{} of {} in {} with {}\n",
        counted(*marks, "backup"),
        counted(*lines, "line"),
        counted(*objects, "object"),
        counted(verified.bytes, "byte")
    );
    for Fault { name, what, marks, .. } in faults.iter().take(NAMES_SHOWN) {
        let name = escaped(name.as_bytes());
        let marks: Vec<String> = marks.iter().map(u64::to_string).collect();
        let needed = match &marks[..] {
            [] => String::new(),
            marks => format!(" (needed by mark {})", marks.join(", ")),
        };
        let _ = writeln!(text, "damage: {name}: {what}{needed}");
    }
    if let Some(more @ 1..) = faults.len().checked_sub(NAMES_SHOWN) {
        let _ = writeln!(text, "and {more} more; --json names all of them");
    }
    text += if faults.is_empty() { "no damage\n" } else { "DAMAGED\n" };
    text
}

fn verified_as_json(verified: &Verified) -> Json {
    let fault = |fault: &Fault| {
        Json::Object(vec![
            ("name", Json::text(fault.name.clone())),
            ("what", Json::text(fault.what.clone())),
            ("newer", Json::Bool(fault.is_newer)),
            ("marks", Json::list(fault.marks.iter().copied(), Json::Number)),
        ])
    };
    Json::Object(vec![
        ("damaged", Json::Bool(!verified.faults.is_empty())),
        ("backups", Json::Number(verified.marks)),
        ("lines", Json::Number(verified.lines)),
        ("objects", Json::Number(verified.objects)),
        ("bytes", Json::Number(verified.bytes)),
        ("damage", Json::list(&verified.faults, fault)),
    ])
}

/// Removes what is not needed for what is kept.
fn remove(arguments: &PruneArgs) -> Result<Exit, Failure> {
    let PruneArgs { archive_keep, dry_run, json, .. } = arguments;
    let place = opened(&arguments.place)?;
    let pruned = prune(&*place, Span::from_ms(archive_keep.ms()), SystemClock::wall(), *dry_run);
    let pruned = pruned.map_err(|error| failure(&error))?;
    let text = if *json {
        format!("{}\n", pruned_as_json(&pruned, *dry_run))
    } else {
        pruned_in_words(&pruned, *dry_run)
    };
    print_text(text.as_bytes())?;
    Ok(Exit::Done)
}

fn pruned_in_words(pruned: &Pruned, dry_run: bool) -> String {
    let removed = if dry_run { "would remove" } else { "removed" };
    let (marks, objects) = (pruned.marks.len() as u64, pruned.objects.len() as u64);
    let mut text = format!(
        "{removed} {}, and {} with {}\n",
        counted(marks, "backup"),
        counted(objects, "object"),
        counted(pruned.bytes, "byte")
    );
    if !pruned.waiting.is_empty() {
        let waiting = counted(pruned.waiting.len() as u64, "object");
        let _ = writeln!(text, "a run at least an hour from now removes {waiting} more");
    }
    let from = moments::shown(pruned.from);
    let _ = writeln!(text, "kept {}, from {from} on", counted(pruned.kept_marks, "backup"));
    text
}

fn pruned_as_json(pruned: &Pruned, dry_run: bool) -> Json {
    let names = |names: &[String]| Json::list(names.iter().cloned(), Json::Text);
    let [from, from_ms] = moments::members("from", "from_ms", pruned.from);
    Json::Object(vec![
        ("dry_run", Json::Bool(dry_run)),
        ("marks", Json::list(pruned.marks.iter().copied(), Json::Number)),
        ("objects", names(&pruned.objects)),
        ("bytes", Json::Number(pruned.bytes)),
        ("waiting", names(&pruned.waiting)),
        ("kept", Json::Number(pruned.kept_marks)),
        from,
        from_ms,
    ])
}

#[cfg(test)]
mod tests;
