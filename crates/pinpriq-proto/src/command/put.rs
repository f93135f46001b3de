//! What a put says about its task. When it waits, and for what, is up to the commands.

use super::Wait;
use crate::batches::{Bonds, OnlyIf};
use crate::facts::{Care, Destination, Subject as _};
use crate::limits::{ATTEMPTS_MAX, BACKOFF_MS_MAX};
use crate::request::fault::Fault;
use crate::request::options::{
    AFTER, AT, ATTEMPTS, BACKOFF, BACKOFFMAX, BATCH, COST, DELAY, HEADERS, HELD, ID, IF, KEY,
    ONDUP, Opt, PRIORITY, REASON, RESULT_WANTED, ROOM, SHARE, STATE_BURIED, TTL, TTR, UNIQUE, WAIT,
    WINDOW,
};
use crate::request::parts::{Parts, no_value, number, span};
use crate::rights::{Need, Right};
use crate::task::{COST_USUAL, GivenTerms, Retries, State, Terms};
use crate::time::{Span, Timestamp};
use crate::unique::Unique;

/// The options about failures.
const OF_RETRIES: u64 = ATTEMPTS.bit | BACKOFF.bit | BACKOFFMAX.bit;

/// The options of `PUT`.
pub(super) const OPTIONS: &[Opt] = &[
    KEY,
    PRIORITY,
    DELAY,
    AT,
    TTL,
    TTR,
    ID,
    WAIT,
    ROOM,
    UNIQUE,
    WINDOW,
    ONDUP,
    STATE_BURIED,
    REASON,
    SHARE,
    COST,
    HEADERS,
    HELD,
    ATTEMPTS,
    BACKOFF,
    BACKOFFMAX,
    RESULT_WANTED,
    BATCH,
    AFTER,
    IF,
];

/// See [`Command::Put`](super::Command::Put).
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub struct Put<'a> {
    /// The queue.
    pub queue: &'a [u8],
    /// What the task carries.
    pub payload: &'a [u8],
    /// What never changes about it.
    #[letter(1)]
    pub terms: GivenTerms<'a>,
    /// Lower is more urgent. Without a priority the task is never selected.
    #[letter(2, default = Some(0))]
    pub priority: Option<i64>,
    /// How long it stays waiting first.
    #[letter(3, default = Delay::NONE)]
    pub delay: Delay,
    /// Its time to live.
    #[letter(4, default = TimeToLive::Default)]
    pub ttl: TimeToLive,
    /// Its id. Required where the queue's ids are given, and refused elsewhere.
    #[letter(5)]
    pub id: Option<&'a [u8]>,
    /// Whether the reply waits until the task is finished.
    #[letter(6)]
    pub wait: Option<Wait>,
    /// What makes it unique.
    #[letter(7)]
    pub unique: Option<Unique<'a>>,
    /// Whether the reply to a put that waits tells what has come of the work.
    #[letter(8)]
    pub result: bool,
    /// What it has to do with batches.
    #[letter(9, default = Bonds::NONE)]
    pub bonds: Bonds<'a>,
    /// Whether it is worth doing once the batches are done that it waits for.
    #[letter(10, default = OnlyIf::Done)]
    pub only_if: OnlyIf,
}

/// How long a new task stays waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum Delay {
    /// This long after its put. Zero is no delay.
    #[letter(1)]
    For(Span),
    /// Until this moment, however long the put is on its way. One that has passed holds nothing
    /// back.
    #[letter(2)]
    Until(Timestamp),
    /// Until somebody frees it, by a restart, a switch or a take of its id.
    #[letter(3)]
    Held,
}

/// The time to live of a new task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_derive::Letter)]
pub enum TimeToLive {
    /// The TTL of the queue.
    #[letter(1)]
    Default,
    /// This duration.
    #[letter(2)]
    For(Span),
    /// Unlimited.
    #[letter(3)]
    Endless,
    /// Only the moment of the put: a consumer that is blocked already gets the task, or no one
    /// does.
    #[letter(4)]
    Instant,
}

impl<'a> Put<'a> {
    /// A plain put: priority 0, no key, no delay, the queue's TTL and TTR.
    #[must_use]
    pub const fn new(queue: &'a [u8], payload: &'a [u8]) -> Self {
        Self {
            queue,
            payload,
            terms: Terms::NONE,
            priority: Some(0),
            delay: Delay::NONE,
            ttl: TimeToLive::Default,
            id: None,
            wait: None,
            unique: None,
            result: false,
            bonds: Bonds::NONE,
            only_if: OnlyIf::Done,
        }
    }
}

impl<'a> GivenTerms<'a> {
    /// Returns the terms that the options of a put give, without those that few tasks have.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every put")]
    pub fn read_plain(parts: &Parts<'a>) -> Result<Self, Fault> {
        Ok(Self::of(parts.option(KEY), parts.span(TTR)?))
    }

