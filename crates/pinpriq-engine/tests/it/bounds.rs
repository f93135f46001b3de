//! Bounds and limits of counters that need more tasks than a script should have.

mod batches;
mod bulk;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pinpriq_engine::{Applied, Engine};
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Ack, Bulk, BulkChange, Command, Delay, End, Fail, Held, HeldBy, Order, Peek, Put, QueueCommand,
    QueueName, Selection, Step, Take, TakeMode, TimeToLive, Touch, Wait,
};
use pinpriq_proto::export::{Export, ExportPlace};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::{
    GIVEN_ID_OVERHEAD_BYTES, LOOKED_BYTES_MAX, LOOKED_MAX, Limits, NAME_BYTES_MAX,
    ORIGIN_OVERHEAD_BYTES, STEPS_PER_TIMEOUT, TASK_OVERHEAD_BYTES, TASKS_PER_ANSWER_MAX,
    TRANSACTION_COPIES_MAX, UNIQUE_OVERHEAD_BYTES, queue_bytes,
};
use pinpriq_proto::looking::{LeasePlace, Leases, Scan};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{Outcome, Output, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::settings::{
    ATTEMPTS, Assignment, CAPACITY, DEADLETTER, IDS, Ids, ONEXPIRY, TTL, TTR, Value,
};
use pinpriq_proto::task::{ClientId, RequestId, StateKind, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

const QUEUE: &[u8] = b"jobs";
const WORKER: ClientId = ClientId(1);
const NOW: Timestamp = Timestamp::from_ms(1_000);
/// More than one call of the engine handles.
const MANY: usize = STEPS_PER_TIMEOUT + 500;
const SHORT: TimeToLive = TimeToLive::For(Span::from_ms(10));

fn started(limits: Limits, now: Timestamp) -> Engine {
    let mut engine = Engine::new(limits, 5);
    engine.start(now, 1, Header::default());
    engine
}

/// Returns the reply to a command that does not wait. Drops all other outputs.
#[track_caller]
fn ask(engine: &mut Engine, now: Timestamp, command: Command<'_>) -> Reply {
    let request = RequestId(7);
    engine.apply(now, WORKER, request, &command);
    let outputs: Vec<Output> = std::iter::from_fn(|| engine.poll_output()).collect();
    let reply = outputs.into_iter().find_map(|output| match output {
        Output::Reply { request: own, reply, .. } if own == request => Some(reply),
        _ => None,
    });
    reply.expect("a reply at once")
}

#[track_caller]
fn refusal(reply: Reply) -> RefusalKind {
    match reply {
        Reply::Refused(refusal) => refusal.kind,
        other => panic!("not refused but {other:?}"),
    }
}

#[track_caller]
fn tasks(reply: Reply) -> Vec<TaskRecord> {
    match reply {
        Reply::Tasks { tasks, .. } | Reply::Shown(tasks) => tasks,
        other => panic!("no tasks but {other:?}"),
    }
}

fn take(count: u32, selection: Selection, mode: TakeMode) -> Command<'static> {
    Command::Take(Take { queues: &[QUEUE], member: None, count, wait: Wait::No, selection, mode })
}

fn leased(ttr: u64) -> TakeMode {
    TakeMode::Lease { ttr: Some(Span::from_ms(ttr)) }
}

fn set<'a>(settings: &'a [Assignment<'a>]) -> Command<'a> {
    Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings })
}

