//! Restores moments of the archive, and compares them with what there was.
//!
//! Whoever restores has no trouble with the place. A directory is restored into a real folder, in
//! memory where the system has such a file system, since a restore writes no other.

use std::path::Path;
use std::sync::Arc;

use pinpriq_archive::memory::MemoryPlace;
use pinpriq_archive::{
    ArchiveError, Catalogue, Choice, LineSummary, Order, Range, Restored, Until, restore, verify,
};
use pinpriq_proto::change::Header;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::JournalOptions;
use pinpriq_store::journal::Contents;
use pinpriq_store::reshard::{Held, read_directory};
use pinpriq_store::restore::Wishes;
use tempfile::TempDir;

use crate::sim::archive::{Archive, end_of};
use crate::sim::book::{are_same, difference};
use crate::sim::faults::Kind;
use crate::sim::world::World;

/// A file system in memory, where there is one.
const IN_MEMORY: &str = "/dev/shm";

/// How many moments are compared at the end, besides the newest.
const AT_THE_END: u32 = 2;

impl World {
    /// Checks that everything in the archive is whole, and some of its moments.
    pub(super) fn check_archive(&mut self) {
        let Some(archive) = &self.archive else { return };
        match verify(archive.place.objects(), &mut |_| {}) {
            Ok(found) => assert!(found.faults.is_empty(), "the archive has {:?}", found.faults),
            Err(error) => panic!("the archive cannot be verified: {error}"),
        }
        self.compare_moment(true);
        for _ in 0..AT_THE_END {
            self.compare_moment(false);
        }
    }

    /// Restores the newest moment of the archive, or any, and compares it with what there was.
    pub(super) fn compare_moment(&mut self, is_newest: bool) {
        let (now, last_incarnation) = (self.clocks.wall(), self.last_incarnation);
        let segment_bytes = u32::try_from(self.knobs.segment_bytes).unwrap_or(u32::MAX);
        let Some(archive) = &mut self.archive else { return };
        let oracle = &mut *self.oracle.borrow_mut();
        let Some(chronicle) = &mut oracle.chronicle else { return };
        let remote = Arc::clone(&archive.place);
        let place = remote.objects();
        let mut catalogue = match Catalogue::read(place) {
            Ok(catalogue) => catalogue,
            Err(ArchiveError::Empty { .. }) => return,
            Err(error) => panic!("what is archived cannot be listed: {error}"),
        };
        let line = line_of(&mut catalogue);
        let first = chronicle.first_moment().unwrap_or(Timestamp::MAX);
        let of_commits = line.ranges.iter().filter(|range| range.to >= first).count();
        let is_whole = of_commits <= 1 || archive.may_have_gap;
        assert!(is_whole, "moments are missing in the archive: {:?}", line.ranges);
        let earliest = line.ranges.iter().map(|range| range.from).min();
        if let Some(earliest) = earliest.filter(|_| !remote.awaits_late()) {
            chronicle.forget_before(earliest);
        }
        let until = if is_newest {
            Until::Latest
        } else {
            archive.choose_moment(&line.ranges, &chronicle.moments())
        };
        let choice = match catalogue.choose(Some(line.line), until) {
            Ok(choice) => choice,
            Err(error) => panic!("there is nothing to restore for {until:?}: {error}"),
        };
        let count = archive.commits_of(&choice);
        let salt_seed = archive.dice.roll();
        let announces = archive.dice.chance(30);
        let journal = JournalOptions { segment_bytes, salt_seed, ..JournalOptions::default() };
        let (restored, contents) = restore_to_folder(place, &choice, journal, (now, announces));
        assert_eq!((restored.at, restored.from), (choice.until, line.line), "it is as chosen");
        assert_eq!(restored.unannounced, None, "the place allows it");
        oracle.trail.note(|| format!("{} of mark {} is restored", restored.at, restored.mark));
        let expected = chronicle.state(count, restored.at);
        let found = contents.fold.without_places();
        assert!(
            are_same(&expected, &found),
            "{} of mark {} is restored otherwise than it was: {}",
            restored.at,
            restored.mark,
            difference(&expected, &found)
        );
        if announces {
            let highest = chronicle.highest();
            let incarnation = highest.incarnation.max(last_incarnation);
            expect_beyond(&contents.header, &Header { incarnation, ..highest });
        }
        self.counts.note(Kind::Restored);
    }
}

impl Archive {
    /// Chooses a moment that the archive has, mostly that of a commit or the one before it.
    fn choose_moment(&mut self, ranges: &[Range], moments: &[Timestamp]) -> Until {
        if !moments.is_empty() {
            let moment = self.dice.pick(moments).ms().saturating_sub(self.dice.below(2));
            let moment = Timestamp::from_ms(moment);
            if ranges.iter().any(|range| (range.from..=range.to).contains(&moment)) {
                return Until::At(moment);
            }
        }
        let range = self.dice.pick(ranges);
        Until::At(if self.dice.chance(50) { range.from } else { range.to })
    }

    /// How many of all commits belong to the cut of a mark.
    fn commits_of(&self, choice: &Choice) -> u64 {
        let known = end_of(&choice.mark).and_then(|end| self.ends.get(&end));
        let Some(commits) = known else {
            panic!("mark {} ends where no cut has ended", choice.mark.number)
        };
        *commits
    }
}

/// The line of the server. All others were restored from it, and have no marks.
fn line_of(catalogue: &mut Catalogue<'_>) -> LineSummary {
    let lines = match catalogue.lines() {
        Ok(lines) => lines,
        Err(error) => panic!("the lines of the archive cannot be listed: {error}"),
    };
    assert!(catalogue.damage().is_empty(), "the archive has damage: {:?}", catalogue.damage());
    let mut with_marks = lines.into_iter().filter(|line| line.newest_mark.is_some());
    match (with_marks.next(), with_marks.next()) {
        (Some(line), None) => line,
        (one, other) => panic!("one line has marks, and these do: {one:?}, {other:?}"),
    }
}

/// Restores into a folder of its own. Returns what was restored, and what the folder holds.
fn restore_to_folder(
    place: &MemoryPlace,
    choice: &Choice,
    journal: JournalOptions,
    (now, announces): (Timestamp, bool),
) -> (Restored, Contents) {
    let folder = folder();
    let data = folder.path().join("data");
    let order = Order { data: &data, journal, wishes: Wishes::default(), now, announces };
    let restored = match restore(place, choice, &order, &mut |_| {}) {
        Ok(restored) => restored,
        Err(error) => panic!("{} cannot be restored: {error}", choice.until),
    };
    (restored, contents_of(&data))
}

/// What the only shard of a data directory holds.
fn contents_of(data: &Path) -> Contents {
    let Held { mut contents, guards: _guards } = match read_directory(data) {
        Ok(held) => held,
        Err(error) => panic!("what was restored cannot be read: {error}"),
    };
    match contents.pop() {
        Some(only) if contents.is_empty() => only,
        _ => panic!("what was restored has another number of shards"),
    }
}

/// An empty folder.
fn folder() -> TempDir {
    let made = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir());
    match made {
        Ok(folder) => folder,
        Err(error) => panic!("there is no room for a folder: {error}"),
    }
}

/// Checks that a restored directory goes on beyond everything that was ever given.
fn expect_beyond(begins: &Header, given: &Header) {
    let is_beyond =
        begins.incarnation > given.incarnation && begins.last_number > given.last_number;
    assert!(is_beyond, "what was restored begins with {begins:?}, and {given:?} was given");
}
