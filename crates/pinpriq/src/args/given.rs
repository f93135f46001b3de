//! The options of commands, from the server's table of commands.

use std::env::var_os;
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use pinpriq_proto::limits::{HEADER_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX};
use pinpriq_proto::request::options::{Opt, OptionKind};
use pinpriq_proto::request::table::TABLE;
use pinpriq_proto::wire::resp::Words;

use super::values::{OrNone, STATES, number_in, time_from, time_or_none, wait};
use crate::told::TRACE;

/// Flags that are not the word in small letters, with the unit for a length of time.
const FLAGS: [(&str, &str); 5] = [
    ("BACKOFFMAX", "backoff-max"),
    ("ONDUP", "on-dup"),
    ("ROOM", "room"),
    ("WINDOW", "window"),
    ("EVERY", "every"),
];

/// The shortest lengths of time, in milliseconds, where it is not 1.
const LEAST_MS: [(&str, u64); 3] = [("DELAY", 0), ("ROOM", 0), ("EVERY", 100)];

/// Options that need another: the command, the option, and which.
const NEEDS: [(&str, &str, &str); 6] = [
    ("PUT", "WINDOW", "UNIQUE"),
    ("PUT", "ONDUP", "UNIQUE"),
    ("PUT", "REASON", "buried"),
    ("PUT", "IF", "AFTER"),
    ("LEASES", "MEMBER", "queue"),
    ("STATS", "MEMBER", "queue"),
];

/// Options that exclude each other or an argument: the command, the option, and which.
const EXCLUDES: [(&str, &str, &str); 15] = [
    ("PUT", "ID", "lines"),
    ("PUT", "UNIQUE", "lines"),
    ("PUT", "UNIQUE", "count"),
    ("PUT", "HELD", "DELAY"),
    ("PUT", "HELD", "AT"),
    ("PUT", "HELD", "buried"),
    ("PUT", "AFTER", "AT"),
    ("PUT", "AFTER", "HELD"),
    ("PUT", "AFTER", "buried"),
    ("TAKE", "ID", "count"),
    ("TAKE", "ID", "wait_ms"),
    ("TAKE", "ID", "exec"),
    ("PUBLISH", "TTL", "DEADLINE"),
    ("SCHEDULE SET", "AT", "CRON"),
    ("SCHEDULE SET", "ZONE", "EVERY"),
];

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
    Publish "PUBLISH" [],
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
        let given = options(C::COMMAND, C::BY_HAND).flat_map(|option| match option.kind() {
            // What is put belongs to the trace of the program that puts it.
            OptionKind::Headers => {
                words_of_headers(option, with_trace(pairs(option, matches), |name| var_os(name)))
            }
            _ => sent(option, matches),
        });
        Ok(Self(given.collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options of a command in the table, except these.
fn options(command: &str, but: &'static [&'static str]) -> impl Iterator<Item = &'static Opt> {
    let found = TABLE.iter().find(|spec| spec.is_named(command));
    let options = found.map_or(&[][..], |spec| spec.options);
    options.iter().filter(move |option| !but.contains(&option.word))
}

/// The words of an option, if it was given.
pub(super) fn sent(option: &'static Opt, matches: &ArgMatches) -> Vec<OsString> {
    let word = || OsString::from(option.word);
    match option.kind() {
        OptionKind::Flag if matches.get_flag(option.word) => vec![word()],
        OptionKind::Flag => Vec::new(),
        OptionKind::Headers => words_of_headers(option, pairs(option, matches)),
        OptionKind::Names => {
            let given = matches.get_many::<OsString>(option.word).unwrap_or_default();
            counted(option, given.len(), given.cloned())
        }
        OptionKind::Two(_) => {
            let given = matches.get_many::<OsString>(option.word);
            given.map_or_else(Vec::new, |two| std::iter::once(word()).chain(two.cloned()).collect())
        }
        _ => match matches.get_one::<OsString>(option.word) {
            Some(value) => vec![word(), value.clone()],
            None => Vec::new(),
        },
    }
}

/// A name and a value.
type Pair = [OsString; 2];

/// The headers, of which each was given as `name=value`.
fn pairs(option: &'static Opt, matches: &ArgMatches) -> Vec<Pair> {
    let given = matches.get_many::<OsString>(option.word).into_iter().flatten();
    given.filter_map(|text| split(text)).collect()
}

/// The words of these headers, if there are any.
fn words_of_headers(option: &'static Opt, pairs: Vec<Pair>) -> Vec<OsString> {
    counted(option, pairs.len(), pairs.into_iter().flatten())
}

/// The words of an option that says how many of something follow, if any do.
fn counted(
    option: &'static Opt,
    count: usize,
    words: impl Iterator<Item = OsString>,
) -> Vec<OsString> {
    if count == 0 {
        return Vec::new();
    }
    let first = [OsString::from(option.word), OsString::from(count.to_string())];
    first.into_iter().chain(words).collect()
}

