//! What became of the tasks that have left last. It is in memory alone, and bounded.
//!
//! The endings are in a ring, the newest last. Those whose ids have the same hash form a chain from
//! the newest to the oldest, so that adding one costs a few steps and removing the oldest nothing
//! beside the ring. Names are kept once for all endings of a queue. Nothing here knows why a task
//! has left.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::memory::reasons::cut;
use pinpriq_proto::limits::{
    ENDING_OVERHEAD_BYTES, ENDING_REASON_BYTES_MAX, ENDINGS_BYTES_MAX, given_id_bytes,
};
use pinpriq_proto::looking::Ending;
use pinpriq_proto::reply::Outcome;
use pinpriq_proto::task::{Bytes, TaskId};
use pinpriq_proto::time::Timestamp;

/// See the start of this file.
#[derive(Debug)]
pub(crate) struct Endings {
    most: usize,
    ring: VecDeque<Known>,
    /// The position of the ending that comes next. Positions wrap around.
    next: u32,
    /// The position of the newest ending for each hash. It may have been forgotten.
    newest: Vec<u32>,
    /// One less than their number, which is a power of two.
    mask: u64,
    names: Vec<Name>,
    /// The places of names that no ending has.
    free: Vec<u32>,
    /// How often a name has gone, counted from 1.
    gone: u64,
    bytes: usize,
}

/// Where the name of a queue or lane is among those of endings. It may have gone from there if
/// names have gone since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NamePlace {
    index: u32,
    /// [`Endings::gone`] at that time.
    gone: u64,
}

/// A queue, or the lane of a member in a topic.
pub(crate) type Place<N> = (N, Option<N>);

/// The name of a queue or lane, and how many endings it has.
#[derive(Debug)]
struct Name {
    place: Place<Bytes>,
    uses: u32,
}

#[derive(Debug)]
struct Known {
    /// The id if that is a number, or else its hash.
    number: u64,
    at: Timestamp,
    /// Where the name of its queue is.
    name: u32,
    /// The position of the ending before with the same hash.
    previous: u32,
    /// None if the task came back.
    outcome: Option<Outcome>,
    more: Option<Box<More>>,
}

/// What only some endings have.
#[derive(Debug, Default)]
struct More {
    /// The id, if it is no number.
    id: Option<TaskId>,
    reason: Option<Bytes>,
    /// The queue in which it is now, and its id there.
    became: Option<(Bytes, TaskId)>,
}

/// An ending that was withdrawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenBack {
    position: u32,
    outcome: Outcome,
}

/// Up to where there were endings at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u32);

