//! Clients that work on queues of several shards, while letters between these are late and
//! connections break. What they ask and check is up to the test of each protocol.

use std::rc::Rc;

use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::Span;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Durable, MemoryStore};
use pinpriq_testing::Dice;
use pinpriq_testing::server::Simulation;

use crate::manual_clock::ManualClock;
use crate::world::START;

const SHARDS: usize = 3;
const WORKERS: usize = 6;
const CHECKS: u32 = 20;

/// A server of several shards with its clock, and what happens by chance.
pub(crate) struct Late {
    pub(crate) seed: u64,
    pub(crate) sim: Simulation,
    pub(crate) dice: Dice,
    /// In how many steps one connection breaks on average.
    pub(crate) one_breaks_in: u64,
    clock: ManualClock,
}

impl Late {
    pub(crate) fn of(seed: u64) -> Self {
        let open = |shard| {
            let store = Box::new(MemoryStore::new().numbering_after(first_number(shard)));
            (Durable::open(store, EngineLimits::default(), START, 1).unwrap().0, None)
        };
        let clock = ManualClock::at(START);
        let shared: Rc<dyn Clock> = Rc::new(clock.clone());
        let durables = (0..SHARDS).map(open).collect();
        let sim = Simulation::of_shards(durables, &Config::default(), &shared);
        Self { seed, sim, dice: Dice::new(seed), one_breaks_in: 12, clock }
    }

    pub(crate) fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.dice.below(count as u64)).unwrap()
    }

    /// Connects a client to any shard.
    pub(crate) fn connect(&mut self, door: DoorName) -> ClientId {
        let home = self.index(SHARDS);
        self.sim.connect_to(home, door)
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.clock.advance(Span::from_ms(ms));
        self.sim.tick();
    }

    /// Sends a request, and returns what comes.
    pub(crate) fn say(&mut self, id: ClientId, request: &str) -> String {
        self.sim.feed(id, request.as_bytes());
        self.sim.run();
        self.read(id)
    }

    pub(crate) fn read(&mut self, id: ClientId) -> String {
        let mut received = Vec::new();
        self.sim.drain(id, usize::MAX, &mut received);
        String::from_utf8(received).unwrap()
    }
}

/// A client with what it waits for and what it holds.
pub(crate) struct Worker<Asked, Held> {
    pub(crate) id: ClientId,
    pub(crate) asked: Option<Asked>,
    pub(crate) held: Held,
}

/// The clients, and what must be true of them.
pub(crate) trait Crowd {
    type Asked;
    type Held;

    fn late(&mut self) -> &mut Late;
    fn workers(&mut self) -> &mut Vec<Worker<Self::Asked, Self::Held>>;

    /// A client comes.
    fn hire(&mut self);

    /// Whether it is known what becomes of a request whose client goes.
    fn may_break(asked: &Self::Asked) -> bool;

    /// A client that waits for nothing may ask for something.
    fn ask(&mut self, index: usize);

    /// Reads what has come, and checks it.
    fn hear(&mut self);

    /// Checks what the server counts, when no letter is under way.
    fn check(&mut self);

    /// Checks what is there when all clients have gone.
    fn end(&mut self);

    /// Plays so many steps, with checks between.
    fn play(&mut self, steps: u32) {
        for step in 1..=steps {
            self.step();
            if step.is_multiple_of(steps / CHECKS) {
                self.arrive();
                self.check();
            }
        }
        self.arrive();
        self.late().pass(5_000);
        self.arrive();
        for worker in std::mem::take(self.workers()) {
            let late = self.late();
            assert!(worker.asked.is_none(), "seed {}: a client is not answered", late.seed);
            late.sim.cut(worker.id);
        }
        self.late().sim.run();
        self.end();
    }

    fn step(&mut self) {
        while self.workers().len() < WORKERS {
            self.hire();
        }
        let late = self.late();
        for shard in 0..SHARDS {
            let is_deaf = late.dice.chance(30);
            late.sim.set_deaf(shard, is_deaf);
        }
        match late.dice.below(late.one_breaks_in) {
            0 => {
                let index = late.index(WORKERS);
                if self.workers()[index].asked.as_ref().is_none_or(Self::may_break) {
                    let gone = self.workers().swap_remove(index);
                    self.late().sim.cut(gone.id);
                }
            }
            1 => {
                let ms = late.dice.below(400);
                late.pass(ms);
            }
            _ => {
                let index = late.index(WORKERS);
                if self.workers()[index].asked.is_none() {
                    self.ask(index);
                }
            }
        }
        self.late().sim.run();
        self.hear();
    }

    /// All letters arrive.
    fn arrive(&mut self) {
        let late = self.late();
        for shard in 0..SHARDS {
            late.sim.set_deaf(shard, false);
        }
        late.sim.run();
        self.hear();
    }
}
