//! Tests that messages come back as they were, and that no bytes do harm. How each declaration is
//! written is tested in `pinpriq-proto`.

mod samples;

use pinpriq_proto::command::Command;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::Reply;
use pinpriq_proto::task::RequestId;
use pinpriq_store::durable::Holds;
use pinpriq_testing::Dice;

use super::*;
use crate::clients::unsent::Unsent;
use crate::letters::letter::Commands;

/// How many messages are tried.
const MESSAGES: u64 = 1_200;

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut body = Vec::new();
    put(message, &mut body);
    body.split_off(LENGTH_BYTES)
}

/// Reads one message that has these bytes.
fn read_one(bytes: &[u8]) -> Result<Message, Malformed> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let mut found = None;
    read(&[&length, bytes].concat(), |message| found = Some(message))?;
    Ok(found.unwrap())
}

/// What is written for a message that was read from these bytes, if they are one.
fn written_again(bytes: &[u8]) -> Option<Vec<u8>> {
    read_one(bytes).ok().map(|message| bytes_of(&message))
}

/// Checks that bytes are refused, or the only encoding of what they stand for, but for what a newer
/// node may have added to it.
fn refused_or_the_only_encoding(bytes: &[u8], seed: u64) {
    if let Some(again) = written_again(bytes)
        && again != bytes
    {
        assert!(again.len() < bytes.len(), "seed {seed}: {bytes:x?}, again {again:x?}");
        assert_eq!(written_again(&again).as_ref(), Some(&again), "seed {seed}");
    }
}

#[test]
fn every_message_comes_back() {
    for seed in 0..MESSAGES {
        let message = bytes_of(&samples::message(&mut Dice::new(seed)));
        assert_eq!(written_again(&message), Some(message), "seed {seed}");
    }
}

#[test]
fn commands_that_were_carried_out_do_not_travel() {
    let with = |commands| Message::Errand {
        shard: 1,
        term: 2,
        client: ClientId(3),
        errand: Errand::Commands(commands),
    };
    let mut commands = samples::commands(&mut Dice::new(1), 3);
    let (_, _, first) = commands.first().unwrap();
    commands.pass(first);
    let left = commands.len();
    let Ok(Message::Errand { errand: Errand::Commands(read), .. }) =
        read_one(&bytes_of(&with(commands)))
    else {
        panic!("another errand came back")
    };
    assert_eq!((read.count(), read.len()), (2, left));
}

#[test]
fn a_message_that_is_cut_or_changed_anywhere_is_refused_or_means_something_else() {
    for seed in 0..MESSAGES / 4 {
        let mut dice = Dice::new(seed);
        let mut message = bytes_of(&samples::message(&mut dice));
        for at in 0..message.len() {
            assert!(read_one(&message[..at]).is_err(), "seed {seed}, cut at {at}");
            let before = message[at];
            message[at] ^= u8::try_from(1 + dice.below(255)).unwrap();
            refused_or_the_only_encoding(&message, seed);
            message[at] = before;
        }
        message.extend(dice.bytes(3));
        refused_or_the_only_encoding(&message, seed);
        let length = dice.index(60);
        refused_or_the_only_encoding(
            &[&[u8::try_from(dice.below(7)).unwrap()][..], &dice.bytes(length)].concat(),
            seed,
        );
    }
}

#[test]
fn a_message_is_read_when_all_of_it_has_come() {
    let mut body = Vec::new();
    put(&Message::Clock { wall_ms: 5 }, &mut body);
    let first = body.len();
    put(&Message::Released { shard: 7 }, &mut body);
    for cut in 0..=body.len() {
        let mut count = 0;
        let whole = if cut < first {
            0
        } else if cut < body.len() {
            1
        } else {
            2
        };
        let at = [0, first, body.len()][whole];
        assert_eq!((read(&body[..cut], |_| count += 1), count), (Ok(at), whole));
    }
}

