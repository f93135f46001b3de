//! Archives of journals whose shards are the test, in a place in memory. Time passes only when a
//! test lets it pass.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{Catalogue, Range};
use pinpriq_proto::command::{Command, Put, QueueName};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Span;
use pinpriq_store::journal::raw::at_rest;
use pinpriq_store::journal::{Expected, ShardCut, segment_name};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Disk as _, Durable, Journal, JournalOptions, RealDisk, Runner};
use tempfile::TempDir;

use super::*;
use crate::facts::archive::ArchiveFacts;

/// When the journals begin.
const BEGUN: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// The size of a segment in these tests.
const SEGMENT_BYTES: u32 = 24 << 10;

/// How long anything may take that does not wait for the test.
const GUARD: Duration = Duration::from_mins(1);

/// How many turns a test takes until nothing is to be done for a while.
const TURNS_MAX: usize = 500;

const QUEUE: &[u8] = b"jobs";

/// How often an archive gets what is new, in milliseconds.
const EVERY: u64 = 1_000;

/// A server with nothing but shards and an archive.
struct Rig {
    data: TempDir,
    durables: Rc<RefCell<Vec<Durable>>>,
    now: Rc<Cell<Timestamp>>,
    passed_ms: Arc<AtomicU64>,
    place: Arc<MemoryPlace>,
    archived: Arc<Archived>,
    taps: Vec<Arc<Tap>>,
    backlog: Arc<Backlog>,
    stop: Stop,
    running: Running,
    /// How many tasks were put into each shard.
    puts: u64,
}

fn archive_to(change: impl FnOnce(&mut ArchiveTo)) -> ArchiveTo {
    let mut to = ArchiveTo {
        place: "memory".to_owned(),
        every: Duration::from_millis(EVERY),
        keep: None,
        backlog_bytes: None,
        scrub_every: None,
    };
    change(&mut to);
    to
}

impl Rig {
    fn new(shards: usize) -> Self {
        Self::with((7, shards), &Arc::default(), |_| {})
    }

    /// A data directory with a number of its own, which is archived like this.
    fn with(
        (directory, shards): (u64, usize),
        place: &Arc<MemoryPlace>,
        change: impl FnOnce(&mut ArchiveTo),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let (mut durables, mut copied) = (Vec::new(), Vec::new());
        for shard in 0..shards {
            let tap = Arc::new(Tap::new(|| {}));
            copied.push(Copied { directory: data.path().join(shard.to_string()), tap });
        }
        let keeps = keep_all(&copied);
        for (shard, Copied { directory: path, tap }) in copied.iter().enumerate() {
            let options = JournalOptions {
                segment_bytes: SEGMENT_BYTES,
                slack_bytes: 2 * u64::from(SEGMENT_BYTES),
                salt_seed: directory,
                ..JournalOptions::default()
            };
            let expected = Expected {
                directory: Some(directory),
                shard: u32::try_from(shard).unwrap(),
                shards: u32::try_from(shards).unwrap(),
                served: 0,
            };
            let disk = Arc::new(RealDisk::create(path).unwrap());
            let journal = Journal::open(disk, options, Runner::Inline).unwrap();
            let journal = journal.expecting(expected).numbering_after(first_number(shard));
            let journal = Box::new(journal.tapped_by(Arc::clone(tap)));
            durables.push(Durable::open(journal, Limits::default(), BEGUN, 1).unwrap().0);
        }
        let (durables, now) = (Rc::new(RefCell::new(durables)), Rc::new(Cell::new(BEGUN)));
        let taps: Vec<_> = copied.iter().map(|it| Arc::clone(&it.tap)).collect();
        let (shared, clock) = (Rc::clone(&durables), Rc::clone(&now));
        let (passed_ms, archived) = (Arc::new(AtomicU64::new(0)), Arc::<Archived>::default());
        let (told, stop) = (Arc::clone(&passed_ms), Stop::default());
        let to = archive_to(change);
        let most = to.backlog_bytes.unwrap_or(u64::MAX);
        let backlog = Backlog::new(keeps, most, ("memory".to_owned(), Duration::ZERO));
        let (backlog, own_taps) = (Arc::new(backlog), taps.clone());
        let server = Server {
            backlog: Arc::clone(&backlog),
            taps: taps.clone(),
            directories: copied.into_iter().map(|it| it.directory).collect(),
            cut: Box::new(move |purpose| cut(&taps, purpose, &mut shared.borrow_mut(), &clock)),
            passed: Arc::new(move || Duration::from_millis(told.load(Ordering::Relaxed))),
            stop: stop.clone(),
            archived: Arc::clone(&archived),
        };
        archived.begin(BEGUN);
        let running = Running::new(&to, Arc::clone(place) as Arc<dyn Place>, server);
        let place = Arc::clone(place);
        let (taps, puts) = (own_taps, 0);
        Self { data, durables, now, passed_ms, place, archived, taps, backlog, stop, running, puts }
    }

