//! The audit: what is written down, and what is not.

use std::path::Path;

use pinpriq_server::config::{AuditTo, Config};

use super::sign_in;
use crate::people::{People, Person, read};
use crate::resp::client::{Client, World};
use crate::world::{in_memory, test};

/// How often the file is looked at.
const LOOKS_MAX: usize = 20_000;

/// Waits until the audit has a line with all of these words, and returns the line. The thread that
/// writes is not this one.
async fn line_with(path: &Path, client: &mut Client, words: &[&str]) -> String {
    for _ in 0..LOOKS_MAX {
        let text = read(path);
        if let Some(line) = text.lines().find(|line| words.iter().all(|word| line.contains(word))) {
            return line.to_owned();
        }
        client.ask("PING").await;
    }
    panic!("no line has {words:?}: {}", read(path));
}

fn with_audit(people: &[Person], body: impl AsyncFnOnce(&World, &mut People, &Path)) {
    test(async || {
        let mut people = People::new(people);
        let path = people.folder().join("audit");
        let audit = Some(AuditTo::File(path.clone()));
        let world = World::start(people.at(Config { audit, ..in_memory() })).await;
        body(&world, &mut people, &path).await;
        world.end().await;
    });
}

#[test]
fn who_did_what_is_written_down() {
    let people = [Person::new("boss", "put:* manage:* look:*"), Person::new("ana", "put:q")];
    with_audit(&people, async |world, people, path| {
        let [mut boss, mut ana] = [world.connect().await, world.connect().await];
        sign_in(&mut boss, "boss").await;
        let line = line_with(path, &mut boss, &["signed_in", r#""user":"boss""#]).await;
        assert!(line.contains(&format!(r#""from":"{}""#, boss.name())), "{line}");
        assert!(line.contains(r#""door":"resp""#), "{line}");
        ana.ask("AUTH ana secret-guess").await;
        line_with(path, &mut boss, &["sign_in_failed", r#""user":"ana""#]).await;
        sign_in(&mut ana, "ana").await;
        ana.ask("QUEUE DROP q").await;
        line_with(path, &mut boss, &["denied", r#""command":"QUEUE DROP""#, r#""name":"q""#]).await;
        ana.ask("CLIENT LIST").await;
        line_with(path, &mut boss, &["denied", r#""command":"CLIENT LIST""#]).await;
        for _ in 0..3 {
            boss.ask("PUT q x").await;
        }
        for (request, words) in [
            ("QUEUE SET q CAPACITY 9", &[r#""command":"QUEUE SET""#][..]),
            ("MOVE q p COUNT 1", &[r#""command":"MOVE""#, r#""count":1"#]),
            (
                "BULK q PRIORITY 5 STATE R KEY a\\*",
                &[r#""command":"BULK","count":0"#, r#""detail":"PRIORITY 5 STATE R KEY a"#],
            ),
            ("QUEUE TRUNCATE q", &[r#""command":"QUEUE TRUNCATE""#, r#""count":2"#]),
            ("LIMIT SET l MAX 5", &[r#""command":"LIMIT SET""#, r#""name":"l""#]),
            ("LIMIT DROP l", &[r#""command":"LIMIT DROP""#, r#""name":"l""#]),
            ("SCHEDULE SET s q x EVERY 1000", &[r#""command":"SCHEDULE SET""#, r#""name":"s""#]),
        ] {
            boss.ask(request).await;
            let line = line_with(path, &mut boss, words).await;
            assert!(line.contains(r#""event":"command""#), "{line}");
        }
        boss.ask("PUT q x").await;
        people.write(&[Person::new("boss", "put:* manage:* look:*")]);
        world.advance(1_000);
        line_with(path, &mut boss, &["user_changed", r#""user":"ana""#, "Removed"]).await;
        let text = read(path);
        assert!(!text.contains("password\"") && !text.contains("secret-guess"), "{text}");
        assert!(!text.contains(r#""command":"PUT""#), "a put destroys nothing: {text}");
    });
}

#[test]
fn nothing_that_a_client_sends_forges_a_line() {
    with_audit(&[Person::new("ana", "")], async |world, _, path| {
        let mut client = world.connect().await;
        sign_in(&mut client, "ana").await;
        let forged = b"q\"}\n{\"event\":\"signed_in\",\"user\":\"boss\"}\n";
        client.ask_words(&[b"PUT", forged, b"x"]).await;
        client.ask_words(&[b"AUTH", forged, b"x"]).await;
        line_with(path, &mut client, &["denied"]).await;
        line_with(path, &mut client, &["sign_in_failed"]).await;
        for line in read(path).lines() {
            assert!(line.starts_with(r#"{"at":"#), "{line}");
        }
    });
}

#[test]
fn without_users_there_can_be_an_audit_too() {
    test(async || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let audit = Some(AuditTo::File(path.clone()));
        let shards = 3;
        let world = World::start_by_the_machine(Config { audit, shards, ..in_memory() }).await;
        let mut client = world.connect().await;
        for queue in ["a", "b", "c", "d"] {
            client.ask(&format!("PUT {queue} x")).await;
            client.ask(&format!("QUEUE TRUNCATE {queue}")).await;
            let name = format!(r#""name":"{queue}""#);
            line_with(&path, &mut client, &["QUEUE TRUNCATE", &name, r#""count":1"#]).await;
        }
        // Each request of a batch has a line with its own count.
        let mut requests = Vec::new();
        for queue in ["a", "b", "c", "d"] {
            requests.extend_from_slice(format!("PUT {queue} x\r\n").as_bytes());
            requests.extend_from_slice(format!("PUT {queue} x\r\n").as_bytes());
            requests.extend_from_slice(format!("QUEUE DROP {queue}\r\n").as_bytes());
        }
        client.exchange(&requests, 12).await;
        for queue in ["a", "b", "c", "d"] {
            let name = format!(r#""name":"{queue}""#);
            line_with(&path, &mut client, &["QUEUE DROP", &name, r#""count":2"#]).await;
        }
        world.end().await;
    });
}
