//! The bytes of objects, written by hand from the page on archives.

use pinpriq_archive::line::{Line, Parent};
use pinpriq_archive::mark::{Knows, Objects, Part, Run, ShardMark};
use pinpriq_archive::names::SegmentId;
use pinpriq_archive::object::{Object, PIECE_BYTES, Piece, Writer};
use pinpriq_archive::{ArchiveError, By, LineId, Mark};
use xxhash_rust::xxh3::xxh3_64;

/// A text with its last line.
fn sealed(json: &str) -> Vec<u8> {
    let content = format!("{json}\n");
    format!("{content}xxh3 {:016x}\n", xxh3_64(content.as_bytes())).into_bytes()
}

#[test]
fn a_mark_has_these_bytes() {
    let part = Part {
        number: 6,
        incarnation: 2,
        bytes: 9_000,
        head: 255,
        objects: vec![Objects { first: 11, last: 12, object: 0 }],
    };
    let shard = ShardMark {
        whole: vec![Run { incarnation: 2, first: 3, last: 5 }],
        parts: vec![part],
        incarnation: 2,
        last_number: 77,
        since_ms: 40,
    };
    let mark = Mark {
        format: 1,
        number: 12,
        line: LineId(0xabc),
        by: By::Backup,
        at_ms: 50,
        since_ms: 40,
        shards: vec![shard],
        highest: vec![Knows { incarnation: 3, last_number: 78 }],
        latest_ms: 51,
    };
    let expected = sealed(concat!(
        r#"{"format":1,"number":12,"line":"0000000000000abc","by":"backup","at_ms":50,"#,
        r#""since_ms":40,"shards":[{"whole":[{"incarnation":2,"first":3,"last":5}],"#,
        r#""parts":[{"number":6,"incarnation":2,"bytes":9000,"head":"00000000000000ff","#,
        r#""objects":[{"first":11,"last":12,"object":0}]}],"incarnation":2,"#,
        r#""last_number":77,"since_ms":40}],"highest":[{"incarnation":3,"last_number":78}],"#,
        r#""latest_ms":51}"#,
    ));
    assert_eq!(String::from_utf8(mark.encode()).unwrap(), String::from_utf8(expected).unwrap());
    assert_eq!(Mark::decode("a", &mark.encode()).unwrap(), mark);
}

#[test]
fn a_line_has_these_bytes() {
    let line = Line {
        format: 1,
        line: LineId(1),
        shards: 2,
        made_at_ms: 5,
        parent: Some(Parent { line: LineId(2), mark: 3, at_ms: 4 }),
        starts: vec![Knows { incarnation: 65_537, last_number: 9 }; 2],
    };
    let expected = sealed(concat!(
        r#"{"format":1,"line":"0000000000000001","shards":2,"made_at_ms":5,"#,
        r#""parent":{"line":"0000000000000002","mark":3,"at_ms":4},"#,
        r#""starts":[{"incarnation":65537,"last_number":9},"#,
        r#"{"incarnation":65537,"last_number":9}]}"#,
    ));
    assert_eq!(line.encode(), expected);
    assert_eq!(Line::decode("a", &expected).unwrap(), line);
    let fresh = sealed(concat!(
        r#"{"format":1,"line":"0000000000000001","shards":2,"made_at_ms":5,"#,
        r#""parent":null,"starts":[]}"#,
    ));
    let decoded = Line::decode("a", &fresh).unwrap();
    assert_eq!(decoded, Line { parent: None, starts: Vec::new(), ..line });
}

/// A frame by RFC 8878 whose only block is not compressed.
fn frame(content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let head = [0x28, 0xB5, 0x2F, 0xFD, 0x20, length, (length << 3) | 1, 0, 0];
    [&head[..], content].concat()
}

fn table_of(frame: &[u8], raw_bytes: u32) -> Vec<u8> {
    [
        &2_u32.to_le_bytes()[..],
        &7_u32.to_le_bytes(),
        &3_u64.to_le_bytes(),
        &16_384_u64.to_le_bytes(),
        &raw_bytes.to_le_bytes(),
        &u32::try_from(frame.len()).unwrap().to_le_bytes(),
        &xxh3_64(frame).to_le_bytes(),
    ]
    .concat()
}

