//! A limit of several queues is exact: there are never more leases than it allows, whatever becomes
//! of workers, servers and owners, and no place is lost.

use pinpriq_engine::Engine;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueCommand, Selection, Take, TakeMode, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::named_limits::{LimitChange, LimitCommand, OrNone};
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{USES, Value};
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, StateKind, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::Dice;

const QUEUES: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];
const WORKERS: u64 = 64;
const MAX: u64 = 8;
const STEPS: usize = 6_000;

struct World {
    engine: Engine,
    log: Vec<Change>,
    now: Timestamp,
    incarnation: u64,
    held: Vec<(usize, Receipt)>,
    taken: u64,
    dice: Dice,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut engine = Engine::new(Limits::default(), seed);
        let now = Timestamp::from_ms(1_000);
        engine.start(now, 1, Header::default());
        let (log, held, dice) = (Vec::new(), Vec::new(), Dice::new(seed));
        let mut world = Self { engine, log, now, incarnation: 1, held, taken: 0, dice };
        let change = LimitChange { max: Some(OrNone(Some(MAX))), rate: None };
        world.ask(0, &LimitCommand::Set { name: b"gpu", change }.into());
        for queue in QUEUES {
            let settings = &[(USES, Value::Bytes(b"gpu"))];
            world.ask(0, &QueueCommand::Create { queue, settings }.into());
        }
        world
    }

    fn ask(&mut self, client: u64, command: &Command<'_>) -> Option<Reply> {
        self.engine.apply(self.now, ClientId(client), RequestId(client), command);
        self.hear(client)
    }

    /// Keeps what is durable, and the receipts that clients got. Returns the reply to one of them.
    fn hear(&mut self, asker: u64) -> Option<Reply> {
        self.engine.take_changes(&mut self.log);
        let mut answer = None;
        while let Some(output) = self.engine.poll_output() {
            let Output::Reply { client, reply, .. } = output else { continue };
            if let Reply::Tasks { tasks, .. } = &reply {
                self.taken += tasks.len() as u64;
                self.held.extend(tasks.iter().filter_map(held));
            }
            if client == ClientId(asker) && answer.is_none() {
                answer = Some(reply);
            }
        }
        answer
    }

    /// Another server goes on with what is durable.
    fn restart(&mut self) {
        let mut fresh = Engine::new(Limits::default(), 3);
        for change in self.log.clone() {
            fresh.restore(change, None);
        }
        if self.dice.once_in(2) {
            fresh.set_grace(Span::from_ms(500));
        }
        self.incarnation += 1;
        fresh.start(self.now, self.incarnation, self.engine.header());
        self.engine = fresh;
        self.hear(0);
    }

    fn step(&mut self) {
        let worker = 1 + self.dice.below(WORKERS);
        let queue = self.dice.pick(&QUEUES);
        match self.dice.below(100) {
            0..=39 => drop(self.ask(0, &Command::Put(Put::new(queue, b"x")))),
            40..=69 => {
                let ttr = self.dice.chance(80).then(|| Span::from_ms(1 + self.dice.below(900)));
                let queues: &[&[u8]] = if self.dice.once_in(4) { &QUEUES } else { &[queue] };
                let wait = if self.dice.once_in(3) { Wait::No } else { Wait::Forever };
                let (mode, count) = (TakeMode::Lease { ttr }, 1 + 2 * u32::from(worker < 9));
                let selection = Selection::DEFAULT;
                let take = Take { queues, member: None, count, wait, selection, mode };
                self.ask(worker, &Command::Take(take));
            }
            70..=89 if !self.held.is_empty() => {
                let at = self.dice.index(self.held.len());
                let (queue, receipt) = self.held.swap_remove(at);
                let held = Held { queue: QUEUES[queue].into(), by: HeldBy::Receipt(receipt) };
                self.ask(0, &Command::Ack(Ack::new(held)));
            }
            90..=92 => {
                let farewell = Farewell::Ended { unsent: &[] };
                self.engine.disconnect(self.now, ClientId(worker), farewell);
                self.hear(0);
            }
            93 => self.restart(),
            94 if self.dice.once_in(4) => {
                self.ask(0, &Command::Queue(QueueCommand::Truncate(queue.into())));
            }
            _ => {
                self.now = self.now.after(Span::from_ms(self.dice.below(60)));
                self.engine.handle_timeout(self.now);
                self.hear(0);
            }
        }
    }

    /// How many tasks there are in a state, by the figures of the queues.
    fn count(&mut self, kind: StateKind) -> u64 {
        QUEUES.into_iter().map(|queue| self.figures(queue, kind)).sum()
    }

    fn figures(&mut self, queue: &[u8], kind: StateKind) -> u64 {
        match self.ask(0, &QueueCommand::Stats(Some(queue.into())).into()) {
            Some(Reply::Figures(figures)) => figures.counters.count(kind),
            other => panic!("no figures but {other:?}"),
        }
    }
}

fn held(task: &TaskRecord) -> Option<(usize, Receipt)> {
    let queue = QUEUES.into_iter().position(|queue| *queue == *task.queue)?;
    Some((queue, task.receipt()?))
}

#[test]
fn never_more_than_max_are_taken() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        let mut was_full = false;
        for step in 0..STEPS {
            world.step();
            let taken = world.count(StateKind::Taken);
            assert!(taken <= MAX, "{taken} are taken after step {step} of seed {seed}");
            was_full |= taken == MAX;
        }
        world.engine.check();
        assert!(was_full && world.taken > 1_000, "seed {seed}: {} were taken", world.taken);
    }
}
