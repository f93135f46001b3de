//! The commands of the server as commands of the shell, from the server's table.
//!
//! What a command prints, and what people should know besides, is in `more.rs`. A new command of
//! the table needs nothing there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand,
};
use pinpriq_proto::request::options::{BULK_CHANGES, DRY};
use pinpriq_proto::request::spec::{Group, Spec, Word};
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::wire::resp::Words;

use super::given::{argument, sent, word_of};
use super::more::{MORE, More, Prints};
use super::queue_settings::GivenSettings;
use super::tasks::ClientArgs;

/// Commands that the shell has by hand, since they do more than ask.
const BY_HAND: [&str; 5] = ["PUT", "TAKE", "PUBLISH", "EXPORT", "IMPORT"];

/// The words that have subcommands, and what they are about.
const PARENTS: [(&str, &str); 4] = [
    ("queue", "Make, set up, list, empty, remove and pause queues"),
    ("schedule", "Put tasks into queues again and again, by schedules"),
    ("batch", "Follow tasks together: make, close, list, await, cancel, forget batches"),
    ("limit", "Make, show, list and remove limits that several queues use together"),
];

/// Options that are not offered: the program gives them.
const OWN: [&str; 2] = ["CURSOR", "WITHMETA"];

/// Values of options that are not given.
const DEFAULTS: [(&str, &str, &str); 9] = [
    ("BULK", "COUNT", "250"),
    ("PEEK", "COUNT", "1"),
    ("AWAIT", "WAIT", "-1"),
    ("BATCH AWAIT", "WAIT", "-1"),
    ("SCAN", "COUNT", "100"),
    ("QUEUE LIST", "COUNT", "1000"),
    ("SCHEDULE LIST", "COUNT", "1000"),
    ("BATCH LIST", "COUNT", "1000"),
    ("LIMIT LIST", "COUNT", "1000"),
];

/// The flag without which many changes are asked about.
const SURE: &str = "yes";

/// The argument with the id of a task, instead of a receipt or a number.
const OF_ID: &str = "of-id";

/// A command of the table with its arguments.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What is known of it besides.
    pub(crate) more: &'static More,
    /// Where to.
    pub(crate) client: ClientArgs,
    /// The receipts or the id that it is about, for each of which it is sent.
    pub(crate) held: Option<(&'static str, Vec<OsString>)>,
    /// Its payload, if it has one, or `-` for stdin.
    pub(crate) payload: Option<OsString>,
    /// Whether it replies page by page.
    pub(crate) is_paged: bool,
    /// Whether it is about several queues, so that tasks are printed with theirs.
    pub(crate) is_about_several: bool,
    /// What comes before many changes.
    pub(crate) caution: Caution,
    words: Words,
    options: Vec<OsString>,
}

/// What comes before many changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caution {
    /// They are counted, and the user is asked.
    Ask,
    /// Nothing: the user is sure.
    Sure,
    /// They are counted, and are not made.
    Dry,
}

impl Asked {
    /// The command, with what it is sent for.
    pub(crate) fn words(&self, one: Option<&[u8]>) -> Words {
        self.words.clone().all(one).all(self.options.iter().map(|word| word.as_bytes()))
    }

    /// The command, for the page at `cursor`.
    pub(crate) fn page(&self, cursor: &[u8]) -> Words {
        self.words(None).bytes("CURSOR").bytes(cursor)
    }
}

/// The commands that are made of the table.
fn commands() -> impl Iterator<Item = &'static Spec> {
    let groups = [Group::Tasks, Group::FanOut, Group::Queues, Group::Schedules, Group::Batches];
    let is_made = move |spec: &&Spec| groups.contains(&spec.group) && !BY_HAND.contains(&spec.name);
    TABLE.iter().filter(is_made)
}

