//! Rescues what can be read of a damaged journal.
//!
//! Every readable batch, even after damage, is folded in the order of the log, and the result
//! becomes a new journal in another, empty directory. The damaged one is not changed. What was lost
//! cannot be restored: a task whose end was recorded in a lost batch comes back, so the report
//! names the missing batches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinpriq_engine::change::{Header, QueueRecord};
use pinpriq_engine::settings::{Ids, Paused, Settings};
use pinpriq_engine::task::{Bytes, TaskId, TaskRecord};

use super::expected::Expected;
use super::fresh::write;
use super::options::JournalOptions;
use super::options::lock;
use super::survey::{Damage, LsnRange, survey};
use crate::disk::Disk;
use crate::fold::Fold;
use crate::store::{StoreError, TornTail};

/// What was saved, and what was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Batches that were read.
    pub batches: u64,
    /// Tasks in the new journal.
    pub tasks: u64,
    /// Tasks of lanes that were left out because their publication, their lane or their member is
    /// lost. By number.
    pub homeless_tasks: Vec<u64>,
    /// Queues with settings or a pause in it.
    pub queues: u64,
    /// Members in it.
    pub members: u64,
    /// Lanes in it.
    pub lanes: u64,
    /// Publications in it.
    pub publications: u64,
    /// The parts of files that could not be read.
    pub damage: Vec<Damage>,
    /// Batches that are missing. Tasks put in them are lost, tasks that ended in them are back.
    pub missing: Vec<LsnRange>,
    /// Tasks that other batches mention and whose record may be lost, by number. Tasks of a queue
    /// that was emptied later can be among them.
    pub lost_tasks: Vec<u64>,
    /// An unfinished last write that was left out, as a server would have done.
    pub torn_tail: Option<TornTail>,
    /// The highest incarnation, the latest moment and the highest task number of the new journal.
    pub header: Header,
}

/// Writes everything readable in `from` as a new journal into `to`, which must be empty.
///
/// Refuses a journal that is in use or of a newer format, and changes nothing in it. The new one is
/// the only one of its data directory, whatever the old one was.
pub fn salvage(
    from: &dyn Disk,
    to: &Arc<dyn Disk>,
    options: JournalOptions,
) -> Result<SalvageReport, StoreError> {
    salvage_as(from, to, options, Expected::alone())
}

/// See [`salvage`]. `becomes` says which journal the new one is.
pub(crate) fn salvage_as(
    from: &dyn Disk,
    to: &Arc<dyn Disk>,
    options: JournalOptions,
    becomes: Expected,
) -> Result<SalvageReport, StoreError> {
    let _guard = lock(from)?;
    let found =
        to.list().map_err(|error| StoreError::from_io("list", "the new directory", 0, error))?;
    if let Some(entry) = found.into_iter().next() {
        return Err(StoreError::NotEmpty { file: entry.name });
    }
    let mut survey = survey(from, None)?;
    end_replaced_members(&mut survey.fold);
    let homeless_tasks = leave_out_homeless(&mut survey.fold);
    settle_ids(&mut survey.fold);
    // Segments that cannot be read may have begun incarnations, one each at most. A receipt must
    // not be issued twice, so their numbers are skipped.
    let unread = survey.inventory.segments.len().saturating_sub(survey.segments.len()) as u64;
    let header = Header { incarnation: survey.header.incarnation + unread + 1, ..survey.header };
    write(&survey.fold, &header, to, (options, becomes))?;
    let damaged = !survey.damage.is_empty();
    Ok(SalvageReport {
        batches: survey.segments.iter().map(|segment| segment.batches).sum(),
        tasks: survey.fold.tasks.len() as u64,
        homeless_tasks,
        queues: survey.fold.queues.len() as u64,
        members: survey.fold.members.len() as u64,
        lanes: survey.fold.lanes.len() as u64,
        publications: survey.fold.publications.len() as u64,
        // In a log without damage every task mentioned has ended since.
        lost_tasks: if damaged { survey.mentioned.into_iter().collect() } else { Vec::new() },
        damage: survey.damage,
        missing: survey.missing,
        torn_tail: survey.torn_tail,
        header,
    })
}

/// Of members with the same name only the newest can be alive: the records that the others have
/// ended are lost.
fn end_replaced_members(fold: &mut Fold) {
    let members = fold.members.values();
    let newest: BTreeMap<Bytes, u64> =
        members.map(|(member, _)| (member.name.clone(), member.incarnation)).collect();
    for (member, _) in fold.members.values_mut() {
        member.ended |= newest.get(&member.name) != Some(&member.incarnation);
    }
}

