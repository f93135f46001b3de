//! The terminal: taken over, drawn to, and left as it was found.
//!
//! What was changed is kept in one place for the whole process, so that a panic on any thread can
//! undo it before its message is printed. Nothing is drawn after that. It knows no model.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The other screen, without a cursor, empty.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
/// The first screen, with a cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// What is assumed of a terminal that does not know its size.
const SIZE: (u16, u16) = (80, 24);

/// What has to be undone, as long as the terminal is taken over.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);
/// Held while something is written, so that nothing comes after what leaves the terminal.
static WRITING: Mutex<()> = Mutex::new(());
/// The hook is set once, however often the terminal is taken over.
static HOOK: Once = Once::new();

struct Taken {
    input: OwnedFd,
    output: Arc<OwnedFd>,
    /// As it was found.
    found: Termios,
}

/// A terminal that was taken over. It is left when this goes out of scope.
#[derive(Debug)]
pub(super) struct Screen {
    /// What the terminal shows.
    shown: Buffer,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn enter(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                before(panic);
            }));
        });
        let found = tcgetattr(input)?;
        let (input, output) = (input.try_clone_to_owned()?, Arc::new(output.try_clone_to_owned()?));
        *taken() = Some(Taken { input, output, found });
        let mut screen = Self { shown: Buffer::empty(Rect::default()) };
        screen.again()?;
        Ok(screen)
    }

    /// Takes the terminal over once more, after another program had it or it was disturbed.
    pub(super) fn again(&mut self) -> io::Result<()> {
        with_taken(|taken| {
            let mut raw = taken.found.clone();
            raw.make_raw();
            Ok(tcsetattr(&taken.input, OptionalActions::Now, &raw)?)
        })?;
        self.shown = Buffer::empty(Rect::default());
        write(ENTER)
    }

    /// Columns and lines.
    pub(super) fn size() -> (u16, u16) {
        let size = with_taken(|taken| Ok(tcgetwinsize(&taken.output)?));
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => SIZE,
        }
    }

    /// Shows what is in the buffer.
    pub(super) fn show(&mut self, buffer: Buffer) -> io::Result<()> {
        let mut bytes = Vec::new();
        if self.shown.area != buffer.area {
            bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
            self.shown = Buffer::empty(buffer.area);
        }
        put_cells(self.shown.diff(&buffer), &mut bytes);
        self.shown = buffer;
        write(&bytes)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Leaves the terminal as it was found. Does nothing if it was left already.
pub(super) fn leave() {
    let Some(Taken { input, output, found }) = taken().take() else { return };
    // A terminal that has gone needs nothing, and one that is stuck may take no more. The
    // modes come first, since they need no room in it.
    let _ = tcsetattr(&input, OptionalActions::Now, &found);
    let _writing = writing();
    let _ = write_all(output.as_fd(), LEAVE);
}

/// Gives back what can be given back without writing: the modes. For a terminal that is stuck.
pub(super) fn leave_unwritten() {
    if let Some(Taken { input, found, .. }) = taken().as_ref() {
        let _ = tcsetattr(input, OptionalActions::Now, found);
    }
}

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken() -> MutexGuard<'static, Option<Taken>> {
    // Nothing that can panic happens while this is locked.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_taken<T>(use_it: impl FnOnce(&Taken) -> io::Result<T>) -> io::Result<T> {
    taken().as_ref().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), use_it)
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let _writing = writing();
    // The terminal may be left meanwhile; what leaves it is written after this.
    let output = with_taken(|taken| Ok(taken.output.clone()))?;
    write_all(output.as_fd(), bytes)
}

fn write_all(output: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another program that uses the terminal does not want to wait for it. We do.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&output, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Appends what makes a terminal show these cells.
fn put_cells(cells: Vec<(u16, u16, &Cell)>, bytes: &mut Vec<u8>) {
    let mut cursor = None;
    let mut style = None;
    for (x, y, cell) in cells {
        if cursor != Some((x, y)) {
            bytes.extend_from_slice(format!("\x1b[{};{}H", y + 1, x + 1).as_bytes());
        }
        if style != Some(cell.modifier) {
            bytes.extend_from_slice(b"\x1b[0");
            let codes = [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")];
            for (modifier, code) in codes {
                if cell.modifier.contains(modifier) {
                    bytes.extend_from_slice(code.as_bytes());
                }
            }
            bytes.push(b'm');
            style = Some(cell.modifier);
        }
        bytes.extend_from_slice(cell.symbol().as_bytes());
        // Terminals do not agree how wide other characters are, so the cursor is placed after them.
        cursor = cell.symbol().chars().all(is_narrow).then_some((x + 1, y));
    }
    if style.is_some() {
        bytes.extend_from_slice(b"\x1b[0m");
    }
}

/// Whether every terminal takes one column for a character.
const fn is_narrow(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{2500}'..='\u{259f}')
}

#[cfg(test)]
mod tests;
