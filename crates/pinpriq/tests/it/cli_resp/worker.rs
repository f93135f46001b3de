//! `take --exec` against a real server.

use std::fs::OpenOptions;
use std::io::{BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Server, Worker, fifo};
use crate::peer::check;

/// Writes a line to a named pipe, which somebody reads.
fn write_to(fifo: &str, line: &str) {
    let mut pipe = OpenOptions::new().write(true).open(fifo).unwrap();
    writeln!(pipe, "{line}").unwrap();
}

/// Waits for what is written to a named pipe.
fn read_from(fifo: &str) -> String {
    let mut text = String::new();
    OpenOptions::new().read(true).open(fifo).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A worker that goes on while the test does other things.
fn start(server: &Server, arguments: &[&str]) -> Worker {
    Worker::start(server.client(&[&["take"], arguments].concat()))
}

/// A command of this server's client that another program begins.
fn begun_by(words: &[&str], server: &Server, client: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(client.get_program()).args(client.get_args());
    command.env("PINPRIQ_RESP_ADDRESS", &server.address);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn what_succeeds_is_acknowledged() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    server.printed(&["put", "jobs", "first", "--key", "k"]);
    check(&server.run_with(&["put", "jobs"], &b"x".repeat(300_000)), 0, b"2\n");
    let command = "echo \"$PINPRIQ_QUEUE $PINPRIQ_ID $PINPRIQ_ATTEMPTS ${PINPRIQ_KEY-none} \
                   $PINPRIQ_RESP_ADDRESS $(wc -c) ${PINPRIQ_RECEIPT%-*}\" >> \"$TOLD\"";
    let mut worker = server.client(&["take", "void", "jobs", "--exec", command, "--once"]);
    let output = worker.env("TOLD", &told).env("PINPRIQ_KEY", "of another").output().unwrap();
    check(&output, 0, b"");
    let words: Vec<String> = text_of(&told).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[..6], ["jobs", "1", "1", "k", &server.address, "5"]);
    assert_eq!(words[7..13], ["jobs", "2", "1", "none", &server.address, "300000"]);
    assert_eq!(server.figure("jobs", "acked"), "2");
}

#[test]
fn commands_are_told_headers_and_the_trace() {
    let server = Server::with_queue();
    let mut put = server.client(&["put", "jobs", "x", "--header", "tenant.id=a=b"]);
    check(&put.env("TRACEPARENT", "00-ab-cd-01").output().unwrap(), 0, b"1\n");
    let command = "echo \"$PINPRIQ_HEADER_TENANT_ID $TRACEPARENT ${TRACESTATE-none} \
                   ${PINPRIQ_HEADER_OTHER-none}\"";
    let mut worker = server.client(&["take", "jobs", "--exec", command, "--count", "1"]);
    let worker = worker.env("TRACESTATE", "its own").env("PINPRIQ_HEADER_OTHER", "of another");
    check(&worker.output().unwrap(), 0, b"a=b 00-ab-cd-01 none none\n");
    let wrong = server.run(&["put", "jobs", "x", "--header", "tenant"]);
    let complaint = check(&wrong, 2, b"");
    assert!(complaint.contains("a header is written NAME=VALUE"), "{complaint}");
    server.refused(&["put", "jobs", "x", "--header", "A=1"], "'A'");
}

#[test]
fn output_of_commands_goes_through_and_input_may_stay_unread() {
    let server = Server::with_queue();
    check(&server.run_with(&["put", "jobs"], &b"x".repeat(300_000)), 0, b"1\n");
    let output = server.run(&["take", "jobs", "--exec", "echo said", "--count", "1"]);
    check(&output, 0, b"said\n");
    assert_eq!(server.figure("jobs", "acked"), "1");
}

