//! Where tasks live in memory, and how they are found by number.
//!
//! Tasks sit in pages of a fixed size, so that growing never copies them. A page goes back to the
//! allocator with its last task. A [`Slot`] is the address of a task for as long as
//! it is there; the indexes hold slots. What a task means is not known here.

use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;

use crate::numbers::Numbers;
use crate::packed::Task;

/// The address of a task.
// One more than the index, so that a slot that may be missing takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Slot(NonZeroU32);

/// The hash of a key, under a seed that nobody outside knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash(u64);

/// How many tasks a page holds.
const PAGE_TASKS: usize = 256;

/// A run of slots. It has room in memory from its first task to its last.
#[derive(Debug, Default)]
struct Page {
    tasks: Vec<Option<Task>>,
    /// A bit for each slot that is taken.
    taken: [u64; PAGE_TASKS / 64],
    used: usize,
    /// Whether it stands among the pages with free slots.
    is_listed: bool,
}

/// All tasks of a shard.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pages: Vec<Page>,
    /// Pages with free slots, some of which may have none any more. The last is filled first.
    roomy: Vec<usize>,
    /// The page that had its last task removed last, and still has its room.
    kept: Option<usize>,
    /// Every task by its number.
    numbers: Numbers,
    /// Keeps clients from choosing keys whose hashes are equal.
    seed: u64,
}

impl Page {
    /// The first free slot.
    fn free(&self) -> Option<usize> {
        let word = self.taken.iter().position(|word| *word != u64::MAX)?;
        Some(word * 64 + self.taken[word].trailing_ones() as usize)
    }

    fn put(&mut self, index: usize, task: Task) {
        if self.tasks.is_empty() {
            self.tasks = std::iter::repeat_with(|| None).take(PAGE_TASKS).collect();
        }
        self.taken[index / 64] |= 1 << (index % 64);
        self.used += 1;
        let former = self.tasks[index].replace(task);
        debug_assert!(former.is_none(), "slot {index} was free");
    }

    fn take(&mut self, index: usize) -> Option<Task> {
        let task = self.tasks.get_mut(index)?.take()?;
        self.taken[index / 64] &= !(1 << (index % 64));
        self.used -= 1;
        Some(task)
    }
}

#[cfg(test)]
impl Slot {
    /// Any slot, for tests of what only carries slots around.
    pub(crate) const fn of(number: NonZeroU32) -> Self {
        Self(number)
    }
}

impl Tasks {
    /// No tasks yet. `seed` is that of the engine.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// The hash of a key.
    pub(crate) fn hash_key(&self, key: &[u8]) -> KeyHash {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(key);
        KeyHash(hasher.finish())
    }

    /// Adds a task. Its number must be new.
    pub(crate) fn insert(&mut self, task: Task) -> Slot {
        let number = task.number();
        let (page, index) = self.free_slot();
        self.pages[page].put(index, task);
        let slot = slot_at(page * PAGE_TASKS + index);
        self.numbers.insert(number, slot);
        slot
    }

    /// Removes the task at `slot`, which must be there.
    pub(crate) fn remove(&mut self, slot: Slot) -> Task {
        let (at, index) = address(slot);
        let page = &mut self.pages[at];
        let Some(task) = page.take(index) else { unreachable!("no task at {slot:?}") };
        if !page.is_listed {
            page.is_listed = true;
            self.roomy.push(at);
        }
        if page.used == 0 {
            self.keep_instead(at);
        }
        self.numbers.remove(task.number());
        task
    }

    /// Keeps the room of this page, which has no task any more, for the next ones, and gives back
    /// that of the page that was kept before: a queue that just hands tasks through needs one.
    fn keep_instead(&mut self, at: usize) {
        let former = self.kept.replace(at).filter(|former| *former != at);
        if let Some(former) = former.filter(|former| self.pages[*former].used == 0) {
            self.pages[former].tasks = Vec::new();
        }
    }

    /// The slot of the task with this number.
    pub(crate) fn find(&self, number: u64) -> Option<Slot> {
        self.numbers.find(number)
    }

    /// The task at `slot`, if it is still there.
    pub(crate) fn at(&self, slot: Slot) -> Option<&Task> {
        let (page, index) = address(slot);
        self.pages.get(page)?.tasks.get(index)?.as_ref()
    }

    /// All slots in the order of their numbers. Costs O(n): for start and checks only.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.numbers.slots()
    }

    /// A free slot: its page, and its place there.
    fn free_slot(&mut self) -> (usize, usize) {
        while let Some(&page) = self.roomy.last() {
            if let Some(index) = self.pages[page].free() {
                return (page, index);
            }
            self.pages[page].is_listed = false;
            self.roomy.pop();
        }
        self.pages.push(Page { is_listed: true, ..Page::default() });
        self.roomy.push(self.pages.len() - 1);
        (self.pages.len() - 1, 0)
    }
}

impl std::ops::Index<Slot> for Tasks {
    type Output = Task;

    fn index(&self, slot: Slot) -> &Task {
        let (page, index) = address(slot);
        match &self.pages[page].tasks[index] {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

impl std::ops::IndexMut<Slot> for Tasks {
    fn index_mut(&mut self, slot: Slot) -> &mut Task {
        let (page, index) = address(slot);
        match &mut self.pages[page].tasks[index] {
            Some(task) => task,
            None => unreachable!("no task at {slot:?}"),
        }
    }
}

const fn address(slot: Slot) -> (usize, usize) {
    let index = slot.0.get() as usize - 1;
    (index / PAGE_TASKS, index % PAGE_TASKS)
}

fn slot_at(index: usize) -> Slot {
    let Some(index) = u32::try_from(index + 1).ok().and_then(NonZeroU32::new) else {
        panic!("more than {} tasks in one shard", u32::MAX)
    };
    Slot(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::NewTask;
    use crate::queues::Queues;
    use crate::task::{State, TaskId};
    use crate::time::Timestamp;

    #[test]
    fn room_goes_with_the_tasks() {
        let queue = Queues::default().find_or_make(b"jobs");
        let mut tasks = Tasks::new(1);
        let new = |number| {
            Task::new(NewTask {
                number,
                queue,
                epoch: 1,
                id: TaskId::Number(number),
                priority: Some(0),
                key: None,
                payload: [].into(),
                put_at: Timestamp::ZERO,
                expires_at: None,
                ttr: None,
                state: State::Ready,
            })
        };
        let count = 20 * PAGE_TASKS as u64;
        for number in 1..=count {
            tasks.insert(new(number));
        }
        let with_room = |tasks: &Tasks| tasks.pages.iter().filter(|p| !p.tasks.is_empty()).count();
        assert_eq!(with_room(&tasks), 20);
        for number in 1..=count {
            let slot = tasks.find(number).unwrap_or_else(|| panic!("task {number} is there"));
            assert_eq!(tasks.remove(slot).number(), number);
        }
        assert_eq!(with_room(&tasks), 1, "one page is kept for what comes next");
        for number in 1..=count {
            tasks.insert(new(number + count));
        }
        assert_eq!(tasks.pages.len(), 20, "free slots are used again");
    }
}
