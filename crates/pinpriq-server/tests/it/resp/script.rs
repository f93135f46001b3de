//! Plays conversations that are written down, and writes down what comes back.
//!
//! A line of a conversation begins with the letter of a client, which connects when it is first
//! heard of, and a sign; `testdata/resp/README.md` says what the signs mean. What the server sent
//! stands behind an arrow, or in lines that begin with `<`, `2` or `3`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use pinpriq_proto::wire::resp::{Decoded, RequestDecoder, RequestLimits, put_command};
use pinpriq_server::config::Config;
use tokio::time::timeout;

use super::client::{Client, World};
use crate::people::{People, Person};
use crate::world::in_memory;

/// How long one line may take before the test has failed. Nothing waits for this to pass.
const PATIENCE: Duration = Duration::from_secs(30);

/// How wide a line of what the server sent may be.
const WIDTH: usize = 98;

/// Stands before an answer in the line of its request.
const ARROW: &str = " → ";

/// Stands in a map for all fields that are not shown.
const ELLIPSIS: &str = "…";

/// Plays a conversation in both versions of the protocol, unless it says that it chooses its own,
/// and returns its text with what was sent back.
pub(super) async fn play(script: &str) -> String {
    let steps = steps(script);
    let lines: Vec<&str> = steps.iter().map(|(line, _)| *line).collect();
    let own = lines.contains(&"~ own");
    let second = Stage::play(&lines, false).await;
    let third = if own { second.clone() } else { Stage::play(&lines, true).await };
    let mut text = String::new();
    for (((line, recorded), second), third) in steps.iter().zip(second).zip(third) {
        text.push_str(line);
        text.push('\n');
        let marked = if own || second == third.iter().map(Node::in_second).collect::<Vec<_>>() {
            vec![("< ", third)]
        } else {
            vec![("2 ", second), ("3 ", third)]
        };
        for (mark, answers) in marked {
            let shortened = answers.into_iter().enumerate();
            let shortened = shortened.map(|(at, it)| it.shortened(recorded.get(at)).lines());
            let lines: Vec<String> = shortened.flatten().collect();
            match lines.as_slice() {
                [one] if mark == "< " && line.chars().count() + one.len() < WIDTH => {
                    text.truncate(text.len() - 1);
                    writeln!(text, "{ARROW}{one}").unwrap();
                }
                lines => lines.iter().for_each(|it| writeln!(text, "{mark}{it}").unwrap()),
            }
        }
    }
    text
}

/// The lines that are no answers, with the answers that were recorded if there is an ellipsis in
/// them. Those in the third version show which fields are left out in both.
fn steps(script: &str) -> Vec<(&str, Vec<Node>)> {
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in script.lines() {
        match line.split_at_checked(2) {
            Some(("2 ", _)) => {}
            Some(("< " | "3 ", answer)) => {
                steps.last_mut().unwrap().1.extend(values(answer));
            }
            _ if line.starts_with('#') => steps.push((line, Vec::new())),
            _ => {
                let (line, answer) = line.split_once(ARROW).unwrap_or((line, ""));
                steps.push((line, values(answer).collect()));
            }
        }
    }
    let read = |words: Vec<&str>| {
        let mut words = words.iter().copied();
        std::iter::from_fn(|| Node::recorded(&mut words)).collect()
    };
    let shortened = |words: &[&str]| words.contains(&ELLIPSIS);
    let read = |words: Vec<_>| if shortened(&words) { read(words) } else { Vec::new() };
    steps.into_iter().map(|(line, words)| (line, read(words))).collect()
}

/// The values of a line of an answer.
fn values(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|word| !word.is_empty())
}

