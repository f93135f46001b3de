//! `pinpriq import` of a file: checks that a file is whole, and sends record after record. What the
//! server would refuse is looked for in `probe.rs`, and how an import can be repeated is in
//! `once.rs`.

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::batches::BatchState;
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_server::check_record;
use serde_json::{Map, Value as Json};

use super::{BATCH, Counts, LIMIT, TYPES, VERSION, once, probe};
use crate::args::carrying::ImportArgs;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::print_text;
use crate::pipeline::{self, Next, Traffic};
use crate::progress::Progress;
use crate::resp::Client;

/// The longest line. No record is longer: a payload has at most 64 MiB, of which each byte may
/// become six characters.
const LINE_BYTES_MAX: u64 = 512 << 20;

/// The types of records that are of no queue.
const OF_NO_QUEUE: [&str; 2] = [LIMIT, BATCH];

/// Sends all records of a file.
pub(super) fn import(arguments: &ImportArgs, file: &Path) -> Result<Exit, Failure> {
    let is_stdin = file.as_os_str() == "-";
    let open = || {
        if is_stdin {
            Lines::of(Box::new(BufReader::new(io::stdin())), "stdin")
        } else {
            Lines::of(open(file)?, &file.display().to_string())
        }
    };
    // What was cut, or holds what is no record, is noticed before anything is sent.
    if !is_stdin {
        open()?.check()?;
    }
    let mut client = Client::open(&arguments.server.endpoint()?)?;
    // A half import is hard to take back, so what would be refused is looked for first. What comes
    // from stdin can be read only once.
    if arguments.dry_run || !(is_stdin || arguments.once) {
        let counts = probe::probe(&mut client, open()?)?;
        if arguments.dry_run {
            print_text(format!("would import {}\n", counts.in_words()).as_bytes())?;
            return Ok(Exit::Done);
        }
    }
    let lines = open()?;
    let progress = Progress::before_output("records");
    let once_until = arguments.once.then(once::until);
    let mut sends = Sends {
        lines,
        once_until,
        progress,
        opening: VecDeque::new(),
        answers: 0,
        accepted: 0,
        there: 0,
        refused: None,
        broken: None,
    };
    let ran = pipeline::run(&mut client, &mut sends);
    let Sends { lines, progress, accepted, there, refused, broken, .. } = sends;
    drop(progress);
    let again = if arguments.once {
        "repeat the same import to go on"
    } else {
        "another import of this file brings them in once more, unless their queue has given ids \
         or both have --once"
    };
    let came = format!("{} came in: {again}", plural(accepted));
    if let Some((line, sentence)) = refused {
        return Err(Failure::refused(format!("{sentence} (line {line}; {came})")));
    }
    if let Err(failure) = ran.and_then(|()| broken.map_or(Ok(()), Err)) {
        tell(came);
        return Err(failure);
    }
    let passed = if there == 0 {
        String::new()
    } else {
        format!("; {} of them there already", plural(there))
    };
    print_text(format!("imported {}{passed}\n", lines.counts.in_words()).as_bytes())?;
    Ok(Exit::Done)
}

fn plural(records: u64) -> String {
    format!("{records} {}", if records == 1 { "record" } else { "records" })
}

#[expect(clippy::disallowed_methods, reason = "an export is no part of a data directory")]
fn open(file: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let opened = File::open(file).map_err(|error| unreadable(&file.display().to_string(), &error));
    Ok(Box::new(BufReader::new(opened?)))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::on_the_way(format!("{name} cannot be read: {error}"))
}

/// The lines of a file, after the first one.
pub(super) struct Lines {
    input: Box<dyn BufRead>,
    name: String,
    /// The number of the line that was read last.
    line: u64,
    counts: Counts,
}

impl Lines {
    /// Reads the first line, which says what the file is.
    fn of(input: Box<dyn BufRead>, name: &str) -> Result<Self, Failure> {
        let mut lines = Self { input, name: name.to_owned(), line: 0, counts: Counts::default() };
        let first = lines.read()?.unwrap_or_default();
        let header = serde_json::from_slice::<Map<String, Json>>(&first).unwrap_or_default();
        let kind = header.get("type").and_then(Json::as_str);
        match header.get("version").and_then(Json::as_u64) {
            Some(VERSION) if kind == Some("pinpriq-export") => Ok(lines),
            Some(other) if kind == Some("pinpriq-export") => Err(Failure::unusable(format!(
                "{name} has the version {other}, and this program reads version {VERSION}"
            ))),
            _ => Err(Failure::unusable(format!("{name} was not written by `pinpriq export`"))),
        }
    }

