//! Plays conversations without sockets, and with a clock that only moves when they say so.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::rc::Rc;

use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::task::ClientId;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName};
use pinpriq_store::shards::{first_number, shard_of};
use pinpriq_store::{Durable, MemoryStore};
use pinpriq_testing::server::Simulation;

use super::conversations::{Act, Conversation, Deed, Step};
use super::numbers::Numbers;
use crate::manual_clock::ManualClock;
use crate::world::START;

/// The figures that depend on the machine.
const MASKED: [&[u8]; 10] = [
    b"pid",
    b"version",
    b"rusage-utime",
    b"rusage-stime",
    b"uptime",
    b"binlog-max-size",
    b"id",
    b"hostname",
    b"os",
    b"platform",
];

/// A run of one character that is longer than this is shown as a count.
const RUN_MOST: usize = 40;

/// The last line of a map in a file that leaves out some of its lines.
const ELLIPSIS: &str = "…";

/// A server, and its clients by their letters.
struct Stage {
    sim: Simulation,
    clock: ManualClock,
    shards: usize,
    clients: BTreeMap<char, Speaker>,
    numbers: Numbers,
}

struct Speaker {
    id: ClientId,
    /// What it sends with its next line.
    kept: Vec<u8>,
    /// What it has sent and the server did not read yet.
    unread: Vec<u8>,
    /// What it was sent and has not read.
    received: Vec<u8>,
    has_ended: bool,
}

/// Plays a conversation with a server of this many shards. Returns how the replies differ, if they
/// do.
pub(crate) fn play(conversation: &Conversation, shards: usize) -> Result<(), String> {
    // Some conversations name a job before the answer that tells its number. In the default tube it
    // has the same one.
    let first = shard_of(b"default", shards);
    let open = |shard: usize| {
        let range = first_number((shard + shards - first) % shards);
        let store = Box::new(MemoryStore::new().numbering_after(range));
        (Durable::open(store, EngineLimits::default(), START, 1).unwrap().0, None)
    };
    let clock = ManualClock::at(START);
    let shared: Rc<dyn Clock> = Rc::new(clock.clone());
    let durables = (0..shards).map(open).collect();
    let sim = Simulation::of_shards(durables, &Config::default(), &shared);
    let (clients, numbers) = (BTreeMap::new(), Numbers::default());
    let mut stage = Stage { sim, clock, shards, clients, numbers };
    for step in &conversation.steps {
        let got = stage.take(step).map_err(|why| format!("line {}: {why}", step.line))?;
        let got = stage.numbers.as_expected(&step.expected, shortened(&step.expected, got));
        if got != step.expected {
            let (line, text) = (step.line, &step.text);
            return Err(format!("line {line}: {text}\n{}", differences(&step.expected, &got)));
        }
    }
    for (letter, speaker) in &stage.clients {
        if !speaker.received.is_empty() {
            let rest = speaker.received.escape_ascii();
            return Err(format!("at the end {letter} has been sent {rest}"));
        }
    }
    Ok(())
}

fn differences(expected: &[String], got: &[String]) -> String {
    let mut text = String::new();
    for at in 0..expected.len().max(got.len()) {
        match (expected.get(at), got.get(at)) {
            (Some(one), Some(other)) if one == other => writeln!(text, "    {one}").unwrap(),
            (one, other) => {
                if let Some(line) = one {
                    writeln!(text, "  - {line}").unwrap();
                }
                if let Some(line) = other {
                    writeln!(text, "  + {line}").unwrap();
                }
            }
        }
    }
    text
}

/// Leaves out of the maps in a reply what the file leaves out of them.
fn shortened(expected: &[String], got: Vec<String>) -> Vec<String> {
    let (mut got, mut short) = (VecDeque::from(got), Vec::new());
    for (at, line) in expected.iter().enumerate() {
        let after_map = expected[at..].iter().find(|line| key(line).is_none());
        if after_map.is_some_and(|line| line == ELLIPSIS) {
            while got.front().and_then(|it| key(it)).is_some_and(|it| Some(it) != key(line)) {
                got.pop_front();
            }
        }
        if line == ELLIPSIS {
            short.push(line.clone());
        } else {
            short.extend(got.pop_front());
        }
    }
    short.extend(got);
    short
}