fn held(by: HeldBy<'_>) -> Command<'_> {
    Command::Ack(Ack::new(Held { queue: QUEUE.into(), by }))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of commands")]
fn values_that_no_door_lets_through_are_refused() {
    const LONG: Span = Span::from_ms(253_402_300_800_000);
    let queue = QueueName::from(QUEUE);
    let put = Put::new(QUEUE, b"p");
    let selection = Selection::DEFAULT;
    let take = Take {
        queues: &[QUEUE],
        member: None,
        count: 1,
        wait: Wait::No,
        selection,
        mode: TakeMode::Pop,
    };
    let none = Take { count: 0, ..take };
    let unique = Unique { key: b"u", window: Some(LONG), on_duplicate: OnDuplicate::Keep };
    let news = Publish {
        topic: b"news",
        payload: b"p",
        terms: Terms::NONE,
        priority: Some(0),
        deadline: Deadline::After(LONG),
    };
    let every = NewSchedule {
        name: b"s",
        queue: QUEUE,
        payload: b"p",
        terms: Terms::NONE,
        priority: Some(0),
        ttl: None,
        when: When::Every { every: LONG, at: None },
        on_missed: OnMissed::One,
        overlap: Overlap::Allow,
    };
    let redrive = Command::Redrive { queue, count: 0 };
    let bulk = Bulk::new(queue, BulkChange::Kill);
    let leases = Command::Leases(Leases { queue: None, after: None, count: 0 });
    let names = &[NamePattern::exactly(QUEUE)];
    let scan = Scan { queue, after: 0, count: 0, state: None, key: None, batch: None };
    let lease = Some(LONG);
    let commands = [
        (Command::Put(Put { delay: Delay::For(LONG), ..put }), "the delay of LONG"),
        (Command::Put(Put { ttl: TimeToLive::For(LONG), ..put }), "the TTL of LONG"),
        (Command::Put(Put { unique: Some(unique), ..put }), "the window of LONG"),
        (Command::Take(Take { wait: Wait::For(LONG), ..take }), "the wait of LONG"),
        (Command::Publish(news), "the TTL of LONG"),
        (MemberCommand::Beat { member: b"m", lease }.into(), "the lease of LONG"),
        (MemberCommand::Join { topic: b"t", member: b"m", lease }.into(), "the lease of LONG"),
        (ScheduleCommand::Set(every).into(), "the time between slots of LONG"),
        (Command::Take(none), "the count must be at least 1"),
        (Command::TakeDone { done: &[], take: none }, "the count must be at least 1"),
        (
            Command::Peek(Peek { queue, selection, state: None, count: 0 }),
            "the count must be at least 1",
        ),
        (
            Command::Plow { queue, count: Some(0), delay: Span::ZERO, ttl: None },
            "the count must be at least 1",
        ),
        (
            Command::Export(Export { queue: QUEUE, after: ExportPlace::Start, count: 0 }),
            "the count must be at least 1",
        ),
        (Command::Scan(scan), "the count must be at least 1"),
        (
            Command::Move { from: queue, to: b"x", count: 0, state: StateKind::Ready },
            "the count must be at least 1",
        ),
        (leases, "the count must be at least 1"),
        (Command::Within { names, command: &leases }, "the count must be at least 1"),
        (redrive, "the count must be at least 1"),
        (Command::Bulk(Bulk { count: 0, ..bulk }), "the count must be at least 1"),
        (Command::Bulk(Bulk { change: BulkChange::Delay(LONG), ..bulk }), "the delay of LONG"),
        (Command::Within { names, command: &redrive }, "the count must be at least 1"),
        (Command::Credit(0), "the credit must be at least 1"),
        (Command::Take(Take { queues: &[], ..take }), "a take needs a queue"),
        (
            Command::Subscribe {
                queues: &[],
                member: None,
                selection,
                mode: TakeMode::Pop,
                recall: false,
            },
            "a subscription needs a queue",
        ),
    ];
    for (command, sentence) in commands {
        let wanted = sentence.replace("LONG", "253402300800000 ms ends after the year 9999");
        match ask(&mut started(Limits::default(), NOW), NOW, command) {
            Reply::Refused(refusal) => assert_eq!(refusal.sentence, wanted, "{command:?}"),
            other => panic!("{command:?} is answered {other:?}"),
        }
    }
}

#[test]
fn group_is_cut_at_the_most_that_one_answer_holds() {
    let mut engine = started(Limits::default(), NOW);
    let most = TASKS_PER_ANSWER_MAX;
    // The first has a priority. Its companions have none, so the newest of them comes first.
    for index in 0..most + 3 {
        let priority = (index == 0).then_some(0);
        let put = Put {
            priority,
            terms: Terms { key: Some(b"k"), ..Terms::NONE },
            ..Put::new(QUEUE, b"")
        };
        engine.apply(NOW, WORKER, RequestId(0), &Command::Put(put));
        engine.poll_output();
    }
    let answer = tasks(ask(&mut engine, NOW, take(2, Selection::PINPRIQ, TakeMode::Pop)));
    assert_eq!(answer.len(), most);
    assert_eq!((answer[0].number, answer[1].number), (1, most as u64 + 3));
    // The three oldest stay where they are until a companion with a priority comes.
    let left = Peek {
        queue: QUEUE.into(),
        selection: Selection::DEFAULT,
        state: Some(StateKind::Ready),
        count: 9,
    };
    let left = tasks(ask(&mut engine, NOW, Command::Peek(left)));
    assert_eq!(left.iter().map(|task| task.number).collect::<Vec<_>>(), [4, 3, 2]);
    let put = Put { terms: Terms { key: Some(b"k"), ..Terms::NONE }, ..Put::new(QUEUE, b"") };
    ask(&mut engine, NOW, Command::Put(put));
    let answer = tasks(ask(&mut engine, NOW, take(1, Selection::PINPRIQ, TakeMode::Pop)));
    assert_eq!(answer.len(), 4);
    engine.check();
}

#[test]
fn answer_is_cut_however_many_are_asked_for() {
    let mut engine = started(Limits::default(), NOW);
    for _ in 0..=TASKS_PER_ANSWER_MAX {
        engine.apply(NOW, WORKER, RequestId(0), &Command::Put(Put::new(QUEUE, b"")));
        engine.poll_output();
    }
    let peek =
        Peek { queue: QUEUE.into(), selection: Selection::DEFAULT, state: None, count: u32::MAX };
    let shown = tasks(ask(&mut engine, NOW, Command::Peek(peek)));
    assert_eq!(shown.len(), TASKS_PER_ANSWER_MAX);
    let all = take(u32::MAX, Selection::DEFAULT, TakeMode::Pop);
    assert_eq!(tasks(ask(&mut engine, NOW, all)).len(), TASKS_PER_ANSWER_MAX);
    let all = take(u32::MAX, Selection::DEFAULT, TakeMode::Pop);
    assert_eq!(tasks(ask(&mut engine, NOW, all)).len(), 1);
}

#[test]
fn mass_expiry_is_spread_over_calls_and_never_seen() {
    let mut engine = started(Limits::default(), NOW);
    for _ in 0..MANY {
        let ttl = TimeToLive::For(Span::from_ms(10));
        ask(&mut engine, NOW, Command::Put(Put { ttl, ..Put::new(QUEUE, b"") }));
    }
    let last = MANY.to_string();
    let over = NOW.after(Span::from_ms(10));
    engine.handle_timeout(over);
    assert_eq!(engine.totals().expired, STEPS_PER_TIMEOUT as u64);
    assert_eq!(engine.poll_timeout(), Some(over), "there is more to do at once");
    engine.check();
    // The others have not been removed yet, but no client can see that.
    let peek = Peek { queue: QUEUE.into(), selection: Selection::DEFAULT, state: None, count: 9 };
    assert_eq!(tasks(ask(&mut engine, over, Command::Peek(peek))), []);
    let get = Command::Get { queue: QUEUE.into(), id: last.as_bytes() };
    let Reply::Ended(ending) = ask(&mut engine, over, get) else { panic!("it has left") };
    assert_eq!((ending.outcome, ending.at), (Outcome::Expired, over));
    assert_eq!(engine.totals().expired, MANY as u64);
    assert_eq!(engine.poll_timeout(), None);
    engine.check();
}

/// Puts more tasks into another queue than one call of the engine handles, and lets all of them end
/// in ten milliseconds. So other things that end then are still there. Returns that moment.
fn crowd(engine: &mut Engine) -> Timestamp {
    for _ in 0..MANY {
        ask(engine, NOW, Command::Put(Put { ttl: SHORT, ..Put::new(b"elsewhere", b"") }));
    }
    NOW.after(Span::from_ms(10))
}

#[test]
fn take_passes_over_what_is_over_though_its_deadline_was_not_reached_yet() {
    let mut engine = started(Limits::default(), NOW);
    let over = crowd(&mut engine);
    ask(&mut engine, NOW, Command::Put(Put { ttl: SHORT, ..Put::new(QUEUE, b"over") }));
    ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, b"there")));
    let answer = tasks(ask(&mut engine, over, take(9, Selection::DEFAULT, TakeMode::Pop)));
    assert_eq!(answer.iter().map(|task| &*task.payload).collect::<Vec<_>>(), [b"there"]);
    assert_eq!(engine.totals().expired, STEPS_PER_TIMEOUT as u64 + 1);
    engine.check();
}

