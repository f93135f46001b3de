//! Tools read the beginning of a log, and fill logs that they have seized.

use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::time::Timestamp;
use pinpriq_store::ledger::copying::{Filling, read_until};
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Seq, Term, Writer};
use pinpriq_store::{Fold, StoreError, Urgency};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_task};

const SHARD: u16 = 3;

fn owner(engine: &FakeEngine) -> Caller<LedgerStore> {
    let ledger = Box::new(engine.ledger(SHARD, Writer(1)));
    Caller::start(Box::new(LedgerStore::new(ledger, LedgerOptions::default()))).unwrap()
}

fn filling(engine: &FakeEngine, writer: u128) -> Filling {
    let ledger = Box::new(engine.ledger(SHARD, Writer(writer)));
    Filling::seize(ledger, Term(70)).unwrap()
}

/// The tasks and the facts in a log up to an entry.
fn tasks_until(engine: &FakeEngine, head: Seq) -> Option<(Vec<u64>, Header)> {
    let mut ledger = engine.ledger(SHARD, Writer(9));
    let (mut fold, mut freed) = (Fold::new(), Vec::new());
    let mut sink = |change: Change, place| fold.apply(&change, place, &mut freed);
    let header = read_until(&mut ledger, (Seq(1), head), &mut sink).unwrap()?;
    Some((fold.tasks.keys().copied().collect(), header))
}

#[test]
fn a_batch_whose_end_is_not_read_does_not_count() {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let mut owner = owner(&engine);
    owner.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    owner.settle().unwrap();
    let before = engine.head(SHARD);
    owner.append(&[Change::Gone(1), sample_task(2, "q", 3 << 20)], Urgency::Soon).unwrap();
    owner.settle().unwrap();
    let all = engine.head(SHARD);
    assert!(all.0 > before.0 + 2, "it has several entries");
    for head in before.0..all.0 {
        let (tasks, header) = tasks_until(&engine, Seq(head)).unwrap();
        assert_eq!((tasks, header.last_number), (vec![1], 1), "until {head}");
    }
    let (tasks, header) = tasks_until(&engine, all).unwrap();
    assert_eq!((tasks, header.last_number), (vec![2], 2));
    assert_eq!(header.incarnation, engine.tenure(SHARD).unwrap().term.0);
}

#[test]
fn who_does_not_own_a_log_any_more_neither_clears_nor_fills_it() {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let mut owner = owner(&engine);
    owner.append(&[sample_task(1, "q", 10)], Urgency::Soon).unwrap();
    owner.settle().unwrap();
    let facts = Header { incarnation: 5, now: Timestamp::from_ms(7), last_number: 50 };
    let batch = || std::iter::once(vec![sample_task(40, "q", 10)]);

    let (mut first, mut second) = (filling(&engine, 2), filling(&engine, 3));
    assert!(first.tenure().term >= Term(70) && second.tenure().term > first.tenure().term);
    let before = engine.log(SHARD);
    assert!(matches!(first.clear(), Err(StoreError::Fenced { .. })));
    assert_eq!(engine.log(SHARD), before);
    second.clear().unwrap();
    let third = filling(&engine, 4);
    assert!(matches!(second.fill(&facts, batch()), Err(StoreError::Fenced { .. })));
    assert!(engine.log(SHARD).is_empty());

    let term = third.tenure().term;
    third.fill(&facts, batch()).unwrap();
    assert_eq!(tasks_until(&engine, engine.head(SHARD)), None, "the former entries are gone");
    let loaded = self::owner(&engine);
    assert_eq!(loaded.fold.tasks.keys().copied().collect::<Vec<_>>(), [40]);
    assert_eq!((loaded.loaded.is_takeover, loaded.loaded.header.last_number), (false, 50));
    assert_eq!(loaded.loaded.header.now, facts.now);
    assert!(loaded.header.incarnation > term.0);
}
