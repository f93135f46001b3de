//! The list of all metrics. Where a figure of `INFO` or `STATS` says the same, it is read from
//! there, and has its meaning from there.

use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::stats::Figures;
use pinpriq_store::Histogram;

use super::labels::{OTHER, text_of};
use super::shares;
use super::sight::Sight;
use crate::config::DoorName;
use crate::facts::Facts;
use crate::figures::{self, Unit, Value, info, stats};
use pinpriq_proto::request::code::Code;
use pinpriq_proto::request::table::TABLE as COMMANDS;

/// One metric.
pub(crate) struct Metric {
    pub(crate) chapter: Chapter,
    /// Its name, after the prefix.
    pub(crate) name: &'static str,
    /// Those that its figure does not have.
    labels: &'static [&'static str],
    source: Source,
}

/// A part of the documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chapter {
    Queues,
    Requests,
    Journal,
    Server,
    Cluster,
}

/// What kind of metric it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// Something that labels alone say.
    Info,
}

/// Where a metric is read.
enum Source {
    /// The figure of this name in `INFO`.
    Info(&'static str),
    /// The figure of this name in `STATS`, for each queue and lane.
    Stats(&'static str),
    /// A function, with the kind and the meaning.
    Own(Kind, &'static str, fn(&Sight, Tell<'_>)),
    /// A gauge like that for each queue and lane, and for the others together if the flag is set.
    Each(&'static str, fn(&Figures, TellOne<'_>)),
}

/// A label with its value.
pub(super) type Label<'l> = (&'l str, &'l str);

