//! Bytes that are not a letter, and why.

use pinpriq_proto::letters::Malformed::{self, OutOfRange, Rest, Short, UnknownKind};
use pinpriq_proto::letters::{decode_command, decode_output};

use super::bytes;

fn refused_commands(lines: &[(&str, Malformed)]) {
    for (line, why) in lines {
        assert_eq!(decode_command(&bytes(line), |_| ()), Err(*why), "{line}");
    }
}

fn refused_outputs(lines: &[(&str, Malformed)]) {
    for (line, why) in lines {
        assert_eq!(decode_output(&bytes(line)), Err(*why), "{line}");
    }
}

#[test]
fn unknown_kinds_are_refused() {
    let unknown = |what, kind| UnknownKind { what, kind };
    refused_commands(&[
        ("", Short),
        ("00", unknown("command", 0)),
        ("2e", unknown("command", 0x2e)),
        ("ff", unknown("command", 0xff)),
    ]);
    refused_outputs(&[
        ("", Short),
        ("00", unknown("output", 0)),
        ("13", unknown("output", 0x13)),
        ("ff", unknown("output", 0xff)),
    ]);
}

#[test]
fn a_length_that_is_only_declared_is_refused() {
    // 2^64 - 1 bytes, items or tasks, and none of them follows.
    refused_commands(&[
        ("1c ff ff ff ff ff ff ff ff ff 01", Short),
        ("02 b00000000 ff ff ff ff ff ff ff ff ff 01", Short),
        ("15 ff ff ff ff ff ff ff ff ff 01", Short),
        ("16 ff ff ff ff ff ff ff ff ff 01", Short),
    ]);
    refused_outputs(&[
        ("01 03 b00000000 ff ff ff ff ff ff ff ff ff 01", Short),
        ("0c 03 04 ff ff ff ff ff ff ff ff ff 01", Short),
        ("0e 03 04 b00000000 ff ff ff ff ff ff ff ff ff 01", Short),
    ]);
}

