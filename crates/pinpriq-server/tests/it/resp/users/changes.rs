//! What becomes of connections when users change.

use super::{sign_in, with_people};
use crate::people::{HASH, People, Person};
use crate::resp::client::{Client, World, show};
use crate::world::{in_memory, test};

/// Another hash, of an unknown password.
fn other_hash() -> String {
    HASH.replace("nf65", "nf66")
}

/// How often something is asked until it is as expected.
const ASKS_MAX: usize = 20_000;

/// Asks until the answer is this one.
async fn until(client: &mut Client, request: &str, expected: &str) {
    let mut told = String::new();
    for _ in 0..ASKS_MAX {
        told = client.reply(request).await;
        if told == expected {
            return;
        }
    }
    panic!("{request} is still answered {told}, and not {expected}");
}

/// Lets others do something until a client has received something.
async fn until_told(client: &mut Client, other: &mut Client) {
    for _ in 0..ASKS_MAX {
        if !client.is_silent() {
            return;
        }
        other.ask("PING").await;
    }
    panic!("nothing was told");
}

/// Has the server look at its file.
fn look(world: &World) {
    world.advance(1_000);
}

#[test]
fn a_right_that_is_lost_is_lost_at_the_next_command() {
    with_people(&[Person::new("ana", "put:a put:b")], async |world, people, [client]| {
        sign_in(client, "ana").await;
        assert_eq!(client.reply("PUT a x").await, "1");
        people.write(&[Person::new("ana", "put:b")]);
        look(world);
        until(client, "PUT a x", "NOPERM").await;
        assert_ne!(client.reply("PUT b x").await, "NOPERM");
        people.write(&[]);
        look(world);
        until(client, "PUT b x", "NOAUTH").await;
    });
}