/// The key of a line of a map. It begins with a line of hyphens.
fn key(line: &str) -> Option<&str> {
    if line == "---" { Some(line) } else { line.split_once(": ").map(|(key, _)| key) }
}

impl Stage {
    /// Takes a step, and returns the lines of what was read.
    fn take(&mut self, step: &Step) -> Result<Vec<String>, String> {
        self.pass(1);
        match &step.act {
            Act::Drain => self.sim.drain_jobs(),
            Act::Pass(ms) => self.pass(*ms),
            Act::Client(letter, deed) => {
                if !self.clients.contains_key(letter) {
                    let home = usize::try_from(u32::from(*letter)).unwrap() % self.shards;
                    let id = self.sim.connect_to(home, DoorName::Beanstalkd);
                    let (kept, unread, received) = (Vec::new(), Vec::new(), Vec::new());
                    let speaker = Speaker { id, kept, unread, received, has_ended: false };
                    self.clients.insert(*letter, speaker);
                    self.settle();
                }
                return self.act(*letter, deed, step.is_for_beanstalkd);
            }
        }
        Ok(Vec::new())
    }

    fn act(&mut self, letter: char, deed: &Deed, is_silent: bool) -> Result<Vec<String>, String> {
        match deed {
            Deed::Keep(line) => self.speaker(letter).kept.extend_from_slice(line),
            Deed::Ask(line) => {
                self.send(letter, line);
                return if is_silent { Ok(Vec::new()) } else { self.read(letter) };
            }
            Deed::Send(bytes) => self.send(letter, bytes),
            Deed::Wait(line) => {
                self.send(letter, line);
                self.expect_nothing(letter)?;
            }
            Deed::Read(_) if is_silent => {}
            Deed::Read(count) => {
                let mut lines = Vec::new();
                for _ in 0..*count {
                    lines.extend(self.read(letter)?);
                }
                return Ok(lines);
            }
            Deed::Hear => self.expect_nothing(letter)?,
            Deed::End => {
                let speaker = self.speaker(letter);
                speaker.has_ended = true;
                let (id, is_read) = (speaker.id, speaker.unread.is_empty());
                if is_read {
                    self.sim.end_input(id);
                }
                self.settle();
            }
            Deed::ReadAll => {
                let id = self.speaker(letter).id;
                if self.sim.is_connected(id) {
                    return Err("the server does not close".to_owned());
                }
                let mut lines = Vec::new();
                while !self.speaker(letter).received.is_empty() {
                    lines.extend(self.read(letter)?);
                }
                self.clients.remove(&letter);
                return Ok(lines);
            }
            Deed::Go => {
                // It closes its socket: the server sees first that nothing more comes from there.
                self.speaker(letter).has_ended = true;
                let id = self.speaker(letter).id;
                self.sim.end_input(id);
                self.settle();
                self.clients.remove(&letter);
                self.sim.cut(id);
                self.settle();
            }
        }
        Ok(Vec::new())
    }

    fn speaker(&mut self, letter: char) -> &mut Speaker {
        self.clients.get_mut(&letter).unwrap()
    }

    /// Sends bytes after those that were kept.
    fn send(&mut self, letter: char, bytes: &[u8]) {
        let speaker = self.clients.get_mut(&letter).unwrap();
        let kept = std::mem::take(&mut speaker.kept);
        let bytes = [&kept, bytes].concat();
        speaker.unread.extend(self.numbers.as_given(&bytes));
        self.settle();
    }

