//! `pinpriq listen` against a real server: what it does, and what becomes of its lane when it is
//! stopped, killed, or away for too long; and a server that is killed while tasks are published.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use super::commands::lines;
use super::{Server, fifo};
use crate::peer::{check, pinpriq};
use crate::serving::Serving;
use pinpriq_testing::Dice;

/// A listener that goes on while the test does other things. Killed when it goes out of scope.
struct Listener {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    member: String,
}

impl Listener {
    /// Starts one, and waits until it has joined.
    fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::of_command(server.client(&[&["listen"], arguments].concat()))
    }

    fn of_command(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut listener = Self { child, stdout, stderr, member: String::new() };
        let told = listener.complaint();
        let (_, member) = told.split_once(" as ").unwrap_or_else(|| panic!("{told}"));
        member.trim_end().clone_into(&mut listener.member);
        listener
    }

    /// Waits for the next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Waits for the next line on stderr.
    fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for the end, and returns the exit code and the rest of both outputs.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut complaint) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).unwrap();
        self.stderr.read_to_string(&mut complaint).unwrap();
        (self.child.wait().unwrap().code(), rest, complaint)
    }

    /// Kills it as nothing can be kept from.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until the last member of a topic has gone.
fn see_no_members(server: &Server, topic: &str) {
    while !server.printed(&["members", topic]).is_empty() {}
}

