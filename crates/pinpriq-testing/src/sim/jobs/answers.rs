//! What a client of the beanstalkd door must read, derived from the replies of the model.
//!
//! The bytes are laid out here by hand, without the functions that the server writes them with.

use pinpriq_proto::reply::{RefusalKind, Reply, TubeShown, TubesShown};
use pinpriq_proto::settings::Pause;
use pinpriq_proto::task::{State, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};

use super::{Call, DEFAULT, JobAsk, Text};

/// The most bytes of a job or a document.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 17;

/// What was the case when a request was carried out.
pub(crate) struct Seen<'a> {
    /// The time of the server.
    pub(crate) at: Timestamp,
    /// Whether the door has looked at the clock at the same moment, rather than before.
    pub(crate) is_same_moment: bool,
    /// Whether any client has ever named a tube.
    pub(crate) is_named: &'a dyn Fn(&[u8]) -> bool,
}

/// A figure of a document as far as it can be predicted.
enum Figure {
    Text(String),
    Number(u64),
    /// At least this much.
    From(u64),
    /// At least the first number, at most the second.
    Between(u64, u64),
}

use Figure::{Between, From, Number};

impl JobAsk {
    /// Compares the answer that was read with the one that follows from the reply of the engine.
    pub(crate) fn differ(&self, reply: &Reply, read: &[u8], seen: &Seen<'_>) -> Result<(), String> {
        let wanted = match (&self.call, reply) {
            (Call::StatsJob(_), Reply::Task(Some(task))) => {
                return differ_figures(&job_figures(task, seen), read);
            }
            (Call::StatsTube(tube), Reply::Tubes(shown)) => {
                return self.differ_tube(tube, shown, read, seen);
            }
            (Call::ListTubes, Reply::Tubes(shown)) => return self.differ_tubes(shown, read, seen),
            (call, reply) => answer(call, reply),
        };
        if wanted == read {
            return Ok(());
        }
        Err(format!("wanted {} and read {}", wanted.escape_ascii(), read.escape_ascii()))
    }

    fn differ_tube(
        &self,
        tube: &[u8],
        shown: &TubesShown,
        read: &[u8],
        seen: &Seen<'_>,
    ) -> Result<(), String> {
        let queue = shown.tubes.first();
        if read == b"NOT_FOUND\r\n" {
            let is_there = queue.is_some() || self.has(tube);
            return if is_there { Err("the tube is there".to_owned()) } else { Ok(()) };
        }
        if queue.is_none() && tube != DEFAULT && !(seen.is_named)(tube) {
            return Err(format!("there is no such tube, and read {}", read.escape_ascii()));
        }
        let uses = u64::from(*self.used == *tube);
        let watches = u64::from(self.watched.iter().any(|it| it == tube));
        differ_figures(&tube_figures(tube, queue, (uses, watches), seen), read)
    }

    fn differ_tubes(&self, shown: &TubesShown, read: &[u8], seen: &Seen<'_>) -> Result<(), String> {
        let lines = lines(read)?;
        let tubes = lines.iter().map(|line| line.strip_prefix(b"- ").unwrap_or(b""));
        let tubes: Vec<&[u8]> = tubes.collect();
        if tubes.first() != Some(&DEFAULT) {
            return Err(format!("the first tube is not the default: {}", read.escape_ascii()));
        }
        for (at, tube) in tubes.iter().enumerate() {
            let has_queue = shown.tubes.iter().any(|queue| *queue.name == **tube);
            let is_known = *tube == DEFAULT || has_queue || (seen.is_named)(tube);
            if !is_known || tubes[..at].contains(tube) {
                return Err(format!("{} is listed", tube.escape_ascii()));
            }
        }
        let queues = shown.tubes.iter().map(|queue| &*queue.name);
        let own = self.watched.iter().chain([&self.used]).map(Vec::as_slice);
        match queues.chain(own).find(|tube| !tubes.contains(tube)) {
            Some(tube) => Err(format!("{} is not listed", tube.escape_ascii())),
            None => Ok(()),
        }
    }
}

