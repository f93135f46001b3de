//! What one node does about the shards of its cluster: it claims them, has them hosted, and hands
//! them over.
//!
//! [`Ownership`] asks a [`Registry`] and tells its caller what to do with [`Order`]s. The caller
//! hosts the shards: it seizes the log of a shard, loads it, serves it, and reports what has come
//! of that. Nothing here decides who may write: that is the fence of the log. A host whose log was
//! seized by another node ends, whatever the registry says, and a host that holds its log serves
//! on while the registry is away or knows nothing of it.
//!
//! It reads no clock and does no I/O. Every [`Ownership::turn`] gets the time in milliseconds of
//! a clock that never goes back.

mod answers;
mod claims;
mod local;
mod releases;
mod session;
mod silence;

use std::collections::VecDeque;
use std::mem;

use crate::placement::{Member, Placement};
use crate::registry::{Instance, NodeRecord, OwnRecord, Registry, RegistryCall, ShardNumber, View};
use local::Local;
pub use local::ShardState;
use releases::Moving;
use session::{Phase, Session};
use silence::Silence;

/// Of the calls that change the record of a shard, so many may be under way. Each may take as long
/// as the registry allows, and renewals wait for them.
const OWN_CALLS_MAX: usize = 16;

/// How an [`Ownership`] behaves. All times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnershipOptions {
    /// The time to live of the session. It is renewed five times as often.
    pub session_ttl_ms: u64,
    /// How many shards the cluster has.
    pub shards: u16,
    /// A node claims a shard without an owner after this time for each node that is before it in
    /// the ranking of the shard.
    pub claim_step_ms: u64,
    /// A host that has to release its shard and has not done so after this time keeps it,
    /// unless the node is to end.
    pub hand_over_ms: u64,
    /// A shard whose host has failed is not claimed again by the same node for this time.
    pub pause_ms: u64,
}

impl OwnershipOptions {
    /// The usual times for a session of this time to live.
    #[must_use]
    pub const fn new(session_ttl_ms: u64, shards: u16) -> Self {
        let (claim_step_ms, hand_over_ms, pause_ms) = (250, 2_000, 1_000);
        Self { session_ttl_ms, shards, claim_step_ms, hand_over_ms, pause_ms }
    }

    /// How often the session is renewed, and how often the registry is asked again that did not
    /// answer.
    const fn interval_ms(&self) -> u64 {
        let interval = self.session_ttl_ms / 5;
        if interval == 0 { 1 } else { interval }
    }

    /// How long the members must not have changed before shards move, and how long a node waits
    /// for another one with its name.
    const fn calm_ms(&self) -> u64 {
        self.session_ttl_ms.saturating_mul(2)
    }
}

/// What the caller has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Seize the log of this shard, load it and serve it. Report [`Ownership::note_serving`] or
    /// [`Ownership::note_failed`].
    Host(ShardNumber),
    /// Stop serving this shard in order, or loading it. Report [`Ownership::note_released`] when
    /// everything is durable and writing has ended.
    Release(ShardNumber),
    /// The release took too long: serve this shard again. If its host has already stopped, report
    /// that: then the report counts.
    Resume(ShardNumber),
    /// [`Ownership::view`] has changed.
    Refresh,
    /// Another node with this name lives. End the process, with exit code 2. The text says which.
    /// Comes once, and nothing follows.
    GiveUp(String),
}

/// Why a host has ended without an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostEnd {
    /// Another node has seized the log.
    Fenced,
    /// Its log did not answer.
    Silent,
    /// Anything else: the shard could not be loaded, or its engine is gone.
    Failed,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Sessions that ended against the will of this node.
    pub sessions_lost: u64,
    /// Shards claimed whose owner had not handed them over.
    pub take_overs: u64,
    /// Claims that found another owner.
    pub claims_lost: u64,
    /// Shards handed over in order.
    pub moves: u64,
    /// Releases that took too long.
    pub moves_given_up: u64,
    /// Hosts that ended because another node had seized their log.
    pub fenced: u64,
    /// Hosts that ended for any other reason.
    pub failed: u64,
}

/// A call that is under way.
struct PendingCall {
    call: RegistryCall,
    /// Who has asked.
    instance: Instance,
    sent_at: u64,
}

/// The part of one node in its cluster.
pub struct Ownership {
    registry: Box<dyn Registry>,
    options: OwnershipOptions,
    draw: Box<dyn FnMut() -> Instance + Send>,
    now: u64,
    /// What this node says about itself.
    node: NodeRecord,
    /// Whether the process is to end.
    is_leaving: bool,
    /// Whether the wall clock of this node is wrong.
    is_clock_off: bool,
    silence: Silence,
    session: Session,
    under_way: VecDeque<PendingCall>,
    /// How many of them change the record of a shard.
    own_calls: usize,
    view: View,
    /// The nodes of the view with this one, sorted.
    members: Vec<Member>,
    /// The targets by which they were placed.
    targets: Vec<(ShardNumber, String)>,
    /// When they changed the last time, or a shard did not go where it belongs.
    calm_since: u64,
    placement: Placement,
    locals: Vec<Local>,
    moving: Option<Moving>,
    counters: Counters,
    orders: Vec<Order>,
}

