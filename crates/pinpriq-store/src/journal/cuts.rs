//! The cuts that were asked for, from the moment at which the journal notes them until all that
//! belongs to them is durable.
//!
//! Decides which segments belong to a cut and which may not be put away because of one. A segment
//! belongs to a cut until a durable batch has let it go. So the segments suffice for moments before
//! that of the cut too: the shards of a server answer one after the other. How others ask and wait
//! is in `tap`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use pinpriq_proto::time::Timestamp;

use super::accounts::Accounts;
use super::tap::{Purpose, SegmentEnd, ShardCut, Tap};

/// The cuts of one journal.
pub(crate) struct Cuts {
    tap: Arc<Tap>,
    noted: VecDeque<Noted>,
    /// The first segment that a durable batch does not let go.
    released: u32,
    /// From this moment on, every batch names that segment or a later one.
    released_at: Timestamp,
}

/// A cut that can be handed out once this batch is durable.
struct Noted {
    lsn: u64,
    cut: ShardCut,
    answer: SyncSender<ShardCut>,
}

impl Cuts {
    pub(crate) fn new(tap: Arc<Tap>) -> Self {
        Self { tap, noted: VecDeque::new(), released: 0, released_at: Timestamp::ZERO }
    }

    /// Whether anybody asks for a cut.
    pub(crate) fn is_asked(&self) -> bool {
        self.tap.has_request()
    }

    /// Notes the first segment that may not go, when the last batch has this moment.
    pub(crate) fn note_released(&mut self, released: u32, moment: Timestamp) {
        if released != self.released {
            (self.released, self.released_at) = (released, moment);
        }
    }

    /// Notes a cut for everybody who has asked. `lsn` is the last batch. None with the moment
    /// `at` or an earlier one will follow.
    pub(crate) fn note(&mut self, at: Timestamp, lsn: u64, accounts: &Accounts) {
        let (needed_from, needed_since) = (self.released, self.released_at);
        for (purpose, answer) in self.tap.take_asked() {
            let (keep, first, since) = self.tap.keep(purpose, needed_from, needed_since);
            let segments = accounts.segments_from(first).map(|segment| SegmentEnd {
                number: segment.header.number,
                incarnation: segment.header.incarnation,
                bytes: segment.end,
            });
            let segments = segments.collect();
            let cut = ShardCut { at, since, segments, keep, needed_from, needed_since };
            self.noted.push_back(Noted { lsn, cut, answer });
        }
    }

    /// Hands out the cuts of which everything is durable.
    pub(crate) fn answer(&mut self, durable_lsn: u64) {
        while self.noted.front().is_some_and(|noted| noted.lsn <= durable_lsn)
            && let Some(Noted { cut, answer, .. }) = self.noted.pop_front()
        {
            // If nobody waits any more, nothing is kept either.
            drop(answer.try_send(cut));
        }
    }

    /// Whether this segment must stay under its name.
    pub(crate) fn keeps(&self, segment: u32) -> bool {
        segment >= self.tap.kept_from()
    }

    /// The lowest number of a segment that must stay under its name. All numbers are below it if
    /// none must.
    pub(crate) fn kept_from(&self) -> u32 {
        self.tap.kept_from()
    }

    /// Whether every segment is kept, also those from before the start.
    pub(crate) fn keeps_all(&self) -> bool {
        self.keeps(0)
    }

    /// See [`Tap::lose_keeps`].
    pub(crate) fn lose_keeps(&self, archive_may_go: bool) -> Option<Purpose> {
        self.tap.lose_keeps(archive_may_go)
    }
}

impl Drop for Cuts {
    /// Whoever still waits learns that the journal has ended.
    fn drop(&mut self) {
        self.tap.end();
    }
}
