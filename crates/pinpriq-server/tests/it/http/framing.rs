//! What holds for every request and answer over HTTP/1: hosts, methods, header fields, and whether
//! the connection goes on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use tokio::io::AsyncReadExt as _;

use super::{Visitor, with_site};

const CLOSE: &str = "connection: close";
const NOSNIFF: &str = "x-content-type-options: nosniff";

/// Sends a head as it is, and returns the status and the header fields of the answer.
async fn answer_to(visitor: &mut Visitor, head: &str) -> (u16, Vec<String>) {
    visitor.send_bytes(head.as_bytes()).await;
    let (status, fields, _) = visitor.whole_answer().await;
    (status, fields)
}

#[test]
fn what_can_only_be_read_has_no_other_method() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        for path in ["/healthz", "/readyz", "/openapi.json", "/metrics"] {
            for (method, expected) in
                [("GET", 200), ("OPTIONS", 204), ("POST", 405), ("PUT", 405), ("BREW", 405)]
            {
                let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
                let (status, fields) = answer_to(&mut visitor, &head).await;
                assert_eq!(status, expected, "{method} {path}");
                assert!(fields.contains(&NOSNIFF.to_owned()), "{method} {path}: {fields:?}");
                let tells = fields.contains(&"allow: get, head, options".to_owned());
                assert_eq!(tells, status != 200, "{method} {path}: {fields:?}");
            }
        }
    });
}

#[test]
fn an_answer_in_pieces_may_be_compressed() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        for (field, is_packed) in [("", false), ("Accept-Encoding: gzip\r\n", true)] {
            visitor.send("GET /metrics", field, b"").await;
            let (status, fields, text) = visitor.whole_answer().await;
            assert_eq!(status, 200);
            assert_eq!(fields.contains(&"content-encoding: gzip".to_owned()), is_packed);
            assert!(text.contains("\npinpriq_store_failed 0\n"), "{text}");
        }
        assert_eq!(
            answer_to(&mut visitor, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.0,
            200
        );
    });
}

#[test]
fn a_request_without_one_host_ends_the_connection() {
    with_site(async |address| {
        for (fields, version, expected) in [
            ("", "1.1", 400),
            ("Host: localhost\r\nHost: localhost\r\n", "1.1", 400),
            ("Host: localhost\r\nHost: localhost\r\n", "1.0", 400),
            ("Host: a b\r\n", "1.1", 400),
            ("Host: elsewhere.example\r\n", "1.1", 200),
            ("", "1.0", 200),
        ] {
            let mut visitor = Visitor::at(address).await;
            let head = format!("GET /healthz HTTP/{version}\r\n{fields}\r\n");
            let (status, told) = answer_to(&mut visitor, &head).await;
            assert_eq!(status, expected, "{head}");
            if status == 400 {
                assert!(told.contains(&CLOSE.to_owned()), "{head}: {told:?}");
                assert_eq!(visitor.line().await, "", "the end");
            }
        }
        let mut visitor = Visitor::at(address).await;
        assert_eq!(answer_to(&mut visitor, "GET /v1/stats HTTP/1.0\r\n\r\n").await.0, 421);
    });
}

#[test]
fn a_refusal_before_the_body_says_that_the_connection_ends() {
    with_site(async |address| {
        for (line, fields) in [
            ("POST /v1/nowhere", ""),
            ("POST /healthz", ""),
            ("POST /v1/queues/q/tasks", "Origin: http://evil.example\r\n"),
        ] {
            let mut visitor = Visitor::at(address).await;
            visitor.send(line, fields, b"x").await;
            let (status, told, _) = visitor.whole_answer().await;
            assert!((400..500).contains(&status), "{line}: {status}");
            assert!(told.contains(&CLOSE.to_owned()), "{line}: {told:?}");
        }
        // After the body has been read, the connection goes on.
        let mut visitor = Visitor::at(address).await;
        for (line, expected) in
            [("POST /v1/queues/q/tasks?nosuch=1", 400), ("POST /v1/queues/q/tasks", 201)]
        {
            visitor.send(line, "", b"x").await;
            let (status, told, _) = visitor.whole_answer().await;
            assert_eq!(status, expected, "{line}");
            assert!(!told.contains(&CLOSE.to_owned()), "{line}: {told:?}");
        }
    });
}

