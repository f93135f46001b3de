//! Whether a server is who it must be. Only the cases that rustls does not know are decided here.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::{Provider, TlsError, Trust};

/// What a server is believed by.
type Verifier = Arc<dyn ServerCertVerifier>;

/// Returns what decides whether a server is believed.
pub(super) fn verifier(
    trust: &Trust,
    roots: &Arc<RootCertStore>,
    provider: &Provider,
) -> Result<Verifier, TlsError> {
    if *trust == Trust::Anybody {
        return Ok(Arc::new(Lenient { authority: None, provider: Arc::clone(provider) }));
    }
    let (roots, own) = (Arc::clone(roots), Arc::clone(provider));
    let strict = WebPkiServerVerifier::builder_with_provider(roots, own).build();
    let strict = strict.map_err(|_| TlsError::NoRoots)?;
    Ok(match trust {
        Trust::Authority(_) => {
            Arc::new(Lenient { authority: Some(strict), provider: Arc::clone(provider) })
        }
        _ => strict,
    })
}

/// Believes a server for any host. In any case, the server must have the key of its certificate.
#[derive(Debug)]
struct Lenient {
    /// What checks who has signed the certificate, unless anybody may have.
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Provider,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last, so everything else is right then.
        match authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
