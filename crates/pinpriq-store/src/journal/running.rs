//! A running journal: it makes every decision, and never waits.
//!
//! It decides where a batch goes, when a write starts and whether it is synced, and when a segment
//! is compacted, prepared or put away. One write is under way at a time; what is appended meanwhile
//! is written next, with one sync for all of it. The caller remembers the first failure and makes
//! no calls after it.

use std::fmt;
use std::sync::Arc;

use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::{Span, Timestamp};

use super::accounts::{Accounts, Segment};
use super::chores::{Chore, ChoreDone, Chores};
use super::compact::Compaction;
use super::cuts::Cuts;
use super::fetch::{Reading, Volumes};
use super::lane::{Lane, Runner};
use super::open::Begun;
use super::options::{JournalOptions, Level};
use super::pending::{Pending, Target};
use super::rotation::Rotation;
use super::segment::{BATCH_BYTES_MAX, FORMAT_VERSION, SEGMENT_START, SegmentHeader, draw_salt};
use super::spare::Spares;
use super::tap::Purpose;
use super::writer::{Commit, Committed, Roll, Writer};
use crate::store::{
    Figures, INTERVAL_MS, LAZY_MS, Position, Progress, REWRITE_BYTES_MAX, ReadJob, Rewrite, Room,
    Shortage, StoreError, TaskCounts, Urgency, Volume,
};

/// The bytes of a write buffer that are kept for the next write. What a burst needed beyond that is
/// freed.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// The most bytes written for one task if it is taken, its lease ends and it is acknowledged after
/// that, each time in a batch with nothing else.
const TASK_BYTES: u64 = 256;

/// The most bytes written for a task that is acknowledged or popped.
const END_BYTES: u64 = 96;

/// While more than this waits to be written, no changes are gathered: what a sync costs hardly
/// counts then, and the disk must not stand still.
const GATHER_BYTES_MAX: usize = 32 << 10;

/// How often a journal that watches its files looks whether they are where they were.
const LOOK_MS: u64 = 1_000;

/// While more than this waits to be written, no records are returned to be written again.
const REWRITE_BACKLOG_BYTES: usize = 4 << 20;

pub(crate) struct Running {
    options: JournalOptions,
    accounts: Accounts,
    pending: Pending,
    commits: Lane<Writer>,
    chores: Lane<Chores>,
    reads: Lane<Reading>,
    volumes: Volumes,
    spares: Spares,
    compaction: Compaction,
    rotation: Rotation,
    /// The task counts last reported.
    tasks: TaskCounts,
    /// Buffers of the last commit, for reuse.
    buffers: Option<Commit>,
    /// The facts of the latest batch. No later one has an earlier moment, and none has the moment
    /// of a cut.
    facts: Header,
    /// The cuts that others have asked for, if anybody can.
    cuts: Option<Cuts>,
    /// How large the active segment may grow.
    capacity: u64,
    next_lsn: u64,
    in_flight: Option<InFlight>,
    /// Whether a sync has ended and the next one waits for more changes.
    is_gathering: bool,
    written_lsn: u64,
    durable_lsn: u64,
    /// The segment that the last finished write ended in.
    written_segment: u32,
    /// When the oldest write began that was not synced yet.
    unsynced_since: Option<Timestamp>,
    now: Timestamp,
    /// When it was last looked whether the files are where they were.
    looked_at: Timestamp,
    /// Whether it was not driven yet. Other shards may not have begun: on a full disk they give
    /// room back for their own new segments, and no other shard may use that room.
    is_beginning: bool,
    figures: Figures,
}

#[derive(Clone, Copy)]
struct InFlight {
    last_lsn: u64,
    segment: u32,
    sync: bool,
    batches: u64,
    records: u64,
}

