//! Takes under limits of a queue, of keys and of shares, again and again, while the limits change,
//! leases run out and the shard fails over: not one may be beyond a limit.
//!
//! The engine is asked alone, so that this is fast. What is taken is counted here from its answers,
//! in the plainest way, and nothing else about them is checked.

use pinpriq_engine::Engine;
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{
    Ack, Command, Fail, Held, HeldBy, Put, QueueCommand, QueueName, Release, Selection, Take,
    TakeMode, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{KEYHOLD, KEYLIMIT, LIMIT, RANKING, SHARELIMIT, Setting, Value};
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::{
    Bytes, COST_USUAL, ClientId, Receipt, RequestId, State, TaskRecord, Terms,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::fold::Fold;

use crate::Dice;

const QUEUE: &[u8] = b"work";
const KEYS: [&[u8]; 12] =
    [b"ka", b"kb", b"kc", b"kd", b"ke", b"kf", b"kg", b"kh", b"ki", b"kj", b"kk", b"kl"];
const SHARES: [&[u8]; 5] = [b"sa", b"sb", b"sc", b"sd", b"se"];
/// How many tasks there are, more or less.
const BACKLOG: u64 = 400;
/// The most that is taken at once.
const COUNT_MAX: u64 = 8;
/// How many steps there are between two changes of limits, and between two fail-overs, on average.
const CHANGE_IN: u64 = 500;
const FAILOVER_IN: u64 = 50_000;

/// What was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tried {
    /// How many tasks were taken.
    pub takes: u64,
    /// How often the shard has failed over.
    pub failovers: u64,
    /// The most that were taken at once.
    pub most: u64,
    /// How many takes found everything at its limit.
    pub refused: u64,
}

/// A lease that can be acknowledged.
#[derive(Clone, Copy)]
struct Lease {
    receipt: Receipt,
    until: Timestamp,
    key: Option<usize>,
    share: Option<usize>,
}

/// What is taken, and what may be.
#[derive(Default)]
struct Count {
    taken: u64,
    limit: Option<u64>,
}

struct World {
    dice: Dice,
    engine: Engine,
    /// What a new owner of the shard finds.
    kept: Fold,
    now: Timestamp,
    incarnation: u64,
    request: u64,
    changes: Vec<Change>,
    leases: Vec<Lease>,
    all: Count,
    keys: [Count; KEYS.len()],
    shares: [Count; SHARES.len()],
    key_limit: Option<u64>,
    share_limit: Option<u64>,
    tried: Tried,
}

/// Takes this many tasks.
///
/// # Panics
/// If one is taken beyond a limit.
#[must_use]
pub fn run(seed: u64, takes: u64) -> Tried {
    let mut world = World::new(seed);
    world.change_limits();
    while world.tried.takes < takes {
        world.step();
    }
    world.tried
}

impl World {
    fn new(seed: u64) -> Self {
        let mut engine = Engine::new(Limits::default(), seed);
        let now = Timestamp::from_ms(1_000_000);
        engine.start(now, 1, Header::default());
        Self {
            dice: Dice::new(seed),
            engine,
            kept: Fold::new(),
            now,
            incarnation: 1,
            request: 0,
            changes: Vec::new(),
            leases: Vec::new(),
            all: Count::default(),
            keys: Default::default(),
            shares: Default::default(),
            key_limit: None,
            share_limit: None,
            tried: Tried::default(),
        }
    }

    fn step(&mut self) {
        match self.dice.below(10) {
            0..4 => self.put(),
            4..6 => self.take(),
            6..9 => self.end_some(),
            _ => self.pass_time(),
        }
        if self.dice.once_in(CHANGE_IN) {
            self.change_limits();
        }
        if self.dice.once_in(FAILOVER_IN) {
            self.fail_over();
        }
    }

    fn say(&mut self, command: &Command<'_>) -> Option<Reply> {
        self.request += 1;
        self.engine.apply(self.now, ClientId(1), RequestId(self.request), command);
        let mut reply = None;
        while let Some(output) = self.engine.poll_output() {
            if let Output::Reply { reply: answer, .. } = output {
                reply = Some(answer);
            }
        }
        self.keep();
        reply
    }

    /// Keeps what has changed, as a log would.
    fn keep(&mut self) {
        self.engine.take_changes(&mut self.changes);
        let mut freed = Vec::new();
        for change in self.changes.drain(..) {
            self.kept.apply(&change, None, &mut freed);
        }
    }

    fn put(&mut self) {
        if self.engine.totals().present() >= BACKLOG {
            return;
        }
        let key = self.dice.index(KEYS.len() + 2);
        let share = self.dice.index(SHARES.len() + 2);
        let (key, share) = (KEYS.get(key).copied(), SHARES.get(share).copied());
        let terms = Terms::of(key, None).with(share, COST_USUAL);
        let priority = Some(self.dice.below(3).cast_signed());
        self.say(&Command::Put(Put { terms, priority, ..Put::new(QUEUE, b"w") }));
    }

    fn take(&mut self) {
        self.forget_ended();
        let mode = TakeMode::Lease { ttr: Some(Span::from_ms(1 + self.dice.below(60))) };
        let count = u32::try_from(1 + self.dice.below(COUNT_MAX)).unwrap_or(1);
        let (selection, wait, member) = (Selection::DEFAULT, Wait::No, None);
        let queues = &[QUEUE][..];
        let take = Take { queues, member, count, wait, selection, mode };
        let Some(Reply::Tasks { tasks, .. }) = self.say(&Command::Take(take)) else { return };
        self.tried.refused += u64::from(tasks.is_empty() && !self.leases.is_empty());
        for task in &tasks {
            self.note_taken(task);
        }
    }

    /// Counts a task that was taken.
    fn note_taken(&mut self, task: &TaskRecord) {
        let State::Taken(lease) = &task.progress.state else { return };
        let key = place(&KEYS, task.terms.key.as_ref());
        let share = place(&SHARES, task.terms.share());
        let until = lease.deadline.unwrap_or(Timestamp::MAX);
        let receipt = Receipt { number: task.number, grant: lease.grant };
        self.leases.push(Lease { receipt, until, key, share });
        self.tried.takes += 1;
        self.all.add("the queue");
        self.tried.most = self.all.taken.max(self.tried.most);
        if let Some(key) = key {
            self.keys[key].limit = self.key_limit;
            self.keys[key].add("a key");
        }
        if let Some(share) = share {
            self.shares[share].add("a share");
        }
    }

    /// Forgets leases that have run out.
    fn forget_ended(&mut self) {
        let now = self.now;
        while let Some(place) = self.leases.iter().position(|lease| lease.until <= now) {
            self.forget(place);
        }
    }

    fn forget(&mut self, place: usize) -> Receipt {
        let lease = self.leases.swap_remove(place);
        self.all.taken -= 1;
        if let Some(key) = lease.key {
            self.keys[key].taken -= 1;
        }
        if let Some(share) = lease.share {
            self.shares[share].taken -= 1;
        }
        lease.receipt
    }

    /// Ends a lease.
    fn end_some(&mut self) {
        if self.leases.is_empty() {
            return;
        }
        let place = self.dice.index(self.leases.len());
        let receipt = self.forget(place);
        let held = Held { queue: QueueName::from(QUEUE), by: HeldBy::Receipt(receipt) };
        let delay = Span::from_ms(self.dice.below(3) * 5);
        match self.dice.below(10) {
            0 => self.say(&Command::Release(Release { delay, ..Release::new(held) })),
            1 | 2 => self.say(&Command::Fail(Fail { delay: Some(delay), ..Fail::new(held) })),
            _ => self.say(&Command::Ack(Ack::new(held))),
        };
    }

    fn pass_time(&mut self) {
        self.now = self.now.after(Span::from_ms(self.dice.below(20)));
        self.engine.handle_timeout(self.now);
        self.keep();
    }

    /// Gives the queue other limits. What is taken stays.
    fn change_limits(&mut self) {
        let mut limit = |most: u64| {
            let count = 1 + self.dice.below(most);
            (!self.dice.chance(20)).then_some(count)
        };
        let (all, key_limit, share_limit) = (limit(20), limit(3), limit(6));
        let value = |limit: Option<u64>| limit.map_or(Value::None, Value::Number);
        let settings: [(&Setting, Value<'_>); 5] = [
            (LIMIT, value(all)),
            (KEYLIMIT, value(key_limit)),
            (SHARELIMIT, value(share_limit)),
            (KEYHOLD, Value::Word(u8::from(self.dice.chance(50)))),
            (RANKING, Value::Word(u8::from(self.dice.chance(50)))),
        ];
        let set = QueueCommand::Set { queue: QueueName::from(QUEUE), settings: &settings };
        let reply = self.say(&set.into());
        assert_eq!(reply, Some(Reply::Done), "the limits are set");
        self.all.limit = all;
        (self.key_limit, self.share_limit) = (key_limit, share_limit);
        let of_own = self.dice.index(SHARES.len());
        for (place, share) in SHARES.iter().enumerate() {
            let own =
                if place == of_own { Own::Is(Some(1 + self.dice.below(4))) } else { Own::Default };
            let change = ShareChange { limit: Some(own), ..ShareChange::default() };
            let reply = self.say(&QueueCommand::Share { queue: QUEUE, share, change }.into());
            assert_eq!(reply, Some(Reply::Done), "the rules of a share are set");
            self.shares[place].limit = match own {
                Own::Is(limit) => limit,
                Own::Default => share_limit,
            };
        }
    }

    /// Another owner goes on with what the log has.
    fn fail_over(&mut self) {
        let latest = self.engine.header();
        self.incarnation += 1;
        let mut engine = Engine::new(Limits::default(), self.dice.roll());
        for (record, _) in self.kept.queues.values() {
            engine.restore(Change::Queue(Box::new(record.clone())), None);
        }
        for (detail, _) in self.kept.details.values() {
            engine.restore(Change::Detail(Box::new(detail.clone())), None);
        }
        for (record, _) in self.kept.tasks.values() {
            engine.restore(Change::Task(Box::new(record.clone())), None);
        }
        self.now = self.now.after(Span::from_ms(self.dice.below(10)));
        engine.start(self.now, self.incarnation, latest);
        self.engine = engine;
        self.keep();
        self.tried.failovers += 1;
    }
}

/// Which of these names it is.
fn place(names: &[&[u8]], name: Option<&Bytes>) -> Option<usize> {
    name.and_then(|name| names.iter().position(|it| *it == &name[..]))
}

impl Count {
    /// Counts another one, which must not be beyond the limit.
    fn add(&mut self, whose: &str) {
        self.taken += 1;
        let Self { taken, limit } = self;
        assert!(limit.is_none_or(|limit| *taken <= limit), "{taken} of {whose} at {limit:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn no_take_is_beyond_a_limit() {
        let tried = run(3, 30_000);
        assert!(tried.takes >= 30_000 && tried.refused > 100, "{tried:?}");
        assert!(tried.failovers > 0 && tried.most > 3, "{tried:?}");
    }
}
