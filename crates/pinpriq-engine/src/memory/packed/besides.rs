//! The fields of a task that only some tasks need, in an allocation of their own.

use pinpriq_proto::batches::After;
use pinpriq_proto::limits::{UNIQUE_OVERHEAD_BYTES, given_id_bytes};
use pinpriq_proto::schedule::Scheduled;
use pinpriq_proto::task::history::{self, History};
use pinpriq_proto::task::{
    Aged, Bytes, COST_USUAL, Cancelled, Counts, Holds, Origin, Past, Retries, State, TaskId, Terms,
    Trace,
};
use pinpriq_proto::time::{Span, Timestamp};

/// The fields that only some tasks need. Without them, the values of [`Besides::of`] apply.
#[derive(Clone, Debug)]
pub(super) struct Besides {
    pub(super) seq: u64,
    /// The id, if it is not the number.
    pub(super) own_id: Option<TaskId>,
    pub(super) key: Option<Bytes>,
    /// Its own time to release, if that is not kept with the moment of the put.
    pub(super) ttr: Option<Span>,
    /// The priority, if it does not fit into the field of the task.
    pub(super) large_priority: i64,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) attempts: u32,
    pub(super) failures: u32,
    pub(super) state: State,
    /// The fields that hardly any task needs.
    pub(super) rare: Option<Box<Rare>>,
    /// The moment under which the task is in the index of deadlines.
    pub(super) armed: Option<Timestamp>,
    /// When the state began, if that was not the put, and since the server has started.
    pub(super) since: Option<Timestamp>,
    /// The delay that it was last given.
    pub(super) delay: Span,
}

/// The fields that hardly any task needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) reason: Option<Bytes>,
    pub(super) origin: Option<Box<Origin>>,
    pub(super) scheduled: Option<Box<Scheduled>>,
    pub(super) unique: Option<Bytes>,
    pub(super) counts: Counts,
    /// On whose behalf it runs, if its put said that.
    pub(super) share: Option<Bytes>,
    /// What it costs above [`COST_USUAL`].
    pub(super) cost_more: u32,
    /// Its headers, if it has any.
    pub(super) headers: Option<Bytes>,
    /// What is done when it fails, if that is not as its queue says.
    pub(super) retries: Option<Box<Retries>>,
    /// Whether it holds back the other tasks of its key.
    pub(super) is_held: bool,
    /// How it ages, if that does not follow from its put and its queue.
    pub(super) aged: Option<Box<Aged>>,
    /// What has happened while it was taken, if anything has.
    pub(super) under_way: Option<Box<UnderWay>>,
    /// The batches that it waits for.
    pub(super) after: Option<Box<After>>,
}

/// What has happened to a task while it was taken, and what has come of that.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    /// How it was cancelled, while it is taken.
    pub(super) cancelled: Option<Cancelled>,
    /// How far the work has come, for people, while it is taken.
    pub(super) text: Option<Bytes>,
    /// How far the work has come, for who takes it next.
    pub(super) checkpoint: Option<Bytes>,
    /// What has come of the work, for a finished task.
    pub(super) result: Option<Bytes>,
    /// Its last attempts, if any were noted.
    pub(super) history: Option<History>,
}

#[inline]
pub(super) fn past(rare: &Rare) -> Option<Box<Past>> {
    if rare.was_put_alone() { None } else { copied(rare) }
}

#[cold]
fn copied(rare: &Rare) -> Option<Box<Past>> {
    let (origin, scheduled) = (rare.origin.as_deref(), rare.scheduled.as_deref());
    Past::of(origin.cloned(), scheduled.cloned(), rare.unique.clone())
}

impl Besides {
    /// The values for a task without this allocation.
    pub(super) fn of(number: u64) -> Self {
        Self {
            seq: number,
            own_id: None,
            key: None,
            ttr: None,
            large_priority: 0,
            expires_at: None,
            attempts: 0,
            failures: 0,
            state: State::Ready,
            rare: None,
            armed: None,
            since: None,
            delay: Span::ZERO,
        }
    }

    /// The number of bytes in separate allocations.
    #[inline]
    pub(super) fn own_bytes(&self, shares: bool) -> u64 {
        let key = self.key.as_ref().filter(|_| !shares).map_or(0, |key| key.len());
        let id =
            if let Some(TaskId::Given(id)) = &self.own_id { given_id_bytes(id.len()) } else { 0 };
        (key + id + self.rare.as_ref().map_or(0, |rare| rare.bytes(shares))) as u64
    }

