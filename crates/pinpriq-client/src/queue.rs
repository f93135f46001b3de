//! A queue of a server, or the lane of a member in a topic.

mod bulk;
mod put;
mod take;

use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use crate::client::Client;
use crate::error::Error;
use crate::job::Job;
use crate::name::Name;
use crate::request::{Repeat, Request, WordsExt as _, cut_reason};
use crate::spans::note_redrive;
use crate::task::{State, Task, moment};
use crate::told::Told;

pub use bulk::{Bulk, Change, Changed};
pub use put::{OnlyIf, Put, PutDone};
pub use take::{End, Order, Take};
pub(crate) use take::{Source, take};

/// A queue, or with [`member`](Self::member) the lane of that member in the topic of this name.
///
/// It is a name and a [`Client`], so that to make or clone one asks the server nothing. The
/// commands that it has no method for are sent with [`Client::call`].
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    name: Name,
    member: Option<Name>,
}

/// How a task is given back.
#[derive(Clone, Default, Debug)]
pub struct Release {
    /// It waits for this long. The default is not to wait.
    pub delay: Option<Duration>,
    /// It lives for this long from now.
    pub ttl: Option<Duration>,
    /// It gets another priority.
    pub priority: Option<i64>,
    /// It goes behind its equals.
    pub is_last: bool,
}

/// How a task has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The word for it, such as `acked`, `buried` or `expired`.
    pub outcome: String,
    /// What has come of the work, if its holder has said that.
    pub result: Option<Vec<u8>>,
}

impl Client {
    /// Returns a queue. That asks the server nothing; the first put creates the queue.
    #[must_use]
    pub fn queue(&self, name: impl Into<Name>) -> Queue {
        Queue { client: self.clone(), name: name.into(), member: None }
    }
}

