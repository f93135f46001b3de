//! A cluster of three members of etcd on this machine, each of which can be stopped.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use pinpriq_cluster::etcd::{Etcd, EtcdOptions};
use pinpriq_cluster::remote::RemoteLedger;
use pinpriq_store::ledger::{Answer, Call, Ledger, Term, Writer};
use pinpriq_testing::engines::has_etcd;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::remote::engines::runtime;

const MEMBERS: usize = 3;

/// How often a cluster is started until it must work.
const CLUSTER_TRIES: u32 = 5;

/// How often a member is tried until it must work, and how long is waited in between.
const TRIES: u32 = 600;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// What the members of a cluster have in common.
pub(crate) struct Cluster {
    members: Vec<Member>,
    runtime: Handle,
    _directory: TempDir,
}

struct Member {
    arguments: Vec<String>,
    client: SocketAddr,
    process: Option<Child>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn start(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let mut command = Command::new("etcd");
        command.args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    /// Returns whether its process has not ended.
    fn runs(&mut self) -> bool {
        self.process.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().unwrap();
        let status = Command::new("kill").args([signal, &process.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.client)
    }
}

impl Cluster {
    /// Starts a cluster and waits until it works. Returns nothing if etcd is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a cluster whose members get these arguments too.
    pub(crate) fn start_with(more: &[&str]) -> Option<Self> {
        if !has_etcd() {
            return None;
        }
        // Another process may take a port before a member does.
        let cluster = (0..CLUSTER_TRIES).find_map(|_| Self::try_start(more));
        assert!(cluster.is_some(), "no cluster could be started");
        cluster
    }

    fn try_start(more: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        // They are free once the listeners are dropped.
        let listeners: Vec<TcpListener> =
            (0..2 * MEMBERS).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<SocketAddr> =
            listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        drop(listeners);
        let (clients, peers) = addresses.split_at(MEMBERS);
        let all: Vec<String> =
            peers.iter().enumerate().map(|(at, peer)| format!("m{at}=http://{peer}")).collect();
        let member = |at: usize| {
            let (client, peer) = (clients[at], peers[at]);
            let data = directory.path().join(format!("m{at}"));
            let arguments = [
                ("--name", format!("m{at}")),
                ("--data-dir", data.to_str().unwrap().to_owned()),
                ("--listen-client-urls", format!("http://{client}")),
                ("--advertise-client-urls", format!("http://{client}")),
                ("--listen-peer-urls", format!("http://{peer}")),
                ("--initial-advertise-peer-urls", format!("http://{peer}")),
                ("--initial-cluster", all.join(",")),
                ("--snapshot-count", "1000".to_owned()),
            ];
            let arguments = arguments.into_iter().flat_map(|(name, value)| [name.into(), value]);
            let more = more.iter().map(|&argument| argument.to_owned());
            Member { arguments: arguments.chain(more).collect(), client, process: None }
        };
        let mut members: Vec<Member> = (0..MEMBERS).map(member).collect();
        members.iter_mut().for_each(Member::start);
        let mut cluster = Self { members, runtime: runtime(), _directory: directory };
        let works = (0..MEMBERS).all(|at| cluster.works(at));
        // A member that has lost its port to one of another cluster has ended by now.
        let runs = cluster.members.iter_mut().all(Member::runs);
        (works && runs).then_some(cluster)
    }

    pub(crate) fn options(&self) -> EtcdOptions {
        EtcdOptions::new("test", self.members.iter().map(Member::endpoint).collect())
    }

    pub(crate) fn client(&self, options: EtcdOptions) -> Client {
        Client { etcd: Etcd::new(options).unwrap(), runtime: self.runtime.clone() }
    }

    /// Where a member listens for clients.
    pub(crate) fn address(&self, at: usize) -> SocketAddr {
        self.members[at].client
    }

    /// Kills a member without a word.
    pub(crate) fn kill(&mut self, at: usize) {
        self.members[at].kill();
    }

    /// Starts a member that was killed, and waits until it works.
    pub(crate) fn start_again(&mut self, at: usize) {
        self.members[at].start();
        assert!(self.works(at), "member {at} has ended");
    }

    /// Makes a member silent: it accepts connections, and answers nothing.
    pub(crate) fn silence(&self, at: usize) {
        self.members[at].signal("-STOP");
    }

    pub(crate) fn resume(&self, at: usize) {
        self.members[at].signal("-CONT");
    }

    /// Waits until a member answers by itself for the cluster. Returns whether it does, and has not
    /// ended instead.
    fn works(&mut self, at: usize) -> bool {
        let options = EtcdOptions::new("ready", vec![self.members[at].endpoint()]);
        let mut ledger = self.client(options).ledger(0, Writer(0));
        let member = &mut self.members[at];
        for _ in 0..TRIES {
            if !member.runs() {
                return false;
            }
            if TcpStream::connect(member.client).is_ok() {
                ledger.start(Call::Seize { at_least: Term(0) });
                ledger.wait();
                if let Some(Answer::Seized(Ok(_))) = ledger.poll() {
                    return true;
                }
            }
            thread::park_timeout(BETWEEN_TRIES);
        }
        panic!("member {at} does not work");
    }
}

/// A client of a cluster, which makes logs.
pub(crate) struct Client {
    pub(crate) etcd: Etcd,
    pub(crate) runtime: Handle,
}

impl Client {
    pub(crate) fn ledger(&self, shard: u16, writer: Writer) -> Box<dyn Ledger> {
        let remote = self.etcd.remote(shard, writer).unwrap();
        Box::new(RemoteLedger::new(remote, self.runtime.clone(), std::sync::Arc::new(|| ())))
    }
}
