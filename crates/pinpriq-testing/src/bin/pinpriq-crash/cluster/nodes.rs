//! The nodes of a cluster: each is the real program, which can be killed, suspended and stopped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use super::board::Board;
use super::engine::Engine;
use super::links::Links;
use super::{NODES, SESSION_MS, SHARDS};
use crate::fault::Fallible;
use crate::process::{Process, field, signal};
use crate::server::remove_settings;

/// How many lines of the log of a node are shown when something is wrong.
const LINES: usize = 60;

/// See the start of this file.
pub(crate) struct Nodes {
    program: PathBuf,
    directory: PathBuf,
    urls: [String; NODES],
    pub(crate) board: Arc<Board>,
    pub(crate) links: Links,
    processes: [Option<Process>; NODES],
    /// The last lines of each node that has ended.
    ended: [String; NODES],
}

impl Nodes {
    /// Starts all nodes on an engine.
    pub(crate) fn start(program: &Path, directory: &Path, engine: &Engine) -> Fallible<Self> {
        let links = Links::start(&engine.addresses())?;
        let url = |node| engine.url(links.engine(node));
        let mut nodes = Self {
            program: program.to_owned(),
            directory: directory.to_owned(),
            urls: std::array::from_fn(url),
            board: Arc::default(),
            links,
            processes: [const { None }; NODES],
            ended: Default::default(),
        };
        (0..NODES).try_for_each(|node| nodes.start_one(node))?;
        Ok(nodes)
    }

    /// Starts a node that does not run, and waits until it listens.
    pub(crate) fn start_one(&mut self, node: usize) -> Fallible<()> {
        let name = format!("n{}", node + 1);
        let mut command = Command::new(&self.program);
        command.args(["serve", "--log-format", "json", "--pinpriq", "off"]);
        command.args(["--http", "off", "--resp", "127.0.0.1:0", "--link", "127.0.0.1:0"]);
        command.arg("--announce-link").arg(self.links.address(node).to_string());
        command.arg("--session-ttl").arg(format!("{}s", SESSION_MS / 1_000));
        command.arg("--shards").arg(SHARDS.to_string());
        command.args(["--cluster", &self.urls[node], "--node", &name]);
        command.arg("--data").arg(self.directory.join(&name));
        remove_settings(&mut command);
        let board = self.board.clone();
        let process = Process::start_watched(&mut command, move |line| board.read(node, line))?;
        let listens = |door: &str| -> Fallible<SocketAddr> {
            let line = process.line(&format!("\"door\":\"{door}\""))?;
            let address = line.as_deref().and_then(|line| field(line, "address"));
            let ended = || format!("node {name} did not start: {}", process.text());
            Ok(address.ok_or_else(ended)?.parse()?)
        };
        self.links.set_node(node, Some((process.id(), listens("link")?)));
        self.board.set_door(node, Some(listens("resp")?));
        self.processes[node] = Some(process);
        Ok(())
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, node: usize) -> Fallible<()> {
        self.end(node, Process::kill).map(drop)
    }

    /// Asks a node to stop, and waits until it has.
    pub(crate) fn stop(&mut self, node: usize) -> Fallible<ExitStatus> {
        self.signal(node, "-TERM")?;
        self.end(node, Process::wait)
    }

    fn end(
        &mut self,
        node: usize,
        end: impl FnOnce(&mut Process) -> Fallible<ExitStatus>,
    ) -> Fallible<ExitStatus> {
        let mut process = self.processes[node].take().ok_or("the node does not run")?;
        let status = end(&mut process)?;
        self.board.set_door(node, None);
        self.links.set_node(node, None);
        self.ended[node] = last_lines(&process);
        Ok(status)
    }

    /// Sends a signal to a node.
    pub(crate) fn signal(&self, node: usize, name: &str) -> Fallible<()> {
        match &self.processes[node] {
            Some(process) => signal(name, process.id()),
            None => Err(format!("node n{} does not run", node + 1).into()),
        }
    }

    /// Checks that no node has ended by itself.
    pub(crate) fn check(&mut self) -> Fallible<()> {
        for (node, process) in self.processes.iter_mut().enumerate() {
            if let Some(process) = process
                && !process.is_running()?
            {
                let status = process.wait()?;
                self.board.fail(format!("node n{} ended by itself: {status}", node + 1));
            }
        }
        Ok(())
    }

    /// The last lines of the logs, for the investigation of a failure.
    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for (node, process) in self.processes.iter().enumerate() {
            let name = node + 1;
            text.extend(["\n", &format!("n{name} before:"), "\n", &self.ended[node]]);
            if let Some(process) = process {
                text.extend(["\n", &format!("n{name}:"), "\n", &last_lines(process)]);
            }
        }
        text
    }
}

fn last_lines(process: &Process) -> String {
    let text = process.text();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
