//! One simulated machine with its clients: what happens in each round.
//!
//! In a round, one client makes a few requests, everything that follows at once happens, and some
//! time passes. Occasionally something breaks instead. Anything wrong panics, which ends the run.
//! `starts.rs` handles how servers go down and start, `calm.rs` how everything ends.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Dice;
use crate::faulty_disk::{FaultyDisk, Operation, Repeat};
use crate::model::Model;
use pinpriq_engine::Engine;
use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::config::{
    Config, DoorName, Durability, Framing, Limits as ServerLimits, PinpriqOptions, TtlZero,
};
use pinpriq_server::parts::at_home;
use pinpriq_store::shards::shard_of;
use pinpriq_store::{Durable, Journal};

use crate::server::Simulation;
use crate::sim::archive::{Archive, Chronicle};
use crate::sim::ask::{Ask, ELSEWHERE};
use crate::sim::bugs::Bug;
use crate::sim::chooser::{Chooser, SHARD_TAG, TUBES_IN_THE_SHARD};
use crate::sim::client::{Client, Knowledge};
use crate::sim::clock::{Clocks, ServerClock};
use crate::sim::faults::{Counts, Kind};
use crate::sim::jobs::DEFAULT;
use crate::sim::kept;
use crate::sim::knobs::Knobs;
use crate::sim::oracle::{Expecting, Oracle, Request};
use crate::sim::trail::Trail;

/// The largest payload, below the limit of the pinpriq wire, so that every task reaches every door.
/// The narrow selection is covered by the tests of the engine.
const PAYLOAD_BYTES_MAX: usize = 65_535;

/// The most bytes of one task, however it is written: as JSON its payload takes twice the room.
const RECORD_BYTES_MAX: usize = 2 * PAYLOAD_BYTES_MAX + 4_096;

/// After how many rounds everything is checked from scratch.
const CHECK_EVERY: u64 = 24;

/// The most turns in which the store may have more to do at one moment.
const TURNS_MAX: u64 = 20_000;

/// A simulated machine; see the module documentation.
pub(crate) struct World {
    pub(crate) knobs: Knobs,
    pub(crate) dice: Dice,
    pub(crate) bug: Option<Bug>,
    pub(crate) clocks: Clocks,
    pub(crate) disk: FaultyDisk,
    pub(crate) journal: Option<Rc<RefCell<Journal>>>,
    /// Whether the disk responds.
    pub(crate) gate: Arc<AtomicBool>,
    pub(crate) sim: Option<Simulation>,
    pub(crate) clock: Option<Rc<ServerClock>>,
    pub(crate) oracle: Rc<RefCell<Oracle>>,
    pub(crate) archive: Option<Archive>,
    pub(crate) clients: Vec<Client>,
    pub(crate) known: Knowledge,
    pub(crate) counts: Counts,
    pub(crate) operations: u64,
    pub(crate) rounds: u64,
    serial: u64,
    /// The round in which a fault of the disk ends.
    pub(crate) fault_until: Option<u64>,
    /// The round in which a full disk has room again.
    pub(crate) full_until: Option<u64>,
    /// The capacity of the disk in bytes.
    pub(crate) capacity: u64,
    /// The round in which a shard reads again what others write to it.
    pub(crate) deaf_until: Option<u64>,
    /// The fault armed on the disk, which is counted when it strikes.
    pub(crate) armed: Option<(Kind, Operation, u64)>,
    /// Whether the disk was filled and nothing has noticed it yet.
    pub(crate) is_full: bool,
    pub(crate) is_calm: bool,
    pub(crate) last_incarnation: u64,
    pub(crate) shortened_writes: u64,
    scratch: Vec<u8>,
}

