//! The loop against a server of a few lines, which answers each line with one line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::{Trouble, run};
use crate::dialect::{Answer, Dialect, Outcome, Slot};
use crate::plan::{Bound, Pace, Plan, Step};
use crate::tally::Figures;

/// Each request is a line with the name of the step; so is each answer.
struct Lines;

impl Dialect for Lines {
    fn request(&mut self, step: Step, _slot: &Slot, out: &mut Vec<u8>) {
        out.extend_from_slice(step.word().as_bytes());
        out.push(b'\n');
    }

    fn answer<'a>(
        &mut self,
        step: Step,
        slot: &mut Slot,
        bytes: &'a [u8],
    ) -> Result<Answer<'a>, String> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(Answer::Incomplete);
        };
        let outcome = match &bytes[..end] {
            word if word == step.word().as_bytes() => {
                if step == Step::DoneTake {
                    slot.token.set(b"held")?;
                }
                Outcome::Done
            }
            b"empty" => Outcome::Empty,
            b"BUSY now" => Outcome::Refused(b"BUSY now"),
            _ => return Err("no such answer".to_owned()),
        };
        Ok(Answer::Whole { outcome, length: end + 1 })
    }
}

/// Serves connections until the test ends. `answer` gets the line and the number of earlier lines
/// on the connection, and returns `None` to close it.
fn serve(answer: fn(&str, usize) -> Option<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                for (number, line) in lines.map_while(Result::ok).enumerate() {
                    let Some(answer) = answer(&line, number) else { return };
                    // In two pieces, so that answers come in parts as well.
                    let (one, other) = answer.split_at(answer.len() / 2);
                    let _ = stream.write_all(one.as_bytes());
                    let _ = stream.write_all(format!("{other}\n").as_bytes());
                }
            });
        }
    });
    address
}

fn plan(address: SocketAddr) -> Plan {
    Plan {
        address,
        encryption: None,
        connections: 3,
        depth: 4,
        cycle: [Step::Put, Step::Take, Step::Ack].map(Into::into).to_vec(),
        queues: 2,
        keeps_queue: false,
        priorities: 10,
        seed: 1,
        pace: Pace::AtOnce,
        bound: Bound::Cycles(1_000),
        until_empty: false,
    }
}

#[track_caller]
fn check_run(plan: &Plan) -> Figures {
    let jobs_done = AtomicU64::new(0);
    let figures = run(plan, &mut Lines, &jobs_done).unwrap();
    assert_eq!(jobs_done.load(Ordering::Relaxed), figures.jobs);
    figures
}

#[test]
fn every_cycle_is_one_job_of_its_requests() {
    let figures = check_run(&plan(serve(|line, _| Some(line.to_owned()))));
    assert_eq!((figures.jobs, figures.requests), (1_000, 3_000));
    assert_eq!((figures.jobs_in_time, figures.requests_in_time), (1_000, 3_000));
    for step in [Step::Put, Step::Take, Step::Ack] {
        assert_eq!(figures.step(step).done, 1_000);
        assert_eq!(figures.step(step).latency.count(), 1_000);
    }
    assert_eq!(figures.job_latency.count(), 1_000);
    assert_eq!((figures.empty, figures.refused()), (0, 0));
    assert!(figures.elapsed_ns > 0);
}

#[test]
fn tasks_that_are_still_held_are_finished_after_the_measurement() {
    let mut plan = plan(serve(|line, _| Some(line.to_owned())));
    plan.cycle = [Step::Put, Step::DoneTake].map(Into::into).to_vec();
    let figures = check_run(&plan);
    assert_eq!((figures.jobs, figures.requests, figures.refused()), (1_000, 2_000, 0));
    assert_eq!((figures.step(Step::DoneTake).done, figures.step(Step::Ack).done), (1_000, 0));

    // The acks are seen only here, where they are refused: one of each slot.
    plan.address =
        serve(|line, _| Some(if line == "ack" { "BUSY now".to_owned() } else { line.to_owned() }));
    let figures = check_run(&plan);
    assert_eq!((figures.jobs, figures.requests, figures.refused()), (1_000, 2_000, 12));
    plan.pace = Pace::PerSecond(50_000);
    assert_eq!(check_run(&plan).refused(), 12, "slots that wait for a job have their tasks too");
}

