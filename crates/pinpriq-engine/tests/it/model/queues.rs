//! Looking after queues: settings, names, emptying, pauses, figures.

use pinpriq_engine::command::{Assign, QueueCommand, QueueName, SettingsPatch, Sides};
use pinpriq_engine::reply::{RefusalKind, Reply};
use pinpriq_engine::settings::{AfterAck, Ids, Paused, Settings};
use pinpriq_engine::stats::{Counters, Figures};
use pinpriq_engine::task::{StateKind, TaskRecord};
use pinpriq_engine::time::Span;

use super::{Answer, Exit, Home, Model, Tally, fits, is_in};

impl Model {
    pub(super) fn settings(&self, home: &Home) -> Settings {
        self.queues.get(home).map(|queue| queue.settings).unwrap_or_default()
    }

    pub(super) fn paused(&self, home: &Home) -> Paused {
        self.queues.get(home).map(|queue| queue.paused).unwrap_or_default()
    }

    pub(super) fn administer(&mut self, command: &QueueCommand<'_>) -> Answer {
        match *command {
            QueueCommand::Create { queue, settings } => {
                self.settings_fit(settings)?;
                let home = Home::of_queue(queue);
                if self.queues.get(&home).is_some_and(|queue| queue.created) {
                    return Err(RefusalKind::Exists);
                }
                self.set(&home, settings)
            }
            QueueCommand::Set { queue, settings } => {
                self.settings_fit(settings)?;
                fits(queue.member.is_none() || settings.ids != Assign::To(Ids::Given))?;
                let home = self.home(queue)?;
                self.set(&home, settings)
            }
            QueueCommand::Show(queue) => {
                let home = self.existing(queue)?;
                let queue = &self.queues[&home];
                let (settings, paused, created) = (queue.settings, queue.paused, queue.created);
                Ok(Some(Reply::Settings { settings: Box::new(settings), paused, created }))
            }
            QueueCommand::List { prefix, after, count } => {
                let mut names: Vec<_> = self
                    .queues
                    .keys()
                    .filter(|home| home.lane.is_none() && home.name.starts_with(prefix))
                    .map(|home| home.name.as_slice())
                    .filter(|name| after.is_none_or(|after| *name > after))
                    .map(Into::into)
                    .collect();
                let more = names.len() > count;
                names.truncate(count);
                Ok(Some(Reply::Names { names, more }))
            }
            QueueCommand::Truncate(queue) => {
                let home = self.existing(queue)?;
                let count = self.empty(&home);
                self.tidy(&home);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Drop(name) => {
                let home = self.existing(name.into())?;
                let count = self.empty(&home);
                self.queues.remove(&home);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Pause { queue, sides } => self.pause(queue, sides, true),
            QueueCommand::Resume { queue, sides } => self.pause(queue, sides, false),
            QueueCommand::Stats(Some(queue)) => {
                let home = self.existing(queue)?;
                Ok(Some(Reply::Figures(Box::new(self.figures_of(&home)))))
            }
            QueueCommand::Stats(None) => Ok(Some(Reply::Figures(Box::new(self.total_figures())))),
        }
    }

    fn existing(&self, queue: QueueName<'_>) -> Result<Home, RefusalKind> {
        let home = self.home(queue)?;
        if self.queues.contains_key(&home) { Ok(home) } else { Err(RefusalKind::NoQueue) }
    }

    fn set(&mut self, home: &Home, patch: SettingsPatch) -> Answer {
        let former = self.settings(home);
        let ids = patch.ids.or(former.ids);
        if ids != former.ids && self.tasks.iter().any(|task| is_in(task, home)) {
            return Err(RefusalKind::WrongState);
        }
        let room = self.room_of_queue(home);
        if room > 0 {
            self.has_room(room)?;
        }
        let queue = self.queues.entry(home.clone()).or_default();
        queue.created = true;
        queue.settings = Settings {
            ids,
            ttl: patch.ttl.or(former.ttl),
            ttr: patch.ttr.or(former.ttr),
            after_ack: patch.after_ack.or(former.after_ack),
            capacity: patch.capacity.or(former.capacity),
        };
        Ok(Some(Reply::Done))
    }

    fn settings_fit(&self, patch: SettingsPatch) -> Result<(), RefusalKind> {
        for assign in [patch.ttl, patch.ttr] {
            if let Assign::To(span) = assign {
                self.span_fits(span, false)?;
            }
        }
        if let Assign::To(AfterAck::Zombie(stay)) = patch.after_ack {
            self.span_fits(Some(stay), false)?;
        }
        fits(patch.capacity != Assign::To(Some(0)))
    }

    fn pause(&mut self, queue: QueueName<'_>, sides: Sides, paused: bool) -> Answer {
        let home = self.existing(queue)?;
        let queue = self.queues.get_mut(&home).expect("it exists");
        if sides != Sides::Output {
            queue.paused.input = paused;
        }
        if sides != Sides::Input {
            queue.paused.output = paused;
        }
        self.tidy(&home);
        Ok(Some(Reply::Done))
    }

    /// Removes every task of a queue. Those who await them are told soon.
    pub(super) fn empty(&mut self, home: &Home) -> u64 {
        let (gone, left): (Vec<TaskRecord>, Vec<TaskRecord>) =
            std::mem::take(&mut self.tasks).into_iter().partition(|task| is_in(task, home));
        self.tasks = left;
        for task in &gone {
            self.note(home, Some(task.state.kind()), None);
            self.emptied.push(task.number);
            self.note_emptied(task);
        }
        let queue = self.queues.get_mut(home).expect("the queue exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.exit(Exit::Killed, gone.len() as u64);
        }
        gone.len() as u64
    }

    /// Whether the longest wait somewhere is a matter of taste: a task that was sent to the tail
    /// is older than it looks.
    pub(crate) fn has_tail(&self) -> bool {
        self.tasks.iter().any(|task| task.seq != task.number)
    }

    fn figures_of(&self, home: &Home) -> Figures {
        let queue = &self.queues[home];
        let own: Vec<&TaskRecord> = self.tasks.iter().filter(|task| is_in(task, home)).collect();
        let takers = self.takers.iter().filter(|taker| taker.queues.contains(home));
        let subscribers = self.subscriptions.iter().filter(|known| known.queue == *home);
        let paused = queue.paused;
        Figures {
            counters: counters(&own, &queue.tally),
            oldest_ready: self.oldest_ready(&own),
            takers: takers.count() as u64,
            subscribers: subscribers.count() as u64,
            paused,
            paused_queues: u64::from(paused.any()),
            queues: 1,
            missed: home.lane.map(|_| queue.missed),
        }
    }

    /// How long ago the oldest of the tasks that can be selected was put.
    fn oldest_ready(&self, tasks: &[&TaskRecord]) -> Option<Span> {
        let selectable =
            |task: &&&TaskRecord| task.state.kind() == StateKind::Ready && task.priority.is_some();
        let oldest = tasks.iter().filter(selectable).map(|task| task.put_at).min();
        oldest.map(|put_at| self.now.since(put_at))
    }

    fn total_figures(&self) -> Figures {
        let all: Vec<&TaskRecord> = self.tasks.iter().collect();
        Figures {
            counters: counters(&all, &self.totals),
            oldest_ready: self.oldest_ready(&all),
            takers: self.takers.len() as u64,
            subscribers: self.subscriptions.len() as u64,
            paused: Paused::default(),
            paused_queues: self.queues.values().filter(|queue| queue.paused.any()).count() as u64,
            queues: self.queues.keys().filter(|home| home.lane.is_none()).count() as u64,
            missed: None,
        }
    }
}

fn counters(tasks: &[&TaskRecord], tally: &Tally) -> Counters {
    let mut counts = [0; 6];
    let mut bytes = 0;
    for task in tasks {
        counts[task.state.kind() as usize] += 1;
        bytes += (task.payload.len() + task.key.as_ref().map_or(0, |key| key.len())) as u64;
    }
    Counters {
        counts,
        moves: tally.moves.iter().map(|(step, times)| (*step, *times)).collect(),
        put: tally.put,
        acked: tally.acked,
        expired: tally.expired,
        killed: tally.killed,
        bytes,
    }
}
