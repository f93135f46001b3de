//! Nodes with a clock of their own, a node that the test plays itself, and a proxy that sees what
//! passes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Debug, Write as _};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_tls::{Fingerprint, NodeKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};
use tracing::field::Field;
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::links::frame::{put_frame, take_frame};
use crate::links::network::greeting::{Own, greet_acceptor, greet_dialer};
use crate::links::network::{Network, NetworkEvent, NetworkOptions, Record};
use crate::manual_clock::ManualClock;
use crate::tls::socket::Socket;

pub(super) const TTL: Span = Span::from_ms(5_000);

/// How long a test may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs a test.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = LocalSet::new();
    let ended = tasks.block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await });
    assert!(ended.is_ok(), "what the test waits for has not happened in a minute");
}

pub(super) fn listener() -> StdListener {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// What a node does when a body arrives.
pub(super) type Hook = Rc<RefCell<Option<Box<dyn Fn()>>>>;

/// A node, and what has happened to its connections.
pub(super) struct Node {
    pub(super) network: Rc<Network>,
    pub(super) clock: ManualClock,
    pub(super) address: SocketAddr,
    pub(super) key: NodeKey,
    instance: u128,
    /// What it finds in the registry.
    known: RefCell<BTreeMap<u128, Record>>,
    events: Rc<(RefCell<VecDeque<NetworkEvent>>, Notify)>,
}

/// What the registry says of a node that listens there.
pub(super) fn record(
    instance: u128,
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
) -> Record {
    Record { node: format!("n{instance}"), address: address.to_string(), fingerprint }
}

impl Node {
    pub(super) fn start(instance: u128) -> Self {
        Self::listen(instance, listener())
    }

    pub(super) fn listen(instance: u128, listener: StdListener) -> Self {
        Self::hooked(instance, listener, Rc::default())
    }

    /// Starts a node that does what is in the hook when a body arrives.
    pub(super) fn with_hook(instance: u128) -> (Self, Hook) {
        let hook = Hook::default();
        (Self::hooked(instance, listener(), hook.clone()), hook)
    }

    fn hooked(instance: u128, listener: StdListener, hook: Hook) -> Self {
        let key = NodeKey::generate().unwrap();
        let address = listener.local_addr().unwrap();
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let events: Rc<(RefCell<VecDeque<NetworkEvent>>, Notify)> = Rc::default();
        let options = NetworkOptions {
            listener,
            own: instance,
            key: key.clone(),
            session_ttl: Duration::from_millis(TTL.ms()),
            clock: Rc::new(clock.clone()),
        };
        let seen = events.clone();
        let note = move |event| {
            let is_message = matches!(event, NetworkEvent::Message { .. });
            if let Some(hook) = hook.borrow().as_ref().filter(|_| is_message) {
                hook();
            }
            seen.0.borrow_mut().push_back(event);
            seen.1.notify_one();
        };
        let network = Network::start(options, Rc::new(note)).unwrap();
        let known = RefCell::default();
        Self { network, clock, address, key, instance, known, events }
    }

    /// Makes another node the only one that it dials, and has that one know it.
    pub(super) fn dial(&self, other: &Self) {
        other.meet(self.instance, &self.key);
        self.dial_only(&[(other.instance, other.record())]);
    }

    /// What the registry says of it.
    pub(super) fn record(&self) -> Record {
        record(self.instance, self.address, Some(self.key.fingerprint()))
    }

    /// Has it dial these nodes, and no other that it knows.
    pub(super) fn dial_only(&self, others: &[(u128, Record)]) {
        for record in self.known.borrow_mut().values_mut() {
            record.address.clear();
        }
        self.known.borrow_mut().extend(others.iter().cloned());
        self.look();
    }

    /// Has it find a node in the registry that does not listen.
    pub(super) fn meet(&self, instance: u128, key: &NodeKey) {
        let fingerprint = Some(key.fingerprint());
        let mut known = self.known.borrow_mut();
        let met = known.entry(instance).or_insert_with(|| Record {
            node: format!("n{instance}"),
            address: String::new(),
            fingerprint,
        });
        met.fingerprint = fingerprint;
        drop(known);
        self.look();
    }

    /// Has it look at the registry.
    fn look(&self) {
        self.network.set_peers(self.known.borrow().clone());
    }

    /// Waits for the next event.
    pub(super) async fn next(&self) -> NetworkEvent {
        loop {
            let event = self.events.0.borrow_mut().pop_front();
            match event {
                Some(event) => return event,
                None => self.events.1.notified().await,
            }
        }
    }

    /// Returns the events that were not waited for.
    pub(super) fn seen(&self) -> Vec<NetworkEvent> {
        self.events.0.borrow().iter().cloned().collect()
    }

    /// Lets every task run that can, and sockets bring what has arrived.
    pub(super) async fn settle(&self) {
        for _ in 0..10 {
            // A round trip through the system, so that the runtime looks at all sockets.
            let listener = TcpListener::from_std(listener()).unwrap();
            let address = listener.local_addr().unwrap();
            let (dialed, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            assert!(dialed.is_ok() && accepted.is_ok());
            yield_now().await;
        }
    }

    /// Waits for something while the time of this node goes by.
    pub(super) async fn advancing<T>(&self, event: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                self.clock.advance(Span::from_ms(100));
                self.settle().await;
            }
        };
        tokio::select! {
            happened = event => happened,
            never = passing => never,
        }
    }
}

