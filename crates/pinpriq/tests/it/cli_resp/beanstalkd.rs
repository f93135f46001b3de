//! `pinpriq import --from-beanstalkd`, from a beanstalkd that the test plays, so that each moment
//! can be reached. `scripts/beanstalkd-import-check` has a real one, and kills.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use pinpriq_client::blocking::Line;

use super::Server;
use super::played::{Played as PlayedServer, listen};
use crate::peer::pinpriq;
use crate::serving::GUARD;

/// An import, and the connection that it has to beanstalkd.
struct Import {
    child: Option<Child>,
    line: Line,
}

impl Import {
    /// Starts an import into the server at this address, which has opened its connection.
    fn start(address: &str, arguments: &[&str]) -> Self {
        let (listener, port) = listen();
        let mut command = pinpriq(&["import", "--from-beanstalkd", &port, "--address", address]);
        let child = Some(command.args(arguments).stdin(Stdio::null()).spawn().unwrap());
        Self::accept(&listener, child)
    }

    fn accept(listener: &TcpListener, child: Option<Child>) -> Self {
        let mut line = Line::over(listener.accept().unwrap().0).unwrap();
        line.limit_waiting(Some(GUARD));
        let mut import = Self { child, line };
        import.play(&[("stats", &document("max-job-size: 65535\n"))]);
        import
    }

    /// Expects these requests, and gives each its answer.
    #[track_caller]
    fn play(&mut self, script: &[(&str, &str)]) {
        for (request, answer) in script {
            let request = format!("{request}\r\n");
            let got = self.line.bytes(request.len()).unwrap();
            assert_eq!(String::from_utf8_lossy(&got), request);
            self.line.send(format!("{answer}\r\n").as_bytes()).unwrap();
        }
    }

    /// Expects an import to look at this tube, and tells these figures.
    #[track_caller]
    fn tell(&mut self, tube: &str, [ready, delayed, buried, reserved, pause]: [u64; 5]) {
        let figures = format!(
            "name: \"{tube}\"\ncurrent-jobs-ready: {ready}\ncurrent-jobs-reserved: {reserved}\n\
             current-jobs-delayed: {delayed}\ncurrent-jobs-buried: {buried}\n\
             pause-time-left: {pause}\n"
        );
        self.play(&[(&format!("stats-tube {tube}"), &document(&figures))]);
    }

    /// Expects an import to enter the tube `t`, as its first one.
    #[track_caller]
    fn enter(&mut self) {
        let watching = "WATCHING 2";
        self.play(&[("use t", "USING t"), ("watch t", watching), ("ignore default", "WATCHING 1")]);
    }

