//! What the engine is meant to do, in the plainest way that could be found.
//!
//! A model holds its tasks in one list and looks through all of it for everything. It follows the
//! specification, knows nothing of how the engine is built, and shares with it only the words of
//! its door: commands, replies and records. A lane is a queue under a number, and a published task
//! is a plain task. Ids that cannot be foretold (uuids and clock readings) are taken over from the
//! engine and checked for being new.

mod arguments;
mod fanout;
mod holding;
mod putting;
mod queues;
mod room;
mod serving;
mod time;
mod transfers;

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_engine::command::{Command, QueueName, Wait};
use pinpriq_engine::limits::{Limits, WAIT_OVERHEAD_BYTES};
use pinpriq_engine::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_engine::settings::{Paused, Settings};
use pinpriq_engine::stats::Move;
use pinpriq_engine::task::{ClientId, RequestId, State, StateKind, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};

use arguments::{fits, id_fits};
use room::Kept;

pub(crate) use fanout::Member;
pub(crate) use serving::{Subscription, Taker};

/// A reply at once, none yet, or a refusal.
type Answer = Result<Option<Reply>, RefusalKind>;

/// All queues, with everybody who waits for them.
#[derive(Debug)]
pub(crate) struct Model {
    limits: Limits,
    pub(crate) now: Timestamp,
    incarnation: u64,
    pub(crate) last_number: u64,
    last_grant: u64,
    last_turn: u64,
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) queues: BTreeMap<Home, Queue>,
    /// Everybody who is registered.
    pub(crate) members: Vec<Member>,
    pub(crate) takers: Vec<Taker>,
    pub(crate) awaiters: Vec<Awaiter>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) credits: BTreeMap<ClientId, u32>,
    /// Numbers of tasks of emptied queues, until those who await them are told.
    pub(crate) emptied: Vec<u64>,
    pub(crate) kept: Kept,
    totals: Tally,
    /// What goes out.
    pub(crate) outputs: Vec<Output>,
    /// Ids that the engine drew for the tasks of these numbers.
    pub(crate) drawn: BTreeMap<u64, TaskId>,
    /// All ids that were ever drawn.
    known_ids: BTreeSet<TaskId>,
    /// How often the deadline of a task passed, or its holder went away, in each state.
    pub(crate) happened: BTreeMap<(&'static str, StateKind), u64>,
}

/// Where a task is: in a queue, or in the lane of this number in a topic.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Home {
    pub(crate) name: Vec<u8>,
    pub(crate) lane: Option<u64>,
}

/// A queue that exists for clients.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) created: bool,
    /// For a lane: the incarnation of the member.
    pub(crate) member: Option<u64>,
    /// Published tasks that the lane did not take.
    pub(crate) missed: u64,
    pub(crate) settings: Settings,
    pub(crate) paused: Paused,
    tally: Tally,
}

/// Figures that cannot be read off the tasks.
#[derive(Debug, Default)]
struct Tally {
    moves: BTreeMap<Move, u64>,
    put: u64,
    acked: u64,
    expired: u64,
    killed: u64,
}

/// A blocked await or put.
#[derive(Debug)]
pub(crate) struct Awaiter {
    turn: u64,
    pub(crate) client: ClientId,
    request: RequestId,
    number: u64,
    until: Option<Timestamp>,
    put: Option<TaskId>,
}

/// Why a task leaves.
#[derive(Clone, Copy)]
enum Exit {
    Acked,
    Expired,
    Killed,
}

impl Model {
    pub(crate) fn new(limits: Limits, now: Timestamp) -> Self {
        Self {
            limits,
            now,
            incarnation: 1,
            last_number: 0,
            last_grant: 0,
            last_turn: 0,
            tasks: Vec::new(),
            queues: BTreeMap::new(),
            members: Vec::new(),
            takers: Vec::new(),
            awaiters: Vec::new(),
            subscriptions: Vec::new(),
            credits: BTreeMap::new(),
            emptied: Vec::new(),
            kept: Kept::default(),
            totals: Tally::default(),
            outputs: Vec::new(),
            drawn: BTreeMap::new(),
            known_ids: BTreeSet::new(),
            happened: BTreeMap::new(),
        }
    }

