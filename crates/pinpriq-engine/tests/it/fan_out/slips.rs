//! What the founding text got wrong, with one test for each correction.

use pinpriq_proto::change::Change;
use pinpriq_proto::command::{Command, Selection, TakeMode};
use pinpriq_proto::fanout::{Deadline, MemberCommand};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::time::Span;

use super::bench::{Bench, OTHER, lane, payloads, publish};

/// It cleaned every member that was alive or registered but not both, and so also one that was just
/// joining.
#[test]
fn slip_1_who_is_just_joining_is_not_cleaned() {
    let mut bench = Bench::new();
    bench.join_for("t", "dead", Some(10));
    bench.publish("t", "one");
    bench.pass(10);
    // One ends and the other begins at the same moment.
    let joins = bench.join("t", "joins");
    assert_eq!(bench.publish("t", "two"), 1);
    bench.settle();
    assert_eq!(bench.members("t")[0].incarnation, joins);
    assert_eq!(bench.ready("t", "joins"), ["two"]);
    assert_eq!(bench.kept().members.keys().copied().collect::<Vec<_>>(), [joins]);
}

/// It kept members in one place and looked for subscribers in another.
#[test]
fn slip_2_there_is_one_registration_for_all_topics() {
    let mut bench = Bench::new();
    let incarnation = bench.join("t", "a");
    assert_eq!(bench.join("u", "a"), incarnation);
    let kept = bench.kept();
    assert_eq!(kept.members.len(), 1);
    assert_eq!(kept.lanes.values().copied().collect::<Vec<_>>(), [incarnation; 2]);
    // A member is alive as a whole: a sign of life in one topic counts in all, and so does the end.
    bench.pass(59_000);
    bench.take("t", "a", 1);
    bench.pass(59_000);
    assert_eq!(bench.publish("u", "one"), 1);
    assert_eq!(bench.leave("a"), 2);
    bench.settle();
    assert_eq!((bench.members("t"), bench.members("u")), (vec![], vec![]));
    assert_eq!(bench.kept().members.len() + bench.kept().lanes.len(), 0);
}

/// Its get-or-create created nothing.
#[test]
fn slip_3_joining_registers_before_it_answers() {
    let mut bench = Bench::new();
    let take = |bench: &mut Bench| {
        let queues: &[&[u8]] = &[b"t"];
        let (mode, selection) = (TakeMode::Pop, Selection::DEFAULT);
        bench.refused(Command::Subscribe { queues, member: Some(b"a"), selection, mode })
    };
    assert_eq!(take(&mut bench), RefusalKind::NotFound);
    assert_eq!(bench.batches.len(), 0, "who only looks is not registered");
    let incarnation = bench.join("t", "a");
    let [batch] = bench.batches.as_slice() else { panic!("more than one batch") };
    let [Change::Member(member), Change::Lane(made)] = batch.changes.as_slice() else {
        panic!("{:?}", batch.changes)
    };
    assert_eq!((member.incarnation, member.ended, &*member.name), (incarnation, false, &b"a"[..]));
    assert_eq!((made.member, &*made.topic), (incarnation, &b"t"[..]));
    let mut again = bench.after_crash(1);
    assert_eq!(again.publish("t", "one"), 1);
}

/// It deleted everything whose name began with the member's name.
#[test]
fn slip_4_member_1_leaves_member_10_alone() {
    let mut bench = Bench::new();
    let members = ["1", "10", "11", "", "1/", "1\0"];
    for member in members {
        bench.join("t", member);
        bench.join("t1", member);
    }
    bench.publish("t", "one");
    bench.publish("t1", "one");
    assert_eq!(bench.leave("1"), 2);
    bench.settle();
    for member in &members[1..] {
        assert_eq!(bench.ready("t", member), ["one"], "{member:?}");
        assert_eq!(bench.ready("t1", member), ["one"], "{member:?}");
    }
    assert_eq!(bench.leave_topic("t", "10"), 1);
    assert_eq!(bench.ready("t1", "10"), ["one"], "a topic is no prefix either");
    assert_eq!(bench.leave(""), 2);
    bench.settle();
    assert_eq!(bench.members("t").len(), 3);
    assert_eq!(bench.members("t1").len(), 4);
    assert_eq!(bench.ready("t", "11"), ["one"]);
}

/// A bare watch saw only what came after it.
#[test]
fn slip_5_whoever_subscribes_gets_the_backlog_first() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    bench.publish("t", "one");
    bench.publish("t", "two");
    let mut delivered = subscribe(&mut bench);
    bench.publish("t", "three");
    let said = bench.send(OTHER, Command::Credit(9));
    delivered.extend(deliveries(&said));
    let three = publish("t", "four", Deadline::OfLane);
    delivered.extend(deliveries(&bench.send(OTHER, three)));
    assert_eq!(delivered, ["one", "two", "three", "four"]);
}

/// Its signature had no channel to deliver through.
#[test]
fn slip_6_subscribing_answers_at_once_and_delivers_later() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    assert_eq!(subscribe(&mut bench), Vec::<String>::new());
    bench.send(OTHER, Command::Credit(1));
    let said = bench.send(OTHER, publish("t", "one", Deadline::OfLane));
    assert_eq!(deliveries(&said), ["one"]);
}