impl Running {
    /// Starts work on a log whose incarnation has begun.
    pub(crate) fn start(
        options: JournalOptions,
        accounts: Accounts,
        begun: Begun,
        (chores, volumes): (Chores, Volumes),
        facts: &Header,
        runner: &Runner,
        mut cuts: Option<Cuts>,
    ) -> Result<Self, StoreError> {
        if let Some(cuts) = &mut cuts {
            cuts.note_released(accounts.released(), facts.now);
            if begun.lacks_room {
                loses_keeps(cuts, true, &"the disk is full");
            }
        }
        let written_segment = accounts.active().map_or(0, |active| active.header.number);
        let useless = accounts.used_bytes().saturating_sub(accounts.live_bytes());
        Ok(Self {
            options,
            accounts,
            pending: Pending::default(),
            commits: Lane::start("journal-commit", begun.writer, runner)?,
            chores: Lane::start("journal-chores", chores, runner)?,
            reads: Lane::start("journal-read", Reading, runner)?,
            volumes,
            spares: begun.spares,
            compaction: Compaction::default(),
            rotation: Rotation::new(useless),
            tasks: TaskCounts { present: u64::MAX, taken: u64::MAX },
            buffers: None,
            facts: *facts,
            cuts,
            capacity: begun.capacity,
            next_lsn: begun.lsn + 1,
            in_flight: None,
            is_gathering: false,
            written_lsn: begun.lsn,
            durable_lsn: begun.lsn,
            written_segment,
            unsynced_since: None,
            now: facts.now,
            looked_at: facts.now,
            is_beginning: true,
            figures: Figures { syncs: 1, batches: 1, writes: 1, ..Figures::default() },
        })
    }

    /// See [`Reclaims::shortage`](crate::store::Reclaims::shortage).
    pub(crate) const fn shortage(&self) -> Shortage {
        self.spares.shortage()
    }

    pub(crate) fn obsolete(&mut self, place: Place) {
        self.accounts.obsolete(place);
        if !self.compaction.is_in_hand(place.volume) {
            self.rotation.add(u64::from(place.length.get()));
        }
    }

    /// See [`Reclaims::hold`](crate::store::Reclaims::hold).
    pub(crate) fn hold(&mut self, place: Place) -> Result<Arc<dyn Volume>, StoreError> {
        self.volumes.hold(place.volume)
    }

    /// See [`Reclaims::held_bytes`](crate::store::Reclaims::held_bytes).
    pub(crate) fn held_bytes(&mut self) -> u64 {
        self.volumes.held_bytes()
    }

    /// See [`Reclaims::start_read`](crate::store::Reclaims::start_read).
    pub(crate) fn start_read(&mut self, job: ReadJob) -> Result<(), StoreError> {
        self.reads.submit(job)
    }

    /// See [`Reclaims::take_read`](crate::store::Reclaims::take_read).
    pub(crate) fn take_read(&mut self, wait: bool) -> Result<Option<Vec<Change>>, StoreError> {
        if wait { self.reads.wait()? } else { self.reads.take()? }.transpose()
    }

    /// See [`Store::is_gathering`](crate::store::Store::is_gathering).
    pub(crate) fn is_gathering(&self) -> bool {
        let is_little = self.pending.bytes() <= GATHER_BYTES_MAX;
        self.is_gathering && is_little
    }

    /// See [`Store::end_gathering`](crate::store::Store::end_gathering).
    pub(crate) fn end_gathering(&mut self) {
        self.is_gathering = false;
    }

