//! What must not be, from what is known of tasks and batches.
//!
//! Where something may have happened, the server is given the benefit of it.

use pinpriq_proto::wire::resp::Value;

use super::book::{Known, Only, Pages, Task};
use super::talk::text;

/// What the server says of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    state: String,
    total: u64,
    pending: u64,
    acked: u64,
    failed: u64,
    waiting: u64,
}

/// How many tasks of a batch may have ended in a way: the fewest and the most.
#[derive(Clone, Copy, Default, Debug)]
struct Bounds {
    least: u64,
    most: u64,
}

/// What is known of the tasks of a batch.
#[derive(Clone, Copy, Default, Debug)]
struct Expected {
    total: Bounds,
    acked: Bounds,
    failed: Bounds,
}

impl Pages {
    /// Whether a task may have ended as failed, be it by a request or without one.
    pub(super) fn may_have_failed(&self, task: &Task) -> bool {
        let cancelled = task.terms.batch.map(|batch| self.batches[&batch].cancelled);
        task.losses > 0
            || task.terms.may_fail_alone()
            || cancelled.is_some_and(|known| known > Known::No)
    }

    /// Whether a task may have been skipped: its batches may be done.
    fn may_be_skipped(&self, task: &Task) -> bool {
        let terms = &task.terms;
        terms.only != Only::Done
            && !terms.after.is_empty()
            && terms.after.iter().all(|batch| self.why_not_done(*batch).is_none())
    }

    fn may_have_ended(&self, task: &Task) -> bool {
        task.end.is_some()
            || task.acks > 0
            || self.may_have_failed(task)
            || self.may_be_skipped(task)
    }

    /// Why a batch cannot be done, if it cannot.
    fn why_not_done(&self, number: u64) -> Option<String> {
        let batch = &self.batches[&number];
        if batch.may_be_given_up {
            return None;
        }
        if batch.closed == Known::No {
            return Some(format!("nobody has closed the batch {number}"));
        }
        let is_pending = |child: &&u64| {
            let task = &self.tasks[*child];
            task.put == Known::Yes && !self.may_have_ended(task)
        };
        let pending = batch.children.iter().find(is_pending);
        pending.map(|child| format!("the task {child} of the batch {number} is pending"))
    }

    /// Why a task must not be handed out to a request that was sent at this moment, if it must not.
    pub(super) fn why_not_now(&self, task: &Task, sent_at: u64) -> Option<String> {
        if task.put == Known::No {
            return Some("its put was refused".to_owned());
        }
        if task.end.is_some_and(|end| end.at < sent_at) {
            return Some("it has ended".to_owned());
        }
        let own = task.terms.batch.map(|batch| &self.batches[&batch]);
        let was_done = |at: u64| at < sent_at;
        if own.is_some_and(|own| !own.may_be_given_up && own.done_at.is_some_and(was_done)) {
            return Some("its batch was done".to_owned());
        }
        let after = &task.terms.after;
        if let Some(why) = after.iter().find_map(|batch| self.why_not_done(*batch)) {
            return Some(why);
        }
        match task.terms.only {
            _ if after.is_empty() => None,
            Only::Acked if after.iter().any(|batch| self.has_failed(*batch)) => {
                Some("a task has failed".to_owned())
            }
            Only::Failed if after.iter().all(|batch| self.was_acked(*batch)) => {
                Some("no task has failed".to_owned())
            }
            _ => None,
        }
    }

    /// Whether a task of a batch has certainly failed.
    fn has_failed(&self, batch: u64) -> bool {
        let children = &self.batches[&batch].children;
        children.iter().any(|child| self.tasks[child].end.is_some_and(|end| !end.acked))
    }

    /// Whether all tasks of a batch were certainly acknowledged.
    fn was_acked(&self, batch: u64) -> bool {
        let batch = &self.batches[&batch];
        let was_acked = |task: &Task| task.end.is_some_and(|end| end.acked);
        let mut tasks = batch.children.iter().map(|child| &self.tasks[child]);
        !batch.may_be_given_up && tasks.all(|task| task.put == Known::No || was_acked(task))
    }

