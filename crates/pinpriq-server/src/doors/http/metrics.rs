//! `GET /metrics`: what the server counts, for Prometheus and other readers of its formats.
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

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::Semaphore;

use self::exposition::Format;
use self::pieces::Pieces;
use super::api::{Api, Asker, refuse};
use super::problem::Problem;
use crate::runtime::aside;

/// The most answers that are being written or sent. Each is in memory as a whole.
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
    let is_small = accepts_gzip(&headers);
    // With a thousand queues this takes milliseconds, in which others are served.
    let sight = Arc::new(sight);
    let write = move || {
        let text = exposition::write(Arc::clone(&sight), format).into_bytes();
        if is_small { compressed(&text) } else { text }
    };
    let Ok(place) = Arc::clone(&ANSWERS).try_acquire_owned() else {
        return refuse(&Problem::new("BUSY", "too many others read metrics: try again later"));
    };
    let Some(body) = aside(write).await else { return closing() };
    let mut response = Response::new(Body::new(Pieces::of(body, place)));
    let headers = response.headers_mut();
    if is_small {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response
}

/// Whether a client takes an answer that is compressed.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        is_gzip && weight.is_none_or(|weight| !weight.trim_matches(['0', '.']).is_empty())
    })
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Memory takes everything.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_whether_they_take_gzip() {
        let table = [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=1.0", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("identity", false),
            ("", false),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
