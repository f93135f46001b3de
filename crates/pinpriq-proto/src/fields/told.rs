//! The fields of leases, members, shares, limits, batches and schedules, as replies show them: a
//! table each.
//!
//! Over RESP a field without a value is null, in JSON it is left out.

use std::net::SocketAddr;

use super::{FieldKind, Value, bytes, moment};
use crate::batches::BatchShown;
use crate::fanout::MemberFigures;
use crate::looking::LeaseShown;
use crate::named_limits::LimitShown;
use crate::schedule::{Recurrence, ShownSchedule};
use crate::shares::{Own, ShareShown};
use crate::task::Bytes;
use crate::task::history::{Attempt, How};

/// A field.
pub struct Told<S> {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub sort: Sort,
    /// Whether it always has a value.
    pub always: bool,
    /// Reads its value.
    pub read: for<'s> fn(&'s S, &'s Holder) -> Value<'s>,
}

/// What values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// The same as those of a task.
    Like(FieldKind),
    /// One of some words.
    Word,
    /// True or false.
    Truth,
    /// A number, or the word none.
    Limit,
}

/// Who holds a lease. Nobody, for what is no lease.
#[derive(Clone, Debug, Default)]
pub struct Holder {
    /// The number of the connection.
    pub client: Option<u64>,
    /// Its name, while it is connected. Empty if it has none.
    pub name: Vec<u8>,
    /// Where it comes from, while it is connected.
    pub address: Option<SocketAddr>,
    /// The word for its door, while it is connected.
    pub door: Option<&'static str>,
}

/// The fields of a lease.
pub static LEASE: [Told<LeaseShown>; 10] = [
    Told::of("queue", FieldKind::Bytes, |it, _| Value::Bytes(&it.place.queue)),
    Told::of("member", FieldKind::Bytes, |it, _| bytes(it.member.as_ref())),
    Told::of("id", FieldKind::Id, |it, _| Value::Id(&it.id)),
    Told::of("client", FieldKind::Number, |_, holder| number(holder.client)),
    Told::of("name", FieldKind::Bytes, |_, holder| some_bytes(&holder.name)),
    Told::of("address", FieldKind::Address, |_, holder| {
        holder.address.map_or(Value::Missing, Value::Address)
    }),
    Told {
        sort: Sort::Word,
        ..Told::of("door", FieldKind::Bytes, |_, holder| holder.door.map_or(Value::Missing, word))
    },
    Told::of("since", FieldKind::Moment, |it, _| moment(it.since)),
    Told::of("until", FieldKind::Moment, |it, _| moment(it.until)),
    Told::of("progress", FieldKind::Bytes, |it, _| bytes(it.progress.as_ref())),
];

/// The fields of an attempt of a task.
pub static ATTEMPT: [Told<Attempt>; 7] = [
    Told::of("client", FieldKind::Number, |it, _| number(it.client.map(|client| client.0))),
    Told::of("name", FieldKind::Bytes, |it, _| some_bytes(&it.contact.name)),
    Told::of("address", FieldKind::Bytes, |it, _| some_bytes(&it.contact.address)),
    Told::always("taken_at", FieldKind::Moment, |it, _| Value::Moment(it.taken_at)),
    Told::of("ended_at", FieldKind::Moment, |it, _| moment(it.end.as_ref().map(|end| end.at))),
    Told {
        sort: Sort::Word,
        ..Told::of("how", FieldKind::Bytes, |it, _| {
            it.end.as_ref().map_or(Value::Missing, |end| word(How::word(end.how)))
        })
    },
    Told::of("reason", FieldKind::Bytes, |it, _| {
        bytes(it.end.as_ref().and_then(|end| end.reason.as_ref()))
    }),
];

/// The fields of a member of a topic.
pub static MEMBER: [Told<MemberFigures>; 5] = [
    Told::of("member", FieldKind::Bytes, |it, _| Value::Bytes(&it.member)),
    Told::always("incarnation", FieldKind::Number, |it, _| Value::Number(it.incarnation)),
    Told::always("lease_until", FieldKind::Moment, |it, _| Value::Moment(it.lease_until)),
    Told::always("ready", FieldKind::Number, |it, _| Value::Number(it.ready)),
    Told::always("taken", FieldKind::Number, |it, _| Value::Number(it.taken)),
];

