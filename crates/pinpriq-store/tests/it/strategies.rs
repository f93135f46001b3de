//! Any change there can be, for property tests.

use pinpriq_engine::change::{
    Change, Copied, Granted, LaneRecord, LaneTask, MemberRecord, Moved, OwnContent, Publication,
    QueueRecord,
};
use pinpriq_engine::settings::{AfterAck, Ids, Paused, Settings};
use pinpriq_engine::task::{Bytes, Grant, Lease, State, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

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
        moment().prop_map(|ready_at| State::Waiting { ready_at }),
        bytes().prop_map(|reason| State::Buried { reason }),
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

fn task() -> impl Strategy<Value = Change> {
    let names = (any::<u64>(), bytes(), id(), any::<u64>(), option::of(any::<i64>()));
    let rest = (option::of(bytes()), bytes(), moment(), option::of(moment()), option::of(span()));
    (names, rest, any::<u32>(), state()).prop_map(|(names, rest, attempts, state)| {
        let (number, queue, id, seq, priority) = names;
        let (key, payload, put_at, expires_at, ttr) = rest;
        Change::Task(Box::new(TaskRecord {
            number,
            queue,
            lane: None,
            id,
            seq,
            priority,
            key,
            payload,
            away: None,
            put_at,
            expires_at,
            ttr,
            attempts,
            state,
        }))
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let ids =
        prop_oneof![Just(Ids::Sequence), Just(Ids::Time64), Just(Ids::Uuid), Just(Ids::Given)];
    let after_ack = prop_oneof![
        Just(AfterAck::Delete),
        Just(AfterAck::Keep),
        span().prop_map(AfterAck::Zombie)
    ];
    (ids, option::of(span()), option::of(span()), after_ack, option::of(any::<u64>())).prop_map(
        |(ids, ttl, ttr, after_ack, capacity)| Settings { ids, ttl, ttr, after_ack, capacity },
    )
}

fn queue() -> impl Strategy<Value = Change> {
    (bytes(), any::<[bool; 3]>(), settings()).prop_map(
        |(name, [created, input, output], settings)| {
            let paused = Paused { input, output };
            Change::Queue(Box::new(QueueRecord { name, created, settings, paused }))
        },
    )
}

fn lane() -> impl Strategy<Value = Change> {
    (any::<[u64; 2]>(), bytes(), any::<[bool; 2]>(), settings()).prop_map(
        |([number, member], topic, [input, output], settings)| {
            let paused = Paused { input, output };
            Change::Lane(Box::new(LaneRecord { number, topic, member, settings, paused }))
        },
    )
}

fn member() -> impl Strategy<Value = Change> {
    (any::<u64>(), bytes(), span(), any::<bool>()).prop_map(|(incarnation, name, lease, ended)| {
        Change::Member(Box::new(MemberRecord { incarnation, name, lease, ended }))
    })
}

fn lane_task() -> impl Strategy<Value = Change> {
    let own = option::of((option::of(bytes()), bytes()))
        .prop_map(|own| own.map(|(key, payload)| OwnContent { key, payload }));
    let times = (moment(), option::of(moment()));
    let rest = (option::of(any::<i64>()), times, any::<u32>(), state(), own);
    (any::<[u64; 3]>(), id(), rest).prop_map(|([number, lane, seq], id, rest)| {
        let (priority, (put_at, expires_at), attempts, state, own) = rest;
        Change::LaneTask(Box::new(LaneTask {
            number,
            lane,
            id,
            seq,
            priority,
            put_at,
            expires_at,
            attempts,
            state,
            own,
        }))
    })
}

/// How much a number exceeds the one before it: mostly little, now and then very much.
fn rise() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 1_u64..300, 1 => Just(1_u64 << 50)]
}

fn publication() -> impl Strategy<Value = Change> {
    let rises = vec((rise(), rise()), 0..40);
    let content = (option::of(any::<i64>()), option::of(bytes()), bytes());
    (any::<u32>(), rises, any::<u32>(), content, moment(), option::of(moment())).prop_map(
        |(first, rises, beyond, (priority, key, payload), put_at, expires_at)| {
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
            Change::Published(Box::new(Publication {
                first,
                last,
                priority,
                key,
                payload,
                put_at,
                expires_at,
                copies,
            }))
        },
    )
}

/// Any change, also one that no engine would report.
pub(crate) fn change() -> impl Strategy<Value = Change> {
    let moved =
        (any::<[u64; 2]>(), option::of(any::<i64>()), option::of(moment()), any::<u32>(), state());
    let granted = (any::<[u64; 3]>(), option::of(moment()), option::of(span()), any::<u32>());
    prop_oneof![
        4 => task(),
        1 => queue(),
        4 => publication(),
        2 => lane_task(),
        1 => lane(),
        1 => member(),
        1 => any::<u64>().prop_map(Change::LaneGone),
        1 => any::<u64>().prop_map(Change::LaneEmptied),
        1 => any::<u64>().prop_map(Change::MemberGone),
        1 => any::<u64>().prop_map(Change::Gone),
        1 => bytes().prop_map(Change::QueueGone),
        1 => bytes().prop_map(Change::Emptied),
        1 => moved.prop_map(|([number, seq], priority, expires_at, attempts, state)| {
            Change::Moved(Box::new(Moved { number, seq, priority, expires_at, attempts, state }))
        }),
        1 => granted.prop_map(|([number, incarnation, serial], deadline, ttr, attempts)| {
            Change::Granted(Granted { number, incarnation, serial, deadline, ttr, attempts })
        }),
    ]
}
