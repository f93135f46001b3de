//! What a task is: its identity, its state, its lease, and the record that leaves the engine.
//!
//! A [`TaskRecord`] is a whole task as seen from outside: replies carry it, the store keeps it, and
//! a pop that could not be sent returns it. The layout of tasks in memory is not described here.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::batches::After;
use crate::limits::ORIGIN_OVERHEAD_BYTES;
use crate::schedule::Scheduled;
use crate::time::{Span, Timestamp};

mod away;
pub mod headers;
pub mod history;
mod terms;
mod ties;

pub use self::away::{Away, payload_checksum};
use self::history::History;
pub use self::terms::{COST_USUAL, Extras, GivenTerms, Holds, Retries, Terms};

/// Opaque bytes, shared and never changed: payloads, keys and names.
pub type Bytes = Arc<[u8]>;

/// The name of a task within its queue. The queue decides its form ([`crate::settings::Ids`]).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
pub enum TaskId {
    /// A number that the server generated: `sequence` and `time64`.
    #[letter(0)]
    Number(u64),
    /// A uuid that the server generated. Its text is the usual 36 characters.
    #[letter(1)]
    Uuid([u8; 16]),
    /// 1 to 255 bytes that the caller chose.
    #[letter(2)]
    Given(Bytes),
}

worded! {
    /// The states of a task, without their data.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
    pub enum StateKind {
        /// R: can be selected, if it has a priority.
        Ready = 0 => "ready",
        /// T: held by a consumer under a lease.
        Taken = 1 => "taken",
        /// W: its delay has not passed yet.
        Waiting = 2 => "waiting",
        /// B: set aside until somebody digs it up.
        Buried = 3 => "buried",
        /// Z: finished, and kept for a while.
        Zombie = 4 => "zombie",
        /// D: finished, and kept for good.
        Done = 5 => "done",
    }

    /// The word for the state.
    fn word -> &'static str
}

/// The state of a task with the data of that state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// R.
    Ready,
    /// T, under this lease.
    Taken(Lease),
    /// W, until `ready_at`.
    Waiting {
        /// The end of the delay. Without one it waits until it is freed.
        ready_at: Option<Timestamp>,
    },
    /// B, in this place among those that are buried.
    Buried(Burial),
    /// Z, until `purge_at`.
    Zombie {
        /// When the task is removed.
        purge_at: Timestamp,
    },
    /// D.
    Done,
}

/// The right to a taken task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The grant of this lease. No two leases share one.
    pub grant: Grant,
    /// The connection that took the task, while it exists. A lease restored from a store has none.
    pub holder: Option<Holder>,
    /// When the lease ends. Without a deadline it ends with the holder's connection.
    pub deadline: Option<Timestamp>,
    /// The agreed time to release, which a touch grants again.
    pub ttr: Option<Span>,
}

/// Who holds a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The connection.
    pub client: ClientId,
    /// Whether the lease ends with the connection and with the server although it has a deadline.
    pub is_tied: bool,
    /// Whether the connection only took the task, and holds the lease no more than any other. Is
    /// neither kept nor sent.
    pub needs_receipt: bool,
    /// Whether the task was only delivered, and can be called back until the holder starts it. Is
    /// neither kept nor sent.
    pub is_unstarted: bool,
}

/// When a task was buried: a later burial is higher, also within a millisecond and after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Burial(u64);

/// How often some things have happened to a task since its put, or since it was restarted. The
/// counts stay at their highest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// How often a lease has reached its deadline.
    pub timeouts: u32,
    /// How often a holder has released it.
    pub releases: u32,
    /// How often it was buried.
    pub buries: u32,
    /// How often it was dug up, plowed or kicked.
    pub kicks: u32,
}

/// The number of one grant of a lease. It is unique for ever, since it contains the incarnation of
/// the server that granted it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Grant {
    /// The incarnation of the server. It rises, durably, before the first request is served.
    pub incarnation: u64,
    /// The count of grants in that incarnation.
    pub serial: u64,
}

/// The proof of one lease. Its text form names the task and the grant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Receipt {
    /// The [`TaskRecord::number`] of the task, which also determines its queue.
    pub number: u64,
    /// The grant.
    pub grant: Grant,
}

/// A connection. Never reused within an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
pub struct ClientId(pub u64);

impl ClientId {
    /// A server may give a connection a second number, which differs in this bit alone.
    pub const SECOND: u64 = 1 << 63;

