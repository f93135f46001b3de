//! Chooses commands, with few queues, keys, ids and priorities, and short spans, so that they
//! collide.

mod batches;
mod carrying;
mod kinds;
mod lanes;
mod schedules;
mod terms;
mod tubes;

use pinpriq_proto::batches::{Bonds, OnlyIf};
use pinpriq_proto::command::{
    Amendment, Assign, BatchCommand, Bulk, BulkChange, Command, Delay, Done, End, Held, HeldBy,
    Order, Peek, Put, QueueCommand, QueueName, Selection, Step, Take, TakeMode, TimeToLive,
    Transfer, Update, Wait,
};
use pinpriq_proto::fanout::MemberCommand;
use pinpriq_proto::limits::{NARROW_PAYLOAD_BYTES_MAX, WITHIN_NAMES_MAX};
use pinpriq_proto::looking::{LeasePlace, Leases, Scan};
use pinpriq_proto::named_limits::{LimitChange, LimitCommand, OrNone};
use pinpriq_proto::names::{NamePattern, NamesPage};
use pinpriq_proto::settings::{
    AFTERACK, AGEING, ATTEMPTS, AfterAck, Assignment, BACKOFF, BACKOFFMAX, CAPACITY, CAPACITYBYTES,
    COSTMAX, DEADLETTER, IDS, Ids, LIMIT, ONEXPIRY, OVERFLOW, RANKING, RATE, RELEASEFAILS, Ranking,
    Rate, SETTINGS, TTL, TTR, USES, Value,
};
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::{Receipt, State, StateKind, TaskId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::{OnDuplicate, Unique};
use pinpriq_testing::model::{Home, Model};

use super::dice::Dice;
pub(super) use batches::BATCHES;
use kinds::About;
use lanes::{known_member, place_of};
pub(super) use schedules::SCHEDULES;

pub(super) const QUEUES: [&[u8]; 3] = [b"a", b"ab", b""];
/// Two of them have the name of a queue, but are unrelated to it.
pub(super) const TOPICS: [&[u8]; 3] = [b"a", b"", b"t"];
pub(super) const MEMBERS: [&[u8]; 3] = [b"1", b"10", b""];
/// A payload that the narrow door cannot carry, and one byte longer than the engine accepts.
static LARGE: [u8; PAYLOAD_BYTES_MAX + 1] = [b'x'; PAYLOAD_BYTES_MAX + 1];
pub(super) const PAYLOAD_BYTES_MAX: usize = 65_540;
static LONG_NAME: [u8; 65_536] = [b'n'; 65_536];

/// What a chooser knows in addition to the tasks.
#[derive(Default)]
pub(super) struct Memory {
    /// Whether this run is mostly about fan-out.
    pub(super) fans_out: bool,
    /// Whether this run is mostly about turns, and limits of keys and shares.
    pub(super) takes_turns: bool,
    /// Whether many tasks of this run are in batches, or wait for some.
    pub(super) follows_batches: bool,
    pub(super) receipts: Vec<Issued>,
    pub(super) popped: Vec<Vec<TaskRecord>>,
}

/// A receipt, and the task that it was issued for.
pub(super) struct Issued {
    pub(super) queue: Vec<u8>,
    pub(super) member: Option<Vec<u8>>,
    pub(super) receipt: Receipt,
}

pub(super) struct Chooser<'a> {
    pub(super) dice: &'a mut Dice,
    pub(super) model: &'a Model,
    pub(super) memory: &'a Memory,
    about: About,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(dice: &'a mut Dice, model: &'a Model, memory: &'a Memory) -> Self {
        Self { dice, model, memory, about: About::default() }
    }

    pub(super) fn command(&mut self) -> Command<'static> {
        let crowded = self.model.task_count() > 24;
        if self.memory.fans_out {
            let lanes = self.model.homes.values().filter(|home| home.lane.is_some()).count();
            match self.dice.below(20) {
                0..=2 if lanes < 5 => return Command::Member(self.join()),
                3 => return Command::Member(self.tend()),
                4..=6 if !crowded => return Command::Publish(self.publish()),
                _ => {}
            }
        }
        if self.memory.takes_turns && self.dice.once_in(20) {
            let settings = Vec::leak(self.turns());
            return Command::Queue(QueueCommand::Set { queue: self.place(), settings });
        }
        if self.memory.takes_turns && self.dice.once_in(40) {
            let weight = Some(self.dice.pick(&[1, 2, 7]));
            let change = ShareChange { weight, limit: None, rate: None };
            let (queue, share) = (self.queue(), self.share_name());
            return Command::Queue(QueueCommand::Share { queue, share, change });
        }
        if self.dice.once_in(60) {
            let settings = [(ATTEMPTS, Some(1).into()), (DEADLETTER, Value::Bytes(self.queue()))];
            let settings = Vec::leak(settings.into());
            return Command::Queue(QueueCommand::Set { queue: self.place(), settings });
        }
        // What is finished goes soon, and its id can be given again only then.
        if let Some((queue, id)) = self.finished()
            && self.dice.once_in(12)
        {
            return Command::Put(Put { id: Some(id), ..Put::new(queue, b"") });
        }
        if let Some(queue) = self.queue_with_unstarted()
            && self.dice.once_in(4)
        {
            let delay = if self.dice.once_in(2) { Span::ZERO } else { self.span() };
            let (priority, delay) = (Some(-8), Delay::For(delay));
            return Command::Put(Put { priority, delay, ..Put::new(queue, b"") });
        }
        if self.dice.once_in(16) {
            return Command::Transaction(self.steps());
        }
        if self.dice.once_in(20) {
            return self.within();
        }
        self.plain_command()
    }

    /// A command that keeps within names, of which most can.
    fn within(&mut self) -> Command<'static> {
        let names = self.patterns();
        let command = match self.dice.below(24) {
            0 => self.command(),
            20..=22 => Command::Numbered { number: self.number(), deed: self.deed() },
            23 => Command::Tubes(None),
            1..=3 => Command::Leases(Leases { queue: None, ..self.leases() }),
            4 => Command::Queue(QueueCommand::Stats(None)),
            5 => Command::Batch(BatchCommand::List(NamesPage {
                prefix: b"",
                after: self.dice.once_in(2).then(|| self.queue()),
                count: 1,
            })),
            6..=7 => Command::Queue(QueueCommand::List(NamesPage {
                prefix: self.dice.pick(&[b"".as_slice(), b"a", b"ab", b"b"]),
                after: self.dice.once_in(2).then(|| self.queue()),
                count: usize::try_from(self.dice.below(3)).unwrap(),
            })),
            8..=12 => Command::Schedule(self.schedule()),
            13..=16 => {
                let member = self.member();
                let lease = self.dice.once_in(2).then(|| self.lease());
                Command::Member(match self.dice.below(3) {
                    0 => MemberCommand::Leave(member),
                    1 => MemberCommand::Join { topic: TOPICS[2], member, lease },
                    _ => MemberCommand::Beat { member, lease },
                })
            }
            17 => Command::Bulk(Bulk { change: BulkChange::Redrive, ..self.bulk() }),
            _ => Command::Redrive { queue: self.place(), count: self.moved() },
        };
        Command::Within { names, command: Box::leak(Box::new(command)) }
    }

    fn patterns(&mut self) -> &'static [NamePattern<'static>] {
        let mut names = Vec::new();
        for _ in 0..self.dice.pick(&[0, 1, 1, 2, 3]) {
            let bytes = self.dice.pick(&[b"".as_slice(), b"a", b"ab", b"t", b"not there"]);
            names.push(NamePattern { bytes, is_prefix: self.dice.once_in(3) });
        }
        if self.dice.once_in(100) {
            names.resize(WITHIN_NAMES_MAX + 1, NamePattern::beginning(b""));
        }
        Vec::leak(names)
    }

    /// Several commands, of which most make sense.
    fn steps(&mut self) -> &'static [Step<'static>] {
        let mut steps = Vec::new();
        for _ in 0..self.dice.below(6) {
            steps.push(match self.dice.below(60) {
                0 => Step::Nothing,
                1 => Step::Bad("no command"),
                2..=20 => Step::Command(Command::Put(Put { wait: None, ..self.put() })),
                21..=23 => Step::Command(Command::Publish(self.publish())),
                // Perhaps no step, and refused as such.
                24 => Step::Command(self.plain_command()),
                _ => {
                    let mut command = self.plain_command();
                    for _ in 0..20 {
                        if command.is_step() {
                            break;
                        }
                        command = self.plain_command();
                    }
                    Step::Command(command)
                }
            });
        }
        Vec::leak(steps)
    }

    fn reason(&mut self) -> Option<&'static [u8]> {
        static LONG: [u8; 1_025] = [b'r'; 1_025];
        let long = &LONG[usize::from(!self.dice.once_in(20))..];
        self.dice.pick(&[None, Some(b"".as_slice()), Some(b"bad"), Some(b"bad"), Some(long)])
    }

    fn moved(&mut self) -> u32 {
        self.dice.pick(&[0, 1, 1, 2, 5, 10_000, 10_001])
    }

    fn queue(&mut self) -> &'static [u8] {
        if self.dice.once_in(300) {
            return b"not there";
        }
        self.dice.pick(&QUEUES)
    }

    fn span(&mut self) -> Span {
        if self.dice.once_in(150) {
            return Span::from_ms(self.dice.pick(&[0, 253_402_300_800_000, u64::MAX]));
        }
        Span::from_ms(self.dice.pick(&[1, 2, 3, 5, 5, 8, 10, 20]))
    }

    fn maybe_span(&mut self) -> Option<Span> {
        (!self.dice.once_in(3)).then(|| self.span())
    }

    fn delay(&mut self) -> Span {
        if self.dice.once_in(3) { self.span() } else { Span::ZERO }
    }

    /// A delay, or a moment from now on or a little before.
    fn delay_of_put(&mut self) -> Delay {
        if self.dice.once_in(6) {
            return Delay::Held;
        }
        match self.span() {
            span if span.ms() % 3 == 0 => {
                let at = (self.model.now.ms() + span.ms()).saturating_sub(3);
                Delay::Until(Timestamp::from_ms(at))
            }
            span => Delay::For(span),
        }
    }

    fn wait(&mut self) -> Wait {
        match self.dice.below(4) {
            0 => Wait::No,
            1 => Wait::Forever,
            _ => Wait::For(self.span()),
        }
    }

    fn priority(&mut self) -> Option<i64> {
        self.dice.pick(&[None, Some(0), Some(0), Some(1), Some(1), Some(-7), Some(i64::MAX)])
    }

    fn bytes(&mut self) -> &'static [u8] {
        let small: [&[u8]; 3] = [b"", b"p", b"pay"];
        match self.dice.below(150) {
            0..=2 => &LARGE[1..],
            3 => &LARGE[..NARROW_PAYLOAD_BYTES_MAX],
            4 => &LARGE,
            5..=14 => &LARGE[..2_000],
            _ => self.dice.pick(&small),
        }
    }

    /// Whether all tasks together have little room in this run.
    fn has_little_room(&self) -> bool {
        self.model.limits.bytes_max < u64::MAX
    }

    fn payload(&mut self) -> Option<&'static [u8]> {
        if self.has_little_room() && self.dice.once_in(2) {
            return Some(&LARGE[..4_000]);
        }
        self.dice.once_in(4).then(|| self.bytes())
    }

    /// Returns all tasks by their numbers.
    fn tasks(&self) -> Vec<&'a TaskRecord> {
        let mut tasks: Vec<&TaskRecord> = self.model.tasks().collect();
        tasks.sort_by_key(|task| task.number);
        tasks
    }

    /// Returns an id that some task has, had or might have.
    fn id(&mut self) -> &'static [u8] {
        let tasks = self.tasks();
        match self.dice.below(20) {
            0 => self.dice.pick(&[b"".as_slice(), &[b'i'; 256], b"01", b"x"]),
            1 => {
                let number = self.model.last_number.saturating_sub(self.dice.below(5));
                Vec::leak(number.to_string().into_bytes())
            }
            2 => self.given_id(),
            _ if tasks.is_empty() => b"1",
            _ => {
                let index = self.dice.below(tasks.len() as u64);
                let id = &tasks[usize::try_from(index).unwrap()].id;
                Vec::leak(id.to_string().into_bytes())
            }
        }
    }

    fn given_id(&mut self) -> &'static [u8] {
        self.dice.pick(&[b"x".as_slice(), b"y", b"z"])
    }

    /// Returns an id for a new task of this queue, which may have a task of this id.
    fn given_id_in(&mut self, queue: &[u8]) -> &'static [u8] {
        let mut present = self.tasks();
        present.retain(|task| task.queue.as_ref() == queue && matches!(task.id, TaskId::Given(_)));
        if present.is_empty() || self.dice.once_in(4) {
            return self.given_id();
        }
        let index = self.dice.below(present.len() as u64);
        let id = &present[usize::try_from(index).unwrap()].id;
        Vec::leak(id.to_string().into_bytes())
    }

    /// Returns the queue and the id of a finished task whose id was given, if there is one.
    fn finished(&self) -> Option<(&'static [u8], &'static [u8])> {
        let is_given = |task: &&TaskRecord| {
            let is_given = task.lane.is_none() && matches!(task.id, TaskId::Given(_));
            is_given && task.progress.state.kind().is_finished()
        };
        let finished: Vec<&TaskRecord> = self.tasks().into_iter().filter(is_given).collect();
        // There are few zombies.
        let is_zombie = |task: &&&TaskRecord| task.progress.state.kind() == StateKind::Zombie;
        let task = finished.iter().find(is_zombie).or_else(|| finished.first())?;
        Some((Vec::leak(task.queue.to_vec()), Vec::leak(task.id.to_string().into_bytes())))
    }

    /// Returns a task that may become a dead letter, if there is one.
    fn endangered(&mut self) -> (QueueName<'static>, &'static [u8]) {
        let homes = self.model.homes.values();
        let mut tasks: Vec<&TaskRecord> = homes
            .filter(|home| home.settings.dead_letter.is_some() && home.settings.attempts.is_some())
            .flat_map(|home| home.tasks.values())
            .filter(|task| task.progress.state.kind() == StateKind::Taken)
            .collect();
        tasks.sort_by_key(|task| task.number);
        if tasks.is_empty() || self.dice.once_in(4) {
            return self.target();
        }
        let index = self.dice.below(tasks.len() as u64);
        let task = tasks[usize::try_from(index).unwrap()];
        (place_of(task), Vec::leak(task.id.to_string().into_bytes()))
    }

    /// Returns a queue with a delivery that can be called back, if there is one.
    fn queue_with_unstarted(&self) -> Option<&'static [u8]> {
        let is_unstarted = |task: &&TaskRecord| {
            let State::Taken(lease) = task.progress.state else { return false };
            lease.is_unstarted() && task.lane.is_none()
        };
        self.tasks().into_iter().find(is_unstarted).map(|task| known_queue(&task.queue))
    }

    /// Returns a task, with an id in the form of its queue.
    fn target(&mut self) -> (QueueName<'static>, &'static [u8]) {
        let tasks = self.tasks();
        if tasks.is_empty() || self.dice.once_in(8) {
            return (self.place(), self.id());
        }
        let index = self.dice.below(tasks.len() as u64);
        let task = tasks[usize::try_from(index).unwrap()];
        (place_of(task), Vec::leak(task.id.to_string().into_bytes()))
    }

    fn held(&mut self) -> Held<'static> {
        let taken: Vec<&TaskRecord> = self
            .tasks()
            .into_iter()
            .filter(|task| matches!(task.progress.state, State::Taken(_)))
            .collect();
        let among_taken = !taken.is_empty() && self.dice.once_in(2);
        if among_taken {
            let index = self.dice.below(taken.len() as u64);
            let task = taken[usize::try_from(index).unwrap()];
            let queue = place_of(task);
            if self.dice.once_in(2) {
                let id = Vec::leak(task.id.to_string().into_bytes());
                return Held { queue, by: HeldBy::Id(id) };
            }
            let receipt = task.receipt().expect("it is taken");
            let queue = self.named_by_receipt(queue);
            return Held { queue, by: HeldBy::Receipt(receipt) };
        }
        if !self.memory.receipts.is_empty() && !self.dice.once_in(3) {
            let (queue, receipt) = self.old_receipt();
            return Held { queue, by: HeldBy::Receipt(receipt) };
        }
        let (queue, id) = self.target();
        Held { queue, by: HeldBy::Id(id) }
    }

    /// Returns the receipt of a taken task, if there is one, and sometimes none all the same.
    pub(super) fn taken(&mut self) -> Option<(QueueName<'static>, Receipt)> {
        let taken: Vec<(QueueName<'static>, Receipt)> = self
            .tasks()
            .into_iter()
            .filter_map(|task| Some((place_of(task), task.receipt()?)))
            .collect();
        if taken.is_empty() || self.dice.once_in(4) {
            return None;
        }
        let index = self.dice.below(taken.len() as u64);
        let (queue, receipt) = taken[usize::try_from(index).unwrap()];
        Some((self.named_by_receipt(queue), receipt))
    }

    /// Returns a receipt that was issued at some time, in its queue or in another.
    pub(super) fn old_receipt(&mut self) -> (QueueName<'static>, Receipt) {
        let index = self.dice.below(self.memory.receipts.len() as u64);
        let issued = &self.memory.receipts[usize::try_from(index).unwrap()];
        let queue = if self.dice.once_in(15) {
            self.place()
        } else {
            let member = issued.member.as_deref().map(known_member);
            self.named_by_receipt(QueueName { name: known_queue(&issued.queue), member })
        };
        (queue, issued.receipt)
    }

    fn amendment(&mut self) -> Amendment<'static> {
        let mut amendment = Amendment { payload: self.payload(), ..Amendment::default() };
        if self.dice.once_in(4) {
            amendment.priority = Assign::To(self.priority());
        }
        if self.dice.once_in(3) {
            amendment.ttl = Assign::To(self.maybe_span());
        }
        amendment
    }

    fn transfer(&mut self) -> Transfer<'static> {
        let (queue, id) = self.target();
        Transfer { queue, id, delay: self.delay(), amendment: self.amendment() }
    }

    fn switch(&mut self, mut transfer: Transfer<'static>) -> Command<'static> {
        let to = self.dice.pick(&StateKind::ALL);
        if !self.dice.once_in(5) {
            // Usually what makes sense for that state.
            let delays = matches!(to, StateKind::Waiting | StateKind::Zombie);
            transfer.delay = if delays { self.span() } else { Span::ZERO };
            if !matches!(to, StateKind::Ready | StateKind::Waiting) {
                transfer.amendment.ttl = Assign::Keep;
            }
        }
        Command::Switch { transfer, to }
    }

    fn update(&mut self) -> Update<'static> {
        let (queue, id) = self.target();
        let task = self.model.find(queue, id).ok().flatten().map(|number| self.model.task(number));
        let current = task.and_then(TaskRecord::receipt).filter(|_| self.dice.once_in(2));
        let any = self.dice.once_in(10) && !self.memory.receipts.is_empty();
        let receipt = if any { Some(self.old_receipt().1) } else { current };
        let headers = if self.dice.once_in(6) { Some(b"".as_slice()) } else { self.headers() };
        Update { queue, id, amendment: self.amendment(), receipt, headers }
    }

    fn selection(&mut self) -> Selection {
        // Where tasks take turns, most other selections are refused.
        let take_turns = self.model.homes.values().any(Home::has_turns);
        if self.dice.once_in(if take_turns { 2 } else { 4 }) {
            return self.dice.pick(&[Selection::PINPRIQ, Selection::DEFAULT]);
        }
        Selection {
            from: self.dice.pick(&[End::Min, End::Max]),
            order: self.dice.pick(&[Order::Oldest, Order::Newest]),
            group: self.dice.once_in(2),
            narrow: self.dice.once_in(4),
        }
    }

    fn mode(&mut self) -> TakeMode {
        if self.dice.once_in(3) {
            TakeMode::Pop
        } else {
            match self.maybe_span() {
                Some(ttr) if ttr == Span::from_ms(3) => {
                    TakeMode::Unheld { ttr: None, otherwise: ttr }
                }
                ttr => TakeMode::Lease { ttr },
            }
        }
    }

    fn put(&mut self) -> Put<'static> {
        let mut queue = if self.dice.once_in(200) { &LONG_NAME } else { self.queue() };
        if let Some(crowded) = self.model.queue_with_line()
            && self.dice.once_in(2)
        {
            queue = Vec::leak(crowded.to_vec());
        }
        // What is finished goes soon, and its id can be given again only then.
        let finished = self.finished().filter(|_| self.dice.once_in(3));
        if let Some((of, _)) = finished {
            queue = of;
        }
        let is_given = self.model.gives_ids(queue);
        let names_it = if is_given { !self.dice.once_in(12) } else { self.dice.once_in(60) };
        let ttl = match self.dice.below(8) {
            0..=2 => TimeToLive::Default,
            3 => TimeToLive::Instant,
            4 => TimeToLive::Endless,
            _ => TimeToLive::For(self.span()),
        };
        let payload = self.bytes();
        let key = self.key();
        let ttr = self.dice.once_in(4).then(|| self.span());
        let terms = self.with_extras(Terms::of(key, ttr));
        let wait = self.dice.once_in(4).then(|| self.wait());
        let put = Put {
            queue,
            payload,
            priority: self.priority(),
            delay: if self.dice.once_in(3) { self.delay_of_put() } else { Delay::NONE },
            ttl,
            terms,
            id: match finished {
                Some((_, id)) => Some(id),
                None => names_it.then(|| self.given_id_in(queue)),
            },
            wait,
            unique: self.dice.once_in(4).then(|| self.unique(queue)),
            result: wait.is_some() && self.dice.once_in(2),
            bonds: Bonds::NONE,
            only_if: OnlyIf::Done,
        };
        self.with_bonds(put)
    }

    /// What a task did cost.
    pub(crate) fn spent(&mut self) -> Option<u32> {
        let costs = [None, None, None, Some(1), Some(2), Some(9)];
        if self.dice.once_in(60) { Some(u32::MAX) } else { self.dice.pick(&costs) }
    }

    pub(crate) fn key(&mut self) -> Option<&'static [u8]> {
        self.dice.pick(&[None, None, Some(b"".as_slice()), Some(b"k"), Some(b"k"), Some(b"l")])
    }

    fn unique(&mut self, queue: &[u8]) -> Unique<'static> {
        let keys: [&[u8]; 4] = [b"u", b"v", &[b'w'; 255], b"x"];
        let rare = self.dice.pick(&[StateKind::Taken, StateKind::Taken, StateKind::Waiting]);
        let known = self.tasks().into_iter().find(|task| {
            let is_rare = task.progress.state.kind() == rare;
            is_rare && task.queue.as_ref() == queue && task.unique().is_some()
        });
        if let Some(key) = known.and_then(TaskRecord::unique).filter(|_| self.dice.once_in(3)) {
            let on_duplicate = self.dice.pick(&OnDuplicate::ALL).0;
            let key = Vec::leak(key.to_vec());
            return Unique { key, window: None, on_duplicate };
        }
        let wrong: [&[u8]; 2] = [b"", &[b'w'; 256]];
        let key = self.dice.pick(&keys);
        let key = if self.dice.once_in(30) { self.dice.pick(&wrong) } else { key };
        let window = self.dice.once_in(2).then(|| self.span());
        Unique { key, window, on_duplicate: self.dice.pick(&OnDuplicate::ALL).0 }
    }

    pub(super) fn take(&mut self) -> Take<'static> {
        let (queues, member) = self.some_queues();
        Take {
            queues,
            member,
            count: self.dice.pick(&[1, 1, 1, 1, 2, 3, 0, u32::MAX]),
            wait: self.wait(),
            selection: self.selection(),
            mode: self.mode(),
        }
    }

    /// Leases that are done: none, one or a few, perhaps the same one twice.
    pub(super) fn done(&mut self) -> &'static [Done<'static>] {
        if self.memory.receipts.is_empty() {
            return &[];
        }
        let count = self.dice.pick(&[0, 1, 1, 1, 2, 3]);
        let done = (0..count).map(|_| {
            let (queue, receipt) = self.old_receipt();
            Done { queue: queue.name, receipt, result: self.result() }
        });
        Vec::leak(done.collect())
    }

    fn peek(&mut self) -> Peek<'static> {
        let state = self.dice.once_in(2).then(|| self.dice.pick(&StateKind::ALL));
        let count = self.dice.pick(&[0, 1, 2, 9, u32::MAX]);
        Peek { queue: self.place(), selection: self.selection(), state, count }
    }

    fn scan(&mut self) -> Scan<'static> {
        Scan {
            queue: self.place(),
            after: if self.dice.once_in(2) { self.seq() } else { 0 },
            count: self.page(),
            state: self.dice.once_in(3).then(|| self.dice.pick(&StateKind::ALL)),
            key: self.dice.pick(&[None, None, Some(b"".as_slice()), Some(b"k"), Some(&LONG_NAME)]),
            batch: self.batch_meant(),
        }
    }

    fn leases(&mut self) -> Leases<'static> {
        let queue = self.dice.once_in(3).then(|| self.place());
        let place = LeasePlace {
            lane: self.dice.once_in(2).then(|| self.seq()),
            queue: self.queue(),
            seq: self.seq(),
        };
        Leases { queue, after: self.dice.once_in(2).then_some(place), count: self.page() }
    }

    /// Returns a number that a task, a lane or a member has, had or might have.
    fn seq(&mut self) -> u64 {
        self.model.last_number.saturating_sub(self.dice.below(20))
    }

    fn page(&mut self) -> u32 {
        self.dice.pick(&[1, 1, 2, 3, 100, 1_000, 0, 1_001])
    }

    fn administration(&mut self) -> QueueCommand<'static> {
        let kind = self.kind(QueueCommand::KINDS, |kind| match kind {
            "Set" | "Resume" => 8,
            "Stats" => 6,
            "Create" | "Truncate" | "Drop" | "Share" => 4,
            "Hold" => 1,
            _ => 2,
        });
        self.about = About::of((self.place(), b""));
        QueueCommand::of_kind(kind, self)
    }

    /// The name of a share that tasks may have.
    fn share_name(&mut self) -> &'static [u8] {
        let names: [&[u8]; 5] = [b"", b"k", b"s", b"a", &[b's'; 256]];
        self.dice.pick(&names)
    }

    fn share_change(&mut self) -> ShareChange {
        let rate = Rate { count: self.dice.pick(&[0, 1, 2, 5]), per: self.span() };
        let limits = [Own::Default, Own::Is(None), Own::Is(Some(0)), Own::Is(Some(1))];
        let rates = [Own::Default, Own::Default, Own::Is(None), Own::Is(Some(rate))];
        ShareChange {
            weight: self.dice.once_in(2).then(|| self.dice.pick(&[1, 1, 2, 1_000, 0, 1_001])),
            limit: self.dice.once_in(3).then(|| self.dice.pick(&limits)),
            rate: self.dice.once_in(3).then(|| self.dice.pick(&rates)),
        }
    }

    fn limit(&mut self) -> LimitCommand<'static> {
        let kind = self.kind(LimitCommand::KINDS, |kind| match kind {
            "Set" => 8,
            "Show" => 4,
            _ => 1,
        });
        LimitCommand::of_kind(kind, self)
    }

    /// The name of a limit that queues may use.
    fn limit_name(&mut self) -> &'static [u8] {
        let names: [&[u8]; 9] = [b"l", b"m", b"l", b"m", b"l", b"m", b"none", b"", b"a,b"];
        self.dice.pick(&names)
    }

    fn limit_change(&mut self) -> LimitChange {
        let rate = Rate { count: self.dice.pick(&[0, 1, 2, 5, 5]), per: self.span() };
        let maxima = [None, Some(0), Some(1), Some(2), Some(3)];
        LimitChange {
            max: self.dice.once_in(2).then(|| OrNone(self.dice.pick(&maxima))),
            rate: self.dice.once_in(3).then(|| OrNone(self.dice.pick(&[None, Some(rate)]))),
        }
    }

    fn policies(&mut self) -> Vec<Assignment<'static>> {
        let mut changes: Vec<Assignment<'static>> = Vec::new();
        if self.dice.once_in(2) {
            let all = [None, Some(0), Some(1), Some(1), Some(2), Some(3)];
            changes.push((ATTEMPTS, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(3) {
            changes.push((BACKOFF, self.maybe_span().into()));
        }
        if self.dice.once_in(3) {
            changes.push((BACKOFFMAX, self.span().into()));
        }
        if self.dice.once_in(2) {
            let queue = self.queue();
            let all = [Value::None, Value::Bytes(queue), Value::Bytes(queue)];
            changes.push((DEADLETTER, self.dice.pick(&all)));
        }
        if self.dice.once_in(3) {
            changes.push((ONEXPIRY, Value::Word(self.dice.pick(&[0, 1, 1]))));
        }
        if self.dice.once_in(4) {
            let all = [None, None, Some(0), Some(1), Some(2), Some(3)];
            changes.push((LIMIT, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(4) {
            let rate = Rate { count: self.dice.pick(&[0, 1, 1, 2, 3, 5]), per: self.span() };
            changes.push((RATE, self.dice.pick(&[None, Some(rate), Some(rate)]).into()));
        }
        if self.dice.once_in(4) {
            let all = [None, Some(0), Some(8), Some(40), Some(200)];
            changes.push((CAPACITYBYTES, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(3) {
            changes.push((OVERFLOW, Value::Word(self.dice.pick(&[0, 1, 1]))));
        }
        if self.dice.once_in(4) {
            changes.push((RELEASEFAILS, Value::Word(self.dice.pick(&[0, 1, 1]))));
        }
        if self.dice.once_in(6) {
            changes.push((COSTMAX, COSTMAX.example(self.dice.below(60))));
        }
        if self.dice.once_in(3) {
            changes.extend(self.turns());
        }
        changes
    }

    /// Settings of fair queues and of keys and shares, and those that came later. From time to time
    /// all of them end, so that there are plain queues too.
    fn turns(&mut self) -> Vec<Assignment<'static>> {
        let ends = self.dice.once_in(6);
        let mut changes: Vec<Assignment<'static>> = Vec::new();
        for setting in SETTINGS.into_iter().filter(|it| it.tag > COSTMAX.tag) {
            if ends {
                changes.push((setting, setting.usual()));
            } else if setting == USES && !self.dice.once_in(8) {
                changes.extend(self.known_limits().map(|uses| (USES, Value::Bytes(uses))));
            } else if self.dice.once_in(4) {
                changes.push((setting, setting.example(self.dice.below(60))));
            }
        }
        if !ends && self.dice.once_in(3) {
            let all = [Ranking::Strict, Ranking::Fair, Ranking::Fair, Ranking::Ageing];
            let ageing = Span::from_ms(1 + self.dice.below(20));
            changes.retain(|(setting, _)| *setting != RANKING && *setting != AGEING);
            changes.push((RANKING, self.dice.pick(&all).into()));
            changes.push((AGEING, Some(ageing).into()));
            changes.sort_by_key(|(setting, _)| setting.tag);
        }
        changes
    }

    /// Limits that are there, or now and then none: unknown ones are refused with all that is set
    /// beside them.
    fn known_limits(&mut self) -> Option<&'static [u8]> {
        let known = self.model.named_limits.values().map(|limit| limit.record.name.to_vec());
        let known: Vec<Vec<u8>> = known.filter(|_| !self.dice.once_in(3)).collect();
        (!known.is_empty()).then(|| &*known.join(&b',').leak())
    }

    fn settings(&mut self) -> &'static [Assignment<'static>] {
        let mut changes: Vec<Assignment<'static>> = Vec::new();
        if self.dice.once_in(2) {
            let all = [Ids::Sequence, Ids::Time64, Ids::Uuid, Ids::Given, Ids::Given];
            changes.push((IDS, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(3) {
            changes.push((TTL, self.maybe_span().into()));
        }
        if self.dice.once_in(3) {
            changes.push((TTR, self.maybe_span().into()));
        }
        if self.dice.once_in(2) {
            let stay = self.span();
            let all = [AfterAck::Delete, AfterAck::Keep, AfterAck::Zombie(stay)];
            changes.push((AFTERACK, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(3) {
            let all = [None, None, Some(0), Some(1), Some(6)];
            changes.push((CAPACITY, self.dice.pick(&all).into()));
        }
        if self.dice.once_in(2) {
            changes.extend(self.policies());
        }
        Vec::leak(changes)
    }
}

/// Returns the chosen name as one that lives as long as the tests.
fn known_queue(name: &[u8]) -> &'static [u8] {
    let known = QUEUES.into_iter().chain(TOPICS).find(|known| *known == name);
    known.unwrap_or(b"not there")
}
