//! Engines whose queues have turns: what goes next in a few plain cases, and random commands after
//! each of which everything is checked.

use std::collections::VecDeque;

use super::*;
use crate::operations::buckets::BUCKETS_MAX;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Ack, Amendment, Command, Deed, Delay, Fail, Held, HeldBy, Put, QueueCommand, Release,
    Selection, Step, Take, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{KEYRATE, Rate, Value};
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, State, TaskRecord, Terms};
use pinpriq_proto::time::Span;
use pinpriq_testing::Dice;

const QUEUE: &[u8] = b"q";

/// An engine with one queue.
struct Bench {
    engine: Engine,
    now: Timestamp,
    request: u64,
    /// What was handed out and is not finished, as its clients know it.
    held: VecDeque<TaskRecord>,
    popped: VecDeque<TaskRecord>,
}

impl Bench {
    fn new(rules: Rules) -> Self {
        let now = Timestamp::from_ms(1_000);
        let mut engine = Engine::new(Limits::default(), 5);
        engine.start(now, 1, Header::default());
        let (held, popped) = (VecDeque::new(), VecDeque::new());
        let mut bench = Self { engine, now, request: 0, held, popped };
        bench.call(1, &Command::Queue(QueueCommand::Create { queue: QUEUE, settings: &[] }));
        bench.set(rules);
        bench
    }

    fn queue(&self) -> QueueSlot {
        self.engine.queues.find(QUEUE).unwrap()
    }

    fn set(&mut self, rules: Rules) {
        self.engine.set_rules(self.queue(), rules);
        self.engine.conclude();
        self.hear();
    }

    fn set_share(&mut self, share: &[u8], change: ShareChange) {
        self.call(1, &Command::Queue(QueueCommand::Share { queue: QUEUE, share, change }));
    }

    fn call(&mut self, client: u64, command: &Command<'_>) {
        self.request += 1;
        self.engine.apply(self.now, ClientId(client), RequestId(self.request), command);
        self.hear();
    }

    /// Reads what the engine has sent, and checks it.
    fn hear(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            let (Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }
            | Output::Delivery { tasks, popped, .. }) = output
            else {
                continue;
            };
            let known = if popped { &mut self.popped } else { &mut self.held };
            known.extend(tasks);
        }
        self.engine.check();
    }

    fn put(&mut self, key: Option<&[u8]>, priority: i64, delay: u64) {
        let terms = Terms { key, ..Terms::NONE };
        let delay = Delay::For(Span::from_ms(delay));
        let priority = Some(priority);
        let put = Put { terms, priority, delay, ..Put::new(QUEUE, b"work") };
        self.call(1, &Command::Put(put));
    }

    fn take(&mut self, client: u64, mode: TakeMode, wait: Wait) {
        let selection = Selection::DEFAULT;
        let queues = &[QUEUE][..];
        let take = Take { queues, member: None, count: 1, wait, selection, mode };
        self.call(client, &Command::Take(take));
    }

    /// Takes a task, and returns its key.
    fn next(&mut self) -> Option<Bytes> {
        self.take(2, TakeMode::Lease { ttr: None }, Wait::No);
        self.held.back().and_then(|task| task.terms.key.clone())
    }

    /// Takes any delayed task by its number, or a ready one.
    fn take_by_number(&mut self, client: u64) {
        let indexes = &self.engine.queues[self.queue()].indexes;
        let delayed = indexes.resting(StateKind::Waiting).next();
        if let Some(slot) = delayed.or_else(|| indexes.first(Selection::DEFAULT)) {
            let number = self.engine.tasks[slot].number();
            self.call(client, &Command::Numbered { number, deed: Deed::Take });
        }
    }

    fn order(&mut self, count: usize) -> String {
        let keys = (0..count).map(|_| self.next().unwrap_or_default());
        let keys: Vec<u8> = keys.flat_map(|key| key.to_vec()).collect();
        String::from_utf8(keys).unwrap()
    }

    fn receipt(task: &TaskRecord) -> Receipt {
        let State::Taken(lease) = &task.progress.state else { unreachable!("it was leased") };
        Receipt { number: task.number, grant: lease.grant }
    }

    fn by(task: &TaskRecord) -> Held<'static> {
        Held { queue: QUEUE.into(), by: HeldBy::Receipt(Self::receipt(task)) }
    }

    fn ack(&mut self, task: &TaskRecord) {
        let ack = Ack::new(Self::by(task));
        self.call(2, &Command::Ack(ack));
    }
}

