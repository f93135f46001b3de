//! Chooses the shares, costs, headers and attempts of tasks, and rules for shares.

use pinpriq_proto::command::Assign;
use pinpriq_proto::shares::{Own, ShareChange};
use pinpriq_proto::task::Retries;
use pinpriq_proto::task::headers::{self, Header};

use super::{Chooser, KEYS, Text, pick};

impl Chooser<'_> {
    /// What is done when a task fails, mostly what its queue says.
    pub(super) fn retries(&mut self) -> Retries {
        if !self.once_in(12) {
            return Retries::OF_QUEUE;
        }
        let attempts =
            (!self.once_in(4)).then(|| u32::try_from(1 + self.dice.below(3)).unwrap_or(1));
        let backoff = self.maybe_span(2);
        let (says_attempts, says_backoff) = (self.once_in(2), self.once_in(2));
        Retries {
            attempts: if says_attempts { Assign::To(attempts) } else { Assign::Keep },
            backoff: if says_backoff { Assign::To(backoff) } else { Assign::Keep },
            backoff_max: self.maybe_span(3),
        }
    }

    /// Some rules of a share. From time to time it has none of its own again.
    pub(super) fn share_change(&mut self) -> ShareChange {
        if self.once_in(4) {
            let (weight, limit, rate) = (Some(1), Some(Own::Default), Some(Own::Default));
            return ShareChange { weight, limit, rate };
        }
        let weight = Some([1, 2, 1_000][self.index(3)]);
        let limits = [Own::Default, Own::Is(None), Own::Is(Some(1)), Own::Is(Some(2))];
        let rates = [Own::Default, Own::Is(None), Own::Is(Some(self.rate()))];
        let limit = self.once_in(3).then(|| limits[self.index(limits.len())]);
        let rate = self.once_in(3).then(|| rates[self.index(rates.len())]);
        ShareChange { weight, limit, rate }
    }

    /// Some share and a cost. Few are refused.
    pub(super) fn share(&mut self) -> (Option<Text>, u32) {
        let share = self.once_in(3).then(|| pick(self.dice, &KEYS, KEYS.len() as u64));
        (share, if self.once_in(4) { self.cost() } else { 1 })
    }

    /// Chooses headers, mostly none. Some are out of bounds.
    pub(super) fn headers(&mut self) -> Option<Vec<u8>> {
        let lists: [&[Header<'_>]; 5] = [
            &[(b"a", b"1")],
            &[(b"trace.id", b"00-ff"), (b"b", b"")],
            &[(b"b", b"\xff\r\n")],
            &[(b"B", b"")],
            &[(b"a", b"1"), (b"a", b"1")],
        ];
        let known = if self.once_in(20) { lists.len() } else { 3 };
        self.once_in(4).then(|| headers::encode(lists[self.index(known)].iter().copied()))
    }

    pub(super) fn cost(&mut self) -> u32 {
        // A high cost shuts what has a rate for long.
        let costs = [1, 2, 3, 4, 9, 20];
        let most = [50, 1_000_000, 1_000_001];
        let most = if self.once_in(25) { &most[..] } else { &costs };
        most[self.index(most.len())]
    }
}
