//! How servers go down and start again, and everything that breaks meanwhile.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::faulty_disk::{CrashPolicy, FaultyDisk, Losses, Operation, Repeat};
use pinpriq_proto::time::Span;
use pinpriq_server::calendars::Calendars;
use pinpriq_server::clock::Clock;
use pinpriq_server::parts::Witness;
use pinpriq_store::durable::Loading;
use pinpriq_store::{
    Disk, Durable, Fold, Journal, JournalOptions, Level, MemoryStore, Runner, Store, StoreError,
};

use crate::server::Simulation;
use crate::sim::book::{Survives, Watched};
use crate::sim::bugs::Bug;
use crate::sim::faults::Kind;
use crate::sim::kept;
use crate::sim::oracle::Eye;
use crate::sim::spoilt_disk::SpoiltDisk;
use crate::sim::world::{World, to_usize};

/// The least room that a start needs.
const LEAST_SEGMENT_BYTES: u64 = 16 << 10;

/// A number of operations that no run reaches.
const NEVER: u64 = 1 << 60;

impl World {
    /// Breaks something, or nothing.
    pub(crate) fn maybe_break(&mut self) {
        let rates = [
            self.knobs.power_losses,
            self.knobs.kills,
            self.knobs.stops_in_operation,
            self.knobs.write_errors,
            self.knobs.write_outages,
            self.knobs.sync_errors,
            self.knobs.sync_outages,
            self.knobs.directory_errors,
            self.knobs.full_disks,
            self.knobs.slow_disks,
            self.knobs.wall_jumps,
            self.knobs.cuts,
            self.knobs.half_closes,
            self.knobs.stalls,
            self.knobs.silences,
            self.knobs.stops,
            self.knobs.slow_threads,
        ];
        let mut roll = self.dice.below(1_000);
        let chosen = rates.iter().position(|rate| {
            let hit = roll < *rate;
            roll = roll.saturating_sub(*rate);
            hit
        });
        let Some(chosen) = chosen else { return };
        match chosen {
            0 => self.lose_power(),
            1 => self.crash(CrashPolicy::KeepAll, Kind::Kill),
            2 => {
                let nth = 1 + self.dice.below(12);
                self.disk.stop_at(nth);
            }
            3 => self.arm(Kind::WriteError, Operation::Write, Repeat::Once),
            4 => self.arm(Kind::WriteOutage, Operation::Write, Repeat::Forever),
            5 => self.arm(Kind::SyncError, Operation::Sync, Repeat::Once),
            6 => self.arm(Kind::SyncOutage, Operation::Sync, Repeat::Forever),
            7 => self.arm(Kind::DirectoryError, Operation::SyncDir, Repeat::Once),
            8 => self.fill_disk(),
            9 if self.knobs.gated == 1 => {
                self.gate.store(false, Ordering::Relaxed);
                self.counts.note(Kind::SlowDisk);
                self.fault_until = Some(self.rounds_from_now(12));
            }
            10 => {
                let forward = self.dice.chance(50);
                let largest = if self.dice.chance(30) { 315_000_000_000 } else { 3_600_000 };
                let ms = i128::from(1 + self.dice.below(largest));
                self.clocks.set_wall_by(if forward { ms } else { -ms } * 1_000_000);
                self.counts.note(if forward { Kind::WallForward } else { Kind::WallBack });
            }
            11..=14 => self.break_client(chosen),
            15 => self.stop(),
            16 => {
                let shard = to_usize(self.dice.below(self.knobs.shards));
                if self.knobs.shards > 1
                    && let Some(sim) = &mut self.sim
                {
                    sim.set_deaf(shard, true);
                    self.deaf_until = Some(self.rounds_from_now(12));
                    self.counts.note(Kind::SlowThread);
                }
            }
            _ => {}
        }
    }

