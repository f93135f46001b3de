//! Cuts of a journal that runs: what belongs to them, when they are handed out, and how long their
//! segments are kept.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Command, Put};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::raw::{self, RawCommit};
use pinpriq_store::journal::{Expected, Keep, Purpose, ShardCut, Tap};
use pinpriq_store::shards::first_number;
use pinpriq_store::{
    Disk, Durable, Fold, Journal, JournalOptions, Level, Reclaims, Room, Runner, Store, TaskCounts,
    Urgency,
};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{FaultyDisk, Operation, Repeat};
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{GUARD, SEGMENT_BYTES, journal, options, random_batch};

/// A journal that others can copy.
pub(crate) struct Tapped {
    pub(crate) disk: FaultyDisk,
    pub(crate) tap: Arc<Tap>,
    pub(crate) caller: Caller<Journal>,
    /// How often the tap has woken the shard.
    woken: Arc<AtomicU64>,
}

impl Tapped {
    pub(crate) fn start(seed: u64) -> Self {
        Self::start_with(&FaultyDisk::new(seed), options(seed), Runner::Inline)
    }

    /// One of several shards.
    pub(crate) fn start_shard(shard: usize, shards: usize) -> Self {
        let narrow = |count: usize| u32::try_from(count).unwrap();
        let (number, shards) = (narrow(shard), narrow(shards));
        let expected = Expected { directory: Some(7), shard: number, shards, served: 0 };
        let number_after = first_number(shard);
        Self::start_as(&FaultyDisk::new(1), options(1), Runner::Inline, |journal, _| {
            journal.expecting(expected).numbering_after(number_after)
        })
    }

    pub(crate) fn start_with(disk: &FaultyDisk, options: JournalOptions, runner: Runner) -> Self {
        Self::start_as(disk, options, runner, |journal, _| journal)
    }

    /// Starts and keeps every segment that there is.
    pub(crate) fn start_keeping(disk: &FaultyDisk, options: JournalOptions) -> (Self, Keep) {
        let mut keep = None;
        let tapped = Self::start_as(disk, options, Runner::Inline, |journal, tap| {
            keep = Some(tap.keep_all());
            journal
        });
        (tapped, keep.unwrap())
    }

    fn start_as(
        disk: &FaultyDisk,
        options: JournalOptions,
        runner: Runner,
        change: impl FnOnce(Journal, &Arc<Tap>) -> Journal,
    ) -> Self {
        let woken = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&woken);
        let wake = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let tap = Arc::new(Tap::new(wake));
        let seen: Arc<dyn Disk> = Arc::new(disk.clone());
        let journal = Journal::open(seen, options, runner).unwrap().tapped_by(Arc::clone(&tap));
        let caller = Caller::start(Box::new(change(journal, &tap))).unwrap();
        Self { disk: disk.clone(), tap, caller, woken }
    }

    /// Asks for a cut and gets it.
    pub(crate) fn cut(&mut self) -> ShardCut {
        self.cut_for(Purpose::Reading)
    }

    pub(crate) fn cut_for(&mut self, purpose: Purpose) -> ShardCut {
        let asked = self.tap.ask(purpose);
        assert!(self.tap.has_request());
        self.caller.store.note_cuts(self.caller.header.now).unwrap();
        assert!(!self.tap.has_request());
        self.caller.store.finish(self.caller.header.now).unwrap();
        asked.wait(GUARD).unwrap()
    }

    /// Appends random batches, one each millisecond, and calls `each` after every one.
    pub(crate) fn work(&mut self, dice: &mut Dice, rounds: u64, each: &mut dyn FnMut(&Self)) {
        for _ in 0..rounds {
            self.pass(1);
            let changes = random_batch(&self.caller, dice);
            self.caller.append(&changes, Urgency::Soon).unwrap();
            each(self);
            self.caller.turn().unwrap();
        }
    }

    /// Puts a task and removes the one before it, over and over.
    pub(crate) fn churn(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.pass(1);
            let number = self.caller.header.last_number + 1;
            let changes = [sample_task(number, "churn", 600), Change::Gone(number - 1)];
            self.caller.append(&changes, Urgency::Soon).unwrap();
            self.caller.turn().unwrap();
        }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.caller.header.now = self.caller.header.now.after(Span::from_ms(ms));
    }

    pub(crate) fn room(&mut self) -> Room {
        let present = self.caller.fold.tasks.len() as u64;
        self.caller.store.room(&|| TaskCounts { present, taken: 0 })
    }

    /// The segments of a cut as they are now. Panics if one is gone.
    pub(crate) fn segments(&self, cut: &ShardCut) -> Vec<Vec<u8>> {
        let files = self.disk.files();
        let bytes = cut.segments.iter().map(|segment| {
            let end = usize::try_from(segment.bytes).unwrap();
            files[&name(segment.number)][..end].to_vec()
        });
        bytes.collect()
    }

    pub(crate) fn has_segment(&self, number: u32) -> bool {
        self.disk.files().contains_key(&name(number))
    }

    pub(crate) fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }
}

