//! Each command once or more: what it does, what it prints, how it ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use super::Server;
use crate::peer::{check, pinpriq};

#[test]
fn put_prints_ids_and_take_prints_receipts_and_payloads() {
    let server = Server::start();
    assert_eq!(server.printed(&["put", "jobs", "low", "--priority", "5"]), "1\n");
    assert_eq!(server.printed(&["put", "jobs", "high", "--priority", "-5"]), "2\n");
    check(&server.run_with(&["put", "jobs"], b"from\nstdin\n"), 0, b"3\n");
    check(&server.run_with(&["put", "jobs", "-", "--count", "2"], b"same"), 0, b"4\n5\n");

    let line = server.printed(&["take", "jobs"]);
    let (receipt, payload) = line.split_once('\t').unwrap();
    assert_eq!(payload, "high\n");
    server.done(&["ack", "jobs", receipt]);
    server.refused(&["ack", "jobs", receipt], "STALE ");

    let rest = server.printed(&["take", "void", "jobs", "--count", "9", "--from", "max"]);
    let lines: Vec<Vec<&str>> = rest.split('\n').map(|line| line.split('\t').collect()).collect();
    assert_eq!((lines[0][0], lines[0][2]), ("jobs", "low"));
    assert_eq!((lines[1][0], lines[1][2]), ("jobs", "same"));
    assert_eq!((lines[3][2], lines[4][0]), ("from", "stdin"), "{rest}");
    check(&server.run(&["take", "jobs"]), 4, b"");
}

#[test]
fn pop_takes_the_oldest_of_the_most_urgent_for_good() {
    let server = Server::start();
    for (payload, priority) in [("low", "5"), ("first", "1"), ("second", "1")] {
        server.printed(&["put", "jobs", payload, "--priority", priority]);
    }
    assert_eq!(server.printed(&["pop", "jobs"]), "first\n");
    let known = server.printed(&["pop", "jobs", "--json"]);
    let start = "{\"queue\":\"jobs\",\"member\":null,\"id\":\"3\",\"receipt\":null,\
                 \"payload\":\"second\",";
    assert!(known.starts_with(start), "{known}");
    assert_eq!(server.printed(&["pop", "void", "jobs", "--count", "9"]), "jobs\tlow\n");
    check(&server.run(&["pop", "jobs"]), 4, b"");
    let waiting = server.client(&["pop", "jobs", "--wait-ms", "-1"]).spawn().unwrap();
    server.put("jobs", "late");
    check(&waiting.wait_with_output().unwrap(), 0, b"late\n");
    assert_eq!(super::member_of(&server.printed(&["stats"]), "present"), "0");
}

#[test]
fn json_has_all_that_is_known_of_a_task() {
    let server = Server::start();
    server.printed(&["put", "jobs", "a\"b", "--key", "k", "--ttr-ms", "5"]);
    let mut put = server.client(&["put", "--json"]);
    let output = put.args([OsStr::from_bytes(b"q\xff"), OsStr::from_bytes(b"p\xfe")]).output();
    check(&output.unwrap(), 0, b"{\"id\":\"2\"}\n");

    let taken = server.printed(&["take", "jobs", "--json"]);
    let receipt = taken.split("\"receipt\":\"").nth(1).unwrap().split('"').next().unwrap();
    let start = format!(
        "{{\"queue\":\"jobs\",\"member\":null,\"id\":\"1\",\"receipt\":\"{receipt}\",\
         \"payload\":\"a\\\"b\",\"key\":\"k\",\"share\":null,\"cost\":1,\"priority\":0,\
         \"state\":\"T\",\"attempts\":1,\"failures\":0,\"reason\":null,\"put_at\":"
    );
    assert!(taken.starts_with(&start), "{taken}");
    assert!(taken.contains("\"purge_at\":null,\"client\":"), "{taken}");
    let acked = server.printed(&["ack", "jobs", receipt, "--json"]);
    assert_eq!(acked, format!("{{\"receipt\":\"{receipt}\",\"ok\":true}}\n"));
    let stale = server.run(&["ack", "jobs", receipt, "--json"]);
    assert_eq!(stale.status.code(), Some(5));
    let stale = String::from_utf8(stale.stdout).unwrap();
    assert!(stale.contains("\"error\":\"STALE "), "{stale}");

    let mut peek = server.client(&["peek", "--json"]);
    let output = peek.arg(OsStr::from_bytes(b"q\xff")).output().unwrap();
    let peeked = String::from_utf8(output.stdout).unwrap();
    assert!(peeked.starts_with("{\"queue_base64\":\"cf8=\",\"member\":null,\"id\":\"2\","));
    assert!(peeked.contains("\"receipt\":null,\"payload_base64\":\"cP4=\","), "{peeked}");
}

