//! The leases of a worker: renews them at a third of their TTR, and knows which were lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_proto::wire::resp::Words;

use super::runner::CANCELLED;
use crate::client::Client;
use crate::error::Refused;
use crate::job::Job;
use crate::name::Name;
use crate::told::Told;

/// The most leases that one round trip renews.
const RENEWALS_MAX: usize = 200;

/// The jobs whose leases are held, as far as is known, by their receipts.
#[derive(Default, Debug)]
pub(super) struct Held(Mutex<HashMap<Name, Lease>>);

#[derive(Debug)]
struct Lease {
    job: Job,
    /// Whether the server is being told that the job is done or not done. Then its lease may have
    /// ended for that reason.
    is_ending: bool,
}

impl Held {
    /// Begins to renew the lease of a job.
    pub(super) fn hold(&self, job: &Job) {
        let lease = Lease { job: job.clone(), is_ending: false };
        self.leases().insert(job.receipt().clone(), lease);
    }

    /// Notes that the server is about to be told what became of a job. Its lease is renewed until
    /// [`let_go`](Self::let_go), since that may take several attempts. Returns whether the lease
    /// was held until now.
    pub(super) fn note_ending(&self, job: &Job) -> bool {
        let mut leases = self.leases();
        let lease = leases.get_mut(job.receipt());
        lease.map(|lease| lease.is_ending = true).is_some()
    }

    /// Returns the job with this receipt, if it is held.
    pub(super) fn held(&self, receipt: &[u8]) -> Option<Job> {
        self.leases().get(&Name::from(receipt)).map(|lease| lease.job.clone())
    }

    /// Stops renewing.
    pub(super) fn let_go(&self, job: &Job) {
        self.leases().remove(job.receipt());
    }

    /// Returns the jobs whose leases are held, and lets all of them go.
    pub(super) fn take_all(&self) -> Vec<Job> {
        self.leases().drain().map(|(_, lease)| lease.job).collect()
    }

    /// Renews leases, and tells how far the work has come: of all jobs, or only of those that have
    /// something to tell. Returns the jobs whose leases had ended, and those that were cancelled,
    /// each with what the server said.
    pub(super) async fn renew(&self, client: &Client, all: bool) -> Vec<(Job, Refused)> {
        let jobs = self.jobs(|job| all || job.untold().is_any());
        let mut news = Vec::new();
        for some in jobs.chunks(RENEWALS_MAX) {
            let told: Vec<Told> = some.iter().map(|job| job.untold().take()).collect();
            let words = |(job, told): (&Job, _)| job.queue().touch_words(job.receipt(), told);
            let commands: Vec<Words> = some.iter().zip(&told).map(words).collect();
            let replies = match client.pipeline(&commands).await {
                Ok(replies) => replies,
                Err(error) => {
                    tracing::warn!("leases were not renewed: {error}");
                    let all = some.iter().zip(told);
                    all.for_each(|(job, told)| job.untold().put_back(told));
                    return news;
                }
            };
            for ((job, told), reply) in some.iter().zip(told).zip(replies) {
                match reply {
                    Ok(_) => {}
                    Err(refused) if refused.code == "BUSY" && told.checkpoint.is_some() => {
                        // Nothing was renewed. The checkpoint is tried again with the next renewal.
                        tracing::warn!("no room for the checkpoint of {}: {refused}", job.id);
                        if let Err(error) = job.queue().touch(job.receipt(), &Told::default()).await
                        {
                            tracing::warn!("the lease of {} was not renewed: {error}", job.id);
                        }
                        job.untold().put_back(told);
                    }
                    Err(refused) if refused.code == "STALE" => {
                        if self.is_lost(job) {
                            news.push((job.clone(), refused));
                        }
                    }
                    Err(refused) if refused.code == CANCELLED => news.push((job.clone(), refused)),
                    Err(refused) => {
                        tracing::warn!("the lease of {} was not renewed: {refused}", job.id);
                    }
                }
            }
        }
        news
    }

    fn jobs(&self, is_meant: impl Fn(&Job) -> bool) -> Vec<Job> {
        let leases = self.leases();
        let jobs = leases.values().map(|lease| &lease.job);
        jobs.filter(|job| is_meant(job)).cloned().collect()
    }

    /// Whether a job whose lease has ended was held, and was not about to be finished. It is held
    /// no more.
    pub(super) fn is_lost(&self, job: &Job) -> bool {
        let mut leases = self.leases();
        let is_lost = leases.get(job.receipt()).is_some_and(|lease| !lease.is_ending);
        if is_lost {
            leases.remove(job.receipt());
        }
        is_lost
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Name, Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pinpriq_proto::wire::resp::Value;

    use super::*;
    use crate::options::Options;
    use crate::task::Task;

    fn job(receipt: &str) -> Job {
        let text = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let field = |(name, value)| (text(name), text(value));
        let fields = [("queue", "q"), ("id", "1"), ("payload", ""), ("state", "T")];
        let fields = fields.into_iter().chain([("receipt", receipt)]).map(field);
        let numbers = ["attempts", "failures", "put_at", "cost"];
        let fields = fields.chain(numbers.map(|name| (text(name), Value::Integer(0))));
        let task = Task::read(&Value::Map(fields.collect())).unwrap();
        let client = Client::unconnected(Options::at("pinpriq://").unwrap()).unwrap();
        Job::new(&client, task).unwrap()
    }

    #[test]
    fn a_lease_that_ends_with_its_job_is_not_lost() {
        let held = Held::default();
        let (lost, done, unknown) = (job("1-1-1"), job("2-1-2"), job("3-1-3"));
        held.hold(&lost);
        held.hold(&done);
        assert!(held.note_ending(&done));
        assert!(held.is_lost(&lost));
        assert!(!held.is_lost(&lost), "a loss is reported once");
        assert!(!held.is_lost(&done) && !held.is_lost(&unknown));
        assert!(!held.note_ending(&lost) && !held.note_ending(&unknown));
        assert_eq!(held.take_all().len(), 1);
    }
}
