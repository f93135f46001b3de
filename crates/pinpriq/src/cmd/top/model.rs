//! The state of the screen: what is known of the server, what is selected and entered.
//!
//! Keys and news change it. It reads no clock, no socket and no terminal; the time is the server's.
//! `view.rs` draws it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::gatherer::{Focus, News};
use super::keys::Key;
use crate::cmd::figures::{Figure, Figures, Rates, Row, STATES, Table, columns};
use crate::cmd::rounds::{Page, PageOf, Round};
use crate::output::escaped;
use pinpriq_proto::wire::resp::Value;

/// The lines of the overview that are not rows of queues: three on top, the names of the columns,
/// and two at the bottom.
const OVERVIEW_LINES: u16 = 6;
/// How long a filter may be, in characters.
const FILTER_CHARS_MAX: usize = 64;
/// How many pages back one can go.
const EARLIER_MAX: usize = 1_000;
/// How many lines of a task page up and page down move.
const TASK_LINES: u16 = 10;

/// All of the state.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) address: String,
    /// Columns and lines of the terminal.
    pub(super) size: (u16, u16),
    pub(super) interval_ms: u64,
    /// Why there is no connection.
    pub(super) lost: Option<String>,
    /// The last round. Its figures are those of the queues.
    pub(super) latest: Option<Round>,
    /// Of how many queues the last round told.
    pub(super) asked: usize,
    /// All queues and lanes together.
    pub(super) total: Watched,
    pub(super) queues: BTreeMap<Vec<u8>, Watched>,
    /// The names of the queues that are listed, in order.
    pub(super) rows: Vec<Vec<u8>>,
    /// What the list is in the order of; by name if it is none.
    pub(super) sort: Option<&'static Figure>,
    pub(super) reversed: bool,
    pub(super) filter: String,
    /// What the filter was before, as long as it is being typed.
    pub(super) typing: Option<String>,
    /// The queue that the cursor is on.
    pub(super) selected: Option<Vec<u8>>,
    /// The first row that is seen.
    pub(super) first: usize,
    /// The queue that was entered.
    pub(super) visit: Option<Visit>,
    /// The limits that several queues use, if they are on the screen instead of the list.
    pub(super) limits: Option<Limits>,
    /// What the server refused last.
    pub(super) message: Option<String>,
}

/// What is known of a queue, or of all together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Watched {
    /// None until it had its turn.
    pub(super) figures: Option<Figures>,
    /// None until it had two.
    pub(super) rates: Option<Rates>,
    server_ms: i64,
}

/// A list of limits.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Limits {
    /// None until they have come.
    pub(super) rows: Option<Vec<Value>>,
    /// The one that the cursor is on.
    pub(super) chosen: usize,
}

/// A queue that was entered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Visit {
    pub(super) of: PageOf,
    /// Where the pages before this one begin.
    pub(super) earlier: Vec<Vec<u8>>,
    /// What there is to see, once it has come.
    pub(super) page: Option<Page>,
    /// The task or share that the cursor is on.
    pub(super) chosen: usize,
    /// The task that was entered.
    pub(super) task: Option<Entered>,
}

/// A task that was entered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entered {
    /// All that was known of it when it was last seen.
    pub(super) task: Value,
    /// Whether it is still on the page that it was found on.
    pub(super) is_there: bool,
    pub(super) scroll: u16,
}

impl Watched {
    fn note(&mut self, server_ms: i64, figures: Figures) {
        let elapsed_ms = server_ms.saturating_sub(self.server_ms);
        let before = self.figures.as_ref();
        self.rates = before.and_then(|before| Rates::between(before, &figures, elapsed_ms));
        (self.server_ms, self.figures) = (server_ms, Some(figures));
    }

    /// What is shown of it.
    pub(super) fn row<'a>(&'a self, queue: &'a [u8]) -> Option<Row<'a>> {
        Some(Row::of(queue, self.figures.as_ref()?, self.rates))
    }
}

