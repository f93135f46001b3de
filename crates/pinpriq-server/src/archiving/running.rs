//! Decides what is done for an archive when: a cut of all shards as often as it was asked for,
//! which is sent, and what to do when that fails.
//!
//! It reads no clock but the stopwatch that it is given, and never waits except for the place and
//! the shards. How an archive is written is decided by `pinpriq-archive`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_archive::{ArchiveError, Archiver, Concluded, CutInfo, Offered, Place, SourceError};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::journal::raw::at_rest;
use pinpriq_store::journal::{Purpose, Tap, lock};
use pinpriq_store::{RealDisk, Stopwatch, StoreError};

use super::backlog::{Backlog, MEASURE_EVERY};
use super::keeping::{Need, needs_of};
use super::reading::{GoOn, Reading, because, info_of};
use super::upkeep::Upkeep;
use crate::config::ArchiveTo;
use crate::cuts::{CUT_WITHIN, TakeCut};
use crate::facts::archive::Archived;
use crate::stop::Stop;

/// The longest rest between two turns.
const IDLE: Duration = Duration::from_secs(5);

/// How long it is waited for a mark that is under way before anything else is looked at.
const LISTEN: Duration = Duration::from_millis(100);

/// How often the newest mark is looked for.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// After a failure it is tried again after a second, then after two, and so on up to this.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How long the last mark may take.
const FINISH_WITHIN: Duration = Duration::from_secs(14);

/// How often the last mark is tried.
const FINISH_TRIES: u32 = 3;

/// What archiving needs of a server.
pub(super) struct Server {
    /// What is kept of each shard, which began with everything before its journal has begun.
    pub(super) backlog: Arc<Backlog>,
    /// How to ask the journal of each shard.
    pub(super) taps: Vec<Arc<Tap>>,
    /// Where the journal of each shard is.
    pub(super) directories: Arc<[PathBuf]>,
    /// How to ask all shards how far they are.
    pub(super) cut: TakeCut,
    pub(super) passed: Stopwatch,
    pub(super) stop: Stop,
    /// Where it is noted how the archive fares.
    pub(super) archived: Arc<Archived>,
}

/// An archive that is being written.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Running {
    place: Arc<dyn Place>,
    every: Duration,
    archiver: Archiver,
    backlog: Arc<Backlog>,
    taps: Vec<Arc<Tap>>,
    directories: Arc<[PathBuf]>,
    cut: TakeCut,
    passed: Stopwatch,
    stop: Stop,
    archived: Arc<Archived>,
    upkeep: Upkeep,
    /// The cuts that are under way, the oldest first.
    offers: VecDeque<Offer>,
    tokens: u64,
    newest_cut: Option<CutInfo>,
    /// How often it has failed since it worked, and the last cut of those before that.
    failures: u32,
    failed_token: u64,
    due: Duration,
    look_due: Duration,
    measure_due: Duration,
    /// Whether a mark was created.
    has_archived: bool,
    /// Whether it has ended for good.
    is_over: bool,
    told_of_loss: bool,
    told_of_rights: bool,
}

/// A cut that is under way, and what the shards needed themselves then.
struct Offer {
    token: u64,
    at: Timestamp,
    needs: Vec<Need>,
}

impl Running {
    pub(super) fn new(to: &ArchiveTo, place: Arc<dyn Place>, server: Server) -> Self {
        let Server { backlog, taps, directories, cut, passed, stop, archived } = server;
        let with = (Arc::clone(&passed), stop.clone());
        let upkeep = Upkeep::new(to, Arc::clone(&place), Arc::clone(&directories), with);
        let now = passed();
        Self {
            archiver: Archiver::new(Arc::clone(&place)),
            place,
            every: to.every,
            backlog,
            taps,
            directories,
            cut,
            passed,
            stop,
            archived,
            upkeep,
            offers: VecDeque::new(),
            tokens: 0,
            newest_cut: None,
            failures: 0,
            failed_token: 0,
            due: now,
            look_due: now + LOOK_EVERY,
            measure_due: now,
            has_archived: false,
            is_over: false,
            told_of_loss: false,
            told_of_rights: false,
        }
    }

