//! What a line is: the history of one data directory, and where it comes from.

use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::mark::Knows;
use crate::names::{self, LineId, line_of};
use crate::place::Place;
use crate::sealed::{FORMAT, seal, unseal};

/// How many lines may lie between a line and one that comes from it.
const GENERATIONS_MAX: u32 = 10_000;

/// The history of one data directory. It is written once, before its first mark.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The format of lines.
    pub format: u32,
    /// The number of the data directory.
    pub line: LineId,
    /// How many shards it has.
    pub shards: u32,
    /// When this was written.
    pub made_at_ms: u64,
    /// The line that it was restored from, if it was restored.
    pub parent: Option<Parent>,
    /// For each shard where it began after it was restored. What it gave since is not known, but it
    /// is beyond this.
    pub starts: Vec<Knows>,
}

/// Where a restored line comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The line.
    pub line: LineId,
    /// The mark that was restored.
    pub mark: u64,
    /// The moment whose state it was.
    pub at_ms: u64,
}

impl Line {
    /// The line of a directory that was not restored.
    pub(crate) const fn fresh(line: LineId, shards: u32, made_at_ms: u64) -> Self {
        Self { format: FORMAT, line, shards, made_at_ms, parent: None, starts: Vec::new() }
    }

    /// The bytes of the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(self)
    }

    /// Reads the object of this name. Accepts any bytes.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, ArchiveError> {
        let line: Self = unseal(name, bytes)?;
        if line.format != FORMAT || !line.starts.is_empty() && line.starts.len() != line.shards() {
            return Err(ArchiveError::damaged(name, "its shards make no sense"));
        }
        Ok(line)
    }

    /// Reads what a line is, if it is there.
    pub(crate) fn read(place: &dyn Place, line: LineId) -> Result<Option<Self>, ArchiveError> {
        let name = names::line(line);
        let Some(bytes) = place.get(&name)? else { return Ok(None) };
        let found = Self::decode(&name, &bytes)?;
        if found.line == line {
            Ok(Some(found))
        } else {
            Err(ArchiveError::damaged(&name, "it says that it is another line"))
        }
    }

    /// How many shards it has.
    #[must_use]
    pub fn shards(&self) -> usize {
        usize::try_from(self.shards).unwrap_or(usize::MAX)
    }
}

/// The lines of a place, in the order of their numbers.
pub(crate) fn lines(place: &dyn Place) -> Result<Vec<LineId>, ArchiveError> {
    let listing = place.list("")?;
    Ok(listing.prefixes.iter().filter_map(|name| line_of(name)).collect())
}

/// Whether a line was restored from another one, or from one that was.
pub(crate) fn comes_from(
    place: &dyn Place,
    line: LineId,
    from: LineId,
) -> Result<bool, ArchiveError> {
    let mut at = line;
    for _ in 0..GENERATIONS_MAX {
        match Line::read(place, at)?.and_then(|known| known.parent) {
            Some(parent) if parent.line == from => return Ok(true),
            Some(parent) => at = parent.line,
            None => return Ok(false),
        }
    }
    Ok(false)
}
