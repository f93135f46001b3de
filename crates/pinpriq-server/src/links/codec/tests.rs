//! Tests that errands and news come back as they were, and that no bytes do harm.

mod samples;

use pinpriq_dice::Dice;
use pinpriq_proto::command::Command;
use pinpriq_proto::letters::encode_command;
use pinpriq_proto::reply::Output;

use self::samples::{errand, news};
use super::*;
use crate::clients::unsent::Unsent;
use crate::letters::letter::{Commands, Errand, News, Part, Piece, Question};

/// How many letters of each kind are tried.
const LETTERS: u64 = 600;

fn errand_bytes(errand: &Errand) -> Vec<u8> {
    let mut out = Vec::new();
    encode_errand(errand, &mut out);
    out
}

fn news_bytes(news: &News) -> Vec<u8> {
    let mut out = Vec::new();
    encode_news(news, &mut out);
    out
}

/// Checks that bytes are refused, or the only encoding of what they stand for.
fn refused_or_the_only_encoding(bytes: &[u8], seed: u64) {
    if let Ok(errand) = decode_errand(bytes) {
        assert_eq!(errand_bytes(&errand), bytes, "seed {seed}");
    }
    if let Ok(news) = decode_news(bytes) {
        assert_eq!(news_bytes(&news), bytes, "seed {seed}");
    }
}

fn commands_are_same(one: &Commands, other: &Commands) -> bool {
    one.encoded() == other.encoded() && one.len() == other.len()
}

fn unsent_is_same(one: &Unsent, other: &Unsent) -> bool {
    (&one.popped, &one.leases) == (&other.popped, &other.leases) && other.popped_away.is_empty()
}

fn errand_is_same(one: &Errand, other: &Errand) -> bool {
    match (one, other) {
        (Errand::Open(one), Errand::Open(other)) => one == other,
        (Errand::Commands(one), Errand::Commands(other))
        | (Errand::Aside(one), Errand::Aside(other))
        | (Errand::Ask(Question::Command(one)), Errand::Ask(Question::Command(other))) => {
            commands_are_same(one, other)
        }
        (Errand::Account(one), Errand::Account(other)) => one == other,
        (Errand::Credit(one), Errand::Credit(other)) => one == other,
        (Errand::Permit(one), Errand::Permit(other)) => one == other,
        (Errand::Ask(Question::Delivered), Errand::Ask(Question::Delivered))
        | (Errand::Reset, Errand::Reset)
        | (Errand::EndWaits, Errand::EndWaits) => true,
        (
            Errand::End { stopping, unsent },
            Errand::End { stopping: stopping_too, unsent: unsent_too },
        ) => (stopping, unsent) == (stopping_too, unsent_too),
        (Errand::Sent(one), Errand::Sent(other)) => one == other,
        (
            Errand::Cut { heard: outputs, unsent },
            Errand::Cut { heard: outputs_too, unsent: unsent_too },
        )
        | (
            Errand::Back { outputs, unsent },
            Errand::Back { outputs: outputs_too, unsent: unsent_too },
        ) => outputs == outputs_too && unsent_is_same(unsent, unsent_too),
        _ => false,
    }
}

fn piece_is_same((one, other): (&Piece, &Piece)) -> bool {
    match (one, other) {
        (Piece::Output(one, _), Piece::Output(other, holds)) => one == other && holds.is_empty(),
        (Piece::Part(Part::Reply(one)), Piece::Part(Part::Reply(other))) => one == other,
        (Piece::Part(Part::Delivered(one)), Piece::Part(Part::Delivered(other))) => one == other,
        (Piece::Part(Part::Done), Piece::Part(Part::Done)) | (Piece::Lost, Piece::Lost) => true,
        _ => false,
    }
}

fn news_are_same(one: &News, other: &News) -> bool {
    let of = |news: &News| {
        let counts = (news.consumed, news.resets, news.delivered, news.pieces.len());
        (news.tells_refusals, news.standing, counts, news.payloads.is_some())
    };
    of(one) == of(other) && one.pieces.iter().zip(&other.pieces).all(piece_is_same)
}

#[test]
fn every_errand_comes_back() {
    for seed in 0..LETTERS {
        let errand = errand(&mut Dice::new(seed));
        let decoded = decode_errand(&errand_bytes(&errand));
        assert!(decoded.is_ok_and(|decoded| errand_is_same(&errand, &decoded)), "seed {seed}");
    }
}

#[test]
fn all_news_come_back() {
    for seed in 0..LETTERS {
        let news = news(&mut Dice::new(seed));
        let decoded = decode_news(&news_bytes(&news));
        assert!(decoded.is_ok_and(|decoded| news_are_same(&news, &decoded)), "seed {seed}");
    }
}

#[test]
fn commands_that_were_carried_out_do_not_travel() {
    let mut commands = samples::commands(&mut Dice::new(1), 3);
    let (_, _, first) = commands.first().unwrap();
    commands.pass(first);
    let left = commands.encoded().to_vec();
    let decoded = decode_errand(&errand_bytes(&Errand::Commands(commands)));
    let Ok(Errand::Commands(decoded)) = decoded else { panic!("another errand came back") };
    assert_eq!(decoded.encoded(), left);
}

#[test]
fn a_command_that_only_a_newer_node_knows_is_refused_with_a_sentence() {
    let mut commands = Commands::default();
    commands.push(pinpriq_proto::task::RequestId(1), |out| out.push(250));
    let Err(refused) = decode_errand(&errand_bytes(&Errand::Commands(commands))) else {
        panic!("an unknown command was read")
    };
    assert_eq!(refused.to_string(), "command 250 is not known: a newer version wrote it");
}

