//! The entries that wait to be appended. What gathers while one is under way goes into the next.
//!
//! An entry has its number as soon as a batch is put into it, so that the places of the records are
//! known at once. Its header is filled in when it is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Position;
use pinpriq_proto::change::{Change, Header, Place};
use pinpriq_proto::time::Timestamp;

use crate::ledger::batch::{Encoder, place_of};
use crate::ledger::entry::{BODY_BYTES_MAX, ENTRY_HEADER_BYTES, EntryHeader};
use crate::ledger::interface::{Seq, Tenure};

/// An entry that is to be appended.
#[derive(Debug)]
struct Draft {
    /// Its term and the checksum of the entry before are filled in when it is sealed.
    header: EntryHeader,
    body: Vec<u8>,
    contents: Contents,
    /// The moment of its first batch.
    since: Timestamp,
    /// Whether a caller waits for it.
    is_urgent: bool,
}

/// What an entry completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Contents {
    /// The last batch that ends in it. None in the middle of a run.
    pub(crate) last: Option<Position>,
    /// The number of batches that end in it.
    pub(crate) batches: u64,
    /// The number of records in them.
    pub(crate) records: u64,
}

/// An entry that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) seq: Seq,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) checksum: u64,
    pub(crate) contents: Contents,
}

/// What a batch has added to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Added {
    /// The entry that it begins in.
    pub(crate) first: Seq,
    /// The number of new entries.
    pub(crate) entries: u64,
    /// The bytes, those of headers of new entries included.
    pub(crate) bytes: u64,
    /// The bytes of the records that have a place.
    pub(crate) live: u64,
}

#[derive(Debug)]
pub(crate) struct Pending {
    tenure: Tenure,
    target_bytes: usize,
    encoder: Encoder,
    drafts: VecDeque<Draft>,
    /// The number of them that a caller waits for.
    urgent: usize,
    /// The number of the next new entry.
    next: Seq,
    /// The checksum of the entry that was sealed last.
    checksum: u64,
    bytes: u64,
}

impl Pending {
    /// Continues behind the entry `head`, which has this checksum.
    pub(crate) fn new(tenure: Tenure, target_bytes: usize, head: Seq, checksum: u64) -> Self {
        let (encoder, drafts, urgent) = (Encoder::default(), VecDeque::new(), 0);
        let next = Seq(head.0 + 1);
        Self { tenure, target_bytes, encoder, drafts, urgent, next, checksum, bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// The last entry that anything was put into.
    pub(crate) const fn last(&self) -> Seq {
        Seq(self.next.0 - 1)
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a caller waits for the first entry or one behind it.
    pub(crate) const fn is_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// The moment of the first batch.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.drafts.front().map(|draft| draft.since)
    }

    /// Adds a batch, and reports the places of its records.
    pub(crate) fn add(
        &mut self,
        (facts, changes): (&Header, &[Change]),
        position: Position,
        is_urgent: bool,
        placed: &mut dyn FnMut(usize, Place),
    ) -> Added {
        let mut body = Vec::new();
        let records = self.encoder.encode(facts, changes, &mut body);
        let is_for_it = |last: &&Draft| {
            let is_of_run = last.header.continues || last.header.goes_on;
            !is_of_run && last.body.len() + body.len() <= self.target_bytes
        };
        let (first, start, fits) = match self.drafts.back().filter(is_for_it) {
            Some(last) => (last.header.seq, last.body.len(), true),
            None => (self.next, 0, false),
        };
        let mut live = 0;
        for record in records {
            live += record.length as u64;
            placed(record.index, place_of(first, start + record.at, record.length));
        }
        let contents = Contents { last: Some(position), batches: 1, records: changes.len() as u64 };
        let entries = if fits {
            self.extend(&body, contents, is_urgent);
            0
        } else {
            self.begin(&body, contents, (facts.now, is_urgent))
        };
        let bytes = body.len() as u64 + entries * ENTRY_HEADER_BYTES as u64;
        self.bytes += bytes;
        Added { first, entries, bytes, live }
    }

    /// Adds the entry that ends the tenure in order, with an empty batch, and before it those with
    /// a note for the next tenure, unless that is empty. Nothing may be added behind it.
    pub(crate) fn end(&mut self, facts: &Header, note: &[u8], position: Position) -> Added {
        let first = self.next;
        for piece in note.chunks(BODY_BYTES_MAX) {
            self.begin(piece, Contents::default(), (facts.now, true));
            if let Some(last) = self.drafts.back_mut() {
                last.header.notes = true;
            }
        }
        let mut body = Vec::new();
        self.encoder.encode(facts, &[], &mut body);
        let contents = Contents { last: Some(position), batches: 1, records: 0 };
        self.begin(&body, contents, (facts.now, true));
        if let Some(last) = self.drafts.back_mut() {
            last.header.ends = true;
        }
        let entries = self.next.0 - first.0;
        let bytes = (note.len() + body.len()) as u64 + entries * ENTRY_HEADER_BYTES as u64;
        self.bytes += bytes;
        Added { first, entries, bytes, live: 0 }
    }

    /// Adds a batch to the last entry.
    fn extend(&mut self, body: &[u8], contents: Contents, is_urgent: bool) {
        if let Some(last) = self.drafts.back_mut() {
            last.body.extend_from_slice(body);
            last.contents = Contents {
                last: contents.last,
                batches: last.contents.batches + contents.batches,
                records: last.contents.records + contents.records,
            };
            self.urgent += usize::from(is_urgent && !last.is_urgent);
            last.is_urgent |= is_urgent;
        }
    }

    /// Begins a new entry with a batch, or a run of entries. Returns their number.
    fn begin(&mut self, body: &[u8], contents: Contents, when: (Timestamp, bool)) -> u64 {
        let (since, is_urgent) = when;
        let pieces = body.chunks(BODY_BYTES_MAX);
        let count = pieces.len();
        for (at, piece) in pieces.enumerate() {
            let goes_on = at + 1 < count;
            let (seq, continues) = (self.next, at > 0);
            self.drafts.push_back(Draft {
                header: EntryHeader { seq, goes_on, continues, ..EntryHeader::default() },
                body: piece.to_vec(),
                contents: if goes_on { Contents::default() } else { contents },
                since,
                is_urgent,
            });
            self.urgent += usize::from(is_urgent);
            self.next = Seq(self.next.0 + 1);
        }
        count as u64
    }

    /// Removes the first entry, to be appended next.
    pub(crate) fn seal(&mut self) -> Option<Sealed> {
        let draft = self.drafts.pop_front()?;
        let Draft { header, body, contents, is_urgent, .. } = draft;
        self.urgent -= usize::from(is_urgent);
        let (term, previous, seq) = (self.tenure.term, self.checksum, header.seq);
        let header = EntryHeader { term, previous, ..header };
        let (bytes, checksum) = header.seal(&body);
        self.checksum = checksum;
        self.bytes -= bytes.len() as u64;
        Some(Sealed { seq, bytes: bytes.into(), checksum, contents })
    }
}
