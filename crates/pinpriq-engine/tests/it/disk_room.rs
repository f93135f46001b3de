//! What is refused, what is never refused, and who waits while the store is nearly full.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Ack, Amendment, Bulk, BulkChange, Bury, Command, Fail, Filter, Held, HeldBy, Put, QueueCommand,
    QueueName, Release, Selection, Sides, Take, TakeMode, Touch, Transfer, Update, Wait,
};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::settings::{Assignment, IDS, Ids, RATE, Rate};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const QUEUE: &[u8] = b"jobs";
const NOW: Timestamp = Timestamp::from_ms(1_000);
const LEASE: TakeMode = TakeMode::Lease { ttr: Some(Span::from_ms(60_000)) };
const SCHEDULE: NewSchedule<'_> = NewSchedule {
    name: b"s",
    queue: QUEUE,
    payload: b"",
    terms: Terms::NONE,
    priority: Some(0),
    ttl: None,
    when: When::Every { every: Span::from_ms(100), at: None },
    on_missed: OnMissed::One,
    overlap: Overlap::Allow,
};

fn with_tasks(count: u32) -> Engine {
    let mut engine = Engine::new(Limits::default(), 5);
    engine.start(NOW, 1, Header::default());
    for _ in 0..count {
        ask(&mut engine, Command::Put(Put::new(QUEUE, b"")));
    }
    engine
}

fn ask(engine: &mut Engine, command: Command<'_>) -> Option<Reply> {
    engine.apply(NOW, ClientId(1), RequestId(7), &command);
    engine.check();
    match engine.poll_output()? {
        Output::Reply { reply, .. } => Some(reply),
        Output::Delivery { .. } | Output::Notice(_) => None,
    }
}

fn is_busy(engine: &mut Engine, command: Command<'_>) -> bool {
    let busy = |reply| matches!(reply, Reply::Refused(it) if it.kind == RefusalKind::Busy);
    ask(engine, command).is_some_and(busy)
}

fn take(mode: TakeMode, wait: Wait) -> Command<'static> {
    let (queues, selection): (&[&[u8]], _) = (&[QUEUE], Selection::DEFAULT);
    Command::Take(Take { queues, member: None, count: 1, wait, selection, mode })
}

fn taken(engine: &mut Engine) -> Receipt {
    match ask(engine, take(LEASE, Wait::No)) {
        Some(Reply::Tasks { tasks, .. }) => tasks[0].receipt().unwrap(),
        other => panic!("{other:?}"),
    }
}

fn held(receipt: Receipt) -> Held<'static> {
    Held { queue: QUEUE.into(), by: HeldBy::Receipt(receipt) }
}

/// Bulk changes that need room.
const BULK: [Bulk<'static>; 5] = {
    const fn of(change: BulkChange<'static>) -> Bulk<'static> {
        let queue = QueueName { name: QUEUE, member: None };
        Bulk { queue, change, filter: Filter::ALL, count: 1, after: 0, dry: false }
    }
    [
        of(BulkChange::Redrive),
        of(BulkChange::Move(b"other")),
        of(BulkChange::Restart),
        of(BulkChange::Priority(None)),
        of(BulkChange::Delay(Span::ZERO)),
    ]
};

#[test]
fn what_changes_tasks_and_leaves_them_is_refused_before_what_takes_them() {
    let mut engine = with_tasks(9);
    let receipt = taken(&mut engine);
    let (member, lease) = (b"m", Some(Span::from_ms(50)));
    ask(&mut engine, Command::Member(MemberCommand::Join { topic: b"t", member, lease }));
    let held = held(receipt);
    let transfer = Transfer::new(QUEUE, b"2");
    let amendment = Amendment::default();
    let release = Release { amendment, tail: true, ..Release::new(held) };
    let settings: &[Assignment<'_>] = &[];
    let sides = Sides::Output;
    let longer = Some(Span::from_ms(60));
    let changes = [
        Command::Touch(Touch::new(held)),
        Command::Release(release),
        Command::Bury(Bury::new(held)),
        Command::Fail(Fail::new(held)),
        Command::Move { from: QUEUE.into(), to: b"other", count: 1, state: StateKind::Ready },
        Command::Redrive { queue: QUEUE.into(), count: 1 },
        Command::Dig(transfer),
        Command::Plow { queue: QUEUE.into(), count: None, delay: Span::ZERO, ttl: None },
        Command::Switch { transfer, to: StateKind::Zombie },
        Command::Snatch(transfer),
        Command::Restart(transfer),
        Command::Update(Update { amendment, ..Update::new(QUEUE, b"2") }),
        Command::Member(MemberCommand::Join { topic: b"t", member, lease }),
        Command::Member(MemberCommand::Beat { member, lease: longer }),
        Command::Queue(QueueCommand::Create { queue: b"other", settings }),
        Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings }),
        Command::Queue(QueueCommand::Pause { queue: QUEUE.into(), sides, length: None }),
        Command::Schedule(ScheduleCommand::Set(SCHEDULE)),
        Command::Schedule(ScheduleCommand::Pause(b"s")),
        Command::Schedule(ScheduleCommand::Resume(b"s")),
        Command::Schedule(ScheduleCommand::Fire(b"s")),
    ];
    for room in [Room::Scarce, Room::Least] {
        engine.set_room(room);
        let before = engine.header();
        for command in changes.into_iter().chain(BULK.map(Command::from)) {
            assert!(is_busy(&mut engine, command), "{room:?}: {command:?}");
        }
        assert!(is_busy(&mut engine, Command::Put(Put::new(QUEUE, b""))));
        let mut written = Vec::new();
        engine.take_changes(&mut written);
        assert_eq!(engine.header(), before);
        if room == Room::Scarce {
            let second = taken(&mut engine);
            assert_ne!(second, receipt);
        }
    }
    let acknowledges = Command::Ack(Ack::new(held));
    let ends = [
        acknowledges,
        take(TakeMode::Pop, Wait::No),
        Command::Kill { queue: QUEUE.into(), ids: &[b"5"] },
        Command::Member(MemberCommand::Beat { member, lease }),
        Command::Member(MemberCommand::Leave(member)),
        Command::Schedule(ScheduleCommand::Drop(b"s")),
        Command::Queue(QueueCommand::Resume { queue: QUEUE.into(), sides }),
        Command::Queue(QueueCommand::Truncate(QUEUE.into())),
    ];
    for command in ends {
        assert!(!is_busy(&mut engine, command), "{command:?}");
    }
    engine.set_room(Room::Enough);
    let set = Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings });
    assert!(!is_busy(&mut engine, set), "there is room for a queue again");
    engine.set_room(Room::Low);
    let settings = &[(IDS, Ids::Uuid.into())];
    let set = Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings });
    assert!(!is_busy(&mut engine, set), "a low level refuses only what is new");
}