    /// Compares what the server says of a batch with what is known, and notes whether it is done.
    pub(super) fn compare(&mut self, number: u64, shown: &Shown) {
        if let Some(why) = self.why_wrong(number, shown) {
            let sentence = format!("the batch {number} is {shown:?}, and {why}");
            self.fail(sentence);
        }
        if shown.is_done() {
            let now = self.moment();
            self.batch_mut(number).done_at.get_or_insert(now);
        }
    }

    fn why_wrong(&self, number: u64, shown: &Shown) -> Option<String> {
        let (batch, expected) = (&self.batches[&number], self.expected(number));
        let Shown { total, pending, acked, failed, .. } = *shown;
        if total != pending + acked + failed || total > expected.total.most {
            return Some(format!("should be {expected:?}"));
        }
        if !shown.is_done() {
            return None;
        }
        let why = self.why_not_done(number);
        let is_right = pending == 0
            && expected.total.allows(total)
            // What was pending when it was given up counts as failed, whatever becomes of it.
            && (batch.may_be_given_up
                || expected.acked.allows(acked) && expected.failed.allows(failed));
        why.or_else(|| (!is_right).then(|| format!("should be {expected:?}")))
    }

    fn expected(&self, number: u64) -> Expected {
        let mut expected = Expected::default();
        for child in &self.batches[&number].children {
            let task = &self.tasks[child];
            if task.put == Known::No {
                continue;
            }
            expected.total.count(task.put == Known::Yes, true);
            if let Some(end) = task.end {
                expected.acked.count(end.acked, end.acked);
                expected.failed.count(!end.acked, !end.acked);
                continue;
            }
            // Skipped for want of failures, it counts as acknowledged.
            let is_skipped = self.may_be_skipped(task);
            let may_be_acked = task.acks > 0 || is_skipped && task.terms.only == Only::Failed;
            let may_fail =
                self.may_have_failed(task) || is_skipped && task.terms.only == Only::Acked;
            expected.acked.count(false, may_be_acked);
            expected.failed.count(false, may_fail);
        }
        expected
    }

    /// Compares what is left of a batch, once nothing is under way, with what is known. None means
    /// that there is none.
    pub(super) fn finish(&mut self, number: u64, shown: Option<&Shown>) {
        let batch = &self.batches[&number];
        let Some(shown) = shown else {
            if batch.there == Known::Yes {
                let sentence = format!("the batch {number} is lost: {batch:?}");
                self.fail(sentence);
            }
            return;
        };
        if !shown.is_done() || shown.waiting > 0 || shown.total < batch.least {
            let sentence = format!("the batch {number} is {shown:?} in the end: {batch:?}");
            self.fail(sentence);
        }
        let may_be_given_up = self.batches[&number].may_be_given_up;
        self.batch_mut(number).failed = match shown.failed {
            0 if may_be_given_up => Known::Maybe,
            0 => Known::No,
            _ => Known::Yes,
        };
        self.compare(number, shown);
    }

    /// Judges all tasks, once nothing is under way and all batches are finished.
    pub(super) fn finish_tasks(&mut self) {
        let mut wrong = Vec::new();
        let mut figures = self.figures;
        for (number, task) in self.tasks.iter().filter(|(_, task)| task.put == Known::Yes) {
            let is_skipped = self.is_skipped(task);
            let is_acked = task.end.is_some_and(|end| end.acked);
            if is_skipped == Known::Yes && (task.has_come || is_acked) {
                wrong.push(format!("the task {number} came and has to be skipped: {task:?}"));
            }
            let may_be_gone = task.end.is_some() || task.acks > 0 || self.may_have_failed(task);
            if is_skipped == Known::No && !may_be_gone {
                wrong.push(format!("the task {number} is lost: {task:?}"));
            }
            if task.terms.after.is_empty() {
                continue;
            }
            let count = match is_skipped {
                _ if is_acked => &mut figures.received,
                Known::Yes => &mut figures.skipped,
                _ if task.acks > 0 => &mut figures.unclear,
                _ => &mut figures.others,
            };
            *count += 1;
        }
        self.figures = figures;
        for sentence in wrong {
            self.fail(sentence);
        }
    }

