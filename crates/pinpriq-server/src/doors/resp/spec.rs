//! What a command looks like: its words, its options, its documentation.
//!
//! A table of these (`table.rs`) drives the parser, `COMMAND DOCS` and the documentation page. What
//! a command does is in the function that its entry names.

use std::fmt::Write as _;

use super::call::Call;
use super::fault::Fault;
use super::options::Opt;

/// One command, or one subcommand of a command that has some.
pub(crate) struct Spec {
    /// The command word, in capitals.
    pub(crate) name: &'static str,
    /// The subcommand word, in capitals, if there is one.
    pub(crate) sub: Option<&'static str>,
    /// The chapter that it belongs to.
    pub(crate) group: Group,
    /// What it does, in one sentence without a full stop.
    pub(crate) summary: &'static str,
    /// What it replies.
    pub(crate) reply: &'static str,
    /// The words before the options.
    pub(crate) words: &'static [Word],
    /// The options, which may follow in any order.
    pub(crate) options: &'static [Opt],
    /// Who may use it, where users sign in.
    pub(crate) access: Access,
    /// Whether a subscribed connection that speaks RESP2 may use it.
    pub(crate) while_subscribed: bool,
    /// The function that carries it out.
    pub(crate) run: fn(&mut Call<'_, '_>) -> Result<(), Fault>,
}

/// Who may use a command of a server that has users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everybody, also before they sign in.
    Everybody,
    /// Every user: it touches no queue.
    Users,
    /// Users with rights on what it touches. `pinpriq_proto::rights` knows which.
    Rights,
    /// Users who may run the server.
    Admins,
}

/// The chapters of the command set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    Tasks,
    Push,
    FanOut,
    Queues,
    Schedules,
    Transactions,
    Connection,
    Cluster,
}

/// A word, or words, before the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// Exactly one.
    One(&'static str),
    /// Exactly one, which decides the shard: the name of a queue, topic or schedule. No other word
    /// comes before it.
    Key(&'static str),
    /// One that can be left out.
    Maybe(&'static str),
    /// One that can be left out, and decides the shard.
    MaybeKey(&'static str),
    /// One that can be left out even if another follows, and decides the shard.
    MaybeKeyFirst(&'static str),
    /// One or more, up to the first that looks like an option.
    Some(&'static str),
    /// Any number.
    Any(&'static str),
    /// One or more pairs of a setting and its value, which may be a queue of the same shard.
    Settings,
    /// The same, or nothing.
    AnySettings,
    /// The name of one queue, or `QUEUES n` and that many names.
    Queues,
    /// The same, or nothing.
    AnyQueues,
    /// A receipt, or `ID` and an id.
    Held,
    /// A number, or `ID` and an id.
    CountOrId,
    /// One receipt with options, several receipts without, or `ID` and an id with options.
    HeldOrMore,
}

impl Group {
    pub(crate) const ALL: [Self; 8] = [
        Self::Tasks,
        Self::Push,
        Self::FanOut,
        Self::Queues,
        Self::Schedules,
        Self::Transactions,
        Self::Connection,
        Self::Cluster,
    ];

    /// The name of the chapter.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks",
            Self::Push => "Push",
            Self::FanOut => "Fan-out",
            Self::Queues => "Queues",
            Self::Schedules => "Schedules",
            Self::Transactions => "Transactions",
            Self::Connection => "Connection",
            Self::Cluster => "Cluster",
        }
    }
}

impl Spec {
    /// Returns command and subcommand as they are written.
    pub(crate) fn full_name(&self) -> String {
        match self.sub {
            Some(sub) => format!("{} {sub}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// Returns the syntax, with placeholders.
    pub(crate) fn syntax(&self) -> String {
        let mut text = self.full_name();
        for word in self.words {
            let _ = match word {
                Word::One(name) | Word::Key(name) => write!(text, " {name}"),
                Word::Maybe(name) | Word::MaybeKey(name) | Word::MaybeKeyFirst(name) => {
                    write!(text, " [{name}]")
                }
                Word::Some(name) => write!(text, " {name} [{name} ...]"),
                Word::Any(name) => write!(text, " [{name} ...]"),
                Word::Settings => write!(text, " setting value [setting value ...]"),
                Word::AnySettings => write!(text, " [setting value ...]"),
                Word::Queues => write!(text, " (queue | QUEUES n queue [queue ...])"),
                Word::AnyQueues => write!(text, " [queue | QUEUES n queue [queue ...]]"),
                Word::Held => write!(text, " (receipt | ID id)"),
                Word::CountOrId => write!(text, " (n | ID id)"),
                Word::HeldOrMore => write!(text, " (receipt [receipt ...] | ID id)"),
            };
        }
        for option in self.options {
            let _ = match option.value {
                Some(value) => write!(text, " [{} {value}]", option.word),
                None => write!(text, " [{}]", option.word),
            };
        }
        text
    }

    /// Returns the arity as Redis counts it: the number of words, or minus the smallest number.
    pub(crate) fn arity(&self) -> i64 {
        let mut least = 1 + i64::from(self.sub.is_some());
        let mut exact = self.options.is_empty();
        for word in self.words {
            match word {
                Word::One(_) | Word::Key(_) => least += 1,
                Word::Maybe(_)
                | Word::MaybeKey(_)
                | Word::MaybeKeyFirst(_)
                | Word::Any(_)
                | Word::AnySettings
                | Word::AnyQueues => exact = false,
                Word::Some(_)
                | Word::Settings
                | Word::Queues
                | Word::Held
                | Word::CountOrId
                | Word::HeldOrMore => {
                    least += 1;
                    exact = false;
                }
            }
        }
        if exact { least } else { -least }
    }
}
