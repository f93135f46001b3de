//! A server from its configuration to its orderly end.

use std::cell::RefCell;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::limits::Limits as EngineLimits;
use pinpriq_engine::task::ClientId;
use pinpriq_engine::time::{Span, Timestamp};
use pinpriq_store::durable::Durable;
use pinpriq_store::{Disk, Journal, JournalOptions, Level, MemoryStore, RealDisk, Runner, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Durability};
use crate::connection::{self, Context, Door, READ_BYTES};
use crate::error::ServeError;
use crate::front::pinpriq::PinpriqDoor;
use crate::front::resp::RespDoor;
use crate::shard::{Session, Shard};
use crate::stop::Stop;

/// How long an orderly stop waits for clients to take what they were answered.
const DRAIN_MS: u64 = 5_000;

/// How long the server waits before it accepts again, when the system lets it accept nothing.
const ACCEPT_PAUSE_MS: u64 = 100;

/// A server that has its sockets and its tasks, and is about to serve.
pub struct Server {
    config: Config,
    context: Rc<Context>,
    pinpriq: Option<TcpListener>,
    resp: Option<TcpListener>,
}

impl Server {
    /// Takes the sockets and loads the tasks. Call [`Server::run`] within the same
    /// [`LocalSet`].
    ///
    /// Refuses an address that is in use before the data directory is touched.
    pub async fn bind(config: Config, stop: Stop) -> Result<Self, ServeError> {
        let now = SystemClock::wall();
        // A server that keeps nothing cannot know which incarnations there were, and no receipt
        // may be issued twice: every millisecond has its own.
        let incarnations_before = now.ms();
        Self::open(config, stop, (now, incarnations_before), |start| {
            // Loading took its time, and no deadline is to be late by that.
            Rc::new(SystemClock::starting_at(start.max(SystemClock::wall())))
        })
        .await
    }

    /// Like [`Server::bind`] with a clock of the caller's, made for the moment at which time
    /// starts: `now`, or later if the store knows a later one.
    pub async fn bind_with_clock(
        config: Config,
        stop: Stop,
        now: Timestamp,
        clock: impl FnOnce(Timestamp) -> Rc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        Self::open(config, stop, (now, 0), clock).await
    }

    async fn open(
        config: Config,
        stop: Stop,
        (now, incarnations_before): (Timestamp, u64),
        clock: impl FnOnce(Timestamp) -> Rc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        let pinpriq = listen(config.pinpriq).await?;
        let resp = listen(config.resp).await?;
        let store_bell = Arc::new(Notify::new());
        let store = open_store(&config, incarnations_before, store_bell.clone())?;
        let limits = EngineLimits {
            payload_bytes_max: config.limits.payload_bytes_max,
            bytes_max: config.limits.task_bytes_max,
            memory_bytes: config
                .limits
                .memory_limit_bytes
                .filter(|_| config.durability != Durability::Memory),
            queues_per_client_max: config.limits.subscriptions_max,
            ..EngineLimits::default()
        };
        let opened = Durable::open(store, limits, now, random());
        let (durable, loaded) =
            opened.map_err(|source| ServeError::Store { data: config.data.clone(), source })?;
        if let Some(torn) = &loaded.torn_tail {
            tracing::info!(
                file = torn.file,
                offset = torn.offset,
                "an unfinished write was cut off"
            );
        }
        tracing::info!(
            data = %config.data.display(),
            durability = config.durability.word(),
            tasks = durable.engine().totals().present(),
            incarnation = durable.engine().header().incarnation,
            "opened"
        );
        let clock = clock(durable.now());
        let context = Rc::new(Context {
            shard: Shard::new(durable, config.durability, clock, store_bell),
            limits: config.limits,
            stop,
            cut_off: Stop::default(),
            scratch: RefCell::new(vec![0; READ_BYTES]),
        });
        Ok(Self { config, context, pinpriq, resp })
    }

