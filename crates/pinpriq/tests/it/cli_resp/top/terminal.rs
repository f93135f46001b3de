//! A terminal for a program in a test: a pseudo-terminal, and an emulator that knows what it shows.
//!
//! Nothing sleeps: every wait reads what the program writes until something is seen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// How often something is read before what is waited for has failed to come. The program draws
/// once in a second, or more often.
const READS_MAX: u32 = 100;

/// For how long the program may write nothing while something is waited for, in seconds.
const SILENCE_S: i64 = 30;

/// A program in a terminal of its own.
pub(super) struct Terminal {
    far: File,
    /// Kept open, so that what the program leaves behind can be looked at.
    near: OwnedFd,
    emulator: vt100::Parser,
    child: Process,
    /// The modes before the program began.
    before: String,
}

impl Terminal {
    /// Runs a command in a terminal of this size.
    pub(super) fn run(mut command: Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let far = openpt(flags).unwrap();
        grantpt(&far).unwrap();
        unlockpt(&far).unwrap();
        let near = ioctl_tiocgptpeer(&far, flags).unwrap();
        set_size(&near, columns, rows);
        let before = modes(&tcgetattr(&near).unwrap());
        command.stdin(near.try_clone().unwrap());
        command.stdout(near.try_clone().unwrap()).stderr(near.try_clone().unwrap());
        let child = Process(command.spawn().unwrap());
        let size = |length| NonZeroU16::new(length).unwrap();
        let emulator = vt100::Parser::new(size(rows), size(columns), 0);
        Self { far: File::from(far), near, emulator, child, before }
    }

    /// Gives the terminal another size, and tells the program as a terminal would.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        set_size(&self.near, columns, rows);
        let size = |length| NonZeroU16::new(length).unwrap();
        self.emulator.screen_mut().set_size(size(rows), size(columns));
        self.signal("-WINCH");
    }

    /// Presses keys.
    pub(super) fn press(&mut self, keys: &str) {
        self.far.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What is seen.
    pub(super) fn text(&self) -> String {
        self.emulator.screen().contents()
    }

    /// Waits until the screen is as `is_so` says, and returns what is seen.
    #[track_caller]
    pub(super) fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        for _ in 0..READS_MAX {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(self.read(), "the program is silent, and not: {what}\n{text}");
        }
        panic!("it never came to this: {what}\n{}", self.text());
    }

    /// Waits until these words are seen.
    #[track_caller]
    pub(super) fn see(&mut self, words: &str) -> String {
        self.until(words, |text| text.contains(words))
    }

    /// Whether the program has the terminal for itself.
    pub(super) fn is_taken_over(&self) -> bool {
        let screen = self.emulator.screen();
        let are_changed = modes(&tcgetattr(&self.near).unwrap()) != self.before;
        let is_other_screen = screen.alternate_screen();
        assert_eq!(are_changed, is_other_screen, "{}", self.text());
        assert_eq!(is_other_screen, screen.hide_cursor());
        are_changed
    }

    /// Waits for the end of the program, and checks that the terminal is as it was found.
    #[track_caller]
    pub(super) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.0.wait().unwrap();
        while self.is_readable(&Timespec { tv_sec: 0, tv_nsec: 0 }) && self.read() {}
        assert!(!self.is_taken_over(), "the terminal was not given back");
        (status, self.text())
    }

    /// Closes the terminal, and waits for the end of the program.
    pub(super) fn close(self) -> ExitStatus {
        let Self { far, near, mut child, .. } = self;
        drop((far, near));
        child.0.wait().unwrap()
    }

    fn is_readable(&self, limit: &Timespec) -> bool {
        let far = self.far.as_fd();
        poll(&mut [PollFd::new(&far, PollFlags::IN)], Some(limit)).unwrap() > 0
    }

    /// Waits for something that the program writes. Returns false if nothing comes.
    pub(super) fn read(&mut self) -> bool {
        let limit = Timespec { tv_sec: SILENCE_S, tv_nsec: 0 };
        if !self.is_readable(&limit) {
            return false;
        }
        let mut bytes = [0; 4096];
        let count = self.far.read(&mut bytes).unwrap();
        self.emulator.process(&bytes[..count]);
        count > 0
    }
}

/// A process. Killed when it goes out of scope.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn set_size(near: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(near, size).unwrap();
}

/// All modes of a terminal.
fn modes(termios: &Termios) -> String {
    format!("{termios:?}")
}
