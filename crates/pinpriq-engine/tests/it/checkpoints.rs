//! A long job whose workers are killed again and again, and which goes on from its checkpoint.

use pinpriq_engine::Engine;
use pinpriq_proto::change::Header;
use pinpriq_proto::command::{
    Command, Held, HeldBy, Put, QueueName, Selection, Take, TakeMode, Touch, Wait,
};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, TaskRecord};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_testing::Dice;

const QUEUE: QueueName<'_> = QueueName { name: b"jobs", member: None };
/// The job takes ten minutes, and says after each quarter of a second how far it is.
const STEPS: u64 = 2_400;
const STEP: Span = Span::from_ms(250);
/// A worker sends the newest checkpoint at most once a second.
const STEPS_PER_TOUCH: u64 = 4;
const TTR: Span = Span::from_ms(30_000);
/// How many seconds a worker lives on average.
const LIFE_S: u64 = 60;

struct Scene {
    engine: Engine,
    now: Timestamp,
    last_request: u64,
}

impl Scene {
    fn ask(&mut self, command: Command<'_>) -> Reply {
        self.last_request += 1;
        self.engine.apply(self.now, ClientId(1), RequestId(self.last_request), &command);
        loop {
            match self.engine.poll_output() {
                Some(Output::Reply { reply, .. }) => return reply,
                Some(_) => {}
                None => panic!("no reply"),
            }
        }
    }

    fn take(&mut self) -> Option<TaskRecord> {
        let take = Take {
            queues: &[QUEUE.name],
            member: None,
            count: 1,
            wait: Wait::No,
            selection: Selection::DEFAULT,
            mode: TakeMode::Lease { ttr: Some(TTR) },
        };
        match self.ask(Command::Take(take)) {
            Reply::Tasks { tasks, .. } => tasks.into_iter().next(),
            other => panic!("no tasks but {other:?}"),
        }
    }

    fn tell(&mut self, receipt: Receipt, done: u64) -> Reply {
        let held = Held { queue: QUEUE, by: HeldBy::Receipt(receipt) };
        let checkpoint = done.to_string();
        let checkpoint = Some(checkpoint.as_bytes());
        self.ask(Command::Touch(Touch { checkpoint, ..Touch::new(held) }))
    }
}

/// Returns how many steps were done twice, and how many workers were killed.
fn work(seed: u64) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let engine = Engine::new(Limits::default(), 1);
    let mut scene = Scene { engine, now: Timestamp::from_ms(1), last_request: 0 };
    scene.engine.start(scene.now, 1, Header::default());
    scene.ask(Command::Put(Put::new(QUEUE.name, b"ten minutes")));
    let (mut repeated, mut killed, mut furthest) = (0, 0, 0);
    let mut dead: Vec<Receipt> = Vec::new();
    loop {
        let Some(task) = scene.take() else {
            scene.now = scene.now.after(Span::from_ms(1_000));
            scene.engine.handle_timeout(scene.now);
            continue;
        };
        // Those that were killed are only slow, and tell now how far they have come.
        for receipt in &dead {
            match scene.tell(*receipt, 1) {
                Reply::Refused(refusal) => assert_eq!(refusal.kind, RefusalKind::Stale),
                other => panic!("seed {seed}: a stale receipt was answered {other:?}"),
            }
        }
        let known = task.progress.checkpoint().map(|bytes| String::from_utf8(bytes.to_vec()));
        let mut done: u64 = known.map_or(0, |known| known.unwrap().parse().unwrap());
        let receipt = task.receipt().unwrap();
        repeated += furthest - done;
        while done < STEPS {
            if dice.below(LIFE_S * 1_000 / STEP.ms()) == 0 {
                break;
            }
            scene.now = scene.now.after(STEP);
            done += 1;
            if done.is_multiple_of(STEPS_PER_TOUCH) {
                assert!(matches!(scene.tell(receipt, done), Reply::Deadline(Some(_))));
            }
        }
        furthest = furthest.max(done);
        if done == STEPS {
            return (repeated, killed);
        }
        killed += 1;
        dead.push(receipt);
    }
}

#[test]
fn a_job_of_ten_minutes_repeats_less_than_a_twentieth_of_its_work() {
    let (mut repeated, mut killed) = (0, 0);
    for seed in 0..50 {
        let (again, kills) = work(seed);
        assert!(again * 20 < STEPS, "seed {seed}: {again} of {STEPS} steps were repeated");
        (repeated, killed) = (repeated + again, killed + kills);
    }
    assert!(killed > 200, "only {killed} workers were killed");
    assert!(repeated > 0, "nothing was ever repeated");
}
