//! HTTP connections: a place of their own behind the shards, on a thread of its own, so that no
//! shard ever waits for HTTP. In a cluster the home of all connections serves them.
//!
//! hyper speaks the protocol. What requests mean is up to `doors::http::api`.

pub(crate) mod waiting;
mod wire;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use pinpriq_proto::time::Span;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

use self::wire::{Begun, Passing, Watched};
use super::access::Access;
use super::place::Common;
use super::server::{Throttles, accept, encrypt, tell_listening};
use super::serving::Context;
use super::sockets::Port;
use super::threads::Running;
use crate::clients::ending::{Ending, SPEAKS_TLS};
use crate::clock::SystemClock;
use crate::config::{Config, DoorName, Limits, Watch};
use crate::doors::http::api::{Api, AsItIs, Asker, HandsOver, Way, router};
use crate::doors::http::backups::{Backups, OrWhyNot};
use crate::doors::http::begin;
use crate::doors::http::visit::{self, Caller, Visit, Wire};
use crate::error::ServeError;
use crate::monitor::{self, Monitor, Sight};
use crate::tls::socket::Socket;

/// The most bytes of the head of a request, including the target.
const HEAD_BYTES_MAX: usize = 128 << 10;

/// The most header fields of a request. hyper makes room for all of them for each request.
const HEADER_FIELDS_MAX: usize = 1_024;

/// How many requests of one connection may be under way over HTTP/2.
const STREAMS_MAX: u32 = 128;

/// How many visits of one connection may wait to begin.
const VISITS_WAITING: usize = 16;

/// How long a client may take to notice that nothing more is read.
const LINGER: Span = Span::from_ms(1_000);

/// Starts the thread of a server that has HTTP connections, which accepts connections at once. It
/// tells the time by this clock.
pub(crate) fn start(
    config: Config,
    common: Arc<Common>,
    listeners: Vec<(Port, std::net::TcpListener)>,
    (clock, backups): (SystemClock, OrWhyNot<Arc<Backups>>),
) -> Result<Running, ServeError> {
    Running::start("http".to_owned(), move || async move {
        let context = Context::behind_shards(&config, common, clock)?;
        let door = HttpDoor::open(&context, &config, backups);
        let accepting = accepting(&context, &door, listeners);
        context.serve(accepting).await
    })
}

/// Accepts connections until the stop is asked for.
fn accepting(
    context: &Rc<Context>,
    door: &HttpDoor,
    listeners: Vec<(Port, std::net::TcpListener)>,
) -> impl Future<Output = ()> + use<> {
    let accepting: Vec<_> = listeners
        .into_iter()
        .filter_map(|(port, listener)| Some((port, TcpListener::from_std(listener).ok()?)))
        .map(|(port, listener)| {
            let (context, door) = (context.clone(), door.clone());
            let accepting = async move { door.accept_all(&context, &listener, port).await };
            tokio::task::spawn_local(accepting)
        })
        .collect();
    let stop = context.common.stop.clone();
    async move {
        stop.asked_for().await;
        for task in accepting {
            task.abort();
            // The task owns the listener until it is gone.
            let _ = task.await;
        }
    }
}

/// What all HTTP connections share.
#[derive(Clone)]
pub(crate) struct HttpDoor {
    router: Router,
    watch: Watch,
}

impl HttpDoor {
    /// Returns the door of the server with this place, which watches the server from now on, and
    /// ends its backups in time.
    pub(crate) fn open(
        context: &Rc<Context>,
        config: &Config,
        backups: OrWhyNot<Arc<Backups>>,
    ) -> Self {
        let (monitor, asks) = Monitor::new();
        let shown_max = config.http.metrics_queues;
        let common = &context.common;
        let sight = Sight {
            shard: context.shard().clone(),
            sharding: common.sharding,
            boxes: common.boxes.clone(),
            connections: {
                let common = common.clone();
                Box::new(move || common.connections())
            },
        };
        let run = monitor::run((sight, common.stop.clone()), (monitor.clone(), asks), shown_max);
        tokio::task::spawn_local(run);
        if let Ok(backups) = backups.clone() {
            let shard = context.shard().clone();
            tokio::task::spawn_local(async move { backups.end_in_time(shard.clock()).await });
        }
        let refusals = context.shard().tally().http_refusals().clone();
        let Access { roster, audit, .. } = context.common.access.clone();
        let with = (roster, audit, context.common.resp_at.get().copied());
        let limits = &context.options.limits;
        let api = Api::new((config, limits), (monitor, backups), refusals, with);
        Self { router: router(api), watch: config.watch }
    }

