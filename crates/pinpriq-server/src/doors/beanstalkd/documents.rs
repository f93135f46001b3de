//! The documents: figures about a job, a tube and the server, and the list of the tubes.
//!
//! Each has the keys of beanstalkd 1.13 in its order. Where pinpriq has nothing of the kind, such
//! as the files of a log, it says 0.

use std::collections::{BTreeMap, HashMap};

use pinpriq_proto::reply::{Reply, TubeShown, TubesShown};
use pinpriq_proto::settings::Pause;
use pinpriq_proto::task::{State, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::wire::beanstalkd::{Document, Verb, Word, put_document, put_list};

use super::BeanstalkdDoor;
use super::machine::Machine;
use super::shared::{Tally, Tube};

/// What a tube shows as its pause, in seconds, if the pause has no end.
const ENDLESS_S: u64 = u32::MAX as u64;

/// What was seen when a document was asked for, or a tube was to be paused, besides what the engine
/// replies.
pub(super) enum Sight {
    Pause {
        now: Timestamp,
        name: Box<[u8]>,
    },
    Job {
        now: Timestamp,
    },
    Tube {
        now: Timestamp,
        name: Box<[u8]>,
        known: Option<Tube>,
    },
    /// `is_worker` says whether the connection itself is counted as one that reserves jobs.
    Server {
        tally: Box<Tally>,
        is_worker: bool,
        known: HashMap<Box<[u8]>, Tube>,
        uptime_s: u64,
    },
    Tubes {
        known: HashMap<Box<[u8]>, Tube>,
    },
    /// The list of the tubes, a part of which is written.
    Listed {
        names: Vec<Box<[u8]>>,
    },
}

impl Sight {
    /// Returns about how many bytes it occupies.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Pause { .. } | Self::Job { .. } | Self::Tube { .. } => size_of::<Self>(),
            Self::Server { known, .. } | Self::Tubes { known } => {
                let names = known.keys().map(|name| name.len()).sum::<usize>();
                names + known.capacity() * size_of::<(Box<[u8]>, Tube)>()
            }
            Self::Listed { names } => names.iter().map(|name| size_of_val(name) + name.len()).sum(),
        }
    }
}

/// When a tube came, whether as a queue, and after how many others of the kind.
type TubeOrder = (Timestamp, bool, u64);

impl BeanstalkdDoor {
    /// Writes the document that was asked for.
    pub(super) fn write_document(&self, sight: &Sight, reply: &Reply, out: &mut Vec<u8>) {
        match (sight, reply) {
            (Sight::Job { now }, Reply::Task(Some(task))) => {
                put_document(out, |document| describe_job(task, *now, document));
            }
            (Sight::Tube { now, name, known }, Reply::Tubes(shown)) => {
                let queue = shown.tubes.first();
                let is_there = known.as_ref().is_some_and(Tube::is_wanted);
                if !is_there && !queue.is_some_and(|it| it.exists) {
                    return out.extend_from_slice(Word::NotFound.line());
                }
                put_document(out, |document| describe_tube((name, *known), queue, *now, document));
            }
            (Sight::Server { tally, known, uptime_s, .. }, Reply::Tubes(shown)) => {
                let tubes = self.all_tubes(known, shown).len() as u64;
                put_document(out, |document| {
                    self.describe_server((tally, tubes, *uptime_s), shown, document);
                });
            }
            (_, reply) => unreachable!("a document is made of {reply:?}"),
        }
    }

    /// Writes the next piece of the list of the tubes. Returns whether it is complete.
    pub(super) fn write_list(
        &self,
        (asked, shown): (u64, &TubesShown),
        progress: &mut usize,
        out: &mut Vec<u8>,
        room: usize,
    ) -> bool {
        let names = match self.sight(asked) {
            Some(Sight::Tubes { known }) => self.all_tubes(&known, shown),
            Some(Sight::Listed { names }) => names,
            _ => unreachable!("what the {asked}th request has seen was not kept"),
        };
        let complete = put_list(&names, progress, out, room);
        if !complete {
            self.see_again(asked, Sight::Listed { names });
        }
        complete
    }