#[test]
fn an_open_loop_begins_what_is_due_and_no_more() {
    let mut plan = plan(serve(|line, _| Some(line.to_owned())));
    plan.pace = Pace::PerSecond(2_000);
    plan.bound = Bound::Cycles(200);
    let figures = check_run(&plan);
    assert_eq!(figures.jobs, 200);
    // The last one is due after 199 intervals, whatever the machine does.
    assert!(figures.elapsed_ns >= 99_500_000, "{}", figures.elapsed_ns);
}

#[test]
fn an_open_loop_counts_latency_from_the_moment_that_was_planned() {
    // With a single slot and far more jobs than it can do, the last ones are very late.
    let mut plan = plan(serve(|line, _| Some(line.to_owned())));
    (plan.connections, plan.depth) = (1, 1);
    plan.pace = Pace::PerSecond(u64::MAX);
    plan.bound = Bound::Cycles(50);
    let figures = check_run(&plan);
    let longest = figures.job_latency.max_ns();
    assert!(longest * 11 / 10 >= figures.elapsed_ns, "{longest} of {}", figures.elapsed_ns);
}

#[test]
fn the_end_of_the_time_ends_the_run_and_no_cycle() {
    let mut plan = plan(serve(|line, _| Some(line.to_owned())));
    plan.bound = Bound::Nanoseconds(20_000_000);
    let figures = check_run(&plan);
    assert_eq!(figures.requests, figures.jobs * 3, "cycles are finished");
    assert!(figures.jobs_in_time <= figures.jobs);
    assert!(figures.elapsed_ns >= 20_000_000);
}

#[test]
fn refusals_and_emptiness_end_cycles_and_are_counted() {
    let address = serve(|line, number| {
        Some(match (line, number % 10) {
            ("put", 0) => "BUSY now".to_owned(),
            ("take", 1..=3) => "empty".to_owned(),
            _ => line.to_owned(),
        })
    });
    let figures = check_run(&plan(address));
    assert!(figures.refusals["BUSY"] > 0 && figures.empty > 0);
    assert_eq!(figures.jobs + figures.empty + figures.refused(), 1_000);
}

#[test]
fn slots_stop_for_good_when_nothing_is_left_to_take() {
    let mut plan = plan(serve(|_, _| Some("empty".to_owned())));
    plan.cycle = vec![Step::Take.into(), Step::Ack.into()];
    plan.until_empty = true;
    let figures = check_run(&plan);
    assert_eq!((figures.jobs, figures.empty), (0, 24), "each slot looks into both queues");
}

#[test]
fn what_goes_wrong_is_told() {
    let jobs_done = AtomicU64::new(0);
    let plan_for = |answer| plan(serve(answer));
    let wrong = plan_for(|_, _| Some("nonsense".to_owned()));
    assert!(matches!(run(&wrong, &mut Lines, &jobs_done), Err(Trouble::Wrong(_))));
    let twice = plan_for(|line, _| Some(format!("{line}\n{line}\n{line}")));
    assert!(matches!(run(&twice, &mut Lines, &jobs_done), Err(Trouble::Wrong(_))));
    let closing = plan_for(|line, number| (number < 9).then(|| line.to_owned()));
    let trouble = run(&closing, &mut Lines, &jobs_done).unwrap_err();
    assert!(matches!(trouble, Trouble::Closed(_) | Trouble::Lost(..)), "{trouble}");
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let trouble = run(&plan(nowhere), &mut Lines, &jobs_done).unwrap_err();
    assert!(matches!(trouble, Trouble::Connect(..)), "{trouble}");
}
