//! One test suite for every store.
//!
//! [`run`] takes a way to make a fresh, empty store and, for stores that keep anything, a way to
//! open the same one again after it was dropped. It panics with a message at the first violation.
//! [`Caller`] is the minimal caller of a store: it keeps the places, marks them obsolete, and
//! writes records again when asked.

use std::sync::Arc;

use pinpriq_proto::batches::{BatchRecord, BatchState, Cancelling};
pub use pinpriq_proto::change::Change;
use pinpriq_proto::change::{
    Copied, Granted, Header, LaneRecord, MemberRecord, Moved, Place, Publication, QueueRecord,
    ScheduleMoved, ScheduleRecord,
};
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::named_limits::{LimitRecord, LimitRules};
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence};
use pinpriq_proto::settings::{Paused, Rate, Settings};
use pinpriq_proto::shares::{ShareRecord, ShareRules};
use pinpriq_proto::task::{
    Burial, Bytes, Counts, LaneName, Progress, State, TaskId, TaskRecord, Terms, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;

use pinpriq_store::Fold;
use pinpriq_store::{Loaded, Position, Store, StoreError, Urgency};

/// How many calls of [`Store::drive`] the suite makes at most until a store is idle.
const TURNS_MAX: usize = 1_000_000;

/// A store with the state that its changes lead to.
pub struct Caller<S: Store + ?Sized = dyn Store> {
    /// The state after the changes so far, with the places of the records.
    pub fold: Fold,
    /// The facts for the next batch.
    pub header: Header,
    /// The facts of the last batch that was appended.
    pub stated: Header,
    /// What loading found.
    pub loaded: Loaded,
    /// The last batch that was appended.
    pub last: Position,
    /// The position up to which every batch has reached its level.
    pub reached: Position,
    /// The store.
    pub store: Box<S>,
}

impl<S: Store + ?Sized> Caller<S> {
    /// Loads a store and begins the next incarnation.
    pub fn start(mut store: Box<S>) -> Result<Self, StoreError> {
        let mut fold = Fold::new();
        let mut freed = Vec::new();
        let loaded = store.load(&mut |change, place| fold.apply(&change, place, &mut freed))?;
        fold.forget_unshared(&mut freed);
        for place in freed {
            store.obsolete(place);
        }
        let header = Header { incarnation: loaded.header.incarnation + 1, ..loaded.header };
        store.begin(&header)?;
        let (last, reached) = (Position(0), Position(0));
        Ok(Self { fold, header, stated: header, loaded, last, reached, store })
    }

    /// Appends one batch, folds it, and marks the replaced records obsolete.
    pub fn append(&mut self, changes: &[Change], urgency: Urgency) -> Result<Position, StoreError> {
        let mut places: Vec<Option<Place>> = vec![None; changes.len()];
        for change in changes {
            let number = highest_number(change).unwrap_or(0);
            self.header.last_number = self.header.last_number.max(number);
        }
        let position = self.store.append(&self.header, changes, urgency, &mut |index, place| {
            places[index] = Some(place);
        })?;
        assert!(position > self.last, "positions only grow: {position:?} after {:?}", self.last);
        self.last = position;
        self.stated = self.header;
        let mut freed = Vec::new();
        for (change, place) in changes.iter().zip(places) {
            let has_place = change.key().is_some();
            assert_eq!(place.is_some(), has_place, "records with a key have places, others none");
            self.fold.apply(change, place, &mut freed);
        }
        self.fold.forget_unshared(&mut freed);
        for place in freed {
            self.store.obsolete(place);
        }
        Ok(position)
    }

    /// Calls [`Store::drive`] once, and writes again whatever the store wants.
    pub fn turn(&mut self) -> Result<(), StoreError> {
        let progress = self.store.drive(self.header.now)?;
        assert!(progress.reached >= self.reached, "what was reached stays reached");
        self.reached = progress.reached;
        let wanted = self.store.poll_rewrite();
        let current = wanted.iter().flat_map(|it| self.fold.current(&it.key, it.place));
        let changes: Vec<Change> = current.collect();
        if !changes.is_empty() {
            self.append(&changes, Urgency::Lazy)?;
        }
        Ok(())
    }

    /// Advances time until the store has nothing more to do.
    ///
    /// # Panics
    /// If the store never becomes idle.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        for _ in 0..TURNS_MAX {
            self.turn()?;
            let Some(due) = self.store.poll_timeout() else {
                if self.reached >= self.last {
                    return Ok(());
                }
                // Lazy batches at level `sync` wait for the sync of another batch.
                self.store.finish(self.header.now)?;
                continue;
            };
            // A refused spare is retried for ever. That counts as idle too.
            if due > self.header.now.after(Span::from_ms(500)) && self.reached >= self.last {
                return Ok(());
            }
            self.header.now = self.header.now.max(due);
        }
        panic!("the store does not come to rest within {TURNS_MAX} turns");
    }
}

