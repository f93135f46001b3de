//! Limits and held keys: what the checker must object to, and what may have been right.

use pinpriq_testing::history::{Event, Operation, Outcome, Verdict};

use crate::history::story::{QUEUE, Story, ack, came, put, release, take};

/// Limits of the queue: of all its tasks, of a key, of a share, and whether keys are held.
fn limits(of_all: u64, of_key: u64, of_share: u64, key_hold: bool) -> Operation {
    let given = |limit: u64| (limit > 0).then_some(limit);
    let (limit, key_limit, share_limit) = (given(of_all), given(of_key), given(of_share));
    Operation::Limits {
        queue: QUEUE.to_owned(),
        limit,
        key_limit,
        share_limit,
        key_hold,
        fair: false,
        uses: None,
    }
}

/// A story in which limits are set first.
fn limited(limits: Operation) -> Story {
    let mut story = Story::default();
    story.event(Event::ServerStarted);
    story.call("limits", limits, Outcome::Done);
    story
}

fn put_for(story: &mut Story, id: &str, of_key: Option<&str>, of_share: Option<&str>) {
    let mut operation = put(id, 0);
    if let Operation::Put { key, share, .. } = &mut operation {
        (*key, *share) = (of_key.map(str::to_owned), of_share.map(str::to_owned));
    }
    story.call("", operation, Outcome::Put { id: id.to_owned() });
}

fn put_in_key(story: &mut Story, id: &str, key: &str) {
    put_for(story, id, Some(key), None);
}

fn fail(story: &mut Story, receipt: &str) {
    let operation = Operation::Fail { receipt: receipt.to_owned(), delay_ms: Some(50) };
    story.call("", operation, Outcome::Turned("W".to_owned()));
}

#[track_caller]
fn finds(story: &Story, verdicts: &[Verdict]) {
    let report = story.check();
    let found: Vec<Verdict> = report.counts().into_keys().collect();
    assert_eq!(found, verdicts, "{:#?}", report.violations);
}

/// Puts two tasks of a key and a share, and takes both.
fn both_taken(limits: Operation) -> Story {
    let mut story = limited(limits);
    for id in ["1", "2"] {
        put_for(&mut story, id, Some("k"), Some("s"));
    }
    story.take("first", "1", "r1");
    story.take("second", "2", "r2");
    story
}

#[test]
fn one_more_than_a_limit_is_found() {
    for limits in [limits(1, 0, 0, false), limits(0, 1, 0, false), limits(0, 0, 1, false)] {
        finds(&both_taken(limits), &[Verdict::OverLimit]);
    }
    let story = both_taken(limits(2, 2, 2, false));
    finds(&story, &[]);
    assert_eq!(story.check().tally.limited, 6);
}

#[test]
fn what_came_at_once_counts_together() {
    let mut story = limited(limits(0, 1, 0, false));
    for id in ["1", "2"] {
        put_in_key(&mut story, id, "k");
    }
    let [mut both, second] = [came("1", "r1"), came("2", "r2")];
    if let (Outcome::Tasks(both), Outcome::Tasks(second)) = (&mut both, second) {
        both.extend(second);
    }
    story.call("", take(Some(10_000)), both);
    finds(&story, &[Verdict::OverLimit]);
}

#[test]
fn other_keys_and_shares_do_not_count() {
    let mut story = limited(limits(0, 1, 1, false));
    put_for(&mut story, "1", Some("k"), None);
    put_for(&mut story, "2", Some("l"), None);
    put_for(&mut story, "3", None, Some("m"));
    for (id, receipt) in [("1", "r1"), ("2", "r2"), ("3", "r3")] {
        story.take("", id, receipt);
    }
    finds(&story, &[]);
}

#[test]
fn a_share_without_a_name_is_that_of_the_key() {
    let mut story = limited(limits(0, 0, 1, false));
    put_for(&mut story, "1", Some("s"), None);
    put_for(&mut story, "2", None, Some("s"));
    story.take("", "1", "r1");
    story.take("", "2", "r2");
    finds(&story, &[Verdict::OverLimit]);
}

#[test]
fn a_lease_that_may_have_ended_does_not_count() {
    let ends: [fn(&mut Story); 4] = [
        |story| story.ack("", "r1"),
        |story| {
            story.begin("", ack("r1"));
        },
        |story| story.pass_ms(10_000),
        Story::restart,
    ];
    for end in ends {
        let mut story = both_taken(limits(0, 1, 0, false));
        story.before("second", end);
        finds(&story, &[]);
    }
}

#[test]
fn takes_that_overlap_count_only_while_both_are_certain() {
    let mut story = limited(limits(1, 0, 0, false));
    for id in ["1", "2"] {
        put_in_key(&mut story, id, "k");
    }
    story.take("", "1", "r1");
    story.client = 1;
    let second = story.begin("", take(Some(10_000)));
    story.client = 0;
    story.ack("", "r1");
    let at_us = story.at_us;
    let outcome = came("2", "r2");
    story.records.push(pinpriq_testing::history::Record::Answered { at_us, call: second, outcome });
    finds(&story, &[]);
}

