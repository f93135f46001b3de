//! `pinpriq top` on a pseudo-terminal, and what it prints for scripts.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::Words;

use self::terminal::Terminal;
use super::Server;
use crate::peer::{check, pinpriq};

mod terminal;

/// A server with a few queues: `jobs` with two ready tasks and a taken one, `mail` that is paused,
/// and `none` that is empty.
fn server() -> Server {
    let server = Server::with_queue();
    server.done(&["queue", "create", "none"]);
    for payload in ["resize 1", "resize\u{1b}[31m 2", "resize 3"] {
        server.put("jobs", payload);
    }
    server.printed(&["take", "jobs", "--ttr", "1h"]);
    server.put("mail", "to ada");
    server.done(&["queue", "pause", "mail", "out"]);
    server
}

/// `top` in a terminal.
fn top(server: &Server, flags: &[&str]) -> Terminal {
    let command = server.client(&[&["top", "--interval", "100ms"], flags].concat());
    Terminal::run(command, 80, 24)
}

/// The line of a queue.
#[track_caller]
fn line<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let words = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
    let found = text.lines().map(words).find(|words| words.first() == Some(&name));
    found.unwrap_or_else(|| panic!("there is no line of {name}:\n{text}"))
}

#[test]
fn a_person_looks_around_and_leaves_the_terminal_as_it_was() {
    let server = server();
    let mut terminal = top(&server, &[]);
    let text = terminal.until("two rounds", |text| {
        text.contains("none") && text.lines().any(|line| line.contains("in/s 0"))
    });
    assert!(terminal.is_taken_over());
    assert_eq!(line(&text, "jobs")[1..5], ["2", "1", "0", "0"]);
    assert_eq!(line(&text, "mail")[8], "out");
    assert!(text.contains("queues 3  paused 1"), "{text}");
    assert!(text.contains("durability memory"), "{text}");

    // Order and filter.
    terminal.press("s");
    terminal.see("in the order of ready");
    terminal.press("/mai");
    terminal.until("only mail", |text| text.contains("filter: mai") && !text.contains("jobs"));
    terminal.press("\x1b");
    terminal.see("jobs");

    // Limits that several queues use.
    server.done(&["limit", "set", "gpu", "--max", "8"]);
    terminal.press("l");
    terminal.see("gpu");
    terminal.press("q");
    terminal.see("jobs");

    // Into a queue and a task. No byte of a payload does anything to the terminal.
    terminal.press("g\r");
    let text = terminal.see("resize 3");
    assert!(text.contains("queue jobs") && text.contains(r"resize\u{1b}[31m 2"), "{text}");
    assert!(text.contains("settings ids sequence"), "{text}");
    terminal.press("j\r");
    let text = terminal.see("payload, 8 bytes");
    assert!(text.contains("task 3 of queue jobs"), "{text}");
    terminal.press("q");
    terminal.see("resize 3");
    terminal.press("\t");
    terminal.until("what is taken", |text| text.contains("resize 1") && !text.contains("resize 3"));
    // Its shares, which are those of the tasks without one.
    terminal.press("s");
    terminal.until("a share", |text| {
        text.lines().any(|line| line.split_whitespace().take(2).eq(["2", "1"]))
    });
    terminal.press("\x1b");
    terminal.see("taken waiting buried");

    terminal.press("q");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(text.trim(), "", "nothing stays on the screen");
}

#[test]
fn a_pause_is_seen_and_control_c_leaves_from_anywhere() {
    let server = server();
    let mut terminal = top(&server, &["--prefix", "jo"]);
    terminal.see("queues 1");
    server.done(&["queue", "pause", "jobs", "out"]);
    terminal.until("paused", |text| line(text, "jobs").get(8) == Some(&"out"));
    terminal.press("\r");
    terminal.see("paused out");
    server.done(&["queue", "resume", "jobs", "out"]);
    terminal.see("paused -");
    terminal.press("\x03");
    assert_eq!(terminal.end().0.code(), Some(0));
}

#[test]
fn rates_are_those_of_the_last_round() {
    let server = server();
    let mut terminal = top(&server, &[]);
    terminal.see("in/s 0");
    let mut client = Resp::over(Line::connect(&server.address).unwrap());
    let is_moving = |text: &str| {
        let words = text.lines().find(|line| line.starts_with("jobs")).unwrap_or_default();
        let mut words = words.split_whitespace().skip(5);
        words.next().is_some_and(|rate| !["0", "-"].contains(&rate))
            && words.next().is_some_and(|rate| !["0", "-"].contains(&rate))
    };
    for _ in 0..2_000 {
        client.send([&Words::new("PUT jobs x PRIORITY -1"), &Words::new("POP jobs")]).unwrap();
        client.reply().unwrap();
        client.reply().unwrap();
        if is_moving(&terminal.text()) {
            break;
        }
        terminal.read();
    }
    terminal.until("rates", is_moving);
    terminal.press("q");
    assert_eq!(terminal.end().0.code(), Some(0));
}

