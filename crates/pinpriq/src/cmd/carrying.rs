//! `pinpriq export` and `import`: queues as lines of JSON, and jobs of a beanstalkd.
//!
//! The server makes and reads the records. The first line says what the file is, and the last one
//! how many records it has, so that a file that was cut is noticed.

mod beanstalkd;
mod export;
mod import;
mod once;
mod probe;

use std::path::Path;

use crate::args::carrying::ImportArgs;
use crate::exit::{Exit, Failure};

pub(crate) use export::export;
#[cfg(test)]
pub(super) use export::page_words;

/// The version of the file.
const VERSION: u64 = 1;

/// Brings in what a file or a beanstalkd has.
pub(crate) fn import(arguments: &ImportArgs) -> Result<Exit, Failure> {
    match &arguments.from_beanstalkd {
        Some(address) => beanstalkd::import(arguments, address),
        // The parser sees to it that there is one or the other.
        None => {
            import::import(arguments, arguments.file.as_deref().unwrap_or_else(|| Path::new("-")))
        }
    }
}

/// The numbers of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    /// By their type.
    of: [u64; TYPES.len()],
    /// How many of those of batches close one that another record opens.
    closing: u64,
}

/// The type of the record of a limit, which is of no queue.
const LIMIT: &str = "limit";

/// The type of the records of a batch, which is of no queue either. One opens it, before the
/// queues, and another one closes it after them.
const BATCH: &str = "batch";

/// The types of records, and what the last line calls their numbers.
const TYPES: [(&str, &str); 7] = [
    ("queue", "queues"),
    ("task", "tasks"),
    ("window", "windows"),
    ("schedule", "schedules"),
    ("share", "shares"),
    (LIMIT, "limits"),
    (BATCH, "batches"),
];

/// How the record of a batch ends that closes it.
const CLOSING: &[u8] = br#","state":"closed"}"#;

/// The types that files have had from the beginning.
const ALWAYS: usize = 4;

impl Counts {
    /// Counts a line. Returns whether it begins like a record.
    fn add(&mut self, line: &[u8]) -> bool {
        let is_of = |kind: &str| {
            let rest = line
                .strip_prefix(br#"{"type":""#)
                .and_then(|rest| rest.strip_prefix(kind.as_bytes()));
            rest.is_some_and(|rest| rest.starts_with(b"\""))
        };
        let place = TYPES.iter().position(|(kind, _)| is_of(kind));
        if let Some(count) = place.and_then(|place| self.of.get_mut(place)) {
            *count += 1;
        }
        self.closing += u64::from(is_of(BATCH) && line.ends_with(CLOSING));
        place.is_some()
    }

    fn sum(self) -> u64 {
        self.of.iter().sum()
    }

    /// The numbers with their names. One of a type that files did not always have is left out if it
    /// is 0, so the last line of older files is right too.
    fn named(self) -> impl Iterator<Item = (&'static (&'static str, &'static str), u64)> {
        let named = TYPES.iter().zip(self.of).enumerate();
        named.filter(|(at, (_, count))| *at < ALWAYS || *count > 0).map(|(_, named)| named)
    }

    /// The last line of a file.
    fn end(self) -> String {
        let counts = self.named().map(|((_, name), count)| format!(",\"{name}\":{count}"));
        format!("{{\"type\":\"end\"{}}}", counts.collect::<String>())
    }

    /// The numbers for people. A batch counts once, also if it has two records.
    fn in_words(self) -> String {
        let parts = self.named().map(|((one, many), records)| {
            let count = if *one == BATCH { records - self.closing } else { records };
            format!("{count} {}", if count == 1 { one } else { many })
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// The first line of a file.
fn header() -> String {
    format!("{{\"type\":\"pinpriq-export\",\"version\":{VERSION}}}")
}
