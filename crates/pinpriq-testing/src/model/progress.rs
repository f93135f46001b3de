//! How far the work on a taken task has come, as its holder says.

use pinpriq_proto::limits::CHECKPOINT_BYTES_MAX;
use pinpriq_proto::reply::RefusalKind;
use pinpriq_proto::task::{Bytes, Trace};

use super::Model;
use super::turns::trace_of;

impl Model {
    pub(super) fn note_progress(
        &mut self,
        number: u64,
        text: Option<&[u8]>,
        checkpoint: Option<&[u8]>,
    ) {
        let known = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::from(bytes));
        let progress = &mut self.task_mut(number).progress;
        let mut trace = trace_of(progress);
        if let Some(text) = text {
            trace.progress_text = known(text);
        }
        if let Some(checkpoint) = checkpoint {
            trace.checkpoint = known(checkpoint);
        }
        progress.trace = trace.kept();
    }

    /// The text is gone with the lease.
    pub(super) fn forget_progress_text(&mut self, number: u64) {
        self.note_progress(number, Some(b""), None);
    }

    /// A task that begins again, or has ended, begins at nothing.
    pub(super) fn forget_checkpoint(&mut self, number: u64) {
        self.note_progress(number, None, Some(b""));
    }

    /// Who waits gets the result of a task, and one that is kept has it until it comes back.
    pub(super) fn note_result(&mut self, number: u64, result: Option<&[u8]>) {
        let progress = &mut self.task_mut(number).progress;
        progress.trace = Trace { result: result.map(Bytes::from), ..trace_of(progress) }.kept();
    }

    /// An acknowledged task is not cancelled, and nobody goes on with it.
    pub(super) fn forget_the_way(&mut self, number: u64) {
        let progress = &mut self.task_mut(number).progress;
        progress.trace = Trace { cancelled: None, ..trace_of(progress) }.kept();
        self.forget_checkpoint(number);
    }
}

pub(super) fn checkpoint_fits(checkpoint: Option<&[u8]>) -> Result<(), RefusalKind> {
    let length = checkpoint.map_or(0, <[u8]>::len);
    if length > CHECKPOINT_BYTES_MAX { Err(RefusalKind::TooLarge) } else { Ok(()) }
}
