//! Writes a data directory with another number of shards, or what can be read of a damaged
//! directory with several. Reads and writes whole directories for other tools too.
//!
//! All of them write a new directory while no server uses the old one, which is not changed.
//! Nothing accepts the new one before all of it is durable. [`distribute`] decides what goes where,
//! and [`salvage()`](crate::journal::salvage()) what can be saved of a damaged journal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinpriq_proto::change::Header;
use pinpriq_proto::task::Bytes;

use crate::disk::Disk;
use crate::distribute::latest;
pub use crate::distribute::{Division, distribute};
use crate::fold::Fold;
use crate::journal::{
    Contents, Expected, Identity, JournalOptions, SalvageReport, Salvaged, lock, shard_of_journal,
    take_inventory, write,
};
use crate::layout::{
    AfterRestore, JournalAt, begin, create, existing_journals, finish, open_if_there,
    read_restored, refuse_unless_empty, write_restored,
};
use crate::real_disk::RealDisk;
use crate::shards::{SHARDS_MAX, fresh_number};
use crate::store::StoreError;

/// Why a directory could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {source}", directory.display())]
pub struct DirectoryError {
    /// Which one: the data directory, or that of one of its shards.
    pub directory: PathBuf,
    /// Why.
    pub source: StoreError,
}

/// What a shard of a new directory received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReshardReport {
    /// Tasks, those of lanes included.
    pub tasks: u64,
    /// Queues with tasks, settings or a pause.
    pub queues: u64,
    /// Members.
    pub members: u64,
    /// Lanes.
    pub lanes: u64,
    /// Publications.
    pub publications: u64,
    /// Schedules.
    pub schedules: u64,
    /// The incarnation, the latest moment and the number before that of the next task.
    pub header: Header,
}

/// Writes the contents of the data directory `data`, which may have any number of shards, as a new
/// directory with `shards` shards. Returns what went into each.
///
/// Refuses a directory that is in use, damaged or unfinished, and a new one that is not empty,
/// without changing anything. Holds everything in memory, including payloads. Costs one pass over
/// the old journals and one over the new ones, and O(n log n) in the number of tasks.
///
/// # Panics
/// If `shards` is 0 or more than [`SHARDS_MAX`].
pub fn reshard(
    data: &Path,
    new: &Path,
    shards: usize,
    options: JournalOptions,
) -> Result<Vec<ReshardReport>, DirectoryError> {
    assert!((1..=SHARDS_MAX).contains(&shards), "{shards} shards");
    refuse_used(new)?;
    let restored = read_restored(data).map_err(about(data))?;
    let Held { contents, guards } = read_directory(data)?;
    let (from, to) = (Division::of_server(contents.len()), Division::of_server(shards));
    let contents = distribute(contents, from, to).map_err(about(data))?;
    write_shards(new, &contents, options, restored)?;
    drop(guards);
    Ok(contents.iter().map(summary).collect())
}

/// The contents of a data directory that no server can use meanwhile.
pub struct Held {
    /// What each shard holds, in order.
    pub contents: Vec<Contents>,
    /// Keep the directory locked until they are dropped.
    pub guards: Vec<Box<dyn Send>>,
}

/// Reads a data directory with any number of shards into memory, including payloads. Changes
/// nothing.
///
/// Refuses a directory that is in use, damaged or unfinished. Costs one pass over its journals.
pub fn read_directory(data: &Path) -> Result<Held, DirectoryError> {
    let sources = existing_journals(data).map_err(about(data))?;
    let mut guards = Vec::new();
    let mut contents = Vec::new();
    for source in &sources {
        let read = read(source, data, &mut guards).map_err(about(&source.directory))?;
        contents.push(read);
    }
    Ok(Held { contents, guards })
}

/// Writes a new data directory with these shards, durably. Nothing accepts it before it is
/// complete.
///
/// Refuses a directory that is not empty, without changing anything. Costs one pass over the new
/// journals.
///
/// # Panics
/// If there is no shard, or more than [`SHARDS_MAX`].
pub fn write_directory(
    new: &Path,
    contents: &[Contents],
    options: JournalOptions,
) -> Result<(), DirectoryError> {
    write_shards(new, contents, options, None)
}

