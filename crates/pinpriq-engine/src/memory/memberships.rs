//! Which tasks are followed together, in batches: for each batch a list of its tasks.
//!
//! A task in a batch takes 12 bytes here, and one that is in none takes nothing, unless a neighbour
//! is in one. Nothing here knows what becomes of a batch.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::memory::slots::Slot;
use pinpriq_proto::task::Bytes;

/// The number of tasks for which a page has room.
const PAGE_PLACES: usize = 256;

/// The lists of restored tasks have numbers from here on, which no batch has.
const RESTORED: u64 = 1 << 63;

/// The place of a task in a list, which has none if it is in no list.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    list: Option<ListId>,
    before: Option<Slot>,
    after: Option<Slot>,
}

/// The address of a list, plus one.
type ListId = NonZeroU32;

/// The links of tasks with neighbouring slots.
#[derive(Debug)]
struct Page {
    links: Box<[Link; PAGE_PLACES]>,
    used: usize,
}

/// The tasks of one batch.
#[derive(Debug)]
struct List {
    batch: u64,
    name: Bytes,
    first: Option<Slot>,
    last: Option<Slot>,
    count: u64,
    /// Whether the batch has ended. Its address is free once no task is left.
    has_ended: bool,
}

/// See the start of this file. Every operation on a batch costs O(log n) in the number of batches,
/// and O(1) on a task.
#[derive(Debug, Default)]
pub(crate) struct Memberships {
    pages: Vec<Option<Page>>,
    lists: Vec<Option<List>>,
    free: Vec<ListId>,
    /// The lists of the batches that are followed.
    followed: BTreeMap<u64, ListId>,
    /// How many tasks are in a batch, or were in one that has ended before them.
    members: u64,
}

impl Memberships {
    /// Whether any task is in a batch.
    #[inline]
    pub(crate) const fn are_any(&self) -> bool {
        self.members > 0
    }

    /// How many tasks are in a batch, or were in one that has ended before them.
    pub(crate) const fn members(&self) -> u64 {
        self.members
    }

    /// Begins to follow tasks of a batch.
    pub(crate) fn begin(&mut self, batch: u64, name: Bytes) {
        let list = List { batch, name, first: None, last: None, count: 0, has_ended: false };
        let id = self.free.pop().unwrap_or_else(|| self.add_address());
        self.lists[index_of(id)] = Some(list);
        let former = self.followed.insert(batch, id);
        debug_assert!(former.is_none(), "batch {batch} is followed twice");
    }

    /// Ends to follow the tasks of a batch. Those that are left are in none from now on.
    pub(crate) fn end(&mut self, batch: u64) {
        let Some(id) = self.followed.remove(&batch) else { return };
        if let Some(list) = &mut self.lists[index_of(id)] {
            list.has_ended = true;
        }
        self.tidy(id);
    }

    /// Whether the tasks of a batch are followed.
    pub(crate) fn follow(&self, batch: u64) -> bool {
        self.followed.contains_key(&batch)
    }

    /// How many tasks are in a batch.
    pub(crate) fn count(&self, batch: u64) -> u64 {
        self.list_of(batch).map_or(0, |list| list.count)
    }

    /// Adds a task, which is in no batch, to one that is followed, behind its other tasks.
    pub(crate) fn join(&mut self, slot: Slot, batch: u64) {
        debug_assert!(self.link(slot).is_none(), "{slot:?} is in a batch");
        let id = self.followed.get(&batch).copied();
        let Some((id, list)) = id.and_then(|id| Some((id, self.lists[index_of(id)].as_mut()?)))
        else {
            unreachable!("batch {batch} is not followed")
        };
        list.count += 1;
        list.first.get_or_insert(slot);
        let before = list.last.replace(slot);
        if let Some(before) = before {
            self.place(before).after = Some(slot);
        }
        *self.place(slot) = Link { list: Some(id), before, after: None };
        self.members += 1;
        if let Some(page) = &mut self.pages[page_of(slot)] {
            page.used += 1;
        }
    }

    /// Takes a task out of its batch. Returns that, if it is still followed. Of a task in no batch,
    /// it returns none.
    pub(crate) fn leave(&mut self, slot: Slot) -> Option<u64> {
        let Link { list, before, after } = self.link(slot)?;
        let id = list?;
        if let Some(before) = before {
            self.place(before).after = after;
        }
        if let Some(after) = after {
            self.place(after).before = before;
        }
        *self.place(slot) = Link::default();
        self.members -= 1;
        let page = &mut self.pages[page_of(slot)];
        if let Some(known) = page {
            known.used -= 1;
            page.take_if(|page| page.used == 0);
        }
        let list = self.lists[index_of(id)].as_mut()?;
        list.count -= 1;
        if before.is_none() {
            list.first = after;
        }
        if after.is_none() {
            list.last = before;
        }
        let batch = (!list.has_ended).then_some(list.batch);
        self.tidy(id);
        batch
    }

