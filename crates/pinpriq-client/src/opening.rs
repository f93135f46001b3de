//! Opens connections: connects, encrypts, signs in.

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_tls::Peer;
use tokio::net::TcpStream;

use crate::address::HostPort;
use crate::clock::within;
use crate::error::{Error, Refused};
use crate::options::Options;
use crate::transport::{Line, Replies};

/// A way to a server.
#[derive(Debug)]
pub(crate) struct Opening {
    options: Options,
    /// The servers as their certificates must show them, if connections are encrypted.
    peers: Vec<Option<Peer>>,
    server: String,
    /// The host of the last connection, which is tried first.
    current: AtomicUsize,
}

impl Opening {
    /// Reads the certificates of the system, if they are needed.
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let server = options.address.shown();
        match options.peers() {
            Ok(peers) => Ok(Self { options, peers, server, current: AtomicUsize::new(0) }),
            Err(why) => Err(Error::Disconnected { server, why }),
        }
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// The error for a connection that could not be made, or broke.
    pub(crate) fn disconnected(&self, why: &impl Display) -> Error {
        Error::Disconnected { server: self.server.clone(), why: why.to_string() }
    }

    /// Opens a connection to the first host that answers, beginning with the last one that did.
    /// Refused if this sign-in is not valid.
    pub(crate) async fn open(&self) -> Result<(Line, Replies), Error> {
        let hosts = &self.options.address.hosts;
        let current = self.current.load(Ordering::Relaxed);
        let mut outcome = Err(self.disconnected(&"it has no address"));
        for number in (current..current + hosts.len()).map(|number| number % hosts.len()) {
            let (Some(host), Some(peer)) = (hosts.get(number), self.peers.get(number)) else {
                continue;
            };
            outcome = self.open_at(host, peer.as_ref()).await;
            // Another host would not let this user in either.
            if matches!(outcome, Ok(_) | Err(Error::Refused(_))) {
                self.current.store(number, Ordering::Relaxed);
                break;
            }
        }
        outcome
    }

    async fn open_at(
        &self,
        host: &HostPort,
        peer: Option<&Peer>,
    ) -> Result<(Line, Replies), Error> {
        let broken = |error| self.disconnected(&error);
        let timeout = self.options.timeout;
        let connect = TcpStream::connect((host.host.as_str(), host.port));
        let mut line = Line::over(within(Some(timeout), connect).await.map_err(broken)?);
        line.limit_waiting(Some(timeout));
        if let Some(peer) = peer {
            line = line.encrypt(peer).await.map_err(broken)?;
        }
        let mut bytes = Vec::new();
        self.greeting().put(&mut bytes);
        line.send(&bytes).await.map_err(broken)?;
        let mut replies = Replies::default();
        match line.reply(&mut replies).await {
            Ok(Value::Map(_)) => Ok((line, replies)),
            Ok(Value::Error(text)) => Err(Refused::of(&text, false).into()),
            Ok(_) => Err(self.disconnected(&"it does not greet as a pinpriq server does")),
            Err(lost) => Err(self.disconnected(&lost)),
        }
    }

    /// The first command, which signs in if there is a user.
    fn greeting(&self) -> Words {
        let Options { address, name, .. } = &self.options;
        let words = match &address.password {
            None => Words::new("HELLO 3"),
            Some(password) => {
                let user = address.user.as_deref().unwrap_or("default");
                Words::new("HELLO 3 AUTH").bytes(user).bytes(password)
            }
        };
        words.bytes("SETNAME").bytes(name.as_deref().unwrap_or(&own_name()))
    }
}

/// The name of a connection to which the program gave none: that of the program, and the number of
/// the process.
fn own_name() -> String {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(Path::file_stem).unwrap_or_default();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let plain: String = stem.to_string_lossy().chars().filter(is_plain).take(40).collect();
    format!("{}-{}", if plain.is_empty() { "rust" } else { &plain }, std::process::id())
}