    /// Returns the next record, or none after the last line, which says how many there are.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(line) = self.read()? else {
            let lines = self.line;
            return Err(self.wrong(format_args!("was cut after line {lines}")));
        };
        if self.counts.add(&line) {
            return Ok(Some(line));
        }
        let last = serde_json::from_slice::<Map<String, Json>>(&line).unwrap_or_default();
        let (number, is_last) = (self.line, last.get("type") == Some(&Json::from("end")));
        // An older program did not know all types.
        let told = TYPES.map(|(_, name)| last.get(name).map_or(Some(0), Json::as_u64));
        if !is_last {
            return Err(self.wrong(format_args!("has no record in line {number}")));
        }
        if told != self.counts.of.map(Some) {
            return Err(self.wrong(format_args!("lacks some records: its last line counts others")));
        }
        match self.read()? {
            None => Ok(None),
            Some(_) => Err(self.wrong(format_args!("goes on after its last line"))),
        }
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let read = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| unreadable(&self.name, &error))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if line.pop_if(|last| *last == b'\n').is_none() {
            let number = self.line;
            return Err(self.wrong(format_args!("was cut in line {number}")));
        }
        Ok(Some(line))
    }

    /// Reads all lines, and fails if one of them is no record, or the last one is missing.
    fn check(mut self) -> Result<(), Failure> {
        while let Some(line) = self.next()? {
            self.record(&line)?;
        }
        Ok(())
    }

    fn wrong(&self, what: std::fmt::Arguments<'_>) -> Failure {
        Failure::unusable(format!("{} {what}", self.name))
    }

    fn no_record(&self, why: impl Display) -> Failure {
        let number = self.line;
        self.wrong(format_args!("has no record in line {number}: {why}"))
    }

    /// The numbers of the records that were read.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of the line that was read last.
    pub(super) const fn number(&self) -> u64 {
        self.line
    }

    /// Reads a record as the server will.
    pub(super) fn record(&self, line: &[u8]) -> Result<Record, Failure> {
        let record = self.parts(line)?;
        if let Some(words) = record.own_words() {
            words.map_err(|why| self.no_record(why))?;
            return Ok(record);
        }
        let Record { queue, payload, fields } = &record;
        let text = Json::Object(fields.clone()).to_string();
        check_record(text.as_bytes(), queue, payload.as_deref())
            .map_err(|why| self.no_record(why))?;
        Ok(record)
    }

    /// The command for a record, and whether it opens a batch. A payload goes beside the record, as
    /// the bytes that it is.
    fn words(&self, line: &[u8], once_until: Option<u64>) -> Result<(Words, bool), Failure> {
        let mut record = self.parts(line)?;
        if let Some(words) = record.own_words() {
            let words = words.map_err(|why| self.no_record(why))?;
            return Ok((words, record.opens_batch()));
        }
        if let Some(until) = once_until {
            once::identify(&mut record, until);
        }
        let Record { queue, payload, fields } = record;
        let words = Words::new("IMPORT").bytes(queue).bytes(Json::Object(fields).to_string());
        Ok((words.given("PAYLOAD", payload.as_deref()), false))
    }

    fn parts(&self, line: &[u8]) -> Result<Record, Failure> {
        let mut fields: Map<String, Json> =
            serde_json::from_slice(line).map_err(|error| self.no_record(error))?;
        let kind = fields.get("type").and_then(Json::as_str);
        let named = OF_NO_QUEUE.into_iter().find(|named| kind == Some(*named)).unwrap_or("queue");
        let queue = take_bytes(&mut fields, named).map_err(|why| self.no_record(why))?;
        let queue = queue.ok_or_else(|| self.no_record(format_args!("it names no {named}")))?;
        let payload = take_bytes(&mut fields, "payload").map_err(|why| self.no_record(why))?;
        Ok(Record { queue, payload, fields })
    }
}

