//! The command line is consistent, and its help and its documentation say what is so.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory as _, Parser as _};
use pinpriq_server::config::Config;

use super::Cli;
use crate::settings::Settings;
use crate::units;

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

/// A time as a setting has it.
fn ms_or_off(time: Option<Duration>) -> String {
    time.map_or_else(|| "off".to_owned(), |time| time.as_millis().to_string())
}

/// What the server does when a setting is not given, in the words of the help.
fn default_of(setting: &str) -> String {
    let config = Config::default();
    let options = config.pinpriq_options;
    match setting {
        "config" | "memory-limit" | "cluster" | "http-cors" | "http-host" | "audit" | "users"
        | "password-file" | "tls-cert" | "tls-key" | "tls-client-ca" => "none".to_owned(),
        "data" => config.data.display().to_string(),
        "pinpriq" | "resp" | "http" => {
            let listener = config.listeners.iter().find(|it| it.door.word() == setting);
            listener.map_or_else(|| "off".to_owned(), |it| it.address.to_string())
        }
        "metrics-queues" => config.http.metrics_queues.to_string(),
        "durability" => format!("{:?}", config.durability).to_lowercase(),
        "shards" => config.shards.to_string(),
        "node" => "the name of the machine".to_owned(),
        "announce" => "127.0.0.1".to_owned(),
        "link" => "127.0.0.1:7253".to_owned(),
        "announce-link" => "--announce and the port of --link".to_owned(),
        "session-ttl" => "5000".to_owned(),
        "cluster-bytes-max" => "1GiB on etcd, 64GiB on PostgreSQL".to_owned(),
        "pinpriq-framing" => format!("{:?}", options.framing).to_lowercase(),
        "pinpriq-ttl-zero" => format!("{:?}", options.ttl_zero).to_lowercase(),
        "pinpriq-requeue" => if options.requeue { "on" } else { "off" }.to_owned(),
        "connections-max" => config.limits.connections_max.to_string(),
        "payload-bytes-max" => config.limits.payload_bytes_max.to_string(),
        "task-bytes-max" => "a third of the memory".to_owned(),
        "ignore-data" | "insecure-open" | "resp-cluster" | "pinpriqs" | "resps" | "https"
        | "beanstalkd" | "beanstalkds" => "off".to_owned(),
        "beanstalkd-max-job" => config.job_bytes_max.to_string(),
        "tls-client" => "required".to_owned(),
        "in-flight-max" => config.limits.in_flight_max.to_string(),
        "out-bytes-max" => config.limits.out_bytes_max.to_string(),
        "connection-bytes-max" => config.limits.connection_bytes_max.to_string(),
        "frame-timeout-ms" => config.limits.frame_timeout.as_millis().to_string(),
        "tcp-keepalive-ms" => ms_or_off(config.watch.keepalive),
        "tcp-user-timeout-ms" => ms_or_off(config.watch.user_timeout),
        "subscriptions-max" => config.limits.subscriptions_max.to_string(),
        "queue-linger" => config.limits.queue_linger.as_millis().to_string(),
        "unique-max" => config.limits.unique_max.to_string(),
        "topic-lanes-max" => config.limits.topic_lanes_max.to_string(),
        "log-level" => "info".to_owned(),
        "log-format" => "text".to_owned(),
        unknown => panic!("{unknown} is a new setting: say here what its default is"),
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

#[test]
fn the_help_names_the_defaults_of_the_server() {
    for flag in serve_flags() {
        let (_, default) = purpose_and_default(&flag);
        let unit = flag.get_value_names().and_then(|names| names[0].split('|').next()).unwrap();
        let plain = match unit {
            "SIZE" => units::bytes(&default).ok(),
            "TIME" => units::duration_ms(&default).ok(),
            _ => None,
        };
        let default = plain.map_or(default, |number| number.to_string());
        assert_eq!(default, default_of(name(&flag)), "--{}", name(&flag));
    }
}

#[test]
fn the_documentation_has_the_table_of_all_settings() {
    let table = table_of_settings();
    assert!(OPERATING.contains(&table), "docs/operating.md should have this table:\n{table}");
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
