//! Reserves from tubes of several shards, while letters between these are late: no job is lost, or
//! held by two clients, and what one shard hands over in vain is there again.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_proto::task::ClientId;
use pinpriq_server::config::DoorName;

use crate::crowd::{Crowd, Late, Worker};

const TUBES: [&str; 5] = ["default", "a", "b", "c", "d"];

/// What a client waits for.
enum Asked {
    Put,
    Reserve,
    /// A job to be finished, and the verb.
    Done(u64, &'static str),
    /// An answer that tells nothing.
    Any,
}

/// The jobs that a client holds.
type Held = BTreeSet<u64>;

struct Jobs {
    late: Late,
    workers: Vec<Worker<Asked, Held>>,
    /// The jobs that are there, and how often each was reserved.
    reserved: BTreeMap<u64, u32>,
    inserted: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
}

#[test]
fn no_job_is_lost_or_held_twice_between_shards() {
    for seed in 0..60 {
        let (workers, reserved) = (Vec::new(), BTreeMap::new());
        let (inserted, deleted) = (BTreeSet::new(), BTreeSet::new());
        Jobs { late: Late::of(seed), workers, reserved, inserted, deleted }.play(600);
    }
}

impl Jobs {
    fn watch_all(&mut self, id: ClientId) {
        for tube in TUBES {
            self.late.say(id, &format!("watch {tube}\r\n"));
        }
    }
}

impl Crowd for Jobs {
    type Asked = Asked;
    type Held = Held;

    fn late(&mut self) -> &mut Late {
        &mut self.late
    }

    fn workers(&mut self) -> &mut Vec<Worker<Asked, Held>> {
        &mut self.workers
    }

    fn hire(&mut self) {
        let id = self.late.connect(DoorName::Beanstalkd);
        self.watch_all(id);
        self.workers.push(Worker { id, asked: None, held: Held::new() });
    }

    /// A put that was not answered may have happened, and so may a deletion.
    fn may_break(asked: &Asked) -> bool {
        !matches!(asked, Asked::Put | Asked::Done(_, "delete"))
    }

    fn ask(&mut self, index: usize) {
        let held: Vec<u64> = self.workers[index].held.iter().copied().collect();
        // Mostly there is no job to reserve, so that clients wait in all shards.
        let (line, asked) = match self.late.dice.below(12) {
            0..=2 => {
                let (tube, priority) =
                    (TUBES[self.late.index(TUBES.len())], self.late.dice.below(4));
                self.late.sim.feed(self.workers[index].id, format!("use {tube}\r\n").as_bytes());
                (format!("put {priority} 0 600 1\r\nx\r\n"), Asked::Put)
            }
            3..=6 => {
                let timeout_s = self.late.dice.below(3);
                (format!("reserve-with-timeout {timeout_s}\r\n"), Asked::Reserve)
            }
            7 => ("stats\r\n".to_owned(), Asked::Any),
            _ if held.is_empty() => return,
            _ => {
                let number = held[self.late.index(held.len())];
                match self.late.dice.below(4) {
                    0..=1 => (format!("delete {number}\r\n"), Asked::Done(number, "delete")),
                    2 => (format!("release {number} 2 0\r\n"), Asked::Done(number, "release")),
                    _ => (format!("stats-job {number}\r\n"), Asked::Any),
                }
            }
        };
        self.workers[index].asked = Some(asked);
        self.late.sim.feed(self.workers[index].id, line.as_bytes());
    }

    fn hear(&mut self) {
        for index in 0..self.workers.len() {
            let text = self.late.read(self.workers[index].id);
            let text = text.split_inclusive("\r\n").filter(|line| !line.starts_with("USING"));
            let text = text.collect::<String>();
            if text.is_empty() {
                continue;
            }
            let worker = &mut self.workers[index];
            let line = text.lines().next().unwrap();
            match worker.asked.take() {
                Some(Asked::Put) => {
                    let number = line.strip_prefix("INSERTED ").unwrap().parse().unwrap();
                    assert!(self.inserted.insert(number), "{number} is there already");
                    // Somebody may have reserved it before its client hears of it.
                    if !self.deleted.contains(&number) {
                        self.reserved.entry(number).or_default();
                    }
                }
                Some(Asked::Reserve) => {
                    if line == "TIMED_OUT" {
                        continue;
                    }
                    let number: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
                    assert!(!self.deleted.contains(&number), "{number} was deleted");
                    worker.held.insert(number);
                    *self.reserved.entry(number).or_default() += 1;
                    // One that gives it up may not have heard that this is done.
                    let gives_up = |worker: &Worker<Asked, Held>| match worker.asked {
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
                        self.reserved.remove(&number);
                        self.deleted.insert(number);
                    }
                }
                Some(Asked::Any) => assert!(line.starts_with("OK "), "{line}"),
                None => panic!("not asked for: {text:?}"),
            }
        }
    }

    /// No job is reserved but those that clients know of.
    fn check(&mut self) {
        let seed = self.late.seed;
        let id = self.late.sim.connect(DoorName::Beanstalkd);
        let held: usize = self.workers.iter().map(|worker| worker.held.len()).sum();
        let stats = self.late.say(id, "stats\r\n");
        let reserved = format!("current-jobs-reserved: {held}\n");
        assert!(stats.contains(&reserved), "seed {seed}: clients hold {held}\n{stats}");
        self.late.sim.cut(id);
    }

    /// All jobs are there and none is held.
    fn end(&mut self) {
        let seed = self.late.seed;
        let id = self.late.sim.connect(DoorName::Beanstalkd);
        self.watch_all(id);
        let mut last = 0;
        while !self.reserved.is_empty() {
            let answer = self.late.say(id, "reserve-with-timeout 0\r\n");
            let number: u64 = answer.split(' ').nth(1).expect(&answer).trim().parse().unwrap();
            let attempts = self.reserved.remove(&number).expect("a job that was never put");
            let shown = self.late.say(id, &format!("stats-job {number}\r\n"));
            let figure = |key: &str| -> u64 {
                let line = shown.lines().find_map(|line| line.strip_prefix(key));
                line.unwrap().trim().parse().unwrap()
            };
            // What was handed over in vain counts too.
            assert!(figure("reserves: ") > u64::from(attempts), "seed {seed}: {number}");
            assert!(figure("pri: ") >= last, "seed {seed}: the most urgent one comes first");
            last = figure("pri: ");
        }
        let rest = self.late.say(id, "reserve-with-timeout 0\r\n");
        assert_eq!(rest, "TIMED_OUT\r\n", "seed {seed}");
    }
}
