//! Payloads that were left in the store because memory is short, and how they are read back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinpriq_proto::command::{
    Amendment, Command, Held, HeldBy, Peek, Put, Selection, Take, TakeMode, Update, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId, TaskRecord};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::durable::{Holds, Wanted};
use pinpriq_store::{Disk, Durable, Journal, JournalOptions, Runner, StoreError};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use crate::counting::CountingDisk;
use crate::driving::options;

const QUEUE: &[u8] = b"jobs";

/// Small enough that most of a hundred tasks of a hundred bytes have to leave their payload.
const MEMORY_BYTES: u64 = 8_000;

struct Site {
    disk: FaultyDisk,
    durable: Durable,
    now: Timestamp,
}

impl Site {
    fn open(disk: &FaultyDisk) -> Result<Self, StoreError> {
        Self::run(disk, Runner::Inline)
    }

    fn run(disk: &FaultyDisk, runner: Runner) -> Result<Self, StoreError> {
        Self::over(disk, Arc::new(disk.clone()), runner)
    }

    /// A site whose journal accesses the disk through another one.
    fn over(disk: &FaultyDisk, seen: Arc<dyn Disk>, runner: Runner) -> Result<Self, StoreError> {
        let limits = Limits { memory_bytes: Some(MEMORY_BYTES), ..Limits::default() };
        let options = JournalOptions { leaves_payloads: true, ..options(1) };
        let store = Journal::open(seen, options, runner).unwrap();
        let start = Timestamp::from_ms(1 << 40);
        let (durable, _) = Durable::open(Box::new(store), limits, start, 1)?;
        Ok(Self { disk: disk.clone(), now: durable.now(), durable })
    }

    /// A site with this many tasks, each with a different payload.
    fn with_tasks(count: u64) -> Self {
        let mut site = Self::open(&FaultyDisk::new(1)).unwrap();
        site.put(count);
        site
    }

    fn put(&mut self, count: u64) {
        for number in 1..=count {
            self.ask(Command::Put(Put::new(QUEUE, &payload(number))));
        }
    }

    /// Passes tasks with these numbers through another queue, so that segments fill and the oldest
    /// has to be emptied.
    fn pass(&mut self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.ask(Command::Put(Put::new(b"passing", &payload(number))));
            let (queues, wait, selection) = ([&b"passing"[..]], Wait::No, Selection::DEFAULT);
            let mode = TakeMode::Pop;
            let take = Take { queues: &queues, member: None, count: 1, wait, selection, mode };
            self.ask(Command::Take(take));
        }
    }

    fn ask(&mut self, command: Command<'_>) -> Reply {
        self.durable.apply(self.now, ClientId(1), RequestId(1), &command);
        let committed = self.durable.commit();
        let Some((_, Output::Reply { reply, .. })) = self.durable.poll_output() else {
            panic!("no reply")
        };
        if committed.is_ok() && self.durable.failure().is_none() {
            self.durable.drive(self.now).unwrap();
            self.durable.engine().check();
        }
        reply
    }

    /// Pops tasks whose payloads are to be read later.
    fn pop_held(&mut self, count: u32) -> (Vec<TaskRecord>, Holds) {
        let (queues, wait, selection) = ([QUEUE], Wait::No, Selection::DEFAULT);
        let mode = TakeMode::Pop;
        let take = Take { queues: &queues, member: None, count, wait, selection, mode };
        self.durable.apply(self.now, ClientId(1), RequestId(1), &Command::Take(take));
        self.durable.commit().unwrap();
        match self.durable.poll_held() {
            Some((_, Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }, holds)) => {
                (tasks, holds)
            }
            _ => panic!("no tasks"),
        }
    }

    fn take(&mut self, mode: TakeMode, count: u32) -> Vec<TaskRecord> {
        let (queues, wait, selection) = ([QUEUE], Wait::No, Selection::DEFAULT);
        let take = Take { queues: &queues, member: None, count, wait, selection, mode };
        match self.ask(Command::Take(take)) {
            Reply::Tasks { tasks, .. } => tasks,
            other => panic!("{other:?}"),
        }
    }

    fn peek(&mut self) -> Vec<TaskRecord> {
        let (selection, count) = (Selection::DEFAULT, u32::MAX);
        let peek = Peek { queue: QUEUE.into(), selection, state: None, count };
        match self.ask(Command::Peek(peek)) {
            Reply::Shown(tasks) => tasks,
            other => panic!("{other:?}"),
        }
    }
}