    /// Carries out a command. `drawn` are the ids that the engine gave to new tasks.
    pub(crate) fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
        drawn: BTreeMap<u64, TaskId>,
    ) {
        self.drawn = drawn;
        self.advance(now);
        let answer =
            serving::names_fit(command).and_then(|()| self.answer(client, request, command));
        match answer {
            Ok(Some(reply)) => self.reply(client, request, reply),
            Ok(None) => {}
            Err(kind) => self.reply(client, request, Reply::Refused(Refusal::new(kind, ""))),
        }
        self.serve();
    }

    fn answer(&mut self, client: ClientId, request: RequestId, command: &Command<'_>) -> Answer {
        match command {
            Command::Put(put) => self.put(client, request, put),
            Command::PutBack(records) => Ok(Some(self.put_back(records))),
            Command::GiveBack(receipts) => Ok(Some(self.give_back(receipts))),
            Command::Take(take) => self.take(client, request, take),
            Command::Peek(peek) => self.peek(peek),
            Command::Get { queue, id } => {
                id_fits(id)?;
                let home = self.home(*queue)?;
                let found = self.find(&home, id).map(|at| Box::new(self.tasks[at].clone()));
                Ok(Some(Reply::Task(found)))
            }
            Command::Ack(ack) => self.ack(client, ack),
            Command::AckAll { queue, receipts } => Ok(Some(self.ack_all(*queue, receipts))),
            Command::Release(release) => self.release(client, release),
            Command::Bury { held, payload, reason } => self.bury(client, *held, *payload, reason),
            Command::Touch { held, by } => self.touch(client, *held, *by),
            Command::Dig(transfer) => self.dig(transfer),
            Command::Plow { queue, count, delay, ttl } => self.plow(*queue, *count, *delay, *ttl),
            Command::Kill { queue, ids } => self.kill(*queue, ids),
            Command::Switch { transfer, to } => self.switch(transfer, *to),
            Command::Snatch(transfer) => self.snatch(transfer),
            Command::Restart(transfer) => self.restart_task(transfer),
            Command::Update(update) => self.update(client, update),
            Command::Await { queue, id, wait } => self.wait_for(client, request, *queue, id, *wait),
            Command::Subscribe { queues, member, selection, mode } => {
                self.subscribe(client, queues, *member, (*selection, *mode))
            }
            Command::Unsubscribe { queues, member } => self.unsubscribe(client, queues, *member),
            Command::Credit(credits) => self.credit(client, request, *credits),
            Command::Queue(command) => self.administer(command),
            Command::Publish(publish) => self.publish(publish),
            Command::Member(command) => self.tend(command),
        }
    }

    fn wait_for(
        &mut self,
        client: ClientId,
        request: RequestId,
        queue: QueueName<'_>,
        id: &[u8],
        wait: Wait,
    ) -> Answer {
        id_fits(id)?;
        if let Wait::For(wait) = wait {
            self.span_fits(Some(wait), true)?;
        }
        let home = self.home(queue)?;
        let at = self.find(&home, id).ok_or(RefusalKind::NotFound)?;
        let (number, kind) = (self.tasks[at].number, self.tasks[at].state.kind());
        let until = match (kind, wait) {
            (StateKind::Zombie | StateKind::Done, _) => {
                return Ok(Some(Reply::Outcome(Outcome::Acked, Some(kind))));
            }
            (StateKind::Buried, _) => {
                return Ok(Some(Reply::Outcome(Outcome::Buried, Some(kind))));
            }
            (_, Wait::No | Wait::For(Span::ZERO)) => {
                return Ok(Some(Reply::Outcome(Outcome::Timeout, Some(kind))));
            }
            (_, Wait::For(span)) => Some(self.now.after(span)),
            (_, Wait::Forever) => None,
        };
        self.may_wait(client, WAIT_OVERHEAD_BYTES)?;
        let turn = self.draw();
        self.awaiters.push(Awaiter { turn, client, request, number, until, put: None });
        Ok(None)
    }

    fn reply(&mut self, client: ClientId, request: RequestId, reply: Reply) {
        self.outputs.push(Output::Reply { client, request, reply });
    }

    /// Places in every line and turn come from one counter.
    fn draw(&mut self) -> u64 {
        self.last_turn += 1;
        self.last_turn
    }
}

/// Moving tasks.
impl Model {
    fn at(&self, number: u64) -> Option<usize> {
        self.tasks.iter().position(|task| task.number == number)
    }