    pub(super) fn reason(&self) -> Option<&Bytes> {
        self.rare.as_ref().and_then(|rare| rare.reason.as_ref())
    }

    pub(super) fn set_reason(&mut self, reason: Option<Bytes>) {
        if reason.is_some() || self.rare.is_some() {
            self.rare.get_or_insert_default().reason = reason;
            self.tidy();
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.rare.as_ref().map_or(Counts::NONE, |rare| rare.counts)
    }

    #[inline]
    pub(super) fn trace(&self, delay: Span) -> Option<Box<Trace>> {
        let is_nothing = self.rare.as_ref().is_none_or(|rare| rare.has_no_trace());
        if delay.is_zero() && is_nothing { None } else { self.some_trace(delay) }
    }

    #[inline(never)]
    fn some_trace(&self, delay: Span) -> Option<Box<Trace>> {
        let rare = self.rare.as_ref();
        let is_held = rare.is_some_and(|rare| rare.is_held);
        let aged = rare.and_then(|rare| rare.aged.as_deref()).map_or(Aged::NONE, |aged| *aged);
        let after = rare.and_then(|rare| rare.after.as_deref()).cloned();
        let trace = Trace { delay, counts: self.counts(), is_held, aged, after, ..Trace::NONE };
        let Some(under_way) = rare.and_then(|rare| rare.under_way.as_deref()) else {
            return trace.kept();
        };
        let UnderWay { cancelled, text, checkpoint, result, history } = under_way.clone();
        Trace { cancelled, progress_text: text, checkpoint, result, history, ..trace }.kept()
    }

    pub(super) fn set_counts(&mut self, counts: Counts) {
        if !counts.are_none() || self.rare.is_some() {
            self.rare.get_or_insert_default().counts = counts;
            self.tidy();
        }
    }

    pub(super) fn set_held(&mut self, is_held: bool) {
        if is_held || self.rare.is_some() {
            self.rare.get_or_insert_default().is_held = is_held;
            self.tidy();
        }
    }

    pub(super) fn set_aged(&mut self, aged: Aged) {
        if !aged.is_none() || self.rare.is_some() {
            self.rare.get_or_insert_default().aged = (!aged.is_none()).then(|| Box::new(aged));
            self.tidy();
        }
    }

    #[inline(never)]
    pub(super) fn set_trace(&mut self, trace: Trace) {
        let Trace { delay, counts, is_held, aged, .. } = trace;
        let Trace { cancelled, progress_text: text, checkpoint, result, history, .. } = trace;
        self.set_after(trace.after);
        self.delay = delay;
        self.set_counts(counts);
        self.set_held(is_held);
        self.set_aged(aged);
        let under_way = UnderWay { cancelled, text, checkpoint, result, history };
        if !under_way.is_nothing() || self.rare.is_some() {
            self.change_under_way(|it| *it = under_way);
        }
    }

    pub(super) fn set_after(&mut self, after: Option<After>) {
        if after.is_some() || self.rare.is_some() {
            self.rare.get_or_insert_default().after = after.map(Box::new);
            self.tidy();
        }
    }

    /// Changes what has happened while it was taken.
    #[inline(never)]
    pub(super) fn change_under_way(&mut self, change: impl FnOnce(&mut UnderWay)) {
        let under_way = &mut self.rare.get_or_insert_default().under_way;
        change(under_way.get_or_insert_default());
        under_way.take_if(|it| it.is_nothing());
        self.tidy();
    }

    /// The terms, with this time to release if it is not kept here.
    #[inline]
    pub(super) fn terms(&self, ttr: Option<Span>) -> Terms {
        let terms = Terms::of(self.key.clone(), ttr.or(self.ttr));
        let Some(rare) = &self.rare else { return terms };
        let terms = terms.with_first(rare.share.clone(), rare.cost(), rare.headers.clone());
        match &rare.retries {
            Some(retries) => terms.with_retries(**retries),
            None => terms,
        }
    }

    pub(super) fn share(&self) -> Option<&Bytes> {
        self.rare.as_ref()?.share.as_ref()
    }

    pub(super) fn cost(&self) -> u32 {
        self.rare.as_ref().map_or(COST_USUAL, |rare| rare.cost())
    }

    pub(super) fn headers(&self) -> Option<&Bytes> {
        self.rare.as_ref().and_then(|rare| rare.headers.as_ref())
    }

    pub(super) fn headers_bytes(&self) -> usize {
        let headers = self.rare.as_ref().and_then(|rare| rare.headers.as_ref());
        headers.map_or(0, |headers| headers.len())
    }

    /// The bytes of what few terms have.
    pub(super) fn extras_bytes(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.extras_bytes())
    }

