//! Reading entries, in pieces of bounded size.

use pinpriq_store::ledger::{Seq, Unreachable};
use prost::bytes::Bytes;

use crate::etcd::keys::number;
use crate::etcd::remote::{EtcdRemote, TARGET_BYTES};
use crate::etcd::transaction::{key_read, keys_read, one, range, reading};
use crate::etcd::trouble::Trouble;

/// The most entries in a piece.
const PIECE_ENTRIES_MAX: usize = 64;

impl EtcdRemote {
    /// See [`pinpriq_store::ledger::Call::Read`].
    pub(crate) async fn read(
        &self,
        from: Seq,
        bytes: usize,
    ) -> Result<Vec<(Seq, Vec<u8>)>, Unreachable> {
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
        let entry = |pair: &crate::etcd::messages::KeyValue| {
            let seq = self.keys.seq(&pair.key).ok_or(Trouble::Malformed("the key of an entry"))?;
            Ok((seq, pair.value.clone()))
        };
        keys_read(&response, 1).iter().map(entry).collect()
    }
}
