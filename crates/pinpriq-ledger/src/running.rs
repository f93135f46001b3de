//! A log at work: it decides when an entry is sent, what is read, and what is removed. It never
//! waits.
//!
//! One entry is under way at a time. If nobody knows what became of it, nothing else is appended
//! until the engine has resolved it. The caller remembers the first failure and makes no calls
//! after it.

use std::collections::VecDeque;

use pinpriq_engine::change::{Change, Header, Place};
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::store::{LAZY_MS, REWRITE_BYTES_MAX, REWRITE_KEYS_MAX};
use pinpriq_store::{Figures, Position, Rewrite, Room, StoreError, Urgency};

use crate::accounts::{Accounts, Unit};
use crate::batch::read_keys;
use crate::ledger::{
    Answer, Appended, Call, ENTRY_BYTES_MAX, Ledger, Resolved, Seq, Status, Tenure, Trimmed,
    Unreachable,
};
use crate::pending::{Pending, Sealed};
use crate::reader::{Reader, damage};

/// After how many milliseconds the engine is asked again for what it has not answered.
const AGAIN_MS: u64 = 100;

/// How many bytes are appended before the engine is asked again how much room it has.
const STATUS_EVERY_BYTES: u64 = 1 << 20;

/// While more than this waits to be appended, no records are returned to be written again.
const REWRITE_BACKLOG_BYTES: u64 = 1 << 20;

/// The largest batch. It may have as many entries as that needs.
pub(crate) const BATCH_BYTES_MAX: u64 = 64 << 20;

pub(crate) struct Running {
    ledger: Box<dyn Ledger>,
    tenure: Tenure,
    slack_bytes: u64,
    accounts: Accounts,
    pending: Pending,
    in_flight: Option<InFlight>,
    /// The last entry of this tenure that is in the log.
    landed: Seq,
    last: Position,
    reached: Position,
    /// Entries before this one are being removed.
    trimming: Option<Seq>,
    compaction: Compaction,
    status: Status,
    /// The bytes appended since the engine was asked for its status, or none if it was not.
    since_status: Option<u64>,
    asks_status: bool,
    /// When a chore that the engine has not answered may be tried again.
    chores_at: Timestamp,
    now: Timestamp,
    figures: Figures,
}

/// The entry that is under way.
struct InFlight {
    entry: Sealed,
    fate: Fate,
}

/// What is known of an entry that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// The engine is asked to append it.
    Sent,
    /// It may be in the log, and the engine is asked from this moment on.
    Unknown(Timestamp),
    /// The engine is asked what became of it.
    Asked,
}

/// The records of the oldest entries, which are to be written again.
#[derive(Debug, Default)]
struct Compaction {
    /// The unit that is being read, and its entries so far.
    reading: Option<(Unit, Reader, Seq)>,
    /// The first entry of the unit that was read last.
    done: Option<Seq>,
    rewrites: VecDeque<Rewrite>,
}

