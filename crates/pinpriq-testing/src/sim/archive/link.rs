//! One server's end of the archive: the tap of its journal, the cut that is under way, and of the
//! product the archiver and what decides which files stay.
//!
//! It ends with the server. When something is done, and what goes wrong at the place, is decided
//! elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{mem, slice, thread};

use pinpriq_archive::{ArchiveError, Archiver, Concluded, Offered, Source};
use pinpriq_proto::time::Timestamp;
use pinpriq_server::parts::{Kept, needs_of};
use pinpriq_store::journal::{Asked, Purpose, ShardCut, Tap};

use crate::sim::archive::copied::Copied;
use crate::sim::archive::end_of;
use crate::sim::archive::place::Remote;

/// How long it waits at a time for what is under way.
const PATIENCE: Duration = Duration::from_secs(1);

/// What one server has to do with the archive.
pub(super) struct Link {
    tap: Arc<Tap>,
    /// Whether the tap has woken the shard.
    is_woken: Arc<AtomicBool>,
    kept: Kept,
    archiver: Archiver,
    /// How many hold the place while no thread of the archiver does.
    handles: usize,
    stage: Stage,
    /// The round in which there is something to do.
    due: u64,
    /// A cut of which no moment has everything. It is kept until the next one is there.
    former: Option<ShardCut>,
    /// The last cut that was read.
    pub(super) last: Option<Taken>,
    tokens: u64,
    is_loss_noted: bool,
}

/// How far the next cut is.
enum Stage {
    Rest,
    Asked(Asked),
    Answered(ShardCut),
}

/// What is to be done for a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Ask,
    Hear,
    Send,
}

/// A cut that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// How many of all commits belong to it.
    pub(super) commits: u64,
    pub(super) at: Timestamp,
    /// Its first segment.
    pub(super) first: u32,
}

impl Link {
    /// That of a server which is about to start. It keeps everything that it finds.
    pub(super) fn new(place: &Arc<Remote>) -> Self {
        let is_woken = Arc::new(AtomicBool::new(false));
        let woken = Arc::clone(&is_woken);
        let tap = Arc::new(Tap::new(move || woken.store(true, Ordering::Relaxed)));
        let kept = Kept::new(vec![tap.keep_all()]);
        let its_place = Arc::clone(place);
        let archiver = Archiver::new(its_place);
        Self {
            tap,
            is_woken,
            kept,
            archiver,
            handles: Arc::strong_count(place),
            stage: Stage::Rest,
            due: 0,
            former: None,
            last: None,
            tokens: 0,
            is_loss_noted: false,
        }
    }

