//! A server with a RESP door within the test process, and a clock that the test moves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_server::clock::ManualClock;
use pinpriq_server::config::{Config, Durability};
use pinpriq_server::{ServeError, Server, Stop};
use tokio::task::JoinHandle;

use super::client::Client;

/// The moment at which the clock of a test stands at first.
pub(super) const START_MS: u64 = 1_700_000_000_000;

/// A server that is being served within the test.
pub(super) struct World {
    pub(super) address: SocketAddr,
    pub(super) wire_address: SocketAddr,
    pub(super) stop: Stop,
    served: JoinHandle<Result<(), ServeError>>,
    clock: ManualClock,
}

/// A configuration with ports of its own and nothing on disk.
pub(super) fn in_memory() -> Config {
    Config {
        data: PathBuf::from("not-used"),
        durability: Durability::Memory,
        pinpriq: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        resp: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        ..Config::default()
    }
}

impl World {
    /// Starts a server. It serves whenever the test waits for something.
    pub(super) async fn start(config: Config) -> Self {
        Self::start_at(config, START_MS).await
    }

    /// Starts a server at this moment by the wall clock.
    pub(super) async fn start_at(config: Config, start_ms: u64) -> Self {
        let stop = Stop::default();
        let mut made = None;
        let start = Timestamp::from_ms(start_ms);
        let server = Server::bind_with_clock(config, stop.clone(), start, |start| {
            let clock = ManualClock::at(start);
            made = Some(clock.clone());
            Rc::new(clock)
        });
        let server = server.await.unwrap();
        let (address, wire_address) = (server.resp_address(), server.pinpriq_address());
        Self {
            address: address.unwrap(),
            wire_address: wire_address.unwrap(),
            stop,
            served: tokio::task::spawn_local(server.run()),
            clock: made.unwrap(),
        }
    }

    /// Starts a server with nothing special about it.
    pub(super) async fn plain() -> Self {
        Self::start(in_memory()).await
    }

    pub(super) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Moves the clock on by so many milliseconds.
    pub(super) fn advance(&self, ms: u64) {
        self.clock.advance(Span::from_ms(ms));
    }

    /// Sets the wall clock so that time is ahead of it by so many milliseconds, or behind it.
    pub(super) fn set_ahead_of_wall(&self, ms: i64) {
        self.clock.set_ahead_of_wall(ms);
    }

    /// Stops the server, and checks that it does so in order.
    pub(super) async fn end(self) {
        self.stop.ask();
        self.served.await.unwrap().unwrap();
    }
}
