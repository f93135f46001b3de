//! Environment variables that look like settings and are none.
//!
//! `clap` reads those that are. A misspelt one would otherwise be ignored without a word.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use clap::{Command, CommandFactory as _};

use crate::args::Cli;
use crate::told::HEADER;

/// How the names of all variables of this program begin.
const PREFIX: &str = "PINPRIQ_";

/// What `take --exec` and `listen --exec` tell the commands that they run, one of which may start a
/// server.
const TOLD_TO_COMMANDS: [&str; 8] = [
    "PINPRIQ_QUEUE",
    "PINPRIQ_ID",
    "PINPRIQ_RECEIPT",
    "PINPRIQ_ATTEMPTS",
    "PINPRIQ_FAILURES",
    "PINPRIQ_KEY",
    "PINPRIQ_MEMBER",
    "PINPRIQ_CHECKPOINT",
];

/// With what the commands for tasks and queues sign in.
pub(crate) const USER: &str = "PINPRIQ_USER";
pub(crate) const PASSWORD: &str = "PINPRIQ_PASSWORD";
pub(crate) const TOKEN: &str = "PINPRIQ_TOKEN";

/// Who we are.
pub(crate) struct Credentials {
    /// The user.
    pub(crate) user: String,
    /// Its password, or a token.
    pub(crate) secret: String,
    /// The variable that has the secret: [`PASSWORD`] or [`TOKEN`].
    pub(crate) variable: &'static str,
}

/// Returns who we are, if the environment says so. Secrets are no arguments, since other programs
/// of the machine can read those.
pub(crate) fn credentials() -> Option<Credentials> {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let known = |variable| Some((value(variable)?, variable));
    let (secret, variable) = known(TOKEN).or_else(|| known(PASSWORD))?;
    let user = value(USER).unwrap_or_else(|| "default".to_owned());
    Some(Credentials { user, secret, variable })
}

/// What Kubernetes sets in every container beside a service called pinpriq.
const OF_SERVICES: [&str; 2] = ["PINPRIQ_PORT", "PINPRIQ_SERVICE_"];

/// A variable that no command knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unknown {
    name: String,
    /// The variable of `serve` that is most like it, if one is like it.
    nearest: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, nearest } = self;
        write!(f, "the environment variable {name} is no setting and was ignored: ")?;
        match nearest {
            Some(nearest) => write!(f, "did you mean {nearest}?"),
            None => write!(f, "`pinpriq serve --help` lists all of them"),
        }
    }
}

/// Returns those of these variables that are named like settings and are none.
pub(crate) fn unknown(names: impl Iterator<Item = OsString>) -> Vec<Unknown> {
    let program = Cli::command();
    let settings = program.find_subcommand("serve").map(variables).unwrap_or_default();
    let mut known = variables(&program);
    known.extend(TOLD_TO_COMMANDS.into_iter().chain([USER, PASSWORD, TOKEN]).map(str::to_owned));
    let names: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let unknown =
        names.into_iter().filter(|name| name.starts_with(PREFIX) && !known.contains(name));
    let unknown = unknown.filter(|name| !OF_SERVICES.iter().any(|it| name.starts_with(it)));
    let unknown = unknown.filter(|name| !name.starts_with(HEADER));
    let describe = |name: String| {
        let nearest = nearest(&name, &settings).map(str::to_owned);
        Unknown { name, nearest }
    };
    unknown.map(describe).collect()
}

/// The variables that a command and those below it read.
fn variables(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    let below = command.get_subcommands().flat_map(variables);
    own.map(str::to_owned).chain(below).collect()
}

/// Returns the setting that takes the fewest changes to become `name`, unless it takes more than
/// one for each three letters.
fn nearest<'a>(name: &str, settings: &'a BTreeSet<String>) -> Option<&'a str> {
    let distances = settings.iter().map(|setting| (distance(name, setting), setting.as_str()));
    let (distance, nearest) = distances.min()?;
    let letters = name.len().saturating_sub(PREFIX.len());
    (distance <= letters.div_ceil(3)).then_some(nearest)
}

/// How many letters must be added, removed or replaced to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, its) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *its);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATING: &str = include_str!("../../../docs/operating.md");
    const CONTAINERS: [&str; 5] = [
        include_str!("../../../contrib/container/compose.yaml"),
        include_str!("../../../contrib/container/kubernetes.yaml"),
        include_str!("../../../contrib/cluster/compose-etcd.yaml"),
        include_str!("../../../contrib/cluster/compose-postgres.yaml"),
        include_str!("../../../contrib/cluster/kubernetes-nodes.yaml"),
    ];

    fn unknown_of(names: &[&str]) -> Vec<String> {
        unknown(names.iter().map(OsString::from)).iter().map(ToString::to_string).collect()
    }

    /// The variables that a text names.
    fn named_in(text: &str) -> Vec<&str> {
        let words = text.split(|it: char| !it.is_ascii_uppercase() && it != '_');
        words.filter(|word| word.starts_with(PREFIX) && *word != PREFIX).collect()
    }

    #[test]
    fn every_variable_of_the_documentation_is_known() {
        let names = named_in(OPERATING);
        assert!(names.len() > 20, "{names:?}");
        assert_eq!(unknown_of(&names), [""; 0]);
    }

    #[test]
    fn every_variable_of_the_files_for_containers_is_known() {
        for file in CONTAINERS {
            let names = named_in(file);
            assert!(names.len() >= 4, "{names:?}");
            assert_eq!(unknown_of(&names), [""; 0]);
        }
    }

    #[test]
    fn a_misspelt_variable_is_named_with_the_nearest_setting() {
        let table = [
            ("PINPRIQ_CONECTIONS_MAX", Some("PINPRIQ_CONNECTIONS_MAX")),
            ("PINPRIQ_DURABILTY", Some("PINPRIQ_DURABILITY")),
            ("PINPRIQ_DATA_", Some("PINPRIQ_DATA")),
            ("PINPRIQ_FRAME_TIMEOUT", Some("PINPRIQ_FRAME_TIMEOUT_MS")),
            ("PINPRIQ_ANYTHING", None),
            ("PINPRIQ_", None),
        ];
        for (name, nearest) in table {
            let [line] = &unknown_of(&[name])[..] else { panic!("{name} is known") };
            let remedy = match nearest {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => "`pinpriq serve --help` lists all of them".to_owned(),
            };
            assert!(line.contains(&format!(" {name} ")) && line.ends_with(&remedy), "{line}");
        }
    }

    #[test]
    fn other_variables_are_ignored() {
        assert_eq!(unknown_of(&["PATH", "pinpriq_data", "PINPRIQ", "MY_PINPRIQ_DATA"]), [""; 0]);
        let of_services = ["PINPRIQ_PORT_7251_TCP_ADDR", "PINPRIQ_PORT", "PINPRIQ_SERVICE_HOST"];
        assert_eq!(unknown_of(&of_services), [""; 0]);
    }

    #[test]
    fn the_distance_of_words_counts_changes() {
        let table = [("", "", 0), ("ab", "", 2), ("", "ab", 2), ("kitten", "sitting", 3)];
        for (one, other, expected) in table {
            assert_eq!(distance(one, other), expected, "{one}, {other}");
        }
    }
}