impl Running {
    pub(crate) fn new(
        ledger: Box<dyn Ledger>,
        tenure: Tenure,
        (accounts, pending): (Accounts, Pending),
        slack_bytes: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            ledger,
            tenure,
            slack_bytes,
            accounts,
            pending,
            in_flight: None,
            landed: Seq(0),
            last: Position::default(),
            reached: Position::default(),
            trimming: None,
            compaction: Compaction::default(),
            status: Status { bytes_used: 0, bytes_max: u64::MAX },
            since_status: None,
            asks_status: false,
            chores_at: Timestamp::ZERO,
            now,
            figures: Figures::default(),
        }
    }

    pub(crate) const fn tenure(&self) -> Tenure {
        self.tenure
    }

    pub(crate) fn append(
        &mut self,
        facts: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        let position = Position(self.last.0 + 1);
        let is_urgent = urgency == Urgency::Soon;
        let added = self.pending.add((facts, changes), position, is_urgent, placed);
        if added.bytes > BATCH_BYTES_MAX {
            return Err(StoreError::BatchTooLarge { bytes: added.bytes, most: BATCH_BYTES_MAX });
        }
        if added.entries == 0 {
            self.accounts.add(added.bytes, added.live);
        } else {
            let (first, entries) = (added.first, added.entries);
            let unit = Unit { first, entries, bytes: added.bytes, live: added.live };
            self.accounts.push(unit);
            self.accounts.note(position);
        }
        self.last = position;
        self.now = self.now.max(facts.now);
        self.since_status = self.since_status.map(|bytes| bytes + added.bytes);
        Ok(position)
    }

    pub(crate) fn obsolete(&mut self, place: Place) {
        self.accounts.obsolete(place, self.last);
    }

    pub(crate) fn drive(&mut self, now: Timestamp) -> Result<Position, StoreError> {
        self.now = self.now.max(now);
        while let Some(answer) = self.ledger.poll() {
            self.hear(answer)?;
        }
        self.resolve();
        self.send(false);
        self.start_chores();
        Ok(self.reached)
    }

    /// Waits until everything that was appended is in the log, or the engine has not said so after
    /// being asked this many times.
    pub(crate) fn finish(&mut self, now: Timestamp, patience: u32) -> Result<(), StoreError> {
        self.drive(now)?;
        let mut asked = 0;
        while self.reached < self.last {
            self.send(true);
            if let Some(InFlight { fate: Fate::Unknown(at), .. }) = &mut self.in_flight {
                if asked == patience {
                    let why = "it is not known what became of an entry".to_owned();
                    return Err(StoreError::NoAnswer { why });
                }
                asked += 1;
                *at = Timestamp::ZERO;
                self.resolve();
            }
            self.ledger.wait();
            self.drive(now)?;
        }
        Ok(())
    }

    /// Takes an answer of the engine.
    fn hear(&mut self, answer: Answer) -> Result<(), StoreError> {
        match answer {
            Answer::Appended(Appended::Done) | Answer::Resolved(Resolved::Committed) => {
                self.note_landed();
            }
            Answer::Appended(Appended::Fenced)
            | Answer::Resolved(Resolved::Fenced)
            | Answer::Trimmed(Trimmed::Fenced) => {
                return Err(StoreError::Fenced { incarnation: self.tenure.term.0 });
            }
            Answer::Appended(Appended::Unknown) => self.note_unknown(self.now),
            Answer::Resolved(Resolved::Unknown) => {
                self.note_unknown(self.now.after(Span::from_ms(AGAIN_MS)));
            }
            Answer::Resolved(Resolved::Absent) => self.note_absent(),
            Answer::Appended(Appended::Full) => return Err(StoreError::EngineFull),
            Answer::Appended(Appended::TooLarge) => {
                let entry = self.in_flight.as_ref().map_or(0, |it| it.entry.bytes.len());
                let (bytes, most) = (entry as u64, ENTRY_BYTES_MAX as u64);
                return Err(StoreError::BatchTooLarge { bytes, most });
            }
            Answer::Read(read) => self.hear_read(read)?,
            Answer::Trimmed(Trimmed::Done) => {
                if let Some(before) = self.trimming.take() {
                    self.accounts.trimmed(before);
                }
            }
            Answer::Trimmed(Trimmed::Unknown) => {
                self.trimming = None;
                self.put_chores_off();
            }
            Answer::Status(status) => {
                self.asks_status = false;
                self.since_status = Some(0);
                match status {
                    Ok(status) => self.status = status,
                    Err(_) => self.put_chores_off(),
                }
            }
            Answer::Seized(_) => unreachable!("a log at work is not seized"),
        }
        Ok(())
    }

    /// Notes that nobody knows what became of the entry under way. The engine is asked at `at`.
    fn note_unknown(&mut self, at: Timestamp) {
        if planted!(UnknownTakenForDone) {
            self.note_landed();
        } else if let Some(in_flight) = &mut self.in_flight {
            in_flight.fate = Fate::Unknown(at);
        }
    }

    /// Notes that the entry under way is not in the log, and never will be unless it is sent again.
    fn note_absent(&mut self) {
        if planted!(AbsentTakenForDone) {
            self.note_landed();
        } else {
            self.send_again();
        }
    }

    /// Notes that the entry under way is in the log.
    fn note_landed(&mut self) {
        let Some(InFlight { entry, .. }) = self.in_flight.take() else {
            unreachable!("no entry is under way")
        };
        self.landed = entry.seq;
        self.figures.writes += 1;
        self.figures.syncs += 1;
        self.figures.batches += entry.contents.batches;
        if entry.contents.batches > 0 {
            self.figures.commit_records.record(entry.contents.records);
        }
        if let Some(last) = entry.contents.last {
            self.reached = last;
            self.accounts.reached(last);
        }
    }

    /// Asks what became of an entry, if it is unknown.
    fn resolve(&mut self) {
        if let Some(in_flight) = &mut self.in_flight
            && let Fate::Unknown(at) = in_flight.fate
            && at <= self.now
        {
            in_flight.fate = Fate::Asked;
            let seq = in_flight.entry.seq;
            self.ledger.start(Call::Resolve { tenure: self.tenure, seq });
        }
    }

    fn send_again(&mut self) {
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.fate = Fate::Sent;
            let Sealed { seq, bytes, .. } = in_flight.entry.clone();
            self.ledger.start(Call::Append { tenure: self.tenure, seq, bytes });
        }
    }

    /// Appends the next entry, if none is under way and it is due.
    fn send(&mut self, everything: bool) {
        let is_due = everything || self.pending.is_urgent() || self.lazy_at() <= Some(self.now);
        if self.in_flight.is_some() || self.pending.is_empty() || !is_due {
            return;
        }
        let Some(entry) = self.pending.seal() else { return };
        self.in_flight = Some(InFlight { entry, fate: Fate::Sent });
        self.send_again();
    }

    fn lazy_at(&self) -> Option<Timestamp> {
        self.pending.since().map(|since| since.after(Span::from_ms(LAZY_MS)))
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        match &self.in_flight {
            Some(InFlight { fate: Fate::Unknown(at), .. }) => return Some(*at),
            None if self.pending.is_urgent() => return self.pending.since(),
            None if !self.pending.is_empty() => return self.lazy_at(),
            _ => {}
        }
        (self.chores_at > self.now && self.has_chores()).then_some(self.chores_at)
    }

    fn put_chores_off(&mut self) {
        self.chores_at = self.now.after(Span::from_ms(AGAIN_MS));
    }

    fn has_chores(&self) -> bool {
        self.wants_trim() || self.wants_status() || self.compaction.reading.is_some()
    }

    /// Starts what is due and nobody waits for.
    fn start_chores(&mut self) {
        if self.chores_at > self.now {
            return;
        }
        if self.wants_trim() && self.trimming.is_none() {
            let (before, _) = self.accounts.releasable();
            self.trimming = Some(before);
            self.ledger.start(Call::Trim { tenure: self.tenure, before });
        }
        if self.wants_status() && !self.asks_status {
            self.asks_status = true;
            self.ledger.start(Call::Status);
        }
    }

    /// Whether enough may go that removing it is worth a call.
    fn wants_trim(&self) -> bool {
        let (_, bytes) = self.accounts.releasable();
        bytes > 0 && (bytes > self.slack_bytes / 2 || self.room() > Room::Enough)
    }

    fn wants_status(&self) -> bool {
        self.since_status.is_none_or(|bytes| bytes >= STATUS_EVERY_BYTES)
    }

    /// What there is room for, by what the engine has said last.
    pub(crate) fn room(&self) -> Room {
        let Status { bytes_used, bytes_max } = self.status;
        let used = bytes_used + self.since_status.unwrap_or(0);
        match u128::from(used) * 100 / u128::from(bytes_max.max(1)) {
            0..60 => Room::Enough,
            60..80 => Room::Low,
            80..90 => Room::Scarce,
            _ => Room::Least,
        }
    }

    pub(crate) const fn pending_bytes(&self) -> u64 {
        self.pending.bytes()
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
}

