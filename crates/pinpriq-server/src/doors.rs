//! The doors. Each is the codec of one protocol, and maps requests to commands and replies back.
//!
//! A door holds no shard and decides nothing: it asks a desk. [`kind_of`] lists all doors.

pub(crate) mod beanstalkd;
pub(crate) mod http;
mod json;
mod pinpriq;
pub(crate) mod resp;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use pinpriq_proto::task::ClientId;

use crate::access::audit::Audit;
use crate::access::roster::Roster;
use crate::clients::about::{Dialect, Manners};
use crate::clients::contacts::Contacts;
use crate::config::{DoorName, Limits, PinpriqOptions};
use crate::home::client::Client;
use crate::home::door::{Door, Opened};
use crate::host::shard::Shard;
use crate::session::Session;
use crate::session::kept::Kept;

/// The options of doors.
#[derive(Clone, Debug)]
pub(crate) struct DoorOptions {
    /// For the pinpriq door.
    pub(crate) pinpriq: PinpriqOptions,
    /// The bounds, for all.
    pub(crate) limits: Limits,
    /// Who the clients are.
    pub(crate) contacts: Arc<Contacts>,
    /// The users, if the server has some.
    pub(crate) roster: Option<Arc<Roster>>,
    /// The audit, if there is one.
    pub(crate) audit: Option<Arc<Audit>>,
    /// What the connections of the beanstalkd door have in common.
    pub(crate) beanstalkd: Arc<beanstalkd::Shared>,
    /// What connections keep besides tasks.
    pub(crate) kept: Arc<Kept>,
}

/// Where clients of Redis reach a server: the port, and whether they must encrypt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RespAt {
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
}

/// A kind of door.
pub(crate) struct DoorKind {
    /// Its name.
    pub(crate) name: DoorName,
    /// Whether clients want to know which node of a cluster has a queue, so that the door refuses
    /// what belongs to another one.
    pub(crate) redirects: bool,
    /// Whether users can sign in. Where they cannot, the door acts as one user for all its clients.
    pub(crate) signs_in: bool,
    /// Whether a connection may move to the shard of its first queue. It begins with a new door
    /// there, which knows nothing of the former one but the dialect.
    pub(crate) moves: bool,
    /// How the door treats its clients.
    pub(crate) manners: fn(&DoorOptions) -> Manners,
    /// Opens a door for a connection whose replies begin in this dialect.
    pub(crate) open: fn(&DoorOptions, Dialect) -> Box<dyn Door>,
}

/// Returns the kind of this name.
pub(crate) const fn kind_of(name: DoorName) -> &'static DoorKind {
    match name {
        DoorName::Pinpriq => &pinpriq::KIND,
        DoorName::Resp => &resp::KIND,
        DoorName::RespCluster => &resp::KIND_FOR_CLUSTER_CLIENTS,
        DoorName::Http => &http::KIND,
        DoorName::Beanstalkd => &beanstalkd::KIND,
    }
}

/// Begins with a client known to the shard, which came through this door from this address.
pub(crate) fn begin(
    shard: Rc<Shard>,
    who: (ClientId, Rc<Session>),
    (door, peer): (DoorName, SocketAddr),
    options: &DoorOptions,
) -> Client {
    let kind = kind_of(door);
    let door = (kind.open)(options, who.1.dialect.get());
    begin_at(shard, who, (kind, door, peer), options)
}

/// Does the same at a door that was opened.
fn begin_at(
    shard: Rc<Shard>,
    who: (ClientId, Rc<Session>),
    (kind, door, peer): (&DoorKind, Box<dyn Door>, SocketAddr),
    options: &DoorOptions,
) -> Client {
    let opened = Opened {
        name: kind.name,
        door,
        manners: (kind.manners)(options),
        redirects: kind.redirects,
        signs_in: kind.signs_in,
        moves: kind.moves,
        command_name: pinpriq_proto::request::table::command_name,
    };
    let company = (options.roster.clone(), options.audit.clone(), &options.kept);
    Client::begin(shard, who, (opened, peer), options.limits, company)
}

/// Begins with a new client of the shard at this door, with the usual options.
#[cfg(test)]
pub(crate) fn connect(shard: &Rc<Shard>, door: DoorName) -> Client {
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let options = DoorOptions {
        pinpriq: PinpriqOptions::default(),
        limits: Limits::default(),
        contacts: Arc::default(),
        roster: None,
        audit: None,
        beanstalkd: Arc::default(),
        kept: Arc::default(),
    };
    begin(shard.clone(), shard.connect(door, peer), (door, peer), &options)
}
