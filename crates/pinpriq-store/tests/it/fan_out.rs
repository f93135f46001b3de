//! Members at work: an engine with its journal on a disk in memory, and random commands about
//! topics. Each command is recorded in the promises.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pinpriq_dice::Dice;
use pinpriq_proto::command::{
    Ack, Amendment, Command, Held, HeldBy, Peek, QueueCommand, QueueName, Release, Selection, Take,
    TakeMode, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{CAPACITY, IDS, Ids, TTL, Value};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, State, StateKind, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{Durable, FaultyDisk, JournalOptions, Position, StoreError};

use crate::driving::{SEGMENT_BYTES, journal};
use crate::promises::{LaneKey, Promises, Seen};
use crate::witness::{Witness, Witnessed};

pub(crate) const TOPICS: [&[u8]; 3] = [b"news", b"orders", b"a rather long name of a topic"];
pub(crate) const MEMBERS: [&[u8]; 4] = [b"anna", b"ben", b"cleo", b"dora"];

/// How long a member lives without a sign of life.
const LEASE: Span = Span::from_ms(700);

/// Options with which the log is compacted as often as possible.
pub(crate) fn tight(salt_seed: u64) -> JournalOptions {
    let slack_bytes = u64::from(SEGMENT_BYTES);
    JournalOptions { slack_bytes, ..crate::driving::options(salt_seed) }
}

/// What a request was for, so that its reply can be noted.
#[derive(Clone)]
enum Purpose {
    Join(LaneKey),
    Publish(usize),
    /// To see whether a publication reached a lane.
    Look(usize, LaneKey),
    Take,
    Remove(usize, usize),
    Replace(usize, usize, Vec<u8>),
    Truncate(usize),
    EndLane(LaneKey),
    EndMember(usize),
    List(usize),
    Show(LaneKey),
    Nothing,
}

/// A taken task: its receipt, its publication and its lane.
type Holding = (Receipt, usize, usize);

/// Why a life could not begin, and what the journal was given nevertheless.
#[derive(Debug)]
pub(crate) struct Unopened {
    pub(crate) error: StoreError,
    pub(crate) witnessed: Rc<RefCell<Witnessed>>,
}

/// One life of a server, seen by its clients.
pub(crate) struct Office {
    pub(crate) durable: Durable,
    pub(crate) promises: Promises,
    pub(crate) witnessed: Rc<RefCell<Witnessed>>,
    pub(crate) now: Timestamp,
    asked: BTreeMap<u64, Purpose>,
    requests: u64,
    holdings: Vec<Holding>,
    /// When each member ends, as far as replies have shown.
    leases: BTreeMap<usize, Timestamp>,
    /// Members whose lease is over: the first call at this moment ends them.
    lapsed: Vec<usize>,
    /// The last publication that was acknowledged, and the number of lanes it reported.
    counted: Option<(usize, usize)>,
    shown: BTreeMap<LaneKey, Vec<TaskRecord>>,
    /// How often a publish was refused. Only a store that is full or has failed refuses one.
    pub(crate) refused_publishes: usize,
}

fn lane_name((topic, member): LaneKey) -> QueueName<'static> {
    QueueName { name: TOPICS[topic], member: Some(MEMBERS[member]) }
}

