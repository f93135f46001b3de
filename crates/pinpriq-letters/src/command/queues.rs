//! Commands that look after a queue, and the settings that they change.

use pinpriq_engine::command::{Assign, QueueCommand, QueueName, SettingsPatch, Sides};
use pinpriq_engine::settings::AfterAck;

use super::kinds::{
    QUEUE_CREATE, QUEUE_DROP, QUEUE_LIST, QUEUE_PAUSE, QUEUE_RESUME, QUEUE_SET, QUEUE_SHOW,
    QUEUE_STATS, QUEUE_TRUNCATE,
};
use super::parts::{
    begin_in, pack_assign, pack_queue, put_assign, put_queue, take_assign, take_queue,
};
use crate::Malformed;
use crate::fields::{ids_code, ids_of};
use crate::flags::{Packed, Packing};
use pinpriq_records::primitives::{
    put_bytes, put_if, put_number, put_span, take_bytes, take_if, take_number, take_span,
};

pub(super) fn encode(command: &QueueCommand<'_>, out: &mut Vec<u8>) {
    let mut flags = Packed::default();
    match command {
        QueueCommand::Create { queue, settings } => {
            out.push(QUEUE_CREATE);
            pack_settings(&mut flags, settings);
            flags.put(out);
            put_bytes(out, queue);
            put_settings(out, settings);
        }
        QueueCommand::Set { queue, settings } => {
            out.push(QUEUE_SET);
            pack_queue(&mut flags, queue);
            pack_settings(&mut flags, settings);
            flags.put(out);
            put_queue(out, queue);
            put_settings(out, settings);
        }
        QueueCommand::Show(queue) => begin_in(out, QUEUE_SHOW, queue),
        QueueCommand::List { prefix, after, count } => {
            out.push(QUEUE_LIST);
            flags.flag(after.is_some());
            flags.put(out);
            put_bytes(out, prefix);
            put_if(out, *after, put_bytes);
            put_number(out, *count as u64);
        }
        QueueCommand::Truncate(queue) => begin_in(out, QUEUE_TRUNCATE, queue),
        QueueCommand::Drop(queue) => {
            out.push(QUEUE_DROP);
            put_bytes(out, queue);
        }
        QueueCommand::Pause { queue, sides } => put_sides(out, QUEUE_PAUSE, queue, *sides),
        QueueCommand::Resume { queue, sides } => put_sides(out, QUEUE_RESUME, queue, *sides),
        QueueCommand::Stats(queue) => {
            out.push(QUEUE_STATS);
            flags.flag(queue.is_some());
            flags.flag(queue.is_some_and(|queue| queue.member.is_some()));
            flags.put(out);
            put_if(out, queue.as_ref(), put_queue);
        }
    }
}

fn put_sides(out: &mut Vec<u8>, kind: u8, queue: &QueueName<'_>, sides: Sides) {
    out.push(kind);
    let mut flags = Packed::default();
    pack_queue(&mut flags, queue);
    flags.code(
        2,
        match sides {
            Sides::Input => 0,
            Sides::Output => 1,
            Sides::Both => 2,
        },
    );
    flags.put(out);
    put_queue(out, queue);
}

fn pack_settings(flags: &mut Packed, settings: &SettingsPatch) {
    flags.code(
        3,
        match settings.ids {
            Assign::Keep => 0,
            Assign::To(ids) => 1 + ids_code(ids),
        },
    );
    pack_assign(flags, &settings.ttl);
    pack_assign(flags, &settings.ttr);
    flags.code(
        2,
        match settings.after_ack {
            Assign::Keep => 0,
            Assign::To(AfterAck::Delete) => 1,
            Assign::To(AfterAck::Keep) => 2,
            Assign::To(AfterAck::Zombie(_)) => 3,
        },
    );
    pack_assign(flags, &settings.capacity);
}

fn put_settings(out: &mut Vec<u8>, settings: &SettingsPatch) {
    put_assign(out, settings.ttl, put_span);
    put_assign(out, settings.ttr, put_span);
    match settings.after_ack {
        Assign::To(AfterAck::Zombie(stay)) => put_span(out, stay),
        Assign::Keep | Assign::To(AfterAck::Delete | AfterAck::Keep) => {}
    }
    put_assign(out, settings.capacity, put_number);
}

