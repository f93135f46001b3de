//! What is done for the archive in a round of the world: a cut is asked for, heard of, or read and
//! sent, and something may get into trouble.
//!
//! Each is a step of its own, with rounds in between, so that the journal goes on meanwhile and
//! whatever breaks breaks between them too.

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::SegmentEnd;

use crate::faulty_disk::CrashPolicy;
use crate::sim::archive::copied::Copied;
use crate::sim::archive::link::Step;
use crate::sim::archive::{Archive, Became};
use crate::sim::faults::Kind;
use crate::sim::world::World;

/// How long a server waits after a failure, at least: time that stood still would have the same
/// obstacle.
const WAIT: Span = Span::from_ms(2);

impl World {
    /// Does a little for the archive, if there is one and the server runs.
    pub(crate) fn archive_a_little(&mut self) {
        if !self.can_archive() {
            return;
        }
        let (outages, removals) = (self.knobs.archive_outages, self.knobs.archive_removals);
        let (percent, round) = (self.knobs.archive, self.rounds);
        let Some(archive) = &mut self.archive else { return };
        if archive.meddle(round, outages, removals) {
            self.counts.note(Kind::ArchiveRemoval);
        }
        self.hear_tap();
        let Some(archive) = &mut self.archive else { return };
        archive.note_losses(&mut self.counts);
        match archive.step(round, percent) {
            None => {}
            Some(Step::Ask) => self.ask_for_cut(),
            Some(Step::Hear) => archive.hear(round, &mut self.counts),
            Some(Step::Send) => match self.send_cut(true) {
                Some(Became::Killed) => self.die_while_archiving(),
                Some(Became::Archived) => self.maybe_compare(),
                Some(Became::Nothing | Became::Failed(_)) | None => {}
            },
        }
    }

    /// Whether there is an archive, and a server that could use it.
    pub(super) fn can_archive(&self) -> bool {
        let is_running = self.archive.is_some() && self.sim.is_some();
        is_running && !self.oracle.borrow().failed && !self.disk.has_stopped()
    }

    /// Lets the shard do what its tap has woken it for.
    pub(super) fn hear_tap(&mut self) {
        let shard = self.shard();
        if self.archive.as_ref().is_some_and(Archive::was_woken)
            && let Some(sim) = &mut self.sim
        {
            sim.answer_cuts(shard);
            self.pump();
        }
    }

    /// Asks the shard for a cut.
    pub(super) fn ask_for_cut(&mut self) {
        if self.archive.as_ref().is_some_and(|archive| archive.failures > 0) {
            self.clocks.advance(WAIT);
            self.tick();
        }
        let round = self.rounds;
        if let Some(archive) = &mut self.archive {
            archive.ask(round);
        }
        self.hear_tap();
    }

    /// Reads the cut that was heard of, and offers it. Returns what became of it, unless its files
    /// were given up or the machine stops meanwhile.
    pub(super) fn send_cut(&mut self, may_kill: bool) -> Option<Became> {
        let archive = self.archive.as_mut()?;
        let cut = archive.take_cut()?;
        let at = archive.moment_of(&cut);
        if cut.keep.is_lost() {
            archive.let_go(cut, false);
            return None;
        }
        let mut copied = self.copy_cut(at, cut.segments.clone())?;
        self.learn_moments(&copied);
        let archive = self.archive.as_mut()?;
        let became = archive.offer(&mut copied, may_kill, &mut self.counts);
        archive.let_go(cut, matches!(became, Became::Archived));
        self.oracle.borrow().trail.note(|| format!("a cut at {at} is offered: {}", became.text()));
        if !matches!(became, Became::Killed) {
            self.hear_tap();
        }
        Some(became)
    }

    /// Reads the segments of a cut. Returns none if the machine stops meanwhile.
    pub(super) fn copy_cut(&self, at: Timestamp, segments: Vec<SegmentEnd>) -> Option<Copied> {
        match Copied::from_disk(&self.disk, at, segments) {
            Ok(copied) => Some(copied),
            Err(_) if self.disk.has_stopped() => None,
            Err(error) => panic!("a segment of a cut cannot be read: {error}"),
        }
    }

    /// Learns what the log says in a cut.
    pub(super) fn learn_moments(&mut self, copied: &Copied) {
        let commits = match copied.commits() {
            Ok(commits) => commits,
            Err(error) => panic!("what is kept for a cut has changed: {error}"),
        };
        let Some(archive) = &mut self.archive else { return };
        let oracle = &mut *self.oracle.borrow_mut();
        let Some(chronicle) = &mut oracle.chronicle else { return };
        let before = archive.last().map(|taken| (taken.commits, taken.at));
        let count = chronicle.learn(&commits, before);
        archive.note_taken(copied, count);
    }

    /// The bytes of files that are on the disk for the archive alone, given how many segments the
    /// journal needs.
    pub(crate) fn bytes_for_archive(&self, needed: u64) -> u64 {
        let kept_from = self.archive.as_ref().and_then(Archive::keeps_from);
        let Some(kept_from) = kept_from else { return 0 };
        let number = |name: &str| -> Option<u64> {
            name.strip_prefix("segment-")?.strip_suffix(".log")?.parse().ok()
        };
        let sizes = self.disk.sizes();
        let of_segment = |(name, bytes): (&String, &u64)| Some((number(name)?, *bytes));
        let segments: Vec<(u64, u64)> = sizes.iter().filter_map(of_segment).collect();
        let newest = segments.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let kept = u64::from(kept_from)..(newest + 1).saturating_sub(needed);
        let kept = segments.iter().filter(|(number, _)| kept.contains(number));
        kept.map(|(_, bytes)| bytes).sum()
    }

    /// Ends the server that was killed while it sent something, alone or with its machine.
    fn die_while_archiving(&mut self) {
        let loses_power = self.archive.as_mut().is_some_and(|archive| archive.dice.chance(50));
        if loses_power {
            self.lose_power_as(Kind::PowerLoss);
        } else {
            self.crash(CrashPolicy::KeepAll, Kind::Kill);
        }
    }

    fn maybe_compare(&mut self) {
        if self.archive.as_mut().is_some_and(Archive::wants_comparison) {
            self.compare_moment(false);
        }
    }
}
