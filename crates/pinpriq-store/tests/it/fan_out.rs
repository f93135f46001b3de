//! Members at work: an engine with its journal on a disk in memory, and random commands about
//! topics. What members are promised over crashes is checked by the simulator.

use pinpriq_proto::command::{
    Ack, Amendment, Bury, Command, Held, HeldBy, QueueCommand, QueueName, Release, Selection, Take,
    TakeMode, Wait,
};
use pinpriq_proto::fanout::{Deadline, MemberCommand, Publish};
use pinpriq_proto::limits::Limits;
use pinpriq_proto::reply::{Output, Reply};
use pinpriq_proto::settings::{CAPACITY, IDS, Ids, TTL, Value};
use pinpriq_proto::task::{ClientId, Receipt, RequestId, Terms};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::{Durable, JournalOptions, StoreError};
use pinpriq_testing::Dice;
use pinpriq_testing::faulty_disk::FaultyDisk;

use crate::driving::{SEGMENT_BYTES, journal};

const TOPICS: [&[u8]; 3] = [b"news", b"orders", b"a rather long name of a topic"];
const MEMBERS: [&[u8]; 4] = [b"anna", b"ben", b"cleo", b"dora"];

/// How long a member lives without a sign of life.
const LEASE: Span = Span::from_ms(700);

/// Options with which the log is compacted as often as possible.
pub(crate) fn tight(salt_seed: u64) -> JournalOptions {
    let slack_bytes = u64::from(SEGMENT_BYTES);
    JournalOptions { slack_bytes, ..crate::driving::options(salt_seed) }
}

/// A server whose members are at work.
pub(crate) struct Office {
    pub(crate) durable: Durable,
    now: Timestamp,
    publications: usize,
    /// Taken tasks with their lanes.
    holdings: Vec<(Receipt, QueueName<'static>)>,
}

impl Office {
    pub(crate) fn open(disk: &FaultyDisk, options: JournalOptions, now: Timestamp) -> Self {
        let store = journal(disk, options).unwrap();
        let (durable, _) = Durable::open(store, Limits::default(), now, 1).unwrap();
        Self { now: durable.now(), durable, publications: 0, holdings: Vec::new() }
    }

    fn ask(&mut self, command: Command<'_>) {
        self.durable.apply(self.now, ClientId(1), RequestId(1), &command);
    }

    /// A turn with one random command, whose changes are one batch.
    pub(crate) fn random_turn(&mut self, dice: &mut Dice) -> Result<(), StoreError> {
        let pause = if dice.chance(3) { 300 } else { dice.below(12) };
        self.now = self.now.after(Span::from_ms(pause));
        if dice.chance(50) {
            self.durable.handle_timeout(self.now);
        }
        let mut below = |count: usize| usize::try_from(dice.below(count as u64)).unwrap();
        let lane = QueueName { name: TOPICS[below(3)], member: Some(MEMBERS[below(4)]) };
        let (roll, bytes, mixed) = (below(100), below(700), below(1_000));
        self.random_command(lane, roll, bytes, mixed);
        self.durable.commit()?;
        while let Some((_, output)) = self.durable.poll_output() {
            if let Output::Reply { reply: Reply::Tasks { tasks, popped: false }, .. } = output {
                let taken = tasks.iter().filter_map(|task| Some((task.receipt()?, lane)));
                self.holdings.extend(taken);
            }
        }
        self.durable.drive(self.now)
    }

    fn random_command(
        &mut self,
        lane: QueueName<'static>,
        roll: usize,
        bytes: usize,
        mixed: usize,
    ) {
        let (topic, member) = (lane.name, lane.member.unwrap());
        let count = 1 + u32::try_from(mixed % 3).unwrap();
        match roll {
            0..=15 => {
                let join = MemberCommand::Join { topic, member, lease: Some(LEASE) };
                self.ask(Command::Member(join));
            }
            16..=19 => self.ask(Command::Member(MemberCommand::Beat { member, lease: None })),
            20..=47 => self.publish(topic, bytes, mixed),
            48..=52 => self.take(lane, count, TakeMode::Pop),
            53..=66 => {
                let ttr = mixed.is_multiple_of(3).then_some(Span::from_ms(30));
                self.take(lane, count, TakeMode::Lease { ttr });
            }
            67..=88 => self.settle_a_holding(mixed),
            89..=91 => self.ask(Command::Queue(QueueCommand::Truncate(lane))),
            92..=94 => {
                self.ask(Command::Member(MemberCommand::LeaveTopic { topic, member }));
            }
            95 => self.ask(Command::Member(MemberCommand::Leave(member))),
            _ => {
                let settings = [
                    (CAPACITY, Value::Number(4)),
                    (CAPACITY, Value::None),
                    (IDS, Ids::Uuid.into()),
                    (TTL, Value::Span(Span::from_ms(1 << 40))),
                ];
                let settings = &settings[mixed % 4..][..1];
                self.ask(Command::Queue(QueueCommand::Set { queue: lane, settings }));
            }
        }
    }

    fn publish(&mut self, topic: &[u8], bytes: usize, mixed: usize) {
        let index = self.publications;
        self.publications += 1;
        let payload: Vec<u8> =
            (0..bytes).map(|at| u8::try_from((at * 7 + index) % 251).unwrap()).collect();
        let ends = mixed.is_multiple_of(8);
        let key = index.is_multiple_of(3).then_some(&b"k"[..]);
        self.ask(Command::Publish(Publish {
            topic,
            payload: &payload,
            deadline: if ends { Deadline::After(Span::from_ms(60)) } else { Deadline::OfLane },
            priority: Some(i64::try_from(index % 5).unwrap() - 2),
            terms: Terms { key, ..Terms::NONE },
        }));
    }

    fn take(&mut self, lane: QueueName<'_>, count: u32, mode: TakeMode) {
        let (queues, selection) = (&[lane.name], Selection::DEFAULT);
        let member = lane.member;
        self.ask(Command::Take(Take { queues, member, count, wait: Wait::No, selection, mode }));
    }

    /// Acknowledges, releases or buries a taken task, if there is any.
    fn settle_a_holding(&mut self, mixed: usize) {
        if self.holdings.is_empty() {
            return;
        }
        let (receipt, queue) = self.holdings.remove(mixed % self.holdings.len());
        let held = Held { queue, by: HeldBy::Receipt(receipt) };
        let payload = (mixed % 10 < 7).then_some(&b"another one"[..]);
        let amendment = Amendment { payload, ..Amendment::default() };
        let delay = Span::from_ms((mixed % 2 * 100) as u64);
        self.ask(match mixed % 10 {
            0..=4 => Command::Ack(Ack::new(held)),
            5..=8 => Command::Release(Release {
                delay,
                amendment,
                tail: mixed % 4 == 3,
                ..Release::new(held)
            }),
            _ => Command::Bury(Bury { reason: Some(b"no"), ..Bury::new(held) }),
        });
    }

    /// Makes everything durable, including what is written again meanwhile.
    pub(crate) fn finish(&mut self) {
        self.durable.finish(self.now).unwrap();
        for _ in 0..100 {
            if self.durable.figures().bytes_pending == 0 {
                return;
            }
            self.durable.finish(self.now).unwrap();
        }
        panic!("there is always more to be written again");
    }
}