#[test]
fn signals_end_it_and_the_terminal_is_as_before() {
    let server = server();
    for signal in ["-TERM", "-INT", "-HUP", "-QUIT"] {
        let mut terminal = top(&server, &[]);
        terminal.see("jobs");
        assert!(terminal.is_taken_over());
        // It cannot be stopped by this one, so it never leaves the terminal half used.
        terminal.signal("-TSTP");
        terminal.press("\r");
        terminal.see("queue jobs");
        // Some send a signal to the process and then to its group, which is twice.
        terminal.signal(signal);
        terminal.signal(signal);
        assert_eq!(terminal.end().0.code(), Some(0), "{signal}");
    }
}

#[test]
fn it_ends_when_its_terminal_is_closed() {
    let server = server();
    let mut terminal = top(&server, &[]);
    terminal.see("jobs");
    // Whether a key or a picture meets the end first is a matter of chance.
    assert!(matches!(terminal.close().code(), Some(0 | 1)));
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let server = server();
    let mut terminal = top(&server, &[]);
    terminal.see("jobs");
    terminal.resize(30, 9);
    let fits = |text: &str| text.contains("jobs") && text.lines().count() <= 9;
    terminal.until("a narrow list", |text| fits(text) && !text.contains("taken waiting"));
    terminal.resize(120, 30);
    terminal.until("a wide list", |text| text.contains("paused") && text.contains("q quit"));
    terminal.press("q");
    terminal.end();
}

#[test]
fn a_server_that_goes_away_is_told_and_found_again() {
    let mut server = server();
    let mut terminal = top(&server, &[]);
    terminal.see("jobs");
    let address = server.address.clone();
    server.serving.take().unwrap().stop();
    let text = terminal.see("trying again");
    assert!(text.contains("not connected") && text.contains("jobs"), "{text}");
    let again = Server::start_at(&address);
    again.put("other", "x");
    terminal.until("the new server", |text| text.contains("other") && !text.contains("trying"));
    terminal.press("q");
    terminal.end();
}

#[test]
fn without_a_server_it_starts_and_says_so() {
    // No server listens there: the port is that of a server that has ended.
    let mut server = Server::start();
    server.serving.take().unwrap().stop();
    let mut terminal = top(&server, &[]);
    let text = terminal.see("trying again");
    assert!(text.contains("no connection to"), "{text}");
    terminal.press("q");
    assert_eq!(terminal.end().0.code(), Some(0));
    let once = server.run(&["top", "--once"]);
    check(&once, 1, b"");
}

#[test]
fn once_prints_one_table() {
    let server = server();
    let printed = server.printed(&["top", "--once", "--interval", "100ms"]);
    let heads = [
        "queue", "ready", "taken", "waiting", "buried", "zombie", "done", "in/s", "out/s",
        "oldest", "paused",
    ];
    assert_eq!(line(&printed, "queue"), heads);
    assert_eq!(line(&printed, "jobs")[..4], ["jobs", "2", "1", "0"]);
    assert_eq!(line(&printed, "mail")[10], "out");
    assert_eq!(line(&printed, "(all)")[..3], ["(all)", "3", "1"]);
    assert_eq!(printed.lines().count(), 5);
    let some = server.printed(&["top", "--once", "--interval", "100ms", "--prefix", "no"]);
    assert_eq!(some.lines().count(), 3, "{some}");
}

#[test]
fn json_prints_an_object_for_each_round() {
    let server = server();
    let once = server.printed(&["top", "--json", "--once", "--interval", "100ms"]);
    let round: serde_json::Value = serde_json::from_str(&once).unwrap();
    assert_eq!(round["server"]["ready"], 3);
    assert_eq!(round["server"]["queues_paused"], 1);
    assert_eq!(round["server"]["durability"], "memory");
    let queues = round["queues"].as_array().unwrap();
    let names: Vec<&str> = queues.iter().map(|queue| queue["queue"].as_str().unwrap()).collect();
    assert_eq!(names, ["jobs", "mail", "none"]);
    assert_eq!((&queues[0]["taken"], &queues[0]["put"]), (&1.into(), &3.into()));
    assert_eq!(queues[1]["paused"], "out");
    assert_eq!(queues[2]["oldest_ready_ms"], serde_json::Value::Null);

    assert_eq!(round["limits"], serde_json::json!([]));
    assert_eq!(round.get("shares"), None);
    let flags = ["top", "--json", "--once", "--interval", "100ms", "--shares", "jobs"];
    let round: serde_json::Value = serde_json::from_str(&server.printed(&flags)).unwrap();
    assert_eq!(
        (&round["shares"][0]["share"], &round["shares"][0]["ready"]),
        (&"".into(), &2.into())
    );

    let mut command: Command = server.client(&["top", "--json", "--interval", "100ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        let round: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(round["elapsed_ms"].as_i64().unwrap() >= 100, "{line}");
    }
    // Without a reader it ends quietly.
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let complaint = check(&pinpriq(&["top"]).output().unwrap(), 2, b"");
    assert!(complaint.contains("--once") && complaint.contains("not a terminal"), "{complaint}");
    let output = pinpriq(&["top", "--interval", "99ms"]).output().unwrap();
    check(&output, 2, b"");
}
