//! A cut of the simulated server, read into memory as an archive reads it, and what its log says.
//!
//! All of it is read at one moment, so that no thread of the archiver decides when the disk is
//! used. Which cuts are read when is decided in `rounds`.

use std::collections::BTreeMap;
use std::io;

use pinpriq_archive::{CutInfo, Source, SourceError};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::{OpenMode, index, read_full_at};
use pinpriq_store::journal::raw::{self, RawCommit};
use pinpriq_store::journal::{SegmentEnd, segment_name};
use pinpriq_store::{Disk, StoreError};

use crate::faulty_disk::FaultyDisk;
use crate::sim::archive::End;

/// A cut with all bytes that belong to it.
pub(super) struct Copied {
    info: CutInfo,
    /// The bytes of each segment, by its number.
    bytes: BTreeMap<u32, Vec<u8>>,
}

impl Copied {
    /// Reads the segments of a cut with this moment.
    pub(super) fn from_disk(
        disk: &FaultyDisk,
        at: Timestamp,
        segments: Vec<SegmentEnd>,
    ) -> io::Result<Self> {
        let mut bytes = BTreeMap::new();
        for segment in &segments {
            let file = disk.open(&segment_name(segment.number), OpenMode::Read)?;
            let mut read = vec![0; index(segment.bytes)];
            if read_full_at(&*file, 0, &mut read)? < read.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.insert(segment.number, read);
        }
        Ok(Self { info: CutInfo { at, shards: vec![segments] }, bytes })
    }

    /// Every commit in it, oldest first.
    pub(super) fn commits(&self) -> Result<Vec<RawCommit>, StoreError> {
        let mut commits = Vec::new();
        for (number, bytes) in &self.bytes {
            let name = segment_name(*number);
            raw::walk_each(&name, bytes, &mut |commit| commits.push(*commit))?;
        }
        Ok(commits)
    }

    /// The number of its first segment.
    pub(super) fn first(&self) -> u32 {
        self.bytes.first_key_value().map_or(0, |(number, _)| *number)
    }

    /// Where it ends.
    pub(super) fn end(&self) -> Option<End> {
        let last = self.info.shards.first()?.last()?;
        Some((last.number, last.incarnation, last.bytes))
    }
}

impl Source for Copied {
    fn cut(&self) -> &CutInfo {
        &self.info
    }

    fn read(
        &mut self,
        _shard: usize,
        segment: u32,
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        let bytes = self.bytes.get(&segment).and_then(|all| all.get(index(from)..index(to)));
        bytes.map(|bytes| into.extend_from_slice(bytes)).ok_or_else(|| SourceError {
            what: format!("the cut has no bytes of segment {segment} from {from} to {to}"),
        })
    }
}

/// The number of the first commit of an incarnation, given the files of its journal.
pub(crate) fn first_commit(files: &BTreeMap<String, Vec<u8>>, incarnation: u64) -> Option<u64> {
    let segments = files.iter().filter(|(name, _)| name.starts_with("segment-"));
    let headers = segments.filter_map(|(_, bytes)| raw::header(bytes).ok());
    let own = headers.filter(|header| header.incarnation == incarnation);
    own.map(|header| header.first_lsn).min()
}
