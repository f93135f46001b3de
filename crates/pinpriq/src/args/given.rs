//! The options of commands, from the server's table of commands, and the commands that have no
//! arguments of their own.
//!
//! A command's arguments are by hand where the command line does more than send it. What it sends
//! besides is told here by its entry in the table, so that a new option needs nothing else.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use pinpriq_proto::request::options::{Kind, Opt};
use pinpriq_proto::request::spec::{Group, Spec, Word};
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::wire::resp::Words;

use super::tasks::ClientArgs;
use super::values::{OrNone, STATES, count, number_in, time_from, time_or_none, wait};

/// Flags that are not the word in small letters, with the unit for a length of time.
const FLAGS: [(&str, &str); 4] =
    [("ONDUP", "on-dup"), ("ROOM", "room"), ("WINDOW", "window"), ("EVERY", "every")];

/// The shortest lengths of time, in milliseconds, where it is not 1.
const LEAST_MS: [(&str, u64); 3] = [("DELAY", 0), ("ROOM", 0), ("EVERY", 100)];

/// Options that need another: the command, the option, and which.
const NEEDS: [(&str, &str, &str); 5] = [
    ("PUT", "WINDOW", "UNIQUE"),
    ("PUT", "ONDUP", "UNIQUE"),
    ("PUT", "REASON", "buried"),
    ("LEASES", "MEMBER", "queue"),
    ("STATS", "MEMBER", "queue"),
];

/// Options that exclude each other or an argument: the command, the option, and which.
const EXCLUDES: [(&str, &str, &str); 6] = [
    ("PUT", "ID", "lines"),
    ("PUT", "UNIQUE", "lines"),
    ("PUT", "UNIQUE", "count"),
    ("PUBLISH", "TTL", "DEADLINE"),
    ("SCHEDULE SET", "AT", "CRON"),
    ("SCHEDULE SET", "ZONE", "EVERY"),
];

/// Further commands that have arguments of their own.
const WITHOUT_OPTIONS: [&str; 4] = ["LEAVE", "MEMBERS", "EXPORT", "IMPORT"];

/// A command whose options are taken from the table.
pub(crate) trait Of {
    /// Its words.
    const COMMAND: &'static str;
    /// The options that its arguments have by hand, or that it does not offer.
    const BY_HAND: &'static [&'static str];
}

/// Names commands for [`Given`], each with the options that it has by hand.
macro_rules! commands {
    ($($name:ident $command:literal [$($by_hand:literal),*],)*) => {
        /// The commands that have arguments of their own with options from the table.
        const WITH_OPTIONS: &[&str] = &[$($command),*];

        $(
            #[doc = concat!("`", $command, "`.")]
            #[derive(Debug)]
            pub(crate) struct $name;

            impl Of for $name {
                const COMMAND: &'static str = $command;
                const BY_HAND: &'static [&'static str] = &[$($by_hand),*];
            }
        )*
    };
}

commands! {
    Put "PUT" ["STATE"],
    Take "TAKE" ["COUNT", "WAIT", "TTR", "WITHMETA", "DONE"],
    Pop "POP" ["WITHMETA"],
    Peek "PEEK" ["COUNT", "WITHMETA"],
    Get "GET" [],
    Explain "EXPLAIN" [],
    Scan "SCAN" ["CURSOR", "COUNT", "WITHMETA"],
    Leases "LEASES" ["CURSOR", "COUNT"],
    Await "AWAIT" ["WAIT"],
    Ack "ACK" [],
    Release "RELEASE" [],
    Bury "BURY" [],
    Fail "FAIL" [],
    Touch "TOUCH" ["BY"],
    Dig "DIG" [],
    Plow "PLOW" [],
    Kill "KILL" [],
    Switch "SWITCH" [],
    Snatch "SNATCH" [],
    Restart "RESTART" [],
    Update "UPDATE" [],
    Move "MOVE" [],
    Redrive "REDRIVE" [],
    Stats "STATS" [],
    Publish "PUBLISH" [],
    Join "JOIN" [],
    Beat "BEAT" [],
    QueueSet "QUEUE SET" [],
    QueueShow "QUEUE SHOW" [],
    QueueTruncate "QUEUE TRUNCATE" [],
    QueuePause "QUEUE PAUSE" [],
    QueueResume "QUEUE RESUME" [],
    ScheduleSet "SCHEDULE SET" [],
}

/// The options of a command that were given, as they are sent.
#[derive(Debug)]
pub(crate) struct Given<C>(Vec<OsString>, PhantomData<C>);

