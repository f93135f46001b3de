//! A task that was entered: all that is known of it, and its payload.

use pinpriq_proto::wire::resp::Value;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::{BOLD, DIM};
use crate::cmd::top::asker::Sight;
use crate::cmd::top::explain::{ago, ahead};
use crate::cmd::top::figures::{STATES, in_words, plain};
use crate::cmd::top::model::{Model, Visit};

/// How much of a payload is shown.
const PAYLOAD_BYTES: usize = 16 << 10;

pub(super) fn draw(
    model: &Model,
    visit: &Visit,
    (id, sight, scroll): (&[u8], Option<&Sight>, u16),
    area: Rect,
    buffer: &mut Buffer,
) {
    let mut lines = vec![Line::from(vec![
        Span::styled("task ", DIM),
        Span::styled(plain(id), BOLD),
        Span::styled(" of queue ", DIM),
        Span::styled(plain(&visit.of.queue), BOLD),
    ])];
    match sight.map(|sight| &sight.task) {
        None => {}
        Some(None) => lines.push(Line::from("The task is gone.")),
        Some(Some(task)) => lines.extend(known(task, model.now_ms())),
    }
    // One can scroll until the last line is the only one.
    let paragraph = Paragraph::new(lines).wrap(Wrap { trim: false });
    let width = usize::from(area.width).max(1);
    let most = sight.and_then(|sight| sight.task.as_ref()).map_or(0, |task| {
        let payload = payload_of(task).chars().count();
        payload.div_ceil(width) + 20
    });
    let scroll = scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
    paragraph.scroll((scroll, 0)).render(area, buffer);
}

fn known<'a>(task: &Value, now_ms: i64) -> Vec<Line<'a>> {
    let Value::Map(members) = task else { return Vec::new() };
    let mut lines = Vec::new();
    for (name, value) in members {
        let name = in_words(name);
        // What is not set says nothing, and the queue and the id are above.
        if *value == Value::Null || matches!(name.as_str(), "queue" | "id" | "payload") {
            continue;
        }
        let shown = match value {
            Value::Integer(at)
                if matches!(name.as_str(), "put_at" | "origin_put_at" | "origin_at") =>
            {
                format!("{at}, {}", ago(*at, now_ms))
            }
            Value::Integer(at) if name.ends_with("_at") || name == "lease_until" => {
                format!("{at},{}", ahead(*at, now_ms))
            }
            state if name == "state" => {
                let known = STATES
                    .iter()
                    .find(|(letter, _)| letter.as_bytes() == state.as_bytes().unwrap_or_default());
                known.map_or_else(|| in_words(state), |(_, word)| (*word).to_owned())
            }
            other => in_words(other),
        };
        lines.push(Line::from(vec![Span::styled(format!("{name:<16}"), DIM), Span::raw(shown)]));
    }
    let bytes = task.field("payload").and_then(Value::as_bytes).map_or(0, <[u8]>::len);
    let more = if bytes > PAYLOAD_BYTES { ", of which this is the beginning" } else { "" };
    lines.push(Line::styled(format!("payload, {bytes} bytes{more}"), DIM));
    lines.push(Line::from(payload_of(task)));
    lines
}

fn payload_of(task: &Value) -> String {
    let payload = task.field("payload").and_then(Value::as_bytes).unwrap_or_default();
    plain(payload.get(..PAYLOAD_BYTES).unwrap_or(payload))
}
