//! Settings that are names and addresses.

use std::str::FromStr;

use serde::Deserialize;

/// The longest name of a node, in bytes.
const NODE_BYTES_MAX: usize = 40;

/// The name of a node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct NodeName(pub(crate) String);

/// A host, without a port.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostName(pub(crate) String);

/// Names of hosts, without ports.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostNames(pub(crate) Vec<String>);

/// A host and a port, not yet resolved.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Address(pub(crate) String);

/// Where a door listens, not yet resolved.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Listen {
    /// Nowhere.
    Off,
    /// At a host and a port.
    At(String),
}

/// The origin of pages: a scheme and a host, with a port unless it is the usual one.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Origin(pub(crate) String);

/// Where backups lie: a directory, or the URL of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PlaceName(pub(crate) String);

impl FromStr for PlaceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it must be a directory, or a bucket such as s3://bucket/prefix".to_owned()),
            "off" => {
                Err("leave it out to archive nothing; a directory `off` is `./off`".to_owned())
            }
            name => Ok(Self(name.to_owned())),
        }
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_plain =
            |char: char| char.is_ascii_graphic() && !matches!(char, '/' | '?' | '@' | '*');
        if host.is_some_and(|host| !host.is_empty() && host.chars().all(is_plain)) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err("it must be an origin as browsers send it, such as https://ops.example".to_owned())
    }
}

impl FromStr for NodeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if (1..=NODE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("it must be 1 to {NODE_BYTES_MAX} letters, digits, `_`, `-` and `.`"))
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_bracketed = text.starts_with('[') && text.ends_with(']');
        let has_port = text.contains(':') && !is_bracketed;
        let is_plain = |char: char| char.is_ascii_graphic() && !matches!(char, '/' | '?' | '@');
        if !text.is_empty() && !has_port && text.chars().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err("it must be a host without a port, such as 10.0.0.1, [fd00::1] or a name".to_owned())
    }
}

impl FromStr for HostNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_plain);
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        if names.iter().all(|name| is_name(name)) {
            return Ok(Self(names.into_iter().map(str::to_owned).collect()));
        }
        Err("it must be names of hosts without ports, such as a.example,b.example".to_owned())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "off" => Ok(Self::Off),
            Ok(Address(address)) => Ok(Self::At(address)),
            Err(_) => {
                Err("it must be a host and a port, such as 127.0.0.1:7250 or [::1]:7250, or off"
                    .to_owned())
            }
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or_default();
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let has_host = !host.is_empty() && (is_bracketed || !host.contains(':'));
        if has_host && port.parse::<u16>().is_ok() {
            return Ok(Self(text.to_owned()));
        }
        Err("it must be a host and a port, such as 127.0.0.1:7253 or [::1]:7253".to_owned())
    }
}

/// Has the file give what the command line gives.
macro_rules! from_file {
    ($($of:ty),+) => {$(
        impl TryFrom<String> for $of {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    )+};
}

from_file!(NodeName, HostName, HostNames, Address, Origin, Listen, PlaceName);
