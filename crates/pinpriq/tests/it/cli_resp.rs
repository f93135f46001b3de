//! The commands that speak RESP, against a real server, and a worker against a server that the
//! test plays.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use crate::peer::{check, pinpriq};
use crate::serving::Serving;

mod batches;
mod beanstalkd;
mod bench;
mod bulk;
mod carrying;
mod commands;
mod fanout;
mod listening;
mod played;
mod schedules;
mod top;
mod worker;

/// A server with a RESP door, which is stopped at the end of its test.
struct Server {
    /// None once it has been stopped.
    serving: Option<Serving>,
    address: String,
    /// Where it keeps its data, if it keeps any.
    _data: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    fn start_at(address: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = pinpriq(&["serve", "--pinpriq", "off", "--resp", address]);
        command.args(["--durability", "memory", "--log-format", "json"]);
        command.arg("--data").arg(data.path());
        let serving = Serving::of_command(command);
        let address = serving.door("resp");
        Self { serving: Some(serving), address, _data: data }
    }

    /// A server with a queue `jobs` that is there even when it is empty.
    fn with_queue() -> Self {
        let server = Self::start();
        server.done(&["queue", "create", "jobs"]);
        server
    }

    /// A client command for this server.
    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = pinpriq(arguments);
        command.env("PINPRIQ_RESP_ADDRESS", &self.address);
        command
    }

    /// Runs a client command without input.
    fn run(&self, arguments: &[&str]) -> Output {
        self.client(arguments).output().unwrap()
    }

    /// Runs a client command with input.
    fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Output {
        let mut child = self.client(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a client command that succeeds, and returns what it printed.
    #[track_caller]
    fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a client command that succeeds, and returns what it said on stderr.
    #[track_caller]
    fn complained(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {complaint}");
        complaint
    }

    /// Runs a client command that prints nothing.
    #[track_caller]
    fn done(&self, arguments: &[&str]) {
        assert_eq!(self.printed(arguments), "", "{arguments:?}");
    }

    /// Runs a client command that the server refuses with these words.
    #[track_caller]
    fn refused(&self, arguments: &[&str], words: &str) {
        let complaint = check(&self.run(arguments), 5, b"");
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }

    /// Puts a task and returns its id.
    #[track_caller]
    fn put(&self, queue: &str, payload: &str) -> String {
        self.printed(&["put", queue, payload]).trim_end().to_owned()
    }

    /// Takes a task and returns its receipt.
    #[track_caller]
    fn take(&self, queue: &str) -> String {
        let line = self.printed(&["take", queue]);
        line.split('\t').next().unwrap().to_owned()
    }

    /// A member of what is known of a task, as it is printed.
    #[track_caller]
    fn known(&self, queue: &str, id: &str, member: &str) -> String {
        member_of(&self.printed(&["get", queue, id]), member)
    }

    /// A figure of a queue.
    #[track_caller]
    fn figure(&self, queue: &str, member: &str) -> String {
        member_of(&self.printed(&["stats", queue]), member)
    }
}

/// Whatever a test has done to a server, it stops in order.
impl Drop for Server {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take_if(|_| !std::thread::panicking()) {
            serving.stop();
        }
    }
}

/// The value behind a name, in lines of names and values.
#[track_caller]
fn member_of(lines: &str, member: &str) -> String {
    let prefix = format!("{member}: ");
    let value = lines.lines().find_map(|line| line.strip_prefix(&prefix));
    value.unwrap_or_else(|| panic!("no {member} in {lines}")).to_owned()
}

/// A named pipe.
fn fifo(dir: &Path, name: &str) -> String {
    let path = dir.join(name).to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// How the first line of a worker begins.
const BEGINS: &str = "pinpriq: working on ";

/// A client that goes on while the test does other things. Killed when it goes out of scope.
struct Worker {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Worker {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Sends a signal.
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for the next line on stderr, except for that with which a worker begins.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        if line.starts_with(BEGINS) { self.line() } else { line }
    }

    /// Waits for the end, which must be in order, and returns the rest of stderr.
    #[track_caller]
    fn end(mut self) -> String {
        let mut rest = self.line();
        self.stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
        rest
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
