//! The pinpriq wire: a push has no reply, but it was accepted if a later pop has one.

use crate::Dice;
use pinpriq_proto::wire::Request as WireRequest;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::config::DoorName;

use super::{Policy, Popping, Told, counts, note, outcome, peek, tasks, text};
use crate::cluster_sim::line::Request;

const QUEUE: &str = "{w}wire";

/// Never pushed to, and in a shard of its own if there are several.
const EMPTY: &str = "nothing";

#[derive(Default)]
pub(super) struct Wire {
    popping: Popping,
    /// What was pushed last, or none for a pop.
    asked: Option<u64>,
}

impl Policy for Wire {
    fn door(&self) -> DoorName {
        DoorName::Pinpriq
    }

    fn ask(&mut self, dice: &mut Dice) -> Request {
        if dice.chance(30) {
            self.asked = None;
            return Request::of_wire(&[WireRequest::Pop { queue: QUEUE.as_bytes() }], 1);
        }
        let number = self.popping.known.len() as u64;
        self.asked = Some(number);
        let payload = number.to_string().into_bytes();
        // Packets with one key would be popped together.
        let push = WireRequest::Push {
            queue: QUEUE.as_bytes(),
            ttl_ms: 0,
            priority: 1,
            key: &payload,
            payload: &payload,
        };
        Request::of_wire(&[push, WireRequest::Pop { queue: EMPTY.as_bytes() }], 1)
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let outcome = outcome(replies, 1);
        match self.asked {
            None => match outcome {
                Ok(reply) => {
                    for payload in tasks(reply) {
                        let number = text(Some(payload)).parse().unwrap_or(u64::MAX);
                        self.popping.pop("packet", number);
                    }
                }
                Err(_) => self.popping.lost += 1,
            },
            Some(number) => {
                let told = match outcome {
                    Ok(reply) => {
                        assert!(tasks(reply).is_empty(), "no client pushes to that queue");
                        Told::Done
                    }
                    Err(told) => told,
                };
                note(&mut self.popping.known, number, told);
            }
        }
    }

    fn looks(&self) -> Vec<Words> {
        vec![peek(QUEUE)]
    }

    fn judge(&self, shown: &[Value]) {
        self.popping.judge("packet", &counts(&shown[0]));
    }
}
