//! The commands that carry queues between servers, and how a page of an export is written.

use pinpriq_proto::command::Command;
use pinpriq_proto::export::{Exported, Import};
use pinpriq_proto::wire::resp::Writer;

use super::call::{Call, Shape};
use super::records::{self, Record};
use pinpriq_proto::request::cursors::export::cursor_after;
use pinpriq_proto::request::fault::Fault;
use pinpriq_proto::request::options::PAYLOAD;
use pinpriq_proto::request::settings::changes;

type Done = Result<(), Fault>;

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
        Record::Share(share) => ask(call, Import::Share(&share)),
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
    for share in &page.shares {
        writer.bulk(records::share(share).as_bytes());
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
