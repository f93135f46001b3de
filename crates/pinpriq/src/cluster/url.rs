//! The address of a cluster: which engine it is on, where that is, the name of the cluster, and who
//! must be who. Reads no file that it names.
//!
//! An address may hold a password, and so may one that cannot be read. So no message repeats a part
//! of it, but for options that are known.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use serde::Deserialize;

/// The longest name of a cluster, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// What `--cluster` names. It may hold a password, so its `Debug` shows little.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum ClusterUrl {
    /// etcd, with its endpoints and the name of the cluster.
    Etcd {
        /// Each is `HOST:PORT`.
        endpoints: Vec<String>,
        /// The name of the cluster.
        name: String,
        /// The user, if there is one, and the password.
        user: Option<(String, Password)>,
        /// How connections are encrypted, if they are.
        tls: Option<TlsFiles>,
    },
    /// PostgreSQL, with the address of its servers and the schema of the cluster.
    Postgres {
        /// The address, without what is in the other fields. It may hold a password.
        address: String,
        /// The schema, which is the name of the cluster.
        schema: String,
        /// The file with the password, if there is one.
        password_file: Option<String>,
        /// Whether connections are encrypted.
        encryption: Ssl,
    },
}

/// A password, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    /// It was given.
    Given(String),
    /// It is the first line of this file.
    InFile(String),
}

/// Whether connections to PostgreSQL are encrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ssl {
    /// Never.
    Off,
    /// If the server can.
    IfOffered(TlsFiles),
    /// Always.
    Required(TlsFiles),
}

/// The files that say who is who on an encrypted connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsFiles {
    /// Whom a server must be.
    pub(crate) trust: TrustFiles,
    /// Our own certificate, and its key.
    pub(crate) identity: Option<(String, String)>,
}

/// Whom a server must be. Without a file, the authorities are those of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TrustFiles {
    /// Anybody.
    Anybody,
    /// A server that the authorities in this file know.
    Authority(String),
    /// The host that was named.
    Host(Option<String>),
}

impl fmt::Debug for ClusterUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd { endpoints, name, tls, .. } => {
                write!(f, "etcd {endpoints:?} {name:?} {tls:?}")
            }
            Self::Postgres { schema, encryption, .. } => {
                write!(f, "postgres {schema:?} {encryption:?}")
            }
        }
    }
}

impl ClusterUrl {
    /// What the engine is called.
    pub(crate) const fn engine(&self) -> &'static str {
        match self {
            Self::Etcd { .. } => "etcd",
            Self::Postgres { .. } => "PostgreSQL",
        }
    }

    /// The name of the cluster.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Etcd { name, .. } => name,
            Self::Postgres { schema, .. } => schema,
        }
    }

    /// The most bytes that the engine may keep for the cluster unless somebody says otherwise.
    pub(crate) const fn bytes_max(&self) -> u64 {
        match self {
            Self::Etcd { .. } => 1 << 30,
            Self::Postgres { .. } => 64 << 30,
        }
    }
}

impl FromStr for ClusterUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("etcd://") {
            return of_etcd(rest, false);
        }
        if let Some(rest) = text.strip_prefix("etcds://") {
            return of_etcd(rest, true);
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return of_postgres(text);
        }
        Err("it must begin with etcd://, etcds:// or postgres://, such as \
             etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/tasks or \
             postgres://pinpriq@10.0.0.1,10.0.0.2/app?schema=tasks"
            .to_owned())
    }
}

fn of_etcd(rest: &str, is_encrypted: bool) -> Result<ClusterUrl, String> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let Some((hosts, name)) = place.split_once('/') else {
        return Err("it must end with a slash and the name of the cluster".to_owned());
    };
    check(name)?;
    let (user, hosts) = match hosts.rsplit_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, hosts),
    };
    let endpoints: Vec<String> = hosts.split(',').map(str::to_owned).collect();
    let is_usable = |it: &String| {
        let parts = it.rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    if !endpoints.iter().all(is_usable) {
        return Err("each of its members must be HOST:PORT, with commas between them".to_owned());
    }
    let mut options = Options::read(query)?;
    let cacert = options.take("cacert");
    let identity = pair(("cert", options.take("cert")), ("key", options.take("key")))?;
    let user = signing_in(user, options.take("passwordfile"))?;
    options.none_is_left("cacert, cert, key and passwordfile")?;
    if !is_encrypted && (cacert.is_some() || identity.is_some()) {
        let why = "cacert, cert and key are for connections that are encrypted: write etcds://";
        return Err(why.to_owned());
    }
    let tls = is_encrypted.then_some(TlsFiles { trust: TrustFiles::Host(cacert), identity });
    Ok(ClusterUrl::Etcd { endpoints, name: name.to_owned(), user, tls })
}

/// Returns who signs in to etcd, from what is before the `@`.
fn signing_in(
    user: Option<&str>,
    file: Option<String>,
) -> Result<Option<(String, Password)>, String> {
    let Some(user) = user else {
        let why = "passwordfile needs a user: write USER@ before the members";
        return if file.is_some() { Err(why.to_owned()) } else { Ok(None) };
    };
    let (name, given) = match user.split_once(':') {
        Some((name, password)) => (name, Some(decoded(password)?)),
        None => (user, None),
    };
    let password = match (given, file) {
        (Some(given), None) => Password::Given(given),
        (None, Some(file)) => Password::InFile(file),
        (None, None) => {
            return Err("its user has no password: name a file with ?passwordfile=".to_owned());
        }
        (Some(_), Some(_)) => return Err(TWO_PASSWORDS.to_owned()),
    };
    Ok(Some((decoded(name)?, password)))
}

