//! Nodes of a cluster on a real etcd, and the commands that look at it. Where etcd is not installed
//! the test passes without having tested anything, unless `PINPRIQ_ENGINES=required` is set.

mod http;
mod peers;
mod rollback;
mod whole;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use pinpriq_client::blocking::{Line, Resp};
use pinpriq_proto::wire::resp::{Value, Words};
use pinpriq_testing::engines::has_etcd;

use crate::peer::{check, pinpriq};

/// How often something is tried until it must be so, and the time in between.
pub(crate) const TRIES: u32 = 300;
pub(crate) const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// A process that does not outlive its test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cluster, by its address.
struct Cluster {
    url: String,
}

/// One member of etcd, with a cluster on it.
struct Etcd {
    cluster: Cluster,
    process: Process,
    client: SocketAddr,
    peer: SocketAddr,
}

/// Asks a member of etcd in JSON, and returns what it says.
pub(crate) fn gateway(member: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(member).unwrap();
    let length = body.len();
    let request = format!(
        "POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Etcd {
    fn start(directory: &Path) -> Option<Self> {
        if !has_etcd() {
            return None;
        }
        // They are free once the listeners are dropped.
        let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.each_ref().map(|it| it.local_addr().unwrap());
        drop(listeners);
        Some(Self::start_at(directory, addresses))
    }

    /// Starts it with these addresses for clients and for other members.
    fn start_at(directory: &Path, [client, peer]: [SocketAddr; 2]) -> Self {
        let mut command = Command::new("etcd");
        command.args(["--data-dir", directory.to_str().unwrap(), "--name", "m0"]);
        command.arg(format!("--listen-client-urls=http://{client}"));
        command.arg(format!("--advertise-client-urls=http://{client}"));
        command.arg(format!("--listen-peer-urls=http://{peer}"));
        command.arg(format!("--initial-advertise-peer-urls=http://{peer}"));
        command.arg(format!("--initial-cluster=m0=http://{peer}"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Cluster { url: format!("etcd://{client}/look") };
        Self { cluster, process: Process(process), client, peer }
    }

    /// Makes the process go on after `signal` is `CONT`, and stand still after `STOP`.
    fn signal(&self, signal: &str) {
        let process = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &process]).status().unwrap().success());
    }
}

impl Deref for Etcd {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Cluster {
    fn node(&self, name: &str, directory: &Path) -> Process {
        let data = directory.join(name);
        Process(self.serve(name, Some(&data)).stderr(Stdio::null()).spawn().unwrap())
    }

    /// What starts a node.
    fn serve(&self, name: &str, data: Option<&Path>) -> Command {
        self.serve_at(name, data, &["--resp", "127.0.0.1:0", "--link", "127.0.0.1:0"])
    }

