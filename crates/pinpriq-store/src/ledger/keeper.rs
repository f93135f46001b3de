//! The interface to what keeps the watermark of a log where no engine can roll it back.

use crate::StoreError;

use crate::ledger::watermark::Watermark;

/// What keeps the watermark of one log. A store that has one confirms a batch only once the
/// watermark behind it is kept, so that no answer rests on an entry whose loss would go unseen.
pub trait Keeper: Send {
    /// Begins to keep this watermark instead of the one before. Never waits.
    fn keep(&mut self, watermark: Watermark);

    /// Returns the last watermark that is durable, if there is one. Never waits. Once it has failed
    /// it always fails.
    fn kept(&mut self) -> Result<Option<Watermark>, StoreError>;

    /// Waits until [`Keeper::kept`] returns the watermark that was given last, or fails.
    fn wait(&mut self);
}