    /// Returns the terms that the options of a request give.
    pub fn read_all(parts: &'a Parts<'a>) -> Result<Self, Fault> {
        Self::read_plain(parts)?.with_extras(parts)
    }

    /// Returns these terms, which are plain, with all else that the options of a request give.
    pub(crate) fn with_extras(self, parts: &'a Parts<'a>) -> Result<Self, Fault> {
        let cost = parts.value(COST)?.unwrap_or(COST_USUAL);
        let headers = parts.headers();
        if headers.is_some_and(<[u8]>::is_empty) {
            return Err(Fault::bad("HEADERS names at least one: leave it out for none"));
        }
        let terms = self.with_first(parts.option(SHARE), cost, headers);
        if parts.has_none_of(OF_RETRIES) {
            return Ok(terms);
        }
        let retries = Retries::read(parts)?;
        Ok(if retries.are_of_queue() { terms } else { terms.with_retries(retries) })
    }
}

impl Retries {
    /// Returns what the options of a request say about failures.
    fn read(parts: &Parts<'_>) -> Result<Self, Fault> {
        let backoff = |option: Opt| move |text: &[u8]| backoff(option, text);
        Ok(Self {
            attempts: parts.or_none(ATTEMPTS, attempts)?,
            backoff: parts.or_none(BACKOFF, backoff(BACKOFF))?,
            backoff_max: parts.given(BACKOFFMAX).map(backoff(BACKOFFMAX)).transpose()?,
        })
    }
}

fn attempts(text: &[u8]) -> Result<u32, Fault> {
    let given = number(text).and_then(|given| u32::try_from(given).ok());
    given.filter(|given| Retries::can_be_attempts(*given)).ok_or_else(|| {
        let rule = format!("ATTEMPTS is a number from 1 to {ATTEMPTS_MAX} or NONE");
        no_value(&rule, text)
    })
}

fn backoff(option: Opt, text: &[u8]) -> Result<Span, Fault> {
    let given = span(option.word, text)?;
    if Retries::can_be_backoff(given) {
        return Ok(given);
    }
    let (word, ms) = (option.word, given.ms());
    Err(Fault::bad(format!("{word} is from 1 to {BACKOFF_MS_MAX} ms, not {ms}")))
}

impl<'a> Put<'a> {
    /// Whether it is neither unique nor has to do with batches.
    #[must_use]
    pub const fn is_untied(&self) -> bool {
        self.unique.is_none() && self.bonds.are_none()
    }

    /// Whether the reply may come late.
    pub(super) fn waits(&self) -> bool {
        self.wait.is_some_and(Wait::blocks)
    }

    /// Where its queue lives, with the batches that it names.
    #[inline]
    pub(super) fn destination(&self) -> Destination<'a> {
        match self.bonds {
            Bonds::NONE => Destination::Queue(self.queue),
            Bonds { batch, after } => {
                let after = after.unwrap_or_default();
                Destination::Bonds { queue: self.queue, batch, after }
            }
        }
    }

    #[inline]
    pub(super) const fn care(&self) -> Care {
        match self.delay {
            Delay::For(_) | Delay::Held => Care::Plain,
            Delay::Until(_) => Care::OwnTime,
        }
    }
}

impl Delay {
    /// No delay.
    pub const NONE: Self = Self::For(Span::ZERO);

    /// Whether no delay was asked for. A moment that has passed was asked for.
    #[must_use]
    pub const fn is_none(self) -> bool {
        match self {
            Self::For(span) => span.is_zero(),
            Self::Until(_) | Self::Held => false,
        }
    }

    /// Returns how long the delay of a put at this moment is, if it ends by itself.
    #[must_use]
    pub const fn from(self, now: Timestamp) -> Span {
        match self {
            Self::For(span) => span,
            Self::Until(at) => at.since(now),
            Self::Held => Span::ZERO,
        }
    }

    /// Returns the state of a task that is put at this moment with this delay.
    #[must_use]
    pub fn state(self, now: Timestamp) -> State {
        match self.from(now) {
            _ if self == Self::Held => State::HELD,
            Span::ZERO => State::Ready,
            delay => State::Waiting { ready_at: Some(now.after(delay)) },
        }
    }
}

/// Tells what a put needs. With `WAIT`, the reply says what became of the task.
pub(super) fn of_put<'c>(put: &Put<'c>, tell: &mut dyn FnMut(Need<'c>)) {
    put.queue.each(Right::Put, tell);
    if put.wait.is_some() {
        put.queue.each(Right::Look, tell);
    }
    // Without a batch, all of them would be meant.
    if let Some(batch) = put.bonds.batch {
        batch.each(Right::Put, tell);
    }
    for name in put.bonds.names_after() {
        name.each(Right::Look, tell);
    }
}
