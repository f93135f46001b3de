//! A topic of fan-out: every live member gets its own copy of what is published.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use pinpriq_proto::wire::resp::Words;

use crate::client::Client;
use crate::error::Error;
use crate::name::Name;
use crate::queue::Queue;
use crate::request::{Repeat, Request, Terms, WordsExt as _, unix_ms};
use crate::spans::Sending;

/// A topic: a name and a [`Client`].
#[derive(Clone, Debug)]
pub struct Topic {
    client: Client,
    name: Name,
}

impl Client {
    /// Returns a topic of fan-out. That asks the server nothing.
    #[must_use]
    pub fn topic(&self, name: impl Into<Name>) -> Topic {
        Topic { client: self.clone(), name: name.into() }
    }
}

impl Topic {
    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Gives a member a lane, and returns the lane. The member ends, with its lanes and what is in
    /// them, if it gives no sign of life for the time of its `lease`, by default a minute. Taking
    /// from its lanes is a sign of life, and so is [`Client::beat`].
    pub async fn join(
        &self,
        member: impl Into<Name>,
        lease: Option<Duration>,
    ) -> Result<Queue, Error> {
        let member: Name = member.into();
        let words = Words::new("JOIN").bytes(&self.name).bytes(&member).span("LEASE", lease);
        self.client.run(&Request::new(words, Repeat::Safe)).await?;
        Ok(self.lane(member))
    }

    /// Returns the lane of a member. That asks the server nothing.
    #[must_use]
    pub fn lane(&self, member: impl Into<Name>) -> Queue {
        self.client.queue(&self.name).member(member)
    }

    /// Ends the lane of a member, with what is in it.
    pub async fn leave(&self, member: impl Into<Name>) -> Result<(), Error> {
        let member: Name = member.into();
        let words = Words::new("LEAVE").bytes(&self.name).bytes(member);
        self.client.run(&Request::new(words, Repeat::Never)).await.map(drop)
    }

    /// Publishes to all members. Await what this returns, after its options if there are any. It is
    /// sent once only.
    pub fn publish(&self, payload: impl Into<Vec<u8>>) -> Publish {
        let topic = self.clone();
        let payload = payload.into();
        Publish {
            topic,
            payload,
            terms: Terms::default(),
            priority: None,
            deadline: None,
            ttl: None,
        }
    }
}

/// A publication that is about to be made: await it for the number of members that get a copy.
#[derive(Clone, Debug)]
#[must_use = "a publication does nothing unless it is awaited"]
pub struct Publish {
    topic: Topic,
    payload: Vec<u8>,
    terms: Terms,
    priority: Option<i64>,
    deadline: Option<SystemTime>,
    ttl: Option<Duration>,
}

impl Publish {
    /// Puts the copies into the groups with this key.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.terms.key = Some(key.into());
        self
    }

    /// Runs the copies on behalf of this share, for fair turns and limits. Without one, their key
    /// is their share.
    pub fn share(mut self, share: impl Into<Vec<u8>>) -> Self {
        self.terms.share = Some(share.into());
        self
    }

    /// Makes rates and turns count each copy as this much, at least 1, which is the default.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.terms.cost = Some(cost);
        self
    }

    /// Gives the copies a header, as [`Put::header`](crate::Put::header) does a task.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.terms.headers.insert(name.into(), value.into());
        self
    }

    /// Makes the copies this urgent. A lower number is more urgent; the default is 0.
    pub const fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Lets the copies expire at this moment, by the clock of the server.
    pub const fn deadline(mut self, moment: SystemTime) -> Self {
        self.deadline = Some(moment);
        self
    }

    /// Lets the copies expire after this long. Give this or a deadline, not both.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    async fn run(mut self) -> Result<u64, Error> {
        let span = Sending::begin("publish", &self.topic.name, &mut self.terms.headers);
        let count = self.send().await;
        span.end(count.as_ref().map(|_| None));
        count
    }

    async fn send(self) -> Result<u64, Error> {
        let words = Words::new("PUBLISH").bytes(&self.topic.name).bytes(&self.payload);
        let words = words.terms(&self.terms).option("PRIORITY", self.priority);
        let words = words.option("DEADLINE", self.deadline.map(unix_ms)).span("TTL", self.ttl);
        let request = Request::new(words, Repeat::Never);
        request.count(&self.topic.client.run(&request).await?)
    }
}

impl IntoFuture for Publish {
    type Output = Result<u64, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
