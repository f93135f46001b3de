//! Makes surveys: asks shard by shard, page by page, and remembers which queues are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::shares::SharesLook;
use pinpriq_proto::stats::Figures;
use pinpriq_proto::survey::{QueueNews, Surveyed};
use pinpriq_proto::task::Bytes;
use pinpriq_proto::time::{Span, Timestamp};
use tokio::sync::oneshot;

use super::rates::Rates;
use super::survey::{Details, Others, Shown, Survey};
use crate::clock::steady_ms;
use crate::facts::Facts;
use crate::host::shard::Shard;
use crate::letters::letter::{Inquiry, Letter, Part, SurveyPart, SurveyWanted};
use crate::letters::mailbox::{Mailbox, Route};
use crate::letters::owners::Owners;
use crate::sharding::Sharding;

/// The most figures that a letter asks for. A shard does nothing else while it collects them.
const FIGURES_MAX: usize = 64;

/// The most queues that a letter looks for.
const NAMES_MAX: usize = 256;

/// The most news of queues that a shard keeps until the next survey.
const NEWS_MAX: usize = 1_000;

/// Of how many queues of a shard the shares have metrics. Half of those that an engine follows at
/// once, so that others can be looked at.
const METERED_MAX: usize = 32;

/// How often the tasks of such queues are counted on for one answer, in each shard.
const COUNTS_MAX: usize = 64;

/// The most limits that are shown.
const LIMITS_MAX: usize = 1_000;

/// The most limits that a letter asks for.
const LIMITS_PER_LETTER: usize = 64;

/// How long a shard that may have moved away is waited for.
const PATIENCE: Span = Span::from_ms(2_000);

/// What a survey is made of: the place that asks, and where all places find their letters.
pub(crate) struct Sight {
    pub(crate) shard: Rc<Shard>,
    pub(crate) sharding: Sharding,
    pub(crate) boxes: Arc<[Mailbox]>,
    /// Returns the number of connections.
    pub(crate) connections: Box<dyn Fn() -> usize>,
}

/// Makes one survey after another.
pub(crate) struct Surveyor {
    sight: Sight,
    /// The most queues and lanes that are shown.
    shown_max: usize,
    others: Others,
    /// The former whole survey.
    former: BTreeMap<Surveyed, Figures>,
    former_ms: u64,
    /// For each shard, after which queue to look for those that are not shown.
    looked_for: Vec<Option<Surveyed>>,
}

/// What one survey has found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) survey: Survey,
    /// The figures of the queues with viewers.
    pub(crate) of_queues: Vec<(Bytes, Option<Figures>)>,
    pub(crate) news: Vec<QueueNews>,
    pub(crate) news_were_lost: bool,
    /// The most news of queues that a shard keeps until the next survey.
    news_max: usize,
}

impl Surveyor {
    /// Returns a surveyor of the server with this place, which shows at most this many queues.
    pub(crate) fn new(sight: Sight, shown_max: usize) -> Self {
        let looked_for = vec![None; sight.sharding.shards()];
        Self {
            sight,
            shown_max,
            others: Others::default(),
            former: BTreeMap::new(),
            former_ms: 0,
            looked_for,
        }
    }

    /// Returns the moment of a survey for charts, which go on while the time of the tasks stands.
    pub(crate) fn charted_at(&self, survey: &Survey) -> Timestamp {
        let shard = &self.sight.shard;
        if shard.look().is_some() { shard.clock().now() } else { survey.facts.now }
    }

    /// Surveys totals and these queues.
    pub(crate) async fn totals(&mut self, queues: &[Bytes]) -> Found {
        let mut found = self.begin(0).await;
        for shard in self.shards() {
            self.ask_for(shard, queues, &mut found).await;
        }
        found
    }

    /// Surveys these queues and all that are shown. Collects news of queues if there is a listener.
    pub(crate) async fn whole(&mut self, queues: &[Bytes], listens: bool) -> Found {
        let mut found = self.begin(if listens { NEWS_MAX } else { 0 }).await;
        found.survey.is_whole = true;
        let mut shown = BTreeMap::new();
        for shard in self.shards() {
            self.ask_for(shard, queues, &mut found).await;
            let known: Vec<Surveyed> =
                self.former.keys().filter(|it| self.is_of(it, shard)).cloned().collect();
            self.figures_of(shard, known, &mut shown, &mut found).await;
        }
        for shard in self.shards() {
            let room = self.shown_max.saturating_sub(shown.len());
            if room > 0 {
                let new = self.look_for(shard, room, &shown, &mut found).await;
                self.figures_of(shard, new, &mut shown, &mut found).await;
            }
        }
        self.conclude(shown, &mut found.survey);
        found
    }

