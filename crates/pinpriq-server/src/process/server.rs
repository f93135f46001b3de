//! A server from its configuration to its orderly end.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_engine::time::{Span, Timestamp};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::http::HttpThread;
use super::http::waiting::Waiting;
use super::opening::{Journals, Opening, Start};
use super::runtime::runtime;
use super::serving::{Common, Context};
use super::signals::Signals;
use super::sockets::{Taken, refuse_overlap, watch};
use super::threads::Thread;
use super::users;
use crate::clock::{Clock, SystemClock, warn_if_ahead};
use crate::config::{Config, DoorName, Listener, Watch};
use crate::error::ServeError;
use crate::session::ending::Ending;
use crate::stop::Stop;
use crate::throttle::{Throttle, warn_throttled};

/// How long the server waits before it accepts again after the system refused.
const ACCEPT_PAUSE_MS: u64 = 100;

/// A server that has its sockets and its tasks, and is ready to serve.
pub struct Server {
    context: Rc<Context>,
    threads: Vec<Thread>,
    http: Option<HttpThread>,
    listeners: Vec<(DoorName, TcpListener)>,
    /// The addresses of listeners that other threads have.
    elsewhere: Vec<(DoorName, SocketAddr)>,
    watch: Watch,
}

impl Server {
    /// Reserves the addresses, loads the tasks, and listens. Call [`Server::run`] within the same
    /// [`LocalSet`].
    ///
    /// An address that another socket listens on is refused before the data directory is touched.
    /// One that another socket began to listen on meanwhile is refused after the tasks are loaded.
    /// Clients can only connect after that. Over HTTP they can connect at once, and hear how far
    /// loading is. Blocks while it loads, and returns
    /// [`ServeError::Stopped`] if the stop is requested by then.
    pub async fn bind(config: Config, stop: Stop) -> Result<Self, ServeError> {
        let now = SystemClock::wall();
        // A server that keeps nothing cannot know which incarnations there were, and no receipt may
        // be issued twice. So every millisecond has its own incarnation.
        let incarnations_before = now.ms();
        Self::open(config, stop, (now, incarnations_before), |start| {
            // Loading took time, which must not make deadlines late.
            Rc::new(SystemClock::starting_at(start.max(SystemClock::wall())))
        })
        .await
    }

    /// Starts a server like [`Server::bind`], with a clock of the caller's. `clock` makes it for
    /// the moment at which time starts: `now`, or later if the store knows a later one. It is only
    /// the clock of the first shard.
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
        let people = users::open(&config)?;
        let taken = take(&config.listeners)?;
        let (of_http, taken): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|(door, _)| *door == DoorName::Http);
        let of_http = of_http.into_iter().map(|(_, taken)| taken.listen());
        let of_http = of_http.collect::<Result<Vec<_>, ServeError>>()?;
        let has_http = !of_http.is_empty();
        let progress = Arc::default();
        let waiting = has_http.then(|| Waiting::start(of_http, Arc::clone(&progress)));
        let waiting = waiting.transpose()?;
        let shards = config.shards;
        let flag = stop.flag();
        let common = Common::new(shards, has_http, stop, people);
        let journals = Journals::of(&config)?;
        let begins = Arc::default();
        let mut openings = journals.iter().enumerate().map(|(shard, journal)| Opening {
            shard,
            shards,
            journal: journal.clone(),
            incarnations_before,
            stop: flag.clone(),
            progress: progress.clone(),
            begins: Arc::clone(&begins),
        });
        let first = openings.next();
        let mut threads = Vec::new();
        for opening in openings {
            threads.push(Thread::start(config.clone(), opening, common.clone())?);
        }
        let Some(first) = first else { unreachable!("a server has a shard") };
        let store_bell = Arc::new(Notify::new());
        let loading = first.load(&config, store_bell.clone())?;
        // All shards share one time and one incarnation, and none begins before all are loaded.
        let mut begins = Start::after(&loading, now);
        for thread in &mut threads {
            begins = begins.and(thread.loaded(now).await?);
        }
        journals.loaded()?;
        for thread in &mut threads {
            thread.begin(begins);
        }
        let mut durable = first.begin(loading, begins, &config)?;
        for thread in &mut threads {
            thread.begun().await?;
        }
        first.all_begun(&mut durable)?;
        let start = begins.now;
        warn_if_ahead(start, now);
        let with = (&config, common.clone());
        let context = Context::new(0, with, (durable, store_bell), clock(start));
        let listeners = taken.into_iter().map(|(door, taken)| Ok((door, taken.listen()?)));
        let listeners = listeners.collect::<Result<Vec<_>, ServeError>>()?;
        for thread in &mut threads {
            thread.go(start);
        }
        let (http, elsewhere) = match waiting {
            Some(waiting) => {
                let of_http = |address: &SocketAddr| (DoorName::Http, *address);
                let elsewhere = waiting.addresses().iter().map(of_http).collect();
                let listeners = waiting.end().await?;
                (Some(HttpThread::start(&config, common, listeners, start)?), elsewhere)
            }
            None => (None, Vec::new()),
        };
        Ok(Self { context, threads, http, listeners, elsewhere, watch: config.watch })
    }

    /// Returns the address on which a door listens: the first if it has several.
    #[must_use]
    pub fn address(&self, door: DoorName) -> Option<SocketAddr> {
        let listener = self.listeners.iter().find(|(own, _)| *own == door);
        let here = listener.and_then(|(_, listener)| listener.local_addr().ok());
        let elsewhere = self.elsewhere.iter().find(|(own, _)| *own == door);
        here.or_else(|| elsewhere.map(|(_, address)| *address))
    }

    /// Serves until the stop is requested, and then stops in order.
    ///
    /// Fails if the store failed meanwhile. In that case some changes may not be durable, but all
    /// that were replied to are.
    pub async fn run(self) -> Result<(), ServeError> {
        let Self { context, threads, http, listeners, watch, .. } = self;
        let accepting = listeners.into_iter().map(|(door, listener)| {
            let context = context.clone();
            tokio::task::spawn_local(
                async move { accept_all((&context, watch), &listener, door).await },
            )
        });
        let accepting: Vec<_> = accepting.collect();
        let common = context.common.clone();
        if let Some(roster) = common.roster.clone() {
            tokio::task::spawn_local(users::watch(roster, context.clone()));
        }
        let served = async move {
            common.stop.asked_for().await;
            for task in accepting {
                task.abort();
                // The task owns the listener until it is gone.
                let _ = task.await;
            }
        };
        let mut ended = context.serve(served).await.map_err(|source| ServeError::Failed { source });
        for thread in threads {
            ended = ended.and(thread.ended().await);
        }
        if let Some(http) = http {
            ended = ended.and(http.ended().await);
        }
        if ended.is_ok() {
            tracing::info!("stopped");
        }
        ended
    }
}

