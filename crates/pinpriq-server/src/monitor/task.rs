//! Runs a monitor: a survey each second, and more on request.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use pinpriq_proto::stats::{Counters, Figures};
use pinpriq_proto::survey::QueueNews;
use pinpriq_proto::task::{Bytes, StateKind};
use pinpriq_proto::time::{Span, Timestamp};

use super::history::Sample;
use super::rates::{Rates, per_second, ratio};
use super::round::{Found, Sight, Surveyor};
use super::survey::Survey;
use super::{Asks, Detailed, Monitor, Notice, QueueSecond, Second};
use crate::clock::steady_ms;
use crate::stop::Stop;

/// How long a second is.
const SECOND: Span = Span::from_ms(1_000);

/// A survey that is younger than this is used again.
const FRESH_MS: u64 = 900;

/// Runs the monitor of the server with this place until the server stops. Metrics and events show
/// at most this many queues and lanes one by one.
pub(crate) async fn run(
    (sight, stop): (Sight, Stop),
    (monitor, mut asks): (Arc<Monitor>, Asks),
    shown_max: usize,
) {
    let shard = sight.shard.clone();
    let mut runner = Runner {
        surveyor: Surveyor::new(sight, shown_max),
        monitor,
        details: None,
        former: None,
        former_queues: HashMap::new(),
        news: Vec::new(),
        news_were_lost: false,
        keeps_news: false,
        has_failed: false,
    };
    let clock = shard.clock();
    let mut next = clock.now();
    loop {
        let is_tick = tokio::select! {
            biased;
            () = stop.asked_for() => break,
            () = clock.until(next) => true,
            Some(answer) = asks.for_topics.recv() => {
                // The caller gave up if the other end is gone.
                let _ = answer.send(runner.topics().await);
                false
            }
            Some(()) = asks.woken.recv() => {
                runner.fresh().await;
                false
            }
            Some(answer) = asks.for_details.recv() => {
                // The caller gave up if the other end is gone.
                let _ = answer.send(runner.details().await);
                false
            }
        };
        if is_tick {
            tokio::select! {
                () = runner.tick() => {}
                () = stop.asked_for() => break,
            }
            // A second that took too long is not made up for.
            next = next.after(SECOND).max(clock.now());
        }
    }
    runner.end();
}

struct Runner {
    surveyor: Surveyor,
    monitor: Arc<Monitor>,
    /// What metrics tell besides, and the survey that was made before.
    details: Option<Detailed>,
    /// The survey of the second before.
    former: Option<Arc<Survey>>,
    /// The figures of the queues with viewers, of the second before.
    former_queues: HashMap<Bytes, Figures>,
    /// The news that were not told yet.
    news: Vec<QueueNews>,
    news_were_lost: bool,
    /// Whether the shards keep news since the last survey.
    keeps_news: bool,
    /// Whether the failure of the store was reported.
    has_failed: bool,
}

impl Runner {
    /// Returns a survey of all shown queues that is not old.
    async fn fresh(&mut self) -> Arc<Survey> {
        let (latest, listens) = {
            let state = self.monitor.state();
            (state.latest_whole.clone(), state.listeners > 0)
        };
        if let Some(latest) = latest
            && (self.keeps_news || !listens)
            && steady_ms().saturating_sub(latest.steady_ms) < FRESH_MS
        {
            return latest;
        }
        self.keeps_news = listens;
        let found = self.surveyor.whole(&[], listens).await;
        self.hear(found.news, found.news_were_lost);
        let survey = Arc::new(found.survey);
        self.monitor.state().latest_whole = Some(survey.clone());
        survey
    }

    /// Returns what metrics tell, which is as old as a survey may be.
    async fn details(&mut self) -> Detailed {
        let survey = self.fresh().await;
        if let Some(known) = &self.details
            && Arc::ptr_eq(&known.0, &survey)
        {
            return known.clone();
        }
        let details = Arc::new(self.surveyor.details(&survey).await);
        self.details.insert((survey, details)).clone()
    }

    async fn topics(&mut self) -> BTreeSet<Bytes> {
        let (topics, found) = self.surveyor.topics(self.keeps_news).await;
        self.hear(found.news, found.news_were_lost);
        topics
    }

    fn hear(&mut self, news: Vec<QueueNews>, were_lost: bool) {
        self.news.extend(news);
        self.news_were_lost |= were_lost;
    }

    /// Surveys, and tells what has happened in the second before.
    async fn tick(&mut self) {
        let (queues, is_wished, listens) = {
            let mut state = self.monitor.state();
            state.forget_queues();
            let queues: Vec<Bytes> = state.of_queues.keys().cloned().collect();
            (queues, state.is_wished(), state.listeners > 0)
        };
        self.keeps_news = listens;
        let found = if is_wished {
            self.surveyor.whole(&queues, listens).await
        } else {
            self.surveyor.totals(&queues).await
        };
        let Found { survey, of_queues, news, news_were_lost, .. } = found;
        self.hear(news, news_were_lost);
        let second = self.second(Arc::new(survey), of_queues);
        self.tell(second);
    }

