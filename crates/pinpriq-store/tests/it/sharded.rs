//! Data directories of several shards on the real disk, with everything that can be in one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinpriq_proto::change::{Change, Granted, Header, QueueRecord};
use pinpriq_proto::settings::{Ids, Pause, Paused, Settings};
use pinpriq_proto::task::{Burial, State, TaskId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::shards::{first_number, shard_of};
use pinpriq_store::{Disk, Fold, Journal, RealDisk, Runner, Store, Urgency};
use pinpriq_testing::stores::{
    Caller, sample_lane, sample_lane_task, sample_member, sample_publication, sample_schedule,
    sample_slot, sample_task,
};

use crate::driving::options;
use crate::layouts::{existing_directories, expected_at, shard_directories};

/// Later than everything in the journals except their deadlines.
pub(crate) const LATER: Timestamp = Timestamp::from_ms(1 << 40);

/// The moment at which the deadlines are over.
const DEADLINE: Timestamp = Timestamp::from_ms(1 << 41);

const QUEUES: [&str; 8] = ["a", "b", "c", "d", "e", "{a}f", "mail:high", "mail:low"];
const TOPICS: [&str; 5] = ["a", "news", "orders", "events", "sales"];

/// The contents to write into a shard.
pub(crate) struct Draft {
    shard: usize,
    shards: usize,
    next: u64,
    pub(crate) changes: Vec<Change>,
}

impl Draft {
    pub(crate) fn new(shard: usize, shards: usize) -> Self {
        Self { shard, shards, next: first_number(shard) + 1, changes: Vec::new() }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn is_here(&self, name: &str) -> bool {
        shard_of(name.as_bytes(), self.shards) == self.shard
    }

    /// The queues and topics that belong here, with tasks of all states, settings and pauses.
    pub(crate) fn of_everything(shard: usize, shards: usize) -> Self {
        let mut draft = Self::new(shard, shards);
        for (index, queue) in QUEUES.into_iter().enumerate() {
            if draft.is_here(queue) {
                draft.queue(queue, index);
                // A part in braces decides the shard of both.
                let number = draft.number();
                let name =
                    if queue.contains('{') { queue.to_owned() } else { format!("s{{{queue}}}") };
                draft.changes.push(sample_schedule(number, &name, queue, index));
                draft.changes.push(sample_slot(number, 4_000));
            }
        }
        let (anna, ben) = (draft.member("anna", 60_000), draft.member("ben", 70_000));
        for topic in TOPICS {
            if draft.is_here(topic) {
                draft.topic(topic, &[anna, ben]);
            }
        }
        draft
    }

    fn queue(&mut self, name: &str, index: usize) {
        let ids = [Ids::Sequence, Ids::Given, Ids::Uuid, Ids::Time64][index % 4];
        let paused = Paused::endlessly(index.is_multiple_of(4), index == 5);
        let settings = Settings { ids, capacity: Some(99), ..Settings::default() };
        let record = QueueRecord { name: name.as_bytes().into(), created: true, settings, paused };
        match index {
            0 => {}
            4 => {
                // Only its pause keeps the queue.
                let settings = Settings::default();
                let record = QueueRecord { created: false, settings, ..record };
                self.changes.push(Change::Queue(Box::new(record)));
            }
            _ => self.changes.push(Change::Queue(Box::new(record))),
        }
        let states = [
            State::Ready,
            State::Waiting { ready_at: Some(DEADLINE) },
            State::Buried(Burial::of_number(7)),
            State::Zombie { purge_at: DEADLINE },
            State::Done,
        ];
        for (at, state) in states.into_iter().enumerate() {
            let number = self.number();
            let mut change = sample_task(number, name, 10 * at + index);
            let Change::Task(task) = &mut change else { unreachable!() };
            task.id = id_of(ids, number);
            task.terms.key = at.is_multiple_of(2).then(|| b"group"[..].into());
            (task.progress.state, task.progress.attempts) = (state, 7);
            task.progress.reason = (at == 2).then(|| b"broken"[..].into());
            task.progress.expires_at = (at == 0).then_some(DEADLINE);
            self.changes.push(change);
        }
        let (taken, gone) = (self.number(), self.number());
        let mut change = sample_task(taken, name, 5);
        let Change::Task(task) = &mut change else { unreachable!() };
        task.id = id_of(ids, taken);
        self.changes.push(change);
        self.changes.push(Change::Granted(Granted {
            number: taken,
            incarnation: 1,
            serial: taken % 1_000,
            deadline: Some(DEADLINE),
            ttr: Some(Span::from_ms(5_000)),
            attempts: 3,
        }));
        self.changes.extend([sample_task(gone, name, 300), Change::Gone(gone)]);
    }

    /// A living member.
    pub(crate) fn member(&mut self, name: &str, lease_ms: u64) -> u64 {
        let incarnation = self.number();
        let mut change = sample_member(incarnation, name);
        if let Change::Member(member) = &mut change {
            member.lease = Span::from_ms(lease_ms);
        }
        self.changes.push(change);
        incarnation
    }

    /// Records that a member has ended.
    pub(crate) fn end(&mut self, incarnation: u64, name: &str) {
        let mut change = sample_member(incarnation, name);
        if let Change::Member(member) = &mut change {
            member.ended = true;
        }
        self.changes.push(change);
    }

    pub(crate) fn lane(&mut self, topic: &str, member: u64) -> u64 {
        let lane = self.number();
        self.changes.push(sample_lane(lane, topic, member));
        lane
    }

    /// Publishes to these lanes.
    pub(crate) fn publish(&mut self, lanes: &[u64]) -> u64 {
        let first = self.next;
        self.changes.push(sample_publication(first, lanes, 40));
        self.next += lanes.len() as u64;
        first
    }

    /// Lanes for these members, with copies that are unchanged, that are only mentioned, that have
    /// a record, and that have a payload of their own.
    fn topic(&mut self, topic: &str, members: &[u64]) {
        let lanes: Vec<u64> = members.iter().map(|member| self.lane(topic, *member)).collect();
        if let Some(Change::Lane(lane)) = self.changes.last_mut() {
            lane.settings.capacity = Some(50);
            lane.paused.output = Pause::Endless;
        }
        let firsts: Vec<u64> = (0..4).map(|_| self.publish(&lanes)).collect();
        self.changes.push(Change::Granted(Granted {
            number: firsts[1],
            incarnation: 1,
            serial: 900,
            deadline: Some(DEADLINE),
            ttr: None,
            attempts: 1,
        }));
        self.changes.push(sample_lane_task(firsts[2], lanes[0], None));
        self.changes.push(sample_lane_task(firsts[3], lanes[0], Some(20)));
        self.changes.push(Change::Gone(firsts[3] + 1));
    }

    /// Writes the contents as the journal of a shard.
    pub(crate) fn write(self, directory: &Path) {
        let store = open(directory).numbering_after(first_number(self.shard));
        let mut caller = Caller::start(Box::new(store)).unwrap();
        caller.header.now = Timestamp::from_ms(9_000 + self.shard as u64);
        for changes in self.changes.chunks(3) {
            caller.append(changes, Urgency::Soon).unwrap();
            caller.turn().unwrap();
        }
        caller.store.finish(caller.header.now).unwrap();
    }
}

/// The id of the task of this number.
fn id_of(ids: Ids, number: u64) -> TaskId {
    match ids {
        Ids::Sequence => TaskId::Number(number),
        Ids::Time64 => TaskId::Number(1_000 + number),
        Ids::Uuid => TaskId::Uuid(u128::from(number).to_be_bytes()),
        Ids::Given => TaskId::Given(format!("task {number}").into_bytes().into()),
    }
}

fn open(directory: &Path) -> Journal {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory).unwrap());
    let journal = Journal::open(disk, options(3), Runner::Inline).unwrap();
    journal.expecting(expected_at(directory))
}

