//! The journal with threads, on a disk whose syncs end when the test says so.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::{DiskFile, Entry, LockError, OpenMode};
use pinpriq_store::{
    Disk, Journal, JournalOptions, Position, Reclaims, Runner, Store, StoreError, Urgency,
};
use pinpriq_testing::faulty_disk::{FaultyDisk, Operation, Repeat};
use pinpriq_testing::stores::sample_task;

use crate::driving::{GUARD, SEGMENT_BYTES, options};

/// Before every sync of a segment, this disk announces the sync and waits for a permit.
#[derive(Clone)]
struct GatedDisk {
    disk: FaultyDisk,
    gate: Arc<Gate>,
}

struct Gate {
    permits: Mutex<Receiver<()>>,
    arrivals: SyncSender<()>,
}

struct GatedFile {
    file: Box<dyn DiskFile>,
    gate: Option<Arc<Gate>>,
}

impl Disk for GatedDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(name, mode)?;
        // A segment is created under the name of a spare with a number from the upper end, and
        // stays open. Prepared spares are not in the way.
        let gated = mode != OpenMode::Read && name.starts_with("spare-4");
        Ok(Box::new(GatedFile { file, gate: gated.then(|| Arc::clone(&self.gate)) }))
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn lock(&self) -> Result<Box<dyn Send>, LockError> {
        self.disk.lock()
    }
}

impl DiskFile for GatedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.file.next_data(offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(gate) = &self.gate {
            gate.arrivals.send(()).unwrap();
            gate.permits.lock().unwrap().recv_timeout(GUARD).unwrap();
        }
        self.file.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

/// A running journal, with the two ends of the gate and the wake-ups.
struct Bench {
    disk: FaultyDisk,
    permits: SyncSender<()>,
    arrivals: Receiver<()>,
    woken: Receiver<()>,
    journal: Journal,
    header: Header,
}

impl Bench {
    fn start() -> Self {
        Self::start_with(options(1))
    }

    fn start_with(options: JournalOptions) -> Self {
        let disk = FaultyDisk::new(1);
        let (permits, taken) = sync_channel(16);
        let (arrived, arrivals) = sync_channel(16);
        let gate = Arc::new(Gate { permits: Mutex::new(taken), arrivals: arrived });
        let (wake, woken) = sync_channel(16);
        let runner = Runner::Thread { wake: Arc::new(move || wake.send(()).unwrap()) };
        let gated: Arc<dyn Disk> = Arc::new(GatedDisk { disk: disk.clone(), gate });
        let mut journal = Journal::open(gated, options, runner).unwrap();
        journal.load(&mut |_, _| {}).unwrap();
        // The header of the first segment, and the empty batch.
        permits.send(()).unwrap();
        permits.send(()).unwrap();
        let header = Header { incarnation: 1, now: Timestamp::from_ms(1), last_number: 0 };
        journal.begin(&header).unwrap();
        arrivals.recv_timeout(GUARD).unwrap();
        arrivals.recv_timeout(GUARD).unwrap();
        Self { disk, permits, arrivals, woken, journal, header }
    }

    fn append(&mut self, change: Change, place: &mut Option<Place>) -> Position {
        let mut placed = |_, at| *place = Some(at);
        self.journal.append(&self.header, &[change], Urgency::Soon, &mut placed).unwrap()
    }

    fn drive(&mut self) -> Result<Position, StoreError> {
        self.journal.drive(self.header.now).map(|progress| progress.reached)
    }
}

#[test]
fn what_comes_while_a_sync_runs_goes_out_as_one_write_and_is_reached_after_its_own_sync() {
    let mut bench = Bench::start();
    let writes = bench.disk.count(Operation::Write);
    let first = bench.append(sample_task(1, "q", 10), &mut None);
    bench.drive().unwrap();
    bench.arrivals.recv_timeout(GUARD).unwrap();
    let mut last = first;
    for number in 2..10 {
        last = bench.append(sample_task(number, "q", 10), &mut None);
        assert!(bench.drive().unwrap() < first, "reached before its sync has ended");
    }
    assert_eq!(bench.disk.count(Operation::Write), writes + 1);
    bench.permits.send(()).unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.drive().unwrap(), first);
    bench.arrivals.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.disk.count(Operation::Write), writes + 2, "one write for all of them");
    bench.permits.send(()).unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.drive().unwrap(), last);
}

