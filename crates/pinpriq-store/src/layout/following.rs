//! The file `following`: that a data directory follows an archive, and how far it is.
//!
//! It is JSON on one line, and a second line with its checksum, as in archives. It stands beside
//! the marker that says `unfinished`, so that no server and no tool takes the directory for
//! anything else. What it names on the disk is whole and durable. How segments get there, and what
//! becomes of them when a server starts, is decided in [`restore`](crate::restore).

use std::io;
use std::path::Path;

use pinpriq_proto::change::Header;
use pinpriq_proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{open_if_there, replace_file};
use crate::disk::{Disk, OpenMode, read_full_at};
use crate::journal::{remove_if_there, sync_dir};
use crate::sealed::{Unsealed, hex, seal, unseal};
use crate::shards::SHARDS_MAX;
use crate::store::StoreError;

/// The name of the file.
pub(crate) const FOLLOWING_NAME: &str = "following";

/// Its name while it is written. One left over by a crash has no meaning.
pub(crate) const FOLLOWING_NEW_NAME: &str = "following.new";

/// What the name of a segment begins with while its directory follows.
pub(crate) const FILE_PREFIX: &str = "followed-";

/// The format that is written, and the highest that is read.
const FORMAT: u32 = 1;

/// The most bytes that are read of it: more than half a million segments need.
const BYTES_MAX: u64 = 64 << 20;

/// How far a data directory is that follows an archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Following {
    /// The format of the file.
    pub format: u32,
    /// Whether it still follows.
    pub phase: Phase,
    /// Where the archive is, as users name it.
    pub place: String,
    /// The number of the data directory that it follows.
    #[serde(with = "hex")]
    pub line: u64,
    /// Its own number.
    #[serde(with = "hex")]
    pub number: u64,
    /// The mark whose state it has. 0 if it has none yet.
    pub mark: u64,
    /// The moment of that: every commit up to it is here.
    pub at_ms: u64,
    /// What is here of each shard.
    pub shards: Vec<FollowingShard>,
}

/// Whether a directory still follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It does.
    Following,
    /// A server has begun to go on from it.
    Finishing,
}

/// What is here of a shard.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FollowingShard {
    /// Where it goes on when a server starts.
    pub start: FollowingStart,
    /// The highest that the archive knows of the shard, with the mark whose state this is.
    pub highest: FollowingStart,
    /// Its segments, oldest first, without a gap.
    pub segments: Vec<FollowingSegment>,
    /// Segments that are here and do not count yet: a later mark has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<FollowingSegment>,
}

/// The facts about a shard: see [`Header`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FollowingStart {
    /// The incarnation.
    pub incarnation: u64,
    /// The latest moment.
    pub now_ms: u64,
    /// The highest number.
    pub last_number: u64,
}

/// A segment that is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FollowingSegment {
    /// Its number.
    pub number: u32,
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// How far it is here.
    pub bytes: u64,
    /// Whether that is all of it.
    pub whole: bool,
}

impl Following {
    /// The format that this version writes.
    pub const FORMAT: u32 = FORMAT;

    /// The moment whose state it has.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_ms(self.at_ms)
    }

    fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let following: Self = unseal(bytes, FORMAT).map_err(|error| match error {
            Unsealed::Damaged(what) => damaged(&what),
            Unsealed::Newer(version) => {
                let file = FOLLOWING_NAME.to_owned();
                StoreError::NewerFormat { file, version, known: FORMAT }
            }
        })?;
        if (1..=SHARDS_MAX).contains(&following.shards.len()) {
            Ok(following)
        } else {
            Err(damaged("its shards make no sense"))
        }
    }
}

impl FollowingStart {
    /// The same as the header of a shard.
    #[must_use]
    pub const fn header(&self) -> Header {
        let Self { incarnation, now_ms, last_number } = *self;
        Header { incarnation, now: Timestamp::from_ms(now_ms), last_number }
    }
}

impl From<Header> for FollowingStart {
    fn from(header: Header) -> Self {
        let Header { incarnation, now, last_number } = header;
        Self { incarnation, now_ms: now.ms(), last_number }
    }
}

