//! What a take has to wait for before its reply may be sent.
//!
//! A take reveals the tasks that it hands over, and that no better one was ready. It waits for
//! everything that decided this, and for nothing else that is under way.

use std::sync::Arc;

use pinpriq_proto::command::{
    Ack, Amendment, Assign, Bury, Command, Done, Held, HeldBy, Put, QueueCommand, QueueName,
    Release, Selection, Take, TakeMode, Touch, Update, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{Durable, Journal, Position, Runner};
use pinpriq_testing::faulty_disk::FaultyDisk;

use crate::driving::options;

const QUEUE: &[u8] = b"jobs";
const LEASE: TakeMode = TakeMode::Lease { ttr: Some(Span::from_ms(60_000)) };

/// A journal that makes progress only when it is driven.
struct Site {
    durable: Durable,
    now: Timestamp,
}

impl Site {
    fn open() -> Self {
        let disk = Arc::new(FaultyDisk::new(1));
        let store = Journal::open(disk, options(1), Runner::Inline).unwrap();
        let start = Timestamp::from_ms(1 << 40);
        let (durable, _) = Durable::open(Box::new(store), Limits::default(), start, 1).unwrap();
        Self { now: durable.now(), durable }
    }

    /// Carries out a command. Returns the reply, with the position that it waits for.
    fn ask(&mut self, command: Command<'_>) -> (Position, Reply) {
        self.durable.apply(self.now, ClientId(1), RequestId(1), &command);
        self.durable.commit().unwrap();
        match self.durable.poll_output() {
            Some((after, Output::Reply { reply, .. })) => (after, reply),
            other => panic!("{other:?} is no reply"),
        }
    }

    fn take(&mut self, mode: TakeMode) -> (Position, Vec<TaskRecord>) {
        let (queues, wait, selection) = ([QUEUE], Wait::No, Selection::DEFAULT);
        let take = Take { queues: &queues, member: None, count: 1, wait, selection, mode };
        match self.ask(Command::Take(take)) {
            (after, Reply::Tasks { tasks, .. }) => (after, tasks),
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self, priority: i64) -> Position {
        self.ask(Command::Put(Put { priority: Some(priority), ..Put::new(QUEUE, b"x") })).0
    }

    /// Makes everything that has happened durable.
    fn settle(&mut self) {
        self.durable.drive(self.now).unwrap();
    }
}

/// An action that has not reached the disk yet. There are three ready tasks, and one is taken,
/// under this receipt.
type Deed = fn(&mut Site, Receipt) -> Position;

const HARMLESS: &[(&str, Deed)] = &[
    ("nothing", |site, _| site.durable.reached()),
    ("a put of a task that comes later", |site, _| site.put(9)),
    ("an ack", |site, receipt| site.ask(Command::Ack(Ack::new(held(receipt)))).0),
    ("a bury", |site, receipt| site.ask(Command::Bury(Bury::new(held(receipt)))).0),
    ("a touch", |site, receipt| {
        site.ask(Command::Touch(Touch { by: Some(Span::from_ms(5)), ..Touch::new(held(receipt)) }))
            .0
    }),
    ("a release with a delay", |site, receipt| release(site, receipt, Span::from_ms(1_000))),
    ("another take", |site, _| site.take(LEASE).0),
];

const DECISIVE: &[(&str, Deed)] = &[
    ("a put of the task that is handed over", |site, _| site.put(1)),
    ("a release", |site, receipt| release(site, receipt, Span::ZERO)),
    ("a pop", |site, _| site.take(TakeMode::Pop).0),
    ("a kill", |site, _| site.ask(Command::Kill { queue: QUEUE.into(), ids: &[b"2"] }).0),
    ("a change of priority", |site, _| {
        let amendment = Amendment { priority: Assign::To(Some(8)), ..Amendment::default() };
        site.ask(Command::Update(Update { amendment, ..Update::new(QUEUE, b"2") })).0
    }),
    ("a setting", |site, _| {
        let command = QueueCommand::Create { queue: b"other", settings: &[] };
        site.ask(Command::Queue(command)).0
    }),
];

fn held(receipt: Receipt) -> Held<'static> {
    Held { queue: QueueName::from(QUEUE), by: HeldBy::Receipt(receipt) }
}

fn release(site: &mut Site, receipt: Receipt, delay: Span) -> Position {
    let (held, amendment) = (held(receipt), Amendment::default());
    site.ask(Command::Release(Release { delay, amendment, ..Release::new(held) })).0
}

/// Carries out a deed, and returns whether a take right after it waits for it.
fn is_waited_for(name: &str, deed: Deed) -> bool {
    let mut site = Site::open();
    for _ in 0..4 {
        site.put(5);
    }
    let (_, taken) = site.take(LEASE);
    site.settle();
    let receipt = taken[0].receipt().unwrap();
    let before = site.durable.reached();
    let after = deed(&mut site, receipt);
    let (needed, tasks) = site.take(LEASE);
    assert_eq!(tasks.len(), 1, "{name}");
    assert!(needed <= after.max(before), "{name}: the take waits for more than there was");
    let (of_pop, _) = site.take(TakeMode::Pop);
    assert!(of_pop > before, "{name}: a pop always waits, since it takes away");
    site.settle();
    assert!(site.durable.reached() >= of_pop, "{name}");
    needed > before
}

#[test]
fn a_take_does_not_wait_for_what_it_does_not_tell() {
    for (name, deed) in HARMLESS {
        assert!(!is_waited_for(name, *deed), "a take waits for {name}");
    }
}

#[test]
fn a_take_waits_for_what_it_tells() {
    for (name, deed) in DECISIVE {
        assert!(is_waited_for(name, *deed), "a take does not wait for {name}");
    }
}

#[test]
fn a_take_waits_for_what_it_acknowledges() {
    for blocks in [false, true] {
        let mut site = Site::open();
        for _ in 0..if blocks { 1 } else { 2 } {
            site.put(5);
        }
        let (_, taken) = site.take(LEASE);
        site.settle();
        let before = site.durable.reached();
        let receipt = taken[0].receipt().unwrap();
        let done = [Done { queue: QUEUE, receipt, result: None }];
        let (queues, selection) = ([QUEUE], Selection::DEFAULT);
        let (wait, mode) = (Wait::Forever, LEASE);
        let take = Take { queues: &queues, member: None, count: 1, wait, selection, mode };
        let command = Command::TakeDone { done: &done, take };
        site.durable.apply(site.now, ClientId(2), RequestId(2), &command);
        site.durable.commit().unwrap();
        if blocks {
            assert_eq!(site.durable.poll_output(), None);
            let put = Command::Put(Put::new(QUEUE, b"late"));
            site.durable.apply(site.now, ClientId(1), RequestId(3), &put);
            site.durable.commit().unwrap();
            let (_, own) = site.durable.poll_output().unwrap();
            assert!(matches!(own, Output::Reply { client: ClientId(1), .. }), "{own:?}");
        }
        let (after, reply) = site.durable.poll_output().unwrap();
        assert!(matches!(reply, Output::Reply { client: ClientId(2), .. }), "{reply:?}");
        assert!(after > before, "the reply waits for the ack, blocked: {blocks}");
    }
}
