//! A task under a lease, to be worked on.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use pinpriq_proto::wire::resp::Words;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::error::Error;
use crate::name::Name;
use crate::queue::{Queue, Release};
use crate::task::{State, Task};
use crate::told::{Told, Untold};

/// A task that was taken. Its fields are those of [`Task`].
///
/// Acknowledge it, or give it back. A job that is merely dropped stays taken until its lease ends,
/// and that is a failure. Every method is refused with `STALE` once the lease has ended.
#[derive(Clone)]
pub struct Job {
    task: Arc<Task>,
    receipt: Name,
    queue: Queue,
    course: Arc<Course>,
}

/// The largest result that is sent at all, in bytes.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// What has happened to a job since it was taken.
#[derive(Default)]
struct Course {
    is_settled: AtomicBool,
    /// What it did cost. 0 if that was not said.
    cost: AtomicU32,
    cancellation: CancellationToken,
    /// Why it was cancelled, once it was.
    reason: OnceLock<String>,
    /// How far the work has come, where the server does not know it yet.
    untold: Untold,
    /// What its function has returned.
    returned: OnceLock<Vec<u8>>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.task).finish()
    }
}

impl Deref for Job {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

impl Job {
    /// Returns the job that a task is, if it was taken.
    pub(crate) fn new(client: &Client, task: Task) -> Option<Self> {
        let mut queue = client.queue(&task.queue);
        if let Some(member) = &task.member {
            queue = queue.member(member);
        }
        let receipt = task.receipt.clone()?;
        Some(Self { task: Arc::new(task), receipt, queue, course: Arc::default() })
    }

    /// Returns the queue or the lane that it was taken from.
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the text that proves the lease.
    #[must_use]
    pub const fn receipt(&self) -> &Name {
        &self.receipt
    }

    /// Says what the task did cost, where that is not what its put said. The rates of its queue,
    /// key and share count the difference, once the task is finished, given back, buried or failed.
    /// A worker tells it too. 0 takes it back.
    pub fn set_cost(&self, cost: u32) {
        self.course.cost.store(cost, Ordering::Relaxed);
    }

    fn cost(&self) -> Option<u32> {
        Some(self.course.cost.load(Ordering::Relaxed)).filter(|cost| *cost > 0)
    }

    /// Finishes the task.
    pub async fn ack(&self) -> Result<(), Error> {
        self.settled(self.queue.ack(&self.receipt, None, self.cost()).await)
    }

    /// Finishes the task with a result. Clients that wait for the task receive it, and a kept task
    /// has it as [`result`](Task::result).
    ///
    /// It may be as large as a payload: `TOOLARGE`. `BUSY` if there is no room to keep it. The task
    /// is not finished then.
    pub async fn ack_with(&self, result: impl AsRef<[u8]>) -> Result<(), Error> {
        self.settled(self.queue.ack(&self.receipt, Some(result.as_ref()), self.cost()).await)
    }

    /// Notes what its function has returned, once. The server ends a connection over which more
    /// comes than that.
    pub(crate) fn note_returned(&self, result: Vec<u8>) {
        if result.len() > RESULT_BYTES_MAX {
            let (id, bytes) = (&self.id, result.len());
            tracing::warn!("{id} is acknowledged without its result, which has {bytes} bytes");
            return;
        }
        let _ = self.course.returned.set(result);
    }

    /// The words that finish the task, with what its function has returned.
    pub(crate) fn ack_words(&self) -> Words {
        self.queue.ack_words(&self.receipt, self.returned(), self.cost())
    }

    /// Finishes the task with what its function has returned, or without if the server does not
    /// take that: the work is done.
    pub(crate) async fn ack_returned(&self) -> Result<(), Error> {
        let Some(result) = self.returned() else { return self.ack().await };
        match self.ack_with(result).await {
            // A server that does not know results says BADARG.
            Err(error) if ["TOOLARGE", "BUSY", "BADARG"].iter().any(|code| error.is(code)) => {
                tracing::warn!("{} is acknowledged without its result: {error}", self.id);
                self.ack().await
            }
            done => done,
        }
    }

    fn returned(&self) -> Option<&[u8]> {
        self.course.returned.get().map(Vec::as_slice)
    }

