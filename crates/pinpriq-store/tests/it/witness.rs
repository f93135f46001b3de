//! A journal that records what it is given, for comparison with what is found later.

use std::cell::RefCell;
use std::rc::Rc;

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::{
    Figures, Fold, Journal, Loaded, Position, Progress, Reclaims, Rewrite, Room, Store, StoreError,
    TaskCounts, Urgency,
};

use crate::driving::History;

/// A journal that records what it is given.
pub(crate) struct Witness {
    pub(crate) journal: Box<Journal>,
    pub(crate) seen: Rc<RefCell<Witnessed>>,
}

/// What a journal was given in this life.
#[derive(Default, Debug)]
pub(crate) struct Witnessed {
    /// The contents at the beginning, and every batch since.
    pub(crate) history: History,
    /// The last batch.
    pub(crate) last: Position,
}

impl Store for Witness {
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        let mut fold = Fold::new();
        let loaded = self.journal.load(&mut |change, place| {
            fold.apply(&change, place, &mut Vec::new());
            sink(change, place);
        })?;
        fold.forget_unshared(&mut Vec::new());
        self.seen.borrow_mut().history.begin_with(&fold);
        Ok(loaded)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        self.journal.begin(header)
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        let position = self.journal.append(header, changes, urgency, placed)?;
        let mut seen = self.seen.borrow_mut();
        seen.history.note(position, changes.to_vec());
        seen.last = position;
        Ok(position)
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.journal.drive(now)
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.journal.poll_timeout()
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.journal.finish(now)
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.journal.close(now)
    }

    fn figures(&self) -> Figures {
        self.journal.figures()
    }
}

impl Reclaims for Witness {
    fn obsolete(&mut self, place: Place) {
        self.journal.obsolete(place);
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.journal.poll_rewrite()
    }

    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        self.journal.room(tasks)
    }
}
