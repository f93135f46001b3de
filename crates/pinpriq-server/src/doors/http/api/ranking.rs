//! Queues in any order, and only those whose names have some letters: for lists that people page
//! through, with any number of queues.
//!
//! An order by a figure needs the figures of all queues. They are collected for all who ask at
//! once, and kept for a while that grows with how long that took.

use std::cmp::Reverse;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::super::exchange::Asked;
use super::super::problem::Problem;
use super::asking::of_queue;
use super::rates::{Flow, Rates, rates_of};
use super::{Api, Asker};
use crate::clock::steady_ms;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::request::cursors::name::cursor_after as names_cursor;
use pinpriq_proto::request::options::{COUNT, CURSOR};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::Span;

/// How many names are asked for at once.
const NAMES: usize = 1_000;

/// How many queues are asked about at once.
pub(super) const AT_ONCE: usize = 256;

/// Figures are kept for this time at least.
const KEPT_MS: u64 = 2_000;

/// What was found is kept this many times as long as it took to find.
const KEPT_FACTOR: u64 = 20;

/// What was found the last time, for all who ask. One request at a time renews it.
#[derive(Debug, Default)]
pub(super) struct Kept<T>(Mutex<Option<(u64, T)>>);

impl<T: Clone> Kept<T> {
    /// Returns the latest, which is kept for this time at least. For a user who may not look at
    /// every queue it is found anew.
    pub(super) async fn latest(
        &self,
        asker: &Asker,
        least_ms: u64,
        find: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let mut latest = self.0.lock().await;
        if !asker.looks_at_all() {
            return find.await;
        }
        let now_ms = steady_ms();
        if let Some((_, kept)) = latest.as_ref().filter(|(until_ms, _)| now_ms < *until_ms) {
            return Ok(kept.clone());
        }
        let found = find.await?;
        let took_ms = steady_ms().saturating_sub(now_ms);
        *latest = Some((steady_ms() + least_ms.max(took_ms * KEPT_FACTOR), found.clone()));
        Ok(found)
    }
}

/// What queues are ordered by.
#[derive(Debug)]
pub(super) struct Ranked {
    name: Bytes,
    /// Its tasks in each state, in the order of [`StateKind::ALL`].
    counts: [u64; 6],
    rates: Option<Rates>,
    oldest_ms: Option<u64>,
}

/// Returns the cursor of the page after these names.
pub(super) fn cursor_after(names: &[Bytes], more: bool) -> String {
    names.last().filter(|_| more).map_or_else(|| "0".to_owned(), |last| names_cursor(last))
}

/// Returns the names of all queues, in order.
pub(super) async fn all_names(asker: &Asker) -> Result<Vec<Bytes>, Problem> {
    let (mut all, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let mut list = Asked::of("QUEUE LIST");
        list.option(COUNT, Some(NAMES.to_string().into_bytes()));
        list.option(CURSOR, Some(cursor.into_bytes()));
        let Some(Ok(Reply::Names { names, more })) = asker.replies([list]).await?.pop() else {
            let sentence = "the queues cannot be listed at the moment";
            return Err(Problem::new("TRYAGAIN", sentence));
        };
        cursor = cursor_after(&names, more);
        all.extend(names);
        if !more {
            return Ok(all);
        }
    }
}

/// Returns the figures of these queues, as far as they are still there.
pub(super) async fn all_figures(
    asker: &Asker,
    names: Vec<Bytes>,
) -> Result<Vec<(Bytes, Box<Figures>)>, Problem> {
    let mut found = Vec::with_capacity(names.len());
    for part in names.chunks(AT_ONCE) {
        let stats = part.iter().map(|name| of_queue("STATS", name, None));
        for (name, reply) in part.iter().zip(asker.replies(stats).await?) {
            if let Ok(Reply::Figures(figures)) = reply {
                found.push((name.clone(), figures));
            }
        }
    }
    Ok(found)
}

/// Returns the names of the queues that have these letters, in the order that a word stands for.
pub(super) async fn ranked(
    (api, asker): (&Api, &Asker),
    (order, descending): (&str, bool),
    contains: &[u8],
) -> Result<Vec<Bytes>, Problem> {
    let wanted = folded(contains);
    let has = |name: &[u8]| wanted.is_empty() || folded(name).contains(&wanted);
    if order == "name" {
        let mut names = all_names(asker).await?;
        names.retain(|name| has(name));
        if descending {
            names.reverse();
        }
        return Ok(names);
    }
    let ranking = api.ranking.latest(asker, KEPT_MS, rank_all(api, asker)).await?;
    let mut some: Vec<&Ranked> = ranking.iter().filter(|it| has(&it.name)).collect();
    // Queues that are alike stay in the order of their names, whatever the direction.
    if descending {
        some.sort_by_cached_key(|it| Reverse(it.rank(order)));
    } else {
        some.sort_by_cached_key(|it| it.rank(order));
    }
    Ok(some.into_iter().map(|it| it.name.clone()).collect())
}

/// Returns a name as it is compared: in small letters.
fn folded(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

impl Ranked {
    /// Returns the place in an order. What is not known comes first.
    fn rank(&self, order: &str) -> u64 {
        let thousandths = |rate: fn(&Rates) -> f64| {
            let rate = self.rates.as_ref().map_or(-1.0, rate);
            // Rates have no sign, and so their order is that of their bits.
            if rate < 0.0 { 0 } else { rate.to_bits() + 1 }
        };
        let states = StateKind::ALL.into_iter().zip(self.counts);
        if let Some((_, count)) = states.into_iter().find(|(state, _)| state.word() == order) {
            return count;
        }
        match order {
            "in" => thousandths(|it| it.came),
            "out" => thousandths(|it| it.left),
            _ => self.oldest_ms.map_or(0, |ms| ms + 1),
        }
    }
}

async fn rank_all(api: &Api, asker: &Asker) -> Result<Arc<Vec<Ranked>>, Problem> {
    let now_ms = steady_ms();
    let mut queues = Vec::new();
    for (name, known) in all_figures(asker, all_names(asker).await?).await? {
        let rates = rates_of(api, &name, Flow::of(&known.counters), now_ms);
        let counts = StateKind::ALL.map(|state| known.counters.count(state));
        let oldest_ms = known.oldest_ready.map(Span::ms);
        queues.push(Ranked { name, counts, rates, oldest_ms });
    }
    Ok(Arc::new(queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(ready: u64, out: Option<f64>, oldest_ms: Option<u64>) -> Ranked {
        let counts = [ready, 0, 0, 0, 0, 0];
        let rates = out.map(|left| Rates { came: 0.0, left });
        Ranked { name: b"q".as_slice().into(), counts, rates, oldest_ms }
    }

    #[test]
    fn what_is_not_known_comes_first() {
        let one = ranked(2, None, None);
        let other = ranked(1, Some(0.0), Some(0));
        assert!(one.rank("ready") > other.rank("ready"));
        assert!(one.rank("out") < other.rank("out"));
        assert!(one.rank("oldest") < other.rank("oldest"));
        assert!(ranked(0, Some(0.5), None).rank("out") < ranked(0, Some(12.0), None).rank("out"));
    }

    #[test]
    fn names_are_compared_in_small_letters() {
        assert!(folded("Büro-MAIL".as_bytes()).contains(&folded("ÜRO-m".as_bytes())));
    }
}
