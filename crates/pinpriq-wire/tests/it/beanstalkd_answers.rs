//! The answers of beanstalkd, byte by byte.

use std::time::Duration;

use pinpriq_wire::beanstalkd::{
    Document, Fault, JobWord, Word, put_buried_job, put_document, put_inserted, put_job,
    put_kicked, put_using, put_watching,
};

/// Returns what was appended.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = b"before ".to_vec();
    write(&mut out);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("before ").unwrap().to_owned()
}

fn document(write: impl FnOnce(&mut Document<'_>)) -> String {
    written(|out| put_document(out, write))
}

#[test]
fn words_are_those_of_the_protocol() {
    let words = [
        (Word::Deleted, "DELETED\r\n"),
        (Word::Released, "RELEASED\r\n"),
        (Word::Buried, "BURIED\r\n"),
        (Word::Kicked, "KICKED\r\n"),
        (Word::Touched, "TOUCHED\r\n"),
        (Word::Paused, "PAUSED\r\n"),
        (Word::NotFound, "NOT_FOUND\r\n"),
        (Word::NotIgnored, "NOT_IGNORED\r\n"),
        (Word::TimedOut, "TIMED_OUT\r\n"),
        (Word::DeadlineSoon, "DEADLINE_SOON\r\n"),
        (Word::Draining, "DRAINING\r\n"),
        (Word::OutOfMemory, "OUT_OF_MEMORY\r\n"),
        (Word::InternalError, "INTERNAL_ERROR\r\n"),
    ];
    for (word, line) in words {
        assert_eq!(word.line(), line.as_bytes());
    }
    let faults = [
        (Fault::BadFormat, "BAD_FORMAT\r\n"),
        (Fault::UnknownCommand, "UNKNOWN_COMMAND\r\n"),
        (Fault::ExpectedCrlf, "EXPECTED_CRLF\r\n"),
        (Fault::JobTooBig, "JOB_TOO_BIG\r\n"),
    ];
    for (fault, line) in faults {
        assert_eq!(fault.line(), line.as_bytes());
    }
}

#[test]
fn lines_end_with_what_they_are_about() {
    assert_eq!(written(|out| put_inserted(out, 1)), "INSERTED 1\r\n");
    assert_eq!(written(|out| put_inserted(out, u64::MAX)), "INSERTED 18446744073709551615\r\n");
    assert_eq!(written(|out| put_buried_job(out, 42)), "BURIED 42\r\n");
    assert_eq!(written(|out| put_kicked(out, 0)), "KICKED 0\r\n");
    assert_eq!(written(|out| put_kicked(out, 4_294_967_295)), "KICKED 4294967295\r\n");
    assert_eq!(written(|out| put_watching(out, 100)), "WATCHING 100\r\n");
    assert_eq!(written(|out| put_using(out, b"default")), "USING default\r\n");
}

#[test]
fn a_job_comes_with_its_length() {
    let job = |word, id, body: &[u8]| written(|out| put_job(out, word, id, body));
    assert_eq!(job(JobWord::Reserved, 7, b"hello"), "RESERVED 7 5\r\nhello\r\n");
    assert_eq!(job(JobWord::Found, 8, b""), "FOUND 8 0\r\n\r\n");
    assert_eq!(job(JobWord::Found, 123, b"\r\n\r\n!"), "FOUND 123 5\r\n\r\n\r\n!\r\n");
}

#[test]
fn tubes_are_listed_under_the_length_of_the_list() {
    let list = document(|document| {
        document.item(b"default");
        document.item(b"a-b+c/d;e.f$g_(h)");
    });
    assert_eq!(list, "OK 34\r\n---\n- default\n- a-b+c/d;e.f$g_(h)\n\r\n");
    assert_eq!(document(|_| ()), "OK 4\r\n---\n\r\n");
}

#[test]
fn a_name_that_no_tube_can_have_stays_on_its_line() {
    let list = document(|document| {
        document.item(b"a b");
        document.item(b"\"\r\n\\");
        document.item(b"");
    });
    assert_eq!(list, "OK 28\r\n---\n- \"a b\"\n- \"\\\"  \\\\\"\n- \"\"\n\r\n");
}

#[test]
fn figures_of_a_job_are_written_as_beanstalkd_does() {
    let stats = document(|document| {
        document.number("id", 1);
        document.quoted("tube", b"default");
        document.word("state", "reserved");
        document.number("pri", 4_294_967_295);
        document.number("age", 10);
        document.number("delay", 0);
        document.number("ttr", 60);
        document.signed("time-left", -1);
        document.number("file", 0);
        document.number("reserves", 1);
        document.number("timeouts", 0);
        document.number("releases", 0);
        document.number("buries", 0);
        document.number("kicks", 0);
    });
    let expected = "OK 160\r\n---\nid: 1\ntube: \"default\"\nstate: reserved\npri: 4294967295\n\
                    age: 10\ndelay: 0\nttr: 60\ntime-left: -1\nfile: 0\nreserves: 1\n\
                    timeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n\r\n";
    assert_eq!(stats, expected);
}

#[test]
fn figures_of_a_server_have_texts_and_times() {
    let stats = document(|document| {
        document.quoted("version", b"1.13");
        document.seconds("rusage-utime", Duration::from_micros(148_125));
        document.seconds("rusage-stime", Duration::from_nanos(12_000_001_999));
        document.word("draining", "false");
        document.word("id", "39a4c1b8a3cb9a4e");
        document.quoted("hostname", b"a \"b\" \\ c\n\x7f");
        document.quoted("os", "#1 SMP für".as_bytes());
    });
    let expected = "OK 149\r\n---\nversion: \"1.13\"\nrusage-utime: 0.148125\n\
                    rusage-stime: 12.000001\ndraining: false\nid: 39a4c1b8a3cb9a4e\n\
                    hostname: \"a \\\"b\\\" \\\\ c  \"\nos: \"#1 SMP für\"\n\r\n";
    assert_eq!(stats, expected);
}
