//! What `stats` says about the process and its machine.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::system::{Uname, uname};
use rustix::time::{ClockId, clock_gettime};

/// The process and its machine, as they are now.
pub(super) struct Machine {
    /// How long the process has computed.
    pub(super) user: Duration,
    /// How long the system has computed for it.
    pub(super) system: Duration,
    names: Uname,
}

impl Machine {
    /// Looks at the machine. Costs three calls of the system.
    pub(super) fn look() -> Self {
        let (user, system) = times().unwrap_or_else(|| {
            let all = clock_gettime(ClockId::ProcessCPUTime);
            (Duration::try_from(all).unwrap_or_default(), Duration::ZERO)
        });
        Self { user, system, names: uname() }
    }

    /// Returns the name of the machine.
    pub(super) fn host(&self) -> &[u8] {
        self.names.nodename().to_bytes()
    }

    /// Returns the version of its system.
    pub(super) fn os(&self) -> &[u8] {
        self.names.version().to_bytes()
    }

    /// Returns the kind of its processor.
    pub(super) fn platform(&self) -> &[u8] {
        self.names.machine().to_bytes()
    }
}

/// Returns how long the process and the system for it have computed, where the system tells.
fn times() -> Option<(Duration, Duration)> {
    times_in(&std::fs::read_to_string("/proc/self/stat").ok()?, clock_ticks_per_second())
}

/// Reads the two times, which are in ticks, after the name of the program in parentheses.
fn times_in(stat: &str, ticks_per_second: u64) -> Option<(Duration, Duration)> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut times = after.split_ascii_whitespace().skip(11).map(|ticks| {
        let ticks: u64 = ticks.parse().ok()?;
        let ms = ticks.checked_mul(1_000)?.checked_div(ticks_per_second)?;
        Some(Duration::from_millis(ms))
    });
    Some((times.next()??, times.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_process_are_found_whatever_its_name() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        let expected = (Duration::from_millis(1_500), Duration::from_millis(250));
        assert_eq!(times_in(stat, 100), Some(expected));
        assert_eq!(times_in("7 (a) R 1", 100), None);
    }
}