    /// Puts tasks into every shard, each a millisecond after the one before. Only the last stays.
    fn churn(&mut self, tasks: u64) {
        let payload = vec![b'x'; 4_000];
        for _ in 0..tasks {
            self.now.set(self.now.get().after(Span::from_ms(1)));
            let now = self.now.get();
            for (shard, durable) in self.durables.borrow_mut().iter_mut().enumerate() {
                let before = (first_number(shard) + self.puts).to_string();
                let ids: &[&[u8]] = &[before.as_bytes()];
                let queue = QueueName { name: QUEUE, member: None };
                let put = Command::Put(Put::new(QUEUE, &payload));
                for command in [put, Command::Kill { queue, ids }] {
                    durable.apply(now, ClientId(1), RequestId(1), &command);
                }
                durable.commit().unwrap();
                durable.drive(now).unwrap();
                while durable.poll_output().is_some() {}
                assert_eq!(durable.engine().totals().present(), 1);
            }
            self.puts += 1;
        }
    }

    /// Lets the shards put away what is not kept. They do one thing at a time.
    fn settle(&self) {
        for _ in 0..200 {
            self.now.set(self.now.get().after(Span::from_ms(1)));
            for durable in &mut *self.durables.borrow_mut() {
                durable.drive(self.now.get()).unwrap();
            }
        }
    }

    /// Lets so many milliseconds pass for the archive, and everything happen that is due then.
    fn pass(&mut self, ms: u64) {
        self.passed_ms.fetch_add(ms, Ordering::Relaxed);
        for _ in 0..TURNS_MAX {
            if !self.running.turn().is_zero() {
                return;
            }
        }
        panic!("there is always something to do");
    }

    fn facts(&self) -> ArchiveFacts {
        self.archived.facts(self.now.get())
    }

    /// How many marks there are.
    fn marks(&self) -> usize {
        self.place.objects().keys().filter(|name| name.starts_with("marks/")).count()
    }

    /// Which moments can be restored. There is one line.
    fn ranges(&self) -> Vec<Range> {
        let lines = Catalogue::read(&*self.place).unwrap().lines().unwrap();
        let [line] = &*lines else { panic!("{lines:?}") };
        line.ranges.clone()
    }

    fn disk(&self, shard: usize) -> RealDisk {
        RealDisk::open_read_only(&self.data.path().join(shard.to_string())).unwrap()
    }

    /// How many files of segments the first shard has.
    fn segments(&self) -> usize {
        let names: Vec<_> = self.disk(0).list().unwrap().into_iter().map(|it| it.name).collect();
        (1..500).filter(|number| names.contains(&segment_name(*number))).count()
    }

    /// Takes a cut, as another thread would.
    fn cut(&self) -> Vec<ShardCut> {
        let durables = &mut self.durables.borrow_mut();
        cut(&self.taps, Purpose::Archiving, durables, &self.now).unwrap().1
    }

    /// Stops the server, and archives the rest.
    fn finish(&mut self) {
        self.end_shards();
        self.running.finish();
    }

    /// Stops the server.
    fn end_shards(&mut self) {
        self.stop.ask();
        for durable in &mut *self.durables.borrow_mut() {
            durable.close(self.now.get()).unwrap();
        }
        self.durables.borrow_mut().clear();
    }
}

/// Asks all shards for a cut, and lets them answer.
fn cut(
    taps: &[Arc<Tap>],
    purpose: Purpose,
    durables: &mut [Durable],
    clock: &Cell<Timestamp>,
) -> Option<(Timestamp, Vec<ShardCut>)> {
    let asked: Vec<_> = taps.iter().map(|tap| tap.ask(purpose)).collect();
    clock.set(clock.get().after(Span::from_ms(2)));
    for durable in durables {
        durable.answer_cuts(clock.get()).unwrap();
        durable.drive(clock.get()).unwrap();
    }
    let cuts = asked.into_iter().map(|it| it.wait(GUARD)).collect::<Option<Vec<_>>>()?;
    ShardCut::common_moment(&cuts).map(|at| (at, cuts))
}

