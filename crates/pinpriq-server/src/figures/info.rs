//! The figures of the server, and the text of `INFO`: a line each, in sections.
//!
//! They are read from [`Facts`]. Collecting these costs the same for any number of queues.

use std::fmt::Write as _;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::Extent;

use super::Value::Each;
use super::{Figure, Value, figures, histogram_line};
use crate::clients::ending::Ending;
use crate::config::DoorName;
use crate::facts::Facts;
use crate::facts::cluster::{ClusterFacts, LogFacts};
use pinpriq_proto::request::code::Code;

pinpriq_proto::worded! {
    /// A section of `INFO`.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(crate) enum Section {
        Server => "Server",
        Clients => "Clients",
        Persistence => "Persistence",
        Tasks => "Tasks",
        Traffic => "Traffic",
        Cluster => "Cluster",
    }

    /// Returns its name.
    fn name -> &'static str
}

use Section::{Clients, Cluster, Persistence, Server, Tasks, Traffic};

type Entry = Figure<Facts, Section>;

/// All figures of the server, section by section.
pub(crate) static TABLE: &[Entry] = figures! {
    Server {
        pinpriq_version: Text Plain "the version of the server", |_| env!("CARGO_PKG_VERSION");
        process_id: Text Plain "the number of its process", |_| std::process::id().to_string();
        shards: Gauge Plain "shards", |it| it.shards;
        incarnation: Gauge Plain "the number of this start of the server with its data",
            |it| it.incarnation;
        uptime_in_seconds: Gauge Seconds "the time since the start", |it| it.uptime.ms() / 1_000;
        server_time_ms: Gauge Milliseconds "the time of the server, since the Unix epoch",
            |it| it.now.ms();
        look_at_ms: Gauge Milliseconds
            "the moment that is shown, since the Unix epoch. Only a \
             [look](../operating.md#looking-at-a-moment) has this line",
            |it| it.look.map(Timestamp::ms);
        log_lines_dropped: Counter Plain
            "lines of the log that were dropped because they were not read in time",
            |it| it.log_lines_dropped;
        audit_events_dropped: Counter Plain
            "events of the audit that were left out because there were too many",
            |it| it.audit_events_dropped;
    }
    Clients {
        connected_clients: Gauge Plain "connections", |it| it.clients;
        connections: Gauges("door") Plain "connections, by door: clients of HTTP share theirs",
            |it| by_door(it.counts.connections);
        blocked_clients: Gauge Plain "connections with a blocked command", |it| it.blocked;
        disconnects: Counters("reason") Plain
            "connections that have ended, by [reason](#ends-of-connections)", |it| closed(it);
        beanstalkd_draining: Gauge Plain
            "1 if the beanstalkd door accepts no jobs since a SIGUSR2, else 0",
            |it| u64::from(it.is_draining);
    }
    Persistence {
        durability: Text Plain "the [durability](../concepts/durability.md)",
            |it| it.durability.word();
        journal_failure: Text Plain "why the disk failed, or `none`",
            |it| it.failure.as_deref().unwrap_or("none");
        journal_segments: Gauge Plain "files of the journal that are needed",
            |it| it.figures.segments;
        journal_bytes_used: Gauge Bytes "what is in use in these files", |it| it.figures.bytes_used;
        journal_bytes_live: Gauge Bytes "what still counts of that", |it| it.figures.bytes_live;
        journal_bytes_pending: Gauge Bytes "what waits in memory to be written",
            |it| it.figures.bytes_pending;
        journal_writes: Counter Plain "writes", |it| it.figures.writes;
        journal_syncs: Counter Plain "writes that were synced", |it| it.figures.syncs;
        journal_commits: Counter Plain
            "commits, whose changes count all or not at all; a write has one or more",
            |it| it.figures.batches;
        journal_rewrites: Counter Plain "records written again to free old files",
            |it| it.figures.rewrites;
        journal_commit_us: Histogram Microseconds "the time that each write and its sync took",
            |it| it.figures.commit_us;
        journal_commit_records: Histogram Plain "the records in each write",
            |it| it.figures.commit_records;
        archive_state: Text Plain
            "whether the archive works: `off`, `starting`, `ok`, or why not",
            |it| it.archive.state.as_str();
        archive_behind_bytes: Gauge Bytes "what the journal has and the archive does not have yet",
            |it| it.archive.behind_bytes;
        archive_behind_ms: Gauge Milliseconds
            "the age of the last moment that the archive has, or 0 if it lacks nothing",
            |it| it.archive.behind.ms();
        archive_failures: Counter Plain "how often archiving has failed, before it was tried again",
            |it| it.archive.failures;
    }
    Tasks {
        present; put; acked; expired; killed; dead; evicted; moved; failures; duplicates; bytes;
        task_bytes: Gauge Bytes
            "the memory of all tasks, queues and members, as `--task-bytes-max` counts it",
            |it| it.task_bytes;
        task_bytes_max: Gauge Bytes "the bound `--task-bytes-max`", |it| it.task_bytes_max;
        purged; revived; cancelled; skipped;
    }
    Traffic {
        bytes_received: Counters("door") Bytes "what was read from clients, by door",
            |it| by_door(it.counts.received);
        bytes_sent: Counters("door") Bytes "what was written to clients, by door",
            |it| by_door(it.counts.sent);
        refusals: Counters("code") Plain
            "requests that were refused, by the first word of the [refusal](#refusals)",
            |it| refusals(it);
    }
    Cluster {
        cluster_enabled: Gauge Plain "1 if the server is a node of a cluster, else 0",
            |it| u64::from(it.cluster.is_some());
        cluster_node: Text Plain "the name of this node",
            |it| it.cluster.as_ref().map_or("", |cluster| &cluster.node);
        cluster_nodes: Gauge Plain "nodes of the cluster that this one knows of, with itself",
            |it| of_cluster(it, |cluster| cluster.nodes);
        cluster_shards: Gauge Plain "shards of the cluster",
            |it| of_cluster(it, |cluster| cluster.shards);
        cluster_shards_served: Gauge Plain "those that it serves",
            |it| of_cluster(it, |cluster| cluster.served);
        cluster_shards_suspended: Gauge Plain
            "of these, those that say nothing because the engine has not confirmed that they \
             still are",
            |it| it.suspended;
        cluster_shards_without_owner: Gauge Plain "those whose owner this node does not know",
            |it| of_cluster(it, |cluster| cluster.ownerless);
        cluster_owners: Text Plain "the owner of each shard that has one, as `0=n1,1=n2`",
            |it| it.cluster.as_ref().map(owners).unwrap_or_default();
        cluster_term: Gauges("shard") Plain
            "the highest term of each shard that it knows of. It rises with each change of the \
             owner",
            |it| terms(it.cluster.as_ref());
        cluster_states: Text Plain
            "the state of each shard whose owner it knows, `serving` or `suspended`, as \
             `0=serving`",
            |it| states(it);
        cluster_head: Gauges("shard") Plain
            "the last entry that is known to be in the log of each shard. Of a shard of another \
             node, this and the next two are what its owner told last, five times in the time to \
             live of a session",
            |it| of_logs(it, |log| log.head);
        cluster_applied: Gauges("shard") Plain
            "the last entry of each shard whose changes its owner has carried out",
            |it| of_logs(it, |log| log.applied);
        cluster_lag: Gauges("shard") Plain
            "entries of each shard that its owner has carried out and that are not known to be in \
             the log yet",
            |it| of_logs(it, |log| log.applied.saturating_sub(log.head));
        cluster_sessions_lost: Counter Plain "sessions of this node that ended against its will",
            |it| of_cluster(it, |cluster| cluster.report.counters.sessions_lost);
        cluster_take_overs: Counter Plain
            "shards that it took over from a node that had not handed them over",
            |it| of_cluster(it, |cluster| cluster.report.counters.take_overs);
        cluster_moves: Counter Plain "shards that it handed over in order",
            |it| of_cluster(it, |cluster| cluster.report.counters.moves);
        cluster_moves_given_up: Counter Plain "times that handing over took too long",
            |it| of_cluster(it, |cluster| cluster.report.counters.moves_given_up);
        cluster_fenced: Counter Plain "shards that another node took over while it served them",
            |it| of_cluster(it, |cluster| cluster.report.counters.fenced);
        cluster_hosts_failed: Counter Plain
            "shards that it gave up for any other failure of the engine",
            |it| of_cluster(it, |cluster| cluster.report.counters.failed);
        cluster_forwarded: Counter Plain "requests that it asked of other nodes for its clients",
            |it| of_cluster(it, |cluster| cluster.forwarded);
        cluster_writes_unknown: Counter Plain
            "times that the engine did not say what became of a write", |it| it.figures.unknown;
        cluster_engine_silent: Gauge Milliseconds "for how long the engine has owed an answer",
            |it| of_cluster(it, |cluster| cluster.report.silent_ms);
        cluster_clock_off: Gauge Milliseconds
            "how far the wall clock is off the median of all nodes. From 5 s on it claims no \
             shards",
            |it| of_cluster(it, |cluster| cluster.report.clock_off_ms);
    }
};

