//! The arguments of the commands that take backups, look after them, and bring them back.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::encryption::EncryptionArgs;
use super::following::FollowArgs;
use super::texts::after;
use crate::endpoint::{self, Endpoint};
use crate::exit::Failure;
use crate::moments::Moment;
use crate::settings::{Kept, Size};

/// How many hexadecimal digits the name of a line has.
const LINE_DIGITS: usize = 16;

/// The bounds of how fast a backup goes, in bytes a second.
const RATE_MIN: u64 = 64 << 10;
const RATE_MAX: u64 = 1 << 40;

/// A number of bytes a second, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate(Option<Size<RATE_MAX>>);

impl Rate {
    /// The number, unless it is off.
    pub(crate) fn bytes_per_second(self) -> Option<u64> {
        self.0.map(Size::bytes)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if matches!(text, "off" | "0") {
            return Ok(Self(None));
        }
        let size: Size<RATE_MAX> = text.parse().map_err(|error| format!("{error}, or `off`"))?;
        if size.bytes() < RATE_MIN {
            return Err(format!("`{text}` is too slow to come to an end: give at least `64KiB`"));
        }
        Ok(Self(Some(size)))
    }
}

/// What can be done with an archive.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Print the lines of an archive, and from when to when each reaches.
    ///
    /// A line is the history of one data directory. A directory that was restored has a line of its
    /// own, with the one that it comes from as its parent. Each row of the table is a stretch of a
    /// line without a gap: any moment from the first to the last can be restored. Where a line has
    /// several rows, the last moment before a gap stands for those in the gap.
    #[command(after_help = after(
        "pinpriq archive list /mnt/backup/pinpriq
        pinpriq archive list s3://backups/pinpriq --json | jq -r '.ranges[-1].to'",
        "0  printed
        1  the place could not be read
        2  wrong usage
        3  something in it is damaged, or of a newer format
        4  there is no backup in it",
    ))]
    List(ListArgs),
    /// Read all that an archive holds, and tell what is missing or damaged.
    ///
    /// Everything that a backup needs is read, and compared with its checksums. Nothing changes.
    #[command(after_help = after(
        "pinpriq archive verify /mnt/backup/pinpriq",
        "0  everything is there, and as it was written
        1  the place could not be read
        2  wrong usage
        3  something is missing, damaged, or of a newer format
        4  there is no backup in it",
    ))]
    Verify(ListArgs),
    /// Remove what is older than a time from an archive.
    ///
    /// Every moment of that time stays, and what is needed for the earliest of them. What no backup
    /// needs any more is removed an hour later, by the next run, since somebody may be reading it.
    /// Never let a bucket remove old objects by itself: tasks that still exist may be in them.
    #[command(after_help = after(
        "pinpriq archive prune /mnt/backup/pinpriq --archive-keep 7d --dry-run
        pinpriq archive prune s3://backups/pinpriq --archive-keep 30d",
        "0  done
        1  the place could not be read or changed
        2  wrong usage
        3  something in it is damaged, or of a newer format: nothing was removed
        4  there is no backup in it",
    ))]
    Prune(PruneArgs),
}

/// Where a server can be asked for its files.
#[derive(Debug, Args)]
pub(crate) struct DoorArgs {
    /// Host and port of the server's HTTP door
    #[arg(long, env = "PINPRIQ_HTTP_ADDRESS", hide_env_values = true, value_name = "ADDR")]
    #[arg(default_value = "127.0.0.1:7252")]
    pub(crate) address: String,

    #[command(flatten)]
    pub(crate) encryption: EncryptionArgs,
}

/// The arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where backups lie: a directory, or `s3://BUCKET/PREFIX`
    pub(crate) place: String,

    /// How many bytes a second are read from the server, and written, at the most
    ///
    /// Others that use the same disks and processors notice little of that. Off: as fast as it
    /// goes.
    #[arg(long, value_name = "SIZE|off", default_value = "32MiB", allow_hyphen_values = true)]
    pub(crate) max_rate: Rate,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) door: DoorArgs,
}

