//! What a backup has while the server goes on, and what the server keeps for it meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pinpriq_proto::wire::resp::{Value, Words};
use serde_json::Value as Json;

use super::{QUEUES, Room, Server, connect};
use crate::files;
use crate::http::browser::{Browser, Request};

/// Ends the load, also when the test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_backup_under_load_is_what_one_client_has_done_up_to_a_moment() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    let (confirmed, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut bounds = Vec::new();
    thread::scope(|scope| {
        let mut client = connect(&server.serving);
        let (confirmed, stop) = (&confirmed, &stop);
        let _stops = Stops(stop);
        scope.spawn(move || {
            // Each is in another shard than the one before.
            for number in 0_u64.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let queue = QUEUES[usize::from(number % 2 == 1)];
                let put = Words::new("PUT").bytes(queue).bytes(number.to_string());
                assert!(!matches!(client.ask(&put), Ok(Value::Error(_)) | Err(_)));
                confirmed.store(number + 1, Ordering::Relaxed);
            }
        });
        for round in 1..=3 {
            while confirmed.load(Ordering::Relaxed) < 100 * round {
                server.now();
            }
            let before = confirmed.load(Ordering::Relaxed);
            let backup = room.back_up(&mut server);
            // One more may be on its way.
            bounds.push((before, confirmed.load(Ordering::Relaxed) + 1, backup["at"].clone()));
        }
    });
    server.stop();
    for (index, (before, after, at)) in bounds.into_iter().enumerate() {
        let name = format!("new-{index}");
        room.restore(&name, &["--until", at.as_str().unwrap()]);
        let server = room.serve_two(&name);
        let numbers: BTreeSet<u64> =
            server.payloads().iter().map(|payload| payload.parse().unwrap()).collect();
        server.stop();
        let count = numbers.len() as u64;
        assert!(numbers.iter().copied().eq(0..count), "{name}: {numbers:?}");
        assert!((before..=after).contains(&count), "{name}: {count} of {before} to {after}");
    }
}

#[test]
fn a_second_backup_sends_only_what_is_new() {
    let room = Room::new();
    let mut server = room.serve("data");
    let large = "x".repeat(10_000);
    for _ in 0..200 {
        server.put("jobs", &large);
    }
    server.stop();
    // A start begins a new segment, so the one before is whole.
    let mut server = room.serve("data");
    server.put("jobs", "first");
    let figure = |backup: &Json, name: &str| backup[name].as_u64().unwrap();
    let first = room.back_up(&mut server);
    assert!(figure(&first, "bytes_read") > 2_000_000, "{first}");
    assert!(figure(&first, "bytes_sent") < 1_000_000, "nothing was compressed: {first}");
    assert_eq!((figure(&first, "segments"), figure(&first, "segments_there")), (2, 0), "{first}");
    let before = room.place();
    server.put("jobs", "second");
    let second = room.back_up(&mut server);
    server.stop();
    assert!(figure(&second, "bytes_read") < 100_000, "{second}");
    assert_eq!(figure(&second, "segments_there"), 1, "{second}");
    let after = room.place();
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "one was changed");
    room.restore("new", &[]);
    let server = room.serve("new");
    let payloads = server.payloads();
    assert_eq!((payloads.len(), &*payloads[200], &*payloads[201]), (202, "first", "second"));
    server.stop();
}

/// The bytes of the first segment that a backup may read.
fn first_segment(browser: &mut Browser, path: &str, bytes: u64) -> Vec<u8> {
    let line = format!("GET {path}/0/1 range:bytes=0-{}", bytes - 1);
    let reply = browser.ask(&Request::of(&line, b""));
    assert_eq!((reply.status, reply.body.len() as u64), (206, bytes), "{}", reply.text());
    reply.body
}

/// The number of the newest segment.
fn newest(room: &Room) -> u64 {
    let segments = files::segments(&room.path("data"));
    let name = segments.last().unwrap().file_stem().unwrap().to_str().unwrap().to_owned();
    name.strip_prefix("segment-").unwrap().parse().unwrap()
}

#[test]
fn segments_are_kept_for_a_backup_while_the_log_is_compacted() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "small");
    server.settled();
    let mut browser = Browser::connect(&server.serving.door("http"));
    let made = browser.ask(&Request::of("POST /v1/backups", b""));
    assert_eq!(made.status, 201, "{}", made.text());
    let made: Json = serde_json::from_slice(&made.body).unwrap();
    let path = format!("/v1/backups/{}", made["id"].as_str().unwrap());
    let segment = &made["shards"][0]["segments"][0];
    assert_eq!(segment["number"], 1, "{made}");
    let bytes = segment["bytes"].as_u64().unwrap();
    let first = first_segment(&mut browser, &path, bytes);
    // Far more than the log may hold beyond what counts.
    let large = vec![b'x'; 1_000_000];
    while newest(&room) < 6 {
        for _ in 0..10 {
            server.resp.ask(&Words::new("PUT large").bytes(&large)).unwrap();
            server.done("POP large");
        }
        assert_eq!(first_segment(&mut browser, &path, bytes), first);
    }
    let file = room.path("data").join("segment-0000000001.log");
    assert!(file.exists(), "a segment went although a backup needs it");
    assert_eq!(first_segment(&mut browser, &path, bytes), first);
    assert_eq!(browser.ask(&Request::of(&format!("DELETE {path}"), b"")).status, 204);
    // Now it goes, without any other change.
    while file.exists() {
        server.now();
    }
    let gone = browser.ask(&Request::of(&format!("GET {path}/0/1 range:bytes=0-0"), b""));
    assert!([404, 410].contains(&gone.status), "{}", gone.text());
    // A backup of the compacted log has all that counts.
    room.back_up(&mut server);
    server.stop();
    room.restore("new", &[]);
    let server = room.serve("new");
    assert_eq!(server.payloads(), ["small"]);
    server.stop();
}

#[test]
fn a_restored_directory_goes_on_in_the_same_place() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "one");
    let old = room.back_up(&mut server);
    server.stop();
    let restored = room.restore("new", &[]);
    let mut server = room.serve("new");
    server.put("jobs", "two");
    let new = room.back_up(&mut server);
    server.stop();
    assert_eq!((&new["line"], &new["mark"]), (&restored["line"], &2.into()));
    assert_eq!(restored["from"], old["line"]);
    // Both lines can still be restored.
    let of_old = old["line"].as_str().unwrap();
    assert_eq!(room.restore("as-old", &["--line", of_old])["at"], old["at"]);
    room.restore("as-new", &[]);
    for (name, payloads) in [("as-old", &["one"][..]), ("as-new", &["one", "two"])] {
        let server: Server = room.serve(name);
        assert_eq!(server.payloads(), payloads, "{name}");
        server.stop();
    }
}
