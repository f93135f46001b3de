//! `salvage` where the record of the ids of a queue is lost, or the end of a task whose id was used
//! again; and `check` where only files that are not needed are damaged.

use std::sync::Arc;

use pinpriq_proto::change::{Change, QueueRecord};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::settings::{Ids, Paused, Settings};
use pinpriq_proto::task::TaskId;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Misfit, SalvageReport, check, salvage};
use pinpriq_store::{Disk, Durable, Fold, Store, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::sample_task;

use crate::driving::{journal, options, start};

fn named(number: u64, id: TaskId) -> Change {
    let Change::Task(mut task) = sample_task(number, "q", 20) else { unreachable!() };
    task.id = id;
    Change::Task(task)
}

fn settings(ids: Ids) -> Change {
    let settings = Settings { ids, capacity: Some(9), ..Settings::default() };
    let paused = Paused::default();
    Change::Queue(Box::new(QueueRecord { name: (*b"q").into(), created: true, settings, paused }))
}

/// Returns what is saved of these batches when the one at `lost` is damaged and a last one proves
/// that it was there, and the report. Also checks that an engine starts on it.
fn rescued(batches: &[Change], lost: usize) -> (Fold, SalvageReport) {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(5)).unwrap();
    let mut offsets = Vec::new();
    for change in batches.iter().cloned().chain([sample_task(99, "other", 10)]) {
        offsets.push(caller.store.figures().bytes_used);
        caller.append(&[change], Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    disk.flip("segment-0000000001.log", offsets[lost] + 57, 3);
    let fresh = FaultyDisk::new(2);
    let to: Arc<dyn Disk> = Arc::new(fresh.clone());
    let report = salvage(&disk, &to, options(9)).unwrap();
    assert_eq!((report.damage.len(), report.missing.len()), (1, 1), "{report:?}");
    let fold = start(&fresh, options(10)).unwrap().fold.without_places();
    let store = journal(&fresh, options(11)).unwrap();
    let (durable, _) = Durable::open(store, Limits::default(), Timestamp::ZERO, 1).unwrap();
    durable.engine().check();
    (fold, report)
}

/// The tasks of the queue that were left out for their ids, and why.
fn unfit(report: &SalvageReport) -> Vec<(u64, TaskId, Misfit)> {
    let tasks = report.unfit_tasks.iter();
    assert!(tasks.clone().all(|task| *task.queue == *b"q" && task.member.is_none()));
    tasks.map(|task| (task.number, task.id.clone(), task.why)).collect()
}

fn ids_of(fold: &Fold) -> Vec<(u64, TaskId)> {
    let tasks = fold.tasks.values().filter(|(task, _)| *task.queue == *b"q");
    tasks.map(|(task, _)| (task.number, task.id.clone())).collect()
}

#[test]
fn tasks_tell_the_ids_of_a_queue_whose_settings_are_lost() {
    let x = TaskId::Given((*b"x").into());
    let kinds = [
        (Ids::Sequence, TaskId::Number(7)),
        (Ids::Time64, TaskId::Number(1_700_000_000)),
        (Ids::Uuid, TaskId::Uuid([3; 16])),
        (Ids::Given, x),
    ];
    for (ids, id) in kinds {
        let (fold, report) = rescued(&[settings(ids), named(7, id.clone())], 0);
        assert_eq!(report.unfit_tasks, []);
        assert_eq!(ids_of(&fold), [(7, id)]);
        let found = fold.queues.values().find(|(queue, _)| *queue.name == *b"q");
        let known = found.map_or(Ids::Sequence, |(queue, _)| queue.settings.ids);
        assert_eq!(known, ids);
    }
}

#[test]
fn settings_that_are_there_stay_but_for_ids_that_no_task_can_have() {
    let id = TaskId::Uuid([3; 16]);
    let batches = [settings(Ids::Given), settings(Ids::Uuid), named(7, id)];
    let (fold, _) = rescued(&batches, 1);
    let (queue, _) = &fold.queues[&(*b"q")[..]];
    assert_eq!((queue.settings.ids, queue.settings.capacity), (Ids::Uuid, Some(9)));
}

#[test]
fn of_two_tasks_with_one_id_the_newer_one_is_there() {
    let x = TaskId::Given((*b"x").into());
    let batches = [settings(Ids::Given), named(1, x.clone()), Change::Gone(1), named(2, x.clone())];
    let (fold, report) = rescued(&batches, 2);
    assert_eq!(ids_of(&fold), [(2, x.clone())]);
    assert_eq!(unfit(&report), [(1, x, Misfit::Taken)]);
}

#[test]
fn tasks_from_before_the_ids_changed_have_ended() {
    let x = TaskId::Given((*b"x").into());
    let batches = [
        settings(Ids::Given),
        named(1, x.clone()),
        Change::Gone(1),
        settings(Ids::Sequence),
        named(2, TaskId::Number(2)),
    ];
    let (fold, report) = rescued(&batches, 2);
    assert_eq!(ids_of(&fold), [(2, TaskId::Number(2))]);
    assert_eq!(unfit(&report), [(1, x, Misfit::OtherKind)]);
}

#[test]
fn damage_in_an_unneeded_file_is_none() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(5)).unwrap();
    for number in 1..200 {
        let former = (number > 1).then(|| Change::Gone(number - 1));
        let changes: Vec<Change> =
            former.into_iter().chain([sample_task(number, "q", 900)]).collect();
        caller.append(&changes, Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    caller.settle().unwrap();
    drop(caller);
    let sound = check(&disk).unwrap();
    assert!(sound.segments[0].file.as_str() > "segment-0000000001.log", "the first one is gone");
    disk.put("segment-0000000001.log", vec![7; 20_000]);
    let report = check(&disk).unwrap();
    assert_eq!((report.damage, report.left_over.len()), (Vec::new(), 1));
    assert_eq!(report.tasks_by_queue, sound.tasks_by_queue);
    start(&disk, options(6)).unwrap();
    assert!(!disk.files().contains_key("segment-0000000001.log"), "the start removes it");
}

#[test]
fn check_passes_over_a_segment_of_the_highest_number() {
    let disk = FaultyDisk::new(1);
    start(&disk, options(5)).unwrap();
    disk.put("segment-4294967295.log", vec![7; 20_000]);
    let report = check(&disk).unwrap();
    assert_eq!(report.damage, Vec::new());
    assert_eq!(report.foreign, ["segment-4294967295.log"]);
}
