//! How an encrypted connection begins, or does not.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{HTTP, RESP, Talk, WIRE, on_stage, on_usual_stage};
use crate::client::{named_bytes, push_bytes};
use crate::line::Line;

/// The beginning of a handshake.
const HELLO: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03, 0x0A];

#[test]
fn every_door_speaks_both_versions() {
    on_usual_stage(async |stage| {
        for version in [&TLS12, &TLS13] {
            let config = || {
                let mut config = stage.encryption.client(None);
                let provider = Arc::clone(config.crypto_provider());
                let roots = stage.encryption.roots();
                let versions: [&'static SupportedProtocolVersion; 1] = [version];
                config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_protocol_versions(&versions)
                    .unwrap()
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                config
            };
            let mut resp = stage.try_connect(RESP, config()).await.unwrap();
            resp.expect(b"ECHO payload\r\n", "$7\r\npayload\r\n").await;
            resp.expect(b"PUT q p\r\n", "$1\r\n").await;
            resp.0.read_exact(&mut [0; 3]).await.unwrap();
            resp.expect(b"POP q\r\n", "*1\r\n*4\r\n").await;
            let mut wire = stage.try_connect(WIRE, config()).await.unwrap();
            wire.send(&push_bytes(b"w", 60_000, 1, b"k", b"v")).await;
            wire.expect(&named_bytes(b'P', b"w"), "\0\u{1}\0\u{1}\0\u{1}kv").await;
            let http = stage.try_connect(HTTP, config()).await.unwrap();
            let answer = http.ask_http("GET /healthz", "", "").await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    });
}

#[test]
fn http_clients_choose_their_version_in_the_handshake() {
    on_usual_stage(async |stage| {
        for (offered, expected) in [
            (&["h2", "http/1.1"][..], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&["http/1.1", "h2"], Some("h2")),
            (&[], None),
        ] {
            let mut config = stage.encryption.client(None);
            config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
            let Talk(line) = stage.try_connect(HTTP, config).await.unwrap();
            let Line::Encrypted(stream) = line else { unreachable!() };
            let chosen = stream.get_ref().1.alpn_protocol();
            assert_eq!(chosen, expected.map(str::as_bytes), "{offered:?}");
        }
        let mut config = stage.encryption.client(None);
        config.alpn_protocols = vec![b"imap".to_vec()];
        assert!(stage.try_connect(HTTP, config).await.is_err());
    });
}

#[test]
fn plain_bytes_at_an_encrypted_door_end_the_connection_at_once() {
    on_usual_stage(async |stage| {
        for (door, bytes) in [
            (RESP, &b"PING\r\n"[..]),
            (WIRE, b"P\0\x01q"),
            (HTTP, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ] {
            let mut stream = TcpStream::connect(stage.encrypted[door]).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let mut answer = Vec::new();
            // A reset is an end too: the server has not read everything.
            let _ = stream.read_to_end(&mut answer).await;
            assert_eq!(answer, b"");
        }
    });
}

#[test]
fn a_handshake_at_a_plain_door_ends_the_connection_at_once() {
    on_usual_stage(async |stage| {
        for address in stage.plain {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(HELLO).await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert_eq!(answer, b"", "{address}");
        }
        let mut talk = stage.connect(RESP, None).await;
        talk.expect(b"INFO clients\r\n", "$").await;
    });
}

#[test]
fn a_handshake_that_stalls_ends_after_ten_seconds() {
    let patient = |config: &mut pinpriq_server::config::Config, _: &_| {
        config.limits.frame_timeout = Duration::from_mins(5);
        config.limits.connections_max = 3;
    };
    on_stage(patient, async |stage| {
        let mut stalled = Vec::new();
        for bytes in [HELLO, b""] {
            let mut stream = TcpStream::connect(stage.encrypted[RESP]).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stalled.push(stream);
        }
        let mut talk = stage.connect(RESP, None).await;
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        // Those who have not shaken hands count as connections.
        let mut refused = TcpStream::connect(stage.plain[RESP]).await.unwrap();
        let _ = refused.write_all(b"PING\r\n").await;
        let mut answer = Vec::new();
        let _ = refused.read_to_end(&mut answer).await;
        assert_eq!(answer, b"");
        stage.advance(9_999);
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        for stream in &stalled {
            assert!(stream.try_read(&mut [0; 1]).is_err(), "it is open");
        }
        stage.advance(1);
        for stream in &mut stalled {
            let _ = stream.read_to_end(&mut answer).await;
            assert_eq!(answer, b"");
        }
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        stage.connect(RESP, None).await.expect(b"PING\r\n", "+PONG\r\n").await;
    });
}

#[test]
fn requests_that_come_with_the_end_of_the_handshake_are_answered() {
    on_usual_stage(async |stage| {
        let (address, config) = (stage.encrypted[RESP], stage.encryption.client(None));
        let talking = tokio::task::spawn_blocking(move || {
            let name = ServerName::try_from("localhost").unwrap();
            let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
            // They leave together with the last message of the handshake.
            connection.writer().write_all(&b"PING\r\n".repeat(100)).unwrap();
            let mut socket = std::net::TcpStream::connect(address).unwrap();
            let mut answer = vec![0; 700];
            let mut stream = rustls::Stream::new(&mut connection, &mut socket);
            stream.read_exact(&mut answer).unwrap();
            answer
        });
        assert_eq!(talking.await.unwrap(), b"+PONG\r\n".repeat(100));
    });
}

#[test]
fn large_payloads_go_both_ways() {
    on_usual_stage(async |stage| {
        let mut talk = stage.connect(RESP, None).await;
        let payload: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        for id in 1..=5 {
            let head = format!("*3\r\n$3\r\nPUT\r\n$1\r\nq\r\n${}\r\n", payload.len());
            let whole = [head.as_bytes(), &payload, b"\r\n"].concat();
            talk.expect(&whole, &format!("$1\r\n{id}\r\n")).await;
        }
        talk.send(b"POP q COUNT 5\r\n").await;
        let mut answer = vec![0; 5 * payload.len()];
        talk.0.read_exact(&mut answer).await.unwrap();
        let places = answer.windows(1_000).filter(|part| *part == &payload[..1_000]).count();
        assert!(places >= 4, "{places}");
    });
}

#[test]
fn what_is_no_tls_after_the_handshake_ends_the_connection() {
    on_usual_stage(async |stage| {
        let mut talk = stage.connect(RESP, None).await;
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        let mut other = stage.connect(RESP, None).await;
        // Below the encryption.
        (*talk.0).write_all(b"PING\r\n").await.unwrap();
        let mut answer = Vec::new();
        assert!(talk.0.read_to_end(&mut answer).await.is_err());
        other.expect(b"PING\r\n", "+PONG\r\n").await;
    });
}

#[test]
fn many_handshakes_that_stall_make_room_for_others() {
    let patient = |config: &mut pinpriq_server::config::Config, _: &_| {
        config.limits.connections_max = 4_000;
    };
    on_stage(patient, async |stage| {
        let mut stalled = Vec::new();
        // As many as there is room for, and more. Time stands still: none of them is late.
        for number in 0..1_100 {
            let mut stream = TcpStream::connect(stage.encrypted[RESP]).await.unwrap();
            stream.write_all(&HELLO[..1]).await.unwrap();
            stalled.push(stream);
            if number % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let mut talk = stage.connect(RESP, None).await;
        talk.expect(b"PING\r\n", "+PONG\r\n").await;
        let mut answer = Vec::new();
        let _ = stalled[0].read_to_end(&mut answer).await;
        assert_eq!(answer, b"", "the oldest has made room");
    });
}
