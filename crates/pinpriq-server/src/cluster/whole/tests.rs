//! What is carried into a cluster is all there or is not served, and comes out again as it was.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pinpriq_cluster::{Instance, Meta, NodeRecord, Registry, RolledBack};
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::task::{Grant, Lease, State};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::Contents;
use pinpriq_store::ledger::{
    Answer, Appended, Call, Ledger, LedgerOptions, LedgerStore, Resolved, Term, Trimmed,
    Unreachable, Writer,
};
use pinpriq_store::reshard::distribute;
use pinpriq_store::{Fold, Store as _, Urgency};
use pinpriq_testing::ledgers::FakeKnobs;
use pinpriq_testing::stores::{
    Caller, sample_lane, sample_lane_task, sample_member, sample_publication, sample_queue,
    sample_schedule, sample_task, sample_window,
};

use super::super::config::{LogEnds, Wake};
use super::super::founding::new_meta;
use super::super::tests::{EngineInMemory, SHARDS};
use super::*;

/// An engine that is meddled with: its calls are counted, and something happens at one of them.
struct Meddled {
    memory: Arc<EngineInMemory>,
    plan: Arc<Plan>,
}

struct Plan {
    /// The number of calls that are answered. No later one is carried out.
    answered: u64,
    /// Whether the first one that is not answered is carried out nevertheless.
    is_carried_out: bool,
    asked: AtomicU64,
    /// What happens when a log is asked, and whether it happens once more.
    meddle: Mutex<Option<Meddle>>,
}

/// Receives the call, and returns whether it wants the next one.
type Meddle = Box<dyn FnMut(&Call) -> bool + Send>;

impl Meddled {
    fn new(memory: &Arc<EngineInMemory>, answered: u64, is_carried_out: bool) -> Self {
        let plan = Plan { answered, is_carried_out, asked: 0.into(), meddle: Mutex::new(None) };
        Self { memory: memory.clone(), plan: Arc::new(plan) }
    }

    fn with(
        memory: &Arc<EngineInMemory>,
        meddle: impl FnMut(&Call) -> bool + Send + 'static,
    ) -> Self {
        let meddled = Self::new(memory, u64::MAX, false);
        *meddled.plan.meddle.lock().unwrap() = Some(Box::new(meddle));
        meddled
    }
}

impl Plan {
    /// Whether the next call is answered, and whether it is carried out.
    fn next(&self) -> (bool, bool) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_answered = asked < self.answered;
        (is_answered, is_answered || (self.is_carried_out && asked == self.answered))
    }
}

impl ClusterEngine for Meddled {
    fn ledger(&self, shard: ShardNumber, writer: Writer, wake: Wake) -> Box<dyn Ledger> {
        let (inner, plan) = (self.memory.ledger(shard, writer, wake), self.plan.clone());
        Box::new(MeddledLedger { inner, plan, answers: VecDeque::new() })
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        self.memory.log_ends(shards)
    }

    fn registry(&self, session_ttl: Duration, wake: Wake) -> Box<dyn Registry> {
        let inner = self.memory.registry(session_ttl, wake);
        Box::new(MeddledRegistry { inner, plan: self.plan.clone(), is_lost: false })
    }
}

struct MeddledLedger {
    inner: Box<dyn Ledger>,
    plan: Arc<Plan>,
    answers: VecDeque<Answer>,
}

impl MeddledLedger {
    /// Waits for the answer of this kind, and drops it. The others are kept.
    fn lose_answer_like(&mut self, unknown: &Answer) {
        loop {
            match self.inner.poll() {
                Some(answer) if discriminant(&answer) == discriminant(unknown) => break,
                answer => self.answers.extend(answer),
            }
        }
    }
}

impl Ledger for MeddledLedger {
    fn start(&mut self, call: Call) {
        let meddle = self.plan.meddle.lock().unwrap().take();
        if let Some(mut meddle) = meddle
            && meddle(&call)
        {
            *self.plan.meddle.lock().unwrap() = Some(meddle);
        }
        let (is_answered, is_carried_out) = self.plan.next();
        if is_carried_out {
            self.inner.start(call.clone());
        }
        if is_answered {
            return;
        }
        let lost = Unreachable { why: "it is gone".to_owned() };
        let unknown = match call {
            Call::Seize { .. } => Answer::Seized(Err(lost)),
            Call::Append { .. } => Answer::Appended(Appended::Unknown),
            Call::Resolve { .. } => Answer::Resolved(Resolved::Unknown),
            Call::Read { .. } => Answer::Read(Err(lost)),
            Call::Trim { .. } => Answer::Trimmed(Trimmed::Unknown),
            Call::Status => Answer::Status(Err(lost)),
        };
        if is_carried_out {
            self.lose_answer_like(&unknown);
        }
        self.answers.push_back(unknown);
    }

