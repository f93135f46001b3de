//! Bulk changes whose pages end early.

use pinpriq_proto::command::{Bulk, BulkChange, Command, Filter, Put};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::Terms;
use pinpriq_proto::time::Span;

use super::{NOW, QUEUE, ask, started};

#[test]
fn bulk_pages_are_short_and_miss_nothing() {
    const TASKS: u64 = 30_000;
    let mut engine = started(Limits::default(), NOW);
    for number in 1..=TASKS {
        let key = Some(if number % 1_000 == 0 { &b"rare"[..] } else { b"usual" });
        let terms = Terms::of(key, None);
        ask(&mut engine, NOW, Command::Put(Put { terms, ..Put::new(QUEUE, b"x") }));
    }
    let rare = Filter { key: Some(b"rare"), ..Filter::ALL };
    let kept = BulkChange::Priority(Some(9));
    for (change, filter, count, expected) in [
        (kept, rare, 10_000, vec![(20_000 - 4 * 19, 19), (10_000 + 4 * 19, 11)]),
        (kept, rare, 7, vec![(7_000, 7), (7_000, 7), (7_000, 7), (7_000, 7), (2_000, 2)]),
        (BulkChange::Delay(Span::from_ms(7)), Filter::ALL, 10_000, vec![(4_000, 4_000); 8]),
    ] {
        let (mut pages, mut after) = (Vec::new(), 0);
        loop {
            let bulk = Bulk { filter, count, after, dry: true, ..Bulk::new(QUEUE, change) };
            let Reply::Bulked { next, looked, changed } = ask(&mut engine, NOW, bulk.into()) else {
                panic!("no page")
            };
            pages.push((looked, changed));
            let Some(next) = next else { break };
            after = next.get();
        }
        let all: u64 = pages.iter().map(|(looked, _)| looked).sum();
        assert_eq!(all, TASKS, "{pages:?}");
        assert!(
            pages.iter().zip(&expected).take(7).all(|(page, wanted)| page == wanted),
            "{pages:?}"
        );
    }
    // Large payloads end a page of moves.
    let large = vec![b'x'; 300_000];
    for _ in 0..10 {
        ask(&mut engine, NOW, Command::Put(Put::new(b"large", &large)));
    }
    for (changed, next) in [(4, true), (4, true), (2, false)] {
        let bulk = Bulk::new(&b"large"[..], BulkChange::Move(QUEUE));
        let Reply::Bulked { next: found, changed: moved, .. } = ask(&mut engine, NOW, bulk.into())
        else {
            panic!("no page")
        };
        assert_eq!((moved, found.is_some()), (changed, next));
    }
    engine.check();
}
