//! How much room a publication occupies in the log, and for how long.

use pinpriq_proto::command::{Command, QueueName, Selection, Take, TakeMode, Wait};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::journal::check;
use pinpriq_store::{Durable, JournalOptions};
use pinpriq_testing::faulty_disk::{CrashPolicy, FaultyDisk};

use crate::driving::{SEGMENT_BYTES, journal, options};

/// The most bytes that one lane may add to the record of a publication while nothing happens to the
/// copy there: one byte for its number, and the others for the difference between the number of its
/// lane and that of the lane before.
const LANE_BYTES_MAX: u64 = 4;

/// The most bytes of a publication besides its payload and lanes: type, numbers, priority, moments
/// and lengths.
const RECORD_BYTES_MAX: u64 = 40;

/// The header of a batch, and the padding to a multiple of 8.
const BATCH_BYTES_MAX: u64 = 64 + 7;

/// The most bytes of a copy once something happened to it: a record of its own, without payload.
const MOVED_BYTES_MAX: u64 = 48;

const SELECTION: Selection = Selection::DEFAULT;

/// An engine with its journal, one topic, and members `0`, `1` and so on with a lane each.
struct Site {
    disk: FaultyDisk,
    durable: Durable,
    now: Timestamp,
}

impl Site {
    fn open(disk: &FaultyDisk, options: JournalOptions) -> Self {
        let store = journal(disk, options).unwrap();
        let (durable, _) =
            Durable::open(store, Limits::default(), Timestamp::from_ms(1 << 40), 1).unwrap();
        Self { disk: disk.clone(), now: durable.now(), durable }
    }

    fn with_lanes(options: JournalOptions, lanes: usize) -> Self {
        let mut site = Self::open(&FaultyDisk::new(1), options);
        for member in 0..lanes {
            site.join(b"topic", member.to_string().as_bytes());
        }
        site
    }

    fn join(&mut self, topic: &[u8], member: &[u8]) {
        let lease = Some(Span::from_ms(1 << 40));
        self.apply(Command::Member(MemberCommand::Join { topic, member, lease }));
    }

    /// Carries out one command durably, and returns its reply.
    fn apply(&mut self, command: Command<'_>) -> Reply {
        self.durable.apply(self.now, ClientId(1), RequestId(1), &command);
        self.durable.commit().unwrap();
        let Some((_, Output::Reply { reply, .. })) = self.durable.poll_output() else {
            panic!("no reply")
        };
        self.durable.drive(self.now).unwrap();
        reply
    }

    fn publish(&mut self, topic: &[u8], payload: &[u8]) -> Reply {
        let deadline = Deadline::OfLane;
        let publish = Publish {
            topic,
            payload,
            deadline,
            priority: Some(0),
            terms: Terms { key: None, ..Terms::NONE },
        };
        self.apply(Command::Publish(publish))
    }

    fn take(&mut self, topic: &[u8], member: &[u8], mode: TakeMode) -> usize {
        let (queues, member, selection) = ([topic], Some(member), SELECTION);
        let take = Take { queues: &queues, member, count: 1, wait: Wait::No, selection, mode };
        match self.apply(Command::Take(take)) {
            Reply::Tasks { tasks, .. } => tasks.len(),
            other => panic!("{other:?}"),
        }
    }

    fn pop(&mut self, member: usize) -> usize {
        self.take(b"topic", member.to_string().as_bytes(), TakeMode::Pop)
    }

    /// Runs the log until it is idle.
    fn settle(&mut self) {
        for _ in 0..300 {
            self.now = self.now.after(Span::from_ms(20));
            self.durable.handle_timeout(self.now);
            self.durable.commit().unwrap();
            self.durable.drive(self.now).unwrap();
        }
        self.durable.finish(self.now).unwrap();
    }

    /// Publishes to another topic and takes the tasks, until everything older was written again.
    fn churn(&mut self) {
        self.join(b"churn", b"c");
        let rewrites = self.durable.figures().rewrites;
        for _ in 0..400 {
            self.now = self.now.after(Span::from_ms(5));
            self.publish(b"churn", &[7; 900]);
            assert_eq!(self.take(b"churn", b"c", TakeMode::Pop), 1);
        }
        assert!(self.durable.figures().rewrites > rewrites, "nothing was written again");
        let leave = MemberCommand::Leave(b"c");
        self.apply(Command::Member(leave));
        self.settle();
    }

    fn live(&self) -> u64 {
        self.durable.figures().bytes_live
    }

    fn used(&self) -> u64 {
        self.durable.figures().bytes_used
    }
}

