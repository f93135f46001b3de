//! The leases of a worker: renews them at a third of their TTR, and knows which were lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinpriq_wire::resp::Words;

use crate::client::Client;
use crate::job::Job;
use crate::name::Name;

/// The most leases that one round trip renews.
const RENEWALS_MAX: usize = 200;

/// The jobs whose leases are held, as far as is known, by their receipts.
#[derive(Default, Debug)]
pub(super) struct Held(Mutex<HashMap<Name, Job>>);

impl Held {
    /// Begins to renew the lease of a job.
    pub(super) fn hold(&self, job: &Job) {
        self.jobs().insert(job.receipt().clone(), job.clone());
    }

    /// Stops renewing. Returns whether the lease was held until now.
    pub(super) fn let_go(&self, job: &Job) -> bool {
        self.jobs().remove(job.receipt()).is_some()
    }

    /// Whether the lease of a job is held, as far as is known.
    pub(super) fn holds(&self, job: &Job) -> bool {
        self.jobs().contains_key(job.receipt())
    }

    /// Returns the jobs whose leases are held, and holds none of them any more.
    pub(super) fn take_all(&self) -> Vec<Job> {
        self.jobs().drain().map(|(_, job)| job).collect()
    }

    /// Renews all leases, and returns the jobs whose leases had ended.
    pub(super) async fn renew(&self, client: &Client) -> Vec<Job> {
        let jobs: Vec<Job> = self.jobs().values().cloned().collect();
        let mut lost = Vec::new();
        for some in jobs.chunks(RENEWALS_MAX) {
            let words = |job: &Job| job.queue().touch_words(job.receipt());
            let commands: Vec<Words> = some.iter().map(words).collect();
            let replies = match client.pipeline(&commands).await {
                Ok(replies) => replies,
                Err(error) => {
                    tracing::warn!("leases were not renewed: {error}");
                    return lost;
                }
            };
            for (job, reply) in some.iter().zip(replies) {
                match reply {
                    Ok(_) => {}
                    // It may have been acknowledged meanwhile, and is held no more.
                    Err(refused) if refused.code == "STALE" => {
                        if self.let_go(job) {
                            lost.push(job.clone());
                        }
                    }
                    Err(refused) => {
                        tracing::warn!("the lease of {} was not renewed: {refused}", job.id);
                    }
                }
            }
        }
        lost
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<Name, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
