//! Sending one payload, the same payload many times, or each line of stdin, over RESP.
//!
//! `put` and `publish` decide what is done with them. `schedule set` reads its payload in the same
//! way.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use pinpriq_proto::wire::resp::{Value, Words};

use super::asking::{exit_of, shown_result};
use crate::args::tasks::ClientArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::pipeline::{self, Next, Traffic};
use crate::printer::{Printer, StdoutPrinter, shown};
use crate::progress::Progress;
use crate::resp::{Client, unexpected};

/// The largest payload that any server accepts.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

/// How many lines are read ahead.
const LINES_AHEAD: usize = 1_024;

/// What is to be sent, and how it is reported.
pub(super) struct Sending<'a> {
    pub(super) client: &'a ClientArgs,
    /// The given payload; read from stdin if there is none.
    pub(super) payload: Option<&'a OsStr>,
    /// Each line of stdin is a payload instead.
    pub(super) lines: bool,
    /// How many times the payload is sent.
    pub(super) count: u64,
    /// The command for a payload.
    pub(super) words: &'a dyn Fn(&[u8]) -> Words,
    /// The name of a reply.
    pub(super) answer: &'static str,
    /// Accepted tasks, in words.
    pub(super) done: &'static str,
}

impl Sending<'_> {
    /// Sends, and prints the answers.
    pub(super) fn send(self) -> Result<Exit, Failure> {
        let source = if self.lines {
            Source::Lines(lines_of_stdin())
        } else {
            let payload = payload(self.payload)?;
            Source::Same { words: (self.words)(&payload), left: self.count }
        };
        let mut client = Client::open(&self.client.endpoint()?)?;
        let progress = Progress::new(self.done);
        let printer = Printer::to_stdout(self.client.json);
        let mut sends =
            Sends { sending: &self, source, printer, progress, tally: Tally::default() };
        pipeline::run(&mut client, &mut sends)?;
        let Sends { mut printer, progress, tally, .. } = sends;
        printer.flush()?;
        drop(progress);
        tally.end(&self)
    }
}

/// The payload that was given, or else stdin.
pub(super) fn payload(given: Option<&OsStr>) -> Result<Vec<u8>, Failure> {
    match given {
        Some(payload) if payload != "-" => Ok(payload.as_bytes().to_vec()),
        _ => {
            let mut payload = Vec::new();
            let read = io::stdin().take(PAYLOAD_BYTES_MAX + 1).read_to_end(&mut payload);
            read.map_err(|error| unreadable(&error))?;
            within_limit(payload, "the payload")
        }
    }
}

/// Starts a thread that reads ahead, so that a pause in stdin does not delay replies.
fn lines_of_stdin() -> Receiver<Result<Vec<u8>, Failure>> {
    let (lines, read) = sync_channel(LINES_AHEAD);
    // The thread ends with the process at the latest, since nothing ends a read.
    std::thread::spawn(move || read_lines(&lines));
    read
}

fn read_lines(lines: &SyncSender<Result<Vec<u8>, Failure>>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let limit = PAYLOAD_BYTES_MAX + 2;
        let item = match (&mut stdin).take(limit).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {
                if line.ends_with(b"\n") {
                    line.pop();
                }
                within_limit(line, "a line")
            }
            Err(error) => Err(unreadable(&error)),
        };
        let failed = item.is_err();
        if lines.send(item).is_err() || failed {
            return;
        }
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::on_the_way(format!("stdin cannot be read: {error}"))
}

fn within_limit(payload: Vec<u8>, what: &str) -> Result<Vec<u8>, Failure> {
    if payload.len() as u64 > PAYLOAD_BYTES_MAX {
        return Err(Failure::unusable(format!("{what} is longer than 64 MiB")));
    }
    Ok(payload)
}

/// The source of tasks.
enum Source {
    /// The same again and again.
    Same { words: Words, left: u64 },
    /// The lines of stdin.
    Lines(Receiver<Result<Vec<u8>, Failure>>),
}

/// The commands on their way.
struct Sends<'a> {
    sending: &'a Sending<'a>,
    source: Source,
    printer: StdoutPrinter,
    progress: Progress,
    tally: Tally,
}

