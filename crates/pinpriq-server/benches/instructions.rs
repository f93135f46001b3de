//! Work of a known size, for counting instructions under valgrind.
//!
//! A scenario is a few steps. `instructions SCENARIO N` makes it and carries out its first N steps;
//! what N + 1 steps take more than N is the cost of the last one. A third argument is another
//! number of tasks that are there first. `instructions list` tells all scenarios. It ends without
//! cleaning up, so that this is not counted. `scripts/count-instructions` does the counting, the
//! arithmetic and the comparison; there is no time in here. With any other arguments, as in the
//! gate, everything runs once at a small size and must do what it says.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has nothing to tell")]

mod talk;
mod words;

use std::io::Write as _;

use pinpriq_engine::Engine;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueCommand, QueueName, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{Assignment, RANKING, Value};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::config::DoorName;
use pinpriq_server::config::Durability;
use pinpriq_store::codec;

use self::talk::{PAYLOAD, PIPELINED, Talk, pops, pushes};
use self::words::{RESP, RESP_WITH_HEADERS, TUBES, Words};

/// The place of this ranking among all of them.
const FAIR: u8 = 1;

/// How much is done in a step.
const OPERATIONS: u64 = 16_000;

/// How much is done in a step, and before it, where nothing is counted.
const OPERATIONS_ONCE: u64 = 64;
const BACKLOG_ONCE: u64 = 640;

const QUEUE: &[u8] = &NAME.0;
/// The C library compares at another pace what may reach into the next page of memory.
static NAME: OnOwnPage = OnOwnPage(*b"jobs");

#[repr(align(4096))]
struct OnOwnPage([u8; 4]);
const NOW: Timestamp = Timestamp::from_ms(1_000_000);

/// What a scenario is called, how many tasks there are first, its steps, and how it is made. A
/// step without a name is needed for the next one, and not reported.
struct Scenario {
    name: &'static str,
    backlog: u64,
    steps: &'static [&'static str],
    make: fn(u64, u64) -> Box<dyn Steps>,
}

/// Carries out steps.
trait Steps {
    /// The step of that number, and nothing else.
    fn step(&mut self, number: usize);

    /// How many tasks there are. The last step leaves as many as there were first.
    fn present(&self) -> u64;
}

const SCENARIOS: [Scenario; 9] = [
    Scenario {
        name: "engine",
        backlog: 100_000,
        steps: &["put", "take", "ack"],
        make: |backlog, operations| Box::new(Bare::new(backlog, operations, &[])),
    },
    Scenario {
        name: "engine-fair",
        backlog: 100_000,
        steps: &["put", "take", "ack"],
        make: |backlog, operations| {
            Box::new(Bare::new(backlog, operations, &[(RANKING, Value::Word(FAIR))]))
        },
    },
    Scenario {
        name: "resp-memory",
        backlog: 10_000,
        steps: &["put", "take", "", "ack"],
        make: |backlog, operations| {
            Box::new(Leased::new(&RESP, Durability::Memory, backlog, operations / PIPELINED))
        },
    },
    Scenario {
        name: "resp-journal",
        backlog: 10_000,
        steps: &["put", "take", "", "ack"],
        make: |backlog, operations| {
            Box::new(Leased::new(&RESP, Durability::Sync, backlog, operations / PIPELINED))
        },
    },
    Scenario {
        name: "resp-headers",
        backlog: 10_000,
        steps: &["put", "take", "", "ack"],
        make: |backlog, operations| {
            let operations = operations / PIPELINED;
            Box::new(Leased::new(&RESP_WITH_HEADERS, Durability::Memory, backlog, operations))
        },
    },
    Scenario {
        name: "tubes-memory",
        backlog: 10_000,
        steps: &["put", "reserve", "", "delete"],
        make: |backlog, operations| {
            Box::new(Leased::new(&TUBES, Durability::Memory, backlog, operations / PIPELINED))
        },
    },
    Scenario {
        name: "tubes-journal",
        backlog: 10_000,
        steps: &["put", "reserve", "", "delete"],
        make: |backlog, operations| {
            Box::new(Leased::new(&TUBES, Durability::Sync, backlog, operations / PIPELINED))
        },
    },
    Scenario {
        name: "pinpriq-memory",
        backlog: 10_000,
        steps: &["push", "pop"],
        make: |backlog, operations| Box::new(Pinpriq::new(backlog, operations / PIPELINED)),
    },
    Scenario {
        name: "journal",
        backlog: 0,
        steps: &["encode", "decode"],
        make: |_, operations| Box::new(Records::new(operations)),
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => list(),
        [name, steps, backlog @ ..]
            if let Some(scenario) = SCENARIOS.iter().find(|it| it.name == *name) =>
        {
            let count = steps.parse().expect("the second argument is a number of steps");
            let backlog = backlog.first().map_or(scenario.backlog, |backlog| {
                backlog.parse().expect("the third argument is a number of tasks")
            });
            let mut made = (scenario.make)(backlog, OPERATIONS);
            (0..count).for_each(|number| made.step(number));
            std::mem::forget(made);
        }
        _ => {
            for scenario in &SCENARIOS {
                let mut made = (scenario.make)(BACKLOG_ONCE, OPERATIONS_ONCE);
                let before = made.present();
                (0..scenario.steps.len()).for_each(|number| made.step(number));
                assert_eq!(made.present(), before, "{}", scenario.name);
            }
        }
    }
}

