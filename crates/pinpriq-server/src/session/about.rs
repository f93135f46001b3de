//! Who a client is, and how it is to be dealt with.

use std::net::SocketAddr;

use pinpriq_engine::task::{ClientId, RequestId};
use pinpriq_engine::time::Timestamp;

use crate::config::DoorName;

/// The number of requests without a reply on the wire. What the engine answers to them is not sent.
pub(crate) const SILENT: RequestId = RequestId(u64::MAX);

/// The number of a request whose reply is one shard's part of an answer.
pub(crate) const PART: RequestId = RequestId(u64::MAX - 1);

/// Tells the client that a guest is here from the client that it is at home.
const GUEST: u64 = 1 << 63;

/// Whether this client is a guest: another shard has its connection.
pub(crate) const fn is_guest(client: ClientId) -> bool {
    client.0 & GUEST != 0
}

/// The guest that this client of another shard is here.
pub(crate) const fn as_guest(client: ClientId) -> ClientId {
    ClientId(client.0 | GUEST)
}

/// What is known about a client.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) peer: Option<SocketAddr>,
    /// The door that it came through.
    pub(crate) door: DoorName,
    pub(crate) connected_at: Timestamp,
    pub(crate) name: Vec<u8>,
    pub(crate) library: Vec<u8>,
    pub(crate) library_version: Vec<u8>,
}

/// How the clients of a door are dealt with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manners {
    /// Whether the protocol has words for refusals, and for a store that has failed. If not,
    /// connections end instead.
    pub(crate) tells_refusals: bool,
    /// Whether a put waits while there is no room for it, and is not refused.
    pub(crate) waits_for_room: bool,
    /// How many commands for one group are carried out before what they came to counts as under
    /// way. Until then nobody knows how large it is.
    pub(crate) groups_per_turn: usize,
    /// Whether popped tasks whose frame was not sent whole go back to their queue.
    pub(crate) requeues: bool,
}

/// Which of the dialects of a door's protocol an answer is written in. The doors know what it
/// means; a change takes effect in its place among the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dialect(pub(crate) u8);

/// Which connections are to be ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Chosen {
    /// The one with this number.
    Id(u64),
    /// The one from this address.
    Address(Vec<u8>),
}
