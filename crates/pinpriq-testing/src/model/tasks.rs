//! Finding tasks, and moving them from state to state. The callers decide why they move.

use std::collections::BTreeMap;

use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::{LINGERING_BYTES_MAX, NAME_BYTES_MAX, queue_bytes};
use pinpriq_proto::reply::{Outcome, RefusalKind};
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::stats::{Move, Times};
use pinpriq_proto::task::{Bytes, State, StateKind, TaskId, TaskRecord, Trace};
use pinpriq_proto::time::{Span, Timestamp};

use super::history::end_attempt;
use super::turns::{share_of, trace_of};
use super::{Home, Model, Place, fits, time};

/// Figures that cannot be computed from the tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) moves: BTreeMap<Move, u64>,
    pub(super) put: u64,
    pub(super) acked: u64,
    pub(super) expired: u64,
    pub(super) killed: u64,
    pub(super) dead: u64,
    pub(super) evicted: u64,
    pub(super) moved: u64,
    pub(super) cancelled: u64,
    pub(super) skipped: u64,
    pub(super) purged: u64,
    pub(super) revived: u64,
    pub(super) failures: u64,
    pub(super) duplicates: u64,
    pub(super) times: Option<Box<Times>>,
    /// When somebody has looked at the shares last, and what has happened to them since.
    pub(super) looked: Option<(Timestamp, BTreeMap<Bytes, Happened>)>,
    /// How many tasks were handed out in each five seconds.
    pub(super) handed_out: BTreeMap<u64, u64>,
}

/// What has happened to the tasks of a share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Happened {
    pub(super) acked: u64,
    pub(super) failed: u64,
    pub(super) waited: Option<Span>,
}

/// Why a task leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Acked,
    Expired,
    Killed,
    Dead,
    Evicted,
    Moved,
    Cancelled,
    Skipped,
}

impl Model {
    /// Returns a task that is known to exist.
    #[must_use]
    pub fn task(&self, number: u64) -> &TaskRecord {
        &self.homes[&self.places[&number]].tasks[&number]
    }

    pub(super) fn task_mut(&mut self, number: u64) -> &mut TaskRecord {
        let place = &self.places[&number];
        let home = self.homes.get_mut(place);
        let task = home.and_then(|home| home.tasks.get_mut(&number));
        task.unwrap_or_else(|| unreachable!("task {number} is where it is said to be"))
    }

    /// Whether clients can see a task.
    #[must_use]
    pub fn is_live(&self, number: u64) -> bool {
        self.places.get(&number).is_some_and(|place| !self.has_ended(place))
    }

