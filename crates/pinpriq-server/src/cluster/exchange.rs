//! Connects the home of a node with the shards of all nodes.
//!
//! A shard that is served here gets its letters by its mailbox. For one that is served elsewhere,
//! they cross the link to its node. Each node says over its links which shards it serves; of two
//! nodes that serve one shard, the one with the higher term is right, and the other one will
//! notice. So nothing here has to trust the registry.
//!
//! This module decides what goes where. It opens no connection and reads no clock.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pinpriq_cluster::Ownership;
use pinpriq_proto::task::ClientId;
use pinpriq_store::Extent;

use super::message::{self, Message, put};
use crate::facts::cluster::LogFacts;
use crate::home::desk::receive_news;
use crate::home::recovery::{Loss, gain_owner, give_up_waiting, lose_owner, refuse_waiting};
use crate::host::shard::Shard;
use crate::letters::letter::{Errand, Home, HostNews, Letter, News};
use crate::letters::mailbox::{Post, Route};
use crate::letters::owners::{Owner, Owners};
use crate::links::network::End;

/// A body is sent when it has this many bytes, even if there is more to say.
const BODY_BYTES: usize = 256 << 10;

/// The most bytes of one body. A longer message takes several.
const PIECE_BYTES: usize = 4 << 20;

/// Where messages of hosts go.
pub type Tell = Box<dyn Fn(usize, &HostNews)>;

/// What carries bodies to other nodes, in order.
pub trait Carrier {
    /// Sends a body. If the link has ended, it is lost.
    fn send(&self, to: End, body: &[u8]);
}

/// See the start of this file.
pub struct Exchange {
    home: Rc<Shard>,
    carrier: Box<dyn Carrier>,
    /// What the hosts have said, for the code that starts and stops them.
    tell: Tell,
    state: RefCell<State>,
}

struct State {
    /// The term of each shard that is served here.
    hosted: BTreeMap<usize, u64>,
    /// For each node that can be asked, the terms of the shards that it serves.
    others: BTreeMap<u128, BTreeMap<usize, u64>>,
    /// How far the wall clock of each node that can be asked is ahead of the own one, in
    /// milliseconds, as it has told last.
    clocks: BTreeMap<u128, i64>,
    /// The links of nodes that ask.
    askers: BTreeSet<u64>,
    /// How the logs of the shards fare that are served here.
    logs: BTreeMap<usize, LogFacts>,
    /// The highest term of each shard that anybody has told.
    highest: BTreeMap<usize, u64>,
    /// Who is asked for each shard.
    asked: BTreeMap<usize, Asked>,
    /// What is to be sent.
    bodies: BTreeMap<End, Vec<u8>>,
    /// The beginnings of messages whose rest has not come.
    unread: BTreeMap<End, Vec<u8>>,
}

/// Says that a shard is served, and nothing of its log.
const fn serves(shard: usize, term: u64) -> Message {
    Message::Serves { shard, term, extent: None, is_suspended: false }
}

/// Who is asked for a shard: a tenure of a node. What the same node serves with another term is
/// another host, which knows nothing of what the former one was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    term: u64,
    /// None for this node.
    node: Option<u128>,
}

impl State {
    /// Whether this node, or this one here, is asked for a shard.
    fn asks(&self, shard: usize, node: Option<u128>) -> bool {
        self.asked.get(&shard).is_some_and(|asked| asked.node == node)
    }
}

impl Exchange {
    /// Connects this home. `tell` is called with what hosts say.
    pub fn new(home: Rc<Shard>, carrier: Box<dyn Carrier>, tell: Tell) -> Rc<Self> {
        let state = State {
            hosted: BTreeMap::new(),
            others: BTreeMap::new(),
            clocks: BTreeMap::new(),
            askers: BTreeSet::new(),
            logs: BTreeMap::new(),
            highest: BTreeMap::new(),
            asked: BTreeMap::new(),
            bodies: BTreeMap::new(),
            unread: BTreeMap::new(),
        };
        Rc::new(Self { home, carrier, tell, state: RefCell::new(state) })
    }

