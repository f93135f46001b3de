//! Unique tasks: a put may be sent again within its window, also when the task was popped since.

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Policy, Popping, Told, counts, next_number, note, number_of, outcome, peek, tasks};
use crate::cluster_sim::line::Request;

const QUEUE: &str = "{u}once";

/// Longer than a run.
const WINDOW_MS: u64 = 3_600_000;

#[derive(Default)]
pub(super) struct Unique {
    popping: Popping,
    /// What was put last, or none for a pop.
    asked: Option<u64>,
}

impl Policy for Unique {
    fn ask(&mut self, dice: &mut Dice) -> Request {
        let known = &self.popping.known;
        self.asked = match dice.below(10) {
            0..3 => None,
            3 if !known.is_empty() => Some(dice.below(known.len() as u64)),
            _ => Some(next_number(known, dice)),
        };
        let words = match self.asked {
            None => Words::new("POP").bytes(QUEUE),
            Some(number) => {
                let number = number.to_string();
                let put = Words::new("PUT").bytes(QUEUE).bytes(&number);
                put.bytes("UNIQUE").bytes(&number).option("WINDOW", Some(WINDOW_MS))
            }
        };
        Request::of(&[words])
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let outcome = outcome(replies, 1);
        let Some(number) = self.asked else {
            match outcome {
                Ok(reply) => {
                    for task in tasks(reply) {
                        self.popping.pop("the unique task", number_of(task));
                    }
                }
                Err(told) => self.popping.lost += usize::from(told == Told::Unknown),
            }
            return;
        };
        let told = match outcome {
            Ok(reply) => {
                let is_new = match reply.elements() {
                    Some([_, Value::Integer(is_new)]) => *is_new == 1,
                    _ => panic!("a unique put was answered {reply:?}"),
                };
                let is_known = self.popping.known.get(&number) == Some(&Told::Done);
                assert!(!(is_known && is_new), "the unique task {number} is new again");
                Told::Done
            }
            Err(told) => told,
        };
        note(&mut self.popping.known, number, told);
    }

    fn looks(&self) -> Vec<Words> {
        vec![peek(QUEUE)]
    }

    fn judge(&self, shown: &[Value]) {
        self.popping.judge("the unique task", &counts(&shown[0]));
    }
}
