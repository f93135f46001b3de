//! What a connection does after another shard has ended its side.

use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_store::shards::shard_of;

use crate::sharding::Sharding;
use pinpriq_store::{Durable, MemoryStore};
use tokio::sync::Notify;

use super::*;
use crate::config::Durability;
use crate::doors;
use crate::home::desk::receive_news;
use crate::letters::letter::{News, Standing};
use crate::letters::mailbox::{Mailbox, Post};
use crate::manual_clock::ManualClock;

/// Returns a client of the first of two shards.
fn client() -> (Rc<Shard>, Client) {
    let now = Timestamp::from_ms(1);
    let store = Box::new(MemoryStore::new());
    let durable = Durable::open(store, EngineLimits::default(), now, 1).unwrap().0;
    let boxes: Arc<[Mailbox]> = (0..2).map(|_| Mailbox::default()).collect();
    let (clock, bell) = (Rc::new(ManualClock::at(now)), Arc::new(Notify::new()));
    let post = Some(Post::new(0, Sharding::Hashed(2), boxes));
    let shard = Shard::new(durable, Durability::Memory, clock, bell, (post, Arc::default()));
    let client = doors::connect(&shard, DoorName::Pinpriq);
    (shard, client)
}

#[test]
fn a_connection_ends_whatever_comes_after_another_shard_has_ended_its_side() {
    let (shard, mut client) = client();
    let in_shard = |shard| (b'a'..=b'z').find(|name| shard_of(&[*name], 2) == shard).unwrap();
    let (here, away) = (in_shard(0), in_shard(1));
    // This settles where the client is served.
    client.feed(&[b'P', 0, 1, here]);
    client.encode();
    client.written(2);
    // Refused there, because it is one subscription too many.
    let subscribe = [b's', 0, 1, away];
    client.feed(&subscribe);
    let standing = Standing { ended: Some(Ending::Refused), ..Standing::default() };
    let number = client.number();
    let consumed = client.session.links.borrow_mut().link(2, 1).under_way;
    receive_news(&shard, number, 1, News { consumed, standing, ..News::default() });
    // The bytes arrive before the connection hears its bell.
    if client.wants_read() {
        client.feed(&[b'P', 0, 1, away]);
    }
    let mut step = Step::Again;
    while step == Step::Again {
        client.encode();
        step = client.proceed(false);
    }
    assert_eq!(step, Step::Over);
    client.leave();
    assert_eq!(shard.tally().counts().closes[Ending::Refused as usize], 1);
}
