//! The table of metrics for the documentation page, as Markdown.
//!
//! A test compares it with `docs/monitoring.md`.

use std::fmt::Write as _;

use super::exposition::PREFIX;
use super::table::{Chapter, TABLE};

/// Returns the tables of all metrics, a chapter each.
#[must_use]
pub fn metrics_table() -> String {
    let mut text = String::new();
    for chapter in Chapter::ALL {
        let _ = write!(
            text,
            "\n### {}\n\n| name | kind | labels | value |\n|---|---|---|---|\n",
            chapter.name()
        );
        for metric in TABLE.iter().filter(|metric| metric.chapter == chapter) {
            let labels = metric.labels.iter().map(|label| format!("`{label}`"));
            let _ = writeln!(
                text,
                "| `{PREFIX}_{}` | {} | {} | {} |",
                metric.name,
                metric.kind.word(),
                labels.collect::<Vec<_>>().join(" "),
                in_docs(metric.help())
            );
        }
    }
    text.push('\n');
    text
}

/// Returns a sentence whose links start from the page. Those of figures start from that on RESP.
fn in_docs(sentence: &str) -> String {
    sentence.replace("](#", "](protocol/resp.md#").replace("](../", "](")
}
