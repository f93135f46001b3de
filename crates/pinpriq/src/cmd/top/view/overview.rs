//! The list of queues.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{BOLD, DIM, PLAIN, REVERSED};
use crate::cmd::status::OF_DEAD_LETTERS;
use crate::cmd::top::figures::plain;
use crate::cmd::top::history::{Rate, short};
use crate::cmd::top::model::{Model, Watched};
use crate::units::brief;

/// The columns after the name, with their widths; each has a space before it.
const COLUMNS: [(&str, u16); 8] = [
    ("ready", 6),
    ("taken", 6),
    ("waiting", 7),
    ("buried", 6),
    ("in/s", 5),
    ("out/s", 5),
    ("oldest", 6),
    ("paused", 6),
];
/// The columns that go first on a narrow screen, by their places.
const LEAVING: [usize; 8] = [7, 2, 3, 4, 6, 1, 5, 0];
/// The least width of a name.
const NAME_MIN: u16 = 12;
/// The widths of the line of the last minute.
const LINE_MIN: u16 = 6;
const LINE_MAX: u16 = 30;

/// Which columns there is room for.
struct Plan {
    name: u16,
    columns: [bool; 8],
    line: u16,
}

impl Plan {
    fn of(width: u16) -> Self {
        let mut columns = [true; 8];
        let taken = |columns: &[bool; 8]| -> u16 {
            let seen = COLUMNS.iter().zip(columns).filter(|(_, seen)| **seen);
            seen.map(|((_, width), _)| width + 1).sum()
        };
        for place in LEAVING {
            if taken(&columns) + NAME_MIN <= width {
                break;
            }
            if let Some(seen) = columns.get_mut(place) {
                *seen = false;
            }
        }
        let rest = width.saturating_sub(taken(&columns));
        let line = match rest.saturating_sub(NAME_MIN + 1) {
            little if little < LINE_MIN => 0,
            some => (some / 2).clamp(LINE_MIN, LINE_MAX),
        };
        let name = rest.saturating_sub(if line > 0 { line + 1 } else { 0 });
        Self { name, columns, line }
    }
}

pub(super) fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let plan = Plan::of(area.width);
    let mut lines = area.rows();
    let Some(heads) = lines.next() else { return };
    buffer.set_style(heads, BOLD);
    let sorted = model.sort.column();
    let style = |name: &str| if name == sorted { REVERSED } else { PLAIN };
    let mut row = Cells { x: area.x, y: heads.y, end: area.right(), buffer };
    row.left("queue", plan.name, style("queue"));
    for ((name, width), seen) in COLUMNS.iter().zip(plan.columns) {
        if seen {
            row.right(name, *width, style(name));
        }
    }
    if plan.line > 0 {
        row.gap();
        row.left("last minute", plan.line, PLAIN);
    }
    for (name, line) in model.rows.iter().skip(model.first).zip(lines) {
        let is_selected = model.selected.as_ref() == Some(name);
        if is_selected {
            buffer.set_style(line, REVERSED);
        }
        let mut row = Cells { x: area.x, y: line.y, end: area.right(), buffer };
        row.left(&plain(name), plan.name, PLAIN);
        let Some(watched) = model.queues.get(name) else { continue };
        for ((cell, (_, width)), seen) in cells(watched).iter().zip(COLUMNS).zip(plan.columns) {
            if seen {
                let style =
                    if matches!(cell.as_str(), "0" | "-") && !is_selected { DIM } else { PLAIN };
                row.right(cell, width, style);
            }
        }
        if plan.line > 0 {
            row.gap();
            let spark = watched.history.line(model.now_ms(), usize::from(plan.line));
            row.left(&spark, plan.line, PLAIN);
        }
    }
}

/// The cells after the name.
fn cells(watched: &Watched) -> [String; 8] {
    let Some(figures) = &watched.figures else { return [const { String::new() }; 8] };
    let (put, left) = watched.history.rates().unzip();
    let rate = |rate: Option<Rate>| rate.map_or_else(|| "-".to_owned(), Rate::shown);
    let [ready, taken, waiting, buried, ..] = figures.counts.map(short);
    let paused = if figures.paused == "none" { "-" } else { figures.paused.as_str() };
    let oldest = match figures.oldest_ms {
        Some(_) if figures.holds_dead_letters => OF_DEAD_LETTERS.to_owned(),
        oldest => oldest.map_or_else(|| "-".to_owned(), age),
    };
    [ready, taken, waiting, buried, rate(put), rate(left), oldest, paused.to_owned()]
}

/// A time in as many columns as there are: what is too long does without its second unit.
fn age(ms: u64) -> String {
    let text = brief(ms);
    let is_long = text.len() > 6;
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).filter(|_| is_long);
    end.and_then(|end| text.get(..=end)).map_or_else(|| text.clone(), str::to_owned)
}

/// A row that is filled from the left.
struct Cells<'a> {
    x: u16,
    y: u16,
    end: u16,
    buffer: &'a mut Buffer,
}

impl Cells<'_> {
    fn left(&mut self, text: &str, width: u16, style: Style) {
        let room = width.min(self.end.saturating_sub(self.x));
        self.buffer.set_stringn(self.x, self.y, text, usize::from(room), style);
        self.x += room;
    }

    fn right(&mut self, text: &str, width: u16, style: Style) {
        self.gap();
        let length = u16::try_from(text.chars().count()).unwrap_or(width).min(width);
        self.x += (width - length).min(self.end.saturating_sub(self.x));
        self.left(text, length, style);
    }

    fn gap(&mut self) {
        self.x = (self.x + 1).min(self.end);
    }
}
