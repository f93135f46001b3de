//! Every invariant of the engine, checked from scratch.
//!
//! Tests, simulations and fuzzing call this after each step. It costs O(n log n), so the server
//! does not.

mod batches;

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::fanout::membership::{lane_bytes, member_bytes};
use crate::memory::consumers::{Bond, Client, ConsumerId};
use crate::memory::deadlines::Due;
use crate::memory::packed::{Task, Unsaved};
use crate::memory::putters::putter_bytes;
use crate::memory::share_counts::ShareCounts;
use crate::memory::slots::{QueueSlot, Slot};
use crate::memory::unstarted::Unstarted;
use crate::operations::ageing::number_of;
use crate::operations::ids::parse_id;
use crate::operations::serve::subscription_bytes;
use crate::step::connection_lease;
use pinpriq_proto::command::{Selection, TakeMode};
use pinpriq_proto::limits::{WAIT_OVERHEAD_BYTES, queue_bytes};
use pinpriq_proto::settings::Ids;
use pinpriq_proto::shares::ShareRules;
use pinpriq_proto::stats::Counters;
use pinpriq_proto::task::{Lease, StateKind, TaskId, history};
use pinpriq_proto::unique::WindowRecord;

impl Engine {
    /// Checks that indexes, deadlines, figures and lines agree with the tasks, and that no consumer
    /// waits for a task that it could have.
    ///
    /// # Panics
    /// If the check fails. That is a bug in the engine.
    pub fn check(&self) {
        self.check_tasks();
        self.check_queues();
        self.check_deadlines();
        self.check_clients();
        self.check_members();
        self.check_schedules();
        self.check_unique_keys();
        self.check_turns();
        self.check_shares();
        self.check_tallies();
        self.check_limits();
        self.check_batches();
        for number in self.accounts.numbers() {
            let is_there = self.tasks.find(number).is_some() || self.batches.one(number).is_some();
            assert!(is_there, "what has an account, such as {number}, is there");
        }
        assert!(self.unserved.is_empty(), "every queue was served");
        assert!(!self.report.has_unsaved(), "everything was reported");
    }

    fn check_tasks(&self) {
        let mut bytes = self.bytes_besides_tasks();
        let mut sharers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut counted: BTreeMap<QueueSlot, ([u64; 6], u64)> = BTreeMap::new();
        let mut finished: BTreeMap<QueueSlot, u64> = BTreeMap::new();
        let mut dead = 0;
        let mut payloads = 0;
        for slot in self.tasks.slots() {
            payloads += usize::from(self.tasks.payload(slot).is_some());
            let task = &self.tasks[slot];
            let number = task.number();
            assert_eq!(self.tasks.find(number), Some(slot), "task {number} is found by number");
            assert!(
                number <= self.issued.last() && task.seq() <= self.issued.last(),
                "numbers grow"
            );
            assert!(
                task.is_recorded() && task.unsaved() == Unsaved::Nothing,
                "task {number} is reported"
            );
            bytes += task.own_bytes() + pinpriq_proto::limits::TASK_OVERHEAD_BYTES;
            if task.shares() {
                let Some((first, published)) = self.publications.shared_by(number) else {
                    unreachable!("task {number} is a copy of nothing")
                };
                assert_eq!(
                    self.tasks.payload(slot),
                    Some(&*published.record.payload),
                    "task {number} shares a payload"
                );
                assert_eq!(task.terms(), published.record.terms, "task {number} shares terms");
                *sharers.entry(first).or_default() += 1;
            }
            if !self.queues.is_current(task.queue, task.epoch) {
                dead += 1;
                continue;
            }
            if !self.has_ended(task.queue) {
                assert_eq!(
                    task.armed(),
                    task.due(),
                    "task {number} is armed for its next deadline"
                );
            }
            let (counts, content) = counted.entry(task.queue).or_default();
            counts[task.kind() as usize] += 1;
            *content += task.content_bytes();
            if task.kind().is_finished() {
                *finished.entry(task.queue).or_default() += task.content_bytes();
            }
            self.check_task(slot);
        }
        assert_eq!(bytes, self.bytes, "the bytes of all that is kept add up");
        assert_eq!(payloads, self.tasks.payloads_kept(), "every payload is some task's");
        let discarded: u64 = self.discarded.iter().map(|discarded| discarded.remaining).sum();
        assert_eq!(dead, discarded, "only tasks of emptied queues are dead");
        for (first, published) in self.publications.iter() {
            let known = sharers.get(&first).copied().unwrap_or(0);
            assert_eq!(published.sharers, known, "the sharers of publication {first} are counted");
            assert!(known > 0, "publication {first} is needed");
        }
        for queue in self.queues.slots() {
            let finished = finished.get(&queue).copied().unwrap_or(0);
            let known = self.queues[queue].finished_bytes;
            assert_eq!(finished, known, "the bytes of the finished tasks of a queue are right");
        }
        for (queue, (counts, content)) in counted {
            let counters = &self.queues[queue].counters;
            assert_eq!(counts, counters.counts, "the counts of a queue are right");
            assert_eq!(content, counters.bytes, "the bytes of a queue are right");
        }
    }

