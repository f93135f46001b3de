//! Encodes the outputs of the engine as RESP.

use std::num::NonZeroU64;

use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::fields::TASK;
use pinpriq_proto::fields::told::{BATCH, Holder, LIMIT, MEMBER, SCHEDULE};
use pinpriq_proto::reply::{Outcome, Output, Refusal, Reply};
use pinpriq_proto::settings::{Paused, Settings, Shown as Setting};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::{Bytes, TaskId, TaskRecord};
use pinpriq_proto::unique::{Awaited, PutUnique};
use pinpriq_proto::wire::resp::Writer;

use super::call::Shape;
use super::values::{moment, state_letter, task_id, value, whole, write_fields};
use super::{carrying, looking};
use crate::clients::contacts::Contacts;
use crate::figures::{Value, histogram_line, stats};
use pinpriq_proto::request::cursors::name::cursor_after;
use pinpriq_proto::request::parts::receipt_numbers;

/// Appends an output if it is one of the most frequent ones, which have one piece. Returns whether
/// it is.
#[inline]
pub(crate) fn plain(output: &Output, writer: &mut Writer<'_>) -> bool {
    match output {
        Output::Reply { reply: Reply::Done, .. } => writer.ok(),
        Output::Reply { reply: Reply::Put(TaskId::Number(number)), .. } => {
            writer.bulk_number(*number);
        }
        _ => return false,
    }
    true
}

