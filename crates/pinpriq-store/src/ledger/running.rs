//! A log at work: it decides when an entry is sent, what is read, and what is removed. It never
//! waits.
//!
//! One entry is under way at a time. If its outcome is unknown, nothing else is appended
//! until the engine has resolved it. The caller remembers the first failure and makes no calls
//! after it.

mod compaction;

use std::collections::VecDeque;

use crate::store::LAZY_MS;
use crate::{Extent, Figures, Position, Room, StoreError, Urgency};
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::{Span, Timestamp};

use crate::ledger::accounts::{Accounts, Unit};
use crate::ledger::interface::{
    Answer, Appended, Call, ENTRY_BYTES_MAX, Ledger, Resolved, Seq, Status, Tenure, Trimmed,
};
use crate::ledger::keeper::Keeper;
use crate::ledger::pending::{Added, Pending, Sealed};
use crate::ledger::watermark::Watermark;
use crate::ledger::window::{Watch, Window};
use compaction::Compaction;

/// After how many milliseconds the engine is asked again for what it has not answered.
const AGAIN_MS: u64 = 100;

/// How many bytes are appended before the engine is asked again how much room it has.
const STATUS_EVERY_BYTES: u64 = 1 << 20;

/// While room is low, after how many milliseconds the engine is asked again how much it has,
/// whatever is appended: then little is, and others may make room.
const STATUS_WHEN_LOW_MS: u64 = 500;

/// While room is low, a log may hold this part of its usual slack.
const SLACK_WHEN_LOW: u64 = 32;

/// The largest batch. It may have as many entries as that needs.
pub(crate) const BATCH_BYTES_MAX: u64 = 64 << 20;

pub(crate) struct Running {
    ledger: Box<dyn Ledger>,
    tenure: Tenure,
    slack_bytes: u64,
    accounts: Accounts,
    pending: Pending,
    in_flight: Option<InFlight>,
    /// The last entry that is known to be in the log.
    landed: Watermark,
    keeper: Option<Box<dyn Keeper>>,
    /// Entries that have landed and whose watermarks are not kept yet, with the last batch that
    /// ends in each.
    unkept: VecDeque<(Seq, Option<Position>)>,
    watch: Watch,
    /// What the last batch has said.
    facts: Header,
    /// Whether the tenure was ended in order.
    has_ended: bool,
    last: Position,
    reached: Position,
    /// Entries before this one are being removed.
    trimming: Option<Seq>,
    compaction: Compaction,
    status: Status,
    /// The bytes appended since the engine was asked for its status, or none if it was not.
    since_status: Option<u64>,
    asks_status: bool,
    /// While room is low, when the engine is asked for its status again.
    status_at: Timestamp,
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

impl Running {
    pub(crate) fn new(
        ledger: Box<dyn Ledger>,
        tenure: Tenure,
        (accounts, landed, keeper): (Accounts, Watermark, Option<Box<dyn Keeper>>),
        (slack_bytes, window): (u64, Option<Window>),
        facts: Header,
    ) -> Self {
        let pending = Pending::new(tenure, ledger.target_bytes(), landed.head, landed.checksum);
        Self {
            ledger,
            tenure,
            slack_bytes,
            accounts,
            pending,
            in_flight: None,
            landed,
            keeper,
            unkept: VecDeque::new(),
            watch: Watch::new(window),
            facts,
            has_ended: false,
            last: Position::default(),
            reached: Position::default(),
            trimming: None,
            compaction: Compaction::default(),
            status: Status { bytes_used: 0, bytes_max: u64::MAX },
            since_status: None,
            asks_status: false,
            status_at: Timestamp::ZERO,
            chores_at: Timestamp::ZERO,
            now: facts.now,
            figures: Figures::default(),
        }
    }

    pub(crate) const fn tenure(&self) -> Tenure {
        self.tenure
    }

    /// The last entry that is known to be in the log.
    pub(crate) const fn watermark(&self) -> Watermark {
        self.landed
    }

    pub(crate) const fn extent(&self) -> Extent {
        Extent { head: self.landed.head.0, applied: self.pending.last().0 }
    }

    pub(crate) const fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(crate) fn append(
        &mut self,
        facts: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        if self.has_ended {
            return Err(StoreError::OutOfOrder { call: "append" });
        }
        let position = Position(self.last.0 + 1);
        let is_urgent = urgency == Urgency::Soon;
        let added = self.pending.add((facts, changes), position, is_urgent, placed);
        if added.bytes > BATCH_BYTES_MAX {
            return Err(StoreError::BatchTooLarge { bytes: added.bytes, most: BATCH_BYTES_MAX });
        }
        self.note_added(position, added);
        self.facts = *facts;
        self.now = self.now.max(facts.now);
        Ok(position)
    }

    /// Notes a batch in the accounts.
    fn note_added(&mut self, position: Position, added: Added) {
        if added.entries == 0 {
            self.accounts.add(added.bytes, added.live);
        } else {
            let (first, entries) = (added.first, added.entries);
            let unit = Unit { first, entries, bytes: added.bytes, live: added.live };
            self.accounts.push(unit);
            self.accounts.note(position);
        }
        self.last = position;
        self.since_status = self.since_status.map(|bytes| bytes + added.bytes);
    }

