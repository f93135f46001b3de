//! How far the work on a taken task has come, as its holder says: a text for people, and a
//! checkpoint for who takes the task next.
//!
//! The text is gone with the lease, and no store ever has it. The checkpoint stays until the task
//! is acknowledged or begins again.

use crate::engine::Engine;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::slots::Slot;
use pinpriq_proto::limits::CHECKPOINT_BYTES_MAX;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::Bytes;

impl Engine {
    /// Notes how far the work on a taken task has come. There must be room for it.
    pub(super) fn note_progress(
        &mut self,
        slot: Slot,
        text: Option<&[u8]>,
        checkpoint: Option<&[u8]>,
    ) {
        if text.is_none() && checkpoint.is_none() {
            return;
        }
        let unsaved = if checkpoint.is_some() { Unsaved::Progress } else { Unsaved::Nothing };
        self.amend(slot, unsaved, |task| {
            if let Some(text) = text {
                task.set_progress_text(some(text));
            }
            if let Some(checkpoint) = checkpoint {
                task.set_checkpoint(some(checkpoint));
            }
        });
    }
}

/// Forgets all that has happened to a task while it was taken, since it was acknowledged.
pub(crate) fn forget_the_way(task: &mut Task) {
    task.set_cancelled(None);
    task.set_checkpoint(None);
}

pub(super) fn check_checkpoint(checkpoint: Option<&[u8]>) -> Result<(), Refusal> {
    match checkpoint {
        Some(checkpoint) if checkpoint.len() > CHECKPOINT_BYTES_MAX => Err(Refusal::new(
            RefusalKind::TooLarge,
            format!(
                "a checkpoint has at most {CHECKPOINT_BYTES_MAX} bytes, and this one has {}",
                checkpoint.len()
            ),
        )),
        _ => Ok(()),
    }
}

fn some(bytes: &[u8]) -> Option<Bytes> {
    Some(bytes).filter(|bytes| !bytes.is_empty()).map(Bytes::from)
}
