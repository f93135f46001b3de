//! What is left when the server ends after any of its batches.

use std::collections::BTreeMap;

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Amendment, Command, Held, HeldBy, QueueCommand, Release, Update};
use pinpriq_proto::limits::STEPS_PER_TIMEOUT;
use pinpriq_proto::settings::{IDS, Ids, TTL, Value};
use pinpriq_proto::time::Span;

use super::bench::{Bench, Kept, lane};

const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

/// Publications mixed with everything that may happen to their copies.
fn eventful() -> Bench {
    let mut bench = Bench::new();
    for member in MEMBERS {
        bench.join("t", member);
    }
    bench.set(lane("t", "c"), &[(TTL, Value::Span(Span::from_ms(500_000)))]);
    bench.set(lane("t", "d"), &[(IDS, Ids::Time64.into())]);
    for round in 0..6 {
        assert_eq!(bench.publish("t", &round.to_string()), 4);
        let taken = bench.take("t", "a", 1);
        let held = Held { queue: lane("t", "a"), by: HeldBy::Receipt(taken[0].receipt().unwrap()) };
        let amendment = Amendment::default();
        if round % 2 == 0 {
            bench.ack("t", taken[0].receipt().unwrap()).unwrap();
        } else {
            let delay = Span::ZERO;
            bench.ask(Command::Release(Release {
                delay,
                amendment,
                tail: true,
                ..Release::new(held)
            }));
        }
        if round == 3 {
            let id = taken[0].id.to_string();
            let amendment = Amendment { payload: Some(b"own"), ..amendment };
            let (queue, id) = (lane("t", "a"), id.as_bytes());
            bench.ask(Command::Update(Update { amendment, ..Update::new(queue, id) }));
        }
        bench.pop("t", "d", 1);
    }
    bench.ask(Command::Queue(QueueCommand::Truncate(lane("t", "b"))));
    bench.publish("t", "last");
    bench
}

/// Returns each lane with the payloads that it would hand out.
fn lanes(bench: &mut Bench) -> BTreeMap<&'static str, Vec<String>> {
    let there = bench.members("t");
    let known = MEMBERS
        .into_iter()
        .filter(|member| there.iter().any(|figures| *figures.member == *member.as_bytes()));
    known.map(|member| (member, bench.ready("t", member))).collect()
}

#[test]
fn a_restart_after_any_batch_finds_the_lanes_as_they_were() {
    let bench = eventful();
    // The same again, checked after each batch.
    let mut before: Option<BTreeMap<&'static str, Vec<String>>> = None;
    for count in 0..=bench.batches.len() {
        let mut again = bench.after_crash(count);
        let found = lanes(&mut again);
        let published = bench.batches[..count].last().is_some_and(|batch| {
            batch.changes.iter().any(|change| matches!(change, Change::Published(..)))
        });
        if let (true, Some(before)) = (published, &before) {
            for member in MEMBERS {
                let (old, new) = (&before[member], &found[member]);
                assert_eq!(new.len(), old.len() + 1, "{member:?} after {count} batches");
                assert_eq!(new.last(), found["c"].last(), "{member:?} after {count} batches");
            }
        }
        // A second crash, before anything else happens, changes nothing.
        let mut twice = again.after_crash(again.batches.len());
        assert_eq!(lanes(&mut twice), found, "after {count} batches");
        before = Some(found);
    }
    let mut end = bench.after_crash(bench.batches.len());
    let mut bench = bench;
    assert_eq!(lanes(&mut end), lanes(&mut bench));
}

#[test]
fn a_restart_at_any_point_of_a_clean_up_finishes_it() {
    let mut bench = Bench::new();
    bench.checks = false;
    bench.join("t", "alive");
    bench.join("u", "alive");
    let lanes = 2 * STEPS_PER_TIMEOUT;
    for index in 0..lanes {
        bench.join(&index.to_string(), "dead");
    }
    bench.join("t", "dead");
    bench.publish("t", "one");
    let before = bench.batches.len();
    bench.leave("dead");
    let (calls, _) = bench.settle();
    assert_eq!(calls, 3);
    assert_eq!(bench.batches.len(), before + 1 + calls);
    let mut left = Vec::new();
    for count in before..=bench.batches.len() {
        let mut kept = Kept::default();
        let known = bench.batches[..count].iter().flat_map(|batch| &batch.changes);
        known.for_each(|change| kept.fold(change));
        left.push(kept.lanes.len());
        let mut again = bench.after_crash(count);
        again.engine.check();
        let is_dead = count > before;
        assert_eq!(again.members("t").len(), if is_dead { 1 } else { 2 });
        assert_eq!(again.publish("t", "two"), if is_dead { 1 } else { 2 });
        // The same name may come back before the clean-up has continued.
        again.join("t", "dead");
        again.publish("t", "three");
        again.settle();
        again.engine.check();
        let expected: &[&str] = if is_dead { &["three"] } else { &["one", "two", "three"] };
        assert_eq!(again.ready("t", "dead"), expected);
        assert_eq!(again.ready("t", "alive"), ["one", "two", "three"]);
        let kept = again.kept();
        let ended = kept.members.values().filter(|ended| **ended).count();
        assert_eq!((kept.members.len(), ended), (2, 0), "after {count} batches");
        assert_eq!(kept.lanes.len(), if is_dead { 3 } else { lanes + 3 });
    }
    // Before the end, once the member has ended, and after each call.
    assert_eq!(left[..2], [lanes + 3; 2]);
    assert!(left.is_sorted_by(|one, other| one >= other) && left.last() == Some(&2), "{left:?}");
}

#[test]
fn a_restart_gives_every_member_its_whole_lease_again() {
    let mut bench = Bench::new();
    bench.join_for("t", "a", Some(1_000));
    bench.join_for("t", "a", Some(5_000));
    bench.join("t", "b");
    bench.pass(4_000);
    let batches = bench.batches.len();
    let mut again = bench.after_crash(batches);
    let until: Vec<u64> = again.members("t").iter().map(|member| member.lease_until.ms()).collect();
    let now = again.now().ms();
    assert_eq!(until, [now + 5_000, now + 60_000], "the last lease that was named holds");
    again.pass(4_999);
    again.settle();
    assert_eq!(again.members("t").len(), 2);
    again.pass(1);
    again.settle();
    assert_eq!(again.members("t").len(), 1);
}

#[test]
fn no_number_is_used_again_after_all_is_gone() {
    let mut bench = Bench::new();
    let first = bench.join("t", "a");
    bench.publish("t", "one");
    bench.leave("a");
    bench.settle();
    let mut again = bench.after_crash(bench.batches.len());
    assert!(again.join("t", "a") > first);
    again.publish("t", "two");
    let number = again.take("t", "a", 1)[0].number;
    let lanes = again.kept().lanes;
    let lane = lanes.keys().next().copied().unwrap();
    assert!(first < lane && lane < number && number <= again.engine.header().last_number);
}