#[test]
fn a_limit_that_was_changed_counts_as_the_loosest() {
    for (first, then) in [(2, 1), (0, 1)] {
        let mut story = both_taken(limits(first, 0, 0, false));
        story.call("", limits(then, 0, 0, false), Outcome::Done);
        finds(&story, &[]);
    }
    let mut story = both_taken(limits(2, 0, 0, false));
    story.before("first", |story| {
        story.call("", limits(1, 0, 0, false), Outcome::Done);
    });
    finds(&story, &[Verdict::OverLimit]);
    let mut story = both_taken(limits(2, 0, 0, false));
    story.before("first", |story| {
        story.begin("", limits(1, 0, 0, false));
    });
    finds(&story, &[]);
}

/// Two queues use a limit of one task, and a task of each is taken.
fn both_use(max: Option<u64>) -> Story {
    let mut story = Story::default();
    story.event(Event::ServerStarted);
    story.call("named", named(max), Outcome::Done);
    for queue in [QUEUE, OTHER] {
        story.call("", uses(queue, Some("gpu")), Outcome::Done);
    }
    story.put("", "1", 0);
    let mut other = put("2", 0);
    if let Operation::Put { queue, .. } = &mut other {
        OTHER.clone_into(queue);
    }
    story.call("", other, Outcome::Put { id: "2".to_owned() });
    story.take("first", "1", "r1");
    let mut other = take(Some(10_000));
    if let Operation::Take { queue, .. } = &mut other {
        OTHER.clone_into(queue);
    }
    story.call("second", other, came("2", "r2"));
    story
}

const OTHER: &str = "others";

fn named(max: Option<u64>) -> Operation {
    Operation::NamedLimit { name: "gpu".to_owned(), max }
}

fn uses(of: &str, name: Option<&str>) -> Operation {
    let mut operation = limits(0, 0, 0, false);
    if let Operation::Limits { queue, uses, .. } = &mut operation {
        (*queue, *uses) = (of.to_owned(), name.map(str::to_owned));
    }
    operation
}

#[test]
fn a_named_limit_counts_what_all_its_queues_have() {
    finds(&both_use(Some(1)), &[Verdict::OverLimit]);
    for max in [None, Some(2)] {
        let story = both_use(max);
        finds(&story, &[]);
        let tally = story.check().tally;
        assert_eq!((tally.limited, tally.named_most), (2, 2));
    }
}

/// What happens before the request with a label.
type Way = (&'static str, fn(&mut Story));

#[test]
fn what_may_not_have_used_a_named_limit_does_not_count_for_it() {
    let ways: [Way; 5] = [
        ("first", |story| story.call("", uses(OTHER, None), Outcome::Done)),
        ("first", |story| {
            story.begin("", uses(OTHER, None));
        }),
        ("second", |story| story.call("", uses(QUEUE, Some("cpu")), Outcome::Done)),
        ("first", |story| {
            story.begin("", named(Some(2)));
        }),
        ("second", |story| story.ack("", "r1")),
    ];
    for (label, way) in ways {
        let mut story = both_use(Some(1));
        story.before(label, way);
        finds(&story, &[]);
    }
}

/// A task of a key has failed, another one of it is taken, and then the first one again.
fn passed_by(key_hold: bool, key: &str) -> Story {
    let mut story = limited(limits(0, 1, 0, key_hold));
    put_in_key(&mut story, "1", "k");
    put_in_key(&mut story, "2", key);
    story.take("", "1", "r1");
    fail(&mut story, "r1");
    story.take("passes", "2", "r2");
    story.ack("", "r2");
    story.pass_ms(200);
    story.take("again", "1", "r1-again");
    story.ack("", "r1-again");
    story
}

#[test]
fn what_passes_a_task_that_has_failed_is_found() {
    finds(&passed_by(true, "k"), &[Verdict::KeyPassed]);
    finds(&passed_by(true, "l"), &[]);
    finds(&passed_by(false, "k"), &[]);
}

#[test]
fn a_release_with_a_delay_holds_the_key_too() {
    for (delay, state, found) in
        [(50, "W", &[Verdict::KeyPassed][..]), (0, "R", &[Verdict::OutOfOrder])]
    {
        let mut story = limited(limits(0, 1, 0, true));
        for id in ["1", "2"] {
            put_in_key(&mut story, id, "k");
        }
        story.take("", "1", "r1");
        let mut operation = release("r1");
        if let Operation::Release { delay_ms, .. } = &mut operation {
            *delay_ms = delay;
        }
        story.call("", operation, Outcome::Turned(state.to_owned()));
        story.take("", "2", "r2");
        story.ack("", "r2");
        story.pass_ms(200);
        story.take("", "1", "r1-again");
        finds(&story, found);
    }
}

#[test]
fn a_task_that_may_hold_its_key_itself_may_pass() {
    // A take whose answer was lost may have had it.
    let mut story = passed_by(true, "k");
    story.before("passes", |story| {
        story.client = 7;
        story.begin("", take(Some(10)));
        story.client = 0;
        story.pass_ms(100);
    });
    finds(&story, &[]);
}

#[test]
fn the_order_of_a_key_is_judged_and_that_of_others_is_not() {
    for (keys, found) in [(["k", "k"], &[Verdict::OutOfOrder][..]), (["k", "l"], &[])] {
        let mut story = limited(limits(0, 1, 0, false));
        for (id, key) in ["1", "2"].into_iter().zip(keys) {
            put_in_key(&mut story, id, key);
        }
        story.take("", "2", "r2");
        story.ack("", "r2");
        story.take("", "1", "r1");
        finds(&story, found);
    }
}
