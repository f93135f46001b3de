//! Outputs of every kind.

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::histogram::TimeHistogram;
use pinpriq_proto::looking::{Explanation, LeasePlace, LeaseShown, Reason};
use pinpriq_proto::reply::{Output, Refusal, Reply, TubeShown, TubesShown};
use pinpriq_proto::schedule::{Course, Form, Plan, ShownSchedule};
use pinpriq_proto::settings::{SETTINGS, Settings};
use pinpriq_proto::stats::{Counters, Figures, Move, Times};
use pinpriq_proto::task::{ClientId, RequestId, Terms};
use pinpriq_proto::unique::{Awaited, PutUnique};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::carrying::exported;
use super::parts::{
    bytes, fitting, id, kind, moment, number, on_missed, outcome, overlap, paused, priority,
    refusal_kind, span, task,
};

/// Any output.
pub(crate) fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        9 => (number(), number(), reply()).prop_map(|(client, request, reply)| Output::Reply {
            client: ClientId(client),
            request: RequestId(request),
            reply,
        }),
        1 => (number(), vec(task(), 0..12), any::<bool>()).prop_map(|(client, tasks, popped)| {
            Output::Delivery { client: ClientId(client), tasks, popped }
        }),
    ]
}

/// Any reply.
pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        10 => plain_reply(),
        1 => vec(plain_reply().prop_filter("a step", is_of_step), 0..6)
            .prop_map(Reply::Transaction),
    ]
}

fn plain_reply() -> BoxedStrategy<Reply> {
    prop_oneof![about_a_task(), about_several(), about_a_queue()].boxed()
}

fn is_of_step(reply: &Reply) -> bool {
    !matches!(reply, Reply::Refused(_))
}

fn awaited() -> impl Strategy<Value = Awaited> {
    prop_oneof![Just(Awaited::No), Just(Awaited::Unknown), outcome().prop_map(Awaited::Known),]
}

fn about_a_task() -> BoxedStrategy<Reply> {
    prop_oneof![
        Just(Reply::Done),
        id().prop_map(Reply::Put),
        (id(), outcome()).prop_map(|(id, outcome)| Reply::PutOutcome(id, outcome)),
        (id(), any::<bool>(), awaited())
            .prop_map(|(id, new, awaited)| Reply::PutUnique(PutUnique { id, new, awaited })),
        option::of(task().prop_map(Box::new)).prop_map(Reply::Task),
        option::of(kind()).prop_map(Reply::State),
        option::of(moment()).prop_map(Reply::Deadline),
        (outcome(), option::of(kind())).prop_map(|(how, state)| Reply::Outcome(how, state)),
        refusal().prop_map(Reply::Refused),
    ]
    .boxed()
}

fn about_several() -> BoxedStrategy<Reply> {
    let ack = prop_oneof![Just(Ok(())), refusal().prop_map(Err)];
    prop_oneof![
        vec(task(), 0..12).prop_map(Reply::Shown),
        (vec(task(), 0..12), any::<bool>())
            .prop_map(|(tasks, popped)| Reply::Tasks { tasks, popped }),
        number().prop_map(Reply::Count),
        Just(Reply::DeadlineSoon),
        (vec(tube(), 0..5), number(), number(), number()).prop_map(
            |(tubes, put, timeouts, reserves)| {
                Reply::Tubes(Box::new(TubesShown { tubes, put, timeouts, reserves }))
            }
        ),
        vec(ack, 0..12).prop_map(Reply::Acks),
        explanation().prop_map(|explanation| Reply::Explained(Box::new(explanation))),
        (vec(task(), 0..12), number()).prop_map(|(tasks, next)| Reply::Scanned {
            tasks,
            next: std::num::NonZeroU64::new(next),
        }),
        (vec(lease_shown(), 0..12), option::of(lease_place()))
            .prop_map(|(leases, next)| Reply::Leases { leases, next: next.map(Box::new) }),
    ]
    .boxed()
}

fn lease_place() -> impl Strategy<Value = LeasePlace> {
    (option::of(number()), bytes(), number()).prop_map(|(lane, queue, seq)| LeasePlace {
        lane,
        queue,
        seq,
    })
}

fn lease_shown() -> BoxedStrategy<LeaseShown> {
    let moments = (option::of(moment()), option::of(moment()));
    let holder = option::of(number().prop_map(ClientId));
    (lease_place(), option::of(bytes()), id(), holder, moments)
        .prop_map(|(place, member, id, holder, (since, until))| LeaseShown {
            place,
            member,
            id,
            holder,
            since,
            until,
        })
        .boxed()
}

fn explanation() -> BoxedStrategy<Explanation> {
    (option::of(id()), option::of(kind()), option::of(moment()), vec(reason(), 0..5))
        .prop_map(|(id, state, since, reasons)| Explanation { id, state, since, reasons })
        .boxed()
}

/// Any reason of an explanation.
pub(crate) fn reason() -> BoxedStrategy<Reason> {
    let client = option::of(number().prop_map(ClientId));
    prop_oneof![
        moment().prop_map(|until| Reason::Delayed { until }),
        (client, option::of(moment()), option::of(moment()))
            .prop_map(|(client, since, until)| Reason::Taken { client, since, until }),
        option::of(bytes()).prop_map(|reason| Reason::Buried { reason }),
        (number(), number()).prop_map(|(taken, most)| Reason::Limit { taken, most }),
        moment().prop_map(|next_at| Reason::Rate { next_at }),
        number().prop_map(|at_least| Reason::Behind { at_least }),
        Just(Reason::Expired),
        Just(Reason::Paused),
        Just(Reason::NoPriority),
        Just(Reason::NoConsumer),
        Just(Reason::Next),
    ]
    .boxed()
}

