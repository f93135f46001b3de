//! Tasks that fail, are moved, and become dead letters, and transactions: what a correct server may
//! do, and what it may not.

use pinpriq_testing::history::{Delivery, Event, Operation, Outcome, Record, Verdict};

use crate::history::story::{
    QUEUE, Story, ack, kill, payload, pop, put, ready, release, stale, take, touch,
};

const DEAD: &str = "dead";
const LATER: &str = "later";
const BACKOFF_MS: u64 = 1_000;

/// A policy of [`QUEUE`].
fn policy(attempts: Option<u64>, backoff_ms: u64, dead_letter: Option<&str>) -> Operation {
    Operation::Policy {
        queue: QUEUE.to_owned(),
        attempts,
        backoff_ms,
        backoff_max_ms: 3_600_000,
        dead_letter: dead_letter.map(str::to_owned),
    }
}

fn fail(receipt: &str) -> Operation {
    Operation::Fail { receipt: receipt.to_owned(), delay_ms: None }
}

fn moved(from: &str, to: &str) -> Operation {
    Operation::Move { from: from.to_owned(), to: to.to_owned(), count: 10 }
}

fn take_from(queue: &str) -> Operation {
    let (queue, ttr_ms) = (queue.to_owned(), Some(10_000));
    Operation::Take { queue, count: 1, ttr_ms, otherwise_ordered: false }
}

fn put_into(queue: &str, id: &str) -> Operation {
    let mut put = put(id, 0);
    if let Operation::Put { queue: name, .. } = &mut put {
        queue.clone_into(name);
    }
    put
}

/// The task of that payload comes under another id.
fn came_as(id: &str, put_as: &str, receipt: &str) -> Outcome {
    let receipt = Some(receipt.to_owned());
    Outcome::Tasks(vec![Delivery { id: id.to_owned(), receipt, payload: payload(put_as) }])
}

fn turned(state: &str) -> Outcome {
    Outcome::Turned(state.to_owned())
}

fn transaction<const N: usize>(operations: [Operation; N]) -> Operation {
    Operation::Transaction { operations: operations.into() }
}

fn id(id: &str) -> Outcome {
    Outcome::Put { id: id.to_owned() }
}

fn drained(story: &mut Story, queue: &str) {
    story.event(Event::Drained { queue: queue.to_owned(), buried_stay: false });
}

/// Takes and finishes a task under this id.
fn finish(story: &mut Story, queue: &str, id: &str, put_as: &str) {
    story.call("", take_from(queue), came_as(id, put_as, &format!("{queue}-{id}")));
    story.ack("", &format!("{queue}-{id}"));
}

#[track_caller]
fn found(verdict: Verdict, story: &Story) {
    let report = story.check();
    let is_found = report.counts().contains_key(&verdict);
    assert!(is_found, "{verdict} is not among {:#?}", report.violations);
}

#[track_caller]
fn found_alone(verdict: Verdict, story: &Story) {
    let report = story.check();
    let verdicts: Vec<Verdict> = report.counts().into_keys().collect();
    assert_eq!(verdicts, [verdict], "{:#?}", report.violations);
}

