//! Dice that roll what a fuzzer wrote: each choice is a byte or two of the input.
//!
//! So a changed byte changes one choice and leaves the others as they are. The runner of the
//! engine's random tests makes a generator for each step from a seed. Here the seed is ignored, and
//! all generators draw from the one input of their thread. After the end of the input, and for a
//! zero byte, the outcome is the most common one.

use std::cell::RefCell;

use crate::fuzz::feed::Feed;

thread_local! {
    /// The rest of the input, in reverse order.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Uses these bytes for the choices of this thread.
pub(crate) fn offer(bytes: &[u8]) {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.extend(bytes.iter().rev());
    });
}

/// Whether any input is left.
pub(crate) fn is_left() -> bool {
    INPUT.with_borrow(|input| !input.is_empty())
}

/// Replaces the generator of the engine's random tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice;

impl Dice {
    pub(crate) const fn new(_seed: u64) -> Self {
        Self
    }

    /// Returns a number less than `bound`.
    #[expect(clippy::unused_self, reason = "as the generator that it stands in for")]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The tests give low numbers to rare things.
        bound - 1 - chosen(bound)
    }

    /// Returns true once in `count` times.
    pub(crate) fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns one of several.
    #[expect(clippy::unused_self, reason = "as the generator that it stands in for")]
    pub(crate) fn pick<T: Copy>(&mut self, several: &[T]) -> T {
        several[usize::try_from(chosen(several.len() as u64)).unwrap_or(0)]
    }
}

/// Returns the next choice of the input, less than `bound`.
fn chosen(bound: u64) -> u64 {
    INPUT.with_borrow_mut(|input| {
        let mut next = [input.pop().unwrap_or(0), 0];
        if bound > 256 {
            next[1] = input.pop().unwrap_or(0);
        }
        let choice = Feed::new(&next).below(usize::try_from(bound).unwrap_or(usize::MAX));
        choice as u64
    })
}
