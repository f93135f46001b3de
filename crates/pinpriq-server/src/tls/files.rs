//! The certificates and the key of the server, as their files have them now.
//!
//! The files are read again when they change, and on request. Files that cannot be used change
//! nothing and are reported once. `process::access` watches them.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinpriq_tls::{Clients, Identity, Pem, server_config};
use rustls::ServerConfig;

use crate::config::{DoorName, TlsOptions};
use crate::error::ServeError;
use crate::stamp::Stamp;

/// The most bytes of one of the files.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The protocols of the HTTP door, the best first. A client that names none at all is accepted too.
const HTTP_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificates and the key of a server that has some.
pub(crate) struct Files {
    options: TlsOptions,
    current: Mutex<Current>,
}

struct Current {
    configs: Configs,
    stamps: Stamps,
    /// What was said about files that cannot be used.
    complaint: Option<String>,
}

/// What rustls needs for handshakes.
struct Configs {
    wire: Arc<ServerConfig>,
    resp: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
}

/// The states of the certificates, the key, and the authorities of clients.
type Stamps = [Option<Stamp>; 3];

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Files {
    /// Reads the files. Blocks.
    pub(crate) fn open(options: &TlsOptions) -> Result<Self, ServeError> {
        let stamps = stamps(options);
        let configs = load(options).map_err(|why| ServeError::Tls { why })?;
        let current = Mutex::new(Current { configs, stamps, complaint: None });
        Ok(Self { options: options.clone(), current })
    }

    /// Returns what a handshake at this door needs.
    pub(crate) fn config(&self, door: DoorName) -> Arc<ServerConfig> {
        let configs = &self.current().configs;
        Arc::clone(match door {
            DoorName::Pinpriq | DoorName::Beanstalkd => &configs.wire,
            DoorName::Resp | DoorName::RespCluster => &configs.resp,
            DoorName::Http => &configs.http,
        })
    }

    /// Reads the files again if they have changed, or in any case if `anyway`. Connections that
    /// exist go on as they are. Blocks.
    pub(crate) fn look(&self, anyway: bool) {
        let stamps = stamps(&self.options);
        let has_changed = self.current().stamps != stamps;
        if !has_changed && !anyway {
            return;
        }
        let loaded = load(&self.options);
        let current = &mut *self.current();
        current.stamps = stamps;
        match loaded {
            Ok(configs) => {
                let certificate = self.options.certificate.display();
                tracing::info!(%certificate, "new connections get the certificate as it is now");
                current.configs = configs;
                current.complaint = None;
            }
            // Files that are being replaced do not belong together for a moment.
            Err(why) => {
                let complaint = format!("{why}; the certificate stays as it was");
                if current.complaint.as_ref() != Some(&complaint) {
                    tracing::warn!("{complaint}");
                }
                current.complaint = Some(complaint);
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(options: &TlsOptions) -> Stamps {
    let clients = options.clients.as_ref().and_then(|it| Stamp::of(&it.authorities));
    [Stamp::of(&options.certificate), Stamp::of(&options.key), clients]
}

fn load(options: &TlsOptions) -> Result<Configs, String> {
    let identity = Identity { certificates: read(&options.certificate)?, key: read(&options.key)? };
    let clients = options.clients.as_ref().map(|it| {
        let authorities = read(&it.authorities)?;
        Ok::<_, String>(Clients { authorities, required: it.required })
    });
    let clients = clients.transpose()?;
    let resp = server_config(&identity, clients.as_ref()).map_err(|error| error.to_string())?;
    // Some clients of these doors never read. If one closed with tickets for its next handshake
    // unread, its system would reset the connection, and what it has sent might be lost.
    let mut wire = resp.clone();
    wire.send_tls13_tickets = 0;
    let mut http = resp.clone();
    http.alpn_protocols = HTTP_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Configs { wire: Arc::new(wire), resp: Arc::new(resp), http: Arc::new(http) })
}

#[expect(clippy::disallowed_methods, reason = "these files are no part of a data directory")]
fn read(path: &Path) -> Result<Pem, String> {
    let name = path.display().to_string();
    let mut text = Vec::new();
    let read = File::open(path).and_then(|it| it.take(FILE_BYTES_MAX).read_to_end(&mut text));
    read.map_err(|error| format!("{name} cannot be read: {error}"))?;
    Ok(Pem { name, text })
}
