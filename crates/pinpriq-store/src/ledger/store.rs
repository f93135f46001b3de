//! The store of one shard on a fenced log.
//!
//! Loading seizes the log and reads it. From then on no other store appends, or this store fails
//! with [`StoreError::Fenced`]: then its engine must be dropped, since another one is ahead of it.
//! The term of the tenure is the incarnation.
//!
//! It keeps no payload out of memory. Which node serves a shard is decided elsewhere.

use std::cmp::Ordering;

use crate::codec::Names;
use crate::shards::number_beyond_lost;
use crate::{
    Extent, Figures, Loaded, Position, Progress, Reclaims, Rewrite, Room, Shortage, Store,
    StoreError, TaskCounts, Urgency,
};
use pinpriq_proto::carried::Carried;
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::records::Malformed;
use pinpriq_proto::records::primitives::end;
use pinpriq_proto::time::Timestamp;

use crate::ledger::accounts::Accounts;
use crate::ledger::batch::read_changes;
use crate::ledger::interface::{Answer, Call, Ledger, Seized, Seq, Tenure, Term, Unreachable};
use crate::ledger::keeper::Keeper;
use crate::ledger::reader::{Reader, Whole, damage};
use crate::ledger::running::Running;
use crate::ledger::watermark::{Found, Watermark};
use crate::ledger::window::Window;

/// How many bytes are read at a time while a log is loaded.
const READ_BYTES: usize = 4 << 20;

/// How often an engine that does not answer is asked before a call that waits gives up.
pub(crate) const PATIENCE: u32 = 20;

/// How a log is used.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The lowest term to begin. It must be above every term that this process has had of the log:
    /// an engine that was rolled back would begin such a term again, and what the process has sent
    /// for it long ago could still come.
    pub at_least: Term,
    /// How many bytes the log may hold beyond twice those of the records that count.
    pub slack_bytes: u64,
    /// Makes every task number higher than this one, as for one of several shards.
    pub numbers_after: u64,
    /// Until when answers may leave after the engine was asked. Without a window they always may.
    pub window: Option<Window>,
    /// What is known to be in the log. A log that has lost it is refused, unless its loss was
    /// accepted since: the watermark is of an earlier generation than `at_least`.
    pub watermark: Option<Watermark>,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        let (at_least, window, watermark) = (Term(0), None, None);
        Self { at_least, slack_bytes: 8 << 20, numbers_after: 0, window, watermark }
    }
}

/// See the start of this file.
///
/// After the first failure every call fails, and the log has to be loaded anew with another store.
/// What was appended and not reached may be in the log or not.
///
/// The calls that wait end, also if the engine cannot be reached: they give up after asking 20
/// times in vain, and a call that begins, finishes or closes also once its window is over. Each
/// question takes as long as the engine bounds it: see [`Ledger::wait`].
pub struct LedgerStore {
    options: LedgerOptions,
    keeper: Option<Box<dyn Keeper>>,
    stage: Stage,
    failure: Option<StoreError>,
    /// What is left to the next tenure.
    note: Vec<u8>,
}

enum Stage {
    /// Nothing was seized yet.
    Opened(Box<dyn Ledger>),
    /// The log was seized and read.
    Loaded(Box<dyn Ledger>, LoadedLog),
    /// The incarnation has begun.
    Running(Box<Running>),
    /// A step has failed half way.
    Broken,
}

/// What loading leaves to the rest of the tenure.
struct LoadedLog {
    tenure: Tenure,
    accounts: Accounts,
    last: Watermark,
}

impl LedgerStore {
    /// The store of the shard whose log this is. Asks nothing yet.
    #[must_use]
    pub fn new(ledger: Box<dyn Ledger>, options: LedgerOptions) -> Self {
        let stage = Stage::Opened(ledger);
        Self { options, keeper: None, stage, failure: None, note: Vec::new() }
    }

    /// Has the watermark kept from now on: a batch is confirmed only once the one behind it is.
    #[must_use]
    pub fn keeping(mut self, keeper: Box<dyn Keeper>) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// The tenure, once the log was seized.
    #[must_use]
    pub fn tenure(&self) -> Option<Tenure> {
        match &self.stage {
            Stage::Opened(_) | Stage::Broken => None,
            Stage::Loaded(_, log) => Some(log.tenure),
            Stage::Running(running) => Some(running.tenure()),
        }
    }

    /// The last entry that the engine has said to be in the log, once the log was loaded. Keep it
    /// where no engine can roll it back, and give it to the next load: see
    /// [`LedgerOptions::watermark`].
    #[must_use]
    pub const fn watermark(&self) -> Option<Watermark> {
        match &self.stage {
            Stage::Opened(_) | Stage::Broken => None,
            Stage::Loaded(_, log) => Some(log.last),
            Stage::Running(running) => Some(running.watermark()),
        }
    }

