//! Both sides of an encrypted connection between two nodes, each of which knows what the other must
//! be.
//!
//! A node makes a key when it starts, and the key never leaves the process. Its certificate is the
//! bare public key ([RFC 7250]): names, dates and issuers would say nothing that is believed here.
//! What is believed is the *fingerprint*, the SHA-256 of the certificate, which the node writes
//! where only nodes can write. TLS 1.3 makes sure that the other side has the key of its
//! certificate. How the node that accepts learns which fingerprint is right is up to the caller.
//!
//! [RFC 7250]: https://www.rfc-editor.org/rfc/rfc7250

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerIncompatible, ServerConfig, SignatureScheme,
};

use super::{Provider, provider};

/// The SHA-256 of the certificate of a node.
pub type Fingerprint = [u8; 32];

/// Returns the fingerprint of a certificate.
#[must_use]
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.copy_from_slice(digest(&SHA256, certificate).as_ref());
    fingerprint
}

/// Returns whether a handshake failed since the other side has another certificate than it must.
#[must_use]
pub fn is_other_node(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
}

/// The key and the certificate of a node.
#[derive(Clone, Debug)]
pub struct NodeKey {
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

impl NodeKey {
    /// Makes a new key. Fails if the system has no random numbers.
    pub fn generate() -> Result<Self, Error> {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let key = key.map_err(|_| Error::FailedToGetRandomBytes)?;
        let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(key.as_ref()))?;
        let Some(public) = key.public_key() else { unreachable!("Ed25519 has public keys") };
        let certificate = CertificateDer::from(public.to_vec());
        let fingerprint = fingerprint(&certificate);
        Ok(Self { certified: Arc::new(CertifiedKey::new(vec![certificate], key)), fingerprint })
    }

    /// Returns what other nodes must know.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns what rustls needs to dial the node with this fingerprint, and no other.
    #[must_use]
    pub fn dialing(&self, expected: Fingerprint) -> Arc<ClientConfig> {
        let provider = provider();
        let verifier = Nodes { expected: Some(expected), provider: Arc::clone(&provider) };
        let Ok(builder) =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])
        else {
            unreachable!("ring has suites for TLS 1.3")
        };
        let own = AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.certified));
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(own));
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Arc::new(config)
    }

    /// Returns what rustls needs to accept nodes. Each must show a certificate. The caller decides
    /// whether it is the right one, by its [`fingerprint`].
    #[must_use]
    pub fn accepting(&self) -> Arc<ServerConfig> {
        let provider = provider();
        let verifier = Nodes { expected: None, provider: Arc::clone(&provider) };
        let Ok(builder) =
            ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])
        else {
            unreachable!("ring has suites for TLS 1.3")
        };
        let own = AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.certified));
        let mut config =
            builder.with_client_cert_verifier(Arc::new(verifier)).with_cert_resolver(Arc::new(own));
        // Each connection proves anew who its sides are.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Arc::new(config)
    }
}

/// Checks that the other side has the key of its certificate, and which certificate that is.
#[derive(Debug)]
struct Nodes {
    /// The only one that is accepted, or any.
    expected: Option<Fingerprint>,
    provider: Provider,
}

impl Nodes {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let is_right = self.expected.is_none_or(|expected| fingerprint(certificate) == expected);
        if is_right { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(certificate.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }
}

impl ServerCertVerifier for Nodes {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Nodes {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
