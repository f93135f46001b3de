//! Users of the RESP door: who signs in, what they may do, and what becomes of those who may do it
//! no longer.

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
    assert_eq!(client.told(&format!("AUTH {name} password")).await, "OK");
}

#[test]
fn nothing_is_done_before_somebody_has_signed_in() {
    with_people(&[Person::new("ana", "put:*")], async |_, _, [client]| {
        let open = ["PING", "HELLO", "HELLO 2", "ACL WHOAMI", "RESET"];
        for command in open {
            assert!(!client.told(command).await.starts_with("NO"), "{command}");
        }
        let closed = [
            "PUT q x",
            "COMMAND",
            "CLIENT ID",
            "CLIENT LIST",
            "INFO",
            "ECHO x",
            "MULTI",
            "EXEC",
            "QUEUE LIST",
            "STATS",
            "ACL LIST",
            "CREDIT 1",
            "SUBSCRIBE q",
            "COMMAND COUNT",
            "NOSUCH",
            "NOSUCH q x",
            "CLIENT",
            "CLIENT NOSUCH",
        ];
        for command in closed {
            assert_eq!(client.told(command).await, "NOAUTH", "{command}");
        }
        let large = vec![b'x'; 2 << 20];
        assert_eq!(show(&client.ask_words(&[b"PUT", b"q", &large]).await), "NOAUTH");
        assert_eq!(client.told("ACL WHOAMI").await, "null");
        sign_in(client, "ana").await;
        assert_eq!(client.told("ACL WHOAMI").await, "ana");
        assert_eq!(client.told("PUT q x").await, "1");
        assert_eq!(client.told("RESET").await, "RESET");
        assert_eq!(client.told("PUT q x").await, "NOAUTH", "RESET signs out");
    });
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
            assert_eq!(client.told("ACL WHOAMI").await, "null");
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
            assert_eq!(client.told("ACL WHOAMI").await, "ana", "{way}");
        }
        assert_eq!(client.told("AUTH").await, "ERR");
        assert_eq!(client.told("AUTH a b c").await, "ERR");
    });
}

#[test]
fn requests_that_follow_a_password_wait_for_it() {
    with_people(&[Person::new("ana", "put:* look:*")], async |world, _, [_]| {
        let mut client = world.connect().await;
        for line in ["PING one", "AUTH ana password", "PUT q x", "AUTH ana wrong", "STATS q"] {
            client.say(line).await;
        }
        let mut told = Vec::new();
        for _ in 0..5 {
            told.push(show(&client.value().await));
        }
        assert_eq!(told[..4], ["one", "OK", "1", "WRONGPASS"]);
        assert!(told[4].contains("put=1") || told[4].contains("put"), "{}", told[4]);
    });
}

#[test]
fn without_users_everybody_may_do_everything() {
    test(async || {
        World::plain()
            .await
            .host(async |_, [client]: &mut [Client; 1]| {
                assert_eq!(client.told("AUTH ana password").await, "ERR");
                assert_eq!(client.told("ACL WHOAMI").await, "default");
                assert_eq!(client.told("PUT q x").await, "1");
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
                assert_eq!(client.told("PUT q x").await, "NOAUTH");
                assert_eq!(
                    client.ask_words(&[b"AUTH", b"open sesame"]).await,
                    Value::Simple("OK".into())
                );
                assert_eq!(client.told("ACL WHOAMI").await, "default");
                for command in ["PUT q x", "CLIENT LIST", "QUEUE TRUNCATE q"] {
                    assert!(!client.told(command).await.starts_with("NOPERM"), "{command}");
                }
            })
            .await;
    });
}

