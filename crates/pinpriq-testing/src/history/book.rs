//! Sorts the calls of a history by queue, task and lease.
//!
//! A task that is moved, or becomes a dead letter, has another id in another queue. It is
//! recognised by its payload, and stays one task.
//!
//! Calls that belong to no known lease, such as one with a receipt that was never given, are left
//! out, because nothing certain follows from them.

use std::collections::HashMap;

use crate::history::lease::{Deed, Fate, Handed, Lasting, Span, US_PER_MS, Wish};
use crate::history::reading::{Call, History};
use crate::history::record::{Delivery, Event, Operation, Outcome};
use crate::history::routes::{Policy, Routes};
use crate::history::shelf::{Entry, Limits, Most, NamedLimit, Naming, Queue, Station, Task, Visit};
use crate::history::tolerance::Tolerance;

/// A put that may have been carried out.
#[derive(Clone, Debug)]
struct PutOf {
    queue: usize,
    /// Its task, once that is known.
    task: Option<usize>,
    /// What was put, until its task is known.
    entry: Option<Entry>,
}

/// A history, sorted.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) queues: Vec<Queue>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) named_limits: Vec<NamedLimit>,
    /// When the server ended or started, in order of time.
    pub(crate) restarts_us: Vec<u64>,
    /// The ends that are followed by a start: the moments of both.
    pub(crate) lives: Vec<(u64, u64)>,
    /// The earliest moment at which the connection of a client may have been closed.
    closed_us: HashMap<u64, u64>,
    /// The ways from queue to queue.
    pub(crate) routes: Routes,
    /// All puts that may have been carried out, by payload.
    puts: HashMap<String, Vec<PutOf>>,
    /// The deliveries that repeat a receipt: the call, and the receipt.
    pub(crate) repeated: Vec<(u64, String)>,
    queue_places: HashMap<String, usize>,
    task_places: HashMap<(usize, String), usize>,
    /// For each receipt, its task and the index of its delivery.
    receipts: HashMap<String, (usize, usize)>,
}

impl Book {
    /// Sorts a history.
    pub(crate) fn of(history: &History, tolerance: Tolerance) -> Self {
        let mut book = Self::default();
        book.enter_events(history);
        for call in &history.calls {
            book.enter_put(call);
            book.enter_way(call);
        }
        book.routes.sort();
        let mut order: Vec<usize> = (0..history.calls.len()).collect();
        order.sort_by_key(|place| history.calls[*place].from_us);
        for place in &order {
            book.enter_tasks(&history.calls[*place], tolerance);
        }
        for place in &order {
            book.enter_rest(&history.calls[*place]);
        }
        for place in 0..book.queues.len() {
            let disturbed_us = book.queues[place].disturbed_us;
            let root = book.routes.root(place);
            let near_us = &mut book.queues[root].disturbed_near_us;
            *near_us = disturbed_us.min(*near_us);
        }
        book
    }

    /// Returns the index of a queue, and adds the queue if it is not known.
    fn queue(&mut self, name: &str) -> usize {
        if let Some(place) = self.queue_places.get(name) {
            return *place;
        }
        let place = self.queues.len();
        self.queues.push(Queue::new(name.to_owned()));
        self.queue_places.insert(name.to_owned(), place);
        place
    }

    /// Returns the index of a named limit, and adds the limit if it is not known.
    fn named_limit(&mut self, name: &str) -> usize {
        let known = self.named_limits.iter().position(|it| it.name == name);
        known.unwrap_or_else(|| {
            self.named_limits.push(NamedLimit { name: name.to_owned(), said: Vec::new() });
            self.named_limits.len() - 1
        })
    }

    /// Returns the index of a task, and adds the task if it is not known.
    fn task(&mut self, queue: usize, id: &str) -> usize {
        *self.task_places.entry((queue, id.to_owned())).or_insert_with(|| {
            self.tasks.push(Task::new(queue, id.to_owned()));
            self.tasks.len() - 1
        })
    }

