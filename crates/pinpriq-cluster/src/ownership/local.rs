//! What a node knows of its own part in one shard.

use crate::registry::{Instance, OwnRecord, OwnState};

/// How far this node has come with a shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShardState {
    /// It has nothing to do with it.
    Absent,
    /// It has asked for it, and was not answered.
    Claiming,
    /// Its host seizes and loads the log.
    Loading,
    /// Its host serves.
    Serving,
    /// Its host is stopping, or will in a moment.
    Releasing,
}

/// A release that was decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) since: u64,
    /// When the host got the order. Until then it serves.
    pub(super) ordered_at: Option<u64>,
    /// Whether the shard moves to a better place. Otherwise the node gives up all its shards.
    pub(super) is_move: bool,
}

/// A host that was ordered and has not ended.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Host {
    /// The term of its tenure, or 0 as long as it has none.
    pub(super) term: u64,
    pub(super) serving_since: Option<u64>,
    pub(super) release: Option<Release>,
    /// No release before this time, since the last one took too long.
    pub(super) kept_until: u64,
    /// Since when it says nothing, because its log does not answer.
    pub(super) suspended_since: Option<u64>,
    /// Whether it has to end because of that. Others may claim the shard meanwhile: a node
    /// that seizes its log fences this host.
    pub(super) is_given_up: bool,
}

impl Host {
    /// What the registry ought to say of it.
    pub(super) const fn record(&self, instance: Instance) -> Option<OwnRecord> {
        if self.is_given_up {
            return None;
        }
        let state = match (self.release, self.serving_since) {
            (Some(_), _) => OwnState::Releasing,
            (None, Some(_)) if self.suspended_since.is_some() => OwnState::Suspended,
            (None, Some(_)) => OwnState::Serving,
            (None, None) => OwnState::Loading,
        };
        Some(OwnRecord { instance, term: self.term, state })
    }
}

/// What becomes of the record of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Writing {
    /// It is known.
    #[default]
    Known,
    /// A claim is under way.
    Claim,
    /// Another change is under way.
    Change,
    /// The call's outcome is unknown. Read it from the next view.
    Unknown,
}

/// One shard.
#[derive(Clone, Default, Debug)]
pub(super) struct Local {
    pub(super) host: Option<Host>,
    /// The place of this node in the ranking of the shard. The last one if it is to have none.
    pub(super) rank: u64,
    /// How often it was to move and stayed or came back, since the members changed.
    pub(super) returns: u32,
    /// What was asked about its record.
    pub(super) writing: Writing,
    /// Since when it has no owner.
    pub(super) vacant_since: Option<u64>,
    /// Whether its last owner vanished without handing it over.
    pub(super) is_orphan: bool,
    /// Since when another node hands it over.
    pub(super) handed_since: Option<u64>,
    /// No claim before this time.
    pub(super) not_before: u64,
}

impl Local {
    /// Whether its record may be changed now.
    pub(super) fn is_settled(&self) -> bool {
        self.writing == Writing::Known
    }

    /// Whether a call that changes its record is under way.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.writing, Writing::Claim | Writing::Change)
    }

    pub(super) const fn state(&self) -> ShardState {
        match self.host {
            None if matches!(self.writing, Writing::Claim) => ShardState::Claiming,
            None => ShardState::Absent,
            Some(Host { release: Some(_), .. }) => ShardState::Releasing,
            Some(Host { serving_since: Some(_), .. }) => ShardState::Serving,
            Some(_) => ShardState::Loading,
        }
    }
}