#[test]
fn a_publish_adds_one_payload_and_at_most_four_bytes_for_each_lane() {
    for lanes in [1, 3, 100, 1_000] {
        for payload_bytes in [0, 10, 1_000, 60_000] {
            let large = JournalOptions { segment_bytes: 8 << 20, ..options(1) };
            let mut site = Site::with_lanes(large, lanes);
            // The first one is not taken yet when the second comes.
            for _ in 0..2 {
                let (live, used) = (site.live(), site.used());
                let reply = site.publish(b"topic", &vec![7; payload_bytes]);
                assert_eq!(reply, Reply::Count(lanes as u64));
                let most = payload_bytes as u64 + RECORD_BYTES_MAX + LANE_BYTES_MAX * lanes as u64;
                let (live, used) = (site.live() - live, site.used() - used);
                let context = format!("{payload_bytes} bytes to {lanes} lanes: {live}, {used}");
                assert!(live >= payload_bytes as u64, "{context}");
                assert!(live <= most, "{context}");
                assert!(used <= most + BATCH_BYTES_MAX, "{context}");
            }
        }
    }
}

#[test]
fn compaction_writes_one_payload_again_and_what_was_moved_without_it() {
    let (lanes, payload_bytes) = (20, 3_000);
    let mut site = Site::with_lanes(options(1), lanes);
    let before = site.live();
    site.publish(b"topic", &vec![7; payload_bytes]);
    let plain = site.live() - before;
    site.churn();
    assert_eq!(site.live() - before, plain, "written again it takes up the same");
    assert!(!site.disk.files().contains_key("segment-0000000001.log"));

    // Leases that exist only as notes become records when they are written again.
    let moved = 8;
    for member in 0..moved {
        let ttr = Some(Span::from_ms(1 << 40));
        let member = member.to_string();
        assert_eq!(site.take(b"topic", member.as_bytes(), TakeMode::Lease { ttr }), 1);
    }
    assert_eq!(site.live() - before, plain, "a lease adds nothing that has to be kept");
    site.churn();
    let live = site.live() - before;
    assert!(live <= plain + MOVED_BYTES_MAX * moved, "{moved} moved copies take up {live}");
    assert!(live > plain, "nothing was written again");
    site.churn();
    assert_eq!(site.live() - before, live, "from then on it stays the same");

    let (live, now) = (site.live(), site.now);
    let Site { disk, durable, .. } = site;
    durable.engine().check();
    drop(durable);
    disk.crash(CrashPolicy::LoseUnsynced);
    let report = check(&disk).unwrap();
    assert_eq!((report.publications, report.bytes_live), (1, live));
    assert_eq!(report.tasks_by_state, [12, 8, 0, 0, 0, 0]);
    let mut site = Site::open(&disk, options(2));
    site.now = now;
    let queue = QueueName { name: b"topic", member: Some(b"3") };
    let Reply::Task(Some(task)) =
        site.apply(Command::Get { queue, id: task_id(&report).as_bytes() })
    else {
        panic!("the copy is gone")
    };
    assert_eq!(*task.payload, *vec![7; payload_bytes]);
}

/// The id of the fourth copy: members and lanes have two numbers each, and come first.
fn task_id(report: &pinpriq_store::journal::Report) -> String {
    assert_eq!(report.lanes, 20);
    (2 * 20 + 1 + 3).to_string()
}

#[test]
fn the_payload_goes_with_the_last_lane_that_lets_go_of_it() {
    let lanes = 4;
    let payload_bytes: u64 = 2_000;
    let mut site = Site::with_lanes(options(1), lanes);
    assert!(site.live() < payload_bytes);
    site.publish(b"topic", &[7; 2_000]);
    for member in 0..lanes {
        assert!(site.live() >= payload_bytes, "it is gone before lane {member} has it");
        match member {
            0 => assert_eq!(site.pop(0), 1),
            1 => {
                let leave = MemberCommand::LeaveTopic { topic: b"topic", member: b"1" };
                assert_eq!(site.apply(Command::Member(leave)), Reply::Count(1));
            }
            2 => {
                assert_eq!(
                    site.apply(Command::Member(MemberCommand::Leave(b"2"))),
                    Reply::Count(1)
                );
            }
            _ => assert_eq!(site.pop(3), 1),
        }
        site.settle();
    }
    assert!(site.live() < payload_bytes, "{} bytes still count", site.live());
    assert_eq!(check(&site.disk).unwrap().publications, 0);
    site.durable.engine().check();
}

#[test]
fn the_log_shrinks_when_the_last_lane_is_emptied() {
    let lanes = 3;
    let count: u64 = 300;
    let mut site = Site::with_lanes(options(1), lanes);
    for _ in 0..count {
        site.publish(b"topic", &[7; 900]);
        site.now = site.now.after(Span::from_ms(1));
    }
    let full = site.used();
    assert!(full > 900 * count, "{full}");
    // A third of these small segments is their header.
    assert!(full < 1_700 * count, "a payload was written more than once: {full}");
    for member in 0..lanes {
        let used = site.used();
        assert!(used > 900 * count, "payloads are gone that lane {member} still needs: {used}");
        for _ in 0..count {
            assert_eq!(site.pop(member), 1);
        }
        assert_eq!(site.pop(member), 0);
        site.settle();
    }
    let used = site.used();
    assert!(used <= 2 * site.live() + 5 * u64::from(SEGMENT_BYTES), "{used} of {full} are left");
    assert!(site.disk.used() <= 10 * u64::from(SEGMENT_BYTES), "{} on the disk", site.disk.used());
    assert_eq!(check(&site.disk).unwrap().publications, 0);
}
