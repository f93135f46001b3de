//! Commands of every kind.

use pinpriq_proto::command::{
    Ack, Command, Deed, Done, Fail, Peek, Put, QueueCommand, Release, Reserve, Share, Step, Take,
    Transfer, Update,
};
use pinpriq_proto::fanout::{MemberCommand, Publish};
use pinpriq_proto::looking::{LeasePlace, Leases, Scan};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::schedule::{NewSchedule, ScheduleCommand};
use pinpriq_proto::settings::{Assignment, SETTINGS};
use pinpriq_proto::task::Terms;
use pinpriq_proto::unique::{OnDuplicate, Unique};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::carrying::carrying;
use super::parts::{
    amendment, borrowed, deadline, delay, held, kind, list, mode, number, on_missed, overlap,
    priority, queue, receipt, selection, sides, small, span, task, time_to_live, value, wait, when,
};

/// Any command.
pub(crate) fn command() -> impl Strategy<Value = Command<'static>> {
    prop_oneof![
        4 => put_or_take(),
        4 => about_a_held_task(),
        6 => about_a_task(),
        6 => about_several(),
        5 => about_tubes(),
        5 => queue_command().prop_map(Command::Queue),
        4 => fan_out(),
        3 => schedule().prop_map(Command::Schedule),
        3 => carrying(),
        1 => list(step()).prop_map(Command::Transaction),
        2 => within(),
    ]
}

/// A command that keeps within names.
fn within() -> impl Strategy<Value = Command<'static>> {
    let name = (borrowed(), any::<bool>());
    let name = name.prop_map(|(bytes, is_prefix)| NamePattern { bytes, is_prefix });
    let command = prop_oneof![
        schedule().prop_map(Command::Schedule),
        queue_command().prop_map(Command::Queue),
        about_a_held_task(),
        about_tubes(),
        about_a_task(),
        fan_out(),
    ];
    (list(name), command).prop_map(|(names, command)| {
        let command = match command {
            Command::Leases(leases) => Command::Leases(Leases { queue: None, ..leases }),
            command if command.can_be_within() => command,
            _ => Command::Queue(QueueCommand::Stats(None)),
        };
        Command::Within { names, command: Box::leak(Box::new(command)) }
    })
}

/// Any step of a transaction.
pub(crate) fn step() -> impl Strategy<Value = Step<'static>> {
    let command = prop_oneof![
        put_or_take(),
        about_a_held_task(),
        about_tubes(),
        about_a_task(),
        about_several(),
        fan_out(),
    ];
    prop_oneof![
        8 => command.prop_map(as_step),
        1 => Just(Step::Nothing),
        1 => select(&["", "no", "\u{e4}"][..]).prop_map(Step::Bad),
    ]
}

/// The command as a step, without what a step cannot have.
fn as_step(command: Command<'static>) -> Step<'static> {
    match command {
        Command::Put(put) => Step::Command(Command::Put(Put { wait: None, ..put })),
        command if command.is_step() => Step::Command(command),
        _ => Step::Nothing,
    }
}

fn unique() -> impl Strategy<Value = Unique<'static>> {
    let on_duplicate = select(&OnDuplicate::ALL[..]);
    (borrowed(), option::of(span()), on_duplicate)
        .prop_map(|(key, window, (on_duplicate, _))| Unique { key, window, on_duplicate })
}

fn put_or_take() -> BoxedStrategy<Command<'static>> {
    let content = (borrowed(), borrowed(), option::of(borrowed()), option::of(borrowed()));
    let times = (delay(), time_to_live(), option::of(span()), option::of(wait()));
    let put = (content, times, priority(), option::of(unique()));
    let put = put.prop_map(|(content, times, priority, unique)| {
        let (queue, payload, key, id) = content;
        let (delay, ttl, ttr, wait) = times;
        Put { queue, payload, delay, ttl, id, wait, priority, terms: Terms::of(key, ttr), unique }
    });
    let put = put.boxed();
    let count = prop_oneof![Just(1), small()];
    let take = (list(borrowed()), option::of(borrowed()), count, wait(), selection(), mode())
        .prop_map(|(queues, member, count, wait, selection, mode)| Take {
            queues,
            member,
            count,
            wait,
            selection,
            mode,
        })
        .boxed();
    let done = (borrowed(), receipt()).prop_map(|(queue, receipt)| Done { queue, receipt }).boxed();
    let look =
        (list(done.clone()), take.clone()).prop_map(|(done, take)| Share::Look { done, take });
    let wait_too =
        (take.clone(), any::<bool>()).prop_map(|(take, is_echo)| Share::Wait { take, is_echo });
    let permit =
        any::<(u32, bool)>().prop_map(|(deliveries, holds)| Share::Permit { deliveries, holds });
    let held = list(receipt()).prop_map(Share::Pop);
    let share = prop_oneof![look, wait_too, held, permit, Just(Share::Next)];
    let share = share.prop_map(Command::Share);
    let take_done =
        (list(done), take.clone()).prop_map(|(done, take)| Command::TakeDone { done, take });
    let put_in_line =
        (put.clone(), span()).prop_map(|(put, room)| Command::PutInLine { put, room });
    let buried = (put.clone(), option::of(borrowed()))
        .prop_map(|(put, reason)| Command::PutBuried { put: Box::leak(Box::new(put)), reason });
    let numbered = put.clone().prop_map(|put| Command::PutNumbered(Box::leak(Box::new(put))));
    let put = put.prop_map(Command::Put);
    prop_oneof![put, put_in_line, buried, numbered, take.prop_map(Command::Take), take_done, share]
        .boxed()
}