    /// Whether both numbers are those of one connection.
    #[must_use]
    #[inline]
    pub const fn is_same_connection(self, other: Self) -> bool {
        self.first().0 == other.first().0
    }

    /// The number of the connection, for either of its numbers.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Self {
        Self(self.0 & !Self::SECOND)
    }
}

/// How a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell<'a> {
    /// By itself, or because it was ended. The client never heard of these leases.
    Ended {
        /// Their receipts.
        unsent: &'a [Receipt],
    },
    /// Because the server stops. No task has failed by that.
    ServerStops,
}

/// A request of a client. The door chooses it, and the reply contains it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, pinpriq_derive::Letter)]
pub struct RequestId(pub u64);

/// The name of a lane, as its tasks hold it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneName {
    /// Its number. Another lane with the same topic and member has another number.
    pub number: u64,
    /// The member that has the lane. Left out in a change.
    pub member: Bytes,
}

impl LaneName {
    /// A lane known only by its number.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        Self { number, member: Bytes::default() }
    }
}

/// The current progress of a task: everything that changes without a new payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Lower is more urgent. Without a priority the task is never selected.
    pub priority: Option<i64>,
    /// The place in the order of insertion: [`TaskRecord::number`], unless the task was sent to
    /// the tail.
    pub seq: u64,
    /// The end of its time to live.
    pub expires_at: Option<Timestamp>,
    /// The number of times it was taken.
    pub attempts: u32,
    /// The number of times it failed since a client made it begin again.
    pub failures: u32,
    /// Why it failed or was buried last, if that was said. See [`reasons`] for those of the server.
    pub reason: Option<Bytes>,
    /// What delays, releases and burials have left on it, if they have.
    pub trace: Option<Box<Trace>>,
    /// Its state.
    pub state: State,
}

/// What delays, releases and burials have left on a task. At least one of these is known: see
/// [`Trace::of`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The delay that it was last given, whether or not it has passed. Zero if there was none.
    pub delay: Span,
    /// How often some things have happened to it.
    pub counts: Counts,
    /// Whether it holds back the other tasks of its key, if its queue has that.
    pub is_held: bool,
    /// How it ages.
    pub aged: Aged,
    /// How it was cancelled, while it is taken.
    pub cancelled: Option<Cancelled>,
    /// How far the work has come, as its holder has said for people. Is never kept in a store.
    pub progress_text: Option<Bytes>,
    /// How far the work has come, for who takes it next. It is not empty.
    pub checkpoint: Option<Bytes>,
    /// What has come of the work, for a finished task.
    pub result: Option<Bytes>,
    /// Its last attempts, if its queue notes them. They are not none.
    pub history: Option<History>,
    /// The batches that it waits for, in W.
    pub after: Option<After>,
}

/// What is known of a taken task that was cancelled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancelled {
    /// Why, perhaps empty.
    pub reason: Bytes,
    /// The deadline of its lease, where no grace ends that earlier.
    pub deadline: Option<Timestamp>,
}

/// How a task of an ageing queue ages, where that does not follow from its put and its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aged {
    /// When it has begun to age, if that was not its put.
    pub start: Option<Timestamp>,
    /// What a step of its priority counts, if that is not [`Settings::ageing_usual`].
    ///
    /// [`Settings::ageing_usual`]: crate::settings::Settings::ageing_usual
    pub ageing: Option<Span>,
}

/// What a dead letter was in the queue that it comes from. After several moves, the last of them.
#[derive(Clone, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
#[letter(closed)]
pub struct Origin {
    /// That queue.
    pub queue: Bytes,
    /// Its id there.
    pub id: TaskId,
    /// When it was put there.
    pub put_at: Timestamp,
    /// The number of times it was taken there.
    pub attempts: u32,
    /// The number of times it failed there.
    pub failures: u32,
    /// The moment of the move.
    pub at: Timestamp,
}

/// How a task has come to be where it is. At least one of these is known: see [`Past::of`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Past {
    /// Where the task was before it was moved here, if it is a dead letter.
    pub origin: Option<Origin>,
    /// The schedule that has put the task, if one has.
    pub scheduled: Option<Scheduled>,
    /// The key that made it unique when it was put, while it has that.
    pub unique: Option<Bytes>,
    /// The batch in which it is pending.
    pub batch: Option<Bytes>,
}

