//! The one time line, and the only reader of the machine's clocks.
//!
//! Time starts at the wall clock, but never before the latest moment that the store knows, and
//! goes on with the monotonic clock. When the two drift apart, because somebody set the wall
//! clock or the machine slept, time is drawn towards the wall clock so gently that no lease, delay
//! or TTL notices: half a millisecond for every second. A step is logged. Time never goes back.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::Stopwatch;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Tells the time of one shard.
pub trait Clock {
    /// The moment that it is now. Never earlier than an earlier answer.
    fn now(&self) -> Timestamp;

    /// How far that is ahead of the wall clock, in milliseconds; less than 0 if it is behind.
    fn ahead_of_wall(&self) -> i64;

    /// Waits until `at` has come.
    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// How far time is drawn towards the wall clock, as a part of the time that passes: one in this
/// many.
const DRAWN_ONE_IN: u64 = 2_000;

/// From which difference on a set wall clock is worth a line in the log.
const STEP: Duration = Duration::from_secs(1);

/// How far the journal may be ahead of the wall clock at the start without a word.
const FAR_AHEAD: Span = Span::from_ms(60_000);

/// How often the wall clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time line itself, which is told what the clocks of the machine say and reads none.
pub struct TimeLine {
    looked: Cell<Look>,
}

/// A look at the wall clock.
#[derive(Clone, Copy)]
struct Look {
    /// The monotonic moment of it.
    at: Duration,
    /// Where the time line stood, in nanoseconds.
    time_line: u128,
    /// How far the wall clock was ahead of it, in nanoseconds.
    wall_ahead: i128,
}

impl TimeLine {
    /// A time line that starts at `start`, which is now. Monotonic moments are told as the time
    /// since any moment that stays the same, those of the wall clock in nanoseconds since the Unix
    /// epoch.
    #[must_use]
    pub fn starting_at(start: Timestamp, monotonic: Duration, wall_ns: u128) -> Self {
        let time_line = u128::from(start.ms()) * 1_000_000;
        let wall_ahead = ahead(wall_ns, time_line);
        Self { looked: Cell::new(Look { at: monotonic, time_line, wall_ahead }) }
    }

    /// Where the time line stands at the monotonic moment `now`, which is never earlier than that
    /// of an earlier call, in nanoseconds since the Unix epoch. The wall clock is looked at every
    /// so often.
    pub fn read(&self, now: Duration, wall_ns: impl FnOnce() -> u128) -> u128 {
        let looked = self.looked.get();
        let passed = now.saturating_sub(looked.at);
        let time_line = looked.time_line.saturating_add_signed(moved(passed, looked.wall_ahead));
        if passed >= LOOK_EVERY {
            let wall_ahead = ahead(wall_ns(), time_line);
            self.looked.set(Look { at: now, time_line, wall_ahead });
            if (wall_ahead - looked.wall_ahead).unsigned_abs() >= STEP.as_nanos() {
                tracing::warn!(
                    ahead_ms = i64::try_from(wall_ahead / 1_000_000).unwrap_or(i64::MAX),
                    "the wall clock was set; deadlines keep to the monotonic clock"
                );
            }
        }
        time_line
    }

    /// How far the time line is ahead of the wall clock now, in milliseconds, less than 0 if it is
    /// behind.
    pub fn ahead_of_wall(&self, now: Duration, wall_ns: u128) -> i64 {
        let time_line = self.read(now, || wall_ns);
        let ms = (ahead(time_line, wall_ns) + 500_000).div_euclid(1_000_000);
        i64::try_from(ms).unwrap_or(i64::MAX)
    }
}

/// How far the time line moves on, in nanoseconds, while so much time passes: as far, and a little
/// more or less to come nearer to the wall clock, which is ahead by so many nanoseconds. It never
/// moves back, nor past the wall clock.
fn moved(passed: Duration, wall_ahead: i128) -> i128 {
    let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
    let mut most = i128::from(passed / DRAWN_ONE_IN);
    if planted!(TimeFollowsTheWallClock) {
        most = i128::MAX;
    }
    if planted!(TimeDrawnTooFast) {
        most = i128::from(passed / 2);
    }
    if planted!(TimeNotDrawnBack) && wall_ahead < 0 {
        most = 0;
    }
    i128::from(passed) + wall_ahead.clamp(-most, most)
}

/// Says at the start if the store knows a moment far ahead of the wall clock, so that time starts
/// there. Returns whether it is that far.
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

/// The clock of a running server.
pub struct SystemClock {
    line: TimeLine,
    /// The monotonic moment that others are counted from.
    began: Instant,
}

impl SystemClock {
    /// What the wall clock says, for the start.
    #[must_use]
    pub fn wall() -> Timestamp {
        Timestamp::from_ms(u64::try_from(wall_ns() / 1_000_000).unwrap_or(u64::MAX))
    }

    /// A clock that starts at `start`. Must be made within a runtime.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let line = TimeLine::starting_at(start, Duration::ZERO, wall_ns());
        Self { line, began: monotonic() }
    }

    /// Moves the time line on to the monotonic moment `now`.
    fn read(&self, now: Instant) -> u128 {
        self.line.read(now.saturating_duration_since(self.began), wall_ns)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let ns = self.read(monotonic());
        Timestamp::from_ms(u64::try_from(ns / 1_000_000).unwrap_or(u64::MAX))
    }

    fn ahead_of_wall(&self) -> i64 {
        self.line.ahead_of_wall(monotonic().saturating_duration_since(self.began), wall_ns())
    }

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
                // A deadline that is far away is looked at again, since time may be drawn.
                let nap = Duration::from_nanos(left).min(Duration::from_mins(1));
                tokio::time::sleep_until(reading_at + nap).await;
            }
        })
    }
}

/// A clock that stands still until it is told to move. For tests.
#[derive(Clone)]
pub struct ManualClock {
    inner: Rc<(Cell<Timestamp>, Notify)>,
    ahead_of_wall: Rc<Cell<i64>>,
}

impl ManualClock {
    /// A clock that shows `start`, as the wall clock does.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        Self { inner: Rc::new((Cell::new(start), Notify::new())), ahead_of_wall: Rc::default() }
    }

    /// Sets the wall clock so that this one is ahead of it by so many milliseconds, or behind it.
    pub fn set_ahead_of_wall(&self, ms: i64) {
        self.ahead_of_wall.set(ms);
    }

    /// Moves the clock on.
    pub fn advance(&self, span: Span) {
        self.inner.0.set(self.inner.0.get().after(span));
        self.inner.1.notify_waiters();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.inner.0.get()
    }

    fn ahead_of_wall(&self) -> i64 {
        self.ahead_of_wall.get()
    }

    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async move {
            loop {
                let moved = self.inner.1.notified();
                if self.inner.0.get() >= at {
                    return;
                }
                moved.await;
            }
        })
    }
}

/// Measures how long the disk takes, from any thread.
pub(crate) fn stopwatch() -> Stopwatch {
    let began = monotonic();
    Arc::new(move || monotonic().saturating_duration_since(began))
}

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