#[test]
fn group_leaves_out_what_is_over_though_its_deadline_was_not_reached_yet() {
    let mut engine = started(Limits::default(), NOW);
    let over = crowd(&mut engine);
    let member = |payload| Put {
        terms: Terms { key: Some(b"k"), ..Terms::NONE },
        ..Put::new(QUEUE, payload)
    };
    ask(&mut engine, NOW, Command::Put(member(b"there")));
    ask(&mut engine, NOW, Command::Put(Put { ttl: SHORT, ..member(b"over") }));
    ask(&mut engine, NOW, Command::Put(Put { priority: None, ..member(b"there") }));
    let selection = Selection { group: true, ..Selection::DEFAULT };
    let answer = tasks(ask(&mut engine, over, take(1, selection, TakeMode::Pop)));
    assert_eq!(answer.iter().map(|task| &*task.payload).collect::<Vec<_>>(), [b"there"; 2]);
    assert_eq!(engine.totals().expired, STEPS_PER_TIMEOUT as u64 + 1);
    engine.check();
}

#[test]
fn what_comes_late_comes_in_favour_of_who_waits() {
    let at = |ms| NOW.after(Span::from_ms(ms));
    let mut engine = started(Limits::default(), NOW);
    let delay = Delay::For(Span::from_ms(20));
    ask(&mut engine, NOW, Command::Put(Put { delay, ..Put::new(QUEUE, b"p") }));
    let wait = Wait::For(Span::from_ms(10));
    let mode = TakeMode::Pop;
    let take = Take {
        queues: &[QUEUE],
        member: None,
        count: 1,
        wait,
        selection: Selection::DEFAULT,
        mode,
    };
    engine.apply(NOW, WORKER, RequestId(8), &Command::Take(take));
    // The engine was not called since, and both moments have passed.
    engine.handle_timeout(at(30));
    let Some(Output::Reply { reply, .. }) = engine.poll_output() else { panic!("no answer") };
    assert_eq!(tasks(reply).len(), 1, "the task is ready by now");
}

