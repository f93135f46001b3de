//! Inspects a journal without changing it.
//!
//! Works on a directory that must not be written, and while a server uses it; then the end of the
//! log may be read half written. Everything is read, and the state is built in memory.

use std::collections::BTreeMap;

use pinpriq_proto::change::Header;
use pinpriq_proto::task::Bytes;

use super::expected::Expected;
use super::segment::spare_name;
use super::survey::{Damage, LsnRange, SegmentReport, survey};
use crate::disk::{Disk, LOCK_NAME, LockError};
use crate::store::{StoreError, TornTail};

/// What a journal contains.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The format version: the highest of the needed segments whose header can be read.
    pub version: u32,
    /// Whether another process holds the lock.
    pub in_use: bool,
    /// The segments that are needed, oldest first.
    pub segments: Vec<SegmentReport>,
    /// Batches that can be read.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// The highest incarnation, the latest moment, the highest task number.
    pub header: Header,
    /// The number of tasks in each state, in the order of [`pinpriq_proto::task::StateKind::ALL`].
    pub tasks_by_state: [u64; 6],
    /// The number of tasks in each queue.
    pub tasks_by_queue: BTreeMap<Bytes, u64>,
    /// The number of tasks in each lane, by topic and member.
    pub tasks_by_lane: BTreeMap<(Bytes, Bytes), u64>,
    /// The number of registered members.
    pub members: u64,
    /// The number of their lanes.
    pub lanes: u64,
    /// The number of published payloads that are kept.
    pub publications: u64,
    /// The number of queues with settings or a pause.
    pub queues_with_settings: u64,
    /// Bytes in use in the segments.
    pub bytes_used: u64,
    /// Bytes of records that count.
    pub bytes_live: u64,
    /// Prepared files.
    pub spares: Vec<String>,
    /// Segments that are no longer needed. The next start removes them, unless it
    /// [keeps everything](crate::journal::Tap::keep_all).
    pub left_over: Vec<String>,
    /// Files that are not part of a journal.
    pub foreign: Vec<String>,
    /// An unfinished last write, which the next start cuts off. It does not count as damage.
    pub torn_tail: Option<TornTail>,
    /// What cannot be read. A server starts only if this is empty.
    pub damage: Vec<Damage>,
    /// Batches that are missing.
    pub missing: Vec<LsnRange>,
}

/// Reads a journal and reports what it contains. Changes nothing.
///
/// Refuses a directory without segments, and one of a newer format. Missing segments, and segments
/// of another journal than the others, count as damage.
pub fn check(disk: &dyn Disk) -> Result<Report, StoreError> {
    check_expected(disk, None)
}

/// Like [`check()`]. A journal other than the expected one also counts as damage.
pub fn check_expected(disk: &dyn Disk, expected: Option<&Expected>) -> Result<Report, StoreError> {
    let guard = match disk.lock() {
        Ok(guard) => Some(guard),
        Err(LockError::Held) => None,
        Err(LockError::Io(error)) => return Err(StoreError::from_io("lock", LOCK_NAME, 0, error)),
    };
    let in_use = guard.is_none();
    let survey = survey(disk, expected)?;
    let mut tasks_by_state = [0; 6];
    let mut tasks_by_queue: BTreeMap<Bytes, u64> = BTreeMap::new();
    let mut tasks_by_lane: BTreeMap<(Bytes, Bytes), u64> = BTreeMap::new();
    for (task, _) in survey.fold.tasks.values() {
        tasks_by_state[task.progress.state.kind() as usize] += 1;
        let Some(lane) = &task.lane else {
            *tasks_by_queue.entry(task.queue.clone()).or_default() += 1;
            continue;
        };
        let Some((lane, _)) = survey.fold.lanes.get(&lane.number) else { continue };
        let Some((member, _)) = survey.fold.members.get(&lane.member) else { continue };
        *tasks_by_lane.entry((lane.topic.clone(), member.name.clone())).or_default() += 1;
    }
    Ok(Report {
        version: survey.version,
        in_use,
        batches: survey.segments.iter().map(|segment| segment.batches).sum(),
        records: survey.segments.iter().map(|segment| segment.records).sum(),
        header: survey.header,
        tasks_by_state,
        tasks_by_queue,
        tasks_by_lane,
        members: survey.fold.members.len() as u64,
        lanes: survey.fold.lanes.len() as u64,
        publications: survey.fold.publications.len() as u64,
        queues_with_settings: survey.fold.queues.len() as u64,
        bytes_used: survey.segments.iter().map(|segment| segment.end).sum(),
        bytes_live: survey.fold.live_bytes(),
        spares: survey.inventory.spares.keys().map(|&number| spare_name(number)).collect(),
        left_over: survey.left_over,
        foreign: survey.inventory.foreign.into_iter().map(|entry| entry.name).collect(),
        segments: survey.segments,
        torn_tail: survey.torn_tail,
        damage: survey.damage,
        missing: survey.missing,
    })
}
