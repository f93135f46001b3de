//! The terminal on a pseudo-terminal: it is taken over and left, also by a panic.
//!
//! There is one terminal for the process, so this is one test.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::Screen;

/// Both ends of a terminal.
struct Pty {
    far: File,
    near: OwnedFd,
}

impl Pty {
    fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let far = openpt(flags).unwrap();
        grantpt(&far).unwrap();
        unlockpt(&far).unwrap();
        let near = ioctl_tiocgptpeer(&far, flags).unwrap();
        Self { far: File::from(far), near }
    }

    /// Whether the terminal sends lines and echoes, as at the beginning.
    fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.near).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    fn enter(&self) -> Screen {
        Screen::enter(self.near.as_fd(), self.near.as_fd()).unwrap()
    }

    /// What was written so far, up to these bytes.
    #[track_caller]
    fn written(&mut self, end: &[u8]) -> String {
        let mut written = Vec::new();
        let mut bytes = [0; 1024];
        while !written.ends_with(end) {
            let count = self.far.read(&mut bytes).unwrap();
            written.extend_from_slice(&bytes[..count]);
        }
        written.escape_ascii().to_string()
    }
}

#[test]
fn the_terminal_is_left_as_it_was_found() {
    let mut pty = Pty::open();
    let size = Winsize { ws_row: 7, ws_col: 33, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&pty.near, size).unwrap();
    assert!(pty.is_cooked());

    let mut screen = pty.enter();
    assert!(!pty.is_cooked());
    assert_eq!(Screen::size(), (33, 7));
    assert_eq!(pty.written(b"2J"), r"\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J");
    let mut buffer = Buffer::empty(Rect::new(0, 0, 5, 2));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    buffer.set_string(1, 1, "ab", bold);
    screen.show(buffer.clone()).unwrap();
    assert_eq!(pty.written(b"b\x1b[0m"), r"\x1b[0m\x1b[2J\x1b[2;2H\x1b[0;1mab\x1b[0m");
    // Only what is different is sent again.
    buffer.set_string(2, 1, "éx", bold);
    screen.show(buffer).unwrap();
    let written = pty.written(b"x\x1b[0m");
    // After a character that may be wide, the cursor is placed.
    assert!(written.contains(r"\x1b[2;4Hx"), "{written}");
    drop(screen);
    assert!(pty.is_cooked());
    assert_eq!(pty.written(b"1049l"), r"\x1b[0m\x1b[?25h\x1b[?1049l");

    // A panic on another thread leaves it too, and nothing is drawn after that.
    let mut screen = pty.enter();
    assert!(!pty.is_cooked());
    let panicked = std::thread::spawn(|| std::panic::resume_unwind(Box::new("quiet")));
    assert!(panicked.join().is_err());
    // Such a one tells nothing and runs no hook.
    assert!(!pty.is_cooked());
    let panicked = std::thread::spawn(|| panic!("this panic belongs to a test"));
    assert!(panicked.join().is_err());
    assert!(pty.is_cooked());
    pty.written(b"1049l");
    screen.show(Buffer::empty(Rect::new(0, 0, 1, 1))).unwrap_err();
    drop(screen);
    assert!(pty.is_cooked());

    // A terminal that has gone is left without a word.
    let screen = pty.enter();
    drop(pty);
    drop(screen);
}
