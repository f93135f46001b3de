//! How the state looks: it is drawn into a buffer, which another file brings to a terminal.
//!
//! It decides nothing and changes nothing. There are no colours, only bold, dim and reversed, so
//! it can be read on any background.

use pinpriq_proto::wire::resp::Value;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{self, Paragraph, Widget as _, Wrap};

use super::model::{Entered, Model, Visit};
use crate::cmd::figures::{Figure, Row, STATES, Server, Table, columns, short};
use crate::output::escaped;
use crate::printer::in_words;
use crate::units::brief;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// The least width of a name in a list.
const NAME_MIN: u16 = 12;
/// What is between a value and the next name.
const GAP: &str = "  ";
/// How many priorities are shown.
const PRIORITIES: usize = 8;
/// How many lines the settings of a queue may take, and its priorities.
const LONG_LINES: u16 = 2;
/// The columns of tasks before the payload: their names, the fields, and their least widths.
const TASK_COLUMNS: [(&str, &str, usize); 5] = [
    ("id", "id", 10),
    ("priority", "priority", 8),
    ("taken", "attempts", 5),
    ("fails", "failures", 5),
    ("put", "put_at", 9),
];
/// The columns of shares and of limits: their names, and the fields.
const SHARE_COLUMNS: [(&str, &str); 10] = [
    ("share", "share"),
    ("ready", "ready"),
    ("taken", "taken"),
    ("oldest", "oldest_ready_ms"),
    ("waited", "waited_ms"),
    ("acked", "acked"),
    ("failed", "failed"),
    ("weight", "weight"),
    ("limit", "limit"),
    ("rate", "rate"),
];
const LIMIT_COLUMNS: [(&str, &str); 8] = [
    ("limit", "name"),
    ("taken", "taken"),
    ("max", "max"),
    ("tokens", "tokens"),
    ("rate", "rate"),
    ("opens", "open_at"),
    ("closed", "closed_ms"),
    ("queues", "queues"),
];
/// How much of a payload is looked at for a row, and how much is shown of a task.
const ROW_BYTES: usize = 300;
const PAYLOAD_BYTES: usize = 16 << 10;

/// Draws everything.
pub(super) fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let line = |y: u16| Rect { y: area.y + y, height: 1, ..area }.intersection(area);
    let bottom = area.height.saturating_sub(2).max(3);
    let rest = Rect { y: area.y + 3, height: bottom - 3, ..area }.intersection(area);
    head(model, [line(0), line(1), line(2)], buffer);
    match &model.visit {
        None if model.limits.is_some() => limits(model, rest, buffer),
        None => overview(model, rest, buffer),
        Some(Visit { of, task: Some(entered), .. }) => {
            task(model, &of.queue, entered, rest, buffer);
        }
        Some(visit) => queue(model, visit, rest, buffer),
    }
    message(model, usize::from(area.width)).render(line(bottom), buffer);
    keys(model).render(line(bottom + 1), buffer);
}

