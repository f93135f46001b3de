//! Encrypted connections: what is true of them alone. Most tests of other modules run over
//! encrypted connections too.

mod certificates;
mod handshakes;
mod people;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_proto::time::Span;
use pinpriq_server::config::{Config, DoorName, Listener};
use pinpriq_server::{ServeError, Server, Stop};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::authority::Papers;
use crate::line::{Encryption, Line};
use crate::manual_clock::ManualClock;
use crate::world::{START, in_memory, test};

/// The doors, in the order of the addresses of a stage.
const DOORS: [DoorName; 3] = [DoorName::Pinpriq, DoorName::Resp, DoorName::Http];
const WIRE: usize = 0;
const RESP: usize = 1;
const HTTP: usize = 2;

/// A server that encrypts at all doors, and listens at all of them without encryption too.
struct Stage {
    encryption: Encryption,
    encrypted: [SocketAddr; 3],
    plain: [SocketAddr; 3],
    clock: ManualClock,
    stop: Stop,
    run: JoinHandle<Result<(), ServeError>>,
}

/// Runs a test on a stage of the usual configuration.
fn on_usual_stage(body: impl AsyncFnOnce(&Stage)) {
    on_stage(|_, _| {}, body);
}

/// Runs a test on a stage.
fn on_stage(change: impl FnOnce(&mut Config, &Encryption), body: impl AsyncFnOnce(&Stage)) {
    test(async || {
        let encryption = Encryption::new();
        let mut config = in_memory();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        config.listeners.push(Listener { door: DoorName::Http, address: any_port });
        config.tls = Some(encryption.options(&DOORS));
        change(&mut config, &encryption);
        let (stop, mut made) = (Stop::default(), None);
        let server = Server::bind_with_clock(config, stop.clone(), (START, 0), |start| {
            let clock = ManualClock::at(start);
            made = Some(clock.clone());
            Rc::new(clock)
        });
        let server = server.await.unwrap();
        let stage = Stage {
            encryption,
            encrypted: DOORS.map(|door| server.tls_address(door).unwrap()),
            plain: DOORS.map(|door| server.address(door).unwrap()),
            clock: made.unwrap(),
            stop,
            run: tokio::task::spawn_local(server.run()),
        };
        body(&stage).await;
        stage.stop.ask();
        stage.run.await.unwrap().unwrap();
    });
}

impl Stage {
    fn advance(&self, ms: u64) {
        self.clock.advance(Span::from_ms(ms));
    }

    /// Connects to a door, with a certificate of one's own or none.
    async fn connect(&self, door: usize, own: Option<&Papers>) -> Talk {
        self.try_connect(door, self.encryption.client(own)).await.unwrap()
    }

    async fn try_connect(&self, door: usize, config: ClientConfig) -> io::Result<Talk> {
        let stream = TcpStream::connect(self.encrypted[door]).await.unwrap();
        Ok(Talk(Line::encrypted(stream, config).await?))
    }

    /// Whether the server lets somebody in. With TLS 1.3 a client only hears of a refusal when it
    /// reads.
    async fn lets_in(&self, own: Option<&Papers>) -> bool {
        match self.try_connect(RESP, self.encryption.client(own)).await {
            Ok(mut talk) => {
                let mut answer = [0; 7];
                let sent = talk.0.write_all(b"PING\r\n").await.is_ok();
                sent && talk.0.read_exact(&mut answer).await.is_ok()
            }
            Err(_) => false,
        }
    }
}

/// A conversation.
struct Talk(Line);

impl Talk {
    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Sends bytes and expects these to come back.
    async fn expect(&mut self, bytes: &[u8], expected: &str) {
        self.send(bytes).await;
        let mut answer = vec![0; expected.len()];
        self.0.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }

    /// Reads a line.
    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// Sends a request over HTTP with these fields, and returns the whole answer.
    async fn ask_http(mut self, line: &str, fields: &str, body: &str) -> String {
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.send(head.as_bytes()).await;
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).await.unwrap();
        answer
    }
}
