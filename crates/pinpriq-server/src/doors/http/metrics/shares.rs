//! Reads the metrics of shares, and of limits that several queues use together.
//!
//! Which shares there are is up to `monitor`. There is none of a queue that does not ask for it.

use pinpriq_proto::shares::ShareShown;
use pinpriq_proto::time::Span;

use super::labels::text_of;
use super::sight::Sight;
use super::table::{IN_MILLISECONDS, Reading, Tell, scaled};

/// Tells how many tasks are ready and taken.
pub(super) fn tasks(sight: &Sight, tell: Tell<'_>) {
    each_share(sight, |queue, share, shown| {
        for (state, count) in [("R", shown.ready), ("T", shown.taken)] {
            let labels = [("queue", queue), ("share", share), ("state", state)];
            tell(&labels, Reading::Whole(count));
        }
    });
}

/// Tells the age of the oldest ready task.
pub(super) fn oldest_ready(sight: &Sight, tell: Tell<'_>) {
    each_share(sight, |queue, share, shown| {
        if let Some(age) = shown.oldest_ready {
            tell(&[("queue", queue), ("share", share)], seconds(age));
        }
    });
}

/// Tells how many tasks were acknowledged or popped.
pub(super) fn acked(sight: &Sight, tell: Tell<'_>) {
    each_share(sight, |queue, share, shown| {
        tell(&[("queue", queue), ("share", share)], Reading::Whole(shown.acked));
    });
}

/// Tells how often tasks have failed.
pub(super) fn failures(sight: &Sight, tell: Tell<'_>) {
    each_share(sight, |queue, share, shown| {
        tell(&[("queue", queue), ("share", share)], Reading::Whole(shown.failed));
    });
}

/// Tells how many tasks are taken of the queues that use a limit.
pub(super) fn limit_taken(sight: &Sight, tell: Tell<'_>) {
    for limit in &sight.details.limits {
        tell(&[("limit", &text_of(&limit.name))], Reading::Whole(limit.taken));
    }
}

/// Tells how many tokens limits with a rate have.
pub(super) fn limit_tokens(sight: &Sight, tell: Tell<'_>) {
    for limit in &sight.details.limits {
        if let Some(tokens) = limit.tokens {
            tell(&[("limit", &text_of(&limit.name))], Reading::Signed(tokens));
        }
    }
}

/// Tells for how long limits were closed.
pub(super) fn limit_closed(sight: &Sight, tell: Tell<'_>) {
    for limit in &sight.details.limits {
        tell(&[("limit", &text_of(&limit.name))], seconds(limit.closed));
    }
}

/// Calls `look` for each share that has metrics, with the names of its queue and its own.
fn each_share(sight: &Sight, mut look: impl FnMut(&str, &str, &ShareShown)) {
    for (queue, shares) in &sight.details.shares {
        let queue = text_of(queue);
        for shown in shares {
            look(&queue, &text_of(&shown.share), shown);
        }
    }
}

fn seconds(span: Span) -> Reading {
    Reading::Real(scaled(span.ms(), IN_MILLISECONDS))
}