    fn check_task(&self, slot: Slot) {
        let task = &self.tasks[slot];
        let number = task.number();
        let is_taken = task.kind() == StateKind::Taken;
        assert!(
            is_taken || task.cancelled().is_none(),
            "task {number} is cancelled, so it is taken"
        );
        assert!(
            is_taken || task.progress_text().is_none(),
            "task {number} tells its progress, so it is taken"
        );
        assert!(
            task.result().is_none() || task.kind().is_finished(),
            "task {number} has a result, so it is finished"
        );
        let attempts = task.history().map_or(&[][..], |attempts| attempts);
        let are_over = history::ended(attempts).iter().all(|attempt| attempt.end.is_some());
        assert!(are_over, "only the last attempt of task {number} may be under way");
        assert!(
            is_taken || !task.has_open_attempt(),
            "an attempt of task {number} is under way, so it is taken"
        );
        assert!(
            task.history().is_none_or(|attempts| !attempts.is_empty()),
            "the history of task {number} says something"
        );
        assert!(
            task.checkpoint().is_none_or(|checkpoint| !checkpoint.is_empty()),
            "the checkpoint of task {number} says something"
        );
        let queue = &self.queues[task.queue];
        if queue.settings.ids == Ids::Sequence {
            let is_number = task.id() == TaskId::Number(number);
            assert!(is_number, "task {number} has the id {}", task.id());
        } else {
            let found = queue.indexes.find_id(&task.id());
            assert_eq!(found, Some(slot), "task {number} is found by its id {}", task.id());
        }
        if queue.settings.ids != Ids::Given {
            let text = task.id().to_string();
            let parsed = parse_id(queue.settings.ids, text.as_bytes());
            assert_eq!(parsed.as_ref(), Some(&task.id()), "the id {text} has a text");
        }
    }