#[test]
fn who_waits_for_a_lease_waits_until_there_is_room_and_pops_go_on() {
    let mut engine = with_tasks(2);
    taken(&mut engine);
    taken(&mut engine);
    assert_eq!(ask(&mut engine, take(LEASE, Wait::Forever)), None);
    let other = ClientId(2);
    engine.apply(NOW, other, RequestId(8), &take(TakeMode::Pop, Wait::Forever));
    engine.set_room(Room::Least);
    assert!(is_busy(&mut engine, take(LEASE, Wait::Forever)), "it is not put in line");
    // Both leases end.
    engine.handle_timeout(NOW.after(Span::from_ms(60_000)));
    engine.check();
    let mut changes = Vec::new();
    engine.take_changes(&mut changes);
    let mut served = Vec::new();
    while let Some(output) = engine.poll_output() {
        if let Output::Reply { client, reply: Reply::Tasks { popped, .. }, .. } = output {
            served.push((client, popped));
        }
    }
    assert_eq!(served, [(other, true)], "the pop comes first, and the lease waits");
    assert!(!engine.set_room(Room::Least));
    assert!(engine.set_room(Room::Scarce), "somebody is handed a task");
    engine.check();
    let Some(Output::Reply { client, reply: Reply::Tasks { tasks, popped }, .. }) =
        engine.poll_output()
    else {
        panic!("no consumer was served")
    };
    assert_eq!((client, tasks.len(), popped), (ClientId(1), 1, false));
    changes.clear();
    engine.take_changes(&mut changes);
    assert!(!changes.is_empty(), "the lease is reported");
}

#[test]
fn who_waits_for_a_lease_awaits_no_token_while_none_is_granted() {
    let mut engine = with_tasks(2);
    taken(&mut engine);
    taken(&mut engine);
    assert_eq!(ask(&mut engine, take(LEASE, Wait::Forever)), None);
    let settings = &[(RATE, Some(Rate { count: 1, per: Span::from_ms(1_000) }).into())];
    ask(&mut engine, Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings }));
    engine.set_room(Room::Least);
    let later = NOW.after(Span::from_ms(60_000));
    engine.handle_timeout(later);
    // It takes the token, and there is another task.
    engine.apply(later, ClientId(2), RequestId(8), &take(TakeMode::Pop, Wait::No));
    engine.check();
    let mut changes = Vec::new();
    engine.take_changes(&mut changes);
    while engine.poll_output().is_some() {}
    assert_eq!(engine.poll_timeout(), None, "nothing is due while no lease is granted");
    assert!(!engine.set_room(Room::Enough), "there is no token");
    engine.check();
    assert_eq!(engine.poll_timeout(), Some(later.after(Span::from_ms(1_000))), "a token comes");
}
