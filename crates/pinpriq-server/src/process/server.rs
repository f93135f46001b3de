//! A server from its configuration to its orderly end.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::Durable;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::access::{self, Access};
use super::http;
use super::http::waiting::Waiting;
use super::opening::{Journals, Opening, Start};
use super::place::{Common, Company, Place};
use super::serving::Context;
use super::signals::Signals;
use super::sockets::{Passed, Port, Taken, refuse_overlap};
use super::threads::{Running, Thread};
use crate::archiving::{Archiving, Shards, keep_all};
use crate::clients::ending::Ending;
use crate::clock::{Clock, SystemClock, warn_if_ahead};
use crate::config::{Config, DoorName, Watch};
use crate::cuts::Copied;
use crate::doors::beanstalkd;
use crate::doors::http::backups::{Backups, OrWhyNot};
use crate::error::ServeError;
use crate::keepalive::watch;
use crate::random::random;
use crate::runtime::runtime;
use crate::stop::Stop;
use crate::throttle::{Throttle, warn_throttled};
use crate::tls::side::HandshakeError;
use crate::tls::socket::Socket;

/// How long a handshake may take, in milliseconds.
const HANDSHAKE_MS: u64 = 10_000;

/// How long the server waits before it accepts again after the system refused.
const ACCEPT_PAUSE_MS: u64 = 100;

