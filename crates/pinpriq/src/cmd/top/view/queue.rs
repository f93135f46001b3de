//! A queue that was entered: its figures, its settings and a page of its tasks.

use pinpriq_wire::resp::Value;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget as _, Wrap};

use super::{BOLD, DIM, PLAIN, REVERSED, pairs};
use crate::cmd::top::asker::Page;
use crate::cmd::top::explain::ago;
use crate::cmd::top::figures::{Figures, STATES, in_words, plain};
use crate::cmd::top::history::{Rate, short};
use crate::cmd::top::model::{Model, Visit};
use crate::units::brief;

/// How many priorities are shown.
const PRIORITIES: usize = 8;
/// How many lines the settings may take.
const SETTINGS_LINES: u16 = 2;
/// How many characters of a payload are looked at for a row.
const PAYLOAD_BYTES: usize = 300;

pub(super) fn draw(model: &Model, visit: &Visit, area: Rect, buffer: &mut Buffer) {
    let mut lines = facts(model, visit);
    if let Some(settings) = visit.page.as_ref().and_then(|page| page.settings.as_ref()) {
        lines.push(pairs([("settings", set(settings))]));
    }
    // The first lines are one each; only settings may need another.
    let facts = u16::try_from(lines.len()).unwrap_or_default();
    let wide = lines.last().map_or(0, Line::width) > usize::from(area.width);
    let height = (facts + u16::from(wide) * (SETTINGS_LINES - 1)).min(area.height / 2);
    let (above, below) = (
        Rect { height, ..area },
        Rect { y: area.y + height, height: area.height - height, ..area },
    );
    Paragraph::new(lines).wrap(Wrap { trim: false }).render(above, buffer);
    tasks(model, visit, below, buffer);
}

fn facts<'a>(model: &Model, visit: &Visit) -> Vec<Line<'a>> {
    let name = vec![Span::styled("queue ", DIM), Span::styled(plain(&visit.of.queue), BOLD)];
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
    let mut lines = vec![Line::from(first), pairs(states), pairs(rates)];
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
    let heading = format!(
        "{:<10} {:>8} {:>5} {:>5} {:>9}  payload",
        "id", "priority", "taken", "fails", "put"
    );
    Line::styled(heading, BOLD).render(heads, buffer);
    let room = usize::from(area.height.saturating_sub(2)).max(1);
    let first = (visit.chosen + 1).saturating_sub(room);
    for ((place, task), line) in page.tasks.iter().enumerate().skip(first).zip(lines.by_ref()) {
        let style = if place == visit.chosen { REVERSED } else { PLAIN };
        buffer.set_style(line, style);
        Line::raw(row(task, model.now_ms())).render(line, buffer);
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

fn row(task: &Value, now_ms: i64) -> String {
    let field = |name: &str| task.field(name).map_or_else(|| "-".to_owned(), in_words);
    let put = task.field("put_at").and_then(Value::integer);
    let put = put.map_or_else(|| "-".to_owned(), |put| ago(put, now_ms));
    let payload = task.field("payload").and_then(Value::as_bytes).unwrap_or_default();
    format!(
        "{:<10} {:>8} {:>5} {:>5} {put:>9}  {}",
        field("id"),
        field("priority"),
        field("attempts"),
        field("failures"),
        plain(payload.get(..PAYLOAD_BYTES).unwrap_or(payload)),
    )
}