    /// Where the pinpriq door listens.
    #[must_use]
    pub fn pinpriq_address(&self) -> Option<SocketAddr> {
        self.pinpriq.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Where the RESP door listens.
    #[must_use]
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until the stop is asked for, and then stops in order.
    ///
    /// Fails if the store failed on the way: then not everything that was taken in is durable,
    /// though everything that was answered is.
    pub async fn run(self) -> Result<(), ServeError> {
        let Self { config, context, pinpriq, resp } = self;
        let shard = context.shard.clone();
        let timer = tokio::task::spawn_local({
            let shard = shard.clone();
            async move { shard.run_timer().await }
        });
        let store = tokio::task::spawn_local({
            let shard = shard.clone();
            async move { shard.run_store().await }
        });
        let (limits, options) = (config.limits, config.pinpriq_options);
        tokio::select! {
            () = accept_all(&context, pinpriq, "pinpriq", move |shard, session, client| {
                PinpriqDoor::new(shard, session, client, options, limits)
            }) => {}
            () = accept_all(&context, resp, "resp", move |shard, session, client| {
                RespDoor::new(shard, session, client, limits)
            }) => {}
            () = context.stop.asked_for() => {}
        }
        tracing::info!(clients = shard.clients(), "stopping");
        drain(&context).await;
        let failed = shard.finish().err();
        timer.abort();
        store.abort();
        match failed {
            None => {
                tracing::info!("stopped");
                Ok(())
            }
            Some(source) => Err(ServeError::Failed { source }),
        }
    }
}

/// Runs a server until SIGTERM or SIGINT asks it to stop. Blocks.
pub fn run(config: Config) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| ServeError::Runtime { source })?;
    LocalSet::new().block_on(&runtime, async {
        let stop = Stop::default();
        let signals = signals()?;
        let server = Server::bind(config, stop.clone()).await?;
        tokio::task::spawn_local(async move {
            signals.await;
            stop.ask();
        });
        server.run().await
    })
}

/// Waits for a signal that asks for a stop.
fn signals() -> Result<impl Future<Output = ()>, ServeError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|source| ServeError::Runtime { source });
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "asked to stop");
    })
}

async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ServeError> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).map_err(|source| ServeError::Bind { address, source })
}

fn open_store(
    config: &Config,
    incarnations_before: u64,
    bell: Arc<Notify>,
) -> Result<Box<dyn Store>, ServeError> {
    let level = match config.durability {
        Durability::Memory => return Ok(Box::new(MemoryStore::after(incarnations_before))),
        Durability::Sync => Level::Sync,
        Durability::Interval => Level::Interval,
    };
    let failed = |source| ServeError::Store { data: config.data.clone(), source };
    let disk = RealDisk::create(&config.data)
        .map_err(|source| ServeError::Directory { data: config.data.clone(), source })?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let options = JournalOptions { level, salt_seed: random(), ..JournalOptions::default() };
    let wake = Arc::new(move || bell.notify_one());
    let journal = Journal::open(disk, options, Runner::Thread { wake }).map_err(failed)?;
    Ok(Box::new(journal))
}

/// Accepts connections of one door. Never ends.
async fn accept_all<D: Door + 'static>(
    context: &Rc<Context>,
    listener: Option<TcpListener>,
    door: &'static str,
    open: impl Fn(Rc<Shard>, Rc<Session>, ClientId) -> D + Copy + 'static,
) {
    let Some(listener) = listener else { return std::future::pending().await };
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, door, "listening");
    }
    loop {
        let Some((stream, peer)) = accept(context, &listener).await else { continue };
        // Counted at once, so that those who come together do not all take the last place.
        let client = context.shard.connect(door, peer);
        let context = context.clone();
        tokio::task::spawn_local(async move {
            let shard = context.shard.clone();
            let open = |client, session| open(shard, session, client);
            connection::serve(&context, stream, peer, client, open).await;
        });
    }
}

/// Accepts one connection, if there is room for it.
async fn accept(context: &Context, listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            let clients = context.shard.clients();
            if clients >= context.limits.connections_max && !planted!(ConnectionsUnbounded) {
                tracing::warn!(%peer, clients, "refused a connection: there are as many as may be");
                return None;
            }
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%peer, %error, "cannot switch off delayed sending");
            }
            Some((stream, peer))
        }
        Err(error) => {
            // Out of descriptors, mostly: those who are connected go on being served.
            tracing::warn!(%error, "cannot accept a connection");
            let clock = context.shard.clock();
            clock.until(clock.now().after(Span::from_ms(ACCEPT_PAUSE_MS))).await;
            None
        }
    }
}

/// Waits until every client has gone, which they do once they were sent what they were answered,
/// or until that has taken too long: then what they did not take goes back to its queue.
async fn drain(context: &Context) {
    let shard = &context.shard;
    shard.ring_all();
    let clock = shard.clock();
    let last = clock.now().after(Span::from_ms(DRAIN_MS));
    tokio::select! {
        () = shard.deserted() => {}
        () = clock.until(last) => {
            tracing::warn!(clients = shard.clients(), "some clients did not take their answers");
            context.cut_off.ask();
            shard.ring_all();
            shard.deserted().await;
        }
    }
}

/// A number that nobody can guess: the standard library seeds its hashers from the system.
fn random() -> u64 {
    RandomState::new().hash_one(0_u64)
}