    fn check_queues(&self) {
        let (mut kept, mut subscriptions, mut existing, mut paused) = (0, 0, 0, 0);
        let mut lingering = 0;
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            let name = queue.name.escape_ascii();
            kept += queue.counters.in_any_state();
            subscriptions += queue.subscribers.len() as u64;
            existing += u64::from(queue.lane.is_none() && queue.exists());
            paused += u64::from(queue.paused.any());
            queue.indexes.check(&self.tasks, queue.counters.in_any_state());
            check_balance(&queue.counters, &name.to_string());
            let in_line = self.consumers.putters.count_of(slot);
            assert_eq!(queue.pins as usize, in_line, "queue {name} stays for puts that wait");
            self.check_line(slot);
            let tasks = queue.indexes.by_seq(0, None).map(|(_, slot)| &self.tasks[slot]);
            let counts = queue.settings.share_capacity.map(|_| ShareCounts::of(tasks));
            assert_eq!(queue.share_counts.as_deref(), counts.as_ref(), "{name}: shares add up");
            let followers = queue.current_followers();
            assert_eq!(queue.followers, followers, "what becomes of tasks of {name} is noted");
            assert!(!queue.to_be_served, "queue {name} was served");
            let waited_for = !queue.subscribers.is_empty() || !queue.waiting.is_empty();
            let lingers = queue.lingers.is_some_and(|it| self.queues.lingering.holds(it, slot));
            assert_eq!(lingers, queue.lingers.is_some(), "queue {name} lingers");
            lingering += usize::from(lingers);
            assert!(!lingers || !queue.exists(), "queue {name} has ended if it lingers");
            let is_needed = queue.exists() || waited_for || lingers;
            assert!(is_needed, "queue {name} has a reason to be there");
            assert_eq!(
                queue.recorded,
                queue.lane.is_some() || queue.created || queue.paused.any(),
                "queue {name} is known to the store if and only if it must be"
            );
            if !queue.paused.output.is_on() && !self.has_ended(slot) && !self.is_held_back(slot) {
                let idle = !self.is_wanted(slot);
                assert!(idle, "no consumer waits for queue {name} while it has tasks for it");
            }
        }
        self.queues.slots().into_iter().for_each(|slot| self.check_unstarted(slot));
        self.check_dead_letters();
        assert_eq!(kept, self.totals.in_any_state(), "the tasks of all queues add up");
        assert_eq!(subscriptions, self.consumers.subscriptions, "subscriptions add up");
        assert_eq!(existing, self.queues.existing(), "queues add up");
        assert_eq!(lingering, self.queues.lingering.len(), "queues that linger add up");
        assert_eq!(paused, self.queues.paused(), "pauses add up");
        check_balance(&self.totals, "all queues");
    }

    /// No task is more urgent than one that was delivered and not started, and that could be called
    /// back for it.
    fn check_unstarted(&self, slot: QueueSlot) {
        let queue = &self.queues[slot];
        let taken = queue.indexes.resting(StateKind::Taken).map(|task| &self.tasks[task]);
        let deliveries: Vec<&Task> =
            taken.filter(|task| task.lease().is_some_and(Lease::is_unstarted)).collect();
        let known = queue.waiting.unstarted.as_deref();
        assert_eq!(known.map_or(0, Unstarted::count), deliveries.len(), "{slot:?}");
        let Some(known) = known else { return };
        let is_known = |task: &&Task| known.has(task, number_of(&queue.settings, task));
        assert!(deliveries.iter().all(is_known), "{slot:?} knows what is unstarted");
        let is_idle = queue.paused.output.is_on() || self.has_ended(slot);
        if is_idle || !self.can_hand_out(TakeMode::Lease { ttr: None }) {
            return;
        }
        let next = if self.fixes_order(slot) {
            self.peek_turn(slot, Selection::DEFAULT)
        } else {
            queue.walk(Selection::DEFAULT).find(|task| !self.tasks[*task].is_expired(self.now))
        };
        let number = next.and_then(|task| number_of(&queue.settings, &self.tasks[task]));
        let behind = number.and_then(|number| known.last_behind(number));
        assert_eq!(behind, None, "a delivery of {slot:?} is to be called back");
    }

    fn check_dead_letters(&self) {
        let mut expected = BTreeMap::new();
        for slot in self.queues.slots() {
            if let Some(name) = &self.queues[slot].settings.dead_letter {
                *expected.entry(name.clone()).or_insert(0) += 1;
            }
        }
        assert_eq!(expected, *self.queues.dead_letters(), "queues for dead letters add up");
    }

    /// The first put that waits for room in a queue has none.
    fn check_line(&self, slot: QueueSlot) {
        let mut line = self.consumers.putters.iter().filter(|(_, putter)| putter.queue == slot);
        let Some((id, first)) = line.next() else { return };
        assert!(self.consumers.clients[&first.client].putters.contains(&id), "{id:?} has a client");
        let (put, queue) = (first.put.put(), &self.queues[slot]);
        let content = put.payload.len() + put.terms.key_bytes();
        let goes_on = self.consumers.putters.have_vacancies();
        let waits = queue.paused.input.is_on() || goes_on || self.is_full_for(slot, content as u64);
        assert!(waits, "{id:?} does not wait while there is room");
    }

    /// Whether the limits of a queue hold its tasks back. A token for which consumers wait must be
    /// awaited, unless a take by number has reached the limit since. Then the end of a lease, which
    /// is awaited too, comes first. Who can have no task anyway, since the store has no room for a
    /// lease or only large tasks are there, waits for something else, and no token.
    fn is_held_back(&self, slot: QueueSlot) -> bool {
        let Some(gate) = &self.queues[slot].gate else { return false };
        let seen = self.seen(slot);
        let opens_at = gate.opens_at(seen);
        let is_armed = gate.armed.is_some_and(|armed| opens_at.is_some_and(|at| armed <= at));
        let is_awaited = opens_at.is_none() || is_armed || !self.is_wanted(slot);
        let is_shut =
            opens_at.is_none_or(|at| at > self.now) && !gate.has_room_without_tokens(seen);
        assert!(!is_shut || is_awaited, "the token of {slot:?} is awaited");
        is_shut
    }

    /// Whether a queue has a task for a consumer that waits, whatever its limits say.
    fn is_wanted(&self, slot: QueueSlot) -> bool {
        let waiting = &self.queues[slot].waiting;
        let can_be_served = |consumer: &ConsumerId| self.can_be_served(slot, consumer);
        let any = || waiting.any.values().any(can_be_served);
        let narrow = || waiting.narrow.values().any(can_be_served);
        (any() && self.has_live(slot, false)) || (narrow() && self.has_live(slot, true))
    }

    /// Whether there is room for what this consumer wants.
    fn can_be_served(&self, slot: QueueSlot, consumer: &ConsumerId) -> bool {
        let mode = match consumer {
            ConsumerId::Taker(taker) => self.consumers.takers[taker].mode,
            ConsumerId::Subscriber(id) => self.consumers.clients[id].subscriptions[&slot].mode,
            ConsumerId::Recaller => unreachable!("{slot:?} has it in line"),
        };
        self.can_hand_out(mode)
    }

    fn has_live(&self, queue: QueueSlot, narrow: bool) -> bool {
        let selection = Selection { narrow, ..Selection::DEFAULT };
        if self.fixes_order(queue) {
            let next = self.peek_turn(queue, selection);
            return next.is_some_and(|slot| !self.tasks[slot].is_expired(self.now));
        }
        self.queues[queue].walk(selection).any(|slot| !self.tasks[slot].is_expired(self.now))
    }

    fn check_deadlines(&self) {
        let mut expected = 0;
        for slot in self.tasks.slots() {
            let task = &self.tasks[slot];
            if let Some(at) = task.armed() {
                let due = Due::Task(task.number());
                assert!(self.deadlines.contains(at, due), "{due:?} stands at {at}");
                expected += 1;
            }
        }
        for (id, taker) in &self.consumers.takers {
            if let Some(at) = taker.until {
                assert!(self.deadlines.contains(at, Due::Taker(*id)), "{id:?} stands at {at}");
                expected += 1;
            }
        }
        for (id, awaiter) in &self.consumers.awaiters {
            if let Some(at) = awaiter.until {
                assert!(self.deadlines.contains(at, Due::Awaiter(*id)), "{id:?} stands at {at}");
                expected += 1;
            }
        }
        for (id, putter) in self.consumers.putters.iter() {
            let due = Due::Putter(id);
            assert!(self.deadlines.contains(putter.until, due), "{due:?} stands");
            expected += 1;
        }
        for (incarnation, member) in &self.members.registered {
            if let Some(at) = member.armed {
                let due = Due::Member(*incarnation);
                assert!(self.deadlines.contains(at, due), "{due:?} stands at {at}");
                expected += 1;
            }
        }
        for slot in self.queues.slots() {
            if let Some(at) = self.queues[slot].paused.next_end() {
                let due = Due::Pause(slot);
                assert!(self.deadlines.contains(at, due), "{due:?} stands at {at}");
                expected += 1;
            }
        }
        for (number, schedule) in self.schedules.iter() {
            if let Some(at) = schedule.armed {
                let due = Due::Schedule(number);
                assert!(self.deadlines.contains(at, due), "{due:?} stands at {at}");
                expected += 1;
            }
        }
        for window in self.windows.iter() {
            let WindowRecord { number, until, .. } = window.record;
            assert!(self.deadlines.contains(until, Due::Window(number)), "a window ends");
            expected += 1;
        }
        expected += self.batches.iter().filter(|batch| batch.armed.is_some()).count();
        assert_eq!(self.deadlines.len(), expected, "no deadline stands for nothing");
        let mut tokens = 0;
        for slot in self.queues.slots() {
            if let Some(at) = self.queues[slot].gate.as_ref().and_then(|gate| gate.armed) {
                assert!(self.deadlines.has_queue(at, slot), "{slot:?} gets a token at {at}");
                tokens += 1;
            }
        }
        assert_eq!(self.deadlines.queues(), tokens, "no token is awaited for nothing");
    }

    fn check_clients(&self) {
        let mut in_line: usize = 0;
        for (id, client) in &self.consumers.clients {
            assert!(!client.is_idle(), "{id:?} is remembered for a reason");
            for (queue, known) in &client.subscriptions {
                assert_eq!(
                    known.ticket.is_some(),
                    client.credit > 0,
                    "{id:?} is in line by credit"
                );
                if let Some(ticket) = known.ticket {
                    let waiting = &self.queues[*queue].waiting;
                    let side = if known.selection.narrow { &waiting.narrow } else { &waiting.any };
                    assert_eq!(side.get(&ticket), Some(&ConsumerId::Subscriber(*id)), "{id:?}");
                    in_line += 1;
                }
            }
            for (number, bond) in bonds(client) {
                let slot = self.tasks.find(number);
                let lease = slot.and_then(|slot| connection_lease(&self.tasks[slot]));
                assert_eq!(lease, Some((*id, bond)), "{id:?} holds task {number}");
            }
            for taker in &client.takers {
                assert_eq!(self.consumers.takers[taker].client, *id, "{taker:?} has its client");
            }
        }
        for (id, taker) in &self.consumers.takers {
            for queue in &taker.queues {
                let waiting = &self.queues[*queue].waiting;
                let side = if taker.selection.narrow { &waiting.narrow } else { &waiting.any };
                assert_eq!(side.get(&taker.ticket), Some(&ConsumerId::Taker(*id)), "{id:?}");
                in_line += 1;
            }
        }
        let lines = self.queues.slots().into_iter().map(|slot| {
            let waiting = &self.queues[slot].waiting;
            waiting.any.len() + waiting.narrow.len()
        });
        assert_eq!(lines.sum::<usize>(), in_line, "no unknown waiter is in line");
        let takers = self.consumers.takers.values().map(|taker| self.taker_bytes(&taker.queues));
        let subscriptions = self.consumers.clients.values().flat_map(|client| {
            client.subscriptions.keys().map(|slot| subscription_bytes(&self.queues[*slot].name))
        });
        let awaiters = self.consumers.awaiters.values().map(|_| WAIT_OVERHEAD_BYTES);
        let putters = self.consumers.putters.iter().map(|(_, it)| putter_bytes(&it.put.put()));
        let waiting: u64 = takers.chain(subscriptions).chain(awaiters).chain(putters).sum();
        assert_eq!(waiting, self.consumers.bytes, "the bytes of all who wait add up");
        assert_eq!(self.consumers.awaited.len(), self.consumers.awaiters.len(), "awaiters agree");
        let watchers = self.consumers.awaiters.len() + self.consumers.putters.len();
        assert_eq!(self.consumers.watchers, watchers, "those who watch are counted");
        let echoes = self.consumers.takers.values().filter(|taker| taker.standing.is_echo).count();
        assert_eq!(self.consumers.echoes, echoes as u64, "echoes are counted");
        let live = |number: &u64| self.live(*number).is_some();
        let leases = self.consumers.clients.values().flat_map(bonds).map(|(number, _)| number);
        let held = self.tasks.slots().map(|slot| &self.tasks[slot]).filter(|task| {
            let depends =
                |lease: &Lease| lease.deadline.is_none() || lease.is_tied() || lease.is_unstarted();
            task.lease().is_some_and(depends) && live(&task.number())
        });
        let leases = leases.filter(live).count();
        assert_eq!(leases, held.count(), "every lease without a deadline has a holder");
    }
}