    /// All tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskRecord> + Clone {
        self.homes.values().flat_map(|home| home.tasks.values())
    }

    /// The place that a command names. A queue need not exist; a lane that does not exist is
    /// refused.
    pub fn place_of(&self, name: QueueName<'_>) -> Result<Place, RefusalKind> {
        fits(name.name.len() <= NAME_BYTES_MAX)?;
        match name.member {
            None => Ok(Place::Queue(name.name.into())),
            Some(member) => {
                fits(member.len() <= NAME_BYTES_MAX)?;
                self.lane_of(name.name, member).ok_or(RefusalKind::NotFound)
            }
        }
    }

    /// Finds the task of this id, in any of the texts that the id has.
    pub fn find(&self, queue: QueueName<'_>, id: &[u8]) -> Result<Option<u64>, RefusalKind> {
        let place = self.place_of(queue)?;
        let Some(home) = self.homes.get(&place) else { return Ok(None) };
        let number: Option<u64> = str::from_utf8(id)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .filter(|number: &u64| number.to_string().as_bytes() == id);
        let lower = id.to_ascii_lowercase();
        let named = |task: &TaskRecord| match &task.id {
            TaskId::Given(given) => **given == *id,
            TaskId::Number(own) => Some(*own) == number,
            uuid @ TaskId::Uuid(_) => lower.len() == 36 && uuid.to_string().as_bytes() == lower,
        };
        Ok(home.tasks.values().find(|task| named(task)).map(|task| task.number))
    }

    pub(super) fn settings(&self, place: &Place) -> Settings {
        self.homes.get(place).map(|home| home.settings.clone()).unwrap_or_default()
    }

    pub(super) fn paused(&self, place: &Place) -> Paused {
        self.homes.get(place).map(|home| home.paused).unwrap_or_default()
    }

    pub(super) fn is_over(&self, task: &TaskRecord) -> bool {
        task.progress.expires_at.is_some_and(|expires_at| self.now >= expires_at)
    }

    /// Returns a queue or lane. Creates it if it is a queue that does not exist.
    pub(super) fn home(&mut self, place: &Place) -> &mut Home {
        let is_new = !self.homes.contains_key(place);
        let (name, tally) = match place {
            Place::Queue(name) if is_new => (name.clone(), self.revive(name)),
            Place::Queue(_) | Place::Lane(_) => Default::default(),
        };
        self.homes.entry(place.clone()).or_insert_with(|| Home { name, tally, ..Home::default() })
    }

    pub(super) fn enter(&mut self, place: &Place, mut task: TaskRecord) {
        if matches!(task.id, TaskId::Given(_)) {
            // It may have been the id of another task.
            self.forget_ending(&task);
        }
        self.begin_to_age(place, &mut task);
        self.note_due(time::due(&task));
        let kind = task.progress.state.kind();
        self.places.insert(task.number, place.clone());
        let home = self.home(place);
        let counted = u64::from(!is_kept(kind));
        home.tally.put += counted;
        home.tally.note(None, Some(kind));
        let number = task.number;
        home.tasks.insert(task.number, task);
        self.totals.put += counted;
        self.totals.note(None, Some(kind));
        self.claim_key(number);
        self.settle(place);
    }

    /// Moves a task into a state, and notifies its awaiters if that ends it.
    pub(super) fn shift(&mut self, number: u64, state: State) {
        self.shift_only(number, state);
        let place = self.places[&number].clone();
        self.settle(&place);
    }

    /// Moves a task into a state. Its step goes on.
    pub(super) fn shift_only(&mut self, number: u64, state: State) {
        let (now, how) = (self.now, self.how);
        let most = self.settings(&self.places[&number]).history;
        let task = self.task_mut(number);
        let (from, to) = (task.progress.state.kind(), state.kind());
        if from == StateKind::Taken {
            end_attempt(task, now, how, most);
        }
        task.progress.state = state;
        // Whatever happens to a task, it waits for batches no longer.
        task.progress.trace = Trace { after: None, ..trace_of(&task.progress) }.kept();
        if matches!(to, StateKind::Buried | StateKind::Zombie | StateKind::Done) {
            let progress = &mut task.progress;
            progress.trace = Trace { is_held: false, ..trace_of(progress) }.kept();
        }
        let due = time::due(task);
        self.note_due(due);
        self.note_held(number, from);
        if from == StateKind::Taken {
            self.forget_progress_text(number);
        }
        if !to.is_finished() {
            self.note_result(number, None);
        }
        if from != to {
            self.since.insert(number, self.now);
        }
        self.note_move(number, from, Some(to));
        self.claim_key(number);
        match to {
            StateKind::Buried => self.tell(number, Outcome::Buried, Some(to), None),
            StateKind::Zombie | StateKind::Done => {
                self.leave_batch_acked(number);
                let result = self.task(number).progress.result().cloned();
                self.tell(number, Outcome::Acked, Some(to), result.as_ref());
            }
            _ => {}
        }
    }

    /// Removes a task for good. Its queue may go with the last task.
    pub(super) fn leave(&mut self, number: u64, exit: Exit) {
        let place = self.places[&number].clone();
        self.take_out(number, exit);
        self.tidy(&place);
    }

    /// Removes a task for good, and returns it.
    pub(super) fn take_out(&mut self, number: u64, exit: Exit) -> TaskRecord {
        let task = self.task(number).clone();
        let kind = task.progress.state.kind();
        self.note_held(number, kind);
        self.note_move(number, kind, None);
        let place = self.places[&number].clone();
        self.places.remove(&number);
        self.kept.part(number);
        let home = self.home(&place);
        home.tasks.remove(&number);
        home.tally.exit(kind, exit, 1);
        self.totals.exit(kind, exit, 1);
        self.part_from_batch(&task, exit);
        let outcome = match exit {
            Exit::Acked => Outcome::Acked,
            Exit::Expired => Outcome::Expired,
            Exit::Killed => Outcome::Killed,
            Exit::Dead => Outcome::Dead,
            Exit::Evicted => Outcome::Evicted,
            Exit::Moved => Outcome::Moved,
            Exit::Cancelled => Outcome::Cancelled,
            Exit::Skipped => Outcome::Skipped,
        };
        self.remember(&place, &task, outcome);
        self.settle(&place);
        self.tell(number, outcome, None, task.progress.result());
        task
    }

    /// Counts how long a task was ready that is handed out now.
    pub(super) fn note_waited(&mut self, number: u64) {
        let since = self.since.get(&number).copied().unwrap_or_else(|| self.task(number).put_at);
        let waited = self.now.since(since);
        let place = self.places[&number].clone();
        let window = self.now.ms() / 5_000;
        let tally = &mut self.home(&place).tally;
        tally.times().waited.note(waited);
        *tally.handed_out.entry(window).or_default() += 1;
        self.note_share(number, |happened| happened.waited = Some(waited));
    }

    /// Notes what has happened to a task, if somebody looks at the shares of its place.
    pub(super) fn note_share(&mut self, number: u64, note: impl FnOnce(&mut Happened)) {
        let share = share_of(&self.task(number).terms);
        let place = self.places[&number].clone();
        if let Some((_, shares)) = &mut self.home(&place).tally.looked {
            note(shares.entry(share).or_default());
        }
    }

    /// Counts how long a lease has lasted, if this is its end and its begin is known.
    fn note_held(&mut self, number: u64, from: StateKind) {
        if let Some(since) = self.since.get(&number).filter(|_| from == StateKind::Taken) {
            let held = self.now.since(*since);
            let place = self.places[&number].clone();
            self.home(&place).tally.times().held.note(held);
        }
    }

    pub(super) fn note_move(&mut self, number: u64, from: StateKind, to: Option<StateKind>) {
        let place = &self.places[&number];
        if let Some(home) = self.homes.get_mut(place) {
            home.tally.note(Some(from), to);
            home.tally.note_kept(from, to);
        }
        self.totals.note(Some(from), to);
        self.totals.note_kept(from, to);
    }

    /// Removes a queue that has no reason to exist. It exists while it was created, is paused or
    /// holds tasks.
    pub(super) fn tidy(&mut self, place: &Place) {
        if let Some(put_off) = &mut self.put_off {
            return put_off.tidy.push(place.clone());
        }
        let exists = |home: &Home| {
            home.lane.is_some() || home.created || home.paused.any() || !home.tasks.is_empty()
        };
        if self.homes.get(place).is_some_and(|home| !exists(home)) {
            self.end(place);
        }
    }

    /// Removes a queue, whose figures are kept for a while.
    pub(super) fn end(&mut self, place: &Place) {
        let Some(home) = self.homes.remove(place) else { return };
        let kept_for = self.limits.queue_linger;
        if kept_for == Span::ZERO {
            return;
        }
        self.lingering.push((home.name, home.tally, self.now.after(kept_for)));
        self.lingering.retain(|(_, _, until)| *until > self.now);
        let bytes = |model: &Self| -> u64 {
            model.lingering.iter().map(|(name, ..)| queue_bytes(name.len())).sum()
        };
        while self.lingering.len() > self.limits.lingering_queues_max
            || bytes(self) > LINGERING_BYTES_MAX
        {
            self.lingering.remove(0);
        }
    }

    /// Removes and returns the figures of a former queue of this name, or returns none.
    fn revive(&mut self, name: &[u8]) -> Tally {
        let known = self.lingering.iter().position(|(known, ..)| **known == *name);
        let Some((_, tally, until)) = known.map(|at| self.lingering.remove(at)) else {
            return Tally::default();
        };
        if until > self.now { tally } else { Tally::default() }
    }

    /// Returns the figures of a former queue of this name that are kept.
    pub(super) fn former_tally(&self, name: &[u8]) -> Tally {
        let known = self.lingering.iter().find(|(known, ..)| **known == *name);
        let kept = known.filter(|(_, _, until)| *until > self.now);
        kept.map(|(_, tally, _)| tally.clone()).unwrap_or_default()
    }

    /// Adds up the figures of some queues and lanes, and of former queues of which they are kept.
    pub(super) fn known_tallies(&self, is_meant: impl Fn(&[u8]) -> bool) -> Tally {
        let present = self.homes.values().map(|home| (&home.name, &home.tally));
        let former = self.lingering.iter().filter(|(_, _, until)| *until > self.now);
        let former = former.map(|(name, tally, _)| (name, tally));
        let mut sum = Tally::default();
        for (_, tally) in present.chain(former).filter(|(name, _)| is_meant(name)) {
            sum.add(tally);
        }
        sum
    }
}

