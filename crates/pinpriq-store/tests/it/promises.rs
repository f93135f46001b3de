//! Records in the simplest way what members were promised, and compares it with what is found.
//!
//! This module knows nothing about changes, records or places. Each event has the position of the
//! batch in which it was written. So for every position it is known what a server that lost
//! everything after it must show to its clients.

use std::collections::BTreeMap;

use pinpriq_proto::time::Timestamp;
use pinpriq_store::Position;

/// A topic and a member, by their index in the lists of the workload.
pub(crate) type LaneKey = (usize, usize);

/// What clients see: the payloads in each lane, by publication.
pub(crate) type Seen = BTreeMap<LaneKey, BTreeMap<usize, Vec<u8>>>;

/// All events, with the positions at which they became part of the log.
#[derive(Clone, Default)]
pub(crate) struct Promises {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) publications: Vec<Publication>,
    /// The lane that each member has in each topic now.
    pub(crate) current: BTreeMap<LaneKey, usize>,
}

#[derive(Clone)]
pub(crate) struct Lane {
    pub(crate) key: LaneKey,
    joined: Position,
    ended: Option<Position>,
    copies: BTreeMap<usize, Copied>,
}

#[derive(Clone)]
struct Copied {
    removed: Option<Position>,
    /// The payload, and each that replaced it.
    payloads: Vec<(Position, Vec<u8>)>,
}

#[derive(Clone)]
pub(crate) struct Publication {
    pub(crate) payload: Vec<u8>,
    pub(crate) expires_at: Option<Timestamp>,
    position: Position,
    lanes: Vec<usize>,
}

impl Promises {
    /// Records that a member has a lane. Returns whether it is a new one.
    pub(crate) fn join(&mut self, key: LaneKey, at: Position) -> bool {
        let is_new = !self.current.contains_key(&key);
        if is_new {
            self.current.insert(key, self.lanes.len());
            let lane = Lane { key, joined: at, ended: None, copies: BTreeMap::new() };
            self.lanes.push(lane);
        }
        is_new
    }

    pub(crate) fn end_lane(&mut self, key: LaneKey, at: Position) {
        if let Some(lane) = self.current.remove(&key) {
            self.lanes[lane].ended = Some(at);
        }
    }

    pub(crate) fn publish(&mut self, payload: Vec<u8>, expires_at: Option<Timestamp>) -> usize {
        let lanes = Vec::new();
        let position = Position(u64::MAX);
        self.publications.push(Publication { payload, expires_at, position, lanes });
        self.publications.len() - 1
    }

    /// Records that a copy was seen, or handed out at once.
    pub(crate) fn deliver(&mut self, publication: usize, key: LaneKey, at: Position) {
        let lane = self.current[&key];
        let published = &mut self.publications[publication];
        published.position = at;
        published.lanes.push(lane);
        let payloads = vec![(at, published.payload.clone())];
        let former =
            self.lanes[lane].copies.insert(publication, Copied { removed: None, payloads });
        assert!(former.is_none(), "publication {publication} reached a lane twice");
    }

    pub(crate) fn has(&self, publication: usize, key: LaneKey) -> bool {
        self.current
            .get(&key)
            .is_some_and(|lane| self.lanes[*lane].copies.contains_key(&publication))
    }

    pub(crate) fn count(&self, publication: usize) -> usize {
        self.publications[publication].lanes.len()
    }

    pub(crate) fn remove(&mut self, publication: usize, lane: usize, at: Position) {
        if let Some(copied) = self.lanes[lane].copies.get_mut(&publication) {
            copied.removed.get_or_insert(at);
        }
    }

    pub(crate) fn truncate(&mut self, lane: usize, at: Position) {
        for copied in self.lanes[lane].copies.values_mut() {
            copied.removed.get_or_insert(at);
        }
    }

    pub(crate) fn replace(
        &mut self,
        publication: usize,
        lane: usize,
        payload: Vec<u8>,
        at: Position,
    ) {
        if let Some(copied) = self.lanes[lane].copies.get_mut(&publication) {
            copied.payloads.push((at, payload));
        }
    }

    /// Returns what clients see if everything up to `at` exists and nothing after it, without what
    /// has expired by `now`.
    pub(crate) fn at(&self, at: Position, now: Timestamp) -> Seen {
        let lanes = self.lanes.iter();
        let there = lanes.filter(|lane| lane.joined <= at && lane.ended.is_none_or(|end| end > at));
        let mut seen = Seen::new();
        for lane in there {
            let mut payloads = BTreeMap::new();
            for (publication, copied) in &lane.copies {
                let expires_at = self.publications[*publication].expires_at;
                let is_gone = copied.removed.is_some_and(|removed| removed <= at)
                    || expires_at.is_some_and(|expires_at| expires_at <= now);
                let payload = copied.payloads.iter().rfind(|(since, _)| *since <= at);
                if let Some((_, payload)) = payload.filter(|_| !is_gone) {
                    payloads.insert(*publication, payload.clone());
                }
            }
            let former = seen.insert(lane.key, payloads);
            assert!(former.is_none(), "two lanes of one member in one topic at {at:?}");
        }
        seen
    }

    /// Compares what a server shows after a crash with what it had said when it had reached
    /// `reached`. It must be the state after some batch, at or after that one. `seen` does not
    /// include what has expired by `now`.
    pub(crate) fn judge(&self, reached: Position, seen: &Seen, now: Timestamp, context: &str) {
        self.judge_publications(reached, seen, now, context);
        let lanes = self.lanes.iter();
        let ends = lanes.flat_map(|lane| [Some(lane.joined), lane.ended]).flatten();
        let removals = self.lanes.iter().flat_map(|lane| lane.copies.values());
        let changes = removals
            .flat_map(|copied| copied.payloads.iter().map(|(at, _)| *at).chain(copied.removed));
        let mut moments: Vec<Position> = ends.chain(changes).collect();
        moments.retain(|at| *at > reached);
        moments.push(reached);
        let fits = moments.iter().any(|at| self.at(*at, now) == *seen);
        let promised = self.at(reached, now);
        assert!(fits, "{context}: at {reached:?} there was {promised:?}, found is {seen:?}");
    }

    /// Checks that each publication is in all the lanes that it was counted for, or in none; in
    /// all, if that was reported as durable. Lanes from which it was taken are not checked.
    fn judge_publications(&self, reached: Position, seen: &Seen, now: Timestamp, context: &str) {
        for (index, publication) in self.publications.iter().enumerate() {
            if publication.expires_at.is_some_and(|at| at <= now) {
                continue;
            }
            let lanes = publication.lanes.iter().map(|lane| &self.lanes[*lane]);
            let untouched =
                lanes.filter(|lane| lane.ended.is_none() && lane.copies[&index].removed.is_none());
            let found: Vec<bool> = untouched
                .filter(|lane| lane.joined <= reached || seen.contains_key(&lane.key))
                .map(|lane| seen.get(&lane.key).is_some_and(|lane| lane.contains_key(&index)))
                .collect();
            let (all, none) = (found.iter().all(|there| *there), !found.contains(&true));
            assert!(
                all || none,
                "{context}: publication {index} is in some of its lanes: {seen:?}"
            );
            let durable = publication.position <= reached;
            assert!(all || !durable, "{context}: publication {index} was answered and is lost");
        }
    }
}
