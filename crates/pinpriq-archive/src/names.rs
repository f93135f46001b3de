//! The names of objects in a place, and of lines. They are those of `docs/internals/archive.md`.
//!
//! A name that is read back counts only if it is exactly what would be written.

use std::fmt;
use std::str::FromStr;

use pinpriq_store::layout::shard_name;
use pinpriq_store::sealed::parse_hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Below this are the marks.
pub(crate) const MARKS: &str = "marks";

/// Below this is what a prune left for a later one to remove.
pub(crate) const PRUNED: &str = "pruned";

/// The last part of the name of an object with a whole segment.
pub(crate) const WHOLE: &str = "whole";

/// The highest number of a mark. A mark every millisecond gets there in 31 years.
pub(crate) const MARK_MAX: u64 = 999_999_999_999;

/// How many marks have one prefix.
const BLOCK: u64 = 1_000;

/// What the name of a file begins with in a directory until it is complete.
pub(crate) const UNFINISHED: &str = ".new-";

/// The name of a line: the number of the data directory whose history it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LineId(pub u64);

impl fmt::Display for LineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for LineId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_hex(text)
            .map(Self)
            .ok_or_else(|| "a line is named by 16 hexadecimal digits".to_owned())
    }
}

impl Serialize for LineId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LineId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A segment of a shard: of two with one number the later incarnation counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId {
    /// Its number in its journal, from 1.
    pub number: u32,
    /// The incarnation that wrote it.
    pub incarnation: u64,
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}-{}", self.number, self.incarnation)
    }
}

/// The object of a mark.
pub(crate) fn mark(number: u64) -> String {
    format!("{MARKS}/{:09}/{:03}", number / BLOCK, number % BLOCK)
}

/// Below this are the thousand marks of a block.
pub(crate) fn mark_block(block: u64) -> String {
    format!("{MARKS}/{block:09}")
}

/// What a line is.
pub(crate) fn line(line: LineId) -> String {
    format!("{line}/line")
}

/// Below this are the whole segments of a shard.
pub(crate) fn shard(line: LineId, shard: usize) -> String {
    format!("{line}/{}", shard_name(shard))
}

/// Below this is a segment.
pub(crate) fn segment(line: LineId, shard: usize, segment: SegmentId) -> String {
    format!("{}/{segment}", self::shard(line, shard))
}

/// A whole segment.
pub(crate) fn whole(line: LineId, shard: usize, segment: SegmentId) -> String {
    format!("{}/{WHOLE}", self::segment(line, shard, segment))
}

/// Below this are the blocks of parts of a line.
pub(crate) fn all_parts(line: LineId) -> String {
    format!("{line}/parts")
}

/// Below this are the parts that were written with the thousand marks of a block.
pub(crate) fn parts_block(line: LineId, block: u64) -> String {
    format!("{line}/parts/{block:09}")
}

/// The last part of the name of an object of parts.
pub(crate) fn parts_name(mark: u64, object: u32) -> String {
    format!("{:03}-{object}", mark % BLOCK)
}

/// An object with parts of segments, which was written with this mark.
pub(crate) fn parts(line: LineId, mark: u64, object: u32) -> String {
    format!("{}/{}", parts_block(line, block(mark)), parts_name(mark, object))
}

/// What a prune left for a later one.
pub(crate) fn pruned(number: u64) -> String {
    format!("{PRUNED}/{number:09}")
}

/// The block of a mark.
pub(crate) const fn block(mark: u64) -> u64 {
    mark / BLOCK
}

/// The number of a block, or of what a prune left, by its name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    digits(name, 9)
}

/// The number of a mark, by its block and its name there.
pub(crate) fn mark_in(block: u64, name: &str) -> Option<u64> {
    let number = block * BLOCK + digits(name, 3)?;
    (number > 0).then_some(number)
}

/// The mark with which parts were written, and the number of their object, by its block and name.
pub(crate) fn parts_in(block: u64, name: &str) -> Option<(u64, u32)> {
    let (mark, object) = name.split_once('-')?;
    let (mark, object) = (mark_in(block, mark)?, object.parse().ok()?);
    (parts_name(mark, object) == name).then_some((mark, object))
}

/// A segment, by the name of the prefix below which it is.
pub(crate) fn segment_of(name: &str) -> Option<SegmentId> {
    let (number, incarnation) = name.split_once('-')?;
    let (number, incarnation) = (number.parse().ok()?, incarnation.parse().ok()?);
    let segment = SegmentId { number, incarnation };
    (segment.to_string() == name).then_some(segment)
}

/// A shard, by the name of the prefix below which it is.
pub(crate) fn shard_of(name: &str) -> Option<usize> {
    let shard = digits(name.strip_prefix("shard-")?, 2)?;
    usize::try_from(shard).ok()
}

/// A line, by the name of the prefix below which it is.
pub(crate) fn line_of(name: &str) -> Option<LineId> {
    let line: LineId = name.parse().ok()?;
    (line.to_string() == name).then_some(line)
}

fn digits(text: &str, count: usize) -> Option<u64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_as_they_are_written() {
        let id = LineId(0xabc);
        let known = SegmentId { number: 7, incarnation: 70_000 };
        assert_eq!(mark(1_234_567), "marks/000001234/567");
        assert_eq!(line(id), "0000000000000abc/line");
        assert_eq!(whole(id, 3, known), "0000000000000abc/shard-03/0000000007-70000/whole");
        assert_eq!(parts(id, 12_003, 4), "0000000000000abc/parts/000000012/003-4");
        assert_eq!(pruned(5), "pruned/000000005");
        assert_eq!(number_of("000001234").and_then(|at| mark_in(at, "567")), Some(1_234_567));
        assert_eq!(parts_in(12, "003-4"), Some((12_003, 4)));
        assert_eq!(segment_of("0000000007-70000"), Some(known));
        assert_eq!(shard_of("shard-03"), Some(3));
        assert_eq!(line_of("0000000000000abc"), Some(id));
        assert_eq!(mark(MARK_MAX), "marks/999999999/999");
    }

    #[test]
    fn other_names_are_no_names() {
        assert_eq!(number_of("1234"), None);
        assert_eq!(number_of("+00000001"), None);
        assert_eq!(mark_in(0, "000"), None);
        assert_eq!(mark_in(0, "1"), None);
        for name in ["3-4", "003-04", "003-+4", "003", "003-", "003-99999999999"] {
            assert_eq!(parts_in(12, name), None, "{name}");
        }
        for name in ["7-1", "0000000007-01", "0000000007", "+000000007-1", "0000000007--1"] {
            assert_eq!(segment_of(name), None, "{name}");
        }
        for name in ["0000000000000ABC", "abc", "0000000000000abcd", "+000000000000abc"] {
            assert_eq!(line_of(name), None, "{name}");
        }
        assert_eq!(shard_of("shard-3"), None);
    }
}