impl World {
    pub(crate) fn new(knobs: &Knobs, bug: Option<Bug>, trail: Trail) -> Self {
        let mut dice = Dice::new(knobs.seed);
        let disk = FaultyDisk::new(dice.roll());
        let oracle = Rc::new(RefCell::new(Oracle::new(engine_limits(knobs), trail)));
        {
            let oracle = &mut *oracle.borrow_mut();
            oracle.book.interval = knobs.interval == 1;
            oracle.book.keeps_all = knobs.bit_flips > 0;
            oracle.requeues = knobs.pinpriq_options & 4 == 0;
            oracle.shards = to_usize(knobs.shards);
            oracle.chronicle = (knobs.archive > 0).then(Chronicle::default);
            let elsewhere = shard_of(ELSEWHERE, oracle.shards);
            let here = shard_of(SHARD_TAG, oracle.shards);
            assert!(oracle.shards == 1 || elsewhere != here);
            let mut tubes = TUBES_IN_THE_SHARD.iter().map(|(_, tube)| *tube).chain([DEFAULT]);
            assert!(oracle.shards > 2 || tubes.all(|it| shard_of(it, oracle.shards) == here));
        }
        let mut world = Self {
            clocks: Clocks::at(Timestamp::from_ms(1_700_000_000_000)),
            dice,
            bug,
            disk,
            journal: None,
            gate: Arc::new(AtomicBool::new(true)),
            sim: None,
            clock: None,
            oracle,
            archive: (knobs.archive > 0).then(|| Archive::new(knobs, bug)),
            clients: Vec::new(),
            known: Knowledge::default(),
            counts: Counts::default(),
            operations: 0,
            rounds: 0,
            serial: 0,
            fault_until: None,
            full_until: None,
            capacity: u64::MAX,
            deaf_until: None,
            armed: None,
            is_full: false,
            is_calm: false,
            last_incarnation: 0,
            shortened_writes: 0,
            scratch: Vec::new(),
            knobs: *knobs,
        };
        world.start();
        world
    }

    /// The configuration of the server.
    pub(crate) fn config(&self) -> Config {
        let bits = self.knobs.pinpriq_options;
        let limits = ServerLimits {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            task_bytes_max: engine_limits(&self.knobs).bytes_max,
            in_flight_max: to_usize(self.knobs.in_flight_max),
            out_bytes_max: to_usize(self.knobs.out_bytes_max),
            subscriptions_max: to_usize(self.knobs.queues_per_client_max),
            queue_linger: Duration::from_millis(self.knobs.queue_linger),
            ..ServerLimits::default()
        };
        let pinpriq_options = PinpriqOptions {
            framing: if bits & 1 == 0 { Framing::Counted } else { Framing::Bare },
            ttl_zero: if bits & 2 == 0 { TtlZero::Immediate } else { TtlZero::Forever },
            requeue: bits & 4 == 0 && self.bug != Some(Bug::NothingPutBack),
        };
        let durability =
            if self.knobs.interval == 1 { Durability::Interval } else { Durability::Sync };
        Config { durability, pinpriq_options, limits, ..Config::default() }
    }

    pub(crate) fn engine_limits(&self) -> EngineLimits {
        engine_limits(&self.knobs)
    }

    /// Runs the rounds with faults.
    pub(crate) fn run(&mut self) {
        let rounds_max = 40 * self.knobs.operations + 10_000;
        while self.operations < self.knobs.operations {
            self.round();
            assert!(self.rounds < rounds_max, "clients are not heard: {}", self.standing());
        }
    }

    /// Describes the state of the clients briefly.
    fn standing(&self) -> String {
        let oracle = self.oracle.borrow();
        let of = |client: &Client| {
            let (id, unsent) = (client.id, client.unsent_bytes());
            let (ended, stalled, silent) = (client.ended, client.stalled, client.silent);
            let sim = self.sim.as_ref();
            let reads = sim.is_some_and(|sim| sim.reads_from(id));
            let waiting = sim.map_or(0, |sim| sim.waiting_bytes(id));
            let front = oracle.clients.get(&id).and_then(|it| it.sent.front());
            format!(
                "{id:?} has {unsent} bytes to send and {waiting} to read, is read from: {reads}, \
                 ended: {ended}, stalled {stalled}, silent {silent}, {front:?}"
            )
        };
        self.clients.iter().map(of).collect::<Vec<_>>().join("; ")
    }