    /// A node with these arguments for its addresses.
    fn node_at(&self, name: &str, directory: &Path, addresses: &[&str]) -> Process {
        let data = directory.join(name);
        let mut command = self.serve_at(name, Some(&data), addresses);
        Process(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn serve_at(&self, name: &str, data: Option<&Path>, addresses: &[&str]) -> Command {
        let mut command = pinpriq(&["serve", "--pinpriq", "127.0.0.1:0"]);
        command.args(addresses).args(["--node", name, "--session-ttl", "2s"]);
        command.args(["--shards", "3"]).env("PINPRIQ_CLUSTER", &self.url);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = pinpriq(&["cluster"]);
        command.args(arguments).env("PINPRIQ_CLUSTER", &self.url).output().unwrap()
    }

    /// Asks again and again until the output is as wanted.
    #[track_caller]
    fn ask_until(&self, arguments: &[&str], is_wanted: impl Fn(i32, &str) -> bool) -> String {
        for _ in 0..TRIES {
            let output = self.ask(arguments);
            let text = String::from_utf8(output.stdout).unwrap();
            if is_wanted(output.status.code().unwrap(), &text) {
                return text;
            }
            thread::park_timeout(BETWEEN_TRIES);
        }
        panic!("{arguments:?}: {:?}", self.ask(arguments));
    }
}

#[test]
fn a_node_asks_the_engine_for_operators() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let _n1 = etcd.node("n1", dir.path());
    etcd.ask_until(&["status"], |code, _| code == 0);
    let nodes = String::from_utf8(etcd.ask(&["nodes", "--json"]).stdout).unwrap();
    let (_, rest) = nodes.split_once("\"resp\":\"").unwrap();
    let address = rest.split('"').next().unwrap();
    let run = |arguments: &[&str]| pinpriq(&["cluster"]).args(arguments).output().unwrap();
    let ask = |arguments: &[&str]| run(&[arguments, &["--address", address]].concat());

    for command in ["status", "nodes", "shards", "check", "upgrade"] {
        for form in [&[command][..], &[command, "--json"]] {
            let (through, directly) = (ask(form), etcd.ask(form));
            assert_eq!(through.status.code(), Some(0), "{form:?}: {through:?}");
            assert_eq!(through.stdout, directly.stdout, "{form:?}");
        }
    }
    check(&ask(&["move", "2", "n1"]), 0, b"shard 2 was told to move to n1\n");
    check(&ask(&["drain", "n1"]), 0, b"n1 was told to hand over its shards (3)\n");
    let nodes = String::from_utf8(etcd.ask(&["nodes"]).stdout).unwrap();
    assert!(nodes.contains("draining"), "{nodes}");
    check(&ask(&["move", "2", "n1"]), 2, b"");
    check(&ask(&["undrain", "n1"]), 0, b"n1 may have shards again\n");
    check(&ask(&["move", "2", "--back"]), 0, b"shard 2 may go where it belongs\n");
    check(&ask(&["move", "7", "n1"]), 2, b"");
    check(&ask(&["drain", "n9"]), 2, b"");
    let complaint = String::from_utf8(ask(&["drain", "n9"]).stderr).unwrap();
    assert!(complaint.contains("no node n9 lives"), "{complaint}");
    let accepted = b"accepted: this is generation 1 of the cluster\n";
    check(&ask(&["accept-rollback"]), 0, accepted);
    let mut client = Resp::over(Line::connect(address).unwrap());
    for words in ["drain", "status n1", "move x n1", "move 65536 n1", "move 1", "import", "STATUS"]
    {
        let reply = client.ask(&Words::new(&format!("CLUSTER ADMIN TEXT {words}"))).unwrap();
        let Value::Array(reply) = reply else { panic!("{words}: {reply:?}") };
        assert_eq!(reply[..2], [Value::Integer(2), Value::Bulk(Vec::new())], "{words}");
    }

    // What needs the engine itself says so.
    let new = dir.path().join("new");
    let new = new.to_str().unwrap();
    for arguments in [&["export", new][..], &["import", new], &["accept-rollback", "--data", new]] {
        let refused = ask(arguments);
        let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains("name it with --cluster alone"), "{complaint}");
    }
    let both = ask(&["status", "--cluster", &etcd.url]);
    check(&both, 2, b"");
    check(&run(&["status"]), 2, b"");

    // While the engine is silent, the node says so.
    etcd.signal("STOP");
    let silent = ask(&["nodes"]);
    etcd.signal("CONT");
    let complaint = check(&silent, 1, b"");
    assert!(complaint.contains("etcd does not answer"), "{complaint}");
}

#[test]
fn a_node_asks_the_engine_for_admins_alone() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let users = dir.path().join("users.toml");
    let users = users.to_str().unwrap();
    for (name, rule) in [("ops", "admin"), ("ana", "manage:*")] {
        let mut add = pinpriq(&["user", "add", name, rule, "--users", users]);
        let mut add = add.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        add.stdin.take().unwrap().write_all(b"swordfish\n").unwrap();
        assert!(add.wait().unwrap().success());
    }
    let resp = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let addresses = ["--resp", &resp, "--link", "127.0.0.1:0", "--users", users];
    let _n1 = etcd.node_at("n1", dir.path(), &addresses);
    etcd.ask_until(&["status"], |code, text| code == 0 && text.starts_with("all shards"));
    let ask = |user: &str, password: &str, arguments: &[&str]| {
        let mut command = pinpriq(&["cluster"]);
        command.args(arguments).args(["--address", &resp]);
        command.env("PINPRIQ_USER", user).env("PINPRIQ_PASSWORD", password).output().unwrap()
    };

    let refused =
        [("ana", "swordfish", "NOPERM"), ("ops", "sword", "WRONGPASS"), ("", "", "NOAUTH")];
    for (user, password, code) in refused {
        for arguments in [&["nodes"][..], &["drain", "n1"]] {
            let complaint = check(&ask(user, password, arguments), 5, b"");
            assert!(complaint.contains(code), "{user} {arguments:?}: {complaint}");
        }
    }
    let nodes = String::from_utf8(etcd.ask(&["nodes"]).stdout).unwrap();
    assert!(!nodes.contains("draining"), "{nodes}");
    check(&ask("ops", "swordfish", &["nodes"]), 0, nodes.as_bytes());
    let drained = b"n1 was told to hand over its shards (3)\n";
    check(&ask("ops", "swordfish", &["drain", "n1"]), 0, drained);
}

