//! Distributes the contents of some shards over others.
//!
//! Each queue and topic goes to the shard that its name determines, with everything that belongs to
//! it unchanged: numbers, ids, order, states and grants stay, so receipts stay valid. Only members
//! are changed, since each shard has its own record of the members with lanes there. All of this
//! happens in memory; no file is named here.

use std::collections::{BTreeMap, BTreeSet};

use pinpriq_proto::change::{Header, MemberRecord, Place, Publication};
use pinpriq_proto::named_limits::used;
use pinpriq_proto::task::{Bytes, TaskRecord};

use crate::fold::Fold;
use crate::journal::Contents;
use crate::shards::{fresh_number, shard_of};
use crate::store::StoreError;

/// The highest number that the journal accepts.
const NUMBER_MAX: u64 = 1 << 62;

/// A living member in one of the sources.
struct Candidate {
    record: MemberRecord,
    place: Option<Place>,
    /// The targets in which it has lanes.
    homes: BTreeSet<usize>,
}

impl Candidate {
    /// A member without lanes may join a topic anywhere.
    fn belongs_to(&self, target: usize) -> bool {
        self.homes.is_empty() || self.homes.contains(&target)
    }
}

/// The targets while they are filled.
struct Spread {
    from: Division,
    to: Division,
    targets: Vec<Contents>,
    /// The living members by name.
    candidates: BTreeMap<Bytes, Vec<Candidate>>,
}

/// How names are divided among a number of shards.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// The number of shards.
    pub shards: usize,
    /// Returns the shard of the queue, topic or schedule of this name, out of this many.
    pub shard_of: fn(&[u8], usize) -> usize,
    /// Why something can be in a wrong shard, for people.
    pub hint: &'static str,
}

impl Division {
    /// How a single server divides them: see [`shards`](crate::shards).
    #[must_use]
    pub const fn of_server(shards: usize) -> Self {
        let hint = "the directories of shards were mixed up, or their number in the file shards \
                    is wrong";
        Self { shards, shard_of, hint }
    }

    fn of(&self, name: &[u8]) -> usize {
        (self.shard_of)(name, self.shards)
    }
}

/// Distributes the contents of all shards of a server or cluster, in order, over those of another
/// one.
///
/// Members that have ended, and their lanes, are left out: no client can reach them, and a
/// server would clean them up. A target with lanes of a living member has that member once, under
/// the incarnation of one that had lanes there, with the longest lease of all members of its name.
/// A member without any lane is in every target. New numbers are beyond all old ones.
///
/// Refuses sources that were not made by one server with this number of shards: with a queue in a
/// wrong shard, or with a number in two of them. Also refuses to part a queue from the queue for
/// its dead letters, dead letters from the queue that they come from, or a schedule from its queue.
/// Costs O(n log n), and copies no payload.
///
/// # Panics
/// If there are not as many sources as `from` has shards.
pub fn distribute(
    sources: Vec<Contents>,
    from: Division,
    to: Division,
) -> Result<Vec<Contents>, StoreError> {
    assert_eq!(sources.len(), from.shards, "one source for each shard");
    let shards = to.shards;
    refuse_doubles(&sources)?;
    sources.iter().try_for_each(|source| refuse_parting(&source.fold, to))?;
    let latest = latest(sources.iter().map(|source| source.header));
    let highest = latest.last_number;
    if fresh_number(highest, shards) > NUMBER_MAX {
        let what = format!("the numbers of tasks are used up: the highest is {highest}");
        return Err(StoreError::Mixed { what });
    }
    let target = |shard| Header {
        // Beginning a journal counts as an incarnation too.
        incarnation: latest.incarnation + 1,
        last_number: fresh_number(highest, shard),
        ..latest
    };
    let targets = (0..shards).map(|it| Contents { header: target(it), ..Contents::default() });
    let mut spread = Spread { from, to, targets: targets.collect(), candidates: BTreeMap::new() };
    for (shard, source) in sources.into_iter().enumerate() {
        spread.add(shard, source)?;
    }
    for (target, contents) in spread.targets.iter_mut().enumerate() {
        settle_members(&mut contents.fold, target, &spread.candidates);
    }
    Ok(spread.targets)
}

