//! A connection to a server's HTTP door, for the commands that ask what only this door has.
//!
//! It knows no path. One request is under way at a time, and the caller waits for its answer. A
//! connection that was lost is opened again with the next request.

#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, RANGE};
use hyper::rt::{Read, Write};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;

use crate::endpoint::{self, Endpoint, ServerAddress};
use crate::environment::{Credentials, TOKEN, credentials};
use crate::exit::Failure;
use crate::resp::{Trouble, with_way_in};

/// How long a server may take to accept a connection.
const OPENING: Duration = Duration::from_secs(10);

/// How long it may take to begin its answer, and to go on with it.
const ANSWERING: Duration = Duration::from_mins(1);

/// The largest refusal that is read.
const PROBLEM_BYTES_MAX: usize = 64 << 10;

type Sender = SendRequest<Full<Bytes>>;
type Broken = Box<dyn StdError + Send + Sync>;

/// One server, and the connection to it while there is one.
#[derive(Debug)]
pub(crate) struct Http {
    server: ServerAddress,
    /// The server as the user has named it.
    address: String,
    is_encrypted: bool,
    authorization: Option<HeaderValue>,
    runtime: Runtime,
    sender: Option<Sender>,
    /// Whether it has ever answered.
    answered: bool,
}

impl Http {
    /// Prepares for the requests to a server. Opens no connection yet.
    pub(crate) fn to(endpoint: Endpoint) -> Result<Self, Failure> {
        let (address, is_encrypted) = (endpoint.to_string(), endpoint.is_encrypted());
        let server = endpoint.only()?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime
            .map_err(|error| Failure::on_the_way(format!("no connection to {address}: {error}")))?;
        let authorization = authorization()?;
        let (sender, answered) = (None, false);
        Ok(Self { server, address, is_encrypted, authorization, runtime, sender, answered })
    }

    /// Makes something, and returns what the server says of it. This is never sent twice.
    pub(crate) fn post(&mut self, path: &str, bytes_max: usize) -> Result<Vec<u8>, Trouble> {
        let request = self.request(Method::POST, path, None)?;
        let outcome = self.exchange(request, bytes_max);
        self.judge(outcome).map(|(_, body)| body)
    }

    /// Returns the bytes from `from` up to `to`, or their beginning.
    pub(crate) fn part(&mut self, path: &str, from: u64, to: u64) -> Result<Vec<u8>, Trouble> {
        let range = format!("bytes={from}-{}", to.saturating_sub(1));
        let request = self.request(Method::GET, path, Some(range))?;
        let most = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        match self.repeat(&request, most)? {
            (StatusCode::PARTIAL_CONTENT, body) => Ok(body),
            (status, _) => {
                let address = &self.address;
                Err(Trouble::Lost(format!("{address} answers {status} to a request for a part")))
            }
        }
    }

    /// Ends something.
    pub(crate) fn delete(&mut self, path: &str) -> Result<(), Trouble> {
        let request = self.request(Method::DELETE, path, None)?;
        self.repeat(&request, PROBLEM_BYTES_MAX).map(|_| ())
    }

    /// Sends what may be sent twice. The connection from before may have ended while it was idle.
    fn repeat(
        &mut self,
        request: &Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<(StatusCode, Vec<u8>), Trouble> {
        let is_new = self.sender.is_none();
        let mut outcome = self.exchange(request.clone(), bytes_max);
        if outcome.is_err() && !is_new {
            outcome = self.exchange(request.clone(), bytes_max);
        }
        self.judge(outcome)
    }

    fn judge(
        &mut self,
        outcome: Result<(StatusCode, Vec<u8>), Trouble>,
    ) -> Result<(StatusCode, Vec<u8>), Trouble> {
        let (status, body) = outcome?;
        self.answered = true;
        if status.is_success() { Ok((status, body)) } else { Err(self.refusal(status, &body)) }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        range: Option<String>,
    ) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut builder =
            Request::builder().method(method).uri(path).header(HOST, &*self.server.address);
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(range) = range {
            builder = builder.header(RANGE, range);
        }
        let request = builder.body(Full::default());
        request.map_err(|error| {
            Trouble::Lost(format!("{} cannot be asked for {path}: {error}", self.address))
        })
    }

