//! What a client puts together: batches with their tasks, and what waits for them.

use pinpriq_testing::Dice;

use super::asks::{Ask, What};
use super::book::{Only, Pages, Terms};
use super::{Kind, Queue};

/// A batch is made with fewer tasks than this, perhaps with none.
const CHILDREN: u64 = 7;
/// The most batches of a chain after its first one.
const CHAIN_MAX: u64 = 3;
/// The longest TTL of a batch, and of a task.
const BATCH_TTL_MS: u64 = 300;
const TASK_TTL_MS: u64 = 40;
/// How long a client waits for a batch at most.
const AWAIT_MS: u64 = 10;

/// Makes requests about one family.
struct Teller<'a> {
    pages: &'a mut Pages,
    dice: &'a mut Dice,
    family: &'static str,
    asks: Vec<Ask>,
}

/// Makes some batches that belong together, and returns the requests in their order.
pub(super) fn story(pages: &mut Pages, dice: &mut Dice) -> Vec<Ask> {
    let family = dice.pick(pages.plan.families);
    let mut teller = Teller { pages, dice, family, asks: Vec::new() };
    let batches = match teller.dice.below(100) {
        0..70 => teller.single(),
        70..85 => teller.chain(),
        _ => teller.pair(),
    };
    if teller.dice.chance(15) {
        teller.put_all_together();
    } else if teller.dice.chance(4) {
        // It may be done by now, and then it takes no more.
        teller.child(batches[0]);
    }
    for batch in batches {
        teller.look_back(batch);
    }
    teller.asks
}

/// A task that another one adds to its own batch.
pub(super) fn joining(pages: &mut Pages, family: &'static str, batch: u64) -> Ask {
    Ask::put(pages, Terms::of_child(Queue { family, kind: Kind::Work }, batch))
}

impl Teller<'_> {
    /// A batch and one or two tasks that wait for it.
    fn single(&mut self) -> Vec<u64> {
        let batch = self.batch();
        self.follower(vec![batch], None);
        if self.dice.chance(25) {
            self.follower(vec![batch], None);
        }
        self.close(batch);
        vec![batch]
    }

    /// Batches of which each has a task that waits for the one before it.
    fn chain(&mut self) -> Vec<u64> {
        let mut batches = vec![self.batch()];
        let mut last = batches[0];
        for _ in 0..=self.dice.below(CHAIN_MAX) {
            let next = self.pages.begin_batch(self.family, false);
            self.follower(vec![last], Some(next));
            if self.dice.chance(30) {
                self.child(next);
            }
            self.close(last);
            batches.push(next);
            last = next;
        }
        self.follower(vec![last], None);
        self.close(last);
        batches
    }

    /// Two batches and a task that waits for both, and perhaps one that waits for the first.
    fn pair(&mut self) -> Vec<u64> {
        let batches = vec![self.batch(), self.batch()];
        self.follower(batches.clone(), None);
        if self.dice.chance(25) {
            self.follower(vec![batches[0]], None);
        }
        self.close(batches[1]);
        self.close(batches[0]);
        batches
    }

    /// A batch with its tasks.
    fn batch(&mut self) -> u64 {
        let count = self.dice.below(CHILDREN);
        let ttl_ms = self.dice.chance(3).then(|| 1 + self.dice.below(BATCH_TTL_MS));
        let batch = self.pages.begin_batch(self.family, ttl_ms.is_some());
        if count == 0 || ttl_ms.is_some() || self.dice.chance(5) {
            self.ask(What::Open(batch), ttl_ms.map(|ttl_ms| ("TTL", ttl_ms)));
        }
        for _ in 0..count {
            self.child(batch);
        }
        batch
    }

    fn child(&mut self, batch: u64) {
        let kind = if self.dice.chance(20) { Kind::Odd } else { Kind::Work };
        let terms = Terms {
            ttl_ms: self.dice.chance(4).then(|| 1 + self.dice.below(TASK_TTL_MS)),
            attempts: self.dice.chance(6).then_some(1),
            ..Terms::of_child(Queue { family: self.family, kind }, batch)
        };
        self.put(terms);
    }

    /// A task that waits for batches.
    fn follower(&mut self, after: Vec<u64>, batch: Option<u64>) {
        let only = match self.dice.below(10) {
            0..6 => Only::Done,
            6..8 => Only::Acked,
            _ => Only::Failed,
        };
        let delay_ms = self.dice.chance(5).then(|| 1 + self.dice.below(TASK_TTL_MS));
        self.put(Terms {
            queue: Queue { family: self.family, kind: Kind::Then },
            batch,
            after,
            only,
            ttl_ms: None,
            attempts: None,
            delay_ms,
        });
    }

    fn put(&mut self, terms: Terms) {
        let put = Ask::put(self.pages, terms);
        self.asks.push(put);
    }

    /// Closes a batch. A few are left open.
    fn close(&mut self, batch: u64) {
        if !self.dice.chance(3) {
            self.ask(What::Close(batch), None);
        }
    }

    /// Makes one transaction of all requests.
    fn put_all_together(&mut self) {
        let asks = std::mem::take(&mut self.asks);
        for ask in &asks {
            if let What::Put(number) = ask.what {
                self.pages.put_together(number);
            }
        }
        self.asks.push(Ask::all(asks));
    }

    /// Cancels a batch, looks at it, or waits for it. Most are left alone.
    fn look_back(&mut self, batch: u64) {
        match self.dice.below(100) {
            0..4 => {
                let grace_ms = self.dice.chance(50).then(|| 1 + self.dice.below(TASK_TTL_MS));
                self.ask(What::Cancel(batch), grace_ms.map(|grace_ms| ("GRACE", grace_ms)));
            }
            4..12 => self.ask(What::Show(batch), None),
            12..14 => self.ask(What::Await(batch), Some(("WAIT", AWAIT_MS))),
            _ => {}
        }
    }

    fn ask(&mut self, what: What, option: Option<(&str, u64)>) {
        let ask = Ask::about_batch(self.pages, what, option);
        self.asks.push(ask);
    }
}
