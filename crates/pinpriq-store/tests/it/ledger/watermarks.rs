//! Watermarks that are kept while a log is at work, and logs whose loss was accepted.

use std::sync::{Arc, Mutex};

use pinpriq_proto::change::{Change, Header};
use pinpriq_store::ledger::{Keeper, LedgerOptions, LedgerStore, Term, Watermark, Writer};
use pinpriq_store::{Store, StoreError, Urgency};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};
use pinpriq_testing::stores::{Caller, sample_task};

const SHARD: u16 = 4;

/// A disk that keeps what was written, as far as the test lets it.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Page>>);

#[derive(Default)]
struct Page {
    last: Option<Watermark>,
    kept: Option<Watermark>,
    holds: bool,
    has_failed: bool,
}

impl Book {
    fn hold(&self, holds: bool) {
        let page = &mut *self.0.lock().unwrap();
        page.holds = holds;
        if !holds {
            page.kept = page.last;
        }
    }

    fn kept(&self) -> Option<Watermark> {
        self.0.lock().unwrap().kept
    }
}

impl Keeper for Book {
    fn keep(&mut self, watermark: Watermark) {
        let page = &mut *self.0.lock().unwrap();
        page.last = Some(watermark);
        if !page.holds {
            page.kept = page.last;
        }
    }

    fn kept(&mut self) -> Result<Option<Watermark>, StoreError> {
        let page = self.0.lock().unwrap();
        if page.has_failed { Err(StoreError::Stopped) } else { Ok(page.kept) }
    }

    fn wait(&mut self) {
        self.hold(false);
    }
}

fn store(engine: &FakeEngine, writer: u128, options: LedgerOptions) -> LedgerStore {
    LedgerStore::new(Box::new(engine.ledger(SHARD, Writer(writer))), options)
}

fn start(engine: &FakeEngine, writer: u128, book: &Book) -> Caller<LedgerStore> {
    let options = LedgerOptions { watermark: book.kept(), ..LedgerOptions::default() };
    let store = store(engine, writer, options).keeping(Box::new(book.clone()));
    Caller::start(Box::new(store)).unwrap()
}

fn put(caller: &mut Caller<LedgerStore>) -> u64 {
    let number = caller.header.last_number + 1;
    caller.append(&[sample_task(number, "q", 10)], Urgency::Soon).unwrap();
    number
}

fn turn(caller: &mut Caller<LedgerStore>) {
    for _ in 0..100 {
        caller.turn().unwrap();
    }
}

#[test]
fn a_batch_is_confirmed_once_its_watermark_is_kept() {
    let engine = FakeEngine::new(1, FakeKnobs::PERFECT);
    let book = Book::default();
    let mut caller = start(&engine, 1, &book);
    let before = book.kept();
    assert!(before.is_some() && before == caller.store.watermark());
    book.hold(true);
    put(&mut caller);
    let position = caller.append(&[Change::Gone(1)], Urgency::Soon).unwrap();
    turn(&mut caller);
    assert_ne!(caller.store.watermark(), before, "the engine has confirmed it");
    assert!(caller.reached < position, "and its loss would go unseen");
    book.hold(false);
    caller.turn().unwrap();
    assert_eq!(caller.reached, position);
    assert_eq!(book.kept(), caller.store.watermark());
}

#[test]
fn the_next_entry_is_under_way_while_a_watermark_is_kept() {
    let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
    let book = Book::default();
    let mut caller = start(&engine, 1, &book);
    let before = engine.head(SHARD);
    book.hold(true);
    for _ in 0..3 {
        put(&mut caller);
        turn(&mut caller);
    }
    assert_eq!(engine.head(SHARD).0 - before.0, 3);
    let now = caller.header.now;
    caller.store.finish(now).unwrap();
    assert_eq!(book.kept(), caller.store.watermark(), "who waits for all waits for that");
}

#[test]
fn a_disk_that_cannot_keep_a_watermark_fails_the_store() {
    let engine = FakeEngine::new(3, FakeKnobs::PERFECT);
    let book = Book::default();
    let mut caller = start(&engine, 1, &book);
    book.0.lock().unwrap().has_failed = true;
    put(&mut caller);
    assert!(caller.settle().is_err());
}

#[test]
fn an_append_of_which_nothing_is_known_makes_no_watermark() {
    let engine = FakeEngine::new(4, FakeKnobs::PERFECT);
    let book = Book::default();
    let mut caller = start(&engine, 1, &book);
    put(&mut caller);
    caller.settle().unwrap();
    let before = book.kept();
    engine.set_knobs(FakeKnobs { lost_never: 100, ..FakeKnobs::PERFECT });
    put(&mut caller);
    turn(&mut caller);
    assert_eq!(book.kept(), before);
    drop(caller);
    engine.set_knobs(FakeKnobs::PERFECT);
    // It is not in the log, and nothing was lost.
    drop(start(&engine, 2, &book));
}

#[test]
fn a_loss_that_was_accepted_is_no_loss() {
    let engine = FakeEngine::new(5, FakeKnobs::PERFECT);
    let book = Book::default();
    let mut caller = start(&engine, 1, &book);
    let mut last = 0;
    for _ in 0..5 {
        last = put(&mut caller);
        caller.settle().unwrap();
    }
    drop(caller);
    engine.roll_back(SHARD, 3);
    let load = |generation: u32| {
        let at_least = Term::first_of(generation);
        let options = LedgerOptions { at_least, watermark: book.kept(), ..Default::default() };
        let mut store = store(&engine, 2, options);
        let loaded = store.load(&mut |_, _| {});
        loaded.map(|loaded| (store.tenure().unwrap().term, loaded.header))
    };
    assert!(matches!(load(0), Err(StoreError::RolledBack { .. })));
    let (term, header) = load(1).unwrap();
    assert_eq!((term, term.generation()), (Term::first_of(1), 1));
    assert!(header.last_number > last, "no task gets the number of one that was lost");
    // Nothing was appended since.
    let expected = Header { incarnation: header.incarnation + 1, ..header };
    assert_eq!(load(1).unwrap().1, expected);
}

#[test]
fn numbers_leap_once_in_a_generation() {
    let engine = FakeEngine::new(6, FakeKnobs::PERFECT);
    let mut numbers = Vec::new();
    for (writer, generation) in (1..).zip([0, 0, 1, 1, 3, 3]) {
        let options = LedgerOptions {
            at_least: Term::first_of(generation),
            numbers_after: 70,
            ..LedgerOptions::default()
        };
        let store = store(&engine, writer, options);
        let caller = Caller::start(Box::new(store)).unwrap();
        numbers.push(caller.header.last_number);
    }
    let leap = 1 << 36;
    assert_eq!(numbers, [70, 70, 70 + leap, 70 + leap, 70 + 2 * leap, 70 + 2 * leap]);
}
