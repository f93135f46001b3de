//! Damage to the files of a journal: bytes or whole files change, move, vanish or appear twice.
//!
//! Checksums are left as they are: `forgery.rs` covers forged content.

use super::{Files, segment_name};
use crate::fuzz::feed::Feed;

/// More blows than this look like one file of rubbish.
const BLOWS_MAX: usize = 8;

/// The first bytes of a batch.
const BATCH_MAGIC: [u8; 4] = *b"1BQP";

/// The longest that a file may become.
const FILE_BYTES_MAX: usize = 64 << 10;

/// Returns the files with as much damage as the input says.
pub(super) fn damaged(files: &Files, input: &mut Feed<'_>) -> Files {
    let mut files = files.clone();
    for _ in 0..BLOWS_MAX {
        if input.is_empty() || files.is_empty() {
            break;
        }
        strike(&mut files, input);
    }
    files
}

fn strike(files: &mut Files, input: &mut Feed<'_>) {
    let blow = input.byte() % 14;
    let name = any_name(files, input);
    let mut bytes = files.get_mut(&name).map(std::mem::take).unwrap_or_default();
    match blow {
        8 => {
            let other = any_name(files, input);
            if let Some(source) = files.get(&other).filter(|_| other != name) {
                let (from, at, count) = (place(source, input), place(&bytes, input), input.pair());
                let copied = source[from..source.len().min(from + count)].to_vec();
                overwrite(&mut bytes, at, &copied);
            }
        }
        9 => {
            files.remove(&name);
            return;
        }
        10 => {
            let other = any_name(files, input);
            if let Some(theirs) = files.get_mut(&other).filter(|_| other != name) {
                std::mem::swap(theirs, &mut bytes);
            }
        }
        11 => _ = files.insert(another_name(input), bytes.clone()),
        12 => {
            files.remove(&name);
            files.insert(another_name(input), bytes);
            return;
        }
        within => spoil(within, &mut bytes, input),
    }
    bytes.truncate(FILE_BYTES_MAX);
    files.insert(name, bytes);
}

/// Damage within one file.
fn spoil(blow: u8, bytes: &mut Vec<u8>, input: &mut Feed<'_>) {
    match blow {
        0 => {
            let at = place(bytes, input);
            let bit = input.byte() % 8;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        1 => {
            let (at, count) = (place(bytes, input), input.below(32));
            overwrite(bytes, at, input.bytes(count));
        }
        2 => {
            let (at, count) = (place(bytes, input), input.pair());
            let end = bytes.len().min(at + count);
            bytes[at..end].fill(0);
        }
        3 => bytes.truncate(place(bytes, input)),
        4 => {
            let (more, filler) = (input.pair() % 8192, input.byte());
            bytes.resize(bytes.len() + more, filler);
        }
        5 => {
            let (from, at, count) = (place(bytes, input), place(bytes, input), input.pair());
            let copied = bytes[from..bytes.len().min(from + count)].to_vec();
            overwrite(bytes, at, &copied);
        }
        6 => {
            let (at, count) = (place(bytes, input), input.below(300));
            bytes.drain(at..bytes.len().min(at + count));
        }
        7 => {
            let (at, count) = (place(bytes, input), input.below(32));
            let more = input.bytes(count);
            bytes.splice(at..at, more.iter().copied());
        }
        // As if the file had been created and never written.
        _ => bytes.clear(),
    }
}

fn overwrite(bytes: &mut Vec<u8>, at: usize, with: &[u8]) {
    if bytes.len() < at + with.len() {
        bytes.resize(at + with.len(), 0);
    }
    bytes[at..at + with.len()].copy_from_slice(with);
}

/// Returns a place in the file, which may be its end: somewhere in the headers, at or near a batch,
/// or anywhere.
fn place(bytes: &[u8], input: &mut Feed<'_>) -> usize {
    let wanted = match input.byte() {
        kind @ 0..=3 => 4096 * usize::from(kind % 2) + input.below(80),
        4..=199 => {
            let batches: Vec<usize> = (8192..bytes.len().saturating_sub(3))
                .step_by(8)
                .filter(|&at| bytes[at..at + 4] == BATCH_MAGIC)
                .collect();
            let index = input.below(batches.len().max(1));
            batches.get(index).map_or(8192, |at| at + input.below(160))
        }
        _ => input.pair(),
    };
    wanted.min(bytes.len())
}

fn any_name(files: &Files, input: &mut Feed<'_>) -> String {
    let index = input.below(files.len());
    files.keys().nth(index).cloned().unwrap_or_default()
}

/// Returns a name like those of the files of a journal.
fn another_name(input: &mut Feed<'_>) -> String {
    let number = input.byte();
    match input.byte() % 6 {
        0..=2 => segment_name(u32::from(number)),
        3 => format!("spare-{number:010}.log"),
        4 => segment_name(u32::MAX - u32::from(number)),
        _ => format!("segment-{number}.log"),
    }
}
