//! Schedules: each slot puts one task, also those that came due while the shard was not served.

use std::collections::BTreeSet;

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{LOOK_MAX, Policy, Told, outcome, tasks};
use crate::cluster_sim::line::Request;

const SCHEDULE: &str = "{s}tick";
const QUEUE: &str = "{s}slots";

/// The time between two slots, in milliseconds.
const EVERY_MS: u64 = 1_000;

/// A slot before the beginning, so that setting the schedule again moves no slot.
const AT_MS: u64 = 1_700_000_000_000;

/// How many tasks are popped at a time.
const POPPED: usize = 3;

#[derive(Default)]
pub(super) struct Slots {
    is_set: bool,
    /// The slots whose tasks have come.
    seen: BTreeSet<u64>,
    /// The most tasks that came with pops that were not answered.
    lost: u64,
}

/// The slot that has put a task.
fn slot_of(task: &Value) -> u64 {
    let slot = task.field("slot").and_then(Value::integer);
    slot.unwrap_or_else(|| panic!("a task without its slot: {task:?}")).unsigned_abs()
}

impl Slots {
    fn see(seen: &mut BTreeSet<u64>, reply: &Value) {
        for slot in tasks(reply).iter().map(slot_of) {
            assert!(seen.insert(slot), "the slot {slot} has put two tasks");
        }
    }
}

impl Policy for Slots {
    fn ask(&mut self, _: &mut Dice) -> Request {
        if !self.is_set {
            let set = Words::new("SCHEDULE SET").bytes(SCHEDULE).bytes(QUEUE).bytes("tick");
            let set = set.option("EVERY", Some(EVERY_MS)).option("AT", Some(AT_MS));
            return Request::of(&[set.option("MISSED", Some("all"))]);
        }
        let pop = Words::new("POP").bytes(QUEUE).option("COUNT", Some(POPPED));
        Request::of(&[pop.bytes("WITHMETA")])
    }

    fn take_replies(&mut self, replies: &[Value]) {
        match outcome(replies, 1) {
            Ok(_) if !self.is_set => self.is_set = true,
            Ok(reply) => Self::see(&mut self.seen, reply),
            Err(Told::Unknown) if self.is_set => self.lost += POPPED as u64,
            Err(_) => {}
        }
    }

    fn looks(&self) -> Vec<Words> {
        if !self.is_set {
            return Vec::new();
        }
        let peek = Words::new("PEEK").bytes(QUEUE).option("COUNT", Some(LOOK_MAX));
        let pause = Words::new("SCHEDULE PAUSE").bytes(SCHEDULE);
        let show = Words::new("SCHEDULE SHOW").bytes(SCHEDULE);
        vec![pause, peek.bytes("WITHMETA"), show]
    }

    fn judge(&self, shown: &[Value]) {
        let [_, left, facts] = shown else { return };
        let mut seen = self.seen.clone();
        Self::see(&mut seen, left);
        let count = seen.len() as u64;
        assert!(seen.iter().all(|slot| (slot - AT_MS).is_multiple_of(EVERY_MS)), "{seen:?}");
        let fired = facts.field("fired").and_then(Value::integer);
        let fired = fired.unwrap_or_else(|| panic!("no count of what has fired: {facts:?}"));
        let fired = fired.unsigned_abs();
        let popped = self.lost;
        let is_right = count <= fired && fired <= count + popped;
        assert!(is_right, "{fired} slots have fired, {count} are known, up to {popped} are lost");
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return };
        let slots = (last - first) / EVERY_MS + 1;
        assert!(slots <= count + popped, "{count} of {slots} slots have put a task: {seen:?}");
    }
}