/// Everything that these operations can do to a task.
fn everything() -> Story {
    let mut story = Story::default();
    story.event(Event::ServerStarted);
    story.call("policy", policy(Some(3), BACKOFF_MS, Some(DEAD)), Outcome::Done);
    story.put("put 1", "1", 0);
    story.take("take 1", "1", "r1");
    story.call("fail 1", fail("r1"), turned("W"));
    story.pass_ms(900);
    story.take("take 1 again", "1", "r1-again");
    let now = Operation::Fail { receipt: "r1-again".to_owned(), delay_ms: Some(0) };
    story.call("fail 1 again", now, turned("R"));
    story.take("take 1 last", "1", "r1-last");
    story.call("fail 1 last", fail("r1-last"), turned("X"));
    story.call("late ack 1", ack("r1-last"), stale());
    story.call("take letter", take_from(DEAD), came_as("11", "1", "r11"));
    story.call("release letter", release("r11"), ready());
    story.call("redrive", moved(DEAD, QUEUE), Outcome::Count(1));
    story.take_as("take 1 home", "12", "1", "r12");
    story.ack("ack 1 home", "r12");

    story.put("put 2", "2", 0);
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    story.call("put 3", put_into(LATER, "3"), id("3"));
    story.call("take 2", take_from(LATER), came_as("21", "2", "r21"));
    story.ack("ack 2", "r21");
    story.call("take 3", take_from(LATER), came_as("3", "3", "r3"));
    let both = transaction([ack("r3"), put("4", 0), put("5", 0)]);
    let outcomes = vec![Outcome::Done, id("4"), id("5")];
    story.call("transaction", both, Outcome::Transaction(outcomes));
    let refused = transaction([put("6", 0), ack("r3")]);
    story.call("refused", refused, Outcome::Refused("EXECABORT".to_owned()));
    story.take("take 4", "4", "r4");
    story.ack("ack 4", "r4");
    story.take("take 5", "5", "r5");
    story.begin("cut off", transaction([ack("r5"), put("7", 0)]));
    story.restart();
    story.take("take 7", "7", "r7");
    story.ack("ack 7", "r7");
    for queue in [QUEUE, LATER, DEAD] {
        drained(&mut story, queue);
    }
    story
}

#[test]
fn a_history_of_everything_passes_and_is_counted() {
    let story = everything();
    story.passes();
    let tally = story.check().tally;
    assert_eq!((tally.failures, tally.moved, tally.transactions), (3, 2, 3));
    assert_eq!((tally.puts, tally.acks), (5, 5));
}

#[test]
fn a_letter_that_never_comes_is_lost() {
    let mut story = everything();
    for label in ["take letter", "release letter", "redrive", "take 1 home", "ack 1 home"] {
        story.remove(label);
    }
    found_alone(Verdict::Lost, &story);
}

#[test]
fn a_moved_task_that_never_comes_is_lost() {
    let mut story = everything();
    story.remove("take 2");
    story.remove("ack 2");
    found_alone(Verdict::Lost, &story);
}

#[test]
fn a_task_that_failed_and_never_comes_again_is_lost() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.take("take", "1", "r1");
    story.call("fail", fail("r1"), ready());
    story.drained();
    found_alone(Verdict::Lost, &story);
}

