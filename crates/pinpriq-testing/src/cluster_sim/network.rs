//! The links between nodes: what is on its way, what is cut, and when both ends notice.
//!
//! It knows nodes by their places, and does not know what they say.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::Dice;
use pinpriq_cluster::Instance;

/// A link that one node has opened to another.
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Which run of the other node it leads to.
    pub(crate) instance: Instance,
    /// What is on its way, with the moment of its arrival, for each direction.
    there: VecDeque<(u64, Vec<u8>)>,
    back: VecDeque<(u64, Vec<u8>)>,
    /// When each end heard anything last. Pings are not simulated: an end that could hear hears.
    heard_there: u64,
    heard_back: u64,
}

/// All links.
pub(crate) struct Network {
    pub(crate) links: BTreeMap<u64, Link>,
    last: u64,
    /// Directions in which nothing passes.
    cut: BTreeSet<(usize, usize)>,
    /// The longest time on the way, in milliseconds.
    pub(crate) latency_ms: u64,
}

impl Network {
    pub(crate) const fn new(latency_ms: u64) -> Self {
        Self { links: BTreeMap::new(), last: 0, cut: BTreeSet::new(), latency_ms }
    }

    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn passes(&self, from: usize, to: usize) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// Opens a link, if both directions pass. Returns its number.
    pub(crate) fn open(
        &mut self,
        now: u64,
        ends: (usize, usize),
        instance: Instance,
    ) -> Option<u64> {
        let (from, to) = ends;
        if !self.passes(from, to) || !self.passes(to, from) {
            return None;
        }
        self.last += 1;
        let (there, back) = (VecDeque::new(), VecDeque::new());
        let (heard_there, heard_back) = (now, now);
        let link = Link { from, to, instance, there, back, heard_there, heard_back };
        self.links.insert(self.last, link);
        Some(self.last)
    }

    /// Sends a body to the node at the other end: to that which was asked, or back.
    pub(crate) fn send(
        &mut self,
        now: u64,
        id: u64,
        is_back: bool,
        body: Vec<u8>,
        dice: &mut Dice,
    ) {
        let at = now + dice.below(self.latency_ms + 1);
        let Some(link) = self.links.get_mut(&id) else { return };
        let way = if is_back { &mut link.back } else { &mut link.there };
        // In order, as on one connection.
        let at = way.back().map_or(at, |(last, _)| at.max(*last));
        way.push_back((at, body));
    }

    /// Returns the next body that has arrived at a node that hears: the link, the direction, and
    /// the body.
    pub(crate) fn arrived(
        &mut self,
        now: u64,
        hears: impl Fn(usize) -> bool,
    ) -> Option<(u64, bool, Vec<u8>)> {
        for (id, link) in &mut self.links {
            for is_back in [false, true] {
                let (from, to) = if is_back { (link.to, link.from) } else { (link.from, link.to) };
                let way = if is_back { &mut link.back } else { &mut link.there };
                let is_due = way.front().is_some_and(|(at, _)| *at <= now);
                if is_due
                    && hears(to)
                    && !self.cut.contains(&(from, to))
                    && let Some((_, body)) = way.pop_front()
                {
                    return Some((*id, is_back, body));
                }
            }
        }
        None
    }

    /// Notes what each end could hear until now. Returns the links that one of them takes for dead
    /// after this time of silence.
    pub(crate) fn silent(
        &mut self,
        now: u64,
        ttl_ms: u64,
        speaks: impl Fn(usize) -> bool,
    ) -> Vec<u64> {
        let mut dead = Vec::new();
        for (id, link) in &mut self.links {
            if speaks(link.from) && !self.cut.contains(&(link.from, link.to)) {
                link.heard_there = now;
            }
            if speaks(link.to) && !self.cut.contains(&(link.to, link.from)) {
                link.heard_back = now;
            }
            if now >= link.heard_there.min(link.heard_back) + ttl_ms {
                dead.push(*id);
            }
        }
        dead
    }
}