    /// Opens a connection if there is none, and keeps it if all goes well.
    fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<(StatusCode, Vec<u8>), Trouble> {
        let kept = self.sender.take();
        let opened = match kept {
            Some(sender) => Ok(sender),
            None => self.runtime.block_on(open(&self.server)),
        };
        let mut sender = opened.map_err(|broken| {
            let (address, why) = (&self.address, why(&*broken));
            Trouble::Lost(format!("no connection to {address}: {why}"))
        })?;
        match self.runtime.block_on(answer(&mut sender, request, bytes_max)) {
            Ok(answer) => {
                self.sender = Some(sender);
                Ok(answer)
            }
            Err(broken) => Err(self.lost(&why(&*broken))),
        }
    }

    fn lost(&self, why: &str) -> Trouble {
        let address = &self.address;
        let lost = format!("the connection to {address} was lost: {why}");
        Trouble::Lost(match (self.answered, self.is_encrypted) {
            (true, _) => lost,
            (false, true) => format!("{lost}. Is this the address of the HTTP door?"),
            (false, false) => {
                format!("{lost}. Is this the address of the HTTP door? If it encrypts, give --tls")
            }
        })
    }

    /// Returns what a refusal says: its word, and its sentence.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> Trouble {
        let problem: Option<Value> = serde_json::from_slice(body).ok();
        let member = |name: &str| problem.as_ref()?.get(name)?.as_str();
        match (member("code"), member("detail")) {
            (Some(code), Some(detail)) => Trouble::Refused(with_way_in(format!("{code} {detail}"))),
            _ => Trouble::Refused(format!(
                "{} answers {status}: is this the HTTP door of a pinpriq server?",
                self.address
            )),
        }
    }
}

/// Returns the header that says who we are, if the environment does.
fn authorization() -> Result<Option<HeaderValue>, Failure> {
    let Some(Credentials { user, secret, variable }) = credentials() else { return Ok(None) };
    let text = if variable == TOKEN {
        format!("Bearer {secret}")
    } else {
        format!("Basic {}", STANDARD.encode(format!("{user}:{secret}")))
    };
    let value = HeaderValue::from_str(&text);
    let mut value = value.map_err(|_| {
        Failure::unusable(format!("{variable} has characters that cannot be sent over HTTP"))
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Connects, and begins to speak HTTP.
async fn open(server: &ServerAddress) -> Result<Sender, Broken> {
    let stream = within(OPENING, TcpStream::connect(&*server.address)).await??;
    stream.set_nodelay(true)?;
    let Some(peer) = &server.peer else { return begin(TokioIo::new(stream)).await };
    let connector = TlsConnector::from(peer.config());
    let stream = within(OPENING, connector.connect(peer.name().clone(), stream)).await??;
    begin(TokioIo::new(stream)).await
}

async fn begin(io: impl Read + Write + Unpin + Send + 'static) -> Result<Sender, Broken> {
    let (sender, connection) = handshake(io).await?;
    tokio::spawn(async move {
        // Its failure is that of the request that is under way.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Sends the request and reads the whole answer.
async fn answer(
    sender: &mut Sender,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Vec<u8>), Broken> {
    within(ANSWERING, sender.ready()).await??;
    let response = within(ANSWERING, sender.send_request(request)).await??;
    let status = response.status();
    let most = if status.is_success() { bytes_max } else { PROBLEM_BYTES_MAX };
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(frame) = within(ANSWERING, body.frame()).await? {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err("it answers with more than was asked for".into());
        }
        bytes.extend_from_slice(&data);
    }
    Ok((status, bytes))
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> io::Result<T> {
    let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
    tokio::time::timeout(limit, work).await.map_err(silent)
}

/// Says what is wrong with a connection, and why if that is known.
fn why(error: &(dyn StdError + 'static)) -> String {
    let shown = endpoint::shown(error);
    match error.source() {
        Some(source) if shown == error.to_string() => format!("{shown}: {source}"),
        _ => shown,
    }
}
