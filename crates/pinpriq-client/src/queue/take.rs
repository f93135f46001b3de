//! Takes tasks under leases.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Value, Words};

use super::Queue;
use crate::client::Client;
use crate::error::Error;
use crate::job::Job;
use crate::name::Name;
use crate::request::{Repeat, Request, WordsExt as _};
use crate::task::Task;

/// One end of the priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The lowest number, which is the most urgent.
    Min,
    /// The highest number.
    Max,
}

/// Which of equally urgent tasks is first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The one that was put first.
    Oldest,
    /// The one that was put last.
    Newest,
}

/// Where tasks are taken from: queues, or topics of one member, in the order in which they are
/// tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) names: Vec<Name>,
    pub(crate) member: Option<Name>,
}

/// A take that is about to be made: await it for one job or none, or [`up_to`](Self::up_to) for
/// several.
///
/// If it is dropped before its end, the server takes back what it was about to hand out, unless the
/// reply was under way: then the lease ends after its TTR.
#[derive(Clone, Debug)]
#[must_use = "a take does nothing unless it is awaited"]
pub struct Take {
    queue: Queue,
    ttr: Duration,
    wait: Option<Duration>,
    end: Option<End>,
    order: Option<Order>,
    is_group: bool,
}

impl Take {
    pub(super) const fn new(queue: Queue, ttr: Duration) -> Self {
        Self { queue, ttr, wait: Some(Duration::ZERO), end: None, order: None, is_group: false }
    }

    /// Waits for a task for at most this long. The default is not to wait.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Waits for a task without a limit.
    pub const fn wait_forever(mut self) -> Self {
        self.wait = None;
        self
    }

    /// Takes from this end of the priorities. The default is [`End::Min`].
    pub const fn from(mut self, end: End) -> Self {
        self.end = Some(end);
        self
    }

    /// Takes this one of equally urgent tasks. The default is [`Order::Oldest`].
    pub const fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// Takes the most urgent task with all that have its key.
    pub async fn group(mut self) -> Result<Vec<Job>, Error> {
        self.is_group = true;
        self.up_to(1).await
    }

    /// Takes up to `count` tasks. It waits for the first one only.
    pub async fn up_to(self, count: u32) -> Result<Vec<Job>, Error> {
        let waiting = self.queue.client.waiting(self.wait);
        let source =
            Source { names: vec![self.queue.name.clone()], member: self.queue.member.clone() };
        loop {
            let left = waiting.next();
            let words = self.options(words(&source, count, left, self.ttr));
            let jobs = jobs(&self.queue.client, words, left).await?;
            if !jobs.is_empty() || waiting.is_over() {
                return Ok(jobs);
            }
        }
    }

    fn options(&self, words: Words) -> Words {
        let end = self.end.map(|end| if end == End::Min { "MIN" } else { "MAX" });
        let order = self.order.map(|it| if it == Order::Oldest { "OLDEST" } else { "NEWEST" });
        words.option("FROM", end).option("ORDER", order).flag("GROUP", self.is_group)
    }

    async fn one(self) -> Result<Option<Job>, Error> {
        Ok(self.up_to(1).await?.pop())
    }
}

impl IntoFuture for Take {
    type Output = Result<Option<Job>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.one())
    }
}

/// Takes up to `count` tasks of a source, and waits for the first one for at most this long.
pub(crate) async fn take(
    client: &Client,
    source: &Source,
    count: u32,
    wait: Duration,
    ttr: Duration,
) -> Result<Vec<Job>, Error> {
    jobs(client, words(source, count, wait, ttr), wait).await
}

/// Takes one task by its id.
pub(super) async fn take_one(
    queue: &Queue,
    id: &Name,
    ttr: Duration,
) -> Result<Option<Job>, Error> {
    let words = queue.words("TAKE").given("ID", Some(id)).span("TTR", Some(ttr));
    let words = queue.in_lane(words.bytes("WITHMETA"));
    Ok(jobs(&queue.client, words, Duration::ZERO).await?.pop())
}

fn words(source: &Source, count: u32, wait: Duration, ttr: Duration) -> Words {
    let words = Words::new("TAKE").queue_names(&source.names).option("COUNT", Some(count));
    let words = words.span("WAIT", Some(wait).filter(|wait| !wait.is_zero()));
    let words = words.span("TTR", Some(ttr)).bytes("WITHMETA");
    words.given("MEMBER", source.member.as_ref())
}

/// A take that is sent again leaves the lease of the lost reply to its end.
async fn jobs(client: &Client, words: Words, wait: Duration) -> Result<Vec<Job>, Error> {
    let request = Request::new(words, Repeat::Safe);
    let reply = if wait.is_zero() {
        client.run(&request).await?
    } else {
        client.run_waiting(&request, wait).await?
    };
    let tasks = tasks_of(&request, &reply)?;
    let job = |task| Job::new(client, task).ok_or_else(|| request.unexpected(&reply));
    tasks.into_iter().map(job).collect()
}

/// Returns the tasks of a reply.
pub(super) fn tasks_of(request: &Request, reply: &Value) -> Result<Vec<Task>, Error> {
    let tasks = reply.elements().map(|all| all.iter().map(Task::read).collect::<Option<_>>());
    tasks.flatten().ok_or_else(|| request.unexpected(reply))
}
