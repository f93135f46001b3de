//! The log of one shard on etcd: what each call changes, and what its answer means.
//!
//! An append without an answer may still come. To find out what became of it, the same transaction
//! is sent again: of all copies at most one is carried out, since each compares the last entry.
//! Without its bytes, or if it is not the next entry, the log is read. If the entry is not there, a
//! *bar* in the fence is raised, and no copy that was sent before can take effect.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::remote::Remote;
use pinpriq_store::ledger::{
    Answer, Appended, Call, Resolved, Seized, Seq, Status, Tenure, Term, Trimmed, Unreachable,
    Writer,
};
use prost::bytes::Bytes;

use crate::etcd::client::Etcd;
use crate::etcd::keys::{Fence, Keys, decimal, number};
use crate::etcd::messages::{KeyValue, TxnRequest, TxnResponse};
use crate::etcd::transaction::{
    delete, has, key_read, keys_read, one, put, range, reading, unchanged,
};
use crate::etcd::trouble::{Trouble, Verdict};

/// How large entries should be, in bytes.
const TARGET_BYTES: usize = 64 << 10;

/// The most entries in a piece.
const PIECE_ENTRIES_MAX: usize = 64;

/// The log of one shard on a cluster of etcd, for one writer. It comes from [`Etcd::remote`].
///
/// Each call takes one request to the cluster, but a seize, a trim and raising a bar take two, and
/// a long read takes one for each 64 entries. Renewing a tenure only reads. A call whose member
/// does not answer is repeated with the next one, except an append.
pub struct EtcdRemote {
    etcd: Etcd,
    keys: Keys,
    writer: Writer,
    state: Mutex<WriterState>,
    /// The bytes that were appended since the last status.
    uncounted_bytes: AtomicU64,
}

/// What is remembered between two calls.
#[derive(Default)]
struct WriterState {
    /// The fence with the highest bar that this remote has raised.
    fence: Fence,
    /// The append that has no answer.
    unanswered: Option<Entry>,
}

/// An entry as it was sent.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    tenure: Tenure,
    seq: Seq,
    bytes: Arc<[u8]>,
}

/// What the answer to an append says of all its copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// This copy has added the entry.
    Added,
    /// The entry is in the log already.
    AlreadyThere,
    /// The tenure goes on, but the entry is not in the log.
    NotThere,
    /// The tenure has ended.
    Fenced,
}

impl Remote for EtcdRemote {
    async fn answer(&self, call: Call) -> Answer {
        let silent = || Trouble::Silent.unreachable();
        let etcd = &self.etcd;
        match call {
            Call::Seize { at_least } => {
                let seized = etcd.within_deadline(self.seize(at_least)).await;
                Answer::Seized(seized.unwrap_or_else(|| Err(silent())))
            }
            Call::Append { tenure, seq, bytes } => {
                let entry = Entry { tenure, seq, bytes };
                let appended = etcd.within_deadline(self.append(entry)).await;
                Answer::Appended(appended.unwrap_or(Appended::Unknown))
            }
            Call::Resolve { tenure, seq } => {
                let resolved = etcd.within_deadline(self.resolve(tenure, seq)).await;
                Answer::Resolved(resolved.unwrap_or(Resolved::Unknown))
            }
            Call::Read { from, bytes } => {
                let read = etcd.within_deadline(self.read(from, bytes)).await;
                Answer::Read(read.unwrap_or_else(|| Err(silent())))
            }
            Call::Trim { tenure, before } => {
                let trimmed = etcd.within_deadline(self.trim(tenure, before)).await;
                Answer::Trimmed(trimmed.unwrap_or(Trimmed::Unknown))
            }
            Call::Status => {
                let status = etcd.within_deadline(self.status()).await;
                Answer::Status(status.unwrap_or_else(|| Err(silent())))
            }
        }
    }

    fn target_bytes(&self) -> usize {
        TARGET_BYTES
    }
}

