//! Lets the turns of a queue decide which of its tasks goes next, and tells them what becomes of
//! the tasks.
//!
//! The rules are in `memory/turns.rs`. A queue without turns has none of this. One with turns has a
//! gate, whatever its limits, so that a look at the gate is enough where both matter.

use std::num::NonZeroU32;

use crate::engine::Engine;
use crate::memory::consumers::{ConsumerId, TakerId};
use crate::memory::indexes::Indexes;
use crate::memory::packed::Task;
use crate::memory::queues::{Followers, Queue};
use crate::memory::ranked::Rank;
use crate::memory::slots::{KeyHash, QueueSlot, Slot};
use crate::memory::tasks::Tasks;
use crate::memory::turns::{
    Candidate, Charge, Entrant, Fullness, HeldBack, OwnRules, Roster, Rules, SharesRules, Turns,
};
use crate::operations::ageing::usual_ageing;
use crate::operations::arguments::{bad, quoted};
use pinpriq_proto::carried::QueueBucket;
use pinpriq_proto::command::{End, Order, QueueName, Selection};
use pinpriq_proto::limits::LOOKED_STEPS_MAX;
use pinpriq_proto::reply::{Refusal, RefusalKind, Reply};
use pinpriq_proto::settings::{Ranking, Settings};
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::{Span, Timestamp};

/// The most tasks of a queue whose ranking may change in kind, which is one step.
const RANKED_ANEW_MAX: u64 = 100_000;

/// What a queue with turns has charged.
#[derive(Debug)]
pub(crate) struct Charged {
    queue: QueueSlot,
    epoch: u32,
    charge: Charge,
}

/// The tasks of one queue.
struct TasksOf<'e> {
    tasks: &'e Tasks,
    indexes: &'e Indexes,
    shares: Option<&'e SharesRules>,
    /// How they usually age, if they do.
    ageing: Option<Span>,
}

impl<'e> TasksOf<'e> {
    /// The tasks of a queue with these parts.
    fn of(
        tasks: &'e Tasks,
        indexes: &'e Indexes,
        shares: Option<&'e SharesRules>,
        settings: &Settings,
    ) -> Self {
        Self { tasks, indexes, shares, ageing: usual_ageing(settings) }
    }
}

impl Roster for TasksOf<'_> {
    fn entrant(&self, slot: Slot) -> Entrant<'_> {
        entrant(&self.tasks[slot], self.ageing)
    }

    fn seq(&self, slot: Slot) -> u64 {
        self.tasks[slot].seq()
    }

    #[inline]
    fn candidate(&self, slot: Slot) -> Option<Candidate<'_>> {
        let task = &self.tasks[slot];
        let (number, share) = number_and_share(task);
        let number = number.filter(|_| task.kind() == StateKind::Ready)?;
        Some(Candidate { number, seq: task.seq(), share, cost: cost_of(task) })
    }

    fn first(&self) -> Option<Slot> {
        self.indexes.first(Selection::DEFAULT)
    }

    fn after(&self, place: Rank) -> Option<(Rank, Slot)> {
        self.indexes.after(place)
    }

    fn first_of_key(&self, key: &[u8]) -> Option<Slot> {
        self.indexes.first_of_key(key, self.tasks)
    }

    fn all_of_key<'r>(&'r self, key: &'r Bytes) -> impl Iterator<Item = Slot> + 'r {
        self.indexes.all_of_key(key, self.tasks)
    }

    fn own_rules(&self, share: &[u8]) -> Option<OwnRules> {
        self.shares.and_then(|shares| shares.get(share)).copied()
    }

    fn hash(&self, name: &[u8]) -> KeyHash {
        self.tasks.hash_key(name)
    }
}

/// The rules that settings give a queue. Shares may have rules of their own that hold tasks back.
fn rules_of(settings: &Settings, shares_hold_back: bool) -> Rules {
    let Settings { key_hold, key_limit, key_rate, share_limit, share_rate, .. } = *settings;
    let is_by_key = key_hold
        || key_limit.is_some()
        || key_rate.is_some()
        || share_limit.is_some()
        || share_rate.is_some()
        || shares_hold_back;
    let (is_fair, ages) = (settings.ranking == Ranking::Fair, settings.age());
    Rules { is_fair, ages, is_by_key, key_hold, key_limit, key_rate, share_limit, share_rate }
}

/// The number by which turns rank a task that does not age, and the share that it belongs to.
#[inline]
fn number_and_share(task: &Task) -> (Option<i64>, Option<&Bytes>) {
    (task.priority(), task.share().or_else(|| task.key()))
}

