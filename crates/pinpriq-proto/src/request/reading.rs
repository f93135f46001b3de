//! From the parts of a request to a command and back: what types of fields look like as words.
//!
//! `pinpriq-derive` makes a [`Read`] of each variant with `#[request(…)]`, out of the types of its
//! fields, and the method that writes it. Which values make sense together is up to the engine.

use std::cell::OnceCell;

use super::fault::Fault;
use super::options::{self, Opt};
use super::parts::{self, Parts, no_value, receipt_numbers};
use super::spec::{Group, Spec, Word};
use super::writing::Writing;
use crate::batches::OnlyIf;
use crate::command::{
    Assign, BulkChange, Command, End, Held, HeldBy, Order, Put, QueueName, Selection, Sides, Wait,
};
use crate::fanout::Deadline;
use crate::named_limits::{LimitChange, OrNone};
use crate::schedule::{OnMissed, Overlap, When};
use crate::settings::Rate;
use crate::shares::{Own, ShareChange};
use crate::task::{COST_USUAL, GivenTerms, Receipt, Retries, StateKind};
use crate::time::{Span, Timestamp};
use crate::unique::OnDuplicate;

/// Makes a command of a request.
pub type Read = for<'a> fn(&'a Parts<'a>, &'a Room<'a>) -> Result<Command<'a>, Fault>;

/// An entry of the table of commands, and how its request is read, unless a door does that.
#[derive(Clone, Copy)]
pub(crate) struct Row(pub(crate) Spec, pub(crate) Option<Read>);

impl Row {
    /// No entry.
    pub(crate) const NONE: Self = Self(Spec::new("", Group::Tasks, "", ""), None);
}

/// What a command borrows that does not stand in its request as it is. An unused one is empty.
#[derive(Default, Debug)]
pub struct Room<'a> {
    /// A name that a cursor stands for.
    pub(super) name: OnceCell<Vec<u8>>,
    /// The changes of settings.
    pub(super) settings: OnceCell<Vec<crate::settings::Assignment<'a>>>,
    /// Receipts.
    pub(super) receipts: OnceCell<Vec<Receipt>>,
    /// A put within another command.
    pub(super) put: OnceCell<Put<'a>>,
    /// The parts of the request.
    pub(super) parts: OnceCell<Parts<'a>>,
}

/// A struct whose fields are words and options of a request.
pub(crate) trait Arguments<'a>: Sized {
    /// Its words.
    const WORDS: &'static [Word];
    /// Its options.
    const OPTIONS: &'static [Opt];
    /// The options that say more about its words. They come after all others.
    const LAST: &'static [Opt];

    /// Reads it from a request in which its words begin at this place.
    fn read(parts: &'a Parts<'a>, at: usize, room: &'a Room<'a>) -> Result<Self, Fault>;

    /// Writes its words and options.
    fn write(&self, to: &mut Writing);
}

/// A name that decides the shard.
pub(crate) trait Key<'a>: Sized {
    /// The options that say more about it.
    const OPTIONS: &'static [Opt] = &[];

    /// Reads the word at this place.
    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault>;

    /// Writes the word.
    fn write(&self, to: &mut Writing);
}

/// A value that is one word.
pub(crate) trait Value<'a>: Sized {
    /// Reads the value of what is called `word`.
    fn read(word: &str, text: &'a [u8]) -> Result<Self, Fault>;

    /// Returns the text that is read as this value.
    fn text(&self) -> Vec<u8>;
}

impl<'a> Key<'a> for &'a [u8] {
    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        Ok(parts.word(at))
    }

    fn write(&self, to: &mut Writing) {
        to.word(self);
    }
}

impl<'a> Key<'a> for QueueName<'a> {
    const OPTIONS: &'static [Opt] = &[options::MEMBER];

    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        Ok(Self { name: parts.word(at), member: parts.given(options::MEMBER) })
    }

    fn write(&self, to: &mut Writing) {
        to.word(self.name);
        to.option(options::MEMBER, self.member);
    }
}

