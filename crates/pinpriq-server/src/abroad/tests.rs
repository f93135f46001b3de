//! What a connection does once another shard has ended its side.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::limits::Limits as EngineLimits;
use pinpriq_engine::time::Timestamp;
use pinpriq_store::shards::shard_of;
use pinpriq_store::{Durable, MemoryStore};
use tokio::sync::Notify;

use super::*;
use crate::clock::ManualClock;
use crate::config::{Durability, Limits, PinpriqOptions};
use crate::exchange::{Exchange, Step};
use crate::front::pinpriq::PinpriqDoor;
use crate::mailbox::Mailbox;

/// A connection of the first of two shards.
fn connection() -> (Rc<Shard>, ClientId, Exchange<PinpriqDoor>) {
    let now = Timestamp::from_ms(1);
    let store = Box::new(MemoryStore::new());
    let durable = Durable::open(store, EngineLimits::default(), now, 1).unwrap().0;
    let boxes: Arc<[Mailbox]> = (0..2).map(|_| Mailbox::default()).collect();
    let (clock, bell) = (Rc::new(ManualClock::at(now)), Arc::new(Notify::new()));
    let post = Some(Post::new(0, boxes));
    let shard = Shard::new(durable, Durability::Memory, clock, bell, post);
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let (client, session) = shard.connect(PinpriqDoor::NAME, peer);
    let (own, options, limits) = (session.clone(), PinpriqOptions::default(), Limits::default());
    let door = PinpriqDoor::new(shard.clone(), own, client, options, limits);
    let exchange = Exchange::new(shard.clone(), limits, peer, (client, session), door);
    (shard, client, exchange)
}

#[test]
fn a_connection_ends_whatever_comes_after_another_shard_has_ended_its_side() {
    let (shard, client, mut exchange) = connection();
    let in_shard = |shard| (b'a'..=b'z').find(|name| shard_of(&[*name], 2) == shard).unwrap();
    let (here, away) = (in_shard(0), in_shard(1));
    // Where it is served is settled.
    exchange.take_in(&[b'P', 0, 1, here]);
    exchange.encode();
    exchange.written(2);
    // Refused there, for one subscription too many.
    let subscribe = [b's', 0, 1, away];
    exchange.take_in(&subscribe);
    let standing = Standing { ended: true, ..Standing::default() };
    shard.receive_news(client, 1, News { consumed: subscribe.len(), standing, ..News::default() });
    // The bytes are there before the connection hears that its bell has rung.
    if exchange.wants_read() {
        exchange.take_in(&[b'P', 0, 1, away]);
    }
    let mut step = Step::Again;
    while step == Step::Again {
        exchange.encode();
        step = exchange.proceed(false);
    }
    assert_eq!(step, Step::Over);
}