    /// Replaces what few terms have.
    #[inline(never)]
    pub(super) fn set_extras<B, S>(&mut self, terms: &Terms<B, S>)
    where
        B: AsRef<[u8]> + Clone + Into<Bytes>,
        S: Holds<B>,
    {
        if terms.are_plain() && self.rare.is_none() {
            return;
        }
        let rare = self.rare.get_or_insert_default();
        rare.share = terms.share().cloned().map(Into::into);
        rare.headers = terms.headers().cloned().map(Into::into);
        rare.cost_more = terms.cost().saturating_sub(COST_USUAL);
        rare.retries = terms.own_retries().map(Box::new);
        if rare.has_no_extras() {
            self.tidy();
        }
    }

    /// Whether nothing of what hardly any task needs has come about since the put.
    pub(super) fn has_no_past(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.has_no_past())
    }

    /// Frees the fields that hardly any task needs, if this one does not need them.
    pub(super) fn tidy(&mut self) {
        self.rare.take_if(|rare| rare.has_no_past() && rare.has_no_extras());
    }
}

impl Rare {
    fn has_no_past(&self) -> bool {
        self.was_put_alone() && self.reason.is_none() && self.has_no_trace()
    }

    /// Whether it comes from a put that says no more than what to do.
    const fn was_put_alone(&self) -> bool {
        self.origin.is_none() && self.scheduled.is_none() && self.unique.is_none()
    }

    fn has_no_trace(&self) -> bool {
        let Self { counts, is_held, aged, under_way, after, .. } = self;
        let is_free = !is_held && after.is_none();
        is_free && counts.are_none() && aged.is_none() && under_way.is_none()
    }

    const fn cost(&self) -> u32 {
        COST_USUAL.saturating_add(self.cost_more)
    }

    const fn has_no_extras(&self) -> bool {
        let is_plain = self.share.is_none() && self.cost_more == 0 && self.headers.is_none();
        is_plain && self.retries.is_none()
    }

    fn extras_bytes(&self) -> usize {
        let extras = [&self.share, &self.headers].into_iter().flatten();
        let retries = self.retries.as_ref().map_or(0, |retries| retries.bytes());
        extras.map(|bytes| bytes.len()).sum::<usize>() + retries
    }

    /// The number of bytes that clients have supplied, without those that are shared.
    #[inline(never)]
    fn bytes(&self, shares: bool) -> usize {
        let reason = self.reason.as_ref().map_or(0, |reason| reason.len());
        let origin = self.origin.as_ref().map_or(0, |origin| origin.bytes());
        let scheduled = self.scheduled.as_ref().map_or(0, |scheduled| scheduled.schedule.len());
        let unique = self.unique.as_ref().map_or(0, |key| key.len() + UNIQUE_OVERHEAD_BYTES);
        let extras = if shares { 0 } else { self.extras_bytes() };
        let under_way = self.under_way.as_ref().map_or(0, |it| it.bytes());
        let after = self.after.as_ref().map_or(0, |after| after.bytes());
        under_way + reason + origin + scheduled + unique + extras + after
    }
}

impl UnderWay {
    const fn is_nothing(&self) -> bool {
        let Self { cancelled, text, checkpoint, result, history } = self;
        let is_at_nothing = text.is_none() && checkpoint.is_none();
        cancelled.is_none() && is_at_nothing && result.is_none() && history.is_none()
    }

    fn bytes(&self) -> usize {
        let reason = self.cancelled.as_ref().map(|cancelled| &cancelled.reason);
        let texts = [&self.text, &self.checkpoint, &self.result].map(Option::as_ref);
        let all = texts.into_iter().chain([reason]).flatten();
        all.map(|bytes| bytes.len()).sum::<usize>()
            + self.history.as_deref().map_or(0, history::bytes)
    }
}