#[test]
fn a_task_that_may_be_in_an_unread_queue_is_not_missed() {
    for dead_is_drained_first in [false, true] {
        let mut story = Story::default();
        story.call("policy", policy(Some(1), 0, Some(DEAD)), Outcome::Done);
        story.put("put", "1", 0);
        if dead_is_drained_first {
            drained(&mut story, DEAD);
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn a_pop_of_unknown_outcome_may_have_ended_a_task_in_another_queue() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    let queue = LATER.to_owned();
    story.begin("pop", Operation::Pop { queue, count: 1, otherwise_ordered: false });
    story.restart();
    for queue in [QUEUE, LATER] {
        drained(&mut story, queue);
    }
    story.passes();
}

#[test]
fn a_letter_that_is_still_in_its_queue_is_resurrected() {
    let mut story = everything();
    story.before("take letter", |story| story.take("", "1", "r1-still"));
    found(Verdict::Resurrected, &story);
}

#[test]
fn a_task_that_was_moved_and_is_still_there_is_a_duplicate() {
    let mut story = everything();
    *story.operation("ack 2") = release("r21");
    *story.outcome("ack 2") = ready();
    story.before("take 3", |story| {
        story.take("", "2", "r2");
        story.ack("", "r2");
    });
    found_alone(Verdict::Duplicated, &story);
}

#[test]
fn a_moved_task_that_comes_as_two_is_a_duplicate() {
    let mut story = everything();
    *story.operation("ack 2") = touch("r21");
    story.before("take 3", |story| {
        story.call("", take_from(LATER), came_as("22", "2", "r22"));
        story.ack("", "r22");
    });
    found(Verdict::Duplicated, &story);
}

#[test]
fn a_taken_task_is_not_moved() {
    let mut story = everything();
    story.before("move", |story| {
        story.take("", "2", "r2");
        story.call("", touch("r2"), Outcome::Done);
    });
    found_alone(Verdict::Duplicated, &story);
}

#[test]
fn a_task_in_another_queue_without_a_move_is_invented() {
    for label in ["move", "policy"] {
        let mut story = everything();
        story.remove(label);
        found(Verdict::Invented, &story);
    }
    let mut story = everything();
    *story.outcome("move") = Outcome::Count(0);
    found(Verdict::Invented, &story);
}

#[test]
fn a_task_that_comes_before_its_move_is_invented() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    finish(&mut story, LATER, "2", "1");
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    found_alone(Verdict::Invented, &story);
}

#[test]
fn a_move_of_unknown_outcome_may_have_moved_some_or_none() {
    for (queue, as_id) in [(QUEUE, "1"), (LATER, "2")] {
        let mut story = Story::default();
        story.put("put", "1", 0);
        story.begin("move", moved(QUEUE, LATER));
        story.restart();
        finish(&mut story, queue, as_id, "1");
        for queue in [QUEUE, LATER] {
            drained(&mut story, queue);
        }
        story.passes();
    }
}

#[test]
fn a_put_of_unknown_outcome_may_come_in_another_queue() {
    let mut story = Story::default();
    story.begin("put", put("1", 0));
    story.client += 1;
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    finish(&mut story, LATER, "2", "1");
    story.passes();
}

#[test]
fn a_move_puts_a_task_behind_those_that_were_there() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.call("put 2", put_into(LATER, "2"), id("2"));
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    let put = story.records.len();
    finish(&mut story, LATER, "2", "2");
    finish(&mut story, LATER, "3", "1");
    story.passes();
    story.records.truncate(put);
    finish(&mut story, LATER, "3", "1");
    finish(&mut story, LATER, "2", "2");
    // It was put before the other one, and moved at an unknown moment before it came.
    story.passes();
}

#[test]
fn a_task_that_failed_keeps_its_place() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.put("put 2", "2", 0);
    story.take("take 1", "1", "r1");
    story.call("fail", fail("r1"), ready());
    story.take("take 2", "2", "r2");
    story.ack("", "r2");
    story.pop("", "1");
    found_alone(Verdict::OutOfOrder, &story);
    *story.outcome("fail") = turned("W");
    story.passes();
}

#[test]
fn a_receipt_ends_with_its_failure() {
    let mut story = everything();
    *story.outcome("late ack 1") = Outcome::Done;
    found(Verdict::StaleAccepted, &story);
}

#[test]
fn a_task_that_comes_before_its_back_off_is_early() {
    let mut story = Story::default();
    story.call("policy", policy(None, BACKOFF_MS, None), Outcome::Done);
    story.put("put", "1", 0);
    story.take("take", "1", "r1");
    story.call("fail", fail("r1"), turned("W"));
    story.pass_ms(600);
    story.take("again", "1", "r1-again");
    found_alone(Verdict::EarlyDelivered, &story);
    // It is unknown whether the policy was in effect.
    *story.outcome("policy") = Outcome::Unknown;
    story.passes();
}

#[test]
fn the_second_back_off_is_twice_as_long() {
    for (wait_ms, passes) in [(1_600, true), (1_200, false)] {
        let mut story = Story::default();
        story.call("policy", policy(None, BACKOFF_MS, None), Outcome::Done);
        story.put("put", "1", 0);
        story.take("", "1", "r1");
        story.call("", fail("r1"), turned("W"));
        story.pass_ms(1_000);
        story.take("", "1", "r2");
        story.call("", fail("r2"), turned("W"));
        story.pass_ms(wait_ms);
        story.pop("", "1");
        if passes {
            story.passes();
        } else {
            found_alone(Verdict::EarlyDelivered, &story);
        }
    }
}

