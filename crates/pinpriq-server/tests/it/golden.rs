//! The worked examples of `docs/protocol/pinpriq.md`, byte for byte.

use pinpriq_server::config::Framing;
use tokio::io::AsyncWriteExt as _;

use crate::client::Client;
use crate::line::encrypted_too;
use crate::world::{in_memory, with_clients};

const PUSH_HELLO: &str = "70 00 04 03 E8 01 00 02 00 05 6B 31 68 65 6C 6C 6F 6A 6F 62 73";
const PUSH_EMPTY: &str = "70 00 04 FF FF 00 00 00 00 00 6A 6F 62 73";
const POP: &str = "50 00 04 6A 6F 62 73";
const EMPTY_REPLY: &str = "00 00";
const SUBSCRIBE: &str = "73 00 04 6A 6F 62 73";
const READY: &str = "41";
const DELIVERY: &str = "00 01 00 02 00 05 6B 31 68 65 6C 6C 6F";
const BARE_DELIVERY: &str = "00 02 00 05 6B 31 68 65 6C 6C 6F";
const UNSUBSCRIBE: &str = "75 00 04 6A 6F 62 73";
const POP_UNNAMED: &str = "50 00 00";
const PUSH_B: &str = "70 00 04 03 E8 02 00 02 00 01 6B 31 62 6A 6F 62 73";
const PUSH_NOTHING: &str = "70 00 04 03 E8 03 00 02 00 00 6B 31 6A 6F 62 73";
const REPLY_OF_THREE: &str =
    "00 03 00 02 00 05 6B 31 68 65 6C 6C 6F 00 02 00 01 6B 31 62 00 02 00 00 6B 31";

/// What is sent, and what comes back for it.
type Exchange = (&'static [&'static str], &'static str);

/// All of it on one connection, in this order.
const CONVERSATION: [Exchange; 9] = [
    (&[POP_UNNAMED], EMPTY_REPLY),
    (&[POP], EMPTY_REPLY),
    (&[PUSH_EMPTY, POP], EMPTY_REPLY),
    (&[PUSH_HELLO, POP], DELIVERY),
    (&[PUSH_NOTHING, PUSH_HELLO, PUSH_B, POP], REPLY_OF_THREE),
    (&[SUBSCRIBE, PUSH_HELLO, READY], DELIVERY),
    (&[READY, PUSH_HELLO], DELIVERY),
    (&[UNSUBSCRIBE, READY, PUSH_HELLO, POP], DELIVERY),
    (&[UNSUBSCRIBE, POP_UNNAMED, POP], "00 00 00 00"),
];

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

async fn expect(client: &mut Client, hex: &str) {
    let expected = bytes(hex);
    assert_eq!(client.bytes(expected.len()).await, expected, "{hex}");
}

#[test]
fn every_example_gets_its_bytes_message_by_message() {
    with_clients(in_memory(), async |_, [client]| {
        for (requests, answer) in CONVERSATION {
            for request in requests {
                client.send(&bytes(request)).await;
            }
            expect(client, answer).await;
        }
        client.fence().await;
    });
}

#[test]
fn every_example_gets_its_bytes_byte_by_byte() {
    with_clients(in_memory(), async |_, [client]| {
        for (requests, answer) in CONVERSATION {
            for byte in requests.iter().flat_map(|request| bytes(request)) {
                client.send(&[byte]).await;
                // Everybody else has a turn, so that the server reads each byte by itself.
                tokio::task::yield_now().await;
                client.stream.flush().await.unwrap();
            }
            expect(client, answer).await;
        }
        client.fence().await;
    });
}

#[test]
fn every_example_gets_its_bytes_in_one_write() {
    with_clients(in_memory(), async |_, [client]| {
        let requests: Vec<u8> =
            CONVERSATION.iter().flat_map(|(requests, _)| bytes(&requests.join(" "))).collect();
        let answers: Vec<u8> = CONVERSATION.iter().flat_map(|(_, answer)| bytes(answer)).collect();
        // The credit that a round leaves behind changes no byte of the next one.
        for rounds in [1, 7, 1_000] {
            client.send(&requests.repeat(rounds)).await;
            assert!(client.bytes(answers.len() * rounds).await == answers.repeat(rounds));
        }
        client.fence().await;
    });
}

#[test]
fn a_bare_delivery_gets_its_bytes_and_replies_keep_their_number() {
    let mut config = in_memory();
    config.pinpriq_options.framing = Framing::Bare;
    with_clients(config, async |_, [client]| {
        client.send(&bytes(SUBSCRIBE)).await;
        client.send(&bytes(READY)).await;
        client.send(&bytes(PUSH_HELLO)).await;
        expect(client, BARE_DELIVERY).await;
        client.send(&bytes(POP)).await;
        expect(client, EMPTY_REPLY).await;
        client.send(&bytes(PUSH_HELLO)).await;
        client.send(&bytes(POP)).await;
        expect(client, DELIVERY).await;
    });
}

#[test]
fn every_cut_through_a_request_is_waited_out() {
    with_clients(in_memory(), async |_, [client, other]| {
        let push = bytes(PUSH_HELLO);
        for cut in 1..push.len() {
            client.send(&push[..cut]).await;
            other.send(&bytes(POP)).await;
            expect(other, EMPTY_REPLY).await;
            client.send(&push[cut..]).await;
            client.send(&bytes(POP)).await;
            expect(client, DELIVERY).await;
        }
    });
}

encrypted_too! {
    every_example_gets_its_bytes_message_by_message every_example_gets_its_bytes_byte_by_byte
    every_example_gets_its_bytes_in_one_write
    a_bare_delivery_gets_its_bytes_and_replies_keep_their_number
    every_cut_through_a_request_is_waited_out
}
