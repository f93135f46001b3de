//! Data directories written from cuts of journals that run: they hold what there was at a moment,
//! and whatever is wrong is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use pinpriq_proto::change::{Header, QueueRecord};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::{Identity, check, raw};
use pinpriq_store::layout::{AfterRestore, read_restored, remove_restored, shards_in};
use pinpriq_store::reshard::{DirectoryError, ReshardReport, reshard, salvage_alone};
use pinpriq_store::restore::{Restoring, Wishes};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Disk, Durable, Fold, Journal, RealDisk, Runner, Store, StoreError, Urgency};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::FaultyDisk;
use pinpriq_testing::stores::sample_task;

use crate::driving::{journal, options};
use crate::layouts::{existing_directories, expected_at};
use crate::sharded::{Draft, LATER, files, read_all};
use crate::tap::Tapped;

/// The segments of one shard, oldest first.
type Segments = Vec<Vec<u8>>;

/// Where a restored shard goes on.
fn start_of(shard: usize) -> Header {
    Header {
        incarnation: 1 << 16,
        now: Timestamp::from_ms(1 << 30),
        last_number: first_number(shard) + (1 << 36),
    }
}

/// Writes a directory from the segments of each shard.
fn restore(
    data: &Path,
    shards: &[Segments],
    until: Option<Timestamp>,
    wishes: Wishes,
) -> Result<Vec<ReshardReport>, DirectoryError> {
    let mut restoring = Restoring::begin(data, shards.len(), options(9))?;
    for (shard, segments) in shards.iter().enumerate() {
        for bytes in segments {
            if restoring.add(shard, bytes.clone(), until)?.is_cut {
                break;
            }
        }
    }
    let starts: Vec<Header> = (0..shards.len()).map(start_of).collect();
    restoring.finish(&starts, wishes)
}

/// The segments of random work, all of them, with the state after each millisecond.
fn worked(seed: u64, rounds: u64) -> (Segments, Vec<(Timestamp, Fold)>) {
    let mut tapped = Tapped::start(seed);
    let first = tapped.cut();
    let mut states = Vec::new();
    tapped.work(&mut Dice::new(seed), rounds, &mut |tapped| {
        states.push((tapped.caller.header.now, tapped.caller.fold.without_places()));
    });
    let cut = tapped.cut();
    assert_eq!(cut.segments[0].number, first.segments[0].number);
    (tapped.segments(&cut), states)
}

/// The names of the queues that hold tasks themselves.
fn with_tasks(fold: &Fold) -> BTreeSet<Bytes> {
    let tasks = fold.tasks.values().map(|(task, _)| task);
    tasks.filter(|task| task.lane.is_none()).map(|task| task.queue.clone()).collect()
}

#[track_caller]
fn check_report(report: &ReshardReport, fold: &Fold) {
    let queues: BTreeSet<Bytes> = fold.queues.keys().cloned().chain(with_tasks(fold)).collect();
    assert_eq!(report.tasks, fold.tasks.len() as u64);
    assert_eq!(report.queues, queues.len() as u64);
    assert_eq!(report.members, fold.members.len() as u64);
    assert_eq!(report.lanes, fold.lanes.len() as u64);
    assert_eq!(report.publications, fold.publications.len() as u64);
    assert_eq!(report.schedules, fold.schedules.len() as u64);
}

#[test]
fn each_moment_has_its_state() {
    let (segments, states) = worked(1, 200);
    assert!(segments.len() > 5, "{} segments", segments.len());
    let root = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(1);
    let mut tried = 0;
    for (index, (at, state)) in states.iter().enumerate() {
        if dice.chance(92) && index + 1 < states.len() {
            continue;
        }
        let data = root.path().join(index.to_string());
        let reports = restore(&data, from_ref(&segments), Some(*at), Wishes::default()).unwrap();
        assert_eq!(shards_in(&data).unwrap(), Some(1));
        let (header, fold) = read_all(&data).remove(0);
        assert_eq!((header, reports[0].header), (start_of(0), start_of(0)));
        assert!(fold == *state, "the state at {at} is another one");
        check_report(&reports[0], &fold);
        tried += 1;
    }
    assert!(tried > 5, "only {tried} moments");
}

