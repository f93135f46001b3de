//! The server without sockets and without a runtime: the caller decides what happens when.
//!
//! Shards, clients, outboxes, doors and letters are those of the server. [`Simulation::run`]
//! replaces the runtime: it only runs those whose bell has rung, so that a forgotten bell is
//! noticed. Bytes go in and out by [`Simulation::feed`] and [`Simulation::drain`], in pieces of any
//! size. Sockets, accepting, lingering after a cut, signals, threads, and the log are not
//! simulated.

mod mind;
pub mod node;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Timestamp;
use pinpriq_server::Stop;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Limits};
use pinpriq_server::parts::{Client, Common, Company, Place, Shard, Step, Witness, has_rung};
use pinpriq_store::{Durable, StoreError};

/// The address of all clients.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// A server whose clients and clock the caller moves.
pub struct Simulation {
    shards: Vec<Driven>,
    common: Arc<Common>,
    clients: BTreeMap<ClientId, (DoorName, Client)>,
    stopping: bool,
    cut_off: bool,
}

/// A place that the caller drives.
struct Driven {
    place: Place,
    /// When the timer will fire.
    armed: Option<Timestamp>,
    /// Whether its letters are kept from it.
    is_deaf: bool,
}

impl Driven {
    fn new(place: Place) -> Self {
        let armed = place.shard().arm_timer();
        Self { place, armed, is_deaf: false }
    }

    fn shard(&self) -> &Rc<Shard> {
        self.place.shard()
    }

    /// Sets the timer again if something is due earlier than before.
    fn heed_timer(&mut self) {
        if has_rung(self.shard().timer_bell()) {
            self.armed = self.shard().arm_timer();
        }
    }

    /// Does what is due by now.
    fn fire_timer(&mut self) {
        if self.armed.is_some_and(|at| at <= self.shard().clock().now()) {
            self.shard().fire_timer();
            self.armed = self.shard().arm_timer();
        }
    }
}

impl Simulation {
    /// Returns a server with one shard over an opened store. The witness, if any, sees what the
    /// engine is asked. Of the configuration, what shards and doors obey counts.
    #[must_use]
    pub fn new(
        durable: Durable,
        config: &Config,
        clock: &Rc<dyn Clock>,
        witness: Option<Rc<dyn Witness>>,
    ) -> Self {
        Self::of_shards(vec![(durable, witness)], config, clock)
    }

    /// Returns a server with a shard over each of these stores, each with its witness if it has
    /// one.
    #[must_use]
    pub fn of_shards(
        opened: Vec<(Durable, Option<Rc<dyn Witness>>)>,
        config: &Config,
        clock: &Rc<dyn Clock>,
    ) -> Self {
        // What a server divides among its shards, each of these stores has alone.
        let all = config.limits.task_bytes_max.saturating_mul(opened.len() as u64);
        let limits = Limits { task_bytes_max: all, ..config.limits };
        let config = &Config { limits, ..config.clone() };
        let common = Common::new(opened.len(), false, Stop::default(), Company::of(config));
        let shards = opened.into_iter().enumerate().map(|(own, (durable, witness))| {
            let opened = (durable, Arc::default());
            let place = Place::new(own, (config, common.clone()), opened, clock.clone());
            if let Some(witness) = witness {
                place.shard().watch(witness);
            }
            Driven::new(place)
        });
        let shards = shards.collect();
        Self { shards, common, clients: BTreeMap::new(), stopping: false, cut_off: false }
    }

    /// Connects a client to the first shard.
    pub fn connect(&mut self, door: DoorName) -> ClientId {
        self.connect_to(0, door)
    }

    /// Connects a client to this shard.
    pub fn connect_to(&mut self, home: usize, door: DoorName) -> ClientId {
        let begun = self.shards[home].place.connect((door, PEER), None);
        let client = begun.number();
        self.clients.insert(client, (door, begun));
        self.run_client(client);
        client
    }

