//! A cluster, and one request to it. Which member is asked changes with the first trouble. What a
//! request means for a log is decided by its caller.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinpriq_ledger::{Status, Unreachable, Writer};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response};

use crate::generated::kv_client::KvClient;
use crate::generated::maintenance_client::MaintenanceClient;
use crate::generated::{CompactionRequest, StatusRequest, TxnRequest, TxnResponse};
use crate::options::{EtcdError, EtcdOptions};
use crate::remote::EtcdRemote;
use crate::transaction::reading;

/// The largest answer that is accepted, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What etcd says when it has no room.
const FULL: &str = "etcdserver: mvcc: database space exceeded";

/// What etcd says of a request above `--max-request-bytes`.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// What the library under etcd says of a message that is larger than etcd would read.
const TOO_LARGE_TO_READ: &str = "grpc: received message larger than max (";

/// What etcd says when somebody else has compacted as far or farther.
const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

/// A cluster of etcd. Clones use the same connections.
///
/// All its calls are made on one async runtime, with time and network.
#[derive(Clone)]
pub struct Etcd {
    inner: Arc<Inner>,
}

struct Inner {
    options: EtcdOptions,
    endpoints: Vec<Endpoint>,
    /// The connection to each endpoint, if it was used.
    channels: Mutex<Vec<Option<Channel>>>,
    /// The endpoint in use.
    current: AtomicUsize,
}

/// Why there is no answer that could be used.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There was none in time.
    Silent,
    /// It was an error.
    Error(Box<tonic::Status>),
    /// It does not say what it should.
    Malformed(&'static str),
}

/// What an error says for certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Full,
    TooLarge,
}

impl Trouble {
    /// What is certain of the request that has had this answer: it is not on its way any more. If
    /// it was too large, it has changed nothing. If etcd is full, it may have changed something.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let Self::Error(status) = self else { return None };
        let (code, text) = (status.code(), status.message());
        let is_refusal = matches!(code, Code::InvalidArgument | Code::ResourceExhausted);
        if code == Code::ResourceExhausted && text == FULL {
            Some(Verdict::Full)
        } else if is_refusal && (text == TOO_LARGE || text.starts_with(TOO_LARGE_TO_READ)) {
            Some(Verdict::TooLarge)
        } else {
            None
        }
    }

    /// Whether the answer may have had more bytes than are accepted.
    pub(crate) fn is_too_much(&self) -> bool {
        matches!(self, Self::Error(status) if status.code() == Code::OutOfRange)
    }

    pub(crate) fn unreachable(&self) -> Unreachable {
        let why = match self {
            Self::Silent => "it was silent".to_owned(),
            Self::Error(status) => format!("{}: {}", status.code(), status.message()),
            Self::Malformed(what) => format!("{what} is malformed"),
        };
        Unreachable { why }
    }
}

impl Etcd {
    /// Checks the options. Connects to nothing yet.
    pub fn new(options: EtcdOptions) -> Result<Self, EtcdError> {
        let endpoints = options.check()?;
        let channels = Mutex::new(vec![None; endpoints.len()]);
        let current = AtomicUsize::new(0);
        Ok(Self { inner: Arc::new(Inner { options, endpoints, channels, current }) })
    }

    /// The log of a shard for a writer. Asks nothing yet. Refuses shards above 9999.
    pub fn remote(&self, shard: u16, writer: Writer) -> Result<EtcdRemote, EtcdError> {
        if shard > 9_999 {
            return Err(EtcdError::Shard { shard });
        }
        Ok(EtcdRemote::new(self.clone(), shard, writer))
    }

    /// Has the cluster forget all former values of all its keys, which the logs do not need, and
    /// returns the revision up to which it did. The room can be used again, but the file of a
    /// member does not shrink. Everybody who uses the cluster must agree. It ends as other calls.
    pub async fn compact(&self) -> Result<i64, Unreachable> {
        let compacted = self.within_deadline(async {
            // Any read tells the revision.
            let read = self.transact(&reading(Vec::new())).await?;
            let Some(header) = read.header else { return Err(Trouble::Malformed("a header")) };
            let request = CompactionRequest { revision: header.revision };
            let sent = self.ask(|channel, limit| async move {
                KvClient::new(channel).compact(timed(request, limit)).await
            });
            match sent.await {
                Err(Trouble::Error(status)) if status.message() == COMPACTED => {}
                sent => _ = sent?,
            }
            Ok(header.revision)
        });
        compacted.await.unwrap_or(Err(Trouble::Silent)).map_err(|trouble| trouble.unreachable())
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.options.name
    }

