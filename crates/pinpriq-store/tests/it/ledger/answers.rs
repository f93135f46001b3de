//! An engine on a fenced log: no owner of the past says anything that its successor makes untrue.

use pinpriq_proto::command::{
    Ack, Command, Held, HeldBy, Put, QueueName, Selection, Take, TakeMode, Touch, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::task::{ClientId, Grant, Receipt, RequestId};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::ledger::{LedgerOptions, LedgerStore, Writer};
use pinpriq_store::{Durable, StoreError};
use pinpriq_testing::ledgers::{FakeEngine, FakeKnobs};

const SHARD: u16 = 0;
const QUEUE: &[u8] = b"jobs";
const NAME: QueueName<'static> = QueueName { name: QUEUE, member: None };
const CLIENT: ClientId = ClientId(1);
const NOW: Timestamp = Timestamp::from_ms(1_000);

/// An owner of the shard, or one that thinks so.
struct Owner {
    durable: Durable,
    last_request: u64,
}

impl Owner {
    fn seize(engine: &FakeEngine, writer: u128) -> Self {
        let ledger = engine.ledger(SHARD, Writer(writer));
        let store = LedgerStore::new(Box::new(ledger), LedgerOptions::default());
        let opened = Durable::open(Box::new(store), Limits::default(), NOW, 7);
        Self { durable: opened.unwrap().0, last_request: 0 }
    }

    /// Carries out a command, and returns its answer if it may leave, or why the store has failed.
    fn ask(&mut self, command: &Command<'_>) -> Result<Reply, StoreError> {
        self.last_request += 1;
        self.durable.apply(NOW, CLIENT, RequestId(self.last_request), command);
        self.durable.commit()?;
        let (position, output) = self.durable.poll_output().unwrap();
        let Output::Reply { reply, .. } = output else { panic!("no reply but {output:?}") };
        let mut turns = 0;
        while self.durable.reached() < position {
            self.durable.drive(NOW)?;
            turns += 1;
            assert!(turns < 1_000, "the answer {reply:?} never leaves");
        }
        Ok(reply)
    }
}

fn put(payload: &[u8]) -> Command<'_> {
    Command::Put(Put::new(QUEUE, payload))
}

const TAKE: Command<'static> = Command::Take(Take {
    queues: &[QUEUE],
    member: None,
    count: 1,
    wait: Wait::No,
    selection: Selection::DEFAULT,
    mode: TakeMode::Lease { ttr: Some(Span::from_ms(30_000)) },
});

/// Commands that change nothing here, and whose answers still say something.
fn idle_commands() -> Vec<Command<'static>> {
    let grant = Grant { incarnation: 1, serial: 9 };
    let receipt = Receipt { number: 1, grant };
    let held = Held { queue: NAME, by: HeldBy::Receipt(receipt) };
    vec![
        Command::Kill { queue: NAME, ids: &[b"77"] },
        Command::Ack(Ack::new(held)),
        Command::Touch(Touch::new(held)),
        Command::Transaction(&[]),
        Command::Within { names: &[], command: &Command::Redrive { queue: NAME, count: 1 } },
    ]
}

#[test]
fn answers_leave_in_peace() {
    let engine = FakeEngine::new(1, FakeKnobs { late: 50, ..FakeKnobs::PERFECT });
    let mut owner = Owner::seize(&engine, 1);
    assert!(matches!(owner.ask(&put(b"p")), Ok(Reply::Put(_))));
    for command in idle_commands() {
        let reply = owner.ask(&command);
        assert!(reply.is_ok(), "{command:?}: {reply:?}");
    }
    let Ok(Reply::Tasks { tasks, .. }) = owner.ask(&TAKE) else { panic!("nothing was taken") };
    assert_eq!(tasks.len(), 1);
}

#[test]
fn an_owner_of_the_past_says_nothing_about_what_may_have_changed() {
    for command in idle_commands() {
        let engine = FakeEngine::new(2, FakeKnobs::PERFECT);
        let mut former = Owner::seize(&engine, 1);
        former.ask(&put(b"p")).unwrap();
        let _owner = Owner::seize(&engine, 2);
        let error = former.ask(&command).unwrap_err();
        assert!(matches!(error, StoreError::Fenced { .. }), "{command:?}: {error}");
        assert!(former.ask(&TAKE).is_err(), "it stays so");
    }
}

#[test]
fn no_task_is_handed_out_twice() {
    let engine = FakeEngine::new(3, FakeKnobs::PERFECT);
    let mut former = Owner::seize(&engine, 1);
    former.ask(&put(b"p")).unwrap();
    let mut owner = Owner::seize(&engine, 2);
    // What is in its memory is the same, and so would be the task.
    let error = former.ask(&TAKE).unwrap_err();
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    let Ok(Reply::Tasks { tasks, .. }) = owner.ask(&TAKE) else { panic!("nothing was taken") };
    let own = tasks[0].receipt().unwrap();
    // The next owner knows of the lease, since its grant was in the log before it was handed out.
    let mut next = Owner::seize(&engine, 3);
    let Ok(Reply::Tasks { tasks, .. }) = next.ask(&TAKE) else { panic!("no answer") };
    assert_eq!(tasks, []);
    let held = Held { queue: NAME, by: HeldBy::Receipt(own) };
    let reply = next.ask(&Command::Ack(Ack::new(held)));
    assert!(matches!(reply, Ok(Reply::Done)), "{reply:?}");
}