/// Adds the trace that the environment names, unless one was given, as far as it fits.
fn with_trace(mut pairs: Vec<Pair>, variable: impl Fn(&str) -> Option<OsString>) -> Vec<Pair> {
    if pairs.iter().any(|[name, _]| TRACE.iter().any(|(header, _)| name == header)) {
        return pairs;
    }
    let bytes = |pairs: &[Pair]| pairs.iter().flatten().map(|it| it.len()).sum::<usize>();
    for (header, name) in TRACE {
        let Some(value) = variable(name).filter(|it| !it.is_empty()) else { break };
        pairs.push([header.into(), value]);
        let [_, value] = &pairs[pairs.len() - 1];
        let fits = value.len() <= HEADER_BYTES_MAX && pairs.len() <= HEADERS_MAX;
        if !fits || bytes(&pairs) > HEADERS_BYTES_MAX {
            pairs.pop();
            break;
        }
    }
    pairs
}

/// Returns what stands before and after the first equals sign.
fn split(text: &OsStr) -> Option<Pair> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some([&bytes[..at], &bytes[at + 1..]].map(|part| OsStr::from_bytes(part).to_owned()))
}

/// The argument of an option.
pub(super) fn argument(command: &str, option: &'static Opt) -> Arg {
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
        OptionKind::Flag => long(arg).action(ArgAction::SetTrue),
        OptionKind::Number => {
            let parser = number_in::<u64>(option.least()..=u64::MAX);
            named(long(arg), "N").value_parser(sent_as(parser))
        }
        OptionKind::NumberOrNone => {
            named(long(arg), "N|none").value_parser(sent_as(str::parse::<OrNone<i64>>))
        }
        OptionKind::Span => named(timed(arg), "TIME").value_parser(sent_as(time_from(least))),
        OptionKind::SpanOrNone => {
            named(timed(arg), "TIME|none").value_parser(sent_as(time_or_none))
        }
        OptionKind::Wait => named(timed(arg), "TIME").value_parser(sent_as(wait)),
        OptionKind::Moment => {
            named(long(arg), "UNIX-MS").value_parser(sent_as(number_in::<u64>(0..=u64::MAX)))
        }
        OptionKind::Words(words) => {
            long(arg).value_name("WORD").value_parser(word_of(words)).ignore_case(true)
        }
        OptionKind::Headers => {
            let parser = OsStringValueParser::new().try_map(|text: OsString| {
                split(&text).map(|_| text).ok_or("a header is written NAME=VALUE")
            });
            let arg = arg.long("header").action(ArgAction::Append);
            named(arg, "NAME=VALUE").value_parser(parser)
        }
        OptionKind::Names => {
            let arg = long(arg).action(ArgAction::Append);
            named(arg, "BATCH").value_parser(clap::value_parser!(OsString))
        }
        OptionKind::Two(of) => {
            let both = of.to_uppercase().split(' ').map(str::to_owned).collect::<Vec<_>>();
            let arg = long(arg).num_args(2).value_names(both);
            arg.value_parser(clap::value_parser!(OsString))
        }
        OptionKind::Pairs => named(long(arg), "WORDS").value_parser(clap::value_parser!(OsString)),
        OptionKind::Bytes(of) => {
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
    let is_bytes = matches!(
        option.kind(),
        OptionKind::Flag | OptionKind::Bytes(_) | OptionKind::Names | OptionKind::Words(_)
    );
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::with_trace;

    /// What becomes of these headers where the environment has such a trace.
    fn traced(given: &[(&str, &str)], parent: &str, state: &str) -> Vec<[OsString; 2]> {
        let given = given.iter().map(|(name, value)| [name.into(), value.into()]);
        with_trace(given.collect(), |name| match name {
            "TRACEPARENT" if !parent.is_empty() => Some(parent.into()),
            "TRACESTATE" if !state.is_empty() => Some(state.into()),
            _ => None,
        })
    }

    #[test]
    fn a_put_belongs_to_the_trace_of_its_environment() {
        let pair = |name: &str, value: &str| [OsString::from(name), value.into()];
        assert_eq!(traced(&[("a", "1")], "", "s"), [pair("a", "1")]);
        assert_eq!(traced(&[], "00-p", ""), [pair("traceparent", "00-p")]);
        assert_eq!(
            traced(&[("a", "1")], "00-p", "s"),
            [pair("a", "1"), pair("traceparent", "00-p"), pair("tracestate", "s")]
        );
        assert_eq!(traced(&[("traceparent", "x")], "00-p", "s"), [pair("traceparent", "x")]);
    }

    #[test]
    fn a_trace_that_does_not_fit_is_left_out() {
        let names: Vec<String> = (0..16).map(|index| format!("h{index}")).collect();
        let full: Vec<_> = names.iter().map(|name| (&**name, "v")).collect();
        assert_eq!(traced(&full, "00-p", "s").len(), 16);
        assert_eq!(traced(&full[1..], "00-p", "s").len(), 16);
        assert_eq!(traced(&[], "00-p", &"s".repeat(1_025)).len(), 1);
        assert_eq!(traced(&[], &"p".repeat(1_025), "s").len(), 0);
        let large = "v".repeat(1_000);
        let large = [("a", &*large), ("b", &large), ("c", &large), ("d", &large)];
        assert_eq!(traced(&large, "00-p", &"s".repeat(100)).len(), 5);
    }
}
