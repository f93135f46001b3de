//! Who is asked for a shard, whose answers count, and what becomes of those who ask. The other
//! nodes are played by the tests.

use std::sync::Arc;

use pinpriq_proto::limits::Limits as EngineLimits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::RequestId;
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::Holds;
use pinpriq_store::{Durable, Extent, MemoryStore};
use tokio::sync::Notify;

use super::*;
use crate::clients::about::Manners;
use crate::config::{DoorName, Durability};
use crate::doors;
use crate::home::client::Client;
use crate::letters::letter::{Errand, Piece};
use crate::letters::mailbox::Mailbox;
use crate::manual_clock::ManualClock;
use crate::sharding::Sharding;

/// The only shard.
const SHARD: usize = 0;

const MANNERS: Manners =
    Manners { tells_refusals: true, waits_for_room: false, groups_per_turn: 1, requeues: true };

/// What was said, and to whom.
type Said = Rc<RefCell<Vec<(End, Vec<u8>)>>>;

struct Ear(Said);

impl Carrier for Ear {
    fn send(&self, to: End, body: &[u8]) {
        self.0.borrow_mut().push((to, body.to_vec()));
    }
}

/// The home of a node of a cluster with one shard.
struct Stage {
    boxes: Arc<[Mailbox]>,
    home: Rc<Shard>,
    exchange: Rc<Exchange>,
    said: Said,
    clock: Rc<ManualClock>,
}

impl Stage {
    fn start() -> Self {
        let now = Timestamp::from_ms(1);
        let store = Box::new(MemoryStore::new());
        let durable = Durable::open(store, EngineLimits::default(), now, 1).unwrap().0;
        let boxes: Arc<[Mailbox]> = (0..2).map(|_| Mailbox::default()).collect();
        let (clock, bell) = (Rc::new(ManualClock::at(now)), Arc::new(Notify::new()));
        let post = Post::new(1, Sharding::Slotted(1), boxes.clone()).with_routes();
        let with = (Some(post), Arc::default());
        let home = Shard::new(durable, Durability::Sync, clock.clone(), bell, with);
        let said = Said::default();
        let carrier = Box::new(Ear(said.clone()));
        let exchange = Exchange::new(home.clone(), carrier, Box::new(|_, _| ()));
        Self { boxes, home, exchange, said, clock }
    }

    fn post(&self) -> &Post {
        self.home.post().unwrap()
    }

    fn hear(&self, from: End, message: &Message) {
        let mut body = Vec::new();
        put(message, &mut body);
        assert!(self.exchange.hear(from, &body));
    }

    /// A node says that it serves the shard in this term.
    fn serves(&self, node: u128, term: u64) {
        self.hear(End::To(node), &serves(SHARD, term));
    }

    /// A node says that it has lost the shard.
    fn has_failed(&self, node: u128) {
        self.hear(End::To(node), &Message::Failed { shard: SHARD });
    }

    /// The nodes that got messages since the last time, with these.
    fn sent(&self) -> Vec<(u128, Vec<u8>)> {
        self.exchange.send();
        let said = self.said.take().into_iter();
        let asked = said.filter_map(|(end, body)| match end {
            End::To(node) => Some((node, body)),
            End::From(_) => None,
        });
        asked.collect()
    }

    /// The node that is asked for the shard, if another one is.
    fn asked(&self) -> Option<u128> {
        self.sent();
        self.post().write_errand(SHARD, ClientId(9), Errand::EndWaits);
        let told = self.sent();
        self.post().take(SHARD);
        told.first().map(|(node, _)| *node)
    }
}

#[test]
fn the_node_with_the_highest_term_is_asked_and_none_with_a_lower_one_after_it() {
    let stage = Stage::start();
    stage.exchange.link_up(1);
    stage.exchange.link_up(2);
    assert_eq!(stage.asked(), None);
    stage.serves(1, 5);
    assert_eq!(stage.asked(), Some(1));
    stage.serves(2, 7);
    assert_eq!(stage.asked(), Some(2));
    stage.serves(1, 6);
    assert_eq!(stage.asked(), Some(2));
    stage.has_failed(2);
    assert_eq!(stage.asked(), None, "node 1 has term 6, and there was a term 7");
    assert_eq!(stage.post().route(SHARD), Route::Nowhere);
    stage.serves(1, 8);
    assert_eq!(stage.asked(), Some(1));
    stage.serves(2, 9);
    stage.exchange.link_down(2);
    assert_eq!(stage.asked(), None, "the link is lost, and its node may serve all the same");
}

