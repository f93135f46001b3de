//! The seat of one client at a shard. Commands of clients with a connection here and of guests are
//! carried out here, unless they have too much under way.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use pinpriq_engine::Applied;
use pinpriq_proto::command::{Command, Delay, Put, Step};
use pinpriq_proto::facts::Care;
use pinpriq_proto::fanout::{Deadline, Publish};
use pinpriq_proto::letters::Arena;
use pinpriq_proto::limits::put_bytes;
use pinpriq_proto::reply::{Refusal, RefusalKind};
use pinpriq_proto::task::{Bytes, ClientId, Farewell, Receipt, RequestId};

use super::shard::Shard;
use crate::clients::about::Manners;
use crate::clients::ending::Ending;
use crate::config::Limits;
use crate::session::{Blocked, Session};

/// How long a client that asks for long work goes on before others have their turn. The command
/// that is being carried out is finished.
const TURN_MOST: Duration = Duration::from_millis(5);

/// The seat of one client at a shard.
pub(crate) struct Seat {
    pub(crate) shard: Rc<Shard>,
    pub(crate) session: Rc<Session>,
    /// Its number in the engine.
    pub(crate) client: ClientId,
    pub(crate) limits: Limits,
    pub(crate) manners: Manners,
    /// What the tasks that it puts count for: the name of its user, if that has a limit.
    pub(crate) account: Option<Bytes>,
    /// Whether the client may have subscriptions.
    subscribed: bool,
    round: Round,
}

/// What was carried out since the seat last began.
#[derive(Default)]
struct Round {
    /// The number of replies under way.
    under_way: usize,
    /// The number of commands for a group since the last turn.
    groups: usize,
    /// The turn in which obstacles were last looked for. The highest number stands for none.
    looked_in: Cell<u64>,
    /// When its first long work was done, if there was some.
    worked_since: Cell<Option<Duration>>,
    /// Whether it has taken so long that others come first.
    is_over: Cell<bool>,
}

/// Why a request is not carried out by this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Redirect {
    /// This slot is served by the node that listens at this address.
    Moved(u16, String),
    /// Its names are in shards of which each may have another node.
    CrossSlot,
}

/// Why a command was not carried out.
#[derive(Debug)]
pub(crate) enum Undone {
    /// It has to wait for room. Ask again when the client's bell has rung.
    NoRoom,
    /// The connection must move to another shard, and the command be asked there.
    Move(usize),
    /// It concerns queues that live in several shards.
    Refused(Refusal),
    /// Another node of the cluster is to be asked, and the client wants to know which.
    Redirected(Redirect),
    /// It has to wait until the client is no longer blocked. Ask again then.
    Blocked,
    /// It was refused in a protocol that cannot say so: the connection has to end.
    Close(Ending, String),
}

/// What has to happen before the next command is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// There must be room, or less under way.
    Room,
    /// The blocked request must have its reply.
    Reply,
}

impl Seat {
    /// Returns the seat of a client known to the shard.
    pub(crate) fn new(
        shard: Rc<Shard>,
        (client, session): (ClientId, Rc<Session>),
        limits: Limits,
        manners: Manners,
    ) -> Self {
        let (account, subscribed, round) = (None, false, Round::default());
        Self { shard, session, client, limits, manners, account, subscribed, round }
    }

    /// Begins to carry out requests that have arrived together. `handed` replies have left the
    /// outbox and still count.
    pub(crate) fn begin(&mut self, handed: usize) {
        let under_way = self.session.outbox.borrow().len() + handed;
        self.round = Round { under_way, looked_in: Cell::new(u64::MAX), ..Round::default() };
    }

    /// Checks whether the next command may be carried out.
    #[inline]
    pub(crate) fn obstacle(&mut self) -> Option<Obstacle> {
        let turns = self.shard.turns();
        if self.round.looked_in.get() != turns {
            self.round.looked_in.set(turns);
            return self.look_for_obstacle();
        }
        (self.round.under_way >= self.limits.in_flight_max).then_some(Obstacle::Room)
    }