pub(crate) fn name(number: u32) -> String {
    format!("segment-{number:010}.log")
}

/// The commits in these segments.
pub(crate) fn commits(segments: &[Vec<u8>]) -> Vec<RawCommit> {
    let mut found = Vec::new();
    for bytes in segments {
        let walk = raw::walk_each("a segment", bytes, &mut |commit| found.push(*commit)).unwrap();
        assert_eq!((walk.end, walk.last), (bytes.len(), found.last().copied()));
    }
    found
}

#[test]
fn a_cut_holds_every_commit_up_to_its_moment_and_no_later_one_has_it() {
    for level in [Level::Sync, Level::Interval] {
        let disk = FaultyDisk::new(1);
        let mut tapped =
            Tapped::start_with(&disk, JournalOptions { level, ..options(1) }, Runner::Inline);
        let mut dice = Dice::new(1);
        // Keeps everything, so that the last cut begins with the first segment.
        let first = tapped.cut();
        let mut cuts = Vec::new();
        for _ in 0..60 {
            for _ in 0..dice.below(8) {
                let changes = random_batch(&tapped.caller, &mut dice);
                tapped.caller.append(&changes, Urgency::Soon).unwrap();
                tapped.caller.turn().unwrap();
                tapped.pass(dice.below(2));
            }
            let cut = tapped.cut();
            let segments = tapped.segments(&cut);
            let last = commits(&segments).last().copied().unwrap();
            let answered = cut.at.after(Span::from_ms(1));
            assert!(last.now <= answered && cut.since <= answered);
            assert_eq!(answered, tapped.caller.header.now, "it covers all before its moment");
            assert_eq!(cut.segments[0].number, first.segments[0].number);
            cuts.push((cut.at, last.lsn));
        }
        let cut = tapped.cut();
        assert!(cut.segments.len() > 3, "{:?}", cut.segments);
        let all = commits(&tapped.segments(&cut));
        assert!(all.is_sorted_by(|one, other| one.lsn + 1 == other.lsn && one.now <= other.now));
        for (at, lsn) in cuts {
            for commit in &all {
                let is_in_it = commit.lsn <= lsn;
                assert!(is_in_it || commit.now > at, "{commit:?}, cut {lsn} at {at}");
                // Only what came in the millisecond of the answer may be in the files, and later.
                let answered = at.after(Span::from_ms(1));
                assert!(!is_in_it || commit.now <= answered, "{commit:?}, cut {lsn} at {at}");
            }
        }
    }
}

#[test]
fn a_cut_waits_until_all_of_it_is_durable() {
    for level in [Level::Sync, Level::Interval] {
        let (disk, open) = (FaultyDisk::new(1), Arc::new(AtomicBool::new(true)));
        let runner = Runner::Gated { open: Arc::clone(&open) };
        let mut tapped = Tapped::start_with(&disk, JournalOptions { level, ..options(1) }, runner);
        open.store(false, Ordering::Relaxed);
        let put = |tapped: &mut Tapped, number: u64| {
            tapped.caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
            tapped.caller.turn().unwrap();
        };
        put(&mut tapped, 1);
        let ask = || tapped.tap.ask(Purpose::Reading);
        let (early, in_time) = (ask(), ask());
        tapped.caller.store.note_cuts(tapped.caller.header.now).unwrap();
        // What comes later is no part of it, and it is not waited for.
        put(&mut tapped, 2);
        assert!(early.wait(Duration::ZERO).is_none(), "nothing is durable yet");
        open.store(true, Ordering::Relaxed);
        tapped.pass(60);
        for _ in 0..6 {
            tapped.caller.turn().unwrap();
        }
        let cut = in_time.wait(GUARD).unwrap();
        let commits = commits(&tapped.segments(&cut));
        assert_eq!(commits.last().map(|commit| commit.last_number), Some(1));
    }
}

#[test]
fn an_idle_journal_answers_at_once() {
    let mut tapped = Tapped::start(1);
    tapped.churn(3);
    tapped.caller.settle().unwrap();
    let writes = tapped.disk.count(Operation::Write);
    let woken = tapped.woken();
    let asked = tapped.tap.ask(Purpose::Reading);
    assert_eq!(tapped.woken(), woken + 1);
    tapped.caller.store.note_cuts(tapped.caller.header.now).unwrap();
    let cut = asked.wait(Duration::ZERO).unwrap();
    assert_eq!(tapped.disk.count(Operation::Write), writes);
    let last = commits(&tapped.segments(&cut)).last().map(|commit| commit.last_number);
    assert_eq!(last, Some(tapped.caller.header.last_number));
}

