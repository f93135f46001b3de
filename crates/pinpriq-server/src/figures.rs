//! The figures that people and programs watch. Each is described once, with the function that reads
//! it from plain facts.
//!
//! [`info`] lists those of the server, which `INFO` prints by section. [`stats`] lists those of
//! queues, which `STATS` prints. Nothing is counted here, and no shard is asked.

pub(crate) mod info;
pub(crate) mod stats;

use std::fmt::Write as _;

use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::request::table::places::is_same;
use pinpriq_proto::stats::Counters;
use pinpriq_store::Histogram;

/// The description of one figure. `F` is what it is read from, and `S` says where it is printed.
pub(crate) struct Figure<F, S> {
    /// Where it is printed.
    pub(crate) section: S,
    /// Its stable name for programs. A label follows if there is a number for each.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// What it means, for the documentation.
    pub(crate) help: &'static str,
    /// Reads its current value. The value suits the kind.
    pub(crate) read: fn(&F) -> Value,
}

/// How a figure behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A number that only grows while the server runs.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A word or a sentence.
    Text,
    /// How many values there were of which size.
    Histogram,
    /// A counter for each value of this label.
    Counters(&'static str),
    /// A gauge for each value of this label.
    Gauges(&'static str),
}

/// What a figure counts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// No unit: a number of things, or no number.
    Plain,
    Bytes,
    Seconds,
    Milliseconds,
    Microseconds,
}

/// What a figure is at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Number(u64),
    /// There is no such number at the moment.
    Missing,
    Text(String),
    Histogram(Box<Histogram>),
    Times(Box<TimeHistogram>),
    /// A number for each value of the label.
    Each(Vec<(String, u64)>),
}

/// Returns a table of figures. Under each section stand their names, with kind, unit and help, and
/// what reads the value. A name alone is one of [`COUNTED`].
macro_rules! figures {
    ($($section:tt { $(
        $name:ident $(: $kind:ident $(($label:literal))? $unit:ident $help:literal,
            |$it:tt| $read:expr)?;
    )* })*) => {
        &[$($($crate::figures::figure!(
            $section $name $(: $kind $(($label))? $unit $help, |$it| $read)?
        ),)*)*]
    };
}

macro_rules! figure {
    ($section:tt $name:ident) => {
        $crate::figures::Figure {
            section: $section,
            name: stringify!($name),
            kind: $crate::figures::counted(stringify!($name)).kind,
            unit: $crate::figures::counted(stringify!($name)).unit,
            help: $crate::figures::counted(stringify!($name)).help,
            read: |it| (const { $crate::figures::counted(stringify!($name)) }.read)(&it.counters),
        }
    };
    (
        $section:tt $name:ident: $kind:ident $(($label:literal))? $unit:ident $help:literal,
        |$it:tt| $read:expr
    ) => {
        $crate::figures::Figure {
            section: $section,
            name: stringify!($name),
            kind: $crate::figures::Kind::$kind $(($label))?,
            unit: $crate::figures::Unit::$unit,
            help: $help,
            read: |$it| $crate::figures::Value::from($read),
        }
    };
}

use {figure, figures};

/// What is counted of tasks: in the whole server, and in each queue.
const COUNTED: &[Figure<Counters, ()>] = figures! {
    () {
        present: Gauge Plain "tasks that are there, in R, T, W or B", |it| it.present();
        put: Counter Plain
            "tasks that came in, including those found at the start; kept ones are left out",
            |it| it.put;
        acked: Counter Plain "tasks that were acknowledged or popped, also those that are kept",
            |it| it.acked;
        expired: Counter Plain "tasks that left because their TTL had passed", |it| it.expired;
        killed: Counter Plain "tasks that were removed before they were acknowledged",
            |it| it.killed;
        dead: Counter Plain "tasks that left because they became dead letters", |it| it.dead;
        evicted: Counter Plain "tasks that made room for more urgent ones", |it| it.evicted;
        moved: Counter Plain "tasks that were moved to another queue", |it| it.moved;
        cancelled: Counter Plain "tasks that were cancelled", |it| it.cancelled;
        skipped: Counter Plain "tasks that were skipped after their batches", |it| it.skipped;
        failures: Counter Plain "how often tasks have failed", |it| it.failures;
        duplicates: Counter Plain "puts that met a duplicate", |it| it.duplicates;
        bytes: Gauge Bytes "the payloads and keys of the tasks that are there", |it| it.bytes;
        purged: Counter Plain "kept tasks that were removed", |it| it.purged;
        revived: Counter Plain "tasks that came back after they were acknowledged or popped",
            |it| it.revived;
    }
};

/// Returns the figure of this name. For constants: there must be one.
const fn counted(name: &str) -> &'static Figure<Counters, ()> {
    let mut at = 0;
    while !is_same(COUNTED[at].name, name) {
        at += 1;
    }
    &COUNTED[at]
}

/// Defines what values are made of.
macro_rules! values {
    ($($from:ty: |$it:ident| $value:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($it: $from) -> Self {
                $value
            }
        }
    )*};
}

values! {
    u64: |number| Self::Number(number);
    Option<u64>: |number| number.map_or(Self::Missing, Self::Number);
    &str: |text| Self::Text(text.to_owned());
    String: |text| Self::Text(text);
    Histogram: |values| Self::Histogram(Box::new(values));
    TimeHistogram: |times| Self::Times(Box::new(times));
}

impl Value {
    /// Returns the numbers of a value that has several, by their names.
    pub(crate) fn numbers(self) -> Vec<(String, u64)> {
        let (count, sum, bounds): (_, _, Vec<_>) = match self {
            Self::Each(numbers) => return numbers,
            Self::Number(_) | Self::Missing | Self::Text(_) => return Vec::new(),
            Self::Histogram(values) => {
                let bounds = values.up_to().map(|(bound, count)| (Some(bound), count));
                (values.count(), values.sum(), bounds.collect())
            }
            Self::Times(times) => (times.count(), times.sum_ms, times.up_to().collect()),
        };
        let bounds = bounds.into_iter().map(|(bound, count)| {
            (bound.map_or_else(|| "le_inf".to_owned(), |bound| format!("le_{bound}")), count)
        });
        [("count".to_owned(), count), ("sum".to_owned(), sum)].into_iter().chain(bounds).collect()
    }
}

impl Kind {
    /// Returns the label that distinguishes several numbers under one name.
    pub(crate) const fn label(self) -> Option<&'static str> {
        match self {
            Self::Counters(label) | Self::Gauges(label) => Some(label),
            Self::Counter | Self::Gauge | Self::Text | Self::Histogram => None,
        }
    }
}

/// Returns a histogram as one line: the number of values, their sum, and the numbers of values up
/// to a bound. A bound is left out if no value is between it and the one before.
pub(crate) fn histogram_line(histogram: &Histogram) -> String {
    let mut line = format!("count={},sum={}", histogram.count(), histogram.sum());
    let mut before = 0;
    for (bound, count) in histogram.up_to() {
        if count > before {
            let _ = write!(line, ",le{bound}={count}");
        }
        before = count;
    }
    line
}

#[cfg(test)]
mod tests;
