//! The parts of a transaction, and what is found in its answer. Nothing here sends anything.

use prost::bytes::Bytes;

use crate::etcd::messages::{
    Compare, CompareTarget, Compared, DeleteRangeRequest, KeyValue, Operation, PutRequest,
    RangeRequest, RequestOp, TxnRequest, TxnResponse,
};

/// Whether a key has this value. A key that is not there has none.
pub(crate) fn has(key: Bytes, value: Bytes) -> Compare {
    compare(CompareTarget::Value, key, Compared::Value(value))
}

/// Whether a key was last changed at this revision, which is 0 if it is not there.
pub(crate) fn unchanged(key: Bytes, revision: i64) -> Compare {
    compare(CompareTarget::Mod, key, Compared::ModRevision(revision))
}

/// Whether a key hangs on this lease.
pub(crate) fn hangs_on(key: Bytes, lease: i64) -> Compare {
    compare(CompareTarget::Lease, key, Compared::Lease(lease))
}

fn compare(target: CompareTarget, key: Bytes, with: Compared) -> Compare {
    Compare { target: target.into(), key, target_union: Some(with) }
}

/// Reads one key.
pub(crate) fn one(key: Bytes) -> RequestOp {
    range(key, Bytes::new(), 1)
}

/// Reads the keys from `key` on that are before `end`, at most `limit`.
pub(crate) fn range(key: Bytes, end: Bytes, limit: usize) -> RequestOp {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    operation(Operation::Range(RangeRequest { key, range_end: end, limit }))
}

pub(crate) fn put(key: Bytes, value: Bytes) -> RequestOp {
    put_on(0, key, value)
}

/// Puts a key that vanishes with this lease.
pub(crate) fn put_on(lease: i64, key: Bytes, value: Bytes) -> RequestOp {
    operation(Operation::Put(PutRequest { key, value, lease }))
}

/// Removes one key.
pub(crate) fn delete_one(key: Bytes) -> RequestOp {
    delete(key, Bytes::new())
}

/// Removes the keys from `key` on that are before `end`.
pub(crate) fn delete(key: Bytes, end: Bytes) -> RequestOp {
    operation(Operation::DeleteRange(DeleteRangeRequest { key, range_end: end }))
}

const fn operation(request: Operation) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// A transaction that only reads. It sees everything that was answered before it was sent.
pub(crate) const fn reading(operations: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare: Vec::new(), success: operations, failure: Vec::new() }
}

/// The keys that the operation at this place of the branch has read.
pub(crate) fn keys_read(response: &TxnResponse, place: usize) -> &[KeyValue] {
    let range = response.responses.get(place).and_then(|it| it.range.as_ref());
    range.map_or(&[], |range| &range.kvs)
}

/// The one key that the operation at this place has read, if it is there.
pub(crate) fn key_read(response: &TxnResponse, place: usize) -> Option<&KeyValue> {
    keys_read(response, place).first()
}