fn payload(number: u64) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.iter().copied().cycle().take(100).collect()
}

fn judge(tasks: &[TaskRecord]) {
    for task in tasks {
        assert_eq!(*task.payload, *payload(task.number), "task {}", task.number);
        assert_eq!(task.away, None, "task {} is whole", task.number);
    }
}

#[test]
fn every_way_to_see_a_task_brings_its_payload_back() {
    let mut site = Site::with_tasks(100);
    assert!(site.durable.engine().is_short_of_memory(), "the bookkeeping alone is more");
    let shown = site.peek();
    assert_eq!(shown.len(), 100);
    judge(&shown);
    let Reply::Task(Some(task)) = site.ask(Command::Get { queue: QUEUE.into(), id: b"99" }) else {
        panic!("task 99 is there")
    };
    judge(&[*task]);
    judge(&site.take(TakeMode::Lease { ttr: None }, 30));
    judge(&site.take(TakeMode::Pop, 30));
    site.ask(Command::Subscribe {
        queues: &[QUEUE],
        member: None,
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
        recall: false,
    });
    site.durable.apply(site.now, ClientId(1), RequestId(1), &Command::Credit(40));
    site.durable.commit().unwrap();
    let mut delivered = Vec::new();
    while let Some((_, output)) = site.durable.poll_output() {
        if let Output::Delivery { tasks, .. } = output {
            delivered.extend(tasks);
        }
    }
    assert_eq!(delivered.len(), 40);
    judge(&delivered);
}

#[test]
fn memory_stays_near_the_limit_whatever_the_payloads_are() {
    let large = vec![7; 4_000];
    let mut site = Site::open(&FaultyDisk::new(1)).unwrap();
    for _ in 0..40 {
        site.ask(Command::Put(Put::new(QUEUE, &large)));
    }
    let away = site.durable.engine().payloads_left();
    assert!(away >= 38, "{away} of 40 payloads were left");
    assert_eq!(site.take(TakeMode::Pop, 40).iter().filter(|t| *t.payload == *large).count(), 40);
}

#[test]
fn a_payload_stays_until_its_record_is_on_the_disk() {
    let open = Arc::new(AtomicBool::new(true));
    let gated = Runner::Gated { open: Arc::clone(&open) };
    let mut site = Site::run(&FaultyDisk::new(1), gated).unwrap();
    open.store(false, Ordering::Relaxed);
    for number in 1..=100 {
        site.ask(Command::Put(Put::new(QUEUE, &payload(number))));
    }
    assert!(site.durable.engine().is_short_of_memory());
    assert_eq!(site.durable.engine().payloads_left(), 0, "the disk does not answer");
    judge(&site.peek());
    open.store(true, Ordering::Relaxed);
    // The writes that were delayed, and those that had to wait for them.
    for _ in 0..3 {
        site.durable.drive(site.now).unwrap();
    }
    assert!(site.durable.engine().payloads_left() > 0);
    let shown = site.peek();
    assert_eq!(shown.len(), 100);
    judge(&shown);
}

#[test]
fn a_restart_keeps_to_the_limit_and_loses_nothing() {
    let site = Site::with_tasks(100);
    site.disk.crash(CrashPolicy::LoseUnsynced);
    let mut site = Site::open(&site.disk).unwrap();
    assert!(site.durable.engine().payloads_left() > 0);
    let shown = site.peek();
    assert_eq!(shown.len(), 100);
    judge(&shown);
}

#[test]
fn compaction_takes_payloads_along_that_were_left() {
    let mut site = Site::with_tasks(60);
    let rewrites = site.durable.figures().rewrites;
    site.pass(61..3_000);
    let rewrites = site.durable.figures().rewrites - rewrites;
    assert!(rewrites >= 60, "{rewrites} records were written again");
    judge(&site.peek());
    site.disk.crash(CrashPolicy::LoseUnsynced);
    let mut site = Site::open(&site.disk).unwrap();
    let shown = site.peek();
    assert_eq!(shown.len(), 60);
    judge(&shown);
}