    fn break_client(&mut self, what: usize) {
        if self.clients.is_empty() {
            return;
        }
        let at = self.dice.index(self.clients.len());
        if what == 11 {
            self.split_a_message(at);
        }
        let Some(sim) = &mut self.sim else { return };
        let client = &mut self.clients[at];
        match what {
            11 => {
                let kind = if client.is_in_reply() {
                    Kind::CutInReply
                } else if client.is_in_request() {
                    Kind::CutInRequest
                } else {
                    Kind::Cut
                };
                let gone = self.clients.remove(at);
                self.part_with(gone.id);
                self.counts.note(kind);
            }
            12 if !client.ended && client.unsent_bytes() == 0 => {
                client.ended = true;
                sim.end_input(client.id);
                self.counts.note(Kind::HalfClose);
            }
            13 => {
                client.stalled = 1 + self.dice.below(60);
                self.counts.note(Kind::Stall);
            }
            14 if client.unsent_bytes() == 0 => {
                client.silent = 1 + self.dice.below(20);
                self.counts.note(Kind::Silence);
            }
            _ => {}
        }
    }

    /// Leaves a connection in the middle of a request or of a reply, if there is one.
    fn split_a_message(&mut self, at: usize) {
        self.tick();
        self.speak(at);
        let Some(sim) = &mut self.sim else { return };
        let client = &mut self.clients[at];
        let all = client.unsent_bytes();
        if all > 1 && sim.reads_from(client.id) {
            let part = to_usize(1 + self.dice.below(all as u64 - 1));
            let bytes = client.out[client.sent..client.sent + part].to_vec();
            client.note_sent(part);
            sim.feed(client.id, &bytes);
        }
        self.pump();
        let Some(sim) = &mut self.sim else { return };
        let client = &mut self.clients[at];
        let waiting = sim.waiting_bytes(client.id);
        if waiting > 1 && client.stalled == 0 {
            let most = to_usize(1 + self.dice.below(waiting as u64 - 1));
            let mut bytes = Vec::new();
            sim.drain(client.id, most, &mut bytes);
            client.read(&bytes, &mut self.oracle.borrow_mut(), &mut self.known);
        }
    }

    /// Ends a fault of the disk.
    pub(crate) fn end_disk_fault(&mut self) {
        self.fault_until = None;
        self.gate.store(true, Ordering::Relaxed);
        self.pump();
    }

    /// Lets others leave little room on the disk, also for the servers that start meanwhile.
    fn fill_disk(&mut self) {
        let room = self.dice.below(self.knobs.segment_bytes * 3);
        self.capacity = self.disk.used() + room;
        self.disk.set_capacity(self.capacity);
        self.full_until = Some(self.rounds_from_now(300));
        self.is_full = true;
    }

    /// Makes room on the disk again.
    pub(crate) fn end_full_disk(&mut self) {
        (self.full_until, self.is_full) = (None, false);
        self.capacity = u64::MAX;
        self.disk.set_capacity(u64::MAX);
    }

    fn lose_power(&mut self) {
        let policy = self.survival();
        self.crash(policy, Kind::PowerLoss);
    }

    fn survival(&mut self) -> CrashPolicy {
        match self.knobs.survival {
            0 => CrashPolicy::LoseUnsynced,
            percent @ 1..=100 => CrashPolicy::KeepSome(percent),
            _ => CrashPolicy::KeepSome(self.dice.below(101)),
        }
    }

    /// Starts the server again after the store has failed or the machine has stopped.
    pub(crate) fn restart_after_failure(&mut self) {
        self.count_armed();
        if self.disk.has_stopped() {
            self.lose_power_as(Kind::StopInOperation);
            return;
        }
        if self.dice.chance(50) {
            self.lose_power_as(Kind::PowerLoss);
        } else {
            self.crash(CrashPolicy::KeepAll, Kind::Kill);
        }
    }

    pub(crate) fn lose_power_as(&mut self, kind: Kind) {
        let policy = self.survival();
        self.crash(policy, kind);
    }

    /// Ends the server suddenly.
    pub(crate) fn crash(&mut self, policy: CrashPolicy, kind: Kind) {
        self.counts.note(kind);
        self.oracle.borrow().trail.note(|| format!("{kind:?}, {policy:?}"));
        self.count_armed();
        let survives =
            if policy == CrashPolicy::KeepAll { Survives::Written } else { Survives::Synced };
        self.go_down(survives);
        self.fall(policy);
        self.start();
    }

