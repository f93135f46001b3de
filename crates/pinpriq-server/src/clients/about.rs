//! Who a client is, and how it is treated.

use std::net::SocketAddr;
use std::sync::Arc;

use pinpriq_proto::task::{ClientId, RequestId};
use pinpriq_proto::time::Timestamp;

use crate::access::pass::Pass;
use crate::access::usage::Counted;
use crate::config::DoorName;

/// The number of requests without a reply on the wire. The engine's replies to them are not sent.
pub(crate) const SILENT: RequestId = RequestId(u64::MAX);

/// The number of a request whose reply is one shard's part of a reply.
pub(crate) const PART: RequestId = RequestId(u64::MAX - 1);

/// The number of a request without a reply on the wire, whose reply another shard sends all the
/// same: it shows what became of the request. It is not sent to the client.
pub(crate) const MUTE: RequestId = RequestId(u64::MAX - 2);

/// The number of what a shard is asked aside from the requests of the client: its reply fills no
/// gap.
pub(crate) const ASIDE: RequestId = RequestId(u64::MAX - 3);

/// Distinguishes the number of a guest from that of a client with its connection here.
const GUEST: u64 = ClientId::SECOND;

/// Whether this client is a guest: another shard has its connection.
pub(crate) const fn is_guest(client: ClientId) -> bool {
    client.0 & GUEST != 0
}

/// Returns the client that a guest stands for, and any other client as it is.
#[must_use]
pub const fn at_home(client: ClientId) -> ClientId {
    client.first()
}

/// Returns the guest that stands for a client of another shard here.
pub(crate) const fn as_guest(client: ClientId) -> ClientId {
    ClientId(client.0 | GUEST)
}

/// Distinguishes the number of a guest from another process, which the host gives it, from those
/// that stand for a client of this process.
const LINKED: u64 = 1 << 62;

/// Returns the guest from another process that has this number here.
pub(crate) const fn linked_guest(number: u64) -> ClientId {
    ClientId(number | LINKED | GUEST)
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
    /// The common name of its certificate, if it has shown one: empty unless there is exactly one.
    pub(crate) certificate: Option<Arc<str>>,
    /// What counts it as a connection of its user.
    pub(crate) counted: Option<Counted>,
    /// Its user, if the server has users and one has signed in.
    pub(crate) pass: Option<Pass>,
}

/// How the clients of a door are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, pinpriq_proto::letters::Letter)]
#[letter(unsampled)]
pub(crate) struct Manners {
    /// Whether the protocol can report refusals and a failed store. If not, connections end
    /// instead.
    #[letter(1)]
    pub(crate) tells_refusals: bool,
    /// Whether a put waits while there is no room for it, instead of being refused.
    #[letter(2)]
    pub(crate) waits_for_room: bool,
    /// How many commands for one group are carried out before their results count as under way.
    /// Until then the size of the group is unknown.
    pub(crate) groups_per_turn: usize,
    /// Whether popped tasks return to their queue if their frame was not sent completely.
    #[letter(3)]
    pub(crate) requeues: bool,
}

/// A dialect of a door's protocol in which a reply is written. Only the doors know what it means. A
/// change takes effect at its place among the replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dialect(pub(crate) u8);

/// The connections to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Chosen {
    /// The one with this number.
    Id(u64),
    /// The one from this address.
    Address(Vec<u8>),
}
