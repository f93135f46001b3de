//! Backups with a clock that only moves when a test moves it, and with journals whose shards are
//! the test.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use pinpriq_proto::limits::Limits;
use pinpriq_store::journal::Tap;
use pinpriq_store::{Durable, Journal, JournalOptions, RealDisk, Runner};
use tempfile::TempDir;

use super::*;
use crate::manual_clock::ManualClock;

/// When the journals begin, and when the backups do.
const BEGUN: Timestamp = Timestamp::from_ms(1_699_999_990_000);
const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// A server with nothing but shards.
struct Shards {
    _data: TempDir,
    durables: Vec<Durable>,
    backups: Arc<Backups>,
    /// Rung when a cut is asked for.
    bell: Arc<Notify>,
    /// The moment by the clock of the backups, in milliseconds.
    time: Arc<AtomicU64>,
}

impl Shards {
    fn new(count: usize) -> Self {
        let (data, bell) = (tempfile::tempdir().unwrap(), Arc::new(Notify::new()));
        let (mut durables, mut copied) = (Vec::new(), Vec::new());
        for shard in 0..count {
            let directory = data.path().join(shard.to_string());
            let tap = {
                let bell = bell.clone();
                Arc::new(Tap::new(move || bell.notify_one()))
            };
            let disk = Arc::new(RealDisk::create(&directory).unwrap());
            let journal = Journal::open(disk, JournalOptions::default(), Runner::Inline).unwrap();
            let journal = Box::new(journal.tapped_by(tap.clone()));
            durables.push(Durable::open(journal, Limits::default(), BEGUN, 1).unwrap().0);
            copied.push(Copied { directory, tap });
        }
        let time = Arc::new(AtomicU64::new(START.ms()));
        let told = time.clone();
        let tell = Box::new(move || Timestamp::from_ms(told.load(Ordering::Relaxed)));
        Self { _data: data, durables, backups: Backups::new(copied, tell), bell, time }
    }

    fn advance(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::Relaxed);
    }

    /// Does what shards do, each at a moment that is a little later than that of the one before.
    async fn answer(durables: &mut [Durable], bell: &Notify, now: Timestamp) {
        loop {
            bell.notified().await;
            for (durable, later) in durables.iter_mut().zip(0..) {
                let now = now.after(Span::from_ms(later));
                durable.answer_cuts(now).unwrap();
                durable.drive(now).unwrap();
            }
        }
    }

    async fn begin(&mut self) -> Result<Arc<Backup>, Problem> {
        let now = (self.backups.tell)();
        tokio::select! {
            begun = self.backups.begin() => begun,
            () = Self::answer(&mut self.durables, &self.bell, now) => unreachable!(),
        }
    }

    /// Begins to read the first segment of a shard.
    async fn read(&self, backup: &Arc<Backup>, shard: usize) -> Result<Reading, Problem> {
        let first = backup.segment(shard, 1)?;
        self.backups.read(backup, (shard, first), 0..first.bytes).await
    }
}

fn code<T>(refused: Result<T, Problem>) -> &'static str {
    match refused {
        Ok(_) => "",
        Err(problem) => problem.code,
    }
}

