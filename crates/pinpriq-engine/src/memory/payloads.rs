//! Where the payloads of tasks are kept.
//!
//! A small payload is in a block whose size is rounded up to a multiple of eight bytes. A page
//! holds many blocks, so a small payload costs little more than its bytes. It is copied when it
//! leaves. A large payload, or one that tasks share, is a separate allocation that is passed on
//! without a copy. When its last payload is forgotten, a page can go back to the allocator. This
//! module does not know who owns a payload: the receiver of a [`Kept`] must return it.

use crate::memory::pages::Pages;
use crate::memory::vacancies::{self, Vacancies};
use pinpriq_proto::task::Bytes;

/// The longest payload that is kept in a block, in bytes.
const SMALL_BYTES_MAX: usize = 512;

/// The difference between one size of blocks and the next, in bytes.
const STEP_BYTES: usize = 8;

/// The size of a page. Allocators round small allocations up by little, and those above some 14 KiB
/// by a page of the system.
const PAGE_BYTES: usize = 8 << 10;

/// A payload that is kept here. Must be returned with [`Payloads::forget`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    bytes: u32,
    index: u32,
    is_small: bool,
}

impl Kept {
    /// Creates it from its parts.
    pub(crate) const fn of((bytes, index, is_small): (u32, u32, bool)) -> Self {
        Self { bytes, index, is_small }
    }

    /// The length of the payload, its index, and whether it is in a block.
    pub(crate) const fn parts(&self) -> (u32, u32, bool) {
        (self.bytes, self.index, self.is_small)
    }
}

/// The payloads of a shard.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    /// Blocks by size, those of 8 bytes first.
    blocks: Vec<Blocks>,
    large: Pages<Bytes>,
}

/// Blocks of one size.
#[derive(Debug)]
struct Blocks {
    block_bytes: usize,
    all: Vacancies<BlockPage>,
}

/// A run of blocks.
#[derive(Debug, Default)]
struct BlockPage {
    /// The bytes of all blocks that were ever used.
    bytes: Vec<u8>,
    /// Blocks that are free again. Never more than were in use at the same time.
    free: Vec<u16>,
    used: u16,
    /// Whether it is in the list of pages with free blocks.
    is_listed: bool,
}

impl vacancies::Page for BlockPage {
    fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn give_back_room(&mut self) {
        (self.bytes, self.free) = (Vec::new(), Vec::new());
    }

    fn is_listed(&mut self) -> &mut bool {
        &mut self.is_listed
    }
}

impl Payloads {
    /// Keeps a copy of a payload.
    pub(crate) fn keep(&mut self, payload: &[u8]) -> Kept {
        if payload.len() > SMALL_BYTES_MAX {
            return self.share(payload.into());
        }
        let size = payload.len().div_ceil(STEP_BYTES).max(1);
        while self.blocks.len() < size {
            self.blocks.push(Blocks::of((self.blocks.len() + 1) * STEP_BYTES));
        }
        let index = self.blocks[size - 1].insert(payload);
        Kept { bytes: narrowed(payload.len()), index: narrowed(index), is_small: true }
    }

    /// Keeps a payload that is shared with others, without copying it.
    pub(crate) fn share(&mut self, payload: Bytes) -> Kept {
        let bytes = narrowed(payload.len());
        let index = self.large.insert(payload);
        Kept { bytes, index: narrowed(index), is_small: false }
    }

    /// Keeps a payload that has its own allocation. The allocation is used if the payload is large.
    pub(crate) fn keep_bytes(&mut self, payload: &Bytes) -> Kept {
        if payload.len() > SMALL_BYTES_MAX {
            self.share(Bytes::clone(payload))
        } else {
            self.keep(payload)
        }
    }

    /// Returns the bytes of a payload.
    pub(crate) fn read(&self, kept: Kept) -> &[u8] {
        if kept.is_small {
            self.blocks_of(kept).read(kept.index as usize, kept.bytes as usize)
        } else {
            self.shared(kept)
        }
    }

    /// Returns a payload as shared bytes. A small payload is copied.
    pub(crate) fn bytes(&self, kept: Kept) -> Bytes {
        if kept.is_small { self.read(kept).into() } else { Bytes::clone(self.shared(kept)) }
    }

    /// Forgets a payload.
    pub(crate) fn forget(&mut self, kept: Kept) {
        let index = kept.index as usize;
        if kept.is_small {
            self.blocks[steps_of(kept) - 1].remove(index);
        } else {
            let removed = self.large.remove(index);
            assert!(removed.is_some(), "no payload is kept at {index}");
        }
    }

    fn blocks_of(&self, kept: Kept) -> &Blocks {
        &self.blocks[steps_of(kept) - 1]
    }

    fn shared(&self, kept: Kept) -> &Bytes {
        let Some(payload) = self.large.find(kept.index as usize) else {
            unreachable!("no payload is kept at {}", kept.index)
        };
        payload
    }

