//! What the model expects where tasks take turns. Everything else of it is tested by the engine.

use pinpriq_proto::command::{
    Ack, Command, End, Fail, Held, HeldBy, Put, QueueCommand, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::settings::{
    Assignment, KEYHOLD, KEYLIMIT, KEYRATE, RANKING, RATE, Rate, SHARELIMIT, Value,
};
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::model::{Model, Survivors};

const CLIENT: ClientId = ClientId(1);
const LEASE: TakeMode = TakeMode::Lease { ttr: None };

/// A server with one queue.
struct Story {
    model: Model,
    now: u64,
    requests: u64,
}

impl Story {
    fn with(settings: &[Assignment<'_>]) -> Self {
        let mut model = Model::new(Limits::default());
        let now = 1_000;
        model.start(Survivors::default(), Timestamp::from_ms(now), 1, 0);
        let mut story = Self { model, now, requests: 0 };
        story.set(settings);
        story
    }

    fn ask(&mut self, command: &Command<'_>) -> Vec<Output> {
        self.requests += 1;
        let now = Timestamp::from_ms(self.now);
        self.model.apply(now, CLIENT, RequestId(self.requests), command);
        std::mem::take(&mut self.model.outputs)
    }

    fn set(&mut self, settings: &[Assignment<'_>]) -> Vec<Output> {
        self.ask(&Command::Queue(QueueCommand::Set { queue: b"q".as_slice().into(), settings }))
    }

    fn set_share(&mut self, share: &str, change: ShareChange) -> Vec<Output> {
        let share = share.as_bytes();
        self.ask(&Command::Queue(QueueCommand::Share { queue: b"q", share, change }))
    }

    /// Puts a task that is called like its payload.
    fn put(&mut self, share: &str, cost: u32, priority: i64, payload: &str) -> Vec<Output> {
        let share = Some(share.as_bytes());
        let terms = Terms::NONE.with(share, cost);
        let put = Put::new(b"q", payload.as_bytes());
        self.ask(&Command::Put(Put { terms, priority: Some(priority), ..put }))
    }

    fn put_key(&mut self, key: &str, payload: &str) {
        let terms = Terms::of(Some(key.as_bytes()), None);
        let put = Put::new(b"q", payload.as_bytes());
        self.ask(&Command::Put(Put { terms, priority: Some(0), ..put }));
    }

    fn wait(&mut self, wait: Wait, selection: Selection, mode: TakeMode) -> Vec<Output> {
        let (queues, member): (&[&[u8]], _) = (&[b"q"], None);
        self.ask(&Command::Take(Take { queues, member, count: 1, wait, selection, mode }))
    }

    /// Takes the next task, and returns what it is called and its receipt.
    fn take(&mut self) -> Option<(String, Receipt)> {
        match &self.wait(Wait::No, Selection::DEFAULT, LEASE)[..] {
            [Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }] => {
                let task = tasks.first()?;
                let name = String::from_utf8_lossy(&task.payload).into_owned();
                Some((name, task.receipt()?))
            }
            other => panic!("no tasks but {other:?}"),
        }
    }

    /// Takes tasks as long as there are some, and returns what they are called.
    fn drain(&mut self) -> String {
        std::iter::from_fn(|| self.take().map(|(name, _)| name)).collect::<Vec<_>>().join(" ")
    }

    fn ack(&mut self, receipt: Receipt) {
        let held = Held { queue: b"q".as_slice().into(), by: HeldBy::Receipt(receipt) };
        self.ask(&Command::Ack(Ack::new(held)));
    }

    fn fail(&mut self, receipt: Receipt, delay_ms: u64) {
        let held = Held { queue: b"q".as_slice().into(), by: HeldBy::Receipt(receipt) };
        let delay = Some(Span::from_ms(delay_ms));
        self.ask(&Command::Fail(Fail { delay, ..Fail::new(held) }));
    }
}

fn rate(count: u32, per_ms: u64) -> Value<'static> {
    Value::Rate(Rate { count, per: Span::from_ms(per_ms) })
}

const FAIR: Assignment<'static> = (RANKING, Value::Word(1));

fn refusals(outputs: &[Output]) -> Vec<RefusalKind> {
    let refusal = |output: &Output| match output {
        Output::Reply { reply: Reply::Refused(refusal), .. } => Some(refusal.kind),
        _ => None,
    };
    outputs.iter().filter_map(refusal).collect()
}

#[test]
fn shares_take_turns_within_a_number() {
    let mut story = Story::with(&[FAIR]);
    for name in ["a1", "a2", "a3", "a4"] {
        story.put("a", 1, 5, name);
    }
    story.put("b", 1, 5, "b1");
    story.put("b", 1, 5, "b2");
    story.put("a", 1, 1, "urgent");
    assert_eq!(story.drain(), "urgent a1 b1 a2 b2 a3 a4");
}

#[test]
fn a_quiet_share_waits_for_one_service() {
    let mut story = Story::with(&[FAIR]);
    for _ in 0..20 {
        story.put("a", 1, 0, "a");
    }
    for _ in 0..10 {
        story.take();
    }
    story.put("b", 1, 0, "b");
    let next: Vec<String> = (0..2).filter_map(|_| story.take()).map(|(name, _)| name).collect();
    assert!(next.contains(&"b".to_owned()), "{next:?}");
}

#[test]
fn a_share_pays_before_its_turn() {
    let mut story = Story::with(&[FAIR]);
    for _ in 0..3 {
        story.put("dear", 3, 0, "d");
    }
    for _ in 0..9 {
        story.put("cheap", 1, 0, "c");
    }
    assert_eq!(story.drain(), "c c d c c c d c c c d c");
}

#[test]
fn what_was_not_sent_is_given_back() {
    let mut story = Story::with(&[FAIR]);
    for name in ["a1", "a2"] {
        story.put("a", 5, 0, name);
    }
    let (name, receipt) = story.take().expect("there are tasks");
    assert_eq!(name, "a1");
    let unsent = [receipt];
    let farewell = Farewell::Ended { unsent: &unsent };
    story.model.disconnect(Timestamp::from_ms(story.now), CLIENT, farewell);
    story.put("b", 1, 0, "b1");
    assert_eq!(story.drain(), "a1 b1 a2");
}

#[test]
fn a_key_with_a_limit_is_passed_over() {
    let mut story = Story::with(&[(KEYLIMIT, Value::Number(1))]);
    for (key, name) in [("k", "k1"), ("k", "k2"), ("l", "l1")] {
        story.put_key(key, name);
    }
    let (name, receipt) = story.take().expect("there are tasks");
    assert_eq!((&*name, &*story.drain()), ("k1", "l1"));
    story.ack(receipt);
    assert_eq!(story.drain(), "k2");
}

#[test]
fn a_failure_holds_its_key_until_it_is_done() {
    let mut story = Story::with(&[(KEYHOLD, Value::Word(1))]);
    for (key, name) in [("k", "k1"), ("k", "k2"), ("k", "k3"), ("l", "l1")] {
        story.put_key(key, name);
    }
    let (first, second) = (story.take().expect("k1").1, story.take().expect("k2").1);
    story.fail(second, 10);
    story.fail(first, 20);
    assert_eq!(story.drain(), "l1");
    story.now += 10;
    assert_eq!(story.drain(), "", "the first by seq goes first");
    story.now += 10;
    let (name, first) = story.take().expect("k1 is ready");
    assert_eq!((&*name, &*story.drain()), ("k1", ""));
    story.ack(first);
    let (name, second) = story.take().expect("k2 is ready");
    assert_eq!((&*name, &*story.drain()), ("k2", ""));
    story.ack(second);
    assert_eq!(story.drain(), "k3");
}

#[test]
fn who_waits_is_woken_when_a_key_opens() {
    let mut story = Story::with(&[(KEYRATE, rate(2, 100))]);
    for _ in 0..4 {
        story.put_key("k", "k");
    }
    assert_eq!(story.drain(), "k k");
    assert!(story.wait(Wait::Forever, Selection::DEFAULT, LEASE).is_empty());
    assert_eq!(story.model.next_moment(), Some(Timestamp::from_ms(story.now + 50)));
    story.model.timeout(Timestamp::from_ms(story.now + 49));
    assert!(story.model.outputs.is_empty());
    story.model.timeout(Timestamp::from_ms(story.now + 50));
    assert_eq!(story.model.outputs.len(), 1);
}

#[test]
fn shares_have_limits_too() {
    let mut story = Story::with(&[(SHARELIMIT, Value::Number(1))]);
    for (share, name) in [("a", "a1"), ("a", "a2"), ("b", "b1")] {
        story.put(share, 1, 0, name);
    }
    assert_eq!(story.drain(), "a1 b1");
}

#[test]
fn a_share_may_have_a_weight_of_its_own() {
    let mut story = Story::with(&[FAIR]);
    story.set_share("b", ShareChange { weight: Some(2), ..ShareChange::default() });
    for _ in 0..3 {
        story.put("a", 1, 0, "a");
        story.put("b", 1, 0, "b");
        story.put("b", 1, 0, "b");
    }
    assert_eq!(story.drain(), "b a b b a b b a b");
}

#[test]
fn a_share_may_have_a_limit_and_a_rate_of_its_own() {
    let mut story = Story::with(&[]);
    let last = Selection { from: End::Max, ..Selection::DEFAULT };
    assert!(story.wait(Wait::Forever, last, LEASE).is_empty());
    let limit = Some(Own::Is(Some(1)));
    let outputs = story.set_share("a", ShareChange { limit, ..ShareChange::default() });
    assert_eq!(refusals(&outputs), [RefusalKind::BadArgument], "the queue is by key now");
    let rate = Some(Own::Is(Some(Rate { count: 1, per: Span::from_ms(100) })));
    story.set_share("b", ShareChange { rate, ..ShareChange::default() });
    for name in ["a", "a", "b", "b", "c", "c"] {
        story.put(name, 1, 0, name);
    }
    assert_eq!(story.drain(), "a b c c");
    story.now += 100;
    assert_eq!(story.drain(), "b");
    let limit = Some(Own::Default);
    story.set_share("a", ShareChange { limit, ..ShareChange::default() });
    assert_eq!(story.drain(), "a");
}

#[test]
fn a_rate_counts_costs_and_debts() {
    let mut story = Story::with(&[(RATE, rate(2, 100))]);
    for _ in 0..3 {
        story.put("a", 3, 0, "a");
    }
    assert_eq!(story.drain(), "a", "one token is enough");
    story.now += 99;
    assert_eq!(story.drain(), "");
    story.now += 1;
    assert_eq!(story.drain(), "a");
}

#[test]
fn another_order_is_refused_where_tasks_take_turns() {
    let mut story = Story::with(&[]);
    let last = Selection { from: End::Max, ..Selection::DEFAULT };
    assert!(story.wait(Wait::Forever, last, LEASE).is_empty());
    let outputs = story.set(&[FAIR]);
    assert_eq!(refusals(&outputs), [RefusalKind::BadArgument], "who waits hears it");
    let outputs = story.wait(Wait::No, last, LEASE);
    assert_eq!(refusals(&outputs), [RefusalKind::BadArgument]);
    story.put("a", 1, 0, "a1");
    story.put("a", 1, 0, "a2");
    let outputs = story.wait(Wait::No, Selection::PINPRIQ, TakeMode::Pop);
    assert!(
        matches!(&outputs[..], [Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }]
            if tasks.len() == 1 && &*tasks[0].payload == b"a1"),
        "{outputs:?}"
    );
}
