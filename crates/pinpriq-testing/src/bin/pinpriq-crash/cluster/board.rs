//! What the threads of the harness know about a cluster: where its nodes listen, which of them
//! serves what as far as they have logged it, and what was wrong.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{NODES, SHARDS};
use crate::process::field;
use crate::report::say;

/// The most failures that are kept.
const FAILURES_MAX: usize = 20;

/// See the start of this file.
#[derive(Default)]
pub(crate) struct Board {
    doors: Mutex<[Option<SocketAddr>; NODES]>,
    /// Who has served a shard in a term.
    terms: Mutex<BTreeMap<(u16, u64), usize>>,
    failures: Mutex<Vec<String>>,
    /// Whether the engine can accept nothing at the moment.
    is_mute: AtomicBool,
    /// How many requests were refused because a shard had no owner, or the engine was away, by
    /// the first words of the refusals.
    refused: Mutex<BTreeMap<String, u64>>,
}

impl Board {
    /// Notes where a node listens for clients, or that it has ended.
    pub(crate) fn set_door(&self, node: usize, door: Option<SocketAddr>) {
        locked(&self.doors)[node] = door;
    }

    /// Where a node listens for clients, if it runs.
    pub(crate) fn door(&self, node: usize) -> Option<SocketAddr> {
        locked(&self.doors)[node]
    }

    /// Reads a line of the log of a node.
    pub(crate) fn read(&self, node: usize, line: &str) {
        if tells_of_a_bug(line) {
            self.fail(format!("node n{} panicked: {line}", node + 1));
        }
        if field(line, "message") != Some("serving") {
            return;
        }
        let shard = field(line, "shard").and_then(|it| it.parse().ok());
        let term = field(line, "term").and_then(|it| it.parse().ok());
        let Some((shard, term)) = shard.zip(term) else { return };
        let other = locked(&self.terms).insert((shard, term), node);
        if other.is_some() {
            self.fail(format!("shard {shard} was served twice in term {term}: {line}"));
        }
    }

    /// Which node has served each shard last, as far as is known.
    pub(crate) fn owners(&self) -> BTreeMap<u16, usize> {
        // The highest term of a shard comes last.
        locked(&self.terms).iter().map(|((shard, _), node)| (*shard, *node)).collect()
    }

    /// The highest term in which a shard was served.
    pub(crate) fn term(&self, shard: u16) -> u64 {
        let terms = locked(&self.terms);
        terms.range((shard, 0)..=(shard, u64::MAX)).next_back().map_or(0, |((_, term), _)| *term)
    }

    /// How often a shard has got an owner.
    pub(crate) fn starts(&self) -> usize {
        locked(&self.terms).len()
    }

    /// Whether every shard has had an owner.
    pub(crate) fn is_complete(&self) -> bool {
        self.owners().len() == usize::from(SHARDS)
    }

    /// Notes whether the engine can accept nothing.
    pub(crate) fn set_mute(&self, is_mute: bool) {
        self.is_mute.store(is_mute, Ordering::SeqCst);
    }

    /// Whether the engine can accept nothing.
    pub(crate) fn is_mute(&self) -> bool {
        self.is_mute.load(Ordering::SeqCst)
    }

    /// Notes that a request was refused.
    pub(crate) fn refuse(&self, word: &str) {
        *locked(&self.refused).entry(word.to_owned()).or_default() += 1;
    }

    /// How many requests were refused because a shard had no owner, or the engine was away.
    pub(crate) fn refused(&self) -> String {
        let refused = locked(&self.refused);
        let count = |word| refused.get(word).copied().unwrap_or(0);
        format!("{} TRYAGAIN and {} CLUSTERDOWN", count("TRYAGAIN"), count("CLUSTERDOWN"))
    }

    /// Notes something that must not happen.
    pub(crate) fn fail(&self, what: String) {
        say(format_args!("cluster: {what}"));
        let mut failures = locked(&self.failures);
        if failures.len() < FAILURES_MAX {
            failures.push(what);
        }
    }

    /// What was wrong until now.
    pub(crate) fn failures(&self) -> Vec<String> {
        locked(&self.failures).clone()
    }
}

/// Whether a log line says that the node is broken.
fn tells_of_a_bug(line: &str) -> bool {
    line.contains("panicked at") || line.contains("a bug in pinpriq")
}

/// What a lock guards. A thread that has panicked fails the run by itself.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Board, tells_of_a_bug};

    const LINE: &str = r#"{"level":"INFO","message":"serving","shard":3,"term":17,"tasks":0}"#;

    #[test]
    fn the_highest_term_owns_a_shard() {
        let board = Board::default();
        board.read(1, &LINE.replace("17", "18"));
        board.read(0, LINE);
        assert_eq!((board.owners()[&3], board.term(3), board.starts()), (1, 18, 2));
        assert!(board.failures().is_empty());
    }

    #[test]
    fn no_shard_is_served_twice_in_a_term() {
        let board = Board::default();
        board.read(0, LINE);
        board.read(1, LINE);
        assert_eq!(board.failures().len(), 1);
    }

    #[test]
    fn a_panic_is_a_bug() {
        assert!(tells_of_a_bug("thread 'main' panicked at src/main.rs:1:1:"));
        assert!(!tells_of_a_bug(LINE));
    }
}