    /// Looks for obstacles like [`Seat::obstacle`]. Only a turn changes them, apart from the count.
    #[inline(never)]
    fn look_for_obstacle(&self) -> Option<Obstacle> {
        if self.session.is_blocked() {
            return Some(Obstacle::Reply);
        }
        if self.round.is_over.get() {
            return Some(Obstacle::Room);
        }
        let is_full = self.session.outbox.borrow().is_full(&self.limits)
            || self.round.under_way >= self.limits.in_flight_max;
        (is_full || self.shard.must_wait(self.client, None)).then_some(Obstacle::Room)
    }

    /// Whether the client has worked for so long that others come first.
    pub(crate) const fn is_over_time(&self) -> bool {
        self.round.is_over.get()
    }

    /// Notes that others have their turn now. Returns whether they should.
    #[inline]
    pub(crate) fn take_break(&self) -> bool {
        self.round.is_over.replace(false)
    }

    /// Looks at the clock after long work.
    #[inline(never)]
    pub(crate) fn note_work(&self) {
        let Round { looked_in, worked_since, is_over, .. } = &self.round;
        if lasts_long(worked_since, self.shard.clock().passed()) {
            is_over.set(true);
            looked_in.set(u64::MAX);
        }
    }

    /// Counts a reply that is under way.
    #[inline]
    pub(crate) const fn count(&mut self) {
        self.round.under_way += 1;
    }

    /// Carries out a command for the account of the client, if it has one. It is refused if it
    /// would give the account too many tasks.
    #[inline(never)]
    pub(crate) fn carry_out_charged(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        let Some(account) = self.account.clone() else { return self.carry_out(request, command) };
        let shard = Rc::clone(&self.shard);
        match shard.charging((&account, command), || self.carry_out(request, command)) {
            Ok(done) => done,
            Err(refusal) if self.manners.tells_refusals => Err(Undone::Refused(refusal)),
            Err(refusal) => {
                self.shard.tally().refuse(self.session.door(), refusal.kind.into());
                Err(refused(refusal.kind))
            }
        }
    }

    /// Carries out a command, whose moments are by the wall clock. Its outputs are in the outbox
    /// after the next turn.
    #[inline]
    pub(crate) fn carry_out(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        let care = command.care();
        if care == Care::OwnTime {
            return self.carry_out_in_own_time(request, command);
        }
        self.carry_out_one(request, command, care)
    }

    /// Carries out a command that may name moments.
    #[inline(never)]
    fn carry_out_in_own_time(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        let done = self.carry_out_translated(request, command);
        self.note_work();
        done
    }