fn fair() -> Rules {
    Rules { is_fair: true, ..Rules::default() }
}

#[test]
fn shares_take_turns_within_a_number() {
    let mut bench = Bench::new(fair());
    for key in [b"a", b"a", b"a", b"a", b"b", b"c", b"b"] {
        bench.put(Some(key), 0, 0);
    }
    bench.put(Some(b"u"), -1, 0);
    assert_eq!(bench.order(8), "uabcabaa");
}

#[test]
fn a_delayed_task_that_is_taken_is_charged_and_not_counted_out() {
    for others_come_first in [false, true] {
        let mut bench = Bench::new(fair());
        bench.put(Some(b"a"), 0, 0);
        bench.put(Some(b"a"), 0, 0);
        if others_come_first {
            bench.put(Some(b"b"), 0, 0);
        }
        bench.put(Some(b"a"), 0, 500);
        // What is counted is checked after each call.
        bench.take_by_number(3);
        assert_eq!(bench.held.len(), 1);
        if !others_come_first {
            bench.put(Some(b"b"), 0, 0);
        }
        assert_eq!(bench.order(3), "baa");
    }
}

#[test]
fn a_forecast_knows_tasks_that_have_no_place_in_a_row_yet() {
    let mut bench = Bench::new(fair());
    for at in 0..40 {
        bench.put(Some(b"a"), at % 2, 0);
    }
    for _ in 0..3 {
        bench.put(Some(b"b"), 0, 0);
    }
    let tasks = &bench.engine.tasks;
    let numbers = |slots: &mut dyn Iterator<Item = Slot>| -> Vec<u64> {
        slots.map(|slot| tasks[slot].number()).collect()
    };
    let foreseen = bench.engine.foresee(bench.queue(), None, numbers).unwrap();
    for _ in 0..43 {
        bench.take(2, TakeMode::Lease { ttr: None }, Wait::No);
    }
    let taken: Vec<u64> = bench.held.iter().map(|task| task.number).collect();
    assert_eq!(foreseen, taken);
}

#[test]
fn service_goes_by_weight() {
    let mut bench = Bench::new(fair());
    bench.set_share(b"b", ShareChange { weight: Some(2), ..ShareChange::default() });
    for _ in 0..6 {
        bench.put(Some(b"a"), 0, 0);
        bench.put(Some(b"b"), 0, 0);
    }
    assert_eq!(bench.order(6).matches('b').count(), 4);
}

#[test]
fn a_key_at_its_limit_is_passed_over() {
    let rules = Rules { is_by_key: true, key_limit: Some(1), ..Rules::default() };
    let mut bench = Bench::new(rules);
    for key in [b"a", b"a", b"b"] {
        bench.put(Some(key), 0, 0);
    }
    assert_eq!(bench.order(2), "ab");
    bench.take(3, TakeMode::Lease { ttr: None }, Wait::Forever);
    assert_eq!(bench.held.len(), 2, "nothing may go");
    let first = bench.held.pop_front().unwrap();
    bench.ack(&first);
    assert_eq!(bench.held.len(), 2, "the end of the lease lets the next one of its key go");
}

