//! What a client has under way in shards other than that of its connection.
//!
//! The amount is bounded, so that no client fills another shard's mailbox. This module only counts:
//! `home::desk` writes the letters.

use std::cell::Cell;
use std::rc::Rc;

use pinpriq_proto::task::Bytes;

use crate::clients::about::Manners;
use crate::clients::ending::Ending;
use crate::letters::letter::Standing;
use crate::session::log::Log;
use crate::session::subscriptions::Subscriptions;

/// How many bytes of commands a client may have under way to one shard, give or take one command.
const UNDER_WAY_BYTES_MAX: usize = 256 << 10;

/// What a client has under way in other shards. Empty for a client that has never asked another
/// shard.
#[derive(Default)]
pub(crate) struct Links {
    /// One link for each shard, once there is one.
    shards: Vec<Link>,
    /// Whether a command may be blocked, so that nothing after it is carried out.
    pub(crate) blocked: bool,
    /// Whether the wait of the blocked command is to end as if its time had passed.
    pub(crate) gives_up: bool,
    /// Whether shards may not have done their part of a request yet, so that nothing after it is
    /// carried out.
    pub(crate) gathers: bool,
    /// The shard that has the client's subscriptions and credits, once it has any. If they are in
    /// several, the session knows more.
    pub(crate) deliveries: Option<usize>,
    /// What is needed to ask another owner of a shard, if owners may change.
    pub(crate) lasting: Lasting,
}

/// What a client keeps when the owner of a shard changes.
#[derive(Default)]
pub(crate) struct Lasting {
    /// How the client is treated.
    pub(crate) manners: Option<Manners>,
    /// Whether it asks for nothing more, and if so, whether because the server stops.
    pub(crate) ends: Option<bool>,
    /// Its subscriptions.
    pub(crate) subscriptions: Subscriptions,
    /// All credits that were given to the shard with the subscriptions.
    pub(crate) credits: u64,
}

/// What a client has under way in one shard.
#[derive(Default)]
pub(crate) struct Link {
    /// Whether the shard expects errands of the client.
    pub(crate) open: bool,
    /// What the tasks that the client puts there count for, as far as the shard knows.
    pub(crate) account: Option<Bytes>,
    /// The bytes of commands that are under way.
    pub(crate) under_way: usize,
    /// How often the client was reset there.
    pub(crate) resets: u64,
    /// The known number of deliveries made there since the client's latest reset.
    pub(crate) delivered: u64,
    /// The number of these that have arrived from the present owner of the shard, without those
    /// that it has called back.
    pub(crate) arrived: u64,
    /// The deliveries that have arrived from former owners of the shard. What waits for an answer
    /// of the present one shares it.
    pub(crate) delivered_before: Rc<Cell<u64>>,
    /// What was asked there and is not done, if owners may change.
    pub(crate) log: Log,
    /// The number of outputs that have come from there.
    pub(crate) heard: u64,
    /// The known standing of the client there.
    pub(crate) standing: Standing,
    /// Whether the client has ever held a lease there.
    pub(crate) lends: bool,
}

impl Links {
    /// Whether nothing was ever asked of another shard.
    pub(crate) const fn is_unused(&self) -> bool {
        self.shards.is_empty()
    }

    /// Whether nothing more may be asked at the moment.
    pub(crate) fn is_full(&self) -> bool {
        let is_full =
            |link: &Link| link.under_way >= UNDER_WAY_BYTES_MAX && link.standing.ended.is_none();
        self.gathers || self.shards.iter().any(is_full)
    }

    /// Whether more replies are about to come, since a shard is carrying out commands that need not
    /// wait. Sending is the most expensive step, so replies are best sent together.
    pub(crate) fn is_about_to_hear(&self) -> bool {
        let is_at_work = |standing: Standing| !standing.stalled && standing.ended.is_none();
        self.shards.iter().any(|link| link.under_way > 0 && is_at_work(link.standing))
    }

    /// Whether every command that went to another shard was carried out.
    pub(crate) fn is_idle(&self) -> bool {
        self.shards.iter().all(|link| link.under_way == 0 || link.standing.ended.is_some())
    }

    /// Returns why a shard has ended its side, if one has. The connection must then end.
    pub(crate) fn broken(&self) -> Option<Ending> {
        self.shards.iter().find_map(|link| link.standing.ended)
    }

    /// Whether the client has subscriptions in another shard.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.shards.iter().any(|link| link.standing.subscriptions > 0)
    }

    /// Counts the deliveries that arrive from now on.
    pub(crate) fn forget_arrived(&mut self) {
        for link in &mut self.shards {
            link.arrived = 0;
        }
    }

    /// Returns the number of shards with links, including links that are not open.
    pub(crate) const fn count(&self) -> usize {
        self.shards.len()
    }

    /// Returns the shards that expect errands of the client.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.shards.iter().enumerate().filter(|(_, link)| link.open).map(|(shard, _)| shard)
    }

    /// Returns the shards where something of the client is or will be: those that expect errands,
    /// and those without an owner whose next one will be asked for something.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = usize> {
        let is_used = |link: &Link| link.open || !link.log.is_empty();
        self.shards
            .iter()
            .enumerate()
            .filter(move |(_, link)| is_used(link))
            .map(|(shard, _)| shard)
    }

    /// Returns the shards where the client has ever held a lease.
    pub(crate) fn lenders(&self) -> impl Iterator<Item = usize> {
        self.shards.iter().enumerate().filter(|(_, link)| link.lends).map(|(shard, _)| shard)
    }

    /// Whether anything was ever asked of shard `to`.
    pub(crate) fn has(&self, to: usize) -> bool {
        self.shards.len() > to
    }

    /// Returns the link to shard `to` of this number of shards.
    pub(crate) fn link(&mut self, shards: usize, to: usize) -> &mut Link {
        self.shards.resize_with(shards, Link::default);
        &mut self.shards[to]
    }
}
