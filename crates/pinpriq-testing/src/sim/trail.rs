//! The latest events, for finding the cause of a failure.
//!
//! Recorded only when a run is replayed for that purpose: formatting the events costs more than the
//! run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The most lines remembered.
const LINES_MAX: usize = 2_000;

/// A list of the latest events. Clones are the same list.
#[derive(Clone, Default)]
pub struct Trail {
    lines: Option<Rc<RefCell<VecDeque<String>>>>,
}

impl Trail {
    /// A trail that is kept. The default one records nothing.
    #[must_use]
    pub fn kept() -> Self {
        Self { lines: Some(Rc::default()) }
    }

    /// Records an event.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let lines = &mut *lines.borrow_mut();
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line());
        }
    }

    /// The latest events, the most recent last.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines
            .as_ref()
            .map(|lines| lines.borrow().iter().cloned().collect())
            .unwrap_or_default()
    }
}
