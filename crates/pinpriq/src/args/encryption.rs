//! The arguments about encryption of the commands that speak to a server.

use std::path::PathBuf;

use clap::Args;

/// How connections to a server are encrypted.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EncryptionArgs {
    /// Encrypt, and check that the server is the one that was meant
    ///
    /// The same as an address that begins with rediss://, pinpriqs:// or https://. The other
    /// options here mean it too.
    #[arg(help_heading = "Encryption")]
    #[arg(long)]
    pub(crate) tls: bool,

    /// The authority that has signed the certificate of the server [default: those of this machine]
    #[arg(help_heading = "Encryption")]
    #[arg(long, env = "PINPRIQ_CA", hide_env_values = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The certificate of this client, which may say who its user is
    #[arg(help_heading = "Encryption")]
    #[arg(long, env = "PINPRIQ_CLIENT_CERT", hide_env_values = true, value_name = "FILE")]
    #[arg(requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(help_heading = "Encryption")]
    #[arg(long, env = "PINPRIQ_CLIENT_KEY", hide_env_values = true, value_name = "FILE")]
    #[arg(requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,

    /// Encrypt, and trust any server that answers
    #[arg(help_heading = "Encryption")]
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
}
