//! Reads the files that the address of a cluster names: certificates, keys and passwords. They are
//! read once, before the engine is connected.

use pinpriq_cluster::etcd::EtcdUser;
use pinpriq_cluster::postgres::Encryption;
use pinpriq_tls::{Identity, Pem, Roots, Tls, Trust};

use super::url::{Password, Ssl, TlsFiles, TrustFiles};
use crate::exit::Failure;

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 4_096;

/// Reads what is needed to encrypt connections.
pub(super) fn tls(files: &TlsFiles) -> Result<Tls, Failure> {
    let trust = match &files.trust {
        TrustFiles::Anybody => Trust::Anybody,
        TrustFiles::Authority(file) => Trust::Authority(Roots::Pem(pem(file)?)),
        TrustFiles::Host(None) => Trust::Host(Roots::OfTheSystem),
        TrustFiles::Host(Some(file)) => Trust::Host(Roots::Pem(pem(file)?)),
    };
    let identity = match &files.identity {
        None => None,
        Some((certificates, key)) => {
            Some(Identity { certificates: pem(certificates)?, key: pem(key)? })
        }
    };
    Tls::new(&trust, identity).map_err(|error| Failure::unusable(error.to_string()))
}

/// Reads what is needed to encrypt connections to PostgreSQL, if they are.
pub(super) fn encryption(ssl: &Ssl) -> Result<Encryption, Failure> {
    Ok(match ssl {
        Ssl::Off => Encryption::Off,
        Ssl::IfOffered(files) => Encryption::IfOffered(tls(files)?),
        Ssl::Required(files) => Encryption::Required(tls(files)?),
    })
}

/// Returns who signs in to etcd.
pub(super) fn user((name, password): &(String, Password)) -> Result<EtcdUser, Failure> {
    let password = match password {
        Password::Given(password) => password.clone(),
        Password::InFile(file) => password_in(file)?,
    };
    Ok(EtcdUser { name: name.clone(), password })
}

/// Returns the first line of a file.
pub(super) fn password_in(file: &str) -> Result<String, Failure> {
    let text = String::from_utf8(read(file)?).unwrap_or_default();
    let line = text.lines().next().unwrap_or("");
    if line.is_empty() || line.len() > PASSWORD_BYTES_MAX {
        return Err(Failure::unusable(format!(
            "the first line of {file} must be a password: UTF-8 of 1 to {PASSWORD_BYTES_MAX} bytes"
        )));
    }
    Ok(line.to_owned())
}

fn pem(file: &str) -> Result<Pem, Failure> {
    Ok(Pem { name: file.to_owned(), text: read(file)? })
}

#[expect(clippy::disallowed_methods, reason = "keys are no part of a data directory")]
fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::unusable(format!("the file {file} cannot be read: {error}"));
    std::fs::read(file).map_err(failed)
}
