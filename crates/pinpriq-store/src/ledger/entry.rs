//! One entry of a log, byte by byte: a header and a body. `docs/internals/ledger.md` describes it.
//!
//! The checksum of each entry covers that of the entry before, so that an entry cannot be changed,
//! lost or moved without notice. `batch.rs` reads and writes bodies.

use xxhash_rust::xxh3::Xxh3;

use crate::ledger::interface::{ENTRY_BYTES_MAX, Seq, Term};

/// The highest version of the format of entries.
pub const ENTRY_VERSION: u8 = 2;

/// The version of entries that servers understand which know of no notes.
const WITHOUT_NOTES: u8 = 1;

/// The bytes of the header of an entry.
pub const ENTRY_HEADER_BYTES: usize = 40;

/// The most bytes of the body of one entry.
pub const BODY_BYTES_MAX: usize = ENTRY_BYTES_MAX - ENTRY_HEADER_BYTES;

/// The body is written as it is. There is no other codec yet.
const PLAIN: u8 = 0;
/// The last batch of the body goes on in the next entry.
const GOES_ON: u8 = 1;
/// The body goes on with a batch of the entry before.
const CONTINUES: u8 = 2;
/// The tenure ends in order with this entry.
const ENDS: u8 = 4;
/// The body is a piece of the note that the tenure leaves to the next one, right before it ends.
const NOTES: u8 = 8;

/// Where the checksum is. It covers everything before it, and the body.
const CHECKSUM_AT: usize = 32;

/// What the header of an entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of an entry")]
pub struct EntryHeader {
    /// The tenure that has written it.
    pub term: Term,
    /// Its number.
    pub seq: Seq,
    /// The checksum of the entry before, or 0 if there never was one.
    pub previous: u64,
    /// Whether its last batch goes on in the next entry.
    pub goes_on: bool,
    /// Whether it continues a batch of the entry before.
    pub continues: bool,
    /// Whether its tenure ends in order with it. Then it belongs to no run.
    pub ends: bool,
    /// Whether it has no batches but a piece of the note for the next tenure.
    pub notes: bool,
}

/// Why bytes are no entry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadEntry {
    /// They are cut short, or there are more than the header says.
    #[error("it has {found} bytes, and should have {expected}")]
    Length {
        /// How many there are.
        found: usize,
        /// How many the header asks for.
        expected: usize,
    },
    /// A newer server has written it.
    #[error("it has the format {0}, and this server knows {ENTRY_VERSION}: use the newer server")]
    Newer(u8),
    /// It says something that makes no sense.
    #[error("its header makes no sense: {0}")]
    Header(&'static str),
    /// The bytes are not those that were written.
    #[error("its checksum is not that of its bytes")]
    Checksum,
}

impl EntryHeader {
    /// Returns the entry with this body, and its checksum.
    #[must_use]
    pub fn seal(&self, body: &[u8]) -> (Vec<u8>, u64) {
        let mut bytes = Vec::with_capacity(ENTRY_HEADER_BYTES + body.len());
        let of_run = u8::from(self.goes_on) * GOES_ON + u8::from(self.continues) * CONTINUES;
        let flags = of_run + u8::from(self.ends) * ENDS + u8::from(self.notes) * NOTES;
        let version = if self.notes { ENTRY_VERSION } else { WITHOUT_NOTES };
        bytes.extend([version, PLAIN, flags, 0]);
        bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(self.term.0.to_le_bytes());
        bytes.extend(self.seq.0.to_le_bytes());
        bytes.extend(self.previous.to_le_bytes());
        let checksum = checksum_of(&bytes, body);
        bytes.extend(checksum.to_le_bytes());
        bytes.extend_from_slice(body);
        (bytes, checksum)
    }

