//! What the machine has for a server: memory, and files that may be open at the same time.
//!
//! The limits of a container count like those of a machine. `config.rs` decides what follows from
//! them.

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where the system keeps the memory limits of groups of processes, in both versions of that
/// interface, and the name of the file with the limit.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// How many files a server may have open besides its connections, and how many more for each shard:
/// standard streams, listeners, the journal and what the runtime needs.
const FILES_OF_SERVER: u64 = 32;
const FILES_OF_SHARD: u64 = 32;

/// Returns how many bytes of memory this process may use: those of the machine, or fewer if it is
/// in a group with a limit.
pub(crate) fn memory() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let system = rustix::system::sysinfo();
    let physical = system.totalram.saturating_mul(u64::from(system.mem_unit));
    group_memory(&groups, read).map_or(physical, |limit| limit.min(physical))
}

/// Returns the name of the machine, as far as it can be the name of a node.
pub(crate) fn name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let plain: String = name.chars().filter(is_plain).take(40).collect();
    if plain.is_empty() { "node".to_owned() } else { plain }
}

/// Returns the lowest memory limit of these groups, as the system lists those of a process, and of
/// all groups that they are in.
fn group_memory(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        // A number, the resources that are limited there, and the path of the group.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(resources), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match resources {
            "" => GROUPS[0],
            _ if resources.split(',').any(|it| it == "memory") => GROUPS[1],
            _ => continue,
        };
        // In a container the path may be one of the machine. The root is that of the container.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let limit = read(&Path::new(root).join(group).join(file));
            limits.extend(limit.and_then(|text| text.trim().parse::<u64>().ok()));
        }
    }
    limits.into_iter().min()
}

/// Raises the limit on open files as far as this process may. Returns the limit, if there is one.
pub(crate) fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}

/// Returns how many files a server may have open at the same time, if the limit is lower.
pub(crate) fn files_beyond(limit: Option<u64>, connections: usize, shards: usize) -> Option<u64> {
    let (connections, shards) = (connections as u64, shards as u64);
    let files = connections + FILES_OF_SERVER + FILES_OF_SHARD * shards;
    limit.is_some_and(|limit| limit < files).then_some(files)
}

/// Returns how many connections a server can have with this limit, so that its journal always finds
/// a file descriptor: at least one.
pub(crate) fn connections_within(limit: u64, shards: usize) -> usize {
    let own = FILES_OF_SERVER + FILES_OF_SHARD * shards as u64;
    usize::try_from(limit.saturating_sub(own)).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory limit of these groups where these files have these contents.
    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let content = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, content)| (*content).to_owned())
        };
        group_memory(groups, content)
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_around_it_counts() {
        let files = [
            ("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/a.slice/memory.max", "3000\n"),
            ("/sys/fs/cgroup/memory.max", "4000\n"),
            ("/sys/fs/cgroup/c.slice/memory.max", "2000\n"),
        ];
        assert_eq!(limit("0::/a.slice/b.service\n", &files), Some(3_000));
        assert_eq!(limit("0::/elsewhere\n", &files), Some(4_000));
        assert_eq!(limit("0::/\n", &files), Some(4_000));
        assert_eq!(limit("0::/c.slice\n", &files), Some(2_000));
        assert_eq!(limit("0::/a.slice/b.service\n", &files[..1]), None);
        assert_eq!(limit("nonsense", &files), None);
    }

    #[test]
    fn the_former_interface_counts_for_memory_alone() {
        let files = [
            ("/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "5000\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n"),
        ];
        let groups = "9:cpu,cpuacct:/other\n4:hugetlb,memory:/pod/a:b\n0::/other\n";
        assert_eq!(limit(groups, &files), Some(5_000));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory() > 1 << 20);
    }

    #[test]
    fn files_are_needed_for_connections_and_for_each_shard() {
        assert_eq!(files_beyond(None, 10_000, 1), None);
        assert_eq!(files_beyond(Some(10_064), 10_000, 1), None);
        assert_eq!(files_beyond(Some(10_063), 10_000, 1), Some(10_064));
        assert_eq!(files_beyond(Some(10_064), 10_000, 2), Some(10_096));
        assert_eq!(connections_within(10_064, 2), 9_968);
        assert_eq!(connections_within(90, 2), 1);
    }
}
