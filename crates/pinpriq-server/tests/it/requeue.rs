//! What becomes of popped packets whose frame the client never took whole.

use pinpriq_server::config::Config;

use crate::client::{Client, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{World, in_memory, with_clients};

/// This number of packets of 60 kB is far more than all buffers between two sockets hold.
const GROUP: u32 = 400;

/// A server that has room for this number of connections, to see when one of them has ended.
fn limited(connections_max: usize) -> Config {
    let mut config = in_memory();
    config.limits.connections_max = connections_max;
    config
}

fn payload(number: u32) -> Vec<u8> {
    let mut payload = vec![7; 60_000];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload
}

/// Pushes one group to `q`: of every four packets one lives for 20 s, the others for 10 s; of
/// every five one has priority 0.
async fn push_group(client: &mut Client) {
    for number in 0..GROUP {
        let ttl_ms = if number % 4 == 0 { 20_000 } else { 10_000 };
        let priority = u8::try_from(number % 5).unwrap();
        client.send(&push_bytes(b"q", ttl_ms, priority, b"k", &payload(number))).await;
    }
    client.fence().await;
}

/// The numbers of that group in the order of a pop.
fn in_order(lives: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..GROUP).filter(|number| lives(*number)).collect();
    // Priority 0 comes last.
    numbers.sort_by_key(|number| ((number % 5 + 4) % 5, GROUP - number));
    numbers
}

async fn popped(client: &mut Client) -> Vec<u32> {
    let packets = client.pop_packets("q").await;
    packets
        .iter()
        .map(|(key, bytes)| {
            let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
            assert!(key == b"k" && *bytes == payload(number), "packet {number} has changed");
            number
        })
        .collect()
}

/// A client that begins to take a reply or a delivery and then breaks the connection.
async fn begin_and_break(world: &World, requests: &[u8]) {
    let mut client = Client::connect_narrow(world.address).await;
    client.send(requests).await;
    assert_eq!(client.bytes(2).await, u16::try_from(GROUP).unwrap().to_be_bytes());
    // What it has not read makes this a reset.
    drop(client);
}

#[test]
fn a_pop_reply_that_was_not_taken_whole_goes_back_with_its_order_and_deadlines() {
    with_clients(limited(2), async |world, [witness]| {
        push_group(witness).await;
        world.advance(5_000);
        begin_and_break(world, &named_bytes(b'P', b"q")).await;
        drop(world.connect_when_free().await);
        witness.send(&push_bytes(b"q", 60_000, 1, b"other", b"other")).await;
        assert_eq!(witness.pop("q").await, ["other"], "newer than all that went back");
        assert!(popped(witness).await == in_order(|_| true));

        push_group(witness).await;
        world.advance(5_000);
        begin_and_break(world, &named_bytes(b'P', b"q")).await;
        drop(world.connect_when_free().await);
        world.advance(5_000);
        assert!(popped(witness).await == in_order(|number| number % 4 == 0));
        assert_eq!(witness.pop("q").await, [""; 0]);
    });
}

#[test]
fn a_delivery_that_was_not_taken_whole_goes_to_the_next_subscriber() {
    with_clients(in_memory(), async |world, [witness, next]| {
        push_group(witness).await;
        let mut requests = named_bytes(b's', b"q");
        requests.push(0x41);
        // The next one stands in line before the first has gone.
        let mut client = Client::connect_narrow(world.address).await;
        client.send(&requests).await;
        assert_eq!(client.bytes(2).await, [1, 0x90]);
        next.send(&requests).await;
        next.fence().await;
        drop(client);
        // All are back before the first is handed out, so that they come as one group again.
        let packets = next.frame().await;
        let number = |payload: &[u8]| u32::from_be_bytes(payload[..4].try_into().unwrap());
        let numbers: Vec<u32> = packets.iter().map(|(_, payload)| number(payload)).collect();
        assert!(numbers == in_order(|_| true));
    });
}

#[test]
fn frames_that_were_taken_whole_stay_taken() {
    with_clients(limited(2), async |world, [witness]| {
        push_group(witness).await;
        for number in 0..3 {
            witness.push("small", 1, &number.to_string(), "taken").await;
        }
        witness.fence().await;
        let mut client = Client::connect_narrow(world.address).await;
        for _ in 0..2 {
            assert_eq!(client.pop("small").await, ["taken"]);
        }
        client.send(&named_bytes(b'P', b"q")).await;
        client.send(&named_bytes(b'P', b"small")).await;
        client.bytes(2).await;
        witness.fence().await;
        drop(client);
        drop(world.connect_when_free().await);
        assert!(popped(witness).await == in_order(|_| true));
        assert_eq!(witness.pop("small").await, ["taken"], "the third, whose reply never began");
        assert_eq!(witness.pop("small").await, [""; 0]);
    });
}

#[test]
fn of_many_frames_the_last_ones_go_back_and_each_as_a_whole() {
    const GROUPS: usize = 40;
    with_clients(limited(2), async |world, [witness]| {
        for group in 0..GROUPS {
            let key = group.to_string();
            let push = push_bytes(b"q", 60_000, 1, key.as_bytes(), &vec![7; 50_000]);
            witness.send(&push.repeat(8)).await;
        }
        witness.fence().await;
        let mut client = Client::connect_narrow(world.address).await;
        client.send(&named_bytes(b'P', b"q").repeat(GROUPS)).await;
        assert_eq!(client.bytes(2).await, [0, 8]);
        for _ in 0..GROUPS {
            witness.fence().await;
        }
        drop(client);
        drop(world.connect_when_free().await);
        // The newest group was popped first; the others come back from the oldest on.
        let mut back = Vec::new();
        loop {
            let packets = witness.pop_packets("q").await;
            let Some((key, _)) = packets.first() else { break };
            back.push(String::from_utf8(key.clone()).unwrap().parse::<usize>().unwrap());
            assert_eq!(packets.len(), 8);
        }
        let expected: Vec<usize> = (0..back.len()).rev().collect();
        assert_eq!(back, expected);
        assert!(back.len() > GROUPS / 2, "16 MB in the buffers of a socket: {}", back.len());
    });
}

#[test]
fn with_requeue_off_what_was_not_taken_whole_is_gone() {
    let mut config = limited(2);
    config.pinpriq_options.requeue = false;
    with_clients(config, async |world, [witness]| {
        push_group(witness).await;
        begin_and_break(world, &named_bytes(b'P', b"q")).await;
        drop(world.connect_when_free().await);
        assert_eq!(witness.pop("q").await, [""; 0]);

        push_group(witness).await;
        let mut requests = named_bytes(b's', b"q");
        requests.push(0x41);
        begin_and_break(world, &requests).await;
        drop(world.connect_when_free().await);
        assert_eq!(witness.pop("q").await, [""; 0]);
    });
}

encrypted_too! {
    a_pop_reply_that_was_not_taken_whole_goes_back_with_its_order_and_deadlines
    a_delivery_that_was_not_taken_whole_goes_to_the_next_subscriber
    frames_that_were_taken_whole_stay_taken
    of_many_frames_the_last_ones_go_back_and_each_as_a_whole
    with_requeue_off_what_was_not_taken_whole_is_gone
}
