//! The archive of the simulated server: a place that outlives every start and gets into trouble,
//! and the archiver of the product, which each server has anew.
//!
//! `rounds` does a little of it in each round of the world, `ending` what is left at an orderly
//! stop and at the end, and `restores` compares what the place has with the `chronicle`. One cut is
//! under way at a time, and nothing else happens before it has become something: so everything
//! follows from the seed, although the archiver sends on threads of its own. How a server keeps
//! time for its archive is not simulated: its own tests do that.

mod chronicle;
mod copied;
mod ending;
mod link;
mod place;
mod restores;
mod rounds;

use std::collections::BTreeMap;
use std::sync::Arc;

use pinpriq_archive::{ArchiveError, Mark, Offered, Source};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::{ShardCut, Tap};

use crate::Dice;
use crate::sim::bugs::Bug;
use crate::sim::faults::{Counts, Kind};
use crate::sim::knobs::Knobs;

pub(crate) use self::chronicle::Chronicle;
pub(crate) use self::copied::first_commit;

use self::copied::Copied;
use self::link::{Link, Step, Taken};
use self::place::{Remote, Removed, Trouble};

/// An answer is heard, and a cut is read, within this many rounds.
const ROUNDS_MAX: u64 = 6;

/// A place is out of reach for at most this many rounds.
const AWAY_ROUNDS_MAX: u64 = 80;

/// A server that is killed while it sends has created fewer objects than this.
const CREATES_MAX: u64 = 4;

/// How often in a row it may fail although the place has no trouble: somebody may have removed what
/// was there.
const UNEXPLAINED_MAX: u32 = 3;

/// The most moments that are restored before the end.
const RESTORES_MAX: u64 = 10;

/// By how many milliseconds a moment is too late, if that is the bug.
const TOO_LATE_MS: u64 = 40;

/// Where a cut ends: the number and the incarnation of its last segment, and the bytes in it.
type End = (u32, u64, u64);

/// The archive of a world; see the start of this file.
pub(crate) struct Archive {
    dice: Dice,
    bug: Option<Bug>,
    /// How many of a hundred cuts end with a kill.
    kills: u64,
    /// The most bytes that may stay on the disk for the archive alone.
    backlog_max: u64,
    place: Arc<Remote>,
    /// The server that archives, if one runs or starts.
    link: Option<Link>,
    /// How many commits belong to each cut that was read.
    ends: BTreeMap<End, u64>,
    /// The round in which the place is back.
    away_until: Option<u64>,
    /// How often it has failed in a row.
    failures: u32,
    /// How often of these without any trouble.
    unexplained: u32,
    /// How many moments were restored.
    restores: u64,
    /// Whether moments may be missing between those that are there.
    may_have_gap: bool,
    /// Whether somebody has removed something since the last mark.
    was_emptied: bool,
    /// Whether there is no more trouble.
    is_calm: bool,
}

/// What became of an offer.
enum Became {
    /// There is a mark for it.
    Archived,
    /// Nothing was new.
    Nothing,
    Failed(ArchiveError),
    /// The server was killed meanwhile.
    Killed,
}

impl Became {
    /// What is told of it.
    fn text(&self) -> String {
        match self {
            Self::Archived => "it is archived".to_owned(),
            Self::Nothing => "nothing is new".to_owned(),
            Self::Failed(error) => format!("it fails: {error}"),
            Self::Killed => "the server is killed".to_owned(),
        }
    }
}

impl Archive {
    pub(crate) fn new(knobs: &Knobs, bug: Option<Bug>) -> Self {
        let mut dice = Dice::new(knobs.seed ^ 0x6172_6368_6976_6573);
        let backlog: u64 = dice.pick(&[1, 6, 1 << 20]);
        let (seed, keeps_all) = (dice.roll(), dice.chance(25));
        Self {
            dice,
            bug,
            kills: knobs.archive_kills,
            backlog_max: backlog * knobs.segment_bytes,
            place: Arc::new(Remote::new(seed, knobs.archive_troubles, keeps_all)),
            link: None,
            ends: BTreeMap::new(),
            away_until: None,
            failures: 0,
            unexplained: 0,
            restores: 0,
            may_have_gap: false,
            was_emptied: false,
            is_calm: false,
        }
    }

