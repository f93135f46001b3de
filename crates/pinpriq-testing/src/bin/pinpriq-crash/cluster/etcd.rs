//! Three members of etcd, each of which can be killed, suspended and started again.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::addresses::free_addresses;
use super::http;
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::process::{GUARD, Process, is_installed, signal};

/// The number of members.
pub(crate) const MEMBERS: usize = 3;

/// How long is waited before a member is asked again whether it works.
const BETWEEN: Duration = Duration::from_millis(50);

/// The program.
const PROGRAM: &str = "etcd";

/// The members of a cluster of etcd.
pub(crate) struct Etcd {
    members: Vec<Member>,
}

struct Member {
    arguments: Vec<String>,
    client: SocketAddr,
    process: Option<Process>,
}

impl Etcd {
    /// What it needs that is not installed.
    pub(crate) fn lacks() -> Option<String> {
        (!is_installed(PROGRAM)).then(|| PROGRAM.to_owned())
    }

    /// Starts all members, and waits until they work.
    pub(crate) fn start(directory: &Path) -> Fallible<Self> {
        let addresses = free_addresses(2 * MEMBERS)?;
        let (clients, peers) = addresses.split_at(MEMBERS);
        let named = peers.iter().enumerate().map(|(at, peer)| format!("m{at}=http://{peer}"));
        let all = named.collect::<Vec<_>>().join(",");
        let mut etcd = Self { members: Vec::new() };
        for (at, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let data = directory.join(format!("m{at}")).to_string_lossy().into_owned();
            let arguments = [
                ("--name", format!("m{at}")),
                ("--data-dir", data),
                ("--listen-client-urls", format!("http://{client}")),
                ("--advertise-client-urls", format!("http://{client}")),
                ("--listen-peer-urls", format!("http://{peer}")),
                ("--initial-advertise-peer-urls", format!("http://{peer}")),
                ("--initial-cluster", all.clone()),
                ("--snapshot-count", "1000".to_owned()),
            ];
            let arguments = arguments.into_iter().flat_map(|(name, value)| [name.into(), value]);
            let arguments = arguments.collect();
            let mut member = Member { arguments, client: *client, process: None };
            member.start()?;
            etcd.members.push(member);
        }
        for member in &mut etcd.members {
            member.wait()?;
        }
        Ok(etcd)
    }

    /// Where the members listen for clients.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.client).collect()
    }

    /// Kills a member.
    pub(crate) fn kill(&mut self, at: usize) -> Fallible<()> {
        match self.members[at].process.take() {
            Some(mut process) => process.kill().map(drop),
            None => Ok(()),
        }
    }

    /// Starts a member that was killed, and waits until it works.
    pub(crate) fn start_again(&mut self, at: usize) -> Fallible<()> {
        self.members[at].start()?;
        self.members[at].wait()
    }

    /// Suspends a member, or lets it go on.
    pub(crate) fn signal(&self, at: usize, name: &str) -> Fallible<()> {
        match &self.members[at].process {
            Some(process) => signal(name, process.id()),
            None => Err(format!("member {at} does not run").into()),
        }
    }
}

impl Member {
    fn start(&mut self) -> Fallible<()> {
        let mut command = Command::new(PROGRAM);
        self.process = Some(Process::start(command.args(&self.arguments))?);
        Ok(())
    }

    /// Waits until it works together with others.
    fn wait(&mut self) -> Fallible<()> {
        let clock = Clock::starting();
        while !http::ask(self.client, "/health").is_ok_and(|it| it.contains("\"true\"")) {
            let process = self.process.as_mut().ok_or("the member does not run")?;
            if clock.elapsed() > GUARD || !process.is_running()? {
                return Err(format!("{PROGRAM} does not work: {}", process.text()).into());
            }
            let_pass(BETWEEN);
        }
        Ok(())
    }
}
