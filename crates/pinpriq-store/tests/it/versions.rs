//! A directory of an older version is read and continued in this one. A newer one is refused.
//!
//! `testdata/version-1` was written by the server of version 1, in two lives: the first ended with
//! batch 28, the second with batch 38. `testdata/version-3` was written by that of version 3, in
//! two lives: the first was stopped in order, the second was killed.

use std::collections::BTreeMap;

use pinpriq_proto::limits::Limits;
use pinpriq_proto::settings::{AfterAck, Ids};
use pinpriq_proto::task::{State, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::{FORMAT_VERSION, check, salvage};
use pinpriq_store::{Durable, Fold, Store, StoreError, Urgency};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::sample_task;

use crate::driving::{journal, options, start};

/// As given to `--delay-ms`, `--ttl-ms`, `--ttr-ms` and `--zombie-ms`.
const LONG: Span = Span::from_ms(1_000_000_000_000);

const THIS_VERSION: u8 = FORMAT_VERSION.to_le_bytes()[0];

const FIRST: &str = "segment-0000000001.log";
const SECOND: &str = "segment-0000000002.log";

fn version_1() -> FaultyDisk {
    let files = BTreeMap::from([
        (
            FIRST.to_owned(),
            include_bytes!("../../testdata/version-1/segment-0000000001.log").to_vec(),
        ),
        (
            SECOND.to_owned(),
            include_bytes!("../../testdata/version-1/segment-0000000002.log").to_vec(),
        ),
    ]);
    FaultyDisk::with_files(1, &files)
}

fn version_3() -> FaultyDisk {
    let files = BTreeMap::from([
        ("head".to_owned(), include_bytes!("../../testdata/version-3/head").to_vec()),
        (
            FIRST.to_owned(),
            include_bytes!("../../testdata/version-3/segment-0000000001.log").to_vec(),
        ),
        (
            SECOND.to_owned(),
            include_bytes!("../../testdata/version-3/segment-0000000002.log").to_vec(),
        ),
    ]);
    FaultyDisk::with_files(1, &files)
}

/// The version in the header of each segment, in order.
fn versions(disk: &FaultyDisk) -> Vec<u8> {
    let files = disk.files();
    let segments = files.iter().filter(|(name, _)| name.starts_with("segment-"));
    segments.map(|(_, bytes)| bytes[8]).collect()
}

/// A task in words, with moments relative to when it was put.
fn in_words(task: &TaskRecord) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let since = |at: Timestamp| at.ms() - task.put_at.ms();
    let state = match &task.progress.state {
        State::Ready => "ready".to_owned(),
        State::Taken(lease) => format!(
            "taken as {}-{} with {:?} ms",
            lease.grant.incarnation,
            lease.grant.serial,
            lease.ttr.map(Span::ms)
        ),
        State::Waiting { ready_at: Some(at) } => format!("waiting for {} ms", since(*at)),
        State::Waiting { ready_at: None } => "held".to_owned(),
        State::Buried(_) => {
            format!("buried: {}", text(task.progress.reason.as_deref().unwrap_or_default()))
        }
        State::Zombie { purge_at } if since(*purge_at) >= LONG.ms() => "zombie".to_owned(),
        State::Zombie { purge_at } => format!("zombie until {purge_at}"),
        State::Done => "done".to_owned(),
    };
    let home = match &task.lane {
        None => text(&task.queue),
        Some(lane) if task.shared => format!("lane {} shares", lane.number),
        Some(lane) => format!("lane {}", lane.number),
    };
    format!(
        "{home} {} {} seq {} {:?} {:?} \"{}\" ttl {:?} ttr {:?} x{} {state}",
        task.number,
        task.id,
        task.progress.seq,
        task.progress.priority,
        task.terms.key.as_deref().map(text),
        text(&task.payload),
        task.progress.expires_at.map(since),
        task.terms.ttr.map(Span::ms),
        task.progress.attempts,
    )
}

