//! The bytes of every record are as documented, records of older versions are read with the same
//! meaning, and malformed ones are refused.

use pinpriq_proto::batches::{After, BatchRecord, BatchState, Cancelling, OnlyIf};
use pinpriq_proto::change::{
    Change, Copied, Granted, LaneRecord, MemberRecord, Moved, Publication, QueueRecord,
    ScheduleMoved, ScheduleRecord,
};
use pinpriq_proto::command::Assign;
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::named_limits::{LimitRecord, LimitRules};
use pinpriq_proto::records::Malformed::{self, OutOfRange, Short, UnknownAttribute, UnknownKind};
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence, Scheduled};
use pinpriq_proto::settings::{
    AfterAck, Ids, OnExpiry, Overflow, Pause, Paused, Ranking, Rate, Settings,
};
use pinpriq_proto::shares::{Own, ShareRecord, ShareRules};
use pinpriq_proto::task::history::{Attempt, Contact, End, How};
use pinpriq_proto::task::{
    Aged, Burial, Bytes, Cancelled, ClientId, Counts, Grant, LaneName, Lease, Origin, Past,
    Progress, Retries, State, TaskId, TaskRecord, Terms, Trace, headers,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;
use pinpriq_store::codec::{Names, decode};

use crate::records::{decode_all, hex};

/// Bytes from hexadecimal digits, in groups of any length. `H` is the highest number.
fn bytes(digits: &str) -> Vec<u8> {
    let digits = digits.replace('H', "ffffffffffffffffff01");
    let digits: Vec<u8> = digits.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn text(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// A task without any optional attribute.
fn plain_task() -> TaskRecord {
    TaskRecord {
        number: 1,
        queue: text("jobs"),
        lane: None,
        id: TaskId::Number(1),
        put_at: at(0),
        terms: Terms::NONE,
        progress: Progress::fresh(1, None),
        past: None,
        payload: text(""),
        away: None,
        shared: false,
    }
}

fn attempt(end: Option<End>) -> Attempt {
    let contact = Contact { name: text("n"), address: text("a") };
    Attempt { client: Some(ClientId(300)), contact, taken_at: at(1), end }
}

/// A task with every attribute.
fn full_task() -> TaskRecord {
    let failed = End { at: at(2), how: How::Failed, reason: Some(text("no")) };
    let lease = Lease {
        grant: Grant { incarnation: 2, serial: 300 },
        holder: None,
        deadline: Some(at(5_000)),
        ttr: None,
    };
    TaskRecord {
        number: 129,
        id: TaskId::Given(text("x")),
        put_at: at(1_000),
        terms: Terms::of(Some(text("k")), Some(Span::from_ms(3_000)))
            .with_all(
                Some(text("s")),
                300,
                Some(Bytes::from(headers::encode([(&b"h"[..], &b"v"[..])]))),
            )
            .with_retries(Retries {
                attempts: Assign::To(Some(300)),
                backoff: Assign::To(None),
                backoff_max: Some(Span::from_ms(1)),
            }),
        progress: Progress {
            priority: Some(-2),
            seq: 130,
            expires_at: Some(at(2_000)),
            attempts: 4,
            failures: 3,
            reason: Some(text("no")),
            trace: Trace {
                delay: Span::from_ms(300),
                counts: Counts { timeouts: 1, releases: 2, buries: 3, kicks: 4 },
                is_held: true,
                aged: Aged { start: Some(at(9)), ageing: Some(Span::from_ms(300)) },
                cancelled: Some(Cancelled { reason: text("why"), deadline: Some(at(6_000)) }),
                progress_text: None,
                checkpoint: Some(text("c")),
                result: None,
                history: Some(vec![attempt(Some(failed)), attempt(None)].into()),
                after: None,
            }
            .kept(),
            state: State::Taken(lease),
        },
        past: Past::of(
            Some(Origin {
                queue: text("jobs"),
                id: TaskId::Number(128),
                put_at: at(1_000),
                attempts: 4,
                failures: 3,
                at: at(2_000),
            }),
            Some(Scheduled { schedule: text("s"), slot: Some(at(5)) }),
            Some(text("u")),
        ),
        payload: text("hello"),
        ..plain_task()
    }
}

/// The same task as older versions could know it.
fn former_task() -> TaskRecord {
    let mut task = full_task();
    task.past = None;
    task.terms = task.terms.with_all(None, 1, None).with_retries(Retries::OF_QUEUE);
    (task.progress.failures, task.progress.reason) = (0, None);
    task.progress.trace = None;
    task
}

fn in_lane(task: TaskRecord, lane: u64) -> TaskRecord {
    TaskRecord { queue: Bytes::default(), lane: Some(LaneName::numbered(lane)), ..task }
}

fn publication() -> (Publication, Vec<Copied>) {
    let publication = Publication {
        first: 129,
        last: 131,
        put_at: at(1_000),
        terms: Terms { key: Some(text("k")), ..Terms::NONE },
        priority: Some(-2),
        expires_at: Some(at(2_000)),
        payload: text("hello"),
    };
    let copies = [Copied { number: 129, lane: 130 }, Copied { number: 131, lane: 133 }];
    (publication, copies.into())
}

fn bare_publication() -> Publication {
    Publication {
        first: 1,
        last: 1,
        put_at: at(0),
        terms: Terms::NONE,
        priority: None,
        expires_at: None,
        payload: text(""),
    }
}

fn settings() -> Settings {
    Settings {
        ids: Ids::Given,
        ttl: Some(Span::from_ms(7)),
        ttr: None,
        after_ack: AfterAck::Zombie(Span::from_ms(8)),
        capacity: Some(128),
        attempts: Some(3),
        backoff: Some(Span::from_ms(9)),
        backoff_max: Span::from_ms(128),
        dead_letter: Some(text("dead")),
        on_expiry: OnExpiry::DeadLetter,
        limit: Some(5),
        rate: Some(Rate { count: 100, per: Span::from_ms(1_000) }),
        capacity_bytes: Some(6),
        overflow: Overflow::Evict,
        release_fails: true,
        cost_max: 1_000,
        ranking: Ranking::Ageing,
        ageing: Some(Span::from_ms(500)),
        ageing_usual: Some(Span::from_ms(300)),
        ..Settings::default()
    }
}

/// The same settings as older versions could know them.
fn former_settings() -> Settings {
    let (ids, capacity) = (Ids::Given, Some(128));
    let (ttl, after_ack) = (settings().ttl, settings().after_ack);
    Settings { ids, ttl, after_ack, capacity, ..Settings::default() }
}

fn queue(settings: Settings) -> Change {
    let paused = Paused::endlessly(false, true);
    Change::Queue(Box::new(QueueRecord { name: text("jobs"), created: true, settings, paused }))
}

/// Paused for puts until a moment.
fn paused_until() -> Change {
    let paused = Paused { input: Pause::Until(at(5_000)), output: Pause::Off };
    let (name, settings) = (text("jobs"), Settings::default());
    Change::Queue(Box::new(QueueRecord { name, created: false, settings, paused }))
}

fn lane(settings: Settings) -> Change {
    Change::Lane(Box::new(LaneRecord {
        number: 130,
        topic: text("news"),
        member: 129,
        settings,
        paused: Paused::endlessly(true, false),
    }))
}

fn cron_plan() -> Plan {
    Plan {
        queue: text("jobs"),
        payload: text("p"),
        terms: Terms::of(Some(text("k")), Some(Span::from_ms(8))),
        priority: Some(-2),
        ttl: Some(Span::from_ms(7)),
        form: Recurrence::Cron { expression: text("@daily"), zone: Some(text("UTC")) },
        on_missed: OnMissed::All,
        overlap: Overlap::Skip,
    }
}

fn every_plan() -> Plan {
    Plan {
        queue: text("jobs"),
        payload: text(""),
        terms: Terms::NONE,
        priority: None,
        ttl: None,
        form: Recurrence::Every { every: Span::from_ms(300), anchor: at(9) },
        on_missed: OnMissed::None,
        overlap: Overlap::Allow,
    }
}

fn course() -> Course {
    Course {
        done_until: at(1_000),
        paused: true,
        fired: 300,
        missed: 2,
        last_id: Some(TaskId::Number(5)),
        last_slot: Some(at(4)),
        last_number: 6,
    }
}

fn schedule(plan: Plan, course: Course) -> Change {
    let (number, name) = (129, text("s"));
    Change::Schedule(Box::new(ScheduleRecord { number, name, plan, course }))
}

fn window() -> Change {
    let (queue, key, id) = (text("jobs"), text("u"), TaskId::Number(128));
    Change::detail(WindowRecord { number: 129, queue, key, id, until: at(2_000) })
}

fn share(rules: ShareRules) -> Change {
    let (queue, share) = (text("jobs"), text("s"));
    Change::detail(ShareRecord { number: 129, queue, share, rules })
}

fn limit(rules: LimitRules) -> Change {
    Change::detail(LimitRecord { number: 129, name: text("g"), rules })
}

fn task(task: TaskRecord) -> Change {
    Change::Task(Box::new(task))
}

fn moved(number: u64, progress: Progress) -> Change {
    Change::Moved(Box::new(Moved { number, progress }))
}

fn published((publication, copies): (Publication, Vec<Copied>)) -> Change {
    Change::Published(Box::new(publication), copies)
}

/// Each change with its bytes, field by field in the order of the documentation. These must never
/// change within a version.
#[test]
fn the_bytes_are_those_of_the_page() {
    let (reason, state) = (Some(text("no")), State::Buried(Burial::of_number(300)));
    let buried = Progress { seq: 130, attempts: 4, reason, state, ..Progress::fresh(129, None) };
    let member = MemberRecord {
        incarnation: 129,
        name: text("me"),
        lease: Span::from_ms(60_000),
        ended: true,
    };
    let granted = Granted {
        number: 129,
        incarnation: 2,
        serial: 300,
        deadline: Some(at(5_000)),
        ttr: Some(Span::from_ms(1)),
        attempts: 5,
    };
    let shared = TaskRecord { shared: true, ..plain_task() };
    let held = Progress { state: State::HELD, ..Progress::fresh(129, None) };
    let table = [
        (moved(129, held), "11 8101 080600"),
        (task(plain_task()), "0f 046a6f6273 01 00 00 00"),
        (
            task(full_task()),
            "0f 046a6f6273 8101 e807 01020178 02016b 03b817 140173 15ac02 190401680176 \
             1dac02 1e00 1f01 0403 058201 06d00f 0704 080102ac0201882700 \
             0b03 0c026e6f 11ac02 1201020304 16 1709 18ac02 1a0377687901f02e 1b0163 \
             2102 01ac02016e01610101020201026e6f 01ac02016e01610100 \
             0d046a6f6273008001e8070403d00f 0e01730105 0f0175 00 0568656c6c6f",
        ),
        (
            task(in_lane(full_task(), 130)),
            "10 8201 8101 e807 01020178 02016b 03b817 140173 15ac02 190401680176 \
             1dac02 1e00 1f01 0403 058201 06d00f 0704 080102ac0201882700 \
             0b03 0c026e6f 11ac02 1201020304 16 1709 18ac02 1a0377687901f02e 1b0163 \
             2102 01ac02016e01610101020201026e6f 01ac02016e01610100 \
             0d046a6f6273008001e8070403d00f 0e01730105 0f0175 00 0568656c6c6f",
        ),
        (task(in_lane(shared, 2)), "10 02 01 00 09 00 00"),
        (moved(129, buried), "11 8101 058201 0704 0803026e6f 10ac02 00"),
        (moved(1, Progress::fresh(1, None)), "11 01 00"),
        (
            published(publication()),
            "12 8101 02 e807 02016b 00 0403 06d00f 00 02 00 8201 02 03 0568656c6c6f",
        ),
        (published((bare_publication(), Vec::new())), "12 01 00 00 00 00 00 00"),
        (
            queue(settings()),
            "13 046a6f6273 01 010303 020207 040208 05018001 060103 070209 08028001 \
             09040464656164 0a0301 0b0105 0c0564e807 0d0106 0e0301 0f0301 1001e807 \
             110302 1902f403 ffac02 00 02",
        ),
        (paused_until(), "13 046a6f6273 00 00 05 8827"),
        (queue(Settings::default()), "13 046a6f6273 01 00 02"),
        (
            lane(settings()),
            "14 8201 046e657773 8101 010303 020207 040208 05018001 060103 070209 08028001 \
             09040464656164 0a0301 0b0105 0c0564e807 0d0106 0e0301 0f0301 1001e807 \
             110302 1902f403 ffac02 00 01",
        ),
        (Change::Granted(granted), "03 8101 02 ac02 018827 0101 05"),
        (Change::Gone(129), "04 8101"),
        (Change::QueueGone(text("jobs")), "06 046a6f6273"),
        (Change::Emptied(text("jobs")), "07 046a6f6273"),
        (Change::LaneGone(130), "0b 8201"),
        (Change::LaneEmptied(130), "0c 8201"),
        (Change::Member(Box::new(member)), "0d 8101 026d65 e0d403 01"),
        (Change::MemberGone(129), "0e 8101"),
    ];
    have_the_bytes(table);
}

#[test]
fn the_bytes_of_what_has_to_do_with_batches_are_those_of_the_page() {
    let after =
        After { names: vec![text("a"), text("b")], only_if: OnlyIf::Acked, any_failed: true };
    let trace = Trace { after: Some(after), ..Trace::NONE }.kept();
    let following = Progress { trace, state: State::HELD, ..Progress::fresh(129, None) };
    let mut member_of_batch = plain_task();
    member_of_batch.set_batch(Some(text("g")));
    have_the_bytes([
        (moved(129, following), "11 8101 0806 23 02 0161 0162 01 01 00"),
        (task(member_of_batch), "0f 046a6f6273 01 00 220167 00 00"),
    ]);
}

#[test]
fn the_bytes_of_what_belongs_to_queues_are_those_of_the_page() {
    have_the_bytes([
        (
            schedule(cron_plan(), course()),
            "15 8101 0173 046a6f6273 02016b0308 00 0103 0107 01 06406461696c79 0103555443 01 01 \
             0170 e807 01 ac02 02 010005 0104 06",
        ),
        (
            schedule(every_plan(), Course::default()),
            "15 8101 0173 046a6f6273 00 00 00 00 ac02 09 02 00 00 00 00 00 00 00 00 00",
        ),
        (Change::ScheduleGone(129), "16 8101"),
        (window(), "18 8101 046a6f6273 0175 008001 d00f"),
        (Change::DetailGone(DetailKind::Window, 129), "19 8101"),
        (
            share(ShareRules {
                weight: 300,
                limit: Own::Is(Some(130)),
                rate: Own::Is(Some(Rate { count: 5, per: Span::from_ms(1_000) })),
            }),
            "1a 8101 046a6f6273 0173 ac02 028201 0205e807",
        ),
        (
            share(ShareRules { weight: 1, limit: Own::Is(None), rate: Own::Default }),
            "1a 8101 046a6f6273 0173 01 01 00",
        ),
        (Change::DetailGone(DetailKind::Share, 129), "1b 8101"),
        (
            limit(LimitRules {
                max: Some(130),
                rate: Some(Rate { count: 5, per: Span::from_ms(1_000) }),
            }),
            "1c 8101 0167 018201 0105e807",
        ),
        (limit(LimitRules::default()), "1c 8101 0167 00 00"),
        (Change::DetailGone(DetailKind::Limit, 129), "1d 8101"),
        (
            Change::detail(BatchRecord {
                state: BatchState::Closed,
                changed_at: at(2_000),
                total: 300,
                acked: 2,
                failed: 1,
                cancelling: Some(Cancelling {
                    reason: Some(text("no")),
                    grace: Some(Span::from_ms(300)),
                }),
                ..BatchRecord::new(129, b"g", at(1_000), Some(at(5)))
            }),
            "1e 8101 0167 01 00 e807 d00f 00 0105 ac02 02 01 01 01026e6f 01ac02",
        ),
        (
            Change::detail(BatchRecord {
                state: BatchState::Done,
                given_up: true,
                done_at: Some(at(3)),
                ..BatchRecord::new(129, b"g", at(1), None)
            }),
            "1e 8101 0167 02 01 01 01 0103 00 00 00 00 00",
        ),
        (Change::DetailGone(DetailKind::Batch, 129), "1f 8101"),
        (
            Change::ScheduleMoved(Box::new(ScheduleMoved { number: 129, course: course() })),
            "17 8101 e807 01 ac02 02 010005 0104 06",
        ),
    ]);
}

fn have_the_bytes<const N: usize>(table: [(Change, &str); N]) {
    for (change, digits) in table {
        assert_eq!(hex(&change), digits.replace(' ', ""), "{change:?}");
        assert_eq!(decode_all(&bytes(digits)), Ok(vec![change]), "{digits}");
    }
}

#[test]
fn records_of_older_versions_mean_the_same() {
    let (reason, state) = (Some(text("no")), State::Buried(Burial::UNKNOWN));
    let buried = Progress { seq: 130, attempts: 4, reason, state, ..Progress::fresh(129, None) };
    // Tasks of lanes had no time to release.
    let mut of_lane = in_lane(former_task(), 130);
    of_lane.terms.ttr = None;
    let shared = TaskRecord { shared: true, ..plain_task() };
    let table = [
        (
            "01 8101 046a6f6273 020178 8201 0103 01016b e807 01d00f 01b817 04 0102ac0201882700 \
             0568656c6c6f",
            task(former_task()),
        ),
        ("02 8101 8201 00 00 04 03026e6f", moved(129, buried)),
        ("05 046a6f6273 01 03 0107 00 0208 018001 02", queue(former_settings())),
        (
            "08 8101 02 0103 01016b e807 01d00f 02 00 8201 02 03 0568656c6c6f",
            published(publication()),
        ),
        ("08 01 00 00 00 00 00 00 00", published((bare_publication(), Vec::new()))),
        (
            "09 8101 8201 020178 8201 0103 e807 01d00f 04 0102ac0201882700 01 01016b 0568656c6c6f",
            task(of_lane),
        ),
        ("09 01 02 0001 01 00 00 00 00 00 00", task(in_lane(shared, 2))),
        ("0a 8201 046e657773 8101 03 0107 00 0208 018001 01", lane(former_settings())),
    ];
    for (digits, change) in table {
        assert_eq!(decode_all(&bytes(digits)), Ok(vec![change]), "{digits}");
    }
}

/// Malformed records: what is wrong, the record, and the error.
const MALFORMED: &[(&str, &str, Malformed)] = &[
    ("task: an attribute of a later version", "0f 00 01 00 40 00 00", UnknownAttribute(64)),
    ("task: a burial and not a buried task", "0f 00 01 00 10 00 00", OutOfRange("burial")),
    (
        "task: attributes in the wrong order",
        "0f 00 01 00 0402 02016b 00 00",
        OutOfRange("attribute"),
    ),
    ("task: an attribute twice", "0f 00 01 00 0402 0402 00 00", OutOfRange("attribute")),
    ("task: an unknown kind of id", "0f 00 01 00 0103", UnknownKind { what: "task id", kind: 3 }),
    ("task: its number as its id", "0f 00 01 00 010001 00 00", OutOfRange("id")),
    ("task: its number as its seq", "0f 00 01 00 0501 00 00", OutOfRange("seq")),
    ("task: no attempts, spelled out", "0f 00 01 00 0700 00 00", OutOfRange("attempts")),
    ("task: more attempts than are counted", "0f 00 01 00 07 H 00 00", OutOfRange("attempts")),
    ("task: ready, spelled out", "0f 00 01 00 0800 00 00", OutOfRange("state")),
    ("task: the usual cost, spelled out", "0f 00 01 00 1501 00 00", OutOfRange("cost")),
    ("task: no failures, spelled out", "0f 00 01 00 0b00 00 00", OutOfRange("failures")),
    (
        "task: a buried one with its reason apart",
        "0f 00 01 00 080300 0c0178 00 00",
        OutOfRange("reason"),
    ),
    ("task: an unknown state", "0f 00 01 00 0807 00 00", OutOfRange("state")),
    ("task: a moment beyond the last", "0f 00 01 H 00 00", OutOfRange("moment")),
    ("task: attributes without an end", "0f 00 01 00 0402", Short),
    ("task: a payload longer than the record", "0f 00 01 00 00 06 68656c6c6f", Short),
    ("lane task: a number of eleven bytes", "10 ffffffffffffffffffff", OutOfRange("number")),
    ("moved: an attribute that never changes", "11 01 02016b 00", OutOfRange("attribute")),
    ("publication: last beyond any number", "12 02 H", OutOfRange("number")),
    ("publication: attempts", "12 01 00 00 00 0701 00 00 00", OutOfRange("attribute")),
    (
        "publication: put at a moment beyond the last",
        "12 01 00 H 00 00 00 00",
        OutOfRange("moment"),
    ),
    (
        "publication: a copy beyond the last",
        "12 01 01 00 00 00 02 0001 0201 00",
        OutOfRange("copy"),
    ),
    (
        "publication: the first copy beyond the last",
        "12 01 01 00 00 00 01 0201 00",
        OutOfRange("copy"),
    ),
    (
        "publication: two copies of one number",
        "12 01 01 00 00 00 02 0001 0001 00",
        OutOfRange("copy"),
    ),
    (
        "publication: two copies in one lane",
        "12 01 01 00 00 00 02 0001 0100 00",
        OutOfRange("copy"),
    ),
    (
        "publication: a copy beyond any number",
        "12 01 01 00 00 00 02 0001 H 01 00",
        OutOfRange("number"),
    ),
    (
        "publication: a lane beyond any number",
        "12 01 01 00 00 00 02 0001 01 H 00",
        OutOfRange("number"),
    ),
    ("publication: more copies than bytes", "12 01 01 00 00 00 H 0001 00", Short),
    ("publication: one copy more than there is", "12 01 01 00 00 00 02 0001 00", Short),
    ("publication: a payload longer than the record", "12 01 00 00 00 00 00 06 68656c6c6f", Short),
    ("queue: a setting of a later version", "13 00 01 4000 00 00", UnknownAttribute(64)),
    ("queue: settings in the wrong order", "13 00 01 020207 010303 00 00", OutOfRange("IDS")),
    ("queue: neither created nor not", "13 00 02 00 00", OutOfRange("created")),
    ("lane: unknown ids", "14 01 0174 02 010304 00 00", OutOfRange("IDS")),
    ("lane: the default ids, spelled out", "14 01 0174 02 010300 00 00", OutOfRange("IDS")),
    ("lane: an unknown end of tasks", "14 01 0174 02 040302 00 00", OutOfRange("AFTERACK")),
    ("lane: an unknown side is paused", "14 01 0174 02 00 04", OutOfRange("paused")),
    ("member: neither ended nor not", "0d 01 016d 01 02", OutOfRange("ended")),
    ("member: a name longer than the record", "0d 01 026d", Short),
    ("lane gone: no number", "0b", Short),
    (
        "schedule: an unknown recurrence",
        "15 01 0173 0171 00 00 00 02 ac02 09 00 00 00 00 00 00 00 00 00 00",
        UnknownKind { what: "recurrence", kind: 2 },
    ),
    (
        "schedule: an unknown word for missed slots",
        "15 01 0173 0171 00 00 00 00 ac02 09 03 00 00 00 00 00 00 00 00 00",
        UnknownKind { what: "on missed", kind: 3 },
    ),
    (
        "schedule: an unknown word for overlaps",
        "15 01 0173 0171 00 00 00 00 ac02 09 00 02 00 00 00 00 00 00 00 00",
        UnknownKind { what: "overlap", kind: 2 },
    ),
    ("schedule moved: neither paused nor not", "17 01 00 02 00 00 00 00 00", OutOfRange("flag")),
    ("schedule moved: cut short", "17 01 00 00 00 00 00 00", Short),
    ("moved: what is ready waits for nothing", "11 01 23 01 0161 00 00 00", OutOfRange("after")),
    ("moved: an unknown condition", "11 01 0806 23 01 0161 03 00 00", OutOfRange("after")),
    ("moved: failed or not", "11 01 0806 23 01 0161 00 02 00", OutOfRange("after")),
    ("moved: it waits for too many", "11 01 0806 23 11 00", OutOfRange("after")),
    ("batch: an unknown state", "1e 01 0167 03 00 01 01 00 00 00 00 00 00", OutOfRange("batch")),
    ("batch: given up or not", "1e 01 0167 00 02 01 01 00 00 00 00 00 00", OutOfRange("batch")),
    ("batch: done at no time", "1e 01 0167 02 00 01 01 00 00 00 00 00 00", OutOfRange("batch")),
    (
        "batch: more ended than came",
        "1e 01 0167 00 00 01 01 00 00 01 01 01 00",
        OutOfRange("batch"),
    ),
    ("gone: a number that is not in its shortest form", "04 8100", OutOfRange("number")),
    ("older task: presence neither 0 nor 1", "01 01 00 0001 01 02", OutOfRange("presence")),
    (
        "older task: an unknown state",
        "01 01 00 0001 01 00 00 00 00 00 00 07 00",
        OutOfRange("state"),
    ),
    ("older publication: more copies than bytes", "08 01 01 00 00 00 00 H 0001 00", Short),
    (
        "older lane task: own content neither there nor not",
        "09 01 02 0001 01 00 00 00 00 00 02",
        OutOfRange("presence"),
    ),
    ("older lane: unknown ids", "0a 01 0174 02 04 00 00 00 00 00", OutOfRange("ids")),
    (
        "older lane: an unknown end of tasks",
        "0a 01 0174 02 00 00 00 03 00 00",
        OutOfRange("after_ack"),
    ),
];

#[test]
fn a_malformed_record_is_refused_with_the_field() {
    for (what, digits, expected) in MALFORMED {
        let refused = decode(&mut &bytes(digits)[..], &mut Names::default());
        assert_eq!(refused, Err(*expected), "{what}: {digits}");
    }
}

/// A record that declares so many copies that a vector for them would not fit any memory.
#[test]
fn nothing_is_allocated_for_copies_that_are_only_declared() {
    for count in ["ffffffffffffffffff01", "ffffffff7f", "8080808010"] {
        // Enough zeros after it to decode some copies, but not all of them.
        let mut record = bytes(&format!("12 01 01 00 00 00 {count}"));
        record.resize(record.len() + 1_000, 0);
        let refused = decode(&mut &record[..], &mut Names::default());
        assert_eq!(refused, Err(Short), "{count}");
    }
}
