//! The values that letters are made of, and the records that they share with the journal.

use std::num::NonZeroU64;

use super::{Arena, Letter, Malformed};
use crate::change::ScheduleRecord;
use crate::records::primitives::{
    put_bytes, put_moment, put_number, put_option, put_signed, put_span, take_array, take_byte,
    take_bytes, take_flag, take_moment, take_number, take_option, take_signed, take_small,
    take_span,
};
use crate::records::settings::{put_settings, put_value, take_settings, take_value};
use crate::records::task::{put_task, put_terms, take_task, take_terms};
use crate::refusal::Refusal;
use crate::settings::{Setting, Settings, Value};
use crate::shares::ShareRecord;
use crate::stats::Move;
use crate::task::{Bytes, GivenTerms, LaneName, TaskRecord, Terms};
use crate::time::{Span, Timestamp};
use crate::unique::WindowRecord;

#[cfg(test)]
use super::Dice;

/// The most items for which there is room before any of them has come.
const ROOM: usize = 64;

/// Implements [`Letter`] for a type with the functions that write and read it. A sample is what
/// `$sample` makes of the dice.
macro_rules! letter {
    ($type:ty, |$value:ident, $out:ident| $put:expr, |$input:ident, $arena:ident| $take:expr,
     |$dice:ident| $sample:expr $(,)?) => {
        impl<'letter> Letter<'letter> for $type {
            #[inline]
            fn put(&self, $out: &mut Vec<u8>) {
                let $value = self;
                $put;
            }

            #[inline]
            fn take($input: &mut &'letter [u8], $arena: &'letter Arena) -> Result<Self, Malformed> {
                Ok($take)
            }

            #[cfg(test)]
            fn sample($dice: &mut Dice) -> Self {
                $sample
            }
        }
    };
}

letter!(u64, |it, out| put_number(out, *it), |input, _arena| take_number(input)?, |dice| dice
    .number());
letter!(
    u32,
    |it, out| put_number(out, u64::from(*it)),
    |input, _arena| take_small(input, "number")?,
    |dice| u32::try_from(dice.number()).unwrap_or(u32::MAX)
);
letter!(
    u16,
    |it, out| put_number(out, u64::from(*it)),
    |input, _arena| u16::try_from(take_number(input)?)
        .map_err(|_| Malformed::OutOfRange("number"))?,
    |dice| u16::try_from(dice.number()).unwrap_or(u16::MAX)
);
letter!(
    usize,
    |it, out| put_number(out, *it as u64),
    |input, _arena| usize::try_from(take_number(input)?)
        .map_err(|_| Malformed::OutOfRange("number"))?,
    |dice| usize::try_from(dice.number()).unwrap()
);
letter!(i64, |it, out| put_signed(out, *it), |input, _arena| take_signed(input)?, |dice| dice
    .number()
    .cast_signed()
    >> dice.below(60));
letter!(
    NonZeroU64,
    |it, out| put_number(out, it.get()),
    |input, _arena| NonZeroU64::new(take_number(input)?).ok_or(Malformed::OutOfRange("number"))?,
    |dice| NonZeroU64::new(dice.number()).unwrap_or(NonZeroU64::MIN)
);
letter!(Span, |it, out| put_span(out, *it), |input, _arena| take_span(input)?, |dice| {
    Self::from_ms(dice.number())
});
letter!(Timestamp, |it, out| put_moment(out, *it), |input, _arena| take_moment(input)?, |dice| {
    Self::from_ms(dice.number())
});
letter!(&'letter [u8], |it, out| put_bytes(out, it), |input, _arena| take_bytes(input)?, |dice| {
    dice.bytes().leak()
});
letter!(
    Bytes,
    |it, out| put_bytes(out, it),
    |input, _arena| Self::from(take_bytes(input)?),
    |dice| dice.bytes().into()
);
letter!(
    &'letter str,
    |it, out| put_bytes(out, it.as_bytes()),
    |input, _arena| text(take_bytes(input)?)?,
    |dice| String::sample(dice).leak()
);
letter!(
    String,
    |it, out| put_bytes(out, it.as_bytes()),
    |input, _arena| text(take_bytes(input)?)?.to_owned(),
    |dice| String::from_utf8_lossy(&dice.bytes()).into_owned()
);
letter!(
    &'static Setting,
    |it, out| out.push(it.tag),
    |input, _arena| Setting::tagged(take_byte(input)?).ok_or(Malformed::OutOfRange("setting"))?,
    |dice| crate::settings::SETTINGS[dice.below(crate::settings::SETTINGS.len())]
);
letter!(
    Value<'letter>,
    |it, out| put_value(out, *it),
    |input, _arena| take_value(input)?,
    |dice| dice.value()
);
letter!(Settings, |it, out| put_settings(out, it), |input, _arena| take_settings(input)?, |dice| {
    dice.settings()
});
letter!(
    GivenTerms<'letter>,
    |it, out| put_terms(out, *it),
    |input, _arena| take_terms(input)?,
    |dice| dice.terms()
);
letter!(
    Terms,
    |it, out| put_terms(out, it.borrowed()),
    |input, _arena| take_terms(input)?.kept(),
    |dice| dice.terms()
);
letter!(
    [u8; 16],
    |it, out| out.extend_from_slice(it),
    |input, _arena| take_array(input)?,
    |dice| [dice.number().to_le_bytes()[0]; 16]
);
letter!(
    TaskRecord,
    |it, out| {
        let is_whole = it.away.is_none_or(|away| away.bytes == 0) || !it.payload.is_empty();
        assert!(is_whole, "a payload was left in the store and not read back");
        put_bytes(out, &it.queue);
        put_option(out, it.lane.as_ref(), |out, lane| {
            put_number(out, lane.number);
            put_bytes(out, &lane.member);
        });
        put_task(out, it);
    },
    |input, arena| {
        let queue = arena.queue(take_bytes(input)?);
        let lane = take_option(input, |input| {
            let number = take_number(input)?;
            Ok(LaneName { number, member: Bytes::from(take_bytes(input)?) })
        })?;
        take_task(input)?.kept(queue, lane)
    },
    |dice| dice.task()
);
letter!(
    Move,
    |it, out| (it.from(), it.to()).put(out),
    |input, arena| {
        let (from, to) = Letter::take(input, arena)?;
        Self::new(from, to)
    },
    |dice| Self::new(Letter::sample(dice), Letter::sample(dice))
);
letter!(
    Result<(), Refusal>,
    |it, out| put_option(out, it.as_ref().err(), |out, refusal| refusal.put(out)),
    |input, arena| <Option<Refusal> as Letter>::take(input, arena)?.map_or(Ok(()), Err),
    |dice| Option::<Refusal>::sample(dice).map_or(Ok(()), Err)
);

