//! Journals on a disk in memory, and random work on them.

use std::sync::Arc;
use std::time::Duration;

use pinpriq_proto::change::{Change, Granted, Moved, QueueRecord};
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::task::{Progress, State};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{
    Disk, Fold, Journal, JournalOptions, Level, Position, Runner, StoreError, Urgency,
};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::FaultyDisk;
use pinpriq_testing::stores::{
    Caller, sample_lane, sample_lane_task, sample_member, sample_publication, sample_task,
};

/// How long anything may take before a test has failed. Nothing waits for this to pass.
pub(crate) const GUARD: Duration = Duration::from_mins(1);

/// The size of a segment in these tests.
pub(crate) const SEGMENT_BYTES: u32 = 24 << 10;

pub(crate) fn options(salt_seed: u64) -> JournalOptions {
    JournalOptions {
        level: Level::Sync,
        segment_bytes: SEGMENT_BYTES,
        salt_seed,
        slack_bytes: 2 * u64::from(SEGMENT_BYTES),
        leaves_payloads: false,
        gathers: false,
        watches: false,
    }
}

pub(crate) fn journal(
    disk: &FaultyDisk,
    options: JournalOptions,
) -> Result<Box<Journal>, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Journal::open(disk, options, Runner::Inline).map(Box::new)
}

/// Opens, loads and begins.
pub(crate) fn start(
    disk: &FaultyDisk,
    options: JournalOptions,
) -> Result<Caller<Journal>, StoreError> {
    Caller::start(journal(disk, options)?)
}

/// Returns one of these numbers at random.
fn any_of<'a>(dice: &mut Dice, numbers: impl Iterator<Item = &'a u64>) -> Option<u64> {
    let numbers: Vec<u64> = numbers.copied().collect();
    numbers.get(dice.index(numbers.len())).copied()
}

/// The numbers of the tasks in lanes.
pub(crate) fn tasks_of_lanes(fold: &Fold) -> Vec<u64> {
    let tasks = fold.tasks.values().map(|(task, _)| task);
    tasks.filter(|task| task.lane.is_some()).map(|task| task.number).collect()
}

/// A random change about members, lanes and publications. `next` is the next free number.
fn random_fan_out(caller: &Caller<Journal>, dice: &mut Dice, next: &mut u64) -> Vec<Change> {
    let fold = &caller.fold;
    let lanes: Vec<u64> = fold.lanes.keys().copied().filter(|_| dice.chance(60)).collect();
    let any_lane = any_of(dice, fold.lanes.keys());
    let of_lanes: Vec<u64> = tasks_of_lanes(fold);
    let any_task = any_of(dice, of_lanes.iter());
    match (dice.below(100), any_lane, any_task) {
        (0..=1, Some(lane), _) => {
            *next += 1;
            vec![sample_lane(*next - 1, "u", fold.lanes[&lane].0.member)]
        }
        (0..=11, ..) => {
            let (member, lane) = (*next, *next + 1);
            *next += 2;
            vec![sample_member(member, "m"), sample_lane(lane, "t", member)]
        }
        (12..=14, Some(lane), _) => {
            let member = fold.lanes[&lane].0.member;
            let all = fold.lanes.values().filter(|(known, _)| known.member == member);
            let gone = all.map(|(known, _)| Change::LaneGone(known.number));
            gone.chain([Change::MemberGone(member)]).collect()
        }
        (15..=17, Some(lane), _) => vec![Change::LaneEmptied(lane)],
        (18..=20, Some(lane), _) => {
            let (mut record, _) = fold.lanes[&lane].clone();
            record.settings.capacity = Some(dice.below(99));
            vec![Change::Lane(Box::new(record))]
        }
        (21..=45, _, Some(number)) => vec![Change::Gone(number)],
        (46..=60, _, Some(number)) => {
            let task = &fold.tasks[&number].0;
            let own = (dice.chance(50) || !task.shared).then_some(30);
            vec![sample_lane_task(number, task.lane.as_ref().unwrap().number, own)]
        }
        _ if lanes.is_empty() => Vec::new(),
        _ => {
            let first = *next;
            *next += lanes.len() as u64;
            vec![sample_publication(first, &lanes, usize::try_from(dice.below(900)).unwrap())]
        }
    }
}

