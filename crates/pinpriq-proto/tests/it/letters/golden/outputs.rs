//! The bytes of every kind of output.

use std::sync::Arc;

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::letters::{decode_output, encode_output};
use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Reason};
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply, TubeShown, TubesShown};
use pinpriq_proto::schedule::{Course, Form, OnMissed, Overlap, Plan, Scheduled, ShownSchedule};
use pinpriq_proto::settings::{AfterAck, Ids, Pause, Paused, Settings};
use pinpriq_proto::stats::{Counters, Figures, Move, Times};
use pinpriq_proto::task::{
    Burial, Bytes, ClientId, Counts, Grant, Holder, LaneName, Lease, Origin, Past, Progress,
    RequestId, State, StateKind, TaskId, TaskRecord, Terms, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{Awaited, PutUnique};

use super::bytes;

fn has_the_bytes(output: Output, line: &str) {
    let expected = bytes(line);
    let mut letter = Vec::new();
    encode_output(&output, &mut letter);
    assert_eq!(letter, expected, "{output:?} is {line}, not {letter:02x?}");
    assert_eq!(decode_output(&expected), Ok(output), "{line}");
}

/// Replies to request 300 of client 3. Client and request follow the kind, and the lines leave them
/// out.
fn have_the_bytes<const N: usize>(lines: [(Reply, &str); N]) {
    for (reply, line) in lines {
        let (kind, rest) = line.split_at(2);
        let (client, request) = (ClientId(3), RequestId(300));
        has_the_bytes(Output::Reply { client, request, reply }, &format!("{kind} 03 ac 02 {rest}"));
    }
}

fn text(text: &str) -> Bytes {
    Arc::from(text.as_bytes())
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// A task that takes the fewest bytes.
fn task(state: State) -> TaskRecord {
    TaskRecord {
        number: 1,
        queue: text("jobs"),
        lane: None,
        id: TaskId::Number(1),
        put_at: at(0),
        terms: Terms::NONE,
        progress: Progress { state, ..Progress::fresh(1, Some(0)) },
        past: None,
        payload: text(""),
        away: None,
        shared: false,
    }
}

/// A task with every field set.
fn full_task() -> TaskRecord {
    TaskRecord {
        number: 129,
        queue: text("news"),
        lane: Some(LaneName { number: 7, member: text("m") }),
        id: TaskId::Given(text("x")),
        put_at: at(1_000),
        terms: Terms::of(Some(text("k")), Some(Span::from_ms(3_000))),
        progress: Progress {
            priority: Some(-2),
            seq: 130,
            expires_at: Some(at(2_000)),
            attempts: 4,
            failures: 3,
            reason: Some(text("no")),
            trace: Trace::of(
                Span::from_ms(300),
                Counts { timeouts: 1, releases: 2, buries: 3, kicks: 4 },
            ),
            state: State::Taken(Lease {
                grant: Grant { incarnation: 2, serial: 300 },
                holder: Some(Holder { is_tied: true, ..Holder::of(ClientId(9)) }),
                deadline: Some(at(5_000)),
                ttr: Some(Span::from_ms(1)),
            }),
        },
        past: Past::of(
            Some(Origin {
                queue: text("o"),
                id: TaskId::Number(5),
                put_at: at(1),
                attempts: 2,
                failures: 3,
                at: at(4),
            }),
            Some(Scheduled { schedule: text("s"), slot: Some(at(6)) }),
            Some(text("u")),
        ),
        payload: text("hello"),
        away: None,
        shared: false,
    }
}

fn tube() -> TubeShown {
    TubeShown {
        name: text("jobs"),
        exists: true,
        came_at: at(10),
        came_after: 6,
        counts: [1, 0, 2, 3, 4, 5],
        urgent: 7,
        put: 8,
        deletes: 12,
        reserves: 9,
        paused: Paused { output: Pause::Until(at(11)), ..Paused::default() },
        paused_for: Span::from_ms(44),
    }
}

fn unique(new: bool, awaited: Awaited) -> Reply {
    Reply::PutUnique(PutUnique { id: TaskId::Number(5), new, awaited })
}

#[test]
fn short_answers() {
    let uuid = TaskId::Uuid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let full = Refusal::new(RefusalKind::Full, "no");
    have_the_bytes([
        (Reply::Done, "02"),
        (Reply::DeadlineSoon, "33"),
        (
            Reply::Tubes(Box::new(TubesShown {
                tubes: vec![tube()],
                put: 300,
                timeouts: 3,
                reserves: 4,
            })),
            r#"34 ac 02 03 04 01 b00010001 04 "jobs" 0a 01 00 02 03 04 05 06 07 08 0c 09 2c 0b"#,
        ),
        (Reply::Put(TaskId::Number(5)), "03 b00000001 05"),
        (Reply::Put(uuid), "03 b00000010 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10"),
        (Reply::PutOutcome(TaskId::Given(text("x")), Outcome::Killed), r#"04 b00011011 01 "x""#),
        (unique(true, Awaited::No), "1f b01000001 05"),
        (unique(false, Awaited::Unknown), "1f b01000010 05"),
        (unique(false, Awaited::Known(Outcome::Killed)), "1f b01011100 05"),
        (Reply::State(None), "08 00"),
        (Reply::State(Some(StateKind::Taken)), "08 02"),
        (Reply::Deadline(Some(at(1_000))), "09 b00000001 e8 07"),
        (Reply::Deadline(None), "09 b00000000"),
        (Reply::Count(300), "0a ac 02"),
        (Reply::Outcome(Outcome::Acked, Some(StateKind::Done)), "0b b00110000"),
        (Reply::Joined(7), "10 07"),
        (Reply::Refused(full), r#"12 0c 02 "no""#),
    ]);
}

#[test]
fn answers_with_tasks() {
    let mut buried = task(State::Buried(Burial::of_number(300)));
    (buried.progress.priority, buried.progress.attempts) = (None, 1);
    buried.progress.reason = Some(text("no"));
    let zombie = State::Zombie { purge_at: at(5) };
    let zombie = TaskRecord { id: TaskId::Number(7), ..task(zombie) };
    let waiting = task(State::Waiting { ready_at: at(6) });
    let ready = TaskRecord { payload: text("hello"), ..task(State::Ready) };
    have_the_bytes([
        (
            Reply::Shown(vec![buried, zombie, waiting, task(State::Done)]),
            r#"05 04
               04 "jobs" 00 01 00 07 01 08 03 02 "no" 10 ac 02 00 00
               04 "jobs" 00 01 00 01 00 07 04 00 08 04 05 00 00
               04 "jobs" 00 01 00 04 00 08 02 06 00 00
               04 "jobs" 00 01 00 04 00 08 05 00 00"#,
        ),
        (
            Reply::Tasks { tasks: vec![full_task()], popped: false },
            r#"06 b00000000 01
               04 "news" 01 07 01 "m" 81 01 e8 07
               01 02 01 "x" 02 01 "k" 03 b8 17 04 03 05 82 01 06 d0 0f 07 04
               08 01 02 ac 02 01 88 27 01 01 0b 03 0c 02 "no" 11 ac 02 12 01 02 03 04
               0d 01 "o" 00 05 01 02 03 04 0e 01 "s" 01 06 0f 01 "u" 0a 09 13 00 05 "hello""#,
        ),
        (Reply::Task(None), "07 b00000000"),
        (
            Reply::Task(Some(Box::new(ready.clone()))),
            r#"07 b00000001 04 "jobs" 00 01 00 04 00 00 05 "hello""#,
        ),
    ]);
    let tasks = vec![ready.clone(), ready];
    has_the_bytes(
        Output::Delivery { client: ClientId(3), tasks, popped: true },
        r#"01 03 b00000001 02
           04 "jobs" 00 01 00 04 00 00 05 "hello"
           04 "jobs" 00 01 00 04 00 00 05 "hello""#,
    );
}

#[test]
fn answers_about_several() {
    let stale = Refusal::new(RefusalKind::Stale, "no");
    let member = MemberFigures {
        member: text("m"),
        incarnation: 2,
        lease_until: at(1_000),
        ready: 3,
        taken: 4,
    };
    have_the_bytes([
        (Reply::Acks(vec![Ok(()), Err(stale)]), r#"0c 02 00 08 02 "no""#),
        (
            Reply::Names { names: vec![text("a"), text("bc")], more: true },
            r#"0e b00000001 02 01 "a" 02 "bc""#,
        ),
        (Reply::Transaction(vec![]), "28 00"),
        (
            Reply::Transaction(vec![Reply::Done, Reply::Put(TaskId::Number(7)), Reply::Count(2)]),
            "28 03 02 03 b00000001 07 0a 02",
        ),
        (Reply::Members(vec![member]), r#"11 01 01 "m" 02 e8 07 03 04"#),
    ]);
}

#[test]
fn answers_about_a_schedule() {
    let plan = Plan {
        queue: text("jobs"),
        payload: text("p"),
        terms: Terms::of(Some(text("k")), Some(Span::from_ms(8))),
        priority: Some(-2),
        ttl: Some(Span::from_ms(7)),
        form: Form::Cron { expression: text("@daily"), zone: Some(text("UTC")) },
        on_missed: OnMissed::All,
        overlap: Overlap::Skip,
    };
    let course = Course {
        done_until: at(1_000),
        paused: true,
        fired: 300,
        missed: 2,
        last_id: Some(TaskId::Number(5)),
        last_slot: Some(at(4)),
        last_number: 6,
    };
    let form = Form::Every { every: Span::from_ms(300), anchor: at(9) };
    let (priority, ttl, terms) = (None, None, Terms::NONE);
    let (on_missed, overlap) = (OnMissed::One, Overlap::Allow);
    let small = Plan { form, priority, ttl, terms, on_missed, overlap, ..plan.clone() };
    let (name, next_at) = (text("s"), Some(at(1_001)));
    let full = ShownSchedule { name: name.clone(), plan, course, next_at };
    let fresh = ShownSchedule { name, plan: small, course: Course::default(), next_at: None };
    have_the_bytes([
        (
            Reply::Schedule(Box::new(full)),
            r#"1e b00000001 01 "s"
               04 "jobs" 02 01 "k" 03 08 00 01 03 01 07 01 06 "@daily" 01 03 "UTC" 01 01 01 "p"
               e8 07 01 ac 02 02 01 00 05 01 04 06 e9 07"#,
        ),
        (
            Reply::Schedule(Box::new(fresh)),
            r#"1e b00000000 01 "s" 04 "jobs" 00 00 00 00 ac 02 09 00 00 01 "p"
               00 00 00 00 00 00 00"#,
        ),
    ]);
}

#[test]
fn answers_to_who_looks() {
    let reasons = vec![
        Reason::Delayed { until: at(5) },
        Reason::Taken { client: Some(ClientId(9)), since: None, until: Some(at(6)) },
        Reason::Buried { reason: Some(text("no")) },
        Reason::Buried { reason: None },
        Reason::Expired,
        Reason::Paused,
        Reason::Limit { taken: 3, most: 2 },
        Reason::Rate { next_at: at(7) },
        Reason::NoPriority,
        Reason::Behind { at_least: 128 },
        Reason::NoConsumer,
        Reason::Next,
    ];
    let explanation = Explanation {
        id: Some(TaskId::Given(text("x"))),
        state: Some(StateKind::Waiting),
        since: Some(at(1)),
        reasons,
    };
    let place = LeasePlace { lane: Some(5), queue: text("news"), seq: 7 };
    let lease = LeaseShown {
        place: place.clone(),
        member: Some(text("m")),
        id: TaskId::Number(6),
        holder: Some(ClientId(9)),
        since: Some(at(1)),
        until: None,
    };
    let waiting = task(State::Waiting { ready_at: at(6) });
    have_the_bytes([
        (
            Reply::Explained(Box::new(explanation)),
            r#"29 b01111011 01 "x" 01 0c 01 05 02 b00000101 09 06 03 b00000001 02 "no"
               03 b00000000 04 05 06 03 02 07 07 08 09 80 01 0a 0b"#,
        ),
        (Reply::Explained(Box::default()), "29 b00000000 00"),
        (
            Reply::Scanned { tasks: vec![waiting], next: std::num::NonZeroU64::new(128) },
            r#"2a b00000001 80 01 01 04 "jobs" 00 01 00 04 00 08 02 06 00 00"#,
        ),
        (Reply::Scanned { tasks: Vec::new(), next: None }, "2a b00000000 00"),
        (
            Reply::Leases { leases: vec![lease], next: Some(Box::new(place)) },
            r#"2b b00000001 01 b00101101 b00000001 05 04 "news" 07 06 09 01 01 "m"
               b00000001 05 04 "news" 07"#,
        ),
        (Reply::Leases { leases: Vec::new(), next: None }, "2b b00000000 00"),
    ]);
}

#[test]
fn answers_about_a_queue() {
    let settings = Settings {
        ids: Ids::Given,
        ttl: Some(Span::from_ms(7)),
        after_ack: AfterAck::Zombie(Span::from_ms(8)),
        capacity: Some(128),
        ..Settings::default()
    };
    let paused = Paused::endlessly(false, true);
    let entered = Move::new(None, Some(StateKind::Ready));
    let left = Move::new(Some(StateKind::Taken), None);
    let waited = TimeHistogram { sum_ms: 300, counts: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] };
    let held = TimeHistogram { sum_ms: 1, ..TimeHistogram::default() };
    let times = Times { waited, held, limited_ms: 21 };
    let figures = Figures {
        counters: Counters {
            counts: [1, 2, 3, 4, 5, 6],
            moves: vec![(entered, 9), (left, 8)],
            put: 10,
            acked: 11,
            expired: 12,
            killed: 13,
            dead: 14,
            evicted: 15,
            moved: 16,
            purged: 22,
            revived: 23,
            failures: 17,
            duplicates: 19,
            bytes: 18,
            times: Some(Box::new(times)),
        },
        oldest_ready: Some(Span::from_ms(5)),
        priorities: vec![(-1, 3), (2, 128)],
        takers: 15,
        subscribers: 16,
        paused,
        paused_queues: 17,
        queues: 18,
        missed: Some(1),
        holds_dead_letters: true,
    };
    have_the_bytes([
        (
            Reply::Settings { settings: Box::new(settings), paused, created: true },
            "0d b00010100 01 03 03 02 02 07 04 02 08 05 01 80 01 00",
        ),
        (
            Reply::Figures(Box::new(figures)),
            "0f e9 03 01 02 03 04 05 06 02 01 09 20 08 0a 0b 0c 0d 0e 0f 10 11 13 12 \
             16 17 ac 02 01 02 03 04 05 06 07 08 09 0a 0b 01 00 00 00 00 00 00 00 00 00 00 00 15 \
             05 02 01 03 04 80 01 0f 10 11 12 01",
        ),
        (
            Reply::Figures(Box::default()),
            "0f b00000000 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
        ),
    ]);
}
