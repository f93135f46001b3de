//! Recovery: a journal that was damaged or invented is read, checked and salvaged.
//!
//! The first byte chooses what the others are: damage to a journal that a server wrote
//! ([`damage`]), batches with right checksums and any content ([`forgery`]), the bytes of segment
//! files as they are, or records. [`judge`] says what must become of a damaged journal, and
//! [`written`] what it contained before.

mod damage;
mod forgery;
mod judge;
mod shown;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::faulty_disk::FaultyDisk;
use pinpriq_store::codec::{Names, decode, decode_key, encode};
use pinpriq_store::journal::segment_name;
use pinpriq_store::{Disk, Journal, JournalOptions, Level, Runner, StoreError};

use crate::fuzz::feed::Feed;

/// The files of a directory, by their names.
type Files = BTreeMap<String, Vec<u8>>;

/// The smallest segments allowed.
const SEGMENT_BYTES: u32 = 24 << 10;

/// Recovers any bytes as a data directory.
///
/// # Panics
/// If reading, checking or salvaging panics, or shows something that was never written.
pub fn recovery(bytes: &[u8]) {
    let mut input = Feed::new(bytes);
    match input.byte() {
        0 => records(input.rest()),
        1 => judge::survives(&raw_segments(&mut input)),
        2 => judge::survives(&forgery::segments(&mut input)),
        chosen => {
            let all = written::journals();
            let journal = &all[usize::from(chosen - 3) % all.len()];
            judge::recovers(journal, &damage::damaged(&journal.files, &mut input));
        }
    }
}

fn options(salt_seed: u64) -> JournalOptions {
    JournalOptions {
        level: Level::Sync,
        segment_bytes: SEGMENT_BYTES,
        salt_seed,
        slack_bytes: u64::from(SEGMENT_BYTES),
        leaves_payloads: false,
        gathers: false,
        watches: false,
    }
}

fn journal(disk: &FaultyDisk) -> Result<Box<Journal>, StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Journal::open(disk, options(7), Runner::Inline).map(Box::new)
}

/// Returns up to three segments, as they are in the input.
fn raw_segments(input: &mut Feed<'_>) -> Files {
    let count = 1 + input.below(3);
    let mut files = Files::new();
    for number in (1..=3).take(count) {
        let length = input.pair();
        files.insert(segment_name(number), input.bytes(length).to_vec());
    }
    files
}

/// Reads one record after another, writes each again, and reads it once more.
fn records(mut rest: &[u8]) {
    let mut names = Names::default();
    while !rest.is_empty() {
        let before = rest;
        let mut for_key = rest;
        let decoded = decode(&mut rest, &mut names);
        assert!(before.ends_with(rest), "bytes are taken off the front");
        let key = decode_key(&mut for_key);
        let Ok(change) = decoded else {
            assert_eq!(key.err(), decoded.err(), "the key is refused as the record is");
            return;
        };
        assert_eq!((key, for_key), (Ok(change.key()), rest), "the key is that of the record");
        assert!(rest.len() < before.len(), "a record has bytes");
        let mut written = Vec::new();
        encode(&change, &mut written);
        let back = decode(&mut written.as_slice(), &mut names);
        assert_eq!(back.as_ref(), Ok(&change), "a record comes back as it was");
        let is_of_an_older_version = matches!(before[0], 1 | 2 | 5 | 8 | 9 | 10);
        let has_our_form = written == before[..before.len() - rest.len()];
        assert!(is_of_an_older_version || has_our_form, "a record has one form");
    }
}
