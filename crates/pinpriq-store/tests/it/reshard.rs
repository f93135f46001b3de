//! From one number of shards to another: nothing is lost or altered, and whatever is wrong is
//! refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Ack, Command, Held, HeldBy, Put, QueueName};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{Bytes, ClientId, Origin, Receipt, RequestId, State, TaskId};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::layout::{shard_name, shards_in};
use pinpriq_store::reshard::{DirectoryError, reshard, salvage_shards};
use pinpriq_store::shards::{first_number, shard_of};
use pinpriq_store::{Disk, Durable, Fold, Journal, MemoryStore, RealDisk, Runner, StoreError};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};
use pinpriq_testing::stores::{sample_limit, sample_queue, sample_schedule, sample_task};

use crate::driving::{options, tasks_of_lanes};
use crate::fan_out::{Office, tight};
use crate::layouts::{expected_at, shard_directories};
use crate::sharded::{Draft, LATER, files, joined, overwrite, read_all, write_everything};

/// A directory of a test.
fn place(root: &tempfile::TempDir, name: &str) -> PathBuf {
    root.path().join(name)
}

/// Moves a directory to another number of shards, and checks the report.
#[track_caller]
fn move_to(from: &Path, to: &Path, shards: usize) {
    let before = files(from);
    let reports = reshard(from, to, shards, options(4)).unwrap();
    assert!(files(from) == before, "the old directory was changed");
    assert_eq!(shards_in(to).unwrap(), Some(shards));
    let found = read_all(to);
    assert_eq!((reports.len(), found.len()), (shards, shards));
    for (report, (header, fold)) in reports.iter().zip(&found) {
        assert_eq!(report.header, *header);
        assert_eq!(report.tasks, fold.tasks.len() as u64);
        let with_tasks = queues_of_tasks(fold);
        let queues: BTreeSet<_> = fold.queues.keys().chain(with_tasks).collect();
        assert_eq!(report.queues, queues.len() as u64);
        assert_eq!(report.members, fold.members.len() as u64);
        assert_eq!(report.lanes, fold.lanes.len() as u64);
        assert_eq!(report.publications, fold.publications.len() as u64);
    }
}

/// The queues of the tasks that are in no lane.
fn queues_of_tasks(fold: &Fold) -> impl Iterator<Item = &Bytes> {
    let tasks = fold.tasks.values().filter(|(task, _)| task.lane.is_none());
    tasks.map(|(task, _)| &task.queue)
}

/// Checks that everything is in the shard where a server looks for it.
#[track_caller]
fn check_places(data: &Path) {
    let found = read_all(data);
    for (shard, (header, fold)) in found.iter().enumerate() {
        let names = fold.queues.keys().chain(queues_of_tasks(fold));
        let schedules = fold.schedules.values();
        let names = names.chain(schedules.map(|(known, _)| &known.name));
        for name in names.chain(fold.lanes.values().map(|(lane, _)| &lane.topic)) {
            assert_eq!(shard_of(name, found.len()), shard);
        }
        for (task, _) in fold.tasks.values() {
            let Some(lane) = &task.lane else { continue };
            assert!(fold.lanes.contains_key(&lane.number), "task {} has no lane", task.number);
            let published = fold.publications.range(..=task.number).next_back();
            let shared = published.is_some_and(|(_, (known, _))| known.last >= task.number);
            assert!(shared || !task.shared, "task {} has no payload", task.number);
        }
        let highest = found.iter().filter_map(|(_, fold)| fold.tasks.keys().next_back()).max();
        assert!(highest.is_none_or(|highest| header.last_number > *highest));
    }
}