/// Runs a server until SIGTERM or SIGINT stops it, even while it loads. Blocks.
pub fn run(config: Config) -> Result<(), ServeError> {
    let runtime = runtime().map_err(|source| ServeError::Runtime { source })?;
    LocalSet::new().block_on(&runtime, async {
        let stop = Stop::default();
        let signals = Signals::listen(&stop)?;
        let server = match Server::bind(config, stop.clone()).await {
            Err(ServeError::Stopped) => {
                tracing::info!("stopped while loading");
                return Ok(());
            }
            bound => bound?,
        };
        let common = server.context.common.clone();
        tokio::task::spawn_local(signals.heed(stop, common));
        server.run().await
    })
}

/// Reserves the addresses of all listeners. Refuses those that overlap.
pub(crate) fn take(listeners: &[Listener]) -> Result<Vec<(DoorName, Taken)>, ServeError> {
    for (at, one) in listeners.iter().enumerate() {
        listeners[..at].iter().try_for_each(|it| refuse_overlap(it.address, one.address))?;
    }
    listeners.iter().map(|it| Ok((it.door, Taken::new(it.address)?))).collect()
}

/// Accepts connections of one door, and gives each to the shard with the fewest. Never ends.
pub(crate) async fn accept_all(
    (context, watched): (&Rc<Context>, Watch),
    listener: &TcpListener,
    door: DoorName,
) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, door = door.word(), "listening");
    }
    let throttles = Throttles::default();
    loop {
        let accepted = accept((context, watched), listener, &throttles).await;
        let Some((stream, peer)) = accepted else { continue };
        // Counted at once, so that connections that arrive together do not all take the last place.
        let to = context.common.place_connection();
        context.send_on(to, (stream, peer, door), None);
    }
}

/// The warnings about connections that are not accepted.
#[derive(Default)]
pub(crate) struct Throttles {
    refused: Throttle,
    failed: Throttle,
}

/// Accepts one connection, if there is room for it.
pub(crate) async fn accept(
    (context, watched): (&Context, Watch),
    listener: &TcpListener,
    throttles: &Throttles,
) -> Option<(TcpStream, SocketAddr)> {
    let clock = context.shard().clock();
    match listener.accept().await {
        Ok((stream, peer)) => {
            let clients = context.common.connections();
            if clients >= context.options.limits.connections_max && !planted!(ConnectionsUnbounded)
            {
                warn_throttled!(
                    throttles.refused.admit(clock.now()),
                    %peer,
                    clients,
                    "refused a connection: there are as many as --connections-max allows"
                );
                context.shard().tally().close(Ending::TooMany);
                return None;
            }
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%peer, %error, "cannot switch off delayed sending");
            }
            if let Err(error) = watch(&SockRef::from(&stream), &watched) {
                tracing::debug!(%peer, %error, "cannot have the connection watched");
            }
            Some((stream, peer))
        }
        Err(error) => {
            // Usually no descriptors are left. Existing connections are still served.
            warn_throttled!(
                throttles.failed.admit(clock.now()),
                %error,
                "cannot accept a connection"
            );
            clock.until(clock.now().after(Span::from_ms(ACCEPT_PAUSE_MS))).await;
            None
        }
    }
}
