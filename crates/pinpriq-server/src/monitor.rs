//! Watches the server for those who look at it from outside: its figures each second, the last 15
//! minutes of them, and what becomes of queues.
//!
//! It runs where HTTP does, and asks the shards by letters that are small enough that no client
//! notices. Without a viewer it asks each second for totals only. How its figures are
//! told is up to the doors.

pub(crate) mod history;
pub(crate) mod rates;
pub(crate) mod round;
pub(crate) mod seen;
pub(crate) mod survey;
mod task;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pinpriq_proto::survey::QueueNews;
use pinpriq_proto::task::Bytes;
use tokio::sync::{broadcast, mpsc, oneshot};

use self::history::{History, Sample};
use self::rates::Rates;
pub(crate) use self::round::Sight;
use self::survey::{Details, Survey};
pub(crate) use self::task::run;
use crate::clock::steady_ms;

/// How many seconds a slow listener may be behind before it loses some.
const BEHIND_MAX: usize = 4;

/// How many requests for a survey may wait.
const ASKS_MAX: usize = 64;

/// For how long after the last look the figures of all shown queues are surveyed each second.
const INTEREST_MS: u64 = 15 * 60 * 1_000;

/// How many queues have a history of their own.
const HISTORIES_MAX: usize = 64;

/// A survey, and what metrics tell besides.
pub(crate) type Detailed = (Arc<Survey>, Arc<Details>);

/// Watches the server. Requests on any thread share it.
#[derive(Debug)]
pub(crate) struct Monitor {
    asks: mpsc::Sender<oneshot::Sender<Detailed>>,
    asks_for_topics: mpsc::Sender<oneshot::Sender<BTreeSet<Bytes>>>,
    /// Asks for a survey that nobody waits for.
    nudges: mpsc::Sender<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The receivers have gone when the server stops.
    seconds: Option<broadcast::Sender<Arc<Second>>>,
    latest: Option<Arc<Second>>,
    /// The latest survey that had the figures of all shown queues.
    latest_whole: Option<Arc<Survey>>,
    history: History,
    of_queues: HashMap<Bytes, OneQueue>,
    listeners: usize,
    /// Until when there is interest, by the steady clock.
    interest_until_ms: u64,
}

/// A queue with a viewer.
#[derive(Debug, Default)]
struct OneQueue {
    listeners: usize,
    until_ms: u64,
    /// Its history, unless too many other queues have one.
    history: Option<History>,
}

/// What happened in a second.
#[derive(Debug)]
pub(crate) struct Second {
    pub(crate) survey: Arc<Survey>,
    /// All queues together.
    pub(crate) sample: Sample,
    /// How many writes the journal made.
    pub(crate) writes: f64,
    /// The queues with viewers, with their rates. One that does not exist has none.
    pub(crate) of_queues: HashMap<Bytes, Option<QueueSecond>>,
    /// Whether the shards keep news of queues since its survey.
    keeps_news: bool,
    /// What became of queues.
    pub(crate) news: Vec<QueueNews>,
    pub(crate) notices: Vec<Notice>,
    /// The text for clients who may see everything, written when the first one needs it.
    pub(crate) told: OnceLock<Arc<[u8]>>,
}

/// A queue in a second.
#[derive(Clone, Debug)]
pub(crate) struct QueueSecond {
    pub(crate) figures: pinpriq_proto::stats::Figures,
    pub(crate) sample: Sample,
}

/// Something that an operator should know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Notice {
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

/// What [`run`] answers.
pub(crate) struct Asks {
    for_details: mpsc::Receiver<oneshot::Sender<Detailed>>,
    for_topics: mpsc::Receiver<oneshot::Sender<BTreeSet<Bytes>>>,
    woken: mpsc::Receiver<()>,
}

impl Monitor {
    /// Returns a monitor, and what [`run`] needs to serve it.
    pub(crate) fn new() -> (Arc<Self>, Asks) {
        let (asks, for_details) = mpsc::channel(ASKS_MAX);
        let (asks_for_topics, for_topics) = mpsc::channel(ASKS_MAX);
        let (nudges, woken) = mpsc::channel(1);
        let asked = Asks { for_details, for_topics, woken };
        let (seconds, _) = broadcast::channel(BEHIND_MAX);
        let state = State {
            seconds: Some(seconds),
            latest: None,
            latest_whole: None,
            history: History::default(),
            of_queues: HashMap::new(),
            listeners: 0,
            interest_until_ms: 0,
        };
        let state = Mutex::new(state);
        (Arc::new(Self { asks, asks_for_topics, nudges, state }), asked)
    }

