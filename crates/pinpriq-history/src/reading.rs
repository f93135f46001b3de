//! Reads a history: turns lines into calls with a beginning, an end and an outcome, and into
//! events.
//!
//! Anything that cannot be a history is refused here, with its line. Whether a server could have
//! behaved like that is not checked here.

use std::collections::HashMap;
use std::io::{self, BufRead};

use crate::record::{Event, Operation, Outcome, Record};

/// The refusal of a server whose disk has failed. The request may still be carried out, since
/// nobody knows what the disk has kept.
const DISK_FAILED: &str = "STORE";

/// A request from its beginning to its end.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) client: u64,
    pub(crate) from_us: u64,
    /// The end of time if the outcome is unknown.
    pub(crate) to_us: u64,
    pub(crate) operation: Operation,
    pub(crate) outcome: Outcome,
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

impl History {
    /// Reads a history to its end.
    pub fn read(input: impl BufRead) -> Result<Self, Unreadable> {
        let mut history = Self::default();
        let mut places: HashMap<u64, usize> = HashMap::new();
        for (index, line) in input.lines().enumerate() {
            let line = line?;
            let at = |reason: String| Unreadable::Line { line: index + 1, reason };
            let record = serde_json::from_str(&line).map_err(|error| at(error.to_string()))?;
            history.add(&mut places, record).map_err(at)?;
        }
        Ok(history)
    }

    fn add(&mut self, places: &mut HashMap<u64, usize>, record: Record) -> Result<(), String> {
        match record {
            Record::Invoked { at_us, client, call, operation } => {
                if places.insert(call, self.calls.len()).is_some() {
                    return Err(format!("call {call} begins a second time"));
                }
                let outcome = Outcome::Unknown;
                let (from_us, to_us) = (at_us, u64::MAX);
                let number = call;
                self.calls.push(Call { number, client, from_us, to_us, operation, outcome });
            }
            Record::Answered { at_us, call, outcome } => {
                let place = places.get(&call).ok_or_else(|| format!("call {call} never began"))?;
                let call_of = &mut self.calls[*place];
                if at_us < call_of.from_us {
                    return Err(format!("call {call} ends before it begins"));
                }
                if call_of.to_us != u64::MAX || call_of.outcome != Outcome::Unknown {
                    return Err(format!("call {call} ends a second time"));
                }
                fits(&call_of.operation, &outcome)?;
                match outcome {
                    Outcome::Unknown => {}
                    Outcome::Refused(word) if word == DISK_FAILED => {}
                    known => (call_of.to_us, call_of.outcome) = (at_us, known),
                }
            }
            Record::Happened { at_us, event } => self.events.push((at_us, event)),
        }
        Ok(())
    }
}

/// Checks whether this outcome is possible for this operation.
fn fits(operation: &Operation, outcome: &Outcome) -> Result<(), String> {
    let fitting = match outcome {
        Outcome::Refused(_) | Outcome::Unknown => true,
        Outcome::Put { .. } => matches!(operation, Operation::Put { .. }),
        Outcome::Tasks(_) => matches!(operation, Operation::Take { .. } | Operation::Pop { .. }),
        Outcome::Turned(_) => {
            matches!(operation, Operation::Release { .. } | Operation::Dig { .. })
        }
        Outcome::Count(_) => matches!(operation, Operation::Kill { .. } | Operation::Plow { .. }),
        Outcome::Done => matches!(
            operation,
            Operation::Ack { .. }
                | Operation::Bury { .. }
                | Operation::Touch { .. }
                | Operation::Disturb { .. }
        ),
    };
    if fitting { Ok(()) } else { Err(format!("{operation:?} cannot be answered {outcome:?}")) }
}