#[test]
fn a_host_of_this_node_is_asked_unless_another_node_has_a_higher_term() {
    let stage = Stage::start();
    stage.exchange.link_up(1);
    stage.serves(1, 3);
    stage.exchange.hear_host(SHARD, &HostNews::Serves(4));
    assert_eq!((stage.asked(), stage.post().route(SHARD)), (None, Route::Here));
    stage.serves(1, 5);
    assert_eq!((stage.asked(), stage.post().route(SHARD)), (Some(1), Route::Away));
    stage.has_failed(1);
    assert_eq!(stage.post().route(SHARD), Route::Nowhere, "the host has yet to notice");
    stage.exchange.hear_host(SHARD, &HostNews::Released);
    stage.exchange.hear_host(SHARD, &HostNews::Serves(6));
    assert_eq!(stage.post().route(SHARD), Route::Here);
}

/// A client that reads a queue, so that asking twice does no harm.
fn reading(stage: &Stage) -> Client {
    asking(stage, b"PEEK q\r\n")
}

fn asking(stage: &Stage, line: &[u8]) -> Client {
    let mut client = doors::connect(&stage.home, DoorName::Resp);
    client.feed(line);
    client.encode();
    client
}

/// A client of another node comes to the host with this term.
const fn opens(term: u64) -> Message {
    Message::Errand { shard: SHARD, term, client: ClientId(1), errand: Errand::Open(MANNERS) }
}

/// The request in the messages to a node, with the bytes that it occupies.
fn request_in(body: &[u8]) -> (RequestId, usize) {
    let mut found = None;
    let read = message::read(body, |message| {
        if let Message::Errand { errand: Errand::Commands(commands), .. } = message {
            found = commands.first().map(|(request, _, length)| (request, length));
        }
    });
    assert_eq!(read.unwrap(), body.len());
    found.unwrap()
}

/// A node says that nothing is in the queue.
fn answer(stage: &Stage, node: u128, client: ClientId, (request, consumed): (RequestId, usize)) {
    let reply = Reply::Tasks { tasks: Vec::new(), popped: false };
    let piece = Piece::Output(Output::Reply { client, request, reply }, Holds::default());
    let news = News { pieces: vec![piece], tells_refusals: true, consumed, ..News::default() };
    stage.hear(End::To(node), &Message::News { shard: SHARD, client, news });
}

#[test]
fn what_a_former_owner_says_is_not_passed_on() {
    let stage = Stage::start();
    stage.exchange.link_up(1);
    stage.exchange.link_up(2);
    stage.serves(1, 5);
    let mut client = reading(&stage);
    let told = stage.sent();
    let [(1, asked)] = &told[..] else { panic!("{told:?}") };
    let first = request_in(asked);
    stage.serves(2, 6);
    let told = stage.sent();
    let [(2, asked)] = &told[..] else { panic!("{told:?}") };
    let second = request_in(asked);

    answer(&stage, 1, client.number(), first);
    client.encode();
    assert!(client.session.outbox.borrow().unwritten().is_empty(), "the former owner was heard");
    answer(&stage, 2, client.number(), second);
    client.encode();
    assert_eq!(client.session.outbox.borrow().unwritten(), b"*0\r\n");
    client.leave();
}

#[test]
fn a_refusal_says_that_nothing_was_carried_out_only_if_that_is_so() {
    const READ: &[u8] = b"PEEK q\r\n";
    const ALL_SHARDS: &[u8] = b"LEAVE member\r\n";
    const CHANGES: [&[u8]; 4] = [
        b"SUBSCRIBE q\r\n",
        b"TAKE q WAIT 100\r\n",
        b"UNSUBSCRIBE q\r\n",
        b"SUBSCRIBE q TTR 60000\r\n",
    ];
    let told = |line: &[u8], begins: bool, ends: &dyn Fn(&Stage)| {
        let stage = Stage::start();
        stage.exchange.link_up(1);
        if begins {
            stage.serves(1, 5);
        }
        let mut client = asking(&stage, line);
        assert_eq!(stage.sent().len(), usize::from(begins));
        ends(&stage);
        stage.clock.advance(Span::from_ms(3_000));
        stage.exchange.give_up_waiting(0);
        client.encode();
        let told = String::from_utf8(client.session.outbox.borrow().unwritten().to_vec()).unwrap();
        client.leave();
        let (word, sentence) = told.split_once(' ').unwrap();
        if line == ALL_SHARDS && begins {
            assert!(!sentence.contains("nothing"), "{sentence}");
            assert!(sentence.contains("any shard may have carried this out"), "{sentence}");
        } else {
            assert!(!sentence.contains("may have carried this out"), "{sentence}");
        }
        word.to_owned()
    };
    let suddenly = |stage: &Stage| stage.exchange.link_down(1);
    let in_order = |stage: &Stage| stage.hear(End::To(1), &Message::Released { shard: SHARD });
    for line in CHANGES {
        assert_eq!(told(line, true, &suddenly), "-UNKNOWN");
        assert_eq!(told(line, true, &in_order), "-TRYAGAIN");
        assert_eq!(told(line, false, &|_| ()), "-TRYAGAIN");
    }
    for line in [READ, ALL_SHARDS] {
        assert_eq!(told(line, true, &suddenly), "-TRYAGAIN");
    }
    assert_eq!(told(ALL_SHARDS, true, &in_order), "-TRYAGAIN");
    assert_eq!(told(ALL_SHARDS, false, &|_| ()), "-TRYAGAIN");
}