/// Where readings go, each with its labels.
pub(super) type Tell<'t> = &'t mut dyn FnMut(&[Label<'_>], Reading);

/// The same for one queue, with the value of the last label.
type TellOne<'t> = &'t mut dyn FnMut(&str, u64);

/// What is read.
pub(super) enum Reading {
    Whole(u64),
    Signed(i64),
    Real(f64),
    /// Values by size: the sum and number of all, and how many do not exceed each bound.
    Values {
        sum: f64,
        count: u64,
        buckets: Vec<(f64, u64)>,
    },
}

use Chapter::{Cluster, Journal, Queues, Requests, Server};
use Kind::{Counter, Gauge};

/// The label that a queue has because others have it for dead letters, and its value. It is on the
/// gauges that alerts look at.
const PURPOSE: &str = "purpose";
const DEAD_LETTERS: &str = "dead_letters";

/// All metrics.
pub(crate) static TABLE: &[Metric] = &[
    of_queue("tasks", &["queue", "member", PURPOSE, "state"], "counts"),
    of_queue("transitions_total", &["queue", "member", "kind"], "transitions"),
    of_queue("oldest_ready_seconds", &["queue", "member", PURPOSE], "oldest_ready_ms"),
    of_queue("waited_seconds", &["queue", "member"], "waited_ms"),
    of_queue("held_seconds", &["queue", "member"], "held_ms"),
    each(
        ("consumers", &["queue", "member", PURPOSE, "kind"]),
        "who waits for tasks: `taker` is a blocked take or pop, `subscriber` a subscription",
        |figures, tell| {
            tell("taker", figures.takers);
            tell("subscriber", figures.subscribers);
        },
    ),
    each(
        ("paused", &["queue", "member", "side"]),
        "1 if this side, `in` or `out`, is paused, else 0",
        |figures, tell| {
            tell("in", u64::from(figures.paused.input.is_on()));
            tell("out", u64::from(figures.paused.output.is_on()));
        },
    ),
    of_queue("queue_bytes", &["queue", "member"], "bytes"),
    of_queue("put_total", &["queue", "member"], "put"),
    of_queue("acked_total", &["queue", "member"], "acked"),
    of_queue("expired_total", &["queue", "member"], "expired"),
    of_queue("killed_total", &["queue", "member"], "killed"),
    of_queue("dead_total", &["queue", "member"], "dead"),
    of_queue("evicted_total", &["queue", "member"], "evicted"),
    of_queue("moved_total", &["queue", "member"], "moved"),
    of_queue("cancelled_total", &["queue", "member"], "cancelled"),
    of_queue("skipped_total", &["queue", "member"], "skipped"),
    of_queue("purged_total", &["queue", "member"], "purged"),
    of_queue("revived_total", &["queue", "member"], "revived"),
    of_queue("failures_total", &["queue", "member"], "failures"),
    of_queue("duplicates_total", &["queue", "member"], "duplicates"),
    of_queue("limited_seconds_total", &["queue", "member"], "limited_ms"),
    of_queue("missed_total", &["queue", "member"], "missed"),
    own(
        (Queues, "share_tasks", Gauge, &["queue", "share", "state"]),
        "tasks in R and T of the shares with most tasks, in queues with \
         [`SHAREMETRICS`](concepts/fair-sharing.md#metrics)",
        shares::tasks,
    ),
    own(
        (Queues, "share_oldest_ready_seconds", Gauge, &["queue", "share"]),
        "the age since its put of the oldest ready task of such a share that has a priority",
        shares::oldest_ready,
    ),
    own(
        (Queues, "share_acked_total", Counter, &["queue", "share"]),
        "tasks of such a share that were acknowledged or popped since it is followed",
        shares::acked,
    ),
    own(
        (Queues, "share_failures_total", Counter, &["queue", "share"]),
        "how often tasks of such a share have failed since it is followed",
        shares::failures,
    ),
    own(
        (Queues, "limit_taken", Gauge, &["limit"]),
        "taken tasks of all queues that use this [limit](concepts/limits.md#named-limits)",
        shares::limit_taken,
    ),
    own(
        (Queues, "limit_tokens", Gauge, &["limit"]),
        "whole tokens that a limit with a rate has, below zero while it is in debt",
        shares::limit_tokens,
    ),
    own(
        (Queues, "limit_closed_seconds_total", Counter, &["limit"]),
        "for how long a limit allowed nothing more, because of `MAX` or `RATE`",
        shares::limit_closed,
    ),
    own((Queues, "queues", Gauge, &[]), "queues that exist, without lanes", |sight, tell| {
        tell(&[], Reading::Whole(sight.survey.totals.queues));
    }),
    own(
        (Requests, "requests_total", Counter, &["door", "command"]),
        "requests that were understood, by the command of the RESP door that they stand for. One \
         over HTTP may stand for several",
        requests,
    ),
    own(
        (Requests, "request_seconds", Kind::Histogram, &["command"]),
        "the time from the moment in which the server carried out the first of the requests that \
         had arrived together, to that in which their last answer could be written to the socket. \
         It includes the disk. Requests that wait for a task or for an outcome are left out",
        request_times,
    ),
    own(
        (Requests, "refusals_total", Counter, &["door", "code"]),
        "requests that were refused, by the first word of the \
         [refusal](protocol/resp.md#refusals)",
        refusals,
    ),
    of_server(Requests, "connections", "connections"),
    of_server(Requests, "beanstalkd_draining", "beanstalkd_draining"),
    of_server(Requests, "disconnects_total", "disconnects"),
    of_server(Requests, "received_bytes_total", "bytes_received"),
    of_server(Requests, "sent_bytes_total", "bytes_sent"),
    of_server(Journal, "journal_writes_total", "journal_writes"),
    of_server(Journal, "journal_syncs_total", "journal_syncs"),
    of_server(Journal, "journal_commits_total", "journal_commits"),
    of_server(Journal, "journal_rewrites_total", "journal_rewrites"),
    of_server(Journal, "journal_sync_seconds", "journal_commit_us"),
    of_server(Journal, "journal_commit_records", "journal_commit_records"),
    of_server(Journal, "journal_live_bytes", "journal_bytes_live"),
    of_server(Journal, "journal_used_bytes", "journal_bytes_used"),
    of_server(Journal, "journal_segments", "journal_segments"),
    own(
        (Journal, "disk_free_bytes", Gauge, &[]),
        "what is free for the server where its data directory is",
        |sight, tell| {
            if let Some(bytes) = sight.disk_free {
                tell(&[], Reading::Whole(bytes));
            }
        },
    ),
    own(
        (Journal, "store_failed", Gauge, &[]),
        "1 if the store has failed, so that no change is accepted until a new start, else 0",
        |sight, tell| {
            tell(&[], Reading::Whole(u64::from(sight.facts().failure.is_some())));
        },
    ),
    of_server(Journal, "archive_behind_bytes", "archive_behind_bytes"),
    of_server(Journal, "archive_behind_seconds", "archive_behind_ms"),
    of_server(Journal, "archive_failures_total", "archive_failures"),
    own(
        (Journal, "archive_failed", Gauge, &[]),
        "1 if archiving fails, or files and archive differ, so that `archive_state` of `INFO` says \
         why; else 0",
        |sight, tell| {
            tell(&[], Reading::Whole(u64::from(sight.facts().archive.has_failed)));
        },
    ),
    own(
        (Server, "memory_bytes", Gauge, &["purpose"]),
        "memory: `tasks` is that of all tasks, queues and members, as `--task-bytes-max` counts \
         it, and `journal` waits to be written",
        |sight, tell| {
            tell(&[("purpose", "tasks")], Reading::Whole(sight.facts().task_bytes));
            let pending = sight.facts().figures.bytes_pending;
            tell(&[("purpose", "journal")], Reading::Whole(pending));
        },
    ),
    of_server(Server, "task_max_bytes", "task_bytes_max"),
    own(
        (Server, "start_seconds", Gauge, &[]),
        "when the server was started, since the Unix epoch",
        |sight, tell| {
            let facts = sight.facts();
            let started_ms = facts.now.ms().saturating_sub(facts.uptime.ms());
            tell(&[], Reading::Real(scaled(started_ms, IN_MILLISECONDS)));
        },
    ),
    of_server(Server, "shards", "shards"),
    of_server(Server, "log_lines_dropped_total", "log_lines_dropped"),
    of_server(Server, "audit_events_dropped_total", "audit_events_dropped"),
    own(
        (Server, "build_info", Kind::Info, &["version", "commit"]),
        "the version of the server, and the commit that the variable `PINPRIQ_COMMIT` named when \
         it was built",
        |_, tell| {
            let commit = option_env!("PINPRIQ_COMMIT").unwrap_or("unknown");
            let labels = [("version", env!("CARGO_PKG_VERSION")), ("commit", commit)];
            tell(&labels, Reading::Whole(1));
        },
    ),
    of_server(Cluster, "cluster_nodes", "cluster_nodes"),
    of_server(Cluster, "cluster_shards", "cluster_shards"),
    of_server(Cluster, "cluster_shards_served", "cluster_shards_served"),
    of_server(Cluster, "cluster_shards_suspended", "cluster_shards_suspended"),
    of_server(Cluster, "cluster_shards_without_owner", "cluster_shards_without_owner"),
    of_server(Cluster, "cluster_term", "cluster_term"),
    of_server(Cluster, "cluster_head", "cluster_head"),
    of_server(Cluster, "cluster_applied", "cluster_applied"),
    of_server(Cluster, "cluster_lag", "cluster_lag"),
    of_server(Cluster, "cluster_sessions_lost_total", "cluster_sessions_lost"),
    of_server(Cluster, "cluster_take_overs_total", "cluster_take_overs"),
    of_server(Cluster, "cluster_moves_total", "cluster_moves"),
    of_server(Cluster, "cluster_moves_given_up_total", "cluster_moves_given_up"),
    of_server(Cluster, "cluster_fenced_total", "cluster_fenced"),
    of_server(Cluster, "cluster_hosts_failed_total", "cluster_hosts_failed"),
    of_server(Cluster, "cluster_forwarded_total", "cluster_forwarded"),
    of_server(Cluster, "cluster_writes_unknown_total", "cluster_writes_unknown"),
    of_server(Cluster, "cluster_engine_silent_seconds", "cluster_engine_silent"),
    of_server(Cluster, "cluster_clock_off_seconds", "cluster_clock_off"),
];

const fn of_queue(
    name: &'static str,
    labels: &'static [&'static str],
    figure: &'static str,
) -> Metric {
    Metric { chapter: Queues, name, labels, source: Source::Stats(figure) }
}

const fn each(
    (name, labels): (&'static str, &'static [&'static str]),
    help: &'static str,
    read: fn(&Figures, TellOne<'_>),
) -> Metric {
    Metric { chapter: Queues, name, labels, source: Source::Each(help, read) }
}

const fn of_server(chapter: Chapter, name: &'static str, figure: &'static str) -> Metric {
    Metric { chapter, name, labels: &[], source: Source::Info(figure) }
}

const fn own(
    (chapter, name, kind, labels): (Chapter, &'static str, Kind, &'static [&'static str]),
    help: &'static str,
    read: fn(&Sight, Tell<'_>),
) -> Metric {
    Metric { chapter, name, labels, source: Source::Own(kind, help, read) }
}

impl Kind {
    /// Returns the word for it in the documentation.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Counter => "counter",
            Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

impl Metric {
    /// Returns its kind, which is that of its figure if it has one.
    pub(crate) fn kind(&self) -> Kind {
        let of_figure = match self.source {
            Source::Info(figure) => info_of(figure).kind,
            Source::Stats(figure) => stats_of(figure).kind,
            Source::Own(kind, ..) => return kind,
            Source::Each(..) => return Gauge,
        };
        match of_figure {
            figures::Kind::Counter | figures::Kind::Counters(_) => Counter,
            figures::Kind::Gauge | figures::Kind::Gauges(_) => Gauge,
            figures::Kind::Histogram => Kind::Histogram,
            figures::Kind::Text => Kind::Info,
        }
    }

    /// Returns its labels, in order.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &'static str> {
        let of_figure = match self.source {
            Source::Info(figure) => info_of(figure).kind.label(),
            Source::Stats(_) | Source::Own(..) | Source::Each(..) => None,
        };
        self.labels.iter().copied().chain(of_figure)
    }

    /// Returns the name without the end that its kind adds.
    pub(super) fn family(&self) -> &'static str {
        let name = match self.kind() {
            Counter => self.name.strip_suffix("_total"),
            Kind::Info => self.name.strip_suffix("_info"),
            Gauge | Kind::Histogram => None,
        };
        name.unwrap_or(self.name)
    }

    /// Returns the base unit, which is part of the name.
    pub(super) fn unit(&self) -> Option<&'static str> {
        let (_, last) = self.family().rsplit_once('_')?;
        ["seconds", "bytes"].into_iter().find(|unit| *unit == last)
    }

    /// Returns what it means.
    pub(crate) fn help(&self) -> &'static str {
        match self.source {
            Source::Info(figure) => info_of(figure).help,
            Source::Stats(figure) => {
                let help = stats_of(figure).help;
                MEANINGS.iter().find(|(name, _)| *name == figure).map_or(help, |(_, own)| own)
            }
            Source::Own(_, help, _) | Source::Each(help, _) => help,
        }
    }

    /// Tells what it is now.
    pub(super) fn read(&self, sight: &Sight, tell: Tell<'_>) {
        match self.source {
            Source::Own(_, _, read) => read(sight, tell),
            Source::Info(figure) => {
                if self.chapter == Cluster && sight.facts().cluster.is_none() {
                    return;
                }
                let figure = info_of(figure);
                self.tell_value((figure.read)(sight.facts()), figure.unit, &[], tell);
            }
            Source::Stats(figure) => {
                let figure = stats_of(figure);
                self.each_queue(sight, |figures, labels, is_one| {
                    // Times are kept for each queue, not for all together.
                    if is_one || figure.section == stats::Scope::Any {
                        self.tell_value((figure.read)(figures), figure.unit, labels, tell);
                    }
                });
            }
            Source::Each(_, read) => self.each_queue(sight, |figures, labels, is_one| {
                // All together are not paused.
                if is_one || self.name != "paused" {
                    read(figures, &mut |value, number| {
                        tell(&self.and(labels, value), Reading::Whole(number));
                    });
                }
            }),
        }
    }

    /// Calls `look` for each queue and lane that is shown, with its labels, and for the others
    /// together.
    fn each_queue(&self, sight: &Sight, mut look: impl FnMut(&Figures, &[Label<'_>], bool)) {
        let tells_purpose = self.labels.contains(&PURPOSE);
        for (name, shown) in &sight.survey.shown {
            let queue = text_of(&name.queue);
            let mut labels = vec![("queue", queue.as_str())];
            let member = name.lane.as_ref().map(|(_, member)| text_of(member));
            labels.extend(member.as_deref().map(|member| ("member", member)));
            if tells_purpose && shown.figures.holds_dead_letters {
                labels.push((PURPOSE, DEAD_LETTERS));
            }
            look(&shown.figures, &labels, true);
        }
        if let Some(others) = &sight.others {
            look(others, &[("queue", OTHER)], false);
        }
    }

    /// Returns labels with this value of the last one of the metric.
    fn and<'l>(&self, labels: &[Label<'l>], value: &'l str) -> Vec<Label<'l>> {
        let last = self.labels().last().map(|label| (label, value));
        labels.iter().copied().chain(last).collect()
    }

    /// Tells the value of a figure in base units.
    fn tell_value(&self, value: Value, unit: Unit, labels: &[Label<'_>], tell: Tell<'_>) {
        let scale = match unit {
            Unit::Milliseconds => Some(IN_MILLISECONDS),
            Unit::Microseconds => Some(IN_MICROSECONDS),
            Unit::Plain | Unit::Bytes | Unit::Seconds => None,
        };
        let reading = |number| match scale {
            Some(scale) => Reading::Real(scaled(number, scale)),
            None => Reading::Whole(number),
        };
        match value {
            Value::Number(number) => tell(labels, reading(number)),
            Value::Each(numbers) => {
                for (value, number) in numbers {
                    tell(&self.and(labels, &value), reading(number));
                }
            }
            Value::Histogram(values) => tell(labels, values_of(&values, scale.unwrap_or(1))),
            Value::Times(times) => tell(labels, times_of(&times)),
            Value::Missing | Value::Text(_) => {}
        }
    }
}

/// What figures of `STATS` mean here, where their own sentence describes the form of the reply.
const MEANINGS: &[(&str, &str)] = &[
    ("counts", "tasks in each [state](internals/states.md)"),
    ("transitions", "how often tasks moved from one state to another, such as `X-R` or `R-T`"),
    (
        "oldest_ready_ms",
        "the age since its put of the oldest ready task that has a priority; missing if there is \
         none",
    ),
    ("waited_ms", "how long tasks were ready before they were taken or popped"),
    ("held_ms", "how long leases lasted, however they ended"),
];

/// How many of them a second has.
pub(super) const IN_MILLISECONDS: u64 = 1_000;
const IN_MICROSECONDS: u64 = 1_000_000;

fn info_of(name: &str) -> &'static figures::Figure<Facts, info::Section> {
    let Some(figure) = info::TABLE.iter().find(|figure| figure.name == name) else {
        unreachable!("INFO has no figure {name}")
    };
    figure
}

fn stats_of(name: &str) -> &'static figures::Figure<Figures, stats::Scope> {
    let Some(figure) = stats::TABLE.iter().find(|figure| figure.name == name) else {
        unreachable!("STATS has no figure {name}")
    };
    figure
}

fn requests(sight: &Sight, tell: Tell<'_>) {
    for (asked, spec) in sight.facts().counts.commands.iter().zip(COMMANDS) {
        let command = spec.full_name();
        for (door, count) in DoorName::ALL.into_iter().zip(asked.requests) {
            if count > 0 {
                let labels = [("door", door.word()), ("command", command.as_str())];
                tell(&labels, Reading::Whole(count));
            }
        }
    }
}

fn request_times(sight: &Sight, tell: Tell<'_>) {
    for (asked, spec) in sight.facts().counts.commands.iter().zip(COMMANDS) {
        if asked.took_us.count() > 0 {
            let command = spec.full_name();
            tell(&[("command", &command)], values_of(&asked.took_us, IN_MICROSECONDS));
        }
    }
}

fn refusals(sight: &Sight, tell: Tell<'_>) {
    for (door, counts) in DoorName::ALL.into_iter().zip(&sight.facts().counts.refusals) {
        for (code, count) in Code::all().zip(counts) {
            if *count > 0 {
                let labels = [("door", door.word()), ("code", code.word())];
                tell(&labels, Reading::Whole(*count));
            }
        }
    }
}

fn values_of(values: &Histogram, scale: u64) -> Reading {
    let buckets = values.up_to().map(|(bound, count)| (scaled(bound, scale), count)).collect();
    Reading::Values { sum: scaled(values.sum(), scale), count: values.count(), buckets }
}

fn times_of(times: &TimeHistogram) -> Reading {
    let bounded = times.up_to().filter_map(|(bound, count)| Some((bound?, count)));
    let buckets = bounded.map(|(ms, count)| (scaled(ms, IN_MILLISECONDS), count)).collect();
    Reading::Values { sum: scaled(times.sum_ms, IN_MILLISECONDS), count: times.count(), buckets }
}

#[expect(clippy::cast_precision_loss, reason = "beyond 2^53 the last digits do not matter")]
pub(super) fn scaled(number: u64, scale: u64) -> f64 {
    number as f64 / scale as f64
}

#[cfg(test)]
mod tests;
