//! `check` and `salvage` with members, lanes and publications: what exists is reported, homeless
//! tasks are named, and a server starts on whatever was saved.

use std::sync::Arc;

use pinpriq_proto::change::Change;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::{SalvageReport, check, salvage};
use pinpriq_store::{Disk, Durable, Fold, Journal, Store, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{
    Caller, sample_lane, sample_lane_task, sample_member, sample_publication, sample_task,
};

use crate::driving::{journal, options, start, tasks_of_lanes};
use crate::fan_out::{Office, tight};

const LATER: Timestamp = Timestamp::from_ms(1 << 40);

/// Writes each group of changes as a batch of its own. Returns where each begins in the first
/// segment.
fn write(disk: &FaultyDisk, batches: &[Vec<Change>]) -> Vec<u64> {
    let mut caller = start(disk, options(5)).unwrap();
    let mut offsets = Vec::new();
    for changes in batches {
        let figures = caller.store.figures();
        assert_eq!(figures.segments, 1, "the offsets would not be those of the first segment");
        offsets.push(figures.bytes_used);
        caller.append(changes, Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    offsets
}

/// Salvages, and starts an engine on the result.
fn rescue(disk: &FaultyDisk) -> (SalvageReport, Fold) {
    let fresh = FaultyDisk::new(77);
    let to: Arc<dyn Disk> = Arc::new(fresh.clone());
    let report = salvage(disk, &to, options(9)).unwrap();
    drop(to);
    fresh.crash(CrashPolicy::LoseUnsynced);
    let fold = start(&fresh, options(10)).unwrap().fold.without_places();
    fresh.crash(CrashPolicy::LoseUnsynced);
    let store = journal(&fresh, options(11)).unwrap();
    let (durable, _) = Durable::open(store, Limits::default(), LATER, 1).unwrap();
    durable.engine().check();
    (report, fold)
}

/// Like `rescue`, after damaging the batch at this offset.
fn rescue_without(disk: &FaultyDisk, offset: u64) -> (SalvageReport, Fold) {
    let damaged = FaultyDisk::with_files(2, &disk.files());
    damaged.flip("segment-0000000001.log", offset + 57, 3);
    let (report, fold) = rescue(&damaged);
    assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    assert_eq!(report.missing.len(), 1, "{:?}", report.missing);
    (report, fold)
}

/// Members 1 and 3 with the lanes 2 and 4 of one topic, one publication to both, and a last batch
/// that proves that all others were on disk.
fn two_members() -> Vec<Vec<Change>> {
    vec![
        vec![sample_member(1, "m")],
        vec![sample_lane(2, "t", 1)],
        vec![sample_member(3, "n"), sample_lane(4, "t", 3)],
        vec![sample_publication(5, &[2, 4], 300)],
        vec![sample_lane_task(6, 4, None)],
        vec![sample_task(7, "q", 10)],
        vec![sample_task(8, "q", 10)],
    ]
}

fn lane_tasks(fold: &Fold) -> Vec<u64> {
    tasks_of_lanes(fold)
}

#[test]
fn check_tells_of_members_lanes_and_publications() {
    let disk = FaultyDisk::new(1);
    write(&disk, &two_members());
    let report = check(&disk).unwrap();
    assert_eq!((report.members, report.lanes, report.publications), (2, 2, 1));
    assert_eq!(report.tasks_by_state, [3, 0, 0, 1, 0, 0]);
    let lanes: Vec<(&[u8], &[u8], u64)> = report
        .tasks_by_lane
        .iter()
        .map(|((topic, member), count)| (&**topic, &**member, *count))
        .collect();
    assert_eq!(lanes, [(&b"t"[..], &b"m"[..], 1), (b"t", b"n", 1)]);
    let queues: Vec<u64> = report.tasks_by_queue.values().copied().collect();
    assert_eq!(queues, [2], "a lane is no queue");
    assert_eq!(report.header.last_number, 8);
    assert!(report.damage.is_empty());
}

#[test]
fn salvage_keeps_all_of_a_log_without_damage() {
    let disk = FaultyDisk::new(1);
    write(&disk, &two_members());
    let whole = start(&FaultyDisk::with_files(3, &disk.files()), options(1)).unwrap().fold;
    let (report, fold) = rescue(&disk);
    assert_eq!(fold, whole.without_places());
    assert_eq!((report.tasks, report.members, report.lanes, report.publications), (4, 2, 2, 1));
    assert!(report.homeless_tasks.is_empty() && report.lost_tasks.is_empty());
}

#[test]
fn tasks_without_payload_lane_or_member_are_left_out_and_named() {
    let disk = FaultyDisk::new(1);
    let offsets = write(&disk, &two_members());
    // The member is lost, and its lane with it.
    let (report, fold) = rescue_without(&disk, offsets[0]);
    assert_eq!((report.homeless_tasks.as_slice(), lane_tasks(&fold)), (&[5][..], vec![6]));
    assert_eq!((report.members, report.lanes, report.publications), (1, 1, 1));
    // The lane is lost.
    let (report, fold) = rescue_without(&disk, offsets[1]);
    assert_eq!((report.homeless_tasks.as_slice(), lane_tasks(&fold)), (&[5][..], vec![6]));
    assert_eq!((report.members, report.lanes), (2, 1));
    // The publication is lost: one copy leaves no trace, the other one is mentioned.
    let (report, fold) = rescue_without(&disk, offsets[3]);
    assert_eq!((report.homeless_tasks.as_slice(), lane_tasks(&fold)), (&[6][..], Vec::new()));
    assert_eq!((report.members, report.lanes, report.publications), (2, 2, 0));
    // The record of a moved copy is lost: the copy is back as it was put.
    let (report, fold) = rescue_without(&disk, offsets[4]);
    assert_eq!((report.homeless_tasks.as_slice(), lane_tasks(&fold)), (&[][..], vec![5, 6]));
    assert_eq!(fold.tasks[&6].0.progress.attempts, 0);
}

#[test]
fn a_copy_whose_publication_is_lost_is_saved_if_it_has_a_payload_of_its_own() {
    let disk = FaultyDisk::new(1);
    let mut batches = two_members();
    batches[4] = vec![sample_lane_task(6, 4, Some(50))];
    let offsets = write(&disk, &batches);
    let (report, fold) = rescue_without(&disk, offsets[3]);
    assert!(report.homeless_tasks.is_empty(), "{:?}", report.homeless_tasks);
    assert_eq!(lane_tasks(&fold), [6]);
}

#[test]
fn a_note_about_a_copy_that_is_lost_names_it() {
    let disk = FaultyDisk::new(1);
    let mut batches = two_members();
    batches[4] = vec![Change::Granted(pinpriq_proto::change::Granted {
        number: 6,
        incarnation: 1,
        serial: 1,
        deadline: None,
        ttr: None,
        attempts: 1,
    })];
    let offsets = write(&disk, &batches);
    let (report, _) = rescue_without(&disk, offsets[3]);
    assert_eq!(report.lost_tasks, [6]);
    let (report, _) = rescue_without(&disk, offsets[5]);
    assert!(report.lost_tasks.is_empty(), "{:?}", report.lost_tasks);
}

/// The end of a member is lost, and another member has its name.
#[test]
fn of_two_members_of_one_name_only_the_newer_one_lives_on() {
    let disk = FaultyDisk::new(1);
    let mut batches = two_members();
    batches[6] = vec![Change::LaneGone(2), Change::MemberGone(1)];
    batches.push(vec![sample_member(9, "m"), sample_lane(10, "t", 9)]);
    batches.push(vec![sample_publication(11, &[4, 10], 20)]);
    let offsets = write(&disk, &batches);
    let (_, fold) = rescue(&disk);
    assert_eq!(fold.members.keys().copied().collect::<Vec<u64>>(), [3, 9]);
    let (report, fold) = rescue_without(&disk, offsets[6]);
    let ended: Vec<bool> = fold.members.values().map(|(member, _)| member.ended).collect();
    assert_eq!(ended, [true, false, false]);
    assert_eq!((report.members, report.lanes), (3, 3));
    assert!(report.homeless_tasks.is_empty(), "they go when a server cleans the lane");
}

/// The end of a lane is lost, and its member has joined the topic again.
#[test]
fn of_two_lanes_of_one_member_in_a_topic_only_the_newer_one_is_saved() {
    let disk = FaultyDisk::new(1);
    let mut batches = two_members();
    batches[6] = vec![Change::LaneGone(2)];
    batches.push(vec![sample_lane(9, "t", 1)]);
    batches.push(vec![sample_publication(10, &[4, 9], 20)]);
    let offsets = write(&disk, &batches);
    let (report, fold) = rescue_without(&disk, offsets[6]);
    assert_eq!(fold.lanes.keys().copied().collect::<Vec<u64>>(), [4, 9]);
    assert_eq!((report.homeless_tasks.as_slice(), lane_tasks(&fold)), (&[5][..], vec![6, 10, 11]));
}

/// In a compacted log, the record of the last task that shares a payload can come after the end of
/// all other such tasks.
#[test]
fn a_payload_is_kept_for_a_task_whose_record_was_moved_further_on() {
    let disk = FaultyDisk::new(1);
    let mut caller = start(&disk, options(5)).unwrap();
    let append = |caller: &mut Caller<Journal>, changes: &[Change]| {
        caller.append(changes, Urgency::Soon).unwrap();
        caller.header.now = caller.header.now.after(Span::from_ms(5));
        caller.turn().unwrap();
    };
    for changes in [
        vec![sample_member(1, "m"), sample_lane(2, "t", 1)],
        vec![sample_member(3, "n"), sample_lane(4, "t", 3)],
        vec![sample_publication(5, &[2, 4], 300)],
    ] {
        append(&mut caller, &changes);
    }
    // Puts and ends other tasks until compaction has done its work.
    let churn = |caller: &mut Caller<Journal>, until: &dyn Fn(&Fold) -> bool| {
        for _ in 0..1_000 {
            if until(&caller.fold) {
                return;
            }
            let number = caller.header.last_number + 1;
            append(caller, &[sample_task(number, "x", 900), Change::Gone(number - 1)]);
        }
        panic!("compaction does not get that far");
    };
    let published_in = |fold: &Fold| fold.publications[&5].1.unwrap().volume;
    let moved_in = |fold: &Fold| fold.tasks[&6].1.unwrap().volume;
    // The task has a record of its own, in a later segment than its publication.
    let first = published_in(&caller.fold);
    churn(&mut caller, &|fold| {
        fold.tasks.values().any(|task| task.1.is_some_and(|place| place.volume > first))
    });
    append(&mut caller, &[sample_lane_task(6, 4, None)]);
    // The publication is written again after that, and then no other lane shares it.
    churn(&mut caller, &|fold| published_in(fold) > moved_in(fold));
    append(&mut caller, &[Change::Gone(5)]);
    // The record of the task is written again too, and the old one is gone from the disk.
    let former = format!("segment-{:010}.log", moved_in(&caller.fold));
    churn(&mut caller, &|_| !disk.files().contains_key(&former));
    assert!(published_in(&caller.fold) < moved_in(&caller.fold));
    let fold = caller.fold.without_places();
    caller.store.finish(caller.header.now).unwrap();
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    let report = check(&disk).unwrap();
    assert_eq!((report.publications, report.tasks_by_lane.len()), (1, 1));
    let (report, found) = rescue(&disk);
    assert_eq!(found, fold);
    assert!(report.homeless_tasks.is_empty());
}

/// Whichever batch of a log written by members is lost, a server starts on what was saved.
#[test]
fn a_server_starts_on_whatever_is_salvaged() {
    let mut homeless = 0;
    for seed in 0..6 {
        let disk = FaultyDisk::new(seed);
        let mut dice = Dice::new(seed);
        let mut office = Office::open(&disk, tight(seed), Timestamp::from_ms(1_000_000));
        for _ in 0..120 {
            office.random_turn(&mut dice).unwrap();
        }
        office.finish();
        drop(office);
        disk.crash(CrashPolicy::KeepAll);
        assert!(rescue(&disk).0.homeless_tasks.is_empty(), "seed {seed}");
        let files = disk.files();
        let segments = files.iter().filter(|(name, _)| name.starts_with("segment-"));
        for (name, bytes) in segments {
            let magic = 0x5051_4231_u32.to_le_bytes();
            let starts =
                (8_192..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(&magic));
            for at in starts.filter(|_| dice.chance(60)) {
                let damaged = FaultyDisk::with_files(2, &files);
                damaged.flip(name, at as u64 + 57, 3);
                homeless += rescue(&damaged).0.homeless_tasks.len();
            }
        }
    }
    assert!(homeless > 20, "{homeless} tasks lost their home");
}
