//! `pinpriq check` on a directory of several shards: a report for each, under its name.

use std::fmt::Write as _;
use std::path::Path;

use pinpriq_store::StoreError;
use pinpriq_store::journal::{self, Report};
use pinpriq_store::layout::{JournalAt, shard_name};

use super::{failure, in_words, members_of, open};
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::output::print_text;

/// The state of a shard.
enum Found {
    Journal(Box<Report>),
    /// A start was cut off before it came to this shard.
    NotBegun,
    Failed(Failure),
}

/// Checks each shard and prints all reports. The worst result decides how the command ends.
pub(super) fn check(dir: &Path, journals: &[JournalAt], json: bool) -> Result<Exit, Failure> {
    let found: Vec<Found> = journals.iter().map(look).collect();
    if found.iter().all(|shard| matches!(shard, Found::NotBegun)) {
        return Err(failure(&dir.display().to_string(), &StoreError::NotAJournal));
    }
    let damaged = found.iter().any(is_damaged);
    let text =
        if json { format!("{}\n", all_as_json(&found, damaged)) } else { all_in_words(&found) };
    print_text(text.as_bytes())?;
    let failures: Vec<Failure> = found.into_iter().filter_map(failure_of).collect();
    let Some(code) = failures.iter().map(Failure::code).max() else {
        return Ok(if damaged { Exit::Damaged } else { Exit::Done });
    };
    let sentences: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let sentence = sentences.join("; ");
    Err(if damaged { Failure::of_directory(sentence) } else { Failure::new(code, sentence) })
}

fn look(JournalAt { directory, expected }: &JournalAt) -> Found {
    let dir = directory.display();
    let disk = match open(directory) {
        Ok(disk) => disk,
        Err(failure) => return Found::Failed(failure),
    };
    match journal::check_expected(&disk, Some(expected)) {
        Ok(report) => Found::Journal(Box::new(report)),
        Err(StoreError::NotAJournal) => Found::NotBegun,
        Err(error) => Found::Failed(failure(&dir.to_string(), &error)),
    }
}

fn is_damaged(shard: &Found) -> bool {
    matches!(shard, Found::Journal(report) if !report.damage.is_empty())
}

fn failure_of(shard: Found) -> Option<Failure> {
    match shard {
        Found::Failed(failure) => Some(failure),
        Found::Journal(_) | Found::NotBegun => None,
    }
}

/// The reports for people.
fn all_in_words(found: &[Found]) -> String {
    let mut text = String::new();
    for (shard, found) in found.iter().enumerate() {
        let gap = if shard == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}:", shard_name(shard));
        match found {
            Found::Journal(report) => text += &in_words(report),
            Found::NotBegun => text += "no journal yet: the next start begins it\n",
            Found::Failed(failure) => _ = writeln!(text, "not read: {failure}"),
        }
    }
    text
}

/// The reports for programs.
fn all_as_json(found: &[Found], damaged: bool) -> Json {
    let shards = Json::list(found.iter().enumerate(), |(shard, found)| {
        let mut members = vec![("shard", Json::text(shard_name(shard)))];
        match found {
            Found::Journal(report) => members.extend(members_of(report)),
            Found::NotBegun => members.push(("begun", Json::Bool(false))),
            Found::Failed(failure) => members.push(("error", Json::text(failure.to_string()))),
        }
        Json::Object(members)
    });
    Json::Object(vec![("damaged", Json::Bool(damaged)), ("shards", shards)])
}
