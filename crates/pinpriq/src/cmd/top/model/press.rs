//! What each key does.

use super::{Effect, Model, Over, Place, Visit};
use crate::cmd::top::asker::PageOf;
use crate::cmd::top::figures::STATES;
use crate::cmd::top::gatherer::Order;
use crate::cmd::top::keys::Key;

/// How long a filter may be, in characters.
const FILTER_CHARS_MAX: usize = 64;
/// How many pages back one can go.
const EARLIER_MAX: usize = 1_000;

impl Model {
    /// A key was pressed.
    pub(in crate::cmd::top) fn press(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Interrupt => return Some(Effect::Quit),
            Key::Redraw => return Some(Effect::Redraw),
            _ => {}
        }
        self.message = None;
        match std::mem::replace(&mut self.over, Over::Nothing) {
            Over::Nothing => self.press_in_place(key),
            // Any key closes them.
            Over::Help | Over::Told { .. } => None,
            Over::Filter { before } => {
                self.press_in_filter(key, before);
                None
            }
            Over::Question { queue, pause } => match key {
                Key::Char('y' | 'Y') => Some(Effect::Order(Order::Pause { queue, pause })),
                Key::Char('n' | 'N' | 'q') | Key::Escape => {
                    self.message = Some("nothing was changed".to_owned());
                    None
                }
                _ => {
                    self.over = Over::Question { queue, pause };
                    None
                }
            },
        }
    }

    fn press_in_filter(&mut self, key: Key, before: String) {
        match key {
            Key::Enter => return,
            Key::Escape => {
                self.filter = before;
                self.list();
                return;
            }
            Key::Char(character) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(character);
            }
            Key::Backspace => {
                self.filter.pop();
            }
            _ => {}
        }
        self.over = Over::Filter { before };
        self.list();
    }

    fn press_in_place(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Char('?') => self.over = Over::Help,
            Key::Char('p') => self.ask_about_pause(),
            Key::Char('e') => return self.explain(),
            _ => match &self.place {
                Place::Overview => return self.press_in_overview(key),
                Place::Queue(_) => self.press_in_queue(key),
                Place::Task { .. } => self.press_in_task(key),
            },
        }
        None
    }

    fn press_in_overview(&mut self, key: Key) -> Option<Effect> {
        let row = self.place_of_cursor().unwrap_or_default();
        let page = usize::from(self.body_lines());
        match key {
            Key::Char('q') => return Some(Effect::Quit),
            Key::Escape if self.filter.is_empty() => return Some(Effect::Quit),
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
                self.sort = self.sort.next();
                self.list();
            }
            Key::Char('r') => {
                self.reversed = !self.reversed;
                self.list();
            }
            Key::Char('/') => self.over = Over::Filter { before: self.filter.clone() },
            Key::Enter => {
                if let Some(queue) = &self.selected {
                    let visit = Visit::enter(queue, self.figures_of(queue));
                    self.place = Place::Queue(visit);
                }
            }
            _ => {}
        }
        None
    }

    fn press_in_queue(&mut self, key: Key) {
        let Place::Queue(visit) = &mut self.place else { return };
        let tasks = visit.page.as_ref().map_or(0, |page| page.tasks.len());
        let last = tasks.saturating_sub(1);
        match key {
            Key::Char('q') | Key::Escape => self.place = Place::Overview,
            Key::Up | Key::Char('k') => visit.chosen = visit.chosen.saturating_sub(1),
            Key::Down | Key::Char('j') => visit.chosen = (visit.chosen + 1).min(last),
            Key::Home | Key::Char('g') => visit.chosen = 0,
            Key::End | Key::Char('G') => visit.chosen = last,
            Key::Tab | Key::Right => visit.turn_state(1),
            Key::BackTab | Key::Left => visit.turn_state(STATES.len() - 1),
            Key::PageDown | Key::Char('n') => visit.next_page(),
            Key::PageUp | Key::Char('b') => visit.page_before(),
            Key::Enter => {
                if let Some(id) = visit.chosen_id() {
                    let visit = visit.clone();
                    self.place = Place::Task { visit, id, sight: None, scroll: 0 };
                }
            }
            _ => {}
        }
    }

    fn press_in_task(&mut self, key: Key) {
        let Place::Task { visit, scroll, .. } = &mut self.place else { return };
        match key {
            Key::Char('q') | Key::Escape => self.place = Place::Queue(visit.clone()),
            Key::Up | Key::Char('k') => *scroll = scroll.saturating_sub(1),
            Key::Down | Key::Char('j') => *scroll = scroll.saturating_add(1),
            Key::PageUp => *scroll = scroll.saturating_sub(10),
            Key::PageDown => *scroll = scroll.saturating_add(10),
            Key::Home | Key::Char('g') => *scroll = 0,
            _ => {}
        }
    }

    fn ask_about_pause(&mut self) {
        let Some(queue) = self.queue_meant().cloned() else { return };
        let is_paused = self.figures_of(&queue).map(super::Figures::is_paused_out);
        match is_paused {
            Some(is_paused) => self.over = Over::Question { queue, pause: !is_paused },
            None => self.message = Some("nothing is known of this queue yet".to_owned()),
        }
    }

    fn explain(&self) -> Option<Effect> {
        let queue = self.queue_meant()?.clone();
        let id = match &self.place {
            Place::Overview => None,
            Place::Queue(visit) => visit.chosen_id(),
            Place::Task { id, .. } => Some(id.clone()),
        };
        Some(Effect::Order(Order::Explain { queue, id }))
    }
}

impl Visit {
    /// Goes this number of states on.
    fn turn_state(&mut self, steps: usize) {
        let place = STATES.iter().position(|(letter, _)| *letter == self.of.state);
        let place = (place.unwrap_or_default() + steps) % STATES.len();
        let state = STATES.get(place).map_or("R", |(letter, _)| letter);
        let queue = std::mem::take(&mut self.of.queue);
        *self = Self::at(PageOf { queue, state, cursor: b"0".to_vec() });
    }

    fn next_page(&mut self) {
        let next = self.page.as_ref().and_then(|page| page.next.clone());
        if let Some(next) = next {
            if self.earlier.len() >= EARLIER_MAX {
                self.earlier.remove(0);
            }
            self.earlier.push(std::mem::replace(&mut self.of.cursor, next));
            (self.page, self.chosen) = (None, 0);
        }
    }

    fn page_before(&mut self) {
        if let Some(cursor) = self.earlier.pop() {
            self.of.cursor = cursor;
            (self.page, self.chosen) = (None, 0);
        }
    }
}