    /// Surveys the figures of all shown queues now, or returns a survey that is less than a second
    /// old, and what metrics tell besides. `None` if the server stops.
    pub(crate) async fn details(&self) -> Option<Detailed> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(answer).await.ok()?;
        answered.await.ok()
    }

    /// Returns the topics that have members. `None` if the server stops.
    pub(crate) async fn topics(&self) -> Option<BTreeSet<Bytes>> {
        let (answer, answered) = oneshot::channel();
        self.asks_for_topics.send(answer).await.ok()?;
        answered.await.ok()
    }

    /// Listens to what happens each second, and to one queue in particular if it is named.
    pub(crate) fn listen(self: &Arc<Self>, queue: Option<Bytes>) -> Option<Listening> {
        let mut state = self.state();
        let seconds = state.seconds.as_ref()?.subscribe();
        let latest = state.latest.clone();
        state.listeners += 1;
        if state.listeners == 1 {
            // News of queues are kept from the next survey on, which need not wait for its second.
            let _ = self.nudges.try_send(());
        }
        state.wish();
        if let Some(queue) = &queue {
            state.look_at(queue).listeners += 1;
        }
        drop(state);
        Some(Listening { monitor: self.clone(), seconds, latest, queue })
    }

    /// Returns the rates of a queue that is shown, if there is a viewer.
    pub(crate) fn rates_of(&self, queue: &[u8]) -> Option<Rates> {
        let state = self.state();
        let survey = state.latest_whole.as_ref()?;
        let is_recent = steady_ms().saturating_sub(survey.steady_ms) < 3_000;
        survey.rates_of(queue).filter(|_| is_recent)
    }

    /// Calls `look` with the history of all queues together, or of one of them. That of one begins
    /// when a viewer first looks at it; `None` if too many have one.
    pub(crate) fn history<T>(
        &self,
        queue: Option<&Bytes>,
        look: impl FnOnce(&History) -> T,
    ) -> Option<T> {
        let mut state = self.state();
        state.wish();
        match queue {
            None => Some(look(&state.history)),
            Some(queue) => state.look_at(queue).history.as_ref().map(look),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes that there is a viewer.
    fn wish(&mut self) {
        self.interest_until_ms = steady_ms() + INTEREST_MS;
    }

    /// Whether anybody has looked of late.
    fn is_wished(&self) -> bool {
        self.listeners > 0 || steady_ms() < self.interest_until_ms
    }

    fn look_at(&mut self, queue: &Bytes) -> &mut OneQueue {
        if !self.of_queues.contains_key(queue) {
            self.forget_queues();
        }
        let histories = self.of_queues.values().filter(|it| it.history.is_some()).count();
        let one = self.of_queues.entry(queue.clone()).or_default();
        if one.history.is_none() && histories < HISTORIES_MAX {
            one.history = Some(History::default());
        }
        one.until_ms = steady_ms() + INTEREST_MS;
        one
    }

    /// Forgets queues that are no longer looked at. There is always room for one more history,
    /// unless all belong to listeners.
    fn forget_queues(&mut self) {
        let now_ms = steady_ms();
        self.of_queues.retain(|_, one| one.listeners > 0 || one.until_ms > now_ms);
        if self.of_queues.len() >= HISTORIES_MAX {
            let idle = self.of_queues.iter().filter(|(_, one)| one.listeners == 0);
            let oldest = idle.min_by_key(|(_, one)| one.until_ms).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                self.of_queues.remove(&oldest);
            }
        }
    }
}

/// A listener to what happens each second.
#[derive(Debug)]
pub(crate) struct Listening {
    monitor: Arc<Monitor>,
    seconds: broadcast::Receiver<Arc<Second>>,
    /// The second before the first.
    latest: Option<Arc<Second>>,
    queue: Option<Bytes>,
}

impl Listening {
    /// The queue that is listened to in particular.
    pub(crate) const fn queue(&self) -> Option<&Bytes> {
        self.queue.as_ref()
    }

    /// Returns the next second: at first the one that has passed, if there was a listener already.
    /// A slow listener misses some. `None` when the server stops.
    pub(crate) async fn next(&mut self) -> Option<Arc<Second>> {
        if let Some(latest) = self.latest.take().filter(|it| self.suits(it)) {
            // Its news are those of before.
            return Some(Arc::new(latest.without_news()));
        }
        loop {
            match self.seconds.recv().await {
                Ok(second) if self.suits(&second) => return Some(second),
                // The survey of some began before anybody listened.
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Listening {
    /// Whether a second knows the queue, and nothing that happens after it will be missed. Notices
    /// are for all.
    fn suits(&self, second: &Second) -> bool {
        let has_queue = |queue: &Bytes| second.of_queues.contains_key(queue);
        let knows = second.keeps_news && self.queue.as_ref().is_none_or(has_queue);
        knows || !second.notices.is_empty()
    }
}

impl Second {
    fn without_news(&self) -> Self {
        Self {
            survey: self.survey.clone(),
            sample: self.sample,
            writes: self.writes,
            of_queues: self.of_queues.clone(),
            keeps_news: self.keeps_news,
            news: Vec::new(),
            notices: Vec::new(),
            told: OnceLock::new(),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.monitor.state();
        state.listeners -= 1;
        if let Some(one) = self.queue.as_ref().and_then(|queue| state.of_queues.get_mut(queue)) {
            one.listeners -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