/// Nothing deleted consumed tasks.
#[test]
fn slip_7_what_was_consumed_is_deleted() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    bench.join("t", "b");
    bench.publish("t", "one");
    bench.publish("t", "two");
    let taken = bench.take("t", "a", 1);
    bench.ack("t", taken[0].receipt().unwrap()).unwrap();
    bench.pop("t", "a", 1);
    assert_eq!(bench.figures(Some(lane("t", "a"))).counters.in_any_state(), 0);
    let mut again = bench.after_crash(bench.batches.len());
    assert_eq!(again.ready("t", "a"), Vec::<String>::new());
    assert_eq!(again.ready("t", "b"), ["one", "two"]);
    // With the last copy, the shared payload is removed.
    let mut limited = Bench::with(Limits { bytes_max: 20_000, ..Limits::default() });
    limited.join("t", "a");
    limited.join("t", "b");
    let large = "x".repeat(12_000);
    for _ in 0..9 {
        assert_eq!(limited.publish("t", &large), 2);
        limited.pop("t", "a", 1);
        let refused = limited.refused(publish("t", &large, Deadline::OfLane));
        assert_eq!(refused, RefusalKind::Busy, "another copy still needs it");
        limited.pop("t", "b", 1);
    }
}

/// The deadline was not enforced.
#[test]
fn slip_8_deadlines_are_enforced() {
    let mut bench = Bench::new();
    bench.join("t", "a");
    let at = bench.now().after(Span::from_ms(50));
    assert_eq!(bench.count(publish("t", "dated", Deadline::At(at))), 1);
    assert_eq!(bench.engine.poll_timeout(), Some(at));
    bench.pass(50);
    bench.tick();
    let figures = bench.figures(Some(lane("t", "a")));
    assert_eq!((figures.counters.expired, figures.counters.in_any_state()), (1, 0));
    assert_eq!(payloads(&bench.take("t", "a", 9)), Vec::<String>::new());
}

/// A publisher that had read the members before the clean-up wrote a lane that nothing ever
/// cleaned.
#[test]
fn slip_9_publishing_during_the_clean_up_makes_no_orphan() {
    let mut bench = Bench::new();
    bench.join("t", "dead");
    bench.join("u", "dead");
    bench.join("t", "alive");
    bench.publish("t", "one");
    bench.leave("dead");
    assert_eq!(bench.publish("t", "two"), 1);
    assert_eq!(bench.publish("u", "two"), 0);
    bench.settle();
    assert_eq!(bench.publish("t", "three"), 1);
    let kept = bench.kept();
    assert_eq!((kept.members.len(), kept.lanes.len()), (1, 1));
    assert_eq!(bench.figures(None).counters.in_any_state(), 3, "nothing is left over");
    let mut again = bench.after_crash(bench.batches.len());
    assert_eq!(again.figures(None).counters.in_any_state(), 3);
}

/// The same name registered again while a cleaner was running, and lost its new registration.
#[test]
fn slip_9_the_same_name_again_is_not_cleaned_away() {
    let mut bench = Bench::new();
    let first = bench.join("t", "a");
    bench.join("u", "a");
    bench.publish("t", "old");
    bench.leave("a");
    let second = bench.join("t", "a");
    assert!(second > first, "it is another incarnation");
    assert_eq!(bench.ready("t", "a"), Vec::<String>::new());
    assert_eq!(bench.publish("t", "new"), 1);
    let taken = bench.take("t", "a", 1);
    // A crash in between changes nothing.
    for count in 0..=bench.batches.len() {
        let mut again = bench.after_crash(count);
        again.settle();
        let kept = again.kept();
        assert!(kept.members.values().all(|ended| !ended), "after {count} batches");
    }
    bench.settle();
    assert_eq!(bench.members("t")[0].incarnation, second);
    assert_eq!(bench.ack("t", taken[0].receipt().unwrap()), Ok(()));
    assert_eq!(bench.kept().members.keys().copied().collect::<Vec<_>>(), [second]);
    let beat = Command::Member(MemberCommand::Beat { member: b"a", lease: None });
    assert_eq!(bench.ask(beat), Reply::Done);
    assert_eq!(bench.leave_topic("u", "a"), 0, "that lane was of the former incarnation");
}

/// Subscribes to the lane of `a` in `t`, and returns what that delivered.
fn subscribe(bench: &mut Bench) -> Vec<String> {
    let command = Command::Subscribe {
        queues: &[b"t"],
        member: Some(b"a"),
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
    };
    let said = bench.send(OTHER, command);
    let replies = said.iter().filter(|output| matches!(output, Output::Reply { .. }));
    assert_eq!(replies.count(), 1);
    deliveries(&said)
}

fn deliveries(outputs: &[Output]) -> Vec<String> {
    let tasks = outputs.iter().filter_map(|output| match output {
        Output::Delivery { tasks, .. } => Some(payloads(tasks)),
        Output::Reply { .. } => None,
    });
    tasks.flatten().collect()
}
