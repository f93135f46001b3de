//! The commands that carry queues between servers, and how a page of an export is written.

use std::fmt::Write as _;

use pinpriq_proto::command::Command;
use pinpriq_proto::export::{Export, ExportPlace, Exported, Import};
use pinpriq_proto::wire::resp::Writer;

use super::call::{Call, Shape};
use super::looking::{no_cursor, page};
use super::queues::bytes_of_digits;
use super::records::{self, Record};
use super::settings::changes;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::{CURSOR, PAYLOAD};
use pinpriq_proto::request::parts::number;

type Done = Result<(), Fault>;

pub(super) fn export(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let after = parts.option(CURSOR).map(place_at).transpose()?.unwrap_or_default();
    let export = Export { queue: parts.word(0), after: after.borrowed(), count: page(call)? };
    call.ask(Shape::Plain, &Command::Export(export))
}

pub(super) fn import(call: &mut Call<'_, '_>) -> Done {
    let parts = call.parts;
    let (queue, text) = (parts.word(0), parts.word(1));
    let record = records::record(text, queue, parts.option(PAYLOAD))
        .map_err(|wrong| Fault::bad(format!("the record cannot be read: {wrong}")))?;
    let ask = |call: &mut Call<'_, '_>, import| call.ask(Shape::Plain, &Command::Import(import));
    match record {
        Record::Queue(None, paused) => ask(call, Import::Queue { queue, settings: None, paused }),
        Record::Queue(Some(settings), paused) => {
            let words: Vec<&[u8]> = settings.iter().flatten().map(Vec::as_slice).collect();
            let changes = changes(&words, "IMPORT")?;
            ask(call, Import::Queue { queue, settings: Some(&changes), paused })
        }
        Record::Task(task, until) => ask(call, Import::Task { task: &task, until }),
        Record::Window(window) => ask(call, Import::Window(&window)),
        Record::Schedule(schedule) => ask(call, Import::Schedule(&schedule)),
    }
}

/// Says what is wrong with a record of an export, as `IMPORT` would, without carrying it out.
pub fn check_record(record: &[u8], queue: &[u8], payload: Option<&[u8]>) -> Result<(), String> {
    records::record(record, queue, payload).map(|_| ())
}

/// Writes the start of a page: all but its tasks and what comes after them.
pub(super) fn page_head(writer: &mut Writer<'_>, page: &Exported) {
    writer.array(2);
    writer.bulk(page.next.as_ref().map_or_else(|| "0".to_owned(), cursor_after).as_bytes());
    writer.array(page.len());
    if let Some(queue) = &page.queue {
        writer.bulk(records::queue(queue).as_bytes());
    }
}

/// Writes the next records of a page, as [`super::encode::output`] does: tasks, windows, schedules.
/// Returns whether the page is complete.
pub(super) fn page_rest(
    writer: &mut Writer<'_>,
    page: &Exported,
    progress: &mut usize,
    most: usize,
    known: usize,
) -> bool {
    let tasks = page.tasks.len();
    let ready =
        if known < tasks { known } else { tasks + page.windows.len() + page.schedules.len() };
    while *progress < ready {
        if *progress > 0 && writer.buffer_bytes() >= most {
            return false;
        }
        writer.bulk(record_of(page, *progress).as_bytes());
        *progress += 1;
    }
    known >= tasks
}

/// Returns the record at this position: tasks come first, then windows, then schedules.
fn record_of(page: &Exported, at: usize) -> String {
    if let Some(task) = page.tasks.get(at) {
        return records::task(task, page.end_of(task.number));
    }
    let at = at - page.tasks.len();
    match page.windows.get(at) {
        Some(window) => records::window(window),
        None => records::schedule(&page.schedules[at - page.windows.len()]),
    }
}

/// Returns the cursor of the page after this place: a letter for the kind of the record before it,
/// and its seq, its key in hexadecimal digits, or its number.
fn cursor_after(place: &ExportPlace) -> String {
    match place {
        ExportPlace::Start => "0".to_owned(),
        ExportPlace::Task(seq) => format!("t{seq}"),
        ExportPlace::Window(key) => {
            let mut cursor = String::from("w");
            for byte in &**key {
                let _ = write!(cursor, "{byte:02x}");
            }
            cursor
        }
        ExportPlace::Schedule(number) => format!("s{number}"),
    }
}

/// Returns the place that a cursor stands for.
fn place_at(cursor: &[u8]) -> Result<ExportPlace, Fault> {
    let place = match cursor {
        b"0" => Some(ExportPlace::Start),
        [b't', seq @ ..] => number(seq).map(ExportPlace::Task),
        [b'w', key @ ..] => bytes_of_digits(key).map(|key| ExportPlace::Window(key.into())),
        [b's', known @ ..] => number(known).map(ExportPlace::Schedule),
        _ => None,
    };
    place.ok_or_else(|| no_cursor(cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_of_exports_come_back_from_their_text() {
        for place in [
            ExportPlace::Start,
            ExportPlace::Task(u64::MAX),
            ExportPlace::Window(b"".as_slice().into()),
            ExportPlace::Window([0, 255, b't'].as_slice().into()),
            ExportPlace::Schedule(7),
        ] {
            assert_eq!(place_at(cursor_after(&place).as_bytes()), Ok(place));
        }
        for wrong in ["", "1", "t", "t01", "t-1", "w0", "wxx", "s", "x1", "T1"] {
            assert!(place_at(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
