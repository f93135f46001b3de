//! A correct history, altered: the checker must find whatever is wrong in it and give it the right
//! name.

use pinpriq_testing::history::{Event, Operation, Outcome, Verdict, digest};

use crate::history::story::{
    Story, ack, bury, came, everything, kill, payload, popped, put, ready, release, stale, take,
    touch,
};

/// The change is found under this name, and perhaps also under others.
#[track_caller]
fn found(verdict: Verdict, doctor: impl FnOnce(&mut Story)) {
    let mut story = everything();
    story.passes();
    doctor(&mut story);
    let report = story.check();
    let counts = report.counts();
    assert!(counts.contains_key(&verdict), "{verdict} is not among {:#?}", report.violations);
}

/// The change is found under this name alone.
#[track_caller]
fn found_alone(verdict: Verdict, doctor: impl FnOnce(&mut Story)) {
    let mut story = everything();
    doctor(&mut story);
    let report = story.check();
    let verdicts: Vec<Verdict> = report.counts().into_keys().collect();
    assert_eq!(verdicts, [verdict], "{:#?}", report.violations);
}

#[test]
fn a_put_that_never_comes_is_lost() {
    found_alone(Verdict::Lost, |story| story.remove("pop 10"));
}

#[test]
fn a_put_that_came_and_went_without_an_ack_is_lost() {
    found_alone(Verdict::Lost, |story| story.remove("ack 4"));
}

#[test]
fn a_refused_ack_ends_nothing_so_its_task_is_lost() {
    found_alone(Verdict::Lost, |story| {
        *story.outcome("ack 4") = Outcome::Refused("BUSY".to_owned());
    });
}

#[test]
fn a_released_task_that_never_comes_again_is_lost() {
    found(Verdict::Lost, |story| {
        story.remove("take 1 again");
        story.remove("stale ack 1");
        story.remove("ack 1");
    });
}

#[test]
fn a_buried_task_that_was_dug_up_and_never_comes_is_lost() {
    found_alone(Verdict::Lost, |story| {
        story.remove("take 3 again");
        story.remove("ack 3");
    });
}

#[test]
fn an_unheard_pop_excuses_one_loss_and_not_two() {
    found_alone(Verdict::Lost, |story| {
        story.remove("pop 9");
        *story.outcome("pop 10") = Outcome::Unknown;
    });
}

#[test]
fn a_task_without_time_to_live_does_not_expire() {
    found(Verdict::Lost, |story| {
        story.remove("take 6");
        story.remove("take 6 again");
        story.remove("ack 6");
    });
}

#[test]
fn a_task_that_comes_again_after_its_ack_is_resurrected() {
    found_alone(Verdict::Resurrected, |story| {
        story.after("ack 2", |story| {
            story.take("", "2", "r2-again");
        });
    });
}

#[test]
fn a_task_that_comes_again_after_a_restart_and_its_ack_is_resurrected() {
    found_alone(Verdict::Resurrected, |story| {
        story.before("pop 8", |story| story.call("", take(Some(10_000)), came("4", "r4-again")));
    });
}

#[test]
fn a_task_that_comes_again_after_its_kill_is_resurrected() {
    found(Verdict::Resurrected, |story| {
        story.before("pop 9", |story| story.call("", take(Some(10_000)), came("7", "r7")));
    });
}

#[test]
fn a_task_that_was_popped_and_comes_again_is_resurrected() {
    found_alone(Verdict::Resurrected, |story| {
        story.after("pop 10", |story| story.pop("", "9"));
    });
}

#[test]
fn a_task_that_expired_at_its_release_and_comes_again_is_resurrected() {
    found(Verdict::Resurrected, |story| {
        *story.outcome("release 1") = Outcome::Turned("X".to_owned());
    });
}

#[test]
fn a_second_lease_before_the_time_of_the_first_is_early() {
    found(Verdict::EarlyExpired, |story| story.remove("release 1"));
}

#[test]
fn a_lease_that_ended_after_half_its_time_is_early() {
    found(Verdict::EarlyExpired, |story| {
        *story.operation("take 5") = take(Some(3_000));
    });
}

#[test]
fn a_renewed_lease_that_ended_at_its_first_deadline_is_early() {
    found(Verdict::EarlyExpired, |story| {
        story.before("take 5 again", |story| {
            // Before the first deadline, and 700 ms before the next take.
            story.at_us -= 700_000;
            story.call("", touch("r5"), Outcome::Done);
            story.at_us += 700_000;
        });
    });
}

#[test]
fn a_renewed_lease_that_a_restart_forgot_is_early() {
    found(Verdict::EarlyExpired, |story| {
        story.before("release 1", Story::restart);
        story.remove("release 1");
    });
}

#[test]
fn a_receipt_refused_while_its_lease_lasts_is_early() {
    found(Verdict::EarlyExpired, |story| {
        story.before("touch 1", |story| story.call("", touch("r1"), stale()));
    });
}

#[test]
fn a_buried_task_that_comes_without_being_dug_up_is_found() {
    found(Verdict::EarlyExpired, |story| story.remove("dig 3"));
}

#[test]
fn a_second_holder_while_the_connection_of_the_first_is_open_is_a_duplicate() {
    found_alone(Verdict::Duplicated, |story| {
        let closed = |it: &pinpriq_testing::history::Record| {
            matches!(
                it,
                pinpriq_testing::history::Record::Happened {
                    event: Event::ConnectionClosed { .. },
                    ..
                }
            )
        };
        story.records.retain(|it| !closed(it));
    });
}

