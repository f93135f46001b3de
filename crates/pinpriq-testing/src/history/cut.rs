//! What a history was up to a moment, for a server that was restored as it was then.
//!
//! When the moment was is known within bounds. What was answered before them has happened, and what
//! was asked for after them has not. What lies between may have happened or not, and counts in the
//! favour of the server. Nothing is judged here.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::history::reading::DISK_FAILED;
use crate::history::record::{Delivery, Event, Operation, Outcome, Record};

/// When a moment was, by the clock of a history: neither before nor after these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Between {
    /// What was answered until then has happened.
    pub from_us: u64,
    /// What was asked for after that has not happened.
    pub to_us: u64,
}

/// Returns a history up to a moment. The server ends there.
///
/// A request in doubt loses its answer. If it had brought tasks, something unknown may have
/// happened to these: whoever had them may have finished them before the moment.
#[must_use]
pub fn cut(records: &[Record], moment: Between) -> Vec<Record> {
    let known = Known::of(records, moment);
    let calls = records.iter().filter_map(|record| match record {
        Record::Invoked { call, .. } => Some(*call),
        _ => None,
    });
    let mut last_call = calls.max().unwrap_or(0);
    let mut cut = Vec::new();
    for record in records {
        match record {
            Record::Invoked { at_us, client, call, operation } if *at_us <= moment.to_us => {
                if known.is_certain(*call) {
                    cut.push(record.clone());
                    continue;
                }
                for (place, operation) in known.in_doubt(*call, operation).into_iter().enumerate() {
                    last_call += u64::from(place > 0);
                    let call = if place > 0 { last_call } else { *call };
                    cut.push(Record::Invoked { at_us: *at_us, client: *client, call, operation });
                }
            }
            Record::Answered { call, .. } if known.is_certain(*call) => cut.push(record.clone()),
            Record::Happened { at_us, .. } if *at_us <= moment.to_us => cut.push(record.clone()),
            _ => {}
        }
    }
    cut.push(Record::Happened { at_us: moment.to_us, event: Event::ServerKilled });
    cut
}

/// What was known at the moment, and what became known later of requests in doubt.
struct Known<'a> {
    moment: Between,
    /// The outcomes of all requests, and when they came.
    outcomes: HashMap<u64, (u64, &'a Outcome)>,
    /// By payload, the queues and ids under which clients had known a task.
    names: HashMap<&'a str, BTreeSet<(&'a str, &'a str)>>,
    /// The payloads of tasks that requests in doubt have brought.
    brought: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(records: &'a [Record], moment: Between) -> Self {
        let mut outcomes = HashMap::new();
        for record in records {
            if let Record::Answered { at_us, call, outcome } = record {
                outcomes.insert(*call, (*at_us, outcome));
            }
        }
        let mut known = Self { moment, outcomes, names: HashMap::new(), brought: HashSet::new() };
        for record in records {
            let Record::Invoked { at_us, call, operation, .. } = record else { continue };
            let outcome = known.outcomes.get(call).map(|(_, outcome)| *outcome);
            match outcome.filter(|_| *at_us <= moment.to_us) {
                Some(outcome) if known.is_certain(*call) => known.note_names(operation, outcome),
                Some(Outcome::Tasks(tasks)) => {
                    known.brought.extend(tasks.iter().map(|task| task.payload.as_str()));
                }
                _ => {}
            }
        }
        known
    }

    /// Whether a request has certainly happened as its answer said.
    fn is_certain(&self, call: u64) -> bool {
        self.outcomes
            .get(&call)
            .is_some_and(|(at_us, outcome)| *at_us <= self.moment.from_us && is_known(outcome))
    }

    fn note_names(&mut self, operation: &'a Operation, outcome: &'a Outcome) {
        match (operation, outcome) {
            (Operation::Put { queue, payload, .. }, Outcome::Put { id }) => {
                self.note_name(payload, queue, id);
            }
            (
                Operation::Take { queue, .. } | Operation::Pop { queue, .. },
                Outcome::Tasks(tasks),
            ) => {
                for task in tasks {
                    self.note_name(&task.payload, queue, &task.id);
                }
            }
            (Operation::Transaction { operations }, Outcome::Transaction(outcomes)) => {
                for (operation, outcome) in operations.iter().zip(outcomes) {
                    self.note_names(operation, outcome);
                }
            }
            _ => {}
        }
    }

    fn note_name(&mut self, payload: &'a str, queue: &'a str, id: &'a str) {
        self.names.entry(payload).or_default().insert((queue, id));
    }

    /// Returns what stands in place of a request that may have happened or not.
    fn in_doubt(&self, call: u64, operation: &Operation) -> Vec<Operation> {
        let outcome = self.outcomes.get(&call).map(|(_, outcome)| *outcome);
        match (operation, outcome.filter(|outcome| is_known(outcome))) {
            // If it has happened, it has changed nothing.
            (_, Some(Outcome::Refused(_) | Outcome::Count(0))) => Vec::new(),
            (
                Operation::Take { queue, .. } | Operation::Pop { queue, .. },
                Some(Outcome::Tasks(tasks)),
            ) => self.disturbed(queue, tasks),
            // A task of it may be gone again, and then nothing shows that it has happened.
            (Operation::Transaction { operations }, _)
                if operations.iter().any(|part| self.is_brought(part)) =>
            {
                operations.clone()
            }
            _ => vec![operation.clone()],
        }
    }

    /// Returns that something unknown may have happened to tasks, by all names that they had.
    fn disturbed(&self, queue: &str, tasks: &[Delivery]) -> Vec<Operation> {
        let mut names = BTreeSet::new();
        for task in tasks {
            names.insert((queue, task.id.as_str()));
            names.extend(self.names.get(task.payload.as_str()).into_iter().flatten().copied());
        }
        let disturb = |(queue, id): (&str, &str)| Operation::Disturb {
            queue: queue.to_owned(),
            id: Some(id.to_owned()),
        };
        names.into_iter().map(disturb).collect()
    }

    /// Whether a request in doubt has brought the task of this put.
    fn is_brought(&self, operation: &Operation) -> bool {
        let is_among = |payload: &String| self.brought.contains(payload.as_str());
        matches!(operation, Operation::Put { payload, .. } if is_among(payload))
    }
}

/// Whether an outcome says what has happened.
fn is_known(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Unknown => false,
        Outcome::Refused(word) => word != DISK_FAILED,
        _ => true,
    }
}
