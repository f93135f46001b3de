//! `pinpriq salvage`: what can be read of a damaged data directory, as a new one.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use pinpriq_store::journal::{self, SalvageReport};
use pinpriq_store::{Disk, JournalOptions, RealDisk};

use super::check::{failure, losses_in_words};
use crate::args::SalvageArgs;
use crate::exit::{Exit, Failure};
use crate::output::print_text;

/// Writes the new directory and prints what was saved and what was lost.
pub(crate) fn salvage(arguments: &SalvageArgs) -> Result<Exit, Failure> {
    let (dir, new_dir) = (arguments.dir.display(), arguments.new_dir.display());
    let from = RealDisk::open_read_only(&arguments.dir)
        .map_err(|error| Failure::of_directory(format!("{dir} cannot be opened: {error}")))?;
    let to: Arc<dyn Disk> = Arc::new(RealDisk::create(&arguments.new_dir).map_err(|error| {
        Failure::on_the_way(format!("{new_dir} cannot be made or opened: {error}"))
    })?);
    // The seed keeps payloads from imitating records, so it must be one that nobody can guess.
    let salt_seed = RandomState::new().hash_one(std::process::id());
    let options = JournalOptions { salt_seed, ..JournalOptions::default() };
    let report = journal::salvage(&from, &to, options)
        .map_err(|error| failure(&format!("{dir} to {new_dir}"), &error))?;
    print_text(in_words(&report).as_bytes())?;
    Ok(Exit::Done)
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