    /// Accepts connections. Never ends.
    pub(crate) async fn accept_all(
        &self,
        context: &Rc<Context>,
        listener: &TcpListener,
        port: Port,
    ) {
        tell_listening(listener, port);
        let throttles = Throttles::default();
        let limits = context.options.limits;
        loop {
            let accepted = accept((context, self.watch), listener, &throttles).await;
            let Some((stream, peer)) = accepted else { continue };
            let place = context.shard().own();
            context.common.add_connection(place);
            let (context, router) = (context.clone(), self.router.clone());
            tokio::task::spawn_local(async move {
                context.shard().tally().open_http();
                let socket = if port.is_encrypted {
                    encrypt(&context, stream, (port.door, peer)).await
                } else {
                    Ok(Socket::plain(stream))
                };
                let ending = match socket {
                    Ok(socket) => serve(&context, (socket, peer), router, &limits).await,
                    Err(ending) => ending,
                };
                context.shard().tally().close_http();
                context.shard().tally().close(ending);
                context.common.remove_connection(place);
            });
        }
    }
}

/// Serves one connection until it ends.
async fn serve(
    context: &Rc<Context>,
    (socket, peer): (Socket, SocketAddr),
    router: Router,
    limits: &Limits,
) -> Ending {
    let wire = Arc::new(Wire::default());
    let (asks, visits) = mpsc::channel(VISITS_WAITING);
    let way = Way { peer, is_encrypted: socket.is_encrypted(), certificate: socket.common_name() };
    let asker = Asker::new(asks, way);
    let tally = context.shard().tally().clone();
    let watched = Watched::new(socket, wire.clone(), tally, Box::new(passing(context, LINGER)));
    let (begun, has_begun) = (watched.begun(), watched.begun());
    let service = ServiceBuilder::new()
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(MayWait)))
        .map_request(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(asker.clone());
            request.map(axum::body::Body::new)
        })
        .service(router);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.frame_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADER_FIELDS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(STREAMS_MAX);
    let service = TowerToHyperService::new(service);
    let connection = builder.serve_connection(TokioIo::new(watched), service);
    let mut connection = Box::pin(connection);
    let visits = tokio::task::spawn_local(receive(context.clone(), visits, wire.clone(), peer));
    let frame_ms = u64::try_from(limits.frame_timeout.as_millis()).unwrap_or(u64::MAX);
    let late = async {
        passing(context, Span::from_ms(frame_ms))().await;
        if has_begun.get() != Begun::Not {
            std::future::pending::<()>().await;
        }
    };
    let stop = context.common.stop.clone();
    let ending = tokio::select! {
        ended = connection.as_mut() => ending_of(ended.is_ok()),
        () = late => Ending::Late,
        () = wire.ended() => Ending::Killed,
        () = stop.asked_for() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                _ = connection.as_mut() => {}
                () = context.cut_off() => {}
            }
            Ending::Stopped
        }
    };
    wire.end();
    let ending = if begun.get() == Begun::WithTls {
        let why = (Ending::Malformed, SPEAKS_TLS);
        context.shard().notices().closing(context.shard().clock().now(), &peer, why);
        Ending::Malformed
    } else {
        ending
    };
    drop(connection);
    // Requests that were not answered find no caller.
    let _ = visits.await;
    ending
}

/// Returns what begins a time of this length.
fn passing(context: &Rc<Context>, length: Span) -> impl Fn() -> Passing + 'static {
    let context = context.clone();
    move || {
        let context = context.clone();
        Box::pin(async move {
            let clock = context.shard().clock();
            clock.until(clock.now().after(length)).await;
        })
    }
}

const fn ending_of(is_ok: bool) -> Ending {
    if is_ok { Ending::Closed } else { Ending::Broken }
}

/// Answers that hand tasks over are not compressed: what was written must have left. Parts of
/// backups are not compressed either: a client that wants so many bytes counts them.
#[derive(Clone, Copy, Debug)]
struct MayWait;

impl Predicate for MayWait {
    fn should_compress<B: http_body::Body>(&self, response: &hyper::Response<B>) -> bool {
        let more = response.extensions();
        more.get::<HandsOver>().is_none() && more.get::<AsItIs>().is_none()
    }
}

/// Carries out the visits of a connection until it has ended, each with a client that no other one
/// has at the same time.
async fn receive(
    context: Rc<Context>,
    mut visits: mpsc::Receiver<Visit>,
    wire: Arc<Wire>,
    peer: SocketAddr,
) {
    let idle: Rc<RefCell<Vec<Caller>>> = Rc::default();
    let mut at_work = tokio::task::JoinSet::new();
    loop {
        let visit = tokio::select! {
            visit = visits.recv() => visit,
            Some(_) = at_work.join_next() => continue,
            () = wire.ended() => None,
        };
        let Some(visit) = visit else { break };
        let known = idle.borrow_mut().pop();
        let caller = known.unwrap_or_else(|| {
            let shard = context.shard().clone();
            let who = shard.connect(DoorName::Http, peer);
            begin(shard, who, peer, &context.options)
        });
        let (context, wire, idle) = (context.clone(), wire.clone(), idle.clone());
        at_work.spawn_local(async move {
            let done = visit::carry_out(context.around(), caller, visit, wire).await;
            idle.borrow_mut().extend(done);
        });
    }
    while at_work.join_next().await.is_some() {}
    for caller in idle.take() {
        caller.client.leave_uncounted();
    }
}
