//! Records what the store was given, independently of it, and what may be left of that after a
//! crash.
//!
//! [`Watched`] sits between the server and its journal and records every batch in a [`Book`]. After
//! a crash the log must hold the state after some batch, at or after the last one that the store
//! called durable or whose effects a client was sent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::faulty_disk::FaultyDisk;
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::task::{State, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::store::INTERVAL_MS;
use pinpriq_store::{
    Figures, Fold, Journal, Loaded, Position, Progress, ReadJob, Reclaims, Rewrite, Room, Store,
    StoreError, TaskCounts, Urgency, Volume,
};

use crate::sim::archive::first_commit;
use crate::sim::bugs::Bug;
use crate::sim::oracle::Oracle;

/// What of the log must survive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Survives {
    /// Everything that was handed to the operating system.
    Written,
    /// Everything that was synced.
    Synced,
}

/// A record of every batch; see the module documentation.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Book {
    /// The state before `batches`.
    base: Fold,
    batches: VecDeque<(u64, Vec<Change>)>,
    /// The state after all batches.
    pub(crate) current: Fold,
    /// The last batch that anybody may have to wait for.
    pub(crate) awaited: u64,
    /// The last batch that changed which tasks a take may receive, except by adding tasks.
    stirred: u64,
    /// The batch in which each existing task was put.
    put_in: BTreeMap<u64, u64>,
    /// The tasks that were delivered and not started, which the store knows as ready.
    unstarted: BTreeSet<u64>,
    /// Those that were called back since the last batch. One that has expired is gone at once, and
    /// concerned nobody but its holder.
    recalled: BTreeSet<u64>,
    last_number: u64,
    /// The batches that the store reported as having reached their level, and when.
    reached: VecDeque<(Timestamp, u64)>,
    /// When the store last had nothing left to do.
    idle_at: Timestamp,
    /// The last batch whose effects were sent to a client.
    pub(crate) told: u64,
    /// Whether a reply means the operating system rather than the disk.
    pub(crate) interval: bool,
    pub(crate) is_low: bool,
    /// Whether every batch since the start is kept: at level `interval` a damaged log may end
    /// before any of them, since no later batch may say that it was synced.
    pub(crate) keeps_all: bool,
    /// No batch before this one may be missing after the crash.
    floor: u64,
    /// States that starts since the last crash have read, with the batches that they appended.
    starts: Vec<(Fold, Vec<Vec<Change>>)>,
    is_starting: bool,
    /// Whether no server has started since the last crash.
    is_down: bool,
    freed: Vec<Place>,
    /// The places in batches that have not reached their level.
    unreached: VecDeque<(u64, Vec<Place>)>,
}

impl Book {
    fn append(&mut self, position: u64, changes: &[Change], urgency: Urgency) {
        for change in changes {
            self.note_takes(position, change);
            self.current.apply(change, None, &mut self.freed);
        }
        self.freed.clear();
        self.recalled.clear();
        if urgency == Urgency::Soon {
            self.awaited = position;
        }
        match self.starts.last_mut().filter(|_| self.is_starting) {
            Some((_, batches)) => batches.push(changes.to_vec()),
            None => self.batches.push_back((position, changes.to_vec())),
        }
    }

