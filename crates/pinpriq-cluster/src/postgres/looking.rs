//! What there is in a schema, for people. Changes nothing, and creates nothing.

use std::sync::Arc;

use crate::remote::LogState;
use pinpriq_store::ledger::{Seq, Tenure, Term, Unreachable, Writer};
use tokio::time::timeout;

use crate::postgres::options::{ConnectError, PostgresOptions};
use crate::postgres::server::{Postgres, Report, Server};
use crate::postgres::session::Session;
use crate::postgres::statements::{are_there, log_states};

impl Postgres {
    /// Connects and checks the server as [`Postgres::connect`] does, but creates nothing. Returns
    /// None if the tables are not there.
    pub async fn connect_existing(
        options: PostgresOptions,
    ) -> Result<Option<(Self, Report)>, ConnectError> {
        let limit = options.call_timeout;
        let server = Server::new(options)?;
        let found = timeout(limit, async {
            let session = open(&server).await?;
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
            let session = open(server).await.map_err(|error| error.to_string())?;
            session.rows(&log_states(&server.schema)).await.map_err(|failure| failure.why)
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

async fn open(server: &Server) -> Result<Session, ConnectError> {
    server.open(server.options.connect_timeout).await
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
