//! Histories of correct servers, with everything that a client cannot know: the checker accepts
//! them.

use pinpriq_testing::history::{Delivery, Event, Operation, Outcome};

use crate::history::story::{
    QUEUE, Story, ack, bury, came, dig, everything, kill, payload, pop, popped, put, ready,
    release, stale, take, touch,
};

#[test]
fn a_history_of_everything_passes_and_is_counted() {
    let story = everything();
    story.passes();
    let tally = story.check().tally;
    assert_eq!((tally.puts, tally.acks, tally.unknown), (9, 6, 1));
    assert_eq!((tally.deliveries, tally.redeliveries), (13, 4));
    assert_eq!((tally.restarts, tally.drained), (1, 1));
    assert!(tally.ordered > 8);
}

#[test]
fn an_empty_history_passes() {
    Story::default().passes();
}

#[test]
fn a_put_of_unknown_outcome_may_or_may_not_have_been_carried_out() {
    for happened in [false, true] {
        let mut story = Story::default();
        story.begin("put", put("1", 0));
        story.restart();
        if happened {
            story.take("", "1", "r1");
            story.ack("", "r1");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn an_ack_of_unknown_outcome_may_or_may_not_have_been_carried_out() {
    for happened in [false, true] {
        let mut story = Story::default();
        story.put("put", "1", 0);
        story.take("take", "1", "r1");
        story.begin("ack", ack("r1"));
        story.restart();
        if !happened {
            story.take("", "1", "r1-again");
            story.ack("", "r1-again");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn an_ack_told_again_after_its_answer_was_lost_is_stale_or_done() {
    for outcome in [stale(), Outcome::Done] {
        let mut story = Story::default();
        story.put("put", "1", 0);
        story.take("take", "1", "r1");
        story.call("touch", touch("r1"), Outcome::Done);
        story.begin("ack", ack("r1"));
        story.restart();
        story.call("again", ack("r1"), outcome);
        story.drained();
        story.passes();
    }
}

#[test]
fn a_pop_of_unknown_outcome_may_have_ended_a_task() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.put("put 2", "2", 0);
    story.begin("pop", pop());
    story.restart();
    story.pop("", "2");
    story.drained();
    story.passes();
}

#[test]
fn a_take_of_unknown_outcome_hides_a_task_for_the_time_of_its_lease() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.put("put 2", "2", 0);
    story.begin("take", take(Some(10_000)));
    story.restart();
    story.take("", "2", "r2");
    story.ack("", "r2");
    story.put("put 3", "3", 5);
    // The lease may end a little late by the clock of the client.
    story.pass_ms(9_995);
    story.pop("", "3");
    story.pass_ms(1_000);
    story.pop("", "1");
    story.drained();
    story.passes();
}

#[test]
fn a_grant_may_be_forgotten_in_a_restart() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.take("take", "1", "r1");
    story.restart();
    story.take("again", "1", "r1-again");
    story.call("late", ack("r1"), stale());
    story.ack("ack", "r1-again");
    story.drained();
    story.passes();
}

#[test]
fn a_grant_may_as_well_survive_a_restart() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.take("take", "1", "r1");
    story.restart();
    story.ack("ack", "r1");
    story.drained();
    story.passes();
}

#[test]
fn a_lease_that_ends_at_its_time_may_end_for_either_side() {
    // The ack is sent right before the deadline and answered after it.
    for outcome in [stale(), Outcome::Done] {
        let mut story = Story::default();
        story.put("put", "1", 0);
        story.call("take", take(Some(1_000)), came("1", "r1"));
        story.pass_ms(999);
        let again = outcome == stale();
        story.call("ack", ack("r1"), outcome);
        if again {
            story.pop("", "1");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn a_renewed_lease_lasts_longer() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.call("take", take(Some(1_000)), came("1", "r1"));
    for _ in 0..5 {
        story.pass_ms(900);
        story.call("", touch("r1"), Outcome::Done);
    }
    let moved = Operation::Touch { receipt: "r1".to_owned(), by_ms: Some(60_000) };
    story.call("", moved, Outcome::Done);
    story.pass_ms(55_000);
    story.ack("ack", "r1");
    story.drained();
    story.passes();
}

#[test]
fn requests_that_overlap_may_be_carried_out_either_way_round() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    let first = story.begin("take 2", take(Some(10_000)));
    let second = story.begin("put 2", put("2", -1));
    let at_us = story.at_us;
    for (call, outcome) in [(second, Outcome::Put { id: "2".into() }), (first, came("1", "r1"))] {
        story.records.push(pinpriq_testing::history::Record::Answered { at_us, call, outcome });
    }
    story.at_us += 1;
    story.ack("", "r1");
    story.pop("", "2");
    story.drained();
    story.passes();
}

#[test]
fn a_task_with_a_time_to_live_may_go_by_itself() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    if let Operation::Put { ttl_ms, .. } = story.operation("put") {
        *ttl_ms = Some(1_000);
    }
    story.pass_ms(1_001);
    story.drained();
    story.passes();
}

#[test]
fn a_task_that_expires_at_its_release_is_gone() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    if let Operation::Put { ttl_ms, .. } = story.operation("put") {
        *ttl_ms = Some(1_000);
    }
    story.take("take", "1", "r1");
    story.pass_ms(2_000);
    story.call("release", release("r1"), Outcome::Turned("X".to_owned()));
    story.drained();
    story.passes();
}

#[test]
fn a_buried_task_comes_back_when_it_is_dug_up_or_ploughed() {
    for by_id in [false, true] {
        let mut story = Story::default();
        story.put("put", "1", 0);
        story.take("take", "1", "r1");
        story.call("bury", bury("r1"), Outcome::Done);
        if by_id {
            story.call("dig", dig("1"), ready());
        } else {
            let plow = Operation::Plow { queue: QUEUE.to_owned() };
            story.call("plow", plow, Outcome::Count(1));
        }
        story.pop("", "1");
        story.drained();
        story.passes();
    }
}

#[test]
fn buried_tasks_may_stay() {
    let mut story = Story::default();
    story.put("put", "1", 0);
    story.take("take", "1", "r1");
    story.call("bury", bury("r1"), Outcome::Done);
    story.event(Event::Drained { queue: QUEUE.to_owned(), buried_stay: true });
    story.passes();
}

#[test]
fn a_release_to_the_tail_and_another_priority_change_the_order() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.put("put 2", "2", 0);
    story.put("put 3", "3", 5);
    story.take("", "1", "r1");
    story.call("release", release("r1"), ready());
    if let Operation::Release { tail, .. } = story.operation("release") {
        *tail = true;
    }
    story.take("", "2", "r2");
    story.call("release again", release("r2"), ready());
    if let Operation::Release { priority, .. } = story.operation("release again") {
        *priority = Some(9);
    }
    for id in ["1", "3", "2"] {
        story.pop("", id);
    }
    story.drained();
    story.passes();
}