    /// Notes what later takes have to wait for, given a change that is about to be applied.
    fn note_takes(&mut self, position: u64, change: &Change) {
        if let Some(number) = self.taken_by(change) {
            self.unstarted.remove(&number);
            return;
        }
        let known = |number: &u64| self.current.tasks.get(number).map(|(task, _)| task);
        let was_taken = |number: &u64| {
            let is_taken = |task: &TaskRecord| matches!(task.progress.state, State::Taken(_));
            self.unstarted.contains(number) || known(number).is_some_and(is_taken)
        };
        let stirs = match change {
            Change::Schedule(_)
            | Change::ScheduleMoved(_)
            | Change::ScheduleGone(_)
            | Change::Detail(_)
            | Change::DetailGone(..) => false,
            Change::Task(task) => {
                if let Some((known, _)) = self.current.tasks.get(&task.number) {
                    // The store moves a record, or a client has changed the task.
                    let is_ready_again = task.progress.state == State::Ready;
                    if was_taken(&task.number) { is_ready_again } else { *known != **task }
                } else {
                    let is_new = task.number > self.last_number;
                    self.last_number = self.last_number.max(task.number);
                    self.put_in.insert(task.number, position);
                    !is_new
                }
            }
            Change::Moved(moved) => {
                !was_taken(&moved.number) || moved.progress.state == State::Ready
            }
            Change::Gone(number) => {
                let stirs = !was_taken(number) && !self.recalled.contains(number);
                self.put_in.remove(number);
                stirs
            }
            // The store moves a record.
            Change::Queue(queue) => !is_known(&self.current.queues, &queue.name, queue),
            Change::Lane(lane) => !is_known(&self.current.lanes, &lane.number, lane),
            Change::Member(member) => !is_known(&self.current.members, &member.incarnation, member),
            Change::Published(publication, _) => {
                !is_known(&self.current.publications, &publication.first, publication)
            }
            _ => true,
        };
        if stirs {
            self.stirred = position;
        }
    }

    /// The task that this change gives to a client, where it does.
    fn taken_by(&self, change: &Change) -> Option<u64> {
        match change {
            Change::Granted(granted) => Some(granted.number),
            // A take of a queue that notes attempts.
            Change::Moved(moved) if matches!(moved.progress.state, State::Taken(_)) => {
                let (task, _) = self.current.tasks.get(&moved.number)?;
                (task.progress.state == State::Ready).then_some(moved.number)
            }
            _ => None,
        }
    }

    /// Notes a delivery: that of a task which is not started is in no batch.
    pub(crate) fn note_delivered(&mut self, task: &TaskRecord) {
        match task.progress.state {
            State::Taken(lease) if lease.is_unstarted() => self.unstarted.insert(task.number),
            _ => self.unstarted.remove(&task.number),
        };
    }

    /// Notes that a delivery was called back.
    pub(crate) fn note_recalled(&mut self, number: u64) {
        self.unstarted.remove(&number);
        self.recalled.insert(number);
    }

    /// The batch that a take of these tasks has to wait for.
    pub(crate) fn needs_of_take(&self, numbers: &[u64]) -> u64 {
        let puts = numbers.iter().filter_map(|number| self.put_in.get(number)).copied();
        puts.chain([self.stirred]).max().unwrap_or(0)
    }

    /// Whether the record at this place can be read back.
    pub(crate) fn is_readable(&self, place: Place) -> bool {
        !self.unreached.iter().any(|(_, places)| places.contains(&place))
    }

    fn note_reached(&mut self, position: u64, now: Timestamp) {
        while self.unreached.front().is_some_and(|(own, _)| *own <= position) {
            self.unreached.pop_front();
        }
        if self.reached.back().is_none_or(|(_, last)| *last < position) {
            self.reached.push_back((now, position));
        }
        // What a crash may still remove is kept.
        while let Some((at, position)) = self.reached.front().copied() {
            // The last write cannot be distinguished from an unfinished one: see
            // `last_write_may_be_lost`.
            let is_certain = !self.interval || (self.is_synced(at) && !self.keeps_all);
            if self.reached.len() <= 2 || !is_certain {
                return;
            }
            self.reached.pop_front();
            self.advance_base(position);
        }
    }

    fn advance_base(&mut self, position: u64) {
        while self.batches.front().is_some_and(|(at, _)| *at <= position) {
            let Some((_, changes)) = self.batches.pop_front() else { return };
            for change in &changes {
                self.base.apply(change, None, &mut self.freed);
            }
            self.freed.clear();
        }
    }

    /// Whether what was written at a moment is synced at level `interval`. That happens every 50
    /// ms, as long as the disk responds.
    fn is_synced(&self, at: Timestamp) -> bool {
        at.after(Span::from_ms(2 * INTERVAL_MS)) <= self.idle_at
    }

