//! A node that reaches the engine, but no other node.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::{Value, Words};

use super::{BETWEEN_TRIES, Etcd, TRIES};

/// What others connect to instead of a node. While it is shut, no connection comes through.
struct Gate {
    address: SocketAddr,
    state: Arc<Mutex<Passing>>,
}

#[derive(Default)]
struct Passing {
    is_shut: bool,
    connections: Vec<TcpStream>,
}

impl Gate {
    fn before(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<Passing>>::default();
        let gate = Self { address, state: state.clone() };
        thread::spawn(move || {
            for dialer in listener.incoming().flatten() {
                let mut state = state.lock().unwrap();
                if !state.is_shut
                    && let Ok(node) = TcpStream::connect(node)
                {
                    pass(&dialer, &node);
                    pass(&node, &dialer);
                    state.connections.extend([dialer, node]);
                }
            }
        });
        gate
    }

    /// Ends all connections, and lets no more through.
    fn shut(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_shut = true;
        for connection in state.connections.drain(..) {
            // It may have ended.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn open(&self) {
        self.state.lock().unwrap().is_shut = false;
    }
}

/// Copies bytes until one of the two has ended.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        // However it ended, both are done.
        let _ = io::copy(&mut from, &mut to);
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}

/// Addresses that are free once this returns. No other test listens at this address of the loopback
/// interface, so that none of them takes a port before the node does.
fn free_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let listeners = [0; COUNT].map(|_| TcpListener::bind("127.42.0.1:0").unwrap());
    listeners.map(|it| it.local_addr().unwrap())
}

fn ask(address: SocketAddr, words: &str) -> Value {
    let mut node = Resp::over(Line::connect(address).unwrap());
    node.ask(&Words::new(words)).unwrap()
}

/// For each shard its owner and its term.
fn owners(etcd: &Etcd) -> Vec<String> {
    let shards = String::from_utf8(etcd.ask(&["shards", "--json"]).stdout).unwrap();
    let owner = |line: &str| line.split(",\"log_term\"").next().unwrap().to_owned();
    shards.lines().map(owner).collect()
}

#[test]
fn who_is_cut_off_from_its_peers_only_keeps_its_shards() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let [link1, link2, resp1, resp2] = free_addresses();
    let gates = [link1, link2].map(Gate::before);
    let node = |name, link: SocketAddr, resp: SocketAddr, gate: &Gate| {
        let (link, resp, gate) = (link.to_string(), resp.to_string(), gate.address.to_string());
        let addresses = ["--link", &link, "--resp", &resp, "--announce-link", &gate];
        etcd.node_at(name, dir.path(), &addresses)
    };
    let _n1 = node("n1", link1, resp1, &gates[0]);
    etcd.ask_until(&["shards"], |_, text| text.matches("n1     serving").count() == 3);
    let _n2 = node("n2", link2, resp2, &gates[1]);
    etcd.ask_until(&["shards"], |code, text| code == 0 && text.contains("n2     serving"));

    let before = owners(&etcd);
    let is_of_n1 = |queue: &String| {
        let Value::Integer(slot) = ask(resp2, &format!("CLUSTER KEYSLOT {queue}")) else {
            panic!("{queue} has no slot")
        };
        before[usize::try_from(slot * 3 / 16_384).unwrap()].contains("\"owner\":\"n1\"")
    };
    let queue = (0..100).map(|number| format!("q{number}")).find(is_of_n1).unwrap();
    let put = format!("PUT {queue} x");
    assert!(matches!(ask(resp2, &put), Value::Bulk(_)), "n2 forwards it");

    gates.iter().for_each(Gate::shut);
    // What is sent into the link before its end is seen may have happened.
    let mut refusals = (0..TRIES).map(|_| ask(resp2, &put));
    let refusal = refusals.find(|it| !matches!(it, Value::Error(it) if it.starts_with("UNKNOWN")));
    let refusal = refusal.unwrap();
    assert!(matches!(&refusal, Value::Error(it) if it.starts_with("TRYAGAIN")), "{refusal:?}");
    assert!(matches!(ask(resp1, &put), Value::Bulk(_)), "n1 serves it");
    // That took longer than a session.
    assert_eq!(owners(&etcd), before);

    gates.iter().for_each(Gate::open);
    for _ in 0..TRIES {
        if matches!(ask(resp2, &put), Value::Bulk(_)) {
            assert_eq!(owners(&etcd), before);
            return;
        }
        thread::park_timeout(BETWEEN_TRIES);
    }
    panic!("n2 does not reach n1 again");
}

#[test]
fn each_node_tells_how_the_logs_of_all_shards_fare() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let addresses = free_addresses::<2>();
    let nodes = ["n1", "n2"].map(|name| {
        let resp = addresses[usize::from(name == "n2")].to_string();
        etcd.node_at(name, dir.path(), &["--link", "127.0.0.1:0", "--resp", &resp])
    });
    etcd.ask_until(&["shards"], |code, text| {
        code == 0 && text.contains("n1     serving") && text.contains("n2     serving")
    });
    for queue in 0..30 {
        ask(addresses[0], &format!("PUT q{queue} x"));
    }
    // What each node tells of all shards, without those that may be a moment old.
    let told = |address| {
        let info = ask(address, "INFO cluster");
        let info = String::from_utf8(info.as_bytes().unwrap().to_vec()).unwrap();
        let is_meant = |line: &&str| {
            let names = ["owners", "states", "term", "head", "applied", "lag"];
            names.iter().any(|name| line.starts_with(&format!("cluster_{name}")))
        };
        info.lines().filter(is_meant).map(str::to_owned).collect::<Vec<_>>()
    };
    let agree = (0..TRIES).any(|_| {
        let told = addresses.map(told);
        let heads = told[1].iter().filter(|line| line.starts_with("cluster_head_")).count();
        let is_whole = heads == 3
            && told[1].contains(&"cluster_states:0=serving,1=serving,2=serving".to_owned());
        thread::park_timeout(BETWEEN_TRIES);
        is_whole && told[0] == told[1]
    });
    assert!(agree, "{:?}", addresses.map(told));
    drop(nodes);
}