    /// Expects the end of the import, which asks for nothing more, and returns its code, what it
    /// printed, and what it complained about.
    #[track_caller]
    fn end(mut self) -> (i32, String, String) {
        assert_eq!(self.line.rest().unwrap(), b"", "one request too many");
        let output: Output = self.child.take().unwrap().wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Expects the end of an import that has found nothing.
    #[track_caller]
    fn end_empty(mut self) -> (i32, String, String) {
        self.tell("t", [0; 5]);
        self.tell("t", [0; 5]);
        self.end()
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already, and then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A document, without the end of its last line.
fn document(lines: &str) -> String {
    format!("OK {}\r\n---\n{lines}", lines.len() + 4)
}

/// What is known of a job of the tube `t`.
fn job(state: &str, priority: u32, left: i64) -> String {
    document(&format!("tube: \"t\"\nstate: {state}\npri: {priority}\nttr: 60\ntime-left: {left}\n"))
}

const NO_JOB: &str = "NOT_FOUND";
const DELETED: &str = "DELETED";
const RESERVE: &str = "reserve-with-timeout 0";

/// A table with one tube.
fn table(ready: u64, delayed: u64, buried: u64, left: &str) -> String {
    let row = |name: &str| format!("{name:<5}  {ready:>5}  {delayed:>7}  {buried:>6}  {left:>4}\n");
    format!("tube   ready  delayed  buried  left\n{}{}", row("t"), row("(all)"))
}

#[test]
fn ready_jobs_are_reserved_and_delayed_and_buried_ones_stay_until_they_are_deleted() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &[]);
    import.play(&[("list-tubes", &document("- default\n- t\n"))]);
    import.tell("default", [0; 5]);
    import.tell("t", [2, 3, 1, 0, 0]);
    import.enter();
    // Two ready jobs, the more urgent one first, as beanstalkd hands them out.
    import.play(&[
        (RESERVE, "RESERVED 9 4\r\n\0\r\n\u{7f}"),
        (RESERVE, "RESERVED 3 0\r\n"),
        ("stats-job 9", &job("reserved", 1, 59)),
        ("stats-job 3", &job("reserved", 4_294_967_295, 59)),
        ("delete 9", DELETED),
        ("delete 3", DELETED),
    ]);
    // The first delayed job alone, then with the number behind it, which is another tube's.
    import.play(&[
        ("peek-delayed", "FOUND 20 1\r\nd"),
        ("stats-job 20", &job("delayed", 0, 100)),
        ("delete 20", DELETED),
        ("peek-delayed", "FOUND 30 1\r\ne"),
        ("stats-job 30", &job("delayed", 0, -1)),
        ("stats-job 31", &job("delayed", 7, 0).replace("\"t\"", "\"u\"")),
        ("delete 30", DELETED),
        // Then with three, of which one is no more and one is ready. One is moved too.
        ("peek-delayed", "FOUND 40 1\r\nf"),
        ("stats-job 40", &job("delayed", 0, 9)),
        ("stats-job 41", NO_JOB),
        ("stats-job 42", &job("ready", 0, 0)),
        ("stats-job 43", &job("delayed", 5, 9)),
        ("peek 43", "FOUND 43 1\r\ng"),
        ("delete 40", DELETED),
        ("delete 43", DELETED),
    ]);
    import.play(&[
        ("peek-buried", "FOUND 50 1\r\nh"),
        ("stats-job 50", &job("buried", 2, 0)),
        ("delete 50", DELETED),
    ]);
    // Another round finds nothing, and then it is counted what is left.
    for _ in 0..2 {
        import.play(&[("list-tubes", &document("- default\n- t\n"))]);
        import.tell("default", [0; 5]);
        import.tell("t", [0; 5]);
    }
    assert_eq!(import.end(), (0, table(2, 4, 1, "0"), String::new()));

    let tasks = server.printed(&["export", "t"]);
    let tasks: Vec<&str> = tasks.lines().filter(|it| it.contains("\"task\"")).collect();
    let expected: [&[&str]; 7] = [
        &[r#""ready""#, r#""priority":1"#, r#""ttr_ms":60000"#, r#""payload_base64":"AA0Kfw==""#],
        &[r#""ready""#, r#""priority":4294967295"#, r#""payload":"""#],
        &[r#""waiting""#, r#""ready_at""#, r#""ttr_ms":60000"#, r#""payload":"d""#],
        &[r#""waiting""#, r#""payload":"e""#],
        &[r#""waiting""#, r#""payload":"f""#],
        &[r#""waiting""#, r#""priority":5"#, r#""payload":"g""#],
        &[r#""buried""#, r#""priority":2"#, r#""reason":"buried in beanstalkd""#],
    ];
    assert_eq!(tasks.len(), expected.len(), "{tasks:?}");
    for (task, words) in tasks.iter().zip(expected) {
        assert!(words.iter().all(|words| task.contains(words)), "{task}");
    }
}

#[test]
fn what_somebody_else_takes_meanwhile_is_withdrawn() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [3, 1, 0, 0, 0]);
    import.enter();
    import.play(&[
        (RESERVE, "RESERVED 1 1\r\na"),
        (RESERVE, "RESERVED 2 1\r\nb"),
        (RESERVE, "RESERVED 3 1\r\nc"),
        ("stats-job 1", &job("reserved", 0, 0)),
        // Its time was up, and another worker has finished it already.
        ("stats-job 2", NO_JOB),
        ("stats-job 3", &job("reserved", 0, 0)),
    ]);
    // It is worked on here while beanstalkd is asked to delete it.
    import.play(&[("delete 1", DELETED)]);
    import.play(&[("delete 3", NO_JOB)]);
    import.play(&[("peek-delayed", "FOUND 4 1\r\nd"), ("stats-job 4", &job("delayed", 0, 0))]);
    import.play(&[("delete 4", NO_JOB)]);
    import.tell("t", [0, 0, 0, 2, 0]);
    import.tell("t", [0, 0, 0, 2, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(1, 0, 0, "2")));
    let words = "jobs that somebody else took in beanstalkd while they came in: 2. They went out \
                 again, except for 0\n";
    assert!(told.contains(words), "{told}");
    assert!(told.contains("jobs that workers have reserved stay in beanstalkd: 2. Run"), "{told}");
    assert_eq!(server.printed(&["peek", "t", "--count", "9"]), "1\ta\n");
    assert_eq!(server.figure("t", "counts.W"), "0");
}

#[test]
fn what_was_finished_here_before_it_could_be_withdrawn_is_told() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [1, 0, 0, 0, 0]);
    import.enter();
    import.play(&[(RESERVE, "RESERVED 1 1\r\na"), ("stats-job 1", &job("reserved", 0, 0))]);
    let request = import.line.bytes("delete 1\r\n".len()).unwrap();
    assert_eq!(request, b"delete 1\r\n");
    assert_eq!(server.printed(&["pop", "t"]), "a\n");
    import.line.send(b"NOT_FOUND\r\n").unwrap();
    import.tell("t", [0; 5]);
    let (code, _, told) = import.end();
    assert_eq!(code, 0);
    assert!(told.contains("while they came in: 1. They went out again, except for 1\n"), "{told}");
}

#[test]
fn what_is_refused_here_is_given_back_there() {
    let server = Server::start();
    server.done(&["queue", "create", "t", "--capacity", "1"]);
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [3, 9, 9, 0, 0]);
    import.enter();
    import.play(&[
        (RESERVE, "RESERVED 1 1\r\na"),
        (RESERVE, "RESERVED 2 1\r\nb"),
        (RESERVE, "TIMED_OUT"),
        ("stats-job 1", &job("reserved", 5, 59)),
        ("stats-job 2", &job("reserved", 6, 59)),
        ("delete 1", DELETED),
        ("release 2 6 0", "RELEASED"),
    ]);
    import.tell("t", [2, 9, 9, 0, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (5, table(1, 0, 0, "20")));
    assert!(told.starts_with("pinpriq: FULL "), "{told}");
    assert!(told.ends_with(" (job 2 of the tube t)\n"), "{told}");
    assert_eq!(server.printed(&["peek", "t", "--count", "9"]), "1\ta\n");
}

#[test]
fn a_delayed_job_that_is_refused_is_not_touched() {
    let server = Server::start();
    server.done(&["queue", "create", "t"]);
    server.done(&["queue", "pause", "t", "in"]);
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [0, 1, 0, 0, 0]);
    import.enter();
    import.play(&[("peek-delayed", "FOUND 4 1\r\nd"), ("stats-job 4", &job("delayed", 0, 5))]);
    import.tell("t", [0, 1, 0, 0, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (5, table(0, 0, 0, "1")));
    assert!(told.starts_with("pinpriq: PAUSED "), "{told}");
}

#[test]
fn without_the_answer_to_a_delete_a_task_stays() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [2, 0, 0, 0, 0]);
    import.enter();
    import.play(&[
        (RESERVE, "RESERVED 1 1\r\na"),
        (RESERVE, "RESERVED 2 1\r\nb"),
        ("stats-job 1", &job("reserved", 0, 59)),
        ("stats-job 2", &job("reserved", 0, 59)),
        ("delete 1", DELETED),
    ]);
    assert_eq!(import.line.bytes(10).unwrap(), b"delete 2\r\n");
    import.line.end_input().unwrap();
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(1, 0, 0, "-")));
    let unsure = "jobs that may be on both sides now: 1. The next import puts those";
    assert!(told.contains(unsure), "{told}");
    assert!(told.contains("was lost: the server closed the connection\n"), "{told}");
    assert_eq!(server.printed(&["peek", "t", "--count", "9"]), "1\ta\n2\tb\n");
}