/// The answer to a request whose answer is no document.
fn answer(call: &Call, reply: &Reply) -> Text {
    let word = match (call, reply) {
        (_, Reply::Refused(refusal)) => match refusal.kind {
            RefusalKind::NotFound | RefusalKind::NoQueue | RefusalKind::Cancelled => "NOT_FOUND",
            RefusalKind::Full | RefusalKind::Paused | RefusalKind::Busy => "OUT_OF_MEMORY",
            _ => "INTERNAL_ERROR",
        },
        (Call::Put { .. }, Reply::Count(number)) => {
            return format!("INSERTED {number}\r\n").into_bytes();
        }
        (Call::Kick(_), Reply::Count(count)) => return format!("KICKED {count}\r\n").into_bytes(),
        (Call::Reserve(_) | Call::ReserveJob(_), Reply::Tasks { tasks, popped: false }) => {
            match tasks.as_slice() {
                [] => "TIMED_OUT",
                [task] => return job("RESERVED", task),
                _ => unreachable!("more than one job is reserved: {tasks:?}"),
            }
        }
        (Call::Reserve(_), Reply::DeadlineSoon) => "DEADLINE_SOON",
        (Call::Peek(_) | Call::PeekDelayed | Call::PeekBuried, Reply::Task(task)) => match task {
            Some(task) => return job("FOUND", task),
            None => "NOT_FOUND",
        },
        (Call::PeekReady, Reply::Shown(tasks)) => match tasks.first() {
            Some(task) => return job("FOUND", task),
            None => "NOT_FOUND",
        },
        (Call::Delete(_), Reply::Done) => "DELETED",
        (Call::Release { .. }, Reply::State(Some(StateKind::Buried)))
        | (Call::Bury { .. }, Reply::Done) => "BURIED",
        (Call::Release { .. }, Reply::State(_)) => "RELEASED",
        (Call::Touch(_), Reply::Deadline(_)) => "TOUCHED",
        (Call::KickJob(_), Reply::Done) => "KICKED",
        (Call::PauseTube { .. }, Reply::Done) => "PAUSED",
        (call, reply) => unreachable!("{call:?} has the reply {reply:?}"),
    };
    format!("{word}\r\n").into_bytes()
}

fn job(word: &str, task: &TaskRecord) -> Text {
    let line = format!("{word} {} {}\r\n", task.number, task.payload.len());
    [line.as_bytes(), &task.payload, b"\r\n"].concat()
}

/// The answer that lists these tubes.
pub(super) fn list(tubes: &[Text]) -> Text {
    let mut document = b"---\n".to_vec();
    for tube in tubes {
        document.extend_from_slice(&[b"- ", tube.as_slice(), b"\n"].concat());
    }
    [format!("OK {}\r\n", document.len()).as_bytes(), &document, b"\r\n"].concat()
}

fn job_figures(task: &TaskRecord, seen: &Seen<'_>) -> Vec<(&'static str, Figure)> {
    let progress = &task.progress;
    let (state, ends_at, ttr) = match &progress.state {
        State::Ready => ("ready", None, None),
        State::Taken(lease) => ("reserved", lease.deadline, lease.ttr),
        State::Waiting { ready_at } => ("delayed", *ready_at, None),
        State::Buried(_) => ("buried", None, None),
        state => unreachable!("no client sees a job that is {state:?}"),
    };
    let ttr = task.terms.ttr.or(ttr).unwrap_or(Span::ZERO);
    let ttr_s = if ttr.is_zero() { 0 } else { whole(ttr).max(1) };
    let age = whole(seen.at.since(task.put_at));
    let left = ends_at.map_or(0, |at| left(at, seen.at));
    let (age, left) = match (seen.is_same_moment, ends_at) {
        (true, _) => (Number(age), Number(left)),
        (false, None) => (Between(0, age), Number(0)),
        (false, Some(_)) => (Between(0, age), From(left)),
    };
    let priority = progress.priority.unwrap_or(i64::MAX).clamp(0, u32::MAX.into());
    let counts = progress.counts();
    vec![
        ("id", Number(task.number)),
        ("tube", quoted(&task.queue)),
        ("state", Figure::Text(state.to_owned())),
        ("pri", Number(priority.unsigned_abs())),
        ("age", age),
        ("delay", Number(whole(progress.delay()))),
        ("ttr", Number(ttr_s)),
        ("time-left", left),
        ("file", Number(0)),
        ("reserves", Number(progress.attempts.into())),
        ("timeouts", Number(counts.timeouts.into())),
        ("releases", Number(counts.releases.into())),
        ("buries", Number(counts.buries.into())),
        ("kicks", Number(counts.kicks.into())),
    ]
}

