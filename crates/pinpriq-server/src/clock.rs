//! The one time line, and the only reader of the machine's clocks.
//!
//! Time starts at the wall clock, but never before the latest moment that the store knows, and
//! continues with the monotonic clock. The two can drift apart, because an operator set the wall
//! clock or the machine slept. Time is then drawn towards the wall clock by half a millisecond for
//! every second, which no lease, delay or TTL notices. A step is logged. Time never goes back.
//!
//! All threads of a server read the same time line, each through a handle of its own. So a moment
//! means the same to all shards.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Stopwatch;
use tokio::time::Instant;

/// Tells the time to one thread.
pub trait Clock {
    /// The current moment. It is never earlier than one returned before.
    fn now(&self) -> Timestamp;

    /// The time that has passed since a fixed moment, as finely as the clock can tell it.
    fn passed(&self) -> Duration {
        Duration::from_millis(self.now().ms())
    }

    /// How far the current moment is ahead of the wall clock, in milliseconds. Negative if it is
    /// behind.
    fn ahead_of_wall(&self) -> i64;

    /// Waits until `at` has come.
    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// Time is drawn towards the wall clock by the passed time divided by this number.
pub(crate) const DRAWN_ONE_IN: u64 = 2_000;

/// The difference from which a step of the wall clock is logged.
const STEP: Duration = Duration::from_secs(1);

/// How far the journal may be ahead of the wall clock at the start without a warning.
const FAR_AHEAD: Span = Span::from_ms(60_000);

/// How often the wall clock is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How far the moment of anything that was written may be ahead of the time at which it was.
const AHEAD_MOST: Duration = Duration::from_millis(20);

/// The time line itself, or one of several handles of it. It reads no clock: the caller passes the
/// readings.
///
/// Between two looks at the wall clock, time is a straight line. All handles go by the same looks,
/// so they agree at every moment.
pub struct TimeLine {
    /// The latest look of all handles.
    shared: Arc<Mutex<Look>>,
    /// A copy of it, or of an earlier one: within [`LOOK_EVERY`] a look is the latest.
    own: Cell<Look>,
}

/// A reading of the wall clock.
#[derive(Clone, Copy)]
struct Look {
    /// The monotonic moment of the reading.
    at: Duration,
    /// The moment of the time line then, in nanoseconds.
    time_line: u128,
    /// How far the wall clock was ahead of the time line, in nanoseconds.
    wall_ahead: i128,
}

impl TimeLine {
    /// Returns a time line whose current moment is `start`.
    ///
    /// Monotonic moments are durations since any fixed moment. Those of the wall clock are
    /// nanoseconds since the Unix epoch.
    #[must_use]
    pub fn starting_at(start: Timestamp, monotonic: Duration, wall_ns: u128) -> Self {
        let time_line = u128::from(start.ms()) * 1_000_000;
        let look = Look { at: monotonic, time_line, wall_ahead: ahead(wall_ns, time_line) };
        Self { shared: Arc::new(Mutex::new(look)), own: Cell::new(look) }
    }

    /// Returns another handle of this time line, for another thread.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { shared: self.shared.clone(), own: self.own.clone() }
    }

    /// Returns the moment of the time line at the monotonic moment `now`, in nanoseconds since the
    /// Unix epoch. `now` must not be earlier than in an earlier call of this handle. The wall clock
    /// is only read from time to time.
    ///
    /// If another thread has looked at the wall clock after this one has read `now`, that look is
    /// the moment: it was before this returns.
    pub fn read(&self, now: Duration, wall_ns: impl FnOnce() -> u128) -> u128 {
        let looked = self.own.get();
        let passed = now.saturating_sub(looked.at);
        if passed >= LOOK_EVERY { self.look(now, wall_ns) } else { looked.at_after(passed) }
    }

    /// Like [`TimeLine::read`], when it may be time to look at the wall clock again.
    #[cold]
    fn look(&self, now: Duration, wall_ns: impl FnOnce() -> u128) -> u128 {
        let shared = &mut *self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = *shared;
        let passed = now.saturating_sub(looked.at);
        let time_line = looked.at_after(passed);
        if passed >= LOOK_EVERY {
            let wall_ahead = ahead(wall_ns(), time_line);
            *shared = Look { at: now, time_line, wall_ahead };
            if (wall_ahead - looked.wall_ahead).unsigned_abs() >= STEP.as_nanos() {
                tracing::warn!(
                    ahead_ms = i64::try_from(wall_ahead / 1_000_000).unwrap_or(i64::MAX),
                    "the wall clock was set; deadlines keep to the monotonic clock"
                );
            }
        }
        self.own.set(*shared);
        time_line
    }

    /// Returns how far the time line is ahead of the wall clock now, in milliseconds. Negative if
    /// it is behind.
    pub fn ahead_of_wall(&self, now: Duration, wall_ns: u128) -> i64 {
        let time_line = self.read(now, || wall_ns);
        let ms = (ahead(time_line, wall_ns) + 500_000).div_euclid(1_000_000);
        i64::try_from(ms).unwrap_or(i64::MAX)
    }
}

