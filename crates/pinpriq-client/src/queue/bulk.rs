//! Changes all tasks of a queue that a filter chooses.

use std::future::{Future, IntoFuture};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use pinpriq_proto::wire::resp::Words;

use super::Queue;
use crate::error::Error;
use crate::name::Name;
use crate::request::{Repeat, Request, WordsExt as _};
use crate::spans::note_redrive;
use crate::task::State;

/// What is done with each task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Brings it back as if it had never been taken: buried tasks, if no state is chosen.
    Restart,
    /// Ends it, or if it is taken, asks its holder to stop.
    Cancel,
    /// Removes it, also if it is held.
    Kill,
    /// Moves a ready dead letter back to the queue that it comes from.
    Redrive,
    /// Moves it to this queue, in the state that it has.
    Move(Name),
    /// Gives it this priority, or none.
    Priority(Option<i64>),
    /// Lets it wait this long from now, if it is ready or delayed.
    Delay(Duration),
}

/// How many tasks a bulk change was about.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Changed {
    /// How many have changed, or would change.
    pub changed: u64,
    /// How many the server has looked at.
    pub looked: u64,
}

/// A bulk change that is about to be made: await it, after what it is about. Without that, it is
/// about all tasks of the queue. Those that are taken are left alone, but by [`Change::Cancel`] and
/// [`Change::Kill`].
///
/// It goes through the queue in many requests, page by page. A page whose reply was lost is sent
/// again, and then the numbers may be too low. What has changed before a page is refused stays so.
#[derive(Clone, Debug)]
#[must_use = "a bulk change does nothing unless it is awaited"]
pub struct Bulk {
    queue: Queue,
    change: Change,
    is_dry: bool,
    words: Words,
}

impl Bulk {
    pub(super) fn new(queue: Queue, change: Change) -> Self {
        let words = queue.words("BULK");
        let words = match &change {
            Change::Restart => words.bytes("RESTART"),
            Change::Cancel => words.bytes("CANCEL"),
            Change::Kill => words.bytes("KILL"),
            Change::Redrive => words.bytes("REDRIVE"),
            Change::Move(to) => words.given("MOVE", Some(to)),
            Change::Priority(Some(priority)) => words.option("PRIORITY", Some(priority)),
            Change::Priority(None) => words.option("PRIORITY", Some("NONE")),
            Change::Delay(delay) => words.span("DELAY", Some(*delay)),
        };
        Self { queue, change, is_dry: false, words }
    }

    fn with(mut self, add: impl FnOnce(Words) -> Words) -> Self {
        let words = std::mem::replace(&mut self.words, Words::new(""));
        self.words = add(words);
        self
    }

    /// Only tasks in this state.
    pub fn state(self, state: State) -> Self {
        self.with(|words| words.option("STATE", Some(state.letter())))
    }

    /// Only tasks with this key.
    pub fn key(self, key: impl AsRef<[u8]>) -> Self {
        self.with(|words| words.given("KEY", Some(key)))
    }

    /// Only pending tasks of this batch.
    pub fn batch(self, batch: impl AsRef<[u8]>) -> Self {
        self.with(|words| words.given("BATCH", Some(batch)))
    }

    /// Only tasks of this share.
    pub fn share(self, share: impl AsRef<[u8]>) -> Self {
        self.with(|words| words.given("SHARE", Some(share)))
    }

    /// Only tasks with one of these priorities.
    pub fn priorities(self, priorities: RangeInclusive<i64>) -> Self {
        let [low, high] = [priorities.start(), priorities.end()].map(ToString::to_string);
        self.with(|words| words.bytes("PRIORITIES").bytes(low).bytes(high))
    }

    /// Only tasks that were put at least this long ago.
    pub fn older(self, span: Duration) -> Self {
        self.with(|words| words.span("OLDER", Some(span)))
    }

    /// Only tasks that have failed at least this often.
    pub fn failures(self, least: u32) -> Self {
        self.with(|words| words.option("FAILURES", Some(least)))
    }

    /// Only tasks whose reason matches this pattern, in which `*` stands for anything and `\` takes
    /// the next byte as it is.
    pub fn reason(self, pattern: impl AsRef<[u8]>) -> Self {
        self.with(|words| words.given("REASON", Some(pattern)))
    }

    /// Only tasks with a header of this name whose value matches such a pattern.
    pub fn header(self, name: &str, pattern: impl AsRef<[u8]>) -> Self {
        self.with(|words| words.bytes("HEADER").bytes(name).bytes(pattern))
    }

    /// Counts the tasks, and changes nothing.
    pub const fn dry(mut self) -> Self {
        self.is_dry = true;
        self
    }

    async fn all(self) -> Result<Changed, Error> {
        let mut sum = Changed::default();
        let mut cursor = b"0".to_vec();
        loop {
            let words = self.words.clone().flag("DRY", self.is_dry).given("CURSOR", Some(&cursor));
            let request = Request::new(self.queue.in_lane(words), Repeat::Safe);
            let reply = self.queue.client.run(&request).await?;
            let Some([next, looked, changed]) = reply.elements() else {
                return Err(request.unexpected(&reply));
            };
            sum.looked += request.count(looked)?;
            sum.changed += request.count(changed)?;
            cursor = next.as_bytes().ok_or_else(|| request.unexpected(&reply))?.to_vec();
            if cursor == b"0" {
                break;
            }
        }
        if self.change == Change::Redrive && !self.is_dry {
            note_redrive(&self.queue.name, sum.changed);
        }
        Ok(sum)
    }
}

impl IntoFuture for Bulk {
    type Output = Result<Changed, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.all())
    }
}
