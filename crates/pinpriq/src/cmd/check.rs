//! `pinpriq check`: what a data directory holds, in words or as JSON. Changes nothing.
//!
//! This module reports on one journal; `shards.rs` reports on a directory of several shards.

mod shards;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_store::journal::{self, Damage, LsnRange, Report};
use pinpriq_store::layout::existing_journals;
use pinpriq_store::{RealDisk, StoreError};

use crate::args::CheckArgs;
use crate::args::values::STATES;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::output::{escaped, print_text};

/// How many queues, and how many lanes, are named in words. JSON names all of them.
const NAMES_SHOWN: usize = 20;

/// Prints the report.
pub(crate) fn check(arguments: &CheckArgs) -> Result<Exit, Failure> {
    let disk = open(&arguments.dir)?;
    let failed = |error| failure(&arguments.dir.display().to_string(), &error);
    let journals = existing_journals(&arguments.dir).map_err(failed)?;
    if journals.len() > 1 {
        return shards::check(&arguments.dir, &journals, arguments.json);
    }
    let report = journal::check(&disk).map_err(failed)?;
    let text = if arguments.json { format!("{}\n", as_json(&report)) } else { in_words(&report) };
    print_text(text.as_bytes())?;
    Ok(if report.damage.is_empty() { Exit::Done } else { Exit::Damaged })
}

/// Opens a data directory, or that of a shard, for reading.
pub(super) fn open(directory: &Path) -> Result<RealDisk, Failure> {
    RealDisk::open_read_only(directory).map_err(|error| {
        Failure::of_directory(format!("{} cannot be opened: {error}", directory.display()))
    })
}

/// Returns why a data directory could not be read, with its exit code.
pub(super) fn failure(dir: &str, error: &StoreError) -> Failure {
    let sentence = format!("{dir}: {error}");
    match error {
        StoreError::NotEmpty { .. } => Failure::unusable(sentence),
        other if other.is_of_directory() => Failure::of_directory(sentence),
        _ => Failure::on_the_way(sentence),
    }
}

/// The report for people.
fn in_words(report: &Report) -> String {
    let mut text = String::new();
    for line in facts(report) {
        let _ = writeln!(text, "{line}");
    }
    text += &losses_in_words(&report.damage, &report.missing);
    text += if report.damage.is_empty() { "no damage\n" } else { "DAMAGED\n" };
    text
}

/// Returns what is there, line by line, except for losses.
fn facts(report: &Report) -> Vec<String> {
    let Report { version, batches, records, bytes_used, bytes_live, .. } = report;
    let mut lines = Vec::new();
    if report.in_use {
        lines.push("in use by a server: the end may be half written".to_owned());
    }
    lines.push(format!("format {version}, {batches} commits with {records} records"));
    lines.push(format!("{bytes_used} bytes in use, {bytes_live} of them still count"));
    for segment in &report.segments {
        let (file, end, bytes) = (&segment.file, segment.end, segment.bytes);
        lines.push(format!("{file}: {end} of {bytes} bytes used, {} commits", segment.batches));
    }
    let states = STATES.iter().zip(report.tasks_by_state).filter(|(_, count)| *count > 0);
    let states: Vec<_> =
        states.map(|((_, state, _), count)| format!(", {count} {state}")).collect();
    let all: u64 = report.tasks_by_state.iter().sum();
    lines.push(format!("{all} tasks{}", states.concat()));
    lines.push(format!(
        "{} queues with tasks, {} with settings or a pause",
        report.tasks_by_queue.len(),
        report.queues_with_settings
    ));
    lines.extend(largest("queues", report.tasks_by_queue.iter(), |name| {
        format!("queue \"{}\"", escaped(name))
    }));
    let Report { members, lanes, publications, .. } = report;
    if *members + *lanes + *publications > 0 {
        lines.push(format!(
            "{members} members with {lanes} lanes, {publications} published payloads are kept"
        ));
    }
    lines.extend(largest("lanes", report.tasks_by_lane.iter(), |(topic, member)| {
        format!("lane of \"{}\" in topic \"{}\"", escaped(member), escaped(topic))
    }));
    lines.extend(report.spares.iter().map(|file| format!("{file}: prepared for later")));
    lines.extend(
        report
            .left_over
            .iter()
            .map(|file| format!("{file}: left over, the next start removes it unless it archives")),
    );
    lines.extend(report.foreign.iter().map(|file| format!("{file}: no part of a journal")));
    if let Some(torn) = &report.torn_tail {
        let (file, offset) = (&torn.file, torn.offset);
        lines.push(format!("{file}: an unfinished write at offset {offset}, which is no damage"));
    }
    lines
}