    /// Does what is due. Returns after how long there is more to do.
    pub(super) fn turn(&mut self) -> Duration {
        if self.is_over {
            return IDLE;
        }
        // The journals end soon, and what they have is archived after that.
        let is_stopping = self.stop.is_asked_for();
        let is_busy = self.archiver.under_way() > 0;
        if is_busy {
            let left = self.due.saturating_sub(self.now());
            self.hear(if is_stopping { LISTEN } else { LISTEN.min(left) });
        }
        if !is_stopping {
            self.act();
        }
        let rest = if is_stopping { IDLE } else { self.due.saturating_sub(self.now()) };
        if self.archiver.under_way() > 0 { Duration::ZERO } else { rest.min(IDLE) }
    }

    fn now(&self) -> Duration {
        (self.passed)()
    }

    fn act(&mut self) {
        if self.now() >= self.due {
            // A failure that becomes known now has to be waited out first.
            self.hear(Duration::ZERO);
        }
        if self.is_over {
            return;
        }
        if self.now() >= self.due {
            self.tick();
        } else if self.failures > 0 && self.now() >= self.measure_due {
            self.measure();
        }
        if self.now() >= self.look_due {
            self.look();
        }
        if let Some(newest) = self.archiver.newest().filter(|_| !self.is_over) {
            let may_remove = self.archiver.may_remove();
            self.upkeep.turn((newest, may_remove), &mut self.cut, &self.archived);
        }
    }

    /// Takes a cut, and sends what is new in it.
    fn tick(&mut self) {
        self.due = self.now() + self.every;
        self.tell_loss();
        let Some((at, cuts)) = (self.cut)(Purpose::Archiving) else {
            let within = CUT_WITHIN.as_secs();
            let why = format!(
                "a shard has not said within {within} s how far its journal is: the disk does not \
                 keep up, or has failed"
            );
            return self.fail(&why, false);
        };
        self.measure_due = self.now() + MEASURE_EVERY;
        if self.backlog.measure(&cuts, self.now()) {
            // The next cut has what is left.
            self.due = self.now();
            return;
        }
        let info = info_of(at, &cuts);
        self.newest_cut = Some(info.clone());
        let needs = needs_of(&cuts);
        self.backlog.begin_to_read(cuts);
        match self.offer(info) {
            Ok(Offered::Sending) => {
                let token = self.tokens;
                self.offers.push_back(Offer { token, at, needs });
            }
            Ok(Offered::Nothing) => {
                if self.archiver.under_way() == 0 {
                    self.archived.note_newest(at);
                    self.note_success();
                }
            }
            Err(error) => self.fail_by(&error),
        }
        self.backlog.end_reading();
        self.hear(Duration::ZERO);
    }

