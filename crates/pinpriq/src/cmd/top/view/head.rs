//! The first lines: the server, and all its queues together.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::{BOLD, REVERSED, folded};
use crate::cmd::top::figures::{STATES, Server, plain};
use crate::cmd::top::history::short;
use crate::cmd::top::model::{Latest, Link, Model};
use crate::units::brief;

/// How many columns the line of the whole server has.
const LINE_COLUMNS: usize = 20;

pub(super) fn draw(model: &Model, lines: [Rect; 3], buffer: &mut Buffer) {
    let [first, second, third] = lines;
    server(model, usize::from(first.width)).render(first, buffer);
    let Some(latest) = &model.latest else { return };
    if let Some(failure) = &latest.server.failure {
        let sentence = format!("The disk failed, and nothing can be changed: {failure}");
        Line::styled(sentence, REVERSED).render(third, buffer);
    }
    totals(model, latest, usize::from(second.width)).render(second, buffer);
}

fn server(model: &Model, width: usize) -> Line<'_> {
    let mut line = Line::styled("pinpriq", BOLD);
    let version = model.latest.as_ref().map(|latest| format!(" {}", latest.server.version));
    let address = format!(" at {}", plain(model.address.as_bytes()));
    for part in version.into_iter().chain([address]).map(Span::raw) {
        if line.width() + part.width() <= width {
            line.push_span(part);
        }
    }
    line.push_span(Span::raw("  "));
    if matches!(model.link, Link::Lost(_)) {
        line.push_span(Span::styled(" not connected, trying again ", REVERSED));
    } else if let Some(Latest { server, .. }) = &model.latest {
        let facts = [
            ("durability", server.durability.clone()),
            ("connections", connections(server)),
            ("shards", short(server.shards)),
            ("up", brief(server.uptime_ms)),
        ];
        let room = width.saturating_sub(line.width());
        line.spans.extend(folded(facts, room).into_iter().next().unwrap_or_default().spans);
    }
    line
}

/// The number of connections, and through which doors they came, if not all through that of RESP.
fn connections(server: &Server) -> String {
    let all = short(server.connections);
    if server.doors.iter().all(|(door, _)| door == "resp") {
        return all;
    }
    let doors = server.doors.iter().map(|(door, count)| format!("{door} {}", short(*count)));
    format!("{all} ({})", doors.collect::<Vec<_>>().join(", "))
}

fn totals<'a>(model: &Model, latest: &Latest, width: usize) -> Line<'a> {
    let (put, left) = model.total.rates().unzip();
    let rate =
        |rate: Option<_>| rate.map_or_else(|| "-".to_owned(), super::super::history::Rate::shown);
    let mut facts = vec![("in/s", rate(put)), ("out/s", rate(left))];
    let dead_letters = model.dead_letters();
    let mut counts = latest.server.all.counts;
    counts[0] = counts[0].saturating_sub(dead_letters).max(0);
    let states = STATES.iter().zip(counts);
    facts.extend(states.take(4).map(|((_, state), count)| (*state, short(count))));
    if dead_letters > 0 {
        facts.push(("dead letters", short(dead_letters)));
    }
    let line = folded(facts, width).into_iter().next().unwrap_or_default();
    let spark = model.total.line(latest.server_ms, LINE_COLUMNS);
    Line::from([line.spans, vec![Span::raw(spark)]].concat())
}

/// What there is to say when nothing else is.
pub(super) fn remark(model: &Model) -> String {
    let Some(latest) = &model.latest else { return String::new() };
    let order = if model.reversed { ", reversed" } else { "" };
    let queues = if latest.queues == 1 { "queue" } else { "queues" };
    let mut remark = format!(
        "{}{} {queues}, {} paused; in the order of {}{order}",
        latest.queues,
        if latest.more { "+" } else { "" },
        latest.server.paused,
        model.sort.column()
    );
    if latest.asked < latest.queues && latest.asked > 0 {
        let rounds = latest.queues.div_ceil(latest.asked);
        let _ = write!(remark, "; those not shown are up to {rounds} rounds old");
    }
    if latest.took_ms > model.interval_ms {
        let took = brief(u64::try_from(latest.took_ms).unwrap_or_default());
        let _ = write!(remark, "; a round takes {took}");
    }
    remark
}