#[test]
fn what_a_newer_node_says_is_refused_with_a_sentence_or_passed_over() {
    let refused = |bytes: &[u8]| read_one(bytes).err().map(|why| why.to_string());
    let newer = |what: &str| Some(format!("{what} is not known: a newer version wrote it"));
    let clock = bytes_of(&Message::Clock { wall_ms: 5 });
    assert_eq!(clock, [6, 5, 0]);
    assert_eq!(refused(&[250, 5, 0]), newer("message 250"));
    assert_eq!(refused(&[6, 5, 9, 1, 0]), newer("the field 9 of clock"));
    assert_eq!(written_again(&[6, 5, 200, 1, 77, 0]), Some(clock), "it may be ignored");
    let errand = |errand: &[u8]| refused(&[&[5, 1, 2, 3], errand, &[0]].concat());
    assert_eq!(errand(&[99]), newer("errand 99"));
    assert_eq!(errand(&[7, 0, 8, 0]), newer("the field 8 of end"));
    let mut commands = Commands::default();
    commands.push(RequestId(1), |out| out.push(250));
    let ask = Message::Errand {
        shard: 1,
        term: 2,
        client: ClientId(3),
        errand: Errand::Commands(commands),
    };
    assert_eq!(refused(&bytes_of(&ask)), newer("command 250"));
}

#[test]
fn what_is_no_command_is_refused_before_a_guest_sees_it() {
    let mut good = Vec::new();
    encode_command(&Command::Credit(1), &mut good);
    let reads = |bytes: &[u8], count: usize, errand: fn(Commands) -> Errand| {
        let mut commands = Commands::default();
        for _ in 0..count {
            commands.push(RequestId(1), |out| out.extend_from_slice(bytes));
        }
        let (shard, term, client) = (1, 2, ClientId(3));
        let message = Message::Errand { shard, term, client, errand: errand(commands) };
        read_one(&bytes_of(&message)).err()
    };
    let ask: fn(Commands) -> Errand = |commands| Errand::Ask(Question::Command(commands));
    let one = Some(Malformed::OutOfRange("commands of a question"));
    for (errand, most) in [(ask, 1), (Errand::Aside, 1), (Errand::Commands, 3)] {
        for count in 0..3 {
            let is_fine = most > 1 || count == 1;
            assert_eq!(reads(&good, count, errand), one.filter(|_| !is_fine));
        }
        for bad in [&b""[..], b"\xFF", &[&good[..], &[0]].concat()] {
            assert!(reads(bad, 1, errand).is_some());
        }
    }
}

#[test]
fn a_reply_within_a_reply_that_no_engine_gives_is_refused() {
    let within = Reply::Transaction(vec![Reply::Transaction(Vec::new())]);
    let refused = Some(Malformed::OutOfRange("reply of a step"));
    let (client, request) = (ClientId(1), RequestId(2));
    let output = Output::Reply { client, request, reply: within.clone() };
    for piece in [Piece::Output(output, Holds::default()), Piece::Part(Part::Reply(within))] {
        let news = News { pieces: vec![piece], ..News::default() };
        assert_eq!(read_one(&bytes_of(&Message::News { shard: 1, client, news })).err(), refused);
    }
}

#[test]
fn a_declared_length_allocates_nothing() {
    let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
    for start in [&[4, 1, 2][..], &[5, 1, 2, 3, 2], &[5, 1, 2, 3, 11, 1]] {
        assert_eq!(read_one(&[start, &huge].concat()).err(), Some(Malformed::Short), "{start:?}");
    }
}

#[test]
fn the_bytes_are_these() {
    let (shard, term, client) = (1, 300, ClientId(3));
    let errand = Errand::Cut { heard: 300, unsent: Unsent::default() };
    let cut = bytes_of(&Message::Errand { shard, term, client, errand });
    assert_eq!(cut, [5, 1, 0xAC, 2, 3, 9, 0xAC, 2, 0, 0, 0, 0, 0]);
    let news = News { consumed: 5, pieces: vec![Piece::Lost], ..News::default() };
    let news = bytes_of(&Message::News { shard, client, news });
    assert_eq!(news, [4, 1, 3, 1, 3, 5, 0, 0, 0, 0, 0, 0]);
    let (extent, is_suspended) = (Some((7, 6)), true);
    let serves = bytes_of(&Message::Serves { shard, term, extent, is_suspended });
    assert_eq!(serves, [1, 1, 0xAC, 2, 1, 7, 6, 2, 0]);
}
