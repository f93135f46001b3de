//! Crashes while members work: at every operation of the disk, with everything that may survive
//! one, and again while the engine starts and cleans up.

use std::cell::RefCell;
use std::rc::Rc;

use pinpriq_dice::Dice;
use pinpriq_proto::command::Wait;
use pinpriq_proto::time::Timestamp;
use pinpriq_store::faulty_disk::CrashPolicy;
use pinpriq_store::journal::check;
use pinpriq_store::{Durable, FaultyDisk, Fold, Position, Store, StoreError};

use crate::driving::journal;
use crate::fan_out::{MEMBERS, Office, TOPICS, Unopened, tight};
use crate::promises::{Promises, Seen};
use crate::witness::Witnessed;

/// Turns in one life.
const TURNS: u64 = 150;

/// Where the clocks of these tests begin.
const START: Timestamp = Timestamp::from_ms(1_000_000);

pub(crate) const POLICIES: [CrashPolicy; 4] = [
    CrashPolicy::KeepAll,
    CrashPolicy::LoseUnsynced,
    CrashPolicy::KeepSome(50),
    CrashPolicy::KeepSome(90),
];

/// What was known when a machine stopped.
pub(crate) struct Crashed {
    promises: Promises,
    witnessed: Rc<RefCell<Witnessed>>,
    reached: Position,
    now: Timestamp,
}

impl Crashed {
    pub(crate) fn of(office: Office) -> Self {
        let Office { promises, witnessed, now, .. } = office;
        let reached = witnessed.borrow().history.reached();
        Self { promises, witnessed, reached, now }
    }
}

/// One life on this disk, until the work is done or the machine stops.
pub(crate) fn live(disk: &FaultyDisk, seed: u64, turns: u64) -> Crashed {
    let mut dice = Dice::new(seed);
    match Office::open(disk, tight(seed), START) {
        Err(Unopened { witnessed, .. }) => {
            let (promises, reached) = (Promises::default(), Position(0));
            Crashed { promises, witnessed, reached, now: START }
        }
        Ok(mut office) => {
            for _ in 0..turns {
                if office.random_turn(&mut dice).is_err() {
                    break;
                }
            }
            office.durable.engine().check();
            Crashed::of(office)
        }
    }
}

/// Checks that the log itself holds what it held after some batch.
fn judge_log(disk: &FaultyDisk, crashed: &Crashed, context: &str) {
    let mut fold = Fold::new();
    let mut store = journal(disk, tight(1)).unwrap();
    store.load(&mut |change, place| fold.apply(&change, place, &mut Vec::new())).unwrap();
    fold.forget_unshared(&mut Vec::new());
    crashed.witnessed.borrow().history.judge(&fold, context);
    for (lane, _) in fold.lanes.values() {
        let is_registered = fold.members.contains_key(&lane.member);
        assert!(is_registered, "{context}: lane {} has no registration", lane.number);
    }
}

/// Opens what a crash left and compares it with what was promised. Returns the new life, and what
/// clients see in it. The promises are those of the life before.
pub(crate) fn reopen(
    disk: &FaultyDisk,
    seed: u64,
    crashed: &Crashed,
    context: &str,
) -> Result<(Office, Seen), StoreError> {
    let opened = Office::open(disk, tight(seed), crashed.now);
    let mut office = opened.map_err(|unopened| unopened.error)?;
    office.durable.engine().check();
    let found = office.look(&crashed.promises);
    crashed.promises.judge(crashed.reached, &found, office.now, context);
    Ok((office, found))
}

/// Checks that after a clean-up the directory holds what clients see, and nothing else.
fn assert_clean(
    disk: &FaultyDisk,
    durable: &Durable,
    found: &Seen,
    promises: &Promises,
    context: &str,
) {
    let report = check(disk).unwrap();
    assert!(report.damage.is_empty(), "{context}: {:?}", report.damage);
    assert_eq!(report.lanes, found.len() as u64, "{context}: lanes in the directory");
    let tasks: u64 = report.tasks_by_state.iter().sum();
    assert_eq!(
        tasks,
        durable.engine().totals().in_any_state(),
        "{context}: tasks in the directory"
    );
    let in_lanes: u64 = report.tasks_by_lane.values().sum();
    assert_eq!(in_lanes, tasks, "{context}: all of them have a lane and a member");
    let figures = durable.figures();
    assert_eq!(report.bytes_live, figures.bytes_live, "{context}: what still counts");
    let shared = (0..promises.publications.len()).filter(|publication| {
        let payload = &promises.publications[*publication].payload;
        found.values().any(|lane| lane.get(publication) == Some(payload))
    });
    let expired = promises.publications.iter().filter(|known| known.expires_at.is_some()).count();
    let shared = shared.count() as u64;
    assert!(report.publications >= shared, "{context}: payloads in the directory");
    assert!(report.publications <= shared + expired as u64, "{context}: payloads are left over");
}

