//! `pinpriq reshard`: a data directory as a new one with another number of shards.

use std::fmt::Write as _;

use pinpriq_store::layout::shard_name;
use pinpriq_store::reshard::{self, ReshardReport};

use super::check::{failure, open};
use super::salvage::options;
use crate::args::ReshardArgs;
use crate::exit::{Exit, Failure};
use crate::output::print_text;

/// Writes the new directory and prints what each of its shards was given.
pub(crate) fn reshard(arguments: &ReshardArgs) -> Result<Exit, Failure> {
    let ReshardArgs { dir, new_dir, shards } = arguments;
    // Refuse an existing directory in the same words as elsewhere.
    open(dir)?;
    let reports = reshard::reshard(dir, new_dir, usize::from(*shards), options());
    let reports =
        reports.map_err(|error| failure(&error.directory.display().to_string(), &error.source))?;
    print_text(in_words(&reports).as_bytes())?;
    Ok(Exit::Done)
}

/// The report for people.
fn in_words(reports: &[ReshardReport]) -> String {
    let mut text = String::new();
    for (shard, report) in reports.iter().enumerate() {
        // One shard is the directory itself, without a name.
        if reports.len() > 1 {
            let _ = write!(text, "{}: ", shard_name(shard));
        }
        let ReshardReport { tasks, queues, members, lanes, publications, .. } = report;
        let _ = write!(text, "{tasks} tasks, {queues} queues");
        if *members + *lanes + *publications > 0 {
            let _ = write!(text, ", {members} members, {lanes} lanes, {publications} publications");
        }
        text += "\n";
    }
    text
}
