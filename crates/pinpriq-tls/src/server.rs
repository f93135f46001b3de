//! The side that is connected to.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::name::DirectoryString;

use super::{Identity, Pem, TlsError, authorities, misfit, provider, read};

/// Which certificates clients show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clients {
    /// The authorities that may sign them.
    pub authorities: Pem,
    /// Whether a client without one is refused.
    pub required: bool,
}

/// Returns what rustls needs for a server with this identity. Without `clients`, no client is asked
/// for a certificate.
///
/// Refuses texts that hold no certificate or no key, and a key that is not that of the
/// certificate.
pub fn server_config(
    identity: &Identity,
    clients: Option<&Clients>,
) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let Ok(builder) = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
    else {
        unreachable!("ring has suites for both versions")
    };
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(Clients { authorities: pem, required }) => {
            let roots = Arc::new(authorities(pem)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = if *required { verifier } else { verifier.allow_unauthenticated() };
            let no_root = |_| TlsError::NoCertificate { name: pem.name.clone() };
            builder.with_client_cert_verifier(verifier.build().map_err(no_root)?)
        }
    };
    let (certificates, key) = read(identity)?;
    builder.with_single_cert(certificates, key).map_err(|error| misfit(identity, &error))
}

/// Returns the common name of the subject of a certificate, if it has exactly one, and that is
/// text.
#[must_use]
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let subject = certificate.tbs_certificate().subject();
    let mut names = subject.iter().filter(|attribute| attribute.oid == COMMON_NAME);
    let name = names.next()?;
    if names.next().is_some() {
        return None;
    }
    match DirectoryString::try_from(&name.value).ok()? {
        DirectoryString::PrintableString(text) => Some(text.to_string()),
        DirectoryString::Utf8String(text) => Some(text),
        DirectoryString::TeletexString(_) | DirectoryString::BmpString(_) => None,
    }
}