#[test]
fn a_letter_that_is_cut_anywhere_is_refused() {
    for seed in 0..LETTERS / 4 {
        let mut dice = Dice::new(seed);
        let (errand, news) = (errand(&mut dice), news(&mut dice));
        let letter = errand_bytes(&errand);
        // The commands of an errand fill the rest, so fewer of them are an errand too.
        let many = matches!(errand, Errand::Commands(_));
        for cut in (0..letter.len()).filter(|_| !many) {
            assert!(decode_errand(&letter[..cut]).is_err(), "seed {seed}, cut at {cut}");
        }
        for cut in 0..letter.len() {
            refused_or_the_only_encoding(&letter[..cut], seed);
        }
        let letter = news_bytes(&news);
        for cut in 0..letter.len() {
            assert!(decode_news(&letter[..cut]).is_err(), "seed {seed}, cut at {cut}");
        }
    }
}

#[test]
fn a_changed_byte_is_refused_or_means_something_else() {
    for seed in 0..LETTERS / 4 {
        let mut dice = Dice::new(seed);
        for mut letter in [errand_bytes(&errand(&mut dice)), news_bytes(&news(&mut dice))] {
            for at in 0..letter.len() {
                let before = letter[at];
                letter[at] ^= u8::try_from(1 + dice.below(255)).unwrap();
                refused_or_the_only_encoding(&letter, seed);
                letter[at] = before;
            }
            letter.extend(dice.bytes(3));
            refused_or_the_only_encoding(&letter, seed);
        }
    }
}

#[test]
fn any_bytes_are_refused_or_the_only_encoding() {
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let length = dice.index(60);
        let mut bytes = dice.bytes(length);
        if let Some(kind) = bytes.first_mut() {
            *kind &= 0xF;
        }
        refused_or_the_only_encoding(&bytes, seed);
    }
}

#[test]
fn what_is_no_command_is_refused_before_a_guest_sees_it() {
    let command = |bytes: &[u8]| {
        let mut commands = Commands::default();
        commands.push(pinpriq_proto::task::RequestId(1), |out| out.extend_from_slice(bytes));
        commands
    };
    let credit = |out: &mut Vec<u8>| encode_command(&Command::Credit(1), out);
    let mut good = Vec::new();
    credit(&mut good);
    assert!(decode_errand(&errand_bytes(&Errand::Commands(command(&good)))).is_ok());
    for bad in [&b""[..], b"\xFF", &[&good[..], &[0]].concat()] {
        assert!(decode_errand(&errand_bytes(&Errand::Commands(command(bad)))).is_err());
        let question = Errand::Ask(Question::Command(command(bad)));
        assert!(decode_errand(&errand_bytes(&question)).is_err());
    }
}

#[test]
fn a_question_has_one_command() {
    for count in [0, 2] {
        let commands = samples::commands(&mut Dice::new(1), count);
        let letter = errand_bytes(&Errand::Ask(Question::Command(commands)));
        let refused = decode_errand(&letter).err();
        assert_eq!(refused, Some(Malformed::OutOfRange("commands of a question")));
    }
}

#[test]
fn another_command_is_not_what_was_not_sent() {
    let mut letter = vec![8, 0];
    put_sized(&mut letter, |out| encode_command(&Command::Credit(1), out));
    assert_eq!(decode_errand(&letter).err(), Some(Malformed::OutOfRange("leases")));
    let mut letter = vec![11, 0];
    put_sized(&mut letter, |out| encode_command(&Command::GiveBack(&[]), out));
    put_sized(&mut letter, |out| encode_command(&Command::GiveBack(&[]), out));
    assert_eq!(decode_errand(&letter).err(), Some(Malformed::OutOfRange("popped")));
}

#[test]
fn a_part_of_a_reply_has_no_client() {
    let with = |output: &Output| {
        let mut letter = vec![0, 0, 0, 0, 0, 0, 1, 2];
        put_sized(&mut letter, |out| pinpriq_proto::letters::encode_output(output, out));
        decode_news(&letter).err()
    };
    let reply = |client, request| Output::Reply {
        client: pinpriq_proto::task::ClientId(client),
        request: pinpriq_proto::task::RequestId(request),
        reply: pinpriq_proto::reply::Reply::Done,
    };
    assert_eq!(with(&reply(0, 0)), None);
    let refused = Some(Malformed::OutOfRange("part of a reply"));
    assert_eq!((with(&reply(0, 1)), with(&reply(1, 0))), (refused, refused));
}

#[test]
fn a_declared_length_allocates_nothing() {
    // As many pieces as a number can say, and none that follows.
    let mut letter = vec![0; 6];
    letter.extend([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]);
    assert_eq!(decode_news(&letter).err(), Some(Malformed::Short));
    // Commands of 4 GiB.
    let mut letter = vec![2];
    letter.extend([0; 8]);
    letter.extend([0xFF; 4]);
    assert_eq!(decode_errand(&letter).err(), Some(Malformed::Short));
}

#[test]
fn the_bytes_are_these() {
    let letter = errand_bytes(&Errand::Cut { heard: 300, unsent: Unsent::default() });
    let sized = |command: &Command<'_>| {
        let mut out = Vec::new();
        put_sized(&mut out, |out| encode_command(command, out));
        out
    };
    let (put_back, give_back) = (sized(&Command::PutBack(&[])), sized(&Command::GiveBack(&[])));
    assert_eq!(put_back[..4], [2, 0, 0, 0]);
    let expected = [&[10, 0xAC, 2][..], &put_back, &give_back].concat();
    assert_eq!(letter, expected);
    let news = News { consumed: 5, pieces: vec![Piece::Lost], ..News::default() };
    assert_eq!(news_bytes(&news), [0, 0, 0, 5, 0, 0, 1, 5]);
}