    /// Runs one step, and remembers its failure for good.
    fn attempt<T>(
        &mut self,
        call: &'static str,
        step: impl FnOnce(&mut Running) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(cause) = &self.failure {
            return Err(StoreError::Poisoned { cause: Box::new(cause.clone()) });
        }
        let Stage::Running(running) = &mut self.stage else {
            return Err(StoreError::OutOfOrder { call });
        };
        let result = step(running);
        if let Err(error) = &result {
            self.failure = Some(error.clone());
        }
        result
    }

    const fn running(&self) -> Option<&Running> {
        match &self.stage {
            Stage::Running(running) => Some(running),
            _ => None,
        }
    }
}

impl Store for LedgerStore {
    fn may_be_taken_over(&self) -> bool {
        true
    }

    fn answers_until(&self) -> Option<u64> {
        // Before the first append nothing was asked.
        let not_yet = self.options.window.as_ref().map(|_| 0);
        self.running().map_or(not_yet, |running| running.watch().until())
    }

    fn extent(&self) -> Option<Extent> {
        self.running().map(Running::extent)
    }

    fn is_suspended(&self) -> bool {
        let not_yet = self.options.window.is_some();
        self.running().map_or(not_yet, |running| running.watch().is_over())
    }

    fn is_down(&self) -> bool {
        self.running().is_some_and(|running| running.watch().is_down())
    }

    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        let Stage::Opened(mut ledger) = std::mem::replace(&mut self.stage, Stage::Broken) else {
            return Err(StoreError::OutOfOrder { call: "load" });
        };
        let known = self.options.watermark;
        // No term that was had before is begun again, even if the engine has lost it.
        let at_least = known.map_or(0, |known| known.term.0.saturating_add(1));
        let at_least = self.options.at_least.max(Term(at_least));
        let known = known.filter(|it| it.term.generation() >= at_least.generation());
        let seized = seize(&mut *ledger, at_least)?;
        let mut found = Found { head: seized.head, ..Found::default() };
        if let Some(known) = known.filter(|known| found.head < known.head) {
            known.compare(&found)?;
        }
        // The caller begins the incarnation after the one that it reads here: the term.
        let incarnation = seized.tenure.term.0 - 1;
        let last_number = self.options.numbers_after;
        let header = Header { incarnation, last_number, ..Header::default() };
        let mut loading = Loading::new(header, sink);
        let mut reader = Reader::default();
        let mut next = seized.first;
        while next <= seized.head {
            let entries = read(&mut *ledger, next)?;
            if entries.is_empty() {
                return Err(damage(next, "it is gone".to_owned()));
            }
            for (seq, bytes) in entries {
                next = Seq(seq.0 + 1);
                if seq <= seized.head {
                    reader.take(seq, &bytes)?.into_iter().try_for_each(|it| loading.take(it))?;
                    found.note(known, &reader, seq);
                }
            }
        }
        if let Some(known) = known {
            known.compare(&found)?;
        }
        reader.finish().into_iter().try_for_each(|void| loading.take(void))?;
        let Loading { mut loaded, accounts, .. } = loading;
        let has_ended = reader.has_ended();
        loaded.is_takeover = seized.head > Seq(0) && !has_ended;
        let carried = reader.note().map(read_note).transpose();
        loaded.carried = carried.map_err(|why| damage(seized.head, format!("its note: {why}")))?;
        let is_new_generation = reader.term().generation() < seized.tenure.term.generation();
        if is_new_generation {
            // The numbers that the log had given before the roll-back are unknown.
            let number = &mut loaded.header.last_number;
            *number = number_beyond_lost(*number);
        }
        let (tenure, head, checksum) = (seized.tenure, seized.head, reader.checksum());
        let last = Watermark { term: tenure.term, head, checksum };
        self.stage = Stage::Loaded(ledger, LoadedLog { tenure, accounts, last });
        Ok(loaded)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        let Stage::Loaded(ledger, log) = std::mem::replace(&mut self.stage, Stage::Broken) else {
            return Err(StoreError::OutOfOrder { call: "begin" });
        };
        let LoadedLog { tenure, accounts, last } = log;
        assert_eq!(header.incarnation, tenure.term.0, "the incarnation is the term");
        let options = (self.options.slack_bytes, self.options.window.clone());
        let known = (accounts, last, self.keeper.take());
        let running = Running::new(ledger, tenure, known, options, *header);
        self.stage = Stage::Running(Box::new(running));
        // This entry also voids a batch that the tenure before has left incomplete.
        self.attempt("begin", |running| {
            running.append(header, &[], Urgency::Soon, &mut |_, _| {})?;
            running.finish(header.now, PATIENCE)
        })
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        self.attempt("append", |running| running.append(header, changes, urgency, placed))
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.attempt("drive", |running| Ok(Progress { reached: running.drive(now)? }))
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.running().filter(|_| self.failure.is_none())?.poll_timeout()
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.attempt("finish", |running| running.finish(now, PATIENCE))
    }

    fn leave(&mut self, carried: &Carried) {
        self.note.clear();
        if !carried.is_empty() {
            carried.put_in(&mut self.note);
        }
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let note = std::mem::take(&mut self.note);
        self.attempt("close", |running| running.end(now, &note, PATIENCE))
    }

    fn pending_bytes(&self) -> u64 {
        self.running().map_or(0, Running::pending_bytes)
    }

    fn figures(&self) -> Figures {
        self.running().map_or_else(Figures::default, Running::figures)
    }
}

