//! `GET /metrics`: what the server counts, for Prometheus and other readers of its formats.
//!
//! [`table`] lists every metric once, with the function that reads it from a survey. `exposition`
//! writes them in the format that was asked for.
//! Nothing is counted here, and what is asked of the shards is up to `monitor`.

pub(crate) mod exposition;
mod labels;
mod shares;
pub(crate) mod sight;
pub(crate) mod table;

use std::io;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use futures_util::stream::{StreamExt as _, unfold};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::exposition::{Format, PieceStart};
use self::sight::Sight;
use super::api::{Api, Asker, refuse};
use super::problem::Problem;
use crate::runtime::aside;

/// The most answers that are being written or sent. Each keeps what it is made from.
const ANSWERS_MAX: usize = 8;

static ANSWERS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(ANSWERS_MAX)));

/// Answers with all metrics, in the format that the client prefers.
pub(super) async fn answer(
    State(api): State<Arc<Api>>,
    Extension(asker): Extension<Asker>,
    headers: HeaderMap,
) -> Response {
    let closing = || refuse(&Problem::new("CLOSING", "the server is stopping"));
    let Some(sight) = api.sight(&asker).await else { return closing() };
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let format = Format::preferred(&accepted.collect::<Vec<_>>().join(","));
    let Ok(answering) = Arc::clone(&ANSWERS).try_acquire_owned() else {
        return refuse(&Problem::new("BUSY", "too many others read metrics: try again later"));
    };
    let coming = Coming {
        sight: Arc::new(sight),
        format,
        start: Some(PieceStart::default()),
        _answering: answering,
    };
    let mut response = Response::new(Body::from_stream(unfold(coming, next).fuse()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// An answer that is being written, piece by piece.
struct Coming {
    sight: Arc<Sight>,
    format: Format,
    /// Where to go on. Nothing once all is written.
    start: Option<PieceStart>,
    _answering: OwnedSemaphorePermit,
}

/// Writes the next piece, while others are served.
async fn next(mut coming: Coming) -> Option<(io::Result<String>, Coming)> {
    let start = coming.start.take()?;
    let (sight, format) = (coming.sight.clone(), coming.format);
    let written = aside(move || exposition::piece(&sight, format, start)).await;
    let piece = written.ok_or_else(|| io::ErrorKind::OutOfMemory.into()).map(|(piece, next)| {
        coming.start = next;
        piece
    });
    Some((piece, coming))
}
