//! What each command needs, written down by hand as rules, and what a user with some of these
//! rights may do. `wherever` stands for a right on all that only the engine knows.

use crate::users::Rule;
use pinpriq_proto::batches::{Bonds, OnlyIf};
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::command::{
    Ack, Amendment, Assign, BatchCommand, Bulk, BulkChange, Bury, Delay, Fail, Peek, QueueName,
    Release, Selection, Sides, Take, TakeMode, TimeToLive, Touch, Transfer, Update, Wait,
};
use pinpriq_proto::command::{Command, Done, Held, HeldBy, Put, QueueCommand, Share, Step};
use pinpriq_proto::export::Import;
use pinpriq_proto::export::{Export, ExportPlace};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::fanout::{Deadline, Publish};
use pinpriq_proto::looking::{Leases, Scan};
use pinpriq_proto::named_limits::{LimitChange, LimitCommand};
use pinpriq_proto::names::NamesPage;
use pinpriq_proto::schedule::ScheduleCommand;
use pinpriq_proto::schedule::{Course, NewSchedule, OnMissed, Overlap, Plan, Recurrence, When};
use pinpriq_proto::settings::{Assignment, CAPACITY, DEADLETTER, Paused, USES, Value};
use pinpriq_proto::shares::ShareChange;
use pinpriq_proto::task::{GivenTerms, Grant, Receipt, StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};

use super::*;

const Q: QueueName<'static> = QueueName { name: b"q", member: None };
const LANE: QueueName<'static> = QueueName { name: b"topic", member: Some(b"member") };
const RECEIPT: Receipt = Receipt { number: 1, grant: Grant { incarnation: 1, serial: 1 } };
const TERMS: GivenTerms<'_> = Terms::NONE;
const HELD: Held<'static> = Held { queue: Q, by: HeldBy::Receipt(RECEIPT) };
const PUT: Put<'static> = Put {
    queue: b"q",
    payload: b"x",
    terms: TERMS,
    priority: None,
    delay: Delay::NONE,
    ttl: TimeToLive::Default,
    id: None,
    wait: None,
    unique: None,
    result: false,
    bonds: Bonds::NONE,
    only_if: OnlyIf::Done,
};
/// In the batch `c`, and after the batch `d`.
const BONDS: Bonds<'static> = Bonds { batch: Some(b"c"), after: Some(b"\x01d") };
const TAKE: Take<'static> = Take {
    queues: &[b"q", b"p"],
    member: None,
    count: 1,
    wait: Wait::No,
    selection: Selection::DEFAULT,
    mode: TakeMode::Pop,
};
fn bulk(change: BulkChange<'static>) -> Command<'static> {
    Bulk::new(Q, change).into()
}

const TRANSFER: Transfer<'static> =
    Transfer { queue: LANE, id: b"1", delay: Span::ZERO, amendment: AMENDMENT };
const AMENDMENT: Amendment<'static> =
    Amendment { payload: None, priority: Assign::Keep, ttl: Assign::Keep };
const SET: ScheduleCommand<'static> = ScheduleCommand::Set(NewSchedule {
    name: b"s",
    queue: b"q",
    payload: b"x",
    terms: TERMS,
    priority: None,
    ttl: None,
    when: When::Every { every: Span::from_ms(1_000), at: None },
    on_missed: OnMissed::One,
    overlap: Overlap::Allow,
});

