//! What decoded values borrow apart from the bytes of the letter.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use bumpalo::Bump;

use crate::letters::Malformed;
use crate::task::Bytes;

/// How deep lists and boxes of one letter are within each other at most. A page of figures in a
/// transaction is four deep.
const DEPTH_MAX: u8 = 8;

/// Holds what a decoded value borrows: lists, commands within commands, and records.
#[derive(Default)]
pub struct Arena {
    lists: Bump,
    owned: Owned,
    depth: Cell<u8>,
    queue: RefCell<Option<Bytes>>,
}

/// Values that have to be dropped, each in a place of its own, so that a place never moves.
#[derive(Default)]
struct Owned {
    value: OnceCell<Box<dyn Any>>,
    next: OnceCell<Box<Self>>,
}

impl Arena {
    /// Holds a value that need not be dropped.
    pub fn hold<T: Copy>(&self, value: T) -> &T {
        self.lists.alloc(value)
    }

    /// Holds a list that `take` makes item by item.
    pub(super) fn hold_list<T: Copy>(
        &self,
        count: usize,
        mut take: impl FnMut() -> Result<T, Malformed>,
    ) -> Result<&[T], Malformed> {
        Ok(self.lists.alloc_slice_try_fill_with(count, |_| take())?)
    }

    /// Holds these values, which need not be dropped.
    pub(crate) fn hold_all<T: Copy>(&self, values: impl ExactSizeIterator<Item = T>) -> &[T] {
        self.lists.alloc_slice_fill_iter(values)
    }

    /// Holds a value that is dropped with the arena.
    pub(crate) fn keep<T: Any>(&self, value: T) -> &T {
        let mut place = &self.owned;
        while place.value.get().is_some() {
            place = place.next.get_or_init(Box::default);
        }
        let kept = place.value.get_or_init(|| Box::new(value)).downcast_ref();
        let Some(kept) = kept else { unreachable!("the place was empty") };
        kept
    }

    /// Returns the name of a queue. Consecutive tasks of one queue share it.
    pub(super) fn queue(&self, name: &[u8]) -> Bytes {
        let mut last = self.queue.borrow_mut();
        match &*last {
            Some(known) if **known == *name => Arc::clone(known),
            _ => Arc::clone(last.insert(Arc::from(name))),
        }
    }

    /// Calls `take`, which reads what is within something else. Refuses a letter that would need
    /// too much of the stack.
    pub(super) fn within<T>(
        &self,
        take: impl FnOnce() -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let depth = self.depth.get();
        if depth == DEPTH_MAX {
            return Err(Malformed::OutOfRange("depth"));
        }
        self.depth.set(depth + 1);
        let taken = take();
        self.depth.set(depth);
        taken
    }
}
