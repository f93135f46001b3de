//! One trouble at a time: what happens to a cluster under load, how it is repaired, and how long
//! its queues were not served.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use pinpriq_testing::Dice;

use super::engine::{Engine, Kind};
use super::etcd::MEMBERS;
use super::links::{ENGINE, Flow};
use super::load::Load;
use super::nodes::Nodes;
use super::probe::gap;
use super::{NODES, SESSION_MS};
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::report::say;

/// How long every queue may take to be served again: two sessions, and as much for a machine that
/// is busy. An engine that accepted nothing elects a leader first, and may have ended all sessions.
pub(crate) const GAP_MAX_MS: u64 = 4 * SESSION_MS;
const ENGINE_GAP_MAX_MS: u64 = 6 * SESSION_MS;

/// How long a pause or a cut lasts: longer than a session.
const PAUSE: Duration = Duration::from_millis(SESSION_MS + SESSION_MS / 2);

/// Every third time it lasts longer than nodes wait for an owner, too.
pub(super) const LONG_PAUSE: Duration = Duration::from_millis(3 * SESSION_MS + 500);

/// How long a member of the engine is away.
const MEMBER_AWAY: Duration = Duration::from_millis(500);

/// How much later bytes arrive on a slow link, in milliseconds.
const LATE_MS: u64 = 40;

/// How long a slow link stays slow.
const SLOW: Duration = Duration::from_millis(1_500);

/// What can happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Trouble {
    /// SIGKILL of a node.
    Kill,
    /// SIGSTOP of a node for longer than a session.
    Pause,
    /// SIGTERM of a node, which hands its shards over.
    Stop,
    /// No bytes pass between two nodes.
    Cut,
    /// No bytes pass from one node to another.
    CutOneWay,
    /// All bytes between nodes come late.
    Slow,
    /// No bytes pass between a node and all others.
    Peers,
    /// No bytes pass between a node and the engine.
    FromEngine,
    /// No bytes pass from the engine to a node: what it asks is done, and it does not know.
    Unanswered,
    /// SIGKILL of a member of etcd.
    Member,
    /// SIGSTOP of two members of etcd.
    Quorum,
    /// SIGKILL of the standby of PostgreSQL, which comes back.
    Standby,
    /// SIGKILL of the primary of PostgreSQL, which comes back.
    Primary,
    /// SIGKILL of the primary of PostgreSQL, after which the standby is promoted.
    Promotion,
    /// The same, after waits for a standby that is away were cancelled.
    Cancelled,
}

/// The first troubles on etcd. Most of them make other nodes take over. After these, any comes.
const ON_ETCD: [Trouble; 12] = [
    Trouble::Kill,
    Trouble::Cut,
    Trouble::Pause,
    Trouble::Member,
    Trouble::Stop,
    Trouble::Peers,
    Trouble::CutOneWay,
    Trouble::Quorum,
    Trouble::FromEngine,
    Trouble::Slow,
    Trouble::Kill,
    Trouble::Unanswered,
];

/// The first troubles on PostgreSQL.
const ON_POSTGRES: [Trouble; 13] = [
    Trouble::Promotion,
    Trouble::Cancelled,
    Trouble::Kill,
    Trouble::Standby,
    Trouble::Pause,
    Trouble::CutOneWay,
    Trouble::FromEngine,
    Trouble::Primary,
    Trouble::Promotion,
    Trouble::Peers,
    Trouble::Stop,
    Trouble::Cancelled,
    Trouble::Unanswered,
];

impl Trouble {
    /// What happens first to a cluster on an engine of this kind.
    pub(crate) const fn all(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Etcd => &ON_ETCD,
            Kind::Postgres => &ON_POSTGRES,
        }
    }

    /// Whether the engine accepts nothing meanwhile.
    const fn is_of_engine(self) -> bool {
        matches!(
            self,
            Self::Quorum | Self::Standby | Self::Primary | Self::Promotion | Self::Cancelled
        )
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Stop => "stop",
            Self::Cut => "cut",
            Self::CutOneWay => "cut one way",
            Self::Slow => "slow links",
            Self::Peers => "cut from all peers",
            Self::FromEngine => "cut from the engine",
            Self::Unanswered => "engine not heard",
            Self::Member => "member killed",
            Self::Quorum => "no quorum",
            Self::Standby => "no standby",
            Self::Primary => "primary killed",
            Self::Promotion => "promotion",
            Self::Cancelled => "waits cancelled, promotion",
        })
    }
}