    /// The batch that must have survived a crash.
    fn floor(&self, survives: Survives) -> u64 {
        if self.interval && survives == Survives::Synced {
            let mut reached = self.reached.iter().rev();
            let synced = reached.find(|(at, _)| self.is_synced(*at));
            return synced.map_or(0, |(_, position)| *position);
        }
        self.reached.back().map_or(0, |(_, position)| *position).max(self.told)
    }

    /// Checks that the log reads as it may after a crash. Batches appended from now on belong to a
    /// start that may still fail.
    fn check_recovered(&mut self, loaded: &Fold) -> Result<(), String> {
        let floor = self.floor;
        let mut found = self.could_recover(loaded);
        for (start, batches) in &self.starts {
            let mut state = start.clone();
            found |= are_same(&state, loaded);
            for change in batches.iter().flatten() {
                state.apply(change, None, &mut self.freed);
                found |= are_same(&state, loaded);
            }
        }
        if !found {
            return Err(format!(
                "what was recovered is not the state after any batch from {floor} on. Compared \
                 with the state after that one: {}; after the last: {}",
                difference(&self.after(floor), loaded),
                difference(&self.after(u64::MAX), loaded)
            ));
        }
        self.starts.push((loaded.clone(), Vec::new()));
        self.is_starting = true;
        self.unreached.clear();
        Ok(())
    }

    /// Whether a crash could have left a log that reads like this.
    pub(crate) fn could_recover(&self, loaded: &Fold) -> bool {
        self.is_after(self.floor, loaded)
    }

    fn is_after(&self, floor: u64, loaded: &Fold) -> bool {
        let mut state = self.base.clone();
        let mut freed = Vec::new();
        for (position, changes) in &self.batches {
            if *position > floor && are_same(&state, loaded) {
                return true;
            }
            for change in changes {
                state.apply(change, None, &mut freed);
            }
        }
        are_same(&state, loaded)
    }

    /// The state after a batch.
    fn after(&self, position: u64) -> Fold {
        let (mut state, mut freed) = (self.base.clone(), Vec::new());
        let batches = self.batches.iter().take_while(|(at, _)| *at <= position);
        for change in batches.flat_map(|(_, changes)| changes) {
            state.apply(change, None, &mut freed);
        }
        state
    }

    /// Whether a damaged log may read like this. Damage in the last write cannot be distinguished
    /// from an unfinished write.
    pub(crate) fn last_write_may_be_lost(&self, loaded: &Fold) -> bool {
        let floor = if self.interval {
            0
        } else {
            let mut reached = self.reached.iter().rev();
            reached.nth(1).map_or(0, |(_, position)| *position)
        };
        self.is_after(floor, loaded)
    }

    /// Forgets what is not needed.
    pub(crate) fn tidy(&mut self) {
        self.base.forget_unshared(&mut self.freed);
        self.current.forget_unshared(&mut self.freed);
        self.freed.clear();
    }

    /// Notes that the server is down. `survives` determines what must be left.
    pub(crate) fn went_down(&mut self, survives: Survives) {
        let floor = self.floor(survives);
        // A failed start may lose more than the crash before it, and restores nothing.
        self.floor = if self.is_down { self.floor.min(floor) } else { floor };
        (self.is_down, self.is_starting) = (true, false);
    }

    /// Notes that the server is down after it has made everything durable.
    pub(crate) fn finished(&mut self) {
        self.told = self.batches.back().map_or(self.told, |(position, _)| *position);
    }

    /// Notes that the server has started with the state that was checked last. Returns that state.
    pub(crate) fn started(&mut self) -> Fold {
        let (base, batches) = self.starts.pop().unwrap_or_default();
        let interval = self.interval;
        let (awaited, is_low, keeps_all) = (self.awaited, self.is_low, self.keeps_all);
        let reached = std::mem::take(&mut self.reached);
        let current = std::mem::take(&mut self.current);
        *self = Self { current, awaited, reached, interval, is_low, keeps_all, ..Self::default() };
        self.base = base.clone();
        let changes = batches.into_iter().flatten();
        self.batches = changes.map(|change| (1, vec![change])).collect();
        base
    }
}

