//! Writes the answers: an output of the engine becomes a head and a body.
//!
//! Tasks are written one by one, as far as there is room and as their payloads are known. Nothing
//! is decided here; [`Form`] says what is wanted.

mod looking;
mod queue;
mod task;

use std::num::NonZeroU64;

use pinpriq_proto::letters::{decode_output, encode_output};
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, RequestId, StateKind, TaskId, TaskRecord};
use pinpriq_proto::unique::Awaited;

use super::head::{Content, Head};
use super::json::object;
use super::problem::{Problem, answer_aborted};
use crate::clients::contacts::Contacts;
use pinpriq_proto::request::form::Form;

pub(crate) use self::queue::{connections, facts, figure_of, figures, schedule, settings};

/// How much of an output is written, and how much may be.
pub(super) struct Extent<'p> {
    /// The tasks already written.
    pub(super) progress: &'p mut usize,
    /// The bytes after which no further task is begun.
    pub(super) most: usize,
    /// How many tasks can be written yet.
    pub(super) known: usize,
}

/// Appends the next piece of an output. Returns whether it is complete.
pub(super) fn output(
    out: &mut Vec<u8>,
    output: &Output,
    form: Form,
    contacts: &Contacts,
    mut extent: Extent<'_>,
) -> bool {
    let Output::Reply { reply, .. } = output else {
        unreachable!("nothing subscribes over HTTP");
    };
    let with = &Written { form, contacts };
    match reply {
        reply if form == Form::Value && !matches!(reply, Reply::Refused(_)) => {
            value(out, reply);
            true
        }
        Reply::Tasks { tasks, .. } if form == Form::Octets => octets(out, tasks, &mut extent),
        Reply::Tasks { tasks, .. } => tasks_of(out, tasks, None, (with, false), extent),
        Reply::Shown(tasks) => tasks_of(out, tasks, None, (with, true), extent),
        Reply::Scanned { tasks, next } => {
            let next = next.map_or(0, NonZeroU64::get);
            tasks_of(out, tasks, Some(next), (with, true), extent)
        }
        Reply::Task(Some(_)) if extent.known == 0 => false,
        reply => {
            whole(out, reply, with);
            true
        }
    }
}

/// Appends a reply as the engine gave it, to be read by [`value_of`]. It has the payloads that are
/// in memory.
fn value(out: &mut Vec<u8>, reply: &Reply) {
    Head::new(200, Content::Octets).write(out);
    let mut output =
        Output::Reply { client: ClientId(0), request: RequestId(0), reply: reply.clone() };
    for task in output.tasks_mut() {
        task.away = None;
    }
    encode_output(&output, out);
}

/// Returns the reply in the body of an answer in [`Form::Value`].
pub(crate) fn value_of(body: &[u8]) -> Option<Reply> {
    match decode_output(body) {
        Ok(Output::Reply { reply, .. }) => Some(reply),
        _ => None,
    }
}

/// What is written, and who the holders of leases are.
pub(super) struct Written<'a> {
    form: Form,
    contacts: &'a Contacts,
}