#[inline]
fn cost_of(task: &Task) -> NonZeroU32 {
    NonZeroU32::new(task.cost()).unwrap_or(NonZeroU32::MIN)
}

/// What turns need to know of a task, whose like usually ages so.
fn entrant(task: &Task, ageing: Option<Span>) -> Entrant<'_> {
    let number = task.priority();
    Entrant {
        seq: task.seq(),
        number: if ageing.is_none() { number } else { number.map(|_| 0) },
        rank: ageing.and_then(|ageing| task.aged_rank(ageing)).unwrap_or_default(),
        kind: task.kind(),
        key: task.key(),
        share: task.share(),
        cost: cost_of(task),
        is_held: task.is_held(),
        is_narrow: task.is_narrow(),
    }
}

impl Engine {
    /// Makes a queue hold its tasks back, and rank them, as its settings say.
    pub(crate) fn apply_settings(&mut self, slot: QueueSlot) {
        let queue = &self.queues[slot];
        let rules = rules_of(&queue.settings, self.shares_holding(slot) > 0);
        if rules.fix_order() && !self.fixes_order(slot) {
            self.refuse_other_orders(slot);
        }
        if rules.ages {
            self.begin_to_age(slot);
        }
        self.rank_unstarted(slot);
        self.set_rules(slot, rules);
        self.count_shares(slot);
    }

    /// Refuses settings that rank the tasks of a queue in another way, if there are too many.
    pub(crate) fn check_ranking(&self, slot: QueueSlot, new: &Settings) -> Result<(), Refusal> {
        let hold_back = self.shares_holding(slot) > 0;
        self.check_rules(slot, &rules_of(new, hold_back))?;
        let queue = &self.queues[slot];
        let tasks = queue.counters.in_any_state();
        let counts = queue.settings.share_capacity.is_none() && new.share_capacity.is_some();
        if !counts || tasks <= RANKED_ANEW_MAX {
            return Ok(());
        }
        let sentence = format!(
            "{} has {tasks} tasks, and at most {RANKED_ANEW_MAX} can be counted for their shares: \
             MOVE them to a queue that is set so",
            quoted(&queue.name)
        );
        Err(Refusal::new(RefusalKind::WrongState, sentence))
    }

    /// The same for rules of shares, of which some may hold tasks back then.
    pub(crate) fn check_own_rules(&self, slot: QueueSlot, hold_back: bool) -> Result<(), Refusal> {
        self.check_rules(slot, &rules_of(&self.queues[slot].settings, hold_back))
    }

    /// How many shares of a queue have rules of their own that may hold tasks back.
    pub(crate) fn shares_holding(&self, slot: QueueSlot) -> u64 {
        let queue = &self.queues[slot];
        if queue.shares.is_none() { 0 } else { self.own_shares.counted_of(&queue.name) }
    }

    fn check_rules(&self, slot: QueueSlot, new: &Rules) -> Result<(), Refusal> {
        let queue = &self.queues[slot];
        let former = rules_of(&queue.settings, self.shares_holding(slot) > 0);
        let tasks = queue.counters.in_any_state();
        if tasks <= RANKED_ANEW_MAX || !former.differ_in_kind(new) {
            return Ok(());
        }
        let sentence = format!(
            "{} has {tasks} tasks, and at most {RANKED_ANEW_MAX} can be ranked in another way: \
             MOVE them to a queue that is set so",
            quoted(&queue.name)
        );
        Err(Refusal::new(RefusalKind::WrongState, sentence))
    }

    /// Refuses an order of a request where one of these queues has one of its own, before anything
    /// is done with the others. The pinpriq door, which always asks for another one, gets that of
    /// the queue.
    #[inline]
    pub(crate) fn check_order(
        &mut self,
        names: &[&[u8]],
        member: Option<&[u8]>,
        asked: Selection,
    ) -> Result<(), Refusal> {
        let Selection { from, order, group, narrow } = asked;
        let is_usual = from == End::Min && order == Order::Oldest && !group || narrow;
        if is_usual { Ok(()) } else { self.check_unusual_order(names, member) }
    }

    #[inline(never)]
    fn check_unusual_order(
        &mut self,
        names: &[&[u8]],
        member: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        for name in names {
            let queue = self.find_queue(QueueName { name, member })?;
            if let Some(queue) = queue.filter(|queue| self.fixes_order(*queue)) {
                return Err(self.other_order(queue));
            }
        }
        Ok(())
    }

