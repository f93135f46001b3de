//! The seat of one client at a shard: commands are carried out here, for clients with a connection
//! and for guests alike, as long as they do not have too much under way.

use std::rc::Rc;

use pinpriq_engine::Applied;
use pinpriq_engine::command::{Command, QueueCommand};
use pinpriq_engine::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_engine::limits::put_bytes;
use pinpriq_engine::reply::{Refusal, RefusalKind};
use pinpriq_engine::task::{ClientId, RequestId};

use super::shard::Shard;
use crate::config::Limits;
use crate::session::Session;
use crate::session::about::Manners;
use crate::session::ending::Ending;

/// See the head of this file.
pub(crate) struct Seat {
    pub(crate) shard: Rc<Shard>,
    pub(crate) session: Rc<Session>,
    /// Its number in the engine.
    pub(crate) client: ClientId,
    pub(crate) limits: Limits,
    pub(crate) manners: Manners,
    /// Whether the client may have subscriptions.
    subscribed: bool,
    round: Round,
}

/// What was carried out since the seat was asked to begin.
#[derive(Default)]
struct Round {
    /// How many answers are under way.
    under_way: usize,
    /// How many commands for a group there were since the last turn.
    groups: usize,
    /// The number of the turn in which obstacles were looked for last. None has the highest.
    looked_in: u64,
}

/// Why a command was not carried out.
#[derive(Debug)]
pub(crate) enum Undone {
    /// It has to wait for room. The client's bell will ring, and then it is to be asked again.
    NoRoom,
    /// Another shard is to have the connection, and to be asked there.
    Move(usize),
    /// It is about queues that live in several shards.
    Refused(Refusal),
    /// It was refused in a protocol that has no words for that: the connection has to end.
    Close(Ending, String),
}

/// What has to come before anything else is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// Room, or that less is under way.
    Room,
    /// The reply to the blocked request.
    Reply,
}

impl Seat {
    /// That of a client which the shard knows.
    pub(crate) fn new(
        shard: Rc<Shard>,
        (client, session): (ClientId, Rc<Session>),
        limits: Limits,
        manners: Manners,
    ) -> Self {
        let (subscribed, round) = (false, Round::default());
        Self { shard, session, client, limits, manners, subscribed, round }
    }

    /// Begins to carry out what has come together. `handed` of the answers have left the outbox,
    /// and count all the same.
    pub(crate) fn begin(&mut self, handed: usize) {
        let under_way = self.session.outbox.borrow().len() + handed;
        self.round = Round { under_way, looked_in: u64::MAX, groups: 0 };
    }

    /// Looks whether the next command may be carried out.
    #[inline]
    pub(crate) fn obstacle(&mut self) -> Option<Obstacle> {
        let turns = self.shard.turns();
        if self.round.looked_in != turns {
            self.round.looked_in = turns;
            return self.look_for_obstacle();
        }
        (self.round.under_way >= self.limits.in_flight_max).then_some(Obstacle::Room)
    }

    /// See [`Seat::obstacle`]. Apart from the count nothing of this changes without a turn.
    #[inline(never)]
    fn look_for_obstacle(&self) -> Option<Obstacle> {
        if self.session.is_blocked() {
            return Some(Obstacle::Reply);
        }
        let is_full = self.session.outbox.borrow().is_full(&self.limits)
            || self.round.under_way >= self.limits.in_flight_max;
        (is_full || self.shard.must_wait(self.client, None)).then_some(Obstacle::Room)
    }

    /// Counts an answer that is under way.
    #[inline]
    pub(crate) const fn count(&mut self) {
        self.round.under_way += 1;
    }

    /// Carries out a command, whose moments are by the wall clock. What it comes to is in the
    /// outbox after the next turn.
    #[inline]
    pub(crate) fn carry_out(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        if self.manners.waits_for_room && self.lacks_room(command) {
            return Err(Undone::NoRoom);
        }
        let translated;
        let command = match command {
            Command::Publish(publish) => {
                translated = Command::Publish(self.in_own_time(publish));
                &translated
            }
            command => command,
        };
        match self.shard.apply(self.client, request, command) {
            Applied::Waits => {
                self.shard.block(&self.session, request);
                return Ok(());
            }
            Applied::Refused(kind) if !self.manners.tells_refusals => {
                self.shard.tally().refuse(kind.into());
                return Err(refused(kind));
            }
            Applied::Answered | Applied::Refused(_) => {}
        }
        if needs_care(command) {
            self.take_care(command);
        }
        Ok(())
    }

    /// Whether the client has subscriptions.
    #[inline]
    pub(crate) fn is_subscribed(&mut self) -> bool {
        self.subscribed && self.is_still_subscribed()
    }

    /// Looks whether subscriptions are left: those to a lane end with it, unasked.
    #[inline(never)]
    fn is_still_subscribed(&mut self) -> bool {
        let count = self.shard.inspect(|it| it.engine().subscriptions(self.client));
        self.subscribed = count > 0;
        self.subscribed
    }

    /// Ends everything that belongs to the client, which begins anew.
    pub(crate) fn reset(&mut self) {
        self.shard.retire(self.client);
        self.subscribed = false;
    }

    /// The same with a deadline on the server's time line in place of one by the wall clock.
    #[inline(never)]
    fn in_own_time<'c>(&self, publish: &Publish<'c>) -> Publish<'c> {
        let deadline = match publish.deadline {
            Deadline::At(at) => Deadline::At(self.shard.by_own_time(at)),
            other => other,
        };
        Publish { deadline, ..*publish }
    }

    /// Notes a subscription, and ends the turn after a command with a long reply, so that the reply
    /// counts before the next command is carried out.
    #[inline(never)]
    fn take_care(&mut self, command: &Command<'_>) {
        if let Command::Subscribe { .. } = command {
            self.subscribed = true;
            return;
        }
        self.round.groups += 1;
        let is_group = matches!(command, Command::Take(take) if take.count == 1);
        if !is_group || self.round.groups >= self.manners.groups_per_turn {
            self.round.groups = 0;
            self.shard.turn();
        }
    }

    /// Whether a command is a put that has to wait. One that is larger than all the room there is
    /// would wait for ever: it is refused.
    #[inline]
    fn lacks_room(&self, command: &Command<'_>) -> bool {
        let Command::Put(put) = command else { return false };
        let bytes = put.terms.key.map_or(0, <[u8]>::len) + put.payload.len();
        self.shard.is_busy_for_put(put.queue, bytes)
            && put_bytes(put.queue.len(), bytes) <= self.limits.task_bytes_max
            && self.shard.must_wait(self.client, Some((put.queue, bytes)))
    }
}

#[cold]
fn refused(kind: RefusalKind) -> Undone {
    let ending = if kind == RefusalKind::Store { Ending::StoreFailed } else { Ending::Refused };
    Undone::Close(ending, format!("a request was refused: {}", kind.word()))
}

/// Whether the reply may have many parts, or many bytes for few of the request, or deliveries may
/// follow.
#[inline]
fn needs_care(command: &Command<'_>) -> bool {
    match command {
        Command::Take(take) => take.count > 1 || take.selection.group,
        Command::Peek(peek) => peek.count > 1,
        Command::AckAll { .. }
        | Command::Subscribe { .. }
        | Command::Queue(QueueCommand::List { .. })
        | Command::Member(MemberCommand::List(_)) => true,
        _ => false,
    }
}
