//! Converts what the store keeps to the types of the model, and compares the two. Which part of it
//! survives a crash is decided in `book`.

use std::borrow::Cow;

use crate::model::Survivors;
use pinpriq_proto::change::ScheduleRecord;
use pinpriq_proto::task::{LaneName, TaskRecord};
use pinpriq_proto::unique::WindowRecord;
use pinpriq_store::Fold;

use crate::sim::oracle::Oracle;

/// What the next server finds if the store has kept this.
pub(crate) fn survivors(fold: &Fold) -> Survivors {
    let mut kept = Survivors {
        members: fold.members.values().map(|(member, _)| member.clone()).collect(),
        queues: fold.queues.values().map(|(queue, _)| queue.clone()).collect(),
        schedules: fold.schedules.values().map(|(schedule, _)| schedule.clone()).collect(),
        windows: fold.details_of().cloned().collect(),
        own_shares: fold.details_of().cloned().collect(),
        named_limits: fold.details_of().cloned().collect(),
        batches: fold.details_of().cloned().collect(),
        lanes: fold.lanes.values().map(|(lane, _)| lane.clone()).collect(),
        ..Survivors::default()
    };
    let batches = fold.batches_by_name();
    for (number, (task, _)) in &fold.tasks {
        let Some(lane) = &task.lane else {
            let mut task = task.clone();
            let batch = task.batch().and_then(|name| batches.get(name));
            if batch.is_none_or(|batch| !batch.may_have(*number)) {
                task.set_batch(None);
            }
            kept.tasks.insert(*number, task);
            continue;
        };
        let Some((lane, _)) = fold.lanes.get(&lane.number) else { continue };
        let member = fold.members.get(&lane.member).map(|(member, _)| member.name.clone());
        let member = member.unwrap_or_default();
        let mut whole = TaskRecord {
            queue: lane.topic.clone(),
            lane: Some(LaneName { number: lane.number, member }),
            shared: false,
            ..task.clone()
        };
        let published = fold.publications.range(..=number).next_back();
        if let Some((first, (published, _))) = published.filter(|_| task.shared) {
            let content = published.payload.len() + published.terms.bytes();
            kept.publications.insert(*first, content as u64);
            kept.shares.insert(*number, *first);
            whole.terms = published.terms.clone();
            whole.payload = published.payload.clone();
        }
        kept.tasks.insert(*number, whole);
    }
    kept
}

/// Checks that what the engine gave the store is what the model holds.
pub(crate) fn check(oracle: &Oracle) {
    let (kept, own) = (survivors(&oracle.book.current), oracle.model.survivors());
    assert_eq!(kept.members, own.members, "the store keeps the members that there are");
    assert_eq!(kept.queues, own.queues, "the store keeps the queues that there are");
    check_schedules(oracle, &kept.schedules, &own.schedules);
    check_windows(oracle, &kept.windows, &own.windows);
    assert_eq!(kept.own_shares, own.own_shares, "the store keeps the rules of shares");
    assert_eq!(kept.named_limits, own.named_limits, "the store keeps the limits that there are");
    assert_eq!(kept.batches, own.batches, "the store keeps the batches that there are");
    assert_eq!(kept.lanes, own.lanes, "the store keeps the lanes that there are");
    for (number, task) in &kept.tasks {
        let own = own.tasks.get(number).map(|own| with_origin_id(oracle, own, task));
        assert_eq!(Some(task), own.as_deref(), "the store keeps what the model holds");
    }
    assert_eq!(kept.tasks.len(), own.tasks.len(), "the store keeps as many tasks as there are");
    assert_eq!(kept.shares, own.shares, "the store keeps which copies share what was published");
    let (kept, own) = (kept.publications, own.publications);
    assert_eq!(kept, own, "the store keeps what copies share");
}

/// Returns the task that the model holds, with the id that its origin really has. The model may
/// have learnt that only later. It may not know the id at all of a task that has become a dead
/// letter in the call in which it was put: then it is the one that the store keeps.
fn with_origin_id<'t>(
    oracle: &Oracle,
    own: &'t TaskRecord,
    kept: &TaskRecord,
) -> Cow<'t, TaskRecord> {
    let (Some(origin), Some(known)) = (own.origin(), kept.origin()) else {
        return Cow::Borrowed(own);
    };
    let real = oracle.model.resolve(&origin.id).unwrap_or_else(|| known.id.clone());
    if real == origin.id {
        return Cow::Borrowed(own);
    }
    let mut own = own.clone();
    if let Some(origin) = own.past.as_mut().and_then(|past| past.origin.as_mut()) {
        origin.id = real;
    }
    Cow::Owned(own)
}

/// Checks that the store keeps the windows of unique tasks. The model may not know the id of a task
/// that has ended in the call in which it was put.
fn check_windows(oracle: &Oracle, kept: &[WindowRecord], own: &[WindowRecord]) {
    let mut own = own.to_vec();
    for (kept, own) in kept.iter().zip(&mut own) {
        if oracle.model.resolve(&own.id).is_none_or(|known| known == kept.id) {
            own.id = kept.id.clone();
        }
    }
    assert_eq!(kept, own, "the store keeps the windows that there are");
}

/// Checks that the store keeps the schedules that there are. The model may not know the id of a
/// task that has ended in the call in which it was put, or only the text that a client read. Slots
/// that are missed while the disk is nearly full are not told to the store, but it learns of them
/// when it writes a record again.
fn check_schedules(oracle: &Oracle, kept: &[ScheduleRecord], own: &[ScheduleRecord]) {
    let mut own = own.to_vec();
    for (kept, own) in kept.iter().zip(&mut own) {
        let now = oracle.model.schedules.get(&own.number).map(|known| &known.course);
        let (told, seen) = (&own.course, &kept.course);
        if now.is_some_and(|now| {
            let dates = [told.done_until, seen.done_until, now.done_until];
            dates.is_sorted() && [told.missed, seen.missed, now.missed].is_sorted()
        }) {
            (own.course.done_until, own.course.missed) = (seen.done_until, seen.missed);
        }
        let (Some(id), Some(last)) = (&kept.course.last_id, &own.course.last_id) else { continue };
        let known = oracle.model.resolve(last);
        if known.is_none_or(|known| known.to_string() == id.to_string()) {
            own.course.last_id = Some(id.clone());
        }
    }
    assert_eq!(kept, own, "the store keeps the schedules that there are");
}
