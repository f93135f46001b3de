//! Journals on a disk in memory, and the random work that is done to them.

use std::sync::Arc;

use pinpriq_engine::change::{Change, Granted, Moved, QueueRecord};
use pinpriq_engine::settings::{Paused, Settings};
use pinpriq_engine::task::State;
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::conformance::{Caller, sample_task};
use pinpriq_store::faulty_disk::Dice;
use pinpriq_store::{
    Disk, FaultyDisk, Fold, Journal, JournalOptions, Level, Position, Runner, StoreError, Urgency,
};

/// The size of a segment in these tests.
pub(crate) const SEGMENT_BYTES: u32 = 24 << 10;

pub(crate) fn options(salt_seed: u64) -> JournalOptions {
    JournalOptions {
        level: Level::Sync,
        segment_bytes: SEGMENT_BYTES,
        salt_seed,
        slack_bytes: 2 * u64::from(SEGMENT_BYTES),
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

/// A random batch: puts, moves, grants, ends and queues, all about what is there.
pub(crate) fn random_batch(caller: &Caller<Journal>, dice: &mut Dice) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut next = caller.header.last_number + 1;
    for _ in 0..=dice.below(4) {
        let count = caller.fold.tasks.len() as u64;
        let pick = usize::try_from(dice.below(count)).unwrap();
        let known = caller.fold.tasks.keys().nth(pick).copied();
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
                seq: number,
                priority: Some(dice.roll().cast_signed()),
                expires_at: None,
                attempts: 2,
                state: State::Waiting { ready_at: Timestamp::from_ms(dice.below(1 << 40)) },
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
#[derive(Default)]
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

    pub(crate) fn note_reached(&mut self, caller: &Caller<Journal>) {
        self.reached = self.reached.max(caller.reached);
    }

    /// What was found after a crash must be the state after some batch that was not before the
    /// last one that was reached.
    pub(crate) fn judge(&self, found: &Fold, context: &str) {
        self.judge_from(self.reached, found, context);
    }

    /// What was found after a crash must be the state after some batch.
    pub(crate) fn judge_prefix(&self, found: &Fold, context: &str) {
        self.judge_from(Position(0), found, context);
    }

    fn judge_from(&self, reached: Position, found: &Fold, context: &str) {
        let found = found.without_places();
        let Some(start) = &self.start else {
            assert!(found.tasks.is_empty(), "{context}: nothing was ever put");
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

/// Random batches and turns. Ends early, with the failure, when the disk fails.
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
        history.batches.push((position, changes));
        caller.header.now = caller.header.now.after(Span::from_ms(dice.below(8)));
        if dice.chance(80) {
            let turned = caller.turn();
            history.note_reached(caller);
            turned?;
        }
    }
    Ok(())
}