/// A record, with what goes beside it.
pub(super) struct Record {
    /// The name of its queue, or of the limit or the batch that it is.
    pub(super) queue: Vec<u8>,
    pub(super) payload: Option<Vec<u8>>,
    pub(super) fields: Map<String, Json>,
}

impl Record {
    fn kind(&self) -> Option<&str> {
        self.fields.get("type").and_then(Json::as_str)
    }

    /// Whether it opens a batch, which may be there already.
    fn opens_batch(&self) -> bool {
        self.kind() == Some(BATCH) && !self.fields.contains_key("state")
    }

    /// The command of its own that a record has which is of no queue.
    fn own_words(&self) -> Option<Result<Words, &'static str>> {
        match self.kind() {
            Some(LIMIT) => Some(self.limit_words()),
            Some(BATCH) => Some(self.batch_words()),
            _ => None,
        }
    }

    /// The command that opens the batch, or closes it.
    fn batch_words(&self) -> Result<Words, &'static str> {
        let command = match self.fields.get("state") {
            None => "BATCH OPEN",
            Some(state) if state == BatchState::Closed.word() => "BATCH CLOSE",
            Some(_) => return Err("the 'state' of a batch is missing or closed"),
        };
        Ok(Words::new(command).bytes(&self.queue))
    }

    /// The command that makes the limit.
    fn limit_words(&self) -> Result<Words, &'static str> {
        let of = |name: &str| self.fields.get(name).filter(|value| !value.is_null());
        let max = match of("max") {
            None => "none".to_owned(),
            Some(max) => max.as_u64().ok_or("'max' is null or a number")?.to_string(),
        };
        let rate = match of("rate") {
            None => "none",
            Some(rate) => rate.as_str().ok_or("'rate' is null or n/ms, such as 100/1000")?,
        };
        let words = Words::new("LIMIT SET").bytes(&self.queue);
        Ok(words.bytes("MAX").bytes(max).bytes("RATE").bytes(rate))
    }
}

pub(super) fn take_bytes(
    record: &mut Map<String, Json>,
    name: &str,
) -> Result<Option<Vec<u8>>, String> {
    let coded = format!("{name}_base64");
    match (record.remove(name), record.remove(&coded)) {
        (None, None) => Ok(None),
        (Some(Json::String(text)), None) => Ok(Some(text.into_bytes())),
        (None, Some(Json::String(text))) => {
            STANDARD.decode(&text).map(Some).map_err(|_| format!("'{coded}' is no Base64"))
        }
        _ => Err(format!("'{name}' is no string")),
    }
}

/// The records on their way.
struct Sends {
    lines: Lines,
    /// Until when the records are known, if they come in only once.
    once_until: Option<u64>,
    progress: Progress,
    /// Whether they open a batch, of those that have no answer yet, in the order of the answers.
    opening: VecDeque<bool>,
    answers: u64,
    accepted: u64,
    /// How many were there already.
    there: u64,
    /// The line of the first record that was refused, and what the server said.
    refused: Option<(u64, String)>,
    /// Why the file could not be read to its end.
    broken: Option<Failure>,
}

impl Traffic for Sends {
    fn next(&mut self, _: bool) -> Result<Next, Failure> {
        if self.refused.is_some() || self.broken.is_some() {
            return Ok(Next::End);
        }
        let line = self.lines.next();
        let words_of = |line: Vec<u8>| self.lines.words(&line, self.once_until);
        let words = line.and_then(|line| line.map(words_of).transpose());
        Ok(match words {
            Ok(Some((words, opens_batch))) => {
                self.opening.push_back(opens_batch);
                Next::Command(words)
            }
            Ok(None) => Next::End,
            Err(failure) => {
                self.broken = Some(failure);
                Next::End
            }
        })
    }

    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        self.answers += 1;
        let opens_batch = self.opening.pop_front().unwrap_or_default();
        let may_be_there = opens_batch || self.once_until.is_some();
        if matches!(&answer, Value::Error(it) if may_be_there && it.starts_with("EXISTS ")) {
            self.there += 1;
            self.progress.add_one();
        } else if let Value::Error(sentence) = answer {
            // The first line is no record.
            self.refused.get_or_insert((self.answers + 1, sentence));
        } else {
            self.accepted += 1;
            self.progress.add_one();
        }
        Ok(())
    }
}
