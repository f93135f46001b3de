//! What the journal measures about its writes: how long they take, and how many records they hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pinpriq_store::{Figures, Journal, Stopwatch, Store as _, Urgency};
use pinpriq_testing::faulty_disk::FaultyDisk;
use pinpriq_testing::stores::{Caller, sample_task};

use crate::driving::{journal, options};

/// A stopwatch with which every measurement gives this duration.
fn stopwatch(us: u64) -> Stopwatch {
    let looks = AtomicU64::new(0);
    Arc::new(move || Duration::from_micros(us * looks.fetch_add(1, Ordering::Relaxed)))
}

/// The figures after batches with these numbers of records, each a write of its own.
fn after(batches: &[u64], stopwatch: Option<Stopwatch>) -> Figures {
    let mut journal = journal(&FaultyDisk::new(1), options(1)).unwrap();
    if let Some(stopwatch) = stopwatch {
        journal = Box::new(journal.timed_by(stopwatch));
    }
    let mut caller: Caller<Journal> = Caller::start(journal).unwrap();
    for records in batches {
        let next = caller.header.last_number + 1;
        let changes = (next..next + records).map(|number| sample_task(number, "q", 10));
        caller.append(&changes.collect::<Vec<_>>(), Urgency::Soon).unwrap();
        caller.turn().unwrap();
    }
    caller.store.figures()
}

#[test]
fn each_write_counts_with_its_time_and_its_records() {
    let figures = after(&[1, 5, 1, 20], Some(stopwatch(300)));
    let (us, records) = (&figures.commit_us, &figures.commit_records);
    assert_eq!((us.count(), us.sum()), (4, 1_200));
    assert!(us.up_to().all(|(bound, count)| count == if bound < 300 { 0 } else { 4 }));
    assert_eq!((records.count(), records.sum()), (4, 27));
    let few: Vec<_> = records.up_to().take(5).collect();
    assert_eq!(few, [(1, 2), (4, 2), (16, 3), (64, 4), (256, 4)]);
}

#[test]
fn without_a_stopwatch_writes_seem_to_take_no_time() {
    let figures = after(&[1, 1], None);
    assert_eq!((figures.commit_us.count(), figures.commit_us.sum()), (2, 0));
}

#[test]
fn figures_of_two_journals_are_added_up() {
    let both = after(&[1, 5], Some(stopwatch(300))).and(after(&[20], Some(stopwatch(7))));
    assert_eq!((both.commit_us.count(), both.commit_us.sum()), (3, 607));
    assert_eq!((both.commit_records.count(), both.commit_records.sum()), (3, 26));
}
