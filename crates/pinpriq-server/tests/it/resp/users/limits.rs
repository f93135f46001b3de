//! What users may use up.

use pinpriq_proto::wire::resp::Value;
use pinpriq_server::config::Config;

use super::{refusal, sign_in, with_people, with_people_at};
use crate::people::Person;
use crate::resp::client::{Client, show};
use crate::world::in_memory;

#[test]
fn a_user_has_so_many_connections() {
    let ana = || Person::new("ana", "put:*").within(&[("max_connections", 2)]);
    let people = [ana(), Person::new("ben", "put:*")];
    with_people(&people, async |world, _, [one, two, three, ben]| {
        sign_in(one, "ana").await;
        sign_in(two, "ana").await;
        assert_eq!(three.reply("AUTH ana password").await, "BUSY");
        assert_eq!(three.reply("HELLO 3 AUTH ana password").await, "BUSY");
        assert_eq!(three.reply("PUT q x").await, "NOAUTH");
        sign_in(ben, "ben").await;
        // Who signs in again has no further connection.
        sign_in(one, "ana").await;
        // Changing the user, or signing out, makes room.
        sign_in(two, "ben").await;
        sign_in(three, "ana").await;
        assert_eq!(two.reply("AUTH ana password").await, "BUSY");
        three.ask("RESET").await;
        sign_in(two, "ana").await;
        assert_eq!(three.reply("AUTH ana password").await, "BUSY");
        // So does who goes.
        let mut four = world.connect().await;
        two.half_close().await;
        assert_eq!(two.rest().await, b"");
        while four.reply("AUTH ana password").await != "OK" {}
        assert_eq!(four.reply("PUT q x").await, "1");
    });
}

#[test]
fn a_user_makes_so_many_requests_a_second() {
    let ana = Person::new("ana", "put:* look:*").within(&[("max_requests_per_second", 3)]);
    with_people(&[ana, Person::new("ben", "put:*")], async |world, people, [ana, again, ben]| {
        sign_in(ana, "ana").await;
        sign_in(again, "ana").await;
        sign_in(ben, "ben").await;
        for _ in 0..2 {
            assert_ne!(ana.reply("PUT q x").await, "BUSY");
        }
        assert_ne!(again.reply("PEEK q").await, "BUSY");
        for client in [&mut *ana, &mut *again] {
            assert_eq!(client.reply("PUT q x").await, "BUSY");
        }
        for _ in 0..10 {
            assert_ne!(ben.reply("PUT q x").await, "BUSY");
        }
        world.advance(333);
        assert_eq!(ana.reply("PUT q x").await, "BUSY");
        world.advance(1);
        assert_ne!(ana.reply("PUT q x").await, "BUSY");
        assert_eq!(again.reply("PUT q x").await, "BUSY");
        // What was not used is not saved up.
        world.advance(60_000);
        for _ in 0..3 {
            assert_ne!(ana.reply("PUT q x").await, "BUSY");
        }
        assert_eq!(ana.reply("PUT q x").await, "BUSY");
        // A limit that is taken away is gone once the file was read.
        people.write(&[Person::new("ana", "put:*"), Person::new("ben", "put:*")]);
        while puts_until_busy(ana, 10).await < 10 {
            world.advance(1_000);
        }
    });
}

/// Returns how many of this number of puts succeed before one is refused.
async fn puts_until_busy(client: &mut Client, most: usize) -> usize {
    for done in 0..most {
        if client.reply("PUT a x").await == "BUSY" {
            return done;
        }
    }
    most
}

#[test]
fn a_transaction_is_one_request() {
    let ana = Person::new("ana", "put:*").within(&[("max_requests_per_second", 1)]);
    with_people(&[ana], async |_, _, [ana]| {
        sign_in(ana, "ana").await;
        assert_eq!(ana.reply("MULTI").await, "OK");
        for _ in 0..3 {
            assert_eq!(ana.reply("PUT q x").await, "QUEUED");
        }
        assert_ne!(ana.reply("EXEC").await, "BUSY");
        assert_eq!(ana.reply("PUT q x").await, "BUSY");
    });
}

#[test]
fn a_user_has_so_many_tasks() {
    for shards in [1, 3] {
        has_so_many_tasks(shards);
    }
}