#[test]
fn a_lease_that_ends_by_itself_has_a_back_off_too() {
    for (wait_ms, restart, passes) in [(1_900, false, true), (1_400, false, false), (0, true, true)]
    {
        let mut story = Story::default();
        story.call("policy", policy(None, BACKOFF_MS, None), Outcome::Done);
        story.put("put", "1", 0);
        story.call("take", take(Some(1_000)), came_as("1", "1", "r1"));
        story.pass_ms(wait_ms);
        if restart {
            story.restart();
        }
        story.pop("", "1");
        if passes {
            story.passes();
        } else {
            found_alone(Verdict::EarlyDelivered, &story);
        }
    }
}

#[test]
fn a_task_whose_lease_ended_by_itself_may_become_a_letter() {
    let mut story = Story::default();
    story.call("policy", policy(Some(1), 0, Some(DEAD)), Outcome::Done);
    story.put("put", "1", 0);
    story.call("take", take(Some(1_000)), came_as("1", "1", "r1"));
    story.pass_ms(1_001);
    story.call("letter", take_from(DEAD), came_as("2", "1", "r2"));
    story.ack("", "r2");
    for queue in [QUEUE, DEAD] {
        drained(&mut story, queue);
    }
    story.passes();
    story.call("", touch("r1"), Outcome::Done);
    found(Verdict::StaleAccepted, &story);
}

#[test]
fn a_letter_has_no_time_to_live() {
    let mut story = Story::default();
    story.call("policy", policy(Some(1), 0, Some(DEAD)), Outcome::Done);
    story.put("put", "1", 0);
    if let Operation::Put { ttl_ms, .. } = story.operation("put") {
        *ttl_ms = Some(1_000);
    }
    story.take("", "1", "r1");
    story.call("", fail("r1"), turned("X"));
    story.pass_ms(2_000);
    finish(&mut story, DEAD, "2", "1");
    story.passes();
}

#[test]
fn a_letter_too_early_is_miscounted() {
    let mut story = everything();
    *story.operation("policy") = policy(Some(4), BACKOFF_MS, Some(DEAD));
    found_alone(Verdict::Miscounted, &story);
}

#[test]
fn a_failure_too_many_is_miscounted() {
    let mut story = everything();
    *story.operation("policy") = policy(Some(2), BACKOFF_MS, Some(DEAD));
    found_alone(Verdict::Miscounted, &story);
}

#[test]
fn a_take_of_unknown_outcome_may_have_failed_too() {
    let mut story = Story::default();
    story.call("policy", policy(Some(2), 0, Some(DEAD)), Outcome::Done);
    story.put("put", "1", 0);
    story.begin("unheard", take(Some(100)));
    story.client += 1;
    story.pass_ms(200);
    story.take("", "1", "r1");
    story.call("", fail("r1"), turned("X"));
    story.passes();
    story.remove("unheard");
    found_alone(Verdict::Miscounted, &story);
}

#[test]
fn a_take_of_letters_may_have_begun_before_the_last_failure() {
    let mut story = Story::default();
    story.call("policy", policy(Some(2), 0, Some(DEAD)), Outcome::Done);
    story.put("put", "1", 0);
    story.take("", "1", "r1");
    story.call("", fail("r1"), ready());
    let blocked = story.begin("", take_from(DEAD));
    story.take("", "1", "r1-again");
    let failure = story.begin("", fail("r1-again"));
    for (call, outcome) in [(blocked, came_as("2", "1", "r2")), (failure, turned("X"))] {
        story.records.push(Record::Answered { at_us: story.at_us, call, outcome });
    }
    story.at_us += 1;
    story.ack("", "r2");
    for queue in [QUEUE, DEAD] {
        drained(&mut story, queue);
    }
    story.passes();
}

