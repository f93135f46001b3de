//! A cluster, and one request to it. Which member is asked changes with the first trouble. What a
//! request means for a log is decided by its caller.

use std::error::Error as _;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinpriq_store::ledger::{Unreachable, Writer};
use pinpriq_tls::{Options, explain};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response};

use crate::etcd::generated::kv_client::KvClient;
use crate::etcd::generated::{TxnRequest, TxnResponse};
use crate::etcd::options::{EtcdError, EtcdOptions};
use crate::etcd::remote::EtcdRemote;
use crate::etcd::room::Quota;
use crate::etcd::sign_in::{Member, Pass, SignIn, has_token_ended, is_signed_out};

/// The largest answer that is accepted, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What etcd says when it has no room.
const FULL: &str = "etcdserver: mvcc: database space exceeded";

/// What that means for people.
const FULL_MEANS: &str = "it has reached its own quota, --quota-backend-bytes, and refuses every \
                          change until a node has made room";

/// What etcd says of a request above `--max-request-bytes`.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// What the library under etcd says of a message that is larger than etcd would read.
const TOO_LARGE_TO_READ: &str = "grpc: received message larger than max (";

/// What etcd says of a lease that has ended, and of what should hang on it.
const LEASE_GONE: &str = "etcdserver: requested lease not found";

/// What etcd says of a user or a password that it does not know, of a request without a user, and
/// of one that the user may not make, each with what to do. Every member says the same.
const NOT_ALLOWED: [(&str, &str); 3] = [
    (
        "etcdserver: authentication failed, invalid user ID or password",
        "it does not know this user with this password",
    ),
    (
        "etcdserver: user name is empty",
        "it asks for a user and a password: name them in the address, or a certificate that has \
         the user as its common name",
    ),
    (
        "etcdserver: permission denied",
        "the user has no right to these keys: grant its role to read and write all that begin \
         with pinpriq/ and the name of the cluster",
    ),
];

/// What the options of an address are called.
const TLS_OPTIONS: Options = Options { roots: "cacert", identity: "cert and key" };

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
    /// The user, if there is one.
    sign_in: Option<SignIn>,
    quota: Quota,
}

/// Why there is no answer that could be used.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There was none in time.
    Silent,
    /// It was an error.
    Error(Box<tonic::Status>),
    /// The encrypted connection was ended before there was one. What the other side says of our
    /// certificate comes after the handshake, and the library under tonic does not pass it on.
    HungUp,
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
    /// What is certain of the request that has had this answer: it has arrived. If
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

    /// Whether a lease has ended. Then nothing was done.
    pub(crate) fn is_lease_gone(&self) -> bool {
        matches!(self, Self::Error(status) if status.message() == LEASE_GONE)
    }

    /// Whether a connection was lost on which the handshake had succeeded.
    fn is_of_connection(&self) -> bool {
        let Self::Error(status) = self else { return false };
        // What etcd says has no source.
        let is_lost = matches!(status.code(), Code::Cancelled | Code::Unknown);
        is_lost && status.source().is_some() && explain(&**status, TLS_OPTIONS).is_none()
    }

    /// What is to be done about a user that may not do what it has asked for.
    fn remedy(&self) -> Option<&'static str> {
        let Self::Error(status) = self else { return None };
        let known = NOT_ALLOWED.iter().find(|(text, _)| *text == status.message());
        known.map(|(_, remedy)| *remedy)
    }

    /// Whether another member would answer the same.
    fn is_final(&self) -> bool {
        self.is_too_much() || self.is_lease_gone() || self.remedy().is_some()
    }

    /// What happened, for people.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Silent => "it was silent".to_owned(),
            Self::Error(status) => {
                let known = self.remedy().map(str::to_owned);
                let full = (self.verdict() == Some(Verdict::Full)).then(|| FULL_MEANS.to_owned());
                let known = known.or(full).or_else(|| explain(&**status, TLS_OPTIONS));
                known.unwrap_or_else(|| format!("{}: {}", status.code(), status.message()))
            }
            Self::HungUp => "it has ended the encrypted connection: if it always does, name a \
                             certificate that it trusts with cert and key"
                .to_owned(),
            Self::Malformed(what) => format!("{what} is malformed"),
        }
    }

    pub(crate) fn unreachable(&self) -> Unreachable {
        Unreachable { why: self.why() }
    }
}

