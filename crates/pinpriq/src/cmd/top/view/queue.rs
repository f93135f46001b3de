//! A queue that was entered: its figures, its settings and a page of its tasks.

use pinpriq_proto::wire::resp::Value;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::{BOLD, DIM, PLAIN, REVERSED, fitted, folded, pairs};
use crate::cmd::top::asker::Page;
use crate::cmd::top::explain::ago;
use crate::cmd::top::figures::{Figures, STATES, in_words, plain};
use crate::cmd::top::history::{Rate, short};
use crate::cmd::top::model::{Model, Visit};
use crate::units::brief;

/// What stands on the line of the name besides the name: that the queue is paused, for example.
const REMARK_COLUMNS: usize = 32;
/// The least width of the name.
const NAME_COLUMNS_MIN: usize = 12;
/// How many priorities are shown.
const PRIORITIES: usize = 8;
/// How many lines the settings may take, and the priorities.
const LONG_LINES: u16 = 2;
/// The names of the columns before the payload, and their least widths.
const HEADS: [&str; 5] = ["id", "priority", "taken", "fails", "put"];
const WIDTHS_MIN: [usize; 5] = [10, 8, 5, 5, 9];
/// How many characters of a payload are looked at for a row.
const PAYLOAD_BYTES: usize = 300;

pub(super) fn draw(model: &Model, visit: &Visit, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let mut lines = facts(model, visit, width);
    if let Some(settings) = visit.page.as_ref().and_then(|page| page.settings.as_ref()) {
        lines.push(pairs([("settings", set(settings))]));
    }
    // Only priorities and settings may need another line.
    let lines_of = |line: &Line<'_>| if line.width() > width { LONG_LINES } else { 1 };
    let height = lines.iter().map(lines_of).sum::<u16>().min(area.height / 2);
    let (above, below) = (
        Rect { height, ..area },
        Rect { y: area.y + height, height: area.height - height, ..area },
    );
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(above, buffer);
    tasks(model, visit, below, buffer);
}

fn facts<'a>(model: &Model, visit: &Visit, width: usize) -> Vec<Line<'a>> {
    let room = width.saturating_sub(REMARK_COLUMNS).max(NAME_COLUMNS_MIN);
    let shown = fitted(&plain(&visit.of.queue), room);
    let name = vec![Span::styled("queue ", DIM), Span::styled(shown, BOLD)];
    let Some(figures) = model.figures_of(&visit.of.queue) else {
        let gone = model.latest.is_some() && !model.queues.contains_key(&visit.of.queue);
        let remark = if gone { "  there is no such queue" } else { "" };
        return vec![Line::from([name, vec![Span::raw(remark)]].concat())];
    };
    let (put, left) = model.rates_of(&visit.of.queue).unzip();
    let rate = |rate: Option<Rate>| rate.map_or_else(|| "-".to_owned(), Rate::shown);
    let spark =
        model.queues.get(&visit.of.queue).map(|watched| watched.history.line(model.now_ms(), 20));
    let paused = match figures.paused.as_str() {
        "none" => Span::raw("  "),
        side => Span::styled(format!("  paused: {side}  "), REVERSED),
    };
    let purpose = if figures.holds_dead_letters { "  for dead letters" } else { "" };
    let first = vec![Span::raw(purpose), paused, Span::raw(spark.unwrap_or_default())];
    let first = [name, first].concat();
    let states = STATES.iter().zip(figures.counts);
    let states = states.map(|((_, state), count)| (*state, short(count)));
    let rates = [
        ("in/s", rate(put)),
        ("out/s", rate(left)),
        ("oldest", figures.oldest_ms.map_or_else(|| "-".to_owned(), brief)),
        ("failures", short(figures.failures)),
        ("takers", short(figures.takers)),
        ("subscribers", short(figures.subscribers)),
    ];
    let mut lines = vec![Line::from(first)];
    lines.extend(folded(states, width));
    lines.extend(folded(rates, width));
    if !figures.priorities.is_empty() {
        lines.push(pairs([("ready by priority", priorities(figures))]));
    }
    lines
}

