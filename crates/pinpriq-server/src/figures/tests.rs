//! Each figure is described once, where it belongs, and reads what it says.

mod page;

use std::collections::BTreeSet;

use pinpriq_proto::settings::Paused;
use pinpriq_proto::stats::{Counters, Figures, Times};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{Extent, Figures as StoreFigures};

use super::info::{self, Section};
use super::stats::{self, Scope};
use super::*;
use crate::facts::Facts;
use crate::facts::archive::ArchiveFacts;
use crate::facts::cluster::{ClusterFacts, LogFacts, Report};
use crate::facts::tally::Counts;

/// The lines of `INFO` in their order, where every number is different.
const INFO: &str = "\
# Server
shards:1
incarnation:2
uptime_in_seconds:3
server_time_ms:4
look_at_ms:123
log_lines_dropped:118
audit_events_dropped:119

# Clients
connected_clients:5
connections_pinpriq:54
connections_resp:55
connections_resp_cluster:56
connections_http:57
connections_beanstalkd:58
blocked_clients:6
disconnects_closed:40
disconnects_quit:41
disconnects_broken:42
disconnects_killed:43
disconnects_late:44
disconnects_malformed:45
disconnects_refused:46
disconnects_unread:47
disconnects_store_failed:48
disconnects_stopped:49
disconnects_too_many:50
disconnects_unknown:51
disconnects_denied:52
disconnects_handshake:53
beanstalkd_draining:1

# Persistence
durability:sync
journal_failure:it is full
journal_segments:11
journal_bytes_used:12
journal_bytes_live:13
journal_bytes_pending:14
journal_writes:15
journal_syncs:16
journal_commits:17
journal_rewrites:18
journal_commit_us:count=3,sum=5002,le1=2,le16384=3
journal_commit_records:count=0,sum=0
archive_state:it is away
archive_behind_bytes:120
archive_behind_ms:121
archive_failures:122

# Tasks
present:10
put:22
acked:23
expired:24
killed:25
dead:251
evicted:252
moved:253
failures:254
duplicates:255
bytes:26
task_bytes:27
task_bytes_max:28
purged:256
revived:257
cancelled:258
skipped:259

# Traffic
bytes_received_pinpriq:60
bytes_received_resp:61
bytes_received_resp_cluster:62
bytes_received_http:63
bytes_received_beanstalkd:64
bytes_sent_pinpriq:65
bytes_sent_resp:66
bytes_sent_resp_cluster:67
bytes_sent_http:68
bytes_sent_beanstalkd:69
refusals_BADARG:70
refusals_NOQUEUE:71
refusals_NOTFOUND:72
refusals_EXISTS:73
refusals_IDREQUIRED:74
refusals_NOTTAKEN:75
refusals_NOTOWNER:76
refusals_STALE:77
refusals_TAKEN:78
refusals_WRONGSTATE:79
refusals_TOOLARGE:80
refusals_FULL:81
refusals_PAUSED:82
refusals_BUSY:83
refusals_STORE:84
refusals_CLOSING:85
refusals_CROSSSHARD:86
refusals_EXECABORT:87
refusals_TRYAGAIN:88
refusals_CLUSTERDOWN:89
refusals_UNKNOWN:90
refusals_NOPERM:91
refusals_CANCELLED:92
refusals_READONLY:93
refusals_ERR:94
refusals_NOPROTO:95
refusals_MOVED:96
refusals_CROSSSLOT:97
refusals_METHOD:98
refusals_MEDIATYPE:99
refusals_LATE:100
refusals_NOAUTH:101
refusals_WRONGPASS:102

# Cluster
cluster_enabled:1
cluster_node:n1
cluster_nodes:100
cluster_shards:101
cluster_shards_served:104
cluster_shards_suspended:103
cluster_shards_without_owner:102
cluster_owners:0=n1,2=n2
cluster_term_0:105
cluster_term_1:0
cluster_term_2:106
cluster_states:0=serving,2=serving,3=suspended
cluster_head_0:200
cluster_head_2:250
cluster_head_3:300
cluster_applied_0:200
cluster_applied_2:251
cluster_applied_3:303
cluster_lag_0:0
cluster_lag_2:1
cluster_lag_3:3
cluster_sessions_lost:110
cluster_take_overs:111
cluster_moves:113
cluster_moves_given_up:114
cluster_fenced:115
cluster_hosts_failed:116
cluster_forwarded:107
cluster_writes_unknown:19
cluster_engine_silent:108
cluster_clock_off:109
";

