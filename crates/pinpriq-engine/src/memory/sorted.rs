//! A sorted map for keys that are mostly inserted near the end.
//!
//! The entries are in pages, each a sorted run, and the pages are in a list. A search is two binary
//! searches, and an insertion moves at most the entries of one page. So a map of a few thousand
//! entries costs a fraction of a tree. It is used where every task passes several times. This
//! module knows nothing about the meaning of the keys.

/// The most entries in a page.
const PAGE_ENTRIES: usize = 256;

/// Two numbers as one, with the first in the upper half. Comparing two keys takes two instructions.
pub(crate) type Key = u128;

/// The key of two numbers.
pub(crate) const fn key_of(above: u64, below: u64) -> Key {
    ((above as Key) << 64) | below as Key
}

/// The first number of a key.
pub(crate) const fn above(key: Key) -> u64 {
    (key >> 64) as u64
}

/// The second number of a key.
pub(crate) const fn below(key: Key) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
    let below = key as u64;
    below
}

/// Values by key. Every operation costs O(log n) comparisons. A page is added or removed at most
/// once in about a hundred operations. The list behind it then moves too: 64 bytes for each page.
#[derive(Debug)]
pub(crate) struct Sorted<V> {
    /// For each page, a key that nothing in the page precedes.
    bounds: Vec<Key>,
    pages: Vec<Page<V>>,
}

/// A run of entries, never empty.
#[derive(Debug)]
struct Page<V> {
    keys: Vec<Key>,
    values: Vec<V>,
}

/// The position of an entry. Valid until the next change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cursor {
    page: usize,
    at: usize,
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        Self { bounds: Vec::new(), pages: Vec::new() }
    }
}