impl Engine {
    /// Every lane has a registered member, and members, topics and lanes agree.
    fn check_members(&self) {
        let mut lanes = 0;
        for (incarnation, member) in &self.members.registered {
            let is_alive = self.members.alive.get(&member.name) == Some(incarnation);
            assert_eq!(is_alive, !member.has_ended, "incarnation {incarnation} is alive or ended");
            let is_ended = self.members.ended.contains(incarnation);
            assert_eq!(is_ended, member.has_ended, "incarnation {incarnation} is to be cleaned");
            let armed = member.armed.is_some_and(|armed| armed <= member.lease_until);
            assert_eq!(armed, is_alive, "incarnation {incarnation} ends by its lease");
            for (topic, slot) in &member.lanes {
                let queue = &self.queues[*slot];
                let Some(lane) = &queue.lane else { unreachable!("a lane at {slot:?}") };
                let number = lane.name.number;
                assert_eq!((&queue.name, lane.incarnation), (topic, *incarnation), "{number}");
                assert_eq!(lane.name.member, member.name, "lane {number} names its member");
                assert_eq!(self.queues.find_lane(number), Some(*slot), "lane {number} is found");
                assert_eq!(self.members.topics[topic].get(&number), Some(slot), "{number}");
                lanes += 1;
            }
        }
        assert_eq!(self.queues.lane_slots().len(), lanes, "every lane has a member");
        let in_topics: usize = self.members.topics.values().map(BTreeMap::len).sum();
        assert_eq!(in_topics, lanes, "every lane is in its topic");
        assert_eq!(self.members.alive.len() + self.members.ended.len(), {
            self.members.registered.len()
        });
    }