    /// Begins with a server that is about to start. Returns the tap of its journal, which keeps
    /// everything. On a full disk a start may give up what was kept, also one that fails after it.
    pub(crate) fn connect(&mut self, is_full: bool) -> Arc<Tap> {
        self.link = None;
        self.may_have_gap |= is_full;
        self.place.revive();
        let mut link = Link::new(&self.place);
        if self.bug == Some(Bug::UnsentNotKept) {
            link.keep_nothing();
        }
        let tap = link.tap();
        self.link = Some(link);
        tap
    }

    /// Ends with a server that has served. `may_lose` says whether what is no longer kept may be
    /// gone: a journal that has failed keeps nothing, and removes nothing either.
    pub(crate) fn disconnect(&mut self, may_lose: bool) {
        if let Some(link) = self.link.take() {
            self.may_have_gap |= may_lose && link.is_lost();
        }
    }

    /// Whether the tap has woken the shard since the last call.
    fn was_woken(&self) -> bool {
        self.link.as_ref().is_some_and(Link::was_woken)
    }

    /// The first segment that stays on the disk for the archive, if any does.
    fn keeps_from(&self) -> Option<u32> {
        self.link.as_ref().and_then(Link::keeps_from)
    }

    /// Notes that files were given up that were not archived yet.
    fn note_losses(&mut self, counts: &mut Counts) {
        if self.link.as_mut().is_some_and(Link::has_lost) {
            self.note_gap(counts);
        }
    }

    fn note_gap(&mut self, counts: &mut Counts) {
        self.may_have_gap = true;
        counts.note(Kind::ArchiveGap);
    }

    /// Returns what is to be done in this round. Of a hundred rounds without a cut under way so
    /// many ask for one.
    fn step(&mut self, round: u64, percent: u64) -> Option<Step> {
        let (step, due) = self.link.as_ref()?.step();
        let is_due = if step == Step::Ask { self.dice.chance(percent) } else { due <= round };
        is_due.then_some(step)
    }

    /// Asks the shard for a cut.
    fn ask(&mut self, round: u64) {
        let due = round + self.dice.below(ROUNDS_MAX);
        if let Some(link) = &mut self.link {
            link.ask(due);
        }
    }

    /// Hears what the shard has answered, if it has.
    fn hear(&mut self, round: u64, counts: &mut Counts) {
        let due = round + self.dice.below(ROUNDS_MAX);
        if self.link.as_mut().is_some_and(|link| !link.hear(due, self.backlog_max)) {
            self.note_gap(counts);
        }
    }

    /// Takes the cut that is to be read.
    fn take_cut(&mut self) -> Option<ShardCut> {
        self.link.as_mut()?.take_cut()
    }

    /// The moment of a cut, as the archiver is told.
    fn moment_of(&self, cut: &ShardCut) -> Timestamp {
        let late = if self.bug == Some(Bug::MomentTooLate) { TOO_LATE_MS } else { 0 };
        cut.at.after(Span::from_ms(late))
    }

    /// The last cut that was read of this server.
    fn last(&self) -> Option<Taken> {
        self.link.as_ref()?.last
    }

    /// Notes a cut that was read, and how many of all commits belong to it.
    fn note_taken(&mut self, copied: &Copied, commits: u64) {
        let Some(end) = copied.end() else { panic!("a cut has no segments") };
        let known = *self.ends.entry(end).or_insert(commits);
        assert_eq!(known, commits, "a log that ends at {end:?} has the same commits as before");
        if let Some(link) = &mut self.link {
            link.last = Some(Taken { commits, at: copied.cut().at, first: copied.first() });
        }
    }