/// The fields of a share.
pub static SHARE: [Told<ShareShown>; 10] = [
    Told::of("share", FieldKind::Bytes, |it, _| Value::Bytes(&it.share)),
    Told::always("weight", FieldKind::Count, |it, _| Value::Number(it.rules.weight.into())),
    Told { sort: Sort::Limit, ..Told::of("limit", FieldKind::Number, |it, _| own_limit(it)) },
    Told {
        sort: Sort::Word,
        ..Told::of("rate", FieldKind::Bytes, |it, _| match it.rules.rate {
            Own::Default => Value::Missing,
            Own::Is(None) => word("none"),
            Own::Is(Some(rate)) => Value::Rate(rate),
        })
    },
    Told::always("ready", FieldKind::Number, |it, _| Value::Number(it.ready)),
    Told::always("taken", FieldKind::Number, |it, _| Value::Number(it.taken)),
    Told::of("waited_ms", FieldKind::Span, |it, _| it.waited.map_or(Value::Missing, Value::Span)),
    Told::of("oldest_ready_ms", FieldKind::Span, |it, _| {
        it.oldest_ready.map_or(Value::Missing, Value::Span)
    }),
    Told::always("acked", FieldKind::Number, |it, _| Value::Number(it.acked)),
    Told::always("failed", FieldKind::Number, |it, _| Value::Number(it.failed)),
];

/// The fields of a limit that several queues use together.
pub static LIMIT: [Told<LimitShown>; 8] = [
    Told::of("name", FieldKind::Bytes, |it, _| Value::Bytes(&it.name)),
    Told::of("max", FieldKind::Number, |it, _| number(it.rules.max)),
    Told {
        sort: Sort::Word,
        ..Told::of("rate", FieldKind::Bytes, |it, _| {
            it.rules.rate.map_or(Value::Missing, Value::Rate)
        })
    },
    Told::always("taken", FieldKind::Number, |it, _| Value::Number(it.taken)),
    Told::of("tokens", FieldKind::Integer, |it, _| {
        it.tokens.map_or(Value::Missing, Value::Integer)
    }),
    Told::of("open_at", FieldKind::Moment, |it, _| moment(it.open_at)),
    Told::always("queues", FieldKind::Number, |it, _| Value::Number(it.queues)),
    Told::always("closed_ms", FieldKind::Span, |it, _| Value::Span(it.closed)),
];

/// The fields of a batch.
pub static BATCH: [Told<BatchShown>; 10] = [
    Told::of("name", FieldKind::Bytes, |it, _| Value::Bytes(&it.name)),
    Told::word("state", |it, _| word(it.state.word())),
    Told::always("total", FieldKind::Number, |it, _| Value::Number(it.total)),
    Told::always("pending", FieldKind::Number, |it, _| Value::Number(it.pending)),
    Told::always("buried", FieldKind::Number, |it, _| Value::Number(it.buried)),
    Told::always("acked", FieldKind::Number, |it, _| Value::Number(it.acked)),
    Told::always("failed", FieldKind::Number, |it, _| Value::Number(it.failed)),
    Told::always("waiting", FieldKind::Number, |it, _| Value::Number(it.waiting)),
    Told::always("opened_at", FieldKind::Moment, |it, _| Value::Moment(it.opened_at)),
    Told::of("done_at", FieldKind::Moment, |it, _| moment(it.done_at)),
];