#[test]
fn every_listener_prints_everything_and_leaves_when_told_to_stop() {
    let server = Server::start();
    let mut listeners: Vec<_> = (0..3).map(|_| Listener::start(&server, &["news"])).collect();
    let mut names: Vec<_> = listeners.iter().map(|it| it.member.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
    for listener in &listeners {
        let ending = format!("-{}", listener.child.id());
        assert!(listener.member.ends_with(&ending), "{} is {ending}", listener.member);
    }
    check(&server.run_with(&["publish", "news", "--lines"], b"one\ntwo\n"), 0, b"3\n3\n");
    for listener in &mut listeners {
        assert_eq!(listener.line() + &listener.line(), "one\ntwo\n");
    }
    for (signal, listener) in ["-TERM", "-INT", "-TERM"].into_iter().zip(listeners) {
        listener.signal(signal);
        assert_eq!(listener.end(), (Some(0), String::new(), "pinpriq: stopping\n".to_owned()));
    }
    assert_eq!(server.printed(&["members", "news"]), "");
    let stats = server.printed(&["stats"]);
    assert!(stats.contains("\nacked: 6\n") && stats.contains("\nkilled: 0\n"), "{stats}");
}

#[test]
fn json_has_all_that_is_known_of_what_was_published() {
    let server = Server::start();
    let mut listener = Listener::start(&server, &["news", "m", "--json", "--count", "2"]);
    server.printed(&["publish", "news", "a\"b", "--key", "k", "--ttl-ms", "60000"]);
    let line = listener.line();
    let start = "{\"queue\":\"news\",\"member\":\"m\",\"id\":\"3\",\"receipt\":\"3-";
    let rest = "\"payload\":\"a\\\"b\",\"key\":\"k\",\"share\":null,\"cost\":1,\"priority\":0,";
    assert!(line.starts_with(start) && line.contains(rest), "{line}");
    assert!(!line.contains("\"ttl_at\":null"), "{line}");
    server.printed(&["publish", "news", "last"]);
    let (code, rest, complaint) = listener.end();
    assert!(rest.contains("\"payload\":\"last\""), "{rest}");
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
    assert_eq!(server.printed(&["members", "news"]), "");
}

#[test]
fn a_name_that_is_taken_is_not_invented_twice() {
    let server = Server::start();
    let arguments = ["-c", "\"$0\" join news \"$(uname -n)-$$\" && exec \"$0\" listen news"];
    let mut command = Command::new("sh");
    command.args(arguments).arg(env!("CARGO_BIN_EXE_pinpriq"));
    command.env("PINPRIQ_RESP_ADDRESS", &server.address);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listener = Listener::of_command(command);
    assert!(listener.member.ends_with(&format!("-{}-2", listener.child.id())));
    assert_eq!(listener.line(), "1\n", "the other joined first");
    assert_eq!(server.printed(&["publish", "news", "p"]), "2\n");
    assert_eq!(listener.line(), "p\n");
}

#[test]
fn commands_are_run_and_what_fails_too_often_is_buried_in_the_lane() {
    let server = Server::start();
    let command = "test \"$(cat)\" != bad && echo \"$PINPRIQ_QUEUE $PINPRIQ_MEMBER\"";
    let arguments =
        ["t", "m", "--stay", "--exec", command, "--attempts-max", "2", "--backoff-ms", "1"];
    let mut listener = Listener::start(&server, &[&arguments[..], &["--jobs", "2"]].concat());
    server.printed(&["publish", "t", "good"]);
    server.printed(&["publish", "t", "bad"]);
    assert_eq!(listener.line(), "t m\n");
    assert!(listener.complaint().contains(": exit code 1, attempt 1: comes back in 1 ms"));
    assert!(listener.complaint().contains(": exit code 1, after 2 attempts: buried"));
    listener.signal("-TERM");
    assert_eq!(listener.end().0, Some(0));
    let buried = server.printed(&["peek", "t", "--member", "m", "--state", "buried"]);
    assert!(buried.ends_with("\tbad\n"), "{buried}");
}

#[test]
fn one_who_stays_finds_what_came_meanwhile() {
    let server = Server::start();
    let arguments = ["news", "mailer", "--stay", "--count", "1", "--lease-ms", "3600000"];
    let first = Listener::start(&server, &arguments);
    server.printed(&["publish", "news", "first"]);
    assert_eq!(first.end(), (Some(0), "first\n".to_owned(), String::new()));
    assert_eq!(server.printed(&["publish", "news", "meanwhile"]), "1\n");
    let second = Listener::start(&server, &arguments);
    assert_eq!(second.end(), (Some(0), "meanwhile\n".to_owned(), String::new()));
    // A member that does not stay takes the lane along.
    let third = Listener::start(&server, &["news", "mailer", "--count", "1"]);
    server.printed(&["publish", "news", "last"]);
    assert_eq!(third.end().1, "last\n");
    assert_eq!(server.printed(&["publish", "news", "lost"]), "0\n");
}

#[test]
fn one_who_leaves_says_what_is_lost() {
    let server = Server::start();
    let arguments = ["t", "m", "--exec", "exit 1", "--backoff-ms", "3600000"];
    let mut listener = Listener::start(&server, &arguments);
    server.printed(&["publish", "t", "p"]);
    assert!(listener.complaint().contains("comes back in"));
    server.done(&["queue", "pause", "t", "out", "--member", "m"]);
    server.printed(&["publish", "t", "p", "--count", "2"]);
    listener.signal("-INT");
    let (code, _, complaint) = listener.end();
    assert_eq!(code, Some(0), "{complaint}");
    let told = "pinpriq: m has left t, and its lane is gone with 2 ready and 1 waiting tasks\n";
    assert!(complaint.ends_with(told), "{complaint}");
    assert_eq!(server.printed(&["members", "t"]), "");
}

#[test]
fn a_lane_with_buried_tasks_is_kept() {
    let server = Server::start();
    let mut listener = Listener::start(&server, &["t", "m", "--exec", "exit 65"]);
    server.printed(&["publish", "t", "p"]);
    assert!(listener.complaint().contains(": buried"));
    listener.signal("-TERM");
    let (code, _, complaint) = listener.end();
    assert_eq!(code, Some(0), "{complaint}");
    let told = "pinpriq: m does not leave t: its lane has 1 buried task. Look at the buried ones \
                with `pinpriq peek t --member m --state buried --json`, and leave with `pinpriq \
                leave t m`; otherwise the lane ends in 60 minutes\n";
    assert!(complaint.ends_with(told), "{complaint}");
    let buried = server.printed(&["peek", "t", "--member", "m", "--state", "buried"]);
    assert!(buried.ends_with("\tp\n"), "{buried}");
    assert_eq!(server.printed(&["leave", "t", "m"]), "1\n");
}

#[test]
fn a_killed_listener_ends_with_its_lease() {
    let server = Server::start();
    let killed = Listener::start(&server, &["news", "killed", "--lease-ms", "1000"]);
    let mut other = Listener::start(&server, &["news", "other"]);
    killed.kill();
    server.printed(&["publish", "news", "while it lasts"]);
    assert_eq!(other.line(), "while it lasts\n");
    while server.printed(&["members", "news"]).contains("killed") {}
    assert_eq!(server.printed(&["publish", "news", "after"]), "1\n");
    assert_eq!(other.line(), "after\n");
    // Nothing is left of its lane.
    server.signal_end(other);
    assert_eq!(super::member_of(&server.printed(&["stats"]), "present"), "0");
}

impl Server {
    /// Has a listener leave, and checks that it has.
    fn signal_end(&self, listener: Listener) {
        listener.signal("-TERM");
        assert_eq!(listener.end().0, Some(0));
        assert_eq!(self.printed(&["members", "news"]), "");
    }
}

#[test]
fn a_long_command_does_not_end_the_membership() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let (started, go) = (fifo(dir.path(), "started"), fifo(dir.path(), "go"));
    let command = format!("echo > {started}; read x < {go}");
    let listener = Listener::start(&server, &["t", "m", "--lease-ms", "6000", "--exec", &command]);
    server.printed(&["publish", "t", "p"]);
    assert_eq!(std::fs::read_to_string(&started).unwrap(), "\n");
    let lease = || server.printed(&["members", "t"]).split('\t').nth(2).map(str::to_owned);
    let first: u64 = lease().unwrap().parse().unwrap();
    while lease().expect("it is still a member").parse::<u64>().unwrap() < first + 6_000 {}
    std::fs::OpenOptions::new().write(true).open(&go).unwrap().write_all(b"go\n").unwrap();
    listener.signal("-TERM");
    let (code, _, complaint) = listener.end();
    assert_eq!(code, Some(0), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

#[test]
fn a_listener_that_was_away_for_too_long_joins_again_and_says_so() {
    let server = Server::start();
    let mut listener = Listener::start(&server, &["news", "m", "--lease-ms", "2000"]);
    listener.signal("-STOP");
    server.printed(&["publish", "news", "missed"]);
    see_no_members(&server, "news");
    listener.signal("-CONT");
    let told = "pinpriq: the membership of m in news had ended, with all that was in its lane: \
                joined again\n";
    // What was on its way when it was suspended is printed, but can be acknowledged no more. That
    // is reported before or after the end of the membership is.
    let mut stale = 0;
    let mut complaint = |listener: &mut Listener| loop {
        let complaint = listener.complaint();
        if !complaint.contains("(STALE ") {
            return complaint;
        }
        stale += 1;
        assert_eq!(stale, 1, "{complaint}");
    };
    assert_eq!(complaint(&mut listener), told);
    assert_eq!(server.printed(&["publish", "news", "heard"]), "1\n");
    let mut line = listener.line();
    if line == "missed\n" {
        line = listener.line();
    }
    assert_eq!(line, "heard\n");
    // What it has printed it acknowledges, and that is not to cross with what comes next.
    while super::member_of(&server.printed(&["stats"]), "present") != "0" {}
    // So does one whose lane somebody has ended.
    assert_eq!(server.printed(&["leave", "m"]), "1\n");
    assert_eq!(complaint(&mut listener), told);
    server.signal_end(listener);
}

#[test]
fn a_listener_whose_output_is_closed_gives_back_and_ends() {
    let server = Server::start();
    let mut command = server.client(&["listen", "news", "m", "--stay"]);
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    drop(child.stdout.take());
    server.printed(&["publish", "news", "p"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let left = server.printed(&["peek", "news", "--member", "m"]);
    assert!(left.ends_with("\tp\n"), "{left}");
}

/// A server that keeps its data, at an address that may be given.
fn durable(data: &Path, address: &str) -> (Serving, String) {
    let mut command = pinpriq(&["serve", "--pinpriq", "off", "--resp", address]);
    command.args(["--log-format", "json"]).arg("--data").arg(data);
    let serving = Serving::of_command(command);
    let address = serving.door("resp");
    (serving, address)
}

/// A client command for the server at this address.
fn client(address: &str, arguments: &[&str]) -> Command {
    let mut command = pinpriq(arguments);
    command.env("PINPRIQ_RESP_ADDRESS", address);
    command
}

fn printed(address: &str, arguments: &[&str]) -> String {
    let output = client(address, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_listener_goes_on_when_the_server_was_killed_and_comes_back() {
    let data = tempfile::tempdir().unwrap();
    let (serving, address) = durable(data.path(), "127.0.0.1:0");
    let mut listener = Listener::of_command(client(&address, &["listen", "news", "m"]));
    printed(&address, &["publish", "news", "before"]);
    assert_eq!(listener.line(), "before\n");
    serving.kill();
    let (serving, _) = durable(data.path(), &address);
    assert_eq!(printed(&address, &["publish", "news", "after"]), "1\n");
    // The acknowledgement of the first may have been under way.
    let mut line = listener.line();
    if line == "before\n" {
        line = listener.line();
    }
    assert_eq!(line, "after\n");
    listener.signal("-TERM");
    let (code, _, complaint) = listener.end();
    assert_eq!(code, Some(0), "{complaint}");
    assert!(!complaint.contains("joined again"), "{complaint}");
    assert_eq!(printed(&address, &["members", "news"]), "");
    serving.stop();
}

#[test]
fn a_kill_while_tasks_are_published_leaves_each_in_all_lanes_or_in_none() {
    const MEMBERS: usize = 5;
    const LINES: u32 = 20_000;
    let mut dice = Dice::new(7);
    let data = tempfile::tempdir().unwrap();
    let input = lines(LINES, |number| number.to_string());
    for round in 0..4 {
        let (serving, address) = durable(data.path(), "127.0.0.1:0");
        let topic = format!("t{round}");
        for member in 0..MEMBERS {
            let member = format!("m{member}");
            printed(&address, &["join", &topic, &member, "--lease-ms", "3600000"]);
        }
        let mut publisher = client(&address, &["publish", &topic, "--lines"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = publisher.stdin.take().unwrap();
        let writing = std::thread::spawn({
            let input = input.clone();
            // The publisher may end first.
            move || drop(stdin.write_all(input.as_bytes()))
        });
        let answers = dice.index(5_000) + 1;
        let mut told = BufReader::new(publisher.stdout.take().unwrap()).lines();
        for _ in 0..answers {
            assert_eq!(told.next().unwrap().unwrap(), MEMBERS.to_string());
        }
        serving.kill();
        let answered = answers + told.map_while(Result::ok).count();
        publisher.wait().unwrap();
        writing.join().unwrap();

        let (serving, address) = durable(data.path(), "127.0.0.1:0");
        let lane = |member: usize| {
            let member = format!("m{member}");
            let tasks =
                printed(&address, &["peek", &topic, "--member", &member, "--count", "65535"]);
            let payloads = tasks.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned());
            payloads.collect::<Vec<_>>()
        };
        let first = lane(0);
        println!("round {round}: {answered} answered, {} in each lane", first.len());
        let expected = (1..=first.len()).map(|number| number.to_string());
        assert_eq!(first, expected.collect::<Vec<_>>(), "without gaps");
        assert!(answered <= first.len(), "{answered} were answered");
        for member in 1..MEMBERS {
            assert!(lane(member) == first, "member {member} has what member 0 has");
        }
        serving.stop();
    }
}
