//! Each command, asked for again and again in one packet: others have their turn in between.
//!
//! Nothing is timed. Whenever the server looks at the clock, some time has passed: so the clock
//! counts pieces of work. What looks at no clock has to be short, and is listed here.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use pinpriq_proto::time::Timestamp;
use pinpriq_proto::wire::resp::put_command;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::Config;

use super::client::World;
use crate::manual_clock::ManualClock;
use crate::rights::rows;
use crate::world::{START, in_memory, test};

const TABLE: &str = include_str!("../../../testdata/resp/rights.txt");

/// Commands that cost no more than O(log n), or as much as the client has sent for them.
const SHORT: [&str; 31] = [
    "BATCH",
    "CANCEL",
    "PUT",
    "TAKE",
    "POP",
    "PEEK",
    "GET",
    "ACK",
    "RELEASE",
    "BURY",
    "FAIL",
    "TOUCH",
    "START",
    "UPDATE",
    "DIG",
    "SWITCH",
    "SNATCH",
    "RESTART",
    "AWAIT",
    "CREDIT",
    "READY",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "HELLO",
    "AUTH",
    "QUIT",
    "RESET",
    "UNSUBSCRIBE",
];

/// One task is kicked like others are dug up.
const KICK_ONE: &str = "KICK q ID 1";

/// Longer work than the requests of the table ask for.
const LONGER: [&str; 8] = [
    "SCAN q COUNT 1000 KEY none",
    "EXPLAIN q 1999",
    "QUEUE LIST COUNT 10000",
    "LEASES r COUNT 1000",
    "EXPORT q COUNT 1000",
    "TAKE q COUNT 1000",
    "PEEK q COUNT 1000",
    "INFO",
];

/// How often a client asks for something in one packet.
const ROUNDS: usize = 300;

/// The most replies that may come before that of another client: those of a few turns. A turn has
/// five looks at the clock after the first one.
const BEFORE_MAX: usize = 40;

/// A clock on which a millisecond passes whenever it is looked at.
struct Ticking {
    clock: ManualClock,
    looks: Cell<u32>,
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn passed(&self) -> Duration {
        self.looks.set(self.looks.get() + 1);
        Duration::from_millis(self.looks.get().into())
    }

    fn ahead_of_wall(&self) -> i64 {
        self.clock.ahead_of_wall()
    }

    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.clock.until(at)
    }
}

async fn start(config: Config) -> World {
    let ticking = |clock| Rc::new(Ticking { clock, looks: Cell::new(0) }) as Rc<dyn Clock>;
    World::start_with_clock(config, START, ticking).await
}

/// Fills the queues with tasks of distinct priorities, takes some, and makes many queues and lanes.
async fn fill(world: &World) {
    const EACH: usize = 2_000;
    let mut requests = Vec::new();
    for number in 0..EACH {
        for queue in ["q", "r"] {
            let put = format!("PUT {queue} x PRIORITY {number}");
            put_command(&mut requests, &put.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        for made in [format!("PUT queue-{number} x"), format!("JOIN t member-{number}")] {
            put_command(&mut requests, &made.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
    }
    put_command(&mut requests, &[b"TAKE", b"r", b"COUNT", b"1000", b"TTR", b"3600000"]);
    world.connect().await.exchange(&requests, 4 * EACH + 1).await;
}

/// Returns how many replies of a client that asks for this again and again have come when another
/// client has that to a PING, which it has sent after it.
async fn replies_before_a_ping(world: &World, request: &str) -> usize {
    let mut busy = world.connect().await;
    let mut other = world.connect().await;
    for client in [&mut busy, &mut other] {
        assert_eq!(client.reply("PING").await, "PONG");
    }
    busy.send_bytes(format!("{request}\r\n").repeat(ROUNDS).as_bytes()).await;
    assert_eq!(other.reply("PING").await, "PONG");
    busy.arrived()
}

#[test]
fn each_command_lets_others_have_their_turn() {
    test(async || {
        let world = start(in_memory()).await;
        fill(&world).await;
        let mut long = Vec::new();
        let table: Vec<&str> = rows(TABLE).into_iter().map(|row| row.request).collect();
        for request in table.into_iter().chain(LONGER) {
            let is_listed = SHORT.contains(&request.split(' ').next().unwrap());
            let is_short = is_listed && !request.contains("COUNT") || request == KICK_ONE;
            let before = replies_before_a_ping(&world, request).await;
            if !is_short && before > BEFORE_MAX {
                long.push((request, before));
            }
        }
        assert!(long.is_empty(), "of {ROUNDS} requests came first: {long:?}");
        world.end().await;
    });
}

#[test]
fn replies_that_are_read_at_once_let_others_have_their_turn() {
    test(async || {
        let mut config = in_memory();
        // Each reply fills the outbox, and the socket has room for all of them.
        config.limits.out_bytes_max = 1 << 10;
        let world = start(config).await;
        fill(&world).await;
        let before = replies_before_a_ping(&world, "SCAN q COUNT 20").await;
        assert!(before <= BEFORE_MAX, "{before} of {ROUNDS} came first");
        world.end().await;
    });
}
