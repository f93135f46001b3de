//! The command that a worker runs for a task, as a process group of its own.
//!
//! The worker notices its end without collecting it. Only the code that also sends it signals
//! collects it. So its number cannot belong to another process when a signal is sent.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::stderr::Passing;
use super::stop::Event;

/// A command that was started and not yet collected.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    pid: Pid,
    stderr: Option<Passing>,
}

impl Running {
    /// Starts `command` with `input` on stdin, and reports its end to `exited`.
    ///
    /// A variable without a value is removed from the environment of the command.
    pub(super) fn start(
        command: &OsStr,
        variables: &[(String, Option<OsString>)],
        input: Vec<u8>,
        exited: SyncSender<Event>,
    ) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped()).process_group(0);
        shell.stderr(Stdio::piped());
        for (name, value) in variables {
            match value.as_ref().filter(|value| !value.as_bytes().contains(&0)) {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let end = io::pipe()?;
        let mut child = shell.spawn()?;
        let pid = Pid::from_child(&child);
        let stderr = child.stderr.take().map(|stderr| Passing::begin(stderr, end));
        if let Some(mut stdin) = child.stdin.take() {
            // The command need not read its input, nor wait for all of it.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        std::thread::spawn(move || {
            wait_until_exited(pid);
            // Without a receiver the worker has ended.
            let _ = exited.send(Event::Exited);
        });
        Ok(Self { child, pid, stderr })
    }

    /// Asks the command and everything that it started to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends the command and everything that it started a hang-up.
    pub(super) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Kills the command and everything that it started.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // All of them may have ended by now.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Returns how the command ended, after waiting for its end if necessary, and the last line
    /// that it wrote to stderr.
    pub(super) fn collect(mut self) -> (io::Result<ExitStatus>, String) {
        let status = self.child.wait();
        (status, self.stderr.map(Passing::last_line).unwrap_or_default())
    }
}

/// Waits for the end of a child without collecting it.
fn wait_until_exited(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
}

/// Whether a command ended because of a hang-up.
pub(super) fn is_hung_up(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::HUP.as_raw())
}

/// How a command ended, for people.
pub(super) fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
