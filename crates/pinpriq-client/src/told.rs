//! How far the work on a job has come, as its function tells it, until the server knows it.
//!
//! Nothing here talks to the server. Renewals and failures take along what is new.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_proto::limits::{CHECKPOINT_BYTES_MAX, PROGRESS_BYTES_MAX};

use crate::request::cut;

/// What the server does not know yet.
#[derive(Default)]
pub(crate) struct Untold(Mutex<Told>);

/// How far the work has come.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// For people.
    pub(crate) progress: Option<String>,
    /// For who takes the task next. Empty removes what the server knows.
    pub(crate) checkpoint: Option<Vec<u8>>,
}

impl Untold {
    /// Notes a progress, cut to the longest that the server takes.
    pub(crate) fn note_progress(&self, text: &str) {
        self.told().progress = Some(cut(text, PROGRESS_BYTES_MAX).to_owned());
    }

    /// Notes a checkpoint. Returns whether the server takes one as large.
    pub(crate) fn note_checkpoint(&self, checkpoint: &[u8]) -> bool {
        let fits = checkpoint.len() <= CHECKPOINT_BYTES_MAX;
        if fits {
            self.told().checkpoint = Some(checkpoint.to_vec());
        }
        fits
    }

    /// Whether there is anything.
    pub(crate) fn is_any(&self) -> bool {
        *self.told() != Told::default()
    }

    /// Returns all of it, since the server is about to be told.
    pub(crate) fn take(&self) -> Told {
        std::mem::take(&mut self.told())
    }

    /// Returns the checkpoint alone, which stays.
    pub(crate) fn checkpoint(&self) -> Option<Vec<u8>> {
        self.told().checkpoint.clone()
    }

    /// Notes again what the server was not told after all, unless there is something newer.
    pub(crate) fn put_back(&self, told: Told) {
        let mut now = self.told();
        now.progress = now.progress.take().or(told.progress);
        now.checkpoint = now.checkpoint.take().or(told.checkpoint);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_counts_and_what_is_too_long_does_not() {
        let untold = Untold::default();
        assert!(!untold.is_any());
        untold.note_progress(&"é".repeat(200));
        assert!(untold.note_checkpoint(b"one"));
        let former = untold.take();
        assert_eq!(former.progress.as_deref().map(str::len), Some(256));
        assert!(!untold.is_any());
        assert!(!untold.note_checkpoint(&vec![0; CHECKPOINT_BYTES_MAX + 1]));
        assert!(untold.note_checkpoint(b"two"));
        untold.put_back(former);
        let told = untold.take();
        assert_eq!(told.checkpoint.as_deref(), Some(&b"two"[..]));
        assert!(told.progress.is_some());
    }
}