/// Appends tasks as far as they can be written. Returns whether these were all.
fn tasks_of(
    out: &mut Vec<u8>,
    tasks: &[TaskRecord],
    next: Option<u64>,
    (with, hidden): (&Written<'_>, bool),
    extent: Extent<'_>,
) -> bool {
    let Extent { progress, most, known } = extent;
    let known = known.min(tasks.len());
    if *progress == 0 && (known > 0 || tasks.is_empty()) {
        let mut head = Head::new(200, Content::Json);
        head.hands_over = !hidden && !tasks.is_empty();
        head.write(out);
        out.push(b'{');
        if let Some(next) = next {
            out.extend_from_slice(format!("\"cursor\":\"{next}\",").as_bytes());
        }
        out.extend_from_slice(b"\"tasks\":[");
    }
    for record in &tasks[*progress..known] {
        if *progress > 0 {
            if out.len() >= most {
                return false;
            }
            out.push(b',');
        }
        object(out, |it| task::write(it, record, hidden, with.contacts));
        *progress += 1;
    }
    let complete = *progress == tasks.len();
    if complete {
        out.extend_from_slice(b"]}");
    }
    complete
}

/// Appends the payload of the one task, if there is one.
fn octets(out: &mut Vec<u8>, tasks: &[TaskRecord], extent: &mut Extent<'_>) -> bool {
    match tasks.first() {
        None => Head::new(204, Content::Nothing).write(out),
        Some(_) if extent.known == 0 => return false,
        Some(record) => {
            *extent.progress = 1;
            let mut head = task::head(record, false);
            head.hands_over = true;
            head.write(out);
            out.extend_from_slice(&record.payload);
        }
    }
    true
}

fn ok(out: &mut Vec<u8>) {
    Head::new(200, Content::Json).write(out);
}

/// Appends an answer that is written in one piece.
fn whole(out: &mut Vec<u8>, reply: &Reply, with: &Written<'_>) {
    match reply {
        Reply::Refused(refusal) => refused(out, refusal, with.form),
        // One receipt alone is acknowledged like any other.
        Reply::Done if with.form == Form::Answers => answers(out, &[Ok(())]),
        Reply::Done => Head::new(204, Content::Nothing).write(out),
        Reply::Acks(all) => answers(out, all),
        Reply::Task(None) => missing(out, "there is no task of this id"),
        Reply::Task(Some(record)) if with.form == Form::TaskOctets => {
            task::head(record, true).write(out);
            out.extend_from_slice(&record.payload);
        }
        Reply::Count(0) if with.form == Form::Removed => missing(out, "there is nothing to remove"),
        Reply::Count(_) if with.form == Form::Removed => {
            Head::new(204, Content::Nothing).write(out);
        }
        Reply::Put(_) | Reply::PutOutcome(..) | Reply::PutUnique(_) => put(out, reply, with.form),
        Reply::Transaction(replies) if with.form == Form::Atomic => {
            Head::new(200, Content::Json).write(out);
            for reply in replies {
                part(out, reply, with);
                out.push(b'\n');
            }
        }
        Reply::Transaction(replies) => {
            ok(out);
            object(out, |it| {
                it.array("answers", replies, |out, reply| part(out, reply, with));
            });
        }
        reply => {
            ok(out);
            part(out, reply, with);
        }
    }
}

/// Appends a reply as a value, without a head.
fn part(out: &mut Vec<u8>, reply: &Reply, with: &Written<'_>) {
    match reply {
        Reply::Done => out.extend_from_slice(b"null"),
        Reply::Put(_) | Reply::PutOutcome(..) | Reply::PutUnique(_) => put_object(out, reply),
        Reply::Task(record) => match record {
            Some(record) => object(out, |it| task::write(it, record, true, with.contacts)),
            None => out.extend_from_slice(b"null"),
        },
        Reply::State(state) => object(out, |it| {
            state_letter(it, *state);
        }),
        Reply::Deadline(at) => {
            let name = if with.form == Form::Next { "next_at" } else { "deadline" };
            object(out, |it| {
                match at {
                    Some(at) => it.moment(name, *at),
                    None => it.null(name),
                };
            });
        }
        Reply::Outcome(outcome, state) => object(out, |it| {
            it.text("outcome", outcome.word());
            state_letter(it, *state);
        }),
        Reply::Count(count) => object(out, |it| {
            it.number("count", *count);
        }),
        Reply::Joined(incarnation) => object(out, |it| {
            it.number("incarnation", *incarnation);
        }),
        Reply::Acks(all) => answers_object(out, all),
        Reply::Explained(explained) => looking::explanation(out, explained),
        Reply::Leases { leases, next } => {
            looking::leases(out, leases, next.as_deref(), with.contacts);
        }
        Reply::Figures(figures) => queue::figures(out, figures, false),
        Reply::Members(members) => queue::members(out, members),
        Reply::Schedule(shown) => schedule(out, shown),
        Reply::Tasks { .. }
        | Reply::Shown(_)
        | Reply::Scanned { .. }
        | Reply::Exported(_)
        | Reply::Transaction(_)
        | Reply::Names { .. }
        | Reply::Settings { .. }
        | Reply::DeadlineSoon
        | Reply::Tubes(_)
        | Reply::Refused(_) => unreachable!("this is written in another way"),
    }
}

fn refused(out: &mut Vec<u8>, refusal: &Refusal, form: Form) {
    match form {
        Form::Line => {
            Problem::from(refusal).put(out);
            out.push(b'\n');
        }
        Form::Answers if Problem::from(refusal).status() < 500 => {
            answers(out, &[Err(refusal.clone())]);
        }
        _ if refusal.kind == RefusalKind::ExecAbort => answer_aborted(out, refusal),
        _ => Problem::from(refusal).answer(out),
    }
}

fn answers(out: &mut Vec<u8>, all: &[Result<(), Refusal>]) {
    ok(out);
    answers_object(out, all);
}

fn answers_object(out: &mut Vec<u8>, all: &[Result<(), Refusal>]) {
    object(out, |it| {
        it.array("answers", all, |out, answer| match answer {
            Ok(()) => out.extend_from_slice(b"null"),
            Err(refusal) => Problem::from(refusal).put(out),
        });
    });
}

fn missing(out: &mut Vec<u8>, sentence: &str) {
    Problem::new("NOTFOUND", sentence).answer(out);
}

/// Appends the answer to a put.
fn put(out: &mut Vec<u8>, reply: &Reply, form: Form) {
    if form == Form::Line {
        put_object(out, reply);
        out.push(b'\n');
        return;
    }
    if form == Form::Fired {
        ok(out);
        let (Reply::Put(id) | Reply::PutOutcome(id, _)) = reply else { return };
        return object(out, |it| {
            it.id("id", id);
        });
    }
    let is_new = !matches!(reply, Reply::PutUnique(put) if !put.new);
    Head::new(if is_new { 201 } else { 200 }, Content::Json).write(out);
    put_object(out, reply);
}

fn put_object(out: &mut Vec<u8>, reply: &Reply) {
    let (id, new, outcome): (&TaskId, bool, Option<Option<Outcome>>) = match reply {
        Reply::Put(id) => (id, true, None),
        Reply::PutOutcome(id, outcome) => (id, true, Some(Some(*outcome))),
        Reply::PutUnique(put) => {
            let outcome = match put.awaited {
                Awaited::No => None,
                Awaited::Unknown => Some(None),
                Awaited::Known(outcome) => Some(Some(outcome)),
            };
            (&put.id, put.new, outcome)
        }
        _ => unreachable!("this is no reply to a put"),
    };
    object(out, |it| {
        it.id("id", id).truth("new", new);
        match outcome {
            None => {}
            Some(None) => {
                it.null("outcome");
            }
            Some(Some(outcome)) => {
                it.text("outcome", outcome.word());
            }
        }
    });
}

fn state_letter(it: &mut super::json::Object<'_>, state: Option<StateKind>) {
    let letter = state.map_or('X', StateKind::letter);
    it.text("state", letter.encode_utf8(&mut [0; 4]));
}
