//! The answers of beanstalkd, byte by byte, and how a client reads them.

use std::time::Duration;

use pinpriq_proto::wire::beanstalkd::{
    Answer, DecodedAnswer, Document, Fault, JobWord, LINE_BYTES_MAX, MalformedAnswer, Word,
    decode_answer, put_document, put_inserted, put_job, put_kicked, put_list, put_using,
    put_watching,
};
use proptest::prelude::*;

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

/// Every kind of answer with its bytes.
const ANSWERS: [(&[u8], Answer<'static>); 11] = [
    (b"INSERTED 7\r\n", Answer::Line(b"INSERTED 7")),
    (b"NOT_FOUND\r\n", Answer::Line(b"NOT_FOUND")),
    (b"\r\n", Answer::Line(b"")),
    (b"OKAY\r\n", Answer::Line(b"OKAY")),
    (b"RESERVED_NOT 1 5\r\n", Answer::Line(b"RESERVED_NOT 1 5")),
    (
        b"RESERVED 18446744073709551615 5\r\nhello\r\n",
        Answer::Job { word: JobWord::Reserved, id: u64::MAX, body: b"hello" },
    ),
    (b"FOUND 0 0\r\n\r\n", Answer::Job { word: JobWord::Found, id: 0, body: b"" }),
    (b"FOUND 1 3\r\n\r\n\0\r\n", Answer::Job { word: JobWord::Found, id: 1, body: b"\r\n\0" }),
    (b"OK 14\r\n---\n- default\n\r\n", Answer::Document(b"---\n- default\n")),
    (b"OK 10\r\n0123456789\r\n", Answer::Document(b"0123456789")),
    (b"OK 0\r\n\r\n", Answer::Document(b"")),
];

#[test]
fn answers_are_read_when_they_are_complete() {
    for (bytes, answer) in ANSWERS {
        let text = bytes.escape_ascii();
        for shorter in 0..bytes.len() {
            let found = decode_answer(&bytes[..shorter], 14);
            assert_eq!(found, Ok(DecodedAnswer::Incomplete), "{text} at {shorter}");
        }
        let whole = Ok(DecodedAnswer::Whole { answer, length: bytes.len() });
        assert_eq!(decode_answer(bytes, 14), whole, "{text}");
        assert_eq!(decode_answer(&[bytes, b"DELETED\r\n"].concat(), 14), whole, "{text}");
    }
}

#[test]
fn malformed_answers_are_refused() {
    let answers: [(&[u8], MalformedAnswer); 21] = [
        (b"RESERVED\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED \r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 1\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 1 \r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 1 2 3\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED  1 2\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 1 02\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 1 -2\r\n", MalformedAnswer::InvalidLine),
        (b"RESERVED 18446744073709551616 2\r\n", MalformedAnswer::InvalidLine),
        (b"FOUND 1 2x\r\n", MalformedAnswer::InvalidLine),
        (b"OK\r\n", MalformedAnswer::InvalidLine),
        (b"OK 1 2\r\n", MalformedAnswer::InvalidLine),
        (b"OK 18446744073709551616\r\n", MalformedAnswer::InvalidLine),
        (b"a\rb\r\n", MalformedAnswer::InvalidLine),
        (b"a\nb\r\n", MalformedAnswer::InvalidLine),
        (b"OK 15\r\n", MalformedAnswer::TooLarge),
        (b"FOUND 1 15\r\n", MalformedAnswer::TooLarge),
        (b"FOUND 1 18446744073709551615\r\n", MalformedAnswer::TooLarge),
        (b"FOUND 1 2\r\nabc\n", MalformedAnswer::MissingLineEnd),
        (b"OK 2\r\nab\n\n", MalformedAnswer::MissingLineEnd),
        (&[b'x'; LINE_BYTES_MAX], MalformedAnswer::LineTooLong),
    ];
    for (bytes, malformed) in answers {
        let text = bytes.escape_ascii();
        assert_eq!(decode_answer(bytes, 14), Err(malformed), "{text}");
        let before = decode_answer(&bytes[..bytes.len() - 1], 14);
        assert_eq!(before, Ok(DecodedAnswer::Incomplete), "{text}");
    }
}

/// Any answer, owned.
#[derive(Clone, Debug)]
enum Owned {
    Inserted(u64),
    Word(Word),
    Job(JobWord, u64, Vec<u8>),
    List(Vec<Vec<u8>>),
}

fn owned() -> impl Strategy<Value = Owned> {
    let word = proptest::sample::select(&[Word::Deleted, Word::NotFound, Word::Paused][..]);
    let job_word = proptest::sample::select(&[JobWord::Reserved, JobWord::Found][..]);
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        any::<u64>().prop_map(Owned::Inserted),
        word.prop_map(Owned::Word),
        (job_word, any::<u64>(), bytes()).prop_map(|(word, id, body)| Owned::Job(word, id, body)),
        proptest::collection::vec(bytes(), 0..5).prop_map(Owned::List),
    ]
}

proptest! {
    #[test]
    fn answers_come_back_as_they_were_put(
        answers in proptest::collection::vec(owned(), 0..10),
    ) {
        let mut bytes = Vec::new();
        for answer in &answers {
            match answer {
                Owned::Inserted(id) => put_inserted(&mut bytes, *id),
                Owned::Word(word) => bytes.extend_from_slice(word.line()),
                Owned::Job(word, id, body) => put_job(&mut bytes, *word, *id, body),
                Owned::List(names) => {
                    let mut progress = 0;
                    while !put_list(names, &mut progress, &mut bytes, 1) {}
                    assert_eq!(progress, names.len() + 1, "a piece is one name");
                }
            }
        }
        let mut rest = &bytes[..];
        for expected in &answers {
            let found = decode_answer(rest, 1_000).unwrap();
            let DecodedAnswer::Whole { answer, length } = found else { panic!("{found:?}") };
            match (expected, answer) {
                (Owned::Inserted(id), Answer::Line(line)) => {
                    prop_assert_eq!(line.to_vec(), format!("INSERTED {id}").into_bytes());
                }
                (Owned::Word(word), Answer::Line(line)) => {
                    prop_assert_eq!(word.line().strip_suffix(b"\r\n"), Some(line));
                }
                (Owned::Job(..), Answer::Job { word, id, body }) => {
                    let back = Owned::Job(word, id, body.to_vec());
                    prop_assert_eq!(format!("{expected:?}"), format!("{back:?}"));
                }
                (Owned::List(names), Answer::Document(document)) => {
                    let lines = document.split(|byte| *byte == b'\n').count();
                    prop_assert_eq!(lines, names.len() + 2, "the last line is ended too");
                }
                (expected, answer) => panic!("{expected:?} is read as {answer:?}"),
            }
            rest = &rest[length..];
        }
        prop_assert_eq!(rest, b"");
    }
}