    /// Gives the task back, which is no failure. Returns its state: [`State::Gone`] if its TTL has
    /// passed.
    pub async fn release(&self, how: Release) -> Result<State, Error> {
        let release = |checkpoint| self.queue.release(&self.receipt, &how, self.cost(), checkpoint);
        let checkpoint = self.course.untold.checkpoint();
        let mut done = release(checkpoint.as_deref()).await;
        if checkpoint.is_some() && lacks_room(&done) {
            done = release(None).await;
        }
        self.settled(done)
    }

    /// Sets the task aside until somebody digs it up. A reason is cut to 1,024 bytes.
    pub async fn bury(&self, reason: &str) -> Result<(), Error> {
        if self.course.untold.checkpoint().is_some() {
            // BURY takes no checkpoint. It is sent even if this fails.
            let _ = self.touch().await;
        }
        self.settled(self.queue.bury(&self.receipt, reason, self.cost()).await)
    }

    /// Says that the task could not be done. The settings of the queue decide what follows, except
    /// that a `delay` counts instead of its back-off. A reason is cut to 1,024 bytes.
    pub async fn fail(&self, reason: &str, delay: Option<Duration>) -> Result<State, Error> {
        let fail =
            |checkpoint| self.queue.fail(&self.receipt, reason, delay, self.cost(), checkpoint);
        let checkpoint = self.course.untold.checkpoint();
        let mut done = fail(checkpoint.as_deref()).await;
        if checkpoint.is_some() && lacks_room(&done) {
            done = fail(None).await;
        }
        self.settled(done)
    }

    /// Tells people how far the work has come. It is shown with the lease and gone with it. A text
    /// is cut to 256 bytes, and an empty one removes the former.
    ///
    /// This only notes it. A worker sends it within a second, and [`touch`](Self::touch) at once.
    pub fn set_progress(&self, text: &str) {
        self.course.untold.note_progress(text);
    }

    /// Notes how far the work has come, for the next attempt, which finds it in
    /// [`checkpoint`](Task::checkpoint). It is kept when the job fails, is given back or loses its
    /// lease, and gone when it is acknowledged. An empty one removes the former. Returns whether it
    /// was noted: one of more than 65,536 bytes is not.
    ///
    /// A worker sends it within a second, [`touch`](Self::touch) at once, and
    /// [`fail`](Self::fail) and [`release`](Self::release) take it along. If the server has no room
    /// for it, the lease is renewed without it, and it is tried again.
    #[must_use = "a checkpoint that is too large is not kept"]
    pub fn set_checkpoint(&self, checkpoint: impl AsRef<[u8]>) -> bool {
        self.course.untold.note_checkpoint(checkpoint.as_ref())
    }

    /// Renews the lease: it lasts for its TTR again, from now. Returns the deadline.
    pub async fn touch(&self) -> Result<Option<SystemTime>, Error> {
        let told = self.course.untold.take();
        let touched = self.queue.touch(&self.receipt, &told).await;
        let lacks_room = told.checkpoint.is_some() && lacks_room(&touched);
        if touched.is_err() {
            self.course.untold.put_back(told);
        }
        if lacks_room { self.queue.touch(&self.receipt, &Told::default()).await } else { touched }
    }

    /// What the function has told and the server does not know.
    pub(crate) fn untold(&self) -> &Untold {
        &self.course.untold
    }

    /// Returns the token that is cancelled when the task is: its function should stop soon, and
    /// return an error unless the work is done. Only a worker learns of it.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.course.cancellation
    }

    /// Returns why the task was cancelled, perhaps empty, if it was.
    #[must_use]
    pub fn cancelled(&self) -> Option<&str> {
        self.course.reason.get().map(String::as_str)
    }

    /// Notes that the task was cancelled. Returns whether that is news.
    pub(crate) fn note_cancelled(&self, reason: &str) -> bool {
        let is_news = self.course.reason.set(reason.to_owned()).is_ok();
        self.course.cancellation.cancel();
        is_news
    }

    /// Whether it was acknowledged, given back, buried or failed here.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.course.is_settled.load(Ordering::Relaxed)
    }

    fn settled<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        self.course.is_settled.fetch_or(done.is_ok(), Ordering::Relaxed);
        done
    }
}

/// Whether the server had no room for what came along.
fn lacks_room<T>(done: &Result<T, Error>) -> bool {
    matches!(done, Err(Error::Refused(refused)) if refused.code == "BUSY")
}