/// Refuses a number of shards in which two queues that tasks move between would be apart, or a
/// schedule, a limit or a batch and its queue.
fn refuse_parting(fold: &Fold, to: Division) -> Result<(), StoreError> {
    let settings = fold.queues.values().filter_map(|(queue, _)| {
        let dead_letters = queue.settings.dead_letter.as_ref()?;
        Some(("queue", &queue.name, "has its dead letters in", dead_letters))
    });
    let origins = fold.tasks.values().filter_map(|(task, _)| {
        Some(("queue", &task.queue, "holds dead letters of", &task.origin()?.queue))
    });
    let schedules = fold.schedules.values();
    let schedules = schedules
        .map(|(known, _)| ("schedule", &known.name, "puts its tasks into", &known.plan.queue));
    let apart = |(_, one, _, other): &(&str, &Bytes, &str, &Bytes)| to.of(one) != to.of(other);
    let queues = fold.queues.values().map(|(queue, _)| (&queue.name, &queue.settings));
    let lanes = fold.lanes.values().map(|(lane, _)| (&lane.topic, &lane.settings));
    let uses =
        queues.chain(lanes).filter_map(|(name, settings)| Some((name, settings.uses.as_ref()?)));
    let uses: Vec<(&Bytes, Bytes)> =
        uses.flat_map(|(name, uses)| used(uses).map(move |limit| (name, limit.into()))).collect();
    let uses = uses.iter().map(|(name, limit)| ("queue", *name, "uses the limit", limit));
    let known = fold.batches_by_name();
    let is_in = |task: &TaskRecord, batch: &Bytes| {
        known.get(batch).is_some_and(|record| record.may_have(task.number))
    };
    let batches = fold.tasks.values().flat_map(|(task, _)| {
        let batch = task.batch().filter(|batch| is_in(task, batch));
        let named = batch.into_iter().chain(task.names_after());
        named.map(move |batch| ("queue", &task.queue, "has tasks of the batch", batch))
    });
    let mut pairs = settings.chain(origins).chain(schedules).chain(uses).chain(batches);
    let Some((what, one, how, other)) = pairs.find(apart) else { return Ok(()) };
    let (one, other, shards) = (one.escape_ascii(), other.escape_ascii(), to.shards);
    let what = format!(
        "the {what} \"{one}\" {how} \"{other}\", and of {shards} shards they would be in \
         different ones: choose another number of shards, or give their names a common part in \
         braces"
    );
    Err(StoreError::Mixed { what })
}

/// The highest of each fact.
pub(crate) fn latest(headers: impl Iterator<Item = Header>) -> Header {
    headers.fold(Header::default(), |one, other| Header {
        incarnation: one.incarnation.max(other.incarnation),
        now: one.now.max(other.now),
        last_number: one.last_number.max(other.last_number),
    })
}