#[test]
fn nothing_is_lost_on_the_way_and_back() {
    let root = tempfile::tempdir().unwrap();
    let mut from = place(&root, "first");
    write_everything(&from, 1);
    let everything = joined(&read_all(&from));
    let kinds: Vec<_> =
        everything.tasks.values().map(|(task, _)| task.progress.state.kind()).collect();
    let all = pinpriq_proto::task::StateKind::ALL;
    assert!(all.iter().all(|kind| kinds.contains(kind)), "a state is missing");
    let mut last = (0, 0);
    for (step, shards) in [3, 2, 1, 64, 1].into_iter().enumerate() {
        let to = place(&root, &format!("{step}-{shards}"));
        move_to(&from, &to, shards);
        check_places(&to);
        let found = read_all(&to);
        assert_eq!(joined(&found), everything, "step {step}");
        for (header, fold) in &found {
            let members = fold.lanes.values().map(|(lane, _)| lane.member);
            assert!(members.into_iter().all(|member| fold.members.contains_key(&member)));
            assert!(header.incarnation > last.0, "the incarnation grows");
            assert!(header.last_number > last.1, "numbers grow");
            assert_eq!(header.now.ms(), 9_000, "the moment stays");
        }
        let numbers: Vec<u64> = found.iter().map(|(header, _)| header.last_number).collect();
        assert!(numbers.is_sorted_by(|one, other| other - one >= 1 << 46), "{numbers:?}");
        last = (found[0].0.incarnation, numbers[shards - 1]);
        from = to;
    }
}

/// Journals that were compacted, written by members, and cut off by a crash.
#[test]
fn what_a_server_wrote_is_moved_whole() {
    let (mut tasks, mut rewrites) = (0, 0);
    for seed in 0..12 {
        let root = tempfile::tempdir().unwrap();
        let [old, new, again] = ["old", "new", "again"].map(|name| place(&root, name));
        let disk = FaultyDisk::new(seed);
        let mut dice = Dice::new(seed);
        let mut office = Office::open(&disk, tight(seed), Timestamp::from_ms(1_000_000));
        for _ in 0..200 {
            office.random_turn(&mut dice).unwrap();
        }
        rewrites += office.durable.figures().rewrites;
        drop(office);
        disk.crash(CrashPolicy::KeepSome(50));
        drop(RealDisk::create(&old).unwrap());
        for (name, bytes) in disk.files() {
            overwrite(&old.join(name), &bytes);
        }
        let fold = joined(&read_all(&old));
        tasks += tasks_of_lanes(&fold).len();
        move_to(&old, &new, 3);
        check_places(&new);
        assert_eq!(joined(&read_all(&new)), fold, "seed {seed}");
        move_to(&new, &again, 1);
        assert_eq!(joined(&read_all(&again)), fold, "seed {seed}");
        for (shard, directory) in shard_directories(&new, 3).unwrap().iter().enumerate() {
            Site::open(directory, shard).0.engine().check();
        }
    }
    assert!(tasks > 100 && rewrites > 100, "{tasks} tasks, {rewrites} rewrites");
}

/// A server with one shard, which receives one command after the other.
struct Site(Durable);

impl Site {
    fn open(directory: &Path, shard: usize) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory).unwrap());
        let store = Journal::open(disk, options(5), Runner::Inline).unwrap();
        let store = store.numbering_after(first_number(shard)).expecting(expected_at(directory));
        let store = Box::new(store);
        Self(Durable::open(store, Limits::default(), LATER, 1).unwrap().0)
    }

    fn ask(&mut self, command: &Command<'_>) -> Reply {
        self.0.apply(LATER, ClientId(1), RequestId(1), command);
        self.0.commit().unwrap();
        match self.0.poll_output() {
            Some((_, Output::Reply { reply, .. })) => reply,
            other => panic!("{other:?} is no reply"),
        }
    }
}

#[test]
fn servers_go_on_where_the_old_one_was() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (place(&root, "old"), place(&root, "new"));
    write_everything(&old, 2);
    move_to(&old, &new, 3);
    let before = read_all(&new);
    let mut acked = 0;
    for (shard, directory) in shard_directories(&new, 3).unwrap().iter().enumerate() {
        let mut site = Site::open(directory, shard);
        site.0.engine().check();
        let (header, fold) = &before[shard];
        for (task, _) in fold.tasks.values() {
            let State::Taken(lease) = &task.progress.state else { continue };
            let receipt = Receipt { number: task.number, grant: lease.grant };
            let lane = task.lane.as_ref().map(|lane| &fold.lanes[&lane.number].0);
            let name = lane.map_or(&task.queue, |lane| &lane.topic);
            let queue = QueueName { name, member: None };
            let held = Held { queue, by: HeldBy::Receipt(receipt) };
            let reply = site.ask(&Command::Ack(Ack::new(held)));
            assert!(matches!(reply, Reply::Done), "{reply:?}");
            acked += 1;
        }
        let reply = site.ask(&Command::Put(Put::new(b"new", b"payload")));
        assert!(matches!(reply, Reply::Put(_)), "{reply:?}");
        assert!(site.0.engine().header().last_number > header.last_number);
        site.0.engine().check();
    }
    assert_eq!(acked, 13, "each queue and some lanes have one task that is taken");
}