    fn poll(&mut self) -> Option<Answer> {
        self.answers.pop_front().or_else(|| self.inner.poll())
    }

    fn wait(&mut self) {}

    fn target_bytes(&self) -> usize {
        self.inner.target_bytes()
    }
}

struct MeddledRegistry {
    inner: Box<dyn Registry>,
    plan: Arc<Plan>,
    is_lost: bool,
}

impl Registry for MeddledRegistry {
    fn start(&mut self, call: RegistryCall) {
        let (is_answered, is_carried_out) = self.plan.next();
        self.is_lost = !is_answered;
        // What is started wakes the caller at once.
        self.inner.start(if is_carried_out { call } else { RegistryCall::Find });
    }

    fn poll(&mut self) -> Option<RegistryAnswer> {
        let answer = self.inner.poll()?;
        let lost = || RegistryAnswer::Unreachable("it is gone".to_owned());
        Some(if self.is_lost { lost() } else { answer })
    }
}

fn folded(changes: &[Change]) -> Fold {
    let (mut fold, mut freed) = (Fold::new(), Vec::new());
    for change in changes {
        fold.apply(change, None, &mut freed);
    }
    fold.forget_unshared(&mut freed);
    fold
}

/// A single server with everything that can be kept. Its queues are called differently for each
/// `tag`.
fn server(tag: &str, incarnation: u64) -> Contents {
    let queue = format!("{{{tag}}}q");
    let mut changes = vec![
        sample_queue(&queue, true),
        sample_task(1, &queue, 100),
        sample_task(2, "other", 70_000),
        sample_schedule(4, &format!("{{{tag}}}s"), &queue, 10),
        sample_window(5, &queue),
        sample_member(10, "m"),
        sample_lane(11, "topic", 10),
        sample_member(12, "n"),
        sample_lane(13, "topic", 12),
        sample_publication(15, &[11, 13], 2_000),
        sample_lane_task(15, 11, None),
        sample_lane_task(20, 13, Some(30)),
    ];
    changes.extend((30..200).map(|number| sample_task(number, &format!("q{number}"), 1_000)));
    let Change::Task(mut leased) = sample_task(3, &queue, 5) else { unreachable!() };
    let ttr = Some(Span::from_ms(60_000));
    let (grant, deadline) = (Grant { incarnation, serial: 3 }, Some(Timestamp::from_ms(70_000)));
    leased.progress.state = State::Taken(Lease { grant, holder: None, deadline, ttr });
    changes.push(Change::Task(leased));
    let header = Header { incarnation, now: Timestamp::from_ms(9_000), last_number: 777 };
    Contents { header, fold: folded(&changes) }
}

/// The same, divided as in a cluster.
fn divided(server: &Contents) -> Vec<Contents> {
    let (from, to) = (Division::of_server(1), division_of_cluster(SHARDS));
    distribute(vec![server.clone()], from, to).unwrap()
}

/// What a cluster holds, joined as for a single server.
fn joined(engine: &dyn ClusterEngine) -> Contents {
    let (meta, contents) = export(engine).unwrap();
    let (from, to) = (division_of_cluster(meta.shards), Division::of_server(1));
    let mut joined = distribute(contents, from, to).unwrap();
    let Contents { header, fold } = joined.pop().unwrap();
    Contents { header, fold: fold.without_places() }
}

/// What a node finds in the log of a shard, and whether it takes it over.
fn loaded(memory: &EngineInMemory, shard: u16) -> (Header, Fold, bool) {
    let ledger = Box::new(memory.logs.ledger(shard, Writer(7)));
    let mut store = LedgerStore::new(ledger, LedgerOptions::default());
    let (mut fold, mut freed) = (Fold::new(), Vec::new());
    let mut sink = |change: Change, place| fold.apply(&change, place, &mut freed);
    let loaded = store.load(&mut sink).unwrap();
    fold.forget_unshared(&mut freed);
    (loaded.header, fold.without_places(), loaded.is_takeover)
}