impl Section {
    /// Returns its figures, in order.
    pub(crate) fn figures(self) -> impl Iterator<Item = &'static Entry> {
        TABLE.iter().filter(move |figure| figure.section == self)
    }

    /// Whether one of these words asks for this section. Without words every section is asked for.
    fn is_wanted(self, words: &[&[u8]]) -> bool {
        let names = [self.name(), "all", "everything", "default"];
        let is_name = |word: &[u8]| names.iter().any(|it| word.eq_ignore_ascii_case(it.as_bytes()));
        words.is_empty() || words.iter().any(|word| is_name(word))
    }
}

/// Returns the text of `INFO`: the sections that these words ask for.
pub(crate) fn lines(facts: &Facts, words: &[&[u8]]) -> String {
    let mut lines = String::new();
    for section in Section::ALL.into_iter().filter(|section| section.is_wanted(words)) {
        if !lines.is_empty() {
            lines.push_str("\r\n");
        }
        let _ = write!(lines, "# {}\r\n", section.name());
        for figure in section.figures() {
            put_figure(&mut lines, figure.name, (figure.read)(facts));
        }
    }
    lines
}

/// Returns the name of each section, with its figures.
pub(crate) fn sections(
    facts: &Facts,
) -> impl Iterator<Item = (&'static str, Vec<(&'static str, Value)>)> {
    Section::ALL.into_iter().map(|section| {
        let told = section.figures().map(|figure| (figure.name, (figure.read)(facts)));
        (section.name(), told.collect())
    })
}

