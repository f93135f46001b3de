//! What every answer has, whatever was asked for: browsers take it for nothing but what it says it
//! is, and a connection that ends after it says so.
//!
//! hyper answers malformed requests by itself, without any of this.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{ALLOW, CONNECTION, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::super::problem::Problem;
use super::refuse;

/// How long the rest of a refused body may take over HTTP/2.
const REST_MAX: Duration = Duration::from_secs(10);

/// Completes an answer. If the body of the request was not read to its end, hyper closes the
/// connection, and the client must know that before it sends its next request. Over HTTP/2 hyper
/// resets the stream behind the answer, which some clients take for a failure instead of reading
/// the answer: the rest of the body is read and discarded first, if it comes within [`REST_MAX`].
pub(crate) async fn complete(request: Request, next: Next) -> Response {
    let may_say_so = is_http_1(&request);
    let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let (leave, mut left) = oneshot::channel();
    let leave = Some(leave);
    let request = request.map(|body| Body::new(Followed { body, is_read: is_read.clone(), leave }));
    let mut response = next.run(request).await;
    // The answer to lines begins before all of them have come, and has no known length.
    let is_final = is_refusal(response.status()) || response.body().size_hint().exact().is_some();
    let closes = is_final && !is_read.load(Ordering::Relaxed);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if closes && may_say_so {
        close_after(&mut response);
    } else if closes && let Ok(rest) = left.try_recv() {
        // If it does not end in time, hyper resets the stream.
        let _ = timeout(REST_MAX, discard(rest)).await;
    }
    response
}

/// Reads a body to its end.
async fn discard(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

/// Ends the connection after this answer.
pub(super) fn close_after(response: &mut Response) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}

/// Whether a connection has one request after another, so that an answer can be the last.
pub(super) fn is_http_1(request: &Request) -> bool {
    request.version() <= Version::HTTP_11
}

fn is_refusal(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Lets only those requests through that read.
pub(crate) async fn only_reads(request: Request, next: Next) -> Response {
    match *request.method() {
        Method::GET | Method::HEAD => next.run(request).await,
        ref other => tell_methods(other, "GET, HEAD, OPTIONS"),
    }
}

/// Answers OPTIONS with the methods of a path, and refuses what is not among them.
pub(crate) fn tell_methods(asked: &Method, methods: &str) -> Response {
    let mut response = if asked == Method::OPTIONS && methods.contains("OPTIONS") {
        StatusCode::NO_CONTENT.into_response()
    } else {
        refuse(&Problem::new("METHOD", format!("{asked} is no method of this path")))
    };
    if let Ok(methods) = HeaderValue::from_str(methods) {
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}

/// The body of a request, which notes when it was read to its end.
struct Followed {
    body: Body,
    is_read: Arc<AtomicBool>,
    /// Gets what is left of the body when nothing more of it is wanted.
    leave: Option<oneshot::Sender<Body>>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take().filter(|_| !self.is_read.load(Ordering::Relaxed)) {
            // Without a receiver it is dropped here.
            let _ = leave.send(std::mem::take(&mut self.body));
        }
    }
}

impl HttpBody for Followed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
