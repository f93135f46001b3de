//! Commands that carry queues between servers.

use std::sync::Arc;

use crate::change::ScheduleRecord;
use crate::command::Command;
use crate::export::{Export, ExportPlace, Import};
use crate::records::primitives::{
    end, put_bytes, put_if, put_moment, put_number, take_byte, take_bytes, take_if, take_moment,
    take_number, take_small,
};
use crate::records::schedule::{put_course, put_plan, take_course, take_plan};
use crate::records::task::{put_id, take_id};
use crate::unique::WindowRecord;

use super::kinds::{EXPORT, IMPORT_QUEUE, IMPORT_SCHEDULE, IMPORT_TASK, IMPORT_WINDOW};
use crate::letters::Malformed;
use crate::letters::flags::{Packed, Packing};
use crate::letters::paused;
use crate::letters::records::{put_record, take_record};
use crate::letters::settings::{put_changes, take_changes};

pub(super) fn encode_export(export: &Export<'_>, out: &mut Vec<u8>) {
    out.push(EXPORT);
    put_bytes(out, export.queue);
    put_place(out, export.after);
    put_number(out, u64::from(export.count));
}

pub(super) fn take_export<'a>(input: &mut &'a [u8]) -> Result<Export<'a>, Malformed> {
    let (queue, after) = (take_bytes(input)?, take_place(input)?);
    Ok(Export { queue, after, count: take_small(input, "count")? })
}

pub(crate) fn put_place(out: &mut Vec<u8>, place: ExportPlace<&[u8]>) {
    match place {
        ExportPlace::Start => out.push(0),
        ExportPlace::Task(seq) => {
            out.push(1);
            put_number(out, seq);
        }
        ExportPlace::Window(key) => {
            out.push(2);
            put_bytes(out, key);
        }
        ExportPlace::Schedule(number) => {
            out.push(3);
            put_number(out, number);
        }
    }
}

pub(crate) fn take_place<'a>(input: &mut &'a [u8]) -> Result<ExportPlace<&'a [u8]>, Malformed> {
    Ok(match take_byte(input)? {
        0 => ExportPlace::Start,
        1 => ExportPlace::Task(take_number(input)?),
        2 => ExportPlace::Window(take_bytes(input)?),
        3 => ExportPlace::Schedule(take_number(input)?),
        _ => return Err(Malformed::OutOfRange("place")),
    })
}

pub(super) fn encode_import(import: &Import<'_>, out: &mut Vec<u8>) {
    let mut flags = Packed::default();
    match *import {
        Import::Queue { queue, settings, paused: state } => {
            out.push(IMPORT_QUEUE);
            flags.flag(settings.is_some());
            paused::pack(&mut flags, state);
            flags.put(out);
            put_bytes(out, queue);
            paused::put(out, state);
            put_if(out, settings, put_changes);
        }
        Import::Task { task, until } => {
            out.push(IMPORT_TASK);
            flags.flag(until.is_some());
            flags.put(out);
            put_if(out, until, put_moment);
            put_record(out, task);
        }
        Import::Window(window) => {
            out.push(IMPORT_WINDOW);
            put_window(out, window);
        }
        Import::Schedule(schedule) => {
            out.push(IMPORT_SCHEDULE);
            put_schedule(out, schedule);
        }
    }
}

/// Takes the rest of an import, after its kind, and calls `then` with the command.
#[inline(never)]
pub(super) fn take_import<R>(
    kind: u8,
    input: &mut &[u8],
    then: impl FnOnce(&Command<'_>) -> R,
) -> Result<R, Malformed> {
    // What the command borrows from while `then` is called.
    let (changes, task, window, schedule);
    let import = match kind {
        IMPORT_QUEUE => {
            let mut flags = Packing::take(input)?;
            let has_settings = flags.flag();
            let choices = paused::unpack(&mut flags);
            flags.end()?;
            let queue = take_bytes(input)?;
            let paused = paused::take(&choices, input)?;
            changes = take_if(has_settings, input, take_changes)?;
            Import::Queue { queue, settings: changes.as_deref(), paused }
        }
        IMPORT_TASK => {
            let mut flags = Packing::take(input)?;
            let has_end = flags.flag();
            flags.end()?;
            let until = take_if(has_end, input, take_moment)?;
            task = take_record(input, None)?;
            Import::Task { task: &task, until }
        }
        IMPORT_WINDOW => {
            window = take_window(input)?;
            Import::Window(&window)
        }
        _ => {
            schedule = take_schedule(input)?;
            Import::Schedule(&schedule)
        }
    };
    end(input)?;
    Ok(then(&Command::Import(import)))
}

pub(crate) fn put_window(out: &mut Vec<u8>, window: &WindowRecord) {
    let WindowRecord { number, queue, key, id, until } = window;
    put_number(out, *number);
    put_bytes(out, queue);
    put_bytes(out, key);
    put_id(out, id);
    put_moment(out, *until);
}

pub(crate) fn take_window(input: &mut &[u8]) -> Result<WindowRecord, Malformed> {
    Ok(WindowRecord {
        number: take_number(input)?,
        queue: Arc::from(take_bytes(input)?),
        key: Arc::from(take_bytes(input)?),
        id: take_id(input)?,
        until: take_moment(input)?,
    })
}

pub(crate) fn put_schedule(out: &mut Vec<u8>, schedule: &ScheduleRecord) {
    let ScheduleRecord { number, name, plan, course } = schedule;
    put_number(out, *number);
    put_bytes(out, name);
    put_plan(out, plan);
    put_course(out, course);
}

pub(crate) fn take_schedule(input: &mut &[u8]) -> Result<ScheduleRecord, Malformed> {
    Ok(ScheduleRecord {
        number: take_number(input)?,
        name: Arc::from(take_bytes(input)?),
        plan: take_plan(input)?,
        course: take_course(input)?,
    })
}
