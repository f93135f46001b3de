//! Full places, and which tasks make room for a more urgent one.

use pinpriq_proto::settings::{Overflow, Settings};
use pinpriq_proto::task::{State, StateKind, TaskRecord, reasons};

use super::turns::share_of;
use super::{Exit, Home, Model};

impl Home {
    /// Whether it has a capacity at all.
    pub(super) const fn is_bounded(&self) -> bool {
        let Settings { capacity, capacity_bytes, share_capacity, .. } = self.settings;
        capacity.is_some() || capacity_bytes.is_some() || share_capacity.is_some()
    }

    /// Whether a share has as many unfinished tasks as it may have.
    pub(super) fn share_is_full(&self, share: &[u8]) -> bool {
        let tasks = self.unfinished().filter(|task| *share_of(&task.terms) == *share).count();
        self.settings.share_capacity.is_some_and(|most| tasks as u64 >= most)
    }

    /// Whether it has no room for another task of so many bytes.
    pub(super) fn is_full_for(&self, content: u64) -> bool {
        self.is_full_with(&self.unfinished().collect::<Vec<_>>(), content)
    }

    /// Whether any share has as many unfinished tasks as it may have.
    pub(super) fn has_a_full_share(&self) -> bool {
        let is_bounded = self.settings.share_capacity.is_some();
        is_bounded && self.unfinished().any(|task| self.share_is_full(&share_of(&task.terms)))
    }

    fn is_full_with(&self, tasks: &[&TaskRecord], content: u64) -> bool {
        let bytes: u64 = tasks.iter().map(|task| content_of(task)).sum();
        let too_many = self.settings.capacity.is_some_and(|most| tasks.len() as u64 + 1 > most);
        too_many || self.settings.capacity_bytes.is_some_and(|most| bytes + content > most)
    }

    /// The tasks that go when one of this priority is put, the first of them first. None if it is
    /// refused.
    #[must_use]
    pub fn make_room(&self, priority: Option<i64>, content: u64) -> Option<Vec<u64>> {
        let mut gone = Vec::new();
        let mut left: Vec<&TaskRecord> = self.unfinished().collect();
        // The last in the order of selection is the last here.
        left.sort_by_key(|task| {
            let is_ready = task.progress.state == State::Ready;
            let priority = task.progress.priority;
            (is_ready, priority.is_none(), priority, task.progress.seq)
        });
        while self.is_full_with(&left, content) {
            let last = left.pop().filter(|_| self.settings.overflow == Overflow::Evict)?;
            let is_less_urgent = match (priority, last.progress.priority) {
                (Some(new), Some(old)) => old > new,
                (new, _) => new.is_some(),
            };
            if last.progress.state != State::Ready || !is_less_urgent {
                return None;
            }
            gone.push(last.number);
        }
        Some(gone)
    }

    fn unfinished(&self) -> impl Iterator<Item = &TaskRecord> {
        let finished = |task: &TaskRecord| {
            matches!(task.progress.state.kind(), StateKind::Zombie | StateKind::Done)
        };
        self.tasks.values().filter(move |task| !finished(task))
    }
}

impl Model {
    pub(super) fn evict(&mut self, number: u64) {
        // A task whose time is over does not make room: it expires.
        if self.is_over(self.task(number)) {
            return self.expire(number);
        }
        let place = self.places[&number].clone();
        match self.settings(&place).dead_letter {
            None => self.leave(number, Exit::Evicted),
            Some(to) => {
                self.die(number, Exit::Evicted, &to, Some(reasons::EVICTED));
            }
        }
    }
}

/// The bytes of payload and key.
fn content_of(task: &TaskRecord) -> u64 {
    (task.payload.len() + task.terms.key_bytes()) as u64
}