#[test]
fn receipt_is_stale_though_its_deadline_was_not_reached_yet() {
    let mut engine = started(Limits::default(), NOW);
    for _ in 0..3 * MANY {
        ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, b"")));
    }
    let count = u32::try_from(3 * MANY).unwrap();
    let taken = tasks(ask(&mut engine, NOW, take(count, Selection::DEFAULT, leased(10))));
    let over = NOW.after(Span::from_ms(10));
    // Each call fires some of the deadlines. These two are among the last.
    let [.., other, last] = taken.as_slice() else { panic!("nothing was taken") };
    let receipt = last.receipt().unwrap();
    let answer = ask(&mut engine, over, held(HeldBy::Receipt(receipt)));
    assert_eq!(refusal(answer), RefusalKind::Stale);
    let id = other.id.to_string();
    let answer = ask(&mut engine, over, held(HeldBy::Id(id.as_bytes())));
    assert_eq!(refusal(answer), RefusalKind::NotTaken);
    assert_eq!(engine.totals().acked, 0);
    engine.check();
}

#[test]
fn setting_refuses_a_value_of_another_kind() {
    let mut engine = started(Limits::default(), NOW);
    let reply = ask(&mut engine, NOW, set(&[(TTR, Value::None), (TTL, Value::Word(0))]));
    let Reply::Refused(refusal) = reply else { panic!("not refused but {reply:?}") };
    assert_eq!(refusal.kind, RefusalKind::BadArgument);
    let show = Command::Queue(QueueCommand::Show(QUEUE.into()));
    let reply = ask(&mut engine, NOW, show);
    assert!(matches!(reply, Reply::Refused(_)), "nothing was made but {reply:?}");
}

#[test]
fn given_id_is_free_at_the_end_of_its_task() {
    let mut engine = started(Limits::default(), NOW);
    ask(&mut engine, NOW, set(&[(IDS, Ids::Given.into())]));
    let mut put = |now: Timestamp, id: &str| {
        let ttl = TimeToLive::For(Span::from_ms(10));
        let put = Put { ttl, id: Some(id.as_bytes()), ..Put::new(QUEUE, b"") };
        ask(&mut engine, now, Command::Put(put))
    };
    for index in 0..MANY {
        put(NOW, &index.to_string());
    }
    let last = (MANY - 1).to_string();
    assert_eq!(refusal(put(NOW, &last)), RefusalKind::Exists);
    assert!(matches!(put(NOW.after(Span::from_ms(10)), &last), Reply::Put(_)));
    engine.check();
}

#[test]
fn emptied_queue_is_freed_bit_by_bit() {
    let mut engine = started(Limits::default(), NOW);
    for _ in 0..MANY {
        ask(
            &mut engine,
            NOW,
            Command::Put(Put {
                terms: Terms { key: Some(b"k"), ..Terms::NONE },
                ..Put::new(QUEUE, b"p")
            }),
        );
    }
    let taken = tasks(ask(&mut engine, NOW, take(1, Selection::DEFAULT, leased(10))));
    // Whichever task is freed last, the two awaiters get their replies from two calls at most.
    let wait = Wait::For(Span::from_ms(50));
    for id in ["1", "2"] {
        let command =
            Command::Await { queue: QUEUE.into(), id: id.as_bytes(), wait, result: false };
        let applied = engine.apply(NOW, ClientId(2), RequestId(1), &command);
        assert_eq!(applied, Applied::Waits);
    }
    let truncate = Command::Queue(QueueCommand::Truncate(QUEUE.into()));
    assert_eq!(ask(&mut engine, NOW, truncate), Reply::Count(MANY as u64));
    engine.check();
    let receipt = taken[0].receipt().unwrap();
    let answer = ask(&mut engine, NOW, held(HeldBy::Receipt(receipt)));
    assert_eq!(refusal(answer), RefusalKind::Stale);
    let mut killed = 0;
    let mut calls = 0;
    while engine.poll_timeout() == Some(NOW) && calls < 9 {
        engine.handle_timeout(NOW);
        engine.check();
        calls += 1;
        while let Some(output) = engine.poll_output() {
            let Output::Reply { reply, .. } = output else { panic!("no reply") };
            assert_eq!(reply, Reply::Outcome(Outcome::Killed, None));
            killed += 1;
        }
    }
    assert_eq!((killed, calls), (2, 2));
    assert_eq!(engine.poll_timeout(), None);
}