/// Whether this is the record under this key.
fn is_known<K: Ord, T: PartialEq>(
    records: &BTreeMap<K, (T, Option<Place>)>,
    key: &K,
    record: &T,
) -> bool {
    records.get(key).is_some_and(|(known, _)| known == record)
}

/// Whether two states are equivalent. Publications without copies do not count, nor what is in the
/// lanes of members that have ended, which will be cleaned up.
pub(crate) fn are_same(one: &Fold, other: &Fold) -> bool {
    one == other || without_dead(one) == without_dead(other)
}

fn without_dead(fold: &Fold) -> Fold {
    let mut fold = fold.clone();
    let ended = |lane: u64| {
        let member = fold.lanes.get(&lane).and_then(|(lane, _)| fold.members.get(&lane.member));
        member.is_none_or(|(member, _)| member.ended)
    };
    let is_dead = |task: &TaskRecord| task.lane.as_ref().is_some_and(|lane| ended(lane.number));
    let dead = fold.tasks.values().filter(|(task, _)| is_dead(task));
    let dead: BTreeSet<u64> = dead.map(|(task, _)| task.number).collect();
    fold.tasks.retain(|number, _| !dead.contains(number));
    fold.forget_unshared(&mut Vec::new());
    fold
}

/// Describes briefly where two states differ.
pub(crate) fn difference(expected: &Fold, read: &Fold) -> String {
    for (number, (task, _)) in &expected.tasks {
        match read.tasks.get(number) {
            None => return format!("task {number} is missing: {task:?}"),
            Some((other, _)) if other != task => {
                return format!("task {number} is {other:?} and should be {task:?}");
            }
            Some(_) => {}
        }
    }
    for (number, (task, _)) in &read.tasks {
        if !expected.tasks.contains_key(number) {
            return format!("task {number} should not be there: {task:?}");
        }
    }
    if expected.queues != read.queues {
        return format!("queues {:?} should be {:?}", read.queues, expected.queues);
    }
    if expected.lanes != read.lanes {
        return format!("lanes {:?} should be {:?}", read.lanes, expected.lanes);
    }
    if expected.members != read.members {
        return format!("members {:?} should be {:?}", read.members, expected.members);
    }
    if expected.schedules != read.schedules {
        return format!("schedules {:?} should be {:?}", read.schedules, expected.schedules);
    }
    if expected.details != read.details {
        return format!("details {:?} should be {:?}", read.details, expected.details);
    }
    format!("publications {:?} should be {:?}", read.publications, expected.publications)
}

/// A journal that is watched.
pub(crate) struct Watched {
    pub(crate) journal: Rc<RefCell<Journal>>,
    pub(crate) oracle: Rc<RefCell<Oracle>>,
    /// Where the journal is.
    pub(crate) disk: FaultyDisk,
    /// What was read at the start.
    pub(crate) loaded: Rc<RefCell<Fold>>,
    pub(crate) bug: Option<Bug>,
}

/// A volume of a journal that is watched. Any holder may read it at any time.
struct WatchedVolume {
    volume: Arc<dyn Volume>,
    unreadable: Arc<AtomicBool>,
}

impl Volume for WatchedVolume {
    fn read(&self, place: Place) -> Result<Change, StoreError> {
        let read = self.volume.read(place);
        self.unreadable.fetch_or(read.is_err(), Ordering::Relaxed);
        read
    }
}

impl Watched {
    /// Notes a failed read. What was written must be readable, so a report of damage means a look
    /// in the wrong place.
    fn note_read<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::Corrupt { .. }) = &done {
            panic!("a journal at work is called damaged: {error}");
        }
        self.oracle.borrow_mut().failed |= done.is_err();
        done
    }

    /// Notes which commits a start has found, and that it has read what they lead to.
    fn note_begun(&self, incarnation: u64) {
        let oracle = &mut *self.oracle.borrow_mut();
        let Some(chronicle) = &mut oracle.chronicle else { return };
        let Some(first) = first_commit(&self.disk.files(), incarnation) else {
            panic!("incarnation {incarnation} has begun without a segment")
        };
        chronicle.go_on_at(first);
        let (known, loaded) = (chronicle.latest(), self.loaded.borrow());
        assert!(
            are_same(&known, &loaded),
            "the log goes on with commit {first} and not with the state before it: {}",
            difference(&known, &loaded)
        );
    }
}