/// What is left after the actions done by hand on the old server.
const TASKS: [&str; 9] = [
    "jobs 1 1 seq 13 Some(-5) Some(\"k\") \"first, again\" ttl None ttr None x1 ready",
    "jobs 2 2 seq 2 Some(0) None \"second\" ttl None ttr None x0 waiting for 1000000000000 ms",
    "jobs 3 3 seq 3 Some(-9) None \"third\" ttl None ttr None x1 buried: no such file",
    "jobs 4 4 seq 4 Some(-20) None \"fourth\" ttl Some(1000000000000) ttr Some(1000000000000) x1 \
     taken as 1-2 with Some(1000000000000) ms",
    "mails 6 mail-1 seq 6 Some(0) None \"sixth\" ttl None ttr None x1 done",
    "mails 7 mail-2 seq 7 Some(0) None \"seventh\" ttl None ttr None x0 ready",
    "kept 8 8 seq 8 Some(0) None \"eighth\" ttl None ttr None x1 zombie",
    "uuids 12 01a1f957-01c4-7cee-8ee1-77126eb68903 seq 12 Some(0) None \"twelfth\" ttl None \
     ttr None x0 ready",
    "plain 15 15 seq 15 None None \"fourteenth\" ttl None ttr None x0 ready",
];

/// The same for the server of version 3, with a task that this version put.
const TASKS_3: [&str; 18] = [
    "jobs 1 1 seq 21 Some(-5) Some(\"k\") \"first, again\" ttl None ttr None x1 ready",
    "jobs 2 2 seq 2 Some(0) None \"second\" ttl None ttr None x0 waiting for 1000000000000 ms",
    "jobs 3 3 seq 3 Some(-9) None \"third\" ttl None ttr None x1 buried: no such file",
    "jobs 4 4 seq 4 Some(-20) None \"fourth\" ttl Some(1000000000000) ttr Some(1000000000000) x1 \
     taken as 1-1 with Some(1000000000000) ms",
    "jobs 5 5 seq 5 Some(5000000000) None \"fifth\" ttl None ttr None x0 ready",
    "mails 6 mail-1 seq 6 Some(0) None \"sixth\" ttl None ttr None x1 done",
    "mails 7 mail-2 seq 7 Some(0) None \"seventh\" ttl None ttr None x0 ready",
    "kept 8 8 seq 8 Some(0) None \"eighth\" ttl None ttr None x1 zombie",
    "uuids 9 01a202ab-530a-7081-8815-03ea9225ed07 seq 9 Some(0) None \"tenth\" \
     ttl Some(1000000000000) ttr None x0 ready",
    "plain 10 10 seq 10 None None \"eleventh\" ttl None ttr None x0 ready",
    "lane 12 shares 16 16 seq 16 Some(7) None \"\" ttl None ttr None x1 buried: why",
    "lane 14 shares 17 17 seq 17 Some(7) None \"\" ttl None ttr None x0 ready",
    "lane 12 shares 18 18 seq 18 Some(0) None \"\" ttl Some(2307103687924) ttr None x1 \
     taken as 1-5 with Some(1000000000000) ms",
    "lane 14 shares 19 19 seq 19 Some(0) None \"\" ttl Some(2307103687924) ttr None x0 ready",
    "lane 15 20 20 seq 20 Some(3) None \"its own\" ttl None ttr None x1 ready",
    "lane 12 shares 22 22 seq 22 Some(0) None \"\" ttl None ttr None x0 ready",
    "lane 14 shares 23 23 seq 23 Some(0) None \"\" ttl None ttr None x0 ready",
    "jobs 100 100 seq 100 Some(-5) None \"dddddddddd\" ttl None ttr Some(30000) x0 ready",
];