    /// The tap of the journal.
    pub(super) fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.tap)
    }

    /// Keeps nothing, as a bug would.
    pub(super) fn keep_nothing(&mut self) {
        self.kept.narrow(&[(u32::MAX, Timestamp::ZERO)], Timestamp::ZERO);
    }

    /// The first segment that stays on the disk for the archive, if any does.
    pub(super) fn keeps_from(&self) -> Option<u32> {
        let answered = match &self.stage {
            Stage::Answered(cut) => Some(cut),
            Stage::Rest | Stage::Asked(_) => None,
        };
        let cuts = answered.into_iter().chain(&self.former);
        let cuts = cuts.filter(|cut| !cut.keep.is_lost());
        let firsts = cuts.filter_map(|cut| cut.segments.first());
        firsts.map(|segment| segment.number).chain(self.kept.keeps_from(0)).min()
    }

    /// Whether the shard has given up files that were not archived yet.
    pub(super) fn is_lost(&self) -> bool {
        self.kept.is_lost()
    }

    /// Whether it has done so since the last call.
    pub(super) fn has_lost(&mut self) -> bool {
        let was_noted = mem::replace(&mut self.is_loss_noted, self.kept.is_lost());
        self.is_loss_noted && !was_noted
    }

    /// Whether the tap has woken the shard since the last call.
    pub(super) fn was_woken(&self) -> bool {
        self.is_woken.swap(false, Ordering::Relaxed)
    }

    /// What is to be done next, and in which round. It may be asked at any time.
    pub(super) const fn step(&self) -> (Step, u64) {
        match self.stage {
            Stage::Rest => (Step::Ask, 0),
            Stage::Asked(_) => (Step::Hear, self.due),
            Stage::Answered(_) => (Step::Send, self.due),
        }
    }

    /// Asks the shard for a cut, and hears of it in the round `due`.
    pub(super) fn ask(&mut self, due: u64) {
        let asked = self.tap.ask(Purpose::Archiving);
        (self.stage, self.due) = (Stage::Asked(asked), due);
    }

    /// Hears what the shard has answered, if it has, and reads it in the round `due`. Returns false
    /// if more than `most` bytes stay for the archive alone: then they do no longer, and the next
    /// cut has what is left.
    pub(super) fn hear(&mut self, due: u64, most: u64) -> bool {
        let Stage::Asked(asked) = mem::replace(&mut self.stage, Stage::Rest) else { return true };
        let Some(cut) = asked.wait(Duration::ZERO) else { return true };
        drop(self.former.take());
        if ShardCut::common_moment(slice::from_ref(&cut)).is_none() {
            self.former = Some(cut);
            return true;
        }
        if self.kept.drop_backlog(slice::from_ref(&cut), most).is_some() {
            return false;
        }
        (self.stage, self.due) = (Stage::Answered(cut), due);
        true
    }

    /// Takes the cut that is to be read.
    pub(super) fn take_cut(&mut self) -> Option<ShardCut> {
        match mem::replace(&mut self.stage, Stage::Rest) {
            Stage::Answered(cut) => Some(cut),
            Stage::Rest | Stage::Asked(_) => None,
        }
    }

    /// Lets go of a cut. What is archived need not stay on the disk.
    pub(super) fn let_go(&mut self, cut: ShardCut, is_archived: bool) {
        let (needs, at) = (needs_of(slice::from_ref(&cut)), cut.at);
        self.kept.take_over(vec![cut]);
        if is_archived {
            self.kept.narrow(&needs, at);
        }
    }

    /// Looks whether the newest mark is still there.
    pub(super) fn look(&mut self) -> Result<bool, ArchiveError> {
        self.archiver.look()
    }

    /// Offers a cut, and hears all that comes of it.
    pub(super) fn offer(
        &mut self,
        copied: &mut Copied,
    ) -> Result<(Offered, Vec<Concluded>), ArchiveError> {
        self.tokens += 1;
        let offered = self.archiver.offer(copied, self.tokens)?;
        let mut concluded = Vec::new();
        while self.archiver.under_way() > 0 {
            concluded.extend(self.archiver.concluded(PATIENCE)?);
        }
        loop {
            // A failure is told after the marks that came before it.
            let more = self.archiver.concluded(Duration::ZERO)?;
            if more.is_empty() {
                return Ok((offered, concluded));
            }
            concluded.extend(more);
        }
    }

    /// Waits until no thread of the archiver is left: some go on after their mark is there. Each
    /// has a handle of the place.
    pub(super) fn wait_for_threads(&self, place: &Arc<Remote>) {
        while Arc::strong_count(place) > self.handles {
            thread::yield_now();
        }
    }

    /// Checks that one mark came of a cut, and has all of it.
    pub(super) fn expect_mark(&self, copied: &Copied, concluded: &[Concluded]) {
        let [done] = concluded else { panic!("of one cut came {concluded:?}") };
        assert_eq!((done.token, done.at), (self.tokens, copied.cut().at), "it is of the cut");
        let newest = self.archiver.newest().map(|mark| (mark.at(), end_of(mark)));
        assert_eq!(newest, Some((done.at, copied.end())), "the newest mark has the whole cut");
    }
}
