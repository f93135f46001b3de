//! Strategies for any possible change, for property tests.

use pinpriq_proto::batches::{After, BatchRecord, BatchState, Cancelling, OnlyIf};
use pinpriq_proto::change::{
    Change, Copied, Granted, LaneRecord, MemberRecord, Moved, Publication, QueueRecord,
    ScheduleMoved, ScheduleRecord,
};
use pinpriq_proto::command::Assign;
use pinpriq_proto::details::DetailKind;
use pinpriq_proto::limits::ATTEMPTS_MAX;
use pinpriq_proto::named_limits::{LimitRecord, LimitRules};
use pinpriq_proto::schedule::{Course, OnMissed, Overlap, Plan, Recurrence, Scheduled};
use pinpriq_proto::settings::{Assignment, Paused, Rate, SETTINGS, Settings, Value};
use pinpriq_proto::shares::{Own, ShareRecord, ShareRules, WEIGHT_MAX};
use pinpriq_proto::task::history::{Attempt, Contact, End, How};
use pinpriq_proto::task::{
    Aged, Burial, Bytes, Cancelled, ClientId, Counts, Grant, LaneName, Lease, Origin, Past,
    Progress, Retries, State, TaskId, TaskRecord, Terms, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::unique::WindowRecord;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..300).prop_map(Bytes::from)
}

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::ZERO),
        Just(Timestamp::MAX),
        any::<u64>().prop_map(Timestamp::from_ms)
    ]
}

fn span() -> impl Strategy<Value = Span> {
    any::<u64>().prop_map(Span::from_ms)
}

fn state() -> impl Strategy<Value = State> {
    let lease = (any::<u64>(), any::<u64>(), option::of(moment()), option::of(span()));
    prop_oneof![
        Just(State::Ready),
        Just(State::Done),
        option::of(moment()).prop_map(|ready_at| State::Waiting { ready_at }),
        any::<u64>().prop_map(|number| State::Buried(Burial::of_number(number))),
        moment().prop_map(|purge_at| State::Zombie { purge_at }),
        lease.prop_map(|(incarnation, serial, deadline, ttr)| State::Taken(Lease {
            grant: Grant { incarnation, serial },
            holder: None,
            deadline,
            ttr,
        })),
    ]
}

