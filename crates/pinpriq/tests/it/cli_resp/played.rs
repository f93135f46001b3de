//! Commands against a server that the test plays, where a real one could not be made to do what is
//! tested: to lose connections at a certain moment, to refuse for a while, to be slow.

use std::io::Write as _;
use std::net::TcpListener;

use pinpriq_client::blocking::Line;
use pinpriq_proto::wire::resp::{Decoded, RequestDecoder, RequestLimits};

use super::Worker;
use crate::peer::{check, pinpriq};

/// What `HELLO 3` is answered, as far as it matters.
const WELCOME: &str = "%1\r\n$5\r\nproto\r\n:3\r\n";

/// One task.
const TASK: &str = "*1\r\n%5\r\n$5\r\nqueue\r\n$1\r\nq\r\n$2\r\nid\r\n$1\r\n7\r\n\
                    $7\r\nreceipt\r\n$5\r\n7-1-1\r\n$7\r\npayload\r\n$0\r\n\r\n\
                    $8\r\nattempts\r\n:1\r\n";

/// How a worker asks to hear of cancels.
const CANCELS: &str = "CLIENT CANCELS ON";

/// No task.
const NOTHING: &str = "*0\r\n";

/// The server's side of a connection.
pub(super) struct Played {
    line: Line,
}

impl Played {
    /// Waits for a connection and welcomes it.
    pub(super) fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().unwrap();
        let mut played = Self { line: Line::over(stream).unwrap() };
        let greeting = played.command();
        assert!(greeting.starts_with("HELLO 3 SETNAME "), "{greeting}");
        played.answer(WELCOME);
        played
    }

    /// The words of the next command; nothing if there are no more. A worker may hear of cancels.
    pub(super) fn command(&mut self) -> String {
        loop {
            let command = self.any_command();
            if command != CANCELS {
                return command;
            }
            self.answer("+OK\r\n");
        }
    }

    /// Answers what the first connection of a worker asks before there is another.
    fn let_hear_of_cancels(&mut self) {
        assert_eq!(self.any_command(), CANCELS);
        self.answer("+OK\r\n");
    }

    fn any_command(&mut self) -> String {
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        loop {
            let bytes = self.line.unused();
            if let Decoded::Request { length } = decoder.decode(bytes).unwrap() {
                let words: Vec<_> = decoder.arguments(bytes).iter().collect();
                let words = String::from_utf8(words.join(&b' ')).unwrap();
                self.line.note_used(length);
                return words;
            }
            if !self.line.receive().unwrap() {
                assert!(self.line.unused().is_empty(), "the last command is cut short");
                return String::new();
            }
        }
    }

    /// Answers the next command, which must be this one.
    #[track_caller]
    pub(super) fn expect(&mut self, command: &str, reply: &str) {
        assert_eq!(self.command(), command);
        self.answer(reply);
    }

    pub(super) fn answer(&mut self, reply: &str) {
        self.line.send(reply.as_bytes()).unwrap();
    }

    /// Answers a take, which must be the next command.
    fn give(&mut self, tasks: &str) {
        let take = self.command();
        assert!(take.starts_with("TAKE QUEUES 1 q TTR "), "{take}");
        self.answer(tasks);
    }

    /// Ends the connection once there is another command.
    pub(super) fn break_at(mut self, command: &str) {
        assert_eq!(self.command(), command);
    }
}

pub(super) fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A worker on queue q.
fn start(address: &str, arguments: &[&str]) -> Worker {
    let mut command = pinpriq(&["take", "q", "--address", address, "--exec"]);
    command.args(arguments);
    Worker::start(command)
}

#[test]
fn what_a_command_came_to_is_told_again_over_a_new_connection() {
    let table = [
        ("+OK\r\n", ""),
        (
            "-STALE that lease is over\r\n",
            "pinpriq: task 7 of q: the command succeeded, but the connection was lost, and the \
             task has been finished or moved since, perhaps by the first report (STALE that lease \
             is over)\n",
        ),
    ];
    for (answer, told) in table {
        let (listener, address) = listen();
        let worker = start(&address, &["true", "--count", "1"]);
        let mut first = Played::accept(&listener);
        first.give(TASK);
        first.break_at("ACK q 7-1-1");
        let mut second = Played::accept(&listener);
        second.expect("ACK q 7-1-1", answer);
        assert_eq!(worker.end(), told);
    }
}