    fn enter_put(&mut self, call: &Call) {
        let Operation::Put { queue, payload, id, priority, delay_ms, ttl_ms, ttr_ms, key, share } =
            &call.operation
        else {
            return;
        };
        if matches!(call.outcome, Outcome::Refused(_)) {
            return;
        }
        let queue = self.queue(queue);
        let entry = Entry {
            span: span(call),
            acknowledged: matches!(call.outcome, Outcome::Put { .. }),
            payload: payload.clone(),
            priority: *priority,
            delay_us: delay_ms * US_PER_MS,
            ttl_us: ttl_ms.map(|ms| ms * US_PER_MS),
            ttr_us: ttr_ms.map(|ms| ms * US_PER_MS),
            ambiguous: false,
            naming: match (&call.outcome, id) {
                (_, Some(_)) => Naming::Given,
                (Outcome::Put { .. }, None) => Naming::Told,
                _ => Naming::Unknown,
            },
            open: open(call),
            key: key.clone(),
            share: share.clone(),
        };
        let ttr_max_us = &mut self.queues[queue].ttr_max_us;
        *ttr_max_us = entry.ttr_us.unwrap_or(0).max(*ttr_max_us);
        let told = if let Outcome::Put { id } = &call.outcome { Some(id) } else { id.as_ref() };
        let mut put = PutOf { queue, task: None, entry: None };
        match told {
            Some(id) => {
                let place = self.task(queue, id);
                let task = &mut self.tasks[place];
                task.several |= task.entry.is_some();
                task.entry = Some(entry);
                put.task = Some(place);
            }
            None => put.entry = Some(entry),
        }
        self.puts.entry(payload.clone()).or_default().push(put);
    }

    /// Enters what may bring tasks from one queue into another.
    fn enter_way(&mut self, call: &Call) {
        if matches!(call.outcome, Outcome::Refused(_) | Outcome::Count(0)) {
            return;
        }
        let span = Span { to_us: call.to_us.min(self.life_end_us(call.from_us)), ..span(call) };
        match &call.operation {
            Operation::Move { from, to, .. } => {
                let (from, to) = (self.queue(from), self.queue(to));
                self.routes.add_move(from, to, span);
            }
            Operation::Policy { queue, attempts, backoff_ms, backoff_max_ms, dead_letter } => {
                let queue = self.queue(queue);
                let policy = Policy {
                    span,
                    certain: call.outcome == Outcome::Done,
                    attempts: *attempts,
                    backoff_us: backoff_ms * US_PER_MS,
                    backoff_max_us: backoff_max_ms * US_PER_MS,
                    dead_letter: dead_letter.as_ref().map(|name| self.queue(name)),
                };
                self.routes.add_policy(queue, policy);
            }
            Operation::NamedLimit { name, max } => {
                let limit = self.named_limit(name);
                let certain = call.outcome == Outcome::Done;
                self.named_limits[limit].said.push(Most { span, certain, max: *max });
            }
            Operation::Limits { queue, limit, key_limit, share_limit, key_hold, fair, uses } => {
                let queue = self.queue(queue);
                let uses = uses.as_ref().map(|name| self.named_limit(name));
                self.queues[queue].limits.push(Limits {
                    span,
                    certain: call.outcome == Outcome::Done,
                    of_queue: *limit,
                    of_key: *key_limit,
                    of_share: *share_limit,
                    holds_keys: *key_hold,
                    is_fair: *fair,
                    uses,
                });
            }
            _ => {}
        }
    }

