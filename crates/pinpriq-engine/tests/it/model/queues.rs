//! Looking after queues: settings, names, emptying, pauses, figures.

use pinpriq_engine::command::{Assign, QueueCommand, SettingsPatch, Sides};
use pinpriq_engine::reply::{RefusalKind, Reply};
use pinpriq_engine::settings::{AfterAck, Paused, Settings};
use pinpriq_engine::stats::{Counters, Figures};
use pinpriq_engine::task::{StateKind, TaskRecord};
use pinpriq_engine::time::Span;

use super::{Answer, Exit, Model, Tally, fits};

impl Model {
    pub(super) fn settings(&self, queue: &[u8]) -> Settings {
        self.queues.get(queue).map(|queue| queue.settings).unwrap_or_default()
    }

    pub(super) fn paused(&self, queue: &[u8]) -> Paused {
        self.queues.get(queue).map(|queue| queue.paused).unwrap_or_default()
    }

    pub(super) fn administer(&mut self, command: &QueueCommand<'_>) -> Answer {
        match *command {
            QueueCommand::Create { queue, settings } => {
                self.settings_fit(settings)?;
                if self.queues.get(queue).is_some_and(|queue| queue.created) {
                    return Err(RefusalKind::Exists);
                }
                self.set(queue, settings)
            }
            QueueCommand::Set { queue, settings } => {
                self.settings_fit(settings)?;
                self.set(queue, settings)
            }
            QueueCommand::Show(queue) => {
                let queue = self.queues.get(queue).ok_or(RefusalKind::NoQueue)?;
                let (settings, paused, created) = (queue.settings, queue.paused, queue.created);
                Ok(Some(Reply::Settings { settings, paused, created }))
            }
            QueueCommand::List { prefix, after, count } => {
                let mut names: Vec<_> = self
                    .queues
                    .keys()
                    .filter(|name| name.starts_with(prefix))
                    .filter(|name| after.is_none_or(|after| name.as_slice() > after))
                    .map(|name| name.as_slice().into())
                    .collect();
                let more = names.len() > count;
                names.truncate(count);
                Ok(Some(Reply::Names { names, more }))
            }
            QueueCommand::Truncate(queue) => {
                self.queues.get(queue).ok_or(RefusalKind::NoQueue)?;
                let count = self.empty(queue);
                self.tidy(queue);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Drop(name) => {
                self.queues.get(name).ok_or(RefusalKind::NoQueue)?;
                let count = self.empty(name);
                self.queues.remove(name);
                Ok(Some(Reply::Count(count)))
            }
            QueueCommand::Pause { queue, sides } => self.pause(queue, sides, true),
            QueueCommand::Resume { queue, sides } => self.pause(queue, sides, false),
            QueueCommand::Stats(Some(name)) => {
                let queue = self.queues.get(name).ok_or(RefusalKind::NoQueue)?;
                Ok(Some(Reply::Figures(Box::new(self.figures_of(name, &queue.tally)))))
            }
            QueueCommand::Stats(None) => Ok(Some(Reply::Figures(Box::new(self.total_figures())))),
        }
    }

    fn set(&mut self, name: &[u8], patch: SettingsPatch) -> Answer {
        let former = self.settings(name);
        let ids = patch.ids.or(former.ids);
        if ids != former.ids && self.tasks.iter().any(|task| *task.queue == *name) {
            return Err(RefusalKind::WrongState);
        }
        let queue = self.queues.entry(name.to_vec()).or_default();
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

    fn pause(&mut self, name: &[u8], sides: Sides, paused: bool) -> Answer {
        let queue = self.queues.get_mut(name).ok_or(RefusalKind::NoQueue)?;
        if sides != Sides::Output {
            queue.paused.input = paused;
        }
        if sides != Sides::Input {
            queue.paused.output = paused;
        }
        self.tidy(name);
        Ok(Some(Reply::Done))
    }

    /// Removes every task of a queue. Those who await them are told soon.
    fn empty(&mut self, name: &[u8]) -> u64 {
        let (gone, left): (Vec<TaskRecord>, Vec<TaskRecord>) =
            std::mem::take(&mut self.tasks).into_iter().partition(|task| *task.queue == *name);
        self.tasks = left;
        for task in &gone {
            self.note(name, Some(task.state.kind()), None);
            self.emptied.push(task.number);
        }
        let queue = self.queues.get_mut(name).expect("the queue exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.exit(Exit::Killed, gone.len() as u64);
        }
        gone.len() as u64
    }

    /// Whether the longest wait in a queue is a matter of taste: a task that was sent to the tail
    /// is older than it looks.
    pub(crate) fn has_tail(&self, queue: &[u8]) -> bool {
        self.tasks.iter().any(|task| *task.queue == *queue && task.seq != task.number)
    }

    fn figures_of(&self, name: &[u8], tally: &Tally) -> Figures {
        let own: Vec<&TaskRecord> = self.tasks.iter().filter(|task| *task.queue == *name).collect();
        let takers = self.takers.iter().filter(|taker| taker.queues.iter().any(|q| q == name));
        let subscribers = self.subscriptions.iter().filter(|known| known.queue == name);
        let paused = self.paused(name);
        Figures {
            counters: counters(&own, tally),
            oldest_ready: self.oldest_ready(&own),
            takers: takers.count() as u64,
            subscribers: subscribers.count() as u64,
            paused,
            paused_queues: u64::from(paused.any()),
            queues: 1,
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
            queues: self.queues.len() as u64,
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