/// Each command with the rules that it needs.
fn table() -> Vec<(Command<'static>, &'static str)> {
    let waiting = Put { wait: Some(Wait::Forever), ..PUT };
    let mut table = vec![
        (Command::Put(PUT), "put:q"),
        (Command::Put(Put { bonds: BONDS, ..PUT }), "put:q put:c look:d"),
        (Command::Batch(BatchCommand::Open { name: b"c", ttl: None }), "put:c"),
        (Command::Batch(BatchCommand::Close(b"c")), "put:c"),
        (
            Command::Batch(BatchCommand::Cancel { name: b"c", reason: None, grace: None }),
            "manage:c",
        ),
        (Command::Batch(BatchCommand::Drop(b"c")), "manage:c"),
        (Command::Put(waiting), "put:q look:q"),
        (Command::PutInLine { put: &PUT, room: Span::ZERO }, "put:q"),
        (Command::Take(TAKE), "take:q take:p"),
        (
            Command::TakeDone {
                done: &[Done { queue: b"r", receipt: RECEIPT, result: None }],
                take: TAKE,
            },
            "take:r take:q take:p",
        ),
        (
            Command::Share(Share::Look {
                done: &[Done { queue: b"r", receipt: RECEIPT, result: None }],
                take: TAKE,
            }),
            "take:r take:q take:p",
        ),
        (Command::Share(Share::Wait { take: TAKE, is_echo: true }), "take:q take:p"),
        (
            Command::Subscribe {
                queues: TAKE.queues,
                member: Some(b"m"),
                selection: TAKE.selection,
                mode: TAKE.mode,
                recall: true,
            },
            "take:q take:p",
        ),
        (Command::Unsubscribe { queues: TAKE.queues, member: None }, "take:q take:p"),
        (Command::Unsubscribe { queues: &[], member: None }, ""),
        (Command::Within { names: &[], command: &Command::Put(PUT) }, "put:q"),
        (Command::Ack(Ack::new(HELD)), "take:q"),
        (Command::AckAll { queue: LANE, receipts: &[RECEIPT] }, "take:topic"),
        (Command::Release(Release { amendment: AMENDMENT, ..Release::new(HELD) }), "take:q"),
        (Command::Fail(Fail::new(HELD)), "take:q"),
        (Command::Bury(Bury::new(HELD)), "take:q"),
        (Command::Touch(Touch::new(HELD)), "take:q"),
        (Command::Start { queue: HELD.queue, receipt: RECEIPT }, "take:q"),
        (Command::StartAll { queue: LANE, receipts: &[RECEIPT] }, "take:topic"),
        (Command::Touch(Touch::new(Held { by: HeldBy::Id(b"1"), ..HELD })), "manage:q"),
        (
            Command::Update(Update {
                amendment: AMENDMENT,
                receipt: Some(RECEIPT),
                ..Update::new(Q, b"1")
            }),
            "take:q",
        ),
        (Command::Update(Update { amendment: AMENDMENT, ..Update::new(Q, b"1") }), "manage:q"),
        (Command::Credit(1), ""),
        (Command::PutBack(&[]), ""),
        (Command::GiveBack(&[RECEIPT]), ""),
        (Command::Share(Share::Pop(&[RECEIPT])), ""),
        (Command::Share(Share::Permit { deliveries: 1, holds: true }), ""),
        (Command::Share(Share::Next), ""),
    ];
    table.extend(looking());
    table.extend(managing());
    table
}

fn looking() -> Vec<(Command<'static>, &'static str)> {
    let leases = |queue| Command::Leases(Leases { queue, after: None, count: 1 });
    let peek = Peek { queue: LANE, selection: Selection::DEFAULT, state: None, count: 1 };
    let page = NamesPage { prefix: b"", count: 1, after: None };
    let list = QueueCommand::List(page);
    let schedules = ScheduleCommand::List(page);
    let limits = LimitCommand::List(page);
    vec![
        (Command::Peek(peek), "look:topic"),
        (Command::Get { queue: Q, id: b"1" }, "look:q"),
        (Command::Explain { queue: Q, id: None }, "look:q"),
        (
            Command::Scan(Scan {
                queue: Q,
                after: 0,
                count: 1,
                state: None,
                key: None,
                batch: None,
            }),
            "look:q",
        ),
        (Command::Export(Export { queue: b"q", after: ExportPlace::Start, count: 1 }), "look:q"),
        (leases(Some(LANE)), "look:topic"),
        (leases(None), "wherever:look"),
        (Command::Await { queue: Q, id: b"1", wait: Wait::No, result: false }, "look:q"),
        (Command::Queue(QueueCommand::Show(Q)), "look:q"),
        (Command::Queue(QueueCommand::Stats(Some(LANE))), "look:topic"),
        (
            Command::Queue(QueueCommand::Shares { queue: Q, count: 1, from: None, top: false }),
            "look:q",
        ),
        (Command::Queue(QueueCommand::Stats(None)), "wherever:look"),
        (Command::Queue(list), "wherever:look"),
        (Command::Member(MemberCommand::List(b"topic")), "look:topic"),
        (Command::Schedule(ScheduleCommand::Show(b"s")), "wherever:look"),
        (Command::Schedule(schedules), "wherever:look"),
        (Command::Limit(LimitCommand::Show(b"l")), "look:l"),
        (Command::Limit(limits), "wherever:look"),
        (Command::Batch(BatchCommand::Show(b"c")), "look:c"),
        (Command::Batch(BatchCommand::List(page)), "wherever:look"),
        (Command::Batch(BatchCommand::Await { name: b"c", wait: Wait::No }), "look:c"),
    ]
}

