//! Queue management: settings, names, emptying, pauses, figures. Tasks are not moved here.

use std::collections::BTreeMap;

use pinpriq_proto::command::{QueueCommand, QueueName, Sides};
use pinpriq_proto::limits::NAME_BYTES_MAX;
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::{
    Assignment, COST_MAX_DEFAULT, COSTMAX, DEADLETTER, HISTORY, IDS, Ids, OVERFLOW, Overflow,
    Pause, Paused, SHAREMETRICS, USES, Value,
};
use pinpriq_proto::stats::{Counters, Figures};
use pinpriq_proto::task::{State, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

use super::ageing::ages;
use super::bonds::Emptied;
use super::limits::names_fit;
use super::within::{match_one, page_of};
use super::{Answer, Exit, Home, Model, Place, Tally, fits};

impl Model {
    pub(super) fn administer(&mut self, command: &QueueCommand<'_>) -> Answer {
        match *command {
            QueueCommand::Create { queue, settings } => {
                fits(queue.len() <= NAME_BYTES_MAX)?;
                self.settings_fit(settings)?;
                let place = Place::Queue(queue.into());
                if self.homes.get(&place).is_some_and(|home| home.created) {
                    return Err(RefusalKind::Exists);
                }
                self.set(queue.into(), settings)
            }
            QueueCommand::Set { queue, settings } => {
                self.settings_fit(settings)?;
                self.set(queue, settings)
            }
            QueueCommand::Show(queue) => {
                let place = self.existing(queue)?;
                let home = self.home(&place);
                let (settings, paused, created) =
                    (home.settings.clone(), home.paused, home.created);
                Ok(Some(Reply::Settings { settings: Box::new(settings), paused, created }))
            }
            QueueCommand::List(page) => Ok(Some(self.list_queues(page, None))),
            QueueCommand::Truncate(queue) => {
                let place = self.existing(queue)?;
                let count = self.empty(&place);
                self.tidy(&place);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Drop(queue) => {
                let windows = self.windows.len();
                self.windows.retain(|_, known| *known.queue != *queue);
                let has_left_windows = self.windows.len() < windows;
                if has_left_windows && !self.homes.contains_key(&Place::Queue(queue.into())) {
                    return Ok(Some(Reply::Count(0)));
                }
                let place = self.existing(queue.into())?;
                let count = self.empty(&place);
                self.own_shares.retain(|_, own| *own.queue != *queue);
                self.end(&place);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Pause { queue, sides, length } => {
                self.span_fits(length, false)?;
                let until = length.map(|length| Pause::Until(self.now.after(length)));
                self.pause(queue, sides, until.unwrap_or(Pause::Endless))
            }
            QueueCommand::Hold { queue, length, makes } => self.hold_output(queue, length, makes),
            QueueCommand::Resume { queue, sides } => self.pause(queue, sides, Pause::Off),
            QueueCommand::Share { queue, share, change } => {
                fits(queue.len() <= NAME_BYTES_MAX)?;
                self.set_share(queue, share, change)
            }
            QueueCommand::Shares { queue, count, from, top } => {
                self.shares_of(queue, count, from, top)
            }
            QueueCommand::Stats(Some(queue)) => {
                let place = self.place_of(queue)?;
                Ok(Some(Reply::Figures(Box::new(self.figures_of(&place)))))
            }
            QueueCommand::Stats(None) => {
                Ok(Some(Reply::Figures(Box::new(self.total_figures(None)))))
            }
        }
    }

    pub(super) fn list_queues(
        &self,
        page: NamesPage<'_>,
        within: Option<&[NamePattern<'_>]>,
    ) -> Reply {
        let queues = self.homes.values().filter(|home| home.lane.is_none());
        page_of(queues.map(|home| (&home.name, &home.name)), page, within)
    }

    fn existing(&self, queue: QueueName<'_>) -> Result<Place, RefusalKind> {
        let place = self.place_of(queue)?;
        if self.homes.contains_key(&place) { Ok(place) } else { Err(RefusalKind::NoQueue) }
    }

    fn set(&mut self, queue: QueueName<'_>, changes: &[Assignment<'_>]) -> Answer {
        let for_queues = [(IDS, Ids::Given.into()), (OVERFLOW, Overflow::Evict.into())];
        let is_for_queues = |change: &Assignment<'_>| {
            for_queues.contains(change)
                || change.0 == COSTMAX && change.1 != Value::Number(COST_MAX_DEFAULT)
                || change.0 == SHAREMETRICS && change.1 != Value::None
        };
        let fits_lanes = !changes.iter().any(is_for_queues);
        fits(queue.member.is_none() || fits_lanes)?;
        fits(changes.iter().all(|(setting, value)| match value {
            Value::Bytes(name) => {
                *setting != DEADLETTER || queue.member.is_none() && *name != queue.name
            }
            _ => true,
        }))?;
        let place = self.place_of(queue)?;
        let former = self.settings(&place);
        let settings = former.clone().with(changes).map_err(|_| RefusalKind::BadArgument)?;
        fits(!ages(&settings) || settings.ageing.is_some())?;
        let holds_tasks = self.homes.get(&place).is_some_and(|home| !home.tasks.is_empty());
        if settings.ids != former.ids && holds_tasks {
            return Err(RefusalKind::WrongState);
        }
        self.turns_may_change(&place, &settings)?;
        self.uses_fit(&place, &settings)?;
        self.may_set(&place, Some(&settings))?;
        let home = self.home(&place);
        home.created = true;
        home.set(settings);
        self.obey(&place);
        Ok(Some(Reply::Done))
    }

    /// Checks that no setting is 0 or needs 64 bits, and that no span reaches beyond the range of
    /// time.
    pub(super) fn settings_fit(&self, changes: &[Assignment<'_>]) -> Result<(), RefusalKind> {
        changes.iter().try_for_each(|(setting, value)| match *value {
            Value::Span(span) => self.span_fits(Some(span), false),
            Value::Bytes(uses) if *setting == USES => names_fit(uses),
            Value::Bytes(name) => fits(name.len() <= NAME_BYTES_MAX),
            Value::Rate(rate) => {
                fits(rate.count > 0)?;
                self.span_fits(Some(rate.per), false)
            }
            Value::Number(number) if *setting == SHAREMETRICS => fits((1..=100).contains(&number)),
            Value::Number(number) if *setting == HISTORY => fits(number <= 20),
            Value::Number(number) => fits((1..1 << 63).contains(&number)),
            Value::None | Value::Word(_) => Ok(()),
        })
    }

    pub(super) fn pause(&mut self, queue: QueueName<'_>, sides: Sides, pause: Pause) -> Answer {
        let place = self.existing(queue)?;
        let home = self.home(&place);
        if sides != Sides::Output {
            home.paused.input = pause;
        }
        if sides != Sides::Input {
            home.paused.output = pause;
        }
        self.note_due(pause.until());
        self.tidy(&place);
        Ok(Some(Reply::Done))
    }

    /// Removes every task of a place. Their awaiters are notified later.
    pub(super) fn empty(&mut self, place: &Place) -> u64 {
        let Some(home) = self.homes.get(place) else { return 0 };
        let emptied = home.tasks.values().map(|task| Emptied {
            number: task.number,
            own_bytes: self.own_bytes(task),
            batch: task.batch().cloned(),
            after: task.progress.after().map_or_else(Vec::new, |after| after.names.clone()),
            is_buried: task.progress.state.kind() == StateKind::Buried,
        });
        let emptied: Vec<Emptied> = emptied.collect();
        self.emptied.extend(emptied);
        let Some(mut home) = self.homes.remove(place) else { return 0 };
        let tasks = std::mem::take(&mut home.tasks);
        if let Some((_, happened)) = home.tally.looked.as_mut().filter(|_| !tasks.is_empty()) {
            happened.clear();
        }
        for (number, task) in &tasks {
            let kind = task.progress.state.kind();
            for tally in [&mut home.tally, &mut self.totals] {
                tally.note(Some(kind), None);
                tally.exit(kind, Exit::Killed, 1);
            }
            self.places.remove(number);
        }
        self.homes.insert(place.clone(), home);
        self.settle(place);
        tasks.len() as u64
    }

    fn figures_of(&self, place: &Place) -> Figures {
        let takers = self.takers.iter().filter(|taker| taker.places.contains(place));
        let subscribers = self.subscriptions.iter().filter(|known| known.place == *place);
        let (takers, subscribers) = (takers.count() as u64, subscribers.count() as u64);
        let holds_dead_letters = match place {
            Place::Queue(name) => self.holds_dead_letters(name),
            Place::Lane(_) => false,
        };
        let Some(home) = self.homes.get(place) else {
            let tally = match place {
                Place::Queue(name) => self.former_tally(name),
                Place::Lane(_) => Tally::default(),
            };
            let counters = counters(std::iter::empty(), &tally);
            return Figures {
                counters,
                takers,
                subscribers,
                holds_dead_letters,
                ..Figures::default()
            };
        };
        Figures {
            counters: counters(home.tasks.values(), &home.tally),
            oldest_ready: self.oldest_ready(home),
            priorities: priorities(home),
            takers,
            subscribers,
            paused: home.paused,
            paused_queues: u64::from(home.paused.any()),
            queues: 1,
            missed: home.lane.as_ref().map(|lane| lane.missed),
            holds_dead_letters,
        }
    }

    /// Whether dead letters of another queue go there.
    fn holds_dead_letters(&self, name: &[u8]) -> bool {
        self.homes.values().any(|home| home.settings.dead_letter.as_deref() == Some(name))
    }

    /// How long ago the oldest selectable task was put.
    fn oldest_ready(&self, home: &Home) -> Option<Span> {
        let selectable = |task: &&TaskRecord| {
            task.progress.state.kind() == StateKind::Ready && task.progress.priority.is_some()
        };
        let oldest = home.tasks.values().filter(selectable).map(|task| task.put_at).min();
        oldest.map(|put_at| self.now.since(put_at))
    }

    /// The figures of everything, or of what matches one of these names.
    pub(super) fn total_figures(&self, within: Option<&[NamePattern<'_>]>) -> Figures {
        let is_meant = |name: &[u8]| within.is_none_or(|within| match_one(within, name));
        let homes = || self.homes.values().filter(|home| is_meant(&home.name));
        let is_place_meant = |place: &Place| match place {
            Place::Queue(name) => is_meant(name),
            Place::Lane(_) => self.homes.get(place).is_none_or(|home| is_meant(&home.name)),
        };
        let paused = homes().filter(|home| home.paused.any()).count();
        let queues = homes().filter(|home| home.lane.is_none()).count();
        let takers = self.takers.iter().filter(|it| !it.is_echo);
        let takers = takers.filter(|it| within.is_none() || it.places.iter().any(is_place_meant));
        let subscribers = self.subscriptions.iter().filter(|it| is_place_meant(&it.place)).count();
        let tallies = match within {
            None => self.totals.clone(),
            Some(_) => self.known_tallies(is_meant),
        };
        Figures {
            counters: counters(homes().flat_map(|home| home.tasks.values()), &tallies),
            oldest_ready: None,
            priorities: Vec::new(),
            takers: takers.count() as u64,
            subscribers: subscribers as u64,
            paused: Paused::default(),
            paused_queues: paused as u64,
            queues: queues as u64,
            missed: None,
            holds_dead_letters: false,
        }
    }
}

/// How many ready tasks there are of each of the most urgent priorities.
fn priorities(home: &Home) -> Vec<(i64, u64)> {
    let mut counts = BTreeMap::new();
    for task in home.tasks.values().filter(|task| task.progress.state == State::Ready) {
        if let Some(priority) = task.progress.priority {
            *counts.entry(priority).or_insert(0) += 1;
        }
    }
    counts.into_iter().take(32).collect()
}

fn counters<'a>(tasks: impl Iterator<Item = &'a TaskRecord>, tally: &Tally) -> Counters {
    let mut counts = [0; 6];
    let mut bytes = 0;
    for task in tasks {
        counts[task.progress.state.kind() as usize] += 1;
        bytes += (task.payload.len() + task.terms.key_bytes()) as u64;
    }
    Counters {
        counts,
        moves: tally.moves.iter().map(|(step, times)| (*step, *times)).collect(),
        put: tally.put,
        acked: tally.acked,
        expired: tally.expired,
        killed: tally.killed,
        dead: tally.dead,
        cancelled: tally.cancelled,
        skipped: tally.skipped,
        evicted: tally.evicted,
        moved: tally.moved,
        purged: tally.purged,
        revived: tally.revived,
        failures: tally.failures,
        duplicates: tally.duplicates,
        bytes,
        times: tally.times.clone(),
    }
}

/// Queries for the chooser of commands.
impl Model {
    /// The number of tasks.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.places.len()
    }

    /// Whether a task of this number exists.
    #[must_use]
    pub fn knows(&self, number: u64) -> bool {
        self.places.contains_key(&number)
    }

    /// Whether a queue requires clients to give ids.
    #[must_use]
    pub fn gives_ids(&self, queue: &[u8]) -> bool {
        self.settings(&Place::Queue(queue.into())).ids == Ids::Given
    }

    /// The counters over all places, to compare with those of the engine.
    #[must_use]
    pub fn total_counters(&self) -> Counters {
        self.total_figures(None).counters
    }

    /// Whether everything that is due has been done.
    #[must_use]
    pub fn is_quiet(&self, now: Timestamp) -> bool {
        self.next_moment().is_none_or(|at| at > now) && !self.has_more_to_do()
    }

    /// Whether the age of the oldest ready task is ambiguous in some place: a task that was moved,
    /// or sent to the tail, is older than its seq suggests.
    #[must_use]
    pub fn has_tail(&self) -> bool {
        let is_mixed = |home: &Home| {
            let mut tasks: Vec<&TaskRecord> = home.tasks.values().collect();
            tasks.sort_by_key(|task| task.progress.seq);
            !tasks.is_sorted_by_key(|task| task.put_at)
        };
        self.homes.values().any(is_mixed)
    }
}
