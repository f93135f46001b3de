//! `pinpriq export`: asks for page after page, and writes each record on a line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::batches::BatchState;
use pinpriq_proto::wire::resp::{Value, Words};
use serde_json::{Map, Value as Json};

use super::{BATCH, Counts, LIMIT, header};
use crate::args::carrying::ExportArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::{escaped, print_text, wanted};
use crate::progress::Progress;
use crate::resp::{Client, Trouble, unexpected};

/// How many records or names are asked for at a time.
const PAGE: u64 = 1_000;

/// Writes a queue, or all.
pub(crate) fn export(arguments: &ExportArgs) -> Result<Exit, Failure> {
    let (queue, file) = arguments.parts();
    let mut client = Client::open(&arguments.server.endpoint()?)?;
    let queues = match &queue {
        Some(queue) => BTreeSet::from([queue.as_bytes().to_vec()]),
        None => queues(&mut client)?,
    };
    let mut target = Target::open(file)?;
    let progress = if target.is_stdout() {
        Progress::new("records")
    } else {
        Progress::before_output("records")
    };
    let wanted = target.line(header().as_bytes())?;
    let mut sink = Sink { target, wanted, counts: Counts::default(), progress };
    let batches = if queue.is_none() { write_shared(&mut client, &mut sink)? } else { Vec::new() };
    for queue in &queues {
        write_queue(&mut client, queue, &mut sink)?;
    }
    write_closed(&mut client, &batches, &mut sink)?;
    let Sink { mut target, wanted, counts, progress } = sink;
    drop(progress);
    if wanted == Wanted::NoMore {
        return Ok(Exit::Done);
    }
    if queue.is_some() && counts.sum() == 0 {
        let name = escaped(queue.unwrap_or_default().as_bytes());
        return nothing(&mut client, &queues, &name);
    }
    target.line(counts.end().as_bytes())?;
    let is_file = !target.is_stdout();
    if target.finish()? == Wanted::NoMore {
        return Ok(Exit::Done);
    }
    for topic in fan_outs(&mut client, &queues)? {
        tell(format_args!("the fan-out {} is not written", escaped(&topic)));
    }
    if is_file {
        print_text(format!("exported {}\n", counts.in_words()).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Tells why nothing was written.
fn nothing(client: &mut Client, queues: &BTreeSet<Vec<u8>>, name: &str) -> Result<Exit, Failure> {
    if fan_outs(client, queues)?.is_empty() {
        tell(format_args!("there is no queue {name}: nothing was written"));
    } else {
        tell(format_args!("{name} is a fan-out, which is not written"));
    }
    Ok(Exit::NothingThere)
}

/// Those of these names that are fan-outs with members too.
fn fan_outs(client: &mut Client, queues: &BTreeSet<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut known = Vec::new();
    for name in queues {
        match client.call(&Words::new("MEMBERS").bytes(name))? {
            Value::Array(members) if members.is_empty() => {}
            Value::Array(_) => known.push(name.clone()),
            _ => return Err(unexpected()),
        }
    }
    Ok(known)
}

/// All queues, and those that have only schedules.
fn queues(client: &mut Client) -> Result<BTreeSet<Vec<u8>>, Failure> {
    let mut queues = BTreeSet::from_iter(names(client, "QUEUE LIST")?);
    for schedule in names(client, "SCHEDULE LIST")? {
        let shown = client.call(&Words::new("SCHEDULE SHOW").bytes(schedule))?;
        let queue = shown.field("queue").and_then(Value::as_bytes).ok_or_else(unexpected)?;
        queues.insert(queue.to_vec());
    }
    Ok(queues)
}

/// Writes what is of no queue and has to be there before the queues: limits, and the batches that
/// are not done, which are opened. Returns the names of these batches.
fn write_shared(client: &mut Client, sink: &mut Sink) -> Result<Vec<Vec<u8>>, Failure> {
    for limit in names(client, "LIMIT LIST")? {
        if let Some(record) = limit_record(client, &limit)? {
            sink.write(record.as_bytes())?;
        }
    }
    let mut opened = Vec::new();
    for batch in names(client, "BATCH LIST")? {
        let state = state_of_batch(client, &batch)?;
        if state.is_some_and(|state| state != BatchState::Done.word().as_bytes()) {
            sink.write(record_of(BATCH, &batch, Map::new()).as_bytes())?;
            opened.push(batch);
        }
    }
    Ok(opened)
}

/// Writes that those of these batches are closed which are not open any more. After the queues: a
/// closed batch without tasks is done.
fn write_closed(client: &mut Client, batches: &[Vec<u8>], sink: &mut Sink) -> Result<(), Failure> {
    let (open, closed) = (BatchState::Open.word(), BatchState::Closed.word());
    for batch in batches {
        if sink.wanted == Wanted::More
            && state_of_batch(client, batch)?.is_none_or(|state| state != open.as_bytes())
        {
            let fields = Map::from_iter([("state".to_owned(), closed.into())]);
            sink.write(record_of(BATCH, batch, fields).as_bytes())?;
        }
    }
    Ok(())
}

/// The word for the state of a batch, unless it has gone meanwhile.
fn state_of_batch(client: &mut Client, name: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let Some(shown) = shown(client, "BATCH SHOW", name)? else { return Ok(None) };
    let state = shown.field("state").and_then(Value::as_bytes).ok_or_else(unexpected)?;
    Ok(Some(state.to_vec()))
}

/// What is kept of a limit, unless it has gone meanwhile. Its queues come later.
fn limit_record(client: &mut Client, name: &[u8]) -> Result<Option<String>, Failure> {
    let Some(shown) = shown(client, "LIMIT SHOW", name)? else { return Ok(None) };
    let mut fields = Map::new();
    if let Some(max) = shown.field("max").and_then(Value::integer) {
        fields.insert("max".to_owned(), max.into());
    }
    if let Some(rate) = shown.field("rate").and_then(Value::as_bytes) {
        fields.insert("rate".to_owned(), String::from_utf8_lossy(rate).into());
    }
    Ok(Some(record_of(LIMIT, name, fields)))
}

/// What the server tells about a name, unless what it names has gone meanwhile.
fn shown(client: &mut Client, command: &str, name: &[u8]) -> Result<Option<Value>, Failure> {
    match client.call(&Words::new(command).bytes(name)) {
        Err(Trouble::Refused(sentence)) if sentence.starts_with("NOTFOUND ") => Ok(None),
        answer => Ok(Some(answer?)),
    }
}

/// The record of something that is of no queue: its type, which comes first, its name, and more.
fn record_of(kind: &str, name: &[u8], mut fields: Map<String, Json>) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => fields.insert(kind.to_owned(), text.into()),
        Err(_) => fields.insert(format!("{kind}_base64"), STANDARD.encode(name).into()),
    };
    let fields = Json::Object(fields).to_string();
    fields.replacen('{', &format!("{{\"type\":\"{kind}\","), 1)
}

fn names(client: &mut Client, command: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let mut names = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let words = Words::new(command).option("COUNT", Some(PAGE)).bytes("CURSOR").bytes(&cursor);
        let Value::Array(parts) = client.call(&words)? else { return Err(unexpected()) };
        let [next, Value::Array(page)] = parts.as_slice() else { return Err(unexpected()) };
        names.extend(page.iter().filter_map(|name| name.as_bytes().map(<[u8]>::to_vec)));
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            return Ok(names);
        }
    }
}