fn priorities(figures: &Figures) -> String {
    let pair = |(priority, count): &(String, i64)| format!("{priority}: {}", short(*count));
    let shown: Vec<String> = figures.priorities.iter().take(PRIORITIES).map(pair).collect();
    let more = if figures.priorities.len() > PRIORITIES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The settings that have a value.
fn set(settings: &Value) -> String {
    let Value::Map(members) = settings else { return String::new() };
    let pairs = members.iter().filter(|(name, value)| {
        // The pause is above.
        *value != Value::Null && name.as_bytes() != Some(b"paused")
    });
    let pairs = pairs.map(|(name, value)| format!("{} {}", in_words(name), in_words(value)));
    pairs.collect::<Vec<_>>().join("  ")
}

fn tasks(model: &Model, visit: &Visit, area: Rect, buffer: &mut Buffer) {
    let mut lines = area.rows();
    let Some(tabs) = lines.next() else { return };
    let tab = |(letter, state): &(&'static str, &'static str)| {
        let style = if *letter == visit.of.state { REVERSED } else { DIM };
        [Span::styled(format!(" {state} "), style), Span::raw(" ")]
    };
    let page = format!("page {}", visit.earlier.len() + 1);
    let spans = STATES.iter().flat_map(tab).chain([Span::styled(page, DIM)]);
    Line::from(spans.collect::<Vec<_>>()).render(tabs, buffer);
    let Some(page) = &visit.page else { return };
    let Some(heads) = lines.next() else { return };
    let columns = Columns::of(&page.tasks, model.now_ms(), usize::from(area.width));
    Line::styled(columns.line(&HEADS.map(str::to_owned), "payload"), BOLD).render(heads, buffer);
    let room = usize::from(area.height.saturating_sub(2)).max(1);
    let first = (visit.chosen + 1).saturating_sub(room);
    for ((place, task), line) in page.tasks.iter().enumerate().skip(first).zip(lines.by_ref()) {
        let style = if place == visit.chosen { REVERSED } else { PLAIN };
        buffer.set_style(line, style);
        let payload = task.field("payload").and_then(Value::as_bytes).unwrap_or_default();
        let payload = plain(payload.get(..PAYLOAD_BYTES).unwrap_or(payload));
        Line::raw(columns.line(&cells(task, model.now_ms()), &payload)).render(line, buffer);
    }
    if let Some(line) = lines.next() {
        Line::styled(remark(page), DIM).render(line, buffer);
    }
}

fn remark(page: &Page) -> &'static str {
    match (page.tasks.is_empty(), page.next.is_some()) {
        (true, false) => "no tasks in this state",
        (true, true) => "none on this page; n shows the next",
        (false, true) => "n shows more",
        (false, false) => "",
    }
}

/// The cells of a task before its payload.
fn cells(task: &Value, now_ms: i64) -> [String; 5] {
    let field = |name: &str| task.field(name).map_or_else(|| "-".to_owned(), in_words);
    let put = task.field("put_at").and_then(Value::integer);
    let put = put.map_or_else(|| "-".to_owned(), |put| ago(put, now_ms));
    [field("id"), field("priority"), field("attempts"), field("failures"), put]
}

/// The widths of the columns before the payload. Those that have no room are left out.
struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// Makes the columns as wide as what is in them.
    fn of(tasks: &[Value], now_ms: i64, width: usize) -> Self {
        let mut widths = HEADS.iter().zip(WIDTHS_MIN).map(|(head, min)| head.len().max(min));
        let mut widths: [usize; 5] = std::array::from_fn(|_| widths.next().unwrap_or_default());
        for task in tasks {
            for (width, cell) in widths.iter_mut().zip(cells(task, now_ms)) {
                *width = (*width).max(Span::raw(cell).width());
            }
        }
        // A long id loses its end before a number goes.
        let others: usize = widths.iter().skip(1).map(|width| width + 1).sum();
        widths[0] = widths[0].min(width.saturating_sub(others).max(WIDTHS_MIN[0]));
        let mut used = 0;
        let fits = |column: &usize| {
            used += column + 1;
            used <= width + 1
        };
        Self { widths: widths.into_iter().take_while(fits).collect() }
    }

    /// A line of these cells: the first on the left, the others on the right.
    fn line(&self, cells: &[String; 5], payload: &str) -> String {
        let mut line = String::new();
        for (place, (cell, &width)) in cells.iter().zip(&self.widths).enumerate() {
            let cell = fitted(cell, width);
            let gap = " ".repeat(width.saturating_sub(Span::raw(&cell).width()));
            let parts = if place == 0 { [&cell, &gap] } else { [&gap, &cell] };
            line.extend(parts.map(String::as_str));
            line.push(' ');
        }
        line.push(' ');
        line + payload
    }
}
