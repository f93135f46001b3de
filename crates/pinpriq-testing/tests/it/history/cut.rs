//! Histories up to a moment: what stays, what loses its answer, and what is left out. A server that
//! was restored may have all of what is in doubt, or nothing of it.

use pinpriq_testing::history::{
    Between, Delivery, Event, Operation, Outcome, Record, Recorder, Verdict, cut, records,
};

use crate::history::story::{
    QUEUE, Story, ack, came, everything, payload, pop, popped, put, ready, release, stale, take,
};

const LATER: &str = "later";

fn between(from_us: u64, to_us: u64) -> Between {
    Between { from_us, to_us }
}

fn known_as(id: &str) -> Outcome {
    Outcome::Put { id: id.to_owned() }
}

fn disturbed(id: &str) -> Operation {
    Operation::Disturb { queue: QUEUE.to_owned(), id: Some(id.to_owned()) }
}

fn killed(at_us: u64) -> Record {
    Record::Happened { at_us, event: Event::ServerKilled }
}

/// The requests of a history without answers.
fn unanswered(records: &[Record]) -> Vec<&Operation> {
    let is_answered = |wanted: u64| {
        records.iter().any(|it| matches!(it, Record::Answered { call, .. } if *call == wanted))
    };
    let open = records.iter().filter_map(|it| match it {
        Record::Invoked { call, operation, .. } if !is_answered(*call) => Some(operation),
        _ => None,
    });
    open.collect()
}

#[track_caller]
fn finds(verdict: Verdict, story: &Story) {
    let verdicts: Vec<Verdict> = story.check().counts().into_keys().collect();
    assert_eq!(verdicts, [verdict]);
}

#[test]
fn what_was_answered_before_stays_as_it_is() {
    let story = everything();
    let end_us = story.at_us;
    let mut whole = story.records.clone();
    whole.push(killed(end_us));
    assert_eq!(cut(&story.records, between(end_us, end_us)), whole);
    assert_eq!(cut(&story.records, between(0, 0)).last(), Some(&killed(0)));
}

#[test]
fn what_is_in_doubt_loses_its_answer_and_what_is_later_is_left_out() {
    let mut story = Story::default();
    story.event(Event::ServerStarted);
    story.put("before", "1", 0);
    let from_us = story.at_us;
    story.put("in doubt", "2", 0);
    let open = story.begin("answered later", put("3", 0));
    let to_us = story.at_us;
    story.records.push(Record::Answered { at_us: to_us + 9, call: open, outcome: known_as("3") });
    story.pass_ms(1);
    story.put("later", "4", 0);
    story.event(Event::ConnectionClosed { client: 0 });
    let cut = cut(&story.records, between(from_us, to_us));
    assert_eq!(cut[..3], story.records[..3]);
    assert_eq!(unanswered(&cut), [&put("2", 0), &put("3", 0)]);
    assert_eq!(cut[5..], [killed(to_us)]);
}

#[test]
fn what_has_changed_nothing_is_left_out_if_it_is_in_doubt() {
    let mut story = Story::default();
    let none = Outcome::Tasks(Vec::new());
    story.call("", take(None), none.clone());
    story.call("", pop(), none);
    story.call("", ack("r"), stale());
    story.call("", Operation::Plow { queue: QUEUE.to_owned() }, Outcome::Count(0));
    let refusal = Outcome::Refused("EXECABORT".to_owned());
    story.call("", Operation::Transaction { operations: vec![put("1", 0), ack("r")] }, refusal);
    assert_eq!(cut(&story.records, between(0, story.at_us)), [killed(story.at_us)]);
    let lost = Outcome::Refused("STORE".to_owned());
    story.call("", put("2", 0), lost);
    story.call("", put("3", 0), Outcome::Unknown);
    // It stays unknown whether these have happened, however long ago they were.
    for from_us in [0, story.at_us] {
        let cut = cut(&story.records, between(from_us, story.at_us));
        assert!(unanswered(&cut).ends_with(&[&put("2", 0), &put("3", 0)]), "{cut:?}");
    }
}

#[test]
fn tasks_that_came_in_doubt_are_named_by_all_their_names() {
    let mut story = Story::default();
    story.put("", "1", 0);
    story.put("", "2", 0);
    let from_us = story.at_us;
    story.take("", "1", "r1");
    // The second one has been moved, and has come back.
    story.take_as("", "3", "2", "r2");
    story.call("", pop(), popped("4"));
    let cut = cut(&story.records, between(from_us, story.at_us));
    let names = ["1", "2", "3", "4"].map(disturbed);
    assert_eq!(unanswered(&cut), names.iter().collect::<Vec<_>>());
}