#[test]
fn a_second_form_of_the_same_is_refused() {
    refused_commands(&[
        // Numbers with more bytes than they need, and with more bits than allowed.
        ("14 80 00", OutOfRange("number")),
        ("14 ff ff ff ff ff ff ff ff ff 02", OutOfRange("number")),
        ("14 ff ff ff ff ff ff ff ff ff ff 01", OutOfRange("number")),
        // A priority of 0, no delay, and a count of 1, each written out.
        (r#"01 b00000010 04 "jobs" 00 00"#, OutOfRange("priority")),
        (r#"01 b00001000 04 "jobs" 00 00"#, OutOfRange("delay")),
        (r#"02 b00000100 01 04 "jobs" 01"#, OutOfRange("count")),
    ]);
    refused_outputs(&[
        // An id and a seq that equal the number, written out.
        (r#"07 03 04 b00000001 04 "jobs" 00 01 00 01 00 01 00 00"#, OutOfRange("id")),
        (r#"07 03 04 b00000001 04 "jobs" 00 01 00 05 01 00 00"#, OutOfRange("seq")),
        ("03 03 04 b00000001 00", OutOfRange("id")),
    ]);
}

#[test]
fn what_a_field_cannot_hold_is_refused() {
    refused_commands(&[
        ("14 80 80 80 80 10", OutOfRange("credit")),
        (r#"01 b10000000 b00010000 04 "jobs" 00"#, OutOfRange("delay")),
        (r#"01 b10000000 b00100000 04 "jobs" 00"#, OutOfRange("flags")),
        (r#"01 b10000000 b00000100 04 "jobs" 00"#, OutOfRange("wait")),
        (r#"01 b00000110 04 "jobs" 00"#, OutOfRange("priority")),
        (r#"0d b00000000 04 "jobs" 01 "x" 00"#, OutOfRange("state")),
        (r#"0d b00000000 04 "jobs" 01 "x" 07"#, OutOfRange("state")),
        (r#"1d b00000110 04 "jobs""#, OutOfRange("sides")),
        ("1f b00000010", OutOfRange("flags")),
        (r#"09 b00000100 04 "jobs" 01 02 03 ff ff ff ff ff ff ff ff ff 01"#, OutOfRange("span")),
        (r#"17 04 "jobs" 01 00 00"#, OutOfRange("setting")),
        (r#"17 04 "jobs" 01 01 06"#, OutOfRange("value")),
    ]);
    refused_outputs(&[
        // One millisecond after the end of the year 9999.
        ("09 03 04 b00000001 80 b8 ff 90 fd ce 39", OutOfRange("moment")),
        (r#"12 03 04 7f 02 "no""#, OutOfRange("refusal")),
        (r#"12 03 04 00 02 "no""#, OutOfRange("refusal")),
        ("12 03 04 01 01 ff", OutOfRange("sentence")),
        ("08 03 04 07", OutOfRange("state")),
        ("0d 03 04 b00000000 01 03 04 00", OutOfRange("IDS")),
        // A setting with its default value, written out, and two settings in the wrong order.
        ("0d 03 04 b00000000 01 03 00 00", OutOfRange("IDS")),
        ("0d 03 04 b00000000 05 01 01 01 03 01 00", OutOfRange("IDS")),
        // A state with its default value, written out, and a holder of a task that is not taken.
        (r#"07 03 04 b00000001 04 "jobs" 00 01 00 08 00 00 00"#, OutOfRange("state")),
        (r#"07 03 04 b00000001 04 "jobs" 00 01 00 0a 01 00 00"#, OutOfRange("holder")),
    ]);
}

#[test]
fn what_is_no_step_is_refused() {
    refused_commands(&[
        ("3c 01 03", UnknownKind { what: "step", kind: 3 }),
        ("3c 01 01 01 ff", OutOfRange("sentence")),
        // A transaction, a credit, and a put that waits.
        ("3c 01 02 02 3c 00", UnknownKind { what: "command", kind: 0x3c }),
        ("3c 01 02 02 14 01", OutOfRange("step")),
        (r#"3c 01 02 09 01 b10000000 b00000001 04 "jobs" 00"#, OutOfRange("step")),
        ("3c 01 02 03 14 01 00", Rest(1)),
        ("3c 01 02 01 14", Short),
    ]);
    let many = format!("3c e9 07 {}", "00 ".repeat(1_001));
    refused_commands(&[(&many, OutOfRange("steps"))]);
    refused_outputs(&[
        ("28 03 04 01 28 00", OutOfRange("reply of a step")),
        (r#"28 03 04 01 12 01 02 "no""#, OutOfRange("reply of a step")),
    ]);
}

#[test]
fn what_cannot_be_kept_within_names_is_refused() {
    refused_commands(&[
        ("40", Short),
        ("40 01 02 00 24 00", OutOfRange("prefix")),
        // A credit, the leases and the figures of one queue, and a command within names.
        ("40 00 14 01", OutOfRange("command within names")),
        (r#"40 00 3f b00000001 04 "jobs" 01"#, OutOfRange("command within names")),
        (r#"40 00 1f b00000001 04 "jobs""#, OutOfRange("command within names")),
        ("40 00 40 00 24 00", UnknownKind { what: "command", kind: 0x40 }),
        ("40 00 24 00 00", Rest(1)),
    ]);
    let most = format!("40 e8 07 {} 24 00", "00 00 ".repeat(1_000));
    assert_eq!(decode_command(&bytes(&most), |_| ()), Ok(()));
    let many = format!("40 e9 07 {} 24 00", "00 00 ".repeat(1_001));
    refused_commands(&[(&many, OutOfRange("names"))]);
}

#[test]
fn what_follows_is_refused_and_counted() {
    refused_commands(&[("14 01 00", Rest(1)), (r#"24 01 "m" 00 00"#, Rest(2))]);
    refused_outputs(&[("02 03 04 00", Rest(1))]);
}
