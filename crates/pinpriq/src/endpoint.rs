//! Where a server is, and how connections to it are encrypted.

use std::error::Error as StdError;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use pinpriq_client::blocking::Line;
use pinpriq_tls::{Identity, Options, Peer, Pem, Roots, Tls, Trust, explain};

use crate::args::encryption::EncryptionArgs;
use crate::exit::Failure;
use crate::logging::tell;

/// What the options are called that say who is who.
const OPTIONS: Options = Options { roots: "--ca", identity: "--client-cert and --client-key" };

/// The protocols in addresses, plain and encrypted. The first of each is how an address is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Schemes {
    plain: &'static [&'static str],
    encrypted: &'static [&'static str],
}

/// Those of RESP.
pub(crate) const RESP: Schemes =
    Schemes { plain: &["redis://", "pinpriq://"], encrypted: &["rediss://", "pinpriqs://"] };

/// Those of the pinpriq protocol.
pub(crate) const PINPRIQ: Schemes = Schemes { plain: &["pinpriq://"], encrypted: &["pinpriqs://"] };

/// Those of HTTP.
pub(crate) const HTTP: Schemes = Schemes { plain: &["http://"], encrypted: &["https://"] };

/// Where a server is, or several that stand for each other. Its text can be given as an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// They are tried in this order.
    servers: Vec<ServerAddress>,
    schemes: Schemes,
}

/// Where one server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerAddress {
    /// The host and the port.
    pub(crate) address: String,
    /// The server as its certificate shows it, if connections are encrypted.
    pub(crate) peer: Option<Peer>,
}

impl Endpoint {
    /// Returns the server that an address and the options about encryption name. Reads the files
    /// among these.
    pub(crate) fn of(
        given: &str,
        encryption: &EncryptionArgs,
        schemes: Schemes,
    ) -> Result<Self, Failure> {
        let (is_encrypted, addresses) = addresses_of(given, schemes)?;
        let EncryptionArgs { tls, ca, client_cert, insecure, .. } = encryption;
        let encrypts = is_encrypted || *tls || *insecure || client_cert.is_some() || ca.is_some();
        let hosts: Vec<&str> = addresses.iter().map(|address| host_of(address)).collect();
        let peers = if encrypts {
            peers(&hosts, encryption).map_err(Failure::unusable)?.into_iter().map(Some).collect()
        } else {
            vec![None; hosts.len()]
        };
        let server =
            |(address, peer): (&str, _)| ServerAddress { address: address.to_owned(), peer };
        Ok(Self { servers: addresses.into_iter().zip(peers).map(server).collect(), schemes })
    }

    /// Returns the only server. Fails if there are several.
    pub(crate) fn only(mut self) -> Result<ServerAddress, Failure> {
        match (self.servers.pop(), self.servers.is_empty()) {
            (Some(server), true) => Ok(server),
            _ => Err(Failure::unusable("this command takes one address")),
        }
    }