fn write_shards(
    new: &Path,
    contents: &[Contents],
    options: JournalOptions,
    restored: Option<AfterRestore>,
) -> Result<(), DirectoryError> {
    let shards = contents.len();
    assert!((1..=SHARDS_MAX).contains(&shards), "{shards} shards");
    let drawn = options.drawn();
    let targets = begin(new, shards, drawn).map_err(about(new))?;
    for (target, contents) in targets.iter().zip(contents) {
        fill(target, contents, options).map_err(about(&target.directory))?;
    }
    write_restored(new, restored).map_err(about(new))?;
    finish(new, shards, drawn).map_err(about(new))
}

/// Refuses a directory that exists and is not empty: see [`write_directory`]. Changes nothing.
pub fn refuse_used(new: &Path) -> Result<(), DirectoryError> {
    refuse_unless_empty(new).map_err(about(new))
}

/// Writes everything that can be read of a damaged journal, that of a data directory or of one of
/// its shards, as a new data directory: see [`salvage()`](crate::journal::salvage()). When it
/// refuses, there is no new directory.
pub fn salvage_alone(
    data: &Path,
    new: &Path,
    options: JournalOptions,
) -> Result<SalvageReport, DirectoryError> {
    refuse_unless_empty(new).map_err(about(new))?;
    let restored = read_restored(data).map_err(about(data))?;
    let found = open_if_there(data).map_err(about(data))?;
    let disk = found.ok_or(StoreError::NotAJournal).map_err(about(data))?;
    let salvaged = Salvaged::read(&disk).map_err(about(data))?;
    let drawn = options.drawn();
    begin(new, 1, drawn).map_err(about(new))?;
    let to: Arc<dyn Disk> = Arc::new(create(new).map_err(about(new))?);
    let report = salvaged.write(&to, options, Expected::alone()).map_err(about(new))?;
    write_restored(new, restored).map_err(about(new))?;
    finish(new, 1, drawn).map_err(about(new))?;
    Ok(report)
}

/// Writes everything that can be read of a damaged data directory with several shards as a new one
/// with the same number: see [`salvage()`](crate::journal::salvage()). Each journal belongs to the
/// shard that it names itself, whatever its directory is called. A shard without a journal has no
/// report, and an empty journal in the new directory. When it refuses, there is no new directory.
/// Holds everything in memory.
///
/// Refuses a directory with one shard, whose journal is the directory itself.
pub fn salvage_shards(
    data: &Path,
    new: &Path,
    options: JournalOptions,
) -> Result<SalvagedShards, DirectoryError> {
    let sources = existing_journals(data).map_err(about(data))?;
    if sources.len() == 1 {
        return Err(about(data)(StoreError::OutOfOrder { call: "salvage_shards" }));
    }
    refuse_unless_empty(new).map_err(about(new))?;
    let restored = read_restored(data).map_err(about(data))?;
    let mut guards = Vec::new();
    let mut places: Vec<Option<Source>> = sources.iter().map(|_| None).collect();
    let mut passed_over = Vec::new();
    for (shard, JournalAt { directory, .. }) in sources.iter().enumerate() {
        let Some(disk) = open_if_there(directory).map_err(about(directory))? else { continue };
        guards.push(lock(&disk).map_err(about(directory))?);
        let inventory = take_inventory(&disk).map_err(about(directory))?;
        if inventory.segments.is_empty() {
            continue;
        }
        // Directories may have been mixed up, so the shard that a journal names itself counts.
        let known = shard_of_journal(&disk).map_err(about(directory))?;
        let is_one_of_them = |it: &Identity| it.shards as usize == sources.len();
        let says = known.filter(|(identity, _)| is_one_of_them(identity));
        let at = says.map_or(shard, |(identity, _)| identity.shard as usize);
        let incarnation = says.map_or(0, |(_, incarnation)| incarnation);
        let source = Source { directory: directory.clone(), disk, incarnation };
        // Of two copies of one shard the newer one counts.
        let older = match &places[at] {
            Some(other) if other.incarnation >= incarnation => Some(source),
            _ => places[at].replace(source),
        };
        passed_over.extend(older.map(|older| older.directory));
    }
    if places.iter().all(Option::is_none) {
        return Err(about(data)(StoreError::NotAJournal));
    }
    let read = |Source { directory, disk, .. }| Salvaged::read(&disk).map_err(about(&directory));
    let salvaged: Vec<Option<Salvaged>> =
        places.into_iter().map(|source| source.map(read).transpose()).collect::<Result<_, _>>()?;
    let latest = latest(salvaged.iter().flatten().map(Salvaged::header));
    let drawn = options.drawn();
    let targets = begin(new, sources.len(), drawn).map_err(about(new))?;
    let mut reports = Vec::new();
    for (shard, (salvaged, target)) in salvaged.into_iter().zip(&targets).enumerate() {
        let failed = about(&target.directory);
        let Some(salvaged) = salvaged else {
            // The numbers and grants of the lost journal are unknown, so none of them is used
            // again.
            let header = Header { last_number: fresh_number(latest.last_number, shard), ..latest };
            let contents = Contents { header, fold: Fold::new() };
            fill(target, &contents, options).map_err(failed)?;
            reports.push(None);
            continue;
        };
        let write = |to| salvaged.write(&to, options, target.expected).map(Some);
        let made = create(&target.directory).map(|made| -> Arc<dyn Disk> { Arc::new(made) });
        reports.push(made.and_then(write).map_err(failed)?);
    }
    write_restored(new, restored).map_err(about(new))?;
    finish(new, sources.len(), drawn).map_err(about(new))?;
    Ok(SalvagedShards { reports, passed_over })
}

