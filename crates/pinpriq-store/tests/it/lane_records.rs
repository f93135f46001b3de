//! The records of version 2 are those of the page, and malformed ones are refused.

use pinpriq_engine::change::{
    Change, Copied, LaneRecord, LaneTask, MemberRecord, OwnContent, Publication,
};
use pinpriq_engine::settings::{AfterAck, Ids, Paused, Settings};
use pinpriq_engine::task::{Grant, Lease, State, TaskId};
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::codec::CodecError::{self, OutOfRange, Short};
use pinpriq_store::codec::{Names, decode};

use crate::records::{decode_all, hex};

/// Bytes from hexadecimal digits, in whatever groups.
fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn publication() -> Publication {
    Publication {
        first: 129,
        last: 131,
        priority: Some(-2),
        key: Some(b"k".as_slice().into()),
        payload: b"hello".as_slice().into(),
        put_at: Timestamp::from_ms(1_000),
        expires_at: Some(Timestamp::from_ms(2_000)),
        copies: vec![Copied { number: 129, lane: 130 }, Copied { number: 131, lane: 133 }],
    }
}

fn bare_publication() -> Publication {
    Publication {
        first: 1,
        last: 1,
        priority: None,
        key: None,
        payload: [].into(),
        put_at: Timestamp::ZERO,
        expires_at: None,
        copies: Vec::new(),
    }
}

fn own_task() -> LaneTask {
    LaneTask {
        number: 129,
        lane: 130,
        id: TaskId::Given(b"x".as_slice().into()),
        seq: 131,
        priority: Some(-2),
        put_at: Timestamp::from_ms(1_000),
        expires_at: Some(Timestamp::from_ms(2_000)),
        attempts: 4,
        state: State::Taken(Lease {
            grant: Grant { incarnation: 2, serial: 300 },
            holder: None,
            deadline: Some(Timestamp::from_ms(5_000)),
            ttr: None,
        }),
        own: Some(OwnContent {
            key: Some(b"k".as_slice().into()),
            payload: b"hello".as_slice().into(),
        }),
    }
}

fn sharing_task() -> LaneTask {
    LaneTask {
        number: 1,
        lane: 2,
        id: TaskId::Number(1),
        seq: 1,
        priority: None,
        put_at: Timestamp::ZERO,
        expires_at: None,
        attempts: 0,
        state: State::Ready,
        own: None,
    }
}

fn lane() -> LaneRecord {
    LaneRecord {
        number: 130,
        topic: b"news".as_slice().into(),
        member: 129,
        settings: Settings {
            ids: Ids::Given,
            ttl: Some(Span::from_ms(7)),
            ttr: None,
            after_ack: AfterAck::Zombie(Span::from_ms(8)),
            capacity: Some(128),
        },
        paused: Paused { input: true, output: false },
    }
}

fn member() -> MemberRecord {
    MemberRecord {
        incarnation: 129,
        name: b"me".as_slice().into(),
        lease: Span::from_ms(60_000),
        ended: true,
    }
}

/// Each change with its bytes, field by field in the order of the page.
#[test]
fn the_bytes_are_those_of_the_page() {
    let table = [
        (
            Change::Published(Box::new(publication())),
            "08 8101 02 0103 01016b e807 01d00f 02 00 8201 02 03 0568656c6c6f",
        ),
        (Change::Published(Box::new(bare_publication())), "08 01 00 00 00 00 00 00 00"),
        (
            Change::LaneTask(Box::new(own_task())),
            "09 8101 8201 020178 8301 0103 e807 01d00f 04 0102ac0201882700 01 01016b 0568656c6c6f",
        ),
        (Change::LaneTask(Box::new(sharing_task())), "09 01 02 0001 01 00 00 00 00 00 00"),
        (Change::Lane(Box::new(lane())), "0a 8201 046e657773 8101 03 0107 00 0208 018001 01"),
        (Change::LaneGone(130), "0b 8201"),
        (Change::LaneEmptied(130), "0c 8201"),
        (Change::Member(Box::new(member())), "0d 8101 026d65 e0d403 01"),
        (Change::MemberGone(129), "0e 8101"),
    ];
    for (change, digits) in table {
        let expected = bytes(digits);
        assert_eq!(hex(&change), digits.replace(' ', ""), "{change:?}");
        assert_eq!(decode_all(&expected), Ok(vec![change]), "{digits}");
    }
}

