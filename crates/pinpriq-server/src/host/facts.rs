//! Facts about a shard or all of them, and the text of `INFO`: a line each, in sections.

use std::fmt::Write as _;

use pinpriq_engine::stats::Counters;
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::Figures;

use crate::config::Durability;

/// What there is to be told about one shard, or about all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) shards: u64,
    pub(crate) incarnation: u64,
    pub(crate) uptime: Span,
    pub(crate) now: Timestamp,
    pub(crate) clients: u64,
    pub(crate) blocked: u64,
    pub(crate) durability: Durability,
    pub(crate) failure: Option<String>,
    pub(crate) figures: Figures,
    pub(crate) counters: Counters,
}

/// Lines: names with their values.
type Lines = Vec<(&'static str, String)>;

/// A section: its name, and what finds its lines.
type Section = (&'static str, fn(&Facts) -> Lines);

impl Facts {
    /// Those of both together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.counters.add(&other.counters);
        Self {
            shards: self.shards + other.shards,
            incarnation: self.incarnation.max(other.incarnation),
            uptime: self.uptime.max(other.uptime),
            now: self.now.max(other.now),
            clients: self.clients + other.clients,
            blocked: self.blocked + other.blocked,
            durability: other.durability,
            failure: self.failure.or(other.failure),
            figures: self.figures.and(other.figures),
            counters: self.counters,
        }
    }

    /// The wanted sections, or all of them.
    pub(crate) fn text(&self, wanted: &[&[u8]]) -> String {
        let mut text = String::new();
        let sections: [Section; 4] = [
            ("Server", server),
            ("Clients", clients),
            ("Persistence", persistence),
            ("Tasks", tasks),
        ];
        for (name, lines) in sections {
            let asked_for = |word: &&[u8]| {
                word.eq_ignore_ascii_case(name.as_bytes())
                    || [&b"all"[..], b"everything", b"default"]
                        .iter()
                        .any(|all| word.eq_ignore_ascii_case(all))
            };
            if !wanted.is_empty() && !wanted.iter().any(asked_for) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {name}\r\n");
            for (fact, value) in lines(self) {
                let _ = write!(text, "{fact}:{value}\r\n");
            }
        }
        text
    }
}

fn server(facts: &Facts) -> Lines {
    vec![
        ("pinpriq_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process_id", std::process::id().to_string()),
        ("shards", facts.shards.to_string()),
        ("incarnation", facts.incarnation.to_string()),
        ("uptime_in_seconds", (facts.uptime.ms() / 1_000).to_string()),
        ("server_time_ms", facts.now.ms().to_string()),
    ]
}

fn clients(facts: &Facts) -> Lines {
    vec![
        ("connected_clients", facts.clients.to_string()),
        ("blocked_clients", facts.blocked.to_string()),
    ]
}

fn persistence(facts: &Facts) -> Lines {
    let Figures { segments, bytes_used, bytes_live, bytes_pending, writes, syncs, .. } =
        facts.figures;
    let failure = facts.failure.clone().unwrap_or_else(|| "none".to_owned());
    vec![
        ("durability", facts.durability.word().to_owned()),
        ("journal_failure", failure),
        ("journal_segments", segments.to_string()),
        ("journal_bytes_used", bytes_used.to_string()),
        ("journal_bytes_live", bytes_live.to_string()),
        ("journal_bytes_pending", bytes_pending.to_string()),
        ("journal_writes", writes.to_string()),
        ("journal_syncs", syncs.to_string()),
        ("journal_batches", facts.figures.batches.to_string()),
        ("journal_rewrites", facts.figures.rewrites.to_string()),
    ]
}

fn tasks(facts: &Facts) -> Lines {
    let counters = &facts.counters;
    vec![
        ("present", counters.present().to_string()),
        ("put", counters.put.to_string()),
        ("acked", counters.acked.to_string()),
        ("expired", counters.expired.to_string()),
        ("killed", counters.killed.to_string()),
        ("bytes", counters.bytes.to_string()),
    ]
}
