//! How the system watches a connection, to notice that the other side has vanished.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::config::Watch;

/// How many probes go unanswered before a connection is given up.
const PROBES: u32 = 3;

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
    if let Some(idle) = watch.keepalive {
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
}
