//! What the engine is meant to do, in the plainest way that could be found.
//!
//! A model holds its tasks in one list and looks through all of it for everything. It follows the
//! specification, knows nothing of how the engine is built, and shares with it only the words of
//! its door: commands, replies and records. Ids that cannot be foretold (uuids and clock readings)
//! are taken over from the engine and checked for being new.

mod holding;
mod putting;
mod queues;
mod serving;
mod time;
mod transfers;

use std::collections::BTreeMap;

use pinpriq_engine::command::{Amendment, Assign, Command, Wait};
use pinpriq_engine::limits::{ID_BYTES_MAX, Limits};
use pinpriq_engine::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_engine::settings::{Paused, Settings};
use pinpriq_engine::stats::Move;
use pinpriq_engine::task::{ClientId, RequestId, State, StateKind, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};

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
    pub(crate) queues: BTreeMap<Vec<u8>, Queue>,
    pub(crate) takers: Vec<Taker>,
    pub(crate) awaiters: Vec<Awaiter>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) credits: BTreeMap<ClientId, u32>,
    /// Numbers of tasks of emptied queues, until those who await them are told.
    pub(crate) emptied: Vec<u64>,
    totals: Tally,
    /// What goes out.
    pub(crate) outputs: Vec<Output>,
    /// How often the deadline of a task passed, or its holder went away, in each state.
    pub(crate) happened: BTreeMap<(&'static str, StateKind), u64>,
}

