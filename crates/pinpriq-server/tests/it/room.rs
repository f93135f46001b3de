//! The bound on the memory for tasks: pushes wait, and everything that makes room goes on.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use pinpriq_proto::time::Timestamp;
use pinpriq_server::clock::Clock;
use pinpriq_server::config::Config;

use crate::client::{named_bytes, push_bytes};
use crate::manual_clock::ManualClock;
use crate::world::{START, World, in_memory, test, with_clients};

fn with_room_for(bytes: u64) -> Config {
    let mut config = in_memory();
    config.limits.task_bytes_max = bytes;
    config
}

#[test]
fn a_push_waits_until_another_client_makes_room() {
    with_clients(with_room_for(5_000), async |_, [pusher, other]| {
        let mut requests = Vec::new();
        for number in 0..10_u8 {
            requests.extend(push_bytes(b"q", 60_000, 1, &[number], &[number; 1_000]));
            requests.extend(named_bytes(b'P', b"nothing"));
        }
        pusher.send(&requests).await;
        // Its replies tell how far it has come.
        let mut done = 0;
        for _ in 0..10 {
            other.fence().await;
            while !pusher.is_silent() {
                done += 1;
                assert_eq!(pusher.bytes(1).await, [0]);
            }
        }
        assert!((2..10).contains(&done), "{done} pushes");
        let mut popped = Vec::new();
        while popped.len() < 10 {
            let packets = other.pop_packets("q").await;
            popped.extend(packets.into_iter().map(|(key, _)| key[0]));
        }
        popped.sort_unstable();
        assert_eq!(popped, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for _ in done..10 {
            assert_eq!(pusher.frame().await, []);
        }
        pusher.fence().await;
    });
}

#[test]
fn deadlines_make_room_too() {
    with_clients(with_room_for(3_000), async |world, [pusher, other]| {
        pusher.send(&push_bytes(b"q", 500, 1, b"old", &[7; 1_500])).await;
        pusher.fence().await;
        pusher.send(&push_bytes(b"q", 500, 1, b"new", &[7; 1_500])).await;
        pusher.send(&named_bytes(b'P', b"nothing")).await;
        other.fence().await;
        other.fence().await;
        assert!(pusher.is_silent());
        world.advance(500);
        assert_eq!(pusher.frame().await, []);
        assert_eq!(other.pop_packets("q").await[0].0, b"new");
    });
}

#[test]
fn many_that_wait_are_all_served_in_the_end() {
    with_clients(with_room_for(4_100), async |world, [other]| {
        let mut pushers = Vec::new();
        for number in 0..20_u8 {
            let mut pusher = world.connect().await;
            for size in [1_400, 100, 2_600] {
                pusher.send(&push_bytes(b"q", 60_000, 1, &[number], &vec![number; size])).await;
            }
            pusher.send(&named_bytes(b'P', b"nothing")).await;
            pushers.push(pusher);
        }
        let mut popped = 0;
        while popped < 60 {
            popped += other.pop_packets("q").await.len();
        }
        for pusher in &mut pushers {
            assert_eq!(pusher.frame().await, []);
        }
    });
}

#[test]
fn a_push_that_can_never_fit_closes() {
    with_clients(with_room_for(2_000), async |_, [client]| {
        client.push("q", 1, "k", "fits").await;
        client.send(&named_bytes(b'P', b"q")).await;
        client.send(&push_bytes(b"q", 60_000, 1, b"k", &[7; 1_001])).await;
        assert_eq!(client.payloads().await, ["fits"]);
        client.ended().await;
    });
}

/// A clock that counts how often it is asked.
struct Counting {
    clock: ManualClock,
    asked: Rc<Cell<u64>>,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.asked.set(self.asked.get() + 1);
        self.clock.now()
    }

    fn ahead_of_wall(&self) -> i64 {
        self.clock.ahead_of_wall()
    }

    fn until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.clock.until(at)
    }
}

#[test]
fn a_push_that_waits_costs_nothing() {
    test(async || {
        let asked = Rc::new(Cell::new(0));
        let wrap = {
            let asked = asked.clone();
            |clock| -> Rc<dyn Clock> { Rc::new(Counting { clock, asked }) }
        };
        let world = World::start_with_clock(with_room_for(3_000), START, wrap).await;
        let (mut pusher, mut other) = (world.connect().await, world.connect().await);
        // The first leaves some room, and the second needs more than that.
        pusher.send(&push_bytes(b"q", 60_000, 1, b"1", &[7; 1_000])).await;
        pusher.send(&push_bytes(b"q", 60_000, 1, b"2", &[7; 1_000])).await;
        other.fence().await;
        other.fence().await;
        let before = asked.get();
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        let more = asked.get() - before;
        assert!(more < 100, "the server looked at its clock {more} times while nothing happened");
        assert_eq!(other.pop_packets("q").await[0].0, b"1");
        pusher.fence().await;
    });
}
