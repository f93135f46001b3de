//! Fan-out: a publication is in the lanes of all members, or in none.

use std::collections::BTreeMap;

use crate::Dice;
use pinpriq_proto::wire::resp::{Value, Words};

use super::{Policy, Told, counts, outcome, peek};
use crate::cluster_sim::line::Request;

const TOPIC: &str = "{f}news";

const MEMBERS: [&str; 2] = ["anna", "bela"];

/// Longer than a run.
const LEASE_MS: u64 = 3_600_000;

#[derive(Clone, Copy, Default)]
enum Asked {
    #[default]
    Join,
    Beat,
    Publish(u64),
}

#[derive(Default)]
pub(super) struct FanOut {
    joined: usize,
    known: BTreeMap<u64, Told>,
    asked: Asked,
}

impl Policy for FanOut {
    fn ask(&mut self, dice: &mut Dice) -> Request {
        self.asked = match MEMBERS.get(self.joined) {
            Some(_) => Asked::Join,
            None if dice.chance(15) => Asked::Beat,
            None => Asked::Publish(self.known.len() as u64),
        };
        let words = match self.asked {
            Asked::Join => {
                let join = Words::new("JOIN").bytes(TOPIC).bytes(MEMBERS[self.joined]);
                join.option("LEASE", Some(LEASE_MS))
            }
            Asked::Beat => Words::new("BEAT").bytes(dice.pick(&MEMBERS)),
            Asked::Publish(number) => Words::new("PUBLISH").bytes(TOPIC).bytes(number.to_string()),
        };
        Request::of(&[words])
    }

    fn take_replies(&mut self, replies: &[Value]) {
        let outcome = outcome(replies, 1);
        match (self.asked, outcome) {
            (Asked::Join, Ok(_)) => self.joined += 1,
            (Asked::Join | Asked::Beat, _) => {}
            (Asked::Publish(number), Ok(reply)) => {
                let lanes = Value::Integer(i64::try_from(MEMBERS.len()).unwrap_or_default());
                assert_eq!(*reply, lanes, "the lanes of publication {number}");
                self.known.insert(number, Told::Done);
            }
            (Asked::Publish(number), Err(told)) => {
                self.known.insert(number, told);
            }
        }
    }

    fn looks(&self) -> Vec<Words> {
        let members = MEMBERS.iter().take(self.joined);
        members.map(|member| peek(TOPIC).bytes("MEMBER").bytes(member)).collect()
    }

    fn judge(&self, shown: &[Value]) {
        let lanes: Vec<BTreeMap<u64, usize>> = shown.iter().map(counts).collect();
        for lane in &lanes {
            super::compare("publication", &self.known, lane);
            assert_eq!(lane, &lanes[0], "publications that are in some lanes");
        }
    }
}
