//! Users of the RESP door: who signs in, and what becomes of those who may no longer do something.
//! What they may do is in `testdata/resp/users.txt`.

mod audit;
mod changes;
mod each_command;
mod guessing;
mod limits;
mod rubbish;

use pinpriq_proto::wire::resp::Value;
use pinpriq_server::config::{Config, UsersFrom};

use super::client::{Client, World, elements, show};
use crate::people::{People, Person, write};
use crate::world::{in_memory, test};

/// Runs a test with a server that has these users, and this number of clients of it.
pub(super) fn with_people<const N: usize>(
    people: &[Person],
    body: impl AsyncFnOnce(&World, &mut People, &mut [Client; N]),
) {
    with_people_at(in_memory(), people, body);
}

/// Like [`with_people`], with a server that is configured in this way.
pub(super) fn with_people_at<const N: usize>(
    config: Config,
    people: &[Person],
    body: impl AsyncFnOnce(&World, &mut People, &mut [Client; N]),
) {
    test(async || {
        let mut file = People::new(people);
        let world = World::start(file.at(config)).await;
        world.host(async |world, clients| body(world, &mut file, clients).await).await;
    });
}

/// The text of a refusal.
fn refusal(value: &Value) -> &str {
    let Value::Error(text) = value else { panic!("a refusal, not {value:?}") };
    text
}

pub(super) async fn sign_in(client: &mut Client, name: &str) {
    assert_eq!(client.reply(&format!("AUTH {name} password")).await, "OK");
}

#[test]
fn a_password_a_token_and_hello_sign_in() {
    let (ana, token) = Person::with_token("ana", "put:*");
    with_people(&[ana, Person::new("ben", "")], async |world, _, [client]| {
        let wrong = [
            "AUTH ana wrong".to_owned(),
            "AUTH cleo password".to_owned(),
            "AUTH password".to_owned(),
            format!("AUTH {}", token.to_lowercase()),
            format!("AUTH ben {token}"),
            "HELLO 3 AUTH ana wrong SETNAME x".to_owned(),
            format!("AUTH ana {}", "x".repeat(5_000)),
        ];
        for wrong in wrong {
            let told = client.ask(&wrong).await;
            let text = refusal(&told);
            assert_eq!(text, "WRONGPASS invalid username-password pair or user is disabled.");
            assert_eq!(client.reply("ACL WHOAMI").await, "null");
        }
        let ways = [
            "AUTH ana password".to_owned(),
            format!("AUTH {token}"),
            format!("AUTH ana {token}"),
            format!("AUTH default {token}"),
            "HELLO 3 AUTH ana password SETNAME x".to_owned(),
            format!("HELLO 2 AUTH ana {token}"),
        ];
        for way in ways {
            let mut client = world.connect().await;
            let told = client.ask(&way).await;
            assert!(!matches!(told, Value::Error(_)), "{way}: {told:?}");
            assert_eq!(client.reply("ACL WHOAMI").await, "ana", "{way}");
        }
        assert_eq!(client.reply("AUTH").await, "ERR");
        assert_eq!(client.reply("AUTH a b c").await, "ERR");
    });
}

#[test]
fn without_users_everybody_may_do_everything() {
    test(async || {
        World::plain()
            .await
            .host(async |_, [client]: &mut [Client; 1]| {
                assert_eq!(client.reply("AUTH ana password").await, "ERR");
                assert_eq!(client.reply("ACL WHOAMI").await, "default");
                assert_eq!(client.reply("PUT q x").await, "1");
            })
            .await;
    });
}

#[test]
fn a_single_password_is_that_of_default() {
    test(async || {
        let people = People::new(&[]);
        let path = people.folder().join("password");
        write(&path, "open sesame\n");
        let config = Config { users: Some(UsersFrom::Password(path)), ..in_memory() };
        World::start(config)
            .await
            .host(async |_, [client]: &mut [Client; 1]| {
                assert_eq!(client.reply("PUT q x").await, "NOAUTH");
                assert_eq!(
                    client.ask_words(&[b"AUTH", b"open sesame"]).await,
                    Value::Simple("OK".into())
                );
                assert_eq!(client.reply("ACL WHOAMI").await, "default");
                for command in ["PUT q x", "CLIENT LIST", "QUEUE TRUNCATE q"] {
                    assert!(!client.reply(command).await.starts_with("NOPERM"), "{command}");
                }
            })
            .await;
    });
}

#[test]
fn info_tells_little_to_others_than_admins() {
    with_people(&[Person::new("ana", "look:*")], async |_, _, [ana]| {
        sign_in(ana, "ana").await;
        let info = ana.ask("INFO").await;
        let info = String::from_utf8(info.as_bytes().unwrap().to_vec()).unwrap();
        assert_eq!(info.matches("# ").count(), 1, "{info}");
    });
}

#[test]
fn a_request_that_is_too_large_says_nothing_before_somebody_has_signed_in() {
    with_people(&[Person::new("ana", "put:*")], async |_, _, [client]| {
        let large = vec![b'x'; 2 << 20];
        assert_eq!(show(&client.ask_words(&[b"PUT", b"q", &large]).await), "NOAUTH");
    });
}

#[test]
fn the_wire_acts_as_anonymous() {
    let people = [Person::new("boss", "look:*"), Person::new("anonymous", "put:a")];
    with_people(&people, async |world, _, [boss]| {
        sign_in(boss, "boss").await;
        let mut allowed = crate::client::Client::connect(world.wire_address).await;
        allowed.push("a", 0, "", "x").await;
        while elements(&boss.ask("QUEUE LIST").await)[1] == Value::Array(Vec::new()) {}
        let mut denied = crate::client::Client::connect(world.wire_address).await;
        denied.push("b", 0, "", "x").await;
        // The wire cannot say that it refuses.
        denied.ended().await;
        assert_eq!(boss.reply("QUEUE LIST").await, "[0 [a]]");
    });
}