fn about_tubes() -> BoxedStrategy<Command<'static>> {
    let number = || any::<u64>();
    prop_oneof![
        (list(borrowed()), wait(), any::<bool>()).prop_map(|(queues, wait, is_echo)| {
            Command::Reserve(Reserve { queues, wait, is_echo })
        }),
        list(borrowed()).prop_map(Command::Head),
        (number(), deed()).prop_map(|(number, deed)| Command::Numbered { number, deed }),
        (borrowed(), small()).prop_map(|(queue, count)| Command::Kick { queue, count }),
        (borrowed(), kind()).prop_map(|(queue, state)| Command::Foremost { queue, state }),
        option::of(borrowed()).prop_map(Command::Tubes),
        Just(Command::LetGo),
    ]
    .boxed()
}

fn deed() -> BoxedStrategy<Deed> {
    prop_oneof![
        Just(Deed::Read),
        Just(Deed::Take),
        Just(Deed::Delete),
        (any::<i64>(), span()).prop_map(|(priority, delay)| Deed::Release { priority, delay }),
        any::<i64>().prop_map(|priority| Deed::Bury { priority }),
        Just(Deed::Touch),
        Just(Deed::Kick),
    ]
    .boxed()
}

fn about_a_held_task() -> BoxedStrategy<Command<'static>> {
    prop_oneof![
        (held(), option::of(borrowed()), option::of(span()))
            .prop_map(|(held, payload, zombie)| Command::Ack(Ack { held, payload, zombie })),
        (held(), span(), amendment(), any::<bool>()).prop_map(|(held, delay, amendment, tail)| {
            Command::Release(Release { held, delay, amendment, tail })
        }),
        (held(), option::of(borrowed()), option::of(borrowed()))
            .prop_map(|(held, payload, reason)| Command::Bury { held, payload, reason }),
        (held(), option::of(borrowed()), option::of(borrowed()), option::of(span())).prop_map(
            |(held, payload, reason, delay)| {
                Command::Fail(Fail { held, reason, delay, payload })
            }
        ),
        (queue(), borrowed(), small(), kind()).prop_map(|(from, to, count, state)| Command::Move {
            from,
            to,
            count,
            state
        }),
        (queue(), small()).prop_map(|(queue, count)| Command::Redrive { queue, count }),
        (held(), option::of(span())).prop_map(|(held, by)| Command::Touch { held, by }),
    ]
    .boxed()
}

fn lease_place() -> impl Strategy<Value = LeasePlace<&'static [u8]>> {
    (option::of(number()), borrowed(), number()).prop_map(|(lane, queue, seq)| LeasePlace {
        lane,
        queue,
        seq,
    })
}

fn transfer() -> BoxedStrategy<Transfer<'static>> {
    (queue(), borrowed(), span(), amendment())
        .prop_map(|(queue, id, delay, amendment)| Transfer { queue, id, delay, amendment })
        .boxed()
}

fn about_a_task() -> BoxedStrategy<Command<'static>> {
    prop_oneof![
        (queue(), selection(), option::of(kind()), small()).prop_map(
            |(queue, selection, state, count)| {
                Command::Peek(Peek { queue, selection, state, count })
            }
        ),
        (queue(), borrowed()).prop_map(|(queue, id)| Command::Get { queue, id }),
        (queue(), option::of(borrowed())).prop_map(|(queue, id)| Command::Explain { queue, id }),
        (queue(), number(), small(), option::of(kind()), option::of(borrowed())).prop_map(
            |(queue, after, count, state, key)| {
                Command::Scan(Scan { queue, after, count, state, key })
            }
        ),
        (option::of(queue()), option::of(lease_place()), small())
            .prop_map(|(queue, after, count)| Command::Leases(Leases { queue, after, count })),
        transfer().prop_map(Command::Dig),
        (transfer(), kind()).prop_map(|(transfer, to)| Command::Switch { transfer, to }),
        transfer().prop_map(Command::Snatch),
        transfer().prop_map(Command::Restart),
        (queue(), borrowed(), amendment(), option::of(receipt())).prop_map(
            |(queue, id, amendment, receipt)| {
                Command::Update(Update { queue, id, amendment, receipt })
            }
        ),
        (queue(), borrowed(), wait())
            .prop_map(|(queue, id, wait)| { Command::Await { queue, id, wait } }),
    ]
    .boxed()
}