    /// Offers a cut, and waits until it has become something.
    fn offer(&mut self, copied: &mut Copied, may_kill: bool, counts: &mut Counts) -> Became {
        let Some(link) = &mut self.link else { panic!("nobody archives") };
        let kills = may_kill && self.dice.chance(self.kills);
        let life = kills.then(|| self.dice.below(CREATES_MAX));
        let looks = self.is_calm || self.dice.chance(if self.was_emptied { 30 } else { 10 });
        self.place.begin_offer(life);
        let looked = if looks { link.look() } else { Ok(true) };
        assert!(self.was_emptied || !matches!(looked, Ok(false)), "the newest mark is gone");
        let heard = looked.and_then(|_| link.offer(copied));
        link.wait_for_threads(&self.place);
        let trouble = self.place.end_offer();
        counts.add(Kind::ArchiveLate, self.place.take_late_arrivals());
        if self.place.is_dead() {
            counts.note(Kind::ArchiveKill);
            return Became::Killed;
        }
        match heard {
            Ok((Offered::Nothing, _)) => {
                (self.failures, self.unexplained) = (0, 0);
                Became::Nothing
            }
            Ok((Offered::Sending, concluded)) => {
                link.expect_mark(copied, &concluded);
                (self.failures, self.unexplained, self.was_emptied) = (0, 0, false);
                counts.note(Kind::Archived);
                Became::Archived
            }
            Err(error) => {
                self.note_failure(&error, trouble, counts);
                Became::Failed(error)
            }
        }
    }

    /// Notes that an offer has failed. Without trouble at the place that may not go on.
    fn note_failure(
        &mut self,
        error: &ArchiveError,
        trouble: Option<Trouble>,
        counts: &mut Counts,
    ) {
        assert!(!error.is_final(), "the server is turned away from its own archive: {error}");
        self.failures += 1;
        let Some(trouble) = trouble else {
            self.unexplained += 1;
            assert!(self.unexplained <= UNEXPLAINED_MAX, "the archive is stuck: {error}");
            return;
        };
        self.unexplained = 0;
        match trouble {
            Trouble::Away => counts.note(Kind::ArchiveAway),
            Trouble::Refused => counts.note(Kind::ArchiveRefused),
            Trouble::AnswerLost => counts.note(Kind::ArchiveAnswerLost),
            Trouble::Unread => counts.note(Kind::ArchiveUnread),
            // It was counted when it came.
            Trouble::Late => {}
        }
    }

    /// Lets go of a cut. What is archived need not stay on the disk.
    fn let_go(&mut self, cut: ShardCut, is_archived: bool) {
        if let Some(link) = &mut self.link {
            link.let_go(cut, is_archived);
        }
    }

    /// Lets trouble begin and end, at these rates in a thousand rounds. Returns whether somebody
    /// has removed something.
    fn meddle(&mut self, round: u64, outages: u64, removals: u64) -> bool {
        if self.away_until.is_some_and(|until| until <= round) {
            self.away_until = None;
            self.place.set_away(false);
        }
        let roll = self.dice.below(1_000);
        if roll < outages {
            self.away_until = Some(round + 1 + self.dice.below(AWAY_ROUNDS_MAX));
            self.place.set_away(true);
        }
        (outages..outages + removals).contains(&roll) && self.remove_by_hand()
    }

    fn remove_by_hand(&mut self) -> bool {
        let what = self.dice.pick(&[Removed::Everything, Removed::Marks, Removed::NewestMark]);
        if !self.place.remove_by_hand(what) {
            return false;
        }
        self.was_emptied = true;
        // Where all marks are gone, the next one is the first.
        self.may_have_gap = what == Removed::NewestMark;
        true
    }

    /// Ends all trouble.
    fn calm_down(&mut self) {
        self.place.heal();
        (self.is_calm, self.away_until) = (true, None);
    }

    /// Whether a moment is to be restored now.
    fn wants_comparison(&mut self) -> bool {
        let wants = self.restores < RESTORES_MAX && self.dice.once_in(8);
        self.restores += u64::from(wants);
        wants
    }
}

/// Where what a mark has ends.
fn end_of(mark: &Mark) -> Option<End> {
    let last = mark.shards.first()?.parts.last()?;
    Some((last.number, last.incarnation, last.bytes))
}
