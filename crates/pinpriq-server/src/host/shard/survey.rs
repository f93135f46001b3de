//! The shard's part of a survey of all queues. Who surveys, and why, is up to `monitor`.

use pinpriq_proto::named_limits::LimitShown;
use pinpriq_proto::shares::SharesLook;

use super::{Asked, Shard};
use crate::letters::letter::{SurveyPart, SurveyWanted};

impl Shard {
    /// Returns the figures that a survey wants.
    pub(crate) fn survey(&self, wanted: &SurveyWanted) -> SurveyPart {
        let now = self.now();
        let durable = &mut self.state.borrow_mut().durable;
        let (news, news_were_lost) = durable.take_queue_news();
        durable.keep_queue_news(wanted.news_max);
        let engine = durable.engine();
        let page =
            wanted.names.as_ref().map(|(after, count)| engine.surveyed(after.as_ref(), *count));
        let metered = wanted.figures_of.iter().filter(|it| engine.has_share_metrics(it));
        SurveyPart {
            metered: metered.map(|it| it.queue.clone()).collect(),
            totals: engine.total_figures(),
            figures: wanted.figures_of.iter().map(|it| engine.figures_of(now, it)).collect(),
            page: page.unwrap_or_default(),
            news,
            news_were_lost,
        }
    }
    /// Looks for the shares of a queue that have metrics, and does what is due.
    pub(crate) fn look_at_shares(&self, queue: &[u8]) -> SharesLook {
        let now = self.now();
        let found = {
            let state = &mut *self.state.borrow_mut();
            self.tell_witness(now, state, || Asked::Timeout);
            state.durable.look_at_shares(now, queue)
        };
        self.turn();
        found
    }

    /// Returns at most `count` limits with names after this one.
    pub(crate) fn limits_after(&self, name: &[u8], count: usize) -> Vec<LimitShown> {
        let now = self.now();
        self.state.borrow().durable.engine().limits_after(now, name, count)
    }
}