    pub(crate) fn obsolete(&mut self, place: Place) {
        self.accounts.obsolete(place, self.last);
    }

    pub(crate) fn drive(&mut self, now: Timestamp) -> Result<Position, StoreError> {
        self.now = self.now.max(now);
        while let Some(answer) = self.ledger.poll() {
            self.receive(answer)?;
        }
        self.receive_kept()?;
        self.resolve(false);
        self.send(false);
        self.renew(false);
        self.start_chores();
        Ok(self.reached)
    }

    /// Waits until everything that was appended is in the log. Gives up when the engine has not
    /// answered although it was asked this many times, or a window after the last answer.
    pub(crate) fn finish(&mut self, now: Timestamp, patience: u32) -> Result<(), StoreError> {
        self.drive(now)?;
        let (mut asked, vain_at) = (0, self.watch.vain_at());
        while self.reached < self.last {
            self.send(true);
            if self.is_in_doubt() {
                if asked == patience || self.watch.is_past(vain_at) {
                    let why = "it is not known what became of an entry".to_owned();
                    return Err(StoreError::NoAnswer { why });
                }
                asked += 1;
                self.resolve(true);
                self.renew(true);
            }
            match &mut self.keeper {
                // The next entry is under way meanwhile, if there is one.
                Some(keeper) if self.in_flight.is_none() && !self.unkept.is_empty() => {
                    keeper.wait();
                }
                _ => self.ledger.wait(),
            }
            self.drive(now)?;
        }
        Ok(())
    }

    /// Like [`Running::finish`], and ends the tenure in order, with a note for the next one unless
    /// it is empty.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        note: &[u8],
        patience: u32,
    ) -> Result<(), StoreError> {
        self.finish(now, patience)?;
        if self.has_ended {
            return Ok(());
        }
        self.has_ended = true;
        self.facts.now = self.facts.now.max(now);
        let position = Position(self.last.0 + 1);
        let added = self.pending.end(&self.facts, note, position);
        self.note_added(position, added);
        self.finish(now, patience)
    }

    /// Whether an answer of the engine was lost.
    const fn is_in_doubt(&self) -> bool {
        let is_unknown = matches!(&self.in_flight, Some(InFlight { fate: Fate::Unknown(_), .. }));
        is_unknown || self.watch.is_unknown()
    }

