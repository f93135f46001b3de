//! Takes jobs ahead: the server pushes them, and may call each back until it is started.
//!
//! One loop owns the connection. It acknowledges a job in the same write as it starts the next one,
//! and waits for neither reply.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use pinpriq_proto::wire::resp::{Value, Words};
use tokio::io::split;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::runner::{CANCELLED, Crew, Loop, PAUSE_FIRST, PAUSE_MAX, Place, join};
use super::{Happening, Source as Where};
use crate::attempts::jittered;
use crate::clock::{now, pause, until};
use crate::error::{Error, Refused};
use crate::job::Job;
use crate::name::Name;
use crate::pipe::send_some;
use crate::request::{Repeat, Request, WordsExt as _};
use crate::task::Task;
use crate::transport::{Line, Lost, Replies};

/// The most jobs that are taken ahead of a fair queue, which charges a share for each.
const FAIR_PREFETCH_MAX: u32 = 1;
/// Credit is granted a few at a time: this part of the prefetch.
const CREDIT_PARTS: u32 = 4;
/// The most jobs that one request starts.
const START_MAX: usize = 100;

/// A function has ended.
pub(super) struct Ended {
    receipt: Name,
    /// Its job, if that is to be acknowledged.
    done: Option<Job>,
}

/// Tells the loop when it is dropped that a function has ended.
pub(super) struct Ending {
    sender: mpsc::Sender<Ended>,
    receipt: Option<Name>,
}

impl Ending {
    /// Has the loop acknowledge the job. Returns whether it will.
    pub(super) fn acknowledge(mut self, job: &Job) -> bool {
        let Some(receipt) = self.receipt.take() else { return false };
        self.sender.try_send(Ended { receipt, done: Some(job.clone()) }).is_ok()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            // If the loop has ended, there is no place to be given back.
            _ = self.sender.try_send(Ended { receipt, done: None });
        }
    }
}

/// What a reply that is under way is about.
enum Owed {
    /// Jobs of one queue.
    Start(Vec<Job>),
    Ack(Job),
    Subscribe,
    /// Something that may be refused.
    Aside,
    Other,
}

/// A function that runs.
struct Running {
    end: AbortHandle,
    /// Whether its place is taken already, by what came for the job that was called back.
    is_called_back: bool,
}

/// The jobs of one worker.
pub(super) struct Ahead {
    crew: Arc<Crew>,
    sender: mpsc::Sender<Ended>,
    /// What has arrived and was not started: when, and the job, by rank and order of arrival.
    arrived: BTreeMap<(i128, u64), (Instant, Job)>,
    arrivals: u64,
    running: HashMap<Name, Running>,
    owed: VecDeque<Owed>,
    /// How many places are free for which no credit was granted.
    free: u32,
    /// How many of them are granted at a time, while something waits.
    lump: u32,
    /// Milliseconds for each step of the priority, of queues whose tasks are ageing.
    ageing: HashMap<Where, i128>,
    /// What is to be written.
    out: Vec<u8>,
    is_stopping: bool,
    /// Whether the server has accepted a subscription.
    has_begun: bool,
    /// Whether a member has ended and must join again.
    must_join: bool,
}

/// Has jobs delivered and runs functions for them, until it is to stop.
pub(super) async fn work(work: &mut Loop) -> Result<(), Error> {
    let places = work.crew.worker.concurrency as usize;
    let (sender, mut ended) = mpsc::channel(places);
    let mut ahead = Ahead::new(Arc::clone(&work.crew), sender);
    let outcome = ahead.connect_and_serve(work, &mut ended).await;
    // Functions that end from now on acknowledge their jobs themselves.
    ended.close();
    while let Some(Ended { done, .. }) = ended.recv().await {
        if let Some(job) = done {
            ahead.crew.acknowledge(&job).await;
            ahead.crew.held.let_go(&job);
        }
    }
    outcome
}

impl Ahead {
    fn new(crew: Arc<Crew>, sender: mpsc::Sender<Ended>) -> Self {
        Self {
            crew,
            sender,
            arrived: BTreeMap::new(),
            arrivals: 0,
            running: HashMap::new(),
            owed: VecDeque::new(),
            free: 0,
            lump: 1,
            ageing: HashMap::new(),
            out: Vec::new(),
            is_stopping: false,
            has_begun: false,
            must_join: false,
        }
    }