/// The words of a line as `redis-cli` would take it apart.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    // A further word keeps a line about HTTP from being taken for one of HTTP itself.
    let bytes = [line.as_bytes(), b" .\n"].concat();
    match decoder.decode(&bytes) {
        Ok(Decoded::Request { .. }) => {
            let arguments = decoder.arguments(&bytes);
            arguments.iter().take(arguments.len() - 1).map(<[u8]>::to_vec).collect()
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// A server with the clients of a conversation.
struct Stage {
    world: World,
    control: Client,
    clients: BTreeMap<char, Client>,
    /// Requests that are to be sent in one write, and how many of them.
    batch: (Vec<u8>, usize),
    third: bool,
}

impl Stage {
    /// Returns what was sent back after each line.
    async fn play(lines: &[&str], third: bool) -> Vec<Vec<Node>> {
        let (config, users) = config(lines);
        let world = World::start(config).await;
        let control = world.connect().await;
        let (clients, batch) = (BTreeMap::new(), (Vec::new(), 0));
        let mut stage = Self { world, control, clients, batch, third };
        if users.is_some() {
            assert_eq!(stage.control.reply("AUTH control password").await, "OK");
        }
        // It is the first, so that the others have numbers that do not depend on chance.
        stage.control.ask("PING").await;
        let mut answers = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let answer = timeout(PATIENCE, stage.step(line)).await;
            answers.push(answer.unwrap_or_else(|_| panic!("{number}: {line}: nothing happens")));
        }
        stage.settle().await;
        for (name, client) in &mut stage.clients {
            assert!(client.is_silent(), "{name} was sent something that was not read");
        }
        answers
    }

    async fn step(&mut self, line: &str) -> Vec<Node> {
        let mut signs = line.chars();
        let (Some(name), Some(sign)) = (signs.next(), signs.next()) else { return Vec::new() };
        let rest = line.get(3..).unwrap_or_default();
        match name {
            '#' | '~' => return Vec::new(),
            '+' => {
                self.world.advance(line[2..].parse().unwrap());
                return Vec::new();
            }
            _ => assert!(name.is_ascii_lowercase(), "{line}"),
        }
        if !self.clients.contains_key(&name) {
            let client = self.enter().await;
            self.clients.insert(name, client);
        }
        let client = self.clients.get_mut(&name).unwrap();
        match sign {
            '>' | '|' | '!' => {
                let words = words(rest);
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                put_command(&mut self.batch.0, &words);
                self.batch.1 += 1;
                if sign == '|' { Vec::new() } else { self.send(name, sign == '!').await }
            }
            '=' => {
                let bytes = words(rest).concat();
                client.send_bytes(&bytes).await;
                self.settle().await;
                Vec::new()
            }
            '<' => vec![Node::of(&client.next().await.expect("a message").1)],
            '-' => {
                self.settle().await;
                assert!(self.clients.get_mut(&name).unwrap().is_silent(), "{line}");
                Vec::new()
            }
            '/' => {
                client.half_close().await;
                Vec::new()
            }
            '.' => {
                let mut answers = Vec::new();
                while let Some((_, raw)) = client.next().await {
                    answers.push(Node::of(&raw));
                }
                self.clients.remove(&name);
                answers
            }
            'X' => {
                let gone = client.name();
                self.clients.remove(&name);
                self.control.see_gone(&gone).await;
                Vec::new()
            }
            _ => panic!("no such sign: {line}"),
        }
    }

    /// Sends the requests that have been gathered, and returns what is sent back, unless the last
    /// of them blocks.
    async fn send(&mut self, name: char, blocks: bool) -> Vec<Node> {
        let client = self.clients.get_mut(&name).unwrap();
        let (bytes, count) = std::mem::take(&mut self.batch);
        client.send_bytes(&bytes).await;
        let mut answers = Vec::new();
        if blocks {
            self.control.see_blocked(&client.name()).await;
            return answers;
        }
        for _ in 0..count {
            let (_, raw) = client.next().await.expect("a reply");
            answers.push(Node::of(&raw));
        }
        answers
    }

    /// Waits until whatever was on its way has come. Every shard is asked.
    async fn settle(&mut self) {
        for _ in 0..3 {
            self.control.ask("INFO").await;
        }
    }

    async fn enter(&self) -> Client {
        let mut client = self.world.connect().await;
        if self.third {
            client.ask("HELLO 3").await;
        } else {
            client.ask("PING").await;
        }
        client
    }
}

/// The configuration that a conversation asks for, and the file of its users, if it has any.
fn config(lines: &[&str]) -> (Config, Option<People>) {
    let mut config = in_memory();
    let mut people = vec![Person::new("control", "admin")];
    for line in lines.iter().filter_map(|line| line.strip_prefix("~ ")) {
        match line.split_once(' ') {
            Some(("payload", bytes)) => config.limits.payload_bytes_max = bytes.parse().unwrap(),
            Some(("tasks", bytes)) => config.limits.task_bytes_max = bytes.parse().unwrap(),
            Some(("subscriptions", count)) => {
                config.limits.subscriptions_max = count.parse().unwrap();
            }
            Some(("inflight", count)) => config.limits.in_flight_max = count.parse().unwrap(),
            Some(("shards", count)) => config.shards = count.parse().unwrap(),
            Some(("user", user)) => {
                let (name, rules) = user.split_once(' ').unwrap_or((user, ""));
                people.push(Person::new(name, rules));
            }
            _ => assert_eq!(line, "own"),
        }
    }
    let users = (people.len() > 1).then(|| People::new(&people));
    let config = match &users {
        Some(users) => users.at(config),
        None => config,
    };
    (config, users)
}

/// One value of a reply, in the bytes of the protocol.
#[derive(Clone, PartialEq)]
struct Node {
    head: String,
    parts: Vec<Self>,
}

impl Node {
    fn of(raw: &[u8]) -> Self {
        let (node, rest) = Self::read(raw);
        assert_eq!(rest, b"", "one value");
        node
    }

    /// Reads what [`Self::lines`] has written.
    fn recorded<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let head = words.next()?.to_owned();
        let mut parts: Vec<Self> = Vec::new();
        if let Some(length) = head.strip_prefix(['*', '>', '~', '%']) {
            let length = length.parse::<usize>().ok();
            let count = length.map(|length| length * (1 + usize::from(head.starts_with('%'))));
            while count.map_or_else(
                || parts.last().is_none_or(|part| part.head != ELLIPSIS),
                |count| parts.len() < count,
            ) {
                parts.push(Self::recorded(words)?);
            }
        }
        Some(Self { head, parts })
    }

    /// The value as the second version of the protocol has it.
    fn in_second(&self) -> Self {
        let (kind, rest) = self.head.split_at(1);
        let head = match kind {
            "%" => format!("*{}", self.parts.len()),
            "~" | ">" => format!("*{rest}"),
            "_" => "$-1".to_owned(),
            "#" => format!(":{}", u8::from(rest == "t")),
            "," => format!("${} {rest}", rest.len()),
            _ => self.head.clone(),
        };
        Self { head, parts: self.parts.iter().map(Self::in_second).collect() }
    }

    /// Leaves out the fields of maps that a recorded value leaves out.
    fn shortened(mut self, recorded: Option<&Self>) -> Self {
        let Some(recorded) = recorded else { return self };
        let value = |key: &Self| {
            let pairs = recorded.parts.chunks_exact(2);
            pairs
                .map(|pair| (&pair[0], &pair[1]))
                .find(|(it, _)| *it == key)
                .map(|(_, value)| value)
        };
        if recorded.parts.last().is_some_and(|last| last.head == ELLIPSIS) {
            let mut kept = Vec::new();
            let mut parts = self.parts.into_iter();
            while let (Some(key), Some(part)) = (parts.next(), parts.next()) {
                if let Some(recorded) = value(&key) {
                    kept.extend([key, part.shortened(Some(recorded))]);
                }
            }
            kept.push(Self { head: ELLIPSIS.to_owned(), parts: Vec::new() });
            Self { head: self.head[..1].to_owned() + ELLIPSIS, parts: kept }
        } else {
            let parts = self.parts.into_iter().enumerate();
            self.parts = parts.map(|(at, part)| part.shortened(recorded.parts.get(at))).collect();
            self
        }
    }

    /// The value as lines: what is in an aggregate is indented below it, what is short stands in
    /// one line. Every line end of the protocol is left out, and all else can be read back.
    fn lines(&self) -> Vec<String> {
        if let Some(line) = self.in_one_line().filter(|line| line.len() <= WIDTH) {
            return vec![line];
        }
        let mut lines = vec![String::new()];
        self.write(0, &mut lines);
        lines
    }

    /// The value in one line, if no aggregate in it has several others.
    fn in_one_line(&self) -> Option<String> {
        let aggregates = self.parts.iter().filter(|part| !part.parts.is_empty()).count();
        let parts = self.parts.iter().map(Self::in_one_line);
        let words: Option<Vec<String>> =
            std::iter::once(Some(self.head.clone())).chain(parts).collect();
        words.filter(|_| aggregates <= 1).map(|words| words.join("  "))
    }

    fn read(raw: &[u8]) -> (Self, &[u8]) {
        let end = raw.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let (line, mut rest) = (&raw[..end], &raw[end + 2..]);
        let mut head = printable(line);
        let length = std::str::from_utf8(&line[1..]).ok().and_then(|text| text.parse().ok());
        let mut parts = Vec::new();
        match (line[0], length) {
            (b'$' | b'=', Some(length)) => {
                let (bytes, after) = rest.split_at(length);
                let address = std::str::from_utf8(bytes).ok().map(str::parse::<SocketAddr>);
                // The system chooses the ports of clients.
                head = match address {
                    Some(Ok(_)) => format!("{} address", char::from(line[0])),
                    _ => format!("{head} {}", printable(bytes)),
                };
                rest = after.strip_prefix(b"\r\n").unwrap();
            }
            (kind @ (b'*' | b'>' | b'~' | b'%'), Some(length)) => {
                for _ in 0..length * (1 + usize::from(kind == b'%')) {
                    let (part, after) = Self::read(rest);
                    parts.push(part);
                    rest = after;
                }
            }
            _ => {}
        }
        (Self { head, parts }, rest)
    }

    fn write(&self, depth: usize, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        let mut fresh = true;
        let mut put = |text: &str, lines: &mut Vec<String>| {
            let last = lines.last_mut().unwrap();
            if last.is_empty() {
                *last = format!("{indent}{text}");
            } else if fresh || last.len() + 2 + text.len() > WIDTH {
                lines.push(format!("{indent}{}{text}", if fresh { "" } else { "  " }));
            } else {
                last.push_str("  ");
                last.push_str(text);
            }
            fresh = false;
        };
        put(&self.head, lines);
        for part in &self.parts {
            if part.parts.is_empty() {
                put(&part.head, lines);
            } else {
                lines.push(String::new());
                part.write(depth + 1, lines);
            }
        }
    }
}

fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            byte => write!(text, "\\x{byte:02x}").unwrap(),
        }
    }
    text
}
