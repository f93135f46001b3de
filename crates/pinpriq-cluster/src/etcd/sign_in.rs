//! Signing in to an etcd that wants users and passwords. A sign-in gives a token, which every
//! request carries, and which ends after a time. Then the next request signs in again. Sessions
//! outlive their tokens: leases belong to no user.

use std::fmt;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::etcd::messages::{AuthenticateRequest, send};
use crate::etcd::trouble::Trouble;

/// The connection to a member, with what shows who asks.
pub(crate) type Member = InterceptedService<Channel, Pass>;

/// What etcd says to who signs in if it wants no passwords.
const NOT_WANTED: &str = "etcdserver: authentication is not enabled";

/// What etcd says of a token that it no longer knows. It looks at the token first.
const TOKEN_ENDED: &str = "etcdserver: invalid auth token";

/// What etcd says of requests that need another token.
const SIGNED_OUT: [&str; 3] = [
    TOKEN_ENDED,
    // Rights were changed since the token was given.
    "etcdserver: revision of auth store is old",
    // There was no token, and etcd has begun to want passwords.
    "etcdserver: user name is empty",
];

/// A user of etcd and its password. Its `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdUser").field(&self.name).finish()
    }
}

/// What a request carries to show who asks.
#[derive(Clone, Default)]
pub(crate) struct Pass {
    /// Each sign-in has another one.
    number: u64,
    token: Option<MetadataValue<Ascii>>,
}

impl Interceptor for Pass {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        Ok(request)
    }
}

/// The user of a cluster, and the pass that it has.
pub(crate) struct SignIn {
    user: EtcdUser,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many sign-ins have succeeded.
    count: u64,
    pass: Option<Pass>,
    /// It goes on when the caller has gone: etcd takes its time to check a password.
    under_way: Option<JoinHandle<Result<Option<MetadataValue<Ascii>>, Trouble>>>,
}

impl SignIn {
    pub(crate) fn new(user: EtcdUser) -> Self {
        Self { user, state: Mutex::default() }
    }

    /// Returns the pass. Signs in at this member first, within this time, if there is none. One
    /// sign-in is under way at a time.
    pub(crate) async fn pass(&self, channel: &Channel, limit: Duration) -> Result<Pass, Trouble> {
        let State { count, pass, under_way } = &mut *self.state.lock().await;
        if let Some(pass) = pass {
            return Ok(pass.clone());
        }
        let task = under_way.get_or_insert_with(|| {
            let (user, channel) = (self.user.clone(), channel.clone());
            tokio::spawn(sign_in(user, channel, limit))
        });
        let signed_in = task.await;
        *under_way = None;
        let token = signed_in.unwrap_or(Err(Trouble::Silent))?;
        *count += 1;
        Ok(pass.insert(Pass { number: *count, token }).clone())
    }

    /// Notes that etcd no longer knows this pass.
    pub(crate) async fn forget(&self, old: &Pass) {
        self.state.lock().await.pass.take_if(|pass| pass.number == old.number);
    }
}

/// Whether etcd has refused a request before it did anything, since its token has ended.
pub(crate) fn has_token_ended(status: &Status) -> bool {
    status.message() == TOKEN_ENDED
}

/// Whether the next request needs another token.
pub(crate) fn is_signed_out(status: &Status) -> bool {
    SIGNED_OUT.contains(&status.message())
}

/// Returns a token, or none if no passwords are wanted.
async fn sign_in(
    user: EtcdUser,
    channel: Channel,
    limit: Duration,
) -> Result<Option<MetadataValue<Ascii>>, Trouble> {
    let request = AuthenticateRequest { name: user.name, password: user.password };
    let member = InterceptedService::new(channel, Pass::default());
    let answer = tokio::time::timeout(limit, send(member, request, limit)).await;
    match answer.map_err(|_| Trouble::Silent)? {
        Ok(answer) => {
            let token = MetadataValue::try_from(answer.into_inner().token);
            let mut token = token.map_err(|_| Trouble::Malformed("a token"))?;
            token.set_sensitive(true);
            Ok(Some(token))
        }
        Err(status) if status.message() == NOT_WANTED => Ok(None),
        Err(status) => Err(Trouble::Error(Box::new(status))),
    }
}