#[test]
fn shards_number_their_tasks_apart_from_each_other() {
    let root = tempfile::tempdir().unwrap();
    for shard in [0, 3] {
        let directory = place(&root, &shard_name(shard));
        for start in 0..2 {
            let mut site = Site::open(&directory, shard);
            site.ask(&Command::Put(Put::new(b"q", b"payload")));
            let numbered = first_number(shard) + start + 1;
            assert_eq!(site.0.engine().header().last_number, numbered);
            site.0.finish(LATER).unwrap();
        }
    }
    let store = Box::new(MemoryStore::after(4).numbering_after(first_number(2)));
    let (durable, _) = Durable::open(store, Limits::default(), LATER, 1).unwrap();
    let header = durable.engine().header();
    assert_eq!((header.incarnation, header.last_number), (5, first_number(2)));
}

/// The living members of a fold: name, incarnation and lease in seconds.
fn members(fold: &Fold) -> Vec<(&str, u64, u64)> {
    let told = fold.members.values().map(|(member, _)| {
        assert!(!member.ended);
        let name = std::str::from_utf8(&member.name).unwrap();
        (name, member.incarnation, member.lease.ms() / 1_000)
    });
    told.collect()
}

/// Two topics that are in different shards of two.
const TOPICS: [&str; 2] = ["events", "news"];

#[test]
fn a_member_of_several_shards_becomes_one() {
    assert_eq!(TOPICS.map(|topic| shard_of(topic.as_bytes(), 2)), [0, 1]);
    let root = tempfile::tempdir().unwrap();
    let (old, one) = (place(&root, "old"), place(&root, "one"));
    let directories = shard_directories(&old, 2).unwrap();
    let (mut first, mut second) = (Draft::new(0, 2), Draft::new(1, 2));
    // In both, with different leases.
    let anna = [first.member("anna", 10_000), second.member("anna", 90_000)];
    let of_anna = [first.lane(TOPICS[0], anna[0]), second.lane(TOPICS[1], anna[1])];
    // Ended in one, living in the other. The one that has ended has the higher number.
    let ben = [first.member("ben", 20_000), second.member("ben", 30_000)];
    let of_ben = [first.lane(TOPICS[0], ben[0]), second.lane(TOPICS[1], ben[1])];
    // Living without a lane, and ended and living in one shard.
    let cleo = second.member("cleo", 40_000);
    let dora = [first.member("dora", 50_000), first.number()];
    let of_dora = first.lane(TOPICS[0], dora[0]);
    // Without a lane in the shard where the lease is longer.
    let emil = [first.member("emil", 60_000), second.member("emil", 80_000)];
    let of_emil = first.lane(TOPICS[0], emil[0]);
    let published = first.publish(&[of_anna[0], of_ben[0], of_dora]);
    let ended = second.publish(&[of_ben[1]]);
    second.publish(&[of_anna[1]]);
    second.end(ben[1], "ben");
    first.end(dora[0], "dora");
    first.write(&directories[0]);
    second.write(&directories[1]);

    move_to(&old, &one, 1);
    let found = joined(&read_all(&one));
    let of_first = [("ben", ben[0], 20), ("emil", emil[0], 80)];
    let everywhere = [("anna", anna[1], 90), ("cleo", cleo, 40)];
    assert_eq!(members(&found), [of_first, everywhere].concat());
    let lanes: Vec<_> = found.lanes.values().map(|(it, _)| (it.number, it.member)).collect();
    let expected = [(of_anna[0], anna[1]), (of_ben[0], ben[0]), (of_emil, emil[0])];
    assert_eq!(lanes[..3], expected);
    assert_eq!(lanes[3..], [(of_anna[1], anna[1])]);
    let tasks = tasks_of_lanes(&found);
    assert_eq!(tasks, [published, published + 1, ended + 1], "what had ended is gone");
    assert_eq!(found.publications.len(), 2);
    Site::open(&one, 0).0.engine().check();

    // Separate again: each shard has the members with lanes there, and a member without any is in
    // all.
    let two = place(&root, "two");
    move_to(&one, &two, 2);
    let found = read_all(&two);
    assert_eq!(members(&found[1].1), everywhere);
    assert_eq!(members(&found[0].1), [of_first, everywhere].concat());
    for (shard, directory) in shard_directories(&two, 2).unwrap().iter().enumerate() {
        Site::open(directory, shard).0.engine().check();
    }
    // The same incarnation in two shards is one member, with the longest lease.
    let three = place(&root, "three");
    move_to(&two, &three, 1);
    assert_eq!(members(&joined(&read_all(&three))), [of_first, everywhere].concat());
}

