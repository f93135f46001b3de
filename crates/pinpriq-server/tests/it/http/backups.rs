//! Backups of a running server: which bytes belong to one, and who is refused what.

use std::path::Path;

use pinpriq_server::config::{AuditTo, Config, Durability, Look};
use pinpriq_store::journal::raw::walk;
use serde_json::Value;

use super::users::basic;
use super::{Address, PAYLOAD, Visitor, with_site, with_site_of};
use crate::people::{People, Person, read};
use crate::world::{START, in_memory};

fn on_disk(data: &Path, shards: usize) -> Config {
    Config { data: data.to_owned(), durability: Durability::Sync, shards, ..in_memory() }
}

/// Runs a test with a server that keeps its tasks.
fn with_disk(shards: usize, body: impl AsyncFnOnce(Address)) {
    let data = tempfile::tempdir().unwrap();
    with_site_of(on_disk(data.path(), shards), body);
}

async fn put(visitor: &mut Visitor, queue: &str, payload: &[u8]) {
    let line = format!("POST /v1/queues/{queue}/tasks");
    assert_eq!(visitor.ask(&line, "", payload).await.0, 201);
}

/// Begins a backup.
async fn begin(visitor: &mut Visitor) -> Value {
    let (status, body) = visitor.ask("POST /v1/backups", "", b"").await;
    assert_eq!(status, 201, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Asks for a segment with these header fields.
async fn segment(visitor: &mut Visitor, path: &str, fields: &str) -> (u16, Vec<String>, Vec<u8>) {
    visitor.send(&format!("GET /v1/backups/{path}"), fields, b"").await;
    visitor.bytes_answer().await
}

/// Returns the bytes of all segments of a backup, which must be as it says.
async fn copy(visitor: &mut Visitor, backup: &Value) -> Vec<u8> {
    let id = backup["id"].as_str().unwrap();
    let mut all = Vec::new();
    let shards = backup["shards"].as_array().unwrap();
    for (place, shard) in shards.iter().enumerate() {
        assert_eq!(shard["shard"], place);
        let segments = shard["segments"].as_array().unwrap();
        assert!(!segments.is_empty());
        for told in segments {
            let path = format!("{id}/{place}/{}", told["number"]);
            let (status, fields, bytes) = segment(visitor, &path, "").await;
            assert_eq!(status, 200);
            assert!(fields.contains(&"content-type: application/octet-stream".to_owned()));
            assert!(fields.contains(&"accept-ranges: bytes".to_owned()), "{fields:?}");
            assert!(fields.contains(&format!("content-length: {}", told["bytes"])), "{fields:?}");
            let walk = walk(&path, &bytes, None).unwrap();
            assert_eq!(told["number"], walk.header.number);
            assert_eq!(told["incarnation"], walk.header.incarnation);
            assert_eq!((told["bytes"].as_u64(), walk.end), (Some(bytes.len() as u64), bytes.len()));
            assert_eq!(walk.header.identity.unwrap().shard as usize, place);
            all.extend(bytes);
        }
    }
    all
}

fn has(all: &[u8], text: &str) -> bool {
    all.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_backup_has_what_was_confirmed_before_and_nothing_later() {
    for shards in [1, 2] {
        with_disk(shards, async |address| {
            let mut visitor = Visitor::at(address).await;
            let payload = |number: usize| format!("<payload {number}>");
            let (mut count, mut backups) = (0, Vec::new());
            for _ in 0..4 {
                for _ in 0..25 {
                    put(&mut visitor, &format!("q{}", count % 7), payload(count).as_bytes()).await;
                    count += 1;
                }
                let backup = begin(&mut visitor).await;
                assert_eq!(backup["shards"].as_array().unwrap().len(), shards);
                assert!(backup["at"].as_str() < backup["expires_at"].as_str(), "{backup}");
                backups.push((count, backup));
            }
            for (before, backup) in &backups {
                let all = copy(&mut visitor, backup).await;
                for number in 0..count {
                    assert_eq!(has(&all, &payload(number)), number < *before, "{number}");
                }
            }
            let moments: Vec<_> = backups.iter().map(|(_, it)| it["at"].as_str()).collect();
            assert!(moments.is_sorted_by(|one, other| one < other), "{moments:?}");
        });
    }
}

#[test]
fn ranges_of_a_segment_are_its_bytes() {
    with_disk(1, async |address| {
        let mut visitor = Visitor::at(address).await;
        let payload = |byte: u8| vec![byte; PAYLOAD - 7];
        for byte in [b'a', b'b', b'c'] {
            put(&mut visitor, "q", &payload(byte)).await;
        }
        let backup = begin(&mut visitor).await;
        let whole = copy(&mut visitor, &backup).await;
        let count = whole.len();
        assert!(count > 3 * (PAYLOAD - 7), "{count} bytes");
        let path = format!("{}/0/1", backup["id"].as_str().unwrap());
        let last = count - 1;
        for (range, first, end) in [
            ("0-8191".to_owned(), 0, 8_192),
            ("8192-".to_owned(), 8_192, count),
            (format!("5-{}", last - 5), 5, count - 5),
            ("-17".to_owned(), count - 17, count),
            (format!("{last}-{count}"), last, count),
        ] {
            let field = format!("Range: bytes={range}\r\n");
            let (status, fields, bytes) = segment(&mut visitor, &path, &field).await;
            assert_eq!(status, 206, "{range}");
            let told = format!("content-range: bytes {first}-{}/{count}", end - 1);
            assert!(fields.contains(&told), "{fields:?}");
            assert!(bytes == whole[first..end], "{range}: {} bytes", bytes.len());
        }
        let field = format!("Range: bytes={count}-\r\n");
        let (status, fields, bytes) = segment(&mut visitor, &path, &field).await;
        assert_eq!(status, 416);
        assert!(fields.contains(&format!("content-range: bytes */{count}")), "{fields:?}");
        assert!(String::from_utf8(bytes).unwrap().contains("\"RANGE\""));
        // Several ranges, and compression, are not for these answers.
        let fields = "Range: bytes=0-1,5-6\r\nAccept-Encoding: gzip\r\n";
        let (status, fields, bytes) = segment(&mut visitor, &path, fields).await;
        assert!(!fields.iter().any(|field| field.starts_with("content-encoding")), "{fields:?}");
        assert!(status == 200 && bytes == whole, "{status}, {} bytes", bytes.len());
    });
}

#[test]
fn there_are_at_most_four_backups_at_once() {
    with_disk(2, async |address| {
        let mut visitor = Visitor::at(address).await;
        let mut first = None;
        for _ in 0..4 {
            let backup = begin(&mut visitor).await;
            first.get_or_insert(backup);
        }
        let (status, fields, body) = {
            visitor.send("POST /v1/backups", "", b"").await;
            visitor.whole_answer().await
        };
        assert_eq!(status, 429, "{body}");
        assert!(body.contains("\"BUSY\""), "{body}");
        assert!(fields.contains(&"retry-after: 1".to_owned()), "{fields:?}");
        let first = first.unwrap();
        let line = format!("DELETE /v1/backups/{}", first["id"].as_str().unwrap());
        assert_eq!(visitor.ask(&line, "", b"").await.0, 204);
        let (status, body) = visitor.ask(&line, "", b"").await;
        assert!(status == 404 && body.contains("\"NOTFOUND\""), "{body}");
        let path = format!("{}/0/1", first["id"].as_str().unwrap());
        assert_eq!(segment(&mut visitor, &path, "").await.0, 404);
        begin(&mut visitor).await;
    });
}

#[test]
fn what_is_not_there_is_refused() {
    with_disk(1, async |address| {
        let mut visitor = Visitor::at(address).await;
        let backup = begin(&mut visitor).await;
        let id = backup["id"].as_str().unwrap();
        for (path, expected) in [
            (format!("{id}/1/1"), 404),
            (format!("{id}/0/99"), 404),
            (format!("{id}/0/x"), 400),
            (format!("{id}/-1/1"), 400),
            ("0/0/1".to_owned(), 404),
            (format!("{id}/0/1?x=1"), 400),
            (format!("{id}/0"), 404),
        ] {
            assert_eq!(segment(&mut visitor, &path, "").await.0, expected, "{path}");
        }
        for (line, expected) in [("GET /v1/backups", 405), ("POST /v1/backups?x=1", 400)] {
            assert_eq!(visitor.ask(line, "", b"").await.0, expected, "{line}");
        }
    });
}

#[test]
fn what_is_only_in_memory_has_no_backups() {
    with_site(async |address| {
        let mut visitor = Visitor::at(address).await;
        for line in ["POST /v1/backups", "GET /v1/backups/1/0/1", "DELETE /v1/backups/1"] {
            let (status, body) = visitor.ask(line, "", b"").await;
            assert_eq!(status, 409, "{line}: {body}");
            assert!(body.contains("\"WRONGSTATE\"") && body.contains("--durability"), "{body}");
        }
    });
}

#[test]
fn a_backup_needs_two_rights_on_all_queues_and_is_written_down() {
    let data = tempfile::tempdir().unwrap();
    let people = [
        Person::new("copier", "look:* manage:*"),
        Person::new("looker", "put:* take:* look:* manage:a* admin"),
    ];
    let people = People::new(&people);
    let path = people.folder().join("audit");
    let config = Config { audit: Some(AuditTo::File(path.clone())), ..on_disk(data.path(), 1) };
    with_site_of(people.at(config), async |address| {
        let (copier, looker) = (basic("copier:password"), basic("looker:password"));
        let mut visitor = Visitor::at(address).await;
        assert_eq!(visitor.ask("POST /v1/backups", "", b"").await.0, 401);
        let (status, body) = visitor.ask("POST /v1/backups", &looker, b"").await;
        assert!(status == 403 && body.contains("needs the right manage:*"), "{body}");
        let (status, body) = visitor.ask("POST /v1/backups", &copier, b"").await;
        assert_eq!(status, 201, "{body}");
        let backup: Value = serde_json::from_str(&body).unwrap();
        let id = backup["id"].as_str().unwrap();
        let path = format!("{id}/0/1");
        assert_eq!(segment(&mut visitor, &path, &looker).await.0, 403);
        assert_eq!(segment(&mut visitor, &path, &copier).await.0, 200);
        let end = format!("DELETE /v1/backups/{id}");
        assert_eq!(visitor.ask(&end, &looker, b"").await.0, 403);
        assert_eq!(visitor.ask(&end, &copier, b"").await.0, 204);
    });
    // The server has ended, and with it all of this is written.
    let audit = read(&path);
    let has =
        |words: [&str; 3]| audit.lines().any(|line| words.iter().all(|word| line.contains(word)));
    let (looker, copier) = (r#""user":"looker""#, r#""user":"copier""#);
    for command in ["BACKUP", "BACKUP READ", "BACKUP END"] {
        let command = format!("\"command\":\"{command}\"");
        assert!(has([r#""event":"denied""#, looker, &command]), "{audit}");
        let is_told = has([r#""event":"command""#, copier, &command]);
        assert_eq!(is_told, !command.contains("READ"), "{audit}");
    }
}

#[test]
fn a_server_that_only_shows_a_moment_has_none() {
    let look = Some(Look { at: START, shown: "then".to_owned() });
    with_site_of(Config { look, ..in_memory() }, async |address| {
        let mut visitor = Visitor::at(address).await;
        for line in ["POST /v1/backups", "DELETE /v1/backups/x"] {
            let (status, body) = visitor.ask(line, "", b"").await;
            assert!(status == 403 && body.contains("READONLY"), "{line}: {status} {body}");
            assert!(body.contains("this is a look at then: nothing can be changed"), "{body}");
        }
        let (status, body) = visitor.ask("GET /v1/stats", "", b"").await;
        assert_eq!(status, 200, "{body}");
    });
}
