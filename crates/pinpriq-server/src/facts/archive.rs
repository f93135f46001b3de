//! What is known about the archive that a server writes: whether it works, and how far it is
//! behind. The thread that archives notes it here, and every shard can tell it.
//!
//! Nothing is archived here, and no clock is read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_proto::time::{Span, Timestamp};

use crate::plain::is_deceptive;

/// The state of a server without an archive.
const OFF: &str = "off";

/// The state until everything was archived for the first time.
const STARTING: &str = "starting";

/// The state of an archive that works.
const OK: &str = "ok";

/// What is known at one moment. The default is that of a server without an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ArchiveFacts {
    /// A word, or a sentence that says why it does not work.
    pub(crate) state: String,
    /// Whether it does not work.
    pub(crate) has_failed: bool,
    /// What the journals have and the archive does not.
    pub(crate) behind_bytes: u64,
    /// The age of the last moment that is there, or zero if nothing is missing.
    pub(crate) behind: Span,
    /// How often archiving has failed.
    pub(crate) failures: u64,
}

impl Default for ArchiveFacts {
    fn default() -> Self {
        let (behind_bytes, behind, failures) = (0, Span::ZERO, 0);
        Self { state: OFF.to_owned(), has_failed: false, behind_bytes, behind, failures }
    }
}

impl ArchiveFacts {
    /// Of what two shards have told, one after the other, returns what is known better: all shards
    /// have one archive.
    pub(crate) fn and(self, other: Self) -> Self {
        if self.state == OFF || other.failures > self.failures { other } else { self }
    }
}

/// How the archive of a server fares. Any thread can note it and tell it.
#[derive(Debug, Default)]
pub(crate) struct Archived(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Whether everything was archived once.
    has_begun: bool,
    /// Why it does not work now.
    trouble: Option<String>,
    /// What the last comparison of files and archive has found.
    faults: Option<String>,
    behind_bytes: u64,
    /// The last moment that is there, or that at which archiving has begun.
    newest: Timestamp,
    failures: u64,
}

impl Archived {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that archiving begins. What was archived before is not known yet.
    pub(crate) fn begin(&self, now: Timestamp) {
        self.noted().newest = now;
    }

    /// Notes a failure. Returns whether the one before had another reason, or there was none.
    pub(crate) fn fail(&self, why: &str) -> bool {
        let why = shown(why);
        let mut noted = self.noted();
        noted.failures += 1;
        let is_new = noted.trouble.as_deref() != Some(&why);
        noted.trouble = Some(why);
        is_new
    }

    /// Notes that it works. Returns whether it did not before.
    pub(crate) fn work(&self) -> bool {
        let mut noted = self.noted();
        noted.has_begun = true;
        noted.trouble.take().is_some()
    }

    /// Notes what a comparison of files and archive has found, if anything.
    pub(crate) fn note_faults(&self, faults: Option<&str>) {
        self.noted().faults = faults.map(shown);
    }

    /// Notes how many bytes are missing.
    pub(crate) fn note_missing(&self, bytes: u64) {
        self.noted().behind_bytes = bytes;
    }

    /// Notes the last moment that is there.
    pub(crate) fn note_newest(&self, at: Timestamp) {
        let mut noted = self.noted();
        noted.newest = noted.newest.max(at);
    }

    /// What is known now.
    pub(crate) fn facts(&self, now: Timestamp) -> ArchiveFacts {
        let noted = self.noted();
        let why_not = noted.trouble.as_deref().or(noted.faults.as_deref());
        let state = why_not.unwrap_or(if noted.has_begun { OK } else { STARTING });
        let is_behind = noted.behind_bytes > 0;
        ArchiveFacts {
            state: state.to_owned(),
            has_failed: why_not.is_some(),
            behind_bytes: noted.behind_bytes,
            behind: if is_behind { now.since(noted.newest) } else { Span::ZERO },
            failures: noted.failures,
        }
    }
}

/// A sentence as one line that may be shown anywhere. A place may say what it likes.
fn shown(sentence: &str) -> String {
    sentence.chars().map(|char| if is_deceptive(char) { '?' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn the_state_says_why_it_does_not_work() {
        let archived = Archived::default();
        let state = || archived.facts(at(0)).state;
        assert_eq!(ArchiveFacts::default().state, "off");
        assert_eq!(state(), "starting");
        assert!(archived.fail("away\r\n# Tasks"));
        assert_eq!(state(), "away??# Tasks");
        assert!(!archived.fail("away\r\n# Tasks"));
        assert!(archived.fail("full"));
        assert!(archived.facts(at(0)).has_failed);
        assert!(archived.work());
        assert!(!archived.work());
        assert_eq!(state(), "ok");
        // What rots is told until it is gone, but why nothing is sent is more urgent.
        archived.note_faults(Some("rotten"));
        assert_eq!(state(), "rotten");
        assert!(archived.fail("full"));
        assert_eq!(state(), "full");
        archived.work();
        assert!(archived.facts(at(0)).has_failed);
        archived.note_faults(None);
        assert_eq!((state(), archived.facts(at(0)).failures), ("ok".to_owned(), 4));
    }

    #[test]
    fn it_is_behind_only_while_something_is_missing() {
        let archived = Archived::default();
        archived.begin(at(1_000));
        let behind = |now| {
            let facts = archived.facts(at(now));
            (facts.behind_bytes, facts.behind.ms())
        };
        assert_eq!(behind(5_000), (0, 0));
        archived.note_missing(7);
        assert_eq!(behind(5_000), (7, 4_000));
        archived.note_newest(at(4_500));
        // Another thread may tell an earlier moment later.
        archived.note_newest(at(4_000));
        assert_eq!(behind(5_000), (7, 500));
        archived.note_missing(0);
        assert_eq!(behind(9_000), (0, 0));
    }
}
