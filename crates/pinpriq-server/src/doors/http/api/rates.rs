//! How fast tasks come and go in queues, between two looks at their figures.
//!
//! The server counts tasks and keeps no rates. So a rate is what happened since a viewer last
//! looked at the queue over HTTP, if that was not too long ago.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pinpriq_proto::stats::Counters;

use super::Api;

/// At most this many queues are remembered. Beyond it, all are forgotten.
const QUEUES_MAX: usize = 20_000;

/// Looks closer together count as one.
const APART_MS: u64 = 500;

/// After this time a look is forgotten.
const KEPT_MS: u64 = 120_000;

/// The tasks that have come into a queue and left it since it came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    pub(super) came: u64,
    pub(super) left: u64,
}

impl Flow {
    /// Returns what figures tell. A task that came back has not left after all.
    pub(super) fn of(counters: &Counters) -> Self {
        let Counters { put, revived, .. } = *counters;
        Self { came: put, left: put.saturating_add(revived).saturating_sub(counters.present()) }
    }
}

/// Tasks for each second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rates {
    pub(super) came: f64,
    pub(super) left: f64,
}

#[derive(Debug)]
struct Look {
    at_ms: u64,
    flow: Flow,
    rates: Option<Rates>,
}

/// The looks at queues.
#[derive(Debug, Default)]
pub(crate) struct Looks(Mutex<HashMap<Vec<u8>, Look>>);

impl Looks {
    /// Notes a look at a queue, and returns its rates since the one before, if there was one.
    pub(super) fn note(&self, queue: &[u8], flow: Flow, now_ms: u64) -> Option<Rates> {
        let looks = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let former = looks.get(queue);
        let former = former.filter(|it| now_ms.saturating_sub(it.at_ms) < KEPT_MS);
        let rates = match former {
            Some(former) => {
                let passed_ms = now_ms.saturating_sub(former.at_ms);
                if passed_ms < APART_MS {
                    return former.rates;
                }
                since(former.flow, flow, passed_ms)
            }
            None => None,
        };
        if looks.len() >= QUEUES_MAX && !looks.contains_key(queue) {
            looks.clear();
        }
        looks.insert(queue.to_vec(), Look { at_ms: now_ms, flow, rates });
        rates
    }
}

/// Returns the rates of a queue: as somebody who watches sees them, else since the last look.
pub(super) fn rates_of(api: &Api, name: &[u8], flow: Flow, now_ms: u64) -> Option<Rates> {
    let noted = api.looks.note(name, flow, now_ms);
    let seen = api.monitor.rates_of(name);
    seen.map(|it| Rates { came: it.came, left: it.left }).or(noted)
}

/// Returns the rates between two looks. A queue that came to be anew in between has none.
fn since(before: Flow, after: Flow, passed_ms: u64) -> Option<Rates> {
    let rate = |before: u64, after: u64| {
        let count = u32::try_from(after.checked_sub(before)?).unwrap_or(u32::MAX);
        let passed_ms = u32::try_from(passed_ms).unwrap_or(u32::MAX);
        Some((f64::from(count) / f64::from(passed_ms) * 10_000.0).round() / 10.0)
    };
    Some(Rates { came: rate(before.came, after.came)?, left: rate(before.left, after.left)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_between_looks() {
        let looks = Looks::default();
        let look = |came, left, ms| looks.note(b"q", Flow { came, left }, ms);
        assert_eq!(look(100, 50, 0), None);
        assert_eq!(look(110, 50, 400), None, "too close to the one before");
        assert_eq!(look(120, 51, 2_000), Some(Rates { came: 10.0, left: 0.5 }));
        assert_eq!(look(900, 51, 2_100), Some(Rates { came: 10.0, left: 0.5 }));
        assert_eq!(look(5, 0, 9_000), None, "another queue of this name");
        assert_eq!(look(5, 0, 999_000), None, "too long ago");
    }

    #[test]
    fn memory_is_bounded() {
        let looks = Looks::default();
        for queue in 0..=QUEUES_MAX {
            looks.note(&queue.to_le_bytes(), Flow { came: 0, left: 0 }, 0);
        }
        assert_eq!(looks.0.lock().unwrap().len(), 1);
    }
}
