//! The registry on PostgreSQL: what each call changes, and what its answer means.
//!
//! A session is a row whose *beat* rises with each renewal. Whether it has ended is decided in
//! `beats`. Then its row is removed, if it still has that beat, and the rows of what it owned go
//! with it. So it learns of its end, and does not come back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::remote::records::{
    in_order, meta_bytes, node_bytes, own_bytes, read_meta, read_own, target_bytes,
};
use crate::remote::{RemoteRegistry, Seen, whole_ttl};
use crate::{
    Instance, Meta, NodeRecord, OwnRecord, RegistryAnswer, RegistryCall, ShardNumber, View,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::postgres::beats::{Beat, Beats};
use crate::postgres::failure::{Failure, Kind};
use crate::postgres::lane::Lane;
use crate::postgres::options::ConnectError;
use crate::postgres::registry_sql;
use crate::postgres::rows::{Owner, Record};
use crate::postgres::server::{Postgres, Server, column};
use crate::postgres::session::{Parameters, Session};
use crate::postgres::statements::Sql;

/// How often a record is read and changed, until it does not change in between.
const OWN_TRIES: u32 = 16;

/// What tells the time that has passed since some moment. It must go on while the machine is
/// asleep, as `CLOCK_BOOTTIME` does.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The registry of an installation in a schema of PostgreSQL, as one node sees it. It keeps one
/// connection.
///
/// A renewal takes two statements, or four if others have ended, and is answered within a fifth of
/// the time to live. Everything else takes at most two statements unless there is trouble, and is
/// answered within the time to live, or within
/// [`PostgresOptions::call_timeout`](super::PostgresOptions::call_timeout) if that is less.
///
/// Whether others have ended is judged by what this value has seen, so it must renew or look every
/// third of the time to live. A new one takes everybody for alive for that time. Only renewals and
/// claims remove the rows of who has ended. Records that cannot be read count as not there.
pub struct PostgresRegistry {
    server: Arc<Server>,
    /// In whole seconds.
    ttl: Duration,
    now: Clock,
    lane: tokio::sync::Mutex<Opening>,
    state: Mutex<SessionState>,
}

/// The connection, if there is one, or the task that opens one.
#[derive(Default)]
struct Opening {
    lane: Lane,
    opening: Option<JoinHandle<Result<Session, ConnectError>>>,
}

/// What is remembered between two calls.
#[derive(Default)]
struct SessionState {
    /// The session of this node, which may have ended, and whether it is known to have begun.
    session: Option<(Instance, bool)>,
    beats: Beats,
}

impl PostgresRegistry {
    /// The registry for sessions of this time to live, which is rounded up to whole seconds, at
    /// least 2. Asks nothing yet.
    #[must_use]
    pub fn new(postgres: &Postgres, session_ttl: Duration, now: Clock) -> Self {
        Self {
            server: Arc::clone(&postgres.server),
            ttl: whole_ttl(session_ttl),
            now,
            lane: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> Option<Instance> {
        self.state().session.map(|(instance, _)| instance)
    }

    /// How long all of a renewal may take.
    fn renewal(&self) -> Duration {
        self.ttl / 5
    }

    /// How long any other call may take.
    fn deadline(&self) -> Duration {
        self.server.options.call_timeout.min(self.ttl)
    }

    /// Runs a statement. It is sent only once.
    ///
    /// Connecting goes on when the caller has gone, so that it comes to an end even if it
    /// takes longer than a renewal may take.
    async fn ask_once(&self, sql: Sql, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        let limit = self.server.options.connect_timeout;
        let Opening { lane, opening } = &mut *self.lane.lock().await;
        if !lane.is_open() {
            let task = opening.get_or_insert_with(|| {
                let server = Arc::clone(&self.server);
                tokio::spawn(async move { server.open(limit).await })
            });
            let opened = task.await;
            *opening = None;
            let opened = opened.map_err(|error| Failure::unknown(error.to_string()))?;
            lane.admit(opened.map_err(|error| Failure::unknown(error.to_string()))?).await?;
        }
        lane.ask(&self.server, limit, sql, parameters).await
    }

    /// Runs a statement that may be carried out twice. If the connection that there was has failed,
    /// another one is tried.
    async fn ask(&self, sql: Sql, parameters: Parameters<'_>) -> Result<Vec<Row>, Failure> {
        let is_new = self.lane.lock().await.lane.is_new();
        match self.ask_once(sql, parameters).await {
            Err(failure) if failure.kind == Kind::Unknown && !is_new => {
                self.ask_once(sql, parameters).await
            }
            result => result,
        }
    }

    /// The second node changes the row too, so that its answer is as durable as a commit.
    async fn found(&self, meta: &Meta) -> Result<RegistryAnswer, Failure> {
        let rows = self.ask(registry_sql::FOUND, &[&meta_bytes(meta)]).await?;
        let body: Option<Vec<u8>> = rows.first().map(|row| column(row, 0)).transpose()?;
        let there = body.and_then(|body| read_meta(&body)).map(RegistryAnswer::Meta);
        there.ok_or_else(|| Failure::unknown("the record of the cluster is malformed".to_owned()))
    }

    /// The row is written as it is, so that the answer is as durable as a commit.
    async fn find(&self) -> Result<Option<Vec<u8>>, Failure> {
        let rows = self.ask(registry_sql::FIND, &[]).await?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    /// What is there is read first, as in [`Self::own`].
    async fn amend(&self, meta: &Meta, instead_of: &Meta) -> Result<RegistryAnswer, Failure> {
        let mut last = Failure::unknown("others change the record all the time".to_owned());
        let mut may_be_done = false;
        for _ in 0..OWN_TRIES {
            let Some(body) = self.find().await? else { return Ok(RegistryAnswer::Unfounded) };
            let there = read_meta(&body);
            if there.as_ref() != Some(instead_of) {
                let is_done = may_be_done && there.as_ref() == Some(meta);
                return Ok(if is_done { RegistryAnswer::Done } else { RegistryAnswer::Changed });
            }
            match self.ask_once(registry_sql::AMEND, &[&meta_bytes(meta), &body]).await {
                Ok(rows) if !rows.is_empty() => return Ok(RegistryAnswer::Done),
                Ok(_) | Err(Failure { kind: Kind::Conflict, .. }) => {}
                Err(failure) if failure.kind == Kind::Unknown => {
                    may_be_done = true;
                    last = failure;
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(last)
    }

    async fn announce(&self, node: &NodeRecord) -> Result<RegistryAnswer, Failure> {
        let (instance, body) = (node.instance.to_string(), node_bytes(node));
        let known = self.state().session;
        if known == Some((node.instance, true)) {
            let rows = self.ask(registry_sql::DESCRIBE, &[&instance, &body]).await?;
            let answer = rows.first().map(|_| RegistryAnswer::Done);
            return Ok(answer.unwrap_or(RegistryAnswer::SessionEnded));
        }
        self.state().session = Some((node.instance, false));
        let ttl = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX);
        self.ask(registry_sql::OPEN, &[&instance, &body, &ttl]).await?;
        self.state().session = Some((node.instance, true));
        Ok(RegistryAnswer::Done)
    }

    /// Renews the session. Returns whether it still lived.
    async fn beat(&self, instance: Instance) -> Result<bool, Failure> {
        let rows = self.ask(registry_sql::BEAT, &[&instance.to_string()]).await?;
        Ok(!rows.is_empty())
    }

    async fn renew(&self) -> Result<RegistryAnswer, Failure> {
        let Some(instance) = self.session() else { return Ok(RegistryAnswer::SessionEnded) };
        if !self.beat(instance).await? {
            return Ok(RegistryAnswer::SessionEnded);
        }
        self.state().session = Some((instance, true));
        let (mut view, ended) = self.read().await?;
        if !ended.is_empty() {
            // Some of them may come back at the last moment, which the next reading shows.
            self.remove(&ended).await?;
            (view, _) = self.read().await?;
        }
        Ok(RegistryAnswer::View(view))
    }

    /// Removes the sessions that still have these beats, with what they own.
    async fn remove(&self, ended: &[Beat]) -> Result<(), Failure> {
        let instances: Vec<String> = ended.iter().map(|it| it.instance.to_string()).collect();
        let beats: Vec<i64> = ended.iter().map(|it| it.count).collect();
        self.ask(registry_sql::REMOVE, &[&instances, &beats]).await?;
        Ok(())
    }

    /// Reads everything, and returns it with the sessions that have ended, which are left out.
    async fn read(&self) -> Result<(View, Vec<Beat>), Failure> {
        let asked = (self.now)();
        let rows = self.ask(registry_sql::EVERYTHING, &[]).await?;
        let answered = (self.now)();
        let records = rows.iter().map(Record::read).collect::<Result<Vec<_>, _>>()?;
        let beats = records.iter().filter_map(Record::beat).collect::<Vec<_>>();
        let mut state = self.state();
        state.beats.observe(asked, answered, &beats);
        let has_ended = |it: &&Beat| state.beats.has_ended(it.instance, it.count);
        let ended: Vec<Beat> = beats.iter().filter(has_ended).copied().collect();
        let lives = |instance| !ended.iter().any(|beat| beat.instance == instance);
        let (mut view, mut owners) = (View::default(), Vec::new());
        for record in records {
            match record {
                Record::Meta(meta) => view.meta = meta,
                Record::Session(beat, node) if lives(beat.instance) => view.nodes.extend(node),
                Record::Own(instance, owner) if lives(instance) => owners.extend(owner),
                Record::Session(..) | Record::Own(..) => {}
                Record::Drained(name) => view.drained.extend(name),
                Record::Target(target) => view.targets.extend(target),
            }
        }
        Ok((in_order(view, owners), ended))
    }

    /// What is there is read first: it may have been written in other words by a newer node, so its
    /// bytes are compared. If a change was not answered, it may have been carried out, which the
    /// next reading shows. That it is durable is found out by a commit of its own.
    ///
    /// What must be true of the cluster is compared too.
    async fn own(
        &self,
        shard: ShardNumber,
        (record, instead_of): (Option<OwnRecord>, Option<OwnRecord>),
        seen: Seen<'_>,
    ) -> Result<RegistryAnswer, Failure> {
        let Some(session) = self.session() else { return Ok(RegistryAnswer::SessionEnded) };
        let (shard, mine) = (i32::from(shard), session.to_string());
        let mut last = Failure::unknown("others change the record all the time".to_owned());
        let mut may_be_done = false;
        for _ in 0..OWN_TRIES {
            let rows = self.ask(registry_sql::OWNER, &[&shard, &mine]).await?;
            let row = rows.first();
            if row.is_none_or(|row| !column(row, 0).unwrap_or(false)) {
                return Ok(RegistryAnswer::SessionEnded);
            }
            let owner = row.map(Owner::read).transpose()?.flatten();
            let has_ended = |it: &Owner| self.state().beats.has_ended(it.instance, it.beat);
            let (ended, owner) = match owner {
                Some(owner) if has_ended(&owner) => (Some(owner), None),
                owner => (None, owner),
            };
            let there = owner.as_ref().and_then(|owner| read_own(&owner.body));
            if there != instead_of {
                let is_mine = owner.as_ref().is_none_or(|owner| owner.instance == session);
                let is_done = may_be_done && there == record && is_mine;
                let is_done = is_done && self.beat(session).await?;
                return Ok(if is_done { RegistryAnswer::Done } else { RegistryAnswer::Changed });
            }
            let meta: Option<Vec<u8>> = row.map(|row| column(row, 4)).transpose()?.flatten();
            let there = meta.as_ref().and_then(|body| read_meta(body));
            if !seen.allows(there.as_ref()) {
                return Ok(RegistryAnswer::Changed);
            }
            if let Some(Owner { instance, beat, .. }) = ended {
                self.remove(&[Beat { instance, count: beat, ttl: self.ttl }]).await?;
                continue;
            }
            let meta = seen.is_compared().then_some(&meta);
            match self.change((shard, &mine), owner.as_ref(), record.as_ref(), meta).await {
                Ok(true) => return Ok(RegistryAnswer::Done),
                // Without a session, or with a conflict, the next reading tells.
                Ok(false) | Err(Failure { kind: Kind::Conflict, .. }) => {}
                Err(failure) if failure.kind == Kind::Unknown => {
                    may_be_done = true;
                    last = failure;
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(last)
    }

    /// Changes the record of a shard if it has not changed, and neither has that of the
    /// cluster, if that was read for a claim. Returns whether it was.
    async fn change(
        &self,
        (shard, mine): (i32, &String),
        owner: Option<&Owner>,
        record: Option<&OwnRecord>,
        meta: Option<&Option<Vec<u8>>>,
    ) -> Result<bool, Failure> {
        let body = record.map(own_bytes);
        let rows = match (owner, &body) {
            (None, None) => return Ok(true),
            (None, Some(body)) => match meta {
                Some(meta) => {
                    self.ask_once(registry_sql::CLAIM, &[&shard, mine, body, meta]).await?
                }
                None => self.ask_once(registry_sql::PUT_BACK, &[&shard, mine, body]).await?,
            },
            (Some(owner), Some(body)) => {
                let instance = owner.instance.to_string();
                let parameters: Parameters<'_> = &[&shard, mine, body, &instance, &owner.body];
                self.ask_once(registry_sql::REPLACE, parameters).await?
            }
            (Some(owner), None) => {
                let instance = owner.instance.to_string();
                self.ask_once(registry_sql::RELEASE, &[&shard, mine, &instance, &owner.body])
                    .await?
            }
        };
        Ok(!rows.is_empty())
    }

    async fn apply(&self, call: RegistryCall) -> Result<RegistryAnswer, Failure> {
        match call {
            RegistryCall::Found(meta) => self.found(&meta).await,
            RegistryCall::Find => {
                let Some(body) = self.find().await? else { return Ok(RegistryAnswer::Unfounded) };
                let malformed =
                    || Failure::unknown("the record of the cluster is malformed".into());
                read_meta(&body).map(RegistryAnswer::Meta).ok_or_else(malformed)
            }
            RegistryCall::Amend { meta, instead_of } => self.amend(&meta, &instead_of).await,
            RegistryCall::Announce(node) => self.announce(&node).await,
            RegistryCall::Renew => self.renew().await,
            RegistryCall::Look => {
                let (view, _) = self.read().await?;
                Ok(RegistryAnswer::View(view))
            }
            RegistryCall::Claim { shard, record, meta } => {
                self.own(shard, (Some(record), None), Seen::Cluster(meta.as_ref())).await
            }
            RegistryCall::Own { shard, record, instead_of } => {
                self.own(shard, (record, instead_of), Seen::Anything).await
            }
            RegistryCall::End(instance) => {
                self.ask(registry_sql::END, &[&instance.to_string()]).await?;
                Ok(RegistryAnswer::Done)
            }
            RegistryCall::Drain { name, drains } => {
                let query = if drains { registry_sql::DRAIN } else { registry_sql::UNDRAIN };
                self.ask(query, &[&name.as_bytes()]).await?;
                Ok(RegistryAnswer::Done)
            }
            RegistryCall::Target { shard, node } => {
                let shard = i32::from(shard);
                match node {
                    Some(node) => {
                        self.ask(registry_sql::TARGET, &[&shard, &target_bytes(&node)]).await?
                    }
                    None => self.ask(registry_sql::UNTARGET, &[&shard]).await?,
                };
                Ok(RegistryAnswer::Done)
            }
        }
    }
}

impl RemoteRegistry for PostgresRegistry {
    async fn answer(&self, call: RegistryCall) -> RegistryAnswer {
        let limit = match call {
            RegistryCall::Renew => self.renewal(),
            _ => self.deadline(),
        };
        match timeout(limit, self.apply(call)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => RegistryAnswer::Unreachable(failure.why),
            Err(_) => RegistryAnswer::Unreachable("no answer in time".to_owned()),
        }
    }
}