    fn round(&mut self) {
        self.rounds += 1;
        self.oracle.borrow_mut().note_reads();
        if self.oracle.borrow().failed || self.disk.has_stopped() {
            // Let some clients notice it first.
            if self.disk.has_stopped() || self.dice.chance(40) {
                self.restart_after_failure();
                return;
            }
        }
        if self.fault_until.is_some_and(|round| round <= self.rounds) {
            self.end_disk_fault();
        }
        if self.full_until.is_some_and(|round| round <= self.rounds) {
            self.end_full_disk();
        }
        if self.deaf_until.is_some_and(|round| round <= self.rounds) {
            self.hear_all();
        }
        self.maybe_break();
        if self.sim.is_none() {
            return;
        }
        self.archive_a_little();
        self.keep_clients();
        let chosen = self.dice.index(self.clients.len());
        self.speak(chosen);
        self.serve(chosen);
        self.pump();
        for at in 0..self.clients.len() {
            self.serve(at);
        }
        self.pass_time();
        self.count_armed();
        if self.rounds.is_multiple_of(CHECK_EVERY) {
            self.settle();
            self.check();
        }
    }

    /// Replaces clients that have gone, so that their number stays the same.
    pub(crate) fn keep_clients(&mut self) {
        let others = self.knobs.pinpriq_clients + self.knobs.beanstalkd_clients;
        let wanted = to_usize(self.knobs.resp_clients + others);
        let is_there = |sim: &Simulation, client: &Client| sim.is_connected(client.id);
        if self.sim.as_ref().is_some_and(|sim| !self.clients.iter().all(|it| is_there(sim, it))) {
            // First finish everything that concerns clients that have gone.
            self.hear_all();
        }
        let Some(sim) = &mut self.sim else { return };
        let mut at = 0;
        while at < self.clients.len() {
            if sim.is_connected(self.clients[at].id) {
                at += 1;
            } else {
                let gone = self.clients.remove(at);
                let oracle = &mut *self.oracle.borrow_mut();
                let was_heard = gone.unsent_bytes() == 0 && !gone.ended && !oracle.failed;
                let has_left = oracle.clients.get(&gone.id).is_some_and(Expecting::has_left);
                assert!(has_left || !was_heard, "{:?} has quit and keeps its jobs", gone.id);
                oracle.forget(gone.id);
            }
        }
        while self.clients.len() < wanted {
            let lacks = |(door, most): &(DoorName, u64)| {
                (self.clients.iter().filter(|it| it.door == *door).count() as u64) < *most
            };
            let others = [
                (DoorName::Pinpriq, self.knobs.pinpriq_clients),
                (DoorName::Beanstalkd, self.knobs.beanstalkd_clients),
            ];
            let door = others.iter().find(|it| lacks(it)).map_or(DoorName::Resp, |(door, _)| *door);
            let home = match self.knobs.shards {
                1 => 0,
                shards => to_usize(self.dice.below(shards)),
            };
            let id = sim.connect_to(home, door);
            let oracle = &mut *self.oracle.borrow_mut();
            oracle.connect(id, door);
            let tubes_max = to_usize(self.knobs.queues_per_client_max);
            let is_counted = self.knobs.pinpriq_options & 1 == 0;
            let mut client = Client::new(id, door, is_counted, tubes_max);
            let moves = door != DoorName::Beanstalkd;
            if self.knobs.shards > 1 && moves && self.dice.chance(60) {
                client.ask_elsewhere(oracle);
            }
            if door == DoorName::Resp {
                if self.knobs.subscriptions > 0 && !self.is_calm && self.dice.chance(15) {
                    client.only_subscribes = true;
                } else if self.dice.chance(60) {
                    client.ask(Request::Resp(Ask::Hello(3)), oracle);
                }
            }
            self.clients.push(client);
        }
    }

    /// The shard in which all queues live.
    pub(crate) fn shard(&self) -> usize {
        shard_of(SHARD_TAG, to_usize(self.knobs.shards))
    }

