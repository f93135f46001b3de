//! The ten promises of fan-out, with one test for each.

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{
    Command, Held, HeldBy, Put, QueueCommand, Release, Sides, TimeToLive, Touch,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand};
use pinpriq_proto::limits::{Limits, STEPS_PER_TIMEOUT};
use pinpriq_proto::reply::{RefusalKind, Reply};
use pinpriq_proto::settings::{CAPACITY, IDS, Ids, Value};
use pinpriq_proto::task::StateKind;
use pinpriq_proto::time::{Span, Timestamp};

use super::bench::{Bench, Kept, lane, payloads, publish};

#[test]
fn i1_a_member_gets_all_that_is_published_after_it_joined() {
    let mut bench = Bench::new();
    assert_eq!(bench.publish("t", "too early"), 0);
    bench.join("t", "a");
    assert_eq!(bench.publish("t", "one"), 1);
    bench.join("t", "b");
    assert_eq!(bench.publish("t", "two"), 2);
    assert_eq!(bench.ready("t", "a"), ["one", "two"]);
    assert_eq!(bench.ready("t", "b"), ["two"]);
    // A member that comes back while its former lanes still wait to be cleaned has joined too.
    bench.leave("a");
    bench.join("t", "a");
    assert_eq!(bench.publish("t", "three"), 2);
    bench.settle();
    assert_eq!(bench.publish("t", "four"), 2);
    assert_eq!(bench.ready("t", "a"), ["three", "four"]);
    assert_eq!(bench.ready("t", "b"), ["two", "three", "four"]);
    // The same holds after a restart of the server, before any command.
    let mut again = bench.after_crash(bench.batches.len());
    assert_eq!(again.publish("t", "five"), 2);
    assert_eq!(again.ready("t", "a"), ["three", "four", "five"]);
}

/// More is due at the end of the lease than one call fires, so this end has not been fired yet.
#[test]
fn i1_a_member_that_missed_a_publication_has_ended() {
    let mut bench = Bench::new();
    bench.checks = false;
    bench.join_for("t", "a", Some(10_000));
    bench.publish("t", "taken");
    let receipt = bench.take("t", "a", 1)[0].receipt().unwrap();
    let held = Held { queue: lane("t", "a"), by: HeldBy::Receipt(receipt) };
    let by = Some(Span::from_ms(99_000));
    bench.ask(Command::Touch(Touch { by, ..Touch::new(held) }));
    for _ in 0..3 * STEPS_PER_TIMEOUT {
        let ttl = TimeToLive::For(Span::from_ms(10_000));
        let put = Put::new(b"others", b"");
        bench.ask(Command::Put(Put { ttl, ..put }));
    }
    bench.pass(10_000);
    assert_eq!(bench.publish("t", "missed"), 0);
    assert_eq!(bench.ack("t", receipt), Err(RefusalKind::Stale));
    assert_eq!(bench.members("t"), []);
    bench.settle();
    bench.engine.check();
    assert_eq!(bench.refused(beat("a")), RefusalKind::NotFound);
}

#[test]
fn i2_a_publication_reaches_all_lanes_or_none() {
    let mut bench = Bench::new();
    for member in ["a", "b", "c"] {
        bench.join("t", member);
    }
    // This lane has ids of its own, so its copies are not reported together with the others.
    bench.set(lane("t", "b"), &[(IDS, Ids::Uuid.into())]);
    for payload in ["one", "two", "three"] {
        let before = bench.batches.len();
        assert_eq!(bench.publish("t", payload), 3);
        assert_eq!(bench.batches.len(), before + 1, "all copies are in one batch");
    }
    for count in 0..=bench.batches.len() {
        let mut again = bench.after_crash(count);
        let members: Vec<_> = again.members("t").into_iter().map(|known| known.member).collect();
        let lanes: Vec<Vec<String>> = members
            .iter()
            .map(|member| again.ready("t", std::str::from_utf8(member).unwrap()))
            .collect();
        for other in &lanes {
            assert_eq!(other, &lanes[0], "after {count} batches");
        }
    }
}

#[test]
fn i2_a_refused_publication_reaches_no_lane() {
    let mut bench = Bench::with(Limits { bytes_max: 6_500, ..Limits::default() });
    for member in ["a", "b", "c"] {
        bench.join("t", member);
    }
    bench.set(lane("t", "c"), &[(CAPACITY, Value::Number(1))]);
    assert_eq!(bench.publish("t", "one"), 3);
    let before = bench.batches.len();
    let large = "x".repeat(5_000);
    assert_eq!(bench.refused(publish("t", &large, Deadline::OfLane)), RefusalKind::Busy);
    assert_eq!(bench.batches.len(), before, "nothing has changed");
    for member in ["a", "b", "c"] {
        assert_eq!(bench.ready("t", member), ["one"]);
    }
    assert_eq!(bench.figures(Some(lane("t", "c"))).missed, Some(0), "it was no publication");
    // The payload counts once, however many lanes there are.
    let fits = "x".repeat(50);
    assert_eq!(bench.publish("t", &fits), 2);
    assert_eq!(bench.figures(Some(lane("t", "c"))).missed, Some(1));
}

