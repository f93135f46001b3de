//! Bodies: those of requests, read within bounds, and those of answers, piece by piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Bytes;
use tokio::sync::mpsc;

use super::super::problem::Problem;
use super::Api;
use super::route::{Body as Wanted, Route};
use crate::home::visit::Piece;

/// Reads the body of a request. Returns nothing if it is empty.
pub(super) async fn read_body(
    api: &Api,
    route: &Route,
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<Vec<u8>>, Problem> {
    let is_payload = route.body == Wanted::Payload;
    let most = if is_payload { api.payload_bytes_max } else { api.body_bytes_max };
    let reading = Limited::new(body, most).collect();
    let read = tokio::time::timeout(api.body_timeout, reading).await;
    let read = read.map_err(|_| Problem::new("LATE", "the body did not arrive in time"))?;
    let bytes = read.map_err(|wrong| no_body(&*wrong, most))?.to_bytes();
    if bytes.is_empty() {
        return Ok(None);
    }
    check_type(route.body, headers)?;
    Ok(Some(bytes.into()))
}

fn no_body(wrong: &(dyn std::error::Error + Send + Sync + 'static), most: usize) -> Problem {
    if wrong.downcast_ref::<LengthLimitError>().is_some() {
        return Problem::new("TOOLARGE", format!("a body has at most {most} bytes here"));
    }
    Problem::bad(format!("the body cannot be read: {wrong}"))
}

/// Refuses the lines of a batch of another type.
pub(super) fn check_lines(headers: &HeaderMap) -> Result<(), Problem> {
    check_type(Wanted::Lines, headers)
}

fn check_type(wanted: Wanted, headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(Problem::new("MEDIATYPE", "a body comes as it is, without Content-Encoding"));
    }
    let given = headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap_or("?"));
    let given = given.map(|it| it.split(';').next().unwrap_or_default().trim().to_lowercase());
    let (fits, types): (fn(&str) -> bool, _) = match wanted {
        Wanted::None => return Err(Problem::bad("this request has no body")),
        Wanted::Payload => (
            |it| {
                it == "application/octet-stream"
                    || it == "application/json"
                    || it.starts_with("text/")
            },
            "application/octet-stream, application/json or text",
        ),
        Wanted::Json => (|it| it == "application/json", "application/json"),
        Wanted::Lines => (|it| it == "application/x-ndjson", "application/x-ndjson"),
    };
    match given {
        None if wanted == Wanted::Payload => Ok(()),
        Some(given) if fits(&given) => Ok(()),
        given => {
            let given = given.map_or_else(|| "none".to_owned(), |it| super::given::shown(&it));
            let sentence = format!("send Content-Type: {types}, not {given}");
            Err(Problem::new("MEDIATYPE", sentence))
        }
    }
}

/// The body of an answer that comes in pieces.
pub(super) struct Streamed {
    first: Option<Piece>,
    rest: Option<mpsc::Receiver<Piece>>,
    is_complete: bool,
}

impl Streamed {
    /// Returns the body that begins with this piece.
    pub(super) const fn new(first: Piece, rest: Option<mpsc::Receiver<Piece>>) -> Self {
        Self { first: Some(first), rest, is_complete: false }
    }

    fn hand_on(&mut self, mut piece: Piece) -> Bytes {
        self.is_complete = piece.is_last;
        piece.take().into()
    }
}

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(first) = self.first.take() {
            let bytes = self.hand_on(first);
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.is_complete {
            return Poll::Ready(None);
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        match rest.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(piece)) => {
                let bytes = self.hand_on(piece);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            // The connection must end without the end of the body.
            Poll::Ready(None) => Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.first {
            Some(first) => first.is_last && first.bytes.is_empty(),
            None => self.is_complete,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.first {
            Some(first) if first.is_last => SizeHint::with_exact(first.bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