/// The highest number that this change assigns to anything new.
fn highest_number(change: &Change) -> Option<u64> {
    match change {
        Change::Task(task) => Some(task.number),
        Change::Published(publication, _) => Some(publication.last),
        Change::Lane(lane) => Some(lane.number),
        Change::Member(member) => Some(member.incarnation),
        Change::Schedule(schedule) => Some(schedule.number),
        Change::Detail(detail) => Some(detail.number()),
        _ => None,
    }
}

/// A task that is ready, with a payload of this many bytes.
#[must_use]
pub fn sample_task(number: u64, queue: &str, payload_bytes: usize) -> Change {
    let filler = u8::try_from(number % 251).unwrap_or(0);
    Change::Task(Box::new(TaskRecord {
        number,
        queue: name(queue),
        lane: None,
        id: TaskId::Number(number),
        put_at: Timestamp::from_ms(1_000 + number),
        terms: Terms { ttr: Some(Span::from_ms(30_000)), ..Terms::NONE },
        progress: Progress::fresh(number, Some(-5)),
        past: None,
        payload: vec![filler; payload_bytes].into(),
        away: None,
        shared: false,
    }))
}

fn name(text: &str) -> Bytes {
    Arc::from(text.as_bytes())
}

/// A queue with a pause, and with settings that are the default.
#[must_use]
pub fn sample_queue(queue: &str, created: bool) -> Change {
    Change::Queue(Box::new(QueueRecord {
        name: name(queue),
        created,
        settings: Settings { capacity: Some(9), ..Settings::default() },
        paused: Paused::endlessly(true, false),
    }))
}

/// A publication to these lanes, with a payload of this many bytes.
#[must_use]
pub fn sample_publication(first: u64, lanes: &[u64], payload_bytes: usize) -> Change {
    let filler = u8::try_from(first % 251).unwrap_or(0);
    let copies = (first..).zip(lanes).map(|(number, lane)| Copied { number, lane: *lane });
    let publication = Publication {
        first,
        last: first + (lanes.len() as u64).saturating_sub(1),
        put_at: Timestamp::from_ms(1_000 + first),
        terms: Terms { key: Some(name("k")), ..Terms::NONE },
        priority: Some(3),
        expires_at: None,
        payload: vec![filler; payload_bytes].into(),
    };
    Change::Published(Box::new(publication), copies.collect())
}

/// A member that is alive.
#[must_use]
pub fn sample_member(incarnation: u64, member: &str) -> Change {
    Change::Member(Box::new(MemberRecord {
        incarnation,
        name: name(member),
        lease: Span::from_ms(60_000),
        ended: false,
    }))
}

/// The lane of a member, without settings.
#[must_use]
pub fn sample_lane(number: u64, topic: &str, member: u64) -> Change {
    Change::Lane(Box::new(LaneRecord {
        number,
        topic: name(topic),
        member,
        settings: Settings::default(),
        paused: Paused::default(),
    }))
}

/// A buried task of a lane. Without bytes of its own it shares its publication.
#[must_use]
pub fn sample_lane_task(number: u64, lane: u64, own_bytes: Option<usize>) -> Change {
    Change::Task(Box::new(TaskRecord {
        number,
        queue: Bytes::default(),
        lane: Some(LaneName::numbered(lane)),
        id: TaskId::Number(number),
        put_at: Timestamp::from_ms(2_000 + number),
        terms: Terms::NONE,
        progress: Progress {
            attempts: 1,
            reason: Some(name("aside")),
            state: State::Buried(Burial::of_number(9)),
            ..Progress::fresh(number, Some(3))
        },
        past: None,
        payload: vec![7; own_bytes.unwrap_or(0)].into(),
        away: None,
        shared: own_bytes.is_none(),
    }))
}

/// A schedule with a payload of this many bytes.
#[must_use]
pub fn sample_schedule(number: u64, schedule: &str, queue: &str, payload_bytes: usize) -> Change {
    Change::Schedule(Box::new(ScheduleRecord {
        number,
        name: name(schedule),
        plan: Plan {
            queue: name(queue),
            payload: vec![5; payload_bytes].into(),
            terms: Terms::NONE,
            priority: Some(1),
            ttl: None,
            form: Recurrence::Cron { expression: name("@daily"), zone: None },
            on_missed: OnMissed::One,
            overlap: Overlap::Allow,
        },
        course: Course { done_until: Timestamp::from_ms(3_000), ..Course::default() },
    }))
}

