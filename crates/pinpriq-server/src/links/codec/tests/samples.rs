//! Letters that dice make up. `pinpriq-proto` tests every command and every output; here are some
//! of each.

use std::sync::Arc;

use pinpriq_dice::Dice;
use pinpriq_proto::command::{Command, Put, QueueName};
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::{Outcome, Output, Refusal, RefusalKind, Reply};
use pinpriq_proto::task::{
    Bytes, ClientId, Grant, Holder, LaneName, Lease, Past, Progress, Receipt, RequestId, State,
    TaskId, TaskRecord, Terms,
};
use pinpriq_proto::time::{Span, Timestamp};
use pinpriq_store::durable::Holds;

use crate::clients::about::Manners;
use crate::clients::ending::Ending;
use crate::clients::unsent::Unsent;
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

fn task(dice: &mut Dice) -> TaskRecord {
    let number = number(dice);
    let lease = Lease {
        grant: grant(dice),
        holder: Some(Holder { is_tied: flag(dice), ..Holder::of(ClientId(dice.roll())) }),
        deadline: Some(Timestamp::from_ms(dice.below(1 << 40))),
        ttr: Some(Span::from_ms(dice.below(1 << 20))),
    };
    let lane = LaneName { number: dice.below(9), member: bytes(dice) };
    TaskRecord {
        number,
        queue: bytes(dice),
        lane: dice.chance(20).then_some(lane),
        id: TaskId::Number(number),
        put_at: Timestamp::from_ms(dice.below(1 << 40)),
        terms: Terms::of(Some(bytes(dice)), None),
        progress: Progress {
            priority: Some(dice.roll().cast_signed()),
            seq: number,
            expires_at: None,
            attempts: 3,
            failures: 1,
            reason: Some(bytes(dice)),
            trace: None,
            state: if flag(dice) { State::Taken(lease) } else { State::Ready },
        },
        past: Past::of(None, None, Some(bytes(dice))),
        payload: bytes(dice),
        away: None,
        shared: false,
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

/// Any errand that may go to another node.
pub(super) fn errand(dice: &mut Dice) -> Errand {
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
    match dice.below(6) {
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
        _ => Piece::Lost,
    }
}

/// Any news that may go to another node.
pub(super) fn news(dice: &mut Dice) -> News {
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
