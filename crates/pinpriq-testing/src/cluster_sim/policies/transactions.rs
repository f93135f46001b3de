//! Transactions: both puts happen, or none.

use std::collections::BTreeMap;

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Policy, Told, counts, outcome, peek};
use crate::cluster_sim::line::Request;

const QUEUES: [&str; 2] = ["{p}steps", "{p}more"];

#[derive(Default)]
pub(super) struct Transactions {
    known: BTreeMap<u64, Told>,
    asked: u64,
    replies: usize,
}

/// Whether a transaction ends with a step that has to be refused.
const fn has_to_fail(number: u64) -> bool {
    number % 4 == 3
}

impl Policy for Transactions {
    fn ask(&mut self, _: &mut Dice) -> Request {
        self.asked = self.known.len() as u64;
        let put = |queue: &str| Words::new("PUT").bytes(queue).bytes(self.asked.to_string());
        let mut steps = vec![Words::new("MULTI")];
        steps.extend(QUEUES.map(put));
        if has_to_fail(self.asked) {
            steps.push(Words::new("ACK").bytes(QUEUES[0]).bytes("1-1-1"));
        }
        steps.push(Words::new("EXEC"));
        self.replies = steps.len();
        Request::of(&steps)
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let told = match outcome(replies, self.replies) {
            Ok(reply) => {
                let done = reply.elements().map(<[Value]>::len);
                assert_eq!(done, Some(QUEUES.len()), "EXEC was answered {reply:?}");
                assert!(!has_to_fail(self.asked), "a transaction with a stale receipt is done");
                Told::Done
            }
            Err(told) => told,
        };
        // One that has to fail has not happened, whatever the reply was.
        let told = if has_to_fail(self.asked) { Told::Refused } else { told };
        self.known.insert(self.asked, told);
    }

    fn looks(&self) -> Vec<Words> {
        QUEUES.map(peek).into()
    }

    fn judge(&self, shown: &[Value]) {
        let [first, second] = [counts(&shown[0]), counts(&shown[1])];
        assert_eq!(first, second, "transactions that happened in part");
        super::compare("transaction", &self.known, &first);
    }
}
