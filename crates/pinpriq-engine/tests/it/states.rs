//! Drives every cell of the table of states through the engine.
//!
//! The engine's own table is compared with `docs/internals/states.md`, with the table of the
//! specification, and with what a new engine does in each cell. A refused operation must not change
//! the record of the task.

use std::collections::BTreeSet;

use expect_test::expect_file;
use pinpriq_engine::{Engine, transition_listing};
use pinpriq_proto::batches::{Bonds, OnlyIf, encode_names};
use pinpriq_proto::command::{
    Ack, Amendment, Assign, BatchCommand, Bulk, BulkChange, Bury, Cancel, Command, Deed, Delay,
    Fail, Held, HeldBy, Put, QueueCommand, Release, Selection, Take, TakeMode, TimeToLive, Touch,
    Transfer, Update, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{
    AFTERACK, ATTEMPTS, AfterAck, Assignment, BACKOFF, CAPACITY, IDS, Ids, OVERFLOW, Overflow,
};
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};

use StateKind::{Buried, Done, Ready, Waiting, Zombie};

/// The columns, in the words of the listing.
const STANDINGS: [&str; 8] = ["X", "R", "T, held here", "T, held elsewhere", "W", "B", "Z", "D"];

/// The specification, row by row. `—` cannot happen, `=` changes nothing.
const SPECIFIED: [(&str, [&str; 8]); 41] = [
    (
        "put with that id",
        ["R, W, B", "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS", "EXISTS"],
    ),
    ("take", ["—", "T", "—", "—", "—", "—", "—", "—"]),
    ("take by number", ["NOTFOUND", "T", "NOTFOUND", "NOTFOUND", "T", "T", "NOTFOUND", "NOTFOUND"]),
    ("take by id", ["=", "T", "=", "=", "T", "T", "=", "="]),
    ("pop", ["—", FINISHED, "—", "—", "—", "—", "—", "—"]),
    ("put back", ["R, X", "=", "=", "=", "=", "=", "R, X", "R, X"]),
    ("ack by receipt", ["—", "—", FINISHED, FINISHED, "—", "—", "—", "—"]),
    ("ack by another receipt", ["STALE"; 8]),
    ("ack by id", bare(FINISHED)),
    ("release by receipt", ["—", "—", "R, W, X", "R, W, X", "—", "—", "—", "—"]),
    ("release by another receipt", ["STALE"; 8]),
    ("release by id", bare("R, W, X")),
    ("bury by receipt", ["—", "—", "B", "B", "—", "—", "—", "—"]),
    ("bury by another receipt", ["STALE"; 8]),
    ("bury by id", bare("B")),
    ("fail by receipt", ["—", "—", FAILED, FAILED, "—", "—", "—", "—"]),
    ("fail by another receipt", ["STALE"; 8]),
    ("fail by id", bare(FAILED)),
    ("touch by receipt", ["—", "—", IN_PLACE, IN_PLACE, "—", "—", "—", "—"]),
    ("touch by another receipt", ["STALE"; 8]),
    ("touch by id", ["NOTFOUND", IN_PLACE, IN_PLACE, "NOTOWNER", "=", "=", "=", "="]),
    ("start by receipt", ["—", "—", IN_PLACE, IN_PLACE, "—", "—", "—", "—"]),
    ("start by another receipt", ["STALE"; 8]),
    ("called back", ["—", "—", "R, X", "R, X", "—", "—", "—", "—"]),
    (
        "update",
        ["NOTFOUND", IN_PLACE, IN_PLACE, "NOTOWNER", IN_PLACE, IN_PLACE, IN_PLACE, IN_PLACE],
    ),
    ("await", ["NOTFOUND", "blocks", "blocks", "blocks", "blocks", "buried", "acked", "acked"]),
    (
        "dig",
        [
            "NOTFOUND",
            "WRONGSTATE",
            "TAKEN",
            "TAKEN",
            "WRONGSTATE",
            "R, W, X",
            "WRONGSTATE",
            "WRONGSTATE",
        ],
    ),
    (
        "kick",
        ["NOTFOUND", "NOTFOUND", "NOTFOUND", "NOTFOUND", "R, X", "R, X", "NOTFOUND", "NOTFOUND"],
    ),
    ("kill", ["=", "X", "X", "X", "X", "X", "X", "X"]),
    ("cancel", ["NOTFOUND", "X", IN_PLACE, IN_PLACE, "X", "X", "=", "="]),
    ("switch", ["NOTFOUND", ANY, "TAKEN", "TAKEN", ANY, ANY, ANY, ANY]),
    (
        "snatch",
        [
            "NOTFOUND", "NOTTAKEN", "R, W, X", "R, W, X", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN",
            "NOTTAKEN",
        ],
    ),
    ("restart", ["NOTFOUND", "=", "TAKEN", "TAKEN", "R, W, X", "R, W, X", "R, W, X", "R, W, X"]),
    ("delayed in bulk", ["=", "W", "=", "=", "R, W", "=", "=", "="]),
    (FOLLOWS, ["—", "—", "—", "—", "R, W, X", "—", "—", "—"]),
    ("move to another queue", ["—", "X", "—", "—", "X", "X", "X", "X"]),
    ("put again, to replace it", ["—", "R, W", "TAKEN", "TAKEN", "R, W", "R, W", "—", "—"]),
    ("make room for a more urgent one", ["—", "X", "—", "—", "—", "—", "—", "—"]),
    (
        "arrive by import or from another queue",
        ["R, W, B, Z, D", "—", "—", "—", "—", "—", "—", "—"],
    ),
    ("its deadline passes", ["—", "X", FAILED, FAILED, "R, X", "=", "X", "—"]),
    ("its holder is gone", ["—", "—", FAILED, FAILED, "—", "—", "—", "—"]),
];

