//! The end of a member with many tasks to clean: in steps, while others are served in between.

use pinpriq_proto::command::{Command, Put, Selection, Take, TakeMode, TimeToLive, Wait};
use pinpriq_proto::limits::STEPS_PER_TIMEOUT;
use pinpriq_proto::reply::{Outcome, Output, RefusalKind, Reply};
use pinpriq_proto::task::ClientId;

use pinpriq_proto::fanout::{Deadline, MemberCommand};
use pinpriq_proto::time::Span;

use super::bench::{Bench, lane, payloads, publish, refusals};

/// More than one call handles.
const MANY: usize = STEPS_PER_TIMEOUT + 100;

/// Makes calls until the cleaning is finished, while others work in between. Returns the number of
/// calls.
fn clean_with_others_at_work(bench: &mut Bench, mut watch: impl FnMut(&[Output])) -> usize {
    let mut calls = 0;
    while bench.engine.poll_timeout().is_some_and(|at| at <= bench.now()) {
        let said = bench.tick();
        assert!(said.len() <= STEPS_PER_TIMEOUT, "one call sends {} outputs", said.len());
        watch(&said);
        calls += 1;
        // The same name is free meanwhile, and the commands of others are carried out at once.
        let payload = calls.to_string();
        bench.join("free", "dead");
        assert_eq!(bench.publish("t", &payload), 1);
        assert_eq!(payloads(&bench.pop("t", "alive", 1)), [payload]);
        bench.put("jobs", "one");
        bench.engine.check();
        assert!(calls < 99, "it never ends");
    }
    assert!(calls > 1, "one call would have been enough");
    assert_eq!(bench.ready("free", "dead"), Vec::<String>::new());
    calls
}

fn with_others() -> Bench {
    let mut bench = Bench::new();
    bench.checks = false;
    bench.join("t", "alive");
    bench
}

#[test]
fn many_lanes_are_cleaned_in_bounded_steps() {
    let mut bench = with_others();
    for index in 0..2 * MANY {
        bench.join(&index.to_string(), "dead");
    }
    assert_eq!(bench.leave("dead"), 2 * MANY as u64);
    let before = bench.batches.len();
    let calls = clean_with_others_at_work(&mut bench, |_| {});
    assert_eq!(calls, 3);
    let most = bench.batches[before..].iter().map(|batch| batch.changes.len()).max();
    assert!(most.unwrap_or(0) <= STEPS_PER_TIMEOUT, "one call reports {most:?} changes");
    let kept = bench.kept();
    assert_eq!((kept.members.len(), kept.lanes.len()), (2, 2));
}

#[test]
fn many_tasks_are_freed_in_bounded_steps() {
    let mut bench = with_others();
    bench.join("u", "dead");
    for _ in 0..2 * MANY {
        bench.publish("u", "one");
    }
    // Whichever tasks are freed last, the awaiters of two of them get their replies from two
    // different calls.
    let first = bench.take("u", "dead", 1).remove(0).id.to_string();
    let wait = Wait::Forever;
    let (queue, id) = (lane("u", "dead"), first.as_bytes());
    assert_eq!(bench.send(ClientId(7), Command::Await { queue, id, wait, result: false }), []);
    let last = bench.engine.header().last_number.to_string();
    let id = last.as_bytes();
    assert_eq!(bench.send(ClientId(7), Command::Await { queue, id, wait, result: false }), []);
    bench.leave("dead");
    let mut told = 0;
    let calls = clean_with_others_at_work(&mut bench, |said| {
        for output in said {
            let Output::Reply { reply, .. } = output else { panic!("no reply but {output:?}") };
            assert_eq!(*reply, Reply::Outcome(Outcome::Killed, None));
            told += 1;
        }
    });
    assert_eq!((calls, told), (3, 2));
    assert_eq!(bench.figures(None).counters.killed, 2 * MANY as u64);
}

#[test]
fn many_who_wait_are_sent_away_in_bounded_steps() {
    let mut bench = with_others();
    bench.join("u", "dead");
    bench.join("v", "dead");
    for index in 0..MANY as u64 {
        bench.block(ClientId(100 + index), if index % 2 == 0 { "u" } else { "v" }, "dead");
        let subscribe = Command::Subscribe {
            queues: &[b"u"],
            member: Some(b"dead"),
            selection: Selection::PINPRIQ,
            mode: TakeMode::Pop,
            recall: false,
        };
        assert_eq!(bench.send(ClientId(100 + index), subscribe).len(), 1);
    }
    assert_eq!(bench.leave("dead"), 2);
    let mut sent_away = 0;
    let calls = clean_with_others_at_work(&mut bench, |said| {
        let kinds = refusals(said);
        assert!(kinds.iter().all(|kind| *kind == RefusalKind::NotFound), "{kinds:?}");
        sent_away += kinds.len();
    });
    assert_eq!((calls, sent_away), (3, MANY));
    assert_eq!(bench.engine.subscriptions(ClientId(100)), 0);
    assert_eq!(bench.figures(None).takers + bench.figures(None).subscribers, 0);
}