impl<C> Given<C> {
    /// Adds the options to the words before them.
    pub(crate) fn after(&self, words: Words) -> Words {
        words.all(self.0.iter().map(|word| word.as_bytes()))
    }
}

impl<C: Of> Args for Given<C> {
    fn augment_args(command: Command) -> Command {
        options(C::COMMAND, C::BY_HAND)
            .fold(command, |command, option| command.arg(argument(C::COMMAND, option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: Of> FromArgMatches for Given<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = options(C::COMMAND, C::BY_HAND).flat_map(|option| sent(option, matches));
        Ok(Self(given.collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options of a command in the table, except these.
fn options(command: &str, but: &'static [&'static str]) -> impl Iterator<Item = &'static Opt> {
    let found = TABLE.iter().find(|spec| spec.full_name() == command);
    let options = found.map_or(&[][..], |spec| spec.options);
    options.iter().filter(move |option| !but.contains(&option.word))
}

/// The words of an option, if it was given.
fn sent(option: &'static Opt, matches: &ArgMatches) -> Vec<OsString> {
    let word = || OsString::from(option.word);
    match option.kind() {
        Kind::Flag if matches.get_flag(option.word) => vec![word()],
        Kind::Flag => Vec::new(),
        _ => match matches.get_one::<OsString>(option.word) {
            Some(value) => vec![word(), value.clone()],
            None => Vec::new(),
        },
    }
}

/// The argument of an option.
fn argument(command: &str, option: &'static Opt) -> Arg {
    let flag = FLAGS.iter().find(|(word, _)| *word == option.word).map(|(_, flag)| *flag);
    let small = option.word.to_ascii_lowercase();
    let least = LEAST_MS.iter().find(|(word, _)| *word == option.word).map_or(1, |(_, ms)| *ms);
    let arg = Arg::new(option.word).help(option.help);
    let named = |arg: Arg, name: &'static str| arg.value_name(name);
    let long = |arg: Arg| arg.long(flag.map_or_else(|| small.clone(), str::to_owned));
    let timed = |arg: Arg| match flag {
        Some(flag) => arg.long(flag),
        None => arg.long(format!("{small}-ms")).visible_alias(small.clone()),
    };
    let arg = match option.kind() {
        Kind::Flag => long(arg).action(ArgAction::SetTrue),
        Kind::Number => named(long(arg), "N").value_parser(sent_as(count)),
        Kind::NumberOrNone => {
            named(long(arg), "N|none").value_parser(sent_as(str::parse::<OrNone<i64>>))
        }
        Kind::Span => named(timed(arg), "TIME").value_parser(sent_as(time_from(least))),
        Kind::SpanOrNone => named(timed(arg), "TIME|none").value_parser(sent_as(time_or_none)),
        Kind::Wait => named(timed(arg), "TIME").value_parser(sent_as(wait)),
        Kind::Moment => {
            named(long(arg), "UNIX-MS").value_parser(sent_as(number_in::<u64>(0..=u64::MAX)))
        }
        Kind::Words(words) => {
            long(arg).value_name("WORD").value_parser(word_of(words)).ignore_case(true)
        }
        Kind::Pairs => named(long(arg), "WORDS").value_parser(clap::value_parser!(OsString)),
        Kind::Bytes(of) => {
            long(arg).value_name(of.to_uppercase()).value_parser(clap::value_parser!(OsString))
        }
    };
    let others = |rules: &'static [(&'static str, &'static str, &'static str)]| {
        let command = command.to_owned();
        rules
            .iter()
            .filter(move |(of, word, _)| *of == command && *word == option.word)
            .map(|(.., other)| *other)
    };
    let arg = others(&NEEDS).fold(arg, Arg::requires);
    let arg = others(&EXCLUDES).fold(arg, Arg::conflicts_with);
    // Texts of users may begin with anything, and numbers with a minus.
    let is_bytes = matches!(option.kind(), Kind::Flag | Kind::Bytes(_) | Kind::Words(_));
    arg.allow_hyphen_values(!is_bytes)
}

/// A parser whose value is what is sent.
fn sent_as<T: ToString, E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static>(
    parse: impl Fn(&str) -> Result<T, E> + Clone + Send + Sync + 'static,
) -> ValueParser {
    ValueParser::new(move |text: &str| {
        parse(text).map(|value| OsString::from(value.to_string())).map_err(Into::into)
    })
}

/// Reads one of the words, in any case. A state may have its name or its letter.
pub(super) fn word_of(words: &'static str) -> ValueParser {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
    let known = words.split('|').map(|word| match STATES.iter().find(|(one, ..)| *one == word) {
        Some((letter, name, help)) => PossibleValue::new(*name).alias(*letter).help(*help),
        None => PossibleValue::new(word.to_ascii_lowercase()),
    });
    PossibleValuesParser::new(known.collect::<Vec<_>>())
        .map(move |given| {
            let state = STATES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(&given));
            let word = state.map_or(given.as_str(), |(letter, ..)| letter);
            let word = words.split('|').find(|known| known.eq_ignore_ascii_case(word));
            OsString::from(word.unwrap_or_default())
        })
        .into()
}

/// A command of the table that has no arguments of its own here.
#[derive(Debug)]
pub(crate) struct Other {
    /// What is sent.
    pub(crate) words: Words,
    /// Where to.
    pub(crate) client: ClientArgs,
}

/// The name of a command of the table that has none above, for the shell.
fn shell_name(spec: &Spec) -> Option<String> {
    let groups = [Group::Tasks, Group::FanOut, Group::Queues];
    let has_own = WITH_OPTIONS.contains(&spec.name) || WITHOUT_OPTIONS.contains(&spec.name);
    let is_other = groups.contains(&spec.group) && spec.sub.is_none() && !has_own;
    is_other.then(|| spec.name.to_ascii_lowercase())
}

impl Subcommand for Other {
    fn augment_subcommands(command: Command) -> Command {
        TABLE.iter().fold(command, |command, spec| match shell_name(spec) {
            Some(name) => command.subcommand(subcommand(name, spec)),
            None => command,
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        TABLE.iter().filter_map(shell_name).any(|known| known == name)
    }
}

impl FromArgMatches for Other {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let named = |spec: &&Spec| shell_name(spec).is_some_and(|known| known == name);
        let spec = TABLE.iter().find(named).ok_or_else(missing)?;
        let words = spec.words.iter().zip(0_usize..).fold(Words::new(spec.name), |words, at| {
            let id = format!("{}", at.1);
            let given: Vec<&OsString> = matches.get_many(&id).unwrap_or_default().collect();
            let given = given.into_iter().map(|word| word.as_bytes());
            match (at.0, matches.try_get_one::<OsString>("of-id")) {
                (Word::Held | Word::HeldOrMore | Word::CountOrId, Ok(Some(id))) => {
                    words.bytes("ID").bytes(id.as_bytes())
                }
                (Word::Queues, _) => {
                    let given: Vec<&[u8]> = given.collect();
                    words.bytes("QUEUES").bytes(given.len().to_string()).all(given)
                }
                _ => words.all(given),
            }
        });
        let options = spec.options.iter().flat_map(|option| sent(option, matches));
        let options: Vec<OsString> = options.collect();
        let words = words.all(options.iter().map(|word| OsStr::as_bytes(word)));
        Ok(Self { words, client: ClientArgs::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A subcommand made of an entry of the table.
fn subcommand(name: String, spec: &'static Spec) -> Command {
    let mut command = Command::new(name);
    for (word, at) in spec.words.iter().zip(0_usize..) {
        let arg = Arg::new(at.to_string()).value_parser(clap::value_parser!(OsString));
        let (arg, what) = match *word {
            Word::One(of) | Word::Key(of) => (arg.required(true), of),
            Word::Maybe(of) | Word::MaybeKey(of) | Word::MaybeKeyFirst(of) => (arg, of),
            Word::Some(of) => (arg.required(true).num_args(1..), of),
            Word::Any(of) => (arg.num_args(0..), of),
            Word::Settings => (arg.required(true).num_args(1..), "settings"),
            Word::AnySettings => (arg.num_args(0..), "settings"),
            Word::Queues => (arg.required(true).num_args(1..), "queue"),
            Word::AnyQueues => (arg.num_args(0..), "queue"),
            Word::Held => (arg.required_unless_present("of-id"), "receipt"),
            Word::HeldOrMore => (arg.required_unless_present("of-id").num_args(1..), "receipt"),
            Word::CountOrId => (arg.required_unless_present("of-id"), "n"),
        };
        command = command.arg(arg.value_name(what.to_uppercase()).help(format!("The {what}")));
        if matches!(word, Word::Held | Word::HeldOrMore | Word::CountOrId) {
            let id = Arg::new("of-id").long("id").value_name("ID").conflicts_with(at.to_string());
            let id = id.value_parser(clap::value_parser!(OsString));
            command = command.arg(id.help("The task by its id"));
        }
    }
    let full = spec.full_name();
    let command =
        spec.options.iter().fold(command, |command, option| command.arg(argument(&full, option)));
    // The arguments bring a sentence of their own.
    let command = ClientArgs::augment_args(command).about(spec.summary).long_about(None);
    command.after_help(format!("It prints the reply: {}.", spec.reply))
}