#[test]
fn who_waits_is_served_when_a_key_opens() {
    let rate = Rate { count: 1, per: Span::from_ms(100) };
    let rules = Rules { is_by_key: true, key_rate: Some(rate), ..Rules::default() };
    let mut bench = Bench::new(rules);
    bench.put(Some(b"a"), 0, 0);
    bench.put(Some(b"a"), 0, 0);
    bench.next();
    bench.take(3, TakeMode::Pop, Wait::Forever);
    assert_eq!(bench.engine.poll_timeout(), Some(bench.now.after(Span::from_ms(100))));
    bench.now = bench.now.after(Span::from_ms(100));
    bench.engine.handle_timeout(bench.now);
    bench.hear();
    assert_eq!(bench.popped.len(), 1);
}

#[test]
fn what_was_not_sent_costs_nothing() {
    let mut bench = Bench::new(fair());
    for key in [b"a", b"a", b"b", b"b"] {
        bench.put(Some(key), 0, 0);
    }
    assert_eq!(bench.order(2), "ab");
    let task = bench.held.pop_back().unwrap();
    bench.call(2, &Command::GiveBack(&[Bench::receipt(&task)]));
    assert_eq!(bench.order(3), "bab");
}

#[test]
fn what_was_not_sent_comes_back_by_the_weight_that_it_was_charged_by() {
    let mut bench = Bench::new(fair());
    for key in [b"a", b"a", b"b", b"b"] {
        bench.put(Some(key), 0, 0);
    }
    let change = ShareChange { weight: Some(2), ..ShareChange::default() };
    bench.call(1, &QueueCommand::Share { queue: QUEUE, share: b"a", change }.into());
    assert_eq!(bench.order(1), "a");
    let task = bench.held.pop_back().unwrap();
    bench.call(2, &Command::GiveBack(&[Bench::receipt(&task)]));
    assert_eq!(bench.order(3), "aba", "it had half as much left to pay as the other one");
}

#[test]
fn what_was_not_sent_and_is_over_gives_its_token_back() {
    let rate = Rate { count: 1, per: Span::from_ms(100_000) };
    let rules = Rules { is_by_key: true, key_rate: Some(rate), ..Rules::default() };
    let mut bench = Bench::new(rules);
    let (terms, ttl) = (Terms { key: Some(&b"a"[..]), ..Terms::NONE }, Span::from_ms(50));
    let ttl = TimeToLive::For(ttl);
    bench.call(1, &Command::Put(Put { terms, ttl, ..Put::new(QUEUE, b"short") }));
    bench.put(Some(b"a"), 0, 0);
    bench.next();
    let task = bench.held.pop_back().unwrap();
    bench.now = bench.now.after(Span::from_ms(60));
    bench.call(2, &Command::GiveBack(&[Bench::receipt(&task)]));
    assert_eq!(bench.order(1), "a", "the task behind it may go");
}

#[test]
fn an_undone_transaction_leaves_open_what_has_opened() {
    let rate = Rate { count: 1, per: Span::from_ms(100) };
    let rules = Rules { is_fair: true, is_by_key: true, key_rate: Some(rate), ..Rules::default() };
    let mut bench = Bench::new(rules);
    bench.put(Some(b"a"), 0, 0);
    bench.put(Some(b"a"), 0, 0);
    bench.next();
    bench.now = bench.now.after(Span::from_ms(100));
    let terms = Terms { key: Some(&b"a"[..]), ..Terms::NONE };
    let steps = [
        Step::Command(Command::Put(Put { terms, ..Put::new(QUEUE, b"new") })),
        Step::Bad("undone"),
    ];
    bench.call(2, &Command::Transaction(&steps));
    bench.held.clear();
    assert_eq!(bench.order(1), "a");
}

#[test]
fn an_emptied_queue_owes_nothing() {
    let mut bench = Bench::new(fair());
    for _ in 0..5 {
        bench.put(Some(b"a"), 0, 0);
    }
    bench.order(3);
    bench.call(1, &Command::Queue(QueueCommand::Truncate(QUEUE.into())));
    bench.held.clear();
    bench.put(Some(b"b"), 0, 0);
    bench.put(Some(b"a"), 0, 0);
    assert_eq!(bench.order(2), "ba");
}

