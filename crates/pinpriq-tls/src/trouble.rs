//! What an error of an encrypted connection says to the person who can mend it.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// What the options of an address are called that say who is who.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The option that names the authority of the server.
    pub roots: &'static str,
    /// The options that name our own certificate and key.
    pub identity: &'static str,
}

/// Returns a sentence about an error or one of its causes, if one of them is about encryption.
/// It has no full stop.
#[must_use]
pub fn explain(error: &(dyn StdError + 'static), options: Options) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = of_rustls(error) {
            return Some(sentence(found, options));
        }
        next = error.source();
    }
    None
}

/// An error of a socket has the error of rustls inside, which is not its cause.
fn of_rustls<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    of_rustls(inner)
}

fn sentence(error: &Error, Options { roots, identity }: Options) -> String {
    match error {
        Error::InvalidCertificate(wrong) => about_server(wrong, roots),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                format!("it asks for a certificate of this client: name one with {identity}")
            }
            // Some servers say so too if there is none.
            AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError => format!(
                "it does not accept the certificate of this client ({alert:?}): name one with \
                 {identity} that it trusts"
            ),
            _ => format!("it ends the encryption ({alert:?})"),
        },
        Error::InvalidMessage(_) => "it answers without encryption on this port".to_owned(),
        other => format!("the encryption fails: {other}"),
    }
}

/// The hosts of a certificate, which rustls writes as `DnsName("a.example")`.
fn hosts(presented: &[String]) -> String {
    let plain = |it: &String| {
        let inner = it.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(it).trim_matches('"').to_owned()
    };
    let hosts: Vec<String> = presented.iter().map(plain).collect();
    if hosts.is_empty() { "none".to_owned() } else { hosts.join(", ") }
}

fn about_server(wrong: &CertificateError, roots: &str) -> String {
    match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: give it a new one, and check the clock of this machine"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName => {
            "its certificate is for another host: connect to it by a name that the certificate has"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "its certificate is not for the host {}, but for {}: connect to it by a name that the \
             certificate has",
            expected.to_str(),
            hosts(presented)
        ),
        CertificateError::UnknownIssuer => format!(
            "its certificate was not signed by an authority that is trusted here: name the \
             certificate of the right one with {roots}"
        ),
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority: give it one of its own, with CA:FALSE"
                .to_owned()
        }
        other => format!("its certificate cannot be trusted: {other}"),
    }
}