impl Queue {
    /// Returns the lane of a member in the topic of this name.
    #[must_use]
    pub fn member(&self, member: impl Into<Name>) -> Self {
        Self { member: Some(member.into()), ..self.clone() }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Puts a task. Await what this returns, after its options if there are any. A lane has no
    /// puts: publish to the topic.
    ///
    /// The put has a unique key of its own, so that it is sent again if its reply was lost, and the
    /// server makes one task of it. See [`Put`].
    pub fn put(&self, payload: impl Into<Vec<u8>>) -> Put {
        Put::new(self.clone(), payload.into())
    }

    /// Takes the most urgent task under a lease of `ttr`. Await what this returns, after its
    /// options if there are any.
    pub fn take(&self, ttr: Duration) -> Take {
        Take::new(self.clone(), ttr)
    }

    /// Takes this task alone under a lease of `ttr`, past everything that holds it back: its delay,
    /// a hold, a pause, limits and rates. Returns none if it is taken, finished or not there.
    /// Needs the rights `take` and `manage`.
    pub async fn take_one(&self, id: impl Into<Name>, ttr: Duration) -> Result<Option<Job>, Error> {
        take::take_one(self, &id.into(), ttr).await
    }

    /// Takes the most urgent task for good, or returns none. If the reply is lost, so is the task.
    pub async fn pop(&self) -> Result<Option<Task>, Error> {
        let words = self.words("POP").bytes("WITHMETA");
        Ok(self.tasks(Request::new(self.in_lane(words), Repeat::Never)).await?.pop())
    }

    /// Shows up to `count` of the tasks that takes would choose, the most urgent first. Nothing
    /// changes.
    pub async fn peek(&self, count: u32) -> Result<Vec<Task>, Error> {
        let words = self.words("PEEK").option("COUNT", Some(count)).bytes("WITHMETA");
        self.tasks(Request::new(self.in_lane(words), Repeat::Safe)).await
    }

    /// Shows one task in any state, or none.
    pub async fn get(&self, id: impl Into<Name>) -> Result<Option<Task>, Error> {
        let id: Name = id.into();
        let request = Request::new(self.in_lane(self.words("GET").bytes(id)), Repeat::Safe);
        match self.client.run(&request).await? {
            Value::Null => Ok(None),
            map => Task::read(&map).map(Some).ok_or_else(|| request.unexpected(&map)),
        }
    }

    /// Waits until a task is finished, for at most this long. Returns how it ended, or none if it
    /// has not. Of one that is gone already the server tells that as long as it remembers it, and
    /// `NOTFOUND` after that.
    ///
    /// It waits in several requests, one after the other. A task that is not kept and ends between
    /// two of them has no result.
    pub async fn wait_for(
        &self,
        id: impl Into<Name>,
        wait: Duration,
    ) -> Result<Option<Ended>, Error> {
        let id: Name = id.into();
        let waiting = self.client.waiting(Some(wait));
        loop {
            let left = waiting.next();
            let words =
                self.words("AWAIT").bytes(&id).span("WAIT", Some(left)).flag("RESULT", true);
            let request = Request::new(self.in_lane(words), Repeat::Safe);
            let reply = self.client.run_waiting(&request, left).await?;
            let ended = reply.elements().and_then(<[Value]>::first).and_then(Value::as_bytes);
            match ended {
                None => return Err(request.unexpected(&reply)),
                Some(b"timeout") if !waiting.is_over() => {}
                Some(b"timeout") => return Ok(None),
                Some(outcome) => {
                    let outcome = String::from_utf8_lossy(outcome).into_owned();
                    let result = reply.elements().and_then(<[Value]>::last);
                    let result = result.and_then(Value::as_bytes).map(<[u8]>::to_vec);
                    return Ok(Some(Ended { outcome, result }));
                }
            }
        }
    }

    /// Moves up to `count` of the ready dead letters in this queue back to the queues that they
    /// come from. Returns how many.
    pub async fn redrive(&self, count: u32) -> Result<u64, Error> {
        let words = self.words("REDRIVE").option("COUNT", Some(count));
        let request = Request::new(words, Repeat::Safe);
        let count = request.count(&self.client.run(&request).await?)?;
        note_redrive(&self.name, count);
        Ok(count)
    }

    /// Does the same with all tasks of this queue, or with those of them that are chosen. Await
    /// what this returns, after what it is about:
    /// `queue.bulk(Change::Redrive).reason("*timeout*")`.
    pub fn bulk(&self, change: Change) -> Bulk {
        Bulk::new(self.clone(), change)
    }

    /// Returns how many tasks are in this state.
    pub async fn count(&self, state: State) -> Result<u64, Error> {
        let request = Request::new(self.in_lane(self.words("STATS")), Repeat::Safe);
        let reply = self.client.run(&request).await?;
        let letter = state.letter().to_string();
        let counts = reply.field("counts").ok_or_else(|| request.unexpected(&reply))?;
        let count = counts.field(&letter).and_then(Value::integer).unwrap_or(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Finishes a taken task.
    pub(crate) async fn ack(
        &self,
        receipt: &Name,
        result: Option<&[u8]>,
        cost: Option<u32>,
    ) -> Result<(), Error> {
        let words = self.ack_words(receipt, result, cost);
        self.client.run(&Request::new(words, Repeat::StaleIsDone)).await.map(drop)
    }

    pub(crate) fn ack_words(
        &self,
        receipt: &Name,
        result: Option<&[u8]>,
        cost: Option<u32>,
    ) -> Words {
        self.words("ACK").bytes(receipt).option("COST", cost).given("RESULT", result)
    }

    pub(crate) async fn release(
        &self,
        receipt: &Name,
        how: &Release,
        cost: Option<u32>,
        checkpoint: Option<&[u8]>,
    ) -> Result<State, Error> {
        let words = self.words("RELEASE").bytes(receipt).span("DELAY", how.delay);
        let words = words.span("TTL", how.ttl).option("PRIORITY", how.priority);
        let words = words.flag("TAIL", how.is_last).option("COST", cost);
        self.state(words.given("CHECKPOINT", checkpoint)).await
    }

    pub(crate) async fn bury(
        &self,
        receipt: &Name,
        reason: &str,
        cost: Option<u32>,
    ) -> Result<(), Error> {
        let words = self.words("BURY").bytes(receipt).bytes("REASON").bytes(cut_reason(reason));
        let words = words.option("COST", cost);
        self.client.run(&Request::new(words, Repeat::Safe)).await.map(drop)
    }

    pub(crate) async fn fail(
        &self,
        receipt: &Name,
        reason: &str,
        delay: Option<Duration>,
        cost: Option<u32>,
        checkpoint: Option<&[u8]>,
    ) -> Result<State, Error> {
        let words = self.words("FAIL").bytes(receipt).bytes("REASON").bytes(cut_reason(reason));
        let words = words.span("DELAY", delay).option("COST", cost);
        self.state(words.given("CHECKPOINT", checkpoint)).await
    }

    pub(crate) async fn touch(
        &self,
        receipt: &Name,
        told: &Told,
    ) -> Result<Option<std::time::SystemTime>, Error> {
        let request = Request::new(self.touch_words(receipt, told), Repeat::Safe);
        Ok(moment(&self.client.run(&request).await?))
    }

    /// The command that renews a lease, and tells how far the work has come.
    pub(crate) fn touch_words(&self, receipt: &Name, told: &Told) -> Words {
        let words = self.words("TOUCH").bytes(receipt);
        let words = words.given("PROGRESS", told.progress.as_deref());
        words.given("CHECKPOINT", told.checkpoint.as_deref())
    }

    /// Has a request carried out whose reply is a state.
    async fn state(&self, words: Words) -> Result<State, Error> {
        let request = Request::new(words, Repeat::Safe);
        let reply = self.client.run(&request).await?;
        reply.as_bytes().and_then(State::of).ok_or_else(|| request.unexpected(&reply))
    }

    /// Returns the settings, as `QUEUE SHOW` tells them.
    pub(crate) async fn settings(&self) -> Result<Value, Error> {
        let words = Words::new("QUEUE SHOW").bytes(&self.name);
        self.client.run(&Request::new(self.in_lane(words), Repeat::Safe)).await
    }

    async fn tasks(&self, request: Request) -> Result<Vec<Task>, Error> {
        let reply = self.client.run(&request).await?;
        take::tasks_of(&request, &reply)
    }

    /// A command about this queue.
    fn words(&self, command: &str) -> Words {
        Words::new(command).bytes(&self.name)
    }

    /// Names the lane, for commands in which no receipt does.
    fn in_lane(&self, words: Words) -> Words {
        words.given("MEMBER", self.member.as_ref())
    }
}