    /// Where the task of this id stands, in any of the texts that the id has.
    pub(crate) fn find(&self, home: &Home, id: &[u8]) -> Option<usize> {
        self.tasks.iter().position(|task| {
            is_in(task, home)
                && match &task.id {
                    TaskId::Given(given) => **given == *id,
                    TaskId::Number(number) => number.to_string().as_bytes() == id,
                    uuid @ TaskId::Uuid(_) => {
                        uuid.to_string().as_bytes() == id.to_ascii_lowercase()
                    }
                }
        })
    }

    fn is_over(&self, at: usize) -> bool {
        self.tasks[at].expires_at.is_some_and(|expires_at| self.now >= expires_at)
    }

    fn enter(&mut self, task: TaskRecord) {
        let queue = self.queues.entry(home_of(&task)).or_default();
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.put += 1;
            tally.note(None, Some(task.state.kind()));
        }
        self.tasks.push(task);
    }

    /// Moves a task into a state, and tells those who await its end.
    fn shift(&mut self, at: usize, state: State) {
        let task = &mut self.tasks[at];
        let (from, to) = (task.state.kind(), state.kind());
        task.state = state;
        let (number, home) = (task.number, home_of(task));
        self.note(&home, Some(from), Some(to));
        match to {
            StateKind::Buried => self.tell(number, Outcome::Buried, Some(to)),
            StateKind::Zombie | StateKind::Done => self.tell(number, Outcome::Acked, Some(to)),
            _ => {}
        }
    }

    /// Takes a task out for good. The last one may take its queue along.
    fn leave(&mut self, at: usize, exit: Exit) {
        let task = self.tasks.remove(at);
        self.kept.part(task.number);
        let home = home_of(&task);
        self.note(&home, Some(task.state.kind()), None);
        let queue = self.queues.get_mut(&home).expect("the queue of a task exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.exit(exit, 1);
        }
        let outcome = match exit {
            Exit::Acked => Outcome::Acked,
            Exit::Expired => Outcome::Expired,
            Exit::Killed => Outcome::Killed,
        };
        self.tell(task.number, outcome, None);
        self.tidy(&home);
    }

    fn note(&mut self, home: &Home, from: Option<StateKind>, to: Option<StateKind>) {
        let queue = self.queues.get_mut(home).expect("the queue of a task exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.note(from, to);
        }
    }

    /// Whether anybody awaits the end of a task.
    pub(crate) fn is_awaited(&self, number: u64) -> bool {
        self.awaiters.iter().any(|awaiter| awaiter.number == number)
    }

    fn tell(&mut self, number: u64, outcome: Outcome, state: Option<StateKind>) {
        let (told, left) = std::mem::take(&mut self.awaiters)
            .into_iter()
            .partition(|known| known.number == number);
        self.awaiters = left;
        for awaiter in Vec::<Awaiter>::from_iter(told as Vec<_>) {
            self.answer_awaiter(awaiter, outcome, state);
        }
    }

    fn answer_awaiter(&mut self, awaiter: Awaiter, outcome: Outcome, state: Option<StateKind>) {
        let reply = match awaiter.put {
            Some(id) => Reply::PutOutcome(id, outcome),
            None => Reply::Outcome(outcome, state),
        };
        self.reply(awaiter.client, awaiter.request, reply);
    }

    /// A queue exists while it was created, is paused or holds tasks.
    fn tidy(&mut self, home: &Home) {
        let holds_tasks = self.tasks.iter().any(|task| is_in(task, home));
        if let Some(queue) = self.queues.get(home)
            && !queue.created
            && !queue.paused.any()
            && !holds_tasks
        {
            self.queues.remove(home);
        }
    }
}

impl Home {
    pub(crate) fn of_queue(name: &[u8]) -> Self {
        Self { name: name.to_vec(), lane: None }
    }
}

/// Where a task is.
pub(crate) fn home_of(task: &TaskRecord) -> Home {
    Home { name: task.queue.to_vec(), lane: task.lane.as_ref().map(|lane| lane.number) }
}

/// Whether that is where a task is.
fn is_in(task: &TaskRecord, home: &Home) -> bool {
    *task.queue == *home.name && task.lane.as_ref().map(|lane| lane.number) == home.lane
}

impl Tally {
    fn note(&mut self, from: Option<StateKind>, to: Option<StateKind>) {
        *self.moves.entry(Move { from, to }).or_default() += 1;
    }

    fn exit(&mut self, exit: Exit, count: u64) {
        match exit {
            Exit::Acked => self.acked += count,
            Exit::Expired => self.expired += count,
            Exit::Killed => self.killed += count,
        }
    }
}
