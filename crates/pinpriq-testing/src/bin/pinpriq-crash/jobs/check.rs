//! What is left of jobs after a crash, compared with the replies.

use std::net::SocketAddr;

use pinpriq_proto::wire::beanstalkd::Request;

use super::TUBES;
use super::book::{Book, Fate, Job, State};
use super::load::begin;
use super::talk::{Heard, Talk};
use crate::fault::{Fallible, Fault};

/// The number of jobs that are asked for together.
const TOGETHER: usize = 100;
/// More than there are.
const ALL: u32 = 1_000_000;

/// Looks at every job whose id is known.
pub(crate) fn look(address: SocketAddr, book: &Book) -> Fallible<()> {
    let mut talk = Talk::connect(address)?;
    let jobs = book.all();
    let known: Vec<(u64, u64, &Job)> =
        jobs.iter().filter_map(|(number, job)| Some((*number, job.id?, job))).collect();
    for some in known.chunks(TOGETHER) {
        let both = |id| [Request::StatsJob { id }, Request::Peek { id }];
        let requests: Vec<Request<'_>> = some.iter().flat_map(|(_, id, _)| both(*id)).collect();
        talk.send(&requests)?;
        for (number, id, job) in some {
            let fate = match (talk.answer()?, talk.answer()?) {
                (Heard::Document(stats), Heard::Job(_, body)) => {
                    if field(&stats, "tube")? != TUBES[job.tube] {
                        book.fail(format!("the job {id} is in another tube"));
                    }
                    if body != job.body {
                        book.fail(format!("the job {id} has another body"));
                    }
                    fate_of(&stats)?
                }
                (Heard::Line(stats), Heard::Line(_)) if stats == "NOT_FOUND" => Fate::Gone,
                heard => return Err(format!("the job {id} was answered {heard:?}").into()),
            };
            book.found(*number, fate);
        }
    }
    Ok(())
}

/// Reserves and deletes all jobs, and compares those that came with those that were put.
pub(crate) fn drain(address: SocketAddr, book: &Book) -> Fallible<()> {
    let mut talk = begin(address)?;
    for tube in TUBES {
        talk.ask(Request::Use { tube: tube.as_bytes() })?;
        // Buried jobs come first, then delayed ones.
        loop {
            match talk.ask(Request::Kick { bound: ALL })? {
                Heard::Line(line) if line == "KICKED 0" => break,
                Heard::Line(line) if line.starts_with("KICKED ") => {}
                heard => return Err(format!("a kick was answered {heard:?}").into()),
            }
        }
    }
    // All that is left is ready now.
    for (number, job) in book.all() {
        for fate in job.fates {
            if let Fate::There(_, priority) = fate {
                book.ask(number, Fate::There(State::Ready, priority));
            }
        }
    }
    loop {
        match talk.ask(Request::ReserveWithTimeout { timeout_s: 0 })? {
            Heard::Job(id, body) => {
                let number = book.came(id, &body);
                if talk.ask(Request::Delete { id })? != Heard::Line("DELETED".to_owned()) {
                    book.fail(format!("the job {id} was reserved and not deleted"));
                }
                if let Some(number) = number {
                    book.done(book.ask(number, Fate::Gone));
                }
            }
            Heard::Line(line) if line == "TIMED_OUT" => break,
            heard => return Err(format!("the drain was answered {heard:?}").into()),
        }
    }
    for (number, _) in book.all() {
        book.found(number, Fate::Gone);
    }
    let Heard::Document(stats) = talk.ask(Request::Stats)? else {
        return Err("no document about the server".into());
    };
    for state in ["ready", "reserved", "delayed", "buried"] {
        let count = field(&stats, &format!("current-jobs-{state}"))?;
        if count != "0" {
            book.fail(format!("{count} jobs are {state} after the drain"));
        }
    }
    Ok(())
}

/// The state of a job, from what is shown of it.
fn fate_of(stats: &str) -> Fallible<Fate> {
    let kind = match field(stats, "state")? {
        "ready" => State::Ready,
        "delayed" => State::Delayed,
        "buried" => State::Buried,
        "reserved" => State::Reserved,
        other => return Err(format!("a job is {other}").into()),
    };
    Ok(Fate::There(kind, field(stats, "pri")?.parse()?))
}

/// A value in a document.
fn field<'a>(document: &'a str, key: &str) -> Fallible<&'a str> {
    let values = document.lines().filter_map(|line| line.split_once(": "));
    let mut found =
        values.filter(|(name, _)| *name == key).map(|(_, value)| value.trim_matches('"'));
    found.next().ok_or_else(|| Fault::from(format!("no {key} in {document}")))
}
