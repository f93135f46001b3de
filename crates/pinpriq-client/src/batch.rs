//! A batch: tasks that are followed together, and what is done when none of them is left.

use std::fmt;
use std::time::{Duration, SystemTime};

use pinpriq_proto::wire::resp::{Value, Words};

use crate::client::Client;
use crate::error::Error;
use crate::name::Name;
use crate::queue::Put;
use crate::request::{Repeat, Request, WordsExt as _, cut_reason, own_key};
use crate::task::Map;

/// The most names that one page has.
const PAGE_MAX: u32 = 1_000;

/// A batch: a name and a [`Client`], so that to make or clone one asks the server nothing.
///
/// It is done as soon as it is closed and none of its tasks is left. Then the tasks that wait for
/// it can be taken, such as those of [`then`](Self::then). On a server with several shards, its
/// name has the part in braces of its queues, such as `{films}-4711` for the queues `films` and
/// `{films}-join`; others are refused with `CROSSSHARD`.
#[derive(Clone, Debug)]
pub struct Batch {
    client: Client,
    name: Name,
    ttl: Option<Duration>,
    /// Whether nobody else has its name, so that it is safe to open it again.
    is_own: bool,
}

/// How far a batch is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BatchState {
    /// Nobody has said yet that it has all its tasks.
    Open,
    /// It is done as soon as none of its tasks is pending.
    Closed,
    /// None of its tasks is pending.
    Done,
}

/// A batch, as the server tells about it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BatchShown {
    /// Its name.
    pub name: Name,
    /// How far it is.
    pub state: BatchState,
    /// How many tasks have been in it.
    pub total: u64,
    /// How many of them have not ended.
    pub pending: u64,
    /// How many of those are buried.
    pub buried: u64,
    /// How many were acknowledged.
    pub acked: u64,
    /// How many have ended otherwise.
    pub failed: u64,
    /// How many tasks wait for it.
    pub waiting: u64,
    /// When it was made.
    pub opened_at: SystemTime,
    /// When it was done.
    pub done_at: Option<SystemTime>,
}

impl Client {
    /// Returns the batch with this name. That asks the server nothing.
    #[must_use]
    pub fn batch(&self, name: impl Into<Name>) -> Batch {
        Batch { client: self.clone(), name: name.into(), ttl: None, is_own: false }
    }

    /// Returns a batch with a random name, for a server with one shard. That asks the server
    /// nothing.
    #[must_use]
    pub fn new_batch(&self) -> Batch {
        Batch { is_own: true, ..self.batch(own_key()) }
    }

    /// Returns the names of the batches that begin with this, in the order of their bytes.
    pub async fn batch_names(&self, prefix: impl Into<Name>) -> Result<Vec<Name>, Error> {
        let prefix: Name = prefix.into();
        let mut names = Vec::new();
        let mut cursor = b"0".to_vec();
        loop {
            let words = Words::new("BATCH LIST").given("PREFIX", Some(&prefix));
            let words = words.option("COUNT", Some(PAGE_MAX)).given("CURSOR", Some(&cursor));
            let request = Request::new(words, Repeat::Safe);
            let reply = self.run(&request).await?;
            let unexpected = || request.unexpected(&reply);
            let Some([next, page]) = reply.elements() else { return Err(unexpected()) };
            for name in page.elements().ok_or_else(unexpected)? {
                names.push(name.as_bytes().map(Name::from).ok_or_else(unexpected)?);
            }
            cursor = next.as_bytes().ok_or_else(unexpected)?.to_vec();
            if cursor == b"0" {
                return Ok(names);
            }
        }
    }
}

impl Batch {
    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Gives it this long to be done, from when it is opened. After that it is done as failed.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Puts a task of this batch into a queue. Await what this returns, after its options if there
    /// are any.
    ///
    /// The first task makes the batch, if it is not open yet. A closed one takes more as long as it
    /// is not done, so a task of it may add others. A duplicate is in no batch. Refused with
    /// `WRONGSTATE` if the batch is done.
    pub fn put(&self, queue: impl Into<Name>, payload: impl Into<Vec<u8>>) -> Put {
        self.client.queue(queue).put(payload).batch(&self.name)
    }

    /// Puts a task that waits until this batch is done. Await what this returns, after its options
    /// if there are any, such as [`Put::only_if`].
    ///
    /// It gets no results of the tasks of the batch by itself. Refused with `NOTFOUND` if the batch
    /// is not there.
    pub fn then(&self, queue: impl Into<Name>, payload: impl Into<Vec<u8>>) -> Put {
        self.client.queue(queue).put(payload).after(&self.name)
    }