    /// Every schedule is due at its next slot, and names are unique.
    fn check_schedules(&self) {
        let mut names = 0;
        for (number, schedule) in self.schedules.iter() {
            let name = schedule.name.escape_ascii();
            assert!(number <= self.issued.last(), "numbers grow");
            assert_eq!(self.schedules.find(&schedule.name), Some(number), "{name} is found");
            assert!(self.schedules.is_found_by_queue(schedule), "{name} is found by its queue");
            let next = self.due_at(schedule).filter(|_| !schedule.course.paused);
            assert_eq!(schedule.armed, next, "the schedule {name} is due at its next slot");
            names += 1;
        }
        assert_eq!(self.schedules.names().count(), names, "every name is that of a schedule");
        assert_eq!(self.schedules.count_by_queue(), names, "every queue has its schedules");
    }

    /// Every unfinished task with a unique key holds it, and every window knows whether its task
    /// does.
    fn check_unique_keys(&self) {
        let mut held: BTreeMap<QueueSlot, usize> = BTreeMap::new();
        for slot in self.tasks.slots() {
            let task = &self.tasks[slot];
            if self.live(task.number()).is_none() || !task.holds_its_key() {
                continue;
            }
            let Some(key) = task.unique_key() else { continue };
            let holder = self.queues[task.queue].indexes.holder(key);
            assert_eq!(holder, Some(slot), "task {} holds its key", task.number());
            *held.entry(task.queue).or_default() += 1;
        }
        for queue in self.queues.slots() {
            let known = self.queues[queue].indexes.keys_held();
            assert_eq!(held.get(&queue).copied().unwrap_or(0), known, "held keys have holders");
        }
        let mut outliving = 0;
        for window in self.windows.iter() {
            let WindowRecord { number, ref queue, ref key, .. } = window.record;
            let known = self.windows.find(queue, key).map(|known| known.record.number);
            assert_eq!(known, Some(number), "the window {number} is found");
            let task = self.live(number).map(|slot| &self.tasks[slot]);
            let held =
                task.is_some_and(|task| task.holds_its_key() && task.unique_key() == Some(key));
            assert_eq!(window.held, held, "the window {number} knows whether its task is there");
            outliving += u64::from(!held);
        }
        assert_eq!(self.windows.counted(), outliving, "windows without their task are counted");
    }