    /// Whether a job is under way.
    pub(crate) const fn is_busy(&self) -> bool {
        self.commits.is_busy() || self.chores.is_busy() || self.reads.is_busy()
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending.bytes() as u64
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            segments: self.accounts.count() as u64,
            bytes_used: self.accounts.used_bytes(),
            bytes_live: self.accounts.live_bytes(),
            bytes_pending: self.pending_bytes(),
            ..self.figures
        }
    }

    pub(crate) fn append(
        &mut self,
        facts: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        let facts = &Header { now: facts.now.max(self.facts.now), ..*facts };
        let encoded = self.pending.encode(changes);
        if encoded.padded_bytes > BATCH_BYTES_MAX {
            self.pending.drop_encoded(encoded);
            let bytes = encoded.padded_bytes;
            return Err(StoreError::BatchTooLarge { bytes, most: BATCH_BYTES_MAX });
        }
        let end = self.accounts.active().map_or(0, |active| active.end);
        if end + encoded.padded_bytes > self.capacity {
            self.roll(facts, encoded.padded_bytes);
        }
        let lsn = self.next_lsn;
        let target = self.target(lsn);
        self.pending.place(encoded, &target, facts, urgency, placed);
        self.accounts.add_batch(encoded.padded_bytes, encoded.placed_bytes);
        // Rewritten records add nothing that another pass could gain.
        let is_rewritten = urgency == Urgency::Lazy && encoded.has_places_only();
        if !is_rewritten {
            self.rotation.add(encoded.padded_bytes - encoded.placed_bytes);
        }
        self.accounts.note(lsn);
        self.next_lsn += 1;
        self.facts = *facts;
        self.now = self.now.max(facts.now);
        Ok(Position(lsn))
    }

    /// See [`Store::has_cut_request`](crate::store::Store::has_cut_request).
    pub(crate) fn has_cut_request(&self) -> bool {
        self.cuts.as_ref().is_some_and(Cuts::is_asked)
    }

    /// See [`Store::note_cuts`](crate::store::Store::note_cuts).
    pub(crate) fn note_cuts(&mut self, now: Timestamp) {
        let Some(cuts) = &mut self.cuts else { return };
        let now = now.max(self.facts.now);
        // What happens in the rest of this millisecond, here or at a shard that has heard of it, is
        // later than the cut.
        let at = Timestamp::from_ms(now.ms().saturating_sub(1));
        cuts.note(at, self.next_lsn - 1, &self.accounts);
        self.facts.now = now;
        cuts.answer(self.durable_lsn);
    }

    /// Ends the waits for cuts, and whatever is kept because of one.
    pub(crate) fn end_cuts(&mut self) {
        self.cuts = None;
    }

    fn target(&self, lsn: u64) -> Target {
        let oldest = self.accounts.oldest_number();
        let active = self.accounts.active();
        Target {
            segment: active.map_or(0, |active| active.header.number),
            offset: active.map_or(0, |active| active.end),
            salt: active.map_or(0, |active| active.header.salt),
            oldest,
            lsn,
        }
    }

    /// Continues the log in a new segment, large enough for a batch of this many bytes.
    fn roll(&mut self, facts: &Header, batch_bytes: u64) {
        let (number, previous_end) =
            self.accounts.active().map_or((1, 0), |last| (last.header.number + 1, last.end));
        let usual = self.options.segment_bytes();
        let least = SEGMENT_START + batch_bytes;
        let spare = if least > usual { None } else { self.spares.take(least) };
        self.capacity = spare.map_or_else(|| usual.max(least), |spare| spare.bytes);
        let header = SegmentHeader {
            version: FORMAT_VERSION,
            number,
            oldest: self.accounts.oldest_number(),
            salt: draw_salt(self.options.salt_seed, number, facts.incarnation),
            first_lsn: self.next_lsn,
            previous_end,
            incarnation: facts.incarnation,
            now: facts.now.ms(),
            identity: self.accounts.active().and_then(|last| last.header.identity),
        };
        let spare = spare.map(|spare| spare.number);
        self.pending.roll(Roll { header, capacity: self.capacity, spare });
        let usual_size = self.capacity == usual;
        self.accounts.push(Segment { header, end: SEGMENT_START, live: 0, usual_size });
    }

    pub(crate) fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.now = self.now.max(now);
        self.collect()?;
        self.note_release()?;
        self.start_commit(false)?;
        self.start_chore()?;
        // Inline jobs have finished by now, and one of them may have made another one due.
        if self.commits.is_inline() {
            self.collect()?;
            self.start_commit(false)?;
            self.collect()?;
        }
        self.is_beginning = false;
        Ok(Progress { reached: self.reached() })
    }

    fn reached(&self) -> Position {
        Position(match self.options.level {
            Level::Sync => self.durable_lsn,
            Level::Interval => self.written_lsn,
        })
    }

    /// Collects the results of all finished jobs.
    fn collect(&mut self) -> Result<(), StoreError> {
        if let Some(committed) = self.commits.take()? {
            self.committed(committed)?;
        }
        if let Some(done) = self.chores.take()? {
            self.chore_done(done);
        }
        Ok(())
    }

    fn committed(&mut self, committed: Committed) -> Result<(), StoreError> {
        let Committed { mut commit, outcome, took } = committed;
        let in_flight = self.in_flight.take();
        outcome?;
        commit.bytes.clear();
        commit.bytes.shrink_to(BUFFER_BYTES_KEPT);
        commit.steps.clear();
        self.buffers = Some(commit);
        if let Some(finished) = in_flight {
            self.written_lsn = finished.last_lsn;
            self.written_segment = finished.segment;
            self.figures.batches += finished.batches;
            self.figures.writes += 1;
            if finished.batches > 0 {
                self.figures.commit_records.record(finished.records);
            }
            if finished.sync {
                self.figures.syncs += 1;
                let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                self.figures.commit_us.record(us);
                self.durable_lsn = finished.last_lsn;
                self.unsynced_since = None;
                self.accounts.durable(self.durable_lsn);
                if let Some(cuts) = &mut self.cuts {
                    cuts.note_released(self.accounts.released(), self.facts.now);
                    cuts.answer(self.durable_lsn);
                }
                self.is_gathering = self.options.gathers;
            }
        }
        Ok(())
    }

    fn chore_done(&mut self, done: ChoreDone) {
        match done {
            ChoreDone::Filled { spare, outcome: Err(error) } if self.gives_up_keeps(&error) => {
                self.spares.interrupted(spare);
            }
            ChoreDone::Filled { spare, outcome } => {
                self.spares.filled(spare, outcome, self.wanted_spares(), self.now);
            }
            ChoreDone::Reserved { spare, outcome } => {
                self.spares.reserved(spare, outcome, self.now);
            }
            ChoreDone::Listed { segment, outcome } => self.compaction.listed(segment, outcome),
            ChoreDone::Retired { segment, spare, outcome } => {
                self.spares.put_away(spare, outcome.is_ok());
                if let Err(error) = outcome {
                    // The next start removes it.
                    tracing::warn!(segment, %error, "an old segment could not be put away");
                }
            }
        }
    }

    /// The number of the next segment to put away, and whether it has to stay under its name.
    fn retirable(&self) -> Option<(u32, bool)> {
        let front = self.accounts.released_front()?;
        Some((front, self.cuts.as_ref().is_some_and(|cuts| cuts.keeps(front))))
    }

    /// Gives up what is kept for readers, or else what is kept for the archive. Returns whether
    /// anything was. It may be another shard that keeps what fills the disk: that one gives it up
    /// when whoever holds it hears of this. So the archive's goes even if nothing is won here, but
    /// only when the disk becomes full: while it stays so, that would be a gap for nothing.
    fn gives_up_keeps(&self, why: &dyn fmt::Display) -> bool {
        let wins = !self.spares.is_refused() || matches!(self.retirable(), Some((_, true)));
        self.cuts.as_ref().is_some_and(|cuts| loses_keeps(cuts, wins, why))
    }

    /// Whether a segment can be put away.
    fn has_retirable(&self) -> bool {
        self.retirable().is_some_and(|(_, is_kept)| !is_kept || self.spares.is_refused())
    }

    /// Removes and returns the next segment to put away. On a full disk none is kept: readers lose
    /// theirs first, and the archive only if that does not suffice.
    fn take_retirable(&mut self) -> Option<Segment> {
        if !self.has_retirable() {
            return None;
        }
        while matches!(self.retirable(), Some((_, true))) {
            if !self.gives_up_keeps(&"the disk is full") {
                break;
            }
        }
        self.accounts.take_released()
    }

    /// Says in an empty batch that segments may go, if no batch has said so since.
    fn note_release(&mut self) -> Result<(), StoreError> {
        if self.accounts.wants_note() && self.wants_release() {
            let facts = Header { now: self.now, ..self.facts };
            self.append(&facts, &[], Urgency::Lazy, &mut |_, _| {})?;
        }
        Ok(())
    }

    /// Whether putting segments away is worth a write of its own.
    fn wants_release(&self) -> bool {
        let kept_from = self.cuts.as_ref().map_or(u32::MAX, Cuts::kept_from);
        let all_bytes = self.accounts.used_bytes() + self.accounts.emptied_bytes(kept_from);
        self.spares.is_refused()
            || all_bytes > 2 * self.accounts.live_bytes() + self.options.slack_bytes
    }

    fn start_commit(&mut self, everything: bool) -> Result<(), StoreError> {
        if self.commits.is_busy() || (self.is_gathering() && !everything) {
            return Ok(());
        }
        let release = self.accounts.awaits_note() && self.wants_release();
        let overdue = self.sync_due().is_some_and(|due| due <= self.now);
        let unsynced = self.written_lsn > self.durable_lsn || !self.pending.is_empty();
        let sync_now = unsynced && (everything || release || overdue);
        let lazy_due = self.pending.since().after(Span::from_ms(LAZY_MS)) <= self.now;
        let write = !self.pending.is_empty() && (self.pending.is_urgent() || lazy_due || sync_now);
        let look = self.look_at().is_some_and(|at| at <= self.now);
        if (!write && !sync_now) || (!everything && self.awaits_spare()) {
            return if look { self.look() } else { Ok(()) };
        }
        let sync = sync_now || (self.options.level == Level::Sync && self.pending.is_urgent());
        self.is_gathering = false;
        let (batches, records) = (self.pending.batches() as u64, self.pending.records() as u64);
        let buffers = self.buffers.take().unwrap_or_default();
        let usual = self.options.segment_bytes();
        let spares = &mut self.spares;
        // Only the usual size: where the segment ends is settled.
        let of_size = |bytes| {
            if bytes != usual {
                return None;
            }
            let spare = spares.take(bytes).or_else(|| spares.take_reserved());
            spare.map(|spare| spare.number)
        };
        let mut commit = self.pending.seal(self.durable_lsn, of_size, buffers);
        (commit.sync, commit.look) = (sync, look);
        if look {
            self.looked_at = self.now;
        }
        let segment = self.accounts.active().map_or(0, |active| active.header.number);
        let last_lsn = self.next_lsn - 1;
        self.in_flight = Some(InFlight { last_lsn, segment, sync, batches, records });
        if !sync && self.unsynced_since.is_none() {
            self.unsynced_since = Some(self.now);
        }
        self.commits.submit(commit)
    }

    /// Looks whether the files are where they were, without writing anything.
    fn look(&mut self) -> Result<(), StoreError> {
        self.looked_at = self.now;
        let buffers = self.buffers.take().unwrap_or_default();
        self.commits.submit(Commit { sync: false, look: true, ..buffers })
    }

    /// When to look whether the files are where they were.
    fn look_at(&self) -> Option<Timestamp> {
        self.options.watches.then(|| self.looked_at.after(Span::from_ms(LOOK_MS)))
    }

    /// When written batches have to be synced at the latest. At level `sync` these hold only
    /// grants, for which no client waits. Most are synced earlier, together with something that
    /// a client waits for.
    fn sync_due(&self) -> Option<Timestamp> {
        self.unsynced_since.map(|since| since.after(Span::from_ms(INTERVAL_MS)))
    }

    fn start_chore(&mut self) -> Result<(), StoreError> {
        if self.chores.is_busy() {
            return Ok(());
        }
        let wanted = self.wants_compaction();
        if self.compaction.review(&self.accounts, self.written_segment, wanted) {
            let active = self.accounts.active().map_or(0, |active| active.header.number);
            self.rotation.begin(self.accounts.oldest_number(), active);
        }
        let wanted_spares = self.wanted_spares();
        // Files that were put away serve again before others follow: there may be hundreds.
        let fills_first = !self.is_beginning
            && !self.spares.is_refused()
            && self.spares.has_partial()
            && self.spares.certain() < wanted_spares;
        let retired = if fills_first { None } else { self.take_retirable() };
        let chore = if let Some(segment) = retired {
            let is_held = self.volumes.release(segment.header.number, segment.end);
            let is_reusable = segment.usual_size && !is_held;
            let spare = if is_reusable { self.spares.adopt() } else { None };
            Some(Chore::Retire { segment: segment.header.number, spare })
        } else {
            let fill = if self.is_beginning {
                self.spares.next_for_start(wanted_spares, self.now)
            } else {
                self.spares.next_chore(wanted_spares, self.now)
            };
            // This limit makes rewritten records fit in well, even where segments are small.
            let most = REWRITE_BYTES_MAX.min(self.usable() / 8);
            fill.or_else(|| self.compaction.next_chore(&self.accounts, most))
        };
        chore.map_or(Ok(()), |chore| self.chores.submit(chore))
    }

    /// Whether the oldest segment should be emptied: the log is too long; or the disk is nearly
    /// full, emptying would gain room, and what still counts in the segment fits into what is left.
    fn wants_compaction(&self) -> bool {
        let Some(oldest) = self.accounts.oldest() else { return false };
        if self.accounts.is_wasteful(self.options.slack_bytes) {
            return true;
        }
        if !self.spares.is_refused() {
            return false;
        }
        let wins_much = oldest.live <= (oldest.end - SEGMENT_START) / 4 * 3;
        wins_much && oldest.live <= self.bytes_left() / 4 * 3 || self.wants_rotation()
    }

    /// Whether a pass over the log is worthwhile and what counts in the oldest segment fits.
    fn wants_rotation(&self) -> bool {
        let Some(oldest) = self.accounts.oldest() else { return false };
        let (left, need) = (self.bytes_left(), self.need());
        self.spares.is_refused()
            && left < need / 2 * 3
            && self.rotation.covers(oldest.header.number, need / 4)
            && oldest.live + need / 4 <= left
    }

    /// The bytes of batches that fit in a segment of the usual size.
    fn usable(&self) -> u64 {
        self.options.segment_bytes() - SEGMENT_START
    }

    /// The bytes that the log certainly has room for: in the active segment and in spares.
    fn bytes_left(&self) -> u64 {
        let active = self.accounts.active();
        let left = active.map_or(0, |active| self.capacity.saturating_sub(active.end));
        left + self.spares.room()
    }

    /// The unit by which room is measured: a segment, or less if there are so few tasks that each
    /// can be taken and ended in batches of its own before the log has to be made shorter.
    fn need(&self) -> u64 {
        let tasks = self.tasks.present.saturating_mul(TASK_BYTES);
        self.usable().min(tasks.saturating_add(self.usable() / 64))
    }

    /// The number of spares there should be: none before the active segment is really in use, and
    /// two once the log has outgrown one segment.
    fn wanted_spares(&self) -> usize {
        let active = self.accounts.active();
        let used = active.map_or(0, |active| active.end - SEGMENT_START);
        if self.accounts.count() > 1 {
            2
        } else {
            usize::from(used > (self.capacity - SEGMENT_START) / 8)
        }
    }

    /// What there is room for. While the disk is not full, that is everything. On a full disk, the
    /// first quarter of a segment is for changes that take or move a task. Then a pass over the log
    /// begins, which needs a segment and a quarter. Until the pass has gained room, only acks and
    /// what cannot be refused may use up what it needs. If few tasks are left, less is enough: what
    /// it takes to end each of them.
    pub(crate) fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        if !self.spares.is_refused() {
            return Room::Enough;
        }
        let tasks = tasks();
        self.tasks = tasks;
        let (left, need, usable) = (self.bytes_left(), self.need(), self.usable());
        let to_end = END_BYTES
            .saturating_mul(tasks.present)
            .saturating_add(TASK_BYTES.saturating_mul(tasks.taken))
            .saturating_add(usable / 64);
        if left >= need / 4 * 7 {
            Room::Enough
        } else if left >= need / 2 * 3 {
            Room::Low
        } else if left < to_end.min(usable / 4 * 3) || (left < need / 4 * 5 && self.rotates()) {
            Room::Least
        } else {
            Room::Scarce
        }
    }

    /// Whether the pending batches need a new segment, and a spare is about to be available for it.
    fn awaits_spare(&self) -> bool {
        self.spares.is_about_to_have_one() && self.pending.lacks_spare(self.options.segment_bytes())
    }

    /// Whether more is appended than there is certain room for, while it is not known yet whether
    /// the disk is full. That is known within a moment.
    pub(crate) fn is_outpaced(&self) -> bool {
        !self.spares.is_refused()
            && self.spares.certain() < self.wanted_spares()
            && self.bytes_left() + self.spares.room_reserved() < self.usable() / 4 * 7
    }

    /// Whether records ready to be written again have to wait, because they would use up the room
    /// that acks need.
    fn holds_back(&self) -> bool {
        let oldest_live = self.accounts.oldest().map_or(0, |oldest| oldest.live);
        let ready = self.compaction.ready_bytes().min(oldest_live);
        self.spares.is_refused() && self.bytes_left() < ready + self.need() / 8
    }

    /// Whether a pass over the log gains room now, or is about to.
    fn rotates(&self) -> bool {
        let oldest = self.accounts.oldest_number();
        let wanted = self.wants_rotation();
        let is_due = self.compaction.is_due(&self.accounts, self.written_segment, wanted);
        let is_at_it = self.compaction.is_listing() && !self.holds_back();
        self.rotation.covers(oldest, self.need() / 4) && (is_at_it || is_due)
    }

    fn has_chore(&self) -> bool {
        self.has_retirable()
            || self.spares.has_chore(self.wanted_spares(), self.now)
            || self.compaction.has_chore()
            || self.compaction.is_due(&self.accounts, self.written_segment, self.wants_compaction())
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let mut due: Option<Timestamp> = None;
        let mut at = |moment: Option<Timestamp>| {
            due = moment.map_or(due, |moment| Some(due.map_or(moment, |due| due.min(moment))));
        };
        // Any job on a thread wakes the caller when it ends.
        if !self.commits.is_busy() {
            at(self.look_at());
        }
        if !self.commits.is_busy() && !self.is_gathering() && !self.awaits_spare() {
            at(self.sync_due());
            let release = self.accounts.wants_note() || self.accounts.awaits_note();
            at((release && self.wants_release()).then_some(self.now));
            if !self.pending.is_empty() {
                let lazy = self.pending.since().after(Span::from_ms(LAZY_MS));
                at(Some(if self.pending.is_urgent() { self.now } else { lazy }));
            }
        }
        if !self.chores.is_busy() {
            at(self.spares.retry_at(self.wanted_spares()));
            at(self.has_chore().then_some(self.now));
        }
        due
    }

    pub(crate) fn poll_rewrite(&mut self) -> Result<Vec<Rewrite>, StoreError> {
        if self.pending.bytes() > REWRITE_BACKLOG_BYTES {
            return Ok(Vec::new());
        }
        // The remaining room is for acks. They empty the segment too.
        if self.holds_back() {
            return Ok(Vec::new());
        }
        let ready = self.compaction.take_ready();
        self.figures.rewrites += ready.len() as u64;
        // Fetch the next piece meanwhile. Inline it would be fetched too early.
        if !ready.is_empty() && !self.chores.is_inline() {
            self.start_chore()?;
        }
        Ok(ready)
    }

    /// Says in an empty batch that all batches before it are on the disk, if any was written since
    /// the start. Without it, damage to the last of them would be mistaken for an unfinished write.
    pub(crate) fn note_end(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.figures.batches > 1 {
            let facts = Header { now: self.now, ..self.facts };
            self.append(&facts, &[], Urgency::Soon, &mut |_, _| {})?;
        }
        self.finish(now)
    }

    pub(crate) fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.now = self.now.max(now);
        loop {
            if let Some(committed) = self.commits.wait()? {
                self.committed(committed)?;
            }
            if self.pending.is_empty() && self.durable_lsn == self.written_lsn {
                return Ok(());
            }
            self.start_commit(true)?;
        }
    }
}

/// Gives up what is kept, and says so: see [`Cuts::lose_keeps`].
fn loses_keeps(cuts: &Cuts, archive_may_go: bool, why: &dyn fmt::Display) -> bool {
    match cuts.lose_keeps(archive_may_go) {
        None => false,
        Some(Purpose::Reading) => {
            tracing::warn!(%why, "segments are no longer kept for whoever copies them");
            true
        }
        Some(Purpose::Archiving) => {
            tracing::warn!(%why, "segments are no longer kept until they are archived");
            true
        }
    }
}
