//! Where a request is carried out, when there are several shards.
//!
//! A request goes to the shard where its queue lives, as it came. The queues of one request have to
//! live in one shard, and so have all subscriptions of one connection, since its credits are for
//! all of them. What concerns all queues is asked everywhere, and `gather` makes one answer of it.

use pinpriq_engine::command::Wait;
use pinpriq_store::shards::shard_of;
use pinpriq_wire::resp::Protocol;

use super::fault::Fault;
use super::gather::{self, Gathers};
use super::options::{COUNT, WAIT};
use super::queues::page_names;
use super::spec::{Group, Spec, Word};
use super::words::{Parts, shown};
use super::{RESP3, RespDoor};
use crate::connection::Next;
use crate::mailbox::{Part, Question};
use crate::outbox::Dialect;

/// Where a request belongs.
enum Place<'p, 'a> {
    /// To the connection.
    Here,
    /// Where these queues or topics live.
    Queues(&'p [&'a [u8]]),
    /// Where the connection has its subscriptions and credits.
    Deliveries,
    /// Everywhere.
    Everywhere,
}

impl<'p, 'a> Place<'p, 'a> {
    fn of(spec: &Spec, parts: &'p Parts<'a>) -> Self {
        let words = parts.words;
        if spec.group == Group::Connection {
            return Self::Here;
        }
        match spec.words.first() {
            Some(Word::One("queue" | "topic")) => Self::Queues(&words[..1]),
            Some(Word::Queues) => Self::Queues(words),
            Some(Word::Any(_)) if !words.is_empty() => Self::Queues(words),
            Some(Word::Maybe(_)) if !words.is_empty() => Self::Queues(&words[..1]),
            Some(Word::MaybeFirst(_)) if words.len() > 1 => Self::Queues(&words[..1]),
            _ if spec.group == Group::Push => Self::Deliveries,
            _ => Self::Everywhere,
        }
    }
}

impl RespDoor {
    /// Has the request carried out by other shards, if it does not belong here. Returns whether
    /// that is so.
    #[inline(never)]
    pub(super) fn route(
        &mut self,
        spec: &Spec,
        parts: &Parts<'_>,
        raw: &[u8],
    ) -> Result<bool, Fault> {
        let own = self.shard.own();
        let settled = self.session.links.borrow().deliveries();
        let to = match Place::of(spec, parts) {
            Place::Here => own,
            // There can be no subscription anywhere else, and it is asked how many are left.
            Place::Queues(_) if spec.name == "UNSUBSCRIBE" && settled.is_some() => {
                settled.unwrap_or(own)
            }
            Place::Queues(queues) => {
                let to = self.shard_of_all(queues)?;
                if !self.is_placed {
                    // Most connections are about one queue, which is where they are served best.
                    self.is_placed = true;
                    let is_free = self.session.links.borrow().is_unused();
                    if to != own && is_free && self.credits.is_unused() {
                        self.moves_to = Some(to);
                        return Ok(true);
                    }
                }
                if spec.words == [Word::Queues] && spec.group == Group::Push {
                    self.settle_deliveries(queues, to)?;
                }
                to
            }
            Place::Deliveries => settled.unwrap_or(own),
            Place::Everywhere => {
                let gathers = match spec.name {
                    "STATS" => Gathers::Figures,
                    "QUEUE" => Gathers::Names(page_names(parts.count(COUNT)?)),
                    _ => Gathers::Membership,
                };
                self.ask_all(
                    || Question::Request(raw.to_vec()),
                    move |parts, out, protocol| {
                        gather::join_replies(gathers, parts, out, protocol);
                    },
                );
                return Ok(true);
            }
        };
        if to == own {
            return Ok(false);
        }
        let may_wait = spec.options.contains(&WAIT);
        let blocks = may_wait && parts.wait()?.is_some_and(Wait::blocks);
        self.shard.forward((self.client, &self.session), to, raw, (true, blocks));
        Ok(true)
    }

    /// Asks all shards, and has one answer made of their parts.
    pub(super) fn ask_all(
        &mut self,
        question: impl Fn() -> Question,
        join: impl FnOnce(Vec<Part>, &mut Vec<u8>, Protocol) + 'static,
    ) {
        let protocol = self.protocol;
        let join = Box::new(move |parts| {
            let mut bytes = Vec::new();
            join(parts, &mut bytes, protocol);
            bytes
        });
        self.shard.ask_all((self.client, &self.session), question, join);
    }

    /// The one shard where all these queues live.
    fn shard_of_all(&self, queues: &[&[u8]]) -> Result<usize, Fault> {
        let shards = self.shard.shards();
        let Some((first, others)) = queues.split_first() else { return Ok(0) };
        let to = shard_of(first, shards);
        match others.iter().find(|other| shard_of(other, shards) != to) {
            None => Ok(to),
            Some(other) => Err(across(format!(
                "the queues {} and {} live in different shards, and one request is about those of \
                 one: give their names a common part in braces, such as {{a}}, or ask twice",
                shown(first),
                shown(other)
            ))),
        }
    }

    /// Has the connection's deliveries come from the shard of these queues, unless they come from
    /// another.
    fn settle_deliveries(&mut self, queues: &[&[u8]], to: usize) -> Result<(), Fault> {
        let who = (self.client, &*self.session);
        if self.shard.settle_deliveries(who, to, &mut self.credits) {
            return Ok(());
        }
        let queue = shown(queues.first().copied().unwrap_or_default());
        Err(across(format!(
            "{queue} lives in another shard than the queues to which this connection has \
             subscribed: use another connection for it, or give their names a common part in \
             braces, such as {{a}}; RESET makes the connection free"
        )))
    }

    /// What has to happen in other shards before the next request, if anything.
    #[inline(never)]
    pub(super) fn obstacle_abroad(&self) -> Option<Next> {
        let links = self.session.links.borrow();
        if links.is_blocked() { Some(Next::Block) } else { links.is_full().then_some(Next::Wait) }
    }

    /// Whether the connection has subscriptions in another shard.
    pub(super) fn is_subscribed_abroad(&self) -> bool {
        self.routes && self.session.links.borrow().is_subscribed()
    }

    /// Whether queues may live in other shards.
    pub(super) const fn routes(&self) -> bool {
        self.routes
    }

    /// Whether the connection has subscriptions here.
    pub(crate) const fn is_subscribed(&self) -> bool {
        self.subscribed
    }

    /// Whether requests from here on are answered with this shard's part only.
    pub(crate) const fn answer_in_parts(&mut self, in_parts: bool) {
        self.in_parts = in_parts;
    }

    /// Has answers from here on written in this dialect.
    pub(crate) fn speak(&mut self, dialect: Dialect) {
        let protocol = if dialect == RESP3 { Protocol::Resp3 } else { Protocol::Resp2 };
        self.adopt(protocol);
    }

    /// Adds credits that were granted before it was known which shard they are for.
    pub(crate) fn bank(&mut self, credits: u32) {
        self.credits.add(credits);
        self.grant();
    }
}

fn across(sentence: String) -> Fault {
    Fault { word: "CROSSSHARD", sentence }
}
