//! The values of settings, in one type for all settings.
//!
//! Converts each field of [`super::Settings`] to a value and back. The bounds of a value are in the
//! table.

use super::{AfterAck, Ids, OnExpiry, Overflow, Ranking, Rate};
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

/// A type that a field of [`super::Settings`] has.
pub(super) trait Field: Sized {
    /// Whether it may have no value.
    const OPTIONAL: bool = false;

    /// Its value.
    fn value(&self) -> Value<'_>;

    /// The field with this value.
    fn of(value: Value<'_>) -> Result<Self, Misfit>;
}

/// Says how types become values, and which values become the type.
macro_rules! fields {
    ($($type:ty: |$field:ident| $value:expr, $($pattern:pat => $back:expr),+;)*) => {$(
        impl From<$type> for Value<'_> {
            fn from($field: $type) -> Self {
                $value
            }
        }

        impl Field for $type {
            fn value(&self) -> Value<'_> {
                (*self).into()
            }

            fn of(value: Value<'_>) -> Result<Self, Misfit> {
                match value {
                    $($pattern => Ok($back),)+
                    _ => Err(Misfit),
                }
            }
        }
    )*};
}

fields! {
    bool: |is_on| Self::Word(u8::from(is_on)), Value::Word(0) => false, Value::Word(1) => true;
    Span: |span| Self::Span(span), Value::Span(span) => span;
    u64: |number| Self::Number(number), Value::Number(number) => number;
    Rate: |rate| Self::Rate(rate), Value::Rate(rate) => rate;
    Ids: |ids| Self::Word(ids as u8),
        Value::Word(0) => Self::Sequence,
        Value::Word(1) => Self::Time64,
        Value::Word(2) => Self::Uuid,
        Value::Word(3) => Self::Given;
    OnExpiry: |on_expiry| Self::Word(on_expiry as u8),
        Value::Word(0) => Self::Delete,
        Value::Word(1) => Self::DeadLetter;
    Overflow: |overflow| Self::Word(overflow as u8),
        Value::Word(0) => Self::Refuse,
        Value::Word(1) => Self::Evict;
    Ranking: |ranking| Self::Word(ranking as u8),
        Value::Word(0) => Self::Strict,
        Value::Word(1) => Self::Fair,
        Value::Word(2) => Self::Ageing;
    AfterAck: |after_ack| match after_ack {
            AfterAck::Delete => Self::Word(0),
            AfterAck::Keep => Self::Word(1),
            AfterAck::Zombie(stay) => Self::Span(stay),
        },
        Value::Word(0) => Self::Delete,
        Value::Word(1) => Self::Keep,
        Value::Span(stay) => Self::Zombie(stay);
}

impl<T: Copy> From<Option<T>> for Value<'_>
where
    Self: From<T>,
{
    fn from(field: Option<T>) -> Self {
        field.map_or(Self::None, Self::from)
    }
}

impl Field for u8 {
    fn value(&self) -> Value<'_> {
        Value::Number((*self).into())
    }

    fn of(value: Value<'_>) -> Result<Self, Misfit> {
        if let Value::Number(number) = value {
            number.try_into().or(Err(Misfit))
        } else {
            Err(Misfit)
        }
    }
}

impl Field for Bytes {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }

    fn of(value: Value<'_>) -> Result<Self, Misfit> {
        if let Value::Bytes(bytes) = value { Ok(bytes.into()) } else { Err(Misfit) }
    }
}

impl<T: Field> Field for Option<T> {
    const OPTIONAL: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::None, Field::value)
    }

    fn of(value: Value<'_>) -> Result<Self, Misfit> {
        if value == Value::None { Ok(None) } else { T::of(value).map(Some) }
    }
}
