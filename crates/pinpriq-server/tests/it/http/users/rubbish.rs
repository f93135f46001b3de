//! What is no sign-in, by chance: nothing of it signs anybody in, ends the server, or is shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinpriq_testing::Dice;

use super::super::Visitor;
use super::{ask, basic, with_people};
use crate::people::Person;

const SEED: u64 = 19;
const ROUNDS: usize = 400;

/// Returns a value that looks more or less like one of `Authorization`.
fn value(dice: &mut Dice) -> Vec<u8> {
    let scheme = dice.pick(&["Basic", "Bearer", "basic", "Digest", "", "Basic Basic", "BASIC"]);
    let secret: Vec<u8> = (0..dice.index(80))
        .map(|_| match dice.below(4) {
            0 => dice.pick(b"ana:password"),
            1 => dice.roll().to_le_bytes()[0],
            _ => 33 + dice.roll().to_le_bytes()[0] % 94,
        })
        .collect();
    let rest = match dice.below(3) {
        0 => STANDARD.encode(&secret).into_bytes(),
        1 => secret,
        _ => format!("pinpriq_{}", STANDARD.encode(&secret)).into_bytes(),
    };
    let mut value = [scheme.as_bytes(), b" ", &rest].concat();
    // These end a header field, which is up to the parser of HTTP.
    value.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    value
}

#[test]
fn values_without_a_user_are_refused() {
    with_people(&[Person::new("ana", "look:*")], async |address, _| {
        let mut dice = Dice::new(SEED);
        for round in 0..ROUNDS {
            let value = value(&mut dice);
            let what = format!("seed {SEED}, round {round}: {}", value.escape_ascii());
            // An address from which many wrong passwords come would be slowed down.
            let part = u8::try_from(round / 8).unwrap();
            let mut visitor = Visitor::from([127, 0, 2, part + 1], address).await;
            let field =
                [b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nAuthorization: ", &value[..]];
            visitor.send_bytes(&[&field.concat()[..], b"\r\n\r\n"].concat()).await;
            let (status, told) = visitor.answer().await;
            assert!([400, 401, 503].contains(&status), "{what}: {status} {told}");
        }
        let ana = basic("ana:password");
        assert_eq!(ask(address, "GET /v1/queues", &ana).await.0, 200);
    });
}
