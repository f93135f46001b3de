//! Parts of commands and outputs.

use pinpriq_proto::command::{
    Amendment, Assign, Delay, End, Held, HeldBy, Order, QueueName, Selection, Sides, TakeMode,
    TimeToLive, Wait,
};
use pinpriq_proto::fanout::Deadline;
use pinpriq_proto::reply::{Outcome, RefusalKind};
use pinpriq_proto::schedule::{OnMissed, Overlap, Scheduled, When};
use pinpriq_proto::settings::{Pause, Paused, Rate, Setting, Settings, Value};
use pinpriq_proto::task::{
    Burial, Bytes, ClientId, Counts, Grant, Holder, LaneName, Lease, Origin, Past, Progress,
    Receipt, State, StateKind, TaskId, TaskRecord, Terms, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

/// Mostly a number that takes one byte or two.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0_u64..300, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

pub(super) fn small() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0_u32..300, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

pub(super) fn signed() -> impl Strategy<Value = i64> {
    prop_oneof![3 => -100_i64..100, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn text() -> BoxedStrategy<Vec<u8>> {
    // Sometimes one whose length takes two bytes.
    prop_oneof![9 => vec(any::<u8>(), 0..10), 1 => vec(any::<u8>(), 120..140)].boxed()
}

pub(super) fn borrowed() -> impl Strategy<Value = &'static [u8]> {
    text().prop_map(|text| &*text.leak())
}

pub(super) fn bytes() -> impl Strategy<Value = Bytes> {
    text().prop_map(Bytes::from)
}

/// A list of as many items as fit in the list itself, or of more.
pub(super) fn list<T: Clone + std::fmt::Debug + 'static>(
    item: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<&'static [T]> {
    vec(item, 0..20).prop_map(|items| &*items.leak()).boxed()
}

pub(super) fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::ZERO),
        Just(Timestamp::MAX),
        any::<u64>().prop_map(Timestamp::from_ms)
    ]
}

/// How long a put is held back.
pub(crate) fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![span().prop_map(Delay::For), moment().prop_map(Delay::Until)]
}

pub(super) fn span() -> impl Strategy<Value = Span> {
    prop_oneof![Just(Span::ZERO), Just(Span::MAX), number().prop_map(Span::from_ms)]
}

pub(super) fn priority() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![Just(Some(0)), option::of(signed())]
}

pub(crate) fn kind() -> impl Strategy<Value = StateKind> {
    select(&StateKind::ALL[..])
}

pub(super) fn grant() -> impl Strategy<Value = Grant> {
    (number(), number()).prop_map(|(incarnation, serial)| Grant { incarnation, serial })
}

pub(super) fn receipt() -> impl Strategy<Value = Receipt> {
    (number(), grant()).prop_map(|(number, grant)| Receipt { number, grant })
}

pub(super) fn queue() -> impl Strategy<Value = QueueName<'static>> {
    (borrowed(), option::of(borrowed())).prop_map(|(name, member)| QueueName { name, member })
}

pub(crate) fn held_by() -> impl Strategy<Value = HeldBy<'static>> {
    prop_oneof![receipt().prop_map(HeldBy::Receipt), borrowed().prop_map(HeldBy::Id)]
}

pub(super) fn held() -> impl Strategy<Value = Held<'static>> {
    (queue(), held_by()).prop_map(|(queue, by)| Held { queue, by })
}

pub(super) fn assign<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Assign<T>> {
    prop_oneof![Just(Assign::Keep), value.prop_map(Assign::To)].boxed()
}

pub(crate) fn amendment() -> impl Strategy<Value = Amendment<'static>> {
    let ttl = assign(option::of(span()));
    (option::of(borrowed()), assign(priority()), ttl)
        .prop_map(|(payload, priority, ttl)| Amendment { payload, priority, ttl })
}

pub(super) fn selection() -> impl Strategy<Value = Selection> {
    any::<[bool; 4]>().prop_map(|[max, newest, group, narrow]| Selection {
        from: if max { End::Max } else { End::Min },
        order: if newest { Order::Newest } else { Order::Oldest },
        group,
        narrow,
    })
}

pub(crate) fn mode() -> impl Strategy<Value = TakeMode> {
    prop_oneof![
        Just(TakeMode::Pop),
        option::of(span()).prop_map(|ttr| TakeMode::Lease { ttr }),
        (option::of(span()), span())
            .prop_map(|(ttr, otherwise)| TakeMode::Unheld { ttr, otherwise }),
    ]
}

pub(crate) fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![Just(Wait::No), Just(Wait::Forever), span().prop_map(Wait::For)]
}

pub(crate) fn time_to_live() -> impl Strategy<Value = TimeToLive> {
    prop_oneof![
        Just(TimeToLive::Default),
        Just(TimeToLive::Endless),
        Just(TimeToLive::Instant),
        span().prop_map(TimeToLive::For)
    ]
}

pub(crate) fn deadline() -> impl Strategy<Value = Deadline> {
    prop_oneof![
        Just(Deadline::OfLane),
        moment().prop_map(Deadline::At),
        span().prop_map(Deadline::After)
    ]
}

pub(crate) fn sides() -> impl Strategy<Value = Sides> {
    select(&[Sides::Input, Sides::Output, Sides::Both][..])
}

/// Any value, whether or not a setting may have it.
pub(crate) fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        Just(Value::None),
        number().prop_map(Value::Number),
        span().prop_map(Value::Span),
        any::<u8>().prop_map(Value::Word),
        borrowed().prop_map(Value::Bytes),
        rate().prop_map(Value::Rate),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    (small(), span()).prop_map(|(count, per)| Rate { count, per })
}