impl Spread {
    fn add(&mut self, shard: usize, source: Contents) -> Result<(), StoreError> {
        let fold = source.fold;
        for (name, queue) in fold.queues {
            let target = self.target_of(&name, shard)?;
            self.targets[target].fold.queues.insert(name, queue);
        }
        for (number, schedule) in fold.schedules {
            let target = self.target_of(&schedule.0.plan.queue, shard)?;
            self.targets[target].fold.schedules.insert(number, schedule);
        }
        for (key, detail) in fold.details {
            let target = self.target_of(detail.0.home(), shard)?;
            self.targets[target].fold.details.insert(key, detail);
        }
        let mut members: BTreeMap<u64, Candidate> = BTreeMap::new();
        for (incarnation, (record, place)) in fold.members {
            if !record.ended {
                members.insert(incarnation, Candidate { record, place, homes: BTreeSet::new() });
            }
        }
        // The targets of the remaining lanes.
        let mut homes: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, lane) in fold.lanes {
            let target = self.target_of(&lane.0.topic, shard)?;
            let Some(member) = members.get_mut(&lane.0.member) else { continue };
            member.homes.insert(target);
            homes.insert(number, target);
            self.targets[target].fold.lanes.insert(number, lane);
        }
        for (first, publication) in fold.publications {
            let home = home_of(&publication.0, &fold.tasks, &homes);
            let Some(target) = home else { continue };
            self.targets[target].fold.publications.insert(first, publication);
        }
        for (number, task) in fold.tasks {
            let target = match &task.0.lane {
                None => self.target_of(&task.0.queue, shard)?,
                Some(lane) => match homes.get(&lane.number) {
                    Some(target) => *target,
                    None => continue,
                },
            };
            self.targets[target].fold.tasks.insert(number, task);
        }
        for (_, member) in members {
            self.candidates.entry(member.record.name.clone()).or_default().push(member);
        }
        Ok(())
    }

    /// The target of a queue or topic that was found in this source.
    fn target_of(&self, name: &[u8], source: usize) -> Result<usize, StoreError> {
        let right = self.from.of(name);
        if right != source {
            let (name, hint) = (String::from_utf8_lossy(name), self.from.hint);
            let what = format!(
                "the queue {name:?} is in shard {source} and belongs in shard {right}: {hint}"
            );
            return Err(StoreError::Mixed { what });
        }
        Ok(self.to.of(name))
    }
}

/// Gives a target at most one living member of each name, and assigns it the lanes.
fn settle_members(fold: &mut Fold, target: usize, candidates: &BTreeMap<Bytes, Vec<Candidate>>) {
    let mut successors: BTreeMap<u64, u64> = BTreeMap::new();
    for (name, candidates) in candidates {
        let here = || candidates.iter().filter(|it| it.belongs_to(target));
        let chosen = here()
            .max_by_key(|it| (it.homes.contains(&target), it.record.lease, it.record.incarnation));
        let Some(chosen) = chosen else { continue };
        let incarnation = chosen.record.incarnation;
        let lease = here().map(|it| it.record.lease).max().unwrap_or(chosen.record.lease);
        let record = MemberRecord { incarnation, name: name.clone(), lease, ended: false };
        fold.members.insert(incarnation, (record, chosen.place));
        successors.extend(here().map(|it| (it.record.incarnation, incarnation)));
    }
    for (lane, _) in fold.lanes.values_mut() {
        lane.member = successors.get(&lane.member).copied().unwrap_or(lane.member);
    }
}

/// The target of the tasks that share a publication, or none if no such task is left.
fn home_of(
    publication: &Publication,
    tasks: &BTreeMap<u64, (TaskRecord, Option<Place>)>,
    homes: &BTreeMap<u64, usize>,
) -> Option<usize> {
    let copies = tasks.range(publication.first..=publication.last).map(|(_, (task, _))| task);
    let mut lanes = copies.filter(|task| task.shared).filter_map(|task| task.lane.as_ref());
    lanes.find_map(|lane| homes.get(&lane.number).copied())
}

/// Refuses shards if two of them have a task, a lane or a publication of the same number.
fn refuse_doubles(sources: &[Contents]) -> Result<(), StoreError> {
    let folds = || sources.iter().map(|source| &source.fold);
    let of_tasks = folds().flat_map(|fold| fold.tasks.keys());
    let of_lanes = folds().flat_map(|fold| fold.lanes.keys());
    let of_publications = folds().flat_map(|fold| fold.publications.keys());
    let double = double_of(of_tasks.chain(of_lanes)).or_else(|| double_of(of_publications));
    let Some(number) = double else { return Ok(()) };
    let what = format!(
        "the number {number} is in two shards: they are not those of one server or cluster"
    );
    Err(StoreError::Mixed { what })
}

fn double_of<'a>(numbers: impl Iterator<Item = &'a u64>) -> Option<u64> {
    let mut numbers: Vec<u64> = numbers.copied().collect();
    numbers.sort_unstable();
    numbers.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
