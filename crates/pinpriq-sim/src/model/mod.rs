//! What the server is meant to do, in the plainest way: the oracle.
//!
//! Tasks stand in maps by number, and every question is answered by looking at all of them. It
//! follows the pages on the protocol and the concepts, and shares with the engine only the words
//! of its door: commands, replies, records. Ids that cannot be foretold (uuids and clock readings)
//! are placeholders until a client is told or the store hears of them. There is no disk here:
//! after a crash the model is made anew from what survived.

mod bindings;
mod disk_room;
mod hold;
mod members;
mod put;
mod queues;
mod room;
mod serve;
mod take;
mod time;
mod transfer;

use std::collections::BTreeMap;

use pinpriq_engine::Engine;
use pinpriq_engine::command::{Amendment, Assign, Command, QueueName, Wait};
use pinpriq_engine::limits::{ID_BYTES_MAX, Limits, NAME_BYTES_MAX, WAIT_OVERHEAD_BYTES};
use pinpriq_engine::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_engine::room::Room;
use pinpriq_engine::settings::{Paused, Settings};
use pinpriq_engine::stats::Move;
use pinpriq_engine::task::{
    Bytes, ClientId, LaneName, RequestId, State, StateKind, TaskId, TaskRecord,
};
use pinpriq_engine::time::{Span, Timestamp};

pub(crate) use bindings::{Bindings, is_placeholder, number_of};
use room::Kept;
pub(crate) use serve::{Subscription, Taker};
pub(crate) use time::tasks_of;

/// A reply at once, none yet, or a refusal.
type Answer = Result<Option<Reply>, RefusalKind>;

/// What a place for tasks is known by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// A queue, by its name.
    Queue(Bytes),
    /// A lane, by its number.
    Lane(u64),
}

/// A queue that exists for clients, or a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home {
    /// The queue or the topic.
    pub(crate) name: Bytes,
    pub(crate) lane: Option<Lane>,
    pub(crate) created: bool,
    pub(crate) settings: Settings,
    pub(crate) paused: Paused,
    pub(crate) tasks: BTreeMap<u64, TaskRecord>,
    tally: Tally,
}

/// What makes a place a lane.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: LaneName,
    /// The incarnation of its member.
    pub(crate) incarnation: u64,
    missed: u64,
}

/// A registered member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: Bytes,
    pub(crate) lease: Span,
    pub(crate) lease_until: Timestamp,
    pub(crate) ended: bool,
}

/// Figures that cannot be read off the tasks.
#[derive(Clone, Debug, Default)]
struct Tally {
    moves: BTreeMap<Move, u64>,
    put: u64,
    acked: u64,
    expired: u64,
    killed: u64,
}

/// A blocked await or put.
#[derive(Debug)]
struct Awaiter {
    turn: u64,
    client: ClientId,
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

/// All queues, lanes and members, with everybody who waits for them.
#[derive(Debug)]
pub(crate) struct Model {
    limits: Limits,
    pub(crate) now: Timestamp,
    incarnation: u64,
    pub(crate) last_number: u64,
    last_grant: u64,
    last_turn: u64,
    pub(crate) homes: BTreeMap<Place, Home>,
    places: BTreeMap<u64, Place>,
    pub(crate) members: BTreeMap<u64, Member>,
    pub(crate) takers: Vec<Taker>,
    awaiters: Vec<Awaiter>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) credits: BTreeMap<ClientId, u32>,
    /// Numbers of tasks of emptied queues, until those who await them are told.
    emptied: Vec<u64>,
    kept: Kept,
    /// How many bytes more may be occupied, as the engine said when it was asked last.
    free: u64,
    totals: Tally,
    pub(crate) bindings: Bindings,
    /// What goes out.
    pub(crate) outputs: Vec<Output>,
    /// Before this moment nothing is due.
    quiet_until: Timestamp,
    /// What the store has room for.
    room: Room,
}

