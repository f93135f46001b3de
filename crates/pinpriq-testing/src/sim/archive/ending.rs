//! What is archived when nothing more happens: the rest after an orderly stop, and everything at
//! the end of a run, when there is no more trouble.
//!
//! What must be there then is compared in `restores`.

use pinpriq_proto::time::Span;
use pinpriq_store::journal::raw::at_rest;
use pinpriq_store::store::INTERVAL_MS;

use crate::sim::archive::{Archive, Became};
use crate::sim::world::World;

/// How many cuts it may take until everything is there.
const CUTS_MAX: u32 = 12;

impl World {
    /// Archives what the journal has, which has ended in order. That need not succeed.
    pub(crate) fn archive_the_rest(&mut self) {
        if !self.can_archive() {
            return;
        }
        let rest = match at_rest(&self.disk) {
            Ok(Some(rest)) => rest,
            Ok(None) => panic!("a journal that has ended has no commit"),
            Err(_) if self.disk.has_stopped() => return,
            Err(error) => panic!("a journal that has ended cannot be listed: {error}"),
        };
        let last = self.archive.as_ref().and_then(Archive::last);
        let (mut at, mut segments) = (rest.at, rest.segments);
        if let Some(last) = last {
            at = at.max(last.at);
            segments.retain(|segment| segment.number >= last.first);
        }
        let Some(mut copied) = self.copy_cut(at, segments) else { return };
        self.learn_moments(&copied);
        let Some(archive) = &mut self.archive else { return };
        let became = archive.offer(&mut copied, false, &mut self.counts);
        self.oracle.borrow().trail.note(|| format!("the rest is offered: {}", became.text()));
    }

    /// Archives everything without any trouble, and checks that all is there.
    pub(crate) fn finish_archive(&mut self) {
        let Some(archive) = &mut self.archive else { return };
        archive.calm_down();
        let mut cuts = 1;
        while !self.archive_now() {
            cuts += 1;
            assert!(cuts <= CUTS_MAX, "the archive never has everything");
        }
        self.check_archive();
    }

    /// Archives a cut of now. Returns whether the archive has it.
    fn archive_now(&mut self) -> bool {
        self.ask_for_cut();
        // The shard answers when its last changes are synced, which may take this long.
        self.clocks.advance(Span::from_ms(2 * INTERVAL_MS));
        self.tick();
        self.settle();
        let round = self.rounds;
        if let Some(archive) = &mut self.archive {
            archive.hear(round, &mut self.counts);
        }
        matches!(self.send_cut(false), Some(Became::Archived | Became::Nothing))
    }
}
