//! Ids that are given: a put may be sent again with its id, and the task is there once.

use std::collections::BTreeMap;

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Policy, Told, counts, next_number, note, outcome, peek};
use crate::cluster_sim::line::Request;

const QUEUE: &str = "{g}ids";

#[derive(Default)]
pub(super) struct Given {
    is_created: bool,
    known: BTreeMap<u64, Told>,
    asked: u64,
}

/// Whether the reply refuses because it is there already.
fn exists(replies: &[Value]) -> bool {
    matches!(replies.first(), Some(Value::Error(error)) if error.starts_with("EXISTS"))
}

impl Policy for Given {
    fn ask(&mut self, dice: &mut Dice) -> Request {
        if !self.is_created {
            return Request::of(&[Words::new("QUEUE CREATE")
                .bytes(QUEUE)
                .bytes("IDS")
                .bytes("given")]);
        }
        let repeats = !self.known.is_empty() && dice.chance(10);
        self.asked = if repeats {
            dice.below(self.known.len() as u64)
        } else {
            next_number(&self.known, dice)
        };
        let number = self.asked.to_string();
        Request::of(&[Words::new("PUT").bytes(QUEUE).bytes(&number).bytes("ID").bytes(&number)])
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let exists = exists(replies);
        let told = match outcome(replies, 1) {
            Ok(_) => Told::Done,
            Err(_) if exists => Told::Done,
            Err(told) => told,
        };
        if !self.is_created {
            self.is_created = told == Told::Done;
            return;
        }
        let is_known = self.known.get(&self.asked) == Some(&Told::Done);
        let is_new = told == Told::Done && !exists;
        assert!(!(is_known && is_new), "the id {} was given twice", self.asked);
        let is_first = self.known.get(&self.asked).is_none_or(|it| *it == Told::Refused);
        assert!(!(exists && is_first), "the id {} is taken without a holder", self.asked);
        note(&mut self.known, self.asked, told);
    }

    fn looks(&self) -> Vec<Words> {
        vec![peek(QUEUE)]
    }

    fn judge(&self, shown: &[Value]) {
        super::compare("id", &self.known, &counts(&shown[0]));
    }
}
