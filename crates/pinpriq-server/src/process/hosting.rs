//! The threads that serve the shards which this node owns: each seizes and loads its log, serves,
//! and ends. Who should own what is decided elsewhere.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use pinpriq_store::durable::{Durable, Loading};
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Term, Window, Writer};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Extent, Store, StoreError};
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

use super::opening::engine_limits;
use super::place::{Common, Place};
use super::serving::Context;
use crate::calendars::Calendars;
use crate::clock::{SystemClock, steady_ms};
use crate::cluster::config::ClusterEngine;
use crate::cluster::terms::{lowest_term_at, window_ms};
use crate::cluster::watermarks::Watermarks;
use crate::config::Config;
use crate::facts::cluster::LogFacts;
use crate::letters::letter::HostNews;
use crate::random::random;
use crate::runtime::runtime;

/// The hosts of this node.
pub(crate) struct Hosting {
    config: Arc<Config>,
    common: Arc<Common>,
    engine: Arc<dyn ClusterEngine>,
    watermarks: Arc<Watermarks>,
    writer: Writer,
    /// How long a host may say anything after it has asked its log.
    window_ms: u64,
    /// What stops each host that runs.
    hosts: BTreeMap<usize, oneshot::Sender<()>>,
    /// The highest term that each shard had here.
    terms: BTreeMap<usize, u64>,
}

impl Hosting {
    pub(crate) fn new(
        config: Arc<Config>,
        common: Arc<Common>,
        (engine, watermarks): (Arc<dyn ClusterEngine>, Arc<Watermarks>),
        (writer, session_ttl_ms): (Writer, u64),
    ) -> Self {
        let window_ms = window_ms(session_ttl_ms);
        let (hosts, terms) = (BTreeMap::new(), BTreeMap::new());
        Self { config, common, engine, watermarks, writer, window_ms, hosts, terms }
    }

    /// Starts to serve a shard in this generation of the cluster. Its fate is reported by
    /// letters to the home.
    pub(crate) fn start(&mut self, shard: usize, generation: u32) {
        let (release, released) = oneshot::channel();
        self.hosts.insert(shard, release);
        let extent = Extent { head: 0, applied: 0 };
        self.common.note_log(LogFacts { shard, extent, is_suspended: false });
        let before = self.terms.get(&shard).copied().unwrap_or(0);
        let job = Job {
            shard,
            config: self.config.clone(),
            common: self.common.clone(),
            engine: self.engine.clone(),
            watermarks: self.watermarks.clone(),
            writer: self.writer,
            at_least: lowest_term_at(generation, SystemClock::wall()).max(Term(before + 1)),
            window_ms: self.window_ms,
        };
        let builder = thread::Builder::new().name(format!("shard-{shard:02}"));
        let home = self.common.clone();
        if let Err(source) = builder.spawn(move || job.run(released)) {
            tracing::error!(%source, shard, "cannot start a thread");
            home.tell_home(shard, HostNews::Failed(StoreError::ThreadEnded { thread: "host" }));
        }
    }

    /// How the logs of the shards fare that have a host.
    pub(crate) fn logs(&self) -> impl Iterator<Item = LogFacts> + '_ {
        self.hosts.keys().map(|shard| self.common.log(*shard))
    }

    /// Makes a host stop in order.
    pub(crate) fn release(&mut self, shard: usize) {
        if let Some(release) = self.hosts.remove(&shard) {
            // It may have ended already.
            let _ = release.send(());
        }
    }

    /// Notes what a host says.
    pub(crate) fn note(&mut self, shard: usize, news: &HostNews) {
        match news {
            HostNews::Serves(term) => drop(self.terms.insert(shard, *term)),
            HostNews::Released | HostNews::Failed(_) => drop(self.hosts.remove(&shard)),
        }
    }
}

/// The work of one thread.
struct Job {
    shard: usize,
    config: Arc<Config>,
    common: Arc<Common>,
    engine: Arc<dyn ClusterEngine>,
    watermarks: Arc<Watermarks>,
    writer: Writer,
    at_least: Term,
    window_ms: u64,
}

