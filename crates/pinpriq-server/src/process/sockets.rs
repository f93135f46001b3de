//! The sockets of the doors: reserving an address, listening on it later, and how the system
//! watches each connection to notice that the other side has vanished. A service manager may have
//! opened them already.
//!
//! `server` accepts connections, and `home::connection` reads and writes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use listenfd::ListenFd;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket};

use crate::config::{DoorName, Watch};
use crate::error::ServeError;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// How many probes go unanswered before a connection is given up.
const PROBES: u32 = 3;

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
        if planted!(ListensBeforeLoading) {
            let _ = SockRef::from(&socket).listen(1);
        }
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

/// How an idle connection is probed: after how long, how often, and how many times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probing {
    idle: Duration,
    interval: Duration,
    probes: u32,
}

impl Probing {
    /// Probes after this idle time, in whole seconds, which are the system's unit.
    fn after(idle: Duration) -> Self {
        let in_seconds = |time: Duration| {
            let begun = u64::from(time.subsec_nanos() > 0);
            Duration::from_secs(time.as_secs() + begun)
        };
        Self { idle: in_seconds(idle), interval: in_seconds(idle / 4), probes: PROBES }
    }
}

/// Configures how the system watches a connection.
pub(crate) fn watch(socket: &SockRef<'_>, watch: &Watch) -> io::Result<()> {
    if let Some(idle) = watch.keepalive
        && !planted!(KeepAliveNotSet)
    {
        let Probing { idle, interval, probes } = Probing::after(idle);
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket.set_tcp_keepalive(&keepalive.with_retries(probes))?;
    }
    if watch.user_timeout.is_some() {
        socket.set_tcp_user_timeout(watch.user_timeout)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    /// Returns how the system watches a connection.
    fn watching(socket: &SockRef<'_>) -> io::Result<(Option<Probing>, Option<Duration>)> {
        let user_timeout = socket.tcp_user_timeout()?.filter(|timeout| !timeout.is_zero());
        if !socket.keepalive()? {
            return Ok((None, user_timeout));
        }
        let probing = Probing {
            idle: socket.tcp_keepalive_time()?,
            interval: socket.tcp_keepalive_interval()?,
            probes: socket.tcp_keepalive_retries()?,
        };
        Ok((Some(probing), user_timeout))
    }

    /// Returns the server's side of a connection, and the client's.
    fn accepted() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    #[test]
    fn an_accepted_socket_is_told_how_to_be_watched() {
        let (socket, _client) = accepted();
        let keepalive = Some(Duration::from_millis(10_001));
        let user_timeout = Some(Duration::from_millis(1_234));
        watch(&SockRef::from(&socket), &Watch { keepalive, user_timeout }).unwrap();
        let seconds = Duration::from_secs;
        let probing = Probing { idle: seconds(11), interval: seconds(3), probes: 3 };
        let seen = watching(&SockRef::from(&socket)).unwrap();
        assert_eq!(seen, (Some(probing), user_timeout));
    }

    #[test]
    fn what_is_switched_off_is_left_to_the_system() {
        let (socket, _client) = accepted();
        let before = watching(&SockRef::from(&socket)).unwrap();
        watch(&SockRef::from(&socket), &Watch { keepalive: None, user_timeout: None }).unwrap();
        assert_eq!(watching(&SockRef::from(&socket)).unwrap(), before);
    }

    #[test]
    fn a_vanished_host_is_given_up_within_two_minutes_by_default() {
        let Watch { keepalive, user_timeout } = Watch::default();
        let Probing { idle, interval, probes } = Probing::after(keepalive.unwrap());
        assert!(idle + interval * probes <= Duration::from_mins(2));
        // It also ends the probing of an idle connection, but must not do so after one lost probe.
        let user_timeout = user_timeout.unwrap();
        assert!(user_timeout <= Duration::from_mins(2));
        assert!(user_timeout > idle + interval * (probes - 1));
    }

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
