//! Lists: the number of items, then each item.
//!
//! A short list of borrowed or small items needs no allocation. This module knows nothing about the
//! items.

use crate::records::primitives::{put_number, take_number};

use std::ops::Deref;

use crate::letters::Malformed;

/// The number of items that fit in the list itself.
const ROOM: usize = 8;

/// A list that was decoded.
pub(crate) enum List<T> {
    Few { items: [T; ROOM], count: usize },
    Many(Vec<T>),
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Few { items, count } => &items[..*count],
            Self::Many(items) => items,
        }
    }
}

#[inline]
pub(crate) fn put_list<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_number(out, items.len() as u64);
    for item in items {
        put(out, item);
    }
}

/// Takes a list of items that are cheap to copy. `blank` fills the unused places.
#[inline]
pub(crate) fn take_list<'a, T: Copy>(
    input: &mut &'a [u8],
    blank: T,
    mut take: impl FnMut(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<List<T>, Malformed> {
    let count = take_count(input)?;
    if count > ROOM {
        return take_items(input, count, take).map(List::Many);
    }
    let mut items = [blank; ROOM];
    for item in &mut items[..count] {
        *item = take(input)?;
    }
    Ok(List::Few { items, count })
}

/// Takes a list of any items.
pub(crate) fn take_vec<'a, T>(
    input: &mut &'a [u8],
    take: impl FnMut(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = take_count(input)?;
    take_items(input, count, take)
}

/// Each item has at least one byte, so there cannot be more items than bytes.
#[inline]
fn take_count(input: &mut &[u8]) -> Result<usize, Malformed> {
    let count = usize::try_from(take_number(input)?).map_err(|_| Malformed::Short)?;
    if count > input.len() { Err(Malformed::Short) } else { Ok(count) }
}

/// Allocates while the items come, not by the declared number.
fn take_items<'a, T>(
    input: &mut &'a [u8],
    count: usize,
    mut take: impl FnMut(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::with_capacity(count.min(ROOM));
    for _ in 0..count {
        items.push(take(input)?);
    }
    Ok(items)
}
