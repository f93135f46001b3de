//! How far something is, for those who watch it. What is shown of it is the program's business.

/// How far something is. `done` is never more than `total`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// What is done. A backup counts bytes of segments before compression, a restore counts
    /// segments, and [`verify`](crate::verify::verify) counts segments as often as they are read.
    pub done: u64,
    /// How much there is, as far as is known. It may grow.
    pub total: u64,
}

/// Counts what is done, and tells it.
pub(crate) struct Meter<'a> {
    progress: Progress,
    tell: &'a mut dyn FnMut(Progress),
}

impl<'a> Meter<'a> {
    pub(crate) fn new(total: u64, tell: &'a mut dyn FnMut(Progress)) -> Self {
        Self { progress: Progress { done: 0, total }, tell }
    }

    /// Adds what is done.
    pub(crate) fn pass(&mut self, more: u64) {
        self.progress.done += more;
        self.progress.total = self.progress.total.max(self.progress.done);
        (self.tell)(self.progress);
    }
}
