//! What becomes of buckets when a server starts, and what they leave to the next owner of the
//! shard; and how many of those of keys and shares are kept.
//!
//! A server that starts alone begins with full ones. One that takes over from another that has not
//! ended in order does not know what that one has handed out last, so they begin empty. What ends
//! in order carries them to its successor.

use crate::engine::Engine;
use crate::memory::bucket::Bucket;
use crate::memory::slots::QueueSlot;
use pinpriq_proto::carried::{
    BUCKET_BYTES, BucketHome, BucketOf, CARRIED_BYTES_MAX, Carried, Level, LimitBucket,
    QueueBucket, QueueBuckets,
};
use pinpriq_proto::time::Timestamp;

/// The most buckets of keys and shares that are kept. Beyond, those are forgotten that are fullest.
pub(crate) const BUCKETS_MAX: usize = if cfg!(test) { 1_000 } else { 1_000_000 };

/// How many are forgotten at once. All are looked at to find them.
const FORGOTTEN_AT_ONCE: usize = BUCKETS_MAX / 100;

/// A bucket that may be carried.
struct Found {
    full_at: Timestamp,
    /// A queue, by its place among those with buckets, or the limit of this number.
    home: Result<usize, u64>,
    of: BucketOf,
    level: Level,
}

impl Engine {
    /// Says what another owner of this shard, which has ended in order, has left: see
    /// [`Engine::carried`]. Set it before the start. It counts only without a grace.
    pub fn set_carried(&mut self, carried: Carried) {
        self.carried = Some(Box::new(carried));
    }

    /// What the next owner has to know, if this one ends now: the buckets that are not full. Costs
    /// O(n) in their number.
    #[must_use]
    pub fn carried(&self) -> Carried {
        let mut homes = Vec::new();
        let mut found = Vec::new();
        let now = self.now;
        let is_wanted = |bucket: &Bucket| bucket.full_at() > now;
        for limit in self.named_limits.iter() {
            let (number, bucket) = (limit.record.number, limit.bucket.as_ref());
            found.extend(bucket.filter(|bucket| is_wanted(bucket)).map(|bucket| Found {
                full_at: bucket.full_at(),
                home: Err(number),
                of: BucketOf::Queue,
                level: bucket.level(now),
            }));
        }
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            let own = queue.gate.as_ref().and_then(|gate| gate.bucket());
            let own = own.map(|bucket| (BucketOf::Queue, bucket));
            let of_turns = queue.turns.iter().flat_map(|turns| turns.all_buckets());
            let before = found.len();
            for (of, bucket) in own.into_iter().chain(of_turns) {
                if is_wanted(bucket) {
                    let (full_at, level) = (bucket.full_at(), bucket.level(now));
                    found.push(Found { full_at, home: Ok(homes.len()), of, level });
                }
            }
            if found.len() > before {
                homes.push(match &queue.lane {
                    None => BucketHome::Queue(queue.name.clone()),
                    Some(lane) => BucketHome::Lane(lane.name.number),
                });
            }
        }
        leave_out_fullest(&homes, &mut found, CARRIED_BYTES_MAX);
        let mut carried = Carried { at: now, ..Carried::default() };
        let queues = homes.into_iter().map(|of| QueueBuckets { of, buckets: Vec::new() });
        carried.queues = queues.collect();
        for Found { home, of, level, .. } in found {
            match home {
                Ok(home) => carried.queues[home].buckets.push(QueueBucket { of, level }),
                Err(number) => carried.limits.push(LimitBucket { number, level }),
            }
        }
        carried.queues.retain(|queue| !queue.buckets.is_empty());
        carried
    }

    /// Lets buckets begin as the start asks for. Until now they are full.
    pub(crate) fn revive_buckets(&mut self) {
        let carried = self.carried.take();
        if self.grace.is_some() {
            for slot in self.queues.slots() {
                self.empty_buckets(slot);
            }
        } else if let Some(carried) = carried {
            self.fill_as_carried(*carried);
        }
        self.bound_buckets();
    }

    /// Lets the buckets of a queue begin empty.
    fn empty_buckets(&mut self, slot: QueueSlot) {
        if let Some(gate) = &mut self.queues[slot].gate {
            gate.begin_empty(self.now);
        }
        self.empty_turn_buckets(slot);
    }

    fn fill_as_carried(&mut self, carried: Carried) {
        let Carried { at, limits, queues } = carried;
        let at = at.min(self.now);
        for LimitBucket { number, level } in limits {
            if let Some(bucket) = self.named_limits.bucket_mut(number, self.now) {
                *bucket = Bucket::at_level(bucket.rate, level, at);
            }
        }
        for QueueBuckets { of, buckets } in queues {
            let slot = match of {
                BucketHome::Queue(name) => self.queues.find(&name),
                BucketHome::Lane(number) => self.queues.find_lane(number),
            };
            let Some(slot) = slot else { continue };
            let own = buckets.iter().find(|bucket| bucket.of == BucketOf::Queue);
            if let Some((gate, bucket)) = self.queues[slot].gate.as_mut().zip(own) {
                gate.fill(bucket.level, at);
            }
            self.fill_turn_buckets(slot, &buckets, at);
        }
    }

    /// Forgets the fullest buckets of keys and shares if there are too many.
    #[inline]
    pub(crate) fn bound_buckets(&mut self) {
        if self.buckets > BUCKETS_MAX {
            self.forget_fullest_buckets();
        }
    }

    #[cold]
    fn forget_fullest_buckets(&mut self) {
        let mut queues = self.queues.slots();
        queues.retain(|slot| self.queues[*slot].turns.is_some());
        let turns = queues.iter().filter_map(|slot| self.queues[*slot].turns.as_ref());
        let mut all: Vec<_> = turns.flat_map(|turns| turns.fullness()).collect();
        let mut left = self.buckets - BUCKETS_MAX + FORGOTTEN_AT_ONCE;
        let Some(at) = left.checked_sub(1).filter(|at| *at < all.len()) else { return };
        let (_, last, _) = all.select_nth_unstable(at);
        let last = *last;
        for queue in queues {
            self.forget_fullest_of(queue, last, &mut left);
        }
    }
}

