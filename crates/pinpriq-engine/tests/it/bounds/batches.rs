//! Batches with more tasks than one call of the engine goes through.

use pinpriq_engine::Engine;
use pinpriq_proto::batches::{BATCH_STEPS_MAX, BatchState, Bonds};
use pinpriq_proto::command::{Amendment, BatchCommand, Command, Put, Step, Update};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{RefusalKind, Reply};

use super::{NOW, QUEUE, ask, refusal, started};

const BATCH: &[u8] = b"b";

const TASKS: usize = 3 * BATCH_STEPS_MAX;

/// Puts so many tasks into a batch and cancels that, of which the first steps are done.
fn being_cancelled() -> Engine {
    let mut engine = started(Limits::default(), NOW);
    let bonds = Bonds { batch: Some(BATCH), ..Bonds::NONE };
    for _ in 0..TASKS {
        ask(&mut engine, NOW, Command::Put(Put { bonds, ..Put::new(QUEUE, b"") }));
    }
    let cancel = BatchCommand::Cancel { name: BATCH, reason: None, grace: None };
    assert_eq!(ask(&mut engine, NOW, Command::Batch(cancel)), Reply::Count(TASKS as u64));
    engine
}

/// Does what is left to be done. Then all of the tasks must be cancelled.
fn must_be_cancelled(engine: &mut Engine) {
    while engine.poll_timeout().is_some_and(|at| at <= NOW) {
        engine.handle_timeout(NOW);
        engine.check();
    }
    let Reply::Batch(shown) = ask(engine, NOW, Command::Batch(BatchCommand::Show(BATCH))) else {
        panic!("no batch")
    };
    assert_eq!((shown.state, shown.failed), (BatchState::Done, TASKS as u64), "{shown:?}");
}

#[test]
fn a_transaction_that_is_undone_leaves_a_cancel_on_its_way() {
    let mut engine = being_cancelled();
    // The next one to be cancelled: the number of the first is 2.
    let id = (BATCH_STEPS_MAX + 2).to_string();
    let update = Update {
        queue: QUEUE.into(),
        id: id.as_bytes(),
        amendment: Amendment { payload: Some(b"x"), ..Amendment::default() },
        receipt: None,
        headers: None,
    };
    let steps = [Step::Command(Command::Update(update)), Step::Bad("no")];
    let reply = ask(&mut engine, NOW, Command::Transaction(&steps));
    assert_eq!(refusal(reply), RefusalKind::ExecAbort);
    engine.check();
    must_be_cancelled(&mut engine);
}

#[test]
fn a_start_goes_on_with_a_cancel() {
    let mut engine = being_cancelled();
    let (mut changes, mut again) = (Vec::new(), Engine::new(Limits::default(), 5));
    engine.take_changes(&mut changes);
    for change in changes {
        again.restore(change, None);
    }
    again.start(NOW, 2, engine.header());
    must_be_cancelled(&mut again);
}
