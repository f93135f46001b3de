//! A cluster, and one request to it. Which member is asked changes with the first trouble. What a
//! request means for a log is decided by its caller, and what hangs on a lease in `registry`.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::remote::LogState;
use pinpriq_store::ledger::{Seq, Unreachable, Writer};
use tonic::Response;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::etcd::keys::{Fence, Keys, number};
use crate::etcd::messages::{
    Call, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, TxnRequest, TxnResponse,
    send, send_streamed,
};
use crate::etcd::options::{EtcdError, EtcdOptions};
use crate::etcd::remote::EtcdRemote;
use crate::etcd::room::Quota;
use crate::etcd::sign_in::{Member, Pass, SignIn, has_token_ended, is_signed_out};
use crate::etcd::transaction::{key_read, one, reading};
use crate::etcd::trouble::{Trouble, Verdict};

/// How many logs are read at once. etcd accepts 128 parts of a transaction.
const LOGS_AT_ONCE: u16 = 32;

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
        self.each_member(|| self.ask(limit, request)).await
    }

    /// Sends a transaction to the member in use. One copy of it may reach the cluster.
    pub(crate) async fn transact_once(&self, request: &TxnRequest) -> Result<TxnResponse, Trouble> {
        self.ask(self.inner.options.attempt, request).await
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

    /// Sends a message to the member in use. After trouble, the next call asks another one.
    pub(crate) async fn ask<C: Call>(
        &self,
        limit: Duration,
        request: &C,
    ) -> Result<C::Answer, Trouble> {
        self.ask_within(limit, |member| send(member, request.clone(), limit)).await
    }

    /// Does so with a call.
    pub(crate) async fn ask_within<T, F>(
        &self,
        limit: Duration,
        call: impl Fn(Member) -> F,
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
        call: impl Fn(Member) -> F,
    ) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Response<T>, tonic::Status>>,
    {
        let channel = self.channel(index);
        let asked = async {
            let pass = self.pass(&channel).await?;
            let member = InterceptedService::new(channel.clone(), pass.clone());
            let mut answer = call(member).await;
            if let (Err(status), Some(sign_in)) = (&answer, &self.inner.sign_in)
                && is_signed_out(status)
            {
                sign_in.forget(&pass).await;
                if has_token_ended(status) {
                    let pass = self.pass(&channel).await?;
                    answer = call(InterceptedService::new(channel.clone(), pass)).await;
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

    /// Returns a new lease of this many seconds. Leases whose answers are lost end by themselves.
    pub(crate) async fn grant(&self, limit: Duration, seconds: i64) -> Result<i64, Trouble> {
        let request = LeaseGrantRequest { ttl: seconds };
        match self.each_member(|| self.ask(limit, &request)).await?.id {
            0 => Err(Trouble::Malformed("a lease")),
            lease => Ok(lease),
        }
    }

    /// Renews a lease. Returns whether it still lived.
    pub(crate) async fn keep_alive(&self, limit: Duration, lease: i64) -> Result<bool, Trouble> {
        let request = LeaseKeepAliveRequest { id: lease };
        let call =
            || self.ask_within(limit, |member| send_streamed(member, request.clone(), limit));
        match self.each_member(call).await {
            Ok(answer) => Ok(answer.ttl > 0),
            Err(trouble) if trouble.is_lease_gone() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Ends a lease, with all that hangs on it.
    pub(crate) async fn revoke(&self, limit: Duration, lease: i64) -> Result<(), Trouble> {
        let request = LeaseRevokeRequest { id: lease };
        match self.each_member(|| self.ask(limit, &request)).await {
            Err(trouble) if !trouble.is_lease_gone() => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Returns what the logs of this many shards have come to, or None for one that was never
    /// seized. Takes one request for each 32 shards, and ends as other calls.
    pub async fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable> {
        let read = self.within_deadline(async {
            let mut states = Vec::new();
            for start in (0..shards).step_by(usize::from(LOGS_AT_ONCE)) {
                let end = shards.min(start.saturating_add(LOGS_AT_ONCE));
                let name = &self.options().name;
                let keys: Vec<Keys> = (start..end).map(|shard| Keys::new(name, shard)).collect();
                let parts = keys.iter().flat_map(|it| [it.fence(), it.head(), it.first()]);
                let response = self.transact(&reading(parts.map(one).collect())).await?;
                for at in 0..keys.len() {
                    states.push(state(&response, at * 3)?);
                }
            }
            Ok(states)
        });
        read.await.unwrap_or(Err(Trouble::Silent)).map_err(|trouble| trouble.unreachable())
    }
}

/// Returns the state of the log whose keys are read from this place on.
fn state(response: &TxnResponse, at: usize) -> Result<Option<LogState>, Trouble> {
    let Some(fence) = key_read(response, at) else { return Ok(None) };
    let fence = Fence::parse(&fence.value).ok_or(Trouble::Malformed("the fence"))?;
    let number = |at, what| {
        let value = key_read(response, at).and_then(|pair| number(&pair.value));
        value.map(Seq).ok_or(Trouble::Malformed(what))
    };
    let head = number(at + 1, "the head")?;
    let first = number(at + 2, "the first entry")?;
    Ok(Some(LogState { tenure: fence.tenure, head, first }))
}