/// The queues or lanes with the most tasks, the largest first.
fn largest<'a, K: Ord + 'a>(
    what: &str,
    counts: impl Iterator<Item = (&'a K, &'a u64)>,
    named: impl Fn(&K) -> String,
) -> Vec<String> {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
    let shown = counts.iter().take(NAMES_SHOWN);
    let mut lines: Vec<_> =
        shown.map(|(name, tasks)| format!("{}: {tasks} tasks", named(name))).collect();
    if let Some(more) = counts.len().checked_sub(NAMES_SHOWN).filter(|more| *more > 0) {
        lines.push(format!("and {more} {what} more; --json names all of them"));
    }
    lines
}

/// Returns what cannot be read, for people.
pub(super) fn losses_in_words(damage: &[Damage], missing: &[LsnRange]) -> String {
    let mut text = String::new();
    for Damage { file, offset, bytes, what } in damage {
        let _ = writeln!(text, "damage: {file} at offset {offset}, {bytes} bytes: {what}");
    }
    for LsnRange { first, last } in missing {
        let _ = writeln!(text, "missing: commits {first} to {last}");
    }
    text
}

/// The report for programs.
fn as_json(report: &Report) -> Json {
    Json::Object(members_of(report))
}

/// Returns the members of that report.
fn members_of(report: &Report) -> Vec<(&'static str, Json)> {
    let states = STATES.iter().zip(report.tasks_by_state);
    let states = states.map(|((_, state, _), count)| (*state, Json::Number(count))).collect();
    let torn = report.torn_tail.as_ref().map_or(Json::Null, |torn| {
        let file = Json::text(torn.file.clone());
        Json::Object(vec![("file", file), ("offset", Json::Number(torn.offset))])
    });
    let damaged = !report.damage.is_empty();
    vec![
        ("damaged", Json::Bool(damaged)),
        ("in_use", Json::Bool(report.in_use)),
        ("version", Json::Number(u64::from(report.version))),
        ("commits", Json::Number(report.batches)),
        ("records", Json::Number(report.records)),
        ("bytes_used", Json::Number(report.bytes_used)),
        ("bytes_live", Json::Number(report.bytes_live)),
        ("incarnation", Json::Number(report.header.incarnation)),
        ("latest_ms", Json::Number(report.header.now.ms())),
        ("last_number", Json::Number(report.header.last_number)),
        ("tasks_by_state", Json::Object(states)),
        ("tasks_by_queue", Json::list(&report.tasks_by_queue, queue_json)),
        ("queues_with_settings", Json::Number(report.queues_with_settings)),
        ("tasks_by_lane", Json::list(&report.tasks_by_lane, lane_json)),
        ("members", Json::Number(report.members)),
        ("lanes", Json::Number(report.lanes)),
        ("publications", Json::Number(report.publications)),
        (
            "segments",
            Json::list(&report.segments, |segment| {
                Json::Object(vec![
                    ("file", Json::text(segment.file.clone())),
                    ("bytes", Json::Number(segment.bytes)),
                    ("end", Json::Number(segment.end)),
                    ("commits", Json::Number(segment.batches)),
                    ("records", Json::Number(segment.records)),
                ])
            }),
        ),
        ("spares", Json::list(report.spares.clone(), Json::Text)),
        ("left_over", Json::list(report.left_over.clone(), Json::Text)),
        ("foreign", Json::list(report.foreign.clone(), Json::Text)),
        ("torn_tail", torn),
        ("damage", Json::list(&report.damage, damage_json)),
        (
            "missing",
            Json::list(&report.missing, |range| {
                let (first, last) = (Json::Number(range.first), Json::Number(range.last));
                Json::Object(vec![("first", first), ("last", last)])
            }),
        ),
    ]
}

/// One queue.
fn queue_json((name, tasks): (&impl AsRef<[u8]>, &u64)) -> Json {
    Json::Object(vec![
        name_json("queue", "queue_hex", name.as_ref()),
        ("tasks", Json::Number(*tasks)),
    ])
}

/// One lane.
fn lane_json(((topic, member), tasks): (&(impl AsRef<[u8]>, impl AsRef<[u8]>), &u64)) -> Json {
    Json::Object(vec![
        name_json("topic", "topic_hex", topic.as_ref()),
        name_json("member", "member_hex", member.as_ref()),
        ("tasks", Json::Number(*tasks)),
    ])
}

/// Returns a name. One that is not text is written in hexadecimal digits, under another key.
fn name_json(key: &'static str, hex_key: &'static str, name: &[u8]) -> (&'static str, Json) {
    if let Ok(text) = std::str::from_utf8(name) {
        (key, Json::text(text))
    } else {
        let digits = name.iter().map(|byte| format!("{byte:02X}"));
        (hex_key, Json::Text(digits.collect()))
    }
}

/// One part of a file that cannot be read.
fn damage_json(damage: &Damage) -> Json {
    Json::Object(vec![
        ("file", Json::text(damage.file.clone())),
        ("offset", Json::Number(damage.offset)),
        ("bytes", Json::Number(damage.bytes)),
        ("what", Json::text(damage.what.clone())),
    ])
}
