//! Queues: their names, settings, indexes, waiting consumers and figures.
//!
//! A queue object exists while the queue exists for clients (it was created, is paused or holds
//! tasks), while consumers wait for its first task, or while the figures of the former queue are
//! kept. A lane is a queue that is found by its number
//! instead of its name, and it exists until it is removed. The members and topics of lanes are in
//! `members.rs`. Tasks are moved in `step.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use crate::memory::consumers::{ConsumerId, Ticket};
use crate::memory::endings::NamePlace;
use crate::memory::gate::{FormerGate, Gate};
use crate::memory::indexes::Indexes;
use crate::memory::lingering::{Entry, FORGOTTEN_PER_CALL, InUse, Lingering};
use crate::memory::news::News;
use crate::memory::pace::Pace;
use crate::memory::packed::{Names, Task};
use crate::memory::share_counts::ShareCounts;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::tallies::Tallies;
use crate::memory::turns::{SharesRules, Turns};
use crate::memory::unstarted::Unstarted;
use pinpriq_proto::change::{Change, LaneRecord, Place, QueueRecord};
use pinpriq_proto::command::{QueueName, Selection};
use pinpriq_proto::limits::{Limits, queue_bytes};
use pinpriq_proto::names::NamePattern;
use pinpriq_proto::settings::{Paused, Settings};
use pinpriq_proto::stats::Counters;
use pinpriq_proto::survey::QueueChange;
use pinpriq_proto::task::{Bytes, ClientId, LaneName, StateKind};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_proto::wire::beanstalkd::is_tube_name;

/// One queue.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Queue {
    /// Its name. For a lane, the name of the topic.
    pub(crate) name: Bytes,
    /// What makes it a lane, if it is one.
    pub(crate) lane: Option<Box<Lane>>,
    /// Changes whenever the queue is emptied at once; see [`crate::memory::tasks::Task::epoch`].
    pub(crate) epoch: u32,
    /// Where its name was last among those of endings.
    pub(crate) remembered_as: NamePlace,
    /// Whether it exists even when empty.
    pub(crate) created: bool,
    pub(crate) settings: Settings,
    pub(crate) paused: Paused,
    /// How long the pause of its output is in all, if it ends by itself. After a restart, how much
    /// of it was left.
    pub(crate) paused_for: Span,
    /// Whether its name can be that of a tube.
    pub(crate) is_tube: bool,
    /// How many tasks it had when the server started.
    pub(crate) found: u64,
    /// How many of its tasks were deleted by their number.
    pub(crate) deletes: u64,
    /// When it came into being, and how many queues of the shard had done so before.
    pub(crate) came: (Timestamp, u64),
    /// What holds its tasks back, if its settings limit how many are taken.
    pub(crate) gate: Option<Box<Gate>>,
    /// Which of its tasks goes next, if number and age alone do not decide that.
    pub(crate) turns: Option<Box<Turns>>,
    /// How many tasks its shares have, if its settings bound that.
    pub(crate) share_counts: Option<Box<ShareCounts>>,
    /// What is counted about its shares, while somebody looks at them.
    pub(crate) tallies: Option<Box<Tallies>>,
    /// What follows what becomes of its tasks.
    pub(crate) followers: Followers,
    /// The rules of their own that its shares have, if some have any.
    pub(crate) shares: Option<Box<SharesRules>>,
    pub(crate) indexes: Indexes,
    pub(crate) waiting: Waiting,
    /// The clients that are subscribed, with credit or without.
    pub(crate) subscribers: BTreeSet<ClientId>,
    pub(crate) counters: Counters,
    /// How many of its tasks were handed out of late, if any were.
    pub(crate) pace: Option<Box<Pace>>,
    /// The bytes of payloads and keys of the tasks in Z and D.
    pub(crate) finished_bytes: u64,
    /// The number under which [`Lingering`] keeps it, if it has ceased to exist and its figures are
    /// kept.
    pub(crate) lingers: Option<u64>,
    /// Where the store keeps its record.
    pub(crate) place: Option<Place>,
    /// Whether a record of it was ever reported. If so, its end must be reported too.
    pub(crate) recorded: bool,
    /// Whether it counts as occupied memory, which it does while it exists for clients. A queue
    /// that consumers only wait for is counted with these consumers. A lane is counted by its
    /// member.
    pub(crate) counted: bool,
    /// Whether it is already in the list of queues to be served.
    pub(crate) to_be_served: bool,
    /// The number of running steps that need the object to stay even if no one waits for it.
    pub(crate) pins: u32,
}