/// Appends the next piece of an output that is not [`plain`].
///
/// The head of an array comes first, then tasks or members while the buffer is shorter than `most`
/// and tasks are among the first `known`. `progress` counts those already written. Returns whether
/// the output is complete.
#[inline]
pub(crate) fn output(
    output: &Output,
    (writer, contacts): (&mut Writer<'_>, &Contacts),
    progress: &mut usize,
    (most, with_meta): (usize, bool),
    known: usize,
) -> bool {
    match output {
        Output::Delivery { tasks, popped, .. } => {
            for task in &tasks[*progress..known.min(tasks.len())] {
                if with_meta {
                    writer.push(2);
                    writer.bulk(b"task");
                    meta((writer, contacts), task, Some(*popped));
                } else {
                    delivery(writer, task);
                }
                *progress += 1;
            }
            *progress == tasks.len()
        }
        Output::Notice(notice) => {
            let (what, length): (&[u8], _) =
                if notice.is_recall() { (b"recall", 4) } else { (b"cancel", 5) };
            writer.push(length);
            writer.bulk(what);
            writer.bulk(&notice.queue);
            task_id(writer, &notice.id);
            writer.bulk_numbers(&receipt_numbers(notice.receipt), b'-');
            if let Some(reason) = &notice.cancelled {
                writer.bulk(reason);
            }
            true
        }
        Output::Reply { reply: Reply::Tasks { tasks, popped }, request, .. } => {
            let shape = Shape::of(*request);
            task_array((writer, contacts), tasks, (shape, *popped), progress, most, known)
        }
        Output::Reply { reply: Reply::Shown(tasks), request, .. } => {
            // Looking at a task does not reveal the receipt of another's lease.
            let shape = (Shape::of(*request), true);
            task_array((writer, contacts), tasks, shape, progress, most, known)
        }
        Output::Reply { reply: Reply::Scanned { tasks, next }, request, .. } => {
            if *progress == 0 && (known > 0 || tasks.is_empty()) {
                looking::scanned_head(writer, next.map_or(0, NonZeroU64::get));
            }
            let shape = (Shape::of(*request), true);
            task_array((writer, contacts), tasks, shape, progress, most, known)
        }
        Output::Reply { reply: Reply::Exported(page), .. } => {
            if *progress == 0 && (known > 0 || page.tasks.is_empty()) {
                carrying::page_head(writer, page);
            }
            carrying::page_rest(writer, page, progress, most, known)
        }
        Output::Reply { reply: Reply::Members(members), .. } => {
            members_array(writer, members, progress, most)
        }
        Output::Reply { reply: Reply::Task(Some(_)), .. } if known == 0 => false,
        Output::Reply { request, reply, .. } => {
            whole_reply((writer, contacts), reply, Shape::of(*request));
            true
        }
    }
}

fn task_array(
    (writer, contacts): (&mut Writer<'_>, &Contacts),
    tasks: &[TaskRecord],
    (shape, hidden): (Shape, bool),
    progress: &mut usize,
    most: usize,
    known: usize,
) -> bool {
    let known = known.min(tasks.len());
    if *progress == 0 && (known > 0 || tasks.is_empty()) {
        writer.array(tasks.len());
    }
    for record in &tasks[*progress..known] {
        if *progress > 0 && writer.buffer_bytes() >= most {
            return false;
        }
        if shape == Shape::WithMeta {
            meta((writer, contacts), record, Some(hidden));
        } else {
            task(writer, record, hidden);
        }
        *progress += 1;
    }
    *progress == tasks.len()
}

fn whole_reply((writer, contacts): (&mut Writer<'_>, &Contacts), reply: &Reply, shape: Shape) {
    match reply {
        Reply::Done => writer.ok(),
        Reply::Put(id) => task_id(writer, id),
        Reply::PutOutcome(..)
        | Reply::PutUnique(_)
        | Reply::Outcome(..)
        | Reply::WithResult { .. } => ending(writer, reply),
        Reply::Tasks { .. } | Reply::Shown(_) | Reply::Scanned { .. } | Reply::Exported(_) => {
            unreachable!("tasks are written one by one")
        }
        Reply::Members(_) => unreachable!("members are written one by one"),
        Reply::Task(None) | Reply::Ended(_) => writer.null(),
        Reply::Task(Some(record)) => meta((writer, contacts), record, None),
        Reply::Explained(explained) => looking::explanation(writer, explained),
        Reply::Leases { leases, next } => {
            looking::leases_page((writer, contacts), leases, next.as_deref());
        }
        Reply::Shares { shares, next } => looking::shares_page(writer, shares, next.as_deref()),
        Reply::State(state) => state_letter(writer, *state),
        Reply::Deadline(deadline) => moment(writer, *deadline),
        Reply::Count(count) => whole(writer, *count),
        Reply::Bulked { next, looked, changed } => {
            writer.array(3);
            writer.bulk_number(next.map_or(0, NonZeroU64::get));
            whole(writer, *looked);
            whole(writer, *changed);
        }
        Reply::Acks(answers) => {
            writer.array(answers.len());
            for answer in answers {
                match answer {
                    Ok(()) => writer.ok(),
                    Err(refused) => refusal(writer, refused),
                }
            }
        }
        Reply::Settings { settings, paused, .. } => settings_map(writer, settings, *paused),
        Reply::Names { names, more } => page(writer, names, *more),
        Reply::Figures(figures) => figures_map(writer, figures, shape == Shape::OfOne),
        Reply::Joined(incarnation) => whole(writer, *incarnation),
        Reply::Schedule(shown) => write_fields(writer, &SCHEDULE, (&**shown, &Holder::default())),
        Reply::Limit(shown) => write_fields(writer, &LIMIT, (&**shown, &Holder::default())),
        Reply::Batch(shown) => write_fields(writer, &BATCH, (&**shown, &Holder::default())),
        Reply::BatchAwaited(shown) => {
            writer.array(2);
            writer.bulk(shown.outcome().as_bytes());
            write_fields(writer, &BATCH, (&**shown, &Holder::default()));
        }
        Reply::Transaction(replies) => {
            writer.array(replies.len());
            for reply in replies {
                whole_reply((&mut *writer, contacts), reply, Shape::Plain);
            }
        }
        Reply::Refused(refused) => refusal(writer, refused),
        Reply::DeadlineSoon | Reply::Tubes(_) => unreachable!("only another door asks for that"),
    }
}

fn members_array(
    writer: &mut Writer<'_>,
    members: &[MemberFigures],
    progress: &mut usize,
    most: usize,
) -> bool {
    if *progress == 0 {
        writer.array(members.len());
    }
    for figures in &members[*progress..] {
        if *progress > 0 && writer.buffer_bytes() >= most {
            return false;
        }
        write_fields(writer, &MEMBER, (figures, &Holder::default()));
        *progress += 1;
    }
    true
}

fn task(writer: &mut Writer<'_>, record: &TaskRecord, hidden: bool) {
    writer.array(4);
    writer.bulk(&record.queue);
    task_id(writer, &record.id);
    receipt(writer, record, hidden);
    writer.bulk(&record.payload);
}

fn delivery(writer: &mut Writer<'_>, record: &TaskRecord) {
    writer.push(5);
    writer.bulk(b"task");
    writer.bulk(&record.queue);
    task_id(writer, &record.id);
    receipt(writer, record, false);
    writer.bulk(&record.payload);
}

/// Writes everything that is known about a task. The receipt is left out, hidden or shown.
fn meta(
    (writer, contacts): (&mut Writer<'_>, &Contacts),
    record: &TaskRecord,
    hidden: Option<bool>,
) {
    let fields = TASK.iter().filter(|field| field.shown.is_in(hidden.is_none()));
    writer.map(fields.clone().count());
    contacts.see(record, hidden.unwrap_or(true), |seen| {
        for field in fields {
            writer.bulk(field.name.as_bytes());
            value(writer, (field.read)(seen));
        }
    });
}

/// Writes the receipt of the current lease, unless the task was popped or only looked at.
fn receipt(writer: &mut Writer<'_>, record: &TaskRecord, hidden: bool) {
    match record.receipt().filter(|_| !hidden) {
        Some(receipt) => writer.bulk_numbers(&receipt_numbers(receipt), b'-'),
        None => writer.null(),
    }
}

fn page(writer: &mut Writer<'_>, names: &[Bytes], more: bool) {
    writer.array(2);
    match names.last().filter(|_| more) {
        Some(last) => writer.bulk(cursor_after(last).as_bytes()),
        None => writer.bulk(b"0"),
    }
    writer.array(names.len());
    for name in names {
        writer.bulk(name);
    }
}

fn figures_map(writer: &mut Writer<'_>, figures: &Figures, of_one_queue: bool) {
    let told = stats::values(figures, of_one_queue);
    writer.map(told.len());
    for (name, value) in told {
        writer.bulk(name.as_bytes());
        figure(writer, value);
    }
}

fn figure(writer: &mut Writer<'_>, value: Value) {
    match value {
        Value::Number(number) => whole(writer, number),
        Value::Missing => writer.null(),
        Value::Text(text) => writer.bulk(text.as_bytes()),
        Value::Histogram(histogram) => writer.bulk(histogram_line(&histogram).as_bytes()),
        values => {
            let numbers = values.numbers();
            writer.map(numbers.len());
            for (label, number) in numbers {
                writer.bulk(label.as_bytes());
                whole(writer, number);
            }
        }
    }
}

fn settings_map(writer: &mut Writer<'_>, settings: &Settings, paused: Paused) {
    let shown = stats::settings(settings, paused);
    writer.map(shown.len());
    for (name, shown) in shown {
        writer.bulk(name.as_bytes());
        match shown {
            Setting::None => writer.null(),
            Setting::Number(number) => whole(writer, number),
            Setting::Text(text) => writer.bulk(text),
            Setting::Rate(rate) => writer.bulk(rate.to_string().as_bytes()),
        }
    }
}

/// Writes how a task ended, and what has come of the work if that was asked for.
fn ending(writer: &mut Writer<'_>, reply: &Reply) {
    let more = usize::from(matches!(reply, Reply::WithResult { .. }));
    match reply.bare() {
        Reply::PutOutcome(id, ended) => {
            writer.array(2 + more);
            task_id(writer, id);
            outcome(writer, *ended);
        }
        Reply::PutUnique(PutUnique { id, new, awaited }) => {
            writer.array(if *awaited == Awaited::No { 2 } else { 3 } + more);
            task_id(writer, id);
            whole(writer, u64::from(*new));
            match awaited {
                Awaited::No => {}
                Awaited::Unknown => writer.null(),
                Awaited::Known(ended) => outcome(writer, *ended),
            }
        }
        Reply::Outcome(ended, state) => {
            writer.array(2 + more);
            outcome(writer, *ended);
            state_letter(writer, *state);
        }
        _ => unreachable!("this says nothing about the end of a task"),
    }
    if let Reply::WithResult { result, .. } = reply {
        match result {
            Some(result) => writer.bulk(result),
            None => writer.null(),
        }
    }
}

fn outcome(writer: &mut Writer<'_>, outcome: Outcome) {
    writer.bulk(outcome.word().as_bytes());
}

pub(crate) fn refusal(writer: &mut Writer<'_>, refusal: &Refusal) {
    writer.error(refusal.kind.word(), &refusal.sentence);
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::task::{ClientId, RequestId};
    use pinpriq_proto::time::Timestamp;
    use pinpriq_proto::wire::resp::Protocol;

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
        let contacts = Contacts::default();
        let pieces_of = |most: usize| {
            let (mut whole, mut progress, mut longest) = (Vec::new(), 0, 0);
            loop {
                let mut piece = Vec::new();
                let writer = &mut Writer::new(&mut piece, Protocol::Resp3);
                let form = (most, false);
                let complete = super::output(&output, (writer, &contacts), &mut progress, form, 0);
                longest = longest.max(piece.len());
                whole.extend(piece);
                if complete {
                    return (whole, longest);
                }
            }
        };
        let (whole, longest) = pieces_of(3 * NAME_BYTES);
        assert!(longest < 5 * NAME_BYTES, "a piece has {longest} bytes");
        assert_eq!(whole, pieces_of(usize::MAX).0);
    }
}
