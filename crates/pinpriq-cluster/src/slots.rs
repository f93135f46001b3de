//! Which shard of a cluster a name belongs to.
//!
//! A cluster has the slots of Redis Cluster, so that unmodified cluster clients find them: CRC16 of
//! the name, or of its part in braces, modulo 16384. Each shard has a run of consecutive slots.

/// The number of slots.
pub const SLOTS: u16 = 16_384;

/// Returns the slot of a name.
#[must_use]
pub fn slot_of(name: &[u8]) -> u16 {
    crc16(tag(name)) % SLOTS
}

/// Returns the shard of a slot, out of this number of shards.
#[must_use]
pub const fn shard_of_slot(slot: u16, shards: usize) -> usize {
    slot as usize * shards / SLOTS as usize
}

/// Returns the slots of a shard, out of this number of shards: the first one, and the one after the
/// last.
#[must_use]
pub fn slots_of_shard(shard: usize, shards: usize) -> (u16, u16) {
    let first = |shard: usize| (shard * usize::from(SLOTS)).div_ceil(shards);
    (u16::try_from(first(shard)).unwrap_or(SLOTS), u16::try_from(first(shard + 1)).unwrap_or(SLOTS))
}

/// The part of a name that determines its slot.
fn tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|byte| *byte == b'{') else { return name };
    let rest = &name[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => name,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM, which Redis Cluster uses.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, crc16, shard_of_slot, slot_of, slots_of_shard};

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    }

    #[test]
    fn every_slot_has_one_shard() {
        for shards in [1, 2, 3, 16, 1_000, 1_024] {
            for shard in 0..shards {
                let (first, end) = slots_of_shard(shard, shards);
                assert!(first < end && end <= SLOTS, "shard {shard} of {shards}");
                assert!((first..end).all(|slot| shard_of_slot(slot, shards) == shard));
            }
        }
    }
}
