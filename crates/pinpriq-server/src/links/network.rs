//! The connections between this node and the others.
//!
//! Between two nodes there are two connections, one dialed by each. A node sends its errands on the
//! one that it has dialed, and the answers come back on it. Here both are only bodies of bytes. A
//! connection that is lost is reported once, and nothing of it is delivered afterwards. The one
//! that was dialed is dialed again, and its bodies that did not arrive are gone.
//!
//! Everything runs on one thread, within a `LocalSet`. Which nodes there are comes from outside,
//! and so is what bodies mean. What was sent and not written yet has no bound of its own here: the
//! writers bound it, and a node that reads nothing is given up.

mod dialing;
mod greeting;
mod line;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pinpriq_proto::time::Span;
use pinpriq_tls::{Fingerprint, NodeKey};
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use self::dialing::Peer;
use self::greeting::{Agreed, Own, Trouble, greet_dialer};
use self::line::{Line, Loss};
use super::frame::Unwelcome;
use crate::clock::Clock;
use crate::config::Watch;
use crate::keepalive::watch;
use crate::throttle::{Throttle, warn_throttled};

/// How many connections may be greeting at a time. Others wait to be accepted. Each of the two
/// steps of a handshake takes some 0.1 ms of this thread (X25519 twice 23 µs, signing 22 µs,
/// checking a signature 60 µs, on one core), so a storm delays what else it does by 3 ms.
const GREETING_MAX: usize = 32;

/// How long nothing is accepted after the system refused to.
const ACCEPT_PAUSE: Span = Span::from_ms(100);

/// What a network needs.
pub(crate) struct NetworkOptions {
    /// Where other nodes connect to.
    pub(crate) listener: StdListener,
    /// This node.
    pub(crate) own: u128,
    /// Its key, whose fingerprint the other nodes find in the registry.
    pub(crate) key: NodeKey,
    /// How long a node may be silent. Each says something five times in this time.
    pub(crate) session_ttl: Duration,
    pub(crate) clock: Rc<dyn Clock>,
}

/// What the registry says of another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// Its name.
    pub(crate) node: String,
    /// The host and the port where it listens, or empty if it does not.
    pub(crate) address: String,
    /// That of its certificate. Nodes that do not encrypt have none.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// What happens to the connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NetworkEvent {
    /// This node was dialed, and has answered.
    Up(u128),
    /// The connection to this node that was up is lost.
    Down(u128),
    /// Another node has dialed this one.
    Came {
        /// The number of the connection. None is used twice.
        id: u64,
        /// The other node.
        instance: u128,
    },
    /// The connection that came with this number is lost.
    Gone(u64),
    /// A body has arrived.
    Message {
        /// The connection. It is up, or has come.
        from: End,
        /// The body, which is not empty.
        body: Vec<u8>,
    },
}

/// One end of a connection between two nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// That of the node that has dialed this one, and asks it.
    To(u128),
    /// That of the node that was dialed, and is asked. The connection came with this number.
    From(u64),
}

/// A connection that another node has dialed.
struct Incoming {
    instance: u128,
    line: Rc<Line>,
}

/// What is logged about connections that came.
#[derive(Default)]
struct Throttles {
    failed: Throttle,
    stranger: Throttle,
    version: Throttle,
    record: Throttle,
}

/// The connections between this node and the others.
pub(crate) struct Network {
    own: Cell<u128>,
    key: NodeKey,
    accepting: Arc<ServerConfig>,
    ttl: Span,
    clock: Rc<dyn Clock>,
    events: Rc<dyn Fn(NetworkEvent)>,
    /// What the registry says of the other nodes.
    records: RefCell<BTreeMap<u128, Record>>,
    /// Wakes those who wait for a record.
    records_changed: Notify,
    peers: RefCell<BTreeMap<u128, Rc<Peer>>>,
    /// Those that were reported to have come, and not yet to be gone.
    incoming: RefCell<BTreeMap<u64, Incoming>>,
    /// The number of connections that have come.
    came: Cell<u64>,
    throttles: Throttles,
}

