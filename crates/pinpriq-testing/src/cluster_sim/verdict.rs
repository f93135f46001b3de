//! What must be true of a run: of the logs, and of what clients saw.

use crate::history::{History, Tolerance, check};
use crate::ledgers::FakeEngine;
use crate::ledgers::Happened;
use pinpriq_store::ledger::{Seq, Term};

/// How much clocks may be off in the eyes of clients: the wall clocks of two machines. A lease may
/// last as long as a shard has no owner, and some seconds.
const TOLERANCE: Tolerance =
    Tolerance { fixed_us: 6_500_000, one_in: 200, prolonged_us: 120_000_000 };

/// Panics if a log has two entries with one number in one life, or a term that falls. A roll-back
/// of the engine begins another life.
pub(crate) fn judge_logs(engine: &FakeEngine, shards: u16) {
    for shard in 0..shards {
        let (mut head, mut term) = (Seq(0), Term(0));
        for happened in engine.history(shard) {
            match happened {
                Happened::Seized { tenure, .. } => {
                    assert!(tenure.term > term, "shard {shard}: the term fell to {tenure:?}");
                    term = tenure.term;
                }
                Happened::RolledBack { head: left, fence } => {
                    head = left;
                    term = fence.map_or(Term(0), |tenure| tenure.term);
                }
                Happened::Added { tenure, seq, .. } => {
                    assert_eq!(tenure.term, term, "shard {shard}: entry {seq:?} of an old tenure");
                    assert_eq!(seq.0, head.0 + 1, "shard {shard}: entry {seq:?} behind {head:?}");
                    head = seq;
                }
                Happened::Trimmed { .. } => {}
            }
        }
    }
}

/// Panics if no correct queue could have answered like this. Returns the number of requests, and
/// those whose outcome is unknown.
pub(crate) fn judge_history(history: &[u8]) -> (u64, u64) {
    let read = match History::read(history) {
        Ok(read) => read,
        Err(unreadable) => panic!("{unreadable}"),
    };
    let report = check(&read, TOLERANCE);
    assert!(report.is_clean(), "{}", report.text(3));
    (report.tally.calls, report.tally.unknown)
}