fn counters() -> Counters {
    Counters {
        counts: [1, 2, 3, 4, 5, 6],
        put: 22,
        acked: 23,
        expired: 24,
        killed: 25,
        dead: 251,
        evicted: 252,
        moved: 253,
        cancelled: 258,
        skipped: 259,
        failures: 254,
        duplicates: 255,
        purged: 256,
        revived: 257,
        bytes: 26,
        ..Counters::default()
    }
}

fn from<const N: usize>(first: u64) -> [u64; N] {
    let mut numbers = first..;
    [(); N].map(|()| numbers.next().unwrap())
}

fn cluster() -> ClusterFacts {
    let counters = pinpriq_cluster::Counters {
        sessions_lost: 110,
        take_overs: 111,
        claims_lost: 112,
        moves: 113,
        moves_given_up: 114,
        fenced: 115,
        failed: 116,
    };
    ClusterFacts {
        node: "n1".to_owned(),
        nodes: 100,
        shards: 101,
        served: 104,
        ownerless: 102,
        owners: vec![Some("n1".to_owned()), None, Some("n2".to_owned())],
        terms: vec![105, 0, 106],
        logs: vec![
            LogFacts { shard: 2, extent: Extent { head: 250, applied: 251 }, is_suspended: false },
            LogFacts { shard: 3, extent: Extent { head: 9, applied: 9 }, is_suspended: false },
        ],
        forwarded: 107,
        report: Report { counters, silent_ms: 108, clock_off_ms: 109 },
    }
}

fn facts() -> Facts {
    let mut commit_us = Histogram::default();
    for us in [1, 1, 5_000] {
        commit_us.record(us);
    }
    Facts {
        shards: 1,
        incarnation: 2,
        uptime: Span::from_ms(3_999),
        now: Timestamp::from_ms(4),
        look: Some(Timestamp::from_ms(123)),
        clients: 5,
        blocked: 6,
        failure: Some("it is full".to_owned()),
        figures: StoreFigures {
            segments: 11,
            bytes_used: 12,
            bytes_live: 13,
            bytes_pending: 14,
            writes: 15,
            syncs: 16,
            batches: 17,
            rewrites: 18,
            unknown: 19,
            commit_us,
            ..StoreFigures::default()
        },
        counters: counters(),
        task_bytes: 27,
        task_bytes_max: 28,
        counts: Counts {
            closes: from(40),
            connections: from(54),
            received: from(60),
            sent: from(65),
            refusals: [from(70), [0; _], [0; _], [0; _], [0; _]],
            ..Counts::default()
        },
        suspended: 103,
        is_draining: true,
        log_lines_dropped: 118,
        audit_events_dropped: 119,
        archive: ArchiveFacts {
            state: "it is away".to_owned(),
            has_failed: true,
            behind_bytes: 120,
            behind: Span::from_ms(121),
            failures: 122,
        },
        logs: vec![
            LogFacts { shard: 3, extent: Extent { head: 300, applied: 303 }, is_suspended: true },
            LogFacts { shard: 0, extent: Extent { head: 200, applied: 200 }, is_suspended: false },
        ],
        cluster: Some(cluster()),
        ..Facts::default()
    }
}

/// Whether a value suits the kind.
fn suits(kind: Kind, value: &Value) -> bool {
    match value {
        Value::Number(_) => matches!(kind, Kind::Counter | Kind::Gauge),
        Value::Missing => kind == Kind::Gauge,
        Value::Text(_) => kind == Kind::Text,
        Value::Histogram(_) | Value::Times(_) => kind == Kind::Histogram,
        Value::Each(_) => kind.label().is_some(),
    }
}

#[test]
fn info_tells_each_figure_in_its_section() {
    let lines = info::lines(&facts(), &[]).replace("\r\n", "\n");
    // The lines that are not the same everywhere.
    let varies =
        |line: &&str| line.starts_with("pinpriq_version:") || line.starts_with("process_id:");
    let lines: Vec<&str> = lines.lines().filter(|line| !varies(line)).collect();
    assert_eq!(lines, INFO.lines().collect::<Vec<_>>());
}

#[test]
fn info_has_no_line_for_a_number_that_is_missing() {
    let lines = info::lines(&Facts { look: None, ..facts() }, &[]);
    assert!(lines.contains("server_time_ms:4\r\n") && !lines.contains("look_at_ms"), "{lines}");
}