/// A random batch: puts, moves, grants, ends, queues and lanes, all about things that exist.
pub(crate) fn random_batch(caller: &Caller<Journal>, dice: &mut Dice) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut next = caller.header.last_number + 1;
    if dice.chance(40) {
        changes.extend(random_fan_out(caller, dice, &mut next));
    }
    for _ in 0..=dice.below(4) {
        let known = any_of(dice, caller.fold.tasks.keys());
        let queue = ["a", "b", "some longer name"][usize::try_from(dice.below(3)).unwrap()];
        changes.push(match (dice.below(100), known) {
            (0..=1, _) => Change::Emptied(queue.as_bytes().into()),
            (2..=4, _) => Change::Queue(Box::new(QueueRecord {
                name: queue.as_bytes().into(),
                created: true,
                settings: Settings { capacity: Some(dice.below(99)), ..Settings::default() },
                paused: Paused::default(),
            })),
            (5..=6, _) => Change::QueueGone(queue.as_bytes().into()),
            (7..=34, Some(number)) => Change::Gone(number),
            (35..=44, Some(number)) => Change::Granted(Granted {
                number,
                incarnation: caller.header.incarnation,
                serial: dice.roll(),
                deadline: dice.chance(50).then(|| Timestamp::from_ms(dice.below(1 << 40))),
                ttr: None,
                attempts: 1,
            }),
            (45..=54, Some(number)) => Change::Moved(Box::new(Moved {
                number,
                progress: Progress {
                    attempts: 2,
                    state: State::Waiting {
                        ready_at: Some(Timestamp::from_ms(dice.below(1 << 40))),
                    },
                    ..Progress::fresh(number, Some(dice.roll().cast_signed()))
                },
            })),
            _ => {
                next += 1;
                let payload_bytes = usize::try_from(dice.below(900)).unwrap();
                sample_task(next - 1, queue, payload_bytes)
            }
        });
    }
    changes
}

/// What is known about a journal under random work: where it began, and every batch since.
#[derive(Default, Debug)]
pub(crate) struct History {
    start: Option<Fold>,
    batches: Vec<(Position, Vec<Change>)>,
    /// The last position that was reached.
    reached: Position,
}

impl History {
    /// Begins with the state that an incarnation begins with.
    pub(crate) fn begin(caller: &Caller<Journal>) -> Self {
        let start = Some(caller.fold.without_places());
        Self { start, batches: Vec::new(), reached: Position(0) }
    }

    pub(crate) fn note(&mut self, position: Position, changes: Vec<Change>) {
        self.batches.push((position, changes));
    }

    pub(crate) fn note_reached(&mut self, caller: &Caller<Journal>) {
        self.note_position(caller.reached);
    }

    pub(crate) fn note_position(&mut self, reached: Position) {
        self.reached = self.reached.max(reached);
    }

    /// Checks what was found after a crash: it must be the state after some batch, at or after the
    /// last one that was reached.
    pub(crate) fn judge(&self, found: &Fold, context: &str) {
        self.judge_from(self.reached, found, context);
    }

    /// Checks that what was found after a crash is the state after some batch.
    pub(crate) fn judge_prefix(&self, found: &Fold, context: &str) {
        self.judge_from(Position(0), found, context);
    }

    fn judge_from(&self, reached: Position, found: &Fold, context: &str) {
        let found = found.without_places();
        let Some(start) = &self.start else {
            assert!(found == Fold::new(), "{context}: nothing was ever put");
            return;
        };
        let promised = self.batches.iter().filter(|(position, _)| *position <= reached).count();
        let mut state = start.clone();
        let mut earlier = false;
        for count in 0..=self.batches.len() {
            if let Some((_, changes)) = count.checked_sub(1).map(|index| &self.batches[index]) {
                for change in changes {
                    state.apply(change, None, &mut Vec::new());
                }
                state.forget_unshared(&mut Vec::new());
            }
            if state == found {
                if count >= promised {
                    return;
                }
                earlier = true;
            }
        }
        assert!(!earlier, "{context}: batches up to {reached:?} were reached, and some are gone");
        panic!("{context}: what was loaded is the state after no batch at all");
    }
}

/// Runs random batches and turns. Ends early, with the failure, when the disk fails.
pub(crate) fn work(
    caller: &mut Caller<Journal>,
    history: &mut History,
    dice: &mut Dice,
    rounds: u64,
) -> Result<(), StoreError> {
    for _ in 0..rounds {
        let changes = random_batch(caller, dice);
        let urgency = if dice.chance(70) { Urgency::Soon } else { Urgency::Lazy };
        let position = caller.append(&changes, urgency)?;
        history.note(position, changes);
        caller.header.now = caller.header.now.after(Span::from_ms(dice.below(8)));
        if dice.chance(80) {
            let turned = caller.turn();
            history.note_reached(caller);
            turned?;
        }
    }
    Ok(())
}
