//! The bytes of every kind of command.

use pinpriq_proto::command::{
    Ack, Amendment, Assign, Command, Deed, Delay, Done, End, Fail, Held, HeldBy, Order, Peek, Put,
    QueueCommand, QueueName, Release, Reserve, Selection, Share, Sides, Step, Take, TakeMode,
    TimeToLive, Transfer, Update, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::letters::{decode_command, encode_command};
use pinpriq_proto::looking::{LeasePlace, Leases, Scan};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::settings::{AFTERACK, AfterAck, CAPACITY, IDS, Ids, TTL, TTR, Value};
use pinpriq_proto::task::{Grant, Progress, Receipt, StateKind, TaskId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

use super::bytes;

const JOBS: QueueName<'_> = QueueName { name: b"jobs", member: None };
const LANE: QueueName<'_> = QueueName { name: b"news", member: Some(b"m") };
const RECEIPT: Receipt = Receipt { number: 1, grant: Grant { incarnation: 2, serial: 3 } };
const HELD: Held<'_> = Held { queue: JOBS, by: HeldBy::Receipt(RECEIPT) };
const SAME: Amendment<'_> = Amendment { payload: None, priority: Assign::Keep, ttl: Assign::Keep };
const MOVE: Transfer<'_> = Transfer { queue: JOBS, id: b"x", delay: Span::ZERO, amendment: SAME };
const TAKE: Take<'_> = Take {
    queues: &[b"jobs"],
    member: None,
    count: 1,
    wait: Wait::No,
    selection: Selection::DEFAULT,
    mode: TakeMode::Lease { ttr: None },
};

fn have_the_bytes(lines: &[(Command<'_>, &str)]) {
    for (command, line) in lines {
        let expected = bytes(line);
        let mut letter = Vec::new();
        encode_command(command, &mut letter);
        assert_eq!(letter, expected, "{command:?} is {line}, not {letter:02x?}");
        assert_eq!(decode_command(&expected, |decoded| decoded == command), Ok(true), "{line}");
    }
}

fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

#[test]
#[expect(clippy::too_many_lines, reason = "each form has its bytes")]
fn puts_and_takes() {
    let everything = Put {
        queue: b"jobs",
        payload: b"p",
        delay: Delay::For(ms(300)),
        ttl: TimeToLive::For(ms(7)),
        id: Some(b"x"),
        wait: Some(Wait::For(ms(9))),
        priority: Some(-2),
        terms: Terms::of(Some(b"k"), Some(ms(8))),
        unique: None,
    };
    let unique = Unique { key: b"u", window: None, on_duplicate: OnDuplicate::Keep };
    let once = Put { unique: Some(unique), ..Put::new(b"jobs", b"p") };
    let unique = Unique { window: Some(ms(6)), on_duplicate: OnDuplicate::Replace, ..unique };
    let replaced = Put { unique: Some(unique), ..everything };
    let at = Delay::Until(Timestamp::from_ms(300));
    let timed = Put { delay: at, ..Put::new(b"jobs", b"p") };
    let timed_once = Put { delay: at, ..once };
    let odd = Put {
        ttl: TimeToLive::Instant,
        wait: Some(Wait::Forever),
        priority: None,
        ..Put::new(b"jobs", b"")
    };
    let many = Take {
        queues: &[b"a", b"b"],
        member: Some(b"m"),
        count: 10,
        wait: Wait::For(ms(1_000)),
        selection: Selection { from: End::Max, order: Order::Newest, group: true, narrow: true },
        mode: TakeMode::Lease { ttr: Some(ms(5)) },
    };
    let unheld = |ttr| TakeMode::Unheld { ttr, otherwise: ms(5) };
    let receipt = Receipt { number: 129, grant: Grant { incarnation: 2, serial: 300 } };
    let pop =
        Take { wait: Wait::Forever, selection: Selection::PINPRIQ, mode: TakeMode::Pop, ..TAKE };
    have_the_bytes(&[
        (Command::Put(Put::new(b"jobs", b"hello")), r#"01 b00000000 04 "jobs" 05 "hello""#),
        (
            Command::Put(everything),
            r#"01 b11011011 b00000011 04 "jobs" 02 01 "k" 03 08 00 03 ac 02 07 01 "x" 09 01 "p""#,
        ),
        (Command::Put(once), r#"01 b10000000 b00001000 04 "jobs" 01 "u" 01 "p""#),
        (
            Command::Put(replaced),
            r#"01 b11011011 b01011011 04 "jobs" 02 01 "k" 03 08 00 03 ac 02 07 01 "x" 09
               01 "u" 06 01 "p""#,
        ),
        (Command::Put(timed), r#"01 b10001000 b00010000 04 "jobs" ac 02 01 "p""#),
        (Command::Put(timed_once), r#"01 b10001000 b10001000 01 04 "jobs" ac 02 01 "u" 01 "p""#),
        (Command::Put(odd), r#"01 b10110100 b00000101 04 "jobs" 00"#),
        (
            Command::PutInLine { put: Put::new(b"jobs", b"hello"), room: ms(300) },
            r#"2a ac 02 01 b00000000 04 "jobs" 05 "hello""#,
        ),
        (Command::Take(TAKE), r#"02 b00000000 01 04 "jobs""#),
        (Command::Take(Take { mode: unheld(None), ..TAKE }), r#"02 b00011000 01 04 "jobs" 05 00"#),
        (
            Command::Take(Take { mode: unheld(Some(ms(7))), ..TAKE }),
            r#"02 b00011000 01 04 "jobs" 05 01 07"#,
        ),
        (Command::Take(many), r#"02 b11101101 b00000111 02 01 "a" 01 "b" 01 "m" 0a e8 07 05"#),
        (
            Command::TakeDone { done: &[Done { queue: b"q", receipt }], take: TAKE },
            r#"26 01 01 "q" 81 01 02 ac 02 02 b00000000 01 04 "jobs""#,
        ),
        (
            Command::Share(Share::Look { done: &[Done { queue: b"q", receipt }], take: TAKE }),
            r#"57 01 01 "q" 81 01 02 ac 02 02 b00000000 01 04 "jobs""#,
        ),
        (
            Command::Share(Share::Wait { take: TAKE, is_echo: true }),
            r#"58 b00000001 02 b00000000 01 04 "jobs""#,
        ),
        (Command::Share(Share::Pop(&[RECEIPT])), "59 01 01 02 03"),
        (Command::Share(Share::Permit { deliveries: 300, holds: true }), "5a b00000001 ac 02"),
        (Command::Share(Share::Next), "5b"),
        (Command::Take(pop), r#"02 b11010010 b00000011 01 04 "jobs""#),
    ]);
}

#[test]
fn puts_of_tubes() {
    have_the_bytes(&[
        (
            Command::PutBuried { put: &Put::new(b"jobs", b"hello"), reason: Some(b"no") },
            r#"2b b00000001 02 "no" 01 b00000000 04 "jobs" 05 "hello""#,
        ),
        (
            Command::PutNumbered(&Put::new(b"jobs", b"hello")),
            r#"2d 01 b00000000 04 "jobs" 05 "hello""#,
        ),
        (
            Command::PutBuried { put: &Put::new(b"jobs", b""), reason: None },
            r#"2b b00000000 01 b00000000 04 "jobs" 00"#,
        ),
    ]);
}

#[test]
fn what_holders_ask() {
    let receipt = Receipt { number: 129, grant: Grant { incarnation: 2, serial: 300 } };
    let held = Held { queue: JOBS, by: HeldBy::Receipt(receipt) };
    let in_lane = Held { queue: LANE, by: HeldBy::Id(b"x") };
    let other = Receipt { number: 4, grant: Grant { incarnation: 5, serial: 6 } };
    let later = Release {
        held: HELD,
        delay: ms(60_000),
        amendment: Amendment {
            payload: Some(b"p"),
            priority: Assign::To(None),
            ttl: Assign::To(Some(ms(5))),
        },
        tail: true,
    };
    have_the_bytes(&[
        (
            Command::Ack(Ack { held, payload: None, zombie: None }),
            r#"05 b00000000 04 "jobs" 81 01 02 ac 02"#,
        ),
        (
            Command::Ack(Ack { held: in_lane, payload: Some(b"ok"), zombie: Some(ms(7)) }),
            r#"05 b00001111 04 "news" 01 "m" 01 "x" 07 02 "ok""#,
        ),
        (
            Command::AckAll { queue: JOBS, receipts: &[RECEIPT, other] },
            r#"06 b00000000 04 "jobs" 02 01 02 03 04 05 06"#,
        ),
        (
            Command::Release(later),
            r#"07 b11011100 b00000001 04 "jobs" 01 02 03 e0 d4 03 01 "p" 05"#,
        ),
        (
            Command::Bury { held: HELD, payload: None, reason: Some(b"no") },
            r#"08 b00001000 04 "jobs" 01 02 03 02 "no""#,
        ),
        (
            Command::Fail(Fail {
                held: HELD,
                reason: Some(b"no"),
                delay: Some(ms(128)),
                payload: None,
            }),
            r#"27 b00011000 04 "jobs" 01 02 03 80 01 02 "no""#,
        ),
        (
            Command::Move { from: JOBS, to: b"x", count: 128, state: StateKind::Buried },
            r#"28 b00000000 04 "jobs" 01 "x" 80 01 04"#,
        ),
        (Command::Redrive { queue: JOBS, count: 2 }, r#"29 b00000000 04 "jobs" 02"#),
        (
            Command::Touch { held: HELD, by: Some(ms(128)) },
            r#"09 b00000100 04 "jobs" 01 02 03 80 01"#,
        ),
        (Command::Credit(300), "14 ac 02"),
        (Command::GiveBack(&[RECEIPT]), "16 01 01 02 03"),
    ]);
}

#[test]
fn what_others_ask_about_tasks() {
    let peek = Peek {
        queue: JOBS,
        selection: Selection::DEFAULT,
        state: Some(StateKind::Ready),
        count: 10,
    };
    let state = Some(StateKind::Waiting);
    let scan = Scan { queue: JOBS, after: 128, count: 10, state, key: Some(b"k") };
    let after = Some(LeasePlace { lane: Some(5), queue: b"a".as_slice(), seq: 7 });
    let leases = Leases { queue: Some(LANE), after, count: 100 };
    let sooner = Amendment { priority: Assign::To(Some(1)), ..SAME };
    let update = Update { queue: JOBS, id: b"x", amendment: sooner, receipt: Some(RECEIPT) };
    let plow = Command::Plow { queue: JOBS, count: Some(0), delay: ms(0), ttl: Some(ms(5)) };
    have_the_bytes(&[
        (Command::Peek(peek), r#"03 b00000010 04 "jobs" 0a"#),
        (Command::Get { queue: JOBS, id: b"x" }, r#"04 b00000000 04 "jobs" 01 "x""#),
        (Command::Explain { queue: JOBS, id: None }, r#"3d b00000000 04 "jobs""#),
        (
            Command::Explain { queue: LANE, id: Some(b"x") },
            r#"3d b00000011 04 "news" 01 "m" 01 "x""#,
        ),
        (Command::Scan(scan), r#"3e b00010110 04 "jobs" 80 01 0a 01 "k""#),
        (Command::Leases(Leases { queue: None, after: None, count: 100 }), "3f b00000000 64"),
        (Command::Leases(leases), r#"3f b00001111 04 "news" 01 "m" 05 01 "a" 07 64"#),
        (Command::Dig(MOVE), r#"0a b00000000 04 "jobs" 01 "x""#),
        (plow, r#"0b b00001010 04 "jobs" 00 05"#),
        (
            Command::Kill { queue: JOBS, ids: &[b"x", b"yz"] },
            r#"0c b00000000 04 "jobs" 02 01 "x" 02 "yz""#,
        ),
        (
            Command::Switch { transfer: MOVE, to: StateKind::Buried },
            r#"0d b00000000 04 "jobs" 01 "x" 04"#,
        ),
        (Command::Snatch(MOVE), r#"0e b00000000 04 "jobs" 01 "x""#),
        (
            Command::Restart(Transfer { delay: ms(5), ..MOVE }),
            r#"0f b00000010 04 "jobs" 01 "x" 05"#,
        ),
        (Command::Update(update), r#"10 b00001010 04 "jobs" 01 "x" 01 02 03 02"#),
        (
            Command::Await { queue: JOBS, id: b"x", wait: Wait::Forever },
            r#"11 b00000100 04 "jobs" 01 "x""#,
        ),
    ]);
}

#[test]
fn subscriptions_and_what_goes_back() {
    let subscribe = Command::Subscribe {
        queues: &[b"news"],
        member: Some(b"m"),
        selection: Selection::PINPRIQ,
        mode: TakeMode::Pop,
    };
    let task = TaskRecord {
        number: 129,
        queue: b"jobs".as_slice().into(),
        lane: None,
        id: TaskId::Number(129),
        put_at: Timestamp::from_ms(1_000),
        terms: Terms::NONE,
        progress: Progress::fresh(129, Some(0)),
        past: None,
        payload: b"hello".as_slice().into(),
        away: None,
        shared: false,
    };
    have_the_bytes(&[
        (subscribe, r#"12 b01110101 01 04 "news" 01 "m""#),
        (Command::Unsubscribe { queues: &[], member: None }, "13 b00000000 00"),
        (Command::PutBack(&[task]), r#"15 01 04 "jobs" 00 81 01 e8 07 04 00 00 05 "hello""#),
    ]);
}

#[test]
fn what_is_asked_about_queues() {
    let settings = &[
        (IDS, Ids::Uuid.into()),
        (TTL, Value::None),
        (TTR, Value::Span(ms(7))),
        (AFTERACK, AfterAck::Zombie(ms(8)).into()),
        (CAPACITY, Value::Number(128)),
        (CAPACITY, Value::Bytes(b"x")),
    ];
    let lines = [
        (
            QueueCommand::Create { queue: b"jobs", settings },
            r#"17 04 "jobs" 06 01 03 02 02 00 03 02 07 04 02 08 05 01 80 01 05 04 01 "x""#,
        ),
        (QueueCommand::Set { queue: LANE, settings: &[] }, r#"18 b00000001 04 "news" 01 "m" 00"#),
        (QueueCommand::Show(JOBS), r#"19 b00000000 04 "jobs""#),
        (
            QueueCommand::List { prefix: b"", after: Some(b"a"), count: 100 },
            r#"1a b00000001 00 01 "a" 64"#,
        ),
        (QueueCommand::Truncate(JOBS), r#"1b b00000000 04 "jobs""#),
        (QueueCommand::Drop(b"jobs"), r#"1c 04 "jobs""#),
        (
            QueueCommand::Pause { queue: JOBS, sides: Sides::Both, length: None },
            r#"1d b00000100 04 "jobs""#,
        ),
        (
            QueueCommand::Pause {
                queue: JOBS,
                sides: Sides::Output,
                length: Some(Span::from_ms(5)),
            },
            r#"1d b00001010 04 "jobs" 05"#,
        ),
        (QueueCommand::Resume { queue: JOBS, sides: Sides::Output }, r#"1e b00000010 04 "jobs""#),
        (QueueCommand::Stats(None), "1f b00000000"),
        (QueueCommand::Stats(Some(LANE)), r#"1f b00000011 04 "news" 01 "m""#),
    ];
    have_the_bytes(&lines.map(|(command, line)| (Command::Queue(command), line)));
}

#[test]
fn schedules() {
    let least = NewSchedule {
        name: b"s",
        queue: b"jobs",
        payload: b"p",
        terms: Terms::NONE,
        priority: Some(0),
        ttl: None,
        when: When::Every { every: ms(300), at: None },
        on_missed: OnMissed::One,
        overlap: Overlap::Allow,
    };
    let most = NewSchedule {
        terms: Terms::of(Some(b"k"), Some(ms(8))),
        priority: Some(-2),
        ttl: Some(ms(7)),
        when: When::Cron { expression: b"@daily", zone: Some(b"UTC") },
        on_missed: OnMissed::None,
        overlap: Overlap::Skip,
        ..least
    };
    let at = Some(Timestamp::from_ms(1_000));
    let every = NewSchedule { when: When::Every { every: ms(300), at }, ..least };
    let cron = When::Cron { expression: b"@daily", zone: None };
    let lines = [
        (ScheduleCommand::Set(least), r#"32 00 01 "s" 04 "jobs" ac 02 01 "p""#),
        (
            ScheduleCommand::Set(most),
            r#"32 af 03 01 "s" 04 "jobs" 02 01 "k" 03 08 00 03 07 06 "@daily" 03 "UTC" 01 "p""#,
        ),
        (ScheduleCommand::Set(every), r#"32 b00000001 01 "s" 04 "jobs" ac 02 e8 07 01 "p""#),
        (
            ScheduleCommand::Set(NewSchedule { when: cron, ..least }),
            r#"32 b00000010 01 "s" 04 "jobs" 06 "@daily" 01 "p""#,
        ),
        (ScheduleCommand::Show(b"s"), r#"33 01 "s""#),
        (
            ScheduleCommand::List { prefix: b"", after: Some(b"a"), count: 100 },
            r#"34 b00000001 00 01 "a" 64"#,
        ),
        (ScheduleCommand::Pause(b"s"), r#"35 01 "s""#),
        (ScheduleCommand::Resume(b"s"), r#"36 01 "s""#),
        (ScheduleCommand::Drop(b"s"), r#"37 01 "s""#),
        (ScheduleCommand::Fire(b"s"), r#"38 01 "s""#),
    ];
    have_the_bytes(&lines.map(|(command, line)| (Command::Schedule(command), line)));
}

#[test]
fn transactions() {
    let receipts = [RECEIPT];
    let steps = [
        Step::Command(Command::Put(Put::new(b"jobs", b"hello"))),
        Step::Nothing,
        Step::Bad("no"),
        Step::Command(Command::AckAll { queue: JOBS, receipts: &receipts }),
        Step::Command(Command::Kill { queue: JOBS, ids: &[b"x"] }),
        Step::Command(Command::Ack(Ack { held: HELD, payload: None, zombie: None })),
    ];
    have_the_bytes(&[
        (Command::Transaction(&[]), "3c 00"),
        (
            Command::Transaction(&steps),
            r#"3c 06
               02 0d 01 b00000000 04 "jobs" 05 "hello"
               00
               01 02 "no"
               02 0b 06 b00000000 04 "jobs" 01 01 02 03
               02 0a 0c b00000000 04 "jobs" 01 01 "x"
               02 0a 05 b00000000 04 "jobs" 01 02 03"#,
        ),
    ]);
}

#[test]
fn commands_within_names() {
    let names = [NamePattern::exactly(b"jobs"), NamePattern::beginning(b"a.")];
    let redrive = Command::Redrive { queue: JOBS, count: 7 };
    have_the_bytes(&[
        (
            Command::Within { names: &[], command: &Command::Queue(QueueCommand::Stats(None)) },
            "40 00 1f b00000000",
        ),
        (
            Command::Within { names: &names, command: &redrive },
            r#"40 02 00 04 "jobs" 01 02 "a." 29 b00000000 04 "jobs" 07"#,
        ),
    ]);
}

#[test]
fn fan_out() {
    let publish = Publish {
        topic: b"news",
        payload: b"hi",
        deadline: Deadline::At(Timestamp::from_ms(1_000)),
        priority: Some(0),
        terms: Terms { key: Some(b"k"), ..Terms::NONE },
    };
    have_the_bytes(&[(
        Command::Publish(publish),
        r#"20 b00001001 04 "news" 02 01 "k" 00 e8 07 02 "hi""#,
    )]);
    let lines = [
        (
            MemberCommand::Join { topic: b"news", member: b"m", lease: Some(ms(5)) },
            r#"21 b00000001 04 "news" 01 "m" 05"#,
        ),
        (MemberCommand::Beat { member: b"m", lease: None }, r#"22 b00000000 01 "m""#),
        (MemberCommand::LeaveTopic { topic: b"news", member: b"m" }, r#"23 04 "news" 01 "m""#),
        (MemberCommand::Leave(b"m"), r#"24 01 "m""#),
        (MemberCommand::List(b"news"), r#"25 04 "news""#),
    ];
    have_the_bytes(&lines.map(|(command, line)| (Command::Member(command), line)));
}

#[test]
fn tubes_and_numbers() {
    let numbered = |deed| Command::Numbered { number: 300, deed };
    have_the_bytes(&[
        (
            Command::Reserve(Reserve::new(&[b"a", b"b"], Wait::For(ms(300)))),
            r#"50 b00000001 02 01 "a" 01 "b" ac 02"#,
        ),
        (Command::Reserve(Reserve::new(&[b"a"], Wait::No)), r#"50 b00000000 01 01 "a""#),
        (
            Command::Reserve(Reserve { queues: &[], wait: Wait::Forever, is_echo: true }),
            "50 b00000110 00",
        ),
        (Command::Head(&[b"a"]), r#"56 b00000000 01 01 "a""#),
        (numbered(Deed::Read), "51 ac 02 00"),
        (numbered(Deed::Take), "51 ac 02 01"),
        (numbered(Deed::Delete), "51 ac 02 02"),
        (numbered(Deed::Release { priority: -2, delay: ms(300) }), "51 ac 02 03 03 ac 02"),
        (numbered(Deed::Bury { priority: 1 }), "51 ac 02 04 02"),
        (numbered(Deed::Touch), "51 ac 02 05"),
        (numbered(Deed::Kick), "51 ac 02 06"),
        (Command::Kick { queue: b"a", count: 300 }, r#"52 01 "a" ac 02"#),
        (Command::Foremost { queue: b"a", state: StateKind::Buried }, r#"53 01 "a" 04"#),
        (Command::Tubes(None), "54 b00000000"),
        (Command::Tubes(Some(b"a")), r#"54 b00000001 01 "a""#),
        (Command::LetGo, "55"),
        (
            Command::Queue(QueueCommand::Hold { queue: b"a", length: Some(ms(300)), makes: false }),
            r#"2c b00000001 01 "a" ac 02"#,
        ),
        (
            Command::Queue(QueueCommand::Hold { queue: b"a", length: None, makes: true }),
            r#"2c b00000010 01 "a""#,
        ),
    ]);
}