    /// Returns the names of all tubes, in the order in which they came. Those that neither a
    /// connection nor a queue stands for are forgotten.
    fn all_tubes(&self, known: &HashMap<Box<[u8]>, Tube>, shown: &TubesShown) -> Vec<Box<[u8]>> {
        // A queue comes after the connection that uses its tube, if both come in one millisecond.
        let mut ordered: BTreeMap<TubeOrder, Vec<Box<[u8]>>> = BTreeMap::new();
        let mut queues: HashMap<&[u8], &TubeShown> =
            shown.tubes.iter().map(|queue| (&*queue.name, queue)).collect();
        let mut gone = Vec::new();
        for (name, tube) in known {
            let queue = queues.remove(&**name);
            if queue.is_none() && !tube.is_wanted() {
                gone.push((name.clone(), *tube));
                continue;
            }
            let order = (tube.since, false, tube.after);
            let order = queue.map_or(order, |it| order.min((it.came_at, true, it.came_after)));
            ordered.entry(order).or_default().push(name.clone());
        }
        for (name, queue) in queues {
            let order = (queue.came_at, true, queue.came_after);
            ordered.entry(order).or_default().push(name.into());
        }
        self.shared.forget(gone.into_iter());
        // Queues of several shards may have the same place.
        for names in ordered.values_mut() {
            names.sort();
        }
        ordered.into_values().flatten().collect()
    }

    fn describe_server(
        &self,
        (tally, tubes, uptime_s): (&Tally, u64, u64),
        shown: &TubesShown,
        document: &mut Document<'_>,
    ) {
        let count = |kind: StateKind| shown.tubes.iter().map(|it| it.counts[kind as usize]).sum();
        let machine = Machine::look();
        document.number("current-jobs-urgent", shown.tubes.iter().map(|it| it.urgent).sum());
        document.number("current-jobs-ready", count(StateKind::Ready));
        document.number("current-jobs-reserved", count(StateKind::Taken));
        document.number("current-jobs-delayed", count(StateKind::Waiting));
        document.number("current-jobs-buried", count(StateKind::Buried));
        for verb in Verb::ALL.into_iter().filter(|verb| verb.is_in_stats()) {
            document.number(&format!("cmd-{}", verb.name()), tally.counts[verb.index()]);
        }
        document.number("job-timeouts", shown.timeouts);
        document.number("total-jobs", shown.put);
        document.number("max-job-size", self.shared.job_bytes_max().into());
        document.number("current-tubes", tubes);
        document.number("current-connections", tally.connections);
        document.number("current-producers", tally.producers);
        document.number("current-workers", tally.workers);
        document.number("current-waiting", shown.reserves);
        document.number("total-connections", tally.connected);
        document.number("pid", std::process::id().into());
        document.quoted("version", concat!("pinpriq ", env!("CARGO_PKG_VERSION")).as_bytes());
        document.seconds("rusage-utime", machine.user);
        document.seconds("rusage-stime", machine.system);
        document.number("uptime", uptime_s);
        for key in [
            "binlog-oldest-index",
            "binlog-current-index",
            "binlog-records-migrated",
            "binlog-records-written",
            "binlog-max-size",
        ] {
            document.number(key, 0);
        }
        document.word("draining", if tally.is_draining { "true" } else { "false" });
        document.word("id", &format!("{:016x}", self.shared.id()));
        document.quoted("hostname", machine.host());
        document.quoted("os", machine.os());
        document.quoted("platform", machine.platform());
    }
}