/// Nothing is kept here, so compaction has put away most of the log.
#[test]
fn a_cut_suffices_from_the_moment_that_it_says() {
    let mut tapped = Tapped::start(2);
    let mut states = Vec::new();
    tapped.work(&mut Dice::new(2), 500, &mut |tapped| {
        states.push((tapped.caller.header.now, tapped.caller.fold.without_places()));
    });
    let cut = tapped.cut();
    let segments = tapped.segments(&cut);
    assert!(cut.segments[0].number > 1, "{:?}", cut.segments);
    let root = tempfile::tempdir().unwrap();
    let within: Vec<&(Timestamp, Fold)> =
        states.iter().filter(|(at, _)| *at >= cut.since).collect();
    assert!(!within.is_empty() && within.len() < states.len());
    for (at, state) in within.into_iter().step_by(3) {
        let data = root.path().join(at.ms().to_string());
        restore(&data, from_ref(&segments), Some(*at), Wishes::default()).unwrap();
        assert!(read_all(&data)[0].1 == *state, "the state at {at} is another one");
    }
    let data = root.path().join("too early");
    let early = restore(&data, from_ref(&segments), Some(states[0].0), Wishes::default());
    let early = early.unwrap_err().to_string();
    assert!(early.contains("nothing in it is old enough: older ones are missing"), "{early}");
    assert!(matches!(shards_in(&data), Err(StoreError::Unfinished)));
}

#[test]
fn the_commits_are_those_of_the_log_and_the_number_is_a_new_one() {
    let (segments, _) = worked(3, 40);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let mut restoring = Restoring::begin(&data, 1, options(9)).unwrap();
    let identity = Identity { directory: restoring.number(), shard: 0, shards: 1 };
    for bytes in &segments {
        let before = raw::header(bytes).unwrap();
        assert_ne!(before.identity, Some(identity));
        let added = restoring.add(0, bytes.clone(), None).unwrap();
        assert_eq!((added.header, added.end, added.is_cut), (before, bytes.len(), false));
        assert!(matches!(shards_in(&data), Err(StoreError::Unfinished)));
    }
    restoring.finish(&[start_of(0)], Wishes::default()).unwrap();
    let found = files(&data);
    let of = |number: u32| &found[&data.join(format!("segment-{number:010}.log"))];
    let needed = raw::walk("the last one", segments.last().unwrap(), None).unwrap().last.unwrap();
    for (bytes, number) in segments.iter().zip(1..).filter(|(_, at)| *at >= needed.oldest) {
        let restored = raw::header(of(number)).unwrap();
        let before = raw::header(bytes).unwrap();
        assert_eq!(restored.identity, Some(identity));
        assert_eq!(raw::RawHeader { identity: before.identity, ..restored }, before);
        assert!(of(number)[raw::HEADER_BYTES..] == bytes[raw::HEADER_BYTES..]);
    }
    assert!(!found.contains_key(&data.join("segment-0000000001.log")) || needed.oldest == 1);
    let last = u32::try_from(segments.len()).unwrap() + 1;
    assert_eq!(raw::header(of(last)).unwrap().incarnation, start_of(0).incarnation);
}

#[test]
fn everything_can_be_paused_and_nothing_else_changes() {
    let shards = [0, 1].map(|shard| {
        let mut tapped = Tapped::start_shard(shard, 2);
        tapped.pass(9_000);
        for changes in Draft::of_everything(shard, 2).changes.chunks(3) {
            tapped.caller.append(changes, Urgency::Soon).unwrap();
            tapped.caller.turn().unwrap();
        }
        let cut = tapped.cut();
        (tapped.segments(&cut), tapped.caller.fold.without_places())
    });
    let (segments, folds): (Vec<Segments>, Vec<Fold>) = shards.into_iter().unzip();
    let root = tempfile::tempdir().unwrap();
    for paused in [false, true] {
        let data = root.path().join(format!("paused {paused}"));
        let wishes = Wishes { paused, skips_slots: false };
        let reports = restore(&data, &segments, None, wishes).unwrap();
        assert_eq!(shards_in(&data).unwrap(), Some(2));
        assert_eq!(read_restored(&data).unwrap(), None);
        for (shard, (header, found)) in read_all(&data).into_iter().enumerate() {
            assert_eq!(header, start_of(shard));
            check_report(&reports[shard], &folds[shard]);
            let expected = if paused { pause(&folds[shard]) } else { folds[shard].clone() };
            assert!(found == expected, "shard {shard}, paused {paused}");
        }
        for directory in existing_directories(&data).unwrap() {
            let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&directory).unwrap());
            let store = Journal::open(disk, options(5), Runner::Inline).unwrap();
            let store = Box::new(store.expecting(expected_at(&directory)));
            let (durable, _) = Durable::open(store, Limits::default(), LATER, 1).unwrap();
            durable.engine().check();
            assert_eq!(durable.engine().header().incarnation, start_of(0).incarnation + 1);
        }
    }
}