impl Endings {
    /// Remembers at most this many tasks, or as many as fit into [`ENDINGS_BYTES_MAX`].
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(ENDINGS_BYTES_MAX / ENDING_OVERHEAD_BYTES);
        let (ring, newest, names, free) = (VecDeque::new(), Vec::new(), Vec::new(), Vec::new());
        Self { most, ring, next: 1, newest, mask: 0, names, free, gone: 1, bytes: 0 }
    }

    /// Whether any are remembered.
    #[inline]
    pub(crate) const fn are_wanted(&self) -> bool {
        self.most > 0
    }

    /// Whether a name is certainly where it was last.
    #[inline]
    pub(crate) const fn has(&self, place: NamePlace) -> bool {
        place.gone == self.gone
    }

    /// Where the name of a queue or lane is, which was last known to be at `place`.
    #[inline(never)]
    pub(crate) fn name_at(
        &mut self,
        place: NamePlace,
        (queue, member): Place<&Bytes>,
    ) -> NamePlace {
        let gone = self.gone;
        if let Some(Name { place: known, uses: 1.. }) = self.names.get(place.index as usize)
            && Arc::ptr_eq(&known.0, queue)
            && known.1.as_ref() == member
        {
            return NamePlace { gone, ..place };
        }
        let name = Name { place: (queue.clone(), member.cloned()), uses: 0 };
        self.bytes += name.bytes();
        let index = self.free.pop().unwrap_or_else(|| {
            self.names.push(Name { place: (Bytes::default(), None), uses: 0 });
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        });
        self.names[index as usize] = name;
        NamePlace { index, gone }
    }

    /// Adds the ending of a task whose id is a number, and that has no reason, as the newest. Its
    /// queue has its name here.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every end of a task")]
    pub(crate) fn add_plain(
        &mut self,
        place: NamePlace,
        number: u64,
        (outcome, at): (Outcome, Timestamp),
    ) {
        let (name, outcome) = (place.index, Some(outcome));
        self.push(Known { number, at, name, previous: 0, outcome, more: None });
        self.bytes += ENDING_OVERHEAD_BYTES;
    }

    /// Like [`Self::add_plain`], for any task.
    #[inline(never)]
    pub(crate) fn add(
        &mut self,
        place: NamePlace,
        (id, reason): (TaskId, Option<Bytes>),
        (outcome, at): (Outcome, Timestamp),
    ) {
        let (number, name, outcome) = (number_of(&id), place.index, Some(outcome));
        let id = Some(id).filter(|id| !matches!(id, TaskId::Number(_)));
        let more = Some(Box::new(More { id, reason: reason.map(shortened), became: None }));
        let known = Known { number, at, name, previous: 0, outcome, more };
        self.bytes += known.bytes();
        self.push(known);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is part of every end of a task")]
    fn push(&mut self, known: Known) {
        let place = self.place_of(known.number);
        let previous = match self.newest.get_mut(place) {
            Some(newest) => std::mem::replace(newest, self.next),
            None => self.begin(known.number),
        };
        self.next = self.next.wrapping_add(1);
        self.names[known.name as usize].uses += 1;
        self.ring.push_back(Known { previous, ..known });
    }

    /// Makes room for the first, which has this number. Returns the position of the one before.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, number: u64) -> u32 {
        let places = self.most.next_power_of_two();
        (self.newest, self.mask) = (vec![0; places], places as u64 - 1);
        self.ring.reserve_exact(self.most + 1);
        let place = self.place_of(number);
        std::mem::replace(&mut self.newest[place], self.next)
    }

    /// Notes in which queue the task of the newest ending is now, under which id, and why.
    pub(crate) fn note_became(&mut self, became: (Bytes, TaskId), reason: Option<Bytes>) {
        let Some(known) = self.ring.back_mut() else { return };
        self.bytes -= known.bytes();
        let more = known.more.get_or_insert_default();
        more.became = Some(became);
        more.reason = reason.map(shortened);
        self.bytes += known.bytes();
    }

    /// Forgets the oldest beyond the bounds.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.ring.len() > self.most || self.bytes > ENDINGS_BYTES_MAX {
            self.forget_oldest();
        }
    }

    #[inline(never)]
    fn forget_oldest(&mut self) {
        while self.ring.len() > self.most || self.bytes > ENDINGS_BYTES_MAX {
            let Some(known) = self.ring.pop_front() else { return };
            self.forget(&known);
        }
    }

    fn forget(&mut self, known: &Known) {
        self.bytes -= known.bytes();
        let name = &mut self.names[known.name as usize];
        name.uses -= 1;
        if name.uses == 0 {
            self.bytes -= name.bytes();
            name.place = (Bytes::default(), None);
            self.free.push(known.name);
            self.gone += 1;
        }
    }

    /// What became of the task of this queue or lane that left last with one of these ids, and its
    /// id.
    pub(crate) fn find(
        &self,
        place: Place<&[u8]>,
        ids: impl Iterator<Item = TaskId>,
    ) -> Option<(TaskId, Ending)> {
        let found = ids.filter_map(|id| Some((self.position_of(place, &id)?, id)));
        let (position, id) = found.max_by_key(|(position, _)| *position)?;
        let known = &self.ring[position];
        let more = known.more.as_deref();
        let ending = Ending {
            outcome: known.outcome?,
            at: known.at,
            reason: more.and_then(|more| more.reason.clone()),
            became: more.and_then(|more| more.became.clone()),
        };
        Some((id, ending))
    }

    /// Notes that a task came back, or that another one has its id now, so that it is not told to
    /// have ended. Returns what that changes.
    pub(crate) fn take_back(&mut self, place: Place<&[u8]>, id: &TaskId) -> Option<TakenBack> {
        let index = self.position_of(place, id)?;
        let outcome = self.ring[index].outcome.take()?;
        let age = u32::try_from(self.ring.len() - index).unwrap_or(u32::MAX);
        Some(TakenBack { position: self.next.wrapping_sub(age), outcome })
    }

    /// Makes a task one again that has ended.
    pub(crate) fn put_back(&mut self, TakenBack { position, outcome }: TakenBack) {
        let age = self.next.wrapping_sub(position) as usize;
        let index = self.ring.len().checked_sub(age);
        if let Some(known) = index.and_then(|index| self.ring.get_mut(index)) {
            known.outcome = Some(outcome);
        }
    }

    /// Up to where there are endings now.
    pub(crate) const fn mark(&self) -> Mark {
        Mark(self.next)
    }

    /// Forgets all that were added since, of which none was forgotten before.
    pub(crate) fn forget_since(&mut self, mark: Mark) {
        while self.next != mark.0 {
            let Some(known) = self.ring.pop_back() else { return };
            self.next = self.next.wrapping_sub(1);
            let place = self.place_of(known.number);
            self.newest[place] = known.previous;
            self.forget(&known);
        }
    }

    /// Where the newest ending of this task is in the ring.
    fn position_of(&self, (queue, member): Place<&[u8]>, id: &TaskId) -> Option<usize> {
        if self.newest.is_empty() {
            return None;
        }
        let number = number_of(id);
        let mut position = self.newest[self.place_of(number)];
        let mut former_age = 0;
        loop {
            // The newest has the age 1.
            let age = self.next.wrapping_sub(position) as usize;
            if age <= former_age || age > self.ring.len() {
                return None;
            }
            former_age = age;
            let index = self.ring.len() - age;
            let known = &self.ring[index];
            if known.number == number && known.is(id) {
                let (name, lane) = &self.names[known.name as usize].place;
                if **name == *queue && lane.as_deref() == member {
                    return Some(index);
                }
            }
            position = known.previous;
        }
    }

    /// The place of a number in [`Self::newest`].
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of places")]
    const fn place_of(&self, number: u64) -> usize {
        // The lowest bits of numbers that count differ most. Those of moments hardly do.
        ((number ^ number >> 20) & self.mask) as usize
    }
}