    /// Takes an answer of the engine.
    fn receive(&mut self, answer: Answer) -> Result<(), StoreError> {
        match answer {
            Answer::Appended(Appended::Done) => {
                self.figures.commit_us.record(self.watch.silent_ms() * 1_000);
                self.watch.note_answer();
                self.note_landed();
            }
            Answer::Appended(Appended::Fenced) | Answer::Trimmed(Trimmed::Fenced) => {
                return Err(self.fenced());
            }
            Answer::Appended(Appended::Unknown) => self.note_unknown(self.now),
            Answer::Resolved(resolved) => self.receive_resolved(resolved)?,
            Answer::Appended(Appended::Full) => return Err(StoreError::EngineFull),
            Answer::Appended(Appended::TooLarge) => {
                let entry = self.in_flight.as_ref().map_or(0, |it| it.entry.bytes.len());
                let (bytes, most) = (entry as u64, ENTRY_BYTES_MAX as u64);
                return Err(StoreError::BatchTooLarge { bytes, most });
            }
            Answer::Read(read) => self.receive_read(read)?,
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
                    Ok(status) => {
                        self.status = status;
                        self.status_at = self.now.after(Span::from_ms(STATUS_WHEN_LOW_MS));
                    }
                    Err(_) => self.put_chores_off(),
                }
            }
            Answer::Seized(_) => unreachable!("a log at work is not seized"),
        }
        Ok(())
    }

    const fn fenced(&self) -> StoreError {
        StoreError::Fenced { incarnation: self.tenure.term.0 }
    }

    /// Takes what became of the entry under way or, if there is none, of a renewal.
    fn receive_resolved(&mut self, resolved: Resolved) -> Result<(), StoreError> {
        let is_renewal = self.in_flight.is_none();
        match resolved {
            Resolved::Fenced => return Err(self.fenced()),
            Resolved::Committed => {
                if !is_renewal {
                    self.figures.commit_us.record(self.watch.silent_ms() * 1_000);
                    self.note_landed();
                }
                self.watch.note_answer();
            }
            Resolved::Unknown if is_renewal => self.watch.renew_again(),
            Resolved::Unknown => self.note_unknown(self.now.after(Span::from_ms(AGAIN_MS))),
            // What has landed is gone.
            Resolved::Absent if is_renewal => {
                let found = "a log that ends before it".to_owned();
                return Err(StoreError::RolledBack { expected: self.landed.to_string(), found });
            }
            Resolved::Absent => {
                self.watch.end_silence();
                self.note_absent();
            }
        }
        Ok(())
    }

    /// Notes that the outcome of the entry under way is unknown. The engine is asked at `at`.
    fn note_unknown(&mut self, at: Timestamp) {
        self.figures.unknown += 1;
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.fate = Fate::Unknown(at);
        }
    }

    /// Notes that the entry under way is not in the log, and never will be unless it is sent again.
    fn note_absent(&mut self) {
        self.send_again();
    }

    /// Notes that the entry under way is in the log.
    fn note_landed(&mut self) {
        let Some(InFlight { entry, .. }) = self.in_flight.take() else {
            unreachable!("no entry is under way")
        };
        let Sealed { seq, checksum, .. } = entry;
        self.landed = Watermark { term: self.tenure.term, head: seq, checksum };
        self.figures.writes += 1;
        self.figures.syncs += 1;
        self.figures.batches += entry.contents.batches;
        if entry.contents.batches > 0 {
            self.figures.commit_records.record(entry.contents.records);
        }
        let last = entry.contents.last;
        if let Some(last) = last {
            self.accounts.reached(last);
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(self.landed);
            self.unkept.push_back((seq, last));
            return;
        }
        self.reached = last.unwrap_or(self.reached);
    }

    /// Confirms the batches whose watermarks are kept.
    fn receive_kept(&mut self) -> Result<(), StoreError> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let Some(kept) = keeper.kept()?.filter(|kept| kept.term == self.tenure.term) else {
            return Ok(());
        };
        while let Some(&(seq, last)) = self.unkept.front()
            && seq <= kept.head
        {
            self.reached = last.unwrap_or(self.reached);
            self.unkept.pop_front();
        }
        Ok(())
    }

    /// Asks what became of an entry, if it is unknown and has been for long enough or `at_once`.
    fn resolve(&mut self, at_once: bool) {
        if let Some(in_flight) = &mut self.in_flight
            && let Fate::Unknown(at) = in_flight.fate
            && (at_once || at <= self.now)
        {
            in_flight.fate = Fate::Asked;
            let seq = in_flight.entry.seq;
            self.watch.ask();
            self.ledger.start(Call::Resolve { tenure: self.tenure, seq });
        }
    }

    /// Renews the tenure, if that is due or `at_once` if the last renewal is unknown, and if
    /// nothing is under way that compares the tenure anyway.
    fn renew(&mut self, at_once: bool) {
        let is_due = self.watch.renews_in() == Some(0) || (at_once && self.watch.is_unknown());
        if is_due && self.in_flight.is_none() {
            self.watch.renew();
            self.ledger.start(Call::Resolve { tenure: self.tenure, seq: self.landed.head });
        }
    }

    fn send_again(&mut self) {
        if let Some(in_flight) = &mut self.in_flight {
            self.watch.ask();
            in_flight.fate = Fate::Sent;
            let Sealed { seq, bytes, .. } = in_flight.entry.clone();
            self.ledger.start(Call::Append { tenure: self.tenure, seq, bytes });
        }
    }

    /// Appends the next entry, if none is under way and it is due.
    fn send(&mut self, everything: bool) {
        let is_due = everything || self.pending.is_urgent() || self.lazy_at() <= Some(self.now);
        // A renewal may have raised a bar that an append of now does not know.
        let is_busy = self.in_flight.is_some() || self.watch.is_renewing();
        if is_busy || self.pending.is_empty() || !is_due {
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
        let (next, renewal) = (self.next_at(), self.renewal_at());
        next.into_iter().chain(renewal).chain(self.next_status_at()).min()
    }

    /// When the engine is asked how much room it has, although nothing is appended.
    fn next_status_at(&self) -> Option<Timestamp> {
        let is_due = self.is_low() && !self.asks_status;
        is_due.then(|| self.status_at.max(self.chores_at))
    }

    /// When the tenure has to be renewed. The steady clock says how soon that is. The time line may
    /// be further by now than when it was last reported, so this may be too early, and never too
    /// late.
    fn renewal_at(&self) -> Option<Timestamp> {
        let soon = self.watch.renews_in().filter(|_| self.in_flight.is_none())?;
        Some(self.now.after(Span::from_ms(soon)))
    }

    fn next_at(&self) -> Option<Timestamp> {
        match &self.in_flight {
            Some(InFlight { fate: Fate::Unknown(at), .. }) => return Some(*at),
            None if self.watch.is_renewing() => {}
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

    /// Starts what is due without a waiter.
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
        bytes > 0 && (bytes > self.slack_bytes / 2 || self.is_low())
    }

    fn wants_status(&self) -> bool {
        self.since_status.is_none_or(|bytes| bytes >= STATUS_EVERY_BYTES)
            || self.next_status_at().is_some_and(|at| at <= self.now)
    }

    fn is_low(&self) -> bool {
        self.room() > Room::Enough
    }

    /// How many bytes the log may hold beyond twice those of the records that count. All logs share
    /// the room, so while it is low, each gives up nearly all that it need not hold.
    fn slack(&self) -> u64 {
        let part = if self.is_low() { SLACK_WHEN_LOW } else { 1 };
        self.slack_bytes / part
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