impl Running {
    /// See [`Reclaims::poll_rewrite`](pinpriq_store::Reclaims::poll_rewrite).
    pub(crate) fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.start_compaction();
        if self.pending_bytes() > REWRITE_BACKLOG_BYTES {
            return Vec::new();
        }
        let (mut bytes, mut rewrites) = (0, Vec::new());
        while rewrites.len() < REWRITE_KEYS_MAX
            && bytes < REWRITE_BYTES_MAX
            && let Some(rewrite) = self.compaction.rewrites.pop_front()
        {
            bytes += u64::from(rewrite.place.length.get());
            rewrites.push(rewrite);
        }
        self.figures.rewrites += rewrites.len() as u64;
        rewrites
    }

    /// Starts to read the oldest entry in which something counts, if too much of the log does not.
    fn start_compaction(&mut self) {
        let is_busy = self.compaction.reading.is_some() || !self.compaction.rewrites.is_empty();
        let is_wasteful = self.accounts.is_wasteful(self.slack_bytes);
        if is_busy || self.chores_at > self.now || !is_wasteful || planted!(LedgerRecordsLeftBehind)
        {
            return;
        }
        let Some(unit) = self.accounts.oldest() else { return };
        // It may wait to be appended, and then it cannot be read.
        if unit.first.0 + unit.entries > self.landed.0 + 1 {
            return;
        }
        // What was returned already is still on its way.
        if self.compaction.done.is_some_and(|done| done >= unit.first) {
            return;
        }
        self.compaction.reading = Some((unit, Reader::default(), unit.first));
        self.read_more();
    }

    fn read_more(&mut self) {
        if let Some((unit, _, from)) = &self.compaction.reading {
            let bytes = usize::try_from(unit.bytes).unwrap_or(usize::MAX);
            self.ledger.start(Call::Read { from: *from, bytes });
        }
    }

    fn hear_read(
        &mut self,
        read: Result<Vec<(Seq, Vec<u8>)>, Unreachable>,
    ) -> Result<(), StoreError> {
        let Some((unit, mut reader, mut next)) = self.compaction.reading.take() else {
            unreachable!("nothing was read")
        };
        let Ok(entries) = read else {
            self.put_chores_off();
            return Ok(());
        };
        for (seq, bytes) in entries {
            next = Seq(seq.0 + 1);
            let Some(whole) = reader.take(seq, &bytes)?.pop() else { continue };
            let body = whole.body.unwrap_or_default();
            let keys = read_keys(unit.first, &body);
            let keys = keys.map_err(|malformed| damage(unit.first, malformed.to_string()))?;
            let rewrite = |(key, place)| Rewrite { key, place, payload: None };
            self.compaction.rewrites.extend(keys.into_iter().map(rewrite));
            self.compaction.done = Some(unit.first);
            return Ok(());
        }
        if next == unit.first {
            // What counts no more may have been removed meanwhile.
            let (kept, _) = self.accounts.releasable();
            let is_gone = kept > unit.first;
            return if is_gone { Ok(()) } else { Err(damage(unit.first, "it is gone".to_owned())) };
        }
        self.compaction.reading = Some((unit, reader, next));
        self.read_more();
        Ok(())
    }
}
