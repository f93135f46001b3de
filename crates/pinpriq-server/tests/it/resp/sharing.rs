//! One queue through both doors.

use super::client::{Client, World, elements, receipt};
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
        let popped = resp.reply("POP q WITHMETA").await;
        for part in ["key=key", "priority=7", "payload=from the wire", "ttl_at=1700000060000"] {
            assert!(popped.contains(part), "{popped}");
        }
        resp.ask("PUT q p KEY k PRIORITY -1000").await;
        resp.ask("PUT q side KEY k PRIORITY NONE").await;
        assert_eq!(wire.pop("q").await, ["p", "side"]);
        // Priority 0 of the wire is none.
        wire.push("q", 0, "", "never").await;
        wire.fence().await;
        assert_eq!(resp.reply("POP q").await, "[]");
        assert!(resp.reply("PEEK q STATE R WITHMETA").await.contains("priority=null"));
    });
}

#[test]
fn each_door_has_its_own_order() {
    test(async || {
        let (_world, mut resp, mut wire) = both().await;
        for payload in ["1", "2", "3", "4"] {
            resp.ask(&format!("PUT q {payload}")).await;
        }
        assert_eq!(resp.reply("POP q").await, "[[q 1 null 1]]");
        assert_eq!(wire.pop("q").await, ["4"]);
        assert_eq!(resp.reply("POP q").await, "[[q 2 null 2]]");
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
        let told = resp.reply(&format!("ACK q {}", receipt(&taken))).await;
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

encrypted_too! {
    what_one_door_takes_in_the_other_gives_out each_door_has_its_own_order
    a_taken_task_is_out_of_reach_of_the_wire_and_so_is_a_wide_one
}