    #[cold]
    fn other_order(&self, queue: QueueSlot) -> Refusal {
        bad(format!(
            "the queue {} has turns or limits by key, which FROM MAX, ORDER NEWEST and GROUP \
             contradict: leave them out",
            quoted(&self.queues[queue].name)
        ))
    }

    /// Ends the waits of those who want another order than a queue is about to have.
    fn refuse_other_orders(&mut self, queue: QueueSlot) {
        let takers = self.queues[queue].waiting.any.values().filter_map(|id| match id {
            ConsumerId::Taker(id) => Some(*id),
            ConsumerId::Subscriber(_) | ConsumerId::Recaller => None,
        });
        let wants_other = |id: &TakerId| {
            let taker = self.consumers.takers.get(id);
            taker.is_some_and(|taker| taker.selection != Selection::DEFAULT)
        };
        for id in takers.filter(wants_other).collect::<Vec<_>>() {
            let refusal = self.other_order(queue);
            if let Some(taker) = self.remove_taker(id) {
                self.reply(taker.client, taker.request, Reply::Refused(refusal));
            }
        }
    }

    /// Gives a queue these rules. Costs O(n log n) if it had none before or if they differ in kind.
    pub(crate) fn set_rules(&mut self, slot: QueueSlot, rules: Rules) {
        let queue = &mut self.queues[slot];
        let shares = queue.shares.as_deref();
        let roster = TasksOf::of(&self.tasks, &queue.indexes, shares, &queue.settings);
        self.buckets -= queue.turns.as_ref().map_or(0, |turns| turns.buckets());
        match &mut queue.turns {
            turns if !rules.ask_for_turns() => *turns = None,
            Some(turns) if !turns.differ_in_kind(&rules) => {
                let taken = queue.indexes.resting(StateKind::Taken);
                turns.set_rules(rules, taken, &roster, self.now);
            }
            former => {
                let slots = queue.indexes.by_seq(0, None).map(|(_, slot)| slot);
                let turns = Turns::of(rules, former.as_deref(), slots, &roster, self.now);
                *former = Some(Box::new(turns));
            }
        }
        self.buckets += queue.turns.as_ref().map_or(0, |turns| turns.buckets());
        self.set_followed(slot);
    }

    /// Gives a share of a queue rules of its own. The ones that say nothing are forgotten. If they
    /// change whether the queue is by key, [`Self::set_rules`] has to follow.
    pub(crate) fn set_share_rules(&mut self, slot: QueueSlot, share: &Bytes, own: OwnRules) {
        let shares = self.queues[slot].shares.get_or_insert_default();
        if own == OwnRules::default() {
            shares.remove(share);
        } else {
            shares.insert(share.clone(), own);
        }
        self.queues[slot].shares.take_if(|shares| shares.is_empty());
        self.with_turns(slot, |turns, roster, now| turns.note_own_rules(share, roster, now));
        self.wake(slot);
    }

    /// Whether turns decide what goes next in a queue.
    #[inline]
    pub(crate) fn has_turns(&self, queue: QueueSlot) -> bool {
        self.queues[queue].turns.is_some()
    }

    /// Whether they decide that whatever order is asked for.
    #[inline]
    pub(crate) fn fixes_order(&self, queue: QueueSlot) -> bool {
        self.queues[queue].turns.as_ref().is_some_and(|turns| turns.fix_order())
    }

    /// Returns the task of a queue with turns that goes next.
    #[inline(never)]
    pub(crate) fn next_by_turns(&mut self, queue: QueueSlot, selection: Selection) -> Option<Slot> {
        self.with_turns(queue, |turns, roster, now| turns.first(selection, roster, now)).flatten()
    }

    /// Lets what has opened by now be seen, before a look at the turns of a queue.
    pub(crate) fn note_openings(&mut self, queue: QueueSlot) {
        if self.has_turns(queue) {
            self.next_by_turns(queue, Selection::DEFAULT);
        }
    }

    /// The task of a queue with turns that a take would return now, for a consumer of small
    /// payloads only if need be.
    pub(crate) fn next_there(&self, queue: QueueSlot, is_narrow: bool) -> Option<Slot> {
        if is_narrow {
            let selection = Selection { narrow: true, ..Selection::DEFAULT };
            return self.peek_turn(queue, selection).filter(|slot| !self.looks_gone(*slot));
        }
        let there = |tasks: &mut dyn Iterator<Item = Slot>| {
            tasks.take(LOOKED_STEPS_MAX).find(|slot| !self.looks_gone(*slot))
        };
        self.foresee(queue, None, there).flatten()
    }

