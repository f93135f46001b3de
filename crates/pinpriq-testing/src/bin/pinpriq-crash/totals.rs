//! The total figures of several histories.

use std::collections::BTreeMap;
use std::fmt;

use pinpriq_testing::history::Report;

/// The total of all histories of a scenario.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) calls: u64,
    pub(crate) puts: u64,
    pub(crate) acks: u64,
    pub(crate) failures: u64,
    pub(crate) moved: u64,
    pub(crate) transactions: u64,
    pub(crate) deliveries: u64,
    pub(crate) redeliveries: u64,
    pub(crate) ordered: u64,
    pub(crate) limited: u64,
    pub(crate) unknown: u64,
    pub(crate) violations: BTreeMap<String, usize>,
}

impl Totals {
    /// Adds a finished history.
    pub(crate) fn add(&mut self, report: &Report) {
        let tally = &report.tally;
        self.calls += tally.calls;
        self.puts += tally.puts;
        self.acks += tally.acks;
        self.failures += tally.failures;
        self.moved += tally.moved;
        self.transactions += tally.transactions;
        self.deliveries += tally.deliveries;
        self.redeliveries += tally.redeliveries;
        self.ordered += tally.ordered;
        self.limited += tally.limited;
        self.unknown += tally.unknown;
        for (verdict, count) in report.counts() {
            *self.violations.entry(verdict.to_string()).or_insert(0) += count;
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.violations.get("LOST").copied().unwrap_or(0);
        write!(
            f,
            "{} requests ({} of unknown outcome), {} puts and {} acks acknowledged, \
             {} failures, {} moved, {} transactions, \
             {} deliveries ({} of them again, {} judged by order, {} by limits), lost = {lost}",
            self.calls,
            self.unknown,
            self.puts,
            self.acks,
            self.failures,
            self.moved,
            self.transactions,
            self.deliveries,
            self.redeliveries,
            self.ordered,
            self.limited,
        )?;
        for (verdict, count) in self.violations.iter().filter(|(verdict, _)| *verdict != "LOST") {
            write!(f, ", {verdict} = {count}")?;
        }
        if self.is_clean() {
            f.write_str(", nothing else to object to")?;
        }
        Ok(())
    }
}