    /// Whether a task had to be skipped, from how its batches have ended.
    fn is_skipped(&self, task: &Task) -> Known {
        let failed = task.terms.after.iter().map(|batch| self.batches[batch].failed).max();
        match (task.terms.only, failed) {
            (Only::Done, _) | (_, None) | (Only::Failed, Some(Known::Yes)) => Known::No,
            (Only::Acked, Some(failed)) => failed,
            (Only::Failed, Some(Known::Maybe)) => Known::Maybe,
            (Only::Failed, Some(Known::No)) => Known::Yes,
        }
    }
}

impl Bounds {
    fn allows(self, count: u64) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// Counts a task for which it is so, or may be.
    fn count(&mut self, is_so: bool, may_be: bool) {
        self.least += u64::from(is_so);
        self.most += u64::from(may_be);
    }
}

impl Shown {
    /// Reads what the server says. Returns none if it is nothing about a batch.
    pub(super) fn of(reply: &Value) -> Option<Self> {
        let count = |name| u64::try_from(reply.field(name)?.integer()?).ok();
        Some(Self {
            state: text(reply.field("state")?)?,
            total: count("total")?,
            pending: count("pending")?,
            acked: count("acked")?,
            failed: count("failed")?,
            waiting: count("waiting")?,
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == "done"
    }
}

#[cfg(test)]
mod tests {
    use super::super::asks::What;
    use super::super::book::Terms;
    use super::super::{Kind, Queue};
    use super::{Known, Only, Pages, Shown, Value};

    const WORK: Queue = Queue { family: "left", kind: Kind::Work };

    /// A closed batch with one child that was put and acknowledged, one that may be, and a task
    /// that waits for it.
    fn story(only: Only) -> (Pages, u64, u64) {
        let mut pages = Pages::default();
        let batch = pages.begin_batch("left", false);
        let child = pages.begin_task(Terms::of_child(WORK, batch));
        pages.begin_task(Terms::of_child(WORK, batch));
        let after = vec![batch];
        let terms = Terms { batch: None, after, only, ..Terms::of_child(WORK, batch) };
        let follower = pages.begin_task(terms);
        for what in [What::Put(child), What::Put(follower), What::Close(batch), What::Ack(child)] {
            pages.note_ask(&what);
            let reply = match what {
                What::Put(_) => Value::Bulk(b"1".to_vec()),
                What::Close(_) => Value::Integer(1),
                _ => Value::Simple("OK".to_owned()),
            };
            pages.note_answer(&what, &[reply]);
        }
        (pages, batch, follower)
    }

    fn shown(acked: u64, failed: u64) -> Shown {
        let (total, state) = (acked + failed, "done".to_owned());
        Shown { state, total, pending: 0, acked, failed, waiting: 0 }
    }

    #[test]
    fn counts_are_those_of_the_answers() {
        for (acked, failed, failures) in [(1, 0, 0), (0, 0, 1), (2, 0, 1), (0, 1, 1), (1, 1, 1)] {
            let (mut pages, batch, _) = story(Only::Done);
            pages.finish(batch, Some(&shown(acked, failed)));
            assert_eq!(pages.failures().len(), failures, "{acked} {failed}");
        }
        let (mut pages, batch, _) = story(Only::Done);
        pages.finish(batch, Some(&Shown { waiting: 1, ..shown(1, 0) }));
        pages.finish(batch, None);
        assert_eq!(pages.failures().len(), 2);
    }

    #[test]
    fn what_waits_must_come_or_be_skipped() {
        for (only, failures) in [(Only::Done, 1), (Only::Acked, 1), (Only::Failed, 0)] {
            let (mut pages, batch, _) = story(only);
            pages.finish(batch, Some(&shown(1, 0)));
            pages.finish_tasks();
            assert_eq!(pages.failures().len(), failures, "{only:?}");
        }
        let (mut pages, batch, follower) = story(Only::Acked);
        pages.finish(batch, Some(&shown(1, 0)));
        pages.note_ask(&What::Ack(follower));
        pages.finish_tasks();
        assert!(pages.failures().is_empty());
        assert_eq!(pages.figures.unclear, 1);
    }

    #[test]
    fn a_transaction_is_there_as_a_whole() {
        let (mut pages, batch, _) = story(Only::Done);
        pages.batch_mut(batch).least = 2;
        pages.finish(batch, Some(&shown(1, 0)));
        assert_eq!(pages.failures().len(), 1);
        assert_eq!(pages.batches[&batch].failed, Known::No);
    }
}