    /// Hears what a host of this node says. Everything that it has written before was read.
    pub(crate) fn hear_host(&self, shard: usize, news: &HostNews) {
        match news {
            HostNews::Serves(term) => {
                self.state.borrow_mut().hosted.insert(shard, *term);
                self.tell_askers(&[serves(shard, *term)]);
                self.choose(shard);
            }
            HostNews::Released => self.end_host(shard, Loss::InOrder),
            HostNews::Failed(_) => self.end_host(shard, Loss::Sudden),
        }
        (self.tell)(shard, news);
        self.send();
    }

    fn end_host(&self, shard: usize, loss: Loss) {
        if self.state.borrow_mut().hosted.remove(&shard).is_none() {
            return;
        }
        self.tell_askers(&[match loss {
            Loss::InOrder => Message::Released { shard },
            Loss::Sudden => Message::Failed { shard },
        }]);
        // The next host of the shard must not find what was meant for this one.
        let left = self.home.post().map(|post| post.empty_box(shard)).unwrap_or_default();
        self.lose_with(left, shard, None, loss);
        self.choose(shard);
    }

    /// Notes that a node can be asked. It will say which shards it serves.
    pub fn link_up(&self, node: u128) {
        self.state.borrow_mut().others.insert(node, BTreeMap::new());
    }

    /// Notes that a node can no longer be asked.
    pub fn link_down(&self, node: u128) {
        let served = {
            let state = &mut *self.state.borrow_mut();
            state.bodies.remove(&End::To(node));
            state.unread.remove(&End::To(node));
            state.clocks.remove(&node);
            state.others.remove(&node).unwrap_or_default()
        };
        for shard in served.into_keys() {
            self.lose(shard, Some(node), Loss::Sudden);
            self.choose(shard);
        }
        self.send();
    }

    /// Notes a link of a node that asks.
    pub fn asker_came(&self, link: u64) {
        {
            let wall_ms = self.wall_ms();
            let state = &mut *self.state.borrow_mut();
            state.askers.insert(link);
            let body = state.bodies.entry(End::From(link)).or_default();
            // It may not serve before it knows whether its clock is right.
            put(&Message::Clock { wall_ms }, body);
            for (shard, term) in &state.hosted {
                put(&serves(*shard, *term), body);
            }
        }
        self.send();
    }

    /// Notes that a node that asks has gone, and all its clients with it.
    pub fn asker_gone(&self, link: u64) {
        let hosted: Vec<usize> = {
            let state = &mut *self.state.borrow_mut();
            state.askers.remove(&link);
            state.bodies.remove(&End::From(link));
            state.unread.remove(&End::From(link));
            state.hosted.keys().copied().collect()
        };
        let Some(post) = self.home.post() else {
            return;
        };
        for shard in hosted {
            post.put_into(shard, Letter::HomeGone(Home::Link(link)));
        }
    }

    /// Hears a body of another node. Returns false if it cannot be read: the link must end.
    pub fn hear(&self, from: End, body: &[u8]) -> bool {
        // Most bodies are whole messages.
        let mut unread = self.state.borrow_mut().unread.remove(&from).unwrap_or_default();
        let bytes = if unread.is_empty() {
            body
        } else {
            unread.extend_from_slice(body);
            &unread
        };
        let heard = message::read(bytes, |message| match from {
            End::To(node) => self.hear_answer(node, message),
            End::From(link) => self.hear_question(link, message),
        });
        let left = match heard {
            Ok(read) => bytes[read..].to_vec(),
            Err(malformed) => {
                tracing::warn!(why = %malformed, "refused a message of another node");
                return false;
            }
        };
        if !left.is_empty() {
            self.state.borrow_mut().unread.insert(from, left);
        }
        self.send();
        true
    }

    fn hear_answer(&self, node: u128, message: Message) {
        let shards = self.home.shards();
        match message {
            Message::Serves { shard, term, extent, is_suspended } if shard < shards => {
                if let Some(served) = self.state.borrow_mut().others.get_mut(&node) {
                    served.insert(shard, term);
                }
                self.choose(shard);
                // A node that is not asked knows nothing of the log.
                let is_asked = self.state.borrow().asks(shard, Some(node));
                let extent = extent.filter(|_| is_asked);
                if let (Some((head, applied)), Some(owners)) = (extent, self.owners()) {
                    owners.note_log(LogFacts {
                        shard,
                        extent: Extent { head, applied },
                        is_suspended,
                    });
                }
            }
            Message::Released { shard } if shard < shards => {
                self.lose_at(node, shard, Loss::InOrder);
            }
            Message::Failed { shard } if shard < shards => {
                self.lose_at(node, shard, Loss::Sudden);
            }
            Message::News { shard, client, news } => {
                // A node that is no longer asked has nothing to say.
                let is_asked = self.state.borrow().asks(shard, Some(node));
                if is_asked {
                    receive_news(&self.home, client, shard, news);
                }
            }
            Message::Clock { wall_ms } => {
                let ahead_ms = wall_ms.wrapping_sub(self.wall_ms()).cast_signed();
                self.state.borrow_mut().clocks.insert(node, ahead_ms);
            }
            // There is no such shard, or it is no answer.
            _ => {}
        }
    }

