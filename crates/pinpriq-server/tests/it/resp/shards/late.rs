//! Takes and pops from queues of several shards, while letters between these are late and
//! connections break: nothing is lost, handed to two clients, or left taken.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_server::config::DoorName;

use crate::crowd::{Crowd, Late, Worker};

const QUEUES: [&str; 5] = ["q0", "q1", "q2", "q3", "q4"];

/// What a client waits for.
enum Asked {
    Put(String),
    Take,
    Pop,
    /// A task to be finished.
    Ack(String),
}

/// The payloads that a client holds, with their queues and receipts.
type Held = BTreeMap<String, (String, String)>;

struct Tasks {
    late: Late,
    workers: Vec<Worker<Asked, Held>>,
    /// The payloads that are there, held or not.
    present: BTreeSet<String>,
    /// The payloads that are gone. Its producer may not have heard of that yet.
    gone: BTreeSet<String>,
    puts: u32,
    /// Whether mostly there are tasks, so that several shards fill a reply. Otherwise clients wait
    /// in all shards.
    has_plenty: bool,
}

#[test]
fn no_task_is_lost_or_held_twice_between_shards() {
    for seed in 0..60 {
        let (workers, present, gone) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let has_plenty = seed % 2 == 1;
        let mut late = Late::of(seed);
        late.one_breaks_in = if has_plenty { 5 } else { 12 };
        Tasks { late, workers, present, gone, puts: 0, has_plenty }.play(500);
    }
}

impl Crowd for Tasks {
    type Asked = Asked;
    type Held = Held;

    fn late(&mut self) -> &mut Late {
        &mut self.late
    }

    fn workers(&mut self) -> &mut Vec<Worker<Asked, Held>> {
        &mut self.workers
    }

    fn hire(&mut self) {
        let id = self.late.connect(DoorName::Resp);
        self.workers.push(Worker { id, asked: None, held: Held::new() });
    }

    fn may_break(asked: &Asked) -> bool {
        !matches!(asked, Asked::Put(_) | Asked::Ack(_))
    }

    fn ask(&mut self, index: usize) {
        let wait = self.late.dice.below(3) * 300;
        let from = ["MIN", "MAX"][self.late.index(2)];
        let from = format!("QUEUES {} {} WAIT {wait} FROM {from}", QUEUES.len(), QUEUES.join(" "));
        let some = self.workers[index].held.iter().next();
        let choice = self.late.dice.below(if self.has_plenty { 20 } else { 8 });
        let (line, asked) = match (choice, some) {
            (0..=2 | 8..=15, _) => {
                self.puts += 1;
                let (queue, payload) =
                    (QUEUES[self.late.index(QUEUES.len())], format!("p{}", self.puts));
                let priority = self.late.dice.below(4);
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
        self.late.sim.feed(self.workers[index].id, format!("{line}\r\n").as_bytes());
    }

    fn hear(&mut self) {
        for index in 0..self.workers.len() {
            let text = self.late.read(self.workers[index].id);
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
                None => panic!("not asked for: {text:?}"),
            }
            let held: Vec<&String> = self.workers.iter().flat_map(|it| it.held.keys()).collect();
            let each: BTreeSet<&String> = held.iter().copied().collect();
            assert_eq!(held.len(), each.len(), "a task is held twice: {held:?}");
        }
    }

    /// No task is taken but those that clients know of, and no client waits but those without
    /// an answer.
    fn check(&mut self) {
        let seed = self.late.seed;
        let id = self.late.sim.connect(DoorName::Resp);
        let stats = self.late.say(id, "STATS\r\n");
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
        self.late.sim.cut(id);
        self.late.sim.run();
    }

    /// All tasks are there, and none has failed but by a broken connection.
    fn end(&mut self) {
        let id = self.late.sim.connect(DoorName::Resp);
        let mut left = BTreeSet::new();
        for queue in QUEUES {
            let popped = self.late.say(id, &format!("POP {queue} COUNT 1000\r\n"));
            let words: Vec<&str> =
                popped.lines().filter(|it| !it.starts_with(['*', '$'])).collect();
            left.extend(words.chunks(3).map(|task| task[2].to_owned()));
        }
        assert_eq!(left, self.present, "seed {}", self.late.seed);
    }
}
