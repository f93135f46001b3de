//! Reserves from tubes of several shards, while letters between these are late: no job is lost, or
//! held by two clients, and what one shard hands over in vain is there again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pinpriq_dice::Dice;
use pinpriq_engine::limits::Limits as EngineLimits;
use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::Span;
use pinpriq_server::clock::{Clock, ManualClock};
use pinpriq_server::config::DoorName;
use pinpriq_server::simulation::{Options, Simulation};
use pinpriq_store::shards::first_number;
use pinpriq_store::{Durable, MemoryStore};

use crate::world::START;

const SHARDS: usize = 3;
const TUBES: [&str; 5] = ["default", "a", "b", "c", "d"];
const STEPS: u32 = 600;
const CHECKED_EVERY: u32 = 30;

/// What a client waits for.
enum Asked {
    Put,
    Reserve,
    /// A job to be finished, and the verb.
    Done(u64, &'static str),
    /// An answer that tells nothing.
    Any,
}

struct Worker {
    id: ClientId,
    received: Vec<u8>,
    asked: Option<Asked>,
    held: BTreeSet<u64>,
}

/// What happens, and what must be true.
struct Crossing {
    sim: Simulation,
    clock: ManualClock,
    dice: Dice,
    workers: Vec<Worker>,
    /// The jobs that are there, and how often each was reserved.
    jobs: BTreeMap<u64, u32>,
    inserted: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
}

#[test]
fn no_job_is_lost_or_held_twice_between_shards() {
    for seed in 0..60 {
        let open = |shard| {
            let store = Box::new(MemoryStore::new().numbering_after(first_number(shard)));
            (Durable::open(store, EngineLimits::default(), START, 1).unwrap().0, None)
        };
        let clock = ManualClock::at(START);
        let shared: Rc<dyn Clock> = Rc::new(clock.clone());
        let durables = (0..SHARDS).map(open).collect();
        let sim = Simulation::of_shards(durables, Options::default(), &shared);
        let (workers, jobs) = (Vec::new(), BTreeMap::new());
        let (inserted, deleted) = (BTreeSet::new(), BTreeSet::new());
        let mut crossing =
            Crossing { sim, clock, dice: Dice::new(seed), workers, jobs, inserted, deleted };
        for step in 1..=STEPS {
            crossing.step();
            if step.is_multiple_of(CHECKED_EVERY) {
                crossing.check(seed);
            }
        }
        crossing.end(seed);
    }
}

impl Crossing {
    fn step(&mut self) {
        while self.workers.len() < 6 {
            self.hire();
        }
        for shard in 0..SHARDS {
            let is_deaf = self.dice.chance(30);
            self.sim.set_deaf(shard, is_deaf);
        }
        match self.dice.below(12) {
            0 => self.let_go(),
            1 => {
                self.clock.advance(Span::from_ms(self.dice.below(400)));
                self.sim.tick();
            }
            _ => {
                let index = self.index(self.workers.len());
                self.ask(index);
            }
        }
        self.sim.run();
        self.hear();
    }

    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.dice.below(count as u64)).unwrap()
    }

    /// A client comes, and watches all tubes.
    fn hire(&mut self) {
        let home = self.index(SHARDS);
        let id = self.sim.connect_to(home, DoorName::Beanstalkd);
        for tube in TUBES {
            self.sim.feed(id, format!("watch {tube}\r\n").as_bytes());
        }
        let mut received = Vec::new();
        self.sim.run();
        self.sim.drain(id, usize::MAX, &mut received);
        self.workers.push(Worker { id, received: Vec::new(), asked: None, held: BTreeSet::new() });
    }

    /// A connection breaks. Nobody knows what becomes of its answer.
    fn let_go(&mut self) {
        let index = self.index(self.workers.len());
        // A put that was not answered may have happened, and so may a deletion.
        let asked = &self.workers[index].asked;
        if matches!(asked, Some(Asked::Put | Asked::Done(_, "delete"))) {
            return;
        }
        let gone = self.workers.swap_remove(index);
        self.sim.cut(gone.id);
    }

    fn ask(&mut self, index: usize) {
        if self.workers[index].asked.is_some() {
            return;
        }
        let held: Vec<u64> = self.workers[index].held.iter().copied().collect();
        // Mostly there is no job to reserve, so that clients wait in all shards.
        let (line, asked) = match self.dice.below(12) {
            0..=2 => {
                let (tube, priority) = (TUBES[self.index(TUBES.len())], self.dice.below(4));
                self.sim.feed(self.workers[index].id, format!("use {tube}\r\n").as_bytes());
                (format!("put {priority} 0 600 1\r\nx\r\n"), Asked::Put)
            }
            3..=6 => {
                let timeout_s = self.dice.below(3);
                (format!("reserve-with-timeout {timeout_s}\r\n"), Asked::Reserve)
            }
            7 => ("stats\r\n".to_owned(), Asked::Any),
            _ if held.is_empty() => return,
            _ => {
                let number = held[self.index(held.len())];
                match self.dice.below(4) {
                    0..=1 => (format!("delete {number}\r\n"), Asked::Done(number, "delete")),
                    2 => (format!("release {number} 2 0\r\n"), Asked::Done(number, "release")),
                    _ => (format!("stats-job {number}\r\n"), Asked::Any),
                }
            }
        };
        self.workers[index].asked = Some(asked);
        self.sim.feed(self.workers[index].id, line.as_bytes());
    }

    /// Reads what has come, and checks it.
    fn hear(&mut self) {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            self.sim.drain(worker.id, usize::MAX, &mut worker.received);
            let text = String::from_utf8(worker.received.clone()).unwrap();
            let text = text.split_inclusive("\r\n").filter(|line| !line.starts_with("USING"));
            let text = text.collect::<String>();
            if text.is_empty() {
                continue;
            }
            worker.received.clear();
            let line = text.lines().next().unwrap();
            match worker.asked.take() {
                Some(Asked::Put) => {
                    let number = line.strip_prefix("INSERTED ").unwrap().parse().unwrap();
                    assert!(self.inserted.insert(number), "{number} is there already");
                    // Somebody may have reserved it before its client hears of it.
                    if !self.deleted.contains(&number) {
                        self.jobs.entry(number).or_default();
                    }
                }
                Some(Asked::Reserve) => {
                    if line == "TIMED_OUT" {
                        continue;
                    }
                    let number: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
                    assert!(!self.deleted.contains(&number), "{number} was deleted");
                    worker.held.insert(number);
                    *self.jobs.entry(number).or_default() += 1;
                    // One that gives it up may not have heard that this is done.
                    let gives_up = |worker: &Worker| match worker.asked {
                        Some(Asked::Done(given_up, _)) => given_up == number,
                        _ => false,
                    };
                    let holders = self.workers.iter().filter(|it| it.held.contains(&number));
                    let holders = holders.filter(|it| !gives_up(it));
                    assert_eq!(holders.count(), 1, "{number} is held twice");
                }
                Some(Asked::Done(number, verb)) => {
                    let expected = if verb == "delete" { "DELETED" } else { "RELEASED" };
                    assert_eq!(line, expected, "{number}");
                    worker.held.remove(&number);
                    if verb == "delete" {
                        self.jobs.remove(&number);
                        self.deleted.insert(number);
                    }
                }
                Some(Asked::Any) => assert!(line.starts_with("OK "), "{line}"),
                None => panic!("nobody has asked for {text:?}"),
            }
        }
    }

    /// All letters arrive. Then no job is reserved but those that clients know of.
    fn check(&mut self, seed: u64) {
        for shard in 0..SHARDS {
            self.sim.set_deaf(shard, false);
        }
        self.sim.run();
        self.hear();
        let id = self.sim.connect(DoorName::Beanstalkd);
        let held: usize = self.workers.iter().map(|worker| worker.held.len()).sum();
        let stats = self.say(id, "stats\r\n");
        let reserved = format!("current-jobs-reserved: {held}\n");
        assert!(stats.contains(&reserved), "seed {seed}: clients hold {held}\n{stats}");
        self.sim.cut(id);
    }

    /// All go on, and then all jobs are there and nobody holds one.
    fn end(&mut self, seed: u64) {
        self.check(seed);
        self.clock.advance(Span::from_ms(5_000));
        self.sim.tick();
        self.sim.run();
        self.hear();
        let id = self.sim.connect(DoorName::Beanstalkd);
        for worker in self.workers.drain(..) {
            assert!(worker.asked.is_none(), "seed {seed}: a client is not answered");
            self.sim.cut(worker.id);
        }
        self.sim.run();
        for tube in TUBES {
            self.sim.feed(id, format!("watch {tube}\r\n").as_bytes());
        }
        self.sim.run();
        self.sim.drain(id, usize::MAX, &mut Vec::new());
        let mut last = 0;
        while !self.jobs.is_empty() {
            let answer = self.say(id, "reserve-with-timeout 0\r\n");
            let number: u64 = answer.split(' ').nth(1).expect(&answer).trim().parse().unwrap();
            let attempts = self.jobs.remove(&number).expect("a job that nobody has put");
            let shown = self.say(id, &format!("stats-job {number}\r\n"));
            let figure = |key: &str| -> u64 {
                let line = shown.lines().find_map(|line| line.strip_prefix(key));
                line.unwrap().trim().parse().unwrap()
            };
            // What was handed over in vain counts too.
            assert!(figure("reserves: ") > u64::from(attempts), "seed {seed}: {number}");
            assert!(figure("pri: ") >= last, "seed {seed}: the most urgent one comes first");
            last = figure("pri: ");
        }
        let rest = self.say(id, "reserve-with-timeout 0\r\n");
        assert_eq!(rest, "TIMED_OUT\r\n", "seed {seed}");
    }

    fn say(&mut self, id: ClientId, line: &str) -> String {
        self.sim.feed(id, line.as_bytes());
        self.sim.run();
        let mut received = Vec::new();
        self.sim.drain(id, usize::MAX, &mut received);
        let text = String::from_utf8(received).unwrap();
        text.lines().next().map_or_else(String::new, |first| {
            if first.starts_with("OK ") { text.clone() } else { format!("{first}\r\n") }
        })
    }
}