fn describe_job(task: &TaskRecord, now: Timestamp, document: &mut Document<'_>) {
    let progress = &task.progress;
    let (state, ends_at, ttr) = match &progress.state {
        State::Ready => ("ready", None, None),
        State::Taken(lease) => ("reserved", lease.deadline, lease.ttr),
        State::Waiting { ready_at } => ("delayed", *ready_at, None),
        State::Buried(_) | State::Zombie { .. } | State::Done => ("buried", None, None),
    };
    let (counts, delay) = (progress.counts(), progress.delay());
    let ttr = task.terms.ttr.or(ttr).unwrap_or(Span::ZERO);
    document.number("id", task.number);
    document.quoted("tube", &task.queue);
    document.word("state", state);
    document.number("pri", priority(progress.priority));
    document.number("age", seconds(now.since(task.put_at)));
    document.number("delay", seconds(delay));
    document.number("ttr", seconds_or_one(ttr));
    document.number("time-left", ends_at.map_or(0, |at| seconds_left(at, now)));
    document.number("file", 0);
    document.number("reserves", progress.attempts.into());
    document.number("timeouts", counts.timeouts.into());
    document.number("releases", counts.releases.into());
    document.number("buries", counts.buries.into());
    document.number("kicks", counts.kicks.into());
}

fn describe_tube(
    (name, known): (&[u8], Option<Tube>),
    queue: Option<&TubeShown>,
    now: Timestamp,
    document: &mut Document<'_>,
) {
    let of_queue = |figure: fn(&TubeShown) -> u64| queue.map_or(0, figure);
    let of_connections = |figure: fn(&Tube) -> u64| known.as_ref().map_or(0, figure);
    let count = |kind: StateKind| queue.map_or(0, |queue| queue.counts[kind as usize]);
    let (pause, left) = match queue.map(|queue| (queue.paused.output, queue.paused_for)) {
        Some((Pause::Until(at), whole)) => (seconds_or_one(whole), seconds_left(at, now)),
        Some((Pause::Endless, _)) => (ENDLESS_S, ENDLESS_S),
        Some((Pause::Off, _)) | None => (0, 0),
    };
    document.quoted("name", name);
    document.number("current-jobs-urgent", of_queue(|it| it.urgent));
    document.number("current-jobs-ready", count(StateKind::Ready));
    document.number("current-jobs-reserved", count(StateKind::Taken));
    document.number("current-jobs-delayed", count(StateKind::Waiting));
    document.number("current-jobs-buried", count(StateKind::Buried));
    document.number("total-jobs", of_queue(|it| it.put));
    document.number("current-using", of_connections(|it| it.using));
    document.number("current-watching", of_connections(|it| it.watching));
    document.number("current-waiting", of_queue(|it| it.reserves));
    document.number("cmd-delete", of_queue(|it| it.deletes));
    document.number("cmd-pause-tube", of_connections(|it| it.pauses));
    document.number("pause", pause);
    document.number("pause-time-left", left);
}

/// Returns a priority as beanstalkd has them. No priority is the least urgent.
fn priority(priority: Option<i64>) -> u64 {
    let most = i64::from(u32::MAX);
    priority.map_or(most, |priority| priority.clamp(0, most)).unsigned_abs()
}

const fn seconds(span: Span) -> u64 {
    span.ms() / 1_000
}

/// Returns the whole seconds that are left until a moment. A part of the current millisecond has
/// passed already, so that of a minute that has just begun there are 59 left, as in beanstalkd.
const fn seconds_left(at: Timestamp, now: Timestamp) -> u64 {
    at.since(now).ms().saturating_sub(1) / 1_000
}

/// Returns whole seconds, but 0 only for nothing.
fn seconds_or_one(span: Span) -> u64 {
    seconds(span).max(u64::from(!span.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_beyond_those_of_beanstalkd_are_shown_as_the_nearest() {
        let shown = [Some(-1), Some(0), Some(7), Some(i64::MAX), None].map(priority);
        assert_eq!(shown, [0, 0, 7, u64::from(u32::MAX), u64::from(u32::MAX)]);
    }

    #[test]
    fn part_of_a_second_is_not_shown_unless_it_is_all() {
        let shown = [0, 1, 999, 1_000, 1_999, 2_000].map(|ms| seconds_or_one(Span::from_ms(ms)));
        assert_eq!(shown, [0, 1, 1, 1, 1, 2]);
    }
}
