//! Pages of exports as bytes, apart from the records that commands have too.

use std::sync::Arc;

use crate::export::{Exported, QueueExported};
use crate::records::primitives::{
    put_bytes, put_if, put_moment, put_number, take_bytes, take_if, take_moment, take_number,
};
use crate::records::settings::{put_settings, take_settings};

use crate::letters::Malformed;
use crate::letters::command::carrying::{
    put_place, put_schedule, put_window, take_place, take_schedule, take_window,
};
use crate::letters::flags::{Packed, Packing};
use crate::letters::list::{put_list, take_vec};
use crate::letters::paused;
use crate::letters::records::{put_record, take_records};

pub(super) fn put_exported(out: &mut Vec<u8>, page: &Exported) {
    let Exported { queue, tasks, ends, windows, schedules, next } = page;
    let mut flags = Packed::default();
    flags.flag(queue.is_some());
    flags.flag(next.is_some());
    flags.put(out);
    put_if(out, queue.as_deref(), put_queue);
    put_if(out, next.as_ref(), |out, next| put_place(out, next.borrowed()));
    put_list(out, ends, |out, (number, until)| {
        put_number(out, *number);
        put_moment(out, *until);
    });
    put_list(out, windows, put_window);
    put_list(out, schedules, put_schedule);
    put_list(out, tasks, put_record);
}

pub(super) fn take_exported(input: &mut &[u8]) -> Result<Exported, Malformed> {
    let mut flags = Packing::take(input)?;
    let (has_queue, has_next) = (flags.flag(), flags.flag());
    flags.end()?;
    Ok(Exported {
        queue: take_if(has_queue, input, take_queue)?.map(Box::new),
        next: take_if(has_next, input, |input| Ok(take_place(input)?.kept()))?,
        ends: take_vec(input, |input| Ok((take_number(input)?, take_moment(input)?)))?,
        windows: take_vec(input, take_window)?,
        schedules: take_vec(input, take_schedule)?,
        tasks: take_records(input)?,
    })
}

fn put_queue(out: &mut Vec<u8>, queue: &QueueExported) {
    let QueueExported { name, settings, paused: state } = queue;
    let mut flags = Packed::default();
    flags.flag(settings.is_some());
    paused::pack(&mut flags, *state);
    flags.put(out);
    put_bytes(out, name);
    paused::put(out, *state);
    put_if(out, settings.as_ref(), put_settings);
}

fn take_queue(input: &mut &[u8]) -> Result<QueueExported, Malformed> {
    let mut flags = Packing::take(input)?;
    let has_settings = flags.flag();
    let choices = paused::unpack(&mut flags);
    flags.end()?;
    let name = Arc::from(take_bytes(input)?);
    let paused = paused::take(&choices, input)?;
    Ok(QueueExported { name, settings: take_if(has_settings, input, take_settings)?, paused })
}