#[test]
fn lists_and_sums_keep_within_what_may_be_looked_at() {
    let people =
        [Person::new("boss", "put:* look:* manage:* admin"), Person::new("ana", "look:a*")];
    with_people(&people, async |_, _, [boss, ana]| {
        sign_in(boss, "boss").await;
        sign_in(ana, "ana").await;
        for queue in ["a1", "a2", "b1"] {
            boss.ask(&format!("PUT {queue} x")).await;
            boss.ask(&format!("SCHEDULE SET of-{queue} {queue} x EVERY 1000000")).await;
        }
        assert_eq!(boss.told("QUEUE LIST").await, "[0 [a1 a2 b1]]");
        assert_eq!(ana.told("QUEUE LIST").await, "[0 [a1 a2]]");
        assert_eq!(boss.told("SCHEDULE LIST").await, "[0 [of-a1 of-a2 of-b1]]");
        assert_eq!(ana.told("SCHEDULE LIST").await, "[0 [of-a1 of-a2]]");
        let put =
            async |client: &mut Client| super::client::number(&client.ask("STATS").await, "put");
        assert_eq!((put(boss).await, put(ana).await), (3, 2));
        assert_eq!(ana.told("SCHEDULE SHOW of-b1").await, "NOPERM");
        assert_eq!(ana.told("STATS b1").await, "NOPERM");
    });
}

#[test]
fn what_names_no_queue_needs_its_right_where_it_touches_one() {
    let people = [
        Person::new("boss", "put:* take:* look:* manage:*"),
        Person::new("ana", "put:a* take:a* look:a* manage:a*"),
    ];
    with_people(&people, async |_, _, [boss, ana]| {
        sign_in(boss, "boss").await;
        sign_in(ana, "ana").await;
        for line in [
            "JOIN a1 of-a",
            "JOIN a1 of-both",
            "JOIN b1 of-both",
            "JOIN b1 of-b",
            "SCHEDULE SET in-a a1 x EVERY 100000",
            "SCHEDULE SET in-b b1 x EVERY 100000",
        ] {
            assert!(!boss.told(line).await.starts_with("ERR"), "{line}");
        }
        for (line, expected) in [
            ("BEAT of-a", "OK"),
            ("BEAT of-both", "NOPERM"),
            ("JOIN a1 of-both LEASE 1", "NOPERM"),
            ("JOIN a1 of-b LEASE 1", "NOPERM"),
            ("JOIN b1 of-a", "NOPERM"),
            ("LEAVE of-both", "NOPERM"),
            ("LEAVE a1 of-both", "1"),
            ("SCHEDULE PAUSE in-b", "NOPERM"),
            ("SCHEDULE FIRE in-b", "NOPERM"),
            ("SCHEDULE DROP in-b", "NOPERM"),
            ("SCHEDULE SET in-b a1 x EVERY 100000", "NOPERM"),
            ("SCHEDULE PAUSE in-a", "OK"),
            ("SCHEDULE DROP in-a", "1"),
        ] {
            assert_eq!(ana.told(line).await, expected, "{line}");
        }
        // Dead letters go back to a queue that ana may not put into.
        for line in ["QUEUE SET b1 DEADLETTER a-dead ATTEMPTS 1", "PUT b1 x"] {
            boss.ask(line).await;
        }
        let taken = super::client::receipt(&boss.ask("TAKE b1").await);
        assert_eq!(boss.told(&format!("FAIL b1 {taken}")).await, "X");
        let dead = boss.told("STATS a-dead").await;
        assert!(dead.contains("ready"), "{dead}");
        assert_eq!(ana.told("REDRIVE a-dead").await, "NOPERM");
        assert_eq!(boss.told("REDRIVE a-dead").await, "1");
    });
}