fn put_figure(lines: &mut String, name: &str, value: Value) {
    let shown = match value {
        Value::Number(number) => number.to_string(),
        Value::Missing => return,
        Value::Text(text) => text,
        Value::Histogram(values) => histogram_line(&values),
        Value::Times(times) => format!("count={},sum={}", times.count(), times.sum_ms),
        Each(numbers) => {
            for (label, number) in numbers {
                let _ = write!(lines, "{name}_{label}:{number}\r\n");
            }
            return;
        }
    };
    let _ = write!(lines, "{name}:{shown}\r\n");
}

fn closed(facts: &Facts) -> Value {
    let words = Ending::ALL.map(|ending| ending.word().to_owned());
    Each(words.into_iter().zip(facts.counts.closes).collect())
}

fn refusals(facts: &Facts) -> Value {
    let words = Code::all().map(|code| code.word().to_owned());
    Each(words.zip(facts.counts.refusals_in_all()).collect())
}

fn of_cluster(facts: &Facts, read: impl FnOnce(&ClusterFacts) -> u64) -> u64 {
    facts.cluster.as_ref().map_or(0, read)
}

fn owners(cluster: &ClusterFacts) -> String {
    let owned = cluster.owners.iter().enumerate();
    let owned = owned.filter_map(|(shard, name)| Some(format!("{shard}={}", name.as_ref()?)));
    owned.collect::<Vec<_>>().join(",")
}

fn terms(cluster: Option<&ClusterFacts>) -> Value {
    let terms = cluster.map(|cluster| cluster.terms.iter().enumerate()).into_iter().flatten();
    Each(terms.map(|(shard, term)| (shard.to_string(), *term)).collect())
}

/// The logs of all shards, as far as they are known, in order of the shards. Those that are served
/// here are known best.
fn logs(facts: &Facts) -> Vec<LogFacts> {
    let others = facts.cluster.iter().flat_map(|cluster| &cluster.logs);
    let mut logs: Vec<LogFacts> = facts.logs.iter().chain(others).copied().collect();
    logs.sort_by_key(|log| log.shard);
    logs.dedup_by_key(|log| log.shard);
    logs
}

fn states(facts: &Facts) -> String {
    let state = |log: &LogFacts| if log.is_suspended { "suspended" } else { "serving" };
    let states = logs(facts).into_iter().map(|log| format!("{}={}", log.shard, state(&log)));
    states.collect::<Vec<_>>().join(",")
}

fn of_logs(facts: &Facts, read: impl Fn(&Extent) -> u64) -> Value {
    Each(logs(facts).iter().map(|log| (log.shard.to_string(), read(&log.extent))).collect())
}

fn by_door(counts: [u64; DoorName::ALL.len()]) -> Value {
    let words = DoorName::ALL.map(|door| door.word().to_owned());
    Each(words.into_iter().zip(counts).collect())
}
