//! Ids that the model cannot predict: placeholders, and the ids that replace them.
//!
//! A caller that knows which ids the engine drew may report them before or after the command. This
//! module makes up no ids.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_proto::task::TaskId;

/// The first half of every placeholder, which no uuid of a known version has.
const MARK: [u8; 8] = [0xEE; 8];
const MARK_TEXT: &[u8] = b"eeeeeeee-eeee-eeee-";

/// The known ids of placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    known: BTreeMap<u64, TaskId>,
    /// Ids of the next tasks by number, for tasks whose ids cannot be predicted.
    pub(super) drawn: BTreeMap<u64, TaskId>,
    /// Texts that the server made. None may occur twice.
    made: BTreeSet<String>,
}

impl Bindings {
    /// The id of a task whose id cannot be predicted: the real one if it is known, else a
    /// placeholder.
    pub(super) fn id_of(&mut self, number: u64) -> TaskId {
        if let Some(id) = self.drawn.remove(&number) {
            assert!(self.bind(number, &id), "the id {id} came twice");
        }
        self.known.get(&number).cloned().unwrap_or_else(|| placeholder(number))
    }

    /// Returns the real id for an id that may be a placeholder, if it is known.
    pub(super) fn resolve(&self, id: &TaskId) -> Option<TaskId> {
        match number_of(id) {
            None => Some(id.clone()),
            Some(number) => self.known.get(&number).cloned(),
        }
    }

    /// Forgets tasks that a crash removed. Their numbers and ids may be used again.
    pub(super) fn forget_after(&mut self, last_number: u64) {
        for id in self.known.split_off(&(last_number + 1)).into_values() {
            self.made.remove(&id.to_string());
        }
    }

    /// Records the id of a task. Returns whether the id is new or equals the known one.
    pub(super) fn bind(&mut self, number: u64, id: &TaskId) -> bool {
        if let Some(known) = self.known.get(&number) {
            return known == id;
        }
        self.known.insert(number, id.clone());
        self.made.insert(id.to_string())
    }
}

/// The number of the task that a placeholder represents. It may be a text by now, in a queue that
/// takes the ids that it is given.
#[must_use]
pub fn number_of(id: &TaskId) -> Option<u64> {
    match id {
        TaskId::Uuid(bytes) => {
            let (mark, number) = bytes.split_at(MARK.len());
            let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            (mark == MARK).then_some(number)
        }
        TaskId::Given(text) => {
            let number = str::from_utf8(text.strip_prefix(MARK_TEXT)?).ok()?;
            u64::from_str_radix(&number.replacen('-', "", 1), 16).ok()
        }
        TaskId::Number(_) => None,
    }
}

/// Whether an id is a placeholder.
#[must_use]
pub fn is_placeholder(id: &TaskId) -> bool {
    number_of(id).is_some()
}

fn placeholder(number: u64) -> TaskId {
    let mut bytes = [0xEE; 16];
    bytes[MARK.len()..].copy_from_slice(&number.to_be_bytes());
    TaskId::Uuid(bytes)
}