    fn second(&mut self, survey: Arc<Survey>, of_queues: Vec<(Bytes, Option<Figures>)>) -> Second {
        let former = self.former.replace(survey.clone());
        let former = former.unwrap_or_else(|| survey.clone());
        let passed_ms = survey.steady_ms.saturating_sub(former.steady_ms);
        let at = self.surveyor.charted_at(&survey);
        let (journal, journal_before) = (&survey.facts.figures, &former.facts.figures);
        let commits = journal.commit_us.count().saturating_sub(journal_before.commit_us.count());
        let commit_us = journal.commit_us.sum().saturating_sub(journal_before.commit_us.sum());
        let mut sample = sample(at, (&former.totals.counters, &survey.totals.counters), passed_ms);
        sample.oldest_ready_ms = survey.oldest_ready().map(Span::ms);
        sample.dead_letters = survey.dead_letters();
        sample.commit_ms = (commits > 0).then(|| ratio(commit_us, commits * 1_000));
        let before = std::mem::take(&mut self.former_queues);
        let mut seconds = HashMap::new();
        for (queue, figures) in of_queues {
            let second = figures.map(|figures| {
                let counters = &figures.counters;
                let before = before.get(&queue).map_or(counters, |it| &it.counters);
                let mut sample = sample_of(at, (before, &figures), passed_ms);
                sample.waited_ms = waited_ms(before, counters);
                self.former_queues.insert(queue.clone(), figures.clone());
                QueueSecond { figures, sample }
            });
            seconds.insert(queue, second);
        }
        Second {
            writes: per_second(journal_before.writes, journal.writes, passed_ms),
            sample,
            of_queues: seconds,
            keeps_news: self.keeps_news,
            news: std::mem::take(&mut self.news),
            notices: self.notices(&survey),
            told: OnceLock::new(),
            survey,
        }
    }

    fn notices(&mut self, survey: &Survey) -> Vec<Notice> {
        let mut notices = Vec::new();
        let failure = survey.facts.failure.as_ref();
        if let Some(failure) = failure.filter(|_| !self.has_failed) {
            notices
                .push(Notice { code: "STORE", text: format!("the store has failed: {failure}") });
        }
        self.has_failed = failure.is_some();
        if std::mem::take(&mut self.news_were_lost) {
            let text = "so many queues have come and gone that some are left out here".to_owned();
            notices.push(Notice { code: "LOST", text });
        }
        notices
    }

    fn tell(&self, second: Second) {
        let mut state = self.monitor.state();
        state.history.add(second.sample);
        for (queue, of_queue) in &second.of_queues {
            let one = state.of_queues.get_mut(queue);
            if let Some(history) = one.and_then(|one| one.history.as_mut()) {
                let gone = Sample { at: second.sample.at, ..Sample::default() };
                history.add(of_queue.as_ref().map_or(gone, |it| it.sample));
            }
        }
        if second.survey.is_whole {
            state.latest_whole = Some(second.survey.clone());
        }
        let second = Arc::new(second);
        state.latest = Some(second.clone());
        if let Some(seconds) = &state.seconds {
            // There may be no listener.
            let _ = seconds.send(second);
        }
    }

    /// Tells those who listen that the server stops.
    fn end(&self) {
        let mut state = self.monitor.state();
        let seconds = state.seconds.take();
        if let (Some(seconds), Some(latest)) = (seconds, &state.latest) {
            let mut last = latest.without_news();
            let text = "the server is stopping".to_owned();
            last.notices.push(Notice { code: "CLOSING", text });
            let _ = seconds.send(Arc::new(last));
        }
    }
}

fn sample(at: Timestamp, (before, after): (&Counters, &Counters), passed_ms: u64) -> Sample {
    let rates = Rates::between(before, after, passed_ms);
    Sample { at, rates, counts: after.counts, ..Sample::default() }
}

fn sample_of(at: Timestamp, (before, after): (&Counters, &Figures), passed_ms: u64) -> Sample {
    let oldest_ready_ms = after.oldest_ready.map(Span::ms);
    let ready = after.counters.count(StateKind::Ready);
    let dead_letters = if after.holds_dead_letters { ready } else { 0 };
    Sample { oldest_ready_ms, dead_letters, ..sample(at, (before, &after.counters), passed_ms) }
}

/// Returns for how long the tasks that were taken meanwhile had been ready, on average.
fn waited_ms(before: &Counters, after: &Counters) -> Option<f64> {
    let read = |it: &Counters| {
        it.times.as_ref().map_or((0, 0), |times| (times.waited.count(), times.waited.sum_ms))
    };
    let ((count_before, sum_before), (count, sum)) = (read(before), read(after));
    let count = count.checked_sub(count_before).filter(|count| *count > 0)?;
    Some(ratio(sum.saturating_sub(sum_before), count))
}
