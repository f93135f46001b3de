//! Shows all tasks of a queue, page by page.
//!
//! Tasks come by seq, which hardly ever changes. So a task that is there throughout is shown once,
//! whatever becomes of it meanwhile, and a cursor is the seq of the task before it. There is no
//! index by seq over all states: the indexes of the queue are merged.

use std::num::NonZeroU64;

use crate::engine::{Answered, Engine};
use crate::operations::arguments::{bad, check_count};
use pinpriq_proto::batches::check_batch_name;
use pinpriq_proto::facts::check_name;
use pinpriq_proto::limits::{LOOKED_MAX, LOOKED_STEPS_MAX};
use pinpriq_proto::looking::Scan;
use pinpriq_proto::reply::{Refusal, Reply};

impl Engine {
    /// Returns the next tasks by seq. Looks at [`LOOKED_STEPS_MAX`] tasks at most, and takes a step
    /// of O(log n) for each distinct priority in the queue, or a comparison if there are many.
    #[inline(never)]
    pub(crate) fn scan(&mut self, scan: &Scan<'_>) -> Answered {
        check_looked(scan.count)?;
        scan.key.map_or(Ok(()), |key| check_name("key", key))?;
        scan.batch.map_or(Ok(()), check_batch_name)?;
        let (mut tasks, mut next) = (Vec::new(), None);
        if let Some(slot) = self.find_queue(scan.queue)? {
            let queue = &self.queues[slot];
            let mut last = scan.after;
            for (steps, (seq, slot)) in queue.indexes.by_seq(scan.after, scan.state).enumerate() {
                if tasks.len() == scan.count as usize || steps == LOOKED_STEPS_MAX {
                    next = NonZeroU64::new(last);
                    break;
                }
                last = seq;
                let key = self.tasks[slot].key().map(|key| &**key);
                let is_meant =
                    (scan.key.is_none() || key == scan.key) && self.is_in_batch(slot, scan.batch);
                if is_meant && !self.looks_gone(slot) {
                    tasks.push(self.tasks.record(slot, queue.names()));
                }
            }
        }
        Ok(Some(Reply::Scanned { tasks, next }))
    }
}

pub(super) fn check_looked(count: u32) -> Result<(), Refusal> {
    check_count(u64::from(count))?;
    if count > LOOKED_MAX {
        let sentence = format!("the count of a page is at most {LOOKED_MAX}, and not {count}");
        return Err(bad(sentence));
    }
    Ok(())
}