/// A node that the test plays itself.
pub(super) struct Raw {
    pub(super) socket: Socket,
    input: Vec<u8>,
}

/// Where a node that the test plays itself is dialed.
pub(super) struct RawListener {
    listener: TcpListener,
    instance: u128,
    key: NodeKey,
}

impl Raw {
    /// Has a node dial this instance, and accepts it.
    pub(super) async fn accept(node: &Node, instance: u128) -> Self {
        Self::accept_at(&Self::listen(node, instance), node).await
    }

    /// Has a node dial this instance.
    pub(super) fn listen(node: &Node, instance: u128) -> RawListener {
        let listener = TcpListener::from_std(listener()).unwrap();
        let (address, key) = (listener.local_addr().unwrap(), NodeKey::generate().unwrap());
        node.dial_only(&[(instance, record(instance, address, Some(key.fingerprint())))]);
        RawListener { listener, instance, key }
    }

    /// Accepts a node that dials.
    pub(super) async fn accept_at(raw: &RawListener, node: &Node) -> Self {
        let (stream, _) = raw.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (own, record_of) = (Own::new(raw.instance), async |_| Some(node.record()));
        let agreed = greet_dialer(stream, raw.key.accepting(), own, record_of).await.unwrap();
        assert_eq!(node.next().await, NetworkEvent::Up(raw.instance));
        Self { socket: agreed.socket, input: Vec::new() }
    }

    /// Dials a node as this instance, which the node knows.
    pub(super) async fn dial(node: &Node, instance: u128) -> Self {
        let key = NodeKey::generate().unwrap();
        node.meet(instance, &key);
        let stream = TcpStream::connect(node.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (config, own) = (key.dialing(node.key.fingerprint()), Own::new(instance));
        let to = (node.instance, &node.record());
        let agreed = greet_acceptor(stream, config, own, to).await.unwrap();
        Self { socket: agreed.socket, input: Vec::new() }
    }

    pub(super) async fn send(&mut self, body: &[u8]) {
        let mut frame = Vec::new();
        put_frame(body, &mut frame).unwrap();
        self.write(&frame).await.unwrap();
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await
    }

    /// Waits for the next frame, which must be a ping.
    pub(super) async fn expect_ping(&mut self) {
        loop {
            if let Some((body, used)) = take_frame(&self.input).unwrap() {
                assert_eq!(body, b"");
                self.input.drain(..used);
                return;
            }
            assert!(self.socket.read_buf(&mut self.input).await.unwrap() > 0, "it was closed");
        }
    }
}

/// What a proxy has seen, and whether it changes a bit of what the dialer sends next.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) bytes: RefCell<Vec<u8>>,
    pub(super) tampers: Cell<bool>,
}

/// Starts a proxy for one connection at a time. Returns its address.
pub(super) async fn proxy(to: SocketAddr) -> (SocketAddr, Rc<Seen>) {
    let listener = TcpListener::from_std(listener()).unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Rc::<Seen>::default());
    let noted = seen.clone();
    spawn_local(async move {
        while let Ok((mut dialer, _)) = listener.accept().await {
            let Ok(mut acceptor) = TcpStream::connect(to).await else { return };
            let (from_dialer, to_dialer) = dialer.split();
            let (from_acceptor, to_acceptor) = acceptor.split();
            tokio::select! {
                _ = pass(from_acceptor, to_dialer, &noted, false) => {}
                _ = pass(from_dialer, to_acceptor, &noted, true) => {}
            }
        }
    });
    (address, seen)
}

async fn pass(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    seen: &Seen,
    may_tamper: bool,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        seen.bytes.borrow_mut().extend_from_slice(&bytes[..count]);
        if may_tamper && seen.tampers.take() {
            bytes[count - 1] ^= 1;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

/// The lines that were logged on this thread, each with the texts of its fields.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Keeps what is logged until the guard is dropped.
    pub(super) fn keep() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    /// Returns the warnings that contain this text.
    pub(super) fn warnings(&self, text: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until there is a warning with all these texts.
    pub(super) async fn has(&self, texts: &[&str]) {
        loop {
            let has = |line: &String| texts.iter().all(|text| line.contains(text));
            if self.0.lock().unwrap().iter().any(has) {
                return;
            }
            yield_now().await;
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            write!(line, "{field}={value:?} ").unwrap();
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
