//! The connection that this node dials to another, again and again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pinpriq_proto::time::Span;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::greeting::{Agreed, Own, Trouble, greet_acceptor};
use super::line::{Line, Loss};
use super::{End, Hex, Network, NetworkEvent, Record};
use crate::links::frame::Unwelcome;
use crate::tls::socket::Socket;

/// How long it waits before it dials again, at first and at most.
const PAUSE: Span = Span::from_ms(100);
const PAUSE_MAX: Span = Span::from_ms(1_000);

/// Another node.
pub(super) struct Peer {
    /// What the registry says of it. `None` once it is no longer wanted.
    record: RefCell<Option<Record>>,
    /// How often the connection was to start again.
    starts: Cell<u64>,
    /// Wakes the task that dials, when `starts` has changed.
    changed: Notify,
    /// The connection, while it is up.
    line: RefCell<Option<Rc<Line>>>,
}

impl Peer {
    pub(super) fn new(record: Record) -> Self {
        Self {
            record: RefCell::new(Some(record)),
            starts: Cell::default(),
            changed: Notify::default(),
            line: RefCell::default(),
        }
    }

    /// Sets what the registry says of it, if it is wanted.
    pub(super) fn aim(&self, record: Option<&Record>) {
        let is_same = self.record.borrow().as_ref() == record;
        if !is_same {
            *self.record.borrow_mut() = record.cloned();
            self.start_again();
        }
    }

    /// Ends the connection, which is then dialed again.
    pub(super) fn start_again(&self) {
        self.starts.set(self.starts.get() + 1);
        self.changed.notify_one();
        if let Some(line) = &*self.line.borrow() {
            line.end();
        }
    }

    /// Sends a body if the connection is up.
    pub(super) fn send(&self, body: &[u8]) {
        if let Some(line) = &*self.line.borrow() {
            line.send(body);
        }
    }

    /// Returns how many bytes were sent that the socket has not accepted yet.
    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> usize {
        self.line.borrow().as_ref().map_or(0, |line| line.waiting_bytes())
    }

    /// Waits until the connection is to start again, or was since this number of starts.
    async fn restarted(&self, since: u64) {
        while self.starts.get() == since {
            self.changed.notified().await;
        }
    }
}

impl Network {
    /// Dials a node whenever there is no connection to it, until it is no longer wanted.
    pub(super) async fn keep(self: Rc<Self>, instance: u128, peer: Rc<Peer>) {
        let mut pause = PAUSE;
        // What was logged last about failed attempts.
        let mut told = None;
        loop {
            let (starts, record) = (peer.starts.get(), peer.record.borrow().clone());
            let Some(record) = record else { break };
            let dialed = tokio::select! {
                dialed = self.dial(instance, &record) => dialed,
                () = self.clock.until(self.clock.now().after(self.ttl)) => Err(Trouble::Late),
                () = peer.restarted(starts) => continue,
            };
            match dialed {
                Ok(agreed) if peer.starts.get() == starts => {
                    log_connected((instance, &record), agreed.version);
                    let began = self.clock.now();
                    let loss = self.talk(instance, &peer, agreed.socket).await;
                    log_loss((instance, &record), &loss);
                    told = None;
                    // One that is lost again and again is not dialed more often than others.
                    if self.clock.now() >= began.after(PAUSE_MAX) {
                        pause = PAUSE;
                    }
                }
                Ok(_) => {}
                Err(trouble) => {
                    let text = trouble.to_string();
                    log_trouble((instance, &record), &text, told.as_ref() == Some(&text));
                    told = Some(text);
                }
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().after(pause)) => {
                    pause = Span::from_ms((pause.ms() * 2).min(PAUSE_MAX.ms()));
                }
                () = peer.restarted(starts) => (pause, told) = (PAUSE, None),
            }
        }
        self.peers.borrow_mut().remove(&instance);
    }

    async fn dial(&self, instance: u128, record: &Record) -> Result<Agreed, Trouble> {
        let Some(fingerprint) = record.fingerprint else {
            return Err(Unwelcome::NoFingerprint { node: record.node.clone() }.into());
        };
        let stream = TcpStream::connect(&record.address).await.map_err(Trouble::Socket)?;
        self.prepare(&stream)?;
        let own = Own::new(self.own.get());
        greet_acceptor(stream, self.key.dialing(fingerprint), own, (instance, record)).await
    }

    /// Reports the connection, serves it until it ends, and reports that.
    async fn talk(&self, instance: u128, peer: &Peer, socket: Socket) -> Loss {
        let line = Rc::new(Line::default());
        *peer.line.borrow_mut() = Some(line.clone());
        self.tell(NetworkEvent::Up(instance));
        let deliver = |body| {
            self.tell(NetworkEvent::Message { from: End::To(instance), body });
        };
        let loss = line.run(socket, (self.ttl, &*self.clock), deliver).await;
        *peer.line.borrow_mut() = None;
        self.tell(NetworkEvent::Down(instance));
        loss
    }
}

fn log_connected((instance, record): (u128, &Record), version: u16) {
    let (Record { node, address, .. }, instance) = (record, Hex(instance));
    tracing::debug!(address, node, %instance, version, "connected to another node");
}

/// Logs why a node cannot be dialed, as a warning if that is new.
fn log_trouble((instance, record): (u128, &Record), reason: &str, is_known: bool) {
    let (Record { node, address, .. }, instance) = (record, Hex(instance));
    if is_known {
        tracing::debug!(address, node, %instance, reason, "still no connection to another node");
    } else {
        tracing::warn!(address, node, %instance, reason, "no connection to another node");
    }
}

fn log_loss((instance, record): (u128, &Record), loss: &Loss) {
    let (Record { node, address, .. }, instance) = (record, Hex(instance));
    if matches!(loss, Loss::Wanted) {
        tracing::debug!(address, node, %instance, "the connection to another node was ended");
    } else {
        let reason = loss.to_string();
        tracing::warn!(address, node, %instance, reason, "the connection to another node is lost");
    }
}
