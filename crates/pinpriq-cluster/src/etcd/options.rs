//! How a cluster is used, and what of that is refused. Nothing here reaches for the cluster.

use std::time::Duration;

use pinpriq_tls::{Identity, Tls};
use tonic::transport::{ClientTlsConfig, Endpoint};

use crate::etcd::sign_in::EtcdUser;

/// The longest name of an installation, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// How a cluster of etcd is used.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Where its members listen for clients, such as `http://10.0.0.1:2379`, or
    /// `https://10.0.0.1:2379` with [`EtcdOptions::tls`]. At least one. They are used one at a
    /// time.
    pub endpoints: Vec<String>,
    /// How connections are encrypted, if they are. Whatever it says of whom a server must be,
    /// members must have certificates for their hosts.
    pub tls: Option<Tls>,
    /// Who signs in, if etcd wants passwords.
    pub user: Option<EtcdUser>,
    /// The name of the installation, so that several of them can share a cluster: 1 to 40 letters,
    /// digits, `_` and `-` of ASCII.
    pub name: String,
    /// After this time every call is answered.
    pub deadline: Duration,
    /// After this time a member that is silent is left for the next one. An append is tried once.
    pub attempt: Duration,
    /// After this time a member that cannot be connected is left for the next one.
    pub connect: Duration,
    /// The most bytes that the database may have. It must be lower than etcd's own quota, which is
    /// 2 GiB unless `--quota-backend-bytes` says otherwise.
    pub bytes_max: u64,
}

impl EtcdOptions {
    /// Calls end after 5 s, attempts after 2 s, connecting after 1 s. The database may have 1 GiB.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            tls: None,
            user: None,
            name: name.into(),
            deadline: Duration::from_secs(5),
            attempt: Duration::from_secs(2),
            connect: Duration::from_secs(1),
            bytes_max: 1 << 30,
        }
    }

    /// Returns the endpoints, if everything else is right too.
    pub(crate) fn check(&self) -> Result<Vec<Endpoint>, EtcdError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let length_fits = (1..=NAME_BYTES_MAX).contains(&self.name.len());
        if !length_fits || !self.name.bytes().all(is_plain) {
            return Err(EtcdError::Name { name: self.name.clone() });
        }
        if self.endpoints.is_empty() {
            return Err(EtcdError::NoEndpoint);
        }
        self.endpoints.iter().map(|text| self.endpoint(text)).collect()
    }

    fn endpoint(&self, text: &str) -> Result<Endpoint, EtcdError> {
        let refused =
            |why: &str| EtcdError::Endpoint { endpoint: text.to_owned(), why: why.into() };
        let scheme = if self.tls.is_some() { "https://" } else { "http://" };
        let Some(authority) = text.strip_prefix(scheme) else {
            return Err(refused(&format!("it must begin with {scheme}")));
        };
        if authority.is_empty() || authority.contains(['/', '?', '#', '@']) {
            return Err(refused(&format!("it must be {scheme}HOST:PORT")));
        }
        let endpoint = Endpoint::from_shared(text.to_owned());
        let endpoint = endpoint.map_err(|error| refused(&error.to_string()))?;
        if endpoint.uri().port_u16().is_none() {
            return Err(refused("it must have a port"));
        }
        let endpoint = match &self.tls {
            None => endpoint,
            Some(tls) => {
                let encrypted = endpoint.tls_config(tls_config(tls));
                encrypted.map_err(|_| refused("its host can be in no certificate"))?
            }
        };
        Ok(endpoint.connect_timeout(self.connect).tcp_keepalive(Some(Duration::from_secs(15))))
    }
}

fn tls_config(tls: &Tls) -> ClientTlsConfig {
    let config = ClientTlsConfig::new().trust_anchors(tls.anchors());
    match tls.identity() {
        None => config,
        Some(Identity { certificates, key }) => {
            let (certificates, key) = (&certificates.text, &key.text);
            config.identity(tonic::transport::Identity::from_pem(certificates, key))
        }
    }
}

/// What is wrong with the options of a cluster or with a shard.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EtcdError {
    /// The name cannot be a part of a key.
    #[error("the name {name:?} must be 1 to 40 ASCII letters, digits, `_` and `-`")]
    Name {
        /// The name.
        name: String,
    },
    /// There is no server to ask.
    #[error("there must be at least one endpoint")]
    NoEndpoint,
    /// An endpoint cannot be used.
    #[error("the endpoint {endpoint:?} cannot be used: {why}")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
    /// The number of a shard has more than four digits.
    #[error("shard {shard} is above 9999")]
    Shard {
        /// The shard.
        shard: u16,
    },
}
