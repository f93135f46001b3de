//! Reads a segment file from front to back, through a window of bounded size.
//!
//! However long a file is and whatever a header in it announces, no more of it is in memory than
//! the window, or one batch whose checksum was right. Searching reads nothing from holes in the
//! file. `reader` decides which batch is due and what it means.

#[cfg(test)]
mod tests;

use super::segment::{BATCH_BYTES_MAX, BATCH_HEADER_BYTES, BatchHeader, BatchSum, SegmentHeader};
use crate::disk::{Disk, DiskFile, OpenMode, index, read_full_at};
use crate::store::StoreError;

/// How much is read at a time.
pub(crate) const WINDOW_BYTES: usize = 1 << 20;

/// One open file, and a part of it in memory.
pub(crate) struct Window {
    file: Box<dyn DiskFile>,
    name: String,
    /// The length of the file when it was opened.
    file_bytes: u64,
    /// Where reading ends.
    end: u64,
    /// The number of bytes read at a time.
    usual: usize,
    /// Where in the file the part in memory begins.
    start: u64,
    /// The number of bytes in the buffer.
    held: usize,
    buffer: Vec<u8>,
}

impl Window {
    /// Opens a file, which is read no further than `limit`.
    pub(crate) fn open(disk: &dyn Disk, name: &str, limit: u64) -> Result<Self, StoreError> {
        Self::with_size(disk, name, limit, WINDOW_BYTES)
    }

    fn with_size(
        disk: &dyn Disk,
        name: &str,
        limit: u64,
        usual: usize,
    ) -> Result<Self, StoreError> {
        let fail = |error| StoreError::from_io("read", name, 0, error);
        let file = disk.open(name, OpenMode::Read).map_err(fail)?;
        let file_bytes = file.len().map_err(fail)?;
        let (name, buffer) = (name.to_owned(), Vec::new());
        let end = file_bytes.min(limit);
        Ok(Self { file, name, file_bytes, end, usual, start: 0, held: 0, buffer })
    }

    /// The length of the file when it was opened.
    pub(crate) const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Where reading ends.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Discards what was read, so that later writes are seen.
    pub(crate) const fn forget(&mut self) {
        self.held = 0;
    }

    /// Returns what is in memory from `offset` on: at least this many bytes, unless the file ends
    /// before.
    pub(crate) fn bytes_at(&mut self, offset: u64, wanted: usize) -> Result<&[u8], StoreError> {
        let there = wanted.min(index(self.end.saturating_sub(offset)));
        if self.held_from(offset) < there || self.held == 0 {
            self.slide(offset, wanted)?;
        }
        Ok(self.buffer[..self.held].get(index(offset - self.start)..).unwrap_or_default())
    }

    /// The number of bytes in memory from `offset` on.
    fn held_from(&self, offset: u64) -> usize {
        offset.checked_sub(self.start).map_or(0, |before| self.held.saturating_sub(index(before)))
    }

