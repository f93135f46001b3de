//! What strace reports about a run, and how it is made to interfere with the next one.
//!
//! It counts calls separately for each thread: the n-th call is that of whichever thread is the
//! first to make its n-th one.

use std::collections::BTreeMap;

/// The system calls that write, create, rename or remove, or send to a client.
pub(crate) const WRITING: [&str; 17] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fdatasync",
    "fsync",
    "ftruncate",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "fallocate",
    "openat",
    "sendto",
    "sendmsg",
];

/// A system call of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Microseconds of the wall clock.
    pub(crate) at_us: u64,
    pub(crate) thread: u32,
    pub(crate) name: String,
    /// The text from the opening bracket on.
    pub(crate) rest: String,
}

/// The n-th call of this name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) number: u32,
}

/// The flags with which strace records the calls of a run, with times and the paths of open files.
pub(crate) fn noting(log: &str) -> Vec<String> {
    let trace = format!("trace={}", WRITING.join(","));
    ["-ttt", "-y", "-s", "0", "-o", log, "-e", &trace].map(str::to_owned).into()
}

/// Parses the calls of a run. Joins a call that was interrupted by the output of another thread.
/// Ignores anything that is not a call, such as a signal.
pub(crate) fn calls(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in log.lines() {
        if let Some((_, end)) = line.split_once(" resumed>")
            && line.contains(" <... ")
        {
            let thread: Option<u32> = line.split(' ').next().and_then(|it| it.parse().ok());
            let begun = calls.iter_mut().rev().find(|call| Some(call.thread) == thread);
            if let Some(begun) = begun {
                begun.rest.push_str(end);
            }
        } else {
            calls.extend(call(line));
        }
    }
    calls
}

fn call(line: &str) -> Option<Call> {
    let mut words = line.splitn(3, ' ');
    let thread = words.next()?.parse().ok()?;
    // Short numbers are followed by several spaces.
    let rest = line.split_once(' ')?.1.trim_start();
    let (time, rest) = rest.split_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    let (name, rest) = rest.split_once('(')?;
    let is_name =
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    is_name.then(|| Call {
        at_us: seconds * 1_000_000 + micros,
        thread,
        name: name.to_owned(),
        rest: rest.to_owned(),
    })
}

/// The points of a run at a call for which `matters` is true.
pub(crate) fn points(calls: &[Call], matters: impl Fn(&Call) -> bool) -> Vec<Point> {
    let mut counts: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    let mut points = Vec::new();
    for call in calls {
        let count = counts.entry((call.thread, &call.name)).or_insert(0);
        *count += 1;
        if matters(call) {
            points.push(Point { name: call.name.clone(), number: *count });
        }
    }
    points.sort();
    points.dedup();
    points
}

/// Returns why strace cannot trace here, or none if it can.
pub(crate) fn obstacle() -> Option<String> {
    if !crate::process::is_installed("strace") {
        return Some("strace is not installed".to_owned());
    }
    let mut command = std::process::Command::new("strace");
    let traced = crate::process::run(command.args(["-f", "-qq", "-o", "/dev/null", "true"]));
    traced.err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Point, calls, points};

    const LOG: &str = "\
11 1795180000.000001 openat(AT_FDCWD, \"a\", O_RDONLY) = 3
11 1795180000.000002 openat(AT_FDCWD, \"b\", O_RDWR|O_CREAT, 0600) = 4
12    1795180000.000003 pwrite64(4<b>, \"\"..., 8, 0 <unfinished ...>
11 1795180000.000004 fdatasync(4<b>) = -1 EIO (Input/output error) (INJECTED)
12 1795180000.000005 <... pwrite64 resumed>) = -1 EIO (Input/output error) (INJECTED)
12 1795180000.000006 --- SIGTERM {si_signo=SIGTERM} ---
12 1795180000.000007 +++ killed by SIGKILL +++
";

    #[test]
    fn calls_are_read_and_counted_by_thread() {
        let calls = calls(LOG);
        assert_eq!(calls.len(), 4);
        assert_eq!((calls[2].thread, calls[2].at_us), (12, 1_795_180_000_000_003));
        assert!(calls[2].rest.starts_with("4<b>") && calls[2].rest.ends_with("(INJECTED)"));
        let made = points(&calls, |call| call.name != "openat" || call.rest.contains("O_CREAT"));
        let point = |name: &str, number| Point { name: name.to_owned(), number };
        assert_eq!(made, [point("fdatasync", 1), point("openat", 2), point("pwrite64", 1)]);
    }
}
