//! `GET /metrics`: what the server counts, for Prometheus and whoever reads its formats.
//!
//! [`table`] lists every metric once, with the function that reads it from a survey. `exposition`
//! writes them in the format that was asked for, and [`page`] makes the table of the documentation.
//! Nothing is counted here, and what is asked of the shards is up to `monitor`.

mod exposition;
mod labels;
pub(crate) mod page;
mod pieces;
pub(crate) mod sight;
pub(crate) mod table;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use self::exposition::Format;
use self::pieces::Pieces;
use super::api::{Api, refuse};
use super::problem::Problem;

/// The methods of the path.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Answers with all metrics, in the format that the client prefers.
pub(super) async fn answer(
    State(api): State<Arc<Api>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    if method == Method::OPTIONS {
        let mut response = StatusCode::NO_CONTENT.into_response();
        response.headers_mut().insert(ALLOW, METHODS);
        return response;
    }
    if method != Method::GET && method != Method::HEAD {
        let problem = Problem::new("METHOD", format!("{method} is no method of this path"));
        let mut response = refuse(&problem);
        response.headers_mut().insert(ALLOW, METHODS);
        return response;
    }
    let closing = || refuse(&Problem::new("CLOSING", "the server is stopping"));
    let Some(sight) = api.sight().await else { return closing() };
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let format = Format::preferred(&accepted.collect::<Vec<_>>().join(","));
    // With a thousand queues this takes milliseconds, in which others are served.
    let written = tokio::task::spawn_blocking(move || exposition::write(sight, format)).await;
    let Ok(text) = written else { return closing() };
    let mut response = Response::new(Body::new(Pieces::of(text)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    response
}