impl Model {
    /// The state before anything is known.
    pub(super) const fn new(address: String, interval_ms: u64, size: (u16, u16)) -> Self {
        Self {
            address,
            size,
            interval_ms,
            lost: None,
            latest: None,
            asked: 0,
            total: Watched { figures: None, rates: None, server_ms: 0 },
            queues: BTreeMap::new(),
            rows: Vec::new(),
            sort: None,
            reversed: false,
            filter: String::new(),
            typing: None,
            selected: None,
            first: 0,
            visit: None,
            limits: None,
            message: None,
        }
    }

    /// The terminal has another size now.
    pub(super) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.keep_in_sight();
    }

    /// Notes what the server said.
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Round(round) => self.hear_round(*round),
            News::Page(page) => {
                if let Some(visit) = self.visit.as_mut().filter(|visit| visit.of == page.of) {
                    visit.hear(*page);
                }
            }
            News::Limits(rows) => {
                if let Some(limits) = &mut self.limits {
                    limits.chosen = limits.chosen.min(rows.len().saturating_sub(1));
                    limits.rows = Some(rows);
                }
            }
            News::Refused(sentence) => self.message = Some(escaped(sentence.as_bytes())),
            News::Lost(sentence) => self.lost = Some(escaped(sentence.as_bytes())),
        }
    }

    fn hear_round(&mut self, mut round: Round) {
        self.lost = None;
        self.total.note(round.server_ms, std::mem::take(&mut round.server.all));
        let mut before = std::mem::take(&mut self.queues);
        for name in &round.names {
            self.queues.insert(name.clone(), before.remove(name).unwrap_or_default());
        }
        self.asked = round.figures.len();
        for (name, figures) in std::mem::take(&mut round.figures) {
            if let Some(watched) = self.queues.get_mut(&name) {
                watched.note(round.server_ms, figures);
            }
        }
        self.latest = Some(round);
        self.list();
    }

    /// The time of the server, as far as it is known.
    pub(super) fn now_ms(&self) -> i64 {
        self.latest.as_ref().map_or(0, |latest| latest.server_ms)
    }

    /// What the gatherer has to look at.
    pub(super) fn focus(&self) -> Focus {
        if let Some(Visit { of, .. }) = &self.visit {
            let (visible, page) = (vec![of.queue.clone()], Some(of.clone()));
            return Focus { visible, page, limits: false };
        }
        let rows = self.rows.iter().skip(self.first).take(self.body_lines());
        let limits = self.limits.is_some();
        Focus { visible: rows.cloned().collect(), page: None, limits }
    }

    /// How many rows of queues are seen.
    fn body_lines(&self) -> usize {
        usize::from(self.size.1.saturating_sub(OVERVIEW_LINES).max(1))
    }

    /// How many dead letters are ready, as far as their queues have had their turn.
    pub(super) fn dead_letters(&self) -> i64 {
        let figures = self.queues.values().filter_map(|watched| watched.figures.as_ref());
        figures.map(Figures::dead_letters).sum()
    }

    /// Makes the list anew, after anything that it depends on.
    fn list(&mut self) {
        let filter = self.filter.to_lowercase();
        let is_meant =
            |name: &[u8]| filter.is_empty() || escaped(name).to_lowercase().contains(&filter);
        let rank = |name: &[u8], watched: &Watched| {
            self.sort.and_then(|sort| (sort.value)(&watched.row(name)?).rank())
        };
        let mut rows: Vec<(Option<i64>, &Vec<u8>)> = self
            .queues
            .iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, watched)| (rank(name, watched), name))
            .collect();
        let (reversed, by_name) = (self.reversed, self.sort.is_none());
        rows.sort_by(|(one, one_name), (other, other_name)| {
            let order = match (one, other) {
                // Numbers begin with the highest.
                (Some(one), Some(other)) => other.cmp(one),
                // What is not known comes last in both directions.
                (Some(_), None) => return Ordering::Less,
                (None, Some(_)) => return Ordering::Greater,
                (None, None) if by_name => one_name.cmp(other_name),
                (None, None) => Ordering::Equal,
            };
            let order = if reversed { order.reverse() } else { order };
            // Equal ones stay where they are.
            order.then_with(|| one_name.cmp(other_name))
        });
        let rows: Vec<Vec<u8>> = rows.into_iter().map(|(_, name)| name.clone()).collect();
        // Where the selected queue was, if it is gone.
        let place = self.place_of_cursor();
        self.rows = rows;
        let is_there = self.selected.as_ref().is_some_and(|name| self.rows.contains(name));
        if !is_there {
            let last = self.rows.len().saturating_sub(1);
            self.selected = self.rows.get(place.unwrap_or_default().min(last)).cloned();
        }
        self.keep_in_sight();
    }

    /// The row of the cursor.
    fn place_of_cursor(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.iter().position(|name| name == selected)
    }

    /// Puts the cursor on this row, or the nearest that there is.
    fn select(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(row).cloned();
        self.keep_in_sight();
    }

    /// Scrolls so far that the cursor is seen.
    fn keep_in_sight(&mut self) {
        let lines = self.body_lines();
        let cursor = self.place_of_cursor().unwrap_or_default();
        let lowest = (cursor + 1).saturating_sub(lines);
        let highest = cursor.min(self.rows.len().saturating_sub(lines));
        self.first = self.first.clamp(lowest, highest.max(lowest));
    }

    /// A key was pressed. Breaks if it ends the program.
    pub(super) fn press(&mut self, key: Key) -> ControlFlow<()> {
        self.message = None;
        if key == Key::Interrupt {
            return ControlFlow::Break(());
        }
        if let Some(before) = self.typing.take() {
            self.type_filter(key, before);
        } else if let Some(visit) = &mut self.visit {
            if visit.task.is_some() {
                visit.press_in_task(key);
            } else if matches!(key, Key::Char('q') | Key::Escape) {
                self.visit = None;
            } else {
                visit.press(key);
            }
        } else if let Some(limits) = &mut self.limits {
            match key {
                Key::Char('q' | 'l') | Key::Escape => self.limits = None,
                _ => limits.press(key),
            }
        } else {
            return self.press_in_overview(key);
        }
        ControlFlow::Continue(())
    }

    fn type_filter(&mut self, key: Key, before: String) {
        match key {
            Key::Enter => return,
            Key::Escape => {
                self.filter = before;
                return self.list();
            }
            Key::Char(character) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(character);
            }
            Key::Backspace => {
                self.filter.pop();
            }
            _ => {}
        }
        self.typing = Some(before);
        self.list();
    }

    fn press_in_overview(&mut self, key: Key) -> ControlFlow<()> {
        let row = self.place_of_cursor().unwrap_or_default();
        let page = self.body_lines();
        match key {
            Key::Char('q') => return ControlFlow::Break(()),
            Key::Escape if self.filter.is_empty() => return ControlFlow::Break(()),
            Key::Escape => {
                self.filter.clear();
                self.list();
            }
            Key::Up | Key::Char('k') => self.select(row.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(row + 1),
            Key::PageUp => self.select(row.saturating_sub(page)),
            Key::PageDown => self.select(row + page),
            Key::Home | Key::Char('g') => self.select(0),
            Key::End | Key::Char('G') => self.select(usize::MAX),
            Key::Char('s') => {
                self.sort = match self.sort {
                    None => columns(Table::List).next(),
                    Some(sort) => columns(Table::List).skip_while(|it| it.head != sort.head).nth(1),
                };
                self.list();
            }
            Key::Char('r') => {
                self.reversed = !self.reversed;
                self.list();
            }
            Key::Char('l') => self.limits = Some(Limits::default()),
            Key::Char('/') => self.typing = Some(self.filter.clone()),
            Key::Enter => {
                let enter = |queue: &Vec<u8>| Visit::enter(queue, self.queues.get(queue));
                self.visit = self.selected.as_ref().map(enter);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Limits {
    fn press(&mut self, key: Key) {
        moves(key, &mut self.chosen, self.rows.as_ref().map_or(0, Vec::len));
    }
}

/// Moves the cursor in this number of rows, if the key does that.
fn moves(key: Key, chosen: &mut usize, rows: usize) -> bool {
    let last = rows.saturating_sub(1);
    *chosen = match key {
        Key::Up | Key::Char('k') => chosen.saturating_sub(1),
        Key::Down | Key::Char('j') => (*chosen + 1).min(last),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => return false,
    };
    true
}

impl Visit {
    /// Enters a queue, at the first page of the first state in which there are tasks.
    fn enter(queue: &[u8], watched: Option<&Watched>) -> Self {
        let figures = watched.and_then(|watched| watched.figures.as_ref());
        let place = figures.and_then(|it| it.counts.iter().position(|count| *count > 0));
        Self::of_state(queue.to_vec(), place.unwrap_or_default())
    }

    fn of_state(queue: Vec<u8>, place: usize) -> Self {
        let state = STATES.get(place).map_or("R", |(letter, ..)| letter);
        let of = PageOf { shares: false, queue, state, cursor: b"0".to_vec() };
        Self { of, earlier: Vec::new(), page: None, chosen: 0, task: None }
    }

    /// The cursor stays on its task, as long as that is there.
    fn hear(&mut self, page: Page) {
        let place_of = |id: &Value| page.tasks.iter().position(|it| it.field("id") == Some(id));
        let id = self.chosen_task().and_then(|task| task.field("id"));
        let place = id.and_then(place_of);
        self.chosen = place.unwrap_or(self.chosen).min(page.tasks.len().saturating_sub(1));
        if let Some(entered) = &mut self.task {
            let place = entered.task.field("id").and_then(place_of);
            let found = place.and_then(|place| page.tasks.get(place));
            entered.is_there = found.is_some();
            entered.task = found.unwrap_or(&entered.task).clone();
        }
        self.page = Some(page);
    }

    fn chosen_task(&self) -> Option<&Value> {
        self.page.as_ref()?.tasks.get(self.chosen)
    }

    fn press(&mut self, key: Key) {
        let tasks = self.page.as_ref().map_or(0, |page| page.tasks.len());
        if moves(key, &mut self.chosen, tasks) {
            return;
        }
        match key {
            Key::Char('s') => {
                let shares = !self.of.shares;
                *self = Self::enter(&self.of.queue, None);
                self.of.shares = shares;
            }
            // Shares have no states and no pages, and nothing is in them.
            _ if self.of.shares => {}
            Key::Tab | Key::Right => self.turn_state(1),
            Key::BackTab | Key::Left => self.turn_state(STATES.len() - 1),
            Key::PageDown | Key::Char('n') => {
                if let Some(next) = self.page.as_ref().and_then(|page| page.next.clone()) {
                    if self.earlier.len() >= EARLIER_MAX {
                        self.earlier.remove(0);
                    }
                    self.earlier.push(std::mem::replace(&mut self.of.cursor, next));
                    (self.page, self.chosen) = (None, 0);
                }
            }
            Key::PageUp | Key::Char('b') => {
                if let Some(cursor) = self.earlier.pop() {
                    self.of.cursor = cursor;
                    (self.page, self.chosen) = (None, 0);
                }
            }
            Key::Enter => {
                let task = self.chosen_task().cloned();
                self.task = task.map(|task| Entered { task, is_there: true, scroll: 0 });
            }
            _ => {}
        }
    }

    /// Goes this number of states on.
    fn turn_state(&mut self, steps: usize) {
        let place = STATES.iter().position(|(letter, ..)| *letter == self.of.state);
        let place = (place.unwrap_or_default() + steps) % STATES.len();
        *self = Self::of_state(std::mem::take(&mut self.of.queue), place);
    }

    fn press_in_task(&mut self, key: Key) {
        let Some(Entered { scroll, .. }) = &mut self.task else { return };
        match key {
            Key::Char('q') | Key::Escape => self.task = None,
            Key::Up | Key::Char('k') => *scroll = scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => *scroll = scroll.saturating_add(1),
            Key::PageUp => *scroll = scroll.saturating_sub(TASK_LINES),
            Key::PageDown => *scroll = scroll.saturating_add(TASK_LINES),
            Key::Home | Key::Char('g') => *scroll = 0,
            _ => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