/// The same state with everything paused.
fn pause(fold: &Fold) -> Fold {
    let mut fold = fold.clone();
    let all = Paused::endlessly(true, true);
    for name in with_tasks(&fold) {
        let settings = Settings::default();
        let fresh = QueueRecord { name: name.clone(), created: false, settings, paused: all };
        fold.queues.entry(name).or_insert((fresh, None));
    }
    fold.queues.values_mut().for_each(|(queue, _)| queue.paused = all);
    fold.lanes.values_mut().for_each(|(lane, _)| lane.paused = all);
    fold.schedules.values_mut().for_each(|(schedule, _)| schedule.course.paused = true);
    fold
}

/// Tries to restore these segments as one shard, and checks that nothing accepts what came of it.
#[track_caller]
fn refusal(segments: &[Vec<u8>], until: Option<Timestamp>) -> String {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let refused = restore(&data, &[segments.to_vec()], until, Wishes::default());
    assert!(matches!(shards_in(&data), Err(StoreError::Unfinished)));
    refused.unwrap_err().to_string()
}

#[test]
fn segments_that_are_no_whole_log_are_refused() {
    let (segments, _) = worked(4, 100);
    let [first, second, third, ..] = &*segments else { panic!("{} segments", segments.len()) };
    let gap = refusal(&[first.clone(), third.clone()], None);
    assert!(gap.contains("it does not follow segment-0000000001.log"), "{gap}");
    let mut early = None;
    raw::walk_each("the second", second, &mut |commit| {
        early.get_or_insert(*commit);
    })
    .unwrap();
    let early = early.unwrap();
    assert_eq!(early.oldest, 1);
    let missing = refusal(&segments[1..], Some(early.now));
    assert!(missing.contains("the last commit needs segment-0000000001.log"), "{missing}");
    for cut in [8, 16, second.len() - raw::HEADER_BYTES - 8] {
        let short = second[..second.len() - cut].to_vec();
        let refused = refusal(&[first.clone(), short], None);
        assert!(refused.contains("is missing, broken or not whole"), "{cut}: {refused}");
    }
    let headers = second[..raw::HEADER_BYTES].to_vec();
    assert!(refusal(&[first.clone(), headers], None).contains("it holds no commit"));
    let mut spoilt = second.clone();
    spoilt[raw::HEADER_BYTES + 20] ^= 1;
    let spoilt = refusal(&[first.clone(), spoilt], None);
    assert!(spoilt.contains("segment-0000000002.log is damaged at offset 8192"), "{spoilt}");
    let mut newer = second.clone();
    (newer[8], newer[4_104]) = (99, 99);
    let newer = refusal(&[first.clone(), newer], None);
    assert!(newer.contains("has format version 99"), "{newer}");
    let (others, _) = worked(5, 60);
    let mixed = refusal(&[first.clone(), others[1].clone()], None);
    assert!(mixed.contains("segment-0000000002.log belongs to another data directory"), "{mixed}");
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let (segments, states) = worked(6, 60);
    let root = tempfile::tempdir().unwrap();
    let begin = |name: &str, shards: usize| {
        Restoring::begin(&root.path().join(name), shards, options(9)).map_err(|it| it.source)
    };
    for shards in [0, 65] {
        assert!(matches!(begin("impossible", shards), Err(StoreError::Mixed { .. })));
        assert!(!root.path().join("impossible").exists());
    }
    let mut two = begin("two", 2).unwrap();
    let refused = two.add(0, segments[0].clone(), None).unwrap_err().to_string();
    assert!(refused.contains("belongs to shard 0 of 1, and was given for shard 0 of 2"));
    assert!(matches!(begin("two", 2), Err(StoreError::NotEmpty { .. })));

    let mut cut = begin("cut", 1).unwrap();
    assert!(cut.add(0, segments[0].clone(), Some(states[0].0)).unwrap().is_cut);
    for shard in [0, 1] {
        let refused = cut.add(shard, segments[1].clone(), None).map_err(|it| it.source);
        assert!(matches!(refused, Err(StoreError::OutOfOrder { call: "add" })));
    }
    let finished = cut.finish(&[], Wishes::default()).map_err(|it| it.source);
    assert!(matches!(finished, Err(StoreError::OutOfOrder { call: "finish" })));

    let log = Header { incarnation: 1, now: states[9].0, last_number: 1 << 40 };
    for (name, start) in [
        ("incarnation", Header { incarnation: 0, ..log }),
        ("moment", Header { now: Timestamp::ZERO, ..log }),
        ("number", Header { last_number: 0, ..log }),
        ("beyond", Header { last_number: 1 << 62, ..log }),
    ] {
        let mut restoring = begin(name, 1).unwrap();
        restoring.add(0, segments[0].clone(), Some(states[9].0)).unwrap();
        let refused = restoring.finish(&[start], Wishes::default()).unwrap_err().to_string();
        assert!(refused.contains("the shard cannot go on from incarnation"), "{name}: {refused}");
    }
    let mut restoring = begin("same", 1).unwrap();
    restoring.add(0, segments[0].clone(), Some(states[9].0)).unwrap();
    restoring.finish(&[log], Wishes::default()).unwrap();
}

