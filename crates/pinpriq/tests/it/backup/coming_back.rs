//! What a directory has that was restored, and how a server goes on with it.

use std::collections::BTreeSet;
use std::process::Stdio;

use pinpriq_proto::wire::resp::Value;

use super::looks::Look;
use super::{QUEUES, Room, ran, text};
use crate::peer::pinpriq;

#[test]
fn every_moment_up_to_the_newest_comes_back_as_it_was() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    server.done("QUEUE CREATE jobs CAPACITY 1000");
    let mut history = Vec::new();
    for step in 0..6 {
        for queue in QUEUES {
            server.put(queue, &format!("{queue}-{step}"));
        }
        if step % 2 == 1 {
            server.done("POP a");
        }
        history.push((server.settled(), server.export()));
        if step == 2 {
            let backup = room.back_up(&mut server);
            assert_eq!((&backup["mark"], &backup["shards"]), (&1.into(), &2.into()));
            assert!(backup["at_ms"].as_u64().unwrap() >= history[2].0, "{backup}");
            // What is put later is no part of it.
            let restored = room.restore("first", &[]);
            assert_eq!((&restored["why"], &restored["at"]), (&"latest".into(), &backup["at"]));
        }
    }
    assert_eq!(room.back_up(&mut server)["mark"], 2);
    server.stop();
    let mut expected = vec![("first".to_owned(), history[2].1.clone())];
    for step in [0, 2, 3, 5] {
        let (at, export) = &history[step];
        let name = format!("step-{step}");
        let restored = room.restore(&name, &["--until", &at.to_string()]);
        assert_eq!(restored["at_ms"].as_u64(), Some(*at), "{restored}");
        expected.push((name, export.clone()));
    }
    for (name, export) in expected {
        let server = room.serve_two(&name);
        assert_eq!(server.export(), export, "{name}");
        server.stop();
    }
}

#[test]
fn a_moment_can_be_counted_back_and_the_future_is_the_newest() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "first");
    let early = server.settled();
    server.put("jobs", "second");
    let newest = room.back_up(&mut server)["at_ms"].as_u64().unwrap();
    server.stop();
    let back = format!("-{}", newest - early);
    assert_eq!(room.restore("back", &["--until", &back])["at_ms"], early);
    let output = room.restores("future", &["--json", "--until", "2999-01-01T00:00:00Z"]);
    assert_eq!(output.code, 0, "{output:?}");
    let words = "before the moment that was asked for, 2999-01-01T00:00:00.000Z\n";
    let told = &output.told;
    assert!(
        told.starts_with("pinpriq: the newest backup is of 20") && told.ends_with(words),
        "{told}"
    );
    let restored: serde_json::Value = serde_json::from_str(&output.printed).unwrap();
    assert_eq!((&restored["why"], &restored["at_ms"]), (&"latest".into(), &newest.into()));
    for (name, payloads) in [("back", &["first"][..]), ("future", &["first", "second"])] {
        let server = room.serve(name);
        assert_eq!(server.payloads(), payloads, "{name}");
        server.stop();
    }
    let output = room.restores("printed", &["--until", &back]);
    assert_eq!(output.code, 0, "{output:?}");
    let (head, _) = output.printed.split_once(" of line ").unwrap();
    let moment: Vec<char> = head.strip_prefix("restored ").unwrap().chars().collect();
    assert_eq!((moment.len(), moment[19], moment[23]), (24, '.', 'Z'), "{}", output.printed);
}

#[test]
fn no_id_and_no_receipt_is_given_twice() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "held");
    let kept = server.take("jobs");
    server.put("jobs", "ready");
    room.back_up(&mut server);
    // All of this is cut off.
    let lost = server.take("jobs");
    let mut ids: BTreeSet<String> = (0..20).map(|_| server.put("jobs", "later")).collect();
    let mut receipts: BTreeSet<String> = (0..20).map(|_| server.take("jobs")).collect();
    receipts.insert(lost.clone());
    server.stop();

    room.restore("new", &[]);
    let mut server = room.serve("new");
    for receipt in &receipts {
        let answer = server.ask(&format!("ACK jobs {receipt}"));
        assert!(matches!(&answer, Value::Error(told) if told.starts_with("STALE")), "{answer:?}");
    }
    server.done(&format!("ACK jobs {kept}"));
    let (before, given) = (ids.len(), receipts.len());
    ids.extend((0..20).map(|_| server.put("jobs", "again")));
    receipts.extend((0..21).map(|_| server.take("jobs")));
    assert_eq!((ids.len(), receipts.len()), (before + 20, given + 21));
    // The next life of the server has others too.
    server.serving.kill();
    let mut server = room.serve("new");
    assert!(ids.insert(server.put("jobs", "anew")));
    server.stop();
}

