//! The engine under a cluster, with a thread of its own for its connections.

use std::sync::Arc;
use std::time::Duration;

use pinpriq_cluster::etcd::{COMPACT_EVERY, Etcd, EtcdOptions, EtcdRegistry};
use pinpriq_cluster::postgres::{Postgres, PostgresOptions, PostgresRegistry};
use pinpriq_cluster::remote::{LogState, RegistryClient, RemoteLedger, Wake};
use pinpriq_cluster::{Registry, ShardNumber};
use pinpriq_server::clock::steady_ms;
use pinpriq_server::cluster::{ClusterEngine, LogEnds};
use pinpriq_store::ledger::{Ledger, Unreachable, Writer};
use tokio::runtime::Handle;

use super::access;
use super::url::ClusterUrl;
use crate::exit::Failure;

/// An engine that also tells what its logs have come to.
pub(crate) trait Engine: ClusterEngine {
    /// Returns the state of the logs of this many shards. Blocks.
    fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable>;
}

/// What is done with an engine that holds nothing of the cluster yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Empty {
    /// It is prepared, if it needs to be.
    Prepare,
    /// It is refused, if this is known without asking for the cluster. Nothing is changed.
    Refuse,
}

/// After this time a silent member of etcd is left for the next one, unless sessions are short: the
/// owner of a shard may answer for seven tenths of a session without being heard.
const ATTEMPT_MAX: Duration = Duration::from_secs(2);

/// Connects to the engine of a cluster, for sessions of this time to live. Blocks until PostgreSQL
/// was asked once; etcd is asked nothing yet.
pub(crate) fn connect(
    url: &ClusterUrl,
    session_ttl: Duration,
    bytes_max: u64,
    empty: Empty,
) -> Result<Arc<dyn Engine>, Failure> {
    let runtime = run_thread()?;
    match url {
        ClusterUrl::Etcd { endpoints, name, user, tls } => {
            let scheme = if tls.is_some() { "https" } else { "http" };
            let endpoints = endpoints.iter().map(|it| format!("{scheme}://{it}")).collect();
            let options = EtcdOptions {
                bytes_max,
                attempt: (session_ttl * 2 / 5).min(ATTEMPT_MAX),
                tls: tls.as_ref().map(access::tls).transpose()?,
                user: user.as_ref().map(access::user).transpose()?,
                ..EtcdOptions::new(name.clone(), endpoints)
            };
            let etcd = Etcd::new(options).map_err(|it| Failure::unusable(it.to_string()))?;
            Ok(Arc::new(OnEtcd { etcd, runtime }))
        }
        ClusterUrl::Postgres { address, schema, password_file, encryption } => {
            let password = password_file.as_deref().map(access::password_in).transpose()?;
            let encryption = access::encryption(encryption)?;
            let options = PostgresOptions {
                password,
                encryption,
                ..PostgresOptions::new(address, schema, bytes_max)
            };
            let connected = runtime.block_on(async {
                match empty {
                    Empty::Prepare => Postgres::connect(options).await.map(Some),
                    Empty::Refuse => Postgres::connect_existing(options).await,
                }
            });
            let connected = connected.map_err(|it| Failure::unusable(it.to_string()))?;
            let Some((postgres, report)) = connected else { return Err(no_cluster(url)) };
            if !report.has_synchronous_standbys() {
                tracing::warn!(
                    "PostgreSQL has no synchronous_standby_names: a failover to a standby may \
                     lose what was acknowledged, unless its storage is replicated"
                );
            }
            Ok(Arc::new(OnPostgres { postgres, runtime }))
        }
    }
}

/// Says that there is no cluster at this address: exit code 3.
pub(crate) fn no_cluster(url: &ClusterUrl) -> Failure {
    let (engine, name) = (url.engine(), url.name());
    Failure::of_directory(format!(
        "there is no cluster {name:?} on this {engine}: its first node makes it"
    ))
}

/// Starts the thread that carries out what the engine is asked.
fn run_thread() -> Result<Handle, Failure> {
    let failed = |error: std::io::Error| Failure::on_the_way(format!("cannot start: {error}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("engine".to_owned());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>())).map_err(failed)?;
    Ok(handle)
}

struct OnEtcd {
    etcd: Etcd,
    runtime: Handle,
}

impl ClusterEngine for OnEtcd {
    fn ledger(&self, shard: ShardNumber, writer: Writer, wake: Wake) -> Box<dyn Ledger> {
        let Ok(log) = self.etcd.remote(shard, writer) else {
            unreachable!("a cluster has at most 1024 shards")
        };
        Box::new(RemoteLedger::new(log, self.runtime.clone(), wake))
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        self.log_states(shards).map(ends_of)
    }

    fn registry(&self, session_ttl: Duration, wake: Wake) -> Box<dyn Registry> {
        let registry = EtcdRegistry::new(&self.etcd, session_ttl);
        self.runtime.spawn(registry.upkeep(COMPACT_EVERY, |notice| tracing::warn!("{notice}")));
        Box::new(RegistryClient::new(registry, &self.runtime, wake))
    }
}

/// The same as the server knows it.
fn ends_of(states: Vec<Option<LogState>>) -> Vec<Option<LogEnds>> {
    let ends = |state: LogState| {
        let LogState { tenure, first, head } = state;
        LogEnds { term: tenure.term, first, head }
    };
    states.into_iter().map(|state| state.map(ends)).collect()
}

impl Engine for OnEtcd {
    fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable> {
        self.runtime.block_on(self.etcd.log_states(shards))
    }
}

struct OnPostgres {
    postgres: Postgres,
    runtime: Handle,
}

impl ClusterEngine for OnPostgres {
    fn ledger(&self, shard: ShardNumber, writer: Writer, wake: Wake) -> Box<dyn Ledger> {
        let log = self.postgres.log(shard, writer);
        Box::new(RemoteLedger::new(log, self.runtime.clone(), wake))
    }

    fn log_ends(&self, shards: u16) -> Result<Vec<Option<LogEnds>>, Unreachable> {
        self.log_states(shards).map(ends_of)
    }

    fn registry(&self, session_ttl: Duration, wake: Wake) -> Box<dyn Registry> {
        let clock = Arc::new(|| Duration::from_millis(steady_ms()));
        let registry = PostgresRegistry::new(&self.postgres, session_ttl, clock);
        Box::new(RegistryClient::new(registry, &self.runtime, wake))
    }
}

impl Engine for OnPostgres {
    fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable> {
        self.runtime.block_on(self.postgres.log_states(shards))
    }
}
