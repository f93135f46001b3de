//! Reads the segments of a cut for an archive, beside the shards.
//!
//! After every piece somebody says whether to go on: files that are no longer kept may have changed
//! meanwhile. Who keeps them, and for how long, is decided elsewhere.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pinpriq_archive::{CutInfo, Source, SourceError};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::disk::DiskFile;
use pinpriq_store::journal::{ShardCut, segment_name};

use crate::cuts::{open, read_piece};

/// Says, after a piece of this shard's segment was read, whether it was right and more may be read.
pub(super) type GoOn<'a> = Box<dyn FnMut(usize, u32) -> Result<(), SourceError> + 'a>;

/// Reads a cut.
pub(super) struct Reading<'a> {
    info: CutInfo,
    /// Where the journal of each shard is.
    directories: Arc<[PathBuf]>,
    go_on: GoOn<'a>,
    /// The file that was read last, with its shard and number.
    file: Option<(usize, u32, Arc<dyn DiskFile>)>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(info: CutInfo, directories: Arc<[PathBuf]>, go_on: GoOn<'a>) -> Self {
        Self { info, directories, go_on, file: None }
    }

    fn read_piece(
        &mut self,
        (shard, number): (usize, u32),
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> io::Result<()> {
        let opened = self.file.take().filter(|(of, it, _)| (*of, *it) == (shard, number));
        let file = if let Some((_, _, file)) = opened {
            file
        } else {
            let directory = self.directories.get(shard).ok_or(io::ErrorKind::NotFound)?;
            open(directory, &segment_name(number))?
        };
        read_piece(&*file, from, to.saturating_sub(from), into)?;
        self.file = Some((shard, number, file));
        Ok(())
    }
}

impl Source for Reading<'_> {
    fn cut(&self) -> &CutInfo {
        &self.info
    }

    fn read(
        &mut self,
        shard: usize,
        segment: u32,
        from: u64,
        to: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        let read = self.read_piece((shard, segment), from, to, into);
        (self.go_on)(shard, segment)?;
        read.map_err(|error| {
            let name = segment_name(segment);
            because(format!("{name} of shard {shard} cannot be read: {error}"))
        })
    }
}

/// Returns what an archive has to know of a cut.
pub(super) fn info_of(at: Timestamp, cuts: &[ShardCut]) -> CutInfo {
    CutInfo { at, shards: cuts.iter().map(|cut| cut.segments.clone()).collect() }
}

/// Why nothing is read.
pub(super) fn because(what: impl Into<String>) -> SourceError {
    SourceError { what: what.into() }
}
