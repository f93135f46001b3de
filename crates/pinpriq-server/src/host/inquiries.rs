//! Answers questions about a shard that are asked on behalf of no client.

use super::roll;
use super::shard::Shard;
use crate::letters::letter::{Inquiry, Part};

/// Returns a shard's part of the answer.
pub(crate) fn answer(shard: &Shard, question: &Inquiry) -> Part {
    match question {
        Inquiry::Facts => Part::Facts(Box::new(shard.facts())),
        Inquiry::Clients => Part::Clients(roll::describe(shard)),
        Inquiry::Kill(wanted, caller) => Part::Killed(roll::kill(shard, wanted, *caller)),
        Inquiry::Survey(wanted) => Part::Survey(Box::new(shard.survey(wanted))),
        Inquiry::Shares(queue) => Part::Shares(shard.look_at_shares(queue)),
        Inquiry::Limits(after, count) => Part::Limits(shard.limits_after(after, *count)),
    }
}
