//! What a user says about the server, and what is refused. Opens no connection.

use std::time::Duration;

use pinpriq_tls::Tls;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::postgres::failure::explain;

/// The most characters of the name of a schema.
const SCHEMA_CHARS_MAX: usize = 40;

/// Whether connections are encrypted.
#[derive(Clone, Debug)]
pub enum Encryption {
    /// Never.
    Off,
    /// If the server can.
    IfOffered(Tls),
    /// Always: a server that cannot is not used.
    Required(Tls),
}

impl Encryption {
    pub(crate) const fn tls(&self) -> Option<&Tls> {
        match self {
            Self::Off => None,
            Self::IfOffered(tls) | Self::Required(tls) => Some(tls),
        }
    }

    const fn mode(&self) -> SslMode {
        match self {
            Self::Off => SslMode::Disable,
            Self::IfOffered(_) => SslMode::Prefer,
            Self::Required(_) => SslMode::Require,
        }
    }
}

/// Where the logs are, and how long to wait for them. It may hold a password.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address, as key-value pairs (`host=a,b user=pinpriq dbname=tasks`) or as a URL. Of
    /// several hosts, the first one that accepts changes is used. What it says of `sslmode` does
    /// not count, but `require` is refused without [`Encryption::Required`].
    pub address: String,
    /// The password, unless the address has it.
    pub password: Option<String>,
    /// Whether connections are encrypted.
    pub encryption: Encryption,
    /// The schema with the tables: 1 to 40 letters, digits, `_` and `-`.
    pub schema: String,
    /// The most bytes that all logs may have. The server itself does not keep to it.
    pub bytes_max: u64,
    /// How long to wait for a connection to one host.
    pub connect_timeout: Duration,
    /// How long a call may take, with the connection that it needs.
    pub call_timeout: Duration,
}

impl PostgresOptions {
    /// Encrypts nothing, and waits 1 second for a connection and 5 seconds for a call.
    #[must_use]
    pub fn new(address: &str, schema: &str, bytes_max: u64) -> Self {
        Self {
            address: address.to_owned(),
            password: None,
            encryption: Encryption::Off,
            schema: schema.to_owned(),
            bytes_max,
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_secs(5),
        }
    }
}

/// Why a server cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name of the schema is refused.
    #[error("{0:?} cannot be a schema: its name has 1 to 40 letters, digits, `_` and `-`")]
    Schema(String),
    /// The address is refused.
    #[error("the address of PostgreSQL cannot be read: {0}")]
    Address(String),
    /// The server may lose what it has committed.
    #[error("PostgreSQL runs with fsync = off and may lose commits: set fsync = on")]
    FsyncOff,
    /// The server is too old.
    #[error("PostgreSQL has the version {0}, and 13 or later is needed")]
    TooOld(String),
    /// Anything else that the server or the network says.
    #[error("PostgreSQL cannot be used: {0}")]
    Unusable(String),
}

/// Returns the name as SQL, in quotes.
pub(crate) fn quoted_schema(name: &str) -> Result<String, ConnectError> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if (1..=SCHEMA_CHARS_MAX).contains(&name.len()) && name.chars().all(is_plain) {
        Ok(format!("\"{name}\""))
    } else {
        Err(ConnectError::Schema(name.to_owned()))
    }
}

/// Returns what to connect to, for each host, in order. So each host has a time limit of its own,
/// and one that is silent does not keep us from the next one.
pub(crate) fn hosts(options: &PostgresOptions) -> Result<Vec<Config>, ConnectError> {
    let all: Config =
        options.address.parse().map_err(|error| ConnectError::Address(explain(&error)))?;
    let is_required = matches!(options.encryption, Encryption::Required(_));
    if all.get_ssl_mode() == SslMode::Require && !is_required {
        let why = "it requires TLS, and the connection would not be encrypted";
        return Err(ConnectError::Address(why.to_owned()));
    }
    let (names, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = names.len().max(addresses.len());
    let fits = |length: usize| length == 0 || length == count;
    if count == 0 || !fits(names.len()) || !fits(addresses.len()) {
        let why = "it needs a host, and as many values of `hostaddr` as of `host`, if any";
        return Err(ConnectError::Address(why.to_owned()));
    }
    if ports.len() > 1 && ports.len() != count {
        let why = "it needs one port, or one for each host";
        return Err(ConnectError::Address(why.to_owned()));
    }
    let mut hosts = Vec::new();
    for index in 0..count {
        let mut one = without_host(&all);
        one.ssl_mode(options.encryption.mode());
        if let Some(password) = &options.password {
            one.password(password);
        }
        match names.get(index) {
            Some(Host::Tcp(name)) => _ = one.host(name),
            #[cfg(unix)]
            Some(Host::Unix(path)) => _ = one.host_path(path),
            None => {}
        }
        if let Some(address) = addresses.get(index) {
            one.hostaddr(*address);
            if names.is_empty() {
                // This is what its certificate must be for.
                one.host(address.to_string());
            }
        }
        if let Some(port) = ports.get(index).or_else(|| ports.first()) {
            one.port(*port);
        }
        hosts.push(one);
    }
    Ok(hosts)
}

/// Copies everything but the hosts and what has no meaning for a single one.
fn without_host(all: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    one.application_name(all.get_application_name().unwrap_or("pinpriq"));
    one.ssl_negotiation(all.get_ssl_negotiation());
    one.channel_binding(all.get_channel_binding());
    one.keepalives(all.get_keepalives()).keepalives_idle(all.get_keepalives_idle());
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(limit) = all.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    one.target_session_attrs(TargetSessionAttrs::ReadWrite);
    one
}

#[cfg(test)]
mod tests {
    use super::{Config, ConnectError, PostgresOptions, hosts, quoted_schema};

    #[test]
    fn a_schema_has_a_plain_name() {
        for name in ["a", "Tasks_2-b", &"x".repeat(40)] {
            assert_eq!(quoted_schema(name), Ok(format!("\"{name}\"")));
        }
        for name in ["", "a b", "a\"b", "a.b", "a;b", "ä", "a\0", &"x".repeat(41)] {
            assert_eq!(quoted_schema(name), Err(ConnectError::Schema(name.to_owned())));
        }
    }

    #[test]
    fn each_host_has_its_own_port_and_all_the_rest() {
        let options = |address| PostgresOptions::new(address, "s", 1);
        let all = hosts(&options("host=a,/b,c port=1,2,3 user=u password=p dbname=d"));
        let all = all.unwrap_or_default();
        assert_eq!(all.iter().flat_map(Config::get_ports).collect::<Vec<_>>(), [&1, &2, &3]);
        assert!(all.iter().all(|one| one.get_hosts().len() == 1 && one.get_user() == Some("u")));
        let all = hosts(&options("postgres://u@a,b:7/d")).unwrap_or_default();
        assert_eq!(all.len(), 2);
        for wrong in ["user=u", "host=a,b hostaddr=127.0.0.1", "host=a,b,c port=1,2", "nonsense"] {
            assert!(matches!(hosts(&options(wrong)), Err(ConnectError::Address(_))), "{wrong}");
        }
    }
}
