//! What can be read of a schema and its logs without changing anything.

use pinpriq_cluster::postgres::Postgres;
use pinpriq_cluster::remote::LogState;
use pinpriq_store::ledger::{Answer, Call, Seq, Term};

use crate::postgres::engine::Engine;
use crate::remote::engines::ask;

#[test]
fn looking_creates_nothing_and_ends_no_tenure() {
    let Some(engine) = Engine::start(&[]) else { return };
    let look = || engine.runtime.block_on(Postgres::connect_existing(engine.options("look")));
    assert!(look().unwrap().is_none());
    assert!(look().unwrap().is_none(), "the first one has created nothing");
    let (postgres, _) = engine.connect(engine.options("look")).unwrap();
    let (seen, report) = look().unwrap().unwrap();
    assert!(report.version >= 130_000);
    let states = || engine.runtime.block_on(seen.log_states(3)).unwrap();
    assert_eq!(states(), vec![None; 3]);
    let mut ledger = engine.ledger(&postgres, 1, 0xabc);
    let mut ask = |call| ask(&mut *ledger, call);
    let Answer::Seized(Ok(seized)) = ask(Call::Seize { at_least: Term(7) }) else { panic!() };
    let (tenure, bytes) = (seized.tenure, [1, 2, 3].into());
    ask(Call::Append { tenure, seq: Seq(1), bytes });
    let expected = LogState { tenure, head: Seq(1), first: Seq(1) };
    assert_eq!(states(), [None, Some(expected), None]);
    let _ = ask(Call::Trim { tenure, before: Seq(2) });
    assert_eq!(states(), [None, Some(LogState { first: Seq(2), ..expected }), None]);
}