impl Network {
    /// Starts to accept connections. Must be called within a `LocalSet`, whose end ends everything.
    ///
    /// `events` is called by the tasks of the network, never from within a method of it, and may
    /// call any of them. Refuses a listener that the runtime cannot use.
    pub(crate) fn start(
        options: NetworkOptions,
        events: Rc<dyn Fn(NetworkEvent)>,
    ) -> io::Result<Rc<Self>> {
        let NetworkOptions { listener, own, key, session_ttl, clock } = options;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let network = Rc::new(Self {
            own: Cell::new(own),
            accepting: key.accepting(),
            key,
            ttl: Span::from_ms(u64::try_from(session_ttl.as_millis()).unwrap_or(u64::MAX)),
            clock,
            events,
            records: RefCell::default(),
            records_changed: Notify::new(),
            peers: RefCell::default(),
            incoming: RefCell::default(),
            came: Cell::new(0),
            throttles: Throttles::default(),
        });
        tokio::task::spawn_local(network.clone().accept(listener));
        Ok(network)
    }

    /// Sets which other nodes there are, which alone may connect. Dials new ones, and those whose
    /// record has changed. Connections to others end, and are reported as lost a little later.
    /// Nothing that arrives on them is delivered.
    pub(crate) fn set_peers(self: &Rc<Self>, peers: BTreeMap<u128, Record>) {
        let own = self.own.get();
        let mut known = self.peers.borrow_mut();
        let listens = |record: &&Record| !record.address.is_empty();
        for (instance, peer) in &*known {
            peer.aim(peers.get(instance).filter(listens));
        }
        for (instance, record) in peers.iter().filter(|(_, record)| listens(record)) {
            if *instance != own && !known.contains_key(instance) {
                let peer = Rc::new(Peer::new(record.clone()));
                known.insert(*instance, peer.clone());
                tokio::task::spawn_local(self.clone().keep(*instance, peer));
            }
        }
        *self.records.borrow_mut() = peers;
        self.records_changed.notify_waiters();
    }

    /// Sets which instance this node is. If it is another than before, all connections end, are
    /// reported as lost a little later, and are dialed again.
    pub(crate) fn set_own(&self, instance: u128) {
        if self.own.replace(instance) == instance {
            return;
        }
        for peer in self.peers.borrow().values() {
            peer.start_again();
        }
        for incoming in self.incoming.borrow().values() {
            incoming.line.end();
        }
    }

    /// Sends a body, together with all others that are sent before this thread rests. It is lost if
    /// the connection is not up, or is lost before it arrives. Of an empty body nothing arrives.
    ///
    /// A body must not be longer than [`super::frame::BODY_BYTES_MAX`]: that would end the
    /// connection.
    pub(crate) fn send(&self, to: End, body: &[u8]) {
        match to {
            End::To(instance) => {
                if let Some(peer) = self.peers.borrow().get(&instance) {
                    peer.send(body);
                }
            }
            End::From(id) => {
                if let Some(incoming) = self.incoming.borrow().get(&id) {
                    incoming.line.send(body);
                }
            }
        }
    }

    /// Returns how many bytes were sent that no socket has accepted yet.
    #[cfg(test)]
    pub(crate) fn waiting_bytes(&self) -> usize {
        let peers = self.peers.borrow();
        let outgoing = peers.values().map(|peer| peer.waiting_bytes());
        let incoming = self.incoming.borrow();
        let incoming = incoming.values().map(|incoming| incoming.line.waiting_bytes());
        outgoing.chain(incoming).sum()
    }

    fn tell(&self, event: NetworkEvent) {
        (self.events)(event);
    }

    /// Has the system send at once, and give up a host that acknowledges nothing.
    fn prepare(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let user_timeout = Some(Duration::from_millis(self.ttl.ms()));
        watch(&SockRef::from(stream), &Watch { keepalive: None, user_timeout })
    }

