//! Measures the cost of the engine for a task, at backlogs from a thousand to ten million tasks.
//!
//! Each sample is a batch of operations on one engine. Before the next sample, the engine returns
//! to its backlog, which is not measured. Changes are reported and dropped, as by a store that
//! costs nothing. The cost of a store is measured elsewhere. Without `--bench`, as in the gate,
//! each benchmark runs once and without the largest backlog. Nothing here judges the results.

use std::cell::RefCell;

use divan::Bencher;
use divan::counter::ItemsCount;

use pinpriq_engine::Engine;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueName, Selection, Take, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};

/// The number of operations in one sample.
const BATCH: u64 = 100;

/// The number of tasks with the same key, where they have one.
const GROUP: u64 = 10;

const LANES: u64 = 100;
const PRIORITIES: i64 = 10;
const PAYLOAD: [u8; 100] = [b'x'; 100];
const QUEUE: &[u8] = b"jobs";
const LEASE: Span = Span::from_ms(60_000);

/// Longer than any run.
const LONG: Span = Span::from_ms(1 << 40);

fn main() {
    divan::main();
}

/// The backlogs. The largest one takes seconds to build, so it is used only for measuring.
fn backlogs() -> impl Iterator<Item = u64> {
    let measures = std::env::args().any(|it| it == "--bench")
        && !std::env::args().any(|it| matches!(it.as_str(), "--test" | "--list"));
    (3..=if measures { 7 } else { 6 }).map(|exponent| 10_u64.pow(exponent))
}

#[divan::bench(args = backlogs(), sample_count = 100, sample_size = 1)]
fn put(bencher: Bencher<'_, '_>, backlog: u64) {
    let scene = RefCell::new(Scene::with(backlog, Scene::put));
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| scene.borrow_mut().pop_down_to(backlog))
        .bench_local_values(|()| {
            let scene = &mut *scene.borrow_mut();
            (0..BATCH).for_each(|_| scene.put());
        });
    assert_eq!(scene.into_inner().present(), backlog + BATCH);
}

#[divan::bench(args = backlogs(), sample_count = 100, sample_size = 1)]
fn take_and_ack(bencher: Bencher<'_, '_>, backlog: u64) {
    let scene = RefCell::new(Scene::with(backlog, Scene::put));
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| scene.borrow_mut().fill_up_to(backlog, Scene::put))
        .bench_local_values(|()| {
            let scene = &mut *scene.borrow_mut();
            for _ in 0..BATCH {
                let mode = TakeMode::Lease { ttr: Some(LEASE) };
                for task in scene.take(1, Selection::DEFAULT, mode) {
                    scene.ack(&task);
                }
            }
        });
    assert_eq!(scene.into_inner().present(), backlog - BATCH);
}

/// One take returns the most urgent task and all tasks with its key.
#[divan::bench(args = backlogs(), sample_count = 100, sample_size = 1)]
fn take_a_group_of_ten(bencher: Bencher<'_, '_>, backlog: u64) {
    let scene = RefCell::new(Scene::with(backlog, Scene::put_in_group));
    let held = RefCell::new(Vec::new());
    bencher
        .counter(ItemsCount::new(BATCH / GROUP))
        .with_inputs(|| {
            let scene = &mut *scene.borrow_mut();
            held.take().iter().for_each(|task| scene.ack(task));
            scene.fill_up_to(backlog, Scene::put_in_group);
        })
        .bench_local_values(|()| {
            let scene = &mut *scene.borrow_mut();
            let selection = Selection { group: true, ..Selection::DEFAULT };
            let mode = TakeMode::Lease { ttr: Some(LEASE) };
            for _ in 0..BATCH / GROUP {
                held.borrow_mut().extend(scene.take(1, selection, mode));
            }
        });
    assert_eq!(held.take().len() as u64, BATCH, "groups are whole");
}

/// Tasks whose time to live ends together, among as many tasks that live on.
#[divan::bench(args = backlogs(), sample_count = 100, sample_size = 1)]
fn expire(bencher: Bencher<'_, '_>, backlog: u64) {
    let scene = RefCell::new(Scene::with(backlog, |scene| scene.put_for(LONG)));
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| {
            let scene = &mut *scene.borrow_mut();
            scene.fill_up_to(backlog + BATCH, |scene| scene.put_for(Span::from_ms(1)));
        })
        .bench_local_values(|()| {
            let scene = &mut *scene.borrow_mut();
            scene.now = scene.now.after(Span::from_ms(1));
            scene.engine.handle_timeout(scene.now);
            scene.settle();
        });
    assert_eq!(scene.into_inner().present(), backlog, "exactly those expired");
}

