//! Looks for what a server would refuse of an import: ids and schedules that it has already, and
//! queues without room. It changes nothing.
//!
//! Not all can be known before: memory may run out, and others go on putting meanwhile. Nothing is
//! asked about limits and batches, which may be there already, nor about the batches that a task
//! waits for, which the file may open.

use std::collections::{BTreeMap, VecDeque};

use pinpriq_proto::wire::resp::{Value, Words};
use serde_json::Value as Json;

use super::Counts;
use super::import::{Lines, Record, take_bytes};
use crate::exit::Failure;
use crate::output::escaped;
use crate::pipeline::{self, Next, Traffic};
use crate::resp::Client;

/// The states of tasks that are finished, and count for no capacity.
const FINISHED: [&str; 2] = ["zombie", "done"];

/// Reads all records and asks the server about them. Fails at the first one that it would refuse.
/// Returns the numbers of the records.
pub(super) fn probe(client: &mut Client, lines: Lines) -> Result<Counts, Failure> {
    let mut probe = Probe {
        lines,
        queues: BTreeMap::new(),
        waiting: None,
        asked: VecDeque::new(),
        in_the_way: None,
    };
    pipeline::run(client, &mut probe)?;
    if let Some((line, sentence)) = probe.in_the_way {
        return Err(Failure::refused(format!("{sentence} (line {line}; nothing came in)")));
    }
    for (name, queue) in &probe.queues {
        look_for_room(client, name, queue)?;
    }
    Ok(probe.lines.counts())
}

/// What is known of a queue of the file.
#[derive(Debug, Default)]
struct Queue {
    /// Whether what follows is known: from its record, or from the server.
    is_known: bool,
    has_given_ids: bool,
    capacity: Option<u64>,
    /// How many of its tasks in the file are not finished.
    unfinished: u64,
}

/// What was asked about, in the order of the answers.
#[derive(Debug)]
enum Asked {
    /// The settings of a queue.
    Settings { queue: Vec<u8> },
    /// A task, by the line of its record.
    Task { line: u64, queue: Vec<u8>, id: Vec<u8> },
    /// A schedule.
    Schedule { line: u64, name: Vec<u8> },
}

/// The records that are being looked at.
struct Probe {
    lines: Lines,
    queues: BTreeMap<Vec<u8>, Queue>,
    /// A task whose queue is being asked about.
    waiting: Option<(u64, Record)>,
    asked: VecDeque<Asked>,
    /// The line of the first record that would be refused, and why.
    in_the_way: Option<(u64, String)>,
}

impl Probe {
    /// Returns what there is to ask about a record, if there is anything.
    fn question(&mut self, line: u64, record: Record) -> Option<Words> {
        let text = |name: &str| record.fields.get(name).and_then(Json::as_str);
        match text("type") {
            Some("queue") => self.note_settings(&record),
            Some("schedule") => {
                let name = bytes_of(&record, "schedule").unwrap_or_default();
                let words = Words::new("SCHEDULE SHOW").bytes(&name);
                self.asked.push_back(Asked::Schedule { line, name });
                return Some(words);
            }
            Some("task") => {
                let queue = self.queues.entry(record.queue.clone()).or_default();
                if !queue.is_known {
                    let words = Words::new("QUEUE SHOW").bytes(&record.queue);
                    self.asked.push_back(Asked::Settings { queue: record.queue.clone() });
                    self.waiting = Some((line, record));
                    return Some(words);
                }
                if !text("state").is_some_and(|state| FINISHED.contains(&state)) {
                    queue.unfinished += 1;
                }
                if queue.has_given_ids
                    && let Some(id) = bytes_of(&record, "id")
                {
                    let words = Words::new("EXPLAIN").bytes(&record.queue).bytes(&id);
                    self.asked.push_back(Asked::Task { line, queue: record.queue, id });
                    return Some(words);
                }
            }
            _ => {}
        }
        None
    }

    /// Notes the settings that a queue will have.
    fn note_settings(&mut self, record: &Record) {
        let queue = self.queues.entry(record.queue.clone()).or_default();
        let Some(Json::Object(settings)) = record.fields.get("settings") else { return };
        queue.is_known = true;
        queue.has_given_ids = settings.get("ids").and_then(Json::as_str) == Some("given");
        queue.capacity = settings.get("capacity").and_then(Json::as_u64);
    }
}

impl Traffic for Probe {
    fn next(&mut self, _: bool) -> Result<Next, Failure> {
        while self.in_the_way.is_none() {
            let (line, record) = match self.waiting.take() {
                Some((line, record)) => {
                    if !self.queues.get(&record.queue).is_some_and(|queue| queue.is_known) {
                        self.waiting = Some((line, record));
                        return Ok(Next::Later);
                    }
                    (line, record)
                }
                None => match self.lines.next()? {
                    Some(text) => (self.lines.number(), self.lines.record(&text)?),
                    None => return Ok(Next::End),
                },
            };
            if let Some(words) = self.question(line, record) {
                return Ok(Next::Command(words));
            }
        }
        Ok(Next::End)
    }

    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        let is_there = !matches!(answer, Value::Error(_));
        match self.asked.pop_front() {
            Some(Asked::Settings { queue }) => {
                let queue = self.queues.entry(queue).or_default();
                queue.is_known = true;
                let ids = answer.field("ids").and_then(Value::as_bytes);
                queue.has_given_ids = ids == Some(b"given");
                queue.capacity = count(&answer, "capacity");
            }
            Some(Asked::Task { line, queue, id }) if is_there => {
                let (queue, id) = (escaped(&queue), escaped(&id));
                let sentence = format!("EXISTS the queue \"{queue}\" has a task \"{id}\" already");
                self.in_the_way.get_or_insert((line, sentence));
            }
            Some(Asked::Schedule { line, name }) if is_there => {
                let sentence = format!("EXISTS there is a schedule \"{}\" already", escaped(&name));
                self.in_the_way.get_or_insert((line, sentence));
            }
            // A server that refuses to tell may refuse the record as well, and says so then.
            _ => {}
        }
        Ok(())
    }
}

/// Fails if a queue has less room than there are tasks for it.
fn look_for_room(client: &mut Client, name: &[u8], queue: &Queue) -> Result<(), Failure> {
    let Some(capacity) = queue.capacity.filter(|_| queue.unfinished > 0) else { return Ok(()) };
    let Ok(stats) = client.call(&Words::new("STATS").bytes(name)) else { return Ok(()) };
    let counts = stats.field("counts").unwrap_or(&Value::Null);
    let there: u64 = ["R", "T", "W", "B"].iter().filter_map(|state| count(counts, state)).sum();
    let room = capacity.saturating_sub(there);
    if queue.unfinished <= room {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "FULL the queue \"{}\" has room for {room} of its {} tasks in the file (nothing came in)",
        escaped(name),
        queue.unfinished
    )))
}

fn count(map: &Value, name: &str) -> Option<u64> {
    u64::try_from(map.field(name)?.integer()?).ok()
}

fn bytes_of(record: &Record, name: &str) -> Option<Vec<u8>> {
    take_bytes(&mut record.fields.clone(), name).ok().flatten()
}