    async fn connect_and_serve(
        &mut self,
        work: &mut Loop,
        ended: &mut mpsc::Receiver<Ended>,
    ) -> Result<(), Error> {
        let mut span = PAUSE_FIRST;
        while !*work.stopped.borrow() {
            let outcome = match self.connect(work).await {
                Ok((line, replies)) => self.serve(work, ended, line, replies).await,
                Err(error) => Err(error),
            };
            self.lose(work).await;
            let error = match outcome {
                Ok(()) => return Ok(()),
                Err(error @ Error::Refused(_)) if !self.has_begun => return Err(error),
                Err(error) => error,
            };
            if self.is_stopping {
                break;
            }
            tracing::warn!("next try in {span:?}: {error}");
            let mut stopped = work.stopped.clone();
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => {}
                () = pause(jittered(span)) => {}
            }
            span = (span * 2).min(PAUSE_MAX);
        }
        Ok(())
    }

    async fn connect(&mut self, work: &Loop) -> Result<(Line, Replies), Error> {
        if std::mem::take(&mut self.must_join) {
            join(&self.crew.worker).await?;
        }
        let prefetch = self.look_at_queues().await;
        let opened = self.crew.worker.client.open().await?;
        // What was called back has a place like any other, as the new connection counts.
        for running in self.running.values_mut() {
            running.is_called_back = false;
        }
        let running = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        self.lump = (prefetch / CREDIT_PARTS).max(1);
        let places = self.crew.worker.concurrency.saturating_add(prefetch);
        self.free = places.saturating_sub(running);
        self.ask_for_cancels();
        self.subscribe(work);
        Ok(opened)
    }

    /// Learns in what order the tasks of each queue come. Returns how many to take ahead.
    async fn look_at_queues(&mut self) -> u32 {
        let worker = &self.crew.worker;
        let mut prefetch = worker.prefetch;
        for (name, member) in &worker.sources {
            let mut queue = worker.client.queue(name);
            if let Some(member) = member {
                queue = queue.member(member);
            }
            // A queue that shows no settings is a strict one.
            let Ok(settings) = queue.settings().await else { continue };
            let ranking = settings.field("ranking").and_then(Value::as_bytes);
            if ranking == Some(b"fair") {
                // Deliveries are charged when they are made.
                prefetch = prefetch.min(FAIR_PREFETCH_MAX);
            }
            let ageing = settings.field("ageing").and_then(Value::integer);
            let place = (name.clone(), member.clone());
            match ageing.filter(|_| ranking == Some(b"ageing")) {
                Some(ageing) => _ = self.ageing.insert(place, i128::from(ageing)),
                None => _ = self.ageing.remove(&place),
            }
        }
        prefetch
    }

    /// Asks to hear of tasks that are cancelled. A server that cannot tell leaves it to renewals.
    fn ask_for_cancels(&mut self) {
        self.ask(&Words::new("CLIENT CANCELS ON"), Owed::Aside);
    }

    fn subscribe(&mut self, work: &Loop) {
        let ttr = self.crew.worker.ttr;
        for source in &work.sources {
            let words = Words::new("SUBSCRIBE").queue_names(&source.names).span("TTR", Some(ttr));
            let words = words.flag("RECALL", true).flag("WITHMETA", true);
            self.ask(&words.given("MEMBER", source.member.as_ref()), Owed::Subscribe);
        }
    }

    fn ask(&mut self, words: &Words, owed: Owed) {
        words.put(&mut self.out);
        self.owed.push_back(owed);
    }

    /// Serves one connection. Returns once everything was called back, when it is to stop.
    async fn serve(
        &mut self,
        work: &mut Loop,
        ended: &mut mpsc::Receiver<Ended>,
        line: Line,
        mut replies: Replies,
    ) -> Result<(), Error> {
        let client = self.crew.worker.client.clone();
        let timeout = client.options().timeout;
        let (stream, mut buffer) = line.into_parts();
        let (mut reader, mut writer) = split(stream);
        let (mut written, mut is_flushed) = (0, true);
        let mut stopped = work.stopped.clone();
        // When to ask for a sign of life, or to count the connection as broken.
        let mut silence = pin!(until(now() + timeout));
        loop {
            self.begin(work);
            is_flushed &= self.out.is_empty();
            tokio::select! {
                read = buffer.fill(&mut reader) => {
                    if !read.map_err(|error| client.disconnected(&error))? {
                        return Err(client.disconnected(&Lost::Closed));
                    }
                    silence.set(until(now() + timeout));
                    let broken = |lost| client.disconnected(&lost);
                    while let Some(value) = replies.next(&mut buffer).map_err(broken)? {
                        self.hear(work, value)?;
                    }
                    if std::mem::take(&mut self.must_join) && !self.is_stopping {
                        join(&self.crew.worker).await?;
                        self.subscribe(work);
                    }
                    if self.is_stopping && self.owed.is_empty() {
                        return Ok(());
                    }
                }
                sent = send_some(&mut writer, self.out.get(written..).unwrap_or_default()),
                    if !is_flushed =>
                {
                    match sent.map_err(|error| client.disconnected(&error))? {
                        Some(count) => written += count,
                        None => is_flushed = true,
                    }
                    if written == self.out.len() {
                        self.out.clear();
                        written = 0;
                    }
                }
                Some(first) = ended.recv() => {
                    self.note_ended(first);
                    // What begins in place of all that have ended by now is started together.
                    while let Ok(next) = ended.try_recv() {
                        self.note_ended(next);
                    }
                }
                _ = stopped.wait_for(|stopped| *stopped), if !self.is_stopping => self.stop(),
                () = &mut silence => {
                    if !self.owed.is_empty() {
                        let error = io::Error::from(io::ErrorKind::TimedOut);
                        return Err(client.disconnected(&error));
                    }
                    // It changes nothing, and the server answers.
                    self.subscribe(work);
                    silence.set(until(now() + timeout));
                }
            }
        }
    }

    /// Starts the most urgent jobs for which there is a function to run, and grants what is free.
    fn begin(&mut self, work: &mut Loop) {
        while work.running.try_join_next().is_some() {}
        let mut started = Vec::new();
        while !self.is_stopping && self.running.len() < self.crew.worker.concurrency as usize {
            let Some((_, (arrived_at, job))) = self.arrived.pop_first() else { break };
            if now() - arrived_at >= self.crew.worker.ttr {
                // Its lease has ended, which has used up the credit.
                self.free += 1;
                continue;
            }
            started.push(job.clone());
            self.crew.held.hold(&job);
            let receipt = job.receipt().clone();
            let ending = Ending { sender: self.sender.clone(), receipt: Some(receipt.clone()) };
            let attending = Arc::clone(&self.crew).attend(job, Place::Ahead(ending));
            let end = work.running.spawn(attending);
            self.running.insert(receipt, Running { end, is_called_back: false });
        }
        if !started.is_empty() {
            self.ask_to_start(started);
        }
        let is_due = self.free >= self.lump || (self.free > 0 && self.arrived.is_empty());
        if is_due && !self.is_stopping {
            let free = std::mem::take(&mut self.free);
            self.ask(&Words::new("CREDIT").bytes(free.to_string()), Owed::Other);
        }
    }

    /// Says that functions for these jobs have begun, for all jobs of a queue at once.
    fn ask_to_start(&mut self, mut jobs: Vec<Job>) {
        jobs.sort_by(|job, other| job.queue.cmp(&other.queue));
        for of_queue in jobs.chunk_by(|job, next| job.queue == next.queue) {
            for some in of_queue.chunks(START_MAX) {
                self.ask(&start_words(some), Owed::Start(some.to_vec()));
            }
        }
    }

    fn note_ended(&mut self, ended: Ended) {
        let running = self.running.remove(&ended.receipt);
        if running.is_some_and(|running| !running.is_called_back) {
            self.free += 1;
        }
        if let Some(job) = ended.done {
            let words = job.ack_words();
            self.ask(&words, Owed::Ack(job));
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        // The server calls them back.
        for (_, job) in std::mem::take(&mut self.arrived).into_values() {
            self.crew.worker.tell(&job, Happening::Released);
        }
        self.ask(&Words::new("UNSUBSCRIBE"), Owed::Other);
    }

    fn hear(&mut self, work: &mut Loop, value: Value) -> Result<(), Error> {
        if let Value::Push(message) = value {
            self.receive(&message);
            return Ok(());
        }
        let owed = self.owed.pop_front();
        let Value::Error(text) = value else {
            match owed {
                Some(Owed::Ack(job)) => self.crew.held.let_go(&job),
                Some(Owed::Subscribe) => self.has_begun = true,
                Some(Owed::Start(jobs)) => self.note_started(&jobs, &value),
                _ => {}
            }
            return Ok(());
        };
        let refused = Refused::of(&text, false);
        match owed {
            Some(Owed::Start(jobs)) if matches!(&*refused.code, "STALE" | CANCELLED) => {
                for job in &jobs {
                    self.note_not_started(job, &refused);
                }
            }
            // It is not known to be lost. The next renewal of the leases starts them too.
            Some(Owed::Start(_)) => tracing::warn!("jobs were not started: {refused}"),
            Some(Owed::Ack(job)) => self.acknowledge_again(work, job),
            Some(Owed::Aside) => {}
            Some(Owed::Subscribe) if refused.code == "NOTFOUND" => self.must_join = true,
            _ => return Err(refused.into()),
        }
        Ok(())
    }

    /// Ends the functions of those jobs of a start that were called back before it.
    fn note_started(&self, jobs: &[Job], replies: &Value) {
        for (job, reply) in jobs.iter().zip(replies.elements().unwrap_or_default()) {
            if let Value::Error(text) = reply {
                self.note_not_started(job, &Refused::of(text, false));
            }
        }
    }

    /// Ends the function of a job that was called back, or tells it that the task was cancelled.
    fn note_not_started(&self, job: &Job, refused: &Refused) {
        match &*refused.code {
            "STALE" => self.end(job),
            CANCELLED => self.crew.note_cancelled(job, &refused.message),
            _ => {}
        }
    }

    /// Takes a delivery, or drops the one that is called back.
    fn receive(&mut self, message: &[Value]) {
        let word = message.first().and_then(Value::as_bytes);
        if word == Some(b"recall") {
            let receipt = message.get(3).and_then(Value::as_bytes).unwrap_or_default();
            if let Some(job) = self.take_arrived(receipt) {
                self.crew.worker.tell(&job, Happening::Recalled);
            } else if let Some(running) = self.running.get_mut(&Name::from(receipt)) {
                running.is_called_back = true;
            }
            return;
        }
        if word == Some(b"cancel") {
            let text = |at: usize| message.get(at).and_then(Value::as_bytes).unwrap_or_default();
            self.note_cancelled(text(3), &String::from_utf8_lossy(text(4)));
            return;
        }
        let task = message.get(1).and_then(Task::read);
        let job = task.and_then(|task| Job::new(&self.crew.worker.client, task));
        let Some(job) = job.filter(|_| !self.is_stopping) else { return };
        self.arrivals += 1;
        let place = (self.rank(&job), self.arrivals);
        self.arrived.insert(place, (now(), job));
    }

    /// Tells the function of a job that the task was cancelled, or gives back a job that has none
    /// yet.
    fn note_cancelled(&mut self, receipt: &[u8], reason: &str) {
        if let Some(job) = self.crew.held.held(receipt) {
            self.crew.note_cancelled(&job, reason);
        }
        if let Some(job) = self.take_arrived(receipt) {
            self.crew.note_cancelled(&job, reason);
            self.free += 1;
            let words = Words::new("RELEASE").bytes(&job.queue).bytes(job.receipt());
            self.ask(&words, Owed::Aside);
        }
    }

    /// Removes and returns the job with this receipt, if it has arrived and was not started.
    fn take_arrived(&mut self, receipt: &[u8]) -> Option<Job> {
        let is_it = |job: &Job| job.receipt().as_bytes() == receipt;
        let at = self.arrived.iter().find(|(_, (_, job))| is_it(job)).map(|(at, _)| *at)?;
        self.arrived.remove(&at).map(|(_, job)| job)
    }

    /// Returns a number that is smaller for a job that its queue hands out sooner.
    fn rank(&self, job: &Job) -> i128 {
        let priority = i128::from(job.priority.unwrap_or_default());
        let place = (job.queue.clone(), job.member.clone());
        let Some(ageing) = self.ageing.get(&place) else { return priority };
        let put_at = job.put_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        i128::try_from(put_at).unwrap_or(i128::MAX).saturating_add(priority.saturating_mul(*ageing))
    }

    /// Ends the function of a job that was called back before it was started.
    fn end(&self, job: &Job) {
        if !self.crew.held.is_lost(job) {
            return;
        }
        tracing::warn!("the job {} of {} was called back", job.id, job.queue);
        if let Some(running) = self.running.get(job.receipt()) {
            running.end.abort();
        }
        self.crew.worker.tell(job, Happening::Lost);
    }

    fn acknowledge_again(&self, work: &mut Loop, job: Job) {
        let crew = Arc::clone(&self.crew);
        work.running.spawn(async move {
            crew.acknowledge(&job).await;
            crew.held.let_go(&job);
        });
    }

    /// Forgets the connection. What was not started is not ours, and the others are asked about.
    async fn lose(&mut self, work: &mut Loop) {
        self.arrived.clear();
        self.out.clear();
        for owed in std::mem::take(&mut self.owed) {
            match owed {
                Owed::Ack(job) => self.acknowledge_again(work, job),
                Owed::Start(jobs) => {
                    let request = Request::new(start_words(&jobs), Repeat::Safe);
                    match self.crew.worker.client.run(&request).await {
                        Ok(replies) => self.note_started(&jobs, &replies),
                        Err(error) if error.is("STALE") => {
                            for job in &jobs {
                                self.end(job);
                            }
                        }
                        Err(error) => {
                            let count = jobs.len();
                            tracing::warn!("{count} jobs are left to their leases: {error}");
                        }
                    }
                }
                Owed::Subscribe | Owed::Aside | Owed::Other => {}
            }
        }
    }
}

/// The command that starts jobs of one queue.
fn start_words(jobs: &[Job]) -> Words {
    let queue = jobs.first().map(|job| &job.queue);
    Words::new("START").all(queue).all(jobs.iter().map(Job::receipt))
}