impl<'a> Letter<'a> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(input: &mut &'a [u8], _: &'a Arena) -> Result<Self, Malformed> {
        take_flag(input, "flag")
    }

    fn put_unusual(&self, _: &mut Vec<u8>) {}

    fn take_unusual(_: &mut &'a [u8], _: &'a Arena) -> Result<Self, Malformed> {
        Ok(true)
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        dice.is_usual()
    }
}

impl<'a, T: Letter<'a>> Letter<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        self.put_unusual(out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        if take_flag(input, "presence")? { T::take(input, arena).map(Some) } else { Ok(None) }
    }

    #[inline]
    fn put_unusual(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(out);
        }
    }

    #[inline]
    fn take_unusual(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        T::take(input, arena).map(Some)
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        if dice.is_usual() { None } else { Some(T::sample(dice)) }
    }
}

impl<'a, A: Letter<'a>, B: Letter<'a>> Letter<'a> for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        Ok((A::take(input, arena)?, B::take(input, arena)?))
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        (A::sample(dice), B::sample(dice))
    }
}

impl<'a, const N: usize> Letter<'a> for [u64; N] {
    fn put(&self, out: &mut Vec<u8>) {
        for number in self {
            put_number(out, *number);
        }
    }

    fn take(input: &mut &'a [u8], _: &'a Arena) -> Result<Self, Malformed> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = take_number(input)?;
        }
        Ok(numbers)
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        std::array::from_fn(|_| dice.number())
    }
}

impl<'a, T: Letter<'a>> Letter<'a> for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        arena.within(|| T::take(input, arena)).map(Self::new)
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        Self::new(T::sample(dice))
    }
}

impl<'a, T: Letter<'a>> Letter<'a> for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        let count = take_count::<T>(input)?;
        arena.within(|| {
            // Allocates while the items come, not by the declared number.
            let mut items = Self::with_capacity(count.min(ROOM));
            for _ in 0..count {
                items.push(T::take(input, arena)?);
            }
            Ok(items)
        })
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        (0..dice.length()).map(|_| T::sample(dice)).collect()
    }
}

impl<'a, T: Letter<'a> + Copy> Letter<'a> for &'a T {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        arena.within(|| T::take(input, arena)).map(|value| arena.hold(value))
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        Box::leak(Box::new(T::sample(dice)))
    }
}

impl<'a, T: Letter<'a> + Copy> Letter<'a> for &'a [T] {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    #[inline]
    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        let count = take_count::<T>(input)?;
        arena.within(|| arena.hold_list(count, || T::take(input, arena)))
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        Vec::sample(dice).leak()
    }
}

/// Implements [`Letter`] for references to records, which have to be dropped.
macro_rules! kept {
    ($($record:ty),+) => {$(
        impl<'a> Letter<'a> for &'a $record {
            fn put(&self, out: &mut Vec<u8>) {
                <$record as Letter<'_>>::put(self, out);
            }

            fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
                Ok(arena.keep(<$record>::take(input, arena)?))
            }

            #[cfg(test)]
            fn sample(dice: &mut Dice) -> Self {
                Box::leak(Box::new(<$record>::sample(dice)))
            }
        }
    )+};
}

kept!(TaskRecord, WindowRecord, ScheduleRecord, ShareRecord);

impl<'a> Letter<'a> for &'a [TaskRecord] {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }

    fn take(input: &mut &'a [u8], arena: &'a Arena) -> Result<Self, Malformed> {
        Ok(arena.keep(Vec::take(input, arena)?))
    }

    #[cfg(test)]
    fn sample(dice: &mut Dice) -> Self {
        Vec::sample(dice).leak()
    }
}

fn put_list<'a, T: Letter<'a>>(items: &[T], out: &mut Vec<u8>) {
    put_number(out, items.len() as u64);
    for item in items {
        item.put(out);
    }
}

/// Takes the length of a list. Each item has at least one byte, so there cannot be more items than
/// bytes.
fn take_count<'a, T: Letter<'a>>(input: &mut &[u8]) -> Result<usize, Malformed> {
    let count = usize::try_from(take_number(input)?).map_err(|_| Malformed::Short)?;
    match count {
        _ if count > T::MOST => Err(Malformed::OutOfRange("length of a list")),
        _ if count > input.len() => Err(Malformed::Short),
        _ => Ok(count),
    }
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed::OutOfRange("sentence"))
}
