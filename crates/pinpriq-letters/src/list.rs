//! Lists: how many there are, then each of them.
//!
//! A short list of what is borrowed or small needs no allocation. What is in a list is not known
//! here.

use std::ops::Deref;

use crate::Malformed;
use pinpriq_records::primitives::{put_number, take_number};

/// So many stand in the list itself.
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

/// Takes a list of what is cheap to copy; `blank` fills the places that are not needed.
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

/// Takes a list of anything.
pub(crate) fn take_vec<'a, T>(
    input: &mut &'a [u8],
    take: impl FnMut(&mut &'a [u8]) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = take_count(input)?;
    take_items(input, count, take)
}

/// Each item has one byte at least, so more than there are bytes cannot follow.
#[inline]
fn take_count(input: &mut &[u8]) -> Result<usize, Malformed> {
    let count = usize::try_from(take_number(input)?).map_err(|_| Malformed::Short)?;
    if count > input.len() { Err(Malformed::Short) } else { Ok(count) }
}

/// Room is made as the items come, however many were announced.
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