impl FollowingSegment {
    /// The name of its file while the directory follows. It is no name of a journal, and another
    /// one for each incarnation, so that what counts is never written over.
    #[must_use]
    pub fn file_name(&self) -> String {
        let Self { number, incarnation, .. } = self;
        format!("{FILE_PREFIX}{number:010}-{incarnation}.log")
    }
}

/// Reads how far a data directory is that follows an archive. None if it does not follow, or is not
/// there. Changes nothing.
pub fn read_following(data: &Path) -> Result<Option<Following>, StoreError> {
    open_if_there(data)?.map_or(Ok(None), |disk| read(&disk))
}

/// See [`read_following`].
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Following>, StoreError> {
    let fail = |error| StoreError::from_io("read", FOLLOWING_NAME, 0, error);
    let file = match disk.open(FOLLOWING_NAME, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let length = file.len().map_err(fail)?;
    let length = usize::try_from(length.min(BYTES_MAX)).unwrap_or_default();
    let mut bytes = vec![0; length];
    let read = read_full_at(&*file, 0, &mut bytes).map_err(fail)?;
    bytes.truncate(read);
    Following::decode(&bytes).map(Some)
}

/// Whether the file is there.
pub(crate) fn is_there(disk: &dyn Disk) -> Result<bool, StoreError> {
    match disk.open(FOLLOWING_NAME, OpenMode::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::from_io("open", FOLLOWING_NAME, 0, error)),
    }
}

/// Replaces the file, or makes it. It is durable when this returns.
pub(crate) fn write(disk: &dyn Disk, following: &Following) -> Result<(), StoreError> {
    replace_file(disk, (FOLLOWING_NAME, FOLLOWING_NEW_NAME), &seal(following))
}

/// Removes the file, durably.
pub(crate) fn remove(disk: &dyn Disk) -> Result<(), StoreError> {
    remove_if_there(disk, FOLLOWING_NAME)?;
    sync_dir(disk)
}

fn damaged(what: &str) -> StoreError {
    let what = format!(
        "the file {FOLLOWING_NAME} is damaged ({what}): remove the directory, and follow into an \
         empty one"
    );
    StoreError::Mixed { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn following() -> Following {
        let segment = FollowingSegment { number: 7, incarnation: 3, bytes: 8_300, whole: false };
        let start = FollowingStart { incarnation: 131_075, now_ms: 9, last_number: 1 << 37 };
        let highest = FollowingStart { incarnation: 3, now_ms: 9, last_number: 5 };
        let (segments, ahead) = (vec![segment], Vec::new());
        Following {
            format: FORMAT,
            phase: Phase::Following,
            place: "s3://b/p".to_owned(),
            line: 0xabc,
            number: u64::MAX,
            mark: 12,
            at_ms: 9,
            shards: vec![FollowingShard { start, highest, segments, ahead }],
        }
    }

    #[test]
    fn the_file_is_read_back_as_it_was_written() {
        let known = following();
        let bytes = seal(&known);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let expected = concat!(
            r#"{"format":1,"phase":"following","place":"s3://b/p","line":"0000000000000abc","#,
            r#""number":"ffffffffffffffff","mark":12,"at_ms":9,"shards":[{"start":"#,
            r#"{"incarnation":131075,"now_ms":9,"last_number":137438953472},"highest":"#,
            r#"{"incarnation":3,"now_ms":9,"last_number":5},"segments":[{"number":7,"#,
            r#""incarnation":3,"bytes":8300,"whole":false}]}]}"#
        );
        assert_eq!(text.lines().next(), Some(expected));
        assert_eq!(Following::decode(&bytes).unwrap(), known);
        assert_eq!(known.shards[0].segments[0].file_name(), "followed-0000000007-3.log");
    }

    #[test]
    fn whatever_is_damaged_or_newer_is_refused() {
        let bytes = seal(&following());
        for end in 0..bytes.len() {
            assert!(Following::decode(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Following::decode(&damaged).is_err(), "{at}");
        }
        let newer = seal(&Following { format: 2, ..following() });
        let refused = Following::decode(&newer);
        assert!(matches!(refused, Err(StoreError::NewerFormat { version: 2, .. })), "{refused:?}");
        let empty = seal(&Following { shards: Vec::new(), ..following() });
        assert!(matches!(Following::decode(&empty), Err(StoreError::Mixed { .. })));
    }
}
