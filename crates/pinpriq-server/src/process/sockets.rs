//! The sockets of the doors: reserving an address, and listening on it later. A service manager may
//! have opened them already.
//!
//! `server` accepts connections, and `home::connection` reads and writes.

use std::io;
use std::net::{IpAddr, SocketAddr};

use listenfd::ListenFd;
use tokio::net::{TcpListener, TcpSocket};

use crate::config::DoorName;
use crate::error::ServeError;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// What is spoken at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Port {
    pub(crate) door: DoorName,
    pub(crate) is_encrypted: bool,
}

/// Sockets that a service manager, such as systemd with a unit for sockets, has opened and passed
/// to this process. Clients can connect to them already, and wait until they are accepted.
pub(crate) struct Passed(Vec<(SocketAddr, std::net::TcpListener)>);

impl Passed {
    /// Takes what was passed. Refuses what is no TCP socket that listens.
    pub(crate) fn from_environment() -> Result<Self, ServeError> {
        let mut passed = ListenFd::from_env();
        let count = passed.len();
        let take = |index| {
            let listener = passed.take_tcp_listener(index)?.ok_or(io::ErrorKind::NotFound)?;
            Ok((listener.local_addr()?, listener))
        };
        let all: io::Result<Vec<_>> = (0..count).map(take).collect();
        all.map(Self).map_err(|source| ServeError::Passed { source })
    }

    /// Returns the socket for this address, if it was passed.
    fn take(&mut self, address: SocketAddr) -> Option<std::net::TcpListener> {
        let at = self.0.iter().position(|(passed, _)| *passed == address)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Refuses sockets that no door has taken.
    pub(crate) fn refuse_rest(self) -> Result<(), ServeError> {
        match self.0.first() {
            None => Ok(()),
            Some((address, _)) => Err(ServeError::PassedForNothing { address: *address }),
        }
    }
}

/// An address that was reserved, and that clients cannot connect to yet unless it was passed.
pub(crate) struct Taken {
    socket: Reserved,
    address: SocketAddr,
}

enum Reserved {
    Here(TcpSocket),
    Passed(std::net::TcpListener),
}

impl Taken {
    /// Reserves an address, or takes the socket that was passed for it. Refuses an address that
    /// another socket listens on, and one that is not available.
    pub(crate) fn new(address: SocketAddr, passed: &mut Passed) -> Result<Self, ServeError> {
        if let Some(listener) = passed.take(address) {
            return Ok(Self { socket: Reserved::Passed(listener), address });
        }
        let socket = Self::bind(address).map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self { socket: Reserved::Here(socket), address })
    }

    fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Connections of a former server that are still closing do not matter.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    }

    /// Lets clients connect. Refuses if another socket that reserved the same address listens by
    /// now: the system only distinguishes the two here.
    pub(crate) fn listen(self) -> Result<TcpListener, ServeError> {
        let Self { socket, address } = self;
        let listener = match socket {
            Reserved::Here(socket) => socket.listen(BACKLOG),
            Reserved::Passed(listener) => {
                listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener))
            }
        };
        listener.map_err(|source| ServeError::Bind { address, source })
    }
}

/// Refuses two addresses of one server that cannot both be listened on. The system would only
/// refuse them after the tasks are loaded.
pub(crate) fn refuse_overlap(one: SocketAddr, other: SocketAddr) -> Result<(), ServeError> {
    let any = |ip: IpAddr| ip.is_unspecified();
    let ips_overlap = one.is_ipv4() == other.is_ipv4()
        && (one.ip() == other.ip() || any(one.ip()) || any(other.ip()));
    if one.port() == 0 || one.port() != other.port() || !ips_overlap {
        return Ok(());
    }
    Err(ServeError::Twice { address: other })
}

#[cfg(test)]
mod tests {
    use super::refuse_overlap;

    #[test]
    fn addresses_overlap_with_their_own_port_alone() {
        let overlap = |one: &str, other: &str| {
            refuse_overlap(one.parse().unwrap(), other.parse().unwrap()).is_err()
        };
        assert!(overlap("127.0.0.1:7", "127.0.0.1:7"));
        assert!(overlap("0.0.0.0:7", "127.0.0.1:7"));
        assert!(overlap("[::1]:7", "[::]:7"));
        assert!(!overlap("127.0.0.1:0", "127.0.0.1:0"));
        assert!(!overlap("127.0.0.1:7", "127.0.0.1:8"));
        assert!(!overlap("127.0.0.1:7", "127.0.0.2:7"));
        assert!(!overlap("127.0.0.1:7", "[::1]:7"));
    }
}
