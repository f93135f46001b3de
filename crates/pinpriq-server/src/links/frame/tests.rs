//! Tests of greetings and frames as bytes.

use pinpriq_testing::Dice;

use super::*;

fn decoded(bytes: &[u8; Greeting::BYTES]) -> Result<Greeting, Unwelcome> {
    let versions = Greeting::decode_start(bytes.first_chunk().unwrap())?;
    Ok(Greeting::decode(versions, bytes.last_chunk().unwrap()))
}

#[test]
fn a_greeting_comes_back() {
    let versions = Versions { newest: 513, oldest: 77 };
    let own = Greeting { versions, instance: u128::MAX - 5, other: 7 };
    let mut bytes = own.encode();
    assert_eq!(decoded(&bytes), Ok(own));
    bytes[0] = b'G';
    assert_eq!(decoded(&bytes), Err(Unwelcome::Stranger));
}

#[test]
fn the_highest_version_that_both_speak_is_chosen() {
    let versions = |oldest, newest| Versions { newest, oldest };
    let own = versions(3, 4);
    for (theirs, chosen) in [
        (versions(3, 4), Some(4)),
        (versions(2, 3), Some(3)),
        (versions(4, 5), Some(4)),
        (versions(1, 9), Some(4)),
        (versions(1, 2), None),
        (versions(5, 6), None),
        (versions(4, 3), None),
        (versions(u16::MAX, 0), None),
    ] {
        let refused = Err(Unwelcome::Versions { theirs, own });
        assert_eq!(own.common(theirs), chosen.map_or(refused, Ok));
        assert_eq!(theirs.common(own).ok(), chosen);
    }
}

#[test]
fn frames_come_in_order_however_they_are_cut() {
    let long = vec![9; 70_000];
    let bodies: [&[u8]; 4] = [b"one", b"", &long, b"four"];
    let mut stream = Vec::new();
    for body in bodies {
        put_frame(body, &mut stream).unwrap();
    }
    let mut dice = Dice::new(3);
    let (mut input, mut at, mut seen) = (Vec::new(), 0, Vec::new());
    while at < stream.len() {
        let step = (1 + dice.index(20_000)).min(stream.len() - at);
        input.extend_from_slice(&stream[at..at + step]);
        at += step;
        while let Some((body, used)) = take_frame(&input).unwrap() {
            seen.push(body.to_vec());
            input.drain(..used);
        }
    }
    assert_eq!(seen, bodies);
    assert!(input.is_empty());
}

#[test]
fn a_frame_has_a_greatest_length() {
    let mut out = Vec::new();
    let long = vec![0; BODY_BYTES_MAX + 1];
    let refused = put_frame(&long, &mut out);
    assert_eq!((refused, out.len()), (Err(TooLong(long.len())), 0));
    put_frame(&long[1..], &mut out).unwrap();
    assert!(take_frame(&out).unwrap().is_some_and(|(body, used)| body.len() < used));
    let head = u32::try_from(long.len()).unwrap().to_le_bytes();
    assert_eq!(take_frame(&head), Err(TooLong(long.len())));
}