impl<'a> Key<'a> for Option<QueueName<'a>> {
    const OPTIONS: &'static [Opt] = &[options::MEMBER];

    fn read(parts: &Parts<'a>, at: usize) -> Result<Self, Fault> {
        if parts.words.len() > at {
            return QueueName::read(parts, at).map(Some);
        }
        if parts.given(options::MEMBER).is_some() {
            let name = parts.spec().full_name();
            return Err(Fault::bad(format!("{name} of a lane names the topic first")));
        }
        Ok(None)
    }

    fn write(&self, to: &mut Writing) {
        if let Some(queue) = self {
            queue.write(to);
        }
    }
}

impl<'a> Value<'a> for &'a [u8] {
    fn read(_: &str, text: &'a [u8]) -> Result<Self, Fault> {
        Ok(text)
    }

    fn text(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Value<'_> for Span {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::span(word, text)
    }

    fn text(&self) -> Vec<u8> {
        decimal(&self.ms())
    }
}

impl Value<'_> for Timestamp {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::moment(word, text)
    }

    fn text(&self) -> Vec<u8> {
        decimal(&self.ms())
    }
}

/// Numbers of at least 1. More than fits stands for the most.
macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Value<'_> for $type {
            fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
                parts::count(word, text).map(|count| Self::try_from(count).unwrap_or(Self::MAX))
            }

            fn text(&self) -> Vec<u8> {
                decimal(self)
            }
        }
    )*};
}

numbers!(u32 u64 usize);

/// A priority, or none.
impl Value<'_> for Option<i64> {
    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::any_priority(text)
    }

    fn text(&self) -> Vec<u8> {
        self.map_or_else(|| b"NONE".to_vec(), |priority| decimal(&priority))
    }
}

impl Value<'_> for StateKind {
    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::state(text)
    }

    fn text(&self) -> Vec<u8> {
        decimal(&self.letter())
    }
}

impl Value<'_> for Receipt {
    fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::receipt(text)
    }

    fn text(&self) -> Vec<u8> {
        receipt_numbers(*self).map(|number| number.to_string()).join("-").into_bytes()
    }
}

impl Value<'_> for Wait {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        parts::wait(word, text)
    }

    fn text(&self) -> Vec<u8> {
        match self {
            Self::No => decimal(&0),
            Self::For(span) => span.text(),
            Self::Forever => decimal(&-1),
        }
    }
}

/// Values that are one of a few words, in any case, and the rule that other words break.
macro_rules! words {
    ($($type:ty: $rule:literal, $known:expr;)*) => {$(
        impl Value<'_> for $type {
            fn read(_: &str, text: &[u8]) -> Result<Self, Fault> {
                let is_it = |(_, word): &(Self, &str)| text.eq_ignore_ascii_case(word.as_bytes());
                let known = $known.into_iter().find(is_it).map(|(it, _)| it);
                known.ok_or_else(|| no_value($rule, text))
            }

            fn text(&self) -> Vec<u8> {
                let known = $known.into_iter().find(|(it, _)| it == self);
                known.map_or_else(Vec::new, |(_, word)| word.into())
            }
        }
    )*};
}

words! {
    Sides: "a side is IN or OUT", [(Self::Input, "IN"), (Self::Output, "OUT")];
    End: "FROM is MIN or MAX", [(Self::Min, "MIN"), (Self::Max, "MAX")];
    Order: "ORDER is OLDEST or NEWEST", [(Self::Oldest, "OLDEST"), (Self::Newest, "NEWEST")];
    OnMissed: "MISSED is one, all or none", Self::ALL.map(|it| (it, it.word()));
    Overlap: "OVERLAP is allow or skip", Self::ALL.map(|it| (it, it.word()));
    OnlyIf: "IF is done, acked or failed", Self::ALL.map(|it| (it, it.word()));
    OnDuplicate: "ONDUP is keep, reject or replace", Self::ALL;
}

impl Value<'_> for Own<u64> {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        own(text, parts::number, || format!("{word} is a number, none or default"))
    }

    fn text(&self) -> Vec<u8> {
        text_of_own(*self)
    }
}

impl Value<'_> for Own<Rate> {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        let rule = || format!("{word} is n/ms, such as 100/1000, none or default");
        own(text, super::settings::rate_of, rule)
    }

    fn text(&self) -> Vec<u8> {
        text_of_own(*self)
    }
}