    /// Ends the server in its current state.
    fn go_down(&mut self, survives: Survives) {
        let may_lose = !self.oracle.borrow().failed || self.knobs.may_give_up_files();
        if let Some(archive) = &mut self.archive {
            archive.disconnect(may_lose);
        }
        self.sim = None;
        self.journal = None;
        self.clock = None;
        self.clients.clear();
        let oracle = &mut *self.oracle.borrow_mut();
        oracle.clients.clear();
        oracle.forget_returning();
        (oracle.failed, oracle.is_stopping) = (false, false);
        oracle.unreadable.store(false, Ordering::Relaxed);
        oracle.book.went_down(survives);
        self.gate.store(true, Ordering::Relaxed);
        (self.fault_until, self.armed) = (None, None);
        self.deaf_until = None;
    }

    /// Removes from the disk what a crash removes.
    fn fall(&mut self, policy: CrashPolicy) {
        let before = self.disk.losses();
        self.disk.crash(policy);
        let Losses { sectors, torn, entries } = self.disk.losses();
        self.counts.add(Kind::LostSectors, u64::from(sectors > before.sectors));
        self.counts.add(Kind::TornWrite, torn - before.torn);
        self.counts.add(Kind::LostEntry, entries - before.entries);
        self.counts.add(Kind::ShortWrite, self.disk.shortened() - self.shortened_writes);
        self.shortened_writes = self.disk.shortened();
    }

    /// Asks the server to stop, and waits until it has stopped in order.
    fn stop(&mut self) {
        let Some(sim) = self.sim.take() else { return };
        if self.oracle.borrow().failed {
            self.sim = Some(sim);
            return;
        }
        self.gate.store(true, Ordering::Relaxed);
        self.sim = Some(sim);
        self.hear_all();
        let Some(mut sim) = self.sim.take() else { return };
        self.oracle.borrow_mut().is_stopping = true;
        sim.stop();
        self.sim = Some(sim);
        for client in &mut self.clients {
            client.stalled /= 2;
        }
        for at in 0..self.clients.len() {
            self.serve(at);
        }
        self.pump();
        for at in 0..self.clients.len() {
            self.serve(at);
        }
        let Some(mut sim) = self.sim.take() else { return };
        let finished = sim.finish();
        if finished.is_err() {
            // The disk has failed meanwhile, so this is no orderly stop.
            self.oracle.borrow_mut().failed = true;
            self.sim = Some(sim);
            return;
        }
        {
            let oracle = &mut *self.oracle.borrow_mut();
            for client in std::mem::take(&mut self.clients) {
                assert!(!sim.is_connected(client.id), "a stopped server has no clients");
                oracle.forget(client.id);
            }
            oracle.book.finished();
            // What an orderly stop does to tasks is seen nowhere else.
            kept::check(oracle);
        }
        self.sim = Some(sim);
        self.counts.note(Kind::Stop);
        self.archive_the_rest();
        self.go_down(Survives::Written);
        // What was synced survives a power loss after the end of the process.
        if self.dice.chance(50) {
            self.fall(CrashPolicy::LoseUnsynced);
        } else {
            self.fall(CrashPolicy::KeepAll);
        }
        self.start();
    }

    /// Starts a server, perhaps after failed starts.
    pub(crate) fn start(&mut self) {
        // The machine was off for a while.
        let off_ms = if self.dice.chance(50) { 0 } else { self.dice.below(self.knobs.step_ms) };
        self.clocks.advance(Span::from_ms(off_ms));
        for _ in 0..8 {
            self.try_flips();
            let stops = !self.is_calm && self.dice.chance(self.knobs.stops_in_recovery);
            if stops {
                self.disk.stop_at(1 + self.dice.below(40));
            }
            if !self.is_calm {
                self.disk.shorten_reads(self.knobs.short_reads);
                self.disk.shorten_writes(self.knobs.short_writes);
            }
            let newest = self.newest_segment();
            let reads = self.disk.shortened_reads();
            let opened = self.open(self.disk.clone());
            self.counts.add(Kind::ShortRead, self.disk.shortened_reads() - reads);
            self.disk.shorten_reads(0);
            match opened {
                Ok(durable) => {
                    self.disk.stop_at(NEVER);
                    self.begin_to_serve(durable);
                    return;
                }
                Err(error) if self.has_no_room_for(&error, newest) => {
                    self.oracle.borrow().trail.note(|| format!("no room to start: {error}"));
                    self.end_full_disk();
                    self.lose_start(CrashPolicy::KeepAll, Survives::Written);
                }
                Err(error) => {
                    assert!(self.disk.has_stopped(), "the server refuses to start: {error}");
                    self.counts.note(Kind::StopInRecovery);
                    self.oracle.borrow().trail.note(|| format!("the start stops: {error}"));
                    let kills = self.dice.chance(30);
                    let policy = if kills { CrashPolicy::KeepAll } else { self.survival() };
                    let survives = if kills { Survives::Written } else { Survives::Synced };
                    self.lose_start(policy, survives);
                }
            }
        }
        self.end_full_disk();
        let opened = self.open(self.disk.clone());
        match opened {
            Ok(durable) => self.begin_to_serve(durable),
            Err(error) => panic!("the server refuses to start: {error}"),
        }
    }

