//! How often a task may fail and when it comes back: its put or its queue says so, or else what is
//! usual for all workers of pinpriq.
//!
//! The queue counts failures, waits and buries by itself. This decides only what is sent to it.

use std::time::Duration;

use pinpriq_proto::wire::resp::Value;

use super::Worker;
use crate::task::Task;

/// The longest time that a task waits after a failure, unless its queue says so.
const DELAY_MAX: Duration = Duration::from_hours(24);

/// The settings of a queue about tasks that fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Policy {
    /// Whether the queue says how often a task may fail.
    limits_failures: bool,
    /// Whether the queue says how long it waits then.
    delays: bool,
}

impl Policy {
    /// Reads the settings from the reply to `QUEUE SHOW`.
    pub(super) fn of(settings: &Value) -> Self {
        let is_set = |name| settings.field(name).and_then(Value::integer).is_some();
        Self { limits_failures: is_set("attempts"), delays: is_set("backoff") }
    }

    /// The same for a task whose put has said something itself.
    pub(super) const fn with(self, task: &Task) -> Self {
        Self {
            limits_failures: self.limits_failures || task.attempts_max.is_some(),
            delays: self.delays || task.backoff.is_some(),
        }
    }

    /// Whether the worker gives a task up at this failure, counted from 1, since its queue never
    /// does.
    pub(super) const fn gives_up(self, failures: u64) -> bool {
        !self.limits_failures && failures >= Worker::FAILURES_MAX
    }

    /// How long a task waits after this failure; none if its queue says so.
    pub(super) fn delay(self, failures: u64) -> Option<Duration> {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let doubled = Worker::BACKOFF.saturating_mul(2_u32.saturating_pow(doublings));
        (!self.delays).then_some(doubled.min(DELAY_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(attempts: Value, backoff: Value) -> Policy {
        let name = |name: &str| Value::Bulk(name.as_bytes().to_vec());
        let members = vec![(name("attempts"), attempts), (name("backoff"), backoff)];
        Policy::of(&Value::Map(members))
    }

    #[test]
    fn what_the_queue_says_counts_and_else_what_is_usual() {
        let silent = settings(Value::Null, Value::Null);
        assert_eq!(silent, Policy::default());
        assert!(!silent.gives_up(4) && silent.gives_up(5));
        let delays = [(1, 1), (2, 2), (4, 8), (40, 86_400), (u64::MAX, 86_400)];
        for (failures, seconds) in delays {
            assert_eq!(silent.delay(failures), Some(Duration::from_secs(seconds)));
        }
        let spoken = settings(Value::Integer(9), Value::Integer(1));
        assert!(!spoken.gives_up(u64::MAX));
        assert_eq!(spoken.delay(1), None);
    }
}
