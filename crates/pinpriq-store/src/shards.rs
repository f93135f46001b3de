//! Decides in which of several shards a queue lives.
//!
//! A shard is one engine with one store. The name of a queue or topic alone determines its shard,
//! so no lookup and no table is needed. How shards communicate is the server's business.

use xxhash_rust::xxh3::xxh3_64;

/// The most shards that a server can have.
pub const SHARDS_MAX: usize = 64;

/// The base-2 logarithm of the number of task numbers that each shard has to itself.
const BLOCK_BITS: u32 = 46;

/// Returns the shard of the queue or topic of this name, from 0 to `shards - 1`.
///
/// Names with the same non-empty text in their first pair of braces live in one shard, as in Redis
/// Cluster: `{order}:mail` and `{order}:bill` do. The result never changes from one version to the
/// next.
#[must_use]
pub fn shard_of(name: &[u8], shards: usize) -> usize {
    let place = u128::from(xxh3_64(tag(name))) * shards as u128;
    usize::try_from(place >> 64).unwrap_or_default()
}

/// The part of a name that determines the shard.
fn tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
    let rest = &name[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => name,
        Some(close) => &rest[..close],
    }
}

/// Returns the number before the first one that a new shard gives to a task. Numbers of one shard
/// never occur in another, so that shards can be joined and split. Each shard has 2^46 numbers,
/// which is more than it can use up. The numbers of the first 128 such ranges are exact in programs
/// that keep numbers as doubles. That covers 64 newly made shards, or 8 shards that were moved to
/// another number of shards a dozen times.
#[must_use]
pub const fn first_number(shard: usize) -> u64 {
    (shard as u64) << BLOCK_BITS
}

/// Returns the number before the first one that a shard gives to a task after the tasks of other
/// shards, whose numbers are at most `highest`, were moved there. It is beyond all of them, and
/// those of different shards are as far apart as with [`first_number`].
#[must_use]
pub const fn fresh_number(highest: u64, shard: usize) -> u64 {
    ((highest >> BLOCK_BITS) + 1 + shard as u64) << BLOCK_BITS
}

/// Returns the number after which a shard goes on that has given some unknown numbers,
/// where it knows of this one. It is 2^36 further, which a shard needs a week to give at
/// 100,000 a second, but leaves the shard the last 2^40 of its numbers.
#[must_use]
pub const fn number_beyond_lost(known: u64) -> u64 {
    let end = ((known >> BLOCK_BITS) + 1) << BLOCK_BITS;
    let (beyond, most) = (known + (1 << 36), end - (1 << 40));
    if beyond <= most {
        beyond
    } else if known < most {
        most
    } else {
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_place_for_ever() {
        let places =
            ["jobs", "mail", "", "{a}", "emails:high"].map(|it| shard_of(it.as_bytes(), 8));
        assert_eq!(places, [1, 1, 1, 7, 2]);
    }

    #[test]
    fn numbers_beyond_lost_ones_stay_with_their_shard() {
        for shard in [0, 3] {
            let first = first_number(shard);
            assert_eq!(number_beyond_lost(first + 7), first + 7 + (1 << 36));
            let (mut number, end) = (first, first_number(shard + 1));
            for _ in 0..2_000 {
                assert!((number..end).contains(&number_beyond_lost(number)));
                number = number_beyond_lost(number);
            }
            assert_eq!(number, end - (1 << 40));
            assert_eq!(number_beyond_lost(end - 1), end - 1);
        }
    }

    #[test]
    fn what_stands_in_braces_decides() {
        for (one, other) in [("{a}b", "c{a}"), ("{a}{b}", "a"), ("x{a}y}", "{a}")] {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            assert_eq!(shard_of(one, SHARDS_MAX), shard_of(other, SHARDS_MAX));
        }
        assert_eq!([&b"{}a"[..], b"{a", b"a}"].map(tag), [&b"{}a"[..], b"{a", b"a}"]);
    }

    #[test]
    fn names_spread_evenly() {
        let mut counts = [0_u32; 3];
        for name in 0..30_000 {
            counts[shard_of(format!("queue-{name}").as_bytes(), 3)] += 1;
        }
        assert!(counts.iter().all(|count| (9_700..10_300).contains(count)), "{counts:?}");
    }
    #[test]
    fn fresh_numbers_lie_beyond_all_others() {
        let block = 1_u64 << 46;
        assert_eq!([0, 1, 2].map(|shard| fresh_number(0, shard)), [1, 2, 3].map(|it| it * block));
        assert_eq!(fresh_number(block - 1, 0), block);
        assert_eq!(fresh_number(block, 0), 2 * block);
        assert_eq!(fresh_number(first_number(63) + 7, 63), 127 * block);
    }
}