impl Job {
    fn run(self, released: oneshot::Receiver<()>) {
        let (common, shard) = (self.common.clone(), self.shard);
        let runtime = runtime();
        let news = match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, self.serve(released)),
            Err(_) => HostNews::Failed(StoreError::ThreadEnded { thread: "host" }),
        };
        common.tell_home(shard, news);
    }

    async fn serve(self, released: oneshot::Receiver<()>) -> HostNews {
        let bell = Arc::new(Notify::new());
        let (durable, clock) = match self.load(&bell) {
            Ok(loaded) => loaded,
            Err(failure) => return HostNews::Failed(failure),
        };
        let term = durable.engine().header().incarnation;
        let with = (&*self.config, self.common.clone());
        let place = Place::new(self.shard, with, (durable, bell), Rc::new(clock));
        self.common.tell_home(self.shard, HostNews::Serves(term));
        let released = async {
            // A host that can no longer be released ends too.
            let _ = released.await;
        };
        Context::new(place).host(released).await
    }

    /// Seizes and loads the log. Blocks.
    fn load(&self, bell: &Arc<Notify>) -> Result<(Durable, SystemClock), StoreError> {
        let wake = {
            let bell = bell.clone();
            Arc::new(move || bell.notify_one())
        };
        let Ok(number) = u16::try_from(self.shard) else {
            unreachable!("shard {} is too high", self.shard)
        };
        let ledger = self.engine.ledger(number, self.writer, wake.clone());
        let window = Window { ms: self.window_ms, steady: Arc::new(steady_ms) };
        let options = LedgerOptions {
            at_least: self.at_least,
            numbers_after: first_number(self.shard),
            window: Some(window),
            watermark: self.watermarks.last(number),
            ..LedgerOptions::default()
        };
        let keeper = self.watermarks.keeper(number, wake);
        let store: Box<dyn Store> = Box::new(LedgerStore::new(ledger, options).keeping(keeper));
        let limits = engine_limits(&self.config, self.common.sharding.shards());
        let loading = Loading::load(store, limits, random())?;
        let (durable, clock) = begin(loading)?;
        tracing::info!(
            shard = self.shard,
            term = durable.engine().header().incarnation,
            tasks = durable.engine().totals().in_any_state(),
            "serving"
        );
        Ok((durable, clock))
    }
}

/// Begins a tenure. Blocks until that is in the log. Time goes on meanwhile: otherwise it would be
/// behind by as long as the engine took, and leases and delays would end early at the next owner.
fn begin(loading: Loading) -> Result<(Durable, SystemClock), StoreError> {
    let wall = SystemClock::wall();
    let start = loading.moment(wall, None);
    let loading = loading.with_calendars(Arc::new(Calendars::ahead_of(wall, start)));
    let clock = SystemClock::starting_at(start);
    let incarnation = loading.loaded().header.incarnation + 1;
    Ok((loading.begin(start, incarnation)?, clock))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use pinpriq_proto::limits::Limits;
    use pinpriq_store::durable::Loading;
    use pinpriq_store::ledger::{Answer, Call, Ledger, LedgerOptions, LedgerStore, Writer};
    use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs, FakeLedger};

    use super::begin;
    use crate::clock::Clock as _;

    /// How long a slow engine takes.
    const SLOW: Duration = Duration::from_millis(300);

    struct SlowLedger {
        inner: FakeLedger,
        is_slow: Arc<AtomicBool>,
    }

    impl Ledger for SlowLedger {
        fn start(&mut self, call: Call) {
            self.inner.start(call);
        }

        fn poll(&mut self) -> Option<Answer> {
            self.inner.poll()
        }

        fn wait(&mut self) {
            if self.is_slow.load(Ordering::Relaxed) {
                thread::park_timeout(SLOW);
            }
            self.inner.wait();
        }

        fn target_bytes(&self) -> usize {
            self.inner.target_bytes()
        }
    }

    #[tokio::test]
    async fn time_goes_on_while_a_slow_engine_begins_a_tenure() {
        let is_slow = Arc::<AtomicBool>::default();
        let inner = FakeEngine::new(1, FakeKnobs::PERFECT).ledger(0, Writer(1));
        let ledger = Box::new(SlowLedger { inner, is_slow: is_slow.clone() });
        let store = Box::new(LedgerStore::new(ledger, LedgerOptions::default()));
        let loading = Loading::load(store, Limits::default(), 1).unwrap();
        is_slow.store(true, Ordering::Relaxed);
        let (_durable, clock) = begin(loading).unwrap();
        let behind_ms = -clock.ahead_of_wall();
        assert!(behind_ms < 200, "time is {behind_ms} ms behind");
    }
}
