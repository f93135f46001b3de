//! Rescuing what can be read of a damaged journal.
//!
//! Every readable batch, also behind damage, is folded in the order of the log, and the outcome
//! becomes a fresh journal in another, empty directory. The damaged one is not changed. What was
//! lost cannot be made up for: a task whose end was noted in a lost batch comes back, so the report
//! names the batches that are missing.

use std::sync::Arc;

use pinpriq_engine::change::{Change, Header};

use super::front::{Journal, JournalOptions};
use super::lane::Runner;
use super::survey::{Damage, LsnRange, Survey, survey};
use crate::disk::{Disk, LOCK_NAME, LockError};
use crate::store::{Store, StoreError, TornTail, Urgency};

/// How many records go into one batch of the new journal.
const BATCH_RECORDS: usize = 256;

/// How many bytes are gathered before they are written.
const WRITE_BYTES: u64 = 8 << 20;

/// What was saved, and what was not.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Batches that were read.
    pub batches: u64,
    /// Tasks in the new journal.
    pub tasks: u64,
    /// Queues with settings or a pause in it.
    pub queues: u64,
    /// The parts of files that could not be read.
    pub damage: Vec<Damage>,
    /// Batches that are missing. Tasks put in them are lost, tasks that ended in them are back.
    pub missing: Vec<LsnRange>,
    /// Tasks that other batches speak of and whose record may be lost, by their number. Tasks of a
    /// queue that was emptied later can be among them.
    pub lost_tasks: Vec<u64>,
    /// An unfinished last write that was left out, as a server would have done.
    pub torn_tail: Option<TornTail>,
    /// The highest incarnation, the latest moment and the highest task number of the new journal.
    pub header: Header,
}

/// Writes everything readable in `from` as a fresh journal into `to`, which must be empty.
///
/// Refuses a journal that is in use or of a newer format, and changes nothing in it.
pub fn salvage(
    from: &dyn Disk,
    to: &Arc<dyn Disk>,
    options: JournalOptions,
) -> Result<SalvageReport, StoreError> {
    let _guard = from.lock().map_err(|error| match error {
        LockError::Held => StoreError::Locked { file: LOCK_NAME.to_owned() },
        LockError::Io(error) => StoreError::from_io("lock", LOCK_NAME, 0, error),
    })?;
    let found =
        to.list().map_err(|error| StoreError::from_io("list", "the new directory", 0, error))?;
    if let Some(entry) = found.into_iter().next() {
        return Err(StoreError::NotEmpty { file: entry.name });
    }
    let survey = survey(from)?;
    // Segments that cannot be read may have begun incarnations, one each at most. A receipt must
    // not be issued twice, so their numbers are passed over.
    let unread = survey.inventory.segments.len().saturating_sub(survey.segments.len()) as u64;
    let header = Header { incarnation: survey.header.incarnation + unread + 1, ..survey.header };
    write(&survey, to, options, &header)?;
    let damaged = !survey.damage.is_empty();
    Ok(SalvageReport {
        batches: survey.segments.iter().map(|segment| segment.batches).sum(),
        tasks: survey.fold.tasks.len() as u64,
        queues: survey.fold.queues.len() as u64,
        // In a log without damage every mention is of a task that ended since.
        lost_tasks: if damaged { survey.mentioned.into_iter().collect() } else { Vec::new() },
        damage: survey.damage,
        missing: survey.missing,
        torn_tail: survey.torn_tail,
        header,
    })
}

fn write(
    survey: &Survey,
    to: &Arc<dyn Disk>,
    options: JournalOptions,
    header: &Header,
) -> Result<(), StoreError> {
    let mut journal = Journal::open(Arc::clone(to), options, Runner::Inline)?;
    journal.load(&mut |_, _| {})?;
    journal.begin(header)?;
    let queues = survey.fold.queues.values();
    let tasks = survey.fold.tasks.values();
    let mut changes = queues
        .map(|(queue, _)| Change::Queue(Box::new(queue.clone())))
        .chain(tasks.map(|(task, _)| Change::Task(Box::new(task.clone()))))
        .peekable();
    while changes.peek().is_some() {
        let batch: Vec<Change> = changes.by_ref().take(BATCH_RECORDS).collect();
        journal.append(header, &batch, Urgency::Lazy, &mut |_, _| {})?;
        if journal.figures().bytes_pending >= WRITE_BYTES {
            journal.finish(header.now)?;
        }
    }
    journal.finish(header.now)
}
