//! The log of one shard: calls of a ledger as statements of PostgreSQL.
//!
//! Which error leaves a statement in doubt is decided in `failure`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::remote::Remote;
use pinpriq_store::ledger::interface::ENTRY_BYTES_MAX;
use pinpriq_store::ledger::{
    Answer, Appended, Call, Resolved, Seized, Seq, Status, Tenure, Term, Trimmed, Unreachable,
    Writer,
};
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::postgres::failure::{Failure, Kind};
use crate::postgres::lane::Lane;
use crate::postgres::server::{Measured, Server, column};
use crate::postgres::session::Parameters;
use crate::postgres::statements::{self, Sql};

/// The size of an entry at which a commit costs little beside the bytes.
const TARGET_BYTES: usize = 256 << 10;

/// The most bytes that one read wants. It returns more only if the first entry alone is larger.
const READ_BYTES_MAX: i64 = 16 << 20;

/// How many entries one statement removes. An append waits while it runs.
const TRIM_ENTRIES: i64 = 64;

/// For how long it counts at least what all entries needed, in milliseconds of the server.
const MEASURED_FOR_MS: u64 = 400;

/// It counts a millisecond longer for each so many entries, so that looking at them takes a small
/// part of the time.
const ENTRIES_PER_MS: u64 = 20;

/// The log of one shard for one writer. See the start of the module.
///
/// Appends, resolves and seizures have a connection, and everything else has another one. Each call
/// ends within [`PostgresOptions::call_timeout`](super::PostgresOptions::call_timeout). If it took
/// longer, its connection is closed, and what it has sent may still be carried out.
pub struct PostgresLog {
    server: Arc<Server>,
    shard: i32,
    writer: Writer,
    appends: tokio::sync::Mutex<Lane>,
    chores: tokio::sync::Mutex<Lane>,
    /// The tenure that was seized last, and its beat.
    beat: Mutex<Option<(Tenure, i64)>>,
}

/// A tenure in the types of PostgreSQL.
struct Owner {
    term: i64,
    writer: String,
}

impl Owner {
    /// None if no such tenure can have been seized.
    fn of(tenure: Tenure) -> Option<Self> {
        let term = i64::try_from(tenure.term.0).ok()?;
        Some(Self { term, writer: uuid(tenure.writer) })
    }
}

fn uuid(writer: Writer) -> String {
    format!("{:032x}", writer.0)
}

impl PostgresLog {
    pub(crate) fn new(server: Arc<Server>, shard: u16, writer: Writer) -> Self {
        let (appends, chores) = Default::default();
        Self { server, shard: i32::from(shard), writer, appends, chores, beat: Mutex::default() }
    }

    fn set_beat(&self, tenure: Tenure, beat: i64) {
        *self.beat.lock().unwrap_or_else(PoisonError::into_inner) = Some((tenure, beat));
    }

    /// Returns the beat of a tenure, if this ledger has seized or resolved with it last.
    fn beat(&self, tenure: Tenure) -> Option<i64> {
        let known = *self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        known.filter(|(known, _)| *known == tenure).map(|(_, beat)| beat)
    }

    /// Runs a statement on the connection of a lane, or on a new one. The connection is dropped if
    /// this fails, or if it is not waited for.
    async fn ask(
        &self,
        lane: &mut Lane,
        sql: Sql,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        lane.ask(&self.server, self.server.options.connect_timeout, sql, parameters).await
    }