    /// Returns the topics of the lanes that are there, and the news of queues that came with them.
    pub(crate) async fn topics(&self, listens: bool) -> (BTreeSet<Bytes>, Found) {
        let mut topics = BTreeSet::new();
        let news_max = if listens { NEWS_MAX } else { 0 };
        let mut found = Found { news_max, ..Found::default() };
        for shard in self.shards() {
            // Lanes come after all queues.
            let first = Surveyed { lane: Some((0, Bytes::from([]))), queue: Bytes::from([]) };
            let mut after = Some(first);
            while after.is_some() {
                let names = Some((after.take(), NAMES_MAX));
                let wanted = found.wants(Vec::new(), names);
                let Some(mut part) = self.ask(shard, wanted).await else { break };
                let page = std::mem::take(&mut part.page);
                found.hear(part);
                after = page.next;
                topics.extend(page.names.into_iter().map(|it| it.queue));
            }
        }
        (topics, found)
    }

    /// Looks at what only metrics tell.
    pub(crate) async fn details(&self, survey: &Survey) -> Details {
        let mut details = Details::default();
        for shard in self.shards() {
            // A shard that gives no answer is not asked for the rest.
            if self.shares_of(shard, survey, &mut details).await.is_some() {
                self.limits_of(shard, &mut details).await;
            }
        }
        details
    }

    async fn shares_of(&self, shard: usize, survey: &Survey, details: &mut Details) -> Option<()> {
        let is_of = |queue: &&Bytes| self.sight.sharding.shard_of(queue) == shard;
        let mut counts = COUNTS_MAX;
        for queue in survey.metered.iter().filter(is_of).take(METERED_MAX) {
            loop {
                let found = self.inquire(shard, Inquiry::Shares(queue.clone())).await?;
                match found {
                    Part::Shares(SharesLook::Counting) if counts > 0 => {
                        counts -= 1;
                        continue;
                    }
                    Part::Shares(SharesLook::Known(shares)) => {
                        details.shares.push((queue.clone(), shares));
                    }
                    _ => {}
                }
                break;
            }
        }
        Some(())
    }

    async fn limits_of(&self, shard: usize, details: &mut Details) {
        let mut after = Bytes::default();
        while details.limits.len() < LIMITS_MAX {
            let wanted = Inquiry::Limits(after, LIMITS_PER_LETTER);
            let Some(Part::Limits(limits)) = self.inquire(shard, wanted).await else { return };
            let Some(last) = limits.last() else { return };
            after = last.name.clone();
            details.limits.extend(limits);
        }
        details.limits.truncate(LIMITS_MAX);
    }

    async fn begin(&self, news_max: usize) -> Found {
        let survey = Survey {
            steady_ms: steady_ms(),
            facts: self.facts().await,
            connections: (self.sight.connections)(),
            ..Survey::default()
        };
        Found { survey, news_max, ..Found::default() }
    }

    /// Compares with the former survey, which this one takes the place of.
    fn conclude(&mut self, shown: BTreeMap<Surveyed, Figures>, survey: &mut Survey) {
        let passed_ms = survey.steady_ms.saturating_sub(self.former_ms);
        let mut sum = Figures::default();
        for (name, figures) in &shown {
            sum.add(figures);
            let former = self.former.get(name);
            // A queue that came to be anew has counted less than before.
            let (same, anew) = match former {
                Some(former) if former.counters.put > figures.counters.put => (None, Some(former)),
                former => (former, None),
            };
            match (same, anew) {
                (Some(_), _) => {}
                (None, Some(former)) => self.others.end(&former.counters),
                (None, None) => self.others.begin(&figures.counters),
            }
            let rates = same.map(|it| Rates::between(&it.counters, &figures.counters, passed_ms));
            survey.shown.insert(name.clone(), Shown { figures: figures.clone(), rates });
        }
        for (name, former) in &self.former {
            if !shown.contains_key(name) {
                self.others.end(&former.counters);
            }
        }
        let others = self.others.figures(&survey.totals, &sum);
        let are_all_shown = shown.len() < self.shown_max;
        survey.others = (!are_all_shown).then_some(others);
        (self.former, self.former_ms) = (shown, survey.steady_ms);
    }

    /// Asks a shard for its totals, and for those of these queues that it has.
    async fn ask_for(&self, shard: usize, queues: &[Bytes], found: &mut Found) {
        let own: Vec<Surveyed> = queues
            .iter()
            .map(|queue| Surveyed { lane: None, queue: queue.clone() })
            .filter(|it| self.is_of(it, shard))
            .collect();
        let mut is_first = true;
        for own in chunks(own) {
            let names: Vec<Bytes> = own.iter().map(|it| it.queue.clone()).collect();
            let wanted = found.wants(own, None);
            let Some(part) = self.ask(shard, wanted).await else { return found.miss() };
            if std::mem::replace(&mut is_first, false) {
                found.survey.totals.add(&part.totals);
            }
            found.of_queues.extend(names.into_iter().zip(part.figures.iter().cloned()));
            found.hear(part);
        }
    }