#[test]
fn the_clients_of_a_node_whose_link_is_lost_are_gone() {
    const LINK: u64 = 3;
    let stage = Stage::start();
    stage.exchange.hear_host(SHARD, &HostNews::Serves(4));
    stage.exchange.asker_came(LINK);
    stage.hear(End::From(LINK), &opens(4));
    let letters = stage.boxes[SHARD].empty();
    let is_guest = |letter: &Letter| {
        let home = Home::Link(LINK);
        matches!(letter, Letter::Errand { home: of, errand: Errand::Open(_), .. } if *of == home)
    };
    assert!(letters.len() == 1 && letters.iter().all(is_guest));

    stage.exchange.asker_gone(LINK);
    let letters = stage.boxes[SHARD].empty();
    let is_told = letters.iter().any(|it| matches!(it, Letter::HomeGone(Home::Link(LINK))));
    assert!(is_told, "the host keeps them");
    stage.said.borrow_mut().clear();
    stage.exchange.send_news(LINK, SHARD, ClientId(1), News::default());
    stage.exchange.send();
    assert!(stage.said.borrow().is_empty(), "no node is there to notify");
}

#[test]
fn what_a_former_host_of_this_node_was_asked_does_not_reach_the_next_one() {
    const LINK: u64 = 3;
    let stage = Stage::start();
    stage.exchange.asker_came(LINK);
    let ask = |term| {
        stage.hear(End::From(LINK), &opens(term));
        stage.boxes[SHARD].empty().len()
    };
    stage.exchange.hear_host(SHARD, &HostNews::Serves(4));
    assert_eq!(ask(4), 1);
    stage.exchange.hear_host(SHARD, &HostNews::Released);
    assert_eq!(ask(4), 0);
    stage.exchange.hear_host(SHARD, &HostNews::Serves(5));
    assert_eq!(ask(4), 0, "it was on its way while the owner changed");
    assert_eq!(ask(5), 1);
}

#[test]
fn a_node_that_serves_with_another_term_is_asked_anew() {
    let stage = Stage::start();
    stage.exchange.link_up(1);
    stage.serves(1, 5);
    let client = reading(&stage);
    let told = stage.sent();
    let [(1, asked)] = &told[..] else { panic!("{told:?}") };
    let first = request_in(asked);
    stage.serves(1, 6);
    let told = stage.sent();
    let [(1, asked)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(request_in(asked).0, first.0);
    client.leave();
}

#[test]
fn how_a_log_fares_is_known_of_the_node_that_serves_it_and_of_no_former_one() {
    let log = |head: u64, applied: u64| LogFacts {
        shard: SHARD,
        extent: Extent { head, applied },
        is_suspended: applied > head,
    };
    let stage = Stage::start();
    stage.exchange.link_up(1);
    stage.exchange.link_up(2);
    let says = |node, term, LogFacts { shard, extent, is_suspended }| {
        let extent = Some((extent.head, extent.applied));
        stage.hear(End::To(node), &Message::Serves { shard, term, extent, is_suspended });
    };
    let known = || stage.exchange.owners().unwrap().facts().logs;
    says(1, 5, log(7, 9));
    assert_eq!((known(), stage.asked()), (vec![log(7, 9)], Some(1)));
    says(1, 5, log(9, 9));
    assert_eq!(known(), [log(9, 9)]);
    says(2, 6, log(10, 12));
    says(1, 5, log(8, 8));
    assert_eq!((known(), stage.asked()), (vec![log(10, 12)], Some(2)));
    stage.exchange.link_down(2);
    assert_eq!(known(), []);
    says(1, 7, LogFacts { shard: 9, ..log(1, 1) });
    assert_eq!(known(), [], "there is no such shard");

    // Those who ask learn what is served here.
    stage.exchange.asker_came(3);
    stage.exchange.note_log(log(20, 21));
    stage.exchange.hear_host(SHARD, &HostNews::Serves(8));
    stage.said.take();
    stage.exchange.tell_clock();
    let mut heard = Vec::new();
    for (end, body) in stage.said.take() {
        assert_eq!(end, End::From(3));
        message::read(&body, |message| {
            if let Message::Serves { shard, term, extent, .. } = message {
                heard.push((shard, term, extent));
            }
        })
        .unwrap();
    }
    assert_eq!(heard, [(SHARD, 8, Some((20, 21)))]);
}