/// The backlog is the total of all lanes.
#[divan::bench(args = backlogs(), sample_count = 100, sample_size = 1)]
fn publish_to_a_hundred_lanes(bencher: Bencher<'_, '_>, backlog: u64) {
    let mut scene = Scene::new();
    (0..LANES).for_each(|lane| scene.join(lane));
    scene.fill_up_to(backlog, Scene::publish);
    let scene = RefCell::new(scene);
    bencher
        .counter(ItemsCount::new(BATCH / GROUP))
        .with_inputs(|| {
            let scene = &mut *scene.borrow_mut();
            let most = u32::try_from((scene.present() - backlog) / LANES).unwrap_or(u32::MAX);
            if most > 0 {
                (0..LANES).for_each(|lane| scene.pop_from_lane(lane, most));
            }
        })
        .bench_local_values(|()| {
            let scene = &mut *scene.borrow_mut();
            (0..BATCH / GROUP).for_each(|_| scene.publish());
        });
    assert_eq!(scene.into_inner().present(), backlog + BATCH / GROUP * LANES);
}

/// An engine, and buffers for its output.
struct Scene {
    engine: Engine,
    now: Timestamp,
    /// The number of commands given.
    said: u64,
    changes: Vec<Change>,
    /// The reply to the last command.
    reply: Option<Reply>,
}

impl Scene {
    fn new() -> Self {
        let mut engine = Engine::new(Limits::default(), 1);
        let now = Timestamp::from_ms(1_000);
        engine.start(now, 1, Header::default());
        Self { engine, now, said: 0, changes: Vec::new(), reply: None }
    }

    fn with(backlog: u64, put: impl FnMut(&mut Self)) -> Self {
        let mut scene = Self::new();
        scene.fill_up_to(backlog, put);
        scene
    }

    fn fill_up_to(&mut self, tasks: u64, mut put: impl FnMut(&mut Self)) {
        while self.present() < tasks {
            put(self);
        }
    }

    fn pop_down_to(&mut self, tasks: u64) {
        while self.present() > tasks {
            self.take(1, Selection::DEFAULT, TakeMode::Pop);
        }
    }

    fn present(&self) -> u64 {
        self.engine.totals().present()
    }

    fn say(&mut self, command: Command<'_>) {
        self.said += 1;
        self.engine.apply(self.now, ClientId(1), RequestId(self.said), &command);
        self.settle();
    }

    /// Takes everything that the engine has to report.
    fn settle(&mut self) {
        self.engine.take_changes(&mut self.changes);
        self.changes.clear();
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply { reply, .. } = output {
                self.reply = Some(reply);
            }
        }
    }

    fn put_with(&mut self, key: Option<&[u8]>, ttl: TimeToLive) {
        // Priorities come in an order that no index can profit from.
        let mixed = self.said.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let priority = Some(mixed.cast_signed() % PRIORITIES);
        self.say(Command::Put(Put {
            ttl,
            priority,
            terms: Terms { key, ..Terms::NONE },
            ..Put::new(QUEUE, &PAYLOAD)
        }));
    }

    fn put(&mut self) {
        self.put_with(None, TimeToLive::Default);
    }

    fn put_in_group(&mut self) {
        let group = self.engine.totals().put / GROUP;
        self.put_with(Some(&group.to_be_bytes()), TimeToLive::Default);
    }

    fn put_for(&mut self, ttl: Span) {
        self.put_with(None, TimeToLive::For(ttl));
    }

    fn take(&mut self, count: u32, selection: Selection, mode: TakeMode) -> Vec<TaskRecord> {
        let (queues, wait) = (&[QUEUE][..], Wait::No);
        self.say(Command::Take(Take { queues, member: None, count, wait, selection, mode }));
        match self.reply.take() {
            Some(Reply::Tasks { tasks, .. }) => tasks,
            other => panic!("{other:?} to a take"),
        }
    }

    fn ack(&mut self, task: &TaskRecord) {
        let receipt = task.receipt().unwrap_or_else(|| panic!("{task:?} is not taken"));
        let held = Held { queue: QueueName::from(QUEUE), by: HeldBy::Receipt(receipt) };
        self.say(Command::Ack(Ack { held, payload: None, zombie: None }));
    }

    fn join(&mut self, lane: u64) {
        let member = &lane.to_be_bytes();
        self.say(Command::Member(MemberCommand::Join { topic: QUEUE, member, lease: Some(LONG) }));
    }

    fn publish(&mut self) {
        let deadline = Deadline::OfLane;
        let priority = Some(0);
        let (topic, payload, key) = (QUEUE, &PAYLOAD, None);
        self.say(Command::Publish(Publish {
            topic,
            payload,
            deadline,
            priority,
            terms: Terms { key, ..Terms::NONE },
        }));
    }

    fn pop_from_lane(&mut self, lane: u64, count: u32) {
        let member = &lane.to_be_bytes();
        self.say(Command::Take(Take {
            queues: &[QUEUE],
            member: Some(member),
            count,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Pop,
        }));
    }
}
