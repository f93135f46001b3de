//! Packets on stdout: as they are, escaped for a terminal, or as hexadecimal digits.
//!
//! A missing reader is no failure: the commands then end quietly, like others in a pipe.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use pinpriq_proto::wire::Packet;
use pinpriq_server::plain::is_deceptive;

use crate::args::wire::PrintArgs;
use crate::connection::Wanted;
use crate::exit::Failure;

/// How the bytes of a packet are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Byte for byte.
    Raw,
    /// What cannot be printed as an escape, so that no payload can take over a terminal.
    Escaped,
    /// Two digits for each byte.
    Hex,
}

/// Where packets are printed.
#[derive(Debug)]
pub(crate) struct Output<W> {
    out: W,
    form: Form,
    with_key: bool,
    end: u8,
}

impl Output<BufWriter<StdoutLock<'static>>> {
    /// Prints to stdout.
    pub(crate) fn to_stdout(how: PrintArgs) -> Self {
        let stdout = io::stdout().lock();
        let form = match (how.hex, stdout.is_terminal()) {
            (true, _) => Form::Hex,
            (false, true) => Form::Escaped,
            (false, false) => Form::Raw,
        };
        Self::new(BufWriter::new(stdout), form, how)
    }
}

impl<W: Write> Output<W> {
    fn new(out: W, form: Form, how: PrintArgs) -> Self {
        Self { out, form, with_key: how.with_key, end: if how.null { 0 } else { b'\n' } }
    }

    /// Prints one packet.
    pub(crate) fn print(&mut self, packet: Packet<'_>) -> Result<Wanted, Failure> {
        let printed = self.write(packet);
        wanted(printed)
    }

    /// Flushes what was printed.
    pub(crate) fn flush(&mut self) -> Result<Wanted, Failure> {
        wanted(self.out.flush())
    }

    fn write(&mut self, packet: Packet<'_>) -> io::Result<()> {
        if self.with_key {
            self.write_bytes(packet.key)?;
            self.out.write_all(b"\t")?;
        }
        self.write_bytes(packet.payload)?;
        self.out.write_all(&[self.end])
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.form {
            Form::Raw => self.out.write_all(bytes),
            Form::Hex => bytes.iter().try_for_each(|byte| write!(self.out, "{byte:02X}")),
            Form::Escaped => self.out.write_all(escaped(bytes).as_bytes()),
        }
    }
}

/// Returns text that shows `bytes` to people and cannot disturb a terminal: what cannot be printed,
/// is invisible or turns the direction of writing is an escape.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_deceptive(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

/// Returns what a write to stdout means for the command.
pub(crate) fn wanted(outcome: io::Result<()>) -> Result<Wanted, Failure> {
    match outcome {
        Ok(()) => Ok(Wanted::More),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Wanted::NoMore),
        Err(error) => Err(Failure::on_the_way(format!("stdout cannot be written: {error}"))),
    }
}

/// Writes all of `bytes` to stdout, for commands that print one text.
pub(crate) fn print_text(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    wanted(stdout.write_all(bytes).and_then(|()| stdout.flush())).map(|_| ())
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::Packet;

    use super::{Form, Output, wanted};
    use crate::args::wire::PrintArgs;
    use crate::connection::Wanted;

    const PLAIN: PrintArgs = PrintArgs { hex: false, with_key: false, null: false };

    #[track_caller]
    fn check(form: Form, how: PrintArgs, payload: &[u8], expected: &[u8]) {
        let mut output = Output::new(Vec::new(), form, how);
        let packet = Packet { key: b"k\x01", payload };
        assert_eq!(output.print(packet), Ok(Wanted::More));
        assert_eq!(output.out, expected);
    }

    #[test]
    fn raw_payloads_are_printed_byte_for_byte() {
        check(Form::Raw, PLAIN, b"a\x00\xff\n", b"a\x00\xff\n\n");
        check(Form::Raw, PLAIN, b"", b"\n");
    }

    #[test]
    fn null_ends_packets_with_a_nul_byte() {
        check(Form::Raw, PrintArgs { null: true, ..PLAIN }, b"a\n", b"a\n\x00");
    }

    #[test]
    fn the_key_comes_first_with_a_tab() {
        check(Form::Raw, PrintArgs { with_key: true, ..PLAIN }, b"p", b"k\x01\tp\n");
        check(Form::Hex, PrintArgs { with_key: true, ..PLAIN }, b"p\xff", b"6B01\t70FF\n");
    }

    #[test]
    fn terminals_are_shown_escapes() {
        check(Form::Escaped, PLAIN, b"\x1b[2J\t\xff", b"\\u{1b}[2J\\t\\xff\n");
        check(Form::Escaped, PLAIN, "grün".as_bytes(), "grün\n".as_bytes());
    }

    #[test]
    fn a_reader_that_has_gone_wants_no_more() {
        assert_eq!(wanted(Err(std::io::ErrorKind::BrokenPipe.into())), Ok(Wanted::NoMore));
        assert!(wanted(Err(std::io::ErrorKind::StorageFull.into())).is_err());
    }
}