impl Value<'_> for OrNone<u64> {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        or_none(text, parts::number, || format!("{word} is a number or none"))
    }

    fn text(&self) -> Vec<u8> {
        text_of_own(Own::Is(self.0))
    }
}

impl Value<'_> for OrNone<Rate> {
    fn read(word: &str, text: &[u8]) -> Result<Self, Fault> {
        let rule = || format!("{word} is n/ms, such as 100/1000, or none");
        or_none(text, super::settings::rate_of, rule)
    }

    fn text(&self) -> Vec<u8> {
        text_of_own(Own::Is(self.0))
    }
}

fn or_none<T>(
    text: &[u8],
    read: fn(&[u8]) -> Option<T>,
    rule: impl FnOnce() -> String,
) -> Result<OrNone<T>, Fault> {
    if text.eq_ignore_ascii_case(b"none") {
        return Ok(OrNone(None));
    }
    read(text).map(|it| OrNone(Some(it))).ok_or_else(|| no_value(&rule(), text))
}

fn own<T>(
    text: &[u8],
    read: fn(&[u8]) -> Option<T>,
    rule: impl FnOnce() -> String,
) -> Result<Own<T>, Fault> {
    match text {
        _ if text.eq_ignore_ascii_case(b"default") => Ok(Own::Default),
        _ if text.eq_ignore_ascii_case(b"none") => Ok(Own::Is(None)),
        _ => read(text).map(|it| Own::Is(Some(it))).ok_or_else(|| no_value(&rule(), text)),
    }
}

fn text_of_own<T: ToString>(own: Own<T>) -> Vec<u8> {
    match own {
        Own::Default => b"default".to_vec(),
        Own::Is(None) => b"none".to_vec(),
        Own::Is(Some(value)) => value.to_string().into_bytes(),
    }
}

/// At least one of them is given.
impl<'a> Arguments<'a> for ShareChange {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::WEIGHT, options::LIMIT, options::RATE];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        let change = Self {
            weight: parts.value(options::WEIGHT)?,
            limit: parts.value(options::LIMIT)?,
            rate: parts.value(options::RATE)?,
        };
        if change.is_empty() {
            return Err(Fault::arity(&parts.spec().full_name()));
        }
        Ok(change)
    }

    fn write(&self, to: &mut Writing) {
        to.option(options::WEIGHT, self.weight);
        to.option(options::LIMIT, self.limit);
        to.option(options::RATE, self.rate);
        to.is_unsayable |= self.is_empty();
    }
}

/// Exactly one of the options is given.
impl<'a> Arguments<'a> for BulkChange<'a> {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &options::BULK_CHANGES;
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        let mut given = options::BULK_CHANGES.into_iter().filter(|option| parts.has(*option));
        let (Some(option), None) = (given.next(), given.next()) else {
            let words = options::BULK_CHANGES.map(|option| option.word).join(", ");
            return Err(Fault::bad(format!("BULK does one of these: {words}")));
        };
        Ok(match option {
            options::RESTART => Self::Restart,
            options::CANCEL => Self::Cancel,
            options::KILL => Self::Kill,
            options::REDRIVE => Self::Redrive,
            options::MOVE => Self::Move(parts.option(options::MOVE).unwrap_or_default()),
            options::PRIORITY_SET => Self::Priority(parts.value(option)?.flatten()),
            _ => Self::Delay(parts.value(option)?.unwrap_or(Span::ZERO)),
        })
    }

    fn write(&self, to: &mut Writing) {
        let option = self.option();
        match *self {
            Self::Restart | Self::Cancel | Self::Kill | Self::Redrive => to.flag(option, true),
            Self::Move(queue) => to.option(option, Some(queue)),
            Self::Priority(priority) => to.option(option, Some(priority)),
            Self::Delay(delay) => to.option(option, Some(delay)),
        }
    }
}