#[test]
fn a_kill_that_found_nothing_ends_nothing() {
    let mut story = Story::default();
    story.call("kill", kill("1"), Outcome::Count(0));
    story.put("put", "1", 0);
    story.pop("pop", "1");
    story.drained();
    story.passes();
}

#[test]
fn a_disk_that_has_failed_leaves_the_outcome_open() {
    let failed = || Outcome::Refused("STORE".to_owned());
    for happened in [false, true] {
        let mut story = Story::default();
        story.put("put 1", "1", 0);
        story.call("put 2", put("2", 0), failed());
        story.restart();
        story.pop("", "1");
        if happened {
            story.pop("", "2");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn what_is_disturbed_is_left_alone() {
    let mut story = everything();
    story.remove("pop 10");
    let id = Some("10".to_owned());
    story.before("pop 9", |story| {
        let disturb = Operation::Disturb { queue: QUEUE.to_owned(), id };
        story.call("", disturb, Outcome::Done);
    });
    story.passes();
}

#[test]
fn ids_given_by_clients_may_come_back() {
    let mut story = Story::default();
    for turn in ["first", "second"] {
        let mut given = put(turn, 0);
        if let Operation::Put { id, .. } = &mut given {
            *id = Some("order".to_owned());
        }
        story.call("", given, Outcome::Put { id: "order".to_owned() });
        let delivery = Delivery { id: "order".to_owned(), receipt: None, payload: payload(turn) };
        story.call("", pop(), Outcome::Tasks(vec![delivery]));
    }
    story.drained();
    story.passes();
}

#[test]
fn other_orders_are_not_judged() {
    let mut story = Story::default();
    story.put("put 1", "1", 0);
    story.put("put 2", "2", 5);
    let otherwise = Operation::Pop { queue: QUEUE.to_owned(), count: 1, otherwise_ordered: true };
    story.call("", otherwise, popped("2"));
    story.pop("", "1");
    story.drained();
    story.passes();
}
