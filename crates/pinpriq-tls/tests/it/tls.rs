//! Handshakes in memory: who is believed, and what is said about everybody else.

use std::sync::Arc;

use pinpriq_tls::{Identity, Options, Pem, Roots, Tls, TlsError, Trust, explain};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::authority::{Authority, Papers, Validity};

const OPTIONS: Options = Options { roots: "ROOTS", identity: "IDENTITY" };

fn pem(name: &str, text: &str) -> Pem {
    Pem { name: name.to_owned(), text: text.as_bytes().to_vec() }
}

fn roots(authority: &Authority) -> Roots {
    Roots::Pem(pem("ca.pem", &authority.certificate))
}

fn identity(papers: &Papers) -> Identity {
    let certificates = pem("own.pem", &papers.certificate);
    Identity { certificates, key: pem("own.key", &papers.key) }
}

/// A server with these papers. It asks for a certificate of `clients`, if they are given.
fn server(papers: &Papers, clients: Option<&Authority>) -> ServerConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let pem = authority.certificate.as_bytes();
            roots.add(CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let certificate = CertificateDer::from_pem_slice(papers.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(papers.key.as_bytes()).unwrap();
    let config = builder.with_single_cert(vec![certificate], key).unwrap();
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// Connects to a host. Returns the sentence about what is wrong, if something is.
fn connect(tls: &Tls, host: &'static str, mut server: ServerConnection) -> Result<(), String> {
    let name = ServerName::try_from(host).unwrap();
    let mut client = ClientConnection::new(Arc::new(tls.config()), name).unwrap();
    let say = |error: rustls::Error| {
        // So it comes through a socket.
        let error = std::io::Error::other(error);
        explain(&error, OPTIONS).unwrap()
    };
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            // It tells the client what is wrong.
            _ = server.process_new_packets();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().map_err(say)?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

#[test]
fn a_host_is_believed_with_a_certificate_of_its_own() {
    let authority = Authority::new("A");
    let papers = authority.sign("server", &["engine.example", "127.0.0.1"]);
    let tls = Tls::new(&Trust::Host(roots(&authority)), None).unwrap();
    for host in ["engine.example", "127.0.0.1"] {
        assert_eq!(connect(&tls, host, server(&papers, None)), Ok(()));
    }
    assert!(!tls.anchors().is_empty());
}

#[test]
fn who_is_not_believed_is_told_why() {
    let (authority, other) = (Authority::new("A"), Authority::new("B"));
    let strict = Tls::new(&Trust::Host(roots(&authority)), None).unwrap();
    let any_host = Tls::new(&Trust::Authority(roots(&authority)), None).unwrap();
    let anybody = Tls::new(&Trust::Anybody, None).unwrap();
    let hosts = ["engine.example"];
    let elsewhere = ["other.example"];
    for (papers, is_other_host, sentence) in [
        (
            authority.sign("server", &elsewhere),
            true,
            "its certificate is not for the host engine.example, but for other.example: connect",
        ),
        (
            authority.sign_for(Validity::Past, "server", &hosts),
            false,
            "its certificate has expired: give it a new one",
        ),
        (
            authority.sign_for(Validity::Future, "server", &hosts),
            false,
            "its certificate is not valid yet: check the clock",
        ),
        (
            other.sign("server", &hosts),
            false,
            "not signed by an authority that is trusted here: name the certificate of the right \
             one with ROOTS",
        ),
    ] {
        let refusal = connect(&strict, "engine.example", server(&papers, None)).unwrap_err();
        assert!(refusal.contains(sentence), "{refusal}");
        let lenient = connect(&any_host, "engine.example", server(&papers, None));
        assert_eq!(lenient.is_ok(), is_other_host, "{lenient:?}");
        assert_eq!(connect(&anybody, "engine.example", server(&papers, None)), Ok(()));
    }
}

#[test]
fn a_server_may_ask_for_a_certificate_of_its_own_authority() {
    let (authority, other) = (Authority::new("A"), Authority::new("B"));
    let papers = authority.sign("server", &["engine.example"]);
    let connect_with = |own: Option<Identity>| {
        let tls = Tls::new(&Trust::Host(roots(&authority)), own).unwrap();
        connect(&tls, "engine.example", server(&papers, Some(&authority)))
    };
    assert_eq!(connect_with(Some(identity(&authority.sign("anna", &[])))), Ok(()));
    let none = connect_with(None).unwrap_err();
    assert_eq!(none, "it asks for a certificate of this client: name one with IDENTITY");
    for wrong in [other.sign("anna", &[]), authority.sign_for(Validity::Past, "anna", &[])] {
        let refusal = connect_with(Some(identity(&wrong))).unwrap_err();
        assert!(refusal.contains("does not accept the certificate of this client"), "{refusal}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new("A");
    let (anna, bert) = (authority.sign("anna", &[]), authority.sign("bert", &[]));
    let host = Trust::Host(roots(&authority));
    let refused = |own: Identity| Tls::new(&host, Some(own)).unwrap_err();
    let name = || "own.key".to_owned();
    let mixed = Identity { key: identity(&bert).key, ..identity(&anna) };
    assert!(matches!(refused(mixed), TlsError::Identity { .. }));
    let swapped = Identity { key: pem("own.key", &anna.certificate), ..identity(&anna) };
    assert_eq!(refused(swapped), TlsError::NoKey { name: name() });
    let encrypted = anna.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let encrypted = Identity { key: pem("own.key", &encrypted), ..identity(&anna) };
    let refusal = refused(encrypted);
    assert_eq!(refusal, TlsError::EncryptedKey { name: name() });
    assert!(refusal.to_string().contains("openssl pkey -in own.key"), "{refusal}");
    let name = || "ca.pem".to_owned();
    let broken = authority.certificate.replace("MII", "???");
    for text in ["", "nonsense", &anna.key, &broken] {
        let trust = Trust::Host(Roots::Pem(pem("ca.pem", text)));
        let refusal = Tls::new(&trust, None).unwrap_err();
        assert_eq!(refusal, TlsError::NoCertificate { name: name() }, "{text}");
    }
}

#[test]
fn keys_are_not_shown() {
    let own = identity(&Authority::new("A").sign("anna", &[]));
    let text = String::from_utf8(own.key.text.clone()).unwrap();
    let secret = text.lines().nth(1).unwrap();
    let tls = Tls::new(&Trust::Anybody, Some(own.clone())).unwrap();
    for shown in [format!("{own:?}"), format!("{tls:?}")] {
        assert!(shown.contains("own.key") && !shown.contains(secret), "{shown}");
    }
}

#[test]
fn other_errors_are_not_about_encryption() {
    let error = std::io::Error::other("the network is down");
    assert_eq!(explain(&error, OPTIONS), None);
    let error = std::io::Error::other(rustls::Error::DecryptError);
    assert!(explain(&error, OPTIONS).unwrap().starts_with("the encryption fails: "));
}
