//! Which shards an answer is from, and replies whose tasks are from several of them.
//!
//! Such a reply grows in its gap until it is complete. Whatever ends before that, the shards get
//! their own tasks back. Only the last shard may have left payloads on its disk, and it alone is
//! told that the reply was sent; the others were told when their tasks came. Which shard adds to a
//! reply is decided elsewhere.

use pinpriq_proto::reply::{Output, Reply};
use pinpriq_store::durable::Holds;

use super::{Answer, Outbox, answer_bytes};
use crate::clients::unsent::Unsent;

/// Stands for a shard whose former owner has made something: its fate is not reported.
pub(super) const FORMER: u16 = u16::MAX;

/// The shards that have made an answer.
#[derive(Default)]
pub(super) enum From {
    /// This one.
    #[default]
    Here,
    /// Another one.
    Shard(u16),
    Several(Box<Several>),
}

/// The shards of one reply.
pub(super) struct Several {
    /// Each shard with the number of its tasks, in their order.
    parts: Vec<(u16, usize)>,
    /// The shard that learns when the reply was sent.
    teller: u16,
}

impl From {
    pub(super) fn shard(shard: usize) -> Self {
        Self::Shard(u16::try_from(shard).unwrap_or(FORMER))
    }

    #[inline]
    pub(super) const fn is_here(&self) -> bool {
        matches!(self, Self::Here)
    }

    /// Returns the shard that learns when the answer was sent, if that is another one.
    pub(super) fn teller(&self) -> Option<u16> {
        match self {
            Self::Here => None,
            Self::Shard(shard) => Some(*shard),
            Self::Several(several) => Some(several.teller),
        }
    }

    /// Returns the shards, each with the number of its tasks at most.
    pub(super) fn parts(&self) -> Vec<(Option<usize>, usize)> {
        match self {
            Self::Here => vec![(None, usize::MAX)],
            Self::Shard(shard) => vec![(Some(usize::from(*shard)), usize::MAX)],
            Self::Several(several) => several
                .parts
                .iter()
                .map(|(shard, tasks)| (Some(usize::from(*shard)), *tasks))
                .collect(),
        }
    }

    /// Notes that the owner of a shard has changed.
    pub(super) fn note_former(&mut self, from: usize) {
        let note = |shard: &mut u16| {
            if usize::from(*shard) == from {
                *shard = FORMER;
            }
        };
        match self {
            Self::Here => {}
            Self::Shard(shard) => note(shard),
            Self::Several(several) => {
                several.parts.iter_mut().for_each(|(shard, _)| note(shard));
                note(&mut several.teller);
            }
        }
    }

    /// Calls `take` with the part of each shard of an output. What a former owner has handed over
    /// is left out: it may have gone back there.
    pub(super) fn split(&self, mut output: Output, mut take: impl FnMut(Option<usize>, Output)) {
        let (Self::Several(several), Output::Reply { client, request, reply }) =
            (self, &mut output)
        else {
            if self.teller() != Some(FORMER) {
                take(self.teller().map(usize::from), output);
            }
            return;
        };
        let Reply::Tasks { tasks, popped } = reply else { return };
        let mut rest = std::mem::take(tasks).into_iter();
        for (shard, count) in &several.parts {
            let tasks = rest.by_ref().take(*count).collect();
            let reply = Reply::Tasks { tasks, popped: *popped };
            if *shard != FORMER {
                let output = Output::Reply { client: *client, request: *request, reply };
                take(Some(usize::from(*shard)), output);
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
        let shard = u16::try_from(from).unwrap_or(FORMER);
        let (bytes, kept) = (answer_bytes(&output), self.kept);
        self.waiting_bytes += bytes;
        let waiting = self.at(kept);
        (waiting.bytes, waiting.holds) = (waiting.bytes + bytes, holds);
        let Output::Reply { reply: Reply::Tasks { tasks, .. }, .. } = &output else { return };
        let count = tasks.len();
        if let From::Several(several) = &mut waiting.from {
            several.parts.push((shard, count));
            several.teller = if is_last { shard } else { FORMER };
        } else {
            let teller = if is_last { shard } else { FORMER };
            waiting.from = From::Several(Box::new(Several { parts: vec![(shard, count)], teller }));
        }
        match &mut waiting.answer {
            Answer::Growing(grown) => append(grown, output),
            answer => *answer = Answer::Growing(Box::new(output)),
        }
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
        let waiting = self.at(self.kept);
        let mut added = Vec::new();
        let Answer::Growing(output) = std::mem::replace(&mut waiting.answer, Answer::Owed) else {
            return added;
        };
        let from = std::mem::take(&mut waiting.from);
        let holds = std::mem::take(&mut waiting.holds);
        let bytes = std::mem::take(&mut waiting.bytes);
        self.waiting_bytes -= bytes;
        from.split(*output, |shard, output| {
            let mut unsent = Unsent::default();
            unsent.add(output, &holds);
            added.extend(shard.map(|shard| (shard, unsent)));
        });
        added
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
