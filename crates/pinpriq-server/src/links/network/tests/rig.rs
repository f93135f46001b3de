//! Nodes with a clock of their own, a node that the test plays itself, and a proxy that tampers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::time::Duration;

use pinpriq_proto::time::{Span, Timestamp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local, yield_now};

use crate::clock::ManualClock;
use crate::links::frame::{Greeting, Opener, PROOF_BYTES, Sealer, Secret};
use crate::links::network::greeting::{Agreed, Own, greet_acceptor, greet_dialer};
use crate::links::network::{Network, NetworkEvent, NetworkOptions};

pub(super) const SECRET: Secret = [7; 32];

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
    instance: u128,
    events: Rc<(RefCell<VecDeque<NetworkEvent>>, Notify)>,
}

impl Node {
    pub(super) fn start(instance: u128, secret: Secret) -> Self {
        Self::listen(instance, secret, listener())
    }

    pub(super) fn listen(instance: u128, secret: Secret, listener: StdListener) -> Self {
        Self::hooked((instance, secret), listener, Rc::default())
    }

    /// Starts a node that does what is in the hook when a body arrives.
    pub(super) fn with_hook(instance: u128) -> (Self, Hook) {
        let hook = Hook::default();
        (Self::hooked((instance, SECRET), listener(), hook.clone()), hook)
    }

    fn hooked((instance, secret): (u128, Secret), listener: StdListener, hook: Hook) -> Self {
        let address = listener.local_addr().unwrap();
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let events: Rc<(RefCell<VecDeque<NetworkEvent>>, Notify)> = Rc::default();
        let options = NetworkOptions {
            listener,
            own: instance,
            secret,
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
        Self { network, clock, address, instance, events }
    }

    /// Makes another node its only peer.
    pub(super) fn dial(&self, other: &Self) {
        self.network.set_peers(&[(other.instance, other.address.to_string())]);
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

    /// Returns the events that nobody has waited for.
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
    pub(super) stream: TcpStream,
    pub(super) sealer: Sealer,
    opener: Opener,
    input: Vec<u8>,
}

impl Raw {
    /// Has a node dial this instance, and accepts it.
    pub(super) async fn accept(node: &Node, instance: u128) -> Self {
        Self::accept_at(&Self::listen(node, instance), node, instance).await
    }

    /// Has a node dial this instance.
    pub(super) fn listen(node: &Node, instance: u128) -> TcpListener {
        let listener = TcpListener::from_std(listener()).unwrap();
        let address = listener.local_addr().unwrap();
        node.network.set_peers(&[(instance, address.to_string())]);
        listener
    }

    /// Accepts a node that dials this instance.
    pub(super) async fn accept_at(listener: &TcpListener, node: &Node, instance: u128) -> Self {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let greeted = greet_dialer(&mut stream, &SECRET, Own::new(instance)).await;
        let Ok(Agreed { sealer, opener, .. }) = greeted else { panic!("the node was not greeted") };
        assert_eq!(node.next().await, NetworkEvent::Up(instance));
        Self { stream, sealer, opener, input: Vec::new() }
    }

    /// Dials a node as this instance.
    pub(super) async fn dial(node: &Node, instance: u128) -> Self {
        let mut stream = TcpStream::connect(node.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let own = Own::new(instance);
        let greeted = greet_acceptor(&mut stream, &SECRET, own, node.instance).await;
        let Ok(Agreed { sealer, opener, .. }) = greeted else { panic!("the node was not greeted") };
        Self { stream, sealer, opener, input: Vec::new() }
    }

    pub(super) async fn send(&mut self, body: &[u8]) {
        let mut frame = Vec::new();
        self.sealer.seal(body, &mut frame).unwrap();
        self.stream.write_all(&frame).await.unwrap();
    }

    /// Waits for the next frame, which must be a ping.
    pub(super) async fn expect_ping(&mut self) {
        loop {
            if let Some((body, used)) = self.opener.open(&self.input).unwrap() {
                assert_eq!(body, b"");
                self.input.drain(..used);
                return;
            }
            assert!(self.stream.read_buf(&mut self.input).await.unwrap() > 0, "it was closed");
        }
    }
}

/// What a proxy does to the second frame of the dialer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tampering {
    None,
    /// Changes this bit of it.
    Flip(usize),
    Repeat,
    Drop,
    /// Sends the third before it.
    Swap,
}

/// Starts a proxy for one connection at a time. Returns its address.
pub(super) async fn proxy(to: SocketAddr, tampering: Tampering) -> SocketAddr {
    let listener = TcpListener::from_std(listener()).unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((dialer, _)) = listener.accept().await {
            let Ok(acceptor) = TcpStream::connect(to).await else { return };
            let (from_dialer, to_dialer) = dialer.into_split();
            let (from_acceptor, to_acceptor) = acceptor.into_split();
            tokio::select! {
                _ = pass(from_acceptor, to_dialer) => {}
                _ = tamper(from_dialer, to_acceptor, tampering) => {}
            }
        }
    });
    address
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<u64> {
    tokio::io::copy(&mut from, &mut to).await
}

async fn tamper(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    tampering: Tampering,
) -> std::io::Result<()> {
    let mut greeting = [0; Greeting::BYTES + PROOF_BYTES];
    // The proof comes only after the answer.
    from.read_exact(&mut greeting[..Greeting::BYTES]).await?;
    to.write_all(&greeting[..Greeting::BYTES]).await?;
    from.read_exact(&mut greeting[Greeting::BYTES..]).await?;
    to.write_all(&greeting[Greeting::BYTES..]).await?;
    let mut frames = Vec::new();
    for _ in 0..3 {
        let mut frame = vec![0; 4];
        from.read_exact(&mut frame).await?;
        let length = Opener::claimed_bytes(&frame).unwrap();
        frame.resize(4 + length + 16, 0);
        from.read_exact(&mut frame[4..]).await?;
        frames.push(frame);
    }
    match tampering {
        Tampering::None => {}
        Tampering::Flip(bit) => frames[1][bit / 8] ^= 1 << (bit % 8),
        Tampering::Repeat => frames.insert(1, frames[1].clone()),
        Tampering::Drop => drop(frames.remove(1)),
        Tampering::Swap => frames.swap(1, 2),
    }
    to.write_all(&frames.concat()).await?;
    pass(from, to).await.map(|_| ())
}