#[test]
fn a_record_that_is_written_again_is_shown_before_its_new_place_is_on_the_disk() {
    let open = Arc::new(AtomicBool::new(true));
    let gated = Runner::Gated { open: Arc::clone(&open) };
    let mut site = Site::run(&FaultyDisk::new(1), gated).unwrap();
    for number in 1..=60 {
        site.ask(Command::Put(Put::new(QUEUE, &payload(number))));
    }
    let mut seen = 0;
    for number in 61..3_000 {
        let before = site.durable.figures().rewrites;
        open.store(true, Ordering::Relaxed);
        site.pass(number..number + 1);
        // What was returned to be written again does not reach the disk now.
        open.store(false, Ordering::Relaxed);
        if site.durable.figures().rewrites > before {
            seen += 1;
            let shown = site.peek();
            assert_eq!(shown.len(), 60);
            judge(&shown);
        }
    }
    assert!(seen > 0, "no record was written again while the disk did not answer");
}

#[test]
fn a_payload_stays_readable_as_long_as_an_answer_waits_for_it() {
    let mut site = Site::with_tasks(100);
    let (tasks, holds) = site.pop_held(100);
    let away: Vec<&TaskRecord> = tasks.iter().filter(|task| task.away.is_some()).collect();
    assert!(away.len() > 30, "{} payloads were left", away.len());
    // Segments fill, and those with the tasks are put away.
    site.pass(101..3_000);
    assert!(site.durable.held_bytes() > 0, "the segments are gone");
    let wanted = away.iter().map(|task| {
        let away = task.away.unwrap();
        let volume = Arc::clone(holds.volume(away.place).unwrap());
        Wanted { number: task.number, away, volume }
    });
    site.durable.start_read(wanted.collect()).unwrap();
    let payloads = site.durable.take_read(true).unwrap().expect("the job has ended");
    assert_eq!(payloads.len(), away.len());
    for (task, read) in away.iter().zip(payloads) {
        assert_eq!(*read, *payload(task.number), "task {}", task.number);
    }
    drop(holds);
    assert_eq!(site.durable.held_bytes(), 0, "nothing is held now");
}

#[test]
fn segments_that_are_gone_are_not_kept_open() {
    let disk = FaultyDisk::new(1);
    let counting = CountingDisk::new(Arc::new(disk.clone()), true);
    let mut site = Site::over(&disk, Arc::new(counting.clone()), Runner::Inline).unwrap();
    site.put(60);
    let mut seen_open = false;
    for round in 0..100 {
        let first = 61 + round * 30;
        site.pass(first..first + 30);
        judge(&site.peek());
        let files = site.disk.files();
        let open = counting.open_files();
        let gone: Vec<&String> = open.iter().filter(|name| !files.contains_key(*name)).collect();
        assert!(gone.is_empty(), "{gone:?} are open and gone");
        seen_open |= !open.is_empty();
    }
    assert!(seen_open, "no payload was fetched");
    let rewrites = site.durable.figures().rewrites;
    assert!(rewrites >= 60, "{rewrites} records were written again");
}

#[test]
fn a_new_payload_replaces_one_that_was_left() {
    let mut site = Site::with_tasks(100);
    let amendment = Amendment { payload: Some(b"new"), ..Amendment::default() };
    let update = Update { amendment, ..Update::new(QUEUE, b"90") };
    assert_eq!(site.ask(Command::Update(update)), Reply::Done);
    let shown = site.peek();
    assert_eq!(&*shown[89].payload, b"new");
    judge(&shown[..89]);
    judge(&shown[90..]);
}

#[test]
fn a_lease_does_not_need_the_payload() {
    let mut site = Site::with_tasks(100);
    let taken = site.take(TakeMode::Lease { ttr: None }, 100);
    for task in &taken {
        let by = HeldBy::Receipt(task.receipt().unwrap());
        let held = Held { queue: QUEUE.into(), by };
        let ack = pinpriq_proto::command::Ack::new(held);
        assert_eq!(site.ask(Command::Ack(ack)), Reply::Done);
    }
    assert_eq!(site.durable.engine().totals().in_any_state(), 0);
    assert_eq!(site.durable.engine().payloads_left(), 0);
}

#[test]
fn a_payload_that_the_disk_spoilt_is_never_shown() {
    let mut site = Site::with_tasks(100);
    for (name, bytes) in site.disk.files() {
        let wanted = payload(90);
        let at = bytes.windows(wanted.len()).position(|window| window == wanted);
        if let Some(at) = at {
            site.disk.flip(&name, at as u64 + 50, 3);
        }
    }
    let Reply::Refused(refusal) = site.ask(Command::Get { queue: QUEUE.into(), id: b"90" }) else {
        panic!("a spoilt payload was shown")
    };
    assert_eq!(refusal.kind, RefusalKind::Store);
    assert!(site.durable.failure().is_some(), "no more answers");
}
