//! How long a request may take from its first byte to its last.

use std::time::Duration;

use pinpriq_server::config::Config;

use crate::client::{Client, named_bytes, push_bytes};
use crate::line::encrypted_too;
use crate::world::{in_memory, with_clients};

fn patient_for_ten_seconds() -> Config {
    let mut config = in_memory();
    config.limits.frame_timeout = Duration::from_secs(10);
    config
}

/// Waits until the server has begun with these clients.
async fn settle(clients: &mut [&mut Client]) {
    for client in clients {
        client.fence().await;
    }
}

/// Sends the beginning of a request, and has the server read it.
async fn begin(client: &mut Client, other: &mut Client, bytes: &[u8]) {
    client.send(bytes).await;
    other.fence().await;
    other.fence().await;
}

#[test]
fn an_incomplete_request_closes_at_the_deadline_and_not_before() {
    with_clients(patient_for_ten_seconds(), async |world, [other, prompt, late]| {
        settle(&mut [other, prompt, late]).await;
        let pop = named_bytes(b'P', b"queue");
        begin(prompt, other, &pop[..4]).await;
        begin(late, other, &pop[..4]).await;
        world.advance(9_999);
        prompt.send(&pop[4..]).await;
        assert_eq!(prompt.bytes(2).await, [0, 0]);
        world.advance(1);
        late.ended().await;
        prompt.fence().await;
    });
}

#[test]
fn further_bytes_do_not_move_the_deadline() {
    with_clients(patient_for_ten_seconds(), async |world, [other, drip]| {
        settle(&mut [other, drip]).await;
        let push = push_bytes(b"q", 60_000, 1, b"key", b"payload");
        for byte in &push[..10] {
            begin(drip, other, &[*byte]).await;
            world.advance(1_000);
        }
        drip.ended().await;
        assert_eq!(other.pop("q").await, [""; 0]);
    });
}

#[test]
fn each_request_has_a_deadline_of_its_own() {
    with_clients(patient_for_ten_seconds(), async |world, [other, slow]| {
        settle(&mut [other, slow]).await;
        let pop = named_bytes(b'P', b"queue");
        // The end of each request comes together with the beginning of the next.
        begin(slow, other, &pop[..4]).await;
        for _ in 0..5 {
            world.advance(9_000);
            slow.send(&pop[4..]).await;
            slow.send(&pop[..4]).await;
            assert_eq!(slow.bytes(2).await, [0, 0]);
            other.fence().await;
        }
        world.advance(10_000);
        slow.ended().await;
    });
}

#[test]
fn replies_of_complete_requests_are_sent_before_the_end() {
    with_clients(patient_for_ten_seconds(), async |world, [other, client]| {
        settle(&mut [other, client]).await;
        let pop = named_bytes(b'P', b"queue");
        begin(client, other, &[&pop[..], &pop[..4]].concat()).await;
        world.advance(10_000);
        assert_eq!(client.rest().await, [0, 0]);
    });
}

#[test]
fn an_idle_connection_stays_open() {
    with_clients(patient_for_ten_seconds(), async |world, [idle]| {
        settle(&mut [idle]).await;
        idle.fence().await;
        world.advance(1_000_000_000);
        idle.fence().await;
    });
}

#[test]
fn the_clock_does_not_run_while_the_server_does_not_read() {
    let mut config = patient_for_ten_seconds();
    config.limits.out_bytes_max = 1;
    with_clients(config, async |world, [other]| {
        for _ in 0..20 {
            other.send(&push_bytes(b"q", 65_535, 1, b"k", &vec![7; 60_000]).repeat(300)).await;
            other.fence().await;
            let mut slow = Client::connect_narrow(world.address).await;
            let pop = named_bytes(b'P', b"q");
            slow.send(&[&pop[..], &pop[..2]].concat()).await;
            let begun = slow.bytes(2).await;
            world.advance(60_000);
            other.fence().await;
            assert_eq!(begun, 300_u16.to_be_bytes());
            for _ in 0..300 {
                slow.packet().await;
            }
            slow.send(&pop[2..]).await;
            assert_eq!(slow.frame().await, []);
        }
    });
}

#[test]
fn the_clock_does_not_run_while_a_push_waits_for_room() {
    let mut config = patient_for_ten_seconds();
    config.limits.task_bytes_max = 3_000;
    with_clients(config, async |world, [pusher, other]| {
        let push = push_bytes(b"q", 65_535, 1, b"k", &[7; 1_500]);
        pusher.send(&push).await;
        begin(pusher, other, &[&push[..], &push[..5]].concat()).await;
        world.advance(60_000);
        other.fence().await;
        assert_eq!(other.pop_packets("q").await.len(), 1);
        pusher.send(&push[5..]).await;
        other.fence().await;
        assert_eq!(other.pop_packets("q").await.len(), 1);
        pusher.fence().await;
    });
}

encrypted_too! {
    an_incomplete_request_closes_at_the_deadline_and_not_before
    further_bytes_do_not_move_the_deadline each_request_has_a_deadline_of_its_own
    replies_of_complete_requests_are_sent_before_the_end an_idle_connection_stays_open
    the_clock_does_not_run_while_the_server_does_not_read
    the_clock_does_not_run_while_a_push_waits_for_room
}
