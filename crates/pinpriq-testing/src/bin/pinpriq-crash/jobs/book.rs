//! What replies said of jobs: for each one the states that it may be in.
//!
//! What a request may do is written down before it is sent, and what it did after its answer,
//! unless something else has happened to the job since. So the book allows more than what is true,
//! and never less, whichever client is first to write.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::payload::Payloads;

/// The most sentences that are kept.
const FAILURES_MAX: usize = 20;
/// The bytes at the front of a body that number the job.
const NUMBER_BYTES: usize = 8;

/// The state of a job, as the protocol calls it. A reserved job is ready again after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Ready,
    Delayed,
    Buried,
    /// What no job may be that was not reserved since the start.
    Reserved,
}

/// What may have become of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It was never put, or is deleted.
    Gone,
    /// It is in this state, with this priority.
    There(State, u32),
}

/// What is known of a job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: Option<u64>,
    pub(crate) tube: usize,
    pub(crate) body: Vec<u8>,
    /// What may be true of it, at least one.
    pub(crate) fates: Vec<Fate>,
    /// How often something was written of it.
    turns: u64,
}

/// What was written down before a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    /// What [`Job::turns`] was then.
    turn: u64,
    pub(crate) fate: Fate,
}

/// What all replies said.
#[derive(Default)]
pub(crate) struct Book {
    payloads: Payloads,
    jobs: Mutex<BTreeMap<u64, Job>>,
    failures: Mutex<Vec<String>>,
}

impl Book {
    /// Makes a job that is about to be put, and returns its body.
    pub(crate) fn put(&self, tube: usize, fate: Fate) -> (Ticket, Vec<u8>) {
        let body = self.payloads.next();
        let number = number_of(&body).unwrap_or_default();
        let fates = vec![Fate::Gone, fate];
        let job = Job { id: None, tube, body: body.clone(), fates, turns: 0 };
        self.jobs().insert(number, job);
        (Ticket { number, turn: 0, fate }, body)
    }

    /// Notes the id of a job that was put.
    pub(crate) fn inserted(&self, ticket: Ticket, id: u64) {
        self.name(ticket.number, id);
        self.done(ticket);
    }

    /// Notes that a request is about to be sent with which this may become of a job.
    pub(crate) fn ask(&self, number: u64, fate: Fate) -> Ticket {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&number) else { unreachable!("no job {number}") };
        job.turns += 1;
        if !job.fates.contains(&fate) {
            job.fates.push(fate);
        }
        Ticket { number, turn: job.turns, fate }
    }

    /// Notes that a request was carried out.
    pub(crate) fn done(&self, ticket: Ticket) {
        if let Some(job) = self.jobs().get_mut(&ticket.number)
            && job.turns == ticket.turn
        {
            job.fates = vec![ticket.fate];
        }
    }

    /// Notes that a job was reserved, and returns its number.
    pub(crate) fn came(&self, id: u64, body: &[u8]) -> Option<u64> {
        let number = number_of(body);
        let number = number.filter(|number| self.jobs().contains_key(number));
        let Some(number) = number else {
            self.fail(format!("the job {id} was never put"));
            return None;
        };
        self.name(number, id);
        let mut jobs = self.jobs();
        let job = jobs.get_mut(&number)?;
        job.turns += 1;
        let (known, is_same) = (job.fates.clone(), job.body == body);
        job.fates.retain(|fate| matches!(fate, Fate::There(State::Ready, _)));
        let is_allowed = !job.fates.is_empty();
        if !is_allowed {
            job.fates.clone_from(&known);
        }
        drop(jobs);
        if !is_same {
            self.fail(format!("the job {id} has another body"));
        }
        if !is_allowed {
            self.fail(format!("the job {id} was reserved and should be {known:?}"));
        }
        Some(number)
    }

    /// Compares what became of a job with what may have, and notes it.
    pub(crate) fn found(&self, number: u64, found: Fate) {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&number) else { return };
        job.turns += 1;
        let known = std::mem::replace(&mut job.fates, vec![found]);
        let id = job.id;
        drop(jobs);
        if !known.contains(&found) {
            self.fail(format!("the job {id:?} is {found:?} and should be {known:?}"));
        }
    }

    /// Notes the id of a job, which it has for ever.
    fn name(&self, number: u64, id: u64) {
        let mut jobs = self.jobs();
        let named = jobs.get_mut(&number).map(|job| *job.id.get_or_insert(id));
        drop(jobs);
        if named != Some(id) {
            self.fail(format!("the job {named:?} is {id} now"));
        }
    }

    /// Returns all jobs with their numbers.
    pub(crate) fn all(&self) -> Vec<(u64, Job)> {
        self.jobs().iter().map(|(number, job)| (*number, job.clone())).collect()
    }

    /// Notes something that must not happen.
    pub(crate) fn fail(&self, sentence: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < FAILURES_MAX {
            failures.push(sentence);
        }
    }

    /// Returns what must not have happened.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<u64, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of a job, from its body.
fn number_of(body: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*body.first_chunk::<NUMBER_BYTES>()?))
}

#[cfg(test)]
mod tests {
    use super::{Book, Fate, State};

    const READY: Fate = Fate::There(State::Ready, 1);
    const BURIED: Fate = Fate::There(State::Buried, 2);

    #[test]
    fn what_was_inserted_must_be_there() {
        let book = Book::default();
        let (first, _) = book.put(0, READY);
        book.inserted(first, 7);
        let (second, _) = book.put(0, READY);
        book.found(second.number, Fate::Gone);
        assert!(book.failures().is_empty());
        book.found(first.number, Fate::Gone);
        assert_eq!(book.failures().len(), 1);
    }

    #[test]
    fn what_was_not_answered_may_have_happened() {
        let book = Book::default();
        for found in [READY, BURIED] {
            let (put, body) = book.put(0, READY);
            book.inserted(put, put.number + 1);
            assert_eq!(book.came(put.number + 1, &body), Some(put.number));
            book.ask(put.number, BURIED);
            book.found(put.number, found);
        }
        assert!(book.failures().is_empty());
    }

    #[test]
    fn what_was_deleted_must_not_come_back() {
        let book = Book::default();
        let (put, body) = book.put(0, READY);
        book.inserted(put, 1);
        book.done(book.ask(put.number, Fate::Gone));
        assert_eq!(book.came(1, &body), Some(put.number));
        assert_eq!(book.failures().len(), 1);
    }

    #[test]
    fn late_answers_do_not_undo_what_came_after_them() {
        let book = Book::default();
        let (put, body) = book.put(0, READY);
        book.came(1, &body);
        let bury = book.ask(put.number, BURIED);
        book.inserted(put, 1);
        book.done(bury);
        book.found(put.number, BURIED);
        assert!(book.failures().is_empty());
    }

    #[test]
    fn bodies_and_ids_stay() {
        let book = Book::default();
        let (put, mut body) = book.put(0, READY);
        book.inserted(put, 1);
        book.came(2, &body);
        assert_eq!(book.failures().len(), 1);
        body.push(0);
        book.came(1, &body);
        assert_eq!(book.failures().len(), 2);
        assert_eq!(book.came(1, b"nothing known"), None);
    }
}