#[test]
fn i3_the_registration_goes_after_all_lanes() {
    let mut bench = Bench::new();
    let incarnation = bench.join("t", "a");
    for topic in ["u", "v", "w"] {
        bench.join(topic, "a");
        bench.join(topic, "b");
        bench.publish(topic, "one");
    }
    assert_eq!(bench.leave("a"), 4);
    bench.settle();
    // Change by change, since a store may keep any part of them.
    let mut kept = Kept::default();
    let mut gone = 0;
    for change in bench.batches.iter().flat_map(|batch| &batch.changes) {
        if let Change::MemberGone(known) = change {
            assert_eq!(*known, incarnation);
            assert!(kept.lanes.values().all(|member| member != known), "its lanes went first");
            gone += 1;
        }
        kept.fold(change);
    }
    assert_eq!((gone, kept.members.len(), kept.lanes.len()), (1, 1, 3));
}

#[test]
fn i4_only_who_is_registered_and_not_alive_is_cleaned() {
    let mut bench = Bench::new();
    let stays = bench.join("t", "stays");
    let leaves = bench.join("t", "leaves");
    let dies = bench.join_for("t", "dies", Some(1_000));
    bench.publish("t", "one");
    bench.leave("leaves");
    bench.pass(999);
    let joins = bench.join("t", "joins");
    bench.settle();
    let alive = |bench: &mut Bench| -> Vec<u64> {
        bench.members("t").iter().map(|known| known.incarnation).collect()
    };
    assert_eq!(alive(&mut bench), [dies, joins, stays]);
    bench.pass(1);
    bench.settle();
    assert_eq!(alive(&mut bench), [joins, stays]);
    let kept = bench.kept();
    assert_eq!(kept.members.keys().copied().collect::<Vec<_>>(), [stays, joins]);
    assert!(!kept.members.contains_key(&leaves));
    assert_eq!(bench.ready("t", "stays"), ["one"]);
}

#[test]
fn i5_cleaning_never_touches_another_lane() {
    let mut bench = Bench::new();
    let others = [("t", "1"), ("t", "10"), ("t", ""), ("tt", "1"), ("", "1"), ("", "")];
    bench.join("t", "dead");
    for (topic, member) in others {
        bench.join(topic, member);
    }
    bench.join("tt", "dead");
    bench.put("t", "in a queue");
    for topic in ["t", "tt", ""] {
        bench.publish(topic, "one");
        bench.publish(topic, "two");
    }
    let taken = bench.take("t", "1", 1);
    bench.leave("dead");
    bench.settle();
    assert_eq!(bench.ack("t", taken[0].receipt().unwrap()), Ok(()));
    assert_eq!(bench.ready("t", "1"), ["two"]);
    for (topic, member) in &others[1..] {
        assert_eq!(bench.ready(topic, member), ["one", "two"], "{member:?} in {topic:?}");
    }
    assert_eq!(bench.figures(Some(b"t".as_slice().into())).counters.in_any_state(), 1);
    // No member misses what is published later, either.
    assert_eq!(bench.publish("t", "three"), 3);
    assert_eq!(bench.ready("t", "1"), ["two", "three"]);
}

#[test]
fn i6_each_lane_is_first_in_first_out() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    bench.join("t", "b");
    let sent: Vec<String> = (0..50).map(|index| index.to_string()).collect();
    for (index, payload) in sent.iter().enumerate() {
        assert_eq!(bench.publish("t", payload), 2);
        if index % 7 == 0 {
            // The commands of one member in between, and puts elsewhere, change nothing.
            assert_eq!(payloads(&bench.pop("t", "b", 1)).len(), 1);
            bench.put("t", "elsewhere");
        }
    }
    // A task that is released returns to its old place.
    let taken = bench.take("t", "a", 3);
    for task in [1, 0, 2] {
        let held =
            Held { queue: lane("t", "a"), by: HeldBy::Receipt(taken[task].receipt().unwrap()) };
        let release = Release::new(held);
        assert_eq!(bench.ask(Command::Release(release)), Reply::State(Some(StateKind::Ready)));
    }
    assert_eq!(bench.ready("t", "a"), sent);
    assert_eq!(bench.ready("t", "b"), sent[8..]);
    let mut again = bench.after_crash(bench.batches.len());
    assert_eq!(payloads(&again.pop("t", "a", 99)), sent);
}

