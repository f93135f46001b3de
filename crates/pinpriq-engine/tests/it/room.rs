//! Clients that ask for more and more. Whatever the command, it is refused at some point, and the
//! engine never occupies more than it may.

use pinpriq_engine::{Applied, Engine};
use pinpriq_proto::change::{Change, Header};
use pinpriq_proto::command::{
    Ack, Amendment, Bury, Command, Fail, Held, HeldBy, Put, QueueCommand, QueueName, Release,
    Selection, Take, TakeMode, Transfer, Update, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, RefusalKind, Reply};
use pinpriq_proto::room::Room;
use pinpriq_proto::settings::{AFTERACK, AfterAck, IDS, Ids, SETTINGS, SettingKind, Value};
use pinpriq_proto::task::{ClientId, Farewell, Receipt, RequestId, StateKind, Terms};
use pinpriq_proto::time::{Span, Timestamp};

const NOW: Timestamp = Timestamp::from_ms(1_000);
/// Room for the tasks that an attack begins with, and for a few large things.
const LIMITS: Limits = Limits {
    payload_bytes_max: 1 << 20,
    bytes_max: 300_000,
    memory_bytes: None,
    waiting_bytes_max: 200_000,
    waits_per_client_max: 1_000,
    queues_per_client_max: 1_000,
    queue_linger: Span::from_ms(600_000),
    unique_max: 1_000,
    endings_max: 100,
    batches_max: 1_000,
    batch_retain: Span::from_ms(3_600_000),
    batch_abandon: Span::from_ms(86_400_000),
    topic_lanes_max: 1_000,
    lingering_queues_max: 10_000,
};
const QUEUE: QueueName<'static> = QueueName { name: b"q", member: None };
const LANE: QueueName<'static> = QueueName { name: b"t", member: Some(b"m") };
const LARGE: &[u8] = &[b'x'; 10_000];
/// The number of small tasks that an attack begins with, in a queue and in each of two lanes.
const TASKS: u64 = 250;

/// An engine under attack, and what it has reported to a store.
struct Target {
    engine: Engine,
    changes: Vec<Change>,
    last_client: u64,
}

/// Asks for something more. `round` counts from 1.
type Attack = fn(&mut Target, u64) -> Result<(), RefusalKind>;

