//! A server process: started, watched through its log, killed or stopped, never left behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::peer::pinpriq;
use crate::wire::Wire;

/// How long anything may take before the test has failed. Nothing waits for this to pass.
pub(crate) const GUARD: Duration = Duration::from_mins(2);

/// A server process of its own. Killed when it goes out of scope.
pub(crate) struct Serving {
    child: Child,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
    pub(crate) address: String,
    tells: bool,
}

/// The address in a line of a log.
pub(crate) fn address_in(line: &str) -> String {
    let (_, rest) = line.split_once("\"address\":\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// What a server has logged so far.
#[derive(Default)]
struct Log {
    state: Mutex<(Vec<String>, bool)>,
    news: Condvar,
}

impl Serving {
    /// Starts a server on a port of its own, and waits until it listens.
    pub(crate) fn start(data: &Path, flags: &[&str]) -> Self {
        Self::listening(Self::launch(data, flags))
    }

    /// Waits until a server listens, and notes where.
    pub(crate) fn listening(mut server: Self) -> Self {
        server.address = server.door("pinpriq");
        server
    }

    /// Waits until a door listens, and answers where.
    pub(crate) fn door(&self, name: &str) -> String {
        let line = self.logged(&format!("\"door\":\"{name}\""));
        address_in(&line)
    }

    /// Starts a server and waits for nothing.
    pub(crate) fn launch(data: &Path, flags: &[&str]) -> Self {
        let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0", "--log-format", "json"]);
        if !flags.contains(&"--resp") {
            command.args(["--resp", "off"]);
        }
        command.args(["--data", data.to_str().unwrap()]).args(flags);
        Self::of_command(command)
    }

    /// Runs a command that comes to be a server that logs JSON.
    pub(crate) fn of_command(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::<Log>::default();
        let reader = std::thread::spawn({
            let log = log.clone();
            move || {
                for line in lines.map_while(Result::ok) {
                    log.add(Some(line));
                }
                log.add(None);
            }
        });
        Self { child, log, reader: Some(reader), address: String::new(), tells: false }
    }

    /// Waits for a line of the log that contains `words`, and returns it.
    pub(crate) fn logged(&self, words: &str) -> String {
        let mut seen = 0;
        loop {
            let (lines, ended) = self.log.after(seen);
            if let Some(line) = lines.iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            seen += lines.len();
            assert!(!ended, "the server ended and never logged {words}: {}", self.log.text());
        }
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(&self.address)
    }

    /// A client command for this server.
    pub(crate) fn client(&self, arguments: &[&str]) -> Command {
        let mut command = pinpriq(arguments);
        command.env("PINPRIQ_ADDRESS", &self.address);
        command
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How many bytes of memory the process occupies.
    #[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read(format!("/proc/{}/statm", self.child.id())).unwrap();
        let statm = String::from_utf8(statm).unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// Has the log printed where the test fails.
    pub(crate) fn telling(mut self) -> Self {
        self.tells = true;
        self
    }

    /// Kills the process as a crash would, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.wait();
    }

    /// Sends a signal.
    pub(crate) fn send(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Sends a signal, waits for the end, and returns the exit code.
    pub(crate) fn signal(mut self, signal: &str) -> Option<i32> {
        self.send(signal);
        self.wait().code()
    }

    /// Like [`Serving::signal`], and returns what was logged too.
    pub(crate) fn signal_logged(self, signal: &str) -> (Option<i32>, String) {
        let log = self.log.clone();
        (self.signal(signal), log.text())
    }

    /// Stops the server, and checks that it does so in order.
    pub(crate) fn stop(self) {
        let log = self.log.clone();
        assert_eq!(self.signal("-TERM"), Some(0), "{}", log.text());
    }

    /// Waits for the end of the process and of its log.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.tells && std::thread::panicking() {
            println!("{}", self.log.text());
        }
    }
}

impl Log {
    /// Adds a line, or notes that there are no more.
    fn add(&self, line: Option<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match line {
            Some(line) => state.0.push(line),
            None => state.1 = true,
        }
        self.news.notify_all();
    }

    /// Waits for lines after the first `seen`; answers them, and whether the log has ended.
    fn after(&self, seen: usize) -> (Vec<String>, bool) {
        let state = self.state.lock().unwrap();
        let nothing_new = |state: &mut (Vec<String>, bool)| state.0.len() <= seen && !state.1;
        let (state, waited) = self.news.wait_timeout_while(state, GUARD, nothing_new).unwrap();
        assert!(!waited.timed_out(), "the server logs nothing more: {:?}", state.0);
        (state.0[seen..].to_vec(), state.1)
    }

    fn text(&self) -> String {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.join("\n")
    }
}
