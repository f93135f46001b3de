//! Tables: which source of a setting counts, and what is refused in which words.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Parser as _;
use pinpriq_server::config::{self as server, Config, DoorName};

use super::Plan;
use crate::args::{self, Cli};
use crate::settings::Settings;

/// Asks a child of this test to print its plan instead of testing, for flags separated by spaces.
const PROBE: &str = "PINPRIQ_TEST_PROBE";

/// The memory of the machine on which the plans are made.
const MEMORY: u64 = 12 << 30;

fn plan(given: Settings, file: Option<&Path>) -> Result<Plan, super::Unusable> {
    super::plan(given, file, MEMORY)
}

/// A file with every key.
const EVERY_KEY: &str = r#"
data = "/srv/queues"
pinpriq = "[::1]:7"
http-cors = "https://ops.example:8443"
http-host = "a.example, b.example"
metrics-queues = 2
users = "users.toml"
insecure-open = "on"
pinpriqs = "127.0.0.1:7260"
resps = "127.0.0.1:7261"
https = "127.0.0.1:7262"
tls-cert = "/etc/pinpriq/server.pem"
tls-key = "/etc/pinpriq/server.key"
tls-client-ca = "/etc/pinpriq/clients.pem"
tls-client = "optional"
audit = "stderr"
archive = "s3://backups/queues"
archive-every = "2s"
archive-keep = "7d"
archive-backlog = 1073741824
scrub-every = "1d"
durability = "interval"
ignore-data = "on"
pinpriq-framing = "bare"
pinpriq-ttl-zero = "forever"
pinpriq-requeue = "off"
connections-max = 1
payload-bytes-max = 67108864
task-bytes-max = 1125899906842624
memory-limit = 1073741824
in-flight-max = 4
out-bytes-max = 5
frame-timeout-ms = 6
tcp-keepalive-ms = 8
tcp-user-timeout-ms = "off"
subscriptions-max = 7
log-level = "trace"
log-format = "json"
"#;

/// A configuration file with `text` in it.
fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// What comes of flags and of the environment of this process.
fn outcome(flags: &[&str]) -> Result<String, String> {
    let line = ["pinpriq", "serve"].iter().chain(flags);
    let cli = Cli::try_parse_from(line).map_err(|error| error.to_string())?;
    let args::Command::Serve(serve) = cli.command else { panic!("this is no serve") };
    let plan = plan(serve.settings, serve.config.as_deref()).map_err(|error| error.to_string())?;
    Ok(format!("{plan:#?}"))
}

/// What comes of the settings in a file alone.
fn from_file(text: &str) -> Result<Plan, String> {
    let file = file(text);
    plan(Settings::default(), Some(file.path())).map_err(|error| error.to_string())
}

#[test]
fn nothing_set_gives_the_defaults_of_the_server() {
    let plan = plan(Settings::default(), None).unwrap();
    assert_eq!(plan.config, Config::default());
    assert_eq!(from_file("").unwrap(), plan);
}

#[test]
fn tasks_may_occupy_a_third_of_the_memory_unless_told() {
    let task_bytes_max = |memory, flags: &[&str]| {
        let line = ["pinpriq", "serve"].iter().chain(flags);
        let args::Command::Serve(serve) = Cli::try_parse_from(line).unwrap().command else {
            panic!("this is no serve")
        };
        super::plan(serve.settings, None, memory).unwrap().config.limits.task_bytes_max
    };
    assert_eq!(task_bytes_max(3 << 30, &[]), 1 << 30);
    assert_eq!(task_bytes_max(3 << 30, &["--task-bytes-max", "5000000"]), 5_000_000);
    // A payload of the largest size always fits.
    assert_eq!(task_bytes_max(1 << 20, &[]), 1 << 20);
    assert_eq!(task_bytes_max(1 << 20, &["--payload-bytes-max", "2000000"]), 2_000_000);
}

#[test]
fn every_key_of_the_file_arrives() {
    let plan = from_file(EVERY_KEY);
    expect_test::expect_file!["../../testdata/every_key.txt"].assert_debug_eq(&plan.unwrap());
}

