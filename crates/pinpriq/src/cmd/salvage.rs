//! `pinpriq salvage`: what can be read of a damaged data directory, as a new one.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use pinpriq_store::JournalOptions;
use pinpriq_store::journal::{Misfit, SalvageReport, UnfitTask};
use pinpriq_store::layout::{shard_name, shards_in};
use pinpriq_store::reshard::{DirectoryError, SalvagedShards, salvage_alone, salvage_shards};

use super::check::{failure, losses_in_words, open};
use crate::args::SalvageArgs;
use crate::exit::{Exit, Failure};
use crate::output::{escaped, print_text};

/// How many of the tasks that were left out for their ids are named.
const UNFIT_SHOWN: usize = 20;

/// Writes the new directory and prints what was saved and what was lost.
pub(crate) fn salvage(arguments: &SalvageArgs) -> Result<Exit, Failure> {
    let SalvageArgs { dir, new_dir } = arguments;
    // Refuse an existing directory in the same words as elsewhere.
    open(dir)?;
    let failed = |error: DirectoryError| directory_failure(&error, new_dir);
    let shards = shards_in(dir);
    let shards = shards.map_err(|source| failed(DirectoryError { directory: dir.clone(), source }));
    let text = if shards?.is_some_and(|shards| shards > 1) {
        all_in_words(&salvage_shards(dir, new_dir, options()).map_err(failed)?)
    } else {
        in_words(&salvage_alone(dir, new_dir, options()).map_err(failed)?)
    };
    print_text(text.as_bytes())?;
    Ok(Exit::Done)
}

/// How a new journal is written.
pub(super) fn options() -> JournalOptions {
    // The seed keeps payloads from imitating records, so it must not be guessable.
    let salt_seed = RandomState::new().hash_one(std::process::id());
    JournalOptions { salt_seed, ..JournalOptions::default() }
}

/// Returns why a directory or that of a shard could not be salvaged. It names the new directory
/// too, since writing that may have failed.
fn directory_failure(error: &DirectoryError, new_dir: &Path) -> Failure {
    let mut directory = error.directory.display().to_string();
    if !error.directory.starts_with(new_dir) {
        let _ = write!(directory, " to {}", new_dir.display());
    }
    failure(&directory, &error.source)
}

/// The reports of all shards for people.
fn all_in_words(saved: &SalvagedShards) -> String {
    let mut text = String::new();
    for directory in &saved.passed_over {
        let directory = directory.display();
        let _ = writeln!(text, "{directory} holds an older copy of another shard: left out\n");
    }
    for (shard, report) in saved.reports.iter().enumerate() {
        let gap = if shard == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{}:", shard_name(shard));
        text += &report
            .as_ref()
            .map_or_else(|| "saved nothing: there is no journal here\n".to_owned(), in_words);
    }
    text
}

/// The report for people.
pub(super) fn in_words(report: &SalvageReport) -> String {
    let SalvageReport { batches, tasks, queues, .. } = report;
    let mut text = format!(
        "saved {tasks} tasks and the settings of {queues} queues, from {batches} commits\n"
    );
    let SalvageReport { members, lanes, publications, .. } = report;
    if *members + *lanes + *publications > 0 {
        let _ =
            writeln!(text, "saved {members} members, {lanes} lanes, {publications} publications");
    }
    text += &losses_in_words(&report.damage, &report.missing);
    for number in &report.homeless_tasks {
        let _ = writeln!(
            text,
            "left out: task {number} of a lane, whose payload, lane or member is lost"
        );
    }
    for task in report.unfit_tasks.iter().take(UNFIT_SHOWN) {
        let _ = writeln!(text, "left out: {}", unfit_in_words(task));
    }
    if let Some(more @ 1..) = report.unfit_tasks.len().checked_sub(UNFIT_SHOWN) {
        let _ = writeln!(text, "left out for their ids: {more} more tasks");
    }
    for number in &report.lost_tasks {
        let _ = writeln!(text, "perhaps lost: task {number}");
    }
    if let Some(torn) = &report.torn_tail {
        let (file, offset) = (&torn.file, torn.offset);
        let _ = writeln!(text, "left out: an unfinished write in {file} at offset {offset}");
    }
    text
}

/// A task that was left out for its id.
fn unfit_in_words(task: &UnfitTask) -> String {
    let queue = escaped(&task.queue);
    let place = match &task.member {
        None => format!("queue \"{queue}\""),
        Some(member) => format!("the lane of \"{}\" in topic \"{queue}\"", escaped(member)),
    };
    let why = match task.why {
        Misfit::Taken => "a newer task has it",
        Misfit::OtherKind => "newer tasks have ids of another kind",
    };
    format!("task {} of {place}, for its id \"{}\": {why}", task.number, task.id)
}