    /// Looks at the tasks of a queue with turns, in the order in which they go. The key and share
    /// of `freed` may go, whatever holds them.
    pub(crate) fn foresee<T>(
        &self,
        queue: QueueSlot,
        freed: Option<Slot>,
        look: impl FnOnce(&mut dyn Iterator<Item = Slot>) -> T,
    ) -> Option<T> {
        let queue = &self.queues[queue];
        let turns = queue.turns.as_ref()?;
        let shares = queue.shares.as_deref();
        let roster = TasksOf::of(&self.tasks, &queue.indexes, shares, &queue.settings);
        let is_gone = |slot: Slot| self.looks_gone(slot);
        Some(look(&mut turns.forecast(freed, &roster, &is_gone)))
    }

    /// Everything that holds a ready task back besides its queue and the turns of others.
    pub(crate) fn held_back(&self, slot: Slot) -> Vec<HeldBack> {
        let queue = &self.queues[self.tasks[slot].queue];
        let shares = queue.shares.as_deref();
        let roster = TasksOf::of(&self.tasks, &queue.indexes, shares, &queue.settings);
        queue.turns.as_ref().map_or_else(Vec::new, |turns| turns.what_holds(slot, &roster))
    }

    /// Tells whatever follows its queue that a task has entered its state. That ends a step.
    #[inline]
    pub(crate) fn join_turns(&mut self, slot: Slot, is_ready: bool) {
        if is_ready || !self.end_departure(slot) {
            self.join_all_turns(slot);
        }
    }

    /// Ends the step in which a task was taken that had been counted out when it was charged, if
    /// this is one.
    #[inline]
    fn end_departure(&mut self, slot: Slot) -> bool {
        let queue = self.tasks[slot].queue;
        let owner = &mut self.queues[queue];
        let Some(turns) = owner.turns.as_mut().filter(|_| owner.followers == Followers::Turns)
        else {
            return false;
        };
        let has_departed = turns.end_departure(slot);
        if has_departed && !owner.waiting.is_empty() {
            self.wake(queue);
        }
        has_departed
    }

    #[inline(never)]
    fn join_all_turns(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let queue = &mut self.queues[task.queue];
        let is_joined = match &mut queue.turns {
            Some(turns) if queue.followers == Followers::Turns => has_joined(turns, slot, task),
            _ => false,
        };
        if !is_joined {
            self.join_followers(slot);
        } else if !queue.waiting.is_empty() {
            self.wake(task.queue);
        }
    }

    #[inline(never)]
    fn join_followers(&mut self, slot: Slot) {
        let queue = self.tasks[slot].queue;
        if let Some(counts) = &mut self.queues[queue].share_counts {
            counts.insert(&self.tasks[slot]);
        }
        if self.queues[queue].settings.age() {
            self.end_delay(slot);
        }
        let task = &self.tasks[slot];
        let turns = self.queues[queue].turns.as_mut();
        if !turns.is_none_or(|turns| has_joined(turns, slot, task)) {
            self.insert_into_turns(queue, slot);
        }
        if let Some(tallies) = &mut self.queues[queue].tallies {
            tallies.enter(slot, &self.tasks[slot]);
        }
        self.wake(queue);
    }

    #[inline(never)]
    fn insert_into_turns(&mut self, queue: QueueSlot, slot: Slot) {
        self.with_turns(queue, |turns, roster, now| {
            turns.insert(slot, roster, now);
            turns.conclude(roster);
        });
    }

    /// Ends a step. Another task of the queue may be able to go now.
    #[inline(never)]
    pub(crate) fn conclude_turns(&mut self, queue: QueueSlot) {
        if self.queues[queue].turns.as_mut().is_none_or(|turns| turns.end_quietly()) {
            return self.wake(queue);
        }
        self.conclude_changed_turns(queue);
    }

    #[inline(never)]
    fn conclude_changed_turns(&mut self, queue: QueueSlot) {
        self.with_turns(queue, |turns, roster, _| turns.conclude(roster));
        self.wake(queue);
    }