const ATTACKS: [(&str, Attack); 27] = [
    ("PUT with a payload", |target, _| target.put(&Put::new(b"q", LARGE))),
    ("PUT without one", |target, _| target.put(&Put::new(b"q", b""))),
    ("PUT with a key", |target, round| {
        target.put(&Put {
            terms: Terms { key: Some(&name(round)), ..Terms::NONE },
            ..Put::new(b"q", b"")
        })
    }),
    ("PUT to one queue after the other", |target, round| target.put(&Put::new(&name(round), b""))),
    ("PUT with an id", |target, round| {
        let settings = &[(IDS, Ids::Given.into())];
        target.ask(Command::Queue(QueueCommand::Set { queue: b"given"[..].into(), settings }))?;
        target.put(&Put { id: Some(&name(round)[..255]), ..Put::new(b"given", b"") })
    }),
    ("PUT that waits", |target, _| {
        target.put(&Put { wait: Some(Wait::Forever), priority: None, ..Put::new(b"q", b"") })
    }),
    ("ACK of a task that stays", |target, _| {
        let by = target.take(QUEUE).map(HeldBy::Receipt)?;
        let held = Held { queue: QUEUE, by };
        target.ask(Command::Ack(Ack { payload: Some(LARGE), ..Ack::new(held) }))
    }),
    ("RELEASE", |target, _| {
        let by = target.take(QUEUE).map(HeldBy::Receipt)?;
        let held = Held { queue: QUEUE, by };
        let (delay, amendment) = (Span::from_ms(1), large());
        target.ask(Command::Release(Release { delay, amendment, tail: true, ..Release::new(held) }))
    }),
    ("BURY with a payload", |target, _| target.bury(Some(LARGE), b"")),
    ("BURY with a reason", |target, _| target.bury(None, &LARGE[..1_024])),
    ("FAIL with a reason", |target, _| {
        let held = Held { queue: QUEUE, by: target.take(QUEUE).map(HeldBy::Receipt)? };
        let (reason, delay) = (Some(&LARGE[..1_024]), Some(Span::from_ms(1)));
        target.ask(Command::Fail(Fail { reason, delay, ..Fail::new(held) }))
    }),
    ("MOVE to one queue after the other", |target, round| {
        let (to, state) = (name(round), StateKind::Ready);
        target.ask(Command::Move { from: QUEUE, to: &to, count: 1, state })
    }),
    ("DIG", |target, round| {
        target.switch(round, StateKind::Buried)?;
        target.ask(Command::Dig(transfer(QUEUE, &id(round))))
    }),
    ("SWITCH to R", |target, round| {
        let (id, to) = (id(round), StateKind::Ready);
        target.ask(Command::Switch { transfer: transfer(QUEUE, &id), to })
    }),
    ("SWITCH to D", |target, round| {
        let (id, to) = (id(round), StateKind::Done);
        target.ask(Command::Switch { transfer: transfer(QUEUE, &id), to })
    }),
    ("SNATCH", |target, _| {
        let receipt = target.take(QUEUE)?;
        target.ask(Command::Snatch(Transfer {
            delay: Span::from_ms(1),
            ..transfer(QUEUE, &id(receipt.number))
        }))
    }),
    ("RESTART", |target, round| {
        target.switch(round, StateKind::Done)?;
        target.ask(Command::Restart(transfer(QUEUE, &id(round))))
    }),
    ("UPDATE of one task after the other", |target, round| target.update(QUEUE, &id(round), LARGE)),
    ("UPDATE of one task again and again", |target, round| {
        target.update(QUEUE, b"1", &vec![b'x'; LARGE.len() * usize::try_from(round).unwrap()])
    }),
    ("UPDATE of what was published", |target, round| {
        // The first numbers belong to two lanes, their members, and the tasks of the queue.
        let id = id(TASKS + 3 + 2 * round);
        target.update(LANE, &id, LARGE)
    }),
    ("PUBLISH", |target, _| {
        let (topic, payload) = (b"t", LARGE);
        let (key, priority, deadline) = (None, None, Deadline::OfLane);
        target.ask(Command::Publish(Publish {
            topic,
            payload,
            deadline,
            priority,
            terms: Terms { key, ..Terms::NONE },
        }))
    }),
    ("JOIN of one topic after the other", |target, round| target.join(&name(round), b"m")),
    ("JOIN of one member after the other", |target, round| target.join(b"t", &name(round))),
    ("QUEUE CREATE", |target, round| {
        let settings = &[];
        target.ask(Command::Queue(QueueCommand::Create { queue: &name(round), settings }))
    }),
    ("QUEUE SET", |target, round| {
        let (name, settings) = (name(round), &[]);
        target.ask(Command::Queue(QueueCommand::Set { queue: (&*name).into(), settings }))
    }),
    ("QUEUE CREATE with names in its settings", |target, round| {
        let (queue, named) = (id(round), name(round));
        let settings: Vec<_> = SETTINGS
            .into_iter()
            .filter(|setting| matches!(setting.kind, SettingKind::Name))
            .map(|setting| (setting, Value::Bytes(&named)))
            .collect();
        // The queue itself counts far less than the name.
        let settings = &settings[..];
        let refused = target.ask(Command::Queue(QueueCommand::Create { queue: &queue, settings }));
        assert!(round < 60 || refused.is_err(), "names in settings count");
        refused
    }),
    ("POP that waits", |target, round| {
        let name = name(round);
        let queues: &[&[u8]] = &[&name, b"other"];
        let (selection, mode) = (Selection::DEFAULT, TakeMode::Pop);
        let (member, count, wait) = (None, 1, Wait::Forever);
        target.ask(Command::Take(Take { queues, member, count, wait, selection, mode }))
    }),
];

