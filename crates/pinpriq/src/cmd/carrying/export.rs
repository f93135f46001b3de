//! `pinpriq export`: asks for page after page, and writes each record on a line.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_proto::wire::resp::{Value, Words};
use serde_json::{Map, Value as Json};

use super::{Counts, LIMIT, header};
use crate::args::carrying::ExportArgs;
use crate::connection::Wanted;
use crate::exit::{Exit, Failure};
use crate::logging::tell;
use crate::output::{escaped, print_text, wanted};
use crate::progress::Progress;
use crate::resp::{Client, unexpected};

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
    let mut counts = Counts::default();
    let mut wanted = target.line(header().as_bytes())?;
    let limits = if queue.is_none() { names(&mut client, "LIMIT LIST")? } else { Vec::new() };
    for limit in limits {
        let record = limit_record(&mut client, &limit)?;
        if let (Some(record), Wanted::More) = (record, wanted) {
            counts.add(record.as_bytes());
            wanted = target.line(record.as_bytes())?;
        }
    }
    for queue in &queues {
        if wanted == Wanted::More {
            wanted = write_queue(&mut client, queue, &mut target, (&mut counts, &progress))?;
        }
    }
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

/// What is kept of a limit, unless it has gone meanwhile. Its queues come later.
fn limit_record(client: &mut Client, name: &[u8]) -> Result<Option<String>, Failure> {
    let shown = client.call(&Words::new("LIMIT SHOW").bytes(name))?;
    if matches!(shown, Value::Error(_)) {
        return Ok(None);
    }
    let mut record = Map::new();
    match std::str::from_utf8(name) {
        Ok(text) => record.insert(LIMIT.to_owned(), text.into()),
        Err(_) => record.insert(format!("{LIMIT}_base64"), STANDARD.encode(name).into()),
    };
    if let Some(max) = shown.field("max").and_then(Value::integer) {
        record.insert("max".to_owned(), max.into());
    }
    if let Some(rate) = shown.field("rate").and_then(Value::as_bytes) {
        record.insert("rate".to_owned(), String::from_utf8_lossy(rate).into());
    }
    let fields = Json::Object(record).to_string();
    // The type of a record comes first.
    Ok(Some(fields.replacen('{', &format!("{{\"type\":\"{LIMIT}\","), 1)))
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

fn write_queue(
    client: &mut Client,
    queue: &[u8],
    target: &mut Target,
    (counts, progress): (&mut Counts, &Progress),
) -> Result<Wanted, Failure> {
    let mut cursor = b"0".to_vec();
    loop {
        let answer = client.call(&page_words(queue, &cursor))?;
        let Value::Array(parts) = answer else { return Err(unexpected()) };
        let [next, Value::Array(records)] = parts.as_slice() else { return Err(unexpected()) };
        for record in records {
            let record = record.as_bytes().ok_or_else(unexpected)?;
            if !counts.add(record) {
                return Err(unexpected());
            }
            if target.line(record)? == Wanted::NoMore {
                return Ok(Wanted::NoMore);
            }
            progress.add_one();
        }
        cursor = next.as_bytes().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            return Ok(Wanted::More);
        }
    }
}

/// What is sent for the page at `cursor`.
pub(in crate::cmd) fn page_words(queue: &[u8], cursor: &[u8]) -> Words {
    Words::new("EXPORT").bytes(queue).option("COUNT", Some(PAGE)).bytes("CURSOR").bytes(cursor)
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
