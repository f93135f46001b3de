//! Settings of queues, and changes of them.
//!
//! Settings are the change that makes them of the default ones. Whether the value in a change makes
//! sense is not known here.

use pinpriq_engine::settings::{Assignment, Misfit, Setting, Settings, Value};

use crate::Malformed;
use crate::list::{put_list, take_vec};
use crate::primitives::{
    put_bytes, put_number, put_span, take_byte, take_bytes, take_number, take_span,
};

pub(crate) fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    put_changes(out, &settings.changed().collect::<Vec<_>>());
}

pub(crate) fn take_settings(input: &mut &[u8]) -> Result<Settings, Malformed> {
    let changes = take_changes(input)?;
    match Settings::default().with(&changes) {
        Ok(settings) if settings.changed().eq(changes) => Ok(settings),
        Ok(_) | Err(Misfit) => Err(Malformed::OutOfRange("settings")),
    }
}

pub(crate) fn put_changes(out: &mut Vec<u8>, changes: &[Assignment<'_>]) {
    put_list(out, changes, |out, (setting, value)| {
        out.push(setting.tag);
        put_value(out, *value);
    });
}

pub(crate) fn take_changes<'a>(input: &mut &'a [u8]) -> Result<Vec<Assignment<'a>>, Malformed> {
    take_vec(input, |input| {
        let setting = Setting::tagged(take_byte(input)?);
        Ok((setting.ok_or(Malformed::OutOfRange("setting"))?, take_value(input)?))
    })
}

fn put_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::None => out.push(0),
        Value::Number(number) => {
            out.push(1);
            put_number(out, number);
        }
        Value::Span(span) => {
            out.push(2);
            put_span(out, span);
        }
        Value::Word(place) => out.extend([3, place]),
        Value::Bytes(bytes) => {
            out.push(4);
            put_bytes(out, bytes);
        }
    }
}

fn take_value<'a>(input: &mut &'a [u8]) -> Result<Value<'a>, Malformed> {
    Ok(match take_byte(input)? {
        0 => Value::None,
        1 => Value::Number(take_number(input)?),
        2 => Value::Span(take_span(input)?),
        3 => Value::Word(take_byte(input)?),
        4 => Value::Bytes(take_bytes(input)?),
        _ => return Err(Malformed::OutOfRange("value")),
    })
}