/// What is wrong with a record, the record, and how it is refused. `H` stands for the highest
/// number.
const MALFORMED: &[(&str, &str, CodecError)] = &[
    ("publication: last beyond any number", "08 02 H", OutOfRange("number")),
    ("publication: a number of eleven bytes", "08 ffffffffffffffffffff", OutOfRange("number")),
    ("publication: presence neither 0 nor 1", "08 01 00 02", OutOfRange("presence")),
    (
        "publication: put at a moment beyond the last",
        "08 01 00 00 00 H 00 00 00",
        OutOfRange("moment"),
    ),
    (
        "publication: a copy beyond the last",
        "08 01 01 00 00 00 00 02 0001 0201 00",
        OutOfRange("copy"),
    ),
    (
        "publication: the first copy beyond the last",
        "08 01 01 00 00 00 00 01 0201 00",
        OutOfRange("copy"),
    ),
    (
        "publication: two copies of one number",
        "08 01 01 00 00 00 00 02 0001 0001 00",
        OutOfRange("copy"),
    ),
    (
        "publication: two copies in one lane",
        "08 01 01 00 00 00 00 02 0001 0100 00",
        OutOfRange("copy"),
    ),
    (
        "publication: a copy beyond any number",
        "08 01 01 00 00 00 00 02 0001 H 01 00",
        OutOfRange("number"),
    ),
    (
        "publication: a lane beyond any number",
        "08 01 01 00 00 00 00 02 0001 01 H 00",
        OutOfRange("number"),
    ),
    ("publication: more copies than bytes", "08 01 01 00 00 00 00 H 0001 00", Short),
    ("publication: one copy more than there is", "08 01 01 00 00 00 00 02 0001 00", Short),
    (
        "publication: a payload longer than the record",
        "08 01 00 00 00 00 00 00 06 68656c6c6f",
        Short,
    ),
    ("lane task: an unknown kind of id", "09 01 02 03", OutOfRange("id")),
    (
        "lane task: more attempts than counted",
        "09 01 02 0001 01 00 00 00 H 00 00",
        OutOfRange("attempts"),
    ),
    ("lane task: an unknown state", "09 01 02 0001 01 00 00 00 00 06 00", OutOfRange("state")),
    (
        "lane task: own content neither there nor not",
        "09 01 02 0001 01 00 00 00 00 00 02",
        OutOfRange("presence"),
    ),
    (
        "lane task: a payload longer than the record",
        "09 01 02 0001 01 00 00 00 00 00 01 00 H",
        Short,
    ),
    ("lane: unknown ids", "0a 01 0174 02 04 00 00 00 00 00", OutOfRange("ids")),
    ("lane: an unknown end of tasks", "0a 01 0174 02 00 00 00 03 00 00", OutOfRange("after_ack")),
    ("lane: an unknown side is paused", "0a 01 0174 02 00 00 00 00 00 04", OutOfRange("paused")),
    ("member: neither ended nor not", "0d 01 016d 01 02", OutOfRange("ended")),
    ("member: a name longer than the record", "0d 01 026d", Short),
    ("lane gone: no number", "0b", Short),
];

#[test]
fn a_malformed_record_is_refused_with_the_field() {
    for (what, digits, expected) in MALFORMED {
        let record = bytes(&digits.replace('H', "ffffffffffffffffff01"));
        let refused = decode(&mut &record[..], &mut Names::default());
        assert_eq!(refused, Err(*expected), "{what}: {digits}");
    }
}

/// A record that declares so many copies that a vector for them would not fit any memory.
#[test]
fn nothing_is_allocated_for_copies_that_are_only_declared() {
    for count in ["ffffffffffffffffff01", "ffffffff7f", "8080808010"] {
        // Enough zeros behind it for a while, and not for all of them.
        let mut record = bytes(&format!("08 01 01 00 00 00 00 {count}"));
        record.resize(record.len() + 1_000, 0);
        let refused = decode(&mut &record[..], &mut Names::default());
        assert_eq!(refused, Err(Short), "{count}");
    }
}
