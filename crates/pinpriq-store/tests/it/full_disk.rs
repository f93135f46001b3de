//! A disk that the journal filled itself: it can start again any number of times, and acknowledging
//! frees room after any sequence of operations.
//!
//! Segments are small, and everything else is in proportion to them. Single refusals are covered by
//! the tests of the engine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinpriq_engine::Applied;
use pinpriq_proto::command::{
    Ack, Amendment, Command, Held, HeldBy, Put, Release, Selection, Take, TakeMode, Touch, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::task::{ClientId, Receipt, RequestId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::disk::{DiskFile, Entry, LockError, OpenMode};
use pinpriq_store::{Disk, Durable, Journal, JournalOptions, Runner, StoreError};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

const SEGMENT_BYTES: u32 = 512 << 10;
const QUEUE: &[u8] = b"jobs";
const TTR: Span = Span::from_ms(10_000);

/// One of several directories on a disk.
struct Directory {
    disk: FaultyDisk,
    name: String,
}

impl Directory {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }
}

impl Disk for Directory {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(&self.path(name), mode)
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let prefix = self.path("");
        let own = |entry: Entry| {
            let name = entry.name.strip_prefix(&prefix)?.to_owned();
            Some(Entry { name, ..entry })
        };
        Ok(self.disk.list()?.into_iter().filter_map(own).collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(&self.path(from), &self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&self.path(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        Ok(Box::new(()))
    }
}

/// A shard with its journal.
struct Shard {
    durable: Durable,
    now: Timestamp,
}

impl Shard {
    fn open(disk: &FaultyDisk, own: usize, seed: u64) -> Result<Self, StoreError> {
        Self::open_with(disk, own, seed, Runner::Inline)
    }

    fn open_with(
        disk: &FaultyDisk,
        own: usize,
        seed: u64,
        runner: Runner,
    ) -> Result<Self, StoreError> {
        let options = JournalOptions {
            segment_bytes: SEGMENT_BYTES,
            salt_seed: seed,
            slack_bytes: 2 * u64::from(SEGMENT_BYTES),
            ..JournalOptions::default()
        };
        let directory = Directory { disk: disk.clone(), name: own.to_string() };
        let store = Journal::open(Arc::new(directory), options, runner)?;
        let start = Timestamp::from_ms(1 << 40);
        let (durable, _) = Durable::open(Box::new(store), Limits::default(), start, seed)?;
        Ok(Self { now: durable.now(), durable })
    }

    fn ask(&mut self, command: Command<'_>) -> Reply {
        self.durable.apply(self.now, ClientId(1), RequestId(1), &command);
        self.durable.commit().unwrap();
        let Some((_, Output::Reply { reply, .. })) = self.durable.poll_output() else {
            panic!("no reply to {command:?}")
        };
        self.durable.drive(self.now).unwrap();
        reply
    }

    /// Carries out a command that may be refused, but only because the disk is full. Returns
    /// whether it was done.
    fn is_done(&mut self, command: Command<'_>) -> bool {
        match self.ask(command) {
            Reply::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal:?} to {command:?}");
                false
            }
            _ => true,
        }
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now.after(span);
        self.durable.handle_timeout(self.now);
        self.durable.commit().unwrap();
        self.durable.drive(self.now).unwrap();
    }

    fn fill(&mut self, payload_bytes: usize) -> u64 {
        let payload = vec![7; payload_bytes];
        let mut count = 0;
        while self.is_done(Command::Put(Put::new(QUEUE, &payload))) {
            self.pass(Span::from_ms(1));
            count += 1;
            assert!(count < 1_000_000, "the disk is never full");
        }
        count
    }

    fn take(&mut self, count: u32, ttr: Option<Span>) -> Vec<TaskRecord> {
        let (queues, wait, mode) = ([QUEUE], Wait::No, TakeMode::Lease { ttr });
        let selection = Selection::DEFAULT;
        let take = Take { queues: &queues, member: None, count, wait, selection, mode };
        match self.ask(Command::Take(take)) {
            Reply::Tasks { tasks, .. } => tasks,
            Reply::Refused(refusal) => {
                assert_eq!(refusal.kind, RefusalKind::Busy, "{refusal:?}");
                Vec::new()
            }
            other => panic!("{other:?}"),
        }
    }

    fn ack(&mut self, receipt: Receipt) {
        let held = Held { queue: QUEUE.into(), by: HeldBy::Receipt(receipt) };
        let reply = self.ask(Command::Ack(Ack::new(held)));
        assert_eq!(reply, Reply::Done);
    }

    /// Takes and acknowledges one task after the other until there is none, and returns their
    /// number.
    fn drain(&mut self) -> u64 {
        let mut count = 0;
        let mut idle = 0;
        while self.durable.engine().totals().in_any_state() > 0 {
            match self.take(1, None).first().and_then(TaskRecord::receipt) {
                Some(receipt) => {
                    self.ack(receipt);
                    (count, idle) = (count + 1, 0);
                }
                None => idle += 1,
            }
            self.pass(Span::from_ms(1));
            assert!(idle < 20_000, "nothing can be taken: {:?}", self.durable.figures());
        }
        count
    }

    /// Runs the journal until it is idle.
    fn settle(&mut self) {
        for _ in 0..300 {
            self.pass(Span::from_ms(20));
        }
    }
}

/// Fills a disk of this size with tasks of this payload size in this number of shards, starts
/// often, and takes everything out again.
fn survive(segments_by_eight: u64, shards: usize, payload_bytes: usize, works: bool) {
    let context = format!("{segments_by_eight}/8 segments, {shards} shards, {payload_bytes} bytes");
    let disk = FaultyDisk::new(segments_by_eight);
    let mut dice = Dice::new(segments_by_eight);
    disk.set_capacity(u64::from(SEGMENT_BYTES) * segments_by_eight / 8);
    let open_all = |seed: u64| -> Vec<Shard> {
        let opened = (0..shards).map(|own| Shard::open(&disk, own, seed));
        let opened: Result<Vec<Shard>, StoreError> = opened.collect();
        opened.unwrap_or_else(|error| panic!("{context}, start {seed}: {error}"))
    };
    let mut running = open_all(1);
    let mut put: Vec<u64> = running.iter_mut().map(|shard| shard.fill(payload_bytes)).collect();
    for seed in 2..22 {
        for shard in &mut running {
            if works {
                // Leases that a start ends, and others.
                shard.take(20, None);
                shard.take(3, Some(TTR));
                for _ in 0..30 {
                    shard.pass(Span::from_ms(50));
                }
            }
            if seed % 2 == 0 {
                shard.durable.finish(shard.now).unwrap();
            }
        }
        drop(running);
        disk.crash(match dice.below(3) {
            0 => CrashPolicy::KeepAll,
            1 => CrashPolicy::LoseUnsynced,
            _ => CrashPolicy::KeepSome(50),
        });
        running = open_all(seed);
        for (own, shard) in running.iter_mut().enumerate() {
            let present = shard.durable.engine().totals().in_any_state();
            assert_eq!(present, put[own], "{context}, start {seed}, shard {own}");
            if works {
                put[own] += shard.fill(payload_bytes);
            }
        }
    }
    for (own, shard) in running.iter_mut().enumerate() {
        shard.pass(TTR);
        assert_eq!(shard.drain(), put[own], "{context}, shard {own}");
        shard.settle();
        let prefix = format!("{own}/spare-");
        let spares = disk.files().into_keys().filter(|name| name.starts_with(&prefix)).count();
        assert!(spares <= 4, "{context}: {spares} spares");
    }
    for shard in &mut running {
        let room = shard.durable.engine().room();
        let figures = shard.durable.figures();
        assert_eq!(room, Room::Enough, "{context}: it never recovers: {figures:?}");
        assert!(shard.is_done(Command::Put(Put::new(QUEUE, &vec![7; payload_bytes]))), "{context}");
        shard.durable.engine().check();
    }
}

#[test]
fn starts_on_a_full_disk_have_room_any_number_of_times() {
    for eighths in [25, 55, 100] {
        for shards in [1, 2] {
            survive(eighths, shards, 200, false);
        }
    }
}

#[test]
fn starts_on_a_full_disk_end_leases_and_leave_room_for_acks() {
    for (eighths, payload_bytes) in [(25, 1), (25, 1_000), (30, 300), (55, 1_000)] {
        for shards in [1, 2] {
            survive(eighths, shards, payload_bytes, true);
        }
    }
}

#[test]
fn idle_starts_make_the_log_no_longer() {
    let disk = FaultyDisk::new(1);
    let mut shard = Shard::open(&disk, 0, 1).unwrap();
    shard.is_done(Command::Put(Put::new(QUEUE, b"one")));
    drop(shard);
    // The first starts complete what is kept for later ones.
    for seed in 2..8 {
        drop(Shard::open(&disk, 0, seed).unwrap());
    }
    let files = disk.files().len();
    for seed in 8..30 {
        disk.crash(CrashPolicy::KeepSome(50));
        let shard = Shard::open(&disk, 0, seed).unwrap();
        assert_eq!(shard.durable.engine().header().incarnation, seed, "no receipt comes twice");
        assert_eq!(shard.durable.engine().totals().in_any_state(), 1);
        drop(shard);
        assert_eq!(disk.files().len(), files, "start {seed}");
        assert!(!disk.files().contains_key("0/segment-0000000003.log"), "start {seed}");
    }
}

/// A shard on a full disk of five segments, with the receipts of ten taken tasks.
fn full_shard(payload_bytes: usize) -> (FaultyDisk, Shard, Vec<Receipt>) {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(u64::from(SEGMENT_BYTES) * 5);
    let mut shard = Shard::open(&disk, 0, 1).unwrap();
    shard.fill(payload_bytes);
    let held: Vec<Receipt> = shard
        .take(10, Some(Span::from_ms(1 << 30)))
        .iter()
        .filter_map(TaskRecord::receipt)
        .collect();
    assert_eq!(held.len(), 10);
    (disk, shard, held)
}

#[test]
fn what_makes_no_room_leaves_what_acks_need() {
    for payload_bytes in [1, 300] {
        let (_disk, mut shard, held) = full_shard(payload_bytes);
        let mut refused = 0;
        for at in 0..20_000 {
            let held = Held { queue: QUEUE.into(), by: HeldBy::Receipt(held[at % 10]) };
            let by = Some(Span::from_ms(1));
            refused += u64::from(!shard.is_done(Command::Touch(Touch { by, ..Touch::new(held) })));
        }
        assert!(refused > 0, "renewals never end");
        for _ in 0..10_000 {
            for task in shard.take(1, Some(TTR)) {
                let receipt = task.receipt().unwrap();
                let held = Held { queue: QUEUE.into(), by: HeldBy::Receipt(receipt) };
                let (delay, amendment) = (Span::ZERO, Amendment::default());
                let release = Release { delay, amendment, tail: true, ..Release::new(held) };
                shard.is_done(Command::Release(release));
            }
        }
        for _ in 0..10_000 {
            shard.take(1, Some(Span::from_ms(2)));
            shard.pass(Span::from_ms(2));
        }
        for receipt in held {
            shard.ack(receipt);
        }
        shard.pass(TTR);
        assert!(shard.drain() > 100);
        shard.settle();
        assert!(shard.is_done(Command::Put(Put::new(QUEUE, b""))));
        shard.durable.engine().check();
    }
}

#[test]
fn who_is_faster_than_room_is_reserved_waits_and_loses_nothing() {
    const PENDING_BYTES: u64 = 2 * SEGMENT_BYTES as u64;
    for eighths in (20..64).step_by(3) {
        let disk = FaultyDisk::new(eighths);
        disk.set_capacity(u64::from(SEGMENT_BYTES) * eighths / 8);
        // The journal works only while this is open.
        let open = Arc::new(AtomicBool::new(true));
        let gated = Runner::Gated { open: Arc::clone(&open) };
        let mut shard = Shard::open_with(&disk, 0, 1, gated).unwrap();
        let payload = [7; 1_000];
        let (mut count, mut waited) = (0, 0);
        loop {
            let figures = shard.durable.figures();
            let is_outpaced = shard.durable.is_outpaced();
            open.store(is_outpaced || figures.bytes_pending > PENDING_BYTES, Ordering::Relaxed);
            if open.load(Ordering::Relaxed) {
                waited += u64::from(is_outpaced);
                shard.pass(Span::from_ms(1));
                continue;
            }
            let put = Command::Put(Put::new(QUEUE, &payload));
            let applied = shard.durable.apply(shard.now, ClientId(1), RequestId(1), &put);
            shard.durable.commit().unwrap();
            shard.durable.drive(shard.now).unwrap();
            if applied != Applied::Answered {
                assert_eq!(applied, Applied::Refused(RefusalKind::Busy), "{eighths}");
                break;
            }
            count += 1;
        }
        assert!(waited > 0, "{eighths}: it was never too fast");
        open.store(true, Ordering::Relaxed);
        shard.durable.finish(shard.now).unwrap();
        drop(shard);
        assert_eq!(Shard::open(&disk, 0, 2).unwrap().drain(), count, "{eighths}");
    }
}