const TWO_PASSWORDS: &str = "it has a password and names a file with one: keep one of them";

fn of_postgres(text: &str) -> Result<ClusterUrl, String> {
    let (place, query) = text.split_once('?').unwrap_or((text, ""));
    let mut options = Options::read(query)?;
    let Some(schema) = options.take("schema") else {
        return Err("it must have ?schema=NAME, which is the name of the cluster".to_owned());
    };
    check(&schema)?;
    let encryption = encryption(&mut options)?;
    let password_file = options.take("passwordfile");
    let login = place.rsplit_once('@').map(|(login, _)| login);
    let has_password = login.is_some_and(|login| login.matches(':').count() > 1);
    if password_file.is_some() && has_password {
        return Err(TWO_PASSWORDS.to_owned());
    }
    let address = options.append_to(place);
    Ok(ClusterUrl::Postgres { address, schema, password_file, encryption })
}

/// What `sslmode` and the files beside it mean, which is what they mean to libpq.
fn encryption(options: &mut Options<'_>) -> Result<Ssl, String> {
    let mode = options.take("sslmode");
    let roots = options.take("sslrootcert");
    let identity = pair(("sslcert", options.take("sslcert")), ("sslkey", options.take("sslkey")))?;
    let has_files = roots.is_some() || identity.is_some();
    let trust = match (mode.as_deref(), roots) {
        (Some("disable"), _) if has_files => {
            Err("sslmode=disable uses no certificates: leave them out, or encrypt")
        }
        (Some("disable"), _) => return Ok(Ssl::Off),
        (None | Some("prefer"), None) => {
            return Ok(Ssl::IfOffered(TlsFiles { trust: TrustFiles::Anybody, identity }));
        }
        (None | Some("prefer"), Some(_)) => {
            Err("sslrootcert protects nothing without sslmode=verify-full: write that too")
        }
        (Some("require"), None) => Ok(TrustFiles::Anybody),
        (Some("require" | "verify-ca"), Some(file)) if file == "system" => {
            Err("anybody can have a certificate of an authority of the system: write \
                 sslmode=verify-full with sslrootcert=system")
        }
        (Some("require" | "verify-ca"), Some(file)) => Ok(TrustFiles::Authority(file)),
        (Some("verify-ca"), None) => Err("sslmode=verify-ca needs sslrootcert=FILE"),
        (Some("verify-full"), roots) => Ok(TrustFiles::Host(roots.filter(|file| file != "system"))),
        _ => Err("sslmode must be disable, prefer, require, verify-ca or verify-full"),
    };
    Ok(Ssl::Required(TlsFiles { trust: trust.map_err(str::to_owned)?, identity }))
}

/// A certificate and its key, which only make sense together.
fn pair(
    (certificate, one): (&str, Option<String>),
    (key, other): (&str, Option<String>),
) -> Result<Option<(String, String)>, String> {
    match (one, other) {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        _ => Err(format!("{certificate} and {key} must be named together")),
    }
}

/// The options of an address, as they were written.
struct Options<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Options<'t> {
    fn read(query: &'t str) -> Result<Self, String> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            let is_name = name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
            if name.is_empty() || !is_name || decoded(value).is_err() {
                return Err("what follows the question mark must be NAME=VALUE&NAME=VALUE, with \
                            %XX for odd characters"
                    .to_owned());
            }
            Ok((name, value))
        });
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        let twice = (1..pairs.len()).find(|&at| pairs[..at].iter().any(|it| it.0 == pairs[at].0));
        match twice {
            Some(at) => Err(format!("it names {} twice", pairs[at].0)),
            None => Ok(Self(pairs)),
        }
    }

    /// Returns the value of an option, which is used up then.
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(own, _)| *own == name)?;
        decoded(self.0.remove(at).1).ok()
    }

    fn none_is_left(&self, known: &str) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("it has the options {known}, and not {name}")),
        }
    }

    /// The options that were not taken, behind this.
    fn append_to(&self, place: &str) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{place}{query}")
    }
}

/// Replaces `%XX` by the byte that it stands for.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|it| char::from(it).to_digit(16));
        bytes.push(match byte {
            b'%' => match (digit(), digit()) {
                (Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or_default(),
                _ => return Err("a % must have two hexadecimal digits behind it".to_owned()),
            },
            plain => plain,
        });
    }
    String::from_utf8(bytes).map_err(|_| "its %XX must be UTF-8".to_owned())
}

fn check(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "the name of the cluster must be 1 to {NAME_BYTES_MAX} letters, digits, `_` and `-`"
    ))
}

/// Reads an address from the command line or the environment. Others show what they could not read.
#[derive(Clone)]
pub(crate) struct UrlParser;

impl TypedValueParser for UrlParser {
    type Value = ClusterUrl;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ClusterUrl, clap::Error> {
        let read = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        read.and_then(str::parse).map_err(|why: String| {
            let argument = argument.map(ToString::to_string).unwrap_or_default();
            let message =
                format!("the address of the cluster ('{argument}') cannot be used: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

impl ValueParserFactory for ClusterUrl {
    type Parser = UrlParser;

    fn value_parser() -> UrlParser {
        UrlParser
    }
}

impl TryFrom<String> for ClusterUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests;