impl Store for Watched {
    fn load(&mut self, sink: &mut dyn FnMut(Change, Option<Place>)) -> Result<Loaded, StoreError> {
        let mut fold = Fold::new();
        let mut freed = Vec::new();
        let mut changes = Vec::new();
        let loaded = self.journal.borrow_mut().load(&mut |change, place| {
            fold.apply(&change, None, &mut freed);
            freed.clear();
            if self.bug.is_some() {
                changes.push((change, place));
            } else {
                sink(change, place);
            }
        })?;
        if let Some(bug) = self.bug {
            spoil_load(bug, &mut changes);
            for (change, place) in changes {
                sink(change, place);
            }
        }
        self.loaded.replace(fold);
        Ok(loaded)
    }

    fn begin(&mut self, header: &Header) -> Result<(), StoreError> {
        {
            let book = &mut self.oracle.borrow_mut().book;
            let loaded = self.loaded.borrow();
            if let Err(wrong) = book.check_recovered(&loaded) {
                panic!("{wrong}");
            }
            book.current = loaded.clone();
            (book.awaited, book.told) = (0, 0);
            book.reached.clear();
        }
        let begun = self.journal.borrow_mut().begin(header);
        if begun.is_ok() {
            self.note_begun(header.incarnation);
        }
        begun
    }

    fn append(
        &mut self,
        header: &Header,
        changes: &[Change],
        urgency: Urgency,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Result<Position, StoreError> {
        let spoilt = spoil_append(self.bug, changes);
        let given = spoilt.as_deref().unwrap_or(changes);
        let mut noted = Vec::new();
        let mut note = |index, place| {
            noted.push(place);
            placed(index, place);
        };
        let appended = self.journal.borrow_mut().append(header, given, urgency, &mut note);
        self.oracle.borrow_mut().failed |= appended.is_err();
        if let Ok(position) = &appended {
            let oracle = &mut *self.oracle.borrow_mut();
            oracle.trail.note(|| format!("  batch {} {urgency:?}: {changes:?}", position.0));
            oracle.book.append(position.0, changes, urgency);
            if let Some(chronicle) = &mut oracle.chronicle {
                chronicle.append(position.0, header, changes);
            }
            if !oracle.book.is_starting {
                oracle.book.unreached.push_back((position.0, noted));
            }
            oracle.learn_ids(changes);
            if urgency == Urgency::Soon {
                oracle.tag();
            }
        }
        appended
    }

    fn drive(&mut self, now: Timestamp) -> Result<Progress, StoreError> {
        self.oracle.borrow_mut().tag();
        let driven = self.journal.borrow_mut().drive(now);
        self.oracle.borrow_mut().failed |= driven.is_err();
        let progress = driven?;
        let book = &mut self.oracle.borrow_mut().book;
        if !book.is_starting {
            book.note_reached(progress.reached.0, now);
        }
        if !self.journal.borrow().is_waiting() {
            book.idle_at = now;
        }
        if self.bug == Some(Bug::EarlyAck) {
            return Ok(Progress { reached: Position(book.awaited.max(progress.reached.0)) });
        }
        Ok(progress)
    }

    fn has_cut_request(&self) -> bool {
        self.journal.borrow().has_cut_request()
    }

    fn note_cuts(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let noted = self.journal.borrow_mut().note_cuts(now);
        self.oracle.borrow_mut().failed |= noted.is_err();
        noted
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.journal.borrow().poll_timeout()
    }

    fn is_gathering(&self) -> bool {
        self.journal.borrow().is_gathering()
    }

    fn end_gathering(&mut self) {
        self.journal.borrow_mut().end_gathering();
    }

    fn is_outpaced(&self) -> bool {
        self.journal.borrow().is_outpaced()
    }

    fn finish(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let finished = self.journal.borrow_mut().finish(now);
        self.oracle.borrow_mut().failed |= finished.is_err();
        finished
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let closed = self.journal.borrow_mut().close(now);
        self.oracle.borrow_mut().failed |= closed.is_err();
        closed
    }

    fn figures(&self) -> Figures {
        self.journal.borrow().figures()
    }
}

impl Reclaims for Watched {
    fn obsolete(&mut self, place: Place) {
        self.journal.borrow_mut().obsolete(place);
    }

    fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.journal.borrow_mut().poll_rewrite()
    }

    fn hold(&mut self, place: Place) -> Result<Arc<dyn Volume>, StoreError> {
        let done = self.journal.borrow_mut().hold(place);
        let unreadable = Arc::clone(&self.oracle.borrow().unreadable);
        let volume = self.note_read(done)?;
        Ok(Arc::new(WatchedVolume { volume, unreadable }))
    }

    fn held_bytes(&mut self) -> u64 {
        self.journal.borrow_mut().held_bytes()
    }

    fn start_read(&mut self, job: ReadJob) -> Result<(), StoreError> {
        let done = self.journal.borrow_mut().start_read(job);
        self.note_read(done)
    }

    fn take_read(&mut self, wait: bool) -> Result<Option<Vec<Change>>, StoreError> {
        let done = self.journal.borrow_mut().take_read(wait);
        self.note_read(done)
    }

    fn room(&mut self, tasks: &dyn Fn() -> TaskCounts) -> Room {
        let room = self.journal.borrow_mut().room(tasks);
        let oracle = &mut *self.oracle.borrow_mut();
        oracle.book.is_low = room > Room::Enough;
        if !oracle.book.is_starting {
            oracle.note_room(room);
        }
        room
    }
}

/// Changes what was read as the bug would.
fn spoil_load(bug: Bug, changes: &mut Vec<(Change, Option<Place>)>) {
    let last = |wanted: fn(&Change) -> bool, changes: &[(Change, Option<Place>)]| {
        changes.iter().rposition(|(change, _)| wanted(change))
    };
    let is_task = |change: &Change| matches!(change, Change::Task(_));
    match bug {
        Bug::LoseTask => {
            if let Some(at) = last(is_task, changes) {
                changes.remove(at);
            }
        }
        Bug::Resurrect => {
            if let Some(at) = last(|change| matches!(change, Change::Gone(_)), changes) {
                changes.remove(at);
            }
        }
        Bug::HalfBatch => {
            changes.pop();
        }
        Bug::ForgetGrant => {
            changes.retain(|(change, _)| !matches!(change, Change::Granted(_)));
        }
        Bug::ForgetExpiry | Bug::PriorityOnLoad | Bug::PayloadOnLoad => {
            for (change, _) in changes {
                if let Change::Task(task) = change {
                    match bug {
                        Bug::ForgetExpiry if task.progress.state == State::Ready => {
                            task.progress.expires_at = None;
                        }
                        Bug::PriorityOnLoad if task.progress.priority.is_some() => {
                            task.progress.priority = Some(0);
                        }
                        Bug::PayloadOnLoad if !task.payload.is_empty() => {
                            let mut payload = task.payload.to_vec();
                            payload[0] ^= 1;
                            task.payload = payload.into();
                        }
                        _ => {}
                    }
                }
            }
        }
        _ => {}
    }
}

/// Changes what is to be written as the bug would.
fn spoil_append(bug: Option<Bug>, changes: &[Change]) -> Option<Vec<Change>> {
    let is_wide = |change: &Change| match change {
        Change::Published(_, copies) => copies.len() > 1,
        _ => false,
    };
    if bug != Some(Bug::LoseLane) || !changes.iter().any(is_wide) {
        return None;
    }
    let mut spoilt = changes.to_vec();
    for change in &mut spoilt {
        if let Change::Published(_, copies) = change
            && copies.len() > 1
        {
            copies.pop();
        }
    }
    Some(spoilt)
}
