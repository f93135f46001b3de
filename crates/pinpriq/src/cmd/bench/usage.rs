//! What a server uses according to the system: CPU time, memory, disk space.
//!
//! CPU time and memory come from `/proc`, so they are only available on Linux. Most machines count
//! CPU time in hundredths of a second, so a run should take seconds.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::exit::Failure;

/// The unit in which a file's blocks are counted, whatever the file system's own is.
const BLOCK_BYTES: u64 = 512;

/// What a server uses at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Usage {
    /// The usage of its process, if known.
    pub(super) process: Option<ProcessUsage>,
    /// The disk space of its directory, if known.
    pub(super) disk_bytes: Option<u64>,
}

/// What a process uses at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessUsage {
    /// CPU time since its start, of all of its threads, in user mode and in the kernel.
    pub(super) cpu_ns: u64,
    /// How much of its memory is resident.
    pub(super) resident_bytes: u64,
}

impl Usage {
    /// Reads the usage of the process and the directory, if they are given.
    pub(super) fn of(pid: Option<u32>, dir: Option<&Path>) -> Result<Self, Failure> {
        let process = pid.map(|pid| {
            ProcessUsage::of(pid).map_err(|error| {
                Failure::on_the_way(format!("cannot tell what process {pid} uses: {error}"))
            })
        });
        let disk_bytes = dir.map(|dir| {
            disk_bytes(dir).map_err(|error| {
                let dir = dir.display();
                Failure::on_the_way(format!("cannot tell what {dir} takes up: {error}"))
            })
        });
        Ok(Self { process: process.transpose()?, disk_bytes: disk_bytes.transpose()? })
    }
}

impl ProcessUsage {
    fn of(pid: u32) -> io::Result<Self> {
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

/// Returns the disk space of a directory and everything below it. Files that disappear meanwhile
/// count as nothing.
fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += metadata.blocks() * BLOCK_BYTES;
        if metadata.is_dir() {
            bytes += disk_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Usage, cpu_ticks, disk_bytes, resident_pages};

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

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes files of its own")]
    fn disk_space_is_that_of_all_files_below() {
        let dir = tempfile::tempdir().unwrap();
        let empty = disk_bytes(dir.path()).unwrap();
        std::fs::create_dir_all(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("below/file"), vec![1; 100_000]).unwrap();
        assert!(disk_bytes(dir.path()).unwrap() >= empty + 100_000);
        assert!(disk_bytes(&dir.path().join("nowhere")).is_err());
    }

    #[test]
    fn what_is_not_asked_for_is_not_looked_at() {
        assert_eq!(Usage::of(None, None), Ok(Usage::default()));
    }
}