#[test]
fn lines_of_stdin_become_tasks() {
    let server = Server::start();
    let input = lines(3_000, |number| format!("task {number}"));
    let ids = lines(3_000, |number| number.to_string());
    check(&server.run_with(&["put", "jobs", "--lines"], input.as_bytes()), 0, ids.as_bytes());
    let peeked = server.printed(&["peek", "jobs", "--count", "3000"]);
    assert_eq!(peeked, lines(3_000, |number| format!("{number}\ttask {number}")));
    check(&server.run_with(&["put", "odd", "--lines"], b"\n\xff"), 0, b"3001\n3002\n");
    let last = server.run(&["peek", "odd", "--from", "max"]);
    check(&last, 0, b"3002\t\xff\n");
    check(&server.run_with(&["put", "odd", "--lines"], b""), 0, b"");
}

#[test]
fn lines_are_put_while_more_are_awaited() {
    let server = Server::start();
    let mut child =
        server.client(&["put", "jobs", "--lines"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for number in 1..=3 {
        writeln!(stdin, "task").unwrap();
        let mut id = String::new();
        stdout.read_line(&mut id).unwrap();
        assert_eq!(id, format!("{number}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_refused_line_is_told_and_ends_the_command() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--capacity", "2"]);
    let complaint =
        check(&server.run_with(&["put", "jobs", "--lines"], b"a\nb\nc\n"), 5, b"1\n2\n");
    assert!(complaint.contains("FULL "), "{complaint}");
    assert!(complaint.contains("(line 3; 2 tasks put, 1 refused)"), "{complaint}");
    server.refused(&["put", "jobs", "d"], "FULL ");
}

#[test]
fn put_and_await_tell_how_a_task_ended() {
    let server = Server::start();
    check(&server.run(&["put", "jobs", "p", "--wait-ms", "0"]), 13, b"1\ttimeout\n");
    let waiting = server.client(&["put", "jobs", "p", "--wait-ms", "-1"]).spawn().unwrap();
    let awaiting = server.client(&["await", "jobs", "1", "--json"]).spawn().unwrap();
    for _ in 0..2 {
        let line = server.printed(&["take", "jobs", "--wait-ms", "-1"]);
        server.done(&["ack", "jobs", line.split('\t').next().unwrap()]);
    }
    check(&waiting.wait_with_output().unwrap(), 0, b"2\tacked\n");
    let acked = b"{\"outcome\":\"acked\",\"state\":\"X\"}\n";
    check(&awaiting.wait_with_output().unwrap(), 0, acked);
    // It is remembered.
    check(&server.run(&["await", "jobs", "1", "--json"]), 0, acked);
    server.refused(&["await", "jobs", "9"], "NOTFOUND ");
    server.put("jobs", "p");
    check(&server.run(&["await", "jobs", "3", "--wait-ms", "0"]), 13, b"timeout\tR\n");
}

#[test]
fn a_result_reaches_who_waits() {
    let server = Server::start();
    let put = ["put", "sums", "6*7", "--wait-ms", "-1", "--result"];
    let waiting = server.client(&put).spawn().unwrap();
    let json = server.client(&[&put[..], &["--json"]].concat()).spawn().unwrap();
    for _ in 0..2 {
        let line = server.printed(&["take", "sums", "--wait-ms", "-1"]);
        server.done(&["ack", "sums", line.split('\t').next().unwrap(), "--result", "42"]);
    }
    let told = waiting.wait_with_output().unwrap();
    assert!(told.stdout.ends_with(b"\tacked\t42\n"), "{told:?}");
    let told = json.wait_with_output().unwrap();
    assert!(told.stdout.ends_with(b"\"outcome\":\"acked\",\"result\":\"42\"}\n"), "{told:?}");
    let nothing = b"{\"outcome\":\"acked\",\"state\":\"X\",\"result\":null}\n";
    check(&server.run(&["await", "sums", "1", "--result", "--json"]), 0, nothing);
}

#[test]
fn put_tells_whether_a_unique_task_is_new() {
    let server = Server::start();
    let put = ["put", "uploads", "a", "--unique", "17.png"];
    check(&server.run(&put), 0, b"1\tnew\n");
    check(&server.run(&put), 0, b"1\tduplicate\n");
    let more = |more: &[&'static str]| server.run(&[&put, more].concat());
    check(&more(&["--json"]), 0, b"{\"id\":\"1\",\"unique\":\"duplicate\"}\n");
    check(&more(&["--wait-ms", "0"]), 13, b"1\tduplicate\ttimeout\n");
    check(&more(&["--on-dup", "replace", "--window", "1h"]), 0, b"1\tduplicate\n");
    let rejected = more(&["--on-dup", "reject"]);
    let complaint = check(&rejected, 5, b"");
    assert!(complaint.contains("EXISTS the task 1 in the queue \"uploads\""), "{complaint}");
    server.printed(&["pop", "uploads"]);
    // Only the window is left, so how the task has ended is unknown.
    check(&more(&["--wait-ms", "-1"]), 0, b"1\tduplicate\t-\n");
    for wrong in [&["--count", "2"][..], &["--window", "0"], &["--on-dup", "both"]] {
        assert_eq!(more(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let alone = server.run(&["put", "uploads", "a", "--window", "1h"]);
    assert_eq!(alone.status.code(), Some(2), "a window is part of what is unique");
}

#[test]
fn the_exit_code_tells_how_an_awaited_task_ended() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--after-ack", "keep"]);
    let mut put = server.client(&["put", "jobs", "--lines", "--wait-ms", "-1"]);
    let mut putting = put.stdin(Stdio::piped()).spawn().unwrap();
    putting.stdin.take().unwrap().write_all(b"a\nb\nc\n").unwrap();
    let next = || {
        let line = server.printed(&["take", "jobs", "--wait-ms", "-1"]);
        line.split('\t').next().unwrap().to_owned()
    };
    server.done(&["ack", "jobs", &next()]);
    server.done(&["bury", "jobs", &next()]);
    check(&server.run(&["await", "jobs", "1"]), 0, b"acked\tD\n");
    check(&server.run(&["await", "jobs", "2"]), 10, b"buried\tB\n");
    next();
    check(&server.run(&["await", "jobs", "3", "--wait-ms", "0"]), 13, b"timeout\tT\n");
    assert_eq!(server.printed(&["kill", "jobs", "3"]), "1\n");
    // The code is that of the first task that was not acknowledged.
    check(&putting.wait_with_output().unwrap(), 10, b"1\tacked\n2\tburied\n3\tkilled\n");

    let expires = ["put", "jobs", "p", "--ttl-ms", "1", "--wait-ms", "-1"];
    check(&server.run(&expires), 11, b"4\texpired\n");
    let killed = server.client(&["put", "jobs", "p", "--wait-ms", "-1"]).spawn().unwrap();
    next();
    assert_eq!(server.printed(&["kill", "jobs", "5"]), "1\n");
    check(&killed.wait_with_output().unwrap(), 12, b"5\tkilled\n");
}

#[test]
fn the_exit_code_tells_where_an_awaited_task_went() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--attempts", "1", "--dead-letter", "dead"]);
    let put = || server.client(&["put", "jobs", "p", "--wait-ms", "-1"]).spawn().unwrap();
    let dead = put();
    let line = server.printed(&["take", "jobs", "--wait-ms", "-1"]);
    let fail = ["fail", "jobs", line.split('\t').next().unwrap(), "--reason", "no good"];
    assert_eq!(server.printed(&fail), "X\n");
    check(&dead.wait_with_output().unwrap(), 14, b"1\tdead\n");

    let moved = put();
    let line = server.printed(&["take", "jobs", "--wait-ms", "-1"]);
    server.printed(&["release", "jobs", line.split('\t').next().unwrap()]);
    assert_eq!(server.printed(&["move", "jobs", "others"]), "1\n");
    check(&moved.wait_with_output().unwrap(), 16, b"3\tmoved\n");
}

#[test]
fn a_failed_task_comes_back_is_buried_or_becomes_a_dead_letter() {
    let server = Server::start();
    let id = server.put("jobs", "p");
    let fail = |more: &[&str]| {
        let receipt = server.take("jobs");
        server.printed(&[&["fail", "jobs", &receipt], more].concat())
    };
    assert_eq!(fail(&[]), "R\n");
    assert_eq!(fail(&["--delay", "0", "--reason", "no net", "--payload", "new"]), "R\n");
    assert_eq!(server.known("jobs", &id, "failures"), "2");
    assert_eq!(server.known("jobs", &id, "reason"), "no net");
    assert_eq!(server.known("jobs", &id, "payload"), "new");
    assert_eq!(fail(&["--delay", "1h", "--json"]).split(',').nth(1), Some("\"state\":\"W\"}\n"));
    assert_eq!(server.printed(&["restart", "jobs", &id]), "R\n");
    server.done(&["queue", "set", "jobs", "--attempts", "1"]);
    assert_eq!(fail(&[]), "B\n");
    assert_eq!(server.printed(&["plow", "jobs"]), "1\n");
    server.refused(&["fail", "jobs", "1-1-1"], "STALE ");
    let receipt = server.take("jobs");
    let long = "x".repeat(1_025);
    server.refused(&["fail", "jobs", &receipt, "--reason", &long], "BADARG ");
}

#[test]
fn tasks_are_moved_and_dead_letters_go_home() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--count", "3"]);
    assert_eq!(server.printed(&["move", "jobs", "others", "--count", "2"]), "2\n");
    assert_eq!(server.printed(&["peek", "others", "--count", "9"]), "4\tp\n5\tp\n");
    assert_eq!(server.printed(&["move", "jobs", "others", "--state", "buried"]), "0\n");
    server.refused(&["move", "jobs", "others", "--state", "taken"], "BADARG ");
    server.refused(&["move", "jobs", "jobs"], "BADARG ");

    server.done(&["queue", "set", "jobs", "--attempts", "1", "--dead-letter", "dead"]);
    let receipt = server.take("jobs");
    assert_eq!(server.printed(&["fail", "jobs", &receipt]), "X\n");
    assert_eq!(server.known("dead", "6", "origin_queue"), "jobs");
    assert_eq!(server.printed(&["redrive", "dead", "--json"]), "{\"count\":1}\n");
    assert_eq!(server.printed(&["peek", "jobs"]), "7\tp\n");

    server.printed(&["join", "t", "m"]);
    server.printed(&["publish", "t", "p"]);
    assert_eq!(server.printed(&["move", "t", "kept", "--member", "m"]), "1\n");
}

#[test]
fn leases_are_released_buried_and_touched() {
    let server = Server::start();
    let id = server.put("jobs", "p");
    let first = server.take("jobs");
    let deadline: u64 = server.printed(&["touch", "jobs", &first]).trim().parse().unwrap();
    let by = ["touch", "jobs", &first, "--by-ms", "5000", "--json"];
    let moved = format!("{{\"receipt\":\"{first}\",\"deadline\":{}}}\n", deadline + 5_000);
    assert_eq!(server.printed(&by), moved);
    let release = ["release", "jobs", &first, "--delay-ms", "3600000", "--priority", "7"];
    assert_eq!(server.printed(&release), "W\n");
    assert_eq!(server.known("jobs", &id, "priority"), "7");

    assert_eq!(server.printed(&["restart", "jobs", &id]), "R\n");
    let second = server.take("jobs");
    server.done(&["bury", "jobs", &second, "--reason", "no good"]);
    assert_eq!(server.known("jobs", &id, "reason"), "no good");
    assert_eq!(server.printed(&["peek", "jobs", "--state", "buried"]), format!("{id}\tp\n"));
    assert_eq!(server.printed(&["dig", "jobs", &id, "--payload", "new"]), "R\n");
}

#[test]
fn many_leases_are_dealt_with_one_by_one() {
    let server = Server::start();
    for payload in ["a", "b", "c"] {
        server.put("jobs", payload);
    }
    let lines = server.printed(&["take", "jobs", "--count", "3"]);
    let receipts: Vec<&str> = lines.lines().map(|line| line.split('\t').next().unwrap()).collect();
    server.done(&["ack", "jobs", receipts[1]]);
    let output = server.run(&[&["release", "jobs"], receipts.as_slice()].concat());
    let expected = format!("{}\tR\n{}\tR\n", receipts[0], receipts[2]);
    let complaint = check(&output, 5, expected.as_bytes());
    assert!(complaint.contains(&format!("{}: STALE ", receipts[1])), "{complaint}");
}

#[test]
fn tasks_are_changed_by_their_ids() {
    let server = Server::start();
    let id = server.put("jobs", "p");
    server.done(&["update", "jobs", &id, "--priority", "-3", "--ttl-ms", "3600000"]);
    assert_eq!(server.known("jobs", &id, "priority"), "-3");
    let ttl: u64 = server.known("jobs", &id, "ttl_at").parse().unwrap();
    let touched = server.printed(&["touch", "jobs", "--id", &id, "--by-ms", "1000"]);
    assert_eq!(touched, format!("{}\n", ttl + 1_000));
    assert_eq!(server.printed(&["switch", "jobs", &id, "--to", "buried"]), "B\n");
    assert_eq!(server.printed(&["plow", "jobs"]), "1\n");
    server.take("jobs");
    assert_eq!(server.printed(&["snatch", "jobs", &id, "--delay-ms", "3600000"]), "W\n");
    let state = server.printed(&["switch", "jobs", &id, "--to", "r", "--json"]);
    assert_eq!(state, "{\"state\":\"R\"}\n");
    assert_eq!(server.printed(&["kill", "jobs", &id, "99"]), "1\n");
    check(&server.run(&["get", "jobs", &id]), 4, b"");
    check(&server.run(&["peek", "jobs"]), 4, b"");
}

#[test]
fn queues_are_made_shown_paused_and_dropped() {
    let server = Server::start();
    let create = ["queue", "create", "jobs", "--ids", "given", "--ttr-ms", "5000"];
    server.done(&create);
    server.refused(&create, "EXISTS ");
    let shown = server.printed(&["queue", "show", "jobs"]);
    for line in ["ids: given\n", "ttr: 5000\n", "ttl: -\n", "paused: none\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    server.refused(&["put", "jobs", "p"], "IDREQUIRED ");
    assert_eq!(server.printed(&["put", "jobs", "p", "--id", "x y"]), "x y\n");
    assert_eq!(server.printed(&["queue", "set", "mails", "--capacity", "9", "--json"]), OK);
    let shown = server.printed(&["queue", "show", "mails", "--json"]);
    assert!(shown.starts_with("{\"ids\":\"sequence\","), "{shown}");
    assert!(shown.contains("\"capacity\":9,\"attempts\":null,"), "{shown}");
    assert!(shown.contains("\"ranking\":\"strict\",\"keylimit\":null,"), "{shown}");
    let end = "\"paused\":\"none\",\"paused_in_until\":null,\"paused_out_until\":null}";
    assert!(shown.trim_end().ends_with(end), "{shown}");

    assert_eq!(server.printed(&["queue", "list"]), "jobs\nmails\n");
    let listed = server.printed(&["queue", "list", "--prefix", "m", "--json"]);
    assert_eq!(listed, "{\"queue\":\"mails\"}\n");
    server.done(&["queue", "pause", "jobs", "out"]);
    check(&server.run(&["take", "jobs"]), 4, b"");
    server.done(&["queue", "pause", "jobs", "in", "--for", "1h"]);
    assert!(
        server.printed(&["queue", "show", "jobs"]).contains("paused: both\npaused_in_until: 1")
    );
    server.done(&["queue", "pause", "jobs"]);
    server.refused(&["put", "jobs", "p", "--id", "z"], "PAUSED ");
    server.done(&["queue", "resume", "jobs"]);
    assert_eq!(server.printed(&["queue", "truncate", "jobs"]), "1\n");
    assert_eq!(server.printed(&["queue", "drop", "jobs", "--json"]), "{\"count\":0}\n");
    server.refused(&["queue", "show", "jobs"], "NOQUEUE ");
}

/// A line for each number from 1 to `last`.
pub(super) fn lines(last: u32, line: impl Fn(u32) -> String) -> String {
    (1..=last).fold(String::new(), |lines, number| lines + &line(number) + "\n")
}

const OK: &str = "{\"ok\":true}\n";

#[test]
fn a_long_list_of_queues_is_printed_whole() {
    let server = Server::start();
    let names = lines(1_500, |number| format!("queue{number:04}"));
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    for name in names.lines() {
        write!(stream, "*3\r\n$3\r\nPUT\r\n$9\r\n{name}\r\n$1\r\np\r\n").unwrap();
    }
    assert_eq!(BufReader::new(stream).lines().take(3_000).count(), 3_000);
    assert_eq!(server.printed(&["queue", "list"]), names);
}

#[test]
fn stats_are_printed_for_a_queue_and_for_all() {
    let server = Server::with_queue();
    server.put("jobs", "p");
    let receipt = server.take("jobs");
    server.done(&["ack", "jobs", &receipt]);
    server.put("jobs", "p");
    assert_eq!(server.figure("jobs", "counts.R"), "1");
    assert_eq!(server.figure("jobs", "transitions.T-X"), "1");
    assert_eq!(server.figure("jobs", "acked"), "1");
    let all = server.printed(&["stats", "--json"]);
    assert!(all.starts_with("{\"counts\":{\"R\":1,"), "{all}");
    assert!(all.contains("\"transitions\":{") && all.contains("\"put\":2,"), "{all}");
    assert_eq!(server.figure("void", "put"), "0");
}

#[test]
fn status_tells_of_all_queues() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p", "--count", "3"]);
    server.take("jobs");
    server.printed(&["put", "jobs", "p", "--delay-ms", "3600000"]);
    server.printed(&["put", "mails", "p"]);
    server.done(&["queue", "pause", "mails", "in"]);
    let table = server.printed(&["status"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..9], ["jobs", "2", "1", "1", "0", "0", "0", "0", "0"], "{table}");
    assert_eq!((rows[2][0], rows[2][10]), ("mails", "in"), "{table}");
    assert_eq!(rows[3][..9], ["(all)", "3", "1", "1", "0", "0", "0", "0", "0"], "{table}");
    let objects = server.printed(&["status", "--prefix", "j", "--json"]);
    let lines: Vec<&str> = objects.lines().collect();
    let start = "{\"queue\":\"jobs\",\"ready\":2,\"taken\":1,\"waiting\":1,\"buried\":0,";
    assert!(
        lines[0].starts_with(start) && lines[0].ends_with(",\"paused\":null,\"dead_letters\":0}"),
        "{objects}"
    );
    assert!(lines[1].starts_with("{\"queue\":null,\"ready\":3,"), "{objects}");
    assert_eq!(lines.len(), 2, "{objects}");
}

#[test]
fn status_tells_dead_letters_apart() {
    let server = Server::start();
    server.done(&["queue", "set", "mail", "--dead-letter", "{mail}-dead"]);
    server.printed(&["put", "mail", "p", "--count", "2"]);
    server.printed(&["put", "{mail}-dead", "p", "--count", "3"]);
    let table = server.printed(&["status"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!((rows[1][0], rows[1][1]), ("mail", "2"), "{table}");
    assert!(rows[1][9].ends_with("ms") || rows[1][9].ends_with('s'), "{table}");
    assert_eq!((rows[2][0], rows[2][1], rows[2][9]), ("{mail}-dead", "3", "(dead)"), "{table}");
    assert_eq!(rows[3][..2], ["(all)", "2"], "{table}");
    assert_eq!(rows[4][..3], ["(dead", "letters)", "3"], "{table}");
    let objects = server.printed(&["status", "--json"]);
    let letters: Vec<&str> =
        objects.lines().filter_map(|it| it.split("letters\":").nth(1)).collect();
    assert_eq!(letters, ["0}", "3}", "3}"], "{objects}");
    let once = server.printed(&["top", "--once", "--interval", "100ms"]);
    let lines: Vec<Vec<&str>> = once.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!((lines[2][0], lines[2][9]), ("{mail}-dead", "(dead)"), "{once}");
    assert_eq!(lines[3][..2], ["(all)", "2"], "{once}");
    assert_eq!(lines[4][..3], ["(dead", "letters)", "3"], "{once}");
}

#[test]
fn an_address_may_have_any_scheme_and_several_places_but_no_path() {
    let server = Server::start();
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let there = &server.address;
    for address in [format!("pinpriq://{there}"), format!("redis://{nowhere},{there}/")] {
        let put = server.run(&["put", "jobs", "p", "--address", &address]);
        assert_eq!(put.status.code(), Some(0), "{address}: {put:?}");
    }
    let output = server.run(&["put", "jobs", "p", "--address", &format!("redis://{there}/1")]);
    check(&output, 2, b"");
    assert_eq!(server.figure("jobs", "put"), "2");
}

#[test]
fn tables_of_queues_take_names_of_any_length() {
    let server = Server::start();
    let name = |letter: &str| letter.repeat(65_000);
    // An argument of a program can be as long as that, and some of these letters are escaped.
    server.printed(&["put", &name("n"), "p"]);
    server.printed(&["put", &name("\u{1}"), "p"]);
    for arguments in [&["status"][..], &["top", "--once", "--interval", "100ms"]] {
        let table = server.printed(arguments);
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths.len() == 4 && widths.iter().all(|width| *width < 300), "{table}");
        assert!(table.contains("nnn…nnn"), "{table}");
    }
    assert!(server.printed(&["status", "--json"]).contains(&name("n")));
}

#[test]
fn a_server_that_is_not_there_or_is_another_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let peer = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let output = pinpriq(&["put", "q", "p", "--address", &address]).output().unwrap();
    let complaint = check(&output, 1, b"");
    assert!(complaint.contains("Is this the address of the RESP door?"), "{complaint}");
    peer.join().unwrap();
    for arguments in [&["stats"][..], &["take", "q", "--exec", "true"], &["ack", "q", "1-1-1"]] {
        let output = pinpriq(arguments).args(["--address", &address]).output().unwrap();
        let complaint = check(&output, 1, b"");
        assert!(complaint.contains("no connection to"), "{complaint}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_command_quietly() {
    let server = Server::start();
    server.printed(&["put", "jobs", "p"]);
    let mut child = server.client(&["peek", "jobs"]).spawn().unwrap();
    drop(child.stdout.take());
    check(&child.wait_with_output().unwrap(), 0, b"");
}