    /// Ends a start that has failed.
    fn lose_start(&mut self, policy: CrashPolicy, survives: Survives) {
        if let Some(archive) = &mut self.archive {
            archive.disconnect(false);
        }
        self.journal = None;
        self.oracle.borrow_mut().book.went_down(survives);
        self.fall(policy);
    }

    /// Whether a start may be refused for lack of room: nothing is kept for it now, and less
    /// room is left than the smallest segment needs. Only others that fill the disk suddenly can
    /// cause this, not the server itself.
    ///
    /// What is due at a start is one batch. Here segments are so small that it may be larger than
    /// one. Then it needs a larger file of its own beside the new segment of the start, although
    /// spares or some room are left. Segments of the usual size hold every such batch.
    fn has_no_room_for(&self, error: &StoreError, newest: u32) -> bool {
        let files = self.disk.files();
        let has_spare = files.keys().any(|name| name.starts_with("spare-"));
        // The start itself has made the segment `newest + 1`, or `newest` again if nothing was in
        // it.
        let beside =
            [newest + 1, newest + 2].map(|number| format!("spare-{:010}.log", u32::MAX - number));
        let StoreError::Full { file, .. } = error else { return false };
        let room = self.capacity.saturating_sub(self.disk.used());
        beside.contains(file) || (room < LEAST_SEGMENT_BYTES && !has_spare)
    }

    /// The number of the newest segment.
    fn newest_segment(&self) -> u32 {
        let files = self.disk.files();
        let numbers = files
            .keys()
            .filter_map(|name| name.strip_prefix("segment-")?.strip_suffix(".log")?.parse().ok());
        numbers.max().unwrap_or(0)
    }

    /// Opens the store. Returns what it held, and the highest number that it knew.
    fn open(&mut self, disk: FaultyDisk) -> Result<(Durable, Fold, u64), StoreError> {
        let level = if self.knobs.interval == 1 { Level::Interval } else { Level::Sync };
        let options = JournalOptions {
            level,
            segment_bytes: u32::try_from(self.knobs.segment_bytes).unwrap_or(u32::MAX),
            salt_seed: self.dice.roll(),
            slack_bytes: self.knobs.slack_segments * self.knobs.segment_bytes,
            leaves_payloads: self.engine_limits().memory_bytes.is_some(),
            // Without a gate a write has ended before anything could be gathered.
            gathers: self.knobs.gated == 1,
            watches: false,
        };
        let disk: Arc<dyn Disk> = match self.bug {
            Some(bug @ (Bug::NoSync | Bug::NoDirectorySync | Bug::IgnoreSyncError)) => {
                Arc::new(SpoiltDisk { disk, bug })
            }
            _ => Arc::new(disk),
        };
        let runner = if self.knobs.gated == 1 {
            Runner::Gated { open: Arc::clone(&self.gate) }
        } else {
            Runner::Inline
        };
        let mut journal = Journal::open(disk, options, runner)?;
        let is_full = self.capacity < u64::MAX;
        if let Some(archive) = &mut self.archive {
            journal = journal.tapped_by(archive.connect(is_full));
        }
        let journal = Rc::new(RefCell::new(journal));
        self.journal = Some(Rc::clone(&journal));
        let loaded = Rc::new(RefCell::new(Fold::new()));
        let (oracle, disk) = (Rc::clone(&self.oracle), self.disk.clone());
        let store = Watched { journal, oracle, disk, loaded: Rc::clone(&loaded), bug: self.bug };
        let (limits, now) = (self.engine_limits(), self.clocks.wall());
        let seed = self.dice.roll();
        let loading = Loading::load(Box::new(store), limits, seed)?;
        let (durable, found) = loading.with_calendars(Arc::new(Calendars::default())).open(now)?;
        Ok((durable, loaded.take(), found.header.last_number))
    }

