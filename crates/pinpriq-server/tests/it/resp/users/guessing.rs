//! Many wrong passwords: how many are checked, and how fast.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

use super::{sign_in, with_people};
use crate::line::Line;
use crate::people::Person;
use crate::resp::client::{Client, show};

/// How many sign in at once. A hundred may wait.
const CLIENTS: usize = 150;

#[test]
fn those_who_are_too_many_are_told_to_try_again() {
    with_people(&[Person::new("ana", "")], async |world, _, [ana]| {
        sign_in(ana, "ana").await;
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            // One address alone may not take all places.
            let last = 10 + u8::try_from(number % 3).unwrap();
            clients.push(connect_from([127, 0, 0, last], world.address).await);
        }
        for client in &mut clients {
            // That of an unknown user takes as long as any.
            client.say("AUTH nemo wrong").await;
        }
        // A user who is signed in notices nothing.
        assert_eq!(ana.reply("ACL WHOAMI").await, "ana");
        let mut busy = 0;
        for client in &mut clients {
            match show(&client.value().await).as_str() {
                "BUSY" => busy += 1,
                told => assert_eq!(told, "WRONGPASS"),
            }
        }
        assert!((1..=CLIENTS - 100).contains(&busy), "{busy} were told to try again");
        assert_eq!(clients[0].reply("AUTH ana password").await, "OK", "there is room again");
    });
}

#[test]
fn an_address_that_guesses_on_many_connections_keeps_no_other_out() {
    with_people(&[Person::new("ana", "")], async |world, _, [_]| {
        let mut guessers = Vec::new();
        for _ in 0..300 {
            let mut guesser = connect_from([127, 0, 0, 9], world.address).await;
            guesser.say("AUTH ana wrong").await;
            guessers.push(guesser);
        }
        for last in 10..13 {
            let mut other = connect_from([127, 0, 0, last], world.address).await;
            assert_eq!(other.reply("AUTH ana password").await, "OK", "127.0.0.{last}");
        }
        let mut told = Vec::new();
        for guesser in &mut guessers {
            told.push(show(&guesser.value().await));
        }
        assert!(told.iter().all(|it| it == "BUSY" || it == "WRONGPASS"), "{told:?}");
        let checked = told.iter().filter(|it| *it == "WRONGPASS").count();
        assert!((1..100).contains(&checked), "{checked} were checked");
    });
}

/// Connects from another address of this machine.
pub(super) async fn connect_from(address: [u8; 4], to: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    Client::of(Line::Plain(socket.connect(to).await.unwrap()))
}

#[test]
fn an_address_that_guesses_is_slowed_down() {
    let (ana, token) = Person::with_token("ana", "");
    with_people(&[ana], async |world, _, [guesser, ana]| {
        for _ in 0..10 {
            assert_eq!(guesser.reply("AUTH ana wrong").await, "WRONGPASS");
        }
        // A machine that is short of time may need longer for two others than the guesser waits.
        let mut is_slowed = false;
        for last in 2..7 {
            guesser.say("AUTH ana wrong").await;
            let mut other = connect_from([127, 0, 0, last], world.address).await;
            for _ in 0..2 {
                assert_eq!(other.reply("AUTH ana wrong").await, "WRONGPASS");
            }
            assert_eq!(ana.reply(&format!("AUTH {token}")).await, "OK", "a token is not guessed");
            is_slowed |= guesser.is_silent();
            assert_eq!(show(&guesser.value().await), "WRONGPASS");
            if is_slowed {
                break;
            }
        }
        assert!(is_slowed, "two others were never told before the guesser");
    });
}