#[test]
fn only_what_was_confirmed_here_is_deleted_there() {
    let (listener, address) = listen();
    let mut import = Import::start(&address, &["--tube", "t"]);
    let mut server = PlayedServer::accept(&listener);
    import.tell("t", [2, 0, 0, 0, 0]);
    import.enter();
    import.play(&[
        (RESERVE, "RESERVED 1 1\r\na"),
        (RESERVE, "RESERVED 2 1\r\nb"),
        ("stats-job 1", &job("reserved", 0, 59)),
        ("stats-job 2", &job("reserved", 8, 59)),
    ]);
    server.expect("PUT t a PRIORITY 0 TTR 60000", "$1\r\n1\r\n");
    server.break_at("PUT t b PRIORITY 8 TTR 60000");
    import.play(&[("delete 1", DELETED), ("release 2 8 0", "RELEASED")]);
    import.tell("t", [1, 0, 0, 0, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(1, 0, 0, "1")));
    assert!(told.contains("jobs that may be on both sides now: 1."), "{told}");
    assert!(told.ends_with(&format!("{address} closed the connection\n")), "{told}");
}

#[test]
fn jobs_of_a_paused_tube_are_moved_too_and_the_pause_is_told() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [2, 0, 0, 0, 70]);
    import.enter();
    import.play(&[
        (RESERVE, "TIMED_OUT"),
        (RESERVE, "DEADLINE_SOON"),
        ("peek-ready", "FOUND 1 1\r\na"),
        ("reserve-job 1", "RESERVED 1 1\r\na"),
        ("peek-ready", "FOUND 2 1\r\nb"),
        ("reserve-job 2", NO_JOB),
        ("stats-job 1", &job("reserved", 0, 59)),
        ("delete 1", DELETED),
        (RESERVE, "TIMED_OUT"),
        ("peek-ready", NO_JOB),
    ]);
    let (code, printed, told) = import.end_empty();
    assert_eq!((code, printed), (0, table(1, 0, 0, "0")));
    assert!(told.contains("`pinpriq queue pause 't' out --for 70s` does that\n"), "{told}");

    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [1, 0, 0, 0, 70]);
    import.enter();
    import.play(&[(RESERVE, "TIMED_OUT"), ("peek-ready", "FOUND 1 1\r\na")]);
    import.play(&[("reserve-job 1", "UNKNOWN_COMMAND")]);
    import.tell("t", [1, 0, 0, 0, 70]);
    let (code, _, told) = import.end();
    assert_eq!(code, 1);
    assert!(
        told.contains("since it is older than 1.12: run the import again after the pause"),
        "{told}"
    );
}

