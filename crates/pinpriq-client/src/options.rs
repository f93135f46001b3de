//! How a client reaches its server, and how it behaves when it does not.

use std::fmt;
use std::time::Duration;

use pinpriq_tls::{Peer, Roots, Tls, Trust};
use thiserror::Error;

use crate::address::{Address, HostPort};

/// The options of a client. All have defaults; only the address is required.
///
/// ```
/// # use std::time::Duration;
/// # use pinpriq_client::Options;
/// let options = Options::at("pinpriq://queue.example:7251")?
///     .sign_in("worker", "a token")
///     .name("thumbnails")
///     .retry_for(Duration::from_secs(60));
/// # Ok::<(), pinpriq_client::BadAddress>(())
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) address: Address,
    pub(crate) tls: Option<Tls>,
    pub(crate) name: Option<String>,
    pub(crate) retry_for: Duration,
    pub(crate) timeout: Duration,
    pub(crate) window: Option<Duration>,
}

/// An address that cannot be used. The message does not repeat it, since it may hold a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the address of the server cannot be used: {0}")]
pub struct BadAddress(&'static str);

/// No password is shown.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("server", &self.address.shown()).finish_non_exhaustive()
    }
}

impl Options {
    /// Returns the options for the server at `pinpriq://user:password@host:port`, or
    /// `pinpriqs://…` for one over TLS.
    ///
    /// All but the scheme can be left out. The default is port 7251, or 7261 with TLS, on this
    /// machine. User and password are percent-encoded. `redis://` and `rediss://` mean the same.
    /// With several servers, such as the nodes of a cluster in `pinpriq://a:7251,b:7251`, it
    /// connects to the first one that answers, and to the next one when that is lost.
    pub fn at(url: &str) -> Result<Self, BadAddress> {
        Ok(Self {
            address: Address::parse(url).map_err(BadAddress)?,
            tls: None,
            name: None,
            retry_for: Duration::from_secs(15),
            timeout: Duration::from_secs(10),
            window: None,
        })
    }

    /// Signs in as a user with a password or a token. The default is what the URL says.
    #[must_use]
    pub fn sign_in(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.address.user = Some(user.into());
        self.address.password = Some(password.into());
        self
    }

    /// Encrypts connections like this. The default for `pinpriqs://` is to trust the authorities
    /// that the machine trusts.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.address.is_encrypted = true;
        self.tls = Some(tls);
        self
    }

    /// Gives the connections a name, which the server shows where it tells who holds a task. The
    /// default is the name of the program and the number of the process.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sends a request again for this long after a connection broke, if it is safe to repeat. The
    /// default is 15 seconds. 0 never repeats.
    #[must_use]
    pub const fn retry_for(mut self, span: Duration) -> Self {
        self.retry_for = span;
        self
    }

    /// Treats a connection as broken if a reply takes this much longer than the request may wait.
    /// The default is 10 seconds.
    #[must_use]
    pub const fn timeout(mut self, span: Duration) -> Self {
        self.timeout = span;
        self
    }

    /// Has the server remember the unique key of a put for this long, at least. The default is 5
    /// seconds longer than a put may be repeated; a shorter window than that could make two tasks
    /// of one put.
    #[must_use]
    pub const fn window(mut self, span: Duration) -> Self {
        self.window = Some(span);
        self
    }

    /// How long the server remembers the unique key that a put has of the client.
    pub(crate) fn own_window(&self) -> Duration {
        self.window.unwrap_or(self.retry_for + self.timeout + Duration::from_secs(5))
    }

    /// How long one request may wait at the server. Longer waits are several requests, so that a
    /// server that has gone is noticed.
    pub(crate) fn slice(&self) -> Duration {
        self.timeout.mul_f64(0.6)
    }

    /// The servers as their certificates must show them, if connections are encrypted, in the order
    /// of the address.
    pub(crate) fn peers(&self) -> Result<Vec<Option<Peer>>, String> {
        let hosts = &self.address.hosts;
        if !self.address.is_encrypted {
            return Ok(vec![None; hosts.len()]);
        }
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => {
                Tls::new(&Trust::Host(Roots::OfTheSystem), None).map_err(|it| it.to_string())?
            }
        };
        let peer = |host: &HostPort| Peer::new(&tls, &host.host).map(Some);
        hosts.iter().map(peer).collect::<Result<_, _>>().map_err(|error| error.to_string())
    }
}