impl<V> Sorted<V> {
    /// The number of entries. Costs a step for each page: for checks only.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|page| page.keys.len()).sum()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(crate) fn first(&self) -> Option<Cursor> {
        (!self.pages.is_empty()).then_some(Cursor { page: 0, at: 0 })
    }

    pub(crate) fn last(&self) -> Option<Cursor> {
        let page = self.pages.len().checked_sub(1)?;
        Some(Cursor { page, at: self.pages[page].keys.len() - 1 })
    }

    /// Returns the last entry whose key is at most `key`.
    pub(crate) fn at_or_below(&self, key: Key) -> Option<Cursor> {
        let page = up_to(&self.bounds, key).checked_sub(1)?;
        let at = up_to(&self.pages[page].keys, key);
        if at > 0 { Some(Cursor { page, at: at - 1 }) } else { self.before(Cursor { page, at }) }
    }

    /// Returns the first entry whose key is at least `key`.
    pub(crate) fn at_or_above(&self, key: Key) -> Option<Cursor> {
        match self.at_or_below(key) {
            None => self.first(),
            Some(cursor) if self.key(cursor) == key => Some(cursor),
            Some(cursor) => self.after(cursor),
        }
    }

    /// Iterates over the values of the keys from `first` to `last`, both included.
    pub(crate) fn range(&self, first: Key, last: Key) -> impl DoubleEndedIterator<Item = &V> {
        let ends = self.at_or_above(first).zip(self.at_or_below(last));
        Range { sorted: self, ends: ends.filter(|(first, last)| first <= last) }
            .map(|cursor| self.value(cursor))
    }

    /// Returns the entry of this key.
    pub(crate) fn find(&self, key: Key) -> Option<Cursor> {
        self.at_or_below(key).filter(|cursor| self.key(*cursor) == key)
    }

    /// Does what [`Self::find`] does, and is fast where no key is missing among the first ones.
    #[inline]
    pub(crate) fn find_in_row(&self, key: Key) -> Option<Cursor> {
        let keys = self.pages.first()?.keys.as_slice();
        let distance = key.checked_sub(*keys.first()?)?;
        let at = usize::try_from(distance).unwrap_or(usize::MAX);
        if keys.get(at) == Some(&key) { Some(Cursor { page: 0, at }) } else { self.find(key) }
    }

    /// Returns the entry after this one.
    pub(crate) fn after(&self, cursor: Cursor) -> Option<Cursor> {
        let Cursor { page, at } = cursor;
        if at + 1 < self.pages[page].keys.len() {
            return Some(Cursor { page, at: at + 1 });
        }
        (page + 1 < self.pages.len()).then_some(Cursor { page: page + 1, at: 0 })
    }

    /// Returns the entry before this one.
    pub(crate) fn before(&self, cursor: Cursor) -> Option<Cursor> {
        let Cursor { page, at } = cursor;
        if at > 0 {
            return Some(Cursor { page, at: at - 1 });
        }
        let page = page.checked_sub(1)?;
        Some(Cursor { page, at: self.pages[page].keys.len() - 1 })
    }

    pub(crate) fn key(&self, cursor: Cursor) -> Key {
        self.pages[cursor.page].keys[cursor.at]
    }

    pub(crate) fn value(&self, cursor: Cursor) -> &V {
        &self.pages[cursor.page].values[cursor.at]
    }

    pub(crate) fn value_mut(&mut self, cursor: Cursor) -> &mut V {
        &mut self.pages[cursor.page].values[cursor.at]
    }

    /// Adds an entry whose key must be new. Returns its position.
    pub(crate) fn insert(&mut self, key: Key, value: V) -> Cursor {
        // Most keys enter at the end.
        if let Some(last) = self.pages.last_mut()
            && last.keys.len() < PAGE_ENTRIES
            && last.keys.last().is_some_and(|last| *last < key)
        {
            let at = last.keys.len();
            last.keys.push(key);
            last.values.push(value);
            return Cursor { page: self.pages.len() - 1, at };
        }
        self.insert_within(key, value)
    }

    /// Like [`Self::insert`], at any place.
    #[inline(never)]
    fn insert_within(&mut self, key: Key, value: V) -> Cursor {
        if self.pages.is_empty() {
            self.bounds.push(key);
            self.pages.push(Page { keys: Vec::new(), values: Vec::new() });
        }
        let page = up_to(&self.bounds, key).saturating_sub(1);
        let at = up_to(&self.pages[page].keys, key);
        let former = at.checked_sub(1).map(|at| self.pages[page].keys[at]);
        assert!(former != Some(key), "two entries of the same key");
        let (page, at) = self.with_room(page, at, key);
        let entered = &mut self.pages[page];
        if at == 0 {
            self.bounds[page] = self.bounds[page].min(key);
        }
        entered.keys.insert(at, key);
        entered.values.insert(at, value);
        Cursor { page, at }
    }

    /// Removes an entry, and returns its value.
    pub(crate) fn remove(&mut self, cursor: Cursor) -> V {
        let page = &mut self.pages[cursor.page];
        page.keys.remove(cursor.at);
        let value = page.values.remove(cursor.at);
        let left = page.keys.len();
        if left == 0 {
            self.pages.remove(cursor.page);
            self.bounds.remove(cursor.page);
        } else if left < PAGE_ENTRIES / 4 && left < page.keys.capacity() / 4 {
            self.thin_out(cursor.page);
        }
        value
    }

    /// Iterates over all entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &V)> {
        self.pages.iter().flat_map(|page| page.keys.iter().copied().zip(&page.values))
    }

    /// Makes room for a key at this position. A full page is split, unless the key comes after
    /// everything in it. Returns the position for the key.
    fn with_room(&mut self, page: usize, at: usize, key: Key) -> (usize, usize) {
        let full = &mut self.pages[page];
        if full.keys.len() < PAGE_ENTRIES {
            return (page, at);
        }
        let half = if at == PAGE_ENTRIES { at } else { PAGE_ENTRIES / 2 };
        let upper = Page { keys: full.keys.split_off(half), values: full.values.split_off(half) };
        let bound = upper.keys.first().copied().unwrap_or(key);
        self.bounds.insert(page + 1, bound);
        self.pages.insert(page + 1, upper);
        if at < half || (at == half && key < bound) { (page, at) } else { (page + 1, at - half) }
    }

    /// Shrinks a page that became small, or joins it with the one before if both are small.
    fn thin_out(&mut self, page: usize) {
        let left = self.pages[page].keys.len();
        let before = page.checked_sub(1).map(|before| self.pages[before].keys.len());
        if before.is_some_and(|before| before + left <= PAGE_ENTRIES / 2) {
            self.bounds.remove(page);
            let Page { keys, values } = self.pages.remove(page);
            self.pages[page - 1].keys.extend(keys);
            self.pages[page - 1].values.extend(values);
        } else {
            self.pages[page].keys.shrink_to_fit();
            self.pages[page].values.shrink_to_fit();
        }
    }
}

/// The number of these sorted keys that are at most `key`.
fn up_to(keys: &[Key], key: Key) -> usize {
    // Most keys enter at the end.
    if keys.last().is_none_or(|last| *last <= key) {
        return keys.len();
    }
    // Most keys leave at the front.
    if let [first, second, ..] = keys
        && key < *second
    {
        return usize::from(*first <= key);
    }
    keys.partition_point(|known| *known <= key)
}

/// See [`Sorted::range`].
struct Range<'a, V> {
    sorted: &'a Sorted<V>,
    /// The first and the last entry that are left.
    ends: Option<(Cursor, Cursor)>,
}

impl<V> Iterator for Range<'_, V> {
    type Item = Cursor;

    fn next(&mut self) -> Option<Cursor> {
        let (first, last) = self.ends?;
        self.ends = self.sorted.after(first).filter(|_| first < last).map(|next| (next, last));
        Some(first)
    }
}