impl EtcdRemote {
    pub(crate) fn new(etcd: Etcd, shard: u16, writer: Writer) -> Self {
        let keys = Keys::new(&etcd.options().name, shard);
        let (state, uncounted_bytes) = (Mutex::default(), AtomicU64::new(0));
        Self { etcd, keys, writer, state, uncounted_bytes }
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn seize(&self, at_least: Term) -> Result<Seized, Unreachable> {
        loop {
            match self.seize_once(at_least).await {
                Ok(Some(seized)) => return Ok(seized),
                Ok(None) => {}
                Err(trouble) => return Err(trouble.unreachable()),
            }
        }
    }

    /// Returns nothing if another writer was faster, or an earlier copy of this.
    async fn seize_once(&self, at_least: Term) -> Result<Option<Seized>, Trouble> {
        let keys = &self.keys;
        let found = self.etcd.transact(&reading(vec![one(keys.fence())])).await?;
        let (mut last, mut revision) = (Term(0), 0);
        if let Some(pair) = key_read(&found, 0) {
            let fence = Fence::parse(&pair.value).ok_or(Trouble::Malformed("the fence"))?;
            (last, revision) = (fence.tenure.term, pair.mod_revision);
        }
        let next = last.0.checked_add(1).ok_or(Trouble::Malformed("the last term"))?;
        let tenure = Tenure { term: Term(next.max(at_least.0)), writer: self.writer };
        let fence = Fence { tenure, bar: 0 };
        let mut success = vec![put(keys.fence(), fence.value())];
        if revision == 0 {
            success.extend([put(keys.head(), decimal(0)), put(keys.first(), decimal(1))]);
        }
        let reads = success.len();
        success.extend([one(keys.head()), one(keys.first())]);
        let compare = vec![unchanged(keys.fence(), revision)];
        let request = TxnRequest { compare, success, failure: Vec::new() };
        let response = self.etcd.transact(&request).await?;
        if !response.succeeded {
            return Ok(None);
        }
        let head = number_read(&response, reads).ok_or(Trouble::Malformed("the head"))?;
        let first = number_read(&response, reads + 1);
        let first = first.ok_or(Trouble::Malformed("the first entry"))?;
        // No append of an earlier tenure can come now.
        *self.state() = WriterState { fence, unanswered: None };
        Ok(Some(Seized { tenure, head: Seq(head), first: Seq(first) }))
    }

    async fn append(&self, entry: Entry) -> Appended {
        let Some(request) = self.appending(&entry) else { return Appended::Fenced };
        let is_again = self.state().unanswered.replace(entry.clone()).as_ref() == Some(&entry);
        let appended = match self.etcd.transact_once(&request).await {
            Ok(response) => match fate(&response, &entry) {
                Fate::Added => Appended::Done,
                Fate::AlreadyThere if is_again => Appended::Done,
                Fate::NotThere if is_again => Appended::Unknown,
                _ => Appended::Fenced,
            },
            // This copy is not in the log, but an earlier one may be.
            Err(_) if is_again => Appended::Unknown,
            Err(trouble) => match trouble.verdict() {
                Some(Verdict::Full) => self.when_full(&entry).await,
                Some(Verdict::TooLarge) => Appended::TooLarge,
                None => Appended::Unknown,
            },
        };
        if appended != Appended::Unknown {
            self.forget(&entry);
        }
        if appended == Appended::Done {
            self.count(&entry);
        }
        appended
    }

    /// etcd says that it has no room also of the first transaction that exceeds its quota, which it
    /// has carried out. Either way, no copy is on its way now, and what is read stays so.
    async fn when_full(&self, entry: &Entry) -> Appended {
        let keys = &self.keys;
        let reads = vec![one(keys.fence()), one(keys.head()), one(keys.entry(entry.seq))];
        let Ok(response) = self.etcd.transact(&reading(reads)).await else {
            return Appended::Unknown;
        };
        match fate_read(&response, entry) {
            Fate::Added | Fate::AlreadyThere => Appended::Done,
            Fate::NotThere => Appended::Full,
            // It may have been added before the tenure has ended.
            Fate::Fenced => Appended::Unknown,
        }
    }

    /// Notes that an append has its answer.
    fn forget(&self, entry: &Entry) {
        self.state().unanswered.take_if(|unanswered| unanswered == entry);
    }

    fn count(&self, entry: &Entry) {
        self.uncounted_bytes.fetch_add(entry.bytes.len() as u64, Ordering::Relaxed);
    }

    /// The transaction that appends an entry, with the highest bar that is known. There is no entry
    /// before the first one.
    fn appending(&self, entry: &Entry) -> Option<TxnRequest> {
        let keys = &self.keys;
        let last = entry.seq.0.checked_sub(1)?;
        let known = self.state().fence;
        let bar = if known.tenure == entry.tenure { known.bar } else { 0 };
        let fence = Fence { tenure: entry.tenure, bar };
        let at = keys.entry(entry.seq);
        Some(TxnRequest {
            compare: vec![has(keys.fence(), fence.value()), has(keys.head(), decimal(last))],
            success: vec![
                put(at.clone(), Bytes::from_owner(Arc::clone(&entry.bytes))),
                put(keys.head(), decimal(entry.seq.0)),
            ],
            failure: vec![one(keys.fence()), one(keys.head()), one(at)],
        })
    }

    async fn resolve(&self, tenure: Tenure, seq: Seq) -> Resolved {
        let unanswered = self.state().unanswered.clone();
        let asked = unanswered.filter(|entry| entry.tenure == tenure && entry.seq == seq);
        if let Some(entry) = asked
            && let Some(request) = self.appending(&entry)
        {
            let found = match self.etcd.transact(&request).await {
                Ok(response) => fate(&response, &entry),
                Err(trouble) if trouble.verdict() == Some(Verdict::Full) => {
                    match self.when_full(&entry).await {
                        Appended::Done => Fate::AlreadyThere,
                        // An earlier copy may still be on its way.
                        _ => return Resolved::Unknown,
                    }
                }
                Err(_) => return Resolved::Unknown,
            };
            match found {
                Fate::Added | Fate::AlreadyThere => {
                    self.forget(&entry);
                    self.count(&entry);
                    return Resolved::Committed;
                }
                Fate::Fenced => {
                    self.forget(&entry);
                    return Resolved::Fenced;
                }
                Fate::NotThere => {}
            }
        }
        loop {
            match self.raise_bar(tenure, seq).await {
                Ok(Bar::NotNeeded) => return Resolved::Committed,
                Ok(Bar::Raised { head }) if seq <= head => return Resolved::Committed,
                Ok(Bar::Raised { .. }) => return Resolved::Absent,
                Ok(Bar::Fenced) => return Resolved::Fenced,
                Ok(Bar::Moved) => {}
                Err(_) => return Resolved::Unknown,
            }
        }
    }

    /// Makes sure that no append of this entry arrives late that this remote sent before.
    /// If the entry is in the log, none can. What is read was agreed on by a majority after it was
    /// asked for, and is not lost again.
    async fn raise_bar(&self, tenure: Tenure, seq: Seq) -> Result<Bar, Trouble> {
        let keys = &self.keys;
        let found = self.etcd.transact(&reading(vec![one(keys.fence()), one(keys.head())])).await?;
        let fence = key_read(&found, 0).and_then(|pair| Fence::parse(&pair.value));
        let Some(fence) = fence.filter(|fence| fence.tenure == tenure) else {
            return Ok(Bar::Fenced);
        };
        let head = number_read(&found, 1).ok_or(Trouble::Malformed("the head"))?;
        if seq.0 <= head {
            let is_there = |entry: &mut Entry| entry.tenure == tenure && entry.seq.0 <= head;
            self.state().unanswered.take_if(is_there);
            return Ok(Bar::NotNeeded);
        }
        let bar = fence.bar + 1;
        let raised = Fence { bar, ..fence };
        let request = TxnRequest {
            compare: vec![has(keys.fence(), fence.value())],
            success: vec![put(keys.fence(), raised.value()), one(keys.head())],
            failure: Vec::new(),
        };
        let response = self.etcd.transact(&request).await?;
        if !response.succeeded {
            return Ok(Bar::Moved);
        }
        let head = number_read(&response, 1).ok_or(Trouble::Malformed("the head"))?;
        let mut state = self.state();
        state.fence = raised;
        state.unanswered.take_if(|unanswered| unanswered.tenure == tenure);
        Ok(Bar::Raised { head: Seq(head) })
    }

    async fn trim(&self, tenure: Tenure, before: Seq) -> Trimmed {
        loop {
            match self.trim_once(tenure, before).await {
                Ok(Some(trimmed)) => return trimmed,
                Ok(None) => {}
                Err(_) => return Trimmed::Unknown,
            }
        }
    }

    /// Returns nothing if the log has changed meanwhile, or by an earlier copy of this.
    async fn trim_once(&self, tenure: Tenure, before: Seq) -> Result<Option<Trimmed>, Trouble> {
        let keys = &self.keys;
        let reads = vec![one(keys.fence()), one(keys.head()), one(keys.first())];
        let found = self.etcd.transact(&reading(reads)).await?;
        if tenure_read(&found, 0) != Some(tenure) {
            return Ok(Some(Trimmed::Fenced));
        }
        let fence = key_read(&found, 0).map_or_else(Bytes::new, |pair| pair.value.clone());
        let head = number_read(&found, 1).ok_or(Trouble::Malformed("the head"))?;
        let first = number_read(&found, 2).ok_or(Trouble::Malformed("the first entry"))?;
        let before = Seq(before.0.min(head.saturating_add(1)));
        if before.0 <= first {
            return Ok(Some(Trimmed::Done));
        }
        let request = TxnRequest {
            compare: vec![has(keys.fence(), fence), has(keys.first(), decimal(first))],
            success: vec![
                put(keys.first(), decimal(before.0)),
                delete(keys.entry(Seq(first)), keys.entry(before)),
            ],
            failure: Vec::new(),
        };
        let response = self.etcd.transact(&request).await?;
        Ok(response.succeeded.then_some(Trimmed::Done))
    }

    /// A member counts an entry some 100 ms after it was added, so what was appended since the last
    /// status is counted here too.
    async fn status(&self) -> Result<Status, Unreachable> {
        let uncounted = self.uncounted_bytes.load(Ordering::Relaxed);
        let status = self.etcd.status().await.map_err(|trouble| trouble.unreachable())?;
        self.uncounted_bytes.fetch_sub(uncounted, Ordering::Relaxed);
        Ok(Status { bytes_used: status.bytes_used + uncounted, ..status })
    }

    /// See [`pinpriq_store::ledger::Call::Read`].
    async fn read(&self, from: Seq, bytes: usize) -> Result<Vec<(Seq, Vec<u8>)>, Unreachable> {
        let (mut entries, mut total) = (Vec::new(), 0);
        let (mut next, mut most) = (from, PIECE_ENTRIES_MAX);
        // Most entries have the size that was asked for.
        let mut limit = (bytes / TARGET_BYTES + 1).min(most);
        loop {
            let piece = match self.piece(next, limit).await {
                Ok(piece) => piece,
                Err(trouble) if trouble.is_too_much() && limit > 1 => {
                    limit /= 2;
                    most = limit;
                    continue;
                }
                Err(trouble) if entries.is_empty() => return Err(trouble.unreachable()),
                Err(_) => return Ok(entries),
            };
            let is_last = piece.len() < limit;
            for (seq, entry) in piece {
                if seq != next {
                    return Ok(entries);
                }
                next = Seq(seq.0 + 1);
                total += entry.len();
                entries.push((seq, Vec::from(entry)));
                if total >= bytes {
                    return Ok(entries);
                }
            }
            if is_last {
                return Ok(entries);
            }
            limit = (limit * 2).min(most);
        }
    }

    /// The entries from `from` on, at most `limit`. None if `from` was trimmed.
    async fn piece(&self, from: Seq, limit: usize) -> Result<Vec<(Seq, Bytes)>, Trouble> {
        let entries = range(self.keys.entry(from), self.keys.end_of_entries(), limit);
        let request = reading(vec![one(self.keys.first()), entries]);
        let response = self.etcd.transact(&request).await?;
        let Some(first) = key_read(&response, 0) else { return Ok(Vec::new()) };
        let first = number(&first.value).ok_or(Trouble::Malformed("the first entry"))?;
        if from.0 < first {
            return Ok(Vec::new());
        }
        let entry = |pair: &KeyValue| {
            let seq = self.keys.seq(&pair.key).ok_or(Trouble::Malformed("the key of an entry"))?;
            Ok((seq, pair.value.clone()))
        };
        keys_read(&response, 1).iter().map(entry).collect()
    }
}

/// What became of a bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bar {
    /// The entry is in the log.
    NotNeeded,
    /// It was raised, when this was the last entry.
    Raised { head: Seq },
    /// The fence has changed meanwhile.
    Moved,
    /// The tenure has ended.
    Fenced,
}

/// Reads the answer to the transaction that appends.
fn fate(response: &TxnResponse, entry: &Entry) -> Fate {
    if response.succeeded { Fate::Added } else { fate_read(response, entry) }
}

/// Tells the fate of an entry by the fence, the head and the entry that were read.
fn fate_read(response: &TxnResponse, entry: &Entry) -> Fate {
    if tenure_read(response, 0) != Some(entry.tenure) {
        return Fate::Fenced;
    }
    let has_come = number_read(response, 1).is_some_and(|head| head >= entry.seq.0);
    let is_same = key_read(response, 2).is_some_and(|pair| pair.value[..] == entry.bytes[..]);
    if has_come && is_same { Fate::AlreadyThere } else { Fate::NotThere }
}

/// The tenure in the fence that was read at this place.
fn tenure_read(response: &TxnResponse, place: usize) -> Option<Tenure> {
    let fence = key_read(response, place).and_then(|pair| Fence::parse(&pair.value));
    fence.map(|fence| fence.tenure)
}

/// The number that was read at this place.
fn number_read(response: &TxnResponse, place: usize) -> Option<u64> {
    key_read(response, place).and_then(|pair| number(&pair.value))
}
