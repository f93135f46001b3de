//! Reads a history: turns lines into calls with a beginning, an end and an outcome, and into
//! events.
//!
//! Anything that cannot be a history is refused here, with its line. Whether a server could have
//! behaved like that is not checked here.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::ops::Range;

use crate::history::record::{Event, Operation, Outcome, Record};

/// The refusal of a server whose disk has failed. The request may still be carried out, since
/// it is unknown what the disk has kept.
pub(crate) const DISK_FAILED: &str = "STORE";

/// A request from its beginning to its end, or one operation of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) client: u64,
    pub(crate) from_us: u64,
    /// The end of time if the outcome is unknown.
    pub(crate) to_us: u64,
    pub(crate) operation: Operation,
    pub(crate) outcome: Outcome,
    /// Whether it is an operation of a transaction. All of them have the same number, beginning and
    /// end.
    pub(crate) in_transaction: bool,
}

/// What clients saw.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) calls: Vec<Call>,
    /// With their moments, in the order of the file.
    pub(crate) events: Vec<(u64, Event)>,
}

/// Why a file is no history.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be read.
    #[error("the history cannot be read: {0}")]
    Input(#[from] io::Error),
    /// A line is no record.
    #[error("line {line}: {reason}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl Call {
    /// Enters its outcome.
    fn end(&mut self, at_us: u64, outcome: Outcome) -> Result<(), String> {
        let call = self.number;
        if at_us < self.from_us {
            return Err(format!("call {call} ends before it begins"));
        }
        if self.to_us != u64::MAX || self.outcome != Outcome::Unknown {
            return Err(format!("call {call} ends a second time"));
        }
        fits(&self.operation, &outcome)?;
        match outcome {
            Outcome::Unknown => {}
            Outcome::Refused(word) if word == DISK_FAILED => {}
            known => (self.to_us, self.outcome) = (at_us, known),
        }
        Ok(())
    }
}

impl History {
    /// Reads a history to its end.
    pub fn read(input: impl BufRead) -> Result<Self, Unreadable> {
        let mut history = Self::default();
        let mut places: HashMap<u64, Range<usize>> = HashMap::new();
        for read in numbered(input) {
            let (line, record) = read?;
            let refused = |reason: String| Unreadable::Line { line, reason };
            history.add(&mut places, record).map_err(refused)?;
        }
        Ok(history)
    }

    fn add(
        &mut self,
        places: &mut HashMap<u64, Range<usize>>,
        record: Record,
    ) -> Result<(), String> {
        match record {
            Record::Invoked { at_us, client, call, operation } => {
                let begin = self.calls.len();
                let in_transaction = matches!(operation, Operation::Transaction { .. });
                let operations = match operation {
                    Operation::Transaction { operations } => operations,
                    single => vec![single],
                };
                if places.insert(call, begin..begin + operations.len()).is_some() {
                    return Err(format!("call {call} begins a second time"));
                }
                for operation in operations {
                    if in_transaction && !may_be_part(&operation) {
                        return Err(format!("{operation:?} cannot be part of a transaction"));
                    }
                    self.calls.push(Call {
                        number: call,
                        client,
                        from_us: at_us,
                        to_us: u64::MAX,
                        operation,
                        outcome: Outcome::Unknown,
                        in_transaction,
                    });
                }
            }
            Record::Answered { at_us, call, outcome } => {
                let range = places.get(&call).ok_or_else(|| format!("call {call} never began"))?;
                let parts = &mut self.calls[range.clone()];
                let outcomes = match outcome {
                    Outcome::Transaction(outcomes) => {
                        let is_whole = parts.iter().all(|part| part.in_transaction);
                        let known =
                            |it: &Outcome| !matches!(it, Outcome::Unknown | Outcome::Refused(_));
                        let fits = is_whole && outcomes.iter().all(known);
                        if !fits || outcomes.len() != parts.len() {
                            return Err(format!("call {call} cannot be answered {outcomes:?}"));
                        }
                        outcomes
                    }
                    single => vec![single; parts.len()],
                };
                for (part, outcome) in parts.iter_mut().zip(outcomes) {
                    part.end(at_us, outcome)?;
                }
            }
            Record::Happened { at_us, event } => self.events.push((at_us, event)),
        }
        Ok(())
    }
}

/// Reads the records of a history. Whether one contradicts another is not looked at.
pub fn records(input: impl BufRead) -> Result<Vec<Record>, Unreadable> {
    numbered(input).map(|read| read.map(|(_, record)| record)).collect()
}

/// The records of a history with the numbers of their lines, from 1.
fn numbered(input: impl BufRead) -> impl Iterator<Item = Result<(usize, Record), Unreadable>> {
    input.lines().enumerate().map(|(index, text)| -> Result<(usize, Record), Unreadable> {
        let (text, line) = (text?, index + 1);
        match serde_json::from_str::<Record>(&text) {
            Ok(record) => Ok((line, record)),
            Err(error) => Err(Unreadable::Line { line, reason: error.to_string() }),
        }
    })
}

/// Checks whether this outcome is possible for this operation.
fn fits(operation: &Operation, outcome: &Outcome) -> Result<(), String> {
    let fitting = match outcome {
        Outcome::Refused(_) | Outcome::Unknown => true,
        Outcome::Put { .. } => matches!(operation, Operation::Put { .. }),
        Outcome::Tasks(_) => matches!(operation, Operation::Take { .. } | Operation::Pop { .. }),
        Outcome::Turned(_) => {
            matches!(
                operation,
                Operation::Release { .. } | Operation::Fail { .. } | Operation::Dig { .. }
            )
        }
        Outcome::Count(_) => {
            matches!(
                operation,
                Operation::Kill { .. } | Operation::Plow { .. } | Operation::Move { .. }
            )
        }
        Outcome::Transaction(_) => false,
        Outcome::Done => matches!(
            operation,
            Operation::Ack { .. }
                | Operation::Bury { .. }
                | Operation::Touch { .. }
                | Operation::Policy { .. }
                | Operation::Limits { .. }
                | Operation::NamedLimit { .. }
                | Operation::Disturb { .. }
        ),
    };
    if fitting { Ok(()) } else { Err(format!("{operation:?} cannot be answered {outcome:?}")) }
}

/// Whether an operation may be part of a transaction.
const fn may_be_part(operation: &Operation) -> bool {
    match operation {
        Operation::Put { .. }
        | Operation::Ack { .. }
        | Operation::Release { .. }
        | Operation::Bury { .. }
        | Operation::Fail { .. }
        | Operation::Touch { .. }
        | Operation::Kill { .. }
        | Operation::Dig { .. }
        | Operation::Disturb { .. } => true,
        Operation::Take { .. }
        | Operation::Pop { .. }
        | Operation::Plow { .. }
        | Operation::Move { .. }
        | Operation::Policy { .. }
        | Operation::Limits { .. }
        | Operation::NamedLimit { .. }
        | Operation::Transaction { .. } => false,
    }
}