#[test]
fn one_put_that_comes_out_as_two_tasks_is_a_duplicate() {
    found_alone(Verdict::Duplicated, |story| {
        story.after("pop 10", |story| {
            story.pop("another", "11");
            story.delivery("another").payload = payload("9");
        });
    });
}

#[test]
fn a_put_of_unknown_outcome_makes_one_task_and_not_two() {
    found_alone(Verdict::Duplicated, |story| {
        story.after("pop 10", |story| {
            story.pop("another", "11");
            story.delivery("another").payload = payload("8");
        });
    });
}

#[test]
fn two_acks_of_one_receipt_are_stale() {
    found_alone(Verdict::StaleAccepted, |story| {
        story.after("ack 2", |story| story.ack("", "r2"));
    });
}

#[test]
fn two_acks_of_one_task_are_stale() {
    found(Verdict::StaleAccepted, |story| *story.outcome("stale ack 1") = Outcome::Done);
}

#[test]
fn an_ack_with_the_receipt_before_is_stale() {
    found(Verdict::StaleAccepted, |story| {
        *story.outcome("stale ack 1") = Outcome::Done;
        *story.outcome("ack 1") = stale();
    });
}

#[test]
fn a_touch_after_the_ack_is_stale() {
    found_alone(Verdict::StaleAccepted, |story| {
        story.after("ack 2", |story| story.call("", touch("r2"), Outcome::Done));
    });
}

#[test]
fn a_release_after_the_deadline_is_stale() {
    found(Verdict::StaleAccepted, |story| {
        story.before("take 5 again", |story| story.call("", release("r5"), ready()));
    });
}

#[test]
fn a_bury_while_somebody_else_has_the_task_is_stale() {
    found(Verdict::StaleAccepted, |story| {
        story.after("take 6 again", |story| story.call("", bury("r6"), Outcome::Done));
    });
}

#[test]
fn an_ack_after_the_kill_of_its_task_is_stale() {
    found_alone(Verdict::StaleAccepted, |story| {
        story.before("ack 4", |story| story.call("", kill("4"), Outcome::Count(1)));
    });
}

#[test]
fn a_lease_of_a_connection_does_not_survive_the_server() {
    found(Verdict::StaleAccepted, |story| {
        *story.operation("take 4") = take(None);
        story.remove("ack 4");
        story.before("pop 8", |story| story.ack("", "r4"));
    });
}

#[test]
fn a_receipt_that_is_given_out_twice_is_reused() {
    found(Verdict::ReceiptReused, |story| {
        story.delivery("take 5 again").receipt = Some("r5".to_owned());
        *story.operation("ack 5") = ack("r5");
    });
}

#[test]
fn a_receipt_of_an_earlier_life_that_is_given_out_again_is_reused() {
    found(Verdict::ReceiptReused, |story| {
        story.after("pop 10", |story| {
            story.put("", "11", 0);
            story.take("", "11", "r2");
            story.ack("", "r2");
        });
    });
}

#[test]
fn a_worse_priority_before_a_better_one_is_out_of_order() {
    found(Verdict::OutOfOrder, |story| {
        *story.operation("put 2") = put("2", 6);
    });
}

#[test]
fn a_younger_task_before_an_older_equal_is_out_of_order() {
    found_alone(Verdict::OutOfOrder, |story| {
        *story.outcome("pop 9") = popped("10");
        *story.outcome("pop 10") = popped("9");
    });
}

#[test]
fn a_released_task_keeps_its_place() {
    found(Verdict::OutOfOrder, |story| {
        story.before("take 1 again", |story| {
            story.take("", "3", "r3-early");
            story.call("", release("r3-early"), ready());
        });
    });
}

#[test]
fn a_task_that_comes_before_its_delay_is_early() {
    found(Verdict::EarlyDelivered, |story| {
        let Operation::Put { delay_ms, .. } = story.operation("put 4") else { return };
        *delay_ms = 60_000;
    });
}

#[test]
fn a_task_that_comes_before_the_delay_of_its_release_is_early() {
    found(Verdict::EarlyDelivered, |story| {
        let Operation::Release { delay_ms, .. } = story.operation("release 1") else { return };
        *delay_ms = 2_000;
    });
}

#[test]
fn a_task_that_comes_after_its_time_to_live_is_found() {
    found_alone(Verdict::AfterTtl, |story| story.delay_from("take 5 again", 30_000));
}

#[test]
fn a_task_that_was_never_put_is_invented() {
    found_alone(Verdict::Invented, |story| {
        story.after("pop 10", |story| story.pop("", "11"));
    });
}

#[test]
fn a_refused_put_that_comes_is_invented() {
    found_alone(Verdict::Invented, |story| {
        *story.outcome("put 9") = Outcome::Refused("FULL".to_owned());
    });
}

#[test]
fn a_task_that_comes_from_another_queue_is_invented() {
    found(Verdict::Invented, |story| {
        let Operation::Put { queue, .. } = story.operation("put 9") else { return };
        "elsewhere".clone_into(queue);
    });
}

#[test]
fn a_task_that_comes_before_it_was_put_is_invented() {
    found(Verdict::Invented, |story| {
        story.remove("pop 9");
        story.before("put 9", |story| story.pop("", "9"));
    });
}

#[test]
fn a_payload_that_has_changed_is_corrupt() {
    found_alone(Verdict::Corrupt, |story| {
        story.delivery("take 3 again").payload = digest(b"one bit is another");
    });
}

#[test]
fn a_payload_of_another_task_is_corrupt() {
    found_alone(Verdict::Corrupt, |story| story.delivery("pop 9").payload = payload("10"));
}