fn object_of(format: u32, table: &[u8], frames: &[u8]) -> Vec<u8> {
    let count = u32::try_from(table.len() / 40).unwrap();
    [
        &b"PINPRIQA"[..],
        &format.to_le_bytes(),
        &count.to_le_bytes(),
        &xxh3_64(table).to_le_bytes(),
        table,
        frames,
    ]
    .concat()
}

#[test]
fn an_object_has_these_bytes() {
    let segment = SegmentId { number: 7, incarnation: 3 };
    let frame = frame(b"pinpriq");
    let bytes = object_of(1, &table_of(&frame, 7), &frame);
    let object = Object::parse("a", bytes).unwrap();
    let sum = xxh3_64(&frame);
    let piece = Piece { shard: 2, segment, from: 16_384, raw_bytes: 7, stored_bytes: 16, sum };
    assert_eq!(object.pieces().collect::<Vec<_>>(), [piece]);
    assert_eq!(object.raw(0).unwrap(), b"pinpriq");

    let mut writer = Writer::default();
    writer.add((2, segment), 16_384, b"pinpriq").unwrap();
    let written = writer.finish();
    let frame = &written[64..];
    assert_eq!(written, object_of(1, &table_of(frame, 7), frame));
}

#[test]
fn large_parts_are_divided_into_pieces() {
    let segment = SegmentId { number: 1, incarnation: 1 };
    let raw: Vec<u8> = (0..PIECE_BYTES + 5).map(|at| (at % 251).to_le_bytes()[0]).collect();
    let mut writer = Writer::default();
    writer.add((0, segment), 8, &raw).unwrap();
    assert_eq!(writer.raw_bytes(), raw.len() as u64);
    let object = Object::parse("a", writer.finish()).unwrap();
    let places: Vec<(u64, u32)> =
        object.pieces().map(|piece| (piece.from, piece.raw_bytes)).collect();
    assert_eq!(places, [(8, 8 << 20), (8 + (8 << 20), 5)]);
    let joined = [object.raw(0).unwrap(), object.raw(1).unwrap()].concat();
    assert!(joined == raw);
}

#[test]
fn no_length_of_an_object_is_trusted() {
    let good = frame(b"pinpriq");
    let table = table_of(&good, 7);
    let entry = |at: usize, value: u32| {
        let mut table = table.clone();
        table[at..at + 4].copy_from_slice(&value.to_le_bytes());
        table
    };
    let whole = object_of(1, &table, &good);
    let mut many = whole.clone();
    many[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let refused = [
        Vec::new(),
        whole[..10].to_vec(),
        whole[..20].to_vec(),
        whole[..40].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        [&whole[..], b"x"].concat(),
        many,
        object_of(0, &table, &good),
        object_of(1, &[], &good),
        // The bytes before compression, and those in the object.
        object_of(1, &entry(24, 0), &good),
        object_of(1, &entry(24, u32::MAX), &good),
        object_of(1, &entry(24, (8 << 20) + 1), &good),
        object_of(1, &entry(28, u32::MAX), &good),
        object_of(1, &entry(28, 15), &good),
    ];
    for (index, bytes) in refused.into_iter().enumerate() {
        let parsed = Object::parse("a", bytes);
        assert!(matches!(parsed, Err(ArchiveError::Damaged { .. })), "{index}: {parsed:?}");
    }
    // A frame with another length than the table says.
    for raw_bytes in [6, 8, 8 << 20] {
        let object = Object::parse("a", object_of(1, &table_of(&good, raw_bytes), &good)).unwrap();
        assert!(matches!(object.raw(0), Err(ArchiveError::Damaged { .. })), "{raw_bytes}");
    }
    let newer = Object::parse("a", object_of(2, &table, &good));
    assert!(matches!(newer, Err(ArchiveError::Newer { .. })));
}
