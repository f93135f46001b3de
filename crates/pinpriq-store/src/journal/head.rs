//! The file `head`: how far the journal had come at its last start or its last new segment.
//!
//! A log without its newest segments, or an older copy of a log, looks complete by itself. This
//! file reveals it. It is written in place and never grows, so a full disk does not matter. Its two
//! copies are written one after the other, so one of them is always whole. A missing file is no
//! error: older servers wrote none. The bytes are those of `docs/internals/journal.md`.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use super::segment::{u32_at, u64_at};
use super::writer::{sync_dir, sync_file};
use crate::disk::{Disk, HEAD_NAME, OpenMode, read_full_at, write_all_at};
use crate::store::StoreError;

const MAGIC: &[u8; 8] = b"PINPRIQH";

/// The number of bytes of a copy that have a meaning.
const FIELDS_BYTES: usize = 40;

/// The size of each copy, and the offset of the second one.
const COPY_BYTES: usize = 4096;

/// The contents of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Head {
    /// The highest incarnation that has begun.
    pub(crate) incarnation: u64,
    /// The highest incarnation that all shards of the data directory had begun. Requests are
    /// served only after that.
    pub(crate) served: u64,
    /// The number of a segment that was durable.
    pub(crate) newest: u32,
}

/// Reads the file. Returns none if it does not exist, or if no copy was completely written.
pub(crate) fn read_head(disk: &dyn Disk) -> Result<Option<Head>, StoreError> {
    let fail = |error| StoreError::from_io("read", HEAD_NAME, 0, error);
    let file = match disk.open(HEAD_NAME, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut copies = Vec::new();
    for offset in [0, COPY_BYTES] {
        let mut bytes = [0; FIELDS_BYTES];
        let read = read_full_at(&*file, offset as u64, &mut bytes).map_err(fail)?;
        copies.extend(if read == bytes.len() { parse(&bytes) } else { None });
    }
    Ok(copies.into_iter().max())
}

/// Updates the file durably. Creates it if it does not exist and there is room for it.
pub(crate) fn update_head(
    disk: &dyn Disk,
    change: impl FnOnce(&mut Head),
) -> Result<(), StoreError> {
    let known = read_head(disk)?;
    let mut head = known.unwrap_or_default();
    change(&mut head);
    if known == Some(head) {
        return Ok(());
    }
    match write_head(disk, &head) {
        Err(error @ StoreError::Full { .. }) if known.is_none() => {
            // It is needed only to notice that files were lost.
            _ = disk.remove(HEAD_NAME);
            tracing::warn!(%error, "the file head cannot be made");
            Ok(())
        }
        written => written,
    }
}

fn write_head(disk: &dyn Disk, head: &Head) -> Result<(), StoreError> {
    let fail = |what, error| StoreError::from_io(what, HEAD_NAME, 0, error);
    let (file, is_new) = match disk.open(HEAD_NAME, OpenMode::ReadWrite) {
        Ok(file) => (file, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = disk.open(HEAD_NAME, OpenMode::CreateNew);
            (made.map_err(|error| fail("make", error))?, true)
        }
        Err(error) => return Err(fail("open", error)),
    };
    for offset in [0, COPY_BYTES] {
        write_all_at(&*file, offset as u64, &encode(head)).map_err(|error| fail("write", error))?;
        sync_file(&*file, HEAD_NAME)?;
    }
    if is_new { sync_dir(disk) } else { Ok(()) }
}

fn encode(head: &Head) -> [u8; FIELDS_BYTES] {
    let mut bytes = [0; FIELDS_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&head.newest.to_le_bytes());
    bytes[16..24].copy_from_slice(&head.incarnation.to_le_bytes());
    bytes[24..32].copy_from_slice(&head.served.to_le_bytes());
    let sum = xxh3_64(&bytes[..32]);
    bytes[32..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8; FIELDS_BYTES]) -> Option<Head> {
    let is_whole = bytes[..8] == *MAGIC && u64_at(bytes, 32) == xxh3_64(&bytes[..32]);
    is_whole.then(|| Head {
        newest: u32_at(bytes, 8),
        incarnation: u64_at(bytes, 16),
        served: u64_at(bytes, 24),
    })
}