#[test]
fn a_task_that_came_in_doubt_is_there_or_gone() {
    for is_gone in [true, false] {
        let mut story = Story::default();
        story.put("", "1", 0);
        let from_us = story.at_us;
        story.take("", "1", "r1");
        story.ack("", "r1");
        story.restore(from_us, story.at_us);
        if !is_gone {
            story.take("", "1", "r1-again");
            story.ack("", "r1-again");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn what_was_confirmed_before_must_have_been_restored() {
    let mut story = Story::default();
    story.put("", "1", 0);
    story.put("", "2", 0);
    story.take("", "1", "r1");
    story.ack("", "r1");
    let now_us = story.at_us;
    story.put("", "3", 0);
    story.take("", "2", "r2");
    story.restore(now_us, now_us);
    let mut lost = story;
    lost.drained();
    finds(Verdict::Lost, &lost);

    let mut resurrected = Story::default();
    resurrected.put("", "1", 0);
    resurrected.take("", "1", "r1");
    resurrected.ack("", "r1");
    resurrected.restore(resurrected.at_us, resurrected.at_us);
    resurrected.pop("", "1");
    resurrected.drained();
    finds(Verdict::Resurrected, &resurrected);
}

#[test]
fn what_came_after_the_moment_must_not_be_there() {
    let mut story = Story::default();
    story.put("", "1", 0);
    let now_us = story.at_us;
    story.pass_ms(1);
    story.put("", "2", 0);
    story.restore(now_us, now_us);
    story.pop("", "1");
    story.pop("", "2");
    story.drained();
    finds(Verdict::Invented, &story);
}

#[test]
fn a_task_with_another_place_in_doubt_comes_in_either_order() {
    for is_moved in [true, false] {
        let mut story = Story::default();
        story.put("", "1", 1);
        story.put("", "2", 5);
        let from_us = story.at_us;
        story.take("", "1", "r1");
        let mut behind = release("r1");
        if let Operation::Release { priority, .. } = &mut behind {
            *priority = Some(9);
        }
        story.call("", behind, ready());
        story.restore(from_us, story.at_us);
        for id in if is_moved { ["2", "1"] } else { ["1", "2"] } {
            story.pop("", id);
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn a_task_that_was_moved_in_doubt_is_in_either_queue() {
    for is_moved in [true, false] {
        let mut story = Story::default();
        story.put("", "1", 0);
        let from_us = story.at_us;
        let (from, to) = (QUEUE.to_owned(), LATER.to_owned());
        story.call("", Operation::Move { from, to, count: 1 }, Outcome::Count(1));
        let queue = LATER.to_owned();
        let take_later =
            Operation::Take { queue, count: 1, ttr_ms: None, otherwise_ordered: false };
        let moved = |receipt: &str| {
            let (id, receipt) = ("2".to_owned(), Some(receipt.to_owned()));
            Outcome::Tasks(vec![Delivery { id, receipt, payload: payload("1") }])
        };
        story.call("", take_later.clone(), moved("r2"));
        story.restore(from_us, story.at_us);
        if is_moved {
            story.call("", take_later, moved("r2-again"));
            story.ack("", "r2-again");
        } else {
            story.pop("", "1");
        }
        story.drained();
        story.event(Event::Drained { queue: LATER.to_owned(), buried_stay: false });
        story.passes();
    }
}

/// A transaction in doubt that finishes a task and puts another one.
fn in_doubt() -> (Story, u64) {
    let mut story = Story::default();
    story.put("", "1", 0);
    story.take("", "1", "r1");
    let from_us = story.at_us;
    let operations = vec![ack("r1"), put("2", 0)];
    let outcome = Outcome::Transaction(vec![Outcome::Done, known_as("2")]);
    story.call("", Operation::Transaction { operations }, outcome);
    (story, from_us)
}

#[test]
fn a_transaction_in_doubt_has_happened_as_a_whole_or_not_at_all() {
    let cases: [(&[&str], bool); 4] =
        [(&["1"], false), (&["2"], false), (&["1", "2"], true), (&[], true)];
    for (comes, is_torn) in cases {
        let (mut story, from_us) = in_doubt();
        story.restore(from_us, story.at_us);
        for id in comes {
            story.pop("", id);
        }
        story.drained();
        if is_torn {
            finds(Verdict::Torn, &story);
        } else {
            story.passes();
        }
    }
}

#[test]
fn of_a_transaction_in_doubt_nothing_may_be_left_if_its_task_was_finished_too() {
    for is_gone in [true, false] {
        let (mut story, from_us) = in_doubt();
        story.take("", "2", "r2");
        story.ack("", "r2");
        story.restore(from_us, story.at_us);
        if !is_gone {
            story.pop("", "1");
        }
        story.drained();
        story.passes();
    }
}

#[test]
fn what_is_repeated_goes_on_with_other_numbers() {
    let story = everything();
    let recorder = Recorder::new(Vec::new());
    for record in cut(&story.records, between(story.at_us, story.at_us)) {
        recorder.repeat(&record).unwrap();
    }
    // One connection only says that it is closed.
    let closed = Event::ConnectionClosed { client: 400 };
    recorder.repeat(&Record::Happened { at_us: story.at_us, event: closed }).unwrap();
    assert_eq!(recorder.client(), 401);
    let call = recorder.invoke(story.at_us, 401, take(None)).unwrap();
    recorder.answer(story.at_us, call, came("99", "r99")).unwrap();
    let written = records(recorder.finish().unwrap().as_slice()).unwrap();
    assert_eq!(written.len(), story.records.len() + 4);
    let before = &written[..written.len() - 2];
    let is_used = |it: &Record| matches!(it, Record::Invoked { call: own, .. } if *own == call);
    assert!(!before.iter().any(is_used), "call {call} was there before");
}