/// What follows what becomes of the tasks of a queue: its turns, the counts of its shares, and what
/// is tallied about them while somebody looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Followers {
    None,
    /// Turns alone, which look at ready tasks only.
    Turns,
    /// Anything else.
    Several,
}

/// What a transaction can change about a queue besides its tasks, as it was before.
#[derive(Debug)]
pub(crate) struct FormerQueue {
    counters: Counters,
    pace: Option<Box<Pace>>,
    /// See [`Queue::finished_bytes`].
    finished_bytes: u64,
    counted: bool,
    /// See [`Queue::lingers`].
    lingers: Option<(u64, Entry)>,
    /// See [`Lane::missed`].
    missed: Option<u64>,
    gate: Option<FormerGate>,
}

/// The extra fields of a lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) name: LaneName,
    /// The incarnation of the member.
    pub(crate) incarnation: u64,
    /// The number of copies that the lane did not take because it was full or paused.
    pub(crate) missed: u64,
}

/// The consumers that wait for a task of one queue, in the order in which they became ready.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Consumers that accept every task.
    pub(crate) any: BTreeMap<Ticket, ConsumerId>,
    /// Consumers that accept only tasks with a small payload.
    pub(crate) narrow: BTreeMap<Ticket, ConsumerId>,
    /// The deliveries that were not started and can be called back, if there are any. The tasks are
    /// taken.
    pub(crate) unstarted: Option<Box<Unstarted>>,
}

/// All queues of a shard.
#[derive(Debug)]
pub(crate) struct Queues {
    slots: Vec<Option<Queue>>,
    free: Vec<QueueSlot>,
    names: BTreeMap<Bytes, QueueSlot>,
    lanes: BTreeMap<u64, QueueSlot>,
    /// The names of the queues for dead letters, and how many queues have each of them.
    dead_letters: BTreeMap<Bytes, u32>,
    /// The number of queues that exist for clients, not counting lanes.
    existing: u64,
    /// The number of queues and lanes that are paused.
    paused: u64,
    last_epoch: u32,
    /// The number of queues that have come into being.
    came: u64,
    pub(crate) lingering: Lingering,
    /// Whose figures are kept on.
    pub(crate) in_use: InUse,
    pub(crate) news: News,
}

impl Queue {
    /// Notes what follows what becomes of its tasks.
    pub(crate) fn note_followers(&mut self) {
        self.followers = self.current_followers();
    }

    /// The same, as it is now.
    pub(crate) fn current_followers(&self) -> Followers {
        let are_others = self.share_counts.is_some() || self.tallies.is_some();
        match (&self.turns, are_others) {
            (Some(turns), false) if turns.are_plain() => Followers::Turns,
            (None, false) => Followers::None,
            _ => Followers::Several,
        }
    }

