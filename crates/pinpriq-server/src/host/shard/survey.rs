//! The shard's part of a survey of all queues. Who surveys, and why, is up to `monitor`.

use super::Shard;
use crate::letters::letter::{SurveyPart, SurveyWanted};

impl Shard {
    /// Returns the figures that a survey wants.
    pub(crate) fn survey(&self, wanted: &SurveyWanted) -> SurveyPart {
        let now = self.clock.now();
        let durable = &mut self.state.borrow_mut().durable;
        let (news, news_were_lost) = durable.take_queue_news();
        durable.keep_queue_news(wanted.news_max);
        let engine = durable.engine();
        let page =
            wanted.names.as_ref().map(|(after, count)| engine.surveyed(after.as_ref(), *count));
        SurveyPart {
            totals: engine.total_figures(),
            figures: wanted.figures_of.iter().map(|it| engine.figures_of(now, it)).collect(),
            page: page.unwrap_or_default(),
            news,
            news_were_lost,
        }
    }
}