/// Takes what follows the kind.
pub(super) fn take<'a>(kind: u8, input: &mut &'a [u8]) -> Result<QueueCommand<'a>, Malformed> {
    let unknown = Malformed::UnknownKind { what: "command", kind };
    if kind == QUEUE_DROP {
        return take_bytes(input).map(QueueCommand::Drop);
    }
    if !(QUEUE_CREATE..=QUEUE_STATS).contains(&kind) {
        return Err(unknown);
    }
    let mut flags = Packing::take(input)?;
    Ok(match kind {
        QUEUE_CREATE => {
            let form = SettingsForm::of(&mut flags);
            flags.end()?;
            QueueCommand::Create { queue: take_bytes(input)?, settings: form.take(input)? }
        }
        QUEUE_SET => {
            let is_lane = flags.flag();
            let form = SettingsForm::of(&mut flags);
            flags.end()?;
            let queue = take_queue(is_lane, input)?;
            QueueCommand::Set { queue, settings: form.take(input)? }
        }
        QUEUE_SHOW => QueueCommand::Show(take_queue_alone(flags, input)?),
        QUEUE_LIST => {
            let has_after = flags.flag();
            flags.end()?;
            QueueCommand::List {
                prefix: take_bytes(input)?,
                after: take_if(has_after, input, take_bytes)?,
                count: usize::try_from(take_number(input)?)
                    .map_err(|_| Malformed::OutOfRange("count"))?,
            }
        }
        QUEUE_TRUNCATE => QueueCommand::Truncate(take_queue_alone(flags, input)?),
        QUEUE_PAUSE => {
            let (queue, sides) = take_sides(flags, input)?;
            QueueCommand::Pause { queue, sides }
        }
        QUEUE_RESUME => {
            let (queue, sides) = take_sides(flags, input)?;
            QueueCommand::Resume { queue, sides }
        }
        QUEUE_STATS => {
            let (is_there, is_lane) = (flags.flag(), flags.flag());
            flags.end()?;
            if is_lane && !is_there {
                return Err(Malformed::OutOfRange("flags"));
            }
            QueueCommand::Stats(take_if(is_there, input, |input| take_queue(is_lane, input))?)
        }
        _ => return Err(unknown),
    })
}

fn take_queue_alone<'a>(
    mut flags: Packing,
    input: &mut &'a [u8],
) -> Result<QueueName<'a>, Malformed> {
    let is_lane = flags.flag();
    flags.end()?;
    take_queue(is_lane, input)
}

fn take_sides<'a>(
    mut flags: Packing,
    input: &mut &'a [u8],
) -> Result<(QueueName<'a>, Sides), Malformed> {
    let is_lane = flags.flag();
    let sides = match flags.code(2) {
        0 => Sides::Input,
        1 => Sides::Output,
        2 => Sides::Both,
        _ => return Err(Malformed::OutOfRange("sides")),
    };
    flags.end()?;
    Ok((take_queue(is_lane, input)?, sides))
}

/// Which settings change, as the flags tell it.
struct SettingsForm {
    ids: u8,
    ttl: u8,
    ttr: u8,
    after_ack: u8,
    capacity: u8,
}

impl SettingsForm {
    fn of(flags: &mut Packing) -> Self {
        Self {
            ids: flags.code(3),
            ttl: flags.code(2),
            ttr: flags.code(2),
            after_ack: flags.code(2),
            capacity: flags.code(2),
        }
    }

    fn take(self, input: &mut &[u8]) -> Result<SettingsPatch, Malformed> {
        Ok(SettingsPatch {
            ids: match self.ids {
                0 => Assign::Keep,
                code => Assign::To(ids_of(code - 1)?),
            },
            ttl: take_assign(self.ttl, input, take_span)?,
            ttr: take_assign(self.ttr, input, take_span)?,
            after_ack: match self.after_ack {
                0 => Assign::Keep,
                1 => Assign::To(AfterAck::Delete),
                2 => Assign::To(AfterAck::Keep),
                _ => Assign::To(AfterAck::Zombie(take_span(input)?)),
            },
            capacity: take_assign(self.capacity, input, take_number)?,
        })
    }
}