fn has_so_many_tasks(shards: usize) {
    let ana = || Person::new("ana", "put:* take:* manage:*").within(&[("max_tasks", 3)]);
    let people = [ana(), Person::new("ben", "put:* take:* look:*")];
    let config = Config { shards, ..in_memory() };
    with_people_at(config, &people, async |world, people, [ana, again, ben]| {
        sign_in(ana, "ana").await;
        sign_in(again, "ana").await;
        sign_in(ben, "ben").await;
        // Queues of several shards.
        for queue in ["a", "b", "c"] {
            assert_ne!(ana.reply(&format!("PUT {queue} x")).await, "BUSY", "{queue}");
        }
        for client in [&mut *ana, &mut *again] {
            for queue in ["a", "b", "c", "d", "e"] {
                assert_eq!(client.reply(&format!("PUT {queue} x")).await, "BUSY", "{queue}");
            }
            assert_eq!(client.reply("BATCH OPEN b").await, "BUSY");
        }
        assert_eq!(ana.reply("MULTI").await, "OK");
        assert_eq!(ana.reply("PUT a x").await, "QUEUED");
        assert_eq!(ana.reply("EXEC").await, "BUSY");
        assert_ne!(ben.reply("PUT a of-ben").await, "BUSY");
        // A task that moves is still there, and one that somebody else takes has ended.
        assert_eq!(ana.reply("MOVE a {a}2 COUNT 1").await, "1");
        assert_eq!(again.reply("PUT a x").await, "BUSY");
        assert_ne!(ben.ask("POP b").await, Value::Array(Vec::new()));
        assert_ne!(again.reply("PUT d x").await, "BUSY");
        assert_eq!(ana.reply("PUT a x").await, "BUSY");
        // A queue that is emptied has none.
        assert_eq!(ana.reply("QUEUE TRUNCATE d").await, "1");
        while ana.reply("PUT e x").await == "BUSY" {}
        assert_eq!(ana.reply("PUT a x").await, "BUSY");
        // A user without a limit puts as many as there is room for.
        people.write(&[Person::new("ana", "put:*"), Person::new("ben", "put:*")]);
        while puts_until_busy(ana, 10).await < 10 {
            world.advance(1_000);
        }
    });
}

#[test]
fn a_transaction_puts_no_more_tasks_than_are_allowed() {
    let ana = Person::new("ana", "put:* take:*").within(&[("max_tasks", 3)]);
    with_people(&[ana], async |_, _, [ana]| {
        sign_in(ana, "ana").await;
        for (puts, told) in [(4, "BUSY"), (2, "2"), (2, "BUSY"), (1, "1"), (1, "BUSY")] {
            assert_eq!(ana.reply("MULTI").await, "OK");
            for _ in 0..puts {
                assert_eq!(ana.reply("PUT q x").await, "QUEUED");
            }
            match ana.ask("EXEC").await {
                Value::Array(replies) => assert_eq!(replies.len().to_string(), told),
                refused => assert_eq!(refusal(&refused).split(' ').next(), Some(told)),
            }
        }
        // One that is refused has put nothing.
        assert_ne!(ana.ask("POP q").await, Value::Array(Vec::new()));
        for told in ["EXECABORT", "EXECABORT"] {
            assert_eq!(ana.reply("MULTI").await, "OK");
            assert_eq!(ana.reply("PUT q x").await, "QUEUED");
            assert_eq!(ana.reply("ACK q 99").await, "QUEUED");
            assert_eq!(ana.reply("EXEC").await, told);
        }
        assert_ne!(ana.reply("PUT q x").await, "BUSY");
        assert_eq!(ana.reply("PUT q x").await, "BUSY");
    });
}

