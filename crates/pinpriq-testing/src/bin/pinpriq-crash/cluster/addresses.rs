//! Free addresses on this machine, for the engines under clusters.

use std::net::{SocketAddr, TcpListener};

use crate::fault::Fallible;

/// The ports of engines are here, where no system takes ports for outgoing connections. So they
/// are still free when a server comes back.
const PORTS_FROM: u32 = 20_000;
const PORTS: u32 = 12_000;

/// Finds free ports on the loopback interface.
pub(crate) fn free_addresses(count: usize) -> Fallible<Vec<SocketAddr>> {
    // Runs at the same time begin at different ports.
    let start = std::process::id().wrapping_mul(16) % PORTS;
    let mut found = Vec::new();
    for offset in 0..PORTS {
        let port = u16::try_from(PORTS_FROM + (start + offset) % PORTS)?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            found.push(address);
        }
        if found.len() == count {
            return Ok(found);
        }
    }
    Err("no ports are free".into())
}
