//! What a node remembers of a log, to notice that the engine was rolled back.
//!
//! An engine that is restored from a backup has lost entries that it had said to keep. Nothing in
//! its log tells. A node that keeps the number and the checksum of an entry elsewhere can tell.
//! Where these are kept is decided elsewhere; `docs/internals/ledger.md` describes their bytes.

use std::fmt;

use crate::StoreError;
use xxhash_rust::xxh3::xxh3_64;

use crate::ledger::interface::{Seq, Term};

/// The version of the format of watermarks.
const VERSION: u32 = 1;

/// How a watermark begins.
const MAGIC: [u8; 4] = *b"ppwm";

/// The bytes of a watermark.
pub const WATERMARK_BYTES: usize = 40;

/// The last entry of a log that the engine has said to be there, to a tenure that it has given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermark {
    /// The tenure. From then on no earlier one appends.
    pub term: Term,
    /// The entry, or 0 if there was none yet.
    pub head: Seq,
    /// Its checksum, which covers all entries before it, or 0.
    pub checksum: u64,
}

/// What a load has found, as far as a watermark can be compared with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The last entry.
    pub head: Seq,
    /// The checksum of the entry in the watermark, unless it was removed since.
    pub checksum: Option<u64>,
    /// The term of the first entry behind it, if there is one.
    pub next_term: Option<Term>,
}

/// Why bytes are no watermark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWatermark {
    /// They are cut short, too many, or not those that were written.
    #[error("it is damaged")]
    Damaged,
    /// A newer server has written it.
    #[error("it has the format {0}, and this server knows {VERSION}: use the newer server")]
    Newer(u32),
}

impl Watermark {
    /// Refuses a log that has lost what the watermark says.
    pub fn compare(&self, found: &Found) -> Result<(), StoreError> {
        let has_other = found.checksum.is_some_and(|checksum| checksum != self.checksum);
        let is_of_the_past = found.next_term.is_some_and(|term| term < self.term);
        let is_behind = found.head < self.head;
        if is_behind || has_other || is_of_the_past {
            let (expected, found) = (self.to_string(), found.to_string());
            return Err(StoreError::RolledBack { expected, found });
        }
        Ok(())
    }

    /// The bytes of the watermark, for a file.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WATERMARK_BYTES] {
        let mut bytes = [0; WATERMARK_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [self.term.0, self.head.0, self.checksum];
        for (to, number) in bytes[8..32].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the bytes of a watermark. Any bytes give one or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadWatermark> {
        let (begin, rest) = bytes.split_at_checked(8).ok_or(BadWatermark::Damaged)?;
        if begin[..4] != MAGIC {
            return Err(BadWatermark::Damaged);
        }
        let version = u32::from_le_bytes([begin[4], begin[5], begin[6], begin[7]]);
        if version > VERSION {
            return Err(BadWatermark::Newer(version));
        }
        let (numbers, rest) = rest.as_chunks::<8>();
        let ([term, head, checksum, own], []) = (numbers, rest) else {
            return Err(BadWatermark::Damaged);
        };
        if version != VERSION || xxh3_64(&bytes[..32]) != u64::from_le_bytes(*own) {
            return Err(BadWatermark::Damaged);
        }
        Ok(Self {
            term: Term(u64::from_le_bytes(*term)),
            head: Seq(u64::from_le_bytes(*head)),
            checksum: u64::from_le_bytes(*checksum),
        })
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, head, checksum } = self;
        write!(f, "entry {} in term {}, with the checksum {checksum:016x}", head.0, term.0)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a log that ends with entry {}", self.head.0)?;
        if let Some(checksum) = self.checksum {
            write!(f, ", where that entry has the checksum {checksum:016x}")?;
        }
        if let Some(term) = self.next_term {
            write!(f, " and the next one is of term {}", term.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Watermark = Watermark { term: Term(5), head: Seq(12), checksum: 0x77 };

    #[test]
    fn a_log_that_has_lost_something_is_refused() {
        let same = Found { head: Seq(12), checksum: Some(0x77), next_term: None };
        let longer = Found { head: Seq(13), next_term: Some(Term(5)), ..same };
        let trimmed = Found { head: Seq(90), checksum: None, next_term: Some(Term(9)) };
        for found in [same, longer, trimmed, Found { checksum: None, ..same }] {
            assert!(MARK.compare(&found).is_ok(), "{found:?}");
        }
        for found in [
            Found { head: Seq(11), checksum: None, next_term: None },
            Found::default(),
            Found { checksum: Some(0x78), ..same },
            Found { checksum: Some(0x78), ..longer },
            Found { next_term: Some(Term(4)), ..longer },
            Found { next_term: Some(Term(4)), ..trimmed },
        ] {
            let error = MARK.compare(&found).unwrap_err().to_string();
            assert!(error.contains("entry 12 in term 5, with the checksum 0000000000000077"));
            assert!(error.contains("`pinpriq cluster accept-rollback`"), "{error}");
        }
        assert!(Watermark::default().compare(&Found::default()).is_ok(), "an empty log");
    }

    #[test]
    fn a_watermark_comes_back() {
        let bytes = MARK.to_bytes();
        assert_eq!(bytes[..16], *b"ppwm\x01\0\0\0\x05\0\0\0\0\0\0\0");
        assert_eq!(u64::from_le_bytes(bytes[32..].try_into().unwrap()), 0x8c20_358a_c4f1_93ec);
        assert_eq!(Watermark::from_bytes(&bytes), Ok(MARK));
        for at in 0..bytes.len() {
            assert_eq!(Watermark::from_bytes(&bytes[..at]), Err(BadWatermark::Damaged));
            for bit in 0..8 {
                let mut changed = bytes;
                changed[at] ^= 1 << bit;
                assert!(Watermark::from_bytes(&changed).is_err(), "bit {bit} of byte {at}");
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(Watermark::from_bytes(&longer), Err(BadWatermark::Damaged));
        let mut newer = bytes;
        newer[4] = 2;
        assert_eq!(Watermark::from_bytes(&newer), Err(BadWatermark::Newer(2)));
    }
}
