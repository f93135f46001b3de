//! A server within the test process, with a clock that stands still until the test moves it.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_server::clock::Clock;
use pinpriq_server::config::{Config, DoorName, Durability, Listener};
use pinpriq_server::{ServeError, Server, Stop};
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, LocalSet};

use crate::client::Client;
use crate::line::{self, encrypted};
use crate::manual_clock::ManualClock;

/// Returns how long anything may take before the test has failed. No test that passes waits for it;
/// with a planted bug some wait to the end.
pub(crate) fn guard() -> Duration {
    let has_bug = std::env::var_os("PINPRIQ_PLANTED").is_some_and(|bug| !bug.is_empty());
    Duration::from_secs(if has_bug { 30 } else { 120 })
}

/// The moment at which the clock of a test stands at first.
pub(crate) const START: Timestamp = Timestamp::from_ms(START_MS);
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A client of one of the doors.
pub(crate) trait Visitor: Sized {
    /// Where a server listens for such clients.
    fn door(server: &Server) -> Option<SocketAddr>;

    async fn visit(address: SocketAddr) -> Self;
}

/// A server that is being served within the test, whose clients are mostly of one kind.
pub(crate) struct Hosted<C> {
    /// Where it listens for these clients, and where for those of the pinpriq wire.
    pub(crate) address: SocketAddr,
    pub(crate) wire_address: SocketAddr,
    pub(crate) stop: Stop,
    pub(crate) served: JoinHandle<Result<(), ServeError>>,
    /// None if it has the clock of the machine.
    clock: Option<ManualClock>,
    clients: PhantomData<C>,
}

/// A server that clients of the pinpriq wire visit.
pub(crate) type World = Hosted<Client>;

/// Runs a test on one thread, together with the servers that it starts. One that waits in vain
/// fails; one that never waits again, since a server goes round in circles, ends the whole program.
pub(crate) fn test(body: impl AsyncFnOnce()) {
    let (_ended, end) = sync_channel::<()>(0);
    std::thread::spawn(move || {
        // A test that ends hangs up.
        if end.recv_timeout(2 * guard()) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a test has not ended within {} s", 2 * guard().as_secs());
            std::process::abort();
        }
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ended = tokio::time::timeout(guard(), body()).await;
        ended.expect("the test waits for something that does not happen");
    });
}

/// Runs a test with a server and this number of clients of it.
pub(crate) fn with_clients<const N: usize>(
    config: Config,
    body: impl AsyncFnOnce(&World, &mut [Client; N]),
) {
    test(async || World::start(config).await.host(body).await);
}

/// A configuration with ports of its own and nothing on disk.
pub(crate) fn in_memory() -> Config {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        data: PathBuf::from("not-used"),
        durability: Durability::Memory,
        listeners: [DoorName::Pinpriq, DoorName::Resp]
            .map(|door| Listener { door, address: any_port })
            .to_vec(),
        ..encrypted(Config::default())
    }
}

impl<C: Visitor> Hosted<C> {
    /// Starts a server. It serves whenever the test waits for something.
    pub(crate) async fn start(config: Config) -> Self {
        Self::start_at(config, START).await
    }

    /// Starts a server at this moment by the wall clock.
    pub(crate) async fn start_at(config: Config, start: Timestamp) -> Self {
        Self::start_with_clock(config, start, |clock| Rc::new(clock)).await
    }

    /// Starts a server that tells the time by what `wrap` makes of the clock.
    pub(crate) async fn start_with_clock(
        config: Config,
        start: Timestamp,
        wrap: impl FnOnce(ManualClock) -> Rc<dyn Clock>,
    ) -> Self {
        let stop = Stop::default();
        let mut made = None;
        let server = Server::bind_with_clock(config, stop.clone(), (start, 0), |start| {
            let clock = ManualClock::at(start);
            made = Some(clock.clone());
            wrap(clock)
        });
        let server = server.await.unwrap();
        Self::of(server, stop, made)
    }

    /// Starts a server with the clock of the machine.
    pub(crate) async fn start_by_the_machine(config: Config) -> Self {
        let stop = Stop::default();
        let server = Server::bind(config, stop.clone()).await.unwrap();
        Self::of(server, stop, None)
    }

    fn of(server: Server, stop: Stop, clock: Option<ManualClock>) -> Self {
        let address = C::door(&server).unwrap();
        let wire_address = line::address(&server, DoorName::Pinpriq).unwrap();
        let running = tokio::task::spawn_local(server.run());
        Self { address, wire_address, stop, served: running, clock, clients: PhantomData }
    }

    /// Starts a server with nothing special about it.
    pub(crate) async fn plain() -> Self {
        Self::start(in_memory()).await
    }

    pub(crate) async fn connect(&self) -> C {
        C::visit(self.address).await
    }

    /// Connects this number of clients, and lets them do something.
    pub(crate) async fn host<const N: usize>(&self, body: impl AsyncFnOnce(&Self, &mut [C; N])) {
        let mut clients = Vec::new();
        for _ in 0..N {
            clients.push(self.connect().await);
        }
        let clients: &mut [C; N] = clients.as_mut_slice().try_into().unwrap();
        body(self, clients).await;
    }

    /// Moves the clock forward by this many milliseconds.
    pub(crate) fn advance(&self, ms: u64) {
        self.clock().advance(Span::from_ms(ms));
    }

    /// Sets the wall clock so that time is ahead of it by this many milliseconds, or behind it.
    pub(crate) fn set_ahead_of_wall(&self, ms: i64) {
        self.clock().set_ahead_of_wall(ms);
    }

    fn clock(&self) -> &ManualClock {
        self.clock.as_ref().expect("a clock that can be moved")
    }

    /// Stops the server, and checks that it does so in order.
    pub(crate) async fn end(self) {
        self.stop.ask();
        self.served.await.unwrap().unwrap();
    }
}

impl World {
    /// Connects as soon as a server that is full has room for one more.
    pub(crate) async fn connect_when_free(&self) -> Client {
        loop {
            let mut client = self.connect().await;
            if client.try_fence().await {
                return client;
            }
        }
    }
}