    /// Breaks a connection, and notifies every shard.
    pub(crate) fn part_with(&mut self, client: ClientId) {
        if let Some(sim) = &mut self.sim {
            sim.cut(client);
        }
        self.hear_all();
        self.oracle.borrow_mut().forget(client);
    }

    /// Lets every shard read what others write to it.
    pub(crate) fn hear_all(&mut self) {
        self.deaf_until = None;
        if let Some(sim) = &mut self.sim
            && self.knobs.shards > 1
        {
            for shard in 0..to_usize(self.knobs.shards) {
                sim.set_deaf(shard, false);
            }
            sim.run();
        }
    }

    /// Makes some requests of a client.
    pub(crate) fn speak(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if client.silent > 0 {
            client.silent -= 1;
            return;
        }
        if client.ended {
            return;
        }
        if client.unsent_bytes() > 4_000 || client.has_quit {
            // It waits for a reply or an end that may never come, and gives up.
            if self.dice.chance(10) {
                let gone = self.clients.remove(at);
                self.part_with(gone.id);
                self.keep_clients();
            }
            return;
        }
        let count = 1 + self.dice.below(self.knobs.pipeline);
        let oracle = &mut *self.oracle.borrow_mut();
        for _ in 0..count {
            let mut chooser = Chooser {
                dice: &mut self.dice,
                knobs: &self.knobs,
                known: &self.known,
                model: &oracle.model,
                wall: self.clocks.wall(),
                serial: &mut self.serial,
            };
            match client.door {
                DoorName::Resp | DoorName::RespCluster => {
                    let ask = chooser.ask(client);
                    client.ask(Request::Resp(ask), oracle);
                }
                DoorName::Http => unreachable!("no client speaks that here"),
                DoorName::Beanstalkd => {
                    let call = chooser.call(client);
                    client.call(call, oracle);
                }
                DoorName::Pinpriq => {
                    let packet = chooser.packet(self.knobs.pinpriq_options & 2 != 0);
                    client.ask(Request::Pinpriq(packet), oracle);
                }
            }
            self.operations += 1;
        }
    }

    /// Moves bytes between one client and the server as long as possible.
    pub(crate) fn serve(&mut self, at: usize) {
        if self.knobs.task_bytes_max > 0 {
            // The engine is asked about room before it receives a command: what is due must have
            // freed its room by then.
            self.tick();
        }
        loop {
            let fed = self.feed(at);
            let drained = self.drain(at);
            if !fed && !drained {
                return;
            }
        }
    }