/// A value of the kind of this setting.
pub(super) fn fitting(setting: &'static Setting) -> impl Strategy<Value = Value<'static>> {
    let fits = |value| (setting.write)(&mut Settings::default(), value).is_ok();
    let mut kinds: Vec<BoxedStrategy<Value<'static>>> = Vec::new();
    if fits(Value::Number(1)) {
        kinds.push(number().prop_map(Value::Number).boxed());
    }
    if fits(Value::Span(Span::MAX)) {
        kinds.push(span().prop_map(Value::Span).boxed());
    }
    if fits(Value::Bytes(b"")) {
        kinds.push(borrowed().prop_map(Value::Bytes).boxed());
    }
    if fits(Value::Rate(Rate { count: 1, per: Span::MAX })) {
        kinds.push(rate().prop_map(Value::Rate).boxed());
    }
    let others = (0..10).map(Value::Word).chain([Value::None]);
    kinds.extend(others.filter(|value| fits(*value)).map(|value| Just(value).boxed()));
    Union::new(kinds)
}

pub(super) fn paused() -> impl Strategy<Value = Paused> {
    [pause(), pause()].prop_map(|[input, output]| Paused { input, output })
}

fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![Just(Pause::Off), Just(Pause::Endless), moment().prop_map(Pause::Until)]
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    select(&Outcome::ALL[..])
}

pub(crate) fn refusal_kind() -> impl Strategy<Value = RefusalKind> {
    select(&RefusalKind::ALL[..])
}

pub(crate) fn id() -> impl Strategy<Value = TaskId> {
    prop_oneof![
        number().prop_map(TaskId::Number),
        any::<[u8; 16]>().prop_map(TaskId::Uuid),
        bytes().prop_map(TaskId::Given),
    ]
}

fn lease() -> impl Strategy<Value = Lease> {
    let holder = (number().prop_map(ClientId), any::<bool>());
    let holder =
        option::of(holder.prop_map(|(client, is_tied)| Holder { is_tied, ..Holder::of(client) }));
    (grant(), holder, option::of(moment()), option::of(span()))
        .prop_map(|(grant, holder, deadline, ttr)| Lease { grant, holder, deadline, ttr })
}

pub(crate) fn state() -> BoxedStrategy<State> {
    prop_oneof![
        Just(State::Ready),
        Just(State::Done),
        lease().prop_map(State::Taken),
        moment().prop_map(|ready_at| State::Waiting { ready_at }),
        number().prop_map(|number| State::Buried(Burial::of_number(number))),
        moment().prop_map(|purge_at| State::Zombie { purge_at }),
    ]
    .boxed()
}

fn origin() -> impl Strategy<Value = Origin> {
    (bytes(), id(), moment(), small(), small(), moment()).prop_map(
        |(queue, id, put_at, attempts, failures, at)| Origin {
            queue,
            id,
            put_at,
            attempts,
            failures,
            at,
        },
    )
}

pub(super) fn on_missed() -> impl Strategy<Value = OnMissed> {
    select(&OnMissed::ALL[..])
}

pub(super) fn overlap() -> impl Strategy<Value = Overlap> {
    select(&Overlap::ALL[..])
}

pub(crate) fn when() -> BoxedStrategy<When<'static>> {
    prop_oneof![
        (span(), option::of(moment())).prop_map(|(every, at)| When::Every { every, at }),
        (borrowed(), option::of(borrowed()))
            .prop_map(|(expression, zone)| When::Cron { expression, zone }),
    ]
    .boxed()
}

fn scheduled() -> impl Strategy<Value = Scheduled> {
    (bytes(), option::of(moment())).prop_map(|(schedule, slot)| Scheduled { schedule, slot })
}

/// A task without anything left in a store. Mostly its id and its seq are its number.
pub(super) fn task() -> BoxedStrategy<TaskRecord> {
    let lane = (number(), bytes()).prop_map(|(number, member)| LaneName { number, member });
    let names = (number(), bytes(), option::of(lane), option::of(id()), option::of(number()));
    let from = (option::of(origin()), option::of(scheduled()), option::of(bytes()));
    let counts = (small(), small(), small(), small()).prop_map(|it| {
        let (timeouts, releases, buries, kicks) = it;
        Counts { timeouts, releases, buries, kicks }
    });
    let trace = (span(), counts).prop_map(|(delay, counts)| Trace::of(delay, counts));
    let failed = (small(), option::of(bytes()), from, trace);
    let rest = (priority(), option::of(bytes()), bytes(), small(), state(), failed);
    let times = (moment(), option::of(moment()), option::of(span()));
    (names, rest, times)
        .prop_map(|(names, rest, times)| {
            let (number, queue, lane, id, seq) = names;
            let (priority, key, payload, attempts, state, failed) = rest;
            let (failures, reason, (origin, scheduled, unique), trace) = failed;
            let (put_at, expires_at, ttr) = times;
            TaskRecord {
                number,
                queue,
                lane,
                id: id.unwrap_or(TaskId::Number(number)),
                put_at,
                terms: Terms::of(key, ttr),
                progress: Progress {
                    priority,
                    seq: seq.unwrap_or(number),
                    expires_at,
                    attempts,
                    failures,
                    reason,
                    trace,
                    state,
                },
                past: Past::of(origin, scheduled, unique),
                payload,
                away: None,
                shared: false,
            }
        })
        .boxed()
}
