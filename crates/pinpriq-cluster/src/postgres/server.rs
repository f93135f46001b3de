//! A server with the tables of all logs and of the registry: connecting to it, and creating them.

use std::sync::Arc;
use std::time::Duration;

use crate::remote::LogState;
use pinpriq_store::ledger::{Seq, Tenure, Term, Unreachable, Writer};
use tokio::time::timeout;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Config, Row};

use crate::postgres::failure::Failure;
use crate::postgres::log::PostgresLog;
use crate::postgres::options::{ConnectError, PostgresOptions, hosts, quoted_schema};
use crate::postgres::session::Session;
use crate::postgres::statements::{CREATE, LOG_STATES, are_there, filled};
use crate::postgres::tls::Encrypter;

/// A server that keeps fenced logs. Clones are handles to the same one. It keeps no connection.
#[derive(Clone)]
pub struct Postgres {
    pub(crate) server: Arc<Server>,
}

/// What a person should know of a server that is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The version, as PostgreSQL writes it in `server_version_num`: 150004 is 15.4.
    pub version: u32,
    /// The setting `synchronous_standby_names`. If it is empty, a commit is on the disk of one
    /// machine only, and a failover may lose what was acknowledged.
    pub synchronous_standby_names: String,
}

impl Report {
    pub(crate) fn of(session: &Session) -> Self {
        let synchronous_standby_names = session.standbys.clone();
        Self { version: session.version, synchronous_standby_names }
    }

    /// Whether each commit waits for another machine.
    #[must_use]
    pub fn has_synchronous_standbys(&self) -> bool {
        !self.synchronous_standby_names.trim().is_empty()
    }
}

impl Postgres {
    /// Connects, checks the server, and creates the schema and the tables if they are missing.
    /// Several may do so at once. It needs a runtime with time and I/O.
    ///
    /// Refuses what cannot keep logs: see [`ConnectError`].
    pub async fn connect(options: PostgresOptions) -> Result<(Self, Report), ConnectError> {
        let limit = options.call_timeout;
        let server = Server::new(options)?;
        let report = timeout(limit, server.prepare()).await;
        let silent = |_| ConnectError::Unusable("it does not answer in time".to_owned());
        let report = report.map_err(silent)??;
        Ok((Self { server: Arc::new(server) }, report))
    }

    /// Returns the log of a shard for a writer. It connects when it is asked something, and keeps
    /// up to two connections.
    #[must_use]
    pub fn log(&self, shard: u16, writer: Writer) -> PostgresLog {
        PostgresLog::new(Arc::clone(&self.server), shard, writer)
    }

    /// Connects and checks the server as [`Postgres::connect`] does, but creates nothing. Returns
    /// None if the tables are not there.
    pub async fn connect_existing(
        options: PostgresOptions,
    ) -> Result<Option<(Self, Report)>, ConnectError> {
        let limit = options.call_timeout;
        let server = Server::new(options)?;
        let found = timeout(limit, async {
            let session = server.open_in_time().await?;
            let there = session.run(&are_there(&server.schema)).await;
            let there = there.map_err(|failure| ConnectError::Unusable(failure.why))?;
            Ok((there == ["t"]).then(|| Report::of(&session)))
        });
        let silent = |_| ConnectError::Unusable("it does not answer in time".to_owned());
        let report = found.await.map_err(silent)??;
        Ok(report.map(|report| (Self { server: Arc::new(server) }, report)))
    }

    /// Returns what the logs of this many shards have come to, or None for one that was never
    /// seized. Opens a connection, and runs one statement. What is read may be lost yet.
    pub async fn log_states(&self, shards: u16) -> Result<Vec<Option<LogState>>, Unreachable> {
        let unreachable = |why: String| Unreachable { why };
        let server = &self.server;
        let rows = timeout(server.options.call_timeout, async {
            let session = server.open_in_time().await.map_err(|error| error.to_string())?;
            session.rows(&filled(LOG_STATES, &server.schema)).await.map_err(|failure| failure.why)
        });
        let silent = |_| unreachable("no answer in time".to_owned());
        let rows = rows.await.map_err(silent)?.map_err(unreachable)?;
        let mut states = vec![None; usize::from(shards)];
        for row in rows {
            let (shard, state) = read(&row)
                .ok_or_else(|| unreachable(format!("the row of a shard is malformed: {row:?}")))?;
            if let Some(place) = states.get_mut(shard) {
                *place = state;
            }
        }
        Ok(states)
    }
}

/// Where the tables are.
pub(crate) struct Server {
    pub(crate) options: PostgresOptions,
    /// The schema, in quotes.
    pub(crate) schema: String,
    /// What the entries of all logs needed when that was looked at last.
    pub(crate) measured: tokio::sync::Mutex<Option<Measured>>,
    hosts: Vec<Config>,
    encrypter: Encrypter,
}

/// What the entries of all logs need.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    /// When that was looked at, by the clock of the server, and until when it is not looked at
    /// again.
    pub(crate) at_ms: u64,
    pub(crate) good_until_ms: u64,
}

impl Server {
    /// Checks the options. Connects to nothing yet.
    pub(crate) fn new(options: PostgresOptions) -> Result<Self, ConnectError> {
        let schema = quoted_schema(&options.schema)?;
        let hosts = hosts(&options)?;
        let encrypter = Encrypter::new(options.encryption.tls());
        Ok(Self { options, schema, measured: tokio::sync::Mutex::default(), hosts, encrypter })
    }

    /// Connects to the first host that accepts changes, with a limit for each.
    pub(crate) async fn open(&self, limit: Duration) -> Result<Session, ConnectError> {
        let mut error = ConnectError::Unusable("it has no host".to_owned());
        for host in &self.hosts {
            error = match timeout(limit, Session::open(host, &self.encrypter)).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(error)) => error,
                Err(_) => ConnectError::Unusable("no connection in time".to_owned()),
            };
        }
        Err(error)
    }

    async fn open_in_time(&self) -> Result<Session, ConnectError> {
        self.open(self.options.connect_timeout).await
    }

    async fn prepare(&self) -> Result<Report, ConnectError> {
        let session = self.open_in_time().await?;
        let run = async |sql: &str| {
            session.run(sql).await.map_err(|failure| ConnectError::Unusable(failure.why))
        };
        // Who may use the tables need not have the right to create them.
        if run(&are_there(&self.schema)).await? != ["t"] {
            run(&filled(CREATE, &self.schema)).await?;
        }
        Ok(Report::of(&session))
    }
}

/// Returns a value of a row.
pub(crate) fn column<T: FromSqlOwned>(row: &Row, index: usize) -> Result<T, Failure> {
    Ok(row.try_get(index)?)
}

/// Reads the row of a shard. A term of 0 says that it was never seized.
fn read(row: &[String]) -> Option<(usize, Option<LogState>)> {
    let [shard, term, writer, head, first] = row else { return None };
    let term = Term(term.parse().ok()?);
    let writer = Writer(u128::from_str_radix(writer, 16).ok()?);
    let (head, first) = (Seq(head.parse().ok()?), Seq(first.parse().ok()?));
    let state = LogState { tenure: Tenure { term, writer }, head, first };
    Some((shard.parse().ok()?, (term.0 > 0).then_some(state)))
}