/// A server that has its sockets and its tasks, and is ready to serve.
pub struct Server {
    context: Rc<Context>,
    threads: Vec<Thread>,
    http: Option<Running>,
    listeners: Vec<(Port, TcpListener)>,
    /// The addresses of listeners that other threads have.
    elsewhere: Vec<(Port, SocketAddr)>,
    archiving: Option<Archiving>,
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
        let look = config.look.as_ref();
        let now = look.map_or_else(SystemClock::wall, |look| look.at);
        // A server that keeps nothing cannot know which incarnations there were, and no receipt may
        // be issued twice. So every millisecond has its own incarnation.
        let incarnations_before = now.ms();
        Self::bind_by(config, stop, (now, incarnations_before), |_, machine| {
            Rc::new(machine.another())
        })
        .await
    }

    /// Starts a server like [`Server::bind`], with a clock of the caller's. `clock` makes it for
    /// the moment at which time starts: `now`, or later if the store knows a later one. It is only
    /// the clock of the first shard. Without a data directory, `incarnations_before` says how many
    /// incarnations there may have been.
    pub async fn bind_with_clock(
        config: Config,
        stop: Stop,
        (now, incarnations_before): (Timestamp, u64),
        clock: impl FnOnce(Timestamp) -> Rc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        Self::bind_by(config, stop, (now, incarnations_before), |start, _| clock(start)).await
    }

    /// Starts a server. `clock` makes the clock of the first shard, and gets that of all others.
    async fn bind_by(
        config: Config,
        stop: Stop,
        (now, incarnations_before): (Timestamp, u64),
        clock: impl FnOnce(Timestamp, &SystemClock) -> Rc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        let access = Access::open(&config)?;
        let archiving = config.archive.as_ref().map(Archiving::open).transpose()?;
        let taken = take(&config)?;
        let (of_http, taken): (Vec<_>, Vec<_>) =
            taken.into_iter().partition(|(port, _)| port.door == DoorName::Http);
        let of_http = of_http.into_iter().map(|(port, taken)| Ok((port, taken.listen()?)));
        let of_http = of_http.collect::<Result<Vec<_>, ServeError>>()?;
        let has_http = !of_http.is_empty();
        let progress = Arc::default();
        let waiting =
            has_http.then(|| Waiting::start(of_http, (Arc::clone(&progress), access.tls.clone())));
        let waiting = waiting.transpose()?;
        let flag = stop.flag();
        let beanstalkd = Arc::new(beanstalkd::Shared::new(random(), config.job_bytes_max));
        let archive = archiving.as_ref().map(Archiving::archived);
        let company = Company { access, beanstalkd, archive, ..Company::of(&config) };
        let common = Common::new(config.shards, has_http, stop, company);
        let journals = Journals::of(&config, &flag)?;
        let openings = journals.openings(incarnations_before, &flag, &progress);
        let copied = copied(&openings);
        let archived = archiving.as_ref().zip(copied.as_deref());
        let keeps = archived.map(|(_, copied)| keep_all(copied));
        let mut openings = openings.into_iter();
        let Some(first) = openings.next() else { unreachable!("a server has a shard") };
        let mut threads = Vec::new();
        for opening in openings {
            threads.push(Thread::start(config.clone(), opening, common.clone())?);
        }
        let (durable, start) = begin_all((&journals, &config), &first, &mut threads, now).await?;
        warn_if_ahead(start, now);
        // Loading took time, which must not make deadlines late.
        let machine = SystemClock::starting_at(start.max(SystemClock::wall()));
        let clock = clock(start, &machine);
        let with = (&config, common.clone());
        let context = Context::new(Place::new(0, with, (durable, first.bell), clock));
        let listeners = taken.into_iter().map(|(port, taken)| Ok((port, taken.listen()?)));
        let listeners = listeners.collect::<Result<Vec<_>, ServeError>>()?;
        common.note_addresses(&addresses_of(&listeners));
        for thread in &mut threads {
            thread.go(machine.another());
        }
        if let (Some((archiving, copied)), Some(keeps)) = (archived, keeps) {
            let (copied, stop) = (copied.to_vec(), common.stop.clone());
            archiving.begin(Shards { copied, keeps, start, stop });
        }
        let (http, elsewhere) = match waiting {
            Some(waiting) => {
                let elsewhere = waiting.addresses().to_vec();
                let listeners = waiting.end().await?;
                let backups = backups_of(copied, &machine);
                let http = http::start(config.clone(), common, listeners, (machine, backups))?;
                (Some(http), elsewhere)
            }
            None => (None, Vec::new()),
        };
        let watch = config.watch;
        Ok(Self { context, threads, http, listeners, elsewhere, archiving, watch })
    }

    /// Returns the address on which a door listens: the first if it has several.
    #[must_use]
    pub fn address(&self, door: DoorName) -> Option<SocketAddr> {
        self.address_of(Port { door, is_encrypted: false })
    }

    /// Returns the same for encrypted connections.
    #[must_use]
    pub fn tls_address(&self, door: DoorName) -> Option<SocketAddr> {
        self.address_of(Port { door, is_encrypted: true })
    }

    fn address_of(&self, port: Port) -> Option<SocketAddr> {
        let listener = self.listeners.iter().find(|(own, _)| *own == port);
        let here = listener.and_then(|(_, listener)| listener.local_addr().ok());
        let elsewhere = self.elsewhere.iter().find(|(own, _)| *own == port);
        here.or_else(|| elsewhere.map(|(_, address)| *address))
    }

    /// Serves until the stop is requested, and then stops in order.
    ///
    /// Fails if the store failed meanwhile. In that case some changes may not be durable, but all
    /// that were replied to are.
    pub async fn run(self) -> Result<(), ServeError> {
        let Self { context, threads, http, listeners, archiving, watch, .. } = self;
        let accepting = listeners.into_iter().map(|(port, listener)| {
            let context = context.clone();
            tokio::task::spawn_local(
                async move { accept_all((&context, watch), &listener, port).await },
            )
        });
        let accepting: Vec<_> = accepting.collect();
        let common = context.common.clone();
        let audit = common.access.audit.clone();
        access::watch(&context);
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
        if let Some(audit) = audit {
            audit.finish();
        }
        // What was confirmed is in files that did not fail.
        if let Some(archiving) = archiving.filter(|_| ended.is_ok()) {
            archiving.finish().await;
        }
        if ended.is_ok() {
            tracing::info!("stopped");
        }
        ended
    }
}

/// Makes all shards begin, of which the first one runs on this thread. They share one time and one
/// incarnation, and none begins before all are loaded. Returns the engine of the first one, and the
/// moment at which time starts.
async fn begin_all(
    (journals, config): (&Journals, &Config),
    first: &Opening,
    threads: &mut [Thread],
    now: Timestamp,
) -> Result<(Durable, Timestamp), ServeError> {
    let loading = first.load(config)?;
    let mut begins = Start::after(&loading, now);
    for thread in &mut *threads {
        begins = begins.and(thread.loaded(now).await?);
    }
    journals.loaded()?;
    for thread in &mut *threads {
        thread.begin(begins);
    }
    let mut durable = first.begin(loading, begins, config)?;
    for thread in threads {
        thread.begun().await?;
    }
    first.all_begun(&mut durable)?;
    journals.begun()?;
    Ok((durable, begins.now))
}

/// Returns the journals of these shards, if they have some.
fn copied(openings: &[Opening]) -> Option<Vec<Copied>> {
    let copied = |opening: &Opening| {
        let tap = opening.tap.clone()?;
        Some(Copied { directory: opening.journal.directory.clone(), tap })
    };
    openings.iter().map(copied).collect()
}

