//! What a client has under way in other shards than the one that has its connection.
//!
//! How much that may be is bounded, so that nobody fills another shard's mailbox. Plain counting:
//! `home::desk` writes the letters.

use super::ending::Ending;
use crate::letters::letter::Standing;

/// How many bytes of commands a client may have under way to one shard, one command more or less.
const UNDER_WAY_BYTES_MAX: usize = 256 << 10;

/// See the head of this file. Of a client that has never asked another shard it is empty.
#[derive(Default)]
pub(crate) struct Links {
    /// One for each shard, once there is one.
    shards: Vec<Link>,
    /// Whether a command may be blocked, so that nothing behind it is carried out.
    pub(crate) blocked: bool,
    /// Whether the blocked command is to be answered as if its time were up.
    pub(crate) gives_up: bool,
    /// Whether all shards may still have their part of a request before them, so that nothing
    /// behind it is carried out.
    pub(crate) gathers: bool,
    /// The shard that has the client's subscriptions and credits, once it has any.
    pub(crate) deliveries: Option<usize>,
}

/// What a client has under way in one shard.
#[derive(Clone, Default)]
pub(crate) struct Link {
    /// Whether the shard expects errands of the client.
    pub(crate) open: bool,
    /// Bytes of commands that are under way.
    pub(crate) under_way: usize,
    /// How often the client was to begin anew there.
    pub(crate) resets: u64,
    /// How many deliveries were made there since the client began anew, as far as is known.
    pub(crate) delivered: u64,
    /// How many outputs have come from there.
    pub(crate) heard: u64,
    /// How it stands with the client there, as far as is known.
    pub(crate) standing: Standing,
}

impl Links {
    /// Whether nothing was ever asked of another shard.
    pub(crate) const fn is_unused(&self) -> bool {
        self.shards.is_empty()
    }

    /// Whether nothing more may be asked for now.
    pub(crate) fn is_full(&self) -> bool {
        let most = if planted!(UnderWayUnbounded) { usize::MAX } else { UNDER_WAY_BYTES_MAX };
        let is_full = |link: &Link| link.under_way >= most && link.standing.ended.is_none();
        self.gathers || self.shards.iter().any(is_full)
    }

    /// Whether more answers are about to come, since a shard is at work on commands that it need
    /// not wait with. Sending costs more than all else, so that answers had better leave together.
    pub(crate) fn is_about_to_hear(&self) -> bool {
        let is_at_work = |standing: Standing| !standing.stalled && standing.ended.is_none();
        self.shards.iter().any(|link| link.under_way > 0 && is_at_work(link.standing))
    }

    /// Whether every command has been carried out that went to another shard.
    pub(crate) fn is_idle(&self) -> bool {
        self.shards.iter().all(|link| link.under_way == 0 || link.standing.ended.is_some())
    }

    /// Why a shard has ended its side, so that the connection has to end, if one has.
    pub(crate) fn broken(&self) -> Option<Ending> {
        self.shards.iter().find_map(|link| link.standing.ended)
    }

    /// Whether the client has subscriptions in another shard.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.shards.iter().any(|link| link.standing.subscribed)
    }

    /// How many shards there are links to, with those that are not open.
    pub(crate) const fn count(&self) -> usize {
        self.shards.len()
    }

    /// The shards that expect errands of the client.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.shards.iter().enumerate().filter(|(_, link)| link.open).map(|(shard, _)| shard)
    }

    /// The link to one of this number of shards.
    pub(crate) fn link(&mut self, shards: usize, to: usize) -> &mut Link {
        self.shards.resize(shards, Link::default());
        &mut self.shards[to]
    }
}