    /// Lets everything happen that can happen at this moment.
    fn settle(&mut self) {
        loop {
            self.sim.run();
            let mut is_quiet = true;
            for speaker in self.clients.values_mut() {
                let reads = self.sim.is_connected(speaker.id) && self.sim.reads_from(speaker.id);
                if reads && !speaker.unread.is_empty() {
                    let count = speaker.unread.len().min(60_000);
                    let bytes: Vec<u8> = speaker.unread.drain(..count).collect();
                    self.sim.feed(speaker.id, &bytes);
                    if speaker.unread.is_empty() && speaker.has_ended {
                        self.sim.end_input(speaker.id);
                    }
                    is_quiet = false;
                }
                is_quiet &= self.sim.drain(speaker.id, usize::MAX, &mut speaker.received) == 0;
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Lets time pass. What is due happens in its order.
    fn pass(&mut self, ms: u64) {
        let until = self.clock.now().after(Span::from_ms(ms));
        loop {
            let now = self.clock.now();
            let due = self.sim.due().unwrap_or(Timestamp::MAX).max(now);
            let next = due.min(until);
            self.clock.advance(next.since(now));
            self.sim.tick();
            self.settle();
            if due > until || self.sim.due().is_none_or(|due| due > until) {
                break;
            }
        }
        let now = self.clock.now();
        self.clock.advance(until.since(now));
    }

    fn expect_nothing(&mut self, letter: char) -> Result<(), String> {
        let received = &self.speaker(letter).received;
        if received.is_empty() {
            return Ok(());
        }
        Err(format!("it has been sent {}", received.escape_ascii()))
    }

    /// Reads one reply, as the lines of a file.
    fn read(&mut self, letter: char) -> Result<Vec<String>, String> {
        let received = &mut self.speaker(letter).received;
        let end = received.windows(2).position(|bytes| bytes == b"\r\n");
        let end = end.ok_or_else(|| format!("no reply but {:?}", received.escape_ascii()))?;
        let line: Vec<u8> = received.drain(..end + 2).take(end).collect();
        let has_body = [&b"RESERVED "[..], b"FOUND ", b"OK "].iter().any(|it| line.starts_with(it));
        if !has_body {
            return Ok(vec![shown(&line)]);
        }
        let length = line.rsplit(|byte| *byte == b' ').next().unwrap();
        let length: usize = std::str::from_utf8(length).unwrap().parse().unwrap();
        if received.len() < length + 2 {
            return Err(format!("{} and no whole body", line.escape_ascii()));
        }
        let body: Vec<u8> = received.drain(..length + 2).collect();
        let body = body.strip_suffix(b"\r\n").ok_or("the body does not end where it should")?;
        if !line.starts_with(b"OK ") {
            return Ok(vec![shown(&line), shown(body)]);
        }
        let body = body.strip_suffix(b"\n").ok_or("the last line of the body does not end")?;
        Ok(document(line, body))
    }
}

/// The lines of a document, with what depends on the machine masked.
fn document(line: Vec<u8>, body: &[u8]) -> Vec<String> {
    let mut lines: Vec<Vec<u8>> = vec![line];
    lines.extend(body.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    if lines.iter().any(|line| line.starts_with(b"current-connections: ")) {
        lines[0] = b"OK *".to_vec();
        for line in &mut lines {
            let key = line.split(|byte| *byte == b':').next().unwrap();
            if MASKED.contains(&key) {
                *line = [key, b": *"].concat();
            }
        }
    }
    lines.iter().map(|line| shown(line)).collect()
}

/// A line of a reply. What is between two of them in a file, two spaces, is not in it.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|one, other| one == other) {
        let (byte, letter) = (run[0], char::from(run[0]));
        match byte {
            b'\\' => text.push_str(&"\\\\".repeat(run.len())),
            0x20..=0x7E if run.len() > RUN_MOST && !b"*{}".contains(&byte) => {
                write!(text, "\\{{{letter}*{}}}", run.len()).unwrap();
            }
            0x20..=0x7E => text.push_str(&letter.to_string().repeat(run.len())),
            _ => text.push_str(&format!("\\x{byte:02x}").repeat(run.len())),
        }
    }
    while text.contains("  ") {
        text = text.replace("  ", " \\x20");
    }
    match text.strip_suffix(' ') {
        Some(rest) => format!("{rest}\\x20"),
        None if text.is_empty() => "\"\"".to_owned(),
        None => text,
    }
}
