//! What happened last, for whoever has to find out why.
//!
//! Written down only when a run is replayed for that purpose: words cost more than the run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// How much is remembered.
const LINES_MAX: usize = 2_000;

/// A list of the latest events. Clones are the same list.
#[derive(Clone, Default)]
pub struct Trail {
    lines: Option<Rc<RefCell<VecDeque<String>>>>,
}

impl Trail {
    /// A trail that is kept. The default one is not.
    #[must_use]
    pub fn kept() -> Self {
        Self { lines: Some(Rc::default()) }
    }

    /// Notes an event.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let lines = &mut *lines.borrow_mut();
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line());
        }
    }

    /// What was noted last, the latest at the end.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines
            .as_ref()
            .map(|lines| lines.borrow().iter().cloned().collect())
            .unwrap_or_default()
    }
}