    /// Whether connections are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.servers.iter().any(|server| server.peer.is_some())
    }

    /// Connects to the first server that answers. Without a limit this takes as long as the system
    /// tries.
    pub(crate) fn connect(&self, limit: Option<Duration>) -> io::Result<Line> {
        let mut outcome = Err(io::Error::other("there is no address"));
        for server in &self.servers {
            outcome = server.connect(limit);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

impl ServerAddress {
    fn connect(&self, limit: Option<Duration>) -> io::Result<Line> {
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
        let scheme = self.schemes.encrypted.first().filter(|_| self.is_encrypted());
        f.write_str(scheme.copied().unwrap_or_default())?;
        for (index, ServerAddress { address, .. }) in self.servers.iter().enumerate() {
            write!(f, "{}{address}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Says what is wrong with a connection, and what helps if that is about encryption.
pub(crate) fn shown(error: &(dyn StdError + 'static)) -> String {
    explain(error, OPTIONS).unwrap_or_else(|| error.to_string())
}

/// Returns whether an address asks for encryption, and its hosts and ports.
fn addresses_of(given: &str, schemes: Schemes) -> Result<(bool, Vec<&str>), Failure> {
    let without = |schemes: &[&str]| schemes.iter().find_map(|scheme| given.strip_prefix(scheme));
    let (is_encrypted, rest) = match without(schemes.encrypted) {
        Some(rest) => (true, rest),
        None => (false, without(schemes.plain).unwrap_or(given)),
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
        let known: Vec<String> = schemes
            .plain
            .iter()
            .chain(schemes.encrypted)
            .map(|scheme| format!("{scheme}HOST:PORT"))
            .collect();
        return Err(Failure::unusable(format!(
            "an address here is HOST:PORT, or {}, and not {scheme}://",
            known.join(" or ")
        )));
    }
    let hosts = rest.strip_suffix('/').unwrap_or(rest);
    if hosts.contains(['/', '?', '#']) {
        return Err(Failure::unusable(
            "there is something after the host and the port of the address: pinpriq has no \
             databases",
        ));
    }
    let addresses: Vec<&str> = hosts.split(',').collect();
    if addresses.len() > 1 && addresses.contains(&"") {
        return Err(Failure::unusable("there is nothing between two commas of the address"));
    }
    if let Some(address) = addresses.iter().find(|address| !has_port(address)) {
        return Err(Failure::unusable(format!(
            "the port is missing in the address `{address}`: give HOST:PORT"
        )));
    }
    Ok((is_encrypted, addresses))
}

/// Whether there is something where the port belongs. What it is shows when it is used.
fn has_port(address: &str) -> bool {
    let behind = address.rsplit_once(']').map_or(address, |(_, behind)| behind);
    behind.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty())
}

/// Returns the host of an address with a port.
fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
}

/// Returns how each of these hosts must show who it is. Reads each file once.
fn peers(hosts: &[&str], encryption: &EncryptionArgs) -> Result<Vec<Peer>, String> {
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
        tell("--insecure: it is unknown who answers".to_owned());
    }
    let peer = |host: &&str| Peer::new(&tls, host).map_err(|error| error.to_string());
    hosts.iter().map(peer).collect()
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
            ("a:1", (false, vec!["a:1"])),
            ("redis://a:1", (false, vec!["a:1"])),
            ("pinpriq://a:1", (false, vec!["a:1"])),
            ("rediss://a:1", (true, vec!["a:1"])),
            ("pinpriqs://[::1]:1/", (true, vec!["[::1]:1"])),
            ("a:1,b:2", (false, vec!["a:1", "b:2"])),
            ("rediss://a:1,b:2/", (true, vec!["a:1", "b:2"])),
        ];
        for (given, expected) in table {
            assert_eq!(addresses_of(given, RESP).unwrap(), expected, "{given}");
        }
        let wrong = [
            "http://a:1",
            "rediss://ana:secret@a:1",
            "ana:secret@a:1",
            "redis://a:1/1",
            "a:1/2",
            "a:1,",
            "a:1,redis://b:1",
            "127.0.0.1",
            "a:",
            "[::1]",
            "a:1,b",
            "",
        ];
        for wrong in wrong {
            let told = addresses_of(wrong, RESP).unwrap_err().to_string();
            assert!(!told.contains("secret"), "{told}");
        }
        assert!(addresses_of("redis://a:1", PINPRIQ).is_err());
    }

    #[test]
    fn an_endpoint_is_shown_as_it_can_be_given() {
        let plain = EncryptionArgs::default();
        for (given, shown) in [("pinpriq://a:1,b:2", "a:1,b:2"), ("a:1", "a:1")] {
            assert_eq!(Endpoint::of(given, &plain, RESP).unwrap().to_string(), shown);
        }
        let insecure = EncryptionArgs { insecure: true, ..EncryptionArgs::default() };
        let endpoint = Endpoint::of("a:1,b:2", &insecure, RESP).unwrap();
        assert_eq!(endpoint.to_string(), "rediss://a:1,b:2");
        assert!(endpoint.only().is_err());
    }

    #[test]
    fn a_host_is_what_a_certificate_has() {
        for (address, host) in [("a.example:1", "a.example"), ("[::1]:1", "::1"), ("a", "a")] {
            assert_eq!(host_of(address), host);
        }
    }
}