/// A cluster, and what it has gone through.
pub(crate) struct Stage {
    pub(crate) nodes: Nodes,
    pub(crate) engine: Engine,
    pub(crate) dice: Dice,
    pub(crate) gaps: Gaps,
    /// How many times longer than alone on the machine a queue may be not served.
    pub(crate) slack: u64,
}

impl Stage {
    /// Makes one trouble, and waits until every node serves every queue again.
    pub(crate) fn make(&mut self, trouble: Trouble, load: &Load<'_>) -> Fallible<()> {
        let node = self.owner();
        let others: Vec<usize> = (0..NODES).filter(|it| *it != node).collect();
        match trouble {
            Trouble::Kill => self.kill(node, load)?,
            Trouble::Pause => self.pause(node, &others, load)?,
            Trouble::Stop => self.stop(node, &others, load)?,
            Trouble::Cut | Trouble::CutOneWay => {
                let other = self.dice.pick(&others);
                self.nodes.links.set(node, other, Flow::Cut);
                if trouble == Trouble::Cut {
                    self.nodes.links.set(other, node, Flow::Cut);
                }
                let_pass(self.pause_time());
                self.nodes.links.set_all(Flow::Open);
            }
            Trouble::Slow => {
                self.nodes.links.set_all(Flow::Late(LATE_MS));
                let_pass(SLOW);
                self.nodes.links.set_all(Flow::Open);
            }
            Trouble::Peers => self.cut_from_peers(node, &others, load)?,
            Trouble::FromEngine => self.cut_from_engine(node, &others, load)?,
            Trouble::Unanswered => {
                self.nodes.links.set(ENGINE, node, Flow::Cut);
                let_pass(self.pause_time());
                self.nodes.links.set(ENGINE, node, Flow::Open);
            }
            Trouble::Member => self.lose_member(load)?,
            Trouble::Quorum => self.lose_quorum(load)?,
            Trouble::Standby => self.lose_standby(load)?,
            Trouble::Primary => self.crash_primary(load)?,
            Trouble::Promotion => self.lose_primary(load)?,
            Trouble::Cancelled => self.cancel_waits(load)?,
        }
        let is_over = matches!(trouble, Trouble::Kill | Trouble::Stop | Trouble::Member);
        let clock = Clock::starting();
        let all = gap(load, clock, &[0, 1, 2], &mut self.dice)?;
        if !is_over {
            self.note(trouble, all, load);
        }
        self.nodes.check()
    }

    /// Kills a node, waits until others serve every queue, and starts it again.
    pub(crate) fn kill(&mut self, node: usize, load: &Load<'_>) -> Fallible<()> {
        let others: Vec<usize> = (0..NODES).filter(|it| *it != node).collect();
        self.nodes.kill(node)?;
        self.measure(Trouble::Kill, Clock::starting(), &others, load)?;
        self.nodes.start_one(node)
    }

    fn pause(&mut self, node: usize, others: &[usize], load: &Load<'_>) -> Fallible<()> {
        self.nodes.signal(node, "-STOP")?;
        let clock = Clock::starting();
        let measured = self.measure(Trouble::Pause, clock, others, load);
        let_pass(self.pause_time().saturating_sub(clock.elapsed()));
        self.nodes.signal(node, "-CONT")?;
        measured
    }

    fn stop(&mut self, node: usize, others: &[usize], load: &Load<'_>) -> Fallible<()> {
        let clock = Clock::starting();
        let status = self.nodes.stop(node)?;
        if !status.success() {
            load.board.fail(format!("n{} ended with {status}", node + 1));
        }
        self.measure(Trouble::Stop, clock, others, load)?;
        self.nodes.start_one(node)
    }

