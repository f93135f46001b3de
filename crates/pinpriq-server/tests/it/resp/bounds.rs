//! What clients can make the server keep besides tasks, and how long they may stay without a name.

use pinpriq_proto::wire::resp::put_command;

use super::client::{Client, show, with_clients};
use super::users::{sign_in, with_people};
use crate::people::Person;
use crate::world::in_memory;

/// Half of a request with an argument of this many bytes.
fn half_a_put(bytes: usize) -> Vec<u8> {
    let mut request = Vec::new();
    put_command(&mut request, &[b"PUT", b"q", &vec![b'x'; bytes]]);
    request.truncate(request.len() - bytes / 2);
    request
}

/// Reads replies until the server closes. Returns the last one.
async fn last_words(client: &mut Client) -> Option<String> {
    let mut last = None;
    while let Some((value, _)) = client.next().await {
        last = Some(show(&value));
    }
    last
}

#[test]
fn names_of_clients_have_a_longest() {
    with_clients(in_memory(), async |_, [client]| {
        let (longest, longer) = ("x".repeat(255), "x".repeat(256));
        for give in ["CLIENT SETNAME", "CLIENT SETINFO LIB-NAME", "CLIENT SETINFO LIB-VER"] {
            assert_eq!(client.reply(&format!("{give} {longest}")).await, "OK");
            assert_eq!(client.reply(&format!("{give} {longer}")).await, "BADARG", "{give}");
        }
        assert_eq!(client.reply(&format!("HELLO 2 SETNAME {longer}")).await, "BADARG");
        assert_eq!(client.reply("CLIENT GETNAME").await, longest);
    });
}

#[test]
fn a_long_name_is_refused_before_the_sign_in() {
    with_people(&[Person::new("ana", "")], async |_, _, [client]| {
        let long = "x".repeat(10_000);
        assert_eq!(client.reply(&format!("HELLO 3 SETNAME {long}")).await, "BADARG");
    });
}

#[test]
fn transactions_of_all_connections_are_bounded_together() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 1_000;
    config.limits.connection_bytes_max = 100_000;
    with_clients(config, async |_, [one, two, other]| {
        let put = format!("PUT q {}", "x".repeat(1_000));
        for client in [&mut *one, &mut *two] {
            assert_eq!(client.reply("MULTI").await, "OK");
            for _ in 0..45 {
                assert_eq!(client.reply(&put).await, "QUEUED");
            }
        }
        assert_eq!(other.reply("MULTI").await, "OK");
        let mut kept = 0;
        let refused = loop {
            match other.reply(&put).await.as_str() {
                "QUEUED" => kept += 1,
                told => break told.to_owned(),
            }
            assert!(kept < 20, "transactions are kept without end");
        };
        assert_eq!(refused, "BUSY");
        assert_eq!(other.reply("EXEC").await, "EXECABORT");
        // A client that keeps nothing is not concerned, and what has ended makes room.
        assert_eq!(other.reply(&put).await, "1");
        assert_eq!(one.reply("DISCARD").await, "OK");
        assert_eq!(other.reply("MULTI").await, "OK");
        for _ in 0..20 {
            assert_eq!(other.reply(&put).await, "QUEUED");
        }
        assert!(show(&other.ask("EXEC").await).starts_with('['));
    });
}

#[test]
fn requests_that_have_begun_are_bounded_together() {
    let mut config = in_memory();
    config.limits.payload_bytes_max = 100_000;
    config.limits.connection_bytes_max = 400_000;
    with_clients(config, async |world, [other]| {
        let mut begun = Vec::new();
        let mut refused = None;
        for _ in 0..20 {
            let mut client = world.connect().await;
            client.send_bytes(&half_a_put(100_000)).await;
            // The server has read that when it has answered another client twice.
            for _ in 0..4 {
                assert_eq!(other.reply("PING").await, "PONG");
            }
            if client.is_silent() {
                begun.push(client);
            } else {
                refused = last_words(&mut client).await;
                break;
            }
        }
        assert_eq!(refused.as_deref(), Some("BUSY"), "after {} of them", begun.len());
        assert!((4..=8).contains(&begun.len()), "{} were kept", begun.len());
        assert_eq!(other.reply("PUT q small").await, "1");
        drop(begun);
        let mut client = world.connect().await;
        let mut whole = Vec::new();
        put_command(&mut whole, &[b"PUT", b"q", &vec![b'x'; 100_000]]);
        client.send_bytes(&whole).await;
        assert_eq!(show(&client.value().await), "2");
    });
}

#[test]
fn a_long_request_is_refused_before_the_sign_in() {
    with_people(&[Person::new("ana", "put:*")], async |world, _, [ana, stranger]| {
        stranger.send_bytes(&half_a_put(100_000)).await;
        let told = last_words(stranger).await;
        assert_eq!(told.as_deref(), Some("TOOLARGE"));
        sign_in(ana, "ana").await;
        let mut whole = Vec::new();
        put_command(&mut whole, &[b"PUT", b"q", &vec![b'x'; 100_000]]);
        ana.send_bytes(&whole).await;
        assert_eq!(show(&ana.value().await), "1");
        drop(world.connect().await);
    });
}

#[test]
fn who_does_not_sign_in_makes_room_for_others() {
    let mut config = in_memory();
    config.limits.connections_max = 2;
    super::users::with_people_at(
        config,
        &[Person::new("ana", "put:*")],
        async |world, _, [ana, stranger]| {
            sign_in(ana, "ana").await;
            assert_eq!(stranger.reply("PING").await, "PONG");
            world.advance(9_999);
            assert_eq!(stranger.reply("PING").await, "PONG");
            world.advance(1);
            assert_eq!(last_words(stranger).await, None);
            stranger.half_close().await;
            for _ in 0..4 {
                assert_eq!(ana.reply("PING").await, "PONG");
            }
            // Who has signed in may stay.
            assert_eq!(ana.reply("PUT q x").await, "1");
            let mut another = world.connect().await;
            sign_in(&mut another, "ana").await;
            world.advance(1_000_000);
            assert_eq!(another.reply("PUT q x").await, "2");
        },
    );
}

/// How often a client asks for long work in one go.
const ROUNDS: usize = 300;

/// Returns how many replies of a client that asks for this again and again, in one packet, have
/// come when another client that asks after it has its own.
async fn replies_before_a_ping(world: &super::client::World, request: &str) -> usize {
    let mut busy = world.connect().await;
    let mut other = world.connect().await;
    assert_eq!(other.reply("PING").await, "PONG");
    assert_eq!(busy.reply("PING").await, "PONG");
    let requests = format!("{request}\r\n").repeat(ROUNDS);
    busy.send_bytes(requests.as_bytes()).await;
    assert_eq!(other.reply("PING").await, "PONG");
    let before = busy.arrived();
    for _ in before..ROUNDS {
        busy.value().await;
    }
    before
}

#[test]
fn long_work_of_one_client_does_not_hold_up_another() {
    let config = in_memory();
    crate::world::test(async || {
        let world = super::client::World::start_by_the_machine(config).await;
        let mut client = world.connect().await;
        let mut puts = Vec::new();
        for number in 0..20_000 {
            put_command(
                &mut puts,
                &[b"PUT", b"q", b"x", b"PRIORITY", format!("{number}").as_bytes()],
            );
        }
        client.exchange(&puts, 20_000).await;
        for request in ["SCAN q COUNT 1000 KEY none", "EXPLAIN q 19999", "STATS q"] {
            let before = replies_before_a_ping(&world, request).await;
            assert!(before < ROUNDS / 2, "{request}: {before} of {ROUNDS} came first");
        }
        world.end().await;
    });
}