    fn enter_tasks(&mut self, call: &Call, tolerance: Tolerance) {
        let (name, count, ttr_ms, popped, otherwise) = match &call.operation {
            Operation::Take { queue, count, ttr_ms, otherwise_ordered } => {
                (queue, *count, *ttr_ms, false, *otherwise_ordered)
            }
            Operation::Pop { queue, count, otherwise_ordered } => {
                (queue, *count, None, true, *otherwise_ordered)
            }
            _ => return,
        };
        let queue = self.queue(name);
        match &call.outcome {
            Outcome::Tasks(tasks) => {
                for delivery in tasks {
                    self.hand(call, queue, delivery, (ttr_ms, popped, !otherwise));
                }
            }
            Outcome::Unknown => {
                // The request may be carried out as long as this server lives, and the tasks it
                // took are hidden as long as a lease lasts, and as long as its end makes them wait.
                let ended = self.restarts_us.partition_point(|at_us| *at_us <= call.from_us);
                let ended_us = self.restarts_us.get(ended).copied().unwrap_or(u64::MAX);
                let lasts_us = ttr_ms.map_or(self.queues[queue].ttr_max_us, |ms| ms * US_PER_MS);
                let waits = self.routes.policies_of(queue).iter().map(|policy| {
                    let waits_us = if policy.backoff_us > 0 { policy.backoff_max_us } else { 0 };
                    if policy.may_bury() { u64::MAX } else { waits_us }
                });
                let lasts_us = lasts_us.saturating_add(waits.max().unwrap_or(0));
                let lasts_us = lasts_us.saturating_add(tolerance.of_us(lasts_us));
                let to_us = ended_us.saturating_add(lasts_us);
                self.queues[queue].hidden.push(Span { from_us: call.from_us, to_us });
                self.queues[queue].unheard_pops += if popped { count } else { 0 };
            }
            _ => {}
        }
    }

    /// Returns the task that was delivered, which may have come from another queue.
    fn delivered(&mut self, queue: usize, delivery: &Delivery) -> usize {
        if let Some(task) = self.task_places.get(&(queue, delivery.id.clone())) {
            return *task;
        }
        let routes = &self.routes;
        let puts = self.puts.get_mut(&delivery.payload).map_or(&mut [][..], Vec::as_mut_slice);
        if let [put] = puts
            && (routes.leads(put.queue, queue) || put.queue == queue && put.task.is_none())
        {
            let known = put.task;
            let task = known.unwrap_or(self.tasks.len());
            if known.is_none() {
                let entry = put.entry.take();
                self.tasks.push(Task { entry, ..Task::of_queue(put.queue) });
                put.task = Some(task);
            }
            let id = delivery.id.clone();
            self.tasks[task].stations.push(Station { queue, id: id.clone() });
            self.task_places.insert((queue, id), task);
            return task;
        }
        // If the same payload was put several times, it is not certain which task this is.
        let foreign = puts.len() > 1 && puts.iter().any(|put| routes.leads(put.queue, queue));
        let open = |put: &&mut PutOf| put.queue == queue && put.entry.is_some();
        let mut open: Vec<&mut PutOf> = puts.iter_mut().filter(open).collect();
        let any = |put: &&mut PutOf| put.entry.as_ref().is_some_and(|entry| entry.ambiguous);
        let ambiguous = foreign || open.len() > 1 || open.iter().any(any);
        for entry in open.iter_mut().filter_map(|put| put.entry.as_mut()) {
            entry.ambiguous = ambiguous;
        }
        let put = open.pop();
        let task = self.tasks.len();
        let entry = put.and_then(|put| {
            put.task = Some(task);
            put.entry.take()
        });
        let foreign = foreign && entry.is_none();
        self.tasks.push(Task { entry, foreign, ..Task::new(queue, delivery.id.clone()) });
        self.task_places.insert((queue, delivery.id.clone()), task);
        task
    }

    fn hand(
        &mut self,
        call: &Call,
        queue: usize,
        delivery: &Delivery,
        (ttr_ms, popped, ordered): (Option<u64>, bool, bool),
    ) {
        let task = self.delivered(queue, delivery);
        let entry = self.tasks[task].entry.as_ref();
        let of_task = entry.filter(|entry| !entry.ambiguous).map(|entry| entry.ttr_us);
        let lasting = match (ttr_ms, of_task) {
            (Some(ms), _) => Lasting::Us(ms * US_PER_MS),
            (None, Some(Some(us))) => Lasting::Us(us),
            (None, Some(None)) => Lasting::Connection,
            (None, None) => Lasting::Uncertain,
        };
        if let Some(receipt) = &delivery.receipt {
            let lease = (task, self.tasks[task].handed.len());
            if self.receipts.insert(receipt.clone(), lease).is_some() {
                self.repeated.push((call.number, receipt.clone()));
            }
        }
        let mut stations = self.tasks[task].stations.iter();
        let here = stations.position(|it| it.queue == queue && it.id == delivery.id);
        self.tasks[task].handed.push(Handed {
            span: span(call),
            client: call.client,
            call: call.number,
            station: here.unwrap_or(0),
            popped,
            ordered,
            payload: delivery.payload.clone(),
            lasting,
            deeds: Vec::new(),
        });
    }

