//! Files that are not histories are refused, with the line.

use pinpriq_testing::history::{History, Recorder, Unreadable};

use crate::history::story::{ack, everything};

#[track_caller]
fn refused(text: &str, wanted: usize, words: &str) {
    match History::read(text.as_bytes()) {
        Err(Unreadable::Line { line, reason }) => {
            assert_eq!(line, wanted, "{reason}");
            assert!(reason.contains(words), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_history_is_refused_with_its_line() {
    let good = everything().text();
    refused("{}\n", 1, "record");
    refused(&format!("{good}\n"), good.lines().count() + 1, "EOF");
    refused(&good[..good.len() - 5], good.lines().count(), "EOF");
    let begins =
        r#"{"record":"invoked","at_us":9,"client":1,"call":1,"operation":{"ack":{"receipt":"r"}}}"#;
    let ends = r#"{"record":"answered","at_us":10,"call":1,"outcome":"done"}"#;
    assert!(History::read(format!("{begins}\n{ends}\n").as_bytes()).is_ok());
    refused(&format!("{begins}\n{begins}\n"), 2, "begins a second time");
    refused(&format!("{begins}\n{ends}\n{ends}\n"), 3, "ends a second time");
    refused(ends, 1, "never began");
    refused(&format!("{begins}\n{}", ends.replace("10", "8")), 2, "ends before it begins");
    let put = ends.replace("\"done\"", r#"{"put":{"id":"1"}}"#);
    refused(&format!("{begins}\n{put}"), 2, "cannot be answered");
    refused(&begins.replace("receipt", "reciept"), 1, "reciept");
}

#[test]
fn a_transaction_has_an_outcome_for_each_operation() {
    let begins = |operations: &str| {
        let operation = format!(r#"{{"transaction":{{"operations":[{operations}]}}}}"#);
        format!(r#"{{"record":"invoked","at_us":9,"client":1,"call":1,"operation":{operation}}}"#)
    };
    let ends = |outcome: &str| {
        format!(r#"{{"record":"answered","at_us":10,"call":1,"outcome":{outcome}}}"#)
    };
    let two = begins(r#"{"ack":{"receipt":"r"}},{"fail":{"receipt":"s","delay_ms":0}}"#);
    for outcome in
        [r#"{"transaction":["done",{"turned":"R"}]}"#, r#"{"refused":"EXECABORT"}"#, r#""unknown""#]
    {
        let text = format!("{two}\n{}\n", ends(outcome));
        assert!(History::read(text.as_bytes()).is_ok(), "{text}");
    }
    for outcome in [
        r#"{"transaction":["done"]}"#,
        r#"{"transaction":["done","done"]}"#,
        r#"{"transaction":["done","unknown"]}"#,
        r#""done""#,
    ] {
        refused(&format!("{two}\n{}\n", ends(outcome)), 2, "cannot be answered");
    }
    refused(&begins(r#"{"plow":{"queue":"q"}}"#), 1, "cannot be part");
    let single =
        r#"{"record":"invoked","at_us":9,"client":1,"call":1,"operation":{"ack":{"receipt":"r"}}}"#;
    let all = ends(r#"{"transaction":["done"]}"#);
    refused(&format!("{single}\n{all}\n"), 2, "cannot be answered");
}

#[test]
fn what_is_recorded_is_read() {
    let recorder = Recorder::new(Vec::new());
    let client = recorder.client();
    let call = recorder.invoke(5, client, ack("r")).unwrap();
    recorder.answer(7, call, pinpriq_testing::history::Outcome::Done).unwrap();
    recorder.event(8, pinpriq_testing::history::Event::ServerKilled).unwrap();
    let written = recorder.finish().unwrap();
    let expected = [
        r#"{"record":"invoked","at_us":5,"client":0,"call":0,"operation":{"ack":{"receipt":"r"}}}"#,
        r#"{"record":"answered","at_us":7,"call":0,"outcome":"done"}"#,
        r#"{"record":"happened","at_us":8,"event":"server-killed"}"#,
    ];
    assert_eq!(String::from_utf8(written.clone()).unwrap(), expected.join("\n") + "\n");
    assert!(History::read(written.as_slice()).is_ok());
}