/// Removes what a server could not use: lanes without a member, and all but the newest that a
/// member has in one topic; tasks without a lane or payload; publications without tasks. Returns
/// the numbers of these tasks.
fn leave_out_homeless(fold: &mut Fold) -> Vec<u64> {
    let members = &fold.members;
    let newest: BTreeMap<(u64, Bytes), u64> = fold
        .lanes
        .values()
        .map(|(lane, _)| ((lane.member, lane.topic.clone()), lane.number))
        .collect();
    fold.lanes.retain(|number, (lane, _)| {
        let is_newest = newest.get(&(lane.member, lane.topic.clone())) == Some(number);
        members.contains_key(&lane.member) && is_newest
    });
    let (lanes, publications) = (&fold.lanes, &fold.publications);
    let has_home = |task: &TaskRecord| {
        let Some(lane) = &task.lane else { return true };
        let published = publications.range(..=task.number).next_back();
        let published = published.is_some_and(|(_, (known, _))| known.last >= task.number);
        lanes.contains_key(&lane.number) && (!task.shared || published)
    };
    let homeless = fold.tasks.values().filter(|(task, _)| !has_home(task));
    let homeless: Vec<u64> = homeless.map(|(task, _)| task.number).collect();
    for number in &homeless {
        fold.tasks.remove(number);
    }
    fold.forget_unshared(&mut Vec::new());
    homeless
}

/// Makes sure that the tasks of each queue and lane have ids as its settings require, and that no
/// two ids are the same. A server could not find the tasks otherwise.
///
/// The kind of ids of a queue changes only while it is empty, and an id can be used again only when
/// its task is gone. So of tasks whose ids do not fit together, only the newest can still exist:
/// the records that the others have ended are lost. If the record of the queue's kind of ids is
/// lost, it is inferred from the tasks.
fn settle_ids(fold: &mut Fold) {
    let mut queues: BTreeMap<&Bytes, Vec<(u64, &TaskId)>> = BTreeMap::new();
    let mut lanes: BTreeMap<u64, Vec<(u64, &TaskId)>> = BTreeMap::new();
    for (number, (task, _)) in &fold.tasks {
        let tasks = match &task.lane {
            None => queues.entry(&task.queue).or_default(),
            Some(lane) => lanes.entry(lane.number).or_default(),
        };
        tasks.push((*number, &task.id));
    }
    let mut ended: Vec<u64> = Vec::new();
    for (name, tasks) in queues {
        let known = fold.queues.get(name).map_or(Ids::Sequence, |(queue, _)| queue.settings.ids);
        let ids = ids_of_newest(known, &tasks, &mut ended);
        if ids == known {
            continue;
        }
        let lost = || QueueRecord {
            name: name.clone(),
            created: true,
            settings: Settings::default(),
            paused: Paused::default(),
        };
        let (queue, _) = fold.queues.entry(name.clone()).or_insert_with(|| (lost(), None));
        queue.settings.ids = ids;
    }
    for (number, tasks) in lanes {
        let Some((lane, _)) = fold.lanes.get_mut(&number) else { continue };
        lane.settings.ids = ids_of_newest(lane.settings.ids, &tasks, &mut ended);
    }
    for number in ended {
        fold.tasks.remove(&number);
    }
    fold.forget_unshared(&mut Vec::new());
}

/// Returns the kind of ids that the newest of these tasks, sorted by number, can have: the known
/// kind if possible. `ended` receives the numbers of the tasks that do not fit together with newer
/// ones.
fn ids_of_newest(known: Ids, tasks: &[(u64, &TaskId)], ended: &mut Vec<u64>) -> Ids {
    let fits = |ids: Ids, number: u64, id: &TaskId| match ids {
        Ids::Sequence => *id == TaskId::Number(number),
        Ids::Time64 => matches!(id, TaskId::Number(_)),
        Ids::Uuid => matches!(id, TaskId::Uuid(_)),
        Ids::Given => matches!(id, TaskId::Given(_)),
    };
    let any = [Ids::Sequence, Ids::Time64, Ids::Uuid, Ids::Given];
    let newest = tasks.last();
    let possible = |ids: &Ids| newest.is_none_or(|&(number, id)| fits(*ids, number, id));
    let ids = [known].into_iter().chain(any).find(possible).unwrap_or(known);
    let mut taken = BTreeSet::new();
    for &(number, id) in tasks.iter().rev() {
        if !fits(ids, number, id) || !taken.insert(id) {
            ended.push(number);
        }
    }
    ids
}