const FOLLOWS: &str = "the batches before it are done";
const FAILED: &str = "R, W, B, X";
const FINISHED: &str = "X, Z, D";
const IN_PLACE: &str = "changed in place";
const ANY: &str = "R, W, B, Z, D, X";

/// The row of an operation by the bare id of a task that must be taken.
const fn bare(done: &'static str) -> [&'static str; 8] {
    ["NOTFOUND", "NOTTAKEN", done, "NOTOWNER", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN", "NOTTAKEN"]
}

#[test]
fn listing_is_what_the_page_says() {
    let introduction = "# States\n\nWhat each operation does to a task in each state. The rows are \
        the operations, the columns are\nwhere the task stands, seen by the connection that asks; \
        a cell names the states that the task may\nmove to, or the refusal. `=` changes nothing, \
        `—` cannot come up.\n\n";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/states.md");
    expect_file![page].assert_eq(&format!("{introduction}{}", transition_listing()));
}

#[test]
fn listing_agrees_with_the_specification() {
    let listed = listed();
    assert_eq!(listed.len(), SPECIFIED.len());
    for ((name, cells), (specified_name, specified)) in listed.iter().zip(SPECIFIED) {
        assert_eq!(name, specified_name);
        for ((cell, expected), standing) in cells.iter().zip(specified).zip(STANDINGS) {
            assert_eq!(cell, expected, "{name} in {standing}");
        }
    }
}

#[test]
fn engine_does_what_the_listing_says() {
    let mut failures = Vec::new();
    for (row, cells) in listed() {
        for (cell, standing) in cells.iter().zip(STANDINGS) {
            let seen: BTreeSet<String> = variants(&row)
                .iter()
                .filter_map(|variant| drive(&row, standing, *variant))
                .collect();
            let mut expected: BTreeSet<String> = cell.split(", ").map(str::to_owned).collect();
            let never = BTreeSet::from(["—".to_owned()]);
            // A TTL applies in R and W, so a task there is removed before it can be moved.
            if matches!(standing, "R" | "W")
                && matches!(row.as_str(), "switch" | "restart" | "kick")
            {
                expected.remove("X");
            }
            let fits = seen == expected || (expected == never && seen.is_empty());
            if !fits {
                failures.push(format!("{row} in {standing}: {seen:?}, listed {expected:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns the rows of the listing with their cells.
fn listed() -> Vec<(String, Vec<String>)> {
    let listing = transition_listing();
    let mut rows = listing.lines().map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let name = cells.next().unwrap_or_default();
        (name, cells.collect::<Vec<_>>())
    });
    assert_eq!(rows.next().expect("a head").1, STANDINGS);
    rows.skip(1).collect()
}

/// How an operation is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    /// Without changes.
    Plain,
    /// With a delay.
    Delayed,
    /// After the TTL of the task has passed.
    Late,
    /// In a queue that does this with finished tasks.
    In(AfterAck),
    /// In a queue in which failed tasks wait first.
    BackingOff,
    /// In a queue in which tasks may fail only once.
    Once,
    /// It comes from a queue where it was in this state.
    From(StateKind),
    /// To this state.
    To(StateKind),
}

const STAY: Span = Span::from_ms(500);

fn variants(row: &str) -> Vec<Variant> {
    use Variant::{BackingOff, Delayed, From, In, Late, Once, Plain, To};
    if row == "pop" || row.starts_with("ack") {
        return vec![Plain, In(AfterAck::Keep), In(AfterAck::Zombie(STAY))];
    }
    if row.starts_with("release") || matches!(row, "dig" | "snatch" | "restart") {
        return vec![Plain, Delayed, Late];
    }
    if row.starts_with("fail") {
        return vec![Plain, Delayed, Late, BackingOff, Once];
    }
    match row {
        "put with that id" => vec![Plain, Delayed, To(Buried)],
        FOLLOWS => vec![Plain, Delayed, Once],
        "put again, to replace it" | "delayed in bulk" => vec![Plain, Delayed],
        "kick" | "put back" | "called back" => vec![Plain, Late],
        "its deadline passes" | "its holder is gone" => vec![Plain, Late, BackingOff, Once],
        "arrive by import or from another queue" => {
            vec![From(Ready), From(Waiting), From(Buried), From(Zombie), From(Done)]
        }
        "switch" => vec![Late, To(Ready), To(Waiting), To(Buried), To(Zombie), To(Done)],
        _ => vec![Plain],
    }
}

const QUEUE: &[u8] = b"jobs";
const OTHER: &[u8] = b"other jobs";
const ID: &[u8] = b"task";
const BATCH: &[u8] = b"batch";
const UNIQUE: Unique<'static> =
    Unique { key: b"u", window: None, on_duplicate: OnDuplicate::Replace };
const HERE: ClientId = ClientId(1);
const ELSEWHERE: ClientId = ClientId(2);
const TTL: Span = Span::from_ms(1_000);
const TTR: Span = Span::from_ms(5_000);
const DELAY: Span = Span::from_ms(300);

/// An engine with the task that is tested.
struct Bench {
    engine: Engine,
    now: Timestamp,
    popped: TaskRecord,
    old: Receipt,
    current: Option<Receipt>,
}

/// What an operation does in one cell; `None` if it cannot be tried there.
fn drive(row: &str, standing: &str, variant: Variant) -> Option<String> {
    // Only a waiting task waits for a batch.
    if row == FOLLOWS && standing != "W" {
        return None;
    }
    let mut bench = Bench::new(row, standing, variant);
    if variant == Variant::Late && row != "its deadline passes" {
        // In R and W the TTL removes the task, so there is no task to try it on.
        if matches!(standing, "R" | "W") {
            return None;
        }
        bench.now = bench.now.after(TTL);
        bench.engine.handle_timeout(bench.now);
    }
    let before = bench.record();
    if row == "its holder is gone" || row == "its deadline passes" {
        bench.happen(row, standing, variant);
        let after = bench.record();
        bench.engine.check();
        // Where nothing can happen, no change is not a result. In B, however, a TTL does pass.
        let is_news = row == "its deadline passes" && standing == "B";
        return verdict(row, before.as_ref(), after.as_ref(), None)
            .filter(|word| word != "=" || is_news);
    }
    let by_receipt = row.ends_with("by receipt");
    if by_receipt && bench.current.is_none() {
        return None;
    }
    // Another put would be a new task.
    if row.starts_with("put again") && matches!(standing, "X" | "Z" | "D") {
        return None;
    }
    let answer = bench.operate(row, variant);
    let after = bench.record();
    bench.engine.check();
    let moves = row.ends_with("another queue") || row.starts_with("make room");
    let moves = moves || row == "called back" || (row == "delayed in bulk" && standing == "R");
    if moves && before == after {
        return None;
    }
    let Some(reply) = answer else { return Some("blocks".to_owned()) };
    if let Reply::Refused(refusal) = &reply {
        assert_eq!(before, after, "a refused {row} in {standing} changed the task");
        assert!(!refusal.sentence.is_empty(), "a refused {row} in {standing} says nothing");
        return Some(refusal.kind.word().to_owned());
    }
    verdict(row, before.as_ref(), after.as_ref(), Some(&reply))
}

/// The word for the result.
fn verdict(
    row: &str,
    before: Option<&TaskRecord>,
    after: Option<&TaskRecord>,
    reply: Option<&Reply>,
) -> Option<String> {
    match (reply, row) {
        (Some(Reply::Outcome(outcome, _)), _) => return Some(outcome.word().to_owned()),
        (Some(Reply::Tasks { tasks, .. }), _) if tasks.is_empty() => {
            return (row == "take by id").then(|| "=".to_owned());
        }
        _ => {}
    }
    let stays = before.is_some() == after.is_some()
        && before.map(|task| task.progress.state.kind())
            == after.map(|task| task.progress.state.kind());
    match (before, after) {
        // Putting back a task that has expired meanwhile counts as done.
        (None, None) if row == "put back" => Some("X".to_owned()),
        // A move into the same state is a move too.
        _ if stays && (row == "switch" || row.starts_with("put again")) => {
            after.map(|task| task.progress.state.kind().to_string())
        }
        _ if stays && matches!(row, "restart" | "delayed in bulk" | FOLLOWS) && before != after => {
            after.map(|task| task.progress.state.kind().to_string())
        }
        _ if before == after => Some("=".to_owned()),
        _ if stays => Some(IN_PLACE.to_owned()),
        _ => Some(
            after.map_or_else(|| "X".to_owned(), |task| task.progress.state.kind().to_string()),
        ),
    }
}

impl Bench {
    fn new(row: &str, standing: &str, variant: Variant) -> Self {
        // The table is about what is known of tasks that are there.
        let mut engine = Engine::new(Limits { endings_max: 0, ..Limits::default() }, 7);
        engine.start(Timestamp::from_ms(1), 1, pinpriq_proto::change::Header::default());
        let settings = &[(IDS, Ids::Given.into()), (AFTERACK, AfterAck::Keep.into())];
        let now = Timestamp::from_ms(10);
        let create = Command::Queue(QueueCommand::Create { queue: QUEUE, settings });
        assert_eq!(ask(&mut engine, now, HERE, create), Some(Reply::Done));
        // Most variants need a TTL in the far future. The late variants need it to be over.
        let far = Span::from_ms(1_000_000);
        let timely = variant == Variant::Late || row == "its deadline passes" && standing == "R";
        let ttl = if timely { TTL } else { far };
        let unique = row.starts_with("put again").then_some(UNIQUE);
        let put = Put { id: Some(ID), ttl: TimeToLive::For(ttl), ..Put::new(QUEUE, b"payload") };
        let put = Put { unique, ..put };
        ask(&mut engine, now, HERE, Command::Put(put));
        let mut bench = Self::with_history(engine, now);
        bench.arrange(row, standing);
        if row == FOLLOWS {
            bench.follow(variant);
        }
        match variant {
            Variant::In(after_ack) => bench.set_after_ack(after_ack),
            Variant::BackingOff => bench.set((BACKOFF, Some(STAY).into())),
            Variant::Once => bench.set((ATTEMPTS, Some(1).into())),
            Variant::From(kind) => bench.put_elsewhere(kind),
            _ => {}
        }
        bench.engine.check();
        bench
    }

    /// The task was popped once and put back, and taken once and released.
    fn with_history(mut engine: Engine, now: Timestamp) -> Self {
        let popped = taken(ask(&mut engine, now, HERE, take(TakeMode::Pop)));
        let restart = Command::Restart(Transfer::new(QUEUE, ID));
        assert_eq!(ask(&mut engine, now, HERE, restart), Some(Reply::State(Some(Ready))));
        let held = taken(ask(&mut engine, now, HERE, take(TakeMode::Lease { ttr: None })));
        let old = held.receipt().expect("it is taken");
        let mut bench = Self { engine, now, popped, old, current: None };
        bench.current = Some(old);
        let reply = bench.operate("release by receipt", Variant::Plain);
        assert_eq!(reply, Some(Reply::State(Some(Ready))));
        bench.current = None;
        bench.set_after_ack(AfterAck::Delete);
        bench
    }

    fn set_after_ack(&mut self, after_ack: AfterAck) {
        self.set((AFTERACK, after_ack.into()));
    }

    /// Puts a task into another queue, in this state.
    fn put_elsewhere(&mut self, kind: StateKind) {
        let settings = &[(IDS, Ids::Given.into())];
        let create = Command::Queue(QueueCommand::Create { queue: OTHER, settings });
        assert_eq!(ask(&mut self.engine, self.now, HERE, create), Some(Reply::Done));
        let put = Put { id: Some(ID), ..Put::new(OTHER, b"payload") };
        ask(&mut self.engine, self.now, HERE, Command::Put(put));
        let delay = if matches!(kind, Waiting | Zombie) { STAY } else { Span::ZERO };
        let transfer = Transfer { delay, ..Transfer::new(OTHER, ID) };
        ask(&mut self.engine, self.now, HERE, Command::Switch { transfer, to: kind });
    }

    fn set(&mut self, setting: Assignment<'static>) {
        let settings = &[setting];
        let set = Command::Queue(QueueCommand::Set { queue: QUEUE.into(), settings });
        assert_eq!(ask(&mut self.engine, self.now, HERE, set), Some(Reply::Done));
    }

    /// Moves the task to its standing.
    fn arrange(&mut self, row: &str, standing: &str) {
        let (engine, now) = (&mut self.engine, self.now);
        let ttr = (row != "its holder is gone").then_some(TTR);
        let mut switch = |to, delay| {
            let transfer = Transfer { delay, ..Transfer::new(QUEUE, ID) };
            let reply = ask(engine, now, HERE, Command::Switch { transfer, to });
            assert_eq!(reply, Some(Reply::State(Some(to))));
        };
        match standing {
            "W" => switch(Waiting, STAY),
            "B" => switch(Buried, Span::ZERO),
            "Z" => switch(Zombie, Span::from_ms(10_000)),
            "D" => switch(Done, Span::ZERO),
            "X" => {
                ask(engine, now, HERE, Command::Kill { queue: QUEUE.into(), ids: &[ID] });
            }
            "T, held here" | "T, held elsewhere" => {
                let client = if standing == "T, held here" { HERE } else { ELSEWHERE };
                if row == "called back" {
                    return self.deliver(client);
                }
                let held = taken(ask(engine, now, client, take(TakeMode::Lease { ttr })));
                self.current = held.receipt();
            }
            _ => {}
        }
    }

    /// Puts a task in its place that waits for a batch.
    fn follow(&mut self, variant: Variant) {
        let delay = if variant == Variant::Delayed { DELAY } else { Span::ZERO };
        let only_if = if variant == Variant::Once { OnlyIf::Failed } else { OnlyIf::Done };
        let names = encode_names([BATCH]);
        let bonds = Bonds { batch: None, after: Some(&names) };
        let put = Put { id: Some(ID), delay: Delay::For(delay), ..Put::new(QUEUE, b"payload") };
        for command in [
            Command::Kill { queue: QUEUE.into(), ids: &[ID] },
            Command::Batch(BatchCommand::Open { name: BATCH, ttl: None }),
            Command::Put(Put { bonds, only_if, ..put }),
        ] {
            let reply = ask(&mut self.engine, self.now, HERE, command);
            assert!(!matches!(reply, Some(Reply::Refused(_))), "{reply:?}");
        }
    }

    /// Delivers the task so that it can be called back.
    fn deliver(&mut self, client: ClientId) {
        let (selection, mode) = (Selection::DEFAULT, TakeMode::Lease { ttr: Some(TTR) });
        let (queues, member, recall) = (&[QUEUE][..], None, true);
        let subscribe = Command::Subscribe { queues, member, selection, mode, recall };
        assert_eq!(ask(&mut self.engine, self.now, client, subscribe), Some(Reply::Count(1)));
        ask(&mut self.engine, self.now, client, Command::Credit(1));
    }

    fn record(&mut self) -> Option<TaskRecord> {
        self.record_of(QUEUE)
    }

    fn record_of(&mut self, queue: &[u8]) -> Option<TaskRecord> {
        let get = Command::Get { queue: queue.into(), id: ID };
        match ask(&mut self.engine, self.now, HERE, get) {
            Some(Reply::Task(task)) => task.map(|task| *task),
            other => panic!("no task but {other:?}"),
        }
    }

    /// Lets the next deadline of the task pass, or the connection of its holder end.
    fn happen(&mut self, row: &str, standing: &str, variant: Variant) {
        if row == "its holder is gone" {
            let gone = if standing == "T, held elsewhere" { ELSEWHERE } else { HERE };
            let farewell = Farewell::Ended { unsent: &[] };
            return self.engine.disconnect(self.now, gone, farewell);
        }
        let span = match (standing, variant) {
            ("W", Variant::Plain | Variant::BackingOff | Variant::Once) => STAY,
            // In W this is after the end of the delay, so the TTL decides.
            ("R" | "B" | "D" | "W", _) => TTL,
            ("Z", _) => Span::from_ms(10_000),
            _ => TTR,
        };
        self.now = self.now.after(span);
        self.engine.handle_timeout(self.now);
    }

    /// Carries out a put, which is one of a unique task in the rows about those.
    fn put(&mut self, row: &str, variant: Variant, delay: Span) -> Option<Reply> {
        let unique = row.starts_with("put again").then_some(UNIQUE);
        let put =
            Put { id: Some(ID), delay: Delay::For(delay), unique, ..Put::new(QUEUE, b"other") };
        let command = if variant == Variant::To(Buried) {
            Command::PutBuried { put: &put, reason: None }
        } else {
            Command::Put(put)
        };
        ask(&mut self.engine, self.now, HERE, command)
    }

    /// Returns the state of the task, if a move could name it.
    fn movable_state(&mut self) -> StateKind {
        let kind = self.record_of(QUEUE).map(|task| task.progress.state.kind());
        let kind = kind.filter(|kind| [Ready, Waiting, Buried, Zombie, Done].contains(kind));
        kind.unwrap_or(Ready)
    }

    /// Ends all subscriptions, which calls back what was not started.
    fn call_back(&mut self) -> Reply {
        let end = Command::Unsubscribe { queues: &[], member: None };
        for client in [HERE, ELSEWHERE] {
            self.engine.apply(self.now, client, RequestId(0), &end);
        }
        Reply::Done
    }

    /// The take of a row.
    fn take(&self, row: &str) -> Command<'static> {
        let mode = TakeMode::Lease { ttr: None };
        match row {
            "take by number" => Command::Numbered { number: self.popped.number, deed: Deed::Take },
            "take by id" => Command::TakeOne { queue: QUEUE.into(), id: ID, mode },
            _ => take(mode),
        }
    }

    /// Carries out the operation of a row.
    fn operate(&mut self, row: &str, variant: Variant) -> Option<Reply> {
        let delay = if variant == Variant::Delayed { DELAY } else { Span::ZERO };
        let by = if row.ends_with("by receipt") {
            HeldBy::Receipt(self.current.expect("there is a lease"))
        } else if row.ends_with("by another receipt") {
            HeldBy::Receipt(self.old)
        } else {
            HeldBy::Id(ID)
        };
        if row.starts_with("put") && row != "put back" {
            return self.put(row, variant, delay);
        }
        let held = Held { queue: QUEUE.into(), by };
        let amendment = Amendment::default();
        let transfer = Transfer { delay, ..Transfer::new(QUEUE, ID) };
        let priority = Amendment { priority: Assign::To(Some(7)), ..amendment };
        let command = match row.split(' ').next().unwrap_or_default() {
            "put" => Command::PutBack(std::slice::from_ref(&self.popped)),
            "kick" => Command::Numbered { number: self.popped.number, deed: Deed::Kick },
            "take" => self.take(row),
            "pop" => take(TakeMode::Pop),
            "ack" => Command::Ack(Ack::new(held)),
            "release" => Command::Release(Release { delay, amendment, ..Release::new(held) }),
            "bury" => Command::Bury(Bury::new(held)),
            "fail" => {
                let delay = (variant == Variant::Delayed).then_some(DELAY);
                Command::Fail(Fail { delay, ..Fail::new(held) })
            }
            "move" => {
                let state = self.movable_state();
                Command::Move { from: QUEUE.into(), to: OTHER, count: 1, state }
            }
            "arrive" => {
                let Variant::From(state) = variant else { return None };
                Command::Move { from: OTHER.into(), to: QUEUE, count: 1, state }
            }
            "make" => {
                self.set((CAPACITY, Some(1).into()));
                self.set((OVERFLOW, Overflow::Evict.into()));
                let id = Some(&b"more urgent"[..]);
                Command::Put(Put { id, priority: Some(-1), ..Put::new(QUEUE, b"other") })
            }
            "touch" => Command::Touch(Touch { by: Some(DELAY), ..Touch::new(held) }),
            "start" => {
                self.now = self.now.after(DELAY);
                let HeldBy::Receipt(receipt) = by else { return None };
                Command::Start { queue: QUEUE.into(), receipt }
            }
            "called" => return Some(self.call_back()),
            "update" => Command::Update(Update { amendment: priority, ..Update::new(QUEUE, ID) }),
            "await" => {
                Command::Await { queue: QUEUE.into(), id: ID, wait: Wait::Forever, result: false }
            }
            "delayed" => Command::Bulk(Bulk::new(QUEUE, BulkChange::Delay(delay))),
            "the" => Command::Batch(BatchCommand::Close(BATCH)),
            "dig" => Command::Dig(transfer),
            "kill" => Command::Kill { queue: QUEUE.into(), ids: &[ID] },
            "cancel" => {
                Command::Cancel(Cancel { queue: QUEUE.into(), id: ID, reason: None, grace: None })
            }
            "switch" => {
                let to = if let Variant::To(to) = variant { to } else { Ready };
                let delay = if matches!(to, Waiting | Zombie) { DELAY } else { Span::ZERO };
                Command::Switch { transfer: Transfer { delay, ..transfer }, to }
            }
            "snatch" => Command::Snatch(transfer),
            "restart" => Command::Restart(transfer),
            other => panic!("{other} is no operation"),
        };
        ask(&mut self.engine, self.now, HERE, command)
    }
}

const fn take(mode: TakeMode) -> Command<'static> {
    let (count, wait, selection) = (1, Wait::No, Selection::DEFAULT);
    Command::Take(Take { queues: &[QUEUE], member: None, count, wait, selection, mode })
}

fn taken(reply: Option<Reply>) -> TaskRecord {
    match reply {
        Some(Reply::Tasks { mut tasks, .. }) if tasks.len() == 1 => tasks.remove(0),
        other => panic!("no task but {other:?}"),
    }
}

/// Returns the reply to this one command, if it comes at once.
fn ask(
    engine: &mut Engine,
    now: Timestamp,
    client: ClientId,
    command: Command<'_>,
) -> Option<Reply> {
    while engine.poll_output().is_some() {}
    engine.apply(now, client, RequestId(0), &command);
    std::iter::from_fn(|| engine.poll_output()).find_map(|output| match output {
        Output::Reply { reply, .. } => Some(reply),
        Output::Delivery { .. } | Output::Notice(_) => None,
    })
}
