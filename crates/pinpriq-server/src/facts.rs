//! Facts about a shard or all of them, at one moment. `figures` decides how they are shown.

pub(crate) mod archive;
pub(crate) mod cluster;
pub(crate) mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinpriq_proto::stats::Counters;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Figures;

use self::archive::{ArchiveFacts, Archived};
use self::cluster::{ClusterFacts, LogFacts};
use self::tally::Counts;
use crate::access::audit;
use crate::config::Durability;
use crate::log;

/// The facts about one shard, or about all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) shards: u64,
    pub(crate) incarnation: u64,
    pub(crate) uptime: Span,
    pub(crate) now: Timestamp,
    /// The moment that is only looked at, if the server is there for no more.
    pub(crate) look: Option<Timestamp>,
    pub(crate) clients: u64,
    pub(crate) blocked: u64,
    pub(crate) durability: Durability,
    pub(crate) failure: Option<String>,
    pub(crate) figures: Figures,
    pub(crate) counters: Counters,
    /// The bytes that count against the bound for tasks, and that bound.
    pub(crate) task_bytes: u64,
    pub(crate) task_bytes_max: u64,
    pub(crate) counts: Counts,
    /// How many shards may say nothing at the moment, because another node may own them by now.
    pub(crate) suspended: u64,
    /// Whether the beanstalkd door refuses jobs.
    pub(crate) is_draining: bool,
    /// How many lines of the log and events of the audit the process has dropped.
    pub(crate) log_lines_dropped: u64,
    pub(crate) audit_events_dropped: u64,
    /// How the archive of the server fares.
    pub(crate) archive: ArchiveFacts,
    /// The logs of the shards that are served here, if another node may take them over.
    pub(crate) logs: Vec<LogFacts>,
    /// What is known about the cluster, if the server is a node of one.
    pub(crate) cluster: Option<ClusterFacts>,
}

/// What every shard tells of its server, although it is not the shard's own.
#[derive(Debug)]
pub(crate) struct OfServer {
    /// Whether the beanstalkd door refuses jobs.
    pub(crate) is_draining: Arc<AtomicBool>,
    /// How the archive fares, if there is one.
    pub(crate) archive: Option<Arc<Archived>>,
}

impl Facts {
    /// Returns what any shard tells of the whole process, and nothing of its own.
    pub(crate) fn of_server(server: Option<&OfServer>, now: Timestamp) -> Self {
        let archive = server.and_then(|it| it.archive.as_ref());
        Self {
            is_draining: server.is_some_and(|it| it.is_draining.load(Ordering::Relaxed)),
            log_lines_dropped: log::dropped(),
            audit_events_dropped: audit::dropped(),
            archive: archive.map(|it| it.facts(now)).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the facts of a place that has connections and no shard.
    pub(crate) fn of_home(self) -> Self {
        Self { shards: 0, task_bytes_max: 0, ..self }
    }

    /// Returns the facts of both together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.counters.add(&other.counters);
        Self {
            shards: self.shards + other.shards,
            incarnation: self.incarnation.max(other.incarnation),
            uptime: self.uptime.max(other.uptime),
            now: self.now.max(other.now),
            look: self.look.max(other.look),
            clients: self.clients + other.clients,
            blocked: self.blocked + other.blocked,
            durability: other.durability,
            failure: self.failure.or(other.failure),
            figures: self.figures.and(other.figures),
            counters: self.counters,
            task_bytes: self.task_bytes + other.task_bytes,
            task_bytes_max: self.task_bytes_max.saturating_add(other.task_bytes_max),
            counts: self.counts.and(&other.counts),
            suspended: self.suspended + other.suspended,
            is_draining: self.is_draining || other.is_draining,
            // All shards are in one process.
            log_lines_dropped: self.log_lines_dropped.max(other.log_lines_dropped),
            audit_events_dropped: self.audit_events_dropped.max(other.audit_events_dropped),
            archive: self.archive.and(other.archive),
            logs: [self.logs, other.logs].concat(),
            cluster: self.cluster.or(other.cluster),
        }
    }
}
