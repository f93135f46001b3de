//! The place of an archive, and the commands of the program that read it. What is wrong with the
//! place is an objection to the server that wrote it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::{Fallible, Objection};
use crate::process::{field, run};
use crate::server::remove_settings;

/// Where a server archives.
pub(crate) struct Place {
    pub(crate) program: PathBuf,
    /// A directory, or the URL of a bucket with a prefix.
    pub(crate) url: String,
}

/// What was restored, as the program says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) at_ms: u64,
    /// Whether that is what was asked for: `exact`, `latest` or `before-gap`.
    pub(crate) why: String,
}

impl Place {
    /// Restores a moment into a new directory.
    pub(crate) fn restore(&self, data: &Path, until: &str) -> Fallible<Said> {
        self.restored(data, &["--until", until])
    }

    /// The newest moment that could be restored. Nothing is written.
    pub(crate) fn newest_ms(&self, data: &Path) -> Fallible<u64> {
        Ok(self.restored(data, &["--dry-run"])?.at_ms)
    }

    fn restored(&self, data: &Path, more: &[&str]) -> Fallible<Said> {
        let mut command = self.command(&["restore"]);
        let text = told(command.args(more).arg("--data").arg(data))?;
        let member = |name: &str| {
            field(&text, name).ok_or_else(|| format!("restore has printed no {name}: {text}"))
        };
        Ok(Said { at_ms: member("at_ms")?.parse()?, why: member("why")?.to_owned() })
    }

    /// Reads everything that is there, and returns how many marks and objects that are.
    pub(crate) fn verify(&self) -> Fallible<(u64, u64)> {
        let text = told(&mut self.command(&["archive", "verify"]))?;
        let number = |name: &str| {
            field(&text, name).ok_or_else(|| format!("verify has printed no {name}: {text}"))
        };
        Ok((number("backups")?.parse()?, number("objects")?.parse()?))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg(&self.url).arg("--json");
        remove_settings(&mut command);
        command
    }
}

/// Runs a command that must succeed, and returns what it prints.
fn told(command: &mut Command) -> Fallible<String> {
    Ok(run(command).map_err(|why| Objection(why.to_string()))?)
}
