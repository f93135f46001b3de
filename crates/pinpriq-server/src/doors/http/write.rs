//! Writes the answers: an output of the engine becomes a body, and what comes before it.
//!
//! Tasks are written one by one, as far as there is room and as their payloads are known. Nothing
//! is decided here; [`Form`] says what is wanted.

mod looking;
mod queue;
mod task;

use std::num::NonZeroU64;

use pinpriq_proto::batches::BatchState;
use pinpriq_proto::fields::told::{Holder, MEMBER};
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{StateKind, TaskId, TaskRecord};
use pinpriq_proto::unique::Awaited;
use serde::Serialize;

use self::task::write_fields;
use super::exchange::{Content, Exchange, Head};
use super::problem::{Problem, answer_aborted, answer_ended};
use crate::clients::contacts::Contacts;
use crate::doors::json::{Object, object};
use pinpriq_proto::request::form::Form;

pub(crate) use self::queue::{
    batch, connections, facts, figure_of, figures, limit, schedule, settings,
};

/// How much of an output is written, and how much may be.
pub(super) struct Extent<'p> {
    /// The tasks or members already written.
    pub(super) progress: &'p mut usize,
    /// The bytes after which no further one is begun.
    pub(super) most: usize,
    /// How many tasks can be written yet.
    pub(super) known: usize,
}

/// What an answer is written to besides its body, and who the holders of leases are.
pub(super) struct With<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) contacts: &'a Contacts,
}

impl With<'_> {
    fn form(&self) -> Form {
        self.exchange.form.get()
    }

    fn head(&self, status: u16, content: Content) {
        self.exchange.head(Head::new(status, content));
    }
}

/// Appends the next piece of an output. Returns whether it is complete.
pub(super) fn output(
    out: &mut Vec<u8>,
    output: &Output,
    with: &With<'_>,
    mut extent: Extent<'_>,
) -> bool {
    let Output::Reply { reply, .. } = output else {
        unreachable!("nothing subscribes over HTTP");
    };
    let form = with.form();
    match reply {
        reply if form == Form::Value => {
            with.exchange.note_reply(match reply {
                Reply::Refused(refusal) => Err(Problem::from(refusal)),
                reply => Ok(reply.clone()),
            });
            true
        }
        Reply::Tasks { tasks, .. } if form == Form::Octets => octets(out, tasks, with, &mut extent),
        Reply::Tasks { tasks, .. } => tasks_of(out, tasks, None, (with, false), extent),
        Reply::Shown(tasks) => tasks_of(out, tasks, None, (with, true), extent),
        Reply::Scanned { tasks, next } => {
            let next = next.map_or(0, NonZeroU64::get);
            tasks_of(out, tasks, Some(next), (with, true), extent)
        }
        Reply::Members(members) => {
            if *extent.progress == 0 {
                with.exchange.ok();
                out.extend_from_slice(b"{\"members\":[");
            }
            put_each(out, members, members.len(), extent, |it, member| {
                write_fields(it, &MEMBER, (member, &Holder::default()));
            })
        }
        Reply::Task(Some(_)) if extent.known == 0 => false,
        reply => {
            whole(out, reply, with);
            true
        }
    }
}