    /// Whether anything follows what becomes of its tasks.
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        self.followers != Followers::None
    }

    /// Whether what follows its tasks has to know that this one leaves its state.
    #[inline]
    pub(crate) fn must_hear_of_exit(&self, slot: Slot, task: &Task) -> bool {
        match (self.followers, &self.turns) {
            (Followers::None, _) => false,
            (Followers::Turns, Some(turns)) => {
                task.kind() == StateKind::Ready && !turns.has_departed(slot)
            }
            _ => true,
        }
    }

    /// Whether neither turns nor consumers want to know that a task that was not ready is gone.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.followers == Followers::Turns
            && self.turns.as_ref().is_some_and(|turns| turns.are_at_rest())
            && self.waiting.is_empty()
    }

    /// Whether it has a gate even without limits: what is handed out is told to these by the gate.
    pub(crate) fn needs_gate(&self) -> bool {
        self.turns.is_some() || self.tallies.is_some()
    }

    /// The names that its tasks are shown with.
    pub(crate) fn names(&self) -> Names<'_> {
        Names { queue: &self.name, lane: self.lane_name() }
    }

    /// Iterates over the ready tasks with a priority in the order of the selection. Groups are not
    /// followed, and nor are the turns of shares.
    pub(crate) fn walk(&self, selection: Selection) -> impl Iterator<Item = Slot> {
        let aged = self.turns.as_ref().and_then(|turns| turns.aged());
        let plain = aged.is_none().then(|| self.indexes.walk(selection));
        let aged = aged.map(|aged| aged.walk(selection));
        aged.into_iter().flatten().chain(plain.into_iter().flatten())
    }

    /// Whether the queue exists for clients.
    pub(crate) fn exists(&self) -> bool {
        self.created || self.paused.any() || self.counters.in_any_state() > 0
    }

    /// The change that holds its settings and pause for the store.
    pub(crate) fn record(&self) -> Change {
        match &self.lane {
            None => Change::Queue(Box::new(QueueRecord {
                name: self.name.clone(),
                created: self.created,
                settings: self.settings.clone(),
                paused: self.paused,
            })),
            Some(lane) => Change::Lane(Box::new(LaneRecord {
                number: lane.name.number,
                topic: self.name.clone(),
                member: lane.incarnation,
                settings: self.settings.clone(),
                paused: self.paused,
            })),
        }
    }

    /// Whether a client may use this name for it. The topic alone is a valid name for a lane too.
    pub(crate) fn answers_to(&self, name: QueueName<'_>) -> bool {
        let member = self.lane_name().map(|lane| &*lane.member);
        *self.name == *name.name && (name.member.is_none() || name.member == member)
    }

    /// The name of the lane for its tasks, if it is a lane.
    pub(crate) fn lane_name(&self) -> Option<&LaneName> {
        self.lane.as_ref().map(|lane| &lane.name)
    }

    /// Counts from nothing again.
    fn forget_figures(&mut self) {
        self.counters = Counters::default();
        self.pace = None;
        (self.found, self.deletes) = (0, 0);
        if self.tallies.take().is_some() {
            self.note_followers();
        }
    }

    /// Whether a consumer waits for it, is subscribed to it, or is being served from it.
    fn is_wanted(&self) -> bool {
        self.to_be_served
            || self.pins > 0
            || !self.subscribers.is_empty()
            || !self.waiting.is_empty()
    }
}

impl Waiting {
    /// Whether no one wants a task, or another one than it has.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.narrow.is_empty() && self.unstarted.is_none()
    }

    pub(crate) fn insert(&mut self, narrow: bool, ticket: Ticket, consumer: ConsumerId) {
        self.side(narrow).insert(ticket, consumer);
    }

    pub(crate) fn remove(&mut self, narrow: bool, ticket: Ticket) {
        self.side(narrow).remove(&ticket);
    }

    /// Returns the consumer that has waited longest among those that accept one of the available
    /// tasks.
    pub(crate) fn first(&self, has_narrow: bool, has_wide: bool) -> Option<(Ticket, ConsumerId)> {
        let any = self.any.first_key_value().filter(|_| has_narrow || has_wide);
        let narrow = self.narrow.first_key_value().filter(|_| has_narrow);
        let first = any.into_iter().chain(narrow).min_by_key(|(ticket, _)| **ticket);
        first.map(|(ticket, consumer)| (*ticket, *consumer))
    }

    fn side(&mut self, narrow: bool) -> &mut BTreeMap<Ticket, ConsumerId> {
        if narrow { &mut self.narrow } else { &mut self.any }
    }
}