impl Model {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            now: Timestamp::ZERO,
            incarnation: 0,
            last_number: 0,
            last_grant: 0,
            last_turn: 0,
            homes: BTreeMap::new(),
            places: BTreeMap::new(),
            members: BTreeMap::new(),
            takers: Vec::new(),
            awaiters: Vec::new(),
            subscriptions: Vec::new(),
            credits: BTreeMap::new(),
            emptied: Vec::new(),
            kept: Kept::default(),
            free: 0,
            totals: Tally::default(),
            bindings: Bindings::default(),
            outputs: Vec::new(),
            quiet_until: Timestamp::ZERO,
            room: Room::Enough,
        }
    }

    /// Carries out a command. The engine is asked one thing only: whether there is room for bytes.
    pub(crate) fn apply(
        &mut self,
        now: Timestamp,
        client: ClientId,
        request: RequestId,
        command: &Command<'_>,
        engine: &Engine,
    ) {
        self.look_for_room(engine);
        self.advance(now);
        match self.answer(client, request, command) {
            Ok(Some(reply)) => self.reply(client, request, reply),
            Ok(None) => {}
            Err(kind) => self.reply(client, request, Reply::Refused(Refusal::new(kind, ""))),
        }
        self.serve();
    }

    fn answer(&mut self, client: ClientId, request: RequestId, command: &Command<'_>) -> Answer {
        self.room_suffices(command)?;
        match command {
            Command::Put(put) => self.put(client, request, put),
            Command::PutBack(records) => Ok(Some(self.put_back(records))),
            Command::GiveBack(receipts) => Ok(Some(self.give_back(receipts))),
            Command::Take(take) => self.take(client, request, take),
            Command::Peek(peek) => self.peek(peek),
            Command::Get { queue, id } => {
                id_fits(id)?;
                let found = self.find(*queue, id)?;
                Ok(Some(Reply::Task(found.map(|number| Box::new(self.task(number).clone())))))
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
                self.subscribe(client, queues, *member, *selection, *mode)
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
        let number = self.find(queue, id)?.ok_or(RefusalKind::NotFound)?;
        let kind = self.task(number).state.kind();
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
        self.add_awaiter(client, request, number, until, None);
        Ok(None)
    }

    fn add_awaiter(
        &mut self,
        client: ClientId,
        request: RequestId,
        number: u64,
        until: Option<Timestamp>,
        put: Option<TaskId>,
    ) {
        let turn = self.draw();
        self.note_due(until);
        self.awaiters.push(Awaiter { turn, client, request, number, until, put });
    }

    fn reply(&mut self, client: ClientId, request: RequestId, reply: Reply) {
        self.outputs.push(Output::Reply { client, request, reply });
    }

    /// Places in every line come from one counter.
    const fn draw(&mut self) -> u64 {
        self.last_turn += 1;
        self.last_turn
    }
}

/// Finding and moving tasks.
impl Model {
    /// A task that is known to be there.
    pub(crate) fn task(&self, number: u64) -> &TaskRecord {
        &self.homes[&self.places[&number]].tasks[&number]
    }

    fn task_mut(&mut self, number: u64) -> &mut TaskRecord {
        let place = &self.places[&number];
        let home = self.homes.get_mut(place);
        let task = home.and_then(|home| home.tasks.get_mut(&number));
        task.unwrap_or_else(|| unreachable!("task {number} is where it is said to be"))
    }

    /// Whether a task is there for clients.
    fn is_live(&self, number: u64) -> bool {
        self.places.get(&number).is_some_and(|place| !self.has_ended(place))
    }

    /// All tasks.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &TaskRecord> {
        self.homes.values().flat_map(|home| home.tasks.values())
    }

    /// The place that a command names. There may be no such queue; a lane that is not there is
    /// refused.
    fn place_of(&self, name: QueueName<'_>) -> Result<Place, RefusalKind> {
        fits(name.name.len() <= NAME_BYTES_MAX)?;
        match name.member {
            None => Ok(Place::Queue(name.name.into())),
            Some(member) => {
                fits(member.len() <= NAME_BYTES_MAX)?;
                self.lane_of(name.name, member).ok_or(RefusalKind::NotFound)
            }
        }
    }

    /// The task of this id, in any of the texts that the id has.
    fn find(&self, queue: QueueName<'_>, id: &[u8]) -> Result<Option<u64>, RefusalKind> {
        let place = self.place_of(queue)?;
        let Some(home) = self.homes.get(&place) else { return Ok(None) };
        let number: Option<u64> = str::from_utf8(id)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .filter(|number: &u64| number.to_string().as_bytes() == id);
        let lower = id.to_ascii_lowercase();
        let named = |task: &TaskRecord| match &task.id {
            TaskId::Given(given) => **given == *id,
            TaskId::Number(own) => Some(*own) == number,
            uuid @ TaskId::Uuid(_) => lower.len() == 36 && uuid.to_string().as_bytes() == lower,
        };
        Ok(home.tasks.values().find(|task| named(task)).map(|task| task.number))
    }

    fn settings(&self, place: &Place) -> Settings {
        self.homes.get(place).map(|home| home.settings).unwrap_or_default()
    }

    fn paused(&self, place: &Place) -> Paused {
        self.homes.get(place).map(|home| home.paused).unwrap_or_default()
    }

    fn is_over(&self, task: &TaskRecord) -> bool {
        task.expires_at.is_some_and(|expires_at| self.now >= expires_at)
    }

    /// The place of a queue or lane, made if it is a queue.
    fn home(&mut self, place: &Place) -> &mut Home {
        let name: Bytes = match place {
            Place::Queue(name) => name.clone(),
            Place::Lane(_) => [].into(),
        };
        self.homes.entry(place.clone()).or_insert_with(|| Home { name, ..Home::default() })
    }

    fn enter(&mut self, place: &Place, task: TaskRecord) {
        self.note_due(time::due(&task));
        let kind = task.state.kind();
        self.places.insert(task.number, place.clone());
        let home = self.home(place);
        home.tally.put += 1;
        home.tally.note(None, Some(kind));
        home.tasks.insert(task.number, task);
        self.totals.put += 1;
        self.totals.note(None, Some(kind));
    }

    /// Moves a task into a state, and tells those who await its end.
    fn shift(&mut self, number: u64, state: State) {
        let task = self.task_mut(number);
        let (from, to) = (task.state.kind(), state.kind());
        task.state = state;
        let due = time::due(task);
        self.note_due(due);
        self.note_move(number, from, Some(to));
        match to {
            StateKind::Buried => self.tell(number, Outcome::Buried, Some(to)),
            StateKind::Zombie | StateKind::Done => self.tell(number, Outcome::Acked, Some(to)),
            _ => {}
        }
    }

    /// Takes a task out for good. The last one may take its queue along.
    fn leave(&mut self, number: u64, exit: Exit) {
        let from = self.task(number).state.kind();
        self.note_move(number, from, None);
        let Some(place) = self.places.remove(&number) else { return };
        self.kept.part(number);
        let home = self.home(&place);
        home.tasks.remove(&number);
        home.tally.exit(exit, 1);
        self.totals.exit(exit, 1);
        let outcome = match exit {
            Exit::Acked => Outcome::Acked,
            Exit::Expired => Outcome::Expired,
            Exit::Killed => Outcome::Killed,
        };
        self.tell(number, outcome, None);
        self.tidy(&place);
    }

    fn note_move(&mut self, number: u64, from: StateKind, to: Option<StateKind>) {
        let place = &self.places[&number];
        if let Some(home) = self.homes.get_mut(place) {
            home.tally.note(Some(from), to);
        }
        self.totals.note(Some(from), to);
    }

    fn tell(&mut self, number: u64, outcome: Outcome, state: Option<StateKind>) {
        while let Some(at) = self.awaiters.iter().position(|known| known.number == number) {
            let awaiter = self.awaiters.remove(at);
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
    fn tidy(&mut self, place: &Place) {
        let exists = |home: &Home| {
            home.lane.is_some() || home.created || home.paused.any() || !home.tasks.is_empty()
        };
        if self.homes.get(place).is_some_and(|home| !exists(home)) {
            self.homes.remove(place);
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

    fn may_wait(&self, client: ClientId, bytes: u64) -> Result<(), RefusalKind> {
        let takers = self.takers.iter().filter(|taker| taker.client == client).count();
        let awaiters = self.awaiters.iter().filter(|awaiter| awaiter.client == client).count();
        if takers + awaiters >= self.limits.waits_per_client_max {
            return Err(RefusalKind::Busy);
        }
        self.has_waiting_room(bytes)
    }
}

impl Tally {
    fn note(&mut self, from: Option<StateKind>, to: Option<StateKind>) {
        self.note_times(from, to, 1);
    }

    fn note_times(&mut self, from: Option<StateKind>, to: Option<StateKind>, times: u64) {
        *self.moves.entry(Move { from, to }).or_default() += times;
    }

    const fn exit(&mut self, exit: Exit, count: u64) {
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
