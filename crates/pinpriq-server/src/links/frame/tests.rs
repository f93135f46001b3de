//! Tests that nodes with one secret understand each other, and that nobody else is believed.

use pinpriq_dice::Dice;

use super::*;

const SECRET: Secret = [7; 32];

fn greeting(instance: u128, fresh: u8) -> Greeting {
    Greeting { versions: VERSIONS, instance, fresh: [fresh; 32] }
}

fn meeting(secret: &Secret) -> Meeting {
    Meeting::of(secret, &greeting(1, 10), &greeting(2, 20))
}

fn decoded(bytes: &[u8; Greeting::BYTES]) -> Result<Greeting, Unwelcome> {
    let versions = Greeting::decode_start(bytes.first_chunk().unwrap())?;
    Ok(Greeting::decode(versions, bytes.last_chunk().unwrap()))
}

/// The frames of the dialer with these bodies, and what reads them.
fn frames(bodies: &[&[u8]]) -> (Vec<Vec<u8>>, Opener) {
    let (mut sealer, _) = meeting(&SECRET).into_frames(Side::Dialer);
    let frames = bodies.iter().map(|body| {
        let mut frame = Vec::new();
        sealer.seal(body, &mut frame).unwrap();
        frame
    });
    let frames = frames.collect();
    (frames, meeting(&SECRET).into_frames(Side::Acceptor).1)
}

/// Reads all frames. Returns their bodies, and what ended them.
fn open_all(opener: &mut Opener, mut input: &[u8]) -> (Vec<Vec<u8>>, Option<BadFrame>) {
    let mut bodies = Vec::new();
    loop {
        match opener.open(input) {
            Ok(None) => return (bodies, None),
            Ok(Some((body, used))) => {
                bodies.push(body.to_vec());
                input = &input[used..];
            }
            Err(bad) => return (bodies, Some(bad)),
        }
    }
}

#[test]
fn a_greeting_comes_back() {
    let fresh = Dice::new(1).bytes(32).try_into().unwrap();
    let versions = Versions { newest: 513, oldest: 77 };
    let own = Greeting { versions, instance: u128::MAX - 5, fresh };
    assert_eq!(decoded(&own.encode()), Ok(own));
}