#[test]
fn awaiter_of_an_emptied_queue_hears_killed_whatever_comes_first() {
    let mut engine = started(Limits::default(), NOW);
    ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, b"")));
    let wait = Wait::For(Span::from_ms(5));
    let command = Command::Await { queue: QUEUE.into(), id: b"1", wait, result: false };
    engine.apply(NOW, ClientId(2), RequestId(1), &command);
    ask(&mut engine, NOW, Command::Queue(QueueCommand::Drop(QUEUE)));
    // Its time is up before the task is freed.
    engine.end_waits(NOW, ClientId(2));
    let Some(Output::Reply { reply, .. }) = engine.poll_output() else { panic!("no reply") };
    assert_eq!(reply, Reply::Outcome(Outcome::Killed, None));
    engine.handle_timeout(NOW);
    assert_eq!(engine.poll_output(), None, "each is notified once");
    engine.check();
}

#[test]
fn puts_are_busy_while_there_is_no_room() {
    let limits = Limits { bytes_max: 1_000_000, ..Limits::default() };
    let mut engine = started(limits, NOW);
    let large = vec![0; 600_000];
    assert!(!engine.is_busy_for(600_000));
    assert!(matches!(ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, &large))), Reply::Put(_)));
    assert!(engine.is_busy_for(600_000));
    let answer = ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, &large)));
    assert_eq!(refusal(answer), RefusalKind::Busy);
    // Operations that make room still work, and afterwards there is room.
    assert_eq!(tasks(ask(&mut engine, NOW, take(1, Selection::DEFAULT, TakeMode::Pop))).len(), 1);
    assert!(matches!(ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, &large))), Reply::Put(_)));
    // The store may have no room either.
    engine.set_room(Room::Low);
    let answer = ask(&mut engine, NOW, Command::Put(Put::new(b"others", b"")));
    assert_eq!(refusal(answer), RefusalKind::Busy);
    assert_eq!(tasks(ask(&mut engine, NOW, take(1, Selection::DEFAULT, TakeMode::Pop))).len(), 1);
    engine.set_room(Room::Enough);
    let answer = ask(&mut engine, NOW, Command::Put(Put::new(b"others", b"")));
    assert!(matches!(answer, Reply::Put(_)));
    engine.check();
}

#[test]
fn much_that_is_due_at_once_comes_in_small_batches() {
    let mut engine = started(Limits::default(), NOW);
    let settings = [(DEADLETTER, Value::Bytes(b"dead")), (ONEXPIRY, Value::Word(1))];
    ask(&mut engine, NOW, set(&settings));
    let large = vec![0; 1 << 20];
    let ttl = TimeToLive::For(Span::from_ms(1));
    for _ in 0..40 {
        ask(&mut engine, NOW, Command::Put(Put { ttl, ..Put::new(QUEUE, &large) }));
    }
    let later = NOW.after(Span::from_ms(1));
    for dead in [16, 32, 40] {
        assert!(engine.poll_timeout().is_some_and(|at| at <= later), "there is more to do");
        engine.handle_timeout(later);
        assert_eq!(engine.totals().dead, dead);
    }
    assert_eq!(engine.poll_timeout(), None);

    // Puts that have waited for room come in like that too.
    let other: &[u8] = b"other";
    let bound = [(CAPACITY, Value::Number(1))];
    let create = QueueCommand::Create { queue: other, settings: &bound };
    ask(&mut engine, later, Command::Queue(create));
    ask(&mut engine, later, Command::Put(Put::new(other, b"")));
    for number in 0..20 {
        let (put, room) = (Put::new(other, &large), Span::from_ms(1_000));
        let request = RequestId(number);
        engine.apply(later, WORKER, request, &Command::PutInLine { put: &put, room });
    }
    let put_before = engine.totals().put;
    let settings = &[(CAPACITY, Value::None)];
    let set = QueueCommand::Set { queue: other.into(), settings };
    engine.apply(later, WORKER, RequestId(99), &Command::Queue(set));
    assert_eq!(engine.totals().put - put_before, 16);
    assert!(engine.poll_timeout().is_some_and(|at| at <= later), "there is more to do");
    engine.handle_timeout(later);
    assert_eq!(engine.totals().put - put_before, 20);
    engine.check();
}

