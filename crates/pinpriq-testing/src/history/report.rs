//! What the checker found, for programs and for people.

use std::collections::BTreeMap;
use std::fmt;

/// What a correct server never does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// An acknowledged task is gone, and nothing can have ended it.
    Lost,
    /// A task was handed out while a client certainly had it, or one put came out as two tasks.
    Duplicated,
    /// A task was handed out after it had ended.
    Resurrected,
    /// A request was accepted although its receipt was certainly not current.
    StaleAccepted,
    /// A receipt was given out twice.
    ReceiptReused,
    /// A task was handed out while a better one was certainly ready.
    OutOfOrder,
    /// A lease ended before its time.
    EarlyExpired,
    /// A task was handed out before its delay had passed.
    EarlyDelivered,
    /// A task was handed out after its time to live had passed.
    AfterTtl,
    /// A task was handed out that was never put.
    Invented,
    /// A task was handed out with another payload than it was put with.
    Corrupt,
    /// A failure of a task was the last one too early, or not although it had to be.
    Miscounted,
    /// A part of a transaction has happened and another part has not.
    Torn,
    /// More tasks were taken at once than a limit allows.
    OverLimit,
    /// A task was handed out while another one of its key certainly held it back.
    KeyPassed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "LOST",
            Self::Duplicated => "DUPLICATED",
            Self::Resurrected => "RESURRECTED",
            Self::StaleAccepted => "STALE-ACCEPTED",
            Self::ReceiptReused => "RECEIPT-REUSED",
            Self::OutOfOrder => "OUT-OF-ORDER",
            Self::EarlyExpired => "EARLY-EXPIRED",
            Self::EarlyDelivered => "EARLY-DELIVERED",
            Self::AfterTtl => "AFTER-TTL",
            Self::Invented => "INVENTED",
            Self::Corrupt => "CORRUPT",
            Self::Miscounted => "MISCOUNTED",
            Self::Torn => "TORN",
            Self::OverLimit => "OVER-LIMIT",
            Self::KeyPassed => "KEY-PASSED",
        })
    }
}

/// One thing that a correct server would not have done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The kind of violation.
    pub verdict: Verdict,
    /// A sentence with the queue, the task and the moments.
    pub detail: String,
}

/// How much there was to check. An empty history passes too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Requests. Each operation of a transaction counts.
    pub calls: u64,
    /// Requests whose outcome is unknown.
    pub unknown: u64,
    /// Puts that were acknowledged.
    pub puts: u64,
    /// Tasks that were handed out, by take or by pop.
    pub deliveries: u64,
    /// Acks that were carried out.
    pub acks: u64,
    /// Failures that were reported and carried out.
    pub failures: u64,
    /// Tasks that were moved to another queue.
    pub moved: u64,
    /// Transactions.
    pub transactions: u64,
    /// Deliveries of a task that had been delivered before.
    pub redeliveries: u64,
    /// Deliveries whose order could be judged.
    pub ordered: u64,
    /// Leases that were counted against a limit, at the times when they certainly lasted.
    pub limited: u64,
    /// The most leases that certainly lasted at once of the queues that use a named limit.
    pub named_most: u64,
    /// Queues that were known to be empty at the end, so that a loss would have been detected.
    pub drained: u64,
    /// Ends and starts of the server.
    pub restarts: u64,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// What was checked.
    pub tally: Tally,
    /// The violations, in no particular order.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether there are no violations.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// The number of violations of each kind.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Verdict, usize> {
        let mut counts = BTreeMap::new();
        for violation in &self.violations {
            *counts.entry(violation.verdict).or_insert(0) += 1;
        }
        counts
    }

    /// A text for people: what was checked, the counts, and the first `details` violations of each
    /// kind in full.
    #[must_use]
    pub fn text(&self, details: usize) -> String {
        let mut lines = vec![self.tally.to_string()];
        for (verdict, count) in self.counts() {
            lines.push(format!("{verdict}: {count}"));
            let own = self.violations.iter().filter(|violation| violation.verdict == verdict);
            lines.extend(own.take(details).map(|violation| format!("  {}", violation.detail)));
            if let Some(more) = count.checked_sub(details).filter(|more| *more > 0) {
                lines.push(format!("  and {more} more"));
            }
        }
        lines.push(if self.is_clean() { "no violation\n" } else { "VIOLATIONS\n" }.to_owned());
        lines.join("\n")
    }

    pub(crate) fn object(&mut self, verdict: Verdict, detail: String) {
        self.violations.push(Violation { verdict, detail });
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} of unknown outcome; {} puts acknowledged, {} deliveries \
             ({} again, {} judged by order, {} by limits), {} acks, {} failures, {} moved, \
             {} transactions; {} restarts, {} queues drained",
            self.calls,
            self.unknown,
            self.puts,
            self.deliveries,
            self.redeliveries,
            self.ordered,
            self.limited,
            self.acks,
            self.failures,
            self.moved,
            self.transactions,
            self.restarts,
            self.drained,
        )
    }
}