#[test]
fn a_second_restore_of_the_same_moment_gives_other_ids() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "first");
    room.back_up(&mut server);
    server.stop();
    let mut ids = BTreeSet::new();
    for name in ["one", "other"] {
        room.restore(name, &[]);
        let mut server = room.serve(name);
        assert!(ids.insert(server.put("jobs", "x")), "{ids:?}");
        // What a restored server has given counts once it was backed up.
        room.back_up(&mut server);
        server.stop();
    }
}

#[test]
fn paused_means_every_queue_and_every_schedule() {
    let room = Room::new();
    let mut server = room.serve_two("data");
    for queue in QUEUES {
        server.put(queue, "x");
        server.done(&format!("SCHEDULE SET {{{queue}}}-tick {queue} tick EVERY 100"));
    }
    room.back_up(&mut server);
    server.stop();
    room.restore("paused", &["--paused"]);
    let mut server = room.serve_two("paused");
    let tasks = server.payloads();
    for queue in QUEUES {
        assert_eq!(server.done(&format!("POP {queue}")).elements(), Some(&[][..]));
        let put = server.ask(&format!("PUT {queue} y"));
        assert!(matches!(&put, Value::Error(told) if told.starts_with("PAUSED")), "{put:?}");
        let schedule = server.done(&format!("SCHEDULE SHOW {{{queue}}}-tick"));
        assert_eq!(schedule.field("paused").map(text).as_deref(), Some("yes"), "{schedule:?}");
    }
    server.let_pass(500);
    assert_eq!(server.payloads(), tasks, "a schedule has gone on");
    server.done("QUEUE RESUME jobs");
    assert_eq!(server.done("POP jobs").elements().map(<[Value]>::len), Some(1));
    server.stop();
}

#[test]
fn slots_up_to_the_first_start_are_made_up_only_after_the_newest_moment() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.done("SCHEDULE SET {jobs}-tick jobs tick EVERY 100 MISSED all");
    let early = server.settled();
    server.let_pass(500);
    let newest = room.back_up(&mut server)["at_ms"].as_u64().unwrap();
    server.let_pass(500);
    let late = server.now();
    server.stop();
    room.restore("early", &["--until", &early.to_string()]);
    room.restore("latest", &[]);
    for (name, from, is_made_up) in [("early", early, false), ("latest", newest, true)] {
        let mut server = room.serve(name);
        // The schedule goes on, so at the latest its next slot is seen.
        while !server.slots().iter().any(|slot| *slot > late) {
            server.now();
        }
        let missed = server.slots().into_iter().filter(|slot| *slot > from && *slot <= late);
        let missed = missed.count();
        assert!(if is_made_up { missed >= 4 } else { missed == 0 }, "{name}: {missed}");
        server.stop();
    }
    // The second start is as any other: what passes meanwhile is made up.
    let server = room.serve("early");
    let slots: Vec<u64> = server.slots().into_iter().filter(|slot| *slot > late).collect();
    server.stop();
    assert!(slots.len() > 1 && slots.windows(2).all(|it| it[1] - it[0] == 100), "{slots:?}");
}

#[test]
fn a_dry_run_tells_the_moment_and_writes_nothing() {
    let room = Room::new();
    let mut server = room.serve("data");
    server.put("jobs", "x");
    let at = room.back_up(&mut server)["at"].as_str().unwrap().to_owned();
    server.stop();
    let before = room.place();
    let output = room.restores("new", &["--dry-run"]);
    assert_eq!((output.code, output.told.as_str()), (0, ""));
    assert!(output.printed.starts_with(&format!("would restore {at} of line ")), "{output:?}");
    assert!(!room.path("new").exists());
    assert!(room.place() == before, "the place has changed");
}

/// The drill of the page on operating, word for word but for the addresses.
#[test]
fn a_queue_that_was_dropped_by_mistake_comes_back_from_a_look() {
    let room = Room::new();
    let mut server = room.serve("data");
    for number in 0..10 {
        server.put("jobs", &format!("job-{number}"));
    }
    server.put("mails", "mail");
    let before = server.settled();
    server.done("QUEUE DROP jobs");
    room.back_up(&mut server);
    assert_eq!(server.payloads(), ["mail"]);

    let then = Look::begin(&room, "place", &["--until", &before.to_string()]);
    let mut export = pinpriq(&["export", "jobs", "--address", &then.resp]).spawn().unwrap();
    let of_server = server.serving.door("resp");
    let mut import = pinpriq(&["import", "--once", "-", "--address", &of_server]);
    let import = ran(import.stdin(Stdio::from(export.stdout.take().unwrap())));
    assert_eq!((import.code, export.wait().unwrap().code()), (0, Some(0)), "{import:?}");
    then.end();
    let mut expected: Vec<String> = (0..10).map(|number| format!("job-{number}")).collect();
    expected.push("mail".to_owned());
    assert_eq!(server.payloads(), expected);
    server.stop();
}
