//! A fan-out for the tests: an engine with methods for what its members do.
//!
//! Each call into the engine makes one batch of changes, as a store would write it. The engine is
//! checked after each call. What a store does with places is not tested here.

use std::collections::BTreeMap;

use pinpriq_engine::Engine;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{Ack, HeldBy, Put, Take, TakeMode, Wait};
use pinpriq_proto::command::{Command, Held, Peek, QueueCommand, QueueName, Selection};
use pinpriq_proto::fanout::{Deadline, MemberCommand, MemberFigures, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::settings::Assignment;
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::{ClientId, Receipt, RequestId, StateKind, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const WORKER: ClientId = ClientId(1);

/// What one call reported.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) changes: Vec<Change>,
    header: Header,
}

pub(super) struct Bench {
    pub(super) engine: Engine,
    now: Timestamp,
    last_request: u64,
    incarnation: u64,
    pub(super) batches: Vec<Batch>,
    /// Whether to check the engine after each call. A check costs as much as the engine holds.
    pub(super) checks: bool,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(super) fn with(limits: Limits) -> Self {
        let mut engine = Engine::new(limits, 5);
        let now = Timestamp::from_ms(1_000);
        engine.start(now, 1, Header::default());
        Self { engine, now, last_request: 0, incarnation: 1, batches: Vec::new(), checks: true }
    }

    /// Returns the server after a crash that left the first `count` batches.
    pub(super) fn after_crash(&self, count: usize) -> Self {
        let mut engine = Engine::new(Limits::default(), 5);
        let mut header = Header { incarnation: self.incarnation, ..Header::default() };
        for batch in &self.batches[..count] {
            for change in &batch.changes {
                engine.restore(change.clone(), None);
            }
            header = batch.header;
        }
        let incarnation = self.incarnation + 1;
        engine.start(self.now, incarnation, header);
        let batches = self.batches[..count].to_vec();
        let mut bench = Self { engine, incarnation, batches, last_request: 0, ..*self };
        bench.collect();
        bench
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets time pass without a call.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now = self.now.after(Span::from_ms(ms));
    }

    /// Makes one call for what is due.
    pub(super) fn tick(&mut self) -> Vec<Output> {
        self.engine.handle_timeout(self.now);
        self.collect()
    }

    /// Makes calls until nothing is due. Returns their number and all outputs.
    pub(super) fn settle(&mut self) -> (usize, Vec<Output>) {
        let (mut calls, mut outputs) = (0, Vec::new());
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            outputs.extend(self.tick());
            calls += 1;
            assert!(calls < 1_000, "it never ends");
        }
        (calls, outputs)
    }

    /// Returns the outputs of a command.
    pub(super) fn send(&mut self, client: ClientId, command: Command<'_>) -> Vec<Output> {
        self.last_request += 1;
        self.engine.apply(self.now, client, RequestId(self.last_request), &command);
        self.collect()
    }

    fn collect(&mut self) -> Vec<Output> {
        let mut changes = Vec::new();
        self.engine.take_changes(&mut changes);
        if !changes.is_empty() {
            self.batches.push(Batch { changes, header: self.engine.header() });
        }
        if self.checks {
            self.engine.check();
        }
        std::iter::from_fn(|| self.engine.poll_output()).collect()
    }

    /// Returns the reply to a command that does not wait.
    #[track_caller]
    pub(super) fn ask(&mut self, command: Command<'_>) -> Reply {
        let outputs = self.send(WORKER, command);
        let own = RequestId(self.last_request);
        let reply = outputs.into_iter().find_map(|output| match output {
            Output::Reply { request, reply, .. } if request == own => Some(reply),
            _ => None,
        });
        reply.expect("a reply at once")
    }

    #[track_caller]
    pub(super) fn count(&mut self, command: Command<'_>) -> u64 {
        match self.ask(command) {
            Reply::Count(count) => count,
            other => panic!("no count but {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn refused(&mut self, command: Command<'_>) -> RefusalKind {
        match self.ask(command) {
            Reply::Refused(refusal) => refusal.kind,
            other => panic!("not refused but {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn join(&mut self, topic: &str, member: &str) -> u64 {
        self.join_for(topic, member, None)
    }

    #[track_caller]
    pub(super) fn join_for(&mut self, topic: &str, member: &str, lease_ms: Option<u64>) -> u64 {
        let (topic, member) = (topic.as_bytes(), member.as_bytes());
        let lease = lease_ms.map(Span::from_ms);
        match self.ask(Command::Member(MemberCommand::Join { topic, member, lease })) {
            Reply::Joined(incarnation) => incarnation,
            other => panic!("not joined but {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn leave(&mut self, member: &str) -> u64 {
        self.count(Command::Member(MemberCommand::Leave(member.as_bytes())))
    }

    #[track_caller]
    pub(super) fn publish(&mut self, topic: &str, payload: &str) -> u64 {
        self.count(publish(topic, payload, Deadline::OfLane))
    }

    #[track_caller]
    pub(super) fn members(&mut self, topic: &str) -> Vec<MemberFigures> {
        match self.ask(Command::Member(MemberCommand::List(topic.as_bytes()))) {
            Reply::Members(members) => members,
            other => panic!("no members but {other:?}"),
        }
    }

    /// Returns the payloads that a lane would hand out, in that order.
    #[track_caller]
    pub(super) fn ready(&mut self, topic: &str, member: &str) -> Vec<String> {
        let (selection, state) = (Selection::DEFAULT, Some(StateKind::Ready));
        let peek = Peek { queue: lane(topic, member), selection, state, count: u32::MAX };
        match self.ask(Command::Peek(peek)) {
            Reply::Shown(tasks) => payloads(&tasks),
            other => panic!("no tasks but {other:?}"),
        }
    }

    /// Takes `count` tasks of a lane for ten seconds.
    #[track_caller]
    pub(super) fn take(&mut self, topic: &str, member: &str, count: u32) -> Vec<TaskRecord> {
        let mode = TakeMode::Lease { ttr: Some(Span::from_ms(10_000)) };
        self.obtain(topic, member, count, mode)
    }

    #[track_caller]
    pub(super) fn pop(&mut self, topic: &str, member: &str, count: u32) -> Vec<TaskRecord> {
        self.obtain(topic, member, count, TakeMode::Pop)
    }

    #[track_caller]
    fn obtain(&mut self, topic: &str, member: &str, count: u32, mode: TakeMode) -> Vec<TaskRecord> {
        let (queues, member) = (&[topic.as_bytes()][..], Some(member.as_bytes()));
        let (wait, selection) = (Wait::No, Selection::DEFAULT);
        match self.ask(Command::Take(Take { queues, member, count, wait, selection, mode })) {
            Reply::Tasks { tasks, .. } => tasks,
            other => panic!("no tasks but {other:?}"),
        }
    }

    /// Blocks a take in a lane.
    #[track_caller]
    pub(super) fn block(&mut self, client: ClientId, topic: &str, member: &str) {
        let take = Take {
            queues: &[topic.as_bytes()],
            member: Some(member.as_bytes()),
            count: 1,
            wait: Wait::Forever,
            selection: Selection::DEFAULT,
            mode: TakeMode::Pop,
        };
        assert_eq!(self.send(client, Command::Take(take)), [], "it blocks");
    }

    #[track_caller]
    pub(super) fn ack(&mut self, topic: &str, receipt: Receipt) -> Result<(), RefusalKind> {
        let held = Held { queue: topic.as_bytes().into(), by: HeldBy::Receipt(receipt) };
        match self.ask(Command::Ack(Ack::new(held))) {
            Reply::Done => Ok(()),
            Reply::Refused(refusal) => Err(refusal.kind),
            other => panic!("not acknowledged but {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn put(&mut self, queue: &str, payload: &str) {
        let put = Put::new(queue.as_bytes(), payload.as_bytes());
        let reply = self.ask(Command::Put(put));
        assert!(matches!(reply, Reply::Put(_)), "{reply:?}");
    }

    #[track_caller]
    pub(super) fn set(&mut self, queue: QueueName<'_>, settings: &[Assignment<'_>]) {
        let set = Command::Queue(QueueCommand::Set { queue, settings });
        assert_eq!(self.ask(set), Reply::Done);
    }

    #[track_caller]
    pub(super) fn figures(&mut self, queue: Option<QueueName<'_>>) -> Figures {
        match self.ask(Command::Queue(QueueCommand::Stats(queue))) {
            Reply::Figures(figures) => *figures,
            other => panic!("no figures but {other:?}"),
        }
    }

    /// Returns the registered members and the lanes, in that order, according to the batches.
    pub(super) fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        for change in self.batches.iter().flat_map(|batch| &batch.changes) {
            kept.fold(change);
        }
        kept
    }
}

/// What a store holds of members and lanes.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The incarnations of registered members, and whether they have ended.
    pub(super) members: BTreeMap<u64, bool>,
    /// The incarnation of the member of each lane.
    pub(super) lanes: BTreeMap<u64, u64>,
    /// The number of lanes of each member.
    lane_counts: BTreeMap<u64, u64>,
}

impl Kept {
    /// Applies a change, and checks that every lane has a registered member.
    pub(super) fn fold(&mut self, change: &Change) {
        match change {
            Change::Member(member) => {
                self.members.insert(member.incarnation, member.ended);
            }
            Change::MemberGone(incarnation) => {
                assert!(self.members.remove(incarnation).is_some(), "it was registered");
                let left = self.lane_counts.get(incarnation).copied().unwrap_or(0);
                assert_eq!(left, 0, "the registration goes after all lanes");
            }
            Change::Lane(lane) => {
                assert!(self.members.contains_key(&lane.member), "a lane has a member");
                if self.lanes.insert(lane.number, lane.member).is_none() {
                    *self.lane_counts.entry(lane.member).or_default() += 1;
                }
            }
            Change::LaneGone(number) => {
                let member = self.lanes.remove(number).expect("the lane was there");
                *self.lane_counts.entry(member).or_default() -= 1;
            }
            _ => {}
        }
    }
}

pub(super) fn lane<'a>(topic: &'a str, member: &'a str) -> QueueName<'a> {
    QueueName { name: topic.as_bytes(), member: Some(member.as_bytes()) }
}

pub(super) fn publish<'a>(topic: &'a str, payload: &'a str, deadline: Deadline) -> Command<'a> {
    let (topic, payload) = (topic.as_bytes(), payload.as_bytes());
    Command::Publish(Publish {
        topic,
        payload,
        deadline,
        priority: Some(0),
        terms: Terms { key: None, ..Terms::NONE },
    })
}

pub(super) fn payloads(tasks: &[TaskRecord]) -> Vec<String> {
    tasks.iter().map(|task| String::from_utf8_lossy(&task.payload).into_owned()).collect()
}

/// Returns the refusals among these outputs.
pub(super) fn refusals(outputs: &[Output]) -> Vec<RefusalKind> {
    let replies = outputs.iter().filter_map(|output| match output {
        Output::Reply { reply: Reply::Refused(refusal), .. } => Some(refusal.kind),
        _ => None,
    });
    replies.collect()
}