/// A line for each scenario: its name, how many operations a step has, and its steps; `-` is one
/// without a name.
fn list() {
    let mut out = std::io::stdout().lock();
    for Scenario { name, steps, .. } in &SCENARIOS {
        let steps: Vec<&str> =
            steps.iter().map(|step| if step.is_empty() { "-" } else { step }).collect();
        writeln!(out, "{name} {OPERATIONS} {}", steps.join(" ")).expect("stdout takes it");
    }
}

/// The engine alone. Its changes are reported and dropped.
struct Bare {
    engine: Engine,
    operations: u64,
    said: u64,
    changes: Vec<Change>,
    taken: Vec<Receipt>,
}

impl Bare {
    /// An engine with a queue that has these settings.
    fn new(backlog: u64, operations: u64, settings: &[Assignment<'_>]) -> Self {
        let mut engine = Engine::new(Limits::default(), 1);
        engine.start(NOW, 1, Header::default());
        let taken = Vec::with_capacity(usize::try_from(operations).unwrap_or(0));
        let mut bare = Self { engine, operations, said: 0, changes: Vec::new(), taken };
        if !settings.is_empty() {
            bare.say(QueueCommand::Create { queue: QUEUE, settings }.into());
        }
        (0..backlog).for_each(|_| bare.put());
        bare
    }

    fn say(&mut self, command: Command<'_>) -> Option<Reply> {
        self.said += 1;
        self.engine.apply(NOW, ClientId(1), RequestId(self.said), &command);
        self.engine.take_changes(&mut self.changes);
        self.changes.clear();
        let mut answered = None;
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply { reply, .. } = output {
                answered = Some(reply);
            }
        }
        answered
    }

    fn put(&mut self) {
        let mixed = self.said.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let priority = Some(mixed.cast_signed() % 10);
        self.say(Command::Put(Put { priority, ..Put::new(QUEUE, &PAYLOAD) }));
    }

    fn take(&mut self) -> Option<Receipt> {
        let mode = TakeMode::Lease { ttr: Some(Span::from_ms(60_000)) };
        let (queues, member, count) = (&[QUEUE][..], None, 1);
        let (selection, wait) = (Selection::DEFAULT, Wait::No);
        let take = Take { queues, member, count, wait, selection, mode };
        match self.say(Command::Take(take)) {
            Some(Reply::Tasks { tasks, .. }) => tasks.first().and_then(TaskRecord::receipt),
            _ => None,
        }
    }

    fn ack(&mut self, receipt: Receipt) {
        let held = Held { queue: QueueName::from(QUEUE), by: HeldBy::Receipt(receipt) };
        let reply = self.say(Command::Ack(Ack::new(held)));
        assert_eq!(reply, Some(Reply::Done));
    }
}

impl Steps for Bare {
    fn step(&mut self, number: usize) {
        match number {
            0 => (0..self.operations).for_each(|_| self.put()),
            1 => {
                for _ in 0..self.operations {
                    let receipt = self.take().expect("there are enough tasks");
                    self.taken.push(receipt);
                }
            }
            _ => std::mem::take(&mut self.taken).into_iter().for_each(|it| self.ack(it)),
        }
    }

