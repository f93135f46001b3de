//! A put: its options, and the one request that all attempts to make it share. What becomes of a
//! lost reply is decided elsewhere.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use pinpriq_proto::wire::resp::{Value, Words};

use super::Queue;
use crate::error::Error;
use crate::name::Name;
use crate::request::{Repeat, Request, Terms, WordsExt as _, millis, own_key, unix_ms};
use crate::spans::Sending;

/// A put that is about to be made: await it.
///
/// Unless it has a key of the caller's, or none, it has a unique key of its own. The server
/// remembers that for [`Options::window`](crate::Options::window), so that a put whose reply was
/// lost is sent again and makes one task.
#[derive(Clone, Debug)]
#[must_use = "a put does nothing unless it is awaited"]
pub struct Put {
    queue: Queue,
    payload: Vec<u8>,
    terms: Terms,
    priority: Option<i64>,
    delay: Option<Duration>,
    at: Option<SystemTime>,
    is_held: bool,
    ttl: Option<Duration>,
    ttr: Option<Duration>,
    id: Option<Name>,
    room: Option<Duration>,
    unique: Unique,
    batch: Option<Name>,
    after: Vec<Name>,
    only_if: Option<OnlyIf>,
}

/// How batches have to end for which a task waits. Otherwise it is skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnlyIf {
    /// No task of theirs has failed.
    Acked,
    /// A task of theirs has failed.
    Failed,
}

#[derive(Clone, Debug)]
enum Unique {
    /// A key that no other put has.
    Own,
    /// A key of the caller's, and how long it counts.
    Given(Vec<u8>, Option<Duration>),
    /// None, so that the put is never sent again.
    None,
}

/// What became of a put.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PutDone {
    /// The id of the task. For a duplicate, that of the first task.
    pub id: Name,
    /// Whether a task was put. Not for a duplicate of a key of the caller's.
    pub is_new: bool,
}

impl Put {
    pub(super) fn new(queue: Queue, payload: Vec<u8>) -> Self {
        Self {
            queue,
            payload,
            terms: Terms::default(),
            priority: None,
            delay: None,
            at: None,
            is_held: false,
            ttl: None,
            ttr: None,
            id: None,
            room: None,
            unique: Unique::Own,
            batch: None,
            after: Vec::new(),
            only_if: None,
        }
    }