#[test]
fn a_user_has_so_many_bytes_in_flight() {
    let ana = Person::new("ana", "put:* look:*").within(&[("max_bytes_in_flight", 20_000)]);
    with_people(&[ana, Person::new("ben", "put:*")], async |_, _, [ana, again, ben]| {
        sign_in(ana, "ana").await;
        sign_in(again, "ana").await;
        sign_in(ben, "ben").await;
        let large = format!("PUT q {}", "x".repeat(15_000));
        for _ in 0..5 {
            assert_ne!(ana.reply(&large).await, "BUSY", "what is answered is not in flight");
        }
        // The beginning of a request that has not arrived is in flight.
        again.send_bytes(b"*3\r\n$3\r\nPUT\r\n$1\r\nq\r\n$10000\r\n").await;
        again.send_bytes(&[b'x'; 9_000]).await;
        while ana.reply(&large).await != "BUSY" {}
        assert_eq!(ana.reply(&large).await, "BUSY");
        assert_ne!(ana.reply("PUT q x").await, "BUSY");
        assert_ne!(ben.reply(&large).await, "BUSY");
        again.send_bytes(&[b'x'; 1_000]).await;
        again.send_bytes(b"\r\n").await;
        assert!(!matches!(again.value().await, Value::Error(_)));
        assert_ne!(ana.reply(&large).await, "BUSY");
        // So are answers that are not read, and they are not when their connection is gone.
        let gone = again;
        for _ in 0..10_000 {
            gone.send_bytes(b"PEEK q COUNT 5\r\n").await;
            if ana.reply("PUT q x").await == "BUSY" {
                break;
            }
        }
        assert_eq!(ana.reply("PUT q x").await, "BUSY");
        gone.half_close().await;
        drop(gone.rest().await);
        assert_ne!(ana.reply("PUT q x").await, "BUSY");
    });
}

#[test]
fn all_tasks_of_a_user_may_have_one_share() {
    for shards in [1, 3] {
        let of = |share| Person::new("ana", "put:* look:* manage:*").on_behalf_of(share);
        let other = || Person::new("ben", "put:* look:* take:*");
        let config = Config { shards, ..in_memory() };
        with_people_at(config, &[of("acme"), other()], async |world, people, [ana, ben]| {
            sign_in(ana, "ana").await;
            sign_in(ben, "ben").await;
            let puts = [
                "PUT q a",
                "PUT q b SHARE bolt",
                "PUT q c KEY k",
                "PUT q d UNIQUE u",
                "PUT q e UNIQUE u ONDUP replace SHARE bolt",
                "PUT q f STATE B",
                "PUT q g ROOM 10",
                "PUT {q} h SHARE bolt",
                "SCHEDULE SET {q}s {q} i EVERY 60000 SHARE bolt",
                "SCHEDULE FIRE {q}s",
            ];
            for put in puts {
                assert!(!matches!(ana.ask(put).await, Value::Error(_)), "{put}");
            }
            assert_eq!(ana.reply("MULTI").await, "OK");
            assert_eq!(ana.reply("PUT q j SHARE bolt").await, "QUEUED");
            assert_eq!(ana.reply("PUT q k").await, "QUEUED");
            assert!(matches!(ana.ask("EXEC").await, Value::Array(_)));
            ben.ask("PUT q l SHARE bolt").await;
            assert_eq!(shares(ben, "q").await, "acme acme acme acme acme acme acme acme bolt");
            assert_eq!(shares(ben, "{q}").await, "acme acme");
            // Another share holds once the file was read.
            people.write(&[of("other"), other()]);
            while !shares(ben, "p").await.ends_with("other") {
                ana.ask("PUT p x").await;
                world.advance(1_000);
            }
        });
    }
}

/// The shares of all tasks of a queue, in the order of their puts.
async fn shares(client: &mut Client, queue: &str) -> String {
    let page = client.ask(&format!("SCAN {queue} WITHMETA")).await;
    let Value::Array(page) = page else { panic!("{page:?}") };
    let Value::Array(tasks) = &page[1] else { panic!("{page:?}") };
    let share = |task: &Value| show(task.field("share").unwrap());
    tasks.iter().map(share).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_connection_of_the_wire_closes_beyond_a_limit() {
    for shards in [1, 3] {
        let anonymous = Person::new("anonymous", "put:* take:*").within(&[("max_tasks", 2)]);
        let config = Config { shards, ..in_memory() };
        let people = [anonymous, Person::new("boss", "take:*")];
        with_people_at(config, &people, async |world, _, [boss]| {
            sign_in(boss, "boss").await;
            let mut wire = crate::client::Client::connect(world.wire_address).await;
            for queue in ["a", "b"] {
                wire.push(queue, 1, "", "x").await;
            }
            wire.fence().await;
            wire.push("c", 1, "", "x").await;
            wire.ended().await;
            assert_eq!(boss.ask("POP c").await, Value::Array(Vec::new()));
            assert_ne!(boss.ask("POP b").await, Value::Array(Vec::new()));
            let mut wire = crate::client::Client::connect(world.wire_address).await;
            wire.push("c", 1, "", "x").await;
            wire.fence().await;
            assert_ne!(boss.ask("POP c").await, Value::Array(Vec::new()));
        });
    }
}