#[test]
fn what_fails_comes_back_later_each_time() {
    let server = Server::with_queue();
    let id = server.put("jobs", "p");
    let put_at: u64 = server.known("jobs", &id, "put_at").parse().unwrap();
    // The first delay is short, and the second twice of what is long already.
    let fails = ["take", "jobs", "--exec", "exit 3", "--count", "1", "--backoff-ms"];
    for (backoff, delay) in [("1", 1), ("3600000", 7_200_000)] {
        let complaint = server.complained(&[&fails[..], &[backoff]].concat());
        let told = format!("comes back in {delay} ms\n");
        assert!(complaint.contains("task 1 of jobs: exit code 3, attempt "), "{complaint}");
        assert!(complaint.ends_with(&told), "{complaint}");
    }
    assert_eq!(server.known("jobs", &id, "state"), "W");
    assert_eq!(server.known("jobs", &id, "attempts"), "2");
    let ready_at: u64 = server.known("jobs", &id, "ready_at").parse().unwrap();
    assert!(ready_at >= put_at + 7_200_000, "{ready_at}, put at {put_at}");
}

#[test]
fn what_fails_too_often_is_buried_with_a_reason() {
    let server = Server::with_queue();
    let table = [
        ("exit 7", "exit code 7"),
        ("kill -9 $$", "signal 9"),
        ("/nonexistent/command 2>&-", "exit code 127"),
    ];
    for (command, reason) in table {
        let id = server.put("jobs", "p");
        let worker = ["take", "jobs", "--exec", command, "--once", "--attempts-max", "1"];
        let complaint = server.complained(&worker);
        let told = format!("{reason}, after 1 attempt: buried\n");
        assert!(complaint.ends_with(&told), "{complaint}");
        assert_eq!(server.known("jobs", &id, "state"), "B");
        assert_eq!(server.known("jobs", &id, "reason"), reason);
    }
}

#[test]
fn many_jobs_work_at_a_time() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (fifo(dir.path(), "here"), fifo(dir.path(), "there"));
    let here_word = format!("echo > {here}; read x < {there}");
    let there_word = format!("read x < {here}; echo > {there}");
    // Neither command ends without the other.
    server.put("jobs", &here_word);
    server.put("jobs", &there_word);
    let worker = ["take", "jobs", "--exec", "sh", "--jobs", "2", "--count", "2"];
    check(&server.run(&worker), 0, b"");
    assert_eq!(server.figure("jobs", "acked"), "2");
}

#[test]
fn a_worker_waits_for_tasks_until_it_is_told_to_stop() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let started = fifo(dir.path(), "started");
    let worker = start(&server, &["jobs", "--exec", &format!("cat > {started}"), "--jobs", "3"]);
    for payload in ["one", "two"] {
        server.put("jobs", payload);
        assert_eq!(read_from(&started), payload);
    }
    worker.signal("-TERM");
    assert_eq!(
        worker.end(),
        "pinpriq: stopping; a second signal kills the commands that are running\n"
    );
    assert_eq!(server.figure("jobs", "acked"), "2");
}

#[test]
fn a_lease_is_renewed_while_the_command_runs() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let go = fifo(dir.path(), "go");
    let id = server.put("jobs", "p");
    let command = format!("read x < {go}");
    let options = ["jobs", "--exec", &command, "--ttr-ms", "12000", "--count", "1"];
    let worker = start(&server, &options);
    let first = loop {
        match server.known("jobs", &id, "lease_until") {
            none if none == "-" => {}
            until => break until,
        }
    };
    while server.known("jobs", &id, "lease_until") == first {
        // Passes the time until the next look, unless the task ends, which it must not.
        check(&server.run(&["await", "jobs", &id, "--wait-ms", "100"]), 13, b"timeout\tT\n");
    }
    write_to(&go, "go");
    assert_eq!(worker.end(), "");
    assert_eq!(server.figure("jobs", "acked"), "1");
}

