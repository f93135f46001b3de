//! The command line is consistent, and its help and its documentation say what is so.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _, Parser as _};

use super::Cli;
use crate::config;
use crate::settings::Settings;

const OPERATING: &str = include_str!("../../../../docs/operating.md");

/// The flags of `serve`, the one that names the file first.
fn serve_flags() -> Vec<Arg> {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").expect("there is a serve");
    serve.get_arguments().cloned().collect()
}

/// The name of a flag, which is its key in the file.
fn name(flag: &Arg) -> &str {
    flag.get_long().expect("every setting is a long flag")
}

/// The first line of the help of a flag: what it is for, and its default.
fn purpose_and_default(flag: &Arg) -> (String, String) {
    let help = flag.get_help().expect("every flag has help").to_string();
    match help.split_once(" [default: ") {
        Some((purpose, rest)) => (purpose.to_owned(), rest.trim_end_matches(']').to_owned()),
        None => panic!("the help of {} names no default", name(flag)),
    }
}

/// Calls a function for each command, the one without a name first.
fn each_command(mut check: impl FnMut(&mut Command)) {
    fn visit(command: &mut Command, check: &mut impl FnMut(&mut Command)) {
        check(command);
        for command in command.get_subcommands_mut().filter(|it| it.get_name() != "help") {
            visit(command, check);
        }
    }
    // Wide enough for the examples, and the same wherever the test runs.
    let mut command = Cli::command().term_width(88).version("0");
    command.build();
    visit(&mut command, &mut check);
}

/// The table of all settings in `docs/operating.md`.
fn table_of_settings() -> String {
    let mut table = "| flag | environment | default | what |\n|---|---|---|---|\n".to_owned();
    for flag in serve_flags() {
        let value = flag.get_value_names().and_then(|names| names.first()).unwrap();
        let value = value.replace('|', "\\|");
        let variable = flag.get_env().unwrap().to_str().unwrap();
        let (purpose, default) = purpose_and_default(&flag);
        let name = name(&flag);
        writeln!(table, "| `--{name} {value}` | `{variable}` | {default} | {purpose} |").unwrap();
    }
    table
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn help_is_as_it_was_reviewed() {
    let mut text = String::new();
    each_command(|command| {
        let name = command.get_bin_name().unwrap_or("pinpriq").to_owned();
        if ["pinpriq", "pinpriq put"].contains(&name.as_str()) {
            writeln!(text, "$ {name} --help\n{}", command.render_long_help()).unwrap();
        }
    });
    // Empty lines within the help of a flag are indented, which no editor would leave alone.
    let text = text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n");
    expect_test::expect_file!["../../testdata/help.txt"].assert_eq(&text);
}

#[test]
fn help_explains_every_command_and_every_argument() {
    let mut commands = 0;
    each_command(|command| {
        let name = command.get_bin_name().unwrap_or("pinpriq").to_owned();
        let help = command.render_long_help().to_string();
        assert!(command.get_about().is_some(), "{name} is not explained");
        assert!(help.contains(&format!("Usage: {name}")), "{help}");
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            assert!(arg.get_help().is_some(), "{name}: {} is not explained", arg.get_id());
        }
        commands += 1;
    });
    assert!(commands > 60, "{commands}");
}

#[test]
fn variables_are_named_after_their_flags() {
    for flag in serve_flags() {
        let expected = format!("PINPRIQ_{}", name(&flag).to_uppercase().replace('-', "_"));
        assert_eq!(flag.get_env().and_then(|it| it.to_str()), Some(expected.as_str()));
    }
}

#[test]
fn the_file_knows_every_flag_but_the_one_that_names_it() {
    for flag in serve_flags() {
        let name = name(&flag);
        let refusal = toml::from_str::<Settings>(&format!("{name} = []")).unwrap_err().to_string();
        assert_eq!(refusal.contains("unknown field"), name == "config", "{refusal}");
    }
}