#[test]
fn what_is_new_is_archived_as_often_as_it_was_asked_for() {
    let mut rig = Rig::new(2);
    assert_eq!(rig.facts().state, "starting");
    rig.churn(3);
    rig.pass(0);
    assert_eq!((rig.marks(), rig.facts().state.as_str()), (1, "ok"));
    rig.pass(EVERY);
    assert_eq!(rig.marks(), 1, "nothing is new");
    rig.churn(1);
    rig.pass(EVERY - 1);
    assert_eq!(rig.marks(), 1, "it is too early");
    rig.pass(1);
    assert_eq!(rig.marks(), 2);
    let facts = rig.facts();
    assert_eq!((facts.behind_bytes, facts.behind, facts.failures), (0, Span::ZERO, 0));
}

#[test]
fn failures_are_told_and_tried_again_after_longer_and_longer_waits() {
    let mut rig = Rig::new(1);
    rig.place.keep_out();
    rig.churn(1);
    rig.pass(0);
    for (ms, failures) in [(999, 1), (1, 2), (1_999, 2), (1, 3), (3_999, 3), (1, 4), (7_999, 4)] {
        rig.pass(ms);
        let facts = rig.facts();
        assert_eq!(facts.failures, failures);
        assert!(facts.has_failed && facts.state.starts_with("cannot write"), "{facts:?}");
        assert!(facts.behind_bytes > 0 && !facts.behind.is_zero(), "{facts:?}");
    }
    rig.place.heal();
    rig.pass(1);
    let facts = rig.facts();
    assert_eq!((facts.state.as_str(), facts.behind_bytes, facts.failures), ("ok", 0, 4));
}

#[test]
fn files_stay_until_the_archive_has_them() {
    let mut rig = Rig::new(1);
    rig.pass(0);
    rig.churn(60);
    // The server itself needs hardly any of them from now on.
    rig.settle();
    rig.place.keep_out();
    rig.pass(EVERY);
    rig.churn(15);
    rig.settle();
    let kept = rig.segments();
    assert!(kept > 15, "{kept} files");
    rig.place.heal();
    rig.pass(30_000);
    assert_eq!(rig.facts().state, "ok");
    let ranges = rig.ranges();
    assert_eq!(ranges.len(), 1, "no moment is missing: {ranges:?}");
    rig.settle();
    let left = rig.segments();
    assert!(left < 8, "{left} files");
}

#[test]
fn files_stay_wherever_sending_ends() {
    for changes in 0.. {
        let mut rig = Rig::new(1);
        rig.pass(0);
        rig.churn(30);
        rig.settle();
        rig.place.stop_after(changes);
        rig.pass(EVERY);
        let has_failed = rig.facts().has_failed;
        rig.churn(5);
        rig.settle();
        rig.place.heal();
        rig.pass(30_000);
        assert_eq!(rig.facts().state, "ok");
        let ranges = rig.ranges();
        assert_eq!(ranges.len(), 1, "after {changes} changes moments are missing: {ranges:?}");
        if !has_failed {
            assert!(changes > 5, "{changes} changes are enough");
            return;
        }
    }
}

#[test]
fn more_than_the_backlog_does_not_stay() {
    let place = Arc::default();
    let mut rig = Rig::with((7, 1), &place, |to| to.backlog_bytes = Some(200_000));
    rig.pass(0);
    rig.place.keep_out();
    rig.churn(25);
    rig.pass(EVERY);
    rig.churn(75);
    rig.settle();
    let kept = rig.segments();
    assert!(kept > 15, "{kept} files");
    rig.pass(5_000);
    rig.settle();
    let left = rig.segments();
    assert!(left < 8, "{left} files");
    rig.place.heal();
    rig.pass(30_000);
    assert_eq!((rig.facts().state.as_str(), rig.facts().behind_bytes), ("ok", 0));
    // What was given up is missing, and the archive goes on after that.
    let ranges = rig.ranges();
    assert_eq!(ranges.len(), 2, "{ranges:?}");
}