/// The arguments of `archive list` and `archive verify`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Where backups lie: a directory, or `s3://BUCKET/PREFIX`
    pub(crate) place: String,

    /// Print JSON objects, one in each line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `archive prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Where backups lie: a directory, or `s3://BUCKET/PREFIX`
    pub(crate) place: String,

    /// How far back every moment is kept, at least 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) archive_keep: Kept,

    /// Tell what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Where backups lie: a directory, or `s3://BUCKET/PREFIX`
    pub(crate) place: String,

    /// The new data directory, empty or not there yet
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// The line to restore, as `archive list` names it [default: the newest]
    #[arg(long, value_name = "LINE", value_parser = line)]
    pub(crate) line: Option<u64>,

    /// The moment to restore
    ///
    /// By RFC 3339, in Unix milliseconds, or as -10m for ten minutes before the newest moment of
    /// the line. One in the future is the newest.
    #[arg(long, value_name = "MOMENT", default_value = "latest")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) until: Moment,

    /// Tell what would be restored, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Pause every queue and every schedule, so that nothing goes on by itself
    #[arg(long)]
    pub(crate) paused: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) follow: FollowArgs,
}

/// The arguments of `look`.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// Where backups lie, or a data directory that no server uses
    pub(crate) place: String,

    /// The line to look at, as `archive list` names it [default: the newest]
    #[arg(long, value_name = "LINE", value_parser = line)]
    pub(crate) line: Option<u64>,

    /// The moment to look at
    ///
    /// By RFC 3339, in Unix milliseconds, or as -10m for ten minutes before the newest moment. One
    /// in the future is the newest.
    #[arg(long, value_name = "MOMENT", default_value = "latest")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) until: Moment,

    /// Where it answers over RESP, on this machine; port 0 is any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = loopback)]
    pub(crate) resp: SocketAddr,

    /// Where it answers over HTTP and shows the dashboard, on this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = loopback)]
    pub(crate) http: SocketAddr,

    /// Print one JSON object once it answers
    #[arg(long)]
    pub(crate) json: bool,
}

impl DoorArgs {
    /// Returns where the server is.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        Endpoint::of(&self.address, &self.encryption, endpoint::HTTP)
    }
}

/// Reads an address that only this machine reaches: a look asks nobody who they are.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:");
    let numbers = port.map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = numbers
        .parse()
        .map_err(|_| format!("`{text}` is no address: give one such as `127.0.0.1:7351`"))?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!(
        "other machines reach `{text}`, and would see all tasks: give an address of this machine, \
         such as `127.0.0.1:{}`",
        address.port()
    ))
}

/// Reads the name of a line.
fn line(text: &str) -> Result<u64, String> {
    let digits = text.len() == LINE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok().filter(|_| digits);
    number.ok_or_else(|| {
        format!("`{text}` is no line: it has {LINE_DIGITS} hexadecimal digits, as `list` shows")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pinpriq_proto::time::Span;

    use super::*;
    use crate::args::{Cli, Command};

    fn restore(line: &str) -> Result<RestoreArgs, String> {
        let words = ["pinpriq", "restore", "place", "--data", "d"].into_iter();
        let words = words.chain(line.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Restore(arguments) => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_restore_takes_a_line_and_a_moment() {
        let given = restore("").unwrap();
        assert_eq!((given.line, given.until), (None, Moment::Latest));
        let given = restore("--until -10m --line 00ab00000000CDEF").unwrap();
        assert_eq!(given.until, Moment::Before(Span::from_ms(600_000)));
        assert_eq!(given.line, Some(0x00ab_0000_0000_cdef));
        for wrong in ["--line ab", "--line +0ab00000000cdef", "--until soon", "--until -1.5m"] {
            assert!(restore(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_has_bounds_or_is_off() {
        let rate = |text: &str| text.parse().map(Rate::bytes_per_second);
        assert_eq!(rate("64MiB"), Ok(Some(64 << 20)));
        assert_eq!((rate("off"), rate("0")), (Ok(None), Ok(None)));
        for (wrong, words) in [
            ("1KiB", "give at least `64KiB`"),
            ("2048GiB", "out of bounds"),
            ("fast", "or `off`"),
            ("-1", "or `off`"),
            ("", "or `off`"),
        ] {
            let refusal = rate(wrong).expect_err(wrong);
            assert!(refusal.contains(words), "{refusal}");
        }
    }

    #[test]
    fn a_look_is_for_this_machine_alone() {
        let told = |text: &str| loopback(text).map(|address| address.to_string());
        assert_eq!(told("127.0.0.1:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(told("localhost:7351").as_deref(), Ok("127.0.0.1:7351"));
        assert_eq!(told("[::1]:7351").as_deref(), Ok("[::1]:7351"));
        for (wrong, words) in [
            ("0.0.0.0:7351", "such as `127.0.0.1:7351`"),
            ("192.0.2.1:1", "other machines reach"),
            ("[::]:1", "other machines reach"),
            ("7351", "is no address"),
            ("example.com:1", "is no address"),
            ("", "is no address"),
        ] {
            let refusal = loopback(wrong).expect_err(wrong);
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}
