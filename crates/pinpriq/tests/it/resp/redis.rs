//! A client of the RESP door that waits for each reply, and a server that has one.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use pinpriq_client::blocking::Resp;
use pinpriq_proto::wire::resp::{Value, Words};

use crate::serving::Serving;
use crate::wire;

/// Starts a server with both doors on ports of its own, and returns the address of its RESP door.
pub(super) fn serve(data: &Path, flags: &[&str]) -> (Serving, String) {
    let flags = [&["--resp", "127.0.0.1:0"], flags].concat();
    let server = Serving::launch(data, &flags);
    let address = server.door("resp");
    (server, address)
}

/// One connection.
pub(crate) struct Redis(Resp);

/// The bytes of a command that is written as a line.
fn command(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Words::new(line).put(&mut bytes);
    bytes
}

impl Redis {
    pub(crate) fn connect(address: &str) -> Self {
        Self(Resp::over(wire::connect(address)))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.0.line_mut().send(bytes).unwrap();
    }

    /// Sends a command and does not read its reply.
    pub(super) fn say(&mut self, line: &str) {
        self.send(&command(line));
    }

    /// Sends the same command over and over, until the server takes no more.
    pub(super) fn say_until_held_back(&mut self, line: &str, times: usize) {
        let held_back = Some(Duration::from_millis(200));
        self.0.line_mut().limit_waiting(held_back);
        let commands = command(line).repeat(100);
        for _ in 0..times / 100 {
            match self.0.line_mut().send(&commands) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next reply.
    pub(super) fn value(&mut self) -> Value {
        self.0.reply().unwrap()
    }

    /// Sends a command, and returns its reply.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.value()
    }

    /// Sends commands in one write, and returns their replies.
    pub(super) fn ask_all(&mut self, lines: &[&str]) -> Vec<Value> {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| command(line)).collect();
        self.send(&bytes);
        lines.iter().map(|_| self.value()).collect()
    }

    /// The reply to a command, as it is shown in tests; see [`show`].
    pub(super) fn reply(&mut self, line: &str) -> String {
        show(&self.ask(line))
    }

    /// A fact that `INFO` tells.
    pub(super) fn info(&mut self, name: &str) -> String {
        let text = show(&self.ask("INFO"));
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is in {text}")).to_owned()
    }

    /// Ends the sending side.
    pub(super) fn end_input(&mut self) {
        self.0.line_mut().end_input().unwrap();
    }

    /// Reads until the server closes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.0.line_mut().rest().unwrap()
    }
}

/// A value in one line: of an error its first word, of all else everything.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Error(text) => text.split(' ').next().unwrap_or_default().to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        other => String::from_utf8(other.as_bytes().expect("a text").to_vec()).unwrap(),
    }
}

/// The parts of the first task of a reply: queue, id, receipt, payload.
pub(super) fn task(reply: &Value) -> Vec<String> {
    let task = reply.elements().and_then(|tasks| tasks.first()?.elements());
    task.unwrap_or_else(|| panic!("a task, not {reply:?}")).iter().map(show).collect()
}

/// The receipt of the first task of a reply.
pub(super) fn receipt(reply: &Value) -> String {
    task(reply).swap_remove(2)
}

/// The payloads of all tasks of a reply.
pub(super) fn payloads(reply: &Value) -> Vec<String> {
    let tasks = reply.elements().unwrap_or_else(|| panic!("tasks, not {reply:?}"));
    tasks.iter().map(|task| show(&task.elements().unwrap()[3])).collect()
}

/// A number in a reply to STATS.
pub(super) fn figure(stats: &Value, name: &str) -> i64 {
    let number = stats.field(name).and_then(Value::integer);
    number.unwrap_or_else(|| panic!("{name} is a number in {stats:?}"))
}