#[test]
fn a_kept_segment_stays_as_it_is_while_the_log_is_compacted_and_goes_afterwards() {
    let mut tapped = Tapped::start(1);
    tapped.churn(100);
    let cut = tapped.cut();
    let (first, segments) = (cut.segments[0].number, tapped.segments(&cut));
    tapped.churn(600);
    // It does not go round in circles because of what is kept.
    tapped.caller.settle().unwrap();
    assert!(tapped.caller.store.figures().segments < 5, "the log itself is short");
    assert!(tapped.segments(&cut) == segments, "kept bytes were changed");
    // A later cut begins where the one before it does, as long as that is kept.
    let later = tapped.cut();
    let whole = cut.segments.len() - 1;
    assert_eq!(later.segments[..whole], cut.segments[..whole]);
    assert_eq!(later.since, cut.since);
    assert!(commits(&tapped.segments(&later)).len() > 600);
    let woken = tapped.woken();
    drop(cut);
    tapped.caller.settle().unwrap();
    assert!(tapped.has_segment(first), "the later one keeps it too");
    assert!(!later.keep.is_lost());
    drop(later);
    assert_eq!(tapped.woken(), woken + 2);
    tapped.caller.settle().unwrap();
    assert!(!tapped.has_segment(first));
    tapped.churn(100);
    let cut = tapped.cut();
    assert!(cut.segments.len() < 6, "{:?}", cut.segments);
    assert!(cut.since > Timestamp::from_ms(600), "segments have gone until then");
}

#[test]
fn the_latest_common_moment_is_one_for_which_all_shards_have_everything() {
    let mut shards = [Tapped::start(1), Tapped::start(2)];
    shards[1].pass(10);
    shards[1].churn(3);
    let cuts: Vec<ShardCut> = shards.iter_mut().map(Tapped::cut).collect();
    assert!(cuts[0].at < cuts[1].at);
    assert_eq!(ShardCut::common_moment(&cuts), Some(cuts[0].at));
    assert_eq!(ShardCut::common_moment(&[]), None);
    // The second shard puts segments away that the moment of the first would need.
    drop(cuts);
    let early = shards[0].cut();
    shards[1].churn(300);
    let mut cuts = vec![early, shards[1].cut()];
    assert_eq!(ShardCut::common_moment(&cuts), None);
    shards[0].pass(400);
    cuts[0] = shards[0].cut();
    assert_eq!(ShardCut::common_moment(&cuts), Some(cuts[0].at.min(cuts[1].at)));
}

#[test]
fn keeps_are_lost_before_anything_is_refused_for_lack_of_room() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(16 * u64::from(SEGMENT_BYTES));
    let mut tapped = Tapped::start_with(&disk, options(1), Runner::Inline);
    // With so many tasks a spare that is missing on a full disk would be felt.
    let tasks: Vec<Change> = (1..=100).map(|number| sample_task(number, "q", 50)).collect();
    tapped.caller.append(&tasks, Urgency::Soon).unwrap();
    tapped.churn(50);
    let cut = tapped.cut();
    let asked = tapped.tap.ask(Purpose::Reading);
    tapped.caller.store.note_cuts(tapped.caller.header.now).unwrap();
    let mut rounds = 0;
    while !cut.keep.is_lost() {
        tapped.churn(1);
        assert_eq!(tapped.room(), Room::Enough, "round {rounds}");
        rounds += 1;
        assert!(rounds < 2_000, "the disk is never full");
    }
    assert!(rounds > 60, "they were kept as long as there was room, for {rounds} rounds");
    assert!(asked.wait(GUARD).unwrap().keep.is_lost());
    for _ in 0..200 {
        tapped.churn(1);
        assert_eq!(tapped.room(), Room::Enough);
    }
    assert!(!tapped.has_segment(cut.segments[0].number));
    tapped.caller.store.finish(tapped.caller.header.now).unwrap();
    let fold = tapped.caller.fold.clone();
    drop(tapped);
    assert_eq!(Tapped::start_with(&disk, options(2), Runner::Inline).caller.fold, fold);
}