#[test]
fn what_was_imported_is_what_nodes_load_and_what_is_exported() {
    let memory = EngineInMemory::new();
    let before = server("a", 5);
    let contents = divided(&before);
    let meta = import(&*memory, &contents).unwrap();
    assert_eq!((meta.shards, meta.generation, meta.importing), (SHARDS, 0, false));
    assert_eq!(memory.meta(), meta);
    let after = joined(&*memory);
    assert!(after.fold == before.fold, "something is lost or altered");
    assert_eq!(after.header.now, before.header.now);
    let above_all = Term::first_of(1).0;
    assert!(after.header.incarnation > above_all, "no node of this generation begins it");
    let mut numbers = Vec::new();
    for (shard, contents) in (0..).zip(&contents) {
        let (header, fold, is_takeover) = loaded(&memory, shard);
        assert!(fold == contents.fold, "shard {shard}");
        assert!(!is_takeover, "leases go on as after a stop");
        assert_eq!(header.now, before.header.now);
        assert!(header.incarnation > before.header.incarnation);
        assert!(header.last_number >= contents.header.last_number);
        numbers.push(header.last_number);
    }
    assert!(numbers[0] > 777 && numbers[1] >= numbers[0] + (1 << 46), "{numbers:?}");
    let copied = after.header.last_number;
    assert!(copied >= numbers[1] + (1 << 46), "{copied} is given by no other shard");

    // The copy goes on as a server, and comes back as a cluster.
    let again = EngineInMemory::new();
    let meta = import(&*again, &divided(&after)).unwrap();
    assert_eq!(meta.generation, 1);
    let (header, ..) = loaded(&again, 0);
    assert!(header.incarnation > after.header.incarnation);
    assert_eq!(Term(header.incarnation).generation(), 1);
    assert!(joined(&*again).fold == before.fold, "something is lost or altered");
}

#[test]
fn a_cluster_that_was_never_served_is_empty() {
    let memory = EngineInMemory::new();
    let meta = new_meta(SHARDS);
    memory.ask(RegistryCall::Found(meta.clone()));
    let (found, contents) = export(&*memory).unwrap();
    assert_eq!((found, contents.len()), (meta, usize::from(SHARDS)));
    assert!(contents.iter().all(|it| it.fold == Fold::new()));
}

/// Stops an import after this many calls. Returns whether there is more to do.
fn interrupted(answered: u64, is_carried_out: bool) -> bool {
    let memory = EngineInMemory::new();
    let (first, second) = (server("a", 5), server("b", 5));
    let result = import(&Meddled::new(&memory, answered, is_carried_out), &divided(&first));
    let what = format!("after {answered} calls, {is_carried_out}");
    let meta = match memory.ask(RegistryCall::Find) {
        RegistryAnswer::Meta(meta) => Some(meta),
        _ => None,
    };
    if meta.as_ref().is_some_and(|meta| !meta.importing) {
        assert!(joined(&*memory).fold == first.fold, "{what}: it is complete");
        return result.is_err();
    }
    assert!(result.is_err(), "{what}");
    assert!(export(&*memory).is_err(), "{what}");
    let made = import(&*memory, &divided(&second)).unwrap();
    assert_ne!(meta.map(|meta| meta.id), Some(made.id), "{what}: it is another cluster");
    assert!(joined(&*memory).fold == second.fold, "{what}: the second one is alone");
    for shard in 0..SHARDS {
        assert!(!loaded(&memory, shard).2, "{what}");
    }
    true
}

#[test]
fn an_interrupted_import_is_never_served_and_the_next_one_is_whole() {
    for is_carried_out in [false, true] {
        let steps = (0..10_000).find(|answered| !interrupted(*answered, is_carried_out)).unwrap();
        assert!(steps > 15, "{steps} calls");
    }
}

/// Lets another import run as a whole before this one asks a log for the time `at`. Returns whether
/// it came to that.
fn overtaken(at: usize) -> bool {
    let memory = EngineInMemory::new();
    let (first, second) = (server("a", 5), server("b", 5));
    let (mut asked, other, contents) = (0, memory.clone(), divided(&second));
    let meddled = Meddled::with(&memory, move |_| {
        asked += 1;
        if asked == at {
            import(&*other, &contents).unwrap();
        }
        asked < at
    });
    let Err(error) = import(&meddled, &divided(&first)) else { return false };
    assert!(matches!(error, WholeError::Superseded), "{at}: {error}");
    assert!(joined(&*memory).fold == second.fold, "{at}: the second one is alone");
    true
}

#[test]
fn an_import_that_was_overtaken_writes_nothing_any_more() {
    let times = (1..1_000).take_while(|at| overtaken(*at)).count();
    assert!(times > 8, "{times} calls of logs");
}

