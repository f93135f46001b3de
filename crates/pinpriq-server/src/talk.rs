//! An exchange with either door, for those who keep both kinds in one place.

use std::net::SocketAddr;
use std::rc::Rc;

use pinpriq_engine::task::ClientId;

use crate::config::{Limits, PinpriqOptions};
use crate::exchange::Exchange;
use crate::front::pinpriq::PinpriqDoor;
use crate::front::resp::RespDoor;
use crate::shard::{Session, Shard};

/// See the head of this file.
pub(crate) enum Talk {
    Pinpriq(Exchange<PinpriqDoor>),
    Resp(Exchange<RespDoor>),
}

/// Does the same with either door.
macro_rules! with {
    ($talk:expr, $exchange:ident => $body:expr) => {
        match $talk {
            $crate::talk::Talk::Pinpriq($exchange) => $body,
            $crate::talk::Talk::Resp($exchange) => $body,
        }
    };
}
pub(crate) use with;

impl Talk {
    /// Begins with a client that the shard knows, through the door of this name.
    pub(crate) fn begin(
        shard: Rc<Shard>,
        who: (ClientId, Rc<Session>),
        (door, peer): (&'static str, SocketAddr),
        (options, limits): (PinpriqOptions, Limits),
    ) -> Self {
        let (client, session) = who.clone();
        if door == RespDoor::NAME {
            let door = RespDoor::new(shard.clone(), session, client, limits);
            Self::Resp(Exchange::new(shard, limits, peer, who, door))
        } else {
            let door = PinpriqDoor::new(shard.clone(), session, client, options, limits);
            Self::Pinpriq(Exchange::new(shard, limits, peer, who, door))
        }
    }
}
