//! Formats batches, and what waits for them.

use std::fmt::Write as _;

use pinpriq_proto::batches::{After, BatchRecord, BatchShown, BatchState, OnlyIf};
use pinpriq_proto::task::Bytes;

use super::quoted;

/// Formats a batch. Counts of zero are left out, except for those that every batch has.
pub(super) fn batch(shown: &BatchShown) -> String {
    let (name, state) = (quoted(&shown.name), shown.state.word());
    let mut text = format!("{name} {state}, total {}, pending {}", shown.total, shown.pending);
    let counts = [
        ("buried", shown.buried),
        ("acked", shown.acked),
        ("failed", shown.failed),
        ("waiting", shown.waiting),
    ];
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(text, ", {what} {count}");
    }
    let _ = write!(text, ", opened at {}", shown.opened_at.ms());
    if let Some(at) = shown.done_at {
        let _ = write!(text, ", done at {}", at.ms());
    }
    text
}

/// Formats a batch that was awaited.
pub(super) fn awaited(shown: &BatchShown) -> String {
    let outcome = if shown.state == BatchState::Done { "done" } else { "timeout" };
    format!("{outcome}: {}", batch(shown))
}

/// Formats a batch as it is reported to the store.
pub(super) fn change(record: &BatchRecord) -> String {
    let (name, state) = (quoted(&record.name), record.state.word());
    let BatchRecord { total, acked, failed, .. } = record;
    let given_up = if record.given_up { ", given up" } else { "" };
    format!("batch {name} is {state}, total {total}, acked {acked}, failed {failed}{given_up}")
}

/// Formats why a task is in W that is not ready at any moment.
pub(super) fn held(after: Option<&After>) -> String {
    let Some(After { names, only_if, any_failed }) = after else { return ", held".to_owned() };
    let names: Vec<String> = names.iter().map(|name: &Bytes| quoted(name)).collect();
    let mut text = format!(", after {}", names.join(" and "));
    if *only_if != OnlyIf::Done {
        let _ = write!(text, " if {}", only_if.word());
    }
    if *any_failed {
        text.push_str(", where one has failed");
    }
    text
}