#[test]
fn refusals_tell_no_names_of_schedules() {
    let people = [
        Person::new("boss", "put:* take:* look:* manage:*"),
        Person::new("ana", "put:a* look:a* manage:a*"),
        Person::new("cleo", ""),
    ];
    with_people(&people, async |_, _, [boss, ana, cleo]| {
        for (client, name) in [(&mut *boss, "boss"), (&mut *ana, "ana"), (&mut *cleo, "cleo")] {
            sign_in(client, name).await;
        }
        boss.ask("SCHEDULE SET there b1 x EVERY 100000").await;
        for command in ["SHOW", "PAUSE", "RESUME", "FIRE", "DROP"] {
            for client in [&mut *ana, &mut *cleo] {
                let [one, other] =
                    ["there", "not-there"].map(|it| format!("SCHEDULE {command} {it}"));
                let told = client.ask(&one).await;
                assert_eq!(told, client.ask(&other).await, "{command}");
                assert_eq!(client.told(&one).await, "NOPERM", "{command}");
            }
        }
        assert_eq!(boss.told("SCHEDULE SHOW not-there").await, "NOTFOUND");
        // Nor does an import tell that there is one.
        let page = boss.ask("EXPORT b1").await;
        let mut records = elements(&elements(&page)[1]).iter().filter_map(Value::as_bytes);
        let record = records.find(|it| it.starts_with(b"{\"type\":\"schedule\"")).unwrap();
        let record = str::from_utf8(record).unwrap().replace("\"b1\"", "\"a1\"");
        let imported = ana.ask_words(&[b"IMPORT", b"a1", record.as_bytes()]).await;
        assert_eq!(show(&imported), "NOPERM");
        let record = record.replace("\"there\"", "\"not-there\"");
        let imported = ana.ask_words(&[b"IMPORT", b"a1", record.as_bytes()]).await;
        assert_eq!(show(&imported), "OK");
        let imported = ana.ask_words(&[b"IMPORT", b"a1", record.as_bytes()]).await;
        assert_eq!(show(&imported), "EXISTS", "its own one");
    });
}

#[test]
fn what_runs_the_server_needs_admin() {
    let people = [Person::new("boss", "admin"), Person::new("ana", "put:* take:* look:* manage:*")];
    with_people(&people, async |_, _, [boss, ana]| {
        sign_in(boss, "boss").await;
        sign_in(ana, "ana").await;
        for command in
            ["CLIENT LIST", "CLIENT KILL ID 999999", "INFO memory", "ACL LIST", "ACL USERS"]
        {
            assert_eq!(ana.told(command).await, "NOPERM", "{command}");
            assert_ne!(boss.told(command).await, "NOPERM", "{command}");
        }
        let info = ana.ask("INFO").await;
        let info = String::from_utf8(info.as_bytes().unwrap().to_vec()).unwrap();
        assert_eq!(info.matches("# ").count(), 1, "{info}");
        assert_eq!(boss.told("PUT q x").await, "NOPERM", "admin implies nothing else");
        assert_eq!(boss.told("ACL USERS").await, "[ana boss]");
        let lines = boss.told("ACL LIST").await;
        assert!(lines.starts_with("[user ana put:* take:* look:* manage:*"), "{lines}");
        let own = ana.ask("CLIENT ID").await.integer().unwrap();
        assert_eq!(ana.told(&format!("CLIENT KILL ID {own}")).await, "1", "one's own");
    });
}

#[test]
fn a_dry_run_tells_what_somebody_lacks_and_does_nothing() {
    let people = [Person::new("boss", "admin look:*"), Person::new("ana", "put:a*")];
    with_people(&people, async |_, _, [boss]| {
        sign_in(boss, "boss").await;
        let table = [
            ("ana PUT a1 x", "OK"),
            ("ana PUT b x", "User ana lacks the right put:b"),
            ("ana PUT a1 x WAIT 5", "User ana lacks the right look:a1"),
            ("ana MOVE a1 a2 COUNT 1", "User ana lacks the right manage:a1"),
            ("ana STATS", "OK"),
            ("ana CLIENT LIST", "User ana lacks the right admin"),
            ("ana PING", "OK"),
            ("cleo PING", "ERR"),
            ("ana NONSENSE", "ERR"),
        ];
        for (request, expected) in table {
            assert_eq!(boss.told(&format!("ACL DRYRUN {request}")).await, expected, "{request}");
        }
        assert_eq!(boss.told("QUEUE LIST").await, "[0 []]");
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
        assert_eq!(boss.told("QUEUE LIST").await, "[0 [a]]");
    });
}
