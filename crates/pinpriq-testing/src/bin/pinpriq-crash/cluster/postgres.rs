//! A primary of PostgreSQL and its synchronous standby. Either can be killed, and the standby can
//! be promoted.
//!
//! Each commit waits for the standby, also after a promotion: then until there is another one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pinpriq_testing::engines::PostgresPrograms;

use super::NAME;
use super::addresses::free_addresses;
use super::logs::Log;
use crate::clock::{Clock, let_pass};
use crate::fault::Fallible;
use crate::files;
use crate::process::{GUARD, Process, run, signal};

/// The user that the servers know.
pub(crate) const USER: &str = "pinpriq";

/// What a standby calls itself.
const STANDBY: &str = "standby";

/// How long is waited before a server is asked again.
const BETWEEN: Duration = Duration::from_millis(50);

/// Of all statements that wait for the standby, those that append to a log.
pub(crate) const APPENDS: &str = "AND query LIKE '%INSERT INTO%.entry %'";

/// See the start of this file.
pub(crate) struct Postgres {
    tools: Tools,
    servers: [Server; 2],
    primary: usize,
}

struct Server {
    directory: PathBuf,
    address: SocketAddr,
    process: Option<Process>,
}

/// The programs of PostgreSQL.
struct Tools {
    programs: PostgresPrograms,
    /// Where they run.
    directory: PathBuf,
}

impl Tools {
    fn command(&self, program: &str) -> Command {
        let mut command = self.programs.command(program);
        command.current_dir(&self.directory);
        command
    }
}

impl Postgres {
    /// What it needs that is not installed.
    pub(crate) fn lacks() -> Option<String> {
        PostgresPrograms::find().is_none().then(|| "PostgreSQL".to_owned())
    }

    /// Starts both servers, and waits until the standby is synchronous.
    pub(crate) fn start(directory: &Path) -> Fallible<Self> {
        let programs = PostgresPrograms::find().ok_or("PostgreSQL is not installed")?;
        let inner = directory.join("postgres");
        files::make_directory(&inner)?;
        if programs.give(&inner)? {
            files::let_enter(directory)?;
        }
        let addresses = free_addresses(2)?;
        let server = |at: usize| Server {
            directory: inner.join(format!("s{at}")),
            address: addresses[at],
            process: None,
        };
        let servers = [server(0), server(1)];
        let tools = Tools { programs, directory: inner.clone() };
        let mut postgres = Self { tools, servers, primary: 0 };
        let mut initdb = postgres.tools.command("initdb");
        initdb.args(["--auth=trust", "--no-sync", "--locale=C", "--username", USER]);
        run(initdb.arg("-D").arg(&postgres.servers[0].directory))?;
        postgres.launch(0)?;
        postgres.rebuild(|| ())?;
        Ok(postgres)
    }