/// Works until the machine stops at the given operation, crashes, crashes again while it recovers,
/// and judges every life that begins. Returns whether the machine stopped at all.
fn crash_once(seed: u64, stop_at: u64, policy: CrashPolicy) -> bool {
    let context = format!("seed {seed}, stopped at operation {stop_at}, {policy:?}");
    let disk = FaultyDisk::new(seed ^ 0xfa0);
    let mut dice = Dice::new(stop_at);
    disk.shorten_writes(dice.below(20));
    disk.stop_at(stop_at);
    let crashed = live(&disk, seed, TURNS);
    if !disk.has_stopped() {
        return false;
    }
    disk.crash(policy);
    judge_log(&disk, &crashed, &context);
    disk.crash(policy);
    let mut settled: Option<Seen> = None;
    for again in 0..3 {
        disk.stop_at(1 + dice.below(30));
        if let Ok((mut office, found)) = reopen(&disk, seed + again, &crashed, &context) {
            // What a running server has shown must stay.
            let before = settled.get_or_insert_with(|| found.clone());
            assert_eq!(found, *before, "{context}: crash {again} while recovering");
            let _ = office.clean_up();
        }
        disk.crash(policy);
    }
    let opened = reopen(&disk, seed + 9, &crashed, &context);
    let Ok((mut office, found)) = opened else { panic!("{context}: it does not open") };
    if let Some(before) = settled {
        assert_eq!(found, before, "{context}: after the last recovery");
    }
    office.clean_up().unwrap();
    office.finish();
    assert_clean(&disk, &office.durable, &found, &crashed.promises, &context);
    go_on(&disk, office, &crashed, found, &context);
    true
}

/// Checks that a recovered directory works like any other: one more publication for each topic
/// reaches every member, and survives another crash.
fn go_on(disk: &FaultyDisk, mut office: Office, crashed: &Crashed, found: Seen, context: &str) {
    let Crashed { promises, now, .. } = crashed;
    office.promises = promises.clone();
    office.promises.current.retain(|key, _| found.contains_key(key));
    for key in found.keys() {
        office.promises.join(*key, Position(0));
    }
    let mut expected = found;
    for topic in 0..TOPICS.len() {
        let publication = office.publish(topic, 100, None);
        office.end_turn().unwrap();
        let payload = office.promises.publications[publication].payload.clone();
        for member in 0..MEMBERS.len() {
            if office.promises.has(publication, (topic, member)) {
                let lane = expected.get_mut(&(topic, member)).unwrap();
                lane.insert(publication, payload.clone());
            }
        }
    }
    office.durable.engine().check();
    office.durable.finish(office.now).unwrap();
    let promises = office.promises.clone();
    drop(office);
    disk.crash(CrashPolicy::LoseUnsynced);
    let opened = Office::open(disk, tight(77), *now);
    let Ok(mut office) = opened else { panic!("{context}: it does not open in the end") };
    assert_eq!(office.look(&promises), expected, "{context}: in the end");
}

#[test]
fn a_crash_at_every_operation_keeps_every_publication_whole() {
    for policy in POLICIES {
        let mut stop_at = 1;
        while crash_once(3, stop_at, policy) {
            stop_at += 1;
        }
        assert!(stop_at > 250, "the work takes only {stop_at} operations");
    }
}

#[test]
fn a_crash_anywhere_under_the_work_of_other_members_keeps_every_publication_whole() {
    for seed in 2_000..2_100 {
        let policy = POLICIES[usize::try_from(seed % 4).unwrap()];
        crash_once(seed, 1 + Dice::new(seed).below(350), policy);
    }
}

/// The crash tests would prove little if none of this happened before the crashes.
#[test]
fn the_random_work_does_everything_that_is_to_be_survived() {
    let disk = FaultyDisk::new(3);
    let crashed = live(&disk, 3, TURNS);
    let witnessed = crashed.witnessed.borrow();
    let kinds = witnessed.history.kinds();
    for kind in [
        "Published",
        "Task",
        "Lane",
        "LaneGone",
        "LaneEmptied",
        "Member",
        "MemberGone",
        "Moved",
        "Granted",
        "Gone",
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count >= 3), "{kind}: {kinds:?}");
    }
    assert!(!disk.files().contains_key("segment-0000000001.log"), "nothing was compacted");
    let promises = &crashed.promises;
    let reached = (0..promises.publications.len()).map(|index| promises.count(index));
    let many = reached.filter(|lanes| *lanes >= 3).count();
    assert!(many >= 5, "{many} publications reached three lanes");
}