/// The number of an id, or another one that depends on all of it.
fn number_of(id: &TaskId) -> u64 {
    // The golden ratio times 2^64 spreads the bytes.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(SPREAD).rotate_left(29);
    match id {
        TaskId::Number(number) => *number,
        TaskId::Uuid(bytes) => bytes.iter().fold(0, mix),
        TaskId::Given(bytes) => bytes.iter().fold(1, mix),
    }
}

impl Name {
    fn bytes(&self) -> usize {
        let (queue, member) = &self.place;
        size_of::<Self>() + queue.len() + member.as_ref().map_or(0, |member| member.len())
    }
}

impl Known {
    fn is(&self, id: &TaskId) -> bool {
        match (id, self.more.as_deref().and_then(|more| more.id.as_ref())) {
            (TaskId::Number(_), own) => own.is_none(),
            (id, own) => own == Some(id),
        }
    }

    #[inline]
    fn bytes(&self) -> usize {
        ENDING_OVERHEAD_BYTES + self.more.as_ref().map_or(0, |more| more.bytes())
    }
}

impl More {
    fn bytes(&self) -> usize {
        let Self { id, reason, became } = self;
        let id_bytes = |id: &TaskId| match id {
            TaskId::Given(id) => given_id_bytes(id.len()),
            TaskId::Number(_) | TaskId::Uuid(_) => 0,
        };
        let reason = reason.as_ref().map_or(0, |reason| reason.len());
        let became = became.as_ref().map_or(0, |(queue, id)| queue.len() + id_bytes(id));
        size_of::<Self>() + id.as_ref().map_or(0, id_bytes) + reason + became
    }
}