#[test]
fn it_is_told_twice_and_no_more() {
    let (listener, address) = listen();
    let worker = start(&address, &["true", "--count", "1"]);
    let mut first = Played::accept(&listener);
    first.give(TASK);
    first.break_at("ACK q 7-1-1");
    let mut second = Played::accept(&listener);
    second.expect("ACK q 7-1-1", "-CLOSING the server is shutting down\r\n");
    let told = worker.end();
    let expected = "pinpriq: task 7 of q: the command succeeded, but it is not known whether the \
                    task was acknowledged: CLOSING the server is shutting down\n";
    assert_eq!(told, expected);
}

/// Another task.
fn next_task() -> String {
    TASK.replace("7-1-1", "8-1-2").replace("\r\n7\r\n", "\r\n8\r\n")
}

/// What acknowledges the first task and takes another, which is not waited for.
const TAKE_DONE: &str = "TAKE QUEUES 1 q TTR 30000 WITHMETA DONE q 7-1-1";

#[test]
fn a_task_is_acknowledged_together_with_the_next_take_except_for_the_last() {
    let (listener, address) = listen();
    let worker = start(&address, &["true", "--count", "2"]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    played.expect(TAKE_DONE, &next_task());
    played.expect("ACK q 8-1-2", "+OK\r\n");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_worker_waits_only_once_its_task_is_acknowledged() {
    let (listener, address) = listen();
    let mut worker = start(&address, &["true", "--count", "2"]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    played.expect(TAKE_DONE, NOTHING);
    assert_eq!(played.command(), "TAKE QUEUES 1 q TTR 30000 WAIT 30000 WITHMETA");
    worker.signal("-TERM");
    worker.line();
    played.expect("", NOTHING);
    assert_eq!(worker.end(), "");
}

#[test]
fn a_worker_that_stops_when_nothing_is_left_asks_no_more() {
    let (listener, address) = listen();
    let worker = start(&address, &["true", "--once"]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    played.expect(TAKE_DONE, NOTHING);
    assert_eq!(played.command(), "");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_refused_take_with_an_acknowledgement_is_followed_by_each_alone() {
    let stale = "pinpriq: task 7 of q: the command succeeded, but the task was not acknowledged: \
                 the command or somebody else has finished or moved it (STALE it is over)\n";
    let table = [
        ("-STALE it is over\r\n", "-STALE it is over\r\n", stale),
        ("-BUSY the disk is full\r\n", "+OK\r\n", ""),
        ("-CROSSSHARD these queues live apart\r\n", "+OK\r\n", ""),
        ("-BADARG DONE is unknown\r\n", "+OK\r\n", ""),
    ];
    for (refusal, answer, told) in table {
        let (listener, address) = listen();
        let worker = start(&address, &["true", "--count", "2"]);
        let mut played = Played::accept(&listener);
        played.give(TASK);
        played.expect(TAKE_DONE, refusal);
        played.expect("ACK q 7-1-1", answer);
        played.expect("TAKE QUEUES 1 q TTR 30000 WAIT 30000 WITHMETA", &next_task());
        played.expect("ACK q 8-1-2", "+OK\r\n");
        assert_eq!(worker.end(), told);
    }
}

#[test]
fn an_acknowledgement_that_was_lost_with_a_take_is_told_again_by_itself() {
    let lost = "pinpriq: task 7 of q: the command succeeded, but the connection was lost, and the \
                task has been finished or moved since, perhaps by the first report (STALE it is \
                over)\n";
    for (answer, told) in [("+OK\r\n", ""), ("-STALE it is over\r\n", lost)] {
        let (listener, address) = listen();
        let worker = start(&address, &["true", "--count", "2"]);
        let mut first = Played::accept(&listener);
        first.give(TASK);
        first.break_at(TAKE_DONE);
        let mut second = Played::accept(&listener);
        second.expect("ACK q 7-1-1", answer);
        second.give(&next_task());
        second.expect("ACK q 8-1-2", "+OK\r\n");
        assert_eq!(worker.end(), told);
    }
}

#[test]
fn a_task_that_comes_with_an_acknowledgement_while_the_worker_stops_is_given_back() {
    let (listener, address) = listen();
    let mut worker = start(&address, &["true"]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    assert_eq!(played.command(), TAKE_DONE);
    worker.signal("-TERM");
    worker.line();
    played.answer(&next_task());
    played.expect("RELEASE q 8-1-2", "$1\r\nR\r\n");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_worker_that_was_told_to_stop_takes_nothing_with_its_last_acknowledgement() {
    let (listener, address) = listen();
    let dir = tempfile::tempdir().unwrap();
    let (started, go) = (super::fifo(dir.path(), "started"), super::fifo(dir.path(), "go"));
    let mut worker = start(&address, &[&format!("echo > {started}; read x < {go}")]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    assert_eq!(std::fs::read_to_string(&started).unwrap(), "\n");
    worker.signal("-TERM");
    worker.line();
    std::fs::OpenOptions::new().write(true).open(&go).unwrap().write_all(b"go\n").unwrap();
    played.expect("ACK q 7-1-1", "+OK\r\n");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_lost_connection_is_opened_again_for_takes() {
    let (listener, address) = listen();
    let worker = start(&address, &["true", "--count", "1"]);
    let mut first = Played::accept(&listener);
    first.give(NOTHING);
    first.command();
    drop(first);
    let mut second = Played::accept(&listener);
    second.give("-BUSY try again later\r\n");
    drop(second);
    let mut third = Played::accept(&listener);
    third.give(NOTHING);
    third.give(TASK);
    third.expect("ACK q 7-1-1", "+OK\r\n");
    let told = worker.end();
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(told.ends_with("pinpriq: BUSY try again later\n"), "{told}");
}

#[test]
fn a_lease_is_renewed_over_a_new_connection() {
    let (listener, address) = listen();
    let dir = tempfile::tempdir().unwrap();
    let go = super::fifo(dir.path(), "go");
    let command = format!("read x < {go}");
    let worker = start(&address, &[&command, "--count", "1", "--ttr-ms", "3"]);
    let mut first = Played::accept(&listener);
    first.give(TASK);
    first.break_at("TOUCH q 7-1-1");
    let mut second = Played::accept(&listener);
    for _ in 0..3 {
        second.expect("TOUCH q 7-1-1", ":1\r\n");
    }
    std::fs::OpenOptions::new().write(true).open(&go).unwrap().write_all(b"go\n").unwrap();
    loop {
        match second.command().as_str() {
            "TOUCH q 7-1-1" => second.answer(":1\r\n"),
            last => {
                assert_eq!(last, "ACK q 7-1-1");
                second.answer("+OK\r\n");
                break;
            }
        }
    }
    assert_eq!(worker.end(), "");
}

#[test]
fn a_command_whose_lease_is_lost_is_ended_and_its_task_left_alone() {
    let (listener, address) = listen();
    let dir = tempfile::tempdir().unwrap();
    let (started, never) = (super::fifo(dir.path(), "started"), super::fifo(dir.path(), "never"));
    // The shell waits for a process that it started, so both have to be ended.
    let command = format!("echo > {started}; cat {never}; true");
    let worker = start(&address, &[&command, "--count", "1", "--ttr-ms", "3"]);
    let mut played = Played::accept(&listener);
    played.give(TASK);
    assert_eq!(std::fs::read_to_string(&started).unwrap(), "\n");
    for answer in [":1\r\n", "-STALE that lease is over\r\n"] {
        played.expect("TOUCH q 7-1-1", answer);
    }
    assert_eq!(played.command(), "", "no word of a task that went to others");
    let told = "pinpriq: task 7 of q: the lease was lost, so the command was ended\n";
    assert_eq!(worker.end(), told);
}

#[test]
fn a_command_whose_task_is_cancelled_is_ended_and_its_task_released() {
    // Told at once, or at the next renewal.
    let push = ">5\r\n$6\r\ncancel\r\n$1\r\nq\r\n$1\r\n7\r\n$5\r\n7-1-1\r\n$2\r\nno\r\n";
    for (ttr, pushed) in [("3", ""), ("3600000", push)] {
        let (listener, address) = listen();
        let dir = tempfile::tempdir().unwrap();
        let (started, never) =
            (super::fifo(dir.path(), "started"), super::fifo(dir.path(), "never"));
        let command = format!("echo > {started}; exec cat {never}");
        let worker = start(&address, &[&command, "--count", "1", "--ttr-ms", ttr]);
        let mut played = Played::accept(&listener);
        played.give(TASK);
        assert_eq!(std::fs::read_to_string(&started).unwrap(), "\n");
        played.answer(pushed);
        if pushed.is_empty() {
            played.expect("TOUCH q 7-1-1", "-CANCELLED no\r\n");
        }
        played.expect("RELEASE q 7-1-1", "$1\r\nX\r\n");
        let told = "pinpriq: task 7 of q: the task was cancelled: no, so the command was ended\n";
        assert_eq!(worker.end(), told);
    }
}

#[test]
fn a_task_that_comes_while_the_worker_stops_is_given_back() {
    let (listener, address) = listen();
    let mut worker = start(&address, &["echo unreachable; exit 1"]);
    let mut first = Played::accept(&listener);
    first.command();
    worker.signal("-TERM");
    worker.line();
    // The end of input has come, and the task nevertheless.
    first.expect("", TASK);
    let mut second = Played::accept(&listener);
    second.expect("RELEASE q 7-1-1", "$1\r\nR\r\n");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_second_signal_waits_for_no_answer() {
    let (listener, address) = listen();
    let mut worker = start(&address, &["true"]);
    let mut first = Played::accept(&listener);
    first.command();
    worker.signal("-TERM");
    worker.line();
    worker.signal("-TERM");
    assert_eq!(worker.end(), "");
}

#[test]
fn each_outcome_has_an_exit_code_of_its_own() {
    let table = [
        ("acked", 0),
        ("buried", 10),
        ("expired", 11),
        ("killed", 12),
        ("timeout", 13),
        ("dead", 14),
        ("evicted", 15),
        ("moved", 16),
    ];
    for (outcome, code) in table {
        let (listener, address) = listen();
        let command = pinpriq(&["await", "q", "7", "--address", &address]).spawn().unwrap();
        let mut played = Played::accept(&listener);
        played.expect(
            "AWAIT q 7 WAIT -1",
            &format!("*2\r\n${}\r\n{outcome}\r\n$1\r\nX\r\n", outcome.len()),
        );
        let output = command.wait_with_output().unwrap();
        check(&output, code, format!("{outcome}\tX\n").as_bytes());
    }
}

#[test]
fn a_failure_is_told_again_over_a_new_connection() {
    let (listener, address) = listen();
    let worker = start(&address, &["exit 3", "--count", "1"]);
    let mut first = Played::accept(&listener);
    first.give(TASK);
    first.break_at("QUEUE SHOW q");
    let mut second = Played::accept(&listener);
    second.expect("QUEUE SHOW q", "%1\r\n$7\r\nbackoff\r\n:5\r\n");
    second.break_at("FAIL q 7-1-1 REASON exit code 3");
    let mut third = Played::accept(&listener);
    third.expect("FAIL q 7-1-1 REASON exit code 3", "$1\r\nW\r\n");
    let told = "pinpriq: task 7 of q: exit code 3, attempt 1: comes back after the back-off of its \
                queue\n";
    assert_eq!(worker.end(), told);
}

#[test]
fn a_failure_in_a_queue_that_says_nothing_waits_as_is_usual() {
    for refusal in ["-NOQUEUE there is no queue q\r\n", "-ERR unknown\r\n"] {
        let (listener, address) = listen();
        let worker = start(&address, &["exit 3", "--count", "1"]);
        let mut played = Played::accept(&listener);
        played.give(TASK);
        played.expect("QUEUE SHOW q", refusal);
        played.expect("FAIL q 7-1-1 REASON exit code 3 DELAY 1000", "$1\r\nW\r\n");
        let told = "pinpriq: task 7 of q: exit code 3, attempt 1: comes back in 1000 ms\n";
        assert_eq!(worker.end(), told);
    }
}

/// What a listener in topic q asks for.
const TAKE_OF_MEMBER: &str = "TAKE QUEUES 1 q WAIT 20000 WITHMETA MEMBER m";

#[test]
fn a_listener_without_a_lane_joins_again() {
    let (listener, address) = listen();
    let mut command = pinpriq(&["listen", "q", "m", "--address", &address]);
    let mut worker = Worker::start({
        command.args(["--count", "1"]);
        command
    });
    let mut first = Played::accept(&listener);
    first.expect("JOIN q m LEASE 60000", ":1\r\n");
    assert_eq!(worker.line(), "pinpriq: listening to q as m\n");
    first.expect(TAKE_OF_MEMBER, "-NOTFOUND there is no member m\r\n");
    // It is lost before it was known to be joined again.
    first.break_at("JOIN q m LEASE 60000");
    let mut second = Played::accept(&listener);
    second.expect(TAKE_OF_MEMBER, "-NOTFOUND there is no member m\r\n");
    second.expect("JOIN q m LEASE 60000", ":9\r\n");
    second.expect(TAKE_OF_MEMBER, TASK);
    second.expect("ACK q 7-1-1", "+OK\r\n");
    let mut last = Played::accept(&listener);
    last.expect("STATS q MEMBER m", "-NOTFOUND the lane has ended\r\n");
    last.expect("LEAVE q m", ":1\r\n");
    let told = worker.end();
    assert!(told.ends_with(": joined again\n"), "{told}");
    assert_eq!(told.matches("joined again").count(), 1, "{told}");
}

#[test]
fn a_listener_acknowledges_with_its_next_take_and_falls_back_when_its_lane_has_ended() {
    let (listener, address) = listen();
    let arguments = ["listen", "q", "m", "--stay", "--count", "3", "--address", &address];
    let mut worker = Worker::start(pinpriq(&arguments));
    let mut first = Played::accept(&listener);
    first.expect("JOIN q m LEASE 60000", ":1\r\n");
    worker.line();
    first.expect(TAKE_OF_MEMBER, TASK);
    first.expect("TAKE QUEUES 1 q WITHMETA MEMBER m DONE q 7-1-1", &next_task());
    assert_eq!(first.command(), "TAKE QUEUES 1 q WITHMETA MEMBER m DONE q 8-1-2");
    let gone = "-NOTFOUND the lane has ended\r\n";
    first.answer(gone);
    first.expect("ACK q 8-1-2", gone);
    first.expect(TAKE_OF_MEMBER, gone);
    first.expect("JOIN q m LEASE 60000", ":2\r\n");
    first.expect(TAKE_OF_MEMBER, TASK);
    first.expect("ACK q 7-1-1", "+OK\r\n");
    let mut last = Played::accept(&listener);
    last.expect("BEAT m", "+OK\r\n");
    let told = worker.end();
    assert!(told.contains("task 8 of q: it was printed, but the task was not ackn"), "{told}");
    assert!(told.ends_with(": joined again\n"), "{told}");
}

#[test]
fn signs_of_life_have_a_connection_of_their_own() {
    let (listener, address) = listen();
    let arguments = ["listen", "q", "m", "--stay", "--lease-ms", "1000", "--address", &address];
    let mut worker = Worker::start(pinpriq(&arguments));
    let mut first = Played::accept(&listener);
    first.expect("JOIN q m LEASE 1000", ":1\r\n");
    assert_eq!(first.command(), "TAKE QUEUES 1 q WAIT 333 WITHMETA MEMBER m");
    // The take is not answered, and still there are signs of life.
    let mut second = Played::accept(&listener);
    for _ in 0..2 {
        second.expect("BEAT m", "+OK\r\n");
    }
    second.break_at("BEAT m");
    let mut third = Played::accept(&listener);
    third.expect("BEAT m", "-NOTFOUND there is no member m\r\n");
    third.expect("JOIN q m LEASE 1000", ":2\r\n");
    assert_eq!(worker.line(), "pinpriq: listening to q as m\n");
    assert!(worker.line().ends_with(": joined again\n"));
    // What the take finds out is known already.
    first.answer("-NOTFOUND the lane has ended\r\n");
    assert_eq!(first.command(), "TAKE QUEUES 1 q WAIT 333 WITHMETA MEMBER m");
    worker.signal("-TERM");
    assert_eq!(worker.line(), "pinpriq: stopping\n");
    // The end of input has come, and a task nevertheless: it goes back with its connection.
    first.expect("", TASK);
    loop {
        match third.command().as_str() {
            "BEAT m" => third.answer("+OK\r\n"),
            end => break assert_eq!(end, ""),
        }
    }
    let mut last = Played::accept(&listener);
    last.expect("BEAT m", "+OK\r\n");
    assert_eq!(worker.end(), "");
}

#[test]
fn a_refused_take_ends_the_worker() {
    let (listener, address) = listen();
    let arguments = ["take", "q", "--address", &address, "--exec", "true", "--jobs", "2"];
    let worker = pinpriq(&arguments).spawn().unwrap();
    let mut first = Played::accept(&listener);
    first.let_hear_of_cancels();
    let mut second = Played::accept(&listener);
    second.command();
    first.give("-NOPERM you may not\r\n");
    // The other job has to end as well.
    second.expect("", NOTHING);
    let complaint = check(&worker.wait_with_output().unwrap(), 5, b"");
    assert!(complaint.ends_with("\npinpriq: NOPERM you may not\n"), "{complaint}");
    assert_eq!(complaint.lines().count(), 2, "{complaint}");
}

/// What `STATS` is answered, as far as it matters.
fn figures(put: u32, acked: u32, ready: u32, oldest: &str) -> String {
    format!(
        "%4\r\n$6\r\ncounts\r\n%2\r\n$1\r\nR\r\n:{ready}\r\n$1\r\nB\r\n:1\r\n\
         $3\r\nput\r\n:{put}\r\n$5\r\nacked\r\n:{acked}\r\n\
         $15\r\noldest_ready_ms\r\n{oldest}\r\n"
    )
}

#[test]
fn rates_are_those_of_the_servers_own_clock() {
    let (listener, address) = listen();
    let command = pinpriq(&["status", "--address", &address]).spawn().unwrap();
    let mut played = Played::accept(&listener);
    let moments = [
        ("1000", figures(5, 0, 9, "_"), figures(5, 0, 2, ":1"), figures(0, 7, 0, "_")),
        ("3000", figures(65, 20, 9, "_"), figures(25, 20, 7, ":61000"), figures(0, 6, 0, "_")),
    ];
    for (now, all, a, longer) in moments {
        let facts = format!(
            "# Server\r\npinpriq_version:1\r\nuptime_in_seconds:1\r\nserver_time_ms:{now}\r\n"
        );
        let facts = format!("${}\r\n{facts}\r\n", facts.len());
        played.expect("INFO", &facts);
        played.expect("STATS", &all);
        let names = "*2\r\n$1\r\nb\r\n*2\r\n$1\r\na\r\n$6\r\nlonger\r\n";
        played.expect("QUEUE LIST COUNT 50", names);
        played.expect("STATS a", &a);
        played.expect("STATS longer", &longer);
        played.expect("INFO Server", &facts);
    }
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let table = "\
queue   ready  taken  waiting  buried  zombie  done  put/s  acked/s  oldest  paused
a           7      0        0       1       0     0     10       10    1m1s       -
longer      0      0        0       1       0     0      0        0       -       -
(all)       9      0        0       1       0     0     30       10       -       -
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), table);
    let told = "pinpriq: there are more than 50 queues: --count shows more of them, --prefix \
                others\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), told);
}
