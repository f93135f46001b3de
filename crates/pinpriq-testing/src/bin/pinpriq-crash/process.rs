//! Processes that the harness starts. They are ended by their own id, and never left behind.
//!
//! What a server writes to stderr is kept, so that a failure can show it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::fault::Fallible;

/// How long anything may take before the harness gives up. In a normal run nothing waits this long.
pub(crate) const GUARD: Duration = Duration::from_mins(1);
/// The most lines of a log that are kept, the last ones, and that may be in transit.
const LINES_MAX: usize = 1_000;

/// A process with its log. Dropping this value kills it.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    log: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command and reads what it writes to stderr.
    pub(crate) fn start(command: &mut Command) -> Fallible<Self> {
        Self::start_watched(command, |_| ())
    }

    /// Does the same, and calls `watch` with each line.
    pub(crate) fn start_watched(
        command: &mut Command,
        mut watch: impl FnMut(&str) + Send + 'static,
    ) -> Fallible<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let stderr = child.stderr.take().ok_or("a process without stderr")?;
        let (told, lines) = sync_channel(LINES_MAX);
        let log = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = log.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                watch(&line);
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LINES_MAX {
                    kept.pop_front();
                }
                kept.push_back(line.clone());
                drop(kept);
                // When the receiver is gone, keep reading the log, or the server would block.
                let _ = told.try_send(line);
            }
        });
        Ok(Self { child, lines, log, reader: Some(reader) })
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains `words`. Returns none if the process ended without it.
    pub(crate) fn line(&self, words: &str) -> Fallible<Option<String>> {
        loop {
            match self.lines.recv_timeout(GUARD) {
                Ok(line) if line.contains(words) => return Ok(Some(line)),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("nothing logged {words}: {}", self.text()).into());
                }
            }
        }
    }

    /// What it has written until now.
    pub(crate) fn text(&self) -> String {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.make_contiguous().join("\n")
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> Fallible<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Fallible<ExitStatus> {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        self.wait()
    }

    /// Waits until it has ended and its log has been read.
    pub(crate) fn wait(&mut self) -> Fallible<ExitStatus> {
        let status = self.child.wait()?;
        if let Some(reader) = self.reader.take() {
            // A reader that panicked has nothing more to say.
            let _ = reader.join();
        }
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a field of a log line, without its quotes.
pub(crate) fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    match rest.strip_prefix('"') {
        Some(text) => text.split_once('"').map(|(value, _)| value),
        None => rest.split([',', '}']).next(),
    }
}

/// Sends a signal to the process with this id.
pub(crate) fn signal(signal: &str, id: u32) -> Fallible<()> {
    run(Command::new("kill").args([signal, &id.to_string()])).map(drop)
}

/// Runs a command to its end. Returns its output, or why it failed.
pub(crate) fn run(command: &mut Command) -> Fallible<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let [printed, complaint] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).trim().to_owned());
    Err(format!("{command:?}: {}: {complaint} {printed}", output.status).into())
}

/// Whether this program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    let mut command = Command::new("sh");
    run(command.args(["-c", "command -v \"$0\"", program])).is_ok()
}
