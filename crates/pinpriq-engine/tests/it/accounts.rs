//! Counts the tasks of accounts while random commands put, move, end and undo them.
//!
//! Each account puts into queues of its own, and nothing moves from the queues of one to those of
//! another. So the count of an account is the number of tasks in its queues.

use std::collections::BTreeMap;

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Command, Delay, Put, QueueCommand, QueueName, Selection, Step, Take, TakeMode, TimeToLive, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{CAPACITY, Value};
use pinpriq_proto::task::{Bytes, ClientId, RequestId, StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::Dice;

const ACCOUNTS: [&[u8]; 2] = [b"ana", b"ben"];
const SECOND: Span = Span::from_ms(1_000);

/// An engine, and how many tasks each account has as far as it has said.
struct World {
    engine: Engine,
    now: Timestamp,
    counts: BTreeMap<Bytes, i64>,
}

impl World {
    fn new() -> Self {
        let mut engine = Engine::new(Limits::default(), 5);
        engine.start(Timestamp::ZERO, 1, Header::default());
        Self { engine, now: Timestamp::ZERO, counts: BTreeMap::new() }
    }

    /// Carries out a command for an account. Returns its replies.
    fn ask(&mut self, account: Option<&[u8]>, command: &Command<'_>) -> Vec<Reply> {
        self.engine.charge(account.map(Bytes::from).as_ref());
        self.engine.apply(self.now, ClientId(1), RequestId(7), command);
        self.engine.charge(None);
        self.engine.check();
        let mut replies = Vec::new();
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply { reply, .. } = output {
                replies.push(reply);
            }
        }
        replies
    }

    /// Lets everything happen that is due.
    fn settle(&mut self) {
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now);
        }
        let mut changes = Vec::new();
        self.engine.take_charges(&mut changes);
        for (account, change) in changes {
            *self.counts.entry(account).or_default() += change;
        }
    }

    fn count(&self, account: &[u8]) -> i64 {
        self.counts.get(account).copied().unwrap_or(0)
    }

    /// The number of tasks in a queue.
    fn present(&mut self, queue: QueueName<'_>) -> i64 {
        match &self.ask(None, &Command::Queue(QueueCommand::Stats(Some(queue))))[..] {
            [.., Reply::Figures(figures)] => figures.counters.present().cast_signed(),
            [.., Reply::Refused(_)] => 0,
            other => panic!("no figures but {other:?}"),
        }
    }
}

/// One random command for the account `who`, about two queues and a topic of its own.
fn act(world: &mut World, dice: &mut Dice, who: usize) {
    let account = ACCOUNTS[who];
    let names = [[account, b".one"].concat(), [account, b".two"].concat()];
    let topic = [account, b".topic"].concat();
    let (queue, other) = if dice.chance(50) { (0, 1) } else { (1, 0) };
    let (queue, other) = (&names[queue][..], &names[other][..]);
    let name = QueueName { name: queue, member: None };
    let put = Put {
        delay: if dice.chance(10) { Delay::For(SECOND) } else { Delay::NONE },
        ttl: match dice.below(8) {
            0 => TimeToLive::For(SECOND),
            1 => TimeToLive::Instant,
            _ => TimeToLive::Default,
        },
        ..Put::new(queue, b"x")
    };
    let put = if put.ttl == TimeToLive::Instant { Put { delay: Delay::NONE, ..put } } else { put };
    let queues = [queue];
    let take = Take {
        queues: &queues,
        member: None,
        count: 1 + u32::try_from(dice.below(3)).unwrap(),
        wait: Wait::No,
        selection: Selection::DEFAULT,
        mode: if dice.chance(50) { TakeMode::Pop } else { TakeMode::Lease { ttr: Some(SECOND) } },
    };
    let publish = Publish {
        topic: &topic,
        payload: b"x",
        terms: Terms::NONE,
        priority: None,
        deadline: Deadline::After(SECOND),
    };
    let moves = Command::Move { from: name, to: other, count: 2, state: StateKind::Ready };
    let at_once = Put { delay: Delay::NONE, ..put };
    let mut steps = vec![
        Step::Command(Command::Put(at_once)),
        Step::Command(moves),
        Step::Command(Command::Take(take)),
        Step::Command(Command::Publish(publish)),
        Step::Command(Command::Put(at_once)),
    ];
    let command = match dice.below(20) {
        0..=7 => Command::Put(put),
        8 => Command::PutInLine { put: &at_once, room: SECOND },
        9..=11 => Command::Take(take),
        12 | 13 => moves,
        14 => Command::Queue(QueueCommand::Truncate(name)),
        15 | 16 => Command::Publish(publish),
        17 => {
            if dice.chance(60) {
                steps.push(Step::Bad("this is what the test wants"));
            }
            Command::Transaction(&steps)
        }
        _ => {
            world.now = world.now.after(Span::from_ms(dice.below(700)));
            return;
        }
    };
    world.ask(Some(account), &command);
}

#[test]
fn an_account_has_the_tasks_that_it_has_put_and_that_are_there() {
    for seed in 0..60 {
        let (mut dice, mut world) = (Dice::new(seed), World::new());
        for account in ACCOUNTS {
            let queue = [account, b".one"].concat();
            let queue = QueueName { name: &queue, member: None };
            let settings = &[(CAPACITY, Value::Number(5))];
            world.ask(None, &Command::Queue(QueueCommand::Set { queue, settings }));
            let topic = [account, b".topic"].concat();
            for member in [&b"m"[..], b"n"] {
                let join = MemberCommand::Join { topic: &topic, member, lease: None };
                world.ask(None, &Command::Member(join));
            }
        }
        for step in 0..200 {
            let who = dice.index(ACCOUNTS.len());
            act(&mut world, &mut dice, who);
            world.settle();
            for account in ACCOUNTS {
                let topic = [account, b".topic"].concat();
                let mut present = 0;
                for queue in [[account, b".one"].concat(), [account, b".two"].concat()] {
                    present += world.present(QueueName { name: &queue, member: None });
                }
                for member in [&b"m"[..], b"n"] {
                    present += world.present(QueueName { name: &topic, member: Some(member) });
                }
                let (name, count) = (account.escape_ascii(), world.count(account));
                assert_eq!(count, present, "{name} at step {step} of seed {seed}");
            }
        }
    }
}

#[test]
fn nothing_counts_without_an_account() {
    let mut world = World::new();
    world.ask(None, &Command::Put(Put::new(b"q", b"x")));
    world.ask(Some(b"ana"), &Command::Put(Put::new(b"q", b"x")));
    world.ask(None, &Command::Put(Put::new(b"q", b"x")));
    world.settle();
    assert_eq!(world.counts, BTreeMap::from([(Bytes::from(&b"ana"[..]), 1)]));
    world.ask(None, &Command::Kill { queue: QueueName { name: b"q", member: None }, ids: &[b"1"] });
    world.settle();
    assert_eq!(world.count(b"ana"), 1);
    world.ask(None, &Command::Kill { queue: QueueName { name: b"q", member: None }, ids: &[b"2"] });
    world.settle();
    assert_eq!(world.count(b"ana"), 0);
}
