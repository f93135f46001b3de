//! Asks for a password: twice in a terminal, which does not show it, or for one line of stdin.
//!
//! The terminal is read key by key, so that it is left as it was found also after Ctrl-C. Of what a
//! good password is, only the length is judged.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;

use pinpriq_server::users::{Name, PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, Password};
use rustix::io::{Errno, read};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::Failure;

/// Asks for the password of a user.
pub(super) fn ask(user: &Name) -> Result<Password, Failure> {
    if !io::stdin().is_terminal() {
        return one_line();
    }
    let _quiet = Quiet::begin().map_err(unreadable)?;
    let first = typed(&format!("Password for {user}: "))?;
    if !first.is_long_enough() {
        return Err(too_short());
    }
    if typed("The same again: ")? != first {
        return Err(Failure::unusable("the two passwords differ: nothing was changed"));
    }
    Ok(first)
}

/// Reads a line of what is no terminal.
fn one_line() -> Result<Password, Failure> {
    let most = u64::try_from(PASSWORD_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(3);
    let mut line = Vec::with_capacity(PASSWORD_BYTES_MAX + 3);
    io::stdin().lock().take(most).read_until(b'\n', &mut line).map_err(unreadable)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    }
    if line.is_empty() {
        return Err(Failure::unusable(
            "stdin has no password: it must be the first line, or run this in a terminal",
        ));
    }
    let given = password(line)?;
    if given.is_long_enough() { Ok(given) } else { Err(too_short()) }
}

fn too_short() -> Failure {
    Failure::unusable(format!(
        "a password has at least {PASSWORD_CHARACTERS_MIN} characters: nothing was changed"
    ))
}

fn password(bytes: Vec<u8>) -> Result<Password, Failure> {
    Password::new(bytes).map_err(|error| Failure::unusable(format!("{error}: nothing was changed")))
}

fn unreadable(error: impl Into<io::Error>) -> Failure {
    let error: io::Error = error.into();
    Failure::on_the_way(format!("the password cannot be read: {error}"))
}

/// A terminal that shows no keys. It shows them again when this goes out of scope.
struct Quiet {
    found: Termios,
}

impl Quiet {
    fn begin() -> io::Result<Self> {
        let found = tcgetattr(io::stdin())?;
        let mut quiet = found.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self { found })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.found);
    }
}

/// Asks once, in a terminal that shows no keys.
fn typed(prompt: &str) -> Result<Password, Failure> {
    // Without stderr the prompt is not seen, and can be answered all the same.
    let _ = io::stderr().write_all(prompt.as_bytes());
    let line = line();
    let _ = io::stderr().write_all(b"\n");
    password(line?)
}

/// Reads keys until they are a line.
fn line() -> Result<Vec<u8>, Failure> {
    let mut line = Line::default();
    loop {
        let mut key = [0];
        let count = match read(io::stdin().as_fd(), &mut key) {
            Err(Errno::INTR) => continue,
            other => other.map_err(unreadable)?,
        };
        let step = if count == 0 { Step::Leave } else { line.press(key[0]) };
        match step {
            Step::More => {}
            Step::Done => return Ok(line.bytes),
            Step::Leave => return Err(Failure::on_the_way("nothing was changed")),
        }
    }
}

/// What was typed so far.
#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
}

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    More,
    Done,
    Leave,
}

impl Default for Line {
    fn default() -> Self {
        // It never grows, which would leave a copy behind.
        Self { bytes: Vec::with_capacity(PASSWORD_BYTES_MAX + 1) }
    }
}

impl Line {
    fn press(&mut self, key: u8) -> Step {
        match key {
            b'\r' | b'\n' => return Step::Done,
            // Ctrl-C, and Ctrl-\ beside it.
            0x03 | 0x1c => return Step::Leave,
            // Ctrl-D.
            0x04 => return if self.bytes.is_empty() { Step::Leave } else { Step::Done },
            // The key that deletes takes a whole character away.
            0x08 | 0x7f => {
                while self.bytes.pop().is_some_and(|byte| (0x80..0xc0).contains(&byte)) {}
            }
            // Ctrl-U.
            0x15 => self.bytes.clear(),
            // What is longer than a password may be is refused as a whole.
            key if self.bytes.len() <= PASSWORD_BYTES_MAX => self.bytes.push(key),
            _ => {}
        }
        Step::More
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Step};

    #[track_caller]
    fn check(keys: &str, step: Step, expected: &str) {
        let mut line = Line::default();
        let last = keys.bytes().map(|key| line.press(key)).last();
        assert_eq!((last, line.bytes.as_slice()), (Some(step), expected.as_bytes()), "{keys:?}");
    }

    #[test]
    fn keys_become_a_password() {
        check("swordfish\r", Step::Done, "swordfish");
        check("swordfish\n", Step::Done, "swordfish");
        check("sword\x04", Step::Done, "sword");
        check("sword", Step::More, "sword");
    }

    #[test]
    fn keys_that_edit_are_no_part_of_it() {
        check("sword\x15fish\r", Step::Done, "fish");
        check("ab\x7fc\x08d\r", Step::Done, "ad");
        check("aü€\x7f\x7f\r", Step::Done, "a");
        check("\x7f\x7fa\r", Step::Done, "a");
    }

    #[test]
    fn it_can_be_left() {
        check("sword\x03", Step::Leave, "sword");
        check("\x04", Step::Leave, "");
    }

    #[test]
    fn it_is_never_longer_than_what_is_refused() {
        check(&"x".repeat(5_000), Step::More, &"x".repeat(1_025));
    }
}
