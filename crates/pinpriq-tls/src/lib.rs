//! Encrypted connections: whom the other side must be, and who we are, as rustls needs it. Reads no
//! file: certificates and keys come as the texts of PEM files. Opens no connection.
//!
//! [`Tls`] is for the side that connects, [`server_config`] for the side that is connected to. Both
//! know TLS 1.2 and 1.3 only. [`NodeKey`] is for both sides of a link between two nodes.

mod client;
mod node;
mod server;
mod trouble;
mod trust;

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

pub use self::client::{Peer, Roots, Tls, Trust};
pub use self::node::{Fingerprint, NodeKey, fingerprint, is_other_node};
pub use self::server::{Clients, common_name, server_config};
pub use self::trouble::{Options, explain};

/// A text in PEM, and what it is called in messages: usually the name of a file. Its `Debug` does
/// not show the text, which may be a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// What it is called.
    pub name: String,
    /// The text.
    pub text: Vec<u8>,
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.name).finish()
    }
}

/// Our own certificate with those of its issuers, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The certificates, our own first.
    pub certificates: Pem,
    /// The key, which must not be encrypted.
    pub key: Pem,
}

/// Why certificates or keys cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TlsError {
    /// The system trusts no certificate.
    #[error(
        "this machine has no certificates of authorities: install them (the package is mostly \
         called ca-certificates), or name a file with the right one"
    )]
    NoRoots,
    /// There is no certificate where one should be.
    #[error("{name} holds no certificate in PEM (BEGIN CERTIFICATE) that can be read")]
    NoCertificate {
        /// What the text is called.
        name: String,
    },
    /// There is no key where one should be.
    #[error("{name} holds no private key in PEM (BEGIN PRIVATE KEY) that can be read")]
    NoKey {
        /// What the text is called.
        name: String,
    },
    /// Only its owner can read the key.
    #[error(
        "the key in {name} is encrypted with a password: write one without, for example with \
         `openssl pkey -in {name} -out NEW`, and let only the user of the server read it"
    )]
    EncryptedKey {
        /// What the text is called.
        name: String,
    },
    /// A host has no name that a certificate could have.
    #[error("{host:?} is no name of a host, and no address")]
    NoHost {
        /// What was given.
        host: String,
    },
    /// The two do not belong together, or are of a kind that is not supported.
    #[error("the certificate in {certificates} and the key in {key} cannot be used: {why}")]
    Identity {
        /// What the text with the certificate is called.
        certificates: String,
        /// What the text with the key is called.
        key: String,
        /// What is wrong with them.
        why: String,
    },
}

/// Returns the certificates in a text, of which there is at least one.
fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.text).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(TlsError::NoCertificate { name: pem.name.clone() }),
    }
}

type CertificatesAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read(identity: &Identity) -> Result<CertificatesAndKey, TlsError> {
    let certificates = certificates(&identity.certificates)?;
    let Pem { name, text } = &identity.key;
    let key = PrivateKeyDer::from_pem_slice(text).map_err(|_| {
        let name = name.clone();
        let is_encrypted = text.windows(9).any(|part| part == b"ENCRYPTED");
        if is_encrypted { TlsError::EncryptedKey { name } } else { TlsError::NoKey { name } }
    })?;
    Ok((certificates, key))
}

/// Returns the authorities in a text.
fn authorities(pem: &Pem) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(pem)? {
        let added = store.add(certificate);
        added.map_err(|_| TlsError::NoCertificate { name: pem.name.clone() })?;
    }
    Ok(store)
}

/// Returns who refuses certificates and keys that do not fit.
fn misfit(identity: &Identity, why: &dyn fmt::Display) -> TlsError {
    TlsError::Identity {
        certificates: identity.certificates.name.clone(),
        key: identity.key.name.clone(),
        why: why.to_string(),
    }
}

fn provider() -> Provider {
    Arc::new(rustls::crypto::ring::default_provider())
}

type Provider = Arc<CryptoProvider>;
