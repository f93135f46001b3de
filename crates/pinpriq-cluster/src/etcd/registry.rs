//! The registry on etcd: what each call changes, and what its answer means.
//!
//! A session is a lease, and the records of the node hang on it. etcd removes them at once when the
//! lease ends. A call that changes something compares that the record of the node still hangs on
//! its lease. Copies of a call that arrive late change records, and never a log.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::remote::records::{
    in_order, meta_bytes, node_bytes, own_bytes, read_meta, read_node, read_own, read_target,
    target_bytes,
};
use crate::remote::{RemoteRegistry, Seen, whole_ttl};
use crate::{
    Instance, Meta, NodeRecord, OwnRecord, RegistryAnswer, RegistryCall, ShardNumber, View,
};
use prost::bytes::Bytes;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::etcd::client::Etcd;
use crate::etcd::keys::RegistryKeys;
use crate::etcd::messages::{KeyValue, TxnRequest, TxnResponse};
use crate::etcd::room::RoomNotice;
use crate::etcd::transaction::{
    delete_one, hangs_on, key_read, keys_read, one, put, put_on, range, reading, unchanged,
};
use crate::etcd::trouble::Trouble;

/// The most records of a kind that are read.
const RECORDS_MAX: usize = 1 << 16;

/// How often a record is read and changed, until it does not change in between.
const OWN_TRIES: u32 = 16;

/// How often the first node should compact etcd: see [`EtcdRegistry::upkeep`].
pub const COMPACT_EVERY: Duration = Duration::from_secs(30);

/// The registry of an installation on a cluster of etcd, as one node sees it.
///
/// A renewal takes two requests, and is answered within a fifth of the time to live. Everything
/// else takes at most two requests unless there is trouble, and is answered within the time to
/// live, or within [`EtcdOptions::deadline`](super::EtcdOptions::deadline) if that is less. A
/// member that is silent is left for the next one early enough for that.
///
/// Records that cannot be read count as not there.
pub struct EtcdRegistry {
    etcd: Etcd,
    keys: RegistryKeys,
    /// In whole seconds.
    ttl: Duration,
    session: Mutex<Option<Session>>,
    standing: Arc<Standing>,
}

/// What this node is among those that live, as its last renewal has shown.
#[derive(Default)]
struct Standing {
    is_first: AtomicBool,
    has_session: AtomicBool,
}

/// The session of this node, which may have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Session {
    instance: Instance,
    lease: i64,
    /// Whether its record is known to have been there.
    is_open: bool,
}

impl EtcdRegistry {
    /// The registry for sessions of this time to live, which is rounded up to whole seconds, at
    /// least 2. Asks nothing yet.
    #[must_use]
    pub fn new(etcd: &Etcd, session_ttl: Duration) -> Self {
        Self {
            etcd: etcd.clone(),
            keys: RegistryKeys::new(&etcd.options().name),
            ttl: whole_ttl(session_ttl),
            session: Mutex::default(),
            standing: Arc::default(),
        }
    }