/// Any settings of a queue.
pub(super) fn any_settings() -> BoxedStrategy<Settings> {
    let settings = SETTINGS.map(|setting| fitting(setting).prop_map(move |value| (setting, value)));
    settings.prop_map(|all| Settings::default().with(&all).unwrap()).boxed()
}

fn about_a_queue() -> BoxedStrategy<Reply> {
    prop_oneof![
        exported().prop_map(|page| Reply::Exported(Box::new(page))),
        (any_settings(), paused(), any::<bool>()).prop_map(|(settings, paused, created)| {
            Reply::Settings { settings: Box::new(settings), paused, created }
        }),
        (vec(bytes(), 0..20), any::<bool>()).prop_map(|(names, more)| Reply::Names { names, more }),
        figures().prop_map(|figures| Reply::Figures(Box::new(figures))),
        number().prop_map(Reply::Joined),
        vec(member(), 0..5).prop_map(Reply::Members),
        schedule().prop_map(|shown| Reply::Schedule(Box::new(shown))),
    ]
    .boxed()
}

fn course() -> BoxedStrategy<Course> {
    let numbers = [number(), number(), number()];
    (moment(), any::<bool>(), numbers, option::of(id()), option::of(moment()))
        .prop_map(|(done_until, paused, [fired, missed, last_number], last_id, last_slot)| Course {
            done_until,
            paused,
            fired,
            missed,
            last_id,
            last_slot,
            last_number,
        })
        .boxed()
}

pub(super) fn schedule() -> BoxedStrategy<ShownSchedule> {
    let form = prop_oneof![
        (span(), moment()).prop_map(|(every, anchor)| Form::Every { every, anchor }),
        (bytes(), option::of(bytes()))
            .prop_map(|(expression, zone)| Form::Cron { expression, zone }),
    ];
    let terms = (option::of(bytes()), option::of(span()));
    let rest = (priority(), option::of(span()), form, on_missed(), overlap());
    let plan = (bytes(), bytes(), terms, rest).prop_map(|(queue, payload, (key, ttr), rest)| {
        let (priority, ttl, form, on_missed, overlap) = rest;
        let terms = Terms::of(key, ttr);
        Plan { queue, payload, terms, priority, ttl, form, on_missed, overlap }
    });
    (bytes(), plan, course(), option::of(moment()))
        .prop_map(|(name, plan, course, next_at)| ShownSchedule { name, plan, course, next_at })
        .boxed()
}

fn refusal() -> BoxedStrategy<Refusal> {
    (refusal_kind(), ".{0,20}").prop_map(|(kind, sentence)| Refusal { kind, sentence }).boxed()
}

fn member() -> BoxedStrategy<MemberFigures> {
    (bytes(), number(), moment(), number(), number())
        .prop_map(|(member, incarnation, lease_until, ready, taken)| MemberFigures {
            member,
            incarnation,
            lease_until,
            ready,
            taken,
        })
        .boxed()
}

fn counters() -> impl Strategy<Value = Counters> {
    let step = (option::of(kind()), option::of(kind())).prop_map(|(from, to)| Move::new(from, to));
    let six = || [number(), number(), number(), number(), number(), number()];
    (six(), vec((step, number()), 0..12), six(), six()).prop_map(
        |(counts, moves, [put, acked, expired, killed, bytes, duplicates], others)| Counters {
            counts,
            moves,
            put,
            acked,
            expired,
            killed,
            dead: others[0],
            evicted: others[1],
            moved: others[2],
            purged: others[4],
            revived: others[5],
            failures: others[3],
            duplicates,
            bytes,
            times: None,
        },
    )
}

fn histogram() -> impl Strategy<Value = TimeHistogram> {
    (number(), vec(number(), 11))
        .prop_map(|(sum_ms, counts)| TimeHistogram { sum_ms, counts: counts.try_into().unwrap() })
}

fn times() -> impl Strategy<Value = Times> {
    (histogram(), histogram(), number()).prop_map(|(waited, held, limited_ms)| Times {
        waited,
        held,
        limited_ms,
    })
}

fn figures() -> BoxedStrategy<Figures> {
    let four = [number(), number(), number(), number()];
    let extra = (option::of(times()), vec((any::<i64>(), number()), 0..4));
    let own = (option::of(number()), any::<bool>());
    (counters(), extra, option::of(span()), four, paused(), own)
        .prop_map(|(mut counters, (times, priorities), oldest_ready, four, paused, own)| {
            let (missed, holds_dead_letters) = own;
            counters.times = times.map(Box::new);
            let [takers, subscribers, paused_queues, queues] = four;
            Figures {
                counters,
                oldest_ready,
                priorities,
                takers,
                subscribers,
                paused,
                paused_queues,
                queues,
                missed,
                holds_dead_letters,
            }
        })
        .boxed()
}

fn tube() -> BoxedStrategy<TubeShown> {
    let counts = (number(), number(), number(), number(), number(), number());
    let numbers = (number(), number(), number(), number(), number());
    (bytes(), any::<bool>(), moment(), counts, numbers, paused(), span())
        .prop_map(|(name, exists, came_at, counts, numbers, paused, paused_for)| {
            let (came_after, urgent, put, deletes, reserves) = numbers;
            let counts = counts.into();
            TubeShown {
                name,
                exists,
                came_at,
                came_after,
                counts,
                urgent,
                put,
                deletes,
                reserves,
                paused,
                paused_for,
            }
        })
        .boxed()
}