/// A window of a unique task.
#[must_use]
pub fn sample_window(number: u64, queue: &str) -> Change {
    Change::detail(WindowRecord {
        number,
        queue: name(queue),
        key: name("k"),
        id: TaskId::Number(number),
        until: Timestamp::from_ms(9_000),
    })
}

/// The rules of a share.
#[must_use]
pub fn sample_share(number: u64, queue: &str) -> Change {
    let rules = ShareRules { weight: 3, ..ShareRules::default() };
    Change::detail(ShareRecord { number, queue: name(queue), share: name("s"), rules })
}

/// A limit that several queues use together.
#[must_use]
pub fn sample_limit(number: u64, limit: &str) -> Change {
    let rate = Some(Rate { count: 5, per: Span::from_ms(700) });
    Change::detail(LimitRecord { number, name: name(limit), rules: LimitRules { max: None, rate } })
}

/// A batch that is being cancelled.
#[must_use]
pub fn sample_batch(number: u64, batch: &str) -> Change {
    let record = BatchRecord::new(number, batch.as_bytes(), Timestamp::from_ms(4_000), None);
    let cancelling = Cancelling { reason: Some(name("why")), grace: Some(Span::from_ms(700)) };
    Change::detail(BatchRecord {
        state: BatchState::Closed,
        expires_at: Some(Timestamp::from_ms(9_000)),
        total: 3,
        acked: 1,
        failed: 1,
        cancelling: Some(cancelling),
        ..record
    })
}

/// A slot of a schedule that has put a task.
#[must_use]
pub fn sample_slot(number: u64, slot: u64) -> Change {
    let (done_until, last_slot) = (Timestamp::from_ms(slot), Some(Timestamp::from_ms(slot)));
    let course = Course { done_until, last_slot, fired: 1, ..Course::default() };
    Change::ScheduleMoved(Box::new(ScheduleMoved { number, course }))
}

/// One of every kind of change about members and lanes. Two tasks remain, in lane 11.
fn sample_fan_out() -> Vec<Change> {
    vec![
        sample_member(10, "m"),
        sample_lane(11, "t", 10),
        sample_member(12, "n"),
        sample_lane(13, "t", 12),
        sample_lane(14, "u", 12),
        sample_publication(15, &[11, 13], 2_000),
        sample_publication(17, &[11, 13, 14], 500),
        sample_publication(20, &[14], 40),
        sample_lane_task(17, 11, None),
        Change::LaneEmptied(14),
        Change::LaneGone(13),
        Change::LaneGone(14),
        Change::MemberGone(12),
    ]
}

/// One of every other kind of change, about two queues and three tasks.
fn sample_changes() -> Vec<Change> {
    vec![
        sample_queue("a", true),
        sample_queue("b", true),
        sample_task(1, "a", 100),
        sample_task(2, "b", 0),
        sample_task(3, "a", 3_000),
        Change::Granted(Granted {
            number: 1,
            incarnation: 1,
            serial: 7,
            deadline: Some(Timestamp::from_ms(9_000)),
            ttr: Some(Span::from_ms(8_000)),
            attempts: 1,
        }),
        Change::Moved(Box::new(Moved {
            number: 3,
            progress: Progress {
                priority: None,
                seq: 4,
                expires_at: Some(Timestamp::MAX),
                attempts: 3,
                failures: 2,
                reason: Some(name("broken")),
                trace: Trace::of(
                    Span::from_ms(700),
                    Counts { timeouts: 1, releases: 2, buries: 3, kicks: 4 },
                ),
                state: State::Buried(Burial::of_number(11)),
            },
        })),
        Change::QueueGone(name("b")),
        Change::Emptied(name("b")),
        sample_task(5, "b", 1),
        Change::Gone(5),
        sample_schedule(6, "s", "a", 700),
        sample_schedule(7, "t", "a", 7),
        sample_slot(6, 4_000),
        Change::ScheduleGone(7),
        sample_window(4, "a"),
        sample_window(5, "b"),
        Change::DetailGone(DetailKind::Window, 5),
        sample_share(4, "a"),
        sample_share(5, "b"),
        Change::DetailGone(DetailKind::Share, 5),
        sample_limit(4, "l"),
        sample_limit(5, "m"),
        Change::DetailGone(DetailKind::Limit, 5),
        sample_batch(4, "b"),
        sample_batch(5, "c"),
        Change::DetailGone(DetailKind::Batch, 5),
    ]
}