/// A journal that gathers, with two tasks: the sync of the first has just ended.
fn gathering() -> (Bench, Position) {
    let mut bench =
        Bench::start_with(JournalOptions { segment_bytes: 1 << 20, gathers: true, ..options(1) });
    let first = bench.append(sample_task(1, "q", 10), &mut None);
    bench.drive().unwrap();
    assert!(!bench.journal.is_gathering(), "no caller was answered yet");
    bench.arrivals.recv_timeout(GUARD).unwrap();
    let second = bench.append(sample_task(2, "q", 10), &mut None);
    bench.permits.send(()).unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.drive().unwrap(), first);
    assert!(bench.journal.is_gathering());
    (bench, second)
}

#[test]
fn what_comes_until_the_gathering_ends_goes_out_with_what_came_before() {
    let (mut bench, _) = gathering();
    let writes = bench.disk.count(Operation::Write);
    let third = bench.append(sample_task(3, "q", 10), &mut None);
    bench.drive().unwrap();
    assert_eq!(bench.disk.count(Operation::Write), writes, "it waits");
    assert_eq!(bench.journal.poll_timeout(), None, "the caller ends it, not the time");
    bench.journal.end_gathering();
    bench.permits.send(()).unwrap();
    bench.drive().unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.drive().unwrap(), third);
    assert_eq!(bench.disk.count(Operation::Write), writes + 1, "one write for both");
}

#[test]
fn nothing_is_gathered_while_much_waits() {
    let (mut bench, _) = gathering();
    let large = bench.append(sample_task(3, "q", 64 << 10), &mut None);
    assert!(!bench.journal.is_gathering());
    bench.permits.send(()).unwrap();
    bench.drive().unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    assert_eq!(bench.drive().unwrap(), large);
}

#[test]
fn what_was_gathered_is_durable_at_the_end() {
    let (mut bench, second) = gathering();
    bench.permits.send(()).unwrap();
    bench.journal.finish(bench.header.now).unwrap();
    assert_eq!(bench.drive().unwrap(), second);
}

#[test]
fn a_failed_sync_on_the_thread_ends_the_journal() {
    let mut bench = Bench::start();
    let first = bench.append(sample_task(1, "q", 10), &mut None);
    bench.drive().unwrap();
    bench.arrivals.recv_timeout(GUARD).unwrap();
    bench.append(sample_task(2, "q", 10), &mut None);
    bench.disk.fail(Operation::Sync, 1, Repeat::Once, io::ErrorKind::Other);
    bench.permits.send(()).unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    let failed = bench.drive();
    assert!(matches!(failed, Err(StoreError::Io { what: "sync", .. })), "{first:?}: {failed:?}");
    assert!(matches!(bench.drive(), Err(StoreError::Poisoned { .. })));
}

#[test]
fn a_segment_stays_until_the_batch_that_lets_it_go_is_durable() {
    let mut bench = Bench::start();
    let half = usize::try_from(SEGMENT_BYTES / 2).unwrap();
    let mut places = [None, None];
    bench.append(sample_task(1, "q", half), &mut places[0]);
    // The second task needs the second segment: a sync of the first, of the header, of the batch.
    let second = bench.append(sample_task(2, "q", half), &mut places[1]);
    for _ in 0..3 {
        bench.permits.send(()).unwrap();
    }
    bench.drive().unwrap();
    bench.woken.recv_timeout(GUARD).unwrap();
    for _ in 0..3 {
        bench.arrivals.recv_timeout(GUARD).unwrap();
    }
    // The preparation of a spare wakes too.
    while bench.drive().unwrap() < second {
        bench.woken.recv_timeout(GUARD).unwrap();
    }
    // The end of the first task is being written. The next batch lets the segment go.
    bench.append(Change::Gone(1), &mut None);
    bench.drive().unwrap();
    bench.arrivals.recv_timeout(GUARD).unwrap();
    bench.journal.obsolete(places[0].unwrap());
    let letting_go = bench.append(Change::Gone(7), &mut None);
    bench.permits.send(()).unwrap();
    while bench.drive().unwrap().0 + 1 < letting_go.0 {
        bench.woken.recv_timeout(GUARD).unwrap();
    }
    bench.arrivals.recv_timeout(GUARD).unwrap();
    let first = "segment-0000000001.log";
    for _ in 0..10 {
        bench.drive().unwrap();
    }
    assert_eq!(bench.disk.count(Operation::Rename), 2, "only the two segments were made");
    assert!(bench.disk.files().contains_key(first));
    bench.permits.send(()).unwrap();
    while bench.drive().unwrap() < letting_go {
        bench.woken.recv_timeout(GUARD).unwrap();
    }
    while bench.disk.files().contains_key(first) {
        bench.woken.recv_timeout(GUARD).unwrap();
        bench.drive().unwrap();
    }
}
