//! What a command looks like: its words, its options, its documentation.
//!
//! A table of these (`table.rs`) drives the parser, `COMMAND DOCS` and the documentation page. What
//! a command does is up to the doors.

use std::fmt::Write as _;

use super::form::Form;
use super::options::{Opt, WITHMETA};

/// One command, or one subcommand of a command that has some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub struct Spec {
    /// The command word, in capitals.
    pub name: &'static str,
    /// The subcommand word, in capitals, if there is one.
    pub sub: Option<&'static str>,
    /// The chapter that it belongs to.
    pub group: Group,
    /// What it does, in one sentence without a full stop.
    pub summary: &'static str,
    /// What it replies.
    pub reply: &'static str,
    /// The words before the options.
    pub words: &'static [Word],
    /// The options, which may follow in any order.
    pub options: &'static [Opt],
    /// Who may use it, where users sign in.
    pub access: Access,
    /// Whether a subscribed connection that speaks RESP2 may use it.
    pub while_subscribed: bool,
    /// Whether it can be a step of a transaction, at least with some of its options.
    pub is_step: bool,
    /// Whether it stands behind the other commands of its chapter.
    pub(crate) is_last: bool,
    /// Whether it has only some of the options of its fields.
    is_narrowed: bool,
    /// How HTTP answers on the usual path of the command, if it has that: a verb behind the name of
    /// what it acts on.
    pub http: Option<Form>,
}

/// Who may use a command of a server that has users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Everybody, also before they sign in.
    Everybody,
    /// Every user: it touches no queue.
    Users,
    /// Users with rights on what it touches. The facts on its declaration say which.
    Rights,
    /// Users who may run the server.
    Admins,
}

worded! {
    /// The chapters of the command set.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Group {
        /// Single tasks.
        Tasks => "Tasks",
        /// Deliveries without asking for each.
        Push => "Push",
        /// Topics and their members.
        FanOut => "Fan-out",
        /// Queues as a whole.
        Queues => "Queues",
        /// Tasks that come again and again.
        Schedules => "Schedules",
        /// Tasks that are followed together.
        Batches => "Batches",
        /// Several commands at one moment.
        Transactions => "Transactions",
        /// The connection, and the server.
        Connection => "Connection",
        /// The nodes.
        Cluster => "Cluster",
    }

    /// The name of the chapter.
    fn name -> &'static str
}

/// A word, or words, before the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
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

impl Word {
    /// Stands where a list has no word yet.
    pub(crate) const NONE: Self = Self::Held;
}

/// Whether an option is one of these.
const fn has(options: &[Opt], option: Opt) -> bool {
    let mut at = 0;
    while at < options.len() && options[at].letters != option.letters {
        at += 1;
    }
    at < options.len()
}

impl Spec {
    /// Returns a command without words and options, for users with rights on what it touches.
    #[must_use]
    pub const fn new(
        name: &'static str,
        group: Group,
        summary: &'static str,
        reply: &'static str,
    ) -> Self {
        Self {
            name,
            sub: None,
            group,
            summary,
            reply,
            words: &[],
            options: &[],
            access: Access::Rights,
            while_subscribed: false,
            is_step: false,
            is_last: false,
            is_narrowed: false,
            http: None,
        }
    }

    /// Makes it a subcommand.
    #[must_use]
    pub const fn sub(self, word: &'static str) -> Self {
        Self { sub: Some(word), ..self }
    }

    /// Sets the words before the options.
    #[must_use]
    pub const fn words(self, words: &'static [Word]) -> Self {
        Self { words, ..self }
    }

    /// Sets the options.
    #[must_use]
    pub const fn options(self, options: &'static [Opt]) -> Self {
        Self { options, ..self }
    }

    /// Leaves it only these of the options of its fields.
    #[must_use]
    pub const fn only(self, options: &'static [Opt]) -> Self {
        Self { options, is_narrowed: true, ..self }
    }

    /// Gives it the words and options of its fields. It may list the options in another order, and
    /// add what is about the reply.
    #[must_use]
    pub(crate) const fn or(self, words: &'static [Word], options: &'static [Opt]) -> Self {
        if self.options.is_empty() && !self.is_narrowed {
            return Self { words, options, ..self };
        }
        let mut at = 0;
        while at < self.options.len() {
            let is_of_reply = self.options[at].letters == WITHMETA.letters;
            assert!(is_of_reply || has(options, self.options[at]), "no field has that option");
            at += 1;
        }
        at = 0;
        while at < options.len() && !self.is_narrowed {
            assert!(has(self.options, options[at]), "the option of a field is not listed");
            at += 1;
        }
        Self { words, ..self }
    }

    /// Puts it at the end of its chapter.
    #[must_use]
    pub const fn last(self) -> Self {
        Self { is_last: true, ..self }
    }

    /// Sets who may use it.
    #[must_use]
    pub const fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Allows it to a subscribed connection that speaks RESP2.
    #[must_use]
    pub const fn while_subscribed(self) -> Self {
        Self { while_subscribed: true, ..self }
    }

    /// Gives it the usual path of HTTP, with this form of answer.
    #[must_use]
    pub const fn http(self, form: Form) -> Self {
        Self { http: Some(form), ..self }
    }

    /// Sets whether it can be a step of a transaction.
    #[must_use]
    pub(crate) const fn step(self, is_step: bool) -> Self {
        Self { is_step, ..self }
    }

    /// Returns command and subcommand as they are written.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.sub {
            Some(sub) => format!("{} {sub}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// Whether this is what [`Spec::full_name`] returns.
    #[must_use]
    pub fn is_named(&self, full: &str) -> bool {
        let rest = full.strip_prefix(self.name);
        match self.sub {
            Some(sub) => rest.and_then(|rest| rest.strip_prefix(' ')) == Some(sub),
            None => rest == Some(""),
        }
    }

    /// Returns the syntax, with placeholders.
    #[must_use]
    pub fn syntax(&self) -> String {
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
    #[must_use]
    pub fn arity(&self) -> i64 {
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