/// Sends a frame of HTTP/2.
async fn send_frame(visitor: &mut Visitor, (kind, flags, stream): (u8, u8, u8), body: &[u8]) {
    let [.., high, middle, low] = body.len().to_be_bytes();
    let head = [high, middle, low, kind, flags, 0, 0, 0, stream];
    visitor.send_bytes(&[&head, body].concat()).await;
}

#[test]
fn a_refusal_over_http_2_does_not_reset_the_stream() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    const ACK: u8 = 1;
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        visitor.send_bytes(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        send_frame(&mut visitor, (SETTINGS, 0, 0), b"").await;
        let field = |name: &str, value: &str| {
            let lengths = [name, value].map(|it| u8::try_from(it.len()).unwrap());
            [&[0, lengths[0]], name.as_bytes(), &lengths[1..], value.as_bytes()].concat()
        };
        let fields = [
            field(":method", "POST"),
            field(":scheme", "http"),
            field(":authority", "localhost"),
            field(":path", "/v1/queues/q/tasks"),
            field("content-type", "text/plain"),
            field("content-length", "2000000"),
        ];
        send_frame(&mut visitor, (HEADERS, END_HEADERS, 1), &fields.concat()).await;
        let chunk = [b'x'; 16_000];
        let (mut unsent, mut pings, mut answer) = (2_000_000, 0, Vec::new());
        while unsent > 0 || pings > 0 || answer.is_empty() {
            // Each answered ping says that the server has read what came before it.
            if unsent > 0 && pings == 0 {
                unsent -= chunk.len();
                let flags = if unsent == 0 { END_STREAM } else { 0 };
                send_frame(&mut visitor, (DATA, flags, 1), &chunk).await;
                send_frame(&mut visitor, (PING, 0, 0), &[0; 8]).await;
                pings += 1;
            }
            let mut head = [0; 9];
            visitor.0.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut body = vec![0; length];
            visitor.0.read_exact(&mut body).await.unwrap();
            match (head[3], head[4]) {
                (RST_STREAM, _) => panic!("reset with {body:?} after {answer:?}"),
                (PING, ACK) => pings -= 1,
                (DATA, _) => answer.extend_from_slice(&body),
                _ => {}
            }
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("\"code\":\"TOOLARGE\""), "{answer}");
    });
}

#[test]
fn many_small_header_fields_are_no_large_head() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        let fields: String = ["X-Field: y\r\n"; 1_000].concat();
        let (status, _) = visitor.ask("GET /v1/stats", &fields, b"").await;
        assert_eq!(status, 200);
    });
}

#[test]
fn the_longest_name_is_reached_in_the_body() {
    with_site(async |address| {
        let json = "Content-Type: application/json\r\n";
        let name = STANDARD.encode(vec![b'n'; 65_535]);
        let body = format!(r#"{{"queue_base64":"{name}"}}"#);
        let mut visitor = Visitor::at(address).await;
        for (line, expected) in [
            ("PUT /v1/queues/-", 201),
            ("GET /v1/queues/-", 200),
            ("POST /v1/queues/-:pause", 204),
            ("DELETE /v1/queues/-", 200),
            ("GET /v1/queues/-", 404),
        ] {
            let (status, told) = visitor.ask(line, json, body.as_bytes()).await;
            assert_eq!(status, expected, "{line}: {}", &told[..told.len().min(200)]);
        }
        let put =
            format!(r#"{{"commands":[{{"put":{{"queue_base64":"{name}","payload":"x"}}}}]}}"#);
        let (status, _) = visitor.ask("POST /v1/multi", json, put.as_bytes()).await;
        assert_eq!(status, 200);
        for other in [r#"{"count":1}"#, r#"{"queue":"q"}"#] {
            let (status, _) = visitor.ask("GET /v1/queues/-", json, other.as_bytes()).await;
            assert_eq!(status, 400, "{other}");
        }
    });
}
