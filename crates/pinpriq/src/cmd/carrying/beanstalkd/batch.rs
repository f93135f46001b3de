//! Puts a batch of jobs here, deletes it there, and takes back what was taken there meanwhile.

use std::sync::atomic::Ordering;

use pinpriq_proto::wire::resp::{Value, Words};

use super::Moving;
use super::source::{Found, JobFigures, State};
use crate::exit::Failure;
use crate::pipeline::{self, Next, Traffic};
use crate::resp::{Client, unexpected};

/// The reason of tasks that were buried jobs.
const REASON: &str = "buried in beanstalkd";

const MS_PER_S: u64 = 1_000;

/// A job that is to be moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Job {
    id: u64,
    body: Vec<u8>,
    state: State,
    priority: u32,
    ttr_ms: u64,
    delay_ms: Option<u64>,
}

impl Job {
    /// beanstalkd rounds the rest of a delay down to seconds. A second is added, so that nothing is
    /// ready here before it would have been there.
    pub(super) fn new(state: State, found: Found, told: &JobFigures) -> Self {
        let ms = |seconds: u64| seconds.saturating_mul(MS_PER_S);
        Self {
            id: found.id,
            body: found.body,
            state,
            priority: told.priority,
            ttr_ms: ms(told.ttr_s),
            delay_ms: (state == State::Delayed).then(|| ms(told.left_s.saturating_add(1))),
        }
    }

    /// What puts it here.
    fn words(&self, tube: &str) -> Words {
        let is_buried = self.state == State::Buried;
        Words::new("PUT")
            .bytes(tube)
            .bytes(&self.body)
            .option("PRIORITY", Some(self.priority))
            .option("TTR", Some(self.ttr_ms))
            .option("DELAY", self.delay_ms)
            .option("STATE", is_buried.then_some("B"))
            .option("REASON", is_buried.then_some(REASON))
    }
}

/// The puts of a batch.
struct Puts<'a> {
    tube: &'a str,
    jobs: &'a [Job],
    /// How many were sent.
    sent: usize,
    /// The ids of the tasks, or none where a job was refused, in the order of the jobs.
    ids: Vec<Option<Vec<u8>>>,
    /// The first refusal.
    refused: Option<Failure>,
}

impl Traffic for Puts<'_> {
    fn next(&mut self, _: bool) -> Result<Next, Failure> {
        match self.jobs.get(self.sent) {
            Some(job) if self.refused.is_none() => {
                self.sent += 1;
                Ok(Next::Command(job.words(self.tube)))
            }
            _ => Ok(Next::End),
        }
    }

    fn answer(&mut self, answer: Value) -> Result<(), Failure> {
        let job = self.jobs.get(self.ids.len()).map_or(0, |job| job.id);
        let refusal = match answer {
            Value::Bulk(id) => {
                self.ids.push(Some(id));
                return Ok(());
            }
            Value::Error(sentence) => {
                let tube = self.tube;
                Failure::refused(format!("{sentence} (job {job} of the tube {tube})"))
            }
            _ => unexpected(),
        };
        self.ids.push(None);
        self.refused.get_or_insert(refusal);
        Ok(())
    }
}

impl Moving<'_> {
    /// Moves a batch. If something goes wrong, it still does all that it can before it reports
    /// that.
    pub(super) fn settle(&mut self, tube: &str, state: State, jobs: &[Job]) -> Result<(), Failure> {
        let mut puts = Puts { tube, jobs, sent: 0, ids: Vec::new(), refused: None };
        let reached = pipeline::run(&mut self.client, &mut puts);
        let Puts { ids, refused, sent, .. } = puts;
        let id_of = |place: usize| ids.get(place).and_then(Option::as_ref);
        let (mut put, mut kept) = (Vec::new(), Vec::new());
        for (place, job) in jobs.iter().enumerate() {
            match id_of(place) {
                Some(id) => put.push((job.id, id)),
                None => kept.push((job.id, job.priority)),
            }
        }

        let (mut told, mut taken) = (0, Vec::new());
        let deleted = self.source.delete(put.iter().map(|(job, _)| *job), |was_there| {
            if !was_there {
                taken.extend(put.get(told).map(|(_, id)| *id));
            }
            told += 1;
        });
        let moved = (told - taken.len()) as u64;
        self.tally.add(tube, state, moved);
        self.progress.count().fetch_add(moved, Ordering::Relaxed);
        // A put or a delete without an answer has happened or not.
        self.tally.unsure += (sent - ids.len() + put.len() - told) as u64;
        let withdrawn = self.withdraw(tube, &taken);
        let given_back = match (&deleted, state) {
            (Ok(()), State::Ready) => self.source.release(kept.into_iter()),
            _ => Ok(()),
        };
        reached?;
        refused.map_or(Ok(()), Err)?;
        deleted?;
        withdrawn?;
        given_back
    }

    /// Removes tasks whose jobs another worker has taken.
    fn withdraw(&mut self, tube: &str, ids: &[&Vec<u8>]) -> Result<(), Failure> {
        if ids.is_empty() {
            return Ok(());
        }
        self.tally.taken += ids.len() as u64;
        let removed = kill(&mut self.client, tube, ids);
        let count = *removed.as_ref().unwrap_or(&0);
        self.tally.doubled += (ids.len() as u64).saturating_sub(count);
        removed.map(|_| ())
    }
}

/// Removes tasks, and returns how many were still there.
fn kill(client: &mut Client, tube: &str, ids: &[&Vec<u8>]) -> Result<u64, Failure> {
    match client.call(&Words::new("KILL").bytes(tube).all(ids))? {
        Value::Integer(count) => u64::try_from(count).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    }
}