    /// Accepts connections. Never ends.
    async fn accept(self: Rc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(GREETING_MAX));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, from)) => {
                    tokio::task::spawn_local(self.clone().receive(stream, from, place));
                }
                Err(error) => {
                    // Usually no descriptors are left.
                    warn_throttled!(
                        self.throttles.failed.admit(self.clock.now()),
                        %error,
                        "cannot accept a connection of another node"
                    );
                    self.clock.until(self.clock.now().after(ACCEPT_PAUSE)).await;
                }
            }
        }
    }

    /// Returns what the registry says of this instance. One that dials this node may have read the
    /// registry later than this node has, which therefore waits for a while.
    async fn record_of(&self, instance: u128) -> Option<Record> {
        let known = async {
            loop {
                let changed = self.records_changed.notified();
                if let Some(record) = self.records.borrow().get(&instance) {
                    return record.clone();
                }
                changed.await;
            }
        };
        tokio::select! {
            record = known => Some(record),
            () = self.clock.until(self.clock.now().after(Span::from_ms(self.ttl.ms() / 2))) => None,
        }
    }

    /// Greets a new connection, and serves it until it ends.
    async fn receive(
        self: Rc<Self>,
        stream: TcpStream,
        from: SocketAddr,
        place: OwnedSemaphorePermit,
    ) {
        let own = self.own.get();
        let greeted = async {
            self.prepare(&stream)?;
            let record_of = async |instance| self.record_of(instance).await;
            greet_dialer(stream, self.accepting.clone(), Own::new(own), record_of).await
        };
        let greeted = tokio::select! {
            greeted = greeted => greeted,
            () = self.clock.until(self.clock.now().after(self.ttl)) => Err(Trouble::Late),
        };
        drop(place);
        let Agreed { socket, instance, version } = match greeted {
            Ok(greeted) => greeted,
            Err(trouble) => return self.log_unwelcome(from, &trouble),
        };
        // The other node has greeted an instance that is no more.
        if own != self.own.get() {
            return;
        }
        self.replace(instance);
        let id = self.came.get();
        self.came.set(id + 1);
        let line = Rc::new(Line::default());
        self.incoming.borrow_mut().insert(id, Incoming { instance, line: line.clone() });
        let node = Hex(instance);
        tracing::debug!(%from, %node, connection = id, version, "another node has connected");
        self.tell(NetworkEvent::Came { id, instance });
        let deliver = |body| {
            self.tell(NetworkEvent::Message { from: End::From(id), body });
        };
        let loss = line.run(socket, (self.ttl, &*self.clock), deliver).await;
        line.end();
        log_gone((from, instance), &loss);
        let removed = self.incoming.borrow_mut().remove(&id);
        if removed.is_some() {
            self.tell(NetworkEvent::Gone(id));
        }
    }

    /// Ends the connection that this node has dialed before. It does so again when it has lost that
    /// one, which is not always noticed here.
    fn replace(&self, instance: u128) {
        let is_older = |_: &u64, incoming: &mut Incoming| incoming.instance == instance;
        let older: Vec<(u64, Incoming)> =
            self.incoming.borrow_mut().extract_if(.., is_older).collect();
        for (id, incoming) in older {
            incoming.line.end();
            self.tell(NetworkEvent::Gone(id));
        }
    }

    fn log_unwelcome(&self, from: SocketAddr, trouble: &Trouble) {
        let throttle = match trouble {
            Trouble::Encryption(_) | Trouble::Unwelcome(Unwelcome::Plain | Unwelcome::Stranger) => {
                &self.throttles.stranger
            }
            Trouble::Unwelcome(Unwelcome::Versions { .. }) => &self.throttles.version,
            Trouble::Unwelcome(
                Unwelcome::Unknown(_)
                | Unwelcome::NoFingerprint { .. }
                | Unwelcome::Certificate { .. },
            ) => &self.throttles.record,
            Trouble::Unwelcome(Unwelcome::Instance(_) | Unwelcome::Seeks(_))
            | Trouble::Late
            | Trouble::Closed
            | Trouble::Socket(_) => {
                tracing::debug!(%from, reason = %trouble, "no node has connected");
                return;
            }
        };
        warn_throttled!(
            throttle.admit(self.clock.now()),
            %from,
            reason = %trouble,
            "refused a connection to the port for other nodes"
        );
    }
}

/// Logs why a connection that came has ended. The node that has dialed it says so too, except that
/// it cannot know why it is cut off.
fn log_gone((from, instance): (SocketAddr, u128), loss: &Loss) {
    let node = Hex(instance);
    if matches!(loss, Loss::Frame(_)) {
        tracing::warn!(%from, %node, reason = %loss, "another node is cut off");
    } else {
        tracing::debug!(%from, %node, reason = %loss, "another node has gone");
    }
}

/// An instance, for the log.
struct Hex(u128);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests;