    /// Returns the header of an entry, its checksum and its body. Any bytes give these or an error.
    pub fn open(bytes: &[u8]) -> Result<(Self, u64, &[u8]), BadEntry> {
        let found = bytes.len();
        let short = BadEntry::Length { found, expected: ENTRY_HEADER_BYTES };
        let (head, body) = bytes.split_at_checked(ENTRY_HEADER_BYTES).ok_or(short)?;
        let (stated, checksum) = head.split_at(CHECKSUM_AT);
        let checksum = number_at(checksum, 0);
        let [version, codec, flags, unused] = [stated[0], stated[1], stated[2], stated[3]];
        if version > ENTRY_VERSION {
            return Err(BadEntry::Newer(version));
        }
        let length = u32::from_le_bytes([stated[4], stated[5], stated[6], stated[7]]);
        let expected = ENTRY_HEADER_BYTES + length as usize;
        if found != expected {
            return Err(BadEntry::Length { found, expected });
        }
        if checksum_of(stated, body) != checksum {
            return Err(BadEntry::Checksum);
        }
        if version < WITHOUT_NOTES || codec != PLAIN || unused != 0 {
            return Err(BadEntry::Header("the version or the codec is none that ever was"));
        }
        if flags & !(GOES_ON | CONTINUES | ENDS | NOTES) != 0 {
            return Err(BadEntry::Header("it has a flag that never was"));
        }
        if flags & ENDS != 0 && flags != ENDS {
            return Err(BadEntry::Header("a tenure ends in the middle of a commit"));
        }
        if (flags == NOTES) != (version == ENTRY_VERSION) || (flags & NOTES != 0 && flags != NOTES)
        {
            return Err(BadEntry::Header("its version and its flags do not belong together"));
        }
        let header = Self {
            term: Term(number_at(stated, 8)),
            seq: Seq(number_at(stated, 16)),
            previous: number_at(stated, 24),
            goes_on: flags & GOES_ON != 0,
            continues: flags & CONTINUES != 0,
            ends: flags & ENDS != 0,
            notes: flags & NOTES != 0,
        };
        Ok((header, checksum, body))
    }
}

fn checksum_of(stated: &[u8], body: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(stated);
    hash.update(body);
    hash.digest()
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> EntryHeader {
        let (term, seq) = (Term(3), Seq(7));
        let previous = 0x1122_3344_5566_7788;
        let (continues, ends, notes) = (false, false, false);
        EntryHeader { term, seq, previous, goes_on: true, continues, ends, notes }
    }

    #[test]
    fn an_entry_has_these_bytes() {
        let (bytes, checksum) = header().seal(b"ab");
        let stated: [u8; 32] = [
            1, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77,
            0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
        ];
        assert_eq!(bytes[..32], stated);
        assert_eq!(bytes[32..40], checksum.to_le_bytes());
        assert_eq!(checksum, 0x3b11_7c39_5523_0072);
        assert_eq!(bytes[40..], *b"ab");
    }

    #[test]
    fn an_entry_comes_back() {
        for flags in ["", ">", "<>", "<", ".", "+"] {
            let (goes_on, continues) = (flags.contains('>'), flags.contains('<'));
            let (ends, notes) = (flags.contains('.'), flags.contains('+'));
            let header = EntryHeader { goes_on, continues, ends, notes, ..header() };
            for body in [&b""[..], b"a", &[0; 5_000]] {
                let (bytes, checksum) = header.seal(body);
                assert_eq!(EntryHeader::open(&bytes), Ok((header, checksum, body)));
            }
        }
    }

    #[test]
    fn a_tenure_does_not_end_within_a_batch() {
        let (bytes, _) = EntryHeader { ends: true, ..header() }.seal(b"ab");
        let error = EntryHeader::open(&bytes).unwrap_err();
        assert!(matches!(error, BadEntry::Header(_)), "{error}");
    }

    #[test]
    fn a_note_is_for_newer_servers() {
        let note = EntryHeader { goes_on: false, notes: true, ..header() };
        let (bytes, _) = note.seal(b"ab");
        assert_eq!(bytes[..4], [2, 0, 8, 0]);
        for other in [EntryHeader { ends: true, ..note }, EntryHeader { goes_on: true, ..note }] {
            let error = EntryHeader::open(&other.seal(b"ab").0).unwrap_err();
            assert!(matches!(error, BadEntry::Header(_)), "{error}");
        }
        let mut newer = bytes;
        newer[0] = 3;
        assert_eq!(EntryHeader::open(&newer), Err(BadEntry::Newer(3)));
    }

    #[test]
    fn a_changed_entry_is_none() {
        let (bytes, _) = header().seal(b"abc");
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(EntryHeader::open(&changed).is_err(), "bit {bit} of byte {at}");
            }
            assert!(EntryHeader::open(&bytes[..at]).is_err(), "cut at {at}");
        }
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(EntryHeader::open(&longer), Err(BadEntry::Length { found: 44, expected: 43 }));
    }
}