impl Ownership {
    /// Creates the part of a node that is in no cluster yet. The first turn begins to ask.
    ///
    /// `draw` returns an instance that was never used before, for each session after the first.
    #[must_use]
    pub fn new(
        registry: Box<dyn Registry>,
        node: NodeRecord,
        options: OwnershipOptions,
        draw: Box<dyn FnMut() -> Instance + Send>,
    ) -> Self {
        let shards = usize::from(options.shards);
        let mut ownership = Self {
            registry,
            options,
            draw,
            now: 0,
            is_leaving: node.draining,
            is_clock_off: false,
            node,
            silence: Silence::default(),
            session: Session::default(),
            under_way: VecDeque::new(),
            own_calls: 0,
            view: View { owners: vec![None; shards], ..View::default() },
            members: Vec::new(),
            targets: Vec::new(),
            calm_since: 0,
            placement: Placement::default(),
            locals: vec![Local::default(); shards],
            moving: None,
            counters: Counters::default(),
            orders: Vec::new(),
        };
        ownership.count_members();
        ownership
    }

    /// Takes the answers of the registry, does everything that is due at this time, and returns
    /// what the caller has to do, in order. Time never goes back: an earlier time counts as the
    /// latest one that is known.
    ///
    /// Call it when the registry has an answer, after each report, and at [`Self::poll_timeout`].
    /// Takes O(n) for n shards. When the members have changed, they are placed anew.
    pub fn turn(&mut self, now_ms: u64) -> Vec<Order> {
        self.now = self.now.max(now_ms);
        while !self.under_way.is_empty()
            && let Some(answer) = self.registry.poll()
        {
            self.take_answer(answer);
        }
        if !matches!(self.session.phase, Phase::Ending | Phase::Over) {
            self.keep_session();
            self.check_silence();
            self.begin_releases();
            self.advance_releases();
            self.keep_records();
            self.claim();
        }
        mem::take(&mut self.orders)
    }

