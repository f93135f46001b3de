//! The state of the screen: what is known of the server, what is selected, what is asked.
//!
//! Keys and news change it, and it says what is to be done. It reads no clock, no socket and no
//! terminal; the time is the server's. How it looks is the business of `view.rs`.

use std::collections::BTreeMap;

use super::asker::{Focus, Page, PageOf, Sight};
use super::explain;
use super::figures::{Figures, Round, STATES, Server, plain};
use super::gatherer::{News, Order};
use super::history::{History, Rate};

mod list;
mod press;

pub(super) use self::list::Sort;

/// The lines of the overview that are not rows of queues: three on top, the names of the columns,
/// and two at the bottom.
pub(super) const OVERVIEW_LINES: u16 = 6;

/// All of the state.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) address: String,
    /// Columns and lines of the terminal.
    pub(super) size: (u16, u16),
    pub(super) interval_ms: i64,
    pub(super) link: Link,
    pub(super) latest: Option<Latest>,
    /// All queues and lanes together.
    pub(super) total: History,
    pub(super) queues: BTreeMap<Vec<u8>, Watched>,
    /// The names of the queues that are listed, in order.
    pub(super) rows: Vec<Vec<u8>>,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    /// The queue that the cursor is on.
    pub(super) selected: Option<Vec<u8>>,
    /// The first row that is seen.
    pub(super) first: usize,
    pub(super) place: Place,
    pub(super) over: Over,
    /// What there is to say about the last thing that was asked.
    pub(super) message: Option<String>,
}

/// The connection, as far as the screen knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Opening,
    Up,
    Lost(String),
}

/// What the last round told of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Latest {
    pub(super) server_ms: i64,
    pub(super) took_ms: i64,
    pub(super) server: Server,
    pub(super) queues: usize,
    pub(super) asked: usize,
    pub(super) more: bool,
}

/// What is known of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Watched {
    /// None until it had its turn.
    pub(super) figures: Option<Figures>,
    pub(super) history: History,
}

/// Where the user is.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Place {
    Overview,
    Queue(Visit),
    /// A task, in the queue that one goes back to.
    Task {
        visit: Visit,
        id: Vec<u8>,
        sight: Option<Sight>,
        scroll: u16,
    },
}

/// A queue that was entered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Visit {
    pub(super) of: PageOf,
    /// Where the pages before this one begin.
    pub(super) earlier: Vec<Vec<u8>>,
    /// What there is to see, once it has come.
    pub(super) page: Option<Page>,
    /// The task that the cursor is on.
    pub(super) chosen: usize,
}

/// What lies over the place and has the keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Over {
    Nothing,
    Help,
    /// The filter is being typed; this was it before.
    Filter {
        before: String,
    },
    /// Whether to pause a queue, or to end that.
    Question {
        queue: Vec<u8>,
        pause: bool,
    },
    /// Sentences about something.
    Told {
        title: String,
        sentences: Vec<String>,
    },
}

/// What the program has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Quit,
    /// Draw everything anew.
    Redraw,
    Order(Order),
}

impl Model {
    /// The state before anything is known.
    pub(super) fn new(address: String, interval_ms: i64, size: (u16, u16)) -> Self {
        Self {
            address,
            size,
            interval_ms,
            link: Link::Opening,
            latest: None,
            total: History::default(),
            queues: BTreeMap::new(),
            rows: Vec::new(),
            sort: Sort::Name,
            reversed: false,
            filter: String::new(),
            selected: None,
            first: 0,
            place: Place::Overview,
            over: Over::Nothing,
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
            News::Page(page) => self.hear_page(*page),
            News::Sight(seen) => {
                if let Place::Task { visit, id, sight, .. } = &mut self.place
                    && visit.of.queue == seen.queue
                    && *id == seen.id
                {
                    *sight = Some(*seen);
                }
            }
            News::Explained { queue, id, answer } => {
                let title = match id {
                    Some(id) => format!("EXPLAIN {} {}", plain(&queue), plain(&id)),
                    None => format!("EXPLAIN {}", plain(&queue)),
                };
                let sentences = explain::sentences(&answer, self.now_ms());
                // A question or a filter is not interrupted.
                if matches!(self.over, Over::Nothing | Over::Told { .. }) {
                    self.over = Over::Told { title, sentences };
                }
            }
            News::Paused { queue, pause } => {
                let what = if pause { "paused for takes" } else { "no longer paused for takes" };
                self.message = Some(format!("{} is {what}", plain(&queue)));
            }
            News::Refused(sentence) => self.message = Some(plain(sentence.as_bytes())),
            News::Lost(sentence) => {
                self.link = Link::Lost(plain(sentence.as_bytes()));
            }
        }
    }