/// Nothing has to be given: a limit that allows everything counts all the same.
impl<'a> Arguments<'a> for LimitChange {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::MAX, options::RATE_OR_NONE];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        let (max, rate) = (parts.value(options::MAX)?, parts.value(options::RATE_OR_NONE)?);
        Ok(Self { max, rate })
    }

    fn write(&self, to: &mut Writing) {
        to.option(options::MAX, self.max);
        to.option(options::RATE_OR_NONE, self.rate);
    }
}

/// A receipt, or `ID` and an id.
impl<'a> Arguments<'a> for Held<'a> {
    const WORDS: &'static [Word] = &[Word::Key("queue"), Word::Held];
    const OPTIONS: &'static [Opt] = &[];
    const LAST: &'static [Opt] = <QueueName<'_> as Key<'_>>::OPTIONS;

    fn read(parts: &'a Parts<'a>, at: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        debug_assert_eq!(at, 0, "the name of a queue is the first word");
        held(parts)
    }

    fn write(&self, to: &mut Writing) {
        self.queue.write(to);
        match self.by {
            HeldBy::Receipt(receipt) => to.word(&receipt.text()),
            HeldBy::Id(id) => to.all(&[b"ID", id]),
        }
    }
}

impl<'a> Arguments<'a> for Selection {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::FROM, options::ORDER];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        selection(parts, false)
    }

    fn write(&self, to: &mut Writing) {
        let Self { from, order, group, narrow } = *self;
        let usual = if from == End::Max { Order::Newest } else { Order::Oldest };
        to.option(options::FROM, Some(from).filter(|from| *from != End::Min));
        to.option(options::ORDER, Some(order).filter(|order| *order != usual));
        to.flag(options::GROUP, group);
        to.is_unsayable |= narrow;
    }
}

impl<'a> Arguments<'a> for Deadline {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[options::DEADLINE, options::TTL];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        match (parts.moment(options::DEADLINE)?, parts.span(options::TTL)?) {
            (None, None) => Ok(Self::OfLane),
            (Some(at), None) => Ok(Self::At(at)),
            (None, Some(ttl)) => Ok(Self::After(ttl)),
            (Some(_), Some(_)) => {
                Err(Fault::bad("DEADLINE and TTL say the same: give one of them"))
            }
        }
    }

    fn write(&self, to: &mut Writing) {
        match *self {
            Self::OfLane => {}
            Self::At(at) => to.option(options::DEADLINE, Some(at)),
            Self::After(ttl) => to.option(options::TTL, Some(ttl)),
        }
    }
}

impl<'a> Arguments<'a> for GivenTerms<'a> {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] = &[
        options::KEY,
        options::TTR,
        options::SHARE,
        options::COST,
        options::HEADERS,
        options::ATTEMPTS,
        options::BACKOFF,
        options::BACKOFFMAX,
    ];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        Self::read_all(parts)
    }

    fn write(&self, to: &mut Writing) {
        let Self { key, ttr, .. } = *self;
        let (share, cost) = (self.share().copied(), self.cost());
        to.option(options::KEY, key);
        to.option(options::TTR, ttr);
        to.option(options::SHARE, share);
        to.option(options::COST, Some(cost).filter(|cost| *cost != COST_USUAL));
        to.headers(self.headers().copied());
        let Retries { attempts, backoff, backoff_max } = self.retries();
        let count = |count: Option<u32>| count.map_or_else(|| b"NONE".to_vec(), |it| it.text());
        to.option(options::ATTEMPTS, attempts.given().map(count).as_deref());
        to.option(options::BACKOFF, backoff.given().map(text_or_none).as_deref());
        to.option(options::BACKOFFMAX, backoff_max);
    }
}