/// Returns what keeps the backups of these journals, or why there are none.
fn backups_of(copied: Option<Vec<Copied>>, clock: &SystemClock) -> OrWhyNot<Arc<Backups>> {
    let copied = copied.ok_or("with --durability memory there is nothing on disk to back up")?;
    Ok(Backups::new(copied, clock.tell()))
}

/// Runs a server until SIGTERM or SIGINT stops it, even while it loads. Blocks.
pub fn run(config: Config) -> Result<(), ServeError> {
    run_and_tell(config, |_| {})
}

/// Does the same, and calls `tell` once clients can connect.
pub fn run_and_tell(config: Config, tell: impl FnOnce(&Server)) -> Result<(), ServeError> {
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
        tell(&server);
        let common = server.context.common.clone();
        tokio::task::spawn_local(signals.heed(stop, common));
        server.run().await
    })
}

/// Returns where these listen.
pub(crate) fn addresses_of(listeners: &[(Port, TcpListener)]) -> Vec<(Port, SocketAddr)> {
    let known = listeners.iter().filter_map(|(port, it)| Some((*port, it.local_addr().ok()?)));
    known.collect()
}

/// Reserves the addresses of all listeners, of which a service manager may have opened some.
/// Refuses those that overlap.
pub(crate) fn take(config: &Config) -> Result<Vec<(Port, Taken)>, ServeError> {
    let listeners: Vec<_> = config.every_listener().collect();
    for (at, (one, _)) in listeners.iter().enumerate() {
        listeners[..at].iter().try_for_each(|(it, _)| refuse_overlap(it.address, one.address))?;
    }
    let mut passed = Passed::from_environment()?;
    let taken = listeners.into_iter().map(|(listener, is_encrypted)| {
        let port = Port { door: listener.door, is_encrypted };
        Ok((port, Taken::new(listener.address, &mut passed)?))
    });
    let taken = taken.collect::<Result<_, ServeError>>()?;
    passed.refuse_rest()?;
    Ok(taken)
}

/// Accepts connections of one door, and gives each to the shard with the fewest. Never ends.
pub(crate) async fn accept_all(
    (context, watched): (&Rc<Context>, Watch),
    listener: &TcpListener,
    port: Port,
) {
    tell_listening(listener, port);
    let (throttles, door) = (Throttles::default(), port.door);
    loop {
        let accepted = accept((context, watched), listener, &throttles).await;
        let Some((stream, peer)) = accepted else { continue };
        // Counted at once, so that connections that arrive together do not all take the last place.
        let to = context.common.place_connection();
        if !port.is_encrypted {
            context.send_on(to, (Socket::plain(stream), peer, door), None);
            continue;
        }
        let context = context.clone();
        tokio::task::spawn_local(async move {
            match encrypt(&context, stream, (door, peer)).await {
                Ok(socket) => context.send_on(to, (socket, peer, door), None),
                Err(ending) => {
                    context.shard().tally().close(ending);
                    context.common.remove_connection(to);
                }
            }
        });
    }
}

/// Logs that a port is open.
pub(crate) fn tell_listening(listener: &TcpListener, port: Port) {
    if let Ok(address) = listener.local_addr() {
        let (door, tls) = (port.door.word(), port.is_encrypted);
        tracing::info!(%address, door, tls, "listening");
    }
}

/// Carries out the handshake of a connection that was accepted. Without one, tells why the
/// connection ends.
pub(crate) async fn encrypt(
    context: &Context,
    stream: TcpStream,
    (door, peer): (DoorName, SocketAddr),
) -> Result<Socket, Ending> {
    let Some(tls) = &context.common.access.tls else {
        unreachable!("a port is encrypted without a certificate")
    };
    let clock = context.shard().clock();
    let frame_ms = context.options.limits.frame_timeout.as_millis();
    let most_ms = u64::try_from(frame_ms).unwrap_or(u64::MAX).min(HANDSHAKE_MS);
    let last = clock.now().after(Span::from_ms(most_ms));
    let shaken = tokio::select! {
        shaken = tls.shake(stream, door) => shaken,
        () = clock.until(last) => Err(HandshakeError::Late),
        () = context.common.stop.asked_for() => return Err(Ending::Stopped),
    };
    shaken.map_err(|error| {
        context.shard().notices().no_handshake(clock.now(), &peer, (door.word(), &error));
        Ending::Handshake
    })
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
            if clients >= context.options.limits.connections_max {
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