/// Appends tasks as far as they can be written. Returns whether these were all.
fn tasks_of(
    out: &mut Vec<u8>,
    tasks: &[TaskRecord],
    next: Option<u64>,
    (with, hidden): (&With<'_>, bool),
    extent: Extent<'_>,
) -> bool {
    let known = extent.known.min(tasks.len());
    if *extent.progress == 0 && (known > 0 || tasks.is_empty()) {
        let mut head = Head::new(200, Content::Json);
        head.hands_over = !hidden && !tasks.is_empty();
        with.exchange.head(head);
        out.push(b'{');
        if let Some(next) = next {
            out.extend_from_slice(format!("\"cursor\":\"{next}\",").as_bytes());
        }
        out.extend_from_slice(b"\"tasks\":[");
    }
    put_each(out, tasks, known, extent, |it, record| {
        task::write(it, record, Some(hidden), with.contacts);
    })
}

/// Appends the first `known` items of an array that ends an object, as far as there is room.
/// Returns whether the object is complete.
fn put_each<T>(
    out: &mut Vec<u8>,
    items: &[T],
    known: usize,
    Extent { progress, most, .. }: Extent<'_>,
    mut write: impl FnMut(&mut Object<'_>, &T),
) -> bool {
    for item in &items[*progress..known] {
        if *progress > 0 {
            if out.len() >= most {
                return false;
            }
            out.push(b',');
        }
        object(out, |it| write(it, item));
        *progress += 1;
    }
    let complete = *progress == items.len();
    if complete {
        out.extend_from_slice(b"]}");
    }
    complete
}

/// Appends the payload of the one task, if there is one.
fn octets(
    out: &mut Vec<u8>,
    tasks: &[TaskRecord],
    with: &With<'_>,
    extent: &mut Extent<'_>,
) -> bool {
    match tasks.first() {
        None => with.head(204, Content::Nothing),
        Some(_) if extent.known == 0 => return false,
        Some(record) => {
            *extent.progress = 1;
            with.exchange.head(Head { hands_over: true, ..task::head(record, false) });
            out.extend_from_slice(&record.payload);
        }
    }
    true
}

/// The sentence of the problem where a task is asked for that is not there.
const NO_TASK: &str = "there is no task of this id";

/// Appends an answer that is written in one piece.
fn whole(out: &mut Vec<u8>, reply: &Reply, with: &With<'_>) {
    match reply {
        Reply::Refused(refusal) => refused(out, refusal, with),
        // One receipt alone is acknowledged like any other.
        Reply::Done if with.form() == Form::Answers => answers(out, &[Ok(())], with),
        Reply::Done => with.head(204, Content::Nothing),
        Reply::Acks(all) => answers(out, all, with),
        Reply::Task(None) => missing(out, NO_TASK, with),
        Reply::Ended(ending) => {
            answer_ended(with.exchange, out, NO_TASK, |it| {
                for (name, detail) in ending.details() {
                    task::value(it, name, detail);
                }
            });
        }
        Reply::Task(Some(record)) if with.form() == Form::TaskOctets => {
            with.exchange.head(task::head(record, true));
            out.extend_from_slice(&record.payload);
        }
        Reply::Count(0) if with.form() == Form::Removed => {
            missing(out, "there is nothing to remove", with);
        }
        Reply::Count(_) if with.form() == Form::Removed => with.head(204, Content::Nothing),
        Reply::Put(_) | Reply::PutOutcome(..) | Reply::PutUnique(_) => put(out, reply, with),
        Reply::WithResult { reply: of, .. } if !matches!(**of, Reply::Outcome(..)) => {
            put(out, reply, with);
        }
        Reply::Transaction(replies) if with.form() == Form::Atomic => {
            with.exchange.ok();
            for reply in replies {
                part(out, reply, Form::Line, with);
                out.push(b'\n');
            }
        }
        Reply::Transaction(replies) => {
            with.exchange.ok();
            object(out, |it| {
                it.array("answers", replies.iter().enumerate(), |out, (place, reply)| {
                    part(out, reply, with.exchange.form_of_step(place), with);
                });
            });
        }
        reply => {
            with.exchange.ok();
            part(out, reply, with.form(), with);
        }
    }
}

/// Appends a reply as a value in this form, without a head.
fn part(out: &mut Vec<u8>, reply: &Reply, form: Form, with: &With<'_>) {
    match reply {
        Reply::Done | Reply::Ended(_) => out.extend_from_slice(b"null"),
        Reply::Put(_)
        | Reply::PutOutcome(..)
        | Reply::PutUnique(_)
        | Reply::Outcome(..)
        | Reply::WithResult { .. } => put_object(out, reply),
        Reply::Task(record) => match record {
            Some(record) => object(out, |it| task::write(it, record, None, with.contacts)),
            None => out.extend_from_slice(b"null"),
        },
        Reply::State(state) => only(out, "state", letter_of(*state)),
        Reply::Deadline(at) => {
            let name = if form == Form::Next { "next_at" } else { "deadline" };
            object(out, |it| {
                it.moment(name, *at);
            });
        }
        Reply::Count(_) if form == Form::Nothing => out.extend_from_slice(b"null"),
        Reply::Count(count) if form == Form::Pending => only(out, "pending", *count),
        Reply::Count(count) => only(out, "count", *count),
        Reply::Bulked { next, looked, changed } => object(out, |it| {
            it.set("cursor", next.map_or(0, NonZeroU64::get).to_string());
            it.set("looked", looked).set("changed", changed);
        }),
        Reply::Joined(incarnation) => only(out, "incarnation", *incarnation),
        Reply::Acks(all) => answers_object(out, all),
        Reply::Explained(explained) => looking::explanation(out, explained),
        Reply::Leases { leases, next } => {
            looking::leases(out, leases, next.as_deref(), with.contacts);
        }
        Reply::Shares { shares, next } => looking::shares(out, shares, next.as_deref()),
        Reply::Figures(figures) => queue::figures(out, figures, false),
        Reply::Schedule(shown) => schedule(out, shown),
        Reply::Limit(shown) => limit(out, shown),
        Reply::Batch(shown) => batch(out, shown),
        Reply::BatchAwaited(shown) => object(out, |it| {
            let is_done = shown.state == BatchState::Done;
            it.set("outcome", if is_done { "done" } else { "timeout" });
            it.member("batch", |out| batch(out, shown));
        }),
        Reply::Tasks { .. }
        | Reply::Shown(_)
        | Reply::Scanned { .. }
        | Reply::Exported(_)
        | Reply::Transaction(_)
        | Reply::Members(_)
        | Reply::Names { .. }
        | Reply::Settings { .. }
        | Reply::DeadlineSoon
        | Reply::Tubes(_)
        | Reply::Refused(_) => unreachable!("this is written in another way"),
    }
}

fn refused(out: &mut Vec<u8>, refusal: &Refusal, with: &With<'_>) {
    match with.form() {
        Form::Line => {
            Problem::from(refusal).put(out);
            out.push(b'\n');
        }
        Form::Answers if Problem::from(refusal).status() < 500 => {
            answers(out, &[Err(refusal.clone())], with);
        }
        _ if refusal.kind == RefusalKind::ExecAbort => {
            answer_aborted(with.exchange, out, refusal);
        }
        _ => Problem::from(refusal).answer(with.exchange, out),
    }
}

fn answers(out: &mut Vec<u8>, all: &[Result<(), Refusal>], with: &With<'_>) {
    with.exchange.ok();
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

fn missing(out: &mut Vec<u8>, sentence: &str, with: &With<'_>) {
    Problem::new("NOTFOUND", sentence).answer(with.exchange, out);
}

/// Appends the answer to a put.
fn put(out: &mut Vec<u8>, reply: &Reply, with: &With<'_>) {
    let form = with.form();
    if form == Form::Line {
        put_object(out, reply);
        out.push(b'\n');
        return;
    }
    if form == Form::Fired {
        with.exchange.ok();
        let (Reply::Put(id) | Reply::PutOutcome(id, _)) = reply else { return };
        return object(out, |it| {
            it.id("id", id);
        });
    }
    let is_new = !matches!(reply.bare(), Reply::PutUnique(put) if !put.new);
    with.head(if is_new { 201 } else { 200 }, Content::Json);
    put_object(out, reply);
}

fn put_object(out: &mut Vec<u8>, reply: &Reply) {
    object(out, |it| {
        put_members(it, reply.bare());
        if let Reply::WithResult { result, .. } = reply {
            match result {
                Some(result) => it.bytes("result", result),
                None => it.set("result", ()),
            };
        }
    });
}

/// Adds what a reply says about the end of a task.
fn put_members(it: &mut Object<'_>, reply: &Reply) {
    if let Reply::Outcome(outcome, state) = reply {
        it.set("outcome", outcome.word()).set("state", letter_of(*state));
        return;
    }
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
    it.id("id", id).set("new", new);
    if let Some(outcome) = outcome {
        it.set("outcome", outcome.map(Outcome::word));
    }
}

/// Appends an object with one member.
fn only(out: &mut Vec<u8>, name: &str, value: impl Serialize) {
    object(out, |it| {
        it.set(name, value);
    });
}

fn letter_of(state: Option<StateKind>) -> char {
    state.map_or('X', StateKind::letter)
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::fanout::MemberFigures;
    use pinpriq_proto::task::{ClientId, RequestId};
    use pinpriq_proto::time::Timestamp;

    use super::*;

    #[test]
    fn members_are_written_in_pieces() {
        const NAME_BYTES: usize = 1_000;
        let member = |number: u64| MemberFigures {
            member: vec![b'm'; NAME_BYTES].into(),
            incarnation: number,
            lease_until: Timestamp::from_ms(number),
            ready: 0,
            taken: 0,
        };
        let reply = Reply::Members((0..100).map(member).collect());
        let output = Output::Reply { client: ClientId(1), request: RequestId(1), reply };
        let (exchange, contacts) = (Exchange::default(), Contacts::default());
        exchange.begin(Form::Members);
        let with = With { exchange: &exchange, contacts: &contacts };
        let (mut whole, mut progress, mut is_complete) = (Vec::new(), 0, false);
        while !is_complete {
            let mut piece = Vec::new();
            let extent = Extent { progress: &mut progress, most: 3 * NAME_BYTES, known: 0 };
            is_complete = super::output(&mut piece, &output, &with, extent);
            assert!(piece.len() < 5 * NAME_BYTES, "a piece has {} bytes", piece.len());
            whole.extend(piece);
        }
        let told: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(told["members"].as_array().map(Vec::len), Some(100));
        assert_eq!(told["members"][99]["incarnation"], 99);
    }
}
