//! The part of a survey that a user may see.

use std::sync::OnceLock;

use crate::users::{Right, Rights};
use pinpriq_proto::stats::Figures;
use pinpriq_proto::time::Span;

use super::Second;
use super::history::Sample;
use super::rates::Rates;
use super::survey::{Details, Survey};
use crate::facts::Facts;

/// Whether a user may look at every queue and at the server, so that they see all there is.
pub(crate) fn sees_all(rights: &Rights) -> bool {
    rights.is_admin() && rights.allows_all(Right::Look)
}

impl Survey {
    /// Returns what a user with these rights may see: the queues that they may look at, added up,
    /// and the server only if they may run it. Costs a step for each queue that is shown.
    pub(crate) fn seen_with(&self, rights: &Rights) -> Self {
        let mut seen =
            Self { steady_ms: self.steady_ms, is_whole: self.is_whole, ..Self::default() };
        if rights.is_admin() {
            (seen.facts, seen.connections) = (self.facts.clone(), self.connections);
        } else {
            seen.facts = Facts { now: self.facts.now, ..Facts::default() };
        }
        if rights.allows_all(Right::Look) {
            seen.totals = self.totals.clone();
            seen.shown = self.shown.clone();
            seen.others.clone_from(&self.others);
            return seen;
        }
        let may_look = |name: &[u8]| rights.allows(Right::Look, name);
        let shown = self.shown.iter().filter(|(name, _)| may_look(&name.queue));
        seen.shown = shown.map(|(name, shown)| (name.clone(), shown.clone())).collect();
        let mut totals = Figures::default();
        for shown in seen.shown.values() {
            totals.add(&shown.figures);
        }
        totals.queues = seen.shown.keys().filter(|name| name.lane.is_none()).count() as u64;
        seen.totals = totals;
        seen
    }
}

impl Details {
    /// What somebody with these rights may see of it.
    pub(crate) fn seen_with(&self, rights: &Rights) -> Self {
        let may_look = |name: &[u8]| rights.allows(Right::Look, name);
        let shares = self.shares.iter().filter(|(queue, _)| may_look(queue));
        let limits = self.limits.iter().filter(|limit| may_look(&limit.name));
        Self { shares: shares.cloned().collect(), limits: limits.cloned().collect() }
    }
}

impl Second {
    /// Returns what a user with these rights may see of it.
    pub(crate) fn seen_with(&self, rights: &Rights) -> Self {
        let survey = self.survey.seen_with(rights);
        let (looks_at_all, is_admin) = (rights.allows_all(Right::Look), rights.is_admin());
        let may_look = |name: &[u8]| rights.allows(Right::Look, name);
        let mut sample = if looks_at_all {
            self.sample
        } else {
            let mut rates = Rates::default();
            for own in survey.shown.values().filter_map(|it| it.rates) {
                rates.add(own);
            }
            Sample {
                at: self.sample.at,
                counts: survey.totals.counters.counts,
                rates,
                oldest_ready_ms: survey.oldest_ready().map(Span::ms),
                dead_letters: survey.dead_letters(),
                ..Sample::default()
            }
        };
        if !is_admin {
            sample.commit_ms = None;
        }
        let of_queues = self.of_queues.iter().filter(|(name, _)| may_look(name));
        Self {
            survey: survey.into(),
            sample,
            writes: if is_admin { self.writes } else { 0.0 },
            of_queues: of_queues.map(|(name, it)| (name.clone(), it.clone())).collect(),
            keeps_news: self.keeps_news,
            news: self.news.iter().filter(|it| may_look(&it.queue)).cloned().collect(),
            notices: self.notices.clone(),
            told: OnceLock::new(),
        }
    }
}