impl<V> DoubleEndedIterator for Range<'_, V> {
    fn next_back(&mut self) -> Option<Cursor> {
        let (first, last) = self.ends?;
        self.ends = self.sorted.before(last).filter(|_| first < last).map(|next| (first, next));
        Some(last)
    }
}

/// Builds the map from entries that come in order, each key once.
impl<V> FromIterator<(Key, V)> for Sorted<V> {
    fn from_iter<I: IntoIterator<Item = (Key, V)>>(entries: I) -> Self {
        let mut entries = entries.into_iter().peekable();
        let mut sorted = Self::default();
        while let Some((bound, _)) = entries.peek() {
            sorted.bounds.push(*bound);
            let (keys, values): (Vec<Key>, Vec<V>) = entries.by_ref().take(PAGE_ENTRIES).unzip();
            sorted.pages.push(Page { keys, values });
        }
        sorted
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A fixed sequence of numbers. Each call returns one below the given bound.
    pub(crate) fn draws() -> impl FnMut(u64) -> u64 {
        let mut numbers = 0x9E37_79B9_7F4A_7C15_u64;
        move |below| {
            numbers ^= numbers << 13;
            numbers ^= numbers >> 7;
            numbers ^= numbers << 17;
            numbers % below
        }
    }

    /// Inserts and removes by a fixed sequence of numbers, and compares with a tree.
    #[test]
    fn it_agrees_with_a_tree() {
        let mut draw = draws();
        let (mut sorted, mut tree) = (Sorted::default(), BTreeMap::new());
        for step in 0..60_000_u64 {
            let fills = (step / 10_000) % 2 == 0;
            // Some after all others, as deadlines come, some anywhere.
            let key = Key::from(if draw(3) == 0 { draw(20_000) } else { 20_000 + step });
            if fills || tree.is_empty() {
                if tree.insert(key, step).is_none() {
                    let cursor = sorted.insert(key, step);
                    assert_eq!((sorted.key(cursor), *sorted.value(cursor)), (key, step));
                } else {
                    let cursor = sorted.find(key).expect("it was inserted");
                    *sorted.value_mut(cursor) = step;
                }
            } else {
                let key = if draw(2) == 0 { 0 } else { key };
                let next = tree.range(key..).next().or_else(|| tree.iter().next());
                let Some((&key, &value)) = next else { continue };
                let cursor = sorted.find(key).expect("it was inserted");
                assert_eq!(*sorted.value(cursor), value);
                *sorted.value_mut(cursor) += 1;
                assert_eq!(sorted.remove(cursor), value + 1);
                tree.remove(&key);
            }
            let probe = Key::from(draw(80_000));
            let below = sorted.at_or_below(probe).map(|cursor| sorted.key(cursor));
            assert_eq!(below, tree.range(..=probe).next_back().map(|(key, _)| *key));
            let above = sorted.at_or_above(probe).map(|cursor| sorted.key(cursor));
            assert_eq!(above, tree.range(probe..).next().map(|(key, _)| *key));
            if step % 1_000 == 0 {
                let last = probe + Key::from(draw(1_000));
                let range = tree.range(probe..=last).map(|(_, value)| value);
                assert!(sorted.range(probe, last).eq(range.clone()));
                assert!(sorted.range(probe, last).rev().eq(range.rev()));
                compare(&sorted, &tree);
                compare(&tree.iter().map(|(key, value)| (*key, *value)).collect(), &tree);
            }
        }
        for key in tree.into_keys() {
            let cursor = sorted.first().expect("there is one for each key");
            assert_eq!(sorted.key(cursor), key);
            sorted.remove(cursor);
        }
        assert!(sorted.is_empty() && sorted.last().is_none());
    }

    fn compare(sorted: &Sorted<u64>, tree: &BTreeMap<Key, u64>) {
        assert_eq!(sorted.len(), tree.len());
        assert!(sorted.iter().eq(tree.iter().map(|(key, value)| (*key, value))));
        let forwards = std::iter::successors(sorted.first(), |cursor| sorted.after(*cursor));
        assert!(forwards.map(|cursor| sorted.key(cursor)).eq(tree.keys().copied()));
        let backwards = std::iter::successors(sorted.last(), |cursor| sorted.before(*cursor));
        assert!(backwards.map(|cursor| sorted.key(cursor)).eq(tree.keys().rev().copied()));
    }

    #[test]
    fn pages_go_with_their_entries() {
        let mut sorted: Sorted<()> = (0..40 * 256).map(|key| (key, ())).collect();
        assert_eq!(sorted.pages.len(), 40);
        for key in (0..40 * 256).filter(|key| key % 100 != 0) {
            let cursor = sorted.find(key).expect("it is there");
            sorted.remove(cursor);
        }
        assert!(sorted.pages.len() <= 2, "small pages have joined");
        assert!(sorted.pages.iter().all(|page| page.keys.capacity() <= 4 * 256 / 4));
    }
}
