//! What a command writes to stderr: it goes to the worker's own stderr as it comes, and its last
//! line is kept.
//!
//! Processes that the command leaves behind may go on writing. So the copying ends with the last of
//! them, not with the command.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How many bytes of the last line are kept.
const LINE_BYTES_MAX: usize = 1024;

/// How many bytes are copied at a time.
const COPY_BYTES: usize = 4 << 10;

/// How much is read after the end of the command, at most. No pipe holds more.
const REST_BYTES_MAX: usize = 1 << 20;

/// The stderr of a command that was started.
#[derive(Debug)]
pub(super) struct Passing {
    /// Dropped when the command has ended.
    ended: io::PipeWriter,
    last_line: Receiver<String>,
}

impl Passing {
    /// Begins to copy. The pipe tells the thread that copies when the command has ended.
    pub(super) fn begin(
        stderr: ChildStderr,
        (end, ended): (io::PipeReader, io::PipeWriter),
    ) -> Self {
        let (kept, last_line) = sync_channel(1);
        std::thread::spawn(move || copy(stderr, &end, &kept));
        Self { ended, last_line }
    }

    /// Returns the last line that is not empty. To be called when the command has ended.
    pub(super) fn last_line(self) -> String {
        let Self { ended, last_line } = self;
        drop(ended);
        last_line.recv().unwrap_or_default()
    }
}

/// Copies until all writers are gone, and hands over the last line when the command has ended.
fn copy(mut from: ChildStderr, end: &io::PipeReader, kept: &SyncSender<String>) {
    let mut tail = Tail::default();
    loop {
        let [readable, ended] = wait_for([from.as_fd(), end.as_fd()], None);
        if ended || readable && !matches!(copy_some(&mut from, &mut tail), Ok(1..)) {
            break;
        }
    }
    let mut rest = REST_BYTES_MAX;
    while rest > 0 && wait_for([from.as_fd()], Some(&Timespec::default())) == [true] {
        match copy_some(&mut from, &mut tail) {
            Ok(length @ 1..) => rest = rest.saturating_sub(length),
            _ => break,
        }
    }
    // The line is not wanted if the worker has ended.
    let _ = kept.send(tail.last_line());
    while matches!(copy_some(&mut from, &mut tail), Ok(1..)) {}
}

/// Copies what is there, after waiting for it if need be, and returns how much it was.
fn copy_some(from: &mut ChildStderr, tail: &mut Tail) -> io::Result<usize> {
    let mut buffer = [0; COPY_BYTES];
    loop {
        match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(length) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                tail.add(bytes);
                // The command must be able to go on even if this is not read.
                let _ = io::stderr().write_all(bytes);
                return Ok(length);
            }
        }
    }
}

/// Waits until one of these can be read or has ended, and returns which of them.
fn wait_for<const N: usize>(these: [BorrowedFd<'_>; N], limit: Option<&Timespec>) -> [bool; N] {
    let mut asked = these.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
    while poll(&mut asked, limit) == Err(Errno::INTR) {}
    asked.map(|it| !it.revents().is_empty())
}

/// The last line of what has been written so far.
#[derive(Debug, Default)]
struct Tail {
    /// What has been seen of the line that is not complete.
    line: Vec<u8>,
    /// The last complete line that was not empty.
    last: Vec<u8>,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' if self.line.trim_ascii().is_empty() => self.line.clear(),
                b'\n' | b'\r' => self.last = std::mem::take(&mut self.line),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Returns the last line that is not empty, complete or not.
    fn last_line(&self) -> String {
        let line = Some(self.line.trim_ascii()).filter(|line| !line.is_empty());
        let mut text =
            String::from_utf8_lossy(line.unwrap_or_else(|| self.last.trim_ascii())).into_owned();
        text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES_MAX, Tail};

    #[track_caller]
    fn check(written: &[u8], expected: &str) {
        for pieces in [1, 3, written.len().max(1)] {
            let mut tail = Tail::default();
            written.chunks(pieces).for_each(|piece| tail.add(piece));
            assert_eq!(tail.last_line(), expected);
        }
    }

    #[test]
    fn the_last_line_that_is_not_empty_is_kept() {
        check(b"", "");
        check(b"\n \n", "");
        check(b"one\ntwo\n", "two");
        check(b"one\ntwo", "two");
        check(b"one\n \t\n\r\n", "one");
        check(b"10%\r20%\r\n  done  \n\n", "done");
    }

    #[test]
    fn it_is_text_of_a_bounded_length() {
        check(b"caf\xc3\xa9 \xff\n", "caf\u{e9} \u{fffd}");
        check(&[b'x'; 9_999], &"x".repeat(LINE_BYTES_MAX));
        // Each of these bytes becomes a character of three.
        check(&[0xff; 1_200], &"\u{fffd}".repeat(LINE_BYTES_MAX / 3));
    }
}
