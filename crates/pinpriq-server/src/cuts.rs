//! Cuts of all journals of a server at one moment, and how the files of a cut are read.
//!
//! Each shard tells, between two turns, how far its journal is. Its files are then read beside it,
//! so no shard ever waits for whoever copies them. What is done with them is not decided here.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::RealDisk;
use pinpriq_store::disk::{Disk, DiskFile, OpenMode, read_full_at};
use pinpriq_store::journal::{Asked, Purpose, ShardCut, Tap};

use crate::clock::stopwatch;

/// How long all shards may take to tell how far they are. One that is slow has much to write.
pub(crate) const CUT_WITHIN: Duration = Duration::from_secs(30);

/// A journal that can be copied while it runs.
#[derive(Clone)]
pub(crate) struct Copied {
    /// Where it is.
    pub(crate) directory: PathBuf,
    /// How to ask it how far it is.
    pub(crate) tap: Arc<Tap>,
}

/// A moment, and what of each shard belongs to it.
pub(crate) type Cut = (Timestamp, Vec<ShardCut>);

/// Takes a cut for a purpose, if the shards answer.
pub(crate) type TakeCut = Box<dyn FnMut(Purpose) -> Option<Cut>>;

/// Asks all shards for a cut, until what they answer suffices for one moment. Blocks.
pub(crate) fn cut_of_all(taps: &[Arc<Tap>], purpose: Purpose) -> Option<Cut> {
    let passed = stopwatch();
    // What was kept for a former answer is kept until the next one is there.
    let mut former: Option<Vec<ShardCut>> = None;
    loop {
        let asked: Vec<Asked> = taps.iter().map(|tap| tap.ask(purpose)).collect();
        let cut = |asked: Asked| asked.wait(CUT_WITHIN.saturating_sub(passed()));
        let cuts = asked.into_iter().map(cut).collect::<Option<Vec<_>>>()?;
        if let Some(at) = ShardCut::common_moment(&cuts) {
            return Some((at, cuts));
        }
        if passed() >= CUT_WITHIN {
            return None;
        }
        drop(former.replace(cuts));
    }
}

/// Opens a file of a journal for reading. Blocks.
pub(crate) fn open(directory: &Path, name: &str) -> io::Result<Arc<dyn DiskFile>> {
    let disk = RealDisk::open_read_only(directory)?;
    Ok(Arc::from(Disk::open(&disk, name, OpenMode::Read)?))
}

/// Adds so many bytes of a file to those of `into`. Blocks.
pub(crate) fn read_piece(
    file: &dyn DiskFile,
    at: u64,
    bytes: u64,
    into: &mut Vec<u8>,
) -> io::Result<()> {
    let before = into.len();
    into.resize(before + usize::try_from(bytes).unwrap_or_default(), 0);
    let piece = &mut into[before..];
    if read_full_at(file, at, piece)? < piece.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}
