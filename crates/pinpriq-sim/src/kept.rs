//! What the store keeps, in the words of the model, and whether that is what the model holds. Which
//! of it survives a crash is for the book.

use pinpriq_engine::task::{LaneName, TaskRecord};
use pinpriq_model::Survivors;
use pinpriq_store::Fold;

use crate::oracle::Oracle;

/// What the next server finds if this is what the store has kept.
pub(crate) fn survivors(fold: &Fold) -> Survivors {
    let mut kept = Survivors {
        members: fold.members.values().map(|(member, _)| member.clone()).collect(),
        queues: fold.queues.values().map(|(queue, _)| queue.clone()).collect(),
        lanes: fold.lanes.values().map(|(lane, _)| lane.clone()).collect(),
        tasks: fold.tasks.iter().map(|(number, (task, _))| (*number, task.clone())).collect(),
        ..Survivors::default()
    };
    for (task, _) in fold.lane_tasks.values() {
        let Some((lane, _)) = fold.lanes.get(&task.lane) else { continue };
        let member = fold.members.get(&lane.member).map(|(member, _)| member.name.clone());
        let shared = fold.publications.range(..=task.number).next_back();
        let (key, payload) = match (&task.own, shared) {
            (Some(own), _) => (own.key.clone(), own.payload.clone()),
            (None, Some((first, (shared, _)))) => {
                let content = shared.payload.len() + shared.key.as_ref().map_or(0, |key| key.len());
                kept.publications.insert(*first, content as u64);
                kept.shares.insert(task.number, *first);
                (shared.key.clone(), shared.payload.clone())
            }
            (None, None) => (None, [].into()),
        };
        let whole = TaskRecord {
            number: task.number,
            queue: lane.topic.clone(),
            lane: Some(LaneName { number: task.lane, member: member.unwrap_or_default() }),
            id: task.id.clone(),
            seq: task.seq,
            priority: task.priority,
            key,
            payload,
            away: None,
            put_at: task.put_at,
            expires_at: task.expires_at,
            ttr: None,
            attempts: task.attempts,
            state: task.state.clone(),
        };
        kept.tasks.insert(task.number, whole);
    }
    kept
}

/// What the engine has told the store is what the model holds.
pub(crate) fn check(oracle: &Oracle) {
    let (kept, own) = (survivors(&oracle.book.current), oracle.model.survivors());
    assert_eq!(kept.members, own.members, "the store keeps the members that there are");
    assert_eq!(kept.queues, own.queues, "the store keeps the queues that there are");
    assert_eq!(kept.lanes, own.lanes, "the store keeps the lanes that there are");
    for (number, task) in &kept.tasks {
        assert_eq!(Some(task), own.tasks.get(number), "the store keeps what the model holds");
    }
    assert_eq!(kept.tasks.len(), own.tasks.len(), "the store keeps as many tasks as there are");
    assert_eq!(kept.shares, own.shares, "the store keeps which copies share what was published");
    let (kept, own) = (kept.publications, own.publications);
    assert_eq!(kept, own, "the store keeps what copies share");
}