impl Look {
    /// The moment of the time line when this has passed since the look, and no other look was made.
    fn at_after(&self, passed: Duration) -> u128 {
        self.time_line.saturating_add_signed(moved(passed, self.wall_ahead))
    }
}

/// Returns how far the time line moves while `passed` passes, in nanoseconds.
///
/// This is `passed`, and a little more or less to come nearer to the wall clock, which is ahead by
/// `wall_ahead` nanoseconds. The time line never moves back, nor past the wall clock.
fn moved(passed: Duration, wall_ahead: i128) -> i128 {
    let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
    let most = i128::from(passed / DRAWN_ONE_IN);
    i128::from(passed) + wall_ahead.clamp(-most, most)
}

/// Logs a warning at the start if the store knows a moment far ahead of the wall clock, so that
/// time starts there. Returns whether it is that far ahead.
pub(crate) fn warn_if_ahead(start: Timestamp, wall: Timestamp) -> bool {
    let ahead = start.since(wall);
    let is_far = ahead > FAR_AHEAD;
    if is_far {
        tracing::warn!(
            ahead_ms = ahead.ms(),
            "the journal's latest moment is ahead of the wall clock, and time goes on from there: \
             moments that are shown in Unix milliseconds are off by that, and come nearer by half \
             a millisecond each second; leases, delays and TTLs last as long as they should; if \
             it is the wall clock that is wrong, set it and start the server again"
        );
    }
    is_far
}

/// Tells the time on any thread.
pub(crate) type Tell = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The clock of a running server, or one of several handles of it.
pub struct SystemClock {
    line: TimeLine,
    /// The monotonic moment from which others are counted.
    began: Instant,
}

impl SystemClock {
    /// The moment by the wall clock, for the start.
    #[must_use]
    pub fn wall() -> Timestamp {
        Timestamp::from_ms(u64::try_from(wall_ns() / 1_000_000).unwrap_or(u64::MAX))
    }

    /// Returns a clock that starts at `start`. Must be called within a runtime.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let line = TimeLine::starting_at(start, Duration::ZERO, wall_ns());
        Self { line, began: monotonic() }
    }

    /// Returns another handle of this clock, for another thread: both tell the same time.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { line: self.line.another(), began: self.began }
    }

    /// Returns what tells the same time on any thread, at the cost of a lock.
    pub(crate) fn tell(&self) -> Tell {
        let clock = Mutex::new(self.another());
        Box::new(move || clock.lock().unwrap_or_else(PoisonError::into_inner).now())
    }

    /// Moves the time line to the monotonic moment `now`.
    fn read(&self, now: Instant) -> u128 {
        self.line.read(now.saturating_duration_since(self.began), wall_ns)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let ns = self.read(monotonic());
        Timestamp::from_ms(u64::try_from(ns / 1_000_000).unwrap_or(u64::MAX))
    }

    fn passed(&self) -> Duration {
        monotonic().saturating_duration_since(self.began)
    }

    fn ahead_of_wall(&self) -> i64 {
        self.line.ahead_of_wall(monotonic().saturating_duration_since(self.began), wall_ns())
    }

    #[expect(clippy::disallowed_methods, reason = "a timer for the next deadline is no sleep")]
    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async move {
            loop {
                let (ns, reading_at) = {
                    let now = monotonic();
                    (self.read(now), now)
                };
                let target = u128::from(at.ms()) * 1_000_000;
                let Some(left) = target.checked_sub(ns).filter(|left| *left > 0) else { return };
                let left = u64::try_from(left).unwrap_or(u64::MAX);
                // A distant deadline is checked again from time to time, since time may be drawn.
                let nap = Duration::from_nanos(left).min(Duration::from_mins(1));
                tokio::time::sleep_until(reading_at + nap).await;
            }
        })
    }
}

/// Waits until every moment that a server has told or written so far is over.
#[expect(clippy::disallowed_methods, reason = "that the time has passed is the event")]
pub(crate) async fn later() {
    tokio::time::sleep_until(monotonic() + AHEAD_MOST).await;
}

/// Measures how long the disk takes, from any thread.
pub(crate) fn stopwatch() -> Stopwatch {
    let began = monotonic();
    Arc::new(move || monotonic().saturating_duration_since(began))
}

/// Milliseconds since the machine was started, including those in which it slept.
#[must_use]
pub fn steady_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let ms = now.tv_sec * 1_000 + now.tv_nsec / 1_000_000;
    u64::try_from(ms).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn monotonic() -> Instant {
    Instant::now()
}

/// Nanoseconds since the Unix epoch, by the wall clock.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
fn wall_ns() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

/// How far the wall clock is ahead of the time line, both in nanoseconds.
fn ahead(wall_ns: u128, time_line_ns: u128) -> i128 {
    let wall = i128::try_from(wall_ns).unwrap_or(i128::MAX);
    wall - i128::try_from(time_line_ns).unwrap_or(i128::MAX)
}