#[tokio::test]
async fn a_backup_is_of_one_moment() {
    let mut shards = Shards::new(3);
    shards.advance(500);
    let backup = shards.begin().await.unwrap();
    // That of the shard that was asked first.
    assert_eq!(backup.at, START.after(Span::from_ms(499)));
    assert_eq!(backup.shards().count(), 3);
    for (shard, segments) in backup.shards().enumerate() {
        let [first] = *segments else { panic!("{segments:?}") };
        let mut reading = shards.read(&backup, shard).await.unwrap();
        let bytes = reading.next().await.unwrap().unwrap();
        assert_eq!(bytes.len() as u64, first.bytes);
        assert!(bytes.starts_with(b"PINPRIQJ"));
        assert_eq!(reading.next().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_backup_ends_a_minute_after_its_last_request() {
    let mut shards = Shards::new(1);
    let backup = shards.begin().await.unwrap();
    assert_eq!(backup.ends_at(), START.after(KEPT));
    let id = backup.id.clone();
    let mut reading = shards.read(&backup, 0).await.unwrap();
    drop(backup);
    for _ in 0..3 {
        shards.advance(KEPT.ms() - 1);
        assert_eq!(code(shards.backups.find(&id)), "");
    }
    // A piece that was read counts as a request, too.
    shards.advance(KEPT.ms() - 1);
    assert!(reading.next().await.unwrap().is_some());
    shards.advance(KEPT.ms() - 1);
    assert_eq!(code(shards.backups.find(&id)), "");
    shards.advance(KEPT.ms());
    assert_eq!(code(shards.backups.find(&id)), "NOTFOUND");
    assert_eq!(code(shards.backups.end(&id)), "NOTFOUND");
}

#[tokio::test]
async fn a_backup_ends_in_time_though_nobody_asks() {
    let mut shards = Shards::new(1);
    let clock = ManualClock::at(START);
    let ids = [shards.begin().await.unwrap().id.clone(), shards.begin().await.unwrap().id.clone()];
    let backups = shards.backups.clone();
    let is_kept = |id: &String| backups.kept().all.contains_key(id);
    let body = async {
        for (span, kept) in [(30_000, [true, true]), (30_000, [false, true]), (30_000, [false; 2])]
        {
            shards.advance(span);
            if kept[1] {
                // The second one is asked for, so that it stays.
                backups.touch(&backups.kept().all[&ids[1]]);
            }
            clock.advance(Span::from_ms(span));
            while ids.each_ref().map(is_kept) != kept {
                tokio::task::yield_now().await;
            }
            if !kept[0] && kept[1] {
                shards.advance(KEPT.ms() / 2);
                clock.advance(Span::from_ms(KEPT.ms() / 2));
            }
        }
    };
    tokio::select! {
        () = body => {}
        () = backups.end_in_time(&clock) => unreachable!(),
    }
}

#[tokio::test]
async fn backups_are_four_at_most_and_those_that_ended_do_not_count() {
    let mut shards = Shards::new(2);
    for _ in 0..BACKUPS_MAX - 1 {
        assert_eq!(code(shards.begin().await), "");
    }
    // One that was given up on the way leaves its place.
    {
        let mut begins = pin!(shards.backups.begin());
        let is_pending = poll_fn(|task| Poll::Ready(begins.as_mut().poll(task).is_pending()));
        assert!(is_pending.await);
        assert_eq!(code(shards.backups.reserve().map(drop)), "BUSY");
    }
    assert_eq!(code(shards.begin().await), "");
    assert_eq!(code(shards.begin().await), "BUSY");
    shards.advance(KEPT.ms());
    assert_eq!(code(shards.begin().await), "");
}

#[tokio::test]
async fn nothing_is_read_after_the_end_of_a_backup() {
    let mut shards = Shards::new(1);
    let backup = shards.begin().await.unwrap();
    let mut reading = shards.read(&backup, 0).await.unwrap();
    shards.backups.end(&backup.id).unwrap();
    drop(backup);
    assert_eq!(code(reading.next().await), "NOTFOUND");
}

#[tokio::test]
async fn nothing_is_read_once_the_files_are_no_longer_kept() {
    let mut shards = Shards::new(2);
    let backup = shards.begin().await.unwrap();
    let mut reading = shards.read(&backup, 0).await.unwrap();
    // A journal that has ended keeps nothing.
    shards.durables.clear();
    assert_eq!(code(reading.next().await), "GONE");
    assert_eq!(code(backup.segment(0, 1)), "GONE");
    assert_eq!(code(shards.read(&backup, 1).await), "GONE");
    // It does not answer either, and nobody waits for it.
    assert_eq!(code(shards.backups.begin().await), "BUSY");
}