    /// Delivers bytes of a client, if the server reads them. Returns whether any arrived.
    fn feed(&mut self, at: usize) -> bool {
        let Some(sim) = &mut self.sim else { return false };
        let client = &mut self.clients[at];
        if client.unsent_bytes() == 0 || !sim.reads_from(client.id) || client.ended {
            return false;
        }
        let mut count = client.unsent_bytes().min(60_000);
        if self.knobs.chunk_in > 0 {
            count = count.min(to_usize(1 + self.dice.below(self.knobs.chunk_in)));
        }
        if client.silent > 0 {
            // It stops short of the end of what it wanted to send.
            count = count.min(client.unsent_bytes() - 1);
            if count == 0 || client.is_in_request() {
                return false;
            }
            count = count.min(2);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(&client.out[client.sent..client.sent + count]);
        client.note_sent(count);
        sim.feed(client.id, &self.scratch);
        true
    }

    /// Lets a client read what waits for it. Returns whether there was anything.
    fn drain(&mut self, at: usize) -> bool {
        let Some(sim) = &mut self.sim else { return false };
        let client = &mut self.clients[at];
        if client.stalled > 0 {
            return false;
        }
        let most = match self.knobs.chunk_out {
            0 => usize::MAX,
            most => to_usize(1 + self.dice.below(most)),
        };
        let waiting = sim.waiting_bytes(client.id);
        let bound = to_usize(self.knobs.out_bytes_max) + RECORD_BYTES_MAX;
        assert!(waiting <= bound, "{waiting} bytes are encoded ahead for {:?}", client.id);
        self.scratch.clear();
        if sim.drain(client.id, most, &mut self.scratch) == 0 {
            return false;
        }
        spoil(self.bug, &mut self.dice, &mut self.scratch);
        client.read(&self.scratch, &mut self.oracle.borrow_mut(), &mut self.known);
        true
    }

    /// Lets the server and its disk do what they can at this moment.
    pub(crate) fn pump(&mut self) {
        for turns in 0_u64.. {
            let shard = self.shard();
            let Some(sim) = &mut self.sim else { return };
            let figures = || sim.inspect(shard, Durable::figures);
            assert!(turns < TURNS_MAX, "the store is never done: {:?}", figures());
            sim.run();
            let is_open = self.gate.load(Ordering::Relaxed);
            let journal = self.journal.as_ref();
            let is_waiting = journal.is_some_and(|journal| journal.borrow().is_waiting());
            let is_deaf = self.bug == Some(Bug::DeafStore);
            if !is_open || !is_waiting || self.oracle.borrow().failed || is_deaf {
                return;
            }
            let before = self.disk.operations();
            sim.wake_store(shard);
            if self.disk.operations() == before && self.disk.has_stopped() {
                return;
            }
        }
    }

    /// Lets some time pass, perhaps just until something is due.
    fn pass_time(&mut self) {
        let span = match self.dice.below(8) {
            0..=3 => 0,
            4 => {
                let (now, due) = (self.now(), self.sim.as_mut().and_then(Simulation::due));
                due.map_or(0, |due| due.since(now).ms().min(self.knobs.span_ms))
            }
            _ => self.dice.below(self.knobs.step_ms + 1),
        };
        if span > 0 {
            self.clocks.advance(Span::from_ms(span));
        }
        self.tick();
        for client in &mut self.clients {
            client.stalled = client.stalled.saturating_sub(1);
        }
    }

    /// Lets the server do what is due.
    pub(crate) fn tick(&mut self) {
        if self.bug == Some(Bug::DeafTimer) {
            return;
        }
        for _ in 0..100 {
            let now = self.now();
            let Some(sim) = &mut self.sim else { return };
            if sim.due().is_none_or(|due| due > now) {
                break;
            }
            sim.tick();
            if self.oracle.borrow().failed {
                break;
            }
        }
        self.pump();
    }

    pub(crate) fn now(&self) -> Timestamp {
        let clock = self.clock.as_ref();
        clock.map_or(Timestamp::ZERO, |clock| pinpriq_server::clock::Clock::now(&**clock))
    }

    /// Lets everything happen that can happen now. Afterwards no client that reads has output
    /// outstanding.
    pub(crate) fn settle(&mut self) {
        if self.sim.is_none() || self.oracle.borrow().failed || self.disk.has_stopped() {
            return;
        }
        if !self.gate.load(Ordering::Relaxed) {
            return;
        }
        self.hear_all();
        // Messages from other shards may release bytes that were held back.
        let mut quiet = 0;
        for turns in 0_u64.. {
            let figures =
                || self.sim.as_ref().map(|sim| sim.inspect(self.shard(), Durable::figures));
            assert!(turns < TURNS_MAX, "the server is never done: {:?}", figures());
            let before = (self.known.bytes, self.disk.operations(), self.oracle.borrow().commands);
            self.tick();
            for at in 0..self.clients.len() {
                self.serve(at);
            }
            self.pump();
            let after = (self.known.bytes, self.disk.operations(), self.oracle.borrow().commands);
            quiet = if before == after { quiet + 1 } else { 0 };
            // A store that has room again hands tasks out a turn after the disk was last used.
            if quiet == 4 {
                break;
            }
        }
        if self.oracle.borrow().failed || self.disk.has_stopped() {
            return;
        }
        let now = self.now();
        let oracle = self.oracle.borrow();
        assert!(oracle.model.is_quiet(now), "something is due and is not done");
        oracle.check_returned();
        let Some(sim) = &self.sim else { return };
        for client in &self.clients {
            if client.stalled > 0 || !sim.is_connected(client.id) {
                continue;
            }
            let Some(expecting) = oracle.clients.get(&client.id) else { continue };
            let owed = expecting.owed_frame();
            assert!(owed.is_none(), "{:?} reads and is not sent {owed:?}", client.id);
            if let Some(owed) = expecting.owed_reply() {
                panic!("{:?} reads and is not answered {owed:?}", client.id);
            }
            let may_wait = self.knobs.task_bytes_max > 0 || oracle.book.is_low;
            let heard = client.unsent_bytes() == 0 && client.silent == 0 && !client.is_in_request();
            if heard && !may_wait && !expecting.is_blocked() {
                // Nothing on the pinpriq wire is a reply to a particular request.
                let left = expecting.sent.iter().filter(|_| client.door != DoorName::Pinpriq);
                assert_eq!(left.count(), 0, "{:?} was heard out and not answered", client.id);
            }
            let settled = !client.ended && !client.was_reset && !expecting.is_blocked();
            if settled && heard && !may_wait {
                let is_own = |id: &ClientId| at_home(*id) == client.id;
                let unspent = oracle.model.credits.iter().filter(|(id, _)| is_own(id));
                let unspent: u64 = unspent.map(|(_, credits)| u64::from(*credits)).sum();
                let is_full = unspent >= self.knobs.in_flight_max;
                assert!(
                    is_full || expecting.credits_granted == expecting.credits_due(),
                    "{:?} is granted {} of its {} credits",
                    client.id,
                    expecting.credits_granted,
                    expecting.credits_asked
                );
            }
        }
    }

    /// Compares everything with everything. The journal must have had its turns.
    pub(crate) fn check(&mut self) {
        self.check_state();
        self.check_size();
    }

    /// The same without the size of the journal, which a crash may have left longer than the server
    /// would leave it.
    pub(crate) fn check_state(&mut self) {
        let Some(sim) = &self.sim else { return };
        self.oracle.borrow_mut().note_reads();
        if self.oracle.borrow().failed {
            return;
        }
        self.oracle.borrow_mut().book.tidy();
        let oracle = self.oracle.borrow();
        sim.inspect(self.shard(), |durable| {
            durable.engine().check();
            let mut counters = durable.engine().totals().clone();
            counters.moves.sort_unstable();
            counters.moves.retain(|(_, times)| *times > 0);
            let wanted = oracle.model.total_counters();
            assert_eq!(counters, wanted, "the engine counts what the model counts");
            check_room(durable.engine(), &oracle.model);
        });
        kept::check(&oracle);
    }

    /// Checks that the journal is not larger than it may be.
    fn check_size(&self) {
        let Some(sim) = &self.sim else { return };
        if self.oracle.borrow().failed {
            return;
        }
        let figures = sim.inspect(self.shard(), Durable::figures);
        let most = self.most_bytes_used(figures.bytes_live);
        if self.knobs.full_disks == 0 && figures.bytes_pending == 0 && self.knobs.slow_disks == 0 {
            assert!(
                figures.bytes_used <= most,
                "{} bytes of journal for {} that count",
                figures.bytes_used,
                figures.bytes_live
            );
            let kept = self.bytes_for_archive(figures.segments);
            let (used, most) = (self.disk.used(), kept + most + 4 * self.knobs.segment_bytes);
            assert!(used <= most, "{used} bytes on disk for {figures:?}: {}", self.file_sizes());
        }
    }

    /// Describes the files briefly.
    pub(crate) fn file_sizes(&self) -> String {
        let files = self.disk.files().into_iter();
        let sizes = files.map(|(name, bytes)| format!("{name}: {}", bytes.len()));
        sizes.collect::<Vec<_>>().join(", ")
    }

    /// The largest allowed size of the journal: twice what counts, the allowed slack, and some
    /// segments in progress.
    pub(crate) const fn most_bytes_used(&self, live: u64) -> u64 {
        2 * live + (4 + self.knobs.slack_segments) * self.knobs.segment_bytes + (1 << 18)
    }

    /// Counts a fault of the disk once it has struck.
    pub(crate) fn count_armed(&mut self) {
        if let Some((kind, operation, before)) = self.armed
            && self.disk.struck(operation) > before
        {
            self.counts.note(kind);
            self.armed = None;
        }
        let is_felt = self.oracle.borrow().book.is_low || self.oracle.borrow().failed;
        if self.is_full && is_felt {
            self.counts.note(Kind::FullDisk);
            self.is_full = false;
        }
    }

    /// Programs a fault into the disk.
    pub(crate) fn arm(&mut self, kind: Kind, operation: Operation, repeat: Repeat) {
        if self.armed.is_some() {
            return;
        }
        let nth = 1 + self.dice.below(4);
        let error = [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull];
        let error = error[usize::from(operation == Operation::Write && self.dice.chance(20))];
        self.armed = Some((kind, operation, self.disk.struck(operation)));
        self.disk.fail(operation, nth, repeat, error);
    }

    /// Draws the round in which something that begins now ends.
    pub(crate) fn rounds_from_now(&mut self, most: u64) -> u64 {
        self.rounds + 1 + self.dice.below(most)
    }
}

/// Checks that the engine occupies as many bytes as the model. The model does not know which
/// payloads are in memory, so it can tell only if all are.
fn check_room(engine: &Engine, model: &Model) {
    if !engine.leaves_payloads() {
        assert_eq!(engine.bytes(), model.bytes(), "the engine counts all bytes");
    }
    let waiting = model.waiting_bytes();
    assert_eq!(engine.waiting_bytes(), waiting, "the engine counts all who wait");
}

/// Changes the bytes of a reply as the bug would.
fn spoil(bug: Option<Bug>, dice: &mut Dice, bytes: &mut Vec<u8>) {
    let rarely = |dice: &mut Dice| dice.once_in(50);
    match bug {
        Some(Bug::StaleAccepted) if bytes.starts_with(b"-STALE") => {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - 1);
            bytes.splice(..=end, *b"+OK\r\n");
        }
        Some(Bug::MissingDeleted) if bytes.starts_with(b"NOT_FOUND\r\n") => {
            bytes.splice(..11, *b"DELETED\r\n");
        }
        Some(Bug::DelayForgotten) if bytes.starts_with(b"OK ") => {
            let is_delay = |eight: &[u8]| eight.starts_with(b"delay: ") && eight[7] != b'0';
            let Some(at) = bytes.windows(8).position(is_delay) else { return };
            bytes[at + 7] = b'0';
        }
        Some(Bug::SwappedTasks) if bytes.starts_with(b"*2\r\n*4\r\n") => {
            let Some(second) = bytes[8..].windows(4).position(|four| four == b"*4\r\n") else {
                return;
            };
            let middle = 8 + second;
            let tail = bytes.len();
            bytes[4..tail].rotate_left(middle - 4);
        }
        Some(Bug::DroppedReply) if bytes.starts_with(b"+OK\r\n") && rarely(dice) => {
            bytes.drain(..5);
        }
        Some(Bug::RepeatedReply) if bytes.starts_with(b"+OK\r\n") && rarely(dice) => {
            bytes.splice(..0, *b"+OK\r\n");
        }
        Some(Bug::DamagedReply) if bytes.len() > 30 && rarely(dice) => {
            let at = bytes.len() - 4;
            bytes[at] ^= 1;
        }
        _ => {}
    }
}

fn engine_limits(knobs: &Knobs) -> EngineLimits {
    EngineLimits {
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        bytes_max: if knobs.task_bytes_max == 0 { u64::MAX } else { knobs.task_bytes_max },
        waiting_bytes_max: if knobs.task_bytes_max == 0 { u64::MAX } else { 8_000 },
        queues_per_client_max: to_usize(knobs.queues_per_client_max),
        queue_linger: Span::from_ms(knobs.queue_linger),
        // The model does not know which payloads are in memory, so it could not tell how many bytes
        // are left.
        memory_bytes: (knobs.memory_bytes > 0 && knobs.task_bytes_max == 0)
            .then_some(knobs.memory_bytes),
        ..EngineLimits::default()
    }
}

pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
