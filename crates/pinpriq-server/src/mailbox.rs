//! The way from one shard to the others: letters, which travel in batches.
//!
//! What a shard has for another is gathered while its connections work, and then handed over with
//! one lock and one wake-up. A mailbox has no bound of its own; those who write have: a connection
//! has so many bytes under way to each shard and no more, and so has what it is answered. What the
//! letters mean is the business of `abroad` at the one end and `host` at the other.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use pinpriq_engine::reply::Reply;
use pinpriq_engine::task::ClientId;
use tokio::sync::Notify;

use crate::bell::Bell;
use crate::clients::Wanted;
use crate::info::Facts;
use crate::outbox::Dialect;
use crate::shard::About;

/// Something that one shard has for another.
pub(crate) enum Letter {
    /// A connection that was accepted elsewhere, or served there, and is to be served here.
    Arrival(Arrival),
    /// What a connection wants of queues that live here.
    Errand {
        /// The shard that has the connection.
        home: usize,
        /// Its client there.
        client: ClientId,
        /// What it wants.
        errand: Errand,
    },
    /// What became of the errands of a connection.
    News {
        /// The shard where the queues live.
        from: usize,
        /// The client in the shard that has the connection.
        client: ClientId,
        /// What has become of them.
        news: News,
    },
}

/// A connection that was accepted.
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) door: &'static str,
    /// What is known of its client, if it was served already.
    pub(crate) known: Option<Known>,
}

/// A client that a shard gives up to another.
pub(crate) struct Known {
    pub(crate) client: ClientId,
    pub(crate) about: About,
    pub(crate) dialect: Dialect,
    /// What has come and was not carried out.
    pub(crate) input: Vec<u8>,
}

/// What a connection wants of another shard. Errands of one connection are done in order, but for
/// those of which it says otherwise.
pub(crate) enum Errand {
    /// That it is expected: more will follow. The first of all.
    Open { door: &'static str, peer: Option<SocketAddr>, dialect: Dialect },
    /// Whole requests to be carried out, as they came.
    Requests(Vec<u8>),
    /// One request of which every shard answers its part.
    Ask(Question),
    /// Answers from here on are written like this. Answered with [`Part::Done`].
    Speak(Dialect),
    /// Credits that were granted before there was a subscription.
    Credit(u32),
    /// Everything that belongs to the client ends, and it begins anew. Answered with
    /// [`Part::Done`].
    Reset,
    /// The request that is blocked is answered as if its time were up.
    EndWaits,
    /// No more requests will come.
    EndInput,
    /// No more requests will come, since the server stops.
    Stop,
    /// So many bytes of answers have left. At once.
    Written(usize),
    /// The connection is gone. At once.
    Cut,
}

/// What every shard is asked for its part of.
pub(crate) enum Question {
    /// The answer of its engine to this request.
    Request(Vec<u8>),
    /// What there is to be told about it.
    Facts,
    /// A line for each of its connections.
    Clients,
    /// To end connections, but for that of the client who asks.
    Kill(Wanted, ClientId),
}

/// One shard's part of an answer.
pub(crate) enum Part {
    /// What its engine says.
    Reply(Reply),
    /// What its door says, in the client's protocol: what is wrong with the request.
    Bytes(Vec<u8>),
    /// See [`Question::Facts`].
    Facts(Box<Facts>),
    /// See [`Question::Clients`].
    Clients(Vec<(ClientId, String)>),
    /// How many connections are being ended.
    Killed(u64),
    /// That it has done what it was told.
    Done,
}

/// What has become of errands.
#[derive(Default)]
pub(crate) struct News {
    /// What the answers consist of, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The bytes of all pieces, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// How many bytes of requests were done with.
    pub(crate) consumed: usize,
    /// How often the client has begun anew.
    pub(crate) resets: u64,
    /// How it stands with the client.
    pub(crate) standing: Standing,
}

/// How it stands with a client in a shard that does not have its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standing {
    /// There are errands, or requests of them, that have to wait.
    pub(crate) stalled: bool,
    /// It has subscriptions.
    pub(crate) subscribed: bool,
    /// Nothing more will be done for it.
    pub(crate) ended: bool,
}

/// A piece of an answer.
pub(crate) enum Piece {
    /// So many bytes of a reply, and whether they are its last.
    Reply { length: usize, last: bool },
    /// So many bytes of a delivery, and whether they are its last.
    Delivery { length: usize, last: bool },
    /// A shard's part of a reply.
    Part(Part),
}

/// Where a shard finds what the others have for it.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    bell: Notify,
}

impl Mailbox {
    fn put(&self, letters: &mut Vec<Letter>) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).append(letters);
        self.bell.notify_one();
    }

    /// Takes out what has come.
    pub(crate) fn empty(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rung when something has come.
    pub(crate) const fn bell(&self) -> &Notify {
        &self.bell
    }
}

/// One shard's way to all of them, itself included.
pub(crate) struct Post {
    own: usize,
    boxes: Arc<[Mailbox]>,
    /// What was written and not sent yet, for each shard.
    outgoing: RefCell<Vec<Vec<Letter>>>,
    /// Rung when there is something to be sent.
    bell: Bell,
}

impl Post {
    /// The way of the shard with this number among those that have these boxes.
    pub(crate) fn new(own: usize, boxes: Arc<[Mailbox]>) -> Self {
        let outgoing = boxes.iter().map(|_| Vec::new()).collect();
        Self { own, boxes, outgoing: RefCell::new(outgoing), bell: Bell::default() }
    }

    /// The number of the shard itself.
    pub(crate) const fn own(&self) -> usize {
        self.own
    }

    /// How many shards there are.
    pub(crate) fn shards(&self) -> usize {
        self.boxes.len()
    }

    /// The shard's own mailbox.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.boxes[self.own]
    }

    /// Writes a letter, which is sent by the next [`Post::send`].
    pub(crate) fn write(&self, to: usize, letter: Letter) {
        self.outgoing.borrow_mut()[to].push(letter);
        self.bell.ring();
    }

    /// Writes what a client wants of a shard.
    pub(crate) fn write_errand(&self, to: usize, client: ClientId, errand: Errand) {
        self.write(to, Letter::Errand { home: self.own, client, errand });
    }

    /// Writes a request of a client into the last letter, if that has such, or else into a new one.
    pub(crate) fn write_request(&self, to: usize, client: ClientId, request: &[u8]) {
        let outgoing = &mut self.outgoing.borrow_mut()[to];
        if let Some(Letter::Errand { client: same, errand: Errand::Requests(requests), .. }) =
            outgoing.last_mut()
            && *same == client
        {
            requests.extend_from_slice(request);
            return;
        }
        let errand = Errand::Requests(request.to_vec());
        outgoing.push(Letter::Errand { home: self.own, client, errand });
        self.bell.ring();
    }

    /// Sends everything that was written. The bell is its listener's to hush.
    pub(crate) fn send(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        for (letters, mailbox) in outgoing.iter_mut().zip(&*self.boxes) {
            if !letters.is_empty() {
                mailbox.put(letters);
            }
        }
    }

    /// Rung when something was written since the last [`Post::send`].
    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }
}
