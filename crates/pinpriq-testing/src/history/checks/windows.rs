//! What is certain about the order of the deliveries of one task.
//!
//! Deliveries are sorted by their beginnings. Those that overlap may have happened in either order.

use crate::history::shelf::Task;

/// For each delivery the earliest moment at which a certainly later one had certainly happened;
/// the end of time if there is none.
pub(super) fn earliest_next(task: &Task) -> Vec<u64> {
    let handed = &task.handed;
    let mut earliest = vec![u64::MAX; handed.len() + 1];
    for place in (0..handed.len()).rev() {
        earliest[place] = earliest[place + 1].min(handed[place].span.to_us);
    }
    let next = |place: usize| {
        let later = handed.partition_point(|it| it.span.from_us <= handed[place].span.to_us);
        earliest[later.max(place + 1).min(handed.len())]
    };
    (0..handed.len()).map(next).collect()
}
