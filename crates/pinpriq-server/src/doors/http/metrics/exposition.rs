//! Writes metrics as text: `OpenMetrics` 1.0, or the older text format of Prometheus, 0.0.4.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

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

/// Writes all metrics.
pub(super) fn write(sight: Arc<Sight>, format: Format) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Collected(sight)));
    let mut written = String::new();
    // A string takes everything.
    let _ = text::encode(&mut written, &registry);
    match format {
        Format::OpenMetrics => written,
        Format::Prometheus => older(&written),
    }
}

#[derive(Debug)]
struct Collected(Arc<Sight>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        TABLE.iter().try_for_each(|metric| encode(metric, &self.0, &mut encoder))
    }
}

/// Writes one metric, unless there is nothing to tell.
fn encode(metric: &Metric, sight: &Sight, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
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
        return Ok(());
    }
    metric.read(sight, &mut |labels, reading| {
        if ended.is_err() {
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
    ended
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
