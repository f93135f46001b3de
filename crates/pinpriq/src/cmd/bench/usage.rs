//! What a server uses according to the system: CPU time and memory.
//!
//! Both come from `/proc`, so they are only available on Linux. Most machines count CPU time in
//! hundredths of a second, so a run should take seconds.

use std::fs;
use std::io;

use crate::exit::Failure;

/// What a process uses at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessUsage {
    /// CPU time since its start, of all of its threads, in user mode and in the kernel.
    pub(super) cpu_ns: u64,
    /// How much of its memory is resident.
    pub(super) resident_bytes: u64,
}

impl ProcessUsage {
    /// Reads what a process uses.
    pub(super) fn of(pid: u32) -> Result<Self, Failure> {
        Self::read(pid).map_err(|error| {
            Failure::on_the_way(format!("cannot tell what process {pid} uses: {error}"))
        })
    }

    fn read(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let statm = fs::read_to_string(format!("/proc/{pid}/statm"))?;
        let unreadable = || io::Error::other("/proc is not as Linux has it");
        let ticks = cpu_ticks(&stat).ok_or_else(unreadable)?;
        let pages = resident_pages(&statm).ok_or_else(unreadable)?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(0);
        Ok(Self { cpu_ns: ticks * tick_ns, resident_bytes: pages * page_bytes })
    }
}

/// The CPU time of a process from its `stat`, in ticks.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The name of the process stands in parentheses and may hold anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The resident memory of a process from its `statm`, in pages.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{cpu_ticks, resident_pages};

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "17 (a) b (c) S 1 17 17 0 -1 4194560 900 0 0 0 123 45 0 0 20 0 3 0 99 1 2";
        assert_eq!(cpu_ticks(stat), Some(168));
        assert_eq!(cpu_ticks("17 (pinpriq) S 1"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn resident_memory_is_the_second_number() {
        assert_eq!(resident_pages("5000 1234 900 300 0 700 0\n"), Some(1_234));
        assert_eq!(resident_pages("5000"), None);
    }
}