impl Subcommand for Asked {
    fn augment_subcommands(command: Command) -> Command {
        let command =
            commands().filter(|spec| spec.sub.is_none()).fold(command, |command, spec| {
                command.subcommand(subcommand(spec.name.to_ascii_lowercase(), spec))
            });
        PARENTS.into_iter().fold(command, |command, (name, about)| {
            let parent = Command::new(name).about(about).subcommand_required(true);
            let subs = commands().filter(|spec| spec.name.eq_ignore_ascii_case(name));
            let subs = subs.filter_map(|spec| Some((spec.sub?.to_ascii_lowercase(), spec)));
            let subs = subs.map(|(name, spec)| subcommand(name, spec));
            command.subcommand(parent.arg_required_else_help(true).subcommands(subs))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        commands().any(|spec| spec.name.eq_ignore_ascii_case(name))
    }
}

impl FromArgMatches for Asked {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(ErrorKind::MissingSubcommand);
        let (name, mut matches) = matches.subcommand().ok_or_else(missing)?;
        let mut full = name.to_ascii_uppercase();
        if let Some((sub, below)) = matches.subcommand() {
            full = format!("{full} {}", sub.to_ascii_uppercase());
            matches = below;
        }
        let spec = commands().find(|spec| spec.is_named(&full)).ok_or_else(missing)?;
        Self::of(spec, matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Asked {
    fn of(spec: &'static Spec, matches: &ArgMatches) -> Result<Self, Error> {
        let client = ClientArgs::from_arg_matches(matches)?;
        let (mut held, mut payload, mut is_about_several) = (None, None, false);
        let mut words = Words::new(&spec.full_name());
        for word in spec.words {
            let given: Vec<OsString> = match word {
                Word::Settings | Word::AnySettings => Vec::new(),
                _ => matches.get_many(name_of(*word)).unwrap_or_default().cloned().collect(),
            };
            let id = matches.try_get_one::<OsString>(OF_ID).ok().flatten();
            words = match (word, id) {
                (Word::Held | Word::HeldOrMore, Some(id)) => {
                    held = Some(("id", vec![id.clone()]));
                    words.bytes("ID")
                }
                (Word::Held | Word::HeldOrMore, None) => {
                    held = Some(("receipt", given));
                    words
                }
                (Word::CountOrId, Some(id)) => words.bytes("ID").bytes(id.as_bytes()),
                (Word::One("payload"), _) => {
                    payload = Some(given.into_iter().next().unwrap_or_else(|| "-".into()));
                    words
                }
                (Word::Settings | Word::AnySettings, _) => {
                    let GivenSettings(given) = GivenSettings::from_arg_matches(matches)?;
                    let pairs = given.into_iter();
                    pairs.fold(words, |words, (name, value)| words.bytes(name).bytes(value))
                }
                (Word::Queues | Word::AnyQueues, _) if !given.is_empty() => {
                    is_about_several = given.len() > 1;
                    let counted = words.bytes("QUEUES").bytes(given.len().to_string());
                    counted.all(given.iter().map(|name| name.as_bytes()))
                }
                _ => words.all(given.iter().map(|word| word.as_bytes())),
            };
        }
        let mut options = Vec::new();
        for option in spec.options {
            if !OWN.contains(&option.word) {
                options.extend(sent(option, matches));
            } else if option.word == "WITHMETA" && client.json {
                options.push(option.word.into());
            }
        }
        let is_given =
            |flag| matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|given| *given);
        let caution = match (is_given(DRY.word), is_given(SURE)) {
            (true, _) => Caution::Dry,
            (false, true) => Caution::Sure,
            (false, false) => Caution::Ask,
        };
        let asked = Self {
            more: more(spec),
            client,
            held,
            payload,
            is_paged: is_paged(spec),
            is_about_several,
            caution,
            words,
            options,
        };
        Ok(asked)
    }
}

fn is_paged(spec: &Spec) -> bool {
    spec.options.iter().any(|option| option.word == "CURSOR")
}

/// What is known of a command besides its entry in the table.
fn more(spec: &Spec) -> &'static More {
    MORE.iter().find(|more| spec.is_named(more.command)).unwrap_or(&More::UNKNOWN)
}

/// A subcommand made of an entry of the table.
fn subcommand(name: String, spec: &'static Spec) -> Command {
    let (full, more) = (spec.full_name(), more(spec));
    let mut command = spec.words.iter().fold(Command::new(name), |command, word| match word {
        Word::Settings | Word::AnySettings => GivenSettings::augment_args(command),
        _ => command.arg(word_argument(*word)),
    });
    for word in spec.words {
        if matches!(word, Word::Held | Word::HeldOrMore | Word::CountOrId) {
            let id = Arg::new(OF_ID).long("id").value_name("ID").conflicts_with(name_of(*word));
            let id = id.value_parser(clap::value_parser!(OsString)).help("The task by its id");
            // Only a ready task has an id and no receipt, and its time to live is what moves.
            command = command.arg(if full == "TOUCH" { id.requires("BY") } else { id });
        }
    }
    for option in spec.options.iter().filter(|option| !OWN.contains(&option.word)) {
        let mut arg = argument(&full, option);
        if option.word == "COUNT" && is_paged(spec) {
            arg = arg.long("page").help("Ask for this many at a time");
        }
        let default = DEFAULTS.iter().find(|(of, word, _)| *of == full && *word == option.word);
        command = command.arg(default.into_iter().fold(arg, |arg, row| arg.default_value(row.2)));
    }
    if full == "SCHEDULE SET" {
        command = command.group(ArgGroup::new("when").args(["EVERY", "CRON"]).required(true));
    }
    if full == "BULK" {
        let changes = BULK_CHANGES.map(|change| change.word);
        command = command.group(ArgGroup::new("change").args(changes).required(true));
        let sure = Arg::new(SURE).long(SURE).action(ArgAction::SetTrue);
        command = command.arg(sure.help("Change many tasks without a question"));
    }
    let starts_with_optional = matches!(spec.words, [Word::MaybeKeyFirst(_), ..]);
    // The arguments of the client bring a sentence of their own.
    let command = ClientArgs::augment_args(command).about(spec.summary);
    let command = command.allow_missing_positional(starts_with_optional);
    let note = if more.note.is_empty() { "" } else { "\n\n" };
    let command = command.long_about(format!("{}.{note}{}", spec.summary, more.note));
    command.after_help(after_help(spec, more))
}

/// Examples, the reply and the exit codes.
fn after_help(spec: &Spec, more: &More) -> String {
    let examples = more.examples.iter().map(|line| format!("  pinpriq {line}\n"));
    let examples: String = examples.collect();
    let examples = if examples.is_empty() { examples } else { format!("Examples:\n{examples}\n") };
    let nothing = if more.prints.can_be_nothing() { "  4  there was nothing\n" } else { "" };
    let outcomes = match more.prints {
        Prints::Outcome => "\n  10 to 18  how the task ended otherwise: see `pinpriq --help`",
        Prints::BatchOutcome => "\n  13  the time was up before the batch was done",
        _ => "",
    };
    format!(
        "{examples}The reply: {}.\n\nExit codes:\n  0  done\n  1  no connection, or it was lost\n  \
         2  wrong usage\n{nothing}  5  the server refused; stderr says why{outcomes}",
        spec.reply
    )
}

/// What the argument of a word is called.
fn name_of(word: Word) -> &'static str {
    match word {
        Word::One(of) | Word::Key(of) if of.contains('|') => "state",
        Word::Maybe(of) if of.contains('|') => "side",
        Word::One(of)
        | Word::Key(of)
        | Word::Maybe(of)
        | Word::MaybeKey(of)
        | Word::MaybeKeyFirst(of)
        | Word::Some(of)
        | Word::Any(of) => of,
        Word::Settings | Word::AnySettings => "settings",
        Word::Queues | Word::AnyQueues => "queue",
        Word::Held | Word::HeldOrMore => "receipt",
        Word::CountOrId => "n",
    }
}

/// The argument of a word.
fn word_argument(word: Word) -> Arg {
    let name = name_of(word);
    let help = match name {
        "queue" | "topic" | "member" | "schedule" | "batch" => {
            format!("The name of the {name}, any bytes")
        }
        "limit" => "The name of the limit: any bytes without a comma".to_owned(),
        "from" => "The name of the queue that the tasks leave, any bytes".to_owned(),
        "to" => "The name of the queue that they enter, any bytes".to_owned(),
        "id" => "The id of the task".to_owned(),
        "receipt" => "What take printed".to_owned(),
        "payload" => "The payload; read from stdin if it is left out or `-`".to_owned(),
        "state" => "The new state".to_owned(),
        "side" => "One side only; without it both".to_owned(),
        "n" => "How many".to_owned(),
        other => format!("The {other}"),
    };
    let any = clap::value_parser!(OsString);
    let arg = Arg::new(name).value_name(name.to_uppercase()).value_parser(any).help(help);
    match word {
        Word::One(of) if of.contains('|') => {
            arg.long("to").required(true).value_parser(word_of(of)).ignore_case(true)
        }
        Word::Maybe(of) if of.contains('|') => arg.value_parser(word_of(of)).ignore_case(true),
        Word::One("payload") | Word::Maybe(_) | Word::MaybeKey(_) | Word::MaybeKeyFirst(_) => arg,
        Word::One(_) | Word::Key(_) => arg.required(true),
        Word::Some(_) | Word::Queues => arg.required(true).num_args(1..),
        Word::Any(_) | Word::AnyQueues | Word::Settings | Word::AnySettings => arg.num_args(0..),
        Word::Held | Word::HeldOrMore => arg.required_unless_present(OF_ID).num_args(1..),
        Word::CountOrId => arg.required_unless_present(OF_ID),
    }
}
