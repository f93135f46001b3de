//! The HTTP door within the test process: what is handed to visitors who go or do not read, and
//! what is promised to all.

mod archiving;
mod backups;
mod framing;
mod metrics;
mod receipts;
mod users;

use std::io::Read as _;

use flate2::read::GzDecoder;
use pinpriq_server::config::{Config, DoorName, Listener};
use pinpriq_server::{Server, Stop};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::world::{in_memory, test};

/// How often a figure is asked for until it is as expected.
const LOOKS_MAX: usize = 20_000;

/// The largest payload.
const PAYLOAD: usize = 1 << 20;

type Address = std::net::SocketAddr;

/// Runs a test with a server that has this door.
fn with_site(body: impl AsyncFnOnce(Address)) {
    with_site_of(in_memory(), body);
}

/// Runs a test with a server of this configuration that has this door too.
fn with_site_of(mut config: Config, body: impl AsyncFnOnce(Address)) {
    test(async || {
        let any_port = Address::from(([127, 0, 0, 1], 0));
        config.listeners.push(Listener { door: DoorName::Http, address: any_port });
        let stop = Stop::default();
        let server = Server::bind(config, stop.clone()).await.unwrap();
        let address = server.address(DoorName::Http).unwrap();
        let run = tokio::task::spawn_local(server.run());
        body(address).await;
        stop.ask();
        run.await.unwrap().unwrap();
    });
}

/// A connection of a visitor.
struct Visitor(BufReader<TcpStream>);

impl Visitor {
    async fn at(address: Address) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// Connects from another address of this machine.
    async fn from(own: [u8; 4], to: Address) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(Address::from((own, 0))).unwrap();
        Self(BufReader::new(socket.connect(to).await.unwrap()))
    }

    /// Sends a request with these header fields and this body, a text.
    async fn send(&mut self, line: &str, fields: &str, body: &[u8]) {
        self.send_to("localhost", line, fields, body).await;
    }

    /// Sends a request like [`Visitor::send`], for this host.
    async fn send_to(&mut self, host: &str, line: &str, fields: &str, body: &[u8]) {
        let length = body.len();
        let kind = if fields.contains("Content-Type") || body.is_empty() {
            ""
        } else {
            "Content-Type: text/plain\r\n"
        };
        let head = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\n{kind}{fields}Content-Length: {length}\r\n\r\n"
        );
        self.0.get_mut().write_all(head.as_bytes()).await.unwrap();
        self.0.get_mut().write_all(body).await.unwrap();
    }

    /// Sends bytes as they are.
    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// Reads an answer without a body, and returns the value of its cookie.
    async fn cookie(&mut self) -> String {
        let mut cookie = None;
        loop {
            let line = self.line().await;
            if line.is_empty() {
                return cookie.expect("a cookie");
            }
            if let Some((_, rest)) = line.split_once("pinpriq_session=") {
                cookie = rest.split(';').next().map(str::to_owned);
            }
        }
    }

    /// Reads an answer: its status and its body.
    async fn answer(&mut self) -> (u16, String) {
        let (status, _, body) = self.whole_answer().await;
        (status, body)
    }

    /// Reads an answer: its status, its header fields in small letters, and its body, unpacked.
    async fn whole_answer(&mut self) -> (u16, Vec<String>, String) {
        let (status, fields, body) = self.bytes_answer().await;
        let mut text = String::new();
        if fields.iter().any(|field| field == "content-encoding: gzip") {
            GzDecoder::new(&*body).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8(body).unwrap();
        }
        (status, fields, text)
    }

    /// Reads an answer: its status, its header fields in small letters, and its body as it came.
    async fn bytes_answer(&mut self) -> (u16, Vec<String>, Vec<u8>) {
        let status = self.line().await.split(' ').nth(1).unwrap().parse().unwrap();
        let mut fields = Vec::new();
        let mut length = 0;
        let mut is_chunked = false;
        loop {
            let line = self.line().await.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.parse().unwrap();
            }
            is_chunked |= line == "transfer-encoding: chunked";
            fields.push(line);
        }
        let mut body = Vec::new();
        while is_chunked {
            let length = usize::from_str_radix(&self.line().await, 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.0.read_exact(&mut chunk).await.unwrap();
            body.extend_from_slice(&chunk[..length]);
            is_chunked = length > 0;
        }
        if body.is_empty() {
            body.resize(length, 0);
            self.0.read_exact(&mut body).await.unwrap();
        }
        (status, fields, body)
    }

    async fn ask(&mut self, line: &str, fields: &str, body: &[u8]) -> (u16, String) {
        self.send(line, fields, body).await;
        self.answer().await
    }

    /// Asks for the figures until they hold this text.
    async fn look_for(&mut self, text: &str) {
        for _ in 0..LOOKS_MAX {
            let (_, figures) = self.ask("GET /v1/stats", "", b"").await;
            if figures.contains(text) {
                return;
            }
        }
        panic!("there is never {text}");
    }
}