/// The first lines: the server, and all its queues together.
fn head(model: &Model, [first, second, third]: [Rect; 3], buffer: &mut Buffer) {
    let width = usize::from(first.width);
    let mut line = Line::styled("pinpriq", BOLD);
    let server = model.latest.as_ref().map(|latest| &latest.server);
    let version = server.map(|server| format!(" {}", server.version));
    let address = format!(" at {}", escaped(model.address.as_bytes()));
    for part in version.into_iter().chain([address]).map(Span::raw) {
        if line.width() + part.width() <= width {
            line.push_span(part);
        }
    }
    line.push_span(Span::raw("  "));
    if model.lost.is_some() {
        line.push_span(Span::styled(" not connected, trying again ", REVERSED));
    } else if let Some(server) = server {
        let facts = [
            ("durability", server.durability.clone()),
            ("connections", connections(server)),
            ("shards", short(server.shards)),
            ("up", brief(server.uptime_ms)),
        ];
        line.spans.extend(first_of(facts, width.saturating_sub(line.width())).spans);
    }
    line.render(first, buffer);
    if let Some(failure) = server.and_then(|server| server.failure.as_ref()) {
        let sentence = format!("The disk failed, and nothing can be changed: {failure}");
        Line::styled(sentence, REVERSED).render(third, buffer);
    }
    let Some(figures) = &model.total.figures else { return };
    let dead_letters = model.dead_letters();
    let figures = figures.without(dead_letters);
    let all = Row { queue: None, figures: &figures, rates: model.total.rates, dead_letters };
    let mut facts = facts(&all, Table::List);
    if dead_letters > 0 {
        facts.insert(0, ("dead letters", short(dead_letters)));
    }
    first_of(facts, width).render(second, buffer);
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

/// The figures of a table, with their names.
fn facts(row: &Row<'_>, table: Table) -> Vec<(&'static str, String)> {
    columns(table).map(|figure| (figure.head, (figure.value)(row).short())).collect()
}

/// The list of queues.
fn overview(model: &Model, area: Rect, buffer: &mut Buffer) {
    let (name_width, columns) = fitting(area.width);
    let style = |is_sorted: bool| if is_sorted { REVERSED } else { PLAIN };
    let sorted = model.sort.map_or("queue", |sort| sort.head);
    let head = |head: &'static str| Span::styled(head, style(head == sorted));
    let heads = columns.iter().map(|column| Line::from(head(column.head)).right_aligned());
    let heads = [Line::from(head("queue"))].into_iter().chain(heads);
    let row = |name: &Vec<u8>| {
        let is_selected = model.selected.as_ref() == Some(name);
        let known = model.queues.get(name).and_then(|watched| watched.row(name));
        let cell = |column: &&Figure| {
            let text = known.map_or_else(String::new, |row| (column.value)(&row).short());
            let is_dim = matches!(text.as_str(), "0" | "-") && !is_selected;
            Line::styled(text, if is_dim { DIM } else { PLAIN }).right_aligned()
        };
        let cells = [Line::from(escaped(name))].into_iter().chain(columns.iter().map(cell));
        widgets::Row::new(cells).style(style(is_selected))
    };
    let seen = model.rows.iter().skip(model.first).take(usize::from(area.height));
    let widths = [name_width].into_iter().chain(columns.iter().map(|column| column.width));
    widgets::Table::new(seen.map(row), widths.map(Constraint::Length))
        .header(widgets::Row::new(heads).style(BOLD))
        .render(area, buffer);
}

/// The width of the names, and the other columns that there is room for.
fn fitting(width: u16) -> (u16, Vec<&'static Figure>) {
    let mut kept: Vec<&Figure> = columns(Table::List).collect();
    loop {
        let taken: u16 = kept.iter().map(|column| column.width + 1).sum();
        let last = kept.iter().map(|column| column.leaves).max();
        if last.is_none() || taken + NAME_MIN <= width {
            return (width.saturating_sub(taken), kept);
        }
        kept.retain(|column| Some(column.leaves) != last);
    }
}

/// A queue that was entered: its figures, its settings and a page of its tasks.
fn queue(model: &Model, visit: &Visit, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let name = &visit.of.queue;
    let watched = model.queues.get(name);
    let remark = match watched.map(|watched| watched.figures.as_ref()) {
        None if model.latest.is_some() => "  there is no such queue",
        Some(Some(figures)) if figures.holds_dead_letters => "  for dead letters",
        _ => "",
    };
    let shown = fitted(&escaped(name), width.saturating_sub("queue ".len() + remark.len()));
    let mut lines = vec![Line::from(vec![
        Span::styled("queue ", DIM),
        Span::styled(shown, BOLD),
        Span::raw(remark),
    ])];
    if let Some(row) = watched.and_then(|watched| watched.row(name)) {
        lines.extend(folded(facts(&row, Table::Queue), width));
        let priorities = &row.figures.priorities;
        if !priorities.is_empty() {
            let pair = |(priority, count): &(String, i64)| format!("{priority}: {}", short(*count));
            let shown: Vec<String> = priorities.iter().take(PRIORITIES).map(pair).collect();
            let more = if priorities.len() > PRIORITIES { ", …" } else { "" };
            let shown = format!(" {}{more}", shown.join(", "));
            lines.push(Line::from(vec![Span::styled("ready by priority", DIM), Span::raw(shown)]));
        }
    }
    if let Some(settings) = visit.page.as_ref().and_then(|page| page.settings.as_ref()) {
        lines.push(Line::from(vec![Span::styled("settings", DIM), Span::raw(set(settings))]));
    }
    // Only priorities and settings may need another line.
    let lines_of = |line: &Line<'_>| if line.width() > width { LONG_LINES } else { 1 };
    let height = lines.iter().map(lines_of).sum::<u16>().min(area.height / 2);
    let above = Rect { height, ..area };
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(above, buffer);
    let below = Rect { y: area.y + height, height: area.height - height, ..area };
    if visit.of.shares {
        shares(visit, model.now_ms(), below, buffer);
    } else {
        tasks(visit, model.now_ms(), below, buffer);
    }
}

/// The shares of a queue that wait longest.
fn shares(visit: &Visit, now_ms: i64, area: Rect, buffer: &mut Buffer) {
    let Some(page) = &visit.page else { return };
    if page.next.is_some() {
        return Line::styled("the tasks are being counted", DIM).render(area, buffer);
    }
    list(&SHARE_COLUMNS, (&page.tasks, visit.chosen), now_ms, area, buffer);
}

/// The limits that several queues use together.
fn limits(model: &Model, area: Rect, buffer: &mut Buffer) {
    let Some(limits) = &model.limits else { return };
    let Some(rows) = &limits.rows else { return };
    if rows.is_empty() {
        return Line::styled("there are no limits with a name", DIM).render(area, buffer);
    }
    list(&LIMIT_COLUMNS, (rows, limits.chosen), model.now_ms(), area, buffer);
}

/// A list of maps, of which one is chosen, as far as its columns have room.
fn list(
    columns: &[(&'static str, &str)],
    (rows, chosen): (&[Value], usize),
    now_ms: i64,
    area: Rect,
    buffer: &mut Buffer,
) {
    let cell = |row: &Value, field: &str| match row.field(field) {
        Some(Value::Integer(ms)) if field.ends_with("_ms") => brief(ms.unsigned_abs()),
        Some(Value::Integer(at)) if field.ends_with("_at") => moment(field, *at, now_ms),
        Some(Value::Integer(number)) => short(*number),
        value => value.map_or_else(|| "-".to_owned(), in_words),
    };
    let cells = |row: &Value| columns.iter().map(|(_, field)| cell(row, field)).collect();
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |(place, (head, _)): (usize, &(&str, &str))| {
        let cells = cells.iter().filter_map(|cells| cells.get(place));
        cells.map(|cell| Span::raw(cell).width()).fold(head.len(), usize::max)
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let room = usize::from(area.width);
    let others: usize = widths.iter().skip(1).map(|width| width + 1).sum();
    if let Some(name) = widths.first_mut() {
        *name = room.saturating_sub(others).clamp(usize::from(NAME_MIN), (*name).max(12));
    }
    let mut used = 0;
    widths.retain(|width| {
        used += width + 1;
        used <= room + 1
    });
    let line = |cells: Vec<Line<'static>>| widgets::Row::new(cells);
    let head = columns.iter().enumerate().map(|(place, (head, _))| {
        let head = Line::from(*head);
        if place == 0 { head } else { head.right_aligned() }
    });
    let lines = usize::from(area.height.saturating_sub(1)).max(1);
    let first = (chosen + 1).saturating_sub(lines);
    let seen = cells.iter().enumerate().skip(first).take(lines).map(|(place, cells)| {
        let fitted = cells.iter().zip(&widths).map(|(cell, width)| fitted(cell, *width));
        let aligned = fitted.enumerate().map(|(place, cell)| {
            if place == 0 { Line::from(cell) } else { Line::from(cell).right_aligned() }
        });
        line(aligned.collect()).style(if place == chosen { REVERSED } else { PLAIN })
    });
    let widths = widths.iter().map(|width| u16::try_from(*width).unwrap_or(u16::MAX));
    widgets::Table::new(seen, widths.map(Constraint::Length))
        .header(line(head.collect()).style(BOLD))
        .render(area, buffer);
}

/// The settings that have a value.
fn set(settings: &Value) -> String {
    let Value::Map(members) = settings else { return String::new() };
    let pairs = members.iter().filter(|(name, value)| {
        // The pause is above.
        *value != Value::Null && name.as_bytes() != Some(b"paused")
    });
    let words = pairs.map(|(name, value)| format!("{} {}", in_words(name), in_words(value)));
    format!(" {}", words.collect::<Vec<_>>().join(GAP))
}

/// A page of tasks, below the states.
fn tasks(visit: &Visit, now_ms: i64, area: Rect, buffer: &mut Buffer) {
    let [tabs, below] = [
        Rect { height: area.height.min(1), ..area },
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area },
    ];
    let tab = |(letter, state, _): &(&'static str, &'static str, &'static str)| {
        let style = if *letter == visit.of.state { REVERSED } else { DIM };
        [Span::styled(format!(" {state} "), style), Span::raw(" ")]
    };
    let page = format!("page {}", visit.earlier.len() + 1);
    let spans = STATES.iter().flat_map(tab).chain([Span::styled(page, DIM)]);
    spans.collect::<Line<'_>>().render(tabs, buffer);
    let Some(page) = &visit.page else { return };
    let rows: Vec<Vec<String>> = page.tasks.iter().map(|task| cells(task, now_ms)).collect();
    let widths = task_widths(&rows, usize::from(area.width));
    let rest = usize::from(area.width).saturating_sub(widths.iter().map(|width| width + 1).sum());
    let line = |mut cells: Vec<String>, last: String| {
        cells.truncate(widths.len());
        let aligned = cells.into_iter().zip(&widths).enumerate().map(|(place, (cell, width))| {
            let line = Line::from(fitted(&cell, *width));
            if place == 0 { line } else { line.right_aligned() }
        });
        let last = (rest > 0).then(|| Line::from(format!(" {last}")));
        widgets::Row::new(aligned.chain(last))
    };
    let heads = TASK_COLUMNS.map(|(head, ..)| head.to_owned()).to_vec();
    let room = usize::from(below.height.saturating_sub(1)).max(1);
    let first = (visit.chosen + 1).saturating_sub(room);
    let tasks =
        page.tasks.iter().zip(rows).enumerate().skip(first).map(|(place, (task, cells))| {
            let style = if place == visit.chosen { REVERSED } else { PLAIN };
            line(cells, payload_of(task, ROW_BYTES)).style(style)
        });
    let remark = match (page.tasks.is_empty(), page.next.is_some()) {
        (true, false) => "no tasks in this state",
        (true, true) => "none on this page; n shows the next",
        (false, true) => "n shows more",
        (false, false) => "",
    };
    let lengths = widths.iter().copied().chain((rest > 0).then_some(rest));
    let lengths = lengths.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    widgets::Table::new(tasks, lengths)
        .header(line(heads, "payload".to_owned()).style(BOLD))
        .render(below, buffer);
    let end = below.y + u16::try_from(page.tasks.len() - first.min(page.tasks.len())).unwrap_or(0);
    let end = Rect { y: end + 1, height: 1, ..below }.intersection(below);
    Line::styled(remark, DIM).render(end, buffer);
}

/// The cells of a task before its payload.
fn cells(task: &Value, now_ms: i64) -> Vec<String> {
    let cell = |(_, field, _): (&str, &str, usize)| match task.field(field) {
        Some(Value::Integer(at)) if field.ends_with("_at") => moment(field, *at, now_ms),
        value => value.map_or_else(|| "-".to_owned(), in_words),
    };
    TASK_COLUMNS.map(cell).to_vec()
}

/// The widths of the columns before the payload: as wide as what is in them. Those that have no
/// room are left out.
fn task_widths(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = TASK_COLUMNS
        .iter()
        .enumerate()
        .map(|(place, (.., least))| {
            let cells = rows.iter().filter_map(|cells| cells.get(place));
            cells.map(|cell| Span::raw(cell).width()).max().unwrap_or_default().max(*least)
        })
        .collect();
    // A long id loses its end before a number goes.
    let others: usize = widths.iter().skip(1).map(|width| width + 1).sum();
    if let Some(id) = widths.first_mut() {
        *id = (*id).min(width.saturating_sub(others).max(10));
    }
    let mut used = 0;
    let fits = |column: &usize| {
        used += column + 1;
        used <= width + 1
    };
    widths.into_iter().take_while(fits).collect()
}

/// A task that was entered: all that is known of it, and its payload.
fn task(model: &Model, queue: &[u8], entered: &Entered, area: Rect, buffer: &mut Buffer) {
    let Entered { task, is_there, scroll } = entered;
    let Value::Map(members) = task else { return };
    let id = task.field("id").and_then(Value::as_bytes).unwrap_or_default();
    let mut lines = vec![Line::from(vec![
        Span::styled("task ", DIM),
        Span::styled(escaped(id), BOLD),
        Span::styled(" of queue ", DIM),
        Span::styled(escaped(queue), BOLD),
    ])];
    if !is_there {
        lines.push(Line::from("It has left its page. This is how it was."));
    }
    for (name, value) in members {
        let name = in_words(name);
        // What is not set says nothing, and the queue and the id are above.
        if *value == Value::Null || matches!(name.as_str(), "queue" | "id" | "payload") {
            continue;
        }
        let shown = match value {
            Value::Integer(at) if name.ends_with("_at") || name == "lease_until" => {
                format!("{at}, {}", moment(&name, *at, model.now_ms()))
            }
            letter if name == "state" => {
                let state = STATES.iter().find(|(it, ..)| Some(it.as_bytes()) == letter.as_bytes());
                state.map_or_else(|| in_words(letter), |(_, state, _)| (*state).to_owned())
            }
            other => in_words(other),
        };
        lines.push(Line::from(vec![Span::styled(format!("{name:<16}"), DIM), Span::raw(shown)]));
    }
    let bytes = task.field("payload").and_then(Value::as_bytes).map_or(0, <[u8]>::len);
    let more = if bytes > PAYLOAD_BYTES { ", of which this is the beginning" } else { "" };
    lines.push(Line::styled(format!("payload, {bytes} bytes{more}"), DIM));
    let payload = payload_of(task, PAYLOAD_BYTES);
    // One can scroll until the last line is the only one.
    let width = usize::from(area.width).max(1);
    let most = lines.len() + payload.chars().count().div_ceil(width);
    let scroll = (*scroll).min(u16::try_from(most).unwrap_or(u16::MAX));
    lines.push(Line::from(payload));
    Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((scroll, 0)).render(area, buffer);
}

/// The beginning of a payload, with escapes.
fn payload_of(task: &Value, bytes: usize) -> String {
    let payload = task.field("payload").and_then(Value::as_bytes).unwrap_or_default();
    escaped(payload.get(..bytes).unwrap_or(payload))
}

/// How long ago the moment of a field is, or how far ahead. The figures of the screen are a little
/// older than tasks, so what has been may seem to be ahead.
fn moment(field: &str, ms: i64, now_ms: i64) -> String {
    let span = now_ms.saturating_sub(ms);
    if span < 0 && !matches!(field, "put_at" | "origin_put_at" | "origin_at") {
        return format!("in {}", brief(span.unsigned_abs()));
    }
    format!("{} ago", brief(span.max(0).unsigned_abs()))
}

/// The line for the filter, and for what came of things.
fn message(model: &Model, width: usize) -> Line<'_> {
    if model.typing.is_some() {
        return Line::from(vec![
            Span::styled("filter: ", BOLD),
            Span::raw(escaped(model.filter.as_bytes())),
            Span::styled(" ", REVERSED),
        ]);
    }
    if let Some(sentence) = &model.lost {
        return Line::styled(sentence.as_str(), REVERSED);
    }
    if let Some(message) = &model.message {
        return Line::styled(message.as_str(), BOLD);
    }
    let Some(latest) = &model.latest else { return Line::from("Connecting.") };
    // The list is what the rest is about.
    if model.visit.is_some() || model.limits.is_some() {
        return Line::default();
    }
    if !model.filter.is_empty() {
        let filter = escaped(model.filter.as_bytes());
        return Line::styled(format!("only queues with \"{filter}\"; escape shows all"), DIM);
    }
    let queues = latest.names.len();
    let order = model.sort.map_or("queue", |sort| sort.head);
    let reversed = if model.reversed { ", reversed" } else { "" };
    let mut facts = vec![
        ("queues", format!("{queues}{}", if latest.more { "+" } else { "" })),
        ("paused", short(latest.server.paused)),
        ("in the order of", format!("{order}{reversed}")),
    ];
    if (1..queues).contains(&model.asked) {
        let rounds = queues.div_ceil(model.asked);
        facts.push(("those not shown are old by up to", format!("{rounds} rounds")));
    }
    let took_ms = latest.took_ms.unsigned_abs();
    if took_ms > model.interval_ms {
        facts.push(("a round takes", brief(took_ms)));
    }
    first_of(facts, width)
}

/// The line that says what keys there are.
fn keys(model: &Model) -> Line<'static> {
    let keys: &[(&str, &str)] = match (&model.typing, &model.visit) {
        (Some(_), _) => &[("enter", "keep"), ("esc", "as before")],
        (None, None) if model.limits.is_some() => &[("down", "more"), ("q", "back")],
        (None, None) => &[
            ("enter", "open"),
            ("s", "sort"),
            ("r", "reverse"),
            ("/", "filter"),
            ("l", "limits"),
            ("q", "quit"),
        ],
        (None, Some(Visit { of, .. })) if of.shares => &[("s", "tasks"), ("q", "back")],
        (None, Some(Visit { task: None, .. })) => {
            &[("enter", "task"), ("tab", "state"), ("n/b", "pages"), ("s", "shares"), ("q", "back")]
        }
        (None, Some(_)) => &[("down", "more"), ("q", "back")],
    };
    let spans = keys
        .iter()
        .flat_map(|(key, what)| [Span::styled(*key, BOLD), Span::raw(format!(" {what}  "))]);
    spans.collect()
}

/// Names and values on as many lines of this width as they need, the names dim. A value is shown
/// whole or not at all: a number without its last digits would be another number.
fn folded<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>, width: usize) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    for (name, value) in pairs {
        let needed = Span::raw(name).width() + 1 + Span::raw(&value).width();
        if needed > width {
            continue;
        }
        if line.width() + GAP.len() + needed > width && line.width() > 0 {
            lines.push(std::mem::take(&mut line));
        }
        if line.width() > 0 {
            line.push_span(Span::raw(GAP));
        }
        line.push_span(Span::styled(name, DIM));
        line.push_span(Span::raw(format!(" {value}")));
    }
    lines.push(line);
    lines
}

/// As many of these as fit on one line.
fn first_of<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>, width: usize) -> Line<'a> {
    folded(pairs, width).into_iter().next().unwrap_or_default()
}

/// The beginning of a text in this width, with a sign if there is more.
fn fitted(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if Span::raw(&kept).width() >= width {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests;