#[test]
fn i7_nothing_is_delivered_after_its_deadline() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    bench.join("t", "b");
    let at = bench.now().after(Span::from_ms(100));
    assert_eq!(bench.count(publish("t", "dated", Deadline::At(at))), 2);
    assert_eq!(bench.publish("t", "open"), 2);
    // The consumer sees the deadline, and may keep what it took before.
    let taken = bench.take("t", "b", 1);
    assert_eq!(taken[0].progress.expires_at, Some(at));
    bench.pass(99);
    assert_eq!(bench.ready("t", "a"), ["dated", "open"]);
    // At the exact moment, and without a call in between that could have removed it.
    bench.pass(1);
    assert_eq!(payloads(&bench.pop("t", "a", 9)), ["open"]);
    let mut again = bench.after_crash(1 + 1 + 1);
    assert_eq!(again.members("t").len(), 2);
    let mut again_later = bench.after_crash(bench.batches.len());
    assert_eq!(again_later.ready("t", "b"), ["open"]);
    assert_eq!(again.ready("t", "b"), Vec::<String>::new());
    assert_eq!(bench.ack("t", taken[0].receipt().unwrap()), Ok(()));
    // A deadline that has passed reaches no lane.
    for past in [bench.now(), Timestamp::ZERO] {
        assert_eq!(bench.count(publish("t", "late", Deadline::At(past))), 0);
    }
    assert_eq!(bench.ready("t", "b"), ["open"]);
}

#[test]
fn i8_what_one_member_does_moves_no_other_lane() {
    let mut bench = Bench::new();
    bench.join("t", "busy");
    bench.join("t", "idle");
    for payload in ["one", "two", "three", "four"] {
        bench.publish("t", payload);
    }
    let before = bench.figures(Some(lane("t", "idle"))).counters;
    let taken = bench.take("t", "busy", 2);
    bench.ack("t", taken[0].receipt().unwrap()).unwrap();
    bench.pop("t", "busy", 1);
    let sides = Sides::Both;
    bench.ask(Command::Queue(QueueCommand::Pause {
        queue: lane("t", "busy"),
        sides,
        length: None,
    }));
    bench.set(lane("t", "busy"), &[(CAPACITY, Value::Number(1))]);
    bench.ask(Command::Queue(QueueCommand::Truncate(lane("t", "busy"))));
    bench.settle();
    let idle = bench.figures(Some(lane("t", "idle")));
    assert_eq!((idle.counters, idle.paused.any()), (before, false));
    assert_eq!(bench.publish("t", "five"), 1, "the lane that is paused misses it");
    assert_eq!(bench.ready("t", "idle"), ["one", "two", "three", "four", "five"]);
}

#[test]
fn i9_joining_again_keeps_the_lane_and_its_backlog() {
    let mut bench = Bench::new();
    let incarnation = bench.join("t", "a");
    bench.publish("t", "one");
    bench.publish("t", "two");
    bench.set(lane("t", "a"), &[(CAPACITY, Value::Number(5))]);
    let taken = bench.take("t", "a", 1);
    let before = bench.batches.len();
    assert_eq!(bench.join("t", "a"), incarnation);
    assert_eq!(bench.batches.len(), before, "nothing has changed");
    assert_eq!(bench.join_for("t", "a", Some(9_000)), incarnation);
    assert_eq!(bench.ready("t", "a"), ["two"]);
    assert_eq!(bench.ack("t", taken[0].receipt().unwrap()), Ok(()));
    let Reply::Settings { settings, .. } =
        bench.ask(Command::Queue(QueueCommand::Show(lane("t", "a"))))
    else {
        panic!("no settings")
    };
    assert_eq!(settings.capacity, Some(5));
    assert_eq!(bench.members("t").len(), 1);
    // This also holds after a restart of the server.
    let mut again = bench.after_crash(bench.batches.len());
    assert_eq!(again.join("t", "a"), incarnation);
    assert_eq!(again.ready("t", "a"), ["two"]);
}

#[test]
fn i10_no_command_pays_for_the_cleaning() {
    let mut bench = Bench::new();
    bench.checks = false;
    for index in 0..STEPS_PER_TIMEOUT + 10 {
        bench.join(&index.to_string(), "dead");
    }
    bench.join("t", "alive");
    let before = bench.batches.len();
    assert_eq!(bench.leave("dead"), STEPS_PER_TIMEOUT as u64 + 10);
    // This command, and the next one, make only their own changes.
    assert_eq!(bench.publish("t", "one"), 1);
    assert_eq!(payloads(&bench.pop("t", "alive", 1)), ["one"]);
    bench.join("u", "alive");
    let changes: Vec<usize> =
        bench.batches[before..].iter().map(|batch| batch.changes.len()).collect();
    assert_eq!(changes, [1, 1, 1, 1]);
    assert_eq!(bench.engine.poll_timeout(), Some(bench.now()), "there is more to do at once");
    let (calls, _) = bench.settle();
    assert_eq!(calls, 2);
    bench.engine.check();
    assert_eq!(bench.kept().lanes.len(), 2);
}

fn beat(member: &str) -> Command<'_> {
    Command::Member(MemberCommand::Beat { member: member.as_bytes(), lease: None })
}