/// A member with more lanes than one call cleans up.
#[test]
fn a_clean_up_that_a_crash_interrupts_is_finished_by_the_next_life() {
    use pinpriq_proto::limits::{Limits, STEPS_PER_TIMEOUT};

    let lanes = STEPS_PER_TIMEOUT + 40;
    let disk = FaultyDisk::new(1);
    let mut durable = many_lanes(&disk, lanes);
    durable.finish(START).unwrap();
    drop(durable);
    let files = disk.files();
    let mut interrupted = 0;
    for policy in POLICIES {
        for stop_at in 1.. {
            let disk = FaultyDisk::with_files(stop_at, &files);
            let open = |seed| {
                let journal = journal(&disk, tight(seed)).unwrap();
                Durable::open(journal, Limits::default(), START, 1).map(|opened| opened.0)
            };
            let mut durable = open(1).unwrap();
            assert_eq!(check(&disk).unwrap().lanes, lanes as u64);
            disk.stop_at(stop_at);
            leave_everything(&mut durable);
            drop(durable);
            let stopped = disk.has_stopped();
            disk.crash(policy);
            let left = check(&disk).unwrap();
            assert_eq!(left.members, u64::from(left.lanes > 0), "the registration goes last");
            interrupted += u64::from(left.lanes > 0 && left.lanes < lanes as u64);
            let mut durable = open(2).unwrap();
            durable.engine().check();
            let has_ended = durable.engine().poll_timeout().is_some_and(|at| at <= START);
            assert!(has_ended || left.lanes == 0 || left.lanes == lanes as u64);
            if has_ended {
                for _ in 0..3 {
                    durable.handle_timeout(START);
                }
                durable.finish(START).unwrap();
                durable.engine().check();
                let clean = check(&disk).unwrap();
                assert_eq!((clean.lanes, clean.members, clean.publications), (0, 0, 0));
                assert_eq!(clean.tasks_by_state, [0; 6], "{policy:?} at operation {stop_at}");
            }
            if !stopped {
                break;
            }
        }
    }
    assert!(interrupted >= 4, "only {interrupted} crashes came in the middle of the clean-up");
}

/// A member that joined this many topics, with a task in some of its lanes.
fn many_lanes(disk: &FaultyDisk, lanes: usize) -> Durable {
    use pinpriq_proto::command::Command;
    use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
    use pinpriq_proto::limits::Limits;
    use pinpriq_proto::task::{ClientId, RequestId, Terms};

    let journal = journal(disk, tight(1)).unwrap();
    let (mut durable, _) = Durable::open(journal, Limits::default(), START, 1).unwrap();
    for index in 0..lanes {
        let topic = format!("{index}");
        let topic = topic.as_bytes();
        let join = MemberCommand::Join { topic, member: b"m", lease: None };
        durable.apply(START, ClientId(1), RequestId(1), &Command::Member(join));
        if index % 64 == 0 {
            let publish = Publish {
                topic,
                payload: topic,
                deadline: Deadline::OfLane,
                priority: None,
                terms: Terms { key: None, ..Terms::NONE },
            };
            durable.apply(START, ClientId(1), RequestId(1), &Command::Publish(publish));
        }
    }
    durable
}

/// The member leaves, and its lanes are cleaned up in two calls, each with a batch of its own.
fn leave_everything(durable: &mut Durable) {
    use pinpriq_proto::command::Command;
    use pinpriq_proto::fanout::MemberCommand;
    use pinpriq_proto::task::{ClientId, RequestId};

    let leave = Command::Member(MemberCommand::Leave(b"m"));
    durable.apply(START, ClientId(1), RequestId(1), &leave);
    for _ in 0..3 {
        if durable.commit().and_then(|()| durable.drive(START)).is_err() {
            return;
        }
        durable.handle_timeout(START);
    }
    let _ = durable.finish(START);
}

/// A copy that is handed out in the same step in which it is published was never in its lane. It is
/// in no lane after a crash, whatever happens to the other copies.
#[test]
fn a_copy_that_is_popped_at_once_goes_with_its_publication() {
    for policy in POLICIES {
        let mut stop_at = 1;
        loop {
            let disk = FaultyDisk::new(stop_at);
            let Ok(mut office) = Office::open(&disk, tight(1), START) else { panic!("a new one") };
            for member in 0..3 {
                office.join((0, member));
            }
            office.end_turn().unwrap();
            office.pop((0, 1), 1, Wait::Forever);
            office.end_turn().unwrap();
            disk.stop_at(stop_at);
            office.publish(0, 300, None);
            let finished = office.end_turn();
            assert_eq!(office.promises.count(0), 3);
            let crashed = Crashed::of(office);
            let stopped = disk.has_stopped();
            assert_eq!(stopped, finished.is_err());
            disk.crash(policy);
            let context = format!("stopped at {stop_at}, {policy:?}");
            judge_log(&disk, &crashed, &context);
            disk.crash(policy);
            let Ok((_, found)) = reopen(&disk, 2, &crashed, &context) else { panic!("{context}") };
            let left: Vec<usize> = found.values().map(std::collections::BTreeMap::len).collect();
            assert!(left == [1, 0, 1] || (stopped && left == [0, 0, 0]), "{context}: {left:?}");
            if !stopped {
                break;
            }
            stop_at += 1;
        }
        assert!(stop_at > 2, "a write and a sync at least");
    }
}
