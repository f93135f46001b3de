//! What the engine reports to its store: changes, and the places of records that no longer count.
//!
//! Which changes there are is decided elsewhere.

use crate::memory::slots::Slot;
use pinpriq_proto::change::{Change, Place};

/// What was not handed to the store yet.
#[derive(Debug)]
pub(crate) struct Report {
    /// Whether a store wants to know.
    wanted: bool,
    changes: Vec<Change>,
    obsolete: Vec<Place>,
    /// Tasks that have changed and are not among the changes yet.
    unsaved: Vec<Slot>,
    /// See [`crate::Engine::take_stirred`].
    stirred: bool,
}

/// How much was noted at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    changes: usize,
    obsolete: usize,
    stirred: bool,
}

impl Report {
    pub(crate) const fn new() -> Self {
        Self {
            wanted: true,
            changes: Vec::new(),
            obsolete: Vec::new(),
            unsaved: Vec::new(),
            stirred: false,
        }
    }

    /// Reports nothing from now on.
    pub(crate) const fn stop(&mut self) {
        self.wanted = false;
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Adds a change.
    #[inline]
    pub(crate) fn add(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Gives up the place of a record, if there was one.
    #[inline]
    pub(crate) fn give_up(&mut self, place: Option<Place>) {
        self.obsolete.extend(place);
    }

    /// Adds a task to those that [`Report::take_unsaved`] returns.
    #[inline]
    pub(crate) fn mark(&mut self, slot: Slot) {
        self.unsaved.push(slot);
    }

    /// The tasks that have changed. Return the emptied list with [`Report::reuse`].
    #[inline]
    pub(crate) fn take_unsaved(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.unsaved)
    }

    /// Keeps the memory of an emptied list for the next tasks.
    #[inline]
    pub(crate) fn reuse(&mut self, emptied: Vec<Slot>) {
        self.unsaved = emptied;
    }

    pub(crate) const fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Notes whether a task has changed so that later takes could notice.
    #[inline]
    pub(crate) const fn stir(&mut self, stirred: bool) {
        self.stirred |= stirred;
    }

    /// Whether a task has changed so that later takes could notice, since the last call.
    pub(crate) const fn take_stirred(&mut self) -> bool {
        std::mem::replace(&mut self.stirred, false)
    }

    /// Moves the changes to the end of `changes`.
    pub(crate) fn take_changes(&mut self, changes: &mut Vec<Change>) {
        changes.append(&mut self.changes);
    }

    /// Moves the places to the end of `places`.
    pub(crate) fn take_obsolete(&mut self, places: &mut Vec<Place>) {
        places.append(&mut self.obsolete);
    }

    /// Returns how much was noted, for [`Report::go_back`].
    pub(crate) const fn so_far(&self) -> Mark {
        let (changes, obsolete) = (self.changes.len(), self.obsolete.len());
        Mark { changes, obsolete, stirred: self.stirred }
    }

    /// Forgets everything that was noted since this mark, at which no task was unsaved.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.changes.truncate(mark.changes);
        self.obsolete.truncate(mark.obsolete);
        self.unsaved.clear();
        self.stirred = mark.stirred;
    }

    /// Forgets what is not wanted.
    #[inline]
    pub(crate) fn conclude(&mut self) {
        if !self.wanted {
            self.changes.clear();
            self.obsolete.clear();
        }
    }
}