    /// Opens this batch, has `function` put its tasks, and closes it. If that fails, it cancels the
    /// tasks instead, which needs the right `manage`, and returns the error of the function.
    ///
    /// If the future is dropped before its end, the batch stays open.
    pub async fn fill<T, E, F>(&self, function: impl FnOnce(Self) -> F) -> Result<T, E>
    where
        E: From<Error> + fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        self.open().await?;
        match function(self.clone()).await {
            Ok(value) => {
                self.close().await?;
                Ok(value)
            }
            Err(error) => {
                let reason = error.to_string();
                if let Err(failed) = self.cancel(Some(&reason), None).await {
                    // The error of the function says more than that.
                    tracing::warn!("the batch {} was not cancelled: {failed}", self.name);
                }
                Err(error)
            }
        }
    }

    /// Makes it before its first task. Refused with `EXISTS` if there is one, also if that is done.
    pub async fn open(&self) -> Result<(), Error> {
        let repeat = if self.is_own { Repeat::Safe } else { Repeat::Never };
        let words = self.words("BATCH OPEN").span("TTL", self.ttl);
        match self.client.run(&Request::new(words, repeat)).await {
            // This is the one that was opened when the first reply was lost.
            Err(Error::Refused(refused))
                if self.is_own && refused.repeated && refused.code == "EXISTS" =>
            {
                Ok(())
            }
            result => result.map(drop),
        }
    }

    /// Says that it has all its tasks. Returns how many are pending. Closing again returns 0.
    pub async fn close(&self) -> Result<u64, Error> {
        let request = Request::new(self.words("BATCH CLOSE"), Repeat::Safe);
        request.count(&self.client.run(&request).await?)
    }

    /// Tells how far it is. Refused with `NOTFOUND`.
    pub async fn show(&self) -> Result<BatchShown, Error> {
        let request = Request::new(self.words("BATCH SHOW"), Repeat::Safe);
        let reply = self.client.run(&request).await?;
        BatchShown::read(&reply).ok_or_else(|| request.unexpected(&reply))
    }

    /// Closes it and cancels its pending tasks. Returns how many they are. Holders of its tasks are
    /// asked to stop, for `grace` at most. A reason is cut to 1,024 bytes.
    pub async fn cancel(
        &self,
        reason: Option<&str>,
        grace: Option<Duration>,
    ) -> Result<u64, Error> {
        let words = self.words("BATCH CANCEL").given("REASON", reason.map(cut_reason));
        let request = Request::new(words.span("GRACE", grace), Repeat::Safe);
        request.count(&self.client.run(&request).await?)
    }

    /// Has the server forget it, which it does by itself after a while. Returns whether it was
    /// there. Refused with `WRONGSTATE` if it is not done.
    pub async fn forget(&self) -> Result<bool, Error> {
        let request = Request::new(self.words("BATCH DROP"), Repeat::Never);
        Ok(request.count(&self.client.run(&request).await?)? > 0)
    }

    /// Waits until it is done, for at most this long. Returns whether it is, and how far it is.
    /// Refused with `NOTFOUND`.
    pub async fn wait(&self, wait: Duration) -> Result<(bool, BatchShown), Error> {
        let waiting = self.client.waiting(Some(wait));
        loop {
            let left = waiting.next();
            let words = self.words("BATCH AWAIT").span("WAIT", Some(left));
            let request = Request::new(words, Repeat::Safe);
            let reply = self.client.run_waiting(&request, left).await?;
            let unexpected = || request.unexpected(&reply);
            let Some([outcome, shown]) = reply.elements() else { return Err(unexpected()) };
            let is_done = outcome.as_bytes().ok_or_else(unexpected)? == b"done";
            if is_done || waiting.is_over() {
                return Ok((is_done, BatchShown::read(shown).ok_or_else(unexpected)?));
            }
        }
    }

    /// A command about this batch.
    fn words(&self, command: &str) -> Words {
        Words::new(command).bytes(&self.name)
    }
}

impl BatchState {
    /// Returns the state that this word of the protocol means.
    fn of(word: &str) -> Option<Self> {
        match word {
            "open" => Some(Self::Open),
            "closed" => Some(Self::Closed),
            "done" => Some(Self::Done),
            _ => None,
        }
    }
}

impl BatchShown {
    /// Reads the map that `BATCH SHOW` gives. Returns none if it is something else.
    fn read(map: &Value) -> Option<Self> {
        let map = Map(map);
        Some(Self {
            name: map.name("name")?,
            state: BatchState::of(&map.text("state")?)?,
            total: map.number("total")?,
            pending: map.number("pending")?,
            buried: map.number("buried")?,
            acked: map.number("acked")?,
            failed: map.number("failed")?,
            waiting: map.number("waiting")?,
            opened_at: map.moment("opened_at")?,
            done_at: map.moment("done_at"),
        })
    }
}