#[test]
fn everything_agrees_after_random_commands() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let mut bench = Bench::new(some_rules(&mut dice));
        for _ in 0..150 {
            step(&mut bench, &mut dice);
        }
    }
}

fn some_rules(dice: &mut Dice) -> Rules {
    let is_by_key = dice.chance(70);
    let limit = |dice: &mut Dice| (is_by_key && dice.chance(50)).then(|| 1 + dice.below(3));
    let (key_limit, share_limit) = (limit(dice), limit(dice));
    let rate = |dice: &mut Dice| {
        let rate = Rate { count: 2, per: Span::from_ms(1 + dice.below(500)) };
        (is_by_key && dice.chance(40)).then_some(rate)
    };
    let (key_rate, share_rate) = (rate(dice), rate(dice));
    let is_fair = dice.chance(60);
    let ages = false;
    let key_hold = false;
    Rules { is_fair, ages, is_by_key, key_hold, key_limit, key_rate, share_limit, share_rate }
}

fn step(bench: &mut Bench, dice: &mut Dice) {
    let client = 2 + dice.below(3);
    let keys = [None, Some(&b"a"[..]), Some(b"b"), Some(b"c")];
    match dice.below(31) {
        30 => bench.take_by_number(client),
        0..=7 => {
            let delay = if dice.chance(20) { dice.below(300) } else { 0 };
            bench.put(dice.pick(&keys), dice.below(2).cast_signed(), delay);
        }
        8..=13 => {
            let ttr = dice.chance(50).then(|| Span::from_ms(1 + dice.below(500)));
            bench.take(client, TakeMode::Lease { ttr }, Wait::No);
        }
        14 => bench.take(client, TakeMode::Pop, Wait::No),
        15 => bench.take(client, TakeMode::Lease { ttr: None }, Wait::For(Span::from_ms(200))),
        16 => bench.take(client, TakeMode::Pop, Wait::For(Span::from_ms(300))),
        17 => {
            let popped: Vec<TaskRecord> = bench.popped.pop_back().into_iter().collect();
            bench.call(client, &Command::PutBack(&popped));
        }
        18..=25 => end_a_lease(bench, dice, client),
        26 => {
            bench.now = bench.now.after(Span::from_ms(dice.below(400)));
            bench.engine.handle_timeout(bench.now);
            bench.hear();
        }
        27 => change_rules(bench, dice),
        28 if dice.chance(20) => {
            bench.call(client, &Command::Queue(QueueCommand::Truncate(QUEUE.into())));
        }
        29 if dice.chance(20) => {
            bench.engine.disconnect(bench.now, ClientId(client), Farewell::Ended { unsent: &[] });
            bench.hear();
        }
        _ => transact(bench, dice, client),
    }
}

fn end_a_lease(bench: &mut Bench, dice: &mut Dice, client: u64) {
    let at = dice.index(bench.held.len());
    let Some(task) = bench.held.remove(at) else { return };
    let held = Bench::by(&task);
    let cost = dice.chance(30).then(|| dice.pick(&[1, 2, 9]));
    match dice.below(4) {
        0 => {
            let (delay, tail) = (Span::from_ms(dice.below(2) * 100), dice.chance(30));
            let amendment = Amendment::default();
            bench.call(
                client,
                &Command::Release(Release { delay, amendment, tail, cost, ..Release::new(held) }),
            );
        }
        1 => {
            let (reason, delay, payload) = (None, None, None);
            bench.call(client, &Command::Fail(Fail { reason, delay, payload, ..Fail::new(held) }));
        }
        2 => bench.call(client, &Command::GiveBack(&[Bench::receipt(&task)])),
        _ => bench.call(client, &Command::Ack(Ack { cost, ..Ack::new(held) })),
    }
}