fn assert_is_what_was_put(fold: &Fold) {
    let tasks: Vec<String> = fold.tasks.values().map(|(task, _)| in_words(task)).collect();
    assert_eq!(tasks, TASKS);
    let queue = |name: &str| &fold.queues[name.as_bytes()].0;
    assert_eq!(fold.queues.len(), 5);
    let jobs = queue("jobs");
    assert!(jobs.created && !jobs.paused.any());
    assert_eq!(jobs.settings.ttr, Some(Span::from_ms(30_000)));
    let mails = queue("mails");
    assert_eq!((mails.settings.ids, mails.settings.after_ack), (Ids::Given, AfterAck::Keep));
    assert_eq!((mails.settings.capacity, mails.settings.ttl), (Some(9), None));
    assert!(mails.paused.input.is_on() && !mails.paused.output.is_on());
    assert_eq!(queue("kept").settings.after_ack, AfterAck::Zombie(LONG));
    assert_eq!(queue("uuids").settings.ids, Ids::Uuid);
    let plain = queue("plain");
    assert!(!plain.created && plain.paused.output.is_on() && !plain.paused.input.is_on());
    let of_topics = fold.lanes.len() + fold.members.len() + fold.publications.len();
    assert_eq!(of_topics, 0, "version 1 knows nothing of members");
}