/// Why a directory is not moved to two shards. Checks that nothing was changed.
#[track_caller]
fn refused(data: &Path, new: &Path) -> DirectoryError {
    let before = (files(data), files(new), new.exists());
    let Err(error) = reshard(data, new, 2, options(4)) else { panic!("it was accepted") };
    assert!((files(data), files(new), new.exists()) == before, "something was changed");
    error
}

#[test]
fn what_cannot_be_moved_is_refused_and_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let (data, new) = (place(&root, "data"), place(&root, "new"));
    let error = refused(&data, &new);
    assert!(matches!(error.source, StoreError::NotAJournal), "{error}");
    write_everything(&data, 3);

    let third = data.join(shard_name(2));
    let site = Site::open(&third, 2);
    let error = refused(&data, &new);
    assert!(matches!(error.source, StoreError::Locked { .. }), "{error}");
    assert_eq!(error.directory, third);
    drop(site);

    let error = refused(&data, &third);
    assert!(matches!(error.source, StoreError::NotEmpty { .. }), "{error}");

    let segment = third.join("segment-0000000001.log");
    let whole = files(&third).remove(&segment).unwrap();
    let mut bytes = whole.clone();
    bytes[8_192 + 70] ^= 1;
    overwrite(&segment, &bytes);
    let error = refused(&data, &new);
    assert!(matches!(error.source, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(error.directory, third);
    assert!(error.to_string().contains("`pinpriq salvage`"), "{error}");
    overwrite(&segment, &whole);

    overwrite(&data.join("shards"), b"unfinished\n");
    let error = refused(&data, &new);
    assert!(matches!(error.source, StoreError::Unfinished), "{error}");
    // With another number of shards every queue would be looked for elsewhere.
    overwrite(&data.join("shards"), b"2\n");
    let error = refused(&data, &new);
    assert!(error.to_string().contains("was found in the place of shard"), "{error}");
    overwrite(&data.join("shards"), b"3\n");
    move_to(&data, &new, 2);
}

#[test]
fn a_number_in_two_shards_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (data, new) = (place(&root, "data"), place(&root, "new"));
    for directory in shard_directories(&data, 2).unwrap() {
        let shard = usize::from(directory.ends_with("shard-01"));
        let mut draft = Draft::new(0, 2);
        draft.changes.push(sample_task(7, TOPICS[shard], 10));
        draft.write(&directory);
    }
    let error = refused(&data, &new);
    assert!(error.to_string().contains("the number 7 is in two shards"), "{error}");
}

#[test]
fn queues_that_tasks_move_between_are_not_parted() {
    let root = tempfile::tempdir().unwrap();
    let apart = ["jobs", "mails", "news", "x"]
        .into_iter()
        .find(|other| shard_of(other.as_bytes(), 2) != shard_of(b"dead", 2));
    let apart = apart.expect("one of these is in the other shard");
    let with_setting = |draft: &mut Draft| {
        let mut change = sample_queue(apart, true);
        let Change::Queue(queue) = &mut change else { unreachable!() };
        queue.settings.dead_letter = Some(b"dead"[..].into());
        draft.changes.push(change);
    };
    let with_origin = |draft: &mut Draft| {
        let mut change = sample_task(7, "dead", 10);
        let Change::Task(task) = &mut change else { unreachable!() };
        let (queue, id, at) = (apart.as_bytes().into(), TaskId::Number(1), Timestamp::ZERO);
        let origin = Origin { queue, id, put_at: at, attempts: 1, failures: 1, at };
        task.set_origin(Some(origin));
        draft.changes.push(change);
    };
    let with_schedule =
        |draft: &mut Draft| draft.changes.push(sample_schedule(7, apart, "dead", 1));
    let with_limit = |draft: &mut Draft| {
        let mut change = sample_queue(apart, true);
        let Change::Queue(queue) = &mut change else { unreachable!() };
        queue.settings.uses = Some(b"dead"[..].into());
        draft.changes.extend([sample_limit(7, "dead"), change]);
    };
    for name in ["setting", "origin", "schedule", "limit"] {
        let data = place(&root, name);
        let mut draft = Draft::new(0, 1);
        let add: &dyn Fn(&mut Draft) = match name {
            "setting" => &with_setting,
            "origin" => &with_origin,
            "limit" => &with_limit,
            _ => &with_schedule,
        };
        add(&mut draft);
        draft.write(&data);
        let error = reshard(&data, &place(&root, "new"), 2, options(4)).unwrap_err().to_string();
        assert!(error.contains(apart) && error.contains("\"dead\""), "{name}: {error}");
        move_to(&data, &place(&root, &format!("{name} in one")), 1);
    }
}

