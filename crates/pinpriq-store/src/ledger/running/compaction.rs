//! Compaction of a log at work: which old records are written again, and reading them.
//!
//! The caller writes them. Nothing is removed here.

use std::collections::VecDeque;

use crate::store::{REWRITE_BYTES_MAX, REWRITE_KEYS_MAX};
use crate::{Rewrite, StoreError};

use super::Running;
use crate::ledger::accounts::Unit;
use crate::ledger::batch::read_keys;
use crate::ledger::interface::{Call, Seq, Unreachable};
use crate::ledger::reader::{Reader, damage};

/// While more than this waits to be appended, no records are returned to be written again.
const REWRITE_BACKLOG_BYTES: u64 = 1 << 20;

/// The records of the oldest entries, which are to be written again.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// The unit that is being read, and its entries so far.
    pub(super) reading: Option<(Unit, Reader, Seq)>,
    /// The first entry of the unit that was read last.
    done: Option<Seq>,
    rewrites: VecDeque<Rewrite>,
}

impl Running {
    /// See [`Reclaims::poll_rewrite`](crate::Reclaims::poll_rewrite).
    pub(crate) fn poll_rewrite(&mut self) -> Vec<Rewrite> {
        self.start_compaction();
        if self.pending_bytes() > REWRITE_BACKLOG_BYTES {
            return Vec::new();
        }
        let (mut bytes, mut rewrites) = (0, Vec::new());
        while rewrites.len() < REWRITE_KEYS_MAX
            && bytes < REWRITE_BYTES_MAX
            && let Some(rewrite) = self.compaction.rewrites.pop_front()
        {
            bytes += u64::from(rewrite.place.length.get());
            rewrites.push(rewrite);
        }
        self.figures.rewrites += rewrites.len() as u64;
        rewrites
    }

    /// Starts to read the oldest entry in which something counts, if too much of the log does not.
    fn start_compaction(&mut self) {
        let is_busy = self.compaction.reading.is_some() || !self.compaction.rewrites.is_empty();
        let is_wasteful = self.accounts.is_wasteful(self.slack());
        if is_busy || self.chores_at > self.now || !is_wasteful {
            return;
        }
        let Some(unit) = self.accounts.oldest() else { return };
        // It may wait to be appended, and then it cannot be read.
        if unit.first.0 + unit.entries > self.landed.head.0 + 1 {
            return;
        }
        // What was returned already is still on its way.
        if self.compaction.done.is_some_and(|done| done >= unit.first) {
            return;
        }
        self.compaction.reading = Some((unit, Reader::default(), unit.first));
        self.read_more();
    }

    fn read_more(&mut self) {
        if let Some((unit, _, from)) = &self.compaction.reading {
            let bytes = usize::try_from(unit.bytes).unwrap_or(usize::MAX);
            self.ledger.start(Call::Read { from: *from, bytes });
        }
    }

    pub(super) fn receive_read(
        &mut self,
        read: Result<Vec<(Seq, Vec<u8>)>, Unreachable>,
    ) -> Result<(), StoreError> {
        let Some((unit, mut reader, mut next)) = self.compaction.reading.take() else {
            unreachable!("nothing was read")
        };
        let Ok(entries) = read else {
            self.put_chores_off();
            return Ok(());
        };
        for (seq, bytes) in entries {
            next = Seq(seq.0 + 1);
            let Some(whole) = reader.take(seq, &bytes)?.pop() else { continue };
            let body = whole.body.unwrap_or_default();
            let keys = read_keys(unit.first, &body);
            let keys = keys.map_err(|malformed| damage(unit.first, malformed.to_string()))?;
            let rewrite = |(key, place)| Rewrite { key, place, payload: None };
            self.compaction.rewrites.extend(keys.into_iter().map(rewrite));
            self.compaction.done = Some(unit.first);
            return Ok(());
        }
        if next == unit.first {
            // What counts no more may have been removed meanwhile.
            let (kept, _) = self.accounts.releasable();
            let is_gone = kept > unit.first;
            return if is_gone { Ok(()) } else { Err(damage(unit.first, "it is gone".to_owned())) };
        }
        self.compaction.reading = Some((unit, reader, next));
        self.read_more();
        Ok(())
    }
}
