//! Makes a cluster of a data directory, and a data directory of a cluster.

use std::collections::BTreeSet;

use pinpriq_server::cluster::{WholeError, division_of_cluster, export as copy, import as fill};
use pinpriq_store::StoreError;
use pinpriq_store::journal::Contents;
use pinpriq_store::reshard::{
    DirectoryError, Division, Held, ReshardReport, distribute, read_directory, refuse_used,
    summary, write_directory,
};

use super::super::check::{failure, open};
use super::super::salvage::options;
use super::Asker;
use super::wrong::short_of_room;
use crate::args::cluster::{ExportArgs, ImportArgs};
use crate::cluster::engine::no_cluster;
use crate::exit::{Exit, Failure};
use crate::json::Json;
use crate::output::print_text;

/// Makes a cluster with what is in a data directory, and prints how much that was.
pub(super) fn import(ImportArgs { dir, shards, room }: &ImportArgs) -> Result<Exit, Failure> {
    let of = &room.of;
    of.engine()?;
    // Refuse an existing directory in the same words as elsewhere.
    open(dir)?;
    let Held { contents, guards } = read_directory(dir).map_err(|it| of_directory(&it))?;
    let (from, to) = (Division::of_server(contents.len()), division_of_cluster(*shards));
    let contents = distribute(contents, from, to);
    let contents = contents.map_err(|error| failure(&dir.display().to_string(), &error))?;
    let asker = Asker::prepare(of.engine()?, room.cluster_bytes_max)?;
    fill(&*asker.engine, &contents).map_err(|error| asker.of_whole(&error))?;
    drop(guards);
    if let Some(short) = asker.room().ok().and_then(short_of_room) {
        tracing::warn!("{short}");
    }
    print_text(describe("imported", &contents, of.json).as_bytes())?;
    Ok(Exit::Done)
}

/// Writes a data directory with what is in a cluster, and prints how much that was.
pub(super) fn export(ExportArgs { dir, shards, of }: &ExportArgs) -> Result<Exit, Failure> {
    let url = of.engine()?;
    refuse_used(dir).map_err(|it| of_directory(&it))?;
    let asker = Asker::new(url, None)?;
    let (meta, contents) = copy(&*asker.engine).map_err(|error| asker.of_whole(&error))?;
    let to = Division::of_server(usize::from(*shards));
    let contents = distribute(contents, division_of_cluster(meta.shards), to);
    let contents = contents.map_err(|error| match error {
        StoreError::Mixed { what } => Failure::of_directory(format!("cannot be exported: {what}")),
        error => Failure::on_the_way(error.to_string()),
    })?;
    write_directory(dir, &contents, options()).map_err(|it| of_directory(&it))?;
    print_text(describe("exported", &contents, of.json).as_bytes())?;
    Ok(Exit::Done)
}

impl Asker<'_> {
    /// Says why a cluster could not be filled or copied.
    fn of_whole(&self, error: &WholeError) -> Failure {
        match error {
            WholeError::Silent { why } => self.silent(why),
            WholeError::Unfounded => no_cluster(self.url),
            error => Failure::new(error.exit_code(), error.to_string()),
        }
    }
}

fn of_directory(error: &DirectoryError) -> Failure {
    failure(&error.directory.display().to_string(), &error.source)
}

/// How much was carried, for people or programs.
fn describe(done: &str, contents: &[Contents], json: bool) -> String {
    let reports: Vec<ReshardReport> = contents.iter().map(summary).collect();
    let count = |of: fn(&ReshardReport) -> u64| reports.iter().map(of).sum::<u64>();
    // A member can be known in several shards.
    let members = contents.iter().flat_map(|it| it.fold.members.values());
    let members = members.map(|(member, _)| &member.name).collect::<BTreeSet<_>>().len() as u64;
    let counts = [
        ("tasks", count(|it| it.tasks)),
        ("queues", count(|it| it.queues)),
        ("schedules", count(|it| it.schedules)),
        ("members", members),
        ("lanes", count(|it| it.lanes)),
        ("publications", count(|it| it.publications)),
    ];
    let shards = contents.len() as u64;
    if json {
        let counts = counts.map(|(what, count)| (what, Json::Number(count)));
        let members = [("shards", Json::Number(shards))].into_iter().chain(counts);
        return format!("{}\n", Json::Object(members.collect()));
    }
    let is_told = |&(what, count): &(&str, u64)| count > 0 || ["tasks", "queues"].contains(&what);
    let counts = counts.into_iter().filter(is_told);
    let counts: Vec<String> = counts.map(|(what, count)| format!("{count} {what}")).collect();
    let word = if shards == 1 { "shard" } else { "shards" };
    format!("{done} {} into {shards} {word}\n", counts.join(", "))
}