    fn begin_to_serve(&mut self, (durable, loaded, last_number): (Durable, Fold, u64)) {
        {
            let oracle = &mut *self.oracle.borrow_mut();
            oracle.book.started();
            oracle.trail.note(|| {
                let tasks: Vec<&u64> = loaded.tasks.keys().collect();
                format!("started with the tasks {tasks:?}")
            });
            let header = durable.engine().header();
            // Ids of tasks that a crash removed may be used again, so they are learned anew.
            let incarnation = header.incarnation;
            oracle.model.start(kept::survivors(&loaded), durable.now(), incarnation, last_number);
            oracle.learn_kept_ids();
            oracle.model.set_room(durable.engine().room());
            assert!(header.incarnation > self.last_incarnation, "incarnations only grow");
            self.last_incarnation = header.incarnation;
        }
        let clock = Rc::new(self.clocks.server_clock(durable.now()));
        let eye: Rc<dyn Witness> = Rc::new(Eye(Rc::clone(&self.oracle), self.clocks.clone()));
        let config = self.config();
        let mut opened = Vec::new();
        for shard in 1..to_usize(self.knobs.shards) {
            let limits = self.engine_limits();
            let store = Box::new(MemoryStore::after(self.last_incarnation));
            match Durable::open(store, limits, durable.now(), shard as u64) {
                Ok((durable, _)) => opened.push((durable, None)),
                Err(error) => panic!("a shard that keeps nothing cannot be opened: {error}"),
            }
        }
        opened.insert(self.shard(), (durable, Some(eye)));
        let server_clock: Rc<dyn Clock> = clock.clone();
        self.sim = Some(Simulation::of_shards(opened, &config, &server_clock));
        self.clock = Some(clock);
        self.tick();
        self.check_state();
    }

    /// Opens a copy of the directory in which one bit is flipped. It must be refused, or read as if
    /// nothing had been flipped.
    fn try_flips(&mut self) {
        if self.is_calm || !self.dice.chance(self.knobs.bit_flips) {
            return;
        }
        let files = self.disk.files();
        let read = |disk: FaultyDisk| -> Option<Fold> {
            let disk: Arc<dyn Disk> = Arc::new(disk);
            let options = JournalOptions::default();
            let mut journal = Journal::open(disk, options, Runner::Inline).ok()?;
            let (mut fold, mut freed) = (Fold::new(), Vec::new());
            let loaded = journal.load(&mut |change, _| fold.apply(&change, None, &mut freed));
            loaded.ok().map(|_| fold)
        };
        let total: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
        if total == 0 {
            return;
        }
        let copy = FaultyDisk::with_files(1, &files);
        let Some(whole) = read(copy.clone()) else {
            panic!("an untouched directory cannot be read")
        };
        for _ in 0..4 {
            let mut at = self.dice.below(total);
            for (name, bytes) in &files {
                if at >= bytes.len() as u64 {
                    at -= bytes.len() as u64;
                    continue;
                }
                let bit = u8::try_from(self.dice.below(8)).unwrap_or_default();
                copy.flip(name, at, bit);
                self.counts.note(Kind::BitFlip);
                let read = read(copy.clone());
                copy.flip(name, at, bit);
                if let Some(found) = read {
                    assert!(
                        crate::sim::book::are_same(&found, &whole) || self.is_cut_off(&found),
                        "a bit flipped at {at} of {name} changes what is read: {}",
                        crate::sim::book::difference(&whole, &found)
                    );
                }
                break;
            }
        }
    }

    /// Whether a crash could have left this state too.
    fn is_cut_off(&self, found: &Fold) -> bool {
        self.oracle.borrow().book.last_write_may_be_lost(found)
    }
}