    /// Hears what a host of this node has for a client here.
    pub(crate) fn hear_news(&self, shard: usize, client: ClientId, news: News) {
        // A host that is no longer asked has nothing to say.
        if self.state.borrow().asks(shard, None) {
            receive_news(&self.home, client, shard, news);
        }
    }

    fn lose_at(&self, node: u128, shard: usize, loss: Loss) {
        if let Some(served) = self.state.borrow_mut().others.get_mut(&node) {
            served.remove(&shard);
        }
        self.lose(shard, Some(node), loss);
        self.choose(shard);
    }

    fn hear_question(&self, link: u64, message: Message) {
        let Message::Errand { shard, term, client, errand } = message else { return };
        let hosted = self.state.borrow().hosted.get(&shard).copied();
        // A node that asks for what is not served here, or no longer with this term, was told
        // so, or will be.
        let is_served = hosted.is_some_and(|own| own == term);
        if is_served && let Some(post) = self.home.post() {
            post.put_into(shard, Letter::Errand { home: Home::Link(link), client, errand });
        }
    }

    /// Notes that this node, or this one here, no longer serves a shard, if it is asked.
    fn lose(&self, shard: usize, node: Option<u128>, loss: Loss) {
        self.lose_with(Vec::new(), shard, node, loss);
    }

    /// Does the same. `left` are letters that have not reached the host of this node.
    fn lose_with(&self, left: Vec<Letter>, shard: usize, node: Option<u128>, loss: Loss) {
        let is_asked = {
            let state = &mut *self.state.borrow_mut();
            let is_asked = state.asks(shard, node);
            if is_asked {
                state.asked.remove(&shard);
            }
            is_asked
        };
        if is_asked {
            self.note_owner(shard, Owner::Unknown);
        }
        let Some(post) = self.home.post().filter(|_| is_asked) else { return };
        let mut unsent = post.take(shard);
        let is_own =
            |letter: &Letter| matches!(letter, Letter::Errand { home: Home::Place(_), .. });
        unsent.extend(left.into_iter().filter(is_own));
        lose_owner(&self.home, shard, &unsent, loss);
    }

    /// Chooses who is asked for a shard: the node that serves it with the highest term.
    fn choose(&self, shard: usize) {
        let (asked, best) = {
            let state = &mut *self.state.borrow_mut();
            let here = state.hosted.get(&shard).map(|term| Asked { term: *term, node: None });
            let others = state.others.iter().filter_map(|(node, served)| {
                served.get(&shard).map(|term| Asked { term: *term, node: Some(*node) })
            });
            let best = here.into_iter().chain(others).max_by_key(|it| it.term);
            // A node with a lower term than another node once had is no longer the owner.
            let highest = state.highest.entry(shard).or_default();
            let best = best.filter(|it| it.term >= *highest);
            *highest = best.map_or(*highest, |it| it.term);
            (state.asked.get(&shard).copied(), best)
        };
        if asked == best {
            return;
        }
        if let Some(former) = asked {
            self.lose(shard, former.node, Loss::Sudden);
        }
        let Some(best) = best else { return };
        self.state.borrow_mut().asked.insert(shard, best);
        self.note_owner(shard, best.node.map_or(Owner::Here, Owner::Node));
        if let Some(owners) = self.owners() {
            owners.note_term(shard, best.term);
        }
        let route = if best.node.is_none() { Route::Here } else { Route::Away };
        gain_owner(&self.home, shard, route);
    }

    /// Returns where clients find who serves which shard.
    pub(crate) fn owners(&self) -> Option<&Owners> {
        self.home.post().and_then(Post::owners)
    }