/// These get no reply, so all they can do is wait for more.
const WAITING: [(&str, Attack); 2] = [
    ("SUBSCRIBE", |target, round| {
        let name = name(round);
        let (selection, mode) = (Selection::DEFAULT, TakeMode::Pop);
        let (queues, recall) = (&[&name[..]][..], false);
        target.ask(Command::Subscribe { queues, member: None, selection, mode, recall })
    }),
    ("AWAIT", |target, _| {
        target.ask(Command::Await { queue: QUEUE, id: b"1", wait: Wait::Forever, result: false })
    }),
];

fn name(round: u64) -> Vec<u8> {
    format!("{round:x<5000}").into_bytes()
}

fn id(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn large() -> Amendment<'static> {
    Amendment { payload: Some(LARGE), ..Amendment::default() }
}

fn transfer<'a>(queue: QueueName<'a>, id: &'a [u8]) -> Transfer<'a> {
    Transfer { amendment: large(), ..Transfer::new(queue, id) }
}

impl Target {
    fn new() -> Self {
        let mut engine = Engine::new(LIMITS, 5);
        engine.start(NOW, 1, Header::default());
        let mut target = Self { engine, changes: Vec::new(), last_client: 1 };
        let settings = &[(AFTERACK, AfterAck::Keep.into())];
        target.ask(Command::Queue(QueueCommand::Set { queue: QUEUE, settings })).unwrap();
        for _ in 0..TASKS {
            target.put(&Put::new(b"q", b"x")).unwrap();
        }
        target.join(b"t", b"m").unwrap();
        target.join(b"t", b"n").unwrap();
        for _ in 0..TASKS {
            let (topic, payload, key) = (b"t", b"x", None);
            let (priority, deadline) = (Some(0), Deadline::OfLane);
            let publish =
                Publish { topic, payload, deadline, priority, terms: Terms { key, ..Terms::NONE } };
            target.ask(Command::Publish(publish)).unwrap();
        }
        target
    }

    /// Carries out a command of a new client. A refusal for any reason other than lack of room is a
    /// mistake in the attack.
    #[track_caller]
    fn ask(&mut self, command: Command<'_>) -> Result<(), RefusalKind> {
        self.last_client += 1;
        let applied = self.engine.apply(NOW, ClientId(self.last_client), RequestId(1), &command);
        self.engine.take_changes(&mut self.changes);
        match applied {
            Applied::Refused(RefusalKind::Busy) => Err(RefusalKind::Busy),
            Applied::Refused(kind) => panic!("refused with {}", kind.word()),
            Applied::Answered | Applied::Waits => Ok(()),
        }
    }

    fn put(&mut self, put: &Put<'_>) -> Result<(), RefusalKind> {
        self.ask(Command::Put(*put))
    }

    /// Takes the next task.
    fn take(&mut self, queue: QueueName<'_>) -> Result<Receipt, RefusalKind> {
        while self.engine.poll_output().is_some() {}
        let (queues, selection) = (&[queue.name], Selection::DEFAULT);
        let mode = TakeMode::Lease { ttr: Some(Span::from_ms(1_000)) };
        let (member, count, wait) = (queue.member, 1, Wait::No);
        self.ask(Command::Take(Take { queues, member, count, wait, selection, mode }))?;
        match self.engine.poll_output() {
            Some(Output::Reply { reply: Reply::Tasks { tasks, .. }, .. }) => {
                Ok(tasks[0].receipt().unwrap())
            }
            other => panic!("no task but {other:?}"),
        }
    }

    fn bury(&mut self, payload: Option<&[u8]>, reason: &[u8]) -> Result<(), RefusalKind> {
        let held = Held { queue: QUEUE, by: self.take(QUEUE).map(HeldBy::Receipt)? };
        self.ask(Command::Bury(Bury { payload, reason: Some(reason), ..Bury::new(held) }))
    }

