//! Why a server does not start or cannot continue.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use pinpriq_store::StoreError;

/// Why a server does not start or cannot continue. Each message is a sentence for an operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", remedy_of(source.kind()))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Two doors would listen on the same address.
    #[error("two doors would listen on {address}: give one of them another address")]
    Twice {
        /// The address of one of them.
        address: SocketAddr,
    },
    /// What the service manager has passed cannot be used.
    #[error("a socket that the service manager has passed (LISTEN_FDS) cannot be used: {source}")]
    Passed {
        /// Why.
        source: io::Error,
    },
    /// The service manager has passed a socket that no door has.
    #[error(
        "the service manager has passed a socket at {address} (LISTEN_FDS), and no door has this \
         address; give it to one, as in --resp {address}, or remove it from the unit of sockets"
    )]
    PassedForNothing {
        /// Where it listens.
        address: SocketAddr,
    },
    /// The data directory does not exist and cannot be created.
    #[error("cannot make the data directory {}: {source}; name another one", data.display())]
    Directory {
        /// The directory.
        data: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory {}: {source}", data.display())]
    Store {
        /// The directory.
        data: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// The server was stopped before the tasks were loaded. No shard that was still loading was
    /// changed.
    #[error("stopped while loading")]
    Stopped,
    /// The operating system refused something that every server needs.
    #[error("cannot start: {source}")]
    Runtime {
        /// Why.
        source: io::Error,
    },
    /// This node cannot be part of the cluster.
    #[error("cannot be part of the cluster: {why}")]
    Cluster {
        /// Why, and what to do.
        why: String,
    },
    /// The engine under the cluster is not, or no longer, the one that this node knows.
    #[error("the engine is not as this node knows it: {why}")]
    WrongEngine {
        /// How it differs, and what to do.
        why: String,
    },
    /// The engine under the cluster has lost what it had said to keep.
    #[error("{}{source}", shard.map(|shard| format!("shard {shard}: ")).unwrap_or_default())]
    RolledBack {
        /// The shard in whose log this was found, if it was found in a log.
        shard: Option<u16>,
        /// What the node has seen, what it finds, and what to do.
        source: StoreError,
    },
    /// A single server was given the data directory of a node.
    #[error(
        "the data directory {} belongs to a node of a cluster: give --data another directory, or \
         name the cluster with --cluster",
        data.display()
    )]
    OfNode {
        /// The directory.
        data: PathBuf,
    },
    /// The audit cannot be written.
    #[error("cannot write the audit to {why}; name another file with --audit")]
    Audit {
        /// Which file, and why.
        why: String,
    },
    /// The place of the archive cannot be used.
    #[error("cannot archive: {why}")]
    Archive {
        /// Why, and what to do.
        why: String,
    },
    /// The users cannot be read.
    #[error("cannot use the users: {why}")]
    Users {
        /// Why, and what to do.
        why: String,
    },
    /// The certificates or the key cannot be used.
    #[error("cannot encrypt connections: {why}")]
    Tls {
        /// Which file, and why.
        why: String,
    },
    /// A server without users would let everybody in who can reach it.
    #[error(
        "{address} can be reached from other machines, and this server has no users, so all who \
         reach it could use all queues: make users with `pinpriq user add` and name their file \
         with --users, name a file with one password with --password-file, listen on 127.0.0.1, \
         or start with --insecure-open"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// A door without passwords would be open, and no user could use it.
    #[error(
        "the {door} door at {address} can be reached from other machines and has no passwords: it \
         acts as the user anonymous, who has no rights; give anonymous some, listen on 127.0.0.1, \
         or switch the door off"
    )]
    Anonymous {
        /// The door.
        door: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The store failed while the server ran. Everything that was replied before is durable.
    #[error("the store failed while the server ran: {source}")]
    Failed {
        /// Why.
        source: StoreError,
    },
}

impl ServeError {
    /// Returns the exit code of a process that ends with this error: 0 for a start that was
    /// stopped, 1 for a failure while running and for what another try may get over, 2 for a wrong
    /// configuration, 3 for the data directory or an engine that has lost data.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Failed { .. } | Self::Runtime { .. } => 1,
            // These may end by themselves.
            Self::Bind { source, .. } if may_pass(source.kind()) => 1,
            Self::Bind { .. }
            | Self::Twice { .. }
            | Self::Passed { .. }
            | Self::PassedForNothing { .. }
            | Self::Cluster { .. }
            | Self::OfNode { .. }
            | Self::Users { .. }
            | Self::Audit { .. }
            | Self::Archive { .. }
            | Self::Tls { .. }
            | Self::Open { .. }
            | Self::Anonymous { .. } => 2,
            Self::Directory { .. }
            | Self::Store { .. }
            | Self::WrongEngine { .. }
            | Self::RolledBack { .. } => 3,
        }
    }
}

/// Whether an address that is refused for this reason may be there a moment later.
const fn may_pass(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}

/// What can be done about an address that is refused for this reason.
const fn remedy_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => "stop whatever uses it, or name another one",
        io::ErrorKind::AddrNotAvailable => {
            "no network interface has this address: start again when one has it, or name another \
             address"
        }
        io::ErrorKind::PermissionDenied => {
            "the system lets only some processes use this port: name one from 1024 up"
        }
        _ => "name another one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_be_there_later_is_worth_another_start() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        for (kind, code, words) in [
            (io::ErrorKind::AddrInUse, 1, "stop whatever uses it"),
            (io::ErrorKind::AddrNotAvailable, 1, "no network interface has this address"),
            (io::ErrorKind::PermissionDenied, 2, "from 1024 up"),
            (io::ErrorKind::Other, 2, "name another one"),
        ] {
            let error = ServeError::Bind { address, source: kind.into() };
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