fn shortened(reason: Bytes) -> Bytes {
    cut(reason, ENDING_REASON_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Queue {
        name: Bytes,
        place: NamePlace,
    }

    impl Queue {
        fn new(name: &str) -> Self {
            Self { name: Bytes::from(name.as_bytes()), place: NamePlace::default() }
        }

        fn end(&mut self, id: TaskId, endings: &mut Endings) {
            if !endings.has(self.place) {
                self.place = endings.name_at(self.place, (&self.name, None));
            }
            let left = (Outcome::Acked, Timestamp::from_ms(1));
            match id {
                TaskId::Number(number) => endings.add_plain(self.place, number, left),
                id => endings.add(self.place, (id, None), left),
            }
        }

        fn knows(&self, id: TaskId, endings: &Endings) -> bool {
            endings.find((&self.name, None), [id].into_iter()).is_some()
        }
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut endings = Endings::new(3);
        let mut queues = [Queue::new("a"), Queue::new("b")];
        for number in 1..=1_000_u64 {
            let [queue, other] = &mut queues;
            if number % 10 < 5 {
                std::mem::swap(queue, other);
            }
            queue.end(TaskId::Number(number), &mut endings);
            endings.trim();
            for known in 0..=number + 1 {
                let is_known = number.saturating_sub(3) < known && known <= number;
                let knows = |queue: &Queue| queue.knows(TaskId::Number(known), &endings);
                assert_eq!(knows(queue) || knows(other), is_known, "{known} of {number}");
            }
            assert!(!other.knows(TaskId::Number(number), &endings));
            assert!(endings.names.len() <= 3, "names are used again");
        }
    }

    #[test]
    fn positions_wrap_around() {
        let mut endings = Endings::new(4);
        endings.next = u32::MAX - 5;
        let mut queue = Queue::new("q");
        for number in 0..20 {
            queue.end(TaskId::Number(number), &mut endings);
            endings.trim();
            assert!(queue.knows(TaskId::Number(number), &endings));
            assert!(number < 4 || !queue.knows(TaskId::Number(number - 4), &endings));
        }
    }

    #[test]
    fn what_is_undone_was_never_there() {
        let mut endings = Endings::new(2);
        let mut queue = Queue::new("q");
        for number in [1, 2] {
            queue.end(TaskId::Number(number), &mut endings);
        }
        let (mark, bytes) = (endings.mark(), endings.bytes);
        for number in 3..100 {
            queue.end(TaskId::Number(number), &mut endings);
            Queue::new("other").end(TaskId::Number(number), &mut endings);
        }
        endings.forget_since(mark);
        endings.trim();
        for number in 0..100 {
            let is_known = number == 1 || number == 2;
            assert_eq!(queue.knows(TaskId::Number(number), &endings), is_known);
        }
        assert_eq!(endings.bytes, bytes);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut endings = Endings::new(1_000_000);
        let mut queue = Queue::new("q");
        let id = |number: u32| TaskId::Given(Bytes::from(format!("{number:0250}").as_bytes()));
        for number in 0..100_000 {
            queue.end(id(number), &mut endings);
            endings.trim();
        }
        assert!(endings.bytes <= ENDINGS_BYTES_MAX);
        assert!((30_000..60_000).contains(&endings.ring.len()), "{}", endings.ring.len());
        assert!(queue.knows(id(99_999), &endings) && !queue.knows(id(0), &endings));
        // Names count too.
        for number in 0..1_000 {
            let name = format!("{number:065535}");
            Queue::new(&name).end(TaskId::Number(1), &mut endings);
            endings.trim();
            assert!(endings.bytes <= ENDINGS_BYTES_MAX);
        }
        assert!(endings.ring.len() < 300, "{}", endings.ring.len());
    }
}
