//! A disk that fails or fills up while members work: nothing is promised after a failure, and a
//! refused publication is nowhere.

use std::io::ErrorKind;

use pinpriq_dice::Dice;
use pinpriq_proto::command::Wait;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::FaultyDisk;
use pinpriq_store::faulty_disk::{CrashPolicy, Operation, Repeat};

use crate::driving::SEGMENT_BYTES;
use crate::fan_out::{MEMBERS, Office, TOPICS, tight};
use crate::fan_out_crash::{Crashed, reopen};

const START: Timestamp = Timestamp::from_ms(1_000_000);

/// Turns in one life.
const TURNS: u64 = 250;

/// Fails the `nth` operation of a kind while members work, and checks that everything after it is
/// refused. Returns whether that operation occurred at all.
fn fail_once(operation: Operation, nth: u64, repeat: Repeat) -> bool {
    let context = format!("{operation:?} number {nth} fails {repeat:?}");
    let mut dice = Dice::new(3);
    let disk = FaultyDisk::new(nth);
    let Ok(mut office) = Office::open(&disk, tight(nth), START) else { panic!("{context}") };
    disk.fail(operation, nth, repeat, ErrorKind::Other);
    let worked = (0..TURNS).try_for_each(|_| office.random_turn(&mut dice));
    if disk.struck(operation) == 0 {
        assert!(worked.is_ok(), "{context}: {worked:?}");
        return false;
    }
    if worked.is_err() {
        let syncs = disk.count(Operation::Sync);
        let refused = office.refused_publishes;
        for topic in 0..TOPICS.len() {
            let publication = office.publish(topic, 10, None);
            assert!(office.end_turn().is_err(), "{context}: a turn went well after the failure");
            office.note_refusals();
            assert_eq!(office.promises.count(publication), 0, "{context}");
        }
        let refused = office.refused_publishes - refused;
        assert_eq!(refused, TOPICS.len(), "{context}: a publish was answered");
        assert_eq!(disk.count(Operation::Sync), syncs, "{context}: a failed sync was retried");
    }
    let crashed = Crashed::of(office);
    // First only the process starts again, then the power is lost.
    disk.crash(CrashPolicy::KeepAll);
    let Ok((office, found)) = reopen(&disk, nth + 1, &crashed, &context) else {
        panic!("{context}")
    };
    drop(office);
    disk.crash(CrashPolicy::LoseUnsynced);
    let opened = reopen(&disk, nth + 2, &crashed, &context);
    let Ok((_, after)) = opened else { panic!("{context}: it does not open") };
    assert_eq!(after, found, "{context}: after the power went");
    true
}

#[test]
fn after_a_failed_write_or_sync_no_publish_is_answered_and_none_is_torn() {
    let operations =
        [Operation::Write, Operation::Sync, Operation::SyncDir, Operation::Rename, Operation::Open];
    for operation in operations {
        for repeat in [Repeat::Once, Repeat::Forever] {
            let mut nth = 1;
            while fail_once(operation, nth, repeat) {
                nth += 1;
            }
            assert!(nth > 1, "{operation:?} happens only {nth} times");
        }
    }
}

#[test]
fn a_full_disk_refuses_a_publish_for_all_lanes_and_is_got_over_by_taking() {
    for segments in [4, 7] {
        let disk = FaultyDisk::new(1);
        let Ok(mut office) = Office::open(&disk, tight(1), START) else { panic!("a new one") };
        disk.set_capacity(u64::from(SEGMENT_BYTES) * segments);
        for round in 0..4 {
            fill_and_empty(&mut office, round);
        }
        office.finish();
        let crashed = Crashed::of(office);
        disk.crash(CrashPolicy::LoseUnsynced);
        let opened = reopen(&disk, 2, &crashed, &format!("{segments} segments"));
        assert!(opened.is_ok(), "{segments} segments: it does not open");
    }
}

/// Publishes until that is refused, and then takes everything out, from the last lane at the end.
fn fill_and_empty(office: &mut Office, round: u64) {
    for member in 0..3 {
        office.join((0, member));
    }
    office.end_turn().unwrap();
    let refused = office.refused_publishes;
    let mut published = 0;
    while office.refused_publishes == refused {
        let publication = office.publish(0, 500, None);
        office.now = office.now.after(Span::from_ms(1));
        office.end_turn().unwrap();
        let reached = office.promises.count(publication);
        let is_refused = office.refused_publishes > refused;
        assert_eq!(reached, if is_refused { 0 } else { 3 }, "round {round}: all lanes or none");
        published += 1;
        assert!(published < 10_000, "round {round}: the disk never fills up");
    }
    assert!(published > 10, "round {round}: only {published} publications fit");
    for member in 0..3 {
        for _ in 0..published {
            office.pop((0, member), 1, Wait::No);
            office.now = office.now.after(Span::from_ms(1));
            office.end_turn().unwrap();
        }
    }
    for _ in 0..100 {
        office.now = office.now.after(Span::from_ms(50));
        office.durable.handle_timeout(office.now);
        for member in 0..MEMBERS.len() {
            office.beat(member);
        }
        office.end_turn().unwrap();
    }
    assert!(!office.durable.engine().is_busy_for(0), "round {round}: it never recovers");
    office.durable.engine().check();
}
