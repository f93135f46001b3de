//! A node compares what it has seen with the engine, and tells the others what it has found.

use pinpriq_store::Urgency;
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Term};
use pinpriq_testing::stores::{Caller, sample_task};

use super::super::founding::{known, new_meta};
use super::super::tests::{EngineInMemory, SHARDS};
use super::*;

impl EngineInMemory {
    fn reporter(self: &Arc<Self>) -> Reporter {
        let session_ttl = Duration::from_secs(5);
        let elsewhere: Elsewhere = Arc::new(|work| work());
        Reporter { engine: self.clone(), session_ttl, node: "n1".to_owned(), elsewhere }
    }

    fn amend(&self, meta: &Meta) {
        let (meta, instead_of) = (meta.clone(), self.meta());
        let answer = self.ask(RegistryCall::Amend { meta, instead_of });
        assert_eq!(answer, RegistryAnswer::Done);
    }

    /// Appends to the log of a shard in a new tenure, and returns what its node remembers.
    fn append(&self, shard: u16, entries: u64) -> Watermark {
        let ledger = Box::new(self.logs.ledger(shard, Writer(7)));
        let store = LedgerStore::new(ledger, LedgerOptions::default());
        let mut caller = Caller::start(Box::new(store)).unwrap();
        for _ in 0..entries {
            let number = caller.header.last_number + 1;
            caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
            caller.settle().unwrap();
        }
        caller.store.watermark().unwrap()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn loss() -> StoreError {
    let [expected, found] = ["entry 9", "entry 7"].map(str::to_owned);
    StoreError::RolledBack { expected, found }
}

#[test]
fn what_was_found_is_noted_for_all() {
    let memory = EngineInMemory::new();
    let meta = Meta { generation: 3, ..new_meta(SHARDS) };
    memory.ask(RegistryCall::Found(meta.clone()));
    let own = known(&meta);
    let report = |own, shard| block_on(memory.reporter().report(own, (shard, &loss()))).unwrap();
    assert_eq!(report(own, Some(1)), Reported::Noted);
    let noted = memory.meta();
    let found = noted.rolled_back.clone().unwrap();
    assert_eq!((found.node.as_str(), found.shard, found.generation), ("n1", Some(1), 3));
    assert_eq!((found.expected.as_str(), found.found.as_str()), ("entry 9", "entry 7"));
    assert_eq!(report(own, Some(0)), Reported::Noted);
    assert_eq!(memory.meta(), noted, "the first one is enough");
    // A node that has seen more tells that too.
    let later = KnownCluster { generation: 5, ..own };
    assert_eq!(report(later, None), Reported::Noted);
    assert_eq!(memory.meta().rolled_back.map(|it| it.generation), Some(5));
    let accepted = Meta { generation: 6, ..meta };
    memory.amend(&accepted);
    assert_eq!(report(later, Some(1)), Reported::Accepted(accepted.clone()));
    assert_eq!(memory.meta(), accepted);
}

#[test]
fn a_cluster_that_is_gone_or_another_one_is_told_apart() {
    let memory = EngineInMemory::new();
    let reporter = memory.reporter();
    let own = known(&new_meta(SHARDS));
    let report = || block_on(reporter.report(own, (Some(1), &loss()))).unwrap_err().to_string();
    assert!(block_on(reporter.is_gone()));
    assert!(report().contains("there is no cluster"), "{}", report());
    memory.ask(RegistryCall::Found(new_meta(SHARDS)));
    assert!(!block_on(reporter.is_gone()));
    assert!(report().contains("it holds the cluster"), "{}", report());
}

#[test]
fn all_watermarks_are_compared_at_the_start() {
    let memory = EngineInMemory::new();
    let own = known(&new_meta(SHARDS));
    let watermarks = Watermarks::in_memory(SHARDS);
    let reporter = memory.reporter();
    let compare = |own| block_on(reporter.find_loss(&watermarks, own, 0..SHARDS)).unwrap();
    let find = || compare(own).map(|(shard, _)| shard);
    let keep = |shard, watermark| watermarks.keeper(shard, Arc::new(|| ())).keep(watermark);
    assert_eq!(find(), None);
    keep(0, memory.append(0, 3));
    keep(1, memory.append(1, 5));
    assert_eq!(find(), None);
    memory.append(0, 2);
    assert_eq!(find(), None, "others may have gone on");
    memory.logs.roll_back(1, 2);
    assert_eq!(find(), Some(1), "entries are gone");
    memory.append(1, 7);
    assert_eq!(find(), Some(1), "others are in their place");
    let accepted = KnownCluster { generation: 1, ..own };
    assert_eq!(compare(accepted).map(|it| it.0), None);
    let term = Term::first_of(1);
    keep(0, Watermark { term, ..watermarks.last(0).unwrap() });
    assert_eq!(compare(accepted).map(|it| it.0), Some(0), "a tenure is forgotten");
}

#[test]
fn an_engine_that_was_wiped_has_lost_what_was_seen() {
    let memory = EngineInMemory::new();
    let watermarks = Watermarks::in_memory(SHARDS);
    watermarks.keeper(1, Arc::new(|| ())).keep(memory.append(1, 2));
    let own = known(&new_meta(SHARDS));
    let wiped = EngineInMemory::new();
    let reporter = wiped.reporter();
    let found = block_on(reporter.find_loss(&watermarks, own, 0..SHARDS)).unwrap();
    let (shard, loss) = found.unwrap();
    assert_eq!(shard, 1);
    assert!(loss.to_string().contains("a log that ends with entry 0"), "{loss}");
}
