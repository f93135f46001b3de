//! Replies whose tasks are from several shards: what belongs to which of them.
//!
//! Such a reply grows in its gap until it is complete. Whatever ends before that, the shards get
//! their own tasks back. Only the last shard may have left payloads on its disk, and it alone is
//! told that the reply was sent; the others were told when their tasks came. Which shard adds to a
//! reply is decided elsewhere.

use pinpriq_proto::reply::{Output, Reply};
use pinpriq_store::durable::Holds;

use super::gaps::Abroad;
use super::{Answer, FORMER, From, Outbox, answer_bytes};
use crate::clients::unsent::Unsent;

/// The first number that stands for several shards, where one shard would have its own. There are
/// fewer shards than that.
const SEVERAL: u16 = 1 << 15;

/// The shards of one reply.
pub(super) struct Several {
    number: u16,
    /// Each shard with the number of its tasks, in their order.
    parts: Vec<(u16, usize)>,
    /// The shard that learns when the reply was sent.
    teller: u16,
}

impl Several {
    /// Notes that the owner of a shard has changed.
    pub(super) fn note_former(&mut self, from: usize) {
        let parts = self.parts.iter_mut().map(|(shard, _)| shard);
        for shard in parts.chain([&mut self.teller]) {
            if usize::from(*shard) == from {
                *shard = FORMER;
            }
        }
    }
}

impl Outbox {
    /// Adds the tasks of a shard to the reply at the kept gap, which is complete if they are its
    /// last. Before the last, none of their payloads is on the disk.
    pub(crate) fn add_tasks(
        &mut self,
        from: usize,
        (output, holds): (Output, Holds),
        is_last: bool,
    ) {
        let gap = self.kept;
        let shard = u16::try_from(from).unwrap_or(FORMER);
        let bytes = answer_bytes(&output);
        self.waiting_bytes += bytes;
        let (mut answer, mut number) = (Answer::Owed, None);
        {
            let waiting = self.at(gap);
            waiting.bytes += bytes;
            std::mem::swap(&mut waiting.answer, &mut answer);
            if let Answer::Growing(_) = answer {
                number = waiting.from;
            }
        }
        let count = tasks_of(&output);
        let grown = match answer {
            Answer::Growing(mut grown) => {
                append(&mut grown, output);
                grown
            }
            _ => Box::new(output),
        };
        let number = number.unwrap_or_else(|| self.number_several());
        if let Some(several) = self.several_mut(number) {
            several.parts.push((shard, count));
            several.teller = if is_last { shard } else { FORMER };
        }
        let waiting = self.at(gap);
        waiting.from = Some(number);
        waiting.answer = Answer::Growing(grown);
        waiting.holds = holds;
        if is_last {
            self.complete();
        }
    }

    /// Completes the reply at the gap that is kept with the tasks that it has.
    pub(crate) fn complete(&mut self) {
        let waiting = self.at(self.kept);
        let answer = std::mem::replace(&mut waiting.answer, Answer::Owed);
        waiting.answer = match answer {
            Answer::Growing(output) => Answer::Output(*output),
            other => other,
        };
    }

    /// Removes the tasks from the reply at the kept gap, and returns them with their shards. The
    /// reply is owed as before.
    pub(crate) fn withdraw(&mut self) -> Vec<(usize, Unsent)> {
        let gap = self.kept;
        let waiting = self.at(gap);
        if !matches!(waiting.answer, Answer::Growing(_)) {
            return Vec::new();
        }
        let answer = std::mem::replace(&mut waiting.answer, Answer::Owed);
        let (from, holds) = (waiting.from.take(), std::mem::take(&mut waiting.holds));
        self.waiting_bytes -= std::mem::take(&mut self.at(gap).bytes);
        let Answer::Growing(output) = answer else { return Vec::new() };
        let parts = split(self.abroad.as_deref(), *output, from).into_iter();
        let known =
            parts.filter_map(|(from, output)| Some((from.filter(|it| *it != FORMER)?, output)));
        let with_unsent = known.map(|(from, output)| {
            let mut unsent = Unsent::default();
            unsent.add(output, &holds);
            (usize::from(from), unsent)
        });
        with_unsent.collect()
    }

    /// Returns the shard that learns that an output from there was sent.
    pub(super) fn teller(&self, from: u16) -> u16 {
        if from < SEVERAL || from == FORMER {
            return from;
        }
        self.several(from).map_or(FORMER, |several| several.teller)
    }

    /// Returns the shards of an output, each with the number of its tasks at most.
    pub(super) fn parts(&self, from: From) -> Vec<(From, usize)> {
        match from.and_then(|from| self.several(from)) {
            None => vec![(from, usize::MAX)],
            Some(several) => {
                several.parts.iter().map(|(shard, tasks)| (Some(*shard), *tasks)).collect()
            }
        }
    }

    fn several(&self, number: u16) -> Option<&Several> {
        several_of(self.abroad.as_deref(), number)
    }

    fn several_mut(&mut self, number: u16) -> Option<&mut Several> {
        let several = &mut self.abroad.as_mut()?.several;
        several.iter_mut().find(|several| several.number == number)
    }

    /// Returns the number of a further reply of several shards. Forgets those that have left.
    fn number_several(&mut self) -> u16 {
        let Self { waiting, in_flight, abroad, .. } = self;
        let Some(abroad) = abroad else { return FORMER };
        let is_there = |number: u16| {
            let mut there =
                in_flight.iter().map(|it| it.from).chain(waiting.iter().map(|it| it.from));
            there.any(|from| from == Some(number))
        };
        abroad.several.retain(|several| is_there(several.number));
        let last = abroad.several.back().map_or(FORMER, |several| several.number);
        let number = if last >= FORMER - 1 { SEVERAL } else { last + 1 };
        abroad.several.push_back(Several { number, parts: Vec::new(), teller: FORMER });
        number
    }
}

fn several_of(abroad: Option<&Abroad>, number: u16) -> Option<&Several> {
    if number < SEVERAL {
        return None;
    }
    abroad?.several.iter().find(|several| several.number == number)
}

/// Divides an output into those of its shards.
pub(super) fn split(
    abroad: Option<&Abroad>,
    mut output: Output,
    from: From,
) -> Vec<(From, Output)> {
    let several = from.and_then(|from| several_of(abroad, from));
    let (Some(several), Output::Reply { client, request, reply: Reply::Tasks { tasks, popped } }) =
        (several, &mut output)
    else {
        return vec![(from, output)];
    };
    let mut rest = std::mem::take(tasks).into_iter();
    let parts = several.parts.iter().map(|(shard, count)| {
        let tasks = rest.by_ref().take(*count).collect();
        let reply = Reply::Tasks { tasks, popped: *popped };
        (Some(*shard), Output::Reply { client: *client, request: *request, reply })
    });
    parts.collect()
}

fn tasks_of(output: &Output) -> usize {
    match output {
        Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } => tasks.len(),
        _ => 0,
    }
}

/// Appends the tasks of an output to another one.
fn append(grown: &mut Output, output: Output) {
    if let Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } = grown
        && let Output::Reply { reply: Reply::Tasks { tasks: further, .. }, .. } = output
    {
        tasks.extend(further);
    }
}