    /// Moves the window to `offset`, and keeps what it shares with the part before.
    fn slide(&mut self, offset: u64, wanted: usize) -> Result<(), StoreError> {
        let kept = self.held_from(offset);
        self.buffer.copy_within(self.held - kept..self.held, 0);
        (self.start, self.held) = (offset, kept);
        let size = self.usual.max(wanted).min(index(self.end.saturating_sub(offset)));
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        } else if self.buffer.len() > self.usual {
            self.buffer.truncate(self.usual.max(size));
            self.buffer.shrink_to_fit();
        }
        let from = offset + kept as u64;
        let read = read_full_at(&*self.file, from, &mut self.buffer[kept..size])
            .map_err(|error| StoreError::from_io("read", &self.name, from, error))?;
        self.held += read;
        if self.held < size {
            // It was truncated meanwhile.
            self.end = offset + self.held as u64;
        }
        Ok(())
    }

    /// Returns what looks like a batch header at `offset` and announces a batch that the file can
    /// hold.
    pub(crate) fn header_at(&mut self, offset: u64) -> Result<Option<BatchHeader>, StoreError> {
        let header = BatchHeader::peek(self.bytes_at(offset, BATCH_HEADER_BYTES)?);
        let most = self.end.saturating_sub(offset).min(BATCH_BYTES_MAX);
        Ok(header.filter(|header| header.batch_bytes() as u64 <= most))
    }

    /// Whether the checksum of the batch with this header, which is at `offset`, is right.
    pub(crate) fn confirms(
        &mut self,
        offset: u64,
        batch: &BatchHeader,
        salt: u64,
    ) -> Result<bool, StoreError> {
        let length = batch.batch_bytes();
        if length > self.usual {
            return self.confirms_in_pieces(offset, batch, salt);
        }
        let bytes = self.bytes_at(offset, length)?;
        Ok(bytes.len() >= length && batch.confirms(bytes, salt, offset))
    }

    /// Like `confirms`, for a batch larger than the window. It may not be a batch, so it gets no
    /// memory yet.
    fn confirms_in_pieces(
        &mut self,
        offset: u64,
        batch: &BatchHeader,
        salt: u64,
    ) -> Result<bool, StoreError> {
        let Some(mut sum) =
            BatchSum::begin(self.bytes_at(offset, BATCH_HEADER_BYTES)?, salt, offset)
        else {
            return Ok(false);
        };
        let mut buffer = vec![0; self.usual];
        let mut at = offset + BATCH_HEADER_BYTES as u64;
        let end = offset + batch.batch_bytes() as u64;
        while at < end {
            let piece = &mut buffer[..self.usual.min(index(end - at))];
            if self.next_data(at)? < at + piece.len() as u64 {
                let read = read_full_at(&*self.file, at, piece)
                    .map_err(|error| StoreError::from_io("read", &self.name, at, error))?;
                if read < piece.len() {
                    return Ok(false);
                }
            } else {
                piece.fill(0);
            }
            sum.add(piece);
            at += piece.len() as u64;
        }
        Ok(sum.is_right())
    }

    /// Finds the first batch at or after `from`, a multiple of 8, that is whole, belongs to the
    /// segment with this header and `fits`. Costs one step for each 8 bytes of data in the file.
    pub(crate) fn find(
        &mut self,
        segment: &SegmentHeader,
        from: u64,
        fits: &dyn Fn(&BatchHeader) -> bool,
    ) -> Result<Option<(u64, BatchHeader)>, StoreError> {
        let mut offset = from;
        loop {
            if self.held_from(offset) == 0 {
                // A batch begins with bytes that are not zero.
                offset = self.next_data(offset)?.max(offset) & !7;
            }
            let bytes = self.bytes_at(offset, BATCH_HEADER_BYTES)?;
            let Some(last) = bytes.len().checked_sub(BATCH_HEADER_BYTES) else { return Ok(None) };
            let places = last / 8 + 1;
            let Some(place) = bytes.chunks_exact(8).take(places).position(BatchHeader::may_begin)
            else {
                let rest = &bytes[places * 8..];
                let searched =
                    if rest.iter().all(|&byte| byte == 0) { bytes.len() } else { places * 8 };
                offset += searched.next_multiple_of(8) as u64;
                continue;
            };
            offset += place as u64 * 8;
            // The cheap checks come first: a file full of look-alikes costs no checksums.
            let plausible = self.header_at(offset)?.filter(|batch| {
                batch.incarnation == segment.incarnation
                    && batch.makes_sense()
                    && batch.lsn >= segment.first_lsn
                    && (1..=segment.number).contains(&batch.oldest)
                    && fits(batch)
            });
            if let Some(batch) = plausible
                && self.confirms(offset, &batch, segment.salt)?
            {
                return Ok(Some((offset, batch)));
            }
            offset += 8;
        }
    }

    /// The first offset at or after `offset` where the file may hold anything but zeros, or its end
    /// if there is none.
    fn next_data(&self, offset: u64) -> Result<u64, StoreError> {
        let fail = |error| StoreError::from_io("look for data in", &self.name, offset, error);
        Ok(self.file.next_data(offset).map_err(fail)?.unwrap_or(self.end))
    }
}