#[test]
fn a_cancel_ends_the_command_unless_it_is_done_with_its_task() {
    for (command, figure) in [("exec cat", "cancelled"), ("trap 'exit 0' TERM; cat", "acked")] {
        let server = Server::with_queue();
        let dir = tempfile::tempdir().unwrap();
        let (started, never) = (fifo(dir.path(), "started"), fifo(dir.path(), "never"));
        let id = server.put("jobs", "p");
        let command = format!("echo > {started}; {command} {never}");
        let worker = start(&server, &["jobs", "--exec", &command, "--count", "1"]);
        read_from(&started);
        let cancel = ["cancel", "jobs", &id, "--reason", "no longer wanted", "--grace", "1h"];
        assert_eq!(server.printed(&cancel), "T\n");
        let told = worker.end();
        assert_eq!(told.contains("cancelled: no longer wanted"), figure == "cancelled", "{told}");
        assert_eq!(server.figure("jobs", figure), "1");
    }
}

#[test]
fn a_signal_lets_the_command_finish() {
    for signal in ["-TERM", "-INT"] {
        let server = Server::with_queue();
        let dir = tempfile::tempdir().unwrap();
        let (started, go) = (fifo(dir.path(), "started"), fifo(dir.path(), "go"));
        server.put("jobs", "p");
        server.put("jobs", "another");
        let command = format!("echo > {started}; read x < {go}");
        let mut worker = start(&server, &["jobs", "--exec", &command]);
        read_from(&started);
        worker.signal(signal);
        assert!(worker.line().contains("stopping; a second signal kills"));
        write_to(&go, "go");
        assert_eq!(worker.end(), "");
        assert_eq!(server.figure("jobs", "acked"), "1");
        assert_eq!(server.figure("jobs", "counts.R"), "1");
    }
}

#[test]
fn a_second_signal_kills_the_command_and_gives_the_task_back() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let (started, never) = (fifo(dir.path(), "started"), fifo(dir.path(), "never"));
    let id = server.put("jobs", "p");
    let command = format!("trap '' TERM INT; echo > {started}; cat {never}");
    let mut worker = start(&server, &["jobs", "--exec", &command]);
    read_from(&started);
    worker.signal("-TERM");
    assert!(worker.line().contains("stopping;"));
    worker.signal("-TERM");
    let told = "pinpriq: task 1 of jobs: the command was killed, the task is released\n";
    assert_eq!(worker.end(), told);
    assert_eq!(server.known("jobs", &id, "state"), "R");
}

#[test]
fn a_command_hears_that_its_terminal_is_gone_and_its_task_is_given_back() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let (started, never) = (fifo(dir.path(), "started"), fifo(dir.path(), "never"));
    let id = server.put("jobs", "p");
    // Tests that were begun by nohup ignore the signal, and so would what they begin.
    let start = |command: &str| {
        let client = server.client(&["take", "jobs", "--exec", command]);
        Worker::start(begun_by(&["env", "--default-signal=HUP"], &server, &client))
    };
    let mut worker = start(&format!("echo > {started}; cat {never}"));
    read_from(&started);
    worker.signal("-HUP");
    // The command may end before the worker has said that it stops.
    let mut told = worker.line();
    // What a shell says is no other request when the system has said so.
    worker.signal("-HUP");
    told.push_str(&worker.end());
    let released = "pinpriq: task 1 of jobs: the command was killed, the task is released\n";
    assert!(told.contains(released) && told.contains("stopping;"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    assert_eq!(server.known("jobs", &id, "state"), "R");

    // A command may tidy up.
    let worker =
        start(&format!("trap 'echo heard >&2; exit 0' HUP; echo > {started}; read x < {never}"));
    read_from(&started);
    worker.signal("-HUP");
    let told = worker.end();
    assert!(told.contains("heard\n") && told.contains("stopping;"), "{told}");
    assert_eq!(server.figure("jobs", "acked"), "1");
}

#[test]
fn a_worker_without_a_terminal_goes_on_after_a_hang_up() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let started = fifo(dir.path(), "started");
    let client = server.client(&["take", "jobs", "--exec", &format!("cat > {started}")]);
    let worker = Worker::start(begun_by(&["nohup"], &server, &client));
    for payload in ["one", "two"] {
        server.put("jobs", payload);
        assert_eq!(read_from(&started), payload);
        worker.signal("-HUP");
    }
    worker.signal("-TERM");
    assert!(worker.end().ends_with("kills the commands that are running\n"));
}

