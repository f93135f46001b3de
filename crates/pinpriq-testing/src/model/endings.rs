//! What became of the tasks that have left last.

use pinpriq_proto::command::QueueName;
use pinpriq_proto::limits::ENDING_REASON_BYTES_MAX;
use pinpriq_proto::looking::Ending;
use pinpriq_proto::reply::{Outcome, Reply};
use pinpriq_proto::task::{Bytes, TaskId, TaskRecord};

use super::{Model, Place};

/// A task that has left.
#[derive(Clone, Debug)]
pub(super) struct Left {
    queue: Bytes,
    member: Option<Bytes>,
    id: TaskId,
    /// Nothing, if the task came back.
    ending: Option<Ending>,
}

impl Model {
    pub(super) fn remember(&mut self, place: &Place, task: &TaskRecord, outcome: Outcome) {
        let home = &self.homes[place];
        let ending = Ending { outcome, at: self.now, reason: told(task), became: None };
        self.endings.push(Left {
            queue: home.name.clone(),
            member: home.lane.as_ref().map(|lane| lane.name.member.clone()),
            id: task.id.clone(),
            ending: Some(ending),
        });
        let most = self.limits.endings_max;
        let surplus = self.endings.len().saturating_sub(most);
        self.endings.drain(..surplus);
    }

    /// Notes where the task is now that has left last.
    pub(super) fn note_became(&mut self, task: &TaskRecord) {
        if let Some(ending) = self.endings.last_mut().and_then(|left| left.ending.as_mut()) {
            ending.became = Some((task.queue.clone(), task.id.clone()));
            ending.reason = told(task);
        }
    }

    /// What a start finds to be over was never there.
    pub(super) fn forget_endings(&mut self) {
        self.endings.clear();
    }

    pub(super) fn forget_ending(&mut self, task: &TaskRecord) {
        let member = task.lane.as_ref().map(|lane| &lane.member);
        let same = |left: &&mut Left| {
            left.queue == task.queue && left.member.as_ref() == member && left.id == task.id
        };
        if let Some(left) = self.endings.iter_mut().rfind(same) {
            left.ending = None;
        }
    }

    /// What became of a task that is not there, with its id.
    pub(super) fn ending_of(&self, queue: QueueName<'_>, id: &[u8]) -> Option<(&TaskId, &Ending)> {
        let same = |left: &&Left| {
            let own = self.resolve(&left.id).unwrap_or_else(|| left.id.clone());
            *left.queue == *queue.name
                && left.member.as_deref() == queue.member
                && *own.text() == *id
        };
        let left = self.endings.iter().rfind(same)?;
        Some((&left.id, left.ending.as_ref()?))
    }

    pub(super) fn get(&self, queue: QueueName<'_>, id: &[u8], found: Option<u64>) -> Reply {
        match (found, self.ending_of(queue, id)) {
            (Some(number), _) => Reply::Task(Some(Box::new(self.task(number).clone()))),
            (None, Some((_, ending))) => Reply::Ended(Box::new(ending.clone())),
            (None, None) => Reply::Task(None),
        }
    }
}

fn told(task: &TaskRecord) -> Option<Bytes> {
    Some(beginning(task.progress.reason.as_ref()?, ENDING_REASON_BYTES_MAX))
}

/// The beginning of a reason. What is text stays text.
pub(super) fn beginning(reason: &[u8], most: usize) -> Bytes {
    let mut end = reason.len().min(most);
    while std::str::from_utf8(reason).is_ok_and(|text| !text.is_char_boundary(end)) {
        end -= 1;
    }
    Bytes::from(&reason[..end])
}
