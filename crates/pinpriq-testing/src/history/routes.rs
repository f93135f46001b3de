//! The ways of tasks from queue to queue: moves, and policies that make dead letters of tasks.
//!
//! A way is open whenever a task may have taken it. Which task did is decided by payloads, in
//! [`crate::history::book`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::history::lease::Span;
use crate::history::shelf::said_in;

/// What a queue does with tasks that have failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// When it was asked for.
    pub(crate) span: Span,
    /// Whether it was certainly accepted.
    pub(crate) certain: bool,
    /// How often a task may fail.
    pub(crate) attempts: Option<u64>,
    /// How long a task waits after its first failure; twice as long after each further one.
    pub(crate) backoff_us: u64,
    pub(crate) backoff_max_us: u64,
    /// The queue that exhausted tasks go to. Without one they are buried.
    pub(crate) dead_letter: Option<usize>,
}

impl Policy {
    /// That of a queue without settings.
    const NONE: Self = Self {
        span: Span { from_us: 0, to_us: 0 },
        certain: true,
        attempts: None,
        backoff_us: 0,
        backoff_max_us: 0,
        dead_letter: None,
    };

    /// The shortest wait after this failure, counted from 1.
    pub(crate) fn least_wait_us(&self, failures: u64) -> u64 {
        let doubled = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 1_u64.checked_shl(doubled).unwrap_or(u64::MAX);
        let full_us = self.backoff_us.saturating_mul(factor).min(self.backoff_max_us);
        full_us - full_us / 4
    }

    /// The queue for dead letters, if any task can become one.
    fn letters(&self) -> Option<usize> {
        self.attempts.and(self.dead_letter)
    }

    /// Whether a failure may bury a task.
    pub(crate) const fn may_bury(&self) -> bool {
        self.attempts.is_some() && self.dead_letter.is_none()
    }
}

/// A way from one queue to another.
#[derive(Clone, Debug, Default)]
struct Way {
    /// The moves along it, sorted by their ends: each with the earliest beginning of itself and of
    /// all after it.
    moves: Vec<Span>,
    /// When a policy may first have been in effect.
    policy_us: Option<u64>,
}

impl Way {
    /// The first moment from `at_us` on at which a task may go this way.
    fn open_us(&self, at_us: u64) -> u64 {
        let next = self.moves.partition_point(|span| span.to_us < at_us);
        let moved_us = self.moves.get(next).map(|span| span.from_us);
        let earliest_us = moved_us.into_iter().chain(self.policy_us).min();
        earliest_us.map_or(u64::MAX, |earliest_us| earliest_us.max(at_us))
    }

    fn sort(&mut self) {
        self.moves.sort_unstable_by_key(|span| span.to_us);
        let mut earliest_us = u64::MAX;
        for span in self.moves.iter_mut().rev() {
            earliest_us = earliest_us.min(span.from_us);
            span.from_us = earliest_us;
        }
    }
}

/// All ways and policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    /// By the queue that they lead away from.
    ways: HashMap<usize, HashMap<usize, Way>>,
    /// By their queue, in the order of their beginnings.
    policies: HashMap<usize, Vec<Policy>>,
    /// Queues that ways connect have the same root.
    roots: HashMap<usize, usize>,
}

impl Routes {
    /// Adds a move that may have moved tasks.
    pub(crate) fn add_move(&mut self, from: usize, to: usize, span: Span) {
        self.way(from, to).moves.push(span);
    }

    /// Adds a policy that may be in effect.
    pub(crate) fn add_policy(&mut self, queue: usize, policy: Policy) {
        if let Some(to) = policy.letters() {
            let policy_us = &mut self.way(queue, to).policy_us;
            let from_us = policy.span.from_us;
            *policy_us = Some(policy_us.map_or(from_us, |earliest_us| earliest_us.min(from_us)));
        }
        self.policies.entry(queue).or_default().push(policy);
    }

