//! One connection to PostgreSQL. It sends one statement after the other, and trusts a result only
//! if no warning came with it. Does not connect again.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Row, SimpleQueryMessage, Socket, Statement,
};

use crate::postgres::failure::{Failure, Kind};
use crate::postgres::options::ConnectError;
use crate::postgres::statements::{SETUP, Sql, filled};
use crate::postgres::tls::{Encrypted, Encrypter};

/// How often a statement is sent again that did nothing.
const ATTEMPTS: u32 = 10;

/// The oldest version of PostgreSQL, as it writes it in `server_version_num`.
const VERSION_MIN: u32 = 130_000;

/// The parameters of a statement.
pub(crate) type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// The warnings of a connection so far: how many, and the last one.
#[derive(Default)]
struct Warned {
    count: u64,
    last: String,
}

/// A connection. Dropping it closes the socket at once. What it has sent may still be carried out.
pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    warned: Arc<Mutex<Warned>>,
    prepared: HashMap<Sql, Statement>,
    /// The setting `synchronous_standby_names`.
    pub(crate) standbys: String,
    /// The setting `server_version_num`.
    pub(crate) version: u32,
    /// The number of the server's process.
    pub(crate) process: i32,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Connects to one host, forces the settings and checks the server. A limit of time is the
    /// caller's.
    pub(crate) async fn open(host: &Config, encrypter: &Encrypter) -> Result<Self, ConnectError> {
        let unusable = |error| ConnectError::Unusable(Failure::from(error).why);
        let connected = host.connect(encrypter.clone()).await;
        let (client, connection) = connected.map_err(unusable)?;
        let warned = Arc::new(Mutex::new(Warned::default()));
        let driver = tokio::spawn(drive(connection, Arc::clone(&warned)));
        let mut session = Self {
            client,
            driver,
            warned,
            prepared: HashMap::new(),
            standbys: String::new(),
            version: 0,
            process: 0,
        };
        let row =
            session.run(SETUP).await.map_err(|failure| ConnectError::Unusable(failure.why))?;
        let [fsync, commit, standbys, version, process] = row.as_slice() else {
            return Err(ConnectError::Unusable("it does not tell its settings".to_owned()));
        };
        if fsync == "off" {
            return Err(ConnectError::FsyncOff);
        }
        if commit != "on" {
            let why = format!("synchronous_commit stays {commit} although it was set to on");
            return Err(ConnectError::Unusable(why));
        }
        session.standbys.clone_from(standbys);
        session.version = version.parse().unwrap_or(0);
        session.process = process.parse().unwrap_or(0);
        if session.version < VERSION_MIN {
            return Err(ConnectError::TooOld(version.clone()));
        }
        Ok(session)
    }

    /// Whether the connection is known to be broken.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters as one transaction. Returns the last row, as texts.
    pub(crate) async fn run(&self, sql: &str) -> Result<Vec<String>, Failure> {
        Ok(self.rows(sql).await?.pop().unwrap_or_default())
    }

    /// Does so, and returns all rows, as texts.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
        let mut rows = Vec::new();
        for message in self.client.simple_query(sql).await? {
            if let SimpleQueryMessage::Row(row) = message {
                let texts = (0..row.len()).map(|column| row.get(column).unwrap_or("").to_owned());
                rows.push(texts.collect());
            }
        }
        Ok(rows)
    }

    /// Runs a statement until its commit. It is sent again if it is sure to have done nothing.
    ///
    /// After [`Kind::Unknown`] the session must be dropped.
    pub(crate) async fn ask(
        &mut self,
        sql: Sql,
        schema: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        if !self.prepared.contains_key(sql) {
            let statement = self.client.prepare(&filled(sql, schema)).await;
            // Nothing was carried out, but no answer of a ledger says so in general.
            let statement =
                statement.map_err(|error| Failure::unknown(Failure::from(error).why))?;
            self.prepared.insert(sql, statement);
        }
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let before = self.warnings();
            // The result is complete when the server is ready for the next statement, which it
            // says after the commit. A warning of the commit has come before that.
            let result = self.client.query(&self.prepared[sql], parameters).await;
            if self.warnings() != before {
                return Err(Failure::unknown(self.last_warning()));
            }
            match result.map_err(Failure::from) {
                Err(failure) if failure.kind == Kind::Again => why = failure.why,
                result => return result,
            }
        }
        Err(Failure::unknown(why))
    }

    fn warnings(&self) -> u64 {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    fn last_warning(&self) -> String {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }
}

/// Carries bytes between the socket and the client, and notes each warning before it passes on what
/// came after it. Ends with the connection.
async fn drive(mut connection: Connection<Socket, Encrypted>, warned: Arc<Mutex<Warned>>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        let AsyncMessage::Notice(notice) = message else { continue };
        let is_harmless = matches!(
            notice.parsed_severity(),
            Some(Severity::Notice | Severity::Info | Severity::Debug | Severity::Log)
        );
        if !is_harmless {
            let mut warned = warned.lock().unwrap_or_else(PoisonError::into_inner);
            warned.count += 1;
            notice.message().clone_into(&mut warned.last);
        }
    }
}
