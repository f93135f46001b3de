//! Payloads that were left on the disk, read back as they are sent.
//!
//! One piece is read at a time, for each client in turn. A client gets its next piece only when the
//! former has left for its socket. So memory is bounded by what each connection may have encoded
//! ahead, and only clients that are shown a payload from the disk wait for it. Popped tasks that
//! could not be sent are read in the same way before they go back to their queue.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::task::{Bytes, ClientId, TaskRecord};
use pinpriq_store::durable::{Durable, Wanted};
use pinpriq_store::{StoreError, Volume};

use crate::session::Session;

/// How many bytes of payloads are read at a time, give or take one payload.
pub(crate) const PIECE_BYTES: u64 = 256 << 10;

/// While more bytes than this wait to be written, no more tasks go back. Until they are written,
/// their payloads are in memory.
const BACKLOG_BYTES: u64 = 4 << 20;

/// Clients and tasks that wait for payloads from the disk.
#[derive(Default)]
pub(crate) struct Readers {
    /// Clients whose first reply lacks payloads. The one that has waited longest comes first.
    waiting: VecDeque<Rc<Session>>,
    /// Popped tasks that are to go back, with the clients that popped them.
    returning: VecDeque<(ClientId, TaskRecord, Arc<dyn Volume>)>,
    /// What is being read.
    under_way: Option<Reading>,
    /// Whether the last piece was for tasks that go back. Then a client comes next.
    has_brought_back: bool,
}

enum Reading {
    /// Payloads for a client, and whether another shard has its outbox.
    For(Rc<Session>, bool),
    Back(ClientId, Vec<TaskRecord>),
}

/// Popped tasks with their payloads, to be put back.
pub(crate) struct Returned {
    pub(crate) client: ClientId,
    pub(crate) tasks: Vec<TaskRecord>,
}

impl Readers {
    /// Whether there is nothing to do.
    pub(crate) fn are_idle(&self) -> bool {
        self.under_way.is_none() && self.waiting.is_empty() && self.returning.is_empty()
    }

    /// Adds a client that waits for payloads.
    pub(crate) fn add(&mut self, session: &Rc<Session>) {
        if !session.reads.replace(true) {
            self.waiting.push_back(Rc::clone(session));
        }
    }

    /// Adds popped tasks of a client that are to go back.
    pub(crate) fn bring_back(
        &mut self,
        client: ClientId,
        tasks: Vec<(TaskRecord, Arc<dyn Volume>)>,
    ) {
        self.returning.extend(tasks.into_iter().map(|(task, volume)| (client, task, volume)));
    }

    /// Takes what was read and starts to read the next piece. Returns tasks that can be put back;
    /// then there may be more to do.
    pub(crate) fn poll(&mut self, durable: &mut Durable) -> Option<Returned> {
        loop {
            if self.under_way.is_some() {
                let read = durable.take_read(false).transpose()?;
                if let Some(returned) = self.finish_piece(read) {
                    return Some(returned);
                }
            }
            self.start_piece(durable)?;
        }
    }

    /// Waits for the next tasks that go back. Returns `None` if there are no more.
    pub(crate) fn wait(&mut self, durable: &mut Durable) -> Option<Returned> {
        loop {
            if self.under_way.is_some() {
                let read = durable.take_read(true).transpose()?;
                if let Some(returned) = self.finish_piece(read) {
                    return Some(returned);
                }
            }
            self.waiting.clear();
            self.start_piece(durable)?;
        }
    }

    /// Hands over what was read.
    fn finish_piece(&mut self, read: Result<Vec<Bytes>, StoreError>) -> Option<Returned> {
        match (self.under_way.take()?, read) {
            (Reading::For(session, is_lent), Ok(payloads)) => {
                session.supply(is_lent, payloads);
                None
            }
            (Reading::Back(client, mut tasks), Ok(payloads)) => {
                for (task, payload) in tasks.iter_mut().zip(payloads) {
                    (task.payload, task.away) = (payload, None);
                }
                Some(Returned { client, tasks })
            }
            (_, Err(_)) => {
                // The store has failed. Every client learns of it, and nothing goes back.
                self.returning.clear();
                None
            }
        }
    }

    /// Starts to read the next piece. Returns `None` if there is nothing to read.
    fn start_piece(&mut self, durable: &mut Durable) -> Option<()> {
        let may_bring_back = durable.pending_bytes() <= BACKLOG_BYTES;
        let (reading, wanted) = self.next_piece(may_bring_back)?;
        self.under_way = Some(reading);
        if durable.start_read(wanted).is_err() {
            // The code that drives the store learns of the failure too.
            (self.under_way, self.waiting) = (None, VecDeque::new());
            self.returning.clear();
            return None;
        }
        Some(())
    }

    /// Returns the next piece. Tasks that go back and clients take turns.
    fn next_piece(&mut self, may_bring_back: bool) -> Option<(Reading, Vec<Wanted>)> {
        let brings_back = may_bring_back && !self.returning.is_empty();
        if brings_back && (!self.has_brought_back || self.waiting.is_empty()) {
            self.has_brought_back = true;
            return self.next_back();
        }
        self.has_brought_back = false;
        let next = self.next_client();
        if next.is_none() && brings_back { self.next_back() } else { next }
    }

    fn next_back(&mut self) -> Option<(Reading, Vec<Wanted>)> {
        let client = self.returning.front()?.0;
        let (mut tasks, mut wanted) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while let Some((_, task, volume)) =
            self.returning.pop_front_if(|(owner, ..)| *owner == client && bytes < PIECE_BYTES)
        {
            let Some(away) = task.away else { continue };
            bytes += u64::from(away.bytes);
            wanted.push(Wanted { number: task.number, away, volume });
            tasks.push(task);
        }
        Some((Reading::Back(client, tasks), wanted))
    }

    fn next_client(&mut self) -> Option<(Reading, Vec<Wanted>)> {
        while let Some(session) = self.waiting.pop_front() {
            session.reads.set(false);
            let is_lent = session.lent.borrow().wanted.is_some();
            let wanted = session.wanted(PIECE_BYTES);
            if !wanted.is_empty() {
                return Some((Reading::For(session, is_lent), wanted));
            }
        }
        None
    }
}