    /// Where the servers listen.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| server.address).collect()
    }

    fn standby(&self) -> usize {
        1 - self.primary
    }

    /// Kills the primary with all its processes.
    pub(crate) fn kill_primary(&mut self) -> Fallible<()> {
        self.kill(self.primary)
    }

    /// Starts a primary that was killed, and waits until its standby is synchronous.
    pub(crate) fn start_primary(&mut self) -> Fallible<()> {
        self.launch(self.primary)?;
        self.wait_for_standby()
    }

    /// Kills the standby with all its processes, and waits until the primary knows. From then on
    /// no commit succeeds.
    pub(crate) fn kill_standby(&mut self) -> Fallible<()> {
        self.kill(self.standby())?;
        self.wait_for("SELECT count(*) FROM pg_stat_replication", "0")
    }

    /// Starts a standby that was killed, and waits until it is synchronous.
    pub(crate) fn start_standby(&mut self) -> Fallible<()> {
        self.launch(self.standby())?;
        self.wait_for_standby()
    }

    /// Makes the standby the primary after that was killed. Starts it, if it was killed too. No
    /// commit succeeds before there is another standby.
    pub(crate) fn promote(&mut self) -> Fallible<()> {
        self.primary = self.standby();
        if self.servers[self.primary].process.is_none() {
            self.launch(self.primary)?;
        }
        // The function pg_promote is a query, which the last changes of the old primary may cancel.
        let mut promote = self.tools.command("pg_ctl");
        promote.args(["promote", "-s", "-w", "-D"]);
        run(promote.arg(&self.servers[self.primary].directory))?;
        self.wait_for("SELECT pg_is_in_recovery()", "f")
    }

    /// Makes a new standby in the place of a server that was killed, and waits until it is
    /// synchronous. Calls `before` when no commit has succeeded yet.
    pub(crate) fn rebuild(&mut self, before: impl FnOnce()) -> Fallible<()> {
        let standby = self.standby();
        let directory = self.servers[standby].directory.clone();
        free_memory(&directory);
        files::remove_directory(&directory)?;
        let primary = self.servers[self.primary].address;
        let mut command = self.tools.command("pg_basebackup");
        command.args(["--checkpoint=fast", "--no-sync", "-R", "-X", "stream", "-U", USER]);
        command.args(["-h", "127.0.0.1", "-p", &primary.port().to_string()]);
        run(command.arg("-D").arg(&directory))?;
        before();
        self.start_standby()
    }

    /// Cancels statements that wait for the standby, all or those that append. PostgreSQL calls
    /// them a success, with a warning. Returns how many there were.
    pub(crate) fn cancel_waits(&self, which: &str) -> Fallible<u64> {
        let sql = format!(
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity \
             WHERE wait_event = 'SyncRep' {which}"
        );
        Ok(self.ask(&sql)?.trim().parse()?)
    }

    /// How many connections clients have to the primary.
    pub(crate) fn connections(&self) -> Fallible<u64> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinpriq'";
        Ok(self.ask(sql)?.trim().parse()?)
    }

    /// Reads all logs at one moment.
    pub(crate) fn logs(&self) -> Fallible<BTreeMap<u16, Log>> {
        Log::of_rows(&self.ask(&format!(
            "SELECT 'log', shard, term, head, '' FROM {NAME}.shard UNION ALL \
             SELECT 'entry', shard, seq, 0, encode(substring(body FROM 1 FOR 40), 'hex') \
             FROM {NAME}.entry"
        ))?)
    }

    /// Runs a statement on the primary. Returns a line for each row, with spaces between values.
    fn ask(&self, sql: &str) -> Fallible<String> {
        let port = self.servers[self.primary].address.port().to_string();
        let mut command = self.tools.command("psql");
        command.args(["-X", "-A", "-t", "-F", " ", "-h", "127.0.0.1", "-p", &port]);
        run(command.args(["-U", USER, "-d", "postgres", "-c", sql]))
    }

    fn wait_for_standby(&self) -> Fallible<()> {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{STANDBY}' \
             AND state = 'streaming' AND sync_state = 'sync'"
        );
        self.wait_for(&sql, "1")
    }

    /// Waits until a statement returns this value.
    fn wait_for(&self, sql: &str, wanted: &str) -> Fallible<()> {
        let clock = Clock::starting();
        while self.ask(sql)?.trim() != wanted {
            if clock.elapsed() > GUARD {
                let text = |server: &Server| server.process.as_ref().map(Process::text);
                let texts: Vec<_> = self.servers.iter().filter_map(text).collect();
                return Err(format!("{sql} never is {wanted}: {}", texts.join("\n")).into());
            }
            let_pass(BETWEEN);
        }
        Ok(())
    }

    /// Starts a server, and waits until it accepts statements.
    fn launch(&mut self, at: usize) -> Fallible<()> {
        let (port, other) = (self.servers[at].address.port(), self.servers[1 - at].address.port());
        let settings = [
            format!("synchronous_standby_names={STANDBY}"),
            format!(
                "primary_conninfo=host=127.0.0.1 port={other} user={USER} \
                 application_name={STANDBY}"
            ),
            // What a standby lacks that was away is still there.
            "wal_keep_size=256MB".to_owned(),
            "wal_retrieve_retry_interval=100ms".to_owned(),
            // Otherwise a server that is killed leaves something behind outside of its directory.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        let mut command = self.tools.command("postgres");
        command.args(["-h", "127.0.0.1", "-k", "", "-p", &port.to_string()]);
        command.arg("-D").arg(&self.servers[at].directory);
        for setting in &settings {
            command.args(["-c", setting]);
        }
        let mut process = Process::start(&mut command)?;
        let clock = Clock::starting();
        let mut ready = self.tools.command("pg_isready");
        ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        while run(&mut ready).is_err() {
            if clock.elapsed() > GUARD || !process.is_running()? {
                return Err(format!("PostgreSQL does not start: {}", process.text()).into());
            }
            let_pass(BETWEEN);
        }
        self.servers[at].process = Some(process);
        Ok(())
    }

    fn kill(&mut self, at: usize) -> Fallible<()> {
        let Some(mut process) = self.servers[at].process.take() else { return Ok(()) };
        // So that it starts no more processes. They would outlive it for a moment.
        signal("-STOP", process.id())?;
        let children = files::children(process.id())?;
        // Some may have ended by themselves.
        for child in &children {
            drop(signal("-KILL", *child));
        }
        process.kill()?;
        let clock = Clock::starting();
        while children.iter().any(|child| files::is_alive(*child)) {
            if clock.elapsed() > GUARD {
                return Err("processes of PostgreSQL outlive SIGKILL".into());
            }
            let_pass(BETWEEN);
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for server in &mut self.servers {
            if let Some(mut process) = server.process.take() {
                // An immediate shutdown, in which the server ends all its processes.
                let _ = signal("-QUIT", process.id());
                let _ = process.wait();
            } else {
                free_memory(&server.directory);
            }
        }
    }
}

/// Frees the piece of shared memory by which a server guards its directory. One that was killed
/// leaves it behind, and a new server in the same place would not know.
fn free_memory(directory: &Path) {
    let Ok(file) = files::read(&directory.join("postmaster.pid")) else { return };
    let text = String::from_utf8_lossy(&file).into_owned();
    if let Some(id) = text.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
        // It may be gone, and then there is nothing to free.
        let _ = run(Command::new("ipcrm").args(["-m", id]));
    }
}
