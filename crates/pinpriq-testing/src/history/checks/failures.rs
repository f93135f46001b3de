//! MISCOUNTED: a failure that was the last one too early, or not although it had to be.
//!
//! How often a task has failed is known within bounds. At least as often as clients were told so;
//! at most once for each of its leases, and for each take whose answer was lost.

use crate::history::book::Book;
use crate::history::lease::{Deed, Fate, Handed, Span, Wish};
use crate::history::report::{Report, Verdict};
use crate::history::routes::Policy;
use crate::history::shelf::Task;

/// Whether a failure has brought a task back into its queue, perhaps after a wait.
pub(super) const fn returned(deed: &Deed) -> bool {
    matches!(deed.fate, Fate::Accepted | Fate::Waiting)
}

/// For each delivery, how often its task had failed before at least, where it was.
pub(super) fn least_failures(book: &Book, task: &Task) -> Vec<u64> {
    let mut least = Vec::with_capacity(task.handed.len());
    let mut count = 0;
    let mut before: Option<&Handed> = None;
    for handed in &task.handed {
        if let Some(before) = before {
            let same = before.station == handed.station
                && before.span.is_before(handed.span)
                && !may_be_reset(book, task.queue_of(handed));
            count = match before.only_ender().filter(|_| same) {
                Some(deed) if returned(deed) => match deed.wish {
                    Wish::Fail { .. } => count + 1,
                    Wish::Release { .. } => count,
                    // What is dug up has never failed.
                    Wish::Ack | Wish::Bury | Wish::Touch { .. } => 0,
                },
                _ => 0,
            };
        }
        least.push(count);
        before = Some(handed);
    }
    least
}

/// Whether a task of a queue may be buried and dug up again without anybody's notice: by the end of
/// the lease of a take whose answer was lost. Then its failures are forgotten.
fn may_be_reset(book: &Book, queue: usize) -> bool {
    let mut policies = book.routes.policies_of(queue).iter();
    !book.queues[queue].hidden.is_empty() && policies.any(Policy::may_bury)
}

/// The takes of a queue whose answer was lost.
struct Unheard {
    /// Their beginnings, in order.
    from_us: Vec<u64>,
    /// Their ends, in order.
    to_us: Vec<u64>,
}

impl Unheard {
    fn of(spans: &[Span]) -> Self {
        let mut from_us: Vec<u64> = spans.iter().map(|span| span.from_us).collect();
        let mut to_us: Vec<u64> = spans.iter().map(|span| span.to_us).collect();
        from_us.sort_unstable();
        to_us.sort_unstable();
        Self { from_us, to_us }
    }

    /// How many may have been carried out in this time.
    fn within(&self, span: Span) -> u64 {
        let begun = self.from_us.partition_point(|from_us| *from_us <= span.to_us);
        let over = self.to_us.partition_point(|to_us| *to_us < span.from_us);
        u64::try_from(begun.saturating_sub(over)).unwrap_or(u64::MAX)
    }
}

pub(super) fn check(book: &Book, report: &mut Report) {
    let unheard: Vec<Unheard> = book.queues.iter().map(|it| Unheard::of(&it.hidden)).collect();
    for task in book.tasks.iter().filter(|task| !task.several && !task.foreign) {
        // For each station the first delivery. When the task arrived there is not certain.
        let mut firsts: Vec<Option<usize>> = vec![None; task.stations.len()];
        let put_us = task.entry.as_ref().map_or(0, |entry| entry.span.from_us);
        let least = least_failures(book, task);
        for (place, (handed, least)) in task.handed.iter().zip(least).enumerate() {
            let first = *firsts[handed.station].get_or_insert(place);
            let unheard = &unheard[task.queue_of(handed)];
            for deed in handed.deeds.iter().filter(|deed| is_failure(deed)) {
                let time = Span { from_us: put_us, to_us: deed.span.to_us };
                let begun = task.handed.partition_point(|it| it.span.from_us <= time.to_us);
                let heard = u64::try_from(begun.saturating_sub(first)).unwrap_or(u64::MAX);
                let most = unheard.within(time).saturating_add(heard);
                judge(book, task, handed, deed, (least + 1, most), report);
            }
        }
    }
}

fn is_failure(deed: &Deed) -> bool {
    matches!(deed.wish, Wish::Fail { .. }) && deed.is_accepted()
}

/// Judges a failure that was at least and at most the one of these numbers.
fn judge(
    book: &Book,
    task: &Task,
    handed: &Handed,
    deed: &Deed,
    (least, most): (u64, u64),
    report: &mut Report,
) {
    if book.disturbed_us(task) <= deed.span.to_us {
        return;
    }
    let policies = book.routes.policies_in(task.queue_of(handed), deed.span);
    let mut attempts = policies.iter().map(|policy| policy.attempts.unwrap_or(u64::MAX));
    let may_expire = has_ttl(task);
    let why = match deed.fate {
        Fate::Accepted | Fate::Waiting if attempts.all(|allowed| allowed <= least) => {
            format!("and that was at least its failure {least}")
        }
        Fate::Buried if attempts.all(|allowed| allowed > most) => {
            format!("and that was at most its failure {most}")
        }
        Fate::Left | Fate::Gone if !may_expire && attempts.all(|allowed| allowed > most) => {
            format!("and that was at most its failure {most}")
        }
        _ => return,
    };
    let state = match deed.fate {
        Fate::Waiting => "W",
        Fate::Buried => "B",
        Fate::Left | Fate::Gone => "X",
        _ => "R",
    };
    let (name, at_us) = (book.name_of(task, handed), deed.span.to_us);
    let detail = format!("{name} failed at {at_us} us, turned {state}, {why}");
    report.object(Verdict::Miscounted, detail);
}

/// Whether a task may have had a time to live. That of an unknown put is unknown.
fn has_ttl(task: &Task) -> bool {
    let entry = task.entry.as_ref().filter(|entry| !entry.ambiguous);
    let renews = |deed: &Deed| matches!(deed.wish, Wish::Release { ttl_us: Some(_), .. });
    let mut deeds = task.handed.iter().flat_map(|handed| &handed.deeds);
    task.changed || entry.is_none_or(|entry| entry.ttl_us.is_some()) || deeds.any(renews)
}