impl Queues {
    /// Returns no queues.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            names: BTreeMap::new(),
            lanes: BTreeMap::new(),
            dead_letters: BTreeMap::new(),
            existing: 0,
            paused: 0,
            last_epoch: 0,
            came: 0,
            lingering: Lingering::new(limits.queue_linger, limits.lingering_queues_max),
            in_use: InUse::default(),
            news: News::default(),
        }
    }

    /// Returns the queue of this name, if its object exists.
    pub(crate) fn find(&self, name: &[u8]) -> Option<QueueSlot> {
        self.names.get(name).copied()
    }

    /// Returns the queue of this name. Creates it if it does not exist.
    pub(crate) fn find_or_make(&mut self, name: &[u8]) -> QueueSlot {
        if let Some(slot) = self.find(name) {
            return slot;
        }
        let name: Bytes = name.into();
        let slot = self.add(name.clone(), None);
        self.names.insert(name, slot);
        slot
    }

    /// Returns the lane of this number, if there is one.
    pub(crate) fn find_lane(&self, number: u64) -> Option<QueueSlot> {
        self.lanes.get(&number).copied()
    }

    /// Creates a lane. Its number must be new.
    pub(crate) fn make_lane(&mut self, topic: Bytes, lane: Lane) -> QueueSlot {
        let number = lane.name.number;
        let slot = self.add(topic, Some(Box::new(lane)));
        let queue = &mut self[slot];
        queue.created = true;
        queue.recorded = true;
        queue.counted = true;
        let former = self.lanes.insert(number, slot);
        assert!(former.is_none(), "lane {number} was made twice");
        slot
    }

    /// Removes a lane. No consumer may wait for it.
    pub(crate) fn remove_lane(&mut self, slot: QueueSlot) -> Queue {
        let Some(queue) = self.slots[slot.0 as usize].take() else {
            unreachable!("no lane at {slot:?}")
        };
        assert!(!queue.is_wanted(), "somebody waits for the lane at {slot:?}");
        let number = queue.lane_name().map(|lane| lane.number);
        let known = number.and_then(|number| self.lanes.remove(&number));
        assert_eq!(known, Some(slot), "a lane is found by its number");
        self.paused -= u64::from(queue.paused.any());
        self.part_from_dead_letters(queue.settings.dead_letter.as_ref());
        self.free.push(slot);
        queue
    }

    /// Gives a queue or lane these settings.
    pub(crate) fn set_settings(&mut self, slot: QueueSlot, settings: Settings) {
        let now = settings.dead_letter.clone();
        let former = std::mem::replace(&mut self[slot].settings, settings);
        if former.dead_letter == now {
            return;
        }
        self.part_from_dead_letters(former.dead_letter.as_ref());
        if let Some(name) = now {
            *self.dead_letters.entry(name).or_default() += 1;
        }
    }

    /// A queue has this one for dead letters no longer.
    fn part_from_dead_letters(&mut self, name: Option<&Bytes>) {
        let Some(name) = name else { return };
        if let Some(count) = self.dead_letters.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.dead_letters.remove(name);
            }
        }
    }

    /// Whether a queue of this name is that for dead letters of another queue.
    pub(crate) fn holds_dead_letters(&self, name: &[u8]) -> bool {
        self.dead_letters.contains_key(name)
    }

    /// How many queues have each queue for dead letters.
    pub(crate) const fn dead_letters(&self) -> &BTreeMap<Bytes, u32> {
        &self.dead_letters
    }

    fn add(&mut self, name: Bytes, lane: Option<Box<Lane>>) -> QueueSlot {
        let queue = Queue {
            is_tube: lane.is_none() && is_tube_name(&name),
            found: 0,
            deletes: 0,
            remembered_as: NamePlace::default(),
            name,
            lane,
            epoch: self.next_epoch(),
            created: false,
            settings: Settings::default(),
            paused: Paused::default(),
            paused_for: Span::ZERO,
            came: (Timestamp::ZERO, 0),
            gate: None,
            turns: None,
            share_counts: None,
            tallies: None,
            followers: Followers::None,
            shares: None,
            indexes: Indexes::default(),
            waiting: Waiting::default(),
            subscribers: BTreeSet::new(),
            counters: Counters::default(),
            pace: None,
            finished_bytes: 0,
            lingers: None,
            place: None,
            recorded: false,
            counted: false,
            to_be_served: false,
            pins: 0,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            let Ok(index) = u32::try_from(self.slots.len()) else {
                panic!("more than {} queues in one shard", u32::MAX)
            };
            self.slots.push(None);
            QueueSlot(index)
        });
        self.slots[slot.0 as usize] = Some(queue);
        slot
    }

    /// Counts a queue that exists for clients from now on. Returns the number of bytes that this
    /// adds.
    pub(crate) fn count(&mut self, slot: QueueSlot, now: Timestamp) -> u64 {
        let queue = &mut self[slot];
        if std::mem::replace(&mut queue.counted, true) {
            return 0;
        }
        let bytes = queue_bytes(queue.name.len());
        if let Some(serial) = queue.lingers.take() {
            let is_over = self.lingering.is_over(serial, now) && !self.is_in_use(slot);
            self.lingering.remove(serial);
            if is_over {
                self[slot].forget_figures();
            }
        }
        self.existing += 1;
        self[slot].came = (now, self.came);
        self.came += 1;
        self.tell(slot, QueueChange::Came);
        bytes
    }

    /// Tells those who want to know what became of a queue.
    pub(crate) fn tell(&mut self, slot: QueueSlot, what: QueueChange) {
        if let Some(queue) = self.slots[slot.0 as usize].as_ref().filter(|it| it.lane.is_none()) {
            self.news.note(&queue.name, what);
        }
    }

    /// Returns what a transaction can change about a queue.
    pub(crate) fn former(&self, slot: QueueSlot) -> FormerQueue {
        let queue = &self[slot];
        let lingers = queue.lingers.and_then(|it| Some((it, self.lingering.entry(it)?)));
        FormerQueue {
            counters: queue.counters.clone(),
            pace: queue.pace.clone(),
            finished_bytes: queue.finished_bytes,
            counted: queue.counted,
            lingers,
            missed: queue.lane.as_ref().map(|lane| lane.missed),
            gate: queue.gate.as_ref().map(|gate| gate.former()),
        }
    }

    /// Makes a queue what it was before a transaction. It may be unneeded now.
    pub(crate) fn put_back(&mut self, slot: QueueSlot, former: FormerQueue) {
        let FormerQueue { counters, pace, finished_bytes, counted, lingers, missed, gate } = former;
        let queue = &mut self[slot];
        (queue.counters, queue.pace) = (counters, pace);
        queue.finished_bytes = finished_bytes;
        if let Some((lane, missed)) = queue.lane.as_mut().zip(missed) {
            lane.missed = missed;
        }
        if let Some((gate, former)) = queue.gate.as_mut().zip(gate) {
            gate.go_back(former);
        }
        queue.lingers = lingers.map(|(serial, _)| serial);
        let is_new = queue.counted && !counted;
        queue.counted = counted;
        self.existing -= u64::from(is_new);
        if is_new {
            self.tell(slot, QueueChange::Went);
        }
        if let Some((serial, entry)) = lingers {
            self.lingering.put_back(serial, entry);
        }
    }

    /// Pauses exactly these sides of a queue or lane.
    pub(crate) fn pause(&mut self, slot: QueueSlot, paused: Paused) {
        let former = std::mem::replace(&mut self[slot].paused, paused);
        self.paused = self.paused + u64::from(paused.any()) - u64::from(former.any());
    }

    /// The number of queues that exist for clients, not counting lanes.
    pub(crate) const fn existing(&self) -> u64 {
        self.existing
    }

    /// The number of queues and lanes that are paused.
    pub(crate) const fn paused(&self) -> u64 {
        self.paused
    }

    /// Removes the object of a queue that no longer exists, that no consumer waits for, and whose
    /// figures are not kept. Returns the number of bytes that no longer count.
    #[inline]
    pub(crate) fn tidy(&mut self, slot: QueueSlot, now: Timestamp) -> u64 {
        if self[slot].exists() { 0 } else { self.end(slot, now) }
    }

    /// See [`Queues::tidy`].
    #[inline(never)]
    fn end(&mut self, slot: QueueSlot, now: Timestamp) -> u64 {
        let queue = &mut self[slot];
        let bytes = queue_bytes(queue.name.len());
        let freed = if std::mem::take(&mut queue.counted) { bytes } else { 0 };
        if freed > 0 {
            self.existing -= 1;
            self.tell(slot, QueueChange::Went);
            let is_in_use = self.is_in_use(slot);
            self[slot].lingers = self.lingering.add(slot, now, (bytes, is_in_use));
            while let Some(slot) = self.lingering.pop_excess() {
                self.forget(slot);
            }
        }
        // The queue itself may have been in excess.
        let queue = self.slots[slot.0 as usize].as_ref();
        if queue.is_some_and(|queue| queue.lingers.is_none()) {
            self.forget(slot);
        }
        freed
    }

    /// Forgets the figures of some former queues whose time is over.
    #[inline]
    pub(crate) fn forget_lingering(&mut self, now: Timestamp) {
        if self.lingering.may_be_over(now) {
            self.forget_some(now);
        }
    }

    #[inline(never)]
    fn forget_some(&mut self, now: Timestamp) {
        for _ in 0..FORGOTTEN_PER_CALL {
            let Some(slot) = self.lingering.pop_over(now) else { return };
            if self.is_in_use(slot) {
                let bytes = queue_bytes(self[slot].name.len());
                self[slot].lingers = self.lingering.add(slot, now, (bytes, true));
            } else {
                self.forget(slot);
            }
        }
    }

    /// Whether a queue is in use although it may not exist.
    fn is_in_use(&self, slot: QueueSlot) -> bool {
        let queue = &self[slot];
        queue.is_tube && queue.lane.is_none() && self.in_use.holds(&queue.name)
    }

    /// Returns the figures of a queue, or of a former queue whose figures are kept.
    pub(crate) fn counters(&self, slot: QueueSlot, now: Timestamp) -> Counters {
        self.known_counters(slot, now).cloned().unwrap_or_default()
    }

    /// Returns the figures of a queue, or of a former queue, unless they are kept no longer.
    pub(crate) fn known_counters(&self, slot: QueueSlot, now: Timestamp) -> Option<&Counters> {
        let queue = &self[slot];
        let is_over = queue.lingers.is_some_and(|serial| self.lingering.is_over(serial, now));
        (!is_over || self.is_in_use(slot)).then_some(&queue.counters)
    }

    /// Forgets the figures of a queue that does not exist, and its object if no consumer waits for
    /// it.
    fn forget(&mut self, slot: QueueSlot) {
        self[slot].lingers = None;
        if self[slot].is_wanted() {
            self[slot].forget_figures();
        } else if let Some(queue) = self.slots[slot.0 as usize].take() {
            self.names.remove(&queue.name);
            self.free.push(slot);
        }
    }

    /// Returns a new epoch. It repeats only after four thousand million calls. The tasks of emptied
    /// queues are freed long before that.
    pub(crate) const fn next_epoch(&mut self) -> u32 {
        self.last_epoch = self.last_epoch.wrapping_add(1);
        self.last_epoch
    }

    /// Whether the object of a queue still exists and has this epoch.
    pub(crate) fn is_current(&self, slot: QueueSlot, epoch: u32) -> bool {
        let queue = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        queue.is_some_and(|queue| queue.epoch == epoch)
    }

    /// Whether the shares of a queue are followed, if there is one at this place.
    pub(crate) fn is_tallied(&self, slot: QueueSlot) -> bool {
        let queue = self.slots.get(slot.0 as usize).and_then(Option::as_ref);
        queue.is_some_and(|queue| queue.tallies.is_some())
    }

    /// Returns names of existing queues after `after` that begin with `prefix`, in order.
    pub(crate) fn names(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
    ) -> impl Iterator<Item = &Bytes> {
        self.matching(NamePattern::beginning(prefix), after.map_or(Unbounded, Excluded))
            .filter(|(_, slot)| self[*slot].exists())
            .map(|(name, _)| name)
    }

    /// Returns the queue objects whose names match, from this name on, in the order of their names.
    /// Costs O(log n), and a step for each.
    pub(crate) fn matching<'s>(
        &'s self,
        pattern: NamePattern<'_>,
        from: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&'s Bytes, QueueSlot)> {
        let start = match from {
            Included(name) | Excluded(name) if name >= pattern.bytes => from,
            _ => Included(pattern.bytes),
        };
        self.names
            .range::<[u8], _>((start, Unbounded))
            .take_while(move |(name, _)| pattern.matches(name))
            .map(|(name, slot)| (name, *slot))
    }

    /// Iterates over all queue objects, from this name on in the order of their names, and then
    /// over all lanes by number. With a lane, iterates over the lanes from that number on.
    pub(crate) fn onwards(
        &self,
        lane: Option<u64>,
        name: &[u8],
    ) -> impl Iterator<Item = QueueSlot> {
        let queues = self.names.range::<[u8], _>((Included(name), Unbounded));
        let queues = queues.take_while(move |_| lane.is_none()).map(|(_, slot)| *slot);
        queues.chain(self.lanes_onwards(lane))
    }

    /// Iterates over all lanes by number, from this one on.
    pub(crate) fn lanes_onwards(&self, lane: Option<u64>) -> impl Iterator<Item = QueueSlot> {
        self.lanes.range(lane.unwrap_or(0)..).map(|(_, slot)| *slot)
    }

    /// Returns all lanes by number. Costs O(n): for start and checks only.
    pub(crate) fn lane_slots(&self) -> Vec<QueueSlot> {
        self.lanes.values().copied().collect()
    }

    /// Returns all queue objects, lanes last. Costs O(n): for start and checks only.
    pub(crate) fn slots(&self) -> Vec<QueueSlot> {
        self.names.values().chain(self.lanes.values()).copied().collect()
    }
}

impl std::ops::Index<QueueSlot> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, slot: QueueSlot) -> &Queue {
        match &self.slots[slot.0 as usize] {
            Some(queue) => queue,
            None => unreachable!("no queue at {slot:?}"),
        }
    }
}

impl std::ops::IndexMut<QueueSlot> for Queues {
    #[inline]
    fn index_mut(&mut self, slot: QueueSlot) -> &mut Queue {
        match &mut self.slots[slot.0 as usize] {
            Some(queue) => queue,
            None => unreachable!("no queue at {slot:?}"),
        }
    }
}