    fn carry_out_translated(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
    ) -> Result<(), Undone> {
        let arena = Arena::default();
        if let Command::Transaction(given) = command {
            let steps = self.steps_in_own_time(given, &arena);
            return self.carry_out_one(request, &Command::Transaction(&steps), Care::LongReply);
        }
        self.carry_out_one(request, &self.one_in_own_time(command, &arena), Care::Plain)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every request")]
    fn carry_out_one(
        &mut self,
        request: RequestId,
        command: &Command<'_>,
        care: Care,
    ) -> Result<(), Undone> {
        if self.manners.waits_for_room && self.lacks_room(command) {
            return Err(Undone::NoRoom);
        }
        let applied = self.shard.apply(self.client, request, command);
        if applied != Applied::Answered || care != Care::Plain {
            return self.follow_up(applied, request, (command, care));
        }
        Ok(())
    }

    /// Does what is left to do after a command that was not simply answered.
    #[inline(never)]
    fn follow_up(
        &mut self,
        applied: Applied,
        request: RequestId,
        (command, care): (&Command<'_>, Care),
    ) -> Result<(), Undone> {
        match applied {
            Applied::Waits => {
                let has_changed = matches!(command, Command::Put(_) | Command::PutInLine { .. });
                self.shard.block(&self.session, Blocked { request, has_changed });
                if self.shard.look().is_some() {
                    // No time passes, and nothing happens that could be waited for.
                    self.shard.end_waits(self.client);
                }
                return Ok(());
            }
            Applied::Refused(kind) if !self.manners.tells_refusals => {
                self.shard.tally().refuse(self.session.door(), kind.into());
                return Err(refused(kind));
            }
            Applied::Answered | Applied::Refused(_) => {}
        }
        match care {
            Care::Subscription => {
                self.note_work();
                self.subscribed = true;
            }
            Care::LongWork => self.note_work(),
            Care::LongReply => self.end_turn(),
            Care::Group => {
                self.round.groups += 1;
                if self.round.groups >= self.manners.groups_per_turn {
                    self.end_turn();
                }
            }
            Care::Plain | Care::OwnTime => {}
        }
        Ok(())
    }

    /// Whether the client has subscriptions.
    #[inline]
    pub(crate) fn is_subscribed(&mut self) -> bool {
        self.subscribed && self.subscriptions() > 0
    }

    /// Returns the number of subscriptions: those to a lane end with it without a request.
    #[inline(never)]
    pub(crate) fn subscriptions(&mut self) -> u32 {
        if !self.subscribed {
            return 0;
        }
        let count = self.shard.inspect(|it| it.engine().subscriptions(self.client));
        self.subscribed = count > 0;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Ends everything that belongs to the client, which starts again.
    pub(crate) fn reset(&mut self) {
        self.retire();
        self.subscribed = false;
    }

    /// Ends the subscriptions, credit and leases of the client. Those of which it never heard have
    /// not failed.
    pub(crate) fn retire(&self) {
        self.retire_without(Vec::new());
    }

    /// Like [`Seat::retire`]. These leases have not failed either.
    pub(crate) fn retire_without(&self, mut unsent: Vec<Receipt>) {
        // The outbox must hold everything that was handed to the client.
        self.shard.turn_if_begun();
        let waiting = self.session.outbox.borrow().leases();
        unsent.extend(waiting.into_iter().map(|(_, receipt)| receipt));
        self.shard.retire(self.client, Farewell::Ended { unsent: &unsent });
    }

    /// Returns the same command, with moments on the server's time line instead of those by the
    /// wall clock. A put that is numbered or buried has none.
    #[inline(never)]
    fn one_in_own_time<'c>(&self, command: &Command<'c>, arena: &'c Arena) -> Command<'c> {
        match *command {
            Command::Publish(publish) => {
                let deadline = match publish.deadline {
                    Deadline::At(at) => Deadline::At(self.shard.by_own_time(at)),
                    other => other,
                };
                Command::Publish(Publish { deadline, ..publish })
            }
            Command::Put(put) => Command::Put(self.put_in_own_time(&put)),
            Command::PutInLine { put, room } => {
                Command::PutInLine { put: arena.hold(self.put_in_own_time(put)), room }
            }
            other => other,
        }
    }

    fn put_in_own_time<'c>(&self, put: &Put<'c>) -> Put<'c> {
        let delay = match put.delay {
            Delay::Until(at) => Delay::Until(self.shard.by_own_seconds(at)),
            delay @ (Delay::For(_) | Delay::Held) => delay,
        };
        Put { delay, ..*put }
    }

    #[inline(never)]
    fn steps_in_own_time<'c>(&self, steps: &[Step<'c>], arena: &'c Arena) -> Vec<Step<'c>> {
        let translate = |step: &Step<'c>| match step {
            Step::Command(command) => Step::Command(self.one_in_own_time(command, arena)),
            step => *step,
        };
        steps.iter().map(translate).collect()
    }

    /// Ends the turn after a command with a long reply, so that the reply counts before the next
    /// command is carried out.
    fn end_turn(&mut self) {
        self.note_work();
        self.round.groups = 0;
        self.shard.turn();
    }

    /// Whether a command is a put that has to wait. A put larger than all the room would wait
    /// forever, so it is refused instead.
    #[inline]
    fn lacks_room(&self, command: &Command<'_>) -> bool {
        let Command::Put(put) = command else { return false };
        let bytes = put.terms.bytes() + put.payload.len();
        self.shard.is_busy_for_put(put.queue, bytes)
            && put_bytes(put.queue.len(), bytes) <= self.limits.task_bytes_max
            && self.shard.must_wait(self.client, Some((put.queue, bytes)))
    }
}

/// Whether work that began at this moment has taken so long that others come first. If none has
/// begun, it begins now.
pub(crate) fn lasts_long(since: &Cell<Option<Duration>>, now: Duration) -> bool {
    let began = since.get().unwrap_or(now);
    since.set(Some(began));
    now.saturating_sub(began) >= TURN_MOST
}

#[cold]
fn refused(kind: RefusalKind) -> Undone {
    let ending = if kind == RefusalKind::Store { Ending::StoreFailed } else { Ending::Refused };
    Undone::Close(ending, format!("a request was refused: {}", kind.word()))
}
