//! Rescues what can be read of a damaged journal.
//!
//! Every readable batch, even after damage, is folded in the order of the log, and the result
//! becomes a new journal in another, empty directory. The damaged one is not changed. What was lost
//! cannot be restored: a task whose end was recorded in a lost batch comes back, so the report
//! names the missing batches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinpriq_proto::change::{Header, QueueRecord};
use pinpriq_proto::settings::{Ids, Paused, Settings};
use pinpriq_proto::task::{Bytes, TaskId, TaskRecord};

use super::expected::Expected;
use super::fresh::write;
use super::options::JournalOptions;
use super::options::lock;
use super::survey::{Damage, LsnRange, Survey, survey};
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
    /// Tasks that were left out because their id does not go with those of newer tasks. By queue,
    /// then by lane.
    pub unfit_tasks: Vec<UnfitTask>,
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

/// A task that was left out because of its id.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UnfitTask {
    /// Its number.
    pub number: u64,
    /// Its queue, or the topic of its lane.
    pub queue: Bytes,
    /// The member that its lane belongs to, if it is in one.
    pub member: Option<Bytes>,
    /// Its id.
    pub id: TaskId,
    /// Why it was left out.
    pub why: Misfit,
}

/// Why an id does not go with those of newer tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// A newer task has the same one.
    Taken,
    /// Newer tasks have ids of another kind.
    OtherKind,
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
    let found =
        to.list().map_err(|error| StoreError::from_io("list", "the new directory", 0, error))?;
    if let Some(entry) = found.into_iter().next() {
        return Err(StoreError::NotEmpty { file: entry.name });
    }
    Salvaged::read(from)?.write(to, options, Expected::alone())
}

/// All that was read of a damaged journal, which stays locked until this is written.
pub(crate) struct Salvaged {
    fold: Fold,
    report: SalvageReport,
    _guard: Box<dyn Send>,
}

impl Salvaged {
    /// Reads everything readable. Whatever [`salvage`] refuses about the old journal is refused
    /// here, before there is a new one.
    pub(crate) fn read(from: &dyn Disk) -> Result<Self, StoreError> {
        let guard = lock(from)?;
        let (fold, report) = rescue(survey(from, None)?);
        Ok(Self { fold, report, _guard: guard })
    }

    /// Returns the header of the new journal.
    pub(crate) const fn header(&self) -> Header {
        self.report.header
    }

    /// Writes the new journal. `becomes` says which one it is.
    pub(crate) fn write(
        self,
        to: &Arc<dyn Disk>,
        options: JournalOptions,
        becomes: Expected,
    ) -> Result<SalvageReport, StoreError> {
        write(&self.fold, &self.report.header, to, (options, becomes))?;
        Ok(self.report)
    }
}

/// Returns what a server can use of what was read.
fn rescue(mut survey: Survey) -> (Fold, SalvageReport) {
    end_replaced_members(&mut survey.fold);
    leave_out_replaced_schedules(&mut survey.fold);
    let homeless_tasks = leave_out_homeless(&mut survey.fold);
    let unfit_tasks = settle_ids(&mut survey.fold);
    // Segments that cannot be read may have begun incarnations, one each at most. A receipt must
    // not be issued twice, so their numbers are skipped.
    let unread = survey.inventory.segments.len().saturating_sub(survey.segments.len()) as u64;
    let header = Header { incarnation: survey.header.incarnation + unread + 1, ..survey.header };
    let damaged = !survey.damage.is_empty();
    let report = SalvageReport {
        batches: survey.segments.iter().map(|segment| segment.batches).sum(),
        tasks: survey.fold.tasks.len() as u64,
        homeless_tasks,
        unfit_tasks,
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
    };
    (survey.fold, report)
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

/// Of schedules with the same name only the newest can exist: the records that the others were
/// dropped are lost.
fn leave_out_replaced_schedules(fold: &mut Fold) {
    let known = fold.schedules.iter();
    let newest: BTreeMap<Bytes, u64> =
        known.map(|(number, (schedule, _))| (schedule.name.clone(), *number)).collect();
    fold.schedules.retain(|number, (schedule, _)| newest.get(&schedule.name) == Some(number));
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
/// lost, it is inferred from the tasks. Returns the tasks that were removed.
fn settle_ids(fold: &mut Fold) -> Vec<UnfitTask> {
    let mut queues: BTreeMap<&Bytes, Vec<(u64, &TaskId)>> = BTreeMap::new();
    let mut lanes: BTreeMap<u64, Vec<(u64, &TaskId)>> = BTreeMap::new();
    for (number, (task, _)) in &fold.tasks {
        let tasks = match &task.lane {
            None => queues.entry(&task.queue).or_default(),
            Some(lane) => lanes.entry(lane.number).or_default(),
        };
        tasks.push((*number, &task.id));
    }
    let mut ended: Vec<(u64, Misfit)> = Vec::new();
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
    let mut unfit_tasks = Vec::new();
    for (number, why) in ended {
        let Some((task, _)) = fold.tasks.remove(&number) else { continue };
        let lane = task.lane.and_then(|lane| fold.lanes.get(&lane.number));
        // The record of a task in a lane leaves out the topic.
        let queue = lane.map_or(task.queue, |(lane, _)| lane.topic.clone());
        let member = lane.and_then(|(lane, _)| fold.members.get(&lane.member));
        let member = member.map(|(member, _)| member.name.clone());
        unfit_tasks.push(UnfitTask { number, queue, member, id: task.id, why });
    }
    fold.forget_unshared(&mut Vec::new());
    unfit_tasks
}

/// Returns the kind of ids that the newest of these tasks, sorted by number, can have: the known
/// kind if possible. `ended` receives the numbers of the tasks that do not fit together with newer
/// ones, and why.
fn ids_of_newest(known: Ids, tasks: &[(u64, &TaskId)], ended: &mut Vec<(u64, Misfit)>) -> Ids {
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
        if !fits(ids, number, id) {
            ended.push((number, Misfit::OtherKind));
        } else if !taken.insert(id) {
            ended.push((number, Misfit::Taken));
        }
    }
    ids
}
