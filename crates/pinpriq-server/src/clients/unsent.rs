//! What was handed to a client that never received it.

use std::sync::Arc;

use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{Receipt, TaskRecord};
use pinpriq_store::Volume;
use pinpriq_store::durable::Holds;

/// Tasks and leases that were handed to a client that never received them.
#[derive(Default, pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) struct Unsent {
    /// Popped tasks, which would be lost.
    pub(crate) popped: Vec<TaskRecord>,
    /// Popped tasks whose payloads have to be read back first.
    #[letter(local = is_empty)]
    pub(crate) popped_away: Vec<(TaskRecord, Arc<dyn Volume>)>,
    /// Leases that the client does not know about, with their queues.
    pub(crate) leases: Vec<Receipt>,
}

impl Unsent {
    /// Returns the number of popped tasks.
    pub(crate) fn popped_count(&self) -> usize {
        self.popped.len() + self.popped_away.len()
    }

    /// Forgets the popped tasks, which are not to go back.
    pub(crate) fn forget_popped(&mut self) {
        self.popped.clear();
        self.popped_away.clear();
    }

    /// Adds what an output hands over.
    pub(crate) fn add(&mut self, output: Output, holds: &Holds) {
        let (Output::Delivery { tasks, popped, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, popped }, .. }) = output
        else {
            return;
        };
        if popped {
            for mut task in tasks {
                let away = task.away.filter(|_| is_away(&task));
                if let Some(volume) = away.and_then(|away| holds.volume(away.place)) {
                    self.popped_away.push((task, Arc::clone(volume)));
                } else {
                    task.away = None;
                    self.popped.push(task);
                }
            }
            return;
        }
        self.leases.extend(tasks.iter().filter_map(TaskRecord::receipt));
    }

    /// Adds everything that another has.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.popped.append(&mut other.popped);
        self.popped_away.append(&mut other.popped_away);
        self.leases.append(&mut other.leases);
    }
}

/// Returns the leases that an output hands over.
pub(crate) fn leases_in(output: &Output) -> impl Iterator<Item = Receipt> {
    let tasks = match output {
        Output::Delivery { tasks, popped: false, .. }
        | Output::Reply { reply: Reply::Tasks { tasks, popped: false }, .. } => &tasks[..],
        _ => &[],
    };
    tasks.iter().filter_map(TaskRecord::receipt)
}

/// Whether the payload of a task was left in the store and was not read back.
pub(crate) fn is_away(task: &TaskRecord) -> bool {
    task.away.is_some_and(|away| away.bytes > 0) && task.payload.is_empty()
}