const TO_DEAD: &[Assignment<'static>] =
    &[(CAPACITY, Value::Number(1)), (DEADLETTER, Value::Bytes(b"dead"))];

const USING: &[Assignment<'static>] = &[(USES, Value::Bytes(b"l,m"))];

fn managing() -> Vec<(Command<'static>, &'static str)> {
    let to = StateKind::Ready;
    let queue = |command| Command::Queue(command);
    let member = |command| Command::Member(command);
    let limit = |command| Command::Limit(command);
    let sides = Sides::Both;
    let schedule: &'static ScheduleRecord = Box::leak(Box::new(schedule()));
    let steps: &[Step<'_>] =
        &[Step::Command(Command::Put(PUT)), Step::Nothing, Step::Command(Command::Dig(TRANSFER))];
    vec![
        (Command::Dig(TRANSFER), "manage:topic"),
        (Command::Switch { transfer: TRANSFER, to }, "manage:topic"),
        (Command::Snatch(TRANSFER), "manage:topic"),
        (Command::Restart(TRANSFER), "manage:topic"),
        (Command::Plow { queue: Q, count: None, delay: Span::ZERO, ttl: None }, "manage:q"),
        (Command::Kill { queue: Q, ids: &[] }, "manage:q"),
        (Command::Move { from: Q, to: b"other", count: 1, state: to }, "manage:q put:other"),
        (Command::Redrive { queue: Q, count: 1 }, "manage:q wherever:put"),
        (bulk(BulkChange::Redrive), "manage:q wherever:put"),
        (bulk(BulkChange::Move(b"other")), "manage:q put:other"),
        (bulk(BulkChange::Delay(Span::ZERO)), "manage:q"),
        (queue(QueueCommand::Create { queue: b"q", settings: &[] }), "manage:q"),
        (queue(QueueCommand::Set { queue: Q, settings: TO_DEAD }), "manage:q put:dead"),
        (queue(QueueCommand::Create { queue: b"q", settings: TO_DEAD }), "manage:q put:dead"),
        (queue(QueueCommand::Set { queue: Q, settings: &[(DEADLETTER, Value::None)] }), "manage:q"),
        (
            queue(QueueCommand::Share { queue: b"q", share: b"", change: ShareChange::default() }),
            "manage:q",
        ),
        (queue(QueueCommand::Set { queue: Q, settings: USING }), "manage:q manage:l manage:m"),
        (limit(LimitCommand::Set { name: b"l", change: LimitChange::default() }), "manage:l"),
        (limit(LimitCommand::Drop(b"l")), "manage:l"),
        (queue(QueueCommand::Truncate(LANE)), "manage:topic"),
        (queue(QueueCommand::Drop(b"q")), "manage:q"),
        (queue(QueueCommand::Pause { queue: Q, sides, length: None }), "manage:q"),
        (queue(QueueCommand::Resume { queue: Q, sides }), "manage:q"),
        (
            Command::Publish(Publish {
                topic: b"topic",
                payload: b"x",
                terms: TERMS,
                priority: None,
                deadline: Deadline::OfLane,
            }),
            "put:topic",
        ),
        (
            member(MemberCommand::Join { topic: b"t", member: b"m", lease: None }),
            "take:t wherever:take",
        ),
        (member(MemberCommand::LeaveTopic { topic: b"t", member: b"m" }), "take:t"),
        (member(MemberCommand::Beat { member: b"m", lease: None }), "wherever:take"),
        (member(MemberCommand::Leave(b"m")), "wherever:take"),
        (Command::Schedule(SET), "manage:q put:q wherever:manage"),
        (Command::Schedule(ScheduleCommand::Pause(b"s")), "wherever:manage"),
        (Command::Schedule(ScheduleCommand::Resume(b"s")), "wherever:manage"),
        (Command::Schedule(ScheduleCommand::Drop(b"s")), "wherever:manage"),
        (Command::Schedule(ScheduleCommand::Fire(b"s")), "wherever:manage"),
        (
            Command::Import(Import::Queue {
                queue: b"q",
                settings: Some(TO_DEAD),
                paused: Paused::default(),
            }),
            "manage:q put:dead",
        ),
        (Command::Import(Import::Schedule(schedule)), "manage:q put:q wherever:manage"),
        (Command::Transaction(steps), "put:q manage:topic"),
    ]
}

/// Returns a schedule that puts into the queue q.
fn schedule() -> ScheduleRecord {
    let every = Recurrence::Every { every: Span::from_ms(1_000), anchor: Timestamp::ZERO };
    let plan = Plan {
        queue: b"q"[..].into(),
        payload: b"x"[..].into(),
        terms: Terms::default(),
        priority: None,
        ttl: None,
        form: every,
        on_missed: OnMissed::One,
        overlap: Overlap::Allow,
    };
    let course = Course::default();
    ScheduleRecord { number: 1, name: b"s"[..].into(), plan, course }
}

fn written(need: Need<'_>) -> String {
    match need {
        Need::On(right, name) => format!("{right}:{}", String::from_utf8_lossy(name)),
        Need::Wherever(right) => format!("wherever:{right}"),
    }
}

fn rights(rules: &[&str]) -> Rights {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    rules.iter().collect()
}

#[test]
fn each_command_needs_what_the_table_says() {
    for (command, expected) in table() {
        let mut needs = Vec::new();
        command.each_need(&mut |need| needs.push(written(need)));
        assert_eq!(needs.join(" "), expected, "{command:?}");
    }
}

#[test]
fn a_command_is_allowed_with_just_what_it_needs() {
    for (command, needs) in table() {
        // A right on all that only the engine knows is one on everything here.
        let needs: Vec<String> = needs
            .split_whitespace()
            .map(|need| match need.strip_prefix("wherever:") {
                Some(right) => format!("{right}:*"),
                None => need.to_owned(),
            })
            .collect();
        let all: Vec<&str> = needs.iter().map(String::as_str).collect();
        assert_eq!(judge(&rights(&all), &command), Verdict::Allowed, "{command:?}");
        for missing in 0..all.len() {
            let mut others = all.clone();
            let lacked = others.remove(missing);
            if others.contains(&lacked) || others.iter().any(|it| it.ends_with(":*")) {
                continue;
            }
            let verdict = judge(&rights(&others), &command);
            match verdict {
                Verdict::Denied(lack) => assert_eq!(lack.to_string(), lacked, "{command:?}"),
                Verdict::Within(right) => assert_eq!(format!("{right}:*"), lacked, "{command:?}"),
                Verdict::Allowed => panic!("{command:?} is allowed without {lacked}"),
            }
        }
    }
}

#[test]
fn the_rights_of_another_tenant_allow_nothing() {
    let foreign = rights(&["put:x*", "take:x*", "look:x*", "manage:x*", "admin"]);
    for (command, needs) in table() {
        let verdict = judge(&foreign, &command);
        let is_free = needs.is_empty();
        assert_eq!(verdict == Verdict::Allowed, is_free, "{command:?}");
    }
}

#[test]
fn a_name_that_is_no_text_is_told_as_a_rule_writes_it() {
    let put = Command::Put(Put { queue: b"a*\xff", ..PUT });
    let Verdict::Denied(lack) = judge(&Rights::default(), &put) else { panic!("{put:?}") };
    assert_eq!(lack.to_string(), "put:a%2A%FF");
}