fn about_several() -> BoxedStrategy<Command<'static>> {
    prop_oneof![
        (queue(), list(receipt()))
            .prop_map(|(queue, receipts)| Command::AckAll { queue, receipts }),
        (queue(), option::of(number()), span(), option::of(span()))
            .prop_map(|(queue, count, delay, ttl)| Command::Plow { queue, count, delay, ttl }),
        (queue(), list(borrowed())).prop_map(|(queue, ids)| Command::Kill { queue, ids }),
        (list(borrowed()), option::of(borrowed()), selection(), mode()).prop_map(
            |(queues, member, selection, mode)| {
                Command::Subscribe { queues, member, selection, mode }
            }
        ),
        (list(borrowed()), option::of(borrowed()))
            .prop_map(|(queues, member)| Command::Unsubscribe { queues, member }),
        small().prop_map(Command::Credit),
        list(task()).prop_map(Command::PutBack),
        list(receipt()).prop_map(Command::GiveBack),
    ]
    .boxed()
}

pub(super) fn settings() -> BoxedStrategy<&'static [Assignment<'static>]> {
    list((select(&SETTINGS[..]), value()))
}

fn queue_command() -> BoxedStrategy<QueueCommand<'static>> {
    prop_oneof![
        (borrowed(), settings())
            .prop_map(|(queue, settings)| QueueCommand::Create { queue, settings }),
        (queue(), settings()).prop_map(|(queue, settings)| QueueCommand::Set { queue, settings }),
        queue().prop_map(QueueCommand::Show),
        (borrowed(), option::of(borrowed()), any::<usize>())
            .prop_map(|(prefix, after, count)| QueueCommand::List { prefix, after, count }),
        queue().prop_map(QueueCommand::Truncate),
        borrowed().prop_map(QueueCommand::Drop),
        (queue(), sides(), option::of(span()))
            .prop_map(|(queue, sides, length)| QueueCommand::Pause { queue, sides, length }),
        (borrowed(), option::of(span()), any::<bool>())
            .prop_map(|(queue, length, makes)| QueueCommand::Hold { queue, length, makes }),
        (queue(), sides()).prop_map(|(queue, sides)| QueueCommand::Resume { queue, sides }),
        option::of(queue()).prop_map(QueueCommand::Stats),
    ]
    .boxed()
}

fn schedule() -> BoxedStrategy<ScheduleCommand<'static>> {
    let names = (borrowed(), borrowed(), borrowed());
    let terms = (option::of(borrowed()), option::of(span()));
    let rest = (priority(), option::of(span()), when(), on_missed(), overlap());
    let set = (names, terms, rest).prop_map(|((name, queue, payload), (key, ttr), rest)| {
        let (priority, ttl, when, on_missed, overlap) = rest;
        let terms = Terms::of(key, ttr);
        ScheduleCommand::Set(NewSchedule {
            name,
            queue,
            payload,
            terms,
            priority,
            ttl,
            when,
            on_missed,
            overlap,
        })
    });
    prop_oneof![
        3 => set,
        1 => borrowed().prop_map(ScheduleCommand::Show),
        1 => (borrowed(), option::of(borrowed()), any::<usize>())
            .prop_map(|(prefix, after, count)| ScheduleCommand::List { prefix, after, count }),
        1 => borrowed().prop_map(ScheduleCommand::Pause),
        1 => borrowed().prop_map(ScheduleCommand::Resume),
        1 => borrowed().prop_map(ScheduleCommand::Drop),
        1 => borrowed().prop_map(ScheduleCommand::Fire),
    ]
    .boxed()
}

fn fan_out() -> BoxedStrategy<Command<'static>> {
    let lease = || option::of(span());
    let member =
        prop_oneof![
            (borrowed(), borrowed(), lease())
                .prop_map(|(topic, member, lease)| MemberCommand::Join { topic, member, lease }),
            (borrowed(), lease()).prop_map(|(member, lease)| MemberCommand::Beat { member, lease }),
            (borrowed(), borrowed())
                .prop_map(|(topic, member)| MemberCommand::LeaveTopic { topic, member }),
            borrowed().prop_map(MemberCommand::Leave),
            borrowed().prop_map(MemberCommand::List),
        ];
    let publish = (borrowed(), borrowed(), option::of(borrowed()), priority(), deadline())
        .prop_map(|(topic, payload, key, priority, deadline)| {
            Command::Publish(Publish {
                topic,
                payload,
                deadline,
                priority,
                terms: Terms { key, ..Terms::NONE },
            })
        });
    prop_oneof![4 => member.prop_map(Command::Member), 1 => publish].boxed()
}