#[test]
fn time_ends_with_the_year_9999() {
    let now = Timestamp::from_ms(Timestamp::MAX.ms() - 10);
    let mut engine = started(Limits::default(), now);
    let mut put = |span: u64| {
        let ttl = TimeToLive::For(Span::from_ms(span));
        ask(&mut engine, now, Command::Put(Put { ttl, ..Put::new(QUEUE, b"") }))
    };
    assert!(matches!(put(10), Reply::Put(_)));
    assert_eq!(refusal(put(11)), RefusalKind::BadArgument);
    assert_eq!(refusal(put(u64::MAX)), RefusalKind::BadArgument);
    let touch = |by| {
        let held = Held { queue: QUEUE.into(), by: HeldBy::Id(b"1") };
        Command::Touch(Touch { by: Some(Span::from_ms(by)), ..Touch::new(held) })
    };
    assert_eq!(refusal(ask(&mut engine, now, touch(1))), RefusalKind::BadArgument);
    engine.handle_timeout(Timestamp::MAX);
    assert_eq!(engine.totals().expired, 1);
    engine.check();
}

#[test]
fn time_never_goes_back() {
    let mut engine = started(Limits::default(), NOW);
    engine.handle_timeout(NOW);
    let earlier = Timestamp::from_ms(NOW.ms() - 1);
    let back = catch_unwind(AssertUnwindSafe(|| engine.handle_timeout(earlier)));
    assert!(back.is_err(), "a clock that goes back is a bug of the caller");
}

#[test]
fn start_needs_a_new_incarnation_and_a_clock_that_goes_on() {
    let header = Header { incarnation: 4, now: NOW, last_number: 9 };
    let start = |now, incarnation| {
        catch_unwind(|| Engine::new(Limits::default(), 1).start(now, incarnation, header))
    };
    assert!(start(NOW, 5).is_ok());
    assert!(start(NOW, 4).is_err(), "an incarnation that was there already");
    assert!(start(Timestamp::from_ms(NOW.ms() - 1), 5).is_err(), "a clock that went back");
}

#[test]
fn drawn_ids_are_never_drawn_again() {
    for ids in [Ids::Sequence, Ids::Time64, Ids::Uuid] {
        let mut seen = BTreeSet::new();
        let mut header = Header::default();
        for incarnation in 1..4 {
            // Nothing is stored, and the clock does not move.
            let mut engine = Engine::new(Limits::default(), 5);
            engine.start(NOW, incarnation, header);
            ask(&mut engine, NOW, set(&[(IDS, ids.into())]));
            for _ in 0..1_000 {
                let reply = ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, b"")));
                let Reply::Put(id) = reply else { panic!("no id but {reply:?}") };
                assert!(seen.insert(id.clone()), "{ids:?} drew {id} twice");
            }
            header = engine.header();
        }
    }
}

#[test]
fn maximum_is_the_mirror_of_the_minimum() {
    let mut engine = started(Limits::default(), NOW);
    for index in 0..200_u64 {
        let priority = i64::try_from(index * 7_919 % 13).unwrap() - 6;
        let extreme = match index {
            50 => i64::MIN,
            60 => i64::MAX,
            _ => priority,
        };
        let payload = vec![0; if index % 9 == 0 { 65_536 } else { 3 }];
        let put = Put { priority: Some(extreme), ..Put::new(QUEUE, &payload) };
        ask(&mut engine, NOW, Command::Put(put));
    }
    let mut walk = |from, order, narrow| -> Vec<u64> {
        let selection = Selection { from, order, group: false, narrow };
        let peek = Peek { queue: QUEUE.into(), selection, state: None, count: u32::MAX };
        let shown = tasks(ask(&mut engine, NOW, Command::Peek(peek)));
        shown.iter().map(|task| task.number).collect()
    };
    for narrow in [false, true] {
        for (order, mirrored) in [(Order::Oldest, Order::Newest), (Order::Newest, Order::Oldest)] {
            let mut lowest = walk(End::Min, order, narrow);
            lowest.reverse();
            assert_eq!(lowest, walk(End::Max, mirrored, narrow), "{order:?}, narrow {narrow}");
        }
    }
}

fn join(engine: &mut Engine, number: usize) -> Reply {
    let (topic, member) = (&b"t"[..], number.to_string());
    let join = MemberCommand::Join { topic, member: member.as_bytes(), lease: None };
    ask(engine, NOW, Command::Member(join))
}

const PUBLISH: Command<'_> = Command::Publish(Publish {
    topic: b"t",
    payload: b"x",
    deadline: Deadline::OfLane,
    priority: Some(0),
    terms: Terms::NONE,
});

