//! `GET /metrics`: what the server counts, for Prometheus and other readers of its formats.
//!
//! [`table`] lists every metric once, with the function that reads it from a survey. `exposition`
//! writes them in the format that was asked for, and [`page`] makes the table of the documentation.
//! Nothing is counted here, and what is asked of the shards is up to `monitor`.

mod exposition;
mod labels;
pub(crate) mod page;
pub(crate) mod sight;
pub(crate) mod table;

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::exposition::{Format, Place};
use self::sight::Sight;
use super::api::body::{Made, Unfolded};
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
    let is_small = accepts_gzip(&headers);
    let Ok(answering) = Arc::clone(&ANSWERS).try_acquire_owned() else {
        return refuse(&Problem::new("BUSY", "too many others read metrics: try again later"));
    };
    let coming = Coming {
        sight: Arc::new(sight),
        format,
        place: Some(Place::default()),
        gzip: is_small.then(Crc::new),
        _answering: answering,
    };
    let mut response = Response::new(Body::new(Unfolded::new(coming, next)));
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

/// An answer that is being written, piece by piece.
struct Coming {
    sight: Arc<Sight>,
    format: Format,
    /// Where to go on. Nothing once all is written.
    place: Option<Place>,
    /// The checksum of what was written, if the answer is compressed.
    gzip: Option<Crc>,
    _answering: OwnedSemaphorePermit,
}

/// Writes the next piece, while others are served.
fn next(mut coming: Coming) -> Made<Coming> {
    Box::pin(async move {
        let place = coming.place.take()?;
        let is_first = place == Place::default();
        let (sight, format, packs) = (coming.sight.clone(), coming.format, coming.gzip.is_some());
        let write = move || {
            let (text, next) = exposition::piece(&sight, format, place);
            let packed = if packs { packed(text.as_bytes()) } else { Vec::new() };
            (text, packed, next)
        };
        let Some((text, packed, next)) = aside(write).await else {
            return Some(Err(std::io::ErrorKind::OutOfMemory.into()));
        };
        coming.place = next;
        let Some(crc) = &mut coming.gzip else { return Some(Ok((text.into(), coming))) };
        crc.update(text.as_bytes());
        let mut out = Vec::with_capacity(packed.len() + GZIP_HEAD.len() + 10);
        if is_first {
            out.extend_from_slice(&GZIP_HEAD);
        }
        out.extend_from_slice(&packed);
        if coming.place.is_none() {
            out.extend_from_slice(&EMPTY_LAST_BLOCK);
            out.extend_from_slice(&crc.sum().to_le_bytes());
            out.extend_from_slice(&crc.amount().to_le_bytes());
        }
        Some(Ok((Bytes::from(out), coming)))
    })
}

/// What gzip has before the blocks of deflate: RFC 1952, without a name or a time.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The block of deflate that ends a stream.
const EMPTY_LAST_BLOCK: [u8; 2] = [3, 0];

/// Returns text as whole blocks of deflate that refer to nothing before them, so that they can
/// follow any others.
fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    // Memory takes everything.
    let _ = encoder.write_all(text).and_then(|()| encoder.flush());
    std::mem::take(encoder.get_mut())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn pieces_that_are_packed_apart_are_one_stream() {
        let (mut packed, mut crc) = (GZIP_HEAD.to_vec(), Crc::new());
        for piece in ["first", "", "second"] {
            packed.extend(super::packed(piece.as_bytes()));
            crc.update(piece.as_bytes());
        }
        packed.extend(EMPTY_LAST_BLOCK);
        packed.extend([crc.sum().to_le_bytes(), crc.amount().to_le_bytes()].concat());
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
        assert_eq!(text, "firstsecond");
    }

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