    fn way(&mut self, from: usize, to: usize) -> &mut Way {
        let (one, other) = (self.root(from), self.root(to));
        if one != other {
            self.roots.insert(one, other);
        }
        self.ways.entry(from).or_default().entry(to).or_default()
    }

    /// Ends the adding.
    pub(crate) fn sort(&mut self) {
        self.ways.values_mut().flat_map(HashMap::values_mut).for_each(Way::sort);
        for policies in self.policies.values_mut() {
            policies.sort_by_key(|policy| policy.span.from_us);
        }
    }

    /// A queue that stands for all queues that ways connect with this one.
    pub(crate) fn root(&self, queue: usize) -> usize {
        let mut root = queue;
        while let Some(next) = self.roots.get(&root) {
            root = *next;
        }
        root
    }

    /// Whether tasks may leave a queue for another one.
    pub(crate) fn may_leave(&self, queue: usize) -> bool {
        self.ways.contains_key(&queue)
    }

    /// The earliest moment at which a task that left `from` no earlier than `at_us` can be in `to`,
    /// by one way or by several. The end of time if there is none.
    pub(crate) fn arrival_us(&self, from: usize, to: usize, at_us: u64) -> u64 {
        self.arrivals_us(from, at_us).get(&to).copied().unwrap_or(u64::MAX)
    }

    /// The same for all queues that it can reach.
    fn arrivals_us(&self, from: usize, at_us: u64) -> HashMap<usize, u64> {
        let mut reached = HashMap::new();
        let mut next = BinaryHeap::from([Reverse((at_us, from))]);
        while let Some(Reverse((at_us, queue))) = next.pop() {
            for (to, way) in self.ways.get(&queue).into_iter().flatten() {
                let open_us = way.open_us(at_us);
                let known_us = reached.entry(*to).or_insert(u64::MAX);
                if open_us < *known_us {
                    *known_us = open_us;
                    next.push(Reverse((open_us, *to)));
                }
            }
        }
        reached.retain(|_, at_us| *at_us != u64::MAX);
        reached
    }

    /// Whether a task of `from` may ever be in `to`.
    pub(crate) fn leads(&self, from: usize, to: usize) -> bool {
        self.may_leave(from) && self.arrival_us(from, to, 0) != u64::MAX
    }

    /// The queues that a task of this one may be in, itself included.
    pub(crate) fn reach(&self, queue: usize) -> Vec<usize> {
        let mut reach: Vec<usize> = self.arrivals_us(queue, 0).into_keys().collect();
        reach.push(queue);
        reach.sort_unstable();
        reach.dedup();
        reach
    }

    /// Whether a task may go straight from one queue to another in this time.
    pub(crate) fn is_open(&self, from: usize, to: usize, span: Span) -> bool {
        let way = self.ways.get(&from).and_then(|ways| ways.get(&to));
        way.is_some_and(|way| way.open_us(span.from_us) <= span.to_us)
    }

    /// The policies that a queue may have had at some moment of this time.
    pub(crate) fn policies_in(&self, queue: usize, span: Span) -> Vec<Policy> {
        said_in(self.policies_of(queue), |it| (it.span, it.certain), Policy::NONE, span)
    }

    /// All policies that a queue may ever have had.
    pub(crate) fn policies_of(&self, queue: usize) -> &[Policy] {
        self.policies.get(&queue).map_or(&[], Vec::as_slice)
    }

    /// Whether tasks of a queue may become dead letters at some moment of this time.
    pub(crate) fn may_kill(&self, queue: usize, span: Span) -> bool {
        self.policies_in(queue, span).iter().any(|policy| policy.letters().is_some())
    }

    /// The shortest wait after a failure of this number, at some moment of this time.
    pub(crate) fn least_wait_us(&self, queue: usize, span: Span, failures: u64) -> u64 {
        let policies = self.policies_in(queue, span);
        policies.iter().map(|policy| policy.least_wait_us(failures)).min().unwrap_or(0)
    }
}
