//! A reserve from tubes of several shards: what was heard, and what to do next.
//!
//! First, each shard tells its most urgent job, and the shard with the most urgent one of all is
//! asked to hand it over. If none has any, the client waits in all of them. The first that hands a
//! job over gives the answer, and the waits elsewhere end. What another one hands over meanwhile
//! goes back. This module decides, and `home::desk::reserving` writes the letters.

use pinpriq_engine::command::Wait;
use pinpriq_engine::reply::{Output, Reply};
use pinpriq_engine::task::{RequestId, TaskRecord};
use pinpriq_engine::time::Timestamp;
use pinpriq_store::durable::Holds;

use crate::letters::letter::{Part, Piece};

/// A reserve under way.
pub(crate) struct Reserving {
    pub(crate) request: RequestId,
    /// The gap that is kept for its answer.
    pub(crate) gap: u64,
    /// The shards that are asked.
    pub(crate) shares: Vec<Share>,
    /// How long it waits: until this moment, if it waits and has an end.
    wait: Wait,
    until: Option<Timestamp>,
    stage: Stage,
}

/// The part of one shard.
pub(crate) struct Share {
    pub(crate) shard: usize,
    /// The tubes that are there: none, if only a job is held there.
    pub(crate) tubes: Vec<Box<[u8]>>,
    /// Whether it owes a reply.
    pub(crate) owes: bool,
    /// The place of its most urgent job among all.
    head: Option<Urgency>,
}

impl Share {
    /// Returns the tubes as a command names them.
    pub(crate) fn names(&self) -> Vec<&[u8]> {
        self.tubes.iter().map(|tube| &**tube).collect()
    }
}

/// The place of a job: its priority, when it was put, and its number.
type Urgency = (Option<i64>, Timestamp, u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Every shard tells its most urgent job.
    Looking {
        /// Whether a job that the client holds is about to be over.
        is_soon: bool,
    },
    /// One shard is asked for its most urgent job.
    Taking,
    /// The client waits in every shard.
    Waiting,
    /// There is an answer.
    Answered,
}

/// What to do next.
pub(crate) enum Next {
    /// Nothing before more is heard.
    Hear,
    /// All shards must tell their most urgent job.
    Look,
    /// The share at this index must hand over its most urgent job.
    Take(usize),
    /// The client must wait in every shard.
    Wait,
    /// This is the answer, and it comes from this shard, if any.
    Answer(Option<usize>, Reply, Holds),
    /// There never is an answer.
    Lost,
    /// The shard must have this back.
    GiveBack(Output),
}

impl Reserving {
    pub(crate) fn new(
        (request, gap): (RequestId, u64),
        shares: Vec<(usize, Vec<Box<[u8]>>)>,
        (wait, now): (Wait, Timestamp),
    ) -> Self {
        let share = |(shard, tubes)| Share { shard, tubes, owes: false, head: None };
        let until = match wait {
            Wait::For(span) => Some(now.after(span)),
            Wait::No | Wait::Forever => None,
        };
        let shares = shares.into_iter().map(share).collect();
        let stage = Stage::Looking { is_soon: false };
        Self { request, gap, shares, wait, until, stage }
    }

    /// Returns how long it waits from now on.
    pub(crate) fn wait(&self, now: Timestamp) -> Wait {
        self.until.map_or(self.wait, |until| Wait::For(until.since(now)))
    }

    /// Whether there is an answer, and no shard owes a reply.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Answered && !self.shares.iter().any(|share| share.owes)
    }

    /// Takes the reply of a shard, and returns what to do. `may_wait` says whether the client may
    /// still be made to wait.
    pub(crate) fn hear(&mut self, from: usize, piece: Piece, may_wait: bool) -> Next {
        let index = self.shares.iter().position(|share| share.shard == from);
        if let Some(share) = index.and_then(|index| self.shares.get_mut(index)) {
            share.owes = false;
        }
        let answer = match (piece, self.stage) {
            (Piece::Output(output, _), Stage::Answered) => return Next::GiveBack(output),
            (_, Stage::Answered) => return Next::Hear,
            (Piece::Output(Output::Reply { reply, .. }, holds), _) => (Some(from), reply, holds),
            (Piece::Part(Part::Reply(reply @ Reply::Refused(_))), _) => {
                (None, reply, Holds::default())
            }
            (Piece::Part(Part::Reply(reply)), Stage::Looking { is_soon }) => {
                let is_soon = is_soon || matches!(reply, Reply::DeadlineSoon);
                self.stage = Stage::Looking { is_soon };
                if let (Reply::Shown(tasks), Some(index)) = (reply, index) {
                    self.shares[index].head = tasks.first().map(urgency);
                }
                return self.look_around(is_soon, may_wait);
            }
            (Piece::Part(Part::Reply(Reply::DeadlineSoon)), Stage::Waiting) => {
                (None, Reply::DeadlineSoon, Holds::default())
            }
            (Piece::Part(Part::Reply(_)), Stage::Waiting) => {
                if self.shares.iter().any(|share| share.owes) {
                    return Next::Hear;
                }
                (None, nothing(), Holds::default())
            }
            // Somebody else has taken it meanwhile.
            (Piece::Part(Part::Reply(_)), Stage::Taking) => return self.begin(),
            (Piece::Lost | Piece::Output(..) | Piece::Part(_), _) => {
                self.stage = Stage::Answered;
                return Next::Lost;
            }
        };
        self.stage = Stage::Answered;
        let (from, reply, holds) = answer;
        Next::Answer(from, reply, holds)
    }

    /// Begins anew.
    fn begin(&mut self) -> Next {
        self.stage = Stage::Looking { is_soon: false };
        Next::Look
    }

    /// Decides once all shards have told their most urgent job.
    fn look_around(&mut self, is_soon: bool, may_wait: bool) -> Next {
        if self.shares.iter().any(|share| share.owes) {
            return Next::Hear;
        }
        let heads = self.shares.iter().enumerate();
        let heads = heads.filter_map(|(index, share)| Some((share.head?, index)));
        let first =
            if planted!(FirstShardFirst) { heads.min_by_key(|it| it.1) } else { heads.min() };
        if let Some((_, index)) = first {
            self.stage = Stage::Taking;
            return Next::Take(index);
        }
        if !is_soon && self.wait.blocks() && may_wait {
            self.stage = Stage::Waiting;
            return Next::Wait;
        }
        self.stage = Stage::Answered;
        let reply = if is_soon { Reply::DeadlineSoon } else { nothing() };
        Next::Answer(None, reply, Holds::default())
    }
}

fn urgency(task: &TaskRecord) -> Urgency {
    (task.progress.priority, task.put_at, task.number)
}

/// The answer if the time is up.
const fn nothing() -> Reply {
    Reply::Tasks { tasks: Vec::new(), popped: false }
}
