//! A connection that speaks RESP, to pinpriq or to Redis, with a timeout for everything.
//!
//! Any error means that the connection is gone.

use std::net::SocketAddr;

use pinpriq_client::blocking::{Line, Resp};

use crate::fault::Fallible;
use crate::process::GUARD;

/// Connects.
pub(crate) fn connect(address: SocketAddr) -> Fallible<Resp> {
    let mut line = Line::connect(address)?;
    line.limit_waiting(Some(GUARD));
    Ok(Resp::over(line))
}
