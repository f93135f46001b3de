//! Takes and pops from queues of several shards, while letters between these are late and
//! connections break: nothing is lost, handed to two clients, or left taken.

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
const QUEUES: [&str; 5] = ["q0", "q1", "q2", "q3", "q4"];
const STEPS: u32 = 500;
const CHECKED_EVERY: u32 = 25;

/// What a client waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Put(String),
    Take,
    Pop,
    /// A task to be finished.
    Ack(String),
}

struct Worker {
    id: ClientId,
    asked: Option<Asked>,
    /// The payloads that it holds, with their queues and receipts.
    held: BTreeMap<String, (String, String)>,
}

/// What happens, and what must be true.
struct Late {
    sim: Simulation,
    clock: ManualClock,
    dice: Dice,
    workers: Vec<Worker>,
    /// The payloads that are there, held or not.
    present: BTreeSet<String>,
    /// The payloads that are gone. Whoever has put one may not have heard of that yet.
    gone: BTreeSet<String>,
    puts: u32,
    /// Whether mostly there are tasks, so that several shards fill a reply. Otherwise clients wait
    /// in all shards.
    has_plenty: bool,
}

#[test]
fn no_task_is_lost_or_held_twice_between_shards() {
    for seed in 0..60 {
        let open = |shard| {
            let store = Box::new(MemoryStore::new().numbering_after(first_number(shard)));
            (Durable::open(store, EngineLimits::default(), START, 1).unwrap().0, None)
        };
        let clock = ManualClock::at(START);
        let shared: Rc<dyn Clock> = Rc::new(clock.clone());
        let durables = (0..SHARDS).map(open).collect();
        let sim = Simulation::of_shards(durables, Options::default(), &shared);
        let (workers, present, gone) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let dice = Dice::new(seed);
        let (puts, has_plenty) = (0, seed % 2 == 1);
        let mut late = Late { sim, clock, dice, workers, present, gone, puts, has_plenty };
        for step in 1..=STEPS {
            late.step();
            if step.is_multiple_of(CHECKED_EVERY) {
                late.check(seed);
            }
        }
        late.end(seed);
    }
}