/// The reasons that the server itself gives.
pub mod reasons {
    /// A lease has reached its deadline.
    pub const LEASE_EXPIRED: &[u8] = b"lease expired";
    /// The holder has released the task, and that is a failure in its queue.
    pub const RELEASED: &[u8] = b"released";
    /// The connection of a lease without a TTR has ended.
    pub const CONNECTION_CLOSED: &[u8] = b"connection closed";
    /// A bulk request has cancelled the task.
    pub const BULK: &[u8] = b"bulk";
    /// The TTL has passed, and the queue keeps such tasks as dead letters.
    pub const EXPIRED: &[u8] = b"expired";
    /// The task made room for a more urgent one, and the queue keeps such tasks as dead letters.
    pub const EVICTED: &[u8] = b"evicted";
}

/// A whole task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRecord {
    /// The shard's own number of the task, in the order of the puts. Unique in the shard, never
    /// reused, and never changed.
    pub number: u64,
    /// The queue that the task is in. For a task of a lane, this is the topic. A change leaves it
    /// out for a task of a lane, which is known by its number.
    pub queue: Bytes,
    /// The lane that the task is in, if it is in one.
    pub lane: Option<LaneName>,
    /// The name of the task within that queue.
    pub id: TaskId,
    /// When the task was put.
    pub put_at: Timestamp,
    /// What never changes.
    pub terms: Terms,
    /// What changes.
    pub progress: Progress,
    /// How the task has come to be here, unless a client has just put it.
    pub past: Option<Box<Past>>,
    /// What the task carries. Empty if it was left in the store or is shared.
    pub payload: Bytes,
    /// How to find the payload, if it was left in the store.
    pub away: Option<Away>,
    /// Only in a change: whether terms and payload are those of the publication whose numbers
    /// include the number of the task. If so, the record leaves them out.
    pub shared: bool,
}

impl StateKind {
    /// Whether tasks in this state are finished: kept after their end, for a time or for good.
    #[must_use]
    #[inline]
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Zombie | Self::Done)
    }

    /// The letter of the state: `R`, `T`, `W`, `B`, `Z` or `D`.
    #[must_use]
    pub const fn letter(self) -> char {
        self.word().as_bytes()[0].to_ascii_uppercase() as char
    }
}

impl State {
    /// W until somebody frees it.
    pub const HELD: Self = Self::Waiting { ready_at: None };

    /// The state without its data.
    #[must_use]
    pub const fn kind(&self) -> StateKind {
        match self {
            Self::Ready => StateKind::Ready,
            Self::Taken(_) => StateKind::Taken,
            Self::Waiting { .. } => StateKind::Waiting,
            Self::Buried(_) => StateKind::Buried,
            Self::Zombie { .. } => StateKind::Zombie,
            Self::Done => StateKind::Done,
        }
    }
}

impl Holder {
    /// A connection whose lease is not tied to it.
    #[must_use]
    pub const fn of(client: ClientId) -> Self {
        Self { client, is_tied: false, needs_receipt: false, is_unstarted: false }
    }
}

impl Lease {
    /// The connection that took the task, while it exists.
    #[must_use]
    pub fn client(&self) -> Option<ClientId> {
        self.holder.map(|holder| holder.client)
    }

    /// Whether this connection took the task, and holds the lease.
    #[must_use]
    #[inline]
    pub fn is_held_by(&self, client: ClientId) -> bool {
        self.holder
            .is_some_and(|holder| holder.client.is_same_connection(client) && !holder.needs_receipt)
    }

    /// Whether it ends with the holder's connection although it has a deadline.
    #[must_use]
    #[inline]
    pub fn is_tied(&self) -> bool {
        self.holder.is_some_and(|holder| holder.is_tied)
    }

    /// Whether its task is held for a pop over several engines, which may not choose it.
    #[must_use]
    pub fn is_held_for_pop(&self) -> bool {
        self.deadline.is_none() && self.is_tied()
    }

    /// Whether its task was only delivered, and can be called back until the holder starts it.
    #[must_use]
    #[inline]
    pub fn is_unstarted(&self) -> bool {
        self.holder.is_some_and(|holder| holder.is_unstarted)
    }

    /// Whether it ends with the holder's connection: it is tied to that, was not started, or has no
    /// deadline.
    #[must_use]
    #[inline]
    pub fn ends_with_connection(&self) -> bool {
        let is_bound = |holder: Holder| holder.is_tied || holder.is_unstarted;
        self.deadline.is_none() || self.holder.is_some_and(is_bound)
    }

    /// Makes it that of a task that its holder has started at this moment: its time to release
    /// begins anew.
    pub fn start(&mut self, now: Timestamp) {
        if let Some(holder) = &mut self.holder {
            holder.is_unstarted = false;
        }
        if let Some(ttr) = self.ttr {
            self.deadline = Some(now.after(ttr));
        }
    }

