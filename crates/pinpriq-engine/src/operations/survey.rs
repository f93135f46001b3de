//! Surveys: names page by page, the figures of one queue or of all, and the news of queues.
//!
//! These are no commands. They change nothing and move no clock, so that a look costs a shard no
//! more than what it returns.

use crate::engine::Engine;
use crate::memory::slots::QueueSlot;
use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::stats::Figures;
use pinpriq_proto::survey::{QueueNews, SurveyPage, Surveyed};
use pinpriq_proto::time::Timestamp;

impl Engine {
    /// Returns the queues and lanes that exist, after this one. Looks at no more than `count`
    /// queues, some of which may have ceased to exist, so a page can be short without being the
    /// last one.
    #[must_use]
    pub fn surveyed(&self, after: Option<&Surveyed>, count: usize) -> SurveyPage {
        let lane = after.and_then(|it| Some(it.lane.as_ref()?.0));
        let name = after.map_or(&b""[..], |it| &it.queue);
        let is_after = |slot: &QueueSlot| after.is_none_or(|after| self.name_of(*slot) != *after);
        let mut slots = self.queues.onwards(lane, name).filter(is_after);
        let looked: Vec<QueueSlot> = slots.by_ref().take(count).collect();
        let has_more = slots.next().is_some();
        let last = looked.last().filter(|_| has_more);
        let next = last.map(|last| self.name_of(*last));
        let exist = looked.into_iter().filter(|slot| self.queues[*slot].exists());
        SurveyPage { names: exist.map(|slot| self.name_of(slot)).collect(), next }
    }

    /// Returns the figures of a queue or lane at this moment, if it exists.
    #[must_use]
    pub fn figures_of(&self, now: Timestamp, of: &Surveyed) -> Option<Figures> {
        let slot = match &of.lane {
            None => self.queues.find(&of.queue),
            Some((number, _)) => self.queues.find_lane(*number),
        };
        let slot = slot.filter(|slot| self.queues[*slot].exists())?;
        Some(self.queue_figures(slot, now.max(self.now)))
    }

    /// Keeps news of queues from now on, at most this number until they are taken, or none with 0.
    pub fn keep_queue_news(&mut self, most: usize) {
        self.queues.news.keep(most);
    }

    /// Returns the news since the last call, and whether some were left out.
    pub fn take_queue_news(&mut self) -> (Vec<QueueNews>, bool) {
        self.queues.news.take()
    }

    /// Whether a queue has metrics of its shares.
    #[must_use]
    pub fn has_share_metrics(&self, of: &Surveyed) -> bool {
        let slot = self.queues.find(&of.queue).filter(|_| of.lane.is_none());
        slot.is_some_and(|slot| self.queues[slot].settings.share_metrics.is_some())
    }

    /// Returns at most `count` limits with names after this one, as they are at this moment.
    #[must_use]
    pub fn limits_after(&self, now: Timestamp, name: &[u8], count: usize) -> Vec<LimitShown> {
        let now = now.max(self.now);
        self.named_limits.after(name).take(count).map(|limit| limit.shown(now)).collect()
    }

    fn name_of(&self, slot: QueueSlot) -> Surveyed {
        let queue = &self.queues[slot];
        let lane = queue.lane_name().map(|lane| (lane.number, lane.member.clone()));
        Surveyed { lane, queue: queue.name.clone() }
    }
}
