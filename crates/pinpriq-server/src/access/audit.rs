//! The audit: who did what that others may want to know later.
//!
//! Places hand events over, and a thread of its own writes a JSON line for each, so that no shard
//! waits for the file. What is repeated within a second is one line. Events for which the thread
//! has no time are left out and counted. What the events mean, and when they happen, is up to those
//! who hand them over.

mod lines;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use self::lines::Lines;
use crate::clock::SystemClock;
use crate::config::AuditTo;
use crate::error::ServeError;

/// How many events may wait for the thread. Further ones are left out, and counted.
const EVENTS_WAITING: usize = 10_000;

/// How many bytes of a name a line shows. Names may be much longer, and those who are refused
/// choose them.
const NAME_BYTES_SHOWN: usize = 256;

/// How often what was repeated is written.
const FLUSH: Duration = Duration::from_secs(1);

/// How long the server waits at its end until the last lines are written.
const FINISH: Duration = Duration::from_secs(1);

/// How many events of the process were left out.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Returns how many events were left out since the process began.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum What {
    /// A client has signed in.
    SignedIn,
    /// A client has shown a wrong password or token.
    SignInFailed,
    /// A client was refused for want of a right.
    Denied,
    /// A client has carried out a command that changes settings or destroys something.
    Command,
    /// A user has changed in the file.
    UserChanged,
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    pub(crate) what: What,
    /// Who did it, or whom it is about.
    pub(crate) user: Option<String>,
    pub(crate) from: Option<SocketAddr>,
    pub(crate) door: Option<&'static str>,
    /// The command, if it is about one.
    pub(crate) command: Option<String>,
    /// The queue, topic or schedule.
    pub(crate) name: Option<Vec<u8>>,
    /// How long the name is, if no more than its beginning is kept.
    pub(crate) name_bytes: Option<u64>,
    /// How many tasks or other things it was about.
    pub(crate) count: Option<u64>,
    /// What more there is to say.
    pub(crate) detail: Option<String>,
}

impl Event {
    /// Returns an event about which nothing more is known.
    pub(crate) const fn new(what: What) -> Self {
        Self {
            what,
            user: None,
            from: None,
            door: None,
            command: None,
            name: None,
            name_bytes: None,
            count: None,
            detail: None,
        }
    }

