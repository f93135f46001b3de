//! What became of queues since the last question. Nothing is kept unless it is wanted.

use pinpriq_proto::survey::{QueueChange, QueueNews};
use pinpriq_proto::task::Bytes;

/// The news of queues that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The most that are kept. 0 if they are not wanted.
    most: usize,
    kept: Vec<QueueNews>,
    were_lost: bool,
}

impl News {
    /// Keeps at most this number of news. With 0, forgets them.
    pub(crate) fn keep(&mut self, most: usize) {
        self.most = most;
        if most == 0 {
            *self = Self::default();
        }
    }

    /// Notes what became of a queue, if that is wanted.
    #[inline]
    pub(crate) fn note(&mut self, queue: &Bytes, what: QueueChange) {
        if self.most > 0 {
            self.add(queue, what);
        }
    }

    #[inline(never)]
    fn add(&mut self, queue: &Bytes, what: QueueChange) {
        if self.kept.len() < self.most {
            self.kept.push(QueueNews { queue: queue.clone(), what });
        } else {
            self.were_lost = true;
        }
    }

    /// Returns the news, and whether some were left out.
    pub(crate) fn take(&mut self) -> (Vec<QueueNews>, bool) {
        (std::mem::take(&mut self.kept), std::mem::take(&mut self.were_lost))
    }
}
