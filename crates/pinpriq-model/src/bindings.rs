//! Ids that the model cannot foretell: placeholders, and what they turned out to be.
//!
//! A caller that knows what the engine drew may tell it before the command or after it. No id is
//! made up here.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_engine::task::TaskId;

/// The first half of every placeholder, which no uuid of a known version has.
const MARK: [u8; 8] = [0xEE; 8];

/// What placeholders turned out to be.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    known: BTreeMap<u64, TaskId>,
    /// Ids that the next tasks of these numbers have, unless theirs can be foretold.
    pub(super) drawn: BTreeMap<u64, TaskId>,
    /// Texts that the server made, none of which may come twice.
    made: BTreeSet<String>,
}

impl Bindings {
    /// The id of a task whose id cannot be foretold: known by now, or a placeholder.
    pub(super) fn id_of(&mut self, number: u64) -> TaskId {
        if let Some(id) = self.drawn.remove(&number) {
            assert!(self.bind(number, &id), "the id {id} came twice");
        }
        self.known.get(&number).cloned().unwrap_or_else(|| placeholder(number))
    }

    /// What is known of an id that may be a placeholder.
    pub(super) fn resolve(&self, id: &TaskId) -> Option<TaskId> {
        match number_of(id) {
            None => Some(id.clone()),
            Some(number) => self.known.get(&number).cloned(),
        }
    }

    /// Forgets tasks that a crash took away: their numbers and ids may come again.
    pub(super) fn forget_after(&mut self, last_number: u64) {
        for id in self.known.split_off(&(last_number + 1)).into_values() {
            self.made.remove(&id.to_string());
        }
    }

    /// Notes the id of a task. Returns whether it is new, or the one that is known.
    pub(super) fn bind(&mut self, number: u64, id: &TaskId) -> bool {
        if let Some(known) = self.known.get(&number) {
            return known == id;
        }
        self.known.insert(number, id.clone());
        self.made.insert(id.to_string())
    }
}

/// The number of the task that a placeholder stands for.
#[must_use]
pub fn number_of(id: &TaskId) -> Option<u64> {
    let TaskId::Uuid(bytes) = id else { return None };
    let (mark, number) = bytes.split_at(MARK.len());
    (mark == MARK).then(|| number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Whether an id stands for one that is not known yet.
#[must_use]
pub fn is_placeholder(id: &TaskId) -> bool {
    number_of(id).is_some()
}

fn placeholder(number: u64) -> TaskId {
    let mut bytes = [0xEE; 16];
    bytes[MARK.len()..].copy_from_slice(&number.to_be_bytes());
    TaskId::Uuid(bytes)
}