    /// The rules of shares are those that turns go by, and no queue without settings has some.
    fn check_shares(&self) {
        let mut known = 0;
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            for (share, rules) in queue.shares.iter().flat_map(|shares| shares.iter()) {
                let own = self.own_shares.find(&queue.name, share).map(|own| own.record.rules);
                assert_eq!(own, Some(*rules), "the rules of a share are kept");
                assert_ne!(own, Some(ShareRules::default()), "the usual rules are not kept");
                assert!(queue.created && queue.lane.is_none(), "its queue has settings");
                known += 1;
            }
        }
        assert_eq!(self.own_shares.iter().count(), known, "rules of shares have a queue");
    }

    /// Each limit knows its queues, and how many of their tasks are taken.
    fn check_limits(&self) {
        let mut expected: BTreeMap<u64, (u64, BTreeSet<QueueSlot>)> = BTreeMap::new();
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            let uses = self.named_limits.used(queue.settings.uses.as_ref());
            let gate = queue.gate.as_ref();
            assert_eq!(gate.map(|gate| gate.uses).unwrap_or_default(), uses, "a gate has limits");
            let taken = queue.counters.count(StateKind::Taken);
            for number in uses.numbers() {
                assert_eq!(gate.map(|gate| gate.counted), Some(taken), "what is taken is counted");
                let (sum, queues) = expected.entry(number).or_default();
                *sum += taken;
                queues.insert(slot);
            }
        }
        for limit in self.named_limits.iter() {
            let number = limit.record.number;
            let known = self.named_limits.called(&limit.record.name).map(|it| it.record.number);
            assert_eq!(known, Some(number), "it has a name");
            let (taken, queues) = expected.remove(&number).unwrap_or_default();
            assert_eq!(limit.taken(), taken, "the limit {number} counts what is taken");
            assert_eq!(limit.queues, queues, "the limit {number} knows its queues");
            assert!(limit.starved.is_subset(&queues), "the limit {number} serves its queues");
        }
        assert!(expected.is_empty(), "what is used is there");
    }

    /// The number of bytes that everything but tasks occupies.
    fn bytes_besides_tasks(&self) -> u64 {
        let schedules = self.schedules.iter().map(|(_, schedule)| schedule.bytes());
        let windows = self.windows.iter().map(|window| window.record.bytes());
        let shares = self.own_shares.iter().map(|own| own.record.bytes());
        let limits = self.named_limits.iter().map(|limit| limit.record.bytes());
        let others = schedules.chain(windows).chain(shares).chain(limits).sum::<u64>();
        self.queue_bytes() + self.fan_out_bytes() + self.batch_bytes() + others
    }

    /// The number of bytes that queues occupy.
    fn queue_bytes(&self) -> u64 {
        let mut bytes = 0;
        for slot in self.queues.slots() {
            let queue = &self.queues[slot];
            assert_eq!(queue.counted, queue.exists(), "a queue counts while it exists");
            if queue.exists() && queue.lane.is_none() {
                bytes += queue_bytes(queue.name.len());
            }
            bytes += queue.settings.bytes();
        }
        bytes
    }

    /// The number of bytes that members, lanes and publications occupy.
    fn fan_out_bytes(&self) -> u64 {
        let members = self.members.registered.values();
        let members = members.map(|member| member_bytes(&member.name));
        let lanes = self.queues.lane_slots().into_iter();
        let lanes = lanes.map(|slot| lane_bytes(&self.queues[slot].name));
        let published = self.publications.iter().map(|(_, published)| published.content_bytes());
        members.chain(lanes).chain(published).sum()
    }
}

