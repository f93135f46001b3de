//! The side that connects.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::{ServerName, TrustAnchor};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::{Identity, Pem, TlsError, authorities, misfit, provider, read, trust};

/// The authorities that may sign the certificate of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// Those that the machine trusts.
    OfTheSystem,
    /// Those in this text.
    Pem(Pem),
}

/// Whom a server must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Anybody. This protects only from those who read and do not change what is sent.
    Anybody,
    /// A server with a certificate of these authorities, for any host.
    Authority(Roots),
    /// The host that was connected to, with a certificate of these authorities.
    Host(Roots),
}

/// How a connection is encrypted. Clones are handles to the same.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    roots: Arc<RootCertStore>,
    identity: Option<Arc<Identity>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Tls {
    /// Checks what was given. Reads the certificates of the system, if they are wanted.
    pub fn new(trust: &Trust, identity: Option<Identity>) -> Result<Self, TlsError> {
        let provider = provider();
        let roots = Arc::new(match trust {
            Trust::Anybody => RootCertStore::empty(),
            Trust::Authority(roots) | Trust::Host(roots) => store(roots)?,
        });
        let verifier = trust::verifier(trust, &roots, &provider)?;
        let Ok(builder) = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
        else {
            unreachable!("ring has suites for both versions")
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let config = match &identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = read(identity)?;
                let with_own = builder.with_client_auth_cert(certificates, key);
                with_own.map_err(|error| misfit(identity, &error))?
            }
        };
        Ok(Self { config: Arc::new(config), roots, identity: identity.map(Arc::new) })
    }

    /// What rustls needs.
    #[must_use]
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }

    /// The authorities that are trusted. There is none for [`Trust::Anybody`].
    #[must_use]
    pub fn anchors(&self) -> Vec<TrustAnchor<'static>> {
        self.roots.roots.clone()
    }

    /// Our own certificate and key.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }
}

fn store(roots: &Roots) -> Result<RootCertStore, TlsError> {
    match roots {
        Roots::OfTheSystem => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() { Err(TlsError::NoRoots) } else { Ok(store) }
        }
        Roots::Pem(pem) => authorities(pem),
    }
}

/// The server at the other end of a connection, and how the connection is encrypted. Clones are
/// handles to the same.
#[derive(Clone, Debug)]
pub struct Peer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.name == other.name
    }
}

impl Eq for Peer {}

impl Peer {
    /// Returns the server of this host, a name or an address without a port. Refuses what is
    /// neither.
    pub fn new(tls: &Tls, host: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TlsError::NoHost { host: host.to_owned() })?;
        Ok(Self { config: Arc::clone(&tls.config), name })
    }

    /// What rustls needs for an asynchronous connection.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Who the server must be.
    #[must_use]
    pub const fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// Returns our side of a new connection, which has not said anything yet.
    pub fn connection(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}