/// A queue that exists for clients.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) created: bool,
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
            takers: Vec::new(),
            awaiters: Vec::new(),
            subscriptions: Vec::new(),
            credits: BTreeMap::new(),
            emptied: Vec::new(),
            totals: Tally::default(),
            outputs: Vec::new(),
            happened: BTreeMap::new(),
        }
    }

    /// Carries out a command. `id` is the id that the engine gave to the task of a put.
    pub(crate) fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
        id: Option<TaskId>,
    ) {
        self.advance(now);
        let answer =
            serving::names_fit(command).and_then(|()| self.answer(client, request, command, id));
        match answer {
            Ok(Some(reply)) => self.reply(client, request, reply),
            Ok(None) => {}
            Err(kind) => self.reply(client, request, Reply::Refused(Refusal::new(kind, ""))),
        }
        self.serve();
    }

    fn answer(
        &mut self,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
        id: Option<TaskId>,
    ) -> Answer {
        match command {
            Command::Put(put) => self.put(client, request, put, id),
            Command::PutBack(records) => Ok(Some(self.put_back(records))),
            Command::Take(take) => self.take(client, request, take),
            Command::Peek(peek) => self.peek(peek),
            Command::Get { queue, id } => {
                id_fits(id)?;
                let found = self.find(queue, id).map(|at| Box::new(self.tasks[at].clone()));
                Ok(Some(Reply::Task(found)))
            }
            Command::Ack(ack) => self.ack(client, ack),
            Command::AckAll { queue, receipts } => Ok(Some(self.ack_all(queue, receipts))),
            Command::Release(release) => self.release(client, release),
            Command::Bury { held, payload, reason } => self.bury(client, *held, *payload, reason),
            Command::Touch { held, by } => self.touch(client, *held, *by),
            Command::Dig(transfer) => self.dig(transfer),
            Command::Plow { queue, count, delay, ttl } => self.plow(queue, *count, *delay, *ttl),
            Command::Kill { queue, ids } => self.kill(queue, ids),
            Command::Switch { transfer, to } => self.switch(transfer, *to),
            Command::Snatch(transfer) => self.snatch(transfer),
            Command::Restart(transfer) => self.restart_task(transfer),
            Command::Update(update) => self.update(client, update),
            Command::Await { queue, id, wait } => self.wait_for(client, request, queue, id, *wait),
            Command::Subscribe { queues, selection, mode } => {
                self.subscribe(client, queues, *selection, *mode)
            }
            Command::Unsubscribe { queues } => Ok(Some(self.unsubscribe(client, queues))),
            Command::Credit(credits) => self.credit(client, request, *credits),
            Command::Queue(command) => self.administer(command),
        }
    }

    fn wait_for(
        &mut self,
        client: ClientId,
        request: RequestId,
        queue: &[u8],
        id: &[u8],
        wait: Wait,
    ) -> Answer {
        id_fits(id)?;
        if let Wait::For(wait) = wait {
            self.span_fits(Some(wait), true)?;
        }
        let at = self.find(queue, id).ok_or(RefusalKind::NotFound)?;
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
        self.may_wait(client)?;
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
    pub(crate) fn find(&self, queue: &[u8], id: &[u8]) -> Option<usize> {
        self.tasks.iter().position(|task| {
            *task.queue == *queue
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
        let queue = self.queues.entry(task.queue.to_vec()).or_default();
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
        let (number, queue) = (task.number, task.queue.to_vec());
        self.note(&queue, Some(from), Some(to));
        match to {
            StateKind::Buried => self.tell(number, Outcome::Buried, Some(to)),
            StateKind::Zombie | StateKind::Done => self.tell(number, Outcome::Acked, Some(to)),
            _ => {}
        }
    }

    /// Takes a task out for good. The last one may take its queue along.
    fn leave(&mut self, at: usize, exit: Exit) {
        let task = self.tasks.remove(at);
        self.note(&task.queue, Some(task.state.kind()), None);
        let queue = self.queues.get_mut(&*task.queue).expect("the queue of a task exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.exit(exit, 1);
        }
        let outcome = match exit {
            Exit::Acked => Outcome::Acked,
            Exit::Expired => Outcome::Expired,
            Exit::Killed => Outcome::Killed,
        };
        self.tell(task.number, outcome, None);
        self.tidy(&task.queue);
    }

    fn note(&mut self, queue: &[u8], from: Option<StateKind>, to: Option<StateKind>) {
        let queue = self.queues.get_mut(queue).expect("the queue of a task exists");
        for tally in [&mut queue.tally, &mut self.totals] {
            tally.note(from, to);
        }
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
    fn tidy(&mut self, name: &[u8]) {
        let holds_tasks = self.tasks.iter().any(|task| *task.queue == *name);
        if let Some(queue) = self.queues.get(name)
            && !queue.created
            && !queue.paused.any()
            && !holds_tasks
        {
            self.queues.remove(name);
        }
    }
}

/// Checks of arguments.
impl Model {
    fn payload_fits(&self, payload: Option<&[u8]>) -> Result<(), RefusalKind> {
        let most = self.limits.payload_bytes_max;
        let fits = payload.is_none_or(|payload| payload.len() <= most);
        if fits { Ok(()) } else { Err(RefusalKind::TooLarge) }
    }

    /// Whether a span ends before the year 10000, and is not nothing where that makes no sense.
    fn span_fits(&self, span: Option<Span>, may_be_zero: bool) -> Result<(), RefusalKind> {
        let Some(span) = span else { return Ok(()) };
        let end = self.now.ms().saturating_add(span.ms());
        fits(end <= Timestamp::MAX.ms() && (may_be_zero || !span.is_zero()))
    }

    fn ttl_fits(&self, ttl: Option<Span>, delay: Span) -> Result<(), RefusalKind> {
        self.span_fits(ttl, false)?;
        fits(ttl.is_none_or(|ttl| ttl > delay))
    }

    fn amendment_fits(&self, delay: Span, amendment: &Amendment<'_>) -> Result<(), RefusalKind> {
        self.span_fits(Some(delay), true)?;
        self.payload_fits(amendment.payload)?;
        match amendment.ttl {
            Assign::To(ttl) => self.ttl_fits(ttl, delay),
            Assign::Keep => Ok(()),
        }
    }

    fn may_wait(&self, client: ClientId) -> Result<(), RefusalKind> {
        let takers = self.takers.iter().filter(|taker| taker.client == client).count();
        let awaiters = self.awaiters.iter().filter(|awaiter| awaiter.client == client).count();
        let fits = takers + awaiters < self.limits.waits_per_client_max;
        if fits { Ok(()) } else { Err(RefusalKind::Busy) }
    }
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

fn fits(makes_sense: bool) -> Result<(), RefusalKind> {
    if makes_sense { Ok(()) } else { Err(RefusalKind::BadArgument) }
}

fn id_fits(id: &[u8]) -> Result<(), RefusalKind> {
    fits(!id.is_empty() && id.len() <= ID_BYTES_MAX)
}