    async fn seize(&self, at_least: Term) -> Result<Seized, Failure> {
        let at_least = i64::try_from(at_least.0)
            .map_err(|_| Failure::unknown(format!("no term is as high as {}", at_least.0)))?;
        let writer = uuid(self.writer);
        let mut lane = self.appends.lock().await;
        loop {
            let rows = self.ask(&mut lane, statements::TERM, &[&self.shard]).await?;
            let Some(row) = rows.first() else {
                self.ask(&mut lane, statements::ENTER, &[&self.shard]).await?;
                continue;
            };
            let before: i64 = column(row, 0)?;
            let parameters: Parameters<'_> = &[&self.shard, &at_least, &writer, &before];
            let rows = self.ask(&mut lane, statements::SEIZE, parameters).await?;
            // Without a row another writer was faster.
            if let Some(row) = rows.first() {
                let tenure = Tenure { term: Term(number(row, 0)?), writer: self.writer };
                self.set_beat(tenure, column(row, 3)?);
                let (head, first) = (Seq(number(row, 1)?), Seq(number(row, 2)?));
                return Ok(Seized { tenure, head, first });
            }
        }
    }

    async fn append(&self, tenure: Tenure, seq: Seq, bytes: &[u8]) -> Result<Appended, Failure> {
        if bytes.len() > ENTRY_BYTES_MAX {
            return Ok(Appended::TooLarge);
        }
        let (Some(Owner { term, writer }), Some(mut beat), Ok(seq)) =
            (Owner::of(tenure), self.beat(tenure), i64::try_from(seq.0))
        else {
            return Ok(Appended::Fenced);
        };
        let shard = &self.shard;
        let mut lane = self.appends.lock().await;
        loop {
            let parameters: Parameters<'_> = &[shard, &term, &writer, &seq, &bytes, &beat];
            match self.ask(&mut lane, statements::APPEND, parameters).await {
                Ok(rows) if !rows.is_empty() => return Ok(Appended::Done),
                Ok(_) => {}
                Err(Failure { kind: Kind::Full, .. }) => return Ok(Appended::Full),
                Err(Failure { kind: Kind::Conflict, .. }) => return Ok(Appended::Fenced),
                Err(failure) => return Err(failure),
            }
            // It did nothing. A late copy of a resolve may have raised the beat in between. Then
            // the tenure goes on, and no append is on its way. The beat that is named next must be
            // as durable as one of a resolve, so it is not read.
            let rows = self.ask(&mut lane, statements::RESOLVE, &[shard, &term, &writer]).await?;
            let Some(row) = rows.first() else { return Ok(Appended::Fenced) };
            beat = column(row, 1)?;
            self.set_beat(tenure, beat);
            if column::<i64>(row, 0)? != seq - 1 {
                return Ok(Appended::Fenced);
            }
        }
    }

    async fn resolve(&self, tenure: Tenure, seq: Seq) -> Result<Resolved, Failure> {
        let Some(Owner { term, writer }) = Owner::of(tenure) else { return Ok(Resolved::Fenced) };
        let mut lane = self.appends.lock().await;
        // A connection whose append may still be under way was closed, so a new one is opened then.
        // A tenure that is only renewed keeps its connection.
        let rows = self.ask(&mut lane, statements::RESOLVE, &[&self.shard, &term, &writer]).await?;
        let Some(row) = rows.first() else { return Ok(Resolved::Fenced) };
        self.set_beat(tenure, column(row, 1)?);
        Ok(if number(row, 0)? >= seq.0 { Resolved::Committed } else { Resolved::Absent })
    }

    async fn trim(&self, tenure: Tenure, before: Seq) -> Result<Trimmed, Failure> {
        let (Some(Owner { term, writer }), Ok(before)) =
            (Owner::of(tenure), i64::try_from(before.0))
        else {
            return Ok(Trimmed::Fenced);
        };
        let shard = &self.shard;
        let mut lane = self.chores.lock().await;
        let rows = self.ask(&mut lane, statements::FIRST, &[shard]).await?;
        let Some(row) = rows.first() else { return Ok(Trimmed::Fenced) };
        let mut first: i64 = column(row, 0)?;
        loop {
            first = before.min(first.saturating_add(TRIM_ENTRIES));
            let rows =
                self.ask(&mut lane, statements::TRIM, &[shard, &term, &writer, &first]).await?;
            if rows.is_empty() {
                return Ok(Trimmed::Fenced);
            }
            if first == before {
                return Ok(Trimmed::Done);
            }
        }
    }

