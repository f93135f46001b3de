//! A client of the RESP door that waits for each reply, and a server that has one.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;

use pinpriq_wire::resp::{DecodedReply, ReplyDecoder, Value, put_command};

use crate::serving::{GUARD, Serving};

/// Starts a server with both doors on ports of its own, and answers the address of its RESP door.
pub(super) fn serve(data: &Path, flags: &[&str]) -> (Serving, String) {
    let flags = [&["--resp", "127.0.0.1:0"], flags].concat();
    let server = Serving::launch(data, &flags);
    let address = door(&server, "resp");
    (server, address)
}

/// Where a door of a server listens.
pub(super) fn door(server: &Serving, name: &str) -> String {
    let line = server.logged(&format!("\"door\":\"{name}\""));
    let (_, rest) = line.split_once("\"address\":\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// One connection.
pub(super) struct Redis {
    stream: TcpStream,
    decoder: ReplyDecoder,
    input: Vec<u8>,
}

/// The bytes of a command that is written as a line.
fn command(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    put_command(&mut bytes, &words);
    bytes
}

impl Redis {
    pub(super) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        Self { stream, decoder: ReplyDecoder::default(), input: Vec::new() }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a command and does not read its reply.
    pub(super) fn say(&mut self, line: &str) {
        self.send(&command(line));
    }

    /// Sends the same command over and over, until the server takes no more.
    pub(super) fn say_until_held_back(&mut self, line: &str, times: usize) {
        self.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let commands = command(line).repeat(100);
        for _ in 0..times / 100 {
            match self.stream.write_all(&commands) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next reply.
    pub(super) fn value(&mut self) -> Value {
        loop {
            match self.decoder.decode(&self.input).unwrap() {
                DecodedReply::Whole { value, length } => {
                    self.input.drain(..length);
                    return value;
                }
                DecodedReply::Incomplete { length } => drop(self.input.drain(..length)),
            }
            let mut chunk = [0; 8 << 10];
            let count = self.stream.read(&mut chunk).unwrap();
            assert_ne!(count, 0, "the server has closed");
            self.input.extend_from_slice(&chunk[..count]);
        }
    }

    /// Sends a command, and answers its reply.
    pub(super) fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.value()
    }

    /// Sends commands in one write, and answers their replies.
    pub(super) fn ask_all(&mut self, lines: &[&str]) -> Vec<Value> {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| command(line)).collect();
        self.send(&bytes);
        lines.iter().map(|_| self.value()).collect()
    }

    /// The reply to a command, as it is shown in tests; see [`show`].
    pub(super) fn told(&mut self, line: &str) -> String {
        show(&self.ask(line))
    }

    /// A fact that `INFO` tells.
    pub(super) fn info(&mut self, name: &str) -> String {
        let text = show(&self.ask("INFO"));
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is in {text}")).to_owned()
    }

    /// Sends nothing more.
    pub(super) fn end_input(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Reads until the server closes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.input);
        self.stream.read_to_end(&mut bytes).unwrap();
        bytes
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
    match reply {
        Value::Array(tasks) => match tasks.first() {
            Some(Value::Array(parts)) => parts.iter().map(show).collect(),
            other => panic!("a task, not {other:?}"),
        },
        other => panic!("tasks, not {other:?}"),
    }
}

/// The receipt of the first task of a reply.
pub(super) fn receipt(reply: &Value) -> String {
    task(reply).swap_remove(2)
}

/// The payloads of all tasks of a reply.
pub(super) fn payloads(reply: &Value) -> Vec<String> {
    let Value::Array(tasks) = reply else { panic!("tasks, not {reply:?}") };
    tasks.iter().map(|one| task(&Value::Array(vec![one.clone()])).swap_remove(3)).collect()
}

/// A number in a reply to STATS.
pub(super) fn figure(stats: &Value, name: &str) -> i64 {
    let Value::Array(flat) = stats else { panic!("a map, not {stats:?}") };
    let mut pairs = flat.chunks_exact(2);
    let found = pairs.find(|pair| pair[0].as_bytes() == Some(name.as_bytes()));
    match found.map(|pair| &pair[1]) {
        Some(Value::Integer(number)) => *number,
        other => panic!("{name} is a number, not {other:?}"),
    }
}
