//! What is no sign-in, by chance: nothing of it signs anybody in or ends the connection.

use pinpriq_testing::Dice;

use super::guessing::connect_from;
use super::with_people;
use crate::people::Person;
use crate::resp::client::show;

const SEED: u64 = 19;
const ROUNDS: usize = 600;

/// Returns a word that has something of a name, a password or a token.
fn word(dice: &mut Dice) -> Vec<u8> {
    match dice.below(6) {
        0 => b"ana".to_vec(),
        1 => b"password".to_vec(),
        2 => b"SETNAME".to_vec(),
        3 => [b"pinpriq_", &vec![b'a'; dice.index(60)][..]].concat(),
        4 => vec![dice.roll().to_le_bytes()[0]; dice.index(3_000)],
        _ => (0..dice.index(40)).map(|_| dice.roll().to_le_bytes()[0]).collect(),
    }
}

#[test]
fn requests_without_a_user_are_refused() {
    with_people(&[Person::new("ana", "put:*")], async |world, _, [last]| {
        let mut dice = Dice::new(SEED);
        let mut client = world.connect().await;
        for round in 0..ROUNDS {
            // An address from which many wrong passwords come would be slowed down.
            if round % 8 == 0 {
                let part = u8::try_from(round / 8).unwrap();
                client = connect_from([127, 0, 1, part + 1], world.address).await;
            }
            let mut words: Vec<Vec<u8>> = match dice.below(3) {
                0 => vec![b"AUTH".to_vec()],
                1 => vec![b"HELLO".to_vec(), b"2".to_vec(), b"AUTH".to_vec()],
                _ => vec![b"HELLO".to_vec(), word(&mut dice)],
            };
            words.extend((0..dice.index(4)).map(|_| word(&mut dice)));
            let is_right = words.windows(2).any(|two| two == [&b"ana"[..], b"password"]);
            if is_right {
                continue;
            }
            let shown: Vec<_> = words.iter().map(|it| it.escape_ascii().to_string()).collect();
            let what = format!("seed {SEED}, round {round}: {}", shown.join(" "));
            let borrowed: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let told = show(&client.ask_words(&borrowed).await);
            assert_ne!(told, "OK", "{what}");
            let who = client.reply("PUT q x").await;
            assert_eq!(who, "NOAUTH", "{what}: {told}");
        }
        assert_eq!(last.reply("AUTH ana password").await, "OK");
    });
}
