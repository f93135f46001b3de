//! The session of a node: it announces itself, renews its session, and deals with other nodes of
//! its name.

use super::local::{Local, Writing};
use super::{Order, Ownership};
use crate::registry::{Instance, NodeRecord, RegistryCall};

/// Between two views pass at least so many milliseconds.
const GAP_MS: u64 = 50;

/// While another node hands a shard over to this one, the next view is asked for after so many
/// milliseconds.
const HURRY_MS: u64 = 100;

/// So many instances of this process are remembered.
const FORMER_MAX: usize = 16;

/// How far the session has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// It looks whether another node of its name lives.
    #[default]
    Looking,
    /// It opens a session.
    Announcing,
    /// It has a session, as far as it knows.
    Live,
    /// It ends the session.
    Ending,
    /// It has no session and wants none.
    Over,
}

/// What a node knows of its session.
#[derive(Default)]
pub(super) struct Session {
    pub(super) phase: Phase,
    /// Whether the node is draining and suspended, as the registry knows it. Nothing else in its
    /// record changes.
    pub(super) announced: Option<(bool, bool)>,
    pub(super) is_announcing: bool,
    /// When it may be announced.
    pub(super) announce_at: u64,
    /// The instances of this process whose sessions were lost.
    pub(super) former: Vec<Instance>,
    /// When the process got its first session.
    pub(super) first_at: Option<u64>,
    /// Since when another node of this name is in the way.
    pub(super) rival_since: Option<u64>,
    pub(super) is_looking: bool,
    /// When the next view is asked for.
    pub(super) look_at: u64,
    pub(super) looked_at: Option<u64>,
    /// When the last view of this session was asked for.
    pub(super) viewed_at: Option<u64>,
    /// When the first call was sent that came after the last answer.
    pub(super) silent_since: Option<u64>,
}

impl Ownership {
    /// Starts the calls of the session that are due.
    pub(super) fn keep_session(&mut self) {
        let now = self.now;
        let may_announce = !self.session.is_announcing && self.session.announce_at <= now;
        let is_news = self.is_news();
        // What is asked may arrive although nothing is answered. So that the session ends all the
        // same, and others take over, nothing is asked then that keeps one alive.
        let is_unheard = self.is_unheard();
        if is_unheard && self.session.phase == Phase::Announcing {
            self.session.phase = Phase::Looking;
        }
        match self.session.phase {
            Phase::Looking => self.look(RegistryCall::Look),
            Phase::Announcing if may_announce => self.announce(),
            Phase::Live if is_unheard => self.look(RegistryCall::Look),
            Phase::Live => {
                if may_announce && is_news {
                    self.announce();
                }
                self.look(RegistryCall::Renew);
            }
            Phase::Announcing | Phase::Ending | Phase::Over => {}
        }
    }

    /// Whether the registry has answered nothing for so long that the session must end.
    fn is_unheard(&self) -> bool {
        let silent_ms = self.registry_silent_for(self.now);
        silent_ms >= self.options.session_ttl_ms
    }

    /// Whether the registry does not know yet what the node says of itself.
    fn is_news(&self) -> bool {
        self.session.announced != Some((self.node.draining, self.node.suspended))
    }

    fn announce(&mut self) {
        self.session.is_announcing = true;
        self.session.announce_at = self.now.saturating_add(self.options.interval_ms());
        self.ask(RegistryCall::Announce(self.node.clone()));
    }

    /// Asks for a view if it is time.
    fn look(&mut self, call: RegistryCall) {
        if self.session.is_looking || self.session.look_at > self.now {
            return;
        }
        self.session.is_looking = true;
        self.session.looked_at = Some(self.now);
        self.session.look_at = self.now.saturating_add(self.options.interval_ms());
        self.ask(call);
    }

    /// Brings the next view forward.
    pub(super) fn look_after(&mut self, delay_ms: u64) {
        let gap = self.session.looked_at.map_or(0, |at| at.saturating_add(delay_ms.max(GAP_MS)));
        self.session.look_at = self.session.look_at.min(gap.max(self.now));
    }

    /// Brings the next view forward as far as possible: what the last one said was wrong.
    pub(super) fn look_soon(&mut self) {
        self.look_after(0);
    }

