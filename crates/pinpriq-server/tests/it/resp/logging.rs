//! What the log tells: of requests that cannot be read why, and nothing of what was in them; of
//! connections that are closed or refused no more than a line a second above debug; and that the
//! journal is ahead of the wall clock.

use std::fmt::{Debug, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pinpriq_proto::time::Timestamp;
use pinpriq_server::config::{Config, Durability};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::client::World;
use crate::client::push_bytes;
use crate::world::{START_MS, in_memory, test};

/// What stands for anything private.
const SECRET: &[u8] = b"hunter2";

/// A log that is kept, every field of every line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for &Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0.lock().unwrap(), " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        write!(self.0.lock().unwrap(), "{}", event.metadata().level()).unwrap();
        event.record(&mut &*self);
        self.0.lock().unwrap().push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Log {
    /// The lines of the log that contain these words: for each its level, and how many lines it
    /// says were suppressed, if it says so.
    fn levels(&self, words: &str) -> Vec<(Level, Option<u64>)> {
        let text = self.0.lock().unwrap();
        let lines = text.lines().filter(|line| line.contains(words));
        let seen = lines.map(|line| {
            let level = line.split(' ').next().unwrap().parse().unwrap();
            let suppressed = line.split_once(" suppressed=").map(|(_, rest)| rest);
            (level, suppressed.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()))
        });
        seen.collect()
    }
}

/// Sends bytes after which the server ends the connection.
async fn send_until_closed(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    // Other tests check the answer. It may be a reset, too.
    drop(stream.read_to_end(&mut Vec::new()).await);
}

#[test]
fn a_request_that_cannot_be_read_is_logged_without_its_bytes() {
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    test(async || {
        let world = World::plain().await;
        let mut unknown = push_bytes(SECRET, 60_000, 1, SECRET, SECRET);
        unknown.push(b'?');
        unknown.extend_from_slice(SECRET);
        send_until_closed(world.wire_address, &unknown).await;
        let put = b"*3\r\n$3\r\nPUT\r\n$7\r\nhunter2\r\n$7\r\nhunter2";
        for malformed in [
            [put, b"hunter2".as_slice()].concat(),
            [put, b"\r\n*hunter2\r\n".as_slice()].concat(),
            b"*1\r\n$hunter2\r\n".to_vec(),
            b"*2\r\n$7\r\nhunter2\r\n+hunter2\r\n".to_vec(),
            b"PUT hunter2 \"hunter2\r\n".to_vec(),
            b"POST /hunter2 HTTP/1.1\r\nHost: hunter2\r\n\r\n".to_vec(),
        ] {
            send_until_closed(world.address, &malformed).await;
        }
        world.end().await;
    });
    let text = log.0.lock().unwrap();
    assert_eq!(text.matches("message=closing").count(), 7, "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn connections_that_are_closed_are_a_warning_once_a_second() {
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    test(async || {
        let world = World::plain().await;
        for passed in [0, 0, 999, 1, 1_000] {
            world.advance(passed);
            send_until_closed(world.address, b"*?\r\n").await;
        }
        world.end().await;
    });
    let (warning, quiet) = (|count| (Level::WARN, Some(count)), (Level::DEBUG, None));
    let expected = [warning(0), quiet, quiet, warning(2), warning(0)];
    assert_eq!(log.levels("message=closing"), expected);
    let loud = log.levels("peer=").into_iter().filter(|(level, _)| *level != Level::DEBUG);
    assert_eq!(loud.count(), 3, "{}", log.0.lock().unwrap());
}

#[test]
fn connections_that_are_refused_are_a_warning_once_a_second() {
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    let mut config = in_memory();
    config.limits.connections_max = 1;
    test(async || {
        let world = World::start(config).await;
        let mut only = world.connect().await;
        only.ask("PING").await;
        for passed in [0, 0, 1_000] {
            world.advance(passed);
            send_until_closed(world.address, b"").await;
        }
        drop(only);
        world.end().await;
    });
    let expected = [(Level::WARN, Some(0)), (Level::DEBUG, None), (Level::WARN, Some(1))];
    assert_eq!(log.levels("refused a connection"), expected);
}

#[test]
fn a_journal_that_is_ahead_of_the_wall_clock_is_told_of_at_the_start() {
    const HOUR_MS: u64 = 3_600_000;
    let log = Log::default();
    let _kept = tracing::subscriber::set_default(log.clone());
    let told = || log.0.lock().unwrap().matches("ahead of the wall clock").count();
    let data = tempfile::tempdir().unwrap();
    let config =
        Config { data: data.path().to_owned(), durability: Durability::Sync, ..in_memory() };
    test(async || {
        for (start_ms, tells) in [
            (START_MS, 0),
            (START_MS + HOUR_MS, 0),
            (START_MS + HOUR_MS - 60_000, 0),
            (START_MS + HOUR_MS - 60_001, 1),
            (START_MS, 1),
        ] {
            let before = told();
            let world = World::start_at(config.clone(), Timestamp::from_ms(start_ms)).await;
            world.connect().await.ask("PUT jobs a").await;
            assert_eq!(told() - before, tells, "started at {start_ms}");
            world.end().await;
        }
    });
    let text = log.0.lock().unwrap();
    assert!(text.contains("ahead_ms=3600000"), "{text}");
}
