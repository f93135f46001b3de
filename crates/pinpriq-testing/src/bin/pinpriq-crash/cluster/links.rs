//! What is between the nodes, and between them and the engine: relays, which let bytes pass, hold
//! them or delay them, for each pair and each direction by itself.
//!
//! Bytes that are held are not lost, since a network repeats them. They pass when the cut is over,
//! if the nodes still want them.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::NODES;
use super::board::locked;
use crate::clock::let_pass;
use crate::fault::Fallible;
use crate::files;

/// How many bytes are passed on at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The place of the engine beside the nodes.
pub(crate) const ENGINE: usize = NODES;

/// The nodes and the engine.
const ENDS: usize = NODES + 1;

/// What happens to bytes from one end to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// They pass.
    Open,
    /// They are held.
    Cut,
    /// They pass after this time, in milliseconds.
    Late(u64),
}

/// See the start of this file.
pub(crate) struct Links {
    relays: Vec<SocketAddr>,
    /// For each node, where it reaches the servers of the engine.
    engine: Vec<Vec<SocketAddr>>,
    state: Arc<State>,
}

struct State {
    /// By sender and receiver.
    flows: Mutex<[[Flow; ENDS]; ENDS]>,
    changed: Condvar,
    /// The process of each node and where it listens for others, while it runs.
    nodes: Mutex<[Option<(u32, SocketAddr)>; NODES]>,
}

impl Links {
    /// Starts the relays. The engine has servers at these addresses.
    pub(crate) fn start(servers: &[SocketAddr]) -> Fallible<Self> {
        let state = Arc::new(State {
            flows: Mutex::new([[Flow::Open; ENDS]; ENDS]),
            changed: Condvar::new(),
            nodes: Mutex::new([None; NODES]),
        });
        let relay = |to: usize| {
            listen(&state, move |state, stream| {
                let from = state.dialer(&stream)?;
                let (_, address) = locked(&state.nodes)[to].ok_or("the node does not run")?;
                state.relay(stream, address, (from, to))
            })
        };
        let relays = (0..NODES).map(relay).collect::<Fallible<_>>()?;
        let to_server = |node, server| {
            listen(&state, move |state, stream| state.relay(stream, server, (node, ENGINE)))
        };
        let to_engine = |node| servers.iter().map(|server| to_server(node, *server)).collect();
        let engine = (0..NODES).map(to_engine).collect::<Fallible<_>>()?;
        Ok(Self { relays, engine, state })
    }

    /// Where others reach a node.
    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.relays[node]
    }

    /// Where a node reaches the servers of the engine.
    pub(crate) fn engine(&self, node: usize) -> &[SocketAddr] {
        &self.engine[node]
    }

    /// Notes the process of a node and where it listens, or that it has ended.
    pub(crate) fn set_node(&self, node: usize, runs: Option<(u32, SocketAddr)>) {
        locked(&self.state.nodes)[node] = runs;
    }

    /// Sets what happens to bytes from one end to another.
    pub(crate) fn set(&self, from: usize, to: usize, flow: Flow) {
        locked(&self.state.flows)[from][to] = flow;
        self.state.changed.notify_all();
    }

    /// Sets what happens to bytes in both directions.
    pub(crate) fn set_both(&self, one: usize, other: usize, flow: Flow) {
        self.set(one, other, flow);
        self.set(other, one, flow);
    }

    /// Sets what happens to all bytes between nodes.
    pub(crate) fn set_all(&self, flow: Flow) {
        let mut flows = locked(&self.state.flows);
        flows.iter_mut().take(NODES).for_each(|row| row[..NODES].fill(flow));
        drop(flows);
        self.state.changed.notify_all();
    }
}

/// Listens, and relays each connection on a thread of its own. One that cannot be relayed ends.
fn listen(
    state: &Arc<State>,
    relay: impl Fn(Arc<State>, TcpStream) -> Fallible<()> + Copy + Send + 'static,
) -> Fallible<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let state = state.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = state.clone();
            std::thread::spawn(move || drop(relay(state, stream)));
        }
    });
    Ok(address)
}

impl State {
    /// Passes on what both sides of a connection say.
    fn relay(
        self: Arc<Self>,
        dialer: TcpStream,
        address: SocketAddr,
        (from, to): (usize, usize),
    ) -> Fallible<()> {
        let listener = TcpStream::connect(address)?;
        dialer.set_nodelay(true)?;
        listener.set_nodelay(true)?;
        let (answers, asker) = (listener.try_clone()?, dialer.try_clone()?);
        let state = self.clone();
        std::thread::spawn(move || state.pass(answers, &asker, (to, from)));
        self.pass(dialer, &listener, (from, to));
        Ok(())
    }

    /// Which node has opened a connection.
    fn dialer(&self, stream: &TcpStream) -> Fallible<usize> {
        let port = stream.peer_addr()?.port();
        let nodes = *locked(&self.nodes);
        let socket = files::socket_of_port(port)?.ok_or("no process has the other end")?;
        let has = |node: &Option<(u32, SocketAddr)>| {
            node.is_some_and(|(process, _)| files::has_socket(process, socket).unwrap_or(false))
        };
        Ok(nodes.iter().position(has).ok_or("it is none of the nodes")?)
    }

    /// Passes bytes on in one direction until an end of the connection is gone.
    fn pass(&self, mut from: TcpStream, mut to: &TcpStream, way: (usize, usize)) {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(read) = from.read(&mut piece) {
            self.wait(way);
            if read == 0 || to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        // The connection may be gone already.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }

    /// Waits until bytes may pass.
    fn wait(&self, (from, to): (usize, usize)) {
        let mut flows = locked(&self.flows);
        while flows[from][to] == Flow::Cut {
            flows = self.changed.wait(flows).unwrap_or_else(PoisonError::into_inner);
        }
        let flow = flows[from][to];
        drop(flows);
        if let Flow::Late(ms) = flow {
            let_pass(Duration::from_millis(ms));
        }
    }
}
