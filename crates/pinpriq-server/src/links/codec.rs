//! Errands and news as bytes, for letters to another node.
//!
//! Each has exactly one encoding. Decoding is total: any bytes give a value or an error, never a
//! panic, and no allocation depends on a length that was only declared. Commands are decoded once
//! on the way in, so a guest finds only commands that it can carry out.
//!
//! Some letters never go to another node, and encoding refuses them by a panic: questions about a
//! shard that no client asks, and payloads that were left on a disk. A store of a cluster leaves
//! none there.

mod errands;
mod news;

use pinpriq_proto::letters::Malformed;
use pinpriq_proto::letters::primitives::{take_array, take_number};

pub(crate) use self::errands::{decode_errand, encode_errand};
pub(crate) use self::news::{decode_news, encode_news};

/// Appends what `put` appends, with its length before it.
fn put_sized(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out);
    let length = out.len() - start - 4;
    let Ok(encoded) = u32::try_from(length) else {
        unreachable!("a letter of {length} bytes came through a door")
    };
    out[start..start + 4].copy_from_slice(&encoded.to_le_bytes());
}

/// Takes the bytes whose length [`put_sized`] has written before them.
fn take_sized<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = u32::from_le_bytes(take_array(input)?) as usize;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Malformed::Short)?;
    *input = rest;
    Ok(bytes)
}

/// Takes a number that counts something in memory.
fn take_count(input: &mut &[u8], field: &'static str) -> Result<usize, Malformed> {
    usize::try_from(take_number(input)?).map_err(|_| Malformed::OutOfRange(field))
}

/// Returns a byte whose lowest bits are these flags, the first in the lowest.
fn pack<const N: usize>(flags: [bool; N]) -> u8 {
    flags.iter().rev().fold(0, |byte, flag| byte << 1 | u8::from(*flag))
}

/// Returns the flags of [`pack`]. Refuses any other bit.
fn unpack<const N: usize>(byte: u8) -> Result<[bool; N], Malformed> {
    let flags = std::array::from_fn(|bit| byte >> bit & 1 == 1);
    if pack(flags) == byte { Ok(flags) } else { Err(Malformed::OutOfRange("flags")) }
}

#[cfg(test)]
mod tests;