/// What a cron expression says is not checked here.
impl<'a> Arguments<'a> for When<'a> {
    const WORDS: &'static [Word] = &[];
    const OPTIONS: &'static [Opt] =
        &[options::EVERY, options::AT_SLOT, options::CRON, options::ZONE];
    const LAST: &'static [Opt] = &[];

    fn read(parts: &'a Parts<'a>, _: usize, _: &'a Room<'a>) -> Result<Self, Fault> {
        let (at, zone) = (parts.moment(options::AT_SLOT)?, parts.option(options::ZONE));
        match (parts.span(options::EVERY)?, parts.option(options::CRON)) {
            (Some(_), Some(_)) => {
                Err(Fault::bad("EVERY and CRON both say when it is due: give one of them"))
            }
            (None, None) => {
                Err(Fault::bad("EVERY or CRON says when the schedule is due: give one"))
            }
            (Some(_), None) if zone.is_some() => {
                Err(Fault::bad("ZONE goes with CRON: a fixed distance has no time zone"))
            }
            (Some(every), None) => Ok(Self::Every { every, at }),
            (None, Some(_)) if at.is_some() => {
                Err(Fault::bad("AT goes with EVERY: a cron expression says itself when it is due"))
            }
            (None, Some(expression)) => Ok(Self::Cron { expression, zone }),
        }
    }

    fn write(&self, to: &mut Writing) {
        match *self {
            Self::Every { every, at } => {
                to.option(options::EVERY, Some(every));
                to.option(options::AT_SLOT, at);
            }
            Self::Cron { expression, zone } => {
                to.option(options::CRON, Some(expression));
                to.option(options::ZONE, zone);
            }
        }
    }
}

impl<'a> Parts<'a> {
    /// Returns the value of an option, if it was given.
    #[inline]
    pub(crate) fn value<T: Value<'a>>(&self, option: Opt) -> Result<Option<T>, Fault> {
        self.given(option).map(|text| T::read(option.word, text)).transpose()
    }

    /// Returns the value of the word at this place, if it was given.
    pub(crate) fn maybe<T: Value<'a>>(&self, name: &str, at: usize) -> Result<Option<T>, Fault> {
        self.words.get(at).map(|text| T::read(name, text)).transpose()
    }
}

/// Returns the task that a holder names: by receipt, or by `ID id`.
pub fn held<'a>(parts: &Parts<'a>) -> Result<Held<'a>, Fault> {
    let (queue, name) = (parts.queue(), parts.named());
    let by = if parts.by_id { HeldBy::Id(name) } else { HeldBy::Receipt(parts::receipt(name)?) };
    Ok(Held { queue, by })
}

/// Returns which tasks are chosen. The order is the oldest first from the most urgent end, and the
/// newest first from the other, so that one end mirrors the other.
pub fn selection(parts: &Parts<'_>, group: bool) -> Result<Selection, Fault> {
    let from = parts.value(options::FROM)?.unwrap_or(End::Min);
    let usual = if from == End::Max { Order::Newest } else { Order::Oldest };
    let order = parts.value(options::ORDER)?.unwrap_or(usual);
    Ok(Selection { from, order, group, narrow: false })
}

/// The terms of a task without a time to release of its own.
pub(crate) mod without_ttr {
    use super::options::KEY;
    use super::{Fault, GivenTerms, Parts, Room, Span, Writing};

    pub(crate) fn read<'a>(parts: &'a Parts<'a>, _: &'a Room<'a>) -> Result<GivenTerms<'a>, Fault> {
        GivenTerms::of(parts.given(KEY), None).with_extras(parts)
    }

    pub(crate) fn write(terms: GivenTerms<'_>, to: &mut Writing) {
        super::Arguments::write(&GivenTerms { ttr: None::<Span>, ..terms }, to);
        to.is_unsayable |= terms.ttr.is_some();
    }
}

/// New headers in place of all, where none remove them.
pub(crate) mod all_headers {
    use super::{Fault, Parts, Room, Writing};

    #[expect(clippy::unnecessary_wraps, reason = "all values are read by such functions")]
    pub(crate) fn read<'a>(
        parts: &'a Parts<'a>,
        _: &'a Room<'a>,
    ) -> Result<Option<&'a [u8]>, Fault> {
        Ok(parts.headers())
    }

    pub(crate) fn write(headers: Option<&[u8]>, to: &mut Writing) {
        to.headers(headers);
    }
}

/// A lowest and a highest priority.
pub(crate) mod priorities {
    use super::options::PRIORITIES;
    use super::{Fault, Parts, Room, Value as _, Writing, parts};

