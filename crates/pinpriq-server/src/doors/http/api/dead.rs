//! Dead letters over all queues: which queues have some, or have buried tasks, and why.
//!
//! Reasons are counted by looking at tasks, within bounds. What was found is kept for a while, so
//! that many who look cost no more than one.

use std::collections::{BTreeMap, HashMap};

use super::super::exchange::Asked;
use super::super::problem::Problem;
use super::Asker;
use super::asking::of_queue;
use super::ranking::{AT_ONCE, all_figures, all_names};
use crate::doors::json::{Object, array, item, object};
use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::options::{COUNT, CURSOR, STATE};
use pinpriq_proto::task::{Bytes, StateKind, TaskRecord};

/// The most tasks that are looked at: in one queue, and in all together.
const TASKS_MAX: usize = 1_000;
const ALL_TASKS_MAX: usize = 10_000;

/// The most bytes of tasks that are looked at: in one page as far as that can be foreseen, in one
/// queue, and in all together.
const PAGE_BYTES: usize = 1 << 20;
const BYTES_MAX: usize = 8 << 20;
const ALL_BYTES_MAX: usize = 64 << 20;

/// The most tasks on a page, and the most reasons that are told of a queue.
const PAGE_MAX: usize = 250;
const REASONS_MAX: usize = 20;

/// What was found is kept for this time at least.
pub(super) const KEPT_MS: u64 = 4_000;

/// A reason: bytes, or none.
type Reason = Option<Bytes>;

/// A queue with dead letters or buried tasks.
struct Found {
    name: Bytes,
    letters: u64,
    buried: u64,
    sources: Vec<Bytes>,
    reasons: BTreeMap<Reason, u64>,
}

/// How much may still be looked at.
struct Room {
    tasks: usize,
    bytes: usize,
    /// Whether everything was looked at so far.
    complete: bool,
}

/// Returns the answer as JSON.
pub(super) async fn look(asker: &Asker) -> Result<Vec<u8>, Problem> {
    let names = all_names(asker).await?;
    let mut sources: HashMap<Bytes, Vec<Bytes>> = HashMap::new();
    for part in names.chunks(AT_ONCE) {
        let show = part.iter().map(|name| of_queue("QUEUE SHOW", name, None));
        for (name, shown) in part.iter().zip(asker.replies(show).await?) {
            let Ok(Reply::Settings { settings, .. }) = shown else { continue };
            if let Some(target) = settings.dead_letter {
                sources.entry(target).or_default().push(name.clone());
            }
        }
    }
    let mut room = Room { tasks: ALL_TASKS_MAX, bytes: ALL_BYTES_MAX, complete: true };
    let mut all = Vec::new();
    for (name, known) in all_figures(asker, names).await? {
        let sources = sources.remove(&name).unwrap_or_default();
        let count = |state| known.counters.count(state);
        let letters = match sources[..] {
            [] => 0,
            _ => count(StateKind::Ready) + count(StateKind::Taken) + count(StateKind::Waiting),
        };
        let buried = count(StateKind::Buried);
        if letters + buried == 0 {
            continue;
        }
        let mut found = Found { name, letters, buried, sources, reasons: BTreeMap::new() };
        found.count_reasons(asker, &mut room).await?;
        all.push(found);
    }
    all.sort_by_key(|it| std::cmp::Reverse(it.letters + it.buried));
    let mut out = Vec::new();
    object(&mut out, |it| {
        it.set("complete", room.complete);
        it.array("queues", &all, |out, found| object(out, |it| found.write(it)));
    });
    Ok(out)
}

impl Found {
    /// Looks at the tasks, and counts their reasons.
    async fn count_reasons(&mut self, asker: &Asker, room: &mut Room) -> Result<(), Problem> {
        let state = if self.letters == 0 { Some("B") } else { None };
        let (mut cursor, mut count) = ("0".to_owned(), 8);
        let (mut tasks, mut bytes_left) = (TASKS_MAX, BYTES_MAX);
        loop {
            let page = scan(&self.name, &cursor, count, state);
            let page = asker.replies([page]).await?.pop();
            let Some(Ok(Reply::Scanned { tasks: page, next })) = page else {
                // The queue has gone meanwhile.
                return Ok(());
            };
            let (number, bytes) = (page.len(), page.iter().map(bytes_of).sum());
            for task in page {
                self.note(task);
            }
            let Some(next) = next else { return Ok(()) };
            cursor = next.to_string();
            tasks = tasks.saturating_sub(number.max(1));
            bytes_left = bytes_left.saturating_sub(bytes);
            room.tasks = room.tasks.saturating_sub(number.max(1));
            room.bytes = room.bytes.saturating_sub(bytes);
            if tasks.min(bytes_left).min(room.tasks).min(room.bytes) == 0 {
                room.complete = false;
                return Ok(());
            }
            let one = (bytes / number.max(1)).max(1);
            count = (PAGE_BYTES / one).clamp(1, PAGE_MAX);
        }
    }

    fn note(&mut self, task: TaskRecord) {
        if task.origin().is_some() || task.progress.state.kind() == StateKind::Buried {
            *self.reasons.entry(task.progress.reason).or_default() += 1;
        }
    }

    fn write(&self, it: &mut Object<'_>) {
        it.bytes("name", &self.name);
        it.set("letters", self.letters).set("buried", self.buried);
        it.member("sources", |out| array(out, &self.sources, |out, name| item(out, name)));
        let mut reasons: Vec<(&Reason, &u64)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        it.array("reasons", reasons.into_iter().take(REASONS_MAX), |out, (reason, count)| {
            object(out, |it| {
                if let Some(reason) = reason {
                    it.bytes("reason", reason);
                }
                it.set("count", *count);
            });
        });
    }
}

/// Returns about how many bytes of a task were looked at.
fn bytes_of(task: &TaskRecord) -> usize {
    let reason = task.progress.reason.as_ref().map_or(0, |reason| reason.len());
    let texts = reason + task.progress.told_bytes();
    size_of::<TaskRecord>() + task.payload.len() + task.terms.bytes() + texts
}

/// Returns the command that asks for a page of tasks.
fn scan(name: &[u8], cursor: &str, count: usize, state: Option<&str>) -> Asked {
    let mut asked = Asked::of("SCAN").words([name]);
    asked.option(CURSOR, Some(cursor.as_bytes().to_vec()));
    asked.option(COUNT, Some(count.to_string().into_bytes()));
    asked.option(STATE, state.map(|state| state.as_bytes().to_vec()));
    asked
}