    /// Switches a task without a new payload.
    fn switch(&mut self, number: u64, to: StateKind) -> Result<(), RefusalKind> {
        let id = id(number);
        self.ask(Command::Switch { transfer: Transfer::new(QUEUE, &id), to })
    }

    fn update(
        &mut self,
        queue: QueueName<'_>,
        id: &[u8],
        payload: &[u8],
    ) -> Result<(), RefusalKind> {
        let amendment = Amendment { payload: Some(payload), ..Amendment::default() };
        self.ask(Command::Update(Update { amendment, ..Update::new(queue, id) }))
    }

    fn join(&mut self, topic: &[u8], member: &[u8]) -> Result<(), RefusalKind> {
        self.ask(Command::Member(MemberCommand::Join { topic, member, lease: None }))
    }

    #[track_caller]
    fn check(&self, attack: &str) {
        let (bytes, waiting) = (self.engine.bytes(), self.engine.waiting_bytes());
        assert!(bytes <= LIMITS.bytes_max, "{attack} has come to {bytes} bytes");
        assert!(
            waiting <= LIMITS.waiting_bytes_max,
            "{attack} has come to {waiting} waiting bytes"
        );
    }
}

#[test]
fn no_command_makes_the_engine_grow_without_end() {
    for (what, attack) in ATTACKS.into_iter().chain(WAITING) {
        let mut target = Target::new();
        let mut rounds = 0_u64;
        loop {
            rounds += 1;
            assert!(rounds < 3_000, "{what} finds no end");
            let grown = attack(&mut target, rounds);
            target.check(what);
            if grown == Err(RefusalKind::Busy) {
                break;
            }
        }
        assert!(rounds > 5, "{what} was refused after {rounds} rounds");
        target.engine.check();
        // Everything counts after a restart too, except for the consumers that wait.
        let mut again = Engine::new(LIMITS, 5);
        for change in &target.changes {
            again.restore(change.clone(), None);
        }
        again.start(NOW, 2, target.engine.header());
        again.check();
        assert_eq!(again.bytes(), target.engine.bytes(), "{what}, after a restart");
        // What was requested ends, and all of its room is given back.
        for client in 1..=target.last_client {
            let farewell = Farewell::Ended { unsent: &[] };
            target.engine.disconnect(NOW, ClientId(client), farewell);
        }
        assert_eq!(target.engine.waiting_bytes(), 0, "{what}, when everybody has gone");
    }
}

#[test]
fn what_shrinks_always_works() {
    let mut target = Target::new();
    while target.put(&Put::new(b"q", LARGE)).is_ok() {}
    while target.put(&Put::new(b"q", b"")).is_ok() {}
    target.engine.set_room(Room::Low);
    let receipt = target.take(QUEUE).unwrap();
    let held = Held { queue: QUEUE, by: HeldBy::Receipt(receipt) };
    let amendment = Amendment { payload: Some(b"y"), ..Amendment::default() };
    let (delay, tail) = (Span::ZERO, false);
    target.ask(Command::Release(Release { delay, amendment, tail, ..Release::new(held) })).unwrap();
    target.bury(Some(b""), b"y").unwrap();
    target.update(QUEUE, b"2", b"").unwrap();
    target.ask(Command::Kill { queue: QUEUE, ids: &[b"3"] }).unwrap();
    target.ask(Command::Member(MemberCommand::Leave(b"m"))).unwrap();
    target.ask(Command::Queue(QueueCommand::Truncate(QUEUE))).unwrap();
    target.ask(Command::Queue(QueueCommand::Drop(b"q"))).unwrap();
    target.ask(Command::Member(MemberCommand::Leave(b"n"))).unwrap();
    target.engine.handle_timeout(NOW);
    target.engine.check();
    assert_eq!(target.engine.bytes(), 0);
}