#[test]
fn a_cluster_is_looked_at_and_drained() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    // To look makes no cluster.
    for command in ["status", "nodes", "shards", "check"] {
        etcd.ask_until(&[command], |code, _| code == 3);
        let complaint = String::from_utf8(etcd.ask(&[command]).stderr).unwrap();
        assert!(complaint.contains("there is no cluster \"look\" on this etcd"), "{complaint}");
    }
    check(&etcd.ask(&["drain", "n1"]), 3, b"");

    let n1 = etcd.node("n1", dir.path());
    let served = "all shards are served: 3 by 1 node\n";
    etcd.ask_until(&["status"], |code, text| code == 0 && text.starts_with(served));
    check(&etcd.ask(&["check"]), 0, b"nothing is wrong\n");
    let objects = String::from_utf8(etcd.ask(&["shards", "--json"]).stdout).unwrap();
    assert_eq!(objects.matches("\"owner\":\"n1\"").count(), 3, "{objects}");
    check(&etcd.ask(&["drain", "n2"]), 2, b"");
    check(&etcd.ask(&["undrain", "n2"]), 2, b"");

    let n2 = etcd.node("n2", dir.path());
    etcd.ask_until(&["nodes"], |_, text| text.lines().count() == 3);
    let output = String::from_utf8(etcd.ask(&["drain", "n1"]).stdout).unwrap();
    assert!(output.starts_with("n1 was told to hand over its shards"), "{output}");
    etcd.ask_until(&["shards"], |_, text| text.matches("n2     serving").count() == 3);
    let nodes = String::from_utf8(etcd.ask(&["nodes"]).stdout).unwrap();
    assert!(nodes.contains("n1    0       draining"), "{nodes}");

    drop(n1);
    etcd.ask_until(&["nodes"], |_, text| text.lines().count() == 2);
    // It is gone, but was reported.
    check(&etcd.ask(&["undrain", "n1"]), 0, b"n1 may have shards again\n");
    check(&etcd.ask(&["undrain", "n1"]), 2, b"");

    drop(n2);
    etcd.ask_until(&["nodes"], |code, _| code == 4);
    let nothing = "NOTHING is served: no node lives (shards: 3)\n";
    etcd.ask_until(&["status"], |code, text| code == 3 && text.starts_with(nothing));
    etcd.ask_until(&["check"], |code, text| code == 3 && text == "no node lives\n");
}

#[test]
fn an_engine_that_is_not_there_and_addresses_that_cannot_be_meant_are_told_apart() {
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = pinpriq(&["cluster", "status", "--cluster"])
        .arg(format!("etcd://{nowhere}/look"))
        .output()
        .unwrap();
    let complaint = check(&output, 1, b"");
    assert!(complaint.contains("etcd does not answer"), "{complaint}");
    for wrong in ["redis://a:1/look", "etcd://a/look"] {
        check(&pinpriq(&["cluster", "status", "--cluster", wrong]).output().unwrap(), 2, b"");
    }
    let output = pinpriq(&["cluster", "nodes"]).output().unwrap();
    check(&output, 2, b"");
    assert!(String::from_utf8(output.stderr).unwrap().contains("--cluster <URL>"));
}

/// Puts a task over a connection of its own, and returns the connection.
fn put(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BETWEEN_TRIES)).unwrap();
    stream.write_all(b"*3\r\n$3\r\nPUT\r\n$1\r\nq\r\n$1\r\nx\r\n").unwrap();
    stream
}

/// Returns the reply, or nothing if there is none yet.
fn reply(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 200];
    let read = stream.read(&mut bytes).unwrap_or(0);
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

#[test]
fn without_its_engine_a_node_says_so_and_goes_on_when_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let Some(etcd) = Etcd::start(&dir.path().join("etcd")) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let _node =
        etcd.node_at("n1", dir.path(), &["--resp", &address.to_string(), "--link", "127.0.0.1:0"]);
    etcd.ask_until(&["status"], |code, text| code == 0 && text.starts_with("all shards"));
    assert!(reply(&mut put(address)).starts_with('$'), "it serves");

    etcd.signal("STOP");
    // What had begun before it was clear that the engine is away waits for it.
    let mut waiting = Vec::new();
    let refused = (0..TRIES).find_map(|_| {
        let mut stream = put(address);
        let reply = reply(&mut stream);
        waiting.push(stream);
        (!reply.is_empty()).then_some(reply)
    });
    let refused = refused.expect("no client was answered");
    assert!(refused.starts_with("-CLUSTERDOWN the engine"), "{refused}");

    etcd.signal("CONT");
    etcd.ask_until(&["status"], |code, text| code == 0 && text.starts_with("all shards"));
    let is_served = (0..TRIES).any(|_| reply(&mut put(address)).starts_with('$'));
    assert!(is_served, "it does not serve again");
    // The last one was reported already.
    waiting.pop();
    for mut stream in waiting {
        let said = (0..TRIES).map(|_| reply(&mut stream)).find(|reply| !reply.is_empty());
        let said = said.expect("a request has no reply");
        assert!(said.starts_with(['$', '-']), "{said}");
    }
}
