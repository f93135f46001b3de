//! What hardly any task has: a hold on its key, an age of its own, a reason, counts, a past, a
//! unique key, and what has happened while it was taken.
//!
//! Where that is kept is in `besides.rs`. What it means is not known here.

use pinpriq_proto::batches::After;
use pinpriq_proto::schedule::Scheduled;
use pinpriq_proto::task::history::History;
use pinpriq_proto::task::{Aged, Bytes, Cancelled, Counts, Origin, Retries};
use pinpriq_proto::time::Span;

use super::Task;
use super::besides::{Rare, UnderWay};

impl Task {
    #[inline]
    fn rare(&self) -> Option<&Rare> {
        self.besides.as_ref()?.rare.as_deref()
    }

    /// Whether it holds back the other tasks of its key, if its queue has that.
    pub(crate) fn is_held(&self) -> bool {
        self.rare().is_some_and(|rare| rare.is_held)
    }

    pub(crate) fn set_held(&mut self, is_held: bool) {
        if is_held != self.is_held() {
            self.besides_mut().set_held(is_held);
        }
    }

    /// How it ages, where that does not follow from its put and its queue.
    pub(crate) fn aged(&self) -> Aged {
        self.rare().and_then(|rare| rare.aged.as_deref()).map_or(Aged::NONE, |aged| *aged)
    }

    pub(crate) fn set_aged(&mut self, aged: Aged) {
        if aged != self.aged() {
            self.besides_mut().set_aged(aged);
        }
    }

    /// Its rank in a queue whose tasks usually age so. A task without priority has none.
    pub(crate) fn aged_rank(&self, usual: Span) -> Option<i128> {
        let Aged { start, ageing } = self.aged();
        let start = start.unwrap_or_else(|| self.put_at());
        let step = i128::from(ageing.unwrap_or(usual).ms());
        Some(i128::from(start.ms()) + i128::from(self.priority()?) * step)
    }

    /// Why the task failed or was buried last.
    pub(crate) fn reason(&self) -> Option<&Bytes> {
        self.besides.as_ref().and_then(|besides| besides.reason())
    }

    pub(crate) fn set_reason(&mut self, reason: Option<Bytes>) {
        if reason.is_some() || self.reason().is_some() {
            self.besides_mut().set_reason(reason);
        }
    }

    /// How it was cancelled, while it is taken.
    #[inline]
    pub(crate) fn cancelled(&self) -> Option<&Cancelled> {
        self.under_way()?.cancelled.as_ref()
    }

    pub(crate) fn set_cancelled(&mut self, cancelled: Option<Cancelled>) {
        if cancelled.is_some() || self.cancelled().is_some() {
            self.besides_mut().change_under_way(|it| it.cancelled = cancelled);
        }
    }

    /// How far the work has come, for people, while it is taken.
    #[inline]
    pub(crate) fn progress_text(&self) -> Option<&Bytes> {
        self.under_way()?.text.as_ref()
    }

    pub(crate) fn set_progress_text(&mut self, text: Option<Bytes>) {
        if text.is_some() || self.progress_text().is_some() {
            self.besides_mut().change_under_way(|it| it.text = text);
        }
    }

    /// How far the work has come, for who takes it next.
    #[inline]
    pub(crate) fn checkpoint(&self) -> Option<&Bytes> {
        self.under_way()?.checkpoint.as_ref()
    }

    pub(crate) fn set_checkpoint(&mut self, checkpoint: Option<Bytes>) {
        if checkpoint.is_some() || self.checkpoint().is_some() {
            self.besides_mut().change_under_way(|it| it.checkpoint = checkpoint);
        }
    }

    /// What has come of the work, if it is finished or ends in this step.
    #[inline]
    pub(crate) fn result(&self) -> Option<&Bytes> {
        self.under_way()?.result.as_ref()
    }

    pub(crate) fn set_result(&mut self, result: Option<Bytes>) {
        if result.is_some() || self.result().is_some() {
            self.besides_mut().change_under_way(|it| it.result = result);
        }
    }

    /// Its last attempts, oldest first, with the one that is under way.
    #[inline]
    pub(crate) fn history(&self) -> Option<&History> {
        self.under_way()?.history.as_ref()
    }

    pub(crate) fn set_history(&mut self, history: Option<History>) {
        if history.is_some() || self.history().is_some() {
            self.besides_mut().change_under_way(|it| it.history = history);
        }
    }

    /// Whether an attempt is under way that is noted.
    #[inline]
    pub(crate) fn has_open_attempt(&self) -> bool {
        self.history().and_then(|attempts| attempts.last()).is_some_and(|last| last.end.is_none())
    }

    #[inline]
    fn under_way(&self) -> Option<&UnderWay> {
        self.rare()?.under_way.as_deref()
    }

    /// Counts what has happened to it.
    pub(crate) fn count(&mut self, which: fn(&mut Counts) -> &mut u32) {
        let besides = self.besides_mut();
        let mut counts = besides.counts();
        let count = which(&mut counts);
        *count = count.saturating_add(1);
        besides.set_counts(counts);
    }

    /// Begins to count again.
    pub(crate) fn set_counts(&mut self, counts: Counts) {
        if self.besides.is_some() || !counts.are_none() {
            self.besides_mut().set_counts(counts);
        }
    }

    /// Notes the delay that it is given.
    pub(crate) fn set_delay(&mut self, delay: Span) {
        if self.besides.is_some() || !delay.is_zero() {
            self.besides_mut().delay = delay;
        }
    }

    /// The batches that it waits for.
    #[inline]
    pub(crate) fn after(&self) -> Option<&After> {
        self.rare()?.after.as_deref()
    }

    pub(crate) fn set_after(&mut self, after: Option<After>) {
        if after.is_some() || self.after().is_some() {
            self.besides_mut().set_after(after);
        }
    }

    /// What is done when it fails.
    pub(crate) fn retries(&self) -> Retries {
        self.rare().and_then(|rare| rare.retries.as_deref()).map_or(Retries::OF_QUEUE, |it| *it)
    }

    /// From now on a failure is as its queue says.
    pub(crate) fn forget_retries(&mut self) {
        if !self.retries().are_of_queue() {
            let besides = self.besides_mut();
            besides.rare.get_or_insert_default().retries = None;
            besides.tidy();
        }
    }

    /// Where the task was before it became a dead letter.
    #[inline]
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.rare()?.origin.as_deref()
    }

    pub(crate) fn set_origin(&mut self, origin: Option<Box<Origin>>) {
        let besides = self.besides_mut();
        besides.rare.get_or_insert_default().origin = origin;
        besides.tidy();
    }

    /// The schedule that has put the task, if one has.
    pub(crate) fn scheduled(&self) -> Option<&Scheduled> {
        self.rare()?.scheduled.as_deref()
    }

    pub(crate) fn set_scheduled(&mut self, scheduled: Option<Box<Scheduled>>) {
        let besides = self.besides_mut();
        besides.rare.get_or_insert_default().scheduled = scheduled;
        besides.tidy();
    }

    /// The key that makes it unique.
    #[inline]
    pub(crate) fn unique_key(&self) -> Option<&Bytes> {
        self.rare()?.unique.as_ref()
    }

    pub(crate) fn set_unique_key(&mut self, key: Option<Bytes>) {
        if key.is_some() || self.unique_key().is_some() {
            let besides = self.besides_mut();
            besides.rare.get_or_insert_default().unique = key;
            besides.tidy();
        }
    }
}
