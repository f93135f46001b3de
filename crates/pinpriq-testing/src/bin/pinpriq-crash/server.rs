//! The pinpriq program under test, run as its users run it, or under strace.
//!
//! It listens on a port of its own on the loopback interface.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Fallible;
use crate::files;
use crate::process::{Process, field, signal};

/// The memory for tasks, where it is limited: about sixty small tasks for each shard.
const MEMORY_LIMIT_BYTES: u64 = 16 << 10;

/// How much may wait for its archive, where there is one: more than any scenario writes.
const ARCHIVE_BACKLOG: &str = "64GiB";

/// A door of the server, with which the clients of the harness speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Door {
    Resp,
    Beanstalkd,
}

impl Door {
    /// Its name among the flags and in the log.
    const fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Beanstalkd => "beanstalkd",
        }
    }

    /// The flags that open it, and no other.
    const fn flags(self) -> &'static str {
        match self {
            Self::Resp => "--resp 127.0.0.1:0",
            Self::Beanstalkd => "--resp off --beanstalkd 127.0.0.1:0",
        }
    }
}

/// How to start the program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// What a reply promises: `sync`, unless a test shows that less is not enough.
    pub(crate) durability: String,
    /// The number of its shards.
    pub(crate) shards: usize,
    /// The only door that is open.
    pub(crate) door: Door,
    /// The place in which it archives, if it does.
    pub(crate) archive: Option<String>,
    /// How often it was started. Every second time it leaves most payloads on the disk.
    pub(crate) starts: Arc<AtomicU64>,
}

/// The outcome of a start.
pub(crate) enum Started {
    /// It listens.
    Listening(Server),
    /// It ended without listening: its exit status, and what it wrote.
    Ended(ExitStatus, String),
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// The server itself, where `process` is the strace around it.
    traced: Option<u32>,
}

impl Program {
    fn arguments(&self, data: &Path) -> Vec<String> {
        let doors = self.door.flags();
        let fixed =
            format!("serve --pinpriq off --http off {doors} --log-format json --durability");
        let mut arguments: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
        arguments.push(self.durability.clone());
        let is_second = !self.starts.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        // Without a journal there is no disk to leave payloads on.
        if is_second && self.durability != "memory" {
            arguments.extend(["--memory-limit".to_owned(), MEMORY_LIMIT_BYTES.to_string()]);
        }
        if let Some(place) = &self.archive {
            let settings = format!("--archive-every 100ms --archive-backlog {ARCHIVE_BACKLOG}");
            arguments.extend(settings.split(' ').map(str::to_owned));
            arguments.extend(["--archive".to_owned(), place.clone()]);
        }
        arguments.extend(["--shards".to_owned(), self.shards.to_string(), "--data".to_owned()]);
        arguments.push(data.to_string_lossy().into_owned());
        arguments
    }

    /// Starts it, and waits until it listens or has ended.
    pub(crate) fn try_start(&self, data: &Path) -> Fallible<Started> {
        let mut command = Command::new(&self.path);
        listening(command.args(self.arguments(data)), self.door, false)
    }

    /// Starts it where nothing can prevent that.
    pub(crate) fn start(&self, data: &Path) -> Fallible<Server> {
        match self.try_start(data)? {
            Started::Listening(server) => Ok(server),
            Started::Ended(status, log) => {
                Err(format!("the server did not start ({status}): {log}").into())
            }
        }
    }

    /// Starts it under strace with these flags.
    pub(crate) fn start_traced(&self, flags: &[String], data: &Path) -> Fallible<Started> {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq"]).args(flags).arg("--").arg(&self.path);
        listening(command.args(self.arguments(data)), self.door, true)
    }
}

/// Removes settings of the harness's environment, which must not affect the server under test.
pub(crate) fn remove_settings(command: &mut Command) {
    let own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("PINPRIQ_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| own(name)) {
        command.env_remove(name);
    }
}

fn listening(command: &mut Command, door: Door, is_traced: bool) -> Fallible<Started> {
    remove_settings(command);
    let mut process = Process::start(command)?;
    let Some(line) = process.line(&format!("\"door\":\"{}\"", door.name()))? else {
        let status = process.wait()?;
        return Ok(Started::Ended(status, process.text()));
    };
    let address = field(&line, "address").ok_or_else(|| format!("no address in {line}"))?;
    let traced = if is_traced { Some(only_child(process.id())?) } else { None };
    Ok(Started::Listening(Server { process, address: address.parse()?, traced }))
}

/// The only child of a process, as reported by the kernel.
fn only_child(id: u32) -> Fallible<u32> {
    Ok(files::children(id)?.first().copied().ok_or("strace has no child")?)
}

impl Server {
    /// The id of the server process itself.
    pub(crate) fn id(&self) -> u32 {
        self.traced.unwrap_or_else(|| self.process.id())
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) -> Fallible<ExitStatus> {
        match self.traced {
            Some(id) => {
                self.send("-KILL", id)?;
                self.process.wait()
            }
            None => self.process.kill(),
        }
    }

    /// Suspends it.
    pub(crate) fn freeze(&mut self) -> Fallible<()> {
        self.send("-STOP", self.id())
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> Fallible<ExitStatus> {
        self.send("-TERM", self.id())?;
        self.process.wait()
    }

    /// Sends a signal, unless the server has ended by itself.
    fn send(&mut self, name: &str, id: u32) -> Fallible<()> {
        if self.process.is_running()?
            && let Err(error) = signal(name, id)
            && self.process.is_running()?
        {
            // A traced server ends a moment before its strace does.
            crate::report::say(format_args!("{error}"));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server would outlive its strace.
        if let Some(id) = self.traced
            && self.process.is_running().unwrap_or(false)
        {
            let _ = signal("-KILL", id);
        }
    }
}