impl Tally {
    fn times(&mut self) -> &mut Times {
        self.times.get_or_insert_with(Box::default)
    }

    pub(super) fn note(&mut self, from: Option<StateKind>, to: Option<StateKind>) {
        *self.moves.entry(Move::new(from, to)).or_default() += 1;
    }

    /// Counts a task that is kept from now on because it was acknowledged, or kept no longer.
    fn note_kept(&mut self, from: StateKind, to: Option<StateKind>) {
        let Some(to) = to else { return };
        self.acked += u64::from(is_kept(to) && !is_kept(from));
        self.revived += u64::from(is_kept(from) && !is_kept(to));
    }

    /// Adds other figures without the times.
    fn add(&mut self, other: &Self) {
        for (step, times) in &other.moves {
            *self.moves.entry(*step).or_default() += times;
        }
        let Self { put, acked, expired, killed, dead, evicted, moved, purged, revived, .. } = other;
        self.put += put;
        self.acked += acked;
        self.expired += expired;
        self.killed += killed;
        self.dead += dead;
        self.evicted += evicted;
        self.moved += moved;
        self.cancelled += other.cancelled;
        self.skipped += other.skipped;
        self.purged += purged;
        self.revived += revived;
        self.failures += other.failures;
        self.duplicates += other.duplicates;
    }

    /// Counts tasks of one state that leave. Those that are kept since they were acknowledged are
    /// purged, or have come back in vain.
    pub(super) const fn exit(&mut self, from: StateKind, exit: Exit, count: u64) {
        if is_kept(from) {
            if !matches!(exit, Exit::Expired | Exit::Dead) {
                self.purged += count;
                return;
            }
            self.revived += count;
        }
        match exit {
            Exit::Acked => self.acked += count,
            Exit::Expired => self.expired += count,
            Exit::Killed => self.killed += count,
            Exit::Dead => self.dead += count,
            Exit::Evicted => self.evicted += count,
            Exit::Moved => self.moved += count,
            Exit::Cancelled => self.cancelled += count,
            Exit::Skipped => self.skipped += count,
        }
    }
}

/// Whether a task in this state has been acknowledged.
pub(super) const fn is_kept(kind: StateKind) -> bool {
    matches!(kind, StateKind::Zombie | StateKind::Done)
}