#[test]
fn a_stranger_has_no_greeting() {
    let mut bytes = greeting(1, 2).encode();
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
fn nobody_in_between_can_change_the_versions() {
    let other = Greeting { versions: Versions { newest: 2, oldest: 1 }, ..greeting(1, 10) };
    let changed = Meeting::of(&SECRET, &other, &greeting(2, 20));
    let proof = changed.proof(Side::Dialer);
    assert_eq!(meeting(&SECRET).check(Side::Dialer, &proof), Err(Unwelcome::Secret));
}

#[test]
fn each_side_proves_that_it_knows_the_secret() {
    let (one, other) = (meeting(&SECRET), meeting(&SECRET));
    for side in [Side::Dialer, Side::Acceptor] {
        assert_eq!(other.check(side, &one.proof(side)), Ok(()));
    }
}

#[test]
fn no_other_proof_is_accepted() {
    let refused = Err(Unwelcome::Secret);
    let own = meeting(&SECRET);
    // It is made with another secret.
    let mut secret = SECRET;
    secret[31] ^= 1;
    assert_eq!(own.check(Side::Dialer, &meeting(&secret).proof(Side::Dialer)), refused);
    // It is our own, sent back.
    assert_eq!(own.check(Side::Acceptor, &own.proof(Side::Dialer)), refused);
    // It is of another meeting.
    for (dialer, acceptor) in [
        (greeting(1, 11), greeting(2, 20)),
        (greeting(1, 10), greeting(2, 21)),
        (greeting(3, 10), greeting(2, 20)),
        (greeting(1, 10), greeting(3, 20)),
        (greeting(2, 20), greeting(1, 10)),
    ] {
        let other = Meeting::of(&SECRET, &dialer, &acceptor);
        assert_eq!(own.check(Side::Dialer, &other.proof(Side::Dialer)), refused);
    }
    for bit in 0..PROOF_BYTES * 8 {
        let mut proof = own.proof(Side::Acceptor);
        proof[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(own.check(Side::Acceptor, &proof), refused);
    }
}

#[test]
fn frames_come_in_order_however_they_are_cut() {
    let long = vec![9; 70_000];
    let bodies: [&[u8]; 4] = [b"one", b"", &long, b"four"];
    let (frames, mut opener) = frames(&bodies);
    let stream = frames.concat();
    let mut dice = Dice::new(3);
    let (mut input, mut at, mut seen) = (Vec::new(), 0, Vec::new());
    while at < stream.len() {
        let step = (1 + dice.index(20_000)).min(stream.len() - at);
        input.extend_from_slice(&stream[at..at + step]);
        at += step;
        while let Some((body, used)) = opener.open(&input).unwrap() {
            seen.push(body.to_vec());
            input.drain(..used);
        }
    }
    assert_eq!(seen, bodies);
    assert!(input.is_empty());
}

#[test]
fn the_two_directions_have_keys_of_their_own() {
    let (frames, _) = frames(&[b"sent back"]);
    let (_, mut dialer) = meeting(&SECRET).into_frames(Side::Dialer);
    assert_eq!(dialer.open(&frames[0]), Err(BadFrame::Forged));
}

#[test]
fn a_frame_of_another_connection_is_refused() {
    let (frames, _) = frames(&[b"old"]);
    let again = Meeting::of(&SECRET, &greeting(1, 10), &greeting(2, 21));
    assert_eq!(again.into_frames(Side::Acceptor).1.open(&frames[0]), Err(BadFrame::Forged));
}

#[test]
fn no_bit_of_a_frame_can_be_changed() {
    for bit in 0..frames(&[b"first", b"second"]).0[0].len() * 8 {
        let (mut sent, mut opener) = frames(&[b"first", b"second"]);
        sent[0][bit / 8] ^= 1 << (bit % 8);
        let (bodies, bad) = open_all(&mut opener, &sent.concat());
        assert!(bodies.is_empty(), "bit {bit}");
        // With a greater length it may not be complete yet.
        let is_length = bit < HEAD_BYTES * 8;
        assert!(is_length || bad == Some(BadFrame::Forged), "bit {bit}");
    }
}

#[test]
fn frames_are_neither_repeated_nor_dropped_nor_reordered() {
    let bodies: [&[u8]; 3] = [b"one", b"two", b"three"];
    let seen = |order: &[usize]| {
        let (frames, mut opener) = frames(&bodies);
        let stream: Vec<u8> = order.iter().flat_map(|at| frames[*at].clone()).collect();
        let (bodies, bad) = open_all(&mut opener, &stream);
        (bodies.len(), bad)
    };
    assert_eq!(seen(&[0, 1, 2]), (3, None));
    assert_eq!(seen(&[0, 0, 1]), (1, Some(BadFrame::Forged)));
    assert_eq!(seen(&[0, 2]), (1, Some(BadFrame::Forged)));
    assert_eq!(seen(&[1, 0, 2]), (0, Some(BadFrame::Forged)));
}

#[test]
fn a_frame_has_a_greatest_length() {
    let (mut sealer, _) = meeting(&SECRET).into_frames(Side::Dialer);
    let mut out = Vec::new();
    let long = vec![0; BODY_BYTES_MAX + 1];
    let refused = sealer.seal(&long, &mut out);
    assert_eq!((refused, out.len()), (Err(BadFrame::TooLong(long.len())), 0));
    sealer.seal(&long[1..], &mut out).unwrap();
    let (_, mut opener) = meeting(&SECRET).into_frames(Side::Acceptor);
    assert!(opener.open(&out).unwrap().is_some_and(|(body, used)| body.len() < used));
    let head = u32::try_from(long.len()).unwrap().to_le_bytes();
    assert_eq!(opener.open(&head), Err(BadFrame::TooLong(long.len())));
}

#[test]
fn the_keys_are_those_of_the_description() {
    use sha2::Digest as _;

    // HMAC by its definition, over the hash function alone.
    let hmac = |key: &[u8; 32], message: &[u8]| -> [u8; 32] {
        let pad = |with: u8| -> Vec<u8> {
            (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect()
        };
        let inner = Sha256::digest([&pad(0x36), message].concat());
        Sha256::digest([&pad(0x5C)[..], &inner[..]].concat()).into()
    };
    let greetings = [greeting(1, 10).encode(), greeting(2, 20).encode()].concat();
    let made = |purpose: u8| hmac(&SECRET, &[DOMAIN, &greetings, &[purpose]].concat());
    assert_eq!(meeting(&SECRET).proof(Side::Dialer), made(0));
    assert_eq!(meeting(&SECRET).proof(Side::Acceptor), made(1));
    let (sent, _) = frames(&[b"one", b"two"]);
    for (number, body) in [(0_u64, b"one"), (1, b"two")] {
        let tag = hmac(&made(2), &[&number.to_le_bytes()[..], body].concat());
        assert_eq!(
            sent[usize::try_from(number).unwrap()],
            [&[3, 0, 0, 0], &body[..], &tag[..16]].concat()
        );
    }
}
