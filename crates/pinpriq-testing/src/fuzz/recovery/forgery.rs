//! Segments with correct headers and checksums, and any content.
//!
//! No disk does that, but a file may come from anywhere. Nothing is promised about the meaning of
//! such a journal, except that reading it ends and does no harm.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{Files, segment_name};
use crate::fuzz::feed::Feed;

const SALT: u64 = 0x5A17;
const SEGMENT_START: usize = 8192;
const BATCH_HEADER_BYTES: usize = 64;

/// Returns one segment, or two.
pub(super) fn segments(input: &mut Feed<'_>) -> Files {
    let mut files = Files::new();
    let count = 1 + input.below(2);
    for number in (1..=2).take(count) {
        files.insert(segment_name(number), segment(number, input));
    }
    files
}

fn segment(number: u32, input: &mut Feed<'_>) -> Vec<u8> {
    let strange = input.byte();
    let version: u32 = if strange & 1 == 0 { 2 } else { u32::from(input.byte() % 4) };
    let oldest: u32 = if strange & 2 == 0 { 1 } else { edge32(input) };
    let first_lsn = if strange & 4 == 0 { 1 } else { edge(input) };
    let previous_end = if strange & 8 == 0 { 0 } else { edge(input) };
    let incarnation = if strange & 16 == 0 { 1 } else { edge(input) };
    let now = if strange & 32 == 0 { 1 } else { edge(input) };
    let mut fields = b"PINPRIQJ".to_vec();
    for field in [version, number, oldest, 0] {
        fields.extend(field.to_le_bytes());
    }
    for field in [SALT, first_lsn, previous_end, incarnation, now] {
        fields.extend(field.to_le_bytes());
    }
    fields.extend(xxh3_64(&fields).to_le_bytes());
    let mut bytes = vec![0; SEGMENT_START];
    bytes[..fields.len()].copy_from_slice(&fields);
    let batches = 1 + input.below(4);
    for index in 0..batches as u64 {
        let lsn = first_lsn.wrapping_add(index);
        let batch = batch(lsn, incarnation, bytes.len() as u64, input);
        bytes.extend(batch);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// Returns a batch for this place, with a body of the input's bytes.
fn batch(lsn: u64, incarnation: u64, offset: u64, input: &mut Feed<'_>) -> Vec<u8> {
    let strange = input.byte();
    let records = u32::from(input.byte());
    let lsn = if strange & 1 == 0 { lsn } else { edge(input) };
    let durable_lsn = if strange & 2 == 0 { lsn.wrapping_sub(1) } else { edge(input) };
    let now = if strange & 4 == 0 { 1 } else { edge(input) };
    let last_number = if strange & 8 == 0 { 1 } else { edge(input) };
    let oldest = if strange & 16 == 0 { 1 } else { edge32(input) };
    let length = input.pair() % 2048;
    let body = input.bytes(length);
    let mut batch = 0x5051_4231_u32.to_le_bytes().to_vec();
    batch.extend(u32::try_from(body.len()).unwrap_or(0).to_le_bytes());
    for field in [lsn, durable_lsn, incarnation, now, last_number] {
        batch.extend(field.to_le_bytes());
    }
    batch.extend(oldest.to_le_bytes());
    batch.extend(records.to_le_bytes());
    let joined = [batch.as_slice(), body].concat();
    let sum = xxh3_64_with_seed(&joined, SALT.wrapping_add(offset));
    batch.extend(sum.to_le_bytes());
    assert_eq!(batch.len(), BATCH_HEADER_BYTES);
    batch.extend(body);
    batch
}

/// Returns a number near an end of its range, or any small one.
fn edge(input: &mut Feed<'_>) -> u64 {
    match input.byte() {
        low @ 0..=127 => u64::from(low),
        high => u64::MAX - u64::from(high - 128),
    }
}

fn edge32(input: &mut Feed<'_>) -> u32 {
    match input.byte() {
        low @ 0..=127 => u32::from(low),
        high => u32::MAX - u32::from(high - 128),
    }
}
