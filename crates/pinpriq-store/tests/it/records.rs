//! Records survive the way to the disk and back, and hostile bytes do no harm.

use std::fmt::Write;

use expect_test::expect;
use pinpriq_engine::change::{Change, Granted, Moved, QueueRecord, RecordKey};
use pinpriq_engine::settings::{AfterAck, Ids, Paused, Settings};
use pinpriq_engine::task::{Grant, Lease, State, TaskId, TaskRecord};
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::codec::{CodecError, Names, decode, decode_key, encode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::change;

pub(crate) fn decode_all(mut input: &[u8]) -> Result<Vec<Change>, CodecError> {
    let mut names = Names::default();
    let mut changes = Vec::new();
    while !input.is_empty() {
        changes.push(decode(&mut input, &mut names)?);
    }
    Ok(changes)
}

proptest! {
    #[test]
    fn every_change_comes_back(changes in vec(change(), 0..20)) {
        let mut encoded = Vec::new();
        for change in &changes {
            encode(change, &mut encoded);
        }
        prop_assert_eq!(decode_all(&encoded).unwrap(), changes.clone());
        let mut rest = &encoded[..];
        for change in &changes {
            let expected = match change {
                Change::Task(task) => Some(RecordKey::Task(task.number)),
                Change::LaneTask(task) => Some(RecordKey::Task(task.number)),
                Change::Queue(queue) => Some(RecordKey::Queue(queue.name.clone())),
                Change::Published(publication) => Some(RecordKey::Published(publication.first)),
                Change::Lane(lane) => Some(RecordKey::Lane(lane.number)),
                Change::Member(member) => Some(RecordKey::Member(member.incarnation)),
                _ => None,
            };
            prop_assert_eq!(decode_key(&mut rest).unwrap(), expected.clone());
            prop_assert_eq!(change.key(), expected);
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_record_that_is_cut_short_is_refused(
        change in change(), cut in any::<prop::sample::Index>()
    ) {
        let mut encoded = Vec::new();
        encode(&change, &mut encoded);
        let cut = cut.index(encoded.len());
        let mut rest = &encoded[..cut];
        prop_assert_eq!(decode(&mut rest, &mut Names::default()), Err(CodecError::Short));
    }

    #[test]
    fn any_bytes_give_changes_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(changes) = decode_all(&bytes) {
            let mut encoded = Vec::new();
            for change in &changes {
                encode(change, &mut encoded);
            }
            prop_assert_eq!(decode_all(&encoded).unwrap(), changes);
        }
    }

    #[test]
    fn a_changed_byte_gives_changes_or_an_error(
        change in change(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut encoded = Vec::new();
        encode(&change, &mut encoded);
        let at = at.index(encoded.len());
        encoded[at] = byte;
        let _ = decode_all(&encoded);
    }
}

#[test]
fn a_declared_length_beyond_the_bytes_is_refused_and_nothing_allocated() {
    // "queue gone" with a name of 2^64 - 1 bytes.
    let mut huge = vec![6];
    huge.extend_from_slice(&[0xff; 9]);
    huge.push(1);
    assert_eq!(decode_all(&huge), Err(CodecError::Short));
    let too_long = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
    assert_eq!(decode_all(&too_long), Err(CodecError::OutOfRange("number")));
    assert_eq!(decode_all(&[15]), Err(CodecError::UnknownType(15)));
    assert_eq!(decode_all(&[0]), Err(CodecError::UnknownType(0)));
}

/// The bytes of a change, as they are documented. These must never change within a version.
pub(crate) fn hex(change: &Change) -> String {
    let mut encoded = Vec::new();
    encode(change, &mut encoded);
    encoded.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn the_bytes_are_those_of_the_page() {
    let lease = Lease {
        grant: Grant { incarnation: 2, serial: 300 },
        holder: None,
        deadline: Some(Timestamp::from_ms(5_000)),
        ttr: None,
    };
    let reason = b"no".as_slice().into();
    let task = TaskRecord {
        number: 129,
        queue: b"jobs".as_slice().into(),
        lane: None,
        id: TaskId::Given(b"x".as_slice().into()),
        seq: 130,
        priority: Some(-2),
        key: Some(b"k".as_slice().into()),
        payload: b"hello".as_slice().into(),
        away: None,
        put_at: Timestamp::from_ms(1_000),
        expires_at: Some(Timestamp::from_ms(2_000)),
        ttr: Some(Span::from_ms(3_000)),
        attempts: 4,
        state: State::Taken(lease),
    };
    let state = State::Buried { reason };
    let moved =
        Moved { number: 129, seq: 130, priority: None, expires_at: None, attempts: 4, state };
    let granted = Granted {
        number: 129,
        incarnation: 2,
        serial: 300,
        deadline: lease.deadline,
        ttr: Some(Span::from_ms(1)),
        attempts: 5,
    };
    let queue = QueueRecord {
        name: b"jobs".as_slice().into(),
        created: true,
        settings: Settings {
            ids: Ids::Given,
            ttl: Some(Span::from_ms(7)),
            ttr: None,
            after_ack: AfterAck::Zombie(Span::from_ms(8)),
            capacity: Some(128),
        },
        paused: Paused { input: false, output: true },
    };
    let lines: Vec<String> = [
        Change::Task(Box::new(task)),
        Change::Moved(Box::new(moved)),
        Change::Granted(granted),
        Change::Gone(129),
        Change::Queue(Box::new(queue)),
        Change::QueueGone(b"jobs".as_slice().into()),
        Change::Emptied(b"jobs".as_slice().into()),
    ]
    .iter()
    .map(hex)
    .collect();
    expect![[r"
        018101046a6f62730201788201010301016be80701d00f01b817040102ac02018827000568656c6c6f
        028101820100000403026e6f
        03810102ac02018827010105
        048101
        05046a6f62730103010700020801800102
        06046a6f6273
        07046a6f6273"]]
    .assert_eq(&lines.join("\n"));
}