#[test]
fn a_directory_of_version_1_holds_what_was_put_and_goes_on_as_this_version() {
    let disk = version_1();
    let before = disk.files();
    let report = check(&disk).unwrap();
    assert_eq!((report.version, report.batches, report.records), (1, 38, 37));
    assert_eq!(report.tasks_by_state, [4, 1, 1, 1, 1, 1]);
    assert!(report.damage.is_empty() && disk.files() == before);

    let mut caller = start(&disk, options(1)).unwrap();
    assert_is_what_was_put(&caller.fold);
    let found = caller.loaded.header;
    assert_eq!((found.incarnation, found.last_number), (2, 15));
    caller.append(&[sample_task(16, "jobs", 10)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    let fold = caller.fold.clone();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);

    assert_eq!(versions(&disk), [1, 1, THIS_VERSION]);
    let after = disk.files();
    assert!(after[FIRST] == before[FIRST] && after[SECOND] == before[SECOND]);
    assert_eq!(check(&disk).unwrap().version, FORMAT_VERSION);
    assert_eq!(start(&disk, options(2)).unwrap().fold, fold, "both versions side by side");
}

#[test]
fn segments_of_version_1_are_compacted_away_like_any_others() {
    let disk = version_1();
    let mut caller = start(&disk, options(1)).unwrap();
    for _ in 0..300 {
        let number = caller.header.last_number + 1;
        let gone = pinpriq_proto::change::Change::Gone(number - 1);
        let gone = (number > 16).then_some(gone);
        let changes: Vec<_> = gone.into_iter().chain([sample_task(number, "x", 700)]).collect();
        caller.append(&changes, Urgency::Soon).unwrap();
        caller.header.now = caller.header.now.after(Span::from_ms(10));
        caller.turn().unwrap();
    }
    let last = caller.header.last_number;
    caller.append(&[pinpriq_proto::change::Change::Gone(last)], Urgency::Soon).unwrap();
    caller.settle().unwrap();
    assert_is_what_was_put(&caller.fold);
    drop(caller);
    disk.crash(CrashPolicy::KeepAll);
    assert!(!disk.files().contains_key(FIRST) && !disk.files().contains_key(SECOND));
    assert!(
        versions(&disk).iter().all(|version| *version == THIS_VERSION),
        "{:?}",
        versions(&disk)
    );
    assert_is_what_was_put(&start(&disk, options(2)).unwrap().fold);
}

#[test]
fn an_engine_starts_from_version_1_and_takes_on_members() {
    use pinpriq_proto::command::Command;
    use pinpriq_proto::fanout::MemberCommand;
    use pinpriq_proto::task::{ClientId, RequestId};

    let disk = version_1();
    let store = journal(&disk, options(1)).unwrap();
    let (mut durable, loaded) =
        Durable::open(store, Limits::default(), Timestamp::ZERO, 1).unwrap();
    durable.engine().check();
    assert_eq!(durable.engine().totals().in_any_state(), 9);
    let now = durable.now();
    assert_eq!(now, loaded.header.now);
    let join = MemberCommand::Join { topic: b"jobs", member: b"m", lease: None };
    durable.apply(now, ClientId(1), RequestId(1), &Command::Member(join));
    durable.finish(now).unwrap();
    drop(durable);
    disk.crash(CrashPolicy::LoseUnsynced);
    let report = check(&disk).unwrap();
    assert_eq!((report.members, report.lanes), (1, 1));
    assert_eq!(report.tasks_by_state.iter().sum::<u64>(), 9);
}

#[test]
fn what_is_salvaged_of_version_1_is_of_this_version() {
    let disk = version_1();
    let fresh = FaultyDisk::new(2);
    let to: std::sync::Arc<dyn pinpriq_store::Disk> = std::sync::Arc::new(fresh.clone());
    let report = salvage(&disk, &to, options(1)).unwrap();
    assert_eq!((report.tasks, report.queues, report.members), (9, 5, 0));
    drop(to);
    fresh.crash(CrashPolicy::LoseUnsynced);
    assert_eq!(versions(&fresh), [THIS_VERSION]);
    assert_is_what_was_put(&start(&fresh, options(2)).unwrap().fold);
    assert_eq!(versions(&disk), [1, 1]);
}

#[test]
fn version_5_is_refused_and_left_alone_wherever_it_stands() {
    for newer in [FIRST, SECOND] {
        let disk = version_1();
        for copy in [0, 4_096] {
            disk.flip(newer, copy + 8, 2);
        }
        assert_eq!(disk.files()[newer][8], 5);
        let untouched = disk.files();
        let mut loading = journal(&disk, options(1)).unwrap();
        let refused = loading.load(&mut |_, _| {});
        drop(loading);
        assert!(
            matches!(
                refused,
                Err(StoreError::NewerFormat { version: 5, known: FORMAT_VERSION, .. })
            ),
            "{refused:?}"
        );
        assert!(matches!(check(&disk), Err(StoreError::NewerFormat { version: 5, .. })));
        let to: std::sync::Arc<dyn pinpriq_store::Disk> = std::sync::Arc::new(FaultyDisk::new(2));
        let refused = salvage(&disk, &to, options(1));
        assert!(matches!(refused, Err(StoreError::NewerFormat { version: 5, .. })));
        assert!(disk.files() == untouched, "{newer}: a file was changed");
    }
}

#[test]
fn a_directory_of_version_3_holds_what_was_put_and_goes_on_as_this_version() {
    let disk = version_3();
    let before = disk.files();
    let report = check(&disk).unwrap();
    assert_eq!((report.version, report.members, report.lanes, report.publications), (3, 2, 3, 3));
    assert!(report.damage.is_empty() && disk.files() == before);
    let mut caller = start(&disk, options(1)).unwrap();
    caller.append(&[sample_task(100, "jobs", 10)], Urgency::Soon).unwrap();
    caller.turn().unwrap();
    drop(caller);
    disk.crash(CrashPolicy::LoseUnsynced);
    assert_eq!(versions(&disk), [3, 3, THIS_VERSION]);
    let fold = start(&disk, options(2)).unwrap().fold;
    let words: Vec<String> = fold.tasks.values().map(|(task, _)| in_words(task)).collect();
    assert_eq!(words, TASKS_3);
    let lane = |number: u64| &fold.lanes[&number].0;
    assert_eq!((&*lane(12).topic, lane(12).member), (&b"news"[..], 11));
    assert_eq!((&*lane(15).topic, lane(15).member), (&b"sport"[..], 13));
    assert!(lane(14).paused.output.is_on() && !lane(12).paused.any());
    assert_eq!(lane(15).settings.capacity, Some(100));
    assert_eq!(lane(15).settings.ttr, Some(Span::from_ms(5_000)));
    let published = |first: u64| &fold.publications[&first].0;
    assert_eq!((&*published(16).payload, published(16).last), (&b"to all"[..], 17));
    assert_eq!(published(16).terms.key.as_deref(), Some(&b"n"[..]));
    assert_eq!(published(18).expires_at, Some(Timestamp::from_ms(4_102_444_800_000)));
    assert_eq!(&*published(22).payload, b"last");
    assert_eq!(fold.members[&13].0.lease, LONG);
    assert_eq!(fold.queues[&b"uuids"[..]].0.settings.ttl, Some(LONG));
}