    /// Brings the next views forward while a shard is on its way to this node.
    pub(super) fn hurry(&mut self) {
        let bound = self.options.hand_over_ms.saturating_add(self.options.session_ttl_ms);
        let is_coming = |local: &Local| {
            let since = local.handed_since.filter(|_| local.rank == 0);
            since.is_some_and(|since| self.now.saturating_sub(since) < bound)
        };
        if self.locals.iter().any(is_coming) {
            self.look_after(HURRY_MS);
        }
    }

    /// The record was announced.
    pub(super) fn announced(&mut self, record: &NodeRecord) {
        self.session.is_announcing = false;
        self.session.announced = Some((record.draining, record.suspended));
        if self.session.phase == Phase::Announcing {
            self.session.phase = Phase::Live;
            self.session.first_at.get_or_insert(self.now);
            self.look_soon();
        }
    }

    /// The session has ended: opens another one, as a new instance. The hosts go on.
    pub(super) fn lose_session(&mut self) {
        if !matches!(self.session.phase, Phase::Announcing | Phase::Live) {
            return;
        }
        self.counters.sessions_lost += u64::from(self.session.phase == Phase::Live);
        if self.session.former.len() == FORMER_MAX {
            self.session.former.remove(0);
        }
        self.session.former.push(self.node.instance);
        self.node.instance = (self.draw)();
        self.session.phase = Phase::Looking;
        self.session.announced = None;
        self.session.is_announcing = false;
        self.session.announce_at = self.now;
        self.session.is_looking = false;
        self.session.viewed_at = None;
        for local in &mut self.locals {
            local.writing = Writing::Unknown;
        }
        self.look_soon();
    }

    /// Whether the process is so young that an old one of its name and data may still have a
    /// session.
    fn is_newcomer(&self) -> bool {
        let first = self.session.first_at;
        first.is_none_or(|first| self.now < first.saturating_add(self.options.calm_ms()))
    }

    /// Looks for other nodes of this name in the last view. Returns false if the node has to wait.
    ///
    /// A session of the same data directory that is older than this process is ended. One that is
    /// younger has taken the place of this process.
    pub(super) fn face_namesakes(&mut self) -> bool {
        let is_live = self.session.phase == Phase::Live;
        let is_newcomer = self.is_newcomer();
        let has_lost = self.counters.sessions_lost > 0;
        let (mut ended, mut rival) = (Vec::new(), None);
        for node in self.view.nodes.iter().filter(|node| node.name == self.node.name) {
            let is_former = self.session.former.contains(&node.instance);
            let is_older = node.data == self.node.data && is_newcomer && !has_lost;
            if node.instance == self.node.instance {
            } else if is_former || is_older {
                ended.push(node.instance);
            } else if !is_live
                || self.session.rival_since.is_some()
                || (is_newcomer && node.data != self.node.data)
            {
                rival = Some(format!(
                    "another node with the name {:?} lives, with the data {:032x}",
                    node.name, node.data
                ));
            }
        }
        if is_live {
            for instance in ended {
                self.ask(RegistryCall::End(instance));
            }
        }
        let Some(rival) = rival else {
            self.session.rival_since = None;
            return true;
        };
        let since = *self.session.rival_since.get_or_insert(self.now);
        if self.now >= since.saturating_add(self.options.calm_ms()) {
            self.end_session();
            self.orders.push(Order::GiveUp(rival));
        }
        false
    }

    /// Ends the session, if there may be one.
    pub(super) fn end_session(&mut self) {
        match self.session.phase {
            Phase::Looking => self.session.phase = Phase::Over,
            Phase::Announcing | Phase::Live => {
                self.session.phase = Phase::Ending;
                self.ask(RegistryCall::End(self.node.instance));
            }
            Phase::Ending | Phase::Over => {}
        }
    }

    /// When the session has something to do.
    pub(super) fn session_timeouts(&self) -> [Option<u64>; 2] {
        let looks = matches!(self.session.phase, Phase::Looking | Phase::Live);
        let announces = matches!(self.session.phase, Phase::Announcing | Phase::Live)
            && self.is_news()
            && !self.is_unheard();
        [
            (looks && !self.session.is_looking).then_some(self.session.look_at),
            (announces && !self.session.is_announcing).then_some(self.session.announce_at),
        ]
    }
}
