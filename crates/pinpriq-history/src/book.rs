//! Sorts the calls of a history by queue, task and lease.
//!
//! Calls that belong to no known lease, such as one with a receipt that nobody was given, are left
//! out, because nothing certain follows from them.

use std::collections::HashMap;

use crate::lease::{Deed, Fate, Handed, Lasting, Span, US_PER_MS, Wish};
use crate::reading::{Call, History};
use crate::record::{Delivery, Event, Operation, Outcome};
use crate::shelf::{Entry, Queue, Task, Visit};
use crate::tolerance::Tolerance;

/// Puts with an unknown id, by queue and payload.
type Nameless = HashMap<(usize, String), Vec<Entry>>;

/// A history, sorted.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) queues: Vec<Queue>,
    pub(crate) tasks: Vec<Task>,
    /// When the server ended or started, in order of time.
    pub(crate) restarts_us: Vec<u64>,
    /// The ends that are followed by a start: the moments of both.
    pub(crate) lives: Vec<(u64, u64)>,
    /// The earliest moment at which the connection of a client may have been closed.
    closed_us: HashMap<u64, u64>,
    /// Every payload that a task may have, by queue.
    pub(crate) payloads: HashMap<(usize, String), u64>,
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
        let mut nameless = Nameless::new();
        book.enter_events(history);
        for call in &history.calls {
            book.enter_put(call, &mut nameless);
        }
        let mut order: Vec<usize> = (0..history.calls.len()).collect();
        order.sort_by_key(|place| history.calls[*place].from_us);
        for place in &order {
            book.enter_tasks(&history.calls[*place], tolerance, &mut nameless);
        }
        for place in &order {
            book.enter_rest(&history.calls[*place]);
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

    /// Returns the index of a task, and adds the task if it is not known.
    fn task(&mut self, queue: usize, id: &str) -> usize {
        *self.task_places.entry((queue, id.to_owned())).or_insert_with(|| {
            self.tasks.push(Task::new(queue, id.to_owned()));
            self.tasks.len() - 1
        })
    }

    fn enter_put(&mut self, call: &Call, nameless: &mut Nameless) {
        let Operation::Put { queue, payload, id, priority, delay_ms, ttl_ms, ttr_ms } =
            &call.operation
        else {
            return;
        };
        if matches!(call.outcome, Outcome::Refused(_)) {
            return;
        }
        let queue = self.queue(queue);
        *self.payloads.entry((queue, payload.clone())).or_insert(0) += 1;
        let entry = Entry {
            span: span(call),
            acknowledged: matches!(call.outcome, Outcome::Put { .. }),
            payload: payload.clone(),
            priority: *priority,
            delay_us: delay_ms * US_PER_MS,
            ttl_us: ttl_ms.map(|ms| ms * US_PER_MS),
            ttr_us: ttr_ms.map(|ms| ms * US_PER_MS),
            ambiguous: false,
        };
        let ttr_max_us = &mut self.queues[queue].ttr_max_us;
        *ttr_max_us = entry.ttr_us.unwrap_or(0).max(*ttr_max_us);
        let told = if let Outcome::Put { id } = &call.outcome { Some(id) } else { id.as_ref() };
        let Some(id) = told else {
            nameless.entry((queue, payload.clone())).or_default().push(entry);
            return;
        };
        let task = self.task(queue, id);
        let task = &mut self.tasks[task];
        task.several |= task.entry.is_some();
        task.entry = Some(entry);
    }

    fn enter_tasks(&mut self, call: &Call, tolerance: Tolerance, nameless: &mut Nameless) {
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
                    let ordered = !otherwise;
                    self.hand(call, queue, delivery, (ttr_ms, popped, ordered), nameless);
                }
            }
            Outcome::Unknown => {
                // The request may be carried out as long as this server lives, and the tasks it
                // took are hidden as long as a lease lasts.
                let ended = self.restarts_us.partition_point(|at_us| *at_us <= call.from_us);
                let ended_us = self.restarts_us.get(ended).copied().unwrap_or(u64::MAX);
                let lasts_us = ttr_ms.map_or(self.queues[queue].ttr_max_us, |ms| ms * US_PER_MS);
                let to_us = ended_us.saturating_add(lasts_us + tolerance.of_us(lasts_us));
                self.queues[queue].hidden.push(Span { from_us: call.from_us, to_us });
                self.queues[queue].unheard_pops += if popped { count } else { 0 };
            }
            _ => {}
        }
    }

    fn hand(
        &mut self,
        call: &Call,
        queue: usize,
        delivery: &Delivery,
        (ttr_ms, popped, ordered): (Option<u64>, bool, bool),
        nameless: &mut Nameless,
    ) {
        let task = self.task(queue, &delivery.id);
        if self.tasks[task].entry.is_none() {
            // A put whose answer was lost is identified by its payload once its task is delivered.
            if let Some(puts) = nameless.get_mut(&(queue, delivery.payload.clone())) {
                let ambiguous = puts.len() > 1 || puts.iter().any(|entry| entry.ambiguous);
                for entry in puts.iter_mut() {
                    entry.ambiguous = ambiguous;
                }
                self.tasks[task].entry = puts.pop();
            }
        }
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
        self.tasks[task].handed.push(Handed {
            span: span(call),
            client: call.client,
            call: call.number,
            popped,
            ordered,
            payload: delivery.payload.clone(),
            lasting,
            deeds: Vec::new(),
        });
    }

    fn enter_rest(&mut self, call: &Call) {
        let visit = |certain: bool| Visit { span: span(call), certain };
        let refused = matches!(call.outcome, Outcome::Refused(_) | Outcome::Count(0));
        match &call.operation {
            Operation::Put { .. } | Operation::Take { .. } | Operation::Pop { .. } => {}
            _ if refused && !has_receipt(&call.operation) => {}
            Operation::Kill { queue, id } => {
                let queue = self.queue(queue);
                let task = self.task(queue, id);
                self.tasks[task].kills.push(visit(call.outcome != Outcome::Unknown));
            }
            Operation::Dig { queue, id, changed } => {
                let queue = self.queue(queue);
                let task = self.task(queue, id);
                let task = &mut self.tasks[task];
                task.changed |= changed;
                task.digs.push(visit(call.outcome != Outcome::Unknown));
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
        let fate = match &call.outcome {
            Outcome::Unknown => Fate::Unknown,
            Outcome::Refused(word) if word == "STALE" => Fate::Stale,
            Outcome::Refused(_) => Fate::Refused,
            Outcome::Turned(state) if state == "X" => Fate::Gone,
            _ => Fate::Accepted,
        };
        let task = &mut self.tasks[task];
        if fate == Fate::Gone {
            task.expired.push(span(call));
        }
        task.handed[handed].deeds.push(Deed { span: span(call), wish, fate, call: call.number });
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

    /// The earliest moment at which something unknown may have changed a task.
    pub(crate) fn disturbed_us(&self, task: &Task) -> u64 {
        task.disturbed_us.min(self.queues[task.queue].disturbed_us)
    }

    /// The name of a task in a report.
    pub(crate) fn name(&self, task: &Task) -> String {
        format!("task {:?} of queue {:?}", task.id, self.queues[task.queue].name)
    }
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
    )
}