/// `put + revived = acked + expired + killed + dead + evicted + moved + cancelled + skipped +
/// present`.
fn check_balance(counters: &Counters, of: &str) {
    let came = counters.put + counters.revived;
    assert_eq!(came, counters.left() + counters.present(), "the figures of {of} balance");
    let mut counts = [0_i128; 6];
    for (step, times) in &counters.moves {
        if let Some(from) = step.from() {
            counts[from as usize] -= i128::from(*times);
        }
        if let Some(to) = step.to() {
            counts[to as usize] += i128::from(*times);
        }
    }
    for kind in StateKind::ALL {
        // Tasks found at the start are counted without a move.
        let count = i128::from(counters.count(kind));
        assert!(counts[kind as usize] <= count || counters.put > 0, "moves of {of} make sense");
    }
}

/// What a client holds as long as it is connected, by number.
fn bonds(client: &Client) -> impl Iterator<Item = (u64, Bond)> {
    let lasting = client.leases.iter().map(|number| (*number, Bond::Lasting));
    let tied = client.tied.iter().map(|(at, number)| (*number, Bond::Until(*at)));
    let unstarted = client.unstarted.iter();
    let unstarted = unstarted.map(|(queue, number)| (*number, Bond::Unstarted(*queue)));
    lasting.chain(tied).chain(unstarted)
}