    fn enter_rest(&mut self, call: &Call) {
        let certain = call.outcome != Outcome::Unknown;
        let visit = Visit { span: span(call), certain, open: open(call) };
        let refused = matches!(call.outcome, Outcome::Refused(_) | Outcome::Count(0));
        match &call.operation {
            Operation::Put { .. }
            | Operation::Take { .. }
            | Operation::Pop { .. }
            | Operation::Move { .. }
            | Operation::Policy { .. }
            | Operation::Limits { .. }
            | Operation::NamedLimit { .. }
            | Operation::Transaction { .. } => {}
            _ if refused && !has_receipt(&call.operation) => {}
            Operation::Kill { queue, id } => {
                let queue = self.queue(queue);
                let task = self.task(queue, id);
                self.tasks[task].kills.push(visit);
            }
            Operation::Dig { queue, id, changed } => {
                let queue = self.queue(queue);
                let task = self.task(queue, id);
                let task = &mut self.tasks[task];
                task.changed |= changed;
                task.digs.push(visit);
                if call.outcome == Outcome::Turned("X".to_owned()) {
                    task.expired.push(span(call));
                }
            }
            Operation::Plow { queue } => {
                let queue = self.queue(queue);
                self.queues[queue].plows.push(span(call));
            }
            Operation::Disturb { queue, id } => {
                let queue = self.queue(queue);
                let from_us = call.from_us;
                let disturbed_us = match id {
                    Some(id) => {
                        let task = self.task(queue, id);
                        &mut self.tasks[task].disturbed_us
                    }
                    None => &mut self.queues[queue].disturbed_us,
                };
                *disturbed_us = from_us.min(*disturbed_us);
            }
            Operation::Ack { receipt } => self.held(call, receipt, Wish::Ack),
            Operation::Bury { receipt } => self.held(call, receipt, Wish::Bury),
            Operation::Fail { receipt, delay_ms } => {
                let delay_us = delay_ms.map(|ms| ms * US_PER_MS);
                self.held(call, receipt, Wish::Fail { delay_us });
            }
            Operation::Touch { receipt, by_ms } => {
                let by_us = by_ms.map(|ms| ms * US_PER_MS);
                self.held(call, receipt, Wish::Touch { by_us });
            }
            Operation::Release { receipt, delay_ms, ttl_ms, priority, tail } => {
                let (delay_us, ttl_us) = (delay_ms * US_PER_MS, ttl_ms.map(|ms| ms * US_PER_MS));
                let wish = Wish::Release { delay_us, ttl_us, priority: *priority, tail: *tail };
                self.held(call, receipt, wish);
            }
        }
    }

    fn held(&mut self, call: &Call, receipt: &str, wish: Wish) {
        let Some((task, handed)) = self.receipts.get(receipt).copied() else { return };
        let task = &mut self.tasks[task];
        let queue = task.queue_of(&task.handed[handed]);
        let fate = match &call.outcome {
            Outcome::Unknown => Fate::Unknown,
            Outcome::Refused(word) if word == "STALE" => Fate::Stale,
            Outcome::Refused(_) => Fate::Refused,
            Outcome::Turned(state) => match (state.as_str(), wish) {
                ("X", Wish::Fail { .. }) if self.routes.may_kill(queue, span(call)) => Fate::Left,
                ("X", _) => Fate::Gone,
                ("B", _) => Fate::Buried,
                ("W", _) => Fate::Waiting,
                _ => Fate::Accepted,
            },
            _ => Fate::Accepted,
        };
        if fate == Fate::Gone {
            task.expired.push(span(call));
        }
        let (span, open) = (span(call), open(call));
        task.handed[handed].deeds.push(Deed { span, wish, fate, call: call.number, open });
    }

