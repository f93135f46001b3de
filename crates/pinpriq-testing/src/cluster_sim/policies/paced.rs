//! Rates that hardly fill during a run: whoever serves the shard, no more is handed out than the
//! buckets held at first. A take-over must not fill them, nor a hand-over.

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Policy, Told, outcome, tasks};
use crate::cluster_sim::line::Request;

/// What each bucket holds at first.
const TOKENS: usize = 6;

/// A bucket that has been empty holds one token after a minute, once for each take-over. Runs are
/// short enough that this happens seldom.
const SPARE: usize = 2;

const RATE: &str = "6/3600000000";

/// The limit, and the queues with what they limit: a limit of several queues, a queue, its keys and
/// its shares.
const LIMIT: &str = "{p}limit";
const QUEUES: [(&str, &str); 4] =
    [("{p}named", "USES"), ("{p}queue", "RATE"), ("{p}key", "KEYRATE"), ("{p}share", "SHARERATE")];

#[derive(Default)]
pub(super) struct Paced {
    /// How many of the limit and the queues are there.
    made: usize,
    /// The queue of the last pop.
    asked: Option<usize>,
    popped: [usize; QUEUES.len()],
}

impl Paced {
    fn make_next(&self) -> Words {
        let Some(at) = self.made.checked_sub(1) else {
            return Words::new("LIMIT SET").bytes(LIMIT).bytes("RATE").bytes(RATE);
        };
        let (queue, setting) = QUEUES[at];
        let value = if setting == "USES" { LIMIT } else { RATE };
        Words::new("QUEUE CREATE").bytes(queue).bytes(setting).bytes(value)
    }
}

impl Policy for Paced {
    fn ask(&mut self, dice: &mut Dice) -> Request {
        self.asked = None;
        if self.made <= QUEUES.len() {
            return Request::of(&[self.make_next()]);
        }
        let at = dice.index(QUEUES.len());
        let put = Words::new("PUT").bytes(QUEUES[at].0).bytes("1");
        let put = put.bytes("KEY").bytes("x").bytes("SHARE").bytes("x");
        self.asked = Some(at);
        Request::of(&[put, Words::new("POP").bytes(QUEUES[at].0)])
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let Some(at) = self.asked else {
            let is_made = !matches!(outcome(replies, 1), Err(Told::Unknown | Told::Refused));
            self.made += usize::from(is_made);
            return;
        };
        if let Ok(popped) = outcome(replies, 2) {
            self.popped[at] += tasks(popped).len();
        }
    }

    fn looks(&self) -> Vec<Words> {
        Vec::new()
    }

    fn judge(&self, _: &[Value]) {
        for ((queue, _), popped) in QUEUES.iter().zip(self.popped) {
            assert!(popped <= TOKENS + SPARE, "the rate of {queue} let {popped} tasks go");
        }
    }
}