#[test]
fn what_was_not_read_goes_back() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        let payload = vec![b'x'; PAYLOAD];
        for _ in 0..24 {
            let (status, _) = visitor.ask("POST /v1/queues/q/tasks", "", &payload).await;
            assert_eq!(status, 201);
        }
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut narrow = Visitor(BufReader::new(socket.connect(address).await.unwrap()));
        narrow.send("POST /v1/queues/q:pop?count=24", "", b"").await;
        // The answer has begun.
        assert_eq!(narrow.line().await, "HTTP/1.1 200 OK");
        drop(narrow);
        let mut came = 0;
        while came < 24 {
            let (_, body) = visitor.ask("POST /v1/queues/q:pop?wait=5000", "", b"").await;
            assert!(body.len() > PAYLOAD, "only {came} tasks have come back");
            came += 1;
        }
    });
}

#[test]
fn a_client_that_leaves_while_waiting_takes_nothing() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        let mut gone = Visitor::at(address).await;
        gone.send("POST /v1/queues/q:pop?wait=600000", "", b"").await;
        visitor.look_for("\"takers\":1").await;
        drop(gone);
        visitor.look_for("\"takers\":0").await;
        visitor.ask("POST /v1/queues/q/tasks", "", b"x").await;
        let (_, body) = visitor.ask("POST /v1/queues/q:pop", "", b"").await;
        assert!(body.contains("\"payload\":\"x\""), "{body}");
    });
}

#[test]
fn a_lease_always_ends_by_itself() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        visitor.ask("POST /v1/queues/q/tasks", "", b"x").await;
        let (_, body) = visitor.ask("POST /v1/queues/q:take", "", b"").await;
        assert!(body.contains("\"lease_until\":\""), "{body}");
    });
}

#[test]
fn a_put_with_a_key_of_its_own_happens_once() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        for new in ["\"new\":true", "\"new\":false"] {
            let key = "Idempotency-Key: once\r\n";
            let (_, body) = visitor.ask("POST /v1/queues/q/tasks", key, b"x").await;
            assert!(body.contains(new), "{body}");
        }
    });
}

#[test]
fn pages_of_other_origins_change_nothing() {
    with_site(async |address| {
        for fields in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
            // A refusal before the body is read ends the connection.
            let mut visitor = Visitor::at(address).await;
            let (status, _) = visitor.ask("POST /v1/queues/q/tasks", fields, b"x").await;
            assert_eq!(status, 403, "{fields}");
        }
        let mut visitor = Visitor::at(address).await;
        let (status, _) =
            visitor.ask("POST /v1/queues/q/tasks", "Origin: http://localhost\r\n", b"x").await;
        assert_eq!(status, 201);
    });
}

#[test]
fn a_listener_gets_queues_and_figures() {
    with_site(async |address| {
        let mut listener = Visitor::at(address).await;
        listener.send("GET /v1/events?queue=q", "", b"").await;
        while listener.line().await != "event: figures" {}
        let mut visitor = Visitor::at(address).await;
        for line in ["POST /v1/queues/q/tasks", "POST /v1/queues/other/tasks"] {
            visitor.ask(line, "", b"x").await;
        }
        visitor.ask("DELETE /v1/queues/q", "", b"").await;
        let mut heard = Vec::new();
        while heard.len() < 2 {
            let line = listener.line().await;
            if line.starts_with("data: {\"name\"") {
                heard.push(line);
            }
        }
        let wanted =
            ["came", "went"].map(|it| format!("data: {{\"name\":\"q\",\"what\":\"{it}\"}}"));
        assert_eq!(heard, wanted);
    });
}