    /// Returns it as a store keeps it: no holder outlives the server, and nor does a lease that is
    /// tied to one.
    #[must_use]
    pub fn to_keep(self) -> Self {
        if self.is_tied() {
            return Self { holder: None, deadline: None, ttr: None, ..self };
        }
        Self { holder: None, ..self }
    }
}

impl Burial {
    /// For a task that was buried before burials were noted: before every other.
    pub const UNKNOWN: Self = Self(0);

    /// The bits for the burials of one millisecond. More of them borrow from the next one.
    const SERIAL_BITS: u32 = 16;

    /// The burial at this moment, after the last one.
    #[must_use]
    pub const fn next(last: Self, now: Timestamp) -> Self {
        let (earliest, after) = (now.ms() << Self::SERIAL_BITS, last.0.saturating_add(1));
        Self(if earliest > after { earliest } else { after })
    }

    /// The burial that has this number.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number, in the order of burials.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl Counts {
    /// Nothing has happened.
    pub const NONE: Self = Self { timeouts: 0, releases: 0, buries: 0, kicks: 0 };

    /// Whether nothing has happened.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        matches!(self, Self { timeouts: 0, releases: 0, buries: 0, kicks: 0 })
    }
}

impl Progress {
    /// The progress of a task that was just put under this number and has no deadline.
    #[must_use]
    #[inline]
    pub const fn fresh(number: u64, priority: Option<i64>) -> Self {
        Self {
            priority,
            seq: number,
            expires_at: None,
            attempts: 0,
            failures: 0,
            reason: None,
            trace: None,
            state: State::Ready,
        }
    }

    /// The delay that it was last given, whether or not it has passed.
    #[must_use]
    pub fn delay(&self) -> Span {
        self.trace.as_ref().map_or(Span::ZERO, |trace| trace.delay)
    }

    /// How often some things have happened to it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.trace.as_ref().map_or(Counts::NONE, |trace| trace.counts)
    }

    /// Whether it holds back the other tasks of its key, if its queue has that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_held)
    }

    /// How it ages, if its queue ages.
    #[must_use]
    pub fn aged(&self) -> Aged {
        self.trace.as_ref().map_or(Aged::NONE, |trace| trace.aged)
    }

    /// How it was cancelled, if it is taken and was.
    #[must_use]
    pub fn cancelled(&self) -> Option<&Cancelled> {
        self.trace.as_ref()?.cancelled.as_ref()
    }

    /// What its holder has said for people about how far the work has come.
    #[must_use]
    pub fn text(&self) -> Option<&Bytes> {
        self.trace.as_ref()?.progress_text.as_ref()
    }

    /// How far the work has come, for who takes it next.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Bytes> {
        self.trace.as_ref()?.checkpoint.as_ref()
    }

    /// What has come of the work, if it is finished and that was said.
    #[must_use]
    pub fn result(&self) -> Option<&Bytes> {
        self.trace.as_ref()?.result.as_ref()
    }

    /// Whether it waits until somebody frees it.
    #[must_use]
    pub fn is_held_by_hand(&self) -> bool {
        self.state == State::HELD && self.after().is_none()
    }

    /// The batches that it waits for.
    #[must_use]
    pub fn after(&self) -> Option<&After> {
        self.trace.as_ref()?.after.as_ref()
    }

    /// The bytes of its checkpoint, its result and its attempts.
    #[must_use]
    #[inline]
    pub fn told_bytes(&self) -> usize {
        let Some(trace) = &self.trace else { return 0 };
        let told = [&trace.checkpoint, &trace.result].into_iter().flatten();
        told.map(|told| told.len()).sum::<usize>() + history::bytes(self.history())
    }

    /// The bytes of its checkpoint.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> usize {
        self.checkpoint().map_or(0, |checkpoint| checkpoint.len())
    }

    /// Returns it as a store keeps it: without the holder and what it has said.
    #[must_use]
    pub fn to_keep(mut self) -> Self {
        if let State::Taken(lease) = &mut self.state {
            *lease = lease.to_keep();
        }
        self.forget_text();
        self
    }

    /// Forgets what its holder has said for people.
    #[inline]
    pub fn forget_text(&mut self) {
        if self.text().is_some() {
            let trace = self.trace.take();
            self.trace = trace.and_then(|trace| Trace { progress_text: None, ..*trace }.kept());
        }
    }

    /// Whether nothing has happened to the task of this number, apart from its priority.
    #[inline]
    #[must_use]
    pub const fn is_fresh(&self, number: u64) -> bool {
        let Self { priority: _, seq, expires_at, attempts, failures, reason, trace, state } = self;
        *seq == number
            && expires_at.is_none()
            && *attempts == 0
            && *failures == 0
            && reason.is_none()
            && trace.is_none()
            && matches!(state, State::Ready)
    }
}

