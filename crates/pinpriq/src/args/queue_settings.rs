//! The settings of a queue as options of the command line, one for each name in the server's table.
//!
//! Which values a server accepts beyond their form is not known here.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use pinpriq_server::queue_settings::{SETTINGS, Setting, SettingKind};

use super::values::{OrNone, number_in, time_from, time_or_none};

/// The settings that were given: names and values, as they are sent.
#[derive(Debug)]
pub(crate) struct GivenSettings(pub(crate) Vec<(&'static str, String)>);

impl Args for GivenSettings {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.into_iter().flat_map(options))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for GivenSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let names = SETTINGS.into_iter().flat_map(Setting::names);
        let given = names.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone())));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options of a setting, in the order of its names.
fn options(setting: &'static Setting) -> impl Iterator<Item = Arg> {
    let (value_name, unit, parser) = match (&setting.kind, setting.optional) {
        (SettingKind::Number, false) => ("N", "", number(setting)),
        (SettingKind::Number, true) => ("N|none", "", or_none()),
        (SettingKind::Span, false) => ("TIME", "", time(setting)),
        (SettingKind::Span, true) => ("TIME|none", ", or none", or_no_time()),
        (SettingKind::Rate, _) => {
            ("N/MS|none", ", such as 100/1000, or none", ValueParser::string())
        }
        (SettingKind::Name, _) => ("QUEUE|none", ", or none", ValueParser::string()),
        (SettingKind::Limits, _) => {
            ("LIMIT[,LIMIT…]|none", ", at most 4, or none", ValueParser::string())
        }
        (SettingKind::Words(_) | SettingKind::WordsOrSpan(..), _) => ("WORD", "", words(setting)),
    };
    let help = format!("{}{unit}{}", setting.help, setting.changes.note());
    let own = (setting.name, value_name, parser, help);
    let length = setting.length().map(|length| {
        let flag = setting.flags().next().unwrap_or_default();
        let help = format!("{}; goes with --{flag} {}", length.help, length.word.word);
        (length.name, "TIME", time(setting), help)
    });
    let all = std::iter::once(own).chain(length).zip(setting.flags());
    all.map(|((name, value_name, parser, help), flag)| {
        let arg = Arg::new(name).value_name(value_name).value_parser(parser).help(help);
        // A time can be given without naming a unit in the flag.
        let short = flag.strip_suffix("-ms").map(str::to_owned);
        let arg = short.into_iter().fold(arg, Arg::visible_alias);
        arg.long(flag).allow_hyphen_values(true)
    })
}

fn number(setting: &Setting) -> ValueParser {
    let parse = number_in::<u64>(setting.least..=setting.most);
    ValueParser::new(move |text: &str| parse(text).map(|number| number.to_string()))
}

fn or_none() -> ValueParser {
    ValueParser::new(|text: &str| text.parse::<OrNone<u64>>().map(|value| value.to_string()))
}

fn time(setting: &Setting) -> ValueParser {
    let parse = time_from(setting.least);
    ValueParser::new(move |text: &str| parse(text).map(|time| time.to_string()))
}

fn or_no_time() -> ValueParser {
    ValueParser::new(|text: &str| time_or_none(text).map(|value| value.to_string()))
}

fn words(setting: &'static Setting) -> ValueParser {
    let words = setting.words().map(|word| PossibleValue::new(word.word).help(word.help));
    PossibleValuesParser::new(words).map(|word| word.to_uppercase()).into()
}
