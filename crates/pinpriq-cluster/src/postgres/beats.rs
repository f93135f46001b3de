//! Which sessions have ended, judged by beats that do not change. Reads no clock and no table.
//!
//! The server's clock is not asked. A session has ended when a node has seen the same beat for
//! the time to live on a clock of its own, and has looked often enough meanwhile. If the server was
//! away for long, no node could renew, and none counts as ended for that.

use std::collections::HashMap;
use std::time::Duration;

use crate::Instance;

/// The beat of a session as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beat {
    pub(crate) instance: Instance,
    pub(crate) count: i64,
    /// How long the session lives without being renewed.
    pub(crate) ttl: Duration,
}

/// What is remembered of a session.
#[derive(Clone, Copy)]
struct Seen {
    beat: i64,
    /// When it was first read with this beat, or later, for times in which it was not read.
    since: Duration,
    /// When it was read last.
    last: Duration,
    has_ended: bool,
}

/// The memory of one observer.
#[derive(Default)]
pub(crate) struct Beats {
    seen: HashMap<Instance, Seen>,
}

impl Beats {
    /// Notes all sessions that there are, as they were read between two moments. The caller's clock
    /// must go on while the machine is asleep.
    pub(crate) fn observe(&mut self, asked: Duration, answered: Duration, beats: &[Beat]) {
        let mut seen = HashMap::with_capacity(beats.len());
        for Beat { instance, count, ttl } in beats {
            let first = Seen { beat: *count, since: answered, last: answered, has_ended: false };
            let known = self.seen.get(instance).filter(|known| known.beat == *count);
            let entry = known.map_or(first, |known| {
                // A beat that was not looked at for long may have changed only since then.
                let unseen = asked.saturating_sub(known.last).saturating_sub(*ttl / 2);
                let since = known.since.saturating_add(unseen);
                let has_ended = known.has_ended || asked.saturating_sub(since) >= *ttl;
                Seen { beat: *count, since, last: answered, has_ended }
            });
            seen.insert(*instance, entry);
        }
        self.seen = seen;
    }

    /// Whether a session with this beat has ended.
    pub(crate) fn has_ended(&self, instance: Instance, beat: i64) -> bool {
        self.seen.get(&instance).is_some_and(|seen| seen.beat == beat && seen.has_ended)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Instance;

    use super::{Beat, Beats};

    const TTL: Duration = Duration::from_secs(1);
    const ANNA: Instance = Instance(1);

    /// Reads a beat of Anna at a moment, which takes 10 ms. Returns whether she has ended.
    fn read(beats: &mut Beats, ms: u64, beat: i64) -> bool {
        let asked = Duration::from_millis(ms);
        let ttl = TTL;
        beats.observe(
            asked,
            asked + Duration::from_millis(10),
            &[Beat { instance: ANNA, count: beat, ttl }],
        );
        beats.has_ended(ANNA, beat)
    }

    #[test]
    fn a_beat_that_stays_for_the_time_to_live_has_ended() {
        let mut beats = Beats::default();
        for ms in [0, 200, 500, 800, 1_009] {
            assert!(!read(&mut beats, ms, 7), "after {ms} ms");
        }
        assert!(read(&mut beats, 1_010, 7), "from the first answer to the last question");
        assert!(!beats.has_ended(ANNA, 8) && !beats.has_ended(Instance(2), 7));
        assert!(read(&mut beats, 1_020, 7), "it stays so");
        assert!(!read(&mut beats, 1_030, 8), "unless it beats again");
        assert!(!read(&mut beats, 1_500, 8));
        assert!(!read(&mut beats, 2_000, 8));
        assert!(read(&mut beats, 2_040, 8));
    }

    #[test]
    fn a_beat_that_changes_lives() {
        let mut beats = Beats::default();
        for beat in 0..50_u32 {
            assert!(!read(&mut beats, u64::from(beat) * 450, i64::from(beat)));
        }
        // Any other beat will do.
        assert!(!read(&mut beats, 22_900, -3));
    }

    #[test]
    fn unwatched_time_counts_for_half_of_the_time_to_live() {
        let mut beats = Beats::default();
        assert!(!read(&mut beats, 0, 7));
        assert!(!read(&mut beats, 100_000, 7), "after a long time");
        assert!(!read(&mut beats, 100_400, 7));
        assert!(!read(&mut beats, 100_499, 7));
        assert!(read(&mut beats, 100_500, 7), "then it had half of it to beat");
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut beats = Beats::default();
        assert!(!read(&mut beats, 0, 7));
        beats.observe(Duration::from_millis(300), Duration::from_millis(310), &[]);
        assert!(!read(&mut beats, 600, 7));
        assert!(!read(&mut beats, 1_100, 7), "it came again at 610");
        assert!(read(&mut beats, 1_610, 7));
    }

    #[test]
    fn odd_times_do_no_harm() {
        let mut beats = Beats::default();
        for (ms, ttl) in [(5_000, TTL), (0, TTL), (9, Duration::MAX), (10, Duration::ZERO)] {
            let asked = Duration::from_millis(ms);
            beats.observe(asked, asked, &[Beat { instance: ANNA, count: i64::MIN, ttl }]);
        }
        assert!(beats.has_ended(ANNA, i64::MIN));
    }
}