    /// Whether a task is in a batch, or was in one that has ended before it.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.link(slot).is_some()
    }

    /// The batch of a task.
    #[inline]
    pub(crate) fn of(&self, slot: Slot) -> Option<u64> {
        if self.members == 0 {
            return None;
        }
        self.followed_list(slot).map(|list| list.batch)
    }

    /// The name of the batch of a task.
    #[inline]
    pub(crate) fn name_of(&self, slot: Slot) -> Option<&Bytes> {
        if self.members == 0 {
            return None;
        }
        self.followed_list(slot).map(|list| &list.name)
    }

    /// The first task of a batch.
    pub(crate) fn first(&self, batch: u64) -> Option<Slot> {
        self.list_of(batch)?.first
    }

    /// The task that follows this one in its batch.
    pub(crate) fn next(&self, slot: Slot) -> Option<Slot> {
        self.link(slot)?.after
    }

    /// Notes the name of the batch of a restored task, of which nothing else is known yet.
    pub(crate) fn restore(&mut self, slot: Slot, name: &Bytes, known: &mut BTreeMap<Bytes, u64>) {
        let count = known.len() as u64;
        let batch = *known.entry(name.clone()).or_insert(RESTORED + count);
        if !self.follow(batch) {
            self.begin(batch, name.clone());
        }
        self.join(slot, batch);
    }

    /// The list of a batch that is followed.
    fn list_of(&self, batch: u64) -> Option<&List> {
        self.lists[index_of(*self.followed.get(&batch)?)].as_ref()
    }

    /// The list in which a task is, if its batch is followed.
    fn followed_list(&self, slot: Slot) -> Option<&List> {
        self.lists[index_of(self.link(slot)?.list?)].as_ref().filter(|list| !list.has_ended)
    }

    fn add_address(&mut self) -> ListId {
        self.lists.push(None);
        let Some(id) = u32::try_from(self.lists.len()).ok().and_then(ListId::new) else {
            unreachable!("there are more batches than tasks can be in")
        };
        id
    }

    /// Frees the address of a list whose batch has ended and that no task is in.
    fn tidy(&mut self, id: ListId) {
        let list = &mut self.lists[index_of(id)];
        if list.take_if(|list| list.has_ended && list.count == 0).is_some() {
            self.free.push(id);
        }
    }

    fn link(&self, slot: Slot) -> Option<Link> {
        let page = self.pages.get(page_of(slot))?.as_ref()?;
        Some(page.links[place_of(slot)]).filter(|link| link.list.is_some())
    }

    fn place(&mut self, slot: Slot) -> &mut Link {
        let page = page_of(slot);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let empty = || Page { links: Box::new([Link::default(); PAGE_PLACES]), used: 0 };
        &mut self.pages[page].get_or_insert_with(empty).links[place_of(slot)]
    }
}

const fn index_of(id: ListId) -> usize {
    id.get() as usize - 1
}

const fn page_of(slot: Slot) -> usize {
    slot.0.get() as usize / PAGE_PLACES
}

const fn place_of(slot: Slot) -> usize {
    slot.0.get() as usize % PAGE_PLACES
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn slot(number: u32) -> Slot {
        Slot::of(NonZeroU32::new(number).unwrap())
    }

    fn list(of: &Memberships, batch: u64) -> Vec<Slot> {
        std::iter::successors(of.first(batch), |slot| of.next(*slot)).collect()
    }

    #[test]
    fn a_link_takes_12_bytes() {
        assert_eq!(size_of::<Link>(), 12);
    }

    #[test]
    fn tasks_join_and_leave() {
        let mut all = Memberships::default();
        all.begin(1, b"a"[..].into());
        all.begin(2, b"b"[..].into());
        for number in [1, 300, 2, 700] {
            all.join(slot(number), 1);
        }
        all.join(slot(3), 2);
        assert_eq!(list(&all, 1), [1, 300, 2, 700].map(slot));
        assert_eq!((all.leave(slot(300)), all.leave(slot(300))), (Some(1), None));
        assert_eq!(all.leave(slot(1)), Some(1));
        assert_eq!(list(&all, 1), [2, 700].map(slot));
        assert_eq!((all.count(1), all.members()), (2, 3));
        assert_eq!(all.name_of(slot(3)).map(|name| &**name), Some(&b"b"[..]));
        assert!(all.pages[1].is_none(), "the room of a page that is empty goes");
        all.end(1);
        assert_eq!((all.of(slot(2)), all.has(slot(2))), (None, true));
        all.begin(4, b"d"[..].into());
        assert_eq!((all.of(slot(2)), all.count(4)), (None, 0), "its address is not given again");
        assert_eq!((all.leave(slot(2)), all.leave(slot(700))), (None, None));
        assert_eq!(all.members(), 1);
        all.begin(5, b"e"[..].into());
        assert_eq!((all.lists.len(), all.free.len()), (3, 0), "an address is given again");
    }
}