#[test]
fn info_tells_the_sections_that_are_asked_for() {
    let facts = facts();
    let all = info::lines(&facts, &[]);
    for word in [&b"all"[..], b"EVERYTHING", b"Default"] {
        assert_eq!(info::lines(&facts, &[b"nosuch", word]), all);
    }
    assert_eq!(info::lines(&facts, &[b"nosuch"]), "");
    let two = info::lines(&facts, &[b"tasks", b"CLIENTS"]);
    let heads: Vec<&str> = two.split("\r\n").filter(|line| line.starts_with('#')).collect();
    assert_eq!(heads, ["# Clients", "# Tasks"]);
}

#[test]
fn stats_tells_what_there_is_to_be_told() {
    let mut figures = Figures {
        counters: counters(),
        paused: Paused::endlessly(true, false),
        paused_queues: 9,
        takers: 7,
        subscribers: 8,
        ..Figures::default()
    };
    let shown = |figures: &Figures, of_one| {
        let told = stats::values(figures, of_one).into_iter();
        let shown = told.map(|(name, value)| match value {
            Value::Number(number) => format!("{name} {number}"),
            Value::Missing => format!("{name} -"),
            Value::Text(text) => format!("{name} {text}"),
            Value::Each(each) => format!("{name} {each:?}"),
            Value::Times(times) => format!("{name} {} in {}", times.sum_ms, times.count()),
            other @ Value::Histogram(_) => format!("{name} {other:?}"),
        });
        // The two maps are covered by the tests of the door.
        shown.skip(2).collect::<Vec<_>>().join(", ")
    };
    let rest = "takers 7, subscribers 8, bytes 26, put 22, acked 23, expired 24, killed 25, \
                dead 251, evicted 252, moved 253, failures 254, \
                duplicates 255, present 10, purged 256, revived 257, cancelled 258, skipped 259";
    assert_eq!(shown(&figures, false), format!("oldest_ready_ms -, paused 9, {rest}"));
    let own = "priorities [], waited_ms 0 in 0, held_ms 0 in 0, limited_ms 0, \
               holds_dead_letters 0";
    assert_eq!(shown(&figures, true), format!("oldest_ready_ms -, paused in, {rest}, {own}"));
    figures.missed = Some(5);
    figures.oldest_ready = Some(Span::from_ms(6));
    figures.priorities = vec![(-3, 4), (0, 5)];
    let mut times = Times { limited_ms: 7, ..Times::default() };
    times.waited.note(Span::from_ms(8));
    times.held.note(Span::from_ms(9));
    figures.counters.times = Some(Box::new(times));
    figures.holds_dead_letters = true;
    let own = "priorities [(\"-3\", 4), (\"0\", 5)], waited_ms 8 in 1, held_ms 9 in 1, \
               limited_ms 7, holds_dead_letters 1";
    let all = format!("oldest_ready_ms 6, paused in, {rest}, {own}, missed 5");
    assert_eq!(shown(&figures, true), all);
}

#[test]
fn every_name_stands_once_where_it_is_printed() {
    let names: BTreeSet<&str> = info::TABLE.iter().map(|figure| figure.name).collect();
    assert_eq!(names.len(), info::TABLE.len());
    for scopes in [[Scope::Any, Scope::All], [Scope::Any, Scope::Queue], [Scope::Any, Scope::Lane]]
    {
        let told = stats::TABLE.iter().filter(|figure| scopes.contains(&figure.section));
        let names: Vec<&str> = told.map(|figure| figure.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}

#[test]
fn the_figures_of_a_section_stand_together() {
    let sections = info::TABLE.iter().map(|figure| figure.section);
    assert!(sections.is_sorted());
    let listed = Section::ALL.into_iter().flat_map(Section::figures);
    assert_eq!(listed.count(), info::TABLE.len());
}

#[test]
fn every_value_suits_its_kind() {
    for facts in [facts(), Facts::default()] {
        for figure in info::TABLE {
            assert!(suits(figure.kind, &(figure.read)(&facts)), "{}", figure.name);
        }
    }
    for missed in [None, Some(1)] {
        let figures = Figures { missed, ..Figures::default() };
        for figure in stats::TABLE.iter().filter(|it| missed.is_some() || it.section != Scope::Lane)
        {
            assert!(suits(figure.kind, &(figure.read)(&figures)), "{}", figure.name);
        }
    }
}