    /// Returns what keeps room in etcd, once in each `period` (see [`COMPACT_EVERY`]). The first
    /// one of the nodes that live, as its last renewal has shown, compacts it. If etcd has reached
    /// its own quota, that node also has it take changes again, and so does one that can open no
    /// session because of that. `tell` hears what the operator should know. Errors are left to the
    /// next time. It is to be spawned, and ends after the registry is dropped.
    pub fn upkeep(
        &self,
        period: Duration,
        tell: impl Fn(RoomNotice) + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (etcd, standing) = (self.etcd.clone(), Arc::downgrade(&self.standing));
        async move {
            let mut ticks = interval(period.max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks.tick().await;
            let mut told = None;
            loop {
                ticks.tick().await;
                let Some(standing) = standing.upgrade() else { return };
                let is_first = standing.is_first.load(Ordering::Relaxed);
                let has_session = standing.has_session.load(Ordering::Relaxed);
                drop(standing);
                // They tell etcd's own quota, and whether it was reached.
                etcd.ask_quota().await;
                _ = etcd.status().await;
                let low = etcd.low_quota();
                if let Some(notice) = low.filter(|_| low != told) {
                    tell(notice);
                    told = low;
                }
                if is_first {
                    _ = etcd.compact().await;
                }
                let makes_room = is_first || !has_session;
                if makes_room && etcd.quota().is_met() {
                    _ = etcd.make_room().await.map(|made| made.map(&tell));
                }
            }
        }
    }

    fn session(&self) -> Option<Session> {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_session(&self, session: Session) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// How long all of a renewal may take.
    fn renewal(&self) -> Duration {
        self.ttl / 5
    }

    /// How long any other call may take.
    fn deadline(&self) -> Duration {
        self.etcd.options().deadline.min(self.ttl)
    }

    /// How long one member may take for a part of any other call.
    fn attempt(&self) -> Duration {
        self.etcd.options().attempt.min(self.ttl / 4)
    }

    async fn found(&self, meta: &Meta) -> Result<RegistryAnswer, Trouble> {
        let key = self.keys.meta();
        let request = TxnRequest {
            compare: vec![unchanged(key.clone(), 0)],
            success: vec![put(key.clone(), Bytes::from(meta_bytes(meta)))],
            failure: vec![one(key)],
        };
        let response = self.etcd.transact_within(self.attempt(), &request).await?;
        if response.succeeded {
            return Ok(RegistryAnswer::Meta(meta.clone()));
        }
        let there = key_read(&response, 0).and_then(|pair| read_meta(&pair.value));
        there.map(RegistryAnswer::Meta).ok_or(Trouble::Malformed("the record of the cluster"))
    }

    async fn find(&self) -> Result<RegistryAnswer, Trouble> {
        let reads = reading(vec![one(self.keys.meta())]);
        let found = self.etcd.transact_within(self.attempt(), &reads).await?;
        let Some(pair) = key_read(&found, 0) else { return Ok(RegistryAnswer::Unfounded) };
        let there = read_meta(&pair.value).map(RegistryAnswer::Meta);
        there.ok_or(Trouble::Malformed("the record of the cluster"))
    }

    /// What is there is read first, as in [`Self::own`].
    async fn amend(&self, meta: &Meta, instead_of: &Meta) -> Result<RegistryAnswer, Trouble> {
        let key = self.keys.meta();
        let mut may_be_done = false;
        for _ in 0..OWN_TRIES {
            let reads = reading(vec![one(key.clone())]);
            let found = self.etcd.transact_within(self.attempt(), &reads).await?;
            let Some(pair) = key_read(&found, 0) else { return Ok(RegistryAnswer::Unfounded) };
            let there = read_meta(&pair.value);
            if there.as_ref() != Some(instead_of) {
                let is_done = may_be_done && there.as_ref() == Some(meta);
                return Ok(if is_done { RegistryAnswer::Done } else { RegistryAnswer::Changed });
            }
            let request = TxnRequest {
                compare: vec![unchanged(key.clone(), pair.mod_revision)],
                success: vec![put(key.clone(), Bytes::from(meta_bytes(meta)))],
                failure: Vec::new(),
            };
            match self.etcd.ask(self.attempt(), &request).await {
                Ok(response) if response.succeeded => return Ok(RegistryAnswer::Done),
                Ok(_) => {}
                Err(trouble) if trouble.verdict().is_some() => return Err(trouble),
                Err(_) => may_be_done = true,
            }
        }
        Err(Trouble::Silent)
    }

    async fn announce(&self, node: &NodeRecord) -> Result<RegistryAnswer, Trouble> {
        let session = match self.session() {
            Some(session) if session.instance == node.instance => session,
            _ => {
                let seconds = i64::try_from(self.ttl.as_secs()).unwrap_or(i64::MAX);
                let lease = self.etcd.grant(self.attempt(), seconds).await?;
                Session { instance: node.instance, lease, is_open: false }
            }
        };
        self.set_session(session);
        let key = self.keys.node(session.instance);
        let compare = session.is_open.then(|| hangs_on(key.clone(), session.lease));
        let request = TxnRequest {
            compare: compare.into_iter().collect(),
            success: vec![put_on(session.lease, key, Bytes::from(node_bytes(node)))],
            failure: Vec::new(),
        };
        match self.etcd.transact_within(self.attempt(), &request).await {
            Ok(response) if response.succeeded => {
                self.set_session(Session { is_open: true, ..session });
                Ok(RegistryAnswer::Done)
            }
            Ok(_) => Ok(RegistryAnswer::SessionEnded),
            Err(trouble) if trouble.is_lease_gone() => Ok(RegistryAnswer::SessionEnded),
            Err(trouble) => Err(trouble),
        }
    }

    async fn renew(&self) -> Result<RegistryAnswer, Trouble> {
        let attempt = self.renewal() / 2;
        let Some(session) = self.session() else { return Ok(RegistryAnswer::SessionEnded) };
        if !self.etcd.keep_alive(attempt, session.lease).await? {
            return Ok(RegistryAnswer::SessionEnded);
        }
        let (view, response) = self.read(attempt).await?;
        let key = self.keys.node(session.instance);
        let is_there = |pair: &KeyValue| pair.key == key && pair.lease == session.lease;
        if !keys_read(&response, NODES).iter().any(is_there) {
            return Ok(RegistryAnswer::SessionEnded);
        }
        self.set_session(Session { is_open: true, ..session });
        let first = view.nodes.first().map(|node| node.instance);
        self.standing.is_first.store(first == Some(session.instance), Ordering::Relaxed);
        self.standing.has_session.store(true, Ordering::Relaxed);
        Ok(RegistryAnswer::View(view))
    }

    async fn read(&self, limit: Duration) -> Result<(View, TxnResponse), Trouble> {
        let keys = &self.keys;
        let folder = |name| {
            let (start, end) = keys.folder(name);
            range(start, end, RECORDS_MAX)
        };
        let folders = ["node", "own", "drain", "target"].map(folder);
        let operations = [one(keys.meta())].into_iter().chain(folders).collect();
        let response = self.etcd.transact_within(limit, &reading(operations)).await?;
        let node = |it: &KeyValue| read_node(keys.instance(&it.key)?, &it.value);
        let owner = |it: &KeyValue| Some((keys.shard(&it.key)?, read_own(&it.value)?));
        let drained = |it: &KeyValue| keys.drained(&it.key).map(str::to_owned);
        let target = |it: &KeyValue| Some((keys.target_of(&it.key)?, read_target(&it.value)?));
        let view = View {
            nodes: keys_read(&response, NODES).iter().filter_map(node).collect(),
            owners: Vec::new(),
            drained: keys_read(&response, DRAINED).iter().filter_map(drained).collect(),
            targets: keys_read(&response, TARGETS).iter().filter_map(target).collect(),
            meta: key_read(&response, 0).and_then(|it| read_meta(&it.value)),
        };
        let owners = keys_read(&response, OWNERS).iter().filter_map(owner).collect();
        Ok((in_order(view, owners), response))
    }

    /// What is there is read first: it may have been written in other words by a newer node, so its
    /// revision is compared. If a transaction was not answered, it may have been carried out, which
    /// the next reading shows.
    ///
    /// What must be true of the cluster is compared too.
    async fn own(
        &self,
        shard: ShardNumber,
        (record, instead_of): (Option<OwnRecord>, Option<OwnRecord>),
        seen: Seen<'_>,
    ) -> Result<RegistryAnswer, Trouble> {
        let Some(session) = self.session() else { return Ok(RegistryAnswer::SessionEnded) };
        let (own, node) = (self.keys.own(shard), self.keys.node(session.instance));
        let mut may_be_done = false;
        for _ in 0..OWN_TRIES {
            let reads = vec![one(own.clone()), one(node.clone()), one(self.keys.meta())];
            let reads = reading(reads);
            let found = self.etcd.transact_within(self.attempt(), &reads).await?;
            if key_read(&found, 1).is_none_or(|pair| pair.lease != session.lease) {
                return Ok(RegistryAnswer::SessionEnded);
            }
            let pair = key_read(&found, 0);
            let there = pair.and_then(|pair| read_own(&pair.value));
            if there != instead_of {
                let is_mine = record.is_none() || pair.is_some_and(|it| it.lease == session.lease);
                let is_done = may_be_done && there == record && is_mine;
                return Ok(if is_done { RegistryAnswer::Done } else { RegistryAnswer::Changed });
            }
            let meta = key_read(&found, 2);
            let there = meta.and_then(|pair| read_meta(&pair.value));
            if !seen.allows(there.as_ref()) {
                return Ok(RegistryAnswer::Changed);
            }
            let as_read = |key: &Bytes, pair: Option<&KeyValue>| {
                unchanged(key.clone(), pair.map_or(0, |pair| pair.mod_revision))
            };
            let mut compare = vec![hangs_on(node.clone(), session.lease), as_read(&own, pair)];
            if seen.is_compared() {
                compare.push(as_read(&self.keys.meta(), meta));
            }
            let change = match &record {
                Some(record) => put_on(session.lease, own.clone(), Bytes::from(own_bytes(record))),
                None => delete_one(own.clone()),
            };
            let request = TxnRequest { compare, success: vec![change], failure: Vec::new() };
            match self.etcd.ask(self.attempt(), &request).await {
                Ok(response) if response.succeeded => return Ok(RegistryAnswer::Done),
                Ok(_) => {}
                Err(trouble) if trouble.is_lease_gone() => return Ok(RegistryAnswer::SessionEnded),
                Err(trouble) if trouble.verdict().is_some() => return Err(trouble),
                Err(_) => may_be_done = true,
            }
        }
        Err(Trouble::Silent)
    }

    /// Everything that a node has written hangs on the lease of its record.
    async fn end(&self, instance: Instance) -> Result<RegistryAnswer, Trouble> {
        let key = self.keys.node(instance);
        let reads = reading(vec![one(key.clone())]);
        let found = self.etcd.transact_within(self.attempt(), &reads).await?;
        let there = key_read(&found, 0).map(|pair| pair.lease);
        let own = self.session().filter(|session| session.instance == instance);
        match there.or_else(|| own.map(|session| session.lease)) {
            None => {}
            // No node has written such a record.
            Some(0) => {
                let request = reading(vec![delete_one(key)]);
                self.etcd.transact_within(self.attempt(), &request).await?;
            }
            Some(lease) => self.etcd.revoke(self.attempt(), lease).await?,
        }
        Ok(RegistryAnswer::Done)
    }

    async fn drain(&self, name: &str, drains: bool) -> Result<RegistryAnswer, Trouble> {
        let key = self.keys.drain(name);
        let change = if drains { put(key, Bytes::from_static(MARK)) } else { delete_one(key) };
        // A transaction without a condition.
        self.etcd.transact_within(self.attempt(), &reading(vec![change])).await?;
        Ok(RegistryAnswer::Done)
    }

    async fn target(
        &self,
        shard: ShardNumber,
        node: Option<&str>,
    ) -> Result<RegistryAnswer, Trouble> {
        let key = self.keys.target(shard);
        let change = match node {
            Some(node) => put(key, Bytes::from(target_bytes(node))),
            None => delete_one(key),
        };
        self.etcd.transact_within(self.attempt(), &reading(vec![change])).await?;
        Ok(RegistryAnswer::Done)
    }

    async fn apply(&self, call: RegistryCall) -> Result<RegistryAnswer, Trouble> {
        match call {
            RegistryCall::Found(meta) => self.found(&meta).await,
            RegistryCall::Find => self.find().await,
            RegistryCall::Amend { meta, instead_of } => self.amend(&meta, &instead_of).await,
            RegistryCall::Announce(node) => self.announce(&node).await,
            RegistryCall::Renew => self.renew().await,
            RegistryCall::Look => {
                let (view, _) = self.read(self.attempt()).await?;
                Ok(RegistryAnswer::View(view))
            }
            RegistryCall::Claim { shard, record, meta } => {
                self.own(shard, (Some(record), None), Seen::Cluster(meta.as_ref())).await
            }
            RegistryCall::Own { shard, record, instead_of } => {
                self.own(shard, (record, instead_of), Seen::Anything).await
            }
            RegistryCall::End(instance) => self.end(instance).await,
            RegistryCall::Drain { name, drains } => self.drain(&name, drains).await,
            RegistryCall::Target { shard, node } => self.target(shard, node.as_deref()).await,
        }
    }
}

/// The places of the answers to a reading of everything.
const NODES: usize = 1;
const OWNERS: usize = 2;
const DRAINED: usize = 3;
const TARGETS: usize = 4;

/// The value of a mark.
const MARK: &[u8] = b"{\"v\":1}";

impl RemoteRegistry for EtcdRegistry {
    async fn answer(&self, call: RegistryCall) -> RegistryAnswer {
        let limit = match call {
            RegistryCall::Renew => self.renewal(),
            _ => self.deadline(),
        };
        match timeout(limit, self.apply(call)).await {
            Ok(Ok(answer)) => {
                if answer == RegistryAnswer::SessionEnded {
                    self.standing.is_first.store(false, Ordering::Relaxed);
                    self.standing.has_session.store(false, Ordering::Relaxed);
                }
                answer
            }
            Ok(Err(trouble)) => RegistryAnswer::Unreachable(trouble.why()),
            Err(_) => RegistryAnswer::Unreachable(Trouble::Silent.why()),
        }
    }
}