impl Late {
    fn step(&mut self) {
        while self.workers.len() < 6 {
            let home = self.index(SHARDS);
            let id = self.sim.connect_to(home, DoorName::Resp);
            self.workers.push(Worker { id, asked: None, held: BTreeMap::new() });
        }
        for shard in 0..SHARDS {
            let is_deaf = self.dice.chance(30);
            self.sim.set_deaf(shard, is_deaf);
        }
        match self.dice.below(if self.has_plenty { 5 } else { 12 }) {
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

    /// A connection breaks. What it holds is free again, and what it was not sent goes back.
    fn let_go(&mut self) {
        let index = self.index(self.workers.len());
        // Nobody knows what becomes of these.
        if !matches!(self.workers[index].asked, Some(Asked::Put(_) | Asked::Ack(_))) {
            let gone = self.workers.swap_remove(index);
            self.sim.cut(gone.id);
        }
    }

    fn ask(&mut self, index: usize) {
        if self.workers[index].asked.is_some() {
            return;
        }
        let wait = self.dice.below(3) * 300;
        let from = ["MIN", "MAX"][self.index(2)];
        let from = format!("QUEUES {} {} WAIT {wait} FROM {from}", QUEUES.len(), QUEUES.join(" "));
        let some = self.workers[index].held.iter().next();
        let choice = self.dice.below(if self.has_plenty { 20 } else { 8 });
        let (line, asked) = match (choice, some) {
            (0..=2 | 8..=15, _) => {
                self.puts += 1;
                let (queue, payload) =
                    (QUEUES[self.index(QUEUES.len())], format!("p{}", self.puts));
                let priority = self.dice.below(4);
                let line = format!("PUT {queue} {payload} PRIORITY {priority}");
                (line, Asked::Put(payload))
            }
            (3..=4, _) => (format!("TAKE {from} COUNT 4"), Asked::Take),
            (5 | 16.., _) => (format!("POP {from} COUNT 4"), Asked::Pop),
            (6, Some((payload, (queue, receipt)))) => {
                (format!("ACK {queue} {receipt}"), Asked::Ack(payload.clone()))
            }
            (_, Some((payload, (queue, receipt)))) => {
                let done = format!("TAKE {from} DONE {queue} {receipt}");
                let payload = payload.clone();
                self.workers[index].held.remove(&payload);
                self.present.remove(&payload);
                self.gone.insert(payload);
                (done, Asked::Take)
            }
            (_, None) => return,
        };
        self.workers[index].asked = Some(asked);
        self.sim.feed(self.workers[index].id, format!("{line}\r\n").as_bytes());
    }

    /// Reads what has come, and checks it.
    fn hear(&mut self) {
        for index in 0..self.workers.len() {
            let text = self.read(self.workers[index].id);
            if text.is_empty() {
                continue;
            }
            let worker = &mut self.workers[index];
            let words: Vec<&str> = text.lines().filter(|it| !it.starts_with(['*', '$'])).collect();
            match worker.asked.take() {
                Some(Asked::Put(payload)) => {
                    assert!(text.starts_with('$'), "{text}");
                    if !self.gone.contains(&payload) {
                        self.present.insert(payload);
                    }
                }
                Some(Asked::Take) => {
                    assert!(text.starts_with('*'), "{text}");
                    for task in words.chunks(4) {
                        let [queue, _, receipt, payload] = task else { panic!("{text}") };
                        let lease = ((*queue).to_owned(), (*receipt).to_owned());
                        worker.held.insert((*payload).to_owned(), lease);
                        self.present.insert((*payload).to_owned());
                    }
                }
                Some(Asked::Pop) => {
                    for task in words.chunks(3) {
                        let [_, _, payload] = task else { panic!("{text}") };
                        self.present.remove(*payload);
                        assert!(self.gone.insert((*payload).to_owned()), "{payload} came twice");
                    }
                }
                Some(Asked::Ack(payload)) => {
                    assert_eq!(text, "+OK\r\n");
                    worker.held.remove(&payload);
                    self.present.remove(&payload);
                    self.gone.insert(payload);
                }
                None => panic!("nobody has asked for {text:?}"),
            }
            let held: Vec<&String> = self.workers.iter().flat_map(|it| it.held.keys()).collect();
            let each: BTreeSet<&String> = held.iter().copied().collect();
            assert_eq!(held.len(), each.len(), "a task is held twice: {held:?}");
        }
    }

    /// All letters arrive. Then no task is taken but those that clients know of, and nobody waits
    /// but those who have no answer.
    fn check(&mut self, seed: u64) {
        for shard in 0..SHARDS {
            self.sim.set_deaf(shard, false);
        }
        self.sim.run();
        self.hear();
        let id = self.sim.connect(DoorName::Resp);
        let stats = self.say(id, "STATS");
        let figure = |name: &str| {
            let mut lines = stats.lines().skip_while(|line| *line != name);
            lines.nth(1).unwrap().trim_start_matches(':').parse::<usize>().unwrap()
        };
        let held: usize = self.workers.iter().map(|worker| worker.held.len()).sum();
        assert_eq!(figure("T"), held, "seed {seed}: {stats}");
        assert_eq!(figure("present"), self.present.len(), "seed {seed}");
        // Each counts in one shard, where its time may be up a little earlier.
        let waiting = self.workers.iter().filter(|worker| worker.asked.is_some()).count();
        assert!(figure("takers") <= waiting, "seed {seed}: {waiting} wait\n{stats}");
        self.sim.cut(id);
        self.sim.run();
    }

    /// All go on, and then all tasks are there, and none has failed but by a broken connection.
    fn end(&mut self, seed: u64) {
        self.check(seed);
        self.clock.advance(Span::from_ms(5_000));
        self.sim.tick();
        self.sim.run();
        self.hear();
        for worker in std::mem::take(&mut self.workers) {
            assert!(worker.asked.is_none(), "seed {seed}: a client is not answered");
            self.sim.cut(worker.id);
        }
        self.sim.run();
        let id = self.sim.connect(DoorName::Resp);
        let mut left = BTreeSet::new();
        for queue in QUEUES {
            let popped = self.say(id, &format!("POP {queue} COUNT 1000"));
            let words: Vec<&str> =
                popped.lines().filter(|it| !it.starts_with(['*', '$'])).collect();
            left.extend(words.chunks(3).map(|task| task[2].to_owned()));
        }
        assert_eq!(left, self.present, "seed {seed}");
    }

    fn say(&mut self, id: ClientId, line: &str) -> String {
        self.sim.feed(id, format!("{line}\r\n").as_bytes());
        self.sim.run();
        self.read(id)
    }

    fn read(&mut self, id: ClientId) -> String {
        let mut received = Vec::new();
        self.sim.drain(id, usize::MAX, &mut received);
        String::from_utf8(received).unwrap()
    }
}
