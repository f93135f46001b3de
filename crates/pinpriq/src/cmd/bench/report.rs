//! The measurements, as a table for people or as JSON for programs.
//!
//! Latencies of a closed loop are shown corrected; JSON also has them as measured. All numbers are
//! integers, so that readers do not round them again.

use std::fmt::Write as _;

use pinpriq_load::{Figures, Latency, Step};

use crate::args::bench::BenchArgs;
use crate::json::Json;

use super::usage::ProcessUsage;

/// The reported quantiles of a distribution.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// A measurement and its circumstances.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) arguments: &'a BenchArgs,
    /// The number of jobs under way at a time.
    pub(super) slots: usize,
    /// The number of members of each topic; 0 if nothing was published.
    pub(super) members: u32,
    pub(super) figures: Figures,
    pub(super) before: Option<ProcessUsage>,
    pub(super) after: Option<ProcessUsage>,
}

impl Report<'_> {
    /// The table.
    pub(super) fn text(&self) -> String {
        let Self { arguments, figures, .. } = self;
        let mut text = String::new();
        let BenchArgs { connections, depth, size, priorities, queues, .. } = arguments;
        let _ = writeln!(
            text,
            "{}{} over {}, connections × depth {connections} × {depth}, {size} bytes, \
             priorities {priorities}, {}",
            word(&arguments.workload),
            if arguments.done { " with --done" } else { "" },
            word(&arguments.door),
            match self.members {
                0 if arguments.keep_queue => format!("queues {queues}, one for each connection"),
                0 => format!("queues {queues}"),
                members => format!("topics {queues}, members {members}"),
            },
        );
        let loop_kind = match arguments.rate {
            Some(rate) => format!("open loop, {rate} jobs/s due"),
            None => "closed loop, latencies corrected".to_owned(),
        };
        let _ = writeln!(text, "{} s, {loop_kind}\n", thousandths(figures.elapsed_ns / 1_000_000));
        let mut rows = vec![
            ("jobs", figures.jobs, figures.jobs_in_time),
            ("requests", figures.requests, figures.requests_in_time),
        ];
        rows.extend(self.fan_out());
        for (what, all, in_time) in rows {
            let rate = per_second(in_time, figures.elapsed_ns);
            let _ = writeln!(text, "{what:9} {all:>12} {rate:>12}/s");
        }
        let _ = writeln!(text, "{:9} {:>12}", "refused", figures.refused());
        for (refusal, count) in &figures.refusals {
            let _ = writeln!(text, "  {refusal:9} {count:>10}");
        }
        let _ = writeln!(text, "{:9} {:>12}", "empty", figures.empty);
        text += &self.latency_table();
        text += &self.usage_text();
        text
    }

    /// Returns publications, and copies that were acknowledged: all of them, and those in time.
    fn fan_out(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let of = |step| {
            let figures = self.figures.step(step);
            (figures.done, figures.done_in_time)
        };
        let rows = [("published", of(Step::Publish)), ("delivered", of(Step::Ack))];
        let members = self.members;
        rows.into_iter()
            .filter(move |_| members > 0)
            .map(|(what, (all, in_time))| (what, all, in_time))
    }

    fn latency_table(&self) -> String {
        let mut text = format!("\n{:9}", "µs");
        for (name, _) in QUANTILES {
            let _ = write!(text, " {name:>12}");
        }
        let _ = writeln!(text, " {:>12}", "max");
        for (name, _, latency) in self.latencies() {
            let _ = write!(text, "{name:9}");
            for (_, quantile) in QUANTILES {
                let _ = write!(text, " {:>12}", thousandths(latency.at_quantile_ns(quantile)));
            }
            let _ = writeln!(text, " {:>12}", thousandths(latency.max_ns()));
        }
        text
    }

    fn usage_text(&self) -> String {
        let mut text = String::new();
        if let Some((before, after)) = self.process() {
            let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
            let _ = writeln!(
                text,
                "\nserver    {} s of CPU: {} µs a request, {} s a million jobs\n\
                 resident  {} MiB before, {} MiB after",
                thousandths(cpu_ns / 1_000_000),
                thousandths(cpu_ns / self.figures.requests.max(1)),
                thousandths(cpu_ns / self.figures.jobs.max(1)),
                before.resident_bytes >> 20,
                after.resident_bytes >> 20,
            );
        }
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let Self { arguments, figures, .. } = self;
        let number = |number: u32| Json::Number(u64::from(number));
        let or_null = |number: Option<u64>| number.map_or(Json::Null, Json::Number);
        let mut members = vec![
            ("workload", Json::text(word(&arguments.workload))),
            ("done", Json::Bool(arguments.done)),
            ("door", Json::text(word(&arguments.door))),
            ("connections", number(arguments.connections)),
            ("depth", number(arguments.depth)),
            ("payload_bytes", number(arguments.size)),
            ("priorities", number(arguments.priorities)),
            ("queues", number(arguments.queues)),
            ("keep_queue", Json::Bool(arguments.keep_queue)),
            ("seed", Json::Number(arguments.seed)),
            ("rate_per_second", or_null(arguments.rate)),
            ("elapsed_ns", Json::Number(figures.elapsed_ns)),
            ("jobs", Json::Number(figures.jobs)),
            ("jobs_per_second", Json::Number(per_second(figures.jobs_in_time, figures.elapsed_ns))),
            ("requests", Json::Number(figures.requests)),
            (
                "requests_per_second",
                Json::Number(per_second(figures.requests_in_time, figures.elapsed_ns)),
            ),
            ("empty", Json::Number(figures.empty)),
            ("refused", Json::Number(figures.refused())),
            ("refusals", refusals_json(figures)),
        ];
        if self.members > 0 {
            let delivered = figures.step(Step::Ack);
            let published = figures.step(Step::Publish);
            let rate = |in_time| Json::Number(per_second(in_time, figures.elapsed_ns));
            members.extend([
                ("members", number(self.members)),
                ("published", Json::Number(published.done)),
                ("published_per_second", rate(published.done_in_time)),
                ("delivered", Json::Number(delivered.done)),
                ("delivered_per_second", rate(delivered.done_in_time)),
            ]);
        }
        let latencies = self.latencies();
        let of_each = latencies.iter().map(|(name, measured, corrected)| {
            let told = [("corrected", corrected), ("measured", *measured)];
            (*name, Json::Object(told.map(|(name, it)| (name, latency_json(it))).to_vec()))
        });
        members.push(("latency", Json::Object(of_each.collect())));
        if let Some((before, after)) = self.process() {
            let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
            members.extend([
                ("cpu_ns", Json::Number(cpu_ns)),
                ("cpu_ns_per_request", Json::Number(cpu_ns / figures.requests.max(1))),
                ("cpu_ns_per_job", Json::Number(cpu_ns / figures.jobs.max(1))),
                ("resident_bytes_before", Json::Number(before.resident_bytes)),
                ("resident_bytes_after", Json::Number(after.resident_bytes)),
            ]);
        }
        format!("{}\n", Json::Object(members))
    }

    fn process(&self) -> Option<(ProcessUsage, ProcessUsage)> {
        Some((self.before?, self.after?))
    }

    /// Returns the latencies of each sort of request that was sent, and of whole jobs: their name,
    /// as measured, and as corrected, which is the same in an open loop.
    fn latencies(&self) -> Vec<(&'static str, &Latency, Latency)> {
        let figures = &self.figures;
        let steps = Step::ALL.map(|step| (step.word(), &figures.step(step).latency));
        let with_jobs = steps
            .into_iter()
            .map(|(name, latency)| (name, latency, figures.requests))
            .chain([("job", &figures.job_latency, figures.jobs)]);
        with_jobs
            .filter(|(_, latency, _)| latency.count() > 0)
            .map(|(name, latency, all)| (name, latency, self.corrected(latency, all)))
            .collect()
    }

    /// Corrects latencies of a closed loop in which all slots together did `all` of these things.
    /// It assumes that every slot did an equal share of them.
    fn corrected(&self, latency: &Latency, all: u64) -> Latency {
        if self.arguments.rate.is_some() {
            return latency.clone();
        }
        let slots = u64::try_from(self.slots).unwrap_or(u64::MAX);
        let expected_ns = self.figures.elapsed_ns.saturating_mul(slots) / all.max(1);
        latency.corrected(expected_ns)
    }
}

