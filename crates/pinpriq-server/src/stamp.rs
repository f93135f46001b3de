//! What tells one state of a file from another, without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The state of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    mode: u32,
}

impl Stamp {
    /// Returns the state of a file, if there is one. Blocks.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let about = path.metadata().ok()?;
        let modified = (about.mtime(), about.mtime_nsec());
        let (inode, bytes, mode) = (about.ino(), about.len(), about.mode());
        Some(Self { inode, bytes, modified, mode })
    }
}