    /// An order found no room, because the server does not answer.
    pub(super) fn hear_busy(&mut self) {
        self.message = Some("the server has not answered earlier questions yet".to_owned());
    }

    fn hear_round(&mut self, round: Round) {
        let Round { server_ms, took_ms, server, names, more, figures } = round;
        self.link = Link::Up;
        self.total.note(server_ms, &server.all);
        let asked = figures.len();
        let mut before = std::mem::take(&mut self.queues);
        self.latest = Some(Latest { server_ms, took_ms, server, queues: names.len(), asked, more });
        for name in names {
            let watched = before.remove(&name).unwrap_or_default();
            self.queues.insert(name, watched);
        }
        for (name, figures) in figures {
            if let Some(watched) = self.queues.get_mut(&name) {
                watched.history.note(server_ms, &figures);
                watched.figures = Some(figures);
            }
        }
        self.list();
    }

    fn hear_page(&mut self, page: Page) {
        let Place::Queue(visit) = &mut self.place else { return };
        if visit.of != page.of {
            return;
        }
        // The cursor stays on its task, as long as that is there.
        let id_at = |page: &Page, place: usize| {
            page.tasks.get(place).and_then(|task| task.field("id")).cloned()
        };
        let id = visit.page.as_ref().and_then(|page| id_at(page, visit.chosen));
        let place =
            id.and_then(|id| page.tasks.iter().position(|task| task.field("id") == Some(&id)));
        let last = page.tasks.len().saturating_sub(1);
        visit.chosen = place.unwrap_or(visit.chosen).min(last);
        visit.page = Some(page);
    }

    /// The time of the server, as far as it is known.
    pub(super) fn now_ms(&self) -> i64 {
        self.latest.as_ref().map_or(0, |latest| latest.server_ms)
    }

    /// What the gatherer has to look at.
    pub(super) fn focus(&self) -> Focus {
        let rows = usize::from(self.body_lines());
        let visible = self.rows.iter().skip(self.first).take(rows).cloned();
        let mut focus = Focus { visible: visible.collect(), page: None, task: None };
        let visit = match &self.place {
            Place::Overview => return focus,
            Place::Queue(visit) => visit,
            Place::Task { visit, id, .. } => {
                focus.task = Some(id.clone());
                visit
            }
        };
        focus.visible = vec![visit.of.queue.clone()];
        focus.page = Some(visit.of.clone());
        focus
    }

    /// How many rows of queues are seen.
    pub(super) fn body_lines(&self) -> u16 {
        self.size.1.saturating_sub(OVERVIEW_LINES).max(1)
    }

    /// The queue that is meant by a key: the one that was entered or that the cursor is on.
    pub(super) fn queue_meant(&self) -> Option<&Vec<u8>> {
        match &self.place {
            Place::Overview => self.selected.as_ref(),
            Place::Queue(visit) | Place::Task { visit, .. } => Some(&visit.of.queue),
        }
    }

    /// The figures of a queue.
    pub(super) fn figures_of(&self, queue: &[u8]) -> Option<&Figures> {
        self.queues.get(queue)?.figures.as_ref()
    }

    /// How many dead letters are ready, as far as their queues have had their turn.
    pub(super) fn dead_letters(&self) -> i64 {
        let figures = self.queues.values().filter_map(|watched| watched.figures.as_ref());
        figures.map(Figures::dead_letters).sum()
    }

    /// What comes in and what leaves.
    pub(super) fn rates_of(&self, queue: &[u8]) -> Option<(Rate, Rate)> {
        self.queues.get(queue)?.history.rates()
    }
}

impl Visit {
    /// Enters a queue, at the first page of the first state in which there are tasks.
    fn enter(queue: &[u8], figures: Option<&Figures>) -> Self {
        let count_of = |place: usize| figures.and_then(|figures| figures.counts.get(place));
        let place = (0..STATES.len()).find(|place| count_of(*place).is_some_and(|it| *it > 0));
        let state = STATES.get(place.unwrap_or_default()).map_or("R", |(letter, _)| letter);
        Self::at(PageOf { queue: queue.to_vec(), state, cursor: b"0".to_vec() })
    }

    const fn at(of: PageOf) -> Self {
        Self { of, earlier: Vec::new(), page: None, chosen: 0 }
    }

    /// The id of the task that the cursor is on.
    pub(super) fn chosen_id(&self) -> Option<Vec<u8>> {
        let task = self.page.as_ref()?.tasks.get(self.chosen)?;
        task.field("id")?.as_bytes().map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
pub(super) mod tests;
