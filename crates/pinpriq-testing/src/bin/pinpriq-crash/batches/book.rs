//! What is known of tasks and batches.
//!
//! What a request may do is written down before it is sent, and what it did after its answer. So
//! the book allows more than what is true, and never less, whichever client is first to write. What
//! follows from answers is in `notes`, and what must not be in `judge`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::{Kind, Plan, Queue};

/// The most sentences that are kept.
const FAILURES_MAX: usize = 20;

/// Whether something has happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Known {
    No,
    /// It was asked for, and the answer did not come yet, or never will.
    Maybe,
    Yes,
}

/// Whether a task that waits for batches is worth doing then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Only {
    Done,
    Acked,
    Failed,
}

/// What the put of a task says.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) queue: Queue,
    /// The batch that it is in.
    pub(super) batch: Option<u64>,
    /// The batches that it waits for.
    pub(super) after: Vec<u64>,
    pub(super) only: Only,
    pub(super) ttl_ms: Option<u64>,
    pub(super) attempts: Option<u64>,
    pub(super) delay_ms: Option<u64>,
}

/// How a task has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) acked: bool,
    /// The moment of the note.
    pub(super) at: u64,
}

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) terms: Terms,
    pub(super) put: Known,
    /// The moment before its put.
    pub(super) since: u64,
    pub(super) has_come: bool,
    /// How many acks were sent and not refused.
    pub(super) acks: u32,
    /// How many requests to kill or cancel it were sent and have not failed.
    pub(super) losses: u32,
    pub(super) end: Option<End>,
    /// Whether it was found among the dead letters.
    pub(super) is_letter: bool,
}

/// What is known of a batch.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    family: &'static str,
    /// The tasks that are in it if they were put.
    pub(super) children: Vec<u64>,
    /// Whether any request that names it was carried out.
    pub(super) there: Known,
    /// Whether a request that would have made it was perhaps not carried out by a cluster. Requests
    /// that were sent together with that one may not find it then.
    pub(super) is_doubtful: bool,
    pub(super) closed: Known,
    pub(super) cancelled: Known,
    /// Whether it has a TTL.
    pub(super) may_be_given_up: bool,
    /// The number of its tasks that were put together. It has all of them or is not there.
    pub(super) least: u64,
    /// The first moment at which it is known to be done.
    pub(super) done_at: Option<u64>,
    /// Whether a task of it has failed, once that is looked at.
    pub(super) failed: Known,
}

/// What has happened until now.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Figures {
    pub(crate) batches: u64,
    pub(super) tasks: u64,
    /// Tasks that waited for batches and were acknowledged, each once.
    pub(super) received: u64,
    /// Those whose ack was not answered.
    pub(super) unclear: u64,
    /// Those that had to be skipped.
    pub(super) skipped: u64,
    /// Those that were cancelled with the batch that they are in, or that a TTL leaves open.
    pub(super) others: u64,
    /// Tasks that another task has added to its batch.
    pub(super) joined: u64,
    /// Connections that a client has dropped.
    pub(super) dropped: u64,
    /// Requests that a cluster has refused, so that nothing has happened.
    pub(super) refused: u64,
    /// Requests of which a cluster does not know whether they were carried out.
    pub(super) unknown: u64,
}

/// The pages of a [`Book`], for one who reads and writes.
#[derive(Default)]
pub(crate) struct Pages {
    pub(super) plan: Plan,
    pub(super) tasks: BTreeMap<u64, Task>,
    pub(super) batches: BTreeMap<u64, Batch>,
    /// The last number that was given.
    last: u64,
    /// The last moment. Moments only have an order.
    now: u64,
    /// The tasks that somebody has to take.
    open: u64,
    /// A bit for each shard that has accepted a task.
    pub(super) shards: u64,
    pub(super) figures: Figures,
    failures: Vec<String>,
}

/// What all clients know together.
#[derive(Default)]
pub(crate) struct Book(Mutex<Pages>);

impl Book {
    /// An empty book about what is played by this plan.
    pub(crate) fn of(plan: Plan) -> Self {
        Self(Mutex::new(Pages::of(plan)))
    }

    /// Lets somebody read and write.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Pages) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes something that must not happen.
    pub(crate) fn fail(&self, sentence: String) {
        self.with(|pages| pages.fail(sentence));
    }