    /// Notes where cluster clients find which node.
    pub fn note_nodes(&self, ownership: &Ownership) {
        if let Some(owners) = self.owners() {
            owners.note_nodes(ownership.node(), &ownership.view().nodes);
        }
    }

    fn note_owner(&self, shard: usize, owner: Owner) {
        if let Some(owners) = self.owners() {
            owners.note_owner(shard, owner);
        }
    }

    /// Notes how the log of a shard fares that is hosted here.
    pub(crate) fn note_log(&self, log: LogFacts) {
        self.state.borrow_mut().logs.insert(log.shard, log);
    }

    /// Tells all nodes that ask what the own wall clock says, and how the logs fare of the shards
    /// that are served here.
    pub(crate) fn tell_clock(&self) {
        let wall_ms = self.wall_ms();
        let mut messages = vec![Message::Clock { wall_ms }];
        {
            let state = self.state.borrow();
            messages.extend(state.hosted.iter().filter_map(|(shard, term)| {
                let LogFacts { shard, extent, is_suspended } = *state.logs.get(shard)?;
                let extent = Some((extent.head, extent.applied));
                Some(Message::Serves { shard, term: *term, extent, is_suspended })
            }));
        }
        self.tell_askers(&messages);
        self.send();
    }

    /// Returns how far the wall clocks of the other nodes are ahead of the own one, in
    /// milliseconds, as far as they have told.
    pub(crate) fn clocks(&self) -> Vec<i64> {
        self.state.borrow().clocks.values().copied().collect()
    }

    /// What the own wall clock says.
    pub(crate) fn wall_ms(&self) -> u64 {
        let clock = self.home.clock();
        clock.now().ms().saturating_add_signed(clock.ahead_of_wall().saturating_neg())
    }

    /// Refuses what has waited too long for an owner. `silent_ms` says for how long the engine has
    /// owed an answer.
    pub fn give_up_waiting(&self, silent_ms: u64) {
        give_up_waiting(&self.home, silent_ms);
    }

    /// Refuses what waits for an owner, because nothing may be served.
    pub fn refuse_waiting(&self, why: &str) {
        refuse_waiting(&self.home, why);
    }

    /// Sends to a node that asks what has become of the errands of a client.
    pub(crate) fn send_news(&self, link: u64, shard: usize, client: ClientId, news: News) {
        {
            let state = &mut *self.state.borrow_mut();
            if !state.askers.contains(&link) {
                return;
            }
            let body = state.bodies.entry(End::From(link)).or_default();
            put(&Message::News { shard, client, news }, body);
        }
        // It leaves when every letter that has come was read.
        if let Some(post) = self.home.post() {
            post.bell().ring();
        }
    }

    fn tell_askers(&self, messages: &[Message]) {
        let state = &mut *self.state.borrow_mut();
        for link in &state.askers {
            let body = state.bodies.entry(End::From(*link)).or_default();
            for message in messages {
                put(message, body);
            }
        }
    }

    /// Sends everything that waits to be sent.
    pub(crate) fn send(&self) {
        let Some(post) = self.home.post() else { return };
        let full = {
            let State { asked, bodies, .. } = &mut *self.state.borrow_mut();
            let mut full = Vec::new();
            for (&shard, &Asked { term, node }) in asked.iter() {
                let Some(node) = node else { continue };
                for letter in post.take(shard) {
                    let Letter::Errand { client, errand, .. } = letter else { continue };
                    if let (Errand::Commands(commands), Some(owners)) = (&errand, post.owners()) {
                        owners.count_forwarded(commands.count());
                    }
                    let body = bodies.entry(End::To(node)).or_default();
                    put(&Message::Errand { shard, term, client, errand }, body);
                    if body.len() >= BODY_BYTES {
                        full.push((End::To(node), std::mem::take(body)));
                    }
                }
            }
            full.extend(
                bodies
                    .iter_mut()
                    .filter(|(_, body)| !body.is_empty())
                    .map(|(end, body)| (*end, std::mem::take(body))),
            );
            full
        };
        for (end, body) in full {
            for piece in body.chunks(PIECE_BYTES) {
                self.carrier.send(end, piece);
            }
        }
    }
}

#[cfg(test)]
mod tests;