/// The model knows nothing of what was counted since the start.
fn tube_figures(
    name: &[u8],
    queue: Option<&TubeShown>,
    (uses, watches): (u64, u64),
    seen: &Seen<'_>,
) -> Vec<(&'static str, Figure)> {
    let count = |kind: StateKind| Number(queue.map_or(0, |queue| queue.counts[kind as usize]));
    let endless = u64::from(u32::MAX);
    let (pause, left) = match queue.map_or(Pause::Off, |queue| queue.paused.output) {
        Pause::Off => (Number(0), Number(0)),
        Pause::Endless => (Number(endless), Number(endless)),
        Pause::Until(at) => {
            let left = left(at, seen.at);
            (From(left), if seen.is_same_moment { Number(left) } else { From(left) })
        }
    };
    vec![
        ("name", quoted(name)),
        ("current-jobs-urgent", Number(queue.map_or(0, |queue| queue.urgent))),
        ("current-jobs-ready", count(StateKind::Ready)),
        ("current-jobs-reserved", count(StateKind::Taken)),
        ("current-jobs-delayed", count(StateKind::Waiting)),
        ("current-jobs-buried", count(StateKind::Buried)),
        ("total-jobs", From(0)),
        ("current-using", From(uses)),
        ("current-watching", From(watches)),
        // Those that wait for a tube without a queue are not in the reply of the model.
        ("current-waiting", queue.map_or(From(0), |queue| Number(queue.reserves))),
        ("cmd-delete", From(0)),
        ("cmd-pause-tube", From(0)),
        ("pause", pause),
        ("pause-time-left", left),
    ]
}

/// The lines of a document.
fn lines(read: &[u8]) -> Result<Vec<&[u8]>, String> {
    let body = read.iter().position(|byte| *byte == b'\n').map(|at| &read[at + 1..]);
    let body = body.and_then(|body| body.strip_prefix(b"---\n")?.strip_suffix(b"\n\r\n"));
    let is_document = read.starts_with(b"OK ");
    match body.filter(|_| is_document) {
        Some(body) => Ok(body.split(|byte| *byte == b'\n').collect()),
        None => Err(format!("wanted a document and read {}", read.escape_ascii())),
    }
}

fn differ_figures(wanted: &[(&'static str, Figure)], read: &[u8]) -> Result<(), String> {
    let lines = lines(read)?;
    if lines.len() != wanted.len() {
        return Err(format!("wanted {} figures and read {lines:?}", wanted.len()));
    }
    for ((key, figure), line) in wanted.iter().zip(lines) {
        let line = String::from_utf8_lossy(line);
        let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": "));
        let number = value.and_then(|value| value.parse::<u64>().ok());
        let (is_such, shown) = match figure {
            Figure::Text(text) => (value == Some(text), text.clone()),
            Number(wanted) => (number == Some(*wanted), wanted.to_string()),
            From(least) => (number.is_some_and(|it| it >= *least), format!("{least} or more")),
            Between(least, most) => {
                let is_between = number.is_some_and(|it| (*least..=*most).contains(&it));
                (is_between, format!("{least} to {most}"))
            }
        };
        if !is_such {
            return Err(format!("wanted {key}: {shown} and read {line}"));
        }
    }
    Ok(())
}

fn quoted(name: &[u8]) -> Figure {
    Figure::Text(format!("\"{}\"", String::from_utf8_lossy(name)))
}

/// The whole seconds that are left, of which the current millisecond is none.
const fn left(at: Timestamp, now: Timestamp) -> u64 {
    at.since(now).ms().saturating_sub(1) / 1_000
}

/// Whole seconds.
const fn whole(span: Span) -> u64 {
    span.ms() / 1_000
}