#[test]
fn trouble_of_the_engine_is_gone_through() {
    for seed in 0..20 {
        let memory = EngineInMemory::new();
        let knobs = FakeKnobs { full: 0, raced: 0, ..FakeKnobs::ROUGH };
        memory.logs.set_knobs(knobs);
        let server = server(&seed.to_string(), seed);
        import(&*memory, &divided(&server)).unwrap();
        assert!(joined(&*memory).fold == server.fold, "seed {seed}");
    }
}

#[track_caller]
fn refused(memory: &EngineInMemory, part: &str) {
    let ends = memory.log_ends(3).unwrap();
    let error = import(memory, &divided(&server("a", 5))).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains(part), "{error}");
    assert_eq!(memory.log_ends(3).unwrap(), ends, "no log was touched");
}

#[test]
fn an_engine_that_is_not_empty_is_refused() {
    let memory = EngineInMemory::new();
    memory.ask(RegistryCall::Found(Meta { id: 0xabc, ..new_meta(SHARDS) }));
    refused(&memory, "it holds the cluster 00000000000000000000000000000abc with 2 shards");

    let memory = EngineInMemory::new();
    drop(Caller::start(Box::new(LedgerStore::new(
        Box::new(memory.logs.ledger(2, Writer(7))),
        LedgerOptions::default(),
    ))));
    refused(&memory, "it holds a log of shard 2, although there is no cluster");

    let memory = EngineInMemory::new();
    let mut node = memory.registry(Duration::ZERO, Arc::new(|| ()));
    let (instance, name) = (Instance(7), "n7".to_owned());
    node.start(RegistryCall::Announce(NodeRecord { instance, name, ..NodeRecord::default() }));
    refused(&memory, "the node n7 runs on it");
    memory.ask(RegistryCall::Found(Meta { importing: true, ..new_meta(SHARDS) }));
    refused(&memory, "the node n7 runs on it");
}

#[test]
fn a_cluster_that_is_not_whole_is_not_copied() {
    let refused = |meta: Meta| {
        let memory = EngineInMemory::new();
        memory.ask(RegistryCall::Found(meta));
        let error = export(&*memory).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        error.to_string()
    };
    let error = refused(Meta { importing: true, ..new_meta(SHARDS) });
    assert!(error.contains("is being imported into it"), "{error}");
    let rolled_back = Some(RolledBack::default());
    let error = refused(Meta { rolled_back, ..new_meta(SHARDS) });
    assert!(error.contains("accept-rollback"), "{error}");
}

#[test]
fn a_shard_at_work_is_copied_as_it_was_at_one_moment() {
    let memory = EngineInMemory::new();
    memory.ask(RegistryCall::Found(new_meta(SHARDS)));
    // Each entry has one batch, a read returns a part, and little is kept that does not count.
    memory.logs.set_knobs(FakeKnobs { target_bytes: 1, read_short: 100, ..FakeKnobs::PERFECT });
    let options = LedgerOptions { slack_bytes: 1, ..LedgerOptions::default() };
    let ledger = Box::new(memory.logs.ledger(0, Writer(7)));
    let mut owner = Caller::start(Box::new(LedgerStore::new(ledger, options))).unwrap();
    for number in 1..=20 {
        owner.append(&[sample_task(number, "q", 100)], Urgency::Soon).unwrap();
        owner.settle().unwrap();
    }
    // The owner goes on while its log is read: tasks end, and others come. In between, everything
    // is removed that was read before.
    let seen = Arc::new(Mutex::new(vec![owner.fold.without_places()]));
    let (history, mut number, mut reads) = (seen.clone(), 20, 0);
    let meddled = Meddled::with(&memory, move |call| {
        reads += u64::from(matches!(call, Call::Read { .. }));
        let steps = if reads == 2 { 60 } else { u64::from(reads == 4) };
        for _ in 0..steps {
            number += 1;
            let gone = Change::Gone(number - 20);
            owner.append(&[gone, sample_task(number, "q", 100)], Urgency::Soon).unwrap();
            owner.settle().unwrap();
            history.lock().unwrap().push(owner.fold.without_places());
        }
        true
    });
    let (_, contents) = export(&meddled).unwrap();
    let copied = contents[0].fold.without_places();
    let seen = seen.lock().unwrap();
    let moment = seen.iter().position(|it| *it == copied);
    assert!(moment.is_some_and(|moment| moment > 0), "{moment:?} of {}", seen.len());
    assert_eq!(contents[1].fold, Fold::new());
}