    /// Returns the time of the next turn, if no answer or report comes before. None if only those
    /// are waited for. It is after the time of the last turn.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        if matches!(self.session.phase, Phase::Ending | Phase::Over) {
            return None;
        }
        let own = self.session_timeouts().into_iter().flatten().chain(self.moving_timeout());
        let own = own.chain(self.silence_timeout());
        let shards = (0..self.options.shards).flat_map(|shard| {
            self.release_timeout(shard).into_iter().chain(self.claim_timeout(shard))
        });
        own.chain(shards).filter(|at| *at > self.now).min()
    }

    /// Reports that the host of a shard has seized and loaded its log, and serves in this term.
    pub fn note_serving(&mut self, shard: ShardNumber, term: u64) {
        let now = self.now;
        if let Some(host) = self.host_mut(shard) {
            host.term = term;
            host.serving_since = Some(now);
            self.silence.note_loaded(self.node.suspended);
        }
    }

    /// Reports that the host of a shard has stopped in order, and that everything is durable.
    pub fn note_released(&mut self, shard: ShardNumber) {
        if self.end_host(shard) {
            self.counters.moves += 1;
        }
    }

    /// Reports that the host of a shard has ended without an order. Another node may claim it, and
    /// so may this one after a pause.
    pub fn note_failed(&mut self, shard: ShardNumber, end: HostEnd) {
        if !self.end_host(shard) {
            return;
        }
        match end {
            HostEnd::Fenced => self.counters.fenced += 1,
            HostEnd::Failed => self.counters.failed += 1,
            HostEnd::Silent => {
                self.counters.failed += 1;
                self.suspend();
            }
        }
        let not_before = self.now.saturating_add(self.options.pause_ms);
        if let Some(local) = self.local_mut(shard) {
            local.not_before = not_before;
        }
        if self.moving.as_ref().is_some_and(|moving| moving.shard == shard) {
            self.moving = None;
        }
    }

    /// Notes whether the wall clock of this node is wrong, by [`crate::clocks::is_off`]. As long as
    /// it is, or that is unknown yet, no shard is claimed. What is served is served on.
    pub const fn note_clock(&mut self, is_off: bool) {
        self.is_clock_off = is_off;
    }

    /// Forgets the host of a shard. False if there is none.
    fn end_host(&mut self, shard: ShardNumber) -> bool {
        self.local_mut(shard).and_then(|local| local.host.take()).is_some()
    }

    /// Begins to hand all shards over, because the process is to end. No more shards are claimed.
    pub fn drain(&mut self) {
        self.is_leaving = true;
        self.node.draining = true;
        self.count_members();
    }

    /// Whether all shards were handed over, after [`Self::drain`].
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_leaving && self.locals.iter().all(|local| local.host.is_none())
    }

    /// Ends the session with all its records. Nothing is asked and ordered after that.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        self.end_session();
    }

    /// Whether the session has ended, after [`Self::leave`] or [`Order::GiveUp`], or the registry
    /// was told so and did not answer.
    #[must_use]
    pub const fn has_left(&self) -> bool {
        matches!(self.session.phase, Phase::Over)
    }

    /// What this node says about itself. Its instance changes when a session is lost.
    #[must_use]
    pub const fn node(&self) -> &NodeRecord {
        &self.node
    }

    /// The last view of the registry, with what this node has changed since.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Who ought to own what, by the last view.
    #[must_use]
    pub const fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The node that owns a shard by the last view, and what it says. None also if the registry
    /// shows a record of a node that it does not show.
    #[must_use]
    pub fn owner(&self, shard: ShardNumber) -> Option<(&NodeRecord, &OwnRecord)> {
        let record = self.view.owners.get(usize::from(shard))?.as_ref()?;
        if record.instance == self.node.instance {
            return Some((&self.node, record));
        }
        let node = self.view.nodes.iter().find(|node| node.instance == record.instance)?;
        Some((node, record))
    }

    /// How far this node has come with a shard. [`ShardState::Absent`] if there is no such shard.
    #[must_use]
    pub fn state(&self, shard: ShardNumber) -> ShardState {
        self.locals.get(usize::from(shard)).map_or(ShardState::Absent, Local::state)
    }

    /// Whether the registry knows this node, as far as it has said.
    #[must_use]
    pub const fn has_session(&self) -> bool {
        matches!(self.session.phase, Phase::Live)
    }

    /// For how long the registry has owed an answer: since the first call after the last answer.
    /// 0 if it owes none.
    #[must_use]
    pub fn registry_silent_for(&self, now_ms: u64) -> u64 {
        self.session.silent_since.map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Starts a call.
    fn ask(&mut self, call: RegistryCall) {
        self.session.silent_since.get_or_insert(self.now);
        self.own_calls += usize::from(changes_owner(&call));
        let instance = self.node.instance;
        self.registry.start(call.clone());
        self.under_way.push_back(PendingCall { call, instance, sent_at: self.now });
    }

    /// Whether an instance is this process, now or before it lost a session.
    fn is_own(&self, instance: Instance) -> bool {
        instance == self.node.instance || self.session.former.contains(&instance)
    }

    fn local_mut(&mut self, shard: ShardNumber) -> Option<&mut Local> {
        self.locals.get_mut(usize::from(shard))
    }

    fn host_mut(&mut self, shard: ShardNumber) -> Option<&mut local::Host> {
        self.local_mut(shard).and_then(|local| local.host.as_mut())
    }

    /// The record of a shard, as far as it is known.
    fn record(&self, shard: ShardNumber) -> Option<OwnRecord> {
        self.view.owners.get(usize::from(shard)).copied().flatten()
    }

    /// Finds out who the members are, and places the shards anew if they have changed.
    fn count_members(&mut self) {
        let is_told = |name: &String| self.view.drained.contains(name);
        let others = self.view.nodes.iter().filter(|node| node.name != self.node.name);
        let mut members: Vec<Member> = others
            .map(|node| Member {
                name: node.name.clone(),
                is_draining: node.draining || node.suspended || is_told(&node.name),
            })
            .collect();
        let is_draining = self.node.draining || self.node.suspended;
        let own = Member { name: self.node.name.clone(), is_draining };
        members.push(own);
        members.sort();
        let is_news = members != self.members;
        if is_news || self.view.targets != self.targets {
            let targets = self.view.targets.clone();
            let shards = self.options.shards;
            self.placement = Placement::with_targets(&members, shards, &targets);
            (self.members, self.targets) = (members, targets);
            // A node that should own no shards is the last to claim any.
            let last = self.members.len() as u64;
            for (shard, local) in (0..).zip(&mut self.locals) {
                local.rank = self.placement.rank(shard, &self.node.name).unwrap_or(last);
                local.returns = 0;
            }
            // A move by an operator does not wait.
            if is_news {
                self.calm_since = self.now;
            }
        }
    }

    /// Whether nothing may be served, since the engine was rolled back and that is not accepted
    /// yet.
    fn is_halted(&self) -> bool {
        self.view.rolled_back().is_some()
    }

    /// Whether no node is left that is not draining.
    fn all_drain(&self) -> bool {
        self.members.iter().all(|member| member.is_draining)
    }
}

/// Whether a call changes the record of a shard.
const fn changes_owner(call: &RegistryCall) -> bool {
    matches!(call, RegistryCall::Claim { .. } | RegistryCall::Own { .. })
}