#[test]
fn the_backlog_goes_even_while_a_cut_is_read() {
    let place = Arc::default();
    let mut rig = Rig::with((7, 1), &place, |to| to.backlog_bytes = Some(200_000));
    rig.pass(0);
    let is_due = |ms| rig.backlog.is_due(Duration::from_millis(ms));
    assert!(!is_due(4_999) && is_due(5_000));
    rig.churn(25);
    rig.backlog.begin_to_read(rig.cut());
    rig.churn(75);
    rig.settle();
    let kept = rig.segments();
    assert!(kept > 15, "{kept} files");
    rig.backlog.check(0).unwrap();
    // As the other thread does.
    assert!(rig.backlog.measure(&rig.cut(), Duration::from_secs(5)));
    let why = rig.backlog.check(0).unwrap_err();
    assert!(why.what.starts_with("too much stayed on disk"), "{why}");
    rig.settle();
    let left = rig.segments();
    assert!(left < 8, "{left} files");
}

#[test]
fn a_server_that_was_idle_is_not_far_behind() {
    let mut rig = Rig::new(1);
    rig.churn(1);
    rig.pass(0);
    rig.now.set(rig.now.get().after(Span::from_ms(600_000)));
    rig.pass(EVERY);
    assert_eq!(rig.marks(), 1, "nothing is new");
    rig.place.keep_out();
    rig.churn(1);
    rig.pass(EVERY);
    let facts = rig.facts();
    assert!(facts.behind_bytes > 0 && facts.behind < Span::from_ms(60_000), "{facts:?}");
}

#[test]
fn what_cannot_be_archived_here_ends_for_good() {
    let mut rig = Rig::new(1);
    rig.churn(1);
    rig.pass(0);
    let objects = rig.place.objects();
    let mut other = Rig::with((8, 1), &rig.place, |_| {});
    other.churn(1);
    other.pass(0);
    let facts = other.facts();
    assert!(facts.state.contains("another data directory"), "{facts:?}");
    // Nothing is kept for it either.
    other.churn(75);
    other.settle();
    let left = other.segments();
    assert!(left < 8, "{left} files");
    for _ in 0..5 {
        other.pass(60_000);
    }
    other.finish();
    assert_eq!((other.facts().failures, other.place.objects()), (1, objects));
    assert!(other.facts().behind_bytes > 0);
}

#[test]
fn a_server_that_stops_archives_what_its_journals_have() {
    let mut rig = Rig::new(2);
    rig.churn(10);
    rig.pass(0);
    rig.churn(30);
    rig.stop.ask();
    rig.pass(EVERY);
    assert_eq!(rig.marks(), 1, "the journals are about to end");
    rig.finish();
    let newest = Catalogue::read(&*rig.place).unwrap().newest().unwrap();
    for (shard, mark) in newest.shards.iter().enumerate() {
        let rest = at_rest(&rig.disk(shard)).unwrap().unwrap();
        let (last, end) = (mark.parts.last().unwrap(), rest.segments.last().unwrap());
        assert_eq!((last.number, last.bytes), (end.number, end.bytes));
        assert!(newest.at() >= rest.at);
    }
    assert_eq!(rig.facts().failures, 0);
}

#[test]
fn files_on_which_another_server_has_begun_are_left_to_it() {
    let mut rig = Rig::new(1);
    rig.churn(1);
    rig.pass(0);
    rig.churn(1);
    rig.end_shards();
    let other = RealDisk::create(&rig.data.path().join("0")).unwrap();
    let lock = other.lock().unwrap();
    rig.running.finish();
    assert_eq!(rig.marks(), 1);
    drop(lock);
    rig.running.finish();
    assert_eq!(rig.marks(), 2);
}

#[test]
fn what_has_rotted_is_told() {
    let hour = 3_600_000;
    let place = Arc::default();
    let mut rig = Rig::with((7, 1), &place, |to| {
        to.scrub_every = Some(Duration::from_millis(hour));
    });
    rig.churn(5);
    rig.pass(0);
    for (name, mut bytes) in place.objects() {
        if name.contains("/parts/") {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            place.put(&name, bytes);
        }
    }
    rig.pass(hour);
    // The thread tells it when it has ended, and nothing else changes the state.
    let (_keep, never) = sync_channel::<()>(0);
    for _ in 0..10_000 {
        if rig.facts().has_failed {
            break;
        }
        let _ = never.recv_timeout(Duration::from_millis(5));
        rig.pass(0);
    }
    let facts = rig.facts();
    assert!(facts.state.starts_with("files and archive differ in "), "{facts:?}");
    assert_eq!(facts.failures, 0);
}
