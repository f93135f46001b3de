//! What a connection has under way in other shards than the one that serves it.
//!
//! A request for a queue of another shard goes there as it came, and its answer comes back in the
//! client's own protocol: here it only keeps its place among the others. How much may be under way
//! is bounded, so that nobody fills another shard's mailbox. The other end is `host`.

use pinpriq_engine::task::ClientId;

use crate::credits::Credits;
use crate::mailbox::{Errand, News, Post, Question, Standing};
use crate::outbox::Join;
use crate::shard::{Session, Shard};

/// How many bytes of requests a connection may have under way to one shard, one request more or
/// less.
const UNDER_WAY_BYTES_MAX: usize = 256 << 10;

/// From how many accepted bytes on a shard is told of them although there is nothing else to tell.
const ACCEPTED_BYTES: usize = 4 << 10;

/// See the head of this file. Of a connection that has never asked another shard it is empty.
#[derive(Default)]
pub(crate) struct Links {
    /// One for each shard, once there is one.
    shards: Vec<Link>,
    /// Whether a request may be blocked, so that nothing behind it is carried out.
    blocked: bool,
    /// Whether the blocked request is to be answered as if its time were up.
    gives_up: bool,
    /// Whether all shards may still have their part of a request before them, so that nothing
    /// behind it is carried out.
    gathers: bool,
    /// The shard that has the connection's subscriptions and credits, once it has any.
    deliveries: Option<usize>,
}

#[derive(Clone, Default)]
struct Link {
    open: bool,
    /// Bytes of requests that are under way.
    under_way: usize,
    /// How often the client was to begin anew there.
    resets: u64,
    /// How it stands with it there, as far as is known.
    standing: Standing,
}

impl Links {
    /// Whether nothing was ever asked of another shard.
    pub(crate) const fn is_unused(&self) -> bool {
        self.shards.is_empty()
    }

    /// Whether a request may be blocked in another shard.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether nothing more may be asked for now.
    pub(crate) fn is_full(&self) -> bool {
        let most = if planted!(UnderWayUnbounded) { usize::MAX } else { UNDER_WAY_BYTES_MAX };
        let is_full = |link: &Link| link.under_way >= most && !link.standing.ended;
        self.gathers || self.shards.iter().any(is_full)
    }

    /// Whether more answers are about to come, since a shard is at work on requests that it need
    /// not wait with. Sending costs more than all else, so that answers had better leave together.
    pub(crate) fn is_about_to_hear(&self) -> bool {
        self.shards
            .iter()
            .any(|link| link.under_way > 0 && !link.standing.stalled && !link.standing.ended)
    }

    /// Whether every request has been carried out that went to another shard.
    pub(crate) fn is_idle(&self) -> bool {
        self.shards.iter().all(|link| link.under_way == 0 || link.standing.ended)
    }

    /// Whether a shard has ended its side, so that the connection has to end.
    pub(crate) fn is_broken(&self) -> bool {
        self.shards.iter().any(|link| link.standing.ended)
    }

    /// Whether the client has subscriptions in another shard.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.shards.iter().any(|link| link.standing.subscribed)
    }

    /// The shard that has the connection's subscriptions and credits, if one does.
    pub(crate) const fn deliveries(&self) -> Option<usize> {
        self.deliveries
    }

    fn link(&mut self, shards: usize, to: usize) -> &mut Link {
        self.shards.resize(shards, Link::default());
        &mut self.shards[to]
    }
}

impl Shard {
    /// Has another shard carry out a request of a client. `replies` tells whether there will be a
    /// reply, `blocks` whether it may be long in coming, so that the client has to wait for it.
    pub(crate) fn forward(
        &self,
        (client, session): (ClientId, &Session),
        to: usize,
        request: &[u8],
        (replies, blocks): (bool, bool),
    ) {
        let Some(post) = self.open_link(client, session, to) else { return };
        // What was answered before stands before this in the outbox.
        self.turn_if_begun();
        post.write_request(to, client, request);
        let mut links = session.links.borrow_mut();
        links.link(post.shards(), to).under_way += request.len();
        links.blocked |= blocks && !planted!(BlockedAbroadPassed);
        if replies {
            session.outbox.borrow_mut().await_reply(post.shards(), to);
        }
    }

    /// Asks all shards for their part of an answer. Nothing that the client asks for behind it is
    /// carried out before they have given it: this shard would be ahead of its own part.
    pub(crate) fn ask_all(
        &self,
        (client, session): (ClientId, &Session),
        question: impl Fn() -> Question,
        join: Join,
    ) {
        self.turn_if_begun();
        for to in 0..self.shards() {
            let Some(post) = self.open_link(client, session, to) else { return };
            let question = question();
            if let Question::Request(request) = &question {
                session.links.borrow_mut().link(post.shards(), to).under_way += request.len();
            }
            post.write_errand(to, client, Errand::Ask(question));
        }
        session.links.borrow_mut().gathers = !planted!(AllShardsPassed);
        let all: Vec<usize> = (0..self.shards()).collect();
        session.outbox.borrow_mut().await_parts(self.shards(), &all, join);
    }

