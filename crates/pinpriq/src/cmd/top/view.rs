//! How the state looks: it is drawn into a buffer, which another file brings to a terminal.
//!
//! It decides nothing and changes nothing. There are no colours, only bold, dim and reversed, so
//! it can be read on any background.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget as _, Wrap};

use super::figures::plain;
use super::model::{Link, Model, Over, Place};

mod head;
mod overview;
mod queue;
mod task;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// What the keys do, line by line.
const HELP: [(&str, &str); 14] = [
    ("up, down, k, j", "move the cursor"),
    ("page up, page down", "a page of queues, or of tasks (also b and n)"),
    ("home, end, g, G", "the first, the last"),
    ("enter", "enter the queue, or the task"),
    ("q, escape", "go back; in the overview, leave"),
    ("s", "order by the next column"),
    ("r", "reverse the order"),
    ("/", "show only queues with these letters in their names"),
    ("tab, shift-tab", "in a queue: tasks of the next state, or the last"),
    ("p", "pause the queue for takes, or end that; asks first"),
    ("e", "explain why the queue, or the task, stands still"),
    ("control-L", "draw the screen anew"),
    ("?", "this help"),
    ("control-C", "leave"),
];

/// Draws everything.
pub(super) fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let mut lines = area.rows();
    let mut next = || lines.next().unwrap_or_default();
    head::draw(model, [next(), next(), next()], buffer);
    let bottom = area.height.saturating_sub(2).max(3);
    let rest = Rect { y: area.y + 3, height: bottom - 3, ..area }.intersection(area);
    match &model.place {
        Place::Overview => overview::draw(model, rest, buffer),
        Place::Queue(visit) => queue::draw(model, visit, rest, buffer),
        Place::Task { visit, id, sight, scroll } => {
            task::draw(model, visit, (id, sight.as_ref(), *scroll), rest, buffer);
        }
    }
    let line = |y: u16| Rect { y: area.y + y, height: 1, ..area }.intersection(area);
    message(model, area.width).render(line(bottom), buffer);
    keys(model).render(line(bottom + 1), buffer);
    match &model.over {
        Over::Help => popup("help", &help(), area, buffer),
        Over::Told { title, sentences } => {
            let sentences = sentences.iter().map(|it| Line::from(it.as_str())).collect::<Vec<_>>();
            popup(title, &sentences, area, buffer);
        }
        Over::Nothing | Over::Filter { .. } | Over::Question { .. } => {}
    }
}

/// The line for questions, and for what came of things.
fn message(model: &Model, width: u16) -> Line<'_> {
    match (&model.over, &model.link, &model.message) {
        (Over::Question { queue, pause }, ..) => {
            let what = if *pause { "Pause takes from" } else { "End the pause of takes from" };
            Line::styled(format!("{what} queue {}? y/n", plain(queue)), REVERSED)
        }
        (Over::Filter { .. }, ..) => Line::from(vec![
            Span::styled("filter: ", BOLD),
            Span::raw(plain(model.filter.as_bytes())),
            Span::styled(" ", REVERSED),
        ]),
        (_, Link::Lost(sentence), _) => Line::styled(sentence.as_str(), REVERSED),
        (.., Some(message)) => Line::styled(message.as_str(), BOLD),
        (_, Link::Opening, _) => Line::from("Connecting."),
        // The list is what the rest is about.
        (_, Link::Up, None) if model.place != Place::Overview => Line::default(),
        (_, Link::Up, None) if !model.filter.is_empty() => Line::styled(
            format!("only queues with \"{}\"; escape shows all", plain(model.filter.as_bytes())),
            DIM,
        ),
        _ => Line::styled(clauses_within(&head::remark(model), width), DIM),
    }
}

/// The line that says what keys there are.
fn keys(model: &Model) -> Line<'static> {
    let keys: &[(&str, &str)] = match (&model.over, &model.place) {
        (Over::Filter { .. }, _) => &[("enter", "keep"), ("esc", "as before")],
        (Over::Question { .. }, _) => &[("y", "yes"), ("n", "no")],
        (Over::Help | Over::Told { .. }, _) => &[("any key", "close")],
        (Over::Nothing, Place::Overview) => &[
            ("enter", "open"),
            ("s", "sort"),
            ("r", "reverse"),
            ("/", "filter"),
            ("p", "pause"),
            ("e", "explain"),
            ("?", "help"),
            ("q", "quit"),
        ],
        (Over::Nothing, Place::Queue(_)) => &[
            ("enter", "task"),
            ("tab", "state"),
            ("n/b", "pages"),
            ("p", "pause"),
            ("e", "explain"),
            ("?", "help"),
            ("q", "back"),
        ],
        (Over::Nothing, Place::Task { .. }) => {
            &[("down", "more"), ("p", "pause"), ("e", "explain"), ("?", "help"), ("q", "back")]
        }
    };
    let spans = keys
        .iter()
        .flat_map(|(key, what)| [Span::styled(*key, BOLD), Span::raw(format!(" {what}  "))]);
    Line::from(spans.collect::<Vec<_>>())
}

fn help() -> Vec<Line<'static>> {
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!("{keys:<19}"), BOLD), Span::raw(*what)])
    };
    HELP.iter().map(line).collect()
}

/// Lines in a frame over everything else.
fn popup(title: &str, lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    let widest = lines.iter().map(Line::width).chain([title.len() + 2]).max().unwrap_or_default();
    let width = u16::try_from(widest).unwrap_or(u16::MAX).saturating_add(4).min(area.width);
    let inner = usize::from(width.saturating_sub(4)).max(1);
    // Words that do not fit go on the next line, which can take a line more than the columns say.
    let folded = |line: &Line<'_>| match line.width() {
        fits if fits <= inner => 1,
        wide => wide.div_ceil(inner) + 1,
    };
    let height = u16::try_from(lines.iter().map(folded).sum::<usize>()).unwrap_or(u16::MAX);
    let height = height.saturating_add(2).min(area.height);
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(frame, buffer);
    let block = Block::bordered().title(Span::styled(format!(" {title} "), BOLD));
    let inside = block.inner(frame);
    block.render(frame, buffer);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    let inside = inside.intersection(frame);
    Paragraph::new(lines.to_vec()).wrap(Wrap { trim: false }).render(inside, buffer);
}

/// Names and values on one line, the names dim.
fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Line<'a> {
    let spans = pairs
        .into_iter()
        .flat_map(|(name, value)| [Span::styled(name, DIM), Span::raw(format!(" {value}  "))]);
    Line::from(spans.collect::<Vec<_>>())
}

/// Names and values on as many lines of this width as they need. A value is shown whole or not at
/// all: a number without its last digits would be another number.
fn folded<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>, width: usize) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    for (name, value) in pairs {
        let needed = Span::raw(name).width() + 1 + Span::raw(&value).width();
        if needed > width {
            continue;
        }
        if line.width() + needed > width {
            lines.push(std::mem::take(&mut line));
        }
        line.push_span(Span::styled(name, DIM));
        line.push_span(Span::raw(format!(" {value}  ")));
    }
    lines.push(line);
    lines
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

/// The first clauses of a remark that fit into this width.
fn clauses_within(remark: &str, width: u16) -> String {
    let mut kept = String::new();
    for clause in remark.split("; ") {
        let between = if kept.is_empty() { "" } else { "; " };
        let more = format!("{kept}{between}{clause}");
        if !kept.is_empty() && Span::raw(&more).width() > usize::from(width) {
            break;
        }
        kept = more;
    }
    kept
}

#[cfg(test)]
mod tests;