fn change_rules(bench: &mut Bench, dice: &mut Dice) {
    let rules = some_rules(dice);
    if rules.is_by_key {
        let limit = dice.pick(&[Own::Default, Own::Is(None), Own::Is(Some(1))]);
        let (weight, rate) = (Some(dice.pick(&[1, 2, 7])), None);
        bench.set_share(b"a", ShareChange { weight, limit: Some(limit), rate });
    }
    bench.set(rules);
}

fn transact(bench: &mut Bench, dice: &mut Dice, client: u64) {
    let ids: Vec<Vec<u8>> = bench
        .engine
        .tasks
        .slots()
        .map(|slot| bench.engine.tasks[slot].id().to_string().into_bytes())
        .collect();
    let some: Vec<&[u8]> = ids.iter().filter(|_| dice.chance(20)).map(Vec::as_slice).collect();
    let acked = bench.held.front().map(|task| Ack { cost: Some(5), ..Ack::new(Bench::by(task)) });
    let terms = Terms { key: Some(&b"a"[..]), ..Terms::NONE };
    let mut steps = vec![
        Step::Command(Command::Kill { queue: QUEUE.into(), ids: &some }),
        Step::Command(Command::Put(Put { terms, ..Put::new(QUEUE, b"new") })),
    ];
    steps.extend(acked.map(|ack| Step::Command(Command::Ack(ack))));
    if dice.chance(60) {
        steps.push(Step::Bad("undone"));
    }
    let before = history(&bench.engine, bench.queue());
    let is_undone = matches!(steps.last(), Some(Step::Bad(_)));
    bench.call(client, &Command::Transaction(&steps));
    let after = history(&bench.engine, bench.queue());
    assert!(!is_undone || before == after, "an undone transaction changes no turn");
}

/// What does not follow from the tasks.
fn history(engine: &Engine, queue: QueueSlot) -> Option<String> {
    engine.queues[queue].turns.as_ref().map(|turns| turns.history())
}

/// Puts a task of a key into a queue and pops it, without a check.
fn pass(engine: &mut Engine, queue: &[u8], key: &[u8]) {
    let (now, client) = (engine.now, ClientId(1));
    let put = Put { terms: Terms { key: Some(key), ..Terms::NONE }, ..Put::new(queue, b"work") };
    let (selection, mode) = (Selection::DEFAULT, TakeMode::Pop);
    let queues = &[queue][..];
    let take = Take { queues, member: None, count: 1, wait: Wait::No, selection, mode };
    for command in [Command::Put(put), Command::Take(take)] {
        engine.apply(now, client, RequestId(1), &command);
        while engine.poll_output().is_some() {}
    }
}

#[test]
fn fullest_buckets_of_all_queues_are_forgotten_beyond_the_bound() {
    // The queue that keeps its buckets comes first in the order of names.
    let Bench { mut engine, now, .. } = Bench::new(Rules::default());
    for (queue, count) in [(&b"closed"[..], 1), (b"open", 1_000)] {
        let rate = Value::Rate(Rate { count, per: Span::from_ms(1_000_000) });
        let create = QueueCommand::Create { queue, settings: &[(KEYRATE, rate)] };
        engine.apply(now, ClientId(1), RequestId(1), &Command::Queue(create));
    }
    for number in 0..BUCKETS_MAX * 3 / 5 {
        pass(&mut engine, b"closed", number.to_string().as_bytes());
        pass(&mut engine, b"open", number.to_string().as_bytes());
    }
    let kept = |queue| {
        let queue = engine.queues.find(queue).unwrap();
        engine.queues[queue].turns.as_ref().unwrap().buckets()
    };
    let (closed, open) = (kept(&b"closed"[..]), kept(b"open"));
    assert_eq!(closed, BUCKETS_MAX * 3 / 5);
    assert!((BUCKETS_MAX * 19 / 20..=BUCKETS_MAX).contains(&(closed + open)), "{open} are open");
    engine.check();
}