/// The number of the publication that a payload names.
fn publication_of(payload: &[u8]) -> usize {
    let digits = payload.split(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
    std::str::from_utf8(digits).unwrap().parse().unwrap()
}

fn key_of(task: &TaskRecord) -> LaneKey {
    let member = &task.lane.as_ref().unwrap().member;
    let topic = TOPICS.iter().position(|topic| **topic == *task.queue).unwrap();
    (topic, MEMBERS.iter().position(|name| **name == **member).unwrap())
}

impl Office {
    /// Opens the disk, with nothing promised yet.
    pub(crate) fn open(
        disk: &FaultyDisk,
        options: JournalOptions,
        now: Timestamp,
    ) -> Result<Self, Unopened> {
        let witnessed = Rc::default();
        let opened = journal(disk, options).and_then(|journal| {
            let store = Box::new(Witness { journal, seen: Rc::clone(&witnessed) });
            Durable::open(store, Limits::default(), now, 1)
        });
        match opened {
            Err(error) => Err(Unopened { error, witnessed }),
            Ok((durable, _)) => Ok(Self {
                now: durable.now(),
                durable,
                promises: Promises::default(),
                witnessed,
                asked: BTreeMap::new(),
                requests: 0,
                holdings: Vec::new(),
                leases: BTreeMap::new(),
                lapsed: Vec::new(),
                counted: None,
                shown: BTreeMap::new(),
                refused_publishes: 0,
            }),
        }
    }

    fn ask(&mut self, purpose: Purpose, command: Command<'_>) {
        self.requests += 1;
        self.asked.insert(self.requests, purpose);
        self.durable.apply(self.now, ClientId(1), RequestId(self.requests), &command);
    }

    /// Ends a turn: all its commands become one batch, and its replies are recorded.
    pub(crate) fn end_turn(&mut self) -> Result<(), StoreError> {
        self.durable.commit()?;
        let at = self.witnessed.borrow().last;
        for member in std::mem::take(&mut self.lapsed) {
            self.end_member(member, at);
        }
        while let Some((waits_for, output)) = self.durable.poll_output() {
            let Output::Reply { request, reply, .. } = output else { continue };
            let purpose = self.asked.remove(&request.0).unwrap();
            let must_wait = self.note(purpose, reply, at);
            assert!(!must_wait || waits_for >= at, "a reply leaves before its change is durable");
        }
        if let Some((publication, count)) = self.counted.take() {
            let reached = self.promises.count(publication);
            assert_eq!(reached, count, "the lanes that publication {publication} reached");
        }
        let driven = self.durable.drive(self.now);
        self.witnessed.borrow_mut().history.note_position(self.durable.reached());
        driven
    }

    /// Records the replies of a store that has failed.
    pub(crate) fn note_refusals(&mut self) {
        while let Some((_, Output::Reply { request, reply, .. })) = self.durable.poll_output() {
            assert!(matches!(reply, Reply::Refused(_)), "{reply:?} after a failure");
            let purpose = self.asked.remove(&request.0).unwrap();
            self.note(purpose, reply, Position(u64::MAX));
        }
    }

    /// Records a reply. Returns whether it reported a change.
    fn note(&mut self, purpose: Purpose, reply: Reply, at: Position) -> bool {
        match (purpose, reply) {
            (Purpose::Take, Reply::Tasks { tasks, popped }) => {
                let any = popped && !tasks.is_empty();
                for task in &tasks {
                    self.note_taken(task, popped, at);
                }
                return any;
            }
            (Purpose::Join(key), Reply::Joined(_)) => return self.promises.join(key, at),
            (Purpose::Publish(publication), Reply::Count(count)) => {
                self.counted = Some((publication, usize::try_from(count).unwrap()));
                return count > 0;
            }
            (Purpose::Look(publication, key), Reply::Shown(tasks)) => {
                let found = tasks.iter().any(|task| publication_of(&task.payload) == publication);
                if found && !self.promises.has(publication, key) {
                    self.promises.deliver(publication, key, at);
                }
                return false;
            }
            (Purpose::Remove(publication, lane), Reply::Done | Reply::Count(1)) => {
                self.promises.remove(publication, lane, at);
            }
            (Purpose::Replace(publication, lane, payload), Reply::State(Some(_))) => {
                self.promises.replace(publication, lane, payload, at);
            }
            (Purpose::Truncate(lane), Reply::Count(count)) => {
                self.promises.truncate(lane, at);
                return count > 0;
            }
            (Purpose::EndLane(key), Reply::Count(1)) => self.promises.end_lane(key, at),
            (Purpose::EndMember(member), Reply::Count(count)) => {
                self.end_member(member, at);
                return count > 0;
            }
            (Purpose::List(topic), Reply::Members(members)) => {
                let names: Vec<usize> = members
                    .iter()
                    .map(|known| MEMBERS.iter().position(|name| **name == *known.member).unwrap())
                    .collect();
                let lanes = self.promises.current.keys().filter(|key| key.0 == topic);
                let expected: Vec<usize> = lanes.map(|key| key.1).collect();
                assert_eq!(names, expected, "the members of topic {topic}");
                self.leases.extend(
                    names.iter().zip(members).map(|(name, known)| (*name, known.lease_until)),
                );
                return false;
            }
            (Purpose::Show(key), Reply::Shown(tasks)) => {
                self.shown.entry(key).or_default().extend(tasks);
                return false;
            }
            (Purpose::Publish(_), Reply::Refused(_)) => {
                self.refused_publishes += 1;
                return false;
            }
            _ => return false,
        }
        true
    }

    fn note_taken(&mut self, task: &TaskRecord, popped: bool, at: Position) {
        let (publication, key) = (publication_of(&task.payload), key_of(task));
        if !self.promises.has(publication, key) {
            self.promises.deliver(publication, key, at);
        }
        let lane = self.promises.current[&key];
        if popped {
            self.promises.remove(publication, lane, at);
        } else if let State::Taken(lease) = &task.progress.state {
            let receipt = Receipt { number: task.number, grant: lease.grant };
            self.holdings.push((receipt, publication, lane));
        }
    }

    fn end_member(&mut self, member: usize, at: Position) {
        for topic in 0..TOPICS.len() {
            self.promises.end_lane((topic, member), at);
        }
        self.leases.remove(&member);
    }

    /// Publishes, checks which lanes it reached, and returns its number.
    pub(crate) fn publish(&mut self, topic: usize, bytes: usize, ttl: Option<Span>) -> usize {
        let index = self.promises.publications.len();
        let mut payload = format!("{index}:").into_bytes();
        payload.extend((0..bytes).map(|at| u8::try_from((at * 7 + index) % 251).unwrap()));
        let expires_at = ttl.map(|ttl| self.now.after(ttl));
        let publication = self.promises.publish(payload.clone(), expires_at);
        let publish = Publish {
            topic: TOPICS[topic],
            payload: &payload,
            deadline: ttl.map_or(Deadline::OfLane, Deadline::After),
            priority: Some(i64::try_from(index % 5).unwrap() - 2),
            terms: Terms { key: index.is_multiple_of(3).then_some(b"k"), ..Terms::NONE },
        };
        self.ask(Purpose::Publish(publication), Command::Publish(publish));
        for member in 0..MEMBERS.len() {
            let key = (topic, member);
            self.peek(Purpose::Look(publication, key), key, StateKind::Ready);
        }
        publication
    }

    fn peek(&mut self, purpose: Purpose, key: LaneKey, state: StateKind) {
        let peek = Peek {
            queue: lane_name(key),
            selection: Selection::DEFAULT,
            state: Some(state),
            count: 65_535,
        };
        self.ask(purpose, Command::Peek(peek));
    }

    pub(crate) fn join(&mut self, key: LaneKey) {
        let (topic, member) = (TOPICS[key.0], MEMBERS[key.1]);
        let join = MemberCommand::Join { topic, member, lease: Some(LEASE) };
        self.ask(Purpose::Join(key), Command::Member(join));
    }

    pub(crate) fn beat(&mut self, member: usize) {
        self.beat_for(member, None);
    }

    fn beat_for(&mut self, member: usize, lease: Option<Span>) {
        let beat = MemberCommand::Beat { member: MEMBERS[member], lease };
        self.ask(Purpose::Nothing, Command::Member(beat));
    }

    pub(crate) fn leave(&mut self, member: usize) {
        let leave = MemberCommand::Leave(MEMBERS[member]);
        self.ask(Purpose::EndMember(member), Command::Member(leave));
    }

    pub(crate) fn pop(&mut self, key: LaneKey, count: u32, wait: Wait) {
        self.take(key, count, wait, TakeMode::Pop);
    }

    fn take(&mut self, key: LaneKey, count: u32, wait: Wait, mode: TakeMode) {
        let (queues, member) = ([TOPICS[key.0]], Some(MEMBERS[key.1]));
        let selection = Selection::DEFAULT;
        let take = Take { queues: &queues, member, count, wait, selection, mode };
        self.ask(Purpose::Take, Command::Take(take));
    }

    /// A turn with one random command.
    pub(crate) fn random_turn(&mut self, dice: &mut Dice) -> Result<(), StoreError> {
        self.now = self.now.after(Span::from_ms(dice.below(12)));
        if dice.chance(3) {
            self.now = self.now.after(Span::from_ms(300));
        }
        let over = self.leases.iter().filter(|(_, until)| **until <= self.now);
        self.lapsed = over.map(|(member, _)| *member).collect();
        if dice.chance(50) {
            self.durable.handle_timeout(self.now);
        }
        self.random_command(dice);
        for (topic, name) in TOPICS.into_iter().enumerate() {
            self.ask(Purpose::List(topic), Command::Member(MemberCommand::List(name)));
        }
        self.end_turn()
    }

    fn random_command(&mut self, dice: &mut Dice) {
        let mut below = |count: usize| usize::try_from(dice.below(count as u64)).unwrap();
        let any_key = (below(TOPICS.len()), below(MEMBERS.len()));
        // Most commands that need a lane are about an existing one.
        let pick = below(self.promises.current.len() + 1);
        let key = self.promises.current.keys().nth(pick).copied().unwrap_or(any_key);
        let (roll, bytes, mixed) = (below(100), below(700), below(1_000));
        match roll {
            0..=15 => self.join(any_key),
            16..=19 => {
                let lease = mixed.is_multiple_of(2).then_some(Span::from_ms(500));
                self.beat_for(key.1, lease);
            }
            20..=47 => {
                let ttl = mixed.is_multiple_of(8).then_some(Span::from_ms(60));
                self.publish(key.0, bytes, ttl);
            }
            48..=50 => self.pop(key, 1 + u32::try_from(mixed % 3).unwrap(), Wait::No),
            51..=52 => self.pop(key, 1, Wait::For(Span::from_ms(90))),
            53..=66 => {
                let ttr = mixed.is_multiple_of(3).then_some(Span::from_ms(30));
                self.take(
                    key,
                    1 + u32::try_from(mixed % 3).unwrap(),
                    Wait::No,
                    TakeMode::Lease { ttr },
                );
            }
            67..=88 => self.settle_a_holding(mixed),
            89..=91 => {
                if let Some(&lane) = self.promises.current.get(&key) {
                    let truncate = QueueCommand::Truncate(lane_name(key));
                    self.ask(Purpose::Truncate(lane), Command::Queue(truncate));
                }
            }
            92..=94 => {
                let (topic, member) = (TOPICS[key.0], MEMBERS[key.1]);
                let leave = MemberCommand::LeaveTopic { topic, member };
                self.ask(Purpose::EndLane(key), Command::Member(leave));
            }
            95 => self.leave(key.1),
            _ => self.set(key, mixed),
        }
    }

    fn set(&mut self, key: LaneKey, mixed: usize) {
        let change = match mixed % 4 {
            0 => (CAPACITY, Value::Number(4)),
            1 => (CAPACITY, Value::None),
            2 => (IDS, Ids::Uuid.into()),
            _ => (TTL, Value::Span(Span::from_ms(1 << 40))),
        };
        let set = QueueCommand::Set { queue: lane_name(key), settings: &[change] };
        self.ask(Purpose::Nothing, Command::Queue(set));
    }

    /// Acknowledges, releases, buries or kills a taken task, if there is any.
    fn settle_a_holding(&mut self, mixed: usize) {
        if self.holdings.is_empty() {
            return;
        }
        let (receipt, publication, lane) = self.holdings.remove(mixed % self.holdings.len());
        let queue = lane_name(self.promises.lanes[lane].key);
        let held = Held { queue, by: HeldBy::Receipt(receipt) };
        match mixed % 10 {
            0..=4 => {
                let ack = Ack { held, payload: None, zombie: None };
                self.ask(Purpose::Remove(publication, lane), Command::Ack(ack));
            }
            5..=6 => {
                let payload = format!("{publication}: another one").into_bytes();
                let amendment = Amendment { payload: Some(&payload), ..Amendment::default() };
                let release = Release { held, delay: Span::ZERO, amendment, tail: false };
                let purpose = Purpose::Replace(publication, lane, payload.clone());
                self.ask(purpose, Command::Release(release));
            }
            7..=8 => {
                let delay = Span::from_ms((mixed % 2 * 100) as u64);
                let amendment = Amendment::default();
                let release = Release { held, delay, amendment, tail: mixed % 4 == 3 };
                self.ask(Purpose::Nothing, Command::Release(release));
            }
            _ => self
                .ask(Purpose::Nothing, Command::Bury { held, payload: None, reason: Some(b"no") }),
        }
    }

    /// Returns what clients see now, without what has expired.
    pub(crate) fn look(&mut self, promises: &Promises) -> Seen {
        for topic in 0..TOPICS.len() {
            for member in 0..MEMBERS.len() {
                for kind in StateKind::ALL {
                    self.peek(Purpose::Show((topic, member)), (topic, member), kind);
                }
            }
        }
        self.durable.commit().unwrap();
        while let Some((_, Output::Reply { request, reply, .. })) = self.durable.poll_output() {
            let purpose = self.asked.remove(&request.0).unwrap();
            self.note(purpose, reply, Position(0));
        }
        let mut seen = Seen::new();
        for (key, tasks) in std::mem::take(&mut self.shown) {
            let payloads = seen.entry(key).or_default();
            for task in tasks {
                assert_eq!(key_of(&task), key);
                let publication = publication_of(&task.payload);
                let has_expired = promises.publications[publication]
                    .expires_at
                    .is_some_and(|expires_at| expires_at <= self.now);
                let may_wait = matches!(task.progress.state, State::Ready | State::Waiting { .. });
                assert!(!has_expired || !may_wait, "publication {publication} outlived its end");
                if !has_expired {
                    let former = payloads.insert(publication, task.payload.to_vec());
                    assert!(former.is_none(), "publication {publication} is twice in {key:?}");
                }
            }
        }
        seen
    }

    /// Makes everything durable, including what is written again meanwhile.
    pub(crate) fn finish(&mut self) {
        self.durable.finish(self.now).unwrap();
        for _ in 0..100 {
            if self.durable.figures().bytes_pending == 0 {
                return;
            }
            self.durable.finish(self.now).unwrap();
        }
        panic!("there is always more to be written again");
    }

    /// Lets the engine finish the current clean-up.
    pub(crate) fn clean_up(&mut self) -> Result<(), StoreError> {
        for _ in 0..100 {
            if self.durable.engine().poll_timeout().is_none_or(|at| at > self.now) {
                return Ok(());
            }
            self.durable.handle_timeout(self.now);
            self.end_turn()?;
        }
        panic!("the clean-up does not come to an end");
    }
}
