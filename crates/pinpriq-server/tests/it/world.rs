//! A server within the test process, with a clock that stands still until the test moves it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_server::clock::{Clock, ManualClock};
use pinpriq_server::config::{Config, Durability};
use pinpriq_server::{ServeError, Server, Stop};
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, LocalSet};

use crate::client::Client;

/// How long anything may take before the test has failed. Nothing waits for this to pass.
pub(crate) const GUARD: Duration = Duration::from_mins(2);

/// The moment at which the clock of a test stands at first.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// A server that is being served within the test.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Stop,
    pub(crate) served: JoinHandle<Result<(), ServeError>>,
    clock: ManualClock,
}

/// Runs a test on one thread, together with the servers that it starts. One that waits in vain
/// fails; one that never waits again, since a server goes round in circles, ends the whole program.
pub(crate) fn test(body: impl AsyncFnOnce()) {
    let (_ended, end) = sync_channel::<()>(0);
    std::thread::spawn(move || {
        // A test that ends hangs up.
        if end.recv_timeout(2 * GUARD) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test has not ended within {} s", 2 * GUARD.as_secs());
            std::process::abort();
        }
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ended = tokio::time::timeout(GUARD, body()).await;
        ended.expect("the test waits for something that does not happen");
    });
}

/// A configuration with a port of its own and nothing on disk.
pub(crate) fn in_memory() -> Config {
    Config {
        data: PathBuf::from("not-used"),
        durability: Durability::Memory,
        pinpriq: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        resp: None,
        ..Config::default()
    }
}

impl World {
    /// Starts a server. It serves whenever the test waits for something.
    pub(crate) async fn start(config: Config) -> Self {
        Self::start_with_clock(config, |clock| Rc::new(clock)).await
    }

    /// Starts a server that tells the time by what `wrap` makes of the clock.
    pub(crate) async fn start_with_clock(
        config: Config,
        wrap: impl FnOnce(ManualClock) -> Rc<dyn Clock>,
    ) -> Self {
        let stop = Stop::default();
        let mut made = None;
        let server = Server::bind_with_clock(config, stop.clone(), START, |start| {
            let clock = ManualClock::at(start);
            made = Some(clock.clone());
            wrap(clock)
        });
        let server = server.await.unwrap();
        let address = server.pinpriq_address().unwrap();
        let running = tokio::task::spawn_local(server.run());
        Self { address, stop, served: running, clock: made.unwrap() }
    }

    /// Starts a server with nothing special about it.
    pub(crate) async fn plain() -> Self {
        Self::start(in_memory()).await
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Moves the clock on by so many milliseconds.
    pub(crate) fn advance(&self, ms: u64) {
        self.clock.advance(Span::from_ms(ms));
    }

    /// Connects as soon as a server that is full has room for one more.
    pub(crate) async fn connect_when_free(&self) -> Client {
        loop {
            let mut client = self.connect().await;
            if client.try_fence().await {
                return client;
            }
        }
    }

    /// Stops the server, and checks that it does so in order.
    pub(crate) async fn end(self) {
        self.stop.ask();
        self.served.await.unwrap().unwrap();
    }
}