    /// Returns what must not have happened.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.with(|pages| pages.failures().to_vec())
    }

    /// Notes that a client has dropped its connection.
    pub(crate) fn note_dropped(&self) {
        self.with(|pages| pages.figures.dropped += 1);
    }

    /// Returns what has happened until now.
    pub(crate) fn figures(&self) -> Figures {
        self.with(|pages| pages.figures)
    }

    /// The number of shards that have accepted tasks.
    pub(crate) fn shards_reached(&self) -> u32 {
        self.with(|pages| pages.shards.count_ones())
    }
}

impl Pages {
    /// Empty pages about what is played by this plan.
    pub(super) fn of(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Makes a batch that is about to be named.
    pub(super) fn begin_batch(&mut self, family: &'static str, may_be_given_up: bool) -> u64 {
        self.last += 1;
        self.figures.batches += 1;
        let batch = Batch {
            family,
            children: Vec::new(),
            there: Known::Maybe,
            is_doubtful: false,
            closed: Known::No,
            cancelled: Known::No,
            may_be_given_up,
            least: 0,
            done_at: None,
            failed: Known::No,
        };
        self.batches.insert(self.last, batch);
        self.last
    }

    /// Makes a task that is about to be put. Its number is its payload.
    pub(super) fn begin_task(&mut self, terms: Terms) -> u64 {
        self.last += 1;
        self.figures.tasks += 1;
        let number = self.last;
        if let Some(batch) = terms.batch {
            self.batch_mut(batch).children.push(number);
        }
        let task = Task {
            terms,
            put: Known::Maybe,
            since: self.moment(),
            has_come: false,
            acks: 0,
            losses: 0,
            end: None,
            is_letter: false,
        };
        self.tasks.insert(number, task);
        number
    }

    /// Notes that a task is put together with others of its batch.
    pub(super) fn put_together(&mut self, number: u64) {
        if let Some(batch) = self.tasks[&number].terms.batch {
            self.batch_mut(batch).least += 1;
        }
    }

    /// Changes what is known of a task.
    pub(super) fn change(&mut self, number: u64, change: impl FnOnce(&mut Task)) {
        let Some(task) = self.tasks.get_mut(&number) else { unreachable!("no task {number}") };
        let before = u64::from(task.is_open());
        change(task);
        self.open = self.open + u64::from(task.is_open()) - before;
    }

    pub(super) fn batch_mut(&mut self, number: u64) -> &mut Batch {
        let Some(batch) = self.batches.get_mut(&number) else { unreachable!("no batch {number}") };
        batch
    }

    /// The name of a batch.
    pub(super) fn name_of(&self, number: u64) -> String {
        let family = self.batches[&number].family;
        format!("{{{family}}}-b{number}")
    }

    /// The next moment.
    pub(super) fn moment(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// The number of tasks that somebody has to take, without those that may leave by themselves.
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    /// Notes something that must not happen.
    pub(super) fn fail(&mut self, sentence: String) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(sentence);
        }
    }

    /// What must not have happened.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Forgets all batches and tasks. None of them is left.
    pub(super) fn forget(&mut self) {
        self.tasks.clear();
        self.batches.clear();
        self.open = 0;
    }
}

impl Terms {
    /// Those of a task of a batch.
    pub(super) fn of_child(queue: Queue, batch: u64) -> Self {
        let (ttl_ms, attempts, delay_ms) = (None, None, None);
        let (batch, after, only) = (Some(batch), Vec::new(), Only::Done);
        Self { queue, batch, after, only, ttl_ms, attempts, delay_ms }
    }

    /// Whether the task may fail for good without a request: by its TTL, or as a dead letter when a
    /// lease ends.
    pub(super) fn may_fail_alone(&self) -> bool {
        self.ttl_ms.is_some() || self.attempts.is_some() && self.queue.kind == Kind::Work
    }
}

impl Task {
    fn is_open(&self) -> bool {
        let is_left = self.end.is_none() && self.acks == 0 && self.losses == 0;
        let stays = self.terms.only == Only::Done && !self.terms.may_fail_alone();
        self.put == Known::Yes && is_left && stays
    }
}

impl Only {
    /// The word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Acked => "acked",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, tasks, received, unclear, skipped, others, joined, dropped, .. } = self;
        write!(
            f,
            "{batches} batches, {tasks} tasks ({joined} of them put by others of their batch), \
             {received} callbacks received once, {unclear} with an ack of unknown outcome, \
             {skipped} skipped, {others} cancelled or left open by a TTL, \
             {dropped} connections dropped"
        )?;
        let Self { refused, unknown, .. } = self;
        if refused + unknown == 0 {
            return Ok(());
        }
        write!(f, ", {refused} requests refused by a cluster, {unknown} of unknown outcome")
    }
}