#[test]
fn a_worker_says_what_it_works_on_and_its_leases_have_a_name() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let (started, go) = (fifo(dir.path(), "started"), fifo(dir.path(), "go"));
    server.put("jobs", "p");
    let command = format!("echo > {started}; read x < {go}");
    let mut worker = start(&server, &["jobs", "ot\u{1b}her", "--exec", &command, "--jobs", "2"]);
    let mut line = String::new();
    worker.stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "pinpriq: working on jobs, ot\\u{1b}her, 2 commands at a time\n");
    read_from(&started);
    let leases = server.printed(&["leases", "jobs"]);
    assert!(leases.contains(&format!("-{}\t", worker.child.id())), "{leases}");
    write_to(&go, "");
    worker.signal("-TERM");
    worker.end();
}

#[test]
fn what_commands_leave_behind_is_collected_by_process_1() {
    let server = Server::with_queue();
    // A child that outlives its parent, and a look at what is left of it.
    let command = "(true & exec true) & wait; \
                   for try in 1 2 3 4 5 6 7 8 9; do \
                     cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' > \"$TOLD\"; \
                     grep -qx 0 \"$TOLD\" && break; \
                   done; cat \"$TOLD\"; cat /proc/1/cmdline | tr '\\0' ' ' | grep -c 'take jobs'";
    let dir = tempfile::tempdir().unwrap();
    server.put("jobs", "p");
    let unshare = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let may = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output();
    if !may.is_ok_and(|output| output.status.success()) {
        println!("NOT RUN: this process may not make another process 1");
        return;
    }
    let client = server.client(&["take", "jobs", "--exec", command, "--once"]);
    let mut unshared = begun_by(&unshare, &server, &client);
    let output = unshared.env("TOLD", dir.path().join("told")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told, "0\n1\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.figure("jobs", "acked"), "1");
}

#[test]
fn a_command_may_end_its_lease_itself() {
    let server = Server::with_queue();
    server.put("jobs", "p");
    let command =
        format!("{} ack \"$PINPRIQ_QUEUE\" \"$PINPRIQ_RECEIPT\"", env!("CARGO_BIN_EXE_pinpriq"));
    let complaint = server.complained(&["take", "jobs", "--exec", &command, "--count", "1"]);
    let told = "pinpriq: task 1 of jobs: the command succeeded, but the task was not acknowledged: \
                the command or somebody else has finished or moved it (STALE ";
    assert!(complaint.starts_with(told), "{complaint}");
    assert_eq!(server.figure("jobs", "acked"), "1");
}

#[test]
fn a_command_that_fails_may_have_moved_its_task_itself() {
    let server = Server::with_queue();
    let id = server.put("jobs", "p");
    let command = format!(
        "{} bury jobs \"$PINPRIQ_RECEIPT\" --reason own; exit 1",
        env!("CARGO_BIN_EXE_pinpriq")
    );
    for (max, deed) in [("5", "given back"), ("1", "buried")] {
        let complaint = server.complained(&[
            "take",
            "jobs",
            "--exec",
            &command,
            "--once",
            "--attempts-max",
            max,
        ]);
        let told = format!(
            "but the task was not {deed}: the command or somebody else has finished or moved it"
        );
        assert!(complaint.contains(&told), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert_eq!(server.known("jobs", &id, "reason"), "own");
        assert_eq!(server.printed(&["plow", "jobs"]), "1\n");
    }
}

#[test]
fn a_task_whose_workers_died_is_buried_without_running_the_command() {
    let server = Server::with_queue();
    let id = server.put("jobs", "p");
    for _ in 0..2 {
        server.printed(&["take", "jobs", "--wait-ms", "-1", "--ttr-ms", "1"]);
    }
    // What is taken here comes back once its last lease is over.
    let worker = ["take", "jobs", "--exec", "echo it ran", "--count", "1", "--attempts-max", "2"];
    let output = server.run(&worker);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    let told = "failed 2 times, while 2 are allowed: not run again";
    let reason = server.known("jobs", &id, "reason");
    assert_eq!(reason, format!("{told}; the last time: lease expired"));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint, format!("pinpriq: task 1 of jobs: {told}: buried\n"));

    assert_eq!(server.printed(&["dig", "jobs", &id]), "R\n");
    assert_eq!(server.known("jobs", &id, "failures"), "0");
    check(&server.run(&worker), 0, b"it ran\n");
}

#[test]
fn what_was_given_back_without_a_failure_is_run_again() {
    let server = Server::with_queue();
    server.put("jobs", "p");
    for _ in 0..3 {
        let receipt = server.take("jobs");
        server.printed(&["release", "jobs", &receipt]);
    }
    let command = "echo $PINPRIQ_ATTEMPTS $PINPRIQ_FAILURES";
    let worker = ["take", "jobs", "--exec", command, "--once", "--attempts-max", "1"];
    check(&server.run(&worker), 0, b"4 0\n");
}

#[test]
fn a_command_may_want_its_task_to_be_tried_later() {
    let server = Server::with_queue();
    let id = server.put("jobs", "p");
    let put_at: u64 = server.known("jobs", &id, "put_at").parse().unwrap();
    let worker = |max: &str, backoff: &str| {
        let later = ["take", "jobs", "--exec", "exit 75", "--count", "1"];
        let output =
            server.run(&[&later[..], &["--attempts-max", max, "--backoff-ms", backoff]].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    // However often it is tried, it has not failed, and is never buried.
    for attempt in 1..=3 {
        let told = format!("attempt {attempt}: comes back in 0 ms\n");
        assert_eq!(worker("1", "0"), format!("pinpriq: task 1 of jobs: exit code 75, {told}"));
    }
    assert_eq!(server.known("jobs", &id, "failures"), "0");
    assert_eq!(server.known("jobs", &id, "attempts"), "3");
    worker("1", "3600000");
    assert_eq!(server.known("jobs", &id, "state"), "W");
    let ready_at: u64 = server.known("jobs", &id, "ready_at").parse().unwrap();
    assert!(ready_at >= put_at + 8 * 3_600_000, "{ready_at}, put at {put_at}");
}

#[test]
fn a_queue_decides_what_becomes_of_what_fails() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--attempts", "2", "--backoff", "1ms"]);
    let worker = ["take", "jobs", "--exec", "echo broken >&2; exit 3", "--count"];
    let id = server.put("jobs", "p");
    let complaint = server.complained(&[&worker[..], &["2"]].concat());
    let expected = "broken\n\
        pinpriq: task 1 of jobs: exit code 3, attempt 1: comes back after the back-off of its \
        queue\nbroken\npinpriq: task 1 of jobs: exit code 3, after 2 attempts: buried\n";
    assert_eq!(complaint, expected);
    assert_eq!(server.known("jobs", &id, "state"), "B");
    assert_eq!(server.known("jobs", &id, "failures"), "2");
    assert_eq!(server.known("jobs", &id, "reason"), "exit code 3: broken");

    server.done(&["queue", "set", "jobs", "--dead-letter", "dead", "--attempts", "1"]);
    assert_eq!(server.printed(&["plow", "jobs"]), "1\n");
    let complaint = server.complained(&[&worker[..], &["1"]].concat());
    let told = "exit code 3, after 1 attempt: moved to dead, as a dead letter\n";
    assert!(complaint.ends_with(told), "{complaint}");
    let letter = server.printed(&["peek", "dead"]);
    let letter = letter.split('\t').next().unwrap();
    assert_eq!(server.known("dead", letter, "reason"), "exit code 3: broken");
    assert_eq!(server.known("dead", letter, "origin_failures"), "1");
}

#[test]
fn flags_of_a_worker_win_over_the_queue_except_that_it_may_give_up_first() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--attempts", "3", "--dead-letter", "dead"]);
    server.done(&["queue", "set", "jobs", "--backoff", "1h"]);
    let fails = |id: &str, flags: &[&str]| {
        let worker = ["take", "jobs", "--exec", "exit 3", "--count", "1"];
        let complaint = server.complained(&[&worker[..], flags].concat());
        complaint.replace("pinpriq: task ", "").replace(id, "it")
    };
    let id = server.put("jobs", "p");
    let told = fails(&id, &["--backoff", "0"]);
    assert_eq!(told, "it of jobs: exit code 3, attempt it: comes back in 0 ms\n");
    let told = fails("none", &["--attempts-max", "2"]);
    assert!(told.ends_with(": exit code 3, after 2 attempts: buried\n"), "{told}");
    assert_eq!(server.known("jobs", &id, "state"), "B");

    // At the last failure that the queue allows the queue decides, whatever the flags say.
    server.done(&["queue", "set", "jobs", "--attempts", "1"]);
    server.put("jobs", "p");
    for max in ["1", "9"] {
        server.put("jobs", "p");
        let told = fails("none", &["--attempts-max", max]);
        assert!(told.ends_with("moved to dead, as a dead letter\n"), "{told}");
    }
    assert_eq!(server.figure("jobs", "dead"), "2");
}

#[test]
fn what_is_tried_later_waits_as_the_queue_has_what_fails_wait() {
    let server = Server::start();
    server.done(&["queue", "create", "jobs", "--backoff", "2h", "--backoff-max", "90m"]);
    server.put("jobs", "p");
    let complaint = server.complained(&["take", "jobs", "--exec", "exit 75", "--count", "1"]);
    assert!(complaint.ends_with(": comes back in 5400000 ms\n"), "{complaint}");
}

#[test]
fn what_fails_too_late_has_expired() {
    let server = Server::with_queue();
    server.printed(&["put", "jobs", "p", "--ttl-ms", "1000"]);
    let command = format!("{} await jobs 1 --wait-ms 1500; exit 3", env!("CARGO_BIN_EXE_pinpriq"));
    let complaint = server.complained(&["take", "jobs", "--exec", &command, "--count", "1"]);
    let told = "exit code 3, attempt 1: its time to live had passed, so it has expired\n";
    assert!(complaint.ends_with(told), "{complaint}");
    assert_eq!(server.figure("jobs", "expired"), "1");
    assert_eq!(server.figure("jobs", "failures"), "1");
}

#[test]
fn a_command_may_bury_its_task_at_once_and_its_last_line_says_why() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let never = fifo(dir.path(), "never");
    let id = server.put("jobs", "p");
    // What it leaves behind keeps its stderr open, and is not waited for.
    let command =
        format!("(read x < {never}) >&- & echo first >&2; printf 'caf\\351 \\n\\n' >&2; exit 65");
    let output = server.run(&["take", "jobs", "--exec", &command, "--count", "1"]);
    assert_eq!(output.status.code(), Some(0));
    let complaint = String::from_utf8_lossy(&output.stderr);
    let reason = "exit code 65: caf\u{fffd}";
    let told = "exit code 65, after 1 attempt: buried";
    let expected = format!("first\ncaf\u{fffd} \n\npinpriq: task 1 of jobs: {told}\n");
    assert_eq!(complaint, expected);
    assert_eq!(server.known("jobs", &id, "reason"), reason);
    write_to(&never, "");
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let server = Server::with_queue();
    let dir = tempfile::tempdir().unwrap();
    let never = fifo(dir.path(), "never");
    let id = server.put("jobs", "p");
    // The first ends when it is asked to, the second only when it is killed.
    for command in [format!("cat {never}; true"), format!("trap '' TERM; cat {never}; true")] {
        let limited = ["take", "jobs", "--exec", &command, "--timeout", "50ms", "--count", "1"];
        let output = server.run(&[&limited[..], &["--attempts-max", "1"]].concat());
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(server.known("jobs", &id, "state"), "B");
        let reason = server.known("jobs", &id, "reason");
        assert_eq!(reason, "timed out after 50 ms");
        server.printed(&["plow", "jobs"]);
    }
    let quick = ["take", "jobs", "--exec", "true", "--timeout", "1h", "--count", "1"];
    check(&server.run(&quick), 0, b"");
}