/// Writes a directory of this many shards with everything that can be in one.
pub(crate) fn write_everything(data: &Path, shards: usize) {
    for (shard, directory) in shard_directories(data, shards).unwrap().iter().enumerate() {
        Draft::of_everything(shard, shards).write(directory);
    }
}

/// What the journal of one shard holds.
pub(crate) fn read(directory: &Path) -> (Header, Fold) {
    let mut fold = Fold::new();
    let loaded = open(directory).load(&mut |change, place| {
        fold.apply(&change, place, &mut Vec::new());
    });
    fold.forget_unshared(&mut Vec::new());
    (loaded.unwrap().header, fold.without_places())
}

/// What all shards hold.
pub(crate) fn read_all(data: &Path) -> Vec<(Header, Fold)> {
    existing_directories(data).unwrap().iter().map(|directory| read(directory)).collect()
}

/// The contents of all shards as one. Panics if a number of a task, a lane or a publication occurs
/// twice.
pub(crate) fn joined(shards: &[(Header, Fold)]) -> Fold {
    let mut all = Fold::new();
    let mut numbers = BTreeSet::new();
    for (_, fold) in shards {
        let of_tasks = fold.tasks.keys().chain(fold.lanes.keys());
        for number in of_tasks {
            assert!(numbers.insert(*number), "the number {number} is there twice");
        }
        for first in fold.publications.keys() {
            assert!(!all.publications.contains_key(first), "publication {first} is there twice");
        }
        let Fold { tasks, queues, publications, lanes, members, schedules, details } = fold.clone();
        all.tasks.extend(tasks);
        all.queues.extend(queues);
        all.publications.extend(publications);
        all.lanes.extend(lanes);
        all.members.extend(members);
        all.schedules.extend(schedules);
        all.details.extend(details);
    }
    all
}

/// Every file below a directory with its contents.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = directory.read_dir() else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, Vec::new());
        } else {
            let mut bytes = Vec::new();
            let file = RealDisk::open_read_only(directory).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let file = file.open(name, pinpriq_store::disk::OpenMode::Read).unwrap();
            bytes.resize(usize::try_from(file.len().unwrap()).unwrap(), 0);
            pinpriq_store::disk::read_full_at(&*file, 0, &mut bytes).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Replaces the contents of a file with wrong ones.
#[expect(clippy::disallowed_methods, reason = "a test does damage on purpose")]
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