    /// Charges a task that is about to be handed out.
    #[inline(never)]
    pub(crate) fn charge_turn(&mut self, slot: Slot) {
        let task = &self.tasks[slot];
        let (queue, cost) = (task.queue, cost_of(task));
        let Queue { turns, indexes, shares, settings, .. } = &mut self.queues[queue];
        let is_done = |turns: &mut Box<Turns>| {
            let is_ready = task.kind() == StateKind::Ready;
            if is_ready && turns.is_calm() && turns.charge_sole(slot, number_and_share(task), cost)
            {
                return true;
            }
            let roster = TasksOf::of(&self.tasks, indexes, shares.as_deref(), settings);
            turns.charge_next(slot, cost, &roster)
        };
        if !turns.as_mut().is_none_or(is_done) {
            self.charge_turn_of(queue, slot);
        }
    }

    #[inline(never)]
    fn charge_turn_of(&mut self, queue: QueueSlot, slot: Slot) {
        self.with_turns(queue, |turns, roster, now| turns.charge(slot, roster, now));
        self.bound_buckets();
    }

    /// Forgets buckets of keys and shares that are as full as this one, or fuller: so many at most,
    /// and returns how many are left.
    pub(crate) fn forget_fullest_of(&mut self, queue: QueueSlot, last: Fullness, left: &mut usize) {
        self.with_turns(queue, |turns, roster, _| {
            while *left > 0 && turns.fullness().next().is_some_and(|fullest| fullest <= last) {
                turns.forget_fullest(roster);
                *left -= 1;
            }
        });
    }

    /// Lets the buckets of keys and shares begin empty, after a take-over.
    pub(crate) fn empty_turn_buckets(&mut self, queue: QueueSlot) {
        let own = self.queues[queue].shares.clone();
        self.with_turns(queue, |turns, roster, now| {
            turns.begin_empty(own.as_deref(), roster, now);
        });
    }

    /// Lets the buckets of keys and shares hold what they have held at a moment.
    pub(crate) fn fill_turn_buckets(
        &mut self,
        queue: QueueSlot,
        buckets: &[QueueBucket],
        at: Timestamp,
    ) {
        self.with_turns(queue, |turns, roster, now| turns.fill(buckets, at, roster, now));
    }

    /// What a task was charged, if its queue has turns. By the time that it is taken back, the task
    /// may be gone.
    #[inline]
    pub(crate) fn charged(&self, slot: Slot) -> Option<Charged> {
        let task = &self.tasks[slot];
        let (queue, epoch) = (task.queue, task.epoch);
        let ageing = usual_ageing(&self.queues[queue].settings);
        let charge = || entrant(task, ageing).charge();
        self.fixes_order(queue).then(|| Charged { queue, epoch, charge: charge() })
    }

    /// Takes back what a task was charged that did not arrive.
    pub(crate) fn uncharge_turn(&mut self, charged: Option<Charged>) {
        let Some(Charged { queue, epoch, charge }) = charged else { return };
        if self.queues.is_current(queue, epoch) {
            self.with_turns(queue, |turns, roster, now| turns.give_back(&charge, roster, now));
            self.wake(queue);
        }
    }

    /// Notes what a taken task did cost, instead of what it was put with.
    pub(crate) fn correct_turn(&mut self, slot: Slot, cost: u32) {
        let queue = self.tasks[slot].queue;
        let cost = NonZeroU32::new(cost).unwrap_or(NonZeroU32::MIN);
        self.with_turns(queue, |turns, roster, now| turns.correct(slot, cost, roster, now));
        self.bound_buckets();
    }

    /// When a key or share opens that holds tasks of a queue back.
    pub(crate) fn next_opening(&self, queue: QueueSlot) -> Option<Timestamp> {
        self.queues[queue].turns.as_ref().and_then(|turns| turns.next_opening())
    }

    /// Forgets the turns of all tasks of a queue that is emptied at once. Returns what they were.
    pub(crate) fn empty_turns(&mut self, queue: QueueSlot) -> Option<Box<Turns>> {
        self.with_turns(queue, |turns, roster, now| {
            let emptied = turns.emptied(roster, now);
            Box::new(std::mem::replace(turns, emptied))
        })
    }

    /// Begins to note what changes about the turns of a queue.
    pub(crate) fn note_turns(&mut self, queue: QueueSlot) {
        self.with_turns(queue, |turns, roster, now| turns.begin_notes(roster, now));
        if let Some(tallies) = &mut self.queues[queue].tallies {
            tallies.begin_notes();
        }
    }

    /// Ends the notes about the turns of a queue, whose tasks are what they were if `is_undone`.
    pub(crate) fn end_turn_notes(&mut self, queue: QueueSlot, is_undone: bool) {
        self.with_turns(
            queue,
            |turns, roster, now| {
                if is_undone { turns.undo(roster, now) } else { turns.end_notes() }
            },
        );
        if let Some(tallies) = &mut self.queues[queue].tallies {
            tallies.end_notes(is_undone);
        }
    }