    pub(crate) fn read(parts: &Parts<'_>, _: &Room<'_>) -> Result<Option<(i64, i64)>, Fault> {
        let Some([low, high]) = parts.two(PRIORITIES) else { return Ok(None) };
        Ok(Some((parts::whole(PRIORITIES.word, low)?, parts::whole(PRIORITIES.word, high)?)))
    }

    pub(crate) fn write(priorities: Option<(i64, i64)>, to: &mut Writing) {
        to.two(PRIORITIES, priorities.map(|(low, high)| [Some(low).text(), Some(high).text()]));
    }
}

/// How often a task has failed, which may be 0.
pub(crate) mod failures {
    use super::options::FAILURES;
    use super::{Fault, Parts, Room, Writing, no_value, parts};

    pub(crate) fn read(parts: &Parts<'_>, _: &Room<'_>) -> Result<Option<u32>, Fault> {
        let Some(text) = parts.given(FAILURES) else { return Ok(None) };
        let failures = parts::number(text).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        let rule = || no_value(&format!("{} is a whole number", FAILURES.word), text);
        failures.map(Some).ok_or_else(rule)
    }

    pub(crate) fn write(failures: Option<u32>, to: &mut Writing) {
        to.option(FAILURES, failures.map(|it| it.to_string().into_bytes()).as_deref());
    }
}

/// The name of a header and a pattern for its value.
pub(crate) mod header {
    use super::options::HEADER;
    use super::{Fault, Parts, Room, Writing};

    /// A name and a pattern.
    type Header<'a> = (&'a [u8], &'a [u8]);

    #[expect(clippy::unnecessary_wraps, reason = "all values are read by such functions")]
    pub(crate) fn read<'a>(parts: &Parts<'a>, _: &Room<'a>) -> Result<Option<Header<'a>>, Fault> {
        Ok(parts.two(HEADER).map(|[name, pattern]| (name, pattern)))
    }

    pub(crate) fn write(header: Option<Header<'_>>, to: &mut Writing) {
        to.two(HEADER, header.map(|(name, pattern)| [name.to_vec(), pattern.to_vec()]));
    }
}

/// A new TTL, or none where a command has `TTL ms|NONE`.
pub(crate) mod new_ttl {
    use super::{Assign, Fault, Parts, Room, Span, Writing, options};

    fn ttl(text: &[u8]) -> Result<Span, Fault> {
        super::parts::span(options::TTL.word, text)
    }

    pub(crate) fn read(parts: &Parts<'_>, _: &Room<'_>) -> Result<Assign<Option<Span>>, Fault> {
        if parts.spec().options.contains(&options::TTL_OR_NONE) {
            return parts.or_none(options::TTL, ttl);
        }
        let span = parts.given(options::TTL).map(ttl).transpose()?;
        Ok(span.map_or(Assign::Keep, |span| Assign::To(Some(span))))
    }

    pub(crate) fn write(ttl: Assign<Option<Span>>, to: &mut Writing) {
        to.option(options::TTL, ttl.given().map(super::text_or_none).as_deref());
    }
}

/// A length of time, or the word for none.
fn text_or_none(span: Option<Span>) -> Vec<u8> {
    span.map_or_else(|| b"NONE".to_vec(), |span| span.text())
}

fn decimal(number: &impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Returns how many items lists have together.
pub(crate) const fn total<T>(lists: &[&[T]]) -> usize {
    let (mut list, mut total) = (0, 0);
    while list < lists.len() {
        (total, list) = (total + lists[list].len(), list + 1);
    }
    total
}

/// Joins lists of a type into one.
macro_rules! joined {
    ($type:ident $(, $list:expr)*) => {{
        const LISTS: &[&[$type]] = &[$($list),*];
        const N: usize = total(LISTS);
        &$crate::request::reading::join::<$type, N>($type::NONE, LISTS)
    }};
}
pub(crate) use joined;

/// Joins lists into one of `N` items, which is how many they have together.
pub(crate) const fn join<T: Copy, const N: usize>(filler: T, lists: &[&[T]]) -> [T; N] {
    let mut all = [filler; N];
    let (mut list, mut end) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            all[end] = lists[list][at];
            (at, end) = (at + 1, end + 1);
        }
        list += 1;
    }
    all
}
