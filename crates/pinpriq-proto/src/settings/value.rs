//! The values of settings, in one type for all settings.
//!
//! Converts each field of [`super::Settings`] to a value and back. The bounds of a value are in the
//! table.

use super::{AfterAck, Ids, OnExpiry, Overflow, Rate};
use crate::task::Bytes;
use crate::time::Span;

/// The value of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// No value, for a setting that is optional.
    None,
    /// A number.
    Number(u64),
    /// A duration.
    Span(Span),
    /// The word at this position in the list of the setting.
    Word(u8),
    /// Bytes from a user, such as a name.
    Bytes(&'a [u8]),
    /// A number in a time.
    Rate(Rate),
}

/// A setting cannot have a value of this kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfit;

impl From<Ids> for Value<'_> {
    fn from(ids: Ids) -> Self {
        Self::Word(ids as u8)
    }
}

impl TryFrom<Value<'_>> for Ids {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        let Value::Word(place) = value else { return Err(Misfit) };
        Self::ALL.get(usize::from(place)).copied().ok_or(Misfit)
    }
}

impl From<AfterAck> for Value<'_> {
    fn from(after_ack: AfterAck) -> Self {
        match after_ack {
            AfterAck::Delete => Self::Word(0),
            AfterAck::Keep => Self::Word(1),
            AfterAck::Zombie(stay) => Self::Span(stay),
        }
    }
}

impl TryFrom<Value<'_>> for AfterAck {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Word(0) => Ok(Self::Delete),
            Value::Word(1) => Ok(Self::Keep),
            Value::Span(stay) => Ok(Self::Zombie(stay)),
            _ => Err(Misfit),
        }
    }
}

impl From<OnExpiry> for Value<'_> {
    fn from(on_expiry: OnExpiry) -> Self {
        Self::Word(on_expiry as u8)
    }
}

impl TryFrom<Value<'_>> for OnExpiry {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Word(0) => Ok(Self::Delete),
            Value::Word(1) => Ok(Self::DeadLetter),
            _ => Err(Misfit),
        }
    }
}

impl From<Overflow> for Value<'_> {
    fn from(overflow: Overflow) -> Self {
        Self::Word(overflow as u8)
    }
}

impl TryFrom<Value<'_>> for Overflow {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Word(0) => Ok(Self::Refuse),
            Value::Word(1) => Ok(Self::Evict),
            _ => Err(Misfit),
        }
    }
}

/// Off, or on.
impl From<bool> for Value<'_> {
    fn from(is_on: bool) -> Self {
        Self::Word(u8::from(is_on))
    }
}

impl TryFrom<Value<'_>> for bool {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Word(0) => Ok(false),
            Value::Word(1) => Ok(true),
            _ => Err(Misfit),
        }
    }
}

impl From<Option<Rate>> for Value<'_> {
    fn from(rate: Option<Rate>) -> Self {
        rate.map_or(Self::None, Self::Rate)
    }
}

impl TryFrom<Value<'_>> for Option<Rate> {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::None => Ok(None),
            Value::Rate(rate) => Ok(Some(rate)),
            _ => Err(Misfit),
        }
    }
}

impl From<Span> for Value<'_> {
    fn from(span: Span) -> Self {
        Self::Span(span)
    }
}

impl TryFrom<Value<'_>> for Span {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        if let Value::Span(span) = value { Ok(span) } else { Err(Misfit) }
    }
}

impl<'a> From<&'a Option<Bytes>> for Value<'a> {
    fn from(bytes: &'a Option<Bytes>) -> Self {
        bytes.as_deref().map_or(Self::None, Self::Bytes)
    }
}

impl TryFrom<Value<'_>> for Option<Bytes> {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::None => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes.into())),
            _ => Err(Misfit),
        }
    }
}

impl From<Option<Span>> for Value<'_> {
    fn from(span: Option<Span>) -> Self {
        span.map_or(Self::None, Self::Span)
    }
}

impl TryFrom<Value<'_>> for Option<Span> {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::None => Ok(None),
            Value::Span(span) => Ok(Some(span)),
            _ => Err(Misfit),
        }
    }
}

impl From<Option<u64>> for Value<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::None, Self::Number)
    }
}

impl TryFrom<Value<'_>> for Option<u64> {
    type Error = Misfit;

    fn try_from(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::None => Ok(None),
            Value::Number(number) => Ok(Some(number)),
            _ => Err(Misfit),
        }
    }
}
