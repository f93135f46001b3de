//! Requests that block, on many connections.

use pinpriq_proto::wire::resp::{Value, put_command};
use pinpriq_server::config::Durability;

use super::client::{World, elements, show, with_clients};
use crate::line::encrypted_too;
use crate::world::{in_memory, test};

#[test]
fn a_killed_client_takes_nothing_along() {
    with_clients(in_memory(), async |world, [control]| {
        for request in ["TAKE q WAIT -1", "POP q WAIT -1", "AWAIT other 1 WAIT -1"] {
            control.ask("PUT other p").await;
            let mut client = world.connect().await;
            client.say(request).await;
            let name = client.name();
            control.see_blocked(&name).await;
            assert_eq!(control.reply(&format!("CLIENT KILL ADDR {name}")).await, "1");
            assert_eq!(client.rest().await, b"");
            control.see_gone(&name).await;
            control.ask("PUT q p").await;
            assert_eq!(elements(&control.ask("POP q").await).len(), 1, "{request}");
        }
    });
}

#[test]
fn a_consumer_that_dies_while_it_is_served_loses_nothing() {
    with_clients(in_memory(), async |world, [control]| {
        for round in 0..200 {
            let mut client = world.connect().await;
            let name = client.name();
            client.say("TAKE q WAIT -1").await;
            if round % 2 == 0 {
                control.see_blocked(&name).await;
            }
            // Both are on their way at once.
            control.say(&format!("PUT q {round}")).await;
            drop(client);
            control.value().await;
            control.see_gone(&name).await;
            let left = control.reply("TAKE q").await;
            assert!(left.ends_with(&format!(" {round}]]")), "{left}");
            let id = left.split(' ').nth(1).unwrap();
            assert_eq!(control.reply(&format!("ACK q ID {id}")).await, "OK");
        }
    });
}

#[test]
fn a_reply_that_could_not_be_sent_brings_its_tasks_back() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 16 << 20;
    with_clients(config, async |world, [control]| {
        let payload = vec![b'p'; 16 << 20];
        for request in ["POP q", "TAKE q TTR 100000", "TAKE q"] {
            control.ask_words(&[b"PUT", b"q", &payload]).await;
            // More than the sockets hold, and it is never read.
            let mut client = world.connect().await;
            let name = client.name();
            client.say(request).await;
            while show(&control.ask("PEEK q").await) != "[]" {}
            drop(client);
            control.see_gone(&name).await;
            let back = control.ask("POP q").await;
            assert!(elements(&elements(&back)[0])[3].as_bytes() == Some(&payload[..]), "{request}");
            super::client::check_balance(&control.ask("STATS").await);
        }
    });
}

#[test]
fn credits_that_are_passed_on_meanwhile_do_not_unblock() {
    let mut config = in_memory();
    config.limits.in_flight_max = 4;
    with_clients(config, async |_, [client, control]| {
        client.ask("HELLO 3").await;
        client.ask("SUBSCRIBE pushed POP").await;
        // More than the engine gets at once, so that the rest follows bit by bit.
        client.ask("CREDIT 100").await;
        let mut bytes = Vec::new();
        put_command(&mut bytes, &[b"TAKE", b"q", b"WAIT", b"-1"]);
        put_command(&mut bytes, &[b"ECHO", b"after"]);
        client.send_bytes(&bytes).await;
        control.see_blocked(&client.name()).await;
        for _ in 0..50 {
            control.ask("PUT pushed p").await;
            assert!(matches!(client.value().await, Value::Push(_)));
        }
        control.see_blocked(&client.name()).await;
        control.ask("PUT q p").await;
        assert_eq!(show(&client.value().await), "[[q 51 51-1-1 p]]");
        assert_eq!(show(&client.value().await), "after");
    });
}

#[test]
fn a_server_that_stops_answers_only_those_blocked_who_have_changed_something() {
    test(async || {
        let world = World::plain().await;
        let mut control = world.connect().await;
        control.ask("PUT q p").await;
        control.ask("QUEUE CREATE full CAPACITY 1").await;
        control.ask("PUT full p").await;
        let mut blocked = Vec::new();
        let closing = &b"-CLOSING the server is stopping\r\n"[..];
        for (request, told) in [
            ("TAKE none WAIT -1", &b""[..]),
            ("POP none WAIT 99999", b""),
            ("AWAIT q 1 WAIT 99999", b""),
            ("PUT other p WAIT -1", closing),
            ("PUT other p ROOM 99999 WAIT -1", closing),
            ("PUT full p ROOM 99999", b""),
            ("PUT full p ROOM 99999 WAIT -1", b""),
        ] {
            let mut client = world.connect().await;
            client.say("ECHO before").await;
            client.say(request).await;
            client.say("ECHO never").await;
            control.see_blocked(&client.name()).await;
            blocked.push((client, told));
        }
        world.stop.ask();
        for (mut client, told) in blocked {
            assert_eq!(client.rest().await, [b"$6\r\nbefore\r\n", told].concat());
        }
        assert_eq!(control.rest().await, b"");
        world.end().await;
    });
}

#[test]
fn the_end_of_input_waits_for_the_disk_and_delays_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = in_memory();
    config.durability = Durability::Sync;
    config.data = dir.path().join("data");
    test(async || {
        let world = World::start(config).await;
        let mut control = world.connect().await;
        for round in 1..=20 {
            let mut client = world.connect().await;
            client.say("PUT q p").await;
            client.say("TAKE none WAIT -1").await;
            client.say("POP q").await;
            client.half_close().await;
            assert_eq!(control.reply("PING").await, "PONG");
            let told = String::from_utf8(client.rest().await).unwrap();
            assert!(told.contains("\r\n*0\r\n*1\r\n*4\r\n$1\r\nq\r\n"), "{round}: {told}");
        }
        world.end().await;
    });
}

encrypted_too! { a_killed_client_takes_nothing_along
    a_reply_that_could_not_be_sent_brings_its_tasks_back
    credits_that_are_passed_on_meanwhile_do_not_unblock
    a_server_that_stops_answers_only_those_blocked_who_have_changed_something
    the_end_of_input_waits_for_the_disk_and_delays_no_other
}