#[test]
fn many_members_that_end_at_once_are_cleaned_in_bounded_steps() {
    let mut bench = with_others();
    for index in 0..MANY {
        bench.join_for("u", &index.to_string(), Some(1_000));
    }
    assert_eq!(bench.publish("u", "one"), MANY as u64);
    bench.pass(1_000);
    // All of them have ended, even before the end of the last one is fired.
    assert_eq!(bench.publish("u", "two"), 0);
    assert_eq!(bench.members("u"), []);
    let last = (MANY - 1).to_string();
    assert_eq!(bench.leave(&last), 0);
    clean_with_others_at_work(&mut bench, |_| {});
    let kept = bench.kept();
    assert_eq!((kept.members.len(), kept.lanes.len()), (2, 2));
    let jobs = bench.figures(Some(b"jobs".as_slice().into())).counters.in_any_state();
    assert_eq!(
        bench.figures(None).counters.in_any_state(),
        jobs,
        "nothing is left but what was put"
    );
}

#[test]
fn members_whose_lease_is_over_do_nothing_more_while_others_end_before_them() {
    let mut bench = with_others();
    for member in ["acks", "beats", "takes"] {
        bench.join_for("u", member, Some(1_000));
    }
    bench.publish("u", "one");
    let receipt = bench.take("u", "acks", 1)[0].receipt().expect("a lease");
    // Tasks end before members, and these take several calls.
    for _ in 0..4 * MANY {
        let ttl = TimeToLive::For(Span::from_ms(1_000));
        bench.ask(Command::Put(Put { ttl, ..Put::new(b"jobs", b"") }));
    }
    bench.pass(1_000);
    assert_eq!(bench.ack("u", receipt), Err(RefusalKind::Stale));
    let beat = MemberCommand::Beat { member: b"beats", lease: None };
    assert_eq!(bench.refused(Command::Member(beat)), RefusalKind::NotFound);
    let take = Take {
        queues: &[b"u"],
        member: Some(b"takes"),
        count: 1,
        wait: Wait::No,
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
    };
    assert_eq!(bench.refused(Command::Take(take)), RefusalKind::NotFound);
    let figures = bench.figures(None);
    assert_eq!(figures.counters.acked, 0, "nothing was finished by those who had ended");
    assert!(figures.counters.in_any_state() > 0, "there was more to do than these calls did");
    bench.settle();
    assert_eq!(bench.members("u"), []);
}

#[test]
fn no_task_leaves_a_lane_that_waits_to_be_cleaned() {
    let mut bench = Bench::new();
    bench.join("u", "dead");
    let subscriber = ClientId(9);
    let subscribe = Command::Subscribe {
        queues: &[b"u"],
        member: Some(b"dead"),
        selection: Selection::DEFAULT,
        mode: TakeMode::Pop,
        recall: false,
    };
    bench.send(subscriber, subscribe);
    bench.publish("u", "one");
    bench.leave("dead");
    // With credit it would be its turn.
    let said = bench.send(subscriber, Command::Credit(3));
    assert_eq!(said.len(), 1, "{said:?}");
    let (_, said) = bench.settle();
    assert_eq!(said, []);
    assert_eq!(bench.engine.subscriptions(subscriber), 0);
}

/// Everything due in one call has its turn at its own moment, even an end that was postponed.
#[test]
fn a_lease_that_was_put_off_ends_in_its_turn() {
    let mut bench = Bench::new();
    bench.join_for("u", "dead", Some(100));
    bench.pass(50);
    assert_eq!(bench.join_for("u", "dead", None), 1);
    let at = bench.now().after(Span::from_ms(90));
    assert_eq!(bench.count(publish("u", "one", Deadline::At(at))), 1);
    let (queue, id, wait) = (lane("u", "dead"), b"3".as_slice(), Wait::Forever);
    assert_eq!(bench.send(ClientId(7), Command::Await { queue, id, wait, result: false }), []);
    bench.pass(500);
    let said = bench.tick();
    let [Output::Reply { reply, .. }] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(*reply, Reply::Outcome(Outcome::Expired, None));
    assert_eq!(bench.members("u"), []);
}

#[test]
fn a_task_that_becomes_ready_at_the_end_of_its_member_is_not_handed_out() {
    let mut bench = Bench::new();
    bench.join_for("u", "dead", Some(10_000));
    bench.publish("u", "one");
    // The lease of the task ends a little before the lease of the member, which waits for more.
    assert_eq!(bench.take("u", "dead", 1).len(), 1);
    bench.pass(1);
    bench.block(ClientId(9), "u", "dead");
    bench.pass(10_000);
    let said = bench.tick();
    assert_eq!(refusals(&said), [RefusalKind::NotFound], "{said:?}");
    assert_eq!(said.len(), 1);
}
