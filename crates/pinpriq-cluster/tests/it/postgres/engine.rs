//! A real PostgreSQL in a temporary directory, and a runtime for its clients. Tests nothing.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pinpriq_cluster::postgres::{ConnectError, Postgres, PostgresOptions, Report};
use pinpriq_cluster::remote::RemoteLedger;
use pinpriq_store::ledger::{Ledger, Writer};
use pinpriq_testing::engines::PostgresPrograms;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls};

use crate::remote::engines::runtime;

/// How often a server that starts is asked whether it is there, 20 ms apart.
const PROBES_MAX: u32 = 3_000;

/// A server. Dropping it ends it.
pub(crate) struct Engine {
    pub(crate) programs: PostgresPrograms,
    directory: TempDir,
    pub(crate) port: u16,
    settings: Vec<String>,
    child: Option<Child>,
    pub(crate) runtime: Handle,
}

impl Engine {
    /// Starts a server with these settings. None if PostgreSQL is not installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let programs = PostgresPrograms::find_or_skip()?;
        let directory = TempDir::new().unwrap();
        programs.give(directory.path()).unwrap();
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let runtime = runtime();
        let mut engine = Self { programs, directory, port: 0, settings, child: None, runtime };
        let initdb = engine
            .command("initdb")
            .args(["--username=pinpriq", "--auth=trust", "--no-sync", "--locale=C"])
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        engine.run(true);
        Some(engine)
    }

    /// Starts a server and connects to its schema `s`. None if PostgreSQL is not installed.
    pub(crate) fn connected() -> Option<(Self, Postgres)> {
        let engine = Self::start(&[])?;
        let (postgres, _) = engine.connect(engine.options("s")).unwrap();
        Some((engine, postgres))
    }

    /// A program of PostgreSQL, as a user that it accepts.
    fn command(&self, program: &str) -> Command {
        let mut command = self.programs.command(program);
        command.current_dir(self.directory.path());
        command.arg("-D").arg(self.directory.path().join("data"));
        command
    }

    /// Starts the server on its port, or on a free one the first time, and waits until it accepts
    /// statements.
    fn run(&mut self, is_first: bool) {
        for _ in 0..5 {
            if is_first {
                self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            }
            let mut command = self.command("postgres");
            command.args(["-h", "127.0.0.1", "-k", "", "-p", &self.port.to_string()]);
            for setting in &self.settings {
                command.args(["-c", setting]);
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.process_group(0).spawn().unwrap();
            drain(child.stderr.take().unwrap());
            for _ in 0..PROBES_MAX {
                if TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.accepts() {
                    self.child = Some(child);
                    return;
                }
                if child.try_wait().unwrap().is_some() {
                    // The port was taken meanwhile, or a process of the server before is not gone.
                    break;
                }
                thread::park_timeout(Duration::from_millis(20));
            }
            _ = child.kill();
            _ = child.wait();
        }
        panic!("PostgreSQL does not start");
    }

    /// Returns whether the server on the port accepts statements and is this one. Another test may
    /// have taken the port between the moment it was found free and the start of the server.
    fn accepts(&self) -> bool {
        let (address, data) = (self.address(), self.directory.path().join("data"));
        let is_this_one =
            format!("SELECT current_setting('data_directory') = '{}'", data.display());
        let attempt = async move {
            let (client, connection) = tokio_postgres::connect(&address, NoTls).await.ok()?;
            tokio::spawn(connection);
            client.query_one(&is_this_one, &[]).await.ok()?.try_get(0).ok()
        };
        self.runtime.block_on(attempt) == Some(true)
    }

    pub(crate) fn address(&self) -> String {
        format!("host=127.0.0.1 port={} user=pinpriq dbname=postgres", self.port)
    }

    /// Ends all processes of the server at once, as a power loss would.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        let parent = child.id();
        // The processes for connections are no longer in the group of their parent.
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(children).unwrap();
        child.kill().unwrap();
        for child in children.split_whitespace() {
            // It may have ended meanwhile.
            _ = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
        }
        child.wait().unwrap();
    }

    /// Starts the server again on its port, after it was killed.
    pub(crate) fn restart(&mut self) {
        self.run(false);
    }

    pub(crate) fn options(&self, schema: &str) -> PostgresOptions {
        PostgresOptions::new(&self.address(), schema, 1 << 40)
    }

    pub(crate) fn connect(
        &self,
        options: PostgresOptions,
    ) -> Result<(Postgres, Report), ConnectError> {
        self.runtime.block_on(Postgres::connect(options))
    }

    /// A ledger on a connected server.
    pub(crate) fn ledger(&self, postgres: &Postgres, shard: u16, writer: u128) -> Box<dyn Ledger> {
        let log = postgres.log(shard, Writer(writer));
        Box::new(RemoteLedger::new(log, self.runtime.clone(), Arc::new(|| ())))
    }

    /// A session beside those of the ledgers.
    pub(crate) fn client(&self) -> Client {
        let address = self.address();
        self.runtime.block_on(async move {
            let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        })
    }

    /// Runs statements in a session of their own, and returns the first value of the last row.
    pub(crate) fn sql(&self, client: &Client, sql: &str) -> Option<String> {
        let messages = self.runtime.block_on(client.simple_query(sql)).unwrap();
        let values = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        values.last()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // An immediate shutdown, in which the server ends all its processes.
            _ = kill_process(Pid::from_child(child), Signal::QUIT);
            _ = child.wait();
        }
    }
}

/// Reads what a server says until it ends, so that it never waits for its reader.
fn drain(output: impl std::io::Read + Send + 'static) {
    let is_wanted = std::env::var_os("PINPRIQ_ENGINE_OUTPUT").is_some();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if is_wanted {
                println!("{line}");
            }
        }
    });
}