#[test]
fn on_a_full_disk_nothing_is_kept_that_can_be_put_away() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(8 * u64::from(SEGMENT_BYTES));
    let mut tapped = Tapped::start_with(&disk, options(1), Runner::Inline);
    let mut number = 0;
    while tapped.room() == Room::Enough {
        number += 1;
        tapped.caller.append(&[sample_task(number, "q", 200)], Urgency::Soon).unwrap();
        tapped.pass(1);
        tapped.caller.turn().unwrap();
        assert!(number < 10_000, "the disk is never full");
    }
    let cut = tapped.cut();
    assert!(!cut.keep.is_lost());
    tapped.caller.append(&[Change::Emptied(b"q".as_slice().into())], Urgency::Soon).unwrap();
    tapped.caller.settle().unwrap();
    for _ in 0..5 {
        tapped.pass(1_000);
        tapped.caller.settle().unwrap();
    }
    assert!(cut.keep.is_lost());
    assert_eq!(tapped.room(), Room::Enough);
}

#[test]
fn when_the_journal_ends_nobody_waits_and_nothing_is_kept() {
    for fails in [false, true] {
        let mut tapped = Tapped::start(1);
        let cut = tapped.cut();
        tapped.caller.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
        let noted = tapped.tap.ask(Purpose::Reading);
        tapped.caller.store.note_cuts(tapped.caller.header.now).unwrap();
        let asked = tapped.tap.ask(Purpose::Archiving);
        let tap = Arc::clone(&tapped.tap);
        if fails {
            tapped.disk.fail(Operation::Sync, 1, Repeat::Once, ErrorKind::Other);
            assert!(tapped.caller.turn().is_err());
        } else {
            drop(tapped);
        }
        for waiting in [noted, asked, tap.ask(Purpose::Reading)] {
            assert!(waiting.wait(GUARD).is_none());
        }
        assert!(cut.keep.is_lost() && !tap.has_request());
        assert!(tap.keep_all().is_lost(), "there is nothing to keep any more");
    }
}

#[test]
fn only_so_many_cuts_are_kept_at_a_time() {
    let mut tapped = Tapped::start(1);
    let mut cuts: Vec<ShardCut> = (0..16).map(|_| tapped.cut()).collect();
    assert!(tapped.tap.ask(Purpose::Reading).wait(GUARD).is_none());
    drop(tapped.cut_for(Purpose::Archiving));
    cuts.pop();
    cuts.push(tapped.cut());
}

/// Nobody waits any more for those that were not answered, as long as the shard was busy.
#[test]
fn of_those_who_ask_for_the_archive_the_last_are_answered() {
    let mut tapped = Tapped::start(1);
    let reading = tapped.tap.ask(Purpose::Reading);
    let before: Vec<_> = (0..40).map(|_| tapped.tap.ask(Purpose::Archiving)).collect();
    let last = tapped.cut_for(Purpose::Archiving);
    assert!(!last.segments.is_empty());
    let answered = before.into_iter().map(|asked| asked.wait(GUARD).is_some());
    let expected = (0..40).map(|index| index >= 25);
    assert!(answered.eq(expected), "those of which too many came later are forgotten");
    assert!(reading.wait(GUARD).is_some());
}

#[test]
fn what_was_applied_belongs_to_a_cut() {
    let disk = FaultyDisk::new(1);
    let tap = Arc::new(Tap::new(|| ()));
    let seen: Arc<dyn Disk> = Arc::new(disk.clone());
    let store = Journal::open(seen, options(1), Runner::Inline).unwrap();
    let store = Box::new(store.tapped_by(Arc::clone(&tap)));
    let start = Timestamp::from_ms(1 << 40);
    let (mut durable, _) = Durable::open(store, Limits::default(), start, 1).unwrap();
    for step in 1..=3 {
        // The clock stands still, which is when the moments of commits could be the same.
        let put = Command::Put(Put::new(b"jobs", b"payload"));
        durable.apply(start, ClientId(1), RequestId(1), &put);
        let asked = tap.ask(Purpose::Reading);
        durable.answer_cuts(start).unwrap();
        durable.drive(start).unwrap();
        let cut = asked.wait(GUARD).unwrap();
        assert_eq!(cut.at.after(Span::from_ms(1)), start);
        let end = cut.segments[0];
        let bytes = disk.files()[&name(end.number)][..usize::try_from(end.bytes).unwrap()].to_vec();
        let found = commits(&[bytes]);
        assert_eq!(found.last().map(|commit| commit.last_number), Some(step));
        assert!(found.iter().all(|commit| commit.now <= start));
    }
    durable.answer_cuts(start).unwrap();
    durable.finish(start).unwrap();
    drop(durable);
    let (mut journal, mut fold) = (journal(&disk, options(2)).unwrap(), Fold::new());
    journal.load(&mut |change, place| fold.apply(&change, place, &mut Vec::new())).unwrap();
    assert_eq!(fold.tasks.len(), 3);
}
