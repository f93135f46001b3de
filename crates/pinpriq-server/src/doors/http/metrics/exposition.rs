//! Writes metrics as text: `OpenMetrics` 1.0, or the older text format of Prometheus, 0.0.4.

use std::fmt::{Display, Write as _};

use super::sight::Sight;
use super::table::{Chapter, Kind, Label, Metric, Reading, TABLE};

/// What all names begin with.
pub(crate) const PREFIX: &str = "pinpriq";

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

/// Where a piece begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PieceStart {
    /// The place of a metric in the table.
    metric: usize,
    /// How many of its readings are written already.
    readings: usize,
}

/// Returns some metrics from this place on, and the place where the next piece begins, if there is
/// one. So never more than a small part of all of them is in memory.
pub(super) fn piece(
    sight: &Sight,
    format: Format,
    mut start: PieceStart,
) -> (String, Option<PieceStart>) {
    let mut piece = String::new();
    while piece.len() < PIECE_BYTES && start.metric < TABLE.len() {
        let metric = &TABLE[start.metric];
        let wanted = start.readings..start.readings + READINGS_MAX;
        let mut told = 0;
        if metric.chapter == Chapter::Queues || sight.shows_server {
            metric.read(sight, &mut |labels, reading| {
                if told == 0 && wanted.start == 0 {
                    put_head(&mut piece, metric, format);
                }
                if wanted.contains(&told) {
                    put_samples(&mut piece, metric.name, labels, reading);
                }
                told += 1;
            });
        }
        start = if told <= wanted.end {
            PieceStart { metric: start.metric + 1, readings: 0 }
        } else {
            PieceStart { readings: wanted.end, ..start }
        };
    }
    if start.metric < TABLE.len() {
        return (piece, Some(start));
    }
    if format == Format::OpenMetrics {
        piece.push_str("# EOF\n");
    }
    (piece, None)
}

/// Writes what a metric means. In the older format, names of counters are those of their samples,
/// what only tells something is a gauge, and units are not told.
fn put_head(out: &mut String, metric: &Metric, format: Format) {
    let (name, kind) = match (format, metric.kind()) {
        (Format::OpenMetrics, kind) => (metric.family(), kind),
        (Format::Prometheus, Kind::Info) => (metric.name, Kind::Gauge),
        (Format::Prometheus, kind) => (metric.name, kind),
    };
    let _ = writeln!(out, "# HELP {PREFIX}_{name} {}", plain(metric.help()));
    let _ = writeln!(out, "# TYPE {PREFIX}_{name} {}", kind.word());
    if let Some(unit) = metric.unit().filter(|_| format == Format::OpenMetrics) {
        let _ = writeln!(out, "# UNIT {PREFIX}_{name} {unit}");
    }
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

/// Writes a reading: one line, or several if it is a histogram.
fn put_samples(out: &mut String, name: &str, labels: &[Label<'_>], reading: Reading) {
    match reading {
        Reading::Whole(number) => put_sample(out, (name, ""), labels, number),
        Reading::Signed(number) => put_sample(out, (name, ""), labels, number),
        Reading::Real(number) => put_sample(out, (name, ""), labels, real(number)),
        Reading::Values { sum, count, buckets } => {
            put_sample(out, (name, "_sum"), labels, real(sum));
            put_sample(out, (name, "_count"), labels, count);
            let buckets = buckets.into_iter().map(|(bound, count)| (real(bound), count));
            for (bound, count) in buckets.chain([("+Inf".to_owned(), count)]) {
                let labels = [&[("le", &*bound)], labels].concat();
                put_sample(out, (name, "_bucket"), &labels, count);
            }
        }
    }
}

fn put_sample(
    out: &mut String,
    (name, suffix): (&str, &str),
    labels: &[Label<'_>],
    value: impl Display,
) {
    let _ = write!(out, "{PREFIX}_{name}{suffix}");
    for (at, (label, value)) in labels.iter().enumerate() {
        let before = if at == 0 { '{' } else { ',' };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{before}{label}=\"{value}\"");
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{end} {value}");
}

/// Returns a number that always has a point.
fn real(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

#[cfg(test)]
mod tests;
