//! The options with which `pinpriq restore` goes on: a directory that follows.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;

use crate::units::{brief, duration_ms};

/// How often a directory that follows may look for what is new, in milliseconds.
const EVERY_MS: RangeInclusive<u64> = 100..=3_600_000;

/// The options with which `restore` goes on.
#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// Go on with what a server archives there, until SIGTERM: a warm standby
    ///
    /// The directory gets what comes. A server that is started on it goes on from there. With a
    /// directory that follows already, this goes on where it was.
    #[arg(long, conflicts_with_all = ["until", "dry_run", "paused", "json"])]
    pub(crate) follow: bool,

    /// With --follow, look this often for what is new, 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    #[arg(allow_negative_numbers = true, requires = "follow")]
    pub(crate) every: u64,

    /// With --follow, write into this file how far the directory is, as JSON
    #[arg(long, value_name = "FILE", requires = "follow")]
    pub(crate) status: Option<PathBuf>,

    /// With --follow, tell the same over HTTP at this address, as GET /healthz [default: off]
    #[arg(long, value_name = "ADDR", requires = "follow")]
    pub(crate) http: Option<SocketAddr>,
}

/// Reads how often to look for what is new.
fn every(text: &str) -> Result<u64, String> {
    let (least, most) = (*EVERY_MS.start(), *EVERY_MS.end());
    match duration_ms(text)? {
        ms if EVERY_MS.contains(&ms) => Ok(ms),
        _ => Err(format!("`{text}` is not from `{}` to `{}`", brief(least), brief(most))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn following(line: &str) -> Result<FollowArgs, String> {
        let words = ["pinpriq", "restore", "place", "--data", "d"].into_iter();
        let words = words.chain(line.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Restore(arguments) => Ok(arguments.follow),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn following_has_its_own_options_and_not_those_of_one_moment() {
        let given = following("").unwrap();
        assert_eq!((given.follow, given.every, given.http), (false, 1_000, None));
        let given = following("--follow --every 100ms --status f --http 127.0.0.1:0").unwrap();
        assert_eq!((given.follow, given.every), (true, 100));
        assert!(following("--follow --line 00ab00000000cdef --every 1h").is_ok());
        for wrong in ["--until latest", "--dry-run", "--paused", "--json", "--every 99ms"] {
            assert!(following(&format!("--follow {wrong}")).is_err(), "{wrong}");
        }
        for wrong in ["--every 2s", "--status f", "--http 127.0.0.1:0", "--follow --http x"] {
            assert!(following(wrong).is_err(), "{wrong}");
        }
    }
}