#[test]
fn a_password_and_a_token_that_change_sign_out_those_who_used_them() {
    let (ana, token) = Person::with_token("ana", "put:q");
    let kept = ana.token.clone();
    with_people(&[ana], async |world, people, [by_password, by_token]| {
        sign_in(by_password, "ana").await;
        assert_eq!(by_token.reply(&format!("AUTH {token}")).await, "OK");
        let hash = other_hash();
        people.write(&[Person { hash: hash.clone(), token: kept, ..Person::new("ana", "put:q") }]);
        look(world);
        until(by_password, "PUT q x", "NOAUTH").await;
        assert_eq!(by_password.reply("AUTH ana password").await, "WRONGPASS", "it is forgotten");
        assert_ne!(by_token.reply("PUT q x").await, "NOAUTH");
        people.write(&[Person { hash, ..Person::new("ana", "put:q") }]);
        look(world);
        until(by_token, "PUT q x", "NOAUTH").await;
    });
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing() {
    with_people(&[Person::new("ana", "put:q")], async |world, people, [client]| {
        sign_in(client, "ana").await;
        people.write_text("[users.ana]\nrules = [\"put\"]\n");
        look(world);
        people.write(&[Person::new("ana", "put:q put:other")]);
        assert_ne!(client.reply("PUT q x").await, "NOPERM");
        look(world);
        while client.reply("PUT other x").await == "NOPERM" {
            look(world);
        }
    });
}

/// Requests that wait, and what they are answered when their user may no longer do it.
const WAITING: [(&str, &str); 4] = [
    ("TAKE q WAIT -1", "NOPERM"),
    ("POP QUEUES 2 other q WAIT 100000000", "NOPERM"),
    ("AWAIT q 1 WAIT -1", "NOPERM"),
    // The task is there, and its id must be sent.
    ("PUT q x WAIT -1", "[2 timeout]"),
];

#[test]
fn what_waits_ends_when_its_user_may_no_longer_do_it() {
    for (request, expected) in WAITING {
        let boss = || Person::new("boss", "admin put:*");
        let people = [boss(), Person::new("ana", "put:* take:* look:*")];
        with_people(&people, async |world, people, [boss_client, client, other]| {
            sign_in(boss_client, "boss").await;
            sign_in(client, "ana").await;
            sign_in(other, "ana").await;
            if request.starts_with("AWAIT") || request.starts_with("PUT") {
                boss_client.ask("PUT q first DELAY 1000000000").await;
            }
            client.say(request).await;
            boss_client.see_blocked(&client.name()).await;
            other.say("TAKE elsewhere WAIT -1").await;
            boss_client.see_blocked(&other.name()).await;
            // Nothing happens to those who may still do what they do.
            people.write(&[boss(), Person::new("ana", "put:* take:* look:* manage:x")]);
            look(world);
            people.write(&[boss(), Person::new("ana", "take:elsewhere put:p")]);
            look(world);
            until_told(client, boss_client).await;
            assert_eq!(show(&client.value().await), expected, "{request}");
            assert_ne!(client.reply("PUT p x").await, "NOPERM", "it goes on");
            boss_client.see_blocked(&other.name()).await;
            assert!(other.is_silent());
        });
    }
}

#[test]
fn a_subscription_ends_with_its_right() {
    let people = [Person::new("boss", "admin put:*"), Person::new("ana", "take:q take:p")];
    with_people(&people, async |world, people, [boss, client, other]| {
        sign_in(boss, "boss").await;
        sign_in(client, "ana").await;
        sign_in(other, "ana").await;
        client.ask("SUBSCRIBE q").await;
        other.ask("SUBSCRIBE p").await;
        people.write(&[Person::new("boss", "admin put:*"), Person::new("ana", "take:p")]);
        look(world);
        until_told(client, boss).await;
        let rest = String::from_utf8(client.rest().await).unwrap();
        assert!(rest.starts_with("-NOPERM ") && rest.ends_with("\r\n"), "{rest}");
        boss.ask("PUT q x").await;
        other.ask("CREDIT 1").await;
        boss.ask("PUT p mine").await;
        assert!(show(&other.value().await).contains("mine"));
        client.half_close().await;
        while boss.info("disconnects_denied").await != "1" {}
    });
}

#[test]
fn the_same_with_several_shards() {
    test(async || {
        let boss = || Person::new("boss", "admin put:*");
        let mut people = People::new(&[boss(), Person::new("ana", "take:* look:*")]);
        let config = pinpriq_server::config::Config { shards: 3, ..in_memory() };
        let world = World::start_by_the_machine(people.at(config)).await;
        let mut control = world.connect().await;
        sign_in(&mut control, "boss").await;
        let mut waiting = Vec::new();
        for queue in ["a", "b", "c", "d", "e", "f"] {
            let mut client = world.connect().await;
            sign_in(&mut client, "ana").await;
            // So the connection has its home, which is not always that of the second queue.
            client.ask("PEEK home").await;
            client.say(&format!("TAKE {queue} WAIT -1")).await;
            control.see_blocked(&client.name()).await;
            let mut subscriber = world.connect().await;
            sign_in(&mut subscriber, "ana").await;
            subscriber.ask("PEEK home").await;
            subscriber.ask(&format!("SUBSCRIBE {queue}")).await;
            waiting.push((client, subscriber));
        }
        people.write(&[boss(), Person::new("ana", "look:*")]);
        for (client, subscriber) in &mut waiting {
            assert_eq!(show(&client.value().await), "NOPERM");
            assert_eq!(client.reply("PEEK a").await, "[]");
            assert!(subscriber.rest().await.starts_with(b"-NOPERM "));
        }
        world.end().await;
    });
}

#[test]
fn a_client_that_hangs_up_while_it_signs_in_is_forgotten() {
    let people = [Person::new("boss", "admin"), Person::new("ana", "")];
    with_people(&people, async |world, _, [boss]| {
        sign_in(boss, "boss").await;
        for _ in 0..20 {
            let mut client: Client = world.connect().await;
            let name = client.name();
            client.say("AUTH ana wrong").await;
            client.half_close().await;
            drop(client);
            boss.see_gone(&name).await;
        }
    });
}
