//! A peer for the client commands: it does what a test says, and tells what it was sent.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use pinpriq_client::blocking::Line;
use pinpriq_proto::wire::{Decoded, decode_request};

/// The connection of a client command, with what it has sent so far.
pub(crate) struct Session {
    line: Line,
}

impl Session {
    /// Waits for a client command to connect.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().unwrap();
        Self { line: Line::over(stream).unwrap() }
    }

    /// The bytes of the next request; empty when there are no more.
    pub(crate) fn request(&mut self) -> Vec<u8> {
        loop {
            match decode_request(self.line.unused()).unwrap() {
                Decoded::Message { length, .. } => return self.line.bytes(length).unwrap(),
                Decoded::Incomplete { .. } => {
                    if !self.line.receive().unwrap() {
                        assert_eq!(self.line.unused(), b"", "the last request is cut short");
                        return Vec::new();
                    }
                }
            }
        }
    }

    /// Sends bytes one by one, so that no test depends on them arriving together.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.line.send(&[*byte]).unwrap();
        }
    }

    /// Sends no more, and closes when the client has. A connection that is closed before its input
    /// is read is reset, and what was sent may be lost.
    pub(crate) fn end(mut self) {
        self.line.end_input().unwrap();
        self.line.rest().unwrap();
    }
}

/// The binary with these arguments and without any setting from the outside.
pub(crate) fn pinpriq(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinpriq"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PINPRIQ_") {
            command.env_remove(name);
        }
    }
    // Servers run beside each other here; one that is to speak RESP or HTTP says on which port.
    command.env("PINPRIQ_RESP", "off").env("PINPRIQ_HTTP", "off");
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary against a peer that does what `script` says.
pub(crate) fn run_against<T: Send>(
    arguments: &[&str],
    stdin: &[u8],
    script: impl FnOnce(Session) -> T + Send,
) -> (Output, T) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::scope(|scope| {
        let peer = scope.spawn(move || script(Session::accept(&listener)));
        let mut command = pinpriq(arguments);
        let mut child =
            command.env("PINPRIQ_ADDRESS", address).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        (child.wait_with_output().unwrap(), peer.join().unwrap())
    })
}

/// Checks how the binary ended, and what it printed. Returns what it complained about.
#[track_caller]
pub(crate) fn check(output: &Output, code: i32, stdout: &[u8]) -> String {
    let complaint = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "stderr: {complaint}");
    assert_eq!(output.stdout, stdout, "stderr: {complaint}");
    assert_eq!(complaint.is_empty(), matches!(code, 0 | 4 | 10..=18), "stderr: {complaint}");
    complaint
}