#[test]
fn a_shard_that_had_nothing_yet_begins_with_nothing() {
    let disk = FaultyDisk::new(1);
    let mut store = journal(&disk, options(1)).unwrap();
    store.load(&mut |_, _| {}).unwrap();
    let begun = Timestamp::from_ms(1_000);
    store.begin(&Header { incarnation: 1, now: begun, last_number: 0 }).unwrap();
    let bytes = disk.files()["segment-0000000001.log"][..raw::HEADER_BYTES + 64].to_vec();
    let root = tempfile::tempdir().unwrap();
    for (name, segments, until) in [
        ("nothing", Vec::new(), None),
        ("before", vec![bytes.clone()], Some(Timestamp::from_ms(999))),
        ("begun", vec![bytes], Some(begun)),
    ] {
        let data = root.path().join(name);
        let reports = restore(&data, &[segments], until, Wishes::default()).unwrap();
        assert_eq!(read_all(&data), [(start_of(0), Fold::new())], "{name}");
        check_report(&reports[0], &Fold::new());
    }
}

#[test]
fn what_the_first_start_has_to_skip_stays_known_until_then() {
    let mut tapped = Tapped::start(7);
    for number in 1..=3 {
        tapped.caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
        tapped.caller.turn().unwrap();
    }
    let cut = tapped.cut();
    let segments = tapped.segments(&cut);
    let root = tempfile::tempdir().unwrap();
    let [data, moved, saved] = ["data", "moved", "saved"].map(|name| root.path().join(name));
    let wishes = Wishes { paused: false, skips_slots: true };
    restore(&data, &[segments], None, wishes).unwrap();
    let report = check(&RealDisk::open_read_only(&data).unwrap()).unwrap();
    assert!(report.foreign.is_empty() && report.damage.is_empty(), "{report:?}");
    reshard(&data, &moved, 2, options(4)).unwrap();
    salvage_alone(&data, &saved, options(4)).unwrap();
    for data in [data, moved, saved] {
        assert_eq!(read_restored(&data).unwrap(), Some(AfterRestore::SkipSlots));
        remove_restored(&data).unwrap();
        assert_eq!(read_restored(&data).unwrap(), None);
    }
}

#[test]
fn segments_of_older_versions_are_restored_as_they_are() {
    let version_1 = [
        &include_bytes!("../../testdata/version-1/segment-0000000001.log")[..],
        &include_bytes!("../../testdata/version-1/segment-0000000002.log")[..],
    ];
    let version_3 = [
        &include_bytes!("../../testdata/version-3/segment-0000000001.log")[..],
        &include_bytes!("../../testdata/version-3/segment-0000000002.log")[..],
    ];
    let root = tempfile::tempdir().unwrap();
    for (version, [first, second]) in [(1, version_1), (3, version_3)] {
        let end = usize::try_from(raw::header(second).unwrap().previous_end).unwrap();
        let bytes = first[..end].to_vec();
        assert_eq!(raw::header(&bytes).unwrap().identity.is_some(), version == 3);
        let data = root.path().join(version.to_string());
        let mut restoring = Restoring::begin(&data, 1, options(9)).unwrap();
        restoring.add(0, bytes.clone(), None).unwrap();
        let late = Timestamp::from_ms(1 << 42);
        let start = Header { now: late, ..start_of(0) };
        let reports = restoring.finish(&[start], Wishes::default()).unwrap();
        assert!(reports[0].tasks > 0, "{:?}", reports[0]);
        let found = &files(&data)[&data.join("segment-0000000001.log")];
        assert_eq!(*found == bytes, version == 1);
        let report = check(&RealDisk::open_read_only(&data).unwrap()).unwrap();
        assert!(report.damage.is_empty(), "{report:?}");
        assert_eq!(report.tasks_by_state.iter().sum::<u64>(), reports[0].tasks);
    }
}
