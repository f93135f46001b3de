//! HTTP while the tasks are loaded: it answers that the server lives, and how far it is.
//!
//! It has a thread of its own, since the shards are busy, and it knows no request but those about
//! health. When the tasks are loaded it hands its listeners over and ends.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::any;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use pinpriq_proto::time::Span;
use pinpriq_store::journal::LoadProgress;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::LocalSet;

use crate::clock::{Clock as _, SystemClock};
use crate::config::DoorName;
use crate::doors::http::api::{alive, framing, refuse};
use crate::doors::http::problem::Problem;
use crate::error::ServeError;
use crate::process::handshakes::Handshakes;
use crate::process::http::HEADER_FIELDS_MAX;
use crate::process::sockets::Port;
use crate::tls::socket::Socket;

/// How many connections are answered at a time. Others wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may last: a client that does not ask must not keep others waiting.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// How long nothing is accepted after the system refused.
const ACCEPT_PAUSE: Span = Span::from_ms(100);

/// How long the last answers may take.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The thread that answers while the tasks are loaded. It ends when this is dropped.
pub(crate) struct Waiting {
    addresses: Vec<(Port, SocketAddr)>,
    enough: oneshot::Sender<()>,
    listeners: oneshot::Receiver<Vec<(Port, StdListener)>>,
}

impl Waiting {
    /// Starts the thread, which accepts connections at once.
    pub(crate) fn start(
        listeners: Vec<(Port, TcpListener)>,
        (progress, tls): (Arc<LoadProgress>, Option<Arc<Handshakes>>),
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Runtime { source };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let address = |(port, it): &(Port, TcpListener)| Some((*port, it.local_addr().ok()?));
        let addresses = listeners.iter().filter_map(address).collect();
        let listeners = listeners.into_iter().map(|(port, it)| Ok((port, it.into_std()?)));
        let listeners = listeners.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let (enough, told) = oneshot::channel();
        let (hand_over, handed_over) = oneshot::channel();
        let run = move || {
            LocalSet::new()
                .block_on(&runtime, answer_until(told, (listeners, tls), hand_over, progress));
        };
        let builder = thread::Builder::new().name("http-waiting".to_owned());
        builder.spawn(run).map_err(failed)?;
        Ok(Self { addresses, enough, listeners: handed_over })
    }

    /// Returns where it listens.
    pub(crate) fn addresses(&self) -> &[(Port, SocketAddr)] {
        &self.addresses
    }

    /// Stops to accept connections, and returns the listeners. Connections that clients begin
    /// meanwhile wait to be accepted by the next owner.
    pub(crate) async fn end(self) -> Result<Vec<(Port, StdListener)>, ServeError> {
        // If the thread has ended, waiting for it reports that.
        let _ = self.enough.send(());
        let vanished = |_| std::io::Error::other("the thread that answers meanwhile has ended");
        self.listeners.await.map_err(|gone| ServeError::Runtime { source: vanished(gone) })
    }
}

/// Answers until a signal says that this is enough, or the server was given up.
async fn answer_until(
    told: oneshot::Receiver<()>,
    (listeners, tls): (Vec<(Port, StdListener)>, Option<Arc<Handshakes>>),
    hand_over: oneshot::Sender<Vec<(Port, StdListener)>>,
    progress: Arc<LoadProgress>,
) {
    let router = router(progress);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (end, ends) = watch::channel(false);
    let accepting = listeners
        .into_iter()
        .filter_map(|(port, it)| Some((port, TcpListener::from_std(it).ok()?)));
    let accepting: Vec<_> = accepting
        .map(|(port, listener)| {
            let tls = tls.clone().filter(|_| port.is_encrypted);
            let (with, ends) = ((router.clone(), room.clone(), tls), ends.clone());
            (port, tokio::task::spawn_local(accept_until(listener, with, ends)))
        })
        .collect();
    // An error says that the server was given up, which ends this too.
    let _ = told.await;
    end.send_replace(true);
    let mut returned = Vec::new();
    for (port, task) in accepting {
        let listener = task.await.ok().and_then(|listener| listener.into_std().ok());
        returned.extend(listener.map(|listener| (port, listener)));
    }
    // Without a receiver the listeners are closed.
    let _ = hand_over.send(returned);
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(LAST_ANSWERS, room.acquire_many(all)).await;
}

/// Accepts connections until the end, and returns the listener.
async fn accept_until(
    listener: TcpListener,
    (router, room, tls): (Router, Arc<Semaphore>, Option<Arc<Handshakes>>),
    mut ends: watch::Receiver<bool>,
) -> TcpListener {
    let clock = SystemClock::starting_at(SystemClock::wall());
    loop {
        let next = async {
            let place = room.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = ends.wait_for(|ended| *ended) => return listener,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, ends, tls) = (router.clone(), ends.clone(), tls.clone());
                tokio::task::spawn_local(async move {
                    let _place = place;
                    let served = serve(stream, tls, router, ends);
                    let _ = tokio::time::timeout(CONNECTION_MAX, served).await;
                });
            }
            // Usually no descriptors are left.
            Err(_) => clock.until(clock.now().after(ACCEPT_PAUSE)).await,
        }
    }
}

/// Answers one connection, over HTTP/1 one request.
async fn serve(
    stream: TcpStream,
    tls: Option<Arc<Handshakes>>,
    router: Router,
    mut ends: watch::Receiver<bool>,
) {
    let socket = match tls {
        Some(tls) => tls.shake(stream, DoorName::Http).await,
        None => Ok(Socket::plain(stream)),
    };
    let Ok(socket) = socket else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).keep_alive(false).max_headers(HEADER_FIELDS_MAX);
    builder.http2().timer(TokioTimer::new());
    let connection =
        builder.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    let mut connection = Box::pin(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ends.wait_for(|ended| *ended) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.as_mut().await;
}

/// What is answered while the tasks are loaded.
fn router(progress: Arc<LoadProgress>) -> Router {
    let refusal = move || {
        let progress = progress.clone();
        async move { loading(&progress) }
    };
    Router::new()
        .route("/healthz", any(alive).layer(from_fn(framing::only_reads)))
        .fallback(refusal)
        .layer(from_fn(framing::complete))
}

/// Says how far the server is.
fn loading(progress: &LoadProgress) -> Response {
    let (loaded, whole) = (progress.loaded_bytes(), progress.whole_bytes());
    let percent = (loaded * 100).checked_div(whole).unwrap_or(0).min(100);
    let sentence = format!(
        "the server is loading its tasks: {loaded} of {whole} bytes so far ({percent} %); ask again"
    );
    refuse(&Problem::new("LOADING", sentence))
}