fn refusals_json(figures: &Figures) -> Json {
    let each = figures.refusals.iter().map(|(word, count)| (word.clone(), Json::Number(*count)));
    Json::Map(each.collect())
}

fn latency_json(latency: &Latency) -> Json {
    let names = ["p50_ns", "p99_ns", "p999_ns"];
    let quantiles = QUANTILES.map(|(_, quantile)| latency.at_quantile_ns(quantile));
    let mut members: Vec<_> = names.into_iter().zip(quantiles.map(Json::Number)).collect();
    members.push(("max_ns", Json::Number(latency.max_ns())));
    Json::Object(members)
}

/// Returns the word of the command line.
fn word(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn per_second(count: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Returns a thousandth of a number with one decimal, or two if it is less than 1.
fn thousandths(number: u64) -> String {
    match (number / 1_000, number % 1_000) {
        (0, rest) => format!("0.{:02}", rest / 10),
        (whole, rest) => format!("{whole}.{}", rest / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::{per_second, thousandths};

    #[test]
    fn rates_are_counted_in_seconds() {
        assert_eq!(per_second(500, 250_000_000), 2_000);
        assert_eq!(per_second(0, 0), 0);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn thousandths_have_as_many_digits_as_mean_something() {
        let table = [(0, "0.00"), (57, "0.05"), (999, "0.99"), (1_234, "1.2"), (98_765, "98.7")];
        for (number, text) in table {
            assert_eq!(thousandths(number), text);
        }
    }
}
