//! What the record of a task says about batches: in which one it is, and which it waits for. What
//! becomes of a task by that is up to the engine.

use super::{Bytes, Past, TaskRecord};

impl TaskRecord {
    /// The batch in which it is pending.
    #[must_use]
    pub fn batch(&self) -> Option<&Bytes> {
        self.past.as_ref()?.batch.as_ref()
    }

    /// The batches that it waits for.
    #[must_use]
    pub fn names_after(&self) -> &[Bytes] {
        self.progress.after().map_or(&[], |after| &after.names)
    }

    /// Says in which batch it is pending.
    pub fn set_batch(&mut self, batch: Option<Bytes>) {
        if batch.is_some() || self.batch().is_some() {
            let past = self.past.take().map_or_else(Past::default, |past| *past);
            self.past = Past { batch, ..past }.kept();
        }
    }
}
