//! Encrypted connections to engines: whom a server must be, and who we are, as rustls needs it.
//! Reads no file: certificates and keys come as the texts of PEM files. Opens no connection.

mod trouble;
mod trust;

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

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
    /// Somebody with a certificate of these authorities, for any host.
    Authority(Roots),
    /// The host that was connected to, with a certificate of these authorities.
    Host(Roots),
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
    /// The system trusts nobody.
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
         `openssl pkey -in {name} -out NEW`, and let only the user of the node read it"
    )]
    EncryptedKey {
        /// What the text is called.
        name: String,
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
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
                builder.with_client_auth_cert(certificates, key).map_err(|error| {
                    TlsError::Identity {
                        certificates: identity.certificates.name.clone(),
                        key: identity.key.name.clone(),
                        why: error.to_string(),
                    }
                })?
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
    let mut store = RootCertStore::empty();
    match roots {
        Roots::OfTheSystem => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(TlsError::NoRoots);
            }
        }
        Roots::Pem(pem) => {
            for certificate in certificates(pem)? {
                let added = store.add(certificate);
                added.map_err(|_| TlsError::NoCertificate { name: pem.name.clone() })?;
            }
        }
    }
    Ok(store)
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

/// What a server is believed by.
type Verifier = Arc<dyn rustls::client::danger::ServerCertVerifier>;

type Provider = Arc<CryptoProvider>;
