//! Where a server is, and how connections to it are encrypted.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use pinpriq_client::blocking::Line;
use pinpriq_tls::{Identity, Options, Peer, Pem, Roots, Tls, Trust, explain};

use crate::args::encryption::EncryptionArgs;
use crate::exit::Failure;
use crate::output::tell;

/// What the options are called that say who is who.
const OPTIONS: Options = Options { roots: "--ca", identity: "--client-cert and --client-key" };

/// The protocols in addresses, plain and encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Schemes {
    plain: &'static str,
    encrypted: &'static str,
}

/// Those of RESP.
pub(crate) const RESP: Schemes = Schemes { plain: "redis://", encrypted: "rediss://" };

/// Those of the pinpriq protocol.
pub(crate) const PINPRIQ: Schemes = Schemes { plain: "pinpriq://", encrypted: "pinpriqs://" };

/// Those of HTTP.
pub(crate) const HTTP: Schemes = Schemes { plain: "http://", encrypted: "https://" };

/// Where a server is. Its text can be given as an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// The host and the port.
    pub(crate) address: String,
    /// The server as its certificate shows it, if connections are encrypted.
    pub(crate) peer: Option<Peer>,
    schemes: Schemes,
}

impl Endpoint {
    /// Returns the place that an address and the options about encryption name. Reads the files
    /// among these.
    pub(crate) fn of(
        given: &str,
        encryption: &EncryptionArgs,
        schemes: Schemes,
    ) -> Result<Self, Failure> {
        let (is_encrypted, address) = address_of(given, schemes)?;
        let EncryptionArgs { tls, ca, client_cert, insecure, .. } = encryption;
        let address = address.to_owned();
        if !(is_encrypted || *tls || *insecure || client_cert.is_some() || ca.is_some()) {
            return Ok(Self { address, peer: None, schemes });
        }
        let host = host_of(&address);
        let peer = peer(host, encryption).map_err(Failure::unusable)?;
        Ok(Self { address, peer: Some(peer), schemes })
    }

    /// Connects. Without a limit this takes as long as the system tries.
    pub(crate) fn connect(&self, limit: Option<Duration>) -> io::Result<Line> {
        let mut line = match limit {
            Some(limit) => Line::connect_within(limit, &*self.address)?,
            None => Line::connect(&*self.address)?,
        };
        let Some(peer) = &self.peer else { return Ok(line) };
        line.limit_waiting(limit);
        let mut line = line.encrypt(peer)?;
        line.limit_waiting(None);
        Ok(line)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.peer.is_some() { self.schemes.encrypted } else { "" };
        write!(f, "{scheme}{}", self.address)
    }
}

/// Says what is wrong with a connection, and what helps if that is about encryption.
pub(crate) fn shown(error: &io::Error) -> String {
    explain(error, OPTIONS).unwrap_or_else(|| error.to_string())
}

/// Returns whether an address asks for encryption, and its host and port.
fn address_of(given: &str, schemes: Schemes) -> Result<(bool, &str), Failure> {
    let (is_encrypted, rest) = match given.strip_prefix(schemes.encrypted) {
        Some(rest) => (true, rest),
        None => (false, given.strip_prefix(schemes.plain).unwrap_or(given)),
    };
    // What follows may be a password, so that it is not shown.
    if rest.contains('@') {
        return Err(Failure::unusable(
            "an address has no user and no password here: set PINPRIQ_TOKEN, or PINPRIQ_USER and \
             PINPRIQ_PASSWORD, in the environment"
                .to_owned(),
        ));
    }
    if let Some((scheme, _)) = rest.split_once("://") {
        let Schemes { plain, encrypted } = schemes;
        return Err(Failure::unusable(format!(
            "an address here is HOST:PORT, {plain}HOST:PORT or {encrypted}HOST:PORT, and not \
             {scheme}://"
        )));
    }
    Ok((is_encrypted, rest.strip_suffix('/').unwrap_or(rest)))
}

/// Returns the host of an address with a port.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
}

fn peer(host: &str, encryption: &EncryptionArgs) -> Result<Peer, String> {
    let roots = match &encryption.ca {
        Some(path) => Roots::Pem(read(path)?),
        None => Roots::OfTheSystem,
    };
    let trust = if encryption.insecure { Trust::Anybody } else { Trust::Host(roots) };
    let identity = match (&encryption.client_cert, &encryption.client_key) {
        (Some(cert), Some(key)) => Some(Identity { certificates: read(cert)?, key: read(key)? }),
        _ => None,
    };
    let tls = Tls::new(&trust, identity).map_err(|error| error.to_string())?;
    if encryption.insecure {
        tell("--insecure: nobody knows who answers".to_owned());
    }
    Peer::new(&tls, host).map_err(|error| error.to_string())
}

#[expect(clippy::disallowed_methods, reason = "keys are no part of a data directory")]
fn read(path: &Path) -> Result<Pem, String> {
    let name = path.display().to_string();
    let text = fs::read(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    Ok(Pem { name, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_say_whether_it_is_encrypted() {
        let table = [
            ("a:1", (false, "a:1")),
            ("redis://a:1", (false, "a:1")),
            ("rediss://a:1", (true, "a:1")),
            ("rediss://[::1]:1/", (true, "[::1]:1")),
        ];
        for (given, expected) in table {
            assert_eq!(address_of(given, RESP).unwrap(), expected, "{given}");
        }
        for wrong in ["pinpriqs://a:1", "http://a:1", "rediss://ana:secret@a:1", "ana:secret@a:1"] {
            let told = address_of(wrong, RESP).unwrap_err().to_string();
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_host_is_what_a_certificate_has() {
        for (address, host) in [("a.example:1", "a.example"), ("[::1]:1", "::1"), ("a", "a")] {
            assert_eq!(host_of(address), host);
        }
    }
}
