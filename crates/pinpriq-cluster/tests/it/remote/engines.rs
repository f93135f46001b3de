//! What the tests of both engines share: the suites for logs and for registries, nodes whose calls
//! are made one after the other, and a runtime. Tests nothing.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pinpriq_cluster::remote::RegistryClient;
use pinpriq_cluster::{
    Instance, Meta, NodeRecord, OwnRecord, OwnState, Registry, RegistryAnswer, RegistryCall, View,
};
use pinpriq_store::ledger::{Answer, Call, Ledger, Writer};
use pinpriq_testing::ledgers;
use pinpriq_testing::registries::Bench;
use tokio::runtime::{Builder, Handle};

/// How many cases run at the same time.
const TOGETHER: usize = 8;

/// The time to live of a session in the suite.
const TTL: Duration = Duration::from_secs(3);

/// A runtime on its own thread, until the tests end.
pub(crate) fn runtime() -> Handle {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(pending::<()>()));
    handle
}

/// Lets this time pass.
pub(crate) fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::sync_channel::<()>(0);
    assert!(receiver.recv_timeout(time).is_err());
}

/// Asks a log, and waits for the answer.
pub(crate) fn ask(ledger: &mut dyn Ledger, call: Call) -> Answer {
    ledger.start(call);
    ledger.wait();
    ledger.poll().unwrap()
}

struct LedgerBench<F> {
    open: F,
    shards: u16,
}

impl<F: FnMut(u16, Writer) -> Box<dyn Ledger>> ledgers::Bench for LedgerBench<F> {
    fn ledger(&mut self, shard: u16, writer: Writer) -> Box<dyn Ledger> {
        (self.open)(shard, writer)
    }

    fn fresh_shard(&mut self) -> u16 {
        self.shards += 1;
        self.shards
    }
}

/// Runs the suite for ledgers with logs that `open` opens.
pub(crate) fn run_ledger_suite(open: impl FnMut(u16, Writer) -> Box<dyn Ledger>) {
    let cases = ledgers::cases();
    assert!(cases.len() >= 30);
    let mut bench = LedgerBench { open, shards: 0 };
    for case in cases {
        println!("{}", case.name);
        (case.run)(&mut bench);
    }
}

struct RegistryBench<'t, F, O> {
    connect: &'t F,
    fresh: &'t AtomicU32,
    /// What opens the registry of each cluster that this bench has made.
    clusters: Vec<(u32, O)>,
}

impl<F: Fn(String) -> O, O: Fn(Duration) -> RegistryClient> Bench for RegistryBench<'_, F, O> {
    fn fresh_cluster(&mut self) -> u32 {
        let number = self.fresh.fetch_add(1, Ordering::Relaxed);
        self.clusters.push((number, (self.connect)(format!("c{number}"))));
        number
    }

    fn registry(&mut self, cluster: u32) -> Box<dyn Registry> {
        let (_, open) = self.clusters.iter().find(|(number, _)| *number == cluster).unwrap();
        Box::new(open(TTL))
    }

    fn ttl_ms(&self) -> u64 {
        3_000
    }

    fn pause(&mut self, ms: u64) {
        pause(Duration::from_millis(ms));
    }
}

/// Runs the suite for registries. `connect` makes room for the cluster of a name, and returns what
/// opens its registry as one more node.
pub(crate) fn run_registry_suite<F, O>(connect: F)
where
    F: Fn(String) -> O + Sync,
    O: Fn(Duration) -> RegistryClient,
{
    let (fresh, next) = (AtomicU32::new(0), AtomicUsize::new(0));
    let cases = pinpriq_testing::registries::cases();
    assert!(cases.len() >= 30);
    let work = || {
        let mut bench = RegistryBench { connect: &connect, fresh: &fresh, clusters: Vec::new() };
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = AssertUnwindSafe(|| (case.run)(&mut bench));
            assert!(catch_unwind(run).is_ok(), "{}", case.name);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..TOGETHER).map(|_| scope.spawn(work)).collect();
        let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert_eq!(failed, 0, "see above for the cases that failed");
    });
}

/// A registry whose calls are made one after the other.
pub(crate) struct Node {
    pub(crate) registry: RegistryClient,
    pub(crate) instance: u128,
}

impl Node {
    /// A node that has announced itself, in a cluster of 16 shards.
    pub(crate) fn announced(registry: RegistryClient, instance: u128) -> Self {
        let mut node = Self { registry, instance };
        let meta = Meta { id: 1, shards: 16, format: 1, ..Meta::default() };
        assert_eq!(node.ask(RegistryCall::Found(meta.clone())), RegistryAnswer::Meta(meta));
        assert_eq!(node.announce(), RegistryAnswer::Done);
        node
    }

    pub(crate) fn announce(&mut self) -> RegistryAnswer {
        let instance = Instance(self.instance);
        let name = format!("n{}", self.instance);
        self.ask(RegistryCall::Announce(NodeRecord { instance, name, ..NodeRecord::default() }))
    }

    pub(crate) fn ask(&mut self, call: RegistryCall) -> RegistryAnswer {
        self.registry.start(call);
        self.answer()
    }

    pub(crate) fn answer(&mut self) -> RegistryAnswer {
        for _ in 0..60_000 {
            if let Some(answer) = self.registry.poll() {
                return answer;
            }
            pause(Duration::from_millis(1));
        }
        panic!("no answer");
    }

    const fn own(&self, state: OwnState) -> OwnRecord {
        OwnRecord { instance: Instance(self.instance), term: 0, state }
    }

    pub(crate) fn change(
        &mut self,
        from: Option<OwnState>,
        to: Option<OwnState>,
    ) -> RegistryAnswer {
        let call = self.changing(from, to);
        self.ask(call)
    }

    pub(crate) fn changing(&self, from: Option<OwnState>, to: Option<OwnState>) -> RegistryCall {
        let record = to.map(|state| self.own(state));
        let instead_of = from.map(|state| self.own(state));
        RegistryCall::Own { shard: 3, record, instead_of }
    }

    pub(crate) fn view(&mut self, call: RegistryCall) -> View {
        match self.ask(call) {
            RegistryAnswer::View(view) => view,
            other => panic!("{other:?} is no view"),
        }
    }

    /// Renews until it is answered.
    pub(crate) fn renew_patiently(&mut self) -> View {
        for _ in 0..20 {
            match self.ask(RegistryCall::Renew) {
                RegistryAnswer::View(view) => return view,
                RegistryAnswer::Unreachable(_) => {}
                other => panic!("{other:?} to a renewal"),
            }
        }
        panic!("a session cannot be renewed");
    }
}