    fn present(&self) -> u64 {
        self.engine.totals().present()
    }
}

/// A server and a client that takes tasks under leases, and finishes them.
struct Leased {
    talk: Talk,
    words: &'static Words,
    rounds: u64,
    puts: Vec<u8>,
    takes: Vec<u8>,
    taken: Vec<Vec<u8>>,
    acks: Vec<Vec<u8>>,
}

impl Leased {
    fn new(words: &'static Words, durability: Durability, backlog: u64, rounds: u64) -> Self {
        let (puts, takes) = ((words.puts)(PIPELINED), (words.takes)(PIPELINED));
        let mut talk = Talk::open(words.door, durability);
        (0..backlog / PIPELINED).for_each(|_| talk.say(&puts));
        Self { talk, words, rounds, puts, takes, taken: Vec::new(), acks: Vec::new() }
    }
}

impl Steps for Leased {
    fn step(&mut self, number: usize) {
        match number {
            0 => (0..self.rounds).for_each(|_| self.talk.say(&self.puts)),
            1 => {
                for _ in 0..self.rounds {
                    self.talk.say(&self.takes);
                    self.taken.push(self.talk.answers.clone());
                }
            }
            2 => {
                let acks = |answers: &Vec<u8>| (self.words.acks)(answers);
                self.acks = self.taken.iter().map(acks).collect();
            }
            _ => {
                for acks in &self.acks {
                    self.talk.say(acks);
                    assert!(self.talk.answers.starts_with(self.words.acked), "it was taken");
                }
            }
        }
    }

    fn present(&self) -> u64 {
        self.talk.present()
    }
}

/// A server and a client that speaks the pinpriq protocol.
struct Pinpriq {
    talk: Talk,
    pushes: Vec<Vec<u8>>,
    pops: Vec<u8>,
}

impl Pinpriq {
    fn new(backlog: u64, rounds: u64) -> Self {
        let mut talk = Talk::open(DoorName::Pinpriq, Durability::Memory);
        let mut round = |number: u64| pushes(number * PIPELINED..(number + 1) * PIPELINED);
        let before = backlog / PIPELINED;
        (0..before).for_each(|number| talk.say(&round(number)));
        let pushes = (before..before + rounds).map(&mut round).collect();
        Self { talk, pushes, pops: pops(PIPELINED) }
    }
}

impl Steps for Pinpriq {
    fn step(&mut self, number: usize) {
        for pushes in &self.pushes {
            if number == 0 {
                self.talk.say(pushes);
            } else {
                self.talk.say(&self.pops);
                assert!(self.talk.answers.starts_with(b"\0\x01"), "it was pushed");
            }
        }
    }

    fn present(&self) -> u64 {
        self.talk.present()
    }
}

/// What the journal writes for a task that was put.
struct Records {
    change: Change,
    operations: u64,
    bytes: Vec<u8>,
}

impl Records {
    fn new(operations: u64) -> Self {
        let mut engine = Engine::new(Limits::default(), 1);
        engine.start(NOW, 1, Header::default());
        let put =
            Put { terms: Terms { key: Some(b"k"), ..Terms::NONE }, ..Put::new(QUEUE, &PAYLOAD) };
        engine.apply(NOW, ClientId(1), RequestId(1), &Command::Put(put));
        let mut changes = Vec::new();
        engine.take_changes(&mut changes);
        let change = changes.pop().expect("a put is a change");
        let mut bytes = Vec::new();
        codec::encode(&change, &mut bytes);
        let room = bytes.len() * usize::try_from(operations).unwrap_or(0);
        Self { change, operations, bytes: Vec::with_capacity(room) }
    }
}

impl Steps for Records {
    fn step(&mut self, number: usize) {
        if number == 0 {
            (0..self.operations).for_each(|_| codec::encode(&self.change, &mut self.bytes));
            return;
        }
        let (mut rest, mut names) = (self.bytes.as_slice(), codec::Names::default());
        for _ in 0..self.operations {
            let change = codec::decode(&mut rest, &mut names).expect("it was encoded");
            assert!(change.key() == self.change.key(), "it is what it was");
        }
        assert!(rest.is_empty(), "nothing is left over");
    }

    fn present(&self) -> u64 {
        0
    }
}
