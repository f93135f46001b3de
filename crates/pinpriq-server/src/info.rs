//! The text of `INFO`: facts about the server, a line each, in sections.

use std::fmt::Write as _;

use pinpriq_store::durable::Durable;

use crate::shard::Shard;

/// Names with their values.
type Facts = Vec<(&'static str, String)>;

/// A section: its name, and what finds its facts.
type Section = (&'static str, fn(&Shard) -> Facts);

/// The wanted sections, or all of them.
pub(crate) fn text(shard: &Shard, wanted: &[&[u8]]) -> String {
    let mut text = String::new();
    let sections: [Section; 4] =
        [("Server", server), ("Clients", clients), ("Persistence", persistence), ("Tasks", tasks)];
    for (name, facts) in sections {
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
        for (fact, value) in facts(shard) {
            let _ = write!(text, "{fact}:{value}\r\n");
        }
    }
    text
}

fn server(shard: &Shard) -> Facts {
    let now = shard.clock().now();
    let header = shard.inspect(|durable| durable.engine().header());
    vec![
        ("pinpriq_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process_id", std::process::id().to_string()),
        ("incarnation", header.incarnation.to_string()),
        ("uptime_in_seconds", (now.since(shard.started_at()).ms() / 1_000).to_string()),
        ("server_time_ms", now.ms().to_string()),
    ]
}

fn clients(shard: &Shard) -> Facts {
    let mut blocked = 0;
    shard.each_client(|_, session| blocked += u64::from(session.is_blocked()));
    vec![
        ("connected_clients", shard.clients().to_string()),
        ("blocked_clients", blocked.to_string()),
    ]
}

fn persistence(shard: &Shard) -> Facts {
    let figures = shard.inspect(Durable::figures);
    let failure = shard.failure().map_or_else(|| "none".to_owned(), |failure| failure.sentence);
    vec![
        ("durability", shard.durability().word().to_owned()),
        ("journal_failure", failure),
        ("journal_segments", figures.segments.to_string()),
        ("journal_bytes_used", figures.bytes_used.to_string()),
        ("journal_bytes_live", figures.bytes_live.to_string()),
        ("journal_bytes_pending", figures.bytes_pending.to_string()),
        ("journal_writes", figures.writes.to_string()),
        ("journal_syncs", figures.syncs.to_string()),
        ("journal_batches", figures.batches.to_string()),
        ("journal_rewrites", figures.rewrites.to_string()),
    ]
}

fn tasks(shard: &Shard) -> Facts {
    let counters = shard.inspect(|durable| durable.engine().totals().clone());
    vec![
        ("present", counters.present().to_string()),
        ("put", counters.put.to_string()),
        ("acked", counters.acked.to_string()),
        ("expired", counters.expired.to_string()),
        ("killed", counters.killed.to_string()),
        ("bytes", counters.bytes.to_string()),
    ]
}
