//! The arguments of the commands that change the file of users.
//!
//! A password is no argument: other programs of the machine could see it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pinpriq_server::users::{Assignment, Name, Rule};

use super::texts::after;

/// The exit codes of all of these commands.
const CHANGING: &str = "\
0  done
1  the file could not be read or written
2  wrong usage, a file that cannot be used, or no such user or token";

/// What can be done about users.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user, and ask for a password.
    ///
    /// The password is asked for twice in a terminal, and not shown. Otherwise it is one line of
    /// stdin. The file keeps only a hash of it. A file that is not there is made.
    #[command(after_help = after(
        "pinpriq user add orders 'put:orders.*' 'look:*' --users users.toml
        pinpriq user add ops admin 'look:*' < password.txt
        pinpriq user add anonymous put:jobs --no-password",
        CHANGING,
    ))]
    Add(AddArgs),
    /// Ask for another password of a user.
    ///
    /// It is asked for twice in a terminal, and not shown. Otherwise it is one line of stdin. The
    /// file keeps only a hash of it.
    #[command(after_help = after("pinpriq user passwd orders --users users.toml", CHANGING))]
    Passwd(NameArgs),
    /// Replace all rules of a user.
    ///
    /// Rules that are not named are gone. Comments within the old list of rules are gone too.
    #[command(after_help = after(
        "pinpriq user rights orders 'put:orders.*' 'take:orders.*' 'look:*'
        pinpriq user rights orders --none",
        CHANGING,
    ))]
    Rights(RightsArgs),
    /// Set limits of a user, or take them away.
    ///
    /// The limits are `max_connections`, `max_bytes_in_flight`, `max_tasks`,
    /// `max_requests_per_second`, and `share`, which all tasks have that the user puts. Those that
    /// are not named stay as they are.
    #[command(after_help = after(
        "pinpriq user limits orders max_tasks=100000 max_connections=none
        pinpriq user limits acme share=acme",
        CHANGING,
    ))]
    Limits(LimitsArgs),
    /// Add, list and revoke tokens of a user.
    ///
    /// A token is for a program: it stands for the user, and there is no password to type. It is
    /// printed to stdout when it is added, and never again: the file keeps only its SHA-256.
    #[command(after_help = after(
        "pinpriq user token orders add ci --users users.toml
        pinpriq user token orders list
        pinpriq user token orders revoke ci",
        CHANGING,
    ))]
    Token(TokenArgs),
    /// Print a table of all users
    #[command(after_help = after(
        "pinpriq user list --users users.toml
        pinpriq user list --json | jq -r 'select(.password) | .name'",
        CHANGING,
    ))]
    List(ListArgs),
    /// Remove a user, and tell what the user had
    #[command(after_help = after("pinpriq user remove orders --users users.toml", CHANGING))]
    Remove(NameArgs),
}

/// The file.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file of users
    #[arg(long, env = "PINPRIQ_USERS", hide_env_values = true, value_name = "FILE")]
    pub(crate) users: PathBuf,
}

/// A user, and nothing else.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The name of the user
    pub(crate) name: Name,

    #[command(flatten)]
    pub(crate) file: FileArgs,
}

/// The arguments of `user add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The name of the user: letters, digits, `_`, `.`, `@` and `-`
    pub(crate) name: Name,

    /// What the user may do, such as put:orders.* or admin
    #[arg(value_name = "RULE")]
    pub(crate) rules: Vec<Rule>,

    /// Ask for no password: the user has tokens, or needs neither
    #[arg(long)]
    pub(crate) no_password: bool,

    #[command(flatten)]
    pub(crate) file: FileArgs,
}

/// The arguments of `user rights`.
#[derive(Debug, Args)]
pub(crate) struct RightsArgs {
    /// The name of the user
    pub(crate) name: Name,

    /// All that the user may do from now on, such as put:orders.* or admin
    #[arg(value_name = "RULE", required_unless_present = "none")]
    pub(crate) rules: Vec<Rule>,

    /// Leave the user no rights
    #[arg(long, conflicts_with = "rules")]
    pub(crate) none: bool,

    #[command(flatten)]
    pub(crate) file: FileArgs,
}

/// The arguments of `user limits`.
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// The name of the user
    pub(crate) name: Name,

    /// A limit with a number, a share with its name, or either with none to take it away
    #[arg(value_name = "LIMIT=N", required = true)]
    pub(crate) limits: Vec<Assignment>,

    #[command(flatten)]
    pub(crate) file: FileArgs,
}

/// What can be done about tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TokenAction {
    /// Make a token, and print it
    Add,
    /// Print the names of all tokens
    List,
    /// Take a token away
    Revoke,
}

/// The arguments of `user token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The name of the user
    pub(crate) name: Name,

    /// What to do
    pub(crate) action: TokenAction,

    /// The name of the token: letters, digits, `_`, `.`, `@` and `-`
    #[arg(required_if_eq_any([("action", "add"), ("action", "revoke")]))]
    pub(crate) token: Option<Name>,

    #[command(flatten)]
    pub(crate) file: FileArgs,
}

/// The arguments of `user list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// Print JSON objects, one in each line
    #[arg(long)]
    pub(crate) json: bool,
}