    /// Has an answer wait until all shards that the connection has to do with have done what they
    /// were told last. Without such shards it waits for nothing.
    pub(crate) fn say_once_done(&self, session: &Session, bytes: Vec<u8>) {
        let links = session.links.borrow();
        let open = links.shards.iter().enumerate().filter(|(_, link)| link.open);
        let open: Vec<usize> = open.map(|(shard, _)| shard).collect();
        if open.is_empty() || planted!(ResetNotAwaited) {
            return self.say(session, bytes);
        }
        self.turn_if_begun();
        let join = Box::new(move |_| bytes);
        session.outbox.borrow_mut().await_parts(self.shards(), &open, join);
    }

    /// Has all subscriptions and credits of a connection in one shard from now on, which gets what
    /// credits were granted before. Returns whether they are not in another already.
    pub(crate) fn settle_deliveries(
        &self,
        (client, session): (ClientId, &Session),
        to: usize,
        credits: &mut Credits,
    ) -> bool {
        let settled = session.links.borrow().deliveries;
        if let Some(settled) = settled {
            return settled == to;
        }
        session.links.borrow_mut().deliveries = Some(to);
        let banked = if to == self.own() { 0 } else { credits.withdraw() };
        if banked > 0
            && let Some(post) = self.open_link(client, session, to)
            && !planted!(EarlyCreditsLost)
        {
            post.write_errand(to, client, Errand::Credit(banked));
        }
        true
    }

    /// Tells all shards that the connection has to do with.
    pub(crate) fn tell_links(
        &self,
        client: ClientId,
        session: &Session,
        errand: impl Fn() -> Errand,
    ) {
        let Some(post) = self.post() else { return };
        if !planted!(AcceptedNotTold) {
            self.tell_accepted(client, session, 1);
        }
        for (to, link) in session.links.borrow().shards.iter().enumerate() {
            if link.open {
                post.write_errand(to, client, errand());
            }
        }
    }

    /// Has the blocked request of a client answered as if its time were up, if another shard has
    /// it. Returns whether that was not asked for before.
    pub(crate) fn end_waits_abroad(&self, client: ClientId, session: &Session) -> bool {
        {
            let links = &mut *session.links.borrow_mut();
            if !links.blocked || std::mem::replace(&mut links.gives_up, true) {
                return false;
            }
        }
        self.tell_links(client, session, || Errand::EndWaits);
        true
    }

    /// Begins anew with a client whose former subscriptions, credits and leases are to end.
    pub(crate) fn reset_links(&self, client: ClientId, session: &Session) {
        self.tell_links(client, session, || Errand::Reset);
        let links = &mut *session.links.borrow_mut();
        links.deliveries = None;
        for link in links.shards.iter_mut().filter(|link| link.open) {
            link.standing.subscribed = false;
            link.resets += 1;
        }
    }

    /// Tells each shard how many bytes of its answers the client's socket has accepted, if they are
    /// at least so many.
    pub(crate) fn tell_accepted(&self, client: ClientId, session: &Session, least: usize) {
        let Some(post) = self.post() else { return };
        for to in 0..session.links.borrow().shards.len() {
            tell_accepted_to(post, to, (client, session), least);
        }
    }

    /// See [`Shard::tell_accepted`], for the time after each write. `out_bytes_max` is how far
    /// ahead of that a shard may encode.
    pub(crate) fn note_accepted(&self, client: ClientId, session: &Session, out_bytes_max: usize) {
        if !session.links.borrow().is_unused() {
            self.tell_accepted(client, session, ACCEPTED_BYTES.min(out_bytes_max / 2).max(1));
        }
    }

    /// Takes in what has become of errands of a client.
    pub(crate) fn receive_news(&self, client: ClientId, from: usize, news: News) {
        let Some(session) = self.session(client) else { return };
        let mut outbox = session.outbox.borrow_mut();
        outbox.arrive(self.shards(), from, news.pieces, &news.bytes);
        let mut links = session.links.borrow_mut();
        let link = links.link(self.shards(), from);
        link.under_way -= news.consumed;
        let has_begun_anew = link.resets == news.resets;
        let subscribed = has_begun_anew && news.standing.subscribed;
        link.standing = Standing { subscribed, ..news.standing };
        if news.standing.ended {
            outbox.lose(from);
        }
        if outbox.is_owed_nothing() {
            (links.blocked, links.gives_up, links.gathers) = (false, false, false);
        }
        session.bell.ring();
    }

    /// Makes sure that the shard expects errands of the client.
    fn open_link(&self, client: ClientId, session: &Session, to: usize) -> Option<&Post> {
        let post = self.post()?;
        let links = &mut *session.links.borrow_mut();
        let link = links.link(post.shards(), to);
        if !std::mem::replace(&mut link.open, true) {
            let about = session.about.borrow();
            let (door, peer, dialect) = (about.door, about.peer, session.dialect.get());
            post.write_errand(to, client, Errand::Open { door, peer, dialect });
        }
        tell_accepted_to(post, to, (client, session), 1);
        Some(post)
    }
}

/// Tells one shard, see [`Shard::tell_accepted`].
fn tell_accepted_to(post: &Post, to: usize, (client, session): (ClientId, &Session), least: usize) {
    let accepted = session.outbox.borrow_mut().take_accepted(to, least);
    if accepted > 0 {
        post.write_errand(to, client, Errand::Written(accepted));
    }
}

#[cfg(test)]
mod tests;