/// A setting changes nothing if it is given the default that the help names.
#[test]
fn the_help_names_the_defaults_of_the_server() {
    let plan = |flags: &[&str]| {
        let cli = Cli::try_parse_from(["pinpriq", "serve"].iter().chain(flags)).unwrap();
        let super::Command::Serve(serve) = cli.command else { panic!("this is no serve") };
        config::plan(serve.settings, None, 12 << 30).map_err(|error| error.to_string())
    };
    let in_words = [
        "none",
        "the name of the machine",
        "--announce and the port of --link",
        "1GiB on etcd, 64GiB on PostgreSQL",
        "a third of the memory",
        "a tenth of the disk",
    ];
    let places: [&[&str]; 4] = [
        &[],
        &["--archive", "s3://bucket/prefix"],
        &["--cluster", "etcd://127.0.0.1:1/test"],
        &["--resps", "127.0.0.1:7261", "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"],
    ];
    for flag in serve_flags() {
        let (_, default) = purpose_and_default(&flag);
        if in_words.contains(&default.as_str()) {
            continue;
        }
        let (flag, mut tried) = (format!("--{}", name(&flag)), 0);
        for place in places {
            let is_given = place.contains(&flag.as_str());
            let is_of_engine = ["--data", "--shards"].contains(&flag.as_str());
            if !(is_given || is_of_engine && place.contains(&"--cluster")) {
                let given = plan(&[place, &[&flag, &default]].concat());
                assert!(given.is_err() || given == plan(place), "{flag} {default}: {given:?}");
                tried += usize::from(given.is_ok());
            }
        }
        assert!(tried > 0, "{flag} {default} is refused");
    }
}

/// `UPDATE_EXPECT=1` prints the table again.
#[test]
fn the_documentation_has_the_table_of_all_settings() {
    let head = "| flag | environment | default | what |\n";
    let (before, rest) = OPERATING.split_once(head).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let page = format!("{before}{}\n{after}", table_of_settings());
    expect_test::expect_file!["../../../../docs/operating.md"].assert_eq(&page);
}

#[test]
fn the_documentation_has_the_exit_codes() {
    let rows = super::texts::EXIT_CODES.lines().skip(1).map(|line| line.trim().split_once("  "));
    for (code, meaning) in rows.map(|row| row.expect("a code and what it means")) {
        let row = format!("| {code} | {meaning} |\n");
        assert!(OPERATING.contains(&row), "docs/operating.md should have this row:\n{row}");
    }
}

#[test]
fn negative_and_fractional_values_are_refused_in_words() {
    fn check(command: &Command, line: &[String], checked: &mut usize) {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            let value_name = arg.get_value_names().and_then(|names| names.first());
            let Some(value_name) = value_name.map(clap::builder::Str::as_str) else { continue };
            for name in [long].into_iter().chain(arg.get_visible_aliases().unwrap_or_default()) {
                let values: &[&str] = match value_name {
                    "N" | "TIME" | "TIME|none" => &["-5", "1.5"],
                    "N|none" => &["1.5"],
                    _ => continue,
                };
                for value in values {
                    let given = [format!("--{name}"), (*value).to_owned()];
                    let error = Cli::try_parse_from(line.iter().chain(&given)).unwrap_err();
                    let error = error.to_string();
                    assert!(error.contains(&format!("`{value}` ")), "--{name} {value}: {error}");
                    *checked += 1;
                }
            }
        }
        for command in command.get_subcommands().filter(|it| it.get_name() != "serve") {
            let line = [line, &[command.get_name().to_owned()]].concat();
            check(command, &line, checked);
        }
    }
    let mut checked = 0;
    check(&Cli::command(), &["pinpriq".to_owned()], &mut checked);
    assert!(checked > 150, "{checked}");
}

#[test]
fn values_out_of_range_are_refused() {
    let table = [
        (
            vec!["wire", "push", "q", "p", "--priority", "256"],
            "`256` is not a whole number from 0 to 255",
        ),
        (vec!["wire", "push", "q", "p", "--ttl-ms", "0"], "`0` is not from 1 ms to 65535 ms"),
        (
            vec!["wire", "push", "q", "p", "--ttl-ms", "65536"],
            "`65536` is not from 1 ms to 65535 ms",
        ),
        (vec!["wire", "push", "q", "p", "--count", "0"], "`0` is not a whole number of at least 1"),
        (vec!["wire", "pop", "q", "--count", "0"], "`0` is not a whole number of at least 1"),
        (vec!["wire", "subscribe"], "<QUEUE>..."),
        (vec!["wire", "subscribe", "q", "--framing", "no"], "[possible values: counted, bare]"),
        (vec!["put", "q", "--delay-ms", "-5"], "`-5` is negative"),
        (vec!["put", "q", "--delay-ms", "1.5"], "`1.5` has a fraction"),
        (vec!["bench", "--size", "65MiB"], "`65MiB` is more than 64MiB"),
        (vec!["bench", "--size", "-1"], "`-1` is negative"),
        (vec!["reshard", "d", "n"], "--shards <N>"),
        (vec!["reshard", "d", "n", "--shards", "0"], "`0` is not a whole number from 1 to 64"),
        (vec!["reshard", "d", "n", "--shards", "65"], "`65` is not a whole number from 1 to 64"),
        (vec!["completions", "tcl"], "[possible values: bash"),
    ];
    for (line, words) in table {
        let error = Cli::try_parse_from(["pinpriq"].iter().chain(&line)).expect_err(words);
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(words), "{line:?}: {error}");
    }
}
