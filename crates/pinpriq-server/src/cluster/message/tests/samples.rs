//! Messages that dice make up. `pinpriq-proto` tests every command and every output; here are some
//! of each.

use std::sync::Arc;

use pinpriq_proto::command::{Command, Put, QueueName};
use pinpriq_proto::fanout::MemberFigures;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply, TubeShown};
use pinpriq_proto::schedule::Scheduled;
use pinpriq_proto::settings::Paused;
use pinpriq_proto::task::{
    Burial, Bytes, ClientId, Counts, Grant, Holder, LaneName, Lease, Origin, Past, Progress,
    Receipt, RequestId, State, TaskId, TaskRecord, Terms, Trace,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::Holds;
use pinpriq_testing::Dice;

use crate::clients::about::Manners;
use crate::clients::ending::Ending;
use crate::clients::unsent::Unsent;
use crate::cluster::message::Message;
use crate::letters::letter::{Commands, Errand, News, Part, Piece, Question, Standing};

/// Any number, and often a small one.
fn number(dice: &mut Dice) -> u64 {
    match dice.below(4) {
        0 => dice.roll(),
        1 => u64::MAX,
        _ => dice.below(300),
    }
}

fn count(dice: &mut Dice) -> usize {
    usize::try_from(number(dice)).unwrap_or(usize::MAX)
}

fn flag(dice: &mut Dice) -> bool {
    dice.chance(50)
}

fn text(dice: &mut Dice) -> Vec<u8> {
    let length = if dice.chance(10) { 130 } else { dice.index(10) };
    dice.bytes(length)
}

fn bytes(dice: &mut Dice) -> Bytes {
    Arc::from(text(dice))
}

fn several<T>(dice: &mut Dice, of: impl Fn(&mut Dice) -> T) -> Vec<T> {
    (0..dice.index(5)).map(|_| of(dice)).collect()
}

fn grant(dice: &mut Dice) -> Grant {
    Grant { incarnation: number(dice), serial: number(dice) }
}

fn receipt(dice: &mut Dice) -> Receipt {
    Receipt { number: number(dice), grant: grant(dice) }
}

/// A task that often has an attribute, each of them.
fn task(dice: &mut Dice) -> TaskRecord {
    let number = number(dice);
    let at = |dice: &mut Dice| Timestamp::from_ms(dice.below(1 << 40));
    let span = |dice: &mut Dice| Span::from_ms(dice.below(1 << 20));
    let small = |dice: &mut Dice| u32::try_from(dice.below(300)).unwrap();
    let reason = flag(dice).then(|| bytes(dice));
    let (has_counts, has_lane) = (flag(dice), dice.chance(20));
    let counts = [(); 4].map(|()| if has_counts { small(dice) } else { 0 });
    let [timeouts, releases, buries, kicks] = counts;
    let delay = if flag(dice) { span(dice) } else { Span::ZERO };
    let state = match dice.below(6) {
        0 => State::Ready,
        1 => State::Waiting { ready_at: (dice.below(4) > 0).then(|| at(dice)) },
        2 => State::Buried(Burial::of_number(self::number(dice))),
        3 => State::Zombie { purge_at: at(dice) },
        4 => State::Done,
        _ => State::Taken(Lease {
            grant: grant(dice),
            holder: flag(dice).then(|| Holder {
                is_tied: flag(dice),
                ..Holder::of(ClientId(self::number(dice)))
            }),
            deadline: flag(dice).then(|| at(dice)),
            ttr: flag(dice).then(|| span(dice)),
        }),
    };
    let id = match dice.below(3) {
        0 => TaskId::Number(number),
        1 => TaskId::Uuid([small(dice).to_le_bytes()[0]; 16]),
        _ => TaskId::Given(bytes(dice)),
    };
    let origin = |dice: &mut Dice| Origin {
        queue: bytes(dice),
        id: TaskId::Number(self::number(dice)),
        put_at: at(dice),
        attempts: small(dice),
        failures: small(dice),
        at: at(dice),
    };
    TaskRecord {
        number,
        queue: bytes(dice),
        lane: has_lane.then(|| LaneName { number: dice.below(9), member: bytes(dice) }),
        id,
        put_at: at(dice),
        terms: Terms::of(flag(dice).then(|| bytes(dice)), flag(dice).then(|| span(dice))),
        progress: Progress {
            priority: flag(dice).then(|| dice.roll().cast_signed()),
            seq: if flag(dice) { number } else { self::number(dice) },
            expires_at: flag(dice).then(|| at(dice)),
            attempts: small(dice),
            failures: small(dice),
            reason,
            trace: Trace::of(delay, Counts { timeouts, releases, buries, kicks }),
            state,
        },
        past: Past::of(
            flag(dice).then(|| origin(dice)),
            flag(dice).then(|| Scheduled { schedule: bytes(dice), slot: Some(at(dice)) }),
            flag(dice).then(|| bytes(dice)),
        ),
        payload: bytes(dice),
        away: None,
        shared: flag(dice),
    }
}

/// This number of commands.
pub(super) fn commands(dice: &mut Dice, count: usize) -> Commands {
    let mut commands = Commands::default();
    for _ in 0..count {
        let (one, other) = (text(dice), text(dice));
        let queue = QueueName { name: &one, member: flag(dice).then_some(&other) };
        let receipts = several(dice, receipt);
        let command = match dice.below(5) {
            0 => Command::Put(Put::new(&one, &other)),
            1 => Command::Credit(u32::try_from(dice.below(1 << 32)).unwrap()),
            2 => Command::Get { queue, id: &other },
            3 => Command::AckAll { queue, receipts: &receipts },
            _ => Command::GiveBack(&receipts),
        };
        commands.push(RequestId(dice.roll()), |out| encode_command(&command, out));
    }
    commands
}

fn unsent(dice: &mut Dice) -> Unsent {
    let (popped, leases) = (several(dice, task), several(dice, receipt));
    Unsent { popped, popped_away: Vec::new(), leases }
}

/// Any message.
pub(super) fn message(dice: &mut Dice) -> Message {
    let (shard, client) = (dice.index(1_024), ClientId(number(dice)));
    match dice.below(12) {
        0 => Message::Serves {
            shard,
            term: number(dice),
            extent: flag(dice).then(|| (number(dice), number(dice))),
            is_suspended: flag(dice),
        },
        1 => Message::Released { shard },
        2 => Message::Failed { shard },
        3 => Message::Clock { wall_ms: number(dice) },
        4..8 => Message::News { shard, client, news: news(dice) },
        _ => Message::Errand { shard, term: number(dice), client, errand: errand(dice) },
    }
}

/// Any errand that may go to another node.
fn errand(dice: &mut Dice) -> Errand {
    match dice.below(14) {
        12 => Errand::Permit(number(dice)),
        13 => Errand::Aside(commands(dice, 1)),
        11 => Errand::Account(flag(dice).then(|| bytes(dice))),
        0 => Errand::Open(Manners {
            tells_refusals: flag(dice),
            waits_for_room: flag(dice),
            groups_per_turn: count(dice),
            requeues: flag(dice),
        }),
        1 => {
            let count = dice.index(5);
            Errand::Commands(commands(dice, count))
        }
        2 => Errand::Credit(u32::try_from(dice.below(1 << 32)).unwrap()),
        3 => Errand::Ask(Question::Command(commands(dice, 1))),
        4 => Errand::Ask(Question::Delivered),
        5 => Errand::Reset,
        6 => Errand::EndWaits,
        7 => Errand::End { stopping: flag(dice), unsent: several(dice, receipt) },
        8 => Errand::Sent(count(dice)),
        9 => Errand::Cut { heard: number(dice), unsent: unsent(dice) },
        _ => Errand::Back { outputs: number(dice), unsent: unsent(dice) },
    }
}

fn reply(dice: &mut Dice) -> Reply {
    match dice.below(6) {
        0 => Reply::Done,
        1 => Reply::PutOutcome(TaskId::Number(number(dice)), dice.pick(&Outcome::ALL)),
        2 => Reply::Tasks { tasks: several(dice, task), popped: flag(dice) },
        3 => Reply::Count(number(dice)),
        4 => Reply::Names { names: several(dice, bytes), more: flag(dice) },
        _ => Reply::Refused(Refusal::new(dice.pick(&RefusalKind::ALL), "it is not so")),
    }
}

fn piece(dice: &mut Dice) -> Piece {
    let client = ClientId(dice.roll());
    match dice.below(8) {
        0 => {
            let output =
                Output::Reply { client, request: RequestId(number(dice)), reply: reply(dice) };
            Piece::Output(output, Holds::default())
        }
        1 => {
            let (tasks, popped) = (several(dice, task), flag(dice));
            Piece::Output(Output::Delivery { client, tasks, popped }, Holds::default())
        }
        2 => Piece::Part(Part::Reply(reply(dice))),
        3 => Piece::Part(Part::Delivered(number(dice))),
        4 => Piece::Part(Part::Done),
        5 => Piece::Members(several(dice, |dice| MemberFigures {
            member: bytes(dice),
            incarnation: number(dice),
            lease_until: Timestamp::from_ms(number(dice)),
            ready: number(dice),
            taken: number(dice),
        })),
        6 => Piece::Tubes(several(dice, |dice| TubeShown {
            name: bytes(dice),
            exists: flag(dice),
            came_at: Timestamp::from_ms(number(dice)),
            came_after: number(dice),
            counts: [number(dice); 6],
            urgent: number(dice),
            put: number(dice),
            deletes: number(dice),
            reserves: number(dice),
            paused: Paused::default(),
            paused_for: Span::from_ms(number(dice)),
        })),
        _ => Piece::Lost,
    }
}

/// Any news that may go to another node.
fn news(dice: &mut Dice) -> News {
    News {
        pieces: several(dice, piece),
        payloads: None,
        tells_refusals: flag(dice),
        consumed: count(dice),
        resets: number(dice),
        delivered: number(dice),
        standing: Standing {
            stalled: flag(dice),
            subscriptions: u32::from(flag(dice)),
            ended: flag(dice).then(|| dice.pick(&Ending::ALL)),
        },
    }
}
