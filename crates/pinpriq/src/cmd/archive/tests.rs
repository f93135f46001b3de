//! What is printed of an archive.

use pinpriq_archive::LineId;

use super::*;

fn range(from: u64, to: u64, marks: u64) -> Range {
    Range { from: Timestamp::from_ms(from), to: Timestamp::from_ms(to), marks }
}

fn line(ranges: Vec<Range>) -> LineSummary {
    LineSummary {
        line: LineId(0xab),
        parent: None,
        made: Timestamp::from_ms(1_000),
        shards: 2,
        marks: ranges.iter().map(|it| it.marks).sum(),
        newest_mark: Some(7),
        by: Some(By::Backup),
        ranges,
    }
}

#[test]
fn each_stretch_without_a_gap_has_a_row() {
    let text = lines_in_words(&[line(vec![range(1_000, 2_000, 2), range(5_000, 5_000, 1)])]);
    let expected = "\
line              from                      to                        backups  parent
00000000000000ab  1970-01-01T00:00:01.000Z  1970-01-01T00:00:02.000Z  2
00000000000000ab  1970-01-01T00:00:05.000Z  1970-01-01T00:00:05.000Z  1
";
    assert_eq!(text, expected);
    let text = lines_in_words(&[line(Vec::new())]);
    assert!(text.ends_with("\n00000000000000ab  -     -   0\n"), "{text}");
}

#[test]
fn programs_get_all_stretches_of_a_line() {
    let json = line_as_json(&line(vec![range(0, 2_000, 2)])).to_string();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["line"], "00000000000000ab");
    let range = &value["ranges"][0];
    assert_eq!((&range["from_ms"], &range["to_ms"]), (&0.into(), &2_000.into()));
    assert_eq!(range["to"], "1970-01-01T00:00:02.000Z");
    assert_eq!(
        (&value["made"], &value["made_ms"]),
        (&"1970-01-01T00:00:01.000Z".into(), &1_000.into())
    );
    assert_eq!((&value["by"], value["backups"].as_u64()), (&"backup".into(), Some(2)));
}

#[test]
fn what_is_damaged_is_named_with_those_that_need_it() {
    let fault = |number: usize| Fault {
        name: format!("x/{number}"),
        what: "it is missing".to_owned(),
        is_newer: false,
        marks: vec![1, 2],
    };
    let faults = (0..NAMES_SHOWN + 2).map(fault).collect();
    let verified = Verified { marks: 2, lines: 1, objects: 30, bytes: 1_234_567, faults };
    let text = verified_in_words(&verified);
    assert!(text.starts_with("2 backups of 1 line in 30 objects with 1,234,567 bytes\n"), "{text}");
    assert!(text.contains("damage: x/0: it is missing (needed by mark 1, 2)\n"), "{text}");
    assert!(text.ends_with("and 2 more; --json names all of them\nDAMAGED\n"), "{text}");
    let whole = Verified { faults: Vec::new(), ..verified };
    assert!(verified_in_words(&whole).ends_with("bytes\nno damage\n"));
}

#[test]
fn a_dry_run_says_that_nothing_was_removed() {
    let pruned = Pruned {
        marks: vec![1],
        waiting: vec!["x".to_owned()],
        kept_marks: 3,
        from: Timestamp::from_ms(2_000),
        ..Pruned::default()
    };
    let expected = "\
would remove 1 backup, and 0 objects with 0 bytes
a run at least an hour from now removes 1 object more
kept 3 backups, from 1970-01-01T00:00:02.000Z on
";
    assert_eq!(pruned_in_words(&pruned, true), expected);
    assert!(pruned_in_words(&pruned, false).starts_with("removed 1 backup, "));
}