    /// Hands over the cut that is read now. That may take long the first time.
    fn offer(&mut self, info: CutInfo) -> Result<Offered, ArchiveError> {
        self.tokens += 1;
        let (token, stop) = (self.tokens, self.stop.clone());
        let (directories, backlog) = (Arc::clone(&self.directories), Arc::clone(&self.backlog));
        // To give up would also give up what is under way, which may be about to be there.
        let may_stop = self.archiver.under_way() == 0;
        let go_on: GoOn<'_> = Box::new(move |shard: usize, _: u32| {
            if may_stop && stop.is_asked_for() {
                return Err(because("the server stops"));
            }
            backlog.check(shard)
        });
        self.archiver.offer(&mut Reading::new(info, directories, go_on), token)
    }

    /// Hears what has become of what is under way, and waits for so long for something.
    fn hear(&mut self, within: Duration) {
        if self.is_over {
            return;
        }
        match self.archiver.concluded(within) {
            Ok(all) => all.iter().for_each(|it| self.conclude(it)),
            Err(error) => self.fail_by(&error),
        }
        if let Some(cut) = self.newest_cut.as_ref().filter(|_| !self.is_over) {
            self.archived.note_missing(self.archiver.missing_bytes(cut));
        }
    }

    /// Notes that a mark was created: what it has need not stay on disk.
    fn conclude(&mut self, done: &Concluded) {
        while self.offers.front().is_some_and(|offer| offer.token <= done.token)
            && let Some(offer) = self.offers.pop_front()
        {
            if offer.token == done.token {
                self.backlog.narrow(&offer.needs, offer.at);
            }
        }
        let Concluded { mark, objects, bytes_read, bytes_sent, .. } = *done;
        tracing::debug!(mark, at = %done.at, objects, bytes_read, bytes_sent, "archived");
        self.archived.note_newest(done.at);
        (self.told_of_loss, self.has_archived) = (false, true);
        // One from before a failure may become known after it.
        if done.token > self.failed_token {
            self.note_success();
        }
        if !self.archiver.may_remove() && !self.told_of_rights {
            self.told_of_rights = true;
            tracing::warn!(
                place = self.place.name(),
                "marks that nobody needs stay in the archive: give the right to remove objects"
            );
        }
    }

    fn note_success(&mut self) {
        self.failures = 0;
        if self.archived.work() {
            tracing::info!(place = self.place.name(), "archiving goes on");
        }
    }

    fn fail_by(&mut self, error: &ArchiveError) {
        self.fail(&error.to_string(), self.is_final(error));
    }

    /// Whether trying again cannot help. A place that has worked may work again, whatever it says:
    /// a certificate has expired, or a proxy is in between.
    fn is_final(&self, error: &ArchiveError) -> bool {
        let may_work_again = self.has_archived && matches!(error, ArchiveError::Place(_));
        error.is_final() && !may_work_again
    }

    /// Gives up what is under way. Tries again later, unless that cannot help.
    fn fail(&mut self, why: &str, is_final: bool) {
        self.offers.clear();
        // What fails while the journals end is tried once more after that.
        if self.stop.is_asked_for() && !is_final {
            return;
        }
        let (place, is_new) = (self.place.name(), self.archived.fail(why));
        if is_final {
            tracing::error!(place, "this server does not archive any more, and goes on: {why}");
            self.is_over = true;
            // From now on it is behind, however little is missing yet.
            let cut = self.newest_cut.as_ref();
            let missing = cut.map_or(0, |cut| self.archiver.missing_bytes(cut));
            self.archived.note_missing(missing.max(1));
            return self.backlog.end();
        }
        let wait = Duration::from_secs(1 << self.failures.min(5)).min(WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        self.failed_token = self.tokens;
        self.due = self.now() + wait;
        if is_new {
            tracing::warn!(place, "cannot archive, and will try again: {why}");
        }
    }

    /// Looks whether too much stays on disk while nothing is archived.
    fn measure(&mut self) {
        self.measure_due = self.now() + MEASURE_EVERY;
        self.tell_loss();
        let Some((at, cuts)) = (self.cut)(Purpose::Archiving) else { return };
        self.backlog.measure(&cuts, self.now());
        let info = info_of(at, &cuts);
        self.archived.note_missing(self.archiver.missing_bytes(&info));
        self.newest_cut = Some(info);
        self.backlog.take_over(cuts);
    }

    /// Warns once if shards have given up what was not archived yet.
    fn tell_loss(&mut self) {
        if self.backlog.is_lost() && !self.told_of_loss {
            self.told_of_loss = true;
            tracing::warn!(
                place = self.place.name(),
                "files that were not archived yet are no longer kept, since the disk is full or \
                 the journal has ended: some moments may be missing in the archive"
            );
        }
    }

    /// Looks whether the newest mark is still there.
    fn look(&mut self) {
        self.look_due = self.now() + LOOK_EVERY;
        if self.archiver.newest().is_none() || self.failures > 0 || self.is_over {
            return;
        }
        match self.archiver.look() {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(
                    place = self.place.name(),
                    "the newest mark of the archive is gone: everything is archived anew"
                );
                self.due = self.now();
            }
            Err(error) => self.fail_by(&error),
        }
    }

    /// Archives what the journals have, which have ended.
    pub(super) fn finish(&mut self) {
        if self.is_over {
            return;
        }
        let place = self.place.name();
        match self.send_rest() {
            Ok(at) => tracing::info!(place, %at, "the archive has everything"),
            Err(error) => tracing::warn!(
                place,
                "the archive lacks the last changes, and the next start archives them: {error}"
            ),
        }
    }

    /// Returns the last moment.
    fn send_rest(&mut self) -> Result<Timestamp, ArchiveError> {
        let until = self.now() + FINISH_WITHIN;
        let _locks = self.lock_all()?;
        let info = self.rest()?;
        let mut tries = 1;
        loop {
            match self.send_all(&info, until) {
                Ok(()) => return Ok(info.at),
                Err(error) => {
                    let is_late = self.now() >= until;
                    if tries >= FINISH_TRIES || is_late || self.is_final(&error) {
                        return Err(error);
                    }
                    tries += 1;
                }
            }
        }
    }

    /// Makes nobody else start on the files meanwhile. Refuses if somebody has.
    fn lock_all(&self) -> Result<Vec<Box<dyn Send>>, SourceError> {
        let mut locks = Vec::new();
        for (directory, tap) in self.directories.iter().zip(&self.taps) {
            // A journal that still exists holds its directory itself.
            if !tap.keep_all().is_lost() {
                continue;
            }
            // What cannot be read is told when it is.
            let Ok(disk) = RealDisk::open_read_only(directory) else { continue };
            match lock(&disk) {
                Ok(lock) => locks.push(lock),
                Err(StoreError::Locked { .. }) => {
                    let directory = directory.display();
                    return Err(because(format!(
                        "another server has begun on these files, in {directory}"
                    )));
                }
                // There are file systems that lock nothing.
                Err(_) => {}
            }
        }
        Ok(locks)
    }

    /// What there is in the journals, which have ended. Of what lies before the newest cut, the
    /// archive has what it needs, or it was given up.
    fn rest(&self) -> Result<CutInfo, SourceError> {
        let failed = |directory: &PathBuf, why: &dyn std::fmt::Display| {
            because(format!("{} cannot be read: {why}", directory.display()))
        };
        let mut at = self.newest_cut.as_ref().map_or(Timestamp::ZERO, |cut| cut.at);
        let mut shards = Vec::new();
        for (shard, directory) in self.directories.iter().enumerate() {
            let found: Result<_, StoreError> = RealDisk::open_read_only(directory)
                .map_err(|error| failed(directory, &error))
                .map(|disk| at_rest(&disk))?;
            let rest = found.map_err(|error| failed(directory, &error))?;
            let mut rest = rest.ok_or_else(|| failed(directory, &"there is no commit"))?;
            let of_cut = self.newest_cut.as_ref().and_then(|cut| cut.shards.get(shard));
            if let Some(first) = of_cut.and_then(|segments| segments.first()) {
                rest.segments.retain(|segment| segment.number >= first.number);
            }
            at = at.max(rest.at);
            shards.push(rest.segments);
        }
        Ok(CutInfo { at, shards })
    }

    /// Sends a cut, and waits until its mark is there.
    fn send_all(&mut self, info: &CutInfo, until: Duration) -> Result<(), ArchiveError> {
        let (passed, directories) = (Arc::clone(&self.passed), Arc::clone(&self.directories));
        let late = || because("it takes too long");
        let go_on: GoOn<'_> =
            Box::new(|_: usize, _: u32| if passed() < until { Ok(()) } else { Err(late()) });
        self.tokens += 1;
        self.archiver.offer(&mut Reading::new(info.clone(), directories, go_on), self.tokens)?;
        while self.archiver.under_way() > 0 {
            let left = until.saturating_sub(passed());
            if left.is_zero() {
                return Err(late().into());
            }
            self.archiver.concluded(left)?;
        }
        // A failure is told after the marks that came before it.
        while !self.archiver.concluded(Duration::ZERO)?.is_empty() {}
        Ok(())
    }
}