/// What was saved of several shards.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SalvagedShards {
    /// For each shard what was saved, or none if its journal is missing.
    pub reports: Vec<Option<SalvageReport>>,
    /// Directories with an older copy of a journal that another directory holds.
    pub passed_over: Vec<PathBuf>,
}

/// A journal to salvage.
struct Source {
    directory: PathBuf,
    disk: RealDisk,
    /// The incarnation that began its newest segment, as far as is known.
    incarnation: u64,
}

/// Reads the journal of one shard, and locks it until the guards are dropped.
fn read(
    JournalAt { directory, expected }: &JournalAt,
    data: &Path,
    guards: &mut Vec<Box<dyn Send>>,
) -> Result<Contents, StoreError> {
    let Some(disk) = open_if_there(directory)? else { return Err(StoreError::NotAJournal) };
    guards.push(lock(&disk)?);
    // An interrupted start leaves shards that have not begun.
    match Contents::read(&disk, expected) {
        Err(StoreError::NotAJournal) if directory != data => Ok(Contents::default()),
        read => read,
    }
}

fn fill(
    JournalAt { directory, expected }: &JournalAt,
    contents: &Contents,
    options: JournalOptions,
) -> Result<(), StoreError> {
    let to: Arc<dyn Disk> = Arc::new(create(directory)?);
    write(&contents.fold, &contents.header, &to, (options, *expected))
}

/// Counts what a shard holds.
#[must_use]
pub fn summary(contents: &Contents) -> ReshardReport {
    let fold = &contents.fold;
    let of_queues = fold.tasks.values().filter(|(task, _)| task.lane.is_none());
    let with_tasks = of_queues.map(|(task, _)| &task.queue);
    let queues: BTreeSet<&Bytes> = fold.queues.keys().chain(with_tasks).collect();
    ReshardReport {
        tasks: fold.tasks.len() as u64,
        queues: queues.len() as u64,
        members: fold.members.len() as u64,
        lanes: fold.lanes.len() as u64,
        publications: fold.publications.len() as u64,
        schedules: fold.schedules.len() as u64,
        header: contents.header,
    }
}

pub(crate) fn about(directory: &Path) -> impl FnOnce(StoreError) -> DirectoryError {
    let directory = directory.to_owned();
    |source| DirectoryError { directory, source }
}