/// The results so far.
#[derive(Default)]
struct Tally {
    answers: u64,
    refusals: u64,
    /// The number of the task, and what the server said.
    first_refusal: Option<(u64, String)>,
    /// How the first task ended that was awaited and not acknowledged.
    other_end: Option<Exit>,
    /// Why stdin could not be read to its end.
    broken: Option<Failure>,
    unwanted: bool,
}

impl Traffic for Sends<'_> {
    fn next(&mut self, idle: bool) -> Result<Next, Failure> {
        if idle {
            self.tally.heed(self.printer.flush()?);
        }
        if self.tally.is_over() {
            return Ok(Next::End);
        }
        let item = match &mut self.source {
            Source::Same { left: 0, .. } => return Ok(Next::End),
            Source::Same { words, left } => {
                *left -= 1;
                return Ok(Next::Command(words.clone()));
            }
            Source::Lines(lines) if idle => lines.recv().map_err(|_| TryRecvError::Disconnected),
            Source::Lines(lines) => lines.try_recv(),
        };
        match item {
            Ok(Ok(line)) => Ok(Next::Command((self.sending.words)(&line))),
            Ok(Err(failure)) => {
                self.tally.broken = Some(failure);
                Ok(Next::End)
            }
            Err(TryRecvError::Empty) => Ok(Next::Later),
            Err(TryRecvError::Disconnected) => Ok(Next::End),
        }
    }

    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        self.tally.answers += 1;
        let printed = match answer {
            Value::Error(sentence) => {
                self.tally.refusals += 1;
                let number = self.tally.answers;
                self.tally.first_refusal.get_or_insert((number, sentence));
                return Ok(());
            }
            Value::Array(parts) => match parts.as_slice() {
                [answer, Value::Integer(new), awaited @ ..] => {
                    let word = if *new == 1 { "new" } else { "duplicate" };
                    let word = Value::Bulk(word.into());
                    let mut fields =
                        vec![shown(self.sending.answer, answer), shown("unique", &word)];
                    if let [outcome, result @ ..] = awaited {
                        // It is unknown how the first task ended if only its window is left.
                        if !matches!(outcome, Value::Null) {
                            self.tally.heed_outcome(exit_of(outcome)?);
                        }
                        fields.push(shown("outcome", outcome));
                        fields.extend(shown_result(result)?);
                    }
                    self.printer.fields(&fields)
                }
                [answer, outcome, result @ ..] => {
                    self.tally.heed_outcome(exit_of(outcome)?);
                    let mut fields = vec![shown(self.sending.answer, answer)];
                    fields.push(shown("outcome", outcome));
                    fields.extend(shown_result(result)?);
                    self.printer.fields(&fields)
                }
                _ => return Err(unexpected()),
            },
            answer => self.printer.fields(&[shown(self.sending.answer, &answer)]),
        };
        self.progress.add_one();
        self.tally.heed(printed?);
        Ok(())
    }
}

impl Tally {
    fn heed(&mut self, wanted: Wanted) {
        self.unwanted |= wanted == Wanted::NoMore;
    }

    fn heed_outcome(&mut self, exit: Exit) {
        if exit != Exit::Done {
            self.other_end.get_or_insert(exit);
        }
    }

    const fn is_over(&self) -> bool {
        self.first_refusal.is_some() || self.unwanted
    }

    /// Returns how the command ends.
    fn end(self, sending: &Sending<'_>) -> Result<Exit, Failure> {
        let Self { answers, refusals, first_refusal, other_end, broken, .. } = self;
        match (first_refusal, broken) {
            (None, None) => Ok(other_end.unwrap_or(Exit::Done)),
            (None, Some(broken)) => Err(broken),
            (Some((_, sentence)), _) if !sending.lines && sending.count == 1 => {
                Err(Failure::refused(sentence))
            }
            (Some((number, sentence)), _) => {
                let what = if sending.lines { "line" } else { "task" };
                let (accepted, done) = (answers - refusals, sending.done);
                Err(Failure::refused(format!(
                    "{sentence} ({what} {number}; {accepted} {done}, {refusals} refused)"
                )))
            }
        }
    }
}