    fn cut_from_engine(&mut self, node: usize, others: &[usize], load: &Load<'_>) -> Fallible<()> {
        self.nodes.links.set_both(node, ENGINE, Flow::Cut);
        let clock = Clock::starting();
        let measured = self.measure(Trouble::FromEngine, clock, others, load);
        let_pass(self.pause_time().saturating_sub(clock.elapsed()));
        self.nodes.links.set_both(node, ENGINE, Flow::Open);
        measured
    }

    fn lose_member(&mut self, load: &Load<'_>) -> Fallible<()> {
        let member = self.dice.index(MEMBERS);
        self.engine.etcd()?.kill(member)?;
        let clock = Clock::starting();
        self.measure(Trouble::Member, clock, &[0, 1, 2], load)?;
        let_pass(MEMBER_AWAY);
        self.engine.etcd()?.start_again(member)
    }

    fn lose_quorum(&mut self, load: &Load<'_>) -> Fallible<()> {
        let spared = self.dice.index(MEMBERS);
        let stopped: Vec<usize> = (0..MEMBERS).filter(|it| *it != spared).collect();
        let etcd = self.engine.etcd()?;
        stopped.iter().try_for_each(|it| etcd.signal(*it, "-STOP"))?;
        load.board.set_mute(true);
        let_pass(LONG_PAUSE);
        load.board.set_mute(false);
        stopped.iter().try_for_each(|it| etcd.signal(*it, "-CONT"))
    }

    fn pause_time(&mut self) -> Duration {
        if self.dice.once_in(3) { LONG_PAUSE } else { PAUSE }
    }

    /// A node that serves shards, as far as is known.
    fn owner(&mut self) -> usize {
        let owners: Vec<usize> = self.nodes.board.owners().into_values().collect();
        if owners.is_empty() { 0 } else { self.dice.pick(&owners) }
    }

    fn measure(
        &mut self,
        trouble: Trouble,
        since: Clock,
        nodes: &[usize],
        load: &Load<'_>,
    ) -> Fallible<()> {
        let gap_ms = gap(load, since, nodes, &mut self.dice)?;
        self.note(trouble, gap_ms, load);
        Ok(())
    }

    fn note(&mut self, trouble: Trouble, gap_ms: u64, load: &Load<'_>) {
        let alone_ms = if trouble.is_of_engine() { ENGINE_GAP_MAX_MS } else { GAP_MAX_MS };
        let most_ms = alone_ms * self.slack;
        if gap_ms > most_ms {
            say(self.nodes.logs());
            let what = format!("after {trouble} queues were not served for {gap_ms} ms");
            load.board.fail(format!("{what}, at most {most_ms} ms are allowed"));
        }
        self.gaps.0.entry(trouble).or_default().push(gap_ms);
    }
}

/// How long queues were not served after each trouble, in milliseconds.
#[derive(Default)]
pub(crate) struct Gaps(BTreeMap<Trouble, Vec<u64>>);

impl Gaps {
    /// The longest time for which queues were not served.
    pub(crate) fn longest_ms(&self) -> u64 {
        self.0.values().flatten().copied().max().unwrap_or(0)
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<u64> = self.0.values().flatten().copied().collect();
        write!(f, "gaps in ms (median, p99, max): {}", Summary::of(&mut all))?;
        for (trouble, gaps) in &self.0 {
            write!(f, "; {trouble} {}", Summary::of(&mut gaps.clone()))?;
        }
        Ok(())
    }
}

/// The median, the 99th percentile and the maximum.
struct Summary(u64, u64, u64);

impl Summary {
    fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let at = |percent: usize| {
            values.get((values.len() * percent / 100).min(values.len().saturating_sub(1)))
        };
        let value = |percent| at(percent).copied().unwrap_or(0);
        Self(value(50), value(99), value(100))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::{Gaps, Trouble};

    #[test]
    fn gaps_are_summed_up() {
        let mut gaps = Gaps::default();
        gaps.0.insert(Trouble::Kill, (1..=200).rev().collect());
        let text = gaps.to_string();
        assert!(text.ends_with("(median, p99, max): 101 199 200; kill 101 199 200"), "{text}");
        assert!(Gaps::default().to_string().ends_with("0 0 0"));
    }
}
