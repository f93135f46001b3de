//! Writes metrics as text: `OpenMetrics` 1.0, or the older text format of Prometheus, 0.0.4.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::sight::Sight;
use super::table::{Chapter, Kind, Label, Metric, Reading, TABLE};

/// What all names begin with.
pub(super) const PREFIX: &str = "pinpriq";

/// A format of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// Returns what a client prefers, by the value of its `Accept`. `OpenMetrics` has to be named.
    pub(super) fn preferred(accept: &str) -> Self {
        let (mut open, mut plain) = (0, 0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut weight, mut is_known) = (1_000, true);
            for part in parts {
                match part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                    Some(("q", value)) => weight = thousandths(value),
                    Some(("version", value)) => {
                        is_known = matches!(value.trim_matches('"'), "1.0.0" | "0.0.1" | "0.0.4");
                    }
                    _ => {}
                }
            }
            match name.as_str() {
                "application/openmetrics-text" if is_known => open = open.max(weight),
                "text/plain" | "text/*" | "*/*" if is_known => plain = plain.max(weight),
                _ => {}
            }
        }
        if open > 0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the media type of an answer.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Returns a weight such as `0.75` in thousandths.
fn thousandths(weight: &str) -> u32 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    (number(whole) * 1_000 + number(&part)).min(1_000)
}

/// A piece ends with the first readings after which it has this many bytes. Each waits for an idle
/// processor, so that there should not be many of them.
const PIECE_BYTES: usize = 512 << 10;

/// The most readings of a metric that are written before the length of a piece is looked at.
const READINGS_MAX: usize = 64;

/// What ends `OpenMetrics`.
const END: &str = "# EOF\n";

/// Where a piece begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    /// The place of a metric in the table.
    metric: usize,
    /// How many of its readings are written already.
    readings: usize,
}

/// Returns some metrics from this place on, and the place where the next piece begins, if there is
/// one. So never more than a small part of all of them is in memory.
pub(super) fn piece(
    sight: &Arc<Sight>,
    format: Format,
    mut place: Place,
) -> (String, Option<Place>) {
    let mut piece = String::new();
    while piece.len() < PIECE_BYTES && place.metric < TABLE.len() {
        let is_whole = Arc::new(AtomicBool::new(true));
        let mut registry = Registry::with_prefix(PREFIX);
        let part = Part { sight: Arc::clone(sight), place, is_whole: is_whole.clone() };
        registry.register_collector(Box::new(part));
        let mut written = String::new();
        // A string takes everything.
        let _ = text::encode(&mut written, &registry);
        let mut told = written.strip_suffix(END).unwrap_or(&written);
        // What the metric means was told with its first readings.
        while place.readings > 0 && told.starts_with('#') {
            told = told.split_once('\n').map_or("", |(_, rest)| rest);
        }
        match format {
            Format::OpenMetrics => piece.push_str(told),
            Format::Prometheus => piece.push_str(&older(told)),
        }
        place = if is_whole.load(Ordering::Relaxed) {
            Place { metric: place.metric + 1, readings: 0 }
        } else {
            Place { readings: place.readings + READINGS_MAX, ..place }
        };
    }
    if place.metric < TABLE.len() {
        return (piece, Some(place));
    }
    if format == Format::OpenMetrics {
        piece.push_str(END);
    }
    (piece, None)
}

/// Some readings of one metric.
#[derive(Debug)]
struct Part {
    sight: Arc<Sight>,
    place: Place,
    /// Whether no readings follow.
    is_whole: Arc<AtomicBool>,
}

impl Collector for Part {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(metric) = TABLE.get(self.place.metric) else { return Ok(()) };
        let wanted = self.place.readings..self.place.readings + READINGS_MAX;
        let told = encode(metric, (&self.sight, &wanted), &mut encoder)?;
        self.is_whole.store(told <= wanted.end, Ordering::Relaxed);
        Ok(())
    }
}

/// Writes these readings of one metric, unless there is nothing to tell. Returns how many there
/// are.
fn encode(
    metric: &Metric,
    (sight, wanted): (&Sight, &Range<usize>),
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<usize, fmt::Error> {
    let (stem, unit) = (metric.stem(), metric.unit.map(|unit| Unit::Other(unit.to_owned())));
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::Info => MetricType::Info,
    };
    let mut begun: Option<MetricEncoder<'_>> = None;
    let mut ended = Ok(());
    let mut encoder = Some(encoder);
    if metric.chapter != Chapter::Queues && !sight.shows_server {
        return Ok(0);
    }
    let mut told = 0;
    metric.read(sight, &mut |labels, reading| {
        told += 1;
        if ended.is_err() || !wanted.contains(&(told - 1)) {
            return;
        }
        if let Some(encoder) = encoder.take() {
            match encoder.encode_descriptor(stem, &plain(metric.help()), unit.as_ref(), kind) {
                Ok(encoder) => begun = Some(encoder),
                Err(error) => ended = Err(error),
            }
        }
        if let Some(begun) = &mut begun {
            ended = encode_one(begun, metric.kind, labels, reading);
        }
    });
    ended.map(|()| told)
}

/// Returns a sentence without the addresses of its links.
fn plain(sentence: &str) -> String {
    let mut plain = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((words, after)) = link.split_once("](") else {
            rest = link;
            break;
        };
        plain.push_str(words);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn encode_one(
    begun: &mut MetricEncoder<'_>,
    kind: Kind,
    labels: &[Label<'_>],
    reading: Reading,
) -> fmt::Result {
    if kind == Kind::Info {
        return begun.encode_info(&labels);
    }
    if labels.is_empty() {
        return put(begun, kind, reading);
    }
    put(&mut begun.encode_family(&labels)?, kind, reading)
}

fn put(encoder: &mut MetricEncoder<'_>, kind: Kind, reading: Reading) -> fmt::Result {
    match (reading, kind) {
        (Reading::Whole(number), Kind::Counter) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&number, None)
        }
        (Reading::Real(number), Kind::Counter) => {
            encoder.encode_counter::<NoLabelSet, _, u64>(&number, None)
        }
        (Reading::Whole(number), _) => encoder.encode_gauge(&number),
        (Reading::Real(number), _) => encoder.encode_gauge(&number),
        (Reading::Values { sum, buckets }, _) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            let none: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
            encoder.encode_histogram(sum, count, &buckets, none)
        }
    }
}

/// Returns `OpenMetrics` in the older format: names of counters are those of their samples, what
/// only tells something is a gauge, and neither units nor the end are told.
fn older(written: &str) -> String {
    let mut older = String::with_capacity(written.len());
    let mut help = None;
    for line in written.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if let Some(told) = line.strip_prefix("# HELP ") {
            help = told.split_once(' ');
            continue;
        }
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|told| told.split_once(' '))
        else {
            older.push_str(line);
            older.push('\n');
            continue;
        };
        let (suffix, kind) = match kind {
            "counter" => ("_total", kind),
            "info" => ("_info", "gauge"),
            _ => ("", kind),
        };
        if let Some((_, help)) = help.take() {
            let _ = writeln!(older, "# HELP {name}{suffix} {help}");
        }
        let _ = writeln!(older, "# TYPE {name}{suffix} {kind}");
    }
    older
}

#[cfg(test)]
mod tests;
