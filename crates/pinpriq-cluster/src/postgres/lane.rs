//! One connection at a time, and what was left behind on those before it. Sends no statement of its
//! callers.
//!
//! Who gives up waiting closes the connection, but the server goes on: while a standby does not
//! answer, each statement keeps a process of the server until it does. A new connection for each
//! attempt would soon take all that the server has, from others too.

use std::time::Duration;

use tokio_postgres::Row;

use crate::postgres::failure::{Failure, Kind};
use crate::postgres::server::Server;
use crate::postgres::session::{Parameters, Session};
use crate::postgres::statements::{Sql, at_work};

/// How many statements that were given up may be under way when another connection is opened.
const LEFT_MAX: usize = 2;

/// See the start of this file.
#[derive(Default)]
pub(crate) struct Lane {
    session: Option<Session>,
    /// The processes of the server whose statements were not answered, as far as is known.
    left: Vec<i32>,
}

impl Lane {
    /// Whether there is a connection, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.is_closed())
    }

    /// Whether there was one, which may have failed meanwhile.
    pub(crate) const fn is_new(&self) -> bool {
        self.session.is_none()
    }

    /// Takes a new connection, unless too many statements are still under way.
    pub(crate) async fn admit(&mut self, session: Session) -> Result<(), Failure> {
        if self.left.len() >= LEFT_MAX {
            // Another server knows nothing of them, and has none under way.
            let rows = session.rows(&at_work(&self.left)).await.unwrap_or_default();
            let active: Vec<&String> = rows.iter().flatten().collect();
            self.left.retain(|process| active.contains(&&process.to_string()));
            if self.left.len() >= LEFT_MAX {
                let count = self.left.len();
                return Err(Failure::unknown(format!(
                    "PostgreSQL still carries out {count} statements of this connection: perhaps \
                     its standby does not answer"
                )));
            }
        }
        self.session = Some(session);
        Ok(())
    }

    /// Runs a statement on the connection, or on a new one, with a limit for each host. The
    /// connection is dropped if this fails, or if it is not waited for.
    pub(crate) async fn ask(
        &mut self,
        server: &Server,
        limit: Duration,
        sql: Sql,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        if !self.is_open() {
            let opened = server.open(limit).await;
            self.admit(opened.map_err(|error| Failure::unknown(error.to_string()))?).await?;
        }
        let Some(mut session) = self.session.take() else {
            return Err(Failure::unknown("there is no connection".to_owned()));
        };
        self.left.push(session.process);
        let result = session.ask(sql, &server.schema, parameters).await;
        if !matches!(&result, Err(failure) if failure.kind == Kind::Unknown) {
            self.left.pop();
            self.session = Some(session);
        }
        result
    }
}
