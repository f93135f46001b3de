//! Records survive encoding and decoding, and hostile bytes do no harm.

use std::fmt::Write;

use pinpriq_proto::change::{Change, RecordKey};
use pinpriq_proto::records::Malformed;
use pinpriq_store::codec::{Names, decode, decode_key, encode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::change;

pub(crate) fn decode_all(mut input: &[u8]) -> Result<Vec<Change>, Malformed> {
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
                Change::Queue(queue) => Some(RecordKey::Queue(queue.name.clone())),
                Change::Published(publication, _) => Some(RecordKey::Published(publication.first)),
                Change::Lane(lane) => Some(RecordKey::Lane(lane.number)),
                Change::Member(member) => Some(RecordKey::Member(member.incarnation)),
                Change::Schedule(schedule) => Some(RecordKey::Schedule(schedule.number)),
                Change::Detail(detail) => {
                    Some(RecordKey::Detail(detail.kind(), detail.number()))
                }
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
        prop_assert_eq!(decode(&mut rest, &mut Names::default()), Err(Malformed::Short));
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
    assert_eq!(decode_all(&huge), Err(Malformed::Short));
    let too_long = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
    assert_eq!(decode_all(&too_long), Err(Malformed::OutOfRange("number")));
    let unknown = |kind| Malformed::UnknownKind { what: "record", kind };
    assert_eq!(decode_all(&[200]), Err(unknown(200)));
    assert_eq!(decode_all(&[0]), Err(unknown(0)));
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