    async fn read(&self, from: Seq, bytes: usize) -> Result<Vec<(Seq, Vec<u8>)>, Failure> {
        let Ok(from) = i64::try_from(from.0) else { return Ok(Vec::new()) };
        let bytes = i64::try_from(bytes).unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX);
        let mut lane = self.chores.lock().await;
        let rows = self.ask(&mut lane, statements::READ, &[&self.shard, &from, &bytes]).await?;
        drop(lane);
        let entry = |row| Ok((Seq(number(row, 0)?), column(row, 1)?));
        rows.iter().map(entry).collect()
    }

    /// Tables do not shrink when entries are removed: VACUUM frees the room within them for further
    /// entries. So once the tables are large, what counts is what the entries need.
    async fn status(&self) -> Result<Status, Failure> {
        let bytes_max = self.server.options.bytes_max;
        let mut lane = self.chores.lock().await;
        let rows = self.ask(&mut lane, statements::STATUS, &[]).await?;
        let row = rows.first().ok_or_else(nothing)?;
        let (on_disk, now) = (number(row, 0)?, number(row, 1)?);
        if on_disk < bytes_max / 2 {
            return Ok(Status { bytes_used: on_disk, bytes_max });
        }
        let mut last = self.server.measured.lock().await;
        let known = (*last).filter(|it| (it.at_ms..it.good_until_ms).contains(&now));
        let needed = if let Some(known) = known {
            known.bytes
        } else {
            let rows = self.ask(&mut lane, statements::USED, &[]).await?;
            let row = rows.first().ok_or_else(nothing)?;
            let (bytes, entries) = (number(row, 0)?, number(row, 1)?);
            let good_until_ms = now + MEASURED_FOR_MS.max(entries / ENTRIES_PER_MS);
            *last = Some(Measured { bytes, at_ms: now, good_until_ms });
            bytes
        };
        Ok(Status { bytes_used: needed.min(on_disk), bytes_max })
    }

    /// Waits for a call no longer than it may take.
    async fn within<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, String> {
        match timeout(self.server.options.call_timeout, call).await {
            Ok(result) => result.map_err(|failure| failure.why),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

fn nothing() -> Failure {
    Failure::unknown("no size was returned".to_owned())
}

/// Returns a value of a row that is never negative.
fn number(row: &Row, index: usize) -> Result<u64, Failure> {
    let value: i64 = column(row, index)?;
    u64::try_from(value).map_err(|_| Failure::unknown(format!("a number is {value}")))
}

impl Remote for PostgresLog {
    async fn answer(&self, call: Call) -> Answer {
        let unreachable = |why| Unreachable { why };
        match call {
            Call::Seize { at_least } => {
                Answer::Seized(self.within(self.seize(at_least)).await.map_err(unreachable))
            }
            Call::Append { tenure, seq, bytes } => {
                let appended = self.within(self.append(tenure, seq, &bytes)).await;
                Answer::Appended(appended.unwrap_or(Appended::Unknown))
            }
            Call::Resolve { tenure, seq } => {
                let resolved = self.within(self.resolve(tenure, seq)).await;
                Answer::Resolved(resolved.unwrap_or(Resolved::Unknown))
            }
            Call::Read { from, bytes } => {
                Answer::Read(self.within(self.read(from, bytes)).await.map_err(unreachable))
            }
            Call::Trim { tenure, before } => {
                let trimmed = self.within(self.trim(tenure, before)).await;
                Answer::Trimmed(trimmed.unwrap_or(Trimmed::Unknown))
            }
            Call::Status => Answer::Status(self.within(self.status()).await.map_err(unreachable)),
        }
    }

    fn target_bytes(&self) -> usize {
        TARGET_BYTES
    }
}