    /// Puts it into the group with this key: its tasks travel together.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.terms.key = Some(key.into());
        self
    }

    /// Runs it on behalf of this share, for fair turns and limits. Without one, its key is its
    /// share.
    pub fn share(mut self, share: impl Into<Vec<u8>>) -> Self {
        self.terms.share = Some(share.into());
        self
    }

    /// Makes rates and turns count it as this much, at least 1, which is the default.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.terms.cost = Some(cost);
        self
    }

    /// Gives it a header: a value of at most 1,024 bytes that travels with its payload. The name
    /// has 1 to 64 of the characters `a-z 0-9 - _ .`. A task has at most 16 headers.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.terms.headers.insert(name.into(), value.into());
        self
    }

    /// Makes it this urgent. A lower number is more urgent; the default is 0.
    pub const fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Gives it up when it has failed this often, whatever its queue says. 0 is never.
    pub fn attempts(self, most: u32) -> Self {
        let most = if most == 0 { "NONE".to_owned() } else { most.to_string() };
        self.retries("ATTEMPTS", most)
    }

    /// Lets it wait this long after its first failure, and twice as long after each further one,
    /// whatever its queue says. Zero is not to wait.
    pub fn backoff(self, first: Duration) -> Self {
        let first = if first.is_zero() { "NONE".to_owned() } else { millis(first).to_string() };
        self.retries("BACKOFF", first)
    }

    /// Lets it wait at most this long after a failure, whatever its queue says.
    pub fn backoff_max(self, longest: Duration) -> Self {
        self.retries("BACKOFFMAX", millis(longest).max(1).to_string())
    }

    fn retries(mut self, option: &'static str, value: String) -> Self {
        self.terms.retries.insert(option, value);
        self
    }

    /// Makes it ready after this long.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Makes it ready at this moment.
    pub const fn at(mut self, moment: SystemTime) -> Self {
        self.at = Some(moment);
        self
    }

    /// Holds it back until it is freed: by [`Queue::take_one`], by the command `RESTART`, or never,
    /// if it is cancelled. The TTL of its queue does not count for it.
    pub const fn held(mut self) -> Self {
        self.is_held = true;
        self
    }

    /// Lets it expire after this long, unless it is finished.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Gives its leases this length where a take gives none.
    pub const fn ttr(mut self, ttr: Duration) -> Self {
        self.ttr = Some(ttr);
        self
    }

    /// Gives it this id, in a queue whose ids are given.
    pub fn id(mut self, id: impl Into<Name>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Waits for room in a full queue for at most this long.
    pub const fn room(mut self, wait: Duration) -> Self {
        self.room = Some(wait);
        self
    }

    /// Makes no task if one that was put with this key, of 1 to 255 bytes, is not finished yet, or
    /// was put less than `window` ago. Without a window, a put that is sent again after its task
    /// was finished makes another one.
    pub fn unique(mut self, key: impl Into<Vec<u8>>, window: Option<Duration>) -> Self {
        self.unique = Unique::Given(key.into(), window);
        self
    }

    /// Puts it into this batch, which is made if there is none. See [`Batch`](crate::Batch).
    pub fn batch(mut self, batch: impl Into<Name>) -> Self {
        self.batch = Some(batch.into());
        self
    }

    /// Lets it wait until this batch is done. It can wait for up to 16: call this for each. A delay
    /// counts from then.
    pub fn after(mut self, batch: impl Into<Name>) -> Self {
        self.after.push(batch.into());
        self
    }

    /// Skips it if the batches that it waits for have not ended like this.
    pub const fn only_if(mut self, condition: OnlyIf) -> Self {
        self.only_if = Some(condition);
        self
    }

    /// Sends it once only: the server keeps no key, and a put whose reply is lost may have made a
    /// task or not.
    pub fn once(mut self) -> Self {
        self.unique = Unique::None;
        self
    }

    fn request(&self) -> Request {
        let words = self.queue.words("PUT").bytes(&self.payload).terms(&self.terms);
        let words = words.option("PRIORITY", self.priority).span("DELAY", self.delay);
        let words = words.option("AT", self.at.map(unix_ms)).span("TTL", self.ttl);
        let words = words.flag("HELD", self.is_held);
        let words = words.span("TTR", self.ttr).given("ID", self.id.as_ref());
        let words = self.with_batches(words);
        let own = self.queue.client.options().own_window();
        match &self.unique {
            Unique::Own => {
                Request::new(unique(words, own_key().as_bytes(), Some(own)), Repeat::Safe)
            }
            Unique::Given(key, window) => Request::new(unique(words, key, *window), Repeat::Safe),
            Unique::None => Request::new(words, Repeat::Never),
        }
    }

    fn with_batches(&self, words: Words) -> Words {
        let words = words.given("BATCH", self.batch.as_ref());
        let words = match self.after.len() {
            0 => words,
            count => words.option("AFTER", Some(count)).all(&self.after),
        };
        words.option("IF", self.only_if.map(OnlyIf::word))
    }

    async fn run(mut self) -> Result<PutDone, Error> {
        let span = Sending::begin("put", &self.queue.name, &mut self.terms.headers);
        let done = self.send().await;
        span.end(done.as_ref().map(|done| Some(&done.id)));
        done
    }

    async fn send(self) -> Result<PutDone, Error> {
        // One request for all attempts, so that they share the unique key.
        let request = self.request();
        let reply = match self.room {
            None => self.queue.client.run(&request).await?,
            Some(wait) => self.wait_for_room(&request, wait).await?,
        };
        let (id, told_new) = match &reply {
            Value::Array(parts) => {
                (parts.first(), parts.get(1).and_then(Value::integer) == Some(1))
            }
            id => (Some(id), true),
        };
        let id = id.and_then(Value::as_bytes).map(Name::from);
        let id = id.ok_or_else(|| request.unexpected(&reply))?;
        // A duplicate of a key that no other put has is this put, whose first reply was lost.
        Ok(PutDone { id, is_new: told_new || matches!(self.unique, Unique::Own) })
    }

    /// Waits for room in several requests, so that a server that has gone is noticed.
    async fn wait_for_room(&self, request: &Request, wait: Duration) -> Result<Value, Error> {
        let waiting = self.queue.client.waiting(Some(wait));
        loop {
            let left = waiting.next();
            let words = request.words.clone().span("ROOM", Some(left));
            let attempt = Request::new(words, request.repeat);
            match self.queue.client.run_waiting(&attempt, left).await {
                Err(error) if error.is("FULL") && !waiting.is_over() => {}
                result => return result,
            }
        }
    }
}

impl OnlyIf {
    const fn word(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Failed => "failed",
        }
    }
}

fn unique(words: Words, key: &[u8], window: Option<Duration>) -> Words {
    words.bytes("UNIQUE").bytes(key).span("WINDOW", window)
}

impl IntoFuture for Put {
    type Output = Result<PutDone, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
