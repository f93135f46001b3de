//! Bytes that come in pieces, in great numbers, or announce more than they bring.

use pinpriq_proto::wire::resp::put_command;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Client, World, elements, show, with_clients};
use crate::line::encrypted_too;
use crate::world::{in_memory, test};

#[test]
fn requests_may_come_byte_by_byte() {
    with_clients(in_memory(), async |_, [client, control]| {
        let mut bytes = Vec::new();
        put_command(&mut bytes, &[b"PUT", b"q", b"a\r\nb", b"KEY", b""]);
        bytes.extend(b"*0\r\nTAKE  q \"COUNT\" 2\r\n*-1\r\n*1\r\n$4\r\nPING\r\n");
        for byte in bytes {
            client.send_bytes(&[byte]).await;
            control.ask("PING").await;
        }
        assert_eq!(show(&client.value().await), "1");
        assert_eq!(show(&client.value().await), "[[q 1 1-1-1 a\\r\\nb]]");
        assert_eq!(show(&client.value().await), "PONG");
    });
}

#[test]
fn what_is_too_large_is_skipped_up_to_a_bound() {
    with_clients(in_memory(), async |world, [client]| {
        for bytes in [(1 << 20) + 1, 5 << 20, 64 << 20] {
            let payload = vec![b'p'; bytes];
            let reply = client.ask_words(&[b"PUT", b"q", &payload]).await;
            assert_eq!(show(&reply), "TOOLARGE");
            assert_eq!(client.reply("PING").await, "PONG");
        }
        let largest = vec![b'p'; 1 << 20];
        assert_eq!(show(&client.ask_words(&[b"PUT", b"q", &largest]).await), "1");
        // Together too much, though none is by itself.
        let reply = client.ask_words(&[b"ECHO", &largest, &largest, &largest]).await;
        assert_eq!(show(&reply), "TOOLARGE");
        client.send_bytes(b"*3\r\n$3\r\nPUT\r\n$1\r\nq\r\n$67108865\r\n").await;
        let told = client.rest().await;
        assert_eq!(told, b"-ERR Protocol error: invalid bulk length\r\n");
        let mut control = world.connect().await;
        assert_eq!(control.reply("POP q COUNT 9").await.len(), (1 << 20) + "[[q 1 null ]]".len());
    });
}

#[test]
fn a_line_may_be_64_kib_long() {
    with_clients(in_memory(), async |world, [client]| {
        let long = "w".repeat((64 << 10) - "ECHO ".len());
        client.send_bytes(format!("ECHO {long}\n").as_bytes()).await;
        assert_eq!(show(&client.value().await), long);
        client.send_bytes(format!("ECHO {long}x").as_bytes()).await;
        client.half_close().await;
        assert_eq!(client.rest().await, b"-ERR Protocol error: too big inline request\r\n");
        let mut endless = world.connect().await;
        endless.send_bytes(&vec![b'x'; 200 << 10]).await;
        assert_eq!(endless.rest().await, b"-ERR Protocol error: too big inline request\r\n");
    });
}

#[test]
fn as_many_arguments_as_there_may_be() {
    with_clients(in_memory(), async |_, [client]| {
        let ids = vec![&b"7"[..]; 16_382];
        let words: Vec<&[u8]> = [b"KILL", &b"q"[..]].into_iter().chain(ids).collect();
        assert_eq!(show(&client.ask_words(&words).await), "0");
        let receipts = vec![&b"1-1-1"[..]; 16_382];
        let words: Vec<&[u8]> = [b"ACK", &b"q"[..]].into_iter().chain(receipts).collect();
        let told = client.ask_words(&words).await;
        assert!(elements(&told).iter().all(|answer| show(answer) == "STALE"));
        assert_eq!(elements(&told).len(), 16_382);
    });
}

#[test]
fn replies_that_are_read_late_are_complete_and_in_order() {
    test(async || {
        const COUNT: usize = 100_000;
        let world = World::plain().await;
        let mut control = world.connect().await;
        for _ in 0..50 {
            control.ask("PUT q p").await;
        }
        let Client { stream, .. } = world.connect().await;
        let (mut reading, mut writing) = tokio::io::split(stream);
        let sending = tokio::task::spawn_local(async move {
            for number in 0..COUNT {
                let long = if number % 100 == 0 { "PEEK q COUNT 50\r\n" } else { "" };
                let line = format!("{long}ECHO {number:0>200}\r\n");
                writing.write_all(line.as_bytes()).await.unwrap();
            }
            writing.flush().await.unwrap();
            writing
        });
        // The server stops reading, and still serves the others.
        for _ in 0..1_000 {
            assert_eq!(control.reply("PING").await, "PONG");
        }
        assert!(!sending.is_finished(), "a client that reads nothing is held back");
        let mut bytes = Vec::new();
        let expected = format!("{:0>200}\r\n", COUNT - 1).into_bytes();
        while !bytes.ends_with(&expected) {
            assert_ne!(reading.read_buf(&mut bytes).await.unwrap(), 0);
        }
        let mut at = 0;
        for number in 0..COUNT {
            let echo = format!("$200\r\n{number:0>200}\r\n");
            if number % 100 == 0 {
                assert!(bytes[at..].starts_with(b"*50\r\n"), "{number}");
                let tasks = (1..=50).map(|id: u32| {
                    let id = id.to_string();
                    format!("*4\r\n$1\r\nq\r\n${}\r\n{id}\r\n$-1\r\n$1\r\np\r\n", id.len()).len()
                });
                at += 5 + tasks.sum::<usize>();
            }
            assert!(bytes[at..].starts_with(echo.as_bytes()), "{number}");
            at += echo.len();
        }
        assert_eq!(at, bytes.len());
        drop(sending.await.unwrap());
    });
}

encrypted_too! {
    requests_may_come_byte_by_byte what_is_too_large_is_skipped_up_to_a_bound
    a_line_may_be_64_kib_long as_many_arguments_as_there_may_be
    replies_that_are_read_late_are_complete_and_in_order
}