fn id() -> impl Strategy<Value = TaskId> {
    prop_oneof![
        any::<u64>().prop_map(TaskId::Number),
        any::<[u8; 16]>().prop_map(TaskId::Uuid),
        bytes().prop_map(TaskId::Given),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let all =
        (option::of(bytes()), option::of(span()), option::of(bytes()), 1..u32::MAX, retries());
    all.prop_map(|(key, ttr, share, cost, retries)| {
        Terms::of(key, ttr).with(share, cost).with_retries(retries)
    })
}

fn retries() -> impl Strategy<Value = Retries> {
    let span = || (1..u32::MAX).prop_map(|ms| Span::from_ms(ms.into()));
    let all = (option::of(option::of(1..=ATTEMPTS_MAX)), option::of(option::of(span())));
    (all, option::of(span())).prop_map(|((attempts, backoff), backoff_max)| Retries {
        attempts: attempts.map_or(Assign::Keep, Assign::To),
        backoff: backoff.map_or(Assign::Keep, Assign::To),
        backoff_max,
    })
}

/// Attempts, of which only the last may be under way.
fn history() -> impl Strategy<Value = Vec<Attempt>> {
    let how = (0..How::ALL.len()).prop_map(|place| How::ALL[place]);
    let end = (moment(), how, option::of(bytes()));
    let end = end.prop_map(|(at, how, reason)| End { at, how, reason });
    let attempt = (option::of(any::<u64>().prop_map(ClientId)), bytes(), bytes(), moment(), end);
    let attempt = attempt.prop_map(|(client, name, address, taken_at, end)| Attempt {
        client,
        contact: Contact { name, address },
        taken_at,
        end: Some(end),
    });
    (vec(attempt, 0..5), any::<bool>()).prop_map(|(mut attempts, is_open)| {
        if let Some(last) = attempts.last_mut().filter(|_| is_open) {
            last.end = None;
        }
        attempts
    })
}

/// Batches that a task waits for.
fn after() -> impl Strategy<Value = After> {
    let only_if = (0..OnlyIf::ALL.len()).prop_map(|place| OnlyIf::ALL[place]);
    (vec(bytes(), 1..4), only_if, any::<bool>()).prop_map(|(names, only_if, any_failed)| After {
        names,
        only_if,
        any_failed,
    })
}

fn progress() -> impl Strategy<Value = Progress> {
    let counts = (any::<u32>(), any::<u32>());
    let events = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    let aged = (option::of(moment()), option::of(span()));
    let trace = option::of((span(), events, any::<bool>(), aged)).prop_map(|trace| {
        let (delay, (timeouts, releases, buries, kicks), is_held, (start, ageing)) = trace?;
        let counts = Counts { timeouts, releases, buries, kicks };
        Some(Trace { delay, counts, is_held, aged: Aged { start, ageing }, ..Trace::NONE })
    });
    let cancelled = option::of((bytes(), option::of(moment())));
    let checkpoint = option::of(bytes().prop_filter("it says something", |it| !it.is_empty()));
    let on_its_way = (cancelled, checkpoint, option::of(bytes()), history(), option::of(after()));
    let rest = (counts, option::of(bytes()), trace, on_its_way, state());
    (option::of(any::<i64>()), any::<u64>(), option::of(moment()), rest).prop_map(
        |(priority, seq, expires_at, ((attempts, failures), reason, trace, on_its_way, state))| {
            let (cancelled, checkpoint, result, mut noted, after) = on_its_way;
            let after = after.filter(|_| state == State::HELD);
            noted.retain(|it| it.end.is_some() || matches!(state, State::Taken(_)));
            let history = (!noted.is_empty()).then(|| noted.into());
            let result = result.filter(|_| state.kind().is_finished());
            let cancelled = cancelled.filter(|_| matches!(state, State::Taken(_)));
            let cancelled = cancelled.map(|(reason, deadline)| Cancelled { reason, deadline });
            let trace = trace.unwrap_or(Trace::NONE);
            let trace = Trace { cancelled, checkpoint, result, history, after, ..trace }.kept();
            Progress { priority, seq, expires_at, attempts, failures, reason, trace, state }
        },
    )
}

fn origin() -> impl Strategy<Value = Origin> {
    (bytes(), id(), moment(), any::<u32>(), any::<u32>(), moment()).prop_map(
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

fn scheduled() -> impl Strategy<Value = Scheduled> {
    (bytes(), option::of(moment())).prop_map(|(schedule, slot)| Scheduled { schedule, slot })
}

fn plan() -> impl Strategy<Value = Plan> {
    let form = prop_oneof![
        (span(), moment()).prop_map(|(every, anchor)| Recurrence::Every { every, anchor }),
        (bytes(), option::of(bytes()))
            .prop_map(|(expression, zone)| Recurrence::Cron { expression, zone }),
    ];
    let words = (select(&OnMissed::ALL[..]), select(&Overlap::ALL[..]));
    let rest = (option::of(any::<i64>()), option::of(span()), form, words);
    (bytes(), bytes(), terms(), rest).prop_map(|(queue, payload, terms, rest)| {
        let (priority, ttl, form, (on_missed, overlap)) = rest;
        Plan { queue, payload, terms, priority, ttl, form, on_missed, overlap }
    })
}

fn course() -> impl Strategy<Value = Course> {
    let last = (option::of(id()), option::of(moment()));
    (moment(), any::<bool>(), any::<[u64; 3]>(), last).prop_map(
        |(done_until, paused, [fired, missed, last_number], (last_id, last_slot))| Course {
            done_until,
            paused,
            fired,
            missed,
            last_id,
            last_slot,
            last_number,
        },
    )
}

fn schedule() -> impl Strategy<Value = Change> {
    let moved = (any::<u64>(), course()).prop_map(|(number, course)| {
        Change::ScheduleMoved(Box::new(ScheduleMoved { number, course }))
    });
    let whole =
        (any::<u64>(), bytes(), plan(), course()).prop_map(|(number, name, plan, course)| {
            Change::Schedule(Box::new(ScheduleRecord { number, name, plan, course }))
        });
    prop_oneof![moved, whole, any::<u64>().prop_map(Change::ScheduleGone)]
}

fn detail() -> impl Strategy<Value = Change> {
    let whole = (any::<u64>(), bytes(), bytes(), id(), moment());
    let whole = whole.prop_map(|(number, queue, key, id, until)| {
        Change::detail(WindowRecord { number, queue, key, id, until })
    });
    let whole = prop_oneof![whole, share(), limit(), batch()];
    let gone = (select(&DetailKind::ALL[..]), any::<u64>());
    prop_oneof![whole, gone.prop_map(|(kind, number)| Change::DetailGone(kind, number))]
}

fn batch() -> impl Strategy<Value = Change> {
    let cancelling = option::of((option::of(bytes()), option::of(span())));
    let moments = (moment(), moment(), option::of(moment()));
    let counts = (any::<u32>(), any::<u32>(), any::<u32>());
    let whole = (any::<u64>(), bytes(), 0..BatchState::ALL.len(), any::<bool>(), moments);
    (whole, counts, cancelling).prop_map(|(whole, (pending, acked, failed), cancelling)| {
        let (number, name, state, given_up, (opened_at, changed_at, expires_at)) = whole;
        let state = BatchState::ALL[state];
        let (acked, failed) = (u64::from(acked), u64::from(failed));
        Change::detail(BatchRecord {
            state,
            given_up,
            changed_at,
            done_at: (state == BatchState::Done).then_some(changed_at),
            total: u64::from(pending) + acked + failed,
            acked,
            failed,
            cancelling: cancelling.map(|(reason, grace)| Cancelling { reason, grace }),
            ..BatchRecord::new(number, &name, opened_at, expires_at)
        })
    })
}

fn limit() -> impl Strategy<Value = Change> {
    let rate = (any::<u32>(), span()).prop_map(|(count, per)| Rate { count, per });
    let rules = (option::of(any::<u64>()), option::of(rate));
    let rules = rules.prop_map(|(max, rate)| LimitRules { max, rate });
    let whole = (any::<u64>(), bytes(), rules);
    whole.prop_map(|(number, name, rules)| Change::detail(LimitRecord { number, name, rules }))
}

fn share() -> impl Strategy<Value = Change> {
    let rate = (any::<u32>(), span()).prop_map(|(count, per)| Rate { count, per });
    let rules = (1..=WEIGHT_MAX, own(any::<u64>()), own(rate));
    let rules = rules.prop_map(|(weight, limit, rate)| ShareRules { weight, limit, rate });
    let whole = (any::<u64>(), bytes(), bytes(), rules);
    whole.prop_map(|(number, queue, share, rules)| {
        Change::detail(ShareRecord { number, queue, share, rules })
    })
}

fn own<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Own<T>> {
    prop_oneof![Just(Own::Default), option::of(of).prop_map(Own::Is)]
}

/// A task of a queue, or one of a lane that may share its publication.
fn task() -> impl Strategy<Value = Change> {
    let home = prop_oneof![
        bytes().prop_map(|queue| (queue, None)),
        any::<u64>().prop_map(|lane| (Bytes::default(), Some(LaneName::numbered(lane)))),
    ];
    let named = (option::of(bytes()), option::of(bytes()));
    let from = (option::of(origin()), option::of(scheduled()), named);
    let content = (terms(), bytes(), any::<bool>(), from);
    (any::<u64>(), home, id(), moment(), progress(), content).prop_map(
        |(number, (queue, lane), id, put_at, progress, (terms, payload, shared, from))| {
            let shared = shared && lane.is_some();
            let (origin, scheduled, (unique, batch)) = from;
            Change::Task(Box::new(TaskRecord {
                number,
                queue,
                lane,
                id,
                put_at,
                terms: if shared { Terms::NONE } else { terms },
                progress,
                past: Past { origin, scheduled, unique, batch }.kept(),
                payload: if shared { Bytes::default() } else { payload },
                away: None,
                shared,
            }))
        },
    )
}

/// Settings with any of their values.
fn settings() -> impl Strategy<Value = Settings> {
    let value = prop_oneof![
        any::<u64>().prop_map(|number| vec![Value::Number(number)]),
        span().prop_map(|span| vec![Value::Span(span)]),
        (0_u8..4).prop_map(|place| vec![Value::Word(place)]),
        Just(vec![Value::Bytes(b"dead")]),
        (any::<u32>(), span()).prop_map(|(count, per)| vec![Value::Rate(Rate { count, per })]),
        Just(Vec::new()),
    ];
    vec(value, SETTINGS.len()).prop_map(|values| {
        let changes = SETTINGS.into_iter().zip(values);
        let changes = changes.flat_map(|(it, values)| values.into_iter().map(move |v| (it, v)));
        let fits =
            |(it, value): &Assignment<'_>| (it.write)(&mut Settings::default(), *value).is_ok();
        let changes: Vec<Assignment<'_>> = changes.filter(fits).collect();
        Settings::default().with(&changes).unwrap()
    })
}

fn queue() -> impl Strategy<Value = Change> {
    (bytes(), any::<[bool; 3]>(), settings()).prop_map(
        |(name, [created, input, output], settings)| {
            let paused = Paused::endlessly(input, output);
            Change::Queue(Box::new(QueueRecord { name, created, settings, paused }))
        },
    )
}

fn lane() -> impl Strategy<Value = Change> {
    (any::<[u64; 2]>(), bytes(), any::<[bool; 2]>(), settings()).prop_map(
        |([number, member], topic, [input, output], settings)| {
            let paused = Paused::endlessly(input, output);
            Change::Lane(Box::new(LaneRecord { number, topic, member, settings, paused }))
        },
    )
}

fn member() -> impl Strategy<Value = Change> {
    (any::<u64>(), bytes(), span(), any::<bool>()).prop_map(|(incarnation, name, lease, ended)| {
        Change::Member(Box::new(MemberRecord { incarnation, name, lease, ended }))
    })
}

/// The difference between a number and the one before it: usually small, sometimes very large.
fn rise() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 1_u64..300, 1 => Just(1_u64 << 50)]
}

fn publication() -> impl Strategy<Value = Change> {
    let rises = vec((rise(), rise()), 0..40);
    let content = (option::of(any::<i64>()), terms(), bytes());
    (any::<u32>(), rises, any::<u32>(), content, moment(), option::of(moment())).prop_map(
        |(first, rises, beyond, (priority, terms, payload), put_at, expires_at)| {
            let first = u64::from(first);
            let mut next = Copied { number: first, lane: 0 };
            let copies: Vec<Copied> = rises
                .into_iter()
                .map(|(by, lane)| {
                    let copied = Copied { number: next.number, lane: next.lane + lane };
                    next = Copied { number: copied.number + by, lane: copied.lane };
                    copied
                })
                .collect();
            let last = copies.last().map_or(first, |copied| copied.number) + u64::from(beyond);
            let publication =
                Publication { first, last, put_at, terms, priority, expires_at, payload };
            Change::Published(Box::new(publication), copies)
        },
    )
}

/// Any change, including ones that no engine would report.
pub(crate) fn change() -> impl Strategy<Value = Change> {
    let moved = (any::<u64>(), progress());
    let granted = (any::<[u64; 3]>(), option::of(moment()), option::of(span()), any::<u32>());
    prop_oneof![
        6 => task(),
        1 => queue(),
        4 => publication(),
        1 => lane(),
        1 => member(),
        2 => schedule(),
        2 => detail(),
        1 => any::<u64>().prop_map(Change::LaneGone),
        1 => any::<u64>().prop_map(Change::LaneEmptied),
        1 => any::<u64>().prop_map(Change::MemberGone),
        1 => any::<u64>().prop_map(Change::Gone),
        1 => bytes().prop_map(Change::QueueGone),
        1 => bytes().prop_map(Change::Emptied),
        1 => moved.prop_map(|(number, progress)| {
            Change::Moved(Box::new(Moved { number, progress }))
        }),
        1 => granted.prop_map(|([number, incarnation, serial], deadline, ttr, attempts)| {
            Change::Granted(Granted { number, incarnation, serial, deadline, ttr, attempts })
        }),
    ]
}
