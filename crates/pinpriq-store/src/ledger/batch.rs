//! Batches in the bodies of entries. A batch is the facts about the shard, and records.
//!
//! A body holds whole batches, one after the other. A batch that is too large for an entry has
//! several entries of its own, a *run*, whose bodies together are that batch. The records are those
//! of the journal.

use std::num::NonZeroU32;

use crate::codec::{Names, decode, decode_key, encode};
use pinpriq_proto::change::{Change, Header, Place, RecordKey};
use pinpriq_proto::records::Malformed;
use pinpriq_proto::records::primitives::{
    end, put_moment, put_number, take_bytes, take_moment, take_number,
};

use crate::ledger::interface::{Seq, Term};

/// A record with a place in a batch that was encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// Which of the changes.
    pub(crate) index: usize,
    /// Where it begins.
    pub(crate) at: usize,
    /// How long it is.
    pub(crate) length: usize,
}

/// Encodes batches, and keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    records: Vec<Record>,
    content: Vec<u8>,
}

impl Encoder {
    /// Appends a batch to a body. Returns its records that have a place, with positions in `out`.
    pub(crate) fn encode(
        &mut self,
        facts: &Header,
        changes: &[Change],
        out: &mut Vec<u8>,
    ) -> &[Record] {
        let Self { records, content } = self;
        records.clear();
        content.clear();
        put_moment(content, facts.now);
        put_number(content, facts.last_number);
        put_number(content, changes.len() as u64);
        for (index, change) in changes.iter().enumerate() {
            let at = content.len();
            encode(change, content);
            if change.key().is_some() {
                records.push(Record { index, at, length: content.len() - at });
            }
        }
        put_number(out, content.len() as u64);
        let start = out.len();
        out.extend_from_slice(content);
        for record in &mut *records {
            record.at += start;
        }
        records
    }
}

/// What a batch says about the shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) header: Header,
    /// The number of records.
    pub(crate) records: u64,
}

/// Passes every change in a body to `sink`, with its place if it has one, and the facts of each
/// batch to `facts`.
pub(crate) fn read_changes(
    (term, first, body): (Term, Seq, &[u8]),
    names: &mut Names,
    facts: &mut dyn FnMut(Facts),
    sink: &mut dyn FnMut(Change, Option<Place>),
) -> Result<(), Malformed> {
    let mut batches = body;
    while !batches.is_empty() {
        let mut rest = take_bytes(&mut batches)?;
        let now = take_moment(&mut rest)?;
        let last_number = take_number(&mut rest)?;
        let count = take_number(&mut rest)?;
        facts(Facts { header: Header { incarnation: term.0, now, last_number }, records: count });
        let behind = batches.len();
        for _ in 0..count {
            let from = body.len() - behind - rest.len();
            let change = decode(&mut rest, names)?;
            let to = body.len() - behind - rest.len();
            let place = change.key().map(|_| place_of(first, from, to - from));
            sink(change, place);
        }
        end(rest)?;
    }
    Ok(())
}

/// Returns the key and the place of every record in a body that has a place.
pub(crate) fn read_keys(first: Seq, body: &[u8]) -> Result<Vec<(RecordKey, Place)>, Malformed> {
    let mut keys = Vec::new();
    let mut batches = body;
    while !batches.is_empty() {
        let mut rest = take_bytes(&mut batches)?;
        take_moment(&mut rest)?;
        take_number(&mut rest)?;
        let behind = batches.len();
        for _ in 0..take_number(&mut rest)? {
            let from = body.len() - behind - rest.len();
            let key = decode_key(&mut rest)?;
            let to = body.len() - behind - rest.len();
            keys.extend(key.map(|key| (key, place_of(first, from, to - from))));
        }
    }
    Ok(keys)
}

/// The place of a record in the body that begins with this entry.
pub(crate) fn place_of(first: Seq, at: usize, length: usize) -> Place {
    let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Place {
        volume: volume_of(first),
        offset: narrow(at),
        length: NonZeroU32::new(narrow(length)).unwrap_or(NonZeroU32::MIN),
    }
}

/// The number by which places know the entry: its last 32 bits. The entries of a log that are kept
/// are never as many as that.
pub(crate) const fn volume_of(seq: Seq) -> u32 {
    let [a, b, c, d, ..] = seq.0.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::task::TaskId;
    use pinpriq_proto::time::Timestamp;
    use pinpriq_proto::unique::WindowRecord;

    use super::*;

    fn window(number: u64, key: &[u8]) -> Change {
        Change::detail(WindowRecord {
            number,
            queue: b"q"[..].into(),
            key: key.into(),
            id: TaskId::Number(number),
            until: Timestamp::from_ms(9),
        })
    }

    #[test]
    fn batches_come_back_with_their_places() {
        let changes = [window(8, b"k"), Change::Gone(7), window(9, &[7; 300])];
        let facts = Header { incarnation: 4, now: Timestamp::from_ms(5), last_number: 9 };
        let (mut body, mut encoder) = (Vec::new(), Encoder::default());
        let mut places = Vec::new();
        for batch in [&changes[..], &[], &changes[2..]] {
            let records = encoder.encode(&facts, batch, &mut body).to_vec();
            places.extend(records.iter().map(|it| place_of(Seq(70), it.at, it.length)));
        }
        let (mut found, mut found_at, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        let mut sink = |change: Change, place: Option<Place>| {
            found_at.extend(place);
            found.push(change);
        };
        let body_of = (Term(4), Seq(70), &body[..]);
        let mut note = |facts: Facts| heads.push(facts);
        read_changes(body_of, &mut Names::default(), &mut note, &mut sink).unwrap();
        assert_eq!(found, [&changes[..], &changes[2..]].concat());
        assert_eq!(found_at, places);
        assert_eq!(heads.iter().map(|facts| facts.records).collect::<Vec<_>>(), [3, 0, 1]);
        assert!(heads.iter().all(|known| known.header == facts));
        let keys = read_keys(Seq(70), &body).unwrap();
        assert_eq!(keys.iter().map(|(_, place)| *place).collect::<Vec<_>>(), places);
        for cut in 1..body.len() {
            // A cut between two batches leaves whole ones.
            _ = read_keys(Seq(70), &body[..cut]);
        }
    }
}