impl Aged {
    /// All follows from its put and its queue.
    pub const NONE: Self = Self { start: None, ageing: None };

    /// Whether all follows from its put and its queue.
    #[must_use]
    #[inline]
    pub const fn is_none(&self) -> bool {
        matches!(self, Self { start: None, ageing: None })
    }
}

impl Trace {
    /// What nothing has left anything on.
    pub const NONE: Self = Self {
        delay: Span::ZERO,
        counts: Counts::NONE,
        is_held: false,
        aged: Aged::NONE,
        cancelled: None,
        progress_text: None,
        checkpoint: None,
        result: None,
        history: None,
        after: None,
    };

    /// The trace with this delay and these counts, or none if they say nothing.
    #[must_use]
    #[inline]
    pub fn of(delay: Span, counts: Counts) -> Option<Box<Self>> {
        Self { delay, counts, ..Self::NONE }.kept()
    }

    /// The trace, or none if it says nothing.
    #[must_use]
    #[inline]
    pub fn kept(self) -> Option<Box<Self>> {
        let Self { delay, counts, is_held, aged, ref cancelled, .. } = self;
        let Self { ref progress_text, ref checkpoint, ref result, ref history, .. } = self;
        let is_any = !delay.is_zero() || !counts.are_none() || is_held || !aged.is_none();
        let is_on_its_way = cancelled.is_some() || progress_text.is_some() || checkpoint.is_some();
        let is_known = is_any || is_on_its_way || result.is_some() || history.is_some();
        let is_known = is_known || self.after.is_some();
        is_known.then(|| Box::new(self))
    }
}

impl Origin {
    /// What it counts in addition to its task.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let id = if let TaskId::Given(id) = &self.id { id.len() } else { 0 };
        self.queue.len() + id + ORIGIN_OVERHEAD_BYTES
    }
}

impl Past {
    /// How a task has come to be where it is, or none if a client has put it there without a
    /// unique key.
    #[must_use]
    pub fn of(
        origin: Option<Origin>,
        scheduled: Option<Scheduled>,
        unique: Option<Bytes>,
    ) -> Option<Box<Self>> {
        Self { origin, scheduled, unique, batch: None }.kept()
    }

    /// Returns it, unless nothing is known.
    #[must_use]
    pub fn kept(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl TaskRecord {
    /// Where the task was before it was moved here, if it is a dead letter.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.past.as_ref()?.origin.as_ref()
    }

    /// The schedule that has put the task, if one has.
    #[must_use]
    pub fn scheduled(&self) -> Option<&Scheduled> {
        self.past.as_ref()?.scheduled.as_ref()
    }

    /// The key that makes it unique.
    #[must_use]
    pub fn unique(&self) -> Option<&Bytes> {
        self.past.as_ref()?.unique.as_ref()
    }

    /// Takes the key from it that makes it unique.
    pub fn forget_unique(&mut self) {
        self.past = self.past.take().and_then(|past| Past { unique: None, ..*past }.kept());
    }

    /// Replaces where the task was before it was moved here.
    pub fn set_origin(&mut self, origin: Option<Origin>) {
        let past = self.past.take().map_or_else(Past::default, |past| *past);
        self.past = Past { origin, ..past }.kept();
    }

    /// The receipt of the current lease, if the task is taken.
    #[must_use]
    #[inline]
    pub const fn receipt(&self) -> Option<Receipt> {
        match &self.progress.state {
            State::Taken(lease) => Some(Receipt { number: self.number, grant: lease.grant }),
            _ => None,
        }
    }
}

impl TaskId {
    /// The bytes that stand for it.
    #[must_use]
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Number(_) | Self::Uuid(_) => Cow::Owned(self.to_string().into_bytes()),
            Self::Given(bytes) => Cow::Borrowed(bytes),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Uuid(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    if matches!(index, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
            Self::Given(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reply with tasks moves records.
    #[test]
    fn a_record_occupies_at_most_272_bytes() {
        assert!(size_of::<TaskRecord>() <= 272, "{}", size_of::<TaskRecord>());
    }
}