/// Runs the suite.
///
/// # Panics
/// At the first violation.
#[expect(clippy::expect_used, reason = "a suite ends at the first failure, with its reason")]
pub fn run(
    make: &mut dyn FnMut() -> Box<dyn Store>,
    mut reopen: Option<&mut dyn FnMut() -> Box<dyn Store>>,
) {
    let mut caller = Caller::start(make()).expect("a fresh store loads and begins");
    assert_eq!(caller.loaded, Loaded::default(), "a fresh store holds nothing");
    assert_eq!(caller.fold, Fold::new(), "a fresh store gives back nothing");
    caller.header.now = Timestamp::from_ms(5_000);
    caller.append(&sample_changes(), Urgency::Soon).expect("a batch is taken");
    caller.append(&sample_fan_out(), Urgency::Soon).expect("a batch is taken");
    let of_lanes = caller.fold.tasks.values().filter(|(task, _)| task.lane.is_some());
    assert_eq!(of_lanes.map(|(task, _)| task.number).collect::<Vec<u64>>(), [15, 17]);
    assert_eq!(caller.fold.publications.len(), 2, "a payload that is shared is there");
    caller.append(&[], Urgency::Soon).expect("an empty batch is a batch");
    caller.append(&[sample_task(8, "a", 10)], Urgency::Lazy).expect("a lazy batch is taken");
    caller.settle().expect("the store makes progress");
    assert!(caller.reached >= caller.last, "everything is reached in the end");
    replace_everything(&mut caller);
    caller.store.finish(caller.header.now).expect("the store finishes");
    if let Some(reopen) = &mut reopen {
        for _ in 0..3 {
            let before = (caller.fold.clone(), caller.stated, caller.header.now);
            caller.store.close(caller.header.now).expect("the store closes");
            drop(caller);
            caller = Caller::start(reopen()).expect("the store loads again");
            assert_eq!(caller.fold.without_places(), before.0.without_places(), "same contents");
            assert_eq!(caller.fold, before.0, "records are where they were said to be");
            let found = caller.loaded.header;
            assert_eq!(found.incarnation, before.1.incarnation, "the incarnation is kept");
            assert_eq!(found.last_number, before.1.last_number, "the highest number is kept");
            assert!(before.1.now <= found.now && found.now <= before.2, "the moment is kept");
            replace_everything(&mut caller);
            caller.store.finish(caller.header.now).expect("the store finishes");
        }
    }
    let tasks = caller.fold.tasks.keys();
    let mut everything: Vec<Change> = tasks.map(|&number| Change::Gone(number)).collect();
    everything.extend([Change::LaneGone(11), Change::MemberGone(10)]);
    everything.push(Change::ScheduleGone(6));
    everything.extend(DetailKind::ALL.map(|kind| Change::DetailGone(kind, 4)));
    caller.append(&everything, Urgency::Soon).expect("tasks may go");
    caller.settle().expect("the store makes progress");
    let is_empty = |fold: &Fold| {
        let of_topics = fold.lanes.len() + fold.members.len() + fold.publications.len();
        let of_queues = fold.schedules.len() + fold.details.len();
        fold.tasks.len() + of_topics + of_queues == 0
    };
    assert!(is_empty(&caller.fold), "nothing is left over");
    if let Some(reopen) = reopen {
        drop(caller);
        let caller = Caller::start(reopen()).expect("the store loads again");
        assert!(is_empty(&caller.fold), "what has gone stays away");
    }
}

/// Puts, replaces and removes much more than a store wants to keep, around one task that stays.
#[expect(clippy::expect_used, reason = "a suite ends at the first failure, with its reason")]
fn replace_everything<S: Store + ?Sized>(caller: &mut Caller<S>) {
    let first = caller.header.last_number + 1;
    for number in first..first + 300 {
        let gone = (number > first + 1).then(|| Change::Gone(number - 1));
        let changes: Vec<Change> =
            gone.into_iter().chain([sample_task(number, "churn", 700)]).collect();
        caller.append(&changes, Urgency::Soon).expect("a batch is taken");
        caller.header.now = caller.header.now.after(Span::from_ms(1));
        caller.turn().expect("the store makes progress");
    }
    caller.settle().expect("the store comes to rest");
    assert!(caller.fold.tasks.contains_key(&first), "the ancient task is still there");
}