#[test]
fn numbers_that_are_used_up_are_told() {
    let root = tempfile::tempdir().unwrap();
    let data = place(&root, "data");
    let mut draft = Draft::new(0, 1);
    draft.changes.push(sample_task(1 << 62, "q", 10));
    draft.write(&data);
    let error = refused(&data, &place(&root, "new"));
    assert!(error.to_string().contains("the numbers of tasks are used up"), "{error}");
}

/// Nothing records how far it came, and nothing has to: no server starts on it.
#[test]
fn what_was_not_written_to_its_end_is_no_data_directory() {
    let root = tempfile::tempdir().unwrap();
    let data = place(&root, "data");
    write_everything(&data, 1);
    for shards in [1, 2] {
        let new = place(&root, &format!("new-{shards}"));
        move_to(&data, &new, shards);
        overwrite(&new.join("shards"), b"unfinished\n");
        let before = files(&new);
        for asked in [1, 2, 3] {
            let error = shard_directories(&new, asked).unwrap_err();
            assert!(matches!(error, StoreError::Unfinished), "{error}");
        }
        assert!(files(&new) == before);
    }
}

#[test]
fn shards_that_have_not_begun_hold_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (data, new) = (place(&root, "data"), place(&root, "new"));
    let directories = shard_directories(&data, 3).unwrap();
    Draft::of_everything(1, 3).write(&directories[1]);
    let everything = joined(&[crate::sharded::read(&directories[1])]);
    move_to(&data, &new, 2);
    assert_eq!(joined(&read_all(&new)), everything);
}

#[test]
fn several_shards_are_salvaged_each_by_itself() {
    let root = tempfile::tempdir().unwrap();
    let (data, new) = (place(&root, "data"), place(&root, "new"));
    write_everything(&data, 4);
    let whole = read_all(&data);
    let lost = data.join(shard_name(1));
    for path in files(&lost).keys() {
        RealDisk::open(&lost).unwrap().remove(path.file_name().unwrap().to_str().unwrap()).unwrap();
    }
    let segment = data.join(shard_name(2)).join("segment-0000000001.log");
    let mut bytes = files(&data).remove(&segment).unwrap();
    bytes[8_192 + 70] ^= 1;
    overwrite(&segment, &bytes);

    let site = Site::open(&data.join(shard_name(3)), 3);
    let error = salvage_shards(&data, &new, options(4)).unwrap_err();
    assert!(matches!(error.source, StoreError::Locked { .. }) && !new.exists(), "{error}");
    drop(site);
    let before = files(&data);
    let reports = salvage_shards(&data, &new, options(4)).unwrap().reports;
    assert!(files(&data) == before, "the damaged directory was changed");
    assert!(reports[1].is_none());
    let damaged: Vec<bool> =
        reports.iter().flatten().map(|report| !report.damage.is_empty()).collect();
    assert_eq!(damaged, [false, true, false]);
    let found = read_all(&new);
    for shard in [0, 3] {
        assert_eq!(found[shard].1, whole[shard].1);
    }
    assert_eq!(found[1].1, Fold::new());
    // No number or grant of the lost shard is used again.
    assert!(found[1].0.last_number > found[3].0.last_number);
    assert_eq!(found[1].0.incarnation, found[3].0.incarnation);
    for (shard, directory) in shard_directories(&new, 4).unwrap().iter().enumerate() {
        Site::open(directory, shard).0.engine().check();
    }
}
