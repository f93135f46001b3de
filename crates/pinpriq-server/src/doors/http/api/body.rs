//! Bodies: those of requests, read within bounds, and those of answers, piece by piece.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::super::problem::Problem;
use super::Api;
use super::route::{Body as Wanted, Route};
use crate::doors::http::visit::Piece;

/// The most bytes of bodies that all requests together may have in memory. Small bodies do not
/// count.
const ALL_BYTES_MAX: usize = 256 << 20;

/// A body counts from this number of bytes on, in steps of this size.
const STEP_BYTES: usize = 64 << 10;

/// Room for the bodies of all requests.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL_BYTES_MAX / STEP_BYTES)))
    }
}

/// A body that was read, and the room that it takes until it is dropped.
pub(super) struct Read {
    pub(super) bytes: Option<Vec<u8>>,
    _room: Vec<OwnedSemaphorePermit>,
}

/// Reads the body of a request. An empty one is none.
pub(super) async fn read_body(
    api: &Api,
    route: &Route,
    headers: &HeaderMap,
    body: Body,
) -> Result<Read, Problem> {
    let is_payload = route.body == Wanted::Payload;
    let most = if is_payload { api.payload_bytes_max } else { api.body_bytes_max };
    let read = timeout(api.body_timeout, collect(body, most, &api.room)).await;
    let read = read.map_err(|_| Problem::new("LATE", "the body did not arrive in time"))??;
    if read.bytes.is_some() {
        check_type(route.body, headers)?;
    }
    Ok(read)
}

async fn collect(mut body: Body, most: usize, room: &Room) -> Result<Read, Problem> {
    let too_large = || Problem::new("TOOLARGE", format!("a body has at most {most} bytes here"));
    let declared = body.size_hint().lower();
    if declared > most as u64 {
        return Err(too_large());
    }
    let (mut bytes, mut taken) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|wrong| Problem::bad(format!("the body cannot be read: {wrong}")))?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(data);
        while bytes.len() / STEP_BYTES > taken.len() {
            let step = room.0.clone().try_acquire_owned();
            taken.push(step.map_err(|_| {
                Problem::new("BUSY", "too many large requests are on their way: try again later")
            })?);
        }
    }
    let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
    Ok(Read { bytes, _room: taken })
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
        Wanted::Payload => (
            |it| {
                it == "application/octet-stream"
                    || it == "application/json"
                    || it.starts_with("text/")
            },
            "application/octet-stream, application/json or text",
        ),
        Wanted::None if !headers.contains_key(CONTENT_TYPE) => {
            return Err(Problem::bad("this request has no body, but for names in base64"));
        }
        Wanted::Json | Wanted::None => (|it| it == "application/json", "application/json"),
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