/// Leaves out the buckets that are fullest, as many as have no room in so many bytes.
fn leave_out_fullest(homes: &[BucketHome], found: &mut Vec<Found>, most: usize) {
    let of_home = |home: &BucketHome| home.name_bytes() + BUCKET_BYTES;
    let of_bucket = |bucket: &Found| bucket.of.name_bytes() + BUCKET_BYTES;
    let used = homes.iter().map(of_home).sum::<usize>();
    if used + found.iter().map(of_bucket).sum::<usize>() <= most {
        return;
    }
    found.sort_by_key(|bucket| std::cmp::Reverse(bucket.full_at));
    let mut used = used;
    found.retain(|bucket| {
        used = used.saturating_add(of_bucket(bucket));
        used <= most
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_what_is_fullest() {
        let homes = [BucketHome::Queue(b"q"[..].into())];
        let bucket = |full_at, name: &[u8]| Found {
            full_at: Timestamp::from_ms(full_at),
            home: Ok(0),
            of: BucketOf::Key(name.into()),
            level: Level::default(),
        };
        let names = |most| {
            let mut found =
                vec![bucket(5, b"b"), bucket(9, b"d"), bucket(1, b"a"), bucket(7, b"c")];
            leave_out_fullest(&homes, &mut found, most);
            found.into_iter().map(|it| it.of).collect::<Vec<_>>()
        };
        let keys = |names: &[&[u8]]| -> Vec<BucketOf> {
            names.iter().map(|name| BucketOf::Key((*name).into())).collect()
        };
        let one = BUCKET_BYTES + 1;
        assert_eq!(names(5 * one), keys(&[b"b", b"d", b"a", b"c"]));
        assert_eq!(names(3 * one), keys(&[b"d", b"c"]));
        assert_eq!(names(one), keys(&[]));
    }
}