    /// How much room the member in use has.
    pub(crate) async fn status(&self) -> Result<Status, Trouble> {
        let mut trouble = Trouble::Silent;
        for _ in &self.inner.endpoints {
            let sent = self.ask(|channel, limit| async move {
                MaintenanceClient::new(channel).status(timed(StatusRequest {}, limit)).await
            });
            match sent.await {
                Ok(status) => {
                    // Members before 3.4 do not know how much is in use.
                    let sizes = [status.db_size_in_use, status.db_size];
                    let size = sizes.into_iter().find(|size| *size > 0).unwrap_or(0);
                    let bytes_used = u64::try_from(size).unwrap_or(0);
                    return Ok(Status { bytes_used, bytes_max: self.inner.options.bytes_max });
                }
                Err(met) => trouble = met,
            }
        }
        Err(trouble)
    }

    /// Sends a transaction to one member after the other, until one of them answers.
    ///
    /// Several copies of it may reach the cluster, and some of them later.
    pub(crate) async fn transact(&self, request: &TxnRequest) -> Result<TxnResponse, Trouble> {
        let mut trouble = Trouble::Silent;
        for _ in &self.inner.endpoints {
            match self.transact_once(request.clone()).await {
                Err(met) if !met.is_too_much() => trouble = met,
                answer => return answer,
            }
        }
        Err(trouble)
    }

    /// Sends a transaction to the member in use. One copy of it may reach the cluster.
    pub(crate) async fn transact_once(&self, request: TxnRequest) -> Result<TxnResponse, Trouble> {
        let sent = self.ask(|channel, limit| async move {
            let client = KvClient::new(channel);
            let mut accepting = client.max_decoding_message_size(ANSWER_BYTES_MAX);
            accepting.txn(timed(request, limit)).await
        });
        sent.await
    }

    /// Asks the member in use. After trouble, the next call asks another one.
    async fn ask<T, F>(&self, call: impl FnOnce(Channel, Duration) -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        let limit = self.inner.options.attempt;
        let index = self.inner.current.load(Ordering::Relaxed);
        let channel = self.channel(index);
        let trouble = match tokio::time::timeout(limit, call(channel, limit)).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => Trouble::Error(Box::new(status)),
            Err(_) => Trouble::Silent,
        };
        if !trouble.is_too_much() && trouble.verdict().is_none() {
            self.leave(index);
        }
        Err(trouble)
    }

    fn channel(&self, index: usize) -> Channel {
        let mut channels = self.inner.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels[index].get_or_insert_with(|| self.inner.endpoints[index].connect_lazy()).clone()
    }

    /// Turns to the next member. This one is connected anew when it is used again.
    fn leave(&self, index: usize) {
        let mut channels = self.inner.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels[index] = None;
        let next = (index + 1) % channels.len();
        let order = Ordering::Relaxed;
        // Somebody else may have turned to it already.
        _ = self.inner.current.compare_exchange(index, next, order, order);
    }

    /// Ends a call at the deadline. What it has sent may still be carried out.
    pub(crate) async fn within_deadline<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(self.inner.options.deadline, work).await.ok()
    }
}

/// A request that the member gives up too.
fn timed<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Status};

    use super::{Trouble, Verdict};

    #[test]
    fn only_known_texts_are_certain() {
        let full = "etcdserver: mvcc: database space exceeded";
        let large = "etcdserver: request is too large";
        let larger = "grpc: received message larger than max (3145795 vs. 2097152)";
        for (code, text, verdict) in [
            (Code::ResourceExhausted, full, Some(Verdict::Full)),
            (Code::Unavailable, full, None),
            (Code::ResourceExhausted, "etcdserver: too many requests", None),
            (Code::InvalidArgument, large, Some(Verdict::TooLarge)),
            (Code::ResourceExhausted, large, Some(Verdict::TooLarge)),
            (Code::Unknown, large, None),
            (Code::ResourceExhausted, larger, Some(Verdict::TooLarge)),
            (Code::InvalidArgument, "etcdserver: request is too large.", None),
            (Code::Unavailable, "etcdserver: leader changed", None),
        ] {
            let trouble = Trouble::Error(Box::new(Status::new(code, text)));
            assert_eq!(trouble.verdict(), verdict, "{code:?} {text}");
        }
        assert_eq!(Trouble::Silent.verdict(), None);
    }
}