    fn with_turns<R>(
        &mut self,
        queue: QueueSlot,
        act: impl FnOnce(&mut Turns, &TasksOf<'_>, Timestamp) -> R,
    ) -> Option<R> {
        let queue = &mut self.queues[queue];
        let Queue { turns, indexes, shares, settings, .. } = queue;
        let turns = turns.as_mut()?;
        let roster = TasksOf::of(&self.tasks, indexes, shares.as_deref(), settings);
        let former = turns.buckets();
        let result = act(turns, &roster, self.now);
        self.buckets = self.buckets + turns.buckets() - former;
        Some(result)
    }
}

/// Lets turns note a task that has entered its state. Returns whether that was all there is to do.
#[inline]
fn has_joined(turns: &mut Turns, slot: Slot, task: &Task) -> bool {
    if turns.end_departure(slot) {
        return true;
    }
    match task.kind() {
        StateKind::Ready => turns.is_calm() && turns.count_in(number_and_share(task)),
        kind => turns.ignore(kind),
    }
}

/// The same for a task that leaves its state, and is in the indexes still.
#[inline]
fn has_left(turns: &mut Turns, slot: Slot, task: &Task) -> bool {
    turns.has_departed(slot)
        || turns.ignore_former(task.kind())
        || (turns.is_calm() && turns.count_out(number_and_share(task)))
}

/// Tells whatever follows a queue that a task leaves its state. It is still in the indexes.
#[inline(never)]
pub(crate) fn leave_turns(
    queue: &mut Queue,
    slot: Slot,
    (tasks, now): (&Tasks, Timestamp),
    buckets: &mut usize,
) {
    if let Some(counts) = &mut queue.share_counts {
        counts.remove(&tasks[slot]);
    }
    if let Some(tallies) = &mut queue.tallies {
        tallies.leave(slot, &tasks[slot]);
    }
    let turns = queue.turns.as_mut();
    if !turns.is_none_or(|turns| has_left(turns, slot, &tasks[slot])) {
        remove_from_turns(queue, slot, (tasks, now), buckets);
    }
}

#[inline(never)]
fn remove_from_turns(
    queue: &mut Queue,
    slot: Slot,
    (tasks, now): (&Tasks, Timestamp),
    buckets: &mut usize,
) {
    let Some(turns) = &mut queue.turns else { return };
    let shares = queue.shares.as_deref();
    let former = turns.buckets();
    turns.remove(slot, &TasksOf::of(tasks, &queue.indexes, shares, &queue.settings), now);
    *buckets = *buckets + turns.buckets() - former;
}

/// For checks only.
impl Engine {
    /// Which task of a queue with turns goes next, if nothing has opened since the last look.
    pub(crate) fn peek_turn(&self, queue: QueueSlot, selection: Selection) -> Option<Slot> {
        let queue = &self.queues[queue];
        let shares = queue.shares.as_deref();
        let roster = TasksOf::of(&self.tasks, &queue.indexes, shares, &queue.settings);
        queue.turns.as_ref()?.peek(selection, &roster)
    }

    /// Checks that turns agree with the tasks.
    pub(crate) fn check_turns(&self) {
        let mut buckets = 0;
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            let Some(turns) = &queue.turns else { continue };
            assert!(queue.gate.is_some(), "a queue with turns has a gate");
            let shares = queue.shares.as_deref();
            let roster = TasksOf::of(&self.tasks, &queue.indexes, shares, &queue.settings);
            let slots = queue.indexes.by_seq(0, None).map(|(_, slot)| slot);
            turns.check(slots, &roster, self.now);
            buckets += turns.buckets();
            let opens_at = turns.next_opening();
            let armed = queue.gate.as_ref().and_then(|gate| gate.armed);
            let is_paused = queue.paused.output.is_on() || self.has_ended(slot);
            if is_paused || opens_at.is_none() {
                continue;
            }
            let has_none = turns.peek(Selection::DEFAULT, &roster).is_none();
            if has_none && !queue.waiting.any.is_empty() {
                assert_eq!(armed, opens_at, "the next opening is awaited");
            }
            if queue.waiting.unstarted.is_some() {
                // Even if there is a task: a more urgent one may be held back.
                assert!(armed.is_some() && armed <= opens_at, "a recall awaits the next opening");
            }
        }
        assert_eq!(buckets, self.buckets, "buckets add up");
    }
}

#[cfg(test)]
mod tests;