#[test]
fn a_task_that_was_buried_by_its_failure_comes_when_it_is_dug_up() {
    for is_dug in [true, false] {
        let mut story = Story::default();
        story.call("policy", policy(Some(1), 0, None), Outcome::Done);
        story.put("put", "1", 0);
        story.take("take", "1", "r1");
        story.call("fail", fail("r1"), turned("B"));
        if is_dug {
            let plow = Operation::Plow { queue: QUEUE.to_owned() };
            story.call("plow", plow, Outcome::Count(1));
        }
        story.take("again", "1", "r1-again");
        story.call("fail again", fail("r1-again"), turned("B"));
        story.event(Event::Drained { queue: QUEUE.to_owned(), buried_stay: true });
        if is_dug {
            story.passes();
        } else {
            found_alone(Verdict::EarlyExpired, &story);
        }
    }
}

/// A transaction of unknown outcome that finishes a task and puts another one.
fn cut_off() -> Story {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.call("take 1", take(Some(60_000)), came_as("1", "1", "r1"));
    story.call("touch 1", touch("r1"), Outcome::Done);
    story.begin("transaction", transaction([ack("r1"), put("2", 0)]));
    story.restart();
    story
}

#[test]
fn a_transaction_of_unknown_outcome_happens_as_a_whole_or_not_at_all() {
    let mut whole = cut_off();
    whole.call("", ack("r1"), stale());
    whole.pop("", "2");
    whole.drained();
    whole.passes();
    let mut none = cut_off();
    none.ack("", "r1");
    none.drained();
    none.passes();
    let mut nothing_seen = cut_off();
    nothing_seen.event(Event::ServerKilled);
    nothing_seen.passes();
}

#[test]
fn a_transaction_whose_second_part_is_missing_is_torn() {
    let mut story = cut_off();
    story.call("", ack("r1"), stale());
    story.drained();
    found_alone(Verdict::Torn, &story);
}

#[test]
fn a_transaction_whose_first_part_is_missing_is_torn() {
    let mut story = cut_off();
    story.pop("", "2");
    story.ack("", "r1");
    story.drained();
    found_alone(Verdict::Torn, &story);
}

#[test]
fn a_task_that_is_gone_shows_that_its_ack_has_happened() {
    let mut story = cut_off();
    story.drained();
    found_alone(Verdict::Torn, &story);
    // A pop of unknown outcome may have ended either task.
    let mut story = cut_off();
    story.begin("pop", pop());
    story.restart();
    story.drained();
    story.passes();
}

#[test]
fn a_transaction_that_put_one_task_of_two_is_torn() {
    let mut story = Story::default();
    story.begin("transaction", transaction([put("1", 0), put("2", 0)]));
    story.restart();
    story.pop("", "2");
    story.passes();
    story.drained();
    found_alone(Verdict::Torn, &story);
}

#[test]
fn a_part_of_a_transaction_that_was_confirmed_is_lost() {
    let mut story = everything();
    story.remove("take 4");
    story.remove("ack 4");
    story.begin("other", kill("9"));
    found(Verdict::Lost, &story);
}

#[test]
fn a_part_of_a_refused_transaction_is_invented() {
    let mut story = everything();
    story.before("cut off", |story| story.pop("", "6"));
    found_alone(Verdict::Invented, &story);
}

#[test]
fn a_receipt_that_a_transaction_has_used_is_stale() {
    let mut story = everything();
    story.after("transaction", |story| story.ack("", "r3"));
    found_alone(Verdict::StaleAccepted, &story);
}

#[test]
fn payloads_that_were_put_twice_are_not_told_apart() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.call("put 2", put("1", 0), id("2"));
    story.call("move", moved(QUEUE, LATER), Outcome::Count(1));
    finish(&mut story, LATER, "3", "1");
    for queue in [QUEUE, LATER] {
        drained(&mut story, queue);
    }
    story.passes();
}