impl Reclaims for LedgerStore {
    fn obsolete(&mut self, place: Place) {
        match &mut self.stage {
            Stage::Loaded(_, log) => log.accounts.obsolete(place, Position::default()),
            Stage::Running(running) => running.obsolete(place),
            Stage::Opened(_) | Stage::Broken => {}
        }
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        match &mut self.stage {
            Stage::Running(running) if self.failure.is_none() => running.poll_rewrite(),
            _ => Vec::new(),
        }
    }

    fn room(&mut self, _tasks: &dyn Fn() -> TaskCounts) -> Room {
        self.running().map_or(Room::Enough, Running::room)
    }

    fn shortage(&self) -> Shortage {
        Shortage::Engine
    }
}

/// Reads the note of the last tenure.
fn read_note(note: &[u8]) -> Result<Carried, Malformed> {
    let mut rest = note;
    let carried = Carried::take_from(&mut rest)?;
    end(rest)?;
    Ok(carried)
}

/// The state of a load.
pub(crate) struct Loading<'s> {
    pub(crate) loaded: Loaded,
    accounts: Accounts,
    names: Names,
    sink: &'s mut dyn FnMut(Change, Option<Place>),
}

impl<'s> Loading<'s> {
    /// Begins with what is known of the log without reading it.
    pub(crate) fn new(header: Header, sink: &'s mut dyn FnMut(Change, Option<Place>)) -> Self {
        let loaded = Loaded { header, ..Loaded::default() };
        Self { loaded, accounts: Accounts::default(), names: Names::default(), sink }
    }

    /// Passes the changes of a whole on.
    pub(crate) fn take(&mut self, whole: Whole) -> Result<(), StoreError> {
        let Whole { mut unit, term, body } = whole;
        let Self { loaded, accounts, names, sink } = self;
        loaded.bytes += unit.bytes;
        if let Some(body) = body {
            let mut live = 0;
            let mut note = |facts: crate::ledger::batch::Facts| {
                loaded.batches += 1;
                loaded.records += facts.records;
                loaded.header.now = loaded.header.now.max(facts.header.now);
                loaded.header.last_number = loaded.header.last_number.max(facts.header.last_number);
            };
            let mut pass = |change: Change, place: Option<Place>| {
                live += place.map_or(0, |place| u64::from(place.length.get()));
                sink(change, place);
            };
            read_changes((term, unit.first, &body), names, &mut note, &mut pass)
                .map_err(|malformed| damage(unit.first, malformed.to_string()))?;
            unit.live = live;
        }
        accounts.push(unit);
        Ok(())
    }
}

impl Found {
    /// Notes what concerns a watermark in the entry that was read last.
    fn note(&mut self, known: Option<Watermark>, reader: &Reader, seq: Seq) {
        let Some(known) = known else { return };
        match seq.cmp(&known.head) {
            Ordering::Less => {}
            Ordering::Equal => self.checksum = Some(reader.checksum()),
            Ordering::Greater => self.next_term = self.next_term.or_else(|| Some(reader.term())),
        }
    }
}

/// Seizes the log. Waits for the engine.
pub(crate) fn seize(ledger: &mut dyn Ledger, at_least: Term) -> Result<Seized, StoreError> {
    ask(ledger, &Call::Seize { at_least }, |answer| match answer {
        Answer::Seized(seized) => seized,
        other => unreachable!("a seizure was answered by {other:?}"),
    })
}

/// Reads entries from `from` on. There are none if that one is not there, or no longer. Waits
/// for the engine.
pub(crate) fn read(ledger: &mut dyn Ledger, from: Seq) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
    ask(ledger, &Call::Read { from, bytes: READ_BYTES }, |answer| match answer {
        Answer::Read(entries) => entries,
        other => unreachable!("a read was answered by {other:?}"),
    })
}

/// Asks the engine until it answers, a bounded number of times.
pub(crate) fn ask<T>(
    ledger: &mut dyn Ledger,
    call: &Call,
    result: impl Fn(Answer) -> Result<T, Unreachable>,
) -> Result<T, StoreError> {
    let mut why = String::new();
    for _ in 0..PATIENCE {
        ledger.start(call.clone());
        let answer = loop {
            match ledger.poll() {
                Some(answer) => break answer,
                None => ledger.wait(),
            }
        };
        match result(answer) {
            Ok(result) => return Ok(result),
            Err(unreachable) => why = unreachable.why,
        }
    }
    Err(StoreError::NoAnswer { why })
}
