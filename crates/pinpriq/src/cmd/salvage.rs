//! `pinpriq salvage`: what can be read of a damaged data directory, as a new one.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use pinpriq_store::journal::{self, SalvageReport};
use pinpriq_store::layout::{shard_name, shards_in};
use pinpriq_store::reshard::{DirectoryError, SalvagedShards, salvage_shards};
use pinpriq_store::{Disk, JournalOptions, RealDisk};

use super::check::{failure, losses_in_words, open};
use crate::args::SalvageArgs;
use crate::exit::{Exit, Failure};
use crate::output::print_text;

/// Writes the new directory and prints what was saved and what was lost.
pub(crate) fn salvage(arguments: &SalvageArgs) -> Result<Exit, Failure> {
    let (dir, new_dir) = (arguments.dir.display(), arguments.new_dir.display());
    let from = open(&arguments.dir)?;
    let failed = |error| failure(&format!("{dir} to {new_dir}"), &error);
    let shards = shards_in(&arguments.dir).map_err(failed)?;
    if shards.is_some_and(|shards| shards > 1) {
        let saved = salvage_shards(&arguments.dir, &arguments.new_dir, options());
        let saved = saved.map_err(|error| directory_failure(&error, &arguments.new_dir))?;
        print_text(all_in_words(&saved).as_bytes())?;
        return Ok(Exit::Done);
    }
    let to: Arc<dyn Disk> = Arc::new(RealDisk::create(&arguments.new_dir).map_err(|error| {
        Failure::on_the_way(format!("{new_dir} cannot be made or opened: {error}"))
    })?);
    let report = journal::salvage(&from, &to, options()).map_err(failed)?;
    print_text(in_words(&report).as_bytes())?;
    Ok(Exit::Done)
}

/// How a new journal is written.
pub(super) fn options() -> JournalOptions {
    // The seed keeps payloads from imitating records, so nobody may be able to guess it.
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
        "saved {tasks} tasks and the settings of {queues} queues, from {batches} batches\n"
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
    for number in &report.lost_tasks {
        let _ = writeln!(text, "perhaps lost: task {number}");
    }
    if let Some(torn) = &report.torn_tail {
        let (file, offset) = (&torn.file, torn.offset);
        let _ = writeln!(text, "left out: an unfinished write in {file} at offset {offset}");
    }
    text
}