    /// The number of payloads. Costs a step for each page: for checks only.
    pub(crate) fn count(&self) -> usize {
        let pages = self.blocks.iter().flat_map(|blocks| &blocks.all.pages);
        pages.map(|page| usize::from(page.used)).sum::<usize>() + self.large.count()
    }
}

/// The size of the block of a small payload, in steps of [`STEP_BYTES`].
fn steps_of(kept: Kept) -> usize {
    (kept.bytes as usize).div_ceil(STEP_BYTES).max(1)
}

/// Payloads have bounds far below this, and so does their number.
fn narrowed(count: usize) -> u32 {
    let Ok(count) = u32::try_from(count) else { panic!("more than {} payloads", u32::MAX) };
    count
}

impl Blocks {
    fn of(block_bytes: usize) -> Self {
        Self { block_bytes, all: Vacancies::default() }
    }

    const fn page_blocks(&self) -> usize {
        PAGE_BYTES / self.block_bytes
    }

    fn insert(&mut self, payload: &[u8]) -> usize {
        let (block_bytes, page_blocks) = (self.block_bytes, self.page_blocks());
        let at = self.all.roomy(|page| usize::from(page.used) < page_blocks);
        let page = &mut self.all.pages[at];
        page.used += 1;
        if let Some(block) = page.free.pop().map(usize::from) {
            let from = block * block_bytes;
            page.bytes[from..from + payload.len()].copy_from_slice(payload);
            return at * page_blocks + block;
        }
        if page.bytes.capacity() == 0 {
            page.bytes.reserve_exact(PAGE_BYTES);
        }
        let block = page.bytes.len() / block_bytes;
        page.bytes.extend_from_slice(payload);
        page.bytes.resize((block + 1) * block_bytes, 0);
        at * page_blocks + block
    }

    fn remove(&mut self, index: usize) {
        let (at, block) = (index / self.page_blocks(), index % self.page_blocks());
        let page = &mut self.all.pages[at];
        assert!(page.used > 0, "no payload is kept in page {at}");
        page.used -= 1;
        if page.used == 0 {
            page.bytes.clear();
            page.free.clear();
        } else {
            let Ok(block) = u16::try_from(block) else { unreachable!("a page has few blocks") };
            page.free.push(block);
        }
        self.all.freed(at);
    }

    fn read(&self, index: usize, bytes: usize) -> &[u8] {
        let (at, block) = (index / self.page_blocks(), index % self.page_blocks());
        let from = block * self.block_bytes;
        &self.all.pages[at].bytes[from..from + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payloads of every length around the bounds, put and taken away in a mixed order.
    #[test]
    fn payloads_are_what_they_were() {
        let mut payloads = Payloads::default();
        let mut kept: Vec<(Vec<u8>, Kept)> = Vec::new();
        for round in 0..8_usize {
            for length in 0..SMALL_BYTES_MAX + 20 {
                let byte = u8::try_from((length * 7 + round) % 251).unwrap();
                let payload = vec![byte; length];
                let place = payloads.keep(&payload);
                kept.push((payload, place));
            }
            let mut index = 0;
            kept.retain_mut(|(payload, place)| {
                index += 1;
                assert_eq!(payloads.read(*place), payload);
                assert_eq!(&*payloads.bytes(*place), payload);
                let stays = index % 3 != round % 3;
                if !stays {
                    payloads.forget(*place);
                }
                stays
            });
            assert_eq!(payloads.count(), kept.len());
        }
        for (payload, place) in kept {
            assert_eq!(payloads.read(place), payload);
            payloads.forget(place);
        }
        assert_eq!(payloads.count(), 0);
    }

    #[test]
    fn room_goes_with_what_was_in_it() {
        let mut payloads = Payloads::default();
        let with_room = |payloads: &Payloads| {
            payloads.blocks[12].all.pages.iter().filter(|page| page.bytes.capacity() > 0).count()
        };
        let in_a_page = PAGE_BYTES / 104;
        let mut kept: Vec<Kept> = (0..10 * in_a_page).map(|_| payloads.keep(&[1; 100])).collect();
        assert_eq!(with_room(&payloads), 10);
        while let Some(place) = kept.pop() {
            payloads.forget(place);
        }
        assert_eq!(with_room(&payloads), 1, "one page is kept for what comes next");
        kept.extend((0..10 * in_a_page).map(|_| payloads.keep(&[2; 97])));
        assert_eq!(payloads.blocks[12].all.pages.len(), 10, "free blocks are used again");
    }

    #[test]
    fn a_shared_payload_is_not_copied() {
        let mut payloads = Payloads::default();
        let payload: Bytes = [7; 10].into();
        let kept = payloads.share(Bytes::clone(&payload));
        assert!(Bytes::ptr_eq(&payloads.bytes(kept), &payload));
        let large: Bytes = [7; SMALL_BYTES_MAX + 1].into();
        let kept_large = payloads.keep_bytes(&large);
        assert!(Bytes::ptr_eq(&payloads.bytes(kept_large), &large));
    }
}
