//! One queue through both doors.

use std::collections::BTreeMap;

use super::client::{Client, World, elements, receipt, show};
use crate::client::Client as Wire;
use crate::line::encrypted_too;
use crate::world::test;

async fn both() -> (World, Client, Wire) {
    let world = World::plain().await;
    let (resp, wire) = (world.connect().await, Wire::connect(world.wire_address).await);
    (world, resp, wire)
}

#[test]
fn what_one_door_takes_in_the_other_gives_out() {
    test(async || {
        let (_world, mut resp, mut wire) = both().await;
        resp.ask("HELLO 3").await;
        wire.push("q", 7, "key", "from the wire").await;
        wire.fence().await;
        let popped = resp.told("POP q WITHMETA").await;
        for part in ["key=key", "priority=7", "payload=from the wire", "ttl_at=1700000060000"] {
            assert!(popped.contains(part), "{popped}");
        }
        resp.ask("PUT q p KEY k PRIORITY -1000").await;
        resp.ask("PUT q side KEY k PRIORITY NONE").await;
        assert_eq!(wire.pop("q").await, ["p", "side"]);
        // Priority 0 of the wire is none.
        wire.push("q", 0, "", "never").await;
        wire.fence().await;
        assert_eq!(resp.told("POP q").await, "[]");
        assert!(resp.told("PEEK q STATE R WITHMETA").await.contains("priority=null"));
    });
}

#[test]
fn each_door_has_its_own_order() {
    test(async || {
        let (_world, mut resp, mut wire) = both().await;
        for payload in ["1", "2", "3", "4"] {
            resp.ask(&format!("PUT q {payload}")).await;
        }
        assert_eq!(resp.told("POP q").await, "[[q 1 null 1]]");
        assert_eq!(wire.pop("q").await, ["4"]);
        assert_eq!(resp.told("POP q").await, "[[q 2 null 2]]");
        assert_eq!(wire.pop("q").await, ["3"]);
    });
}

#[test]
fn a_taken_task_is_out_of_reach_of_the_wire_and_so_is_a_wide_one() {
    test(async || {
        let (world, mut resp, mut wire) = both().await;
        resp.ask("PUT q p").await;
        let taken = resp.ask("TAKE q TTR 1000").await;
        assert_eq!(wire.pop("q").await, [""; 0]);
        world.advance(1_000);
        assert_eq!(wire.pop("q").await, ["p"]);
        let told = resp.told(&format!("ACK q {}", receipt(&taken))).await;
        assert_eq!(told, "STALE");

        let payload = vec![b'p'; 65_536];
        resp.ask_words(&[b"PUT", b"q", &payload, b"KEY", b"k"]).await;
        resp.ask("PUT q narrow KEY k").await;
        assert_eq!(wire.pop("q").await, ["narrow"]);
        assert_eq!(wire.pop("q").await, [""; 0]);
        let popped = resp.ask("POP q").await;
        assert_eq!(elements(&elements(&popped)[0])[3].as_bytes(), Some(&payload[..]));

        resp.ask("QUEUE CREATE paused").await;
        resp.ask("QUEUE PAUSE paused OUT").await;
        wire.push("paused", 1, "", "p").await;
        assert_eq!(wire.pop("paused").await, [""; 0]);
        resp.ask("QUEUE RESUME paused").await;
        assert_eq!(wire.pop("paused").await, ["p"]);
    });
}

#[test]
fn consumers_of_both_doors_take_turns_and_lose_nothing() {
    test(async || {
        let (world, mut resp, mut wire) = both().await;
        let mut control = world.connect().await;
        wire.subscribe("q").await;
        wire.ready(1_000).await;
        wire.fence().await;
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut by_door = [0, 0];
        for number in 0..500 {
            resp.say("TAKE q WAIT -1").await;
            control.see_blocked(&resp.name()).await;
            for half in 0..2 {
                control.ask(&format!("PUT q {number}-{half}")).await;
            }
            // Each of them is in line, so each gets one of the two.
            let taken = resp.value().await;
            let payload = show(&elements(&elements(&taken)[0])[3]);
            assert_eq!(resp.told(&format!("ACK q {}", receipt(&taken))).await, "OK");
            *seen.entry(payload).or_default() += 1;
            by_door[0] += 1;
            for payload in wire.payloads().await {
                *seen.entry(payload).or_default() += 1;
                by_door[1] += 1;
            }
        }
        assert_eq!((by_door, seen.len()), ([500, 500], 1_000));
        assert!(seen.values().all(|times| *times == 1));
        super::random::check_balance(&control.ask("STATS").await);
        assert_eq!(control.told("QUEUE LIST").await, "[0 []]");
    });
}

#[test]
fn many_consumers_of_both_doors_take_each_task_once() {
    test(async || {
        const TASKS: usize = 4_000;
        let (world, mut resp, _) = both().await;
        let seen = std::rc::Rc::new(std::cell::RefCell::new(vec![0_u32; TASKS]));
        let mut workers = Vec::new();
        for worker in 0..40 {
            let (address, wire_address) = (world.address, world.wire_address);
            let seen = seen.clone();
            workers.push(tokio::task::spawn_local(async move {
                let note =
                    |payload: &str| seen.borrow_mut()[payload.parse::<usize>().unwrap()] += 1;
                if worker % 2 == 0 {
                    let mut client = Client::connect(address).await;
                    loop {
                        let taken = client.ask("TAKE q WAIT -1").await;
                        let payload = show(&elements(&elements(&taken)[0])[3]);
                        if payload == "end" {
                            return;
                        }
                        note(&payload);
                        let told = client.told(&format!("ACK q {}", receipt(&taken))).await;
                        assert_eq!(told, "OK");
                    }
                }
                let mut client = Wire::connect(wire_address).await;
                client.subscribe("q").await;
                client.subscribe("ends").await;
                loop {
                    client.ready(1).await;
                    for payload in client.payloads().await {
                        if payload == "end" {
                            return;
                        }
                        note(&payload);
                    }
                }
            }));
        }
        for number in 0..TASKS {
            resp.ask(&format!("PUT q {number}")).await;
        }
        while resp.told("PEEK q").await != "[]" {}
        for _ in 0..20 {
            resp.ask("PUT ends end").await;
        }
        while seen.borrow().iter().sum::<u32>() < u32::try_from(TASKS).unwrap() {
            resp.ask("PING").await;
        }
        assert!(seen.borrow().iter().all(|times| *times == 1));
        for worker in workers {
            worker.abort();
        }
    });
}

encrypted_too! {
    what_one_door_takes_in_the_other_gives_out each_door_has_its_own_order
    a_taken_task_is_out_of_reach_of_the_wire_and_so_is_a_wide_one
    consumers_of_both_doors_take_turns_and_lose_nothing
    many_consumers_of_both_doors_take_each_task_once
}
