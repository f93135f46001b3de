//! Finds and restores details, whatever keeps them.

use crate::engine::Engine;
use crate::memory::details::Details;
use pinpriq_proto::change::{Change, Place};
use pinpriq_proto::details::{Detail, DetailKind};

impl Engine {
    /// The details of a kind.
    pub(crate) fn details(&mut self, kind: DetailKind) -> &mut dyn Details {
        match kind {
            DetailKind::Window => &mut self.windows,
            DetailKind::Share => &mut self.own_shares,
            DetailKind::Limit => &mut self.named_limits,
            DetailKind::Batch => self.batches.details(),
        }
    }

    pub(crate) fn restore_detail(&mut self, detail: Detail, place: Option<Place>) {
        match detail {
            Detail::Window(record) => self.restore_window(record, place),
            Detail::Share(record) => self.restore_share(record, place),
            Detail::Limit(record) => self.restore_limit(record, place),
            Detail::Batch(record) => self.restore_batch(record, place),
        }
    }

    pub(crate) fn restore_detail_gone(&mut self, kind: DetailKind, number: u64) {
        let place = self.details(kind).unrestore(number);
        self.report.give_up(place);
    }

    /// Reports a detail again if its record is still at `place`.
    pub(crate) fn rewrite_detail(&mut self, kind: DetailKind, number: u64, place: Place) {
        let details = self.details(kind);
        if details.place_of(number).is_some_and(|at| *at == Some(place))
            && let Some(detail) = details.detail(number)
        {
            self.report.add(Change::detail(detail));
        }
    }
}