    async fn figures_of(
        &self,
        shard: usize,
        names: Vec<Surveyed>,
        shown: &mut BTreeMap<Surveyed, Figures>,
        found: &mut Found,
    ) {
        if names.is_empty() {
            return;
        }
        for figures_of in chunks(names) {
            let names = figures_of.clone();
            let wanted = found.wants(figures_of, None);
            let Some(mut part) = self.ask(shard, wanted).await else { return found.miss() };
            found.survey.metered.append(&mut part.metered);
            let figures = std::mem::take(&mut part.figures);
            let known = names.into_iter().zip(figures);
            shown.extend(known.filter_map(|(name, figures)| Some((name, figures?))));
            found.hear(part);
        }
    }

    /// Looks for queues that are not shown, on one page further than the last time.
    async fn look_for(
        &mut self,
        shard: usize,
        room: usize,
        shown: &BTreeMap<Surveyed, Figures>,
        found: &mut Found,
    ) -> Vec<Surveyed> {
        let after = self.looked_for.get_mut(shard).and_then(Option::take);
        let wanted = found.wants(Vec::new(), Some((after, NAMES_MAX)));
        let Some(mut part) = self.ask(shard, wanted).await else { return Vec::new() };
        let page = std::mem::take(&mut part.page);
        found.hear(part);
        if let Some(looked_for) = self.looked_for.get_mut(shard) {
            *looked_for = page.next;
        }
        page.names.into_iter().filter(|it| !shown.contains_key(it)).take(room).collect()
    }

    async fn ask(&self, shard: usize, wanted: SurveyWanted) -> Option<SurveyPart> {
        match self.inquire(shard, Inquiry::Survey(wanted)).await? {
            Part::Survey(part) => Some(*part),
            _ => None,
        }
    }

    /// Asks a place. A shard of a cluster that has just moved to another node gives no answer.
    async fn inquire(&self, place: usize, inquiry: Inquiry) -> Option<Part> {
        let (answer, answered) = oneshot::channel();
        self.sight.boxes[place].put(&mut vec![Letter::Inquiry(inquiry, answer)]);
        let shard = &self.sight.shard;
        if shard.post().is_none_or(|post| !post.changes_owners()) {
            return answered.await.ok();
        }
        let clock = shard.clock();
        tokio::select! {
            part = answered => part.ok(),
            () = clock.until(clock.now().after(PATIENCE)) => None,
        }
    }

    /// Returns the facts about all places of this process.
    async fn facts(&self) -> Facts {
        let shard = &self.sight.shard;
        let owners = shard.post().and_then(|post| post.owners());
        let mut all = Facts { cluster: owners.map(Owners::facts), ..shard.facts() };
        let places = match owners {
            Some(_) => self.shards(),
            None => (0..shard.places()).filter(|place| *place != shard.own()).collect(),
        };
        for place in places {
            if let Some(Part::Facts(facts)) = self.inquire(place, Inquiry::Facts).await {
                all = all.and(*facts);
            }
        }
        all
    }

    /// Returns the shards of this process.
    fn shards(&self) -> Vec<usize> {
        let shard = &self.sight.shard;
        let is_here = |it: &usize| shard.post().is_none_or(|post| post.route(*it) == Route::Here);
        (0..shard.shards()).filter(is_here).collect()
    }

    fn is_of(&self, name: &Surveyed, shard: usize) -> bool {
        self.sight.sharding.shard_of(&name.queue) == shard
    }
}

impl Found {
    /// Notes that a shard gave no answer. Its news may be gone with it.
    const fn miss(&mut self) {
        self.news_were_lost |= self.news_max > 0;
    }

    fn wants(
        &self,
        figures_of: Vec<Surveyed>,
        names: Option<(Option<Surveyed>, usize)>,
    ) -> SurveyWanted {
        SurveyWanted { figures_of, names, news_max: self.news_max }
    }

    fn hear(&mut self, part: SurveyPart) {
        self.news.extend(part.news);
        self.news_were_lost |= part.news_were_lost;
    }
}

/// Splits names into letters, at least one.
fn chunks(names: Vec<Surveyed>) -> Vec<Vec<Surveyed>> {
    if names.is_empty() {
        return vec![names];
    }
    names.chunks(FIGURES_MAX).map(<[Surveyed]>::to_vec).collect()
}