/// The fields of a schedule.
pub static SCHEDULE: [Told<ShownSchedule>; 25] = [
    Told::of("name", FieldKind::Bytes, |it, _| Value::Bytes(&it.name)),
    Told::of("queue", FieldKind::Bytes, |it, _| Value::Bytes(&it.plan.queue)),
    Told::of("payload", FieldKind::Payload, |it, _| Value::Bytes(&it.plan.payload)),
    Told::of("cron", FieldKind::Bytes, |it, _| bytes(cron(it).map(|(expression, _)| expression))),
    Told::of("zone", FieldKind::Bytes, |it, _| bytes(cron(it).and_then(|(_, zone)| zone))),
    Told::of("key", FieldKind::Bytes, |it, _| bytes(it.plan.terms.key.as_ref())),
    Told::of("share", FieldKind::Bytes, |it, _| bytes(it.plan.terms.share())),
    Told::always("cost", FieldKind::Count, |it, _| Value::Number(it.plan.terms.cost().into())),
    Told::of("priority", FieldKind::Integer, |it, _| {
        it.plan.priority.map_or(Value::Missing, Value::Integer)
    }),
    Told::of("every", FieldKind::Span, |it, _| match it.plan.form {
        Recurrence::Every { every, .. } => Value::Span(every),
        Recurrence::Cron { .. } => Value::Missing,
    }),
    Told::of("at", FieldKind::Moment, |it, _| match it.plan.form {
        Recurrence::Every { anchor, .. } => Value::Moment(anchor),
        Recurrence::Cron { .. } => Value::Missing,
    }),
    Told::of("ttl", FieldKind::Span, |it, _| it.plan.ttl.map_or(Value::Missing, Value::Span)),
    Told::of("ttr", FieldKind::Span, |it, _| it.plan.terms.ttr.map_or(Value::Missing, Value::Span)),
    Told::always("fired", FieldKind::Number, |it, _| Value::Number(it.course.fired)),
    Told::always("missed", FieldKind::Number, |it, _| Value::Number(it.course.missed)),
    Told::of("last_slot", FieldKind::Moment, |it, _| moment(it.course.last_slot)),
    Told::of("next_at", FieldKind::Moment, |it, _| moment(it.next_at)),
    Told::of("last_id", FieldKind::Id, |it, _| {
        it.course.last_id.as_ref().map_or(Value::Missing, Value::Id)
    }),
    Told::word("on_missed", |it, _| word(it.plan.on_missed.word())),
    Told::word("overlap", |it, _| word(it.plan.overlap.word())),
    Told {
        name: "paused",
        sort: Sort::Truth,
        always: true,
        read: |it, _| Value::Truth(it.course.paused),
    },
    Told::always("headers", FieldKind::Headers, |it, _| {
        Value::Headers(it.plan.terms.header_bytes())
    }),
    Told::of("attempts_max", FieldKind::NumberOrNone, |it, _| {
        Value::own(it.plan.terms.retries().attempts, |most| Value::Number(most.into()))
    }),
    Told::of("backoff", FieldKind::SpanOrNone, |it, _| {
        Value::own(it.plan.terms.retries().backoff, Value::Span)
    }),
    Told::of("backoff_max", FieldKind::Span, |it, _| {
        it.plan.terms.retries().backoff_max.map_or(Value::Missing, Value::Span)
    }),
];

impl<S> Told<S> {
    const fn of(
        name: &'static str,
        kind: FieldKind,
        read: for<'s> fn(&'s S, &'s Holder) -> Value<'s>,
    ) -> Self {
        Self { name, sort: Sort::Like(kind), always: false, read }
    }

    const fn always(
        name: &'static str,
        kind: FieldKind,
        read: for<'s> fn(&'s S, &'s Holder) -> Value<'s>,
    ) -> Self {
        Self { name, sort: Sort::Like(kind), always: true, read }
    }

    /// One of some words, which is always there.
    const fn word(name: &'static str, read: for<'s> fn(&'s S, &'s Holder) -> Value<'s>) -> Self {
        Self { name, sort: Sort::Word, always: true, read }
    }
}

const fn word(word: &'static str) -> Value<'static> {
    Value::Bytes(word.as_bytes())
}

const fn own_limit(shown: &ShareShown) -> Value<'_> {
    match shown.rules.limit {
        Own::Default => Value::Missing,
        Own::Is(None) => word("none"),
        Own::Is(Some(limit)) => Value::Number(limit),
    }
}

fn number(number: Option<u64>) -> Value<'static> {
    number.map_or(Value::Missing, Value::Number)
}

/// The bytes of what is empty if it is not known.
fn some_bytes(bytes: &[u8]) -> Value<'_> {
    if bytes.is_empty() { Value::Missing } else { Value::Bytes(bytes) }
}

fn cron(shown: &ShownSchedule) -> Option<(&Bytes, Option<&Bytes>)> {
    match &shown.plan.form {
        Recurrence::Cron { expression, zone } => Some((expression, zone.as_ref())),
        Recurrence::Every { .. } => None,
    }
}
