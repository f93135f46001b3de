//! The address of a server, as a URL. No message repeats a part of one, since it may hold a
//! password.

use std::fmt;

use percent_encoding::percent_decode_str;

/// The port of the RESP door, plain and encrypted.
const PORT: u16 = 7251;
const PORT_ENCRYPTED: u16 = 7261;

/// Where a server is, or several that stand for each other, and who signs in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    /// At least one. They are tried in this order.
    pub(crate) hosts: Vec<HostPort>,
    pub(crate) is_encrypted: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Where one server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HostPort {
    /// The name or the address of the host, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `pinpriq://user:password@host:port,host:port`, of which everything after the scheme
    /// can be left out. Returns what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err("it has no scheme: write pinpriq://HOST:PORT, or pinpriqs:// for TLS");
        };
        let is_encrypted = match scheme {
            "pinpriq" | "redis" => false,
            "pinpriqs" | "rediss" => true,
            _ => return Err("its scheme is neither pinpriq:// nor pinpriqs://"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, hosts) = match rest.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, rest),
        };
        if hosts.contains(['/', '?', '#']) {
            return Err("there is something after the host and the port: pinpriq has no databases");
        }
        if hosts.contains(',') && hosts.split(',').any(str::is_empty) {
            return Err("there is nothing between two of its commas");
        }
        let (user, password) = match credentials.map(|it| it.split_once(':').unwrap_or((it, ""))) {
            None => (None, None),
            Some((user, password)) => (decoded(user)?, decoded(password)?),
        };
        let usual = if is_encrypted { PORT_ENCRYPTED } else { PORT };
        let hosts =
            hosts.split(',').map(|host| HostPort::parse(host, usual)).collect::<Result<_, _>>();
        Ok(Self { hosts: hosts?, is_encrypted, user, password })
    }

    /// Returns the hosts and the ports as one text.
    pub(crate) fn shown(&self) -> String {
        self.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

impl HostPort {
    fn parse(text: &str, usual_port: u16) -> Result<Self, &'static str> {
        let (host, port) = split(text)?;
        let port = match port {
            Some(port) => port.parse().map_err(|_| "its port is no number below 65536")?,
            None => usual_port,
        };
        let host = if host.is_empty() { "127.0.0.1" } else { host }.to_owned();
        Ok(Self { host, port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Returns the host, and the port if there is one.
fn split(host: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("a bracket of its host is not closed")?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if port.is_empty() => Ok((host, None)),
            None => Err("there is something between its host and its port"),
        };
    }
    match host.split_once(':') {
        Some((_, port)) if port.contains(':') => Err("an address of IPv6 needs brackets"),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((host, None)),
    }
}

fn decoded(text: &str) -> Result<Option<String>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let text = percent_decode_str(text).decode_utf8();
    text.map(|text| Some(text.into_owned())).map_err(|_| "its user or its password is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn everything_but_the_scheme_can_be_left_out() {
        let table = [
            ("pinpriq://", "127.0.0.1:7251", None, None),
            ("pinpriqs://", "127.0.0.1:7261", None, None),
            ("pinpriq://q.example/", "q.example:7251", None, None),
            ("redis://q.example:1", "q.example:1", None, None),
            ("rediss://[::1]", "[::1]:7261", None, None),
            ("pinpriq://[::1]:2", "[::1]:2", None, None),
            ("pinpriq://ana@q:3", "q:3", Some("ana"), None),
            ("pinpriq://:p%40ss@q:3", "q:3", None, Some("p@ss")),
            ("pinpriq://ana:a:b@c@q:3", "q:3", Some("ana"), Some("a:b@c")),
            ("pinpriq://ana:b@q:3,[::1]:4,r", "q:3,[::1]:4,r:7251", Some("ana"), Some("b")),
        ];
        for (url, place, user, password) in table {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.shown(), place, "{url}");
            assert_eq!((address.user.as_deref(), address.password.as_deref()), (user, password));
            let is_encrypted = url.starts_with("pinpriqs:") || url.starts_with("rediss:");
            assert_eq!(address.is_encrypted, is_encrypted, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let table = [
            "q.example:7251",
            "http://q",
            "pinpriq://a:secret@q:1/0",
            "redis://a:secret@q/1",
            "pinpriq://a:secret@q:1,",
            "pinpriq://a:secret@q:1,r:x",
            "redis://q:1,redis://r:1",
            "pinpriq://a:secret@q:port",
            "pinpriq://a:secret@q:70000",
            "pinpriq://a:secret@::1:1",
            "pinpriq://a:secret@[::1",
            "pinpriq://a:secret@[::1]x",
            "pinpriq://a:secret%ff@q",
        ];
        for url in table {
            let told = Address::parse(url).unwrap_err();
            assert!(!told.contains("secret"), "{url}: {told}");
        }
    }
}