    /// Whether the client's connection is still there.
    #[must_use]
    pub fn is_connected(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// Whether bytes that the client sends would be read now.
    #[must_use]
    pub fn reads_from(&self, client: ClientId) -> bool {
        let Some((_, it)) = self.clients.get(&client) else { return false };
        it.wants_read()
    }

    /// Delivers bytes of a client, which are read at once. Must not be called while nothing is read
    /// from the client, nor with more than 64 KiB at a time.
    pub fn feed(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some((_, it)) = self.clients.get_mut(&client) {
            it.feed(bytes);
            self.run_client(client);
        }
    }

    /// Ends the client's sending side. The client still reads.
    pub fn end_input(&mut self, client: ClientId) {
        if let Some((_, it)) = self.clients.get_mut(&client) {
            it.end_input();
            self.run_client(client);
        }
    }

    /// Returns the number of bytes that wait for the client.
    #[must_use]
    pub fn waiting_bytes(&self, client: ClientId) -> usize {
        self.clients.get(&client).map_or(0, |(_, it)| it.unwritten().len())
    }

    /// Moves up to `most` bytes of replies to the client's side. Returns their number.
    pub fn drain(&mut self, client: ClientId, most: usize, out: &mut Vec<u8>) -> usize {
        let Some((_, it)) = self.clients.get(&client) else { return 0 };
        if it.holds_back() {
            return 0;
        }
        let count = take_bytes(it, most, out);
        if count > 0 {
            self.run_client(client);
        }
        count
    }

    /// Breaks the connection.
    pub fn cut(&mut self, client: ClientId) {
        if let Some((_, it)) = self.clients.remove(&client) {
            it.leave();
        }
    }

    /// Begins or stops to keep letters from a shard, as if its thread had no time.
    pub fn set_deaf(&mut self, shard: usize, is_deaf: bool) {
        self.shards[shard].is_deaf = is_deaf;
    }

    /// Runs everything whose bell has rung, until all is quiet.
    pub fn run(&mut self) {
        // A shard that is alone has no letters and no guests. What looking for them takes would
        // count where instructions of its own work are counted.
        let are_several = self.shards.len() > 1;
        loop {
            let mut quiet = true;
            for shard in &mut self.shards {
                shard.heed_timer();
                if are_several && !shard.is_deaf && has_rung(shard.place.letters_bell()) {
                    quiet = false;
                    shard.place.read_letters(|_| ());
                }
            }
            let clients: Vec<ClientId> = self.clients.keys().copied().collect();
            for client in clients {
                if self.clients.get(&client).is_some_and(|(_, it)| it.has_rung()) {
                    quiet = false;
                    self.run_client(client);
                }
            }
            for shard in self.shards.iter().filter(|_| are_several) {
                quiet &= !shard.place.entertain_all();
                quiet &= !shard.place.send_letters();
            }
            if quiet {
                return;
            }
        }
    }

    /// Wakes this shard because its store has something to report.
    pub fn wake_store(&mut self, shard: usize) {
        // The call that learns of the end of a write begins to gather. By the next one, what was to
        // be gathered has come.
        self.shards[shard].shard().end_gathering();
    }

    /// Lets this shard tell those who copy its journal how far it is, as its thread does when one
    /// of them wakes it.
    pub fn answer_cuts(&mut self, shard: usize) {
        let shard = self.shards[shard].shard();
        shard.answer_cuts();
        shard.end_gathering();
    }

    /// Returns when something will be due by itself.
    #[must_use]
    pub fn due(&mut self) -> Option<Timestamp> {
        let frames = self.clients.values_mut();
        let frames = frames.filter_map(|(_, it)| it.frame_deadline());
        frames.chain(self.shards.iter().filter_map(|place| place.armed)).min()
    }

    /// Does what is due by the clock.
    pub fn tick(&mut self) {
        let now = self.shards[0].shard().clock().now();
        let late: Vec<ClientId> = self
            .clients
            .iter_mut()
            .filter_map(|(client, (_, it))| {
                let deadline = it.frame_deadline();
                deadline.filter(|at| *at <= now).map(|_| *client)
            })
            .collect();
        for client in late {
            if let Some((_, it)) = self.clients.get_mut(&client) {
                it.frame_is_late();
            }
            self.run_client(client);
        }
        for shard in &mut self.shards {
            shard.heed_timer();
            shard.fire_timer();
        }
    }

    /// Does what SIGUSR2 does: the beanstalkd door accepts no more jobs, or accepts them again.
    pub fn drain_jobs(&self) {
        self.common.turn_draining();
    }

    /// Starts an orderly stop: nothing more is read from clients, and replies are sent.
    pub fn stop(&mut self) {
        self.stopping = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.run_client(client);
        }
    }

    /// Ends an orderly stop: clients that did not read their replies are cut off, and everything is
    /// made durable.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.cut_off = true;
        for client in self.clients.keys().copied().collect::<Vec<_>>() {
            self.run_client(client);
        }
        self.run();
        self.shards.iter().try_for_each(|it| {
            assert!(it.shard().is_deserted(), "guests outlive their connections");
            it.shard().finish()
        })
    }

    /// Calls `look` with the engine of this shard and its store.
    pub fn inspect<T>(&self, shard: usize, look: impl FnOnce(&Durable) -> T) -> T {
        self.shards[shard].shard().inspect(look)
    }

    /// Does what a connection would do until it has to wait.
    fn run_client(&mut self, client: ClientId) {
        let Some((_, it)) = self.clients.get_mut(&client) else { return };
        let (stopping, cut_off) = (self.stopping, self.cut_off);
        match run_until_blocked(it, stopping, cut_off) {
            Step::Move(to) => self.move_to(to, client),
            Step::Over => self.cut(client),
            Step::Again | Step::Await => {}
        }
    }

    /// Moves a connection to another shard.
    fn move_to(&mut self, to: usize, client: ClientId) {
        let Some((door, it)) = self.clients.remove(&client) else { return };
        let (mut begun, input) = self.shards[to].place.adopt(it.move_out(), (door, PEER));
        begun.take_over(&input);
        self.clients.insert(client, (door, begun));
        self.run_client(client);
    }
}

/// Returns the next step once nothing more can be done.
fn run_until_blocked(client: &mut Client, stopping: bool, cut_off: bool) -> Step {
    loop {
        client.has_rung();
        if client.is_killed() {
            return Step::Over;
        }
        let ends = client.ends_by_failure();
        client.encode();
        if ends || cut_off {
            return Step::Over;
        }
        match client.proceed(stopping) {
            Step::Again => {}
            step => return step,
        }
    }
}

/// Moves up to `most` bytes of replies to the client's side. Returns their number.
fn take_bytes(client: &Client, most: usize, out: &mut Vec<u8>) -> usize {
    let count = {
        let bytes = client.unwritten();
        let count = bytes.len().min(most);
        out.extend_from_slice(&bytes[..count]);
        count
    };
    if count > 0 {
        client.written(count);
    }
    count
}