    /// Returns the event with no more of its name than a line shows, and with the length of that.
    fn shortened(mut self) -> Self {
        if let Some(name) = self.name.as_mut().filter(|name| name.len() > NAME_BYTES_SHOWN) {
            self.name_bytes = Some(name.len() as u64);
            let text = str::from_utf8(name).is_ok();
            name.truncate(NAME_BYTES_SHOWN);
            // Text ends with a whole character.
            while text && str::from_utf8(name).is_err() {
                name.pop();
            }
            name.shrink_to_fit();
        }
        self
    }
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(crate) struct Audit {
    letters: SyncSender<Letter>,
    lost: Arc<AtomicU64>,
}

enum Letter {
    Event(Box<Event>, u64),
    Reopen,
    /// Answered when everything before it is written.
    Finish(SyncSender<()>),
}

impl Audit {
    /// Opens the file, which is made if it is not there, and starts the thread. Blocks.
    pub(crate) fn open(to: AuditTo) -> Result<Arc<Self>, ServeError> {
        let file = open(&to)
            .map_err(|error| ServeError::Audit { why: format!("{}: {error}", shown(&to)) })?;
        let (letters, coming) = sync_channel(EVENTS_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer { to, file, lines: Lines::default(), lost: lost.clone(), fails: false };
        let builder = thread::Builder::new().name("audit".to_owned());
        let run = move || writer.run(&coming);
        builder.spawn(run).map_err(|source| ServeError::Runtime { source })?;
        Ok(Arc::new(Self { letters, lost }))
    }

    /// Hands an event over, of whose names no more is kept than a line shows. Never waits.
    pub(crate) fn note(&self, event: Event) {
        let letter = Letter::Event(Box::new(event.shortened()), SystemClock::wall().ms());
        if self.letters.try_send(letter).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits a moment until everything that was handed over is written. Blocks.
    pub(crate) fn finish(&self) {
        let (done, wait) = sync_channel(1);
        if self.letters.try_send(Letter::Finish(done)).is_ok() {
            let _ = wait.recv_timeout(FINISH);
        }
    }

    /// Has the file opened again, since another one may have its name now.
    pub(crate) fn reopen(&self) {
        // If the channel is full, the file is opened again at the next SIGHUP.
        let _ = self.letters.try_send(Letter::Reopen);
    }
}

/// What the thread has.
struct Writer {
    to: AuditTo,
    file: Option<File>,
    lines: Lines,
    lost: Arc<AtomicU64>,
    /// Whether the last line could not be written.
    fails: bool,
}

impl Writer {
    fn run(mut self, coming: &Receiver<Letter>) {
        loop {
            match coming.recv_timeout(FLUSH) {
                Ok(Letter::Event(event, at_ms)) => {
                    let line = self.lines.add(*event, at_ms);
                    self.write(&line);
                }
                Ok(Letter::Reopen) => match open(&self.to) {
                    Ok(file) => self.file = file,
                    Err(error) => {
                        let audit = shown(&self.to);
                        tracing::warn!(audit, %error, "the audit goes on in the former file");
                    }
                },
                Ok(Letter::Finish(done)) => {
                    let rest = self.lines.due(u64::MAX);
                    self.write(&rest);
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now_ms = SystemClock::wall().ms();
            let due = self.lines.due(now_ms);
            self.write(&due);
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                tracing::warn!(lost, "events of the audit were left out: there were too many");
            }
        }
        let rest = self.lines.due(u64::MAX);
        self.write(&rest);
    }

    /// Writes lines, in one piece.
    fn write(&mut self, lines: &str) {
        if lines.is_empty() {
            return;
        }
        let written = match &mut self.file {
            Some(file) => file.write_all(lines.as_bytes()),
            None => io::stderr().write_all(lines.as_bytes()),
        };
        if let Err(error) = &written
            && !self.fails
        {
            tracing::error!(audit = shown(&self.to), %error, "the audit cannot be written");
        }
        self.fails = written.is_err();
    }
}

/// Opens the file, if it is one.
fn open(to: &AuditTo) -> io::Result<Option<File>> {
    match to {
        AuditTo::Stderr => Ok(None),
        AuditTo::File(path) => {
            // A pipe without a reader is refused at once. Later only the thread waits for it.
            let flags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
            let file = options.open(path).map_err(|error| {
                if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
                    io::Error::other("it is a pipe or a socket without a reader")
                } else {
                    error
                }
            })?;
            fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::NONBLOCK))?;
            Ok(Some(file))
        }
    }
}

fn shown(to: &AuditTo) -> String {
    match to {
        AuditTo::Stderr => "stderr".to_owned(),
        AuditTo::File(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn denied(name: &[u8]) -> Event {
        Event { name: Some(name.to_vec()), ..Event::new(What::Denied) }
    }

    #[test]
    fn a_pipe_without_a_reader_is_refused_at_once_and_one_with_a_reader_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("audit");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let to = AuditTo::File(pipe.clone());
        let refused = Audit::open(to.clone()).unwrap_err();
        assert!(refused.to_string().contains("without a reader"), "{refused}");

        let reader = Command::new("head")
            .args(["-n", "1"])
            .arg(&pipe)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let audit = (0..1_000_000).find_map(|_| {
            thread::yield_now();
            Audit::open(to.clone()).ok()
        });
        let audit = audit.unwrap();
        audit.note(denied(b"q"));
        audit.finish();
        let read = reader.wait_with_output().unwrap().stdout;
        let read = String::from_utf8(read).unwrap();
        assert!(read.contains(r#""name":"q""#), "{read}");
    }

    #[test]
    fn what_was_noted_is_written_when_the_server_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let audit = Audit::open(AuditTo::File(path.clone())).unwrap();
        for _ in 0..3 {
            audit.note(denied(b"q"));
        }
        audit.finish();
        let mut lines = String::new();
        let mut file = OpenOptions::new().read(true).open(&path).unwrap();
        io::Read::read_to_string(&mut file, &mut lines).unwrap();
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.contains(r#""repeats":2"#), "{lines}");
    }
}
