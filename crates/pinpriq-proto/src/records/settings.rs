//! Settings of queues as bytes, in the order of the table in the engine.
//!
//! A new setting needs no change here. Whether a value makes sense is not checked here.

use crate::settings::{Rate, Setting, Settings, Value};

use crate::records::Malformed;
use crate::records::primitives::{
    put_bytes, put_number, put_span, take_byte, take_bytes, take_number, take_small, take_span,
};

/// Follows the last setting.
const END: u8 = 0;

/// Follows the settings, if tasks age.
const AGEING_USUAL: u8 = 255;

/// Appends the settings that are not the default, in the order of the table.
pub fn put_settings(out: &mut Vec<u8>, settings: &Settings) {
    for (setting, value) in settings.changed() {
        out.push(setting.tag);
        put_value(out, value);
    }
    if let Some(usual) = settings.ageing_usual {
        out.push(AGEING_USUAL);
        put_span(out, usual);
    }
    out.push(END);
}

/// Takes what [`put_settings`] appends.
pub fn take_settings(input: &mut &[u8]) -> Result<Settings, Malformed> {
    let mut settings = Settings::default();
    let mut last = END;
    loop {
        let tag = take_byte(input)?;
        if tag == END {
            return Ok(settings);
        }
        if tag == AGEING_USUAL && last < tag {
            settings.ageing_usual = Some(take_span(input)?);
            last = tag;
            continue;
        }
        let setting = Setting::tagged(tag).ok_or(Malformed::UnknownAttribute(tag))?;
        let value = take_value(input)?;
        let is_usual = setting.is_default(value);
        if tag <= last || is_usual || (setting.write)(&mut settings, value).is_err() {
            return Err(Malformed::OutOfRange(setting.name));
        }
        last = tag;
    }
}

/// Appends the value of a setting.
pub fn put_value(out: &mut Vec<u8>, value: Value<'_>) {
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
        Value::Rate(Rate { count, per }) => {
            out.push(5);
            put_number(out, count.into());
            put_span(out, per);
        }
    }
}

/// Takes what [`put_value`] appends.
pub fn take_value<'a>(input: &mut &'a [u8]) -> Result<Value<'a>, Malformed> {
    Ok(match take_byte(input)? {
        0 => Value::None,
        1 => Value::Number(take_number(input)?),
        2 => Value::Span(take_span(input)?),
        3 => Value::Word(take_byte(input)?),
        4 => Value::Bytes(take_bytes(input)?),
        5 => Value::Rate(Rate { count: take_small(input, "rate")?, per: take_span(input)? }),
        _ => return Err(Malformed::OutOfRange("value")),
    })
}