#[test]
fn a_topic_has_a_bounded_number_of_lanes() {
    let most = 5;
    let mut engine = started(Limits { topic_lanes_max: most, ..Limits::default() }, NOW);
    for number in 0..most {
        assert!(matches!(join(&mut engine, number), Reply::Joined(_)));
    }
    assert_eq!(refusal(join(&mut engine, most)), RefusalKind::Busy);
    assert!(matches!(join(&mut engine, 0), Reply::Joined(_)), "it is there already");
    assert_eq!(ask(&mut engine, NOW, PUBLISH), Reply::Count(most as u64));
    ask(&mut engine, NOW, Command::Member(MemberCommand::Leave(b"0")));
    assert!(matches!(join(&mut engine, most), Reply::Joined(_)), "one has left");
    assert_eq!(refusal(join(&mut engine, most + 1)), RefusalKind::Busy);
    engine.check();
}

#[test]
fn a_transaction_visits_a_bounded_number_of_lanes_that_take_no_copy() {
    const LANES: usize = 1_001;
    let mut engine = started(Limits::default(), NOW);
    for number in 0..LANES {
        join(&mut engine, number);
        let (topic, member) = (&b"t"[..], number.to_string());
        let queue = QueueName { name: topic, member: Some(member.as_bytes()) };
        let full = [(CAPACITY, Value::Number(1))];
        let command = Command::Queue(QueueCommand::Set { queue, settings: &full });
        assert_eq!(ask(&mut engine, NOW, command), Reply::Done);
    }
    assert_eq!(ask(&mut engine, NOW, PUBLISH), Reply::Count(LANES as u64));
    assert_eq!(ask(&mut engine, NOW, PUBLISH), Reply::Count(0));
    let steps = [Step::Command(PUBLISH); TRANSACTION_COPIES_MAX / LANES + 1];
    let reply = ask(&mut engine, NOW, Command::Transaction(&steps));
    assert_eq!(refusal(reply), RefusalKind::ExecAbort);
}

#[test]
fn a_transaction_publishes_a_bounded_number_of_copies() {
    const LANES: usize = 1_001;
    let mut engine = started(Limits::default(), NOW);
    for number in 0..LANES {
        join(&mut engine, number);
    }
    let mut publish_together = |times: usize| {
        let steps = vec![Step::Command(PUBLISH); times];
        let reply = ask(&mut engine, NOW, Command::Transaction(&steps));
        (reply, engine.totals().count(StateKind::Ready))
    };
    let fitting = TRANSACTION_COPIES_MAX / LANES;
    let (reply, ready) = publish_together(fitting + 1);
    assert_eq!((refusal(reply), ready), (RefusalKind::ExecAbort, 0), "nothing has happened");
    let (reply, ready) = publish_together(fitting);
    assert!(matches!(reply, Reply::Transaction(replies) if replies.len() == fitting));
    assert_eq!(ready, (fitting * LANES) as u64);
    engine.check();
}

#[test]
fn tasks_of_very_many_priorities_come_by_age() {
    const TASKS: u64 = 3_000;
    let mut engine = started(Limits::default(), NOW);
    let large = vec![b'x'; 70_000];
    for number in 1..=TASKS {
        // Each priority once, in no order. Some tasks have none, and some are large.
        let priority = i64::try_from(number * 1_999 % 3_001).unwrap();
        let priority = Some(priority).filter(|_| number % 100 != 7);
        let payload = if number % 500 == 0 { &large[..] } else { b"x" };
        let now = NOW.after(Span::from_ms(number));
        ask(&mut engine, now, Command::Put(Put { priority, ..Put::new(QUEUE, payload) }));
    }
    let now = NOW.after(Span::from_ms(TASKS + 1));
    for (state, count) in [(None, 7), (Some(StateKind::Ready), 1_000), (None, 64)] {
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let (queue, batch) = (QUEUE.into(), None);
            let scan = Scan { queue, after, count, state, key: None, batch };
            let Reply::Scanned { tasks, next } = ask(&mut engine, now, Command::Scan(scan)) else {
                panic!("no page")
            };
            seen.extend(tasks.into_iter().map(|task| task.number));
            let Some(next) = next else { break };
            after = next.get();
        }
        assert!(seen.into_iter().eq(1..=TASKS), "in pages of {count}");
    }
    let mut moved = TASKS;
    for left in [TASKS, TASKS - 1_500] {
        let reply = ask(&mut engine, now, Command::Queue(QueueCommand::Stats(Some(QUEUE.into()))));
        let Reply::Figures(figures) = reply else { panic!("no figures") };
        let age = now.since(NOW.after(Span::from_ms(1 + TASKS - left)));
        assert_eq!(figures.oldest_ready, Some(age));
        if left == moved {
            let (from, state) = (QUEUE.into(), StateKind::Ready);
            let command = Command::Move { from, to: b"other", count: 1_500, state };
            assert_eq!(ask(&mut engine, now, command), Reply::Count(1_500));
            moved = 0;
        }
    }
    engine.check();
}

