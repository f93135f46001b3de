//! How often a task may fail and when it comes back: the worker's flags say so, or else the queue,
//! or else what is usual.
//!
//! The queue counts failures, waits and buries by itself. This decides only what is sent to it.

use pinpriq_client::Worker;
use pinpriq_proto::wire::resp::Value;

use crate::args::worker::EffortArgs;

/// How often a task may fail where neither the worker nor the queue says so: as with every worker.
const FAILURES_MAX: u64 = Worker::FAILURES_MAX;

/// How long it waits then after its first failure.
const BACKOFF_MS: u64 = Worker::BACKOFF.as_secs() * 1_000;

/// How long a task waits at most, unless the queue says so.
const DELAY_MS_MAX: u64 = 86_400_000;

/// The settings of a queue about tasks that fail.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Policy {
    attempts: Option<u64>,
    backoff_ms: Option<u64>,
    backoff_ms_max: Option<u64>,
    /// Where tasks go that have failed too often.
    pub(super) dead_letters: Option<Vec<u8>>,
}

impl Policy {
    /// Reads the settings from the reply to `QUEUE SHOW`.
    pub(super) fn from_answer(answer: &Value) -> Self {
        let number = |name| u64::try_from(answer.field(name)?.integer()?).ok();
        Self {
            attempts: number("attempts"),
            backoff_ms: number("backoff"),
            backoff_ms_max: number("backoffmax"),
            dead_letters: answer.field("deadletter").and_then(Value::as_bytes).map(<[u8]>::to_vec),
        }
    }

    /// The same for a task whose put may have said something itself. Where it has said none, no
    /// failure is the last, or it does not wait.
    pub(super) fn with(self, known: &Value) -> Self {
        let own = |name, none| match known.field(name)? {
            value if value.as_bytes() == Some(b"none") => Some(none),
            value => u64::try_from(value.integer()?).ok(),
        };
        Self {
            attempts: own("attempts_max", u64::MAX).or(self.attempts),
            backoff_ms: own("backoff", 0).or(self.backoff_ms),
            backoff_ms_max: own("backoff_max", 0).or(self.backoff_ms_max),
            ..self
        }
    }

    /// Whether the queue itself gives a task up at this failure, counted from 1.
    pub(super) fn exhausts(&self, failure: u64) -> bool {
        self.attempts.is_some_and(|most| failure >= most)
    }

    /// How often a task may fail before the worker gives it up, if the worker has a say in it.
    pub(super) fn failures_max(&self, effort: &EffortArgs) -> Option<u64> {
        let usual = self.attempts.is_none().then_some(FAILURES_MAX);
        effort.attempts_max.or(usual)
    }

    /// How long a task waits after this failure, counted from 1; none if the queue decides.
    pub(super) fn delay_ms(&self, effort: &EffortArgs, failure: u64) -> Option<u64> {
        let usual = self.backoff_ms.is_none().then_some(BACKOFF_MS);
        let first_ms = effort.backoff_ms.or(usual)?;
        Some(doubled(first_ms, failure).min(DELAY_MS_MAX))
    }

    /// How long a task waits that is to be tried later, after this many attempts.
    pub(super) fn pause_ms(&self, effort: &EffortArgs, attempts: u64) -> u64 {
        let own = self.delay_ms(effort, attempts);
        own.unwrap_or_else(|| {
            // A task that is put off waits, even if it does not after a failure.
            let first_ms = self.backoff_ms.filter(|ms| *ms > 0).unwrap_or(BACKOFF_MS);
            doubled(first_ms, attempts).min(self.backoff_ms_max.unwrap_or(DELAY_MS_MAX))
        })
    }
}

/// A time that doubles with each further time.
fn doubled(first_ms: u64, times: u64) -> u64 {
    let doublings = u32::try_from(times.saturating_sub(1)).unwrap_or(u32::MAX);
    first_ms.saturating_mul(2_u64.saturating_pow(doublings))
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::Policy;
    use crate::args::worker::EffortArgs;
    use crate::printer::text;

    fn effort(attempts_max: Option<u64>, backoff_ms: Option<u64>) -> EffortArgs {
        EffortArgs { attempts_max, backoff_ms, timeout: None, jobs: 1 }
    }

    fn policy(attempts: Option<u64>, backoff_ms: Option<u64>) -> Policy {
        Policy { attempts, backoff_ms, backoff_ms_max: Some(50), dead_letters: None }
    }

    #[test]
    fn flags_win_over_the_queue_and_the_queue_over_what_is_usual() {
        let table = [
            (None, None, Some(5)),
            (None, Some(9), None),
            (Some(3), None, Some(3)),
            (Some(3), Some(2), Some(3)),
        ];
        for (flag, queue, expected) in table {
            assert_eq!(policy(queue, None).failures_max(&effort(flag, None)), expected);
        }
        let table = [
            (None, None, Some(2_000)),
            (None, Some(7), None),
            (Some(10), None, Some(20)),
            (Some(10), Some(7), Some(20)),
        ];
        for (flag, queue, expected) in table {
            assert_eq!(policy(None, queue).delay_ms(&effort(None, flag), 2), expected);
        }
    }

    #[test]
    fn delays_double_up_to_a_day_and_never_overflow() {
        let queue = policy(None, None);
        let table = [(1_000, 1, 1_000), (1_000, 2, 2_000), (1_000, 4, 8_000), (0, 9, 0)];
        for (first, failure, expected) in table {
            assert_eq!(queue.delay_ms(&effort(None, Some(first)), failure), Some(expected));
        }
        for (first, failure) in [(1, 100), (u64::MAX, u64::MAX)] {
            let delay_ms = queue.delay_ms(&effort(None, Some(first)), failure);
            assert_eq!(delay_ms, Some(86_400_000));
        }
    }

    #[test]
    fn what_is_tried_later_waits_as_the_queue_has_what_fails_wait() {
        let usual = effort(None, None);
        assert_eq!(policy(None, None).pause_ms(&usual, 3), 4_000);
        assert_eq!(policy(None, Some(7)).pause_ms(&usual, 3), 28);
        assert_eq!(policy(None, Some(7)).pause_ms(&usual, 9), 50);
        assert_eq!(policy(None, Some(7)).pause_ms(&effort(None, Some(100)), 2), 200);
    }

    #[test]
    fn a_queue_gives_up_at_its_last_failure() {
        assert!(!policy(Some(3), None).exhausts(2));
        assert!(policy(Some(3), None).exhausts(3));
        assert!(!policy(None, None).exhausts(u64::MAX));
    }

    #[test]
    fn settings_are_read_from_what_the_queue_shows() {
        let answer = Value::Map(vec![
            (text("ttl"), Value::Null),
            (text("attempts"), Value::Integer(3)),
            (text("backoff"), Value::Null),
            (text("backoffmax"), Value::Integer(50)),
            (text("deadletter"), text("dead")),
        ]);
        let expected = Policy { dead_letters: Some(b"dead".to_vec()), ..policy(Some(3), None) };
        assert_eq!(Policy::from_answer(&answer), expected);
        assert_eq!(Policy::from_answer(&Value::Null), Policy::default());
    }
}
