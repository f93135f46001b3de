//! What a place holds: listed, verified and pruned.

use pinpriq_archive::Mark;
use serde_json::Value as Json;

use super::Room;
use crate::files;

/// A place with two backups of one server, and when they were.
fn with_two() -> (Room, [Json; 2]) {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "one");
    let first = room.back_up(&mut server);
    server.put("jobs", "two");
    let second = room.back_up(&mut server);
    server.stop();
    (room, [first, second])
}

#[test]
fn lines_are_listed_with_their_moments() {
    let (room, [first, second]) = with_two();
    let listed = room.archive("list", &[]);
    assert_eq!((listed.code, listed.told.as_str()), (0, ""));
    let rows: Vec<&str> = listed.printed.lines().collect();
    let line = first["line"].as_str().unwrap();
    assert!(rows[0].starts_with("line  ") && rows[0].contains("  backups  parent"), "{listed:?}");
    assert!(rows[1].starts_with(line), "{listed:?}");
    assert!(listed.printed.contains(second["at"].as_str().unwrap()), "{listed:?}");

    let restored = room.restore("new", &[]);
    let mut server = room.serve("new");
    room.back_up(&mut server);
    server.stop();
    let listed = room.archive("list", &["--json"]);
    assert_eq!(listed.code, 0);
    let lines: Vec<Json> =
        listed.printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["line"], &lines[0]["backups"]), (&first["line"], &2.into()));
    assert_eq!(lines[0]["parent"], Json::Null);
    let last = lines[0]["ranges"].as_array().unwrap().last().unwrap();
    assert_eq!(last["to"], second["at"], "{lines:?}");
    assert_eq!(lines[1]["line"], restored["line"]);
    let parent = &lines[1]["parent"];
    assert_eq!((&parent["line"], &parent["at"]), (&first["line"], &restored["at"]), "{lines:?}");
}

#[test]
fn damage_is_found_told_and_not_restored() {
    let (room, _) = with_two();
    let verified = room.archive("verify", &[]);
    assert_eq!((verified.code, verified.told.as_str()), (0, ""), "{verified:?}");
    assert!(verified.printed.starts_with("2 backups of 1 line in "), "{verified:?}");
    assert!(verified.printed.ends_with("no damage\n"), "{verified:?}");

    let of_segments = |name: &&String| name.contains("/parts/") || name.contains("/shard-");
    let place = room.place();
    let name = place.keys().rfind(of_segments).expect("there are segments").clone();
    let path = room.path("place").join(&name);
    files::flip(&path, place[&name].len() - 1);
    let verified = room.archive("verify", &[]);
    assert_eq!((verified.code, verified.told.as_str()), (3, ""), "{verified:?}");
    assert!(verified.printed.contains(&format!("damage: {name}: ")), "{verified:?}");
    assert!(verified.printed.ends_with("DAMAGED\n"), "{verified:?}");
    let verified = room.archive("verify", &["--json"]);
    let told: Json = serde_json::from_str(&verified.printed).unwrap();
    assert_eq!((verified.code, &told["damaged"]), (3, &true.into()));
    assert_eq!(
        (&told["damage"][0]["name"], &told["damage"][0]["newer"]),
        (&name.into(), &false.into())
    );
    // The list needs only the marks.
    assert_eq!(room.archive("list", &[]).code, 0);
    let restored = room.restores("new", &[]);
    assert_eq!((restored.code, restored.printed.as_str()), (3, ""), "{restored:?}");
    assert!(restored.told.starts_with("pinpriq: "), "{restored:?}");

    files::remove(&path);
    let verified = room.archive("verify", &[]);
    assert_eq!(verified.code, 3, "{verified:?}");
    assert_eq!(room.restores("other", &[]).code, 3);
}

#[test]
fn a_damaged_mark_is_told_too() {
    let (room, _) = with_two();
    let path = room.path("place").join("marks/000000000/002");
    let length = files::read(&path).len();
    files::flip(&path, length / 2);
    assert_eq!(room.archive("verify", &[]).code, 3);
    let listed = room.archive("list", &[]);
    assert_eq!((listed.code, listed.told.starts_with("pinpriq: marks/")), (3, true), "{listed:?}");
    assert_eq!(listed.printed.lines().count(), 2, "{listed:?}");
    let restored = room.restores("new", &[]);
    assert_eq!((restored.code, restored.printed.as_str()), (3, ""), "{restored:?}");
}

#[test]
fn old_backups_are_removed_and_the_newest_stays() {
    let room = Room::new();
    let mut server = room.serve("data");
    let mut newest = Json::Null;
    for payload in ["one", "two", "three"] {
        server.put("jobs", payload);
        newest = room.back_up(&mut server);
    }
    server.stop();
    let pruned = room.archive("prune", &["--archive-keep", "1h"]);
    assert!(pruned.printed.starts_with("removed 0 backups, "), "{pruned:?}");
    // The second is needed for what was before the third.
    for number in [1, 2] {
        make_older(&room, number, 7_200_000);
    }
    let before = room.place();
    let pruned = room.archive("prune", &["--archive-keep", "1h", "--dry-run"]);
    assert_eq!((pruned.code, pruned.told.as_str()), (0, ""), "{pruned:?}");
    assert!(pruned.printed.starts_with("would remove 1 backup, "), "{pruned:?}");
    assert!(room.place() == before, "a dry run has changed the place");
    let pruned = room.archive("prune", &["--archive-keep", "1d"]);
    assert!(pruned.printed.starts_with("removed 0 backups, "), "{pruned:?}");

    let pruned = room.archive("prune", &["--archive-keep", "1h", "--json"]);
    assert_eq!((pruned.code, pruned.told.as_str()), (0, ""), "{pruned:?}");
    let told: Json = serde_json::from_str(&pruned.printed).unwrap();
    assert_eq!(told["marks"], Json::Array(vec![1.into()]));
    assert_eq!((&told["kept"], told["objects"].as_array().map(Vec::len)), (&2.into(), Some(0)));
    assert!(told["from"].is_string() && told["from_ms"].is_u64(), "{told}");
    assert!(!room.path("place").join("marks/000000000/001").exists());
    // Of the segments, the second one needs all that the first one did.
    let after = room.place();
    let gone: Vec<&String> = before.keys().filter(|name| !after.contains_key(*name)).collect();
    assert_eq!(gone, ["marks/000000000/001"]);
    assert_eq!(room.archive("verify", &[]).code, 0);
    assert_eq!(room.restore("new", &[])["at"], newest["at"]);
    let server = room.serve("new");
    assert_eq!(server.payloads(), ["one", "two", "three"]);
    server.stop();
}

/// Writes a mark anew as if it had been made so much earlier.
fn make_older(room: &Room, number: u64, ms: u64) {
    let name = format!("marks/000000000/{number:03}");
    let path = room.path("place").join(&name);
    let mut mark = Mark::decode(&name, &files::read(&path)).unwrap();
    mark.at_ms -= ms;
    mark.since_ms = mark.since_ms.min(mark.at_ms);
    for shard in &mut mark.shards {
        shard.since_ms = shard.since_ms.min(mark.since_ms);
    }
    files::remove(&path);
    files::write(&path, &mark.encode());
}
