//! Time is drawn towards the wall clock, from both sides and gently: hours of it, without a clock.
//! All handles of a time line agree.

use std::time::Duration;

use pinpriq_server::clock::TimeLine;

use crate::world::START;

const HOUR: Duration = Duration::from_hours(1);
const START_NS: i128 = 1_700_000_000_000_000_000;

/// A time line that starts at [`START`], and a wall clock that is ahead of it at first.
struct Clocks {
    line: TimeLine,
    wall_ahead: i128,
}

impl Clocks {
    fn new(wall_ahead: i128) -> Self {
        let wall = wall(Duration::ZERO, wall_ahead);
        Self { line: TimeLine::starting_at(START, Duration::ZERO, wall), wall_ahead }
    }

    /// By how many nanoseconds more or less than the monotonic clock the time line has moved on.
    fn drawn(&self, at: Duration) -> i128 {
        let time_line = self.line.read(at, || wall(at, self.wall_ahead));
        i128::try_from(time_line).unwrap() - START_NS - i128::try_from(at.as_nanos()).unwrap()
    }
}

fn wall(at: Duration, ahead: i128) -> u128 {
    u128::try_from(START_NS + i128::try_from(at.as_nanos()).unwrap() + ahead).unwrap()
}

/// What `drawn` ought to be `at` then: half a millisecond for each second, as far as is needed.
fn expected(at: Duration, wall_ahead: i128) -> i128 {
    let most = i128::try_from(at.as_nanos() / 2_000).unwrap();
    wall_ahead.clamp(-most, most)
}

/// Reads the time every so often for some hours, and compares each reading.
fn follow(wall_ahead: i128, step: Duration, hours: u32) {
    let clocks = Clocks::new(wall_ahead);
    let mut at = Duration::ZERO;
    let mut former = 0;
    while at < HOUR * hours {
        at += step;
        let drawn = clocks.drawn(at);
        let off = drawn - expected(at, wall_ahead);
        assert!(off.abs() < 10_000, "{off} ns off after {at:?}, {wall_ahead} ns ahead");
        let moved = drawn - former + i128::try_from(step.as_nanos()).unwrap();
        assert!(moved > 0, "time went back after {at:?}");
        former = drawn;
    }
}

#[test]
fn time_is_drawn_forward_by_half_a_millisecond_a_second() {
    follow(3_600_000_000_000, Duration::from_millis(300), 3);
    follow(3_600_000_000_000, Duration::from_secs(7), 10);
}

#[test]
fn time_is_drawn_back_by_half_a_millisecond_a_second() {
    follow(-3_600_000_000_000, Duration::from_millis(300), 3);
    follow(-3_600_000_000_000, Duration::from_secs(7), 10);
}

#[test]
fn time_is_drawn_no_further_than_to_the_wall_clock() {
    for wall_ahead in [0, 1, -1, 400_000, -400_000, 5_000_000_000, -5_000_000_000] {
        follow(wall_ahead, Duration::from_millis(170), 1);
        follow(wall_ahead, Duration::from_secs(90), 10);
    }
}

#[test]
fn time_that_is_read_all_the_time_is_drawn_as_well() {
    for wall_ahead in [1_000_000_000, -1_000_000_000] {
        let clocks = Clocks::new(wall_ahead);
        let mut at = Duration::ZERO;
        while at < Duration::from_secs(3) {
            at += Duration::from_nanos(1_500);
            clocks.drawn(at);
        }
        let off = clocks.drawn(at) - expected(at, wall_ahead);
        assert!(off.abs() < 10_000, "{off} ns off after {at:?}, {wall_ahead} ns ahead");
    }
}

#[test]
fn a_wall_clock_that_is_set_on_the_way_is_followed_from_then_on() {
    let mut clocks = Clocks::new(0);
    let mut former = 0;
    for (hour, wall_ahead) in [900_000_000, -800_000_000, 100_000_000].into_iter().enumerate() {
        clocks.wall_ahead = wall_ahead;
        let begin = HOUR * u32::try_from(hour).unwrap();
        for second in 1..=3_600 {
            let drawn = clocks.drawn(begin + Duration::from_secs(second));
            assert!((drawn - former).abs() <= 510_000, "{drawn} after {former}");
            former = drawn;
        }
        assert_eq!(former, wall_ahead, "an hour is enough for that");
    }
}

/// Reads the time by several handles while the wall clock is set again and again. `step` says after
/// how many milliseconds, and first by which handle, the time is read in the turn of this number.
fn agree(turns: u16, step: impl Fn(u16) -> (u64, u16)) {
    let mut wall_ahead = 7_000_000;
    let first = TimeLine::starting_at(START, Duration::ZERO, wall(Duration::ZERO, wall_ahead));
    let mut handles = [first.another(), first.another(), first];
    let (mut at, mut former) = (Duration::ZERO, 0);
    for turn in 0..turns {
        if turn % 17 == 0 {
            wall_ahead = i128::from(turn) * 900_000 - wall_ahead;
        }
        if turn % 101 == 0 {
            // One that is made on the way agrees, too.
            handles[1] = handles[0].another();
        }
        let (passed_ms, reader) = step(turn);
        at += Duration::from_millis(passed_ms);
        let read = |handle: &TimeLine| handle.read(at, || wall(at, wall_ahead));
        let time = read(&handles[usize::from(reader)]);
        assert!(time > former, "time went back in turn {turn}");
        former = time;
        for (place, handle) in handles.iter().enumerate() {
            // The last one reads the time only now and then.
            if place + 1 < handles.len() || turn % 40 == 0 {
                assert_eq!(read(handle), time, "handle {place} in turn {turn}, {at:?}");
            }
        }
    }
}

#[test]
fn all_handles_agree_at_every_moment() {
    agree(5_000, |turn| (1 + u64::from(turn) * 37 % 400, turn % 2));
    agree(2_000, |turn| (1_000 + u64::from(turn % 3), turn % 3));
    agree(2_000, |turn| (1 + u64::from(turn).pow(2) % 9_000, turn / 7 % 3));
}

#[test]
fn a_handle_that_was_overtaken_between_its_reading_and_the_look_tells_the_moment_of_the_look() {
    let later = |ms| Duration::from_millis(ms);
    let behind = -5_000_000_000;
    let one = TimeLine::starting_at(START, Duration::ZERO, wall(Duration::ZERO, behind));
    let other = one.another();
    let look = one.read(later(1_200), || wall(later(1_200), behind));
    // It has read the clock earlier, and comes later.
    let unread = || -> u128 { unreachable!("there is a newer look") };
    assert_eq!(other.read(later(1_100), unread), look);
    assert!(other.read(later(1_201), unread) > look);
    assert_eq!(other.read(later(2_000), unread), one.read(later(2_000), unread));
}

#[test]
fn how_far_time_is_ahead_of_the_wall_clock_is_told_in_whole_milliseconds() {
    for (wall_ahead, told) in [
        (0, 0),
        (300_000, 0),
        (-300_000, 0),
        (-60_000_700_000, 60_001),
        (7_200_000_200_000, -7_200_000),
    ] {
        let clocks = Clocks::new(wall_ahead);
        let told_now = clocks.line.ahead_of_wall(Duration::ZERO, wall(Duration::ZERO, wall_ahead));
        assert_eq!(told_now, told, "the wall clock is {wall_ahead} ns ahead");
    }
}
