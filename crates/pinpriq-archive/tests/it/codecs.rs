//! Any bytes are read or refused: no length is trusted, and nothing panics.

use pinpriq_archive::line::Line;
use pinpriq_archive::mark::{Knows, Objects, Part, Run, ShardMark};
use pinpriq_archive::names::SegmentId;
use pinpriq_archive::object::{Object, Writer};
use pinpriq_archive::{By, LineId, Mark};
use proptest::collection::vec;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::moments::mark;

/// Reads all that an object has.
fn read_all(bytes: Vec<u8>) -> Option<Vec<Vec<u8>>> {
    let object = Object::parse("a", bytes).ok()?;
    let count = object.pieces().count();
    (0..count).map(|index| object.raw(index).ok()).collect()
}

/// Text with a right checksum, so that what it says is looked at.
fn sealed(json: &str) -> Vec<u8> {
    let content = format!("{json}\n");
    format!("{content}xxh3 {:016x}\n", xxh3_64(content.as_bytes())).into_bytes()
}

prop_compose! {
    /// A mark that a program could write.
    fn any_mark()(
        number in 1..1_000_000_u64,
        line in any::<u64>(),
        first in 1..1_000_u32,
        lengths in vec(0..50_u32, 0..4),
        incarnation in 1..1_u64 << 40,
        since_ms in 0..1_u64 << 40,
        reach in 0..1_u64 << 30,
        head in any::<u64>(),
        bytes in 8_192..1_u64 << 30,
    ) -> Mark {
        let mut next = first;
        let runs = lengths.iter().zip(incarnation..);
        let whole: Vec<Run> = runs.map(|(length, incarnation)| {
            let run = Run { incarnation, first: next, last: next + length };
            next = run.last + 1;
            run
        }).collect();
        let newest = incarnation + 5;
        let objects = vec![Objects { first: number, last: number, object: 3 }];
        let part = Part { number: next, incarnation: newest, bytes, head, objects };
        let shard = ShardMark {
            whole,
            parts: vec![part],
            incarnation: newest,
            last_number: 7,
            since_ms,
        };
        let at_ms = since_ms + reach;
        Mark {
            format: 1,
            number,
            line: LineId(line),
            by: By::Serve,
            at_ms,
            since_ms,
            shards: vec![shard],
            highest: vec![Knows { incarnation: newest, last_number: 8 }],
            latest_ms: at_ms,
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        drop(read_all(bytes.clone()));
        drop(Mark::decode("a", &bytes));
        drop(Line::decode("a", &bytes));
        let behind_magic = [&b"PINPRIQA\x01\0\0\0"[..], &bytes].concat();
        drop(read_all(behind_magic));
        drop(Mark::decode("a", &sealed(&String::from_utf8_lossy(&bytes))));
    }

    /// The table is right, and says anything.
    #[test]
    fn any_table_is_read_or_refused(
        table in vec(any::<u8>(), 40..200),
        frames in vec(any::<u8>(), 0..99),
    ) {
        let count = u32::try_from(table.len() / 40).unwrap();
        let table = &table[..table.len() / 40 * 40];
        let bytes = [
            &b"PINPRIQA\x01\0\0\0"[..],
            &count.to_le_bytes(),
            &xxh3_64(table).to_le_bytes(),
            table,
            &frames,
        ];
        drop(read_all(bytes.concat()));
    }

    #[test]
    fn marks_come_back_as_they_were(mark in any_mark()) {
        prop_assert_eq!(Mark::decode("a", &mark.encode()).unwrap(), mark);
    }

    #[test]
    fn a_changed_byte_is_found(
        mark in any_mark(),
        raw in vec(any::<u8>(), 1..500),
        at in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
    ) {
        let mut bytes = mark.encode();
        let place = at.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(Mark::decode("a", &bytes).is_err());
        let mut writer = Writer::default();
        writer.add((1, SegmentId { number: 2, incarnation: 3 }), 4, &raw).unwrap();
        let mut bytes = writer.finish();
        prop_assert_eq!(read_all(bytes.clone()), Some(vec![raw]));
        let place = at.index(bytes.len());
        bytes[place] ^= change;
        prop_assert_eq!(read_all(bytes), None);
    }

    /// Numbers that no program writes are refused, whatever the checksum.
    #[test]
    fn a_mark_makes_sense(which in 0..12_usize) {
        let mut odd = mark(5, 1, (10, 20));
        let shard = &mut odd.shards[0];
        let part = &mut shard.parts[0];
        match which {
            0 => odd.number = 0,
            1 => odd.since_ms = 21,
            2 => odd.latest_ms = 19,
            3 => odd.shards.clear(),
            4 => odd.highest.clear(),
            5 => shard.parts.clear(),
            6 => part.number = 0,
            7 => part.bytes = 8_191,
            8 => part.objects.clear(),
            9 => part.objects[0].last = 6,
            10 => shard.whole.push(Run { incarnation: 1, first: 1, last: 1 }),
            _ => shard.incarnation = 9,
        }
        prop_assert!(Mark::decode("a", &odd.encode()).is_err());
    }
}