#[test]
fn a_dry_run_only_looks() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--dry-run"]);
    import.play(&[("list-tubes", &document("- default\n- t\n"))]);
    import.tell("default", [0; 5]);
    import.tell("t", [2, 3, 4, 5, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(2, 3, 4, "5")));
    assert!(told.contains("would stay in beanstalkd: 5."), "{told}");
    assert_eq!(server.printed(&["queue", "list"]), "");

    let mut import = Import::start(&server.address, &["--dry-run", "--tube", "t", "--tube", "u"]);
    import.tell("t", [2, 0, 0, 0, 0]);
    import.play(&[("stats-tube u", NO_JOB)]);
    let (code, printed, told) = import.end();
    let rows = "u          0        0       0     0\n(all)      2        0       0     0\n";
    assert_eq!((code, &*told), (0, ""));
    assert!(printed.ends_with(rows), "{printed}");
}

#[test]
fn a_signal_ends_an_import_after_its_batch() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [1, 1, 0, 0, 0]);
    import.enter();
    import.play(&[(RESERVE, "RESERVED 1 1\r\na")]);
    let id = import.child.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    import.play(&[("stats-job 1", &job("reserved", 0, 59)), ("delete 1", DELETED)]);
    import.tell("t", [0, 1, 0, 0, 0]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(1, 0, 0, "1")));
    assert!(told.contains("stopped by a signal: run the import again"), "{told}");
}

#[test]
fn an_answer_that_does_not_fit_ends_an_import() {
    let server = Server::start();
    let mut import = Import::start(&server.address, &["--tube", "t"]);
    import.tell("t", [0, 0, 1, 0, 0]);
    import.enter();
    import.play(&[("peek-buried", "FOUND 1 1\r\na"), ("stats-job 1", &job("buried", 0, 0))]);
    import.play(&[("delete 1", "INTERNAL_ERROR")]);
    let (code, printed, told) = import.end();
    assert_eq!((code, printed), (1, table(0, 0, 0, "-")));
    assert!(told.contains("may be on both sides now: 1."), "{told}");
    assert!(told.contains("answered 'INTERNAL_ERROR' to delete\n"), "{told}");
    assert_eq!(server.figure("t", "counts.B"), "1");

    let (listener, port) = listen();
    let child = pinpriq(&["import", "--from-beanstalkd", &port]).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"-ERR unknown command\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let words = "answered '-ERR unknown command' to stats. Is this the address of a beanstalkd?\n";
    assert!(told.ends_with(words), "{told}");
}

#[test]
fn wrong_usage_is_told() {
    let table: [(&[&str], &str); 4] = [
        (&["import"], "--from-beanstalkd HOST:PORT"),
        (&["import", "file", "--from-beanstalkd", "a:1"], "cannot be used with"),
        (&["import", "file", "--tube", "t"], "cannot be used with"),
        (&["import", "--from-beanstalkd", "a:1", "--tube", "a\r\ndelete 1"], "is no tube"),
    ];
    for (line, words) in table {
        let output = pinpriq(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(words), "{line:?}: {told}");
    }
}