impl Etcd {
    /// Checks the options. Connects to nothing yet.
    pub fn new(options: EtcdOptions) -> Result<Self, EtcdError> {
        let endpoints = options.check()?;
        let channels = Mutex::new(vec![None; endpoints.len()]);
        let current = AtomicUsize::new(0);
        let sign_in = options.user.clone().map(SignIn::new);
        let quota = Quota::default();
        let inner = Inner { options, endpoints, channels, current, sign_in, quota };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The log of a shard for a writer. Asks nothing yet. Refuses shards above 9999.
    pub fn remote(&self, shard: u16, writer: Writer) -> Result<EtcdRemote, EtcdError> {
        if shard > 9_999 {
            return Err(EtcdError::Shard { shard });
        }
        Ok(EtcdRemote::new(self.clone(), shard, writer))
    }

    pub(crate) fn options(&self) -> &EtcdOptions {
        &self.inner.options
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.inner.quota
    }

    /// Where the member in use listens, if connections are not encrypted.
    pub(crate) fn plain_member(&self) -> Option<String> {
        let uri = self.inner.endpoints[self.inner.current.load(Ordering::Relaxed)].uri();
        let authority = uri.authority().map(ToString::to_string);
        authority.filter(|_| self.inner.options.tls.is_none())
    }

    /// How many members there are to ask.
    pub(crate) fn members(&self) -> usize {
        self.inner.endpoints.len()
    }

    /// Sends a transaction to one member after the other, until one of them answers.
    ///
    /// Several copies of it may reach the cluster, and some of them later.
    pub(crate) async fn transact(&self, request: &TxnRequest) -> Result<TxnResponse, Trouble> {
        self.transact_within(self.inner.options.attempt, request).await
    }

    /// Does so with this limit for each member.
    pub(crate) async fn transact_within(
        &self,
        limit: Duration,
        request: &TxnRequest,
    ) -> Result<TxnResponse, Trouble> {
        self.each_member(|| self.transact_at(limit, request)).await
    }

    /// Sends a transaction to the member in use. One copy of it may reach the cluster.
    pub(crate) async fn transact_once(&self, request: &TxnRequest) -> Result<TxnResponse, Trouble> {
        self.transact_at(self.inner.options.attempt, request).await
    }

    /// Does so with this limit.
    pub(crate) async fn transact_at(
        &self,
        limit: Duration,
        request: &TxnRequest,
    ) -> Result<TxnResponse, Trouble> {
        let sent = self.ask_within(limit, |member, limit| {
            let request = timed(request.clone(), limit);
            async move {
                let client = KvClient::new(member);
                let mut accepting = client.max_decoding_message_size(ANSWER_BYTES_MAX);
                accepting.txn(request).await
            }
        });
        sent.await
    }

    /// Repeats a call until a member answers, as often as there are members.
    pub(crate) async fn each_member<T, F>(&self, call: impl Fn() -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let mut trouble = Trouble::Silent;
        for _ in &self.inner.endpoints {
            match call().await {
                Err(met) if !met.is_final() => trouble = met,
                answer => return answer,
            }
        }
        Err(trouble)
    }

    /// Asks the member in use. After trouble, the next call asks another one.
    pub(crate) async fn ask_within<T, F>(
        &self,
        limit: Duration,
        call: impl Fn(Member, Duration) -> F,
    ) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        self.ask_at(self.inner.current.load(Ordering::Relaxed), limit, call).await
    }

    /// Asks one member.
    ///
    /// A call that was refused because its token has ended is made once more with a new one. The
    /// member has looked at the token before anything else, so this is no second copy of it.
    pub(crate) async fn ask_at<T, F>(
        &self,
        index: usize,
        limit: Duration,
        call: impl Fn(Member, Duration) -> F,
    ) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        let channel = self.channel(index);
        let asked = async {
            let pass = self.pass(&channel).await?;
            let member = InterceptedService::new(channel.clone(), pass.clone());
            let mut answer = call(member, limit).await;
            if let (Err(status), Some(sign_in)) = (&answer, &self.inner.sign_in)
                && is_signed_out(status)
            {
                sign_in.forget(&pass).await;
                if has_token_ended(status) {
                    let pass = self.pass(&channel).await?;
                    answer = call(InterceptedService::new(channel.clone(), pass), limit).await;
                }
            }
            answer.map_err(|status| self.trouble(status))
        };
        let trouble = match tokio::time::timeout(limit, asked).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble::Silent,
        };
        match trouble.verdict() {
            Some(Verdict::Full) => self.inner.quota.meet(),
            Some(Verdict::TooLarge) => {}
            None if trouble.is_final() => {}
            None => self.leave(index),
        }
        Err(trouble)
    }

    fn trouble(&self, status: tonic::Status) -> Trouble {
        let trouble = Trouble::Error(Box::new(status));
        let is_encrypted = self.inner.options.tls.is_some();
        if is_encrypted && trouble.is_of_connection() { Trouble::HungUp } else { trouble }
    }

    /// What shows this member who asks.
    async fn pass(&self, channel: &Channel) -> Result<Pass, Trouble> {
        match &self.inner.sign_in {
            None => Ok(Pass::default()),
            Some(sign_in) => sign_in.pass(channel, self.inner.options.attempt).await,
        }
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
        // Another call may have turned to it already.
        _ = self.inner.current.compare_exchange(index, next, order, order);
    }

    /// Ends a call at the deadline. What it has sent may still be carried out.
    pub(crate) async fn within_deadline<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(self.inner.options.deadline, work).await.ok()
    }
}

/// A request that the member gives up too.
pub(crate) fn timed<T>(message: T, limit: Duration) -> Request<T> {
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