/// The environment belongs to the whole process, so each row runs in a process of its own.
#[test]
fn flags_win_over_environment_over_file_over_default() {
    if let Ok(flags) = std::env::var(PROBE) {
        let flags: Vec<_> = flags.split_whitespace().collect();
        println!("{}", outcome(&flags).unwrap());
        return;
    }
    let file = file("connections-max = 3\n");
    let config = format!("--config {}", file.path().display());
    let both = format!("{config} --connections-max 1");
    let variable = Some("2");
    // Flags, environment, and what counts.
    let table = [
        ("", None, 10_000),
        (config.as_str(), None, 3),
        ("", variable, 2),
        (config.as_str(), variable, 2),
        ("--connections-max 1", None, 1),
        ("--connections-max 1", variable, 1),
        (both.as_str(), None, 1),
        (both.as_str(), variable, 1),
    ];
    for (flags, variable, expected) in table {
        let printed = probe(flags, variable, None);
        let line = format!("connections_max: {expected},");
        assert!(printed.contains(&line), "{flags:?}, {variable:?}: {printed}");
    }
    // The file itself can be named in the environment, and is not when a flag names another one.
    let named = probe("", None, Some(file.path()));
    assert!(named.contains("connections_max: 3,"), "{named}");
}

/// What the child prints for these flags and this environment.
fn probe(flags: &str, connections_max: Option<&str>, config: Option<&Path>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--nocapture"]);
    child.arg("config::tests::flags_win_over_environment_over_file_over_default");
    for name in std::env::vars_os().map(|(name, _)| name) {
        if name.to_string_lossy().starts_with("PINPRIQ_") {
            child.env_remove(name);
        }
    }
    child.env(PROBE, flags);
    child.envs(connections_max.map(|value| ("PINPRIQ_CONNECTIONS_MAX", value)));
    child.envs(config.map(|value| ("PINPRIQ_CONFIG", value)));
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sizes_and_times_have_units_wherever_they_are_set() {
    let units = [
        ("payload-bytes-max", "2MiB", "payload_bytes_max: 2097152,"),
        ("task-bytes-max", "3GB", "task_bytes_max: 3000000000,"),
        ("memory-limit", "1GiB", "1073741824,"),
        ("out-bytes-max", "64KiB", "out_bytes_max: 65536,"),
        ("frame-timeout-ms", "30s", "frame_timeout: 30s,"),
        ("tcp-keepalive-ms", "5m", "300s,"),
        ("queue-linger", "1d", "queue_linger: 86400s,"),
        ("tcp-user-timeout-ms", "1m30s", "90s,"),
    ];
    let (mut flags, mut lines) = (Vec::new(), String::new());
    for (name, value, _) in units {
        flags.extend([format!("--{name}"), value.to_owned()]);
        writeln!(lines, "{name} = {value:?}").unwrap();
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let by_flags = outcome(&flags).unwrap();
    for (name, _, shown) in units {
        assert!(by_flags.contains(shown), "{name}: {by_flags}");
    }
    assert_eq!(format!("{:#?}", from_file(&lines).unwrap()), by_flags);
}

#[test]
fn nonsense_on_the_command_line_is_refused_in_words() {
    let table = [
        (["--connections-max", "0"], "it must be from 1 to 1000000, not 0"),
        (["--connections-max", "-1"], "unexpected argument '-1'"),
        (["--connections-max", "many"], "it must be a whole number from 1 to 1000000"),
        (["--connections-max", ""], "it must be a whole number from 1 to 1000000"),
        (["--payload-bytes-max", "67108865"], "`67108865` is out of bounds: give a size from 1 to"),
        (["--payload-bytes-max", "65MiB"], "from 1 to 67108864 bytes, such as `4096` or `64KiB`"),
        (["--payload-bytes-max", "64M"], "`64M` has an unknown unit"),
        (["--memory-limit", "0"], "`0` is out of bounds: give a size from 1 to 1125899906842624"),
        (["--memory-limit", "-1"], "`-1` is negative"),
        (["--memory-limit", "1.5GiB"], "`1.5GiB` has a fraction"),
        (["--task-bytes-max", "0KiB"], "`0KiB` is out of bounds"),
        (["--in-flight-max", "0"], "it must be from 1 to 1000000, not 0"),
        (["--out-bytes-max", "2GiB"], "`2GiB` is out of bounds: give a size from 1 to 1073741824"),
        (["--http-cors", "*"], "it must be an origin as browsers send it"),
        (["--http-cors", "https://a.example/x"], "it must be an origin"),
        (["--frame-timeout-ms", "0"], "`0` is out of bounds: give a time from 1 to 3600000 ms"),
        (["--frame-timeout-ms", "61m"], "`61m` is out of bounds"),
        (["--frame-timeout-ms", "10x"], "`10x` has the unknown unit `x`"),
        (["--frame-timeout-ms", "10MiB"], "such as `500ms`, `30s` or `1h30m`"),
        (["--tcp-keepalive-ms", "-1"], "`-1` is negative"),
        (["--tcp-keepalive-ms", "3600001"], "ms, such as `500ms` or `30s`, or `off`"),
        (["--tcp-user-timeout-ms", "on"], "`on` is not a time"),
        (["--subscriptions-max", "0"], "it must be from 1 to 1000000, not 0"),
        (["--archive", ""], "it must be a directory, or a bucket such as s3://bucket/prefix"),
        (["--archive-every", "99ms"], "`99ms` is out of bounds: give a time from `100ms` to `1h`"),
        (["--archive-every", "61m"], "`61m` is out of bounds"),
        (["--archive-keep", "7"], "`7` has no unit: give a time such as `7d` or `36h`"),
        (["--archive-keep", "59m"], "give at least `1h`"),
        (["--archive-backlog", "0"], "`0` is out of bounds: give a size from 1 to"),
        (["--scrub-every", "59m"], "`59m` is out of bounds: give a time from `1h` to"),
        (["--task-bytes-max", "1000"], "task-bytes-max (1000) is less than payload-bytes-max"),
        (["--pinpriq", "7250"], "it must be a host and a port"),
        (["--pinpriq", ":7250"], "it must be a host and a port"),
        (["--pinpriq", "::1"], "it must be a host and a port"),
        (["--pinpriq", "localhost:65536"], "it must be a host and a port"),
        (["--pinpriq", "on"], "it must be a host and a port"),
        (["--durability", "fsync"], "[possible values: sync, interval, memory]"),
        (["--ignore-data", "yes"], "[possible values: on, off]"),
        (["--pinpriq-requeue", "yes"], "[possible values: on, off]"),
        (["--data", ""], "a value is required for '--data <DIR>'"),
        (["--config", "/nonexistent/pinpriq.toml"], "/nonexistent/pinpriq.toml cannot be read"),
    ];
    for (flags, words) in table {
        let refusal = outcome(&flags).expect_err(words);
        assert!(refusal.contains(words), "{flags:?}: {refusal}");
    }
}

#[test]
fn nonsense_in_the_file_is_refused_with_its_line() {
    let table = [
        ("connections = 5", "line 2, column 1", "unknown field `connections`"),
        ("connections_max = 5", "line 2, column 1", "unknown field `connections_max`"),
        ("config = \"other.toml\"", "line 2, column 1", "unknown field `config`"),
        ("connections-max = 0", "line 2, column 19", "it must be from 1 to 1000000, not 0"),
        ("connections-max = -4", "line 2, column 19", "it must be from 1 to 1000000, not -4"),
        ("connections-max = \"5\"", "line 2, column 19", "expected i64"),
        ("memory-limit = \"1GX\"", "line 2, column 16", "`1GX` has an unknown unit"),
        ("memory-limit = -1", "line 2, column 16", "`-1` is negative"),
        ("memory-limit = 1.5", "line 2, column 16", "a text such as \"30s\" or \"64MiB\""),
        ("frame-timeout-ms = \"soon\"", "line 2, column 20", "`soon` is not a time"),
        ("frame-timeout-ms = \"2h\"", "line 2, column 20", "`2h` is out of bounds"),
        ("tcp-keepalive-ms = \"on\"", "line 2, column 20", "or `off`"),
        ("pinpriq = \"everywhere\"", "line 2, column 11", "it must be a host and a port"),
        ("archive-keep = 604800000", "line 2, column 16", "`604800000` has no unit"),
        ("durability = \"fsync\"", "line 2, column 14", "expected one of `sync`"),
        ("pinpriq-requeue = \"yes\"", "line 2, column 19", "expected `on` or `off`"),
        ("durability = ", "line 2, column 14", "string values must be quoted"),
    ];
    for (line, place, words) in table {
        let refusal = from_file(&format!("# Settings.\n{line}\n")).expect_err(line);
        assert!(refusal.contains("the configuration file"), "{line}: {refusal}");
        assert!(refusal.contains(place), "{line}: {refusal}");
        assert!(refusal.contains(words), "{line}: {refusal}");
    }
    let refusal = from_file("data = \"\"").expect_err("an empty name");
    assert_eq!(refusal, "data must name a directory; it is empty");
}

#[test]
fn an_address_is_a_host_and_a_port_or_off() {
    let table = [
        ("pinpriq = \"off\"", None),
        ("pinpriq = \"127.0.0.1:0\"", Some("127.0.0.1:0")),
        ("pinpriq = \"[::]:7250\"", Some("[::]:7250")),
    ];
    for (line, expected) in table {
        let listeners = from_file(line).unwrap().config.listeners;
        let listener = listeners.iter().find(|it| it.door == DoorName::Pinpriq);
        let address = listener.map(|it| it.address);
        assert_eq!(address, expected.map(|text| text.parse().unwrap()), "{line}");
    }
}

#[test]
fn cluster_clients_are_expected_by_nodes_that_are_told_so() {
    let cluster = ["--cluster", "etcd://127.0.0.1:1/test"];
    let at = ["--resp-cluster", "127.0.0.1:7"];
    let by_default = outcome(&cluster).unwrap();
    assert!(!by_default.contains("RespCluster"), "{by_default}");
    let told = outcome(&[&cluster[..], &at].concat()).unwrap();
    let listener = "door: RespCluster,\n                address: 127.0.0.1:7,";
    assert!(told.contains(listener), "{told}");
    let alone = outcome(&at).unwrap_err();
    assert!(alone.starts_with("resp-cluster is for a node of a cluster"), "{alone}");
    let in_file = from_file("resp-cluster = \"localhost:7\"\n").unwrap_err();
    assert_eq!(in_file, alone);
    assert!(outcome(&["--resp-cluster", "off"]).is_ok());
}

#[test]
fn clients_of_beanstalkd_are_expected_by_servers_and_nodes_that_are_told_so() {
    let at = ["--beanstalkd", "127.0.0.1:7"];
    let by_default = outcome(&[]).unwrap();
    assert!(!by_default.contains("Beanstalkd"), "{by_default}");
    assert!(by_default.contains("job_bytes_max: 65535,"), "{by_default}");
    let told = outcome(&at).unwrap();
    let listener = "door: Beanstalkd,\n                address: 127.0.0.1:7,";
    assert!(told.contains(listener), "{told}");
    let sharded = outcome(&[&at[..], &["--shards", "2"]].concat()).unwrap();
    assert!(sharded.contains(listener), "{sharded}");
    let cluster = ["--cluster", "etcd://127.0.0.1:1/test"];
    let in_cluster = outcome(&[&at[..], &cluster].concat()).unwrap();
    assert!(in_cluster.contains(listener), "{in_cluster}");
}

#[test]
fn largest_job_is_no_larger_than_the_largest_payload() {
    let jobs_of = |flags: &[&str]| {
        let plan = outcome(flags)?;
        let jobs = plan.lines().find(|line| line.contains("job_bytes_max")).unwrap();
        Ok::<_, String>(jobs.trim().to_owned())
    };
    assert_eq!(jobs_of(&["--beanstalkd-max-job", "1MiB"]).unwrap(), "job_bytes_max: 1048576,");
    assert_eq!(jobs_of(&["--payload-bytes-max", "1000"]).unwrap(), "job_bytes_max: 1000,");
    let refusal = jobs_of(&["--beanstalkd-max-job", "1048577"]).unwrap_err();
    assert!(refusal.starts_with("beanstalkd-max-job (1048577) is more than"), "{refusal}");
}

#[test]
fn a_server_archives_if_it_has_a_place_and_something_to_archive() {
    let given = |flags: &[&str]| outcome(&[&["--archive", "/mnt/place"], flags].concat());
    let plan = from_file("archive = \"/mnt/place\"").unwrap();
    let expected = server::ArchiveTo {
        place: "/mnt/place".to_owned(),
        every: Duration::from_secs(1),
        keep: None,
        backlog_bytes: None,
        scrub_every: None,
    };
    assert_eq!(plan.config.archive, Some(expected));
    assert_eq!(given(&[]).unwrap(), format!("{plan:#?}"));
    assert!(given(&["--durability", "interval"]).is_ok());
    let refusal = given(&["--durability", "memory"]).unwrap_err();
    assert_eq!(refusal, "archive needs a data directory, and durability memory uses none");
    let refusal = given(&["--cluster", "etcd://127.0.0.1:1/test"]).unwrap_err();
    assert!(refusal.starts_with("archive is not for a node of a cluster: take the"), "{refusal}");
    for (setting, value) in [
        ("archive-every", "1s"),
        ("archive-keep", "7d"),
        ("archive-backlog", "1GB"),
        ("scrub-every", "off"),
    ] {
        let refusal = outcome(&[&format!("--{setting}"), value]).unwrap_err();
        let words = "has no use without archive, which names the place";
        assert_eq!(refusal, format!("{setting} {words}"));
        assert!(given(&[&format!("--{setting}"), value]).is_ok(), "{setting}");
    }
}

#[test]
fn each_level_of_durability_is_that_of_the_server() {
    let table = [
        ("sync", server::Durability::Sync),
        ("interval", server::Durability::Interval),
        ("memory", server::Durability::Memory),
    ];
    for (word, expected) in table {
        let plan = from_file(&format!("durability = \"{word}\"")).unwrap();
        assert_eq!(plan.config.durability, expected);
    }
}