    fn enter_events(&mut self, history: &History) {
        let mut killed_us = None;
        let mut ended: Vec<u64> = Vec::new();
        for (at_us, event) in &history.events {
            match event {
                Event::ServerKilled => {
                    self.restarts_us.push(*at_us);
                    killed_us = Some(*at_us);
                }
                Event::ServerStarted => {
                    self.restarts_us.push(*at_us);
                    self.lives.extend(killed_us.take().map(|killed_us| (killed_us, *at_us)));
                }
                Event::ConnectionClosed { client } => ended.push(*client),
                Event::Drained { queue, buried_stay } => {
                    let queue = self.queue(queue);
                    self.queues[queue].drained = Some((*at_us, *buried_stay));
                }
            }
        }
        self.restarts_us.sort_unstable();
        self.lives.sort_unstable();
        // A connection may have ended at any moment after the last answer received over it.
        let mut answered_us: HashMap<u64, u64> = HashMap::new();
        for call in &history.calls {
            let last_us = answered_us.entry(call.client).or_insert(0);
            if call.to_us == u64::MAX {
                ended.push(call.client);
            } else {
                *last_us = call.to_us.max(*last_us);
            }
        }
        for client in ended {
            let last_us = answered_us.get(&client).copied().unwrap_or(0);
            self.closed_us.insert(client, last_us);
        }
    }

    /// The earliest moment at which the connection of a client may have been closed.
    pub(crate) fn closed_us(&self, client: u64) -> u64 {
        self.closed_us.get(&client).copied().unwrap_or(u64::MAX)
    }

    /// The earliest moment at which something unknown may have changed a task, in its queue or in
    /// one that it may have been in.
    pub(crate) fn disturbed_us(&self, task: &Task) -> u64 {
        let root = &self.queues[self.routes.root(task.queue)];
        task.disturbed_us.min(self.queues[task.queue].disturbed_us).min(root.disturbed_near_us)
    }

    /// The moment from which what was asked for at `from_us` can no longer happen.
    pub(crate) fn life_end_us(&self, from_us: u64) -> u64 {
        let next = self.lives.partition_point(|(_, started_us)| *started_us <= from_us);
        self.lives.get(next).map_or(u64::MAX, |(_, started_us)| *started_us)
    }

    /// Whether that payload was, perhaps, put into that queue.
    pub(crate) fn was_put(&self, queue: usize, payload: &str) -> bool {
        self.puts.get(payload).is_some_and(|puts| puts.iter().any(|put| put.queue == queue))
    }

    /// Whether several puts had the payload of a task.
    pub(crate) fn is_put_again(&self, entry: &Entry) -> bool {
        self.puts.get(&entry.payload).is_some_and(|puts| puts.len() > 1)
    }

    /// The puts of which no task was ever seen, as tasks.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = Task> {
        let unseen = self.puts.values().flatten().filter(|put| put.entry.is_some());
        unseen.map(|put| Task { entry: put.entry.clone(), ..Task::of_queue(put.queue) })
    }

    /// The name of a task in a report, as it was first known.
    pub(crate) fn name(&self, task: &Task) -> String {
        match task.stations.first() {
            Some(station) => self.name_at(station),
            None => format!("a task of queue {:?}", self.queues[task.queue].name),
        }
    }

    /// The name that a task had when it was handed out.
    pub(crate) fn name_of(&self, task: &Task, handed: &Handed) -> String {
        task.stations.get(handed.station).map_or_else(|| self.name(task), |it| self.name_at(it))
    }

    fn name_at(&self, station: &Station) -> String {
        format!("task {:?} of queue {:?}", station.id, self.queues[station.queue].name)
    }
}

/// The transaction of unknown outcome that a call is part of.
fn open(call: &Call) -> Option<u64> {
    (call.in_transaction && call.outcome == Outcome::Unknown).then_some(call.number)
}

const fn span(call: &Call) -> Span {
    Span { from_us: call.from_us, to_us: call.to_us }
}

const fn has_receipt(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Ack { .. }
            | Operation::Bury { .. }
            | Operation::Touch { .. }
            | Operation::Release { .. }
            | Operation::Fail { .. }
    )
}
