//! Each slot of a schedule puts one task and never two, wherever a crash comes.
//!
//! The schedule makes up all slots of the time without a server, so in the end there must be a task
//! for every slot since the schedule was set. What else a schedule does is tested in the engine.

use pinpriq_proto::command::{Command, Peek, Selection};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::schedule::{NewSchedule, OnMissed, Overlap, ScheduleCommand, When};
use pinpriq_proto::task::{ClientId, RequestId, TaskRecord, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Durable;
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use crate::driving::{journal, options};

const FIRST_SLOT: u64 = 1_000_000;
const EVERY: u64 = 100;

const SCHEDULE: NewSchedule<'_> = NewSchedule {
    name: b"s",
    queue: b"jobs",
    payload: b"p",
    terms: Terms::NONE,
    priority: Some(0),
    ttl: None,
    when: When::Every { every: Span::from_ms(EVERY), at: Some(Timestamp::from_ms(FIRST_SLOT)) },
    on_missed: OnMissed::All,
    overlap: Overlap::Allow,
};

fn open(disk: &FaultyDisk, seed: u64, now: u64) -> Durable {
    let store = journal(disk, options(seed)).unwrap();
    Durable::open(store, Limits::default(), Timestamp::from_ms(now), 1).unwrap().0
}

fn ask(durable: &mut Durable, now: u64, command: &Command<'_>) -> Reply {
    durable.apply(Timestamp::from_ms(now), ClientId(1), RequestId(1), command);
    durable.commit().unwrap();
    match durable.poll_output() {
        Some((_, Output::Reply { reply, .. })) => reply,
        other => panic!("{other:?} is no reply"),
    }
}

/// Fires everything that is due, and makes it durable.
fn settle(durable: &mut Durable, now: u64) {
    let now = Timestamp::from_ms(now);
    while durable.engine().poll_timeout().is_some_and(|at| at <= now) {
        durable.handle_timeout(now);
        durable.commit().unwrap();
    }
    durable.finish(now).unwrap();
}

fn tasks(durable: &mut Durable, now: u64) -> Vec<TaskRecord> {
    let selection = Selection::DEFAULT;
    let peek = Peek { queue: b"jobs"[..].into(), selection, state: None, count: u32::MAX };
    match ask(durable, now, &Command::Peek(peek)) {
        Reply::Shown(tasks) => tasks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_slot_puts_one_task_over_crashes() {
    let mut made_up = 0;
    for seed in 0..60 {
        let disk = FaultyDisk::new(seed);
        let mut dice = Dice::new(seed);
        let mut now = FIRST_SLOT - 50;
        let mut durable = open(&disk, seed, now);
        let set = Command::Schedule(ScheduleCommand::Set(SCHEDULE));
        let next = Reply::Deadline(Some(Timestamp::from_ms(FIRST_SLOT)));
        assert_eq!(ask(&mut durable, now, &set), next);
        settle(&mut durable, now);
        for _ in 0..60 {
            now += dice.below(250);
            durable.handle_timeout(Timestamp::from_ms(now));
            if dice.once_in(8) {
                // What this call has changed is lost, or was not even written.
                if dice.once_in(2) {
                    durable.commit().unwrap();
                }
                drop(durable);
                let some = CrashPolicy::KeepSome(50);
                disk.crash(dice.pick(&[CrashPolicy::KeepAll, CrashPolicy::LoseUnsynced, some]));
                now += dice.below(900);
                durable = open(&disk, seed, now);
                made_up +=
                    u64::from(durable.engine().poll_timeout().is_some_and(|at| at.ms() <= now));
            } else if dice.once_in(3) {
                settle(&mut durable, now);
            } else {
                durable.commit().unwrap();
            }
            durable.engine().check();
        }
        settle(&mut durable, now);
        let slots = tasks(&mut durable, now).into_iter().map(|task| {
            let scheduled = task.scheduled().unwrap();
            scheduled.slot.unwrap().ms()
        });
        let mut slots: Vec<u64> = slots.collect();
        slots.sort_unstable();
        let expected: Vec<u64> =
            (FIRST_SLOT..=now).step_by(usize::try_from(EVERY).unwrap()).collect();
        assert_eq!(slots, expected, "seed {seed}");
    }
    assert!(made_up > 100, "slots were made up {made_up} times");
}
