//! A request in the form in which HTTP handlers hand it to the door: a command of the table with
//! its words and options told apart, or a question of the door's own.
//!
//! Handlers and door are in one process, so frames are trusted: a malformed one is our own bug.

use pinpriq_proto::request::options::Opt;
use pinpriq_proto::request::table::TABLE;

/// Words, each given as its bytes.
type Words = Vec<Vec<u8>>;

/// A command with its words and options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Asked {
    /// Its entry in the table of commands.
    pub(crate) entry: usize,
    /// The words before the options.
    pub(crate) words: Words,
    /// The options, each by its place in the entry, with its value.
    pub(crate) options: Vec<(usize, Vec<u8>)>,
    /// Tasks that are done, each as queue and receipt.
    pub(crate) done: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether the last word is the id of a task where a receipt could be.
    pub(crate) by_id: bool,
}

/// What a frame asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// One command.
    Command(Asked),
    /// Several commands as one.
    Multi(Vec<Asked>),
    /// The facts about the server.
    Server,
    /// Why its store has failed, if it has.
    Failure,
    /// Who is connected.
    Connections,
    /// The end of the connection with this number.
    EndConnection(u64),
    /// Nothing: these bytes are the answer, in its place among the others.
    Say(Vec<u8>),
}

/// The number of bytes before a frame: its length.
const LENGTH_BYTES: usize = 8;

impl Asked {
    /// Returns a command without words and options.
    ///
    /// # Panics
    /// If the table of commands has no such command.
    pub(crate) fn of(name: &str) -> Self {
        let entry = TABLE.iter().position(|spec| spec.full_name() == name);
        let Some(entry) = entry else { unreachable!("there is no command {name}") };
        Self { entry, ..Self::default() }
    }

    /// Adds words.
    pub(crate) fn words<W: AsRef<[u8]>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_vec()));
        self
    }

    /// Adds an option if there is a value for it and the command has it.
    pub(crate) fn option(&mut self, option: Opt, value: Option<Vec<u8>>) {
        let place = TABLE[self.entry].options.iter().position(|known| *known == option);
        self.options.extend(place.zip(value));
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.entry);
        out.push(u8::from(self.by_id));
        put_number(out, self.words.len());
        self.words.iter().for_each(|word| put_bytes(out, word));
        put_number(out, self.options.len());
        for (option, value) in &self.options {
            put_number(out, *option);
            put_bytes(out, value);
        }
        put_number(out, self.done.len());
        for (queue, receipt) in &self.done {
            put_bytes(out, queue);
            put_bytes(out, receipt);
        }
    }
}

/// A command as it is read from a frame, borrowing from it.
pub(crate) struct Borrowed<'a> {
    pub(crate) entry: usize,
    pub(crate) words: Vec<&'a [u8]>,
    pub(crate) options: Vec<(usize, &'a [u8])>,
    pub(crate) done: Vec<(&'a [u8], &'a [u8])>,
    pub(crate) by_id: bool,
}

/// A frame as it is read, borrowing from the input.
pub(crate) enum Read<'a> {
    Command(Borrowed<'a>),
    Multi(Vec<Borrowed<'a>>),
    Server,
    Failure,
    Connections,
    EndConnection(u64),
    Say(&'a [u8]),
}

impl Frame {
    /// Returns the frame as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; LENGTH_BYTES];
        match self {
            Self::Command(asked) => {
                out.push(0);
                asked.put(&mut out);
            }
            Self::Multi(all) => {
                out.push(1);
                put_number(&mut out, all.len());
                for asked in all {
                    asked.put(&mut out);
                }
            }
            Self::Server => out.push(2),
            Self::Failure => out.push(6),
            Self::Connections => out.push(3),
            Self::EndConnection(number) => {
                out.push(4);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Say(bytes) => {
                out.push(5);
                put_bytes(&mut out, bytes);
            }
        }
        let length = (out.len() - LENGTH_BYTES) as u64;
        out[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        out
    }
}

/// Reads the frame at the front of `input`. Returns it with the number of its bytes, or nothing if
/// it is not complete.
pub(crate) fn read(input: &[u8]) -> Option<(Read<'_>, usize)> {
    let mut rest = input;
    let length = take_number(&mut rest)?;
    let mut body = rest.get(..length)?;
    let read = read_body(&mut body);
    debug_assert!(body.is_empty(), "a frame has {} bytes too many", body.len());
    Some((read?, LENGTH_BYTES + length))
}

fn read_body<'a>(body: &mut &'a [u8]) -> Option<Read<'a>> {
    Some(match take_byte(body)? {
        0 => Read::Command(take_asked(body)?),
        1 => {
            let count = take_number(body)?;
            Read::Multi((0..count).map(|_| take_asked(body)).collect::<Option<_>>()?)
        }
        2 => Read::Server,
        3 => Read::Connections,
        4 => Read::EndConnection(take_number(body)? as u64),
        5 => Read::Say(take_bytes(body)?),
        6 => Read::Failure,
        kind => unreachable!("a frame of kind {kind}"),
    })
}

fn take_asked<'a>(body: &mut &'a [u8]) -> Option<Borrowed<'a>> {
    let entry = take_number(body)?;
    let by_id = take_byte(body)? != 0;
    let words = (0..take_number(body)?).map(|_| take_bytes(body)).collect::<Option<_>>()?;
    let mut options = Vec::new();
    for _ in 0..take_number(body)? {
        options.push((take_number(body)?, take_bytes(body)?));
    }
    let mut done = Vec::new();
    for _ in 0..take_number(body)? {
        done.push((take_bytes(body)?, take_bytes(body)?));
    }
    Some(Borrowed { entry, words, options, done, by_id })
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, others) = rest.split_first_chunk()?;
    *rest = others;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(rest)?;
    let (bytes, others) = rest.split_at_checked(length)?;
    *rest = others;
    Some(bytes)
}
