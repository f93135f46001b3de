//! A client of the RESP door that sends and reads what a test says, byte for byte.

use std::io;
use std::net::SocketAddr;

use pinpriq_proto::wire::resp::{DecodedReply, ReplyDecoder, Value, Words, put_command};
use pinpriq_server::Server;
use pinpriq_server::config::{Config, DoorName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, split};
use tokio::net::TcpSocket;

use crate::line::{self, Line};
use crate::world::{Hosted, Visitor, test};

/// One connection.
pub(super) struct Client {
    pub(super) stream: Line,
    decoder: ReplyDecoder,
    /// What was read and not decoded yet.
    input: Vec<u8>,
}

/// A server that RESP clients visit.
pub(super) type World = Hosted<Client>;

/// Runs a test with a server and this number of clients of it.
pub(super) fn with_clients<const N: usize>(
    config: Config,
    body: impl AsyncFnOnce(&World, &mut [Client; N]),
) {
    test(async || World::start(config).await.host(body).await);
}

impl Visitor for Client {
    fn door(server: &Server) -> Option<SocketAddr> {
        line::address(server, DoorName::Resp)
    }

    async fn visit(address: SocketAddr) -> Self {
        Self::connect(address).await
    }
}

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self::of(Line::connect(address).await)
    }

    pub(super) fn of(stream: Line) -> Self {
        Self { stream, decoder: ReplyDecoder::default(), input: Vec::new() }
    }

    /// One whose kernel takes little ahead of what is read.
    pub(super) async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(128 << 10).unwrap();
        Self::of(Line::over(socket.connect(address).await.unwrap()).await)
    }

    /// The address from which the server sees this client.
    pub(super) fn name(&self) -> String {
        self.stream.local_addr().unwrap().to_string()
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends a command and does not read its reply.
    pub(super) async fn send(&mut self, words: &[&[u8]]) {
        let mut bytes = Vec::new();
        put_command(&mut bytes, words);
        self.send_bytes(&bytes).await;
    }

    /// Sends a command that is written as a line, and does not read its reply.
    pub(super) async fn say(&mut self, line: &str) {
        let mut bytes = Vec::new();
        Words::new(line).put(&mut bytes);
        self.send_bytes(&bytes).await;
    }

    /// Sends a command that is written as a line, and returns its reply.
    pub(super) async fn ask(&mut self, line: &str) -> Value {
        self.say(line).await;
        self.value().await
    }

    /// The same for words with any bytes in them.
    pub(super) async fn ask_words(&mut self, words: &[&[u8]]) -> Value {
        self.send(words).await;
        self.value().await
    }

    /// The reply to a command, as it is shown in tests; see [`show`].
    pub(super) async fn reply(&mut self, line: &str) -> String {
        show(&self.ask(line).await)
    }

    /// Sends requests while it reads their replies, however large these are, and returns `count` of
    /// the replies.
    pub(super) async fn exchange(&mut self, requests: &[u8], count: usize) -> Vec<Value> {
        let Self { stream, decoder, input } = self;
        let (mut reading, mut writing) = split(stream);
        let mut replies = Vec::with_capacity(count);
        let read = async {
            while replies.len() < count {
                let next = next_value(&mut reading, decoder, input).await;
                replies.push(next.expect("a reply and not the end").0);
            }
        };
        let write = async {
            writing.write_all(requests).await.unwrap();
            writing.flush().await.unwrap();
        };
        tokio::join!(write, read);
        replies
    }

    /// The next value and the bytes that it came in; none when the server has closed.
    pub(super) async fn next(&mut self) -> Option<(Value, Vec<u8>)> {
        next_value(&mut self.stream, &mut self.decoder, &mut self.input).await
    }

    /// The next reply or message.
    pub(super) async fn value(&mut self) -> Value {
        self.next().await.expect("a reply and not the end").0
    }

    /// Whether nothing has come that was not read.
    pub(super) fn is_silent(&mut self) -> bool {
        let read = self.stream.read_now(&mut self.input);
        self.input.is_empty() && read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Takes the replies that have come so far, and returns how many they are.
    pub(super) fn arrived(&mut self) -> usize {
        while self.stream.read_now(&mut self.input).is_ok_and(|bytes| bytes > 0) {}
        let mut replies = 0;
        loop {
            match self.decoder.decode(&self.input).unwrap() {
                DecodedReply::Whole { length, .. } => {
                    self.input.drain(..length);
                    replies += 1;
                }
                DecodedReply::Incomplete { length } => {
                    self.input.drain(..length);
                    return replies;
                }
            }
        }
    }

    /// Ends the sending side.
    pub(super) async fn half_close(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Reads until the server closes, and returns what came. A reset counts as closed.
    pub(super) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.input);
        match self.stream.read_to_end(&mut bytes).await {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    }

    /// The number after a name in what `INFO` tells.
    pub(super) async fn info(&mut self, name: &str) -> String {
        let text = self.ask("INFO").await;
        let text = String::from_utf8(text.as_bytes().unwrap().to_vec()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} is in {text}")).to_owned()
    }

    /// Waits until the server has carried out everything that the client of this name has sent,
    /// and has it blocked. Asks until it is so.
    pub(super) async fn see_blocked(&mut self, name: &str) {
        self.see(|line| line.contains(&format!("addr={name} ")) && line.contains(" blocked=1 "))
            .await;
    }

    /// Waits until the server has seen the end of the client of this name.
    pub(super) async fn see_gone(&mut self, name: &str) {
        let wanted = format!("addr={name} ");
        while self.clients().await.iter().any(|line| line.contains(&wanted)) {}
    }

    async fn see(&mut self, is_meant: impl Fn(&str) -> bool) {
        while !self.clients().await.iter().any(|line| is_meant(line)) {}
    }

    async fn clients(&mut self) -> Vec<String> {
        let text = self.ask("CLIENT LIST").await;
        let text = String::from_utf8(text.as_bytes().unwrap().to_vec()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// The next value that a server sends, and the bytes that it came in. `input` is what was read and
/// not decoded yet.
async fn next_value(
    stream: &mut (impl AsyncRead + Unpin),
    decoder: &mut ReplyDecoder,
    input: &mut Vec<u8>,
) -> Option<(Value, Vec<u8>)> {
    let mut raw = Vec::new();
    loop {
        let reply = decoder.decode(input);
        match reply.unwrap_or_else(|error| panic!("{error}: {}", input.escape_ascii())) {
            DecodedReply::Whole { value, length } => {
                raw.extend(input.drain(..length));
                return Some((value, raw));
            }
            DecodedReply::Incomplete { length } => raw.extend(input.drain(..length)),
        }
        if stream.read_buf(input).await.unwrap() == 0 {
            assert!(raw.is_empty() && input.is_empty(), "a reply is cut short");
            return None;
        }
    }
}

/// A value in one line: of an error its first word, of all else everything.
pub(super) fn show(value: &Value) -> String {
    let list = |values: &[Value]| {
        let shown: Vec<String> = values.iter().map(show).collect();
        format!("[{}]", shown.join(" "))
    };
    match value {
        Value::Error(text) => text.split(' ').next().unwrap_or_default().to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        Value::Array(values) => list(values),
        Value::Push(values) => format!("push {}", list(values)),
        Value::Map(pairs) => {
            let shown = pairs.iter().map(|(key, value)| format!("{}={}", show(key), show(value)));
            format!("{{{}}}", shown.collect::<Vec<_>>().join(" "))
        }
        other => match other.as_bytes() {
            Some(b"") => "''".to_owned(),
            Some(bytes) => bytes.escape_ascii().to_string(),
            None => format!("{other:?}"),
        },
    }
}

/// What a map has under this name, in either version of the protocol.
pub(super) fn field<'a>(map: &'a Value, name: &str) -> &'a Value {
    map.field(name).unwrap_or_else(|| panic!("{name} is in {map:?}"))
}

/// The number that a map has under this name.
pub(super) fn number(map: &Value, name: &str) -> i64 {
    field(map, name).integer().unwrap_or_else(|| panic!("{name} is a number in {map:?}"))
}

/// The elements of an array.
pub(super) fn elements(value: &Value) -> &[Value] {
    value.elements().unwrap_or_else(|| panic!("an array, not {value:?}"))
}

/// The receipt of the first task of a reply to TAKE.
pub(super) fn receipt(taken: &Value) -> String {
    show(&elements(&elements(taken)[0])[2])
}

/// Checks that the figures of a reply to STATS add up.
pub(super) fn check_balance(stats: &Value) {
    let ways_out = ["acked", "expired", "killed", "dead", "evicted", "moved", "cancelled"];
    let gone = ways_out.map(|name| number(stats, name)).iter().sum::<i64>();
    let came = number(stats, "put") + number(stats, "revived");
    let present = number(stats, "present");
    assert_eq!(came, gone + present, "{stats:?}");
    let letters = ["R", "T", "W", "B", "Z", "D"];
    let counts = field(stats, "counts");
    // What is kept has been acknowledged.
    assert_eq!(letters[..4].iter().map(|letter| number(counts, letter)).sum::<i64>(), present);
    // What came into a state and did not leave it is there.
    let moves = pairs(field(stats, "transitions"));
    for letter in letters {
        let sum = |at: usize| -> i64 {
            let ends = |step: &&(String, i64)| step.0.split('-').nth(at) == Some(letter);
            moves.iter().filter(ends).map(|(_, times)| times).sum()
        };
        assert_eq!(sum(1) - sum(0), number(counts, letter), "{letter} in {stats:?}");
    }
}

/// The names and numbers of a map.
fn pairs(map: &Value) -> Vec<(String, i64)> {
    let pair = |key: &Value, value: &Value| match value {
        Value::Integer(number) => (show(key), *number),
        other => panic!("a number, not {other:?}"),
    };
    match map {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| pair(key, value)).collect(),
        flat => elements(flat).chunks_exact(2).map(|two| pair(&two[0], &two[1])).collect(),
    }
}