fn write_queue(client: &mut Client, queue: &[u8], sink: &mut Sink) -> Result<(), Failure> {
    let mut cursor = b"0".to_vec();
    while sink.wanted == Wanted::More {
        let answer = client.call(&page_words(queue, &cursor))?;
        let Value::Array(parts) = answer else { return Err(unexpected()) };
        let [next, Value::Array(records)] = parts.as_slice() else { return Err(unexpected()) };
        for record in records {
            sink.write(record.as_bytes().ok_or_else(unexpected)?)?;
        }
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            break;
        }
    }
    Ok(())
}

/// What is sent for the page at `cursor`.
pub(in crate::cmd) fn page_words(queue: &[u8], cursor: &[u8]) -> Words {
    Words::new("EXPORT").bytes(queue).option("COUNT", Some(PAGE)).bytes("CURSOR").bytes(cursor)
}

/// Where records go, as long as they are wanted.
struct Sink {
    target: Target,
    wanted: Wanted,
    counts: Counts,
    progress: Progress,
}

impl Sink {
    /// Counts and writes a record, unless no more are wanted.
    fn write(&mut self, record: &[u8]) -> Result<(), Failure> {
        if self.wanted == Wanted::NoMore {
            return Ok(());
        }
        if !self.counts.add(record) {
            return Err(unexpected());
        }
        self.wanted = self.target.line(record)?;
        self.progress.add_one();
        Ok(())
    }
}

/// Where lines go.
enum Target {
    Stdout(BufWriter<io::Stdout>),
    /// A file that gets its name when it is whole.
    File(BufWriter<File>, Unnamed),
}

/// A file that is removed unless it gets its name.
struct Unnamed {
    temporary: PathBuf,
    name: PathBuf,
}

impl Target {
    fn open(file: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(name) = file else { return Ok(Self::Stdout(BufWriter::new(io::stdout()))) };
        let mut temporary = name.clone().into_os_string();
        temporary.push(OsString::from(format!(".{}.part", std::process::id())));
        let temporary = PathBuf::from(temporary);
        let file = File::create_new(&temporary).map_err(|error| unwritable(&temporary, &error))?;
        Ok(Self::File(BufWriter::new(file), Unnamed { temporary, name }))
    }

    const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_))
    }

    /// Writes a line. The reader of stdout may have seen enough.
    fn line(&mut self, line: &[u8]) -> Result<Wanted, Failure> {
        let write = |out: &mut dyn Write| out.write_all(line).and_then(|()| out.write_all(b"\n"));
        match self {
            Self::Stdout(out) => wanted(write(out)),
            Self::File(out, unnamed) => {
                write(out).map_err(|error| unwritable(&unnamed.temporary, &error))?;
                Ok(Wanted::More)
            }
        }
    }

    /// Makes sure that everything is written, and gives a file its name.
    #[expect(clippy::disallowed_methods, reason = "an export is no part of a data directory")]
    fn finish(self) -> Result<Wanted, Failure> {
        match self {
            Self::Stdout(mut out) => wanted(out.flush()),
            Self::File(out, unnamed) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error);
                let named = file
                    .and_then(|file| file.sync_all())
                    .and_then(|()| std::fs::rename(&unnamed.temporary, &unnamed.name));
                named.map_err(|error| unwritable(&unnamed.name, &error))?;
                Ok(Wanted::More)
            }
        }
    }
}

impl Drop for Unnamed {
    #[expect(clippy::disallowed_methods, reason = "an export is no part of a data directory")]
    fn drop(&mut self) {
        // There is none if it has its name.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn unwritable(name: &Path, error: &io::Error) -> Failure {
    Failure::on_the_way(format!("{} cannot be written: {error}", name.display()))
}