#[test]
fn pages_of_long_names_are_short() {
    const QUEUES: usize = 40;
    let mut engine = started(Limits::default(), NOW);
    for number in 0..QUEUES {
        let queue = format!("{number:x<65535}");
        let queue = queue.as_bytes();
        ask(&mut engine, NOW, Command::Put(Put::new(queue, b"x")));
        let (queues, mode) = (&[queue][..], TakeMode::Lease { ttr: Some(Span::from_ms(1_000)) });
        let (member, wait, selection) = (None, Wait::No, Selection::DEFAULT);
        ask(
            &mut engine,
            NOW,
            Command::Take(Take { queues, member, count: 1, wait, selection, mode }),
        );
    }
    let most = LOOKED_BYTES_MAX + NAME_BYTES_MAX;
    let (mut found, mut after) = (0, None::<LeasePlace>);
    loop {
        let place = after.as_ref();
        let place = place.map(|it| LeasePlace { lane: it.lane, queue: &*it.queue, seq: it.seq });
        let leases = Leases { queue: None, after: place, count: LOOKED_MAX };
        let reply = ask(&mut engine, NOW, Command::Leases(leases));
        let Reply::Leases { leases, next } = reply else { panic!("no leases") };
        assert!(leases.iter().map(|lease| lease.place.queue.len()).sum::<usize>() <= most);
        found += leases.len();
        let Some(next) = next else { break };
        after = Some(*next);
    }
    assert_eq!(found, QUEUES);
    let (mut found, mut after) = (0, None::<Vec<u8>>);
    loop {
        let list =
            QueueCommand::List(NamesPage { prefix: b"", count: 1_000, after: after.as_deref() });
        let reply = ask(&mut engine, NOW, Command::Queue(list));
        let Reply::Names { names, more } = reply else { panic!("no names") };
        assert!(names.iter().map(|name| name.len()).sum::<usize>() <= most);
        found += names.len();
        after = names.last().map(|name| name.to_vec());
        if !more {
            break;
        }
    }
    assert_eq!(found, QUEUES);
}

#[test]
fn dead_letters_count_what_is_kept_of_where_they_come_from() {
    let mut engine = started(Limits::default(), NOW);
    let settings = &[(DEADLETTER, Value::Bytes(b"dead")), (ATTEMPTS, Value::Number(1))];
    ask(&mut engine, NOW, Command::Queue(QueueCommand::Create { queue: QUEUE, settings }));
    // The queue for dead letters is there already.
    ask(&mut engine, NOW, Command::Put(Put::new(b"dead", b"x")));
    ask(&mut engine, NOW, Command::Put(Put::new(QUEUE, b"x")));
    let before = engine.bytes();
    let (queues, mode) = (&[QUEUE][..], TakeMode::Lease { ttr: Some(Span::from_ms(1_000)) });
    let (member, count, wait, selection) = (None, 1, Wait::No, Selection::DEFAULT);
    let take = Take { queues, member, count, wait, selection, mode };
    let taken = tasks(ask(&mut engine, NOW, Command::Take(take)));
    let held = Held { queue: QUEUE.into(), by: HeldBy::Receipt(taken[0].receipt().unwrap()) };
    let fail = Fail::new(held);
    ask(&mut engine, NOW, Command::Fail(fail));
    let grown = engine.bytes() - before;
    assert!(grown >= ORIGIN_OVERHEAD_BYTES as u64, "it counts {grown} bytes more");
    engine.check();
}

#[test]
fn ids_and_unique_keys_count_what_is_kept_for_them() {
    let mut engine = started(Limits::default(), NOW);
    let settings = &[(IDS, Ids::Given.into())];
    ask(&mut engine, NOW, Command::Queue(QueueCommand::Create { queue: QUEUE, settings }));
    let grown_by = |engine: &mut Engine, put: Put<'_>| {
        let before = engine.bytes();
        ask(engine, NOW, Command::Put(put));
        engine.check();
        engine.bytes() - before
    };
    let plain = grown_by(&mut engine, Put::new(b"other", b"")) - queue_bytes(5);
    assert_eq!(plain, TASK_OVERHEAD_BYTES);
    let named = grown_by(&mut engine, Put { id: Some(b"a"), ..Put::new(QUEUE, b"") });
    assert_eq!(named, plain + 1 + GIVEN_ID_OVERHEAD_BYTES as u64);
    let unique = Some(Unique { key: b"key", window: None, on_duplicate: OnDuplicate::Keep });
    let unique = grown_by(&mut engine, Put { id: Some(b"b"), unique, ..Put::new(QUEUE, b"") });
    assert_eq!(unique, named + 3 + UNIQUE_OVERHEAD_BYTES as u64);
}
