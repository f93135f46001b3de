//! `GET /healthz` of a directory that follows, on a thread of its own. It knows no other request.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use pinpriq_server::clock::SystemClock;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::health::Health;
use crate::exit::Failure;

/// How many connections are answered at a time. Others wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may last: a client that does not ask must not keep others waiting.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// How long nothing is accepted after the system refused.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens until the process ends. Returns where.
pub(super) fn listen(address: SocketAddr, health: Arc<Health>) -> Result<SocketAddr, Failure> {
    let fail = |error: io::Error| Failure::on_the_way(format!("--http {address}: {error}"));
    let listener = StdListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let at = listener.local_addr().map_err(fail)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
    let accept = move || runtime.block_on(accept_all(listener, health));
    thread::Builder::new().name("healthz".to_owned()).spawn(accept).map_err(fail)?;
    Ok(at)
}

async fn accept_all(listener: StdListener, health: Arc<Health>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&room).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            drop(place);
            let _ = timeout(ACCEPT_PAUSE, pending::<()>()).await;
            continue;
        };
        let health = Arc::clone(&health);
        tokio::spawn(async move {
            let _place = place;
            // Who has gone needs no answer.
            let _ = timeout(CONNECTION_MAX, serve(stream, health)).await;
        });
    }
}

async fn serve(stream: TcpStream, health: Arc<Health>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = answered(request.method(), request.uri().path(), &health);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false);
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

fn answered(method: &Method, path: &str, health: &Health) -> Response<Full<Bytes>> {
    let is_known = [Method::GET, Method::HEAD].contains(method) && path == "/healthz";
    let (text, status) = if is_known {
        let (text, is_well) = health.report(SystemClock::wall());
        (text, if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE })
    } else {
        ("{\"error\":\"there is only GET /healthz\"}\n".to_owned(), StatusCode::NOT_FOUND)
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
